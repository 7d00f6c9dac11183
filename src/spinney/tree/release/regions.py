"""Regions of a tree: the leaves that conditions hold, miss or cut, and linear bounds inside of these. PUBLIC.

Everything here follows from the shape of the tree and from the question, and from no noisy count: what a certified
interval is made of may not be chosen by looking at the noise that it bounds. Proof: release/answers/ranks.proof.md.

    regions                 the rows that conditions allow, in cells and in places
    leaves                  which leaves a region holds, misses or cuts
    bounds                  linear functions below and above "the row is in the region"
    values inside leaves    lines between which the values of a column lie inside a leaf
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Bounded, Column, exact, whole_range
from spinney.errors import ParameterError
from spinney.grid.codes import deinterleave
from spinney.grid.lattice import Axis, Lattice
from spinney.grid.pieces import piece_table, place_table, to_places
from spinney.release.answers.question import allowed
from spinney.schema.rules.base import Number, ValueSet, after, before, universe
from spinney.schema.schema import Schema
from spinney.tree.bins import NoisyMoments, leaf_cells

# -------------------------------------------------------------------------------------------------------------- regions
# Regions: the rows that conditions allow, in the cells of a tree and in places along the axes.
#
# Which cell a value lies in is a monotone function of the value (`lattice`), and so is its place, so a range of
# values is a range of cells but for the cells of its two ends, which may hold rows on either side. A range therefore
# becomes two: the cells whose rows are all in it, and those that may hold a row of it. Whole numbers decide this, no
# float rounding.


Integers = NDArray[np.int64]

Region = dict[int, ValueSet]  # of each axis with a condition, the values that it allows


def region_of(conditions: Mapping[str, Any], schema: Schema, lattice: Lattice) -> Region:
    """What conditions by column say about the axes; a ParameterError where a column is not one of the tree's.

    A condition that all values of a column meet says nothing, and is left out.
    """
    places = {axis.name: place for place, axis in enumerate(lattice.axes)}
    region = {
        axis_of(name, schema, places, "where"): allowed(name, schema[name], wanted)
        for name, wanted in conditions.items()
    }
    return {axis: values for axis, values in region.items() if not values.has_all(schema[lattice.axes[axis].name])}


def axis_of(name: str, schema: Schema, places: Mapping[str, int], argument: str) -> int:
    """The axis of a column; a ParameterError where rows have it by a rule, and nothing was counted of it."""
    if name not in places:
        raise ParameterError(
            f"{argument}: column {name!r} is of type {schema[name].type_name} and was not counted: it is computed or "
            "made afresh when rows are drawn; ask about the columns that it follows from"
        )
    return places[name]


def joined(one: Region, other: Region) -> Region:
    """The rows in both regions."""
    return one | other | {axis: one[axis] & other[axis] for axis in one.keys() & other.keys()}


@dataclass(frozen=True, slots=True)
class Spans:
    """Ranges of values as ranges of cells and of places, both ends included: those surely inside, those that may be."""

    cells_in: Integers  # (n_ranges, 2)
    cells_may: Integers
    places_in: Integers
    places_may: Integers
    has_null: bool


def spans(axis: Axis, column: Column, values: ValueSet) -> Spans:
    """Where ranges of values lie along an axis."""
    found = [_span(axis, column, *ends) for ends in values.ranges]
    a, b, c, d = (np.array([row[i] for row in found], dtype=np.int64).reshape(-1, 2) for i in range(4))
    return Spans(a, b, c, d, values.has_null)


def raw_ends(column: Column, low: Number, high: Number) -> tuple[Number, Number]:
    """A range of values in steps as all that rounds to them, of columns that are whole underneath."""
    if not column.is_whole:
        return low, high
    half = column.step // 2 if isinstance(column, Bounded) else 0
    return low - half, high + column.step - 1 - half


def _span(axis: Axis, column: Column, low: Number, high: Number) -> list[tuple[int, int]]:
    least, most = universe(column)
    below, above = neighbours(column, low, high)
    low, high = raw_ends(column, low, high)
    first, last = cell_of(axis, low), cell_of(axis, high)
    found: list[tuple[int, int]] = []
    for place in (lambda cell: cell, lambda cell: place_of(axis, cell)):
        a, b = place(first), place(last)
        is_open_below = below < least or place(cell_of(axis, below)) < a
        is_open_above = above > most or place(cell_of(axis, above)) > b
        found += [(a if is_open_below else a + 1, b if is_open_above else b - 1), (a, b)]
    return found


def at_or_below(column: Column, number: float) -> Number:
    """The largest value of a column, in its steps, that is not above a number; not below its first."""
    least = universe(column)[0]
    if column.is_whole:
        found: Number = math.floor(number)
        found = int(column._aligned(found, up=False)) if isinstance(column, Bounded) else found
    elif isinstance(column, Bounded) and column.spacing is not None:
        found = float(column._aligned(exact(float(number)), up=False))
    else:
        found = float(number)
    return max(found, least)


def neighbours(column: Column, low: Number, high: Number) -> tuple[Number, Number]:
    """The values next to a range, outside."""
    if column.is_whole:
        (least, most), step = whole_range(column), column.step
        down, up = int(low) - step, int(high) + step
        return max(down, least - 1), min(up, most + 1)
    if column.spacing is not None:
        return float(exact(float(low)) - column.spacing), float(exact(float(high)) + column.spacing)
    return before(float(low)), after(float(high))


def cell_of(axis: Axis, number: Number) -> int:
    """The cell of a physical number, by the same arithmetic as rows are counted with."""
    if axis.kind == "real":
        first, last = (axis.first, axis.last) if axis.pieces is None else (0, axis.n_fine - 1)
        fine = math.floor(min(max((float(number) - axis.origin) * axis.scale, float(first)), float(last)))
    else:
        fine = (min(max(int(number), int(axis.low)), int(axis.high)) - int(axis.low)) // axis.step
    if axis.pieces is None:
        return fine
    table = piece_table(axis.pieces)
    piece = int(np.searchsorted(table.starts, fine, side="right")) - 1
    start, width, gain = int(table.starts[piece]), int(table.widths[piece]), int(table.gains[piece])
    return int(table.slots[piece]) + (2 * (fine - start) + 1) * gain // (2 * width)


def place_of(axis: Axis, cell: int) -> int:
    """The place of a cell, in which offsets are measured."""
    if axis.pieces is None:
        return cell
    return int(to_places(axis.pieces, np.array([cell]), np.array([1]))[0][0])


# --------------------------------------------------------------------------------------------------------------- leaves
# Leaves: what the shape of a tree says about its leaves, and which of them a region holds, misses or cuts.
#
# Everything here follows from the shape and from the question, and from no noisy count: what a certified interval is
# made of may not be chosen by looking at the noise that it bounds.


Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Leaves:
    """Per leaf and axis: its first and last cell that a value can have, whether null is in it, and its places."""

    first: Integers  # (n_leaves, n_axes)
    last: Integers
    has_values: Flags
    has_null: Flags
    place: Integers  # the first place
    size: Integers  # how many
    is_measured: Flags
    quantum: int

    def __len__(self) -> int:
        return len(self.first)

    def some(self, chosen: Integers) -> Leaves:
        """These leaves only, in this order."""
        *arrays, _ = self.__slots__
        return replace(self, **{name: getattr(self, name)[chosen] for name in arrays})

    def offset(self, leaves: Integers, axis: int, places: Integers) -> Floats:
        """The offset from the leaf's centre, in half-edges, that a row at a place was counted with."""
        scale = self.quantum / self.size[leaves, axis]
        steps = np.rint(scale * (2 * (places - self.place[leaves, axis]) + 1)) - self.quantum
        return np.asarray(np.clip(steps, -self.quantum, self.quantum) / self.quantum)


