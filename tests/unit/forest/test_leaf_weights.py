"""Weights of leaves keep to what was counted, range by range, and noise far out does not become rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.forest.release.leaf_weights import number_weights

STD = 45.0
N_DRAWS = 30


TOTAL = 240_000.0


def weights_of(counts, low, length, total=TOTAL, *, rule="tails"):
    is_null = np.zeros(len(counts), dtype=np.bool_)
    return number_weights(counts, STD, low, length, is_null, total, is_whole=False, rule=rule)


def share_outside(weights, counts):
    """The share of ranges of leaves whose rows lie outside the interval of 99 % around their noisy count."""
    n_leaves = len(counts)
    centred = counts + (weights.sum() - counts.sum()) / n_leaves
    rows, counted = (np.append(0.0, np.cumsum(numbers)) for numbers in (weights, centred))
    first, stop = np.triu_indices(n_leaves + 1, 1)
    n = stop - first
    reach = 2.576 * STD * np.sqrt(n * (1 - n / n_leaves)) + 1e-6
    found, middle = rows[stop] - rows[first], counted[stop] - counted[first]
    is_outside = (found < np.maximum(middle - reach, 0)) | (found > np.maximum(middle + reach, 0))
    is_tail = stop == n_leaves
    return float(is_outside.mean()), float(is_outside[is_tail].mean())


def far_pile():
    """Rows below 500, and 183 between 1,000 and 10,000: about four standard deviations of the noise."""
    edges = np.array([*range(0, 500, 10), 500, 1000, 10_000], dtype=float)
    middle = (edges[:-1] + edges[1:]) / 2
    true = np.where(middle < 500, np.exp(-middle / 60), 0.0)
    true *= (TOTAL - 183) / true.sum()
    true[-1] = 183
    return edges[:-1], np.diff(edges), true


def thin_runs():
    """A body of 40 leaves, and 300 near leaves of five rows each, far below the noise of a count."""
    low = np.arange(340.0)
    true = np.where(low < 40, 0.0, 5.0)
    true[:40] = (TOTAL - true.sum()) / 40
    return low, np.ones(340), true


@pytest.mark.parametrize("shape", [far_pile, thin_runs])
def test_every_range_weighs_about_what_was_counted(shape):
    """Of 99 in 100 ranges the rows lie in the certified interval of the same noise, of tails too."""
    low, length, true = shape()
    rng = np.random.default_rng(2)
    found = []
    for _ in range(N_DRAWS):
        counts = true + np.rint(rng.normal(0, STD, len(true)))
        weights = weights_of(counts, low, length)
        assert weights.min() >= 0
        assert weights.sum() == pytest.approx(TOTAL)
        found.append(share_outside(weights, counts))
    everywhere, tails = np.mean(found, axis=0)
    assert everywhere < 0.01
    assert tails < 0.01


def far_weight(deviations, *, rule="tails"):
    """The weight of a leaf far out whose noisy count is so many deviations of the noise."""
    low, length, counts = far_pile()
    counts[-1] = deviations * STD
    counts[0] += TOTAL - counts.sum()
    return weights_of(counts, low, length, rule=rule)[-1] / STD


@pytest.mark.parametrize("deviations", [2.05, 2.3, 2.6, 3.0, 3.4, 3.6, 3.98, 4.2])
def test_a_tail_lies_in_its_interval_of_95_percent(deviations):
    """A count beyond two deviations at an end puts rows there, as many as its interval has."""
    assert deviations - 1.96 <= far_weight(deviations) <= deviations + 1.96


def test_what_is_noise_far_out_is_left_out():
    """A count that noise alone often has puts no row far out; one that just stands out puts few there, then more."""
    assert far_weight(1.9) == 0
    assert 0 < far_weight(2.05) < 0.5
    found = [far_weight(deviations) for deviations in (2.05, 2.5, 3.0, 3.5)]
    assert (np.diff(found) > 0.5).all()


def test_older_files_have_fewer_rows_far_out():
    """A count just below four deviations puts rows far out, as few as an interval of 99 % allows."""
    assert 1.3 < far_weight(3.98, rule="sentinels") < 2
    assert far_weight(2.5, rule="sentinels") == 0


def test_rows_that_stand_out_very_far_out_are_there():
    """Three thousand rows below 500 and a pile at 90,000: no tail of the rows leaves its interval more often."""
    edges = np.array([*range(0, 500, 50), 500, 1_000, 5_000, 25_000, 50_000, 80_000, 100_000], dtype=float)
    low, length = edges[:-1], np.diff(edges)
    true = np.where(low < 500, 3_000 * np.exp(-low / 100), 0.0)
    true[-1] = 2.8 * STD
    rng = np.random.default_rng(5)
    found = []
    for _ in range(200):
        counts = true + np.rint(rng.normal(0, STD, len(true)))
        found.append(share_outside(weights_of(counts, low, length, true.sum()), counts))
    everywhere, tails = np.mean(found, axis=0)
    assert everywhere < 0.01
    assert tails < 0.02


def test_rows_beside_a_single_value_are_there():
    """Tolls: nearly all rows have none, so that nothing says what is far; rows beyond lie within their intervals."""
    low = np.array([0, 0.01, 0.5, 1, 10, 40])
    length = np.array([0, 0.49, 0.5, 9, 30, 60])
    true = np.array([20_000, 0, 0, 3.1 * STD, 0, 0])
    rng = np.random.default_rng(6)
    found, far = [], []
    for _ in range(200):
        counts = true + np.rint(rng.normal(0, STD, len(true)))
        weights = weights_of(counts, low, length, true.sum())
        found.append(share_outside(weights, counts))
        far.append(weights[1:].sum())
    everywhere, tails = np.mean(found, axis=0)
    assert everywhere < 0.02
    assert tails < 0.01
    assert np.mean(np.array(far) > 0) > 0.3


@pytest.mark.parametrize("bound", [1e6, 1e9])
def test_noise_far_out_does_not_become_rows(bound):
    """Incomes about 5,000 in bounds up to 200,000 times as wide: no standard deviation doubles, in 200 draws."""
    edges = np.array([*np.geomspace(500, 50_000, 60), *np.geomspace(1e5, bound, 6)])
    edges = np.append(0.0, edges)
    low, length = edges[:-1], np.diff(edges)
    middle = low + length / 2
    true = np.exp(-(np.log(np.maximum(middle, 1) / 5000) ** 2)) * (middle < 60_000)
    true *= TOTAL / true.sum()

    def deviation(weights):
        mean = np.average(middle, weights=weights)
        return np.sqrt(np.average((middle - mean) ** 2 + length**2 / 12, weights=weights))

    rng = np.random.default_rng(3)
    ratios = [
        deviation(weights_of(true + np.rint(rng.normal(0, STD, len(true))), low, length)) / deviation(true)
        for _ in range(200)
    ]
    assert np.quantile(ratios, 0.9) < 1.2
    assert max(ratios) < 6


def test_a_number_in_steps_that_is_the_target_has_no_holes():
    """Thirty values of which some are held by hundreds of rows only: all of them are drawn, at a small budget."""
    rng = np.random.default_rng(4)
    n = 20_000
    weight = np.clip(np.rint(rng.normal(15, 4.2, n)), 0, 31).astype(int)
    table = pa.table({"weight": weight, "week": rng.integers(0, 6, n), "age": rng.integers(15, 50, n)})
    schema = sp.Schema({"weight": sp.Integer(0, 31), "week": sp.Integer(0, 5), "age": sp.Integer(0, 100)})
    model = sp.ForestSynthesizer(0.25, 1e-6, target="weight", quality="fast")
    model.fit(table, schema, entropy=sp.UnsafeSeededEntropy(5))
    held = np.bincount(weight, minlength=32)
    drawn = np.bincount(model.sample(n, seed=1, frame="pyarrow")["weight"].to_numpy(), minlength=32)
    assert not model.release_.card.plan.get("classes noise")
    assert (drawn[held > 250] > 0).all()
