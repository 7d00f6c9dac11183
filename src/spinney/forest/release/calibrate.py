"""Calibrated answers of a forest: the model's estimates with every known source of error. PUBLIC.

    noise         models fitted to redrawn noise
    placement     rows inside leaves, luck inside boxes, dependence inside states
    misfit        pairs that were not counted together (`misfit`)
    sampling      where the answer is that of a population

Parts of the chapter:

    influence             what one row adds to an answer, and the variances that follow
    calibrated answers    the estimate and its variances
    tails                 rows that the model may have lost in leaves that it takes for empty
    quantiles             where the share of rows below is the one asked for (Woodruff)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spinney.forest.release.certify import Counted
from spinney.forest.release.columns import ColumnModel, Floats
from spinney.forest.release.measured import MeasuredColumn, NoiseLaw
from spinney.forest.release.misfit import Factor, Factors, Laws, Misfit, Ratio, states_of
from spinney.forest.release.parts import Flags, Leaves, Part, Values, valued
from spinney.release.answers.ranks import t_quantile

if TYPE_CHECKING:
    pass


# ------------------------------------------------------------------------------------------------------------ influence
# Influence: what one row adds to an answer, and the variances that follow from what the model cannot know of rows.
#
# placement     rows of a leaf that a condition cuts, or whose values are asked for, lie in it as they like; values that
#               come in steps which nobody stated lie on the same side of all leaves
# luck          the rows of a box are so many; which of them meet a condition inside of it is chance
# resolution    columns that were counted together are independent inside a state: how far they are not is taken from
#               neighbouring states, which the model can tell apart


# Rows of a leaf follow a law of its own whose share in a part has this times the variance of a row's being there.
PLACEMENT = 0.2
# A density that changes by a factor of exp(g) along a leaf puts g / 8 of its rows on the other side of its middle.
_STEEP = 16.0
# Rows lie on the same side of all leaves, by this many standard deviations of a value inside a leaf.
LEANING = 0.7
# The squared correlation inside a state, as a share of that between neighbouring states.
INSIDE = 0.5
# Where in a state a mean jumps, if it does, is not known: the error of a jump at the worst place, and half as much for
# what neighbours do not show of its height, is two deviations.
AT_ONCE = 0.75
# The squared correlation of being at a heap, inside a state, with what another column is.
HEAPED = 0.5
# A leaf is a heap by what it has beyond so many times the usual density of its state, of more leaves than these.
_HEAP, _FEW_LEAVES = 3.0, 2


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A multiple of a product of factors."""

    coefficient: float
    factors: Factors


@dataclass(frozen=True, slots=True, eq=False)
class Influence:
    """What one row adds to an answer: a sum of terms, which agree on the factor of a variable that both have."""

    terms: tuple[Term, ...]

    @property
    def factors(self) -> dict[int, Factor]:
        return {variable: factor for term in self.terms for variable, factor in term.factors.items()}

    def weight(self, laws: Laws, without: Sequence[int]) -> float:
        """What multiplies the product of the factors of some variables, all others at their means."""
        total = 0.0
        for term in self.terms:
            if all(variable in term.factors for variable in without):
                rest = [
                    float(laws.law((variable,)) @ factor.of(laws.leaves[variable]))
                    for variable, factor in term.factors.items()
                    if variable not in without
                ]
                total += term.coefficient * float(np.prod(rest))
        return total

    def table(self, laws: Laws, variables: Sequence[int], without: int | None = None) -> tuple[Floats, Floats]:
        """The mean in each cell of states, and the mean of squares; `without` one factor, in terms that have it."""
        terms = [term for term in self.terms if without is None or without in term.factors]
        shape = [laws.leaves[variable].n_states for variable in variables]
        mean, square = np.zeros(shape), np.zeros(shape)
        moments = {v: states_of(factor, laws.leaves[v]) for v, factor in self.factors.items()}

        def along(variable: int, line: Floats) -> Floats:
            return line.reshape([-1 if other == variable else 1 for other in variables])

        def product(of: Factors, skipped: frozenset[int]) -> Floats:
            found = np.ones([1] * len(variables))
            for variable in of:
                if variable not in skipped and variable != without:
                    found = found * along(variable, moments[variable][0])
            return found

        for one in terms:
            mean = mean + one.coefficient * product(one.factors, frozenset())
            for other in terms:
                shared = frozenset(one.factors) & frozenset(other.factors)
                both = product(one.factors, shared) * product(other.factors, shared)
                for variable in shared - {without}:
                    centre, spread = moments[variable]
                    both = both * along(variable, centre**2 + spread)
                square = square + one.coefficient * other.coefficient * both
        return mean, np.maximum(square, mean**2)


