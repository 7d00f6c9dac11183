"""All engines give the same cells: those of the compiled loops, value by value."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.counting.states import Cut, states_array
from spinney.errors import InputError
from spinney.grid.lattice import Lattice, tree_lattice
from spinney.tables.engines.memory import count_cells, state_rows
from spinney.tables.engines.queries import Rows
from spinney.tables.frames import open_table
from support.cell_counts import same_cells
from support.hard_values import (
    collect,
    compiled_cells,
    duckdb_rows,
    engine_cells,
    hard_cuts,
    hard_lattices,
    hard_table,
    polars_rows,
    spark_rows,
)

TABLE, SCHEMA = hard_table()
LATTICES = hard_lattices(SCHEMA)
ENGINES = ["polars", "duckdb", "spark"]


@pytest.fixture(params=ENGINES)
def open_rows(request, tmp_path):
    """How each engine that counts by expressions opens a table."""
    if request.param == "spark":
        session = request.getfixturevalue("spark")
        return lambda table, schema: spark_rows(session, table, schema, tmp_path)
    return {"polars": polars_rows, "duckdb": duckdb_rows}[request.param]


@pytest.fixture
def rows(open_rows) -> Rows:
    return open_rows(TABLE, SCHEMA)


@pytest.mark.parametrize("name", LATTICES)
def test_every_value_has_the_same_cell(rows, name):
    """Edges and their neighbours, both zeros, subnormals, huge values, nulls of all kinds, in every column type."""
    lattice = LATTICES[name]
    expected, got = compiled_cells(TABLE, SCHEMA, lattice), engine_cells(rows, lattice)
    for index, axis in enumerate(lattice.axes):
        np.testing.assert_array_equal(got[:, index], expected[:, index], err_msg=axis.name)


def test_the_values_are_difficult():
    """The table would catch a slip: most real axes have neighbouring doubles on both sides of an edge, and nulls."""
    lattice = LATTICES["tree"]
    assert lattice.depth > 4 * 64
    cells = compiled_cells(TABLE, SCHEMA, lattice)
    for index, axis in enumerate(lattice.axes):
        assert len(np.unique(cells[:, index])) > min(4, axis.n_possible - 1), axis.name
        assert not axis.nullable or axis.null_cell in cells[:, index], axis.name
        if axis.kind == "real" and axis.name != "single cell" and TABLE[axis.name].type == pa.float64():
            cell_of = dict(zip(TABLE[axis.name].to_pylist(), cells[:, index].tolist(), strict=True))
            pairs = [(value, math.nextafter(value, math.inf)) for value in cell_of if value is not None]
            assert any(cell_of.get(above, cell_of[value]) != cell_of[value] for value, above in pairs), axis.name


def test_columns_by_themselves_are_fine():
    """Up to 2^40 cells, of one unit and of many, with and without null: where a division in doubles could slip."""
    axes = LATTICES["columns"].axes
    assert max(axis.value_bits for axis in axes) == 40
    assert any(axis.value_bits > 38 and axis.step > 1 for axis in axes)
    cells = compiled_cells(TABLE, SCHEMA, LATTICES["columns"])
    assert max(cells[:, index].max() for index in range(len(axes))) > 2**39


def test_counts_come_back_as_sorted_codes(rows):
    """Keys of several words are taken apart and interleaved: codes, their order and counts are those in memory."""
    lattice = Lattice(LATTICES["tree"].axes[1::2])
    assert lattice.n_words > 2
    expected = count_cells(open_table(TABLE, SCHEMA), lattice)
    _, n_rows = expected.distinct()
    assert n_rows.max() > 1 or len(n_rows) > 100
    got = rows.read_cells(lattice, collect(rows.cell_counts(lattice)))
    assert same_cells(got, expected)


def test_columns_are_counted_in_one_pass(rows):
    """Each column's own lattice, all in one query."""
    chosen = [name for name in SCHEMA if name != "row"][::2]
    lattices = [tree_lattice(sp.Schema({name: SCHEMA[name]})) for name in chosen]
    answer = collect(rows.column_counts(lattices))
    for lattice, got in zip(lattices, rows.read_columns(lattices, answer), strict=True):
        expected = count_cells(open_table(TABLE, SCHEMA), lattice)
        assert same_cells(got, expected), lattice.axes[0].name


