"""Columns of a forest on their own: leaves that tile what is possible, weights, and states that they form."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spinney as sp
from spinney.forest import columns as states
from spinney.forest.columns import NoisyColumn, column_model, release_column, unmeasured
from spinney.forest.release.columns import leaf_places
from spinney.grid.axes import Parting, column_axis
from spinney.tables.engines.memory import count_cells, state_rows
from spinney.tables.frames import open_table
from support.in_one_test import in_one_test
from support.small_forests import exact_prepaid, noisy_column

FEW = settings(max_examples=40, derandomize=True, deadline=None)
WIDE = sp.Real(0, 1)


def axis_of(column):
    return column_axis("v", column)


def leaf_weights(column: NoisyColumn, total: float):
    """The weights of leaves that lie where their cells do."""
    places = leaf_places(column.axis, column.first, column.stop, parting=None, cells=None)
    return states.leaf_weights(column, *places, total)


def mechanisms():
    """For one column, without noise."""
    return exact_prepaid(n_trees=1, n_one_way=1, n_spikes=1)


def released(column, values, *, cutoff=3.0):
    """A column's leaves without noise, and how they were found."""
    axis = axis_of(column)
    table = open_table(pa.table({"v": pa.array(values)}), sp.Schema({"v": column}))
    counts = count_cells(table, axis.lattice)
    return release_column(counts, mechanisms(), ruler=axis.ruler, cutoff=cutoff), axis, table


# ------------------------------------------------------------------------------------------------------ leaves


@in_one_test(
    ("column", "is_cut", "has_values"),
    [
        (sp.Real(0, 1), True, False),
        (sp.Real(0, 1, bits=5), False, False),
        (sp.Real(0, 1, bits=6), True, False),
        (sp.Integer(0, 31), False, False),
        (sp.Integer(0, 7), False, True),
        (sp.Integer(0, 8), False, False),
        (sp.Integer(0, 7, nullable=True), False, True),
        (sp.Integer(0, 32), True, False),
        (sp.Integer(0, 30, nullable=True), False, False),
        (sp.Integer(0, 31, nullable=True), True, False),
        (sp.Integer(4, 4), False, False),
        (sp.Integer(4, 4, nullable=True), False, True),
        (sp.Date("2020-01-01", "2020-12-31"), True, False),
        (sp.Datetime("2020-01-01", "2020-12-31"), True, False),
        (sp.Boolean(), False, True),
        (sp.Category(["a"]), False, False),
        (sp.Category([*"abcdefghijklmnopqrstuvwxyzABCDEFGHIJ"]), False, True),
    ],
    ids=repr,
)
def test_which_columns_are_cut_by_a_tree(column, is_cut, has_values):
    """Numbers of more than 32 possible cells are; those of more than 8 have no classes."""
    axis = axis_of(column)
    assert (axis.ruler is not None) == is_cut
    assert axis.has_classes == has_values
    assert (axis.max_levels > 5) == is_cut


COLUMNS = [
    sp.Real(0, 1),
    sp.Real(0, 1, bits=7, nullable=True),
    sp.Integer(3, 100),
    sp.Integer(-7, 40, nullable=True),
    sp.Integer(0, 9, nullable=True),
    sp.Integer(0, 1000, multiple_of=7, nullable=True),
    sp.Category([*"abcde"], nullable=True),
    sp.Boolean(),
    sp.Real(0, 1, bits=0, nullable=True),
]


def values_of(column, rng, n):
    """Values of a column, null in a quarter of the rows where that may be, often the same."""
    if isinstance(column, sp.Category):
        values = rng.choice([*column.values], n).tolist()
    elif isinstance(column, sp.Boolean):
        values = (rng.random(n) < 0.3).tolist()
    else:
        values = (column.low + rng.beta(1, 4, n) * (column.high - column.low)).tolist()
        values = values if isinstance(column, sp.Real) else [round(value) for value in values]
    return [None if column.nullable and rng.random() < 0.25 else value for value in values]


