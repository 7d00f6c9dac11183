"""What a schema may be given as: a Schema, the path of its file, or a dictionary of columns."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import spinney as sp
from spinney import metrics
from spinney.errors import SchemaError
from spinney.schema import schema as table
from spinney.schema.schema import as_schema
from spinney.synthesizers.method import choose
from spinney.tables.frames import open_table
from spinney.tables.open import open_source
from spinney_paper.baselines import BalogAlgorithm1
from support.in_one_test import in_one_test

COLUMNS = {"x": sp.Real(0, 1), "is_red": sp.Boolean()}
SCHEMA = sp.Schema(COLUMNS)
TABLE = pd.DataFrame({"x": np.linspace(0, 1, 60), "is_red": [True, False] * 30})


@pytest.fixture(params=["schema", "text", "path", "columns", "plain data"])
def given(request, tmp_path):
    """The same schema in every form."""
    path = tmp_path / "schema.toml"
    SCHEMA.to_file(path)
    return {
        "schema": SCHEMA,
        "text": str(path),
        "path": path,
        "columns": COLUMNS,
        "plain data": SCHEMA.to_dict(),
    }[request.param]


def test_every_form_is_the_same_schema(given):
    assert as_schema(given) == SCHEMA
    assert open_table(TABLE, given).schema == SCHEMA
    assert open_source(TABLE, given).schema == SCHEMA


@in_one_test("kind", [sp.KDTreeSynthesizer, sp.GridSynthesizer, sp.ForestSynthesizer])
def test_synthesizers_take_every_form(given, kind):
    model = kind(1).fit(TABLE, given, entropy=sp.UnsafeSeededEntropy(1))
    assert model.schema_ == SCHEMA
    assert model.sample(5, seed=1).equals(
        kind(1).fit(TABLE, SCHEMA, entropy=sp.UnsafeSeededEntropy(1)).sample(5, seed=1)
    )


def test_everything_else_takes_every_form(given):
    """One call, the choice of a method, rival systems and metrics."""
    assert len(sp.synthesize(TABLE, given, n_rows=5)) == 5
    assert choose(given, {}).method == "tree"
    assert metrics.total_variation(TABLE, TABLE, given) == pytest.approx({("x",): 0, ("is_red",): 0})
    assert metrics.wasserstein(TABLE, TABLE, given) == pytest.approx({"x": 0, "is_red": 0})
    auc = metrics.train_on_synthetic(TABLE, TABLE, given, target="is_red", classifiers=["Gaussian Naive Bayes"])
    assert 0 <= auc["Gaussian Naive Bayes"] <= 1


def test_rivals_take_every_form(tmp_path):
    sp.Schema({"x": sp.Real(0, 1)}).to_file(tmp_path / "one.toml")
    for given in (tmp_path / "one.toml", {"x": sp.Real(0, 1)}):
        model = BalogAlgorithm1(1, delta="1e-6", n_points=20).fit(TABLE[["x"]], given)
        assert list(model.schema_) == ["x"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Path("nowhere.toml"), "cannot read the schema 'nowhere.toml': No such file"),
        ("[columns.x]\ntype = 'real'\n", r"several lines, not a path; read it with sp\.Schema\.from_toml"),
        ({"x": "real"}, "column 'x': 'real' is not a column type"),
        ({"x": sp.Real}, "column 'x': .* is not a column type such as"),
        ({}, "no columns"),
        ({3: sp.Real(0, 1)}, "column name 3"),
        (sp.Schema, "schema is a .*, not a Schema; make one"),
        (None, "schema is a NoneType, not a Schema"),
        ([("x", sp.Real(0, 1))], "schema is a list, not a Schema"),
    ],
)
def test_what_is_no_schema(wrong, message):
    """Refused before the table is looked at, with what to pass."""
    ledger = sp.Ledger(limit=1)
    with pytest.raises(SchemaError, match=message):
        sp.KDTreeSynthesizer(1).fit(None, wrong, ledger=ledger)
    assert ledger.events == ()


def test_a_column_may_be_called_columns():
    """A dictionary of columns is told from plain data by what it holds."""
    assert list(as_schema({"columns": sp.Boolean()})) == ["columns"]


def test_the_file_is_read_once(tmp_path, monkeypatch):
    """A file that changes during a call cannot be two schemas."""
    SCHEMA.to_file(tmp_path / "schema.toml")
    n_read = []
    real = table.read_schema_text
    monkeypatch.setattr(table, "read_schema_text", lambda path: n_read.append(path) or real(path))
    sp.synthesize(TABLE, os.fspath(tmp_path / "schema.toml"), n_rows=3)
    assert len(n_read) == 1
