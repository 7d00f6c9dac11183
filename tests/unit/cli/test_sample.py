"""`spinney sample`, `card` and `picture`: what can be done with a release, at no cost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import spinney as sp
from spinney.cli import tables
from spinney.errors import FileError
from support import small_forests
from support.command_line import files_in, spinney, write_people


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release")
    table, schema = write_people(folder)
    out = folder / "people.spinney"
    assert spinney("fit", table, "--schema", schema, "--epsilon", "1", "--method", "tree", "--out", out).status == 0
    return out


def test_rows_are_written_by_the_ending(release: Path, tmp_path: Path) -> None:
    for name, read in (("a.csv", pacsv.read_csv), ("a.parquet", pq.read_table), ("a.PQ", pq.read_table)):
        run = spinney("sample", release, "--rows", 40, "--out", tmp_path / name)
        assert run.status == 0
        assert "40 synthetic rows" in run.out
        table = read(tmp_path / name)
        assert table.num_rows == 40
        assert table.column_names == ["x", "age", "colour"]


def test_programs_get_json(release: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.csv"
    assert spinney("sample", release, "--rows", 40, "--out", out, "--json").json == {"out": str(out), "rows": 40}


def test_a_seed_repeats_the_rows(release: Path) -> None:
    first, again, other = (spinney("sample", release, "--rows", 50, "--seed", s, "--out", "-").out for s in (7, 7, 8))
    assert first == again
    assert first != other


def test_rows_to_standard_output_are_csv_and_nothing_else(release: Path) -> None:
    run = spinney("sample", release, "--rows", 3, "--out", "-")
    table = pacsv.read_csv(pa.py_buffer(run.out.encode()))
    assert table.num_rows == 3
    assert run.err == ""


def test_as_many_rows_as_the_table_had_by_default(release: Path, tmp_path: Path) -> None:
    assert "500 synthetic rows" in spinney("sample", release, "--out", tmp_path / "a.csv").out


def test_placement_can_be_chosen(release: Path) -> None:
    """Rows at bin centres take few distinct values; rows spread over bins take many."""

    def distinct(placement: str) -> int:
        text = spinney("sample", release, "--rows", 200, "--placement", placement, "--out", "-").out
        return len(set(pacsv.read_csv(pa.py_buffer(text.encode()))["x"].to_pylist()))

    assert distinct("centre") < 100 < distinct("uniform")


def test_an_existing_output_is_kept_unless_forced(release: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.csv"
    out.write_text("precious")
    run = spinney("sample", release, "--rows", 3, "--out", out)
    assert run.status == 2
    assert out.read_text() == "precious"
    assert spinney("sample", release, "--rows", 3, "--out", out, "--force").status == 0
    assert out.read_text() != "precious"


def test_a_release_is_never_overwritten_by_its_own_sample(release: Path, tmp_path: Path) -> None:
    own = tmp_path / "r.csv"
    own.write_bytes(release.read_bytes())
    run = spinney("sample", own, "--rows", 3, "--out", own, "--force")
    assert run.status == 2
    assert "also an input" in run.err
    assert own.read_bytes() == release.read_bytes()


def test_a_reader_that_leaves_early_is_no_error_message(release: Path) -> None:
    """`spinney sample --out - | head -1` is quiet."""
    command = [sys.executable, "-m", "spinney", "sample", str(release), "--rows", "300000", "--out", "-"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b'"x"')
        process.stdout.close()
        assert process.stderr.read() == b""


# ---------------------------------------------------------------------------------------------------- card


def test_the_card_is_text_or_json(release: Path) -> None:
    text = spinney("card", release)
    assert text.status == 0
    assert text.out.rstrip("\n") == str(sp.load(release).card)
    assert spinney("card", release, "--json").json == sp.load(release).card.to_dict()


# ------------------------------------------------------------------------------------------------- picture


def test_pictures_are_svg_or_png(release: Path, tmp_path: Path) -> None:
    svg, png = tmp_path / "p.svg", tmp_path / "p.png"
    assert spinney("picture", release, "--columns", "x,age", "--out", svg).status == 0
    assert spinney("picture", release, "--columns", "colour,age", "--out", png).status == 0
    assert b"<svg" in svg.read_bytes()[:500]
    assert png.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("columns", "phrase"),
    [([], "3 columns"), (["--columns", "x"], "two different"), (["--columns", "x,zz"], "'zz' is not one of x, age")],
)
def test_two_columns_have_to_be_named(release: Path, tmp_path: Path, columns: list[str], phrase: str) -> None:
    run = spinney("picture", release, *columns, "--out", tmp_path / "p.png")
    assert run.status == 2
    assert phrase in run.err
    assert not (tmp_path / "p.png").exists()


def test_a_picture_without_matplotlib_names_the_extra(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    run = spinney("picture", release, "--columns", "x,age", "--out", tmp_path / "p.png")
    assert run.status == 1
    assert "pip install matplotlib" in run.err
    assert not (tmp_path / "p.png").exists()


# ------------------------------------------------------------------------------------------------------ several draws


@pytest.fixture
def forest(tmp_path: Path) -> Path:
    """The file of a small forest."""
    path = tmp_path / "forest.spinney"
    small_forests.fitted().release_.save(path)
    return path


def test_draws_are_files_of_their_own(forest, tmp_path):
    """One file for each table, numbered from 1, the same as from Python; a seed repeats them."""
    out = tmp_path / "rows-{draw}.parquet"
    run = spinney("sample", forest, "--rows", 20, "--draws", 3, "--seed", 5, "--out", out)
    assert run.status == 0
    assert "wrote 3 tables of 20 synthetic rows each" in run.out
    drawn = sp.load(forest).sample(20, draws=3, seed=5, frame="pyarrow")
    for number, table in enumerate(drawn, start=1):
        assert pq.read_table(tmp_path / f"rows-{number}.parquet").equals(table)
    described = spinney("sample", forest, "--draws", 2, "--rows", 5, "--out", tmp_path / "{draw}.csv", "--json").json
    assert described == {"out": [str(tmp_path / f"{k}.csv") for k in (1, 2)], "rows": 5, "draws": 2}
    asked = ("--where", "kind=a,b", "--balance", "label=0.5")
    assert spinney("sample", forest, "--draws", 2, "--rows", 9, *asked, "--out", tmp_path / "w{draw}.csv").status == 0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--draws", 3, "--out", "rows.parquet"), "put {draw} into --out"),
        (("--draws", 3, "--out", "-"), "put {draw} into --out"),
        (("--draws", 1, "--out", "rows-{draw}.parquet"), "leave draws out"),
        (("--draws", 0, "--out", "rows-{draw}.parquet"), "whole number of tables"),
        (("--draws", 3, "--out", "rows-{draw}.xyz"), "does not end in"),
        (("--draws", 3, "--out", "rows-{draw}.csv", "--where", "kind=z"), "kind"),
    ],
)
def test_wrong_draws_are_refused_and_leave_no_file(forest, tmp_path, monkeypatch, options, told):
    """With what to type instead."""
    monkeypatch.chdir(tmp_path)
    run = spinney("sample", forest, "--rows", 5, *options)
    assert run.status != 0
    assert told in run.err
    assert files_in(tmp_path) == {"forest.spinney"}


def test_draws_do_not_overwrite_and_are_all_there_or_none(forest, tmp_path, monkeypatch):
    """A file in the way is found before anything is drawn; where one cannot be written, those before it go."""
    (tmp_path / "rows-2.csv").write_text("mine")
    out = tmp_path / "rows-{draw}.csv"
    run = spinney("sample", forest, "--rows", 5, "--draws", 3, "--out", out)
    assert run.status != 0
    assert files_in(tmp_path) == {"forest.spinney", "rows-2.csv"}
    (tmp_path / "rows-2.csv").unlink()
    honest = tables.write_table

    def full(table, target, *, overwrite):
        if target.endswith("3.csv"):
            raise FileError("no space left")
        honest(table, target, overwrite=overwrite)

    monkeypatch.setattr(tables, "write_table", full)
    assert spinney("sample", forest, "--rows", 5, "--draws", 3, "--out", out).status != 0
    assert files_in(tmp_path) == {"forest.spinney"}
