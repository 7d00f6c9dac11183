"""Sup-norm distance of two kernel densities: a search that returns a point and a certified lower bound. NOT PRIVATE.

f = KD_P - KD_Q is smooth, has many local extremes, and no finite search finds its supremum for certain. Any point gives
a lower bound, though. The search starts where |f| is largest among a sample of both sets and, in up to three
dimensions, a coarse grid; the best starts that are a bandwidth apart climb along the gradient. The bound returned is
|f| at the best point, summed without rounding and less everything that rounding of the terms could have added. From
above, sup <= MMD.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spinney.compiled import compiled
from spinney.errors import ParameterError
from spinney.metrics.points import Floats, WeightedSet, read_gamma, read_pair
from spinney.metrics.sums import density_sums
from spinney.parallel import each
from spinney.progress import waiting

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
