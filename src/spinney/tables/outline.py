"""Outlines of tables: which parts there are and what their columns are called, without a schema or a look at rows."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import narwhals as nw
import pyarrow as pa
import pyarrow.parquet as pq

from spinney.tables.csv.format import CSV, PLAIN, PipedCSV
from spinney.tables.csv.header import read_names
from spinney.tables.engines.files import redacted_file
from spinney.tables.paths.expanding import is_parquet, is_remote, list_files


def parts_of(frame: Any) -> list[Any]:
    """The files of a path, a folder, a pattern or a list of them; any other table is one part."""
    if isinstance(frame, CSV):
        return [replace(frame, path=name) for name in list_files(frame.path)]
    paths = frame if isinstance(frame, (list, tuple)) else [frame]
    if all(isinstance(path, (str, os.PathLike)) and not is_remote(os.fsdecode(path)) for path in paths):
        return list(list_files(frame))
    return [frame]


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