def placement(laws: Laws, influence: Influence) -> float:
    """The variance that comes from where rows lie in leaves that are cut, or whose values are asked for."""
    found = 0.0
    for variable, factor in influence.factors.items():
        leaves = laws.leaves[variable]
        inside = factor.leaf_square() - factor.leaf_mean() ** 2
        weight = influence.weight(laws, (variable,))
        share = laws.law((variable,))[leaves.states] * leaves.inside()
        part = scatter_inside(laws, variable, factor.part)
        inside = np.maximum(inside, 0.0)
        found += weight**2 * float((part * share**2) @ inside)
        if factor.part.at_edge is not None and factor.shift is None:
            found += weight**2 * float(factor.part.at_edge @ share**2)
        if factor.shift is not None:
            found += weight**2 * (LEANING * float(share @ np.sqrt(inside))) ** 2
    return found


def scatter_inside(laws: Laws, variable: int, part: Part) -> Floats:
    """The variance of the share of each leaf's rows that lies in a part of it, over that of one row's being there.

    It is larger where leaves on both sides say that the density changes much from one end of the leaf to the other,
    which rows that are even inside do not show: up to 1, all rows at one end.
    """
    leaves = part.leaves
    found = np.full(len(leaves.states), PLACEMENT)
    if isinstance(leaves, ColumnModel):
        holds = (leaves.length > 0) & ~leaves.is_null
        density = np.maximum(leaves.weights, laws.noise_std(variable))[holds] / leaves.length[holds]
        if len(density) > 1:
            slope = np.abs(np.gradient(np.log(np.maximum(density, 1e-300))))
            found[holds] += (1 - PLACEMENT) * np.minimum(slope**2 / _STEEP, 1.0)
    return found if part.is_pile is None else np.where(part.is_pile, 1.0, found)


def luck(laws: Laws, influence: Influence, counted: Counted | None) -> float:
    """The variance of rows' own luck inside of the boxes that were counted."""
    if counted is None or counted.by_leaf:
        found = 0.0
        for variable, factor in influence.factors.items():
            leaves = laws.leaves[variable]
            inside = np.maximum(factor.leaf_square() - factor.leaf_mean() ** 2, 0.0)
            share = laws.law((variable,))[leaves.states] * leaves.inside()
            found += influence.weight(laws, (variable,)) ** 2 * float(share @ inside)
        return found / laws.total
    if not laws.is_small(counted.variables):
        return 0.0
    law, boxes = laws.law(counted.variables).ravel(), counted.labels.ravel()
    mean, square = (
        np.broadcast_to(table, counted.labels.shape).ravel() for table in influence.table(laws, counted.variables)
    )
    held = boxes >= 0
    shares, sums, squares = (
        np.bincount(boxes[held], weights=(law * numbers)[held], minlength=counted.n_boxes)
        for numbers in (np.ones_like(law), mean, square)
    )
    inside = squares - np.divide(sums**2, shares, out=np.zeros_like(sums), where=shares > 0)
    return float(np.maximum(inside, 0.0).sum()) / laws.total


