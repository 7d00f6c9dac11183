"""Addresses of servers that are odd, and users with odd names: clear errors, and never a password in them."""

from __future__ import annotations

import getpass

import psycopg
import pytest

import spinney as sp
from spinney.errors import FileError, ParameterError, SpinneyError
from spinney.privacy.accounts import sqlite
from spinney.privacy.accounts.postgres import parse_address
from spinney.privacy.accounts.sqlite import SqliteStore
from spinney.privacy.accounts.verifying import verify_ledger
from spinney.privacy.mechanisms import NotPrivate
from support.command_line import spinney

ODD = {
    "a slash in the password": "postgresql://ann:SEC/RET@db.example/ledger",
    "a hash and a slash": "postgresql://ann:S#E/CRET@db.example/ledger",
    "an at sign in the password": "postgresql://ann:x@SECRET@db.example/ledger",
    "a percent sign in the password": "postgresql://ann:SECRET%zz@db.example/ledger",
    "a port that is none": "postgresql://db.example:SECRET/ledger",
    "a port that is too large": "postgresql://ann:SECRET@db.example:99999/ledger",
    "more ports than hosts": "postgresql://ann:SECRET@/ledger?host=a&port=1,2",
    "a database with a slash": "postgresql://db.example/ledger/SECRET",
    "no end of brackets": "postgresql://ann:SECRET@[::1/ledger",
}


@pytest.mark.parametrize("address", ODD.values(), ids=ODD)
def test_odd_addresses_are_told_without_what_they_hold(address):
    with pytest.raises(ParameterError, match="address of the ledger") as caught:
        sp.Ledger.open(address)
    run = spinney("ledger", "show", address)
    for said in (str(caught.value), run.err, run.out):
        assert "SEC" not in said
        assert "RET" not in said
    assert run.status == 2


def test_a_misspelt_option_is_named():
    with pytest.raises(ParameterError, match=r"the option 'sslmod', which PostgreSQL does not know") as caught:
        sp.Ledger.open("postgresql://ann:SECRET@db.example/ledger?sslmod=require")
    assert "SECRET" not in str(caught.value)


def test_another_scheme_does_not_tell_what_follows_it():
    for address in ("Postgresql://ann:SECRET@db/ledger", "mysql://ann:SECRET@db/ledger"):
        run = spinney("ledger", "show", address)
        assert run.status == 2
        assert "is not an address of a ledger" in run.err
        assert "SECRET" not in run.err


def test_several_hosts_and_sockets_are_shown():
    shown = {
        "postgresql://ann:SECRET@a:1,b:2/ledger": "postgresql://ann@a:1,b:2/ledger",
        "postgresql://a,b/ledger": "postgresql://a,b/ledger",
        "postgresql:///ledger?host=/run/pg&port=5&password=SECRET": "postgresql:///run/pg:5/ledger",
        "postgresql://[::1]:5/ledger": "postgresql://::1:5/ledger",
        "postgres://db/ledger?sslmode=require": "postgresql://db/ledger",
    }
    for given, wanted in shown.items():
        assert parse_address(given, psycopg).shown == wanted
    assert parse_address("postgresql://ann:S%2FECRET@a/b", psycopg).redacted("x S/ECRET y") == "x *** y"


def test_a_server_with_several_hosts_is_reached(postgres):
    """The first that answers, as libpq does; the others may be away."""
    postgres.create(limit=1)
    port = postgres.server.port
    ledger = sp.Ledger.open(f"postgresql://ann@127.0.0.1:1,127.0.0.1:{port}/postgres")
    assert (ledger.limit, ledger.address) == (1, f"postgresql://ann@127.0.0.1:1,127.0.0.1:{port}/postgres")
    with pytest.raises(FileError, match="cannot be reached"):
        sp.Ledger.open("postgresql://ann@127.0.0.1:1,127.0.0.1:2/postgres")


def test_users_with_odd_names_are_on_record(tmp_path, monkeypatch):
    """Where names come from the environment (LOGNAME), bytes that are no characters are written as escapes."""
    monkeypatch.setattr(sqlite, "pwd", None)
    monkeypatch.setattr(getpass, "getuser", lambda: "ann\udcff")
    ledger = sp.Ledger.create(tmp_path / "s.ledger", limit=1)
    assert SqliteStore(tmp_path / "s.ledger").user() == "ann\\udcff"
    assert {entry.user for entry in ledger.entries} == {"ann\\udcff"}
    assert verify_ledger(tmp_path / "s.ledger").checks


def test_notes_of_half_characters_are_refused_before_anything_is_written(tmp_path):
    ledger = sp.Ledger.create(tmp_path / "s.ledger", limit=1)
    with pytest.raises(SpinneyError, match="half a character"):
        ledger.brand(NotPrivate("\ud800"))
    assert sp.Ledger.open(tmp_path / "s.ledger").spent == 0
