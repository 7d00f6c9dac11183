"""Designs, plans and prepaid mechanisms: what is worth measuring, shares that add up, and nothing handed out twice."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spinney as sp
from spinney.counting.counts import CellCounts
from spinney.errors import BudgetError, ParameterError
from spinney.forest.columns import release_classes
from spinney.forest.design import EFFORTS, design
from spinney.forest.plan import Shape, forest_plan
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.grid.axes import column_axis
from spinney.privacy.budget import Unit
from spinney.privacy.composition import composed_delta
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.mechanisms import ComposedRelease, GaussianTables, UnsafeEntropy
from spinney.release.card import plan_entries
from spinney.tables.open import open_source
from spinney.tree.bins import worst_path_loss
from support.small_forests import exact_prepaid

DELTA = Fraction(1, 10**5)
RICHEST = ["rounds", "tree", "target", "independent", "uniform"]
UNITS = pytest.mark.parametrize("unit", [Unit.REPLACE_ONE, Unit.ADD_REMOVE], ids=str)


def axes_of(n_columns, kind="mixed"):
    """Axes of as many columns: booleans, or every other one a number that needs a tree."""
    column = {"boolean": [sp.Boolean()], "mixed": [sp.Boolean(), sp.Real(0, 1)]}[kind]
    schema = sp.Schema({f"c{i}": column[i % len(column)] for i in range(n_columns)})
    return [column_axis(name, schema[name]) for name in schema]


def designed(axes=None, *, n_rows=10_000, epsilon="1", delta=DELTA, unit=Unit.REPLACE_ONE, **options):
    return design(
        axes_of(6) if axes is None else axes,
        n_rows=n_rows,
        epsilon=Fraction(epsilon),
        delta=Fraction(delta),
        unit=unit,
        **options,
    )


# ------------------------------------------------------------------------------------------------------ design


@pytest.mark.parametrize("delta", [DELTA, 0])
@pytest.mark.parametrize("target", [None, 0])
def test_less_is_measured_as_rows_and_budget_shrink(target, delta):
    """From rounds down to nothing, never back up, and every structure has its place."""
    options = {"delta": delta, "target": target, "effort": EFFORTS["high"]}
    wanted = [name for name in RICHEST if target is not None or name != "target"]
    by_rows = [designed(n_rows=round(10**5 / 1.3**k), **options).structure for k in range(40)]
    by_budget = [designed(epsilon=e, **options).structure for e in ("30", "3", "1", "0.1", "1/200")]
    for found in (by_rows, by_budget):
        places = [RICHEST.index(name) for name in found]
        assert places == sorted(places)
    # With a target, there may be no table too small for the pairs but not for the columns alone.
    assert set(wanted) - {"independent"} <= set(by_rows) <= set(wanted)
    assert target is not None or "independent" in by_rows
    assert by_budget[0] == "rounds"
    assert by_budget[-1] in ("independent", "uniform")


def test_rounds_are_for_high_quality():
    assert designed(n_rows=10**6).structure == "tree"
    assert designed(n_rows=10**6, effort=EFFORTS["high"]).structure == "rounds"


def test_two_columns_and_less():
    """A target and one other column are a pair; two columns without one, a tree of one edge; one column, itself."""
    assert designed(axes_of(2), target=0, effort=EFFORTS["high"]).structure == "target"
    assert designed(axes_of(2), effort=EFFORTS["high"]).structure == "tree"
    assert designed(axes_of(1), target=0).structure == "independent"
    assert designed(axes_of(1)).structure == "independent"


def test_columns_that_are_known_are_not_measured():
    """A list of one value needs no table; as a target it says nothing."""
    schema = sp.Schema({"a": sp.Category(["only"]), "b": sp.Boolean(), "c": sp.Boolean()})
    axes = [column_axis(name, schema[name]) for name in schema]
    plain = designed(axes)
    assert plain.measured == (1, 2)
    assert designed(axes, target=0).target is None
    assert designed(axes, target=1).free == (2,)
    known = designed(axes[:1], n_rows=5)
    assert known.measured == ()
    assert known.plan.charges == ()


def test_rare_classes_get_all_there_is():
    """Where the second largest class is a few deviations of noise, only what tells of it is measured."""
    common = designed(target=0, class_size=5000.0)
    rare = designed(target=0, class_size=20.0)
    assert common.structure == "tree"
    assert rare.structure == "target"
    assert rare.plan.noise_std("pairs") < common.plan.noise_std("pairs")
    assert common.looked_at == rare.looked_at == (0,)
    assert "one-way" in rare.plan.tables
    assert rare.plan.tables["one-way"].times == 5  # the target was counted before
    assert designed(target=0).plan.tables["one-way"].times == 6


@pytest.mark.parametrize(
    ("required", "n_choices"),
    [((), 5), (((0, 1),), 4), (((0, 1), (1, 2), (0, 2)), 3), (((0, 1), (2, 3), (4, 5)), 2)],
)
def test_required_pairs_need_no_choice(required, n_choices):
    """Pairs of rules come first; one that closes a circle saves no choice."""
    made = designed(required=required)
    assert made.structure == "tree"
    assert made.plan.choices["selection"].times == n_choices
    assert made.plan.tables["cliques"].times == 5
    assert made.required == required


def test_required_pairs_with_the_target_are_measured_anyway():
    made = designed(target=0, required=((0, 1), (2, 3)))
    assert made.plan.choices["selection"].times == 3
    assert made.plan.tables["pairs"].times == 5
    assert made.plan.tables["cliques"].times == 4


def test_states_are_as_many_as_rows_can_fill():
    """A power of two between 8 and 32 that does not shrink as rows grow."""
    found = [designed(n_rows=n).most_states for n in (300, 3000, 30_000, 3 * 10**5, 10**7)]
    assert found == sorted(found)
    assert set(found) <= {8, 16, 32}
    assert (found[0], found[-1]) == (8, 32)


# ------------------------------------------------------------------------------------------------------ plan


@st.composite
def shapes(draw):
    numbers = {
        "trees": draw(st.integers(0, 5)),
        "one-way": draw(st.integers(1, 9)),
        "spikes": draw(st.integers(0, 5)),
        "selection": draw(st.integers(0, 9)),
        "pairs": draw(st.integers(0, 9)),
        "cliques": draw(st.integers(0, 9)),
    }
    stages = [stage for stage, times in numbers.items() if times]
    parts = draw(st.lists(st.integers(1, 9), min_size=len(stages), max_size=len(stages)))
    shares = {stage: Fraction(part, sum(parts)) for stage, part in zip(stages, parts, strict=True)}
    return Shape(numbers, shares, {"trees": 12})


@settings(max_examples=25, derandomize=True, deadline=None)
@given(shapes(), st.sampled_from(["1/10", "1", "20"]), st.sampled_from([Unit.REPLACE_ONE, Unit.ADD_REMOVE]))
def test_a_pure_plan_costs_what_it_charges(shape, epsilon, unit):
    """Stage by stage: tables by rate, choices by range, trees by their certified worst case; together, epsilon."""
    plan = forest_plan(shape, epsilon=Fraction(epsilon), delta=Fraction(0), unit=unit)
    assert sum(charge.epsilon for charge in plan.charges) == Fraction(epsilon)
    spent = Fraction(0)
    for stage, noise in plan.tables.items():
        assert noise.times * noise.rate * unit.factor == Fraction(epsilon) * shape.shares[stage]
        spent += noise.times * noise.rate * unit.factor
    for choices in plan.choices.values():
        spent += choices.times * choices.each
    for trees in plan.trees.values():
        worst = worst_path_loss(trees.rate, trees.decay, trees.levels, unit)
        assert trees.times * float(worst) <= float(Fraction(epsilon) * shape.shares["trees"]) + 1e-12
        spent += Fraction(epsilon) * shape.shares["trees"]
    assert spent == Fraction(epsilon)
    assert (not plan.trees) == (shape.times["trees"] == 0)
    assert (not plan.choices) == (shape.times["selection"] == 0)


@settings(max_examples=8, derandomize=True, deadline=None)
@given(shapes(), st.sampled_from(["1/10", "1", "8"]), st.sampled_from([Unit.REPLACE_ONE, Unit.ADD_REMOVE]))
def test_a_composed_plan_is_certified_and_hardly_wastes(shape, epsilon, unit):
    """All parts together are within delta at epsilon; with a tenth less variance in the tables they are not."""
    plan = forest_plan(shape, epsilon=Fraction(epsilon), delta=DELTA, unit=unit)
    (charge,) = plan.charges
    assert isinstance(charge, ComposedRelease)
    assert (charge.epsilon, charge.delta) == (Fraction(epsilon), DELTA)
    assert composed_delta(charge.parts, Fraction(epsilon), unit) <= DELTA
    assert {part.note: part.times for part in charge.parts} == {
        stage: times for stage, times in shape.times.items() if times
    }
    for part in charge.parts:
        if isinstance(part, GaussianTables):
            assert plan.tables[part.note].variance == part.variance
    quieter = [
        GaussianTables(part.variance * Fraction(9, 10), part.times, part.note)
        if isinstance(part, GaussianTables)
        else part
        for part in charge.parts
    ]
    if sum(shape.shares[stage] for stage in plan.tables) > Fraction(1, 2):
        assert composed_delta(quieter, Fraction(epsilon), unit) > DELTA


@UNITS
@pytest.mark.parametrize("delta", [DELTA, Fraction(0)])
def test_shares_of_every_design_add_up(unit, delta):
    """Stages that a table does not have leave their share to the others."""
    for kind in ("boolean", "mixed"):
        for target in (None, 0):
            for n_rows in (10**6, 1000, 30):
                plan = designed(axes_of(5, kind), n_rows=n_rows, delta=delta, unit=unit, target=target).plan
                if plan.charges:
                    assert sum(charge.epsilon for charge in plan.charges) == 1
                    assert (not plan.trees) == (kind == "boolean")


def test_plans_say_what_they_are():
    plan = designed(target=0).plan
    described = plan_entries({"rule": "forest"}, plan.charges, plan.unit)
    assert described["rule"] == "forest"
    assert described["unit"] == "replace-one"
    assert described["pairs noise"] == round(plan.noise_std("pairs"), 3)
    assert described["decision noise scale"] == round(float(1 / plan.trees["trees"].rate), 3)


def test_nothing_to_measure_costs_nothing():
    plan = forest_plan(Shape({}, {}), epsilon=Fraction(1), delta=DELTA, unit=Unit.REPLACE_ONE)
    assert (plan.charges, plan.noise) == ((), {})


def test_budgets_beyond_all_accounting():
    """A budget so small that no noise can be accounted for measures nothing; a delta so small is refused by name."""
    assert designed(epsilon="1/1000000000", delta=Fraction(1, 10**10)).structure == "uniform"
    with pytest.raises(ParameterError, match="delta=1e-11 is not between 1e-10 and 1"):
        designed(delta=Fraction(1, 10**11))


# ------------------------------------------------------------------------------------------------------ prepaid

COUNTS = np.array([4, 0, 9], dtype=np.int64)


def line(n_bits):
    """Counts of an empty table on a line, and its ruler."""
    axis = column_axis("v", sp.Integer(0, 2**n_bits - 1))
    return CellCounts.from_codes(axis.lattice, np.zeros((0, 1), dtype=np.uint64)), axis.ruler


TAKE = {
    "one-way": lambda prepaid: prepaid.noisy_counts(COUNTS, "one-way"),
    "spikes": lambda prepaid: prepaid.noisy_counts(COUNTS, "spikes"),
    "pairs": lambda prepaid: prepaid.noisy_counts(COUNTS, "pairs"),
    "cliques": lambda prepaid: prepaid.noisy_counts(COUNTS, "cliques"),
    "trees": lambda prepaid: prepaid.ranges(*line(6), cutoff=2),
    "selection": lambda prepaid: prepaid.choice(COUNTS, sensitivity=1),
}
NUMBERS = {"n_trees": 1, "n_one_way": 2, "n_spikes": 1, "n_choices": 3, "n_pairs": 4, "n_cliques": 5}
PAID = {"trees": 1, "one-way": 2, "spikes": 1, "selection": 3, "pairs": 4, "cliques": 5}


@pytest.mark.parametrize("stage", TAKE)
def test_a_purse_hands_out_what_was_paid_for_and_no_more(stage):
    """As often as the plan says; the next time is refused, and other stages are not touched by it."""
    prepaid = exact_prepaid(**NUMBERS)
    for _ in range(PAID[stage]):
        TAKE[stage](prepaid)
    for _ in range(2):
        with pytest.raises(BudgetError, match=f"paid for no more of '{stage}'"):
            TAKE[stage](prepaid)
    for other, take in TAKE.items():
        if other != stage:
            take(prepaid)


@pytest.mark.parametrize("stage", TAKE)
def test_what_no_plan_has_cannot_be_had(stage):
    prepaid = exact_prepaid(**{name: int(key != stage) for name, key in zip(NUMBERS, PAID, strict=True)})
    with pytest.raises(BudgetError, match="paid for no more"):
        TAKE[stage](prepaid)
    with pytest.raises(BudgetError, match="paid for no more of 'miracles'"):
        prepaid.noisy_counts(COUNTS, "miracles")


def test_a_tree_deeper_than_paid_for_is_refused():
    """Levels are those of the ruler: a null flag costs nothing."""
    levels = line(6)[1].max_levels
    shape = Shape({"trees": 3, "one-way": 1}, {"trees": Fraction(1, 2), "one-way": Fraction(1, 2)}, {"trees": levels})
    plan = forest_plan(shape, epsilon=Fraction(1), delta=Fraction(0), unit=Unit.REPLACE_ONE)
    prepaid = PrepaidMechanisms(plan, sp.Ledger(), UnsafeSeededEntropy(0))
    prepaid.ranges(*line(6), cutoff=2)
    nullable = column_axis("v", sp.Integer(0, 63, nullable=True))
    prepaid.ranges(CellCounts.from_codes(nullable.lattice, np.zeros((0, 1), np.uint64)), nullable.ruler, cutoff=2)
    with pytest.raises(BudgetError, match=f"a tree of {levels + 1} levels is deeper than what was paid for"):
        prepaid.ranges(*line(7), cutoff=2)


@pytest.mark.parametrize("delta", [DELTA, Fraction(0)])
def test_opening_a_purse_pays_for_all_of_it(delta):
    """The whole charge, and the brand of a seed, are on the ledger before anything is taken; or nothing is."""
    plan = designed(delta=delta).plan
    ledger = sp.Ledger(limit=1, delta="1e-5")
    PrepaidMechanisms(plan, ledger, UnsafeSeededEntropy(0))
    assert ledger.spent == 1
    assert ledger.spent_delta == delta
    assert isinstance(ledger.events[-1], UnsafeEntropy)
    poor = sp.Ledger(limit="0.99", delta="1e-5")
    with pytest.raises(BudgetError):
        PrepaidMechanisms(plan, poor, UnsafeSeededEntropy(0))
    assert poor.events == ()


def test_a_purse_adds_the_noise_of_its_plan():
    """Over ten thousand counts, deviations are those of the stage, whatever the law."""
    for delta in (DELTA, Fraction(0)):
        prepaid = PrepaidMechanisms(
            designed(delta=delta, target=0).plan, sp.Ledger(limit=1, delta="1e-5"), UnsafeSeededEntropy(3)
        )
        for stage in ("one-way", "spikes", "pairs", "cliques"):
            noise = prepaid.noisy_counts(np.full(10_000, 50, dtype=np.int64), stage) - 50
            assert noise.std() / prepaid.plan.noise_std(stage) == pytest.approx(1, abs=0.06)
            assert abs(noise.mean()) < 4 * prepaid.plan.noise_std(stage) / 100


@pytest.mark.parametrize("unit", ["replace-one", "add-remove"])
def test_classes_get_the_noise_that_they_were_charged_for(unit):
    """Over ten thousand classes, all but one of them empty: of scale factor / epsilon, neither half nor twice that."""
    schema = sp.Schema({"kind": sp.Category([f"k{i}" for i in range(10_000)])})
    source = open_source(pa.table({"kind": ["k7"]}), schema)
    ledger = sp.Ledger(limit="0.1", unit=unit)
    epsilon = Fraction(1, 10)
    noisy = release_classes(
        source,
        column_axis("kind", schema["kind"]).lattice,
        epsilon=epsilon,
        ledger=ledger,
        entropy=UnsafeSeededEntropy(4),
    )
    assert ledger.spent == epsilon
    scale = Unit.parse(unit).factor / 0.1
    assert noisy.noisy_counts.std() / (2**0.5 * scale) == pytest.approx(1, abs=0.06)
    assert noisy.noise_std == pytest.approx(2**0.5 * scale)
    assert np.unique(noisy.noisy_counts).size > scale, "empty classes get noise like all others"


def table(n_rows):
    """Six columns, some of them numbers that need trees, `label` about the others."""
    rng = np.random.default_rng(0)
    label = rng.random(n_rows) < 0.4
    return pa.table(
        {
            "x": rng.normal(label, 1),
            "y": pa.array(rng.normal(0, 1, n_rows), mask=rng.random(n_rows) < 0.2),
            "n": rng.integers(0, 5, n_rows) + label,
            "start": rng.integers(0, 50, n_rows),
            "end": rng.integers(50, 100, n_rows),
            "label": label,
        }
    )


SCHEMA = sp.Schema(
    {
        "x": sp.Real(-9, 9),
        "y": sp.Real(-9, 9, nullable=True),
        "n": sp.Integer(0, 9),
        "start": sp.Integer(0, 100),
        "end": sp.Integer(0, 100),
        "label": sp.Boolean(),
    },
    rules=[sp.AtMost("start", "end")],
)


@pytest.mark.parametrize("delta", ["1e-5", 0])
@pytest.mark.parametrize(
    ("n_rows", "target", "quality", "structure"),
    [
        (5000, None, "high", "rounds"),
        (5000, "label", "high", "rounds"),
        (5000, "n", "high", "rounds"),
        (20_000, None, "fast", "tree"),
        (20_000, "label", "fast", "tree"),
        (20_000, "start", "fast", "tree"),
        (None, "label", "fast", "target"),
        (None, None, "fast", "independent"),
        (2, None, "fast", "uniform"),
    ],
)
def test_a_fit_takes_exactly_what_its_plan_paid_for(n_rows, target, quality, structure, delta, monkeypatch):
    """When a forest is grown its prepaid is empty: no table, tree or choice too few, and more could not be had."""
    opened = []

    class Watched(PrepaidMechanisms):
        def __init__(self, *given):
            super().__init__(*given)
            opened.append(self)

    monkeypatch.setattr("spinney.synthesizers.forest.PrepaidMechanisms", Watched)
    schema = sp.Schema({name: SCHEMA[name] for name in ("n", "y", "label")}) if structure == "rounds" else SCHEMA
    model = sp.ForestSynthesizer(8 if structure == "rounds" else 3, delta, target=target, quality=quality)
    for n in [20, 40, 80, 160, 320, 640] if n_rows is None else [n_rows]:
        model.fit(table(n).select(list(schema)), schema, entropy=sp.UnsafeSeededEntropy(1))
        if model.design_.structure == structure:
            break
    assert model.design_.structure == structure
    prepaid = opened[-1]
    assert prepaid.plan is model.design_.plan
    assert set(prepaid._left.values()) == {0}
    n_tables = sum(noise.times for stage, noise in prepaid.plan.tables.items() if stage in ("pairs", "cliques"))
    assert len(model.release_.looked_at) == n_tables
