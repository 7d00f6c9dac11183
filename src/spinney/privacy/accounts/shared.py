"""A ledger in a database: `Ledger`, with others at the same account.

What is on record decides: every question and every charge first reads what others wrote meanwhile. A copy of the
object, a pickled one and that of a forked process too, is another hand on the same account and not another account.

`start` gives a hand for one release. Its charges carry one key, a request pays for one such release, and what came of
the charges is recorded under the same key: the digest of the release, or that the fit failed.
"""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from copy import copy
from fractions import Fraction
from pathlib import Path
from secrets import token_hex
from typing import Any

from spinney.errors import BudgetError, FileError, ParameterError
from spinney.privacy import guard
from spinney.privacy.accounts.chain import FORMAT_VERSION, Entry
from spinney.privacy.accounts.fields import LONGEST_NAME, Charged, clean_text
from spinney.privacy.accounts.places import Proposals, Store, default_population, store_at
from spinney.privacy.accounts.records import ChargeOnRecord, Decision, charges_of, decisions_of, events_of
from spinney.privacy.accounts.rules import CLOSED, MOVED, Population, Request, State, Table
from spinney.privacy.accounts.sqlite import SqliteStore
from spinney.privacy.accounts.version1 import imported
from spinney.privacy.budget import Unit, parse_delta, parse_epsilon
from spinney.privacy.events import Charge, Event, event_to_dict, total_delta, total_epsilon
from spinney.privacy.ledger import Ledger, parse_limits
from spinney.privacy.room import Room
from spinney.privacy.turns import turn
from spinney.shown import brief


