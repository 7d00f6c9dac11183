"""Ledgers of the first version, JSON files: read as entries, and turned into a database by the first charge.

Reading changes nothing. The first charge holds the lock that older versions of Spinney take turns by, writes the same
entries into a database beside the file, keeps the file as it was under another name, and puts the database in its
place, whole or not at all. An older Spinney that comes later finds no ledger that it knows and charges nothing.

What the file did not say is not made up: the user of its entries is "unknown", their time is the file's own. The
ledger's name follows from the contents of the file, so two copies of one file are known to be copies.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from spinney.errors import FileError
from spinney.privacy.account import Version1, read_version_1
from spinney.privacy.accounts.chain import BEGINNING, FORMAT_VERSION, NOBODY, Row, this_version, written
from spinney.privacy.events import Charge, Event, event_to_dict, total_delta, total_epsilon

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
        listed = json.dumps([event_to_dict(event)], ensure_ascii=False)
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
