"""Parquet and CSV files as a table that comes in batches.

Names and types of every file are compared with the schema before any row is read, each file by itself: widths may
differ from file to file, meanings may not. Only the columns that are asked for are read. Parquet goes by row groups,
each read by the thread that counts it; groups that are too large for that go in slices. A file that is not what it was
when it was opened is refused, and so is one that cannot be read: the message names the file, and nothing that is in it.
"""

from __future__ import annotations

import glob
import os
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from spinney.errors import FileError, InputError, ParameterError, raise_alone, redacted
from spinney.machine import load_optional, n_threads
from spinney.schema.schema import Schema
from spinney.tables.csv import CSV, PLAIN, PipedCSV
from spinney.tables.csv_reader import check_header, count_csv, csv_batches, csv_types, read_names
from spinney.tables.engines.lazy import duckdb_batches, polars_batches, redacted_query
from spinney.tables.engines.stream import BATCH_BYTES, StreamSource
from spinney.tables.frames import FrameKind, Table, open_table
from spinney.tables.paths import Paths, is_parquet, list_files
from spinney.tables.source import Batch, prefetch, table_changed

# Bytes of a value that is decoded, at most: strings are stored shorter than they become, and fall under the last.
_DECODED_BYTES = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 8, "FLOAT": 4, "DOUBLE": 8}
_VALUE_BYTES = 16
# Row groups are read together up to this part of what a batch may take: many small ones would be slow one by one.
_TOGETHER = 4
# Read at a time: what is read stays in cache until it is decoded.
_READ_BYTES = 1 << 17


def open_files(
    path: Paths, schema: Schema, *, engine: str | None = None, batch_bytes: int | None = None
) -> StreamSource:
    """The table in a file, or in all files of a folder, a pattern or a list, once every file is known to fit."""
    if engine is not None:
        load_optional(engine, f"engine={engine!r}", otherwise="leave engine out")
    names = list_files(path)
    if engine is not None and not is_parquet(names[0]):
        raise ParameterError(f"engine={engine!r} reads Parquet only; Spinney itself reads CSV; leave engine out")
    make = {None: ParquetFile, "polars": PolarsFile, "duckdb": DuckDBFile}[engine] if is_parquet(names[0]) else CSVFile
    kind: FrameKind = "polars" if engine == "polars" else "pyarrow"
    return _stream(kind, schema, [make(name, schema, batch_bytes=batch_bytes) for name in names])


# The table in Parquet files that polars reads, whose rows come back as polars frames; and in those that DuckDB reads.
open_by_polars, open_by_duckdb = (partial(open_files, engine=engine) for engine in ("polars", "duckdb"))


def open_csv(csv: CSV | PipedCSV, schema: Schema, *, batch_bytes: int | None = None) -> StreamSource:
    """The table in CSV files, or in what came through a pipe, once its columns are known to fit."""
    if isinstance(csv, PipedCSV):
        return _stream("pyarrow", schema, [CSVPipe(csv, schema, batch_bytes=batch_bytes)])
    names = list_files(csv.path)
    if is_parquet(names[0]):
        raise ParameterError(
            f"CSV: {os.fspath(csv.path)!r} matches Parquet files; pass the path itself, without sp.CSV"
        )
    return _stream("pyarrow", schema, [CSVFile(name, schema, csv, batch_bytes=batch_bytes) for name in names])


def _stream(kind: FrameKind, schema: Schema, files: Sequence[TableFile | CSVPipe]) -> StreamSource:

    def batches(chosen: Schema) -> Generator[Batch]:
        for file in files:
            yield from file.batches(chosen)

    is_parsed = any(isinstance(file, (CSVFile, CSVPipe)) for file in files)
    return StreamSource(
        kind, schema, batches, lambda: sum(file.count_rows() for file in files), reads_alone=not is_parsed
    )


