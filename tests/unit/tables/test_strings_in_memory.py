"""Strings in memory, as `pandas.read_csv` leaves them: read by the schema, or refused with what to type."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import InputError
from spinney.tables.frames import open_table
from support.error_chains import chain
from support.in_one_test import in_one_test

DAY, MOMENT = sp.Date("2020-01-01", "2021-01-01"), sp.Datetime("2020-01-01", "2021-01-01")
ZONED = sp.Datetime("2020-01-01", "2021-01-01", timezone="Europe/Berlin")

FRAMES = {
    "pandas": lambda values: pd.DataFrame({"v": pd.Series(values, dtype="str")}),
    "pandas objects": lambda values: pd.DataFrame({"v": pd.Series(values, dtype=object)}),
    "polars": lambda values: pl.DataFrame({"v": pl.Series(values, dtype=pl.String)}),
    "pyarrow": lambda values: pa.table({"v": pa.array(values, pa.string())}),
}
each_frame = pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)


def physical(frame, column):
    """The column's numbers, NaN for null."""
    read = open_table(frame, sp.Schema({"v": column})).physical("v")
    return np.where(False if read.is_null is None else read.is_null, np.nan, read.values.astype(np.float64))


READ = {
    "days": (DAY, ["2020-07-03", " 2020-07-03 ", "2020-07-03T23:59:59"], date(2020, 7, 3)),
    "moments": (MOMENT, ["2020-07-03T00:00:00", "2020-07-03 00:00", "2020-07-03"], datetime(2020, 7, 3)),
    "zoned": (ZONED, ["2020-07-03T00:00:00+02:00", "2020-07-02T22:00:00Z"], ZONED.parse("2020-07-03", "")),
    "integers": (sp.Integer(0, 9), ["7", "7.0", " 7", "+7", "70e-1"], 7),
    "reals": (sp.Real(0, 9), ["0.5", ".5", "5e-1", " 0.5 "], 0.5),
    "true": (sp.Boolean(), ["true", "True", "TRUE", "1"], 1),
    "false": (sp.Boolean(), ["false", "False", "FALSE", "0"], 0),
    "numbered": (sp.Category([5, 7]), ["7", "7.0"], 1),
}


@each_frame
@in_one_test(("column", "strings", "value"), READ.values(), ids=READ)
def test_spellings(make, column, strings, value):
    """What a CSV may say, a frame may say too."""
    expected = float(column.physical(value)) if hasattr(column, "physical") else float(value)
    np.testing.assert_array_equal(physical(make(strings), column), np.full(len(strings), expected))


@each_frame
@in_one_test("column", [case[0] for case in READ.values()], ids=READ)
def test_missing_strings(make, column):
    """An empty string, NA and their like are missing, as in a CSV; and only where the schema admits that."""
    values = [None, "", "NA", "null", "nan", "NaN"]
    assert np.isnan(physical(make(values), replace(column, nullable=True))).all()
    ledger = sp.Ledger(limit=1)
    with pytest.raises(InputError, match=r"column 'v' holds a missing or non-finite value; .*nullable=True"):
        sp.KDTreeSynthesizer(1).fit(make(values), sp.Schema({"v": column}), ledger=ledger)
    assert ledger.events == ()


@each_frame
def test_strings_of_a_category_are_values_as_they_are(make):
    """In memory a category of strings misses a value only where there is none: "NA" is Namibia."""
    column = sp.Category(["NA", "", "DE"], nullable=True)
    np.testing.assert_array_equal(physical(make(["NA", "", "DE", None]), column), [0, 1, 2, np.nan])
    with pytest.raises(InputError, match=r"not in the schema's list of values.*\.str\.strip\(\)"):
        physical(make(["DE "]), column)
    with pytest.raises(InputError, match="not in the schema's list"):
        physical(make(["NA"]), sp.Category(["DE"], nullable=True))


WRONG = {
    "day-first": (DAY, "31.12.2019", r"YYYY-MM-DD, or .*pd\.to_datetime\(\.\.\., format="),
    "no such day": (DAY, "2019-02-30", "YYYY-MM-DD"),
    "no such moment": (MOMENT, "2019-02-28T25:00:00", "YYYY-MM-DDTHH:MM:SS, or"),
    "an offset": (MOMENT, "2019-02-28T05:00:00+01:00", "YYYY-MM-DDTHH:MM:SS, or"),
    "no offset": (ZONED, "2019-02-28T05:00:00", r"YYYY-MM-DDTHH:MM:SS\+HH:MM, or"),
    "thousands": (sp.Real(0, 1), "2019,5", r"1234\.5, without thousands separators.*pd\.to_numeric"),
    "currency": (sp.Real(0, 1), "$2019", "without .* currency"),
    "percent": (sp.Real(0, 1), "2019%", "percent signs"),
    "underscores": (sp.Real(0, 1), "2_019", "without thousands"),
    "fraction": (sp.Integer(0, 9), "2019.5", "some string cannot be read as integer; write whole numbers"),
    "words": (sp.Integer(0, 9), "MMXIX 2019", "some string cannot be read as integer"),
    "yes": (sp.Boolean(), "yes 2019", r"true or false, or .*\.map\(\{'yes': True"),
    "two": (sp.Boolean(), "2019", "true or false"),
    "number": (sp.Category([1]), "2019x", "some string cannot be read as category"),
}


@each_frame
@in_one_test(("column", "string", "message"), WRONG.values(), ids=WRONG)
def test_strings_that_cannot_be_read(make, column, string, message):
    """The column and what to type; not the string, and not the error of the library that tried."""
    ledger = sp.Ledger(limit=10, delta="1e-5")
    for model in (sp.KDTreeSynthesizer(1), sp.ForestSynthesizer(1)):
        with pytest.raises(InputError, match=f"column 'v': .*{message}") as caught:
            model.fit(make([string]), sp.Schema({"v": column}), ledger=ledger)
        assert chain(caught.value) == [caught.value]
        assert "2019" not in str(caught.value)
    assert ledger.events == ()


def test_a_table_as_read_csv_leaves_it():
    """Dates are strings, a dirty column of numbers too; the same release as from the typed table, row for row."""
    text = "born,seen,pay,n,flag\n1990-01-31,2020-01-01 10:00:00,0.25,7,True\n1991-12-01,2020-06-01 11:30:00,,8,False\n"
    schema = {
        "born": sp.Date("1900-01-01", "2030-01-01"),
        "seen": sp.Datetime("2020-01-01", "2021-01-01"),
        "pay": sp.Real(0, 1, nullable=True),
        "n": sp.Integer(0, 9),
        "flag": sp.Boolean(),
    }
    plain = pd.read_csv(io.StringIO(text))
    typed = pd.read_csv(io.StringIO(text), parse_dates=["born", "seen"])
    strings = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    assert pd.api.types.is_string_dtype(plain["born"])
    assert typed["born"].dtype.kind == "M"
    rows = [
        sp.KDTreeSynthesizer(9).fit(frame, schema, entropy=sp.UnsafeSeededEntropy(3)).sample(20, seed=1)
        for frame in (typed, plain, strings)
    ]
    assert rows[0].equals(rows[1])
    assert rows[0].equals(rows[2])
