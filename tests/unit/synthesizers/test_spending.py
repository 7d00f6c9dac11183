"""Spending: asked for whole before rows are read, charged before noise meets a count, exact to the last digit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import spinney as sp
from spinney.errors import BudgetError, InputError, ParameterError
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.privacy.mechanisms import Charge, DiscreteLaplaceCounts, LeafMoments, SplitDecisions, decimal
from spinney.tables import frames
from spinney.tables.engines import memory
from spinney.tree import kdtree, moments
from support.in_one_test import in_one_test

MODELS = {
    "moments": sp.KDTreeSynthesizer("0.1"),
    "moments, share": sp.KDTreeSynthesizer("1/3", tree_share="1/7"),
    "moments without decisions": sp.KDTreeSynthesizer("0.1", max_depth=3),
    "bins": sp.KDTreeSynthesizer("0.1", moments=False),
    "bins, share": sp.KDTreeSynthesizer("1/3", moments=False, tree_share="1/7"),
    "bins without decisions": sp.KDTreeSynthesizer("0.1", moments=False, max_depth=0),
    "paper": sp.PaperTreeSynthesizer("0.1", h=3, h_prime=9),
    "grid": sp.GridSynthesizer("0.1"),
    "grid, add-remove": sp.GridSynthesizer("0.7", unit="add-remove"),
}
FORESTS = {
    "forest": sp.ForestSynthesizer("0.1"),
    "forest, pure": sp.ForestSynthesizer("1/3", 0),
    "forest, target": sp.ForestSynthesizer("0.7", target="y", unit="add-remove"),
    "forest, high": sp.ForestSynthesizer("2", quality="high"),
}
every_model = pytest.mark.parametrize("model", (MODELS | FORESTS).values(), ids=MODELS | FORESTS)
each_forest = pytest.mark.parametrize("model", FORESTS.values(), ids=FORESTS)
each_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
each_leaf = pytest.mark.parametrize("has_moments", [True, False], ids=["moments", "bins"])


@every_model
@in_one_test("bounds", ["stated", "private"])
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


@every_model
@in_one_test("bounds", ["stated", "private"])
def test_no_randomness_is_drawn_before_the_charge(model, bounds, square):
    """Cells may be counted before the charge; noise never meets them before it is on the ledger."""
    points, schema = square
    if bounds == "private":
        schema = sp.Schema({"x": sp.Real(bounds="private"), "y": sp.Real(0, 1)})
    model = type(model)(**(model.get_params() | {"epsilon": 3}))
    ledger = sp.Ledger(limit=3, delta="0.1", unit=model.unit)
    spent: list[Fraction] = []

    class Watched(sp.UnsafeSeededEntropy):
        def words(self, n):
            spent.append(ledger.spent)
            return super().words(n)

    model.fit(points, schema, ledger=ledger, entropy=Watched(1))
    assert spent[0] > 0, "bounds and class sizes have charges of their own, before the rest"
    assert spent[-1] == ledger.spent == 3
    assert spent == sorted(spent)
    if bounds == "stated" and getattr(model, "target", None) is None:
        rows = {Fraction(3, 100)} if model.unit == "add-remove" else set()  # their count is bought first
        assert set(spent) == {Fraction(3)} | rows


@each_leaf
def test_the_ledger_says_what_was_bought(square, has_moments):
    """Decisions and leaves are charged apart, with their shares, noise and sensitivity."""
    model = sp.KDTreeSynthesizer(1, tree_share="0.25", max_depth=10, moments=has_moments).fit(*square)
    decisions, leaves = model.ledger_.events
    assert isinstance(decisions, SplitDecisions)
    levels = 6 if has_moments else 10
    assert (decisions.epsilon, decisions.levels, decisions.rule) == (Fraction(1, 4), levels, "privtree")
    assert (decisions.rate, decisions.decay) == (model.plan_.decision_rate, model.plan_.decay)
    assert (decisions.stage, decisions.times) == ("splits", 1)
    counts = DiscreteLaplaceCounts(Fraction(3, 4), sensitivity=2, note=leaves.note, stage="leaves", times=1)
    sums = LeafMoments(Fraction(3, 4), sensitivity=2, note=leaves.note, stage="leaves")
    assert leaves == (sums if has_moments else counts)
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
    with pytest.raises(InputError, match=r"unexpected OSError .*; epsilon=1 was charged to the ledger"):
        sp.KDTreeSynthesizer(1, moments=has_moments).fit(*square, ledger=ledger, entropy=Broken())
    assert ledger.spent == 1


@each_leaf
def test_a_shared_ledger_blocks_the_second_release(square, monkeypatch, has_moments):
    """Two releases share one limit; the one that does not fit reads nothing."""
    ledger = sp.Ledger(limit="1.5")
    sp.KDTreeSynthesizer(1, moments=has_moments).fit(*square, ledger=ledger)
    events = ledger.events
    monkeypatch.setattr(memory, "count_cells", None)
    for model in (sp.KDTreeSynthesizer(1, moments=has_moments), sp.GridSynthesizer("0.500000001")):
        with pytest.raises(BudgetError, match=r"1 of 1\.5 is spent"):
            model.fit(*square, ledger=ledger)
    assert ledger.events == events
    monkeypatch.undo()
    second = sp.GridSynthesizer("0.5").fit(*square, ledger=ledger)
    assert ledger.remaining == 0
    # Each card lists its own release; the ledger lists both.
    assert second.card_.epsilon == Fraction(1, 2)
    assert ledger.events == (*events, *second.card_.events)


@pytest.mark.parametrize("kind", [sp.KDTreeSynthesizer, sp.ForestSynthesizer])
def test_a_ledger_in_another_unit_is_refused(square, kind):
    """Budgets under different units do not add."""
    ledger = sp.Ledger(limit=5, unit="add-remove")
    with pytest.raises(ParameterError, match="unit='replace-one' does not match"):
        kind(1).fit(*square, ledger=ledger)
    assert ledger.events == ()


# ------------------------------------------------------------------------------------------------------ the forest


@each_forest
def test_a_forest_pays_before_it_counts(model, square, monkeypatch):
    """Whenever cells or states are counted, what pays for it is on the shared ledger: classes first, then all else."""
    ledger = sp.Ledger(limit=3, delta="1e-5", unit=model.unit)
    seen = []

    def watched(function):
        def spy(*arguments, **options):
            seen.append((function.__name__, ledger.spent))
            return function(*arguments, **options)

        return spy

    monkeypatch.setattr(memory, "count_cells", watched(memory.count_cells))
    monkeypatch.setattr(memory, "state_rows", watched(memory.state_rows))
    schema = sp.Schema({"x": sp.Real(0, 1), "y": sp.Integer(0, 1)})
    model.fit(np.floor(square[0] * [10, 2]) / [10, 1], schema, ledger=ledger)
    epsilon = Fraction(str(model.epsilon))
    rows = epsilon / 100 if model.unit == "add-remove" else 0
    before = [rows + (epsilon - rows) / 25] if model.target else []
    assert [spent for _, spent in seen] == before + [epsilon] * (len(seen) - len(before))
    assert sum(name == "count_cells" for name, _ in seen) == 2
    assert ("state_rows", epsilon) in seen or model.design_.structure in ("independent", "uniform")


@each_forest
def test_a_forest_that_is_refused_reads_nothing(model, square, monkeypatch):
    """With too little left, in epsilon or in delta, not a row is read and nothing is charged."""

    def refuse(self, name):
        raise AssertionError("a row was read")

    monkeypatch.setattr(frames.Table, "physical", refuse)
    poor = [sp.Ledger(limit="0.09", delta="1e-5", unit=model.unit)]
    if model.delta:
        poor += [sp.Ledger(limit=3, delta="1e-6", unit=model.unit), sp.Ledger(limit=3, unit=model.unit)]
    for ledger in poor:
        with pytest.raises(BudgetError, match=r"does not fit|delta"):
            model.fit(*square, ledger=ledger)
        assert ledger.events == ()


@each_forest
@pytest.mark.parametrize("place", ["noisy_counts", "ranges", "choice"])
def test_a_forest_that_crashes_stays_paid_for(model, square, monkeypatch, place):
    """Wherever in the middle a fit breaks off, the whole plan is on the ledger, and no model is left behind."""

    def crash(*_, **__):
        raise OSError("the power is gone")

    monkeypatch.setattr(PrepaidMechanisms, place, crash)
    rich = type(model)(**(model.get_params() | {"epsilon": 3, "target": None}))
    schema = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1), "z": sp.Boolean()})
    table = np.column_stack([square[0], square[0][:, 0] > 0.3])
    ledger = sp.Ledger(limit=3, delta="1e-5", unit=model.unit)
    with pytest.raises(InputError) as caught:
        rich.fit(table, schema, ledger=ledger)
    delta = f" with delta={decimal(ledger.spent_delta)}" if ledger.spent_delta else ""
    assert f"unexpected OSError while the rows were counted; epsilon=3{delta} was charged to" in str(caught.value)
    assert ledger.spent == 3
    assert not hasattr(rich, "release_")


@pytest.mark.parametrize("delta", ["1e-5", 0])
def test_classes_that_crash_stay_paid_for(square, delta):
    """The sizes of a target's classes are charged before they are counted, and nothing else is by then."""

    class Broken:
        is_unsafe = False

        def words(self, n):
            raise OSError("no randomness today")

    ledger = sp.Ledger(limit=1, delta="1e-5")
    schema = sp.Schema({"x": sp.Real(0, 1), "y": sp.Boolean()})
    with pytest.raises(InputError, match=r"unexpected OSError .*; epsilon=0.04 was charged to the ledger"):
        sp.ForestSynthesizer(1, delta, target="y").fit(np.round(square[0]), schema, ledger=ledger, entropy=Broken())
    assert ledger.spent == Fraction(1, 25)
    assert ledger.spent_delta == 0


