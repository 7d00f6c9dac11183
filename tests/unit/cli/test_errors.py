"""A wrong call ends with 2 and a failed run with 1. The message helps and quotes nothing private; no file is left.

`commands.spinney` checks every run for tracebacks and for the markers that the tables hold.
"""

from __future__ import annotations

import contextlib
import errno
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spinney.cli import tables
from spinney.cli.command import TRACEBACK_VARIABLE
from spinney.privacy.ledger import Ledger
from spinney.synthesizers.forest import ForestSynthesizer
from spinney.synthesizers.tree import KDTreeSynthesizer
from support.command_line import MARKER_ROW, SCHEMA, files_in, people, spinney, write_people
from support.in_one_test import in_one_test


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder / "people.spinney"


def fit(tmp_path: Path, out: Path, *options: Any, table: str | bytes | None = None, schema: str = SCHEMA) -> Any:
    table_path, schema_path = write_people(tmp_path, schema=schema)
    if table is not None:
        table_path.write_bytes(table if isinstance(table, bytes) else table.encode())
    arguments = ["fit", table_path, "--schema", schema_path, "--out", out, *options]
    if "--epsilon" not in options:
        arguments += ["--epsilon", "1"]
    run = spinney(*arguments)
    assert not files_in(out.parent), "nothing may be left behind"
    return run


# ------------------------------------------------------------------------------------------------ wrong calls


