"""A table that comes in pieces, for tables larger than memory: each piece is a small table in memory, counted as such.

Files, lazy frames, query results: whatever can hand out its rows piece by piece, as often as asked. Threads read pieces
and work on them. Pieces are read by the same code as any other table, so cells agree to the last bit, and errors
speak the same way. What is held is a piece for each thread, the counts of all cells so far, and, for a forest, one
small number for each row and column.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from threading import Lock
from typing import Any, NamedTuple

from spinney.engines.cells import axis_columns
from spinney.engines.frames import FrameKind, Table, open_table
from spinney.engines.memory import check_values, merged_extremes, part_extremes
from spinney.engines.runs import Runs
from spinney.engines.source import Source
from spinney.engines.spill import memory_limit
from spinney.engines.states import Cut, StateRows, fill_states, states_array
from spinney.engines.tally import Tallies, tally_table
from spinney.errors import InputError
from spinney.partition.counts import CellCounts
from spinney.progress import progress_bar, waiting
from spinney.schema.columns import Identifier
from spinney.schema.lattice import Lattice
from spinney.schema.rules import Rule
from spinney.schema.table import Schema

# The most bytes that a piece may take while it is read.
PIECE_BYTES = 1 << 27
# Pieces that are ready while all threads are busy.
_MOST_READY = 2


class Piece(NamedTuple):
    """Some rows of a table: how many there are, and how a thread gets at them."""

    n_rows: int
    read: Callable[[], Table]

    def __repr__(self) -> str:
        return "Piece(sensitive)"


# For some columns of a schema: all rows, in the same order every time.
Pieces = Callable[[Schema], Generator[Piece]]


class StreamSource(Source):
    """Rows that are read anew for every question, a piece at a time."""

    def __init__(self, kind: FrameKind, schema: Schema, pieces: Pieces, count_rows: Callable[[], int]) -> None:
        self.kind = kind
        self.schema = schema
        self._pieces = pieces
        self._count_rows = count_rows
        self._n_rows: int | None = None

    @property
    def n_rows(self) -> int:
        if self._n_rows is None:
            with waiting("counting rows"):
                self._n_rows = self._count_rows()
        return self._n_rows

    def with_schema(self, schema: Schema) -> StreamSource:
        source = StreamSource(self.kind, schema, self._pieces, self._count_rows)
        source._n_rows = self._n_rows
        return source

    def held(self) -> StreamSource:
        """The same rows, read once, when they are first asked for, and kept in memory."""
        kept: dict[int, Table] = {}

        def pieces(schema: Schema) -> Generator[Piece]:
            if not kept:
                read: dict[int, Table] = {}
                self._each(list(self.schema), "reading the table", read.__setitem__)
                kept.update(read)
            for start in sorted(kept):
                yield ready(kept[start].with_schema(schema))

        return StreamSource(self.kind, self.schema, pieces, lambda: self.n_rows)

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
        names = dict.fromkeys(axis.name for lattice in lattices for axis in lattice.axes)
        limit = memory_limit() // len(lattices)
        runs = [Runs(lattice, n_rows=self.n_rows, limit=limit) for lattice in lattices]

        def count(_: int, table: Table) -> None:
            for run in runs:
                run.add(axis_columns(table, run.lattice), 0, table.n_rows)

        try:
            self._each(names, "counting cells", count)
        except BaseException:
            _close(runs)
            raise
        return _merged(runs)

    def state_rows(self, cuts: Sequence[Cut]) -> StateRows:
        rows = states_array(cuts, self.n_rows)

        def fill(start: int, table: Table) -> None:
            fill_states(table, cuts, rows.true_states[:, start : start + table.n_rows])

        self._each([cut.axis.name for cut in cuts], "reading columns", fill)
        return rows

    def true_extremes(self, name: str) -> tuple[float, float]:
        """Over all pieces; those that hold no finite value say nothing."""
        ends: list[tuple[float, float] | None] = []
        self._each([name], "finding bounds", lambda _, table: ends.append(part_extremes(table, name)))
        return merged_extremes(ends, name)

    def _each(self, names: Iterable[str], what: str, work: Callable[[int, Table], None]) -> None:
        """Have threads work on all pieces of some columns, never identifiers, given how many rows come before.

        Errors come in the order of the pieces. A table that changes is refused.
        """
        chosen = Schema({name: self.schema[name] for name in names if not isinstance(self.schema[name], Identifier)})
        under_way: deque[tuple[Future[None], int]] = deque()
        n_seen = 0
        with progress_bar(self.n_rows, what, unit="row") as bar:

            def settle(n_left: int) -> None:
                while len(under_way) > n_left:
                    future, n_rows = under_way.popleft()
                    future.result()
                    bar.update(n_rows)

            with ThreadPoolExecutor(_n_threads()) as pool, closing(self._pieces(chosen)) as pieces:
                try:
                    for piece in pieces:
                        start, n_seen = n_seen, n_seen + piece.n_rows
                        if n_seen > self.n_rows:
                            break
                        under_way.append((pool.submit(_work_on, piece, start, work), piece.n_rows))
                        settle(_n_threads() + _MOST_READY)
                    settle(0)
                except BaseException:
                    pool.shutdown(cancel_futures=True)
                    raise
        if n_seen != self.n_rows:
            raise changed()


def read_ahead(frames: Iterable[Any], schema: Schema) -> Iterator[Piece]:
    """Frames as pieces, each read before it is asked for."""
    for frame in frames:
        if len(frame):
            yield ready(open_table(frame, schema))


def ready(table: Table) -> Piece:
    """A piece that was read before."""
    return Piece(table.n_rows, lambda: table)


def changed() -> InputError:
    return InputError("the number of rows changed while the table was read; read it when nothing writes to it")


def _work_on(piece: Piece, start: int, work: Callable[[int, Table], None]) -> None:
    table = piece.read()
    if table.n_rows != piece.n_rows:
        raise changed()
    work(start, table)


def _n_threads() -> int:
    """As many as there are cores, and as half of the memory limit has room for pieces."""
    return min(os.cpu_count() or 1, max(2, memory_limit() // (2 * PIECE_BYTES)))


def _merged(runs: list[Runs]) -> Iterator[CellCounts]:
    try:
        for run in runs:
            yield run.merged()
            run.close()
    finally:
        _close(runs)


def _close(runs: list[Runs]) -> None:
    for run in runs:
        run.close()
