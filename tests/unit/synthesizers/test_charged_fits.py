"""Errors of a fit that come after its charge say what was paid, and to which ledger."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

import spinney as sp
from spinney.errors import InputError
from spinney.synthesizers import forest, linked
from support.small_people import TABLES, shop

TABLE = np.column_stack([np.arange(200.0) % 7, np.arange(200.0) % 3])
SCHEMA = sp.Schema({"x": sp.Integer(0, 6), "y": sp.Integer(0, 2)})


@pytest.mark.parametrize("problem", [InputError("the table changed"), MemoryError(), ZeroDivisionError("secret 17")])
def test_a_forest_that_fails_after_its_charge_says_so(problem: Exception) -> None:
    """Whoever reads the error knows that budget is gone; what an unexpected error says may quote rows: left out."""
    ledger = sp.Ledger(limit=3, delta="1e-5")
    with mock.patch.object(forest, "grow", side_effect=problem), pytest.raises(InputError) as caught:
        sp.ForestSynthesizer(2, "1e-6").fit(TABLE, SCHEMA, ledger=ledger)
    assert ledger.spent == 2
    assert "epsilon=2 with delta=1e-06 was charged to the ledger, and nothing was released" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_persons_too(tmp_path: object) -> None:
    """A fit of persons names the file of the ledger that it charged."""
    path = f"{tmp_path}/ledger.json"
    sp.Ledger.create(path, limit=3, delta="1e-5", unit="replace-one-person")
    with mock.patch.object(linked, "grow_people", side_effect=MemoryError()), pytest.raises(InputError) as caught:
        sp.LinkedSynthesizer(2, "1e-6").fit(shop(), TABLES, ledger=path)
    assert (
        f"out of memory while the rows were counted; epsilon=2 with delta=1e-06 was charged to {path!r} (entry 3)"
        in str(caught.value)
    )


def test_a_fit_without_a_ledger_says_that_its_budget_is_spent() -> None:
    """No record has it, and whoever reads the error is the only one who can keep it in mind."""
    with mock.patch.object(forest, "grow", side_effect=MemoryError()), pytest.raises(InputError) as caught:
        sp.ForestSynthesizer(2, "1e-6").fit(TABLE, SCHEMA)
    assert "epsilon=2 with delta=1e-06 was spent (no ledger was given, so no record has it)" in str(caught.value)
    with (
        mock.patch.object(forest, "grow", side_effect=KeyboardInterrupt()),
        pytest.raises(KeyboardInterrupt) as stopped,
    ):
        sp.ForestSynthesizer(2, "1e-6").fit(TABLE, SCHEMA, ledger=False)
    assert "epsilon=2 with delta=1e-06 was spent" in stopped.value.__notes__[0]


def test_the_entry_of_the_charge_is_named(tmp_path: object) -> None:
    """Of two fits that fail, each names its own entry of the ledger, and the ledger says that they failed."""
    path = f"{tmp_path}/people.ledger"
    sp.Ledger.create(path, limit=3, delta="1e-5")
    numbers = []
    for _ in range(2):
        with mock.patch.object(forest, "grow", side_effect=MemoryError()), pytest.raises(InputError) as caught:
            sp.ForestSynthesizer(1, "1e-6").fit(TABLE, SCHEMA, ledger=path)
        numbers.append(int(str(caught.value).partition("(entry ")[2].partition(")")[0]))
    assert numbers == [charge.number for charge in sp.Ledger.open(path).charges]
    assert [charge.error for charge in sp.Ledger.open(path).charges] == ["MemoryError", "MemoryError"]


def test_a_charge_that_the_books_of_the_fit_do_not_know_yet_is_told(tmp_path: object) -> None:
    """An interruption right after the account was charged: the account has it on record, and the message says so."""
    path = f"{tmp_path}/people.ledger"
    sp.Ledger.create(path, limit=3, delta="1e-5")
    interrupted = mock.patch.object(sp.Ledger, "_record", side_effect=KeyboardInterrupt())
    with interrupted, pytest.raises(KeyboardInterrupt) as stopped:
        sp.ForestSynthesizer(2, "1e-6").fit(TABLE, SCHEMA, ledger=path)
    assert sp.Ledger.open(path).spent == 2
    assert "epsilon=2 with delta=1e-06 was charged to" in stopped.value.__notes__[0]


def test_rows_that_cannot_be_drawn_in_the_same_call_say_what_was_charged() -> None:
    """`synthesize` hands out no model, so an error of its rows loses the release."""
    ledger = sp.Ledger(limit=3, delta="1e-5")
    with (
        mock.patch.object(sp.ForestSynthesizer, "sample", side_effect=MemoryError()),
        pytest.raises(InputError) as lost,
    ):
        sp.synthesize(TABLE, SCHEMA, epsilon=2, delta="1e-6", ledger=ledger, method="forest")
    assert "epsilon=2 with delta=1e-06 was charged to the ledger, and its release is lost" in str(lost.value)


def test_nothing_is_told_where_nothing_was_charged() -> None:
    """Errors before the charge are as they were, with a ledger and without."""
    ledger = sp.Ledger(limit=3, delta="1e-5")
    with mock.patch.object(forest, "PrepaidMechanisms", side_effect=InputError("early")):
        with pytest.raises(InputError, match=r"^early$"):
            sp.ForestSynthesizer(2, "1e-6").fit(TABLE, SCHEMA, ledger=ledger)
        with pytest.raises(InputError, match=r"^early$"):
            sp.ForestSynthesizer(2, "1e-6").fit(TABLE, SCHEMA)
    assert ledger.spent == 0
