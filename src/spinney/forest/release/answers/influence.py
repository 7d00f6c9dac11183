"""Influence: what one row adds to an answer, and the variances that follow from what the model cannot know of rows.

placement     rows of a leaf that a condition cuts, or whose values are asked for, lie in it as they like; values that
              come in steps which nobody stated lie on the same side of all leaves
luck          the rows of a box are so many; which of them meet a condition inside of it is chance
resolution    columns that were counted together are independent inside a state: how far they are not is taken from
              neighbouring states, which the model can tell apart
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spinney.forest.release.answers.counted import Counted
from spinney.forest.release.answers.factors import Factor, Factors
from spinney.forest.release.answers.laws import Laws, states_of
from spinney.forest.release.answers.parts import Leaves, Part
from spinney.forest.release.column_model import ColumnModel, Floats

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
