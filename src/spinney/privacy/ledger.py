"""The ledger: what was charged for what, before noise meets a count.

    budget limits    whether a charge fits: the one place where amounts meet limits
    locks            threads look at accounts and change them one at a time
    ledger           charges, events that void a guarantee, and what came of them

A mechanism charges first and releases afterwards, so a crash can waste budget but never under-count it. Epsilon
and delta compose by addition, in exact fractions (composition.proof.md, filters).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from spinney.documents import Document, Documented, Facts, Table
from spinney.errors import BudgetError, ParameterError
from spinney.privacy import mechanisms
from spinney.privacy.budget import Unit, parse_delta, parse_epsilon
from spinney.privacy.mechanisms import (
    Brand,
    Charge,
    ComposedRelease,
    Event,
    decimal,
    total_delta,
    total_epsilon,
)
from spinney.text import brief, many

if TYPE_CHECKING:
    from spinney.privacy.accounts.rules import ChargeOnRecord
    from spinney.privacy.accounts.shared import SharedLedger


def _amount(epsilon: Fraction | None, delta: Fraction | None) -> str | None:
    """An amount as notebooks show it."""
    if epsilon is None:
        return None
    return f"epsilon {decimal(epsilon)}" + (f", delta {decimal(delta)}" if delta else "")


# -------------------------------------------------------------------------------------------------------- budget limits
# Whether a charge fits: the one place where amounts meet limits.
#
# What is enforced is basic composition, in exact fractions: the epsilons of all charges add up, and so do their
# deltas. That holds also where each charge was chosen in view of what the earlier ones released
# (composition.proof.md, filters).


@dataclass(frozen=True, slots=True)
class Room:
    """What may be spent and what was: in one unit, with limits or None where spending is only counted."""

    unit: Unit
    limit: Fraction | None
    delta_limit: Fraction | None
    spent: Fraction = Fraction(0)
    spent_delta: Fraction = Fraction(0)
    is_kept: bool = False  # in a file or on a server, where limits can be raised on record
    is_closed: bool = False  # moved to another ledger, so that nothing is left here

    @property
    def is_overdrawn(self) -> bool:
        """Whether more is on record than the limits allow."""
        pairs = (self.limit, self.spent), (self.delta_limit, self.spent_delta)
        return not self.is_closed and any(limit is not None and spent > limit for limit, spent in pairs)

    @property
    def remaining(self) -> Fraction | None:
        """The epsilon that is left, or None without a limit."""
        return self._left(self.limit, self.spent)

    @property
    def remaining_delta(self) -> Fraction | None:
        """The delta that is left, or None without a limit."""
        return self._left(self.delta_limit, self.spent_delta)

    def _left(self, limit: Fraction | None, spent: Fraction) -> Fraction | None:
        if self.is_closed:
            return Fraction(0)
        return None if limit is None else max(limit - spent, Fraction(0))

    def check(self, epsilon: Fraction, delta: Fraction, unit: Unit) -> None:
        """Raise unless this much more may be spent."""
        if unit is not self.unit:
            raise ParameterError(
                f"unit={unit.value!r} does not match the ledger's {self.unit.value!r}; budgets in different units do "
                f"not add up{_remedy(unit, self.unit)}"
            )
        if self.limit is not None and self.spent + epsilon > self.limit:
            raise BudgetError(
                f"epsilon={decimal(epsilon)} does not fit: {decimal(self.spent)} of {decimal(self.limit)} is spent; "
                f"{self._instead('--limit')}"
            )
        if self.delta_limit is not None and self.spent_delta + delta > self.delta_limit:
            if not self.delta_limit:
                remedy = "open a ledger with a delta, such as Ledger(limit=2, delta='1e-6')"
                if self.is_kept:
                    remedy = "have a delta allowed: spinney ledger raise LEDGER --delta ... --why ..."
                raise BudgetError(
                    f"delta={decimal(delta)} does not fit: the ledger is pure, with a delta of 0; fit with delta=0, or "
                    f"{remedy}"
                )
            raise BudgetError(
                f"delta={decimal(delta)} does not fit: {decimal(self.spent_delta)} of {decimal(self.delta_limit)} "
                f"is spent; {self._instead('--delta')}"
            )

    def _instead(self, option: str) -> str:
        """What to do where too little is left."""
        if not self.is_kept:
            return "ask for less"
        return f"ask for less, or have the limit raised: spinney ledger raise LEDGER {option} ... --why ..."


def _remedy(asked: Unit, kept: Unit) -> str:
    """What to do where one side protects rows and the other persons; nothing more is to be said of other units."""
    if asked.is_person == kept.is_person:
        return ""
    sides = ("persons with all their rows", "single rows")
    ours, others = sides if asked.is_person else sides[::-1]
    return (
        f": this charge protects {ours} and the ledger {others}; keep a ledger of its own for it, such as "
        f"sp.Ledger(limit=2, delta='1e-6', unit={asked.value!r}) or `spinney ledger create FILE --limit 2 --delta 1e-6 "
        f"--unit {asked.value}`"
    )


# ---------------------------------------------------------------------------------------------------------------- locks
# Threads look at accounts and change them one at a time.
#
# One lock serves all ledgers, since charges are rare and locks cannot be pickled. Whoever needs the lock of a
# database as well takes this one first, always: two orders would be a deadlock.
#
# A fork waits until no thread has its turn. A child would wait for a thread that it does not have, and for
# locks of a database that SQLite, in its memory, believes to be held by this very process.


_TURNS = [RLock()]


def turn() -> RLock:
    """The lock that threads of this process hold while they look at accounts and change them."""
    return _TURNS[0]


def _renew_turn() -> None:
    _TURNS[0] = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: turn().acquire(), after_in_parent=lambda: turn().release(), after_in_child=_renew_turn
    )


# --------------------------------------------------------------------------------------------------------------- ledger
# A running account of charges, of which there is one: a copy can be read and not charged.
#
# Epsilon and delta compose by addition, in exact fractions; an account is pure unless it was opened with a
# delta. What is composed more closely than by addition (`composition.py`) is one charge that lists its parts,
# and is checked before it is taken. Brands carry no epsilon: they stay on the ledger, and with it on every card
# made from it.
#
# A copy of a ledger in memory, whether by `copy`, by pickling or by a forked process, is a statement that can
# be read and not charged: it would carry the whole limit once more. An account that several processes charge,
# or several people, is a database (`accounts/`).


class Ledger(Documented):
    """A running account of privacy loss, with an optional limit that no charge can pass.

    `limit` holds epsilon and `delta` holds delta; with a limit and no delta the account is pure, and a charge that
    carries a delta is refused. An account without a limit only counts, both.

    With a `parent` every event is recorded there first: one release keeps its own books while the limit of a whole
    series of releases holds. `Ledger.create` and `Ledger.open` keep the account in a database, a file or on a server,
    which several processes may charge; a copy of any other ledger, also the one in a forked process, can be read but
    not charged.

    >>> from spinney.privacy.mechanisms import DiscreteLaplaceCounts
    >>> ledger = Ledger(limit="1")
    >>> ledger.charge(DiscreteLaplaceCounts(Fraction(1, 4), sensitivity=2, note="counts"))
    >>> ledger.spent, ledger.remaining
    (Fraction(1, 4), Fraction(3, 4))

    Args:
        limit: the epsilon that all charges together may cost, exact: a number or a string such as "0.5" or "1/3"; by
            default there is none.
        delta: the delta that they may cost; 0 for an account that is pure.
        unit: the unit of privacy of all charges: "replace-one" or "add-remove" (one row), "replace-one-person" or
            "add-remove-person" (one person with all their rows).
        parent: a ledger in which every event is recorded first.
    """

    def __init__(
        self,
        limit: Any = None,
        *,
        delta: Any = 0,
        unit: Unit | str = Unit.REPLACE_ONE,
        parent: Ledger | None = None,
    ) -> None:
        self._unit = Unit.parse(unit)
        self._limit, self._delta_limit = parse_limits(limit, delta)
        self._parent = parent
        self._events: list[Event] = []
        self._process: int | None = os.getpid()  # the one that may charge; None in a copy, which nobody may

    @staticmethod
    def create(
        path: str | Path,
        *,
        limit: Any,
        delta: Any = 0,
        unit: Unit | str = Unit.REPLACE_ONE,
        population: str = "default",
        approval: bool = False,
    ) -> SharedLedger:
        """A new account in a database: a file, which must not exist yet, or a PostgreSQL server without a ledger.

        Args:
            path: the file, or the address of a PostgreSQL database: "postgresql://host/name".
            limit: the epsilon that all charges together may cost.
            delta: the delta that they may cost; 0 for an account that is pure.
            unit: the unit of privacy of all charges: "replace-one" or "add-remove" (one row), "replace-one-person" or
                "add-remove-person" (one person with all their rows).
            population: whose budget it is; a ledger may hold several populations.
            approval: whether a charge needs a request that somebody else has approved.

        Raises:
            FileError: there is one already, or it cannot be written.
        """
        from spinney.privacy.accounts.shared import SharedLedger

        return SharedLedger.create_at(
            path, limit=limit, delta=delta, unit=unit, population=population, approval=approval
        )

    @staticmethod
    def open(
        path: str | Path,
        *,
        population: str | None = None,
        table: str | None = None,
        purpose: str | None = None,
        request: int | None = None,
    ) -> SharedLedger:
        """The account in a database. Charges are on disk before noise meets a count; processes and people share it.

        Args:
            path: a file that `create` made, or the address of a PostgreSQL database: "postgresql://host/name".
            population: whose budget is charged; by default SPINNEY_POPULATION, or the only one there is.
            table: the name of the table that is going to be released; it is bound to the population from then on.
            purpose: what the releases are for, in words that stay on record.
            request: the number of an approved request that pays for the next release.

        Raises:
            FileError: there is none, or it is damaged, of a newer version, out of reach or was changed by hand.
        """
        from spinney.privacy.accounts.shared import SharedLedger

        return SharedLedger.open_at(path, population=population, table=table, purpose=purpose, request=request)

    def __repr__(self) -> str:
        of = "" if self.limit is None else f" of {self.limit}"
        if self.spent_delta or self.delta_limit:
            of += f", delta {decimal(self.spent_delta)}"
            of += f" of {decimal(self.delta_limit)}" if self.delta_limit is not None else ""
        state = ", overdrawn" if self.is_overdrawn else ""
        state += "" if self.is_open else ", a copy that cannot be charged"
        return f"Ledger(unit={self.unit.value!r}, spent {self.spent}{of}, {len(self.events)} events{state})"

    def document(self) -> Document:
        """The account as notebooks show it: what is spent of which limit, and the events."""
        facts = [
            ("unit", self.unit.value),
            ("spent", _amount(self.spent, self.spent_delta)),
            ("limit", _amount(self.limit, self.delta_limit) or "none"),
            ("remaining", _amount(self.remaining, self.remaining_delta)),
            ("state", "overdrawn" if self.is_overdrawn else None),
        ]
        rows = [["no finite one" if isinstance(one, Brand) else decimal(one.epsilon), one.note] for one in self.events]
        return Document("Ledger", [Facts(facts), Table(many(len(rows), "event"), ("epsilon", "what"), rows)])

    def statement(self) -> Ledger:
        """The account as it is now, in memory: it can be read, and neither charged nor traced to where it is kept."""
        copy = Ledger(self.limit, delta=self.delta_limit or 0, unit=self.unit)
        copy._events, copy._process = list(self.events), None
        return copy

    def __getstate__(self) -> dict[str, Any]:
        """What a copy or a pickle holds: a statement of the account, without the right to charge it or its parent."""
        return self.__dict__ | {"_process": None, "_parent": None, "_events": list(self._events)}

    @property
    def unit(self) -> Unit:
        """The unit of privacy in which all charges are meant."""
        return self._room().unit

    @property
    def limit(self) -> Fraction | None:
        """The epsilon that all charges together may cost, or None where there is no limit."""
        return self._room().limit

    @property
    def delta_limit(self) -> Fraction | None:
        """The delta that all charges together may cost, or None where there is no limit."""
        return self._room().delta_limit

    @property
    def address(self) -> str | None:
        """Where the account is kept, as it may be shown; None in memory."""
        return None

    @property
    def is_open(self) -> bool:
        """Whether this ledger can be charged here: it is no copy, and this process made it."""
        return self._process == os.getpid()

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(self._events)

    @property
    def spent(self) -> Fraction:
        """Total epsilon so far, by basic composition."""
        return self._room().spent

    @property
    def spent_delta(self) -> Fraction:
        """Total delta so far, by basic composition; 0 where everything was pure."""
        return self._room().spent_delta

    @property
    def remaining(self) -> Fraction | None:
        """What may still be spent, or None where no limit was set."""
        return self._room().remaining

    @property
    def remaining_delta(self) -> Fraction | None:
        """The delta that may still be spent, or None where no limit was set."""
        return self._room().remaining_delta

    @property
    def is_overdrawn(self) -> bool:
        """Whether more is on record than the limits allow: they were lowered, or an old file was changed by hand."""
        return self._room().is_overdrawn

    def require(self, epsilon: Fraction, *, unit: Unit, delta: Fraction = Fraction(0)) -> None:
        """Raise now, before any data is read, if `epsilon` and `delta` more could not be charged later.

        Args:
            epsilon: the epsilon that is going to be charged.
            unit: the unit of privacy in which it is meant.
            delta: the delta that is going to be charged.

        Raises:
            BudgetError: the limit leaves too little, or the ledger is a copy.
            ParameterError: the ledger has another unit.
        """
        epsilon, delta = exact_amounts(epsilon, delta)
        with turn():
            self._check_open()
            self._room().check(epsilon, delta, Unit.parse(unit))
            if self._parent is not None:
                self._parent.require(epsilon, unit=unit, delta=delta)

    def charge(self, *charges: Charge) -> None:
        """Record charges, all or none: where together they would exceed the limit, raise and record nothing.

        This is where budget is spent. A ledger in a database records them in one transaction of its own, which
        checks its limit there.

        Args:
            *charges: what is to be paid for, such as `DiscreteLaplaceCounts`.

        Raises:
            BudgetError: the charges do not fit, or the ledger is a copy.
        """
        self._check_charges(charges)
        with turn():
            self.require(total_epsilon(charges), unit=self.unit, delta=total_delta(charges))
            if self._parent is not None:
                self._parent.charge(*charges)
            self._record(*charges)

    def _check_charges(self, charges: tuple[Charge, ...]) -> None:
        for charge in charges:
            if not isinstance(charge, Charge):
                raise ParameterError(f"{brief(charge)} is not a charge such as DiscreteLaplaceCounts")
            if isinstance(charge, ComposedRelease):
                from spinney.privacy.composition import check_parts

                check_parts(charge, self.unit)

    def brand(self, event: Brand) -> None:
        """Record that the guarantee is void or conditional.

        Args:
            event: what was done, such as `NotPrivate`.
        """
        if not isinstance(event, Brand):
            raise ParameterError(f"{brief(event)} is not a brand such as NotPrivate")
        with turn():
            self._check_open()
            if self._parent is not None:
                self._parent.brand(event)
            self._record(event)

    def start(self, *, schema: str | None = None) -> Ledger:  # noqa: ARG002  # what a database keeps
        """The account for one release: its charges belong together, and so does what is recorded of them later.

        Args:
            schema: a digest of what is public about the table, which a database keeps with the charges.
        """
        return self

    def paid(self) -> tuple[ChargeOnRecord, ...]:
        """The charges since `start`, where they are on record one by one; in memory they are not."""
        return ()

    def record_release(self, digest: str) -> None:
        """Record what the charges since `start` paid for; an account in memory keeps charges only.

        Args:
            digest: SHA-256 of the release, as `spinney.release.file.digest` gives it.
        """

    def record_failure(self, error: str) -> None:
        """Record that nothing came of the charges since `start`, which stay; an account in memory keeps charges only.

        Args:
            error: the kind of error, without anything that it says.
        """

    def _check_open(self) -> None:
        if not self.is_open:
            what = "is a copy of another one" if self._process is None else "was made by another process"
            raise BudgetError(
                f"this ledger {what}, and can be read but not charged: each copy would carry the whole limit; keep "
                "the account in a file that all processes share: sp.Ledger.create(path, limit=...) makes one, and "
                "sp.Ledger.open(path) opens it"
            )

    def _room(self) -> Room:
        spent = total_epsilon(self._events), total_delta(self._events)
        return Room(self._unit, self._limit, self._delta_limit, *spent)

    def _record(self, *events: Event) -> None:
        self._events += events


def exact_amounts(epsilon: Any, delta: Any) -> tuple[Fraction, Fraction]:
    """Epsilon and delta that a question is about: exact, and none of them below 0."""
    epsilon, delta = mechanisms.fraction(epsilon, "epsilon"), mechanisms.fraction(delta, "delta")
    if epsilon < 0 or delta < 0:
        raise ParameterError(f"epsilon={brief(epsilon)} and delta={brief(delta)} must not be negative")
    return epsilon, delta


def parse_limits(limit: Any, delta: Any) -> tuple[Fraction | None, Fraction | None]:
    """Limits of epsilon and of delta as exact numbers; None for both where spending is only counted."""
    allowed = parse_delta(delta)
    if limit is not None:
        return parse_epsilon(limit, "limit"), allowed
    if allowed:
        raise ParameterError(
            f"delta={delta} needs a limit of epsilon; give a limit, or leave delta out to record charges without "
            "a limit"
        )
    return None, None
