"""From values to cells, and from cells to counts: how many rows lie in each occupied lattice cell. SENSITIVE.

    cells     the lattice's formulas as compiled loops, axis by axis, and codes of rows
    counts    `CellCounts`, what a mechanism reads

Counts are the one form in which rows reach a mechanism, and the last one that is private.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spinney.columns.reading import Physical
from spinney.compiled import compiled
from spinney.counting.sorting import (
    Counts,
    RadixBuckets,
    block_sums,
    count_runs,
    digit_bits,
    order_further,
    rows_before,
    sort_rest,
)
from spinney.errors import InputError
from spinney.grid.codes import Codes, Indices, add_axis, expand_axis, expansions, spread_tables
from spinney.grid.grain import Grain
from spinney.grid.lattice import Axis, Lattice
from spinney.grid.pieces import piece_table
from spinney.machine import by_slices
from spinney.text import NeverPickled

# ---------------------------------------------------------------------------------------------------------------- cells
# Values to cell numbers, axis by axis, and to codes: the lattice's formulas as compiled loops.
#
# Where an axis has pieces, a second loop takes its fine cells to cells. Each loop over values fills `cells` and
# returns how many values had no cell: a null, a NaN or an infinity on an axis without nulls. Where the axis has
# nulls, all three are null. Rows are encoded in blocks that stay in cache.


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


# --------------------------------------------------------------------------------------------------------------- counts
# How many rows lie in each occupied lattice cell.
#
# This is the one form in which rows reach a mechanism, and the last one that is private. It shows nothing of
# itself, cannot be pickled or copied into a file, and is read only by functions that have charged a ledger.


# Rows that agree in their first bits, and are fewer than this, need no order to be counted.
_FEW_ROWS = 1024


class ColumnCounts(Protocol):
    """What a tree along a ruler asks of a column's counts. SENSITIVE, whatever stands behind it."""

    @property
    def lattice(self) -> Lattice:
        """Of one axis."""

    def true_total(self) -> int:
        """How many rows there are."""

    def rows_below(self, cells: Indices) -> Indices:
        """True numbers of rows in the cells before some cells."""

    def rows_by(self, grain: Grain) -> Indices:
        """True numbers of rows in each class of a grain."""


