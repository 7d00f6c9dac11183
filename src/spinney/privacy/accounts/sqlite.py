"""A ledger in an SQLite file: one table of entries, added to by one process at a time.

A charge is one transaction, begun with the right to write (`BEGIN IMMEDIATE`), so that between the check and the entry
nobody else can charge. The journal is the one that SQLite removes to commit, with `synchronous=EXTRA`: entry, journal
and the folder are on disk before a charge returns, and between charges the ledger is a single file. (`WAL` would keep
what was charged in a second file, and needs memory that machines on a network drive do not share.)

Every connection is made anew: none outlives a fork or a copy. All of it happens in the turn of a thread, since closing
any handle of a file gives up the locks that this process has on it.
"""

from __future__ import annotations

import getpass
import os
import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from spinney.errors import FileError, SpinneyError
from spinney.files import write_whole
from spinney.privacy.accounts import version1
from spinney.privacy.accounts.chain import FORMAT_VERSION, NOBODY, Entry, Row, check_version
from spinney.privacy.accounts.rules import State, read, rehearsed
from spinney.privacy.accounts.version1 import read_version_1
from spinney.privacy.ledger import turn

pwd: ModuleType | None
try:
    import pwd
except ImportError:  # where users have no numbers
    pwd = None

APPLICATION = 0x53504E59  # "SPNY", which tells a ledger from other databases
LARGEST_FILE = 2**30
PATIENCE = 60.0  # seconds that a charge waits for others
_PAUSES = (0.001, 0.02)

_MARK = b"SQLite format 3\0"
_TABLE = (
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, content TEXT NOT NULL, hash TEXT NOT NULL UNIQUE)",
    # Against slips of the hand; against an adversary there are heads.
    "CREATE TRIGGER entries_are_not_changed BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'entries stay'); END",
    "CREATE TRIGGER entries_are_not_removed BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'entries stay'); END",
)


