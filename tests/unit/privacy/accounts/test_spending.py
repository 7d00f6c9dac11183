"""What many releases cost together: less than their sum where they are Gaussian, and shown beside it."""

from __future__ import annotations

from fractions import Fraction

import pytest

import spinney as sp
from spinney.errors import BudgetError
from spinney.privacy.accounts.spending import composed_together
from spinney.privacy.budget import Unit
from spinney.privacy.composition import GaussianVector, composed_delta
from spinney.privacy.ledger import ComposedRelease, DiscreteLaplaceCounts
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
