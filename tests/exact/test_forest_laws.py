"""What a forest decides and chooses, outcome by outcome: neighbours are as hard to tell apart as was charged for.

The real `release_column` and `choose_tree` are run through all their branches (`branches`) on all tables of a few rows.
Pure plans are compared with their epsilon, composed ones with delta at several epsilons. Half the noise is noticed.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spinney as sp
from spinney.counting.states import GAP_STEPS, true_distances
from spinney.forest.columns import release_column
from spinney.forest.design import Parts, choose_tree, n_choices
from spinney.forest.plan import Shape, forest_plan
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.forest.rounds import model_tables
from spinney.grid import lattice
from spinney.grid.axes import column_axis
from spinney.grid.ruler import Ruler
from spinney.privacy.budget import Unit
from spinney.privacy.composition import composed_delta
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.mechanisms import Selections, TreeShapes
from support.exhaustive_branches import branching, hockey_stick, law_of
from support.goodness_of_fit import ACCEPT, REJECT
from support.handmade_leaves import counts_of_rows
from support.in_one_test import in_one_test
from support.output_laws import largest_ratio, neighbours, small_tables
from support.sabotaged_forests import (
    CAGES,
    Check,
    Sabotage,
    choice_laws,
    exact_plan,
    first_choice,
    neighbouring_laws,
    ratio_range,
)
from support.sabotaged_spikes import SPIKE_CAGES
from support.slow_forests import neighbouring_rows, rows_of, slow_distance, slow_gap, slow_table
from support.slow_rulers import number_cuts
from support.slow_rulers import shape_law as slow_shape_law

UNITS = pytest.mark.parametrize("unit", [Unit.REPLACE_ONE, Unit.ADD_REMOVE], ids=str)
TOLERANCE = 1e-9
CUTOFF = 1

# ------------------------------------------------------------------------------------------------------ column trees

AXES = {
    "line": sp.Integer(0, 7),
    "not a power of two": sp.Integer(0, 4, bits=3),
    "null": sp.Integer(0, 3, nullable=True),
    "both signs": sp.Integer(-2, 4),
}


def possible_mask(axis):
    """Cells up to the last that a row can have, and whether one can."""
    one = axis.axis
    return tuple(cell <= one.last or cell == one.null_cell for cell in range(max(one.last, one.null_cell) + 1))


def tree_plan(levels, unit, *, delta, epsilon=1, times=1):
    shape = Shape(
        {"trees": times, "one-way": 1}, {"trees": Fraction(1, 2), "one-way": Fraction(1, 2)}, {"trees": levels}
    )
    return forest_plan(shape, epsilon=Fraction(epsilon), delta=Fraction(delta), unit=unit)


def shape_law(column, counts, plan, *, faster=1):
    """Chance of every shape that `release_column` gives a column with these counts of cells."""
    axis = column_axis("v", column)
    rows = [(cell,) for cell, n in enumerate(counts) for _ in range(n)]
    true_counts = counts_of_rows(rows, axis.lattice)
    trees = replace(plan.trees["trees"], rate=plan.trees["trees"].rate * faster)
    pure = replace(plan, noise={"trees": trees, **exact_plan(n_one_way=1, n_spikes=1).tables}, charges=())

    def run(pick):
        prepaid = PrepaidMechanisms(pure, sp.Ledger(unit=plan.unit), UnsafeSeededEntropy(0))
        with branching(pick, cutoff=CUTOFF):
            noisy = release_column(true_counts, prepaid, ruler=axis.ruler, cutoff=CUTOFF)
        return tuple(zip(noisy.first.tolist(), noisy.stop.tolist(), strict=True))

    return law_of(run)


@pytest.fixture(autouse=True)
def _cut_small_columns(monkeypatch):
    """Columns of a few cells are cut by trees too; their axes are kept, and must not be by other tests."""
    monkeypatch.setattr(lattice, "_FEW_CELLS", 2)
    column_axis.cache_clear()
    yield
    column_axis.cache_clear()


@pytest.mark.parametrize("column", AXES.values(), ids=AXES)
@UNITS
def test_shapes_follow_the_law_of_their_decisions(column, unit):
    """Enumerated through the real code, shapes have the chances that recursion over the ruler's ranges gives them."""
    axis = column_axis("v", column)
    plan = tree_plan(axis.max_levels, unit, delta=0)
    possible = possible_mask(axis)
    n_cells, null = axis.axis.last + 1, axis.axis.null_cell
    for table in [(0,) * len(possible), *small_tables(possible, 2)][:12]:
        found = shape_law(column, table, plan)
        expected = slow_shape_law(
            table[:n_cells],
            number_cuts(-column.low),
            max_levels=axis.max_levels,
            rate=float(plan.trees["trees"].rate),
            cutoff=CUTOFF,
            decay=plan.trees["trees"].decay,
        )
        assert math.fsum(found.values()) == pytest.approx(1, abs=1e-12)
        at_end = ((null, null + 1),) if column.nullable else ()
        assert found == pytest.approx({(*shape, *at_end): chance for shape, chance in expected.items()}, abs=1e-12)


