"""DenseCounter: cells of a lattice that has few, counted in a vector with a number for each. SENSITIVE.

Most columns by themselves are such: categories, ages, days, amounts in cents within a few thousand. A vector needs no
order and no disk, and its size does not depend on rows. `cell_counters` says which lattices have few cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.counting.cell_counter import CellCounter
from spinney.counting.cells import AxisCells, encode_rows, missing
from spinney.counting.counts import CellCounts
from spinney.counting.marks import MarkCounter, Marks
from spinney.counting.merging import counts_type
from spinney.counting.partial_sums import PartialSums
from spinney.schema.lattice import Lattice
from spinney.schema.ruler import RootedRuler

# Rows that are encoded at once.
_AT_ONCE = 1 << 14
# A vector of so many numbers is made for every thread; of a larger one there is one, and threads take turns.
_SMALL = 1 << 16
# Vectors of all lattices together may take this part of the limit of memory.
_PART = 4
# A vector is worth it up to so many numbers for each row: it is looked through in the end.
_NUMBERS_A_ROW = 4
# Marks of all columns together, and numbers of rows between them, may take this part of the limit, and the cells of a
# column that is read again as much.
_MARKS_PART = 4
# Vectors of one column's marks: threads take turns with them for a short while only.
_MOST_COPIES = 4
# Ranges of a hierarchy that marks tell apart, at most, and for how many rows there is one: a tree goes further in few.
_MOST_NODES, _ROWS_A_NODE = 1 << 20, 64


class DenseCounter:
    """Counts of all rows so far.

    Args:
        lattice: what the rows are counted on, of one word.
        n_rows: how many rows there will be, at most.
        n_workers: how many threads may add at once.
    """

    def __init__(self, lattice: Lattice, *, n_rows: int, n_workers: int) -> None:
        self.lattice = lattice
        self._shift = _code_shift(lattice)
        n_cells = 1 << lattice.depth
        self._sums = PartialSums(n_cells, n_workers if n_cells <= _SMALL else 1, counts_type(n_rows))

    def __repr__(self) -> str:
        return "DenseCounter(sensitive)"

    def add(self, columns: list[AxisCells], start: int, stop: int) -> None:
        """Count rows start..stop of columns. Threads may do so at once."""
        if len(columns) == 1:
            self._add_cells(columns[0], start, stop)
            return
        codes = np.empty((stop - start, 1), dtype=np.uint64)
        for first in range(0, stop - start, _AT_ONCE):
            encode_rows(columns, self.lattice, start + first, codes[first : first + _AT_ONCE])
        with self._sums.one() as counts:
            _add_codes(codes, self._shift, counts)

    def _add_cells(self, column: AxisCells, start: int, stop: int) -> None:
        """Of one axis: codes are its cells, and need not be made."""
        cells = np.empty(min(_AT_ONCE, stop - start), dtype=np.int64)
        for first in range(start, stop, _AT_ONCE):
            here = cells[: min(_AT_ONCE, stop - first)]
            if column.fill(first, first + len(here), here):
                raise missing(self.lattice.axes[0].name)
            with self._sums.one() as counts:
                _add_cells(here, counts)

    def merged(self) -> CellCounts:
        """All counts together; nothing is left here."""
        return counts_of_vector(self.lattice, self._sums.total())

    def close(self) -> None:
        """Forget all rows; what `merged` gave stays."""
        self._sums.total()


def counts_of_vector(lattice: Lattice, counts: NDArray[Any]) -> CellCounts:
    """Counts of a lattice of one word, from a vector with a number for each code."""
    cells = np.flatnonzero(counts)
    codes = cells.astype(np.uint64).reshape(-1, 1) << _code_shift(lattice)
    return CellCounts(lattice, codes, counts[cells])


def _code_shift(lattice: Lattice) -> np.uint64:
    """How far codes lie from the end of their word; without bits all are 0."""
    return np.uint64(64 - lattice.depth) if lattice.depth else np.uint64(63)


AnyCounter = CellCounter | DenseCounter | MarkCounter


def cell_counters(
    lattices: Sequence[Lattice],
    *,
    n_rows: int,
    n_workers: int,
    memory_limit: int,
    spill_folder: str | None,
    rulers: Sequence[RootedRuler | None] = (),
) -> list[AnyCounter]:
    """A counter for each lattice, all within a limit of memory; those with many cells share what vectors leave.

    Those of columns with a ruler count between marks, where there is no room for the codes of all rows.
    """
    item = counts_type(n_rows).itemsize
    left = memory_limit // _PART
    dense: set[int] = set()
    for place in sorted(range(len(lattices)), key=lambda place: lattices[place].depth):
        n_cells = 1 << lattices[place].depth
        n_bytes = item * n_cells * (n_workers if n_cells <= _SMALL else 1)
        if lattices[place].n_words == 1 and n_cells <= max(_SMALL, _NUMBERS_A_ROW * n_rows) and n_bytes <= left:
            left -= n_bytes
            dense.add(place)
    others = [place for place in range(len(lattices)) if place not in dense]
    limit = memory_limit - memory_limit // _PART + left
    ruled = {place: rooted for place, rooted in enumerate(rulers) if rooted is not None and place in others}
    if 2 * 8 * n_rows * len(others) <= limit:
        ruled = {}
    marks_bytes = memory_limit // _MARKS_PART // max(1, len(ruled))
    n_copies = min(n_workers, _MOST_COPIES)
    most_nodes = min(_MOST_NODES, n_rows // _ROWS_A_NODE, marks_bytes // (2 * (8 + item * n_copies) + 4))
    limit = (limit - 2 * marks_bytes * len(ruled)) // max(1, len(others) - len(ruled))

    def counter(place: int, lattice: Lattice) -> AnyCounter:
        if place in dense:
            return DenseCounter(lattice, n_rows=n_rows, n_workers=n_workers)
        if place in ruled:
            marks = Marks(lattice, ruled[place], most_nodes=most_nodes)
            return MarkCounter(marks, n_rows=n_rows, n_copies=n_copies)
        return CellCounter(lattice, n_rows=n_rows, memory_limit=limit, spill_folder=spill_folder)

    return [counter(place, lattice) for place, lattice in enumerate(lattices)]


@compiled
def _add_codes(codes: NDArray[np.uint64], shift: np.uint64, counts: NDArray[np.int32]) -> None:
    for row in range(codes.shape[0]):
        counts[codes[row, 0] >> shift] += 1


@compiled
def _add_cells(cells: NDArray[np.int64], counts: NDArray[np.int32]) -> None:
    for row in range(cells.size):
        counts[np.uint64(cells[row])] += 1
