"""The lattice of a release as JSON-ready data."""

from __future__ import annotations

from typing import Any

from spinney.schema.lattice import Axis, Lattice

# Ladders serve private bounds only and never reach a release.
_FIELDS = [name for name in Axis.__dataclass_fields__ if name != "edges"]


def axes_to_list(lattice: Lattice) -> list[dict[str, Any]]:
    """All axes in order."""
    return [{name: getattr(axis, name) for name in _FIELDS} for axis in lattice.axes]


def axes_from_list(described: list[dict[str, Any]]) -> Lattice:
    """Read what `axes_to_list` gave; ValueError where it is not that."""
    if any(set(axis) != set(_FIELDS) for axis in described):
        raise ValueError("an axis with other entries than ours")
    return Lattice(tuple(Axis(**axis) for axis in described))
