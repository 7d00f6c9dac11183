"""Spark: rows stay on the executors, and only counts reach the driver.

A PySpark data frame, classic or Connect, is asked by expressions (`queries.py`). Names and types are compared with the
schema before any job runs. Every question is one job, which Spark retries where a worker is lost; its answer is counts
of cells, or, for a forest, one byte for each row and column. Cells that may outgrow the limit of memory stay with Spark
and come over in parts (`kept.py`), which wait on disk. Noise is drawn on the driver, after the counts are final, so
that retried and speculative tasks can change nothing: engines.proof.md.

Spark's own errors are not passed on, because they quote values; the name of their condition is.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from importlib.util import find_spec
from typing import Any

import narwhals as nw
import pyarrow as pa

from spinney.columns import Column
from spinney.columns.spark import functions_of
from spinney.counting.counts import CellCounts
from spinney.counting.merging import counts_type
from spinney.counting.spill import SpilledRuns, memory_limit, merge_runs
from spinney.counting.states import Cut, StateRows, states_array
from spinney.errors import InputError
from spinney.progress import progress, waiting
from spinney.redacted import redacted
from spinney.schema.lattice import Lattice
from spinney.schema.rules import Rule
from spinney.schema.table import Schema
from spinney.tables.described import check_names, fits, misfit, type_error
from spinney.tables.engines.persisted import BucketChecksums, PersistedCells
from spinney.tables.engines.queries import Frame, Rows, bytes_of_cell, plain
from spinney.tables.frames import FrameKind
from spinney.tables.source import Source
from spinney.tables.tally import Tallies, rules_among

_DEEPEST_CAUSE = 8
# What one job brings over, of cells that come in parts; Spark itself refuses answers of a gigabyte unless told.
_LARGEST_PART = 1 << 29
# Buckets for each part that may be needed: so few cells more or less are in a bucket that parts come out full.
_BUCKETS_A_PART = 4


class SparkSource(Source):
    """A PySpark data frame. Synthetic rows come back in pandas where it is installed, in pyarrow otherwise."""

    def __init__(self, frame: Any, schema: Schema) -> None:
        self.kind: FrameKind = "pandas" if find_spec("pandas") else "pyarrow"
        self.schema = schema
        self._session = frame.sparkSession
        self._n_rows: int | None = None
        self._is_checked = False
        with _quietly("opening the table"):
            types = _checked_types(frame, schema)
            self._rows = Rows(nw.from_native(_prepared(frame, schema, types)), schema, self._small_frame)

    @property
    def n_rows(self) -> int:
        if self._n_rows is None:
            answer = self._run(self._rows.n_rows(), "counting rows")
            self._n_rows = answer["n"][0].as_py()
        return self._n_rows

    def with_schema(self, schema: Schema) -> SparkSource:
        source = object.__new__(SparkSource)
        source.kind, source.schema, source._session = self.kind, schema, self._session
        source._n_rows, source._is_checked = self._n_rows, self._is_checked
        source._rows = self._rows.with_schema(schema)
        return source

    def check_values(self) -> None:
        self._rows.refuse_bad_rows(self._run(self._rows.bad_rows(), "checking values"))
        self._is_checked = True

    def tally(self, names: Sequence[str], rules: Sequence[Rule]) -> Tallies:
        among = rules_among(rules, names)
        return self._rows.read_tallies(names, among, self._run(self._rows.tallies(names, among), "checking values"))

    def count_cells(self, lattice: Lattice) -> CellCounts:
        query = self._rows.cell_counts(lattice)
        if self._most_bytes([lattice]) > memory_limit():
            with closing(self._in_parts(query, [lattice])) as counted:
                return next(counted)
        return self._complete(self._rows.read_cells(lattice, self._run(query, "counting cells")))

    def count_columns(self, lattices: Sequence[Lattice]) -> Iterator[CellCounts]:
        """All lattices of one column in one pass over the table; others, one by one."""
        single = [lattice for lattice in lattices if lattice.n_axes == 1]
        if len(single) < max(2, len(lattices)):
            return (self.count_cells(lattice) for lattice in lattices)
        query = self._rows.column_counts(single)
        if self._most_bytes(single) > memory_limit():
            return self._in_parts(query, single)
        answer = self._run(query, "counting cells of each column")
        return (self._complete(counts) for counts in self._rows.read_columns(single, answer))

    def state_rows(self, cuts: Sequence[Cut]) -> StateRows:
        """A byte for each row and column (two beyond 256 states), twice over while the answer is unpacked."""
        if not self._is_checked:
            self.check_values()
        rows = states_array(cuts, self.n_rows)
        answer = self._run(self._rows.states(cuts, rows), "reading states of rows")
        if answer.num_rows != self.n_rows:
            raise _changed()
        self._rows.read_states(rows, answer)
        return rows

    def true_extremes(self, name: str) -> tuple[float, float]:
        answer = self._run(self._rows.extremes(name), "finding bounds")
        low, high = answer["low"][0].as_py(), answer["high"][0].as_py()
        if low is None:
            raise InputError(f"column {name!r} holds no finite value, so it has no bounds; state them in the schema")
        return low, high

    def _most_bytes(self, lattices: Sequence[Lattice]) -> int:
        """What occupied cells take on the driver at most: there are no more of them than rows, or than cells."""
        return sum(bytes_of_cell(lattice) * min(self.n_rows, _n_possible(lattice)) for lattice in lattices)

    def _in_parts(self, query: Frame, lattices: Sequence[Lattice]) -> Generator[CellCounts]:
        """Counts on one lattice after the other, of cells that Spark keeps meanwhile."""
        most_parts = -(-max(self._most_bytes([lattice]) for lattice in lattices) // _part_bytes())
        native = query.to_native()
        with _quietly("counting cells"):
            kept = PersistedCells(
                native,
                n_buckets=_BUCKETS_A_PART * most_parts,
                functions=functions_of(native),
                run=lambda query, what: self._run(nw.from_native(query), what),
            )
        try:
            checksums = kept.checksums()
            self._rows.refuse_faults(checksums.faults)
            for which, lattice in enumerate(lattices):
                if checksums.n_rows(which) != self.n_rows:
                    raise _changed()
                yield self._read_parts(kept, checksums, which, lattice)
        finally:
            kept.close()

    def _read_parts(self, kept: PersistedCells, checksums: BucketChecksums, which: int, lattice: Lattice) -> CellCounts:
        """Cells of one lattice. A part is sorted and goes to disk as a run; one that is alone stays in memory."""
        parts = checksums.parts(which, _part_bytes() // bytes_of_cell(lattice))
        if len(parts) == 1:
            return self._rows.read_cells(lattice, kept.collect(parts[0]))
        runs = SpilledRuns(lattice.n_words, counts_type(self.n_rows))
        try:
            for part in progress(parts, "collecting cells", unit="part"):
                counts = self._rows.read_cells(lattice, kept.collect(part))
                runs.add(*counts.distinct())
            del counts
            return merge_runs(lattice, runs, n_bytes=_part_bytes() // 2)
        finally:
            runs.close()

    def _complete(self, counts: CellCounts) -> CellCounts:
        """The counts, if they are of as many rows as the table had before."""
        if counts.true_total() != self.n_rows:
            raise _changed()
        return counts

    def _run(self, query: Frame, what: str) -> pa.Table:
        """The answer to a query: one job, which Spark shows under our description."""
        with waiting(f"Spark is {what}"), _quietly(what), _described(self._session, f"Spinney: {what}"):
            return query.collect(backend="pyarrow").to_native()

    def _small_frame(self, columns: dict[str, list[Any]]) -> Frame:
        """Public values on every executor."""
        table = [tuple(row) for row in zip(*columns.values(), strict=True)]
        kinds = ["string" if isinstance(values[0], str) else "bigint" for values in columns.values()]
        described = ", ".join(f"{name} {kind}" for name, kind in zip(columns, kinds, strict=True))
        with _quietly("handing out a list of categories"):
            small: Frame = nw.from_native(self._session.createDataFrame(table, described).hint("broadcast"))
            return small


def _n_possible(lattice: Lattice) -> int:
    return math.prod(axis.n_possible for axis in lattice.axes)


def _part_bytes() -> int:
    return min(memory_limit() // 2, _LARGEST_PART)


# --------------------------------------------------------------------------------------------- types and values


def _checked_types(frame: Any, schema: Schema) -> dict[str, Any]:
    """The Spark types of the schema's columns, once names and types are known to fit. Runs no job."""
    names = list(frame.columns)
    if len(set(names)) < len(names):
        raise InputError("the table has two columns of the same name; rename one")
    check_names(names, schema)
    numbered = frame.toDF(*(str(index) for index in range(len(names))))
    dtypes = dict(zip(names, nw.from_native(numbered).collect_schema().values(), strict=True))
    types = dict(zip(names, (field.dataType for field in frame.schema.fields), strict=True))
    for name, column in schema.items():
        if not column.is_read or types[name].typeName() == "void":
            continue
        dtype, kind = dtypes[name], types[name].typeName()
        if isinstance(dtype, nw.String) and not column.reads_spark_strings:
            # Spark's own parsing of strings is not ours, and engines must agree to the last bit.
            remedy = f"Spark's strings are not parsed: convert the column first, {column.spark_cast}"
            raise type_error(name, kind, column, remedy)
        if isinstance(dtype, nw.Unknown):
            raise type_error(name, kind, column, "convert it to a number, a string or a date, or drop it")
        if not fits(dtype, column):
            raise misfit(name, dtype, column)
    return types


