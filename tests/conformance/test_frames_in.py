"""Every kind of frame gives the same counts: those that plain Python gives."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import spinney as sp
from spinney.grid.lattice import grid_lattice, tree_lattice
from spinney.tables.open import open_source
from support.slow_trees import code_of, pack


def slow_cell(value, column, axis):
    """The cell of a logical value, by the lattice's definition."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return axis.null_cell
    if isinstance(column, sp.Category):
        return column.values.index(value)
    if isinstance(column, sp.Real):
        return min(max(math.floor((value - axis.origin) * axis.scale), axis.first), axis.last)
    number = int(value) if isinstance(column, sp.Boolean) else column.physical(value)
    return (min(max(number, axis.low), axis.high) - axis.low) // axis.step


def slow_counts(rows, schema, lattice):
    """Codes with counts, from columns of Python values."""
    cells = [[slow_cell(value, schema[axis.name], axis) for value in rows[axis.name]] for axis in lattice.axes]
    return Counter(tuple(pack(code_of(row, lattice), lattice.depth, lattice)) for row in zip(*cells, strict=True))


def fast_counts(frame, schema, lattice):
    counts = open_source(frame, schema).count_cells(lattice)
    codes, n_rows = counts.distinct()
    assert codes.shape == (len(n_rows), lattice.n_words)
    return dict(zip(map(tuple, codes.tolist()), n_rows.tolist(), strict=True))


def test_the_whole_table(kind, rows, schema):
    """All columns together, on a tree's and on a grid's lattice, beyond 64 bits."""
    for lattice in (tree_lattice(schema), grid_lattice(schema, bins=5)):
        assert fast_counts(kind.make(), schema, lattice) == slow_counts(rows, schema, lattice)


def test_each_column(kind, rows, schema, arrow_table):
    """Column by column, so that a failure names the type."""
    for name, column in schema.items():
        if kind.hold is not None:
            one = kind.hold(arrow_table.select([name]))
        else:
            frame = kind.make()
            one = frame.select([name]) if isinstance(frame, (pa.Table, pl.DataFrame)) else frame[[name]]
        alone = sp.Schema({name: column})
        lattice = tree_lattice(alone)
        assert fast_counts(one, alone, lattice) == slow_counts(rows, alone, lattice), name


def test_columns_in_another_order(kind, rows, schema):
    """Columns are found by name, not by place."""
    turned = sp.Schema(dict(reversed(list(schema.items()))))
    lattice = tree_lattice(turned)
    assert fast_counts(kind.make(), turned, lattice) == slow_counts(rows, turned, lattice)


# ------------------------------------------------------------------------------------------------------ arrays

NUMERIC = ["real", "real_null", "integer", "integer_null", "truth", "truth_null", "number"]


def as_array(rows, names, dtype=np.float64, order="C"):
    table = [[math.nan if value is None else float(value) for value in rows[name]] for name in names]
    return np.array(np.array(table).T, dtype=dtype, order=order)


ARRAYS = {
    "C order": lambda array: array,
    "Fortran order": np.asfortranarray,
    "every other row and column": lambda array: np.repeat(np.repeat(array, 2, axis=0), 2, axis=1)[::2, ::2],
    "backwards": lambda array: array[::-1],
    "read only": lambda array: np.frombuffer(array.tobytes()).reshape(array.shape),
    "single precision": lambda array: array.astype(np.float32),
    "half precision": lambda array: array.astype(np.float16),
    "big endian": lambda array: array.astype(">f8"),
    "long double": lambda array: array.astype(np.longdouble),
}


@pytest.mark.parametrize("change", ARRAYS.values(), ids=ARRAYS)
def test_arrays(change, rows, schema):
    """Numbers in an array, with NaN for null, count as in a frame, however the array lies in memory."""
    numeric = sp.Schema({name: schema[name] for name in NUMERIC})
    lattice = tree_lattice(numeric)
    # Half precision holds whole numbers to 2048 and 1/64 near 1 exactly.
    assert fast_counts(change(as_array(rows, NUMERIC)), numeric, lattice) == slow_counts(rows, numeric, lattice)


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4", "?"])
def test_whole_number_arrays(dtype):
    """Arrays of any integer width, for columns of any numeric type."""
    values = [0, 1, 1, 0, 1]
    for column in (sp.Real(0, 1), sp.Integer(0, 3), sp.Boolean(), sp.Category([1, 0])):
        alone = sp.Schema({"v": column})
        lattice = tree_lattice(alone)
        expected = slow_counts({"v": values}, alone, lattice)
        assert fast_counts(np.array([values]).T.astype(dtype), alone, lattice) == expected
        assert fast_counts(np.array(values, dtype=dtype), alone, lattice) == expected  # one column may be flat


def test_huge_unsigned_numbers():
    """Values beyond int64 are clamped like any value outside the bounds."""
    alone = sp.Schema({"v": sp.Integer(0, 7)})
    lattice = tree_lattice(alone)
    values = np.array([2**64 - 1, 2**63, 3], dtype=np.uint64)
    expected = slow_counts({"v": [7, 7, 3]}, alone, lattice)
    for frame in (values, pd.DataFrame({"v": values}), pl.DataFrame({"v": values}), pa.table({"v": values})):
        assert fast_counts(frame, alone, lattice) == expected


def test_whole_numbers_held_as_floats():
    """Floats that are whole count as integers, beyond 2^53 and 2^63 too."""
    alone = sp.Schema({"v": sp.Integer(-10, 10)})
    lattice = tree_lattice(alone)
    expected = slow_counts({"v": [10, -10, 3]}, alone, lattice)
    for dtype in (np.float32, np.float64):
        assert fast_counts(np.array([1e30, -1e30, 3], dtype=dtype), alone, lattice) == expected


def test_nan_null_and_infinity_are_one_null():
    """A float NaN, a null and an infinity all mean: no value."""
    alone = sp.Schema({"v": sp.Real(0, 1, nullable=True)})
    lattice = tree_lattice(alone)
    expected = slow_counts({"v": [0.5, None, None, None]}, alone, lattice)
    nan, inf = math.nan, math.inf
    for frame in (
        np.array([0.5, nan, inf, -inf]),
        pd.DataFrame({"v": pd.array([0.5, None, inf, -inf], dtype="Float64")}),
        pl.DataFrame({"v": [0.5, None, nan, inf]}),
        pa.table({"v": [0.5, None, nan, inf]}),
        pa.table({"v": pa.array([0.5, None, nan, inf], pa.float32())}),
    ):
        assert fast_counts(frame, alone, lattice) == expected


def test_a_view_of_a_larger_table():
    """Slices with an offset, nulls and all, count only their own rows."""
    alone = sp.Schema({"v": sp.Integer(0, 9, nullable=True)})
    lattice = tree_lattice(alone)
    values = [9, 9, None, 3, 4, None, 9, 9]
    expected = slow_counts({"v": values[2:6]}, alone, lattice)
    assert fast_counts(pa.table({"v": values}).slice(2, 4), alone, lattice) == expected
    assert fast_counts(pl.DataFrame({"v": values})[2:6], alone, lattice) == expected
    assert fast_counts(pd.DataFrame({"v": pd.array(values, dtype="Int64")})[2:6], alone, lattice) == expected
