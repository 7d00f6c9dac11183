"""A rival for maps: PrivTree (Zhang, Xiao and Xie, SIGMOD 2016), as printed, with splits into four.

Half of epsilon decides which nodes split, half counts the leaves; rows are even inside a leaf. A node at depth k with
c rows splits if max(c - k delta, theta - delta) + noise > theta, with fan-out beta = 4, theta = 0,

    lambda = (2 beta - 1)/(beta - 1) * 2 / epsilon_tree,     delta = lambda ln beta, rounded up

The factor 2 is for replace-one. Noise is discrete Laplace of ratio exp(-1/lambda). The paper sets no last level: here
it is 20, a millionth of the map's side, which nothing but equal rows could reach.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from benchmarks.fidelity.answers import Box, LeafAnswers, Points
from benchmarks.fidelity.grids import SENSITIVITY
from spinney.privacy.entropy import Entropy
from spinney.privacy.noise.discrete import add_noise

FAN_OUT = 4
MAX_DEPTH = 20


def decision_noise(epsilon: Fraction) -> tuple[Fraction, int]:
    """1 / lambda and delta of decisions that may cost epsilon."""
    rate = epsilon * Fraction(FAN_OUT - 1, 2 * FAN_OUT - 1) / SENSITIVITY
    return rate, math.ceil(math.log(FAN_OUT) / rate)


def privtree(points: Points, box: Box, epsilon: Fraction, entropy: Entropy) -> LeafAnswers:
    """PrivTree: noisy counts of the leaves of a tree that splits where there are rows."""
    rate, delta = decision_noise(epsilon / 2)
    unit = box.to_unit(points)
    corners = np.zeros((1, 2), dtype=np.int64)  # of the nodes of this level, in edges
    true_counts = np.array([len(points)])
    node_of_point = np.zeros(len(points), dtype=np.int64)
    lows, edges, leaf_counts = [], [], []
    for depth in range(MAX_DEPTH + 1):
        # Empty nodes draw noise too: a neighbouring table may hold a row here.
        noisy_scores = add_noise(np.maximum(true_counts - depth * delta, -delta), rate, entropy)
        splits = (noisy_scores > 0) & (depth < MAX_DEPTH)
        lows.append(corners[~splits] / 2**depth)
        edges.append(np.full(int((~splits).sum()), 2.0**-depth))
        leaf_counts.append(true_counts[~splits])
        if not splits.any():
            break
        below = splits[node_of_point]
        unit, parent = unit[below], (np.cumsum(splits) - 1)[node_of_point[below]]
        halves = (unit * 2 ** (depth + 1)).astype(np.int64) & 1
        node_of_point = FAN_OUT * parent + 2 * halves[:, 0] + halves[:, 1]
        corners = (2 * corners[splits][:, None, :] + [[0, 0], [0, 1], [1, 0], [1, 1]]).reshape(-1, 2)
        true_counts = np.bincount(node_of_point, minlength=len(corners))
    noisy_leaves = add_noise(np.concatenate(leaf_counts), epsilon / 2 / SENSITIVITY, entropy)
    low, edge = np.concatenate(lows), np.concatenate(edges)
    return LeafAnswers(low, low + edge[:, None], noisy_leaves.astype(np.float64), box)
