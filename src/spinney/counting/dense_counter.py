"""DenseCounter: cells of a lattice that has few, counted in a vector with a number for each. SENSITIVE.

Most columns by themselves are such: categories, ages, days, amounts in cents within a few thousand. A vector needs no
order and no disk, and its size does not depend on rows. `cell_counters` says which lattices have few cells.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.counting.cell_counter import CellCounter
from spinney.counting.cells import AxisCells, encode_rows
from spinney.counting.counts import CellCounts
from spinney.counting.merging import counts_type
from spinney.counting.partial_sums import PartialSums
from spinney.schema.lattice import Lattice

# Rows that are encoded at once.
_AT_ONCE = 1 << 14
# A vector of so many numbers is made for every thread; of a larger one there is one, and threads take turns.
_SMALL = 1 << 16
# Vectors of all lattices together may take this part of the limit of memory.
_PART = 4
# A vector is worth it up to so many numbers for each row: it is looked through in the end.
_NUMBERS_A_ROW = 4


class DenseCounter:
    """Counts of all rows so far.

    Args:
        lattice: what the rows are counted on, of one word.
        n_rows: how many rows there will be, at most.
        n_workers: how many threads may add at once.
    """

    def __init__(self, lattice: Lattice, *, n_rows: int, n_workers: int) -> None:
        self.lattice = lattice
        self._shift = np.uint64(64 - lattice.depth) if lattice.depth else np.uint64(63)  # without bits all codes are 0
        n_cells = 1 << lattice.depth
        self._sums = PartialSums(n_cells, n_workers if n_cells <= _SMALL else 1, counts_type(n_rows))

    def __repr__(self) -> str:
        return "DenseCounter(sensitive)"

    def add(self, columns: list[AxisCells], start: int, stop: int) -> None:
        """Count rows start..stop of columns. Threads may do so at once."""
        codes = np.empty((stop - start, 1), dtype=np.uint64)
        for first in range(0, stop - start, _AT_ONCE):
            encode_rows(columns, self.lattice, start + first, codes[first : first + _AT_ONCE])
        with self._sums.one() as counts:
            _add_codes(codes, self._shift, counts)

    def merged(self) -> CellCounts:
        """All counts together; nothing is left here."""
        counts = self._sums.total()
        cells = np.flatnonzero(counts)
        codes = cells.astype(np.uint64).reshape(-1, 1) << self._shift
        return CellCounts(self.lattice, codes, counts[cells])

    def close(self) -> None:
        """Forget all rows; what `merged` gave stays."""
        self._sums.total()


AnyCounter = CellCounter | DenseCounter


def cell_counters(
    lattices: Sequence[Lattice], *, n_rows: int, n_workers: int, memory_limit: int, spill_folder: str | None
) -> list[AnyCounter]:
    """A counter for each lattice, all within a limit of memory; those with many cells share what vectors leave."""
    item = counts_type(n_rows).itemsize
    left = memory_limit // _PART
    dense: set[int] = set()
    for place in sorted(range(len(lattices)), key=lambda place: lattices[place].depth):
        n_cells = 1 << lattices[place].depth
        n_bytes = item * n_cells * (n_workers if n_cells <= _SMALL else 1)
        if lattices[place].n_words == 1 and n_cells <= max(_SMALL, _NUMBERS_A_ROW * n_rows) and n_bytes <= left:
            left -= n_bytes
            dense.add(place)
    n_others = max(1, len(lattices) - len(dense))
    limit = (memory_limit - memory_limit // _PART + left) // n_others
    return [
        DenseCounter(lattice, n_rows=n_rows, n_workers=n_workers)
        if place in dense
        else CellCounter(lattice, n_rows=n_rows, memory_limit=limit, spill_folder=spill_folder)
        for place, lattice in enumerate(lattices)
    ]


@compiled
def _add_codes(codes: NDArray[np.uint64], shift: np.uint64, counts: NDArray[np.int32]) -> None:
    for row in range(codes.shape[0]):
        counts[codes[row, 0] >> shift] += 1
