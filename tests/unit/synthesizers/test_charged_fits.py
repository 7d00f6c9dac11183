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
    assert "epsilon=2 was charged to the ledger, and nothing was released" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_persons_too(tmp_path: object) -> None:
    """A fit of persons names the file of the ledger that it charged."""
    path = f"{tmp_path}/ledger.json"
    sp.Ledger.create(path, limit=3, delta="1e-5", unit="replace-one-person")
    with mock.patch.object(linked, "grow_people", side_effect=MemoryError()), pytest.raises(InputError) as caught:
        sp.LinkedSynthesizer(2, "1e-6").fit(shop(), TABLES, ledger=path)
    assert f"out of memory while the rows were counted; epsilon=2 was charged to {path!r}" in str(caught.value)


def test_nothing_is_told_where_nothing_was_charged() -> None:
    """Errors before the charge, and those of fits without a ledger, are as they were."""
    ledger = sp.Ledger(limit=3, delta="1e-5")
    with mock.patch.object(forest, "PrepaidMechanisms", side_effect=InputError("early")):
        with pytest.raises(InputError, match=r"^early$"):
            sp.ForestSynthesizer(2, "1e-6").fit(TABLE, SCHEMA, ledger=ledger)
        with pytest.raises(InputError, match=r"^early$"):
            sp.ForestSynthesizer(2, "1e-6").fit(TABLE, SCHEMA)
    assert ledger.spent == 0