class TableFile(ABC):
    """One file that fits the schema, as it was when it was opened."""

    def __init__(self, path: str, schema: Schema, *, batch_bytes: int | None = None) -> None:
        self.path = path
        self._batch_bytes = batch_bytes
        with redacted_file(path):
            self._mark = _mark(path)
            open_table(self._types(schema).empty_table(), schema)

    @abstractmethod
    def _types(self, schema: Schema) -> pa.Schema:
        """Names and types of the columns, without a look at rows."""

    @abstractmethod
    def _count(self) -> int:
        """How many rows there are."""

    @abstractmethod
    def _batches(self, schema: Schema) -> Iterator[Batch]:
        """All rows under a schema of some columns."""

    def batches(self, schema: Schema) -> Iterator[Batch]:
        """All rows under a schema of some columns."""
        with redacted_file(self.path), self._unchanged():
            yield from self._batches(schema)

    def count_rows(self) -> int:
        with redacted_file(self.path), self._unchanged():
            return self._count()

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        """Raise if the file is another than when it was opened. That explains whatever else went wrong meanwhile."""
        self._compare()
        try:
            yield
        except Exception:
            self._compare()
            raise
        self._compare()

    def _compare(self) -> None:
        if _mark(self.path) != self._mark:
            raise_alone(table_changed())


