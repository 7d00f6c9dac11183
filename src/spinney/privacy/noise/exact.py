"""Exact draws from finite laws whose probabilities are irrational.

A law is known through its cumulative probabilities F(0) <= F(1) <= ... as intervals of any width that is asked
for. To draw is to read a uniform number u bit by bit and to stop as soon as the bits say between which two F it
lies:

1. Read 32 bits. Compare with a table of floor(2^32 F(i)). Almost always this settles it, in a compiled loop.
2. Where the bits read so far agree with some F(i) to the last place, read 64 more and compute F to that many places.
   Repeat. Every round settles all but a 2^-64 part, so this ends with probability 1, and the law is exactly F: no
   rounding of F ever enters a decision.

Intervals come from Arb (`python-flint`), whose balls provably contain the real number.
"""

from __future__ import annotations

from collections.abc import Callable

import flint
import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.privacy.entropy import Entropy, Words

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
