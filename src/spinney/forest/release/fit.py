"""The fit of a forest to its noisy numbers, and the same fit to numbers with fresh noise. PUBLIC.

One function of numbers makes the released model, checks the model of a file, and fits the models that might
have been released. What the noise decided stays as it is: tree shapes, leaves, states, boxes, which columns
were counted together.

    leaf weights      from noisy counts of leaves and regions to weights that add up to the total
    fit to numbers    from all numbers to columns and the model of their states
    signs             functions of groups, and how far one row moves sums of their products    products.proof.md
    products          the released sums of products and their tilt, as data and in a file
    redrawn models    models that might have been released
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.errors import ParameterError
from spinney.forest.release.columns import (
    FAR_OUT,
    ColumnModel,
    Floats,
    are_codes,
    as_written,
    code_weights,
    is_far_out,
    likely_sentinels,
    variance_added,
)
from spinney.forest.release.measured import (
    Measured,
    MeasuredColumn,
    MeasuredPiles,
    MeasuredTable,
    NoiseLaw,
    TiltFit,
    WeightsRule,
)
from spinney.forest.release.places import PlaceModel
from spinney.graph.estimate import Measurement, estimate
from spinney.graph.model import GraphModel, draw_states
from spinney.graph.tilt import MOST_GROUPS, Evidence, Groups, Pair, Products, Tilt, fit_tilt
from spinney.grid.axes import ColumnAxis, column_axes
from spinney.grid.ruler import CodeLevels
from spinney.machine import each, n_threads
from spinney.privacy.budget import Unit, parse_fraction
from spinney.release.card import RowCount
from spinney.release.file import FLOAT, are_counts, from_arrow, lists, numbers, to_arrow
from spinney.tree.release.density import project_to_total

if TYPE_CHECKING:
    from spinney.forest.release.model import ForestRelease


# --------------------------------------------------------------------------------------------------------- leaf weights
# From noisy counts of leaves and regions to weights that add up to the total. Sees released numbers only.
#
# Small counts are taken for noise and the rest is fitted to the total. A fit makes its weights here, and so does
# every model that is fitted anew to redrawn counts: what noise does to weights is then seen as it is, cuts included.


Flags = NDArray[np.bool_]

# A number's leaf below this many standard deviations of its noise is treated as empty: wide empty tails would collect
# rows.
_EMPTY_BELOW = 1.0
# Which leaves are far out (`far_out`) is told by those above so many standard deviations, and far out none below that
# is believed: the larger one of these numbers with which such leaves hold most of the rows. Of a few hundred leaves of
# noise one or two are above the smaller, and where the larger will do they need not be.
_SURE_ABOVE = (4.0, 2.5)
_MOST_ROWS = 0.5
_EMPTY_BELOW_FAR_OUT = 3.5
# The rows of a range of leaves are no further from its noisy count than so many standard deviations of its noise; an
# interval of 99 % reaches 2.58.
_REACH = 2.25
# Leaves where rows of one deviation would raise the variance so many times are far out, further and very far out.
# Nothing is very far out from rows that all have one value.
_FURTHER_OUT, _VERY_FAR_OUT = 10.0, 1_000.0


@dataclass(frozen=True, slots=True)
class _Belief:
    """From how many standard deviations on a range of leaves that are far out is believed, and how much of it.

    Numbers of ranges are those of leaves that are not far out, then one for each part that `parting` makes of the
    others, then of numbers that often say "not known" and stand alone. A range that just stands out is left `reach`
    deviations below its noisy count, which is less than an interval of 95 % reaches; one that stands out by `sure` more
    gets all of it.
    """

    parting: tuple[float, ...]
    tail: tuple[float, ...]  # of a range that begins or ends the column
    inside: tuple[float, ...]  # of any other, of which there are more
    reach: float
    sure: float

    @property
    def sentinels(self) -> int:
        """The farness of numbers that often say "not known"; of what is very far out it is one less."""
        return len(self.parting) + 1


# Noise alone gives an end by 2 deviations in one of 44, which then get a tenth of a deviation; by 2.6 in one of 200, by
# 3 in one of 700, and a range inside by 4 in one of 30,000. Older files left what was far out further below its count.
_BELIEF = _Belief(
    (FAR_OUT, _FURTHER_OUT, _VERY_FAR_OUT), (_REACH, 2.0, 2.6, 3.0, 4.0), (_REACH, 3.0, 3.0, 4.0, 4.0), 1.9, 1.5
)
_OLD_BELIEF = _Belief((FAR_OUT, _VERY_FAR_OUT), (_REACH, 2.6, 3.0, 4.0), (_REACH, 3.0, 4.0, 4.0), 2.5, math.inf)
# A number that often says "not known" is believed from so many deviations on if it stands alone, unless it is very far
# out. It does if less than one deviation is in the leaves on each side of it, so many, on average but for the largest,
# which may stand alone itself.
_SENTINEL_BELIEVED, _BESIDE = 3.0, 3
# Rows are moved from range to range so often at the most, and no fewer than this part of a deviation at a time.
_MOST_MOVES, _LEAST_MOVED = 200, 0.02

# A region below this many standard deviations of its noise is treated as empty: one that is there because rows are
# near, and one that would be there in any case, in the middle of nowhere.
_REGION_EMPTY_BELOW, _LONELY_BELOW = 1.5, 3.0
# So is one of which the border of the shape leaves a strip: all its rows, of noise too, would be drawn in that strip.
_STRIP, _STRIP_BELOW = 0.1, 4.0
# And one that is far out along a column, by what regions above so many deviations say: more easily than a leaf of a
# column by itself, because far more regions lie around the rows of a place.
_FAR_OUT_BELOW = 4.0
_FAR_OUT_PART = 0.01


def number_weights(
    counts: Floats,
    noise_std: float,
    low: Floats,
    length: Floats,
    is_null: Flags,
    total: float,
    *,
    is_whole: bool,
    rule: WeightsRule = "tails",
    likely: Flags | None = None,
) -> Floats:
    """Weights of a number's leaves, not negative, adding up to the total; even over the column where none stands out.

    Args:
        counts: noisy counts of leaves (n_leaves,).
        noise_std: the standard deviation of their noise.
        low: where leaves begin.
        length: how long they are.
        is_null: which of them is null, or a code of a ratio: they come last, and are no values.
        total: what weights add up to.
        is_whole: whether the column has whole values, each 1 long.
        rule: how weights follow from counts, by which older files know other ways.
        likely: which leaves are of one value that often says "not known"; none, unless told.
    """
    if len(counts) == 1:
        return project_to_total(counts, total)
    belief = _BELIEF if rule == "tails" else _OLD_BELIEF
    least, ease, farness = _least_believed(counts, noise_std, low, length, is_null, belief.parting, is_whole=is_whole)
    if rule in ("sentinels", "tails") and likely is not None and likely.any():
        is_sentinel = likely & _stands_alone(counts, noise_std, is_null)
        is_near = farness < belief.sentinels - 1
        least = np.where(is_sentinel & is_near, _SENTINEL_BELIEVED * noise_std, least)
        farness = np.where(is_sentinel, belief.sentinels, farness)
    believed = np.where(counts < least, 0.0, counts)
    is_kept = believed > 0
    weights = np.zeros_like(counts)
    if is_kept.any():
        weights[is_kept] = project_to_total(believed[is_kept], total)
    else:
        reach = np.where(is_null, float(is_whole), length)
        reach = reach if reach.sum() > 0 else np.ones_like(reach)
        weights = total * reach / reach.sum()
    if rule != "leaves" and noise_std > 0:
        centred = counts + (total - counts.sum()) / len(counts)
        believed_from = np.array([belief.inside, belief.tail])
        n_values = int(np.count_nonzero(~is_null))
        _move_into_reach(weights, centred, ease, farness, noise_std, n_values, believed_from, belief.reach, belief.sure)
        weights *= total / weights.sum()
    return weights


def _stands_alone(counts: Floats, noise_std: float, is_null: Flags) -> Flags:
    """The leaves whose neighbours, all but one, hold nothing that stands out."""
    found = np.zeros(len(counts), dtype=np.bool_)
    values = counts[~is_null]
    n_around = 2 * _BESIDE + 1
    if len(values) < n_around:
        return found
    first = np.clip(np.arange(len(values)) - _BESIDE, 0, len(values) - n_around)
    around = sliding_window_view(values, n_around)[first].copy()
    around[np.arange(len(values)), np.arange(len(values)) - first] = -np.inf  # itself
    around.partition((0, n_around - 1), axis=1)
    found[~is_null] = around[:, 1:-1].mean(axis=1) < noise_std
    return found


def _least_believed(
    counts: Floats,
    noise_std: float,
    low: Floats,
    length: Floats,
    is_null: Flags,
    parting: tuple[float, ...],
    *,
    is_whole: bool,
) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """For each leaf of a number: the noisy count below which it is empty, how easily it takes rows, how far it is."""
    values = np.where(is_null, 0.0, counts)
    for above in _SURE_ABOVE:
        sure = np.where(values < above * noise_std, 0.0, values)
        if sure.sum() >= _MOST_ROWS * values.sum():
            break
    if not sure.any():
        return np.full(len(values), _EMPTY_BELOW * noise_std), np.ones(len(values)), np.zeros(len(values), np.int64)
    added = np.where(is_null, 0.0, variance_added(low, length, sure, noise_std))
    farness = np.searchsorted(parting, added)
    if np.count_nonzero(sure) == 1 and length[np.argmax(sure)] <= is_whole:  # no spread to go by
        farness = np.minimum(farness, len(parting) - 1)
    least = np.where(farness > 0, max(above, _EMPTY_BELOW_FAR_OUT), _EMPTY_BELOW) * noise_std
    return least, (FAR_OUT / np.maximum(added, FAR_OUT)) ** 2, farness


@compiled
def _move_into_reach(
    weights: Floats,
    counts: Floats,
    ease: Floats,
    farness: NDArray[np.int64],
    noise_std: float,
    n_values: int,
    believed_from: Floats,
    reach_far_out: float,
    sure: float,
) -> None:
    """Move rows between leaves, in place, until ranges of leaves weigh what their counts allow.

    The range that is off by most gets, or gives up, what it is off by beyond its reach. Leaves outside give or get
    it. A lack is filled up to the leaves' own counts: where rows already are, if there is room, and where they add
    little to the variance of the column; never further out than where the range begins to be far out. Rows are taken
    down to the leaves' own counts, and then as far as a leaf's reach allows.

    Args:
        weights: of leaves (n_leaves,); they keep their sum.
        counts: noisy counts with the same sum.
        ease: how easily leaves take rows: less, the further out they are.
        farness: 0 for leaves that are not far out, more for those that are, the most for sentinels.
        noise_std: the standard deviation of the noise on a count.
        n_values: of the leaves; null comes after them.
        believed_from: by how many deviations ranges of each farness have to stand out (2, n_far): inside, and at ends.
        reach_far_out: how far below its count a range is left that just does so.
        sure: by how many deviations more a range gets all of its count.
    """
    n_leaves, n_far = counts.size, believed_from.shape[1]
    off, given = np.zeros(n_leaves + 1), np.zeros(n_leaves + 1)
    taken, n_no_further = np.zeros((n_far, n_leaves + 1)), np.zeros((n_far, n_leaves + 1))
    spare, nothing = _REACH * noise_std, min(believed_from.min(), _REACH)
    for leaf in range(n_leaves):
        for far in range(n_far):
            n_no_further[far, leaf + 1] = n_no_further[far, leaf] + (farness[leaf] <= far)
    for _ in range(_MOST_MOVES):
        for leaf in range(n_leaves):
            off[leaf + 1] = off[leaf] + weights[leaf] - counts[leaf]
            given[leaf + 1] = given[leaf] + max(weights[leaf] - max(counts[leaf] - spare, 0.0), 0.0)
            for far in range(n_far):
                lack = max(counts[leaf] - weights[leaf], 0.0) if farness[leaf] <= far else 0.0
                taken[far, leaf + 1] = taken[far, leaf] + lack
        worst, first, stop, n_rows, furthest = 0.0, 0, 0, 0.0, 0
        size = 1
        step = 1
        while size < n_leaves:
            deviation = noise_std * math.sqrt(size * (1.0 - size / n_leaves))
            # All ranges of few leaves; of more, some sizes, and of all sizes those at the ends of the values.
            stride = 1 if size == step else n_values - size
            for begin in range(0, n_leaves - size + 1, max(stride, 1)):
                end = begin + size
                distance = off[end] - off[begin]
                if abs(distance) <= nothing * deviation:
                    continue
                far, left = 0, _REACH * deviation
                inside, outside = given[end] - given[begin], taken[0, n_leaves] - taken[0, end] + taken[0, begin]
                if distance < 0:
                    while n_no_further[far, end] == n_no_further[far, begin]:
                        far += 1
                    is_tail = begin == 0 or end == n_values
                    least = believed_from[int(is_tail), far]
                    if -distance <= least * deviation:
                        continue
                    if far > 0:
                        more = -distance / deviation - least
                        left = reach_far_out * max(1.0 - more / sure, 0.0) * deviation
                    inside, outside = taken[far, end] - taken[far, begin], given[n_leaves] - given[end] + given[begin]
                moved = min(abs(distance) - left, inside, outside)
                if moved > worst * deviation:
                    worst, first, stop, n_rows, furthest = moved / deviation, begin, end, moved, far
            if size == step:
                step += max(1, step // 8)
            size += 1
        if worst < _LEAST_MOVED:
            break
        is_lacking = off[stop] < off[first]
        _take(weights, counts, spare, first, stop, not is_lacking, n_rows)
        _fill(weights, counts, np.where(farness <= furthest, ease, 0.0), first, stop, is_lacking, n_rows)


@compiled
def _take(weights: Floats, counts: Floats, spare: float, first: int, stop: int, is_inside: bool, n_rows: float) -> None:
    """Take rows from leaves of a range, or from those outside: what they have above their counts, then a bit more."""
    for below in (0.0, spare):
        total = 0.0
        for leaf in range(counts.size):
            if (first <= leaf < stop) == is_inside:
                total += max(weights[leaf] - max(counts[leaf] - below, 0.0), 0.0)
        if total <= 0:
            continue
        share = min(n_rows / total, 1.0)
        for leaf in range(counts.size):
            if (first <= leaf < stop) == is_inside:
                weights[leaf] -= share * max(weights[leaf] - max(counts[leaf] - below, 0.0), 0.0)
        n_rows -= share * total
        if n_rows <= 1e-6:
            break


@compiled
def _fill(weights: Floats, counts: Floats, ease: Floats, first: int, stop: int, is_inside: bool, n_rows: float) -> None:
    """Add rows to leaves of a range, or to those outside, up to their counts: to those that have some, then to all."""
    for is_empty_too in (False, True):
        while n_rows > 1e-6:
            total, share = 0.0, math.inf
            for leaf in range(counts.size):
                if (first <= leaf < stop) == is_inside and ease[leaf] > 0 and (is_empty_too or weights[leaf] > 0):
                    lack = counts[leaf] - weights[leaf]
                    if lack > 1e-6:
                        total += lack * ease[leaf]
                        share = min(share, 1.0 / ease[leaf])
            if total <= 0:
                break
            share = min(share, n_rows / total)
            for leaf in range(counts.size):
                if (first <= leaf < stop) == is_inside and ease[leaf] > 0 and (is_empty_too or weights[leaf] > 0):
                    lack = counts[leaf] - weights[leaf]
                    if lack > 1e-6:
                        weights[leaf] += lack * ease[leaf] * share
            n_rows -= total * share


def possible_weights(weights: Floats, possible: Flags, length: Floats) -> Floats:
    """Nothing where rules leave no row, whatever was counted there; the rest weighs as much as all did."""
    left = np.where(possible, weights, 0.0)
    if left.sum() == 0:
        left = possible * (length if (possible * length).sum() > 0 else np.ones_like(length))
    return np.asarray(left * (weights.sum() / left.sum()))


def parted_counts(counts: Floats, leaf: NDArray[np.int32], piles: MeasuredPiles | None, heights: Floats) -> Floats:
    """Counts of the model's leaves: of a leaf that was counted, piles hold no more than it has, the rest what is left.

    Args:
        counts: of the leaves that were counted (n_counted,).
        leaf: the counted leaf of each of the model's.
        piles: which of these are piles.
        heights: counts of all piles (n_piles,); those of counted leaves come first.
    """
    held = counts[leaf]
    if piles is None:
        return held
    found = held.copy()
    for is_end in (False, True):
        for place in np.flatnonzero((piles.pile >= 0) & ((piles.pile >= len(counts)) == is_end)).tolist():
            # A pile at the beginning of a leaf is followed by the rest of it, one at the end of the axis comes last.
            rest = place - 1 if is_end else place + 1
            height = min(max(float(heights[piles.pile[place]]), 0.0), max(float(found[rest]), 0.0))
            found[place] = height
            found[rest] -= height
    return found


def region_weights(place: PlaceModel, counts: Floats, noise_std: float, given_depth: int, total: float) -> Floats:
    """Weights of regions, not negative, adding up to the total; even over the place where no count stands out."""
    is_strip = place.is_bordered & (place.parts_inside(place.axis.columns) < _STRIP)
    is_doubtful = is_strip | _is_lost(place, counts, noise_std)
    deviations = np.where(place.depths <= given_depth, _LONELY_BELOW, _REGION_EMPTY_BELOW)
    least = np.where(is_doubtful, _STRIP_BELOW, deviations) * noise_std
    believed = np.where(counts < least, 0.0, counts)
    is_kept = believed > 0
    if not is_kept.any():
        sizes = place.reach()
        return np.asarray(total * sizes / sizes.sum())
    weights = np.zeros(len(believed))
    weights[is_kept] = project_to_total(believed[is_kept], total)
    return weights


def _is_lost(place: PlaceModel, counts: Floats, noise_std: float) -> Flags:
    """The regions that are far from all rows along some column, and in no cluster that stands out."""
    found = np.zeros(len(counts), dtype=np.bool_)
    is_sure = counts >= _FAR_OUT_BELOW * noise_std
    for index in range(place.low.shape[1]):
        is_value = ~place.is_null[:, index]
        sure = np.where(is_sure & is_value, np.maximum(counts, 0.0), 0.0)
        if sure.any():
            low, length = place.low[:, index], place.length[:, index]
            found |= is_far_out(low, length, sure, noise_std, part=_FAR_OUT_PART) & is_value
    return found & ~_in_clusters(place, counts, noise_std, found)


def _in_clusters(place: PlaceModel, counts: Floats, noise_std: float, is_far: Flags) -> Flags:
    """The regions that lie, with others that are far out, in a node of the tree that stands out as a whole: a town."""
    found = np.zeros(len(is_far), dtype=np.bool_)
    codes = place.codes[:, 0]
    for depth in range(1, int(place.depths.max(initial=0))):
        nodes = codes >> np.uint64(64 - depth)
        begins = np.flatnonzero(np.append(True, nodes[1:] != nodes[:-1]))
        n_regions = np.diff(np.append(begins, len(codes)))
        least = _FAR_OUT_BELOW * noise_std * np.sqrt(n_regions)
        is_cluster = (np.add.reduceat(counts, begins) >= least) & np.logical_and.reduceat(is_far, begins)
        found |= np.repeat(is_cluster, n_regions)
    return found


# ------------------------------------------------------------------------------------------------------- fit to numbers
# The model that noisy numbers give: weights of leaves, then the law of states. Sees released numbers only.
#
# This is the last step of a fit, as a function of numbers: of those that were measured, which has to give the model
# of the file, and of redrawn ones. What noise decided stays as it is: leaves, states, boxes, which columns were
# counted together. All else is done anew, as in a fit: small counts are cut, weights are projected, the model starts
# from independent columns.


Model = ColumnModel | PlaceModel


@dataclass(frozen=True, slots=True, eq=False)
class ColumnNumbers:
    """The counts of a column or place: of its counted leaves, its piles, the groups of its hierarchy, and its grain."""

    counts: Floats
    piles: Floats
    groups: tuple[Floats, ...]
    grain: Floats | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """Everything that was counted, as numbers alone."""

    columns: tuple[ColumnNumbers | None, ...]
    tables: tuple[Floats, ...]
    rows: float | None  # the bought number of rows


@dataclass(frozen=True, slots=True, eq=False)
class Refitter:
    """Fits columns and model to numbers, the structure of a forest being given."""

    measured: Measured
    models: tuple[Model, ...]  # a variable each, as released
    model: GraphModel
    levels: Mapping[int, CodeLevels]  # of variables that are codes in a hierarchy
    cells: Mapping[int, ColumnAxis]  # of variables that are columns
    is_total_public: bool

    def observed(self) -> Numbers:
        """The numbers that left the mechanisms."""
        columns = tuple(None if column is None else _observed(column) for column in self.measured.columns)
        tables = tuple(table.noisy.astype(np.float64) for table in self.measured.tables)
        count = self.measured.row_count
        return Numbers(columns, tables, None if count is None else float(count.noisy))

    def expected(self) -> Numbers:
        """What the numbers would be without noise, were the released model the truth."""
        total = self.measured.total
        columns = []
        for index, (column, leaves) in enumerate(zip(self.measured.columns, self.models, strict=True)):
            share = self.model.marginal((index,))[leaves.states] * leaves.inside()
            columns.append(None if column is None else _expected(column, total * share, self.levels.get(index)))
        laws = self.model.marginals([table.columns for table in self.measured.tables])
        tables = tuple(total * box_sums(table, law) for table, law in zip(self.measured.tables, laws, strict=True))
        return Numbers(tuple(columns), tables, None if self.measured.row_count is None else total)

    def with_noise(self, numbers: Numbers, rng: np.random.Generator) -> Numbers:
        """The numbers with fresh noise of the laws that they were measured with."""
        columns: list[ColumnNumbers | None] = []
        for column, of_column in zip(self.measured.columns, numbers.columns, strict=True):
            if column is None or of_column is None:
                columns.append(None)
                continue
            counts = of_column.counts + column.noise.draw(rng, len(of_column.counts))
            piles = of_column.piles
            if column.piles is not None:
                piles = piles + column.piles.noise.draw(rng, len(piles))
            groups = tuple(group + column.noise.draw(rng, len(group)) for group in of_column.groups)
            grain = of_column.grain
            if column.grain is not None and grain is not None:
                grain = grain + column.grain.noise.draw(rng, len(grain))
            columns.append(ColumnNumbers(counts, piles, groups, grain))
        tables = tuple(
            values + table.noise.draw(rng, len(values))
            for table, values in zip(self.measured.tables, numbers.tables, strict=True)
        )
        rows, count = numbers.rows, self.measured.row_count
        if rows is not None and count is not None:
            rows += int(NoiseLaw("discrete laplace", count.rate).draw(rng, 1)[0])
        return Numbers(tuple(columns), tables, rows)

    def total(self, numbers: Numbers) -> float:
        """The number of rows, by the numbers where it is not public."""
        if self.is_total_public:
            return self.measured.total
        sums: dict[bool, list[tuple[float, float]]] = {True: [], False: []}  # of places, and of columns
        for column, of_column, model in zip(self.measured.columns, numbers.columns, self.models, strict=True):
            if column is not None and of_column is not None:
                counts = of_column.groups[0] if of_column.groups else of_column.counts
                sums[isinstance(model, PlaceModel)].append((float(counts.sum()), column.sum[1]))
        count = self.measured.row_count
        rows = None if count is None else replace(count, noisy=round(numbers.rows or 0.0))
        return noisy_total(sums[False] or sums[True], rows)

    def columns(self, numbers: Numbers) -> tuple[Model, ...]:
        """Columns and places with the weights that numbers give."""
        total = self.total(numbers)
        found: list[Model] = []
        for index, model in enumerate(self.models):
            column, of_column = self.measured.columns[index], numbers.columns[index]
            if column is None or of_column is None:
                weights = model.weights * (total / max(float(model.weights.sum()), 1e-300))
            else:
                levels, rule = self.levels.get(index), self.measured.weights_rule
                likely, codes = None, np.zeros(len(model.weights), dtype=np.bool_)
                if index in self.cells and isinstance(model, ColumnModel):
                    likely = likely_sentinels(self.cells[index], model.low, model.length)
                    codes = are_codes(self.cells[index], model.low)
                weights = _weights(column, of_column, model, total, levels, rule=rule, likely=likely, codes=codes)
            weighed = replace(model, weights=weights)
            if column is not None and column.grain is not None and isinstance(weighed, ColumnModel):
                assert of_column is not None
                assert column.steps is not None
                assert of_column.grain is not None
                weighed = as_written(weighed, self.cells[index], replace(column.steps, noisy=of_column.grain))
            found.append(weighed)
        return tuple(found)

    def fit(self, numbers: Numbers) -> tuple[tuple[Model, ...], GraphModel]:
        """Columns and the model of their states."""
        models = self.columns(numbers)
        one_ways = [
            one_way(index, model, 0.0 if column is None else column.noise.std, are_codes=index in self.levels)
            for index, (model, column) in enumerate(zip(models, self.measured.columns, strict=True))
        ]
        counted = [
            table_measurement(table, values, self.model.tree.sizes)
            for table, values in zip(self.measured.tables, numbers.tables, strict=True)
        ]
        tree = self.model.tree
        zeros = [
            (clique, np.isfinite(potentials))
            for clique, potentials in zip(tree.cliques, self.model.potentials, strict=True)
            if not np.isfinite(potentials).all()
        ]
        return models, estimate(
            tree.sizes,
            [*one_ways, *counted],
            self.total(numbers),
            cliques=tree.cliques,
            zeros=zeros,
            steps=self.measured.steps,
            regularization=self.measured.regularization,
        )


# A doubtful box that is below so many standard deviations of its noise is empty but for this part of one.
_DOUBTFUL_BELOW, _SURELY_EMPTY = 3.0, 0.25


def one_way(index: int, model: Model, noise_std: float, *, are_codes: bool) -> Measurement:
    """A column's states, each as uncertain as the leaves that it was added up from."""
    n_held = np.bincount(model.states, weights=model.weights > 0, minlength=model.n_states)
    if are_codes:  # what several codes hold together is known from the count of their group
        n_held = np.minimum(n_held, 2)
    return Measurement((index,), model.state_weights(), max(noise_std, 1.0) * np.sqrt(np.maximum(n_held, 1.0)))


