"""`Schema.template`: names and types of a table, blanks for the rest, and not a look at a value."""

from __future__ import annotations

import tomllib
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
import tomli_w

import spinney as sp
from spinney.errors import FileError, InputError
from support.command_line import spinney
from support.error_chains import chain, told

TYPES = {
    "small": "integer",
    "half": "real",
    "exact": "real",
    "town": "category",
    "kind": "category",
    "code": "integer",
    "member": "boolean",
    "born": "date",
    "seen": "datetime",
}
ARROW = pa.schema(
    [
        ("small", pa.int8()),
        ("half", pa.float16()),
        ("exact", pa.decimal128(9, 2)),
        ("town", pa.string()),
        ("kind", pa.dictionary(pa.int8(), pa.string())),
        ("code", pa.dictionary(pa.int8(), pa.int64())),
        ("member", pa.bool_()),
        ("born", pa.date32()),
        ("seen", pa.timestamp("ns", "Europe/London")),
    ]
)
PANDAS = pd.DataFrame(
    {
        "small": pd.array([1], dtype="Int8"),
        "half": np.array([0.5], dtype=np.float32),
        "exact": pd.array([None], dtype=pd.ArrowDtype(pa.decimal128(9, 2))),
        "town": np.array(["SECRET"], dtype=object),
        "kind": pd.Categorical(["SECRET"]),
        "code": pd.Categorical([987654]),
        "member": pd.array([True], dtype="boolean"),
        "born": pd.array([None], dtype=pd.ArrowDtype(pa.date32())),
        "seen": pd.to_datetime(["2020-01-01"]).tz_localize("Europe/London"),
    }
)
POLARS = pl.DataFrame(
    schema={
        "small": pl.UInt8,
        "half": pl.Float32,
        "exact": pl.Decimal(9, 2),
        "town": pl.String,
        "kind": pl.Enum(["SECRET"]),
        "code": pl.Int64,
        "member": pl.Boolean,
        "born": pl.Date,
        "seen": pl.Datetime("us", "Europe/London"),
    }
)


def columns_in(template: str) -> dict[str, str]:
    """The type that a template gives to each column."""
    sections = template.split("[columns.")[1:]
    return {text.split("]")[0].strip('"'): text.split('type = "')[1].split('"')[0] for text in sections}


@pytest.mark.parametrize(
    "table",
    [ARROW, ARROW.empty_table(), pa.dataset.dataset(ARROW.empty_table()), PANDAS, PANDAS.dtypes, POLARS, POLARS.lazy()],
    ids=lambda table: f"{type(table).__module__.split('.')[0]}.{type(table).__name__}",
)
def test_names_and_types_of_tables_in_memory(table):
    """Every kind of table gives the same types, its time zone too, and none of its values or categories."""
    template = sp.Schema.template(table)
    assert columns_in(template) == TYPES
    assert 'timezone = "Europe/London"' in template
    assert "SECRET" not in template
    assert "987654" not in template


class Guarded(pd.DataFrame):
    """A table whose values cannot be looked at."""

    def __getitem__(self, key):
        raise AssertionError("a value was looked at")

    iloc = loc = values = iterrows = items = head = to_numpy = property(__getitem__)


def test_no_value_is_looked_at():
    """A table whose values cannot be read has a template all the same, and another one's values do not change it."""
    assert columns_in(sp.Schema.template(Guarded(PANDAS))) == TYPES
    table = pd.DataFrame({"x": pd.Series([1, "a", None], dtype=object), "y": [1.0, 2.0, np.nan]})
    other = pd.DataFrame({"x": pd.Series([pd.Timestamp(0)], dtype=object), "y": [5e300]})
    assert sp.Schema.template(table) == sp.Schema.template(other)


def test_files_give_what_the_command_line_writes(tmp_path: Path):
    """The text of `spinney schema`, for a file, a folder, a list of paths and a CSV in a way of its own."""
    pq.write_table(ARROW.empty_table(), tmp_path / "t.parquet")
    written = spinney("schema", tmp_path / "t.parquet").out
    for path in (tmp_path / "t.parquet", str(tmp_path), [tmp_path / "t.parquet"]):
        assert sp.Schema.template(path) == written
    csv = tmp_path / "t.csv"
    csv.write_text("a;b;c\n1;2,5;31/12/2020\n")
    options = ("--delimiter", ";", "--decimal", ",", "--date-format", "%d/%m/%Y")
    template = sp.Schema.template(sp.CSV(csv, delimiter=";", decimal=",", date_format="%d/%m/%Y"))
    assert template == spinney("schema", csv, *options).out
    assert columns_in(template) == {"a": "integer", "b": "real", "c": "date"}


