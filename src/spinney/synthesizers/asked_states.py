"""What a question asks of every row, as public states: which cells of its columns meet the conditions, and what each
cell adds to a sum.

A column is cut where its conditions begin and end, and for a mean into up to 1,024 even parts of the range that it is
asked about, so that the engines read one small number for each row and column, as they do for a forest. All of this
follows from the schema and the question; what rows add is looked up in these arrays, so that no row can add more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Boolean, Bounded, Column, Listed, Real, exact
from spinney.columns.number import Number
from spinney.counting.states import Cut, StateRows
from spinney.errors import ParameterError
from spinney.forest.release.asked import plain, range_asked
from spinney.forest.release.conditions import never
from spinney.release.answers.grammar import ParsedQuestion
from spinney.schema.column_axis import ColumnAxis, fine_axis
from spinney.schema.lattice import whole_axis
from spinney.schema.table import Schema

Ranges = list[tuple[int, int]]  # first and last cells

# Parts of the range of a mean: half of one is a two-thousandth of the range.
_MOST_PARTS = 1 << 10
_MOST_CELLS = 1 << 40
_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The column of a mean in `n_parts` even parts, whose middles lie from `centre` - `half` to `centre` + `half`.

    Part i adds 2i - (n_parts - 1) steps, so from -`reach` to `reach`; a value is at most `slack` from the middle of its
    part.
    """

    n_parts: int
    centre: float
    half: float
    slack: float

    @property
    def reach(self) -> int:
        return self.n_parts - 1


@dataclass(frozen=True, slots=True, eq=False)
class AskedColumn:
    """One column of a question: how it is cut, and what each state means. Public."""

    cut: Cut
    meets_where: NDArray[np.bool_]  # (n_states,)
    meets_given: NDArray[np.bool_]
    steps: NDArray[np.int64] | None  # of the column of a mean: what a state adds
    grid: Grid | None


def asked_columns(question: ParsedQuestion, schema: Schema) -> list[AskedColumn]:
    """The columns of a question, or a ParameterError where one cannot be asked about in this way."""
    given: Mapping[str, Any] = question.given or {}
    columns = []
    for name in question.columns:
        column = schema[name]
        axis = _axis(name, column)
        columns.append(
            _asked(
                axis,
                where=_cells(name, column, axis, question.where[name]) if name in question.where else None,
                given=_cells(name, column, axis, given[name]) if name in given else None,
                mean_of=column if name == question.column else None,
            )
        )
    return columns


def true_sums(rows: StateRows, columns: list[AskedColumn]) -> NDArray[np.int64]:
    """Rows that meet `given`, rows that meet `where` as well, and what those add up to in steps (3,). SENSITIVE."""
    n_given = n_where = total = 0
    for start in range(0, rows.n_rows, _AT_ONCE):
        states = rows.true_states[:, start : start + _AT_ONCE]
        is_given = np.ones(states.shape[1], dtype=np.bool_)
        is_here = is_given.copy()
        steps = np.zeros(states.shape[1], dtype=np.int64)
        for column, line in zip(columns, states, strict=True):
            is_given &= column.meets_given[line]
            is_here &= column.meets_where[line]
            if column.steps is not None:
                steps = column.steps[line]
        is_here &= is_given
        n_given += int(np.count_nonzero(is_given))
        n_where += int(np.count_nonzero(is_here))
        total += int(steps[is_here].sum())
    return np.array([n_given, n_where, total], dtype=np.int64)


# --------------------------------------------------------------------------------------------------- cells


