"""Spark: rows stay on the executors, and only counts reach the driver. SENSITIVE.

A PySpark data frame, classic or Connect, answers expressions (`query_source.py`). Names and types are compared
with the schema before any job runs. Every question is one job, which Spark retries where a worker is lost; its
answer is counts of cells, or, for a forest, of tables (`spark_tables.py`). Cells that may outgrow the limit of
memory stay with Spark and come over in parts (`query_source.py`, kept cells), which wait on disk.

    source              `SparkSource`: how a query is run and what Spark keeps
    opening             data frames, and Parquet files that the active session reads
    types and values    Spark's types against the schema; days and moments as whole numbers
    jobs and errors     Spark's errors quote values, so only the name of their condition is passed on
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.columns import Column
from spinney.columns.reading import functions_of
from spinney.counting.counter import CellCounter, Marks
from spinney.counting.counts import CellCounts, ColumnCounts
from spinney.counting.states import AnyCut, StateRows
from spinney.errors import InputError, ParameterError, redacted
from spinney.grid.lattice import Axis, Lattice
from spinney.grid.ruler import RootedRuler
from spinney.machine import load_optional
from spinney.progress import progress, waiting
from spinney.schema.schema import Schema
from spinney.tables.engines.lazy import redacted_query
from spinney.tables.engines.queries import Frame, bytes_of_cell, plain
from spinney.tables.engines.query_source import LARGEST_PART, PersistedCells, QuerySource
from spinney.tables.engines.spark_tables import (
    ColumnVectors,
    SparkColumns,
    SparkPasses,
    column_vectors,
    packing_worker,
)
from spinney.tables.engines.stream import ReadInside, check_room, is_held
from spinney.tables.frames import check_names, fits, misfit, type_error
from spinney.tables.paths import refuse_repeated_reads, spark_reads

_DEEPEST_CAUSE = 8
# What a value takes in an answer, about; keys may be longer.
_VALUE_BYTES = 10
# Cells of columns that take no more than this part of the limit are counted by a group-by, and come over as they are.
_FEW_CELLS_PART = 8
# Cells of the rows of a column that is read again may take this part of the limit when they come over.
_AGAIN_PART = 4
# Bytes of a method that Java's compiler still looks at.
_METHOD_SETTING, _LARGEST_METHOD = "spark.sql.codegen.hugeMethodLimit", 8_000


class SparkSource(QuerySource):
    """A PySpark data frame. Synthetic rows come back in pandas where it is installed, in pyarrow otherwise."""

    def __init__(
        self, frame: Any, schema: Schema, *, memory_limit: int | None = None, spill_folder: str | None = None
    ) -> None:
        self._session = frame.sparkSession
        with redacted_job("opening the table"):
            prepared = nw.from_native(_prepared(frame, schema, _checked_types(frame, schema)))
            super().__init__(
                "pandas" if find_spec("pandas") else "pyarrow",
                schema,
                prepared,
                memory_limit=memory_limit,
                spill_folder=spill_folder,
            )

    def run(self, query: Frame, what: str) -> pa.Table:
        """The answer to a query: one job, which Spark shows under our description."""
        with (
            waiting(f"Spark is {what}"),
            redacted_job(what),
            _described(self._session, f"Spinney: {what}"),
            _small_methods(self._session),
        ):
            return query.collect(backend="pyarrow").to_native()

    def run_in_parts(self, query: Frame, what: str) -> Iterator[pa.Table]:
        """Several jobs where one answer would be too large; a hash of the key says which job a row comes by."""
        native = query.to_native()
        n_parts = -(-self.n_rows * _VALUE_BYTES * len(native.columns) // LARGEST_PART)
        if n_parts < 2 or "k" not in native.columns:
            yield self.run(query, what)
            return
        with redacted_job(what):
            kept = native.selectExpr("*", f"pmod(xxhash64(k), {n_parts}) AS b").persist()
        try:
            for part in progress(range(n_parts), what, unit="part"):
                yield self.run(nw.from_native(kept.filter(f"b = {part}").drop("b")), what)
        finally:
            with suppress(Exception):
                kept.unpersist()

    def small_frame(self, columns: dict[str, list[Any]]) -> Frame:
        """Public values on every executor."""
        table = [tuple(row) for row in zip(*columns.values(), strict=True)]
        kinds = ["string" if isinstance(values[0], str) else "bigint" for values in columns.values()]
        described = ", ".join(f"{name} {kind}" for name, kind in zip(columns, kinds, strict=True))
        with redacted_job("handing out a list of categories"):
            small: Frame = nw.from_native(self._session.createDataFrame(table, described).hint("broadcast"))
            return small

    def kept_cells(self, query: Frame, n_buckets: int) -> PersistedCells:
        """Cells that Spark persists: in the executors' memory, and on their disks where that is short."""
        native = query.to_native()
        with redacted_job("counting cells"):
            return PersistedCells(
                native,
                n_buckets=n_buckets,
                functions=functions_of(native),
                run=self._run_native,
            )

    def count_ruled(self, lattices: Sequence[Lattice], rulers: Sequence[RootedRuler | None]) -> Iterator[ColumnCounts]:
        """By Spark's Python workers in one job, but for places; where there are none, or few cells, by a group-by."""
        n_bytes = sum(map(self._most_bytes, lattices))
        if n_bytes <= self.memory_limit // _FEW_CELLS_PART or not self._has_workers:
            return self.count_columns(lattices)
        chosen = column_vectors(lattices, rulers, n_rows=self.n_rows, memory_limit=self.memory_limit)
        others = [lattice for place, lattice in enumerate(lattices) if place not in chosen]
        vectors = ColumnVectors(tuple(lattices[place] for place in chosen), tuple(chosen.values()))
        return self._counted(len(lattices), chosen, vectors, others)

    def _counted(
        self, n_lattices: int, chosen: Collection[int], vectors: ColumnVectors, others: Sequence[Lattice]
    ) -> Generator[ColumnCounts]:
        """Counts of all lattices in order, of which some are counted in vectors."""
        columns = SparkColumns(self._packed_cells, self._run_native, self._rows.refuse_faults, n_rows=self.n_rows)

        def reading(marks: Marks) -> ReadInside:
            return lambda is_wanted, n_rows: self._inside(columns, marks, is_wanted, n_rows)

        with ExitStack() as stack:
            counted = columns.counts(vectors, reading) if vectors.lattices else iter(())
            rest = self.count_columns(others) if others else iter(())
            if isinstance(rest, Generator):
                stack.enter_context(closing(rest))
            for place in range(n_lattices):
                yield next(counted if place in chosen else rest)

    def _inside(self, columns: SparkColumns, marks: Marks, is_wanted: NDArray[np.bool_], n_rows: int) -> CellCounts:
        """Cells of the rows behind some marks, of which there are so many: they come over, or Spark counts them."""
        lattice, what = marks.lattice, "counting cells of a column"
        with redacted_job(what):
            cells = columns.cells_inside(marks, is_wanted)
        if 8 * n_rows > min(self.memory_limit // _AGAIN_PART, LARGEST_PART):
            query = nw.from_native(cells.groupBy("k0").count().toDF("k0", "n"))
            kept = self.kept_cells(query, self._n_buckets(n_rows * bytes_of_cell(lattice)))
            with closing(self._in_parts(kept, [lattice], n_rows)) as counted:
                return next(counted)
        found = self._run_native(cells, what)["k0"]
        limit = self.memory_limit // _AGAIN_PART
        run = CellCounter(lattice, n_rows=len(found), memory_limit=limit, spill_folder=self.spill_folder)
        try:
            for chunk in found.chunks:
                here = chunk.to_numpy()
                self._rows.refuse_faults(here)
                run.put(here.astype(np.uint64).reshape(-1, 1) << np.uint64(64 - lattice.depth))
            del found
            return run.merged()
        finally:
            run.close()

    def _packed_cells(self, axes: Sequence[Axis]) -> Any:
        return self._rows.column_cells(axes).to_native()

    def _run_native(self, query: Any, what: str) -> pa.Table:
        return self.run(nw.from_native(query), what)

    def table_passes(self, cuts: Sequence[AnyCut], *, keeps: bool) -> SparkPasses | None:
        """Jobs in which Spark's Python workers count; None where it has none that can."""
        if not self._has_workers:
            return None
        with redacted_job("counting tables"):
            return SparkPasses(
                self._rows.cut_cells(cuts).to_native(),
                cuts,
                keeps=keeps,
                run=self._run_native,
            )

    def sum_states(self, cuts: Sequence[AnyCut], sums: Callable[[StateRows], NDArray[np.int64]]) -> NDArray[np.int64]:
        with redacted_job("adding up columns"):
            return super().sum_states(cuts, sums)

    def check_tables(self, n_columns: int, n_cells: int) -> None:
        if self._has_workers:
            check_room(n_cells, self.memory_limit)
        elif not is_held(self.n_rows, n_columns, 1, self.memory_limit):
            raise InputError(
                "Spark's workers cannot run Python functions on Arrow batches (DataFrame.mapInArrow), and without them "
                f"a forest of this table would need {2 * self.n_rows * n_columns:,} bytes on the driver; install "
                "pyarrow and numpy for the workers, or raise SPINNEY_MEMORY_LIMIT"
            )

    @cached_property
    def _has_workers(self) -> bool:
        """Whether Spark has Python workers that can be handed Arrow batches: a tiny job tells."""
        try:
            one = self._session.range(1, numPartitions=1).mapInArrow(packing_worker("uint8"), "n bigint, states binary")
            return len(one.collect()) == 1
        except Exception:  # whatever Spark says: there is another way
            return False


# -------------------------------------------------------------------------------------------------------------- opening


def open_spark(
    frame: Any,
    schema: Schema,
    *,
    batch_bytes: int | None = None,  # noqa: ARG001  # rows stay with Spark
) -> SparkSource:
    """A Spark DataFrame, classic or Connect, or one in the manner of pandas."""
    if type(frame).__module__.startswith("pyspark.pandas"):
        with redacted_query("the frame of pyspark.pandas"):
            frame = frame.to_spark()
    source = SparkSource(frame, schema)
    refuse_repeated_reads(spark_reads(frame))
    return source


def open_paths(
    given: Any,
    schema: Schema,
    *,
    batch_bytes: int | None = None,  # noqa: ARG001  # rows stay with Spark
) -> SparkSource:
    """Parquet files, read by the session that is active, wherever they are."""
    load_optional("pyspark", "engine='spark'", otherwise="leave engine out")
    from pyspark.sql import SparkSession

    paths = [os.fsdecode(path) for path in (given if isinstance(given, (list, tuple)) else [given])]
    if not paths:
        raise ParameterError("the list of paths is empty; name at least one file")
    if any(path.lower().endswith((".csv", ".csv.gz")) for path in paths):
        raise ParameterError("engine='spark' reads Parquet only; Spinney itself reads CSV; leave engine out")
    session = SparkSession.getActiveSession()
    if session is None:
        raise ParameterError("engine='spark' needs an active SparkSession to read a path; start one first")
    with redacted_query("the path, which Spark was to read,"):
        # One by one: of paths read together Spark names each file once, even where it reads it twice.
        frames = [session.read.parquet(path) for path in paths]
        refuse_repeated_reads([sorted(name for each in frames for name in each.inputFiles())])
        frame = frames[0] if len(frames) == 1 else session.read.parquet(*paths)
    return SparkSource(frame, schema)


# ----------------------------------------------------------------------------------------------------- types and values


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
        if kind in column._spark_types:
            continue
        if isinstance(dtype, nw.String) and not column.is_text:
            # Spark's own parsing of strings is not ours, and engines must agree to the last bit.
            remedy = f"Spark's strings are not parsed: convert the column first, {column._spark_cast}"
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
    """A column as a number, a boolean or a string."""
    if kind.typeName() == "void":
        return value.cast("string" if column.is_text else "bigint" if column.is_whole else "double")
    return column._from_spark(value, kind)


# ------------------------------------------------------------------------------------------------------ jobs and errors


def redacted_job(what: str) -> AbstractContextManager[None]:
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


@contextmanager
def _small_methods(session: Any) -> Iterator[None]:
    """Queries that would become one huge method are made of small ones: Java compiles no method beyond 8,000 bytes.

    The setting is that of the session, and is put back; a session that does not let itself be set stays as it is.
    """
    before = None
    with suppress(Exception):
        before = session.conf.get(_METHOD_SETTING)
        session.conf.set(_METHOD_SETTING, str(min(int(before), _LARGEST_METHOD)))
    try:
        yield
    finally:
        if before is not None:
            with suppress(Exception):
                session.conf.set(_METHOD_SETTING, before)