def table_measurement(table: MeasuredTable, noisy: Floats, sizes: Sequence[int]) -> Measurement:
    """A counted table as the model is fitted to it; cells of no box, where the model has nothing, go with the first."""
    labels = None
    if table.labels is not None:
        labels = np.maximum(table.labels, 0).reshape([sizes[column] for column in table.columns])
    return Measurement(table.columns, *believed_boxes(noisy, table.noise.std, table.doubtful), labels)


def believed_boxes(noisy: Floats, noise_std: float, doubtful: Sequence[int]) -> tuple[Floats, float | Floats]:
    """Counts of boxes as a model is fitted to them, and how far they may be off.

    Doubtful ones that do not stand out hold nothing, nearly for certain: the model spreads noise in them otherwise.
    """
    if not doubtful:
        return noisy, noise_std
    is_empty = np.zeros(len(noisy), dtype=np.bool_)
    is_empty[list(doubtful)] = True
    is_empty &= noisy < _DOUBTFUL_BELOW * noise_std
    return np.where(is_empty, 0.0, noisy), np.where(is_empty, noise_std * _SURELY_EMPTY, noise_std)


def box_sums(table: MeasuredTable, law: Floats) -> Floats:
    """What the cells of each box hold together."""
    if table.labels is None:
        return law.ravel()
    is_boxed = table.labels >= 0
    sums = np.bincount(table.labels[is_boxed], weights=law.ravel()[is_boxed], minlength=len(table.noisy))
    return np.asarray(sums, dtype=np.float64)


