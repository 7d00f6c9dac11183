"""A ledger on a PostgreSQL server, which keeps to the rules by itself (`server.sql`).

addresses    read as libpq reads them, and shown without a password
store        entries are calls of functions of the server, repeated safely where a connection breaks
"""

from __future__ import annotations

import json
import os
import re
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from importlib.resources import files
from secrets import token_hex
from typing import Any, TypeVar, get_args

from spinney.errors import BudgetError, FileError, ParameterError, SpinneyError
from spinney.machine import load_optional
from spinney.privacy.accounts.chain import BOUNDS, FORMAT_VERSION, KINDS, Entry, check_version, read_entry, this_version
from spinney.privacy.accounts.rules import State, apply, read, rehearsed
from spinney.privacy.ledger import turn
from spinney.privacy.mechanisms import Brand, Charge, Part, fields_of

# ------------------------------------------------------------------------------------------------------------ addresses
# Addresses of PostgreSQL servers: read as libpq reads them, refused in clear words, and shown without a
# password.
#
# `postgresql://user:password@host:port/database?option=value`. In a user, a password or a name `/`, `@`, `#`
# and the like are written as `%2F`, `%40`, `%23`; where they are not, libpq takes a part of a password for a
# host, a port or a name. Whatever an address holds may be such a part, so an error about an address that is
# refused shows nothing of it but the name of an option.


SCHEMES = ("postgresql", "postgres")
_REMEDY = (
    "write it as postgresql://user@host:port/database, with every /, @, #, ? and % of a password as %2F, %40, %23, %3F "
    "and %25; better, keep the password in ~/.pgpass or PGPASSWORD"
)
_HOST = re.compile(r"(?:[0-9A-Za-z_.:\-]|/)*")
_PORT = re.compile(r"[0-9]{0,5}")
_UNKNOWN_OPTION = re.compile(r'invalid URI query parameter: "([A-Za-z_]{1,40})"')


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is, and what must not be shown of how to get in."""

    given: dict[str, Any]
    shown: str  # without a password
    secrets: tuple[str, ...]

    def redacted(self, text: str) -> str:
        """A message of the server or the driver, without a password."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


def parse_address(url: str, psycopg: Any) -> Address:
    """What libpq makes of an address; a ParameterError where it is none that anybody meant."""
    try:
        given = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error as err:
        option = _UNKNOWN_OPTION.search(str(err))
        if option is not None:
            raise ParameterError(
                f"the address of the ledger has the option {option[1]!r}, which PostgreSQL does not know; check its "
                "spelling, as in ?sslmode=verify-full"
            ) from None
        raise ParameterError(f"the address of the ledger cannot be read; {_REMEDY}") from None
    hosts = str(given.get("host") or "").split(",")
    ports = str(given.get("port") or "").split(",")
    name = str(given.get("dbname") or "")
    if not all(map(_HOST.fullmatch, hosts)) or not all(map(_PORT.fullmatch, ports)) or re.search(r"[@/#?]", name):
        raise ParameterError(f"the address of the ledger has an odd host, port or database; {_REMEDY}")
    if any(port and not 1 <= int(port) <= 65_535 for port in ports):
        raise ParameterError("the port in the address of the ledger is not in 1..65535")
    if len(ports) > 1 and len(ports) != len(hosts):
        raise ParameterError("the address of the ledger names another number of ports than of hosts")
    secrets = tuple(str(given[key]) for key in ("password", "sslpassword") if given.get(key))
    return Address(given, _shown(given, hosts, ports, name), secrets)


def _shown(given: dict[str, Any], hosts: list[str], ports: list[str], name: str) -> str:
    places = [
        f"{host or 'localhost'}{f':{port}' if port else ''}"
        for host, port in zip(hosts, ports if len(ports) > 1 else ports * len(hosts), strict=True)
    ]
    user = f"{given['user']}@" if given.get("user") else ""
    return f"postgresql://{user}{','.join(places)}/{name}"


