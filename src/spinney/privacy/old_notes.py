"""What events said in their notes before they had fields for it. The only place where a note is read.

Files of the first version, releases and ledgers, may have been written when the stage of a charge, how many trees or
choices it paid for and the column of private bounds stood in its note alone. Such an event is an entry without `stage`.
Only the exact words that a fit wrote are taken; any other note leaves the event without the claim. An entry that has
`stage` is read by its fields, whatever its note says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_NUMBER = r"([1-9][0-9]{0,8})"
_COLUMN_TREES = re.compile(rf"shapes of {_NUMBER} column trees")
_TABLES = re.compile(rf"(one-way|spikes|pairs|cliques): {_NUMBER} tables")
_CHOICES = re.compile(rf"{_NUMBER} choices of columns to look at together")
_BOUNDS = re.compile(r"bounds of (.+): leaf counts", re.DOTALL)
# The second form is of the first forests.
_CLASSES = re.compile(r"(?:classes: sizes of those|forest: sizes of the classes) of (?:'.*'|\".*\")", re.DOTALL)

_PARTS = {
    "TreeShapes": ("trees",),
    "GaussianTables": ("one-way", "spikes", "pairs", "cliques"),
    "Selections": ("selection",),
}


def fields_in_old_event(kind: str, described: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that the note of an old event stands for; none where no fit wrote such a note."""
    note = described.get("note")
    if not isinstance(note, str):
        return {}
    if kind == "SplitDecisions":
        if note == "table: split decisions":
            return {"stage": "splits", "times": 1}
        found = _COLUMN_TREES.fullmatch(note)
        return {"stage": "trees", "times": int(found[1])} if found else {}
    if kind == "DiscreteLaplaceCounts":
        return _fields_of_counts(note)
    if kind == "LeafMoments":
        return {"stage": "leaves"} if note == "table: leaf counts and means" else {}
    if kind == "Selection":
        found = _CHOICES.fullmatch(note)
        return {"stage": "selection", "times": int(found[1])} if found else {}
    return {}


def _fields_of_counts(note: str) -> dict[str, Any]:
    if note == "table: leaf counts":
        return {"stage": "leaves", "times": 1}
    if found := _TABLES.fullmatch(note):
        return {"stage": found[1], "times": int(found[2])}
    if found := _BOUNDS.fullmatch(note):
        return {"stage": "bounds", "times": 1, "column": found[1]}
    return {"stage": "classes", "times": 1} if _CLASSES.fullmatch(note) else {}


def fields_in_old_part(kind: str, described: Mapping[str, Any]) -> dict[str, Any]:
    """The stage of an old part, which was the whole of its note."""
    note = described.get("note")
    return {"stage": note} if isinstance(note, str) and note in _PARTS.get(kind, ()) else {}