def leaves_of(moments: NoisyMoments) -> Leaves:
    """The leaves of a release."""
    first, size = deinterleave(moments.codes, moments.depths, moments.lattice)
    place, n_places, is_measured = leaf_cells(moments.codes, moments.depths, moments.lattice)
    last = first + size - 1
    has_values, has_null = np.ones(first.shape, dtype=np.bool_), np.zeros(first.shape, dtype=np.bool_)
    for index, axis in enumerate(moments.lattice.axes):
        has_null[:, index] = (first[:, index] <= axis.null_cell) & (last[:, index] >= axis.null_cell)
        first[:, index] = np.maximum(first[:, index], axis.first)
        last[:, index] = np.minimum(last[:, index], axis.last)
        has_values[:, index] = first[:, index] <= last[:, index]
        if axis.pieces is not None:  # of the cells of a point only the first holds rows
            table = piece_table(axis.pieces)
            piece = table.among(np.maximum(last[:, index], 0))
            at_point = has_values[:, index] & table.is_point[piece]
            last[at_point, index] = np.maximum(table.slots[piece], first[:, index])[at_point]
    return Leaves(first, last, has_values, has_null, place, n_places, is_measured, moments.quantum)


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """How a region and the leaves lie: which leaves are inside and which are cut; all others are outside."""

    inside: Integers  # leaves
    cut: Integers
    along: dict[int, AxisParts]  # of each axis with a condition, of the cut leaves


