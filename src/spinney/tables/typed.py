"""Names and types of the columns of files, where there is no schema yet.

Parquet files say their types. CSV files do not, so their values are looked at: what they suggest is a guess for a
person to check. Of several files the first is looked at.
"""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from spinney.errors import InputError
from spinney.tables.csv.format import CSV, PLAIN, PipedCSV
from spinney.tables.csv.guess import guess_types
from spinney.tables.engines.files import redacted_file
from spinney.tables.paths.expanding import is_parquet, list_files


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