def _axis(name: str, column: Column) -> ColumnAxis:
    """Cells of one value each, or as fine as floats and engines tell apart."""
    if isinstance(column, Real):
        return fine_axis(name, replace(column, bits=None))
    assert column.is_whole
    low, high = column.whole_range() or (0, 0)
    n_steps = -(-(high - low + 1) // column.step)
    size = column.step * -(-n_steps // _MOST_CELLS)
    return ColumnAxis(whole_axis(name, column, size), None)


def _cells(name: str, column: Column, axis: ColumnAxis, wanted: Any) -> Ranges:
    """The cells that meet a condition; a ParameterError where none does, or the condition makes no sense."""
    asked = plain(wanted)
    if asked is None:
        if not column.nullable:
            raise ParameterError(f"where: column {name!r} is never null")
        return [(axis.axis.null_cell, axis.axis.null_cell)]
    several = asked if isinstance(asked, list) else [asked]
    if isinstance(column, Listed):
        places = sorted({column.place_of(value, name=name, argument="where") for value in several})
        return [(place, place) for place in places]
    assert isinstance(column, Bounded)
    ranges = [range_asked(name, column, part if isinstance(part, tuple) else (part, part)) for part in several]
    found = [cells for low, high in ranges if (cells := _between(column, axis, low, high)) is not None]
    if not found:
        raise never(name, wanted)
    return found


def _between(column: Bounded, axis: ColumnAxis, low: Any, high: Any) -> tuple[int, int] | None:
    """The cells from one physical number to another, both included; None where the column has no value there."""
    least, most = column.first_and_last()
    if low > most or high < least:
        return None
    if isinstance(column, Real):
        return _between_reals(axis, max(float(low), float(least)), min(float(high), float(most)))
    first = column.aligned(max(least, math.ceil(low) if low > least else least), up=True)
    last = column.aligned(min(most, math.floor(high) if high < most else most), up=False)
    if first > last:
        return None
    return tuple((int(number) - int(axis.axis.low)) // axis.axis.step for number in (first, last))  # type: ignore[return-value]


def _between_reals(axis: ColumnAxis, low: float, high: float) -> tuple[int, int] | None:
    """Cells lie around round values; one belongs to a range if its round value does, whatever floats are next to it."""
    cells = axis.axis
    first, last = (
        min(max(math.floor((end - cells.origin) * cells.scale), cells.first), cells.last) for end in (low, high)
    )
    if axis.unit is not None and axis.ruler is not None:
        zero = int(axis.ruler.zero)
        first += (first - zero) * axis.unit < exact(low) and first < cells.last and low > cells.low
        last -= (last - zero) * axis.unit > exact(high) and last > cells.first and high < cells.high
    return (first, last) if first <= last else None


# -------------------------------------------------------------------------------------------------- states


def _asked(axis: ColumnAxis, *, where: Ranges | None, given: Ranges | None, mean_of: Column | None) -> AskedColumn:
    cells = axis.axis
    starts = {0}
    for first, last in [*(where or ()), *(given or ())]:
        starts |= {first, last + 1}
    grid, edges = None, np.empty(0, dtype=np.int64)
    if mean_of is not None:
        first, last = _mean_range(cells.name, axis, where)
        grid, edges = _grid(mean_of, axis, first, last)
        starts |= {*edges.tolist(), last + 1}
    if cells.nullable:
        starts |= {cells.null_cell, cells.null_cell + 1}
    n_cells = 1 << cells.bits
    first_cells = np.array(sorted(start for start in starts if start < n_cells), dtype=np.int64)
    meets_where = _within(first_cells, where)
    steps = None
    if grid is not None:
        part = np.searchsorted(edges, first_cells, side="right") - 1
        is_here = (part >= 0) & (first_cells <= last)
        steps = np.where(is_here, 2 * part - grid.reach, 0)
        meets_where &= is_here  # a mean leaves nulls out
    return AskedColumn(
        Cut(cells, first_cells, np.arange(len(first_cells))), meets_where, _within(first_cells, given), steps, grid
    )


def _within(first_cells: NDArray[np.int64], ranges: Ranges | None) -> NDArray[np.bool_]:
    if ranges is None:
        return np.ones(len(first_cells), dtype=np.bool_)
    found = np.zeros(len(first_cells), dtype=np.bool_)
    for first, last in ranges:
        found |= (first_cells >= first) & (first_cells <= last)
    return found


def _mean_range(name: str, axis: ColumnAxis, where: Ranges | None) -> tuple[int, int]:
    """The first and the last cell that a mean can be of: the narrower, the less noise."""
    cells = axis.axis
    if where is None:
        return cells.first, cells.last
    first, last = min(start for start, _ in where), max(stop for _, stop in where)
    if first > cells.last:
        raise ParameterError(f"question: nulls of column {name!r} have no mean")
    return first, min(last, cells.last)


def _grid(column: Column, axis: ColumnAxis, first: int, last: int) -> tuple[Grid, NDArray[np.int64]]:
    cells = axis.axis
    if not isinstance(column, (Number, Boolean)):
        raise ParameterError(
            f"question: column {cells.name!r} is of type {column.type_name}, and a mean is bought of numbers and "
            "booleans; buy a count or a proportion"
        )
    n_cells = last - first + 1
    if n_cells == 1:
        raise ParameterError(
            f"question: the condition leaves column {cells.name!r} one value, so its mean is known; nothing is bought"
        )
    width = -(-n_cells // _MOST_PARTS)
    n_parts = -(-n_cells // width)
    length = 1 / cells.scale if isinstance(column, Real) else float(cells.step)
    step = float(column.spacing or 0)  # values of a step lie in the middle of its cell
    if isinstance(column, Real):
        middle = cells.origin + first / cells.scale + width * length / 2
    else:
        middle = float(cells.low + first * cells.step + column.step // 2) + (width * length - step) / 2
    half = (n_parts - 1) * width * length / 2
    grid = Grid(n_parts, middle + half, half, max(0.0, width * length - step) / 2)
    return grid, first + width * np.arange(n_parts, dtype=np.int64)