def resolution(laws: Laws, influence: Influence, variables: tuple[int, ...]) -> float:
    """The variance that comes from columns being taken for independent inside the states of a counted table."""
    if len(influence.factors) < 2 or not laws.is_small(variables):
        return 0.0
    law = laws.law(variables)
    found = 0.0
    for variable, factor in influence.factors.items():
        axis = variables.index(variable)
        _, inside = states_of(factor, laws.leaves[variable])
        if not inside.any():
            continue
        mean, square = influence.table(laws, variables, without=variable)
        others = tuple(place for place in range(law.ndim) if place != axis)
        share = law.sum(axis=others)
        centre = np.divide((law * mean).sum(axis=others), share, out=np.zeros_like(share), where=share > 0)
        around = np.divide((law * square).sum(axis=others), share, out=np.zeros_like(share), where=share > 0)
        reach = share * np.sqrt(inside * np.maximum(around - centre**2, 0.0))
        dependence = max(alike_inside(laws, variable, other) for other in influence.factors if other != variable)
        if factor.shift is not None:  # values lean the same way in all states
            found += INSIDE * dependence * float(reach.sum()) ** 2
            continue
        # A condition cuts two of them, each its own way; all that changes around a state may change at one place in it.
        changed = share * inside * _change_around(centre, laws.leaves[variable])
        found += float(np.maximum(INSIDE * dependence * reach**2, (AT_ONCE * changed) ** 2).sum())
        spread = np.sqrt(np.maximum(around - centre**2, 0.0))
        found += HEAPED * float((share * spread * _heaps_apart(factor, laws.leaves[variable])).sum()) ** 2
    return found


def _heaps_apart(factor: Factor, leaves: Leaves) -> Floats:
    """By state, the standard deviation of being in a part that is told by being at a heap: one of a few values.

    Some rows of a state have round values and others have not, which one meter rounds and another does not. Where a
    condition parts the heaps of a state from its other rows, it parts the rows of the meters.
    """
    if not isinstance(leaves, ColumnModel) or not _is_ordered(leaves):
        return np.zeros(leaves.n_states)
    present = ~leaves.is_null
    low, weights, states = leaves.low[present], leaves.weights[present], leaves.states[present]
    inside = np.asarray(factor.leaf_mean())[present]
    width = np.diff(low, append=low[-1] + max(float(leaves.length[present][-1]), 0.0))
    found = np.zeros(leaves.n_states)
    for state in np.flatnonzero(np.bincount(states, minlength=leaves.n_states) > _FEW_LEAVES):
        here = states == state
        rows = weights[here]
        n_rows, density = (
            float(rows.sum()),
            np.divide(rows, width[here], out=np.zeros_like(rows), where=width[here] > 0),
        )
        heaped = np.maximum(rows - _HEAP * float(np.median(density)) * width[here], 0.0)
        part = float(heaped.sum()) / max(n_rows, _NO_ROWS)
        if 0 < part < 1:
            together = float(inside[here] @ (heaped - part * rows)) / n_rows
            found[state] = abs(together) / math.sqrt(part * (1 - part))
    return found


def _change_around(means: Floats, leaves: Leaves) -> Floats:
    """How much a mean by state changes from the state before each one to the one after it; 0 where none is ordered."""
    found = np.zeros_like(means)
    if isinstance(leaves, ColumnModel) and _is_ordered(leaves):
        order = np.unique(leaves.states[~leaves.is_null], return_index=True)
        states = order[0][np.argsort(order[1], kind="stable")]
        along = np.pad(means[states], 1, mode="edge")
        found[states] = np.abs(along[2:] - along[:-2])
    return found


