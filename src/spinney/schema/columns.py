"""Column types: what the holder states publicly about one column.

A column says which values are possible, never which values occur. Numbers and dates carry bounds, because the
box that the data happen to fill is itself private. Bounds are stated (`Real(0, 10)`), paid for out of epsilon
(`bounds="private"`), or read off the data under a name that says what that costs
(`bounds="from-data-not-private"`).

Dates and times are integers underneath (days, microseconds since 1970-01-01): `physical` converts, `logical` undoes it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, ClassVar, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from spinney.errors import SchemaError

BoundsSource = Literal["stated", "private", "from-data-not-private"]
BOUNDS_SOURCES = ("stated", "private", "from-data-not-private")

MAX_BITS = 32
# Physical integers stay so far inside int64 that neither `value - low` nor a range rounded up to whole cells overflows.
_INTEGER_LIMIT = 2**61
_EPOCH_DAY = date(1970, 1, 1)
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Column:
    """What all column types share. `bits` fixes the resolution of the column; by default the synthesizer chooses."""

    type_name: ClassVar[str]

    nullable: bool = field(default=False, kw_only=True)
    bits: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.bits is not None and not (type(self.bits) is int and 0 <= self.bits <= MAX_BITS):
            raise SchemaError(f"{type(self).__name__}: bits={self.bits!r} is not a whole number in 0..{MAX_BITS}")
        if not isinstance(self.nullable, bool):
            raise SchemaError(f"{type(self).__name__}: nullable={self.nullable!r} is not true or false")

    @property
    def is_text(self) -> bool:
        """Whether values are texts; everything else is a number underneath."""
        return False

    def to_dict(self) -> dict[str, Any]:
        """The column as plain data for TOML and JSON; what is at its default is left out."""
        described: dict[str, Any] = {"type": self.type_name}
        if self.nullable:
            described["nullable"] = True
        if self.bits is not None:
            described["bits"] = self.bits
        return described


@dataclass(frozen=True, slots=True)
class Bounded(Column, ABC):
    """A column with a low and a high end, both included."""

    low: Any = None
    high: Any = None
    bounds: BoundsSource = field(default="stated", kw_only=True)

    def __post_init__(self) -> None:
        Column.__post_init__(self)
        kind = type(self).__name__
        if self.bounds not in BOUNDS_SOURCES:
            raise SchemaError(f"{kind}: bounds={self.bounds!r} is not one of {', '.join(map(repr, BOUNDS_SOURCES))}")
        if self.bounds == "private":
            if self.low is not None or self.high is not None:
                raise SchemaError(f'{kind}: give either low and high or bounds="private", not both')
            return
        if self.low is None or self.high is None:
            if self.bounds == "from-data-not-private" and self.low is None and self.high is None:
                return
            missing = "low" if self.low is None else "high"
            raise SchemaError(
                f"{kind}: {missing} is missing; state the bounds from what is publicly known about the column, "
                'or pay for them with bounds="private"'
            )
        object.__setattr__(self, "low", self._parse(self.low, "low"))
        object.__setattr__(self, "high", self._parse(self.high, "high"))
        if self.low > self.high or (isinstance(self, Real) and self.low == self.high):
            raise SchemaError(f"{kind}: low={self.low} is not below high={self.high}; swap or widen the bounds")

    @abstractmethod
    def _parse(self, value: Any, name: str) -> Any:
        """A bound as the column keeps it, or a SchemaError that names it."""

    @abstractmethod
    def physical(self, value: Any) -> float | int:
        """The number that stands for a logical value: a float for reals, an integer for the rest."""

    @abstractmethod
    def logical(self, number: Any) -> Any:
        """The logical value that a physical number stands for."""

    @property
    def has_bounds(self) -> bool:
        return self.low is not None

    def with_bounds(self, low: Any, high: Any) -> Self:
        """The same column with bounds filled in; remembers where they came from."""
        if self.bounds == "private":
            # A paid-for bound is released, hence public from here on.
            return replace(self, low=low, high=high, bounds="stated")
        return replace(self, low=low, high=high)

    def to_dict(self) -> dict[str, Any]:
        described = Column.to_dict(self)
        if self.has_bounds:
            described |= {"low": self.low, "high": self.high}
        if self.bounds != "stated":
            described["bounds"] = self.bounds
        return described


@dataclass(frozen=True, slots=True)
class Real(Bounded):
    """A real number in [low, high]. Values outside are moved to the nearer bound.

    >>> Real(-9, 3)
    Real(low=-9.0, high=3.0)
    """

    type_name: ClassVar[str] = "real"

    def _parse(self, value: Any, name: str) -> float:
        return float(_parse_number(value, name, float, "Real"))

    def physical(self, value: Any) -> float:
        return float(value)

    def logical(self, number: Any) -> float:
        return float(number)

    def __repr__(self) -> str:
        return _show(self)


@dataclass(frozen=True, slots=True)
class Integer(Bounded):
    """A whole number in low..high, both included."""

    type_name: ClassVar[str] = "integer"

    def _parse(self, value: Any, name: str) -> int:
        number = int(_parse_number(value, name, int, "Integer"))
        if abs(number) > _INTEGER_LIMIT:
            raise SchemaError(f"Integer: {name}={number} is beyond ±2^61; use Real for numbers of this size")
        return number

    def physical(self, value: Any) -> int:
        return int(value)

    def logical(self, number: Any) -> int:
        return int(number)

    def __repr__(self) -> str:
        return _show(self)


@dataclass(frozen=True, slots=True)
class Date(Bounded):
    """A calendar day between two days, both included: `Date("2020-01-01", "2020-12-31")`."""

    type_name: ClassVar[str] = "date"

    def _parse(self, value: Any, name: str) -> date:
        if isinstance(value, str):
            try:
                value = date.fromisoformat(value)
            except ValueError:
                raise SchemaError(f"Date: {name}={value!r} is not a day like 2020-01-31") from None
        if isinstance(value, datetime) or not isinstance(value, date):
            raise SchemaError(f"Date: {name}={value!r} is not a day like 2020-01-31")
        return value

    def physical(self, value: Any) -> int:
        return int((value - _EPOCH_DAY).days)

    def logical(self, number: Any) -> date:
        return _EPOCH_DAY + timedelta(days=int(number))

    def __repr__(self) -> str:
        return _show(self)


@dataclass(frozen=True, slots=True)
class Datetime(Bounded):
    """A moment between two moments, both included, to the microsecond.

    With `timezone` the table's column must be zone-aware and comes back in that zone; bounds without an offset are read
    in it. Without `timezone` both the column and the bounds are local times of no stated zone.
    """

    type_name: ClassVar[str] = "datetime"

    timezone: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.timezone is not None:
            try:
                ZoneInfo(self.timezone)
            except (ZoneInfoNotFoundError, ValueError, OSError, TypeError):
                raise SchemaError(f"Datetime: timezone={self.timezone!r} is not a known zone like 'UTC'") from None
        Bounded.__post_init__(self)

    def _parse(self, value: Any, name: str) -> datetime:
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                raise SchemaError(f"Datetime: {name}={value!r} is not a moment like 2020-01-31T12:00:00") from None
        if not isinstance(value, datetime):
            raise SchemaError(f"Datetime: {name}={value!r} is not a moment like 2020-01-31T12:00:00")
        if self.timezone is None and value.tzinfo is not None:
            raise SchemaError(f"Datetime: {name}={value} has an offset; name the column's zone with timezone=...")
        if self.timezone is not None and value.tzinfo is None:
            value = value.replace(tzinfo=ZoneInfo(self.timezone))
        moment: datetime = value
        return moment

    def physical(self, value: Any) -> int:
        if value.tzinfo is not None:
            value = value.astimezone(UTC).replace(tzinfo=None)
        return int((value - _EPOCH) // _MICROSECOND)

    def logical(self, number: Any) -> datetime:
        moment = _EPOCH + int(number) * _MICROSECOND
        if self.timezone is None:
            return moment
        return moment.replace(tzinfo=UTC).astimezone(ZoneInfo(self.timezone))

    def to_dict(self) -> dict[str, Any]:
        described = Bounded.to_dict(self)
        if self.timezone is not None:
            described["timezone"] = self.timezone
        return described

    def __repr__(self) -> str:
        return _show(self)


@dataclass(frozen=True, slots=True)
class Boolean(Column):
    """True or false."""

    type_name: ClassVar[str] = "boolean"

    def __repr__(self) -> str:
        return _show(self)


@dataclass(frozen=True, slots=True)
class Category(Column):
    """One of a public list of values, all text or all whole numbers. The order of the list is kept by the tree.

    >>> Category(["low", "middle", "high"])
    Category(values=('low', 'middle', 'high'))
    """

    type_name: ClassVar[str] = "category"

    values: tuple[str, ...] | tuple[int, ...] = ()

    def __post_init__(self) -> None:
        Column.__post_init__(self)
        if isinstance(self.values, str) or not hasattr(self.values, "__iter__"):
            raise SchemaError("Category: values must be a list such as ['red', 'green']")
        values = tuple(self.values)
        if not values:
            raise SchemaError("Category: values is empty; list every value that the column may take")
        if not (all(type(v) is str for v in values) or all(type(v) is int for v in values)):
            raise SchemaError("Category: values must be all text or all whole numbers")
        if any(type(v) is int and abs(v) > _INTEGER_LIMIT for v in values):
            raise SchemaError("Category: values holds a number beyond ±2^61; write such numbers as text")
        if len(set(values)) != len(values):
            raise SchemaError("Category: values repeats a value; list each once")
        object.__setattr__(self, "values", values)

    @property
    def is_text(self) -> bool:
        return isinstance(self.values[0], str)

    def to_dict(self) -> dict[str, Any]:
        return Column.to_dict(self) | {"values": list(self.values)}

    def __repr__(self) -> str:
        return _show(self)


COLUMN_TYPES: dict[str, type[Column]] = {
    kind.type_name: kind for kind in (Real, Integer, Date, Datetime, Boolean, Category)
}


def _parse_number(value: Any, name: str, kind: type, owner: str) -> Any:
    if isinstance(value, bool):
        raise SchemaError(f"{owner}: {name}={value!r} is not a number")
    try:
        number = kind(value)
    except (TypeError, ValueError, OverflowError):
        raise SchemaError(f"{owner}: {name}={value!r} is not a number") from None
    if not math.isfinite(number):
        raise SchemaError(f"{owner}: {name}={value!r} is not finite; state a generous finite bound instead")
    if kind is int and number != value:
        raise SchemaError(f"{owner}: {name}={value!r} is not a whole number")
    return number


def _show(column: Column) -> str:
    """A repr that reads like the call that made the column."""
    shown = []
    for name in column.__dataclass_fields__:
        value, default = getattr(column, name), column.__dataclass_fields__[name].default
        if name == "values" and len(value) > 8:
            value = f"{len(value)} values"
            shown.append(f"values=<{value}>")
        elif value != default:
            shown.append(f"{name}={value!r}" if not isinstance(value, date) else f"{name}={str(value)!r}")
    shown.sort(key=lambda part: not part.startswith(("low", "high", "values")))
    return f"{type(column).__name__}({', '.join(shown)})"