# ---------------------------------------------------------------------------------------------------------------- store
# The entries of a ledger on a server.
#
# An entry is one call of a function in one transaction of its own, with a key that no other call has. Where the
# connection breaks before the answer is there, the same call is made again with the same key: the server then
# says what it did the first time, or does it now, but never both. Where the server cannot be reached again, the
# error says that the charge may be on record. Nothing was released in either case: noise is drawn after the
# answer.
#
# Our own rules are asked first (`rules.rehearsed`), so that nothing is sent that we could not read again.


PATIENCE = 60.0  # seconds that a charge waits for others, or for a server that restarts
_PAUSE = 0.1

_BUDGET, _RULE = "SP001", "SP002"
_NO_LEDGER = ("3F000", "42P01", "42883")  # no such schema, table or function
_NO_RIGHT = ("42501", "28000", "28P01")
_LOCKED = ("55P03", "57014")
_AGAIN = ("40001", "40P01")  # two transactions in each other's way
# Who has the lock that others wait for: of those who hold any on the head, those who wait for none.
_HOLDERS = """
    SELECT DISTINCT a.usename, a.pid FROM pg_locks l JOIN pg_stat_activity a USING (pid)
    WHERE l.granted AND l.relation = to_regclass('spinney_ledger.head') AND l.mode <> 'AccessShareLock'
        AND l.pid <> pg_backend_pid()
        AND NOT EXISTS (SELECT FROM pg_locks w WHERE w.pid = l.pid AND NOT w.granted)
"""

# Connections that a forked process found: closing one would end that of the parent.
_NOT_OURS: list[Any] = []

AnswerT = TypeVar("AnswerT")


