"""One table of every column type, in every kind of frame, file and lazy table that may hold it."""

from __future__ import annotations

import atexit
import gzip
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import spinney as sp

BERLIN = ZoneInfo("Europe/Berlin")
N = 90

SCHEMA = sp.Schema(
    {
        "real": sp.Real(-2, 2, bits=4),
        "real_null": sp.Real(0, 1, bits=3, nullable=True),
        "integer": sp.Integer(-5, 20),
        "integer_null": sp.Integer(0, 1000, bits=4, nullable=True),
        "day": sp.Date("1960-01-01", "1979-12-31", bits=6),
        "day_null": sp.Date("1960-01-01", "1979-12-31", bits=6, nullable=True),
        "moment": sp.Datetime("1960-01-01", "1979-12-31", bits=6),
        "zoned": sp.Datetime("1960-01-01", "1979-12-31", bits=6, timezone="Europe/Berlin"),
        "zoned_null": sp.Datetime("1960-01-01", "1979-12-31", bits=6, timezone="Europe/Berlin", nullable=True),
        "clock": sp.Time("06:00", "20:00", bits=6),
        "clock_null": sp.Time(multiple_of=900, nullable=True),
        "truth": sp.Boolean(),
        "truth_null": sp.Boolean(nullable=True),
        "text": sp.Category(["red", "green", "blue"]),
        "text_null": sp.Category(["ä", "", "c d"], nullable=True),
        "number": sp.Category([7, 1, 5]),
    }
)


def _make_rows() -> dict[str, list[Any]]:
    """Plain Python values, some outside the bounds, some null."""
    rng = np.random.default_rng(11)

    def holes(values: list[Any]) -> list[Any]:
        return [None if hole else value for value, hole in zip(values, rng.random(N) < 0.3, strict=True)]

    moments = [datetime(1970, 1, 1) + timedelta(microseconds=int(m)) for m in rng.integers(-4e14, 4e14, N)]
    zoned = [moment.replace(tzinfo=UTC).astimezone(BERLIN) for moment in moments]
    days = [moment.date() for moment in moments]
    return {
        # Multiples of 1/64, so that single precision holds them too.
        "real": (rng.integers(-160, 160, N) / 64).tolist(),
        "real_null": holes((rng.integers(0, 64, N) / 64).tolist()),
        "integer": rng.integers(-8, 25, N).tolist(),
        "integer_null": holes(rng.integers(0, 1000, N).tolist()),
        "day": days,
        "day_null": holes(days),
        "moment": moments,
        "zoned": zoned,
        "zoned_null": holes(zoned),
        "clock": [moment.time() for moment in moments],
        "clock_null": [None if index % 3 == 0 else moment.time() for index, moment in enumerate(moments)],
        "truth": (rng.random(N) < 0.5).tolist(),
        "truth_null": holes((rng.random(N) < 0.5).tolist()),
        "text": rng.choice(["red", "green", "blue"], N).tolist(),
        "text_null": holes(rng.choice(["ä", "", "c d"], N).tolist()),
        "number": rng.choice([7, 1, 5], N).tolist(),
    }


ROWS = _make_rows()


def _arrow() -> pa.Table:
    zone = pa.timestamp("us", "Europe/Berlin")
    types = {"zoned": zone, "zoned_null": zone, "moment": pa.timestamp("us")}
    return pa.table({name: pa.array(values, types.get(name)) for name, values in ROWS.items()})


def _pandas() -> pd.DataFrame:
    """As pandas users hold things: NaN for missing numbers, Python objects for days and for truth with gaps."""
    frame = pd.DataFrame({name: values for name, values in ROWS.items() if not name.startswith(("zoned", "moment"))})
    for name in ("moment", "zoned", "zoned_null"):
        frame[name] = pd.Series(
            ROWS[name], dtype="datetime64[us]" if name == "moment" else "datetime64[us, Europe/Berlin]"
        )
    assert frame["integer_null"].dtype == np.float64
    assert frame["day"].dtype == object
    return frame[list(ROWS)]


