"""DuckDB relations: their own connection runs the query and hands out Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa

from spinney.schema.table import Schema
from spinney.tables.engines.lazy import batch_rows, open_lazy, redacted_query
from spinney.tables.engines.stream import StreamSource
from spinney.tables.paths.named import duckdb_reads, refuse_repeated_reads


def open_duckdb(relation: Any, schema: Schema, *, batch_bytes: int | None = None) -> StreamSource:
    """A DuckDB relation, run in its own connection; rows come back as pyarrow tables."""
    what = "the DuckDB relation"
    with redacted_query(what):
        empty = _first_rows(relation)
        refuse_repeated_reads(duckdb_reads(relation))
    return open_lazy(
        "pyarrow",
        empty,
        schema,
        frames=lambda names: duckdb_batches(relation, names, batch_bytes),
        count=lambda: int(relation.aggregate("count(*)").fetchall()[0][0]),
        what=what,
    )


def duckdb_batches(relation: Any, names: Sequence[str], batch_bytes: int | None = None) -> Iterator[Any]:
    """Some columns of a DuckDB relation as pyarrow tables."""
    chosen = relation.project(", ".join('"' + name.replace('"', '""') + '"' for name in names))
    read = chosen.to_arrow_reader if hasattr(type(chosen), "to_arrow_reader") else chosen.fetch_record_batch
    with closing(read(batch_rows(len(names), batch_bytes))) as reader:
        yield from (pa.Table.from_batches([batch]) for batch in reader)


def _first_rows(relation: Any) -> pa.Table:
    """No rows of a relation, with their types."""
    none = relation.limit(0)
    table: pa.Table = (none.to_arrow_table if hasattr(type(none), "to_arrow_table") else none.fetch_arrow_table)()
    return table
