"""polars LazyFrames: its streaming engine runs the query and hands out batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from spinney.errors import InputError
from spinney.schema.table import Schema
from spinney.tables.engines.lazy import batch_rows, open_lazy, redacted_query
from spinney.tables.engines.stream import StreamSource
from spinney.tables.paths.named import polars_reads, refuse_repeated_reads


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
