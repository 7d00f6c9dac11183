"""Tables that other engines hold and hand out batch by batch: what polars, DuckDB, Ibis, Dask and Arrow share here.

The engine runs its own query, under its own limits, for the columns that are asked for; its batches are counted here
like any table. Messages of other engines may quote the data: they are replaced by ours and kept out of the chain of
causes. No library is imported that did not make the object. Where one tells which files it reads, none of them may be
there twice (`named.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from spinney.errors import InputError
from spinney.redacted import redacted
from spinney.schema.table import Schema
from spinney.tables.batches import Batch, prefetch
from spinney.tables.engines.stream import StreamSource
from spinney.tables.frames import FrameKind, open_table

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
