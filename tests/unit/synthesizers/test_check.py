"""`sp.check`: every fault at once, counted, without charging anything and without quoting a value."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import spinney as sp
from spinney.errors import FileError, InputError, ParameterError, SchemaError
from spinney.privacy.entropy import SystemEntropy
from spinney.privacy.ledger import Ledger
from spinney.tables import tally
from spinney.tables.csv import PLAIN, PipedCSV

SCHEMA = sp.Schema(
    {
        "x": sp.Real(0, 1),
        "age": sp.Integer(0, 120),
        "colour": sp.Category(["red", "green"]),
        "start": sp.Date("2020-01-01", "2030-01-01"),
        "end": sp.Date("2020-01-01", "2030-01-01", nullable=True),
        "open": sp.Boolean(),
    },
    rules=[sp.AtMost("start", "end"), sp.EmptyWhen("end", "open", [True])],
)
ROWS = {
    "x": [0.5, 2.5, -1.0, 0.25],
    "age": [12, 130, 5, 7],
    "colour": ["red", "green", "red", "green"],
    "start": pd.to_datetime(["2021-01-01", "2021-01-01", "2025-01-01", "2022-01-01"]),
    "end": pd.to_datetime(["2022-01-01", None, "2023-01-01", None]),
    "open": [False, True, False, False],
}


@pytest.fixture(autouse=True)
def nothing_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    """No check may charge a ledger or draw noise."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a check charged a ledger or drew noise")

    monkeypatch.setattr(Ledger, "charge", refuse)
    monkeypatch.setattr(Ledger, "__init__", refuse)
    monkeypatch.setattr(SystemEntropy, "words", refuse)


def frame(**columns: object) -> pd.DataFrame:
    return pd.DataFrame(ROWS | columns)


def messages(findings) -> list[str]:
    return [str(finding) for finding in findings]


def test_a_table_that_fits_is_clean() -> None:
    """What fit would accept has no faults; what it would move or redraw is a warning."""
    found = sp.check(frame(), SCHEMA)
    assert found.is_clean
    assert found.n_rows == 4
    assert messages(found.warnings) == [
        "column 'x': values below low=0.0 would be moved to that bound (1 row)",
        "column 'x': values above high=1.0 would be moved to that bound (1 row)",
        "column 'age': values above high=120 would be moved to that bound (1 row)",
        "AtMost(column='start', other='end') does not hold in some rows; all synthetic rows will obey it (1 row)",
        "EmptyWhen(column='end', other='open', values=[True]) does not hold in some rows; "
        "all synthetic rows will obey it (1 row)",
    ]
    assert (found.method, found.reason) == ("forest", "the schema has rules")


def test_every_column_is_told_at_once() -> None:
    """Names on both sides, types, unreadable values, nulls: one call, all of them."""
    bad = frame(
        x=[0.5, np.nan, np.inf, 0.5],
        age=[1.5, 2.0, 2.5, np.nan],
        colour=pd.array(["red", "rod", "rod", None], dtype="string"),
        open=["yes", "no", "no", "no"],
    )
    bad = bad.rename(columns={"start": "Start "}).assign(more=1)
    found = sp.check(bad, sp.Schema(dict(SCHEMA) | {"gone": sp.Boolean()}))
    said = messages(found.faults)
    assert [fault.column for fault in found.faults] == [
        "Start ",
        "more",
        "gone",
        "x",
        "age",
        "age",
        "colour",
        "colour",
        "open",
    ]
    assert "'Start ' is in the table but not in the schema, and 'start' is in the schema but not in" in said[0]
    assert said[1] == (
        "column 'more' is in the table but not in the schema; "
        'describe it, leave it out with type = "ignore", or drop it'
    )
    assert "'gone' is in the schema but not in the table" in said[2]
    assert [fault.n_rows for fault in found.faults[3:8]] == [2, 2, 1, 2, 1]
    assert "not a whole number" in said[4]
    assert "list of values" in said[6]
    assert "cannot be read as boolean" in said[8]


def test_no_value_is_quoted() -> None:
    secret = frame(colour=["SECRET-1", "SECRET-2", "red", "red"], age=[987654, 5, 5, 5])
    found = sp.check(secret, SCHEMA)
    shown = str(found) + json.dumps(found.to_dict()) + repr(found)
    assert "SECRET" not in shown
    assert "987654" not in shown


