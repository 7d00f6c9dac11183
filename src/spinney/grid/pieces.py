"""Pieces: an axis of a joint tree whose cells are fine where values of such a column are likely. PUBLIC.

A column that may span decades, or centuries, is cut by what the schema says about it and by nothing else. Its
fine cells (`axes.column_axis`) are shared out along a public measure, an eighth of it at 0:

    numbers     2/8 even over the bounds, 5/8 even over octaves of magnitude, 1/8 at 0, if 0 is in the bounds
    calendars   even over the bounds

The whole axis is cut in the middle of the measure, and its halves again, seven times; a cut moves to the
roundest place that has between 3/8 and 5/8 of the measure below it. What is left is a piece, and every piece
has as many cells, in which its fine cells lie evenly. Of numbers in tables of few columns the first half of the
cells of a piece is its point: the round number that it begins at, where values pile up. Half of a piece is a
node of the tree, so a node is still a prefix of bits, and what is linear in the cells of an even axis is linear
in the cells of this one.

All arithmetic is in whole numbers: the pieces of a column are the same on every machine.

    pieces      `Pieces`, as arrays of cells and as arrays of places
    measures    how much of a column lies below a fine cell
    cuts        halving the measure at round places
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney.grid.ruler import Ruler

Cells = NDArray[np.int64]

# Levels of cuts at round places.
_LEVELS = 7
# Bits of a calendar that come first of all.
_LEADING = 2
# Parts of the measure of numbers: even over the bounds, over octaves, at zero.
_EVEN, _OCTAVES, _AT_ZERO = 2, 5, 1
# Magnitudes below this part of the largest are taken together: 2^-24.
_SMALLEST_BITS = 24
# Binary digits of an octave, in which the measure counts.
_DIGITS = 48
# Numbers on one side of 0 whose ends differ by a smaller factor span no decades.
_DECADES_FROM = 20


@dataclass(frozen=True, slots=True)
class Pieces:
    """Where pieces begin, in fine cells and in cells; a piece with a point has no values but that of one fine cell.

    With `has_points`, a piece of the shortest length that has a point is the lower half of a node, and the next piece
    its upper half. In places, in which means are measured and rows are drawn, the upper half takes up the whole node
    and the point no more than its beginning: else half of the rows of a leaf that holds both would be at the point.
    """

    n_fine: int
    n_cells: int
    starts: tuple[int, ...]  # first fine cell of each piece, from 0 up
    slots: tuple[int, ...]  # its first cell, from 0 up
    points: tuple[int, ...]  # the fine cell of its value, or -1
    has_points: bool = False
    zero: int = 0  # fine cell zero + k holds the k-th multiple of the unit
    unit: Fraction | None = None  # of numbers; calendars have none
    offset: int = 0  # of columns that are whole: where in a fine cell its round value lies

    @property
    def point_bit(self) -> int:
        """Which bit of a cell, from the top, tells points from what lies behind them; -1 where none does."""
        return _LEVELS if self.has_points else -1

    @property
    def n_leading(self) -> int:
        """How many bits come before the bits of all other axes: rows lie in a few years of a calendar's many."""
        return _LEADING if self.unit is None else 0

    @property
    def piece_length(self) -> int:
        """How many cells a piece has, with its point."""
        return self.n_cells >> _LEVELS

    @property
    def n_possible(self) -> int:
        """How many cells some row can have: of a point the first alone."""
        return int(piece_table(self).gains.sum())


class PieceTable(NamedTuple):
    """Pieces as arrays, one entry for each."""

    starts: Cells
    widths: Cells  # in fine cells
    slots: Cells
    lengths: Cells  # in cells
    points: Cells
    is_point: NDArray[np.bool_]

    @property
    def gains(self) -> Cells:
        """How many cells the fine cells of a piece are laid over."""
        return np.where(self.is_point, 1, self.lengths)

    def among(self, cells: NDArray[Any]) -> Cells:
        """Which piece each cell belongs to."""
        return np.maximum(np.searchsorted(self.slots, cells, side="right") - 1, 0)


@lru_cache(maxsize=1024)
def piece_table(pieces: Pieces) -> PieceTable:
    """The pieces as arrays."""
    starts, slots, points = (
        np.array(numbers, dtype=np.int64) for numbers in (pieces.starts, pieces.slots, pieces.points)
    )
    widths, lengths = np.diff(starts, append=pieces.n_fine), np.diff(slots, append=pieces.n_cells)
    return PieceTable(starts, widths, slots, lengths, points, points >= 0)


