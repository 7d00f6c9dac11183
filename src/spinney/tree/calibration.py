"""How much noise PrivTree's decisions need: the exact worst case, certified.

Let r be the rate of the decision noise, a = exp(-r), D = decay, and let one row be added below a path of L
noisy decisions. The worst outcome is that every node on the path splits, with scores at cutoff - D, cutoff,
cutoff + D, ...; its log-ratio is

    S = r + sum over i = 0..L-2 of  ln( (1 - a^(iD+1)/(1+a)) / (1 - a^(iD)/(1+a)) ),

and a single "no split" gains at most r. Hence (proof: kdtree.proof.md, lemma 2)

    add-remove     worst case S            about 2.61 r,  textbook 3 r
    replace-one    worst case S + r        about 3.61 r,  textbook 6 r

The second line is where most is won: the path that loses the row gains from at most one decision, not from all of them.
"""

from __future__ import annotations

from fractions import Fraction

import flint

from spinney.errors import BudgetError
from spinney.privacy.budget import Unit
from spinney.privacy.noise.discrete import arb_fraction
from spinney.privacy.noise.exact import as_integer

_PRECISION = 192
# Rates are searched as multiples of epsilon' / 4096; rounding down means at most 0.1 % more noise than needed.
_GRID = 4096


def decay_for(rate: Fraction, factor: Fraction = Fraction(1)) -> int:
    """ceil(factor ln 2 / rate), the bias per level: from factor 1 on, an empty node's offspring dies out."""
    with flint.ctx.workprec(_PRECISION):
        return max(1, as_integer((arb_fraction(factor) * flint.arb(2).log() / arb_fraction(rate)).ceil()))


def worst_path_loss(rate: Fraction, decay: int, levels: int, unit: Unit) -> flint.arb:
    """The largest log-ratio of all decisions together, over all neighbours and outcomes, at the current precision."""
    if levels == 0:
        return flint.arb(0)
    a = (-arb_fraction(rate)).exp()
    loss = arb_fraction(rate * min(levels, 2))  # the terms at cutoff - D and at cutoff are r each
    for i in range(1, levels - 1):
        power = (-arb_fraction(rate * (i * decay))).exp() / (1 + a)
        loss += ((1 - a * power) / (1 - power)).log()
    return loss + arb_fraction(rate) if unit.of_rows is Unit.REPLACE_ONE else loss


def is_within(rate: Fraction, decay: int, levels: int, unit: Unit, epsilon: Fraction) -> bool:
    """Whether the worst case is certainly at most epsilon."""
    with flint.ctx.workprec(_PRECISION):
        return bool(worst_path_loss(rate, decay, levels, unit) <= arb_fraction(epsilon))


def largest_privtree_rate(
    epsilon: Fraction, *, levels: int, unit: Unit, decay_factor: Fraction = Fraction(1)
) -> tuple[Fraction, int]:
    """The largest rate on the search grid, with its decay, whose worst case is certainly within epsilon."""
    low, high = _GRID // 6, _GRID  # the textbook's epsilon / 6 is always enough
    while high - low > 1:
        middle = (low + high) // 2
        rate = epsilon * middle / _GRID
        if is_within(rate, decay_for(rate, decay_factor), levels, unit, epsilon):
            low = middle
        else:
            high = middle
    rate = epsilon * low / _GRID
    decay = decay_for(rate, decay_factor)
    if not is_within(rate, decay, levels, unit, epsilon):
        raise BudgetError(f"no decision noise could be certified for {levels} levels within epsilon={epsilon}")
    return rate, decay
