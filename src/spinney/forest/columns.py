"""Columns and places on their own: leaves, noisy counts of them, and states. SENSITIVE up to the counts.

A one-dimensional PrivTree is a discretiser that needs no tuning and works with generous bounds: it cuts where
there are rows. Columns with few possible cells need none, and null is a leaf of its own from the start. Each
mechanism takes its noise from what was prepaid (`PrepaidMechanisms`); states are post-processing.

    (first)                    noisy counts: leaves of a number, values of a category, classes of a target
    codes                      states of codes in a hierarchy
    private lists of values    the values of a column that enough rows have, found privately
    places                     regions of a joint tree over two or three columns
    place states               from regions to states
    spikes                     cells in which rows pile up become leaves
    states                     from leaves to states
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from heapq import heappop, heappush
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.columns import Category
from spinney.columns.base import LARGEST_WHOLE
from spinney.counting.counter import ValueCounts
from spinney.counting.counts import CellCounts, ColumnCounts
from spinney.counting.states import Cut, RegionCut
from spinney.errors import BudgetError
from spinney.forest.plan import class_sizes_plan
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.forest.release.columns import (
    CODE_STANDS_OUT,
    ColumnModel,
    Floats,
    are_codes,
    as_written,
    code_weights,
    even_leaves,
    leaf_places,
    likely_sentinels,
    null_levels,
    numbered,
)
from spinney.forest.release.grain import Steps
from spinney.forest.release.leaf_weights import number_weights, possible_weights, region_weights
from spinney.forest.release.measured import MeasuredGrain, NoiseLaw
from spinney.forest.release.places import PlaceModel
from spinney.grid.axes import ColumnAxis, Parting, PlaceAxis
from spinney.grid.codes import Codes, Indices
from spinney.grid.grain import Grain
from spinney.grid.lattice import Axis, Lattice, needs_tree
from spinney.grid.ruler import CodeLevels, Ruler
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import Entropy, brand_unless_system
from spinney.privacy.ledger import Ledger
from spinney.privacy.mechanisms import PartitionSelection
from spinney.privacy.noise.choices import keep_law
from spinney.tables.source import Source
from spinney.tree.ranges import Ranges
from spinney.tree.release.density import project_to_total

Counts = NDArray[np.int64]
Noisy = Callable[[Counts], Counts]  # adds the noise of a stage to exact counts


@dataclass(frozen=True, slots=True, eq=False)
class NoisyColumn:
    """Leaves of one column in ascending order, null last, with noisy counts. RELEASED."""

    axis: Axis
    first: NDArray[np.int64]  # (n_leaves,): first cell
    stop: NDArray[np.int64]  # (n_leaves,): cell after the last
    noisy_counts: NDArray[np.int64]  # (n_leaves,)
    noise_std: float  # of the noise on a count; 0 for shares that are known
    spikes: NDArray[np.int64] | None = None  # (2, n): cells in which rows may pile up, where they were counted
    noisy_spikes: NDArray[np.int64] | None = None  # how many rows they hold
    spike_std: float = 0.0
    pile: NDArray[np.int32] | None = None  # (n_leaves,): which of the spikes a leaf is, -1: none
    levels: CodeLevels | None = None  # of codes in a hierarchy, whose groups were counted too
    noisy_groups: tuple[NDArray[np.int64], ...] = ()  # how many rows they hold, level by level; in the first null too

    noise: NoiseLaw | None = None  # of all counts but spikes and grain, where there are any
    spike_noise: NoiseLaw | None = None
    grain: MeasuredGrain | None = None  # how many rows are in each class of the steps that values come in
    is_told: bool = False  # whether a prior tells more than the counts do, in small leaves too

    @property
    def is_ordered(self) -> bool:
        return self.axis.kind != "category"

    @property
    def noisy_sum(self) -> tuple[float, float]:
        """The number of rows by the counts that tell it best, and the variance of its noise."""
        counts = self.noisy_groups[0] if self.noisy_groups else self.noisy_counts
        return float(counts.sum()), len(counts) * self.noise_std**2

    @property
    def is_null(self) -> NDArray[np.bool_]:
        return np.equal(self.first, self.axis.null_cell)


def release_column(
    counts: ColumnCounts,
    prepaid: PrepaidMechanisms,
    *,
    ruler: Ruler | None,
    cutoff: float,
    levels: CodeLevels | None = None,
    parting: Parting | None = None,
    grain: Grain | None = None,
) -> NoisyColumn:
    """One column's leaves and their noisy counts; nodes of fewer rows than `cutoff` are rarely split."""
    axis, noisy = counts.lattice.axes[0], partial(prepaid.noisy_counts, stage="one-way")
    noise = prepaid.plan.noise_law("one-way")
    if ruler is None or levels is not None:
        assert isinstance(counts, CellCounts)
        return noisy_cells(axis, _all_cells(counts, axis)[2], noisy, noise, levels)
    roots = None if parting is None else parting.first
    ranges = prepaid.ranges(counts, ruler, cutoff=math.ceil(cutoff), roots=roots)
    spikes = partial(prepaid.noisy_counts, stage="spikes"), prepaid.plan.noise_law("spikes")
    column = noisy_ranges(axis, ranges, (ranges.true_counts, ranges.true_spikes), ((noisy, noise), spikes))
    if grain is None:
        return column
    noisy_grain = prepaid.noisy_counts(counts.rows_by(grain), "grain")
    return replace(column, grain=MeasuredGrain(noisy_grain, prepaid.plan.noise_law("grain")))


