"""Gaussian kernel sums, term by term: exact in any dimension, with all cores, each pair once.

Points are cut into compact blocks by halving along the widest axis. A pair of blocks is one tile of the kernel
matrix, summed by a compiled loop whose inner loops run over one row of the tile and become vector instructions; the
exponential is a polynomial for that reason. Tiles whose blocks are so far apart that every kernel value is below
e^-60 are skipped, so tiny bandwidths cost little. Of a set against itself only the upper tiles are summed.

Differences of coordinates are taken before anything else: no cancellation, however far from 0 the points lie. A sum
misses the exact one by about 1e-15 times the sum of the absolute weights; results do not depend on the number of cores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.metrics.points import Floats, WeightedSet
from spinney.parallel import each

_BLOCK = 256
# e^-60 is 9e-27: what is skipped is far below rounding.
_SKIPPED = 60.0
_LOG2_E = math.log2(math.e)
_LN_2 = math.log(2.0)
# Added to a float, it leaves the nearest whole number in the lowest bits.
_TO_WHOLE = 1.5 * 2.0**52
_TAYLOR = tuple(1 / math.factorial(k) for k in range(13))
(_, _, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12) = _TAYLOR


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Points in an order in which every run of `_BLOCK` is compact, with the box around each run."""

    order: NDArray[np.intp]  # (n,)
    points: Floats  # (d, n)
    weights: Floats  # (n,)
    low: Floats  # (n_blocks, d)
    high: Floats  # (n_blocks, d)

    def __len__(self) -> int:
        return len(self.low)

    def size(self, block: int) -> int:
        return min(_BLOCK, len(self.weights) - block * _BLOCK)


def density_sums(weighted: WeightedSet, at: Floats, gamma: float) -> Floats:
    """sum_i w_i exp(-gamma ||x_i - y||^2) at every point y of `at`."""
    result = np.empty(len(at))
    targets = _cut(WeightedSet(at, np.zeros(len(at))))
    for block, values in enumerate(_columns(_cut(weighted), targets, gamma, is_symmetric=False)):
        result[targets.order[block * _BLOCK : block * _BLOCK + len(values)]] = values
    return result


def inner_sum(first: WeightedSet, second: WeightedSet, gamma: float) -> float:
    """sum_i sum_j w_i v_j exp(-gamma ||x_i - y_j||^2)."""
    return _weighted(_cut(first), _cut(second), gamma, is_symmetric=False)


def square_sum(weighted: WeightedSet, gamma: float) -> float:
    """The inner sum of a set with itself, each pair once."""
    blocks = _cut(weighted)
    return _weighted(blocks, blocks, gamma, is_symmetric=True)


def _weighted(sources: _Blocks, targets: _Blocks, gamma: float, *, is_symmetric: bool) -> float:
    columns = _columns(sources, targets, gamma, is_symmetric=is_symmetric)
    starts = range(0, len(targets.weights), _BLOCK)
    return math.fsum(
        float(values @ targets.weights[start : start + len(values)])
        for start, values in zip(starts, columns, strict=True)
    )


def _columns(sources: _Blocks, targets: _Blocks, gamma: float, *, is_symmetric: bool) -> list[Floats]:
    """For each block of targets, the kernel sums at its points. Symmetric: blocks past the diagonal count twice."""

    def column(block: int) -> Floats:
        sums = np.zeros(targets.size(block))
        start = block * _BLOCK
        _fill_column(
            sources.points,
            sources.weights,
            sources.low,
            sources.high,
            targets.points[:, start : start + len(sums)],
            targets.low[block],
            targets.high[block],
            block if is_symmetric else -1,
            gamma,
            sums,
        )
        return sums

    if len(sources) * len(targets) <= 4:
        return [column(block) for block in range(len(targets))]
    return each(column, range(len(targets)), title="kernel sums", unit="block")


def _cut(weighted: WeightedSet) -> _Blocks:
    points = weighted.points
    order = np.arange(len(points))
    parts = [(0, len(points))]
    while parts:
        start, stop = parts.pop()
        if stop - start <= _BLOCK:
            continue
        here = order[start:stop]
        inside = points[here]
        widest = int(np.argmax(inside.max(axis=0) / 2 - inside.min(axis=0) / 2))
        n_left = -(-(stop - start) // _BLOCK) // 2 * _BLOCK
        order[start:stop] = here[np.argpartition(inside[:, widest], n_left)]
        parts += [(start, start + n_left), (start + n_left, stop)]
    starts = np.arange(0, len(points), _BLOCK)
    ordered = points[order]
    return _Blocks(
        order,
        np.ascontiguousarray(ordered.T),
        weighted.weights[order],
        np.minimum.reduceat(ordered, starts, axis=0),
        np.maximum.reduceat(ordered, starts, axis=0),
    )


@compiled
def _fill_column(
    x: Floats,  # (d, n)
    weights: Floats,  # (n,)
    low: Floats,  # (n_blocks, d)
    high: Floats,  # (n_blocks, d)
    y: Floats,  # (d, m)
    y_low: Floats,  # (d,)
    y_high: Floats,  # (d,)
    diagonal: int,
    gamma: float,
    sums: Floats,  # (m,)
) -> None:
    squares = np.empty(sums.size)
    for block in range(max(diagonal, 0), low.shape[0]):
        squared_gap = 0.0
        for axis in range(x.shape[0]):
            gap = max(0.0, low[block, axis] - y_high[axis], y_low[axis] - high[block, axis])
            squared_gap += gap * gap
        if gamma * squared_gap > _SKIPPED:
            continue
        factor = 2.0 if 0 <= diagonal < block else 1.0
        start = block * _BLOCK
        _add_tile(x, weights, start, min(start + _BLOCK, x.shape[1]), y, factor, -gamma * _LOG2_E, squares, sums)


@compiled
def _add_tile(
    x: Floats,
    weights: Floats,
    start: int,
    stop: int,
    y: Floats,
    factor: float,
    scale: float,
    squares: Floats,
    sums: Floats,
) -> None:
    """Add factor * weights[i] * 2^(scale ||x_i - y_j||^2) to sums[j], for i in start..stop."""
    n_axes, width = x.shape[0], sums.size
    for i in range(start, stop):
        first = x[0, i]
        for j in range(width):
            a = y[0, j] - first
            squares[j] = a * a
        for axis in range(1, n_axes - 1, 2):
            one, two = x[axis, i], x[axis + 1, i]
            for j in range(width):
                a = y[axis, j] - one
                b = y[axis + 1, j] - two
                squares[j] += a * a + b * b
        if n_axes % 2 == 0:
            last = x[n_axes - 1, i]
            for j in range(width):
                a = y[n_axes - 1, j] - last
                squares[j] += a * a
        weight = factor * weights[i]
        for j in range(width):
            # 2^z = 2^whole * e^r with |r| <= ln(2)/2, where thirteen Taylor terms reach 2e-16.
            z = max(squares[j] * scale, -1000.0)
            whole = z + _TO_WHOLE
            r = (z - (whole - _TO_WHOLE)) * _LN_2
            p = _C9 + r * (_C10 + r * (_C11 + r * _C12))
            p = _C5 + r * (_C6 + r * (_C7 + r * (_C8 + r * p)))
            p = 1.0 + r * (1.0 + r * (_C2 + r * (_C3 + r * (_C4 + r * p))))
            bits = np.float64(p).view(np.int64) + (np.float64(whole).view(np.int64) << 52)
            sums[j] += weight * np.int64(bits).view(np.float64)
