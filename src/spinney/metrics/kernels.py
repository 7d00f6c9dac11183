"""Kernel density, kernel metric and maximum mean discrepancy (MMD) of weighted sets. NOT PRIVATE.

The kernel is K(x, y) = exp(-||x-y||^2 / (2 sigma^2)), given by its `bandwidth` sigma or by gamma = 1/(2 sigma^2). With
weights that add up to 1 (by default 1/n each):

    KD_P(x)     = sum_p w_p K(x, p)
    kappa(P, Q) = sum_p sum_q w_p w_q K(p, q)
    MMD(P, Q)^2 = kappa(P, P) + kappa(Q, Q) - 2 kappa(P, Q)

MMD is the distance of the two kernel densities in the kernel's Hilbert space, that is, the norm of the density of the
signed set P - Q; that is how it is computed. Values read off the real table are as sensitive as the table.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spinney.errors import InputError, ParameterError
from spinney.metrics.points import Floats, WeightedSet, read_gamma, read_pair, read_points, read_set
from spinney.metrics.sums import density_sums, inner_sum, square_sum


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