class PlaceTable(NamedTuple):
    """Pieces as places have them: a point in front of a piece is part of it, and takes up none of it."""

    starts: Cells  # first fine cell of each piece, after its point
    widths: Cells
    slots: Cells  # first place
    lengths: Cells
    points: Cells  # the fine cell of the value at its first place, or -1
    is_whole: NDArray[np.bool_]  # whether that is its only value

    def among(self, places: NDArray[Any]) -> Cells:
        """Which piece each place belongs to."""
        return np.maximum(np.searchsorted(self.slots, places, side="right") - 1, 0)


@lru_cache(maxsize=1024)
def place_table(pieces: Pieces) -> PlaceTable:
    """The pieces as arrays, points put together with what lies behind them."""
    table = piece_table(pieces)
    is_front = table.is_point & pieces.has_points & (2 * table.lengths == pieces.piece_length)
    has_front = np.append(False, is_front[:-1])
    slots = np.where(has_front, np.roll(table.slots, 1), table.slots)[~is_front]
    points = np.where(has_front, np.roll(table.points, 1), table.points)[~is_front]
    lengths = np.diff(slots, append=pieces.n_cells)
    return PlaceTable(
        table.starts[~is_front], table.widths[~is_front], slots, lengths, points, table.is_point[~is_front]
    )


def in_points(pieces: Pieces, start: Cells, stop: Cells) -> NDArray[np.bool_]:
    """Which nodes along an axis, each a range of cells, lie inside the cells of a point."""
    table = piece_table(pieces)
    piece = table.among(start)
    return np.asarray(table.is_point[piece] & (stop <= (table.slots + table.lengths)[piece]))


def behind_points(pieces: Pieces, start: Cells, stop: Cells) -> NDArray[np.bool_]:
    """Which of them have none but cells of a point in which no row lies: rows are in its first."""
    table = piece_table(pieces)
    return in_points(pieces, start, stop) & (start > table.slots[table.among(start)])


def to_places(pieces: Pieces, start: Cells, size: Cells) -> tuple[Cells, Cells]:
    """Where nodes lie in places: first and number along the axis. A node inside a point begins where it does."""
    if not pieces.has_points:
        return start, size
    length = pieces.piece_length
    inside = start % length
    is_upper = (size < length) & (2 * inside >= length) & ~in_points(pieces, start, start + size)
    return np.where(is_upper, start + inside - length, start), np.where(is_upper, 2 * size, size)


def spans_decades(ruler: Ruler) -> bool:
    """Whether magnitudes between the bounds differ much: 0 is among them, or they span a factor of 20."""
    if 0 <= ruler.zero < ruler.n_cells:
        return True
    near, far = sorted((abs(ruler.zero), abs(ruler.n_cells - ruler.zero)))
    return far >= _DECADES_FROM * max(near, 1)


def number_pieces(ruler: Ruler, n_cells: int, *, unit: Fraction, offset: int, has_points: bool) -> Pieces:
    """The pieces of a column of numbers that span decades."""
    cuts = _Cuts(ruler, _of_numbers(ruler), n_cells, has_points=has_points)
    return Pieces(ruler.n_cells, n_cells, *cuts.columns(), has_points, ruler.zero, unit, offset)


def calendar_pieces(ruler: Ruler, n_cells: int) -> Pieces:
    """The pieces of a column of dates or datetimes; none has a point."""
    cuts = _Cuts(ruler, lambda cell: cell, n_cells, has_points=None)
    return Pieces(ruler.n_cells, n_cells, *cuts.columns())


# ------------------------------------------------------------------------------------------------------------- measures


