"""Ledgers that a studio knows: files in the opened folder, and addresses that were stated in the terminal or a form.

An address may hold a password. It stays in memory: pages and their addresses name a ledger by a digest of where it is,
and show it without its password.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import Lock

from spinney.errors import ParameterError
from spinney.privacy.accounts.places import default_place, is_address, store_at
from spinney.studio.errors import MissingPageError, PageError
from spinney.studio.workspace import Workspace

_LENGTH = 24
_LONGEST = 2_000


@dataclass(frozen=True, slots=True)
class KnownLedger:
    """Where a ledger is, and what pages call it."""

    key: str
    place: str  # may hold a password
    shown: str  # never does


class KnownLedgers:
    """The ledgers of one studio."""

    def __init__(self, workspace: Workspace, stated: str | None) -> None:
        self._workspace = workspace
        self._lock = Lock()
        self._known: dict[str, KnownLedger] = {}
        for place in dict.fromkeys(place for place in (stated, default_place()) if place):
            self._add(place)

    def all(self) -> list[KnownLedger]:
        """Those that were stated or opened, then all ledger files in the folder and the workspace."""
        for path in self._workspace.ledgers():
            self._add(path)
        return list(self._known.values())

    def by_key(self, key: str) -> KnownLedger:
        """A ledger by the name that addresses of pages have for it."""
        found = next((one for one in self.all() if one.key == key), None)
        if found is None:
            raise MissingPageError("This ledger was not opened in this studio. Open it by its path or its address.")
        return found

    def open(self, text: str) -> KnownLedger:
        """A ledger by its path in the opened folder, or by its address; an error where it may not be opened."""
        text = text.strip()
        if not text or len(text) > _LONGEST:
            raise PageError("Name a ledger: a path in the opened folder, or an address, postgresql://host/name.")
        known = next((one for one in self.all() if text in (one.place, one.shown)), None)
        if known is not None:
            return known
        if is_address(text):
            return self._add(text)
        if "://" in text:
            raise ParameterError("Servers are given as postgresql://host/name; other addresses are not ledgers.")
        path = self._workspace.root.inside(text)
        if not path.is_file():
            raise PageError(f"There is no ledger at {text!r}. `spinney ledger create` makes one.")
        return self._add(str(path))

    def _add(self, place: str) -> KnownLedger:
        if not is_address(place):
            place = str(Path(place).resolve())
        key = sha256(place.encode()).hexdigest()[:_LENGTH]
        with self._lock:
            if key not in self._known:
                shown = store_at(place).address if is_address(place) else self._short(place)
                self._known[key] = KnownLedger(key, place, shown)
            return self._known[key]

    def _short(self, place: str) -> str:
        root = self._workspace.root
        return root.relative(Path(place)) if root.is_inside(Path(place)) else place
