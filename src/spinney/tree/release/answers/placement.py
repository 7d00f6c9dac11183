"""How far rows inside leaves lie from where the density puts them, told by the release itself.

Every parent of a leaf is taken as if it were a leaf: its count and mean follow from the leaves below it. From these the
density predicts how many of its rows lie in its lower half, and its children say how many do. What is left after noise
and after the luck of rows, in units of W^2 p (1 - p), is rho. Residuals of nodes that the same plane splits add up
along the face of a region (coasts, whole numbers in a real column), so the part that they have in common is told apart:

    rho_together = sum over planes of [(sum d)^2 - sum d^2]  /  sum over planes of [(sum W s)^2 - sum (W s)^2]

with d the residual and s = sqrt(p (1 - p)). Noise of disjoint nodes is independent and needs no correction there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.schema.zorder import Codes, split_axes
from spinney.tree.bins import NoisyMoments
from spinney.tree.release.answers.leaves import Floats, Leaves
from spinney.tree.release.geometry import _is_blind, _position, _position_after, bin_boxes
from spinney.tree.release.reconstruct import LARGEST_MEAN, exponential_slopes, exponential_variances

Integers = NDArray[np.int64]

# Nodes whose count is no more than this many deviations of its noise say nothing.
_STANDS_OUT = 3.0
# Fewer nodes than this tell nothing of an axis by itself.
_FEW_NODES = 20
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
    is_blind = np.array([_is_blind(lattice.axes[step.axis], step.bit) for step in lattice.order] or [False])
    nodes = nodes[~is_blind[nodes[:, 3]]]
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
    axis_, d, weight, p, v, plane = (np.concatenate([part[i] for part in found]) for i in range(6))
    return _scatter(axis_.astype(np.int64), d, weight, p, v, plane, n_axes)


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
    mean = np.where(is_ordered, np.clip(mean, -LARGEST_MEAN, LARGEST_MEAN), 0.0)
    slope = exponential_slopes(mean)
    u = np.clip((cut - middle) / reach, -1.0, 1.0)
    p = np.clip(np.expm1(slope * (u + 1)) / np.expm1(2 * slope), 1e-3, 1 - 1e-3)
    # dp / dmean = dp / dslope / variance of the law
    eps = 1e-4
    steeper = np.expm1((slope + eps) * (u + 1)) / np.expm1(2 * (slope + eps))
    slide = np.where(is_ordered, (steeper - p) / eps / exponential_variances(slope), 0.0)
    # Residual = sum of c [is lower - p - slide (x - mean)] - s slide h, in half-edges of the node.
    noise = [_cumulated(variance * part) for part in (np.ones_like(centre), centre, centre**2, half**2)]
    all_, first_, second_, sums_ = (part[b] - part[a] for part in noise)
    lower, lower_first, *_ = (part[m] - part[a] for part in noise)
    at = middle + mean * reach
    k = slide / reach
    constant = -p + k * at  # coefficient of a count at x: [lower] + constant - k x
    v = all_ * constant**2 - 2 * constant * k * first_ + k**2 * (second_ + sums_)
    v += lower * (1 + 2 * constant) - 2 * k * lower_first
    return np.full(len(a), float(axis)), below - p * total, total, p, np.maximum(v, 0.0), cut


def _over(function: Any, numbers: Floats, start: Integers, stop: Integers) -> Floats:
    """A minimum or maximum over stretches of leaves."""
    edges = np.stack([start, stop], axis=1).ravel()
    padded = np.append(numbers, numbers[-1])
    return np.asarray(function.reduceat(padded, edges)[::2])


def _scatter(axis: Integers, d: Floats, w: Floats, p: Floats, v: Floats, plane: Floats, n_axes: int) -> Scatter:
    s = np.sqrt(p * (1 - p))
    up_all = np.zeros(n_axes)
    down_all = np.zeros(n_axes)
    together = np.zeros((2, n_axes))
    few = np.bincount(axis, minlength=n_axes) < _FEW_NODES
    left = d**2 - v - w * s**2
    np.add.at(up_all, axis, left)
    np.add.at(down_all, axis, (w * s) ** 2)
    _, group = np.unique(np.stack([axis.astype(np.float64), plane], axis=1), axis=0, return_inverse=True)
    group = group.ravel()
    n_groups = int(group.max()) + 1
    axis_of_group = np.zeros(n_groups, dtype=np.int64)
    axis_of_group[group] = axis
    for row, number in enumerate((d, w * s)):
        paired = np.bincount(group, number, n_groups) ** 2 - np.bincount(group, number**2, n_groups)
        np.add.at(together[row], axis_of_group, paired)
    pooled_all = max(up_all.sum() / max(down_all.sum(), 1e-9), 0.0)
    pooled_together = max(together[0].sum() / max(together[1].sum(), 1e-9), 0.0)
    rho_all = np.where(few, pooled_all, np.maximum(up_all / np.maximum(down_all, 1e-9), 0.0))
    own = np.where(few, 0.0, together[0] / np.maximum(together[1], 1e-9))
    rho_together = np.maximum(own, pooled_together)
    # Leaves are smaller than their parents but hold fewer rows: small nodes are what tells about them.
    k = 1 / np.maximum(w, 1.0) ** 2
    up_leaf, down_leaf = float((k * left).sum()), float((k * (w * s) ** 2).sum())
    rho_leaf = max(up_leaf / max(down_leaf, 1e-9), 0.0)
    alone = np.maximum(np.maximum(rho_all - rho_together, rho_leaf), 0.0)
    return Scatter(np.minimum(rho_together, 1.0), np.minimum(alone, 1.0), len(d))


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
