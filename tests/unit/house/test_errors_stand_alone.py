"""Errors about a private table stand alone: no message, cause, context, note or warning quotes a value of it."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import replace
from datetime import date, time, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import spinney as sp
from spinney import metrics
from spinney.errors import InputError, SchemaError, SpinneyError, raise_alone, redacted
from spinney.tables.frames import kind_of
from spinney_paper import kernels
from spinney_paper.baselines import BalogAlgorithm1
from support.error_chains import chain, told
from support.in_one_test import in_one_test

MARK = "MARKER7351"

COLUMNS = {
    "real": sp.Real(0, 1),
    "integer": sp.Integer(0, 9),
    "boolean": sp.Boolean(),
    "text": sp.Category(["a"]),
    "number": sp.Category([1, 2]),
    "day": sp.Date("2020-01-01", "2021-01-01"),
    "moment": sp.Datetime("2020-01-01", "2021-01-01"),
    "zoned": sp.Datetime("2020-01-01", "2021-01-01", timezone="UTC"),
}


class Hostile:
    """An object that tells its value whenever it is asked for anything."""

    def __float__(self):
        raise RuntimeError(MARK)

    def __repr__(self):
        return MARK


class HostileNumber(float):
    def __float__(self):
        raise KeyError(MARK)

    def __ne__(self, other):
        raise ZeroDivisionError(MARK)

    __eq__ = __lt__ = __gt__ = __ne__
    __hash__ = float.__hash__

    def __repr__(self):
        return MARK


class HostileString(str):
    def __str__(self):
        raise AttributeError(MARK)

    def __repr__(self):
        return MARK


class HostileDay(date):
    def toordinal(self):
        raise OSError(MARK)

    def __repr__(self):
        return MARK


def objects(*values):
    return pd.DataFrame({"it": pd.Series(list(values), dtype=object)})


def one(values, kind=None):
    return pa.table({"it": pa.array(values, kind)})


TABLES = {
    "hostile": objects(Hostile()),
    "hostile number": objects(HostileNumber(0.5)),
    "hostile string": objects(HostileString(MARK)),
    "hostile day": objects(HostileDay(2020, 1, 1)),
    "bytes": objects(MARK.encode()),
    "mixed": objects(MARK, 1, None),
    "arrays": objects(np.array([7351, 1])),
    "records": objects({MARK: 7351}),
    "day-first": objects("31.12.7351"),
    "strings": pd.DataFrame({"it": [MARK]}),
    "categories": pd.DataFrame({"it": pd.Categorical([MARK])}),
    "ordered categories": pd.DataFrame({"it": pd.Categorical([MARK], categories=[MARK, "a"], ordered=True)}),
    "categories of numbers": pd.DataFrame({"it": pd.Categorical([7351.5, 2.5])}),
    "categories of objects": pd.DataFrame({"it": pd.Categorical(pd.Series([7351, MARK], dtype=object))}),
    "intervals": pd.DataFrame({"it": pd.interval_range(7351, 7353)}),
    "periods": pd.DataFrame({"it": pd.period_range("7351-01", periods=2, freq="D")}),
    "sparse": pd.DataFrame({"it": pd.arrays.SparseArray([0.0, 7351.0])}),
    "complex": pd.DataFrame({"it": [7351j]}),
    "durations": pd.DataFrame({"it": pd.to_timedelta([7351], unit="s")}),
    "pandas struct": pd.DataFrame({"it": pd.Series([{MARK: 1}], dtype=pd.ArrowDtype(pa.struct([(MARK, pa.int64())])))}),
    "polars enum": pl.DataFrame({"it": pl.Series([MARK], dtype=pl.Enum([MARK, "a"]))}),
    "polars categories": pl.DataFrame({"it": pl.Series([MARK], dtype=pl.Categorical)}),
    "polars struct": pl.DataFrame({"it": [{MARK: 1}]}),
    "polars list": pl.DataFrame({"it": pl.Series([["a"]], dtype=pl.List(pl.Enum(["a", MARK])))}),
    "polars objects": pl.DataFrame({"it": pl.Series([Hostile()], dtype=pl.Object)}),
    "polars durations": pl.DataFrame({"it": [timedelta(seconds=7351)]}),
    "polars times": pl.DataFrame({"it": [time(7, 35, 1)]}),
    "polars bytes": pl.DataFrame({"it": [MARK.encode()]}),
    "polars strings": pl.DataFrame({"it": [MARK]}),
    "polars wide integers": pl.DataFrame({"it": pl.Series([7351], dtype=pl.Int128)}),
    "dictionary": pa.table({"it": pa.array([MARK]).dictionary_encode()}),
    "large strings": one([MARK], pa.large_string()),
    "string views": one([MARK], pa.string_view()),
    "struct": one([{MARK: 1}]),
    "map": one([[(MARK, 1)]], pa.map_(pa.string(), pa.int64())),
    "union": pa.table({"it": pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([MARK])])}),
    "decimals": one([Decimal("7351.7351"), None]),
    "large integers": one([7351735173517351735, None]),
    "structured array": np.array([(1,)], dtype=[(MARK, "f8")]),
    "array of strings": np.array([[MARK]]),
    "names of several levels": pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("it", MARK)])),
    "numbers for names": pd.DataFrame([[1]], columns=[7351]),
    "moments for names": pd.DataFrame([[1]], columns=[pd.Timestamp("2020-07-03 07:35:17.7351")]),
    "a row for names": pd.DataFrame([[1, 2]], columns=[MARK, "a"]),
    "one name twice": pd.DataFrame([[7351, 1]], columns=["it", "it"]),
}
# What can be read as something that is within the reach of a column.
READABLE = {"categories of numbers", "decimals", "large integers", "sparse", "polars wide integers"}


def raised_by(model, frame, schema):
    """Our error, or None where the table is read; any other error is raised."""
    try:
        model.fit(frame, schema)
    except SpinneyError as err:
        return err
    return None


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("kind", [sp.KDTreeSynthesizer, sp.ForestSynthesizer])
def test_no_error_carries_a_value(name, kind):
    """Every odd table under every type of column: our error, alone, without a value; and no warning with one."""
    n_refused = 0
    for column in COLUMNS.values():
        for nullable in (False, True):
            schema = sp.Schema({"it": replace(column, nullable=nullable)})
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                problem = raised_by(kind(), TABLES[name], schema)
            assert not any("7351" in str(warning.message) for warning in warned)
            if problem is not None:
                n_refused += 1
                assert chain(problem) == [problem]
                assert "7351" not in told(problem)
    assert n_refused >= (8 if name in READABLE else 14)


def lazy_tables(table, folder):
    """The same rows in a file and in other engines."""
    path = folder / "t.parquet"
    pq.write_table(table, path)
    return {
        "parquet": path,
        "scan": pl.scan_parquet(path),
        "lazy": pl.LazyFrame(pl.from_arrow(table)),
        "duckdb": duckdb.from_arrow(table),
    }


@pytest.mark.parametrize(
    ("values", "column"),
    [
        ([MARK, "a"], sp.Category(["a"])),
        ([MARK, "1"], sp.Integer(0, 9)),
        (["2020-01-01", f"2020-{MARK}"], COLUMNS["day"]),
        ([0.5, 7351.5], sp.Integer(0, 9)),
        ([{MARK: 1}], sp.Real(0, 1)),
    ],
)
def test_no_error_of_another_engine_carries_a_value(tmp_path, values, column):
    """Files and lazy tables are refused in the same words, alone."""
    for name, frame in lazy_tables(pa.table({"it": values}), tmp_path).items():
        for engine in (None, "polars", "duckdb") if name == "parquet" else (None,):
            with pytest.raises(SpinneyError, match="column 'it'") as caught:
                sp.ForestSynthesizer().fit(frame, sp.Schema({"it": column}), engine=engine)
            assert chain(caught.value) == [caught.value]
            assert "7351" not in told(caught.value)


def test_queries_that_fail_quote_nothing():
    """What DuckDB and polars say about the row that they stumbled over stays out, and is in no chain."""
    schema = sp.Schema({"it": sp.Real(0, 1)})
    failing = {
        "duckdb": duckdb.sql(f"SELECT CAST(if(i > 0, '{MARK}', '0') AS DOUBLE) AS it FROM range(9) t(i)"),
        "polars": pl.LazyFrame({"it": [MARK]}).select(pl.col("it").cast(pl.Float64, strict=True)),
    }
    for frame in failing.values():
        with pytest.raises(InputError, match="could not be computed") as caught:
            sp.KDTreeSynthesizer().fit(frame, schema)
        assert chain(caught.value) == [caught.value]
        assert "7351" not in told(caught.value)


def test_damaged_files_quote_nothing(tmp_path):
    """A file that is cut in the middle is named, and nothing that is in it."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"it": [MARK] * 999}), path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(SpinneyError, match="is damaged") as caught:
        sp.ForestSynthesizer().fit(path, sp.Schema({"it": sp.Category(["a"])}))
    assert chain(caught.value) == [caught.value]


