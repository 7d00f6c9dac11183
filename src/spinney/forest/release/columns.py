"""ColumnModel: one column of a forest as it was released, and how noisy counts become its leaves. PUBLIC.

column model    leaves with weights and states: cut by conditions, split, drawn from
code weights    weights of codes in a hierarchy
even leaves     leaves of columns of which nothing is known but the schema
far out         leaves in which a few rows of noise would change the column
long leaves     long leaves divided by size, as tails of amounts lie
leaf bounds     where leaves begin and end, in the column's own values
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Bounded, Column, whole_range
from spinney.compiled import compiled
from spinney.forest.release.grain import GrainLaw, Steps, grain_law, written_weights
from spinney.graph.model import Offsets
from spinney.grid.axes import ColumnAxis, Parting, PlaceAxis
from spinney.grid.lattice import Axis, needs_tree
from spinney.grid.ruler import CodeLevels
from spinney.tree.release.geometry import extent

# --------------------------------------------------------------------------------------------------------- column model
# ColumnModel: one column of a forest as it was released: leaves with weights, and the states they are grouped into.
#
# A model over many columns speaks of states, a few for each column; inside a state rows follow the weights of its
# leaves, and inside a leaf they are even. Places are as `to_frame` takes them: reals in their own unit, all else in
# whole values above the low bound, null as NaN.


Floats = NDArray[np.float64]

_NOWHERE = np.empty(0)
# By what part of itself a number is missed at most where it is stored in single precision.
_SINGLE_PRECISION = 2.0**-24


class LeafModel:
    """What columns and places share: leaves that weigh something, each in a state."""

    __slots__ = ()

    weights: Floats  # (n_leaves,), not negative
    states: NDArray[np.int32]  # (n_leaves,)
    n_states: int  # of the whole column; what is left of a cut one may be of a few

    def reach(self) -> Floats:
        """How large each leaf is."""
        raise NotImplementedError

    def per_state(self, numbers: Floats) -> Floats:
        """Numbers of leaves added up by state."""
        return np.bincount(self.states, weights=numbers, minlength=self.n_states).astype(np.float64)

    def state_weights(self) -> Floats:
        """What the leaves of each state weigh together."""
        return self.per_state(self.weights)

    def inside(self) -> Floats:
        """The share of each leaf among the leaves of its state; by size where they all weigh nothing."""
        totals, reach = self.state_weights()[self.states], self.reach()
        sizes = self.per_state(reach)[self.states]
        by_size = np.divide(reach, sizes, out=np.zeros_like(reach), where=sizes > 0)
        return np.where(totals > 0, self.weights / np.where(totals > 0, totals, 1), by_size)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnModel(LeafModel):
    """The leaves of a column in ascending order, null last: where they lie, what they weigh, which state has them."""

    low: Floats  # (n_leaves,)
    length: Floats  # (n_leaves,)
    is_null: NDArray[np.bool_]  # (n_leaves,)
    weights: Floats  # (n_leaves,), not negative
    states: NDArray[np.int32]  # (n_leaves,)
    n_states: int  # of the whole column; what is left of a cut one may be of a few
    law: GrainLaw | None = None  # where rows lie inside leaves of several values; None: evenly

    def reach(self) -> Floats:
        """The length of each leaf; 1 of null."""
        return np.maximum(self.length, self.is_null)

    def restrict_to_range(self, low: float, high: float) -> tuple[ColumnModel, Floats]:
        """The column cut to low <= place < high, and how much of each state is left: a number in [0, 1]."""
        start = np.maximum(self.low, low)
        stop = np.minimum(self.low + self.length, high)
        share = np.where(self.length > 0, np.clip(stop - start, 0, None) / np.where(self.length > 0, self.length, 1), 0)
        share = self._by_law(share, start, stop)
        share = np.where(self._is_point(), (low <= self.low) & (self.low < high), share)
        return self._keeping(np.where(self.is_null, 0.0, share), start, length_within(start, stop))

    def restrict_to_ranges(self, begin: Floats, stop: Floats) -> tuple[ColumnModel, Floats]:
        """A column of whole places cut to many ranges, ascending and apart, and how much of each state is left."""
        of, run = overlaps(self.low, np.where(self.is_null, self.low, self.low + self.length), begin, stop)
        low = np.maximum(self.low[of], begin[run])
        length = np.minimum((self.low + self.length)[of], stop[run]) - low
        share, inside = self._by_law(length / self.length[of], low, low + length, of), self.inside()
        base = np.where(self.state_weights()[self.states] > 0, self.weights, inside * 1e-9)
        left = np.bincount(self.states[of], weights=inside[of] * share, minlength=self.n_states).astype(np.float64)
        weights, is_null = base[of] * share, np.zeros(len(of), dtype=np.bool_)
        cut = replace(self, low=low, length=length, is_null=is_null, weights=weights, states=self.states[of])
        return cut, left

    def starting_at(self, first: int, stop: int, *, n_places: int) -> tuple[ColumnModel, Floats]:
        """A column of `n_places` whole places cut to first <= place < stop, where `first` is place 0 from then on.

        Exact where floats are not, beyond 2^53.
        """
        begin, end = self._whole_ends(n_places)
        start = np.maximum(begin, first)
        length = np.clip(np.minimum(end, stop) - start, 0, None)
        share = np.where(self.is_null, 0.0, length / np.maximum(end - begin, 1))
        share = self._by_law(share, start.astype(np.float64), (start + length).astype(np.float64))
        cut, left = self._keeping(share, (start - first).astype(np.float64), length.astype(np.float64))
        return cut if self.law is None else replace(cut, law=self.law.moved(first)), left

    def _by_law(self, share: Floats, start: Floats, stop: Floats, leaf: NDArray[np.int64] | None = None) -> Floats:
        """Shares of leaves, all or some, that lie from `start` up to `stop`; by the law in those of several values."""
        if self.law is None:
            return share
        leaf = np.arange(len(self.low)) if leaf is None else leaf
        is_cut = self.law.holds_several(self.length[leaf]) & ~self.is_null[leaf] & (share > 0) & (share < 1)
        cut, share = np.flatnonzero(is_cut), share.copy()
        share[cut] = self.law.share(self.low[leaf[cut]], self.length[leaf[cut]], start[cut], stop[cut])
        return share

    def _whole_ends(self, n_places: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where leaves begin and end, in whole places. Ends beyond 2^53 were rounded: what nearly touches does."""
        begin, end = self.low.astype(np.int64), (self.low + self.length).astype(np.int64)
        values = np.flatnonzero(~self.is_null)
        following = np.append(begin[values][1:], n_places)
        is_near = np.abs(following - end[values]) <= 2 * np.spacing(following.astype(np.float64))
        end[values] = np.where(is_near & (following > 2**53), following, end[values])
        return begin, end

    def restrict_to_values(self, places: NDArray[np.int64], *, null: bool = False) -> tuple[ColumnModel, Floats]:
        """The column cut to some whole places of a list, and how much of each state is left.

        `null` tells whether nulls are kept too.
        """
        single = self.by_value()
        share = np.where(single.is_null, null, np.isin(single.low.astype(np.int64), places))
        return single._keeping(share.astype(np.float64), single.low, single.length)

    def by_value(self) -> ColumnModel:
        """A column of whole places with a leaf for each: the rows of a leaf are even over its places."""
        n_places = np.where(self.is_null, 1, np.maximum(self.length, 1)).astype(np.int64)
        if (n_places == 1).all():
            return self
        leaf = np.repeat(np.arange(len(n_places)), n_places)
        offset = np.arange(len(leaf)) - np.repeat(np.cumsum(n_places) - n_places, n_places)
        return replace(
            self,
            low=self.low[leaf] + offset,
            length=np.minimum(self.length[leaf], 1.0),
            is_null=self.is_null[leaf],
            weights=self.weights[leaf] / n_places[leaf],
            states=self.states[leaf],
        )

    def restrict_to_point(self, place: float) -> tuple[ColumnModel, Floats]:
        """The column cut to one real number: all weight at the leaf that holds it; before others, one of it alone.

        A leaf of one number that it may be in single precision holds it too: tables may be stored so, 1.4 as
        1.39999998.
        """
        is_point = self.points_at(place) & (self.weights > 0)
        if is_point.any():
            return self._keeping(is_point.astype(np.float64), np.where(is_point, place, self.low), self.length)
        stop = self.low + self.length
        is_value = ~self.is_null & (self.length > 0)
        end = stop[is_value].max(initial=-np.inf)  # which is held by the last leaf, though no other holds its end
        is_here = is_value & (self.low <= place) & ((place < stop) | ((place == end) & (stop == end)))
        share = is_here / np.where(is_here, self.length, 1.0)
        model, left = self._keeping(share, np.where(is_here, place, self.low), np.zeros_like(self.low))
        return model, left / max(float(left.max()), 1e-300)

    def points_at(self, place: float) -> NDArray[np.bool_]:
        """The leaves of one real number that is this one, or which single precision cannot tell from it."""
        is_near = np.abs(self.low - place) <= abs(place) * _SINGLE_PRECISION
        return np.asarray((self.length == 0) & ~self.is_null & is_near)

    def _is_point(self) -> NDArray[np.bool_]:
        """The leaves of one real number."""
        return np.asarray((self.length == 0) & (self.weights > 0) & ~self.is_null)

    def split_at(self, places: Floats) -> ColumnModel:
        """The same column with leaves cut at some places, ascending; the parts of a leaf weigh by their lengths."""
        is_value = ~self.is_null & (self.length > 0)
        inside = (places[None, :] > self.low[:, None]) & (places[None, :] < (self.low + self.length)[:, None])
        inside &= is_value[:, None]
        leaf = np.repeat(np.arange(len(self.low)), inside.sum(axis=1) + 1)
        is_first = np.append(True, np.diff(leaf) > 0)
        low = self.low[leaf]
        low[~is_first] = places[np.nonzero(inside)[1]]
        stop = np.where(np.append(is_first[1:], True), (self.low + self.length)[leaf], np.append(low[1:], 0.0))
        length = np.where(inside.sum(axis=1)[leaf] > 0, length_within(low, stop), self.length[leaf])
        share = np.divide(length, self.length[leaf], out=np.ones_like(length), where=self.length[leaf] > 0)
        share = self._by_law(share, low, low + length, leaf)
        return replace(
            self,
            low=low,
            length=length,
            is_null=self.is_null[leaf],
            weights=self.weights[leaf] * share,
            states=self.states[leaf],
        )

    def filling_gaps(self, *, shortest: float, fences: Floats = _NOWHERE) -> ColumnModel:
        """Leaves of one value reach over the space beside them that no leaf holds: the cell that they stand for.

        `shortest` is the length of such a leaf, 1 where places are whole and 0 where they are not; none reaches over a
        fence.
        """
        values = np.flatnonzero(~self.is_null)
        low, stop = self.low[values], (self.low + self.length)[values]
        is_one = self.length[values] <= shortest
        between = low[1:] if shortest else (stop[:-1] + low[1:]) / 2
        edge = np.where(is_one[:-1], np.where(is_one[1:], between, low[1:]), stop[:-1])
        is_gap = low[1:] > stop[:-1]
        ends = np.stack([edge, edge])
        if len(fences):
            at = np.searchsorted(fences, stop[:-1])
            between = np.append(fences, np.inf)[at]
            is_fenced = between <= low[1:]
            ends[0] = np.where(is_fenced, np.where(is_one[:-1], between, stop[:-1]), edge)
            ends[1] = np.where(is_fenced, np.where(is_one[1:], between, low[1:]), edge)
        low[1:], stop[:-1] = np.where(is_gap, ends[1], low[1:]), np.where(is_gap, ends[0], stop[:-1])
        filled_low, filled_length = self.low.copy(), self.length.copy()
        filled_low[values], filled_length[values] = low, stop - low
        return replace(self, low=filled_low, length=filled_length)

    def weighing(self, weights: Floats) -> ColumnModel:
        """The same leaves with other weights."""
        return replace(self, weights=weights)

    def restrict_to_null(self, *, wanted: bool = True) -> tuple[ColumnModel, Floats]:
        """The column cut to nulls, or to all else, and how much of each state is left."""
        return self._keeping(np.equal(self.is_null, wanted).astype(np.float64), self.low, self.length)

    def _keeping(self, share: Floats, low: Floats, length: Floats) -> tuple[ColumnModel, Floats]:
        inside = self.inside()
        left = self.per_state(inside * share)
        # What is left of a state that weighs nothing still has a shape, should it be asked for alone.
        weights = np.where(self.state_weights()[self.states] > 0, self.weights, inside * 1e-9) * share
        return replace(self, low=low, length=np.where(share > 0, length, 0.0), weights=weights), left

    def draw(self, states: NDArray[np.int32], rng: np.random.Generator, offsets: Offsets | None = None) -> Floats:
        """Places of rows that have these states: leaves in proportion to within a row, even inside a leaf."""
        leaf = pick_leaves(self.states, self.n_states, self.inside(), states, rng, offsets)
        places = self.low[leaf] + rng.random(len(states)) * self.length[leaf]
        # The high end of a leaf is the low end of the next; rounding must not reach it.
        stop = self.low[leaf] + self.length[leaf]
        places = np.where(self.length[leaf] > 0, np.minimum(places, np.nextafter(stop, -np.inf)), self.low[leaf])
        if self.law is not None:
            places = self._written(places, leaf, rng)
        return np.where(self.is_null[leaf], np.nan, places)

    def _written(self, places: Floats, leaf: NDArray[np.int64], rng: np.random.Generator) -> Floats:
        """Places in leaves of several values drawn anew, by the law of the column."""
        assert self.law is not None
        several = np.flatnonzero(self.law.holds_several(self.length) & ~self.is_null)
        number = np.full(len(self.low), -1)
        number[several] = np.arange(len(several))
        rows = np.flatnonzero(number[leaf] >= 0)
        low, length = self.low[several], self.length[several]
        drawn = self.law.places(low, length, number[leaf[rows]], rng)
        stop = np.nextafter(low + length, -np.inf)[number[leaf[rows]]]
        places[rows] = np.clip(drawn, low[number[leaf[rows]]], stop)
        return places


