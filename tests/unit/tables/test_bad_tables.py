"""Bad tables: refused by column name and kind of mistake, never by value, and before anything is charged."""

from __future__ import annotations

from datetime import UTC, date, datetime, time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import InputError, SchemaError
from support.error_chains import chain
from support.in_one_test import in_one_test

ONE = sp.Schema({"v": sp.Real(0, 1)})
DAY, MOMENT = sp.Date("2020-01-01", "2021-01-01"), sp.Datetime("2020-01-01", "2021-01-01")
ZONED = sp.Datetime("2020-01-01", "2021-01-01", timezone="UTC")


def refused(table, schema, error, message, model=None):
    """Fit, expecting this error and an untouched ledger; returns the message."""
    ledger = sp.Ledger(limit=10, delta="1e-5")
    models = [sp.KDTreeSynthesizer(), sp.ForestSynthesizer()] if model is None else [model]
    for refusing in models:
        with pytest.raises(error, match=message) as caught:
            refusing.fit(table, schema, ledger=ledger)
        assert ledger.events == ()
        assert chain(caught.value) == [caught.value]
    return str(caught.value)


@pytest.mark.parametrize(
    "table",
    [
        None,
        42,
        b"table.csv",
        [[1.0], [2.0]],
        {"v": [0.5]},
        pd.Series([0.5], name="v"),
        pl.Series("v", [0.5]),
        pa.chunked_array([[0.5]]),
        np.float64(0.5),
    ],
    ids=lambda table: type(table).__name__,
)
def test_what_is_not_a_table(table):
    """Other objects are refused by their type, with the kinds that are understood."""
    message = refused(table, ONE, InputError, "is not a table; pass a pandas, polars or pyarrow table, a numeric numpy")
    assert type(table).__name__ in message


@pytest.mark.parametrize("schema", [None, 42, ["v"], b"schema.toml"])
def test_what_is_not_a_schema(schema):
    """A schema is a Schema, a path or a dictionary of columns; the message shows how to make one."""
    refused(pd.DataFrame({"v": [0.5]}), schema, SchemaError, r"not a Schema; make one with sp\.Schema")


FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
each_frame = pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)


@each_frame
def test_missing_and_extra_columns(make):
    """Table and schema describe the same columns; the odd one out is named."""
    refused(make({"v": [0.5], "w": [1]}), ONE, SchemaError, "column 'w' is in the table but not in the schema")
    schema = sp.Schema({"v": sp.Real(0, 1), "w": sp.Boolean()})
    refused(make({"v": [0.5]}), schema, SchemaError, "column 'w' is in the schema but not in the table")


@each_frame
def test_no_rows(make):
    """An empty table has nothing to release."""
    refused(make({"v": np.empty(0)}), ONE, InputError, "no rows")


def test_no_rows_in_an_array():
    """Nor has an empty array."""
    refused(np.empty((0, 1)), ONE, InputError, "no rows")


@pytest.mark.parametrize(
    "table",
    [pd.DataFrame([[0.1, 0.2]], columns=["v", "v"]), pa.table([[0.1], [0.2]], names=["v", "v"])],
    ids=["pandas", "pyarrow"],
)
def test_two_columns_of_one_name(table):
    """Which of the two would be meant is anyone's guess."""
    refused(table, ONE, InputError, "two columns of the same name")


def test_column_names_that_are_not_text():
    """A pandas table without names has numbers for names, and a pivoted one has values; neither is quoted."""
    message = refused(pd.DataFrame([[0.5]]), ONE, SchemaError, r"names of type int.*frame\.columns = list\(schema")
    assert "0" not in message
    levels = pd.DataFrame([[0.5, 1]], columns=pd.MultiIndex.from_tuples([("v", "7351"), ("w", "7352")]))
    assert "735" not in refused(levels, ONE, SchemaError, "column names of several levels; make them strings")
    moments = pd.DataFrame([[0.5]], columns=[pd.Timestamp("2020-07-03")])
    assert "2020" not in refused(moments, ONE, SchemaError, "column names of type Timestamp")


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((3, 2)), r"shape \(3, 2\) does not have the schema's 1 columns"),
        (np.zeros((3, 1, 1)), "shape"),
        (np.array(0.5), "shape"),
        (np.array([["a"]]), "not numeric"),
        (np.array([[object()]]), "not numeric"),
        (np.array([[1j]]), "not numeric"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), "not numeric"),
    ],
)
def test_arrays_of_the_wrong_shape_or_type(array, message):
    """An array has the schema's columns, in order, all numbers."""
    refused(array, ONE, SchemaError, message)


def test_masked_arrays():
    """A mask would silently be ignored, so it is refused."""
    refused(np.ma.masked_array([[0.5]], mask=[[True]]), ONE, InputError, "masked")


@pytest.mark.parametrize("column", [DAY, MOMENT, sp.Category(["a"])], ids=repr)
def test_arrays_cannot_hold_all_types(column):
    """An array for a column of dates or texts names the column."""
    refused(np.zeros((3, 1)), sp.Schema({"v": column}), SchemaError, r"column 'v' is of type .* numeric array")