def _pandas_nullable() -> pd.DataFrame:
    frame = _pandas().convert_dtypes()
    assert frame["integer_null"].dtype == "Int64"
    assert frame["truth_null"].dtype == "boolean"
    return frame


def _pandas_arrow() -> pd.DataFrame:
    return _arrow().to_pandas(types_mapper=pd.ArrowDtype)


def _pandas_objects() -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in ROWS.items()})


def _pandas_categories() -> pd.DataFrame:
    """Category dtype with categories in another order and some that never occur; nanoseconds for moments."""
    frame = _pandas()
    frame["text"] = pd.Categorical(ROWS["text"], categories=["blue", "unused", "green", "red"])
    frame["text_null"] = pd.Categorical(ROWS["text_null"], categories=["c d", "", "ä"], ordered=True)
    frame["number"] = pd.Categorical(ROWS["number"], categories=[1, 5, 7, 9])
    frame["moment"] = frame["moment"].astype("datetime64[ns]")
    frame["day"] = pd.to_datetime(frame["day"]) + pd.Timedelta(hours=23)
    frame.index = pd.Index(np.arange(N)[::-1] * 3)
    return frame


def _polars() -> pl.DataFrame:
    return pl.from_arrow(_arrow())


def _polars_enums() -> pl.DataFrame:
    return _polars().with_columns(
        pl.col("text").cast(pl.Enum(["blue", "unused", "green", "red"])),
        pl.col("text_null").cast(pl.Categorical),
        pl.col("integer").cast(pl.Int8),
        pl.col("real").cast(pl.Float32),
        pl.col("moment").cast(pl.Datetime("ns")),
        pl.col("zoned").dt.convert_time_zone("Asia/Tokyo"),
    )


def _arrow_chunks() -> pa.Table:
    whole = _arrow()
    return pa.concat_tables([whole.slice(0, 1), whole.slice(1, 0), whole.slice(1, 40), whole.slice(41)])


def _arrow_dictionaries() -> pa.Table:
    table = _arrow_chunks()
    for name in ("text", "text_null", "number"):
        table = table.set_column(table.column_names.index(name), name, table[name].dictionary_encode())
    return table


def _arrow_other_widths() -> pa.Table:
    widths = {
        "real": pa.float32(),
        "integer": pa.int16(),
        "integer_null": pa.uint64(),
        "number": pa.uint8(),
        "day": pa.date64(),
        "moment": pa.timestamp("ns"),
        "zoned": pa.timestamp("ms", "UTC"),
        "clock": pa.time64("ns"),
        "text": pa.large_string(),
        "text_null": pa.string_view(),
    }
    table = _arrow()
    for name, kind in widths.items():
        table = table.set_column(table.column_names.index(name), name, table[name].cast(kind, safe=False))
    return table