class CellCounts(NeverPickled):
    """Codes (n, n_words) in order, on a lattice, with true counts (n,). A node of a tree is a range of positions.

    Codes are either distinct cells with counts, or, where there are no counts, those of single rows. Rows are in order
    of their first bits, and of more only within nodes that were split: ordering moves no row out of its node.
    Cells take 8 bytes a word and 4 a count, or 8 where a count may pass 2^31; rows 8 bytes. Sums over ranges of cells
    come from sums over blocks, which take next to nothing, so that tables of a hundred million cells fit.
    """

    __slots__ = ("_before", "_is_searched", "_n_ordered", "lattice", "true_codes", "true_counts")

    def __init__(self, lattice: Lattice, true_codes: Codes, true_counts: Counts | None) -> None:
        self.lattice = lattice
        self.true_codes = true_codes
        self.true_counts = true_counts
        self._before: NDArray[np.int64] | None = None
        self._n_ordered = lattice.depth
        self._is_searched = False

    @classmethod
    def of_rows(cls, lattice: Lattice, buckets: RadixBuckets) -> CellCounts:
        """The rows whose codes are in buckets, which are empty then."""
        codes, n_ordered = buckets.concatenated()
        counts = cls(lattice, codes, None)
        counts._n_ordered = n_ordered
        return counts

    @classmethod
    def from_codes(cls, lattice: Lattice, codes: Codes) -> CellCounts:
        """Distinct cells with counts, given the codes of rows in any order."""
        return cls(lattice, *cls.of_rows(lattice, RadixBuckets.of(codes)).distinct())

    def __len__(self) -> int:
        return len(self.true_codes)

    def rows_between(self, start: Indices, stop: Indices) -> Indices:
        """True numbers of rows in ranges of positions."""
        if self.true_counts is None:
            return stop - start
        if self._before is None:
            self._before = block_sums(self.true_counts)
        return rows_before(self.true_counts, self._before, stop) - rows_before(self.true_counts, self._before, start)

    def true_total(self) -> int:
        """How many rows there are."""
        return len(self) if self.true_counts is None else int(self.true_counts.sum())

    def halves(self, start: Indices, stop: Indices, depth: int) -> Indices:
        """Where the second halves of nodes of one depth begin, which are given as ranges.

        Whoever knows the range of a node has asked for the halves of all nodes above it, and thus had its rows ordered.
        """
        if depth >= self._n_ordered and (depth - self._n_ordered) % digit_bits(len(self)) == 0:
            order_further(self.true_codes[:, 0], start, stop, depth)
        word, offset = divmod(depth, 64)
        bit = np.uint64(1 << (63 - offset))
        middle = np.empty_like(start)
        by_slices(
            lambda part: _first_with_bit(self.true_codes, start[part], stop[part], word, bit, middle[part]), len(start)
        )
        return middle

    def distinct(self) -> tuple[Codes, Counts]:
        """The occupied cells, in order, and how many rows are in each."""
        if self.true_counts is not None:
            return self.true_codes, self.true_counts
        return count_runs(sort_rest(self.true_codes, self._n_ordered, self.lattice.depth))

    def rows_below(self, cells: Indices) -> Indices:
        """True numbers of rows in the cells before some cells, of a lattice of one axis.

        Rows are put in order where many agree in their first bits; where few do, they are looked through.
        """
        if not self._is_searched:
            sort_rest(self.true_codes, self._n_ordered, self.lattice.depth, least=_FEW_ROWS)
            self._is_searched = True
        bits = self.lattice.depth
        is_inside = cells >> bits == 0
        codes = np.where(is_inside, cells, 0).astype(np.uint64) << np.uint64(64 - bits)
        found = np.empty_like(cells)
        _codes_below(self.true_codes, codes, self._n_ordered, found)
        stop = np.where(is_inside, found, len(self))
        return stop if self.true_counts is None else self.rows_between(np.zeros_like(stop), stop)

    def rows_by(self, grain: Grain) -> Indices:
        """True numbers of rows in each class of a grain, of a lattice of one axis, in any order of its rows."""
        shift, lock = np.uint64(64 - self.lattice.depth), Lock()
        total = np.zeros(grain.n_classes, dtype=np.int64)

        def count(rows: slice) -> None:
            mine = np.zeros_like(total)
            for start in range(rows.start, rows.stop, _BLOCK):
                here = slice(start, min(start + _BLOCK, rows.stop))
                classes = grain.classes((self.true_codes[here, 0] >> shift).astype(np.int64))
                if self.true_counts is None:
                    mine += np.bincount(classes, minlength=len(mine))
                else:
                    np.add.at(mine, classes, self.true_counts[here].astype(np.int64))
            with lock:
                total[:] += mine

        by_slices(count, len(self))
        return total


@compiled
def _first_with_bit(codes: Codes, start: Indices, stop: Indices, word: int, bit: np.uint64, middle: Indices) -> None:
    """In every range, the first position whose code has the bit, by bisection; `stop` if none has."""
    for i in range(start.size):
        low, high = start[i], stop[i]
        while low < high:
            half = (low + high) // 2
            if codes[half, word] & bit:
                high = half
            else:
                low = half + 1
        middle[i] = low


@compiled
def _codes_below(codes: Codes, probes: NDArray[np.uint64], n_ordered: int, found: Indices) -> None:
    """How many codes are less than each of some. Codes of equal first bits are in order only where they are many."""
    shift = np.uint64(64 - n_ordered)
    n = codes.shape[0]
    for i in range(probes.size):
        low, high = 0, n
        while low < high:
            half = (low + high) // 2
            if codes[half, 0] >> shift < probes[i] >> shift:
                low = half + 1
            else:
                high = half
        last = low + _FEW_ROWS - 1
        if last < n and codes[last, 0] >> shift == probes[i] >> shift:
            high = n
            while low < high:
                half = (low + high) // 2
                if codes[half, 0] < probes[i]:
                    low = half + 1
                else:
                    high = half
            found[i] = low
            continue
        found[i] = low
        while low < n and codes[low, 0] >> shift == probes[i] >> shift:
            found[i] += codes[low, 0] < probes[i]
            low += 1