@pytest.mark.parametrize("column", COLUMNS, ids=repr)
def test_leaves_tile_what_is_possible(column):
    """Every possible cell lies in one leaf, in ascending order with null last; without noise the counts are true."""
    for seed, n_rows in enumerate((0, 1, 60, 400)):
        noisy, found, table = released(column, values_of(column, np.random.default_rng(seed), n_rows), cutoff=3.2)
        counts, axis = count_cells(table, found.lattice), found.axis
        values = ~noisy.is_null
        assert noisy.first[values][0] == axis.first
        assert noisy.stop[values][-1] == axis.last + 1
        assert (noisy.first[values][1:] == noisy.stop[values][:-1]).all()
        assert noisy.is_null.tolist() == [False] * values.sum() + [True] * column.nullable
        assert (noisy.stop[noisy.is_null] - noisy.first[noisy.is_null] == 1).all()
        cells = (counts.true_codes[:, 0] >> np.uint64(64 - axis.bits)).astype(np.int64)
        inside = (noisy.first[:, None] <= cells) & (cells < noisy.stop[:, None])
        assert noisy.noisy_counts.tolist() == inside.sum(axis=1).tolist()
        assert noisy.noisy_counts.sum() == n_rows
        if noisy.spikes is not None:
            begin, end = noisy.spikes
            at_spikes = (begin[:, None] <= cells) & (cells < end[:, None])
            assert noisy.noisy_spikes.tolist() == at_spikes.sum(axis=1).tolist()
            assert at_spikes.sum(axis=0).max(initial=0) <= 1
            assert (begin[: len(noisy.first)] == noisy.first).all()
            assert (end[: len(noisy.first)] <= noisy.stop).all()
            assert end[len(noisy.first) :].tolist() in ([], [axis.last + 1])


def test_a_tree_is_deeper_where_rows_are():
    """A thousand rows in a thousandth of the range get leaves of their own; empty space stays whole."""
    noisy, _, _ = released(WIDE, 0.3 + np.random.default_rng(0).random(1000) / 1000, cutoff=20)
    edges = noisy.first / (noisy.axis.last + 1)
    assert ((edges >= 0.3) & (edges < 0.301)).sum() > 30
    assert ((edges < 0.29) | (edges > 0.31)).sum() < 15


@pytest.mark.parametrize("column", COLUMNS, ids=repr)
def test_an_unmeasured_column_is_even(column):
    """One leaf for many numbers, one for each of a few values, null apart, weighing what they reach over."""
    noisy = unmeasured(axis_of(column).axis)
    n_values = {"category": 5, "boolean": 2}.get(column.type_name, 10 if getattr(column, "high", 0) == 9 else 1)
    assert len(noisy.first) == n_values + column.nullable
    assert noisy.noise_std == 0
    weights = leaf_weights(noisy, 50.0)
    assert weights.sum() == pytest.approx(50)
    reach = noisy.stop - noisy.first
    assert weights == pytest.approx(50 * reach / reach.sum())


# ------------------------------------------------------------------------------------------------------ weights


@FEW
@given(st.lists(st.integers(-50, 500), min_size=1, max_size=30), st.booleans(), st.floats(1, 1000))
def test_weights_add_up_and_are_not_negative(counts, nullable, total):
    """Whatever the noise: numbers and categories."""
    for kind in (sp.Integer(0, 999, nullable=nullable), sp.Category(list(range(len(counts))), nullable=nullable)):
        noisy = noisy_column(kind, counts if not nullable else [*counts, 7], noise_std=5.0)
        weights = leaf_weights(noisy, total)
        assert weights.sum() == pytest.approx(total)
        assert weights.min() >= 0


def test_small_counts_of_numbers_are_taken_for_noise():
    """Below one deviation a leaf of a number is empty, a category is not; the rest is fitted to the total."""
    counts = [9, 11, 100, -4]
    numbers = leaf_weights(noisy_column(sp.Integer(0, 999), [4, 11, 1000, -4], noise_std=5.0), 1021.0)
    assert numbers == pytest.approx([0, 16, 1005, 0])
    categories = leaf_weights(noisy_column(sp.Category([*"abcd"]), counts, noise_std=5.0), 120.0)
    assert categories == pytest.approx([9, 11, 100, 0])


def test_far_out_a_leaf_has_to_stand_out_more():
    """A leaf whose noise alone would change the variance is believed from four deviations on, the others from one."""
    column = noisy_column(sp.Integer(0, 9999), [1000, 11, 12], noise_std=5.0)
    column = replace(column, first=np.array([0, 10, 1000]), stop=np.array([10, 20, 10_000]))
    assert leaf_weights(column, 1011.0) == pytest.approx([1000, 11, 0])
    column = replace(column, noisy_counts=np.array([1000, 11, 18]))
    assert leaf_weights(column, 1011.0) == pytest.approx([1000, 11, 0])
    column = replace(column, noisy_counts=np.array([1000, 11, 21]))
    assert leaf_weights(column, 1032.0) == pytest.approx([1000, 11, 21])
    nothing_sure = replace(column, noisy_counts=np.array([12, 11, 11]))
    assert leaf_weights(nothing_sure, 34.0) == pytest.approx([12, 11, 11])


