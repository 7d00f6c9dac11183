"""RuledCounts: how many rows of a column lie before the cells that a tree along a ruler asks for. SENSITIVE.

Rows between marks were counted once (`counting/marks.py`), which answers for every cut down to some level and for its
piles. Below it a tree goes in a few places only, and asks for all of them at the same level: then the column is read
once more, by itself, and the cells of the rows there are counted one by one. They must be as many as before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from spinney.counting.counts import CellCounts
from spinney.counting.marks import Marks
from spinney.counting.merging import Counts
from spinney.schema.lattice import Lattice
from spinney.schema.ruler import Cells
from spinney.tables.source import table_changed

# Reads a column again: the cells of the rows that lie behind some marks, of which there are so many.
ReadInside = Callable[[NDArray[np.bool_], int], CellCounts]


class RuledCounts:
    """Answers of one column.

    Args:
        marks: public places along it.
        true_between: how many rows lie from each mark up to the next.
        read_inside: reads it again.
    """

    __slots__ = ("_before", "_inside", "_is_read", "_marks", "_node_before", "_read_inside")

    def __init__(self, marks: Marks, true_between: Counts, read_inside: ReadInside) -> None:
        self._marks, self._read_inside = marks, read_inside
        self._before = np.append(0, np.cumsum(true_between, dtype=np.int64))
        self._node_before = np.append(self._before[np.searchsorted(marks.first, marks.nodes)], self._before[-1])
        self._is_read = np.zeros(len(marks.nodes), dtype=np.bool_)
        self._inside: CellCounts | None = None

    @property
    def lattice(self) -> Lattice:
        return self._marks.lattice

    def true_total(self) -> int:
        """How many rows there are."""
        return int(self._before[-1])

    def rows_below(self, cells: Cells) -> Cells:
        """True numbers of rows in the cells before some cells. Where one is no mark, the column is read again."""
        first = self._marks.first
        mark = np.searchsorted(first, cells, side="right") - 1
        is_beyond = cells >> self.lattice.depth != 0
        below = self._before[np.where(is_beyond, len(first), mark)]
        is_inside = ~is_beyond & (first[mark] != cells)
        if is_inside.any():
            below[is_inside] = self._rows_inside(cells[is_inside], cells[~is_beyond & ~is_inside])
        return below

    def _rows_inside(self, cells: Cells, at_marks: Cells) -> Cells:
        """Of cells that are no marks; others are asked for at the same time."""
        nodes = self._marks.nodes
        node = np.searchsorted(nodes, cells, side="right") - 1
        true_rows = np.diff(self._node_before)
        if (~self._is_read[node] & (true_rows[node] > 0)).any():
            # A short node may be cut where a pile ends, which is a mark; its halves are asked for next.
            other = np.searchsorted(nodes, at_marks, side="right") - 1
            self._read(np.append(node, other[nodes[other] != at_marks]), true_rows)
        below = self._node_before[node]
        if self._inside is None:  # no rows lie there
            return below
        return below + self._inside.rows_below(cells) - self._inside.rows_below(nodes[node])

    def _read(self, node: Cells, true_rows: Cells) -> None:
        """Read all rows of some nodes, and of those that were read before."""
        nodes = self._marks.nodes
        self._is_read[node] = True
        of_marks = self._is_read[np.searchsorted(nodes, self._marks.first, side="right") - 1]
        self._inside = None
        inside = self._read_inside(of_marks, int(true_rows[self._is_read].sum()))
        ends = np.append(nodes[1:], 1 << self.lattice.depth)
        found = inside.rows_below(ends[self._is_read]) - inside.rows_below(nodes[self._is_read])
        if not np.array_equal(found, true_rows[self._is_read]):
            raise table_changed()
        self._inside = inside

    def __repr__(self) -> str:
        return "RuledCounts(sensitive)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("RuledCounts holds private counts and is never pickled")
