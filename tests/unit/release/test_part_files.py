"""Folders of parts: whole files, gone on with after a stop, of one sample each, in bounded memory."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import spinney as sp
from spinney.errors import FileError, ParameterError
from spinney.release import parts as part_files
from spinney.release.parts import SampleParts
from support import small_forests
from support.command_line import spinney


@pytest.fixture(scope="module")
def release(square):
    return sp.KDTreeSynthesizer("2").fit(*square, entropy=sp.UnsafeSeededEntropy(1)).release_


@pytest.fixture(scope="module")
def saved(release, tmp_path_factory):
    path = tmp_path_factory.mktemp("release") / "square.spinney"
    release.save(path)
    return path


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def contents(folder):
    return {entry.name: (entry.read_bytes(), entry.stat().st_mtime_ns) for entry in folder.iterdir()}


def test_a_folder_holds_the_parts_and_a_sign_that_it_is_complete(release, tmp_path):
    """Whichever library reads the folder gets all rows, in the order of parts."""
    drawn = release.sample(1001, seed=1, frame="pyarrow", parts=3)
    folder = drawn.to_parquet(tmp_path / "rows")
    assert names(folder) == ["_SUCCESS", "part-000000.parquet", "part-000001.parquet", "part-000002.parquet"]
    expected = pa.concat_tables(list(drawn))
    assert pq.read_table(folder).replace_schema_metadata().equals(expected)
    assert pl.read_parquet(folder).equals(pl.from_arrow(expected))
    assert pl.scan_parquet(folder).collect().shape == (1001, 2)
    assert pd.read_parquet(folder).shape == (1001, 2)
    assert (folder / "_SUCCESS").read_bytes() == b""


def test_the_notes_of_a_file_say_which_sample_it_is_of(release, tmp_path):
    """Release, seed, rows and parts: and nothing that a private table could have told."""
    folder = release.sample(100, seed=1, parts=2).to_parquet(tmp_path / "rows")
    notes = json.loads(pq.read_schema(folder / "part-000001.parquet").metadata[b"spinney"])
    assert notes.keys() == {
        *("format", "version", "rows", "parts", "part", "stream", "release", "seed", "asked", "types", "spinney"),
        "numpy",
    }
    assert (notes["part"], notes["version"]) == (1, 2)
    assert (notes["format"], notes["rows"], notes["parts"], notes["seed"]) == ("spinney-sample", 100, 2, 1)
    assert len(notes["release"]) == len(notes["asked"]) == 64


def test_categories_of_like_are_not_in_the_files(people, tmp_path):
    """A categorical of the private table may list values that the schema does not; they are written nowhere."""
    table, schema = people
    name = next(name for name, column in schema.items() if isinstance(column, sp.Category) and column.is_text)
    listed = [*schema[name].listed, "SECRET"]
    like = table.assign(**{name: pd.Categorical(table[name], categories=listed)})
    release = sp.ForestSynthesizer("1").fit(table, schema, entropy=sp.UnsafeSeededEntropy(1)).release_
    folder = release.sample(60, seed=1, parts=2, like=like).to_parquet(tmp_path / "rows")
    assert not [file for file in folder.iterdir() if b"SECRET" in file.read_bytes()]
    assert pd.read_parquet(folder)[name].dtype == "category"


def test_parts_that_are_there_are_not_drawn_again(release, tmp_path, monkeypatch):
    """A folder with a hole gets what is missing, byte for byte what it was, and the other files are not touched."""
    drawn = release.sample(1001, seed=1, parts=4)
    folder = drawn.to_parquet(tmp_path / "rows")
    before = contents(folder)
    (folder / "part-000002.parquet").unlink()
    (folder / "_SUCCESS").unlink()
    (folder / ".part-000002.parquet.abc.partial").write_bytes(b"half")  # what a killed process leaves
    asked = []
    draw = drawn._draw
    monkeypatch.setattr(drawn, "_draw", lambda part, for_file: asked.append(part.number) or draw(part, for_file))
    drawn.to_parquet(folder)
    assert asked == [2]
    after = contents(folder)
    assert {name: data for name, (data, _) in after.items()} == {name: data for name, (data, _) in before.items()}
    kept = [name for name in before if name not in ("part-000002.parquet", "_SUCCESS")]
    assert all(before[name] == after[name] for name in kept)
    monkeypatch.undo()
    release.sample(1001, seed=1, parts=4).to_parquet(folder)
    assert contents(folder).keys() == before.keys()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"seed": 2}, "another seed"),
        ({"n_rows": 1002}, "another number of rows"),
        ({"parts": 5}, "another number of parts"),
        ({"placement": "centre"}, "other conditions or another placement"),
        ({"like": pa.schema([("x", pa.float32()), ("y", pa.float32())])}, "other column types"),
    ],
)
def test_a_folder_of_another_sample_is_refused_and_kept(release, tmp_path, change, told):
    """Unless it may be overwritten."""
    asked = {"n_rows": 1001, "seed": 1, "parts": 4}
    folder = release.sample(**asked).to_parquet(tmp_path / "rows")
    before = contents(folder)
    other = release.sample(**(asked | change))
    with pytest.raises(FileError, match=told):
        other.to_parquet(folder)
    assert contents(folder) == before
    other.to_parquet(folder, overwrite=True)
    assert pq.read_table(folder).num_rows == other.n_rows
    assert len(names(folder)) == len(other) + 1


def test_a_folder_of_another_release_or_version_is_refused(release, square, tmp_path, monkeypatch):
    """Rows of two releases, or of two versions that may draw differently, are never mixed."""
    folder = release.sample(100, seed=1, parts=2).to_parquet(tmp_path / "rows")
    other = sp.KDTreeSynthesizer("2").fit(*square, entropy=sp.UnsafeSeededEntropy(2)).release_
    with pytest.raises(FileError, match="another release"):
        other.sample(100, seed=1, parts=2).to_parquet(folder)
    versions = part_files._versions() | {"spinney": "0.0.0"}
    monkeypatch.setattr(part_files, "_versions", lambda: versions)
    with pytest.raises(FileError, match="another version of Spinney"):
        release.sample(100, seed=1, parts=2).to_parquet(folder)


def test_a_release_that_was_loaded_goes_on_with_what_it_began(release, saved, tmp_path):
    """A release in memory and its file are the same release."""
    folder = release.sample(100, seed=1, parts=2).to_parquet(tmp_path / "rows")
    sp.load(saved).sample(100, seed=1, parts=2).to_parquet(folder)


def test_what_is_no_sample_is_left_alone(release, tmp_path):
    """A folder of other files, a damaged part and a file in place of a folder are refused, overwriting or not."""
    drawn = release.sample(100, seed=1, parts=2)
    strange = tmp_path / "strange"
    strange.mkdir()
    (strange / "notes.txt").write_text("precious")
    damaged = drawn.to_parquet(tmp_path / "damaged")
    (damaged / "part-000001.parquet").write_bytes(b"PAR1 not really")
    (tmp_path / "file").write_text("precious")
    for overwrite in (False, True):
        with pytest.raises(FileError, match=r"other files, such as 'notes.txt'"):
            drawn.to_parquet(strange, overwrite=overwrite)
        with pytest.raises(FileError, match="not a part of a sample, or is damaged"):
            drawn.to_parquet(damaged, overwrite=overwrite)
        with pytest.raises(FileError, match="is a file; name a folder"):
            drawn.to_parquet(tmp_path / "file", overwrite=overwrite)
        with pytest.raises(FileError, match="does not exist"):
            drawn.to_parquet(tmp_path / "no" / "where", overwrite=overwrite)
    assert (strange / "notes.txt").read_text() == (tmp_path / "file").read_text() == "precious"


def _copied(folder):
    """Part 1 under the name of part 2, of as many rows."""
    shutil.copy(folder / "part-000001.parquet", folder / "part-000002.parquet")


def _rewritten(file, change):
    """What a table becomes in other hands, under the notes of its file."""
    table = pq.read_table(file)
    pq.write_table(change(table).replace_schema_metadata(table.schema.metadata), file)


def _edited(folder):
    _rewritten(folder / "part-000002.parquet", lambda table: table.set_column(0, "x", pa.array([0.5] * len(table))))


def _of_other_columns(folder):
    _rewritten(folder / "part-000002.parquet", lambda table: pa.table({"z": ["q"] * len(table)}))


def _zeroed(folder):
    file = folder / "part-000002.parquet"
    content = bytearray(file.read_bytes())
    content[100:300] = bytes(200)
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (_copied, "part-000002.parquet' is not the part that its name says; remove it"),
        (_edited, "part-000002.parquet' is not as it was written; remove it"),
        (_of_other_columns, "part-000002.parquet' has other columns than the parts before it"),
        (_zeroed, "part-000002.parquet' is not as it was written; remove it"),
    ],
)
def test_a_part_that_is_not_as_it_was_written_is_never_taken_for_it(release, tmp_path, spoil, told):
    """Copied, edited, of other columns or damaged: the folder is refused, and whole again without that file."""
    drawn = release.sample(1001, seed=1, parts=4)
    folder = drawn.to_parquet(tmp_path / "rows")
    before = {name: data for name, (data, _) in contents(folder).items()}
    (folder / "_SUCCESS").unlink()
    spoil(folder)
    with pytest.raises(FileError, match=told):
        drawn.to_parquet(folder)
    assert not (folder / "_SUCCESS").exists()
    (folder / "part-000002.parquet").unlink()
    drawn.to_parquet(folder)
    assert {name: data for name, (data, _) in contents(folder).items()} == before
    spoil(folder)
    drawn.to_parquet(folder, overwrite=True)
    assert {name: data for name, (data, _) in contents(folder).items()} == before


def test_a_folder_that_an_earlier_version_began_is_told(release, tmp_path, monkeypatch):
    """Its parts have no digest, so that nobody can say whether they are as they were written."""
    drawn = release.sample(100, seed=1, parts=2)
    with monkeypatch.context() as earlier:
        earlier.setattr(part_files, "FORMAT_VERSION", 1)
        earlier.setattr(part_files, "_notes_of_part", lambda notes, _: notes)
        folder = drawn.to_parquet(tmp_path / "rows")
    with pytest.raises(FileError, match="earlier version of Spinney, whose parts cannot be compared"):
        drawn.to_parquet(folder)
    drawn.to_parquet(folder, overwrite=True)


def test_an_array_in_like_cannot_be_written(release, tmp_path):
    """It has no names for columns."""
    with pytest.raises(ParameterError, match="no names of columns"):
        release.sample(10, parts=1, like=np.zeros((1, 2), dtype=np.float32)).to_parquet(tmp_path / "rows")


@pytest.mark.skipif(os.name != "posix", reason="folders are locked on POSIX systems alone")
def test_two_processes_do_not_write_to_one_folder(release, tmp_path):
    """The second is told, and nothing of the first is removed."""
    folder = tmp_path / "rows"
    folder.mkdir()
    (folder / ".part-000000.parquet.x.partial").write_bytes(b"of the other")
    with part_files._locked(folder), pytest.raises(FileError, match="another process is writing parts"):
        release.sample(10, parts=1).to_parquet(folder)
    assert names(folder) == [".part-000000.parquet.x.partial"]


def test_an_interruption_leaves_whole_parts_alone(release, tmp_path, monkeypatch):
    """Ctrl-C while the third part is drawn: whole files, no partial one, no sign of success; then it goes on."""
    drawn = release.sample(400, seed=1, parts=4)
    draw = drawn._draw

    def interrupted(part, for_file):
        if part.number == 2:
            raise KeyboardInterrupt
        return draw(part, for_file)

    monkeypatch.setattr(drawn, "_draw", interrupted)
    with pytest.raises(KeyboardInterrupt) as interrupted_by:
        drawn.to_parquet(tmp_path / "rows")
    left = names(tmp_path / "rows")  # the second may have been written by then, or given up
    assert left in (["part-000000.parquet"], ["part-000000.parquet", "part-000001.parquet"])
    assert interrupted_by.value.__notes__[0].startswith(f"{len(left)} of 4 parts are there")
    monkeypatch.undo()
    drawn.to_parquet(tmp_path / "rows")
    assert pq.read_table(tmp_path / "rows").replace_schema_metadata().num_rows == 400


@pytest.mark.skipif(os.name != "posix", reason="needs a limit on the size of files")
def test_a_disk_that_is_full_leaves_whole_parts_alone(release, tmp_path):
    """The error names the file, nothing partial is left, and the parts that were written stay."""
    drawn = release.sample(40_000, seed=1, parts=2)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(FileError, match=r"cannot write .*part-000000"):
            drawn.to_parquet(tmp_path / "rows")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert names(tmp_path / "rows") == []
    drawn.to_parquet(tmp_path / "rows")


# --------------------------------------------------------------------------------------------------- command line


def test_the_command_line_says_how_many_parts_an_interruption_left(saved, tmp_path, monkeypatch):
    """Ctrl-C reaches click, which makes another error of it: what was noted is told all the same, and no ledger."""
    write_part = part_files._write_part

    def interrupted(file, table):
        if file.name == part_files.part_name(2):
            raise KeyboardInterrupt
        write_part(file, table)

    monkeypatch.setattr(part_files, "_write_part", interrupted)
    run = spinney("sample", saved, "--rows", 400, "--parts", 4, "--seed", 1, "--out", f"{tmp_path / 'rows'}/")
    assert run.status == 130
    assert "interrupted; 2 of 4 parts are there" in run.err
    assert "run the same again" in run.err
    assert "ledger" not in run.err


def test_the_command_line_writes_a_folder(saved, tmp_path):
    """Rows as people write large numbers; a second run finds all done; programs get JSON."""
    out = f"{tmp_path / 'rows'}/"
    run = spinney("sample", saved, "--rows", "1e3", "--parts", 4, "--seed", 7, "--out", out)
    assert (run.status, run.out) == (0, f"wrote 1,000 synthetic rows to 4 files in {out}\n")
    again = spinney("sample", saved, "--rows", "1_000", "--parts", 4, "--seed", 7, "--out", out, "--json")
    assert again.json == {"out": out, "rows": 1000, "parts": 4, "written": 0}
    told = spinney("sample", saved, "--rows", 1000, "--parts", 4, "--seed", 7, "--out", out)
    assert told.out == f"nothing was drawn: all 4 files of 1,000 synthetic rows were in {out} already\n"
    (tmp_path / "rows" / "part-000001.parquet").unlink()
    told = spinney("sample", saved, "--rows", 1000, "--parts", 4, "--seed", 7, "--out", out)
    assert told.out == f"wrote 1,000 synthetic rows to 4 files in {out}, 3 of which were there already\n"
    expected = sp.load(saved).sample(1000, seed=7, parts=4, frame="pyarrow")
    assert pq.read_table(out).replace_schema_metadata().equals(pa.concat_tables(list(expected)))


def test_a_sample_whose_seed_nobody_chose_goes_on_too(saved, tmp_path):
    """The seed is taken from the files that are there."""
    folder = tmp_path / "rows"
    assert spinney("sample", saved, "--rows", 100, "--parts", 3, "--out", f"{folder}/").status == 0
    before = pq.read_table(folder)
    (folder / "part-000001.parquet").unlink()
    assert spinney("sample", saved, "--rows", 100, "--parts", 3, "--out", folder).status == 0
    assert pq.read_table(folder).equals(before)


def test_the_seed_of_a_sample_that_is_overwritten_goes_with_it(saved, square, tmp_path):
    """With --force and no --seed another sample gets a seed of its own; the same one goes on with its seed."""
    folder, other = tmp_path / "rows", tmp_path / "other.spinney"
    sp.KDTreeSynthesizer("2").fit(*square, entropy=sp.UnsafeSeededEntropy(2)).release_.save(other)

    def seed():
        return part_files.seed_of(folder)

    arguments = ("--rows", 100, "--parts", 3, "--out", f"{folder}/", "--force")
    assert spinney("sample", saved, *arguments, "--seed", 77).status == 0
    (folder / "part-000001.parquet").unlink()
    assert spinney("sample", saved, *arguments).status == 0
    assert seed() == 77
    assert spinney("sample", other, *arguments).status == 0
    assert seed() != 77


def test_conditions_go_into_folders(tmp_path):
    """A folder of rows under conditions is not gone on with under others."""
    release = tmp_path / "forest.spinney"
    small_forests.fitted().save(release)
    out = f"{tmp_path / 'rows'}/"
    arguments = ("sample", release, "--rows", 300, "--parts", 3, "--seed", 1, "--out", out)
    assert spinney(*arguments, "--where", "kind=a,b").status == 0
    assert set(pl.read_parquet(out)["kind"]) == {"a", "b"}
    other = spinney(*arguments, "--where", "kind=a,c")
    assert other.status == 1
    assert "other conditions" in other.err
    assert spinney(*arguments, "--where", "kind=a,c", "--force").status == 0
    assert set(pl.read_parquet(out)["kind"]) == {"a", "c"}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--rows", "1.5", "--out", "a/"], "'1.5' is not a whole number, such as 10000, 1_000_000 or 1e9"),
        (["--rows", "1e400", "--out", "a/"], "is not a whole number"),
        (["--rows", "many", "--out", "a/"], "is not a whole number"),
        (["--rows", "10", "--parts", "2", "--out", "a.csv"], "--parts writes Parquet files to a folder"),
        (["--rows", "10", "--parts", "2", "--out", "-"], "--parts writes Parquet files to a folder"),
        (["--rows", "10", "--draws", "2", "--out", "a/"], "--draws writes one file for each table"),
        (["--rows", "10", "--out", "no/where/"], "does not exist; make it first"),
    ],
)
def test_mistakes_on_the_command_line_are_told_before_anything_is_drawn(saved, tmp_path, monkeypatch, arguments, told):
    """Usage errors, with what to type instead."""
    monkeypatch.chdir(tmp_path)
    run = spinney("sample", saved, *arguments)
    assert run.status == 2
    assert told in run.err
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name != "posix", reason="kills by signals")
def test_a_run_that_was_killed_goes_on(saved, tmp_path):
    """SIGKILL in the middle: every file that is there is whole, and the next run makes the folder of an unhurt one."""
    arguments = ["sample", str(saved), "--rows", "1.2e6", "--parts", "40", "--seed", "3", "--out"]
    folder = tmp_path / "killed"
    command = [sys.executable, "-m", "spinney", *arguments, f"{folder}/"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None and not (folder / "part-000002.parquet").exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    done = [name for name in names(folder) if name.startswith("part-")]
    assert 3 <= len(done) < 40, "it was killed in the middle"
    assert all(pq.read_metadata(folder / name).num_rows == 30_000 for name in done)
    for out in (folder, tmp_path / "unhurt"):
        assert spinney(*arguments, f"{out}/").status == 0
    assert names(folder) == names(tmp_path / "unhurt")
    for name in names(folder):
        assert (folder / name).read_bytes() == (tmp_path / "unhurt" / name).read_bytes()


def test_memory_does_not_grow_with_rows(release, tmp_path, monkeypatch):
    """No more than two parts are alive at once, however many there are."""
    alive, most = [0], [0]

    def draw(number):
        alive[0] += 1
        most[0] = max(most[0], alive[0])
        return pa.table({"x": np.full(10, float(number))})

    written = part_files._write_part

    def write(file, table):
        written(file, table)
        alive[0] -= 1

    monkeypatch.setattr(part_files, "_write_part", write)
    part_files.write_parts(tmp_path / "rows", [10] * 30, draw, {"rows": 300})
    assert most[0] <= 2
    assert isinstance(release.sample(10, parts=2), SampleParts)