@pytest.mark.parametrize(
    ("values", "column"),
    [
        ([2**61 + 7351, 0], sp.Integer(bounds="from-data-not-private")),
        (np.array([7351, 10**18], "M8[s]"), sp.Datetime(bounds="from-data-not-private")),
    ],
)
def test_bounds_that_no_column_has_are_not_quoted(values, column):
    """Extremes that were read off the data are data, also where they are too large to be bounds."""
    with pytest.raises(InputError, match="column 'it' goes beyond") as caught:
        sp.GridSynthesizer(bins=4).fit(pd.DataFrame({"it": values}), sp.Schema({"it": column}))
    assert chain(caught.value) == [caught.value]
    assert "7351" not in told(caught.value)
    assert str(2**61 + 7351)[:8] not in told(caught.value)


@pytest.mark.parametrize(
    "points", [[[MARK]], objects(Hostile()), objects(HostileNumber(1)), pl.DataFrame({"x": [MARK]})]
)
def test_metrics_quote_no_real_value(points):
    """Metrics read the real table; their errors do not show it either."""
    with pytest.raises(InputError, match="real does not hold numbers alone") as caught:
        kernels.mmd(points, [[0.5]], bandwidth=1)
    assert chain(caught.value) == [caught.value]
    assert "7351" not in told(caught.value)
    schema = sp.Schema({"it": sp.Real(0, 1)})
    for compare in (metrics.total_variation, metrics.wasserstein):
        with pytest.raises(SpinneyError) as caught:
            compare(objects(MARK), objects(0.5), schema)
        assert chain(caught.value) == [caught.value]
        assert "7351" not in told(caught.value)