class ParquetFile(TableFile):
    """A Parquet file, by row groups."""

    @property
    def _most_bytes(self) -> int:
        return self._batch_bytes or BATCH_BYTES

    def _types(self, schema: Schema) -> pa.Schema:  # noqa: ARG002  # the file knows them
        with pq.ParquetFile(self.path) as file:
            return file.schema_arrow

    def _count(self) -> int:
        with pq.ParquetFile(self.path) as file:
            return int(file.metadata.num_rows)

    def _batches(self, schema: Schema) -> Iterator[Batch]:
        with pq.ParquetFile(self.path, read_dictionary=_coded(schema)) as file:
            metadata = file.metadata
            for groups, fits in _gathered(metadata, schema, self._most_bytes):
                if fits:
                    yield Batch(_rows_of(metadata, groups)[1], partial(self._read_groups, groups, schema, metadata))
                else:
                    yield from prefetch(self._slices(file, groups, schema), schema)

    def _read_groups(self, groups: list[int], schema: Schema, metadata: Any) -> Table:
        """Some row groups, read by the thread that asks, in a file of its own."""
        names = list(schema)
        with redacted_file(self.path), self._unchanged():
            opened = pq.ParquetFile(
                self.path,
                metadata=metadata,
                pre_buffer=False,
                buffer_size=_READ_BYTES,
                read_dictionary=_coded(schema),
            )
            with opened as file:
                return open_table(file.read_row_groups(groups, columns=names, use_threads=False).select(names), schema)

    def _slices(self, file: Any, groups: list[int], schema: Schema) -> Iterator[Any]:
        """Row groups that are too large to be read at once."""
        names = list(schema)
        n_rows = max(1, self._most_bytes // (4 * _VALUE_BYTES * len(names)))
        for batch in file.iter_batches(n_rows, row_groups=groups, columns=names):
            yield pa.Table.from_batches([batch]).select(names)


def _coded(schema: Schema) -> list[str]:
    """Columns of repeated texts, of which each is held once."""
    return [name for name, column in schema.items() if column.is_read and column.is_text]


def _rows_of(metadata: Any, groups: list[int]) -> tuple[int, int]:
    """How many rows come before neighbouring row groups, and how many they hold."""
    sizes = [metadata.row_group(group).num_rows for group in range(groups[-1] + 1)]
    return sum(sizes[: groups[0]]), sum(sizes[groups[0] :])


def _gathered(metadata: Any, schema: Schema, most_bytes: int) -> Iterator[tuple[list[int], bool]]:
    """Runs of row groups that are small together, single ones that fit into a batch, and others, which do not."""
    names = list(schema)
    wanted = [index for index in range(metadata.num_columns) if _top(metadata.schema.column(index).path, names)]
    kinds = [metadata.schema.column(index).physical_type for index in wanted]
    a_row = sum(_DECODED_BYTES.get(kind, _VALUE_BYTES) for kind in kinds)
    of_strings = [index for index, kind in zip(wanted, kinds, strict=True) if kind not in _DECODED_BYTES]
    run: list[int] = []
    held = 0
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        size = a_row * group.num_rows + sum(group.column(column).total_uncompressed_size for column in of_strings)
        if run and held + size > most_bytes // _TOGETHER:
            yield run, True
            run, held = [], 0
        if size > most_bytes:
            yield [index], False
        else:
            run.append(index)
            held += size
    if run:
        yield run, True


def _top(path: str, names: Sequence[str]) -> bool:
    return path in names or path.partition(".")[0] in names


class PolarsFile(ParquetFile):
    """A Parquet file, read by polars: row groups that fit by the thread that asks, others by its streaming engine."""

    def _read_groups(self, groups: list[int], schema: Schema, metadata: Any) -> Table:
        n_before, n_rows = _rows_of(metadata, groups)
        with redacted_file(self.path), self._unchanged(), redacted_query("the scan by polars"):
            return open_table(self._scan(schema).slice(n_before, n_rows).collect(), schema)

    def _slices(self, file: Any, groups: list[int], schema: Schema) -> Iterator[Any]:
        n_before, n_rows = _rows_of(file.metadata, groups)
        with redacted_query("the scan by polars"):
            yield from polars_batches(self._scan(schema).slice(n_before, n_rows), list(schema))

    def _scan(self, schema: Schema) -> Any:
        import polars

        return polars.scan_parquet(self.path, glob=False).select(list(schema))


class DuckDBFile(ParquetFile):
    """A Parquet file, read by DuckDB in a connection of its own."""

    def _batches(self, schema: Schema) -> Iterator[Batch]:
        import duckdb

        with (
            redacted_query("the scan by DuckDB"),
            duckdb.connect(":memory:", config={"threads": n_threads()}) as connection,
        ):
            relation = connection.read_parquet(glob.escape(self.path))
            yield from prefetch(duckdb_batches(relation, list(schema)), schema)


class CSVFile(TableFile):
    """A CSV file, plain or compressed, each value read by itself as the schema says."""

    def __init__(self, path: str, schema: Schema, csv: CSV = PLAIN, *, batch_bytes: int | None = None) -> None:
        self._csv = csv
        super().__init__(path, schema, batch_bytes=batch_bytes)

    def _types(self, schema: Schema) -> pa.Schema:
        self._names = read_names(self.path, self._csv)
        check_header(self._names, schema)
        return csv_types(self._names, schema)

    def _count(self) -> int:
        return count_csv(self.path, self._names, self._csv, block_bytes=self._batch_bytes)

    def _batches(self, schema: Schema) -> Iterator[Batch]:
        return csv_batches(
            self.path, self._names, schema, self._csv, where=f"{self.path!r}: ", block_bytes=self._batch_bytes
        )


class CSVPipe:
    """A CSV that came through a pipe and is held in memory, read like a file."""

    def __init__(self, piped: PipedCSV, schema: Schema, *, batch_bytes: int | None = None) -> None:
        self._data, self._csv, self._batch_bytes = piped.data, piped.csv, batch_bytes
        self._names = read_names(self._data, self._csv)
        check_header(self._names, schema)
        open_table(csv_types(self._names, schema).empty_table(), schema)

    def batches(self, schema: Schema) -> Iterator[Batch]:
        return csv_batches(self._data, self._names, schema, self._csv, block_bytes=self._batch_bytes)

    def count_rows(self) -> int:
        return count_csv(self._data, self._names, self._csv, block_bytes=self._batch_bytes)


def _mark(path: str) -> tuple[int, int, int]:
    """What changes when a file is written to or replaced."""
    status = os.stat(path)
    return status.st_ino, status.st_size, status.st_mtime_ns


def redacted_file(path: str) -> AbstractContextManager[None]:
    """Errors of the file readers as ours, with the file's name; what they say about the content stays out."""
    return redacted(lambda err: _unreadable(path, err), at=repr(path))


def _unreadable(path: str, err: BaseException) -> InputError | FileError:
    if isinstance(err, OSError) and err.strerror:
        return FileError(f"{path!r} cannot be read: {err.strerror}")
    return InputError(f"{path!r} is damaged, or not in the format that its ending says")