def noisy_total(sums: Sequence[tuple[float, float]], row_count: RowCount | None) -> float:
    """The number of rows by sums with variances and a bought count, weighted by precision; at least 1."""
    if not sums:
        return 1.0 if row_count is None else float(row_count.drawn)
    weight = sum(1 / variance for _, variance in sums)
    total = sum(total / variance for total, variance in sums) / weight
    return max(1.0, total if row_count is None else row_count.with_sum(total, 1 / weight))


def _observed(column: MeasuredColumn) -> ColumnNumbers:
    piles = np.zeros(0) if column.piles is None else column.piles.noisy.astype(np.float64)
    groups = tuple(group.astype(np.float64) for group in column.groups)
    return ColumnNumbers(column.noisy.astype(np.float64), piles, groups, _grain_of(column))


def _grain_of(column: MeasuredColumn) -> Floats | None:
    """Rows in each class of the grain as they were counted: the model of states says nothing of them."""
    return None if column.grain is None else column.grain.noisy.astype(np.float64)


def _expected(column: MeasuredColumn, rows: Floats, levels: CodeLevels | None) -> ColumnNumbers:
    """The counts that so many rows in each leaf of the model have."""
    n_counted = len(column.noisy)
    if levels is not None:
        n_codes = np.diff(np.append(column.leaf, n_counted))
        counts = np.repeat(rows / n_codes, n_codes)
        groups = [np.add.reduceat(counts[: levels.n_codes], starts) for starts in levels.starts]
        groups[:1] = [np.append(groups[0], counts[levels.n_codes :])]
        return ColumnNumbers(counts, np.zeros(0), tuple(groups))
    counts = np.asarray(np.bincount(column.leaf, weights=rows, minlength=n_counted), dtype=np.float64)
    piles = np.zeros(0)
    if column.piles is not None:
        is_pile = column.piles.pile >= 0
        piles = np.zeros(len(column.piles.noisy))
        piles[column.piles.pile[is_pile]] = rows[is_pile]
    return ColumnNumbers(counts, piles, (), _grain_of(column))