def alike_inside(laws: Laws, variable: int, other: int) -> float:
    """The mean squared correlation of being in one of two neighbouring states with what another column is."""
    law = laws.law((variable, other))
    leaves, others = laws.leaves[variable], laws.leaves[other]
    order = _order(leaves)
    table = law[order][:, _order(others)]
    if len(order) < 2 or table.shape[1] < 2:
        return 0.0
    shares = table.sum(axis=1)
    below = np.cumsum(table, axis=1)[:, :-1]
    rates = np.divide(below, shares[:, None], out=np.zeros_like(below), where=shares[:, None] > 0)
    if isinstance(leaves, ColumnModel) and _is_ordered(leaves):
        first, second = np.arange(len(order) - 1), np.arange(1, len(order))
    else:
        first, second = np.triu_indices(len(order), 1)
    both = shares[first] + shares[second]
    part = np.divide(shares[first], both, out=np.zeros_like(both), where=both > 0)
    gaps = (rates[first] - rates[second]) ** 2 * (part * (1 - part))[:, None]
    joined = part[:, None] * rates[first] + (1 - part)[:, None] * rates[second]
    spread = joined * (1 - joined)
    weights = both[:, None]
    whole = float((weights * spread).sum())
    return float((weights * gaps).sum()) / whole if whole > 0 else 0.0


def _order(leaves: object) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """States in the order in which their first leaves lie."""
    states: np.ndarray[tuple[int], np.dtype[np.int32]] = leaves.states  # type: ignore[attr-defined]
    _, first = np.unique(states, return_index=True)
    return np.argsort(first, kind="stable")


def _is_ordered(leaves: ColumnModel) -> bool:
    """Whether states are runs of neighbouring leaves, null aside."""
    states = leaves.states[~leaves.is_null]
    return int((np.diff(states) != 0).sum()) + 1 == len(np.unique(states))


# --------------------------------------------------------------------------------------------------- calibrated answers
# Calibrated answers: an estimate of the released model, and a variance with every source that is known of.
#
#     noise         models that are fitted to redrawn noise, about the released one
#     placement     rows inside leaves, luck inside boxes, dependence inside states    (influence, above)
#     misfit        pairs that were not counted together                              (`misfit`)
#     sampling      where the answer is that of a population
#
# Whether a pair can be answered for at all is decided here too: by what was counted, and by the release's own
# numbers.


_NO_ROWS = 1e-12
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
    bottom = max(float(below[0]) + added_below, _NO_ROWS)
    estimate = (float(above[0]) + added) / bottom
    plain = above / np.maximum(below, _NO_ROWS)
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
        rows = laws.total * max(float(laws.means(ratio.below)[0]), _NO_ROWS)
        return max(estimate * (1 - estimate), 0.0) / rows
    variable = valued[0]
    (term,) = influence.terms
    factor, leaves = term.factors[variable], laws.leaves[variable]
    conditional = laws.law((variable,)) * (
        1.0 if len(term.factors) == 1 else abs(influence.weight(laws, (variable,))) / abs(term.coefficient)
    )
    return term.coefficient**2 * float(conditional @ factor.square_of(leaves)) / laws.total


# ---------------------------------------------------------------------------------------------------------------- tails
# Tails: what leaves may hold that the model takes for empty, and where in coarse leaves rows may lie.
#
# A model takes leaves with hardly more than noise for empty. Most are; where they are not, it has lost rows,
# and models that are fitted to redrawn noise do not show it, since they have lost them too. The raw counts of
# such leaves say how many rows they may hold, give or take the noise of their sum. Sums over leaves whose
# counts were found small are too small on average, so leaves among others, where noise cancels, give little
# room; those far out by themselves give all that noise could hide. Rows may lie anywhere inside such a leaf,
# inside any leaf whose ends differ by more than a factor of three, and inside one that stands alone beyond the
# median (`columns.stands_alone`): a code for "unknown" is at the end of its leaf, wherever amounts of that size
# would be.


# A mean to whose interval empty or coarse leaves add more than this part of it is indicative.
MOST_ADDED = 0.5
# Rows lie anywhere inside leaves whose ends differ by more than this factor.
_COARSE = 3.0

LOST = (
    "the mean rests on where rows far out lie: leaves that hold no more than noise may hold rows, and rows of coarse "
    "leaves may lie anywhere inside; the interval has room for both"
)
REMEDY = "ask for statement='certified', state nearer bounds, or fit with a larger epsilon"


