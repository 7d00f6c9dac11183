"""Kinds of tables: every entry of the registry leads somewhere, and what is no table is refused."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import InputError, ParameterError
from spinney.tables import engines
from spinney.tables.kinds import ENGINES, TABLE_KINDS, made_by, table_kind
from spinney.tables.open import open_source
from support.in_one_test import in_one_test

SCHEMA = sp.Schema({"x": sp.Real(0, 1)})
# Files of engines/ that no entry names: what several engines share.
SHARED = {"__init__", "queries", "query_source", "spark_tables", "stream"}


@pytest.mark.parametrize("kind", TABLE_KINDS, ids=lambda kind: kind.name)
def test_every_entry_answers(kind):
    """It has a name with an article, knows what is not its own, and opens tables for each of its engines."""
    assert kind.name.startswith(("a ", "an "))
    assert kind.recognises(object()) is False
    assert set(kind.openers) <= set(kind.engines) <= set(ENGINES)
    for engine in (None, *kind.engines):
        opener = kind.opened_by(engine)
        assert opener.__doc__
        parameters = list(inspect.signature(opener).parameters.values())
        assert [each.kind for each in parameters[:2]] == [inspect.Parameter.POSITIONAL_OR_KEYWORD] * 2
        assert parameters[1].name == "schema"
        assert parameters[-1].name == "batch_bytes"
        assert parameters[-1].kind is inspect.Parameter.KEYWORD_ONLY


def test_every_file_is_named_by_an_entry():
    """An engine that was written and not entered would never be asked."""
    named = {opener.partition(":")[0] for kind in TABLE_KINDS for opener in (kind.opener, *kind.openers.values())}
    files = {path.stem for path in Path(engines.__file__).parent.glob("*.py")}
    assert files - SHARED == named


@pytest.mark.parametrize(
    ("frame", "name"),
    [
        ("a.csv", "a path"),
        (Path("a.parquet"), "a path"),
        (["a.csv", Path("b.csv")], "a path"),
        ([], "a path"),
        (sp.CSV("a.csv"), "a CSV"),
        (pl.LazyFrame({"x": [1]}), "a polars LazyFrame"),
        (pl.DataFrame({"x": [1]}), "a table in memory"),
        (pd.DataFrame({"x": [1]}), "a table in memory"),
        (pa.table({"x": [1]}), "a table in memory"),
        (pa.table({"x": [1]}).to_reader(), "a RecordBatchReader"),
        (np.zeros((1, 1)), "a table in memory"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_tables_are_recognised(frame, name):
    assert table_kind(frame).name == name


@in_one_test("frame", [None, 5, {"x": [1]}, [1, 2], object(), pl.Series([1]), open_source])
@in_one_test("engine", [None, "polars"])
def test_what_is_no_table_is_refused(frame, engine):
    """The error names the class of the object, and all that may be passed."""
    with pytest.raises(
        (InputError, ParameterError), match=r"is not a table; pass a pandas, polars or pyarrow table|work with"
    ):
        open_source(frame, SCHEMA, engine=engine)


def test_engines_are_those_of_all_kinds():
    assert ENGINES == ("polars", "duckdb", "spark", "memory")
    with pytest.raises(ParameterError, match=r"engine='polar' is not one of .*; did you mean 'polars'"):
        open_source(np.zeros((1, 1)), SCHEMA, engine="polar")
    with pytest.raises(
        ParameterError, match="engine='spark' does not work with a table in memory; leave it out, or use"
    ):
        open_source(np.zeros((1, 1)), SCHEMA, engine="spark")


def test_classes_are_recognised_by_name_and_ancestry():
    """A class that inherits from a library's is its own; one of the same name from elsewhere is not."""

    class LazyFrame:
        pass

    recognises = made_by("polars.LazyFrame")
    assert recognises(pl.LazyFrame())
    assert recognises(type("Mine", (pl.LazyFrame,), {})())
    assert not recognises(LazyFrame())
    assert not recognises(pl.DataFrame())


def test_opening_an_array_stays_light():
    """No engine's file is imported that is not asked, and none of their libraries."""
    code = (
        "import sys, json, numpy as np, spinney as sp\n"
        "from spinney.tables.open import open_source\n"
        "open_source(np.zeros((3, 1)), sp.Schema({'x': sp.Real(0, 1)}))\n"
        "print(json.dumps(list(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    heavy = {"polars", "duckdb", "pandas", "pyspark", "ibis", "dask", "pyarrow.parquet", "pyarrow.dataset"}
    assert not loaded & heavy
    assert not loaded & {f"spinney.tables.engines.{name}" for name in ("files", "spark", "lazy", "queries")}
