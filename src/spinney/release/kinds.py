"""Which kinds of releases there are, and where each lives: the one list that a new kind is added to.

Kinds belong to the rooms that make them (`tree/release`, `forest/release`), which stand above this one; a file says
which kind it holds, and only that one is imported.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spinney.release.model import Release

KINDS = {
    "bins": ("spinney.tree.release.binned", "BinnedRelease"),
    "moments": ("spinney.tree.release.moments", "MomentsRelease"),
    "forest": ("spinney.forest.release.model", "ForestRelease"),
    "people": ("spinney.people.release.model", "PeopleRelease"),
    "points": ("spinney.release.points", "PointsRelease"),
    "generator": ("spinney.release.generator", "GeneratorRelease"),
}
# Files that say no kind were written when there was one.
OLDEST = "bins"


def release_class(kind: str) -> type[Release]:
    """The class of a kind that a file is marked with."""
    module, name = KINDS[kind]
    found: type[Release] = getattr(import_module(module), name)
    return found