def test_empty_leaves_behind_the_last_share_its_state():
    """No state is of empty leaves alone: the model would give it rows, and they would lie anywhere in it."""
    column = noisy_column(sp.Integer(0, 9999), [500, 300, 0, 0], noise_std=5.0)
    model, _ = column_model(column, total=800.0, most_states=8)
    assert model.states.tolist() == [0, 1, 1, 1]
    assert (model.state_weights() > 0).all()


def test_where_nothing_stands_out_a_number_is_even():
    """Weights by length, null by one cell."""
    noisy = noisy_column(sp.Integer(0, 1000, nullable=True), [3, -2, 1, 1], noise_std=5.0)
    reach = (noisy.stop - noisy.first).astype(float)
    assert leaf_weights(noisy, 10.0) == pytest.approx(10 * reach / reach.sum())


# ------------------------------------------------------------------------------------------------------ states


@st.composite
def grouped(draw):
    """A column of numbers with noisy counts, perhaps null, perhaps leaves that a rule tells apart."""
    nullable = draw(st.booleans())
    n_leaves = draw(st.integers(1, 60))
    counts = draw(st.lists(st.integers(0, 1000), min_size=n_leaves, max_size=n_leaves))
    marked = draw(st.lists(st.booleans(), min_size=n_leaves, max_size=n_leaves))
    column = noisy_column(sp.Integer(0, 10_000, nullable=nullable), counts + [50] * nullable, noise_std=2.0)
    return column, np.array(marked + [False] * nullable), draw(st.sampled_from([2, 8, 16]))


@FEW
@given(grouped())
def test_groups_of_numbers_are_neighbours(drawn):
    """States are numbered in order and contiguous, null has its own, and there are no more than were asked for."""
    column, _, most = drawn
    model, cut = column_model(column, total=1000.0, most_states=most)
    values = model.states[~model.is_null]
    assert (np.diff(values) >= 0).all()
    assert (np.diff(values) <= 1).all()
    assert values[0] == 0
    assert values[-1] < most
    assert model.is_null.sum() == column.axis.nullable
    assert set(model.states[model.is_null]).isdisjoint(values)
    assert model.n_states == len(np.unique(model.states)) == cut.n_states
    assert (cut.states == model.states).all()
    assert model.state_weights().sum() == pytest.approx(1000)


@FEW
@given(grouped())
def test_leaves_that_rules_tell_apart_share_no_state(drawn):
    """Neither of numbers nor of categories."""
    column, marked, most = drawn
    named = noisy_column(
        sp.Category(list(range((~column.is_null).sum())), nullable=column.axis.nullable),
        column.noisy_counts.tolist(),
        noise_std=2.0,
    )
    for noisy in (column, named):
        anywhere = np.full(len(marked), np.inf)
        parting = Parting(
            (), noisy.first, marked.astype(np.int64), -anywhere, anywhere, (), np.zeros((0, 2), "?"), np.ones(3, "?")
        )
        model, _ = column_model(noisy, total=1000.0, most_states=most, parting=parting)
        assert set(model.states[marked]).isdisjoint(model.states[~marked])
        assert set(model.states[model.is_null]).isdisjoint(model.states[~model.is_null])


def test_groups_have_even_weight():
    """A hundred leaves of equal weight in eight states: twelve or thirteen each."""
    model, _ = column_model(noisy_column(sp.Integer(0, 999), [50] * 100), total=5000.0, most_states=8)
    assert sorted(np.bincount(model.states)) == [12] * 4 + [13] * 4


def test_tails_keep_states_of_their_own():
    """Where one leaf has nearly all the rows, half the states are shared out by leaves, so the tails have several."""
    counts = [10] * 50 + [10_000] + [10] * 50
    model, _ = column_model(noisy_column(sp.Integer(0, 999), counts), total=11_000.0, most_states=16)
    assert len(set(model.states[:50])) >= 3
    assert len(set(model.states[51:])) >= 3


def test_few_leaves_are_their_own_states_and_empty_ones_join_a_neighbour():
    counts = [100, 0, 0, 90, 80]
    model, _ = column_model(noisy_column(sp.Integer(0, 999), counts, noise_std=1.0), total=270.0, most_states=8)
    assert model.n_states == 3
    assert len({model.states[0], model.states[3], model.states[4]}) == 3
    assert {model.states[1], model.states[2]} <= {model.states[0], model.states[3]}


