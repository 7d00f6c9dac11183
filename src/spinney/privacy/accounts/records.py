"""A ledger as people read it: who paid how much for what, when, and what came of it; and who decided what, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from spinney.errors import BudgetError
from spinney.files import read_json
from spinney.privacy.accounts.chain import NOBODY, Entry
from spinney.privacy.accounts.state import State
from spinney.privacy.events import Brand, Event, NotPrivate, decimal, event_from_dict

_SHORT = 12  # characters of a name that tell one ledger from another


@dataclass(frozen=True, slots=True)
class ChargeOnRecord:
    """A charge as people read it: who paid how much for what, when, and what came of it."""

    number: int
    time: str
    user: str
    population: str
    table: str | None
    purpose: str | None
    request: int | None
    epsilon: Fraction
    delta: Fraction
    events: tuple[Event, ...] | None  # None: written by a Spinney that knows more kinds of them
    release: str | None  # the digest
    error: str | None  # the kind of error that the fit ended with
    imported_by: str | None = None  # who took it over from another ledger, at `time`; its user is not known then


@dataclass(frozen=True, slots=True)
class Decision:
    """What somebody who keeps the ledger decided: when, who, what and, where it has to be said, why."""

    number: int
    time: str
    user: str
    population: str
    what: str
    why: str | None


def charges_of(state: State, population: str) -> tuple[ChargeOnRecord, ...]:
    """The charges of a population, in their order, with what came of them."""
    pairs = [(entry, fit) for fit in state.fits.values() if fit.population == population for entry in fit.charges]
    return tuple(
        ChargeOnRecord(
            entry.number,
            entry.time,
            NOBODY if entry.fields.get("imported") else entry.user,
            fit.population,
            entry.fields.get("table"),
            entry.fields.get("purpose"),
            fit.request,
            Fraction(entry.fields["epsilon"]),
            Fraction(entry.fields["delta"]),
            events_of(entry),
            fit.release,
            fit.error,
            entry.user if entry.fields.get("imported") else None,
        )
        for entry, fit in sorted(pairs, key=lambda pair: pair[0].number)
    )


def decisions_of(state: State, population: str | None = None) -> tuple[Decision, ...]:
    """Limits, policies, approvals, denials and tables of a population, or of all, in their order."""
    limits: dict[str, str] = {}
    found = []
    for entry in state.entries:
        said = _decided(state, entry, limits)
        if said is not None and population in (None, said[0]):
            found.append(Decision(entry.number, entry.time, entry.user, *said, entry.fields.get("why")))
    return tuple(found)


def _decided(state: State, entry: Entry, limits: dict[str, str]) -> tuple[str, str] | None:
    """The population that an entry decides on, and what; None where it is another kind of entry."""
    fields = entry.fields
    if entry.kind in ("approval", "denial"):
        request = state.requests[fields["request"]]
        asked = f"request {request.number} by {request.user}, epsilon {decimal(request.epsilon)} for {request.purpose}"
        return request.population, f"{'approved' if entry.kind == 'approval' else 'denied'} {asked}"
    name = fields.get("population", "")
    if entry.kind == "table":
        return name, f"bound the table {fields['table']}" + (" to a schema" if fields.get("schema") else "")
    if entry.kind == "policy":
        return name, "charges need approval" if fields["approval"] else "charges need no approval any more"
    if entry.kind == "closed":
        return name, f"closed, moved to {fields['moved_to']}"
    if entry.kind not in ("population", "limit"):
        return None
    before, limits[name] = limits.get(name), _limits_said(fields)
    if before is not None:
        return name, f"{limits[name]} instead of {before}"
    approval = ", charges need approval" if fields["approval"] else ""
    return name, f"{_begun(fields)} with {limits[name]}{approval}"


def _begun(fields: Mapping[str, Any]) -> str:
    """How a population came to be; what was imported was not held to its limits and approvals here."""
    if not fields.get("imported"):
        return "opened"
    named = f" {fields['imported_population']!r} of" if fields.get("imported_population") else ""
    return f"imported{named} the ledger {fields['imported'][:_SHORT]}"


def _limits_said(fields: Mapping[str, Any]) -> str:
    if fields.get("epsilon") is None:
        return "no limit"
    delta = Fraction(fields["delta"])
    return f"limit {decimal(Fraction(fields['epsilon']))}" + (f", delta {decimal(delta)}" if delta else "")


def brands_of(state: State, population: str | None = None) -> tuple[tuple[int, Brand], ...]:
    """What voids guarantees of a population, or of all, each with the number of its entry."""
    return tuple(
        (entry.number, event)
        for entry in state.entries
        if entry.kind == "brand" and population in (None, entry.fields["population"])
        for event in events_of(entry) or ()
        if isinstance(event, Brand)
    )


def brand_warning(brands: Sequence[tuple[int, Brand]]) -> str | None:
    """What to say first of an account with brands; None where there are none."""
    if not brands:
        return None
    numbers = ", ".join(str(number) for number, _event in brands[:10]) + (", ..." if len(brands) > 10 else "")
    if any(isinstance(event, NotPrivate) for _number, event in brands):
        return (
            f"NOT PRIVATE: something was released without noise (entries {numbers}), so no limit here bounds the loss"
        )
    return f"UNSAFE NOISE: noise came from a seeded generator (entries {numbers}), and can be taken off by who knows it"


def events_of(entry: Entry) -> tuple[Event, ...] | None:
    """What a charge or a brand lists, or None where this Spinney cannot read it; its amounts count all the same."""
    try:
        listed = read_json(entry.fields["events"].encode())
        return tuple(event_from_dict(event) for event in _listed(listed))
    except (KeyError, TypeError, ValueError, AttributeError, BudgetError):
        return None


def _listed(value: Any) -> Iterable[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value
