"""Entries of a ledger, each of which holds the hash of the one before.

An entry is one flat JSON object, kept as the text that was hashed: number, previous, time, user, spinney (a version),
kind, and the fields of its kind. Its hash is SHA-256 of that text, so whoever wrote down one hash, a head, can tell
whether anything up to there was edited, removed, put in another order or cut off. Nobody can without one: a chain that
is whole may have been written anew.

    opened       a ledger and its version; of an imported one, what it was made from
    population   whose budget it is: unit, limits, whether charges need approval
    limit        other limits, and why          policy    whether charges need approval from now on, and why
    closed       a population goes on in another ledger, and is not charged here any more
    table        a table, by name and schema, bound to a population
    request      so much is wanted for a purpose; `approval` and `denial` name its number
    charge       what is paid for, before noise is drawn          brand     what voids a guarantee
    released     the digest of what a fit's charges paid for      failed    nothing came of them
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from importlib import import_module
from typing import Any

from spinney.errors import FileError, ParameterError
from spinney.files import read_json
from spinney.shown import brief

FORMAT_VERSION = 2
BEGINNING = "0" * 64  # what stands for the hash of the entry before the first
NOBODY = "unknown"  # the user of entries that were made before anybody wrote down by whom
LARGEST_CONTENT = 2**21

KINDS = (
    *("opened", "population", "limit", "policy", "closed", "table"),
    *("request", "approval", "denial", "charge", "brand", "released", "failed"),
)
# What only those who keep the ledger may write, where a server tells who they are.
KEPT_BY_KEEPERS = ("population", "limit", "policy", "closed", "table", "approval", "denial")

_COMMON = ("number", "previous", "time", "user", "spinney", "kind")
_HASH = re.compile(r"[0-9a-f]{64}")
_HEAD = re.compile(r"(?:([1-9][0-9]{0,17}):)?([0-9a-f]{64})")

# A number, the text that was hashed, and its hash: what a database keeps of an entry.
Row = tuple[int, str, str]


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: who did what, when."""

    number: int
    previous: str
    time: str  # UTC, as "2026-03-01T09:30:00.000000Z"
    user: str
    spinney: str
    kind: str
    fields: Mapping[str, Any]
    content: str
    hash: str

    @property
    def head(self) -> str:
        """What to write down: the number and the hash."""
        return f"{self.number}:{self.hash}"

    @property
    def row(self) -> Row:
        """What a database keeps."""
        return self.number, self.content, self.hash


def hash_of(content: str) -> str:
    """SHA-256 of the text of an entry."""
    return sha256(content.encode()).hexdigest()


def now() -> str:
    """The time of this machine's clock, in UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def this_version() -> str:
    """The version of Spinney that writes an entry; the door is above this room, and so asked for by its name."""
    return str(import_module("spinney").__version__)


def written(number: int, previous: str, time: str, user: str, version: str, kind: str, fields: dict[str, Any]) -> Entry:
    """A new entry after the one with the hash `previous`; a ParameterError where nobody could read it again."""
    described = dict(zip(_COMMON, (number, previous, time, user, version, kind), strict=True)) | fields
    content = json.dumps(described, ensure_ascii=False, allow_nan=False)
    if len(content) > LARGEST_CONTENT:
        raise ParameterError(f"an entry of {len(content):,} characters is too long; {LARGEST_CONTENT:,} are allowed")
    if any("\ud800" <= character <= "\udfff" for character in content):
        raise ParameterError("an entry holds half a character, which no database keeps; check names and notes")
    return Entry(number, previous, time, user, version, kind, fields, content, hash_of(content))


def read_entry(row: Row) -> Entry:
    """An entry as it was written; a ValueError says what is wrong with it. Its place in a chain is not looked at."""
    number, content, kept_hash = row
    if not isinstance(content, str) or not isinstance(kept_hash, str) or len(content) > LARGEST_CONTENT:
        raise ValueError("it is not the text of an entry")
    if hash_of(content) != kept_hash:
        raise ValueError("its text does not have the hash that is kept with it: it was edited")
    described = read_json(content.encode())
    if not isinstance(described, dict) or not all(name in described for name in _COMMON):
        raise ValueError("it does not say number, previous, time, user, spinney and kind")
    common = {name: described.pop(name) for name in _COMMON}
    if type(common["number"]) is not int or common["number"] != number:
        raise ValueError(f"it says that it is entry {brief(common['number'])}: entries were removed or put in order")
    texts = [common[name] for name in _COMMON[1:]]
    if not all(isinstance(text, str) for text in texts) or not _HASH.fullmatch(common["previous"]):
        raise ValueError("one of previous, time, user, spinney and kind is no text of that kind")
    if not _is_time(common["time"]):
        raise ValueError("its time is none")
    if common["kind"] not in KINDS:
        raise ValueError(f"kind={brief(common['kind'])} is not known to this Spinney; upgrade it")
    if not all(value is None or isinstance(value, (str, int, bool)) for value in described.values()):
        raise ValueError("a field of it is a list, a table or a float")
    return Entry(fields=described, content=content, hash=kept_hash, **common)


def _is_time(text: str) -> bool:
    try:
        datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    except ValueError:
        return False
    return True


def chained(rows: Iterable[Row], number: int, previous: str, where: str) -> list[Entry]:
    """The entries that follow `number` with the hash `previous`, each checked against the one before it."""
    entries = []
    for row in rows:
        try:
            entry = read_entry(row)
            if entry.number != number + 1:
                raise ValueError(f"it follows entry {number}: entries were removed")
            if entry.previous != previous:
                raise ValueError("it does not hold the hash of the entry before it: one of them was replaced")
        except ValueError as err:
            raise FileError(
                f"{where} is a Spinney ledger with inconsistent contents: entry {brief(row[0])}: {err}"
            ) from None
        number, previous = entry.number, entry.hash
        entries.append(entry)
    return entries


def parse_head(text: Any) -> tuple[int | None, str]:
    """The number and the hash of a head that somebody wrote down; the number may be left out."""
    found = _HEAD.fullmatch(text.strip().lower()) if isinstance(text, str) else None
    if found is None:
        raise ParameterError(f"head={brief(text)} is not one such as `spinney ledger head` prints: NUMBER:HASH")
    return (None if found[1] is None else int(found[1])), found[2]
