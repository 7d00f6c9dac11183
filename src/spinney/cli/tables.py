"""Tables on the command line: CSV and Parquet files, with `-` for CSV on standard input or output.

Files are read by the library's own readers, batch by batch. What comes through a pipe can be read once only, so it is
held in memory.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from spinney.cli.command import files_of, is_piped
from spinney.errors import ParameterError
from spinney.files import write_whole
from spinney.progress import progress, waiting
from spinney.schema.schema import Schema
from spinney.tables import csv as csv_format
from spinney.tables.csv_reader import read_csv
from spinney.tables.engines.files import redacted_file
from spinney.tables.paths import CSV_ENDINGS, PARQUET_ENDINGS, is_parquet

# Rows that are written at a time; the row groups of a Parquet file.
_AT_ONCE = 1 << 20


def check_table_name(path: str, argument: str, *, endings: tuple[str, ...] = (".csv", *PARQUET_ENDINGS)) -> None:
    """Raise unless the ending of a file name says which kind of table it is."""
    if not path.lower().endswith(endings):
        raise ParameterError(f"{argument} {path!r} does not end in {' or '.join(endings)}, so its format is not known")


def read_table(source: str, schema: Schema, csv: csv_format.CSV | None = None) -> pa.Table:
    """A whole table out of a file, or out of a pipe. Raises InputErrors that name columns, never values."""
    if is_piped(source):
        return read_csv(_piped(source), schema, csv or csv_format.PLAIN)
    check_table_name(source, "TABLE", endings=(*CSV_ENDINGS, *PARQUET_ENDINGS))
    with redacted_file(source):
        return (
            pq.ParquetFile(source).read() if is_parquet(source) else read_csv(source, schema, csv or csv_format.PLAIN)
        )


def read_all(table: str, schema: Schema, csv: csv_format.CSV | None = None) -> pa.Table:
    """All files that a TABLE is made of, in memory."""
    if is_piped(table):
        return read_table(table, schema, csv)
    parts = [read_table(file, schema, csv) for file in files_of(table)]
    return parts[0] if len(parts) == 1 else pa.concat_tables(parts, promote_options="permissive")


def given_table(source: str, csv: csv_format.CSV | None = None) -> Any:
    """TABLE as the library takes it: a path, with what was said about a CSV, or all that came through a pipe."""
    return csv_format.PipedCSV(_piped(source), csv or csv_format.PLAIN) if is_piped(source) else csv or source


def write_table(table: pa.Table, target: str, *, overwrite: bool) -> None:
    """Write a table as its ending says, whole or not at all; `-` is CSV on standard output."""
    is_parquet_file = target.lower().endswith(PARQUET_ENDINGS)
    if not is_parquet_file:
        table = _without_empty_digits(table)
    if target == "-":
        pacsv.write_csv(table, sys.stdout.buffer)
        sys.stdout.flush()
        return

    def write(file: IO[bytes]) -> None:
        with (pq.ParquetWriter if is_parquet_file else pacsv.CSVWriter)(file, table.schema) as writer:
            for start in progress(range(0, max(table.num_rows, 1), _AT_ONCE), "writing rows", unit="part"):
                writer.write_table(table.slice(start, _AT_ONCE))

    write_whole(target, write, overwrite=overwrite)


def _without_empty_digits(table: pa.Table) -> pa.Table:
    """Datetimes and times of whole seconds, or milliseconds, in those units: CSV then has no row of zeros."""
    for place, field in enumerate(table.schema):
        if not (pa.types.is_timestamp(field.type) or pa.types.is_time(field.type)) or field.type.unit != "us":
            continue
        present = table.column(place).cast(pa.int64()).drop_null().to_numpy()
        for unit, ticks in (("s", 1_000_000), ("ms", 1_000)):
            if not (present % ticks).any():
                kind = pa.timestamp(unit, field.type.tz) if pa.types.is_timestamp(field.type) else pa.time32(unit)
                table = table.set_column(place, field.name, table.column(place).cast(kind))
                break
    return table


@waiting("reading the pipe")
def _piped(source: str) -> pa.Buffer:
    """All that comes through a pipe, so that it can be read more than once."""
    return pa.py_buffer(sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes())
