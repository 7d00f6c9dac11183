"""Ignored columns: never read whatever they hold, in no release, and refused where they would be needed."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import spinney as sp
from spinney.errors import ParameterError, SchemaError

SCHEMA = sp.Schema({"x": sp.Real(0, 1), "note": sp.Ignore(), "n": sp.Integer(0, 9)})


class Unreadable:
    """A value that must not be looked at."""

    def __getattribute__(self, name):
        raise AssertionError(f"an ignored value was read: {name}")


def frame(n_rows: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {"x": rng.random(n_rows), "note": [f"secret {i}" for i in range(n_rows)], "n": rng.integers(0, 10, n_rows)}
    )


@pytest.mark.parametrize("method", ["tree", "forest", "grid"])
def test_synthetic_rows_lack_it(method):
    """Every method takes a schema with an ignored column, and neither rows nor card have it."""
    rows = sp.synthesize(frame(), SCHEMA, epsilon=20, method=method)
    assert list(rows.columns) == ["x", "n"]


def test_values_are_never_looked_at():
    """Whatever the column holds, nothing asks it for anything."""
    table = frame(50).drop(columns="note")
    table["note"] = np.empty(50, dtype=object)
    for place in range(50):  # pandas itself would look at values that are given to it
        table["note"].array._ndarray[place] = Unreadable()
    assert type(table["note"].array._ndarray[7]) is Unreadable
    model = sp.ForestSynthesizer(1).fit(table, SCHEMA)
    assert list(model.release_.schema) == ["x", "n"]
    assert "note" not in model.release_.card.to_dict()["schema"]["columns"]


@pytest.mark.parametrize("kind", ["polars", "lazy", "pyarrow", "csv", "parquet", "duckdb", "numpy"])
def test_every_kind_of_table(kind, tmp_path):
    """Tables in memory, files and queries alike."""
    table = frame()
    if kind in ("polars", "lazy"):
        given = pl.from_pandas(table).lazy() if kind == "lazy" else pl.from_pandas(table)
    elif kind == "pyarrow":
        given = pa.Table.from_pandas(table)
    elif kind == "numpy":
        given = table.assign(note=np.nan).to_numpy(dtype=float)
    elif kind == "csv":
        table.to_csv(tmp_path / "t.csv", index=False)
        given = tmp_path / "t.csv"
    else:
        pq.write_table(pa.Table.from_pandas(table), tmp_path / "t.parquet")
        given = tmp_path / "t.parquet"
    model = sp.KDTreeSynthesizer(1).fit(given, SCHEMA, engine="duckdb" if kind == "duckdb" else None)
    assert list(model.release_.schema) == ["x", "n"]
    assert model.sample(5, frame="pyarrow").column_names == ["x", "n"]


def test_like_the_private_table():
    """Rows take the types of a table that has the ignored column too."""
    rows = sp.KDTreeSynthesizer(1).fit(frame(), SCHEMA).sample(5, like=frame().astype({"n": "int8"}))
    assert rows.dtypes.to_dict() == {"x": np.dtype("float64"), "n": np.dtype("int8")}


def test_toml_and_check():
    """The type is written and read, and `check` finds nothing the matter with the column."""
    assert sp.Schema.from_toml(SCHEMA.to_toml()) == SCHEMA
    assert SCHEMA.to_dict()["columns"]["note"] == {"type": "ignore"}
    found = sp.check(frame(), SCHEMA)
    assert found.is_clean
    assert found.method == "tree"
    assert "note" not in str(found)


def test_what_makes_no_sense():
    """Options, rules and targets on an ignored column, a schema of nothing else, a table without the column."""
    with pytest.raises(SchemaError, match="Ignore: nullable=True has no meaning"):
        sp.Ignore(nullable=True)
    with pytest.raises(SchemaError, match="Ignore: bits=3 has no meaning"):
        sp.Ignore(bits=3)
    with pytest.raises(SchemaError, match="'note' is of type ignore, which no rule can be about"):
        sp.Schema(dict(SCHEMA), rules=[sp.AtMost("n", "note")])
    with pytest.raises(SchemaError, match="all columns of the schema are ignored"):
        sp.ForestSynthesizer(1).fit(frame()[["note"]], {"note": sp.Ignore()})
    with pytest.raises(ParameterError, match="target='note' is not a column"):
        sp.ForestSynthesizer(1, target="note").fit(frame(), SCHEMA)
    with pytest.raises(SchemaError, match="'note' is in the schema but not in the table"):
        sp.ForestSynthesizer(1).fit(frame().drop(columns="note"), SCHEMA)
    with pytest.raises(SchemaError, match=r"describe it, leave it out with sp\.Ignore\(\)"):
        sp.ForestSynthesizer(1).fit(frame().assign(more=1), SCHEMA)


def test_a_release_that_claims_one_is_refused():
    """No release has an ignored column; a card that says so is forged."""
    card = sp.KDTreeSynthesizer(1).fit(frame(), SCHEMA).release_.card
    described = json.loads(card.to_json())
    described["schema"]["columns"]["note"] = {"type": "ignore"}
    with pytest.raises(ValueError, match="columns that are ignored"):
        type(card).from_dict(described)