def _weights(
    column: MeasuredColumn,
    numbers: ColumnNumbers,
    model: Model,
    total: float,
    levels: CodeLevels | None,
    *,
    rule: WeightsRule,
    likely: Flags | None,
    codes: Flags,
) -> Floats:
    """Weights of the model's leaves, as a fit makes them."""
    std = column.noise.std
    if isinstance(model, PlaceModel):
        return region_weights(model, numbers.counts, std, column.given_depth, total)
    if levels is not None:
        held = code_weights(levels, numbers.groups, numbers.counts, std, total)
        weights = np.add.reduceat(held, column.leaf)
    else:
        counts = parted_counts(numbers.counts, column.leaf, column.piles, numbers.piles)
        if column.kind == "category":
            weights = project_to_total(counts, total)
        else:
            is_whole = column.kind == "integer"
            places = (model.low, model.length, model.is_null | codes)
            weights = number_weights(counts, std, *places, total, is_whole=is_whole, rule=rule, likely=likely)
    return weights if column.possible.all() else possible_weights(weights, column.possible, model.length)


# ---------------------------------------------------------------------------------------------------------------- signs
# Signs: functions of a column's groups with values -1 and 1, and how far one row can move the sums of their products.
#
# The functions of a column are rows of a Hadamard matrix, as far as its groups go; with the constant they tell the
# groups apart, and there is one fewer than there are groups. A pair of columns has a sum, over all rows, for every
# product of a function of one and a function of the other. Everything here is public.
#
# A row adds -1 or 1 to each of F sums, so one row more or less moves them by sqrt(F). Another row in the place of one
# moves the sums of a pair by less than twice that: proof in `products.proof.md`.