def test_shapes_stop_at_the_last_level_that_was_paid_for(monkeypatch):
    """Ranges of two cells or more stay whole there, whatever they hold, and the law says so too."""
    monkeypatch.setattr(Ruler, "max_levels", 2)
    column = AXES["line"]
    plan = tree_plan(2, Unit.REPLACE_ONE, delta=0)
    table = (9, 9, 0, 0, 0, 0, 0, 9)
    noise = {"rate": float(plan.trees["trees"].rate), "cutoff": CUTOFF, "decay": plan.trees["trees"].decay}
    found = shape_law(column, table, plan)
    assert found == pytest.approx(slow_shape_law(table, number_cuts(0), max_levels=2, **noise), abs=1e-12)
    assert max(map(len, found)) == 4


def worst_ratio(column, unit, plan, n_rows, **options):
    """The largest log-ratio of the chances of any shape, over all tables of so many rows and their neighbours."""
    possible = possible_mask(column_axis("v", column))

    @cache
    def law(table):
        return shape_law(column, table, plan, **options)

    return max(
        largest_ratio(law(table), law(other))
        for n in range(1, n_rows + 1)
        for table in small_tables(possible, n)
        for other in neighbours(table, unit, possible)
    )


@pytest.mark.parametrize("column", AXES.values(), ids=AXES)
@UNITS
def test_shapes_cost_no_more_than_a_pure_plan_charges(column, unit):
    """No shape of a tree tells neighbours of a few rows apart by more than the trees' share of epsilon."""
    axis = column_axis("v", column)
    plan = tree_plan(axis.max_levels, unit, delta=0, epsilon=2)
    is_small = axis.ruler.n_cells == 4
    loss = worst_ratio(column, unit, plan, 3 if is_small else 2)
    assert 0.25 < loss <= 1 + TOLERANCE  # two rows are far from the worst case, and levels are paid for that none has
    if is_small:  # small enough for three rows to be close to the worst case
        assert worst_ratio(column, unit, plan, 3, faster=3) > 1


@pytest.mark.parametrize("column", [AXES["line"], AXES["null"]], ids=["line", "null"])
@UNITS
def test_shapes_cost_no_more_than_composition_says(column, unit):
    """At every epsilon the exact delta between neighbours, of one tree and of two, is below the composed one."""
    axis = column_axis("v", column)
    plan = tree_plan(axis.max_levels, unit, delta="1e-3", epsilon=2)
    possible = possible_mask(axis)

    @cache
    def law(table):
        return shape_law(column, table, plan)

    @cache
    def twice(table):
        return {(a, b): p * q for (a, p), (b, q) in product(law(table).items(), repeat=2)}

    epsilons = ("1/10", "1/2", "1", "3/2")
    worst = dict.fromkeys(product(epsilons, (1, 2)), 0.0)
    for n in (1, 2, 3):
        for table in list(small_tables(possible, n))[:15]:
            for other in neighbours(table, unit, possible):
                for epsilon in epsilons:
                    one, two = float(Fraction(epsilon)), twice if n == 1 else None
                    for a, b in ((table, other), (other, table)):
                        worst[epsilon, 1] = max(worst[epsilon, 1], hockey_stick(law(a), law(b), one))
                        if two is not None:
                            worst[epsilon, 2] = max(worst[epsilon, 2], hockey_stick(two(a), two(b), one))
    trees = plan.trees["trees"]
    for (epsilon, times), found in worst.items():
        part = TreeShapes(trees.rate, trees.decay, trees.levels, times, "trees")
        assert found <= float(composed_delta([part], Fraction(epsilon), unit)) + TOLERANCE
    assert worst["1/10", 1] > 0.01


# ------------------------------------------------------------------------------------------------------ choices


