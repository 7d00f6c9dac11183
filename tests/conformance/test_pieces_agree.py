"""Axes with pieces: engines that count by expressions give the cells of the compiled loops, value by value."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.columns import whole_range
from spinney.grid.axes import joint_lattice
from spinney.grid.lattice import Lattice
from spinney.tables.engines.memory import count_cells
from spinney.tables.frames import open_table
from support.cell_counts import same_cells
from support.hard_values import around, collect, compiled_cells, duckdb_rows, engine_cells, polars_rows, spark_rows

N = 900
EPOCH = datetime(1970, 1, 1)
SCHEMA = sp.Schema(
    {
        "amount": sp.Real(0, 1e6, nullable=True),
        "lopsided": sp.Real(-1000, 20),
        "cents": sp.Real(0, 500, multiple_of=0.01),
        "balance": sp.Integer(-(10**6), 10**9, nullable=True),
        "moment": sp.Datetime("1900-01-01T00:00:00", "2099-12-31T23:59:59"),
    }
)
LATTICE = joint_lattice(SCHEMA)


def hard_table() -> pa.Table:
    """Values around the beginnings of pieces, around their points, in their middle, outside the bounds, and nulls."""
    columns = {}
    for axis in LATTICE.axes:
        pieces = axis.pieces
        assert pieces is not None
        fine = np.unique(np.array([*pieces.starts, *(s + 1 for s in pieces.starts), pieces.n_fine - 1, pieces.n_fine]))
        fine = np.concatenate([fine, (fine[1:] + fine[:-1]) // 2])
        if axis.kind == "real":
            edges = around([axis.origin + float(cell) / axis.scale for cell in fine[:: max(1, len(fine) // 250)]])
            values = [*edges, 0.0, -0.0, 1e300, -1e300, *([None] * axis.nullable)]
            kind = pa.float64()
        elif axis.name == "balance":
            low, _ = whole_range(SCHEMA["balance"])
            values = [low + int(cell) * axis.step + shift for cell in fine for shift in (-1, 0)] + [2**62, None]
            kind = pa.int64()
        else:
            micros = [int(axis.low) + int(cell) * axis.step + shift for cell in fine for shift in (-1, 0)]
            values = [EPOCH + timedelta(microseconds=micro) for micro in micros]
            kind = pa.timestamp("us")
        columns[axis.name] = pa.array((values * N)[:N], kind)
    return pa.table(columns)


TABLE = hard_table()


@pytest.fixture(params=["polars", "duckdb", "spark"])
def rows(request, tmp_path):
    table = TABLE.append_column("row", pa.array(range(N), pa.int64()))
    schema = sp.Schema({**SCHEMA, "row": sp.Integer(0, N - 1)})
    if request.param == "spark":
        return spark_rows(request.getfixturevalue("spark"), table, schema, tmp_path)
    return {"polars": polars_rows, "duckdb": duckdb_rows}[request.param](table, schema)


def test_every_value_has_the_same_cell(rows) -> None:
    """Engines agree to the last bit on both sides of every beginning."""
    from spinney.grid.lattice import tree_lattice

    numbered = Lattice((tree_lattice(sp.Schema({"row": sp.Integer(0, N - 1)})).axes[0], *LATTICE.axes))
    table = TABLE.append_column("row", pa.array(range(N), pa.int64()))
    schema = sp.Schema({**SCHEMA, "row": sp.Integer(0, N - 1)})
    expected, got = compiled_cells(table, schema, numbered), engine_cells(rows, numbered)
    for index, axis in enumerate(numbered.axes):
        np.testing.assert_array_equal(got[:, index], expected[:, index], err_msg=axis.name)
        if axis.pieces is not None:
            assert len(np.unique(expected[:, index])) > 100, axis.name


def test_counts_of_all_axes_together_agree(rows) -> None:
    """Codes and counts are those in memory."""
    expected = count_cells(open_table(TABLE, SCHEMA), LATTICE)
    assert same_cells(rows.read_cells(LATTICE, collect(rows.cell_counts(LATTICE))), expected)


def test_columns_are_counted_in_one_pass(rows) -> None:
    """A column's own lattice may have pieces too."""
    lattices = [Lattice((axis,)) for axis in LATTICE.axes]
    found = rows.read_columns(lattices, collect(rows.column_counts(lattices)))
    for lattice, got in zip(lattices, found, strict=True):
        assert same_cells(got, count_cells(open_table(TABLE, SCHEMA), lattice)), lattice.axes[0].name
