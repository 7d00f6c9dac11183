"""Whatever a table is in, as a `Source`: recognised from the object, or by the engine that is asked for.

No library is imported unless the object is one of its own, so that opening a numpy array stays light.
"""

from __future__ import annotations

import os
from typing import Any

import narwhals as nw
import numpy as np

from spinney.errors import InputError, ParameterError, raise_alone
from spinney.extras import load_optional
from spinney.schema.table import Schema, as_schema
from spinney.suggest import did_you_mean
from spinney.tables.csv.format import CSV, PipedCSV
from spinney.tables.engines.memory import MemorySource
from spinney.tables.engines.stream import StreamSource
from spinney.tables.frames import open_table
from spinney.tables.source import Source

ENGINES = ("polars", "duckdb", "spark", "memory")

# What a table may be in, and which engines can then be asked for.
_GOES_WITH = {
    "a table in memory": ("memory",),
    "a path": ENGINES,
    "a list of paths": ENGINES,
    "a CSV": ("memory",),
    "a polars LazyFrame": ("polars", "memory"),
    "a DuckDB relation": ("duckdb", "memory"),
    "a Spark DataFrame": ("spark",),
    "an Ibis table": ("memory",),
    "a Dask frame": ("memory",),
    "a pyarrow dataset": ("memory",),
    "a RecordBatchReader": ("memory",),
    "an Arrow stream": ("memory",),
}

_TABLES = (
    "a pandas, polars or pyarrow table, a numeric numpy array, the path of CSV or Parquet files (a file, a folder, a "
    "pattern or a list of paths), a polars LazyFrame, a DuckDB relation, a Spark DataFrame, an Ibis table, a Dask "
    "frame, a pyarrow dataset or a RecordBatchReader"
)


def open_source(frame: Any, schema: Schema, *, engine: str | None = None) -> Source:
    """The table behind the right engine, once it is known to have exactly the schema's columns, with fitting types."""
    if engine is not None and engine not in ENGINES:
        hint = did_you_mean(engine, ENGINES)
        raise ParameterError(f"engine={engine!r} is not one of {', '.join(map(repr, ENGINES))}; or leave it out{hint}")
    schema = as_schema(schema)
    frame = nw.to_native(frame, pass_through=True)
    what = table_kind(frame)
    if engine is not None and engine not in _GOES_WITH[what]:
        fitting = " or ".join(map(repr, _GOES_WITH[what]))
        raise ParameterError(f"engine={engine!r} does not go with {what}; leave it out, or say {fitting}")
    if what == "a table in memory":
        if not isinstance(frame, np.ndarray) and not nw.dependencies.is_into_dataframe(frame):
            raise _not_a_table(frame)
        return MemorySource(open_table(frame, schema))
    if what == "a Spark DataFrame" or engine == "spark":
        return _open_spark(frame, schema)
    source = _open_stream(frame, schema, what, engine)
    return source.materialized() if engine == "memory" else source


def table_kind(frame: Any) -> str:
    """What a table is in, by the library that the object comes from."""
    if isinstance(frame, (str, os.PathLike)):
        return "a path"
    if isinstance(frame, (list, tuple)) and all(isinstance(each, (str, os.PathLike)) for each in frame):
        return "a list of paths"
    if isinstance(frame, (CSV, PipedCSV)):
        return "a CSV"
    kinds = {(cls.__module__.partition(".")[0], cls.__name__) for cls in type(frame).__mro__}
    for what, known in _CLASSES.items():
        if kinds & known:
            return what
    if hasattr(type(frame), "__arrow_c_stream__") and not nw.dependencies.is_into_dataframe(frame):
        return "an Arrow stream"
    return "a table in memory"


_CLASSES = {
    "a polars LazyFrame": {("polars", "LazyFrame")},
    "a DuckDB relation": {("duckdb", "DuckDBPyRelation"), ("_duckdb", "DuckDBPyRelation")},
    "a Spark DataFrame": {("pyspark", "DataFrame")},
    "an Ibis table": {("ibis", "Table")},
    "a Dask frame": {("dask", "DataFrame"), ("dask_expr", "DataFrame")},
    "a pyarrow dataset": {("pyarrow", "Dataset")},
    "a RecordBatchReader": {("pyarrow", "RecordBatchReader")},
}


def _open_stream(frame: Any, schema: Schema, what: str, engine: str | None) -> StreamSource:
    from spinney.tables.engines import lazy

    if what == "a CSV":
        from spinney.tables.engines.files import open_csv

        return open_csv(frame, schema)
    if what in ("a path", "a list of paths"):
        from spinney.tables.engines.files import open_files

        reader = None if engine == "memory" else engine
        if reader is not None:
            _require(reader)
        return open_files(frame, schema, engine=reader)
    if what == "an Arrow stream":
        return lazy.open_reader(_reader(frame), schema)
    return {
        "a polars LazyFrame": lazy.open_polars,
        "a DuckDB relation": lazy.open_duckdb,
        "an Ibis table": lazy.open_ibis,
        "a Dask frame": lazy.open_dask,
        "a pyarrow dataset": lazy.open_dataset,
        "a RecordBatchReader": lazy.open_reader,
    }[what](frame, schema)


def _reader(stream: Any) -> Any:
    """The batches of any object that hands out Arrow data; columns that stand alone do so too, and are no tables."""
    import pyarrow as pa

    from spinney.tables.engines.lazy import told

    with told("the Arrow stream"):
        try:
            return pa.RecordBatchReader.from_stream(stream)
        except pa.ArrowInvalid:
            raise_alone(_not_a_table(stream))


def _open_spark(frame: Any, schema: Schema) -> Source:
    """A Spark DataFrame; paths are read by the session that is active, wherever their files are."""
    _require("spark")
    from spinney.tables.engines.lazy import told
    from spinney.tables.engines.spark import SparkSource
    from spinney.tables.paths.named import refuse_repeated_reads, spark_reads

    if isinstance(frame, (str, os.PathLike, list, tuple)):
        from pyspark.sql import SparkSession

        paths = [os.fsdecode(path) for path in (frame if isinstance(frame, (list, tuple)) else [frame])]
        if not paths:
            raise ParameterError("the list of paths is empty; name at least one file")
        if any(path.lower().endswith((".csv", ".csv.gz")) for path in paths):
            raise ParameterError("engine='spark' reads Parquet only; CSV is read as the schema says; leave engine out")
        session = SparkSession.getActiveSession()
        if session is None:
            raise ParameterError("engine='spark' needs an active SparkSession to read a path; start one first")
        with told("the path, which Spark was to read,"):
            # One by one: of paths read together Spark names each file once, even where it reads it twice.
            frames = [session.read.parquet(path) for path in paths]
            refuse_repeated_reads([sorted(name for each in frames for name in each.inputFiles())])
            frame = frames[0] if len(frames) == 1 else session.read.parquet(*paths)
        return SparkSource(frame, schema)
    if type(frame).__module__.startswith("pyspark.pandas"):  # the pandas manner of writing Spark
        with told("the frame of pyspark.pandas"):
            frame = frame.to_spark()
    source = SparkSource(frame, schema)
    refuse_repeated_reads(spark_reads(frame))
    return source


def _not_a_table(frame: Any) -> InputError:
    kind = type(frame).__name__
    return InputError(f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind} is not a table; pass {_TABLES}")


def _require(engine: str) -> None:
    """Raise a MissingExtraError unless the engine's library can be imported."""
    load_optional("pyspark" if engine == "spark" else engine, f"engine={engine!r}", otherwise="leave engine out")
