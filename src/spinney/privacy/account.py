"""Ledgers of the first version: an account in a JSON file, which is read and no longer written.

What a file says is checked entry by entry when it is read: numbers, signs, sizes. `accounts.version1` makes entries of
a database of it.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

from spinney.errors import FileError, SpinneyError
from spinney.files import read_json
from spinney.privacy.budget import LARGEST_BITS, Unit, parse_delta, parse_epsilon
from spinney.privacy.events import Charge, Event, delta_of, event_from_dict
from spinney.shown import brief

FORMAT = "spinney-ledger"
FORMAT_VERSION = 1

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
    try:
        content = _bytes_of(path)
        described = read_json(content)
    except FileNotFoundError:
        raise FileError(f"there is no ledger {str(path)!r}; open one first, with a limit") from None
    except SpinneyError:
        raise
    except OSError as err:
        raise FileError(f"cannot read {str(path)!r}: {err.strerror or err}") from err
    except ValueError as err:
        raise FileError(f"{str(path)!r} is not a Spinney ledger, or is damaged: {err}") from None
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise FileError(f"{str(path)!r} is not a Spinney ledger")
    version = described.get("format_version")
    if type(version) is not int or not 1 <= version <= FORMAT_VERSION:
        raise FileError(
            f"{str(path)!r} is a JSON ledger of format version {brief(version)}, and JSON ledgers end with version "
            f"{FORMAT_VERSION}: later ones are databases; it was edited, or upgrade Spinney if a newer one wrote it"
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


def _bytes_of(path: Path) -> bytes:
    """The whole file, unless it is larger than any account."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise FileError(f"{str(path)!r} is not a file, so it cannot be a ledger")
    if status.st_nlink > 1:
        raise FileError(
            f"{str(path)!r} has another name (a hard link), and a charge would be seen under one of them only; "
            "remove the other name"
        )
    with path.open("rb") as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise FileError(f"{str(path)!r} is larger than {LARGEST_FILE >> 20} MiB, which is too large for a ledger")
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
