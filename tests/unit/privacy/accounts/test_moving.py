"""A population that moves to another ledger: closed there first, whole here, once, whatever interrupts it."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from secrets import token_hex

import psycopg
import pytest

import spinney as sp
from spinney.errors import BudgetError, FileError, ParameterError
from spinney.privacy.accounts import shared as importing
from spinney.privacy.accounts.shared import SharedLedger
from spinney.privacy.accounts.sqlite import SqliteStore
from spinney.privacy.accounts.verifying import find_release, verify_ledger
from spinney.privacy.mechanisms import DiscreteLaplaceCounts, NotPrivate, event_to_dict
from support.command_line import spinney

DIGEST, SCHEMA = "ab" * 32, "cd" * 32


def counts(epsilon, note="counts") -> DiscreteLaplaceCounts:
    return DiscreteLaplaceCounts(Fraction(epsilon), sensitivity=2, note=note)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A ledger with two populations: releases, a failure, a brand, tables that a charge and that a keeper bound."""
    path = tmp_path / "old.ledger"
    sp.Ledger.create(path, limit=2, population="patients").add_population("staff", limit=1)
    hand = sp.Ledger.open(path, population="patients", table="visits", purpose="a map").start(schema=SCHEMA)
    hand.brand(NotPrivate("bounds"))
    hand.charge(counts("1/4"))
    hand.charge(counts("1/8"))
    hand.record_release(DIGEST)
    failed = sp.Ledger.open(path, population="patients").start()
    failed.charge(counts("1/8"))
    failed.record_failure("MemoryError")
    sp.Ledger.open(path, population="patients").bind("wards", schema="ef" * 32)
    sp.Ledger.open(path, population="staff", table="rota").charge(counts("1/3"))
    return path


@pytest.fixture
def new(place):
    """The ledger that it moves to."""
    place.create(population="others")
    return place


def keeper(place) -> SharedLedger:
    return place.open("kim", population="others")


def test_everything_comes_along_but_requests(old, new):
    """Charges with tables, schemas and purposes, what came of them, brands, and what a keeper bound."""
    keeper(new).take_over(old, source="patients")
    moved = new.open("ann", population="patients")
    assert (moved.limit, moved.spent, moved.moved_to) == (2, Fraction(1, 2), None)
    assert [(c.table, c.purpose, c.release, c.error) for c in moved.charges] == [
        ("visits", "a map", DIGEST, None),
        ("visits", "a map", DIGEST, None),
        (None, None, None, "MemoryError"),
    ]
    assert {table.name: (table.schema, table.is_bound) for table in moved.tables} == {
        "visits": (None, False),
        "wards": ("ef" * 32, True),
    }
    assert find_release(new.address, DIGEST, (NotPrivate("bounds"), counts("1/4"), counts("1/8"))).agrees
    with pytest.raises(ParameterError, match="two budgets"):
        new.open("ann", population="others", table="visits").charge(counts("1/100"))
    with pytest.raises(ParameterError, match="same schema"):
        new.open("ann", population="others").start(schema=SCHEMA).charge(counts("1/100"))
    (opened,) = (entry for entry in moved.entries if entry.fields.get("imported_head"))
    closing = next(entry for entry in sp.Ledger.open(old, population="staff").entries if entry.kind == "closed")
    assert opened.fields["imported_head"] == closing.head
    assert "imported 'patients' of the ledger" in moved.decisions[0].what
    assert verify_ledger(new.address).checks
    assert verify_ledger(old).checks


def test_each_population_of_a_ledger_moves_by_itself(old, new, monkeypatch):
    """One is closed and the other goes on; both arrive, whatever the machine calls its own."""
    with pytest.raises(ParameterError, match=r"several populations.*--from"):
        keeper(new).take_over(old)
    keeper(new).take_over(old, source="patients")
    with pytest.raises(BudgetError, match="closed here"):
        sp.Ledger.open(old, population="patients").charge(counts("1/8"))
    sp.Ledger.open(old, population="staff").charge(counts("1/3"))
    monkeypatch.setenv("SPINNEY_POPULATION", "others")
    keeper(new).take_over(old, source="staff", population="people at work")
    assert new.open("ann", population="people at work").spent == Fraction(2, 3)
    for source in ("patients", "staff"):
        with pytest.raises(ParameterError, match="imported already"):
            keeper(new).take_over(old, source=source, population="again")


