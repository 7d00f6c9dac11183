"""What all column types share: nullability, resolution, and for most of them a low and a high end.

Bounds are stated, paid for, or read off the data; `has_bounds` says whether they are there yet. A column keeps them in
its own terms (a date as a date) and converts by `physical` and `logical`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, ClassVar, Literal, Self

from spinney.errors import SchemaError
from spinney.shown import brief

BoundsSource = Literal["stated", "private", "from-data-not-private"]
BOUNDS_SOURCES = ("stated", "private", "from-data-not-private")

MAX_BITS = 32
# Physical integers stay so far inside int64 that neither `value - low` nor a range rounded up to whole cells overflows.
LARGEST_WHOLE = 2**61


@dataclass(frozen=True, slots=True)
class Column:
    """What all column types share. `bits` fixes the resolution of the column; by default the synthesizer chooses."""

    type_name: ClassVar[str]

    nullable: bool = field(default=False, kw_only=True)
    bits: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.bits is not None and not (type(self.bits) is int and 0 <= self.bits <= MAX_BITS):
            raise SchemaError(f"{type(self).__name__}: bits={brief(self.bits)} is not a whole number in 0..{MAX_BITS}")
        if not isinstance(self.nullable, bool):
            raise SchemaError(f"{type(self).__name__}: nullable={brief(self.nullable)} is not true or false")

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

    needs_length: ClassVar[bool] = False  # whether one possible value is too few

    low: Any = None
    high: Any = None
    bounds: BoundsSource = field(default="stated", kw_only=True)

    def __post_init__(self) -> None:
        Column.__post_init__(self)
        kind = type(self).__name__
        if self.bounds not in BOUNDS_SOURCES:
            raise SchemaError(
                f"{kind}: bounds={brief(self.bounds)} is not one of {', '.join(map(repr, BOUNDS_SOURCES))}"
            )
        if self.bounds == "private":
            if self.low is not None or self.high is not None:
                raise SchemaError(f'{kind}: give either low and high or bounds="private", not both')
            return
        if self.low is None or self.high is None:
            if self.bounds == "from-data-not-private" and self.low is None and self.high is None:
                return
            absent = [name for name in ("low", "high") if getattr(self, name) is None]
            missing = f"{' and '.join(absent)} {'is' if len(absent) == 1 else 'are'} missing"
            raise SchemaError(
                f"{kind}: {missing}; state the bounds from what is publicly known about the column, "
                'or pay for them with bounds="private"'
            )
        object.__setattr__(self, "low", self.parse(self.low, "low"))
        object.__setattr__(self, "high", self.parse(self.high, "high"))
        if self.low > self.high or (self.needs_length and self.low == self.high):
            raise SchemaError(f"{kind}: low={self.low} is not below high={self.high}; swap or widen the bounds")

    @abstractmethod
    def parse(self, value: Any, name: str) -> Any:
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


def parse_number(value: Any, name: str, kind: type, owner: str) -> Any:
    if isinstance(value, bool):
        raise SchemaError(f"{owner}: {name}={value!r} is not a number")
    try:
        number = kind(value)
        is_finite = math.isfinite(number)
    except (TypeError, ValueError, OverflowError):
        raise SchemaError(f"{owner}: {name}={brief(value)} is not a number, or is too large for one") from None
    if not is_finite:
        remedy = "; state a generous finite bound instead" if name in ("low", "high") else ""
        raise SchemaError(f"{owner}: {name}={value!r} is not finite{remedy}")
    if kind is int and number != value:
        raise SchemaError(f"{owner}: {name}={brief(value)} is not a whole number")
    return number


def show(column: Column) -> str:
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
