"""The `spinney` command: thin verbs over the library, no maths."""

from spinney.cli.app import main

__all__ = ["main"]
