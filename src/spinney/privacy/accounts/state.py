"""What follows from the entries of a ledger: populations, what they spent, requests, tables, fits.

A ledger is nothing but its entries, and this is what they add up to, by the rules (`rules`, `charging`). Every record
is frozen and replaced as a whole, so a copy of the state costs little: what an entry would do is tried on a copy first.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from spinney.errors import ParameterError
from spinney.privacy.accounts.chain import BEGINNING, Entry
from spinney.privacy.accounts.fields import counted
from spinney.privacy.room import Room
from spinney.shown import brief


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

    def forget(self) -> None:
        """Know nothing any more: the next reading begins with the first entry."""
        self.take(State())

    def take(self, other: State) -> None:
        """Know what another one knows."""
        self.__dict__ = dict(other.__dict__)

    @property
    def head(self) -> str:
        """The number and the hash of the last entry."""
        return f"{self.number}:{self.hash}"

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
