"""Exact draws from known distributions, and discrete Laplace and geometric noise made of them.

    exact distributions              a draw reads bits until they decide; proof: exact.proof.md
    discrete Laplace and geometric   noise on counts, inside ±2^61
    digits                           the base-256 digits that a draw is made of

No floating-point number takes part.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import flint
import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.privacy.entropy import Entropy, Words

# -------------------------------------------------------------------------------------------------- exact distributions
# Exact draws from finite laws whose probabilities are irrational.
#
# A law is known through its cumulative probabilities F(0) <= F(1) <= ... as intervals of any width that is asked for.
# To draw is to read a uniform number u bit by bit and to stop as soon as the bits say between which two F it lies:
#
# 1. Read 32 bits. Compare with a table of floor(2^32 F(i)). Almost always this settles it, in a compiled loop.
# 2. Where the bits read so far agree with some F(i) to the last place, read 64 more and compute F to that many places.
#    Repeat. Every round settles all but a 2^-64 part, so this ends with probability 1, and the law is exactly F: no
#    rounding of F ever enters a decision.
#
# Intervals come from Arb (`python-flint`), whose balls provably contain the real number.


Cumulative = Callable[[], list["flint.arb"]]

_WORD = 32
_GUIDE_BITS = 10
_GUIDE_SHIFT = _WORD - _GUIDE_BITS
_FIRST_PRECISION = 128
_BLOCK = 1 << 16


class ExactLaw:
    """A law on 0..m-1. `cumulative()` returns P(X <= i) for i < m-1 as balls at Arb's current precision."""

    def __init__(self, cumulative: Cumulative) -> None:
        self._cumulative = cumulative
        lower, precision = scaled_bounds(cumulative, _WORD, _FIRST_PRECISION)
        self._precision = precision
        # [table] A word below thresholds[i] certainly means X <= i; from thresholds[i] + 2 on it certainly means X > i.
        self._thresholds = np.array([low for low, _ in lower], dtype=np.int64)
        starts = np.arange(1 << _GUIDE_BITS, dtype=np.int64) << _GUIDE_SHIFT
        self._guide = np.searchsorted(self._thresholds, starts, side="right").astype(np.int32)

    def draw(self, n: int, entropy: Entropy) -> NDArray[np.int64]:
        """`n` independent draws."""
        drawn = np.empty(n, dtype=np.int64)
        for start in range(0, n, _BLOCK):
            part = drawn[start : start + _BLOCK]
            words = entropy.words(len(part))
            if _settle(words, self._thresholds, self._guide, part):
                for i in np.flatnonzero(part < 0):
                    part[i] = self.refine(int(words[i]), entropy)
        return drawn

    def refine(self, bits: int, entropy: Entropy) -> int:
        """Go on reading bits after an undecided first word: step 2."""
        n_bits, precision = _WORD, self._precision
        while True:
            for word in entropy.words(2):
                bits = bits << _WORD | int(word)
                n_bits += _WORD
            bounds, precision = scaled_bounds(self._cumulative, n_bits, max(precision, n_bits + 64))
            index = 0
            while index < len(bounds) and bits >= bounds[index][1]:
                index += 1
            if index == len(bounds) or bits < bounds[index][0]:
                return index


def scaled_bounds(cumulative: Cumulative, n_bits: int, precision: int) -> tuple[list[tuple[int, int]], int]:
    """Integers (low, high) around 2^n_bits F(i), at most 2 apart, and the precision that gave them.

    low <= 2^n_bits F(i) <= high: bits < low means u < F(i) for certain, bits >= high means u >= F(i).
    """
    while True:
        with flint.ctx.workprec(precision):
            scaled = [ball * flint.arb(2) ** n_bits for ball in cumulative()]
            if all(ball.rad() < 0.5 for ball in scaled):
                bounds = [(as_integer(ball.lower().floor()), as_integer(ball.upper().ceil())) for ball in scaled]
                return [(max(0, low), min(1 << n_bits, high)) for low, high in bounds], precision
        precision *= 2


def as_integer(exact: flint.arb) -> int:
    """The integer that a ball of radius 0 is."""
    integer = exact.unique_fmpz()
    assert integer is not None
    return int(integer)


@compiled
def _settle(words: Words, thresholds: NDArray[np.int64], guide: NDArray[np.int32], out: NDArray[np.int64]) -> bool:
    """Draw from the table; -1 marks a word that does not settle it. True if there is any: step 1."""
    n_thresholds = thresholds.size
    any_undecided = False
    for i in range(words.size):
        word = np.int64(words[i])
        index = np.int64(guide[word >> _GUIDE_SHIFT])
        while index < n_thresholds and word >= thresholds[index]:
            index += 1
        if index > 0 and word < thresholds[index - 1] + 2:
            out[i] = -1
            any_undecided = True
        else:
            out[i] = index
    return any_undecided


# --------------------------------------------------------------------------------------- discrete Laplace and geometric
# Exact discrete Laplace and geometric noise.
#
#     P(X = k) = (1-a)/(1+a) * a^|k|,     a = exp(-rate),     rate = epsilon / sensitivity, a Fraction
#
# Write X = G with probability 1/(1+a) and X = -1-G otherwise, G geometric: P(G = g) = (1-a) a^g. The base-256
# digits of G are independent, digit j being v with probability proportional to a^(256^j v), and what lies above
# the lower digits is again geometric, with ratio a^(256^j). So a draw is one exact draw (`ExactLaw`) per digit,
# one to three in all at scales up to a million; the sign rides with the lowest digit.
#
# Counts leave `add_noise` inside ±2^61, a range that noise leaves with probability below exp(-2^11) at the
# smallest allowed rate; cutting there is a function of the noisy count alone.


