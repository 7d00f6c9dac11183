"""Exact sup-norm noise for vectors of whole numbers.

    P(Z = z) proportional to a^max(|z_1|, ..., |z_k|),     a = exp(-rate),     z in Z^k,     rate a Fraction

A vector of which every coordinate may move by 1 takes this noise at the rate epsilon, where noise on each
coordinate by itself would have to share epsilon among k of them. Z is uniform on a cube {-R, ..., R}^k of
random reach R with P(R = r) proportional to (2r+1)^k a^r, and

    sum over r of (2r+1)^k x^r  =  (b_0 + b_1 x + ... + b_k x^k) / (1 - x)^(k+1),     whole numbers b_j > 0

(Eulerian numbers of type B). So R is the sum of a start j, drawn with probability proportional to b_j a^j, and
of k+1 geometric variables of ratio a: nothing is ever rejected but words of the uniforms, and no floating-point
number takes part. Proof: supnorm.proof.md; the labels [step 1] ... are its steps.

    noise       draws of vectors, and the variance of a coordinate
    reach       the start of a reach, by Eulerian numbers
    uniforms    exact uniform draws from cubes of any reach
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import flint
import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.errors import ParameterError
from spinney.privacy.entropy import Entropy
from spinney.privacy.noise.discrete import SMALLEST_RATE, ExactLaw, arb_fraction, geometric

Integers = NDArray[np.int64]

MOST_AXES = 64

# Draws saturate here, as those of `discrete` do; `discrete.within_range` then hides where a cut number came from.
LARGEST_NOISE = 2**62
# With no part of a reach this large, 65 parts and a start stay below 2^62. The others take the slow path.
_WIDE = 2**55
_WORD = 32
_PRECISION = 256
_REFUSED = -(2**63)
_BLOCK = 1 << 18


class SupNormNoise:
    """Noise on vectors of `n_axes` whole numbers that falls by exp(-rate) per unit of sup norm."""

    def __init__(self, rate: Fraction, n_axes: int) -> None:
        if rate < SMALLEST_RATE:
            raise ParameterError(f"rate={rate} is below 2^-50; noise so wide does not fit, so count in coarser units")
        if not 1 <= n_axes <= MOST_AXES:
            raise ParameterError(f"n_axes={n_axes} is outside 1..{MOST_AXES}; split longer vectors and their budget")
        self.rate = rate
        self.n_axes = n_axes
        self._start = ExactLaw(lambda: _cumulative_start(rate, n_axes))
        self._part = geometric(rate)

    def draw(self, n: int, entropy: Entropy) -> Integers:
        """`n` independent vectors, one a row, each number cut at ±2^62."""
        drawn = np.empty((n, self.n_axes), dtype=np.int64)
        n_rows = max(1, _BLOCK // (self.n_axes + 1))
        for first in range(0, n, n_rows):
            self._fill(drawn[first : first + n_rows], entropy)
        return drawn

    def variance(self) -> float:
        """Variance of one coordinate: E R(R+1) / 3; about (k+1)(k+2) / (3 rate^2) at small rates."""
        with flint.ctx.workprec(_PRECISION):
            a = (-arb_fraction(self.rate)).exp()
            weights = _start_weights(self.rate, self.n_axes)
            whole = sum(weights, flint.arb(0))
            start = sum((j * w for j, w in enumerate(weights)), flint.arb(0)) / whole
            spread = sum((j * j * w for j, w in enumerate(weights)), flint.arb(0)) / whole - start**2
            reach = start + (self.n_axes + 1) * a / (1 - a)
            spread += (self.n_axes + 1) * a / (1 - a) ** 2
            return float((spread + reach**2 + reach) / 3)

    def _fill(self, out: Integers, entropy: Entropy) -> None:
        """Draw a block of rows."""
        n, k = out.shape
        starts = self._start.draw(n, entropy)  # [step 1]
        parts = self._part.draw(n * (k + 1), entropy).reshape(n, k + 1)  # [step 2]
        wide = np.flatnonzero(parts.max(axis=1) >= _WIDE)
        reaches = starts + parts.sum(axis=1)
        reaches[wide] = 0
        out[:] = _uniforms(np.repeat(reaches, k), entropy).reshape(n, k)  # [step 3]
        for i in wide:
            out[i] = self._wide_row(int(starts[i]), parts[i].tolist(), entropy)  # [step 4]

    def _wide_row(self, start: int, parts: list[int], entropy: Entropy) -> list[int]:
        """A row whose reach may be too large for 64 bits, in whole numbers of any size, then cut."""
        reach = start + sum(parts)
        n_saturated = parts.count(LARGEST_NOISE)
        while n_saturated:  # a saturated part goes on: what lies above is geometric again
            more = self._part.draw(n_saturated, entropy).tolist()
            reach += sum(more)
            n_saturated = more.count(LARGEST_NOISE)
        row = [_wide_uniform(reach, entropy) for _ in range(self.n_axes)]
        return [max(-LARGEST_NOISE, min(LARGEST_NOISE, z)) for z in row]


@lru_cache(maxsize=64)
def sup_norm_noise(rate: Fraction, n_axes: int) -> SupNormNoise:
    """The noise of a rate in so many dimensions; its tables are made once."""
    return SupNormNoise(rate, n_axes)


# ---------------------------------------------------------------------------------------------------------------- reach


@lru_cache(maxsize=MOST_AXES)
def eulerian_numbers(n_axes: int) -> tuple[int, ...]:
    """b_0, ..., b_k with (2r+1)^k = sum over j of b_j * binomial(r-j+k, k) for every r >= 0."""
    numbers = [1]
    for n in range(1, n_axes + 1):
        below, above = [*numbers, 0], [0, *numbers]
        numbers = [(2 * j + 1) * below[j] + (2 * (n - j) + 1) * above[j] for j in range(n + 1)]
    return tuple(numbers)


def _start_weights(rate: Fraction, n_axes: int) -> list[flint.arb]:
    """b_j a^j at the current precision."""
    return [number * (-arb_fraction(rate * j)).exp() for j, number in enumerate(eulerian_numbers(n_axes))]


def _cumulative_start(rate: Fraction, n_axes: int) -> list[flint.arb]:
    """P(start <= j), j < k."""
    sums = [flint.arb(0)]
    for weight in _start_weights(rate, n_axes):
        sums.append(sums[-1] + weight)
    return [below / sums[-1] for below in sums[1:-1]]


# ------------------------------------------------------------------------------------------------------------- uniforms


def _uniforms(reaches: Integers, entropy: Entropy) -> Integers:
    """One uniform draw from {-r, ..., r} per reach r < 2^62."""
    drawn = np.empty(len(reaches), dtype=np.int64)
    if _spread(reaches, entropy.words(2 * len(reaches)).view(np.uint64), drawn):
        pending = np.flatnonzero(drawn == _REFUSED)
        drawn[pending] = _uniforms(reaches[pending], entropy)
    return drawn


def _wide_uniform(reach: int, entropy: Entropy) -> int:
    """A uniform draw from {-reach, ..., reach} for a reach of any size."""
    n_bits = (2 * reach + 1).bit_length()
    n_words = -(-n_bits // _WORD)
    while True:
        bits = 0
        for word in entropy.words(n_words):
            bits = bits << _WORD | int(word)
        bits >>= n_words * _WORD - n_bits
        if bits <= 2 * reach:
            return bits - reach


@compiled
def _spread(reaches: Integers, words: NDArray[np.uint64], out: Integers) -> bool:
    """Reduce 64-bit words modulo 2r+1, refusing those past the last whole run of 2r+1 words. True if there are any."""
    any_refused = False
    for i in range(reaches.size):
        n_values = np.uint64(2 * reaches[i] + 1)
        rest = words[i] % n_values
        if words[i] - rest > np.uint64(0) - n_values:  # 2^64 - n_values: the last place where a whole run can start
            out[i] = _REFUSED
            any_refused = True
        else:
            out[i] = np.int64(rest) - reaches[i]
    return any_refused
