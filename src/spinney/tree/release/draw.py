"""Rows spread evenly over a density: systematic over leaves, low-discrepancy inside, shuffled. PUBLIC.

n independent rows would add a distance of about sqrt(1/n) to the private table; even ones add less. A seed
gives the same rows on any number of cores.

    shuffle      a random order of many items, in parts that fit into a cache
    even rows    leaves in proportion to within a row, and points of a Kronecker sequence inside each
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.machine import each
from spinney.release.parts import Part as SamplePart
from spinney.tree.release.density import Floats, LeafDensity

# -------------------------------------------------------------------------------------------------------------- shuffle
# A random order of many items, in parts that fit into a cache.
#
# Every item is dealt to one of the parts at random, as cards are dealt to players, and every part is shuffled by
# itself: all orders are equally likely (Rao 1961, Sandelius 1962). Shuffling all items at once makes the same
# promise, but reaches all over memory at every step and cannot be divided among threads.
#
# Dealing and shuffling go by streams of random numbers, one for each part. How many there are depends on the number
# of items alone, so a seed gives the same order on any number of cores.


# Items in a part: a column of numbers of this length, and the order of its rows, fit into a core's own cache.
PART_ITEMS = 1 << 16
# Parts grow beyond this many: dealing writes to all of them at once.
MOST_PARTS = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Items that take the places first, first + 1, ... in an order that `places` draws."""

    first: int
    items: NDArray[Any]  # whole numbers, ascending
    stream: np.random.Generator

    @property
    def span(self) -> slice:
        """Where the part lies among all places."""
        return slice(self.first, self.first + self.items.size)

    def places(self) -> NDArray[np.int64]:
        """A place for every item, counted from the first of the part. Draws anew at every call."""
        return _shuffled(self.stream.random(self.items.size))