@pytest.mark.parametrize("epsilon", ["1e-5", "1000000"])
@pytest.mark.parametrize("delta", ["1e-5", "1e-10", 0])
def test_forests_of_extreme_budgets_work(square, epsilon, delta):
    """With next to nothing a forest measures nothing and costs nothing; with next to no noise it shows the table."""
    model = sp.ForestSynthesizer(epsilon, delta).fit(*square)
    if epsilon == "1e-5":
        assert model.design_.structure == "uniform"
        assert model.ledger_.spent == 0
    else:
        assert model.ledger_.spent == Fraction(epsilon)
        assert np.abs(np.sort(model.sample(2000, seed=1), axis=0) - np.sort(square[0], axis=0)).mean() < 0.002


def test_a_fit_without_a_ledger_gets_one_of_its_own(square):
    """The default ledger is limited to the release's own epsilon."""
    model = sp.KDTreeSynthesizer("0.3").fit(*square)
    assert model.ledger_.limit == Fraction(3, 10)


@each_model
def test_released_counts_pass_the_threshold(model, square):
    """No bin is released with less than the threshold, and bins are disjoint and in order."""
    threshold = "t" if isinstance(model, sp.PaperTreeSynthesizer) else "threshold"
    bins = type(model)(**(model.get_params() | {"epsilon": 2, threshold: 7})).fit(*square).release_.bins
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
