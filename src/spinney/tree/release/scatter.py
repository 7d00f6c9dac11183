"""How far rows inside leaves lie from where the density puts them, estimated from the release itself. PUBLIC.

Every parent of a leaf is taken as if it were a leaf: its count and mean follow from the leaves below it. From
these the density predicts how many of its rows lie in its lower half, and its children say how many do. What
is left after noise and after the luck of rows, in units of W^2 p (1 - p), is rho. Residuals of nodes that the
same plane splits add up along the face of a region (coasts, whole numbers in a real column), so the part that
they have in common is estimated apart:

    rho_together = sum over planes of [(sum d)^2 - sum d^2]  /  sum over planes of [(sum W s)^2 - sum (W s)^2]

with d the residual and s = sqrt(p (1 - p)). Noise of disjoint nodes is independent and needs no correction
there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.grid.codes import Codes, split_axes
from spinney.tree.bins import NoisyMoments
from spinney.tree.release.density import FLAT, LARGEST_MEAN, exponential_slopes, exponential_variances
from spinney.tree.release.geometry import (
    _position,
    _position_after,
    bin_boxes,
    blind_splits,
)
from spinney.tree.release.regions import Floats, Leaves

Integers = NDArray[np.int64]

# Nodes whose count is no more than this many deviations of its noise say nothing.
_STANDS_OUT = 3.0
# Fewer nodes than this tell nothing of an axis by itself.
_FEW_NODES = 20
MANY_COLUMNS = 4
# What is assumed where nothing tells.
_ASSUMED = 0.1


class Scatter(NamedTuple):
    """Variance of a leaf's share in units of p (1 - p): by axis what faces have in common, and what leaves do not."""

    together: Floats  # (n_axes,)
    alone: Floats  # (n_axes,)
    n_nodes: int  # how many nodes tell it


def scatter_of(moments: NoisyMoments, leaves: Leaves, variance: Floats) -> Scatter:
    """How rows scatter, from released counts and sums."""
    lattice = moments.lattice
    n_axes = lattice.n_axes
    if len(moments) < 2:
        return Scatter(np.full(n_axes, _ASSUMED), np.full(n_axes, _ASSUMED), 0)
    start, middle, stop, depth = (np.asarray(part) for part in _parents(moments.codes, moments.depths))
    nodes = np.unique(np.stack([start, middle, stop, depth], axis=1)[stop > start], axis=0)
    nodes = nodes[(nodes[:, 1] > nodes[:, 0]) & (nodes[:, 2] > nodes[:, 1])]
    nodes = nodes[~blind_splits(lattice)[nodes[:, 3]]]
    start, middle, stop, depth = nodes.T
    axis_of_node = split_axes(lattice)[depth]
    steps = moments.noisy_steps / moments.quantum
    boxes = bin_boxes(moments)
    counted = _cumulated(steps[:, 0])
    spread_out = _cumulated(variance)
    found: list[tuple[Floats, ...]] = []
    for axis in range(n_axes):
        here = np.flatnonzero(axis_of_node == axis)
        if not len(here):
            continue
        a, m, b = start[here], middle[here], stop[here]
        total = counted[b] - counted[a]
        stands_out = total > _STANDS_OUT * np.sqrt(spread_out[b] - spread_out[a])
        here, a, m, b, total = (part[stands_out] for part in (here, a, m, b, total))
        if len(here):
            found.append(_residuals(axis, a, m, b, total, steps, boxes, variance, leaves))
    if not found:
        return Scatter(np.full(n_axes, _ASSUMED), np.full(n_axes, _ASSUMED), 0)
    axis_, d, weight, p, v, plane, likeness = (np.concatenate([part[i] for part in found]) for i in range(7))
    return _scatter(axis_.astype(np.int64), d, weight, p, v, plane, likeness, n_axes)


def _cumulated(numbers: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(numbers)])


def _residuals(
    axis: int,
    a: Integers,
    m: Integers,
    b: Integers,
    total: Floats,
    steps: Floats,
    boxes: Any,
    variance: Floats,
    leaves: Leaves,
) -> tuple[Floats, ...]:
    """Of nodes split along one axis: residual of the lower half, total, prediction, noise variance, and the plane."""
    low, length = boxes.low[:, axis], boxes.length[:, axis]
    half, centre = length / 2, low + length / 2
    counted = _cumulated(steps[:, 0])
    below = counted[m] - counted[a]
    # Ends of the node and of its lower half: all leaves of a node reach across it, or tile it.
    first, last = _over(np.minimum, low, a, b), _over(np.maximum, low + length, a, b)
    cut = _over(np.maximum, low + length, a, m)
    is_ordered = leaves.is_measured[a, axis] | leaves.is_measured[b - 1, axis]
    middle, reach = (first + last) / 2, np.maximum((last - first) / 2, 1e-300)
    moment = _cumulated(steps[:, 0] * centre + steps[:, 1 + axis] * half)
    mean = ((moment[b] - moment[a]) / total - middle) / reach
    is_free = is_ordered & (np.abs(mean) < LARGEST_MEAN)  # elsewhere the mean decides nothing
    mean = np.where(is_ordered, np.clip(mean, -LARGEST_MEAN, LARGEST_MEAN), 0.0)
    slope = exponential_slopes(mean)
    u = np.clip((cut - middle) / reach, -1.0, 1.0)
    p = _lower_share(slope, u)
    # dp / dmean = dp / dslope / variance of the law
    step = 1e-3 * np.maximum(np.abs(slope), 1.0)
    spread = exponential_variances(slope)
    slide = np.where(
        is_free, (_lower_share(slope + step, u) - _lower_share(slope - step, u)) / (2 * step) / spread, 0.0
    )
    p = np.clip(p, 1e-3, 1 - 1e-3)
    luck = total * np.maximum(p * (1 - p) - slide**2 * spread, 0.0)  # what the mean does not tell
    # Residual = sum of c [is lower - p - slide (x - mean)] - s slide h, in half-edges of the node.
    noise = [_cumulated(variance * part) for part in (np.ones_like(centre), centre, centre**2, half**2)]
    all_, first_, second_, sums_ = (part[b] - part[a] for part in noise)
    lower, lower_first, *_ = (part[m] - part[a] for part in noise)
    at = middle + mean * reach
    k = slide / reach
    constant = -p + k * at  # coefficient of a count at x: [lower] + constant - k x
    v = all_ * constant**2 - 2 * constant * k * first_ + k**2 * (second_ + sums_)
    v += lower * (1 + 2 * constant) - 2 * k * lower_first
    share = sum(
        np.where(stop == start + 1, np.maximum(steps[start, 0] ** 2 - variance[start], 0.0), 0.0)
        for start, stop in ((a, m), (m, b))
    )
    likeness = np.minimum(share / total**2, 1.0)
    return np.full(len(a), float(axis)), below - p * total, total, p, np.maximum(v, 0.0) + luck, cut, likeness


