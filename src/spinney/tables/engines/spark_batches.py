"""What Spark's Python workers do with batches, whatever they count: packed numbers taken apart, rows gathered.

These are functions within functions, so that they travel by value, to workers that may not know Spinney. They need
numpy and pyarrow, which Spark itself asks for. A value costs Spark as much to hand over as a whole number of 62 bits:
so cells of several columns share one (`expressions.packed_layout`), and are taken apart here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from spinney.tables.engines.expressions import packed_layout

Batches = Iterator[Any]
Worker = Callable[[Batches], Batches]
# Runs a query of Spark's, and says what for if it fails.
Run = Callable[[Any, str], pa.Table]
# Rows that a worker works on at once; Spark's own batches are smaller.
AT_ONCE = 1 << 16


def chained(first: Worker, second: Worker) -> Worker:
    """Both in one worker, one after the other: batches need not go back to Java in between."""

    def work(batches: Batches) -> Batches:
        yield from second(first(batches))

    return work


def unpacking(bits: Sequence[int]) -> Callable[[int, NDArray[Any]], Iterator[tuple[int, NDArray[Any]]]]:
    """Takes apart the numbers of a packed column: yields which number it is, and its values."""
    parts: list[list[tuple[int, int, int]]] = []
    for indices in packed_layout(bits):
        shifts = [sum(bits[later] for later in indices[place + 1 :]) for place in range(len(indices))]
        parts.append([(index, shift, (1 << bits[index]) - 1) for index, shift in zip(indices, shifts, strict=True)])

    def unpack(place: int, column: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
        for index, shift, mask in parts[place]:
            yield index, (column >> shift) & mask

    return unpack


def gathering(at_once: int = AT_ONCE) -> Callable[[Batches], Iterator[list[NDArray[Any]]]]:
    """Columns of whole numbers, an array each, of batches that are gathered into larger ones."""

    def gathered(batches: Batches) -> Iterator[list[NDArray[Any]]]:
        import numpy as np

        def joined(some: list[Any]) -> list[NDArray[Any]]:
            columns = zip(*(batch.columns for batch in some), strict=True)
            return [np.concatenate([part.to_numpy() for part in parts]) for parts in columns]

        waiting, n_waiting = [], 0
        for batch in batches:
            waiting.append(batch)
            n_waiting += batch.num_rows
            if n_waiting >= at_once:
                yield joined(waiting)
                waiting, n_waiting = [], 0
        if n_waiting:
            yield joined(waiting)

    return gathered
