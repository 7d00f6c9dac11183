"""GrainLaw: where rows lie inside a leaf of several values, by the steps that people write these in. PUBLIC.

A leaf says how many rows lie in it, and a table of classes (`grid/grain`) in which steps the column's values come: how
many amounts are multiples of 1000, how many days are ends of months. Every value weighs as much as its class, a
*factor*; inside a leaf rows lie in proportion to that. Counts of leaves stay as they are. Released numbers alone are
looked at.

    law        the weight of a range inside a leaf, and draws from it
    factors    fitted so that leaves and table agree, by proportional fitting
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.grid.axes import ColumnAxis
from spinney.grid.grain import Cells, Floats, Grain
from spinney.tree.release.density import project_to_total

Flags = NDArray[np.bool_]

# ------------------------------------------------------------------------------------------------------------------ law


# Leaves of less than so many cells hold one value; ends of leaves may lie this far, in cells, from those of cells.
_SEVERAL, _ASIDE = 1.5, 0.25


@dataclass(frozen=True, slots=True, eq=False)
class GrainLaw:
    """How much every value of a column weighs, and where the cells lie that hold them."""

    grain: Grain
    factors: Floats  # (n_values,): of the classes of values, above 0
    start: float  # the place at which cell 0 begins
    width: float  # of a cell
    offset: float  # how far from its beginning the value of a cell lies

    def moved(self, by: float) -> GrainLaw:
        """The law of a column whose places count from a place further up."""
        return replace(self, start=self.start - by)

    def holds_several(self, length: Floats) -> Flags:
        """Which leaves hold more than one value; in others there is nothing to say."""
        return np.asarray(length > _SEVERAL * self.width)

    def counts(self, low: Floats, length: Floats) -> Cells:
        """How many values of each class ranges hold (n, n_values)."""
        first, stop = self._cells(low, length)
        return self.grain.before(stop) - self.grain.before(first)

    def share(self, low: Floats, length: Floats, start: Floats, stop: Floats) -> Floats:
        """What part of the rows of ranges of several values lies in a part of each, from `start` up to `stop`."""
        held, whole = (
            self.counts(begin, reach) @ self.factors
            for begin, reach in ((start, np.maximum(stop - start, 0.0)), (low, length))
        )
        return np.asarray(np.clip(np.divide(held, whole, out=np.zeros_like(held), where=whole > 0), 0.0, 1.0))

    def places(self, low: Floats, length: Floats, leaf: Cells, rng: np.random.Generator) -> Floats:
        """Places of rows, given which of some ranges each of them is in: a class, then a value of it, all alike."""
        counts = self.counts(low, length)
        shares = np.cumsum(counts * self.factors, axis=1)
        classes = np.empty(len(leaf), dtype=np.int64)
        _pick_classes(shares, leaf, rng.random(len(leaf)), classes)
        n_here = np.maximum(counts[leaf, classes], 1)
        ranks = np.minimum((rng.random(len(leaf)) * n_here).astype(np.int64), n_here - 1)
        before = self.grain.before(self._cells(low, length)[0])
        cells = self.grain.nth(classes, before[leaf, classes] + ranks)
        return np.asarray(self.start + cells * self.width + self.offset, dtype=np.float64)

    def _cells(self, low: Floats, length: Floats) -> tuple[Cells, Cells]:
        """The first cells of ranges, and those after their last; the column may end in the middle of a cell."""
        first = np.floor((low - self.start) / self.width + _ASIDE)
        stop = np.ceil((low + length - self.start) / self.width - _ASIDE)
        first, stop = np.clip(first, 0, self.grain.n_cells), np.clip(stop, 0, self.grain.n_cells)
        return first.astype(np.int64), np.maximum(first, stop).astype(np.int64)


@compiled
def _pick_classes(shares: Floats, leaf: Cells, chances: Floats, classes: Cells) -> None:
    """A class for each row, by what classes of its leaf weigh up to each of them, that one included."""
    last = shares.shape[1] - 1
    for row in range(leaf.size):
        at = leaf[row]
        place = chances[row] * shares[at, last]
        low, high = 0, last
        while low < high:
            half = (low + high) // 2
            if shares[at, half] > place:
                high = half
            else:
                low = half + 1
        classes[row] = low


# -------------------------------------------------------------------------------------------------------------- factors
# Factors of classes, so that what leaves hold is in the classes that were counted.
#
# Leaves keep their weights; rows of a leaf of one value are in its class whatever the factors are. What a decade holds,
# or a column of days, leaves say better than the table does: its numbers are moved, all alike, so that they add up to
# that. Then factors are products of one for each pool (a step, a day of the week) and, of days, one for each block (a
# place in the month), fitted to sums of the table, which are sure where single numbers are not; decades with many rows
# say most of a step. Numbers that are far from what these factors say are taken as they were counted, and all factors
# are fitted to that: proportional fitting, in turns. Where nearly all rows of a decade are at multiples of one step,
# all of them are.


# A number of the table is believed against the products from so many standard deviations of its noise; where these say
# that there is nothing, or of a day of the week or a place in the month, from the second: many tables have days without
# rows, and noise would give some to one of them in every tenth release. Steps finer than nearly all are none while
# their sum stands out by no more than the third.
_STANDS_OUT, _IS_THERE, _NOTHING = 2.0, 3.0, 1.0
# If so many of the rows of a block are multiples of one step, all of them are.
_NEARLY_ALL = 0.99
# Turns of proportional fitting, and how near to the wanted sums it ends.
_MOST_TURNS, _NEAR = 100, 1e-3
# Factors that have any rows are between this and its inverse.
_TINY = 1e-60
# What is left to classes without rows, beside the smallest other factor, so that a leaf that holds nothing else has
# values, those of the largest step; that of the next smaller step is so much less.
_LEAST, _LESS = 1e-6, 1e-2


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Rows in each class of a column's grain as they were counted, or redrawn; and of what leaves are made."""

    noisy: Floats  # (n_classes,)
    noise_std: float
    count_std: float  # of the noise on rows in a counted leaf
    pile_std: float  # of that on rows at single round values, which leaves are parted by
    leaf: Cells  # (n_leaves of the model,): the counted leaf that each lies in


