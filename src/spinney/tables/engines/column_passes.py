"""Columns by themselves, counted while a table comes in batches: their cells, or the rows between marks of a ruler.

One pass counts all columns. A column of which there are too many cells is counted between marks; where its tree goes
further, it is read once more by itself, and only the rows in question are counted by their cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from spinney.counting.cell_counter import CellCounter
from spinney.counting.counts import CellCounts, ColumnCounts
from spinney.counting.dense_counter import AnyCounter, cell_counters
from spinney.counting.marks import MarkCounter, Marks
from spinney.schema.lattice import Lattice
from spinney.schema.ruler import RootedRuler
from spinney.tables.engines.batch_passes import EachBatch
from spinney.tables.engines.memory import axis_columns
from spinney.tables.frames import Table
from spinney.tables.ruled_counts import RuledCounts

# Cells of the rows of one column that is read again may take this part of the limit of memory.
_AGAIN_PART = 4


class ColumnPasses:
    """Counts columns, all of them in one pass. SENSITIVE.

    Args:
        each_batch: reads the table.
        n_rows: how many rows there are.
        n_workers: how many threads work at once.
        memory_limit: bytes that counts may take before they go to disk.
        spill_folder: where they go then; None: the folder for temporary files.
    """

    def __init__(
        self, each_batch: EachBatch, *, n_rows: int, n_workers: int, memory_limit: int, spill_folder: str | None
    ) -> None:
        self._each_batch, self._n_rows, self._n_workers = each_batch, n_rows, n_workers
        self._memory_limit, self._spill_folder = memory_limit, spill_folder

    def __repr__(self) -> str:
        return "ColumnPasses(sensitive)"

    def cells(self, lattices: Sequence[Lattice]) -> Iterator[CellCounts]:
        """True counts of every occupied cell, of one lattice after the other."""
        return cast(Iterator[CellCounts], self.ruled(lattices, ()))

    def ruled(self, lattices: Sequence[Lattice], rulers: Sequence[RootedRuler | None]) -> Iterator[ColumnCounts]:
        """The same, or rows between marks, of columns with a ruler whose cells would go to disk."""
        runs = cell_counters(
            lattices,
            n_rows=self._n_rows,
            n_workers=self._n_workers,
            memory_limit=self._memory_limit,
            spill_folder=self._spill_folder,
            rulers=rulers,
        )

        def count(_: int, table: Table) -> None:
            for run in runs:
                run.add(axis_columns(table, run.lattice), 0, table.n_rows)

        names = dict.fromkeys(axis.name for lattice in lattices for axis in lattice.axes)
        try:
            self._each_batch(list(names), "counting cells", count)
        except BaseException:
            _close(runs)
            raise
        return self._merged(runs)

    def _merged(self, runs: list[AnyCounter]) -> Iterator[ColumnCounts]:
        try:
            for run in runs:
                yield self._between(run) if isinstance(run, MarkCounter) else run.merged()
                run.close()
        finally:
            _close(runs)

    def _between(self, run: MarkCounter) -> RuledCounts:
        marks = run.marks
        return RuledCounts(marks, run.between(), lambda is_wanted, n_rows: self._inside(marks, is_wanted, n_rows))

    def _inside(self, marks: Marks, is_wanted: NDArray[np.bool_], n_rows: int) -> CellCounts:
        """Cells of the rows behind some marks, of which there are so many, by one more pass."""
        name = marks.lattice.axes[0].name
        limit = self._memory_limit // _AGAIN_PART
        run = CellCounter(marks.lattice, n_rows=n_rows, memory_limit=limit, spill_folder=self._spill_folder)

        def count(_: int, table: Table) -> None:
            run.put(marks.codes_inside(axis_columns(table, marks.lattice)[0], table.n_rows, is_wanted))

        try:
            self._each_batch([name], "counting cells of a column", count)
            return run.merged()
        finally:
            run.close()


def _close(runs: list[AnyCounter]) -> None:
    for run in runs:
        run.close()