@pytest.mark.parametrize("after", ["closing", "writing"])
def test_an_interrupted_move_is_finished_by_another_try(old, new, monkeypatch, after):
    """In between nobody can charge either ledger; afterwards the budget is in one of them."""
    store = type(new.open("kim", population="others")._store)
    real = store.append

    def interrupted(self, state, entries):
        if entries[0][0] == "population":
            if after == "writing":
                real(self, state, entries)
            raise KeyboardInterrupt
        return real(self, state, entries)

    with monkeypatch.context() as patched:
        patched.setattr(store, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            keeper(new).take_over(old, source="patients")
    with pytest.raises(BudgetError, match="closed here"):
        sp.Ledger.open(old, population="patients").charge(counts("1/8"))
    if after == "closing":
        assert len(keeper(new).populations) == 1
        keeper(new).take_over(old, source="patients")
    else:
        with pytest.raises(ParameterError, match="imported already"):
            keeper(new).take_over(old, source="patients")
    assert new.open("ann", population="patients").spent == Fraction(1, 2)


def test_a_charge_just_before_the_closing_is_not_lost(old, new, monkeypatch):
    """Somebody charges the old ledger after it was read: what is taken over was read after it was closed."""
    real = importing.rehearsed

    def late(*arguments):
        monkeypatch.setattr(importing, "rehearsed", real)
        sp.Ledger.open(old, population="patients").charge(counts("1"))
        return real(*arguments)

    monkeypatch.setattr(importing, "rehearsed", late)
    keeper(new).take_over(old, source="patients")
    assert new.open("ann", population="patients").spent == Fraction(3, 2)


def test_who_may_not_close_the_old_one_imports_nothing(old, new, monkeypatch):
    real = SqliteStore.append

    def refused(self, state, entries):
        if entries[0][0] == "closed":
            raise FileError("may not be written to by this user")
        return real(self, state, entries)

    monkeypatch.setattr(SqliteStore, "append", refused)
    with pytest.raises(FileError, match="may not be written"):
        keeper(new).take_over(old, source="patients")
    assert len(keeper(new).populations) == 1
    assert sp.Ledger.open(old, population="patients").moved_to is None


def test_who_may_not_write_the_new_one_closes_nothing(old, new, monkeypatch):
    if new.server is None:
        monkeypatch.setattr(SqliteStore, "may_keep", lambda _store: False)
    with pytest.raises(FileError, match="nothing was closed"):
        new.open("ann", population="others").take_over(old, source="patients")
    monkeypatch.undo()
    with pytest.raises(ParameterError, match="exists already"):  # found out before anything is closed
        keeper(new).take_over(old, source="patients", population="others")
    assert sp.Ledger.open(old, population="patients").moved_to is None


def test_what_moved_elsewhere_is_not_taken(old, new, tmp_path):
    """A population goes where its closing says; raised again, it says that it may have two budgets."""
    third = sp.Ledger.create(tmp_path / "third.ledger", limit=1, population="x")
    third.take_over(old, source="patients")
    with pytest.raises(ParameterError, match="is closed: it was moved to"):
        keeper(new).take_over(old, source="patients")
    assert "closed, moved to" in spinney("ledger", "show", old, "--population", "patients").out
    sp.Ledger.open(old, population="patients").set_limits(3, why="the other one was lost")
    assert any("two budgets" in remark for remark in verify_ledger(old).remarks)


def test_no_ledger_takes_itself_over(new, tmp_path):
    """Nor a copy of itself: it stays readable for everybody."""
    address = new.address_of("kim")
    with pytest.raises(ParameterError, match="take itself over"):
        keeper(new).take_over(address, source="others", population="copy")
    if new.server is None:
        copied = tmp_path / "copied.ledger"
        copied.write_bytes(Path(address).read_bytes())
        with pytest.raises(ParameterError, match="take itself over"):
            keeper(new).take_over(copied, source="others", population="copy")
    ledger = keeper(new)
    entry = {
        "population": "copy", "unit": "replace-one", "epsilon": "1", "delta": "0", "approval": False,
        "imported": ledger._read().ledger, "imported_population": "others", "imported_head": ledger.head,
    }  # fmt: skip
    with pytest.raises(ParameterError, match="into itself"):
        ledger._store.append(ledger._state, [("population", entry)])
    if new.server is not None:  # nor does the server itself take it
        query = "SELECT * FROM spinney_ledger.keeper_append('population', %s::json, '0', %s)"
        with psycopg.connect(address, autocommit=True) as connection, pytest.raises(psycopg.Error, match="into itself"):
            connection.execute(query, (json.dumps(entry), token_hex(16)))
    assert new.open("ann").moved_to is None


def test_imported_charges_belong_to_an_import(new):
    """They pass limits and approval, so that a keeper cannot add any to a population that is here already."""
    said = {
        "key": token_hex(16), "fit": token_hex(16), "population": "others", "unit": "replace-one", "imported": True,
        "epsilon": "5", "delta": "0", "events": json.dumps([event_to_dict(counts(5))]),
    }  # fmt: skip
    ledger = keeper(new)
    with pytest.raises(ParameterError, match="follows the entry of its population"):
        ledger._store.append(ledger._state, [("charge", said)])
    if new.server is not None:
        with psycopg.connect(new.address_of("kim"), autocommit=True) as connection:
            query = "SELECT * FROM spinney_ledger.keeper_append('charge', %s::json, '0', %s)"
            with pytest.raises(psycopg.Error, match="follows the entry of its population"):
                connection.execute(query, (json.dumps(said), said["key"]))
    assert new.open("ann").spent == 0


def test_tables_of_others_stay_theirs(old, new):
    """A name that another population of the new ledger has is told, and left to a keeper."""
    keeper(new).bind("wards")
    new.open("ann", population="others", table="visits").charge(counts("1/100"))
    hand = keeper(new).take_over(old, source="patients")
    assert hand.tables_elsewhere == ("visits", "wards")
    assert [table.name for table in new.open("ann", population="others").tables] == ["wards", "visits"]
    assert hand.spent == Fraction(1, 2)


def test_the_command_line_moves_one_population(old, tmp_path):
    path = tmp_path / "team.ledger"
    sp.Ledger.create(path, limit=1, population="others").bind("wards")
    assert spinney("ledger", "import", old, path).status == 2
    run = spinney("ledger", "import", old, path, "--from", "patients", "--population", "people")
    assert (run.status, "as the population people" in run.out) == (0, True)
    assert "the table wards belongs to another population" in run.err
    shown = spinney("ledger", "show", path, "--population", "people").out
    assert "3 charges were imported, and not held to limits and approvals here" in shown
    remarks = " ".join(verify_ledger(path).remarks)
    assert "3 charges were imported" in remarks
    assert "not held to limits and approvals" in remarks
