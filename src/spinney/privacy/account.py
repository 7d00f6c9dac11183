"""A ledger that outlives the process: an account in a JSON file.

A charge is on disk before it returns, and so before noise meets a count. Processes that share an account take turns by
a lock file beside it, and every charge is checked against what the others have written meanwhile. So copies of the
object, pickled ones and those of forked processes too, are more hands on one account and not more accounts.

What a file says is checked entry by entry when it is read: numbers, signs, sizes. What the parts of a composed charge
cost is worked out when it is charged and not when it is read: the file is the holder's own, it is read anew for every
charge, and a long account would take minutes.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from threading import get_ident
from typing import IO, Any

from filelock import FileLock

from spinney.errors import FileError, SpinneyError
from spinney.files import read_json, write_json, write_whole
from spinney.privacy.budget import LARGEST_BITS, Unit, parse_delta, parse_epsilon
from spinney.privacy.events import Event, delta_of, event_from_dict, event_to_dict
from spinney.privacy.ledger import Charge, Ledger, turn
from spinney.shown import brief

FORMAT = "spinney-ledger"
FORMAT_VERSION = 1

LARGEST_FILE = 2**26
_MOST_EVENTS = 100_000


class LedgerFile(Ledger):
    """A `Ledger` kept in a file; see `Ledger.create` and `Ledger.open`."""

    def __init__(self, path: Path, limit: Any, delta: Any, unit: Unit | str) -> None:
        super().__init__(limit, delta=delta, unit=unit)
        # Resolved, so that a link or another working folder leads to the same account and the same lock.
        self.path = path.resolve()
        self._holder: tuple[int, int] | None = None  # process and thread

    @classmethod
    def create_at(cls, path: str | Path, *, limit: Any, delta: Any, unit: Unit | str) -> LedgerFile:
        account = cls(Path(path), limit, delta, unit)
        account._write(overwrite=False)
        return account

    @classmethod
    def open_at(cls, path: str | Path) -> LedgerFile:
        described = _read(Path(path))
        account = cls(Path(path), described["limit"], described["delta"], described["unit"])
        account._events = described["events"]
        return account

    def __getstate__(self) -> dict[str, Any]:
        """A copy is another hand on the same file, which it reads before it charges."""
        return self.__dict__ | {"_holder": None, "_events": list(self._events)}

    @property
    def is_open(self) -> bool:
        return True

    @property
    def events(self) -> tuple[Event, ...]:
        """What the file says now; others may have charged it since."""
        if self._holder is None and self.path.exists():
            self._events = self._unchanged(_read(self.path))
        return tuple(self._events)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Hold the file, and know what is in it. The lock is made anew each time: none outlives a fork or a copy."""
        here = os.getpid(), get_ident()
        with turn():
            if self._holder == here:
                yield
                return
            lock = self._lock()
            self._holder = here
            try:
                self._events = self._unchanged(_read(self.path))
                yield
            finally:
                self._holder = None
                lock.release()

    def _lock(self) -> FileLock:
        """The lock file beside the account, held. It may be used by whoever may use the account."""
        try:
            mode = stat.S_IMODE(os.stat(self.path).st_mode)
            lock = FileLock(f"{self.path}.lock", mode=mode | stat.S_IRUSR | stat.S_IWUSR)
            lock.acquire()
        except FileNotFoundError:
            raise FileError(f"there is no ledger {str(self.path)!r}; open one first, with a limit") from None
        except OSError as err:
            raise FileError(f"cannot lock {str(self.path)!r}: {err.strerror or err}") from err
        return lock

    def _unchanged(self, described: dict[str, Any]) -> list[Event]:
        """The events of the file, unless limit or unit are not those that this account was opened with."""
        other = Ledger(described["limit"], delta=described["delta"], unit=described["unit"])
        if (other.limit, other.delta_limit, other.unit) != (self.limit, self.delta_limit, self.unit):
            raise FileError(f"{str(self.path)!r} has another limit or unit than when it was opened; open it again")
        events: list[Event] = described["events"]
        return events

    def _record(self, *events: Event) -> None:
        if _read(self.path)["events"] != self._events:
            raise FileError(
                f"{str(self.path)!r} was charged by another process in the middle of a charge; nothing was recorded. "
                "Do not remove the lock file beside a ledger, and try again"
            )
        super()._record(*events)
        self._write(overwrite=True)

    def _write(self, *, overwrite: bool) -> None:
        described = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "unit": self.unit.value,
            "limit": None if self.limit is None else str(self.limit),
            "delta": None if self.delta_limit is None else str(self.delta_limit),
            "events": [event_to_dict(event) for event in self.events],
        }

        def write(file: IO[bytes]) -> None:
            file.write(write_json(described))

        write_whole(self.path, write, overwrite=overwrite)


def _read(path: Path) -> dict[str, Any]:
    """Unit, limits and events of the account in a file. Files from before there was a delta are pure."""
    try:
        described = read_json(_bytes_of(path))
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
            f"{str(path)!r} has format version {brief(version)}, and this version of Spinney reads up to "
            f"{FORMAT_VERSION}; "
            "upgrade it"
        )
    try:
        limit = described["limit"]
        return {
            "unit": Unit.parse(described["unit"]),
            "limit": None if limit is None else parse_epsilon(limit, "limit"),
            "delta": parse_delta(0 if described.get("delta") is None else described["delta"]),
            "events": _events(path, described["events"]),
        }
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
