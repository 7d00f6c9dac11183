"""Entries of a ledger, each of which holds the hash of the one before, and what each kind of them says.

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

`KINDS`, in the second half of the file, says of each kind who may write it and what each of its fields has to be.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from hashlib import sha256
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from spinney.errors import BudgetError, FileError, ParameterError
from spinney.files import read_json
from spinney.privacy import mechanisms
from spinney.privacy.budget import SMALLEST_EPSILON, Unit, parse_fraction
from spinney.privacy.mechanisms import (
    MOST_LISTED,
    SMALLEST_COMPOSED_DELTA,
    Event,
    Field,
    event_from_dict,
    event_to_dict,
    optional,
)
from spinney.text import brief

FORMAT_VERSION = 2
BEGINNING = "0" * 64  # what stands for the hash of the entry before the first
NOBODY = "unknown"  # the user of entries that were made before anybody wrote down by whom
LARGEST_CONTENT = 2**21

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


def check_version(version: Any, where: str) -> None:
    """Raise where a ledger is not of the version that is read here."""
    if version != FORMAT_VERSION:
        raise FileError(
            f"{where} has format version {version}, and this version of Spinney reads up to {FORMAT_VERSION}; "
            "upgrade it"
        )


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
# What an entry of each kind says, who may write it, and how much there may be of anything: the one place for both
# languages. Python checks by these tables, and a server by its tables `kinds`, `fields` and `bounds`, which are filled
# from them (`postgres.py`).
#
# Whoever writes an entry checks what people gave more closely (`clean_text`); a reader takes what a database would
# keep, so that nothing that is on record by the rules of a server can lock others out.
#
# Costs are exact. What a release counts as in the sum of its population is its exact cost where the denominator of
# that divides GRAIN, and otherwise the next multiple of 1/GRAIN above it: so no charge, whatever its denominator,
# makes the sum of all charges longer than GRAIN, and no sum is below what was spent. Decimals of up to 40 places,
# thirds, sevenths and the like are kept as they are.


GRAIN = 2**64 * 10**40 * math.lcm(*range(1, 31))
BOUNDS = {
    "entries": 1_000_000,  # of a ledger
    "pending requests": 100,  # of a user
    "unpaid fits": 100,  # of a user
    "brands of a fit": 64,
    "bytes of a brand": 4_000,
    "bytes of events": 1_000_000,  # of a charge
    "listed": MOST_LISTED,  # events of a charge, parts of a composed one
    # Of a charge. A release has at most one part for each of the 19 stages that parts have. Three of these are of
    # trees: of columns and of columns of rows, with up to 71 levels each (63 bits and 8 to spare), and of places, with
    # up to 62: 204 together.
    "parts": 64,
    "levels": 1_024,
    "one over the least composed delta": SMALLEST_COMPOSED_DELTA.denominator,
    "grain": GRAIN,
    # Of a server alone.
    "bytes of an entry": 2_000_000,
    "digits of a charge": 780,
    "digits of a sum": 3_100,  # of the charges of a fit, and of what a population spent
    "entries of a user": 100_000,
    "free entries of a user": 5_000,
}
LONGEST_NAME, LONGEST_TEXT = 200, 2_000


def _text(most: int) -> Field:
    return replace(mechanisms.text(1, most), pattern=".*[^ ].*")


def _hexadecimal(digits: int) -> Field:
    return Field(kind="text", pattern=f"[0-9a-f]{{{digits}}}", otherwise=f"is not one of {digits} hexadecimal digits")


_NAME, _TEXT, _KEY, _DIGEST = _text(LONGEST_NAME), _text(LONGEST_TEXT), _hexadecimal(32), _hexadecimal(64)
_ENTRY_HEAD = Field(kind="text", pattern="[1-9][0-9]{0,6}:[0-9a-f]{64}", otherwise="is not the head of a ledger")
_NUMBER = mechanisms.whole(1, BOUNDS["entries"])
_FLAG = Field(kind="flag", otherwise="is not true or false")
_UNIT = mechanisms.one_of(*Unit)
_LIMIT = replace(mechanisms.SPENT_EPSILON, low=SMALLEST_EPSILON, ends="[]", otherwise="is outside 2^-30..2^20")
_LIMITS = {"epsilon": optional(_LIMIT), "delta": optional(mechanisms.SPENT_DELTA)}  # both, or neither
_PAID = {"key": _KEY, "fit": _KEY, "population": _NAME, "events": mechanisms.text(1, BOUNDS["bytes of events"])}
_IMPORTED = {"imported": optional(_FLAG)}
_KEEPER, _ANALYST, _IMPORTER = ("keeper",), ("analyst",), ("analyst", "keeper")  # keepers only import what was charged


@dataclass(frozen=True, slots=True)
class Kind:
    """Who may write entries of a kind, where a server tells who they are, and what each field of them has to be."""

    writers: tuple[str, ...]  # none: whoever makes the ledger
    fields: Mapping[str, Field]


KINDS = {
    "opened": Kind((), {"ledger": _KEY, "format_version": _NUMBER, "imported": optional(_DIGEST)}),
    "population": Kind(
        _KEEPER,
        {"population": _NAME, "unit": _UNIT, "approval": _FLAG, **_LIMITS}
        | {"imported": optional(_KEY), "imported_population": optional(_NAME), "imported_head": optional(_ENTRY_HEAD)},
    ),
    "limit": Kind(_KEEPER, {"population": _NAME, **_LIMITS, "why": _TEXT}),
    "policy": Kind(_KEEPER, {"population": _NAME, "approval": _FLAG, "why": _TEXT}),
    "closed": Kind(_KEEPER, {"population": _NAME, "moved_to": _TEXT, "ledger": _KEY}),
    "table": Kind(_KEEPER, {"population": _NAME, "table": _NAME, "schema": optional(_DIGEST)}),
    "request": Kind(
        _ANALYST,
        {"population": _NAME, "table": optional(_NAME), "purpose": _TEXT}
        | {"epsilon": mechanisms.SPENT_EPSILON, "delta": mechanisms.SPENT_DELTA},
    ),
    "approval": Kind(_KEEPER, {"request": _NUMBER}),
    "denial": Kind(_KEEPER, {"request": _NUMBER, "why": _TEXT}),
    "charge": Kind(
        _IMPORTER,
        {**_PAID, "unit": _UNIT, "epsilon": mechanisms.POSITIVE, "delta": replace(mechanisms.SPENT_DELTA, high=None)}
        | {"table": optional(_NAME), "schema": optional(_DIGEST), "purpose": optional(_TEXT)}
        | {"request": optional(_NUMBER), **_IMPORTED},
    ),
    "brand": Kind(_IMPORTER, {**_PAID, **_IMPORTED}),
    "released": Kind(_IMPORTER, {"fit": _KEY, "release": _DIGEST, **_IMPORTED}),
    "failed": Kind(_IMPORTER, {"fit": _KEY, "error": _NAME, **_IMPORTED}),
}


def read_fields(entry: Entry) -> Any:
    """What an entry says, each field as what it has to be and None where nothing is said; a ParameterError names one
    that is not so.
    """
    said = {}
    for name, field in KINDS[entry.kind].fields.items():
        value = entry.fields.get(name)
        if field.kind == "exact" and value is not None:
            if not isinstance(value, str):
                raise ParameterError(f"{name}={brief(value)} is not the text of an exact number")
            value = parse_fraction(value, name)
        said[name] = field(value, name)
    return SimpleNamespace(**said)


def events_of(entry: Entry) -> tuple[Event, ...] | None:
    """What a charge or a brand lists, or None where this Spinney cannot read it; its amounts count all the same."""
    try:
        described = read_json(entry.fields["events"].encode())
        return tuple(event_from_dict(event) for event in described) if isinstance(described, list) else None
    except (KeyError, TypeError, ValueError, AttributeError, BudgetError):
        return None


def text_of_events(events: Iterable[Event]) -> str:
    """What a charge or a brand lists, as its entry holds it."""
    return json.dumps([event_to_dict(event) for event in events], ensure_ascii=False)


def counted(cost: Fraction) -> Fraction:
    """What a cost counts as in the sum of its population: itself, or the next multiple of 1/GRAIN above it."""
    return cost if GRAIN % cost.denominator == 0 else Fraction(math.ceil(cost * GRAIN), GRAIN)


def clean_text(value: Any, name: str, longest: int = LONGEST_TEXT) -> str:
    """A text that every database takes: some characters, not too many, none of them zero or half a character."""
    if not isinstance(value, str) or not value.strip() or len(value) > longest:
        raise ParameterError(f"{name}={brief(value)} is not a text of 1 to {longest:,} characters")
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise ParameterError(f"{name} holds a character that no database keeps")
    return value
