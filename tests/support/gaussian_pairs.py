"""Exact laws of whole numbers with discrete Gaussian noise, for two neighbouring tables, and what tells them apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]
Pair = tuple[Floats, Floats]

_REACH = 10  # standard deviations


def discrete_law(variance: float, shift: int = 0, *, room: int = 4) -> Floats:
    """P(k - shift) of the discrete Gaussian, k from -reach to reach; what is beyond has a chance below 1e-20."""
    reach = int(_REACH * math.sqrt(variance)) + _REACH + room
    k = np.arange(-reach, reach + 1)
    law: Floats = np.exp(-((k - shift) ** 2) / (2 * variance))
    return law / np.exp(-(k**2) / (2 * variance)).sum()


def vector_pair(variance: float, shifts: Sequence[int]) -> Pair:
    """The joint law of a few sums, every outcome written out, and the one with the sums moved."""

    def joint(moves: Sequence[int]) -> Floats:
        laws = [discrete_law(variance, move) for move in moves]
        return reduce(lambda a, b: np.outer(a, b).ravel(), laws)

    return joint([0] * len(shifts)), joint(shifts)


def moved_sums(variance: float, shift: int, n_sums: int) -> Pair:
    """Many sums that all move by `shift`: the ratio of their laws depends on the total alone, whose law is enough."""
    one = discrete_law(variance)
    most = int(_REACH * math.sqrt(n_sums * variance)) + _REACH
    law = one
    for _ in range(n_sums - 1):
        law = np.convolve(law, one)
        n_cut = max(0, len(law) // 2 - most)
        law = law[n_cut : len(law) - n_cut]
    moved = np.zeros(n_sums * shift)
    return np.append(law, moved), np.append(moved, law)


def largest_deltas(pair: Pair, epsilons: Floats) -> Floats:
    """The least delta at each epsilon, of the two orders the larger."""
    p, q = pair
    return np.array(
        [
            max(np.maximum(0, p - math.exp(e) * q).sum(), np.maximum(0, q - math.exp(e) * p).sum())
            for e in epsilons.tolist()
        ]
    )


def gaussian_deltas(mean_squared: float, epsilons: Floats) -> Floats:
    """The same of N(mean, 1) against N(0, 1), in closed form."""
    mean = math.sqrt(mean_squared)
    below = np.exp(epsilons + stats.norm.logcdf(-mean / 2 - epsilons / mean))
    deltas: Floats = stats.norm.cdf(mean / 2 - epsilons / mean) - below
    return deltas
