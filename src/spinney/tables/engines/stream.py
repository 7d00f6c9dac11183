"""A table that comes in batches, and may be larger than memory: files, lazy frames, queries. SENSITIVE.

    passes over batches    threads count tables of states batch by batch, each into sums of its own
    counted states         tables of a forest, in as few passes as the limit of memory allows
    ruled counts           rows before the cells that a tree along a ruler asks for
    stream source          `StreamSource`: the answers to a synthesizer's questions

Batches are read by the same code as any other table, so cells agree to the last bit. Passes over a table that
does not change are one table: what two passes say is compared, and a table that changed is refused
(engines.proof.md).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from copy import copy
from functools import partial
from itertools import combinations
from threading import Lock
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from spinney.counting.counter import (
    AnyCounter,
    CellCounter,
    MarkCounter,
    Marks,
    PartialSums,
    ValueCounter,
    ValueCounts,
    cell_counters,
)
from spinney.counting.counts import CellCounts, ColumnCounts
from spinney.counting.joint import Clique, Groups, TableRequest, TrueTable, group_table
from spinney.counting.sorting import Counts
from spinney.counting.spill import LevelFile, level_file
from spinney.counting.states import (
    AnyCut,
    KeptGroupTables,
    KeptTables,
    StateFinder,
    StateRows,
    StateTables,
    states_array,
)
from spinney.errors import FileError, ParameterError, raise_alone
from spinney.grid.grain import Grain
from spinney.grid.lattice import Lattice
from spinney.grid.ruler import Cells, RootedRuler
from spinney.machine import n_threads, threads
from spinney.progress import progress_bar, waiting
from spinney.schema.rules import Rule
from spinney.schema.schema import Schema
from spinney.tables.engines.memory import axis_columns, check_values, merged_extremes, part_extremes
from spinney.tables.frames import FrameKind, Table
from spinney.tables.source import Batch, Batches, HeldRows, Source, ready, table_changed
from spinney.tables.tally import Tallies, tally_table
from spinney.text import NeverPickled, Sensitive

# -------------------------------------------------------------------------------------------------- passes over batches
# Passes over a table that comes in batches: threads count tables of states batch by batch, each into sums of its own.
#
# What is held is the batches that are being read and a few vectors of sums, whatever the number of rows. The first
# pass may leave the states in a temporary file; later ones then read a byte for each row and column, and decode
# nothing.


# Works on all batches of some columns, given how many rows come before each: names, a title, the work.
EachBatch = Callable[[Sequence[str], str, Callable[[int, Table], None]], None]


class BatchPasses(Sensitive):
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


# ------------------------------------------------------------------------------------------------------- counted states
# Tables of a forest that are counted where the rows are: in passes, of which each counts many tables.
#
# How a table is counted follows from public numbers (the model of costs in `is_held` and `CountedStates`):
#
#     held        a byte for each row and column, if that is no more than half of the limit of memory: one
#                 pass, and none for later questions
#     counted     otherwise; all pairs, or with a target all triples with it, in one pass if their tables take
#                 no more than a quarter of the limit, which does not depend on rows; later, a pass for what a
#                 turn compares and one for what it chose
#     in portions where there are so many columns that the tables of all pairs take more: a pass for as many
#                 as fit
#
# Passes over a table that does not change are one table. So every table must agree with those of earlier
# passes: its sums over all but one or two columns are compared with what was counted before (engines.proof.md).


T = TypeVar("T")

# Levels of rows may take this part of the limit, and tables that are kept, or are being counted, that part each.
_HELD_PART, _TABLE_PART = 2, 4
_NUMBER_BYTES = 8
# A cell of the largest table has to fit into what tables may take.
_BYTES_A_CELL = _NUMBER_BYTES * _TABLE_PART


def is_held(n_rows: int, n_columns: int, most_states: int, memory_limit: int) -> bool:
    """Whether the levels of all rows are held: they take no more than half of the limit."""
    return n_rows * n_columns * (1 if most_states <= 256 else 2) <= memory_limit // _HELD_PART


def check_room(n_cells: int, memory_limit: int) -> None:
    """Raise a ParameterError where the limit has no room for a table of so many cells."""
    n_bytes = _BYTES_A_CELL * n_cells
    if n_bytes > memory_limit:
        raise ParameterError(
            f"SPINNEY_MEMORY_LIMIT is {memory_limit:,} bytes, and the largest table of this forest, of {n_cells:,} "
            f"cells, needs {n_bytes:,} to be counted; set SPINNEY_MEMORY_LIMIT={math.ceil(n_bytes / 2**20)}MiB or "
            "more, or choose a lower quality or a smaller workload"
        )


class CountedStates(StateTables):
    """Tables that passes over the rows count. SENSITIVE.

    Args:
        sizes: how many states each column has.
        n_rows: how many rows there are.
        count: makes one pass, and gives the vector of what is asked for.
        memory_limit: bytes for all tables together and half of what else there is.
        close: called at the end.
    """

    def __init__(
        self,
        sizes: tuple[int, ...],
        n_rows: int,
        count: Callable[[TableRequest], NDArray[np.int64]],
        *,
        memory_limit: int,
        close: Callable[[], None],
    ) -> None:
        super().__init__(sizes, n_rows)
        self._count, self._close = count, close
        self._most_kept = memory_limit // _TABLE_PART // _NUMBER_BYTES
        self._kept, self._ready = KeptTables(self._most_kept), KeptTables(0)
        self._coarse = KeptGroupTables(self._most_kept // 2)
        self._ones: dict[int, TrueTable] = {}  # how many rows each state of a column has

    def prepare(self, cliques: Sequence[Clique], *, keeps: bool = False) -> None:
        """Have tables counted together. Those that there is no room for are counted when they are asked for."""
        if not keeps:
            self._ready = KeptTables(self._most_kept)
        place = self._kept if keeps else self._ready
        wanted, n_cells = [], 0
        for clique in dict.fromkeys(tuple(sorted(clique)) for clique in cliques):
            size = math.prod(self.sizes[column] for column in clique)
            if clique not in self._kept and place.has_room(n_cells + size):
                wanted.append(clique)
                n_cells += size
        for some, tables in self._passes(wanted, None):
            for clique, table in zip(some, tables, strict=True):
                place.keep(clique, table.copy())

    def true_each(
        self, cliques: Sequence[Clique], use: Callable[[int, TrueTable], T], *, groups: Groups | None = None
    ) -> list[T]:
        found: dict[Clique, T] = {}
        places = {clique: place for place, clique in enumerate(cliques)}
        missing = []
        for clique, place in places.items():
            table = self._known(clique, groups)
            if table is None:
                missing.append(clique)
            else:
                found[clique] = use(place, table)
        for some, tables in self._passes(missing, groups):
            for clique, table in zip(some, tables, strict=True):
                if groups is not None:
                    self._coarse.keep(clique, groups, table)
                found[clique] = use(places[clique], table)
        return [found[clique] for clique in cliques]

    def close(self) -> None:
        self._kept.clear()
        self._ready.clear()
        self._coarse.clear()
        self._ones.clear()
        self._close()

    def _known(self, clique: Clique, groups: Groups | None = None) -> TrueTable | None:
        table = None if groups is None else self._coarse.get(clique, groups)
        for kept in (self._kept, self._ready):
            table = kept.get(clique, groups) if table is None else table
        return table

    def _passes(
        self, cliques: Sequence[Clique], groups: Groups | None
    ) -> Iterator[tuple[list[Clique], list[TrueTable]]]:
        """Tables of cliques, as many in one pass as there is room for, once they agree with those before."""
        for some in self._portions(cliques, groups):
            request = TableRequest(self.sizes, some, groups)
            tables = list(request.tables(self._count(request)))
            seen: dict[Clique, TrueTable | None] = {}  # what earlier passes say of columns and pairs
            for clique, table in zip(some, tables, strict=True):
                self._compare(clique, table, groups, seen)
            yield some, tables

    def _portions(self, cliques: Sequence[Clique], groups: Groups | None) -> Iterator[list[Clique]]:
        """Cliques whose tables, counted by two threads and summed, take what tables may take, or single ones."""
        widths = self.sizes if groups is None else [int(group.max()) + 1 for group in groups]
        some: list[Clique] = []
        n_cells = 0
        for clique in cliques:
            size = math.prod(widths[column] for column in clique)
            if some and n_cells + size > self._most_kept // 3:
                yield some
                some, n_cells = [], 0
            some.append(clique)
            n_cells += size
        if some:
            yield some

    def _compare(
        self, clique: Clique, table: TrueTable, groups: Groups | None, seen: dict[Clique, TrueTable | None]
    ) -> None:
        """Raise if a table is not of the rows that earlier passes saw."""
        if int(table.sum()) != self.n_rows:
            raise table_changed()
        within: list[Clique] = [(axis,) for axis in range(len(clique))]
        if len(clique) > 2:
            within += combinations(range(len(clique)), 2)
        for axes in within:
            part = tuple(clique[axis] for axis in axes)
            sums = table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in axes))
            if part not in seen:
                seen[part] = self._seen_before(part, groups)
            known = seen[part]
            if known is None:
                seen[part] = sums
                if groups is None and len(part) == 1:
                    self._ones[part[0]] = sums
            elif not np.array_equal(sums, known):
                raise table_changed()

    def _seen_before(self, part: Clique, groups: Groups | None) -> TrueTable | None:
        """What earlier passes say of a column or a pair."""
        if len(part) > 1:
            return self._kept.get(part, groups)
        known = self._ones.get(part[0])
        return known if known is None or groups is None else group_table(known, part, groups)


# --------------------------------------------------------------------------------------------------------- ruled counts
# RuledCounts: how many rows of a column lie before the cells that a tree along a ruler asks for. SENSITIVE.
#
# Rows between marks were counted once (`counting/counter.py`), which answers for every cut down to some level and for
# its piles. Below it a tree goes in a few places only, and asks for all of them at the same level: then the column is
# read once more, by itself, and the cells of the rows there are counted one by one. They must be as many as before.


# Reads a column again: the cells of the rows that lie behind some marks, of which there are so many.
ReadInside = Callable[[NDArray[np.bool_], int], CellCounts]


class RuledCounts(NeverPickled):
    """Answers of one column.

    Args:
        marks: public places along it.
        true_numbers: how many rows lie from each mark up to the next, then how many are in each class of the grain.
        read_inside: reads it again.
    """

    __slots__ = ("_before", "_inside", "_is_read", "_marks", "_node_before", "_read_inside", "_true_by_class")

    def __init__(self, marks: Marks, true_numbers: Counts, read_inside: ReadInside) -> None:
        self._marks, self._read_inside = marks, read_inside
        self._before = np.append(0, np.cumsum(true_numbers[: len(marks)], dtype=np.int64))
        self._true_by_class = true_numbers[len(marks) :].astype(np.int64)
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

    def rows_by(self, grain: Grain) -> Cells:
        """True numbers of rows in each class of the grain that was counted."""
        assert grain is self._marks.grain
        return self._true_by_class

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


# -------------------------------------------------------------------------------------------------------- stream source
# Whatever can hand out its rows batch by batch, as often as asked; each batch is a small table in memory.
#
# Threads read batches and work on them. Errors speak as those of any other table. What is held is a batch for
# each thread, the counts of all cells so far, and, for a forest, tables of states, or one small number for each
# row and column where that is little.
#
# One pass counts all columns by themselves. A column of which there are too many cells is counted between marks of
# its ruler; where its tree goes further, it is read once more by itself, and only the rows in question are counted by
# their cells.


# The most bytes that a batch may take while it is read.
BATCH_BYTES = 1 << 27
# Batches that are ready while all threads are busy.
_MOST_READY = 2
# Cells of the rows of one column that is read again may take this part of the limit of memory.
_AGAIN_PART = 4


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
        return cast(Iterator[CellCounts], self._counted(lattices, ()))

    def count_ruled(self, lattices: Sequence[Lattice], rulers: Sequence[RootedRuler | None]) -> Iterator[ColumnCounts]:
        """Between marks, where cells do not fit and a column can be read again by itself."""
        return self._counted(lattices, rulers if self._reads_alone else ())

    def _counted(self, lattices: Sequence[Lattice], rulers: Sequence[RootedRuler | None]) -> Iterator[ColumnCounts]:
        """True counts of every occupied cell, of one lattice after the other, or of columns with a ruler between marks.

        The one pass is made before the first counts are asked for.
        """
        if not lattices:
            return iter(())
        runs = cell_counters(
            lattices,
            n_rows=self.n_rows,
            n_workers=self._n_workers(),
            memory_limit=self.memory_limit,
            spill_folder=self.spill_folder,
            rulers=rulers,
        )

        def count(_: int, table: Table) -> None:
            for run in runs:
                run.add(axis_columns(table, run.lattice), 0, table.n_rows)

        names = dict.fromkeys(axis.name for lattice in lattices for axis in lattice.axes)
        try:
            self._each(names, "counting cells", count)
        except BaseException:
            _close(runs)
            raise
        return self._merged(runs)

    def _merged(self, runs: list[AnyCounter]) -> Iterator[ColumnCounts]:
        try:
            for run in runs:
                if isinstance(run, MarkCounter):
                    yield RuledCounts(run.marks, run.numbers(), partial(self._inside, run.marks))
                else:
                    yield run.merged()
                run.close()
        finally:
            _close(runs)

    def _inside(self, marks: Marks, is_wanted: NDArray[np.bool_], n_rows: int) -> CellCounts:
        """Cells of the rows behind some marks, of which there are so many, by one more pass."""
        limit = self.memory_limit // _AGAIN_PART
        run = CellCounter(marks.lattice, n_rows=n_rows, memory_limit=limit, spill_folder=self.spill_folder)

        def count(_: int, table: Table) -> None:
            run.put(marks.codes_inside(axis_columns(table, marks.lattice)[0], table.n_rows, is_wanted))

        try:
            self._each([marks.lattice.axes[0].name], "counting cells of a column", count)
            return run.merged()
        finally:
            run.close()

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
        needed = [other for name in wanted for other in self.schema[name]._also_reads]
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


def _close(runs: list[AnyCounter]) -> None:
    for run in runs:
        run.close()


def _work_on(batch: Batch, start: int, work: Callable[[int, Table], None]) -> None:
    table = batch.read()
    if table.n_rows != batch.n_rows:
        raise table_changed()
    work(start, table)
