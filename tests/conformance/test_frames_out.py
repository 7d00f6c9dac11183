"""Synthetic rows come back in the kind of frame that went in, with each column in its own type."""

from __future__ import annotations

from datetime import date, datetime, time
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import spinney as sp

ARROW_TYPES = {
    "real": pa.float64(),
    "integer": pa.int64(),
    "day": pa.date32(),
    "moment": pa.timestamp("us"),
    "zoned": pa.timestamp("us", "Europe/Berlin"),
    "clock": pa.time64("us"),
    "truth": pa.bool_(),
    "text": pa.string(),
    "number": pa.int64(),
}
POLARS_TYPES = {
    "real": pl.Float64,
    "integer": pl.Int64,
    "day": pl.Date,
    "moment": pl.Datetime("us"),
    "zoned": pl.Datetime("us", "Europe/Berlin"),
    "clock": pl.Time,
    "truth": pl.Boolean,
    "text": pl.String,
    "number": pl.Int64,
}
PANDAS_TYPES = {
    "real": "float64",
    "integer": "int64",
    "integer_null": "Int64",
    "clock": "object",
    "truth": "bool",
    "truth_null": "boolean",
    "number": "int64",
}
PYTHON_TYPES = {
    "real": float,
    "integer": int,
    "day": date,
    "moment": datetime,
    "zoned": datetime,
    "clock": time,
    "truth": bool,
    "text": str,
    "number": int,
}


def plain(frame, name):
    """A column as Python values, None for null."""
    if isinstance(frame, pa.Table):
        return frame[name].to_pylist()
    if isinstance(frame, pl.DataFrame):
        return frame[name].to_list()
    return [None if pd.isna(value) else value for value in frame[name].tolist()]


# Hardly any noise and a fixed cut along every axis, so that nulls and values of every column are in the sample.
SETTINGS = {"epsilon": 500, "h": 16, "h_prime": 32, "tau": 0, "t": 1}


@pytest.fixture
def model(kind, schema):
    return sp.PaperTreeSynthesizer(**SETTINGS).fit(kind.make(), schema, entropy=sp.UnsafeSeededEntropy(1))


def check_types(frame, schema):
    """Each column has the dtype of its kind of frame."""
    for name, column in schema.items():
        base = name.removesuffix("_null")
        if isinstance(frame, pa.Table):
            assert frame.schema.field(name).type == ARROW_TYPES[base], name
        elif isinstance(frame, pl.DataFrame):
            assert frame.schema[name] == POLARS_TYPES[base], name
        else:
            dtype = frame[name].dtype
            if isinstance(column, (sp.Date, sp.Datetime)):
                assert dtype.kind == "M", name
                assert str(getattr(dtype, "tz", None)) == str(getattr(column, "timezone", None)), name
            elif base == "text":
                assert pd.api.types.is_string_dtype(dtype), name
            else:
                assert dtype == PANDAS_TYPES.get(name, PANDAS_TYPES[base]), name


def check_values(frame, schema):
    """Each value is possible under the schema and of the Python type that the column means."""
    for name, column in schema.items():
        values = plain(frame, name)
        present = [value for value in values if value is not None]
        assert column.nullable or len(present) == len(values), name
        assert all(isinstance(value, PYTHON_TYPES[name.removesuffix("_null")]) for value in present), name
        if isinstance(column, sp.Category):
            assert set(present) <= set(column.values), name
        elif isinstance(column, sp.Date):
            days = [value.date() if isinstance(value, datetime) else value for value in present]
            assert all(column.low <= day <= column.high for day in days), name
            assert all(not isinstance(value, datetime) or value.time() == value.time().min for value in present), name
        elif not isinstance(column, sp.Boolean):
            assert all(column.low <= value <= column.high for value in present), name


def test_sampled_rows(kind, model, schema):
    """Same kind of frame, same columns, right types, possible values, nulls as nulls."""
    rows = model.sample(400, seed=1)
    assert type(rows) is kind.out
    assert list(rows.column_names if isinstance(rows, pa.Table) else rows.columns) == list(schema)
    assert len(rows) == 400
    check_types(rows, schema)
    check_values(rows, schema)
    for name, column in schema.items():
        if column.nullable:
            assert any(value is None for value in plain(rows, name)), name
            assert any(value is not None for value in plain(rows, name)), name


@pytest.mark.parametrize("placement", ["centre", "tilted"])
def test_weighted_points(kind, model, schema, placement):
    """Points come in the same kind of frame, one per bin, with weights beside them."""
    points, weights = model.weighted_points(placement=placement)
    assert type(points) is kind.out
    assert isinstance(weights, np.ndarray)
    assert len(points) == len(weights) == len(model.release_.bins)
    check_types(points, schema)
    check_values(points, schema)


