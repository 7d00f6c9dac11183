"""`spinney schema` shows names and types, and leaves everything that would leak for a person to state."""

from __future__ import annotations

import datetime as dt
import tomllib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import spinney as sp
from spinney.schema.rules import rule_from_dict
from support.command_line import files_in, people, spinney, write_people

TABLE = (
    "weight,age,name,member,born,seen,strange name\n"
    "987654.321,31,SECRET,true,1990-05-01,2020-01-01T10:00:00,1\n"
    "1.5,42,SECRET,false,1991-05-01,2021-01-01T10:00:00,2\n"
)
TYPES = {
    "weight": "real",
    "age": "integer",
    "name": "category",
    "member": "boolean",
    "born": "date",
    "seen": "datetime",
    "strange name": "integer",
}
FILLED = {
    "weight": {"# low = ": "low = 0", "# high = ": "high = 200"},
    "age": {"# low = ": "low = 0", "# high = ": "high = 120"},
    "name": {'# values = ["", ""]': 'values = ["Ann", "Bob"]', "# nullable": "nullable"},
    "born": {"# low": "low", "# high": "high"},
    "seen": {"# low": "low", "# high": "high"},
    "strange name": {"# low = ": "low = 1", "# high = ": "high = 9"},
}


def fill(template: str, blanks: dict[str, dict[str, str]]) -> str:
    """Do what a person does: state the blanks, column by column."""
    head, *sections = template.split("\n[columns.")
    filled = [head]
    for section in sections:
        text = section
        for blank, statement in blanks.get(text.split("]")[0].strip('"'), {}).items():
            assert blank in text
            text = text.replace(blank, statement)
        filled.append(text)
    return "\n[columns.".join(filled)


def test_a_csv_template_has_the_names_and_types(tmp_path: Path) -> None:
    table, _ = write_people(tmp_path, table=TABLE)
    run = spinney("schema", table)
    assert run.status == 0
    for name, kind in TYPES.items():
        key = f'"{name}"' if " " in name else name
        assert f'[columns.{key}]\ntype = "{kind}"\n' in run.out


@pytest.mark.parametrize("name", FILLED)
def test_an_unfilled_template_is_refused_by_column(tmp_path: Path, name: str) -> None:
    """Loading says which column is unfinished and what to do about it."""
    table, _ = write_people(tmp_path, table=TABLE)
    template = fill(spinney("schema", table).out, {other: FILLED[other] for other in FILLED if other != name})
    with pytest.raises(sp.SpinneyError, match=f"column '{name}'.*((is|are) missing; state|is empty; list)"):
        sp.Schema.from_toml(template)


def test_a_filled_template_loads(tmp_path: Path) -> None:
    table, _ = write_people(tmp_path, table=TABLE)
    out = tmp_path / "template.toml"
    assert spinney("schema", table, "--out", out).status == 0
    out.write_text(fill(out.read_text(), FILLED))
    schema = sp.Schema.from_file(out)
    assert [type(column) for column in schema.values()] == [
        sp.Real,
        sp.Integer,
        sp.Category,
        sp.Boolean,
        sp.Date,
        sp.Datetime,
        sp.Integer,
    ]
    assert schema["name"].nullable
    assert not schema["age"].nullable


def test_the_template_knows_identifiers_steps_and_rules(tmp_path: Path) -> None:
    """What the comments say can be done works: a column named as identifier, a step, the rules as they are shown."""
    table, _ = write_people(tmp_path, table=TABLE)
    template = spinney("schema", table).out
    assert 'if it names a row or a person: type = "identifier" and nothing else' in template
    named = {'type = "category"': 'type = "identifier"'}
    stated = FILLED["age"] | {"# nullable": "multiple_of = 5\nnullable"}
    filled = fill(
        template, FILLED | {"name": named, "age": stated, "born": FILLED["born"] | {"# nullable": "nullable"}}
    )
    shown = [line.removeprefix("#     ") for line in template.splitlines() if line.startswith("#     ")]
    shown = "\n".join(shown).replace('"start"', '"weight"').replace('"end"', '"age"').replace('"status"', '"member"')
    shown, more = shown.replace('["open"]', "[true]").split('[[rules]]\ntype = "implies"')
    schema = sp.Schema.from_toml(filled + shown)
    assert schema._identifiers == ["name"]
    assert schema["age"].multiple_of == 5
    assert schema.rules == (sp.AtMost("weight", "age"), sp.EmptyWhen("age", "member", [True]))
    entries = tomllib.loads('[[rules]]\ntype = "implies"' + more)["rules"]
    assert [rule_from_dict(1, entry) for entry in entries] == [
        sp.Implies({"age": (0, 14)}, {"marital": ["never", None]}),
        sp.Derived("fiscal_year", "weight", part="year", starting="October"),
        sp.OnlyOn("weight", "weekdays"),
        sp.Sum("total", ["fare", "tip", "tolls"]),
        sp.Related("guaranteed", "approved", ratios=[1, "0.75"]),
        sp.Derived("sector", "industry", by={"0170": "farming", "7860": "education"}),
    ]


def test_the_template_says_why_bounds_are_blank(tmp_path: Path) -> None:
    table, _ = write_people(tmp_path, table=TABLE)
    assert "bounds taken from the data would reveal" in spinney("schema", table).out


