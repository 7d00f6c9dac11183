"""The rules of a ledger: which entry may come next, and what follows from it.

Populations, what they spent, requests and tables follow from reading the entries from the first to the last, and an
entry that breaks a rule is refused before it is written, whoever writes it; one that is on record all the same was not
written by Spinney. A server that others can reach keeps to the same rules by itself (`server/`): tests compare the two.

A new entry has to pass `propose`, which also bounds what costs nothing, so that nobody fills a ledger; what is on
record is read by `apply`, so that a ledger from before there were such bounds opens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from spinney.errors import BudgetError, FileError, ParameterError, SpinneyError
from spinney.privacy.accounts.bounds import check_brand_length, check_new_charge
from spinney.privacy.accounts.chain import FORMAT_VERSION, Entry, Row, chained, now, this_version, written
from spinney.privacy.accounts.charging import take_brand, take_charge, take_failed, take_released
from spinney.privacy.accounts.fields import MOST_ENTRIES, Fields
from spinney.privacy.accounts.state import Population, Request, State, Table
from spinney.privacy.room import Room
from spinney.shown import brief

# What one user may write without spending anything.
MOST_PENDING = 100
MOST_UNPAID_FITS = 100
MOST_BRANDS = 64
# How populations were closed before there was an entry for it: the least limit there is, and a reason that begins so.
_CLOSED = Fraction(1, 2**30)
_MOVED = "moved to "


def read(state: State, rows: list[Row], where: str) -> None:
    """Take in what a database has after the last entry that is known; FileError where it cannot be."""
    for entry in chained(rows, state.number, state.hash, where):
        try:
            apply(state, entry)
        except SpinneyError as err:
            raise FileError(
                f"{where} is a Spinney ledger with inconsistent contents: entry {entry.number} breaks its rules: {err}"
            ) from None


def apply(state: State, entry: Entry) -> None:
    """Take in the next entry, or raise and stay as before. Where it stands in the chain is not looked at."""
    if (entry.kind == "opened") != (entry.number == 1):
        raise ParameterError("a ledger begins with one entry that opens it")
    if entry.number > MOST_ENTRIES:
        raise BudgetError(f"a ledger has at most {MOST_ENTRIES:,} entries; begin another")
    fields = Fields(entry.fields)
    _TAKEN[entry.kind](state, entry, fields)
    if entry.kind != "population" and entry.fields.get("imported") is not True:
        state.importing = None
    state.number, state.hash = entry.number, entry.hash
    state.entries.append(entry)


def propose(state: State, entry: Entry) -> None:
    """Take in an entry that is about to be written, or raise: all that `apply` asks, and what bounds new ones."""
    fields = Fields(entry.fields)
    if entry.kind == "request":
        pending = (each for each in state.requests.values() if each.user == entry.user and each.state == "pending")
        if sum(1 for _ in pending) >= MOST_PENDING:
            raise ParameterError(
                f"{brief(entry.user)} has {MOST_PENDING} requests that nobody has decided on; wait for an answer to "
                "one of them"
            )
    elif entry.kind == "brand" and not fields.flag("imported"):
        check_brand_length(fields)
        _check_brands(state, entry, fields)
    elif entry.kind == "charge" and not fields.flag("imported"):
        check_new_charge(entry, fields)
    elif entry.kind == "released" and not fields.flag("imported"):
        _check_digest(state, entry, fields)
    apply(state, entry)


def rehearsed(state: State, entries: Iterable[tuple[str, dict[str, Any]]], user: str) -> State:
    """What would be known once a user had written entries of these kinds and fields; raise where they may not."""
    trial = state.copy()
    for kind, fields in entries:
        propose(trial, written(trial.number + 1, trial.hash, now(), user, this_version(), kind, fields))
    return trial


def _check_brands(state: State, entry: Entry, fields: Fields) -> None:
    begun = state.fits.get(fields.key("fit"))
    if begun is not None and begun.n_brands >= MOST_BRANDS:
        raise ParameterError(f"this fit has {MOST_BRANDS} brands already")
    unpaid = sum(1 for fit in state.fits.values() if fit.user == entry.user and not fit.charges)
    if begun is None and unpaid >= MOST_UNPAID_FITS:
        raise ParameterError(f"{brief(entry.user)} has {unpaid} brands of fits that charged nothing; charge first")


def _check_digest(state: State, entry: Entry, fields: Fields) -> None:
    """A release belongs to the user who recorded it first."""
    digest = fields.digest("release")
    owner = next((fit.user for fit in state.fits.values() if fit.release == digest), entry.user)
    if owner != entry.user:
        raise ParameterError(f"this release is on record as {brief(owner)}'s, and is not {brief(entry.user)}'s")


# ----------------------------------------------------------------------------------------------- what keepers write


def _opened(state: State, _entry: Entry, fields: Fields) -> None:
    version = fields.whole("format_version")
    if version != FORMAT_VERSION:
        raise ParameterError(f"format version {version}, and this Spinney reads {FORMAT_VERSION}; upgrade it")
    state.ledger = fields.key("ledger")


def _population(state: State, entry: Entry, fields: Fields) -> None:
    name = fields.name("population")
    if name in state.populations:
        raise ParameterError(f"population={brief(name)} exists already; choose another name")
    source, of = fields.optional_key("imported"), fields.optional_name("imported_population")
    if source is not None:
        _check_source(state, source, of)
    room = Room(fields.unit(), *fields.limits(), is_kept=True)
    state.populations[name] = Population(name, room, fields.flag("approval"))
    is_version_1 = entry.number == 2 and state.entries[0].fields.get("imported") is not None  # the file became this one
    state.importing = name if source is not None or is_version_1 else None
    if source is not None:
        state.imports.add((source, of))


def _check_source(state: State, source: str, population: str | None) -> None:
    if source == state.ledger:
        raise ParameterError(
            "a ledger, or a copy of it, cannot be imported into itself; the population would have the rest once more"
        )
    if is_imported(state, source, population):
        raise ParameterError("this population was imported already; a copy of it would have the rest once more")


def is_imported(state: State, ledger: str, population: str | None) -> bool:
    """Whether a population of another ledger was taken over; one of unknown name may have been any of them."""
    known = {of for source, of in state.imports if source == ledger}
    return bool(known) and (population is None or None in known or population in known)


def _limit(state: State, _entry: Entry, fields: Fields) -> None:
    population = state.population(fields.name("population"))
    limit, delta = fields.limits()
    why = fields.text("why")
    moved_to = why.removeprefix(_MOVED) if limit == _CLOSED and why.startswith(_MOVED) else None
    room = replace(population.room, limit=limit, delta_limit=delta)
    state.populations[population.name] = replace(population, room=room, moved_to=moved_to, moved_ledger=None)


def _closed(state: State, _entry: Entry, fields: Fields) -> None:
    population = state.population(fields.name("population"))
    if population.moved_to is not None:
        raise ParameterError(f"the population {brief(population.name)} is closed already")
    moved_to, ledger = fields.text("moved_to"), fields.key("ledger")
    state.populations[population.name] = replace(population, moved_to=moved_to, moved_ledger=ledger)


def _policy(state: State, _entry: Entry, fields: Fields) -> None:
    population = state.population(fields.name("population"))
    approval = fields.flag("approval")
    fields.text("why")
    state.populations[population.name] = replace(population, approval=approval)


def _table(state: State, _entry: Entry, fields: Fields) -> None:
    """What a keeper says of a table overrides what a charge said, and not what a keeper said before."""
    population = state.population(fields.name("population"))
    name, schema = fields.name("table"), fields.optional_digest("schema")
    known = state.tables.get(name)
    if known is not None and known.is_bound:
        state.check_table(name, population.name)
    state.tables[name] = Table(name, population.name, schema, is_bound=True)
    if schema is not None and schema not in state.bound_schemas:
        state.schemas[schema] = population.name
        state.bound_schemas.add(schema)


# ---------------------------------------------------------------------------------------------------------- requests


def _request(state: State, entry: Entry, fields: Fields) -> None:
    population = state.population(fields.name("population"))
    table = fields.optional_name("table")
    if table is not None:
        state.check_table(table, population.name)
    epsilon, delta = fields.epsilon(), fields.delta()
    purpose = fields.text("purpose")
    state.requests[entry.number] = Request(
        entry.number, entry.time, entry.user, population.name, table, epsilon, delta, purpose
    )


def _pending(state: State, entry: Entry, fields: Fields) -> Request:
    number = fields.whole("request")
    request = state.requests.get(number)
    if request is None:
        raise ParameterError(f"request={number} is not a request of this ledger")
    if request.state != "pending":
        raise ParameterError(f"request={number} is {request.state} already; ask anew")
    if entry.kind == "approval" and request.user == entry.user:
        raise ParameterError(f"request={number} is by {brief(entry.user)}, and somebody else has to approve it")
    return request


def _approval(state: State, entry: Entry, fields: Fields) -> None:
    request = _pending(state, entry, fields)
    state.requests[request.number] = replace(request, state="approved", decided_by=entry.user)


def _denial(state: State, entry: Entry, fields: Fields) -> None:
    request, why = _pending(state, entry, fields), fields.text("why")
    state.requests[request.number] = replace(request, state="denied", decided_by=entry.user, why=why)


_TAKEN: dict[str, Callable[[State, Entry, Fields], None]] = {
    "opened": _opened,
    "population": _population,
    "limit": _limit,
    "policy": _policy,
    "closed": _closed,
    "table": _table,
    "request": _request,
    "approval": _approval,
    "denial": _denial,
    "charge": take_charge,
    "brand": take_brand,
    "released": take_released,
    "failed": take_failed,
}
