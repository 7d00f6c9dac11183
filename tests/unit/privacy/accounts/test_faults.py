"""Databases that are locked, damaged, foreign, newer, read-only, full or away: what is told, and what was charged."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, suppress
from fractions import Fraction
from pathlib import Path

import pytest

import spinney as sp
from spinney.errors import FileError, MissingExtraError, ParameterError
from spinney.privacy.accounts import postgres as postgres_module
from spinney.privacy.accounts import sqlite as sqlite_module
from spinney.privacy.mechanisms import DiscreteLaplaceCounts
from support.command_line import spinney, write_people


def counts(epsilon) -> DiscreteLaplaceCounts:
    return DiscreteLaplaceCounts(Fraction(epsilon), sensitivity=2, note="counts")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "people.ledger"
    sp.Ledger.create(path, limit=2).charge(counts("1/2"))
    return path


def test_a_ledger_that_is_locked_too_long(path, monkeypatch):
    """Somebody else holds it: nothing is charged, and the message says for how long it was tried."""
    monkeypatch.setattr(sqlite_module, "PATIENCE", 0.2)
    ledger = sp.Ledger.open(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(FileError, match=r"locked by another process for 0\.2 seconds; nothing was charged"):
            ledger.charge(counts("1/4"))
        other.execute("ROLLBACK")
    ledger.charge(counts("1/4"))
    assert sp.Ledger.open(path).spent == Fraction(3, 4)


def changed(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_other_databases_and_newer_ones_are_no_ledgers(path, tmp_path):
    other = tmp_path / "other.db"
    changed(other, "CREATE TABLE t (x)")
    with pytest.raises(FileError, match="is an SQLite database and not a Spinney ledger"):
        sp.Ledger.open(other)
    changed(path, "PRAGMA user_version = 3")
    with pytest.raises(FileError, match=r"format version 3.*upgrade"):
        sp.Ledger.open(path)


def test_damaged_files_raise_nothing_but_our_errors(path):
    """Any page may be spoilt: the ledger opens as it was, or the error is ours."""
    raw = path.read_bytes()
    spent = sp.Ledger.open(path).spent
    for position in range(0, len(raw), 97):
        path.write_bytes(raw[:position] + bytes([raw[position] ^ 0xFF]) + raw[position + 1 :])
        try:
            assert sp.Ledger.open(path).spent == spent
        except (FileError, ParameterError):
            continue
    for end in (0, 15, 16, 100, 4096):
        path.write_bytes(raw[:end])
        with pytest.raises(FileError):
            sp.Ledger.open(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_ledger_that_may_not_be_written(path):
    path.chmod(0o400)
    ledger = sp.Ledger.open(path)
    assert ledger.spent == Fraction(1, 2)
    with pytest.raises(FileError, match="may not be written"):
        ledger.charge(counts("1/4"))


def test_a_full_disk_charges_nothing(path):
    """A charge that does not fit on the disk is refused and rolled back; what was acknowledged is there."""
    program = f"""
import resource, signal
from fractions import Fraction
import spinney as sp
from spinney.privacy.mechanisms import DiscreteLaplaceCounts
ledger = sp.Ledger.open({str(path)!r})
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
taken, failed = 0, ""
for _ in range(60):
    try:
        ledger.charge(DiscreteLaplaceCounts(Fraction(1, 1000), 2, "n" * 1500))
        taken += 1
    except sp.SpinneyError as err:
        failed = str(err)
print(taken, failed)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    taken, _, failed = done.stdout.partition(" ")
    assert 0 < int(taken) < 60
    assert "nothing was charged" in failed
    assert sp.Ledger.open(path).spent == Fraction(1, 2) + Fraction(int(taken), 1000)
    sp.Ledger.open(path).charge(counts("1/4"))


def test_a_killed_charge_is_whole_or_not_there(path):
    """Processes that are killed at any moment leave a ledger that opens, with every charge that they reported."""
    program = f"""
import sys
from fractions import Fraction
import spinney as sp
from spinney.privacy.mechanisms import DiscreteLaplaceCounts
ledger = sp.Ledger.open({str(path)!r})
print("ready", flush=True)
while True:
    ledger.charge(DiscreteLaplaceCounts(Fraction(1, 10**6), 2, "n"))
    print("charged", flush=True)
"""
    before = len(sp.Ledger.open(path).charges)
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    lines = [child.stdout.readline() for _ in range(12)]
    child.kill()
    lines += child.stdout.readlines()
    child.wait()
    child.stdout.close()
    reported = lines.count("charged\n")
    found = len(sp.Ledger.open(path).charges) - before
    assert reported <= found <= reported + 1


# ------------------------------------------------------------------------------------------------------------ servers


