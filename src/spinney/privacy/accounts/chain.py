"""Entries of a ledger, each of which holds the hash of the one before, and the fields of an entry.

An entry is one flat JSON object, kept as the text that was hashed: number, previous, time, user, spinney (a
version), kind, and the fields of its kind. Its hash is SHA-256 of that text, so whoever wrote down one hash, a
head, can tell whether anything up to there was edited, removed, put in another order or cut off. Nobody can
without one: a chain that is whole may have been written anew.

    opened       a ledger and its version; of an imported one, what it was made from
    population   whose budget it is: unit, limits, whether charges need approval
    limit        other limits, and why          policy    whether charges need approval from now on, and why
    closed       a population goes on in another ledger, and is not charged here any more
    table        a table, by name and schema, bound to a population
    request      so much is wanted for a purpose; `approval` and `denial` name its number
    charge       what is paid for, before noise is drawn          brand     what voids a guarantee
    released     the digest of what a fit's charges paid for      failed    nothing came of them

`Fields`, in the second half of the file, reads each field of an entry as what it has to be.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from hashlib import sha256
from importlib import import_module
from typing import Any

from spinney.errors import BudgetError, FileError, ParameterError
from spinney.files import read_json
from spinney.privacy import mechanisms
from spinney.privacy.budget import Unit, parse_delta, parse_epsilon, parse_fraction
from spinney.text import brief

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


# --------------------------------------------------------------------------------------------------------------- fields
# The fields of an entry, each read as what it has to be.
#
# Whoever writes an entry checks what people gave more closely (`clean_text`); a reader takes what a database would
# keep, so that nothing that is on record by the rules of a server can lock others out.
#
# Costs are exact. What a release counts as in the sum of its population is its exact cost where the denominator of
# that divides GRAIN, and otherwise the next multiple of 1/GRAIN above it: so no charge, whatever its denominator,
# makes the sum of all charges longer than GRAIN, and no sum is below what was spent. Decimals of up to 40 places,
# thirds, sevenths and the like are kept as they are.


LONGEST_NAME = 200
LONGEST_TEXT = 2_000
LONGEST_EVENTS = 1_000_000
MOST_ENTRIES = 1_000_000
GRAIN = 2**64 * 10**40 * math.lcm(*range(1, 31))
_KEY = re.compile(r"[0-9a-f]{32}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Charged:
    """What a charge is for, in the few values that rules look at."""

    population: str
    unit: Unit
    epsilon: Fraction
    delta: Fraction
    table: str | None = None
    schema: str | None = None
    purpose: str | None = None


def counted(cost: Fraction) -> Fraction:
    """What a cost counts as in the sum of its population: itself, or the next multiple of 1/GRAIN above it."""
    return cost if GRAIN % cost.denominator == 0 else Fraction(math.ceil(cost * GRAIN), GRAIN)


class Fields:
    """The fields of an entry, each read as what it has to be; a ParameterError names one that is not."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    def is_missing(self, name: str) -> bool:
        """Whether a field is not there, or null."""
        return self._fields.get(name) is None

    def _text(self, name: str, longest: int) -> str:
        value = self._fields.get(name)
        if not isinstance(value, str) or not 1 <= len(value) <= longest:
            raise ParameterError(f"{name}={brief(value)} is not a text of 1 to {longest:,} characters")
        return value

    def name(self, name: str) -> str:
        return self._text(name, LONGEST_NAME)

    def optional_name(self, name: str) -> str | None:
        return None if self.is_missing(name) else self.name(name)

    def text(self, name: str) -> str:
        return self._text(name, LONGEST_TEXT)

    def long_text(self, name: str) -> str:
        return self._text(name, LONGEST_EVENTS)

    def flag(self, name: str) -> bool:
        value = self._fields.get(name, False)
        if not isinstance(value, bool):
            raise ParameterError(f"{name}={brief(value)} is not true or false")
        return value

    def whole(self, name: str) -> int:
        return int(mechanisms.whole(1, MOST_ENTRIES)(self._fields.get(name), name))

    def _matching(self, name: str, pattern: re.Pattern[str]) -> str:
        value = self._fields.get(name)
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise ParameterError(f"{name}={brief(value)} is not one in hexadecimal digits")
        return value

    def key(self, name: str) -> str:
        return self._matching(name, _KEY)

    def optional_key(self, name: str) -> str | None:
        return None if self.is_missing(name) else self.key(name)

    def digest(self, name: str) -> str:
        return self._matching(name, _DIGEST)

    def optional_digest(self, name: str) -> str | None:
        return None if self.is_missing(name) else self.digest(name)

    def unit(self) -> Unit:
        return Unit.parse(self._fields.get("unit"))

    def limits(self) -> tuple[Fraction | None, Fraction | None]:
        """Limits of epsilon and of delta: both, or neither."""
        if self.is_missing("epsilon") and self.is_missing("delta"):
            return None, None
        return parse_epsilon(self._exact("epsilon"), "limit"), parse_delta(self._exact("delta"))

    def epsilon(self) -> Fraction:
        epsilon: Fraction = mechanisms.spent_epsilon(self._exact("epsilon"), "epsilon")
        return epsilon

    def delta(self) -> Fraction:
        delta: Fraction = mechanisms.fraction(self._exact("delta"), "delta")
        if not 0 <= delta < 1:
            raise ParameterError(f"delta={brief(delta)} is not from 0 to below 1")
        return delta

    def _exact(self, name: str) -> Fraction:
        value = self._fields.get(name)
        if not isinstance(value, str):
            raise ParameterError(f"{name}={brief(value)} is not the text of an exact number")
        return parse_fraction(value, name)

    def charged(self) -> Charged:
        """What the rules need to know of a charge; what it lists is read by those who show it or verify it."""
        self.long_text("events")
        purpose = None if self.is_missing("purpose") else self.text("purpose")
        epsilon, delta = self._exact("epsilon"), self._exact("delta")
        if epsilon <= 0 or delta < 0:
            raise BudgetError("a charge costs something, and what was spent cannot be earned back")
        return Charged(
            self.name("population"),
            self.unit(),
            epsilon,
            delta,
            self.optional_name("table"),
            self.optional_digest("schema"),
            purpose,
        )


def clean_text(value: Any, name: str, longest: int = LONGEST_TEXT) -> str:
    """A text that every database takes: some characters, not too many, none of them zero or half a character."""
    if not isinstance(value, str) or not value.strip() or len(value) > longest:
        raise ParameterError(f"{name}={brief(value)} is not a text of 1 to {longest:,} characters")
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise ParameterError(f"{name} holds a character that no database keeps")
    return value
