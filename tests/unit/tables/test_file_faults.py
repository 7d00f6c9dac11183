"""Files that are damaged, differ, change or vanish; disks that fill up; runs that are interrupted or killed.

Each ends in a message that names the file and nothing that is in it, without a release, and with a whole ledger.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import spinney as sp
from spinney import files as whole_files
from spinney.errors import FileError, InputError, SchemaError
from spinney.release import file as storage
from spinney.tables import csv_reader as csv_lines
from spinney.tables import paths
from spinney.tables.engines import files
from spinney.tables.open import open_source
from support.command_line import files_in, spinney
from support.in_one_test import in_one_test

SCHEMA = sp.Schema({"x": sp.Real(0, 1), "k": sp.Category(["a", "b"])})
MODELS = [sp.KDTreeSynthesizer(1), sp.ForestSynthesizer(1)]
PARTS = ("a.parquet", "b.parquet", "c.parquet")


def part(seed: int, n_rows: int = 3000) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({"x": rng.random(n_rows), "k": rng.choice(["a", "b"], n_rows)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three Parquet files."""
    folder = tmp_path / "table"
    folder.mkdir()
    for seed, name in enumerate(PARTS):
        pq.write_table(part(seed), folder / name, compression="none", use_dictionary=False)
    return folder


def refused(frame, error: type[Exception], message: str, **options) -> None:
    """Nothing is charged, and no private value is anywhere in the error or what led to it."""
    for model in MODELS:
        ledger = sp.Ledger(limit=5, delta="1e-5")
        with pytest.raises(error, match=message) as caught:
            model.fit(frame, SCHEMA, ledger=ledger, **options)
        assert not ledger.events
        assert "SECRET" not in "".join(traceback.format_exception(caught.value))


# ------------------------------------------------------------------------------------------------ damaged files


@in_one_test("engine", [None, "polars", "duckdb", "memory"])
@in_one_test("keep", [0, 3, 0.5, -4])
def test_truncated_files(folder, keep, engine):
    """A file that ends too soon, in the middle of a pattern, is named."""
    path = folder / "b.parquet"
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content)) if isinstance(keep, float) else keep])
    refused(folder, InputError, r"b\.parquet' is damaged, or not in the format", engine=engine)


@pytest.mark.parametrize("engine", [None, "polars", "duckdb"])
def test_damaged_pages(folder, engine):
    """A file whose footer is sound and whose pages are not."""
    path = folder / "b.parquet"
    content = bytearray(path.read_bytes())
    content[4:20_000] = b"\xff" * (20_000 - 4)
    path.write_bytes(content)
    refused(folder, InputError, r"b\.parquet'", engine=engine)


def test_damaged_compression(tmp_path):
    import gzip

    pacsv.write_csv(part(0), tmp_path / "t.csv")
    packed = gzip.compress((tmp_path / "t.csv").read_bytes())
    path = tmp_path / "t.csv.gz"
    path.write_bytes(packed[: len(packed) // 2])
    refused(path, InputError, r"t\.csv\.gz' is damaged")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.append_column("SOME", table["k"]), "column 'SOME' is in the table but not in the schema"),
        (lambda table: table.drop_columns("x"), "column 'x' is in the schema but not in the table"),
        (
            lambda table: table.set_column(0, "x", pa.array([True] * len(table))),
            "column 'x' has type Boolean in the table",
        ),
    ],
)
def test_another_schema_in_the_middle(folder, monkeypatch, change, message):
    """Found before any row of any file is read."""
    pq.write_table(change(part(1)), folder / "b.parquet")
    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", lambda *_, **__: pytest.fail("rows were read"))
    refused(folder, SchemaError, rf"b\.parquet': {message}")


def test_another_header_in_the_middle(tmp_path):
    for name, header in (("a", "x,k"), ("b", "x,colour"), ("c", "x,k")):
        (tmp_path / f"{name}.csv").write_text(f"{header}\n0.5,a\n")
    refused(f"{tmp_path}/*.csv", SchemaError, r"b\.csv': column 'colour' is in the table but not in the schema")
    (tmp_path / "b.csv").write_text("SECRET,quarter\n0.5,a\n")
    refused(f"{tmp_path}/*.csv", InputError, r"b\.csv': the first row of the CSV names none of the schema's columns")
    (tmp_path / "b.csv").write_text("0.25,SECRET\n0.5,a\n")
    refused(f"{tmp_path}/*.csv", InputError, r"b\.csv': the first line of the CSV must name the columns.*--no-header")


