"""The rules of a ledger: what follows from its entries, and which entry may come next.

A ledger is nothing but its entries. Populations, what they spent, requests and tables follow from reading the entries
from the first to the last, and an entry that breaks a rule is refused before it is written, whoever writes it; one that
is on record all the same was not written by Spinney. A server that others can reach keeps to the same rules by itself
(`postgres.sql`): tests compare the two.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction

from spinney.errors import BudgetError, FileError, ParameterError, SpinneyError
from spinney.privacy.accounts.chain import BEGINNING, FORMAT_VERSION, Entry, Row, chained
from spinney.privacy.accounts.fields import MOST_ENTRIES, Charged, Fields
from spinney.privacy.events import decimal
from spinney.privacy.room import Room
from spinney.shown import brief

# The least limit there is, for accounts that went elsewhere, and how the reason for it begins.
CLOSED = Fraction(1, 2**30)
MOVED = "moved to "


@dataclass(slots=True)
class Population:
    """Whose budget it is: the people that limits protect, in one unit."""

    name: str
    room: Room
    approval: bool  # whether a charge needs an approved request
    moved_to: str | None = None  # the ledger that took it over, where it is closed here


@dataclass(slots=True)
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


@dataclass(slots=True)
class Fit:
    """The charges that belong to one release, and what came of them."""

    key: str
    population: str
    user: str
    request: int | None
    charges: list[Entry] = field(default_factory=list)
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    release: str | None = None
    error: str | None = None


@dataclass(slots=True)
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
        self.entries: list[Entry] = []
        self.populations: dict[str, Population] = {}
        self.tables: dict[str, Table] = {}
        self.schemas: dict[str, str] = {}  # digests, and the population that was first charged for one
        self.requests: dict[int, Request] = {}
        self.fits: dict[str, Fit] = {}
        self.keys: dict[str, int] = {}  # of charges, by what tells one from a repetition of it
        self.imports: set[str] = set()  # ledgers of which a population was taken over

    def forget(self) -> None:
        """Know nothing any more: the next reading begins with the first entry."""
        self.take(State())

    def take(self, other: State) -> None:
        """Know what another one knows."""
        self.__dict__ = dict(other.__dict__)

    def read(self, rows: list[Row], where: str) -> None:
        """Take in what a database has after the last entry that is known; FileError where it cannot be."""
        for entry in chained(rows, self.number, self.hash, where):
            try:
                self.apply(entry)
            except SpinneyError as err:
                raise FileError(
                    f"{where} is a Spinney ledger with inconsistent contents: entry {entry.number} breaks its rules: "
                    f"{err}"
                ) from None

    def apply(self, entry: Entry) -> None:
        """Take in the next entry, or raise and stay as before. Where it stands in the chain is not looked at."""
        if (entry.kind == "opened") != (entry.number == 1):
            raise ParameterError("a ledger begins with one entry that opens it")
        if entry.number > MOST_ENTRIES:
            raise BudgetError(f"a ledger has at most {MOST_ENTRIES:,} entries; begin another")
        getattr(self, f"_{entry.kind}")(entry, Fields(entry.fields))
        self.number, self.hash = entry.number, entry.hash
        self.entries.append(entry)

    def population(self, name: str) -> Population:
        """A population by name."""
        if name not in self.populations:
            known = ", ".join(map(repr, self.populations)) or "none"
            raise ParameterError(f"population={brief(name)} is not one of this ledger, which has {known}")
        return self.populations[name]

    # ------------------------------------------------------------------------------------------- what keepers write

    def _opened(self, _entry: Entry, fields: Fields) -> None:
        version = fields.whole("format_version")
        if version != FORMAT_VERSION:
            raise ParameterError(f"format version {version}, and this Spinney reads {FORMAT_VERSION}; upgrade it")
        self.ledger = fields.key("ledger")

    def _population(self, _entry: Entry, fields: Fields) -> None:
        name = fields.name("population")
        if name in self.populations:
            raise ParameterError(f"population={brief(name)} exists already; choose another name")
        imported = None if fields.is_missing("imported") else fields.key("imported")
        if imported is not None and imported in self.imports | {self.ledger}:
            raise ParameterError("this ledger was imported already; a copy of it would have the rest once more")
        population = Population(name, Room(fields.unit(), *fields.limits(), is_kept=True), fields.flag("approval"))
        self.populations[name] = population
        if imported is not None:
            self.imports.add(imported)

    def _limit(self, _entry: Entry, fields: Fields) -> None:
        population = self.population(fields.name("population"))
        limit, delta = fields.limits()
        why = fields.text("why")
        population.moved_to = why.removeprefix(MOVED) if limit == CLOSED and why.startswith(MOVED) else None
        population.room = replace(population.room, limit=limit, delta_limit=delta)

    def _policy(self, _entry: Entry, fields: Fields) -> None:
        population = self.population(fields.name("population"))
        approval = fields.flag("approval")
        fields.text("why")
        population.approval = approval

    def _table(self, _entry: Entry, fields: Fields) -> None:
        population = self.population(fields.name("population"))
        table, schema = fields.name("table"), fields.optional_digest("schema")
        self._check_table(table, population.name)
        self.tables[table] = Table(table, population.name, schema, is_bound=True)
        if schema is not None:
            self.schemas.setdefault(schema, population.name)

    def _check_table(self, table: str, population: str) -> None:
        known = self.tables.get(table)
        if known is not None and known.population != population:
            raise ParameterError(
                f"table={brief(table)} belongs to the population {brief(known.population)} and not to "
                f"{brief(population)}; the same people would have two budgets"
            )

    # ------------------------------------------------------------------------------------------------------ requests

    def _request(self, entry: Entry, fields: Fields) -> None:
        population = self.population(fields.name("population"))
        table = fields.optional_name("table")
        if table is not None:
            self._check_table(table, population.name)
        epsilon, delta = fields.epsilon(), fields.delta()
        purpose = fields.text("purpose")
        self.requests[entry.number] = Request(
            entry.number, entry.time, entry.user, population.name, table, epsilon, delta, purpose
        )

    def _pending(self, entry: Entry, fields: Fields) -> Request:
        number = fields.whole("request")
        request = self.requests.get(number)
        if request is None:
            raise ParameterError(f"request={number} is not a request of this ledger")
        if request.state != "pending":
            raise ParameterError(f"request={number} is {request.state} already; ask anew")
        if entry.kind == "approval" and request.user == entry.user:
            raise ParameterError(f"request={number} is by {brief(entry.user)}, and somebody else has to approve it")
        return request

    def _approval(self, entry: Entry, fields: Fields) -> None:
        request = self._pending(entry, fields)
        request.state, request.decided_by = "approved", entry.user

    def _denial(self, entry: Entry, fields: Fields) -> None:
        request, why = self._pending(entry, fields), fields.text("why")
        request.state, request.decided_by, request.why = "denied", entry.user, why

    def check_request(self, number: int | None, fit: str, user: str, charge: Charged) -> Request | None:
        """The request that pays for a charge, or None where none is needed; raise where it may not."""
        population = self.population(charge.population)
        if number is None:
            if population.approval:
                raise BudgetError(
                    f"charges to the population {brief(population.name)} need an approved request, and none was named; "
                    "ask for one (spinney ledger request), and name it once it is approved (fit --request NUMBER)"
                )
            return None
        request = self.requests.get(number)
        if request is None or request.population != population.name:
            raise BudgetError(f"request={number} is not one of the population {brief(population.name)}")
        if request.state in ("pending", "denied"):
            raise BudgetError(f"request={number} is {request.state}, and not approved")
        if request.fit not in (None, fit):
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
        before = self.fits.get(fit)
        epsilon = charge.epsilon + (before.epsilon if before else 0)
        delta = charge.delta + (before.delta if before else 0)
        if epsilon > request.epsilon or delta > request.delta:
            raise BudgetError(
                f"request={number} is for epsilon={decimal(request.epsilon)}, delta={decimal(request.delta)}, and "
                f"epsilon={decimal(epsilon)}, delta={decimal(delta)} is asked of it"
            )
        return request

    # ------------------------------------------------------------------------------------------------------- charges

    def check_charge(self, charge: Charged, *, fit: str, user: str, request: int | None) -> Request | None:
        """Raise unless a charge may be made now; the request that pays for it, where one does."""
        population = self.population(charge.population)
        room = population.room
        self._check_place(charge)
        try:
            room.check(charge.epsilon, charge.delta, charge.unit)
        except BudgetError:
            if population.moved_to is None:
                raise
            raise BudgetError(
                f"the population {brief(population.name)} is closed here: it was moved to {population.moved_to}; "
                "charge it there"
            ) from None
        room.check_digits(charge.epsilon, charge.delta)
        begun = self.fits.get(fit)
        if begun is not None:
            if (begun.population, begun.user, begun.request) != (population.name, user, request):
                raise ParameterError("the charges of one fit have one population, one user and one request")
            if begun.release is not None or begun.error is not None:
                raise ParameterError("the fit of this charge has ended already")
        return self.check_request(request, fit, user, charge)

    def _check_place(self, charge: Charged) -> None:
        """The table and the schema of a charge belong to its population."""
        bound = None
        if charge.table is not None:
            self._check_table(charge.table, charge.population)
            bound = self.tables.get(charge.table)
            if bound is not None and bound.schema is not None and charge.schema not in (None, bound.schema):
                raise ParameterError(
                    f"table={brief(charge.table)} is bound to another schema; if this one is right, bind the table "
                    "again (spinney ledger bind)"
                )
        other = self.schemas.get(charge.schema or "")
        if other not in (None, charge.population) and not (bound is not None and bound.is_bound):
            raise ParameterError(
                f"a table of the same schema was charged to the population {brief(other)}; if it is about other "
                f"people, name it and bind it first (spinney ledger bind LEDGER TABLE --population {charge.population})"
            )

    def _charge(self, entry: Entry, fields: Fields) -> None:
        charge = fields.charged()
        fit, key = fields.key("fit"), fields.key("key")
        imported = fields.flag("imported")
        request: int | None = None if fields.is_missing("request") else fields.whole("request")
        if key in self.keys:
            raise ParameterError(f"this charge is on record already, as entry {self.keys[key]}")
        paid_by = None if imported else self.check_charge(charge, fit=fit, user=entry.user, request=request)
        population = self.population(charge.population)
        room = population.room
        population.room = replace(room, spent=room.spent + charge.epsilon, spent_delta=room.spent_delta + charge.delta)
        if charge.table is not None:
            self.tables.setdefault(charge.table, Table(charge.table, population.name, None, is_bound=False))
        if charge.schema is not None:
            self.schemas.setdefault(charge.schema, population.name)
        if paid_by is not None:
            paid_by.state, paid_by.fit = "used", fit
        begun = self.fits.setdefault(fit, Fit(fit, population.name, entry.user, request))
        begun.charges.append(entry)
        begun.epsilon, begun.delta = begun.epsilon + charge.epsilon, begun.delta + charge.delta
        self.keys[key] = entry.number

    def _brand(self, entry: Entry, fields: Fields) -> None:
        population = self.population(fields.name("population"))
        fit, key = fields.key("fit"), fields.key("key")
        fields.long_text("events")
        if key in self.keys:
            raise ParameterError(f"this brand is on record already, as entry {self.keys[key]}")
        begun = self.fits.get(fit)
        if begun is not None and begun.population != population.name:
            raise ParameterError("the entries of one fit have one population")
        self.keys[key] = entry.number

    def _ended(self, entry: Entry, fields: Fields) -> Fit:
        begun = self.fits.get(fields.key("fit"))
        if begun is None:
            raise ParameterError("nothing was charged for this fit")
        if begun.user != entry.user:
            raise ParameterError(f"the fit was charged by {brief(begun.user)}, who alone says what came of it")
        if begun.release is not None or begun.error is not None:
            raise ParameterError("what came of this fit is on record already")
        return begun

    def _released(self, entry: Entry, fields: Fields) -> None:
        begun, digest = self._ended(entry, fields), fields.digest("release")
        begun.release = digest

    def _failed(self, entry: Entry, fields: Fields) -> None:
        begun, error = self._ended(entry, fields), fields.name("error")
        begun.error = error
