"""Tables at the edges: one row, one column, one value, all null, many columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import spinney as sp
from spinney.grid.lattice import tree_lattice
from spinney.tables.engines import memory
from spinney.tables.frames import open_table
from support.cell_counts import same_cells
from support.handmade_leaves import noisy_part
from support.in_one_test import in_one_test

KINDS = [sp.KDTreeSynthesizer, sp.GridSynthesizer, sp.ForestSynthesizer]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def rows_of(model, table, schema, n=200):
    """Sampled rows of a fit with hardly any noise."""
    return model.fit(table, schema).sample(n, seed=1, frame="pyarrow")


@pytest.mark.parametrize(
    "model",
    [
        sp.GridSynthesizer(10_000, bins=8, threshold=1),
        sp.PaperTreeSynthesizer(10_000, h=4, h_prime=8, tau=0, t=1),
        sp.KDTreeSynthesizer(10_000),
    ],
)
def test_one_row(model):
    """A single row at a generous budget comes back near where it was; at a small one nothing breaks."""
    schema = sp.Schema({"x": sp.Real(0, 1), "c": sp.Category(["a", "b", "c"])})
    table = pa.table({"x": [0.3], "c": ["b"]})
    rows = rows_of(model, table, schema)
    assert set(rows["c"].to_pylist()) == {"b"}
    assert abs(rows["x"].to_numpy() - 0.3).max() < 0.2
    small = type(model)("0.001").fit(table, schema)
    assert small.card_.n_rows == 1


@each_kind
def test_a_constant_column(kind):
    """Many equal rows make one deep bin."""
    rows = rows_of(kind(100), np.full(1000, 0.7), sp.Schema({"x": sp.Real(0, 1)}))
    assert abs(rows["x"].to_numpy() - 0.7).max() < 0.11


@each_kind
@in_one_test(
    "column",
    [
        sp.Real(0, 1, nullable=True),
        sp.Integer(0, 9, nullable=True),
        sp.Boolean(nullable=True),
        sp.Category(["a", "b"], nullable=True),
        sp.Date("2020-01-01", "2021-01-01", nullable=True),
        sp.Datetime("2020-01-01", "2021-01-01", nullable=True),
        sp.Datetime("2020-01-01", "2021-01-01", nullable=True, timezone="Asia/Tokyo"),
    ],
    ids=lambda column: type(column).__name__,
)
def test_a_column_of_nulls(kind, column):
    """A column that is null throughout comes back null, whatever its type and however the nulls are held."""
    schema = sp.Schema({"v": column})
    for table in (
        pa.table({"v": pa.nulls(500)}),
        pd.DataFrame({"v": pd.Series([None] * 500, dtype=object)}),
    ):
        rows = rows_of(kind(200), table, schema)
        assert rows["v"].null_count > 190


@each_kind
def test_a_list_of_one_value(kind):
    """A column that can take one value takes no bits and comes back as that value."""
    rows = rows_of(kind(100), pa.table({"v": ["only"] * 100}), sp.Schema({"v": sp.Category(["only"])}))
    assert rows["v"].to_pylist() == ["only"] * 200
    if kind is sp.ForestSynthesizer:
        return
    model = kind(100).fit(pa.table({"v": ["only"] * 100}), sp.Schema({"v": sp.Category(["only"])}))
    assert noisy_part(model.release_).lattice.depth == 0
    assert len(noisy_part(model.release_)) == 1


@each_kind
def test_truth_values_alone(kind):
    """One bit per column; shares survive."""
    rng = np.random.default_rng(5)
    table = pa.table({"a": rng.random(5000) < 0.9, "b": rng.random(5000) < 0.5})
    rows = rows_of(kind(10), table, sp.Schema({"a": sp.Boolean(), "b": sp.Boolean()}), n=5000)
    assert rows["a"].type == pa.bool_()
    assert abs(rows["a"].to_pandas().mean() - 0.9) < 0.04
    assert abs(rows["b"].to_pandas().mean() - 0.5) < 0.04


@each_kind
def test_values_outside_the_bounds_are_moved_to_the_edge(kind):
    """Rows beyond the stated bounds count at the edge; nothing is released outside."""
    table = pd.DataFrame({"x": [-1e300, 1e300] * 500, "n": [-(2**63), 2**63 - 1] * 500})
    rows = rows_of(kind(100), table, sp.Schema({"x": sp.Real(0, 1), "n": sp.Integer(-5, 5)}), n=1000).to_pandas()
    assert rows["x"].between(0, 1).all()
    assert rows["n"].between(-5, 5).all()
    assert (rows["n"] == 5).mean() == pytest.approx(0.5, abs=0.1)
    assert ((rows["x"] > 0.5) == (rows["n"] == 5)).mean() > 0.95


def test_a_mixed_table_keeps_its_shape(people):
    """All types in one table: values stay possible and shares stay near."""
    frame, schema = people
    rows = sp.KDTreeSynthesizer(20).fit(frame, schema).sample(3000, seed=1)
    assert list(rows.columns) == list(frame.columns)
    assert rows["height"].between(1, 2.5).all()
    assert rows["age"].between(0, 120).all()
    assert set(rows["colour"]) == {"red", "green", "blue"}
    assert set(rows["grade"]) <= {1, 2, 3, 5}
    assert rows["weight"].isna().mean() == pytest.approx(frame["weight"].isna().mean(), abs=0.1)
    assert rows["smoker"].mean() == pytest.approx(frame["smoker"].mean(), abs=0.1)


def test_twenty_nine_columns_under_the_papers_rule():
    """h = 30 levels of 2^30 bins and H = 60 are a matter of seconds, not of memory."""
    rng = np.random.default_rng(6)
    table = rng.normal(0, 1, (1533, 29))
    schema = sp.Schema({f"V{i}": sp.Real(-8, 8) for i in range(29)})
    model = sp.PaperTreeSynthesizer(1, h=30, h_prime=60).fit(table, schema)
    assert (model.plan_.fixed_depth, model.plan_.max_depth) == (30, 60)
    assert model.release_.bins.lattice.n_words > 1
    depths = model.release_.bins.depths
    assert not len(depths) or depths.min() >= 30


def test_threads_count_as_one_does():
    """Cut into many parts for many threads, a table has the same counts as in one piece."""
    schema = sp.Schema({"x": sp.Real(0, 1, bits=5), "y": sp.Real(0, 1, bits=5)})
    table = open_table(np.random.default_rng(8).random((20_000, 2)), schema)
    whole = memory.count_cells(table, tree_lattice(schema))
    parts = memory.count_cells(table, tree_lattice(schema), part=700)
    assert whole.true_total() == 20_000
    assert same_cells(whole, parts)


def test_a_matrix_is_a_table():
    """A column of numpy's matrix has two dimensions; it is read as that of an array."""
    import warnings

    rows = np.random.default_rng(0).random((200, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        matrix = np.matrix(rows)
    schema = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1)})
    assert sp.ForestSynthesizer("1").fit(matrix, schema).sample(5).shape == (5, 2)
