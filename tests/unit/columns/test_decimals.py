"""`decimals`: another way to state a step, kept as it was stated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import spinney as sp
from spinney.cli.tables import write_table
from spinney.errors import SchemaError


@pytest.mark.parametrize(
    ("column", "step"),
    [
        (sp.Real(0, 10, decimals=2), 0.01),
        (sp.Real(0, 1e6, decimals=-3), 1000),
        (sp.Integer(0, 10_000, decimals=-2), 100),
        (sp.Integer(0, 10_000, decimals=0), 1),
        (sp.Date("2020-01-01", "2020-12-31", decimals=0), 1),
        (sp.Datetime("2020-01-01", "2020-12-31", decimals=3), 0.001),
        (sp.Time(decimals=0), 1),
    ],
    ids=repr,
)
def test_the_step_that_decimals_mean(column, step):
    """The step is that of `multiple_of`; files, `replace` and the repr keep what was stated."""
    assert column.multiple_of == step
    assert sp.Schema.from_toml(sp.Schema({"x": column}).to_toml()) == sp.Schema({"x": column})
    assert "multiple_of" not in column.to_dict()
    assert f"decimals={column.decimals}" in repr(column)
    assert "multiple_of" not in repr(column)
    assert replace(column, nullable=True).multiple_of == step
    assert column.spacing == replace(column, decimals=None, multiple_of=step).spacing


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sp.Real(0, 1, decimals=2.0), r"decimals=2.0 is not a whole number in -9..15"),
        (lambda: sp.Real(0, 1, decimals=True), "decimals=True is not a whole number"),
        (lambda: sp.Real(0, 1, decimals=16), "decimals=16 is not a whole number"),
        (lambda: sp.Integer(0, 9, decimals=1), r"decimals=1 is not a whole number in -9..0"),
        (lambda: sp.Date("2020-01-01", "2020-12-31", decimals=2), "decimals=2 is not 0: its values have no others"),
        (lambda: sp.Time(decimals=7), r"decimals=7 is not a whole number in 0..6"),
        (lambda: sp.Real(0, 1, decimals=2, multiple_of=0.25), "decimals=2 and multiple_of=0.25 are different steps"),
        (lambda: sp.Real(5, 6, decimals=-1), "no multiple of multiple_of=10.0 lies between"),
    ],
)
def test_decimals_that_cannot_be(make, message):
    """What is wrong is named, with what is possible."""
    with pytest.raises(SchemaError, match=message):
        make()


@pytest.mark.parametrize("method", ["tree", "forest", "grid"])
def test_rows_have_as_many_decimals(method):
    """Cents come back as whole cents, and seconds as whole seconds."""
    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        {
            "price": rng.gamma(2, 10, 400),
            "at": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 10**12, 400), unit="us"),
        }
    )
    schema = {"price": sp.Real(0, 1000, decimals=2), "at": sp.Datetime("2019-01-01", "2022-01-01", decimals=0)}
    rows = sp.synthesize(table, schema, epsilon=1, method=method)
    assert (rows["price"] == rows["price"].round(2)).all()
    assert (rows["at"] == rows["at"].dt.floor("s")).all()


def test_csv_without_empty_digits(tmp_path):
    """Whole seconds and milliseconds are written as such; finer times keep all their digits."""
    table = pa.table(
        {
            "second": pa.array([0, None, 5_000_000], pa.timestamp("us")),
            "zoned": pa.array([0, None, 5_000_000], pa.timestamp("us", "UTC")),
            "milli": pa.array([1_000, 2_000, None], pa.time64("us")),
            "micro": pa.array([1, 2, 3], pa.time64("us")),
        }
    )
    write_table(table, str(tmp_path / "t.csv"), overwrite=False)
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert lines[1] == "1970-01-01 00:00:00,1970-01-01 00:00:00Z,00:00:00.001,00:00:00.000001"
    assert lines[3] == "1970-01-01 00:00:05,1970-01-01 00:00:05Z,,00:00:00.000003"
