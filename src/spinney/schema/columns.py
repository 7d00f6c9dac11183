"""Column types: what the holder states publicly about one column.

A column says which values are possible, never which values occur. Numbers and dates carry bounds, because the
box that the data happen to fill is itself private. Bounds are stated (`Real(0, 10)`), paid for out of epsilon
(`bounds="private"`), or read off the data under a name that says what that costs
(`bounds="from-data-not-private"`).

Dates and times are integers underneath (days, microseconds since 1970-01-01): `physical` converts, `logical` undoes it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any, ClassVar, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from spinney.errors import SchemaError
from spinney.schema.base import MAX_BITS, Bounded, Column, parse_number, show
from spinney.shown import brief

__all__ = [
    "COLUMN_TYPES",
    "MAX_BITS",
    "Boolean",
    "Bounded",
    "Category",
    "Column",
    "Date",
    "Datetime",
    "Identifier",
    "Integer",
    "Number",
    "Real",
]

# Physical integers stay so far inside int64 that neither `value - low` nor a range rounded up to whole cells overflows.
_INTEGER_LIMIT = 2**61
_LARGEST_STEP = 2**53
_DIGITS, _MOST_DIGITS = 6, 18
_EPOCH_DAY = date(1970, 1, 1)
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Number(Bounded):
    """A bounded number, of which `multiple_of` may say that it comes in steps counted from 0: cents, quarters, fifties.

    Decimals mean what they say: 0.1 is a tenth, not the nearest float, so 0.3 is its third multiple.
    """

    largest: ClassVar[Any]  # no bound is beyond this, or below its negative

    multiple_of: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.multiple_of is not None:
            kind, step = type(self).__name__, self.parse(self.multiple_of, "multiple_of")
            if step <= 0 or (isinstance(step, int) and step > _LARGEST_STEP):
                reach = f"in 1..2^{_LARGEST_STEP.bit_length() - 1}" if isinstance(step, int) else "above 0"
                raise SchemaError(f"{kind}: multiple_of={brief(self.multiple_of)} is not {reach}")
            object.__setattr__(self, "multiple_of", step)
        Bounded.__post_init__(self)
        if self.multiple_of is not None and self.has_bounds and self._steps()[0] > self._steps()[1]:
            raise SchemaError(
                f"{type(self).__name__}: no multiple of multiple_of={self.multiple_of} lies between "
                f"low={self.low} and high={self.high}; widen the bounds"
            )

    def _steps(self) -> tuple[int, int]:
        """The least and the largest k with k * multiple_of inside the bounds; the wrong way round if there is none."""
        step = exact(self.multiple_of)
        return -(-exact(self.low) // step), exact(self.high) // step

    @property
    def multiples(self) -> tuple[Any, Any]:
        """The smallest and the largest multiple of `multiple_of` inside the bounds."""
        first, last = (k * exact(self.multiple_of) for k in self._steps())
        return self.logical(first), self.logical(last)

    def with_bounds(self, low: Any, high: Any) -> Self:
        """Bounds that were found hold a multiple too: those between two multiples are widened to both."""
        if self.multiple_of is not None:
            step, ends = exact(self.multiple_of), (exact(self.parse(low, "low")), exact(self.parse(high, "high")))
            if -(-ends[0] // step) > ends[1] // step:
                low = self.logical(max(ends[0] // step * step, -self.largest))
                high = self.logical(min(-(-ends[1] // step) * step, self.largest))
        return Bounded.with_bounds(self, low, high)

    def to_dict(self) -> dict[str, Any]:
        described = Bounded.to_dict(self)
        if self.multiple_of is not None:
            described["multiple_of"] = self.multiple_of
        return described


@dataclass(frozen=True, slots=True)
class Real(Number):
    """A real number in [low, high]. Values outside are moved to the nearer bound.

    >>> Real(-9, 3)
    Real(low=-9.0, high=3.0)
    >>> Real(0, 100, multiple_of=0.25)
    Real(low=0.0, high=100.0, multiple_of=0.25)
    """

    type_name: ClassVar[str] = "real"
    needs_length: ClassVar[bool] = True
    largest: ClassVar[Any] = sys.float_info.max

    def parse(self, value: Any, name: str) -> float:
        return float(parse_number(value, name, float, "Real"))

    def physical(self, value: Any) -> float:
        return float(value)

    def logical(self, number: Any) -> float:
        return float(number)

    def __repr__(self) -> str:
        return show(self)


@dataclass(frozen=True, slots=True)
class Integer(Number):
    """A whole number in low..high, both included; with `multiple_of=50`, one of 0, 50, 100, ... in there."""

    type_name: ClassVar[str] = "integer"
    largest: ClassVar[Any] = _INTEGER_LIMIT

    def parse(self, value: Any, name: str) -> int:
        number = int(parse_number(value, name, int, "Integer"))
        if abs(number) > _INTEGER_LIMIT:
            raise SchemaError(f"Integer: {name}={brief(number)} is beyond ±2^61; use Real for numbers of this size")
        return number

    def physical(self, value: Any) -> int:
        return int(value)

    def logical(self, number: Any) -> int:
        return int(number)

    def __repr__(self) -> str:
        return show(self)


@dataclass(frozen=True, slots=True)
class Date(Bounded):
    """A calendar day between two days, both included: `Date("2020-01-01", "2020-12-31")`."""

    type_name: ClassVar[str] = "date"

    def parse(self, value: Any, name: str) -> date:
        if isinstance(value, str):
            try:
                value = date.fromisoformat(value)
            except ValueError:
                raise SchemaError(f"Date: {name}={brief(value)} is not a day like 2020-01-31") from None
        if isinstance(value, datetime) or not isinstance(value, date):
            raise SchemaError(f"Date: {name}={brief(value)} is not a day like 2020-01-31")
        return value

    def physical(self, value: Any) -> int:
        return int((value - _EPOCH_DAY).days)

    def logical(self, number: Any) -> date:
        return _EPOCH_DAY + timedelta(days=int(number))

    def __repr__(self) -> str:
        return show(self)


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
                raise SchemaError(f"Datetime: timezone={brief(self.timezone)} is not a known zone like 'UTC'") from None
        Bounded.__post_init__(self)

    def parse(self, value: Any, name: str) -> datetime:
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                raise SchemaError(f"Datetime: {name}={brief(value)} is not a moment like 2020-01-31T12:00:00") from None
        if not isinstance(value, datetime):
            raise SchemaError(f"Datetime: {name}={brief(value)} is not a moment like 2020-01-31T12:00:00")
        if self.timezone is None and value.tzinfo is not None:
            raise SchemaError(f"Datetime: {name}={value} has an offset; name the column's zone with timezone=...")
        if self.timezone is not None and value.tzinfo is None:
            value = value.replace(tzinfo=ZoneInfo(self.timezone))
        moment: datetime = value
        if self.timezone is not None:
            try:
                moment.astimezone(UTC), moment.astimezone(ZoneInfo(self.timezone))
            except (OverflowError, ValueError):
                raise SchemaError(
                    f"Datetime: {name}={moment} is outside the years 1 to 9999 in {self.timezone} or in UTC; "
                    "move it a day inwards"
                ) from None
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
        return show(self)


@dataclass(frozen=True, slots=True)
class Boolean(Column):
    """True or false."""

    type_name: ClassVar[str] = "boolean"

    def __repr__(self) -> str:
        return show(self)


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
        given: tuple[Any, ...] = tuple(self.values)
        values = tuple(value.item() if type(value).__module__ == "numpy" else value for value in given)
        if not values:
            raise SchemaError("Category: values is empty; list every value that the column may take")
        if not (all(type(v) is str for v in values) or all(type(v) is int for v in values)):
            raise SchemaError(
                "Category: values must be all text or all whole numbers; use Boolean() for true and false, and "
                "nullable=True for missing values"
            )
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
        return show(self)


@dataclass(frozen=True, slots=True)
class Identifier(Column):
    """Names a row or a person: a customer number, an e-mail address. Its values are never read; they are made afresh.

    Synthetic rows are numbered 1, 2, 3, ...; with a `prefix` they get texts, the number padded to `digits` or more.

    >>> Identifier(prefix="C-")  # C-000001, C-000002, ...
    Identifier(prefix='C-')
    """

    type_name: ClassVar[str] = "identifier"

    prefix: str | None = field(default=None, kw_only=True)
    digits: int = field(default=_DIGITS, kw_only=True)

    def __post_init__(self) -> None:
        if self.nullable is not False:
            raise SchemaError(
                f"Identifier: nullable={brief(self.nullable)} has no meaning here; every row gets an identifier"
            )
        if self.bits is not None:
            raise SchemaError(f"Identifier: bits={brief(self.bits)} has no meaning here; identifiers are not learnt")
        if self.prefix is not None and not isinstance(self.prefix, str):
            raise SchemaError(f"Identifier: prefix={brief(self.prefix)} is not a text such as 'C-'")
        if type(self.digits) is not int or not 1 <= self.digits <= _MOST_DIGITS:
            raise SchemaError(f"Identifier: digits={brief(self.digits)} is not a whole number in 1..{_MOST_DIGITS}")
        if self.prefix is None and self.digits != _DIGITS:
            raise SchemaError(f"Identifier: digits={self.digits} pads texts; give a prefix too, or leave it out")

    @property
    def is_text(self) -> bool:
        return self.prefix is not None

    def to_dict(self) -> dict[str, Any]:
        described = Column.to_dict(self)
        if self.prefix is not None:
            described["prefix"] = self.prefix
        if self.digits != _DIGITS:
            described["digits"] = self.digits
        return described

    def __repr__(self) -> str:
        return show(self)


COLUMN_TYPES: dict[str, type[Column]] = {
    kind.type_name: kind for kind in (Real, Integer, Date, Datetime, Boolean, Category, Identifier)
}


def exact(number: Any) -> Fraction:
    """What a number says as it is written: 0.1 is a tenth."""
    return Fraction(repr(number))
