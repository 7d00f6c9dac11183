"""A table that comes in batches, for tables larger than memory: each batch is a small table in memory, counted as such.

Files, lazy frames, query results: whatever can hand out its rows batch by batch, as often as asked. Threads read
batches and work on them. Batches are read by the same code as any other table, so cells agree to the last bit, and
errors speak the same way. What is held is a batch for each thread, the counts of all cells so far, and, for a forest,
tables of states, or one small number for each row and column where that is little.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from copy import copy
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from spinney.counting.counts import CellCounts, ColumnCounts
from spinney.counting.level_file import level_file
from spinney.counting.state_tables import StateTables
from spinney.counting.states import AnyCut, StateFinder, StateRows, states_array
from spinney.counting.values import ValueCounter, ValueCounts
from spinney.parallel import n_threads, threads
from spinney.progress import progress_bar, waiting
from spinney.schema.lattice import Lattice
from spinney.schema.ruler import RootedRuler
from spinney.schema.rules import Rule
from spinney.schema.table import Schema
from spinney.tables.batches import Batch, Batches, ready
from spinney.tables.engines.batch_passes import BatchPasses, found_states
from spinney.tables.engines.column_passes import ColumnPasses
from spinney.tables.engines.memory import check_values, merged_extremes, part_extremes
from spinney.tables.frames import FrameKind, Table
from spinney.tables.held import HeldRows
from spinney.tables.passes import CountedStates, check_room, is_held
from spinney.tables.source import Source, table_changed
from spinney.tables.tally import Tallies, tally_table

# The most bytes that a batch may take while it is read.
BATCH_BYTES = 1 << 27
# Batches that are ready while all threads are busy.
_MOST_READY = 2


class StreamSource(Source):
    """Rows that are read anew for every question, a batch at a time.

    Args:
        kind: what synthetic rows come back in.
        schema: what is public about the table.
        batches: all rows of some columns, in the same order every time.
        count_rows: how many rows there are.
        memory_limit: bytes that counted cells may take before they go to disk; None: as `SPINNEY_MEMORY_LIMIT` says.
        spill_folder: where they go then; None: the folder for temporary files.
        reads_alone: whether a column by itself takes less time to read than all; of a CSV it does not.
    """

    def __init__(
        self,
        kind: FrameKind,
        schema: Schema,
        batches: Batches,
        count_rows: Callable[[], int],
        *,
        memory_limit: int | None = None,
        spill_folder: str | None = None,
        reads_alone: bool = True,
    ) -> None:
        self.kind = kind
        self.schema = schema
        self._batches = batches
        self._count_rows = count_rows
        self._n_rows: int | None = None
        self._memory_limit, self._spill_folder = memory_limit, spill_folder
        self._reads_alone = reads_alone

    @property
    def n_rows(self) -> int:
        if self._n_rows is None:
            with waiting("counting rows"):
                self._n_rows = self._count_rows()
        return self._n_rows

    def with_schema(self, schema: Schema) -> StreamSource:
        source = copy(self)
        source.schema = schema
        return source

    def materialized(self) -> StreamSource:
        """The same rows, read once, when they are first asked for, and kept in memory."""
        kept: dict[int, Table] = {}

        def batches(schema: Schema) -> Generator[Batch]:
            if not kept:
                read: dict[int, Table] = {}
                self._each(list(self.schema), "reading the table", read.__setitem__)
                kept.update(read)
            for start in sorted(kept):
                yield ready(kept[start].with_schema(schema))

        return StreamSource(
            self.kind,
            self.schema,
            batches,
            lambda: self.n_rows,
            memory_limit=self._memory_limit,
            spill_folder=self._spill_folder,
        )

    def check_values(self) -> None:
        self._each(list(self.schema), "checking values", lambda _, table: check_values(table))

    def tally(self, names: Sequence[str], rules: Sequence[Rule]) -> Tallies:
        tallies, lock = Tallies(), Lock()

        def add(_: int, table: Table) -> None:
            found = tally_table(table, table.schema, rules)
            with lock:
                tallies.add(found)

        self._each(names, "checking values", add)
        return tallies

    def count_cells(self, lattice: Lattice) -> CellCounts:
        return next(self.count_columns([lattice]))

    def count_columns(self, lattices: Sequence[Lattice]) -> Iterator[CellCounts]:
        if not lattices:
            return iter(())
        return self._column_passes().cells(lattices)

    def count_ruled(self, lattices: Sequence[Lattice], rulers: Sequence[RootedRuler | None]) -> Iterator[ColumnCounts]:
        """Between marks, where cells do not fit and a column can be read again by itself."""
        if not self._reads_alone:
            return self.count_columns(lattices)
        return self._column_passes().ruled(lattices, rulers) if lattices else iter(())

    def _column_passes(self) -> ColumnPasses:
        return ColumnPasses(
            self._each,
            n_rows=self.n_rows,
            n_workers=self._n_workers(),
            memory_limit=self.memory_limit,
            spill_folder=self.spill_folder,
        )

    def count_values(self, name: str) -> ValueCounts:
        counter = ValueCounter(name, memory_limit=self.memory_limit)
        self._each([name], "counting values", lambda _, table: counter.add(table.keys(name)))
        return counter.merged()

    def state_rows(self, cuts: Sequence[AnyCut]) -> StateRows:
        rows = states_array(cuts, self.n_rows)
        finders = [StateFinder(cut, rows.true_states.dtype) for cut in cuts]

        def fill(start: int, table: Table) -> None:
            for cut, finder, row in zip(cuts, finders, rows.true_states, strict=True):
                finder.fill([table.physical(name) for name in cut.names], row[start : start + table.n_rows])

        self._each([name for cut in cuts for name in cut.names], "reading columns", fill)
        return rows

    def state_tables(self, cuts: Sequence[AnyCut], *, is_asked_again: bool = False) -> StateTables:
        """Held where levels are small, else counted in passes; with levels on disk where more than one is to come."""
        sizes = tuple(cut.n_states for cut in cuts)
        if is_held(self.n_rows, len(cuts), max(sizes), self.memory_limit):
            return self.state_rows(cuts)
        dtype, levels = states_array(cuts, 0).true_states.dtype, None
        if is_asked_again:
            levels = level_file(self.n_rows, len(cuts), dtype, folder=self.spill_folder)
        passes = BatchPasses(
            self._each,
            cuts,
            n_rows=self.n_rows,
            n_workers=self._n_workers(),
            sums_bytes=self.memory_limit // 4,
            levels=levels,
        )
        return CountedStates(sizes, self.n_rows, passes.count, memory_limit=self.memory_limit, close=passes.close)

    def held_rows(self) -> HeldRows:
        rows = HeldRows(self.schema, self.n_rows)
        self._each(list(self.schema), "reading rows", rows.fill_from)
        return rows

    def sum_states(self, cuts: Sequence[AnyCut], sums: Callable[[StateRows], NDArray[np.int64]]) -> NDArray[np.int64]:
        finders = [StateFinder(cut, states_array(cuts, 0).true_states.dtype) for cut in cuts]
        total, lock = sums(states_array(cuts, 0)), Lock()

        def add(_: int, table: Table) -> None:
            found = sums(found_states(table, cuts, finders))
            with lock:
                total[:] += found

        self._each([name for cut in cuts for name in cut.names], "adding up columns", add)
        return total

    def check_tables(self, n_columns: int, n_cells: int) -> None:
        if not is_held(self.n_rows, n_columns, 1, self.memory_limit):
            check_room(n_cells, self.memory_limit)

    def true_extremes(self, name: str) -> tuple[float, float]:
        """Over all batches; those that hold no finite value say nothing."""
        ends: list[tuple[float, float] | None] = []
        self._each([name], "finding bounds", lambda _, table: ends.append(part_extremes(table, name)))
        return merged_extremes(ends, name)

    def _each(self, names: Iterable[str], what: str, work: Callable[[int, Table], None]) -> None:
        """Have threads work on all batches of some columns, never identifiers, given how many rows come before.

        Errors come in the order of the batches. A table that changes is refused.
        """
        wanted = [name for name in names if self.schema[name].is_read]
        needed = [other for name in wanted for other in self.schema[name].also_reads]
        chosen = Schema({name: self.schema[name] for name in dict.fromkeys([*wanted, *needed])})
        under_way: deque[tuple[Future[None], int]] = deque()
        n_seen = 0
        with progress_bar(self.n_rows, what, unit="row") as bar:

            def settle(n_left: int) -> None:
                while len(under_way) > n_left:
                    future, n_rows = under_way.popleft()
                    future.result()
                    bar.update(n_rows)

            n_workers = self._n_workers()
            with closing(self._batches(chosen)) as batches, threads(n_workers) as pool:
                for batch in batches:
                    start, n_seen = n_seen, n_seen + batch.n_rows
                    if n_seen > self.n_rows:
                        break
                    under_way.append((pool.submit(_work_on, batch, start, work), batch.n_rows))
                    settle(n_workers + _MOST_READY)
                settle(0)
        if n_seen != self.n_rows:
            raise table_changed()

    def _n_workers(self) -> int:
        """As many threads as there are, and as half of the memory limit has room for batches."""
        return min(n_threads(), max(2, self.memory_limit // (2 * BATCH_BYTES)))


def _work_on(batch: Batch, start: int, work: Callable[[int, Table], None]) -> None:
    table = batch.read()
    if table.n_rows != batch.n_rows:
        raise table_changed()
    work(start, table)