@st.composite
def state_tables(draw, *, with_drawn=False):
    """Rows of a few columns of states, shares that predict them, and perhaps rows of a model."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=2, max_size=4))
    row = st.tuples(*(st.integers(0, size - 1) for size in sizes))
    rows = draw(st.lists(row, max_size=12))
    seed = draw(st.integers(0, 2**32 - 1))
    if with_drawn:
        return sizes, rows, draw(st.lists(row, min_size=1, max_size=12)), seed
    return sizes, rows, seed


def tables_of(drawn, cliques, sizes, total):
    """What a model expects, by rows drawn from it."""
    return model_tables(drawn, cliques, sizes, total)


def some_shares(sizes, n_classes, seed):
    """P(state | class) for every column, and the sizes of the classes."""
    rng = np.random.default_rng(seed)
    shares = [rng.dirichlet(np.ones(size), size=n_classes) for size in sizes]
    return [*shares, rng.random(n_classes) * 9]


FEW = settings(max_examples=40, derandomize=True, deadline=None)


@FEW
@given(state_tables())
def test_gaps_are_those_of_the_definition(drawn):
    """With and without classes, for columns of different numbers of states."""
    sizes, rows, seed = drawn
    states = rows_of(rows, sizes)
    for by in (None, len(sizes) - 1):
        free = [column for column in range(len(sizes)) if column != by]
        pairs = np.array([(i, j) for i in free for j in free if i < j], dtype=np.int64).reshape(-1, 2)
        shares = some_shares(sizes, 1 if by is None else sizes[by], seed)
        expected = [slow_gap(rows, tuple(pair), shares, sizes, by) for pair in pairs.tolist()]
        assert states.true_gaps(pairs, shares, by).tolist() == pytest.approx(expected, abs=1)


@FEW
@given(state_tables(with_drawn=True), st.floats(0, 30))
def test_distances_are_those_of_the_definition(drawn, total):
    """For pairs and triples, whatever was drawn from the model."""
    sizes, rows, from_model, _ = drawn
    columns_ = range(len(sizes))
    cliques = [(i, j) for i in columns_ for j in columns_ if i < j] + [tuple(columns_)[:3]]
    found = true_distances(
        rows_of(rows, sizes), cliques, tables_of(np.array(from_model, dtype=np.int32).T, cliques, sizes, total)
    )
    expected = [slow_distance(rows, from_model, clique, sizes, total) for clique in cliques]
    assert found.tolist() == pytest.approx(expected, abs=1)


@FEW
@given(state_tables())
def test_tables_are_counts_of_rows(drawn):
    sizes, rows, _ = drawn
    states = rows_of(rows, sizes)
    for clique in [(0,), (0, 1), (1, 0), tuple(range(len(sizes)))]:
        assert np.array_equal(states.true_table(clique), slow_table(rows, clique, sizes))


SMALL = (2, 3, 2)
TABLES = [[], [(0, 0, 0)], [(1, 2, 1), (0, 1, 0)], [(0, 0, 1), (0, 0, 1), (1, 2, 0), (1, 1, 1)]]


@UNITS
@pytest.mark.parametrize("by", [None, 2])
def test_gaps_change_by_their_sensitivity_at_most(unit, by):
    """Over all neighbours of small tables, under shares of all kinds: reached, and never passed."""
    pairs = np.array([(0, 1)] if by is not None else [(0, 1), (0, 2), (1, 2)], dtype=np.int64)
    n_classes = 1 if by is None else SMALL[by]
    worst = 0
    for seed in range(6):
        shares = some_shares(SMALL, n_classes, seed)
        if seed == 0:  # nothing is expected anywhere: every row adds its whole step
            shares[-1] = np.zeros(n_classes)
        for rows in TABLES:
            here = rows_of(rows, SMALL).true_gaps(pairs, shares, by)
            for other in neighbouring_rows(rows, SMALL, unit):
                there = rows_of(other, SMALL).true_gaps(pairs, shares, by)
                worst = max(worst, int(np.abs(here - there).max()))
    assert worst == GAP_STEPS * unit.factor


@UNITS
def test_distances_change_by_their_sensitivity_at_most(unit):
    """The same for tables compared with rows drawn from a model, pairs and triples."""
    cliques = [(0, 1), (0, 2), (1, 2), (0, 1, 2)]
    drawn = np.array([(0, 0, 0), (1, 2, 1), (1, 0, 0)], dtype=np.int32).T
    worst = 0
    for total, rows in product((0.0, 2.5, 4.0), TABLES):
        here = true_distances(rows_of(rows, SMALL), cliques, tables_of(drawn, cliques, SMALL, total))
        for other in neighbouring_rows(rows, SMALL, unit):
            there = true_distances(rows_of(other, SMALL), cliques, tables_of(drawn, cliques, SMALL, total))
            worst = max(worst, int(np.abs(here - there).max()))
    assert worst == GAP_STEPS * unit.factor


@UNITS
def test_choices_cost_no_more_than_a_pure_plan_charges(unit):
    """The whole tree of pairs of three columns, outcome by outcome, over all tables of three rows."""
    n_chosen, epsilon = 2, Fraction(1)
    laws = choice_laws(unit, epsilon)
    first = {rows: first_choice(law) for rows, law in laws.items()}
    assert max(ratio_range(a, b) for a, b in neighbouring_laws(first, unit)) == pytest.approx(1, abs=TOLERANCE)
    for law in laws.values():
        assert math.fsum(law.values()) == pytest.approx(1, abs=1e-12)
        assert all(len(pairs) == n_chosen for pairs in law)
    loss = max(largest_ratio(a, b) for a, b in neighbouring_laws(laws, unit))
    assert 0.5 * float(epsilon) < loss <= n_chosen * float(epsilon) + TOLERANCE


@UNITS
def test_choices_cost_no_more_than_composition_says(unit):
    """The exact delta between neighbours' trees is below that of as many choices of bounded range."""
    epsilon = Fraction(1)
    laws = choice_laws(unit, epsilon)
    pairs = list(neighbouring_laws(laws, unit))
    for at in ("1/10", "1/2", "1", "3/2"):
        found = max(hockey_stick(*turned, float(Fraction(at))) for a, b in pairs for turned in ((a, b), (b, a)))
        claimed = float(composed_delta([Selections(epsilon, 2, "choices")], Fraction(at), unit))
        assert found <= claimed + TOLERANCE
        if at == "1/10":
            assert found > 0.05 * claimed


