"""The ledger: what was charged for what, before noise met a count.

Events are frozen data. A mechanism charges first and draws noise afterwards, so a crash can waste budget but
never under-count it. Epsilon and delta compose by addition, in exact fractions; an account is pure unless it was
opened with a delta. What is composed more closely than by addition (`composition`) is one charge that lists its parts,
and is checked before it is taken. Two kinds of event carry no epsilon because no finite one would be true: they brand
the ledger, and with it every card made from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from threading import RLock
from typing import Any

from spinney.errors import BudgetError, ParameterError
from spinney.privacy.budget import Unit, parse_delta, parse_epsilon
from spinney.privacy.parts import Part, part_from_dict, part_line, part_to_dict


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceCounts:
    """Counts released with discrete Laplace noise of ratio exp(-epsilon / sensitivity)."""

    epsilon: Fraction
    sensitivity: int
    note: str


@dataclass(frozen=True, slots=True)
class LeafMoments:
    """Counts and sums of offsets in [-1, 1], of leaves that share no row, with one vector of noise for each leaf.

    The noise is even over cubes, of ratio exp(-epsilon / sensitivity) for each unit of the largest coordinate.
    """

    epsilon: Fraction
    sensitivity: int
    note: str


@dataclass(frozen=True, slots=True)
class SplitDecisions:
    """All noisy decisions of one tree together. `rate` is 1/scale of the noise in each."""

    epsilon: Fraction
    rule: str
    rate: Fraction
    levels: int
    note: str


@dataclass(frozen=True, slots=True)
class DiscreteGaussianVector:
    """Whole numbers of a squared L2 sensitivity released with discrete Gaussian noise of a variance."""

    epsilon: Fraction
    delta: Fraction
    sensitivity_squared: Fraction
    variance: Fraction
    note: str


@dataclass(frozen=True, slots=True)
class Selection:
    """Choices out of public lists by the exponential mechanism, of `epsilon` in all.

    A choice with P(i) proportional to exp(rate * score), of scores that a row changes by at most D, costs 2 * rate * D.
    """

    epsilon: Fraction
    note: str


@dataclass(frozen=True, slots=True)
class ComposedRelease:
    """Several mechanisms paid for together: within (epsilon, delta) as a whole, by `composition.composed_delta`."""

    epsilon: Fraction
    delta: Fraction
    parts: tuple[Part, ...]
    note: str


@dataclass(frozen=True, slots=True)
class NotPrivate:
    """Something was taken from the data without noise. No guarantee survives this event."""

    note: str


@dataclass(frozen=True, slots=True)
class UnsafeEntropy:
    """Noise came from a seeded generator: anyone who knows the seed can subtract it."""

    note: str


Charge = DiscreteLaplaceCounts | LeafMoments | SplitDecisions | DiscreteGaussianVector | Selection | ComposedRelease
Brand = NotPrivate | UnsafeEntropy
Event = Charge | Brand
_EVENTS: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        DiscreteLaplaceCounts,
        LeafMoments,
        SplitDecisions,
        DiscreteGaussianVector,
        Selection,
        ComposedRelease,
        NotPrivate,
        UnsafeEntropy,
    )
}
_FRACTIONS = ("epsilon", "delta", "rate", "sensitivity_squared", "variance")

# Threads check and record one at a time. One lock for all ledgers, since charges are rare and locks cannot be pickled.
_TURN = RLock()


class Ledger:
    """A running account of privacy loss, with an optional limit that no charge can pass.

    `limit` holds epsilon and `delta` holds delta; with a limit and no delta the account is pure, and a charge that
    carries a delta is refused. An account without a limit only counts, both.

    With a `parent` every event is recorded there first: one release keeps its own books while the limit of a whole
    series of releases holds. `Ledger.create` and `Ledger.open` keep the account in a file.

    >>> ledger = Ledger(limit="1")
    >>> ledger.charge(DiscreteLaplaceCounts(Fraction(1, 4), sensitivity=2, note="counts"))
    >>> ledger.spent, ledger.remaining
    (Fraction(1, 4), Fraction(3, 4))
    """

    def __init__(
        self,
        limit: Any = None,
        *,
        delta: Any = 0,
        unit: Unit | str = Unit.REPLACE_ONE,
        parent: Ledger | None = None,
    ) -> None:
        self.unit = Unit.parse(unit)
        self.limit = None if limit is None else parse_epsilon(limit, "limit")
        allowed = parse_delta(delta)
        if limit is None and allowed:
            raise ParameterError(f"delta={delta} has no limit to go with; give one, or leave delta out to only count")
        self.delta_limit = None if limit is None else allowed
        self._parent = parent
        self._events: list[Event] = []

    @staticmethod
    def create(path: str | Path, *, limit: Any, delta: Any = 0, unit: Unit | str = Unit.REPLACE_ONE) -> Ledger:
        """A new account in a file, which must not exist yet."""
        from spinney.privacy.account import LedgerFile

        return LedgerFile.create_at(path, limit=limit, delta=delta, unit=unit)

    @staticmethod
    def open(path: str | Path) -> Ledger:
        """The account in a file. Charges are on disk before noise meets a count; processes may share it."""
        from spinney.privacy.account import LedgerFile

        return LedgerFile.open_at(path)

    def __repr__(self) -> str:
        of = "" if self.limit is None else f" of {self.limit}"
        if self.spent_delta or self.delta_limit:
            of += f", delta {decimal(self.spent_delta)}"
            of += f" of {decimal(self.delta_limit)}" if self.delta_limit is not None else ""
        return f"Ledger(unit={self.unit.value!r}, spent {self.spent}{of}, {len(self._events)} events)"

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(self._events)

    @property
    def spent(self) -> Fraction:
        """Total epsilon so far, by basic composition."""
        return total_epsilon(self._events)

    @property
    def spent_delta(self) -> Fraction:
        """Total delta so far, by basic composition; 0 where everything was pure."""
        return total_delta(self._events)

    @property
    def remaining(self) -> Fraction | None:
        """What may still be spent, or None where no limit was set."""
        return None if self.limit is None else self.limit - self.spent

    @property
    def remaining_delta(self) -> Fraction | None:
        """The delta that may still be spent, or None where no limit was set."""
        return None if self.delta_limit is None else self.delta_limit - self.spent_delta

    def require(self, epsilon: Fraction, *, unit: Unit, delta: Fraction = Fraction(0)) -> None:
        """Raise now, before any data is read, if `epsilon` and `delta` more could not be charged later."""
        if unit is not self.unit:
            raise ParameterError(
                f"unit={unit.value!r} does not match the ledger's {self.unit.value!r}; "
                "budgets in different units do not add up"
            )
        if self.limit is not None and self.spent + epsilon > self.limit:
            raise BudgetError(
                f"epsilon={epsilon} does not fit: {self.spent} of {self.limit} is spent; "
                "ask for less or open a ledger with a higher limit"
            )
        if self.delta_limit is not None and self.spent_delta + delta > self.delta_limit:
            less = "less" if self.delta_limit else "delta=0, which is pure,"
            raise BudgetError(
                f"delta={decimal(delta)} does not fit: {decimal(self.spent_delta)} of {decimal(self.delta_limit)} "
                f"is spent; ask for {less} or open a ledger with a higher delta"
            )
        if self._parent is not None:
            self._parent.require(epsilon, unit=unit, delta=delta)

    def charge(self, *charges: Charge) -> None:
        """Record charges, all or none: where together they would exceed the limit, raise and record nothing."""
        for charge in charges:
            if charge.epsilon < 0:
                raise BudgetError(f"epsilon={charge.epsilon} is negative; what was spent cannot be earned back")
            if delta_of(charge) < 0:
                raise BudgetError(f"delta={delta_of(charge)} is negative; what was spent cannot be earned back")
            if isinstance(charge, ComposedRelease):
                _check_parts(charge, self.unit)
        with _TURN:
            self.require(total_epsilon(charges), unit=self.unit, delta=total_delta(charges))
            if self._parent is not None:
                self._parent.charge(*charges)
            self._record(*charges)

    def brand(self, event: Brand) -> None:
        """Record that the guarantee is void or conditional."""
        if self._parent is not None:
            self._parent.brand(event)
        self._record(event)

    def _record(self, *events: Event) -> None:
        self._events += events


def total_epsilon(events: Iterable[Event]) -> Fraction:
    """The sum of all charges."""
    return sum((event.epsilon for event in events if isinstance(event, Charge)), Fraction(0))


def total_delta(events: Iterable[Event]) -> Fraction:
    """The sum of the deltas of all charges."""
    return sum((delta_of(event) for event in events), Fraction(0))


def delta_of(event: Event) -> Fraction:
    """An event's delta; 0 for what is pure."""
    return event.delta if isinstance(event, DiscreteGaussianVector | ComposedRelease) else Fraction(0)


