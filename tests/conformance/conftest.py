"""One table of every column type, in every kind of frame that may hold it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
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
        "text": pa.large_string(),
        "text_null": pa.string_view(),
    }
    table = _arrow()
    for name, kind in widths.items():
        table = table.set_column(table.column_names.index(name), name, table[name].cast(kind, safe=False))
    return table


@dataclass(frozen=True)
class Kind:
    """A way to hold the table, and the class that sampled rows have."""

    name: str
    make: Callable[[], Any]
    out: type


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
]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> Kind:
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