class SqliteStore:
    """The entries of a ledger in a file. A file of the first version is read as one, and becomes one when charged."""

    def __init__(self, path: str | Path) -> None:
        # Resolved, so that a link or another working folder leads to the same file and the same journal.
        self.path = Path(path).resolve()
        self._given = str(path)

    @property
    def address(self) -> str:
        return str(self.path)

    @property
    def shown(self) -> str:
        return repr(str(self.path))

    def user(self) -> str:
        """Who is at work, as the operating system says, whatever the environment says."""
        if pwd is not None:
            number = os.geteuid()
            try:
                return _name(pwd.getpwuid(number).pw_name) or f"uid {number}"
            except KeyError:
                return f"uid {number}"
        try:
            return _name(getpass.getuser()) or NOBODY
        except (OSError, KeyError, ImportError):
            return NOBODY

    def may_keep(self) -> bool:
        """Whether this user may write what keepers write: whoever may write the file."""
        return os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)

    def create(self, entries: list[tuple[str, dict[str, Any]]]) -> None:
        """Make the file, with its first entries; FileError where it exists."""
        state = rehearsed(State(), entries, self.user())
        write_database(self.path, [entry.row for entry in state.entries], overwrite=False)

    def exists(self) -> bool:
        return self.path.exists()

    def read(self, state: State) -> None:
        """Have `state` know all that is in the file now."""
        with turn():
            if self._is_version_1():
                self._read_version_1(state)
                return
            with self._connected() as connection:
                self._read_on(connection, state)

    def append(self, state: State, entries: list[tuple[str, dict[str, Any]]]) -> list[Entry]:
        """Write entries, all or none, after `state` has taken in what others wrote. They are on disk on return."""
        with turn():
            if self._is_version_1():
                version1.convert(self.path, write_database)
            with self._connected() as connection:
                _begin(connection)
                self._read_on(connection, state)
                trial = rehearsed(state, entries, self.user())
                new = trial.entries[state.number :]
                connection.executemany(
                    "INSERT INTO entries (number, content, hash) VALUES (?, ?, ?)", [entry.row for entry in new]
                )
                connection.execute("COMMIT")
                state.take(trial)
                return new

    def _read_on(self, connection: sqlite3.Connection, state: State) -> None:
        """Read from the last known entry on, which has to be there still."""
        if state.is_provisional:
            state.take(State())
        query = "SELECT number, content, hash FROM entries WHERE number >= ? ORDER BY number"
        rows = connection.execute(query, (state.number,)).fetchall()
        read(state, rows, self.shown)

    def _read_version_1(self, state: State) -> None:
        """Read the whole file, which others may have charged, but whose limits and unit are no longer changed."""
        found = State()
        read(found, version1.rows_of(self.path), self.shown)
        found.is_provisional = True
        if state.number:
            rooms = [each.populations[version1.POPULATION].room for each in (state, found)]
            if len({(room.unit, room.limit, room.delta_limit) for room in rooms}) > 1:
                raise FileError(f"{self.shown} has another limit or unit than when it was opened; open it again")
        state.take(found)

    def _is_version_1(self) -> bool:
        """Whether the file is a JSON file of the first version; FileError where it is no file or has two names."""
        if not self.path.exists():
            raise FileError(f"there is no ledger {self._given!r}; open one first, with a limit")
        if first_bytes(self.path) == _MARK:
            return False
        read_version_1(self.path)  # a FileError says what is wrong where it is none
        return True

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """A connection to the file as it should be; errors of SQLite become ours."""
        try:
            with closing(
                sqlite3.connect(f"{self.path.as_uri()}?mode=rw", uri=True, timeout=PATIENCE, isolation_level=None)
            ) as connection:
                for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "synchronous=EXTRA", "journal_mode=DELETE"):
                    connection.execute(f"PRAGMA {pragma}")
                self._check_format(connection)
                try:
                    yield connection
                except BaseException:
                    with suppress(sqlite3.Error):
                        if connection.in_transaction:
                            connection.execute("ROLLBACK")
                    raise
        except SpinneyError:
            raise
        except (sqlite3.Error, UnicodeDecodeError) as err:
            raise self._told(err) from err

    def _check_format(self, connection: sqlite3.Connection) -> None:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        if application != APPLICATION:
            raise FileError(f"{self.shown} is an SQLite database and not a Spinney ledger")
        check_version(connection.execute("PRAGMA user_version").fetchone()[0], self.shown)
        found = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        if sorted(sql for (sql,) in found) != sorted(_TABLE):
            raise FileError(f"{self.shown} is a Spinney ledger with other tables than one has: it was changed by hand")

    def _told(self, err: Exception) -> FileError:
        """An error of SQLite in words. Whatever was begun was rolled back, so nothing was charged."""
        code = getattr(err, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            what = f"was locked by another process for {PATIENCE:g} seconds; nothing was charged; try again"
        elif code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
            what = "may not be written to by this user; nothing was charged"
        elif code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            what = "could not be written, perhaps because the disk is full; nothing was charged"
        elif code == sqlite3.SQLITE_CANTOPEN:
            what = "could not be opened, or its folder cannot be written to; nothing was charged"
        else:
            what = f"is not a Spinney ledger, or is damaged ({err})"
        return FileError(f"{self.shown} {what}")


def _name(given: str) -> str:
    """A user's name as an entry can hold it: what is no character is written as an escape."""
    return given.encode("utf-8", "backslashreplace").decode()[:200]


def _begin(connection: sqlite3.Connection) -> None:
    """Begin a transaction that may write, as soon as nobody else has one.

    SQLite itself would ask again ever more rarely, so that of many processes those that came first wait longest.
    """
    deadline = time.monotonic() + PATIENCE
    connection.execute("PRAGMA busy_timeout = 0")
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
            break
        except sqlite3.OperationalError as err:
            if err.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(random.uniform(*_PAUSES))  # noqa: S311  # no secret
    connection.execute(f"PRAGMA busy_timeout = {round(PATIENCE * 1000)}")


def first_bytes(path: Path) -> bytes:
    """The first bytes of a ledger's file; FileError where it cannot be one."""
    return version1.read_ledger_file(path, LARGEST_FILE, len(_MARK))


def write_database(path: Path, rows: list[Row], *, overwrite: bool) -> None:
    """A file with these entries, which appears whole or not at all."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for statement in _TABLE:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
        connection.executemany("INSERT INTO entries (number, content, hash) VALUES (?, ?, ?)", rows)
        content = connection.serialize()

    write_whole(path, content, overwrite=overwrite)
