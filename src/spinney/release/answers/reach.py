"""How far a sum of noise reaches: bounds on P(|T| > x) from the law of the noise, without a draw.

T = sum of a_j Z_j, the Z_j independent and of known symmetric laws. With U of a known law on [-w, w], independent of T,

    P(|T| <= x)  >=  P(|T + U| <= x - w)  >=  2y/L + sum over k of (2 / (pi k)) phi_T(t_k) phi_U(t_k) sin(t_k y)  -  e

where y = x - w, t_k = 2 pi k / L, phi are characteristic functions, which multiply, and e bounds what lies beyond the
period L (Chernoff), what is left of the series (phi_U falls fast), and rounding. So a reach holds for the law itself:
there is no simulation whose luck anybody could choose. Proof: reach.proof.md; the labels [step 1] ... are its steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.floating[Any]]

# U is the sum of so many uniform numbers, and at most this many standard deviations of T long.
_ORDER = 8
_WIDTH = 0.005
# What each source of error may take of the probability of a miss.
_SHARE = 1e-4
# Below this probability of a miss Chernoff's bound is given, as rounding would weigh in a series.
_LEAST_MISS = 1e-7
_ROUNDING = 1e-11
# Coefficients that differ by less are the same but for rounding.
_DECIMALS = 12
# Numbers that are computed at once, before what is next to nothing is left out.
_AT_ONCE = 1 << 16
_HALVINGS = 14
# Sums of so many numbers are near a normal law; no bound is looked for below this much of what that law has.
_MANY, _HOPELESS = 30, 0.9
# What rounding of floats may take from a sum of whole numbers.
_WHOLE_ROUNDING = 1e-6


class Law(Protocol):
    """A symmetric law of noise: what is needed of it here. Implementations are hashable."""

    @property
    def std(self) -> float:
        """The standard deviation, by which steps are chosen; no bound rests on it."""

    @property
    def pole(self) -> float:
        """Up to where, exclusively, E exp(s Z) is finite."""

    def characteristic(self, at: Reals) -> Reals:
        """E exp(i t Z) at numbers t."""

    def log_moments(self, at: Reals) -> Reals:
        """An upper bound on log E exp(s Z) at numbers 0 <= s < pole."""


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """Of one law: coefficients, those that weigh most first, and how many independent numbers each is of."""

    law: Law
    sizes: Reals
    times: Reals

    def log_moments(self, at: Reals) -> Reals:
        return np.asarray(self.times @ self.law.log_moments(np.multiply.outer(self.sizes, at)))


class NoiseSum:
    """The law of T: its terms, coefficients positive; no terms for what has no noise."""

    def __init__(self, parts: Sequence[tuple[Law, Reals]]) -> None:
        """The sum over parts of coefficients, each times a number of the part's law. Signs do not matter to the law."""
        self.terms: list[Terms] = []
        for law, coefficients in parts:
            sizes, times = np.unique(np.abs(coefficients), return_counts=True)
            order = np.argsort(-times * sizes**2)[: np.count_nonzero(sizes)]
            if len(order):
                self.terms.append(Terms(law, sizes[order], times[order].astype(np.float64)))
        self._key = tuple((terms.law, terms.sizes.tobytes(), terms.times.tobytes()) for terms in self.terms)
        self.std = math.sqrt(sum(float(part.times @ part.sizes**2) * part.law.std**2 for part in self.terms))
        largest = max((float(part.sizes.max()) * part.law.std for part in self.terms), default=0.0)
        self._is_even = _MANY * largest**2 <= self.std**2  # no number weighs much, so that the law is near a normal one
        self.n_numbers = float(sum(part.times.sum() for part in self.terms))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NoiseSum) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def farthest(self, miss: float) -> float:
        """An x with P(|T| >= x) <= miss, by Chernoff's bound [step 2]."""
        if not self.terms:
            return 0.0
        usual = math.sqrt(2 * math.log(2 / miss)) / self.std
        most = min(4 * usual, *(0.999 * part.law.pole / float(part.sizes.max()) for part in self.terms))
        at = np.geomspace(min(usual, most) / 16, most, 40)
        logs = sum(part.log_moments(at) for part in self.terms)
        return float(np.min((logs + math.log(2 / miss)) / at))

    def within(self, x: float, miss: float) -> bool:
        """Whether P(|T| > x) <= miss could be shown."""
        if not self.terms:
            return x >= 0
        if x <= 0 or (self._is_even and x < _HOPELESS * NormalDist().inv_cdf(1 - miss / 2) * self.std):
            return False
        return x >= self.farthest(miss) or (miss > _LEAST_MISS and _series(self, miss).miss(x) <= miss)

    def reach(self, level: float) -> float:
        """The least x, to some thousandths of a standard deviation, with P(|T| <= x) >= level."""
        return _reach(self, 1 - level)


