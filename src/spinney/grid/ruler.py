"""Rulers: public hierarchies of cuts, at round places of a column or between groups of codes. PUBLIC.

    code levels    groups of a list of codes, coarse to fine
    rulers         cuts at round places, for columns whose values pile up there and span decades

Cuts depend on the schema alone. The whole hierarchy is public, and PrivTree on it is PrivTree
(tree/kdtree.proof.md, rulers).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.grid.grain import Grain
from spinney.machine import by_slices

# ---------------------------------------------------------------------------------------------------------- code levels
# Levels of a hierarchy of codes: groups that are ranges of a list, from coarse to fine, down to the single codes.
#
# All of it follows from the schema. Groups are counted level by level, so that what codes have in common is known
# from a few numbers and not from the sum of many. Levels that say nothing, of one group or of groups of one code
# each, are left out.


Cells = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class CodeLevels:
    """Where groups begin in the list of codes, the first at 0: one array for each level, coarse to fine."""

    n_codes: int
    starts: tuple[Cells, ...]

    def sums(self, counts: Cells, level: int) -> Cells:
        """Counts of codes added up by group."""
        return np.add.reduceat(counts, self.starts[level])

    def parents(self, level: int) -> Cells:
        """For every group of a level, or every code where it is the last, the group of the level above that has it."""
        places = self.starts[level] if level < len(self.starts) else np.arange(self.n_codes)
        if level == 0:
            return np.zeros(len(places), dtype=np.int64)
        return np.searchsorted(self.starts[level - 1], places, side="right").astype(np.int64) - 1

    def sizes(self, level: int) -> Cells:
        """How many codes every group has; 1 each, where the level is that of the codes."""
        if level == len(self.starts):
            return np.ones(self.n_codes, dtype=np.int64)
        return np.diff(np.append(self.starts[level], self.n_codes))

    def cut(self, low: int, high: int) -> int:
        """Where a range of two codes or more is cut in two.

        At the coarsest level of which a group begins inside; of several, where one begins nearest to the middle.
        """
        middle = low + (high - low) // 2
        for starts in self.starts:
            inside = starts[np.searchsorted(starts, low, side="right") : np.searchsorted(starts, high)]
            if len(inside):
                return int(inside[np.argmin(np.abs(inside - middle))])
        return middle


def code_levels(n_codes: int, starts: Sequence[Sequence[int]]) -> CodeLevels:
    """The levels whose groups begin at `starts` and at 0."""
    kept: list[Cells] = []
    for places in starts:
        level = np.array([0, *places], dtype=np.int64)
        if 1 < len(level) < n_codes and not (kept and len(kept[-1]) == len(level)):
            kept.append(level)
    return CodeLevels(n_codes, tuple(kept))


# --------------------------------------------------------------------------------------------------------------- rulers
# A public hierarchy of cuts at round places, for columns whose values pile up there and span decades.
#
# A tree that halves the stated interval finds an exact zero or a round amount only at its finest level, and a
# column of small numbers under a generous bound hardly at all. A ruler cuts a range of cells at the roundest
# place inside it:
#
#     0                      if the range holds numbers on both sides of it
#     a power of ten         if its ends, in units, the nearer one as 1 at least, differ by more than a factor
#                            of 20: the one nearest to their geometric mean; of two, the one nearer to 0
#     a calendar's place     a century, a decade, a year, a quarter, a month: the first of these that has one
#                            in the middle half of the range, and of several the one nearest to the middle
#     the roundest number    1, 2 or 5 times a power of ten, days or hours or minutes: the largest step that
#                            has a multiple in the middle half; of several, the one nearest to the middle, the
#                            upper of two
#
# Where values may have been stored in single precision, which misses a round number by up to a 2^24th of it, a
# cut lies that much below the number, unless the range is too short.
#
# A range [low, high) becomes [low, cut) and [cut, high), so that every range but the first begins at a round
# place: where values pile up at it, they lie in the first cell of a range, or in its first few.


# A range of numbers is cut by powers of ten where its ends differ by more than this factor.
_DECADES_ABOVE = 20
# Cuts lie in the middle half of a range, so that depth grows with the logarithm of the number of cells.
_SPARE_LEVELS = 8
# Single precision keeps so many bits: a number is missed by half of the last at most.
_SINGLE_BITS = 24
_HALF_SINGLE = 1 << (_SINGLE_BITS - 1)
_NONE = np.empty(0, dtype=np.int64)
# Numbers that often say "not known" are looked for in axes of no more cells; 99,999 is among them. In larger ones they
# lie so far out that noise there would change the column.
_MOST_WITH_SENTINELS = 1 << 17
_DIGITS_WITH_MORE = 3


@dataclass(frozen=True, slots=True, eq=False)
class Ruler:
    """Round places of an axis of `n_cells` cells, from the roundest to every single cell.

    Cell `zero + k` holds the k-th multiple of the column's unit; `zero` may lie outside the axis.
    """

    n_cells: int
    zero: int
    steps: Cells  # descending, the last is 1: multiples of these k are round
    decades: Cells  # ascending: k of powers of ten; empty where numbers do not span decades
    is_single: bool  # whether values may be of single precision
    landmarks: tuple[Cells, ...]  # of calendars: cells that begin a century, a decade, a year, ..., each ascending
    sentinels: Cells = field(default_factory=lambda: _NONE)  # ascending: of numbers that often say "not known"

    @property
    def max_levels(self) -> int:
        """Levels on which a tree decides; what is longer than a cell below them stays whole. Few ranges are."""
        return max(1, min(self.n_cells - 1, (self.n_cells - 1).bit_length() + _SPARE_LEVELS))

    def cuts(self, low: Cells, high: Cells) -> Cells:
        """Where ranges of two cells or more are cut: low < cut < high."""
        cut = np.empty(len(low), dtype=np.int64)
        ends = np.cumsum([0, *map(len, self.landmarks)])
        places = np.concatenate([*self.landmarks, _NONE])
        _cut(low, high, self.zero, self.steps, self.decades, self.is_single, places, ends, cut)
        return cut

    def slack(self, cell: int) -> int:
        """By how many cells the number of a cell may be missed."""
        return int(_slack(cell - self.zero, self.is_single))

    def pile_stops(self, first: Cells, stop: Cells) -> Cells:
        """Where piles at the beginnings of ranges end: after one cell, or as many as a number may be missed by."""
        ends: Cells = first + 1 + 2 * _slack(first - self.zero, self.is_single)
        return np.minimum(stop, ends)

    def roundest(self, first: Cells, stop: Cells) -> Cells:
        """The roundest cell of each range."""
        found = np.empty(len(first), dtype=np.int64)
        _roundest(first, stop, self.zero, self.steps, found)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class RootedRuler:
    """A ruler's hierarchy, from ranges on that are apart from the beginning."""

    ruler: Ruler
    roots: Cells  # first cells of these ranges, ascending, from cell 0 on
    grain: Grain | None = None  # in whose classes rows are counted too

    def nodes(self, most: int) -> Cells:
        """First cells of the ranges that as many levels of cuts make as leave no more than `most` of them."""
        first = self.roots
        for _ in range(self.ruler.max_levels):
            stop = np.append(first[1:], self.ruler.n_cells)
            is_cut = stop - first > 1
            if not is_cut.any() or len(first) + np.count_nonzero(is_cut) > most:
                break
            place = np.arange(len(first)) + np.cumsum(is_cut) - is_cut  # where ranges go; a cut comes after its own
            halves = np.empty(len(first) + np.count_nonzero(is_cut), dtype=np.int64)
            halves[place] = first
            halves[place[is_cut] + 1] = self._cuts(first[is_cut], stop[is_cut])
            first = halves
        return first

    def _cuts(self, low: Cells, high: Cells) -> Cells:
        """By threads, since there are many."""
        cuts = np.empty(len(low), dtype=np.int64)

        def work(part: slice) -> None:
            cuts[part] = self.ruler.cuts(low[part], high[part])

        by_slices(work, len(low))
        return cuts


