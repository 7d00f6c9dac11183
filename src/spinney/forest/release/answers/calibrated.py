"""Calibrated answers: an estimate of the released model, and a variance with every source that is known of.

    noise         models that are fitted to redrawn noise, about the released one
    placement     rows inside leaves, luck inside boxes, dependence inside states    (`influence`)
    misfit        pairs that were not counted together                              (`misfit`)
    sampling      where the answer is that of a population

Whether a pair can be answered for at all is decided here too: by what was counted, and by the release's own numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from spinney.forest.release.answers.counted import Counted
from spinney.forest.release.answers.factors import Factor, Ratio
from spinney.forest.release.answers.influence import Influence, Term, luck, placement, resolution
from spinney.forest.release.answers.laws import Laws, states_of
from spinney.forest.release.answers.misfit import Misfit
from spinney.release.answers.students import t_quantile

if TYPE_CHECKING:
    from collections.abc import Mapping

_NOTHING = 1e-12
_MOST_FREEDOM = 1e6
# How far mean products of a pair are taken to be off where no sum of products says it, and an interval is forced.
_ASSUMED = 0.1
# The variance of three columns' products beyond those of their pairs, as a share of that of pairs.
_TRIPLES = 0.04


@dataclass(frozen=True, slots=True)
class Calibrated:
    """An estimate and its variances, by source, in the unit of the answer."""

    estimate: float
    variances: Mapping[str, float]
    n_redrawn: int

    @property
    def variance(self) -> float:
        return sum(self.variances.values())

    def half_width(self, level: float) -> float:
        """Half the length of the interval: redrawn models are few, which Student's law knows."""
        total, noise = self.variance, self.variances.get("noise", 0.0)
        if total <= 0:
            return 0.0
        freedom = self.n_redrawn * (total / noise) ** 2 if noise > 0 else _MOST_FREEDOM
        return t_quantile(level, min(max(freedom, 1.0), _MOST_FREEDOM)) * math.sqrt(total)


def calibrated(
    laws: Laws, misfit: Misfit | None, ratio: Ratio, counted: Counted | None, *, of_population: bool
) -> Calibrated:
    """The ratio of two means of products, with its variances.

    Args:
        laws: the released model and redrawn ones.
        misfit: the price of pairs that were not counted together, where sums of products say it.
        ratio: what is asked for.
        counted: the table that holds all its variables, if there is one.
        of_population: whether the rows are a sample of what is asked about.
    """
    above, below = laws.means(ratio.above), laws.means(ratio.below)
    added, sampled = laws.tilted(ratio.above)
    added_below, sampled_below = laws.tilted(ratio.below)
    bottom = max(float(below[0]) + added_below, _NOTHING)
    estimate = (float(above[0]) + added) / bottom
    plain = above / np.maximum(below, _NOTHING)
    noise = float(np.mean((plain[1:] - plain[0]) ** 2)) * (1 + 1 / max(laws.n_redrawn, 1)) if laws.n_redrawn else 0.0
    influence = influence_of(ratio, estimate, bottom)
    variances = {
        "noise": noise,
        "placement": placement(laws, influence) + luck(laws, influence, counted),
        "sample": (sampled + estimate**2 * sampled_below) / bottom**2,
    }
    if counted is not None and not counted.by_leaf:
        variances["resolution"] = resolution(laws, influence, counted.variables)
    if counted is None:
        variances["misfit"] = _misfit(laws, misfit, influence)
    if of_population:
        variances["sampling"] = _sampling(laws, ratio, influence, estimate)
    return Calibrated(estimate, variances, laws.n_redrawn)


def influence_of(ratio: Ratio, estimate: float, bottom: float) -> Influence:
    """What one row adds to the ratio, whose value and denominator are these."""
    valued = [variable for variable, factor in ratio.above.items() if factor.shift is not None]
    if valued:
        above = {
            variable: replace(factor, shift=estimate + (factor.shift or 0.0)) if variable in valued else factor
            for variable, factor in ratio.above.items()
        }
        return Influence((Term(1 / bottom, above),))
    terms = [Term(1 / bottom, ratio.above)]
    if ratio.below:
        terms.append(Term(-estimate / bottom, ratio.below))
    return Influence(tuple(terms))


def _misfit(laws: Laws, misfit: Misfit | None, influence: Influence) -> float:
    """The price of pairs that were not counted together, and of what three columns do beyond their pairs."""
    factors = influence.factors
    spreads = {variable: _variance(laws, variable, factor) for variable, factor in factors.items()}
    found = 0.0
    for pair in combinations(sorted(factors), 2):
        if laws.are_together(*pair):
            continue
        if misfit is not None and pair in misfit:
            variance = misfit.variance(pair, factors[pair[0]], factors[pair[1]])
        else:
            variance = _ASSUMED**2 * spreads[pair[0]] * spreads[pair[1]]
        found += influence.weight(laws, pair) ** 2 * variance
    off = _ASSUMED if misfit is None else misfit.spread
    for three in combinations(sorted(factors), 3):
        variance = _TRIPLES * off**2 * math.prod(spreads[variable] for variable in three)
        found += influence.weight(laws, three) ** 2 * variance
    return found


def _variance(laws: Laws, variable: int, factor: Factor) -> float:
    """The variance of a factor over rows."""
    mean, inside = states_of(factor, laws.leaves[variable])
    law = laws.law((variable,))
    return max(float(law @ (mean**2 + inside)) - float(law @ mean) ** 2, 0.0)


def _sampling(laws: Laws, ratio: Ratio, influence: Influence, estimate: float) -> float:
    """The variance of the answer over samples of as many rows."""
    if not ratio.below:
        return max(estimate * (1 - estimate), 0.0) / laws.total
    valued = [variable for variable, factor in ratio.above.items() if factor.shift is not None]
    if not valued:
        rows = laws.total * max(float(laws.means(ratio.below)[0]), _NOTHING)
        return max(estimate * (1 - estimate), 0.0) / rows
    variable = valued[0]
    (term,) = influence.terms
    factor, leaves = term.factors[variable], laws.leaves[variable]
    conditional = laws.law((variable,)) * (
        1.0 if len(term.factors) == 1 else abs(influence.weight(laws, (variable,))) / abs(term.coefficient)
    )
    return term.coefficient**2 * float(conditional @ factor.square_of(leaves)) / laws.total
