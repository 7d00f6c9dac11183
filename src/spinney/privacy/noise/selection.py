"""Exact choices by the exponential mechanism: a high score of many, and nobody can tell which row made it high.

    P(i) proportional to exp(rate * score_i),     scores whole numbers, rate a Fraction

If a row changes every score by at most D, the choice has bounded range 2 rate D, and so is 2 rate D-DP
(`parts.Selections`, `ledger.Selection`).

To choose is to read a uniform number u bit by bit until the bits say between which two cumulative chances it lies.
Floats, within a proved margin, settle all but one choice in a million out of 50,000; the rest are settled by Arb with
as many bits as it takes (`exact`). No chance is ever rounded, also none to zero. Proof: selection.proof.md.
"""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction

import flint
import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.errors import ParameterError
from spinney.privacy.entropy import Entropy
from spinney.privacy.noise.discrete import arb_fraction
from spinney.privacy.noise.exact import scaled_bounds
from spinney.privacy.noise.gaussian import exp_of_minus, exponentials

Scores = NDArray[np.int64]

# Differences of scores must fit into 64 bits.
LARGEST_SCORE = 2**61

_WORD = 32
# Cumulative weights of n candidates are off by less than (n + 512) times this share of the total.
_MARGIN = 2.0**-52
_EXTRA = 512


def choose(scores: Scores, rate: Fraction, entropy: Entropy) -> int:
    """The place of one of the scores, place i with probability proportional to exp(rate * scores[i]), exactly.

    Charges nothing: the caller has paid for the choice, at 2 * rate * D where a row changes a score by at most D.
    """
    if scores.ndim != 1 or not scores.size or scores.dtype != np.int64:
        raise ParameterError(f"scores of shape {scores.shape} and type {scores.dtype} are not a list of int64 numbers")
    if rate <= 0:
        raise ParameterError(f"rate={rate} is not positive; a choice needs some budget")
    gaps: Scores = np.clip(scores, -LARGEST_SCORE, LARGEST_SCORE)  # brings no two tables further apart
    gaps = gaps.max() - gaps
    cumulative = np.empty(gaps.size)
    _accumulate(gaps, float(rate), *exponentials(), cumulative)  # [step 1]

    high, low = (int(word) for word in entropy.words(2))  # [step 2]
    bits = high << _WORD | low
    total = float(cumulative[-1])
    target = bits * 2.0 ** (-2 * _WORD) * total
    place = int(np.searchsorted(cumulative, target, side="right"))
    margin = total * (gaps.size + _EXTRA) * _MARGIN
    if place < gaps.size:
        is_below = place == gaps.size - 1 or cumulative[place] - target > margin
        if is_below and (place == 0 or target - cumulative[place - 1] > margin):
            return place
    return _refine(gaps, rate, bits, entropy)  # [step 3]


def _refine(gaps: Scores, rate: Fraction, bits: int, entropy: Entropy) -> int:
    """The place that 64 bits and as many more as it takes lead to, by intervals around the exact chances."""
    n_bits = 2 * _WORD
    distinct, places = np.unique(gaps, return_inverse=True)
    precision = n_bits + 64
    while True:
        bounds, precision = scaled_bounds(lambda: _chances(distinct, places, rate), n_bits, max(precision, n_bits + 64))
        place = bisect_right(bounds, bits, key=lambda bound: bound[1])
        if place == len(bounds) or bits < bounds[place][0]:
            return place
        for word in entropy.words(2):
            bits = bits << _WORD | int(word)
            n_bits += _WORD


def _chances(distinct: Scores, places: NDArray[np.intp], rate: Fraction) -> list[flint.arb]:
    """P(choice <= i) for all i but the last, at the current precision."""
    weights = [(-arb_fraction(rate * int(gap))).exp() for gap in distinct]
    sums, total = [], flint.arb(0)
    for place in places:
        total += weights[place]
        sums.append(total)
    return [each / total for each in sums[:-1]]


@compiled
def _accumulate(
    gaps: Scores,
    rate: float,
    wholes: NDArray[np.float64],
    parts: NDArray[np.float64],
    cumulative: NDArray[np.float64],
) -> None:
    """Sums of exp(-rate * gap) up to each place, with +, -, *, / alone; weights below exp(-64) count as none."""
    total = 0.0
    for i in range(gaps.size):
        exponent = np.float64(gaps[i]) * rate
        total += exp_of_minus(exponent, wholes, parts)
        cumulative[i] = total