class _Leaves:
    """How many values of each class leaves hold."""

    def __init__(self, cells: ColumnAxis, low: Floats, length: Floats) -> None:
        assert cells.grain is not None
        self.grain, axis = cells.grain, cells.axis
        even = np.ones(self.grain.n_values)
        if axis.kind == "real":
            width = float(cells.unit or 1)
            self.even = GrainLaw(self.grain, even, axis.origin, width, width / 2)
        else:
            self.even = GrainLaw(self.grain, even, 0.0, float(axis.step), float(cells.offset))
        self.is_several = self.even.holds_several(length)
        at = np.floor((low + length / 2 - self.even.start) / self.even.width).astype(np.int64)
        alone = self.grain.classes(np.clip(at, 0, self.grain.n_cells - 1))
        self.counts = self.even.counts(low, length).astype(np.float64)
        self.counts[~self.is_several] = np.arange(self.grain.n_values) == alone[~self.is_several, None]

    def fit(self, weights: Floats) -> _Fit:
        """What fits factors to leaves of these weights."""
        held = self.is_several & (weights > 0)
        alone = weights[~self.is_several] @ self.counts[~self.is_several]
        return _Fit(self.grain, self.counts[held], weights[held], alone)


def grain_law(cells: ColumnAxis, low: Floats, length: Floats, weights: Floats, steps: Steps) -> GrainLaw | None:
    """The law of a column with a grain, of leaves that are not null; None where none of several values has rows."""
    leaves = _Leaves(cells, low, length)
    if not (leaves.is_several & (weights > 0)).any():
        return None
    factors, _ = leaves.fit(weights).factors(steps.noisy[: leaves.grain.n_values], steps.noise_std)
    return replace(leaves.even, factors=factors)


# ------------------------------------------------------------------------------------------------------ written weights
# Weights of leaves by what is written: states weigh what they did, leaves of one state exchange rows that are noise.
#
# Two numbers of a leaf are mostly noise. A pile is parted from the rest of its leaf by a count with more noise than
# that of the leaf; where the pile is at a larger step than all values of the rest, factors say how the leaf is parted,
# unless that is far from what was counted. And a leaf whose values are all at steps that nobody writes, with no more
# rows than noise, has none.


# A leaf of unwritten values keeps its rows from so many standard deviations of noise on.
_SURE = 3.0