def test_rivals_quote_no_value():
    """The rival systems read tables by the same code."""
    with pytest.raises(InputError, match="column 'it'") as caught:
        BalogAlgorithm1(delta="1e-6").fit(objects(HostileNumber(1)), sp.Schema({"it": sp.Real(0, 1)}))
    assert chain(caught.value) == [caught.value]
    assert "7351" not in told(caught.value)


def test_two_tables_of_metrics_with_odd_names():
    """Names of several kinds cannot be sorted; that is no reason to fail in another way."""
    frame = pd.DataFrame([[0.5, 0.5]], columns=["x", 3])
    with pytest.raises(InputError, match="select the same columns of both"):
        kernels.mmd(frame, frame.rename(columns={3: "y"}), bandwidth=1)
    with pytest.raises(InputError, match="two columns of the same name"):
        kernels.mmd(pd.DataFrame([[1, 2]], columns=["x", "x"]), frame, bandwidth=1)


def test_the_name_of_a_type_has_no_parameters():
    """Zones, fields and categories are left out; what matters of a zone is whether there is one."""
    import narwhals as nw

    assert kind_of(nw.Enum([MARK])) == "Enum"
    assert kind_of(nw.Struct({MARK: nw.Int64})) == "Struct"
    assert kind_of(nw.List(nw.Enum([MARK]))) == "List"
    assert kind_of(nw.Datetime("us", MARK)) == "Datetime with a time zone"
    assert kind_of(nw.Datetime("us")) == "Datetime without a time zone"
    assert kind_of(nw.Int64()) == kind_of(nw.Int64) == "Int64"


# ------------------------------------------------------------------------------------------------------- redacted


