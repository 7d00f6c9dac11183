"""Counters: rows, or values, added up by many threads within a limit of memory. SENSITIVE.

    cell counter     codes in a buffer, runs of distinct cells, and runs on disk where memory ends
    partial sums     vectors that threads add to, each to one of its own
    marks            public places along a column, and counts of the rows between them
    dense counter    a vector with a number for each cell; `cell_counters` chooses among the three
    values           how many rows have each value of a column, whatever values there are

Counts are whole numbers and exact in any order, so the number of threads and of batches changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from queue import LifoQueue
from threading import Condition, Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.counting.counts import AxisCells, CellCounts, encode_rows, missing
from spinney.counting.sorting import PART, Counts, RadixBuckets, counts_type, merge_counted
from spinney.counting.spill import Counted, SpilledRuns, merge_runs
from spinney.counting.states import stairs_before
from spinney.errors import InputError
from spinney.grid.codes import Codes
from spinney.grid.lattice import Lattice
from spinney.grid.ruler import Cells, RootedRuler
from spinney.text import NeverPickled, Sensitive

# --------------------------------------------------------------------------------------------------------- cell counter
# Cells of a table that comes in parts, counted within a limit of memory.
#
# Threads make codes and put them into one buffer. Where it can hold all rows, that is all. Otherwise a full
# buffer becomes a run of distinct cells with counts. Runs of about equal length are merged, so that no cell is
# moved often: where rows repeat their cells, runs stay short. Once runs take a quarter of the limit, they go to
# disk.


class CellCounter(Sensitive):
    """Counts of all rows so far.

    Args:
        lattice: what the rows are counted on.
        n_rows: how many rows there will be, at most.
        memory_limit: bytes that they may take; beyond, they go to disk. None: whatever they take.
        spill_folder: where they go then; None: the folder for temporary files.
    """

    def __init__(
        self, lattice: Lattice, *, n_rows: int, memory_limit: int | None = None, spill_folder: str | None = None
    ) -> None:
        self.lattice = lattice
        self._quarter = 0 if memory_limit is None else memory_limit // 4
        self._spill_folder = spill_folder
        self._count_type = counts_type(n_rows)
        word_bytes = 8 * lattice.n_words
        # While codes are put in order, each is held twice, those of several words with their place; while cells are
        # counted, three times.
        row_bytes = 2 * word_bytes + (8 if lattice.n_words > 1 else 0)
        self._holds_all = memory_limit is None or row_bytes * n_rows <= memory_limit
        most = max(1, self._quarter // (3 * word_bytes + self._count_type.itemsize))
        self._capacity = n_rows if self._holds_all else most
        self._buffer = RadixBuckets(self._capacity, lattice.n_words)
        self._most = max(1, min(PART, self._capacity))  # codes that are scattered at once
        self._waiting: list[Codes] = []
        self._n_waiting = 0
        self._n_used = 0
        self._n_writing = 0
        self._turn = Condition()
        self._held: list[Counted] = []
        self._spilled: SpilledRuns | None = None

    def add(self, columns: list[AxisCells], start: int, stop: int) -> None:
        """Count rows start..stop of columns. Threads may do so at once."""
        for first in range(start, stop, self._most):
            codes = np.empty((min(self._most, stop - first), self.lattice.n_words), dtype=np.uint64)
            encode_rows(columns, self.lattice, first, codes)
            self.put(codes)

    def put(self, codes: Codes) -> None:
        """Count rows by their codes. Few of them wait for others: small parts are slow to concatenate."""
        if 2 * len(codes) < self._most:
            with self._turn:
                self._waiting.append(codes)
                self._n_waiting += len(codes)
                if self._n_waiting < self._most:
                    return
                waiting, self._waiting, self._n_waiting = self._waiting, [], 0
            codes = np.concatenate(waiting)
        for first in range(0, len(codes), self._most):
            part = codes[first : first + self._most]
            with self._room(len(part)):
                self._buffer.put(part)

    def merged(self) -> CellCounts:
        """All counts together; nothing is left here."""
        if self._waiting:
            self._buffer.put(np.concatenate(self._waiting))
            self._waiting, self._n_waiting = [], 0
        if self._holds_all:
            return CellCounts.of_rows(self.lattice, self._buffer)
        self._count()
        if self._spilled is None:
            self._merge_held()
            return CellCounts(self.lattice, *self._held.pop())
        self._spill()
        return merge_runs(self.lattice, self._spilled, n_bytes=self._quarter)

    def close(self) -> None:
        """Forget all rows; what `merged` gave stays."""
        if self._spilled is not None:
            self._spilled.close()
            self._spilled = None
        self._held.clear()
        self._waiting, self._n_waiting = [], 0
        self._buffer = RadixBuckets(0, self.lattice.n_words)

    @contextmanager
    def _room(self, n_codes: int) -> Iterator[None]:
        """Room in the buffer for so many codes; a full one is counted first, once nobody writes into it."""
        with self._turn:
            while self._n_used + n_codes > self._capacity:
                if self._n_writing:
                    self._turn.wait()
                else:
                    self._count()
            self._n_used += n_codes
            self._n_writing += 1
        try:
            yield
        finally:
            with self._turn:
                self._n_writing -= 1
                self._turn.notify_all()

    def _count(self) -> None:
        """What the buffer holds becomes a run."""
        codes, counts = CellCounts.of_rows(self.lattice, self._buffer).distinct()
        self._n_used = 0
        self._held.append((codes, counts.astype(self._count_type, copy=False)))
        if sum(codes.nbytes + counts.nbytes for codes, counts in self._held) > self._quarter:
            self._spill()
        while len(self._held) > 1 and 2 * len(self._held[-1][0]) > len(self._held[-2][0]):
            self._merge_last()

    def _merge_last(self) -> None:
        last = self._held.pop()
        self._held[-1] = merge_counted(*self._held[-1], *last)

    def _merge_held(self) -> None:
        while len(self._held) > 1:
            self._merge_last()

    def _spill(self) -> None:
        """Put what is held on disk, as one run."""
        self._merge_held()
        if self._spilled is None:
            self._spilled = SpilledRuns(self.lattice.n_words, self._count_type, folder=self._spill_folder)
        if self._held:
            self._spilled.add(*self._held.pop())


# --------------------------------------------------------------------------------------------------------- partial sums
# Vectors that threads add to at the same time, each to one of its own; in the end they are added up. SENSITIVE.


class PartialSums(Sensitive):
    """Vectors of equal length, at most so many, made when they are needed.

    Args:
        length: of a vector.
        most: how many there may be; where all are taken, a thread waits for one. At least one.
        dtype: of their numbers, which the sum of all has to fit into.
    """

    def __init__(self, length: int, most: int, dtype: Any = np.int64) -> None:
        self._length, self._dtype, self._n_more, self._lock = length, dtype, max(1, most), Lock()
        self._free: LifoQueue[NDArray[Any]] = LifoQueue()
        self._all: list[NDArray[Any]] = []

    @contextmanager
    def one(self) -> Iterator[NDArray[Any]]:
        """A vector of one's own, for as long as the block lasts."""
        with self._lock:
            if self._free.empty() and self._n_more:
                self._n_more -= 1
                self._all.append(np.zeros(self._length, dtype=self._dtype))
                self._free.put(self._all[-1])
        mine = self._free.get()
        try:
            yield mine
        finally:
            self._free.put(mine)

    def total(self) -> NDArray[Any]:
        """The sum of all; nothing is left here."""
        total = self._all[0] if self._all else np.zeros(self._length, dtype=self._dtype)
        for other in self._all[1:]:
            total += other
        self._all = []
        return total


