"""Every kind of column is counted and drawn: cells and back, bounds to be found, conditions, pictures.

The examples are in `support.column_examples`; how columns are stated and read is in `test_every_kind.py`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.columns import Bounded, Listed, whole_range
from spinney.errors import ParameterError, SchemaError
from spinney.grid.lattice import tree_lattice
from spinney.release.answers.grammar import parse_where
from spinney.release.frames import positions_of, to_frame
from spinney.tables.engines.memory import count_cells
from spinney.tables.frames import open_table
from spinney.tree.bought import ladder_lattice, widest_bounds
from support.column_examples import READ, arrow_of, check_physical, every_column, every_read_column, named, with_nulls
from support.in_one_test import in_one_test

# ----------------------------------------------------------------------------------------------------- cells and back


@every_read_column
@with_nulls
def test_cells(example, nullable):
    """Values of a column have cells of its axis, in order, and null has its own."""
    column = replace(example.column, nullable=nullable, bits=None)
    schema = sp.Schema({"x": column})
    table = open_table(pa.table({"x": arrow_of(example, [*example.values, *([None] if nullable else [])])}), schema)
    lattice = tree_lattice(schema)
    assert lattice.axes[0].kind == column._axis_kind
    assert count_cells(table, lattice).true_total() == len(example.values) + nullable
    if column.is_whole:
        first, last = whole_range(column)
        assert first <= min(example.physical) <= max(example.physical) <= last
        assert column.spacing == column.step >= 1
    else:
        assert column._whole_range() is None


@every_read_column
@with_nulls
@in_one_test("kind", ["pyarrow", "pandas", "polars", "numpy"])
def test_there_and_back(example, nullable, kind):
    """Numbers become positions, and positions the values that came in, of the type that came in."""
    column = replace(example.column, nullable=nullable)
    schema = sp.Schema({"x": column})
    positions = positions_of(np.array([example.physical], dtype=np.float64), schema)
    if nullable:
        positions = np.append(positions, [[np.nan]], axis=1)
    if kind == "numpy" and not column._fits_array:
        with pytest.raises(ParameterError, match="cannot hold a column of type"):
            to_frame(positions, schema, kind)
        return
    frame = to_frame(positions, schema, kind)
    if kind == "numpy":
        assert frame[: len(example.values), 0].tolist() == [float(value) for value in example.values]
        return
    opened = open_table(frame, schema)
    check_physical(opened.physical("x"), example.physical, n_nulls=int(nullable))
    if kind == "pyarrow":
        assert frame["x"].type == column._arrow_type
        assert frame["x"].to_pylist()[: len(example.values)] == example.values


@every_column
def test_arrays(example):
    """A numeric array is refused where the column cannot be in one, and only there."""
    schema = sp.Schema({"x": example.column})
    if example.column._fits_array:
        open_table(np.zeros((1, 1)), schema)
    else:
        with pytest.raises(SchemaError, match="numeric array"):
            open_table(np.zeros((1, 1)), schema)


@every_read_column
def test_leaves(example):
    """The ends of leaves are told in the column's own values."""
    positions = positions_of(np.array([example.physical], dtype=np.float64), sp.Schema({"x": example.column}))[0]
    length = np.full(len(positions), 1.0 if example.column.is_whole else 1e-9)
    ends = example.column._leaf_ends(positions, length)
    assert [low for low, _ in ends] == example.values
    if example.column.is_whole:
        assert [high for _, high in ends] == example.values


@pytest.mark.parametrize("synthesizer", [sp.KDTreeSynthesizer, sp.ForestSynthesizer])
def test_all_kinds_through_a_synthesizer(synthesizer):
    """A table of all kinds, with nulls and private bounds, is fitted and drawn, and comes back in its own types."""
    columns, arrays, rows = {}, {}, 400
    chosen = READ if synthesizer is sp.ForestSynthesizer else READ[:8]
    for index, example in enumerate(chosen):
        nullable = index % 2 == 0
        values = (example.values + [None] * nullable) * rows
        columns[f"x{index}"] = replace(example.column, nullable=nullable)
        arrays[f"x{index}"] = arrow_of(example, values[:rows])
    table = pa.table(arrays)
    model = synthesizer("20").fit(table, sp.Schema(columns))
    drawn = model.sample(50, seed=1, frame="pyarrow")
    assert drawn.schema.types == table.schema.types
    for name, column in columns.items():
        if not column.nullable:
            assert drawn[name].null_count == 0


# --------------------------------------------------------------------------------------------- bounds and conditions


@pytest.mark.parametrize("example", [e for e in READ if isinstance(e.column, Bounded)], ids=named)
def test_bounds_to_be_found(example):
    """Ladders of magnitudes give bounds that the column can have; so do the extremes of a table."""
    column = replace(example.column, low=None, high=None, bounds="private")
    axis = ladder_lattice("x", column).axes[0]
    assert axis.kind == "ladder"
    widest = column._with_bounds(*widest_bounds(column))
    assert widest.low < widest.high
    assert all(widest.physical(widest.low) <= number <= widest.physical(widest.high) for number in example.physical)
    from_data = replace(example.column, low=None, high=None, bounds="from-data-not-private")
    found = from_data._with_bounds(*from_data._from_extremes(example.physical[0], example.physical[-1]))
    assert found.physical(found.low) <= example.physical[0]
    assert found.physical(found.high) >= example.physical[-1]
    assert [column.logical(column.physical(value)) for value in example.values] == example.values
    assert [column.physical(column._limit(number)) for number in example.physical] == example.physical


@every_read_column
def test_conditions(example):
    """A value in Python and its text on a command line ask for the same physical number; nonsense is refused."""
    column = example.column
    schema = sp.Schema({"x": column})
    for value, text, number in zip(example.values, example.texts, example.physical, strict=True):
        asked = parse_where([f"x={text}"], schema)["x"]
        for wanted in (value, asked):
            if isinstance(column, Listed):
                assert column._place_of(wanted, name="x", argument="where") == number
            else:
                assert column._condition_number(wanted, "x") == number
    refuse = partial(column._place_of, argument="where") if isinstance(column, Listed) else column._condition_number
    with pytest.raises(ParameterError, match="where"):
        refuse(b"no", name="x")


@every_read_column
def test_rows_under_a_condition(example):
    """A forest draws rows that have the value asked for, or lie in the range asked for."""
    rng = np.random.default_rng(0)
    values = [example.values[place] for place in rng.integers(0, len(example.values), 600)]
    table = pa.table({"x": arrow_of(example, values), "b": pa.array(rng.random(600) < 0.5)})
    schema = sp.Schema({"x": example.column, "b": sp.Boolean()})
    model = sp.ForestSynthesizer("50").fit(table, schema)
    value = example.values[1]
    drawn = model.sample(20, where={"x": value}, seed=0, frame="pyarrow")["x"].to_pylist()
    assert drawn == [value] * 20
    if isinstance(example.column, Bounded):
        low, high = example.values[0], example.values[1]
        drawn = model.sample(40, where={"x": (low, high)}, seed=0, frame="pyarrow")["x"].to_pylist()
        assert all(low <= one <= high for one in drawn)


# ------------------------------------------------------------------------------------------------------- pictures


@every_read_column
def test_pictures(example):
    """A picture has a range that holds all values, and ticks that can be drawn."""
    from matplotlib.figure import Figure

    low, high = example.column._drawn_range()
    assert low < high
    assert example.column._drawn_scale > 0
    figure = Figure()
    axes = figure.add_subplot()
    axes.set_xlim(low, high)
    example.column._set_ticks(axes.xaxis)
    figure.draw_without_rendering()
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert any(labels)
