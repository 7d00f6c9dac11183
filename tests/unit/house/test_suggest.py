"""Did you mean ...? Misspelt names of columns, options and types are told from both sides, with the likely one."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import ParameterError, SchemaError
from spinney.metrics import train_on_synthetic
from spinney.text import closest, did_you_mean, listed
from spinney_paper.baselines import DPMERF
from support.command_line import spinney

SCHEMA = sp.Schema({"age": sp.Integer(0, 120), "income": sp.Real(0, 1e6), "is_ill": sp.Boolean()})
ROWS = {"age": [30, 40], "income": [1.0, 2.0], "is_ill": [True, False]}


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        ("incom", "income"),
        ("Income", "income"),
        (" income ", "income"),
        ("is-ill", "is_ill"),
        ("is ill", "is_ill"),
        ("IS_ILL", "is_ill"),
        ("zz", None),
        ("", None),
        (3, None),
        (None, None),
    ],
)
def test_the_closest_name(wrong, found):
    """Capitals, spaces and hyphens aside; nothing where nothing is close."""
    assert closest(wrong, SCHEMA) == found
    assert did_you_mean(wrong, SCHEMA) == ("" if found is None else f"; did you mean {found!r}?")


def test_lists_of_names():
    """Quoted, with an "and"; the rest of a long list is counted."""
    assert listed([]) == ""
    assert listed(["a"]) == "'a'"
    assert listed(["a", "b", "c"]) == "'a', 'b' and 'c'"
    assert listed(range(14)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 3 more"
    assert listed(["\x1b[31m"]) == r"'\x1b[31m'"


def renamed(make, **names):
    return make({names.get(name, name): values for name, values in ROWS.items()})


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, pl.LazyFrame])
def test_misspelt_columns_are_told_from_both_sides(make):
    """All names that one side has alone, then those that were likely meant."""

    def message(frame, schema=SCHEMA):
        ledger = sp.Ledger(limit=10, delta="1e-5")
        with pytest.raises(SchemaError) as caught:
            sp.ForestSynthesizer().fit(frame, schema, ledger=ledger)
        assert ledger.events == ()
        return str(caught.value)

    assert message(renamed(make, income="incom")) == (
        "column 'incom' is in the table but not in the schema, and column 'income' is in the schema but not in the "
        "table; did you mean 'income' by 'incom'? Give both the same names, capitals and spaces included"
    )
    told = message(renamed(make, income="Income", age="AGE"))
    assert told.startswith("columns 'AGE' and 'Income' are in the table but not in the schema, and columns 'age'")
    assert "did you mean 'age' by 'AGE', 'income' by 'Income'?" in told
    told = message(renamed(make, income="salary"))
    assert told.endswith(
        "'income' is in the schema but not in the table; give both the same names, capitals and spaces included"
    )
    told = message(make(ROWS | {"x": [1, 2], "y": [1, 2]}))
    assert told == (
        "columns 'x' and 'y' are in the table but not in the schema; "
        'describe them, leave them out with sp.Ignore() (type = "ignore"), or drop them'
    )
    told = message(make({"age": [1]}))
    assert told == (
        "columns 'income' and 'is_ill' are in the schema but not in the table; add them or take them out of the schema"
    )


def test_a_first_row_for_names_is_not_quoted():
    """Where no name is known, the names may be the values of a CSV without a header row."""
    frame = pd.DataFrame([[31, 2000.0, True]], columns=["30", "1234.5", "MARKER"])
    none = r"none of the schema's columns, 'age', 'income' and 'is_ill'.*header=None"
    with pytest.raises(SchemaError, match=none) as caught:
        sp.ForestSynthesizer().fit(frame, SCHEMA)
    assert not any(name in str(caught.value) for name in frame.columns)


def test_an_index_is_no_column():
    """A column that became the index, and an index that became a column."""
    frame = pd.DataFrame(ROWS)
    with pytest.raises(SchemaError, match=r"'age' is the index of the table.*frame\.reset_index\(\)"):
        sp.ForestSynthesizer().fit(frame.set_index("age"), SCHEMA)
    frame.insert(0, "Unnamed: 0", [0, 1])
    with pytest.raises(SchemaError, match=r"'Unnamed: 0' is an index that was written into a CSV.*index_col=0"):
        sp.ForestSynthesizer().fit(frame, SCHEMA)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: sp.synthesize(pd.DataFrame(ROWS), SCHEMA, target="is_il"),
        lambda: sp.ForestSynthesizer(target="is_il").fit(pd.DataFrame(ROWS), SCHEMA),
        lambda: DPMERF(target="is_il").fit(pd.DataFrame(ROWS), SCHEMA),
        lambda: train_on_synthetic(pd.DataFrame(ROWS), pd.DataFrame(ROWS), SCHEMA, target="is_il"),
    ],
)
def test_misspelt_targets(ask):
    with pytest.raises(sp.SpinneyError, match="target='is_il' is not a column of the schema; did you mean 'is_ill'"):
        ask()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: sp.Schema(SCHEMA, rules=[sp.AtMost("age", "incom")]),
            "AtMost: column 'incom' .*; did you mean 'income'",
        ),
        (
            lambda: sp.GridSynthesizer().set_params(treshold=3),
            "'treshold' is not a parameter .*; did you mean 'threshold'",
        ),
        (
            lambda: sp.GridSynthesizer(bins={"Age": 3, "income": 3, "is_ill": 2}).fit(pd.DataFrame(ROWS), SCHEMA),
            "bins names column 'Age', which is not in the schema; did you mean 'age'",
        ),
        (
            lambda: sp.Schema.from_toml("[columns.x]\ntype = 'boolean'\nnullabel = true"),
            "column 'x': 'nullabel' is not an option of type 'boolean'; it takes .*; did you mean 'nullable'",
        ),
        (
            lambda: sp.Schema.from_toml("[columns.x]\ntype = 'boolen'"),
            "type 'boolen' is not .*; did you mean 'boolean'",
        ),
        (lambda: sp.Schema.from_toml("[columns.x]\ntype='boolean'\n[rule]"), "no entry 'rule'.*; did you mean 'rules'"),
        (
            lambda: sp.Schema.from_dict(
                SCHEMA.to_dict() | {"rules": [{"type": "at_most", "column": "a", "other": "b"}]}
            ),
            "rule 1: type 'at_most' is not .*; did you mean 'at-most'",
        ),
        (
            lambda: sp.Schema.from_dict(
                SCHEMA.to_dict() | {"rules": [{"type": "at-most", "colum": "a", "other": "b"}]}
            ),
            "rule 1: 'colum' is not an option .*; did you mean 'column'",
        ),
        (
            lambda: sp.ForestSynthesizer().fit("t.csv", SCHEMA, engine="polar"),
            "engine='polar' .*; did you mean 'polars'",
        ),
    ],
)
def test_other_misspelt_names(make, message):
    with pytest.raises((SchemaError, ParameterError), match=message):
        make()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A table, its schema and a release, in files."""
    folder = tmp_path_factory.mktemp("files")
    pd.DataFrame(ROWS).to_csv(folder / "t.csv", index=False)
    SCHEMA.to_file(folder / "schema.toml")
    sp.ForestSynthesizer(1).fit(pd.DataFrame(ROWS), SCHEMA).save(folder / "t.spinney")
    return folder


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target", "is_il"], "did you mean 'is_ill'?"),
        (["--method", "grid", "--bins", "Age=3", "--bins", "income=3", "--bins", "is_ill=2"], "did you mean 'age'?"),
    ],
)
def test_misspelt_columns_of_a_fit_on_the_command_line(files, options, message):
    out = files / "out.spinney"
    run = spinney("fit", files / "t.csv", "--schema", files / "schema.toml", "--epsilon", 1, "--out", out, *options)
    assert run.status == 2
    assert message in run.err


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("--where", "ages=3", "'ages' is not a column of the release; did you mean 'age'?"),
        ("--balance", "is-ill=0.5", "'is-ill' is not a column of the release; did you mean 'is_ill'?"),
    ],
)
def test_misspelt_columns_of_a_sample_on_the_command_line(files, option, text, message):
    run = spinney("sample", files / "t.spinney", option, text, "--out", "-")
    assert run.status == 2
    assert message in run.err


def test_booleans_on_the_command_line(files):
    """1 and 0 mean true and false, as in a CSV."""
    for text, found in (("is_ill=1", "true"), ("is_ill=0", "false"), ("is_ill=True", "true")):
        run = spinney("sample", files / "t.spinney", "--where", text, "--rows", 5, "--out", "-")
        assert {line.rpartition(",")[2] for line in run.out.splitlines()[1:]} == {found}