def noisy_cells(
    axis: Axis, true_counts: Counts, noisy: Noisy, noise: NoiseLaw, levels: CodeLevels | None = None
) -> NoisyColumn:
    """All cells, and all groups of a hierarchy of codes, level by level: tables that each hold a row once at most."""
    noisy_groups = []
    for level in range(0 if levels is None else len(levels.starts)):
        assert levels is not None
        true_groups = levels.sums(true_counts[: levels.n_codes], level)
        if level == 0:
            true_groups = np.append(true_groups, true_counts[levels.n_codes :])
        noisy_groups.append(noisy(true_groups))
    groups = tuple(noisy_groups)
    first, stop = all_leaves(axis)
    return NoisyColumn(
        axis, first, stop, noisy(true_counts), noise.std, levels=levels, noisy_groups=groups, noise=noise
    )


def noisy_ranges(
    axis: Axis, ranges: Ranges, true_counts: tuple[Counts, Counts], noisy: Sequence[tuple[Noisy, NoiseLaw]]
) -> NoisyColumn:
    """The ranges of a tree, with noise on what they and their spikes hold."""
    (noisy_counts, noise), (noisy_spikes, spike_noise) = noisy
    return NoisyColumn(
        axis,
        ranges.first,
        ranges.stop,
        noisy_counts(true_counts[0]),
        noise.std,
        spikes=ranges.spikes,
        noisy_spikes=noisy_spikes(true_counts[1]),
        spike_std=spike_noise.std,
        noise=noise,
        spike_noise=spike_noise,
    )


def release_classes(
    table: Source, lattice: Lattice, *, epsilon: Fraction, ledger: Ledger, entropy: Entropy
) -> NoisyColumn:
    """How many rows have each value of a target, with discrete Laplace noise, paid for by themselves.

    Whether a class is rare decides what else is worth measuring, so this is paid for, and looked at, before the rest.
    """
    axis = lattice.axes[0]
    prepaid = PrepaidMechanisms(class_sizes_plan(axis.name, epsilon=epsilon, unit=ledger.unit), ledger, entropy)
    _, _, true_counts = _all_cells(table.count_cells(lattice), axis)
    noisy = partial(prepaid.noisy_counts, stage="classes")
    return noisy_cells(axis, true_counts, noisy, prepaid.plan.noise_law("classes"))


def unmeasured(axis: Axis, parting: Parting | None = None) -> NoisyColumn:
    """A column of which nothing is known but the schema: even, with a leaf for each value where these are few."""
    first, stop = even_leaves(axis, parting)
    return NoisyColumn(axis, first, stop, stop - first, 0.0)


