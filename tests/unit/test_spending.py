"""Spending: asked for whole before rows are read, charged before counts are touched, exact to the last digit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import spinney as sp
from spinney.errors import BudgetError, ParameterError
from spinney.partition import kdtree, moments
from spinney.privacy.ledger import Charge, DiscreteLaplaceCounts, LeafMoments, SplitDecisions
from spinney.synthesizers import base

MODELS = {
    "moments": sp.KDTreeSynthesizer("0.1"),
    "moments, share": sp.KDTreeSynthesizer("1/3", tree_share="1/7"),
    "moments without decisions": sp.KDTreeSynthesizer("0.1", fixed_depth=4, max_depth=4),
    "bins": sp.KDTreeSynthesizer("0.1", moments=False),
    "bins, share": sp.KDTreeSynthesizer("1/3", moments=False, tree_share="1/7"),
    "bins without decisions": sp.KDTreeSynthesizer("0.1", moments=False, fixed_depth=4, max_depth=4),
    "paper": sp.KDTreeSynthesizer("0.1", rule="paper", fixed_depth=3, max_depth=9),
    "grid": sp.GridSynthesizer("0.1"),
    "grid, add-remove": sp.GridSynthesizer("0.7", unit="add-remove"),
}
each_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
each_leaf = pytest.mark.parametrize("has_moments", [True, False], ids=["moments", "bins"])


@each_model
@pytest.mark.parametrize("bounds", ["stated", "private"])
def test_charges_add_up_to_epsilon_exactly(model, bounds, square):
    """Bounds, decisions and counts together cost what was asked, as fractions."""
    points, schema = square
    if bounds == "private":
        schema = sp.Schema({"x": sp.Real(bounds="private"), "y": sp.Real(0, 1)})
        model = type(model)(**(model.get_params() | {"epsilon": 3}))
    model.fit(points, schema)
    epsilon = Fraction(str(model.epsilon))
    assert model.ledger_.spent == epsilon
    assert model.ledger_.remaining == 0
    assert model.card_.epsilon == epsilon
    assert sum(event.epsilon for event in model.card_.events if isinstance(event, Charge)) == epsilon


@each_leaf
def test_the_ledger_says_what_was_bought(square, has_moments):
    """Decisions and leaves are charged apart, with their shares, noise and sensitivity."""
    model = sp.KDTreeSynthesizer(1, tree_share="0.25", fixed_depth=0, max_depth=10, moments=has_moments).fit(*square)
    decisions, leaves = model.ledger_.events
    assert isinstance(decisions, SplitDecisions)
    assert (decisions.epsilon, decisions.levels, decisions.rule) == (Fraction(1, 4), 10, "privtree")
    assert decisions.rate == model.plan_.decision_rate
    kind = LeafMoments if has_moments else DiscreteLaplaceCounts
    assert leaves == kind(Fraction(3, 4), sensitivity=2, note=leaves.note)
    assert model.plan_.count_rate == Fraction(3, 8)


@each_leaf
def test_counts_are_paid_for_before_they_are_touched(square, monkeypatch, has_moments):
    """When growth begins, the whole release is on the ledger already."""
    ledger = sp.Ledger(limit=1)
    seen = []
    mechanism, name = (moments, "grow_leaves") if has_moments else (kdtree, "_grow")
    grow = getattr(mechanism, name)

    def spy(*arguments):
        seen.append(ledger.spent)
        return grow(*arguments)

    monkeypatch.setattr(mechanism, name, spy)
    sp.KDTreeSynthesizer(1, moments=has_moments).fit(*square, ledger=ledger)
    assert seen == [1]


@each_leaf
def test_a_crash_wastes_budget_but_never_hides_it(square, has_moments):
    """If the noise fails, what was charged stays charged."""

    class Broken:
        is_unsafe = False

        def words(self, n):
            raise OSError("no randomness today")

    ledger = sp.Ledger(limit=1)
    with pytest.raises(OSError, match="no randomness"):
        sp.KDTreeSynthesizer(1, moments=has_moments).fit(*square, ledger=ledger, entropy=Broken())
    assert ledger.spent == 1


@each_leaf
def test_a_shared_ledger_blocks_the_second_release(square, monkeypatch, has_moments):
    """Two releases share one limit; the one that does not fit reads nothing."""
    ledger = sp.Ledger(limit="1.5")
    sp.KDTreeSynthesizer(1, moments=has_moments).fit(*square, ledger=ledger)
    events = ledger.events
    monkeypatch.setattr(base, "count_cells", None)
    for model in (sp.KDTreeSynthesizer(1, moments=has_moments), sp.GridSynthesizer("0.500000001")):
        with pytest.raises(BudgetError, match="1 of 3/2 is spent"):
            model.fit(*square, ledger=ledger)
    assert ledger.events == events
    monkeypatch.undo()
    second = sp.GridSynthesizer("0.5").fit(*square, ledger=ledger)
    assert ledger.remaining == 0
    # Each card lists its own release; the ledger lists both.
    assert second.card_.epsilon == Fraction(1, 2)
    assert ledger.events == (*events, *second.card_.events)


def test_a_ledger_in_another_unit_is_refused(square):
    """Budgets under different units do not add."""
    ledger = sp.Ledger(limit=5, unit="add-remove")
    with pytest.raises(ParameterError, match="unit='replace-one' does not match"):
        sp.KDTreeSynthesizer(1).fit(*square, ledger=ledger)
    assert ledger.events == ()


def test_a_fit_without_a_ledger_gets_one_of_its_own(square):
    """The default ledger is limited to the release's own epsilon."""
    model = sp.KDTreeSynthesizer("0.3").fit(*square)
    assert model.ledger_.limit == Fraction(3, 10)


@each_model
def test_released_counts_pass_the_threshold(model, square):
    """No bin is released with less than the threshold, and bins are disjoint and in order."""
    bins = type(model)(**(model.get_params() | {"epsilon": 2, "threshold": 7})).fit(*square).release_.bins
    assert len(bins) > 0
    assert bins.noisy_counts.min() >= 7
    codes = bins.codes[:, 0].tolist()
    sizes = [2 ** (64 - depth) for depth in bins.depths.tolist()]
    assert all(code + size <= following for code, size, following in zip(codes, sizes, codes[1:], strict=False))


@pytest.mark.parametrize("epsilon", ["1e-9", "1000000"])
def test_extreme_budgets_work(square, epsilon):
    """At both ends of the allowed range a release is made, with next to nothing and with next to no noise."""
    points, schema = square
    trees = sp.KDTreeSynthesizer(epsilon), sp.KDTreeSynthesizer(epsilon, moments=False)
    for model in (*trees, sp.GridSynthesizer(epsilon, bins=4, threshold=1)):
        model.fit(points, schema)
        assert model.ledger_.spent == Fraction(epsilon)
    if epsilon == "1000000":
        true_counts = np.histogram2d(points[:, 0], points[:, 1], bins=4, range=((0, 1), (0, 1)))[0]
        assert sorted(model.release_.bins.noisy_counts) == sorted(true_counts[true_counts > 0].astype(int))
