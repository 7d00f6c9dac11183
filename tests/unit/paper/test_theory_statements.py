"""Lemmas and tails of `spinney_paper.theory`: against independent computations, and against what the paper prints."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from spinney.errors import ParameterError
from spinney_paper import theory

EPSILONS = (0.1, 1.0, 3.0)


def exceeds(n_bins: int, beta: float, epsilon: float, factor: int, noise: str) -> float:
    """Exact chance that one of `n_bins` noises is larger than beta."""
    scale = factor / epsilon
    one = 2 * (stats.laplace(scale=scale) if noise == "laplace" else stats.dlaplace(1 / scale)).sf(beta)
    return -math.expm1(n_bins * math.log1p(-one))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("factor", [1, 2])
def test_tails_and_mean_sizes(epsilon, factor):
    """Tails and mean sizes are those of scipy's laws, continuous and discrete."""
    public = {"epsilon": epsilon, "factor": factor}
    continuous, discrete = stats.laplace(scale=factor / epsilon), stats.dlaplace(epsilon / factor)
    assert theory.laplace_tail(2.5, **public) == pytest.approx(continuous.sf(2.5))
    assert theory.discrete_laplace_tail(3, **public) == pytest.approx(discrete.sf(2))
    sizes = np.arange(1, 5000)
    assert theory.discrete_laplace_mean_size(**public) == pytest.approx(2 * sizes @ discrete.pmf(sizes))


def test_erratum_3_mean_size_of_laplace_noise():
    """E|Lap(2/epsilon)| is 2/epsilon by integration; the printed 1/epsilon is not."""
    for epsilon in EPSILONS:
        law = stats.laplace(scale=2 / epsilon)
        mean = 2 * integrate.quad(lambda x: x * law.pdf(x), 0, 100 / epsilon)[0]  # noqa: B023 (used at once)
        assert theory.laplace_mean_size(epsilon=epsilon) == pytest.approx(mean)
        assert mean != pytest.approx(1 / epsilon)


@pytest.mark.parametrize("noise", ["laplace", "discrete"])
@pytest.mark.parametrize("n_bins", [1, 7, 1000])
@pytest.mark.parametrize("delta", [0.001, 0.05, 0.5])
@pytest.mark.parametrize("factor", [1, 2])
def test_the_largest_noise_is_not_exceeded(noise, n_bins, delta, factor):
    """The exact chance of a larger noise is at most delta, and a beta three quarters as large would not do."""
    for epsilon in EPSILONS:
        beta = theory.largest_noise(n_bins, epsilon=epsilon, delta=delta, factor=factor, noise=noise)
        assert exceeds(n_bins, beta, epsilon, factor, noise) <= delta * (1 + 1e-12)
        shorter = beta - 1 if noise == "discrete" else 0.75 * beta
        union = n_bins * 2 * (stats.dlaplace(epsilon / factor).sf(shorter) if noise == "discrete" else 1)
        if noise == "laplace" and delta < 0.1:
            assert exceeds(n_bins, shorter, epsilon, factor, noise) > delta
        elif noise == "discrete" and beta > 0:
            assert union > delta  # the smallest whole beta by the union bound


