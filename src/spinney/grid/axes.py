"""The cells of a column by itself, of a joint tree, of a column that rules divide, and of a place. PUBLIC.

    column axis      cells as fine as the values of one column, and the ruler or hierarchy that groups them
    joint lattice    a tree over all columns at once: pieces where a column spans decades, even cells elsewhere
    partitions       ranges of cells whose values all rules treat alike
    place axis       the lattice of the columns of a place, and what of it is possible

All of it follows from the schema, so nothing here costs epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Bounded, Category, Column, Real, exact, whole_range
from spinney.columns.bounded import divisors
from spinney.columns.category import group_starts
from spinney.columns.reading import numbers_rounding_to
from spinney.errors import SchemaError
from spinney.grid.codes import Codes, deinterleave, possible_nodes
from spinney.grid.grain import Grain, day_grain, number_grain
from spinney.grid.lattice import (
    Axis,
    Lattice,
    are_floats_apart,
    halving_axis,
    has_many_cells,
    needs_tree,
    real_axis,
    tree_lattice,
    whole_axis,
)
from spinney.grid.pieces import calendar_pieces, number_pieces, spans_decades
from spinney.grid.raster import Flags, Indices, Raster, raster_of
from spinney.grid.ruler import Cells, CodeLevels, Ruler, calendar_ruler, code_levels, number_ruler
from spinney.schema.places import Place
from spinney.schema.rules import Clause, clauses_of
from spinney.schema.rules.base import Number, ValueSet, after, before, universe
from spinney.schema.schema import Schema

# ---------------------------------------------------------------------------------------------------------- column axis
# One column by itself: cells as fine as its values, and the ruler or hierarchy that says how they are grouped.
#
# Cells lie around the multiples of a unit: the column's own (`multiple_of`, a whole number, a day), or, for reals and
# for ranges of more values than cells, a round one. So a round number is the first cell of the ranges that a ruler
# cuts, and a float next to it falls into the same cell; one of single precision, into one of the next few. Whether a
# row is null is a bit of its own, which no ruler cuts.


Floats = NDArray[np.float64]

# A number that is a target has classes if it has no more values than this.
_MOST_CLASSES = 8
# Cells of a column at most, unless its `bits` say otherwise.
_REAL_BITS, _WHOLE_BITS = 32, 40
# Floats tell cells apart whose numbers are no more units away from 0 than this.
_MOST_UNITS = 1 << 49
# Where that leaves fewer cells than this, they are even ones, and cut in halves.
_FEW_UNITS = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class ColumnAxis:
    """The cells of one column. Without a ruler there are few, and each is looked at by itself.

    Where `unit` is stated, cells are so fine that the rows of a pile's cells are taken to lie at their round value.
    """

    axis: Axis
    ruler: Ruler | None
    unit: Fraction | None = None  # physical length of a cell
    offset: int = 0  # of columns that are whole: where in its cell the round value lies
    levels: CodeLevels | None = None  # of codes in a hierarchy: groups that are counted beside the codes
    grain: Grain | None = None  # where every cell holds one value: in which steps people may write these
    n_codes: int = 0  # of a related column: so many of the last cells stand for ratios, and are no values

    @property
    def lattice(self) -> Lattice:
        return Lattice((self.axis,))

    @property
    def max_levels(self) -> int:
        """Levels on which a tree of the column decides by noisy counts."""
        return 0 if self.ruler is None else self.ruler.max_levels

    @property
    def is_known(self) -> bool:
        """Whether there is one possible cell only."""
        return self.axis.n_possible <= 1

    @property
    def has_classes(self) -> bool:
        """Whether a target has classes to count before all else: two or more categories, or a few numbers.

        The early count is noisy, and is the only one of the target. It pays for finding rare classes; a number in many
        steps has none, and is counted among the other columns.
        """
        is_of_classes = self.axis.kind == "category" or self.axis.n_possible - self.axis.nullable <= _MOST_CLASSES
        return self.axis.n_possible > 1 and is_of_classes and self.ruler is None and self.levels is None

    @property
    def n_tables(self) -> int:
        """How many tables of the column by itself are counted: one, and one for each level of a hierarchy."""
        return 1 + (0 if self.levels is None else len(self.levels.starts))

    def slack(self, cell: int) -> int:
        """By how many cells a number there may be missed in single precision."""
        return 0 if self.ruler is None else self.ruler.slack(cell)

    def points(self, first: Cells, stop: Cells) -> tuple[NDArray[np.bool_], Floats, float] | None:
        """Which ranges are as short as a pile, where their round values lie, and how long these are, or None.

        A real has no length, a whole number is 1 long. Reals come out as people write them, 0.3 and not
        0.30000000000000004.
        """
        if self.unit is None or self.ruler is None:
            return None
        is_point = stop == self.ruler.pile_stops(first, stop)
        cells = self.ruler.roundest(first, stop)
        if self.axis.kind == "real":
            multiples = (cells - self.ruler.zero).astype(np.float64)
            numbers = multiples * float(self.unit.numerator) / float(self.unit.denominator)
            return is_point, np.clip(numbers, self.axis.low, self.axis.high) + 0.0, 0.0  # adding 0 unsigns 0
        return is_point, (cells * self.axis.step + self.offset).astype(np.float64), 1.0


def column_axes(schema: Schema) -> dict[str, ColumnAxis]:
    """Those of all modelled columns, by name. Values that a rule tells apart are all looked at by themselves."""
    ruled = _in_rules(schema)
    axes = {name: column_axis(name, column, in_rules=name in ruled) for name, column in schema._modelled.items()}
    return axes | {name: replace(axes[name], n_codes=len(rule.ratios)) for name, rule in schema._related.items()}


def _in_rules(schema: Schema) -> set[str]:
    """The modelled columns whose values rules tell apart."""
    return {name for clause in clauses_of(schema.rules, schema) for name in clause}


def n_group_tables(schema: Schema) -> int:
    """How many tables of groups of codes are counted, beside one table for each column."""
    ruled, modelled = _in_rules(schema), schema._modelled
    codes = {name: column for name, column in modelled.items() if isinstance(column, Category) and name not in ruled}
    return sum(column_axis(name, column).n_tables - 1 for name, column in codes.items())


@lru_cache(maxsize=1024)
def column_axis(name: str, column: Column, *, in_rules: bool = False) -> ColumnAxis:
    """Cells, and ruler or levels, of a column whose values are read."""
    coarse = halving_axis(name, column)
    if isinstance(column, Category):
        has_levels = column.hierarchy is not None and has_many_cells(coarse) and not in_rules
        return _of_codes(coarse, column) if has_levels else ColumnAxis(coarse, None)
    if not needs_tree(coarse):
        return ColumnAxis(coarse, None)
    assert isinstance(column, Bounded)
    return fine_axis(name, column)


@lru_cache(maxsize=1024)
def fine_axis(name: str, column: Bounded) -> ColumnAxis:
    """Cells as fine as the values of a column, around its round ones, also where these are few."""
    return _of_reals(name, column) if isinstance(column, Real) else _of_wholes(name, column)


@lru_cache(maxsize=64)
def _of_codes(axis: Axis, column: Category) -> ColumnAxis:
    """A cell for each code, in the order of the hierarchy."""
    assert column.hierarchy is not None
    levels = code_levels(axis.last + 1, group_starts(column.listed, column.hierarchy, column.other))
    return ColumnAxis(axis, None, levels=levels if levels.starts else None)


def _of_reals(name: str, column: Real) -> ColumnAxis:
    """Cells around the multiples of the column's step, or of a round unit."""
    bits = _REAL_BITS if column.bits is None else column.bits
    low, high, step = exact(column.low), exact(column.high), column.spacing
    finest = max(-low, high) / _MOST_UNITS
    least = max((high - low) / (1 << bits), finest)
    unit = _round_number(least) if step is None else step * _round_number(max(Fraction(1), least / step))
    first, last = -(-low // unit), high // unit
    if finest > (high - low) / _FEW_UNITS or not are_floats_apart(float(unit), column):
        axis = real_axis(name, column, n_cells=1 << bits)
        return ColumnAxis(axis, calendar_ruler(axis.last + 1, 0, ()))  # halves
    axis = real_axis(name, column, n_cells=last - first + 1, width=float(unit))
    axis = replace(axis, origin=float((first - Fraction(1, 2)) * unit))
    ruler = number_ruler(axis.last + 1, -first, _mantissa(unit), is_single=step is None)
    grain = None
    if unit == step:
        grain = number_grain(axis.last + 1, -first, _mantissa(unit), nullable=column.nullable)
    return ColumnAxis(axis, ruler, unit if column.bits is None or unit == step else None, grain=grain)


def _of_wholes(name: str, column: Bounded) -> ColumnAxis:
    """Cells of one value each, or of a round number of values where these are too many."""
    low, high = whole_range(column)
    n_steps = -(-(high - low + 1) // column.step)
    most = 1 << (_WHOLE_BITS if column.bits is None else column.bits)
    size = column.step * _fewest(column, -(-n_steps // most))
    axis = whole_axis(name, column, size)
    offset = column.step // 2  # what rounds to a multiple begins half a step below it
    zero = (column._phase - low) // size
    is_at_round = column.bits is None and (low + offset - column._phase) % size == 0
    unit = Fraction(size) if is_at_round else None
    grain = _grain_of_wholes(axis, column, zero) if size == column.step and unit is not None else None
    if column._spans_decades:
        return ColumnAxis(axis, number_ruler(axis.last + 1, zero, _mantissa(Fraction(size))), unit, offset, grain=grain)
    places = [-(-(np.array(starts, dtype=np.int64) - low) // size) for starts in column._landmarks()]
    ruler = calendar_ruler(axis.last + 1, zero, divisors(size, column._round_steps), places)
    return ColumnAxis(axis, ruler, unit, offset, grain=grain)


def _grain_of_wholes(axis: Axis, column: Bounded, zero: int) -> Grain | None:
    """That of numbers in steps, or of single days."""
    if column._spans_decades and column._phase == 0:
        return number_grain(axis.last + 1, zero, _mantissa(Fraction(column.step)), nullable=column.nullable)
    if column._counts_days and column.step == 1:
        return day_grain(axis.last + 1, whole_range(column)[0], nullable=column.nullable)
    return None


def _fewest(column: Bounded, least: int) -> int:
    """The smallest round number of steps that is not below another."""
    found = [steps for steps in divisors(column.step, column._round_steps) if steps >= least]
    return min(found) if found else int(_round_number(Fraction(least)))


def _round_number(least: Fraction) -> Fraction:
    """The smallest of 1, 2 and 5 times a power of ten that is not below a positive number."""
    power = Fraction(1)
    while power < least:
        power *= 10
    while power / 10 >= least:
        power /= 10
    return next(power / part for part in (5, 2, 1) if power / part >= least)


def _mantissa(unit: Fraction) -> int:
    """The digits of a unit, without the zeros at its end."""
    while unit.denominator != 1:
        unit *= 10
    number = unit.numerator
    while number % 10 == 0:
        number //= 10
    return number


# -------------------------------------------------------------------------------------------------------- joint lattice
# The lattice of a joint tree: columns that span decades or centuries have pieces, all others even cells.
#
# Which columns these are follows from the schema. An ordered column without stated `bits` and of more than 256 values
# has pieces if it is
#
#     a whole number, or one in steps    with 0 among its values, or with bounds that differ by a factor of 20
#     any other real                     with the same, if one bound is 100 or more away from 0, and ten times as far as
#                                        the other: amounts, but neither scores nor coordinates
#     a date, a datetime                 always
#
# Times of day, categories, and columns with stated `bits` have even cells.


# Of an axis with pieces: fewer would not resolve what lies inside a piece.
_LEAST_BITS, _MOST_BITS = 15, 20
# Reals without steps whose bounds are nearer to 0, or about as far on both sides of it, are taken for measurements.
_LEAST_AMOUNT, _LOPSIDED = 100, 10
# As many values have a cell each, which is as good as any piece.
_FEW_VALUES = 256
# A tree of more columns does not get as far down as to the points of pieces, and pays for them all the same.
_MOST_COLUMNS_WITH_POINTS = 5


def joint_lattice(schema: Schema) -> Lattice:
    """The lattice of a tree over all columns at once.

    An axis with pieces has 60 / (number of columns) bits, between 15 and 20. Others are those of `tree_lattice`; among
    many columns of which some have pieces they have as many bits, for their bounds may be as generous.
    """
    bits = min(_MOST_BITS, max(_LEAST_BITS, 60 // len(schema)))
    has_points = len(schema) <= _MOST_COLUMNS_WITH_POINTS
    pieced = {
        name: axis
        for name, column in schema.items()
        if isinstance(column, Bounded) and (axis := _pieced_axis(name, column, bits, has_points)) is not None
    }
    even = tree_lattice(schema, least_bits=_LEAST_BITS) if pieced and not has_points else tree_lattice(schema)
    return Lattice(tuple(pieced.get(axis.name, axis) for axis in even.axes))


def columns_with_pieces(schema: Schema) -> list[str]:
    """The columns that have pieces in a joint tree, of a schema with all bounds."""
    return [axis.name for axis in joint_lattice(schema).axes if axis.pieces is not None]


@lru_cache(maxsize=1024)
def _pieced_axis(name: str, column: Bounded, bits: int, has_points: bool) -> Axis | None:
    """The axis of a column that has pieces."""
    found = column_axis(name, column)
    ruler = found.ruler
    if ruler is None or column.bits is not None or ruler.n_cells <= _FEW_VALUES:
        return None
    n_cells = 1 << bits
    if not column._spans_decades:
        if not ruler.landmarks:
            return None
        pieces = calendar_pieces(ruler, n_cells)
    elif found.unit is not None and spans_decades(ruler) and not _is_measured(column):
        pieces = number_pieces(ruler, n_cells, unit=found.unit, offset=found.offset, has_points=has_points)
    else:
        return None
    return replace(found.axis, bits=bits + column.nullable, first=0, last=n_cells - 1, pieces=pieces)


def _is_measured(column: Bounded) -> bool:
    """Whether a number looks like a score or a coordinate, which an even axis suits better, and not like an amount."""
    if not isinstance(column, Real) or column.spacing is not None:
        return False
    near, far = sorted((abs(column.low), abs(column.high)))
    return bool(far < _LEAST_AMOUNT or far < _LOPSIDED * near)


# ----------------------------------------------------------------------------------------------------------- partitions
# Where rules divide a column: ranges of cells whose values all rules treat alike, and where values of each may
# lie.
#
# Every set of values that a clause names ends somewhere. Between two such ends all values are in the same sets,
# which is the *label* of a part. Ends are public, so a tree may be cut there before it looks at rows; values of
# different labels never share a state, and what is drawn stays within its part to the last float. A cell that
# holds the end of a range goes with the side whose end is written shorter: somebody stated 15.0, and
# 14.999999999999998 follows from it.


# Of steps of floats, a part ends this much before the middle between two multiples, which may be rounded either way.
_SHY = 2.0**-20


@dataclass(frozen=True, slots=True, eq=False)
class Parting:
    """A column in parts, in ascending order. Null is apart from all of them."""

    starts: tuple[Number, ...]  # (n_parts,): the least physical number of each
    first: Cells  # (n_parts,): the first cell of each
    labels: NDArray[np.int64]  # (n_parts,): parts of equal labels are in the same sets
    begins: Floats  # (n_parts,): no place of a part is below this
    stops: Floats  # (n_parts,): nor at or above this
    sets: tuple[ValueSet, ...]  # those that clauses name
    is_in: NDArray[np.bool_]  # (n_sets, n_labels): whether values of a label are in a set
    possible: NDArray[np.bool_]  # (n_labels + 1,): whether a row can have a value of a label, or null; all, unless told

    @property
    def n_labels(self) -> int:
        return int(self.is_in.shape[1])

    def labels_of(self, first: Cells) -> NDArray[np.int64]:
        """The labels of ranges that begin at these cells."""
        return self.labels[self._part_of_cells(first)]

    def labels_at(self, places: Floats) -> NDArray[np.int64]:
        """The labels of ranges that begin at these places, as `fenced` left them."""
        return self.labels[np.searchsorted(self.begins[1:], places, side="right")]

    def fenced(self, first: Cells, low: Floats, length: Floats) -> tuple[Floats, Floats]:
        """Where ranges of cells lie, within the bounds of their parts."""
        part = self._part_of_cells(first)
        stop = low + length
        begins = np.clip(low, self.begins[part], np.maximum(self.begins[part], np.nextafter(self.stops[part], -np.inf)))
        stops = np.minimum(np.maximum(stop, begins), self.stops[part])
        lengths = np.where(length > 0, np.maximum(stops - begins, 0.0), 0.0)
        is_long = begins + lengths > self.stops[part]  # sums of floats are rounded, here downwards
        return begins, np.where(is_long, np.nextafter(lengths, 0.0), lengths)

    def in_words(self, part: int, column: Column) -> str:
        """The values of a part."""
        low, high = self.starts[part], universe(column)[1]
        if part + 1 < len(self.starts):
            high = before(self.starts[part + 1])
        if isinstance(column, Bounded):
            if column.is_whole or column.spacing is not None:
                high = column._aligned(high if column.is_whole else exact(high), up=False)
            low, high = column.logical(low), column.logical(high)
            return str(low) if low == high else f"{low}..{high}"
        return ", ".join(repr(value) for value in column.listed[int(low) : int(high) + 1])

    def _part_of_cells(self, first: Cells) -> NDArray[np.int64]:
        return np.maximum(np.searchsorted(self.first, first, side="right") - 1, 0)


def partings_of(
    schema: Schema, axes: Mapping[str, ColumnAxis] | None = None, *, apart: Sequence[Clause] = ()
) -> dict[str, Parting]:
    """The parts of all modelled columns by the rules of a schema: clauses, and a part for the code of every ratio.

    `apart` names further values that no others may share a state with.
    """
    codes: list[Clause] = [{name: one} for name, rule in schema._related.items() for one in rule.code_sets(schema)]
    axes = column_axes(schema) if axes is None else axes
    return partings([*clauses_of(schema.rules, schema), *apart, *codes], schema._as_drawn, axes)


def partings(
    clauses: Sequence[Clause], schema: Mapping[str, Column], axes: Mapping[str, ColumnAxis]
) -> dict[str, Parting]:
    """The parts of every column that a clause is about."""
    sets: dict[str, dict[ValueSet, None]] = {}
    for clause in clauses:
        for name, allowed in clause.items():
            sets.setdefault(name, {})[allowed] = None
    return {name: _parting(name, schema[name], axes[name], tuple(named)) for name, named in sets.items()}


def _parting(name: str, column: Column, cells: ColumnAxis, sets: tuple[ValueSet, ...]) -> Parting:
    least, most = universe(column)
    starts = {low for one in sets for low, _ in one.ranges}
    starts |= {after(high) for one in sets for _, high in one.ranges if high < most}
    starts = {least, *(_in_steps(start, column) for start in starts)}
    parts: list[tuple[Number, tuple[bool, ...]]] = []  # where each begins, and its label
    for start in sorted(starts):
        label = tuple(start in one for one in sets)
        if not parts or parts[-1][1] != label:
            parts.append((start, label))
    numbers = {label: place for place, label in enumerate(dict.fromkeys(label for _, label in parts))}
    first = np.array([cells.axis.first, *(_first_cell(start, column, cells) for start, _ in parts[1:])], dtype=np.int64)
    if (np.diff(first) <= 0).any() or first[-1] > cells.axis.last:
        raise SchemaError(
            f"column {name!r}: rules tell values apart that lie in one cell of it; leave out its bits, or state ends "
            "of ranges that are further apart"
        )
    ends = [fence(column, start) for start, _ in parts[1:]]
    return Parting(
        tuple(start for start, _ in parts),
        first,
        np.array([numbers[label] for _, label in parts], dtype=np.int64),
        np.array([-np.inf, *(begin for _, begin in ends)]),
        np.array([*(stop for stop, _ in ends), np.inf]),
        sets,
        np.array(list(numbers), dtype=np.bool_).reshape(len(numbers), len(sets)).T,
        np.ones(len(numbers) + 1, dtype=np.bool_),
    )


def _in_steps(start: Number, column: Column) -> Number:
    """The least value of a column that is not below a number."""
    if not isinstance(column, Bounded):
        return start
    if column.is_whole:
        return int(column._aligned(start, up=True))
    return start if column.spacing is None else float(column._aligned(exact(start), up=True))


def _first_cell(start: Number, column: Column, cells: ColumnAxis) -> int:
    """The first cell of a part that begins at a number."""
    axis = cells.axis
    if not isinstance(start, float):
        return -(-int(fence(column, start)[1]) // axis.step)
    last = math.nextafter(start, -math.inf)
    if column.spacing is not None or len(repr(start)) <= len(repr(last)):
        cell = _real_cell(start, axis)
        cell -= cells.slack(cell)
    else:
        cell = _real_cell(last, axis)
        cell += cells.slack(cell) + 1
    return min(max(cell, axis.first), axis.last + 1)


def _real_cell(number: float, axis: Axis) -> int:
    return math.floor(min(max((number - axis.origin) * axis.scale, axis.first), axis.last))


def fence(column: Column, start: Number) -> tuple[float, float]:
    """Where places end that are before a number, and where those from it on begin."""
    if not isinstance(column, Bounded):
        return float(start), float(start)
    if column.is_whole:
        begin, _ = numbers_rounding_to(start, start, column) if column.step > 1 else (start, start)
        place = float(begin - whole_range(column)[0])
        return place, place
    if column.spacing is None:
        return float(start), float(start)
    step, number = column.spacing, exact(start)
    shy = float(step) * (0.5 - _SHY)
    return float(number - step) + shy, float(number) - shy


# ----------------------------------------------------------------------------------------------------------- place axis
# The cells of a place: the lattice of its columns, and what of it is possible.
#
# A node of a place is a prefix of a cell code, as in a joint tree, and cells in the order of codes are numbered
# by the code itself: a node is a range of such numbers. Codes have at most 62 bits, so that every engine counts
# and compares them as whole numbers. Whether a column is null is the first bit of its axis.


# Bits of a code, and of one column in it.
MOST_BITS = 62
_MOST_COLUMN_BITS = 24


@dataclass(frozen=True, slots=True, eq=False)
class PlaceAxis:
    """The lattice of a place, and the raster of its shape where one was stated."""

    place: Place
    lattice: Lattice
    raster: Raster | None
    columns: tuple[Bounded, ...]

    @property
    def max_levels(self) -> int:
        """Levels on which a tree of the place decides by noisy counts: whether a column is null is no decision."""
        return max(1, sum(axis.value_bits for axis in self.lattice.axes))

    @property
    def n_nullable(self) -> int:
        """How many of the columns may be null."""
        return sum(axis.nullable for axis in self.lattice.axes)

    @property
    def is_known(self) -> bool:
        """Whether there is one possible cell only."""
        return all(axis.n_possible == 1 for axis in self.lattice.axes)

    def is_possible(self, codes: Codes, depths: Indices) -> Flags:
        """Which nodes hold a cell that rows may have: inside the bounds, and inside the shape if there is one."""
        is_possible = possible_nodes(codes, depths, self.lattice)
        if self.raster is None:
            return is_possible
        first, size = self.value_cells(codes, depths)
        is_held = self.raster.n_held(first, size) > 0
        return np.asarray(is_possible & (is_held | self.has_null(codes)))

    def is_cut_short(self, codes: Codes, depths: Indices) -> Flags:
        """Which nodes are too small for the border of the shape that passes through them to be seen in their halves."""
        if self.raster is None:
            return np.zeros(len(codes), dtype=np.bool_)
        return self.raster.is_cut_short(*self.value_cells(codes, depths)) & ~self.has_null(codes)

    def is_bordered(self, codes: Codes, depths: Indices) -> Flags:
        """Which nodes are not wholly inside the shape; none where there is no shape, or a column is null."""
        if self.raster is None:
            return np.zeros(len(codes), dtype=np.bool_)
        return self.raster.is_bordered(*self.value_cells(codes, depths)) & ~self.has_null(codes)

    def has_null(self, codes: Codes) -> Flags:
        """Which nodes are those of rows in which some column is null."""
        return np.asarray((codes[:, 0] & self.null_bits) != 0)

    @property
    def null_bits(self) -> np.uint64:
        """The bits of a code that say that a column is null."""
        bits = 0
        for position, step in enumerate(self.lattice.order):
            if self.lattice.axes[step.axis].nullable and step.bit == 0:
                bits |= 1 << (63 - position)
        return np.uint64(bits)

    def value_cells(self, codes: Codes, depths: Indices) -> tuple[Indices, Indices]:
        """First cell and number of cells of each node along each axis, null's half of an axis left out."""
        first, size = deinterleave(codes, depths, self.lattice)
        ends = np.array([1 << axis.value_bits for axis in self.lattice.axes])
        return first & (ends - 1), np.minimum(size, ends)

    def cell_numbers(self, codes: Codes) -> NDArray[np.int64]:
        """Codes as the numbers of the cells at which their nodes begin."""
        return (codes[:, 0] >> np.uint64(64 - self.lattice.depth)).astype(np.int64)


def place_axis(place: Place, columns: Mapping[str, Column]) -> PlaceAxis:
    """The cells of a place, whose columns have bounds."""
    return _place_axis(place, tuple(_bounded(columns[name]) for name in place.columns))


# The raster of one shape takes some 40 MB, so that few are kept.
@lru_cache(maxsize=4)
def _place_axis(place: Place, columns: tuple[Any, ...]) -> PlaceAxis:
    n_nullable = sum(column.nullable for column in columns)
    most = min(_MOST_COLUMN_BITS, (MOST_BITS - n_nullable) // len(columns))
    axes = [
        halving_axis(name, column, bits=most if column.bits is None else min(column.bits, most))
        for name, column in zip(place.columns, columns, strict=True)
    ]
    return _on_lattice(place, Lattice(tuple(axes)), columns)


def place_axis_on(place: Place, lattice: Lattice, columns: Mapping[str, Column]) -> PlaceAxis:
    """The cells of a place on a lattice that a release was made on, which may be another than today's."""
    if lattice.depth > MOST_BITS:
        raise ValueError(f"a place of {lattice.depth} bits, more than {MOST_BITS}")
    bounded = tuple(_bounded(columns[name]) for name in place.columns)
    usual = _place_axis(place, bounded)
    return usual if lattice == usual.lattice else _on_lattice(place, lattice, bounded)


def _on_lattice(place: Place, lattice: Lattice, columns: tuple[Any, ...]) -> PlaceAxis:
    raster = None if place.within is None else raster_of(place.within, lattice, columns)
    return PlaceAxis(place, lattice, raster, columns)


def _bounded(column: Column) -> Bounded:
    assert isinstance(column, Bounded)
    return column