Counts = NDArray[np.int64]

# Below this rate the digits of a draw would no longer fit into 64 bits. Plans refuse it before anything is charged.
SMALLEST_RATE = Fraction(1, 2**50)

_BASE = 256
_LAST = _BASE - 1
# A tail of the top digit longer than this many units of 1/rate sends a draw to the slow path.
_TAIL = 16
_LARGEST_COUNT = 2**61


def arb_fraction(value: Fraction) -> flint.arb:
    """The ball around a fraction at the current precision."""
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


class DiscreteLaplace:
    """Discrete Laplace noise with ratio a = exp(-rate)."""

    def __init__(self, rate: Fraction) -> None:
        self.rate = rate
        self._low_digit = ExactLaw(lambda: _signed_digit(rate, is_top=_n_digits(rate) == 1))
        self._high_digits = _digit_laws(rate)[1:]
        self._top = _digit_laws(rate)[-1]

    def draw(self, n: int, entropy: Entropy) -> Counts:
        """`n` independent draws."""
        signed = self._low_digit.draw(n, entropy)
        is_negative = signed >= _BASE
        magnitudes = _sum_digits(signed & _LAST, self._high_digits, self._top, entropy)
        return np.where(is_negative, -1 - magnitudes, magnitudes)

    def ratio(self) -> flint.arb:
        """a, at the current precision."""
        return (-arb_fraction(self.rate)).exp()

    def tail(self, t: int) -> flint.arb:
        """P(X >= t) at the current precision: a^t / (1+a) for t >= 1, and 1 - P(X >= 1-t) by symmetry below."""
        a = self.ratio()
        if t >= 1:
            return (-arb_fraction(self.rate * t)).exp() / (1 + a)
        return 1 - (-arb_fraction(self.rate * (1 - t))).exp() / (1 + a)


class Geometric:
    """Geometric noise P(G = g) = (1-a) a^g: discrete Laplace above a threshold, less the threshold."""

    def __init__(self, rate: Fraction) -> None:
        self.rate = rate
        self._laws = _digit_laws(rate)

    def draw(self, n: int, entropy: Entropy) -> Counts:
        """`n` independent draws."""
        return _sum_digits(self._laws[0].draw(n, entropy), self._laws[1:], self._laws[-1], entropy)


@lru_cache(maxsize=64)
def discrete_laplace(rate: Fraction) -> DiscreteLaplace:
    """The noise of a rate; its tables are made once."""
    return DiscreteLaplace(rate)


@lru_cache(maxsize=64)
def geometric(rate: Fraction) -> Geometric:
    """The geometric law of a rate; its tables are made once."""
    return Geometric(rate)


def add_noise(true_counts: Counts, rate: Fraction, entropy: Entropy) -> Counts:
    """The counts with independent discrete Laplace noise of the given rate, inside ±2^61."""
    # Noise saturates at ±2^62 (see `_sum_digits`) and counts stay below 2^53, so a saturated sum is always cut: the
    # result is a function of count + noise.
    noisy: Counts = true_counts + discrete_laplace(rate).draw(len(true_counts), entropy)
    return within_range(noisy)


def within_range(noisy_counts: Counts) -> Counts:
    """Noisy counts cut at ±2^61, those of empty bins too: an uncut one would tell its origin."""
    return noisy_counts.clip(-_LARGEST_COUNT, _LARGEST_COUNT)


# --------------------------------------------------------------------------------------------------------------- digits


def _n_digits(rate: Fraction) -> int:
    """How many digits it takes for the top one to reach its tail only rarely."""
    n = 1
    while _LAST * _BASE ** (n - 1) * rate < _TAIL:
        n += 1
    return n


@lru_cache(maxsize=64)
def _digit_laws(rate: Fraction) -> list[ExactLaw]:
    """Laws of the digits of a geometric variable, lowest first. In the top law 255 means "255 or more"."""
    n = _n_digits(rate)
    return [
        ExactLaw(lambda unit=rate * _BASE**j, is_top=j == n - 1: _digit(unit, is_top=is_top))  # type: ignore[misc]
        for j in range(n)
    ]


def _digit(unit: Fraction, *, is_top: bool) -> list[flint.arb]:
    """P(digit <= i), i < 255: proportional to 1 - r^(i+1), r = exp(-unit). The top digit keeps the tail in 255."""
    r = (-arb_fraction(unit)).exp()
    whole = flint.arb(1) if is_top else 1 - r**_BASE
    return [(1 - r ** (i + 1)) / whole for i in range(_LAST)]


def _signed_digit(rate: Fraction, *, is_top: bool) -> list[flint.arb]:
    """The lowest digit with the sign: 0..255 for X = G, 256..511 for X = -1-G."""
    a = (-arb_fraction(rate)).exp()
    positive = 1 / (1 + a)
    digit = [*_digit(rate, is_top=is_top), flint.arb(1)]
    return [positive * f for f in digit] + [positive + (1 - positive) * f for f in digit[:-1]]


def _sum_digits(low: Counts, higher: list[ExactLaw], top: ExactLaw, entropy: Entropy) -> Counts:
    """The number with these digits. A top digit of 255 or more goes on: the rest is geometric again."""
    total, place, digit = low.copy(), 1, low
    for law in higher:
        place *= _BASE
        digit = law.draw(len(low), entropy)
        total += place * digit
    pending = np.flatnonzero(digit == _LAST)
    while pending.size:
        more = top.draw(pending.size, entropy)
        total[pending] = np.minimum(total[pending] + place * more, 2**62)
        pending = pending[more == _LAST]
    return total
