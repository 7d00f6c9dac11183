"""What was charged for what, by whom and when where a ledger says so, and where the budget went, stage by stage.

A release knows its own events. Who charged them and when stands in a ledger, if anywhere; what is asked of a ledger is
asked by name, so one that keeps less, or more, is shown with what it has. Charges of other releases are told as sums:
they, and who made them, are no business of the readers of this one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from fractions import Fraction
from typing import Any

from spinney.forest.release.budget_report import stages
from spinney.privacy.budget import Unit
from spinney.privacy.ledger import Brand, Event, decimal, event_lines, event_to_dict
from spinney.release.card import Card

UNKNOWN = "not known"
# What a ledger may call who charged, when, and what for.
_WHO = ("user", "who", "by")
_WHEN = ("time", "when", "at")
_PURPOSE = ("purpose",)

STAGES = {
    "rows": "how many rows there are",
    "bounds": "bounds of columns",
    "values": "lists of values",
    "classes": "values of the target",
    "trees": "where columns are divided",
    "one-way": "every column by itself",
    "spikes": "round numbers and other piles",
    "regions": "where places are divided",
    "places": "regions of places",
    "workload": "tables that the call names",
    "selection": "choice of columns to count together",
    "pairs": "every column with the target",
    "cliques": "columns together",
    "prior": "where a prior stands in",
    "analyses": "sums of the regressions named",
    "products": "all other pairs, coarsely",
    "splits": "where the tree divides space",
    "leaves": "what the leaves hold",
    "answer": "an answer that was bought",
    "utility": "how far the release is from the table",
    "row trees": "where columns of rows are divided",
    "row one-way": "every column of rows by itself",
    "row spikes": "round numbers in rows",
    "alikeness": "how alike rows of one person are",
    "row selection": "choice of columns of rows to count together",
    "row tables": "columns of rows together",
    "other": "other",
}


def budget_part(card: Card) -> list[dict[str, Any]]:
    """Every stage with its share of the budget and its noise; one stage of several charges is one line."""
    found: dict[str, dict[str, Any]] = {}
    unit, of_persons = Unit.parse(card.unit), "every column of persons with how many rows they have"
    for stage in stages(card.events, unit) if card.epsilon else ():
        known = found.get(stage.name)
        if known is None:
            found[stage.name] = {
                "stage": stage.name,
                "what": of_persons if stage.name == "pairs" and unit.is_person else STAGES.get(stage.name, stage.name),
                "times": stage.times,
                "share": stage.share,
                "noise": stage.noise,
                "noise_std": stage.noise_std,
            }
        else:
            known["share"] += stage.share
            known["times"] += stage.times
    return list(found.values())


def account_part(card: Card, ledger: Any = None, digest: str | None = None) -> dict[str, Any]:
    """The events of a release, and the account that they were charged to where one is given.

    Args:
        card: the card of the release.
        ledger: the account.
        digest: that of the release, by which a ledger that notes digests knows its charges from equal ones.
    """
    own = [_entry(event) for event in card.events]
    if ledger is None:
        return {"events": own, "ledger": None}
    kept = list(_kept(ledger))
    for entry, event in zip(own, card.events, strict=True):
        _learn(entry, event, kept, digest)
    has_this = _has_all(card.events, [event for event, record in kept if not _is_of_another(record, digest)])
    described = {
        "unit": _text(getattr(getattr(ledger, "unit", None), "value", getattr(ledger, "unit", None))),
        "limit": _number(getattr(ledger, "limit", None)),
        "spent": _number(getattr(ledger, "spent", None)),
        "remaining": _number(getattr(ledger, "remaining", None)),
        "delta_limit": _number(getattr(ledger, "delta_limit", None)),
        "spent_delta": _number(getattr(ledger, "spent_delta", None)),
        "remaining_delta": _number(getattr(ledger, "remaining_delta", None)),
        "has_this": has_this,
    } | _others(card, ledger, len(kept), digest, has_this=has_this)
    return {"events": own, "ledger": described}


def _others(card: Card, ledger: Any, n_events: int, digest: str | None, *, has_this: bool) -> dict[str, Any]:
    """What else a ledger holds, in sums; of one without records, releases are not known."""
    spent, records = getattr(ledger, "spent", None), getattr(ledger, "charges", None)
    found: dict[str, Any] = {
        "other_charges": n_events - (len(card.events) if has_this else 0),
        "other_epsilon": None
        if spent is None
        else _number(max(spent - (card.epsilon if has_this else 0), Fraction(0))),
        "other_releases": None,
        "without_release": None,
        "bought_answers": None,
        "tuning": None,
    }
    if not isinstance(records, Sequence):
        return found
    named = [getattr(record, "release", None) for record in records]
    is_unnamed = has_this and digest not in named  # then a charge without a release is that of this one
    mine = [record for record, name in zip(records, named, strict=True) if digest is not None and name == digest]
    table = getattr(mine[0], "table", None) if mine else None
    others = [record for record in records if record not in mine]
    answers = [record for record in others if _is_answer(record)]
    return (
        found
        | {
            "other_releases": len(_digests(others)),
            "without_release": max(0, named.count(None) - is_unnamed),
            "bought_answers": len(answers),
        }
        | {"tuning": _tuning([one for one in others if one not in answers], table, is_unnamed=is_unnamed)}
    )


def _tuning(others: Sequence[Any], table: str | None, *, is_unnamed: bool) -> dict[str, Any]:
    """Other fits of the same table, where charges name their tables, or of the same people."""
    same = [record for record in others if table is None or getattr(record, "table", None) == table]
    failed = [record for record in same if getattr(record, "error", None) is not None]
    unnamed = [record for record in same if getattr(record, "release", None) is None and record not in failed]
    return {
        "table": table,
        "releases": len(_digests(same)),
        "failed": len(failed),
        "without_release": max(0, len(unnamed) - is_unnamed),
    }


def _digests(records: Sequence[Any]) -> set[str]:
    """The releases that records name, bought answers left out."""
    return {record.release for record in records if getattr(record, "release", None) and not _is_answer(record)}


def _is_answer(record: Any) -> bool:
    """Whether a charge is for an answer that was bought beside a release."""
    events = getattr(record, "events", None) or ()
    return bool(events) and all(getattr(event, "stage", None) == "answer" for event in events)


def _entry(event: Any) -> dict[str, Any]:
    """An event, and who charged it and when, where it says so."""
    is_brand = isinstance(event, Brand)
    return {
        "what": _text(getattr(event, "note", None) or type(event).__name__),
        "lines": [line.strip() for line in event_lines(event)] if isinstance(event, Event) else [_text(event)],
        "epsilon": None if is_brand else _number(getattr(event, "epsilon", None)),
        "delta": None if is_brand else _number(getattr(event, "delta", None)),
        "is_brand": is_brand,
    } | _about([event])


def _about(holders: Sequence[Any]) -> dict[str, str]:
    return {"who": _first(holders, _WHO), "when": _first(holders, _WHEN), "purpose": _first(holders, _PURPOSE)}


def _kept(ledger: Any) -> Iterator[tuple[Any, Any]]:
    """Every event of a ledger, with the record that says who charged it and when, or None."""
    records = getattr(ledger, "charges", None)
    told: list[Any] = []
    for record in records if isinstance(records, Sequence) else ():
        for event in getattr(record, "events", None) or ():
            told.append(event)
            yield event, record
    for event in getattr(ledger, "events", ()):
        if event in told:
            told.remove(event)
        else:
            yield event, None


def _learn(entry: dict[str, Any], event: Any, kept: Sequence[tuple[Any, Any]], digest: str | None) -> None:
    """Who and when of an event of the release, where one record of a ledger, or one with its digest, holds it."""
    found = [record for other, record in kept if record is not None and other == event]
    named = [record for record in found if digest is not None and getattr(record, "release", None) == digest]
    if len(named) == 1 or len(found) == 1:
        entry.update(_about([(named or found)[0]]))


def _is_of_another(record: Any, digest: str | None) -> bool:
    """Whether a record names another release, or a fit that failed: equal charges of these paid for nothing here."""
    named = getattr(record, "release", None)
    return (digest is not None and named is not None and named != digest) or getattr(record, "error", None) is not None


def _has_all(mine: Sequence[Any], events: Sequence[Any]) -> bool:
    """Whether a ledger holds every event of a release, as often as it has it."""
    left = [event_to_dict(event) for event in events if isinstance(event, Event)]
    for event in mine:
        wanted = event_to_dict(event)
        if wanted not in left:
            return False
        left.remove(wanted)
    return True


def _first(holders: Sequence[Any], names: Sequence[str]) -> str:
    for holder in holders:
        for name in names:
            value = getattr(holder, name, None)
            if value is not None and not callable(value):
                return _text(value)
    return UNKNOWN


def _number(value: Any) -> str | None:
    return None if value is None else decimal(value)


def _text(value: Any) -> str:
    if value is None:
        return UNKNOWN
    return value.isoformat() if isinstance(value, date) else str(value)
