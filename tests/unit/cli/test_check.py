"""`spinney check`: a page for the holder, an exit status for scripts, and no value anywhere."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from support.command_line import SCHEMA, files_in, people, spinney, write_people

HOLDER = "For the holder only: this page describes the private table; do not publish it."
FAULTY_TABLE = people() + "SECRET,SECRET,SECRET\n"


def test_a_table_that_fits_ends_with_0(tmp_path: Path) -> None:
    """Values outside the bounds are warned of, and do not fail."""
    table, schema = write_people(tmp_path)
    run = spinney("check", table, "--schema", schema)
    assert run.status == 0
    assert run.out.splitlines()[0] == HOLDER
    assert "The table has 500 rows." in run.out
    assert "No faults." in run.out
    assert "column 'x': values above high=1.0 would be moved to that bound (1 row)" in run.out
    assert "Method forest: column 'colour' is a category." in run.out
    assert files_in(tmp_path) == {"people.csv", "schema.toml"}, "nothing is written"


def test_all_faults_end_with_1(tmp_path: Path) -> None:
    table, schema = write_people(tmp_path, table=FAULTY_TABLE, schema=SCHEMA + '[columns.more]\ntype = "boolean"\n')
    run = spinney("check", table, "--schema", schema, "--target", "color")
    assert run.status == 1
    assert run.out.splitlines()[0] == HOLDER
    for phrase in ("'more' is in the schema", "did you mean 'colour'", "column 'x'", "column 'age'", "column 'colour'"):
        assert phrase in run.out
    assert "error: the check found 5 faults, listed above" in run.err


@pytest.mark.parametrize("is_faulty", [False, True])
def test_json_says_the_same(tmp_path: Path, is_faulty: bool) -> None:
    table, schema = write_people(tmp_path, table=FAULTY_TABLE if is_faulty else None)
    run = spinney("check", table, "--schema", schema, "--json")
    assert run.status == int(is_faulty)
    assert run.json["for"] == HOLDER
    assert run.json["is_clean"] is not is_faulty
    assert len(run.json["faults"]) == (3 if is_faulty else 0)
    assert run.json["method"] == "forest"
    if is_faulty:
        assert json.loads(run.err) == {"error": "the check found 3 faults, listed above"}


def test_tables_come_as_for_fit(tmp_path: Path) -> None:
    """A pipe, a pattern, a folder and a compressed file give the findings of the file."""
    table, schema = write_people(tmp_path, table=FAULTY_TABLE)
    expected = spinney("check", table, "--schema", schema, "--json").json
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "a.csv.gz").write_bytes(gzip.compress(FAULTY_TABLE.encode()))
    piped = spinney("check", "-", "--schema", schema, "--json", stdin=FAULTY_TABLE).json
    for found in [
        piped,
        *(spinney("check", place, "--schema", schema, "--json").json for place in (folder, folder / "*")),
    ]:
        assert [fault["column"] for fault in found["faults"]] == [fault["column"] for fault in expected["faults"]]
        assert found["warnings"] == expected["warnings"]


def test_a_faulty_schema_is_listed_whole(tmp_path: Path) -> None:
    """The template that `spinney schema` writes is told column by column."""
    table, schema = write_people(tmp_path)
    schema.unlink()
    assert spinney("schema", table, "--out", schema).status == 0
    run = spinney("check", table, "--schema", schema)
    assert run.status == 1
    for name in ("x", "age", "colour"):
        assert f"column '{name}'" in run.out


@pytest.mark.parametrize("missing", ["table", "schema"])
def test_a_missing_file_is_a_wrong_call(tmp_path: Path, missing: str) -> None:
    table, schema = write_people(tmp_path)
    {"table": table, "schema": schema}[missing].unlink()
    assert spinney("check", table, "--schema", schema).status == 2
