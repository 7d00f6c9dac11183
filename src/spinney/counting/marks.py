"""Marks: public places along a column with many cells, and counts of the rows between them. SENSITIVE.

A column tree asks how many rows lie before cuts of a public hierarchy (`schema/ruler.py`), and before the ends of piles
at the beginnings of its leaves. Down to some level all these places are marks. Counting rows between neighbouring marks
takes a vector, whatever the number of rows, where their cells would have to be sorted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.counting.cells import AxisCells, missing
from spinney.counting.merging import Counts, counts_type
from spinney.counting.partial_sums import PartialSums
from spinney.counting.states import stairs_before
from spinney.schema.lattice import Lattice
from spinney.schema.ruler import Cells, RootedRuler
from spinney.schema.zorder import Codes

# Rows whose marks are found at once: their cells stay in cache.
_BLOCK = 1 << 14
# Up to this many marks are compared one and all.
_FEW_MARKS = 8
# Marks are searched for from the last one before a range of cells; there are about as many ranges as marks.
_LEAST_RANGE_BITS, _MOST_RANGE_BITS = 12, 20


class Marks:
    """Places along an axis. Public.

    Args:
        lattice: of one axis.
        rooted: the hierarchy of its cuts.
        most_nodes: how many ranges of the hierarchy are told apart, at most, but for its roots and for null.
    """

    def __init__(self, lattice: Lattice, rooted: RootedRuler, *, most_nodes: int) -> None:
        self.lattice, axis = lattice, lattice.axes[0]
        n_cells, ruler = rooted.ruler.n_cells, rooted.ruler
        nodes = rooted.nodes(most_nodes)
        piles = ruler.pile_stops(nodes, np.full_like(nodes, n_cells))
        others = [n_cells, axis.null_cell, axis.null_cell + 1] if axis.nullable else [n_cells]
        self.nodes = self._inside(np.append(nodes, others))
        self.first = self._inside(np.concatenate([self.nodes, piles, [n_cells - 1]]))
        self._finder = MarkFinder(self.first, axis.bits)

    def __len__(self) -> int:
        return len(self.first)

    def find(self, column: AxisCells, start: int, stop: int, cells: Cells, places: NDArray[np.int32]) -> None:
        """Cells of rows start..stop, and the last mark that does not lie after each, into what is given."""
        if column.fill(start, stop, cells):
            raise missing(self.lattice.axes[0].name)
        self._finder.find(cells, places)

    def codes_inside(self, column: AxisCells, n_rows: int, is_wanted: NDArray[np.bool_]) -> Codes:
        """Codes of the rows, of so many, whose mark is wanted. SENSITIVE."""
        shift = np.uint64(64 - self.lattice.depth)
        cells, places = np.empty(_BLOCK, dtype=np.int64), np.empty(_BLOCK, dtype=np.int32)
        found = []
        for start in range(0, n_rows, _BLOCK):
            n_here = min(_BLOCK, n_rows - start)
            self.find(column, start, start + n_here, cells[:n_here], places[:n_here])
            found.append(cells[:n_here][is_wanted[places[:n_here]]])
        return np.concatenate([*found, cells[:0]]).astype(np.uint64).reshape(-1, 1) << shift

    def _inside(self, cells: Cells) -> Cells:
        """The cells of the axis among some, each once, in order."""
        ordered = np.sort(cells[cells >> self.lattice.depth == 0])
        distinct: Cells = ordered[np.append(True, np.diff(ordered) != 0)]
        return distinct


class MarkFinder:
    """Finds marks of cells.

    Args:
        first: the cells that are marks, ascending, from 0 on.
        n_bits: of a cell.
    """

    def __init__(self, first: Cells, n_bits: int) -> None:
        range_bits = min(max(len(first).bit_length(), _LEAST_RANGE_BITS), _MOST_RANGE_BITS)
        before, self._shift = stairs_before(first, n_bits, range_bits)
        self._first, self._before = first, before.astype(np.int32)

    def find(self, cells: Cells, places: NDArray[np.int32]) -> None:
        """Write the number of the last mark that does not lie after each cell."""
        _find_marks(cells, self._first, self._before, self._shift, places)


class MarkCounter:
    """Numbers of rows from each mark up to the next, of all rows so far.

    Args:
        marks: what they are counted between.
        n_rows: how many rows there will be, at most.
        n_copies: how many threads may add at once.
    """

    def __init__(self, marks: Marks, *, n_rows: int, n_copies: int) -> None:
        self.marks = marks
        self._sums = PartialSums(len(marks), n_copies, counts_type(n_rows))

    def __repr__(self) -> str:
        return "MarkCounter(sensitive)"

    @property
    def lattice(self) -> Lattice:
        return self.marks.lattice

    def add(self, columns: list[AxisCells], start: int, stop: int) -> None:
        """Count rows start..stop of a column. Threads may do so at once."""
        places, cells = np.empty(stop - start, dtype=np.int32), np.empty(_BLOCK, dtype=np.int64)
        for first in range(start, stop, _BLOCK):
            n_here = min(_BLOCK, stop - first)
            self.marks.find(columns[0], first, first + n_here, cells[:n_here], places[first - start :][:n_here])
        with self._sums.one() as counts:
            _add_places(places, counts)

    def between(self) -> Counts:
        """All numbers together; nothing is left here."""
        return self._sums.total()

    def close(self) -> None:
        """Forget all rows."""
        self._sums.total()


@compiled
def _find_marks(cells: Cells, first: Cells, before: NDArray[np.int32], shift: int, places: NDArray[np.int32]) -> None:
    """The last mark that does not lie after each cell: by halving, down to a few that are all compared."""
    for i in range(cells.size):
        mark, stop = before[cells[i] >> shift], before[(cells[i] >> shift) + 1] + 1
        while stop - mark > _FEW_MARKS:
            half = (mark + stop) // 2
            if first[half] <= cells[i]:
                mark = half
            else:
                stop = half
        n_passed = 0
        for k in range(mark + 1, stop):
            n_passed += first[k] <= cells[i]
        places[i] = mark + n_passed


@compiled
def _add_places(places: NDArray[np.int32], counts: NDArray[Any]) -> None:
    for row in range(places.size):
        counts[np.uint32(places[row])] += 1
