"""`spinney compare`: distances for the holder, and a few rows under a mark of their own; no file is written."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import spinney as sp
from spinney import metrics
from support.command_line import SCHEMA, files_in, spinney, write_people


@pytest.fixture
def both(tmp_path: Path) -> tuple[Path, Path, Path]:
    """A real table, a synthetic one and their schema."""
    table, schema = write_people(tmp_path)
    synthetic = tmp_path / "synthetic.csv"
    rows = pl.read_csv(table).with_columns(x=pl.col("x").clip(0, 1) / 2)
    rows.write_csv(synthetic)
    return table, synthetic, schema


def test_the_page_and_its_json_agree_with_the_library(both: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """The page says that it is not private, names the worst column first, and nothing is written."""
    real, synthetic, schema = both
    before = files_in(tmp_path)
    run = spinney("compare", real, synthetic, "--schema", schema)
    assert run.status == 0
    lines = run.out.splitlines()
    assert lines[0] == "For the holder of the real table only: these figures are computed from it without noise."
    assert lines[3].startswith("x ")
    found = metrics.compare(pl.read_csv(real), pl.read_csv(synthetic), sp.Schema.from_toml(SCHEMA))
    assert run.out.strip() == str(found)
    assert "real rows, FOR THE HOLDER ONLY" in run.out
    as_json = spinney("compare", real, synthetic, "--schema", schema, "--json").json
    assert as_json["worst_ks"] == {"column": "x", "ks": found.columns["x"].ks}
    assert len(as_json["pairs"]) == 3
    assert as_json["triples"] == []
    assert files_in(tmp_path) == before


def test_options_reach_the_library(both: tuple[Path, Path, Path]) -> None:
    """Columns together, bins and scale."""
    real, synthetic, schema = both
    found = spinney(
        "compare", real, synthetic, "--schema", schema, "--ways", "3", "--bins", "4", "--scale", "range", "--json"
    ).json
    expected = metrics.compare(
        pl.read_csv(real), pl.read_csv(synthetic), sp.Schema.from_toml(SCHEMA), ways=3, bins=4, scale="range"
    )
    assert found == expected.to_dict()
    assert len(found["triples"]) == 1


def test_the_schema_of_a_release_is_taken_where_bounds_were_private(tmp_path: Path) -> None:
    """A schema with open bounds is refused with what to do; the release has them all."""
    open_schema = SCHEMA.replace("low = 0.0\nhigh = 1.0", 'bounds = "private"')
    table, schema = write_people(tmp_path, schema=open_schema)
    release, rows = tmp_path / "people.spinney", tmp_path / "rows.csv"
    assert spinney("fit", table, "--schema", schema, "--epsilon", "5", "--out", release).status == 0
    assert spinney("sample", release, "--out", rows, markers=()).status == 0
    refused = spinney("compare", table, rows, "--schema", schema)
    assert refused.status == 2
    assert "use the schema of the release" in refused.err
    assert spinney("compare", table, rows, "--release", release).status == 0


def test_tables_of_several_files_and_other_csv(both: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """A folder of Parquet files is one table, and CSV options describe the real one."""
    real, synthetic, schema = both
    expected = spinney("compare", real, synthetic, "--schema", schema).out
    folder = tmp_path / "parts"
    folder.mkdir()
    rows = pl.read_csv(real)
    rows[:100].write_parquet(folder / "1.parquet")
    rows[100:].write_parquet(folder / "2.parquet")
    assert spinney("compare", folder, synthetic, "--schema", schema).out == expected
    other = tmp_path / "other.csv"
    rows.write_csv(other, separator=";")
    assert spinney("compare", other, synthetic, "--schema", schema, "--delimiter", ";").out == expected


def test_wrong_calls_are_told(both: tuple[Path, Path, Path]) -> None:
    """Neither or both of schema and release, a column that is missing, a value that cannot be read."""
    real, synthetic, schema = both
    run = spinney("compare", real, synthetic)
    assert run.status == 2
    assert "give either --schema or --release" in run.err
    assert spinney("compare", real, synthetic, "--schema", schema, "--ways", "4").status == 2
    assert spinney("compare", real, real.parent / "absent.csv", "--schema", schema).status == 2
    synthetic.write_text("x,age\n0.5,3\n")
    run = spinney("compare", real, synthetic, "--schema", schema)
    assert run.status == 2
    assert "'colour'" in run.err
    synthetic.write_text("x,age,colour\n0.5,SECRET,red\n")
    run = spinney("compare", real, synthetic, "--schema", schema)
    assert run.status == 1
    assert "'age'" in run.err
