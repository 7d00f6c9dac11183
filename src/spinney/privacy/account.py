"""A ledger that outlives the process: an account in a JSON file.

A charge is on disk before it returns, and so before noise meets a count. Processes that share an account take turns by
a lock file beside it, and every charge is checked against what the others have written meanwhile.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import IO, Any

from filelock import FileLock

from spinney.errors import FileError
from spinney.files import write_whole
from spinney.privacy.budget import Unit, parse_delta
from spinney.privacy.ledger import Brand, Charge, Event, Ledger, event_from_dict, event_to_dict

FORMAT = "spinney-ledger"
FORMAT_VERSION = 1


class LedgerFile(Ledger):
    """A `Ledger` kept in a file; see `Ledger.create` and `Ledger.open`."""

    def __init__(self, path: Path, limit: Any, delta: Any, unit: Unit | str) -> None:
        super().__init__(limit, delta=delta, unit=unit)
        # Resolved, so that a link or another working folder leads to the same account and the same lock.
        self.path = path = path.resolve()
        # Reentrant, so that a charge may check and record under one lock.
        self._lock = FileLock(f"{path}.lock")

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

    def require(self, epsilon: Fraction, *, unit: Unit, delta: Fraction = Fraction(0)) -> None:
        with self._lock:
            self._events = _read(self.path)["events"]
            super().require(epsilon, unit=unit, delta=delta)

    def charge(self, *charges: Charge) -> None:
        with self._lock:
            super().charge(*charges)

    def brand(self, event: Brand) -> None:
        with self._lock:
            self._events = _read(self.path)["events"]
            super().brand(event)

    def _record(self, *events: Event) -> None:
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
            file.write(json.dumps(described, indent=2, ensure_ascii=False).encode())

        write_whole(self.path, write, overwrite=overwrite)


def _read(path: Path) -> dict[str, Any]:
    """Unit, limits and events of the account in a file. Files from before there was a delta are pure."""
    try:
        described = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileError(f"there is no ledger {str(path)!r}; open one first, with a limit") from None
    except OSError as err:
        raise FileError(f"cannot read {str(path)!r}: {err.strerror or err}") from err
    except ValueError:
        raise FileError(f"{str(path)!r} is not a Spinney ledger, or is damaged") from None
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise FileError(f"{str(path)!r} is not a Spinney ledger")
    version = described.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise FileError(
            f"{str(path)!r} has format version {version!r}, and this Spinney reads up to {FORMAT_VERSION}; upgrade it"
        )
    try:
        return {
            "unit": Unit.parse(described["unit"]),
            "limit": described["limit"],
            "delta": parse_delta(described.get("delta") or 0),
            "events": [event_from_dict(event) for event in described["events"]],
        }
    except (KeyError, TypeError, ValueError) as err:
        raise FileError(f"{str(path)!r} is a Spinney ledger with inconsistent contents") from err