# ---------------------------------------------------------------------------------------------------------------- marks
# Public places along a column with many cells, and counts of the rows between them. SENSITIVE.
#
# A column tree asks how many rows lie before cuts of a public hierarchy (`grid/ruler.py`), and before the ends
# of piles at the beginnings of its leaves. Down to some level all these places are marks. Counting rows between
# neighbouring marks takes a vector, whatever the number of rows, where their cells would have to be sorted.


# Rows whose marks are found at once: their cells stay in cache.
_BLOCK = 1 << 14
# Up to this many marks are compared one and all.
_FEW_MARKS = 8
# Marks are searched for from the last one before a range of cells; there are about as many ranges as marks.
_LEAST_RANGE_BITS, _MOST_RANGE_BITS = 12, 20


class Marks:
    """Places along an axis. Public.

    Args:
        lattice: of one axis.
        rooted: the hierarchy of its cuts.
        most_nodes: how many ranges of the hierarchy are told apart, at most, but for its roots and for null.
    """

    def __init__(self, lattice: Lattice, rooted: RootedRuler, *, most_nodes: int) -> None:
        self.lattice, axis = lattice, lattice.axes[0]
        self.grain = rooted.grain
        n_cells, ruler = rooted.ruler.n_cells, rooted.ruler
        nodes = rooted.nodes(most_nodes)
        piles = ruler.pile_stops(nodes, np.full_like(nodes, n_cells))
        others = [n_cells, axis.null_cell, axis.null_cell + 1] if axis.nullable else [n_cells]
        self.nodes = self._inside(np.append(nodes, others))
        self.first = self._inside(np.concatenate([self.nodes, piles, [n_cells - 1]]))
        self._finder = MarkFinder(self.first, axis.bits)

    def __len__(self) -> int:
        return len(self.first)

    @property
    def n_numbers(self) -> int:
        """How many numbers are counted: the rows from each mark up to the next, then those of each class."""
        return len(self) + (0 if self.grain is None else self.grain.n_classes)

    def find(self, column: AxisCells, start: int, stop: int, cells: Cells, places: NDArray[np.int32]) -> None:
        """Cells of rows start..stop, and the last mark that does not lie after each, into what is given."""
        if column.fill(start, stop, cells):
            raise missing(self.lattice.axes[0].name)
        self._finder.find(cells, places)

    def codes_inside(self, column: AxisCells, n_rows: int, is_wanted: NDArray[np.bool_]) -> Codes:
        """Codes of the rows, of so many, whose mark is wanted. SENSITIVE."""
        shift = np.uint64(64 - self.lattice.depth)
        cells, places = np.empty(_BLOCK, dtype=np.int64), np.empty(_BLOCK, dtype=np.int32)
        found = []
        for start in range(0, n_rows, _BLOCK):
            n_here = min(_BLOCK, n_rows - start)
            self.find(column, start, start + n_here, cells[:n_here], places[:n_here])
            found.append(cells[:n_here][is_wanted[places[:n_here]]])
        return np.concatenate([*found, cells[:0]]).astype(np.uint64).reshape(-1, 1) << shift

    def _inside(self, cells: Cells) -> Cells:
        """The cells of the axis among some, each once, in order."""
        ordered = np.sort(cells[cells >> self.lattice.depth == 0])
        distinct: Cells = ordered[np.append(True, np.diff(ordered) != 0)]
        return distinct