def deal(
    n_items: int, rng: np.random.Generator, *, part_items: int | None = None, most_parts: int = MOST_PARTS
) -> list[Part]:
    """The items 0, 1, ..., n - 1 in parts, each item in a part at random; parts may differ in size, or be empty.

    There are about `part_items` in a part, `PART_ITEMS` unless told, or more where parts would be too many.
    """
    whole = np.int32 if n_items < 2**31 else np.int64
    n_parts = min(max(-(-n_items // (part_items or PART_ITEMS)), 1), most_parts)
    streams = rng.spawn(n_parts)
    if n_parts == 1:
        return [Part(0, np.arange(n_items, dtype=whole), streams[0])]
    # Stream k deals the k-th run of items; in each part, items of an earlier run come before those of a later one.
    starts = np.linspace(0, n_items, n_parts + 1).astype(np.int64)
    chosen = each(lambda stream, length: stream.integers(0, n_parts, length, dtype=np.uint16), streams, np.diff(starts))
    counts = np.stack(each(lambda parts: _counts(parts, n_parts), chosen), axis=1)  # (part, run)
    ends = np.cumsum(counts).reshape(counts.shape)
    next_places = np.ascontiguousarray((ends - counts).T)
    items = np.empty(n_items, dtype=whole)
    each(lambda run: _hand_out(int(starts[run]), chosen[run], next_places[run], items), range(n_parts))
    firsts = np.concatenate([[0], ends[:, -1]])
    return [Part(int(a), items[a:b], stream) for a, b, stream in zip(firsts, firsts[1:], streams, strict=False)]


@compiled
def _counts(parts: NDArray[np.uint16], n_parts: int) -> NDArray[np.int64]:
    counts = np.zeros(n_parts, dtype=np.int64)
    for i in range(parts.size):
        counts[parts[i]] += 1
    return counts


@compiled
def _hand_out(first: int, parts: NDArray[np.uint16], next_places: NDArray[np.int64], items: NDArray[Any]) -> None:
    """Put the items first, first + 1, ... at the next places of their parts."""
    for i in range(parts.size):
        items[next_places[parts[i]]] = first + i
        next_places[parts[i]] += 1


@compiled
def _shuffled(uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
    """The numbers below n in random order, from n uniform numbers: each takes the seat of an earlier one or its own."""
    order = np.empty(uniforms.size, dtype=np.int64)
    for i in range(uniforms.size):
        seat = np.int64(uniforms[i] * (i + 1))
        order[i] = order[seat]
        order[seat] = i
    return order


# ------------------------------------------------------------------------------------------------------------ even rows
# Row i of n takes the leaf at (i + s) / n of the total weight, so every leaf gets its share of rows to within
# one; inside, row i is at the i-th point of a Kronecker sequence, frac(s + i g^-a), g the root of g^(d+1) = g +
# 1, through the inverse of the leaf's distribution. Rows of one leaf follow each other, so they are even within
# it too. A seed gives the start s and the order of rows.
#
# Rows are computed part by part of a shuffle, in the order of leaves within a part, and then put at their
# places: neither the numbers of a leaf nor the places of a part are far away in memory.


# Rows whose logarithms are taken together: few enough for the fastest cache.
_BLOCK = 256
_LOG_2 = math.log(2)
# The bits of sqrt(1/2) as a whole number: between it and sqrt(2) a number is its own mantissa.
_ROOT_HALF = int(np.float64(math.sqrt(0.5)).view(np.int64))
# What is uniform is less than 1, also after rounding: where rows crowd at the low end of a leaf, 1 is at infinity.
_BELOW_1 = 1 - 2.0**-53


class EvenRows:
    """Draws rows from a density. What depends on it alone is computed once; after that only rows cost time."""

    def __init__(self, density: LeafDensity) -> None:
        boxes = density.boxes
        half = boxes.length / 2
        low = boxes.low + half * (1 + density.means * (1 - density.spread) - density.spread)
        growth = np.expm1(2 * density.slopes)
        scale = boxes.length * density.spread / (2 * density.slopes)
        self._laws = np.stack([growth, low, scale], axis=1)  # (n_leaves, 3, n_axes): all of a leaf side by side
        self._null_share = boxes.null_share
        self._has_nulls = bool(boxes.null_share.any())
        cumulative = np.cumsum(density.weights)
        self._cumulative = cumulative / cumulative[-1]  # the last leaf that weighs anything ends at 1, exactly
        steps = np.arange(2 * len(self._cumulative)) / (2 * len(self._cumulative))
        self._guide = np.searchsorted(self._cumulative, steps, side="right").astype(np.int32)

    def draw(self, n_rows: int, rng: np.random.Generator, *, part: SamplePart | None = None) -> Floats:
        """Rows as positions along each axis (n_axes, n_rows), in random order; NaN is null.

        Of a sample in parts, all parts together have the rows that it would have as one.
        """
        n_axes = self._laws.shape[2]
        starts = (rng if part is None else part.same_for_all()).random(n_axes + 1)
        strides = kronecker_strides(n_axes)
        hands = deal(n_rows, rng)
        rows = np.empty((n_axes, n_rows))

        def fill(hand: Part) -> None:
            _fill(
                hand.items if part is None else part.row_numbers(hand.items),
                hand.places(),
                n_rows if part is None else part.n_rows,
                starts,
                strides,
                self._cumulative,
                self._guide,
                self._laws,
                self._null_share,
                self._has_nulls,
                rows[:, hand.span],
            )

        if len(hands) == 1:
            fill(hands[0])
            return rows
        each(fill, hands, title="drawing rows")
        return rows


def kronecker_strides(n_axes: int) -> Floats:
    """g^-1, g^-2, ..., g^-d for the root g > 1 of g^(d+1) = g + 1: a sequence of steps that fills the cube evenly."""
    g = 2.0
    for _ in range(64):
        g = (1 + g) ** (1 / (n_axes + 1))
    return g ** -np.arange(1, n_axes + 1.0)


@compiled
def take_logs(values: Floats) -> None:
    """Natural logarithms in place, to 15 digits: of positive normal numbers, and of NaN, which stays NaN.

    log(m 2^k) = k log 2 + 2 artanh s, s = (m - 1) / (m + 1), 1/2 <= m^2 < 2, and nine terms of the series of artanh.
    Without branches, so it compiles to vectors; without a library, so its digits depend on none.
    """
    for i in range(values.size):
        bits = np.float64(values[i]).view(np.int64)
        k = (bits - _ROOT_HALF) >> 52
        m = np.int64(bits - (k << 52)).view(np.float64)
        s = (m - 1) / (m + 1)
        q = s * s
        series = (((q / 17 + 1 / 15) * q + 1 / 13) * q + 1 / 11) * q + 1 / 9
        series = (((series * q + 1 / 7) * q + 1 / 5) * q + 1 / 3) * q + 1
        values[i] = k * _LOG_2 + 2 * s * series + (values[i] - values[i])


@compiled
def _fill(
    items: NDArray[Any],
    places: NDArray[np.int64],
    n_rows: int,
    starts: Floats,
    strides: Floats,
    cumulative: Floats,
    guide: NDArray[np.int32],
    laws: Floats,
    null_share: Floats,
    has_nulls: bool,
    rows: Floats,
) -> None:
    """Put the rows that items number, ascending, at their places; a block at a time, for logarithms go together."""
    n_axes = rows.shape[0]
    last = np.searchsorted(cumulative, 1.0)  # leaves after it weigh nothing
    leaves = np.empty(_BLOCK, dtype=np.int64)
    values = np.empty(_BLOCK * n_axes)
    leaf = np.int64(0)
    for first in range(0, items.size, _BLOCK):
        n_items = min(_BLOCK, items.size - first)
        for i in range(n_items):
            item = items[first + i]
            place = (item + starts[0]) / n_rows
            guess = np.int64(place * guide.size)
            leaf = max(leaf, np.int64(guide[guess if guess < guide.size else guide.size - 1]))
            while leaf < last and cumulative[leaf] <= place:
                leaf += 1
            leaves[i] = leaf
            for axis in range(n_axes):
                u = starts[axis + 1] + item * strides[axis]
                u -= np.floor(u)
                if has_nulls:
                    share = null_share[leaf, axis]
                    u = np.nan if u < share else min((u - share) / (1 - share), _BELOW_1)
                # log1p would take longer; no slope is so near to 0 that more than a few digits are lost.
                values[i * n_axes + axis] = 1 + u * laws[leaf, 0, axis]
        take_logs(values[: n_items * n_axes])
        for i in range(n_items):
            leaf_of_row, to = leaves[i], places[first + i]
            for axis in range(n_axes):
                rows[axis, to] = laws[leaf_of_row, 1, axis] + laws[leaf_of_row, 2, axis] * values[i * n_axes + axis]
