"""The sup-norm search: its bound is certified, and on easy sets it finds the supremum."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spinney.errors import ParameterError
from spinney_paper import kernels
from support import slow_metrics as twins


def dense_sup(p, q, gamma, n_axes):
    """The largest |KD_P - KD_Q| on a dense grid, and by how much the truth can exceed it (the slope is bounded)."""
    sigma = 1 / math.sqrt(2 * gamma)
    both = np.concatenate([p, q])
    ticks = [
        np.linspace(a - sigma, b + sigma, 20_001 if n_axes == 1 else 301)
        for a, b in zip(both.min(0), both.max(0), strict=True)
    ]
    grid = np.stack(np.meshgrid(*ticks, indexing="ij"), axis=-1).reshape(-1, n_axes)
    apart = kernels.kernel_density(p, grid, gamma=gamma, method="direct") - kernels.kernel_density(
        q, grid, gamma=gamma, method="direct"
    )
    half = math.sqrt(sum(((t[1] - t[0]) / 2) ** 2 for t in ticks))
    # |grad K| <= e^(-1/2) / sigma, and f is a difference of two means of kernels.
    return np.abs(apart).max(), 2 * half * math.exp(-0.5) / sigma


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 2), st.integers(1, 12), st.integers(1, 12), st.floats(0.2, 5), st.integers(0, 10_000))
@example(2, 4, 7, 1.0, 150)  # two bumps of nearly equal height, and all of the best starts on the lower one
def test_bound_holds_and_is_close(n_axes, n, m, bandwidth, seed):
    """Never above the true supremum, and at least 0.99 of the dense grid's on a few points in one or two dimensions."""
    rng = np.random.default_rng(seed)
    p, q = rng.normal(size=(n, n_axes)), rng.normal(0.5, 1, size=(m, n_axes))
    gamma = 1 / (2 * bandwidth**2)
    found = kernels.sup_distance(p, q, bandwidth=bandwidth)
    on_grid, slack = dense_sup(p, q, gamma, n_axes)
    assert found.at_least <= on_grid + slack
    assert found.at_least >= 0.99 * on_grid
    assert found.at_least <= kernels.mmd(p, q, bandwidth=bandwidth) + 1e-7
    assert kernels.mmd(p, q, bandwidth=bandwidth) <= kernels.mmd_bound_from_sup(on_grid + slack) + 1e-7


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 6), st.floats(1e-3, 1e3), st.integers(0, 10_000), st.floats(-6, 6))
def test_bound_is_certified_at_its_point(n_axes, bandwidth, seed, log_scale):
    """The bound stays below |f(point)| in ball arithmetic with 200 bits, and not by more than rounding."""
    rng = np.random.default_rng(seed)
    scale = 10.0**log_scale
    p, q = scale * rng.normal(size=(5, n_axes)), scale * rng.normal(size=(4, n_axes))
    found = kernels.sup_distance(p, q, bandwidth=scale * bandwidth)
    before, ctx.prec = ctx.prec, 200
    try:
        sigma = arb(scale * bandwidth)

        def height(points):
            total = arb(0)
            for row in points:
                square = sum(
                    (arb(Fraction(a).numerator) / Fraction(a).denominator - arb(b)) ** 2
                    for a, b in zip(row.tolist(), found.point, strict=True)
                )
                total += (-square / (2 * sigma**2)).exp()
            return total / len(points)

        truth = abs(height(p) - height(q))
        assert arb(found.at_least) <= truth
        assert float((truth - found.at_least).mid()) < 1e-13
    finally:
        ctx.prec = before


def test_two_points():
    """One point against another far away: the densities differ by 1 at either."""
    found = kernels.sup_distance([[0.0, 0.0]], [[50.0, 0.0]], bandwidth=1)
    assert 1 - 1e-13 < found.at_least <= 1
    assert found.point in ((0.0, 0.0), (50.0, 0.0))
    assert float(found) == found.at_least


def test_equal_sets_have_no_distance():
    """Nothing to find is no error."""
    assert kernels.sup_distance([[0.0], [1.0]], [[1.0], [0.0]], bandwidth=1).at_least == 0


def test_the_maximum_between_points_is_found():
    """Where no point lies, the climb leads to the bump between two of them."""
    p, q = [[-0.5], [0.5]], [[30.0]]
    found = kernels.sup_distance(p, q, bandwidth=0.9)
    assert found.point[0] == pytest.approx(0, abs=1e-3) or found.at_least == pytest.approx(1, abs=1e-12)
    tripled = kernels.sup_distance([[-0.5], [0.5]], [[30.0], [60.0], [90.0], [120.0]], bandwidth=0.9)
    assert tripled.point[0] == pytest.approx(0, abs=1e-3)
    assert tripled.at_least == pytest.approx(twins.kernel([0], [0.5], 1 / (2 * 0.81)), abs=1e-6)


@pytest.mark.parametrize("n_axes", [2, 6])
def test_large_sets(n_axes):
    """Two clouds, one shifted: the bound lies between the difference at the centres and MMD, for weights too."""
    rng = np.random.default_rng(n_axes)
    p, q = rng.normal(size=(20_000, n_axes)), rng.normal(size=(20_000, n_axes))
    q[:, 0] += 1
    found = kernels.sup_distance(p, q, bandwidth=1.5)
    places = np.zeros((1, n_axes))
    places[0, 0] = -0.6
    there = kernels.kernel_density(p, places, bandwidth=1.5) - kernels.kernel_density(q, places, bandwidth=1.5)
    assert 0.98 * abs(there[0]) <= found.at_least <= kernels.mmd(p, q, bandwidth=1.5)
    weights = np.full(20_000, 1 / 20_000)
    again = kernels.sup_distance(p, q, real_weights=weights, bandwidth=1.5)
    assert again == found


def test_bad_seed_is_named():
    """The seed is checked like everything else."""
    with pytest.raises(ParameterError, match="seed=-1"):
        kernels.sup_distance([0.0], [1.0], bandwidth=1, seed=-1)
