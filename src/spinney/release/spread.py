"""Whether released tables have the noise that is stated: their totals are of the same rows, so they differ by noise.

Every table of a release counts all rows, so that the sum of its n noisy counts is off from the number of rows by noise
of n times the variance of one. Over many tables the squares of these, in units of the stated variance, add up to about
their number k; where noise is smaller than stated, to less. By Chernoff's bound a sum of k squares of standard normal
numbers is at most x < k with probability at most

    exp(-(x - k - k ln(x / k)) / 2).

Only too little is told: rows that a rule leaves out of a table make its total differ by more. So a card that states
several times the noise that its tables have is found out, whatever else was changed with it; one that states a little
more is not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from spinney.release.contradictions import check

# A true file is refused once in so many times, or more rarely.
_CHANCE = 1e-9
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
    squares = sum((one.total - n_rows) ** 2 / one.variance for one in sums)
    allowance = sum(0.0 if one.is_gaussian else math.log(_LAPLACE) for one in sums)
    is_noisy = squares >= dof or _log_chance(squares, dof) + allowance > math.log(_CHANCE)
    check(is_noisy, f"the totals of {len(sums)} {what} agree better than the noise that is stated for them allows")
    return [f"the totals of {len(sums)} {what} differ by at least as much as the noise stated for them lets expect"]


def _log_chance(squares: float, dof: int) -> float:
    share = max(squares / dof, 1e-300)
    return -dof * (share - 1 - math.log(share)) / 2