def test_private_bounds_leave_no_blank_bounds(tmp_path: Path):
    """As `--private-bounds` does."""
    fields = pa.schema([("x", pa.float64()), ("n", pa.int64()), ("d", pa.date32())])
    template = sp.Schema.template(fields, private_bounds=True)
    assert sp.Schema.from_toml(template)._columns_awaiting_bounds("private") == ["x", "n", "d"]
    pq.write_table(fields.empty_table(), tmp_path / "t.parquet")
    assert template == spinney("schema", tmp_path / "t.parquet", "--private-bounds").out


def test_a_template_is_filled_in_and_loads():
    """State the blanks, and it is a schema file."""
    template = sp.Schema.template(pd.DataFrame({"age": [31], "member": [True]}))
    with pytest.raises(sp.SpinneyError, match=r"column 'age'.*low and high are missing"):
        sp.Schema.from_toml(template)
    filled = template.replace("# low = ", "low = 0").replace("# high = ", "high = 120")
    assert sp.Schema.from_toml(filled) == sp.Schema({"age": sp.Integer(0, 120), "member": sp.Boolean()})


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (np.zeros((2, 2)), InputError, "types cannot be told of a ndarray; pass a pandas, polars or pyarrow table"),
        ({"x": [1]}, InputError, "types cannot be told of a dict"),
        (7, InputError, "types cannot be told of an int"),
        ("no such file.csv", FileError, "no such file.csv"),
        (pd.DataFrame({7: [1]}), InputError, "column names that are not strings; name its columns"),
        (pd.DataFrame({"": [1]}), InputError, "a column has no name"),
        (pd.DataFrame([[1, 2]], columns=["x", "x"]), InputError, "two columns of the same name"),
        (pa.schema([("x", pa.int8()), ("x", pa.int8())]), InputError, "two columns of the same name"),
    ],
    ids=str,
)
def test_what_has_no_template(table, error, message):
    """Things that are no tables, and tables whose columns cannot be named."""
    with pytest.raises(error, match=message):
        sp.Schema.template(table)


def test_types_without_a_column_type_are_left_blank():
    """A list has no column type: the line is for a person to fill in."""
    table = pd.DataFrame({"span": pd.to_timedelta([1], "s"), "period": pd.period_range("2020", periods=1)})
    template = sp.Schema.template(table)
    assert template.count('# type = ""') == 2
    assert sp.Schema.template(pl.DataFrame(schema={"x": pl.Object, "y": pl.Int128})).count('type = "integer"') == 1


def test_a_lazy_frame_that_cannot_be_planned_is_refused_without_its_rows(tmp_path):
    """polars quotes the line that it stumbled over; the error that leaves names the class of polars' error alone."""
    path = tmp_path / "t.ndjson"
    path.write_text('{"a": "Kowalski" 1}\n')
    lazy = pl.scan_ndjson(path)
    with pytest.raises(InputError, match=r"polars raised \w+; see whether frame.collect_schema\(\) works") as caught:
        sp.Schema.template(lazy)
    assert "Kowalski" not in told(caught.value)
    assert chain(caught.value) == [caught.value]


@pytest.mark.parametrize("name", ["customer", "customerID", "patient_no", "Card", "user-ids", "SUBJECT"])
def test_the_template_asks_whose_rows_they_are(name: str) -> None:
    """Columns that names suggest are asked about, and the lines to write are those of a schema."""
    table = pa.table({"amount": [1.5], name: ["a"], "when": [date(2024, 1, 31)]})
    text = sp.Schema.template(table.schema)
    assert "# Do rows belong to persons?" in text
    key = tomli_w.dumps({name: 0}).rpartition(" = ")[0]
    assert f"# By its name, {key} may say whose row it is" in text
    lines = text[text.index("# [person]") :].splitlines()
    person = tomllib.loads("\n".join(line.removeprefix("# ") for line in lines))["person"]
    assert person == {"column": name, "most_rows": 200, "order": "when"}