def _lower_share(slope: Floats, u: Floats) -> Floats:
    """The share of an exponential law of this slope on [-1, 1] that lies below u."""
    slope = np.where(np.abs(slope) < FLAT, FLAT, slope)
    return np.asarray(np.expm1(slope * (u + 1)) / np.expm1(2 * slope))


def _over(function: Any, numbers: Floats, start: Integers, stop: Integers) -> Floats:
    """A minimum or maximum over stretches of leaves."""
    edges = np.stack([start, stop], axis=1).ravel()
    padded = np.append(numbers, numbers[-1])
    return np.asarray(function.reduceat(padded, edges)[::2])


def _scatter(
    axis: Integers, d: Floats, w: Floats, p: Floats, v: Floats, plane: Floats, likeness: Floats, n_axes: int
) -> Scatter:
    """What is left of residuals d after the variance v that noise and luck explain.

    A node of which most rows lie in children that are leaves says more about leaves than one that is split on and on,
    so nodes count as they are like leaves; what rows scatter by themselves is at least what all nodes alike say.
    """
    unit = w * np.sqrt(p * (1 - p))
    few = np.bincount(axis, minlength=n_axes) < _FEW_NODES

    def by_axis(numbers: Floats) -> Floats:
        return np.asarray(np.bincount(axis, numbers, n_axes), dtype=np.float64)

    _, group = np.unique(np.stack([axis.astype(np.float64), plane], axis=1), axis=0, return_inverse=True)
    group = group.ravel()
    axis_of_group = np.zeros(int(group.max()) + 1, dtype=np.int64)
    axis_of_group[group] = axis

    def paired(numbers: Floats) -> Floats:
        whole = np.bincount(group, numbers) ** 2 - np.bincount(group, numbers**2)
        return np.asarray(np.bincount(axis_of_group, whole, n_axes), dtype=np.float64)

    # In many columns leaves are wide, and what planes have in common shows in all nodes alike.
    root = np.sqrt(likeness) if n_axes < MANY_COLUMNS else np.ones_like(likeness)
    together = _ratio(paired(root * d), paired(root * unit), few)
    together = np.maximum(together, max(float(paired(root * d).sum()) / max(float(paired(root * unit).sum()), 1e-9), 0))
    whole = _ratio(by_axis(d**2 - v), by_axis(unit**2), few)
    like_leaves = _ratio(by_axis(likeness * (d**2 - v)), by_axis(likeness * unit**2), few)
    # An axis by itself has few planes that tell: none is taken for better than all of them together.
    alone = np.maximum(
        np.maximum(whole - together, like_leaves),
        float(like_leaves @ by_axis(unit**2)) / max(float((unit**2).sum()), 1e-9),
    )
    return Scatter(np.minimum(together, 1.0), np.clip(alone, 0.0, 1.0), len(d))


def _ratio(above: Floats, below: Floats, few: NDArray[np.bool_]) -> Floats:
    """Of each axis, or where it has few nodes of all axes together; at least 0."""
    pooled = float(above.sum()) / max(float(below.sum()), 1e-9)
    return np.asarray(np.maximum(np.where(few, pooled, above / np.maximum(below, 1e-9)), 0.0))


@compiled
def _parents(codes: Codes, depths: Integers) -> tuple[Integers, Integers, Integers, Integers]:
    """Of the parent of every leaf: where its leaves begin, where its upper half does, where they end, and its depth."""
    n, n_words = codes.shape
    start, middle, stop = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    depth = np.zeros(n, dtype=np.int64)
    node = np.empty(n_words, dtype=np.uint64)
    for i in range(n):
        position = depths[i] - 1
        if position < 0:
            continue
        depth[i] = position
        word, bit = position >> 6, np.uint64(1) << np.uint64(63 - (position & 63))
        for w in range(n_words):
            node[w] = codes[i, w]
        node[word] &= ~bit
        start[i] = _position(codes, node)
        node[word] |= bit
        middle[i] = _position(codes, node)
        stop[i] = _position_after(codes, node, word, bit)
    return start, middle, stop, depth
