"""Batches: a table that comes a few rows at a time, each batch a small table in memory."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, NamedTuple

from spinney.schema.table import Schema
from spinney.tables.frames import Table, open_table


class Batch(NamedTuple):
    """Some rows of a table: how many there are, and how a thread gets at them."""

    n_rows: int
    read: Callable[[], Table]

    def __repr__(self) -> str:
        return "Batch(sensitive)"


# For some columns of a schema: all rows, in the same order every time.
Batches = Callable[[Schema], Generator[Batch]]


def prefetch(frames: Iterable[Any], schema: Schema) -> Iterator[Batch]:
    """Frames as batches, each read before it is asked for."""
    for frame in frames:
        if len(frame):
            yield ready(open_table(frame, schema))


def ready(table: Table) -> Batch:
    """A batch that was read before."""
    return Batch(table.n_rows, lambda: table)
