"""Kernel sums in many dimensions: squared distances as |x|^2 + |y|^2 - 2 x.y, tile by tile, by products of matrices.

Beyond about twenty dimensions this is several times faster than term by term (`direct`). Taken around a common centre,
it costs a few of the sixteen digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from spinney.metrics.points import Floats, WeightedSet
from spinney.parallel import each

# From here on products of matrices win.
MANY_AXES = 20

_ROWS, _COLUMNS = 1000, 4000


def inner_sum(first: WeightedSet, second: WeightedSet, gamma: float) -> float:
    """The inner product of two kernel densities in the kernel's Hilbert space."""
    centre = first.points.mean(axis=0)
    one, two = _Side(first, centre, gamma), _Side(second, centre, gamma)
    return _in_parallel(len(first), lambda start: _block(one, start, two, 0, len(second), gamma))


def square_sum(weighted: WeightedSet, gamma: float) -> float:
    """The squared norm of a kernel density: the rows of a block against themselves, and twice against what follows."""
    side, n = _Side(weighted, weighted.points.mean(axis=0), gamma), len(weighted)

    def block(start: int) -> float:
        stop = min(start + _ROWS, n)
        return _block(side, start, side, start, stop, gamma) + 2 * _block(side, start, side, stop, n, gamma)

    return _in_parallel(n, block)


class _Side:
    """One of the two sets: points around the centre, gamma times their squared norms, weights."""

    def __init__(self, weighted: WeightedSet, centre: Floats, gamma: float) -> None:
        self.points = weighted.points - centre
        self.norms = gamma * (self.points**2).sum(axis=1)
        self.weights = weighted.weights


def _block(one: _Side, start: int, two: _Side, first: int, stop: int, gamma: float) -> float:
    """Weighted kernel sum of one block of rows of the one side against first..stop of the other."""
    rows, total = slice(start, start + _ROWS), 0.0
    for begin in range(first, stop, _COLUMNS):
        columns = slice(begin, min(begin + _COLUMNS, stop))
        tile = one.points[rows] @ two.points[columns].T
        tile *= 2 * gamma
        tile -= one.norms[rows, None]
        tile -= two.norms[columns]
        np.exp(np.minimum(tile, 0, out=tile), out=tile)
        total += float(one.weights[rows] @ tile @ two.weights[columns])
    return total


def _in_parallel(n: int, block: Callable[[int], float]) -> float:
    return math.fsum(each(block, range(0, n, _ROWS)))