@dataclass(frozen=True, slots=True, eq=False)
class AxisParts:
    """Along one axis, of leaves: whether all of a leaf meets the condition, and where along it rows do."""

    is_whole: Flags  # (n_leaves,)
    low_in: Integers  # places; low_in > high_in where none is surely inside
    high_in: Integers
    low_may: Integers
    high_may: Integers


def parts_of(leaves: Leaves, region: Region, schema: Schema, moments: NoisyMoments) -> Parts:
    """Which leaves a region holds and which it cuts."""
    is_possible = np.ones(len(leaves), dtype=np.bool_)
    is_inside = np.ones(len(leaves), dtype=np.bool_)
    found: dict[int, AxisParts] = {}
    for index, values in region.items():
        axis = moments.lattice.axes[index]
        span = spans(axis, schema[axis.name], values)
        overlaps, parts = _along(leaves, index, span)
        found[index] = parts
        is_possible &= overlaps
        is_inside &= parts.is_whole
    cut = np.flatnonzero(is_possible & ~is_inside)
    along = {
        index: AxisParts(*(getattr(parts, name)[cut] for name in AxisParts.__slots__)) for index, parts in found.items()
    }
    return Parts(np.flatnonzero(is_possible & is_inside), cut, along)


def _along(leaves: Leaves, index: int, span: Spans) -> tuple[Flags, AxisParts]:
    """Whether leaves may hold rows that meet a condition along an axis, and where."""
    first, last, has_values = (getattr(leaves, name)[:, index] for name in ("first", "last", "has_values"))
    has_null = leaves.has_null[:, index]
    n = len(leaves)
    n_touching = np.zeros(n, dtype=np.int64)
    covers = np.zeros(n, dtype=np.bool_)
    low_may, high_may = np.full(n, np.iinfo(np.int64).max), np.full(n, np.iinfo(np.int64).min)
    low_in, high_in = np.full(n, 0), np.full(n, -1)
    for k in range(len(span.cells_may)):
        touches = has_values & (span.cells_may[k, 0] <= last) & (span.cells_may[k, 1] >= first)
        covers |= has_values & (span.cells_in[k, 0] <= first) & (span.cells_in[k, 1] >= last)
        n_touching += touches
        low_may = np.where(touches, np.minimum(low_may, span.places_may[k, 0]), low_may)
        high_may = np.where(touches, np.maximum(high_may, span.places_may[k, 1]), high_may)
        low_in = np.where(touches, span.places_in[k, 0], low_in)
        high_in = np.where(touches, span.places_in[k, 1], high_in)
    several = n_touching > 1
    low_in[several], high_in[several] = 0, -1
    is_whole = np.where(has_values, covers, True) & (~has_null | span.has_null)
    overlaps = (n_touching > 0) | (has_null & span.has_null)
    return overlaps, AxisParts(is_whole, low_in, high_in, low_may, high_may)


# --------------------------------------------------------------------------------------------------------------- bounds
# Linear bounds: functions of what a leaf measured that lie below and above "the row is in the region".
#
# A row adds (1, u) to its leaf, u its offsets along the measured axes. For every leaf a lower and an upper function,
# linear in (1, u), are chosen by geometry alone, so that for every row
#
#     lower(u)  <=  1[row in the region]  <=  upper(u)
#
# Summed over rows they are linear in the true counts and sums, which were released with noise of a known law. Inside
# a leaf that the region cuts along one axis at the offset t, where rows below are in it, the upper function is 1, or
# the line that is 1 at t and 0 at the last offset of the leaf, whichever is lower at the centre; the lower one is 0,
# or the line that is 1 at the first offset and 0 at the first one past t. Across several cuts an upper function of
# one of them will do, and what the lower ones lack adds up.


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """A linear function of the counts and sums of some leaves: a coefficient of each."""

    leaves: Integers  # (n,), ascending or not, each once
    factors: Floats  # (n, 1 + n_axes): of the count, then of the sums

    @property
    def of_count(self) -> Floats:
        return self.factors[:, 0]

    @property
    def of_sums(self) -> Floats:
        return self.factors[:, 1:]

    def some(self, chosen: slice) -> Linear:
        """The part of some of its leaves."""
        return Linear(self.leaves[chosen], self.factors[chosen])


