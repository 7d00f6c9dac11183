"""Where a ledger is kept: a file, or a server by its address; and the one that a machine charges by default.

`SPINNEY_LEDGER` names the ledger that every fit on a machine charges unless it names another, and `SPINNEY_POPULATION`
whose budget is charged there. A fit that is to charge none says so: `ledger=False`, or `--no-ledger`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol

from spinney.errors import ParameterError
from spinney.privacy.accounts.addresses import SCHEMES
from spinney.privacy.accounts.chain import Entry
from spinney.privacy.accounts.postgres import PostgresStore
from spinney.privacy.accounts.sqlite import SqliteStore
from spinney.privacy.accounts.state import State
from spinney.shown import brief

LEDGER_VARIABLE = "SPINNEY_LEDGER"
POPULATION_VARIABLE = "SPINNEY_POPULATION"

# Kinds and fields of entries that are written together or not at all.
Proposals = list[tuple[str, dict[str, Any]]]


class Store(Protocol):
    """What keeps entries: reads those that are new, and writes others, checked, whole and durable."""

    @property
    def address(self) -> str: ...
    @property
    def shown(self) -> str: ...
    def user(self) -> str: ...
    def may_keep(self) -> bool: ...
    def exists(self) -> bool: ...
    def create(self, entries: Proposals) -> None: ...
    def read(self, state: State) -> None: ...
    def append(self, state: State, entries: Proposals) -> list[Entry]: ...


def is_address(place: Any) -> bool:
    """Whether a place is the address of a server, rather than a path."""
    return isinstance(place, str) and place.partition("://")[0] in SCHEMES and "://" in place


def store_at(place: str | Path) -> Store:
    """What keeps the ledger at a place."""
    if isinstance(place, str) and is_address(place):
        return PostgresStore(place)
    if not isinstance(place, (str, os.PathLike)) or not os.fspath(place):
        raise ParameterError(f"{brief(place)} is not the path of a ledger or its address, postgresql://host/name")
    check_scheme(place)
    return SqliteStore(Path(place))


def check_scheme(place: Any) -> None:
    """Raise where a place is an address of something else; what follows `://` may hold a password and is not told."""
    if isinstance(place, str) and "://" in place and not is_address(place):
        scheme = brief(place.partition("://")[0]).strip("'")
        raise ParameterError(f"{scheme}:// is not an address of a ledger; servers are given as postgresql://host/name")


def default_place() -> str | None:
    """The ledger of this machine, where one was set."""
    return os.environ.get(LEDGER_VARIABLE) or None


def default_population() -> str | None:
    """The population that this machine charges, where one was set."""
    return os.environ.get(POPULATION_VARIABLE) or None
