"""`spinney sample --where` and `--balance`: a little grammar, read by the schema; what makes no sense is refused."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

import spinney as sp
from spinney.errors import ParameterError
from spinney.release.answers.grammar import parse_balance, parse_where
from support.command_line import spinney
from support.in_one_test import in_one_test

STATES = ["CA", "NV", "a,b", "null", "x=y", "30..40"]
SCHEMA = sp.Schema(
    {
        "age": sp.Integer(0, 99),
        "pay": sp.Real(-5, 5, nullable=True),
        "state": sp.Category(STATES, nullable=True),
        "grade": sp.Category([1, 2, 3]),
        "member": sp.Boolean(),
        "end": sp.Date("2020-01-01", "2020-12-31", nullable=True),
        "seen": sp.Datetime("2020-01-01", "2020-12-31"),
        "a=b": sp.Integer(0, 9),
        "a": sp.Category(["b=1", "c"]),
        "number": sp.Identifier(),
    }
)


def table(n_rows: int = 2000) -> pa.Table:
    """Rows without ties between columns, nulls in a fifth of `end`, and one member in ten."""
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "age": rng.integers(0, 100, n_rows),
            "pay": rng.normal(0, 1, n_rows).clip(-5, 5),
            "state": rng.choice(STATES, n_rows),
            "grade": rng.integers(1, 4, n_rows),
            "member": rng.random(n_rows) < 0.1,
            "end": pa.array(rng.integers(18262, 18628, n_rows).astype(np.int32), mask=rng.random(n_rows) < 0.2).cast(
                pa.date32()
            ),
            "seen": pa.array(rng.integers(18262, 18628, n_rows) * 86_400_000_000).cast(pa.timestamp("us")),
            "a=b": rng.integers(0, 10, n_rows),
            "a": rng.choice(["b=1", "c"], n_rows),
            "number": np.arange(n_rows),
        }
    )


@pytest.fixture(scope="module")
def forest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("forest") / "forest.spinney"
    sp.ForestSynthesizer("3").fit(table(), SCHEMA, entropy=sp.UnsafeSeededEntropy(1)).save(path)
    return path


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tree") / "tree.spinney"
    sp.KDTreeSynthesizer("1").fit(np.random.default_rng(0).random((300, 1)), sp.Schema({"age": sp.Real(0, 1)})).save(
        path
    )
    return path


# ------------------------------------------------------------------------------------------------- bad input


@in_one_test(
    ("option", "text", "phrase"),
    [
        ("--where", "age", "has no equals sign"),
        ("--where", "", "has no equals sign"),
        ("--where", "=3", "'' is not a column"),
        ("--where", "ages=3", "'ages' is not a column of the release"),
        ("--where", "number=3", "identifier"),
        ("--where", "age=", "the condition on column 'age' is empty"),
        ("--where", "state= ", "the condition on column 'state' is empty"),
        ("--where", "age=old", "column 'age' takes numbers, and 'old' is not a number"),
        ("--where", "age=nan", "takes numbers"),
        ("--where", "age=30..inf", "takes numbers"),
        ("--where", "age=30-40", "takes numbers"),
        ("--where", "age=40..30", "40 is above 30"),
        ("--where", "age=200", "within its bounds"),
        ("--where", "age=3.5", "whole numbers, and 3.5 is not a whole number"),
        ("--where", "age=3,3.5", "whole numbers, and 3.5 is not a whole number"),
        ("--where", "age=null", "never null"),
        ("--where", "pay=1,2", "is real"),
        ("--where", "state=TX", "'TX' is not a value of column 'state'"),
        ("--where", "state=CA,TX", "'TX' is not a value of column 'state'"),
        ("--where", "state=CA,a\nb", "separated by commas"),
        ("--where", "grade=4", "'4' is not a value of column 'grade'"),
        ("--where", "member=yes", "true or false"),
        ("--where", "member=null", "never null"),
        ("--where", "end=31.1.2020", "a day like 2020-01-31"),
        ("--where", "end=2020-06-01..June", "a day like 2020-01-31"),
        ("--where", "seen=noon", "a date and time like"),
        ("--where", f"age={10**400}", "is never 1000"),
        ("--where", "age=1e400", "takes numbers"),
        ("--balance", "member", "has no equals sign"),
        ("--balance", "members=0.5", "'members' is not a column"),
        ("--balance", "member=half", "is not a number"),
        ("--balance", "member=", "is not a number"),
        ("--balance", "member=2", "balance: 2 is not a share between 0 and 1"),
        ("--balance", "member=1.5", "balance: 1.5 is not a share between 0 and 1"),
        ("--balance", "member=-0.5", "balance: -0.5 is not a share between 0 and 1"),
        ("--balance", "member=true:0.5,false:0.1", "add up to 0.6"),
        ("--balance", "member=yes:0.5,no:0.5", "true or false"),
        ("--balance", "member=true:0.5,false", "VALUE:SHARE"),
        ("--balance", "member=true:0.5,TRUE:0.5", "two shares"),
        ("--balance", "grade=0.5", "a share for each value"),
        ("--balance", "grade=1:0.5,9:0.5", "'9' is not a value"),
        ("--balance", "age=0.5", "balance categories or booleans"),
    ],
)
def test_what_makes_no_sense_is_a_wrong_call(forest: Path, tmp_path: Path, option: str, text: str, phrase: str) -> None:
    out = tmp_path / "a.csv"
    run = spinney("sample", forest, "--rows", 5, "--out", out, option, text)
    assert run.status == 2
    assert phrase in run.err
    assert not out.exists()


def test_a_column_is_named_once(forest: Path) -> None:
    run = spinney("sample", forest, "--out", "-", "--where", "age=3", "--where", "age=4")
    assert run.status == 2
    assert "column 'age' twice" in run.err
    run = spinney("sample", forest, "--out", "-", "--where", "member=true", "--balance", "member=0.5")
    assert run.status == 2
    assert "in where and in balance" in run.err


def test_more_rows_than_can_be_drawn(forest: Path, tree: Path) -> None:
    for release in (forest, tree):
        run = spinney("sample", release, "--rows", 10**22, "--out", "-")
        assert run.status == 2
        assert "ask for fewer rows" in run.err


@pytest.mark.parametrize(("option", "text"), [("--where", "age=0.5"), ("--balance", "age=0.5")])
def test_conditions_are_for_forests(tree: Path, tmp_path: Path, option: str, text: str) -> None:
    run = spinney("sample", tree, "--rows", 5, "--out", tmp_path / "a.csv", option, text)
    assert run.status == 2
    assert f"{option} is for forests" in run.err
    assert "--method forest" in run.err
    assert not (tmp_path / "a.csv").exists()


def test_placement_is_not_for_forests(forest: Path) -> None:
    run = spinney("sample", forest, "--rows", 5, "--out", "-", "--placement", "centre")
    assert run.status == 2
    assert "--placement is for trees and grids" in run.err


# ---------------------------------------------------------------------------------------------- the grammar


@in_one_test(
    ("text", "name", "wanted"),
    [
        ("age=30", "age", 30),
        ("age= 30 ", "age", 30),
        ("age=30..40", "age", (30, 40)),
        ("age=30 .. 40", "age", (30, 40)),
        ("age=30..", "age", (30, None)),
        ("age=..40", "age", (None, 40)),
        ("age=..", "age", (0, 99)),
        ("age=30,31,50", "age", [30, 31, 50]),
        ("huge=1000000000000000050", "huge", 10**18 + 50),
        ("huge=1e18..1000000000000000050", "huge", (10**18, 10**18 + 50)),
        ("pay=-1.5..2e0", "pay", (-1.5, 2)),
        ("pay=.5...75", "pay", (0.5, 0.75)),
        ("pay=null", "pay", None),
        ("state=CA", "state", "CA"),
        ("state=CA,NV", "state", ["CA", "NV"]),
        ("state=CA, NV", "state", ["CA", "NV"]),
        ("state=a,b", "state", "a,b"),
        ('state="a,b",CA', "state", ["a,b", "CA"]),
        ("state=null", "state", "null"),
        ("state=x=y", "state", "x=y"),
        ("state=30..40", "state", "30..40"),
        ("grade=2", "grade", 2),
        ("grade=1,3", "grade", [1, 3]),
        ("member=true", "member", True),
        ("member=False", "member", False),
        ("end=null", "end", None),
        ("end=2020-01-31", "end", "2020-01-31"),
        ("end=2020-01-31..2020-02-10", "end", ("2020-01-31", "2020-02-10")),
        ("end=2020-06-01..", "end", ("2020-06-01", None)),
        ("end=2020-01-31,2020-02-10", "end", ["2020-01-31", "2020-02-10"]),
        ("seen=2020-01-31T12:00:00.5..2020-02-01", "seen", ("2020-01-31T12:00:00.5", "2020-02-01")),
        ("a=b=1", "a=b", 1),
        ("a=c", "a", "c"),
    ],
)
def test_the_schema_says_how_a_text_is_meant(text: str, name: str, wanted: Any) -> None:
    parsed = parse_where([text], sp.Schema({**SCHEMA, "huge": sp.Integer(0, 2**60)}))
    assert parsed == {name: wanted}
    assert type(parsed[name]) is type(wanted)


@pytest.mark.parametrize(
    ("text", "name", "shares"),
    [
        ("member=0.5", "member", Fraction(1, 2)),
        ("member=1/3", "member", Fraction(1, 3)),
        ("member=true:0.2,false:0.8", "member", {True: Fraction(1, 5), False: Fraction(4, 5)}),
        ("grade=1:0.5, 3:0.5", "grade", {1: Fraction(1, 2), 3: Fraction(1, 2)}),
        ('state="a,b:0.5",x=y:0.5', "state", {"a,b": Fraction(1, 2), "x=y": Fraction(1, 2)}),
    ],
)
def test_shares_are_read_exactly(text: str, name: str, shares: Any) -> None:
    assert parse_balance([text], SCHEMA) == {name: shares}


def test_a_day_that_is_none_is_refused_where_it_stands() -> None:
    with pytest.raises(ParameterError, match=r"a day like 2020-01-31\n  end=June\n      \^\^\^\^$"):
        parse_where(["end=June"], SCHEMA)
    with pytest.raises(ParameterError, match="takes numbers"):
        parse_where(["a=b=c"], SCHEMA)


def test_several_conditions_may_stand_in_one_option() -> None:
    """The grammar is that of questions."""
    assert parse_where(["age in 30..40 and state in (CA, NV)", "pay > 1"], SCHEMA) == {
        "age": (30, 40),
        "state": ["CA", "NV"],
        "pay": (np.nextafter(1, 2), None),
    }


# ----------------------------------------------------------------------------------------------------- draws


def drawn(forest: Path, *options: str) -> pa.Table:
    run = spinney("sample", forest, "--rows", 400, "--seed", 1, "--out", "-", *options)
    assert run.status == 0, run.err
    return pacsv.read_csv(pa.py_buffer(run.out.encode()))


def test_a_forest_is_sampled_as_it_is(forest: Path) -> None:
    rows = drawn(forest)
    assert rows.column_names == list(SCHEMA)
    assert 0 < rows["end"].null_count < 200


def test_all_conditions_hold_in_every_row(forest: Path) -> None:
    rows = drawn(
        forest, "--where", "age=30..40", "--where", "state=CA,NV", "--where", "end=null", "--where", "member=true"
    )
    assert rows.num_rows == 400
    ages = rows["age"].to_numpy()
    assert 30 <= ages.min() <= 34
    assert 36 <= ages.max() <= 40
    assert set(rows["state"].to_pylist()) == {"CA", "NV"}
    assert rows["end"].null_count == 400
    assert rows["member"].to_pylist() == [True] * 400


def test_dates_are_cut(forest: Path) -> None:
    days = drawn(forest, "--where", "end=2020-03-01..2020-04-10")["end"].to_pylist()
    assert min(days) >= date(2020, 3, 1)
    assert max(days) <= date(2020, 4, 10)
    assert len(set(days)) > 5


def test_shares_are_those_that_were_asked_for(forest: Path) -> None:
    """Six standard deviations of 400 draws; the table's own shares, 0.1 and thirds, are further away."""
    rows = drawn(forest, "--balance", "member=0.5", "--balance", "grade=1:0.2,3:0.8")
    assert abs(np.mean(rows["member"].to_pylist()) - 0.5) < 6 * 0.025
    grades = rows["grade"].to_numpy()
    assert abs((grades == 3).mean() - 0.8) < 6 * 0.02
    assert not (grades == 2).any()


def test_programs_are_told_how_many(forest: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.parquet"
    run = spinney("sample", forest, "--rows", 7, "--where", "age=3", "--out", out, "--json")
    assert run.json == {"out": str(out), "rows": 7}


@pytest.mark.parametrize("text", ["age=130..", "age=130..140", "age=..-5"])
def test_a_range_beyond_the_bounds_is_told_as_that(forest, tmp_path, text):
    """An open end beyond the bounds is no pair of ends to be swapped."""
    result = spinney("sample", forest, "--out", tmp_path / "o.csv", "--where", text)
    assert result.status != 0
    assert "is never" in result.err
    assert "ask for values within its bounds" in result.err
