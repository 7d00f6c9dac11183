"""Release files: one zip of JSON and Arrow that is written whole or not at all and reads back exactly."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney import files
from spinney.errors import FileError


@pytest.fixture(scope="module", params=["bins", "leaves", "forest"])
def model(people, request):
    """A fitted tree that released bins, one that released leaf moments, and a forest."""
    frame, schema = people
    if request.param == "forest":
        return sp.ForestSynthesizer("4", target="smoker").fit(frame, schema, entropy=sp.UnsafeSeededEntropy(5))
    tree = sp.KDTreeSynthesizer("4", placement="uniform", moments=request.param == "leaves")
    return tree.fit(frame, schema, entropy=sp.UnsafeSeededEntropy(5))


def test_what_is_no_path_is_refused_and_not_quoted():
    """A table that is given by mistake is named by its type alone."""
    with pytest.raises(sp.errors.ParameterError, match="not the path of a release") as refused:
        sp.load(pa.table({"secret": [41_177]}))
    assert "Table" in str(refused.value)
    assert not re.search("secret|41", str(refused.value))


def contents_of(release):
    """What was released, and the member of the file that holds it."""
    return (release.bins, "bins.arrow") if release.kind == "bins" else (release.moments, "leaves.arrow")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "release.spinney"


def test_a_loaded_release_gives_the_same_rows(model, path):
    """Saved and loaded, a release samples row for row as before, in the same kind of table, by the same placement."""
    model.save(path)
    loaded = sp.load(path)
    assert loaded.sample(200, seed=1).equals(model.sample(200, seed=1))
    if loaded.kind == "forest":
        return
    assert loaded.placement == "uniform"
    points, weights = loaded.weighted_points()
    expected_points, expected_weights = model.weighted_points()
    assert points.equals(expected_points)
    assert np.array_equal(weights, expected_weights)


def test_the_card_comes_along(model, path):
    """Everything on the card survives: events, fractions, schema, parameters."""
    model.save(str(path))
    loaded = sp.load(str(path))
    assert loaded.card.to_dict() == model.card_.to_dict()
    assert loaded.card.schema == model.schema_
    assert loaded.card.events == model.card_.events
    assert loaded.card.epsilon == model.ledger_.spent
    assert str(loaded.card) == str(model.card_)


@pytest.mark.parametrize("moments", [False, True])
@pytest.mark.parametrize("n_columns", [1, 40])
def test_narrow_and_wide_codes_survive(path, n_columns, moments):
    """Codes of one word and of several come back bit for bit."""
    schema = sp.Schema({f"c{i}": sp.Real(0, 1) for i in range(n_columns)})
    table = np.random.default_rng(0).random((400, n_columns))
    release = sp.KDTreeSynthesizer(50, moments=moments).fit(table, schema).release_
    release.save(path)
    (found, _), (made, _) = contents_of(sp.load(path)), contents_of(release)
    for name in ("codes", "depths", "noisy_steps" if moments else "noisy_counts"):
        assert np.array_equal(getattr(found, name), getattr(made, name))
    assert found.lattice == made.lattice
    assert (made.lattice.n_words > 1) == (n_columns > 1)
    assert not moments or (found.quantum, found.rate) == (made.quantum, made.rate)


def test_a_release_without_bins_can_be_saved(release_of, path):
    """Nothing released is a release too."""
    release_of(sp.Schema({"x": sp.Real(0, 1)}), {}).save(path)
    assert len(sp.load(path).bins) == 0


def test_the_file_opens_with_everyday_tools(model, path):
    """A zip of card.json and one Arrow file, a forest's two, and nothing else."""
    model.save(path)
    if model.release_.kind == "forest":
        check_forest_file(model.release_, path)
        return
    contents, member = contents_of(model.release_)
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == ["card.json", member]
        assert archive.testzip() is None
        card = json.loads(archive.read("card.json"))
        table = pa.ipc.open_file(io.BytesIO(archive.read(member))).read_all()
    assert (card["format"], card["format_version"]) == ("spinney-release", 4)
    sums = [f"noisy_sum_{axis}" for axis in range(10)] if member == "leaves.arrow" else []
    words = [f"code_{word}" for word in range(contents.lattice.n_words)]
    assert table.column_names == [*words, "depth", "noisy_count", *sums]
    assert table.num_rows == card["card"]["released"][member.split(".")[0]] == len(contents)


