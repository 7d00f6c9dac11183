"""Engines side by side: a table of values chosen to be difficult, and ways to ask each engine for its cells."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import spinney as sp
from spinney.counting.counts import AxisCells
from spinney.counting.states import Cut
from spinney.grid.axes import column_axis
from spinney.grid.lattice import Lattice, grid_lattice, ladder_axis, tree_lattice
from spinney.tables.engines.queries import Rows
from spinney.tables.engines.spark import SparkSource
from spinney.tables.frames import open_table
from support.query_engines import DuckDBQueries, PolarsQueries

EPOCH = datetime(1970, 1, 1)
FLOAT, WHOLE, DAY = pa.float64(), pa.int64(), pa.date32()
NAIVE, ZONED = pa.timestamp("us"), pa.timestamp("us", "Europe/Berlin")
LONG_TEXTS = [f"place {k}" for k in range(40)] + ["Place 1", "place 1 ", "", "ä", "a\u0308"]
LONG_NUMBERS = [(k * 7919) % 10007 - 5000 for k in range(60)]


@dataclass(frozen=True)
class Case:
    """A column, the arrow type that holds it, and values to try; None is for nullable columns only."""

    column: Any
    kind: pa.DataType
    values: list[Any]


def around(points: list[float]) -> list[float]:
    """Numbers with their neighbours among the doubles."""
    return [
        near
        for point in points
        for near in (point, float(np.nextafter(point, -math.inf)), float(np.nextafter(point, math.inf)))
    ]


SPECIAL = [0.0, -0.0, 5e-324, -5e-324, 2.2e-308, 1.7976931348623157e308, -1.7976931348623157e308, 1e18, -1e18, 1e-18]
MISSING = [None, math.nan, math.inf, -math.inf]
FAR = [2**63 - 1, -(2**63), 2**62, -(2**62), 2**61, -(2**61), 2**53 + 1, -(2**53) - 1, 0, 1, -1]


def real(column: Any, kind: pa.DataType = FLOAT) -> Case:
    """Values around every edge of the column's cells, on the tree's lattice and on a grid's."""
    schema = sp.Schema({"v": column})
    points = [column.low, column.high, (column.low + column.high) / 2]
    for axis in (*tree_lattice(schema).axes, *grid_lattice(schema, bins=7).axes, column_axis("v", column).axis):
        n_cells = axis.last - axis.first + 1
        for k in sorted({*range(min(n_cells, 9) + 1), n_cells // 3, n_cells - 1, n_cells}):
            points += [axis.origin + k / axis.scale]
    points += [2.0**k for k in (-20, -1, 0, 3, 40)]
    values = around([point for point in points if math.isfinite(point)]) + SPECIAL
    if kind == pa.float32():
        values = [float(value) for value in np.array(values).clip(-3e38, 3e38).astype(np.float32)]
    if pa.types.is_integer(kind):
        values = [int(v) for v in values if abs(v) < 2**31] + [2**53, -(2**53), 2**53 - 1][: 3 * (kind == pa.int64())]
        return Case(column, kind, values + [None] * column.nullable)
    return Case(column, kind, values + MISSING * column.nullable)


def whole(column: Any, kind: pa.DataType = WHOLE) -> Case:
    """Values around every edge of the column's cells, and far outside."""
    schema = sp.Schema({"v": column})
    values = list(FAR)
    for axis in (*tree_lattice(schema).axes, *grid_lattice(schema, bins=7).axes, column_axis("v", column).axis):
        n_cells = axis.last - axis.first + 1
        for k in sorted({*range(min(n_cells, 9) + 1), n_cells // 3, n_cells - 1, n_cells}):
            values += [int(axis.low) + k * axis.step + shift for shift in (-1, 0, 1)]
    if kind == pa.float64():
        values = [float(v) for v in values] + [1e300, -1e300] + MISSING[1:] * column.nullable
    elif kind != pa.int64():
        values = [v for v in values if abs(v) < 2**31]
    return Case(column, kind, values + [None] * column.nullable)


def moments(column: Any, kind: pa.DataType) -> Case:
    micros = [v for v in whole(column).values if v is not None and -62e15 < v < 253e15] + [-1, 0, 1, -86_400_000_001]
    values = [EPOCH + timedelta(microseconds=micro) for micro in micros]
    # Hours that do not exist, or exist twice, in Berlin or New York; and the first year of the calendar.
    values += [datetime(2021, 3, 28, 2, 30), datetime(2021, 3, 14, 2, 30, 0, 7), datetime(2021, 11, 7, 1, 30)]
    values += [datetime(1900, 1, 1), datetime(1883, 11, 18, 12, 1, 2, 3), datetime(1970, 1, 1, 0, 0, 0, 999_999)]
    if kind.tz is not None:
        values = [value.replace(tzinfo=UTC) for value in values]
    return Case(column, kind, values + [None] * column.nullable)


def days(column: Any, kind: pa.DataType = DAY) -> Case:
    numbers = [v for v in whole(column).values if v is not None and -719_000 < v < 2_932_000] + [-1, 0, 1]
    values: list[Any] = [date(1970, 1, 1) + timedelta(days=number) for number in numbers]
    if kind == NAIVE:
        values = [datetime(day.year, day.month, day.day, 23, 59, 59, 999_999) for day in values]
    return Case(column, kind, values + [None] * column.nullable)


def clocks(column: Any) -> Case:
    """Times of day as strings, which every engine has."""
    micros = [v for v in whole(column).values if v is not None and 0 <= v < 86_400_000_000] + [1, 86_399_999_999]
    values: list[Any] = [(EPOCH + timedelta(microseconds=micro)).time().isoformat("microseconds") for micro in micros]
    return Case(column, pa.string(), values + [None] * column.nullable)


BOUNDS = ("1960-01-01", "2030-12-31")
CASES = {
    "real": real(sp.Real(-2, 2, bits=4)),
    "tenths": real(sp.Real(0.1, 0.7, bits=20, nullable=True)),
    "thirds": real(sp.Real(-1 / 3, 1e6 / 7, bits=13)),
    "huge": real(sp.Real(-8e307, 8e307, bits=5, nullable=True)),
    "tiny": real(sp.Real(0, 1e-280, bits=6)),
    "cents": real(sp.Real(0, 99.99, multiple_of=0.01)),
    "single": real(sp.Real(-0.3, 0.3, bits=9, nullable=True), pa.float32()),
    "real.of.ints": real(sp.Real(-100, 100, bits=5, nullable=True), pa.int64()),
    "real of short": real(sp.Real(-100, 100, bits=5), pa.int16()),
    "whole": whole(sp.Integer(-5, 20)),
    "Whole": whole(sp.Integer(-(2**61), 2**61, bits=31, nullable=True)),
    "odd steps": whole(sp.Integer(-(2**61) + 3, 2**61 - 12345, bits=32)),
    "fifties": whole(sp.Integer(-1000, 1000, multiple_of=50, nullable=True), pa.int32()),
    "all whole": whole(sp.Integer(-(2**61) + 3, 2**61 - 12345, nullable=True)),
    "all in sevens": whole(sp.Integer(-(2**60), 2**61, multiple_of=7)),
    "whole floats": whole(sp.Integer(-(2**60), 2**60, bits=17, nullable=True), pa.float64()),
    "day": days(sp.Date(*BOUNDS, bits=6)),
    "day null": days(sp.Date(*BOUNDS, nullable=True)),
    "day of moments": days(sp.Date(*BOUNDS, bits=9), NAIVE),
    "moment": moments(sp.Datetime(*BOUNDS, bits=32), NAIVE),
    "moment to the thousandth": moments(sp.Datetime(*BOUNDS), NAIVE),
    "weeks": days(sp.Date(*BOUNDS, multiple_of=7, nullable=True)),
    "hours": moments(sp.Datetime(*BOUNDS, multiple_of=3600), NAIVE),
    "zoned": moments(sp.Datetime(*BOUNDS, bits=20, timezone="Europe/Berlin", nullable=True), ZONED),
    "clock": clocks(sp.Time("08:00", "18:00", bits=9)),
    "clock steps": clocks(sp.Time(multiple_of=0.5, bits=32, nullable=True)),
    "truth": Case(sp.Boolean(), pa.bool_(), [True, False]),
    "truth null": Case(sp.Boolean(nullable=True), pa.bool_(), [True, False, None]),
    "truth floats": Case(sp.Boolean(nullable=True), pa.float64(), [0.0, -0.0, 1.0, math.nan, None]),
    "text": Case(sp.Category(["red", "Red", "red ", ""]), pa.string(), ["red", "Red", "red ", ""]),
    "text null": Case(sp.Category(["ä", "a\u0308"], nullable=True), pa.string(), ["ä", "a\u0308", None]),
    "text long": Case(sp.Category(LONG_TEXTS), pa.string(), LONG_TEXTS),
    "text long null": Case(sp.Category(LONG_TEXTS, nullable=True), pa.string(), [*LONG_TEXTS, None]),
    "number": Case(sp.Category([7, -1, 2**60]), pa.int64(), [7, -1, 2**60]),
    "number floats": Case(sp.Category([7, -1, 0], nullable=True), pa.float64(), [7.0, -1.0, -0.0, math.nan, None]),
    "number long": Case(sp.Category(LONG_NUMBERS, nullable=True), pa.int32(), [*LONG_NUMBERS, None]),
    "number long floats": Case(sp.Category(LONG_NUMBERS), pa.float64(), [float(k) for k in LONG_NUMBERS]),
    "single cell": real(sp.Real(0, 1, bits=0)),
}
N = max(len(case.values) for case in CASES.values())


def hard_table() -> tuple[pa.Table, sp.Schema]:
    """All cases as one table, shorter ones repeated, with a number for each row."""
    columns = {"row": pa.array(range(N), pa.int64())}
    for name, case in CASES.items():
        columns[name] = pa.array((case.values * N)[:N], case.kind)
    schema = sp.Schema({"row": sp.Integer(0, N - 1), **{name: case.column for name, case in CASES.items()}})
    return pa.table(columns), schema


def hard_lattices(schema: sp.Schema) -> dict[str, Lattice]:
    """Lattices over many columns (far beyond 64 bits), the row's own number always among them."""
    rows = tree_lattice(sp.Schema({"row": schema["row"]})).axes[0]
    others = sp.Schema({name: column for name, column in schema.items() if name != "row"})
    is_long = {name: isinstance(column, sp.Real) for name, column in others.items()}
    width = {name: (c.high - c.low) / 7.3 if is_long[name] else 3.0 for name, c in others.items()}
    width |= dict.fromkeys(
        ("moment", "moment to the thousandth", "hours", "zoned", "clock", "clock steps"), 100000000000.0
    )
    width |= {"Whole": 2.0**40 + 1, "odd steps": 2.0**41 - 1, "all whole": 2.0**40 - 1, "all in sevens": 2.0**40 - 5}
    width["whole floats"] = 3.0**30
    reals = sp.Schema({name: c for name, c in others.items() if is_long[name] and not c.nullable and name != "tiny"})
    # Magnitudes are counted of columns with bounds, one at a time: a few of each kind.
    laddered = ("tenths", "single", "real.of.ints", "Whole", "whole floats", "day null", "zoned")
    ladders = [
        ladder_axis(name, nullable=others[name].nullable, smallest=-20 if is_long[name] else 0, largest=40)
        for name in laddered
    ]
    return {
        "tree": Lattice((rows, *tree_lattice(others).axes)),
        "grid": Lattice((rows, *grid_lattice(others, bins=7).axes[::2])),
        "widths": Lattice((rows, *grid_lattice(others, width=width).axes[1::2])),
        "cube": Lattice((rows, *tree_lattice(reals, axes="cube").axes)),
        "ladder": Lattice((rows, *ladders)),
        "columns": Lattice((rows, *(column_axis(name, column).axis for name, column in others.items()))),
    }


def hard_cuts(lattice: Lattice) -> list[Cut]:
    """Cuts of all axes: rows keep their numbers, the rest fall into a few states, neighbours or not."""
    cuts = [Cut(lattice.axes[0], np.arange(N), np.arange(N))]
    for axis in lattice.axes[1:]:
        n_cells = axis.last - axis.first + 1
        first = axis.first + np.unique(np.linspace(0, n_cells - 1, 45).astype(np.int64))
        if axis.nullable:
            first = np.append(first, axis.null_cell)
        states = np.arange(len(first)) * 7 % 11
        cuts.append(Cut(axis, first, np.unique(states, return_inverse=True)[1]))
    return cuts


def compiled_cells(table: pa.Table, schema: sp.Schema, lattice: Lattice) -> np.ndarray:
    """Cells (n, n_axes) by the compiled loops."""
    opened = open_table(table, schema)
    cells = np.empty((lattice.n_axes, opened.n_rows), dtype=np.int64)
    for axis, row in zip(lattice.axes, cells, strict=True):
        assert AxisCells(opened.physical(axis.name), axis).fill(0, opened.n_rows, row) == 0
    return cells.T


# ------------------------------------------------------------------------------------------------------- engines

Opener = Callable[[pa.Table, sp.Schema], Rows]


def polars_rows(table: pa.Table, schema: sp.Schema) -> Rows:
    """polars, lazily."""
    return PolarsQueries(table, schema)._rows


def duckdb_rows(table: pa.Table, schema: sp.Schema) -> Rows:
    """DuckDB, in its default connection."""
    return DuckDBQueries(table, schema)._rows


def spark_frame(session: Any, table: pa.Table, folder: Path) -> Any:
    """The table as Spark reads it from a Parquet file, which keeps local times apart from moments.

    Spark has no times of day: they are strings there.
    """
    for index, field in enumerate(table.schema):
        if pa.types.is_time(field.type):
            clocks = [None if value is None else value.isoformat() for value in table[field.name].to_pylist()]
            table = table.set_column(index, field.name, pa.array(clocks, pa.string()))
    path = folder / f"{len(list(folder.iterdir()))}.parquet"
    numbered = table.rename_columns([f"x{i}" for i in range(table.num_columns)])
    pq.write_table(numbered, path, row_group_size=max(1, len(table) // 3))
    return session.read.parquet(str(path)).toDF(
        *table.column_names
    )  # Spark's readers do not tell upper from lower case


def spark_rows(session: Any, table: pa.Table, schema: sp.Schema, folder: Path) -> Rows:
    return SparkSource(spark_frame(session, table, folder), schema)._rows


def collect(query: Any) -> pa.Table:
    return query.collect(backend="pyarrow").to_native()


def engine_cells(rows: Rows, lattice: Lattice) -> np.ndarray:
    """Cells (n, n_axes) by an engine's expressions, in the order of the first axis, which numbers the rows."""
    numbers, cells = rows._cells_of(lattice.axes)
    answer = collect(numbers.select(**{f"a{i}": cell for i, cell in enumerate(cells)}))
    assert all(kind == pa.int64() for kind in answer.schema.types)
    table = np.stack([answer[f"a{i}"].to_numpy() for i in range(lattice.n_axes)], axis=1)
    return table[np.argsort(table[:, 0])]