WRONG_TYPES = {
    "truth for real": ([True], sp.Real(0, 1)),
    "number for text": ([7351], sp.Category(["7351"])),
    "truth for text": ([True], sp.Category(["a"])),
    "number for day": ([7351], DAY),
    "number for moment": ([7351], MOMENT),
    "moment for number": ([datetime(2020, 7, 3)], sp.Integer(0, 9)),
    "moment with zone for day": ([datetime(2020, 7, 3, tzinfo=UTC)], DAY),
    "moment with zone for one without": ([datetime(2020, 7, 3, tzinfo=UTC)], MOMENT),
    "moment without zone for one with": ([datetime(2020, 7, 3)], ZONED),
}


@in_one_test(("values", "column"), WRONG_TYPES.values(), ids=WRONG_TYPES)
@each_frame
def test_columns_of_the_wrong_type(make, values, column):
    """A type that cannot be meant is refused from the type alone, naming the column and both types."""
    message = refused(
        make({"v": values}), sp.Schema({"v": column}), SchemaError, r"column 'v' has type .* does not fit"
    )
    assert column.type_name in message


@in_one_test(
    ("values", "column"),
    [
        ([date(2020, 7, 3)], sp.Integer(0, 9)),
        ([date(2020, 7, 3)], sp.Real(0, 9)),
        ([date(2020, 7, 3)], MOMENT),
        ([time(7, 3, 51)], DAY),
        (["03.07.2020"], DAY),
        (["07/03/2020"], MOMENT),
        (["0,7351"], sp.Real(0, 1)),
        (["7351 EUR"], sp.Integer(0, 9)),
        ([datetime(2020, 7, 3)], sp.Integer(0, 9)),
        ([datetime(2020, 7, 3, tzinfo=UTC)], DAY),
        ([datetime(2020, 7, 3)], ZONED),
        ([7351], sp.Category(["7351"])),
        ([7351], DAY),
        ([7351, "a"], sp.Category(["a"])),
        ([{"a": 7351}], sp.Category(["a"])),
    ],
    ids=repr,
)
def test_pandas_objects_of_the_wrong_kind(values, column):
    """Columns of Python objects show what they hold only when read; what they hold is not quoted."""
    table = pd.DataFrame({"v": pd.Series(values, dtype=object)})
    message = refused(table, sp.Schema({"v": column}), InputError, "column 'v'")
    assert not any(word in message for word in ("7351", "2020", "07-03", "03.07"))


MISSING = {
    "real nan": (sp.Real(0, 1), [0.5, float("nan")]),
    "real inf": (sp.Real(0, 1), [0.5, float("inf")]),
    "real null": (sp.Real(0, 1), [0.5, None]),
    "integer nan": (sp.Integer(0, 9), [5.0, float("nan")]),
    "integer inf": (sp.Integer(0, 9), [5.0, -float("inf")]),
    "integer null": (sp.Integer(0, 9), [5, None]),
    "truth null": (sp.Boolean(), [True, None]),
    "text null": (sp.Category(["a"]), ["a", None]),
    "day null": (DAY, [date(2020, 7, 3), None]),
    "moment null": (MOMENT, [datetime(2020, 7, 3), None]),
}


@in_one_test(("column", "values"), MISSING.values(), ids=MISSING)
@each_frame
def test_missing_values_need_a_nullable_column(make, column, values):
    """Nulls, NaN and infinities are refused where the schema has no nulls, by column."""
    message = "column 'v' holds a missing or non-finite value; declare it nullable"
    refused(make({"v": values}), sp.Schema({"v": column}), InputError, message)


@each_frame
@in_one_test(
    ("column", "values", "message"),
    [
        (sp.Category(["red"]), ["red", "MARKER-7351"], "not in the schema's list"),
        (sp.Category([1, 2]), [1, 7351], "not in the schema's list"),
        (sp.Category([1, 2]), [1.0, 73.51], "not a whole number"),
        (sp.Integer(0, 9), [1.0, 73.51], "not a whole number"),
        (sp.Boolean(), [0, 7351], "neither true nor false"),
    ],
)
def test_values_that_the_schema_rules_out(make, column, values, message):
    """A value outside the list, or a fraction among whole numbers, is reported without being shown."""
    shown = refused(make({"v": values}), sp.Schema({"v": column}), InputError, rf"column 'v'.*{message}")
    assert "7351" not in shown
    assert "73.51" not in shown


@pytest.mark.parametrize("bounds", ["private", "from-data-not-private"])
@pytest.mark.parametrize("values", [["a", "b", "MARKER"], ["a", None, "b"]])
def test_nothing_is_spent_on_bounds_of_an_unreadable_table(bounds, values):
    """An unreadable last column is found before the bounds of the first are paid for or read."""
    schema = sp.Schema({"x": sp.Real(bounds=bounds), "v": sp.Category(["a", "b"])})
    refused(pd.DataFrame({"x": [0.1, 0.2, 0.3], "v": values}), schema, InputError, "column 'v'")


def test_a_missing_value_in_the_last_of_many_rows(square):
    """Rows are read in blocks; a bad value far down is found too."""
    column = np.full(200_000, 0.5)
    column[-1] = np.nan
    refused(column, ONE, InputError, "column 'v' holds a missing")
