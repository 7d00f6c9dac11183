"""Ledgers of the first version, JSON files: read as entries, and turned into a database by the first charge.

    JSON account    what a file says, checked entry by entry
    conversion      its entries, and the database that takes its place, whole or not at all

What the file did not say is not made up: the user of its entries is "unknown", their time is the file's own.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from spinney.errors import FileError, SpinneyError
from spinney.files import read_json
from spinney.privacy.accounts.chain import BEGINNING, FORMAT_VERSION, NOBODY, Row, text_of_events, this_version, written
from spinney.privacy.budget import LARGEST_BITS, Unit, parse_delta, parse_epsilon
from spinney.privacy.mechanisms import (
    Charge,
    Event,
    delta_of,
    event_from_dict,
    total_delta,
    total_epsilon,
)
from spinney.text import brief

# --------------------------------------------------------------------------------------------------------- JSON account
# An account in a JSON file, which is read and no longer written.
#
# What a file says is checked entry by entry when it is read: numbers, signs, sizes.


FORMAT = "spinney-ledger"
FILE_VERSION = 1

LARGEST_FILE = 2**26
_MOST_EVENTS = 100_000


@dataclass(frozen=True, slots=True)
class Version1:
    """What a JSON file says: unit, limits and events. Files from before there was a delta are pure."""

    unit: Unit
    limit: Fraction | None
    delta: Fraction
    events: tuple[Event, ...]
    content: bytes

    @property
    def digest(self) -> str:
        """SHA-256 of the file."""
        return sha256(self.content).hexdigest()


def read_version_1(path: Path) -> Version1:
    """The account in a JSON file; FileError where it is none."""
    content = read_ledger_file(path, LARGEST_FILE)
    try:
        described = read_json(content)
    except ValueError as err:
        raise FileError(f"{str(path)!r} is not a Spinney ledger, or is damaged: {err}") from None
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise FileError(f"{str(path)!r} is not a Spinney ledger")
    version = described.get("format_version")
    if type(version) is not int or not 1 <= version <= FILE_VERSION:
        raise FileError(
            f"{str(path)!r} is a JSON ledger of format version {brief(version)}, and JSON ledgers end with version "
            f"{FILE_VERSION}: later ones are databases; it was edited, or upgrade Spinney if a newer one wrote it"
        )
    try:
        limit = described["limit"]
        return Version1(
            Unit.parse(described["unit"]),
            None if limit is None else parse_epsilon(limit, "limit"),
            parse_delta(0 if described.get("delta") is None else described["delta"]),
            tuple(_events(path, described["events"])),
            content,
        )
    except (KeyError, TypeError, ValueError) as err:
        raise FileError(f"{str(path)!r} is a Spinney ledger with inconsistent contents: {_why(err)}") from err


def read_ledger_file(path: Path, largest: int, first: int | None = None) -> bytes:
    """A file, or its first bytes, unless it cannot be a ledger of any version: then a FileError."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise FileError(f"{str(path)!r} is not a file, so it cannot be a ledger")
        if status.st_nlink > 1:
            raise FileError(
                f"{str(path)!r} has another name (a hard link), and a charge would be seen under one of them only; "
                "remove the other name"
            )
        with path.open("rb") as file:
            content = file.read(largest + 1 if first is None else first)
    except FileNotFoundError:
        raise FileError(f"there is no ledger {str(path)!r}; open one first, with a limit") from None
    except SpinneyError:
        raise
    except OSError as err:
        raise FileError(f"cannot read {str(path)!r}: {err.strerror or err}") from err
    if max(status.st_size, len(content)) > largest:
        raise FileError(f"{str(path)!r} is larger than {largest >> 20} MiB, which is too large for a ledger")
    return content


def _events(path: Path, described: Any) -> list[Event]:
    """Every entry as an event; a FileError names the first that is none."""
    if not isinstance(described, list) or len(described) > _MOST_EVENTS:
        raise ValueError(f"events is not a list of at most {_MOST_EVENTS:,} entries")
    events: list[Event] = []
    sums = [Fraction(0), Fraction(0)]
    for number, entry in enumerate(described, start=1):
        try:
            event = event_from_dict(entry)
            amounts = (event.epsilon, delta_of(event)) if isinstance(event, Charge) else (Fraction(0), Fraction(0))
            sums = [total + amount for total, amount in zip(sums, amounts, strict=True)]
            if max(total.denominator.bit_length() for total in sums) > 4 * LARGEST_BITS:
                raise ValueError("the sum of all charges up to here has too many digits")
        except (KeyError, TypeError, ValueError) as err:
            raise FileError(
                f"{str(path)!r} is a Spinney ledger with inconsistent contents: entry {number}: {_why(err)}"
            ) from err
        events.append(event)
    return events