def _spelt(value: Any) -> str | None:
    """A value as people write it into a CSV."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if hasattr(value, "isoformat") else repr(value)


def _strings(table: pa.Table) -> pa.Table:
    """Every value as a string, as `read_csv(dtype=str)` leaves a table."""
    return pa.table({name: pa.array(map(_spelt, table[name].to_pylist()), pa.string()) for name in table.column_names})


def _pandas_strings() -> pd.DataFrame:
    frame = pd.DataFrame(_strings(_arrow()).to_pydict())
    assert frame["day"].dtype == "str"
    return frame


def _pandas_string_objects() -> pd.DataFrame:
    return _pandas_strings().astype(object)


def _pandas_string_categories() -> pd.DataFrame:
    return _pandas_strings().astype("category")


def _polars_strings() -> pl.DataFrame:
    return pl.from_arrow(_strings(_arrow()))


def _arrow_strings() -> pa.Table:
    """In every way that arrow has of holding strings."""
    table = _strings(_arrow())
    for index, name in enumerate(table.column_names):
        held = table[name].cast((pa.large_string(), pa.string_view(), pa.string())[index % 3])
        table = table.set_column(index, name, held.dictionary_encode() if index % 2 else held)
    return table


# ------------------------------------------------------------------------------------- files and lazy tables


def _new_folder() -> Path:
    folder = tempfile.mkdtemp(prefix="spinney-kinds-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _parquet_file(table: pa.Table) -> Path:
    """Row groups of uneven length."""
    path = _new_folder() / "table.parquet"
    pq.write_table(table, path, row_group_size=25)
    return path


def _parquet_pattern(table: pa.Table) -> str:
    """Files that hold the same columns in other widths, dictionaries and another order; one without rows."""
    folder = _new_folder()
    widths = {"integer": pa.int16(), "real": pa.float32(), "number": pa.uint8(), "moment": pa.timestamp("ns")}
    other = table.slice(30, 33)
    for index, name in enumerate(table.column_names):
        if name in widths:
            other = other.set_column(index, name, other[name].cast(widths[name], safe=False))
        elif name.startswith("text"):
            other = other.set_column(index, name, other[name].dictionary_encode())
    pq.write_table(table.slice(0, 30), folder / "1.parquet")
    pq.write_table(other.select(table.column_names[::-1]), folder / "2.parquet")
    pq.write_table(table.slice(63, 0), folder / "3.parquet")
    pq.write_table(table.slice(63), folder / "4.pq")
    return str(folder / "*.p*q*")


def _parquet_folder(table: pa.Table) -> Path:
    folder = _new_folder()
    (folder / "_SUCCESS").touch()
    for part in range(3):
        pq.write_table(table.slice(30 * part, 30), folder / f"part-{part}.parquet")
    return folder


def _write_csv(table: pa.Table, path: Path) -> Path:
    """Missing values spelt out where nothing tells them from an empty text, which is a value here, or a blank line."""
    if "text_null" in table.column_names:
        place = table.column_names.index("text_null")
        table = table.set_column(place, "text_null", table["text_null"].fill_null("NA"))
    pacsv.write_csv(table, path)
    path.write_text("".join(f"{line or 'NA'}\n" for line in path.read_text().splitlines()))
    return path


def _csv_file(table: pa.Table) -> Path:
    return _write_csv(table, _new_folder() / "table.csv")


def _csv_pattern(table: pa.Table) -> str:
    """Compressed and plain files."""
    folder = _new_folder()
    _write_csv(table.slice(0, 50), folder / "b.csv")
    packed = _write_csv(table.slice(50), folder / "c.csv")
    (folder / "a.csv.gz").write_bytes(gzip.compress(packed.read_bytes()))
    packed.unlink()
    return str(folder / "*.csv*")


def _parquet_list(table: pa.Table) -> list[Path | str]:
    """A file, a pattern and a folder."""
    folder = _parquet_folder(table)
    (folder / "last").mkdir()
    (folder / "part-2.parquet").rename(folder / "last" / "part.parquet")
    return [folder / "part-0.parquet", f"{folder}/*-1.parquet", str(folder / "last")]


def _csv_list(table: pa.Table) -> tuple[Path, ...]:
    folder = _new_folder()
    return tuple(_write_csv(table.slice(start, 45), folder / f"{start}.csv") for start in (0, 45))


def _dataset_files(table: pa.Table) -> ds.Dataset:
    """Files in pieces, read in the types of the first."""
    return ds.dataset(_parquet_folder(table), exclude_invalid_files=True)


def _dataset_union(table: pa.Table) -> ds.Dataset:
    """Some rows in memory, some in a file."""
    return ds.dataset([ds.dataset(table.slice(0, 30)), ds.dataset(_parquet_file(table.slice(30)))])


def _reader(table: pa.Table) -> pa.RecordBatchReader:
    return table.to_reader(max_chunksize=35)


class ArrowStream:
    """An object of no known library that hands out Arrow data."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def _lazy(table: pa.Table) -> pl.LazyFrame:
    return pl.LazyFrame(pl.from_arrow(table))


def _lazy_scan(table: pa.Table) -> pl.LazyFrame:
    scan = pl.scan_parquet(_parquet_file(table))
    enum = pl.Enum(["blue", "unused", "green", "red"])
    return scan.with_columns(pl.col("text").cast(enum)) if "text" in table.column_names else scan


