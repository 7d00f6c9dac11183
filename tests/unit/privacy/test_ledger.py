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
from spinney.privacy.mechanisms import (
    DiscreteGaussianVector,
    DiscreteLaplaceCounts,
    NotPrivate,
    Selection,
    SplitDecisions,
    UnsafeEntropy,
    brands,
    event_from_dict,
    event_line,
    event_to_dict,
    total_delta,
    total_epsilon,
)


def counts(epsilon) -> DiscreteLaplaceCounts:
    return DiscreteLaplaceCounts(Fraction(epsilon), sensitivity=2, note="counts")


def sums(epsilon, delta) -> DiscreteGaussianVector:
    return DiscreteGaussianVector(Fraction(epsilon), Fraction(delta), Fraction(4), Fraction(100), note="sums")


EVENTS = [
    DiscreteLaplaceCounts(Fraction(1, 3), sensitivity=1, note="table: leaf counts"),
    SplitDecisions(Fraction(2, 7), rule="privtree", rate=Fraction(5, 4096), levels=40, note="table: split decisions"),
    NotPrivate(note="bounds were read off the data"),
    UnsafeEntropy(note="seeded"),
    DiscreteGaussianVector(Fraction(1, 7), Fraction(1, 10**6), Fraction(4, 3), Fraction(10**20, 7), note="features"),
    Selection(Fraction(1, 9), note="choices"),
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
    with pytest.raises(BudgetError, match=r"0.75 of 1 is spent"):
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
    assert total_epsilon(EVENTS) == Fraction(1, 3) + Fraction(2, 7) + Fraction(1, 7) + Fraction(1, 9)
    assert total_delta(EVENTS) == Fraction(1, 10**6)
    assert total_epsilon([]) == total_delta([]) == 0
    assert brands(EVENTS) == EVENTS[2:4]


def test_repr_shows_the_account():
    """The repr tells unit, spent, limit and number of events."""
    ledger = sp.Ledger(limit=2, unit="add-remove")
    ledger.charge(counts("0.5"))
    assert repr(ledger) == "Ledger(unit='add-remove', spent 1/2 of 2, 1 events)"


def test_a_line_of_the_account_shows_delta_where_there_is_one():
    """A pure charge is one number, an approximate one a pair, a brand a dash."""
    assert event_line(counts("0.5")).split() == ["0.5", "counts"]
    assert event_line(sums("0.5", "1e-6")).split() == ["(0.5,", "1e-06)", "sums"]
    assert event_line(UnsafeEntropy(note="seeded")).split() == ["-", "seeded"]


# ------------------------------------------------------------------------------------------------ delta


def test_an_account_is_pure_unless_it_was_opened_with_a_delta():
    """However much epsilon is left, the smallest delta is refused, and nothing is recorded."""
    ledger = sp.Ledger(limit=10)
    assert (ledger.delta_limit, ledger.spent_delta, ledger.remaining_delta) == (0, 0, 0)
    with pytest.raises(BudgetError, match=r"delta=1e-30 does not fit: the ledger is pure.*delta=0"):
        ledger.charge(sums(1, "1e-30"))
    assert ledger.events == ()
    ledger.charge(sums(1, 0))  # no delta is no delta, whatever the event
    assert ledger.spent == 1


def test_deltas_add_up_exactly_to_the_limit():
    """Three charges of a third fit; the hair beyond is refused while epsilon is left."""
    ledger = sp.Ledger(limit=10, delta="1e-6")
    for _ in range(3):
        ledger.charge(sums(1, Fraction(1, 3 * 10**6)))
    assert (ledger.spent, ledger.spent_delta, ledger.remaining_delta) == (3, Fraction(1, 10**6), 0)
    with pytest.raises(BudgetError, match="1e-06 of 1e-06 is spent"):
        ledger.charge(sums(1, Fraction(1, 10**40)))
    ledger.charge(counts(1))
    assert ledger.remaining == 6


def test_epsilon_still_has_its_limit():
    """TreewidthBudget for delta makes no room for epsilon; charges of one call count together."""
    ledger = sp.Ledger(limit=1, delta="0.5")
    with pytest.raises(BudgetError, match=r"epsilon=1\.2 does not fit"):
        ledger.charge(sums("0.6", "1e-6"), sums("0.6", "1e-6"))
    with pytest.raises(BudgetError, match=r"delta=0\.6 does not fit"):
        ledger.charge(sums("0.5", "0.3"), sums("0.5", "0.3"))
    assert ledger.events == ()


def test_an_account_without_a_limit_counts_delta_too():
    """No limit on epsilon is no limit on delta; a delta limit alone would promise nothing and is refused."""
    ledger = sp.Ledger()
    ledger.charge(sums(5, "0.9"), sums(5, "0.9"))
    assert (ledger.delta_limit, ledger.remaining_delta, ledger.spent_delta) == (None, None, Fraction(9, 5))
    with pytest.raises(ParameterError, match=r"delta=1e-6 needs a limit of epsilon"):
        sp.Ledger(delta="1e-6")


def test_delta_cannot_be_earned_back():
    """A negative delta would make room for more than the limit."""
    ledger = sp.Ledger(limit=1, delta="1e-6")
    with pytest.raises(BudgetError, match=r"delta=-1/10 is negative"):
        ledger.charge(sums("0.1", "-0.1"))
    assert ledger.events == ()


@pytest.mark.parametrize("delta", [1, -1, "abc", None, True, float("nan")])
def test_bad_delta_limits(delta):
    """A delta limit is a chance below 1, and is named when it is none."""
    with pytest.raises(ParameterError, match="delta="):
        sp.Ledger(limit=1, delta=delta)


def test_require_asks_for_delta_in_parents_too():
    """A release with a delta of its own inside a pure account is told before anything is charged."""
    pure, open_to_delta = sp.Ledger(limit=5), sp.Ledger(limit=5, delta="1e-5")
    for account in (pure, open_to_delta):
        books = sp.Ledger(limit=1, delta="1e-6", parent=account)
        books.require(Fraction(1), unit=Unit.REPLACE_ONE)
        if account is pure:
            with pytest.raises(BudgetError, match="delta="):
                books.require(Fraction(1), unit=Unit.REPLACE_ONE, delta=Fraction(1, 10**6))
            with pytest.raises(BudgetError, match="delta="):
                books.charge(sums(1, "1e-6"))
            assert books.events == account.events == ()
        else:
            books.require(Fraction(1), unit=Unit.REPLACE_ONE, delta=Fraction(1, 10**6))
            books.charge(sums(1, "1e-6"))
            assert books.spent_delta == account.spent_delta == Fraction(1, 10**6)


def test_repr_shows_delta_where_there_is_one():
    """A pure account does not speak of delta."""
    ledger = sp.Ledger(limit=2, delta="1e-5")
    ledger.charge(sums("0.5", "1e-6"))
    assert repr(ledger) == "Ledger(unit='replace-one', spent 1/2 of 2, delta 1e-06 of 1e-05, 1 events)"
    free = sp.Ledger()
    free.charge(sums("0.5", "1e-6"))
    assert repr(free) == "Ledger(unit='replace-one', spent 1/2, delta 1e-06, 1 events)"


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
