"""Ledgers that somebody changed: what `verify` tells, alone, with a head that was written down, and by command line."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

import spinney as sp
from spinney.errors import FileError, ParameterError
from spinney.privacy.accounts.chain import hash_of, parse_head, written
from spinney.privacy.accounts.sqlite import write_database
from spinney.privacy.accounts.verifying import head_of, verify_ledger
from spinney.privacy.mechanisms import DiscreteLaplaceCounts
from support.command_line import spinney, write_people
from support.old_ledgers import write_version_1


def counts(epsilon) -> DiscreteLaplaceCounts:
    return DiscreteLaplaceCounts(Fraction(epsilon), sensitivity=2, note="counts")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger with four charges and a limit that was raised."""
    path = tmp_path / "people.ledger"
    ledger = sp.Ledger.create(path, limit=1)
    ledger.charge(counts("1/8"))
    ledger.charge(counts("1/4"))
    ledger.set_limits(2, why="more data")
    ledger.charge(counts("1/2"))
    ledger.charge(counts("1/16"))
    return path


def rows_of(path: Path) -> list[tuple[int, str, str]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT number, content, hash FROM entries ORDER BY number").fetchall()


def rewritten(path: Path, rows) -> None:
    """Put other entries in the place of those of a ledger, as whoever may write the file can."""
    path.unlink()
    write_database(path, rows, overwrite=False)


def chained_anew(rows) -> list[tuple[int, str, str]]:
    """The chain of an adversary who knows how: numbers and hashes are right again."""
    made, previous = [], "0" * 64
    for number, (_, content, _) in enumerate(rows, start=1):
        said = json.loads(content)
        common = {name: said.pop(name) for name in ("number", "previous", "time", "user", "spinney", "kind")}
        entry = written(number, previous, common["time"], common["user"], common["spinney"], common["kind"], said)
        made.append(entry.row)
        previous = entry.hash
    return made


def changed(row, **fields):
    return row[0], json.dumps(json.loads(row[1]) | fields), row[2]


def rehashed(row):
    return row[0], row[1], hash_of(row[1])


SLIPS = {
    "an edited amount": lambda rows: [*rows[:3], changed(rows[3], epsilon="1/1000"), *rows[4:]],
    "an edited amount, hashed again": lambda rows: [*rows[:3], rehashed(changed(rows[3], epsilon="1/9")), *rows[4:]],
    "a limit raised by hand": lambda rows: [rows[0], rehashed(changed(rows[1], epsilon="50")), *rows[2:]],
    "a charge removed": lambda rows: [*rows[:3], *rows[4:]],
    "a charge removed, numbered again": lambda rows: [*rows[:3], *((n - 1, c, h) for n, c, h in rows[4:])],
    "charges in another order": lambda rows: [
        *rows[:2],
        (3, rows[3][1], rows[3][2]),
        (4, rows[2][1], rows[2][2]),
        *rows[4:],
    ],
    "a first entry removed": lambda rows: rows[1:],
    "no entries": lambda rows: [],
    "an entry that is no JSON": lambda rows: [*rows[:-1], (rows[-1][0], "{", hash_of("{"))],
    "an unknown kind": lambda rows: [*rows[:-1], rehashed(changed(rows[-1], kind="refund"))],
}


@pytest.mark.parametrize("change", SLIPS.values(), ids=SLIPS)
def test_a_broken_chain_is_refused_by_everybody(path, change):
    """No head is needed: the ledger does not open, and so is not charged, not verified, and not shown."""
    rewritten(path, change(rows_of(path)))
    for refused in (sp.Ledger.open, verify_ledger, head_of):
        with pytest.raises(FileError, match=r"people\.ledger'"):
            refused(path)
    for arguments in (("ledger", path), ("ledger", "verify", path), ("ledger", "show", path)):
        assert spinney(*arguments).status == 1


def cheaper(row):
    events = json.loads(json.loads(row[1])["events"])
    return changed(row, epsilon="1/100", events=json.dumps([events[0] | {"epsilon": "1/100"}]))


FORGERIES = {
    "an amount made smaller": lambda rows: [*rows[:3], cheaper(rows[3]), *rows[4:]],
    "a limit raised": lambda rows: [rows[0], changed(rows[1], epsilon="50"), *rows[2:]],
    "a charge removed": lambda rows: [*rows[:3], *rows[4:]],
    "a tail cut off": lambda rows: rows[:-1],
    "charges in another order": lambda rows: [*rows[:2], rows[3], rows[2], *rows[4:]],
    "another user": lambda rows: [*rows[:3], changed(rows[3], user="somebody"), *rows[4:]],
}


@pytest.mark.parametrize("change", FORGERIES.values(), ids=FORGERIES)
def test_a_forged_chain_is_told_by_a_head(path, change):
    """Whoever writes all hashes anew gets past a check without a head, and never past one with it."""
    head = sp.Ledger.open(path).head
    opened = sp.Ledger.open(path)
    rewritten(path, chained_anew(change(rows_of(path))))
    assert any("no head was given" in remark for remark in verify_ledger(path).remarks)
    for given in (head, head.partition(":")[2], head.upper()):
        with pytest.raises(FileError, match="written down"):
            verify_ledger(path, head=given)
    run = spinney("ledger", "verify", path, "--head", head)
    assert run.status == 1
    assert "written down" in run.err
    with pytest.raises(FileError, match="is not the ledger that was opened"):
        opened.charge(counts("1/100"))  # who had it open knows a head


def test_an_older_copy_is_told_by_a_head(path, tmp_path):
    """A ledger that was restored from a backup has a part of its budget again."""
    shutil.copy(path, tmp_path / "backup")
    ledger = sp.Ledger.open(path)
    ledger.charge(counts("1/2"))
    head = ledger.head
    shutil.copy(tmp_path / "backup", path)
    assert sp.Ledger.open(path).spent == Fraction(15, 16)
    with pytest.raises(FileError, match=r"has 7 entries.*entry 8.*older copy"):
        verify_ledger(path, head=head)
    with pytest.raises(FileError, match=r"older copy|not the ledger that was opened"):
        ledger.charge(counts("1/100"))
    other = tmp_path / "other.ledger"
    sp.Ledger.create(other, limit=9)
    shutil.copy(other, path)
    with pytest.raises(FileError, match="written down"):
        verify_ledger(path, head=head)


def test_earlier_heads_are_good_too(path):
    """Any head of the past stands in a ledger that is whole; what is no head is refused."""
    heads = [entry.head for entry in sp.Ledger.open(path).entries]
    for head in heads:
        assert "the head that was written down is one of its entries" in verify_ledger(path, head=head).checks
    number, digest = parse_head(heads[2])
    with pytest.raises(FileError, match="written down"):
        verify_ledger(path, head=f"{number + 1}:{digest}")
    for wrong in ("", "5", "abc", f"0:{digest}", f"{digest}0", f"1e3:{digest}"):
        with pytest.raises(ParameterError, match="head="):
            verify_ledger(path, head=wrong)


def test_the_clock_decides_nothing(path, monkeypatch):
    """A clock that runs backwards is remarked on, and neither charges nor budgets depend on it."""
    monkeypatch.setattr("spinney.privacy.accounts.rules.now", lambda: "1999-01-01T00:00:00.000000Z")
    sp.Ledger.open(path).charge(counts("1/16"))
    assert any("clock ran backwards" in remark for remark in verify_ledger(path).remarks)
    assert sp.Ledger.open(path).spent == 1


def test_parts_that_cost_more_than_was_charged_are_told(path):
    """The amounts of a charge are worked out again, which opening does not do."""
    rows = rows_of(path)
    said = json.loads(rows[3][1])
    events = json.loads(said["events"])
    events[0]["epsilon"] = "1/2"
    rewritten(path, chained_anew([*rows[:3], changed(rows[3], events=json.dumps(events)), *rows[4:]]))
    assert sp.Ledger.open(path).spent == Fraction(15, 16)
    with pytest.raises(FileError, match=r"entry 4.*does not cost what its events cost"):
        verify_ledger(path)


def test_other_tables_in_the_file_are_refused(path):
    """A trigger or a view that somebody added could do anything when an entry is written."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TRIGGER refund AFTER INSERT ON entries BEGIN DELETE FROM entries; END")
        connection.commit()
    with pytest.raises(FileError, match="changed by hand"):
        sp.Ledger.open(path)


def test_slips_of_the_hand_are_refused_by_the_file(path):
    with closing(sqlite3.connect(path)) as connection:
        for statement in ("DELETE FROM entries", "UPDATE entries SET content = ''"):
            with pytest.raises(sqlite3.Error, match="entries stay"):
                connection.execute(statement)


def test_a_tampered_ledger_is_refused_through_the_command_line(tmp_path):
    """fit writes nothing and charges nothing where the ledger was edited; its head was printed by the fit before."""
    table, schema = write_people(tmp_path)
    path = tmp_path / "people.ledger"
    assert spinney("ledger", "create", path, "--limit", "2").status == 0
    common = ["fit", table, "--schema", schema, "--epsilon", "0.5", "--method", "tree", "--ledger", path]
    first = spinney(*common, "--out", tmp_path / "one.spinney", "--purpose", "a map", "--table", "people")
    head = first.out.split("write down its head: ")[1].split()[0]
    assert spinney("ledger", "head", path).out.strip() == head
    assert spinney("ledger", "verify", path, "--head", head).status == 0
    rows = rows_of(path)
    rewritten(path, [*rows[:2], changed(rows[2], epsilon="1/1000"), *rows[3:]])
    refused = spinney(*common, "--out", tmp_path / "two.spinney")
    assert refused.status == 1
    assert "entry 3" in refused.err
    assert not (tmp_path / "two.spinney").exists()
    assert spinney("ledger", "verify", path).status == 1
    rewritten(path, chained_anew(rows[:2]))  # as if nothing had been charged
    assert spinney("ledger", "verify", path).status == 0
    assert spinney("ledger", "verify", path, "--head", head, "--json").status == 1


def test_old_ledgers_have_no_head(tmp_path):
    path = write_version_1(tmp_path / "old.ledger")
    assert spinney("ledger", "head", path).status == 1
    assert "no chain" in spinney("ledger", "verify", path).out
    with pytest.raises(FileError, match="old copy"):
        verify_ledger(path, head=f"3:{'a' * 64}")
