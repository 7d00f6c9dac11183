"""Numbers with bounds: reals, and whole numbers, of which `multiple_of` says the steps that they come in."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Self

from spinney.columns.base import LARGEST_WHOLE, Bounded, parse_number, show
from spinney.errors import SchemaError
from spinney.shown import brief

_LARGEST_STEP = 2**53


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
    largest: ClassVar[Any] = LARGEST_WHOLE

    def parse(self, value: Any, name: str) -> int:
        number = int(parse_number(value, name, int, "Integer"))
        if abs(number) > LARGEST_WHOLE:
            raise SchemaError(f"Integer: {name}={brief(number)} is beyond ±2^61; use Real for numbers of this size")
        return number

    def physical(self, value: Any) -> int:
        return int(value)

    def logical(self, number: Any) -> int:
        return int(number)

    def __repr__(self) -> str:
        return show(self)


def exact(number: Any) -> Fraction:
    """What a number says as it is written: 0.1 is a tenth."""
    return Fraction(repr(number))
