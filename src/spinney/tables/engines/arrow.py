"""Arrow data that is no table in memory: datasets, readers, and objects of any library that hand out a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakSet

import pyarrow as pa

from spinney.errors import InputError, raise_alone
from spinney.schema.table import Schema
from spinney.tables.engines.lazy import batch_rows, open_lazy, redacted_query
from spinney.tables.engines.stream import StreamSource
from spinney.tables.kinds import not_a_table
from spinney.tables.paths.named import dataset_reads, refuse_repeated_reads


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