Signs = NDArray[np.int64]

# Tables with more pairs of columns have no products: fitting them takes too long.
MOST_PAIRS = 5_000


@lru_cache(maxsize=256)
def signs(n_groups: int) -> Signs:
    """Functions of so many groups (n_groups - 1, n_groups), linearly independent together with the constant."""
    matrix: Signs = np.ones((1, 1), dtype=np.int64)
    while len(matrix) < n_groups:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    lines = matrix[:, :n_groups]
    chosen = [lines[0]]
    for line in lines[1:]:
        if np.linalg.matrix_rank(np.stack([*chosen, line])) > len(chosen):
            chosen.append(line)
        if len(chosen) == n_groups:
            break
    found = np.stack(chosen)[1:].reshape(n_groups - 1, n_groups)
    found.flags.writeable = False
    return found


def n_sums(n_groups: Sequence[int], pairs: Sequence[Pair]) -> int:
    """How many sums the pairs have."""
    return sum((n_groups[i] - 1) * (n_groups[j] - 1) for i, j in pairs)


def sensitivity_squared(n_groups: Sequence[int], pairs: Sequence[Pair], unit: Unit) -> int:
    """The most that one person's row can move all sums of these pairs, as the square of the Euclidean distance."""
    if unit.of_rows is Unit.ADD_REMOVE:
        return n_sums(n_groups, pairs)
    moves = [_moves(n_groups[i], n_groups[j]) for i, j in pairs]
    n_columns = len({column for pair in pairs for column in pair})
    # In how many pairs can one column be the same and the other not: those between two sets of columns.
    n_parted = min(len(pairs), n_columns**2 // 4)
    extra = sorted((max(0, one - both) for one, both in moves), reverse=True)
    return sum(both for _, both in moves) + sum(extra[:n_parted])


@lru_cache(maxsize=1024)
def _moves(n_first: int, n_second: int) -> tuple[int, int]:
    """How far another row moves the sums of a pair, squared: if one of its groups is another, and if both are."""
    alike = (n_first - 1, n_second - 1)
    unlike = (_least_product(n_first), _least_product(n_second))
    most = _most_product(n_first), _most_product(n_second)
    n_both = alike[0] * alike[1]
    one = 2 * n_both - 2 * min(unlike[0] * alike[1], alike[0] * unlike[1])
    both = 2 * n_both - 2 * min(unlike[0] * unlike[1], unlike[0] * most[1], most[0] * unlike[1], most[0] * most[1])
    return one, both


@lru_cache(maxsize=256)
def _products(n_groups: int) -> Signs:
    """For two different groups, the sum over functions of the products of their values; 0 where there is one group."""
    if n_groups == 1:
        return np.zeros(1, dtype=np.int64)
    lines = signs(n_groups)
    table = lines.T @ lines
    return np.asarray(table[~np.eye(n_groups, dtype=bool)])


def _least_product(n_groups: int) -> int:
    return int(_products(n_groups).min())


def _most_product(n_groups: int) -> int:
    return int(_products(n_groups).max())


# ------------------------------------------------------------------------------------------------------------- products
# What was released of all pairs at once, and the tilt that follows from it: as data, and in a file.
#
# A file holds the group and the log-factor of every state, and for every pair the log-factors of its groups and,
# where no table was counted, its noisy sums. How many sums there are, and which noise they need, follows from groups
# and pairs, so both are checked against what was charged.


MEMBERS = ("groups.arrow", "products.arrow")

_GROUPS = {"variable": (pa.int32(),), "group": (pa.int32(),), "factor": FLOAT}
_PAIRS = {
    "pair": (pa.list_(pa.int32()),),
    "factors": (pa.list_(pa.float64()),),
    "sums": (pa.list_(pa.int64()),),
}
# Log-factors beyond this leave the range of floats when they are added up.
_LARGEST_FACTOR = 500.0


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedProducts:
    """Noisy sums of products of pairs (`signs`), the variance of their noise, and the tilt that was fitted to them."""

    pairs: tuple[Pair, ...]  # those that were summed
    sums: tuple[NDArray[np.int64], ...]  # for each pair (n_groups of the first - 1, n_groups of the second - 1)
    variance: Fraction
    tilt: Tilt

    @property
    def n_sums(self) -> int:
        return n_sums(self.tilt.n_groups, self.pairs)

    def sensitivity_squared(self, unit: Unit) -> int:
        """How far one person can move all sums, squared."""
        return sensitivity_squared(self.tilt.n_groups, self.pairs, unit)

    # --------------------------------------------------------------------------------------------------- files

    def entries(self) -> dict[str, Any]:
        """What stands beside the card."""
        return {"variance": str(self.variance), "log_mean": self.tilt.log_mean}

    def members(self) -> dict[str, bytes]:
        """Two tables: states with their groups and factors, pairs with their factors and sums."""
        tilt = self.tilt
        owner = [np.full(len(group), number, dtype=np.int32) for number, group in enumerate(tilt.groups)]
        states = pa.table(
            {
                "variable": pa.array(np.concatenate(owner)),
                "group": pa.array(np.concatenate(tilt.groups).astype(np.int32)),
                "factor": pa.array(np.concatenate(tilt.singles)),
            }
        )
        sums = dict(zip(self.pairs, self.sums, strict=True))
        nothing = np.empty(0, dtype=np.int64)
        pairs = pa.table(
            {
                "pair": pa.array([list(pair) for pair in tilt.pairs], pa.list_(pa.int32())),
                "factors": pa.array([table.ravel() for table in tilt.tables], pa.list_(pa.float64())),
                "sums": pa.array([sums.get(pair, nothing).ravel() for pair in tilt.pairs], pa.list_(pa.int64())),
            }
        )
        return dict(zip(MEMBERS, (to_arrow(states), to_arrow(pairs)), strict=True))


def fitted_products(
    model: GraphModel,
    groups: tuple[Groups, ...],
    pairs: tuple[Pair, ...],
    sums: Sequence[NDArray[np.int64]],
    variance: Fraction,
    held: tuple[Pair, ...],
    fit: TiltFit,
    *,
    total: float,
    rng: np.random.Generator,
) -> ReleasedProducts:
    """The noisy sums of pairs, and the tilt of a model by them: in a fit, and of redrawn sums.

    Args:
        model: the law that is tilted.
        groups: of the states of every column.
        pairs: those that were summed.
        sums: of each pair, with noise.
        variance: of the noise.
        held: pairs that were counted.
        fit: how the tilt is fitted.
        total: the number of rows, or a noisy one.
        rng: draws rows of the model, which is no noise.
    """
    evidence = Evidence(
        groups=groups,
        functions=tuple(signs(int(group.max()) + 1).astype(np.float64) for group in groups),
        products=Products(pairs, tuple(table.astype(np.float64) for table in sums), math.sqrt(variance)),
        held=held,
        held_std=fit.held_std,
        total=total,
    )
    tilt = fit_tilt(model, evidence, n_drawn=fit.n_drawn, steps=fit.steps, rng=rng)
    return ReleasedProducts(pairs, tuple(sums), variance, tilt)


def products_from_members(
    described: Mapping[str, Any], members: Mapping[str, bytes], sizes: Sequence[int]
) -> ReleasedProducts | None:
    """Read what was written, for variables of so many states; ValueError where it is not that."""
    if "products" not in described:
        return None
    entries = described["products"]
    variance = parse_fraction(entries["variance"], "variance")
    log_mean = entries["log_mean"]
    if type(log_mean) is not float or not abs(log_mean) <= _LARGEST_FACTOR:
        raise ValueError("log_mean is not a number of the size that it can have")
    states, pairs = (from_arrow(members[name], kinds) for name, kinds in zip(MEMBERS, (_GROUPS, _PAIRS), strict=True))
    groups, singles = _states(states, sizes)
    n_groups = [int(group.max()) + 1 for group in groups]
    if pairs.num_rows > MOST_PAIRS:
        raise ValueError("more pairs of columns than products are made of")
    numbered: list[Pair] = []
    tables, sums = [], {}
    columns = [
        lists(pairs, name, dtype) for name, dtype in (("pair", np.int64), ("factors", np.float64), ("sums", np.int64))
    ]
    for columns_of_pair, factors, of_pair in zip(*columns, strict=True):
        pair = _pair(columns_of_pair, len(sizes))
        i, j = pair
        if not (np.abs(factors) <= _LARGEST_FACTOR).all() or not are_counts(of_pair):
            raise ValueError("factors or sums of a pair out of range")
        tables.append(factors.reshape(n_groups[i], n_groups[j]))
        if len(of_pair):
            sums[pair] = of_pair.reshape(n_groups[i] - 1, n_groups[j] - 1)
        numbered.append(pair)
    if len(set(numbered)) != len(numbered):
        raise ValueError("a pair of columns twice")
    tilt = Tilt(groups, singles, tuple(numbered), tuple(tables), log_mean)
    return ReleasedProducts(tuple(sums), tuple(sums.values()), variance, tilt)


def _states(table: pa.Table, sizes: Sequence[int]) -> tuple[tuple[Groups, ...], tuple[NDArray[np.float64], ...]]:
    """Groups and factors of the states of every variable."""
    variable, group = numbers(table, "variable", np.int64), numbers(table, "group", np.int64)
    factor = numbers(table, "factor", np.float64)
    if not np.array_equal(variable, np.repeat(np.arange(len(sizes)), sizes)):
        raise ValueError("groups of states that are not those of the model")
    ends = np.cumsum(sizes)[:-1]
    groups = np.split(group, ends)
    for of_variable in groups:
        # The size first: a number in a file must not decide how much memory is taken.
        if of_variable.max() >= MOST_GROUPS or not np.array_equal(
            np.unique(of_variable), np.arange(of_variable.max() + 1)
        ):
            raise ValueError("groups of states that do not follow each other")
    if not (np.abs(factor) <= _LARGEST_FACTOR).all():
        raise ValueError("factors of states out of range")
    return tuple(of_variable.astype(np.uint8) for of_variable in groups), tuple(np.split(factor, ends))


def _pair(columns: NDArray[np.int64], n_variables: int) -> Pair:
    if len(columns) != 2 or not 0 <= columns[0] < columns[1] < n_variables:
        raise ValueError("a pair that is not one of two variables, in order")
    return int(columns[0]), int(columns[1])


# ------------------------------------------------------------------------------------------------------- redrawn models
# Models that might have been released: everything that was measured with fresh noise, and fitted again.
#
# Numbers are drawn anew by the laws of their noise, around one of two:
#
#     model      what the released model says of every number: the truth is known to be the model, so the
#                distance of redrawn models from it is what the noise does, biases of cuts and projections included
#     numbers    the numbers that were released: the noise once more, for rows whose spread is to carry it
#
# and pass through all that a fit does to them (`Refitter`). The tilt by sums of products is fitted anew too, to
# redrawn sums and by rows of the redrawn model, but only once it is asked for: it takes longer than all the
# rest.


Around = Literal["model", "numbers"]

# Rows by which the products of the tilted model are known.
_N_DRAWN = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class Retilt:
    """How the tilt is fitted again: to sums of which the released ones are, or the model's, with fresh noise."""

    products: ReleasedProducts
    held: tuple[Pair, ...]  # pairs that were counted
    fit: TiltFit
    sums: tuple[Floats, ...]  # without the fresh noise

    def of(self, model: GraphModel, total: float, rng: np.random.Generator) -> ReleasedProducts:
        """Fresh sums, and the tilt of a model by them."""
        pairs, variance = self.products.pairs, self.products.variance
        law = NoiseLaw("discrete gaussian", variance)
        sums = [np.rint(table + law.draw(rng, table.shape)).astype(np.int64) for table in self.sums]
        groups = self.products.tilt.groups
        return fitted_products(model, groups, pairs, sums, variance, self.held, self.fit, total=total, rng=rng)


@dataclass(frozen=True, eq=False)
class Redrawn:
    """A model that might have been released: columns and places with their weights, and the law of their states."""

    columns: Mapping[str, ColumnModel]
    places: Mapping[str, PlaceModel]
    model: GraphModel
    total: float
    numbers: Numbers
    grains: Mapping[str, Floats]  # by column: rows in each class of its grain
    retilt: Retilt | None
    _stream: int  # starts the random numbers of the tilt

    @cached_property
    def products(self) -> ReleasedProducts | None:
        """Redrawn sums of products and the tilt by them; fitted when it is first asked for."""
        if self.retilt is None:
            return None
        return self.retilt.of(self.model, self.total, np.random.default_rng(self._stream))


class Redrawing:
    """Makes such models of one release; a ParameterError where its file does not hold what that takes."""

    def __init__(self, release: ForestRelease) -> None:
        measured = release.measured
        if measured is None:
            raise ParameterError(
                "this release does not hold its noisy counts, because it was saved by an earlier version of Spinney; "
                "sample(n_rows) works as before, and a new fit can be redrawn"
            )
        if release.card.parameters.get("prior") is not None:
            raise ParameterError(
                "a release that was fitted with a prior cannot be redrawn, because its file does not hold the prior's "
                "counts; fit without prior= for several draws"
            )
        self._release = release
        self.names = release.variables
        self.refitter = refitter(release)
        self._around: dict[Around, tuple[Numbers, tuple[Floats, ...]]] = {}

    def around(self, around: Around) -> tuple[Numbers, tuple[Floats, ...]]:
        """The numbers that fresh noise is added to, and the sums of products."""
        if around not in self._around:
            numbers = self.refitter.observed() if around == "numbers" else self.refitter.expected()
            products, sums = self._release.products, tuple[Floats, ...]()
            if products is not None:
                observed = tuple(table.astype(np.float64) for table in products.sums)
                sums = observed if around == "numbers" else _expected_sums(self.refitter, products)
            self._around[around] = numbers, sums
        return self._around[around]

    def draw(self, rng: np.random.Generator, around: Around) -> Redrawn:
        """One model."""
        numbers, sums = self.around(around)
        noisy = self.refitter.with_noise(numbers, rng)
        models, model = self.refitter.fit(noisy)
        named = dict(zip(self.names, models, strict=True))
        release, measured = self._release, self.refitter.measured
        retilt = None
        if release.products is not None and measured.tilt is not None:
            retilt = Retilt(release.products, release.counted_pairs, measured.tilt, sums)
        return Redrawn(
            {name: one for name, one in named.items() if isinstance(one, ColumnModel)},
            {name: one for name, one in named.items() if isinstance(one, PlaceModel)},
            model,
            self.refitter.total(noisy),
            noisy,
            {
                name: numbers.grain
                for name, numbers in zip(self.names, noisy.columns, strict=True)
                if numbers is not None and numbers.grain is not None
            },
            retilt,
            int(rng.integers(2**63)),
        )

    def draws(self, generators: Sequence[np.random.Generator], around: Around) -> list[Redrawn]:
        """A model for each stream of random numbers, by all threads."""
        self.around(around)
        return each(lambda rng: self.draw(rng, around), generators, title="fitting redrawn models", unit="model")

    def one_by_one(
        self, generators: Sequence[np.random.Generator], around: Around
    ) -> Iterator[tuple[Redrawn, np.random.Generator]]:
        """The same, each with the random numbers that are left of its stream; no more at a time than threads make."""
        at_a_time = n_threads()
        for start in range(0, len(generators), at_a_time):
            here = generators[start : start + at_a_time]
            yield from zip(self.draws(here, around), here, strict=True)


def refitter(release: ForestRelease) -> Refitter:
    """What fits the model of a release to numbers, with its structure as it is."""
    assert release.measured is not None
    axes = column_axes(release.schema)
    models: list[Model] = []
    levels, cells = {}, {}
    for index, name in enumerate(release.variables):
        models.append(release.columns[name] if name in release.columns else release.places[name])
        column = release.measured.columns[index]
        if name in release.columns:
            cells[index] = axes[name]
        if column is not None and column.kind == "codes":
            of_column = axes[name].levels
            assert of_column is not None
            levels[index] = of_column
    return Refitter(release.measured, tuple(models), release.model, levels, cells, release.card.n_rows is not None)


def _expected_sums(refit: Refitter, products: ReleasedProducts) -> tuple[Floats, ...]:
    """The sums of products under the tilted model, by rows of it; the same in every process."""
    tilt = products.tilt
    states = draw_states(refit.model, _N_DRAWN, np.random.default_rng(0))
    weights = tilt.weights(states)
    weights *= refit.measured.total / weights.sum()
    groups = tilt.grouped(states)
    n_groups = tilt.n_groups
    return tuple(_sums_of(groups[i], groups[j], n_groups[i], n_groups[j], weights) for i, j in products.pairs)


def _sums_of(
    first: NDArray[np.uint8], second: NDArray[np.uint8], n_first: int, n_second: int, weights: Floats
) -> Floats:
    cells = first.astype(np.int64) * n_second + second
    table = np.bincount(cells, weights=weights, minlength=n_first * n_second).reshape(n_first, n_second)
    return np.asarray(signs(n_first) @ table @ signs(n_second).T, dtype=np.float64)