def whole_rows(low: float, high: float, most: float, *, usual: tuple[float, float]) -> tuple[float, float]:
    """An interval of a number of rows, cut to whole numbers from 0 to `most`.

    Noise may put all of it below 0, or above the number of all rows. It then reaches as far inside as it would if noise
    were one standard deviation beyond the end, so that the luck of the noise is not taken for knowledge: `usual`, the
    reach of the low and of the high end, less one standard deviation each.
    """
    low, high = min(low, max(most - usual[0], 0.0)), max(high, min(usual[1], most))
    first = min(float(math.ceil(max(low, 0.0) - _WHOLE_ROUNDING)), most)
    return first, min(float(max(math.floor(high + _WHOLE_ROUNDING), first)), most)


def level_of_each(lines: Reals, level: float) -> float:
    """The level that sums with these coefficients (n_sums, n_numbers) need each for all to hold at once.

    Each may be missed with an equal share of the probability. Two lines that are the same, or the same with another
    sign, are missed together. [step 5]
    """
    rounded = np.round(lines, _DECIMALS)
    first = np.take_along_axis(rounded, np.argmax(rounded != 0, axis=1)[:, None], axis=1)
    n_different = len(np.unique(np.where(first < 0, -rounded, rounded) + 0.0, axis=0))
    return 1 - (1 - level) / n_different


@lru_cache(4096)
def _reach(total: NoiseSum, miss: float) -> float:
    far = total.farthest(miss)
    if miss <= _LEAST_MISS or not far:
        return far
    series, low, high = _series(total, miss), 0.0, far
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if series.miss(middle) <= miss else (middle, high)
    return high


@dataclass(frozen=True, slots=True, eq=False)
class _Series:
    """The series at one period: frequencies, what their sines are multiplied by, and the bound e on the rest."""

    period: float
    width: float
    at: Reals
    weights: Reals
    error: float

    def miss(self, x: float) -> float:
        """An upper bound on P(|T| > x), for x up to the farthest."""
        y = x - self.width
        if y <= 0:
            return 1.0
        held = 2 * y / self.period + float(self.weights @ np.sin(self.at * y))
        return 1.0 - held + self.error


@lru_cache(64)
def _series(total: NoiseSum, miss: float) -> _Series:
    error = _SHARE * miss
    width = _WIDTH * total.std  # [step 1]
    period = total.farthest(miss) + width + total.farthest(error)  # [step 2]
    # What is left behind n frequencies is at most (2 / (pi p)) (p L / (2 pi w n))^p, p the order of U. [step 3]
    ratio = _ORDER * period / (2 * math.pi * width)
    n = math.ceil(ratio * (2 / (math.pi * _ORDER * error)) ** (1 / _ORDER))
    number = np.arange(1, n + 1)
    at = 2 * math.pi / period * number
    weights = 2 / (math.pi * number) * np.sinc(at * width / (_ORDER * math.pi)) ** _ORDER
    left_out = 0.0
    for part in total.terms:
        start = 0
        while start < len(part.sizes):
            some = slice(start, start + max(1, _AT_ONCE // max(len(at), 1)))
            factors = part.law.characteristic(np.multiply.outer(part.sizes[some], at))
            weights = weights * (factors ** part.times[some, None]).prod(axis=0)
            size, start = np.abs(weights), some.stop
            small = size < error / n  # characteristic functions are at most 1, so that these stay small
            left_out += float(size[small].sum())
            at, weights = at[~small], weights[~small]
    rounding = _ROUNDING * (10 + total.n_numbers)
    return _Series(period, width, at, weights, 2 * error + left_out + rounding)
