"""A release that was paid for is kept: room is held before the charge, and what cannot be written goes elsewhere."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

import pytest

import spinney as sp
from spinney.errors import FileError
from spinney.files import write_whole
from spinney.release import file as storage
from spinney.synthesizers import paying as saving
from support.command_line import files_in, spinney, write_people
from support.small_people import write_shop


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "people.ledger"
    assert spinney("ledger", path, "--limit", "8", "--delta", "1e-3").status == 0
    return path


@pytest.mark.skipif(os.name != "posix", reason="needs a limit on the size of files")
@pytest.mark.parametrize("method", ["tree", "forest", "grid", "linked"])
def test_a_fit_whose_release_would_not_fit_is_refused_before_the_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """A limit on files, a quota or a full disk: the message says what is missing, and nothing is spent."""
    import resource

    ledger = tmp_path / "some.ledger"
    unit = ["--unit", "replace-one-person"] if method == "linked" else []
    assert spinney("ledger", ledger, "--limit", "8", "--delta", "1e-3", *unit).status == 0
    table, schema = write_people(tmp_path)
    given = ["--tables", write_shop(tmp_path)] if method == "linked" else [table, "--schema", schema]
    monkeypatch.setattr("spinney.privacy.ledger.Ledger.charge", lambda *_: pytest.fail("it was charged"))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        run = spinney(
            *("fit", *given, "--method", method, "--epsilon", "1", "--ledger", ledger, "--out", tmp_path / "a.spinney")
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert run.status == 2
    assert "8 MiB cannot be written" in run.err
    assert "nothing was charged" in run.err
    assert sp.Ledger.open(ledger).spent == 0
    assert not [name for name in files_in(tmp_path) if name.startswith(("a.", ".a", "tmp"))]


def failing_at(folder: Path):
    """A disk that is full when a release is written, in one folder."""

    def write(path, fill, *, overwrite):
        if Path(path).parent == folder:
            raise FileError(f"cannot write {str(path)!r}: No space left on device")
        write_whole(path, fill, overwrite=overwrite)

    return write


def test_a_release_that_cannot_be_written_is_kept_elsewhere(
    tmp_path: Path, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says what was charged, to which ledger, and where the release is; it is the whole release."""
    table, schema = write_people(tmp_path)
    out, spare = tmp_path / "out" / "people.spinney", tmp_path / "spare"
    out.parent.mkdir()
    spare.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spare))
    monkeypatch.setattr(storage, "write_whole", failing_at(out.parent))
    fitted = ("fit", table, "--schema", schema, "--epsilon", "2", "--method", "tree", "--out", out)
    run = spinney(*fitted, "--ledger", ledger)
    assert run.status == 1
    assert "No space left on device; epsilon=2 was charged to" in run.err
    assert "people.ledger" in run.err
    (kept,) = spare.glob("spinney-*/people.spinney")
    assert re.sub(r"\s", "", str(kept)) in re.sub(r"\s", "", run.err)
    assert sp.load(kept).card.epsilon == 2
    assert sp.Ledger.open(ledger).spent == 2
    assert "epsilon=2 was spent" in spinney(*fitted).err
    assert files_in(out.parent) == set()


def test_a_release_that_can_be_written_nowhere_is_told_to_be_lost(
    tmp_path: Path, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, schema = write_people(tmp_path)

    def write(path, *_, **__):
        raise FileError(f"cannot write {str(path)!r}: No space left on device")

    monkeypatch.setattr(storage, "write_whole", write)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    monkeypatch.setattr(saving, "_ROOM", 1)
    run = spinney(
        *("fit", table, "--schema", schema, "--epsilon", "2", "--method", "grid", "--ledger", ledger),
        *("--out", tmp_path / "people.spinney"),
    )
    assert run.status == 1
    assert "epsilon=2 was charged to" in run.err
    assert "the release is lost; fitting again is charged again" in run.err


def test_a_unit_that_is_taken_from_the_ledger_is_told(tmp_path: Path) -> None:
    """Whoever names no unit gets the ledger's, and reads so."""
    table, schema = write_people(tmp_path)
    ledger = tmp_path / "people.ledger"
    assert spinney("ledger", ledger, "--limit", "8", "--unit", "add-remove").status == 0
    common = ["fit", table, "--schema", schema, "--epsilon", "1", "--method", "tree", "--force"]
    common += ["--out", tmp_path / "a.spinney"]
    assert "unit add-remove: that of the ledger" in spinney(*common, "--ledger", ledger).out
    assert "that of the ledger" not in spinney(*common, "--ledger", ledger, "--unit", "add-remove").out
    assert "that of the ledger" not in spinney(*common).out
    assert spinney(*common, "--ledger", ledger, "--json").json["unit"] == "add-remove"
