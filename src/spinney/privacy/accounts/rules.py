"""The rules of a ledger: which entry may come next, and what follows from the entries on record.

    state                 populations, what they spent, requests, tables and fits
    charges               what pays for a charge, what voids one, and what came of it
    entries taken in      how the state changes by charges, brands and ends of fits
    records               the same as people read it: charges and decisions
    bounds                what limits the size of new charges and brands
    rules                 `apply` takes in an entry, on record or about to be written
    what keepers write    populations, limits, policies, tables
    requests              asking, approving, denying

An entry that breaks a rule is refused before it is written, whoever writes it; one that is on record all the
same was not written by Spinney. What each kind of entry may say is a table (`chain.KINDS`), by which a server goes
as well. The rules here look at the ledger, and a server keeps to them by itself (`server.sql`): here they ask
dictionaries and there tables, so each language has them in its own words, and tests compare the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from spinney.errors import BudgetError, FileError, ParameterError, SpinneyError
from spinney.privacy.accounts.chain import (
    BEGINNING,
    BOUNDS,
    FORMAT_VERSION,
    NOBODY,
    Entry,
    Row,
    chained,
    counted,
    events_of,
    now,
    read_fields,
    this_version,
    written,
)
from spinney.privacy.budget import LARGEST_BITS, SMALLEST_EPSILON, Unit
from spinney.privacy.ledger import Room
from spinney.privacy.mechanisms import (
    SMALLEST_COMPOSED_DELTA,
    Brand,
    ComposedRelease,
    Event,
    NotPrivate,
    TreeShapes,
    decimal,
)
from spinney.text import brief

# ---------------------------------------------------------------------------------------------------------------- state
# What follows from the entries of a ledger: populations, what they spent, requests, tables, fits.
#
# A ledger is nothing but its entries, and this is what they add up to, by the rules below. Every record is
# frozen and replaced as a whole, so a copy of the state costs little: what an entry would do is tried on a copy
# first.


@dataclass(frozen=True, slots=True)
class Population:
    """Whose budget it is: the people that limits protect, in one unit."""

    name: str
    room: Room
    approval: bool  # whether a charge needs an approved request
    moved_to: str | None = None  # the ledger that took it over, where it is closed here
    moved_ledger: str | None = None  # the same by its name, where that is on record


@dataclass(frozen=True, slots=True)
class Request:
    """So much is wanted; `state` is "pending", "approved", "denied" or "used"."""

    number: int
    time: str
    user: str
    population: str
    table: str | None
    epsilon: Fraction
    delta: Fraction
    purpose: str
    state: str = "pending"
    decided_by: str | None = None
    why: str | None = None
    fit: str | None = None


@dataclass(frozen=True, slots=True)
class Fit:
    """The entries that belong to one release, and what came of them."""

    key: str
    population: str
    user: str
    request: int | None = None
    charges: tuple[Entry, ...] = ()
    n_brands: int = 0
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    release: str | None = None
    error: str | None = None

    @property
    def is_ended(self) -> bool:
        return self.release is not None or self.error is not None

    def counted_more(self, epsilon: Fraction, delta: Fraction) -> tuple[Fraction, Fraction]:
        """What its population is charged where the fit costs so much more: fits are rounded up as wholes."""
        return (
            counted(self.epsilon + epsilon) - counted(self.epsilon),
            counted(self.delta + delta) - counted(self.delta),
        )


@dataclass(frozen=True, slots=True)
class Table:
    """A table and the population that it is about; `schema` is a digest where a keeper bound it to one."""

    name: str
    population: str
    schema: str | None
    is_bound: bool  # by a keeper in so many words, rather than by its first charge


class State:
    """All that follows from the entries so far."""

    def __init__(self) -> None:
        self.ledger: str | None = None
        self.is_provisional = False  # of a file of version 1, whose entries are not written down as such yet
        self.number, self.hash = 0, BEGINNING
        self.importing: str | None = None  # the population that is being taken over by the last entries
        self.entries: list[Entry] = []
        self.populations: dict[str, Population] = {}
        self.tables: dict[str, Table] = {}
        self.schemas: dict[str, str] = {}  # digests, and the population that was first charged for one
        self.bound_schemas: set[str] = set()  # those whose population a keeper said
        self.requests: dict[int, Request] = {}
        self.fits: dict[str, Fit] = {}
        self.keys: dict[str, int] = {}  # of charges, by what tells one from a repetition of it
        self.imports: set[tuple[str, str | None]] = set()  # ledgers and their populations that were taken over

    def copy(self) -> State:
        """Another state that knows the same."""
        other = State()
        other.__dict__ = {
            name: value.copy() if isinstance(value, (list, dict, set)) else value
            for name, value in self.__dict__.items()
        }
        return other

    def take(self, other: State) -> None:
        """Know what another one knows."""
        self.__dict__ = dict(other.__dict__)

    @property
    def head(self) -> str:
        """The number and the hash of the last entry."""
        return f"{self.number}:{self.hash}"

    def chosen(self, name: str | None, where: str, remedy: str) -> Population:
        """A population by name, or the only one."""
        if name is None and len(self.populations) != 1:
            known = ", ".join(map(repr, self.populations)) or "none"
            raise ParameterError(f"the ledger {where} has several populations ({known}); {remedy}")
        return self.population(next(iter(self.populations)) if name is None else name)

    def population(self, name: str) -> Population:
        """A population by name."""
        if name not in self.populations:
            known = ", ".join(map(repr, self.populations)) or "none"
            raise ParameterError(f"population={brief(name)} is not one of this ledger, which has {known}")
        return self.populations[name]

    def check_table(self, table: str, population: str) -> None:
        """Raise where a table belongs to another population."""
        known = self.tables.get(table)
        if known is not None and known.population != population:
            remedy = "" if known.is_bound else "; if that is wrong, a keeper binds it to another (spinney ledger bind)"
            raise ParameterError(
                f"table={brief(table)} belongs to the population {brief(known.population)} and not to "
                f"{brief(population)}; the same people would have two budgets{remedy}"
            )


# -------------------------------------------------------------------------------------------------------------- charges
# The rules of charges: what pays for one, what voids one, and what came of it.
#
# A server keeps to the same rules by itself (`server.sql`, charges): tests compare the two.


def check_charge(state: State, charge: Any, user: str) -> Request | None:
    """Raise unless a user may make a charge of these fields now; the request that pays for it, where one does."""
    population = state.population(charge.population)
    _check_place(state, charge)
    if population.moved_to is not None:
        raise BudgetError(
            f"the population {brief(population.name)} is closed here: it was moved to {population.moved_to}; "
            "charge it there"
        )
    begun = state.fits.get(charge.fit, Fit(charge.fit, population.name, user))
    population.room.check(*begun.counted_more(charge.epsilon, charge.delta), Unit(charge.unit))
    _check_fit(begun, charge, user)
    return check_request(state, begun, charge, user)


def _check_fit(begun: Fit, charge: Any, user: str) -> None:
    """What was begun goes on with one population, one user and one request, and with numbers of a sane length."""
    if begun.charges and begun.request != charge.request:
        raise ParameterError("the charges of one fit have one population, one user and one request")
    _check_own(begun, charge.population, user)
    for total in (begun.epsilon + charge.epsilon, begun.delta + charge.delta):
        if total.denominator.bit_length() > 4 * LARGEST_BITS:
            raise BudgetError("the sum of these charges has too many digits; charge amounts of a few digits")


def _check_own(begun: Fit, population: str, user: str) -> None:
    if (begun.population, begun.user) != (population, user):
        raise ParameterError("the entries of one fit have one population, one user and one request")
    if begun.is_ended:
        raise ParameterError("the fit of this entry has ended already")


def check_request(state: State, begun: Fit, charge: Any, user: str) -> Request | None:
    """The request that pays for a charge, or None where none is needed; raise where it may not."""
    population, number = state.population(charge.population), charge.request
    if number is None:
        if population.approval:
            raise BudgetError(
                f"charges to the population {brief(population.name)} need an approved request, and none was named; "
                "ask for one (spinney ledger request), and name it once it is approved (fit --request NUMBER)"
            )
        return None
    request = state.requests.get(number)
    if request is None or request.population != population.name:
        raise BudgetError(f"request={number} is not one of the population {brief(population.name)}")
    if request.state in ("pending", "denied"):
        raise BudgetError(f"request={number} is {request.state}, and not approved")
    if request.fit not in (None, charge.fit):
        raise BudgetError(f"request={number} has paid for a release already; ask for another")
    if request.user != user:
        raise BudgetError(f"request={number} was made by {brief(request.user)}, and is not {brief(user)}'s to use")
    if request.table not in (None, charge.table):
        raise BudgetError(f"request={number} is for the table {brief(request.table)}")
    if charge.purpose not in (None, request.purpose):
        raise BudgetError(
            f"request={number} is for the purpose {brief(request.purpose)}, and not for {brief(charge.purpose)}; "
            "leave the purpose out, or ask anew for this one"
        )
    epsilon, delta = begun.epsilon + charge.epsilon, begun.delta + charge.delta
    if epsilon > request.epsilon or delta > request.delta:
        raise BudgetError(
            f"request={number} is for epsilon={decimal(request.epsilon)}, delta={decimal(request.delta)}, and "
            f"epsilon={decimal(epsilon)}, delta={decimal(delta)} is asked of it"
        )
    return request


def _check_place(state: State, charge: Any) -> None:
    """The table and the schema of a charge belong to its population."""
    bound = None
    if charge.table is not None:
        state.check_table(charge.table, charge.population)
        bound = state.tables.get(charge.table)
        if bound is not None and bound.schema is not None and charge.schema not in (None, bound.schema):
            raise ParameterError(
                f"table={brief(charge.table)} is bound to another schema; if this one is right, bind the table "
                "again (spinney ledger bind)"
            )
    other = state.schemas.get(charge.schema or "")
    if other not in (None, charge.population) and not (bound is not None and bound.is_bound):
        raise ParameterError(
            f"a table of the same schema was charged to the population {brief(other)}; if it is about other "
            f"people, name it and bind it first (spinney ledger bind LEDGER TABLE --population {charge.population})"
        )


# ----------------------------------------------------------------------------------------------------- entries taken in


def _charge(state: State, entry: Entry, said: Any) -> None:
    _check_new_key(state, said)
    population = state.population(said.population)
    begun = state.fits.get(said.fit, Fit(said.fit, population.name, entry.user))
    paid_by, room = None, population.room
    if said.imported:
        _check_importing(state, population.name)
        if said.unit != room.unit:
            raise ParameterError("the unit of the charge does not match the ledger's; they do not add up")
        _check_fit(begun, said, entry.user)
    else:
        paid_by = check_charge(state, said, entry.user)
    epsilon, delta = begun.counted_more(said.epsilon, said.delta)
    room = replace(room, spent=room.spent + epsilon, spent_delta=room.spent_delta + delta)
    state.populations[population.name] = replace(population, room=room)
    if said.table is not None:
        state.tables.setdefault(said.table, Table(said.table, population.name, None, is_bound=False))
    if said.schema is not None:
        state.schemas.setdefault(said.schema, population.name)
    if paid_by is not None:
        state.requests[paid_by.number] = replace(paid_by, state="used", fit=said.fit)
    begun = replace(begun, epsilon=begun.epsilon + said.epsilon, delta=begun.delta + said.delta)
    state.fits[said.fit] = replace(begun, request=said.request, charges=(*begun.charges, entry))
    state.keys[said.key] = entry.number


def _brand(state: State, entry: Entry, said: Any) -> None:
    """A brand is of a fit of the same user that has not ended, or begins one."""
    population = state.population(said.population)
    _check_new_key(state, said)
    if said.imported:
        _check_importing(state, population.name)
    begun = state.fits.get(said.fit, Fit(said.fit, population.name, entry.user))
    _check_own(begun, population.name, entry.user)
    state.fits[said.fit] = replace(begun, n_brands=begun.n_brands + 1)
    state.keys[said.key] = entry.number


def _check_new_key(state: State, said: Any) -> None:
    if said.key in state.keys:
        raise ParameterError(f"this charge or brand is on record already, as entry {state.keys[said.key]}")


def _check_importing(state: State, population: str) -> None:
    """What is imported passes limits and approval, and can be added to the population that is being imported only."""
    if state.importing != population:
        raise ParameterError("what is imported follows the entry of its population, with nothing in between")


def _end(state: State, entry: Entry, said: Any) -> None:
    """What came of a fit: the digest of a release, or the kind of an error."""
    begun = state.fits.get(said.fit)
    if begun is None or not begun.charges:
        raise ParameterError("nothing was charged for this fit")
    if begun.user != entry.user:
        raise ParameterError(f"the fit was charged by {brief(begun.user)}, who alone says what came of it")
    if begun.is_ended:
        raise ParameterError("what came of this fit is on record already")
    if said.imported:
        _check_importing(state, begun.population)
    came_of_it = {"release": said.release} if entry.kind == "released" else {"error": said.error}
    state.fits[begun.key] = replace(begun, **came_of_it)


# -------------------------------------------------------------------------------------------------------------- records
# A ledger as people read it: who paid how much for what, when, and what came of it; and who decided what, and why.


_SHORT = 12  # characters of a name that tell one ledger from another


@dataclass(frozen=True, slots=True)
class ChargeOnRecord:
    """A charge as people read it: who paid how much for what, when, and what came of it."""

    number: int
    time: str
    user: str
    population: str
    table: str | None
    purpose: str | None
    request: int | None
    epsilon: Fraction
    delta: Fraction
    events: tuple[Event, ...] | None  # None: written by a Spinney that knows more kinds of them
    release: str | None  # the digest
    error: str | None  # the kind of error that the fit ended with
    imported_by: str | None = None  # who took it over from another ledger, at `time`; its user is not known then


@dataclass(frozen=True, slots=True)
class Decision:
    """What somebody who keeps the ledger decided: when, who, what and, where it has to be said, why."""

    number: int
    time: str
    user: str
    population: str
    what: str
    why: str | None


def charges_of(fits: Iterable[Fit]) -> tuple[ChargeOnRecord, ...]:
    """The charges of fits, in their order, with what came of them."""
    pairs = [(entry, fit) for fit in fits for entry in fit.charges]
    return tuple(
        ChargeOnRecord(
            entry.number,
            entry.time,
            NOBODY if entry.fields.get("imported") else entry.user,
            fit.population,
            entry.fields.get("table"),
            entry.fields.get("purpose"),
            fit.request,
            Fraction(entry.fields["epsilon"]),
            Fraction(entry.fields["delta"]),
            events_of(entry),
            fit.release,
            fit.error,
            entry.user if entry.fields.get("imported") else None,
        )
        for entry, fit in sorted(pairs, key=lambda pair: pair[0].number)
    )


def decisions_of(state: State, population: str | None = None) -> tuple[Decision, ...]:
    """Limits, policies, approvals, denials and tables of a population, or of all, in their order."""
    limits: dict[str, str] = {}
    found = []
    for entry in state.entries:
        said = _decided(state, entry, limits)
        if said is not None and population in (None, said[0]):
            found.append(Decision(entry.number, entry.time, entry.user, *said, entry.fields.get("why")))
    return tuple(found)


def _decided(state: State, entry: Entry, limits: dict[str, str]) -> tuple[str, str] | None:
    """The population that an entry decides on, and what; None where it is another kind of entry."""
    fields = entry.fields
    if entry.kind in ("approval", "denial"):
        request = state.requests[fields["request"]]
        asked = f"request {request.number} by {request.user}, epsilon {decimal(request.epsilon)} for {request.purpose}"
        return request.population, f"{'approved' if entry.kind == 'approval' else 'denied'} {asked}"
    name = fields.get("population", "")
    if entry.kind == "table":
        return name, f"bound the table {fields['table']}" + (" to a schema" if fields.get("schema") else "")
    if entry.kind == "policy":
        return name, "charges need approval" if fields["approval"] else "charges need no approval any more"
    if entry.kind == "closed":
        return name, f"closed, moved to {fields['moved_to']}"
    if entry.kind not in ("population", "limit"):
        return None
    before, limits[name] = limits.get(name), _limits_said(fields)
    if before is not None:
        return name, f"{limits[name]} instead of {before}"
    approval = ", charges need approval" if fields["approval"] else ""
    return name, f"{_begun(fields)} with {limits[name]}{approval}"


def _begun(fields: Mapping[str, Any]) -> str:
    """How a population came to be; what was imported was not held to its limits and approvals here."""
    if not fields.get("imported"):
        return "opened"
    named = f" {fields['imported_population']!r} of" if fields.get("imported_population") else ""
    return f"imported{named} the ledger {fields['imported'][:_SHORT]}"


def _limits_said(fields: Mapping[str, Any]) -> str:
    if fields.get("epsilon") is None:
        return "no limit"
    delta = Fraction(fields["delta"])
    return f"limit {decimal(Fraction(fields['epsilon']))}" + (f", delta {decimal(delta)}" if delta else "")


def brands_of(state: State, population: str | None = None) -> tuple[tuple[int, Brand], ...]:
    """What voids guarantees of a population, or of all, each with the number of its entry."""
    listed = events_on_record(state, population=population)
    return tuple((number, event) for number, event in listed if isinstance(event, Brand))


def events_on_record(
    state: State, *, population: str | None = None, fit: str | None = None
) -> tuple[tuple[int, Event], ...]:
    """The charges and brands of a population or of a fit that can be read, each with the number of its entry."""
    return tuple(
        (entry.number, event)
        for entry in state.entries
        if entry.kind in ("charge", "brand")
        if population in (None, entry.fields["population"]) and fit in (None, entry.fields["fit"])
        for event in events_of(entry) or ()
    )


def brand_warning(brands: Sequence[tuple[int, Brand]]) -> str | None:
    """What to say first of an account with brands; None where there are none."""
    if not brands:
        return None
    numbers = ", ".join(str(number) for number, _event in brands[:10]) + (", ..." if len(brands) > 10 else "")
    if any(isinstance(event, NotPrivate) for _number, event in brands):
        return (
            f"NOT PRIVATE: something was released without noise (entries {numbers}), so no limit here bounds the loss"
        )
    return f"UNSAFE NOISE: noise came from a seeded generator (entries {numbers}), and can be taken off by who knows it"


# --------------------------------------------------------------------------------------------------------------- bounds
# What bounds new entries (`chain.BOUNDS`), so that everybody can read a ledger and work out what is in it, and nobody
# fills it with what costs nothing.
#
# What is on record from before there were such bounds, and what is imported, is read all the same.


def _check_new_request(state: State, entry: Entry, _said: Any) -> None:
    most = BOUNDS["pending requests"]
    if sum(each.user == entry.user and each.state == "pending" for each in state.requests.values()) >= most:
        raise ParameterError(
            f"{brief(entry.user)} has {most} requests that nobody has decided on; wait for an answer to one of them"
        )


def _check_new_brand(state: State, entry: Entry, said: Any) -> None:
    """Raise where a brand says more than a note does, or a user has many that nobody paid for."""
    if len(said.events.encode()) > BOUNDS["bytes of a brand"]:
        raise ParameterError(f"a brand is longer than {BOUNDS['bytes of a brand']:,} bytes; shorten its note")
    begun = state.fits.get(said.fit)
    if begun is not None and begun.n_brands >= BOUNDS["brands of a fit"]:
        raise ParameterError(f"this fit has {BOUNDS['brands of a fit']} brands already")
    unpaid = sum(1 for fit in state.fits.values() if fit.user == entry.user and not fit.charges)
    if begun is None and unpaid >= BOUNDS["unpaid fits"]:
        raise ParameterError(f"{brief(entry.user)} has {unpaid} brands of fits that charged nothing; charge first")


def _check_new_charge(_state: State, entry: Entry, said: Any) -> None:
    """Raise where a charge is longer than a database keeps, or promises what nobody could check."""
    if len(said.events.encode()) > BOUNDS["bytes of events"]:
        raise ParameterError(f"events is longer than {BOUNDS['bytes of events']:,} bytes")
    composed = [event for event in events_of(entry) or () if isinstance(event, ComposedRelease)]
    if any(event.delta < SMALLEST_COMPOSED_DELTA for event in composed):
        raise ParameterError("delta of a composed charge is below 1e-10, which composition cannot promise")
    parts = [part for event in composed for part in event.parts]
    n_levels = sum(part.levels for part in parts if isinstance(part, TreeShapes))
    if len(parts) > BOUNDS["parts"] or n_levels > BOUNDS["levels"]:
        raise ParameterError(
            f"a charge is composed of more than {BOUNDS['parts']} parts, or its trees have more than "
            f"{BOUNDS['levels']:,} levels together; measure less, or charge it in several releases"
        )


def _check_new_release(state: State, entry: Entry, said: Any) -> None:
    """A release belongs to the user who recorded it first."""
    owner = next((fit.user for fit in state.fits.values() if fit.release == said.release), entry.user)
    if owner != entry.user:
        raise ParameterError(f"this release is on record as {brief(owner)}'s, and is not {brief(entry.user)}'s")


# ---------------------------------------------------------------------------------------------------------------- rules
# Populations, what they spent, requests and tables follow from reading the entries from the first to the last.


# How populations were closed before there was an entry for it: the least limit there is, and a reason that begins so.
_CLOSED = SMALLEST_EPSILON
_MOVED = "moved to "


def read(state: State, rows: list[Row], where: str) -> None:
    """Take in what a database has from the last entry on that is known; FileError where it cannot be."""
    if state.number:
        if not rows or (rows[0][0], rows[0][2]) != (state.number, state.hash):
            raise FileError(
                f"{where} is not the ledger that was opened, or has fewer entries: entry {state.number}, whose hash "
                f"was {state.hash}, is not there any more; a copy was put in its place, or it was edited"
            )
        rows = rows[1:]
    for entry in chained(rows, state.number, state.hash, where):
        try:
            apply(state, entry)
        except SpinneyError as err:
            raise FileError(
                f"{where} is a Spinney ledger with inconsistent contents: entry {entry.number} breaks its rules: {err}"
            ) from None
    if not state.number:
        raise FileError(f"{where} is a Spinney ledger without any entry; entries were removed")


def apply(state: State, entry: Entry, *, is_new: bool = False) -> None:
    """Take in the next entry, or raise and stay as before; one that is about to be written keeps to bounds as well.

    Where it stands in the chain is not looked at.
    """
    if (entry.kind == "opened") != (entry.number == 1):
        raise ParameterError("a ledger begins with one entry that opens it")
    if entry.number > BOUNDS["entries"]:
        raise BudgetError(f"a ledger has at most {BOUNDS['entries']:,} entries; begin another")
    said = read_fields(entry)
    if is_new and entry.kind in _NEW and entry.fields.get("imported") is not True:
        _NEW[entry.kind](state, entry, said)
    _TAKEN[entry.kind](state, entry, said)
    if entry.kind != "population" and entry.fields.get("imported") is not True:
        state.importing = None
    state.number, state.hash = entry.number, entry.hash
    state.entries.append(entry)


def rehearsed(state: State, entries: Iterable[tuple[str, dict[str, Any]]], user: str) -> State:
    """What would be known once a user had written entries of these kinds and fields; raise where they may not."""
    trial = state.copy()
    for kind, fields in entries:
        entry = written(trial.number + 1, trial.hash, now(), user, this_version(), kind, fields)
        apply(trial, entry, is_new=True)
    return trial


# --------------------------------------------------------------------------------------------------- what keepers write


def _opened(state: State, _entry: Entry, said: Any) -> None:
    if said.format_version != FORMAT_VERSION:
        version = said.format_version
        raise ParameterError(f"format version {version}, and this Spinney reads {FORMAT_VERSION}; upgrade it")
    state.ledger = said.ledger


def _population(state: State, entry: Entry, said: Any) -> None:
    source, of = said.imported, said.imported_population
    if source is not None:
        _check_source(state, source, of)
    if said.population in state.populations:
        raise ParameterError(f"population={brief(said.population)} exists already; choose another name")
    room = Room(Unit(said.unit), *_limits_of(said), is_kept=True)
    state.populations[said.population] = Population(said.population, room, said.approval)
    is_version_1 = entry.number == 2 and state.entries[0].fields.get("imported") is not None  # the file became this one
    state.importing = said.population if source is not None or is_version_1 else None
    if source is not None:
        state.imports.add((source, of))


def _limits_of(said: Any) -> tuple[Fraction | None, Fraction | None]:
    if (said.epsilon is None) != (said.delta is None):
        raise ParameterError("limits are of epsilon and of delta, or of neither")
    return said.epsilon, said.delta


def _check_source(state: State, source: str, population: str | None) -> None:
    if source == state.ledger:
        raise ParameterError(
            "a ledger, or a copy of it, cannot be imported into itself; the population would have the rest once more"
        )
    # One of unknown name may have been any of them.
    known = {of for ledger, of in state.imports if ledger == source}
    if known and (population is None or not known.isdisjoint({None, population})):
        raise ParameterError("this population was imported already; a copy of it would have the rest once more")


def _limit(state: State, _entry: Entry, said: Any) -> None:
    population = state.population(said.population)
    limit, delta = _limits_of(said)
    moved_to = said.why.removeprefix(_MOVED) if limit == _CLOSED and said.why.startswith(_MOVED) else None
    room = replace(population.room, limit=limit, delta_limit=delta, is_closed=moved_to is not None)
    state.populations[population.name] = replace(population, room=room, moved_to=moved_to, moved_ledger=None)


def _closed(state: State, _entry: Entry, said: Any) -> None:
    population = state.population(said.population)
    if population.moved_to is not None:
        raise ParameterError(f"the population {brief(population.name)} is closed already")
    room = replace(population.room, is_closed=True)
    state.populations[population.name] = replace(
        population, room=room, moved_to=said.moved_to, moved_ledger=said.ledger
    )


def _policy(state: State, _entry: Entry, said: Any) -> None:
    state.populations[said.population] = replace(state.population(said.population), approval=said.approval)


def _table(state: State, _entry: Entry, said: Any) -> None:
    """What a keeper says of a table overrides what a charge said, and not what a keeper said before."""
    population = state.population(said.population)
    known = state.tables.get(said.table)
    if known is not None and known.is_bound:
        state.check_table(said.table, population.name)
    state.tables[said.table] = Table(said.table, population.name, said.schema, is_bound=True)
    if said.schema is not None and said.schema not in state.bound_schemas:
        state.schemas[said.schema] = population.name
        state.bound_schemas.add(said.schema)


# ------------------------------------------------------------------------------------------------------------- requests


def _request(state: State, entry: Entry, said: Any) -> None:
    population = state.population(said.population)
    if said.table is not None:
        state.check_table(said.table, population.name)
    state.requests[entry.number] = Request(
        *(entry.number, entry.time, entry.user, population.name),
        *(said.table, said.epsilon, said.delta, said.purpose),
    )


def _answer(state: State, entry: Entry, said: Any) -> None:
    number = said.request
    request = state.requests.get(number)
    if request is None:
        raise ParameterError(f"request={number} is not a request of this ledger")
    if request.state != "pending":
        raise ParameterError(f"request={number} is {request.state} already; ask anew")
    if entry.kind == "approval":
        if request.user == entry.user:
            raise ParameterError(f"request={number} is by {brief(entry.user)}, and somebody else has to approve it")
        state.requests[number] = replace(request, state="approved", decided_by=entry.user)
    else:
        state.requests[number] = replace(request, state="denied", decided_by=entry.user, why=said.why)


_NEW: dict[str, Callable[[State, Entry, Any], None]] = {
    "request": _check_new_request,
    "charge": _check_new_charge,
    "brand": _check_new_brand,
    "released": _check_new_release,
}
_TAKEN: dict[str, Callable[[State, Entry, Any], None]] = {
    "opened": _opened,
    "population": _population,
    "limit": _limit,
    "policy": _policy,
    "closed": _closed,
    "table": _table,
    "request": _request,
    "approval": _answer,
    "denial": _answer,
    "charge": _charge,
    "brand": _brand,
    "released": _end,
    "failed": _end,
}
