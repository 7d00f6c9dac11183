"""The entries of a card as a file has them, each checked for what it must be before a card is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spinney.privacy.budget import Unit
from spinney.privacy.events import Event, event_from_dict, total_delta
from spinney.release.frames import check_frame_kind
from spinney.schema.table import Schema
from spinney.shown import brief

# More rows than this were never in a table.
MOST_ROWS = 2**40
# What a card may list: bounds are one charge a column, all else a few.
_MOST_EVENTS = 20_000
_LONGEST_NAME = 200
_LONGEST_REMARK = 10_000


def checked_entries(described: Any) -> dict[str, Any]:
    """What a card is made of; ValueError or KeyError where an entry is not what `Card.to_dict` writes."""
    if not isinstance(described, Mapping):
        raise ValueError("a card is not a table of entries")
    unit = Unit.parse(described["unit"])
    return {
        "spinney_version": _name(described["spinney_version"], "spinney_version"),
        "synthesizer": _name(described["synthesizer"], "synthesizer"),
        "parameters": _parameters(described["parameters"]),
        "unit": unit.value,
        "events": _events(described["events"]),
        "schema": _schema(described["schema"]),
        "plan": _table(described["plan"], "plan"),
        "n_rows": _rows(described["n_persons" if unit.is_person else "n_rows"], unit),
        "released": _released(described["released"] if "released" in described else {"bins": described["n_bins"]}),
        "frame": check_frame_kind(described["frame"]),
        "remarks": _remarks(described.get("remarks", [])),
    }


def _schema(described: Any) -> Schema:
    """The schema of what was released: no column is ignored, every list of values is there, and no file is named."""
    schema = Schema.from_dict(described)
    if schema.columns_awaiting_values:
        raise ValueError("the schema of a release leaves a list of values to be found")
    if schema.without_ignored() is not schema:
        raise ValueError("the schema has columns that are ignored, which no release has")
    return schema


def _name(value: Any, name: str, *, longest: int = _LONGEST_NAME) -> str:
    """Words of ours: nothing that a terminal would obey."""
    if not isinstance(value, str) or len(value) > longest or not value.isprintable():
        raise ValueError(f"{name}={brief(value)} is not a name")
    return value


def _table(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} is not a table of entries")
    return value


def _parameters(described: Any) -> dict[str, Any]:
    """The parameters of the call. What a card shows of its prior is what a fit writes."""
    parameters = _table(described, "parameters")
    prior = parameters.get("prior")
    if prior is None:
        return parameters
    entries = {"kind": _name(_table(prior, "prior").get("kind"), "prior"), "rows": prior.get("rows")}
    if entries["kind"] == "release":
        entries["guarantee"] = _name(prior.get("guarantee"), "the prior's guarantee", longest=_LONGEST_REMARK)
        if "drawn" in prior:  # files from before state it as the number of rows
            entries["drawn"] = prior["drawn"]
    elif entries["kind"] != "table":
        raise ValueError(f"a prior of kind {brief(entries['kind'])} is neither a table nor a release")
    for n_rows in (entries["rows"], entries.get("drawn", 1)):
        if type(n_rows) is not int or not 1 <= n_rows <= MOST_ROWS:
            raise ValueError(f"{brief(n_rows)} is not the number of rows of a prior")
    if prior.keys() != entries.keys():
        raise ValueError("a prior has entries that no fit writes")
    return parameters


def _events(described: Any) -> tuple[Event, ...]:
    if not isinstance(described, list) or len(described) > _MOST_EVENTS:
        raise ValueError(f"events is not a list of at most {_MOST_EVENTS:,} entries")
    events = tuple(event_from_dict(event) for event in described)
    if total_delta(events) >= 1:
        raise ValueError("the deltas of all events add up to 1 or more, which guarantees nothing")
    return events


def _rows(n_rows: Any, unit: Unit) -> int | None:
    """The number of rows, or of persons, which a card states exactly where its unit makes it public."""
    who = "persons" if unit.is_person else "rows"
    if unit.n_is_public != (n_rows is not None):
        raise ValueError(f"n_{who}={brief(n_rows)} does not go with unit {unit.value!r}")
    if n_rows is not None and (type(n_rows) is not int or not 0 <= n_rows <= MOST_ROWS):
        raise ValueError(f"n_{who}={brief(n_rows)} is not a number of {who}")
    return n_rows


def _remarks(described: Any) -> tuple[str, ...]:
    if not isinstance(described, list) or len(described) > _MOST_EVENTS:
        raise ValueError(f"remarks is not a list of at most {_MOST_EVENTS:,} entries")
    for remark in described:
        if not isinstance(remark, str) or len(remark) > _LONGEST_REMARK:
            raise ValueError(f"{brief(remark)} is not a remark")
    return tuple(described)


def _released(described: Any) -> dict[str, int]:
    for what, count in _table(described, "released").items():
        _name(what, "released")
        if type(count) is not int or not 0 <= count <= MOST_ROWS:
            raise ValueError(f"released: {brief(count)} is not a number of {what}")
    return dict(described)