@dataclass(frozen=True, slots=True, eq=False)
class Bracket:
    """A lower and an upper function of the same leaves: first those inside, then those that are cut."""

    lower: Linear
    upper: Linear
    n_inside: int

    @property
    def n_cut(self) -> int:
        return len(self.upper.leaves) - self.n_inside


def bracket(leaves: Leaves, parts: Parts) -> Bracket:
    """Bounds on how many rows lie in a region."""
    n_axes = leaves.first.shape[1]
    both = np.concatenate([parts.inside, parts.cut])
    n_inside, n_cut = len(parts.inside), len(parts.cut)
    upper = np.zeros((n_cut, 1 + n_axes))
    upper[:, 0] = 1.0
    lack = np.zeros((n_cut, 1 + n_axes))
    for axis, part in parts.along.items():
        _cut_along(leaves, parts.cut, axis, part, upper, lack)
    lower = -lack
    lower[:, 0] += 1.0
    lower[lower[:, 0] <= 0] = 0.0
    whole = np.zeros((n_inside, 1 + n_axes))
    whole[:, 0] = 1.0
    below, above = np.concatenate([whole, lower]), np.concatenate([whole, upper])
    return Bracket(Linear(both, below), Linear(both, above), n_inside)


def _cut_along(leaves: Leaves, cut: Integers, axis: int, part: AxisParts, upper: Floats, lack: Floats) -> None:
    """Take the cuts along one axis into account: a better upper function, and what the lower one lacks."""
    is_measured = leaves.is_measured[cut, axis]
    lack[~part.is_whole & ~is_measured, 0] += 1.0
    chosen = np.flatnonzero(~part.is_whole & is_measured)
    here = cut[chosen]
    begin = leaves.place[here, axis]
    end = begin + leaves.size[here, axis] - 1
    first, last = leaves.offset(here, axis, begin), leaves.offset(here, axis, end)
    low_in, high_in = part.low_in[chosen], part.high_in[chosen]
    low_may, high_may = part.low_may[chosen], part.high_may[chosen]
    none = (low_in > high_in) | (high_in < begin) | (low_in > end)
    lack[chosen[none], 0] += 1.0
    # Rows past the high end: none may be counted above it, and all past the last sure place may be missing.
    for is_cut, at, missing, far, sign in (
        (high_may < end, high_may, high_in + 1, (first, last), 1.0),
        (low_may > begin, low_may, low_in - 1, (last, first), -1.0),
    ):
        near_end, far_end = far
        place = leaves.offset(here, axis, np.clip(at, begin, end))
        better = is_cut & (sign * place < 0)
        slope = 1 / np.where(better, far_end - place, 1.0)
        value = far_end * slope  # at the centre
        better &= value < upper[chosen, 0]
        rows = chosen[better]
        upper[rows] = 0.0
        upper[rows, 0], upper[rows, 1 + axis] = value[better], -slope[better]
        lost = ~none & ((missing <= end) if sign > 0 else (missing >= begin))
        past = leaves.offset(here, axis, np.clip(missing, begin, end))
        helps = lost & (sign * past > 0)
        lack[chosen[lost & ~helps], 0] += 1.0
        steep = 1 / np.where(helps, past - near_end, 1.0)
        lack[chosen[helps], 0] -= (near_end * steep)[helps]
        lack[chosen[helps], 1 + axis] += steep[helps]


# ------------------------------------------------------------------------------------------------- values inside leaves
# Values of a column inside leaves: lines in the offset of a row between which its value lies.
#
# Along an even axis a value is linear in the offset, up to the length of a cell. Along an axis with pieces it
# is linear inside each piece; the deviation of a leaf of several pieces from one line is computed at the ends
# of its pieces.