class Gate:
    """Stands between client and server. Once it is told to, it cuts the connection after an entry was committed."""

    def __init__(self, port: int) -> None:
        self.target, self.cuts, self.is_open = port, 0, True
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if not self.is_open:
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self.target))
            state = {"appends": False}
            for one, other, side in ((client, server, "client"), (server, client, "server")):
                threading.Thread(target=self._pass, args=(one, other, side, state), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket, side: str, state: dict[str, bool]) -> None:
        try:
            while data := one.recv(65536):
                if side == "client" and b"COMMIT" in data:
                    state["appends"] = True
                if side == "server" and state["appends"] and self.cuts:
                    self.cuts -= 1
                    break  # the server has answered, and the client is never told
                other.sendall(data)
        except OSError:
            pass
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def close(self) -> None:
        self.listener.close()


@pytest.fixture
def gate(postgres):
    made = Gate(postgres.server.port)
    yield made
    made.close()


def through(gate: Gate, user: str = "ann") -> str:
    return f"postgresql://{user}@127.0.0.1:{gate.port}/postgres"


def test_an_answer_that_is_lost_is_asked_for_again(postgres, gate):
    """The commit was made and its answer lost: the charge is looked up by its key, and is on record once."""
    postgres.create(limit=2)
    ledger = sp.Ledger.open(through(gate))
    gate.cuts = 1
    ledger.charge(counts("1/2"))
    assert gate.cuts == 0
    assert postgres.open("ann").spent == Fraction(1, 2)
    assert len(postgres.open("ann").charges) == 1
    ledger.charge(counts("1/4"))
    assert ledger.spent == Fraction(3, 4)


def test_an_answer_that_stays_lost_counts_as_charged(postgres, gate, monkeypatch):
    """The server cannot be reached again: the error says that the charge may be on record. It is."""
    postgres.create(limit=2)
    ledger = sp.Ledger.open(through(gate))
    monkeypatch.setattr(postgres_module, "PATIENCE", 0.5)
    gate.cuts, gate.is_open = 1, False
    with pytest.raises(FileError, match="take it that the entry is on record"):
        ledger.charge(counts("1/2"))
    assert postgres.open("ann").spent == Fraction(1, 2)


def test_a_server_that_is_away_charges_nothing_and_no_row_is_read(tmp_path, monkeypatch):
    """Before the charge nothing is lost: the table is not even opened."""
    table, schema = write_people(tmp_path, table="x,age,colour\n1,2,SECRET\n")
    address = "postgresql://ann@127.0.0.1:1/none"
    with pytest.raises(FileError, match=r"cannot be reached.*nothing was charged"):
        sp.Ledger.open(address)
    run = spinney(
        *("fit", table, "--schema", schema, "--epsilon", "1", "--out", tmp_path / "r.spinney", "--ledger", address)
    )
    assert run.status == 1
    assert "nothing was charged" in run.err


def test_a_server_that_restarts_is_waited_for(postgres):
    """A connection that the server ended is made anew, and the charge is made once."""
    postgres.create(limit=2)
    ledger = postgres.open("ann")
    ledger.charge(counts("1/4"))
    postgres.server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'ann' AND pid <> pg_backend_pid()"
    )
    ledger.charge(counts("1/4"))
    assert ledger.spent == Fraction(1, 2)


def test_a_server_ledger_that_is_locked_too_long(postgres, monkeypatch):
    import psycopg

    postgres.create(limit=2)
    monkeypatch.setattr(postgres_module, "PATIENCE", 0.2)
    ledger = postgres.open("ann")
    with psycopg.connect(postgres.address) as other:
        other.execute("SELECT * FROM spinney_ledger.head FOR UPDATE")
        with pytest.raises(FileError, match="locked"):
            ledger.charge(counts("1/4"))
    ledger.charge(counts("1/4"))
    assert len(ledger.charges) == 1


def test_databases_without_a_ledger_and_newer_ones(postgres):
    with pytest.raises(FileError, match="there is no ledger at"):
        postgres.open("owner")
    postgres.create()
    postgres.server.execute("UPDATE spinney_ledger.head SET version = 3")
    with pytest.raises(FileError, match=r"format version 3.*upgrade"):
        postgres.open("ann")


def test_a_restored_server_is_noticed_by_who_had_it_open(postgres):
    """A server that was set back to an earlier state has another last entry than the one that was known."""
    postgres.create(limit=2)
    ledger = postgres.open("ann")
    ledger.charge(counts("1/4"))
    postgres.server.execute("DROP SCHEMA spinney_ledger CASCADE")
    postgres.create(limit=2)
    with pytest.raises(FileError, match="is not the ledger that was opened"):
        ledger.charge(counts("1/4"))


def test_other_addresses_and_a_missing_library_are_told(monkeypatch):
    with pytest.raises(ParameterError, match="mysql:// is not an address"):
        sp.Ledger.open("mysql://host/name")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match="psycopg"):
        sp.Ledger.open("postgresql://host/name")
