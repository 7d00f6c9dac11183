"""Tables that other engines hold: polars LazyFrames, DuckDB relations, Ibis tables, Dask frames, batch by batch.

The engine runs its own query, under its own limits, for the columns that are asked for; its batches are counted here
like any table. Messages of other engines may quote the data: they are replaced by ours and kept out of the chain of
causes. No library is imported here that did not make the object.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pyarrow as pa

from spinney.engines.frames import FrameKind, open_table
from spinney.engines.stream import Piece, StreamSource, read_ahead
from spinney.errors import InputError, SpinneyError
from spinney.schema.table import Schema

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
    return _open("polars", empty, schema, lambda names: polars_batches(frame, names), count, "the LazyFrame")


def open_duckdb(relation: Any, schema: Schema) -> StreamSource:
    """A DuckDB relation, run in its own connection; rows come back as pyarrow tables."""
    what = "the DuckDB relation"
    with told(what):
        empty = _first_rows(relation)
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
    batches: Callable[[Sequence[str]], Iterator[Any]],
    count: Callable[[], int],
    what: str,
) -> StreamSource:
    """A source, once the frame without rows is known to have exactly the schema's columns, with fitting types."""
    open_table(empty, schema)

    def pieces(chosen: Schema) -> Generator[Piece]:
        with told(what):
            yield from read_ahead(batches(list(chosen)), chosen)

    def count_rows() -> int:
        with told(what):
            return count()

    return StreamSource(kind, schema, pieces, count_rows)


@contextmanager
def told(what: str) -> Iterator[None]:
    """Errors of another engine as ours, without what they say; an interrupted query is an interruption."""
    try:
        yield
    except (SpinneyError, MemoryError):
        raise
    except BaseException as err:
        name = type(err).__name__
        if name == "InterruptException":
            raise KeyboardInterrupt from None
        # A panic of a compiled engine is no Exception, and quotes what it stumbled over all the same.
        if not isinstance(err, Exception) and name != "PanicException":
            raise
        raise InputError(f"{what} could not be computed ({name}); run it by itself to see why") from None