def number_ruler(n_cells: int, zero: int, mantissa: int = 1, *, is_single: bool = False) -> Ruler:
    """The ruler of multiples of a unit `mantissa` times a power of ten: 1 for cents or thousands, 25 for quarters."""
    limit = max(abs(zero), abs(n_cells - zero), n_cells) + 1
    steps, decades, power = {1}, set(), 1
    while power <= limit * mantissa:
        steps |= {step // math.gcd(step, mantissa) for step in (power, 2 * power, 5 * power)}
        decades.add(-(-power // mantissa))
        power *= 10
    has_sentinels = not is_single and n_cells <= _MOST_WITH_SENTINELS
    sentinels = _sentinels(-zero, n_cells - zero) + zero if has_sentinels else _NONE
    tens = np.array(sorted(decades), dtype=np.int64)
    return Ruler(n_cells, zero, _descending(steps, limit), tens, is_single, (), sentinels)


def _sentinels(low: int, stop: int) -> Cells:
    """Numbers from `low` to before `stop` that often say "not known" or "refused".

    Those are 95 to 99, or 995 to 999, with as many digits as there are at the most, on both sides of 0. Those of one
    digit below 0 are, where there are none of two, and nines of more digits where the range ends with them.
    """
    found = set(range(-9, 0)) if low >= -9 and stop > 10 else set[int]()
    for sign, end in ((1, stop - 1), (-1, -low)):
        n_digits = 2
        while 10 ** (n_digits + 1) - 5 <= end:
            n_digits += 1
        if n_digits <= _DIGITS_WITH_MORE or 10**n_digits - 1 == end:
            n_last = 5 if n_digits <= _DIGITS_WITH_MORE else 1
            found |= {sign * (10**n_digits - number) for number in range(1, n_last + 1)}
    return np.array(sorted(number for number in found if low <= number < stop), dtype=np.int64)


def calendar_ruler(n_cells: int, zero: int, steps: Sequence[int], landmarks: Sequence[Cells] = ()) -> Ruler:
    """The ruler of dates and times: places of a calendar first, then whole multiples of `steps` cells from `zero`."""
    inside = tuple(np.unique(places[(places > 0) & (places < n_cells)]).astype(np.int64) for places in landmarks)
    return Ruler(n_cells, zero, _descending({1, *steps}, n_cells), _NONE, False, inside)


def _descending(steps: set[int], limit: int) -> Cells:
    return np.array(sorted((step for step in steps if 1 <= step <= limit), reverse=True), dtype=np.int64)


def _slack(number: Any, is_single: bool) -> Any:
    """By how many cells a number of units may be missed in single precision, which keeps 24 bits; of arrays too."""
    return (abs(number) + _HALF_SINGLE - 1) >> _SINGLE_BITS if is_single else 0 * number


_slack_of = compiled(_slack)


@compiled
def _cut(
    low: Cells,
    high: Cells,
    zero: int,
    steps: Cells,
    decades: Cells,
    is_single: bool,
    places: Cells,
    ends: Cells,
    cut: Cells,
) -> None:
    for i in range(low.size):
        begin, end = low[i] - zero, high[i] - zero
        found = _decade_cut(begin, end, decades, is_single)
        if begin < found < end:
            cut[i] = zero + found - _slack_of(found, is_single)
            continue
        reach = max((end - begin) // 4, 1)
        first, last = begin + reach, end - reach
        middle = begin + (end - begin) // 2
        is_found = False
        for rank in range(ends.size - 1):
            place = _nearest(places[ends[rank] : ends[rank + 1]], middle + zero) - zero
            if first <= place <= last:
                cut[i] = zero + place
                is_found = True
                break
        if is_found:
            continue
        for step in steps:
            place = (middle + step // 2) // step * step
            if place < first:
                place = -(-first // step) * step
            if place > last:
                place = last // step * step
            if first <= place <= last:
                slack = _slack_of(place, is_single)
                cut[i] = zero + place - (slack if slack < reach else 0)
                break


@compiled
def _decade_cut(begin: int, end: int, decades: Cells, is_single: bool) -> int:
    """0 in a range of both signs, or the power of ten nearest to the geometric mean; `begin` where there is none."""
    if decades.size == 0:
        return begin
    if begin < 0 < end:
        return 0
    near, far = (max(begin, 1), end) if begin >= 0 else (max(-end, 1), -begin)
    if (far - 1) // _DECADES_ABOVE < near:  # far <= 20 near, where that product may pass 2^63
        return begin
    best = begin
    for decade in decades:
        place = decade if begin >= 0 else -decade
        if not begin < place - _slack_of(place, is_single) or place >= end:
            continue
        # Of two powers of ten the larger is nearer if the product of the ends is above theirs.
        if best == begin or np.float64(near) * far > np.float64(abs(best)) * decade:
            best = place
    return best


@compiled
def _roundest(first: Cells, stop: Cells, zero: int, steps: Cells, found: Cells) -> None:
    for i in range(first.size):
        for step in steps:
            place = -(-(first[i] - zero) // step) * step + zero
            if place < stop[i]:
                found[i] = place
                break


@compiled
def _nearest(places: Cells, middle: int) -> int:
    """The place nearest to the middle; far below all cells where there are none."""
    if places.size == 0:
        return -(1 << 62)
    at = np.searchsorted(places, middle)
    if at == places.size or (at > 0 and middle - places[at - 1] < places[at] - middle):
        return int(places[at - 1])
    return int(places[at])