@pytest.mark.parametrize(
    ("columns", "order"),
    [
        ({"person": [1], "year": [1990], "games": [3]}, "year"),
        ({"games": [3], "person": [1], "days": [2.5]}, "days"),
        ({"yearID": [1990], "playerID": ["a"], "hits": [1]}, "yearID"),
        ({"year": [1990], "person": [1], "when": [date(2024, 1, 31)]}, "when"),
        ({"person": [1], "amount": [2.5]}, None),
        ({"person": [1], "day": ["Monday"], "amount": [2.5]}, None),
    ],
)
def test_the_lines_about_persons_hold_as_they_stand(columns: dict[str, list[object]], order: str | None) -> None:
    """The key is an identifier, and the order a column that is there and has one, or none: bounds are all it lacks."""
    text = sp.Schema.template(pa.table(columns).schema)
    about, _, lines = text.partition("# [person]")
    filled = "\n".join(line.removeprefix("# ") for line in f"# [person]{lines}".splitlines())
    for blank, stated in (("# low = 1900", "low = 1900"), ("# high = 2099", "high = 2099")):
        about = about.replace(blank, stated)
    about = about.replace("# low = \n", "low = 0\n").replace("# high = \n", "high = 3000\n")
    about = about.replace('# values = ["", ""]', 'values = ["a", "b"]')
    # The bounds that the key would have are comments still.
    key = next(name for name in columns if name.startswith("p"))
    whole = tomllib.loads(about + filled)
    whole["columns"][key] = {"type": whole["columns"][key]["type"]}
    schema = sp.Schema.from_dict(whole)
    assert schema.person == key
    assert isinstance(schema[key], sp.Identifier)
    assert schema._person_rows is not None
    assert schema._person_rows.order == order


def test_a_key_that_names_suggest_needs_no_bounds() -> None:
    """Its block is whole as it stands, and what it would be otherwise is said."""
    text = sp.Schema.template(pa.schema([("person", pa.int64())]), private_bounds=True)
    assert tomllib.loads(text)["columns"]["person"] == {"type": "identifier"}
    assert '# type = "integer"\n# bounds = "private"\n' in text


def test_private_bounds_and_values_are_said_to_be_no_choice_with_persons() -> None:
    text = sp.Schema.template(pa.schema([("person", pa.int64()), ("x", pa.float64())]))
    told = " ".join(text.replace("\n# ", " ").split())
    assert "With [person], which is explained below, bounds have to be stated." in told
    assert "with [person], values have to be listed" in told


def test_columns_that_are_no_keys_are_not_asked_about() -> None:
    assert "# [person]" not in sp.Schema.template(pa.table({"amount": [1.5], "ok": [True]}).schema)
    assert "By its name" not in sp.Schema.template(pa.table({"colour": ["a"], "video": ["b"], "n": [1]}).schema)


@pytest.mark.parametrize(
    "columns", [{"rownames": [1], "nr": [2], "x": [1.5]}, {"row_id": [1]}, {"index": [1], "id": [1]}]
)
def test_no_column_is_offered_as_the_person_that_may_number_rows(columns: dict[str, list[float]]) -> None:
    """Where no name speaks of persons, the line is left blank: somebody has to say whose rows they are."""
    text = sp.Schema.template(pa.table(columns).schema)
    lines = text[text.index("# [person]") :].splitlines()
    person = tomllib.loads("\n".join(line.removeprefix("# ") for line in lines))["person"]
    assert person["column"] == ""
    for name in columns:
        assert f"By its name, {name} may say whose row it is" not in text
    assert ("By its name, id may name persons or rows" in text) is ("id" in columns)


@pytest.mark.parametrize(
    ("name", "is_offered"), [("idcode", False), ("pid", True), ("custid", True), ("personid", True)]
)
def test_keys_that_are_written_as_one_word_are_known(name: str, is_offered: bool) -> None:
    text = sp.Schema.template(pa.table({"x": [1], name: [1]}).schema)
    assert tomllib.loads(text)["columns"][name] == {"type": "identifier"}
    assert (f'# column = "{name}"' in text) is is_offered
