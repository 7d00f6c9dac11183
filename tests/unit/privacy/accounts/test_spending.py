"""What many releases cost together: less than their sum where they are Gaussian, and shown beside it."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest

import spinney as sp
from spinney.errors import BudgetError
from spinney.privacy.accounts.verifying import composed_together
from spinney.privacy.budget import Unit
from spinney.privacy.composition import composed_delta
from spinney.privacy.mechanisms import ComposedRelease, DiscreteLaplaceCounts, GaussianVector, TreeShapes
from support.command_line import spinney


def release(mean_squared="1/8", epsilon=2, delta="1e-5") -> ComposedRelease:
    part = GaussianVector(Fraction(mean_squared), "sums")
    return ComposedRelease(Fraction(epsilon), Fraction(delta), (part,), "forest")


def test_many_gaussians_cost_what_one_of_their_mean_costs():
    """Means add up in squares: the composed epsilon is that of one Gaussian, and is certified by composition itself."""
    together = composed_together([release()] * 8, Unit.REPLACE_ONE)
    assert together is not None
    assert (together.delta, together.n_composed) == (Fraction(8, 10**5), 8)
    assert together.epsilon < 16
    assert composed_delta([GaussianVector(Fraction(1), "one")], together.epsilon, Unit.REPLACE_ONE) <= together.delta
    less = together.epsilon * Fraction(97, 100)
    assert composed_delta([GaussianVector(Fraction(1), "one")], less, Unit.REPLACE_ONE) > together.delta


def test_pure_charges_are_added():
    alone = composed_together([release()] * 2, Unit.REPLACE_ONE)
    pure = DiscreteLaplaceCounts(Fraction(1, 3), 2, "n")
    both = composed_together([release(), pure, release()], Unit.REPLACE_ONE)
    assert alone is not None
    assert both is not None
    assert both.epsilon - alone.epsilon == Fraction(1, 3)
    assert composed_together([release(), pure], Unit.REPLACE_ONE) is None


def crafted(decay: int) -> ComposedRelease:
    """A charge that no fit makes: trees whose decisions are all near the cutoff, half a minute to compose."""
    part = TreeShapes(Fraction(1, 20) + Fraction(decay, 10**6), decay, 1024, 1, note="crafted")
    return ComposedRelease(Fraction(1), Fraction(1, 10**5), (part,), "forest")


def test_what_takes_too_long_is_not_worked_out_and_says_so(tmp_path, monkeypatch):
    """Two crafted charges: `show` says in words and as data that nothing was composed, `verify` names the entries."""
    path = tmp_path / "people.ledger"
    ledger = sp.Ledger.create(path, limit=10, delta="1e-3")
    with pytest.raises(BudgetError, match="times the work that composing may take"):
        ledger.charge(crafted(1))
    assert ledger.spent == 0
    monkeypatch.setattr("spinney.privacy.composition.check_parts", lambda *_: None)  # as one who writes the file would
    ledger.charge(crafted(1))
    ledger.charge(crafted(2))
    monkeypatch.undo()
    begun = time.process_time()
    assert composed_together(ledger.events, Unit.REPLACE_ONE).epsilon is None
    assert "together: not worked out" in spinney("ledger", "show", path).out
    assert spinney("ledger", "show", path, "--json").json["together"]["too_much_work"]
    run = spinney("ledger", "verify", path)
    assert run.status == 1
    assert "2 of 2 charges" in run.err
    assert "times the work that composing may take" in run.err
    assert time.process_time() - begun < 10


def test_many_kinds_of_parts_are_not_left_out_in_silence():
    """More kinds than are composed: the figure is missing, and that is told."""
    together = composed_together([release(f"1/{n}") for n in range(8, 150)], Unit.REPLACE_ONE)
    assert together is not None
    assert together.epsilon is None
    assert together.n_composed == 142


def test_a_fraction_of_hundreds_of_digits_is_not_printed_in_full(tmp_path):
    """`show` stays as wide as its words; documents hold the exact number."""
    path, long = tmp_path / "people.ledger", Fraction(10**390 + 1, 3 * 10**390)
    ledger = sp.Ledger.create(path, limit=10)
    ledger.charge(DiscreteLaplaceCounts(long, 2, "counts"))
    shown = spinney("ledger", "show", path)
    assert f"about 0.3333 (a fraction of {len(str(long))} characters)" in " ".join(shown.out.split())
    assert max(map(len, shown.out.splitlines())) < 250
    assert Fraction(spinney("ledger", "show", path, "--json").json["charges"][0]["epsilon"]) == long


def test_limits_are_held_to_the_sum(tmp_path):
    """The smaller figure is shown and grants nothing: releases that were chosen on the way may not be counted by it."""
    path = tmp_path / "people.ledger"
    ledger = sp.Ledger.create(path, limit=4, delta="1e-4")
    ledger.charge(release())
    ledger.charge(release())
    shown = spinney("ledger", path)
    assert "spent 4 of 4, 0 left" in shown.out
    assert "if all 2 composed releases were planned before the first" in shown.out
    assert Fraction(spinney("ledger", path, "--json").json["together"]["epsilon"]) < 4
    with pytest.raises(BudgetError):
        ledger.charge(release())
