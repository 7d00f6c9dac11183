"""A table that comes in batches, for tables larger than memory: each batch is a small table in memory, counted as such.

Files, lazy frames, query results: whatever can hand out its rows batch by batch, as often as asked. Batches are read
by the same code as any other table, so cells agree to the last bit, and errors speak the same way. What is held is a
batch, the counts of all cells so far, and, for a forest, one small number for each row and column.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from spinney.engines.frames import FrameKind, Table
from spinney.engines.memory import check_values, true_extremes
from spinney.engines.runs import Runs
from spinney.engines.source import Source
from spinney.engines.spill import memory_limit
from spinney.engines.states import Cut, StateRows, fill_states, states_array
from spinney.errors import InputError
from spinney.partition.counts import CellCounts
from spinney.progress import progress_bar
from spinney.schema.columns import Identifier
from spinney.schema.lattice import Lattice
from spinney.schema.table import Schema

# For some columns of a schema: all rows, in the same order every time, as tables of one batch each.
Batches = Callable[[Schema], Iterator[Table]]


class StreamSource(Source):
    """Rows that are read anew for every question, a batch at a time."""

    def __init__(self, kind: FrameKind, schema: Schema, batches: Batches, count_rows: Callable[[], int]) -> None:
        self.kind = kind
        self.schema = schema
        self._batches = batches
        self._count_rows = count_rows
        self._n_rows: int | None = None

    @property
    def n_rows(self) -> int:
        if self._n_rows is None:
            self._n_rows = self._count_rows()
        return self._n_rows

    def with_schema(self, schema: Schema) -> StreamSource:
        source = StreamSource(self.kind, schema, self._batches, self._count_rows)
        source._n_rows = self._n_rows
        return source

    def held(self) -> StreamSource:
        """The same rows, read once, when they are first asked for, and kept in memory."""
        kept: list[Table] = []

        def batches(schema: Schema) -> Iterator[Table]:
            if not kept:
                kept.extend(self._read(list(self.schema), "reading the table"))
            return (batch.with_schema(schema) for batch in kept)

        return StreamSource(self.kind, self.schema, batches, lambda: self.n_rows)

    def check_values(self) -> None:
        for batch in self._read(list(self.schema), "checking values"):
            check_values(batch)

    def count_cells(self, lattice: Lattice) -> CellCounts:
        return next(self.count_columns([lattice]))

    def count_columns(self, lattices: Sequence[Lattice]) -> Iterator[CellCounts]:
        if not lattices:
            return iter(())
        names = dict.fromkeys(axis.name for lattice in lattices for axis in lattice.axes)
        limit = memory_limit() // len(lattices)
        runs = [Runs(lattice, n_rows=self.n_rows, limit=limit) for lattice in lattices]
        try:
            with ThreadPoolExecutor() as pool, closing(self._read(names, "counting cells")) as batches:
                for batch in batches:
                    for run in runs:
                        run.add(batch, pool)
            for run in runs:
                run.finish()
        except BaseException:
            _close(runs)
            raise
        return _merged(runs)

    def state_rows(self, cuts: Sequence[Cut]) -> StateRows:
        rows = states_array(cuts, self.n_rows)
        start = 0
        for batch in self._read([cut.axis.name for cut in cuts], "reading columns"):
            fill_states(batch, cuts, rows.true_states[:, start : start + batch.n_rows])
            start += batch.n_rows
        return rows

    def true_extremes(self, name: str) -> tuple[float, float]:
        """Over all batches; those that hold no finite value say nothing."""
        ends = []
        for batch in self._read([name], "finding bounds"):
            try:
                ends.append(true_extremes(batch, name))
            except InputError:
                continue
        if not ends:
            raise InputError(f"column {name!r} holds no finite value, so it has no bounds; state them in the schema")
        return min(low for low, _ in ends), max(high for _, high in ends)

    def _read(self, names: Iterable[str], what: str) -> Generator[Table]:
        """Batches of some columns, never identifiers, with a bar over rows. A table that changes is refused."""
        chosen = Schema({name: self.schema[name] for name in names if not isinstance(self.schema[name], Identifier)})
        n_seen = 0
        with progress_bar(self.n_rows, what, unit="row") as bar:
            for batch in self._batches(chosen):
                n_seen += batch.n_rows
                if n_seen > self.n_rows:
                    break
                yield batch
                bar.update(batch.n_rows)
        if n_seen != self.n_rows:
            raise InputError("the number of rows changed while the table was read; read it when nothing writes to it")


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
