"""What is known of a table without a schema: its parts, its files, the names and types of its columns.

files and names    parts of a table and names of its columns, without a look at rows
types              types from Parquet's own schema, or guessed from the values of a CSV
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

import narwhals as nw
import pyarrow as pa
import pyarrow.parquet as pq

from spinney.errors import InputError, SpinneyError
from spinney.tables.csv import CSV, PLAIN, PipedCSV
from spinney.tables.csv_reader import guess_types, read_names
from spinney.tables.engines.files import redacted_file
from spinney.tables.kinds import table_kind
from spinney.tables.paths import (
    dataset_reads,
    duckdb_reads,
    identity,
    is_parquet,
    is_remote,
    list_files,
    local_path,
    polars_reads,
    spark_reads,
)

# ------------------------------------------------------------------------------------------------------ files and names
# Parts, files and names of columns of any table, without a schema or a look at rows.


# What libraries report of the files that they read, by the name of the kind of table.
_READS: dict[str, Callable[[Any], list[list[str]]]] = {
    "a polars LazyFrame": polars_reads,
    "a DuckDB relation": duckdb_reads,
    "a pyarrow dataset": dataset_reads,
    "a Spark DataFrame": spark_reads,
}


def parts_of(frame: Any) -> list[Any]:
    """The files of a path, a folder, a pattern or a list of them; any other table is one part."""
    if isinstance(frame, CSV):
        return [replace(frame, path=name) for name in list_files(frame.path)]
    paths = frame if isinstance(frame, (list, tuple)) else [frame]
    if all(isinstance(path, (str, os.PathLike)) and not is_remote(os.fsdecode(path)) for path in paths):
        return list(list_files(frame))
    return [frame]


def files_read(frame: Any) -> set[Hashable]:
    """The files that a table is read from, each by what is the same for all of its names, as far as that is told."""
    try:
        frame = nw.to_native(frame, pass_through=True)
        kind = table_kind(frame).name
        reads = _READS[kind](frame) if kind in _READS else [parts_of(frame)]
    except SpinneyError:  # it cannot be opened, which is told in its turn
        return set()
    names = [name.path if isinstance(name, CSV) else name for read in reads for name in read]
    return {identity(local_path(os.fsdecode(name))) for name in names if isinstance(name, (str, os.PathLike))}


def names_of(part: Any) -> list[str] | None:
    """The names of a table's columns, or None where it has none of its own or does not tell."""
    if isinstance(part, PipedCSV):
        return read_names(part.data, part.csv)
    if isinstance(part, (str, os.PathLike, CSV)):
        csv = part if isinstance(part, CSV) else replace(PLAIN, path=part)
        path = os.fsdecode(csv.path)
        if is_remote(path):
            return None
        with redacted_file(path):
            return list(pq.read_schema(path).names) if is_parquet(path) else read_names(path, csv)
    # Of pyarrow alone: a lazy frame warns where it is asked for its schema in this way.
    own = getattr(part, "schema", None) if type(part).__module__.startswith("pyarrow.") else None
    if isinstance(own, pa.Schema):
        return list(own.names)
    try:
        return [str(name) for name in nw.from_native(part).collect_schema().names()]
    except Exception:  # whatever another engine raises may quote its table
        return None


# ---------------------------------------------------------------------------------------------------------------- types
# Names and types of the columns of files, where there is no schema yet.
#
# Parquet files say their types. CSV files do not, so their values are looked at: what they suggest is a guess
# for a person to check. Of several files the first is looked at.


def file_types(table: Any, *, most_blocks: int | None = None) -> pa.Schema:
    """Names and types of the columns of a file, a folder, a pattern or a list of paths, or of a `CSV`.

    With `most_blocks`, the types of a CSV are guessed from so many blocks at its beginning.
    """
    if isinstance(table, PipedCSV):
        return guess_types(table.data, table.csv)
    path = table.path if isinstance(table, CSV) else table
    paths = path if isinstance(path, (list, tuple)) else [path]
    if not all(isinstance(each, (str, os.PathLike)) for each in paths):
        kind = type(table).__name__
        raise InputError(
            f"types cannot be told of {'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}; pass a pandas, polars or "
            "pyarrow table, a pyarrow schema, or the path of CSV or Parquet files"
        )
    file = list_files(path)[0]
    with redacted_file(file):
        if is_parquet(file):
            return pq.ParquetFile(file).schema_arrow
        return guess_types(file, table if isinstance(table, CSV) else PLAIN, most_blocks=most_blocks)
