"""Leaf weights: from noisy counts of leaves and regions to weights that add up to the total. PUBLIC.

Small counts are taken for noise and the rest is fitted to the total. A fit makes its weights here, and so does every
model that is fitted anew to redrawn counts: what noise does to weights is then seen as it is, cuts included.

    numbers    leaves of a number: which are believed, and rows moved until ranges weigh about what was counted
    parts      leaves that rules leave empty, and piles parted from their leaves
    regions    those of places
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.forest.release.columns import (
    FAR_OUT,
    Floats,
    is_far_out,
    variance_added,
)
from spinney.forest.release.measured import (
    MeasuredPiles,
    WeightsRule,
)
from spinney.forest.release.places import PlaceModel
from spinney.tree.release.density import project_to_total

if TYPE_CHECKING:
    pass


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
# 3 in one of 700, and a range inside by 4 in one of 30,000. Older files left what was far out further below its count,
# and so does a column whose rows that are there for certain have one value: of noise far out it would tell too much.
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
    sure, above = _sure_rows(np.where(is_null, 0.0, counts), noise_std)
    has_spread = np.count_nonzero(sure) != 1 or bool(length[np.argmax(sure)] > is_whole)
    belief = _BELIEF if rule == "tails" and has_spread else _OLD_BELIEF
    least, ease, farness = _least_believed(sure, above, noise_std, low, length, is_null, belief.parting)
    if not has_spread:
        farness = np.minimum(farness, len(belief.parting) - 1)
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


def _sure_rows(counts: Floats, noise_std: float) -> tuple[Floats, float]:
    """The counts that stand out of the noise for certain, and by how many deviations at least they do."""
    for above in _SURE_ABOVE:
        sure = np.where(counts < above * noise_std, 0.0, counts)
        if sure.sum() >= _MOST_ROWS * counts.sum():
            break
    return sure, above


def _least_believed(
    sure: Floats,
    above: float,
    noise_std: float,
    low: Floats,
    length: Floats,
    is_null: Flags,
    parting: tuple[float, ...],
) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """For each leaf of a number: the noisy count below which it is empty, how easily it takes rows, how far it is."""
    if not sure.any():
        n_leaves = len(sure)
        return np.full(n_leaves, _EMPTY_BELOW * noise_std), np.ones(n_leaves), np.zeros(n_leaves, np.int64)
    added = np.where(is_null, 0.0, variance_added(low, length, sure, noise_std))
    farness = np.searchsorted(parting, added)
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
