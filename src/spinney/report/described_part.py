"""What a release is made of, as plain data: the schema as a table, rules, the graph of a forest, rows of persons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spinney.columns import Column
from spinney.columns.base import show
from spinney.forest.release.explain import REASONS, Explanation, explain
from spinney.forest.release.model import ForestRelease
from spinney.people.release.model import PeopleRelease
from spinney.release.card import structure_in_words
from spinney.release.model import Release
from spinney.release.schema_check import found_privately
from spinney.report.columns_part import plain, tables_of
from spinney.report.graph import lines_between
from spinney.schema.table import Schema

MOST_CLIQUES = 300
ESTIMATED = "estimated privately"
_MOST_VALUES = 12
_TOLD_ELSEWHERE = ("utility", "prior")
_LONGEST_VALUES = 160


def schema_part(release: Release) -> list[dict[str, Any]]:
    """Every table of a release with its columns, rules and places: stated by the holder, or estimated privately."""
    most = {rows.name: rows.most for rows in release.shape.rows} if isinstance(release, PeopleRelease) else {}
    found = {} if isinstance(release, PeopleRelease) else found_privately(release.card.events)
    return [_table(name, schema, most.get(name), found) for name, schema in tables_of(release).items()]


def _table(name: str, schema: Schema, most_rows: int | None, found: Mapping[str, str]) -> dict[str, Any]:
    return {
        "table": name or None,
        "most_rows": most_rows,  # of one person, in a table of rows
        "n_columns": len(schema),
        "columns": [_column(column, of_column, found.get(column)) for column, of_column in schema.items()],
        "rules": [repr(rule) for rule in schema.rules],
        "places": [
            {"columns": list(place.columns), "within": None if place.within is None else repr(place.within)}
            for place in schema.places
        ],
    }


def _column(name: str, column: Column, found: str | None) -> dict[str, Any]:
    low, high = getattr(column, "low", None), getattr(column, "high", None)
    return {
        "name": name,
        "type": column.type_name,
        "low": plain(low),
        "high": plain(high),
        "n_values": len(column.listed) or None,
        "listed": _values(column),
        "nullable": column.nullable,
        "stated": show(column),
        "source": _source(column, found),
    }


def _source(column: Column, found: str | None) -> str:
    """Who says what the bounds and values of a column are."""
    if found is not None:
        return f"{found} {ESTIMATED}"
    return "bounds read off the data" if "from-data" in show(column) else "stated"


def _values(column: Column) -> str | None:
    if not column.listed:
        return None
    text = ", ".join(map(str, column.listed[:_MOST_VALUES]))
    more = len(column.listed) - _MOST_VALUES
    text = text if len(text) <= _LONGEST_VALUES else f"{text[:_LONGEST_VALUES]}…"
    return text + (f" and {more:,} more" if more > 0 else "")


def model_part(release: Release) -> dict[str, Any]:
    """What kind of model it is, and what was counted together, the strongest dependence first."""
    card = release.card
    prior = card._prior_in_words()
    described: dict[str, Any] = {
        "kind": release.kind,
        "synthesizer": card.synthesizer,
        "contents": _contents(card.released),
        "is_empty": card.is_empty,
        "target": card.parameters.get("target"),
        "structure": None,
        "meaning": _meaning(release),
        "cliques": [],
        "cliques_left_out": 0,
        "graph": None,
        "rows": [],
        "parameters": _in_words(card.parameters) | ({} if prior is None else {"prior": prior}),
        "plan": _in_words(card.plan),
    }
    if isinstance(release, PeopleRelease):
        people = release.explain()
        described |= _of_forest(people.persons) | {"meaning": people.meaning}
        described["rows"] = [table.to_dict() for table in people.rows]
    elif isinstance(release, ForestRelease):
        explanation = explain(release)
        described |= _of_forest(explanation) | {"meaning": explanation.meaning}
    return described


def _contents(released: Mapping[str, int]) -> str:
    """What was released: 1 table, 12 leaves."""
    return ", ".join(f"{count:,} {_one(what) if count == 1 else what}" for what, count in released.items())


def _one(what: str) -> str:
    """One of them: leaf of leaves, table of rows of tables of rows."""
    first, space, rest = what.partition(" ")
    return {"leaves": "leaf"}.get(first, first.removesuffix("s")) + space + rest


def _in_words(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Entries of a call or a plan that have a value; what stands elsewhere on the page is left out."""
    found: dict[str, Any] = {}
    for name, value in entries.items():
        if value is None or name in _TOLD_ELSEWHERE:
            continue
        found[str(name)] = _in_words(value) if isinstance(value, Mapping) else plain(value)
    return found


def _of_forest(explanation: Explanation) -> dict[str, Any]:
    lines = lines_between(explanation)
    names = [column.name for column in explanation.columns if column.n_leaves]
    cliques = [
        {
            "columns": list(clique.columns),
            "given": clique.given,
            "distance": clique.distance,
            "bits": clique.bits,
            "reason": REASONS.get(clique.reason, clique.reason),
        }
        for clique in explanation.cliques
    ]
    return {
        "structure": structure_in_words(explanation.structure),
        "cliques": cliques[:MOST_CLIQUES],
        "cliques_left_out": max(0, len(cliques) - MOST_CLIQUES),
        "graph": {
            "columns": names,
            "target": explanation.target,
            "lines": [{"columns": [line.first, line.second], "distance": line.distance} for line in lines],
        },
    }


_MEANINGS: Mapping[str, str] = {
    "bins": "Space was divided into boxes, and the noisy number of rows in each was released where it is above a "
    "threshold. All columns were measured together.",
    "moments": "A tree divided space into boxes, more finely where there are more rows. Of every box the noisy number "
    "of rows and their noisy mean were released. All columns were measured together.",
    "points": "Points with weights were released, which together stand for the table's density.",
    "generator": "A generator of rows was trained on noisy sums, and released.",
}


def _meaning(release: Release) -> str:
    return _MEANINGS.get(release.kind, f"The release holds {release.card.contents}.")
