"""Which values occur in a column, told with a proved chance: the selection of partitions.

A value that n rows have is kept with probability p(n), by a draw of its own; no count is released. p(0) = 0, so no
value is invented, and p grows as fast as the budget allows (Desfontaines, Voss, Gipson, Mandayam 2022):

    p(n)  =  min( e^g p(n-1) + delta_g,   1 - (1 - p(n-1) - delta_d) / e^d,   1 )

    add-remove    g = d = epsilon, delta_g = delta_d = delta, which is the best that any law of independent draws can be
    replace-one   one value loses a row and another gains one: g + d = epsilon and delta_g + delta_d = delta

Probabilities are whole numbers of 2^-64, rounded down from step to step, so that a draw is a comparison of 64 bits and
no probability is ever off. Proof: partitions.proof.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import flint
import numpy as np
from numpy.typing import NDArray

from spinney.errors import BudgetError
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import Entropy
from spinney.privacy.noise.discrete import arb_fraction
from spinney.privacy.noise.exact import as_integer

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
