"""A ledger in a database, as it is read: what is on record of one population, and of all.

What is on record decides: every question first reads what others wrote meanwhile. A copy of the object, a pickled one
and that of a forked process too, is another hand on the same account and not another account.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from fractions import Fraction
from pathlib import Path
from typing import Any

from spinney.errors import ParameterError
from spinney.privacy.accounts.chain import Entry
from spinney.privacy.accounts.places import Store, default_population
from spinney.privacy.accounts.records import ChargeOnRecord, Decision, charges_of, decisions_of, events_of
from spinney.privacy.accounts.sqlite import SqliteStore
from spinney.privacy.accounts.state import Population, Request, State, Table
from spinney.privacy.budget import Unit
from spinney.privacy.events import Event
from spinney.privacy.ledger import Ledger
from spinney.privacy.room import Room
from spinney.privacy.turns import turn


class KeptLedger(Ledger):
    """What a `Ledger` in a database knows, of one population of it."""

    def __init__(self, store: Store, *, population: str | None = None) -> None:
        self._store, self._state, self._parent = store, State(), None
        self._named = population

    @property
    def path(self) -> Path | None:
        """The file, where the ledger is one."""
        return self._store.path if isinstance(self._store, SqliteStore) else None

    @property
    def address(self) -> str:
        """The path, or the address of the server without a password."""
        return self._store.address

    @property
    def is_open(self) -> bool:
        return True

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)

    def _turn(self) -> AbstractContextManager[Any]:
        return turn()

    def _read(self) -> State:
        """What is on record now; where the file is gone, what was known of it."""
        with turn():
            if not self._state.number or self._store.exists():
                self._store.read(self._state)
        return self._state

    def _population(self) -> Population:
        populations = self._state.populations
        name = self._named or default_population()
        if name is not None:
            return self._state.population(name)
        if len(populations) != 1:
            known = ", ".join(map(repr, populations)) or "none"
            raise ParameterError(
                f"the ledger {self._store.shown} has several populations ({known}); name the one that is charged: "
                "population=..., --population or SPINNEY_POPULATION"
            )
        return next(iter(populations.values()))

    @property
    def population(self) -> str:
        """Whose budget this hand charges."""
        self._read()
        return self._population().name

    @property
    def needs_approval(self) -> bool:
        """Whether a charge needs a request that somebody else has approved."""
        self._read()
        return self._population().approval

    def _room(self) -> Room:
        self._read()
        return self._population().room

    @property
    def unit(self) -> Unit:
        return self._room().unit

    @property
    def limit(self) -> Fraction | None:
        return self._room().limit

    @property
    def delta_limit(self) -> Fraction | None:
        return self._room().delta_limit

    @property
    def spent(self) -> Fraction:
        return self._room().spent

    @property
    def spent_delta(self) -> Fraction:
        return self._room().spent_delta

    @property
    def remaining(self) -> Fraction | None:
        return Fraction(0) if self.moved_to is not None else super().remaining

    @property
    def remaining_delta(self) -> Fraction | None:
        return Fraction(0) if self.moved_to is not None else super().remaining_delta

    @property
    def head(self) -> str:
        """The number and the hash of the last entry: write it down elsewhere, and `verify` can tell what happened."""
        return self._read().head

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries of the ledger, of every population: who did what, when."""
        return tuple(self._read().entries)

    @property
    def populations(self) -> tuple[Population, ...]:
        """All populations of the ledger."""
        return tuple(self._read().populations.values())

    @property
    def requests(self) -> tuple[Request, ...]:
        """The requests of this population."""
        state, name = self._read(), self.population
        return tuple(request for request in state.requests.values() if request.population == name)

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables of this population."""
        state, name = self._read(), self.population
        return tuple(table for table in state.tables.values() if table.population == name)

    @property
    def events(self) -> tuple[Event, ...]:
        """All charges and brands of this population that this Spinney can read; others may have charged since."""
        self._read()
        name = self._population().name
        listed = (
            events_of(entry)
            for entry in self._state.entries
            if entry.kind in ("charge", "brand") and entry.fields.get("population") == name
        )
        return tuple(event for events in listed for event in events or ())

    @property
    def charges(self) -> tuple[ChargeOnRecord, ...]:
        """The charges of this population, with what came of them."""
        self._read()
        name = self._population().name
        return charges_of(self._state, name)

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """Who opened this population, changed its limits or policy, approved or denied a request: when and why."""
        self._read()
        return decisions_of(self._state, self._population().name)

    @property
    def moved_to(self) -> str | None:
        """The ledger that took this population over, where it is closed here."""
        self._read()
        return self._population().moved_to