@pytest.mark.parametrize("late", ["SECRET,a", "0.5,SECRET", "0.5", "0.5,a,SECRET", "0.5,\xff"])
def test_bad_rows_late_in_a_csv(tmp_path, monkeypatch, late):
    """In a later block of the last file; a value that fits no list names its column, the rest the file too."""
    monkeypatch.setattr(csv_lines, "BLOCK_BYTES", 1 << 12)
    (tmp_path / "a.csv").write_text("x,k\n0.5,a\n")
    (tmp_path / "b.csv").write_bytes(("x,k\n" + "0.5,a\n" * 3000 + late + "\n").encode("latin-1"))
    refused(tmp_path, InputError, r"b\.csv'|column 'k'")


# -------------------------------------------------------------------------------------------- nothing to be read


def test_nothing_there(tmp_path):
    refused(tmp_path / "nowhere.csv", FileError, r"nowhere\.csv' does not exist")
    refused(f"{tmp_path}/*.parquet", FileError, "no file matches")
    refused(tmp_path, FileError, "holds no file that ends in")


def test_a_folder_that_may_not_be_read(folder, monkeypatch):
    def refuse(place):
        raise PermissionError(errno.EACCES, "Permission denied", place)

    monkeypatch.setattr(paths.os, "scandir", refuse)
    refused(folder, FileError, "the folder '.*table' cannot be read: Permission denied")


def test_a_file_that_may_not_be_read(folder, monkeypatch):
    def refuse(path, **_):
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(files.pq, "ParquetFile", refuse)
    refused(folder, FileError, r"a\.parquet' cannot be read: Permission denied")


def test_a_file_that_vanishes(folder):
    source = open_source(folder, SCHEMA)
    (folder / "c.parquet").unlink()
    with pytest.raises(FileError, match=r"c\.parquet' cannot be read: No such file"):
        source.check_values()


# -------------------------------------------------------------------------------------------- tables that change


@pytest.mark.parametrize("n_rows", [2999, 3000, 3001])
@pytest.mark.parametrize("engine", [None, "polars", "duckdb"])
def test_a_file_that_changes_between_passes(folder, n_rows, engine):
    """Shorter, longer or only other rows: what was counted before was another table."""
    source = open_source(folder, SCHEMA, engine=engine)
    source.check_values()
    pq.write_table(part(9, n_rows), folder / "b.parquet")
    for read in (source.check_values, lambda: source.true_extremes("x")):
        with pytest.raises(InputError, match=r"b\.parquet': the table changed while it was read"):
            read()


def test_a_file_that_changes_during_a_pass(folder):
    """Even if its rows were handed out already."""
    source = open_source(folder, SCHEMA)
    batches = source._batches(SCHEMA)
    next(batches).read()
    with (folder / "a.parquet").open("ab") as file:
        file.write(b"more")
    with pytest.raises(InputError, match=r"a\.parquet': the table changed while it was read"):
        [batch.read() for batch in batches]


def test_a_csv_that_shrinks(tmp_path):
    path = tmp_path / "t.csv"
    pacsv.write_csv(part(0), path)
    source = open_source(path, SCHEMA)
    assert source.n_rows == 3000
    os.truncate(path, 5000)
    with pytest.raises(InputError, match=r"t\.csv': the table changed while it was read"):
        source.check_values()


def test_a_relation_that_changes_between_passes():
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT random() AS x, 'a' AS k FROM range(100)")
        source = open_source(connection.table("t"), SCHEMA)
        source.check_values()
        connection.execute("DELETE FROM t WHERE x < 0.5")
        with pytest.raises(InputError, match="the table changed while it was read"):
            source.check_values()


# --------------------------------------------------------------------------------- errors of other engines


def test_errors_of_other_engines_are_not_passed_on(tmp_path):
    """Their messages quote values; ours name the engine's kind of error."""
    frame = pl.LazyFrame({"x": ["0.5", "SECRET"], "k": ["a", "b"]})
    refused(frame.with_columns(pl.col("x").cast(pl.Float64)), InputError, "LazyFrame could not be computed")
    relation = duckdb.sql("SELECT x::DOUBLE AS x, 'a' AS k FROM (VALUES ('0.5'), ('SECRET')) t(x)")
    refused(relation, InputError, "DuckDB relation could not be computed")
    refused(pl.scan_parquet(tmp_path / "SECRET.parquet"), InputError, "LazyFrame could not be computed")