def overlaps(low: Floats, end: Floats, begin: Floats, stop: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which of some stretches overlap which ranges, both from one place up to another: all such pairs, in order.

    Ranges are ascending and apart; an empty stretch overlaps none.
    """
    first = np.searchsorted(stop, low, side="right")
    last = np.where(end > low, np.searchsorted(begin, end, side="left"), first)
    n_ranges = np.maximum(last - first, 0)
    of = np.repeat(np.arange(len(low)), n_ranges)
    return of, first[of] + np.arange(len(of)) - np.repeat(np.cumsum(n_ranges) - n_ranges, n_ranges)


def joined(pieces: Sequence[tuple[ColumnModel, Floats]]) -> tuple[ColumnModel, Floats]:
    """Parts of one column together, and how much of each state they leave."""
    held = [piece for piece, left in pieces if left.any()] or [pieces[0][0]]
    parts: dict[str, Any] = {
        name: np.concatenate([getattr(piece, name)[piece.weights > 0] for piece in held])
        for name in ("low", "length", "is_null", "weights", "states")
    }
    return replace(held[0], **parts), np.sum([left for _, left in pieces], axis=0)


def length_within(low: Floats, stop: Floats) -> Floats:
    """How far it is from one place to another, in floats that lead no further."""
    length = np.clip(stop - low, 0, None)
    return np.where(low + length > np.maximum(stop, low), np.nextafter(length, 0.0), length)


def pick_leaves(
    leaf_states: NDArray[np.int32],
    n_states: int,
    inside: Floats,
    states: NDArray[np.int32],
    rng: np.random.Generator,
    offsets: Offsets | None = None,
) -> NDArray[np.int64]:
    """A leaf for each row that has one of these states, in proportion to within a row.

    Args:
        leaf_states: the state of each leaf.
        n_states: how many states there are.
        inside: the share of each leaf among those of its state.
        states: those of the rows.
        rng: draws the order.
        offsets: where the systematic draw of each state starts, by default at random numbers.
    """
    order = np.argsort(leaf_states, kind="stable")
    cumulative = np.cumsum(inside[order])
    ends = np.searchsorted(leaf_states[order], np.arange(n_states + 1))
    leaves = np.empty(len(states), dtype=np.int64)
    mixed = rng.permutation(len(states)).astype(np.int64)
    _pick_leaves(states, mixed, (offsets or rng.random)(n_states), cumulative, ends, leaves)
    return np.asarray(order[np.minimum(leaves, len(order) - 1)])


@compiled
def _pick_leaves(
    states: NDArray[np.int32],
    mixed: NDArray[np.int64],
    starts: Floats,
    cumulative: Floats,
    ends: NDArray[np.int64],
    leaves: NDArray[np.int64],
) -> None:
    """Systematic draws: the k-th of m rows of a state, in mixed order, takes the leaf at (k + start) / m."""
    numbers = np.zeros(starts.size, dtype=np.int64)
    for row in range(states.size):
        numbers[states[row]] += 1
    seen = np.zeros(starts.size, dtype=np.int64)
    for i in range(mixed.size):
        row = mixed[i]
        state = states[row]
        first, last = ends[state], ends[state + 1] - 1
        base = cumulative[first - 1] if first > 0 else 0.0
        place = base + (seen[state] + starts[state]) / numbers[state] * (cumulative[last] - base)
        seen[state] += 1
        low, high = first, last
        while low < high:
            half = (low + high) // 2
            if cumulative[half] > place:
                high = half
            else:
                low = half + 1
        leaves[row] = low


# --------------------------------------------------------------------------------------------------------- code weights
# Weights of codes in a hierarchy, from noisy counts of all groups and codes. Sees released numbers only.
#
# What a group holds is shared out among its children: their counts are fitted to the group's total, those that stand
# out of the noise keep theirs, and the rest is even over the codes of all others. So a rare code costs its group no
# noise, and what it holds stays among its siblings.


# A group or a code stands out above this many standard deviations of its noise.
CODE_STANDS_OUT = 3.0


def code_weights(
    levels: CodeLevels, noisy_groups: Sequence[Floats], noisy_codes: Floats, noise_std: float, total: float
) -> Floats:
    """What every code weighs, and null behind them where it was counted; they add up to `total`."""
    has_null = len(noisy_codes) > levels.n_codes
    null_weight = 0.0
    if has_null:  # counted with the coarsest groups and with the codes
        noisy_null = (float(noisy_groups[0][-1]) + float(noisy_codes[-1])) / 2
        null_weight = min(max(noisy_null, 0.0), total)
    held = np.array([total - null_weight])
    for level, noisy in enumerate((*noisy_groups, noisy_codes)):
        parents, sizes = levels.parents(level), levels.sizes(level)
        held = _shared_out(held, noisy[: len(parents)], parents, sizes, noise_std)
    return np.append(held, null_weight) if has_null else held


def _shared_out(
    held: Floats, noisy: Floats, parents: NDArray[np.int64], sizes: NDArray[np.int64], std: float
) -> Floats:
    """What groups hold, shared out among their children by noisy counts, which are fitted to what there is."""
    n_parents = len(held)
    lacking = held - np.bincount(parents, weights=noisy, minlength=n_parents)
    fitted = noisy + (lacking / np.bincount(parents, minlength=n_parents))[parents]
    is_out = (fitted > CODE_STANDS_OUT * std) & (held[parents] > 0)
    out = np.bincount(parents, weights=fitted * is_out, minlength=n_parents)
    n_rest = np.bincount(parents, weights=sizes * ~is_out, minlength=n_parents)
    rest = np.where(n_rest > 0, np.clip(held - out, 0.0, None), 0.0)
    scale = np.divide(held - rest, out, out=np.zeros_like(out), where=out > 0)
    each = np.divide(rest, n_rest, out=np.zeros_like(rest), where=n_rest > 0)
    return np.where(is_out, fitted * scale[parents], each[parents] * sizes)


# ---------------------------------------------------------------------------------------------------------- even leaves
# Columns and places of which nothing is known but the schema: their leaves, and where leaves lie.
#
# A fit makes them so where it does not look, and a file that says that nothing was looked at has to hold the same.


Cells = NDArray[np.int64]


def even_leaves(axis: Axis, parting: Parting | None = None) -> tuple[Cells, Cells]:
    """The first cells of leaves and those after their last, null last: a leaf for each value where these are few."""
    if axis.kind == "category" or (axis.kind == "integer" and axis.step == 1 and not needs_tree(axis)):
        first = np.arange(axis.first, axis.last + 1)
        stop = first + 1
    else:
        first = np.array([axis.first]) if parting is None else parting.first
        stop = np.append(first[1:], axis.last + 1)
    if axis.nullable:
        first, stop = np.append(first, axis.null_cell), np.append(stop, axis.null_cell + 1)
    return first, stop


def leaf_places(
    axis: Axis, first: Cells, stop: Cells, *, parting: Parting | None, cells: ColumnAxis | None
) -> tuple[Floats, Floats]:
    """Where leaves begin and how long they are, as a column model says it; 0 for null."""
    low, length = extent(axis, first, np.maximum(stop, first))
    points = None if cells is None else cells.points(first, stop)
    if points is not None:
        is_point, places, reach = points
        low, length = np.where(is_point, places, low), np.where(is_point, reach, length)
    if parting is not None:
        low, length = parting.fenced(first, low, length)
    is_null = np.equal(first, axis.null_cell)
    return np.where(is_null, 0.0, low), np.where(is_null, 0.0, length)


def likely_sentinels(cells: ColumnAxis, low: Floats, length: Floats) -> NDArray[np.bool_]:
    """Which leaves, by where they lie, are of one number that often says "not known"; none where there is no tree."""
    if cells.ruler is None or not len(cells.ruler.sentinels):
        return np.zeros(len(low), dtype=np.bool_)
    first = cells.ruler.sentinels
    begins, lengths = leaf_places(cells.axis, first, first + 1, parting=None, cells=cells)
    return np.asarray(np.isin(low, begins) & (length <= lengths.max()))


def are_codes(cells: ColumnAxis, low: Floats) -> NDArray[np.bool_]:
    """Which leaves, by where they begin, stand for ratios to another column, and tell nothing of how far values lie."""
    if not cells.n_codes:
        return np.zeros(len(low), dtype=np.bool_)
    first = np.array([cells.axis.last + 1 - cells.n_codes])
    begins, _ = leaf_places(cells.axis, first, first + 1, parting=None, cells=cells)
    return np.asarray(low >= begins[0])


def numbered(keys: NDArray[Any]) -> NDArray[np.int64]:
    """Equal keys, or rows of keys, get equal numbers 0, 1, ..., in the order in which they first appear."""
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    order = np.empty(len(first), dtype=np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    return order[inverse.reshape(-1)]


def null_levels(axis: PlaceAxis) -> int:
    """The depth of a place's regions if only nulls are told from other rows."""
    steps = enumerate(axis.lattice.order)
    flags = [at + 1 for at, step in steps if axis.lattice.axes[step.axis].nullable and step.bit == 0]
    return max(flags, default=0)


# -------------------------------------------------------------------------------------------------------------- far out
# Leaves so far from the rows of a column that a few rows of noise in them would change what the column is like.
#
# Distances of distribution functions do not see how far away a wrong row lies. So a leaf is far out where as many
# rows as one standard deviation of its noise would raise the variance of the column by three tenths, and has to stand
# out of its noise by more than others to be believed.


# By what part of the variance rows of noise may raise it.
FAR_OUT = 0.3
# The variance of rows at one point, as a part of what a deviation of rows in the nearest leaf would make of it.
_AT_A_POINT = 1e-6
# Squares of larger numbers, times counts, may be beyond the range of floats.
_SQUARED = 1e140


def is_far_out(
    low: Floats, length: Floats, sure: Floats, noise_std: float, *, part: float = FAR_OUT
) -> NDArray[np.bool_]:
    """Which leaves are far out.

    Args:
        low: where leaves begin.
        length: how long they are.
        sure: how many rows they hold for certain, of which the variance is taken; together more than none.
        noise_std: of the noise on a count.
        part: by what part of it rows of noise may raise the variance.
    """
    return variance_added(low, length, sure, noise_std) > part


def variance_added(low: Floats, length: Floats, sure: Floats, noise_std: float) -> Floats:
    """By what part of itself the variance of a column grows if a leaf gets as many rows as one deviation of noise.

    Where the rows that are there for certain all lie at one point it is huge, and still the larger, the further away.
    """
    unit = unit_of(max(float(np.abs(low).max(initial=0.0)), float(length.max(initial=0.0))))
    low, length = low / unit, length / unit
    middle = low + length / 2
    spread = (middle - np.average(middle, weights=sure)) ** 2 + length**2 / 12  # of rows in a leaf about the mean
    variance = float(sure.sum()) * float(np.average(spread, weights=sure))
    if variance == 0:
        variance = _AT_A_POINT * noise_std * float(spread[spread > 0].min(initial=math.inf))
    return np.where(spread > 0, noise_std * spread / variance, 0.0)


def origin_of(column: Column) -> int:
    """The physical number that places count from."""
    return whole_range(column)[0] if column.is_whole else 0


def unit_of(largest: float) -> float:
    """A power of two to tell numbers of this size in, so that floats hold their squares; 1 where they do anyway."""
    return 1.0 if largest == 0 or 1 / _SQUARED <= largest <= _SQUARED else 2.0 ** math.frexp(largest)[1]


# ---------------------------------------------------------------------------------------------------------- long leaves
# Long leaves graded: inside a leaf that spans numbers of different size, small ones are commoner than large ones.
#
# Where 40 rows are all that is known of amounts between 100 and 10,000, evenly spread they would be 5,050 on average,
# and few columns are like that. So a leaf whose ends differ by more than a factor of two is divided at 1, 2 and 5
# times the powers of ten, and each part gets its share under a density of x^-3 where the leaf lies beyond the median
# of the column, as tails of amounts have it, and of 1 / x, by which all sizes are alike, where it lies before. A leaf
# beyond it that holds more rows than the range before it, whose ends have the same ratio, is no tail, and has 1 / x
# too. Leaves that reach 0, dates and times stay even. Released numbers alone are looked at.


# Leaves whose ends differ by no more than this factor stay even.
_EVEN_WITHIN = 2.0
# Leaves whose ends differ by no more than this factor hold no code that could be far from where rows are drawn.
_SHORT_WITHIN = 1.25
_ROUND = (1, 2, 5)


def graded_leaves(model: ColumnModel, column: Column) -> tuple[ColumnModel, NDArray[np.int64]]:
    """The column with long leaves divided, and which leaf each of the new ones is a part of.

    States, and what they weigh, are as before.
    """
    same = np.arange(len(model.weights))
    if not isinstance(column, Bounded) or not column._spans_decades:
        return model, same
    origin = origin_of(column)
    begin, end = model.low + origin, model.low + model.length + origin
    near, far = _sizes(begin, end)
    is_long = (model.weights > 0) & ~model.is_null & (near > 0) & (far > _EVEN_WITHIN * near)
    if not is_long.any():
        return model, same
    is_tail = (far > _middle(model, near)) & _falls(model, near, far, begin >= 0)
    leaves, edges, shares = [], [], []
    for place in range(len(model.weights)):
        ends = np.array([begin[place], end[place]])
        parts = _parts(ends, column) if is_long[place] else ends
        leaves.append(np.full(len(parts) - 1, place))
        edges.append(np.stack([parts[:-1], parts[1:]]))
        shares.append(_shares(np.abs(parts), is_tail=bool(is_tail[place])) if is_long[place] else np.ones(1))
    leaf, edge, share = np.concatenate(leaves), np.concatenate(edges, axis=1), np.concatenate(shares)
    kept = ~is_long[leaf]
    divided = replace(
        model,
        low=np.where(kept, model.low[leaf], edge[0] - origin),
        length=np.where(kept, model.length[leaf], length_within(edge[0] - origin, edge[1] - origin)),
        is_null=model.is_null[leaf],
        weights=model.weights[leaf] * share,
        states=model.states[leaf],
    )
    return divided, leaf


def stands_alone(model: ColumnModel, column: Column) -> NDArray[np.bool_]:
    """The leaves beyond the median that are no tail, and reach far: a code may be all that they hold, anywhere."""
    if not isinstance(column, Bounded) or not column._spans_decades:
        return np.zeros(len(model.weights), dtype=np.bool_)
    origin = origin_of(column)
    begin, end = model.low + origin, model.low + model.length + origin
    near, far = _sizes(begin, end)
    is_long = (model.weights > 0) & ~model.is_null & (near > 0) & (far > _SHORT_WITHIN * near)
    return is_long & (far > _middle(model, near)) & ~_falls(model, near, far, begin >= 0)


def _sizes(begin: Floats, end: Floats) -> tuple[Floats, Floats]:
    """The ends of leaves as distances from 0, the nearer one first."""
    return np.where(begin >= 0, begin, -end), np.where(begin >= 0, end, -begin)


def _parts(ends: Floats, column: Bounded) -> Floats:
    """The ends of a leaf, on one side of 0, and the round places between them."""
    step = float(column.spacing or 0)
    before = float(column.step // 2) if column.is_whole else step / 2  # where the cell of a value in steps begins
    low, high = ends
    sign = 1 if low >= 0 else -1
    near, far = sorted(np.abs(ends).tolist())
    inside = [
        place
        for value in _round_numbers(near, far)
        if (not step or abs(value / step - round(value / step)) < 1e-9)
        and low < (place := sign * value - before) < high
    ]
    return np.array([low, *sorted(inside), high])


def _middle(model: ColumnModel, near: Floats) -> float:
    """About how far from 0 the median of the column lies."""
    below = np.cumsum(np.where(model.is_null, 0.0, model.weights))
    return abs(float(near[np.searchsorted(below, below[-1] / 2)]))


def _falls(model: ColumnModel, near: Floats, far: Floats, is_above: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The leaves that hold no more rows than the range before them, towards 0, whose ends have the same ratio."""
    found = np.ones(len(near), dtype=np.bool_)
    for is_side in (is_above & ~model.is_null, ~is_above & ~model.is_null):
        leaves = np.flatnonzero(is_side)[np.argsort(near[is_side], kind="stable")]
        if len(leaves):
            ends = np.append(near[leaves], far[leaves[-1]])
            below = np.append(0.0, np.cumsum(model.weights[leaves]))
            ratio = np.divide(near, far, out=np.zeros_like(near), where=far > 0)[leaves]
            before = below[:-1] - np.interp(near[leaves] * ratio, ends, below)
            found[leaves] = model.weights[leaves] <= before
    return found


def _shares(sizes: Floats, *, is_tail: bool) -> Floats:
    """How the rows of a leaf are divided among its parts, whose ends have these sizes."""
    below = (sizes / unit_of(float(sizes.max()))) ** -2.0 if is_tail else np.log(sizes)
    parts = np.abs(np.diff(below))
    return np.asarray(parts / parts.sum())


def _round_numbers(near: float, far: float) -> Iterator[float]:
    """1, 2 and 5 times the powers of ten between two positive numbers."""
    for power in range(math.floor(math.log10(near)), math.ceil(math.log10(far)) + 1):
        yield from (number * 10.0**power for number in _ROUND if near < number * 10.0**power < far)


def with_law(model: ColumnModel, cells: ColumnAxis, steps: Steps) -> ColumnModel:
    """The leaves that rows are drawn from, with the law by which these lie inside them."""
    here = np.flatnonzero(~model.is_null)
    return replace(model, law=grain_law(cells, model.low[here], model.length[here], model.weights[here], steps))


def as_written(model: ColumnModel, cells: ColumnAxis, steps: Steps) -> ColumnModel:
    """The leaves with the weights that follow from counts and from the steps in which values come."""
    here, weights = np.flatnonzero(~model.is_null), model.weights.copy()
    of_values = replace(steps, leaf=steps.leaf[here])
    places = model.low[here], model.length[here]
    weights[here] = written_weights(cells, *places, weights[here], model.states[here], of_values)
    return model.weighing(weights)


# ---------------------------------------------------------------------------------------------------------- leaf bounds
# Where leaves begin and end, in a column's own values: numbers, dates, timestamps, the values of a list.


def leaf_ends(model: ColumnModel, column: Column) -> list[tuple[Any, Any]]:
    """For every leaf its lowest and its highest value, (None, None) for null. The high end of reals is not in it."""
    ends = column._leaf_ends(model.low, model.length)
    return [(None, None) if is_null else end for end, is_null in zip(ends, model.is_null.tolist(), strict=True)]