def check_forest_file(release, path):
    """Leaves of all columns in one table, cliques with their potentials in the other."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        measured = ["counts.arrow", "tables.arrow"]
        assert names == ["card.json", "leaves.arrow", "model.arrow", *measured, "groups.arrow", "products.arrow"]
        assert archive.testzip() is None
        card = json.loads(archive.read("card.json"))
        leaves, model, *_, products = (
            pa.ipc.open_file(io.BytesIO(archive.read(name))).read_all() for name in names[1:]
        )
    assert (card["format"], card["format_version"], card["kind"]) == ("spinney-release", 4, "forest")
    assert leaves.column_names == ["column", "low", "length", "is_null", "weights", "states"]
    assert model.column_names == ["clique", "potentials"]
    n_sums = sum(len(sums) for sums in products["sums"].to_pylist())
    assert card["card"]["released"] == {"leaves": leaves.num_rows, "cliques": model.num_rows, "sums": n_sums}
    found = [np.array(values) for values in model["potentials"].to_pylist()]
    assert all(np.array_equal(a, b.ravel()) for a, b in zip(found, release.model.potentials, strict=True))


def test_equal_releases_are_equal_files(model, path, tmp_path):
    """No time stamps: saving twice, and saving what was loaded, gives the same bytes."""
    model.save(path)
    model.save(tmp_path / "again")
    sp.load(path).save(tmp_path / "reloaded")
    assert path.read_bytes() == (tmp_path / "again").read_bytes() == (tmp_path / "reloaded").read_bytes()
    with zipfile.ZipFile(path) as archive:
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_an_existing_file_is_kept(model, path):
    """Without `overwrite` an existing file is refused and left alone; with it, replaced."""
    path.write_bytes(b"precious")
    with pytest.raises(FileError, match="exists"):
        model.save(path)
    assert path.read_bytes() == b"precious"
    model.save(path, overwrite=True)
    assert sp.load(path).card.released == model.card_.released


def test_a_file_that_appears_meanwhile_is_kept(model, path, monkeypatch):
    """Someone else's file that comes into being during the write is not overwritten."""
    link = os.link

    def too_late(source, target):
        Path(target).write_bytes(b"theirs")
        link(source, target)

    monkeypatch.setattr(files.os, "link", too_late)
    with pytest.raises(FileError, match="exists"):
        model.save(path)
    assert path.read_bytes() == b"theirs"
    assert os.listdir(path.parent) == [path.name]


def test_file_systems_without_links(model, path, monkeypatch):
    """Where hard links do not exist the file still arrives whole."""

    def no_links(source, target):
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(files.os, "link", no_links)
    model.save(path)
    assert sp.load(path).card.released == model.card_.released
    assert os.listdir(path.parent) == [path.name]


def test_folders_and_missing_folders(model, tmp_path):
    """A folder is no file, and a missing folder is not made silently; both are named."""
    with pytest.raises(FileError, match="is a folder"):
        model.save(tmp_path)
    with pytest.raises(FileError, match=re.escape(str(tmp_path / "absent"))):
        model.save(tmp_path / "absent" / "release")
    assert os.listdir(tmp_path) == []


def test_folders_that_cannot_be_written_to(model, path, monkeypatch):
    """A read-only folder is refused before anything is written."""

    def refuse(**_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(files.tempfile, "TemporaryFile", refuse)
    with pytest.raises(FileError, match=r"cannot be written to: Permission denied"):
        model.save(path)
    monkeypatch.undo()
    monkeypatch.setattr(files.tempfile, "mkstemp", refuse)
    with pytest.raises(FileError, match=r"cannot write .*Permission denied"):
        model.save(path)
    assert os.listdir(path.parent) == []


@pytest.mark.parametrize(
    ("step", "overwrite"),
    [("fsync", False), ("chmod", False), ("fsync", True), ("chmod", True), ("replace", True)],
)
def test_a_full_disk_leaves_nothing_behind(model, path, monkeypatch, step, overwrite):
    """A write that fails half way leaves the old file, if there was one, and no fragments."""
    if overwrite:
        path.write_bytes(b"precious")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, step, full)
    with pytest.raises(FileError, match="No space left"):
        model.save(path, overwrite=overwrite)
    assert os.listdir(path.parent) == ([path.name] if overwrite else [])
    assert not overwrite or path.read_bytes() == b"precious"


def test_an_interrupted_write_leaves_nothing_behind(model, path, monkeypatch):
    """Ctrl-C during a write is passed on, without a fragment."""

    def interrupt(archive, member, data):
        if member.filename.endswith(".arrow"):  # the card is written by then
            raise KeyboardInterrupt
        write(archive, member, data)

    write = zipfile.ZipFile.writestr
    monkeypatch.setattr(zipfile.ZipFile, "writestr", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.save(path)
    assert os.listdir(path.parent) == []


def test_new_files_have_ordinary_permissions(model, path):
    """The file is as readable as any other new file of this user, though it was born as a temporary one."""
    model.save(path)
    ordinary = path.with_name("ordinary")
    ordinary.touch()
    assert path.stat().st_mode == ordinary.stat().st_mode


def test_links_lead_to_their_target_and_pipes_are_kept(model, path):
    """Overwriting through a link replaces what it points to; a pipe or device is never replaced."""
    link, pipe = path.with_name("link.spinney"), path.with_name("pipe")
    model.save(path)
    before = path.read_bytes()
    link.symlink_to(path)
    sp.GridSynthesizer(1).fit(np.zeros((5, 1)), sp.Schema({"x": sp.Real(0, 1)})).save(link, overwrite=True)
    assert link.is_symlink()
    assert path.read_bytes() != before
    os.mkfifo(pipe)
    with pytest.raises(FileError, match="device or a pipe"):
        model.save(pipe, overwrite=True)
    assert pipe.is_fifo()