def test_a_value_that_does_not_fit(folder):
    """Values are told of as in any table: by column."""
    table = part(1).set_column(1, "k", pa.array(["SECRET"] * 3000))
    pq.write_table(table, folder / "b.parquet")
    for frame in (folder, pl.scan_parquet(folder), duckdb.sql(f"FROM '{folder}/*.parquet'")):
        refused(frame, InputError, "column 'k': some value is not in the schema's list of values")


# ------------------------------------------------------------------------------- full disks, interruptions, kills


@pytest.fixture
def job(folder, tmp_path):
    """Arguments of a fit with a ledger, and the folder where its outputs go."""
    out = tmp_path / "out"
    out.mkdir()
    SCHEMA.to_file(tmp_path / "schema.toml")
    sp.Ledger.create(tmp_path / "books.ledger", limit=5)
    arguments = [
        "fit",
        f"{folder}/*.parquet",
        "--schema",
        tmp_path / "schema.toml",
        "--epsilon",
        "1",
        "--method",
        "tree",
    ]
    return [*arguments, "--ledger", tmp_path / "books.ledger", "--out", out / "r.spinney"], out


def spent(job) -> int:
    return sp.Ledger.open(job[0][job[0].index("--ledger") + 1]).spent


def test_a_full_disk(job, monkeypatch):
    """The release is lost and its charge is not: noise was drawn for it. Nothing lies about."""

    def fill_disk(file):
        file.write(b"half of a release")
        raise OSError(errno.ENOSPC, "No space left on device")

    arguments, out = job
    monkeypatch.setattr(
        storage, "write_whole", lambda path, _, overwrite: whole_files.write_whole(path, fill_disk, overwrite=overwrite)
    )
    run = spinney(*arguments)
    assert run.status == 1
    assert "r.spinney': No space left on device" in run.err
    assert not files_in(out)
    assert spent(job) == 1


@pytest.mark.parametrize("at", ["opening", "first batch", "second file"])
def test_interruptions(job, monkeypatch, at):
    """Ctrl-C while the table is read: status 130, no release, nothing left behind, nothing charged."""
    arguments, out = job
    batches, n_pieces = files.ParquetFile._batches, 0

    def interrupted(file, schema):
        nonlocal n_pieces
        for batch in batches(file, schema):
            n_pieces += 1
            if n_pieces == (2 if at == "second file" else 1):
                raise KeyboardInterrupt
            yield batch

    def at_once(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(
        files.ParquetFile, "_types" if at == "opening" else "_batches", at_once if at == "opening" else interrupted
    )
    run = spinney(*arguments)
    assert run.status == 130
    assert "interrupted" in run.err
    assert not files_in(out)
    assert spent(job) == 0


KILLED = """
import sys, time
import spinney.files
from spinney.cli.app import app
from spinney.tables.engines import files

def sleep(*_):
    print("here", flush=True)
    time.sleep(600)

if sys.argv[1] == "reading":
    batches = files.ParquetFile._batches
    files.ParquetFile._batches = lambda file, schema: (sleep if "b.parquet" in file.path else batches)(file, schema)
else:
    from spinney.release import file as storage
    storage.write_whole = lambda path, write, overwrite: spinney.files.write_whole(
        path, lambda file: (file.write(b"half"), sleep()), overwrite=overwrite
    )
app.main(sys.argv[2:])
"""


@pytest.mark.skipif(os.name != "posix", reason="processes are killed by a signal")
@pytest.mark.parametrize(("when", "cost"), [("reading", 0), ("writing", 1)])
def test_killed_processes(job, when, cost):
    """Killed while rows are read, or while the release is written: no release, and a ledger that says what was paid."""
    arguments, out = job
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, when, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while (line := process.stdout.readline()) and "here" not in line:
            time.sleep(0.01)
        assert "here" in line, process.stderr.read()
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert not (out / "r.spinney").exists()
    assert spent(job) == cost
    run = spinney(*arguments)
    assert run.status == 0, run.err
    assert spent(job) == cost + 1
    assert sp.load(out / "r.spinney").card.n_rows == 9000