def test_redacted_replaces_others_and_lets_ours_pass():
    """Ours, a lack of memory and an interruption pass; `at` goes before ours about the table; None lets theirs pass."""

    def under(err, *, at=None, told=lambda err: InputError(f"{type(err).__name__} happened")):
        try:
            raise RuntimeError(MARK)  # what is being handled is not to be found behind the error either
        except RuntimeError:
            with redacted(told, at=at):
                raise err from RuntimeError(MARK)

    for theirs in (ValueError(MARK), KeyError(MARK), type("PanicException", (BaseException,), {})(MARK)):
        with pytest.raises(InputError, match=f"{type(theirs).__name__} happened") as caught:
            under(theirs)
        assert chain(caught.value) == [caught.value]
    with pytest.raises(SchemaError, match=r"^column 'x': wrong$") as caught:
        under(SchemaError("wrong"), at="column 'x'")
    assert chain(caught.value) == [caught.value]
    for passing in (InputError("wrong"), MemoryError(), KeyboardInterrupt(), GeneratorExit()):
        with pytest.raises(type(passing)) as passed:
            under(passing)
        assert passed.value is passing
    with pytest.raises(KeyboardInterrupt) as interrupted:
        under(type("InterruptException", (Exception,), {})(MARK))
    assert chain(interrupted.value) == [interrupted.value]
    with pytest.raises(ValueError, match="fine"):
        under(ValueError("fine"), told=lambda _: None)


def test_an_error_that_stands_alone_has_no_context():
    """Also inside a handler inside a handler."""

    def fail():
        try:
            raise KeyError(MARK)
        except KeyError:
            try:
                raise ValueError(MARK)
            except ValueError:
                raise_alone(InputError("wrong"))

    with pytest.raises(InputError) as caught:
        fail()
    assert chain(caught.value) == [caught.value]


# --------------------------------------------------------------------------------------------------------- sources

SOURCES = Path(sp.__file__).parent
# What reads private values.
READERS = [
    *sorted((SOURCES / "tables").rglob("*.py")),
    *sorted((SOURCES / "columns").glob("*.py")),
    *sorted((SOURCES / "counting").glob("*.py")),
    SOURCES / "errors.py",
    SOURCES / "cli" / "tables.py",
    SOURCES / "metrics" / "reading.py",
    SOURCES / "metrics" / "distances.py",
    SOURCES.parent / "spinney_paper" / "baselines" / "base.py",
    SOURCES.parent / "spinney_paper" / "kernels" / "sums.py",
    SOURCES / "synthesizers" / "paying.py",
]
# What the system says about a file or a module quotes no table.
HARMLESS = {"OSError", "ImportError", "FileNotFoundError"}
# These functions see options and noisy counts only.
SEE_NO_TABLE = {"_check_encoding", "after_counting"}


def raises_in_handlers(source):
    """Lines that raise a new error while another one is handled, which stays behind it."""
    tree = ast.parse(source)
    for function in list(ast.walk(tree)):
        if isinstance(function, ast.FunctionDef) and function.name in SEE_NO_TABLE:
            function.body = []
    for handler in ast.walk(tree):
        if isinstance(handler, ast.ExceptHandler) and ast.unparse(handler.type or ast.Name("")) not in HARMLESS:
            for node in ast.walk(handler):
                if isinstance(node, ast.Raise) and node.exc is not None:
                    yield node.lineno


@in_one_test("path", READERS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_readers_raise_nothing_inside_a_handler(path):
    """`raise` alone passes an error on; a new one goes through `raise_alone` or `redacted`."""
    source = path.read_text(encoding="utf-8")
    if path.name == "errors.py":
        assert source.count(" from None\n") == 2  # of `raise_alone`, and of an interruption
        return
    assert list(raises_in_handlers(source)) == []
    assert len(re.findall("from None", source)) == (path.name == "csv.py")  # of what is no encoding


def test_the_search_of_sources_finds_what_is_there():
    """A new error in a handler is found, with and without `from`; those of files and a plain raise are not."""
    found = "try:\n    x\nexcept ValueError as e:\n    raise A(e) from None\nexcept KeyError:\n    raise B\n"
    fine = "try:\n    x\nexcept OSError as e:\n    raise A from e\nexcept KeyError:\n    raise\n"
    assert list(raises_in_handlers(found)) == [4, 6]
    assert list(raises_in_handlers(fine)) == []
    assert len(READERS) > 35
