"""Ledgers of version 1: read as they are, turned into databases by the first charge, taken over once."""

from __future__ import annotations

import os
import stat
import threading
from fractions import Fraction
from pathlib import Path

import pytest
from filelock import FileLock

import spinney as sp
from spinney.errors import BudgetError, FileError, ParameterError
from spinney.privacy.accounts import version1
from spinney.privacy.accounts.verifying import verify_ledger
from spinney.privacy.mechanisms import ComposedRelease, DiscreteLaplaceCounts, GaussianTables, NotPrivate
from support.command_line import spinney
from support.old_ledgers import write_version_1

EVENTS = [
    DiscreteLaplaceCounts(Fraction(1, 4), 2, "counts"),
    NotPrivate(note="bounds"),
    ComposedRelease(Fraction(1, 2), Fraction(1, 1000), (GaussianTables(Fraction(400), 2, "tables"),), "forest"),
]


def counts(epsilon) -> DiscreteLaplaceCounts:
    return DiscreteLaplaceCounts(Fraction(epsilon), sensitivity=2, note="counts")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return write_version_1(tmp_path / "old.ledger", limit="2", delta="1/100", unit="add-remove", events=EVENTS)


def test_reading_changes_nothing(old):
    """Opened, shown and asked, the file is what it was; the next charge turns it into a database."""
    before = old.read_bytes()
    ledger = sp.Ledger.open(old)
    assert (ledger.spent, ledger.spent_delta, ledger.unit.value) == (Fraction(3, 4), Fraction(1, 1000), "add-remove")
    assert ledger.events == tuple(EVENTS)
    assert spinney("ledger", old).status == 0
    with pytest.raises(BudgetError):
        ledger.charge(counts(9))
    assert old.read_bytes() == before
    assert [path.name for path in old.parent.iterdir()] == ["old.ledger"]


def test_the_first_charge_makes_a_database_and_keeps_the_old_file(old):
    before = old.read_bytes()
    old.chmod(0o640)
    first, second = sp.Ledger.open(old), sp.Ledger.open(old)
    first.charge(counts("1/4"))
    assert old.read_bytes().startswith(b"SQLite")
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    backup = version1.backup_of(old)
    assert backup.read_bytes() == before
    second.charge(counts("1/4"))
    again = sp.Ledger.open(old)
    assert again.events == (*EVENTS, counts("1/4"), counts("1/4"))
    assert again.spent == Fraction(5, 4)
    assert again.charges[0].user == "unknown"
    assert verify_ledger(old, head=first.head).checks
    os.link(old, old.with_name("other"))
    with pytest.raises(FileError, match="hard link"):
        sp.Ledger.open(old)


def test_a_copy_from_before_is_not_turned_twice(old):
    """The old file put back in its place has its budget again: the one that was kept tells."""
    sp.Ledger.open(old).charge(counts(1))
    old.write_bytes(version1.backup_of(old).read_bytes())
    with pytest.raises(FileError, match="a copy from then"):
        sp.Ledger.open(old).charge(counts(1))


def test_older_processes_are_waited_for(old, monkeypatch):
    """Whoever holds the lock of version 1 may be writing a charge, which is not lost."""
    monkeypatch.setattr(version1, "_PATIENCE", 0.2)
    lock = FileLock(f"{old}.lock")
    ledger = sp.Ledger.open(old)
    with lock, pytest.raises(FileError, match="locked"):
        ledger.charge(counts("1/4"))
    monkeypatch.setattr(version1, "_PATIENCE", 20)
    lock.acquire()
    charging = threading.Thread(target=lambda: ledger.charge(counts("1/4")))
    charging.start()
    write_version_1(old, limit="2", delta="1/100", unit="add-remove", events=[*EVENTS, counts("1/8")])
    lock.release()
    charging.join(30)
    assert sp.Ledger.open(old).spent == Fraction(9, 8)


def test_an_overdrawn_old_ledger_stays_one(tmp_path):
    path = write_version_1(tmp_path / "a.ledger", limit="1/8", events=[counts("1/4")])
    ledger = sp.Ledger.open(path)
    assert ledger.is_overdrawn
    with pytest.raises(BudgetError):
        ledger.charge(counts("1/100"))


# -------------------------------------------------------------------------------------------------------- taken over


def test_a_ledger_is_taken_over_with_all_that_it_spent(old, place):
    """Limits, unit, charges and brands arrive together, and the old ledger is closed."""
    place.create(population="others")
    hand = place.open("kim", population="others").take_over(old, population="patients")
    patients = place.open("ann", population="patients")
    assert (patients.limit, patients.spent, patients.unit.value) == (2, Fraction(3, 4), "add-remove")
    assert patients.events == tuple(EVENTS)
    assert hand.population == "patients"
    patients.charge(counts("1/4"))
    closed = sp.Ledger.open(old)
    assert (closed.moved_to, closed.remaining) == (hand.address, 0)
    with pytest.raises(BudgetError):
        closed.charge(counts("1/1000000"))
    assert verify_ledger(place.address).checks


def test_no_ledger_is_taken_over_twice(old, place, tmp_path):
    """Not itself, and not a copy of it: each would have the rest of the budget once more."""
    place.create(population="others")
    copied = tmp_path / "copy.ledger"
    copied.write_bytes(old.read_bytes())
    keeper = place.open("kim", population="others")
    keeper.take_over(old, population="patients")
    for name in ("patients", "others again"):
        for source in (old, copied):
            with pytest.raises(ParameterError, match=r"imported already|exists already"):
                keeper.take_over(source, population=name)
    assert len(keeper.populations) == 2


def test_a_database_is_taken_over_too(tmp_path, place):
    source = sp.Ledger.create(tmp_path / "mine.ledger", limit=1, population="staff")
    source.charge(counts("1/3"))
    copied = tmp_path / "copied.ledger"
    copied.write_bytes((tmp_path / "mine.ledger").read_bytes())
    place.create(population="others")
    keeper = place.open("kim", population="others")
    keeper.take_over(tmp_path / "mine.ledger")
    assert place.open("ann", population="staff").spent == Fraction(1, 3)
    with pytest.raises(ParameterError):
        keeper.take_over(copied, population="staff 2")


def test_the_command_line_imports(old, tmp_path):
    path = tmp_path / "team.ledger"
    assert spinney("ledger", "create", path, "--limit", "1", "--population", "staff").status == 0
    run = spinney("ledger", "import", old, path, "--population", "patients")
    assert "imported" in run.out
    assert spinney("ledger", path, "--population", "patients", "--json").json["spent"] == "3/4"
    assert spinney("ledger", "import", old, path, "--population", "again").status == 2