class MarkFinder:
    """Finds marks of cells.

    Args:
        first: the cells that are marks, ascending, from 0 on.
        n_bits: of a cell.
    """

    def __init__(self, first: Cells, n_bits: int) -> None:
        range_bits = min(max(len(first).bit_length(), _LEAST_RANGE_BITS), _MOST_RANGE_BITS)
        before, self._shift = stairs_before(first, n_bits, range_bits)
        self._first, self._before = first, before.astype(np.int32)

    def find(self, cells: Cells, places: NDArray[np.int32]) -> None:
        """Write the number of the last mark that does not lie after each cell."""
        _find_marks(cells, self._first, self._before, self._shift, places)


class MarkCounter(Sensitive):
    """Numbers of rows from each mark up to the next, and in each class of a grain, of all rows so far.

    Args:
        marks: what they are counted between.
        n_rows: how many rows there will be, at most.
        n_copies: how many threads may add at once.
    """

    def __init__(self, marks: Marks, *, n_rows: int, n_copies: int) -> None:
        self.marks = marks
        self._sums = PartialSums(marks.n_numbers, n_copies, counts_type(n_rows))

    @property
    def lattice(self) -> Lattice:
        return self.marks.lattice

    def add(self, columns: list[AxisCells], start: int, stop: int) -> None:
        """Count rows start..stop of a column. Threads may do so at once."""
        places, cells = np.empty(stop - start, dtype=np.int32), np.empty(_BLOCK, dtype=np.int64)
        grain, n_marks = self.marks.grain, len(self.marks)
        of_classes = np.zeros(self.marks.n_numbers - n_marks, dtype=np.int64)
        for first in range(start, stop, _BLOCK):
            n_here = min(_BLOCK, stop - first)
            self.marks.find(columns[0], first, first + n_here, cells[:n_here], places[first - start :][:n_here])
            if grain is not None:
                of_classes += np.bincount(grain.classes(cells[:n_here]), minlength=len(of_classes))
        with self._sums.one() as counts:
            _add_cells(places, counts)
            counts[n_marks:] += of_classes.astype(counts.dtype)

    def numbers(self) -> Counts:
        """All numbers together; nothing is left here."""
        return self._sums.total()

    def close(self) -> None:
        """Forget all rows."""
        self._sums.total()