def _prepared(frame: Any, schema: Schema, types: dict[str, Any]) -> Any:
    """The columns that will be read, under plain names, with days and moments as whole numbers."""
    position = {name: index for index, name in enumerate(frame.columns)}
    numbered = frame.toDF(*(f"x{index}" for index in range(len(position))))
    return numbered.select(
        *(
            _physical(numbered[f"x{position[name]}"], column, types[name]).alias(plain(index))
            for index, (name, column) in enumerate(schema.items())
            if column.is_read
        )
    )


def _physical(value: Any, column: Column, kind: Any) -> Any:
    """A column as a number, a truth value or a text."""
    if kind.typeName() == "void":
        return value.cast("string" if column.is_text else "bigint" if column.is_whole else "double")
    return column.from_spark(value, kind)


# ------------------------------------------------------------------------------------------------ jobs and errors


def _changed() -> InputError:
    return InputError(
        "the number of rows changed while the table was read; cache the data frame or write it out, and fit that"
    )


def _quietly(what: str) -> AbstractContextManager[None]:
    """Our own errors pass; of Spark's only the condition is told, because their messages quote the data."""
    return redacted(
        lambda err: InputError(
            f"Spark failed while {what}{_condition(err)}; its own log says why. The message is not repeated here "
            "because it may quote the table"
        )
    )


def _condition(err: BaseException) -> str:
    """The name that Spark gives to a kind of error, such as FAILED_READ_FILE.FILE_NOT_EXIST, where it gives one."""
    causes: list[Any] = [err, getattr(err, "java_exception", None)]
    for _ in range(_DEEPEST_CAUSE):
        causes.append(_ask(causes[-1], "getCause"))
    for cause in causes:
        for question in ("getCondition", "getErrorClass"):
            name = _ask(cause, question)
            if isinstance(name, str) and name.replace("_", "").replace(".", "").isalnum() and name.isupper():
                return f" ({name})"
    return f" ({type(err).__name__})"


def _ask(thing: Any, question: str) -> Any:
    """What an error, here or on the other side, answers; None where it does not know the question."""
    try:
        return getattr(thing, question)()
    except Exception:
        return None


@contextmanager
def _described(session: Any, text: str) -> Iterator[None]:
    """Jobs under a description in Spark's own pages; Connect has none to set."""
    if ".connect." in type(session).__module__:
        yield
        return
    context = session.sparkContext
    before = context.getLocalProperty("spark.job.description")
    context.setLocalProperty("spark.job.description", text)
    try:
        yield
    finally:
        context.setLocalProperty("spark.job.description", before)