def _why(err: Exception) -> str:
    """What is wrong with an entry, in words."""
    return f"there is no entry {brief(err.args[0])}" if isinstance(err, KeyError) else str(err)


# ----------------------------------------------------------------------------------------------------------- conversion
# Reading changes nothing. The first charge holds the lock that older versions of Spinney take turns by, writes
# the same entries into a database beside the file, keeps the file as it was under another name, and puts the
# database in its place, whole or not at all. An older Spinney that comes later finds no ledger that it knows
# and charges nothing.
#
# What the file did not say is not made up: the user of its entries is "unknown", their time is the file's own.
# The ledger's name follows from the contents of the file, so two copies of one file are known to be copies.


POPULATION = "default"
_PATIENCE = 60.0


def rows_of(path: Path) -> list[Row]:
    """The entries that a file of the first version stands for."""
    account = read_version_1(path)
    time = datetime.fromtimestamp(path.stat().st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    rows: list[Row] = []
    previous = BEGINNING
    for kind, fields in _entries(account):
        entry = written(len(rows) + 1, previous, time, NOBODY, this_version(), kind, fields)
        rows.append(entry.row)
        previous = entry.hash
    return rows


def _entries(account: Version1) -> Iterable[tuple[str, dict[str, Any]]]:
    name = sha256(account.content).hexdigest()[:32]
    yield "opened", {"ledger": name, "format_version": FORMAT_VERSION, "imported": account.digest}
    limits = {
        "epsilon": None if account.limit is None else str(account.limit),
        "delta": None if account.limit is None else str(account.delta),
    }
    yield "population", {"population": POPULATION, "unit": account.unit.value, **limits, "approval": False}
    yield from _charges(account.events, account.unit.value, name)


def _charges(events: Iterable[Event], unit: str, name: str) -> Iterable[tuple[str, dict[str, Any]]]:
    """Charges and brands as entries. Limits are not looked at: they were spent."""
    for number, event in enumerate(events):
        key = sha256(f"{name} {number}".encode()).hexdigest()[:32]
        fields: dict[str, Any] = {"key": key, "fit": key, "population": POPULATION, "imported": True}
        listed = text_of_events([event])
        if isinstance(event, Charge):
            amounts = {"epsilon": str(total_epsilon([event])), "delta": str(total_delta([event]))}
            yield "charge", {**fields, "unit": unit, **amounts, "events": listed}
        else:
            yield "brand", {**fields, "events": listed}


def backup_of(path: Path) -> Path:
    """Where the JSON file is kept."""
    return path.with_name(f"{path.name}.version-1")


def convert(path: Path, write_database: Callable[..., None]) -> None:
    """Turn a file of the first version into a database at the same place; whoever was faster has done it already."""
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
        with FileLock(f"{path}.lock", timeout=_PATIENCE, mode=mode | stat.S_IRUSR | stat.S_IWUSR):
            kept = path.read_bytes()
            if kept.startswith(b"SQLite"):
                return
            rows = rows_of(path)
            backup = backup_of(path)
            if backup.exists():
                raise FileError(
                    f"{str(path)!r} is of version 1, and {str(backup)!r} says that it was turned into a database "
                    "before: this is a copy from then. Find the database, or remove that name if there is none"
                )
            write_database(path, rows, overwrite=True)
            _keep(backup, kept, mode)
    except Timeout:
        raise FileError(f"{str(path)!r} was locked for {_PATIENCE:g} seconds; nothing was charged; try again") from None
    except FileError:
        raise
    except OSError as err:
        raise FileError(f"cannot turn {str(path)!r} into a database: {err.strerror or err}") from err


def _keep(backup: Path, content: bytes, mode: int) -> None:
    """The old file, for people to look at: nobody can write it."""
    backup.write_bytes(content)
    backup.chmod(mode & ~0o222)
