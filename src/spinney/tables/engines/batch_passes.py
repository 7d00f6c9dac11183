"""Passes over a table that comes in batches: threads count tables of states batch by batch, each into sums of its own.

What is held is the batches that are being read and a few vectors of sums, whatever the number of rows. The first pass
may leave the states in a temporary file; later ones then read a byte for each row and column, and decode nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.counting.joint import TableRequest
from spinney.counting.level_file import LevelFile
from spinney.counting.partial_sums import PartialSums
from spinney.counting.states import AnyCut, StateFinder, StateRows, states_array
from spinney.errors import FileError, raise_alone
from spinney.parallel import threads
from spinney.progress import progress_bar
from spinney.tables.frames import Table

# Works on all batches of some columns, given how many rows come before each: names, a title, the work.
EachBatch = Callable[[Sequence[str], str, Callable[[int, Table], None]], None]


class BatchPasses:
    """Counts tables of states, a pass at a time. SENSITIVE.

    Args:
        each_batch: reads the table.
        cuts: how its columns are cut into states.
        n_rows: how many rows there are.
        n_workers: how many threads work at once.
        sums_bytes: what the sums of all threads may take together; there is always one of them.
        levels: where the first pass leaves the states; None: every pass reads the table.
    """

    def __init__(
        self,
        each_batch: EachBatch,
        cuts: Sequence[AnyCut],
        *,
        n_rows: int,
        n_workers: int,
        sums_bytes: int,
        levels: LevelFile | None = None,
    ) -> None:
        self._each_batch, self._cuts, self._n_rows = each_batch, cuts, n_rows
        self._n_workers, self._sums_bytes, self._levels = n_workers, sums_bytes, levels
        self._names = [name for cut in cuts for name in cut.names]
        dtype = states_array(cuts, 0).true_states.dtype
        self._finders = [StateFinder(cut, dtype) for cut in cuts]
        self._n_passes = 0

    def __repr__(self) -> str:
        return "BatchPasses(sensitive)"

    def count(self, request: TableRequest) -> NDArray[np.int64]:
        """The vector of what is asked for, of all rows."""
        self._n_passes += 1
        title = f"counting tables, pass {self._n_passes}"
        n_copies = min(self._n_workers, self._sums_bytes // (8 * max(request.n_numbers, 1)))
        sums = PartialSums(request.n_numbers, n_copies)

        def add(states: NDArray[Any]) -> None:
            with sums.one() as mine:
                request.add(states, mine)

        if self._levels is not None and self._levels.blocks:
            self._read_levels(title, add)
        else:
            self._read_table(title, add)
        return sums.total()

    def close(self) -> None:
        """Give up what is kept on disk."""
        if self._levels is not None:
            self._levels.close()

    def _read_table(self, title: str, add: Callable[[NDArray[Any]], None]) -> None:
        levels = self._levels

        def work(_: int, table: Table) -> None:
            states = found_states(table, self._cuts, self._finders).true_states
            if levels is not None:
                levels.append(states)
            add(states)

        try:
            self._each_batch(self._names, title, work)
        except BaseException:
            self.close()
            raise
        if levels is not None and levels.is_given_up:
            self.close()
            self._levels = None

    def _read_levels(self, title: str, add: Callable[[NDArray[Any]], None]) -> None:
        levels = self._levels
        assert levels is not None

        def work(block: tuple[int, int]) -> int:
            try:
                states = levels.read(block)
            except OSError:
                raise_alone(FileError("a temporary file with counts cannot be read again; is its disk in order?"))
            add(states)
            return block[1]

        with progress_bar(self._n_rows, title, unit="row") as bar, threads(self._n_workers) as pool:
            under_way = deque(pool.submit(work, block) for block in levels.blocks)
            while under_way:
                bar.update(under_way.popleft().result())


def found_states(table: Table, cuts: Sequence[AnyCut], finders: Sequence[StateFinder]) -> StateRows:
    """The states of a batch."""
    rows = states_array(cuts, table.n_rows)
    for cut, finder, row in zip(cuts, finders, rows.true_states, strict=True):
        finder.fill([table.physical(name) for name in cut.names], row)
    return rows
