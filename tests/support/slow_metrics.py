"""Slow twins of the metrics: double loops and sorted lists, nothing shared with the source."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np


def kernel(x, y, gamma: float) -> float:
    """exp(-gamma ||x-y||^2)."""
    return math.exp(-gamma * math.fsum((float(a) - float(b)) ** 2 for a, b in zip(x, y, strict=True)))


def kappa(first, second, gamma: float, first_weights=None, second_weights=None) -> float:
    """The weighted double sum, term by term."""
    w = np.full(len(first), 1 / len(first)) if first_weights is None else first_weights
    v = np.full(len(second), 1 / len(second)) if second_weights is None else second_weights
    return math.fsum(w[i] * v[j] * kernel(x, y, gamma) for i, x in enumerate(first) for j, y in enumerate(second))


def mmd_squared(first, second, gamma: float, w=None, v=None) -> float:
    """kappa(P,P) + kappa(Q,Q) - 2 kappa(P,Q)."""
    own = kappa(first, first, gamma, w, w) + kappa(second, second, gamma, v, v)
    return own - 2 * kappa(first, second, gamma, w, v)


def mmd_squared_unbiased(first, second, gamma: float) -> float:
    """Means over pairs of different points."""

    def others(points) -> float:
        n = len(points)
        return (
            math.fsum(kernel(points[i], points[j], gamma) for i in range(n) for j in range(n) if i != j) / n / (n - 1)
        )

    return others(first) + others(second) - 2 * kappa(first, second, gamma)


def difference(first, second, x, gamma: float) -> float:
    """KD_P(x) - KD_Q(x)."""
    return kappa([x], first, gamma) - kappa([x], second, gamma)


def total_variation(first: list[tuple], second: list[tuple]) -> float:
    """Half the sum of |P - Q| over the values that occur."""
    p, q = Counter(first), Counter(second)
    return sum(abs(p[key] / len(first) - q[key] / len(second)) for key in {*p, *q}) / 2


def wasserstein(first: list[float], second: list[float]) -> float:
    """Optimal transport on the line for sets of equal size: sorted values are matched."""
    assert len(first) == len(second)
    return math.fsum(abs(a - b) for a, b in zip(sorted(first), sorted(second), strict=True)) / len(first)


def balog(n_axes: int) -> np.ndarray:
    """The data of Balog et al., bit for bit (DESIGN.md, section 8)."""
    rng = np.random.RandomState(0)
    means = rng.normal(100, 200, (10, n_axes))
    weights = 1 / np.arange(1, 11)
    members = rng.choice(10, size=100_000, p=weights / weights.sum())
    return rng.normal(means[members], 30)


def ks(first: list, second: list) -> float:
    """The largest difference of the shares at most x, over all x; None is less than everything."""
    ordered = [(value is not None, value or 0) for value in (*first, *second)]
    keys = [[(value is not None, value or 0) for value in side] for side in (first, second)]
    shares = [[sum(key <= x for key in side) / len(side) for side in keys] for x in ordered]
    return max(abs(p - q) for p, q in shares)


def rank_distance(first: list[float], second: list[float]) -> float:
    """Wasserstein of ranks among the first: the share below, and half of the share at, each value; equal sizes."""

    def rank(x: float) -> float:
        return (sum(v < x for v in first) + sum(v <= x for v in first)) / 2 / len(first)

    return wasserstein([rank(v) for v in first], [rank(v) for v in second])


def percents(x: list[float], y: list[float], has_steps: bool) -> list[float]:
    """In how many rows x is so many hundredths of y, to the nearest step of numbers from a thousand steps up."""
    counts = [0.0] * 201
    for first, second in zip(x, y, strict=True):
        if math.isnan(first) or math.isnan(second) or not first or not second:
            continue
        a, b = Fraction(first), Fraction(second)
        if a == b:
            counts[100] += 1
            continue
        room = Fraction(1, 2) if has_steps else abs(b) / 10**9
        fits = [p for p in range(1, 201) if p != 100 and abs(a - p * b / 100) <= room]
        if fits and not (has_steps and abs(b) < 1000):
            counts[fits[0]] += 1
    return counts
