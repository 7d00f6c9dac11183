"""What a release says of itself, as plain data: promise, card, charges, schema, and what can be asked about."""

from __future__ import annotations

from typing import Any

from spinney.columns import Bounded, Column, Listed
from spinney.columns.number import Number
from spinney.forest.release.model import ForestRelease
from spinney.people.release.model import PeopleRelease
from spinney.release.answers.answer import shown_label
from spinney.release.storage import digest as digest_of
from spinney.release.whole_file import check_contents
from spinney.report.described_part import schema_part
from spinney.report.maps_part import mapped_columns
from spinney.report.promise_part import promise_part
from spinney.report.spending_part import account_part, budget_part
from spinney.studio.releases.loaded import asked_columns, loaded, takes_conditions
from spinney.synthesizers.replan import verified_numbers

MOST_VALUES = 60
_PLAIN_NAME = r"[\w.#-]+"


def overview(path: str, digest: str) -> dict[str, Any]:
    """All that is known of a release without working anything out."""
    release = loaded(path, digest)
    card = release.card
    return {
        "digest": digest,
        "release_digest": digest_of(release),
        "kind": release.kind,
        "is_people": isinstance(release, PeopleRelease),
        "is_forest": isinstance(release, ForestRelease),
        "takes_conditions": takes_conditions(release),
        "contents": card.contents,
        "synthesizer": card.synthesizer,
        "made_by": card.spinney_version,
        "n_rows": card.n_rows,
        "n_drawn": _default_rows(release),
        "target": card.parameters.get("target"),
        "warnings": list(card.to_dict()["warnings"]),
        "remarks": list(card.remarks),
        "promise": promise_part(card),
        "events": account_part(card)["events"],
        "budget": budget_part(card),
        "schema": schema_part(release),
        "fields": [
            field(name, holder.schema[own]) for name, (holder, own) in asked_columns(release).items()
        ],
        "maps": mapped_columns(release),
        "card": str(card),
    }  # fmt: skip


def field(name: str, column: Column) -> dict[str, Any]:
    """A column as whoever writes a condition has to know it."""
    values = [str(value) for value in column.listed] if isinstance(column, Listed) else []
    bounds, some = None, None
    if isinstance(column, Bounded) and column.has_bounds:
        bounds = shown_label((column.low, column.high))
        some = _some(column)
    return {
        "name": name,
        "type": column.type_name,
        "values": values[:MOST_VALUES],
        "values_left_out": max(0, len(values) - MOST_VALUES),
        "bounds": bounds,
        "nullable": column.nullable,
        "has_mean": isinstance(column, Number) or column.type_name == "boolean",
        "example": _example(name, values, some),
    }


def quoted(name: str) -> str:
    """A name or a value as conditions and questions take it: in quotes where it holds more than letters and digits."""
    import re

    is_plain = re.fullmatch(_PLAIN_NAME, name) and name.lower() not in (
        "and",
        "by",
        "where",
        "given",
        "in",
        "is",
        "not",
    )
    return name if is_plain else '"' + name.replace('"', '""') + '"'


def _some(column: Bounded) -> str:
    """The middle of a column's range, for an example."""
    first, last = column.first_and_last()
    ends = [
        first + (last - first) * share // 4 if column.is_whole else first + (last - first) * share / 4
        for share in (1, 2)
    ]
    low, high = (column.logical(column.aligned(end, up=True) if column.is_whole else end) for end in ends)
    return shown_label((low, high))


def _example(name: str, values: list[str], some: str | None) -> str:
    if values:
        return f"{quoted(name)} = {quoted(values[0])}"
    return f"{quoted(name)} in {some}" if some else f"{quoted(name)} = null"


def _default_rows(release: Any) -> int | None:
    """How many rows, or persons, are drawn where nobody says; None where that is more than is drawn unasked."""
    from spinney.errors import SpinneyError

    try:
        return int(release.card.n_rows) if release.card.n_rows is not None else int(release._default_rows())
    except SpinneyError:
        return None


def verified(path: str, digest: str) -> dict[str, Any]:
    """What `spinney verify` finds in a file: its checks, and what no file can show; a FileError says what is wrong."""
    release = loaded(path, digest)
    guarantee, checks, others = verified_numbers(path, release)
    plain, not_plain = check_contents(path, release)
    return {"guarantee": guarantee, "checks": [*checks, *plain], "not_checked": [*others, *not_plain]}
