"""Whether released tables have the noise that is stated: their totals are of the same rows, so they differ by noise.

Every table of a release counts all rows, so that the sum of its n noisy counts is off from the number of rows by noise
of n times the variance of one. Over many tables the squares of these, in units of the stated variance, add up to about
their number k; where noise is smaller than stated, to less. By Chernoff's bound a sum of k squares of standard normal
numbers is at most x < k with probability at most

    exp(-(x - k - k ln(x / k)) / 2).

Of forests only too little is told: rows that a rule leaves out of a table make its total differ by more. So a card that
states several times the noise that its tables have is found out, whatever else was changed with it; one that states a
little more is not.

Where every row is in exactly one of the counts, too much is told as well: with M(s) the expectation of e^(sZ) of the
noise Z of one count, the noises of all add up to t or more, or to -t or less, with probability at most

    2 exp(sum of ln M(s) - s t)      for every s > 0,

so that their sum lies within `farthest`, the least such t over many s, except with probability `CHANCE`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from spinney.release.contradictions import check

# A true file is refused once in so many times, or more rarely.
CHANCE = 1e-9
# Sums of a few Laplace draws lie near 0 more often than normal ones, by this factor a sum at most.
_LAPLACE = 1.8
_FEWEST = 4


@dataclass(frozen=True, slots=True)
class TableSum:
    """The sum of a table's noisy counts, and the variance of its noise as stated."""

    total: float
    variance: float
    is_gaussian: bool = True


def check_spread(sums: Sequence[TableSum], n_rows: float | None, what: str) -> list[str]:
    """Raise a ContradictionError where the tables agree better than their noise allows; say how many were compared.

    `n_rows` is the number that all of them count, where it is public; else their own mean stands for it.
    """
    if len(sums) < _FEWEST:
        return []
    dof = len(sums)
    if n_rows is None:
        weights = [1 / one.variance for one in sums]
        n_rows = sum(weight * one.total for weight, one in zip(weights, sums, strict=True)) / sum(weights)
        dof -= 1
    # Totals are whole: one is no further off than its distance and a half, which is never below that of smooth noise.
    squares = sum((abs(one.total - n_rows) + 0.5) ** 2 / one.variance for one in sums)
    allowance = sum(0.0 if one.is_gaussian else math.log(_LAPLACE) for one in sums)
    is_noisy = squares >= dof or _log_chance(squares, dof) + allowance > math.log(CHANCE)
    check(is_noisy, f"the totals of {len(sums)} {what} agree better than the noise that is stated for them allows")
    return [f"the totals of {len(sums)} {what} differ by at least as much as the noise stated for them lets expect"]


def _log_chance(squares: float, dof: int) -> float:
    share = max(squares / dof, 1e-300)
    return -dof * (share - 1 - math.log(share)) / 2


# ------------------------------------------------------------------------------------------------------- too much

# At how many s the bound is looked for, and the part of the rate where they begin.
_N_SLOPES, _FIRST_SLOPE = 200, 1e-3


def farthest(log_moments: Callable[[float], float], rate: float) -> float:
    """How far from 0 a sum of symmetric noises lies at the most, except with probability `CHANCE`.

    Args:
        log_moments: the sum of ln M(s) of all of them, for s between 0 and `rate`.
        rate: where their moments end.
    """
    slopes = rate * np.geomspace(_FIRST_SLOPE, 0.99, _N_SLOPES)
    return min((log_moments(float(s)) - math.log(CHANCE / 2)) / float(s) for s in slopes)


def laplace_log_moment(rate: float, s: float) -> float:
    """Ln M(s) of discrete Laplace noise: (1-a)^2 / ((1 - a e^s) (1 - a e^-s)) with a = e^-rate."""
    return 2 * math.log(-math.expm1(-rate)) - math.log(-math.expm1(s - rate)) - math.log(-math.expm1(-s - rate))


def sup_norm_log_moment(rate: float, n_axes: int, s: float) -> float:
    """Ln of the expectation of exp(s z_1), for 0 < s < rate: how far sums of first coordinates may lie from 0.

    The noise is that of `privacy.noise.supnorm`. The sum of e^(sz) over -r..r is sinh(s(r + 1/2)) / sinh(s/2), so that

        E exp(s z_1) = (e^(s/2) F(a e^s) - e^(-s/2) F(a e^-s)) / (2 sinh(s/2) G(a)),

    F the sum over r of (2r+1)^(k-1) x^r, and G that of (2r+1)^k x^r.
    """
    above, below = _power_sum(n_axes - 1, s - rate), _power_sum(n_axes - 1, -s - rate)
    whole = _power_sum(n_axes, -rate)
    spread = -math.expm1(below - above - s)
    return max(0.0, above + s / 2 + math.log(spread) - math.log(2 * math.sinh(s / 2)) - whole)


def _power_sum(n_axes: int, log_ratio: float) -> float:
    """Ln of the sum over r of (2r+1)^k e^(r log_ratio)."""
    numbers = _eulerian(n_axes)
    return math.log(sum(b * math.exp(j * log_ratio) for j, b in enumerate(numbers))) - (n_axes + 1) * math.log(
        -math.expm1(log_ratio)
    )


@lru_cache(maxsize=64)
def _eulerian(n_axes: int) -> tuple[int, ...]:
    """b_0, ..., b_k with the sum over r of (2r+1)^k x^r = (b_0 + ... + b_k x^k) / (1 - x)^(k+1)."""
    numbers = [1]
    for n in range(1, n_axes + 1):
        pairs = zip([*numbers, 0], [0, *numbers], strict=True)
        numbers = [(2 * j + 1) * below + (2 * (n - j) + 1) * above for j, (below, above) in enumerate(pairs)]
    return tuple(numbers)