@compiled
def _find_marks(cells: Cells, first: Cells, before: NDArray[np.int32], shift: int, places: NDArray[np.int32]) -> None:
    """The last mark that does not lie after each cell: by halving, down to a few that are all compared."""
    for i in range(cells.size):
        mark, stop = before[cells[i] >> shift], before[(cells[i] >> shift) + 1] + 1
        while stop - mark > _FEW_MARKS:
            half = (mark + stop) // 2
            if first[half] <= cells[i]:
                mark = half
            else:
                stop = half
        n_passed = 0
        for k in range(mark + 1, stop):
            n_passed += first[k] <= cells[i]
        places[i] = mark + n_passed


# -------------------------------------------------------------------------------------------------------- dense counter
# Cells of a lattice that has few, counted in a vector with a number for each. SENSITIVE.
#
# Most columns by themselves are such: categories, ages, days, amounts in cents within a few thousand. A vector
# needs no order and no disk, and its size does not depend on rows. `cell_counters` says which lattices have few
# cells.


# Rows that are encoded at once.
_AT_ONCE = 1 << 14
# A vector of so many numbers is made for every thread; of a larger one there is one, and threads take turns.
_SMALL = 1 << 16
# Vectors of all lattices together may take this part of the limit of memory.
_PART = 4
# A vector is worth it up to so many numbers for each row: it is looked through in the end.
_NUMBERS_A_ROW = 4
# Marks of all columns together, and numbers of rows between them, may take this part of the limit, and the cells of a
# column that is read again as much.
_MARKS_PART = 4
# Vectors of one column's marks: threads take turns with them for a short while only.
_MOST_COPIES = 4
# Ranges of a hierarchy that marks tell apart, at most, and for how many rows there is one: a tree goes further in few.
_MOST_NODES, _ROWS_A_NODE = 1 << 20, 64