@in_one_test(
    ("options", "phrase"),
    [
        (["--epsilon", "0"], "epsilon=0 is not positive"),
        (["--epsilon", "-1"], "epsilon=-1 is not positive"),
        (["--epsilon", "lots"], "epsilon='lots' is not a number"),
        (["--epsilon", "nan"], "epsilon"),
        (["--epsilon", "1e99"], "epsilon=1e99"),
        (["--method", "wood"], "wood"),
        (["--delta", "x"], "delta='x'"),
        (["--delta", "1"], "delta=1"),
        (["--target", "zz"], "target='zz' is not a column"),
        (["--method", "forest", "--target", "zz"], "target='zz' is not a column"),
        (["--quality", "better"], "better"),
        (["--rule", "paper", "--delta", "0"], "--rule is for the tree and --delta for the forest"),
        (["--method", "tree", "--target", "colour"], "--target is for --method forest, not for --method tree"),
        (["--method", "forest", "--threshold", "3"], "--threshold is for --method tree or --method grid"),
        (["--unit", "person"], "person"),
        (["--fixed-depth", "many"], "many"),
        (["--max-depth", "9999"], "max_depth=9999"),
        (["--fixed-depth", "5"], "--fixed-depth is for the tree by --rule paper; add --rule paper, or leave it out"),
        (["--rule", "paper", "--moments"], "--moments is for the tree by --rule privtree; say --rule privtree"),
        (["--rule", "paper", "--fixed-depth", "5", "--max-depth", "3"], "h=5"),
        (["--rule", "paper", "--fixed-depth", "5", "--largest-edge", "3"], "h or s1"),
        (["--tree-share", "1"], "tree_share=1"),
        (["--rule", "paper", "--cutoff", "-3"], "tau=-3"),
        (["--threshold", "x"], "threshold='x'"),
        (["--bins", "3"], "--method grid"),
        (["--method", "grid", "--rule", "paper"], "--method tree"),
        (["--method", "grid", "--bins", "0"], "bins='0'"),
        (["--method", "grid", "--bins", "3", "--bin-width", "2"], "not both"),
        (["--method", "grid", "--bins", "zz=3"], "'zz'"),
        (["--method", "grid", "--bins", "x=3"], "'age'"),
        (["--unit", "add-remove", "--assumed-rows", "0"], "assumed_rows=0"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_bad_options_are_wrong_calls(tmp_path: Path, out: Path, options: list[str], phrase: str) -> None:
    run = fit(tmp_path, out, *options)
    assert run.status == 2
    assert run.err.startswith("error: ")
    assert phrase in run.err


@pytest.mark.parametrize(
    ("schema", "phrase"),
    [
        ("[columns.x\n", "not valid TOML"),
        ("x = 3\n", "columns"),
        ("", "columns"),
        (SCHEMA.replace("high = 120", ""), "column 'age'"),
        (SCHEMA.replace("integer", "whole"), "column 'age': type 'whole'"),
        (SCHEMA.replace("low = 0\n", "low = 500\n"), "column 'age'"),
        (SCHEMA.replace("low = 0\n", "lowest = 0\n"), "'lowest'"),
        (SCHEMA + "[columns.more]\ntype = 'boolean'\n", "column 'more' is in the schema but not in the table"),
        (SCHEMA.replace("columns.colour", "columns.color"), "column 'colour' is in the table but not in the schema"),
    ],
)
def test_bad_schemas_are_wrong_calls(tmp_path: Path, out: Path, schema: str, phrase: str) -> None:
    run = fit(tmp_path, out, schema=schema)
    assert run.status == 2
    assert phrase in run.err


@in_one_test(
    "arguments",
    [
        ["fit", "TABLE", "--schema", "nowhere.toml", "--epsilon", "1", "--out", "OUT"],
        ["fit", "nowhere.csv", "--schema", "SCHEMA", "--epsilon", "1", "--out", "OUT"],
        ["fit", "TABLE", "--schema", "SCHEMA", "--out", "OUT"],
        ["fit", "TABLE", "--schema", "SCHEMA", "--epsilon", "1"],
        ["fit", "TABLE", "--schema", "SCHEMA", "--epsilon", "1", "--out", "FOLDER"],
        ["fit", "TABLE", "--schema", "SCHEMA", "--epsilon", "1", "--out", "FOLDER/none/r.spinney"],
        ["fit", "TABLE", "--schema", "SCHEMA", "--epsilon", "1", "--out", "-"],
        ["fit", "TABLE", "--schema", "SCHEMA", "--epsilon", "1", "--out", "TABLE", "--force"],
        ["fit", "TABLE", "--schema", "SCHEMA", "--epsilon", "1", "--out", "SCHEMA", "--force"],
        ["fit", "FOLDER", "--schema", "SCHEMA", "--epsilon", "1", "--out", "OUT"],
        ["fit", "SCHEMA", "--schema", "SCHEMA", "--epsilon", "1", "--out", "OUT"],
        ["schema", "nowhere.csv"],
        ["schema", "TABLE", "--out", "FOLDER/none/s.toml"],
        ["sample", "nowhere.spinney", "--out", "OUT"],
        ["sample", "TABLE", "--out", "OUT"],
        ["sample", "TABLE", "--out", "FOLDER/x.csv", "--rows", "some"],
        ["card", "nowhere.spinney"],
        ["card"],
        ["picture", "nowhere.spinney", "--out", "FOLDER/p.png"],
        ["picture", "TABLE", "--out", "FOLDER/p.bmp"],
        ["demo", "--out", "TABLE"],
        ["demo", "--out", "FOLDER/none/demo"],
        ["plant"],
        [],
    ],
)
def test_wrong_calls_touch_nothing(tmp_path: Path, out: Path, arguments: list[str]) -> None:
    table, schema = write_people(tmp_path)
    before = table.read_bytes(), schema.read_bytes()
    names = {"TABLE": table, "SCHEMA": schema, "OUT": out, "FOLDER": out.parent}

    def filled(argument: str) -> str:
        for name, path in names.items():
            if argument.startswith(name):
                return str(path) + argument.removeprefix(name)
        return argument

    run = spinney(*map(filled, arguments))
    assert run.status == 2
    assert (table.read_bytes(), schema.read_bytes()) == before
    assert not files_in(out.parent)


def test_the_output_is_checked_before_the_table_is_read(
    tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release that cannot be saved must not cost budget, nor the time of reading a large table."""
    table, schema = write_people(tmp_path)
    out.write_text("precious")

    def read_nothing(*_: Any, **__: Any) -> None:
        raise AssertionError("the table was read")

    monkeypatch.setattr("spinney.synthesizers.base.open_source", read_nothing)
    run = spinney("fit", table, "--schema", schema, "--epsilon", "1", "--out", out)
    assert run.status == 2
    assert "exists" in run.err
    assert "--force" in run.err
    assert out.read_text() == "precious"


# ------------------------------------------------------------------------------------------------ failed runs


@in_one_test(
    ("table", "phrase"),
    [
        ("", "empty"),
        ("\n", "empty"),
        ("x,age,colour\n", "no rows"),
        ("x,age,colour", "no rows"),
        ("x,age,colour\nSECRET,3,red\n", "column 'x'"),
        ("x,age,colour\n0.5,SECRET,red\n", "column 'age'"),
        ("x,age,colour\n0.5,3.25,red\n" + MARKER_ROW, "column 'age'"),
        ("x,age,colour\n0.5,3,SECRET\n", "column 'colour'"),
        ("x,age,colour\n,3,red\n" + MARKER_ROW, "column 'x'"),
        ("x,age,colour\n0.5,,red\n" + MARKER_ROW, "column 'age'"),
        ("x,age,colour\n0.5,3,\n" + MARKER_ROW, "column 'colour'"),
        ("x,age,colour\ninf,3,red\n" + MARKER_ROW, "column 'x'"),
        ("x,age,colour\n0.5,3\n987654.321,4,red\n", "fields"),
        ("x,age,colour\n0.5,3,red,SECRET\n", "fields"),
        ("x,age,colour,x\n0.5,3,red,987654.321\n", "same name"),
        (MARKER_ROW + "\n0.5,SECRET,red\n", "header"),
        ("x;age;colour\n987654.321;3;red\n", "header"),
        (b"x,age,colour\n0.5,3,\xffSECRET\n", "column 'colour'"),
        (b"x,age,\xffSECRET\n0.5,3,red\n", "UTF-8"),
        (b"\x00\x01\x02SECRET\x00", "CSV"),
    ],
)
def test_tables_that_do_not_fit_are_failed_runs(tmp_path: Path, out: Path, table: str | bytes, phrase: str) -> None:
    run = fit(tmp_path, out, table=table)
    assert run.status == 1
    assert run.err.startswith("error: ")
    assert phrase in run.err


def test_a_bad_value_late_in_a_large_table_is_not_quoted(tmp_path: Path, out: Path) -> None:
    """The reader works in blocks; a column that is not in the schema must not fail on its own inferred type either."""
    rows = "\n".join(["0.5,3,red,1"] * 200_000)
    run = fit(tmp_path, out, table=f"x,age,colour,more\n{rows}\n0.5,3,red,SECRET\n")
    assert run.status == 2
    assert "column 'more' is in the table but not in the schema" in run.err
    run = fit(tmp_path, out, table="x,age,colour\n" + rows.replace(",1", "") + "\nSECRET,3,red\n")
    assert run.status == 1
    assert "column 'x'" in run.err


def test_files_that_are_not_what_their_ending_says(tmp_path: Path, out: Path) -> None:
    _, schema = write_people(tmp_path)
    for name in ("broken.parquet", "broken.csv.gz"):
        path = tmp_path / name
        path.write_bytes(b"SECRET 987654.321")
        for arguments in (["schema", path], ["fit", path, "--schema", schema, "--epsilon", "1", "--out", out]):
            run = spinney(*arguments)
            assert run.status == 1
            assert "damaged" in run.err
    assert not files_in(out.parent)


@pytest.mark.parametrize("content", [b"", b"SECRET", b"PK\x03\x04 SECRET"])
def test_files_that_are_no_releases_are_failed_runs(tmp_path: Path, out: Path, content: bytes) -> None:
    path = tmp_path / "r.spinney"
    path.write_bytes(content)
    for arguments in (
        ["card", path],
        ["sample", path, "--out", out.parent / "a.csv"],
        ["picture", path, "--out", out.parent / "a.png"],
    ):
        assert spinney(*arguments).status == 1
    assert not files_in(out.parent)


def test_a_full_disk_leaves_nothing(tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill_disk(file: Any, schema: Any) -> None:
        file.write(b"half of a file")
        raise OSError(errno.ENOSPC, "No space left on device")

    table, schema = write_people(tmp_path)
    release = tmp_path / "people.spinney"
    assert spinney("fit", table, "--schema", schema, "--epsilon", "1", "--out", release).status == 0
    monkeypatch.setattr(tables.pq, "ParquetWriter", fill_disk)
    run = spinney("sample", release, "--rows", 10, "--out", out.parent / "a.parquet")
    assert run.status == 1
    assert "No space left on device" in run.err
    assert not files_in(out.parent)


def test_a_mistake_of_ours_hides_its_values(tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unforeseen error may quote the data, so only its type is shown."""

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("SECRET")

    monkeypatch.setattr(KDTreeSynthesizer, "fit", fail)
    run = fit(tmp_path, out, "--method", "tree")
    assert run.status == 1
    assert "RuntimeError" in run.err
    assert TRACEBACK_VARIABLE in run.err


# ----------------------------------------------------------------------------------------------------- others


@pytest.mark.parametrize("options", [["--epsilon", "0"], ["--nonsense"], ["--schema", "nowhere"]])
def test_errors_are_json_on_request(tmp_path: Path, out: Path, options: list[str]) -> None:
    run = fit(tmp_path, out, "--json", *options)
    assert run.status == 2
    assert run.out == ""
    assert list(json.loads(run.err)) == ["error"]


def test_failed_runs_are_json_on_request(tmp_path: Path, out: Path) -> None:
    run = fit(tmp_path, out, "--json", table="x,age,colour\nSECRET,3,red\n")
    assert run.status == 1
    assert "column 'x'" in json.loads(run.err)["error"]


def test_an_interrupt_while_writing_leaves_nothing(tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(file: Any, schema: Any) -> None:
        file.write(b"half of a file")
        raise KeyboardInterrupt

    table, schema = write_people(tmp_path)
    release = tmp_path / "people.spinney"
    assert spinney("fit", table, "--schema", schema, "--epsilon", "1", "--out", release).status == 0
    monkeypatch.setattr(tables.pq, "ParquetWriter", interrupted)
    run = spinney("sample", release, "--rows", 10, "--out", out.parent / "a.parquet")
    assert run.status == 130
    assert "interrupted; no output was written" in run.err
    assert "ledger" not in run.err
    assert not files_in(out.parent)


def test_an_interrupted_fit_tells_of_its_charge(tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is charged the message leaves it open; after a charge it says how much."""

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ForestSynthesizer, "fit", interrupted)
    run = fit(tmp_path, out)
    assert run.status == 130
    assert "interrupted; no finished output was written, though a ledger may have been charged" in run.err
    monkeypatch.undo()
    release = ForestSynthesizer._release

    def interrupted_late(self: Any, *given: Any) -> None:
        release(self, *given)
        raise KeyboardInterrupt

    monkeypatch.setattr(ForestSynthesizer, "_release", interrupted_late)
    ledger = tmp_path / "people.ledger"
    Ledger.create(ledger, limit=2, delta="1e-5")
    run = fit(tmp_path, out, "--ledger", ledger)
    assert run.status == 130
    assert "interrupted; epsilon=1 with delta=1e-06 was charged to" in run.err


def test_control_c_ends_with_130(tmp_path: Path, out: Path) -> None:
    """Interrupted while it waits for rows on standard input."""
    _, schema = write_people(tmp_path)
    # A process that is started in the background of a shell ignores interrupts unless told otherwise.
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from spinney.cli import main; main()"
    )
    command = [sys.executable, "-c", code, "fit", "-", "--schema", str(schema), "--epsilon", "1", "--out", str(out)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        # More than a pipe holds: once it is written, the command is reading.
        process.stdin.write(people(20_000).encode())
        process.stdin.flush()
        # A signal just before the next read is only noticed after it, so one may not be enough.
        for _ in range(60):
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=5)
                break
        process.kill()
        message = process.stderr.read().decode()
    assert process.returncode == 130
    assert "interrupted" in message
    assert "Traceback" not in message
    assert not files_in(out.parent)


def test_exit_statuses_hold_in_a_real_process(tmp_path: Path, out: Path) -> None:
    table, schema = write_people(tmp_path)
    command = [sys.executable, "-m", "spinney", "fit", str(table), "--schema", str(schema), "--out", str(out)]
    done = subprocess.run([*command, "--epsilon", "0"], capture_output=True, check=False)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    table.write_text("x,age,colour\nSECRET,3,red\n")
    done = subprocess.run([*command, "--epsilon", "1"], capture_output=True, check=False)
    assert done.returncode == 1
    assert b"SECRET" not in done.stderr + done.stdout
    assert b"column 'x'" in done.stderr