def test_the_template_does_not_depend_on_the_values(tmp_path: Path) -> None:
    """Neither the range, nor the values that occur, nor the presence of nulls shows in a Parquet template."""
    fields = pa.schema([("x", pa.float64()), ("c", pa.string()), ("d", pa.dictionary(pa.int32(), pa.string()))])
    tables = [{"x": [1.0, 2.0], "c": ["SECRET", "b"], "d": ["SECRET", "c"]}, {"x": [None], "c": [None], "d": ["c"]}]
    shown = []
    for index, columns in enumerate(tables):
        path = tmp_path / f"{index}.parquet"
        pq.write_table(pa.table(columns, schema=fields), path)
        shown.append(spinney("schema", path).out)
    assert shown[0] == shown[1]


def test_a_parquet_template_follows_the_types_of_the_file(tmp_path: Path) -> None:
    table = pa.table(
        {
            "small": pa.array([1], pa.int8()),
            "exact": pa.array([None], pa.decimal128(9, 2)),
            "day": pa.array([dt.date(2020, 1, 1)]),
            "moment": pa.array([dt.datetime(2020, 1, 1)], pa.timestamp("ns", "Europe/London")),
            "offset": pa.array([dt.datetime(2020, 1, 1)], pa.timestamp("ms", "+02:00")),
            "list": pa.array([[1, 2]]),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    text = spinney("schema", tmp_path / "t.parquet").out
    assert '[columns.small]\ntype = "integer"' in text
    assert '[columns.exact]\ntype = "real"' in text
    assert '[columns.day]\ntype = "date"' in text
    assert '[columns.moment]\ntype = "datetime"\ntimezone = "Europe/London"' in text
    assert '[columns.offset]\ntype = "datetime"\ntimezone = "UTC"' in text
    with pytest.raises(sp.SpinneyError, match="column 'list': the entry needs a type"):
        sp.Schema.from_toml("[columns.list]" + text.split("[columns.list]")[1])


@pytest.mark.parametrize("name", ['a "quoted" name', "dotted.name", "ünïcode", "tab\there", "café = 3", "[x]"])
def test_any_column_name_survives(tmp_path: Path, name: str) -> None:
    pq.write_table(pa.table({name: pa.array([True])}), tmp_path / "t.parquet")
    assert list(sp.Schema.from_toml(spinney("schema", tmp_path / "t.parquet").out)) == [name]


def test_bounds_may_be_left_to_epsilon(tmp_path: Path) -> None:
    """With --private-bounds a template of numbers and dates is complete: every bound is to be paid for."""
    kinds = {"size": pa.int32(), "height": pa.float64(), "day": pa.date32(), "moment": pa.timestamp("us")}
    pq.write_table(pa.table({name: pa.array([], type=kind) for name, kind in kinds.items()}), tmp_path / "t.parquet")
    schema = sp.Schema.from_toml(spinney("schema", tmp_path / "t.parquet", "--private-bounds").out)
    assert schema._columns_awaiting_bounds("private") == list(kinds)


def test_a_dash_prints_the_template(tmp_path: Path) -> None:
    table, _ = write_people(tmp_path)
    before = files_in(tmp_path)
    assert spinney("schema", table, "--out", "-").out == spinney("schema", table).out
    assert files_in(tmp_path) == before


def test_other_separators_are_told() -> None:
    run = spinney("schema", "-", stdin="x;y\n1;2\n")
    assert run.status == 1
    assert "commas" in run.err


def test_standard_input_is_csv(tmp_path: Path) -> None:
    piped = spinney("schema", "-", stdin=people())
    table, _ = write_people(tmp_path)
    assert piped.status == 0
    assert piped.out == spinney("schema", table).out


def test_a_csv_without_a_header_is_refused_without_quoting_it() -> None:
    run = spinney("schema", "-", stdin="987654.321,2\n3,4\n")
    assert run.status == 1
    assert "header" in run.err


def test_an_existing_template_is_kept(tmp_path: Path) -> None:
    table, schema = write_people(tmp_path)
    before = schema.read_text()
    run = spinney("schema", table, "--out", schema)
    assert run.status == 2
    assert "--force" in run.err
    assert schema.read_text() == before
    assert spinney("schema", table, "--out", schema, "--force").status == 0
    assert schema.read_text() != before


def test_what_rows_say_of_keys_is_for_the_terminal_alone(tmp_path: Path) -> None:
    """A row number, and a key that repeats: told to the holder, and not written; other rows give the same template."""
    rng = np.random.default_rng(0)
    of = np.repeat(np.arange(100), 3)
    same = {"rownames": np.arange(300), "nr": rng.permutation(100)[of] * 5, "sex": rng.choice(["f", "m"], 100)[of]}
    other = same | {"rownames": np.full(300, 7), "nr": np.arange(300)}
    runs = []
    for number, columns in enumerate((same, other)):
        pq.write_table(pa.table(columns), tmp_path / f"{number}.parquet")
        runs.append(spinney("schema", tmp_path / f"{number}.parquet"))
    first, second = runs
    assert first.out == second.out, "the template follows from names and types"
    assert "for your eyes only" in first.err
    assert "'rownames' has another value in every row" in first.err
    assert "'nr' repeats as keys of persons do" in first.err
    assert "'nr' repeats" not in second.err
    out = tmp_path / "s.toml"
    spinney("schema", tmp_path / "0.parquet", "--out", out)
    assert out.read_text() == first.out