class DenseCounter(Sensitive):
    """Counts of all rows so far.

    Args:
        lattice: what the rows are counted on, of one word.
        n_rows: how many rows there will be, at most.
        n_workers: how many threads may add at once.
    """

    def __init__(self, lattice: Lattice, *, n_rows: int, n_workers: int) -> None:
        self.lattice = lattice
        self._shift = _code_shift(lattice)
        n_cells = 1 << lattice.depth
        self._sums = PartialSums(n_cells, n_workers if n_cells <= _SMALL else 1, counts_type(n_rows))

    def add(self, columns: list[AxisCells], start: int, stop: int) -> None:
        """Count rows start..stop of columns. Threads may do so at once."""
        if len(columns) == 1:
            self._add_cells(columns[0], start, stop)
            return
        codes = np.empty((stop - start, 1), dtype=np.uint64)
        for first in range(0, stop - start, _AT_ONCE):
            encode_rows(columns, self.lattice, start + first, codes[first : first + _AT_ONCE])
        with self._sums.one() as counts:
            _add_codes(codes, self._shift, counts)

    def _add_cells(self, column: AxisCells, start: int, stop: int) -> None:
        """Of one axis: codes are its cells, and need not be made."""
        cells = np.empty(min(_AT_ONCE, stop - start), dtype=np.int64)
        for first in range(start, stop, _AT_ONCE):
            here = cells[: min(_AT_ONCE, stop - first)]
            if column.fill(first, first + len(here), here):
                raise missing(self.lattice.axes[0].name)
            with self._sums.one() as counts:
                _add_cells(here, counts)

    def merged(self) -> CellCounts:
        """All counts together; nothing is left here."""
        return counts_of_vector(self.lattice, self._sums.total())

    def close(self) -> None:
        """Forget all rows; what `merged` gave stays."""
        self._sums.total()


def counts_of_vector(lattice: Lattice, counts: NDArray[Any]) -> CellCounts:
    """Counts of a lattice of one word, from a vector with a number for each code."""
    cells = np.flatnonzero(counts)
    codes = cells.astype(np.uint64).reshape(-1, 1) << _code_shift(lattice)
    return CellCounts(lattice, codes, counts[cells])


def _code_shift(lattice: Lattice) -> np.uint64:
    """How far codes lie from the end of their word; without bits all are 0."""
    return np.uint64(64 - lattice.depth) if lattice.depth else np.uint64(63)


AnyCounter = CellCounter | DenseCounter | MarkCounter


