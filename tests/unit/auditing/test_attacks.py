"""Attacks on rows: halves of equal size, charged fits, a membership attack with power, and no private value told."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import InputError, MissingExtraError, ParameterError
from spinney_audit import attacks
from spinney_audit.attacks import Attack, _compared, _halves, _membership

SCHEMA = sp.Schema({"x": sp.Real(0, 1), "kind": sp.Category(["a", "b"])})


def rows(n: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({"x": rng.random(n), "kind": rng.choice(["a", "b"], n)})


def test_halves_are_equal_and_share_no_row():
    """Also where the control is larger than the table: unequal sizes would read as a leak."""
    rng = np.random.default_rng(1)
    table = pa.table({"x": np.arange(201)})
    fitted, others = _halves(table, None, rng)
    assert fitted.num_rows == others.num_rows == 100
    assert not set(fitted["x"].to_pylist()) & set(others["x"].to_pylist())
    fitted, others = _halves(table, pa.table({"x": np.arange(1000)}), rng)
    assert fitted.num_rows == others.num_rows == 201
    with pytest.raises(InputError, match="at least"):
        _halves(table.slice(0, 20), None, rng)


def test_membership_finds_copies_and_nothing_else():
    """Rows that were copied are told from others; rows of the same law are not."""
    inside, outside, fresh = rows(400, 1), rows(400, 2), rows(400, 3)
    copied = _membership(inside, inside, outside)
    assert copied.succeeds
    assert copied.excess > 0.4
    assert not _membership(inside, fresh, outside).succeeds


def test_intervals_of_a_difference_cover():
    """Of two equal rates the interval misses 0 in at most 5 % of draws."""
    rng = np.random.default_rng(4)
    draws = rng.binomial(300, 0.3, (2000, 2)) / 300
    missed = sum(not (one.excess_low <= 0 <= one.excess_high) for one in (_compared("", 300, a, b) for a, b in draws))
    assert missed < 0.07 * 2000


def test_the_fit_is_charged_and_its_figures_are_marked(monkeypatch):
    """A fit that attacks is a fit: the account has its charge. What is said begins with for whom it is."""
    monkeypatch.setattr(attacks, "_by_anonymeter", lambda *_: [Attack("linkage", 100, 0.1, 0.1, 0.0, -0.1, 0.1)])
    ledger = sp.Ledger(limit=2, delta="1e-5")
    found = attacks.attack(rows(2000), SCHEMA, epsilon="0.5", ledger=ledger, anonymeter=sys.executable, seed=1)
    assert float(ledger.spent) == 0.5
    assert str(found).startswith("For the holder of the private table only")
    assert found.to_dict()["not_private"]
    assert [one.name for one in found.attacks] == ["linkage", "membership"]
    assert found.n_rows == 1000
    assert found.is_charged
    assert "charged to the account" in str(found)
    alone = attacks.attack(rows(2000), SCHEMA, epsilon="0.5", anonymeter=sys.executable, seed=1)
    assert "charged to no account" in str(alone)


def test_a_python_without_anonymeter_is_named_before_anything_is_said_of_rows():
    """What the other process says may quote private values: only its status is told."""
    with pytest.raises(MissingExtraError, match="status 1"):
        attacks._by_anonymeter(sys.executable, [rows(3)] * 3, {"names": ["x"], "n_attacks": 1, "seed": 1})
    with pytest.raises(ParameterError, match="cannot be run"):
        attacks._by_anonymeter("/nowhere/python", [rows(3)] * 3, {"names": ["x"], "n_attacks": 1, "seed": 1})


def test_persons_are_refused():
    """Attacks know rows only."""
    schema = sp.Schema({"id": sp.Identifier(), "x": sp.Real(0, 1)}, person="id", most_rows=3)
    with pytest.raises(ParameterError, match="without person"):
        attacks.attack(rows(10), schema, anonymeter=sys.executable)