# ------------------------------------------------------------------------------------------------------ trees of pairs


@in_one_test("by", [None, 4])
@in_one_test("required", [(), ((0, 3),), ((0, 1), (1, 2), (0, 2))])
@in_one_test("seed", range(3))
def test_chosen_pairs_are_a_spanning_tree(by, required, seed):
    """All columns are joined, without circles, required pairs included, by as many choices as were planned."""
    sizes = (2, 3, 2, 4, 2)
    rng = np.random.default_rng(seed)
    rows = [tuple(int(rng.integers(0, size)) for size in sizes) for _ in range(50)]
    open_columns = [column for column in range(5) if column != by]
    times = n_choices(5, len(open_columns), required)
    plan = exact_plan(n_one_way=1, n_choices=times, epsilon=Fraction(1))
    prepaid = PrepaidMechanisms(plan, sp.Ledger(), UnsafeSeededEntropy(seed))
    shares = some_shares(sizes, 1 if by is None else 2, seed)
    chosen = choose_tree(rows_of(rows, sizes), open_columns, shares, prepaid, required=required, by=by)
    assert len(chosen) == len(open_columns) - 1
    parts = Parts(5)
    assert all(parts.join(pair) for pair in chosen)
    assert len(set(parts.numbers[open_columns].tolist())) == 1
    joined = Parts(5)
    assert [pair for pair in required if joined.join(pair)] == chosen[: len(chosen) - times]


def test_with_a_large_budget_the_strongest_pairs_are_chosen():
    """Copies of a column are found among coins; given the target, copies that only it explains are not."""
    rng = np.random.default_rng(0)
    n = 400
    a, c, t = (rng.integers(0, 2, n) for _ in range(3))
    noise = rng.random(n) < 0.05
    b, d = np.where(noise, 1 - a, a), np.where(rng.random(n) < 0.2, 1 - c, c)
    by_target = [np.where(rng.random(n) < 0.1, 1 - t, t) for _ in range(2)]
    rows = [tuple(map(int, row)) for row in zip(a, c, b, d, *by_target, t, strict=True)]
    sizes = (2,) * 7

    def chosen(columns_, by):
        plan = exact_plan(n_one_way=1, n_choices=len(columns_) - 1)
        table = rows_of(rows, sizes)
        classes = np.array([n], dtype=float) if by is None else table.true_table((by,)).astype(float)
        shares = [
            (table.true_table((column,)) / n)[None] if by is None else table.true_table((by, column)) / classes[:, None]
            for column in range(7)
        ]
        prepaid = PrepaidMechanisms(plan, sp.Ledger(), UnsafeSeededEntropy(0))
        return choose_tree(table, columns_, [*shares, classes], prepaid, by=by)

    assert chosen(range(6), None)[0] == (0, 2)
    assert set(chosen(range(6), None)[:3]) == {(0, 2), (4, 5), (1, 3)}
    assert chosen(range(6), 6)[:2] == [(0, 2), (1, 3)]


# ------------------------------------------------------------------------------------------------------ zoo


@cache
def _of_the_real_one(check: Check) -> float:
    return check()


@pytest.mark.parametrize(("check", "sabotage"), (CAGES | SPIKE_CAGES).values(), ids=CAGES | SPIKE_CAGES)
def test_sabotage_is_caught(check: Check, sabotage: Sabotage) -> None:
    """The check accepts the forest and rejects the same code with one mistake in it."""
    assert _of_the_real_one(check) > ACCEPT
    with sabotage():
        assert check() < REJECT