@pytest.mark.parametrize("wide", [False, True], ids=["bytes", "two bytes"])
def test_rows_have_the_same_states(rows, wide):
    """States under cuts of every column, in one byte; in two where there are more than 256 states."""
    first, *cuts = hard_cuts(LATTICES["tree"])
    cuts = [Cut(first.axis, first.first, (5 if wide else 1) * first.states), *cuts[wide::3]]
    expected = state_rows(open_table(TABLE, SCHEMA), cuts)
    assert expected.true_states.dtype == (np.uint16 if wide else np.uint8)
    got = states_array(cuts, len(TABLE))
    rows.read_states(got, collect(rows.states(cuts, got.true_states.dtype)))
    in_order = got.true_states[:, np.lexsort(got.true_states[::-1])]
    np.testing.assert_array_equal(in_order, expected.true_states[:, np.lexsort(expected.true_states[::-1])])


BAD = {
    "null": (sp.Real(0, 1), pa.float64(), [0.5, None], "missing"),
    "nan": (sp.Real(0, 1), pa.float64(), [0.5, math.nan], "missing"),
    "infinity": (sp.Real(0, 1), pa.float32(), [0.5, -math.inf], "missing"),
    "large for a double": (sp.Real(0, 1), pa.int64(), [1, 2**53 + 1], "cannot be read as real"),
    "no integer": (sp.Integer(0, 9), pa.int64(), [1, None], "missing"),
    "fraction": (sp.Integer(0, 9, nullable=True), pa.float64(), [1.0, 2.5], "not a whole number"),
    "no truth": (sp.Boolean(), pa.bool_(), [True, None], "missing"),
    "neither": (sp.Boolean(nullable=True), pa.int64(), [1, 2], "neither true nor false"),
    "no day": (sp.Date("2000-01-01", "2001-01-01"), pa.date32(), [0, None], "missing"),
    "other text": (sp.Category(["a", "b"], nullable=True), pa.string(), ["a", "A"], "not in the schema's list"),
    "other number": (sp.Category([1, 2]), pa.float64(), [1.0, 2.5], "not in the schema's list"),
    "long": (sp.Category([f"t{k}" for k in range(99)]), pa.string(), ["t1", "t99"], "not in the schema's list"),
    "no text": (sp.Category([f"t{k}" for k in range(99)]), pa.string(), ["t1", None], "missing"),
    "floats for text": (sp.Category(["a"], nullable=True), pa.float64(), [math.nan, 1.0], "not in the schema's list"),
}


def test_what_cannot_be_read_is_counted(open_rows):
    """One query finds the bad rows of every column, by the column, as does the counting itself; no value is named."""
    table = pa.table({name: pa.array(values, kind) for name, (_, kind, values, _) in BAD.items()})
    schema = sp.Schema({name: column for name, (column, *_) in BAD.items()})
    rows = open_rows(table, schema)
    answer = collect(rows.bad_rows())
    for index, (name, (column, _, _, words)) in enumerate(BAD.items()):
        n_missing = answer[f"m{index}"][0].as_py() if not column.nullable else 0
        assert (n_missing, answer[f"w{index}"][0].as_py()) == ((1, 0) if words == "missing" else (0, 1)), name
    with pytest.raises(InputError, match="'null' holds a missing"):
        rows.refuse_bad_rows(answer)
    for names in (["large for a double", "no truth"], ["null", "other text"], ["neither", "long"], ["no day"]):
        lattice = tree_lattice(sp.Schema({name: schema[name] for name in names}))
        first = names[0]
        with pytest.raises(InputError, match=f"'{first}'.*{BAD[first][3]}"):
            rows.read_cells(lattice, collect(rows.cell_counts(lattice)))
        if names == ["no day"]:
            with pytest.raises(InputError, match="'no day'"):
                list(rows.read_columns([lattice], collect(rows.column_counts([lattice]))))


@pytest.mark.parametrize("name", [name for name in BAD if name != "floats for text"])
def test_what_cannot_be_read_in_memory_either(name):
    """The table in memory is refused with the same words."""
    column, kind, values, words = BAD[name]
    schema = sp.Schema({name: column})
    with pytest.raises(InputError, match=words if name != "other number" else "not a whole number"):
        count_cells(open_table(pa.table({name: pa.array(values, kind)}), schema), tree_lattice(schema))


def test_an_empty_table(open_rows):
    """No rows, no cells; and sums over nothing are zero."""
    schema = sp.Schema({"x": sp.Real(0, 1), "c": sp.Category([f"t{k}" for k in range(99)])})
    rows = open_rows(pa.table({"x": pa.array([], pa.float64()), "c": pa.array([], pa.string())}), schema)
    rows.refuse_bad_rows(collect(rows.bad_rows()))
    counts = rows.read_cells(tree_lattice(schema), collect(rows.cell_counts(tree_lattice(schema))))
    assert counts.true_codes.shape == (0, 1)
    assert counts.true_total() == 0