def test_the_printed_largest_noise_is_ours_at_its_edge():
    """4/epsilon · log(1/delta) is our beta at J = 1/delta, no smaller below, and too small above."""
    for n_bins in (2, 64, 4096):
        delta, printed = 1 / n_bins, 4 * math.log(n_bins)
        same = theory.largest_noise(n_bins, epsilon=1, delta=delta, noise="laplace")
        assert same == pytest.approx(printed)
        assert theory.largest_noise(n_bins // 2, epsilon=1, delta=delta, noise="laplace") < printed
        assert exceeds(n_bins * n_bins * 4, printed, 1, 2, "laplace") > delta


@pytest.mark.parametrize("bandwidth", [0.5, 1.0, 3.0])
def test_perturbation_lemma(bandwidth):
    """No kernel value moves further than the bound, and for small steps some move almost as far."""
    y = np.linspace(-6, 6, 20_001) * bandwidth
    for step in (0.01, 0.3, 1.0, 5.0):
        moved = np.abs(np.exp(-(y**2) / (2 * bandwidth**2)) - np.exp(-((y - step) ** 2) / (2 * bandwidth**2))).max()
        assert moved <= theory.perturbation_bound(step, bandwidth=bandwidth)
    assert theory.perturbation_bound(0.01, bandwidth=bandwidth) == pytest.approx(0.01 / bandwidth / math.sqrt(math.e))


def test_erratum_4_rounding_lemma():
    """Rows in the corner of their bins move the density by almost the bound; max(·, 1) never says anything."""
    width, n_columns = 0.1, 2
    corner = np.full(n_columns, width / 2)  # seen from the centre at 0
    line = np.linspace(-3, 3, 2001)[:, None] * corner / np.linalg.norm(corner)
    change = np.abs(np.exp(-(line**2).sum(1) / 2) - np.exp(-((line - corner) ** 2).sum(1) / 2)).max()
    bound = theory.rounding_bound(width, n_columns=n_columns)
    assert bound / 1.01 < change <= bound
    assert theory.rounding_bound(100, n_columns=n_columns) == 1
    printed = [max(w * math.sqrt(n_columns) / (2 * math.sqrt(math.e)), 1) for w in (1e-6, 0.1, 10)]
    assert min(printed) >= 1  # kernel densities are never further apart anyway


def decisions(side: float, s1: float, s2: float, n_columns: int, *, as_printed: bool) -> int:
    """Noisy decisions that matter on the longest path of Algorithm 3, by cutting a box column after column."""
    edges, axis, n_decisions = [side] * n_columns, 0, 0
    while not (max(edges) < s2 if as_printed else max(edges) <= s2):
        n_decisions += max(edges) <= s1
        edges[axis] /= 2
        axis = (axis + 1) % n_columns
    return n_decisions


@pytest.mark.parametrize("n_columns", [1, 2, 5])
def test_erratum_2_data_dependent_levels(n_columns):
    """Cutting boxes takes d·log2(s1/s2) decisions, not log2(s1/s2); the printed "< s2" takes d more than paid for."""
    levels = theory.data_dependent_levels(largest_edge=2, smallest_edge=0.25, n_columns=n_columns)
    assert levels == decisions(16, 2, 0.25, n_columns, as_printed=False) == 3 * n_columns
    assert (levels == math.log2(2 / 0.25)) == (n_columns == 1)
    assert decisions(16, 2, 0.25, n_columns, as_printed=True) == levels + n_columns


def n_empty_leaves(rows: set[int], fixed_depth: int, max_depth: int, *, splits_empty: bool) -> int:
    """Empty leaves of the tree over 2^max_depth cells that splits all occupied nodes, and empty ones if told so."""

    def visit(depth: int, prefix: int) -> int:
        is_empty = not any(row >> (max_depth - depth) == prefix for row in rows)
        if depth == max_depth or (depth >= fixed_depth and is_empty and not splits_empty):
            return int(is_empty)
        return visit(depth + 1, 2 * prefix) + visit(depth + 1, 2 * prefix + 1)

    return visit(0, 0)


def test_number_of_empty_bins():
    """Lemma 29 holds where empty nodes stay whole, and fails for a tree that splits them."""
    rng = np.random.default_rng(0)
    for fixed_depth in range(7):
        for n_rows in (1, 2, 5):
            rows = set(rng.integers(0, 64, n_rows).tolist())
            most = theory.most_empty_bins(n_rows, fixed_depth=fixed_depth, max_depth=6)
            assert n_empty_leaves(rows, fixed_depth, 6, splits_empty=False) <= most
    assert n_empty_leaves({0}, 0, 6, splits_empty=False) == 6
    assert n_empty_leaves({0}, 0, 6, splits_empty=True) == 63 > theory.most_empty_bins(1, fixed_depth=0, max_depth=6)


@pytest.mark.parametrize("factor", [1, 2])
def test_the_cutoff_spares_empty_bins(factor):
    """Exact chance that one of the most empty nodes passes tau: at most delta; half of tau lets many pass."""
    n_rows, fixed_depth, max_depth, epsilon, delta = 50, 4, 9, 1.5, 0.01
    tau = theory.cutoff_sparing_empty_bins(
        n_rows, fixed_depth=fixed_depth, max_depth=max_depth, epsilon=epsilon, delta=delta, factor=factor
    )
    n_empty = theory.most_empty_bins(n_rows, fixed_depth=fixed_depth, max_depth=max_depth)
    scale = factor * (max_depth - fixed_depth) / epsilon
    for law in (stats.laplace(scale=scale), stats.dlaplace(1 / scale)):
        assert 1 - law.cdf(tau) ** n_empty <= delta
        assert 1 - law.cdf(tau / 2) ** n_empty > 0.5


def test_thresholds_of_tree_and_grid_agree():
    """The tree's t is the grid's for 2^h bins at delta = 2^-h, and the printed 8/epsilon · log(1/delta)."""
    for depth in (1, 10, 30):
        t = theory.tree_threshold(depth, epsilon=0.5)
        assert t == pytest.approx(8 / 0.5 * depth * math.log(2))
        assert t == pytest.approx(theory.suggest_threshold(2**depth, epsilon=0.5, delta=2.0**-depth, noise="laplace"))


@pytest.mark.parametrize("n_columns", [1, 2, 3, 4, 5, 10, 31])
def test_gaussian_tails(n_columns):
    """The finite sum is scipy's chi-square tail; the radius of Laurent and Massart is far enough, and not absurdly."""
    for radius in (0, 0.1, 1, 3, 6, 12):
        exact = stats.chi2(n_columns).sf(radius**2)
        assert theory.norm_tail(radius, n_columns=n_columns) == pytest.approx(exact, rel=1e-9)
    for tail in (0.5, 1e-3, 1e-9):
        radius = theory.norm_radius(tail, n_columns=n_columns)
        assert theory.norm_tail(radius, n_columns=n_columns) <= tail
        assert tail == 0.5 or theory.norm_tail(0.7 * radius, n_columns=n_columns) > tail


def test_chernoff_lemma():
    """The corrected bound holds for any deviation; the printed one fails by orders of magnitude for large ones."""
    for n, p in ((1000, 0.001), (50, 0.2), (10_000, 0.3)):
        law = stats.binom(n, p)
        for deviation in (0.01, 0.5, 1, 4, 20):
            upper, lower = law.sf(n * p * (1 + deviation)), law.cdf(np.nextafter(n * p * (1 - deviation), -1))
            assert upper + lower <= theory.chernoff_tail(n * p, deviation=deviation)
    printed = 2 * math.exp(-(20**2) / 4)
    assert stats.binom(1000, 0.001).sf(21) > 1e6 * printed


def test_erratum_5_condition_of_the_gaussian_theorem():
    """With exponent 2 the condition passes where the proof's own M needs more rows than there are; with d it fails."""
    n, n_columns, sd_per_width, log_delta = 10**9, 5, 2, math.log(100)
    rows = n / math.log(n) ** (n_columns / 2)
    assert rows >= 16 * log_delta * (12 * sd_per_width) ** 2
    assert not rows >= 16 * log_delta * (12 * sd_per_width) ** n_columns
    printed_heavy = (12 * sd_per_width) ** n_columns * math.log(n) ** (n_columns / 2)
    assert 8 * printed_heavy * log_delta > n / 2  # the proof has <= here, at epsilon = 1
    with pytest.raises(ParameterError, match="n_rows=1000000000 is not above"):
        theory.gaussian_bound(n, epsilon=1, delta=0.01, data_sd=2, bin_width=1, edge=40, n_columns=n_columns)


def test_the_lemma_on_light_rows_asks_for_two_things_at_once():
    """log(w / s√2π) >= 8 and w√d/2 <= (√2-1) r, r being the lemma's own radius, meet for no n below e^(10^7)."""
    s, w, n_columns = 1, math.exp(8) * math.sqrt(2 * math.pi), 1
    log_rows = 1e7
    radius = s * math.sqrt(log_rows + n_columns * math.log(w / (s * math.sqrt(2 * math.pi))))
    assert w * math.sqrt(n_columns) / 2 > (math.sqrt(2) - 1) * radius


def test_threshold_bound_without_its_condition_is_negative():
    """The printed right-hand side drops below 0 where noise may swallow all rows; ours refuses."""
    n, heavy, light, log_delta = 100, 50, 20, math.log(50)
    printed = (light + 8 * heavy * log_delta) / (n - light - 4 * heavy * log_delta) + light / n
    assert printed < 0
    with pytest.raises(ParameterError, match="raise bin_width or epsilon"):
        theory.threshold_bound(
            n, n_heavy_bins=heavy, n_light_rows=light, n_bins=50, epsilon=1, delta=0.02, bin_width=0.1, n_columns=1
        )
