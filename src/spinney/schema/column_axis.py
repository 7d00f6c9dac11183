"""One column by itself: cells as fine as its values, and the ruler or hierarchy that says how they are grouped.

Cells lie around the multiples of a unit: the column's own (`multiple_of`, a whole number, a day), or, for reals and for
ranges of more values than cells, a round one. So a round number is the first cell of the ranges that a ruler cuts, and
a float next to it falls into the same cell; one of single precision, into one of the next few. Whether a row is null is
a bit of its own, which no ruler cuts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Bounded, Category, Column, Real, exact, whole_range
from spinney.columns.clock import divisors
from spinney.columns.hierarchy import group_starts
from spinney.schema.code_levels import CodeLevels, code_levels
from spinney.schema.lattice import (
    Axis,
    Lattice,
    are_floats_apart,
    has_many_cells,
    needs_tree,
    real_axis,
    tree_lattice,
    whole_axis,
)
from spinney.schema.ruler import Cells, Ruler, calendar_ruler, number_ruler
from spinney.schema.rules import clauses_of
from spinney.schema.table import Schema

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
    return {name: column_axis(name, column, in_rules=name in ruled) for name, column in schema.modelled.items()}


def _in_rules(schema: Schema) -> set[str]:
    """The modelled columns whose values rules tell apart."""
    return {name for clause in clauses_of(schema.rules, schema) for name in clause}


def n_group_tables(schema: Schema) -> int:
    """How many tables of groups of codes are counted, beside one table for each column."""
    ruled, modelled = _in_rules(schema), schema.modelled
    codes = {name: column for name, column in modelled.items() if isinstance(column, Category) and name not in ruled}
    return sum(column_axis(name, column).n_tables - 1 for name, column in codes.items())


def column_axis(name: str, column: Column, *, in_rules: bool = False) -> ColumnAxis:
    """Cells, and ruler or levels, of a column whose values are read."""
    coarse = tree_lattice(Schema({name: column})).axes[0]
    if isinstance(column, Category):
        has_levels = column.hierarchy is not None and has_many_cells(coarse) and not in_rules
        return _of_codes(coarse, column) if has_levels else ColumnAxis(coarse, None)
    if not needs_tree(coarse):
        return ColumnAxis(coarse, None)
    assert isinstance(column, Bounded)
    return _ruled(name, column)


def fine_axis(name: str, column: Bounded) -> ColumnAxis:
    """Cells as fine as the values of a column, around its round ones, also where these are few."""
    return _ruled(name, column)


@lru_cache(maxsize=1024)
def _ruled(name: str, column: Bounded) -> ColumnAxis:
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
    return ColumnAxis(axis, ruler, unit if column.bits is None or unit == step else None)


def _of_wholes(name: str, column: Bounded) -> ColumnAxis:
    """Cells of one value each, or of a round number of values where these are too many."""
    low, high = whole_range(column)
    n_steps = -(-(high - low + 1) // column.step)
    most = 1 << (_WHOLE_BITS if column.bits is None else column.bits)
    size = column.step * _fewest(column, -(-n_steps // most))
    axis = whole_axis(name, column, size)
    offset = column.step // 2  # what rounds to a multiple begins half a step below it
    zero = (column.phase - low) // size
    is_at_round = column.bits is None and (low + offset - column.phase) % size == 0
    unit = Fraction(size) if is_at_round else None
    if column.spans_decades:
        return ColumnAxis(axis, number_ruler(axis.last + 1, zero, _mantissa(Fraction(size))), unit, offset)
    places = [-(-(np.array(starts, dtype=np.int64) - low) // size) for starts in column.landmarks()]
    ruler = calendar_ruler(axis.last + 1, zero, divisors(size, column.round_steps), places)
    return ColumnAxis(axis, ruler, unit, offset)


def _fewest(column: Bounded, least: int) -> int:
    """The smallest round number of steps that is not below another."""
    found = [steps for steps in divisors(column.step, column.round_steps) if steps >= least]
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