def written_weights(
    cells: ColumnAxis, low: Floats, length: Floats, weights: Floats, states: NDArray[np.int32], steps: Steps
) -> Floats:
    """Weights of leaves, null left out: states weigh as much as before, and `steps` say which leaves were counted."""
    leaves = _Leaves(cells, low, length)
    if not (leaves.is_several & (weights > 0)).any():
        return weights
    noisy = steps.noisy[: leaves.grain.n_values]
    factors, is_written = leaves.fit(weights).factors(noisy, steps.noise_std)
    if leaves.grain.is_nested:
        together = np.unique(np.stack([steps.leaf, states], axis=1), axis=0, return_inverse=True)[1].reshape(-1)
        weights = _parted_by_law(leaves, factors, weights, together, steps.pile_std)
    is_empty = ~(leaves.counts[:, is_written] > 0).any(axis=1) & (weights <= _SURE * steps.count_std)
    kept = np.where(is_empty, 0.0, weights)
    n_states = int(states.max()) + 1
    before, after = (np.bincount(states, weights=held, minlength=n_states) for held in (weights, kept))
    ratio = np.divide(before, after, out=np.zeros_like(after), where=after > 0)
    return np.where((after > 0)[states], kept * ratio[states], weights)


def _parted_by_law(leaves: _Leaves, factors: Floats, weights: Floats, together: Cells, pile_std: float) -> Floats:
    """Weights where piles of one value and the rest of their leaf are parted as factors say, unless that is far off.

    Only where the pile is at a larger step than all values of the rest, in one decade: of values at the same step some
    are commoner than others, and the count of the pile says so.
    """
    grain, counts, rows = leaves.grain, leaves.counts, leaves.counts @ factors
    weights, order = weights.copy(), np.argsort(together, kind="stable")
    ends = np.flatnonzero(np.diff(together[order], prepend=-1, append=-1))
    for begin, end in pairwise(ends):
        here = order[begin:end]
        here = here[weights[here] > 0]
        piles, rest = here[~leaves.is_several[here]], here[leaves.is_several[here]]
        if len(piles) != 1 or not len(rest):
            continue
        pile, held = int(np.argmax(counts[piles[0]])), float(weights[here].sum())
        others = counts[rest].any(axis=0)
        if (grain.pools[others] >= grain.pools[pile]).any() or (grain.blocks[others] != grain.blocks[pile]).any():
            continue
        wanted = held * rows[rest] / (rows[rest].sum() + rows[piles[0]])
        if abs(float(wanted.sum() - weights[rest].sum())) <= _STANDS_OUT * pile_std:
            weights[rest] = wanted
            weights[piles[0]] = held - wanted.sum()
    return weights