def test_the_page_is_for_the_holder() -> None:
    found = sp.check(frame(), SCHEMA)
    assert str(found).splitlines()[0] == (
        "For the holder only: this page describes the private table; do not publish it."
    )
    assert found.to_dict()["for"] == str(found).splitlines()[0]
    assert "Nothing was charged." in str(found)


def test_what_fit_refuses_is_a_fault_and_what_is_clean_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clean findings and an accepted fit go together, table by table."""
    tables = {
        "good": frame(),
        "null": frame(x=[None, 0.5, 0.5, 0.5]),
        "unlisted": frame(colour=["blue"] * 4),
        "halves": frame(age=[0.5, 1, 1, 1]),
        "text": frame(age=["a", "b", "c", "d"]),
        "none": frame()[:0],
        "missing": frame().drop(columns="x"),
    }
    findings = {name: sp.check(table, SCHEMA) for name, table in tables.items()}
    monkeypatch.undo()
    for name, table in tables.items():
        try:
            sp.ForestSynthesizer(1).fit(table, SCHEMA)
            fits = True
        except sp.SpinneyError:
            fits = False
        assert findings[name].is_clean is fits, name
    assert findings["good"].is_clean
    assert sum(found.is_clean for found in findings.values()) == 1


def test_columns_that_say_nothing_are_warned_of() -> None:
    schema = sp.Schema({"a": sp.Real(0, 1), "b": sp.Real(0, 1, nullable=True), "c": sp.Boolean()})
    table = pa.table({"a": [0.5, 0.5], "b": pa.array([None, None], pa.float64()), "c": [True, False]})
    assert messages(sp.check(table, schema).warnings) == [
        "column 'a' holds only one value",
        "column 'b' holds no value at all",
    ]


def test_an_unknown_target_is_a_fault() -> None:
    found = sp.check(frame(), SCHEMA, target="color")
    assert messages(found.faults) == ["target='color' is not a column of the schema; did you mean 'colour'?"]
    assert sp.check(frame(), SCHEMA, target="colour").reason == "there is a target, 'colour'"


def test_a_method_that_cannot_take_the_schema_is_a_fault() -> None:
    found = sp.check(frame(), SCHEMA, method="tree")
    assert "KDTreeSynthesizer cannot enforce" in messages(found.faults)[0]
    assert sp.check(frame()[["x"]], sp.Schema({"x": sp.Real(0, 1)})).method == "tree"


def test_bounds_that_are_not_stated_are_noted() -> None:
    schema = sp.Schema({"x": sp.Real(bounds="private"), "age": sp.Integer(bounds="from-data-not-private")})
    found = sp.check(frame()[["x", "age"]], schema)
    assert found.is_clean
    assert "Bounds of 'x' would be estimated privately" in found.notes[0]
    assert "voids the guarantee" in found.notes[1]


def test_a_faulty_schema_file_does_not_hide_the_table(tmp_path: Path) -> None:
    """Columns that the file describes wrongly are told once; the others are checked."""
    path = tmp_path / "schema.toml"
    path.write_text('[columns.x]\ntype = "real"\nlow = 0\n\n[columns.age]\ntype = "boolean"\n')
    found = sp.check(frame()[["x", "age"]], path)
    assert [fault.column for fault in found.faults] == [None, "age"]
    assert "column 'x': Real: high is missing" in messages(found.faults)[0]
    assert "neither true nor false" in messages(found.faults)[1]
    assert messages(found.faults)[1].endswith("(4 rows)")
    path.write_text("[columns.x")
    found = sp.check(frame(), path)
    assert "not valid TOML" in messages(found.faults)[0]
    assert (found.n_rows, found.method) == (None, None)


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
def test_files_that_differ_are_told_each_by_name(tmp_path: Path, suffix: str) -> None:
    schema = sp.Schema({"a": sp.Integer(0, 9), "flag": sp.Boolean()})
    tables = [pl.DataFrame({"a": [1, 2], "flag": [True, False]}), pl.DataFrame({"a": [3], "flags": [True]})]
    for index, table in enumerate(tables):
        if suffix == "parquet":
            table.write_parquet(tmp_path / f"{index}.parquet")
        else:
            table.to_pandas().to_csv(tmp_path / f"{index}.{suffix}", index=False)
    found = sp.check(str(tmp_path / "*"), schema)
    said = messages(found.faults)
    assert len(said) == 1
    assert f"1.{suffix}" in said[0]
    assert "'flags' is in the table but not in the schema, and 'flag' is in the schema but not in the table" in said[0]
    assert found.n_rows == 3


def test_types_that_do_not_fit_in_one_file_of_many(tmp_path: Path) -> None:
    schema = sp.Schema({name: sp.Integer(0, 9) for name in "abcde"})
    good = pa.table({name: [1, 2] for name in "abcde"})
    bad = good.set_column(1, "b", pa.array([1, 2], pa.date32())).set_column(4, "e", pa.array([True, False]))
    for index, table in enumerate([good, good, bad]):
        pq.write_table(table, tmp_path / f"{index}.parquet")
    found = sp.check(tmp_path, schema)
    assert [fault.column for fault in found.faults] == ["b", "e"]
    assert all("2.parquet" in fault.message for fault in found.faults)
    assert found.n_rows == 6


CSV = "a,b,c,d\n1,true,2020-01-01,0.5\n2,maybe,yesterday,0.5\nx,false,2020-01-01,1.5\n"
CSV_SCHEMA = sp.Schema(
    {"a": sp.Integer(0, 9), "b": sp.Boolean(), "c": sp.Date("2020-01-01", "2021-01-01"), "d": sp.Real(0, 1)}
)


def test_all_columns_of_a_csv_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    """The reader stops at the first; the others are read again without it, and right ones are counted still."""
    path = tmp_path / "t.csv"
    path.write_text(CSV)
    held = sp.check(path, CSV_SCHEMA, engine="memory")
    for found in (sp.check(path, CSV_SCHEMA), held, sp.check(PipedCSV(pa.py_buffer(CSV.encode()), PLAIN), CSV_SCHEMA)):
        assert [fault.column for fault in found.faults] == ["a", "b", "c"]
        assert messages(found.warnings) == ["column 'd': values above high=1.0 would be moved to that bound (1 row)"]
        assert "yesterday" not in str(found)


def test_a_right_csv_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One pass over the values, besides the one that counts rows."""
    from spinney.tables.engines import files

    path = tmp_path / "t.csv"
    path.write_text("a,b,c,d\n1,true,2020-01-01,0.5\n")
    passes = []
    pieces = files.csv_batches

    def counted(*arguments, **options):
        passes.append(arguments)
        return pieces(*arguments, **options)

    monkeypatch.setattr(files, "csv_batches", counted)
    assert sp.check(path, CSV_SCHEMA).is_clean
    assert len(passes) == 1


