"""A ledger in a database: `Ledger`, with others at the same account.

places            where a ledger is kept, and the one that a machine charges by default
importing         a population that moves from one ledger to another
ledger            what is on record; charges, what came of them, limits, requests
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from types import SimpleNamespace
from typing import Any, Protocol

from spinney.errors import BudgetError, FileError, ParameterError
from spinney.privacy import mechanisms
from spinney.privacy.accounts.chain import (
    BOUNDS,
    FORMAT_VERSION,
    KINDS,
    LONGEST_NAME,
    Entry,
    clean_text,
    events_of,
    text_of_events,
)
from spinney.privacy.accounts.postgres import SCHEMES, PostgresStore
from spinney.privacy.accounts.rules import (
    ChargeOnRecord,
    Decision,
    Population,
    Request,
    State,
    Table,
    charges_of,
    check_charge,
    decisions_of,
    events_on_record,
    rehearsed,
)
from spinney.privacy.accounts.sqlite import SqliteStore
from spinney.privacy.budget import Unit, parse_delta, parse_epsilon
from spinney.privacy.ledger import Ledger, Room, exact_amounts, parse_limits, turn
from spinney.privacy.mechanisms import Charge, Event, total_delta, total_epsilon
from spinney.text import brief

# --------------------------------------------------------------------------------------------------------------- places
# Where a ledger is kept: a file, or a server by its address; and the one that a machine charges by default.
#
# `SPINNEY_LEDGER` names the ledger that every fit on a machine charges unless it names another, and
# `SPINNEY_POPULATION` whose budget is charged there. A fit that is to charge none says so: `ledger=False`, or
# `--no-ledger`.


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


# ------------------------------------------------------------------------------------------------------------ importing
# A population that moves from one ledger to another, with all that it spent.
#
# The old ledger is closed first, by an entry that names the new one: from then on nobody can charge it, and its head
# is pinned in the entry that opens the population in the new ledger. Whatever interrupts the move leaves the budget
# in neither, and doing it again finishes it. Charges, brands, tables, digests of schemas and releases, and what
# failed come along; requests do not. What was spent is not held to limits or approvals a second time.


@dataclass(frozen=True, slots=True)
class Moved:
    """The population as the new ledger calls it, and tables that belong to another one there, and stay so."""

    population: str
    tables_elsewhere: tuple[str, ...]


def move(old: Store, new: Store, state: State, *, source: str | None, name: str | None) -> Moved:
    """Close a population of the old ledger, and have the new one, whose state is given, take it over."""
    known = State()
    old.read(known)
    new.read(state)
    population = known.chosen(source, old.shown, "name the one to take over: source=... or --from")
    name = clean_text(name or population.name, "population", LONGEST_NAME)
    _check_movable(known, population, state, new)
    rehearsed(state, _entries(known, population.name, state, name, old.shown), new.user())
    if population.moved_to is None:
        closing = {"population": population.name, "moved_to": new.address, "ledger": state.ledger}
        old.append(known, [("closed", closing)])
    new.append(state, _entries(known, population.name, state, name, old.shown))
    return Moved(name, tuple(sorted(set(_tables(known, population.name)) - set(_tables(state, name)))))


def _check_movable(known: State, population: Population, state: State, new: Store) -> None:
    """Raise, before anything is closed, where the new ledger would not take the population."""
    if known.ledger == state.ledger:
        raise ParameterError(f"{new.shown} is this very ledger, or a copy of it, and cannot take itself over")
    if population.moved_to is not None and population.moved_ledger != state.ledger:
        raise ParameterError(
            f"the population {brief(population.name)} is closed: it was moved to {population.moved_to}"
        )
    if not new.may_keep():
        raise FileError(f"this user may not add a population to {new.shown}; nothing was closed and nothing imported")


def _tables(state: State, population: str) -> Iterator[str]:
    return (table.name for table in state.tables.values() if table.population == population)


def _entries(known: State, source: str, state: State, name: str, where: str) -> Proposals:
    """The entries that make the population in the new ledger what it is in the old one."""
    population = known.populations[source]
    imported = {"imported": known.ledger, "imported_population": source, "imported_head": known.head}
    opening = _opening(name, population.room, approval=population.approval) | imported
    entries: Proposals = [("population", opening)]
    salt = token_hex(16)
    for entry in known.entries:
        carried = _carried(known, entry, source, name, where, salt)
        if carried is not None:
            entries.append((entry.kind, carried))
    bound = (table for table in known.tables.values() if table.population == source and table.is_bound)
    # A table that belongs to others in the new ledger stays theirs; a keeper there decides.
    entries += [
        ("table", {"population": name, "table": table.name, "schema": table.schema})
        for table in bound
        if table.name not in state.tables
    ]
    return entries


def _carried(known: State, entry: Entry, source: str, name: str, where: str, salt: str) -> dict[str, Any] | None:
    """The fields of a charge, a brand or what came of one in the new ledger; None of all other entries."""
    if entry.kind not in ("charge", "brand", "released", "failed"):
        return None
    if known.fits[entry.fields["fit"]].population != source:
        return None
    fields: dict[str, Any] = {field: entry.fields.get(field) for field in KINDS[entry.kind].fields}
    fields["imported"] = True
    fields |= {field: _renewed(fields[field], salt) for field in ("key", "fit") if field in fields}
    if "events" in fields:
        events = events_of(entry)
        if events is None:
            raise FileError(
                f"{where} has charges or brands that this Spinney cannot read (entry {entry.number}); upgrade it"
            )
        fields |= {"population": name, "events": text_of_events(events)}
    return fields | {"request": None} if "request" in fields else fields


def _renewed(key: str, salt: str) -> str:
    """A key for the new ledger, which nobody who has seen the old one can have used there."""
    return sha256(f"{salt} {key}".encode()).hexdigest()[:32]


# --------------------------------------------------------------------------------------------------------------- ledger
# A ledger in a database, with one population of it that is read and charged.
#
# What is on record decides: every question first reads what others wrote meanwhile. A copy of the object, a pickled
# one and that of a forked process too, is another hand on the same account and not another account.
#
# `start` gives a hand for one release. Its charges carry one key, a request pays for one such release, and what
# came of the charges is recorded under the same key: the digest of the release, or that the fit failed.


class SharedLedger(Ledger):
    """A `Ledger` in a database, with one population of it to charge; see `Ledger.create` and `Ledger.open`."""

    # After `take_over`: tables of the population that belong to another one here, and were left there.
    tables_elsewhere: tuple[str, ...] = ()

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
        self._request = None if request is None else int(mechanisms.whole(1, BOUNDS["entries"])(request, "request"))
        self._schema: str | None = None
        self._fit: str | None = None
        self._key: str | None = None

    @classmethod
    def create_at(
        cls, place: str | Path, *, limit: Any, delta: Any, unit: Unit | str, population: str, approval: bool
    ) -> SharedLedger:
        store = store_at(place)
        opened = {"ledger": token_hex(16), "format_version": FORMAT_VERSION, "imported": None}
        described = _opening(population, Room(Unit.parse(unit), *parse_limits(limit, delta)), approval=approval)
        store.create([("opened", opened), ("population", described)])
        return cls.open_at(place, population=population)

    @classmethod
    def open_at(cls, place: str | Path, **details: Any) -> SharedLedger:
        ledger = cls(store_at(place), **details)
        ledger._read()
        ledger._named = ledger._population().name  # which has to be there, and stays the one that is charged
        return ledger

    # -------------------------------------------------------------------------------------------------------- reading

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

    def _read(self) -> State:
        """What is on record now; where the file is gone, what was known of it."""
        with turn():
            if not self._state.number or self._store.exists():
                self._store.read(self._state)
        return self._state

    def _population(self) -> Population:
        """The population of this hand, as it is known."""
        remedy = "name the one that is charged: population=..., --population or SPINNEY_POPULATION"
        return self._state.chosen(self._named or default_population(), self._store.shown, remedy)

    def _population_now(self) -> Population:
        self._read()
        return self._population()

    def _room(self) -> Room:
        return self._population_now().room

    @property
    def population(self) -> str:
        """Whose budget this hand charges."""
        return self._population_now().name

    @property
    def needs_approval(self) -> bool:
        """Whether a charge needs a request that somebody else has approved."""
        return self._population_now().approval

    @property
    def moved_to(self) -> str | None:
        """The ledger that took this population over, where it is closed here."""
        return self._population_now().moved_to

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
        name = self.population
        return tuple(request for request in self._state.requests.values() if request.population == name)

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables of this population."""
        name = self.population
        return tuple(table for table in self._state.tables.values() if table.population == name)

    @property
    def events(self) -> tuple[Event, ...]:
        """All charges and brands of this population that this Spinney can read; others may have charged since."""
        name = self.population
        return tuple(event for _number, event in events_on_record(self._state, population=name))

    @property
    def charges(self) -> tuple[ChargeOnRecord, ...]:
        """The charges of this population, with what came of them."""
        name = self.population
        return charges_of(fit for fit in self._state.fits.values() if fit.population == name)

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """Who opened this population, changed its limits or policy, approved or denied a request: when and why."""
        return decisions_of(self._state, self.population)

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
        name = self.population
        fit = self._state.fits.get(key)
        return charges_of([fit] if fit is not None and fit.population == name else [])

    def paid(self) -> tuple[ChargeOnRecord, ...]:
        return () if self._fit is None else self.paid_under(self._fit)

    def require(self, epsilon: Fraction, *, unit: Unit, delta: Fraction = Fraction(0)) -> None:
        epsilon, delta = exact_amounts(epsilon, delta)
        with turn():
            state = self._present()
            charge = self._fields_of_charge(Unit.parse(unit), self._fit or "") | {"epsilon": epsilon, "delta": delta}
            is_users = self._request is not None or charge["fit"] in state.fits
            check_charge(state, SimpleNamespace(**charge), self._store.user() if is_users else "")

    def _fields_of_charge(self, unit: Unit, fit: str) -> dict[str, Any]:
        """What this hand says of its charges, besides what they cost."""
        return {
            "fit": fit,
            "population": self._population().name,
            "unit": unit.value,
            "table": self._table,
            "schema": self._schema,
            "purpose": self._purpose,
            "request": self._request,
        }

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
        if not self._state.number:
            self._present()
        population, fit = self._population(), self._fit or token_hex(16)
        fields = {"key": token_hex(16), "fit": fit, "population": population.name, "events": text_of_events(events)}
        if not all(isinstance(event, Charge) for event in events):
            self._append("brand", fields)
            return
        fields |= self._fields_of_charge(population.room.unit, fit)
        request = self._state.requests.get(self._request or 0)
        if self._purpose is None and request is not None:
            fields["purpose"] = request.purpose
        amounts = {"epsilon": str(total_epsilon(events)), "delta": str(total_delta(events))}
        self._append("charge", fields | amounts | {"imported": False})

    def _append(self, kind: str, fields: dict[str, Any]) -> Entry:
        with turn():
            return self._store.append(self._state, [(kind, fields)])[-1]

    def _was_charged(self) -> bool:
        begun = self._present().fits.get(self._fit or "")
        return begun is not None and bool(begun.charges)

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
        room = Room(Unit.parse(unit), *parse_limits(limit, delta))
        self._append("population", _opening(name, room, approval=approval))
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
        """Bind a table to this population, by its name and the digest of its schema (`schema.linked.schema_digest`)."""
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

    def take_over(self, place: str | Path, *, population: str | None = None, source: str | None = None) -> SharedLedger:
        """Close a population of another ledger, and take it over with all that it spent; a hand on it here.

        Where this was interrupted, doing it again finishes it: until then the budget is in neither ledger.

        Args:
            place: the path or the address of the other ledger, which stays as it is, closed.
            population: what the population is called here; by default as there.
            source: which population of the other ledger it is; by default the only one.
        """
        with turn():
            moved = move(store_at(place), self._store, self._state, source=source, name=population)
        hand = copy(self)
        hand._named, hand.tables_elsewhere = moved.population, moved.tables_elsewhere
        return hand


def _opening(name: str, room: Room, *, approval: bool) -> dict[str, Any]:
    """The fields of the entry that opens a population."""
    return {
        "population": clean_text(name, "population", LONGEST_NAME),
        "unit": room.unit.value,
        "epsilon": None if room.limit is None else str(room.limit),
        "delta": None if room.limit is None else str(room.delta_limit),
        "approval": bool(approval),
        "imported": None,
    }
