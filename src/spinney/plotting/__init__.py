"""Pictures of a release on axes that users compose: `sp.plot`. They hold what the report holds, drawn alike."""

from spinney.plotting import plot

__all__ = ["plot"]
