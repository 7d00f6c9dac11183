"""Dask data frames: one partition after the other, computed by Dask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from spinney.schema.table import Schema
from spinney.tables.engines.lazy import open_lazy, redacted_query
from spinney.tables.engines.stream import StreamSource


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