def test_rare_categories_are_pooled():
    """Those below three deviations share one state; those above, and null, have their own, the largest first."""
    column = sp.Category([*"abcdef"], nullable=True)
    noisy = noisy_column(column, [300, 2, 250, -1, 29, 31, 0], noise_std=10.0)
    model, _ = column_model(noisy, total=600.0, most_states=8)
    a, b, c, d, e, f, null = model.states.tolist()
    assert b == d == e
    assert len({a, b, c, f, null}) == 5
    model, _ = column_model(noisy, total=600.0, most_states=2)
    a, b, c, d, e, f, null = model.states.tolist()
    assert b == d == e == f
    assert len({a, b, c, null}) == 4
    inside = model.inside()
    assert inside[[1, 3, 4, 5]].sum() == pytest.approx(1)


@pytest.mark.parametrize("nullable", [False, True])
def test_two_categories_are_never_pooled(nullable):
    noisy = noisy_column(sp.Boolean(nullable=nullable), [1, 0] + [0] * nullable, noise_std=10.0)
    model, _ = column_model(noisy, total=10.0, most_states=8)
    assert model.states.tolist() == list(range(2 + nullable))


# ------------------------------------------------------------------------------------------------------ rows as states


@pytest.mark.parametrize("column", COLUMNS, ids=repr)
def test_rows_have_the_state_of_their_leaf(column):
    """Values in plain Python, looked up leaf by leaf, give the states that the engine finds; by search too."""
    values = values_of(column, np.random.default_rng(3), 300)
    noisy, axis, table = released(column, values)
    model, cut = column_model(noisy, total=300.0, most_states=8, cells=axis)
    rows = state_rows(table, [cut])
    assert rows.sizes == (model.n_states,)
    table_of_one = rows.true_table((0,))
    assert table_of_one.sum() == 300
    assert table_of_one == pytest.approx(model.state_weights(), abs=1e-6)
    for value, state in zip(values, rows.true_states[0].tolist(), strict=True):
        if value is None:
            assert model.is_null[model.states == state].all()
            continue
        place = column.values.index(value) if isinstance(column, sp.Category) else float(value)
        place -= 0 if isinstance(column, (sp.Real, sp.Category, sp.Boolean)) else column.low
        leaves = (model.states == state) & ~model.is_null
        low, stop = model.low[leaves].min(), (model.low + model.length)[leaves].max()
        # A cell lies around its round number.
        slack = 1e-9 if getattr(column, "multiple_of", None) is None else column.multiple_of
        assert low - slack <= place <= stop + slack


def test_states_found_by_search_are_those_looked_up(monkeypatch):
    """Beyond a limit of cells leaves are searched for, with the same result."""
    from spinney.counting import states

    column = sp.Real(0, 1, nullable=True, bits=12)
    noisy, _, table = released(column, values_of(column, np.random.default_rng(4), 500))
    _, cut = column_model(noisy, total=500.0, most_states=16)
    looked_up = state_rows(table, [cut]).true_states
    monkeypatch.setattr(states, "_LOOKUP_CELLS", 1)
    assert np.array_equal(state_rows(table, [cut]).true_states, looked_up)
    assert len(np.unique(looked_up)) > 8


@pytest.mark.parametrize("n_stairs", [1, 2, 63, 64, 65, 300])
@pytest.mark.parametrize("most", [1_000, 10**12])
def test_stairs_are_found_however_many(n_stairs, most):
    """Against numpy's search, in one byte and in two, at the edges of stairs and beside them, close or far apart."""
    from spinney.counting.states import _find_states, stairs_before

    rng = np.random.default_rng(n_stairs)
    first = np.concatenate([[0], np.sort(rng.choice(most, n_stairs - 1, replace=False)) + 1]).astype(np.int64)
    cells = np.maximum(np.concatenate([first - 1, first, first + 1, rng.integers(0, 10**12, 500)]), 0)
    before, shift = stairs_before(first, 40)
    for dtype in (np.uint8, np.uint16):
        states, row = rng.integers(0, 250, n_stairs).astype(dtype), np.empty(len(cells), dtype=dtype)
        _find_states(cells, first, states, before, shift, row)
        assert (row == states[np.searchsorted(first, cells, side="right") - 1]).all()


def test_the_purse_of_these_tests_adds_no_noise():
    """Otherwise the comparisons above would fail by chance; with a real budget there is noise."""
    counts = np.array([5, 0, 7] * 30, dtype=np.int64)
    assert (exact_prepaid(n_one_way=1).noisy_counts(counts, "one-way") == counts).all()
    assert (exact_prepaid(n_one_way=1, epsilon=Fraction(1)).noisy_counts(counts, "one-way") != counts).any()
