"""Values to cell numbers, axis by axis, and to codes: the lattice's formulas as compiled loops.

Where an axis has pieces, a second loop takes its fine cells to cells. Each loop over values fills `cells` and returns
how many values had no cell: a null, a NaN or an infinity on an axis without nulls. Where the axis has nulls, all three
are null. Rows are encoded in blocks that stay in cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.columns.physical import Physical
from spinney.compiled import compiled
from spinney.errors import InputError
from spinney.schema.lattice import Axis, Lattice
from spinney.schema.pieces import piece_table
from spinney.schema.zorder import Codes, add_axis, expand_axis, expansions, spread_tables

Cells = NDArray[np.int64]

# Rows encoded at once: values, cells and codes of a block stay in cache.
_BLOCK = 1 << 14


class AxisCells:
    """Turns slices of one physical column into cell numbers."""

    def __init__(self, column: Physical, axis: Axis) -> None:
        self._column = column
        self._axis = axis
        self._edges = np.array(axis.edges, dtype=np.float64)
        self._pieces = None if axis.pieces is None else piece_table(axis.pieces)

    def fill(self, start: int, stop: int, cells: Cells) -> int:
        """Cells of rows start..stop into `cells`; returns how many rows have none."""
        axis = self._axis
        if self._pieces is None:
            return self._fill(start, stop, axis.first, axis.last, axis.null_cell, cells)
        n_fine = axis.n_fine  # which is no fine cell, and marks nulls
        n_bad = self._fill(start, stop, 0, n_fine - 1, n_fine if axis.nullable else -1, cells)
        table = self._pieces
        _lay_out(table.starts, table.widths, table.slots, table.gains, n_fine, axis.null_cell, cells)
        return n_bad

    def _fill(self, start: int, stop: int, first: int, last: int, null_cell: int, cells: Cells) -> int:
        """Cells, or fine cells, by the formula of the axis's kind."""
        axis, values = self._axis, self._column.values[start:stop]
        is_null = self._column.is_null
        mask = np.empty(0, dtype=np.bool_) if is_null is None else is_null[start:stop]
        if axis.kind == "real":
            return int(_real_cells(values, axis.origin, axis.scale, first, last, null_cell, cells))
        if axis.kind == "ladder":
            return int(_ladder_cells(values.astype(np.float64), mask, self._edges, null_cell, cells))
        return int(_integer_cells(values, mask, int(axis.low), int(axis.high), axis.step, null_cell, cells))


def encode_rows(columns: list[AxisCells], lattice: Lattice, first_row: int, codes: Codes) -> None:
    """Fill `codes` with the codes of as many rows, from `first_row` on."""
    is_word = lattice.n_words == 1
    tables = expansions(lattice) if is_word else spread_tables(lattice)
    cells = np.empty(_BLOCK, dtype=np.int64)
    for start in range(0, len(codes), _BLOCK):
        here = codes[start : start + _BLOCK]
        block_cells = cells[: len(here)]
        here[:] = 0
        for column, axis, spread in zip(columns, lattice.axes, tables, strict=True):
            if column.fill(first_row + start, first_row + start + len(here), block_cells):
                raise missing(axis.name)
            if is_word:
                expand_axis(block_cells, spread, here[:, 0])
            else:
                add_axis(block_cells, spread, here)


class MissingValueError(InputError):
    """A null, a NaN or an infinity in a column that the schema says has none."""

    column: str | None = None


def missing(name: str, place: str | None = None) -> MissingValueError:
    """The error for a missing value in a column, at a place of it where that is known."""
    problem = MissingValueError(
        f"{place or f'column {name!r}'} holds a missing or non-finite value; declare it nullable in the schema "
        "(nullable=True; in a schema file, nullable = true) or clean the table"
    )
    problem.column = name
    return problem


@compiled
def _real_cells(
    values: NDArray[Any], origin: float, scale: float, first: int, last: int, null_cell: int, cells: Cells
) -> int:
    n_bad = 0
    for i in range(values.size):
        value = np.float64(values[i])
        if np.isfinite(value):
            # Clamp before converting: a float past int64 has no defined integer, and far values overflow to infinity.
            position = min(max((value - origin) * scale, np.float64(first)), np.float64(last))
            cells[i] = np.int64(np.floor(position))
        elif null_cell >= 0:
            cells[i] = null_cell
        else:
            cells[i] = first
            n_bad += 1
    return n_bad


@compiled
def _lay_out(
    starts: Cells, widths: Cells, slots: Cells, gains: Cells, n_fine: int, null_cell: int, cells: Cells
) -> None:
    """Fine cells to cells, in place: the middle of a fine cell says which cell of its piece it is."""
    for i in range(cells.size):
        fine = cells[i]
        if fine >= n_fine:
            cells[i] = null_cell
            continue
        low, high = 0, starts.size
        while high - low > 1:
            half = (low + high) >> 1
            if starts[half] <= fine:
                low = half
            else:
                high = half
        cells[i] = slots[low] + (2 * (fine - starts[low]) + 1) * gains[low] // (2 * widths[low])


@compiled
def _integer_cells(
    values: NDArray[np.int64],
    mask: NDArray[np.bool_],
    low: int,
    high: int,
    step: int,
    null_cell: int,
    cells: Cells,
) -> int:
    n_bad = 0
    has_mask = mask.size > 0
    for i in range(values.size):
        if has_mask and mask[i]:
            cells[i] = max(null_cell, 0)
            n_bad += null_cell < 0
        else:
            offset = min(max(values[i], low), high) - low
            cells[i] = offset // step if step > 1 else offset
    return n_bad


@compiled
def _ladder_cells(
    values: NDArray[np.float64], mask: NDArray[np.bool_], edges: NDArray[np.float64], null_cell: int, cells: Cells
) -> int:
    n_bad = 0
    has_mask = mask.size > 0
    for i in range(values.size):
        if (has_mask and mask[i]) or not np.isfinite(values[i]):
            cells[i] = max(null_cell, 0)
            n_bad += null_cell < 0
        else:
            cells[i] = np.searchsorted(edges, values[i], side="right")
    return n_bad
