"""Long leaves are drawn by size: states keep what they weigh, and every value stays in its leaf."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spinney as sp
from spinney.columns import whole_range
from spinney.forest.release.columns import ColumnModel, graded_leaves, is_far_out


def graded(leaves, column):
    return graded_leaves(leaves, column)[0]


def model(edges: list[float], weights: list[float], *, null: float | None = None) -> ColumnModel:
    """Neighbouring leaves between edges, each a state of its own; null at the end."""
    low, length = np.array(edges[:-1], dtype=float), np.diff(np.array(edges, dtype=float))
    is_null = np.zeros(len(low), dtype=np.bool_)
    if null is not None:
        low, length, weights = np.append(low, 0.0), np.append(length, 0.0), [*weights, null]
        is_null = np.append(is_null, True)
    states = np.arange(len(low), dtype=np.int32)
    return ColumnModel(low, length, is_null, np.array(weights, dtype=float), states, len(states))


def test_a_tail_is_divided_by_size():
    """Beyond the median, 100 to 1,000 becomes three parts that fall off with the third power of the size."""
    found = graded(model([0, 100, 1000], [60, 40]), sp.Real(0, 1000))
    assert found.low.tolist() == [0, 100, 200, 500]
    assert found.length.tolist() == [100, 100, 300, 500]
    below = np.array([100.0, 200.0, 500.0, 1000.0]) ** -2
    assert found.weights == pytest.approx([60, *(40 * -np.diff(below) / (below[0] - below[-1]))])
    assert found.states.tolist() == [0, 1, 1, 1]


def test_a_leaf_that_holds_more_than_the_range_before_it_is_no_tail():
    """183 rows between 1,000 and 10,000, with ten in the hundreds, lie at any size there: not at its near end alone."""
    found = graded(model([0, 10, 100, 1000, 10_000], [900, 100, 10, 183]), sp.Real(0, 10_000))
    far = found.low >= 1000
    assert found.weights[far] == pytest.approx([183 * np.log10(2), 183 * np.log10(2.5), 183 * np.log10(2)])
    near = (found.low >= 100) & ~far  # which falls off as tails do
    assert found.weights[near][0] > 0.75 * 10


def test_before_the_median_all_sizes_are_alike():
    """Nearer to 0 than the median, parts have the logarithm of the ratio of their ends."""
    found = graded(model([0, 100, 1000, 1500], [10, 20, 70]), sp.Real(0, 1500))
    assert found.low.tolist() == [0, 100, 200, 500, 1000]
    assert found.weights[1:4] == pytest.approx([20 * np.log10(2), 20 * np.log10(2.5), 20 * np.log10(2)])


def test_below_zero_likewise():
    """Sizes count, whatever the sign; a leaf with 0 in it, or at its end, stays even."""
    found = graded(model([-1000, -100, 0, 50], [40, 60, 30]), sp.Real(-1000, 50))
    assert found.low.tolist() == [-1000, -500, -200, -100, 0]
    below = np.array([1000.0, 500.0, 200.0, 100.0]) ** -2
    assert found.weights[:3] == pytest.approx(40 * np.diff(below) / (below[-1] - below[0]))
    across = model([-1000, 1000], [40])
    assert graded(across, sp.Real(-1000, 1000)) is across


@pytest.mark.parametrize(
    ("column", "edges"),
    [
        (sp.Date("1970-01-01", "2170-01-01"), [1, 1000]),
        (sp.Category(["a", "b"]), [0, 1]),
        (sp.Boolean(), [0, 1]),
        (sp.Real(0, 1000), [500, 1000]),
    ],
    ids=repr,
)
def test_what_stays_even(column, edges):
    """Dates and lists have no sizes; ends that differ by a factor of two or less are near enough."""
    leaves = model(edges, [10])
    assert graded(leaves, column) is leaves


def test_empty_leaves_and_nulls_stay():
    """What weighs nothing is not divided, and null keeps its place at the end."""
    found = graded(model([1, 100, 1000], [0, 5], null=7), sp.Real(0, 1000, nullable=True))
    assert found.is_null.tolist() == [False] * 4 + [True]
    assert found.weights[[0, -1]].tolist() == [0, 7]
    assert found.states.tolist() == [0, 1, 1, 1, 2]


@given(
    st.integers(-3000, 3000),
    st.lists(st.integers(1, 5000), min_size=1, max_size=6),
    st.sampled_from([1, 7, 50]),
    st.integers(0, 2**32 - 1),
)
def test_whole_numbers_in_steps_stay_in_their_leaves(low, lengths, step, seed):
    """Parts follow each other without gaps, begin where cells begin, and draws lie in the leaf of their state."""
    column = sp.Integer(low, low + step * sum(lengths), multiple_of=step)
    first, last = whole_range(column)
    edges = np.minimum(np.cumsum([0, *(step * length for length in lengths)]), last - first + 1)
    edges = np.unique(edges)
    leaves = model(edges.tolist(), [10.0] * (len(edges) - 1))
    found = graded(leaves, column)
    assert found.low[1:] == pytest.approx((found.low + found.length)[:-1])
    assert found.low[0] == 0
    assert found.low[-1] + found.length[-1] == edges[-1]
    assert (found.low % step == 0).all()
    assert found.state_weights() == pytest.approx(leaves.state_weights())
    states = np.repeat(np.arange(leaves.n_states, dtype=np.int32), 20)
    places = found.draw(states, np.random.default_rng(seed))
    assert ((places >= leaves.low[states]) & (places < (leaves.low + leaves.length)[states])).all()


def test_older_releases_draw_evenly(tmp_path):
    """A file of the first version says nothing of sizes, and its leaves are even; a new one is graded."""
    rng = np.random.default_rng(2)
    release = sp.ForestSynthesizer(1).fit(rng.gamma(0.2, 3000, (2000, 1)), {"x": sp.Real(0, 1e6)}).release_
    assert release.is_graded
    release.save(tmp_path / "new.spinney")
    assert sp.load(tmp_path / "new.spinney").is_graded
    release.is_graded = False
    release.save(tmp_path / "even.spinney", overwrite=True)
    again = sp.load(tmp_path / "even.spinney")
    assert not again.is_graded
    assert again.drawn_columns == again.columns


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [2.0**1000, 2.0**-1000])
def test_leaves_of_any_size_are_told_alike(unit):
    """Squares of the largest floats leave their range: leaves are graded, and far out, as those of plain numbers."""
    low, length = np.array([0.0, 1.0, 4.0, 100.0]), np.array([1.0, 3.0, 96.0, 700.0])
    sure = np.array([500.0, 400.0, 80.0, 1.0])
    plain, scaled = (is_far_out(size * low, size * length, sure, 5.0) for size in (1.0, unit))
    assert plain.tolist() == scaled.tolist() == [False, False, False, True]
    flags, states = np.zeros(4, dtype=bool), np.arange(4, dtype=np.int32)
    parts = []
    for size in (1.0, unit):
        model = ColumnModel(size * low, size * length, flags, sure, states, 4)
        graded, leaf = graded_leaves(model, sp.Real(0, size * 1000))
        parts.append(np.bincount(leaf, weights=graded.weights))
        assert np.isfinite(graded.weights).all()
    assert np.allclose(*parts)
