"""Columns and tables of a forest, counted by Spark's executors: cells in, vectors of counts out. SENSITIVE.

    batches of workers     packed numbers taken apart, rows gathered
    columns                vectors of counts of one column each, all in one job
    what workers run       the functions that count cells, as closures
    tables                 vectors of tables of states, and the functions that count them

The cells of rows are expressions, computed in the JVM. Functions in Spark's own Python workers count those of a
partition and hand over the numbers that are not 0; a group-by adds them up, and the driver gets the sums. The
functions carry all that they need, so that workers that lack Spinney can run them: they need pyarrow and numpy,
which Spark itself asks for. Whoever counts, the numbers are the same (engines.proof.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.counting.counter import Marks, counts_of_vector
from spinney.counting.joint import LAYOUT, TableRequest
from spinney.counting.sorting import counts_type
from spinney.counting.states import AnyCut, Cut, states_array
from spinney.grid.lattice import Axis, Lattice
from spinney.grid.ruler import RootedRuler
from spinney.tables.engines.queries import bits_of_cut, packed_layout
from spinney.tables.engines.stream import ReadInside, RuledCounts
from spinney.tables.source import table_changed
from spinney.text import Sensitive

# --------------------------------------------------------------------------------------------------- batches of workers
# What Spark's Python workers do with batches, whatever they count: packed numbers taken apart, rows gathered.
#
# These are functions within functions, so that they travel by value, to workers that may not know Spinney. They
# need numpy and pyarrow, which Spark itself asks for. A value costs Spark as much to hand over as a whole
# number of 62 bits: so cells of several columns share one (`queries.packed_layout`), and are taken apart here.


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


# -------------------------------------------------------------------------------------------------------------- columns
# Columns of a forest, counted by Spark's executors: cells of rows in, vectors out, whose length depends on no row.
#
# The cells of rows are expressions, computed in the JVM. Functions in Spark's Python workers count those of a
# partition, all columns in one job: columns of few cells in a vector with a number for each, others between marks of
# their rulers (`counting/counter.py`). Vectors travel in slices, of which those without rows are left out; Spark brings
# equal slices together, workers add them up, and the driver gets the sums. Where a tree goes beyond the marks, one
# more job looks for the rows in question of that column alone; their cells are counted on the driver, or by Spark
# where they are many.


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
        return [1 << lattice.depth if marks is None else marks.n_numbers for lattice, marks in pairs]

    @property
    def n_each(self) -> list[int]:
        """How many numbers of each column every row adds 1 to."""
        return [1 if marks is None or marks.grain is None else 2 for marks in self.marks]

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


class SparkColumns(Sensitive):
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
        wanted = [times * self._n_rows for times in vectors.n_each]
        if any(int(numbers.sum(dtype=np.int64)) != n for numbers, n in zip(found, wanted, strict=True)):
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


# ----------------------------------------------------------------------------------------------------- what workers run


def column_worker(vectors: ColumnVectors, dtype: str) -> Worker:
    """What a Spark worker runs over the cells of its partition: the slices of its vectors that are not 0."""
    bits, sizes, starts = [axis.bits for axis in vectors.axes], vectors.sizes, vectors.starts
    firsts = [None if marks is None else marks.first for marks in vectors.marks]
    n_marks = [0 if marks is None else len(marks) for marks in vectors.marks]
    grains = [None if marks is None else marks.grain for marks in vectors.marks]
    classifiers = [None if grain is None else grain.classifier() for grain in grains]
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
                    classes = classifiers[which]
                    if classes is not None:  # behind the numbers of marks
                        places = np.concatenate([places, n_marks[which] + classes(cells)])
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
            from spinney.counting.counter import MarkFinder
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


# --------------------------------------------------------------------------------------------------------------- tables
# Tables of a forest: batches of states in, a vector of counts out, summed by Spark.
#
# The cells of rows are expressions, computed in the JVM. Functions in Spark's own Python workers look up their
# states under public cuts, count those of a partition, and hand over the numbers that are not 0; a group-by
# adds them up, and the driver gets the sums. Where a worker has Spinney too, its compiled loops count;
# elsewhere numpy does, and the numbers are the same.


# Up to this many cells of a column, a table from cell to state travels to the workers.
_LOOKUP_CELLS = 1 << 16


class SparkPasses(Sensitive):
    """Counts tables over a frame of states, a job for each pass. SENSITIVE.

    Args:
        cells: a Spark data frame of packed numbers, one for each cut: the cell of a column, or the state of a place.
        cuts: how columns are cut into states.
        keeps: whether Spark keeps the states for later passes; they are computed again where it cannot.
        run: runs a job and gives its answer.
    """

    def __init__(self, cells: Any, cuts: Sequence[AnyCut], *, keeps: bool, run: Run) -> None:
        dtype = states_array(cuts, 0).true_states.dtype
        self._dtype, self._n_columns, self._run = dtype.name, len(cuts), run
        self._find, self._states, self._kept = state_worker(cuts, dtype), cells, None
        if keeps:
            kind = "tinyint" if dtype == np.uint8 else "smallint"
            types = ", ".join(f"s{which} {kind}" for which in range(len(cuts)))
            self._states = self._kept = cells.mapInArrow(self._find, types).persist()
        self._n_passes = 0

    def count(self, request: TableRequest) -> NDArray[np.int64]:
        """The vector of what is asked for, of all rows."""
        self._n_passes += 1
        counted = self._map(table_worker(request, self._dtype), "cell bigint, n bigint")
        answer = self._run(
            counted.groupBy("cell").sum("n").toDF("cell", "n"), f"counting tables, pass {self._n_passes}"
        )
        sums = np.zeros(request.n_numbers, dtype=np.int64)
        sums[answer["cell"].to_numpy()] = answer["n"].to_numpy()
        return sums

    def parts(self) -> Iterator[NDArray[Any]]:
        """The states of all rows (n_columns, n_rows), some rows at a time."""
        for row in self._map(packing_worker(self._dtype), "n bigint, states binary").toLocalIterator():
            yield np.frombuffer(row["states"], dtype=self._dtype).reshape(self._n_columns, row["n"])

    def close(self) -> None:
        """Have Spark forget the states, if it still can."""
        if self._kept is not None:
            with suppress(Exception):
                self._kept.unpersist()

    def _map(self, worker: Worker, types: str) -> Any:
        """What a worker makes of states: of those that Spark keeps, or as it finds them."""
        return self._states.mapInArrow(worker if self._kept is not None else chained(self._find, worker), types)


def state_worker(cuts: Sequence[AnyCut], dtype: np.dtype[Any]) -> Worker:
    """What a Spark worker runs to find states of packed cells; of places they are there. States get a sign."""
    finders = [_plain_finder(cut, dtype) for cut in cuts]
    signed, unpack, gathered = f"i{dtype.itemsize}", unpacking([bits_of_cut(cut) for cut in cuts]), gathering()

    def find(batches: Batches) -> Batches:
        import numpy as np
        import pyarrow as pa

        names = [f"s{which}" for which in range(len(finders))]
        for columns in gathered(batches):
            found = []
            for place, column in enumerate(columns):
                for which, cells in unpack(place, column):
                    first, states, lookup = finders[which]
                    here = cells  # of a place: its states
                    if lookup is not None:
                        here = lookup[cells]
                    elif states is not None:
                        here = states[np.searchsorted(first, cells, side="right") - 1]
                    found.append(pa.array(here.astype(signed)))
            yield pa.RecordBatch.from_arrays(found, names=names)

    return find


def _plain_finder(cut: AnyCut, dtype: np.dtype[Any]) -> tuple[Any, Any, Any]:
    """Stairs and their states, and a table from cells to states where there are few; of a place, nothing."""
    if not isinstance(cut, Cut):
        return None, None, None
    if 1 << cut.axis.bits > _LOOKUP_CELLS:
        return cut.first, cut.states.astype(dtype), None
    ends = np.append(cut.first[1:], 1 << cut.axis.bits)
    return None, None, np.repeat(cut.states, ends - cut.first).astype(dtype)


def table_worker(request: TableRequest, dtype: str) -> Worker:
    """What a Spark worker runs over the states of its partition: the numbers of its vector that are not 0."""
    # Plain values only, and functions within this one: they travel by value, to workers that may not know Spinney.
    layout, sizes, cliques, groups = LAYOUT, request.sizes, request.cliques, request.groups
    n_numbers, stacked, plain = request.n_numbers, _stacking(dtype), _plain_adding(request)

    def count(batches: Batches) -> Batches:
        import numpy as np
        import pyarrow as pa

        add = plain
        try:
            from spinney.counting import joint

            if layout == joint.LAYOUT:
                add = joint.TableRequest(sizes, cliques, groups).add
        except (ImportError, AttributeError):
            pass
        sums = np.zeros(n_numbers, dtype=np.int64)
        for states in stacked(batches):
            add(states, sums)
        found = np.flatnonzero(sums)
        yield pa.RecordBatch.from_arrays([pa.array(found), pa.array(sums[found])], names=["cell", "n"])

    return count


def packing_worker(dtype: str) -> Worker:
    """What a Spark worker runs to hand over the states of its partition, as bytes."""
    stacked = _stacking(dtype)

    def pack(batches: Batches) -> Batches:
        import pyarrow as pa

        for states in stacked(batches):
            data = pa.array([states.tobytes()], type=pa.binary())
            yield pa.RecordBatch.from_arrays(
                [pa.array([states.shape[1]], type=pa.int64()), data], names=["n", "states"]
            )

    return pack


def _stacking(dtype: str) -> Callable[[Batches], Iterator[NDArray[Any]]]:
    """Batches as states (n_columns, n_rows), gathered into larger ones. They have a sign, for Spark has no others."""
    gathered = gathering()

    def stacked(batches: Batches) -> Iterator[NDArray[Any]]:
        import numpy as np

        for columns in gathered(batches):
            states = np.empty((len(columns), len(columns[0])), dtype=dtype)
            for line, column in zip(states, columns, strict=True):
                line[:] = column.astype(dtype)
            yield states

    return stacked


def _plain_adding(request: TableRequest) -> Callable[[NDArray[Any], NDArray[np.int64]], None]:
    """`request.add` in numpy alone."""
    cliques, widths, groups = request.cliques, request.widths, request.groups
    terms, starts = request.plain_terms

    def add_tables(states: NDArray[Any], sums: NDArray[np.int64]) -> None:
        import numpy as np

        if groups is not None:
            states = np.array([group[line] for group, line in zip(groups, states, strict=True)])
        start = 0
        for clique in cliques:
            cells, size = np.zeros(states.shape[1], dtype=np.int64), 1
            for column in clique:
                cells *= widths[column]
                cells += states[column]
                size *= widths[column]
            sums[start : start + size] += np.bincount(cells, minlength=size)
            start += size

    def add_terms(states: NDArray[Any], sums: NDArray[np.int64]) -> None:
        import numpy as np

        assert groups is not None
        n_set = np.array([bin(byte).count("1") for byte in range(256)], dtype=np.int64)
        bits = {0: np.packbits(np.ones(states.shape[1], dtype=np.bool_))}
        for column, (group, line) in enumerate(zip(groups, states, strict=True)):
            for number in range(1, widths[column]):
                bits[starts[column] + number - 1] = np.packbits(group[line] == number)
        for place, slots in enumerate(terms or ()):
            both = bits[slots[0]]
            for slot in slots[1:]:
                both = both & bits[slot]
            sums[place] += n_set[both].sum()

    return add_tables if terms is None else add_terms
