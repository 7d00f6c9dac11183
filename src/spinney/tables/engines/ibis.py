"""Ibis tables: their backend, whichever it is, runs the query and hands out Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa

from spinney.schema.table import Schema
from spinney.tables.engines.lazy import batch_rows, open_lazy, redacted_query
from spinney.tables.engines.stream import StreamSource


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