def test_a_rule_is_counted_although_its_columns_were_read_apart(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("low,bad,high\n5,x,3\n1,2,3\n")
    columns = {name: sp.Integer(0, 9) for name in ("low", "bad", "high")}
    found = sp.check(path, sp.Schema(columns, rules=[sp.AtMost("low", "high")]))
    assert [fault.column for fault in found.faults] == ["bad"]
    assert [(warning.column, warning.n_rows) for warning in found.warnings] == [("high", None), ("low", 1)]


def test_a_csv_that_cannot_be_read_at_all_is_one_fault(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,c,d\n1,true,2020-01-01,0.5\n1,true\n")
    assert len(sp.check(path, CSV_SCHEMA).faults) == 1
    path.write_text("SECRET,PERSON\n1,2\n")
    found = sp.check(path, CSV_SCHEMA)
    assert len(found.faults) == 1
    assert "names none of the schema's columns" in str(found)
    assert "SECRET" not in str(found)


def test_what_is_wrong_with_a_file_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once for every column that was looked for in it."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({name: [1, 2] for name in "abcd"}), path)

    def changed(*_: object) -> None:
        raise InputError("the table changed while it was read")

    monkeypatch.setattr("spinney.tables.engines.files.ParquetFile._read_groups", changed)
    found = sp.check(path, sp.Schema({name: sp.Integer(0, 9) for name in "abcd"}))
    assert messages(found.faults) == ["the table changed while it was read"]


def test_arrays_are_checked_by_position() -> None:
    schema = sp.Schema({"a": sp.Integer(0, 9), "b": sp.Date("2020-01-01", "2021-01-01"), "c": sp.Category(["x"])})
    found = sp.check(np.array([[1.5, 0, 0], [2, 0, 0]]), schema)
    assert [fault.column for fault in found.faults] == ["b", "c", "a"]
    assert found.faults[-1].n_rows == 1
    assert "does not have the schema's 3 columns" in str(sp.check(np.zeros((2, 2)), schema))


def test_tables_that_are_none() -> None:
    """What cannot be opened is a fault; a file that is not there or an unknown engine is an error of the call."""
    assert "is not a table" in str(sp.check(object(), SCHEMA))
    with pytest.raises(FileError, match="does not exist"):
        sp.check("nowhere.csv", SCHEMA)
    with pytest.raises(ParameterError, match="engine='perl'"):
        sp.check(frame(), SCHEMA, engine="perl")
    with pytest.raises(ParameterError, match="method"):
        sp.check(frame(), SCHEMA, method="wood")
    with pytest.raises(SchemaError, match="schema"):
        sp.check(frame(), 5)


def test_too_many_wrong_values_are_noticed_without_a_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "_MOST_READINGS", 5)
    found = sp.check(pa.table({"a": np.arange(100) + 0.5}), sp.Schema({"a": sp.Integer(0, 99)}))
    assert messages(found.faults) == ["column 'a': some value is not a whole number; use Real for this column"]


def test_tallies_hide_what_they_hold() -> None:
    assert repr(tally.Tally(n_rows=987)) == "Tally(sensitive)"
    assert repr(tally.Tallies()) == "Tallies(sensitive)"


class Hostile:
    def __ne__(self, other: object) -> bool:
        raise RuntimeError("SECRET")


def test_objects_that_raise_are_told_without_what_they_say() -> None:
    found = sp.check(pd.DataFrame({"x": pd.Series([0.5, Hostile()], dtype=object)}), sp.Schema({"x": sp.Real(0, 1)}))
    assert [fault.column for fault in found.faults] == ["x"]
    assert "SECRET" not in str(found)


@pytest.mark.parametrize(
    ("column", "values", "told"),
    [
        (sp.Date("2015-01-01", "2015-12-31", multiple_of=7), ["2015-01-05", "2015-01-08"], "counted from low"),
        (
            sp.Datetime("2015-01-01", "2015-12-31", multiple_of=3600),
            ["2015-01-05T00:30", "2015-01-08T02:00"],
            "counted from midnight",
        ),
        (sp.Time(multiple_of=3600), ["08:30", "09:00"], "counted from midnight"),
        (sp.Integer(0, 1000, multiple_of=50), [75, 100], "counted from 0"),
        (sp.Real(0, 10, multiple_of=0.1), [0.15, 0.3], "counted from 0"),
    ],
    ids=lambda value: getattr(value, "type_name", ""),
)
def test_values_between_steps_are_counted(column: object, values: list[object], told: str) -> None:
    """Steps that the table does not keep, such as weeks from another day, are told before they round every row."""
    (warning,) = sp.check(pd.DataFrame({"x": values}), sp.Schema({"x": column})).warnings
    assert told in str(warning)
    assert warning.n_rows == 1
    assert sp.check(pd.DataFrame({"x": values[1:] * 2}), sp.Schema({"x": column})).warnings[0].n_rows is None


def test_floats_of_32_bits_are_in_steps() -> None:
    """A rounding error of a narrow float is not a value between steps."""
    prices = np.round(np.random.default_rng(0).random(500) * 100, 2).astype(np.float32)
    assert sp.check(pd.DataFrame({"x": prices}), sp.Schema({"x": sp.Real(0, 100, multiple_of=0.01)})).warnings == ()


def test_single_precision_is_not_between_multiples() -> None:
    """A float32 that is the nearest to a decimal is that decimal; one that lies between two is not."""
    schema = {"x": sp.Real(0, 200, decimals=3)}
    held = pd.DataFrame({"x": np.array([93.994, 12.001, 0.003], np.float32)})
    assert not sp.check(held, schema).warnings
    between = pd.DataFrame({"x": np.array([93.9945, 12.0, 0.0], np.float32)})
    assert [warning.n_rows for warning in sp.check(between, schema).warnings] == [1]
