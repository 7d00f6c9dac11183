"""Certified intervals: they hold over the noise of a release, whatever the rows are. PUBLIC.

A question is a sum over rows of a function, which lies between two sums of released numbers. Their coefficients are
geometry, and no noise that they bound has a say in them. Trees, forests and persons give the sums; what follows from
sums is here. Proofs: ranks.proof.md, reach.proof.md, and counted.proof.md of the forest.

    noisy sums     a value, and noise of a known law or ranked among copies of itself
    intervals      counts; ratios, by all candidates that are not rejected (Fieller); quantiles (Woodruff)
    populations    from a certified count of a sample to its population
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from spinney.release.answers.ranks import rank_half_width, simultaneous_half_widths
from spinney.release.answers.reach import NoiseSum, level_of_each, whole_rows

Floats = NDArray[np.floating[Any]]

# ----------------------------------------------------------------------------------------------------------- noisy sums
# Noisy sums of a fixed line of coefficients. A sum may belong to a candidate `at`: a value that a ratio might have,
# at which the true sum would be 0. Between neighbouring candidates values and coefficients are straight lines.


# An end is looked for until what it may still move by is this much of the noise's standard deviation.
_FINE = 0.01
# How much of the probability of a miss goes to candidates lying between those that are looked at.
_BETWEEN = 0.01
# Parts of a stretch of candidates whose noise is ranked, and how often one is divided.
_PARTS = 31
_ZOOMS = 4


@dataclass(frozen=True, eq=False)
class NoisySum(ABC):
    """The noisy value of a sum over rows, and what its noise may be."""

    value: float
    at: float = field(kw_only=True, default=0.0)

    @property
    @abstractmethod
    def std(self) -> float:
        """The standard deviation of the noise, by its law."""

    @abstractmethod
    def reach(self, level: float) -> float:
        """How far the value lies from the truth at most, with this probability."""

    def is_negative(self, level: float) -> bool:
        """Whether the true sum is below 0, but for a chance of (1 - level) / 2."""
        return self.value + self.reach(level) < 0

    def is_positive(self, level: float) -> bool:
        """Whether the true sum is above 0, but for a chance of (1 - level) / 2."""
        return self.mirrored().is_negative(level)

    def mirrored(self) -> Self:
        """The sum with another sign, of the candidate with another sign; symmetric noise stays as it is."""
        return replace(self, value=-self.value, at=-self.at)

    @abstractmethod
    def open_until(self, other: Self, level: float, n_zooms: int) -> Sequence[Self]:
        """Candidates from this one to another whose true sum may be 0 or more.

        None where noise reaches no candidate between the two; both alone where they are near enough; else neighbours
        to look at in turn.
        """


@dataclass(frozen=True, eq=False)
class SumByLaw(NoisySum):
    """A sum of independent numbers, whose noise follows from coefficients: see `reach`."""

    line: Floats  # the coefficients
    law: Callable[[Any], NoiseSum]  # of the noise, by coefficients

    @cached_property
    def noise(self) -> NoiseSum:
        """The law of the noise."""
        return self.law(self.line)

    @property
    def std(self) -> float:
        return self.noise.std

    def reach(self, level: float) -> float:
        return self.noise.reach(level)

    def is_negative(self, level: float) -> bool:
        return self.value < 0 and self.noise.within(-self.value, 1 - level)

    def open_until(self, other: Self, level: float, n_zooms: int) -> Sequence[Self]:
        del n_zooms
        half = (self.value + other.value) / 2, (self.line + other.line) / 2
        middle = replace(self, value=half[0], line=half[1], at=(self.at + other.at) / 2)
        stray = self.law((other.line - self.line) / 2).farthest(_BETWEEN * (1 - level))
        if middle.noise.within(-max(self.value, other.value) - stray, (1 - _BETWEEN) * (1 - level)):
            return ()  # noise reaches no candidate between these two
        is_near = max(stray, abs(other.value - self.value) / 2) <= _FINE * middle.noise.std
        return (self, other) if is_near or self.at == other.at else (self, middle, other)


@dataclass(frozen=True, eq=False)
class SumByCopies(NoisySum):
    """A sum whose noise is ranked among copies of itself (n_draws,): see `ranks`."""

    copies: Floats
    std: float = 0.0  # needed of counts only

    def reach(self, level: float) -> float:
        return float(rank_half_width(self.copies, level))

    def open_until(self, other: Self, level: float, n_zooms: int) -> Sequence[Self]:
        largest = np.maximum(np.abs(self.copies), np.abs(other.copies))
        if max(self.value, other.value) + float(rank_half_width(largest, level)) < 0:
            return ()
        if n_zooms >= _ZOOMS or self.at == other.at:
            return self, other
        at = np.linspace(self.at, other.at, _PARTS + 1)
        share = (at - self.at) / (other.at - self.at)
        values = self.value + share * (other.value - self.value)
        copies = self.copies + share[:, None] * (other.copies - self.copies)
        middle = zip(at, values, copies, strict=True)
        return [replace(self, value=float(v), copies=noise, at=float(one)) for one, v, noise in middle]


def candidates(at: Floats, values: Floats, copies: Floats) -> list[SumByCopies]:
    """Sums of candidates (n,), with their values (n,) and copies of their noise (n, n_draws)."""
    return [SumByCopies(float(v), noise, at=float(one)) for one, v, noise in zip(at, values, copies, strict=True)]


# ------------------------------------------------------------------------------------------------------------ intervals


@dataclass(frozen=True, slots=True)
class Between:
    """An estimate between two ends, and whether boxes or leaves were cut, whose rows may lie anywhere inside."""

    estimate: float
    low: float
    high: float
    is_cut: bool = False

    @property
    def ends(self) -> tuple[float, float]:
        return self.low, self.high

    def around(self, estimate: float) -> Between:
        """The same ends around another estimate, or the nearer end."""
        return replace(self, estimate=min(max(estimate, self.low), self.high))

    def over(self, total: float | None) -> Between:
        """Shares of a number of rows that is known, of one row at least."""
        total = max(total or 1, 1)
        return replace(self, estimate=self.estimate / total, low=self.low / total, high=self.high / total)


def counts_between(
    sides: Sequence[tuple[NoisySum, NoisySum]], total: int | None, level: float, *, at_once: bool = False
) -> list[Between]:
    """Numbers of rows between a lower and an upper sum each: whole numbers, from 0 to all rows.

    Args:
        sides: lower and upper sums; with `at_once` all of them by law, or all by copies.
        total: the number of rows, where it is public.
        level: the probability that each interval holds with.
        at_once: whether all of them hold at once with this probability.
    """
    every = [one for pair in sides for one in pair]
    reach = _reaches_at_once(every, level) if at_once else [one.reach(level) for one in every]
    most, found = math.inf if total is None else total, []
    for (lower, upper), below, above in zip(sides, reach[::2], reach[1::2], strict=True):
        low, high = whole_rows(
            lower.value - below, upper.value + above, most, usual=(below - lower.std, above - upper.std)
        )
        found.append(Between(low, low, high).around((lower.value + upper.value) / 2))
    return found


def _reaches_at_once(sums: Sequence[NoisySum], level: float) -> list[float]:
    """How far sums lie from the truth at most, all at once."""
    by_law = [one for one in sums if isinstance(one, SumByLaw)]
    if len(by_law) == len(sums):
        each = level_of_each(np.stack([one.line for one in by_law]), level)
        return [one.reach(each) for one in by_law]
    copies = np.stack([one.copies for one in sums if isinstance(one, SumByCopies)], axis=1)
    return list(map(float, simultaneous_half_widths(copies, np.array([one.std for one in sums]), level)))


def ratio_between(least: Sequence[NoisySum], most: Sequence[NoisySum], level: float) -> Between | None:
    """All candidates that are not rejected, and what lies between them; None where every one is.

    The true sum falls with the candidate, and is 0 at the true one. `least` and `most` bound it from below and above
    at the same candidates, in ascending order; between neighbours they are straight lines. A stretch is left out only
    where one bound rejects all of it.
    """
    high, low = _last_open(most, level), _last_open([one.mirrored() for one in reversed(least)], level)
    if high is None or low is None:
        return None
    falling = np.maximum.accumulate([one.value + other.value for one, other in zip(least, most, strict=True)][::-1])
    begin, end = sorted((-low, high))
    return Between(begin, begin, end).around(float(np.interp(0.0, falling, [one.at for one in reversed(least)])))


def _last_open(sums: Sequence[NoisySum], level: float) -> float | None:
    """An upper bound on the candidates whose sum noise allows to be 0 or more; None where it allows none."""
    stack = [(one, other, 0) for one, other in pairwise(sums)]
    while stack:
        one, other, n_zooms = stack.pop()
        if other.value >= 0:
            return other.at
        found = one.open_until(other, level, n_zooms)
        if len(found) == 2:
            return other.at
        stack += [(first, second, n_zooms + 1) for first, second in pairwise(found)]
    return None


def quantile_between(
    below: Sequence[NoisySum | None], until: Sequence[NoisySum | None], level: float
) -> tuple[int, int] | None:
    """The first and the last stretch of values that may hold a quantile; None where none may.

    Args:
        below: for each stretch, a lower bound on the sum over rows before it of 1 less the share asked for, which the
            quantile's own stretch does not have above 0; None says nothing.
        until: an upper bound on that sum up to the end of the stretch, which is not below 0 there.
        level: the probability that the true stretch is not left out with.
    """

    def may_hold(k: int) -> bool:
        before, after = below[k], until[k]
        is_passed = before is not None and before.is_positive(level)
        return not is_passed and not (after is not None and after.is_negative(level))

    first = next((k for k in range(len(below)) if may_hold(k)), None)
    return None if first is None else (first, next(k for k in reversed(range(len(below))) if may_hold(k)))


# ---------------------------------------------------------------------------------------------------------- populations
# From a certified count of a sample to the population that its rows were drawn from.


def population_counts(counted: Between, n_rows: int, beta: float) -> Between:
    """Expected counts n p under which the count of a sample of n independent rows could lie in an interval.

    By Chernoff's bound P(K >= k) <= exp(-n KL(k/n, p)) for p below k/n, and likewise above: each side is wrong with
    probability beta / 2 at most, whatever p is.
    """
    limit = math.log(2 / beta) / n_rows
    low, high = counted.low / n_rows, counted.high / n_rows
    return replace(counted, low=n_rows * _furthest(low, 0.0, limit), high=n_rows * _furthest(high, 1.0, limit))


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
