"""A population that moves from one ledger to another, with all that it spent.

The old ledger is closed first, by an entry that names the new one: from then on nobody can charge it, and its head is
pinned in the entry that opens the population in the new ledger. Whatever interrupts the move leaves the budget in
neither, and doing it again finishes it. Charges, brands, tables, digests of schemas and releases, and what failed come
along; requests do not. What was spent is not held to limits or approvals a second time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from secrets import token_hex
from typing import Any

from spinney.errors import FileError, ParameterError
from spinney.privacy.accounts.chain import Entry
from spinney.privacy.accounts.fields import LONGEST_NAME, clean_text
from spinney.privacy.accounts.places import Proposals, Store
from spinney.privacy.accounts.records import events_of
from spinney.privacy.accounts.rules import is_imported, rehearsed
from spinney.privacy.accounts.state import Population, State
from spinney.privacy.events import event_to_dict
from spinney.shown import brief


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
    population = _chosen(known, old, source)
    name = clean_text(name or population.name, "population", LONGEST_NAME)
    _check_movable(known, population, state, new)
    rehearsed(state, _entries(known, population.name, state, name, old.shown), new.user())
    if population.moved_to is None:
        closing = {"population": population.name, "moved_to": new.address, "ledger": state.ledger}
        old.append(known, [("closed", closing)])
    new.append(state, _entries(known, population.name, state, name, old.shown))
    return Moved(name, tuple(sorted(set(_tables(known, population.name)) - set(_tables(state, name)))))


def _chosen(known: State, old: Store, source: str | None) -> Population:
    if source is not None:
        return known.population(source)
    if len(known.populations) != 1:
        names = ", ".join(map(repr, known.populations))
        raise ParameterError(
            f"the ledger {old.shown} has several populations ({names}); name the one to take over: source=... or --from"
        )
    return next(iter(known.populations.values()))


def _check_movable(known: State, population: Population, state: State, new: Store) -> None:
    """Raise, before anything is closed, where the new ledger would not take the population."""
    if known.ledger == state.ledger:
        raise ParameterError(f"{new.shown} is this very ledger, or a copy of it, and cannot take itself over")
    if is_imported(state, str(known.ledger), population.name):
        raise ParameterError(
            f"the population {brief(population.name)} was imported already; a copy of it would have the rest once more"
        )
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
    room = population.room
    opening = {
        "population": name,
        "unit": room.unit.value,
        "epsilon": None if room.limit is None else str(room.limit),
        "delta": None if room.limit is None else str(room.delta_limit),
        "approval": population.approval,
        "imported": known.ledger,
        "imported_population": source,
        "imported_head": known.head,
    }
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
    if entry.kind in ("released", "failed"):
        if known.fits[entry.fields["fit"]].population != source:
            return None
        what = "release" if entry.kind == "released" else "error"
        return {"fit": _renewed(entry.fields["fit"], salt), what: entry.fields[what], "imported": True}
    if entry.kind not in ("charge", "brand") or entry.fields.get("population") != source:
        return None
    events = events_of(entry)
    if events is None:
        raise FileError(
            f"{where} has charges or brands that this Spinney cannot read (entry {entry.number}); upgrade it"
        )
    listed = json.dumps([event_to_dict(event) for event in events], ensure_ascii=False)
    keys = {field: _renewed(entry.fields[field], salt) for field in ("key", "fit")}
    fields = {**keys, "population": name, "imported": True}
    if entry.kind == "brand":
        return {**fields, "events": listed}
    kept = {field: entry.fields.get(field) for field in ("unit", "table", "schema", "purpose", "epsilon", "delta")}
    return {**fields, **kept, "request": None, "events": listed}


def _renewed(key: str, salt: str) -> str:
    """A key for the new ledger, which nobody who has seen the old one can have used there."""
    return sha256(f"{salt} {key}".encode()).hexdigest()[:32]