def _of_numbers(ruler: Ruler) -> Callable[[int], int]:
    """The measure of fine cells below a cell, in units of its own."""
    n, zero = ruler.n_cells, ruler.zero
    low, high = abs(zero), abs(n - 1 - zero)  # magnitudes of the ends
    smallest = max(1, max(low, high) >> _SMALLEST_BITS)

    def octaves(magnitude: int) -> int:
        """Octaves from `smallest` up to a magnitude, and one for all that is smaller."""
        if magnitude <= smallest:
            return (magnitude << _DIGITS) // smallest
        whole = (magnitude // smallest).bit_length() - 1
        base = smallest << whole
        return ((whole + 1) << _DIGITS) + ((magnitude - base) << _DIGITS) // base

    if 0 <= zero < n:
        total = octaves(low) + octaves(high)

        def below(cell: int) -> int:
            place = cell - zero
            here = octaves(low) - octaves(-place) if place <= 0 else octaves(low) + octaves(place - 1)
            return _EVEN * cell * total + n * (_OCTAVES * here + _AT_ZERO * total * (place > 0))

    else:
        sign = 1 if zero < 0 else -1
        total = abs(octaves(abs(n - zero)) - octaves(low))

        def below(cell: int) -> int:
            here = sign * (octaves(abs(cell - zero)) - octaves(low))
            return _EVEN * cell * total + _OCTAVES * n * here

    return below


# ----------------------------------------------------------------------------------------------------------------- cuts


class _Cuts:
    """Cuts ranges of fine cells in halves of their measure, at round places."""

    def __init__(self, ruler: Ruler, below: Callable[[int], int], n_cells: int, *, has_points: bool | None) -> None:
        self._ruler = ruler
        self._below = below
        self._has_points = has_points  # None: not even of ranges of one fine cell
        self._made: list[tuple[int, int, int]] = []  # first fine cell, first cell, point
        self._halve(0, ruler.n_cells, 0, n_cells, 0, _LEVELS)

    def columns(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """The first fine cell, the first cell and the point of every piece."""
        starts, slots, points = zip(*self._made, strict=True)
        return starts, slots, points

    def _halve(self, first: int, stop: int, slot: int, length: int, place: int, levels: int) -> None:
        """Pieces of a range that was cut for the sake of the fine cell `place`, which is among its first."""
        if levels == 0 or stop - first == 1:
            self._add(first, stop, slot, length, place)
            return
        found = self._round_place(first, stop)
        cut = found - self._ruler.slack(found)
        cut = cut if cut > first else found
        self._halve(first, cut, slot, length // 2, place, levels - 1)
        self._halve(cut, stop, slot + length // 2, length // 2, found, levels - 1)

    def _add(self, first: int, stop: int, slot: int, length: int, place: int) -> None:
        if self._has_points is None:
            self._made.append((first, slot, -1))
            return
        end = place + self._ruler.slack(place) + 1
        if end >= stop:
            self._made.append((first, slot, min(place, stop - 1)))
        elif self._has_points:
            self._made += [(first, slot, place), (end, slot + length // 2, -1)]
        else:
            self._made.append((first, slot, -1))

    def _round_place(self, first: int, stop: int) -> int:
        """The roundest fine cell, first < cell < stop, that has near to half of the measure below it."""
        low, high = self._below(first), self._below(stop)
        middle = self._nearest(first, stop, 4 * (low + high))
        reach = high - low
        least = max(self._reaching(first, stop, 4 * (low + high) - reach), first + 1)
        most = self._reaching(first, stop, 4 * (low + high) + reach)
        if most > least and 8 * self._below(most) > 4 * (low + high) + reach:
            most -= 1
        return self._roundest(least, min(most, stop - 1), middle) if least <= min(most, stop - 1) else middle

    def _reaching(self, first: int, stop: int, eight: int) -> int:
        """The first cell whose measure is an eighth of a number, or more; `stop` where that is no smaller cell's."""
        while stop - first > 1:
            half = (first + stop) // 2
            first, stop = (half, stop) if 8 * self._below(half) < eight else (first, half)
        return stop

    def _nearest(self, first: int, stop: int, eight: int) -> int:
        """The cell inside whose measure is nearest to an eighth of a number."""
        upper = self._reaching(first, stop, eight)
        is_lower = 8 * self._below(upper) - eight > eight - 8 * self._below(upper - 1)
        return min(max(upper - 1 if is_lower else upper, first + 1), stop - 1)

    def _roundest(self, least: int, most: int, middle: int) -> int:
        """Of the cells least..most a calendar's place, or a multiple of the largest step; near to the middle."""
        for places in self._ruler.landmarks:
            inside = places[np.searchsorted(places, least) : np.searchsorted(places, most, side="right")]
            if inside.size:
                return int(inside[np.argmin(np.abs(inside - middle))])
        zero = self._ruler.zero
        for step in map(int, self._ruler.steps):
            lowest, highest = -(-(least - zero) // step) * step, (most - zero) // step * step
            if lowest <= highest:
                near = (middle - zero + step // 2) // step * step
                return zero + min(max(near, lowest), highest)
        return middle