def all_leaves(axis: Axis) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A leaf for every possible cell, null last: where they begin and end."""
    first = np.arange(axis.first, axis.last + 1)
    if axis.nullable:
        first = np.append(first, axis.null_cell)
    return first, first + 1


def _all_cells(counts: CellCounts, axis: Axis) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """All possible cells and their true counts. SENSITIVE."""
    first, stop = all_leaves(axis)
    true_counts = np.zeros(len(first), dtype=np.int64)
    shift = np.uint64(64 - axis.bits) if axis.bits else np.uint64(63)  # without bits all codes are 0
    codes, occupied = counts.distinct()
    cells = (codes[:, 0] >> shift).astype(np.int64)
    true_counts[np.searchsorted(first, cells)] = occupied
    return first, stop, true_counts


# ---------------------------------------------------------------------------------------------------------------- codes
# Codes in a hierarchy: from noisy counts of groups and codes to weights and states. Sees released numbers only.
#
# Every level of the hierarchy was counted, and so was every code; `code_weights` (`release/columns`) works out
# what codes weigh.
#
# A state for each code would be too many, and one for all rare codes would say nothing of them. So the heaviest
# codes have states of their own, half of all states at the most. What is left starts as one pool; the pool that
# weighs most is cut where the hierarchy cuts it, again and again, until there are as many states as there may
# be.


def spread_codes(column: NoisyColumn, total: float) -> tuple[NoisyColumn, Floats]:
    """The column with neighbours of equal weight as one leaf, and weights of its leaves that add up to `total`."""
    levels = column.levels
    assert levels is not None
    noisy_groups = [group.astype(np.float64) for group in column.noisy_groups]
    held = code_weights(levels, noisy_groups, column.noisy_counts.astype(np.float64), column.noise_std, total)
    held, null_weight = held[: levels.n_codes], held[levels.n_codes :]
    group = levels.parents(len(levels.starts))
    is_new = np.append(True, (np.diff(held) != 0) | (np.diff(group) != 0))
    first = np.flatnonzero(is_new)
    weights = np.add.reduceat(held, first)
    stop = np.append(first[1:], levels.n_codes)
    if column.axis.nullable:
        first, stop = np.append(first, column.axis.null_cell), np.append(stop, column.axis.null_cell + 1)
        weights = np.append(weights, null_weight)
    return replace(column, first=first, stop=stop), weights


def pool_siblings(column: NoisyColumn, weights: Floats, most_states: int) -> NDArray[np.int64]:
    """The state of every leaf, numbered in the order in which they first appear; null has one of its own."""
    is_null = column.is_null
    n_leaves = len(weights)
    order = np.argsort(-np.where(is_null, -1.0, weights), kind="stable")
    is_alone = is_null.copy()
    is_alone[order[: most_states // 2]] |= weights[order[: most_states // 2]] > CODE_STANDS_OUT * column.noise_std
    is_alone &= is_null | (column.stop - column.first == 1)
    pools = _pools(column, np.where(is_alone, 0.0, weights), max(1, most_states - int(is_alone.sum())))
    return numbered(np.where(is_alone, n_leaves + np.arange(n_leaves), pools))


def _pools(column: NoisyColumn, weights: Floats, n_pools: int) -> NDArray[np.int64]:
    """The pool of every leaf. Pools are cut where both sides hold something; leaves of no weight never make one."""
    levels = column.levels
    assert levels is not None
    before = np.concatenate([[0.0], np.cumsum(weights)])
    n_held = np.concatenate([[0], np.cumsum(weights > 0)])
    starts = [0]
    waiting = [(-float(before[-1]), 0, levels.n_codes)]
    while waiting and len(starts) < n_pools:
        _, low, high = heappop(waiting)
        cut = levels.cut(low, high)
        first, middle, last = (int(at) for at in np.searchsorted(column.first, [low, cut, high]))
        if n_held[middle] > n_held[first] and n_held[last] > n_held[middle]:
            starts.append(cut)
        for begin, end, one, two in ((low, cut, first, middle), (cut, high, middle, last)):
            if n_held[two] - n_held[one] > 1:
                heappush(waiting, (float(before[one] - before[two]), begin, end))
    return np.searchsorted(np.sort(starts), column.first, side="right").astype(np.int64)


# ---------------------------------------------------------------------------------------------- private lists of values
# Private lists of values: those of a column that enough rows have, charged to the ledger before they are used.
#
# A draw of its own decides for every value whether it is listed (`privacy/noise/choices.py`; proof:
# `partitions.proof.md`). Rows of all other values count as the column's `other`, so that no row is lost, and
# the list says nothing of how many rows there are.


# Longer strings are texts and not codes; they count as `other`.
_LONGEST = 1024


def check_rows(name: str, n_rows: int, *, epsilon: Fraction, delta: Fraction, unit: Unit) -> None:
    """Raise where not even a value that all rows have would be found as often as not."""
    needed = keep_law(epsilon, delta, unit).rows_for(Fraction(1, 2))
    if n_rows < needed:
        raise BudgetError(
            f"column {name!r}: with epsilon={float(epsilon):.3g} and delta={float(delta):.3g} a value is found from "
            f"about {needed:,} rows on, and the table has about {n_rows:,}; raise values_share or epsilon, or list the "
            "values"
        )


def release_values(
    counts: ValueCounts,
    name: str,
    column: Category,
    *,
    epsilon: Fraction,
    delta: Fraction,
    ledger: Ledger,
    entropy: Entropy,
) -> tuple[Any, ...]:
    """The values of one column that are common enough, in ascending order. Charges `epsilon` and `delta` first."""
    law = keep_law(epsilon, delta, ledger.unit)
    ledger.charge(values_charge(name, epsilon=epsilon, delta=delta))
    brand_unless_system(ledger, entropy, "forest")
    is_kept = law.keep(counts.true_counts, entropy)
    kept = counts.true_values.filter(pa.array(is_kept)).to_pylist()
    return tuple(value for value in kept if value != column.other and _can_be_listed(value))


def values_charge(name: str, *, epsilon: Fraction, delta: Fraction) -> PartitionSelection:
    """What finding the values of one column is charged as."""
    return PartitionSelection(epsilon, delta, f"values of {name}", stage="values", column=name)


def _can_be_listed(value: str | int) -> bool:
    """Whether a schema may list a value: no number of more than 61 bits, and no book."""
    return len(value) <= _LONGEST if isinstance(value, str) else abs(value) <= LARGEST_WHOLE


# --------------------------------------------------------------------------------------------------------------- places
# Places on their own: the regions of a joint tree over two or three columns, with noisy counts.


@dataclass(frozen=True, slots=True, eq=False)
class NoisyPlace:
    """Regions of a place in the order of their codes, with noisy counts. RELEASED."""

    axis: PlaceAxis
    codes: Codes  # (n_regions, 1)
    depths: Indices  # (n_regions,)
    noisy_counts: NDArray[np.int64]  # (n_regions,)
    noise_std: float  # of the noise on a count; 0 where nothing was counted
    given_depth: int = 0  # regions of no greater depth were made whatever they hold
    noise: NoiseLaw | None = None  # where anything was counted

    @property
    def noisy_sum(self) -> tuple[float, float]:
        """The number of rows that were counted, and the variance of its noise."""
        return float(self.noisy_counts.sum()), len(self.noisy_counts) * self.noise_std**2


def release_place(
    counts: CellCounts, axis: PlaceAxis, prepaid: PrepaidMechanisms, *, cutoff: float, n_fixed: int
) -> NoisyPlace:
    """One place's regions and their noisy counts; nodes of fewer rows than `cutoff` are rarely halved.

    The first `n_fixed` levels are halved whatever they hold.
    """
    regions = prepaid.regions(counts, axis, cutoff=math.ceil(cutoff), n_fixed=n_fixed)
    noisy_counts = prepaid.noisy_counts(regions.true_counts, "places")
    noise, given_depth = prepaid.plan.noise_law("places"), axis.n_nullable + n_fixed
    return NoisyPlace(axis, regions.codes, regions.depths, noisy_counts, noise.std, given_depth, noise)


def unmeasured_place(axis: PlaceAxis) -> NoisyPlace:
    """A place of which nothing is known but the schema: one region for each way in which columns may be null."""
    codes, depths = np.zeros((1, 1), dtype=np.uint64), np.zeros(1, dtype=np.int64)
    for depth in range(null_levels(axis)):
        upper = codes.copy()
        upper[:, 0] |= np.uint64(1 << (63 - depth))
        codes, depths = np.concatenate([codes, upper]), np.concatenate([depths, depths]) + 1
        is_possible = axis.is_possible(codes, depths)
        codes, depths = codes[is_possible], depths[is_possible]
    order = np.argsort(codes[:, 0])
    return NoisyPlace(axis, codes[order], depths[order], np.zeros(len(order), dtype=np.int64), 0.0)


# --------------------------------------------------------------------------------------------------------- place states
# From the noisy regions of a place to a few states, each of them a box. Sees released numbers only.
#
# Small counts are taken for noise and the rest is fitted to the total, as for any column. Then nodes of the tree are
# halved, the heaviest first, until there are enough: a state is all that a node holds. A half without weight goes
# with the other, so that every state holds rows.


def place_model(place: NoisyPlace, *, total: float, most_states: int) -> tuple[PlaceModel, RegionCut]:
    """A place as a model over states knows it, and how to find the state of a row.

    Args:
        place: regions and noisy counts.
        total: the number of rows, or a noisy one.
        most_states: how many states to make at most.
    """
    alone = np.zeros(len(place.depths), dtype=np.int32)
    regions = PlaceModel.of_nodes(place.axis, place.codes, place.depths, alone.astype(np.float64), alone)
    counts = place.noisy_counts.astype(np.float64)
    weights = region_weights(regions, counts, place.noise_std, place.given_depth, total)
    first = place.axis.cell_numbers(place.codes)
    begins = _state_begins(first, weights, place.axis.lattice.depth, most_states)
    states = np.searchsorted(begins, first, side="right") - 1
    model = PlaceModel.of_nodes(place.axis, place.codes, place.depths, weights, states.astype(np.int32))
    return model, RegionCut(place.axis.lattice, begins, np.arange(len(begins)))


def _state_begins(first: NDArray[np.int64], weights: Floats, depth: int, most_states: int) -> NDArray[np.int64]:
    """The cells at which states begin, from 0 on: nodes halved by weight, half of it by rows and half by regions."""
    is_held = weights > 0
    even = 0.5 * weights / weights.sum() + 0.5 * is_held / is_held.sum()
    before = np.concatenate([[0.0], np.cumsum(even)])

    def weight(begin: int, end: int) -> float:
        return float(before[end] - before[begin])

    # Of a node: its weight, where its state begins, where itself begins, its depth, and which regions it holds.
    waiting = [(-1.0, 0, 0, 0, 0, len(first))]
    done: list[int] = []
    while waiting and len(waiting) + len(done) < most_states:
        _, outer, start, level, begin, end = heapq.heappop(waiting)
        while end - begin > 1:
            middle = start + (1 << (depth - level - 1))
            level += 1
            at = begin + int(np.searchsorted(first[begin:end], middle))
            below, above = weight(begin, at), weight(at, end)
            if below > 1e-12 and above > 1e-12:
                heapq.heappush(waiting, (-below, outer, start, level, begin, at))
                heapq.heappush(waiting, (-above, middle, middle, level, at, end))
                break
            start, begin, end = (start, begin, at) if below > above else (middle, at, end)
        else:
            done.append(outer)
    return np.array(sorted([*done, *(node[1] for node in waiting)]), dtype=np.int64)


# --------------------------------------------------------------------------------------------------------------- spikes
# Cells in which rows pile up become leaves of their own. Sees released numbers only.
#
# Leaves begin at round numbers, and how many rows lie exactly there was counted too, as were those at the end of the
# axis, where values beyond the upper bound are moved. Where such a count stands out of its noise, its cells become a
# leaf with no more rows than the leaf around it had; the rest keeps what is left.


# A pile is believed above this many standard deviations of its noise.
SPIKE_STANDS_OUT = 3.5


def part_spikes(column: NoisyColumn) -> NoisyColumn:
    """The column with its piles as leaves of their own."""
    if column.spikes is None or column.noisy_spikes is None:
        return column
    is_out = column.noisy_spikes > SPIKE_STANDS_OUT * column.spike_std
    is_first = np.arange(len(is_out)) < len(column.first)  # beyond them is the end of the axis
    spikes, noisy_spikes = column.spikes, column.noisy_spikes
    column = replace(column, pile=np.full(len(column.first), -1, dtype=np.int32))
    for chosen in (is_out & is_first, is_out & ~is_first):
        column = _with_piles(column, np.flatnonzero(chosen), spikes[:, chosen], noisy_spikes[chosen])
    return replace(column, spikes=None, noisy_spikes=None)


def _with_piles(column: NoisyColumn, numbers: Counts, spikes: Counts, noisy_piles: Counts) -> NoisyColumn:
    """The leaves with piles cut out of them, each at the beginning or at the end of another leaf; in order."""
    assert column.pile is not None
    first, stop = spikes
    leaf = np.searchsorted(column.first, first, side="right") - 1
    is_end = first > column.first[leaf]
    is_parted = (is_end | (stop < column.stop[leaf])) & (column.noisy_counts[leaf] > 0)
    leaf, is_end, cut = leaf[is_parted], is_end[is_parted], np.where(is_end, first, stop)[is_parted]
    held = column.noisy_counts[leaf]
    piles = np.minimum(noisy_piles[is_parted], held)
    noisy_counts = np.insert(column.noisy_counts, leaf, np.where(is_end, held - piles, piles))
    noisy_counts[leaf + np.arange(len(leaf)) + 1] = np.where(is_end, piles, held - piles)
    pile = np.insert(column.pile, leaf, np.where(is_end, column.pile[leaf], numbers[is_parted]))
    pile[leaf + np.arange(len(leaf)) + 1] = np.where(is_end, numbers[is_parted], column.pile[leaf])
    return replace(
        column,
        pile=pile.astype(np.int32),
        first=np.insert(column.first, leaf + 1, cut),
        stop=np.insert(column.stop, leaf, cut),
        noisy_counts=noisy_counts,
    )


# --------------------------------------------------------------------------------------------------------------- states
# From noisy leaves to a few states for each column. Sees released numbers only.
#
# Small counts are taken for noise and the rest is fitted to the total. Then leaves are grouped: neighbouring leaves
# of a number into groups of even weight, half of it by rows and half by leaves, so that tails keep states of their
# own; rare categories into one, or, where codes have a hierarchy, with their siblings. Null is always a state of its
# own.


# A category below this many standard deviations shares a state with the other rare ones.
_RARE_BELOW = 3.0
# Sentinels are leaves beyond a gap that stand out by so many standard deviations. In the gap are no more rows than this
# part of theirs, and it is compared with what all other rows but so few at either end reach over.
SENTINEL_STANDS_OUT = 2.5
_MOST_IN_GAP, _UNCOMMON = 0.5, 0.005
_GAP = 0.1


def column_model(
    column: NoisyColumn,
    *,
    total: float,
    most_states: int,
    parting: Parting | None = None,
    cells: ColumnAxis | None = None,
    is_stated: bool = False,
) -> tuple[ColumnModel, Cut]:
    """A column as a model over states knows it, and how to find the state of a row.

    Args:
        column: leaves and noisy counts.
        total: the number of rows, or a noisy one.
        most_states: about how many states to make; null, and values kept apart, may add to it.
        parting: labels leaves that may not share a state with others, because a rule tells them apart.
        cells: the column's cells, of which piles have a few to themselves and lie at their round value.
        is_stated: whether every value is to be told from the others, where the column has no tree.
    """
    counted = column
    column, weights = spread_codes(column, total) if column.levels is not None else (part_spikes(column), None)
    low, length = leaf_places(column.axis, column.first, column.stop, parting=parting, cells=cells)
    likely = np.zeros(len(low), dtype=np.bool_) if cells is None else likely_sentinels(cells, low, length)
    codes = np.zeros(len(low), dtype=np.bool_) if cells is None else are_codes(cells, low)
    weights = leaf_weights(column, low, length, total, likely, codes) if weights is None else weights
    if parting is not None:
        weights = possible_weights(weights, possible_leaves(column.axis, column.first, parting), length)
    is_null = column.is_null
    marked = np.zeros(len(weights), dtype=np.int64) if parting is None else parting.labels_of(column.first)
    if column.is_ordered and column.noise_std > 0:
        values = np.where(is_null, 0.0, weights)
        marked = 3 * marked + beyond_gaps(low, length, values, column.noise_std, likely)
    if is_stated and not needs_tree(column.axis):
        states = np.arange(len(weights))
    elif column.levels is not None:
        states = pool_siblings(column, weights, most_states)
    elif column.is_ordered:
        states = _group_neighbours(weights, column.is_null, marked, most_states, few_values=not needs_tree(column.axis))
    else:
        states = _pool_rare(column, marked, most_states)
    model = ColumnModel(low, length, column.is_null, weights, states.astype(np.int32), int(states.max()) + 1)
    if column.grain is not None and cells is not None and not column.is_told:
        leaf = np.searchsorted(counted.first, column.first, side="right") - 1
        stds = column.grain.noise.std, column.noise_std, column.spike_std
        model = as_written(model, cells, Steps(column.grain.noisy.astype(np.float64), *stds, leaf))
    return model, Cut(column.axis, column.first, states)


def beyond_gaps(
    low: Floats, length: Floats, weights: Floats, noise_std: float, likely: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Which leaves lie before (1) or behind (2) a gap that ends at a sentinel: a number for "not known", such as 98.

    Those that are `likely` to be sentinels are, where they stand out and the gap is a tenth of what nearly all other
    rows reach over. Null, and other leaves that do not count, weigh nothing.
    """
    found = np.zeros(len(weights), dtype=np.int64)
    held = np.flatnonzero(weights > 0)
    begin, end, rows = low[held], (low + length)[held], weights[held]
    is_out = likely[held] & (rows >= SENTINEL_STANDS_OUT * noise_std)
    behind = _first_behind(begin, end, rows, is_out)
    before = len(held) - _first_behind(-end[::-1], -begin[::-1], rows[::-1], is_out[::-1])
    found[held[behind:]] = 2
    found[held[: min(before, behind)]] = 1
    return found