class PostgresStore:
    """The entries of a ledger on a server."""

    _connection: Any = None

    def __init__(self, url: str) -> None:
        self._url = url
        self._process = 0
        self._user: str | None = None
        self._address = parse_address(url, self._psycopg())

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_connection": None, "_process": 0}

    @property
    def address(self) -> str:
        """Where it is, without a password."""
        return self._address.shown

    @property
    def shown(self) -> str:
        return repr(self.address)

    def user(self) -> str:
        """Who is logged in, as the server says."""
        if self._user is None:
            self._user = str(self._answer(lambda c: c.execute("SELECT session_user::text").fetchone()[0], "read"))
        return self._user

    def may_keep(self) -> bool:
        """Whether this user may write what keepers write."""
        query = "SELECT has_function_privilege('spinney_ledger.keeper_append(text, json, text, text)', 'execute')"
        return bool(self._answer(lambda c: c.execute(query).fetchone()[0], "read"))

    def exists(self) -> bool:
        return True

    def create(self, entries: list[tuple[str, dict[str, Any]]]) -> None:
        """Make the ledger in a database that has none, with its first entries, all or nothing."""
        script = files("spinney.privacy.accounts").joinpath("server.sql").read_text(encoding="utf-8")

        def make(connection: Any) -> None:
            with connection.transaction():
                if connection.execute("SELECT to_regnamespace('spinney_ledger') IS NOT NULL").fetchone()[0]:
                    raise FileError(f"{self.shown} has a ledger already; open it, or add a population to it")
                connection.execute(script)
                for table, rows in tables_of_rules().items():
                    connection.cursor().executemany(
                        f"INSERT INTO spinney_ledger.{table} VALUES ({', '.join(['%s'] * len(rows[0]))})",  # noqa: S608
                        rows,
                    )
                connection.execute(
                    "INSERT INTO spinney_ledger.head (version, number, hash) VALUES (%s, 0, repeat('0', 64))",
                    (FORMAT_VERSION,),
                )
                for kind, fields in entries:
                    query = "SELECT spinney_ledger.append(%s, %s::json, %s, %s, true)"
                    connection.execute(query, _arguments(kind, fields))

        self._answer(make, "create")

    def read(self, state: State) -> None:
        """Have `state` know all that is on the server now."""

        def ask(connection: Any) -> tuple[int, list[Any]]:
            version = connection.execute("SELECT version FROM spinney_ledger.head").fetchone()
            query = "SELECT number, content, hash FROM spinney_ledger.entries WHERE number >= %s ORDER BY number"
            return (0 if version is None else version[0]), connection.execute(query, (state.number,)).fetchall()

        version, rows = self._answer(ask, "read")
        check_version(version, self.shown)
        read(state, rows, self.shown)

    def append(self, state: State, entries: list[tuple[str, dict[str, Any]]]) -> list[Entry]:
        """Have the server check and write entries, all or none. They are durable there when this returns."""
        self.read(state)
        rehearsed(state, entries, self.user())
        calls = [(_function(kind, fields), _arguments(kind, fields)) for kind, fields in entries]

        def write(connection: Any) -> list[Any]:
            with connection.transaction():
                return [connection.execute(query, arguments).fetchone() for query, arguments in calls]

        rows = self._answer(write, "charge" if any(kind == "charge" for kind, _ in entries) else "write")
        written = [read_entry(row) for row in rows]
        for entry in written:
            if entry.number == state.number + 1 and entry.previous == state.hash:
                apply(state, entry)
        return written

    def sums(self) -> dict[str, tuple[str | None, ...]]:
        """Limits and sums as the server itself keeps them, by population: what `verify` compares entries with."""
        columns = ", ".join(
            f"({name}).n::text, ({name}).d::text"
            for name in ("epsilon_limit", "delta_limit", "epsilon_spent", "delta_spent")
        )
        rows = self._answer(
            lambda c: c.execute(
                f"SELECT name, unit, approval::text, moved_to, {columns} FROM spinney_ledger.populations"  # noqa: S608
            ).fetchall(),
            "read",
        )
        return {row[0]: tuple(row[1:]) for row in rows}

    # ------------------------------------------------------------------------------------------------- connections

    def _answer(self, ask: Callable[[Any], AnswerT], what: str) -> AnswerT:
        """What the server answers; asked again where the connection broke, for as long as patience lasts."""
        psycopg = self._psycopg()
        was_sent, deadline = False, time.monotonic() + PATIENCE
        with turn():
            while True:
                try:
                    connection = self._connected(psycopg)
                except psycopg.OperationalError as err:
                    is_new = self._process == 0  # a server that was never reached is not waited for
                    if _state_of(err) in _NO_RIGHT or is_new or time.monotonic() > deadline:
                        raise self._away(err, what, was_sent=was_sent) from None
                    time.sleep(_PAUSE)
                    continue
                try:
                    return ask(connection)
                except SpinneyError:
                    raise
                except psycopg.Error as err:
                    told = self._told(err)
                    if told is not None:
                        raise told from None
                    self._drop(connection)
                    was_sent |= what != "read"
                    if time.monotonic() > deadline:
                        raise self._away(err, what, was_sent=was_sent) from None
                    time.sleep(_PAUSE)

    def _connected(self, psycopg: Any) -> Any:
        """The connection of this process, made where there is none."""
        if self._connection is not None and self._process != os.getpid():
            _NOT_OURS.append(self._connection)
            self._connection = None
        if self._connection is not None and self._connection.closed:
            self._connection = None
        if self._connection is None:
            connection = self._connect(psycopg)
            connection.execute(f"SET lock_timeout = {round(PATIENCE * 1000)}")
            self._connection, self._process = connection, os.getpid()
            weakref.finalize(self, _close, connection, os.getpid())
        return self._connection

    def _connect(self, psycopg: Any) -> Any:
        defaults = {"connect_timeout": 10, "application_name": "spinney"}
        left_out = {name: value for name, value in defaults.items() if name not in self._address.given}
        return psycopg.connect(self._url, autocommit=True, **left_out)

    def _drop(self, connection: Any) -> None:
        self._connection = None
        connection.close()

    def _told(self, err: Any) -> SpinneyError | None:
        """What the server refused, in words; None where the connection broke and asking again may help."""
        state, first = _state_of(err), self._first_line(err)
        if state == _BUDGET:
            remedy = "; ask for less, or have the limit raised: spinney ledger raise LEDGER --limit ... --why ..."
            return BudgetError(first + (remedy if " is spent" in first else ""))
        if state == _RULE:
            return ParameterError(f"{self.shown} refuses this entry: {first}")
        if state in _NO_LEDGER:
            return FileError(f"there is no ledger at {self.shown}; open one first, with a limit")
        if state in _NO_RIGHT:
            return FileError(
                f"this user may not do that at {self.shown} ({first}); nothing was recorded. Analysts need the role "
                "spinney_analyst_DATABASE, and those who approve and set limits spinney_keeper_DATABASE"
            )
        if state in _LOCKED:
            return FileError(
                f"{self.shown} was locked by {self._holders()} for {PATIENCE:g} seconds; nothing was charged"
            )
        if state in _AGAIN or isinstance(err, (self._psycopg().OperationalError, self._psycopg().InterfaceError)):
            return None
        return FileError(f"{self.shown} could not do that: {first}")

    def _first_line(self, err: Any) -> str:
        text = self._address.redacted(str(err))
        return text.splitlines()[0] if text else type(err).__name__

    def _holders(self) -> str:
        """Who has the lock, and how the owner of the server ends it."""
        found: list[Any] = []
        with suppress(Exception):
            found = self._connection.execute(_HOLDERS).fetchall()
        if not found:
            return "somebody else"
        return " and ".join(
            f"{user}, whose connection the owner of the server can end (SELECT pg_terminate_backend({process}))"
            for user, process in found
        )

    def _away(self, err: Any, what: str, *, was_sent: bool) -> FileError:
        first = self._first_line(err)
        if not was_sent:
            return FileError(f"the ledger {self.shown} cannot be reached ({first}); nothing was charged")
        return FileError(
            f"the connection to the ledger {self.shown} broke in the middle of a {what}, and it cannot be reached "
            f"again ({first}); take it that the entry is on record until you have looked. Nothing was released"
        )

    @staticmethod
    def _psycopg() -> Any:
        return load_optional("psycopg", "a ledger on a PostgreSQL server", otherwise="keep the ledger in a file")


