"""Kernel density, kernel metric, MMD and sup-norm distance of weighted sets of points. NOT PRIVATE.

The kernel is K(x, y) = exp(-||x-y||^2 / (2 sigma^2)), with sigma its `bandwidth`, or gamma = 1/(2 sigma^2).
With weights that add up to 1 (by default 1/n each):

    KD_P(x)     = sum_p w_p K(x, p)
    kappa(P, Q) = sum_p sum_q w_p w_q K(p, q)
    MMD(P, Q)^2 = kappa(P, P) + kappa(Q, Q) - 2 kappa(P, Q)
    sup         = max_x |KD_P(x) - KD_Q(x)| <= MMD(P, Q)

MMD is the distance of the two kernel densities in the kernel's Hilbert space, that is, the norm of the density
of the signed set P - Q; that is how it is computed (`sums.py`). Values read off the real table are as sensitive
as the table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spinney.compiled import compiled
from spinney.errors import InputError, ParameterError
from spinney.machine import each
from spinney.metrics.reading import Floats
from spinney.progress import waiting
from spinney_paper.kernels.sums import (
    WeightedSet,
    density_sums,
    inner_sum,
    read_gamma,
    read_pair,
    read_points,
    read_set,
    square_sum,
)


def kernel_density(
    points: Any,
    at: Any,
    *,
    weights: ArrayLike | None = None,
    bandwidth: float | None = None,
    gamma: float | None = None,
    method: str = "auto",
) -> Floats:
    """KD_P(x) = sum_p w_p K(x, p) at every x of `at`. Not private if the points are.

    The paper's density: between 0 and 1, not normalised to integrate to 1.

    Args:
        points: the weighted set P.
        at: the places x, with as many columns as the points.
        weights: weights >= 0 that add up to 1; by default equal.
        bandwidth: sigma of the kernel; or give gamma = 1/(2 sigma^2).
        gamma: see bandwidth.
        method: how sums are made, as in `mmd`.
    """
    scale = read_gamma(bandwidth, gamma)
    weighted = read_set(points, weights, "points", weights_argument="weights")
    places = read_points(at, "at")
    if places.shape[1] != weighted.n_axes:
        raise InputError(f"at has {places.shape[1]} columns where points has {weighted.n_axes}")
    return density_sums(weighted, places, scale, method) if len(places) else np.empty(0)


def kernel_metric(
    first: Any,
    second: Any,
    *,
    first_weights: ArrayLike | None = None,
    second_weights: ArrayLike | None = None,
    bandwidth: float | None = None,
    gamma: float | None = None,
    method: str = "auto",
) -> float:
    """kappa(P, Q) = sum_p sum_q w_p w_q K(p, q), the mean of the kernel matrix. Not private if a set is.

    `kernel_metric(x, x)` sums each pair once.

    Args:
        first: the weighted set P.
        second: the weighted set Q.
        first_weights: weights >= 0 that add up to 1; by default equal.
        second_weights: the same for the second set.
        bandwidth: sigma of the kernel; or give gamma = 1/(2 sigma^2).
        gamma: see bandwidth.
        method: how sums are made, as in `mmd`.
    """
    scale = read_gamma(bandwidth, gamma)
    one, two = read_pair(first, second, ("first", "second"), (first_weights, second_weights))
    if first is second and first_weights is second_weights:
        return square_sum(one, scale, method)
    return inner_sum(one, two, scale, method)


def mmd(
    real: Any,
    synthetic: Any,
    *,
    real_weights: ArrayLike | None = None,
    synthetic_weights: ArrayLike | None = None,
    bandwidth: float | None = None,
    gamma: float | None = None,
    kappa_real: float | None = None,
    method: str = "auto",
) -> float:
    """MMD(P, Q), the paper's utility measure (the V-statistic). Lower is better, 0 to sqrt 2. Not private.

    Args:
        real: points of the real table.
        synthetic: points of the synthetic one, for example from `weighted_points()`.
        real_weights: weights >= 0 that add up to 1; by default equal.
        synthetic_weights: the same for the synthetic points.
        bandwidth: sigma of the kernel; or give gamma = 1/(2 sigma^2).
        gamma: see bandwidth.
        kappa_real: `kernel_metric(real, real)` if known already; saves time when many sets meet the same real one.
        method: "direct" term by term, "fourier" (at most 3 dimensions), "auto" for the faster of the two, or "gpu",
            term by term on a CUDA card with torch or cupy.
    """
    scale = read_gamma(bandwidth, gamma)
    one, two = read_pair(real, synthetic, ("real", "synthetic"), (real_weights, synthetic_weights))
    return _distance(one, two, scale, kappa_real, method)


def rkhs_distance(
    real: Any,
    synthetic: Any,
    *,
    real_weights: ArrayLike | None = None,
    synthetic_weights: ArrayLike | None = None,
    bandwidth: float | None = None,
    gamma: float | None = None,
    kappa_real: float | None = None,
    method: str = "auto",
) -> float:
    """Norm of the difference of two kernel densities, for weights of any sign and sum. Lower is better. Not private.

    With weights that add up to 1 it is `mmd`. Balog et al. publish weights that do not.

    Args:
        real: points of the real table.
        synthetic: points of the synthetic one.
        real_weights: weights of any sign and sum; by default equal, with a sum of 1.
        synthetic_weights: the same for the synthetic points.
        bandwidth: sigma of the kernel; or give gamma = 1/(2 sigma^2).
        gamma: see bandwidth.
        kappa_real: `kernel_metric(real, real)` if known already.
        method: how sums are made, as in `mmd`.
    """
    scale = read_gamma(bandwidth, gamma)
    weights = (real_weights, synthetic_weights)
    one, two = read_pair(real, synthetic, ("real", "synthetic"), weights, are_shares=False)
    return _distance(one, two, scale, kappa_real, method)


def mmd_squared_unbiased(
    real: Any,
    synthetic: Any,
    *,
    real_weights: ArrayLike | None = None,
    synthetic_weights: ArrayLike | None = None,
    bandwidth: float | None = None,
    gamma: float | None = None,
    method: str = "auto",
) -> float:
    """MMD_u^2(P, Q), an unbiased estimate of the populations' MMD^2. Lower is better; may be negative. Not private.

    Pairs of a point with itself are left out: kappa(P, P) becomes (kappa(P, P) - sum w_p^2) / (1 - sum w_p^2), which
    for equal weights is the mean over the n(n-1) other pairs.

    Args:
        real: points of the real table.
        synthetic: points of the synthetic one.
        real_weights: weights >= 0 that add up to 1; by default equal. Two points at least need a positive one.
        synthetic_weights: the same for the synthetic points.
        bandwidth: sigma of the kernel; or give gamma = 1/(2 sigma^2).
        gamma: see bandwidth.
        method: how sums are made, as in `mmd`.
    """
    scale = read_gamma(bandwidth, gamma)
    one, two = read_pair(real, synthetic, ("real", "synthetic"), (real_weights, synthetic_weights))
    own = _kappa_unbiased(one, scale, method, "real") + _kappa_unbiased(two, scale, method, "synthetic")
    return own - 2 * inner_sum(one, two, scale, method)


def mmd_squared_to_gaussian(
    sample: Any,
    *,
    weights: ArrayLike | None = None,
    bandwidth: float | None = None,
    gamma: float | None = None,
    method: str = "auto",
) -> float:
    """MMD_u^2 between N(0, I) itself and a sample, in closed form (supplement H). Not private if the sample is real.

    (s/(2+s))^(d/2) - 2 (s/(1+s))^(d/2) sum_i w_i exp(-||z_i||^2/(2(1+s))) + the mean of K over pairs of different
    points, with s = sigma^2. The paper's formula calls the bandwidth gamma; here gamma is always 1/(2 sigma^2).

    Args:
        sample: the points that are compared with the normal law, at least two.
        weights: weights >= 0 that add up to 1; by default equal.
        bandwidth: sigma of the kernel; or give gamma = 1/(2 sigma^2).
        gamma: see bandwidth.
        method: how sums are made, as in `mmd`.
    """
    scale = read_gamma(bandwidth, gamma)
    weighted = read_set(sample, weights, "sample", weights_argument="weights")
    half_d, s = weighted.n_axes / 2, 1 / (2 * scale)
    heights = np.exp(-(weighted.points**2).sum(axis=1) / (2 * (1 + s)))
    gaussian = (s / (2 + s)) ** half_d
    cross = (s / (1 + s)) ** half_d * float(weighted.weights @ heights)
    return float(gaussian - 2 * cross + _kappa_unbiased(weighted, scale, method, "sample"))


def sup_bound_from_mmd(distance: float) -> float:
    """The largest sup-norm distance of kernel densities that an MMD allows: MMD <= e implies sup <= e.

    |f(x)| = |<f, K(x, .)>| <= ||f|| sqrt(K(x, x)) = ||f||; no two densities are further apart than 1.

    Args:
        distance: an MMD, 0 or more.
    """
    return min(_checked_bound(distance), 1.0)


def mmd_bound_from_sup(distance: float) -> float:
    """The largest MMD that a sup-norm distance of kernel densities allows: sup <= e implies MMD <= sqrt(2 e).

    MMD^2 = sum_p w_p f(p) - sum_q w_q f(q) <= 2 sup |f| for f = KD_P - KD_Q.

    Args:
        distance: a sup-norm distance, 0 or more.
    """
    return math.sqrt(2 * min(_checked_bound(distance), 1.0))


def _checked_bound(distance: float) -> float:
    if not distance >= 0:
        raise ParameterError(f"distance={distance!r} is not a number >= 0")
    return float(distance)


def _distance(one: WeightedSet, two: WeightedSet, gamma: float, kappa_real: float | None, method: str) -> float:
    if kappa_real is None:
        squared = square_sum(one - two, gamma, method)
    else:
        if not (isinstance(kappa_real, (int, float)) and 0 <= kappa_real < math.inf):
            raise ParameterError(
                f"kappa_real={kappa_real!r} is not a finite number >= 0; pass kernel_metric(real, real)"
            )
        squared = kappa_real + square_sum(two, gamma, method) - 2 * inner_sum(one, two, gamma, method)
    return math.sqrt(max(squared, 0.0))


def _kappa_unbiased(weighted: WeightedSet, gamma: float, method: str, argument: str) -> float:
    own = float(weighted.weights @ weighted.weights)
    if len(weighted) < 2 or own >= 1:
        raise InputError(f"{argument} has fewer than two points of positive weight; the unbiased form needs two")
    return (square_sum(weighted, gamma, method) - own) / (1 - own)


# ---------------------------------------------------------------------------------------------------- sup-norm distance
# Sup-norm distance of two kernel densities: a search that returns a point and a certified lower bound. NOT PRIVATE.
#
# f = KD_P - KD_Q is smooth, has many local extremes, and no finite search finds its supremum for certain. Any point
# gives a lower bound, though. The search starts where |f| is largest among a sample of both sets and, in up to three
# dimensions, a coarse grid; the best starts that are a bandwidth apart climb along the gradient. The bound returned
# is |f| at the best point, summed without rounding and less everything that rounding of the terms could have added.
# From above, sup <= MMD.


_N_STARTS = 2048  # points of each set that are looked at
_N_GRID = 4096
_N_CLIMBS = 8
_N_STEPS = 80
_UNIT_ROUNDOFF = 2.0**-53


@dataclass(frozen=True, slots=True)
class SupDistance:
    """Where the kernel densities were found to differ most, and by how much at least.

    Attributes:
        point: where that is.
        at_least: the difference there, which the supremum is not below.
    """

    point: tuple[float, ...]
    at_least: float

    def __float__(self) -> float:
        return self.at_least


@waiting("searching the largest difference")
def sup_distance(
    real: Any,
    synthetic: Any,
    *,
    real_weights: ArrayLike | None = None,
    synthetic_weights: ArrayLike | None = None,
    bandwidth: float | None = None,
    gamma: float | None = None,
    seed: int = 0,
) -> SupDistance:
    """A point x with large |KD_P(x) - KD_Q(x)| and a lower bound of the supremum. Lower is better, 0 to 1. Not private.

    `at_least` never exceeds the true supremum, rounding included. It is not an upper bound; `mmd` is one. On densities
    with few bumps the search finds the supremum to several digits.

    Args:
        real: points of the real table.
        synthetic: points of the synthetic one.
        real_weights: weights >= 0 that add up to 1; by default equal.
        synthetic_weights: the same for the synthetic points.
        bandwidth: sigma of the kernel; or give gamma = 1/(2 sigma^2).
        gamma: see bandwidth.
        seed: which points of large sets serve as starts.
    """
    scale = read_gamma(bandwidth, gamma)
    one, two = read_pair(real, synthetic, ("real", "synthetic"), (real_weights, synthetic_weights))
    difference = one - two
    try:
        rng = np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise ParameterError(f"seed={seed!r} is not a non-negative whole number") from None
    starts = np.unique(np.concatenate([*(_sample(each, rng) for each in (one, two)), _grid(difference, scale)]), axis=0)
    heights = density_sums(difference, starts, scale, "auto")
    best = _apart(starts[np.argsort(-np.abs(heights), kind="stable")], 1 / math.sqrt(2 * scale))
    places = np.concatenate([best, _climb(difference, best, scale)])
    bounds = [_certified(difference, place, scale) for place in places]
    top = int(np.argmax(bounds))
    return SupDistance(tuple(places[top].tolist()), bounds[top])


def _sample(weighted: WeightedSet, rng: np.random.Generator) -> Floats:
    if len(weighted) <= _N_STARTS:
        return weighted.points
    return weighted.points[rng.choice(len(weighted), _N_STARTS, replace=False)]


def _apart(ranked: Floats, distance: float) -> Floats:
    """The first few of ranked points that are no nearer than that to each other: the best may all lie on one bump."""
    chosen = ranked[:1]
    while len(chosen) < _N_CLIMBS and len(ranked):
        ranked = ranked[((ranked - chosen[-1]) ** 2).sum(axis=1) >= distance**2]
        chosen = np.concatenate([chosen, ranked[:1]])
    return chosen


def _grid(weighted: WeightedSet, gamma: float) -> Floats:
    """Half a bandwidth apart over the box of the points where that is affordable, as fine as it is otherwise."""
    n_axes = weighted.n_axes
    if n_axes > 3:
        return np.empty((0, n_axes))
    low, high = weighted.points.min(axis=0), weighted.points.max(axis=0)
    most = round(_N_GRID ** (1 / n_axes))
    sigma = 1 / math.sqrt(2 * gamma)
    ticks = [
        np.linspace(a, b, int(np.clip(math.ceil(min((b - a) / sigma * 2, most)) + 1, 1, most)))
        for a, b in zip(low, high, strict=True)
    ]
    return np.stack(np.meshgrid(*ticks, indexing="ij"), axis=-1).reshape(-1, n_axes)


def _climb(difference: WeightedSet, starts: Floats, gamma: float) -> Floats:
    """Local extremes of f above the starts, by gradient steps whose length adapts.

    grad f / (2 gamma f) is the mean-shift step, exact for one point; steps grow while they lead up, else halve.
    """
    places, lengths = starts.copy(), np.ones(len(starts))
    heights, slopes = _values_and_slopes(difference, places, gamma)
    for _ in range(_N_STEPS):
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = lengths[:, None] * slopes / (2 * gamma * heights[:, None])
        steps[~np.isfinite(steps).all(axis=1)] = 0.0
        tried = places + steps
        new_heights, new_slopes = _values_and_slopes(difference, tried, gamma)
        is_better = np.abs(new_heights) > np.abs(heights)
        places[is_better], heights[is_better] = tried[is_better], new_heights[is_better]
        slopes[is_better] = new_slopes[is_better]
        lengths = np.where(is_better, lengths * 1.5, lengths / 2)
        if (lengths < 1e-6).all():
            break
    return places


def _values_and_slopes(difference: WeightedSet, places: Floats, gamma: float) -> tuple[Floats, Floats]:
    """The values of f and its gradient at each place."""
    heights, slopes = np.empty(len(places)), np.empty_like(places)

    def fill(index: int) -> None:
        heights[index] = _fill_slope(difference.points, difference.weights, places[index], gamma, slopes[index])

    each(fill, range(len(places)))
    return heights, slopes


@compiled
def _fill_slope(points: Floats, weights: Floats, place: Floats, gamma: float, slope: Floats) -> float:
    """f(y) = sum w_i K(x_i, y); its gradient 2 gamma sum w_i (x_i - y) K(x_i, y) goes into `slope`."""
    height = 0.0
    slope[:] = 0.0
    for i in range(points.shape[0]):
        square = 0.0
        for axis in range(place.size):
            step = points[i, axis] - place[axis]
            square += step * step
        value = weights[i] * math.exp(-gamma * square)
        height += value
        for axis in range(place.size):
            slope[axis] += 2.0 * gamma * value * (points[i, axis] - place[axis])
    return height


def _certified(difference: WeightedSet, place: Floats, gamma: float) -> float:
    """A number that |f(place)| certainly reaches.

    A term w e^-a is computed with a relative error of at most (d + 7) u in a (differences, squares, their sum, gamma)
    and 4 u in exp, product and weight, u = 2^-53. As a e^-a <= 1/e, the terms together are off by at most
    sum |w| ((d + 8)/e + 5) u; the sum itself is rounded once. All doubled, to be beyond doubt.
    """
    with np.errstate(over="ignore", under="ignore"):
        squares = ((difference.points - place) ** 2).sum(axis=1)
        value = abs(math.fsum(difference.weights * np.exp(-gamma * squares)))
    mass = math.fsum(np.abs(difference.weights))
    slack = 2 * mass * ((difference.n_axes + 8) / math.e + 6) * _UNIT_ROUNDOFF
    return max(0.0, value - slack)