def test_zoned_moments_come_back_in_their_zone(kind, model):
    """Moments are shown in the schema's zone, whatever zone the table had."""
    for value in plain(model.sample(20, seed=1), "zoned"):
        assert value.utcoffset() == value.astimezone(ZoneInfo("Europe/Berlin")).utcoffset()


def test_no_rows_have_the_same_types(kind, model, schema):
    """An empty sample is typed like a full one."""
    empty = model.sample(0)
    assert type(empty) is kind.out
    assert len(empty) == 0
    check_types(empty, schema)


def test_types_do_not_depend_on_the_rows_drawn(model, schema):
    """A nullable column has the same dtype whether or not nulls were drawn, and its neighbours are not touched."""
    for seed in range(5):
        check_types(model.sample(1, seed=seed), schema)


def test_every_kind_gives_the_same_rows(model, schema, arrow_table):
    """The same noise and the same seed give the same rows, whatever kind of frame went in or comes out."""
    rows = model.sample(50, seed=2, frame="pyarrow")
    reference = sp.PaperTreeSynthesizer(**SETTINGS).fit(arrow_table, schema, entropy=sp.UnsafeSeededEntropy(1))
    assert rows.equals(reference.sample(50, seed=2))
    for name in schema:
        assert plain(rows, name) == plain(model.sample(50, seed=2, frame="polars"), name)


FORESTS = {
    "forest": sp.ForestSynthesizer(100),
    "target": sp.ForestSynthesizer(100, 0, target="truth_null"),
}
# What each of them draws from the Arrow table, with which every other kind is compared.
DRAWN = {}


@pytest.mark.parametrize("name", FORESTS)
def test_a_forest_takes_and_gives_every_kind(kind, name, schema, arrow_table):
    """Right types, possible values, nulls as nulls, and the same rows whatever kind of frame went in or comes out."""
    forest = FORESTS[name]
    if name not in DRAWN:
        DRAWN[name] = forest.fit(arrow_table, schema, entropy=sp.UnsafeSeededEntropy(1)).sample(300, seed=2)
    expected = DRAWN[name]
    forest.fit(kind.make(), schema, entropy=sp.UnsafeSeededEntropy(1))
    assert forest.sample(300, seed=2, frame="pyarrow").equals(expected)
    for n_rows in (300, 1, 0):
        rows = forest.sample(n_rows, seed=2)
        assert type(rows) is kind.out
        assert len(rows) == n_rows
        assert list(rows.column_names if isinstance(rows, pa.Table) else rows.columns) == list(schema)
        check_types(rows, schema)
        check_values(rows, schema)
    for name, column in schema.items():
        n_null = sum(value is None for value in plain(expected, name))
        assert 30 < n_null < 270 if column.nullable else n_null == 0, name
    with pytest.raises(sp.SpinneyError, match="has no weighted points"):
        forest.weighted_points()


def test_an_array_comes_back_as_an_array():
    """Numbers in, numbers out: one float column per column of the schema, whole numbers whole, nulls as NaN."""
    rng = np.random.default_rng(3)
    table = np.stack([rng.random(2000), rng.integers(0, 9, 2000), np.where(rng.random(2000) < 0.5, np.nan, 5)], axis=1)
    schema = sp.Schema({"x": sp.Real(0, 1), "n": sp.Integer(0, 9), "c": sp.Category([3, 5], nullable=True)})
    model = sp.KDTreeSynthesizer(50).fit(table, schema)
    rows = model.sample(500, seed=1)
    assert (type(rows), rows.shape, rows.dtype) == (np.ndarray, (500, 3), np.float64)
    assert (rows[:, 1] == np.floor(rows[:, 1])).all()
    assert set(rows[~np.isnan(rows[:, 2]), 2]) <= {3.0, 5.0}
    assert 0.3 < np.isnan(rows[:, 2]).mean() < 0.7
    points, weights = model.weighted_points()
    assert (type(points), points.shape) == (np.ndarray, (len(weights), 3))
    rows = sp.ForestSynthesizer(50).fit(table, schema).sample(500, seed=1)
    assert (type(rows), rows.shape, rows.dtype) == (np.ndarray, (500, 3), np.float64)
    assert (rows[:, 1] == np.floor(rows[:, 1])).all()
    assert set(rows[~np.isnan(rows[:, 2]), 2]) <= {3.0, 5.0}
    assert 0.3 < np.isnan(rows[:, 2]).mean() < 0.7


def test_a_flat_array_is_one_column():
    """A flat array of one column comes back as a table of one column."""
    model = sp.GridSynthesizer(1).fit(np.random.default_rng(0).random(500), sp.Schema({"x": sp.Real(0, 1)}))
    assert model.sample(7).shape == (7, 1)