def _close(connection: Any, process: int) -> None:
    """End a connection with the ledger that made it, in the process that made it."""
    if process == os.getpid():
        with suppress(Exception):
            connection.close()


def tables_of_rules() -> dict[str, list[tuple[Any, ...]]]:
    """What a server keeps to, as rows of its tables: kinds of entries, events and parts, their fields, and bounds."""
    kinds = [(name, "entry", list(kind.writers), kind.fields) for name, kind in KINDS.items()]
    for sort, union in (("charge", Charge), ("brand", Brand), ("part", Part)):
        kinds += [(kind.__name__, sort, [], fields_of(kind)) for kind in get_args(union)]
    return {
        "kinds": [kind[:3] for kind in kinds],
        "fields": [
            (
                *(thing, name, field.kind, _fraction(field.low), _fraction(field.high)),
                *(field.ends, field.pattern, field.is_needed, field.otherwise),
            )
            for thing, *_, fields in kinds
            for name, field in fields.items()
        ],
        "bounds": list(BOUNDS.items()),
    }


def _fraction(number: Fraction | int | None) -> str | None:
    """A value of the server's type `fraction`."""
    return None if number is None else "({},{})".format(*Fraction(number).as_integer_ratio())


def _function(kind: str, fields: dict[str, Any]) -> str:
    """The call that writes an entry of a kind: a keeper's or an analyst's."""
    keeps = "analyst" not in KINDS[kind].writers or fields.get("imported") is True
    function = "keeper_append" if keeps else "analyst_append"
    return f"SELECT number, content, hash FROM spinney_ledger.{function}(%s, %s::json, %s, %s)"  # noqa: S608


def _arguments(kind: str, fields: dict[str, Any]) -> tuple[str, str, str, str]:
    """What the call is given, with a key that tells it from others; the same where the call is repeated."""
    return kind, json.dumps(fields), this_version(), fields.get("key") or token_hex(16)


def _state_of(err: Any) -> str:
    return str(getattr(err, "sqlstate", None) or "")