def _first_behind(begin: Floats, end: Floats, rows: Floats, is_out: NDArray[np.bool_]) -> int:
    """The first of some leaves, in order, that stands out behind a gap; how many they are without one."""
    until = np.cumsum(rows)
    for place in np.flatnonzero(is_out):
        before, behind = until[place] - rows[place], until[-1] - until[place] + rows[place]
        if behind >= before:
            continue
        wanted = [_UNCOMMON * before, (1 - _UNCOMMON) * before, before - _MOST_IN_GAP * behind]
        first, last, body = np.searchsorted(until[:place], wanted)
        if begin[place] - end[body] > _GAP * max(end[last] - begin[first], end[-1] - begin[place]):
            return int(place)
    return len(rows)


def possible_leaves(axis: Axis, first: NDArray[np.int64], parting: Parting) -> NDArray[np.bool_]:
    """The leaves, by their first cells, in which rules leave some rows."""
    labels = np.where(np.equal(first, axis.null_cell), parting.n_labels, parting.labels_of(first))
    return np.asarray(parting.possible[labels])


def leaf_weights(
    column: NoisyColumn,
    low: Floats,
    length: Floats,
    total: float,
    likely: NDArray[np.bool_] | None = None,
    codes: NDArray[np.bool_] | None = None,
) -> Floats:
    """Weights that are not negative and add up to the total, of leaves that lie there.

    `likely` ones are sentinels; `codes`, as null, are no values.
    """
    noisy = column.noisy_counts.astype(np.float64)
    if column.noise_std == 0:  # shares that are known, not counts
        return np.asarray(total * noisy / noisy.sum())
    if column.is_told and column.is_ordered and (noisy > 0).any():  # where a prior leaves nothing, nothing is added
        weights = np.zeros_like(noisy)
        weights[noisy > 0] = project_to_total(noisy[noisy > 0], total)
        return weights
    if not column.is_ordered or column.is_told:
        return project_to_total(noisy, total)
    is_whole = column.axis.kind == "integer"
    apart = column.is_null if codes is None else column.is_null | codes
    return number_weights(noisy, column.noise_std, low, length, apart, total, is_whole=is_whole, likely=likely)


