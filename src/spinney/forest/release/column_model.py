"""ColumnModel: one column of a forest as it was released: leaves with weights, and the states they are grouped into.

A model over many columns speaks of states, a few for each column; inside a state rows follow the weights of its leaves,
and inside a leaf they are even. Places are as `to_frame` takes them: reals in their own unit, all else in whole values
above the low bound, null as NaN.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.graph.draw import Offsets

Floats = NDArray[np.float64]

_NOWHERE = np.empty(0)
# By what part of itself a number is missed at most where it is stored in single precision.
_SINGLE_PRECISION = 2.0**-24


@dataclass(frozen=True, slots=True, eq=False)
class ColumnModel:
    """The leaves of a column in ascending order, null last: where they lie, what they weigh, which state has them."""

    low: Floats  # (n_leaves,)
    length: Floats  # (n_leaves,)
    is_null: NDArray[np.bool_]  # (n_leaves,)
    weights: Floats  # (n_leaves,), not negative
    states: NDArray[np.int32]  # (n_leaves,)
    n_states: int  # of the whole column; what is left of a cut one may be of a few

    def state_weights(self) -> Floats:
        """What the leaves of each state weigh together."""
        return _per_state(self, self.weights)

    def inside(self) -> Floats:
        """The share of each leaf among the leaves of its state; by length where they all weigh nothing."""
        totals = self.state_weights()[self.states]
        reach = np.maximum(self.length, self.is_null)
        lengths = _per_state(self, reach)[self.states]
        by_length = np.divide(reach, lengths, out=np.zeros_like(reach), where=lengths > 0)
        return np.where(totals > 0, self.weights / np.where(totals > 0, totals, 1), by_length)

    def restrict_to_range(self, low: float, high: float) -> tuple[ColumnModel, Floats]:
        """The column cut to low <= place < high, and how much of each state is left: a number in [0, 1]."""
        start = np.maximum(self.low, low)
        stop = np.minimum(self.low + self.length, high)
        share = np.where(self.length > 0, np.clip(stop - start, 0, None) / np.where(self.length > 0, self.length, 1), 0)
        share = np.where(self._is_point(), (low <= self.low) & (self.low < high), share)
        return self._keeping(np.where(self.is_null, 0.0, share), start, length_within(start, stop))

    def starting_at(self, first: int, stop: int, *, n_places: int) -> tuple[ColumnModel, Floats]:
        """A column of `n_places` whole places cut to first <= place < stop, where `first` is place 0 from then on.

        Exact where floats are not, beyond 2^53.
        """
        begin, end = self._whole_ends(n_places)
        start = np.maximum(begin, first)
        length = np.clip(np.minimum(end, stop) - start, 0, None)
        share = np.where(self.is_null, 0.0, length / np.maximum(end - begin, 1))
        return self._keeping(share, (start - first).astype(np.float64), length.astype(np.float64))

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

    def restrict_to_places(self, places: NDArray[np.int64]) -> tuple[ColumnModel, Floats]:
        """The column cut to some whole places, wherever in a leaf they lie."""
        pieces = [self.restrict_to_range(place, place + 1) for place in places]
        held = [piece for piece, left in pieces if left.any()]
        if not held:
            return pieces[0]
        parts: dict[str, Any] = {
            name: np.concatenate([getattr(piece, name)[piece.weights > 0] for piece in held])
            for name in ("low", "length", "is_null", "weights", "states")
        }
        return replace(self, **parts), np.sum([left for _, left in pieces], axis=0)

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
        left = _per_state(self, inside * share)
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
        return np.where(self.is_null[leaf], np.nan, places)


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


def _per_state(column: ColumnModel, numbers: Floats) -> Floats:
    """Numbers of leaves added up by state."""
    sums: Floats = np.bincount(column.states, weights=numbers, minlength=column.n_states).astype(np.float64)
    return sums


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