class Hidden(NamedTuple):
    """What leaves that are taken for empty may hold: a sum of raw counts, and the standard deviation of its noise."""

    total: float
    std: float

    def most(self, reach: float, z: float) -> float:
        """How far above an estimate the truth may be, that has this reach by itself: that far, or farther."""
        return max(reach, self.total + math.hypot(reach, z * self.std))


def noise_quantile(law: NoiseLaw, level: float) -> float:
    """How many of its standard deviations noise stays within; Laplace noise reaches farther than normal noise."""
    normal = t_quantile(level, math.inf)
    return normal if law.law == "discrete gaussian" else max(normal, -math.log1p(-level) / math.sqrt(2))


def hidden(part: Part, column: MeasuredColumn, worth: Floats | None = None) -> Hidden:
    """Of leaves that a condition touches and that the model empties or thins, each row being worth so much, or 1."""
    if column.kind == "codes":  # codes are known from their groups as well
        return Hidden(0.0, 0.0)
    most = np.zeros(len(column.noisy))
    np.maximum.at(most, column.leaf, np.where(part.touches, 1.0 if worth is None else worth, 0.0))
    held = np.bincount(column.leaf, part.leaves.weights, len(most))
    lost = column.noisy - held
    most[(held > 0) & (lost < column.noise.std)] = 0.0
    return Hidden(float(most @ lost), column.noise.std * float(np.linalg.norm(most)))


def is_coarse(low: Floats, high: Floats) -> Flags:
    """Which leaves reach over numbers of so different a size that rows may lie anywhere inside."""
    near, far = np.minimum(np.abs(low), np.abs(high)), np.maximum(np.abs(low), np.abs(high))
    return (high > low) & ((far > _COARSE * near) | (low * high < 0))


def added_to_mean(
    part: Part, column: MeasuredColumn, rows: Floats, mean: float, reach: float, level: float, *, is_loose: Flags
) -> tuple[float, float]:
    """How far below and above its estimate a mean may be.

    Args:
        part: the column's leaves, with values.
        column: as it was counted.
        rows: how many rows that are asked about each leaf has.
        mean: the estimate.
        reach: that of the mean by all that the model knows of.
        level: of the interval.
        is_loose: leaves in which rows may lie anywhere, besides those whose ends differ by a factor of three.
    """
    values = part.values
    assert values is not None
    n_rows, z = max(float(rows.sum()), 1.0), noise_quantile(column.noise, level)
    coarse = np.where((is_loose | is_coarse(values.low, values.high)) & (part.share > 0), rows, 0.0)
    found = []
    for worth, lean in ((mean - values.low, values.mean - values.low), (values.high - mean, values.high - values.mean)):
        far = hidden(part, column, np.maximum(worth, 0.0))
        found.append(Hidden(far.total / n_rows, far.std / n_rows).most(reach, z) + float(coarse @ lean) / n_rows)
    return found[0], found[1]


# ------------------------------------------------------------------------------------------------------------ quantiles
# Quantiles of a column over the rows asked for: where the share of rows below is what it should be (Woodruff).
#
# The share of rows up to a value has an error like any share. The ends of the interval are the least and the largest
# value of which the release cannot tell that too few, or too many, rows lie up to it: by what the model does not know
# of that share, by where rows of the value's own leaf lie, and by rows that leaves may hold which are taken for
# empty. An estimate in steps may be off by a step whatever shares say, so the next values that have rows belong to
# the interval.


# Of a step: shares of leaves are rounded.
_NEAR = 1e-9
# Places inside a leaf at which an end of an interval is looked for.
_PLACES = 64


