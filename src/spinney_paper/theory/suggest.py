"""The width and the threshold that the bounds ask for: functions of public quantities only.

Public are the number of rows (under replace-one; a guess otherwise), epsilon, the cube, and the bandwidth σ of the
kernel in whose eyes the synthetic table should look right. σ is a choice of the user, not something to read off the
table.
"""

from __future__ import annotations

import math

from spinney_paper.theory.bounds import noise_error
from spinney_paper.theory.checks import Noise, Number, chance, positive, whole
from spinney_paper.theory.noise import largest_noise


def suggest_threshold(
    n_bins: int, *, epsilon: Number, delta: Number, factor: int = 2, noise: Noise = "discrete"
) -> float:
    """The threshold t = 2 beta of theorem 5, beta being `largest_noise`: 2 factor/epsilon · log(J/delta) if continuous.

    With probability 1 - delta no empty bin is released, no bin of 3t/2 rows or more is lost, and whatever is released
    truly holds t/2 rows or more. Printed as 8/epsilon · log(1/delta) for J <= 1/delta; the same number at J = 1/delta.

    >>> suggest_threshold(1024, epsilon=1, delta=0.01)
    46.0
    """
    return 2 * largest_noise(n_bins, epsilon=epsilon, delta=delta, factor=factor, noise=noise)


def suggest_width(
    n_rows: int,
    *,
    epsilon: Number,
    delta: Number,
    edge: Number,
    n_columns: int,
    bandwidth: Number,
    factor: int = 2,
) -> float:
    """The bin width, edge / whole number, at which the worst-case bound (theorem 3, continuous noise) is smallest.

    Wider bins round more, narrower ones are more and so collect more noise. Leaving the logarithm aside,
    w^(d+1) = 4 factor σ √(e·d) log(J/delta) R^d / (epsilon n): lengths in units of σ, the width follows
    σ^(1/(d+1)), so a kernel twice as wide asks for bins less than twice as wide.

    Where even one bin drowns in noise this is the whole edge.

    >>> suggest_width(100_000, epsilon=1, delta=0.05, edge=10, n_columns=1, bandwidth=1)  # 93 bins
    0.10752688172043011
    """
    n_rows, n_columns = whole(n_rows, "n_rows", at_least=1), whole(n_columns, "n_columns", at_least=1)
    edge, bandwidth, delta = positive(edge, "edge"), positive(bandwidth, "bandwidth"), chance(delta, "delta")
    rounding = edge / bandwidth * math.sqrt(n_columns / math.e) / 2  # of a single bin

    def bound(per_column: int) -> float:
        n_bins = per_column**n_columns
        beta = largest_noise(n_bins, epsilon=epsilon, delta=delta, factor=factor, noise="laplace")
        return noise_error(n_rows, n_bins=n_bins, beta=beta) + rounding / per_column

    # Both terms are convex in the number of bins per column: after the first step that does not pay, none does.
    low, high = 1, 2
    while bound(high + 1) < bound(high):
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        if bound(middle + 1) < bound(middle):
            low = middle + 1
        else:
            high = middle
    return edge / low
