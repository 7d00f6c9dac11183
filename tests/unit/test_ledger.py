"""The ledger: what was charged, what may still be, and what cannot be undone."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
import threading
from fractions import Fraction

import pytest

import spinney as sp
from spinney.errors import BudgetError, ParameterError
from spinney.privacy.budget import Unit
from spinney.privacy.ledger import (
    DiscreteLaplaceCounts,
    NotPrivate,
    SplitDecisions,
    UnsafeEntropy,
    brands,
    event_from_dict,
    event_to_dict,
    total_epsilon,
)


def counts(epsilon) -> DiscreteLaplaceCounts:
    return DiscreteLaplaceCounts(Fraction(epsilon), sensitivity=2, note="counts")


EVENTS = [
    DiscreteLaplaceCounts(Fraction(1, 3), sensitivity=1, note="table: leaf counts"),
    SplitDecisions(Fraction(2, 7), rule="privtree", rate=Fraction(5, 4096), levels=40, note="table: split decisions"),
    NotPrivate(note="bounds were read off the data"),
    UnsafeEntropy(note="seeded"),
]


def test_charges_add_up_exactly():
    """Ten tenths are one, which floats would miss."""
    ledger = sp.Ledger(limit=1)
    for _ in range(10):
        ledger.charge(counts("0.1"))
    assert ledger.spent == 1
    assert ledger.remaining == 0


def test_a_charge_beyond_the_limit_raises_and_records_nothing():
    """The hair that would exceed the limit is refused, and the account is as before."""
    ledger = sp.Ledger(limit="1")
    ledger.charge(counts("0.75"))
    with pytest.raises(BudgetError, match=r"3/4 of 1 is spent"):
        ledger.charge(counts(Fraction(1, 4) + Fraction(1, 10**30)))
    assert len(ledger.events) == 1
    ledger.charge(counts("0.25"))
    assert ledger.remaining == 0


def test_budget_cannot_be_earned_back():
    """A negative charge would make room for more than the limit."""
    ledger = sp.Ledger(limit=1)
    with pytest.raises(BudgetError, match="negative"):
        ledger.charge(counts(-1))
    assert ledger.events == ()


def test_no_limit():
    """Without a limit the ledger only keeps account."""
    ledger = sp.Ledger()
    ledger.charge(counts(1000))
    assert (ledger.limit, ledger.remaining, ledger.spent) == (None, None, 1000)


def test_require_asks_without_spending():
    """`require` raises as a later charge would, and leaves no trace."""
    ledger = sp.Ledger(limit=1)
    ledger.require(Fraction(1), unit=Unit.REPLACE_ONE)
    with pytest.raises(BudgetError, match="does not fit"):
        ledger.require(Fraction(101, 100), unit=Unit.REPLACE_ONE)
    assert ledger.events == ()


def test_units_do_not_mix():
    """Budgets counted in different units do not add; both are named."""
    with pytest.raises(ParameterError, match=r"'add-remove'.*'replace-one'"):
        sp.Ledger(limit=1).require(Fraction(1, 2), unit=Unit.ADD_REMOVE)


@pytest.mark.parametrize("limit", [0, -1, "abc", float("nan"), True])
def test_bad_limits(limit):
    """A limit is a budget, and is named when it is none."""
    with pytest.raises(ParameterError, match="limit="):
        sp.Ledger(limit=limit)


def test_bad_unit():
    """A ledger knows its unit from the start."""
    with pytest.raises(ParameterError, match="unit="):
        sp.Ledger(unit="person")


def test_brands_cost_nothing_and_stay():
    """What voids the guarantee has no epsilon, even on a full account, and cannot be taken off."""
    ledger = sp.Ledger(limit=1)
    ledger.charge(counts(1))
    ledger.brand(NotPrivate(note="bounds were read off the data"))
    ledger.brand(UnsafeEntropy(note="seeded"))
    assert ledger.spent == 1
    assert [type(brand) for brand in brands(ledger.events)] == [NotPrivate, UnsafeEntropy]
    with pytest.raises(AttributeError):
        ledger.events.remove(ledger.events[1])


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_events_survive_json(event):
    """Every kind of event reads back as itself, fractions exactly."""
    assert event_from_dict(json.loads(json.dumps(event_to_dict(event)))) == event


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_events_are_frozen(event):
    """An entry cannot be rewritten."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.note = "nothing happened"


def test_totals_count_charges_only():
    """The sum of a mixed list is the sum of its charges."""
    assert total_epsilon(EVENTS) == Fraction(1, 3) + Fraction(2, 7)
    assert total_epsilon([]) == 0
    assert brands(EVENTS) == EVENTS[2:]


def test_repr_shows_the_account():
    """The repr tells unit, spent, limit and number of events."""
    ledger = sp.Ledger(limit=2, unit="add-remove")
    ledger.charge(counts("0.5"))
    assert repr(ledger) == "Ledger(unit='add-remove', spent 1/2 of 2, 1 events)"


def test_threads_cannot_overspend():
    """Checking and recording are one step, also when many threads charge at once."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(50):
            ledger = sp.Ledger(limit=1)

            def spend(ledger=ledger) -> None:
                for _ in range(4):
                    with contextlib.suppress(BudgetError):
                        ledger.charge(counts("0.3"))

            threads = [threading.Thread(target=spend) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert ledger.spent == Fraction(9, 10)
    finally:
        sys.setswitchinterval(interval)
