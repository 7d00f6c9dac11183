"""From noisy leaf moments to a density, step by step: totals, means, slopes, spread, boxes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spinney as sp
from spinney.privacy.noise.supnorm import SupNormNoise
from spinney.tree.release import density as source
from spinney.tree.release.density import (
    LARGEST_MEAN,
    automatic_spread,
    box_shares,
    coordinate_variance,
    exponential_slopes,
    exponential_variances,
    leaf_means,
    leaf_weights,
    project_to_total,
    reconstruct,
)
from spinney.tree.release.draw import EvenRows
from support.handmade_leaves import moments_by_hand, prefixes
from support.strategies import MODEST

SQUARE = sp.Schema({"x": sp.Real(0, 4), "y": sp.Real(-1, 1)})
LINE = sp.Schema({"x": sp.Real(0, 1)})
MEANS = np.array([-0.97, -0.9, -0.5, -0.1, -0.01, -1e-4, 0.0, 1e-9, 1e-3, 0.02, 0.3, 0.7, 0.95, 0.97])


# ------------------------------------------------------------------------------------------------ weights

counts_and_totals = st.tuples(
    st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=30).map(np.array), st.floats(0.01, 1e5)
)


@MODEST
@given(counts_and_totals)
def test_projection_meets_the_conditions_of_the_nearest_point(drawn) -> None:
    """Weights are not negative and add up; positive ones were all moved alike, and no other would gain by it."""
    counts, total = drawn
    weights = project_to_total(counts, total)
    tiny = 1e-9 * (1 + np.abs(counts).max() + total)
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(total, rel=1e-9, abs=tiny)
    moved = (counts - weights)[weights > 0]
    assert np.ptp(moved) <= tiny
    assert (counts[weights == 0] <= moved.mean() + tiny).all()


@MODEST
@given(counts_and_totals, st.integers(0, 2**32))
def test_no_other_weights_are_nearer(drawn, seed: int) -> None:
    """Points of the simplex drawn at random, and those half way to them, are farther from the counts."""
    counts, total = drawn
    weights = project_to_total(counts, total)
    distance = ((counts - weights) ** 2).sum()
    for other in total * np.random.default_rng(seed).dirichlet(np.full(len(counts), 0.3), 20):
        for point in (other, (other + weights) / 2):
            assert ((counts - point) ** 2).sum() >= distance * (1 - 1e-9) - 1e-6


def test_counts_that_add_up_stay_as_they_are() -> None:
    """There is nothing to mend in counts of the right total; a single leaf takes it all."""
    counts = np.array([3.0, 0.0, 7.0])
    assert project_to_total(counts, 10.0) == pytest.approx(counts)
    assert project_to_total(np.array([-50.0]), 10.0).tolist() == [10.0]


def test_a_total_far_below_rounding_still_lands_somewhere() -> None:
    """Where counts are too large for the total to show in them, nothing breaks."""
    weights = project_to_total(np.array([1e17, -3.0, 5.0]), 1.0)
    assert np.isfinite(weights).all()
    assert (weights[1:] == 0).all()


@pytest.mark.parametrize("small", [0.0, 5.0])
def test_large_counts_and_the_rest_keep_what_they_hold_together(small: float) -> None:
    """Twenty large leaves and 4,000 that drown in noise: each group has about its own sum, empty or not."""
    rng = np.random.default_rng(4)
    true = np.where(np.arange(4000) < 20, 500.0, small)
    noisy = true + rng.laplace(scale=10 / np.sqrt(2), size=4000)
    weights = leaf_weights(noisy, np.full(4000, 100.0), float(true.sum()))
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(true.sum())
    assert weights[:20].sum() == pytest.approx(10_000, rel=0.15)


@pytest.mark.parametrize("counts", [[5.0, 0.1, -3.0], [-2.0, -7.0], [0.2], [900.0, 800.0]])
def test_any_counts_are_fitted_to_the_total(counts: list[float]) -> None:
    """All of them noise, none of it noise, a single leaf: weights add up and none is negative."""
    weights = leaf_weights(np.array(counts), np.ones(len(counts)), 10.0)
    assert weights.sum() == pytest.approx(10)
    assert (weights >= 0).all()


# ------------------------------------------------------------------------------------------------ means


def test_means_without_noise_are_sums_over_weights() -> None:
    """No noise: S/w, whatever the lean; nothing but noise: the lean, whatever the sum; both within the limit."""
    weights, sums = np.array([10.0, 4.0]), np.array([[5.0, -2.0], [1.0, 4.0]])
    lean = np.array([[0.2, -0.3], [0.1, 0.0]])
    exact = leaf_means(weights, sums, lean, np.zeros(2))
    assert exact.ravel() == pytest.approx([0.5, -0.2, 0.25, LARGEST_MEAN])
    assert leaf_means(weights, sums, lean, np.full(2, 1e18)).ravel() == pytest.approx(lean.ravel())


def test_means_weigh_both_by_their_variance() -> None:
    """Where the noise of a mean has the variance of a row, 1/3, mean and lean count alike."""
    mean = leaf_means(np.array([10.0]), np.array([[6.0]]), np.array([[0.2]]), np.array([100 / 3]))
    assert mean.item() == pytest.approx((0.6 + 0.2) / 2)


def test_leaves_without_weight_lean_as_their_neighbours_do() -> None:
    """A weight of 0 divides nothing: its mean is the lean, and finite."""
    means = leaf_means(np.zeros(1), np.array([[1e3]]), np.array([[0.25]]), np.array([10.0]))
    assert means.item() == pytest.approx(0.25, abs=1e-5)


@pytest.mark.parametrize("n", [1, 3, 6])
def test_coordinate_variance_is_that_of_the_noise(n: int) -> None:
    """The formula without lattice agrees with the exact one at the rate of a step."""
    rate = 1 / 2048
    exact = SupNormNoise(Fraction(1, 2048), n).variance()
    assert coordinate_variance(np.array([n]), rate).item() == pytest.approx(exact, rel=1e-3)


# ------------------------------------------------------------------------------------------------ exponential law


NODES, SHARES = np.polynomial.legendre.leggauss(200)


def moment(alpha: float, power: int) -> float:
    """Moments of the density proportional to exp(alpha u) on [-1, 1], by quadrature."""
    weight = SHARES * np.exp(alpha * NODES - abs(alpha))
    return float((weight * NODES**power).sum() / weight.sum())


def test_slopes_have_their_means() -> None:
    """The density of a slope has the mean it was made for, to nine digits."""
    slopes = exponential_slopes(MEANS)
    found = np.array([moment(alpha, 1) for alpha in slopes])
    assert np.abs(found[np.abs(MEANS) > 1e-5] - MEANS[np.abs(MEANS) > 1e-5]).max() < 1e-9
    assert np.abs(found - MEANS).max() < 1e-5  # flatter than this is flat
    assert np.array_equal(np.sign(slopes[MEANS != 0]), np.sign(MEANS[MEANS != 0]))


def test_variances_are_those_of_the_density() -> None:
    """Against quadrature, on both sides of where the series takes over."""
    slopes = np.array([1e-6, 0.01, 0.0199, 0.0201, 0.5, -2.0, 10.0, 33.3])
    found = [moment(alpha, 2) - moment(alpha, 1) ** 2 for alpha in slopes]
    assert exponential_variances(slopes) == pytest.approx(found, abs=1e-8)


# ------------------------------------------------------------------------------------------------ spread

CAP = 0.7


def of_points(points: np.ndarray, depth: int) -> object:
    """Moments of points in the unit square on a fixed grid, without noise."""
    schema = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1)})
    side = 2 ** (depth // 2)
    leaves = {}
    for prefix in prefixes(depth):
        x, y = int(prefix[::2], 2), int(prefix[1::2], 2)
        inside = points[(np.floor(points * side).astype(int) == [x, y]).all(axis=1)]
        offsets = 2 * (inside * side - [x, y]) - 1
        leaves[prefix] = (len(inside), *offsets.sum(axis=0))
    return moments_by_hand(schema, leaves)


def spread_of(moments) -> float:
    density = reconstruct(moments, float(moments.noisy_steps[:, 0].sum() / moments.quantum))
    return automatic_spread(moments, density.weights, density.means, CAP)


def _evenly():
    """Leaves of equal weight and no offset, which is what even rows give."""
    made = moments_by_hand(LINE, dict.fromkeys(prefixes(3), (10, 0)))
    return made, np.full(8, 10.0), np.zeros((8, 1))


def test_even_rows_spread_as_far_as_allowed() -> None:
    """Rows all over the square look as wide as their leaves."""
    points = np.random.default_rng(1).random((20_000, 2))
    assert spread_of(of_points(points, 6)) == CAP
    assert automatic_spread(*_evenly(), 1.0) == pytest.approx(1, abs=1e-6)


def test_point_clusters_hardly_spread() -> None:
    """Rows on a few points lie on one side of most siblings, or at their border."""
    points = np.random.default_rng(2).random((5, 2))[np.arange(5000) % 5]
    assert spread_of(of_points(points, 6)) == pytest.approx(source._NARROWEST, abs=0.05)


def test_spread_lies_between_for_a_smooth_hill() -> None:
    """In between, spread follows the rows: a narrower hill has less of it."""
    rng = np.random.default_rng(3)
    hills = [np.clip(rng.normal(0.53, sd, (20_000, 2)), 0, 0.999) for sd in (0.02, 0.3)]
    narrow, wide = (spread_of(of_points(hill, 6)) for hill in hills)
    assert source._NARROWEST <= narrow < wide <= CAP


def test_spread_asks_only_siblings_that_lie_side_by_side() -> None:
    """Halves of a list of categories have no say, nor have values and nulls; without siblings the widest is taken."""
    schema = sp.Schema({"x": sp.Real(0, 1, nullable=True), "c": sp.Category(["a", "b", "c", "d"])})
    # First bits: null or not, first half of the list or not; then x, then c.
    leaves = {"00": (50, 0, 0), "01": (0, 0, 0), "10": (0, 0, 0), "11": (0, 0, 0)}
    made = moments_by_hand(schema, leaves)
    assert automatic_spread(made, np.array([50.0, 0, 0, 0]), np.zeros((4, 2)), CAP) == CAP
    alone = moments_by_hand(LINE, {"": (10, 0)})
    assert automatic_spread(alone, np.array([10.0]), np.zeros((1, 1)), CAP) == CAP


def test_sibling_pairs() -> None:
    """Two leaves are siblings if they are the halves of one node: same depth and all bits but the last the same."""
    made = moments_by_hand(LINE, dict.fromkeys(["000", "001", "01", "100", "101", "110", "111"], (1, 0)))
    first, second = source._sibling_pairs(made)
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == [(0, 1), (3, 4), (5, 6)]
    for leaves in ({"": (1, 0)}, {"00": (1, 0), "01": (1, 0), "1": (1, 0)}):
        pairs = source._sibling_pairs(moments_by_hand(LINE, leaves))
        assert [part.tolist() for part in pairs] == ([[0], [1]] if len(leaves) > 1 else [[], []])


def test_sibling_pairs_of_long_codes() -> None:
    """Across the border between words too."""
    schema = sp.Schema({f"b{i}": sp.Boolean() for i in range(66)})
    stem = "01" * 32
    made = moments_by_hand(
        schema, {prefix: (1, *[0] * 66) for prefix in (stem + "0", stem + "10", stem + "11", "1" * 63 + "0")}
    )
    first, second = source._sibling_pairs(made)
    assert (first.tolist(), second.tolist()) == ([1], [2])


# ------------------------------------------------------------------------------------------------ density

LEAVES = {"00": (40, 10, -30), "01": (20, 0, 10), "10": (5, 4, 4), "110": (0, 0, 0), "111": (35, -30, 1)}


def test_without_noise_the_density_has_the_moments_of_its_leaves() -> None:
    """Counts become weights, sums become means."""
    density = reconstruct(moments_by_hand(SQUARE, LEAVES), 100)
    assert density.weights == pytest.approx([40, 20, 5, 0, 35], abs=1e-5)
    used = density.weights > 1
    expected = np.array([[10, -30], [0, 10], [4, 4], [0, 0], [-30, 1]])[used] / density.weights[used, None]
    assert density.means[used].ravel() == pytest.approx(expected.ravel(), abs=1e-6)
    assert (density.spread == density.spread[0, 0]).all()


def test_a_private_total_is_the_noisy_one() -> None:
    """Where the number of rows is not public the sum of noisy counts stands in, at least one row."""
    assert reconstruct(moments_by_hand(SQUARE, LEAVES), None).weights.sum() == pytest.approx(100)
    few = reconstruct(moments_by_hand(LINE, {"0": (-30, 0), "1": (-40, 0)}), None)
    assert few.weights.tolist() == [1.0, 0.0]


def test_axes_without_an_offset_are_flat_and_wide() -> None:
    """A category's positions are even over the leaf, whatever stands in the sums."""
    schema = sp.Schema({"c": sp.Category(["a", "b", "c"]), "x": sp.Real(0, 1)})
    density = reconstruct(moments_by_hand(schema, {"0": (30, 25, 5), "1": (10, -9, 9)}), 40)
    assert (density.means[:, 0] == 0).all()
    assert (density.spread[:, 0] == 1).all()
    assert (density.means[:, 1] != 0).all()


