"""QuerySource: rows stay with an engine that answers queries, and only counts reach this process. SENSITIVE.

    kept cells      counted cells that stay with the engine and come over in parts, with checksums
    query source    the walk from questions to queries to counts, the same for every engine

Noise is drawn here, after the counts are final, so that whatever an engine retries can change nothing
(engines.proof.md).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from copy import copy
from dataclasses import dataclass
from typing import Any, Protocol, Self

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spinney.counting.counter import ValueCounter, ValueCounts, too_many_values
from spinney.counting.counts import CellCounts
from spinney.counting.joint import TableRequest
from spinney.counting.sorting import counts_type
from spinney.counting.spill import SpilledRuns, merge_runs
from spinney.counting.states import AnyCut, StateRows, StateTables, states_array
from spinney.grid.lattice import Lattice
from spinney.progress import progress
from spinney.schema.rules import Rule
from spinney.schema.schema import Schema
from spinney.tables.engines.queries import Frame, Rows, bytes_of_cell, key_layout
from spinney.tables.engines.stream import CountedStates
from spinney.tables.frames import FrameKind
from spinney.tables.source import HeldRows, Source, no_bounds, table_changed
from spinney.tables.tally import Tallies, rules_among
from spinney.text import Sensitive

# ----------------------------------------------------------------------------------------------------------- kept cells
# Counted cells that would not fit on the driver: Spark keeps them, and they come over in parts.
#
# A hash puts cells into buckets, which are of about the same size whatever the table holds; some buckets together are
# a part that fits. What Spark keeps is ordered by bucket, so that a part is a look into a few blocks, not another
# count.
#
# Executors are lost, and what they kept is then counted again. A data frame that gives other rows the second time
# would have one person's row in two parts. So there are checksums of the buckets first (how many cells, and a hash
# over cells and counts), and every part must agree with them to the last cell: engines.proof.md.


# Runs a query of Spark's, and says what for if it fails.
Run = Callable[[Any, str], pa.Table]


@dataclass(frozen=True, slots=True, repr=False)
class Part(Sensitive):
    """Neighbouring buckets, and what the checksums say of them. SENSITIVE."""

    first: int
    last: int
    n_cells: int
    hash: int


class KeptCells(Protocol):
    """Counted cells that an engine keeps until `close`, in buckets. SENSITIVE."""

    def checksums(self) -> BucketChecksums:
        """What is in each bucket; counts the cells, if that has not been done."""

    def collect(self, part: Part) -> pa.Table:
        """The cells of a part (k0, k1, ..., n), if they are still those of the checksums."""

    def close(self) -> None:
        """Have the engine forget the cells."""


class PersistedCells(Sensitive):
    """Cells of one lattice, or of several (by `which`), that Spark keeps until `close`. SENSITIVE."""

    def __init__(self, answer: Any, *, n_buckets: int, functions: Any, run: Run) -> None:
        self._keys = [name for name in answer.columns if name.startswith("k")]
        self._n_buckets = n_buckets
        self._functions = functions
        self._run = run
        cell = ", ".join(self._keys)
        which = "CAST(which AS BIGINT)" if "which" in answer.columns else "0"
        self._kept = (
            answer.selectExpr(
                *self._keys,
                "n",
                f"xxhash64({cell}, n) AS h",
                f"{which} * {n_buckets} + pmod(xxhash64({cell}), {n_buckets}) AS b",
            )
            .sortWithinPartitions("b")
            .persist()
        )

    def checksums(self) -> BucketChecksums:
        """What is in each bucket. The first job: it counts the cells, and Spark keeps them from then on."""
        expr = self._functions.expr
        sums = self._kept.groupBy("b").agg(
            expr("count(*) AS cells"),
            expr("sum(n) AS n"),
            expr("bit_xor(h) AS h"),
            expr("coalesce(max(CASE WHEN k0 < 0 THEN k0 END), 0) AS fault"),
        )
        answer = self._run(sums, "counting cells").sort_by("b")
        columns = (answer[name].to_numpy().astype(np.int64) for name in ("b", "cells", "n", "h", "fault"))
        return BucketChecksums(self._n_buckets, *columns)

    def collect(self, part: Part) -> pa.Table:
        """The cells of a part (k0, k1, ..., n), if they are still those of the checksums."""
        wanted = self._kept.filter(f"b BETWEEN {part.first} AND {part.last}").select(*self._keys, "n", "h")
        answer = self._run(wanted, "collecting cells")
        hashes = answer["h"].to_numpy()
        if answer.num_rows != part.n_cells or np.bitwise_xor.reduce(hashes, initial=0) != part.hash:
            raise table_changed()
        return answer.drop_columns("h")

    def close(self) -> None:
        """Have Spark forget the cells, if it still can."""
        with suppress(Exception):
            self._kept.unpersist()


class BucketChecksums(Sensitive):
    """Of every bucket: cells, rows, the hash, and the fault that a row without a cell has left. SENSITIVE."""

    def __init__(
        self,
        n_buckets: int,
        bucket: NDArray[np.int64],
        n_cells: NDArray[np.int64],
        n_rows: NDArray[np.int64],
        hashes: NDArray[np.int64],
        faults: NDArray[np.int64],
    ) -> None:
        self._n_buckets, self._bucket = n_buckets, bucket
        self._n_cells, self._n_rows, self._hashes = n_cells, n_rows, hashes
        self.faults = faults

    def n_rows(self, which: int) -> int:
        """Rows on a lattice."""
        return int(self._n_rows[self._of(which)].sum())

    def parts(self, which: int, most_cells: int) -> list[Part]:
        """The buckets of a lattice in parts of so many cells, or of one bucket where that has more."""
        return list(self._cut(self._of(which), most_cells))

    def _of(self, which: int) -> slice:
        start, stop = np.searchsorted(self._bucket, [which * self._n_buckets, (which + 1) * self._n_buckets])
        return slice(int(start), int(stop))

    def _cut(self, chosen: slice, most_cells: int) -> Iterator[Part]:
        start, n_cells = chosen.start, 0
        for at in range(chosen.start, chosen.stop):
            if at > start and n_cells + self._n_cells[at] > most_cells:
                yield self._part(start, at)
                start, n_cells = at, 0
            n_cells += int(self._n_cells[at])
        if start < chosen.stop:
            yield self._part(start, chosen.stop)

    def _part(self, start: int, stop: int) -> Part:
        return Part(
            int(self._bucket[start]),
            int(self._bucket[stop - 1]),
            int(self._n_cells[start:stop].sum()),
            int(np.bitwise_xor.reduce(self._hashes[start:stop])),
        )


# --------------------------------------------------------------------------------------------------------- query source
# The walk is the same for every engine: a question becomes a query (`queries.py`), the engine answers it in
# Arrow, and the answer is read as counts. An engine's file says what is its own: how a query is run, how a few
# public values become a frame that can be joined, days and moments as whole numbers in the frame that it starts
# from, and, where cells may outgrow the limit of memory, how they are kept until they come over in parts.


# What one answer brings over, of cells that come in parts; Spark itself refuses answers of a gigabyte unless told.
LARGEST_PART = 1 << 29
# What a value and its count take, about, while values are brought over.
_BYTES_OF_VALUE = 128
# Buckets for each part that may be needed: so few cells more or less are in a bucket that parts come out full.
_BUCKETS_A_PART = 4


class TablePasses(Protocol):
    """Passes over the states of all rows, which stay with an engine. SENSITIVE."""

    def count(self, request: TableRequest) -> NDArray[np.int64]:
        """The vector of what is asked for, of all rows."""

    def parts(self) -> Iterator[NDArray[Any]]:
        """The states of all rows (n_columns, n_rows), some rows at a time."""

    def close(self) -> None:
        """Have the engine forget what it keeps."""


class QuerySource(Source):
    """A table that an engine holds.

    Args:
        kind: what synthetic rows come back in.
        schema: what is public about the table.
        frame: the schema's columns under their plain names (`queries.plain`), days and moments as whole numbers.
        memory_limit: bytes that counted cells may take before they go to disk; None: as `SPINNEY_MEMORY_LIMIT` says.
        spill_folder: where they go then; None: the folder for temporary files.
    """

    def __init__(
        self,
        kind: FrameKind,
        schema: Schema,
        frame: Frame,
        *,
        memory_limit: int | None = None,
        spill_folder: str | None = None,
    ) -> None:
        self.kind: FrameKind = kind
        self.schema = schema
        self._rows = Rows(frame, schema, self.small_frame)
        self._n_rows: int | None = None
        self._is_checked = False
        self._memory_limit, self._spill_folder = memory_limit, spill_folder

    # ------------------------------------------------------------------------------------- what an engine's file says

    @abstractmethod
    def run(self, query: Frame, what: str) -> pa.Table:
        """The answer to a query. Errors of the engine are told as ours, with `what` was being done."""

    @abstractmethod
    def small_frame(self, columns: dict[str, list[Any]]) -> Frame:
        """A few public values as a frame that can be joined with the rows: whole numbers, or texts."""

    def kept_cells(self, query: Frame, n_buckets: int) -> KeptCells | None:  # noqa: ARG002  # for engines that keep
        """Counted cells that the engine keeps, to come over in parts; None where they come over all at once."""
        return None

    def run_in_parts(self, query: Frame, what: str) -> Iterator[pa.Table]:
        """The answer to a query in parts, for answers of many rows; all rows of a key are in one part."""
        yield self.run(query, what)

    def table_passes(self, cuts: Sequence[AnyCut], *, keeps: bool) -> TablePasses | None:  # noqa: ARG002
        """Counts tables of states, next to the rows; None where the engine cannot.

        `keeps`: whether there will be several passes, for which states are worth keeping.
        """
        return None

    # ------------------------------------------------------------------------------------------------------- the walk

    @property
    def n_rows(self) -> int:
        if self._n_rows is None:
            answer = self.run(self._rows.n_rows(), "counting rows")
            self._n_rows = answer["n"][0].as_py()
        return self._n_rows

    def with_schema(self, schema: Schema) -> Self:
        source = copy(self)
        source.schema, source._rows = schema, self._rows.with_schema(schema)
        return source

    def check_values(self) -> None:
        self._rows.refuse_bad_rows(self.run(self._rows.bad_rows(), "checking values"))
        self._is_checked = True

    def _check_once(self) -> None:
        if not self._is_checked:
            self.check_values()

    def tally(self, names: Sequence[str], rules: Sequence[Rule]) -> Tallies:
        among = rules_among(rules, names)
        return self._rows.read_tallies(names, among, self.run(self._rows.tallies(names, among), "checking values"))

    def count_cells(self, lattice: Lattice) -> CellCounts:
        query = self._rows.cell_counts(lattice)
        kept = self._kept(query, [lattice])
        if kept is not None:
            with closing(self._in_parts(kept, [lattice], self.n_rows)) as counted:
                return next(counted)
        return self._complete(self._rows.read_cells(lattice, self.run(query, "counting cells")))

    def count_columns(self, lattices: Sequence[Lattice]) -> Iterator[CellCounts]:
        """All lattices whose cells have one key, as columns and places have, in one pass; others, one by one."""
        if len(lattices) < 2 or any(len(key_layout(lattice)) > 1 for lattice in lattices):
            return (self.count_cells(lattice) for lattice in lattices)
        query = self._rows.column_counts(lattices)
        kept = self._kept(query, lattices)
        if kept is not None:
            return self._in_parts(kept, lattices, self.n_rows)
        answer = self.run(query, "counting cells of each column")
        return (self._complete(counts) for counts in self._rows.read_columns(lattices, answer))

    def count_values(self, name: str) -> ValueCounts:
        """Counted by the engine; how many there are is asked first, where they may be too many to bring over."""
        query = self._rows.value_counts(name)
        if self.n_rows * _BYTES_OF_VALUE > self.memory_limit:
            answer = self.run(query.select(n=nw.len()), "counting different values")
            if answer["n"][0].as_py() * _BYTES_OF_VALUE > self.memory_limit:
                raise too_many_values(name)
        answer = self.run(query, "counting values")
        if (pc.sum(answer["n"]).as_py() or 0) != self.n_rows:
            raise table_changed()
        answer = answer.filter(answer["value"].is_valid())
        counter = ValueCounter(name, memory_limit=self.memory_limit)
        column = self.schema[name]
        kind = pa.large_string() if column.is_text else pa.int64()
        counter.add_counts(answer["value"].cast(kind), answer["n"])
        return counter.merged()

    def state_rows(self, cuts: Sequence[AnyCut]) -> StateRows:
        """A byte for each row and column (two beyond 256 states), twice over while the answer is unpacked."""
        self._check_once()
        rows = states_array(cuts, self.n_rows)
        answer = self.run(self._rows.states(cuts, rows.true_states.dtype), "reading states of rows")
        if answer.num_rows != self.n_rows:
            raise table_changed()
        self._rows.read_states(rows, answer)
        return rows

    def state_tables(self, cuts: Sequence[AnyCut], *, is_asked_again: bool = False) -> StateTables:
        """Counted by the engine where it can; otherwise held here."""
        self._check_once()
        passes = self.table_passes(cuts, keeps=is_asked_again)
        if passes is None:
            return self.state_rows(cuts)
        sizes = tuple(cut.n_states for cut in cuts)
        return CountedStates(sizes, self.n_rows, passes.count, memory_limit=self.memory_limit, close=passes.close)

    def sum_states(self, cuts: Sequence[AnyCut], sums: Callable[[StateRows], NDArray[np.int64]]) -> NDArray[np.int64]:
        """Of states that come over some rows at a time, where the engine can hand them out so."""
        self._check_once()
        none = states_array(cuts, 0)
        passes = self.table_passes(cuts, keeps=False)
        if passes is None:
            return sums(self.state_rows(cuts))
        total, n_rows = sums(none), 0
        for states in passes.parts():
            total += sums(StateRows(states, none.sizes))
            n_rows += states.shape[1]
        if n_rows != self.n_rows:
            raise table_changed()
        return total

    def held_rows(self) -> HeldRows:
        """Rows come over once, in as many answers as the engine makes of them, with all rows of a key in one."""
        self._check_once()
        rows, start = HeldRows(self.schema, self.n_rows), 0
        for answer in self.run_in_parts(self._rows.numbers_and_key(), "reading rows"):
            if start + answer.num_rows > self.n_rows:
                raise table_changed()
            self._rows.read_numbers(rows, start, answer)
            start += answer.num_rows
        if start != self.n_rows:
            raise table_changed()
        return rows

    def true_extremes(self, name: str) -> tuple[float, float]:
        answer = self.run(self._rows.extremes(name), "finding bounds")
        low, high = answer["low"][0].as_py(), answer["high"][0].as_py()
        if low is None:
            raise no_bounds(name)
        return low, high

    # --------------------------------------------------------------------------------------- cells that come in parts

    def _kept(self, query: Frame, lattices: Sequence[Lattice]) -> KeptCells | None:
        """The cells of a query, kept by the engine if they may outgrow the limit."""
        if sum(map(self._most_bytes, lattices)) <= self.memory_limit:
            return None
        return self.kept_cells(query, self._n_buckets(max(map(self._most_bytes, lattices))))

    def _n_buckets(self, n_bytes: int) -> int:
        """Buckets for cells that take so much at most."""
        return _BUCKETS_A_PART * -(-n_bytes // self._part_bytes)

    def _most_bytes(self, lattice: Lattice) -> int:
        """What occupied cells take here at most: there are no more of them than rows, or than cells."""
        return bytes_of_cell(lattice) * min(self.n_rows, math.prod(axis.n_possible for axis in lattice.axes))

    @property
    def _part_bytes(self) -> int:
        return min(self.memory_limit // 2, LARGEST_PART)

    def _in_parts(self, kept: KeptCells, lattices: Sequence[Lattice], n_rows: int) -> Generator[CellCounts]:
        """Counts on one lattice after the other, of so many rows, of cells that the engine keeps meanwhile."""
        try:
            checksums = kept.checksums()
            self._rows.refuse_faults(checksums.faults)
            for which, lattice in enumerate(lattices):
                if checksums.n_rows(which) != n_rows:
                    raise table_changed()
                yield self._read_parts(kept, checksums, which, lattice)
        finally:
            kept.close()

    def _read_parts(self, kept: KeptCells, checksums: BucketChecksums, which: int, lattice: Lattice) -> CellCounts:
        """Cells of one lattice. A part is sorted and goes to disk as a run; one that is alone stays in memory."""
        parts = checksums.parts(which, self._part_bytes // bytes_of_cell(lattice))
        if len(parts) == 1:
            return self._rows.read_cells(lattice, kept.collect(parts[0]))
        runs = SpilledRuns(lattice.n_words, counts_type(self.n_rows), folder=self.spill_folder)
        try:
            for part in progress(parts, "collecting cells", unit="part"):
                counts = self._rows.read_cells(lattice, kept.collect(part))
                runs.add(*counts.distinct())
            del counts
            return merge_runs(lattice, runs, n_bytes=self._part_bytes // 2)
        finally:
            runs.close()

    def _complete(self, counts: CellCounts) -> CellCounts:
        """The counts, if they are of as many rows as the table had before."""
        if counts.true_total() != self.n_rows:
            raise table_changed()
        return counts