def _duckdb(table: pa.Table) -> duckdb.DuckDBPyRelation:
    """A query with an ENUM, in a connection whose zone is far from the schema's."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'Asia/Tokyo'")
    connection.execute("CREATE TYPE colour AS ENUM ('blue', 'unused', 'green', 'red')")
    relation = connection.from_arrow(table)
    return relation.project("* REPLACE (text::colour AS text)") if "text" in table.column_names else relation


@dataclass(frozen=True)
class Kind:
    """A way to hold the table, and the class that sampled rows have. `hold` puts any columns of it there."""

    name: str
    make: Callable[[], Any]
    out: type
    hold: Callable[[pa.Table], Any] | None = None


def _held(name: str, hold: Callable[[pa.Table], Any], out: type) -> Kind:
    return Kind(name, lambda: hold(_arrow()), out, hold)


KINDS = [
    Kind("pandas", _pandas, pd.DataFrame),
    Kind("pandas nullable", _pandas_nullable, pd.DataFrame),
    Kind("pandas arrow", _pandas_arrow, pd.DataFrame),
    Kind("pandas objects", _pandas_objects, pd.DataFrame),
    Kind("pandas categories", _pandas_categories, pd.DataFrame),
    Kind("polars", _polars, pl.DataFrame),
    Kind("polars enums", _polars_enums, pl.DataFrame),
    Kind("pyarrow", _arrow, pa.Table),
    Kind("pyarrow chunks", _arrow_chunks, pa.Table),
    Kind("pyarrow dictionaries", _arrow_dictionaries, pa.Table),
    Kind("pyarrow other widths", _arrow_other_widths, pa.Table),
    Kind("pandas strings", _pandas_strings, pd.DataFrame),
    Kind("pandas strings as objects", _pandas_string_objects, pd.DataFrame),
    Kind("pandas strings as categories", _pandas_string_categories, pd.DataFrame),
    Kind("polars strings", _polars_strings, pl.DataFrame),
    Kind("pyarrow strings", _arrow_strings, pa.Table),
    _held("parquet file", _parquet_file, pa.Table),
    _held("parquet pattern", _parquet_pattern, pa.Table),
    _held("parquet folder", _parquet_folder, pa.Table),
    _held("csv file", _csv_file, pa.Table),
    _held("csv pattern", _csv_pattern, pa.Table),
    _held("parquet list", _parquet_list, pa.Table),
    _held("csv list", _csv_list, pa.Table),
    _held("pyarrow dataset", _dataset_files, pa.Table),
    _held("pyarrow union", _dataset_union, pa.Table),
    _held("pyarrow reader", _reader, pa.Table),
    _held("arrow stream", ArrowStream, pa.Table),
    _held("polars lazy", _lazy, pl.DataFrame),
    _held("polars scan", _lazy_scan, pl.DataFrame),
    _held("duckdb", _duckdb, pa.Table),
    _held("parquet file of strings", lambda table: _parquet_file(_strings(table)), pa.Table),
    _held("polars lazy strings", lambda table: _lazy(_strings(table)), pl.DataFrame),
    _held("duckdb strings", lambda table: duckdb.connect().from_arrow(_strings(table)), pa.Table),
]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


@pytest.fixture(params=[kind for kind in KINDS if kind.hold is None], ids=lambda kind: kind.name)
def memory_kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


@pytest.fixture(params=[kind for kind in KINDS if kind.hold is not None], ids=lambda kind: kind.name)
def outside_kind(request: pytest.FixtureRequest) -> Kind:
    """Files and lazy tables."""
    return request.param


@pytest.fixture
def rows() -> dict[str, list[Any]]:
    return ROWS


@pytest.fixture
def schema() -> sp.Schema:
    return SCHEMA


@pytest.fixture(scope="session")
def arrow_table() -> pa.Table:
    return _arrow()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One Spark session for all tests, two cores, in a zone with summer time; a task may fail once."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, which was not found")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2,2]").appName("spinney tests")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # quick to start, slow to run
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",  # as from 4.0 on, unless told
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