def _group_neighbours(
    weights: Floats, is_null: NDArray[np.bool_], marked: NDArray[np.int64], most_states: int, *, few_values: bool
) -> NDArray[np.int64]:
    """Contiguous groups of even weight 0.5 p + 0.5 [p > 0] / #{p > 0}; empty leaves go with a neighbour.

    Of few values, the empty ones behind the last stay a group, so that they can be asked for.
    """
    is_held = (weights > 0) & ~is_null
    n_held = max(1, int(is_held.sum()))
    p = np.where(is_null, 0, weights)
    even = 0.5 * p / max(float(p.sum()), 1e-300) + 0.5 * is_held / n_held
    if n_held <= most_states:
        even = is_held / n_held
    middle = np.cumsum(even) - even / 2
    n_groups = min(most_states, n_held)
    group = np.minimum((middle * n_groups).astype(np.int64), (most_states if few_values else n_groups) - 1)
    return numbered(np.stack([is_null, marked, group], axis=1))


def _pool_rare(column: NoisyColumn, marked: NDArray[np.int64], most_states: int) -> NDArray[np.int64]:
    """Categories that stand out have states of their own, `most_states` at the most; the rest share one."""
    n_leaves = len(column.first)
    is_null = column.is_null
    if n_leaves - int(is_null.sum()) <= 2:
        return np.arange(n_leaves)
    rank = np.empty(n_leaves, dtype=np.int64)
    rank[np.argsort(-column.noisy_counts, kind="stable")] = np.arange(n_leaves)
    is_kept = (column.noisy_counts >= _RARE_BELOW * column.noise_std) & (rank < most_states)
    own = np.where(is_kept | is_null, 1 + np.arange(n_leaves), n_leaves + 1)
    return numbered(np.stack([is_null, marked, own], axis=1))
