"""Charges as people read them: who paid how much for what, when, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from spinney.errors import BudgetError
from spinney.files import read_json
from spinney.privacy.accounts.chain import Entry
from spinney.privacy.accounts.rules import State
from spinney.privacy.events import Event, event_from_dict


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


def charges_of(state: State, population: str) -> tuple[ChargeOnRecord, ...]:
    """The charges of a population, in their order, with what came of them."""
    pairs = [(entry, fit) for fit in state.fits.values() if fit.population == population for entry in fit.charges]
    return tuple(
        ChargeOnRecord(
            entry.number,
            entry.time,
            entry.user,
            fit.population,
            entry.fields.get("table"),
            entry.fields.get("purpose"),
            fit.request,
            Fraction(entry.fields["epsilon"]),
            Fraction(entry.fields["delta"]),
            events_of(entry),
            fit.release,
            fit.error,
        )
        for entry, fit in sorted(pairs, key=lambda pair: pair[0].number)
    )


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
