"""What a privacy officer sees of a ledger: who decided what and why, and that nobody gets around a limit by a slip."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import pytest

import spinney as sp
from spinney.errors import BudgetError
from spinney.privacy.accounts.sqlite import SqliteStore
from spinney.privacy.ledger import DiscreteGaussianVector, DiscreteLaplaceCounts
from support.command_line import spinney


def counts(epsilon: str, note: str = "counts") -> DiscreteLaplaceCounts:
    return DiscreteLaplaceCounts(Fraction(epsilon), sensitivity=2, note=note)


def test_no_environment_variable_makes_another_user(tmp_path, monkeypatch):
    """Names in the environment change neither who asked nor who approves."""
    pwd = pytest.importorskip("pwd")
    path = tmp_path / "s.ledger"
    ledger = sp.Ledger.create(path, limit=1, approval=True)
    number = ledger.request("0.5", purpose="p")
    for name in ("USER", "LOGNAME", "USERNAME", "LNAME"):
        monkeypatch.setenv(name, "kim")
    run = spinney("ledger", "approve", path, number)
    assert run.status == 2
    assert "somebody else has to approve it" in run.err
    assert {entry.user for entry in sp.Ledger.open(path).entries} == {pwd.getpwuid(os.geteuid()).pw_name}


def test_a_user_without_a_name_is_a_number(tmp_path, monkeypatch):
    pytest.importorskip("pwd")
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_123)
    assert SqliteStore(tmp_path / "s.ledger").user() == "uid 4000123"


def test_who_is_over_the_limit_is_sent_to_those_who_raise_it(tmp_path: Path) -> None:
    """Nobody is told to open another ledger, which would be the way around the limit."""
    kept = sp.Ledger.create(tmp_path / "s.ledger", limit=1, delta="1e-6")
    vector = DiscreteGaussianVector(Fraction(1, 2), Fraction("1e-5"), Fraction(4), Fraction(100), note="sums")
    with pytest.raises(BudgetError, match=r"; ask for less, or have .*: spinney ledger raise LEDGER --limit \.\.\. "):
        kept.charge(counts("2"))
    with pytest.raises(BudgetError, match=r"; ask for less, or have .*: spinney ledger raise LEDGER --delta \.\.\. "):
        kept.charge(vector)
    with pytest.raises(BudgetError, match=r"; ask for less$"):
        sp.Ledger(limit=1).charge(counts("2"))
    with pytest.raises(BudgetError, match=r"; ask for less$"):
        sp.Ledger(limit=1, delta="1e-6").charge(vector)
    with pytest.raises(BudgetError, match=r"is pure.*spinney ledger raise LEDGER --delta"):
        sp.Ledger.create(tmp_path / "pure.ledger", limit=1).charge(vector)


def test_a_request_pays_for_the_purpose_that_was_approved(place):
    """Another purpose is refused, by the server too; where none is named, that of the request is on record."""
    place.create(limit=2, approval=True)
    number = place.open("ann").request("0.5", purpose="annual report")
    place.open("kim").approve(number)
    other = place.open("ann", request=number, purpose="marketing")
    with pytest.raises(BudgetError, match="is for the purpose 'annual report', and not for 'marketing'"):
        other.require(Fraction(1, 2), unit=other.unit)
    with pytest.raises(BudgetError, match="annual report"):
        other.charge(counts("0.5"))
    with pytest.raises(BudgetError, match="purpose"):
        other._record(counts("0.5"))  # what a client without any check of its own would send
    assert other.spent == 0
    place.open("ann", request=number).charge(counts("0.5"))
    (charge,) = place.open("kim").charges
    assert charge.purpose == "annual report"