def test_all_rows_lie_in_the_whole_box() -> None:
    """Shares over everything add up to the total exactly, and those of boxes side by side to their union."""
    density = reconstruct(moments_by_hand(SQUARE, LEAVES), 100)
    assert box_shares(density, np.array([[0.0, -1]]), np.array([[4.0, 1]])).item() == pytest.approx(100, rel=1e-12)
    edges = np.array([0, 0.3, 1.7, 2, 2.9, 4.0])
    slices = box_shares(
        density,
        np.stack([edges[:-1], np.full(5, -np.inf)], axis=1),
        np.stack([edges[1:], np.full(5, np.inf)], axis=1),
    )
    assert slices.sum() == pytest.approx(100, rel=1e-12)
    assert (slices >= 0).all()
    assert np.ptp(slices) > 10
    assert box_shares(density, np.array([[1.0, 0]]), np.array([[1.0, 1]])).item() == 0
    assert box_shares(density, np.array([[9.0, 0]]), np.array([[10.0, 1]])).item() == 0


def test_shares_are_what_rows_show() -> None:
    """Rows drawn from the density fall into boxes as often as the shares say, nulls into none."""
    schema = sp.Schema({"x": sp.Real(0, 4, nullable=True), "y": sp.Real(-1, 1)})
    leaves = {"00": (30, 10, -20), "01": (25, 5, 10), "1": (45, 0, 20)}
    density = reconstruct(moments_by_hand(schema, leaves), 100)
    n_rows = 40_000
    x, y = EvenRows(density).draw(n_rows, np.random.default_rng(4))
    rng = np.random.default_rng(5)
    low = rng.uniform([0, -1], [3, 0.5], (30, 2))
    high = low + rng.uniform(0.1, 2, (30, 2))
    shares = box_shares(density, low, high)
    for (x1, y1), (x2, y2), share in zip(low, high, shares, strict=True):
        seen = ((x >= x1) & (x < x2) & (y >= y1) & (y < y2)).mean()
        assert 100 * seen == pytest.approx(share, abs=0.4)
    assert np.ptp(shares) > 10
    everything = box_shares(density, np.array([[-np.inf, -np.inf]]), np.array([[np.inf, np.inf]])).item()
    assert everything == pytest.approx(100 * (1 - np.isnan(x).mean()), abs=0.05)
