"""Ledgers of several users, in a file and on a server: `place` runs a test on both."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import spinney as sp
from spinney.privacy.accounts.shared import SharedLedger
from spinney.privacy.mechanisms import DiscreteLaplaceCounts
from support.postgres import Server, programs

USERS = {"ann": "analyst", "bob": "analyst", "kim": "keeper", "kay": "keeper"}


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A private PostgreSQL server, with two analysts and two keepers."""
    if programs() is None:
        pytest.skip("PostgreSQL is not installed: no initdb, postgres and pg_ctl were found")
    pytest.importorskip("psycopg")
    with Server() as running:
        for user in (*USERS, "stranger"):
            running.execute(f"CREATE ROLE {user} LOGIN")
        grant_roles(running, "postgres")
        yield running


def grant_roles(server: Server, database: str) -> None:
    """Make the roles of a database, and give them to the users; a ledger that is created there takes them over."""
    for role in sorted(set(USERS.values())):
        server.execute(f"CREATE ROLE spinney_{role}_{database} NOLOGIN")
    for user, role in USERS.items():
        server.execute(f"GRANT spinney_{role}_{database} TO {user}")


class Place:
    """Where a ledger is kept, and the users who open it."""

    def __init__(self, address: str, server: Server | None, database: str = "") -> None:
        self.address, self.server, self.database = address, server, database

    def create(self, limit: Any = 2, **options: Any) -> SharedLedger:
        sp.Ledger.create(self.address, limit=limit, **options)
        return self.open("kim", population=options.get("population"))

    def address_of(self, user: str) -> str:
        return self.address if self.server is None else self.server.url(self.database, user)

    def open(self, user: str, **details: Any) -> SharedLedger:
        ledger = sp.Ledger.open(self.address_of(user), **details)
        if self.server is None:
            ledger._store.user = lambda: user  # type: ignore[method-assign]
        return ledger


@pytest.fixture
def postgres(server: Server) -> Place:
    """The one database of the server, without a ledger."""
    server.execute("DROP SCHEMA IF EXISTS spinney_ledger CASCADE")
    return Place(server.url(), server, "postgres")


@pytest.fixture(scope="module")
def one_for_all(server: Server) -> Place:
    """A ledger in a database of its own, for tests in which nothing is recorded."""
    database = server.new_database()
    grant_roles(server, database)
    made = Place(server.url(database), server, database)
    made.create(limit=1)
    made.open("ann").charge(DiscreteLaplaceCounts(Fraction(1, 4), 2, "counts"))
    return made


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A ledger to be, in a file or on a server."""
    if request.param == "sqlite":
        return Place(str(tmp_path / "people.ledger"), None)
    made: Place = request.getfixturevalue("postgres")
    return made
