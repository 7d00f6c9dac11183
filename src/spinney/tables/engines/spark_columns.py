"""Columns of a forest, counted by Spark's executors: cells of rows in, vectors out, whose length depends on no row.

The cells of rows are expressions, computed in the JVM. Functions in Spark's Python workers count those of a partition,
all columns in one job: columns of few cells in a vector with a number for each, others between marks of their rulers
(`counting/marks.py`). Vectors travel in slices, of which those without rows are left out; Spark brings equal slices
together, workers add them up, and the driver gets the sums. Where a tree goes beyond the marks, one more job looks for
the rows in question of that column alone; their cells are counted on the driver, or by Spark where they are many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.counting.dense_counter import counts_of_vector
from spinney.counting.marks import Marks
from spinney.counting.merging import counts_type
from spinney.schema.lattice import Axis, Lattice
from spinney.schema.ruler import RootedRuler
from spinney.tables.engines.spark_batches import Batches, Run, Worker, gathering, unpacking
from spinney.tables.ruled_counts import ReadInside, RuledCounts
from spinney.tables.source import table_changed

# The cells of all rows on some axes, packed, as a Spark data frame.
CellsOf = Callable[[Sequence[Axis]], Any]
# What a job sends: the number of a slice, the bytes of each of its numbers, and the numbers; or a fault, below 0.
SLICES = "slice bigint, width int, numbers binary"
# Numbers in a slice, and slices that are sent at once.
SLICE, _SLICES_AT_ONCE = 1 << 14, 64
# Numbers for cells of all columns together, at most, for every worker has as many; and the part of the limit of memory
# that they may take on the driver, as marks may.
_MOST_NUMBERS, _PART = 1 << 23, 4
# Ranges of a hierarchy that marks tell apart, at most, and for how many rows there is one.
_MOST_NODES, _ROWS_A_NODE = 1 << 20, 64
# Vectors of fewer numbers are counted as a whole for every batch.
_SHORT = 1 << 14


@dataclass(frozen=True, slots=True)
class ColumnVectors:
    """The vectors of some columns, one after the other, in whole slices. Public."""

    lattices: tuple[Lattice, ...]  # of one axis each
    marks: tuple[Marks | None, ...]  # None: a number for each cell

    @property
    def axes(self) -> list[Axis]:
        """Of the columns."""
        return [lattice.axes[0] for lattice in self.lattices]

    @property
    def sizes(self) -> list[int]:
        """How many numbers each column has."""
        pairs = zip(self.lattices, self.marks, strict=True)
        return [1 << lattice.depth if marks is None else len(marks) for lattice, marks in pairs]

    @property
    def starts(self) -> list[int]:
        """Where the numbers of each column begin, and where all end."""
        n_slices = [-(-size // SLICE) for size in self.sizes]
        return [SLICE * sum(n_slices[:place]) for place in range(len(n_slices) + 1)]


def column_vectors(
    lattices: Sequence[Lattice], rulers: Sequence[RootedRuler | None], *, n_rows: int, memory_limit: int
) -> dict[int, Marks | None]:
    """Which of several lattices are counted in vectors, and between which marks; follows from public numbers alone."""
    item = counts_type(n_rows).itemsize
    left = min(_MOST_NUMBERS, memory_limit // _PART // item)
    found: dict[int, Marks | None] = {}
    alone = [place for place, lattice in enumerate(lattices) if lattice.n_axes == 1 and lattice.n_words == 1]
    for place in sorted(alone, key=lambda place: lattices[place].depth):
        if 1 << lattices[place].depth <= left:
            left -= 1 << lattices[place].depth
            found[place] = None
    ruled = {place: rooted for place in alone if place not in found and (rooted := rulers[place]) is not None}
    bytes_each = memory_limit // _PART // max(1, len(ruled))
    most_nodes = min(_MOST_NODES, n_rows // _ROWS_A_NODE, bytes_each // (2 * (8 + item) + 4))
    for place, rooted in ruled.items():
        found[place] = Marks(lattices[place], rooted, most_nodes=most_nodes)
    return dict(sorted(found.items()))


class SparkColumns:
    """Counts columns, all of them in one job. SENSITIVE.

    Args:
        cells_of: the cells of all rows.
        run: runs a job and gives its answer.
        refuse_faults: raises for numbers below 0, which stand for values that cannot be read.
        n_rows: how many rows there are.
    """

    def __init__(
        self, cells_of: CellsOf, run: Run, refuse_faults: Callable[[NDArray[np.int64]], None], *, n_rows: int
    ) -> None:
        self._cells_of, self._run, self._refuse_faults, self._n_rows = cells_of, run, refuse_faults, n_rows

    def __repr__(self) -> str:
        return "SparkColumns(sensitive)"

    def count(self, vectors: ColumnVectors) -> list[NDArray[Any]]:
        """The numbers of all columns, each of which must be of all rows."""
        dtype = counts_type(self._n_rows)
        partial = self._cells_of(vectors.axes).mapInArrow(column_worker(vectors, dtype.name), SLICES)
        summed = partial.repartition("slice").mapInArrow(adding_worker(), SLICES)
        answer = self._run(summed, "counting cells of each column")
        slices = answer["slice"].to_numpy()
        self._refuse_faults(slices)
        sums = np.zeros(vectors.starts[-1], dtype=dtype)
        for number, width, numbers in zip(slices.tolist(), answer["width"], answer["numbers"], strict=True):
            sums[SLICE * number : SLICE * (number + 1)] += np.frombuffer(numbers.as_buffer(), f"u{width}").astype(dtype)
        found = [
            sums[start : start + size].copy() for start, size in zip(vectors.starts[:-1], vectors.sizes, strict=True)
        ]
        if any(int(numbers.sum(dtype=np.int64)) != self._n_rows for numbers in found):
            raise table_changed()
        return found

    def counts(self, vectors: ColumnVectors, read_inside: Callable[[Marks], ReadInside]) -> Iterator[Any]:
        """One `CellCounts` for each column, or one `RuledCounts` where it is counted between marks."""
        numbers = self.count(vectors)
        for lattice, marks in zip(vectors.lattices, vectors.marks, strict=True):
            here = numbers.pop(0)
            yield counts_of_vector(lattice, here) if marks is None else RuledCounts(marks, here, read_inside(marks))

    def cells_inside(self, marks: Marks, is_wanted: NDArray[np.bool_]) -> Any:
        """A Spark data frame of the cells (k0) of the rows that lie behind some marks."""
        return self._cells_of(marks.lattice.axes).mapInArrow(inside_worker(marks, is_wanted), "k0 bigint")


# ------------------------------------------------------------------------------------------------ what workers run


def column_worker(vectors: ColumnVectors, dtype: str) -> Worker:
    """What a Spark worker runs over the cells of its partition: the slices of its vectors that are not 0."""
    bits, sizes, starts = [axis.bits for axis in vectors.axes], vectors.sizes, vectors.starts
    firsts = [None if marks is None else marks.first for marks in vectors.marks]
    gathered, unpack, finding, sent = gathering(), unpacking(bits), _finding(), _sending()

    def count(batches: Batches) -> Batches:
        import numpy as np

        sums, fault = np.zeros(starts[-1], dtype=dtype), 0
        finders = [
            None if first is None else finding(first, n_bits) for first, n_bits in zip(firsts, bits, strict=True)
        ]
        for columns in gathered(batches):
            for place, column in enumerate(columns):
                if column.min() < 0:
                    below = int(column[column < 0].max())
                    fault = max(fault, below) if fault else below
                    continue
                for which, cells in unpack(place, column):
                    find, here = finders[which], sums[starts[which] : starts[which] + sizes[which]]
                    places = cells if find is None else find(cells)
                    if sizes[which] <= _SHORT:
                        here += np.bincount(places, minlength=sizes[which]).astype(dtype)
                    else:
                        np.add.at(here, places, here.dtype.type(1))
        yield from sent({number: sums[SLICE * number :][:SLICE] for number in range(starts[-1] // SLICE)}, fault)

    return count


def adding_worker() -> Worker:
    """What a Spark worker runs over slices of all partitions, of which equal ones are with it: their sums."""
    sent = _sending()

    def add(batches: Batches) -> Batches:
        import numpy as np

        sums: dict[int, Any] = {}
        fault = 0
        for batch in batches:
            for number, width, numbers in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                if number < 0:
                    fault = max(fault, number) if fault else number
                    continue
                part = np.frombuffer(numbers, f"u{width}").astype(np.int64)
                sums[number] = sums[number] + part if number in sums else part
        yield from sent(sums, fault)

    return add


def inside_worker(marks: Marks, is_wanted: NDArray[np.bool_]) -> Worker:
    """What a Spark worker runs over the cells of one column: those behind marks that are wanted, and faults."""
    first, n_bits, gathered, finding = marks.first, marks.lattice.axes[0].bits, gathering(), _finding()

    def pick(batches: Batches) -> Batches:
        import numpy as np
        import pyarrow as pa

        find = finding(first, n_bits)
        for (cells,) in gathered(batches):
            wanted = (cells < 0) | is_wanted[find(np.maximum(cells, 0))]
            yield pa.RecordBatch.from_arrays([pa.array(cells[wanted])], names=["k0"])

    return pick


def _finding() -> Callable[[NDArray[np.int64], int], Callable[[NDArray[np.int64]], NDArray[Any]]]:
    """Finds the last mark that does not lie after each cell: by Spinney's loops where a worker has them, or numpy."""

    def finding(first: NDArray[np.int64], n_bits: int) -> Callable[[NDArray[np.int64]], NDArray[Any]]:
        import numpy as np

        try:
            from spinney.counting.marks import MarkFinder
        except ImportError:
            return lambda cells: np.searchsorted(first, cells, side="right") - 1
        finder = MarkFinder(first, n_bits)

        def find(cells: NDArray[np.int64]) -> NDArray[Any]:
            places = np.empty(len(cells), dtype=np.int32)
            finder.find(np.ascontiguousarray(cells), places)
            return places

        return find

    return finding


def _sending() -> Callable[[dict[int, Any], int], Batches]:
    """Slices that are not 0, in as few bytes as their largest number takes, and a fault if there is one."""
    at_once = _SLICES_AT_ONCE

    def sent(slices: dict[int, Any], fault: int) -> Batches:
        import numpy as np
        import pyarrow as pa

        def batch(rows: list[tuple[int, int, bytes]]) -> Any:
            numbers, widths, data = zip(*rows, strict=True) if rows else ((), (), ())
            arrays = [pa.array(numbers, pa.int64()), pa.array(widths, pa.int32()), pa.array(data, pa.binary())]
            return pa.RecordBatch.from_arrays(arrays, names=["slice", "width", "numbers"])

        rows = [(fault, 1, b"")] if fault else []
        for number, counts in slices.items():
            most = int(counts.max())
            if most == 0:
                continue
            width = next(width for width in (1, 2, 4, 8) if most < 1 << 8 * width)
            rows.append((number, width, counts.astype(np.dtype(f"u{width}")).tobytes()))
            if len(rows) >= at_once:
                yield batch(rows)
                rows = []
        yield batch(rows)

    return sent