def brands(events: Iterable[Event]) -> list[Brand]:
    """The events that void the guarantee or make it conditional."""
    return [event for event in events if isinstance(event, Brand)]


def decimal(value: Fraction) -> str:
    """A fraction as people write it: exactly where a short decimal exists, otherwise as a fraction and a hint."""
    text = f"{float(value):g}"
    return text if Fraction(text) == value else f"{value} (about {float(value):.4g})"


def event_line(event: Event) -> str:
    """An event as a line of an account: the amount, or a dash where no amount would be true, and what it was for."""
    amount = "-" if isinstance(event, Brand) else decimal(event.epsilon)
    if delta_of(event):
        amount = f"({amount}, {decimal(delta_of(event))})"
    return f"{amount:>10}  {event.note}"


def event_lines(event: Event) -> list[str]:
    """An event as lines of an account: `event_line`, and below it the parts of what was paid for together."""
    parts = event.parts if isinstance(event, ComposedRelease) else ()
    return [event_line(event), *(f"{'':>10}    {part_line(part)}" for part in parts)]


def event_to_dict(event: Event) -> dict[str, Any]:
    """An event as JSON-ready data; fractions become text."""
    described: dict[str, Any] = {"event": type(event).__name__}
    for field in fields(event):
        value = getattr(event, field.name)
        described[field.name] = str(value) if isinstance(value, Fraction) else value
    if isinstance(event, ComposedRelease):
        described["parts"] = [part_to_dict(part) for part in event.parts]
    return described


def event_from_dict(described: dict[str, Any]) -> Event:
    """Read what `event_to_dict` wrote."""
    kind = _EVENTS[described["event"]]
    values = {field.name: described[field.name] for field in fields(kind)}
    for name in _FRACTIONS:
        if name in values:
            values[name] = Fraction(values[name])
    if kind is ComposedRelease:
        values["parts"] = tuple(part_from_dict(part) for part in values["parts"])
    return kind(**values)


def _check_parts(charge: ComposedRelease, unit: Unit) -> None:
    """Refuse a composed charge whose parts cost more than it says, in the unit of the account."""
    from spinney.privacy.composition import check_claim, composed_delta

    check_claim(charge.epsilon, charge.delta)
    least = composed_delta(charge.parts, charge.epsilon, unit)
    if least > charge.delta:
        raise BudgetError(
            f"the parts of {charge.note!r} cost delta={float(least):.6g} at epsilon={charge.epsilon} in unit "
            f"{unit.value}, more than the {float(charge.delta):.6g} charged; take the parts that least_noise gives"
        )