class SharedLedger(Ledger):
    """A `Ledger` in a database, with one population of it to charge; see `Ledger.create` and `Ledger.open`."""

    def __init__(
        self,
        store: Store,
        *,
        population: str | None = None,
        table: str | None = None,
        purpose: str | None = None,
        request: int | None = None,
    ) -> None:
        self._store, self._state, self._parent = store, State(), None
        self._named = population
        self._table = None if table is None else clean_text(table, "table", LONGEST_NAME)
        self._purpose = None if purpose is None else clean_text(purpose, "purpose")
        self._request = None if request is None else int(guard.whole(1, 10**6)(request, "request"))
        self._schema: str | None = None
        self._fit: str | None = None
        self._key: str | None = None

    @classmethod
    def create_at(
        cls, place: str | Path, *, limit: Any, delta: Any, unit: Unit | str, population: str, approval: bool
    ) -> SharedLedger:
        store = store_at(place)
        opened = {"ledger": token_hex(16), "format_version": FORMAT_VERSION, "imported": None}
        described = _population(population, limit, delta, unit, approval=approval)
        store.create([("opened", opened), ("population", described)])
        return cls.open_at(place, population=population)

    @classmethod
    def open_at(cls, place: str | Path, **details: Any) -> SharedLedger:
        ledger = cls(store_at(place), **details)
        ledger._read()
        ledger._named = ledger._population().name  # which has to be there, and stays the one that is charged
        return ledger

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

    # ------------------------------------------------------------------------------------------------- what is known

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
    def head(self) -> str:
        """The number and the hash of the last entry: write it down elsewhere, and `verify` can tell what happened."""
        state = self._read()
        return f"{state.number}:{state.hash}"

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

    # ------------------------------------------------------------------------------------------------------- charging

    def start(self, *, schema: str | None = None) -> SharedLedger:
        hand = copy(self)
        hand._fit, hand._schema = self._key or token_hex(16), schema
        return hand

    def under(self, key: str) -> SharedLedger:
        """A hand for one release whose charges carry a key that the caller has chosen, and so can find them again."""
        hand = copy(self)
        hand._key = clean_text(key, "key", LONGEST_NAME)
        return hand

    def paid_under(self, key: str) -> tuple[ChargeOnRecord, ...]:
        """The charges that carry a key; none where nothing was charged under it."""
        fit = self._read().fits.get(key)
        numbers = set() if fit is None else {entry.number for entry in fit.charges}
        return tuple(charge for charge in self.charges if charge.number in numbers)

    def require(self, epsilon: Fraction, *, unit: Unit, delta: Fraction = Fraction(0)) -> None:
        epsilon, delta = guard.fraction(epsilon, "epsilon"), guard.fraction(delta, "delta")
        if epsilon < 0 or delta < 0:
            raise ParameterError(f"epsilon={brief(epsilon)} and delta={brief(delta)} must not be negative")
        with turn():
            state = self._present()
            name, where = self._population().name, (self._table, self._schema)
            charged = Charged(name, Unit.parse(unit), epsilon, delta, *where, self._purpose)
            fit = self._fit or ""
            user = self._store.user() if self._request is not None or fit in state.fits else ""
            state.check_charge(charged, fit=fit, user=user, request=self._request)

    def charge(self, *charges: Charge) -> None:
        self._check_charges(charges)
        with turn():
            if self._state.is_provisional:  # a charge that is refused leaves a file of version 1 as it is
                self.require(total_epsilon(charges), unit=self.unit, delta=total_delta(charges))
            try:
                self._record(*charges)  # which checks all that `require` does, where nobody can come in between
            except (BudgetError, ParameterError):
                self.require(total_epsilon(charges), unit=self.unit, delta=total_delta(charges))
                raise

    def _present(self) -> State:
        """What is on record, of a ledger that is there: nothing is charged from memory."""
        self._store.read(self._state)
        return self._state

    def _record(self, *events: Event) -> None:
        if not events:
            return
        # A server that was set back to an earlier state is noticed; a file is looked at when it is written.
        if self.path is None or not self._state.number:
            self._present()
        fit, key = self._fit or token_hex(16), token_hex(16)
        listed = json.dumps([event_to_dict(event) for event in events], ensure_ascii=False)
        fields: dict[str, Any] = {"key": key, "fit": fit, "population": self._population().name}
        if not all(isinstance(event, Charge) for event in events):
            self._append("brand", {**fields, "events": listed})
            return
        self._append(
            "charge",
            {
                **fields,
                "unit": self._population().room.unit.value,
                "table": self._table,
                "schema": self._schema,
                "purpose": self._stated_purpose(),
                "request": self._request,
                "imported": False,
                "epsilon": str(total_epsilon(events)),
                "delta": str(total_delta(events)),
                "events": listed,
            },
        )

    def _stated_purpose(self) -> str | None:
        """What the charges are for: what was said, or else what was asked for."""
        request = self._state.requests.get(self._request or 0)
        return request.purpose if self._purpose is None and request is not None else self._purpose

    def _append(self, kind: str, fields: dict[str, Any]) -> Entry:
        with turn():
            return self._store.append(self._state, [(kind, fields)])[-1]

    def _was_charged(self) -> bool:
        return self._fit is not None and self._fit in self._present().fits

    def record_release(self, digest: str) -> None:
        if self._was_charged():
            self._append("released", {"fit": self._fit, "release": digest})

    def record_failure(self, error: str) -> None:
        if self._was_charged():
            self._append("failed", {"fit": self._fit, "error": error})

    # --------------------------------------------------------------------------------------------- what keepers do

    def add_population(
        self, name: str, *, limit: Any, delta: Any = 0, unit: Unit | str = Unit.REPLACE_ONE, approval: bool = False
    ) -> SharedLedger:
        """Another population, with limits of its own; a hand that charges it."""
        self._append("population", _population(name, limit, delta, unit, approval=approval))
        hand = copy(self)
        hand._named = name
        return hand

    def set_limits(self, limit: Any = None, delta: Any = None, *, why: str) -> None:
        """Raise or lower the limits of this population; one that is left out stays. Who and why is on record."""
        room = self._room()
        epsilon = room.limit if limit is None else parse_epsilon(limit, "limit")
        allowed = room.delta_limit if delta is None else parse_delta(delta)
        if epsilon is None:
            raise ParameterError("this population only counts; give a limit of epsilon")
        fields = {"population": self.population, "epsilon": str(epsilon), "delta": str(allowed or 0)}
        self._append("limit", {**fields, "why": clean_text(why, "why")})

    def set_policy(self, *, approval: bool, why: str) -> None:
        """Whether charges to this population need an approved request from now on."""
        fields = {"population": self.population, "approval": bool(approval)}
        self._append("policy", {**fields, "why": clean_text(why, "why")})

    def bind(self, table: str, *, schema: str | None = None) -> None:
        """Bind a table to this population, by its name and the digest of its schema (`digests.schema_digest`)."""
        fields = {"population": self.population, "table": clean_text(table, "table", LONGEST_NAME), "schema": schema}
        self._append("table", fields)

    def approve(self, request: int) -> None:
        """Approve somebody else's request."""
        self._append("approval", {"request": request})

    def deny(self, request: int, *, why: str) -> None:
        """Deny a request."""
        self._append("denial", {"request": request, "why": clean_text(why, "why")})

    def request(self, epsilon: Any, delta: Any = 0, *, purpose: str, table: str | None = None) -> int:
        """Ask for a budget; the number that `approve` and a fit name."""
        fields = {
            "population": self.population,
            "table": self._table if table is None else clean_text(table, "table", LONGEST_NAME),
            "epsilon": str(parse_epsilon(epsilon)),
            "delta": str(parse_delta(delta)),
            "purpose": clean_text(purpose, "purpose"),
        }
        return self._append("request", fields).number

    def take_over(self, place: str | Path, *, population: str | None = None) -> SharedLedger:
        """Import the one population of another ledger, with all that it spent, and close it there; a hand on it here.

        Everything is taken over or nothing. The other ledger stays, with a limit that lets nothing through.
        """
        other = SharedLedger.open_at(place)
        room, source = other._room(), other._state
        name = clean_text(population or other.population, "population", LONGEST_NAME)
        limits = {
            "epsilon": None if room.limit is None else str(room.limit),
            "delta": None if room.limit is None else str(room.delta_limit),
        }
        described = {"population": name, "unit": room.unit.value, **limits, "approval": other.needs_approval}
        entries: Proposals = [("population", {**described, "imported": source.ledger})]
        if other.charges and any(charge.events is None for charge in other.charges):
            raise FileError(f"{other._store.shown} has charges that this Spinney cannot read; upgrade it")
        entries += list(imported(other.events, name, room.unit.value, str(source.ledger)))
        with turn():
            self._store.append(self._state, entries)
        hand = copy(self)
        hand._named = name
        other.set_limits(CLOSED, 0, why=f"{MOVED}{self.address}")
        return hand


def _population(name: str, limit: Any, delta: Any, unit: Unit | str, *, approval: bool) -> dict[str, Any]:
    epsilon, allowed = parse_limits(limit, delta)
    return {
        "population": clean_text(name, "population", LONGEST_NAME),
        "unit": Unit.parse(unit).value,
        "epsilon": None if epsilon is None else str(epsilon),
        "delta": None if allowed is None else str(allowed),
        "approval": bool(approval),
        "imported": None,
    }