class Stretches(NamedTuple):
    """Along an axis, stretches of places in which fine cells lie evenly: where each begins, in both."""

    slots: Floats
    lengths: Floats
    starts: Floats
    widths: Floats
    begins: Floats  # the fine cell of the first value, which may be a point before `starts`


class LeafValues(NamedTuple):
    """Of every leaf: x lies in mid + half u + [below, above] and in [least, largest]; nothing of leaves of nulls."""

    mid: Floats
    half: Floats
    below: Floats
    above: Floats
    least: Floats
    largest: Floats


def leaf_values(leaves: Leaves, index: int, axis: Axis) -> LeafValues:
    """What the shape of the tree says about a column's values, leaf by leaf, in physical numbers."""
    n = len(leaves)
    stretches = _stretches(axis)
    begin, size = leaves.place[:, index], leaves.size[:, index]
    end = begin + size - 1
    least, largest = np.full(n, np.inf), np.full(n, -np.inf)
    ends: list[tuple[Integers, Integers, Floats, Floats]] = []  # leaf, place, and bounds on the values there
    first = np.maximum(np.searchsorted(stretches.slots, begin, side="right") - 1, 0)
    last = np.maximum(np.searchsorted(stretches.slots, end, side="right") - 1, 0)
    every = np.arange(n)
    for k in range(len(stretches.slots)):
        here = every[(first <= k) & (last >= k)]
        if not len(here):
            continue
        slot, length = stretches.slots[k], stretches.lengths[k]
        p0, p1 = np.maximum(begin[here], slot), np.minimum(end[here], slot + length - 1)
        for place in (p0, p1):
            low, high = _values_at(axis, stretches, k, place)
            least[here], largest[here] = np.minimum(least[here], low), np.maximum(largest[here], high)
            ends.append((here, place.astype(np.int64), low, high))
    is_measured = leaves.is_measured[:, index]
    # An offset of 1 is the edge of a leaf, which of whole numbers lies half a value past the last one.
    half = np.where(is_measured, (largest - least + (axis.kind != "real")) / 2, 0.0)
    mid = (least + largest) / 2
    below, above = np.zeros(n), np.zeros(n)
    slack = np.where(leaves.quantum % size == 0, 0.0, half / (2 * leaves.quantum))  # where offsets are rounded
    for here, place, low, high in ends:
        line = mid[here] + half[here] * leaves.offset(here, index, place)
        below[here] = np.minimum(below[here], low - line - slack[here])
        above[here] = np.maximum(above[here], high - line + slack[here])
    return LeafValues(mid, half, below, above, least, largest)


def _stretches(axis: Axis) -> Stretches:
    if axis.pieces is None:
        n_cells = float(axis.last + 1)
        return Stretches(*(np.array([number]) for number in (0.0, n_cells, 0.0, n_cells, 0.0)))
    table = place_table(axis.pieces)
    begins = np.where((table.points >= 0) & ~table.is_whole, table.points, table.starts)
    parts = (table.slots, table.lengths, table.starts, table.widths, begins)
    return Stretches(*(np.asarray(part, dtype=np.float64) for part in parts))


def _values_at(axis: Axis, stretches: Stretches, k: int, places: Floats) -> tuple[Floats, Floats]:
    """The least and the largest value of rows at places of one stretch."""
    inside = places - stretches.slots[k]
    each = stretches.widths[k] / stretches.lengths[k]
    if axis.pieces is None:
        fine, stop = inside, inside + 1.0
    else:
        # Behind a point every other place holds a cell; the middle of a fine cell says which cell it is in.
        fine = stretches.starts[k] + inside * each - 0.5
        stop = stretches.starts[k] + np.minimum(inside + 2.0, stretches.lengths[k]) * each + 0.5
        fine = np.where(inside == 0, stretches.begins[k], np.maximum(fine, stretches.starts[k]))
        stop = np.minimum(stop, stretches.starts[k] + stretches.widths[k])
    if axis.kind == "real":
        low, high = axis.origin + fine / axis.scale, axis.origin + stop / axis.scale
        return np.clip(low, axis.low, axis.high), np.clip(high, axis.low, axis.high)
    lowest, highest = int(axis.low), int(axis.high)
    low, high = lowest + np.floor(fine) * axis.step, lowest + np.ceil(stop) * axis.step - 1
    return np.clip(low, lowest, highest), np.clip(high, lowest, highest)
