"""One trial of a mechanism: fit with seeded noise, measure the distance of the released points from the real ones.

The distance is the norm of the difference of the two kernel densities in the kernel's Hilbert space. A release without
bins stands for the empty set, which is sqrt(kappa) away from the real one, kappa(P, P) being summed once per data set.

Up to twenty dimensions the sums are `spinney.metrics`'s own. Beyond that, squared distances are cheaper as
|x|² + |y|² - 2 x·y, by products of matrices; around a common centre that costs a few of the sixteen digits.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.experiments.results import Record
from spinney.metrics import kernel_metric, rkhs_distance
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.schema.table import Schema
from spinney.synthesizers.base import Synthesizer
from spinney.synthesizers.tree import KDTreeSynthesizer

Points = NDArray[np.float64]  # (n, d)
Weights = NDArray[np.float64]  # (n,)

_MANY_AXES = 20
_BLOCK = 1000

# The paper's algorithms release bin centres; Spinney leans them toward the denser neighbour.
PLACEMENT = {"paper": "centre", "best": "centre", "spinney": "tilted"}
NAMES = {
    "paper": "paper's tree, automatic settings",
    "best": "paper's tree, best over settings",
    "spinney": "Spinney's default",
}


def tree(method: str, epsilon: str, **options: Any) -> KDTreeSynthesizer:
    """The paper's tree, or Spinney's default one; what is not given follows from public quantities."""
    if method == "spinney":
        return KDTreeSynthesizer(epsilon, **options)
    return KDTreeSynthesizer(epsilon, rule="paper", placement="centre", **options)


def trial(
    model: Synthesizer, points: Points, schema: Schema, *, method: str, gamma: float, kappa: float, seed: int
) -> Record:
    """Fit and measure: the distance, the number of bins, and the depths of the plan."""
    model.fit(points, schema, entropy=UnsafeSeededEntropy(seed))
    plan, n_bins = model.plan_, model.card_.n_bins
    if n_bins == 0:
        mmd = math.sqrt(kappa)
    else:
        where, weights = model.weighted_points(placement=PLACEMENT[method])
        mmd = distance(points, where, weights, gamma=gamma, kappa=kappa)
    return {"mmd": rounded(mmd), "n_bins": n_bins, "fixed_depth": plan.fixed_depth, "max_depth": plan.max_depth}


def rounded(value: float, digits: int = 7) -> float:
    """As many significant digits as a figure can mean."""
    return float(f"{value:.{digits}g}")


def own_kappa(points: Points, *, gamma: float) -> float:
    """kappa(P, P), the mean of the kernel matrix."""
    if points.shape[1] <= _MANY_AXES:
        return kernel_metric(points, points, gamma=gamma)
    weights = np.full(len(points), 1 / len(points))
    return _square_sum(points - points.mean(axis=0), weights, gamma)


def distance(real: Points, points: Points, weights: Weights, *, gamma: float, kappa: float) -> float:
    """Distance of the real rows' kernel density from that of weighted points, kappa(real, real) being known."""
    if real.shape[1] <= _MANY_AXES:
        return rkhs_distance(real, points, synthetic_weights=weights, gamma=gamma, kappa_real=kappa)
    centre = real.mean(axis=0)
    one, two = real - centre, points - centre
    equal = np.full(len(real), 1 / len(real))
    cross = math.fsum(_in_parallel(_Tiles(one, equal, two, weights, gamma), _blocks(len(one)), 0))
    return math.sqrt(max(kappa + _square_sum(two, weights, gamma) - 2 * cross, 0.0))


def _square_sum(points: Points, weights: Weights, gamma: float) -> float:
    """Each pair once: the rows of a block against themselves, and twice against all that follow."""
    tiles = _Tiles(points, weights, points, weights, gamma)
    own = [tiles.sum(start, start, start + _BLOCK) for start in _blocks(len(points))]
    after = _in_parallel(tiles, _blocks(len(points)), _BLOCK)
    return math.fsum(own) + 2 * math.fsum(after)


def _blocks(n: int) -> range:
    return range(0, n, _BLOCK)


class _Tiles:
    """Parts of the kernel matrix of two weighted sets."""

    def __init__(self, one: Points, w: Weights, two: Points, v: Weights, gamma: float) -> None:
        self._one, self._two, self._w, self._v = one, two, w, v
        self._norm_one, self._norm_two = gamma * (one**2).sum(axis=1), gamma * (two**2).sum(axis=1)
        self._gamma = gamma

    def sum(self, start: int, first: int, stop: int | None = None) -> float:
        """Weighted kernel sum of one block of rows against columns first..stop."""
        if first >= len(self._two):
            return 0.0
        rows = slice(start, start + _BLOCK)
        total = 0.0
        for begin in range(first, len(self._two) if stop is None else min(stop, len(self._two)), 4 * _BLOCK):
            end = begin + 4 * _BLOCK if stop is None else min(begin + 4 * _BLOCK, stop)
            columns = slice(begin, end)
            tile = self._one[rows] @ self._two[columns].T
            tile *= 2 * self._gamma
            tile -= self._norm_one[rows, None]
            tile -= self._norm_two[columns]
            np.exp(np.minimum(tile, 0, out=tile), out=tile)
            total += float(self._w[rows] @ tile @ self._v[columns])
        return total


def _in_parallel(tiles: _Tiles, starts: range, skipped: int) -> Iterator[float]:
    """Sums of all blocks; with `skipped`, of the columns that follow the block alone."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        yield from pool.map(lambda start: tiles.sum(start, start + skipped if skipped else 0), starts)
