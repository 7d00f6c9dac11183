"""Rivals for maps: the uniform and the adaptive grid of Qardaji, Yang and Li (ICDE 2013).

Their rules are made for counts of sensitivity 1. A changed row touches two counts, so under replace-one a method runs
as printed with `epsilon / 2`: noise of ratio exp(-epsilon/2), and epsilon / 2 in every rule for a size. With n rows
(public), e = epsilon / 2, c = 10, c2 = c / 2, alpha = 1/2:

    uniform     m = ceil(sqrt(n e / c)) cells along each side
    adaptive    m1 = max(10, ceil(ceil(sqrt(n e / c)) / 4)) along each side, counted with alpha e; then each cell is cut
                into m2 x m2, m2 = ceil(sqrt(v (1-alpha) e / c2)) for its noisy count v, counted with (1-alpha) e

Two counts v and sum(u) of the same rows are averaged by their variances, and the leaves moved by equal parts:

    v' = (w v + sum(u)) / (w + 1),  w = (alpha m2 / (1-alpha))²        u' = u + (v' - sum(u)) / m2²
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from benchmarks.fidelity.answers import Box, GridAnswers, LeafAnswers, Points
from spinney.privacy.entropy import Entropy
from spinney.privacy.noise.discrete import add_noise

SENSITIVITY = 2  # replace-one: the row leaves one cell and enters another


def uniform_grid(points: Points, box: Box, epsilon: Fraction, entropy: Entropy, *, c: float = 10) -> GridAnswers:
    """UG: noisy counts of equal cells."""
    rate = epsilon / SENSITIVITY
    m = max(1, _root(len(points) * rate / c))
    cells = (box.to_unit(points) * m).astype(np.int64)
    true_counts = np.bincount(cells[:, 0] * m + cells[:, 1], minlength=m * m)
    return GridAnswers(add_noise(true_counts, rate, entropy).reshape(m, m).astype(np.float64), box)


def adaptive_grid(
    points: Points, box: Box, epsilon: Fraction, entropy: Entropy, *, c: float = 10, alpha: Fraction = Fraction(1, 2)
) -> LeafAnswers:
    """AG: noisy counts of cells cut finer where the first noisy count is larger, made consistent."""
    rate = epsilon / SENSITIVITY
    m1 = max(10, math.ceil(_root(len(points) * rate / c) / 4))
    unit = box.to_unit(points) * m1
    cells = unit.astype(np.int64)
    of_point = cells[:, 0] * m1 + cells[:, 1]
    true_counts = np.bincount(of_point, minlength=m1 * m1)
    noisy_counts = add_noise(true_counts, alpha * rate, entropy).astype(np.float64)

    leaf_rate = (1 - alpha) * rate
    m2 = np.ceil(np.sqrt(noisy_counts.clip(0) * float(leaf_rate) / (c / 2))).astype(np.int64).clip(1)
    first_leaf = np.concatenate([[0], np.cumsum(m2**2)])
    inside = ((unit - cells) * m2[of_point, None]).astype(np.int64).clip(max=m2[of_point, None] - 1)
    leaf_of_point = first_leaf[of_point] + inside[:, 0] * m2[of_point] + inside[:, 1]
    true_leaves = np.bincount(leaf_of_point, minlength=first_leaf[-1])
    noisy_leaves = add_noise(true_leaves, leaf_rate, entropy).astype(np.float64)

    weight = (float(alpha) * m2 / float(1 - alpha)) ** 2
    sums = np.add.reduceat(noisy_leaves, first_leaf[:-1])
    agreed = (weight * noisy_counts + sums) / (weight + 1)
    cell = np.repeat(np.arange(m1 * m1), m2**2)
    noisy_leaves += ((agreed - sums) / m2**2)[cell]

    rank = np.arange(first_leaf[-1]) - first_leaf[cell]
    edge = 1 / (m1 * m2[cell])
    low = np.stack([cell // m1 / m1 + rank // m2[cell] * edge, cell % m1 / m1 + rank % m2[cell] * edge], axis=1)
    return LeafAnswers(low, low + edge[:, None], noisy_leaves, box)


def _root(squared: Fraction | float) -> int:
    return math.ceil(math.sqrt(squared))