# ------------------------------------------------------------------------------------------------------------- fitting


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """Leaves of several values, and what leaves of one value hold of each class."""

    grain: Grain
    counts: Floats  # (n_leaves, n_values): how many values of each class they hold
    weights: Floats  # (n_leaves,)
    alone: Floats  # (n_values,)

    def factors(self, noisy: Floats, noise_std: float) -> tuple[Floats, Flags]:
        """The factors that noisy numbers of rows give, and which classes have rows."""
        pools, blocks, n_values = self.grain.pools, self.grain.blocks, self.grain.n_values
        even = np.ones(n_values)
        if self.grain.is_nested:
            noisy = _adding_up(noisy, blocks, self.rows(even))
            held = _sums(blocks, self.rows(even))[blocks]
            margins = [_Margin(pools, noisy, held / max(float(held.max()), _TINY)).nested(noise_std)]
        else:
            evenly = self.rows(even)
            noisy = _adding_up(noisy, np.zeros_like(blocks), evenly)
            margins = [_Margin(groups, noisy, even).standing_out(noise_std, evenly) for groups in (pools, blocks)]
        factors = self._fitted(even, margins)
        expected = self.rows(factors)
        least = noise_std * np.where(expected > 0, _STANDS_OUT, _IS_THERE)
        wanted = np.where(np.abs(noisy - expected) > least, np.maximum(noisy, 0.0), expected)
        if self.grain.is_nested:
            wanted = _in_nearly_all(wanted, pools, blocks)
            sums, rows = _sums(blocks, wanted), _sums(blocks, expected)
            wanted *= np.divide(rows, sums, out=np.zeros_like(sums), where=sums > 0)[blocks]
        begin = np.where(factors > 0, factors, 1.0)  # every class has a factor of its own, wherever it begins
        factors = self._fitted(np.where(wanted > 0, begin, 0.0), [_Margin(np.arange(n_values), wanted, even)])
        smallest = np.full(int(blocks.max()) + 1, np.inf)
        np.minimum.at(smallest, blocks[factors > 0], factors[factors > 0])
        smallest = np.where(np.isfinite(smallest), smallest, 1.0)[blocks]
        least = _LEAST * (_LESS ** (pools.max() - pools) if self.grain.is_nested else even)
        return np.where(factors > 0, factors, least * smallest), factors > 0

    def rows(self, factors: Floats) -> Floats:
        """How many rows of each class there are under factors."""
        return self.alone + self._inside(factors)

    @property
    def _total(self) -> float:
        return float(self.weights.sum() + self.alone.sum())

    def _inside(self, factors: Floats) -> Floats:
        """The same of leaves of several values."""
        of_leaves = self.counts @ factors
        return (
            np.divide(self.weights, of_leaves, out=np.zeros_like(of_leaves), where=of_leaves > 0) @ self.counts
        ) * factors

    def _fitted(self, factors: Floats, margins: Sequence[_Margin]) -> Floats:
        """Factors in proportion to those given, group by group, under which groups of classes have the rows wanted."""
        for _ in range(_MOST_TURNS):
            farthest = 0.0
            for margin in margins:
                wanted = np.maximum(margin.sums - _sums(margin.groups, margin.weights * self.alone), 0.0)
                found = _sums(margin.groups, margin.weights * self._inside(factors))
                ratio = np.divide(wanted, found, out=np.zeros_like(found), where=found > 0)
                farthest = max(farthest, float(np.abs(found - wanted)[found > 0].max(initial=0.0)))
                factors = factors * ratio[margin.groups]
                # Rows that no leaf has room for would draw factors apart without end.
                factors = np.where(factors > 0, np.clip(factors, _TINY, 1 / _TINY), 0.0)
            if farthest <= _NEAR * self._total / len(factors):
                break
        return factors


class _Margin:
    """Sums of rows over groups of classes, each class counted by a weight."""

    def __init__(self, groups: Cells, rows: Floats, weights: Floats) -> None:
        self.groups, self.weights = groups, weights
        self.sums = _sums(groups, rows * weights)

    def standing_out(self, noise_std: float, evenly: Floats) -> _Margin:
        """The sums that stand out of their noise; the others are 0, or what even rows give that would not either."""
        least, even = _IS_THERE * noise_std * np.sqrt(self._variances), _sums(self.groups, self.weights * evenly)
        self.sums = np.where(self.sums <= least, np.where(even > 2 * least, 0.0, even), self.sums)
        return self

    def nested(self, noise_std: float) -> _Margin:
        """The sums of steps in ascending order, none below 0; the first are 0 while together they do not stand out."""
        below, deviation = np.cumsum(self.sums), noise_std * np.sqrt(np.cumsum(self._variances))
        is_nothing = below <= np.maximum(_NOTHING * deviation, (1 - _NEARLY_ALL) * below[-1])
        is_nothing[-1] = False
        last = int(np.flatnonzero(is_nothing)[-1]) if is_nothing.any() else -1
        total = float(self.sums.sum())
        self.sums[: last + 1] = 0.0
        self.sums[last + 1 :] = project_to_total(self.sums[last + 1 :], total)
        return self

    @property
    def _variances(self) -> Floats:
        return _sums(self.groups, self.weights**2)


def _sums(groups: Cells, numbers: Floats) -> Floats:
    return np.bincount(groups, weights=numbers).astype(np.float64)


def _adding_up(rows: Floats, groups: Cells, known: Floats) -> Floats:
    """Rows moved, alike within each group, to where groups add up to what is known of them."""
    lacking = _sums(groups, known) - _sums(groups, rows)
    return rows + (lacking / np.maximum(np.bincount(groups), 1))[groups]


def _in_nearly_all(rows: Floats, pools: Cells, blocks: Cells) -> Floats:
    """Rows of classes, where those of a block that are at finer steps than nearly all have none."""
    found = rows.copy()
    for block in range(int(blocks.max()) + 1):
        here = np.flatnonzero(blocks == block)
        here = here[np.argsort(-pools[here])]
        held = np.cumsum(rows[here])
        if len(here) and held[-1] > 0:
            found[here[1:][held[:-1] >= _NEARLY_ALL * held[-1]]] = 0.0
    return found
