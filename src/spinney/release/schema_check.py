"""A schema that was stated beforehand, compared with the schema of a release: the same, but for what a fit fills in.

A fit leaves ignored columns out, and fills in bounds and lists of values that the schema asks to find privately; the
card has a charge for each of those. Bounds that were read off the data are marked in both. Everything else is the same
in both, or the release was made under another schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from spinney.privacy.events import DiscreteLaplaceCounts, Event, PartitionSelection
from spinney.schema.digests import schema_digest
from spinney.schema.people import PeopleShape, Tables
from spinney.schema.plain import jsonable
from spinney.schema.table import Schema
from spinney.shown import brief, printable

_BOUNDS = ("low", "high")


@dataclass(frozen=True, slots=True)
class SchemaComparison:
    """What differs, in words, and what a fit may fill in and did."""

    differences: tuple[str, ...]
    filled_in: tuple[str, ...]
    stated_digest: str
    released_digest: str


def found_privately(events: Iterable[Event]) -> dict[str, str]:
    """By column what a fit found privately, and paid for: "bounds" or "values"."""
    found: dict[str, str] = {}
    for event in events:
        if isinstance(event, DiscreteLaplaceCounts) and event.stage == "bounds" and event.column is not None:
            found[event.column] = "bounds"
        elif isinstance(event, PartitionSelection) and event.column is not None:
            found[event.column] = "values"
    return found


def released_schema(schema: Schema, people: PeopleShape | None) -> dict[str, Any]:
    """The schema of a release as data: of persons, all tables as they were stated."""
    return schema.to_dict() if people is None else people.to_dict()


def compare_schema(
    stated: Schema | Tables, schema: Schema, people: PeopleShape | None, events: tuple[Event, ...]
) -> SchemaComparison:
    """The stated schema against that of a release, whose events say what was found privately."""
    released = released_schema(schema, people)
    digests = schema_digest(stated), schema_digest(schema if people is None else people)
    is_of_persons = isinstance(stated, Tables) or stated.person is not None
    if is_of_persons != (people is not None):
        what = "persons with all their rows" if is_of_persons else "single rows"
        return SchemaComparison((f"the schema protects {what}, and the release does not",), (), *digests)
    if people is not None:
        shape = PeopleShape.of(stated)
        differences, filled = _compare(shape.without_ignored().to_dict(), released, {})
        return SchemaComparison(
            tuple(differences),
            tuple(filled),
            schema_digest(stated),
            schema_digest(schema if people is None else people),
        )
    assert isinstance(stated, Schema)
    found = found_privately(events)
    kept = stated.without_ignored()
    differences, filled = _compare(kept.to_dict(), released, found)
    filled = [f"column {name!r} is ignored, and left out" for name in stated if name not in kept] + filled
    return SchemaComparison(
        tuple(differences), tuple(filled), schema_digest(stated), schema_digest(schema if people is None else people)
    )


def _compare(
    stated: Mapping[str, Any], released: Mapping[str, Any], found: Mapping[str, str]
) -> tuple[list[str], list[str]]:
    """Differences, and what was filled in, entry by entry."""
    stated, released = jsonable(stated), jsonable(released)
    differences: list[str] = []
    filled: list[str] = []
    ours, theirs = (described.get("columns") for described in (stated, released))
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in dict.fromkeys([*ours, *theirs]):
            _compare_column(name, ours.get(name), theirs.get(name), found.get(name), differences, filled)
        if not differences and list(ours) != list(theirs):
            differences.append("the columns are in another order")
    for entry in dict.fromkeys([*stated, *released]):
        if entry == "columns" and isinstance(ours, dict) and isinstance(theirs, dict):
            continue
        differences += _unequal(entry, stated.get(entry), released.get(entry))
    return differences, filled


def _compare_column(
    name: str, ours: Any, theirs: Any, found: str | None, differences: list[str], filled: list[str]
) -> None:
    if ours is None or theirs is None:
        where = "the release, and not in the schema" if ours is None else "the schema, and not in the release"
        differences.append(f"column {name!r} is in {where}")
        return
    ours, theirs = dict(ours), dict(theirs)
    asked = "bounds" if ours.get("bounds") == "private" else "values" if ours.get("values") == "private" else None
    if asked != found:
        states = f"asks for private {asked}" if asked else f"states its {found}"
        says = f"the release found its {found} privately" if found else "the release paid for none"
        differences.append(f"column {name!r}: the schema {states}, and {says}")
    if asked == "bounds":
        filled.append(f"column {name!r}: bounds found privately, {theirs.get('low')} to {theirs.get('high')}")
    if asked == "values":
        filled.append(f"column {name!r}: {len(theirs.get('values') or ())} values found privately")
    if ours.get("bounds") == theirs.get("bounds") == "from-data-not-private":
        filled.append(f"column {name!r}: bounds read off the data, which voids the guarantee")
    dropped = {"bounds": (*_BOUNDS, "bounds"), "values": ("values",), None: ()}[asked]
    if "bounds" in ours and asked is None:
        dropped = _BOUNDS
    for entry in dict.fromkeys([*ours, *theirs]):
        if entry not in dropped:
            differences += _unequal(f"column {name!r}: {entry}", ours.get(entry), theirs.get(entry))


def _unequal(what: str, ours: Any, theirs: Any) -> list[str]:
    if ours == theirs and type(ours) is type(theirs):
        return []
    shown = [("nothing" if value is None else brief(value)) for value in (ours, theirs)]
    return [printable(f"{what} is {shown[0]} in the schema and {shown[1]} in the release")]
