"""Tilts: weights by hand, their cap, and sums over pairs against slow twins."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from spinney.errors import ParameterError
from spinney.graph.tilt import MOST_WEIGHT, Tilt, _log_mean, padded, pair_scores


def groups_of(*columns: list[int]) -> tuple[np.ndarray, ...]:
    return tuple(np.array(column, dtype=np.uint8) for column in columns)


def small_tilt(log_mean: float = 0.0) -> Tilt:
    """Three columns of three, two and two states; the first two states of the first are one group."""
    singles = (np.array([0.1, 0.2, 0.3]), np.array([-0.5, 0.5]), np.zeros(2))
    tables = (np.array([[1.0, -1.0], [0.0, 2.0]]), np.array([[0.25, 0.0], [0.0, -0.25]]))
    return Tilt(groups_of([0, 0, 1], [0, 1], [0, 1]), singles, ((0, 1), (1, 2)), tables, log_mean)


def test_log_weights_by_hand():
    """Factors of single states and of two groups add up, less the mean."""
    states = np.array([[0, 1, 2, 2], [0, 1, 0, 1], [0, 0, 1, 1]], dtype=np.int32)
    by_hand = [
        0.1 - 0.5 + 1.0 + 0.25,
        0.2 + 0.5 - 1.0 + 0.0,
        0.3 - 0.5 + 0.0 + 0.0,
        0.3 + 0.5 + 2.0 - 0.25,
    ]
    assert small_tilt().log_weights(states) == pytest.approx(by_hand)
    assert small_tilt(0.7).log_weights(states) == pytest.approx(np.array(by_hand) - 0.7)
    weights = small_tilt().weights(states)
    assert weights.sum() == pytest.approx(1)
    assert weights == pytest.approx(np.exp(by_hand) / np.exp(by_hand).sum())


def test_no_row_weighs_more_than_the_cap():
    """However large its factors are; small weights are what they are."""
    states = np.array([[0, 2], [0, 1], [0, 0]], dtype=np.int32)
    found = small_tilt(-30.0).log_weights(states)
    assert found == pytest.approx([math.log(MOST_WEIGHT)] * 2)
    assert small_tilt(30.0).log_weights(states) == pytest.approx([0.85 - 30, 2.8 - 30])


def test_rows_far_below_the_mean_still_have_weights():
    """Where all would be zero in floats, they are told apart, and no row at all is no error."""
    tilt = small_tilt(2000.0)
    weights = tilt.weights(np.array([[0, 2], [0, 1], [0, 0]], dtype=np.int32))
    assert weights.sum() == pytest.approx(1)
    assert weights[1] / weights[0] == pytest.approx(math.exp(2.8 - 0.85))


def test_the_mean_is_that_of_capped_weights():
    """With the mean taken off, weights under the cap have mean 1; without a weight near it, it is the plain mean."""
    rng = np.random.default_rng(1)
    mild = rng.normal(0, 0.3, 1000)
    assert _log_mean(mild) == pytest.approx(math.log(np.exp(mild).mean()))
    wild = rng.normal(0, 3, 1000)
    found = np.minimum(np.exp(wild - _log_mean(wild)), MOST_WEIGHT)
    assert found.mean() == pytest.approx(1, abs=0.02)
    assert (found == MOST_WEIGHT).any()
    assert math.isfinite(_log_mean(wild + 2000))


@pytest.mark.parametrize("n_threads", ["1", "3"])
@pytest.mark.parametrize("n_rows", [0, 1, 3, 4, 2047, 70_001])
def test_scores_are_those_of_slow_loops(n_rows, n_threads, monkeypatch):
    """For tables of different shapes, numbers of rows of all remainders, on one thread and several."""
    monkeypatch.setenv("SPINNEY_THREADS", n_threads)
    rng = np.random.default_rng(n_rows)
    sizes = (3, 2, 5, 1)
    groups = np.stack([rng.integers(0, size, n_rows, dtype=np.uint8) for size in sizes])
    pairs = list(combinations(range(4), 2))
    tables = [rng.normal(size=(sizes[i], sizes[j])) for i, j in pairs]
    slow = sum(table[groups[i], groups[j]] for (i, j), table in zip(pairs, tables, strict=True))
    assert pair_scores(groups, pairs, padded(tables)) == pytest.approx(np.asarray(slow), abs=1e-12)


def test_a_tilt_of_other_shapes_is_refused():
    """A table of other groups, factors of other states, numbers that are none."""
    fine = small_tilt()
    with pytest.raises(ParameterError, match="one table for each pair"):
        Tilt(fine.groups, fine.singles, fine.pairs, (fine.tables[0], np.zeros((2, 3))), 0.0)
    with pytest.raises(ParameterError, match="one table for each pair"):
        Tilt(fine.groups, fine.singles, fine.pairs, fine.tables[:1], 0.0)
    with pytest.raises(ParameterError, match="one factor for each state"):
        Tilt(fine.groups, (np.zeros(2), *fine.singles[1:]), fine.pairs, fine.tables, 0.0)
    for value in (math.nan, math.inf):
        with pytest.raises(ParameterError, match="finite"):
            Tilt(fine.groups, fine.singles, fine.pairs, fine.tables, value)
        with pytest.raises(ParameterError, match="finite"):
            Tilt(fine.groups, fine.singles, fine.pairs, (np.full((2, 2), value), fine.tables[1]), 0.0)
