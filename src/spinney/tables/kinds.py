"""Kinds of tables: what a user may pass, and which file of `engines/` opens it.

A new engine is one file, which opens its tables as a `Source`, and one entry in `TABLE_KINDS`. An entry recognises its
objects by their class, without importing the library that made them, and names the function that opens them, whose file
is imported on use: opening a numpy array stays light. The first kind that recognises a table has it, so the general
ones come last.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol, cast

import narwhals as nw
import numpy as np

from spinney.errors import InputError
from spinney.schema.schema import Schema
from spinney.tables.csv import CSV, PipedCSV
from spinney.tables.source import Source


class Opener(Protocol):
    """Opens a table, once it is known to have exactly the schema's columns, with fitting types."""

    def __call__(self, frame: Any, schema: Schema, /, *, batch_bytes: int | None = None) -> Source:
        """A source; no row has been read.

        Args:
            frame: what the kind recognised.
            schema: what is public about the table.
            batch_bytes: how much of the table is read at a time, about; None for the engine's own measure.
        """


@dataclass(frozen=True, slots=True)
class TableKind:
    """One kind of table."""

    name: str  # with its article, as errors call it: "a polars LazyFrame"
    recognises: Callable[[Any], bool]
    opener: str  # a file of engines/, a colon, a function of it that is an `Opener`
    engines: tuple[str, ...]  # what may be asked for as `engine`; "memory" holds the batches of any other
    openers: Mapping[str, str] = field(default_factory=dict)  # for engines that open the table in another way

    def opened_by(self, engine: str | None) -> Opener:
        """The function that opens such a table for an engine, or for none in particular."""
        file, _, function = (self.opener if engine is None else self.openers.get(engine, self.opener)).partition(":")
        return cast(Opener, getattr(import_module(f"spinney.tables.engines.{file}"), function))


def made_by(*classes: str) -> Callable[[Any], bool]:
    """Recognises objects of classes such as "polars.LazyFrame": the library, a dot, the name. Imports nothing."""
    known = {tuple(name.split(".")) for name in classes}

    def recognises(frame: Any) -> bool:
        return any((cls.__module__.partition(".")[0], cls.__name__) in known for cls in type(frame).__mro__)

    return recognises


def _is_path(frame: Any) -> bool:
    return isinstance(frame, (str, os.PathLike))


def _is_paths(frame: Any) -> bool:
    return _is_path(frame) or (isinstance(frame, (list, tuple)) and all(map(_is_path, frame)))


def _is_csv(frame: Any) -> bool:
    return isinstance(frame, (CSV, PipedCSV))


def _is_stream(frame: Any) -> bool:
    return hasattr(type(frame), "__arrow_c_stream__") and not nw.dependencies.is_into_dataframe(frame)


def _is_held(frame: Any) -> bool:
    return isinstance(frame, np.ndarray) or nw.dependencies.is_into_dataframe(frame)


_BY_ENGINE = {"polars": "files:open_by_polars", "duckdb": "files:open_by_duckdb", "spark": "spark:open_paths"}
_IS_RELATION = made_by("duckdb.DuckDBPyRelation", "_duckdb.DuckDBPyRelation")
_IS_DASK = made_by("dask.DataFrame", "dask_expr.DataFrame")

TABLE_KINDS = (
    TableKind("a path", _is_paths, "files:open_files", (*_BY_ENGINE, "memory"), _BY_ENGINE),
    TableKind("a CSV", _is_csv, "files:open_csv", ("memory",)),
    TableKind("a polars LazyFrame", made_by("polars.LazyFrame"), "lazy:open_polars", ("polars", "memory")),
    TableKind("a DuckDB relation", _IS_RELATION, "lazy:open_duckdb", ("duckdb", "memory")),
    TableKind("a Spark DataFrame", made_by("pyspark.DataFrame"), "spark:open_spark", ("spark",)),
    TableKind("an Ibis table", made_by("ibis.Table"), "lazy:open_ibis", ("memory",)),
    TableKind("a Dask frame", _IS_DASK, "lazy:open_dask", ("memory",)),
    TableKind("a pyarrow dataset", made_by("pyarrow.Dataset"), "lazy:open_dataset", ("memory",)),
    TableKind("a RecordBatchReader", made_by("pyarrow.RecordBatchReader"), "lazy:open_reader", ("memory",)),
    TableKind("an Arrow stream", _is_stream, "lazy:open_stream", ("memory",)),
    TableKind("a table in memory", _is_held, "memory:open_memory", ("memory",)),
)
ENGINES = tuple(dict.fromkeys(engine for kind in TABLE_KINDS for engine in kind.engines))

_TABLES = (
    "a pandas, polars or pyarrow table, a numeric numpy array, the path of CSV or Parquet files (a file, a folder, a "
    "pattern or a list of paths), a polars LazyFrame, a DuckDB relation, a Spark DataFrame, an Ibis table, a Dask "
    "frame, a pyarrow dataset or a RecordBatchReader"
)


def table_kind(frame: Any) -> TableKind:
    """What a table is in, by the class of the object, or an InputError where it is no table."""
    for kind in TABLE_KINDS:
        if kind.recognises(frame):
            return kind
    raise not_a_table(frame)


def not_a_table(frame: Any) -> InputError:
    """The error for an object that no kind recognises."""
    kind = type(frame).__name__
    return InputError(f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind} is not a table; pass {_TABLES}")
