"""Exact choices: which values of a column are found, and which candidate the exponential mechanism picks.

    partition selection       each value kept by a draw of its own; proof: partitions.proof.md
    exponential mechanism     one of many scores, exactly; proof: selection.proof.md

No probability is ever rounded by a float: draws compare random bits with whole numbers, or with intervals that
are refined until the bits decide.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import flint
import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.errors import BudgetError, ParameterError
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import Entropy
from spinney.privacy.noise.discrete import arb_fraction, as_integer, scaled_bounds
from spinney.privacy.noise.gaussian import exp_of_minus, exponentials

# -------------------------------------------------------------------------------------------------- partition selection
# Which values occur in a column, each reported with a proved probability: partition selection.
#
# A value that n rows have is kept with probability p(n), by a draw of its own; no count is released. p(0) = 0,
# so no value is invented, and p grows as fast as the budget allows (Desfontaines, Voss, Gipson, Mandayam 2022):
#
#     p(n)  =  min( e^g p(n-1) + delta_g,   1 - (1 - p(n-1) - delta_d) / e^d,   1 )
#
#     add-remove    g = d = epsilon, delta_g = delta_d = delta, the best that a law of independent draws can be
#     replace-one   one value loses a row and another gains one: g + d = epsilon and delta_g + delta_d = delta
#
# Probabilities are whole numbers of 2^-64, rounded down from step to step, so that a draw is a comparison of 64
# bits and no probability is ever off. Proof: partitions.proof.md.


_BITS = 64
_ONE = 1 << _BITS
# Under replace-one, what a growing probability has of epsilon and of delta; a shrinking one has the rest.
_GROWTH = Fraction(3, 5)
_GROWTH_DELTA = Fraction(9, 10)
# A budget so small that a value of so many rows would not be kept for certain is refused.
_MOST_ROWS = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class KeepLaw:
    """Probabilities of keeping a value by its number of rows, in units of 2^-64; from `n_certain` rows on, 1."""

    chances: NDArray[np.uint64]  # (n_certain,)

    @property
    def n_certain(self) -> int:
        """The number of rows from which on a value is always kept."""
        return len(self.chances)

    def probability(self, n_rows: int) -> Fraction:
        """The exact probability that a value of so many rows is kept."""
        return Fraction(1) if n_rows >= self.n_certain else Fraction(int(self.chances[n_rows]), _ONE)

    def rows_for(self, probability: Fraction) -> int:
        """The least number of rows with which a value is kept at least as often as that."""
        least = min(-(-probability * _ONE // 1), _ONE - 1)
        return int(np.searchsorted(self.chances, np.uint64(int(least))))

    def keep(self, true_counts: NDArray[np.int64], entropy: Entropy) -> NDArray[np.bool_]:
        """Which values are kept, by 64 random bits for each. Charges nothing: the caller has paid."""
        words = entropy.words(2 * len(true_counts)).astype(np.uint64)  # [step 4]
        drawn = words[0::2] << np.uint64(32) | words[1::2]
        is_certain = true_counts >= self.n_certain
        chances = self.chances[np.where(is_certain, 0, true_counts)]
        return is_certain | (drawn < chances)


@lru_cache(maxsize=64)
def keep_law(epsilon: Fraction, delta: Fraction, unit: Unit) -> KeepLaw:
    """The law that is (epsilon, delta)-differentially private in a unit, for one column."""
    growth, shrinking, growth_delta, shrinking_delta = _shares(epsilon, delta, unit)  # [step 1]
    up, down = _below_exp(growth), _below_exp(shrinking)
    least_up, least_down = (int(share * _ONE) for share in (growth_delta, shrinking_delta))
    if least_up < 1 or least_down < 1:
        raise BudgetError(f"delta={float(delta):.3g} is too small to find values with; give a larger delta")
    chances, chance = [0], 0
    while chance < _ONE:
        grown = (chance * up >> _BITS) + least_up  # [step 2]
        rest = _ONE - chance - least_down
        left = -(-rest * _ONE // down) if rest > 0 else 0  # [step 3]
        chance = min(grown, _ONE - left, _ONE)
        chances.append(chance)
        if len(chances) > _MOST_ROWS:
            raise BudgetError(
                f"epsilon={float(epsilon):.3g} is too small to find values with: one of a million rows might not be "
                "found; raise epsilon or values_share, or list the values"
            )
    return KeepLaw(np.array(chances[:-1], dtype=np.uint64))


def _shares(epsilon: Fraction, delta: Fraction, unit: Unit) -> tuple[Fraction, Fraction, Fraction, Fraction]:
    """g, d, delta_g, delta_d."""
    if unit.of_rows is Unit.ADD_REMOVE:
        return epsilon, epsilon, delta, delta
    growth, growth_delta = epsilon * _GROWTH, delta * _GROWTH_DELTA
    return growth, epsilon - growth, growth_delta, delta - growth_delta


def _below_exp(exponent: Fraction) -> int:
    """A whole number at or below 2^64 e^exponent, by less than 2."""
    precision = 256
    while True:
        with flint.ctx.workprec(precision):
            ball = arb_fraction(exponent).exp() * flint.arb(2) ** _BITS
            if ball.rad() < 0.5:
                return as_integer(ball.lower().floor())
        precision *= 2


# ------------------------------------------------------------------------------------------------ exponential mechanism
# Exact choices by the exponential mechanism: a high score of many, and nobody can tell which row made it high.
#
#     P(i) proportional to exp(rate * score_i),     scores whole numbers, rate a Fraction
#
# If a row changes every score by at most D, the choice has bounded range 2 rate D, and so is 2 rate D-DP
# (`mechanisms.Selections`, `mechanisms.Selection`).
#
# To choose is to read a uniform number u bit by bit until the bits say between which two cumulative chances it
# lies. Floats, within a proved margin, settle all but one choice in a million out of 50,000; the rest are
# settled by Arb with as many bits as it takes (`discrete.py`, exact distributions). No chance is ever rounded,
# also none to zero. Proof: selection.proof.md.


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