@dataclass(frozen=True, slots=True, eq=False)
class _Ascending:
    """Leaves of a column in the order of their values: their ends, and the shares of the rows asked for."""

    low: Floats
    high: Floats
    mass: Floats
    below: Floats  # (n_leaves + 1,): the share of rows below each leaf, and below none
    spacing: Fraction | None

    def n_steps(self, leaf: int) -> float:
        """How many values a leaf has, of a column in steps."""
        assert self.spacing is not None
        return float(np.rint((self.high[leaf] - self.low[leaf]) / float(self.spacing))) + 1

    def leaf_of(self, at: float) -> int:
        """The leaf in which the share of rows up to a value reaches `at`."""
        return int(np.clip(np.searchsorted(self.below, at, side="left") - 1, 0, len(self.low) - 1))

    def value(self, leaf: int, inside: float) -> float:
        """The value that a share of a leaf's rows lies at or below."""
        if self.spacing is None:
            return float(self.low[leaf] + inside * (self.high[leaf] - self.low[leaf]))
        n_passed = math.ceil(inside * self.n_steps(leaf) - _NEAR)
        return float((round(float(self.low[leaf]) / float(self.spacing)) + max(n_passed - 1, 0)) * self.spacing)

    def end(self, at: float, room: Floats, inside: Floats, *, is_above: bool) -> float:
        """The least or the largest value of which the release cannot tell that the share `at` is not reached there.

        Args:
            at: the share of rows at or below the quantile.
            room: how far the share up to each leaf may be off (n_leaves,).
            inside: and the share that lies up to a place inside the leaf, in the middle of it.
            is_above: whether the largest value is wanted.
        """
        is_fine = (self.below[:-1] - room <= at) if is_above else (self.below[1:] + room >= at)
        chosen = np.flatnonzero(is_fine)
        last = len(self.low) - 1 if is_above else 0
        leaf = int(chosen[-1 if is_above else 0]) if len(chosen) else last
        if self.mass[leaf] == 0 or (is_coarse(self.low, self.high)[leaf] and leaf != self.leaf_of(at)):
            return float(self.high[leaf] if is_above else self.low[leaf])
        # Inside the leaf, the share of its rows that lie up to a value may be off.
        n = _PLACES if self.spacing is None else int(min(self.n_steps(leaf), _PLACES))
        p = np.arange(1, n + 1) / n
        until = p - (1 / n if self.spacing is not None and is_above else 0.0)  # rows below the value itself
        spread = np.hypot(room[leaf], inside[leaf] * np.sqrt(until * (1 - until)))
        share = self.below[leaf] + until * self.mass[leaf]
        fine = np.flatnonzero(share - spread <= at) if is_above else np.flatnonzero(share + spread >= at)
        place = p[fine[-1 if is_above else 0]] if len(fine) else float(is_above)
        return self.value(leaf, float(place))


def calibrated_quantile(
    laws: Laws,
    misfit: Misfit | None,
    parts: Mapping[int, Part],
    at: float,
    counted: Counted | None,
    column: MeasuredColumn | None,
    *,
    level: float,
    of_population: bool,
) -> tuple[float, float, float]:
    """The estimate of a quantile and the ends of its interval."""
    variable, part, values = valued(parts)
    weights = np.maximum(part.share * rows_by_leaf(laws, parts, variable), 0.0)
    order = np.argsort(values.mean, kind="stable")
    order = order[part.touches[order]]
    mass = weights[order] if weights[order].any() else np.ones(len(order))
    n_rows, mass = laws.total * float(mass.sum()), mass / mass.sum()
    below = np.concatenate([[0.0], np.cumsum(mass)])
    leaves = _Ascending(values.low[order], values.high[order], mass, below, values.spacing)
    leaf = leaves.leaf_of(at)
    estimate = leaves.value(leaf, min(max((at - below[leaf]) / max(mass[leaf], 1e-300), 0.0), 1.0))

    # The error of the share of rows below the end of a leaf that is nearest to the quantile; leaves are whole there.
    beneath = np.zeros(len(part.share), dtype=np.bool_)
    beneath[order[: leaf + (below[leaf + 1] - at < at - below[leaf])]] = True
    plain = {number: Factor(replace(one, values=None)) for number, one in parts.items()}
    # It is the mean of whether rows lie there, so that its influence has one factor for the column: 1 less the share
    # in leaves beneath, the share less than 0 in others.
    is_beneath = beneath.astype(np.float64)
    beneath_or_not = replace(part, values=Values(is_beneath, is_beneath, is_beneath, is_beneath))
    ratio = Ratio({**plain, variable: Factor(beneath_or_not, shift=0.0)}, plain)
    # A share next to 0 or 1 has the error of one as far inside as the quantile is.
    reach = calibrated(laws, misfit, ratio, counted, of_population=of_population).half_width(level)
    z = noise_quantile(column.noise, level) if column is not None else 2.0
    inside = z * mass * np.sqrt(scatter_inside(laws, variable, part)[order])
    # Among some rows, leaves of a state have shares that the state alone is known by.
    inside_states = z * _spread_in_states(mass, part.leaves.states[order]) if len(parts) > 1 else np.zeros(len(below))

    ends = []
    for is_above, of_states in ((False, inside_states[1:]), (True, inside_states[:-1])):
        lost, noise = _lost_beyond(part, column, order, is_above=is_above)
        own = np.hypot(reach, of_states)
        room = np.maximum(own, lost / max(n_rows, 1.0) + np.hypot(own, z * noise / max(n_rows, 1.0)))
        ends.append(leaves.end(at, room, inside, is_above=is_above))
    if values.spacing is not None or min(ends) == max(ends):
        ends += _next_values(estimate, leaves.low, leaves.high, mass > 0, values.step)
    if values.spacing is not None:
        ends = [float(round(end / values.step) * values.spacing) for end in ends]
    return estimate, min(estimate, *ends), max(estimate, *ends)


