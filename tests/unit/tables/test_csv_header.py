"""A CSV without a header has a person where names should be: refused, without a word of that person."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import InputError, ParameterError
from spinney.tables.csv import CSV, PLAIN
from spinney.tables.csv_reader import read_names, reads_as_value
from support.command_line import SCHEMA, spinney
from support.in_one_test import in_one_test

VALUES = [
    "34", "-1.5", "1e5", "1,5", "$12", "12%", "1 234", "nan", "inf", "", "  ", "NA", "null", "true", "FALSE", "2024",
    "2024-01-31", "31/01/2024", "31.1.24", "2024-01-31T10:00:00Z", "12-Jan-2024", "5 March 1990", "Jan 5, 2024",
    "10:30", "10:30 PM", "+49 123 456", "555-1234", "ann@example.org", "0-14", "1990",
]  # fmt: skip
NAMES = [
    "age", "x1", "T10", "1st floor", "2000_income", "income 2000", "e-mail", "Größe", "年齢", "may", "march", "na_rate",
    "true_north", "V1", "_", "#", "1 market value", "@id", "$ per day", "Infinite",
]  # fmt: skip


@in_one_test("cell", VALUES)
def test_fields_that_read_as_values_are_no_names(cell):
    assert reads_as_value(cell)
    for line in (f'name,"{cell}",town', f'"{cell}"', f'"{cell}",a,b'):
        with pytest.raises(InputError, match="first line of the CSV must name the columns, and field") as caught:
            read_names(pa.py_buffer(f"{line}\nx,y,z\n".encode()), PLAIN)
        assert not cell.strip() or cell not in str(caught.value).replace("--no-header", "").replace("true", "")


@in_one_test("cell", NAMES)
def test_names_are_names(cell):
    assert reads_as_value(cell) is None
    assert read_names(pa.py_buffer(f'"{cell}",b\n1,2\n'.encode()), PLAIN) == [cell, "b"]


ROWS = "SECRET,34,987654.321\nBob,35,2\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "t.csv").write_text(ROWS)
    return tmp_path / "t.csv"


def test_the_schema_verb_shows_nobody(table):
    """Neither on the screen nor in the template, from a file and from a pipe."""
    out = table.parent / "schema.toml"
    for source, stdin in ((table, None), ("-", ROWS)):
        run = spinney("schema", source, "--out", out, stdin=stdin, markers=("SECRET", "34", "987654"))
        assert run.status == 1
        assert "field 2 reads as a number" in run.err
        assert "--no-header --names" in run.err
        assert not out.exists()


def test_equal_names_are_told_by_their_places(table):
    """Two equal fields are as likely two equal values, so they are not quoted."""
    table.write_text("SECRET,town,SECRET\na,b,c\n")
    run = spinney("schema", table)
    assert run.status == 1
    assert "fields 1 and 3 of the first line of the CSV are equal" in run.err


def test_a_schema_that_was_made_from_a_row_does_not_help(table):
    """Fitting refuses the file too, whatever the schema says, in Python and by the command."""
    schema = sp.Schema({"SECRET": sp.Identifier(), "34": sp.Integer(0, 99), "987654.321": sp.Real(0, 9)})
    with pytest.raises(InputError, match="field 2 reads as a number") as caught:
        sp.ForestSynthesizer(1).fit(table, schema)
    assert "SECRET" not in str(caught.value)
    schema.to_file(table.parent / "schema.toml")
    for source, stdin in ((table, None), ("-", ROWS)):
        options = ("--schema", table.parent / "schema.toml", "--epsilon", "1", "--out", table.parent / "r.spinney")
        run = spinney("fit", source, *options, stdin=stdin, markers=())  # the method is told from the schema
        assert run.status == 1
        assert "reads as a number" in run.err
        assert "SECRET" not in run.err


def test_without_a_header_names_are_stated(table):
    """`--no-header --names` reads the first line as a row, in both verbs, from files and from pipes."""
    named = ("--no-header", "--names", '"full, name", age ,x')
    template = spinney("schema", table, *named).out
    assert [line for line in template.splitlines() if line.startswith("[columns.")] == [
        '[columns."full, name"]',
        "[columns.age]",
        "[columns.x]",
    ]
    columns = {"full, name": sp.Identifier(), "age": sp.Integer(0, 99), "x": sp.Real(0, 1e6)}
    schema = sp.Schema(columns)
    schema.to_file(table.parent / "schema.toml")
    options = ("--schema", table.parent / "schema.toml", "--epsilon", "1", "--out", table.parent / "r.spinney")
    for source, stdin in ((table, None), ("-", ROWS)):
        run = spinney("fit", source, *options, *named, "--json", "--force", stdin=stdin)
        assert run.status == 0, run.err
        assert run.json["n_rows"] == 2
    csv = sp.CSV(table, header=False, names=list(columns))
    assert sp.ForestSynthesizer(1).fit(csv, schema).card_.n_rows == 2


def test_names_replace_a_header(table):
    """A header of years is a header: with other names it is passed over, and no row is lost."""
    table.write_text("name,2023,2024\nBob,1,2\nAnn,3,4\n")
    assert "field 2 reads as a number" in spinney("schema", table).err
    csv = sp.CSV(table, names=["name", "in_2023", "in_2024"])
    schema = sp.Schema({"name": sp.Identifier(), "in_2023": sp.Integer(0, 9), "in_2024": sp.Integer(0, 9)})
    assert sp.ForestSynthesizer(1).fit(csv, schema).card_.n_rows == 2
    assert "[columns.in_2024]" in spinney("schema", table, "--names", "name,in_2023,in_2024").out


@pytest.mark.parametrize("header", [True, False])
def test_the_number_of_names_must_be_right(table, header):
    csv = CSV(table, names=["a", "b"], header=header)
    with pytest.raises(InputError, match="names lists 2 columns, and the first line of the CSV has 3 fields"):
        read_names(str(table), csv)


def test_no_header_needs_names(table):
    run = spinney("schema", table, "--no-header")
    assert run.status == 2
    assert "--names" in run.err
    with pytest.raises(ParameterError, match=r"header=False .* needs the names"):
        CSV(table, header=False)


def test_a_part_without_a_header_is_refused(tmp_path):
    """What `split` leaves: the first part has the header, the second begins with a row."""
    (tmp_path / "1.csv").write_text("name,age,x\nBob,35,2\n")
    (tmp_path / "2.csv").write_text(ROWS)
    schema = sp.Schema({"name": sp.Identifier(), "age": sp.Integer(0, 99), "x": sp.Real(0, 1e6)})
    with pytest.raises(InputError, match=r"2\.csv': the first line of the CSV must name") as caught:
        sp.ForestSynthesizer(1).fit(tmp_path, schema)
    assert "SECRET" not in str(caught.value)


def test_an_index_of_pandas_is_recognised(tmp_path):
    (tmp_path / "t.csv").write_text(",x\n0,0.5\n")
    assert "index=False" in spinney("schema", tmp_path / "t.csv").err


def test_a_header_of_words_that_the_schema_lacks_is_not_quoted(tmp_path):
    (tmp_path / "t.csv").write_text("SECRET,red\nBob,green\n")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    options = ("--schema", tmp_path / "schema.toml", "--epsilon", "1", "--out", tmp_path / "r.spinney")
    run = spinney("fit", tmp_path / "t.csv", *options)
    assert run.status == 1
    assert "names none of the schema's columns" in run.err


@pytest.mark.parametrize("header", ["AGE,TOWN", "age ,town ", " Age,Town"])
def test_names_that_differ_in_capitals_and_spaces_are_told_as_such(tmp_path, header):
    """They are names, and no person: both sides are told, with the pairs."""
    path = tmp_path / "t.csv"
    path.write_text(f"{header}\n30,a\n")
    schema = sp.Schema({"age": sp.Integer(0, 99), "town": sp.Category(["a", "b"])})
    with pytest.raises(sp.SpinneyError, match=r"in the table but not in the schema.*'age'"):
        sp.ForestSynthesizer("1").fit(path, schema)
