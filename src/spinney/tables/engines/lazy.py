"""Tables that other engines hold and hand out batch by batch: polars, DuckDB, Ibis, Dask and Arrow. SENSITIVE.

The engine runs its own query, under its own limits, for the columns that are needed; its batches are counted
here like any table. Messages of other engines may quote the data: they are replaced by ours and kept out of the
chain of causes. No library is imported that did not make the object. Where a library reports which files it
reads, none of them may be there twice (`tables/paths.py`).

    what all share    `open_lazy`: a frame without rows is checked, batches come on demand
    Arrow             datasets, readers, and objects that hand out a stream
    Dask              one partition after the other
    DuckDB            batches, or groups of equal rows with their numbers
    Ibis              batches of whatever backend there is
    polars            batches of its streaming engine
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from functools import partial
from math import prod
from typing import Any
from weakref import WeakSet

import numpy as np
import pyarrow as pa

from spinney.columns import Category, Column
from spinney.counting.counts import CellCounts, encode_rows
from spinney.counting.states import GroupedCells
from spinney.errors import InputError, raise_alone, redacted
from spinney.grid.lattice import Lattice
from spinney.progress import waiting
from spinney.schema.schema import Schema
from spinney.tables.engines.memory import axis_columns
from spinney.tables.engines.stream import StreamSource
from spinney.tables.frames import FrameKind, open_table
from spinney.tables.kinds import not_a_table
from spinney.tables.paths import dataset_reads, duckdb_reads, polars_reads, refuse_repeated_reads
from spinney.tables.source import Batch, prefetch, table_changed

# Rows of a batch: many enough to count with all cores, few enough to be held whatever the number of columns.
MOST_ROWS = 1 << 17
_BATCH_BYTES = 1 << 26


def open_lazy(
    kind: FrameKind,
    empty: Any,
    schema: Schema,
    *,
    frames: Callable[[Sequence[str]], Iterator[Any]],
    count: Callable[[], int],
    what: str,
    make: Callable[..., StreamSource] = StreamSource,
) -> StreamSource:
    """A source, once the frame without rows is known to have exactly the schema's columns, with fitting types.

    Args:
        kind: what synthetic rows come back in.
        empty: a frame in memory with the table's names and types.
        schema: what is public about the table.
        frames: all rows of some columns, in the same order every time.
        count: how many rows there are.
        what: what the table is called in errors.
        make: the kind of source.
    """
    open_table(empty, schema)

    def batches(chosen: Schema) -> Generator[Batch]:
        with redacted_query(what):
            yield from prefetch(frames(list(chosen)), chosen)

    def count_rows() -> int:
        with redacted_query(what):
            return count()

    return make(kind, schema, batches, count_rows)


def batch_rows(n_columns: int, batch_bytes: int | None = None) -> int:
    """How many rows a batch of so many columns has."""
    return max(1, min(MOST_ROWS, (batch_bytes or _BATCH_BYTES) // (8 * n_columns)))


def redacted_query(what: str) -> AbstractContextManager[None]:
    """Errors of another engine as ours, without what they say; an interrupted query is an interruption."""
    return redacted(
        lambda err: InputError(f"{what} could not be computed ({type(err).__name__}); run it by itself to see why")
    )


# ---------------------------------------------------------------------------------------------------------------- Arrow
# Arrow data that is no table in memory: datasets, readers, and objects of any library that hand out a stream.


def open_dataset(dataset: Any, schema: Schema, *, batch_bytes: int | None = None) -> StreamSource:
    """A pyarrow dataset; rows come back as pyarrow tables."""
    import pyarrow.dataset as ds

    what = "the pyarrow dataset"

    def batches(names: Sequence[str]) -> Iterator[Any]:
        # Fields, and not their names, which could be taken for paths into nested columns.
        columns = {name: ds.field(name) for name in names}
        found = dataset.scanner(columns=columns, batch_size=batch_rows(len(names), batch_bytes)).to_batches()
        yield from (pa.Table.from_batches([batch]) for batch in found)

    with redacted_query(what):
        empty = dataset.schema.empty_table()
        refuse_repeated_reads(dataset_reads(dataset))
    return open_lazy("pyarrow", empty, schema, frames=batches, count=lambda: int(dataset.count_rows()), what=what)


# Readers that gave their rows away. What is left of them would be taken for a whole table.
_READ_BEFORE: WeakSet[Any] = WeakSet()


def open_reader(reader: Any, schema: Schema, *, batch_bytes: int | None = None) -> StreamSource:
    """A pyarrow RecordBatchReader, which can be read once only: when rows are first asked for, they are kept in memory.

    Rows come back as pyarrow tables.
    """
    what = "the RecordBatchReader"
    if reader in _READ_BEFORE:
        raise InputError(
            "this RecordBatchReader was read before, and a reader gives its rows once only; make a new one, or read it "
            "into a table (reader.read_all()) and pass that"
        )
    kept: list[pa.Table] = []

    def table() -> pa.Table:
        if not kept:
            _READ_BEFORE.add(reader)
            kept.append(reader.read_all())
        return kept[0]

    def batches(names: Sequence[str]) -> Iterator[Any]:
        found = table().select(list(names)).to_batches(max_chunksize=batch_rows(len(names), batch_bytes))
        yield from (pa.Table.from_batches([batch]) for batch in found)

    with redacted_query(what):
        empty = reader.schema.empty_table()
    return open_lazy("pyarrow", empty, schema, frames=batches, count=lambda: int(table().num_rows), what=what)


def open_stream(stream: Any, schema: Schema, *, batch_bytes: int | None = None) -> StreamSource:
    """Any object that hands out Arrow data; columns that stand alone do so too, and are no tables."""
    with redacted_query("the Arrow stream"):
        try:
            reader = pa.RecordBatchReader.from_stream(stream)
        except pa.ArrowInvalid:
            raise_alone(not_a_table(stream))
    return open_reader(reader, schema, batch_bytes=batch_bytes)


# ----------------------------------------------------------------------------------------------------------------- Dask
# Dask data frames: one partition after the other, computed by Dask.


def open_dask(
    frame: Any,
    schema: Schema,
    *,
    batch_bytes: int | None = None,  # noqa: ARG001  # partitions are Dask's
) -> StreamSource:
    """A Dask data frame, partition by partition; rows come back as pandas frames."""
    what = "the Dask frame"

    def batches(names: Sequence[str]) -> Iterator[Any]:
        chosen = frame[list(names)]
        yield from (chosen.partitions[index].compute() for index in range(chosen.npartitions))

    with redacted_query(what):
        empty = frame._meta.iloc[:0]
    return open_lazy("pandas", empty, schema, frames=batches, count=lambda: len(frame), what=what)


# --------------------------------------------------------------------------------------------------------------- DuckDB
# DuckDB relations: their own connection runs the query and hands out Arrow batches, or groups of equal rows.
#
# Where the schema leaves few different rows, DuckDB groups equal ones by itself and only a row of each group comes
# over, with how often it is there. No arithmetic is left to DuckDB: cells are made of those rows by the same code as
# of all rows. Rows count as equal if their values are, byte by byte: strings are compared as bytes, whatever their
# collation. Of other tables the rows themselves come over; expressions for their cells take DuckDB longer than all
# else together.


_WHAT = "the DuckDB relation"
# Groups of equal rows that DuckDB finds faster than it hands out all rows: their hash table stays in cache.
_MOST_GROUPS = 1 << 17

# Batches of different rows of some columns, and how often each is there.
Groups = Callable[[Sequence[str]], Iterator[tuple[pa.Table, Any]]]


class DuckDBSource(StreamSource):
    """A relation whose rows come over in batches, or in groups of equal ones where these are few."""

    def __init__(self, *given: Any, groups: Groups, types: Mapping[str, pa.DataType], **named: Any) -> None:
        super().__init__(*given, **named)
        self._groups, self._types = groups, types

    def count_cells(self, lattice: Lattice) -> CellCounts:
        names = [axis.name for axis in lattice.axes]
        if prod(_most_values(self.schema[name], self._types[name]) for name in names) > _MOST_GROUPS:
            return super().count_cells(lattice)
        chosen = Schema({name: self.schema[name] for name in names})
        cells = GroupedCells(lattice, n_rows=self.n_rows)
        with waiting("counting cells"), redacted_query(_WHAT):
            for rows, true_counts in self._groups(names):
                codes = np.empty((rows.num_rows, lattice.n_words), dtype=np.uint64)
                encode_rows(axis_columns(open_table(rows, chosen), lattice), lattice, 0, codes)
                cells.add(codes, true_counts)
        if cells.true_total != self.n_rows:
            raise table_changed()
        return cells.merged()


def open_duckdb(relation: Any, schema: Schema, *, batch_bytes: int | None = None) -> StreamSource:
    """A DuckDB relation, run in its own connection; rows come back as pyarrow tables."""
    with redacted_query(_WHAT):
        empty = _first_rows(relation)
        refuse_repeated_reads(duckdb_reads(relation))
    types = {field.name: field.type for field in empty.schema}
    return open_lazy(
        "pyarrow",
        empty,
        schema,
        frames=lambda names: duckdb_batches(relation, names, batch_bytes),
        count=lambda: int(relation.aggregate("count(*)").fetchall()[0][0]),
        what=_WHAT,
        make=partial(DuckDBSource, groups=partial(_groups, relation, types), types=types),
    )


def duckdb_batches(relation: Any, names: Sequence[str], batch_bytes: int | None = None) -> Iterator[Any]:
    """Some columns of a DuckDB relation as pyarrow tables."""
    return _batches(relation.project(", ".join(map(_quoted, names))), batch_rows(len(names), batch_bytes))


def _batches(chosen: Any, n_rows: int) -> Iterator[pa.Table]:
    read = chosen.to_arrow_reader if hasattr(type(chosen), "to_arrow_reader") else chosen.fetch_record_batch
    with closing(read(n_rows)) as reader:
        yield from (pa.Table.from_batches([batch]) for batch in reader)


def _groups(relation: Any, types: Mapping[str, pa.DataType], names: Sequence[str]) -> Iterator[tuple[pa.Table, Any]]:
    """Different rows of some columns, and how often each is there."""
    texts = [name for name in names if _is_text(types[name])]
    columns = [f"encode({_quoted(name)}) AS {_quoted(name)}" if name in texts else _quoted(name) for name in names]
    keys, count = ", ".join(map(_quoted, names)), "n" + "_" * max(map(len, names))
    grouped = relation.project(", ".join(columns)).aggregate(f"{keys}, count(*) AS {_quoted(count)}", keys)
    for table in _batches(grouped, batch_rows(len(names) + 1)):
        true_counts = table[count].to_numpy()
        rows = table.select(list(names))
        for name in texts:
            place = names.index(name)
            rows = rows.set_column(place, name, rows[name].cast(pa.string()))
        yield rows, true_counts


def _most_values(column: Column, kind: pa.DataType) -> float:
    """How many different values a column should have in a table by the schema; infinitely many where it may have any.

    More are no mistake: values outside the bounds are moved there, as in any table, and take longer.
    """
    whole = column._whole_range() if column.is_read and not column._also_reads else None
    is_plain = _is_text(kind) or any(
        is_kind(kind) for is_kind in (pa.types.is_integer, pa.types.is_boolean, pa.types.is_date32)
    )
    if whole is None or not is_plain or (isinstance(column, Category) and column.other is not None):
        return float("inf")
    return whole[1] - whole[0] + 1 + column.nullable


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _first_rows(relation: Any) -> pa.Table:
    """No rows of a relation, with their types."""
    none = relation.limit(0)
    table: pa.Table = (none.to_arrow_table if hasattr(type(none), "to_arrow_table") else none.fetch_arrow_table)()
    return table


# ----------------------------------------------------------------------------------------------------------------- Ibis
# Ibis tables: their backend, whichever it is, runs the query and hands out Arrow batches.


def open_ibis(table: Any, schema: Schema, *, batch_bytes: int | None = None) -> StreamSource:
    """An Ibis table, run by its backend; rows come back as pyarrow tables."""
    what = "the Ibis table"

    def batches(names: Sequence[str]) -> Iterator[Any]:
        reader = table.select(*names).to_pyarrow_batches(chunk_size=batch_rows(len(names), batch_bytes))
        with closing(reader):
            yield from (pa.Table.from_batches([batch]) for batch in reader)

    with redacted_query(what):
        empty = table.schema().to_pyarrow().empty_table()
    return open_lazy(
        "pyarrow", empty, schema, frames=batches, count=lambda: int(table.count().to_pyarrow().as_py()), what=what
    )


# --------------------------------------------------------------------------------------------------------------- polars
# polars LazyFrames: its streaming engine runs the query and hands out batches.


def open_polars(frame: Any, schema: Schema, *, batch_bytes: int | None = None) -> StreamSource:
    """A polars LazyFrame; rows come back as polars frames."""
    import polars

    def count() -> int:
        return int(frame.select(polars.len()).collect(engine="streaming").item())

    with redacted_query("the LazyFrame"):
        empty = polars.DataFrame(schema=frame.collect_schema())
        refuse_repeated_reads(polars_reads(frame))
    return open_lazy(
        "polars",
        empty,
        schema,
        frames=lambda names: polars_batches(frame, names, batch_bytes),
        count=count,
        what="the LazyFrame",
    )


def polars_batches(frame: Any, names: Sequence[str], batch_bytes: int | None = None) -> Iterator[Any]:
    """Some columns of a LazyFrame as polars frames, by its streaming engine."""
    if not hasattr(frame, "collect_batches"):
        raise InputError("this version of polars hands out no batches; install a newer one, or collect the LazyFrame")
    n_rows = batch_rows(len(names), batch_bytes)
    return iter(frame.select(names).collect_batches(chunk_size=n_rows, maintain_order=True))
