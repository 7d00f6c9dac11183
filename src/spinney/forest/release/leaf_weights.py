"""From noisy counts of leaves and regions to weights that add up to the total. Sees released numbers only.

Small counts are taken for noise and the rest is fitted to the total. A fit makes its weights here, and so does every
model that is fitted anew to redrawn counts: what noise does to weights is then seen as it is, cuts included.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.forest.release.column_model import Floats
from spinney.forest.release.far_out import FAR_OUT, is_far_out, variance_added
from spinney.forest.release.measured import MeasuredPiles
from spinney.forest.release.place_model import PlaceModel
from spinney.tree.release.reconstruct import project_to_total

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
# The rows of a range of leaves are no further from its noisy count than so many standard deviations of its noise, and
# those of one that is all far out no further below it than the second number; an interval of 99 % reaches 2.58.
_REACH, _REACH_FAR_OUT = 2.25, 2.5
# Leaves that are far out get rows only where a range of them stands out by so many deviations: first one that begins or
# ends the column, which noise alone does in one of 200, then any other, of which there are more (one of 700). The
# second line is of leaves where rows of one deviation would raise the variance a thousand times: noise alone gives an
# end in one of 700, and a range inside in one of 30,000. Nothing is very far out from rows that all have one value.
_TAIL_BELIEVED, _INSIDE_BELIEVED = (_REACH, 2.6, 3.0), (_REACH, 3.0, 4.0)
_VERY_FAR_OUT = 1_000.0
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
    is_near_counts: bool = True,
) -> Floats:
    """Weights of a number's leaves, not negative, adding up to the total; even over the column where none stands out.

    Args:
        counts: noisy counts of leaves (n_leaves,).
        noise_std: the standard deviation of their noise.
        low: where leaves begin.
        length: how long they are.
        is_null: which of them is null.
        total: what weights add up to.
        is_whole: whether the column has whole values, each 1 long.
        is_near_counts: whether every range of leaves weighs about what was counted there, as of late.
    """
    if len(counts) == 1:
        return project_to_total(counts, total)
    least, ease, farness = _least_believed(counts, noise_std, low, length, is_null, is_whole=is_whole)
    believed = np.where(counts < least, 0.0, counts)
    is_kept = believed > 0
    weights = np.zeros_like(counts)
    if is_kept.any():
        weights[is_kept] = project_to_total(believed[is_kept], total)
    else:
        reach = np.where(is_null, float(is_whole), length)
        reach = reach if reach.sum() > 0 else np.ones_like(reach)
        weights = total * reach / reach.sum()
    if is_near_counts and noise_std > 0:
        centred = counts + (total - counts.sum()) / len(counts)
        _move_into_reach(weights, centred, ease, farness, noise_std, int(np.count_nonzero(~is_null)))
        weights *= total / weights.sum()
    return weights


def _least_believed(
    counts: Floats, noise_std: float, low: Floats, length: Floats, is_null: Flags, *, is_whole: bool
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
    farness = np.searchsorted([FAR_OUT, _VERY_FAR_OUT], added)
    if np.count_nonzero(sure) == 1 and length[np.argmax(sure)] <= is_whole:  # no spread to go by
        farness = np.minimum(farness, 1)
    least = np.where(farness > 0, max(above, _EMPTY_BELOW_FAR_OUT), _EMPTY_BELOW) * noise_std
    return least, (FAR_OUT / np.maximum(added, FAR_OUT)) ** 2, farness


@compiled
def _move_into_reach(
    weights: Floats, counts: Floats, ease: Floats, farness: NDArray[np.int64], noise_std: float, n_values: int
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
        farness: 0 for leaves that are not far out, 1 for those that are, 2 for very far ones.
        noise_std: the standard deviation of the noise on a count.
        n_values: of the leaves; null comes after them.
    """
    n_leaves = counts.size
    off, given = np.zeros(n_leaves + 1), np.zeros(n_leaves + 1)
    taken, n_no_further = np.zeros((3, n_leaves + 1)), np.zeros((3, n_leaves + 1))
    spare = _REACH * noise_std
    for leaf in range(n_leaves):
        for far in range(3):
            n_no_further[far, leaf + 1] = n_no_further[far, leaf] + (farness[leaf] <= far)
    for _ in range(_MOST_MOVES):
        for leaf in range(n_leaves):
            off[leaf + 1] = off[leaf] + weights[leaf] - counts[leaf]
            given[leaf + 1] = given[leaf] + max(weights[leaf] - max(counts[leaf] - spare, 0.0), 0.0)
            for far in range(3):
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
                if abs(distance) <= _REACH * deviation:
                    continue
                far = 0
                inside, outside = given[end] - given[begin], taken[0, n_leaves] - taken[0, end] + taken[0, begin]
                if distance < 0:
                    while n_no_further[far, end] == n_no_further[far, begin]:
                        far += 1
                    is_tail = begin == 0 or end == n_values
                    if -distance <= (_TAIL_BELIEVED[far] if is_tail else _INSIDE_BELIEVED[far]) * deviation:
                        continue
                    inside, outside = taken[far, end] - taken[far, begin], given[n_leaves] - given[end] + given[begin]
                left = (_REACH if far == 0 else _REACH_FAR_OUT) * deviation
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
        sizes = place.sizes()
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
