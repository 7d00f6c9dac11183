"""Tables that other engines hold: polars LazyFrames, DuckDB relations, Ibis tables, Dask frames, pyarrow datasets and
streams, batch by batch.

The engine runs its own query, under its own limits, for the columns that are asked for; its batches are counted here
like any table. Messages of other engines may quote the data: they are replaced by ours and kept out of the chain of
causes. No library is imported here that did not make the object. Where one tells which files it reads, none of them may
be there twice (`named.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from typing import Any
from weakref import WeakSet

import pyarrow as pa

from spinney.errors import InputError
from spinney.redacted import redacted
from spinney.schema.table import Schema
from spinney.tables.engines.stream import Batch, StreamSource, prefetch
from spinney.tables.frames import FrameKind, open_table
from spinney.tables.paths.named import dataset_reads, duckdb_reads, polars_reads, refuse_repeated_reads

# Rows of a batch: many enough to count with all cores, few enough to be held whatever the number of columns.
_MOST_ROWS = 1 << 17
_BATCH_BYTES = 1 << 26


def open_polars(frame: Any, schema: Schema) -> StreamSource:
    """A polars LazyFrame; rows come back as polars frames."""
    import polars

    def count() -> int:
        return int(frame.select(polars.len()).collect(engine="streaming").item())

    with told("the LazyFrame"):
        empty = polars.DataFrame(schema=frame.collect_schema())
        refuse_repeated_reads(polars_reads(frame))
    return _open("polars", empty, schema, lambda names: polars_batches(frame, names), count, "the LazyFrame")


def open_duckdb(relation: Any, schema: Schema) -> StreamSource:
    """A DuckDB relation, run in its own connection; rows come back as pyarrow tables."""
    what = "the DuckDB relation"
    with told(what):
        empty = _first_rows(relation)
        refuse_repeated_reads(duckdb_reads(relation))
    return _open(
        "pyarrow",
        empty,
        schema,
        lambda names: duckdb_batches(relation, names),
        lambda: int(relation.aggregate("count(*)").fetchall()[0][0]),
        what,
    )


def open_ibis(table: Any, schema: Schema) -> StreamSource:
    """An Ibis table, run by its backend; rows come back as pyarrow tables."""
    what = "the Ibis table"

    def batches(names: Sequence[str]) -> Iterator[Any]:
        reader = table.select(*names).to_pyarrow_batches(chunk_size=batch_rows(len(names)))
        with closing(reader):
            yield from (pa.Table.from_batches([batch]) for batch in reader)

    with told(what):
        empty = table.schema().to_pyarrow().empty_table()
    return _open("pyarrow", empty, schema, batches, lambda: int(table.count().to_pyarrow().as_py()), what)


def open_dask(frame: Any, schema: Schema) -> StreamSource:
    """A Dask data frame, partition by partition; rows come back as pandas frames."""
    what = "the Dask frame"

    def batches(names: Sequence[str]) -> Iterator[Any]:
        chosen = frame[list(names)]
        yield from (chosen.partitions[index].compute() for index in range(chosen.npartitions))

    with told(what):
        empty = frame._meta.iloc[:0]
    return _open("pandas", empty, schema, batches, lambda: len(frame), what)


def open_dataset(dataset: Any, schema: Schema) -> StreamSource:
    """A pyarrow dataset; rows come back as pyarrow tables."""
    import pyarrow.dataset as ds

    what = "the pyarrow dataset"

    def batches(names: Sequence[str]) -> Iterator[Any]:
        # Fields, and not their names, which could be taken for paths into nested columns.
        columns = {name: ds.field(name) for name in names}
        found = dataset.scanner(columns=columns, batch_size=batch_rows(len(names))).to_batches()
        yield from (pa.Table.from_batches([batch]) for batch in found)

    with told(what):
        empty = dataset.schema.empty_table()
        refuse_repeated_reads(dataset_reads(dataset))
    return _open("pyarrow", empty, schema, batches, lambda: int(dataset.count_rows()), what)


# Readers that gave their rows away. What is left of them would be taken for a whole table.
_READ_BEFORE: WeakSet[Any] = WeakSet()


def open_reader(reader: Any, schema: Schema) -> StreamSource:
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
        found = table().select(list(names)).to_batches(max_chunksize=batch_rows(len(names)))
        yield from (pa.Table.from_batches([batch]) for batch in found)

    with told(what):
        empty = reader.schema.empty_table()
    return _open("pyarrow", empty, schema, batches, lambda: int(table().num_rows), what)


def polars_batches(frame: Any, names: Sequence[str]) -> Iterator[Any]:
    """Some columns of a LazyFrame as polars frames, by its streaming engine."""
    if not hasattr(frame, "collect_batches"):
        raise InputError("this version of polars hands out no batches; install a newer one, or collect the LazyFrame")
    return iter(frame.select(names).collect_batches(chunk_size=batch_rows(len(names)), maintain_order=True))


def duckdb_batches(relation: Any, names: Sequence[str]) -> Iterator[Any]:
    """Some columns of a DuckDB relation as pyarrow tables."""
    chosen = relation.project(", ".join('"' + name.replace('"', '""') + '"' for name in names))
    read = chosen.to_arrow_reader if hasattr(type(chosen), "to_arrow_reader") else chosen.fetch_record_batch
    with closing(read(batch_rows(len(names)))) as reader:
        yield from (pa.Table.from_batches([batch]) for batch in reader)


def batch_rows(n_columns: int) -> int:
    """How many rows a batch of so many columns has."""
    return max(1, min(_MOST_ROWS, _BATCH_BYTES // (8 * n_columns)))


def _first_rows(relation: Any) -> pa.Table:
    """No rows of a relation, with their types."""
    none = relation.limit(0)
    table: pa.Table = (none.to_arrow_table if hasattr(type(none), "to_arrow_table") else none.fetch_arrow_table)()
    return table


def _open(
    kind: FrameKind,
    empty: Any,
    schema: Schema,
    frames: Callable[[Sequence[str]], Iterator[Any]],
    count: Callable[[], int],
    what: str,
) -> StreamSource:
    """A source, once the frame without rows is known to have exactly the schema's columns, with fitting types."""
    open_table(empty, schema)

    def batches(chosen: Schema) -> Generator[Batch]:
        with told(what):
            yield from prefetch(frames(list(chosen)), chosen)

    def count_rows() -> int:
        with told(what):
            return count()

    return StreamSource(kind, schema, batches, count_rows)


def told(what: str) -> AbstractContextManager[None]:
    """Errors of another engine as ours, without what they say; an interrupted query is an interruption."""
    return redacted(
        lambda err: InputError(f"{what} could not be computed ({type(err).__name__}); run it by itself to see why")
    )
