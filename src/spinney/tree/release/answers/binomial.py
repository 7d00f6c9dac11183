"""From a certified count of a sample to the population that its rows were drawn from."""

from __future__ import annotations

import math

from spinney.tree.release.answers.certified import Interval


def population_counts(counted: Interval, n_rows: int, beta: float) -> Interval:
    """Expected counts n p under which the count of a sample of n independent rows could lie in an interval.

    By Chernoff's bound P(K >= k) <= exp(-n KL(k/n, p)) for p below k/n, and likewise above: each side is wrong with
    probability beta / 2 at most, whatever p is.
    """
    limit = math.log(2 / beta) / n_rows
    low, high = counted.low / n_rows, counted.high / n_rows
    return Interval(n_rows * _furthest(low, 0.0, limit), n_rows * _furthest(high, 1.0, limit))


def _furthest(share: float, end: float, limit: float) -> float:
    """The p between a share and an end at which KL(share, p) reaches a limit."""
    near, far = share, end
    if _divergence(share, end) <= limit:
        return end
    for _ in range(60):
        middle = (near + far) / 2
        near, far = (middle, far) if _divergence(share, middle) <= limit else (near, middle)
    return far


def _divergence(q: float, p: float) -> float:
    """KL(q, p) of two coins."""
    found = 0.0
    for part, other in ((q, p), (1 - q, 1 - p)):
        if part > 0:
            if other <= 0:
                return math.inf
            found += part * math.log(part / other)
    return found