def _spread_in_states(mass: Floats, states: np.ndarray[tuple[int], np.dtype[np.int32]]) -> Floats:
    """The standard deviation of the share of rows up to each end of a leaf that comes from ends inside states."""
    found = np.zeros(len(mass) + 1)
    runs = np.append(np.flatnonzero(np.append(True, states[1:] != states[:-1])), len(mass))
    for start, stop in pairwise(runs.tolist()):
        up_to = np.cumsum(mass[start:stop])
        found[start + 1 : stop] = np.sqrt(PLACEMENT * up_to * (up_to[-1] - up_to))[:-1]
    return found


def _lost_beyond(
    part: Part, column: MeasuredColumn | None, order: np.ndarray[tuple[int], np.dtype[np.int64]], *, is_above: bool
) -> tuple[Floats, Floats]:
    """Rows in leaves taken for empty that lie from each leaf on, or up to it: sums of raw counts, and their noise."""
    total, std = np.zeros(len(order)), np.zeros(len(order))
    if column is not None:
        for place in range(len(order)):
            touches = np.zeros(len(part.share), dtype=np.bool_)
            touches[order[place:] if is_above else order[: place + 1]] = True
            total[place], std[place] = hidden(replace(part, touches=touches), column)
    return total, std


def _next_values(estimate: float, low: Floats, high: Floats, holds: Flags, step: float) -> list[float]:
    """The nearest values to both sides of an estimate that have rows; the nearest possible ones where none have."""
    found = []
    for side, ends, beyond in ((-1.0, high, low < estimate), (1.0, low, high > estimate)):
        if beyond.any():
            near = ends[beyond & holds] if (beyond & holds).any() else ends[beyond]
            found.append(estimate + side * max(step, float((side * (near - estimate)).min())))
    return found


def rows_by_leaf(laws: Laws, parts: Mapping[int, Part], variable: int) -> Floats:
    """The share of all rows that meets the conditions on all other variables and lies in each leaf of one."""
    leaves = laws.leaves[variable]
    inside = leaves.inside()
    others = tuple(sorted(number for number in parts if number != variable))
    if not others or not laws.is_small((variable, *others)):
        return np.asarray(laws.law((variable,))[leaves.states] * inside)
    every = tuple(sorted((variable, *others)))
    law = laws.law(every)
    lines = {number: Factor(replace(parts[number], values=None)).of(laws.leaves[number]) for number in others}
    for number in reversed(every):
        if number != variable:
            law = np.tensordot(law, lines[number], axes=([every.index(number)], [0]))
    return np.asarray((law + laws.tilted_states(variable, lines))[leaves.states] * inside)