def cell_counters(
    lattices: Sequence[Lattice],
    *,
    n_rows: int,
    n_workers: int,
    memory_limit: int,
    spill_folder: str | None,
    rulers: Sequence[RootedRuler | None] = (),
) -> list[AnyCounter]:
    """A counter for each lattice, all within a limit of memory; those with many cells share what vectors leave.

    Those of columns with a ruler count between marks, where there is no room for the codes of all rows.
    """
    item = counts_type(n_rows).itemsize
    left = memory_limit // _PART
    dense: set[int] = set()
    for place in sorted(range(len(lattices)), key=lambda place: lattices[place].depth):
        n_cells = 1 << lattices[place].depth
        n_bytes = item * n_cells * (n_workers if n_cells <= _SMALL else 1)
        if lattices[place].n_words == 1 and n_cells <= max(_SMALL, _NUMBERS_A_ROW * n_rows) and n_bytes <= left:
            left -= n_bytes
            dense.add(place)
    others = [place for place in range(len(lattices)) if place not in dense]
    limit = memory_limit - memory_limit // _PART + left
    ruled = {place: rooted for place, rooted in enumerate(rulers) if rooted is not None and place in others}
    if 2 * 8 * n_rows * len(others) <= limit:
        ruled = {}
    marks_bytes = memory_limit // _MARKS_PART // max(1, len(ruled))
    n_copies = min(n_workers, _MOST_COPIES)
    most_nodes = min(_MOST_NODES, n_rows // _ROWS_A_NODE, marks_bytes // (2 * (8 + item * n_copies) + 4))
    limit = (limit - 2 * marks_bytes * len(ruled)) // max(1, len(others) - len(ruled))

    def counter(place: int, lattice: Lattice) -> AnyCounter:
        if place in dense:
            return DenseCounter(lattice, n_rows=n_rows, n_workers=n_workers)
        if place in ruled:
            marks = Marks(lattice, ruled[place], most_nodes=most_nodes)
            return MarkCounter(marks, n_rows=n_rows, n_copies=n_copies)
        return CellCounter(lattice, n_rows=n_rows, memory_limit=limit, spill_folder=spill_folder)

    return [counter(place, lattice) for place, lattice in enumerate(lattices)]


@compiled
def _add_codes(codes: NDArray[np.uint64], shift: np.uint64, counts: NDArray[np.int32]) -> None:
    for row in range(codes.shape[0]):
        counts[codes[row, 0] >> shift] += 1


@compiled
def _add_cells(cells: NDArray[Any], counts: NDArray[Any]) -> None:
    for row in range(cells.size):
        counts[np.uint64(cells[row])] += 1


# --------------------------------------------------------------------------------------------------------------- values
# How many rows have each value of a column, whatever values there are. SENSITIVE: the values themselves are
# private.
#
# Values come batch by batch as Arrow arrays of strings or whole numbers. Batches are counted by themselves and
# merged when they have grown; what is held is what differs. Where that outgrows the limit of memory the column
# is no list of codes, and it is refused, by name and without a number.


# Distinct values of batches that are held before they are merged, at least.
_FEW = 1 << 17
# Merging holds what there is about this many times.
_COPIES = 4


class ValueCounts(NeverPickled):
    """Distinct values in ascending order, strings by their bytes, and how many rows have each. Null is not counted."""

    __slots__ = ("true_counts", "true_values")

    def __init__(self, true_values: Any, true_counts: NDArray[np.int64]) -> None:
        self.true_values = true_values
        self.true_counts = true_counts


class ValueCounter(Sensitive):
    """Adds up the values of a column; threads may add at the same time."""

    def __init__(self, name: str, *, memory_limit: int) -> None:
        self._name = name
        self._most_bytes = memory_limit // _COPIES
        self._parts: list[pa.Table] = []
        self._n_merged = 0
        self._lock = Lock()

    def add(self, values: Any) -> None:
        """Count an Arrow array of strings or of whole numbers."""
        kind = pa.large_string() if pa.types.is_string(values.type) else values.type
        found = values.drop_null().cast(kind).value_counts()
        self.add_counts(found.field("values"), found.field("counts"))

    def add_counts(self, values: Any, counts: Any) -> None:
        """Add values that were counted elsewhere."""
        part = pa.table({"value": values, "n": counts.cast(pa.int64())})
        with self._lock:
            self._parts.append(part)
            if sum(part.num_rows for part in self._parts) > max(_FEW, 2 * self._n_merged):
                self._merge()

    def merged(self) -> ValueCounts:
        """All that was added."""
        with self._lock:
            table = self._merge()
        order = pc.sort_indices(table["value"])
        values, counts = table["value"].take(order).combine_chunks(), table["n"].take(order)
        return ValueCounts(values, np.asarray(counts.to_numpy()).astype(np.int64, copy=False))

    def _merge(self) -> pa.Table:
        if not self._parts:
            return pa.table({"value": pa.array([], pa.large_string()), "n": pa.array([], pa.int64())})
        grouped = pa.concat_tables(self._parts).group_by("value", use_threads=False).aggregate([("n", "sum")])
        whole = pa.table({"value": grouped["value"], "n": grouped["n_sum"]})
        if whole.nbytes > self._most_bytes:
            raise too_many_values(self._name)
        self._parts, self._n_merged = [whole], whole.num_rows
        return whole


def too_many_values(name: str) -> InputError:
    """The error for a column whose values differ so much that they do not fit into memory."""
    return InputError(
        f"column {name!r} has more different values than the limit of memory allows, so no list of them can be found; "
        "describe it as an identifier, list its values, or raise SPINNEY_MEMORY_LIMIT"
    )
