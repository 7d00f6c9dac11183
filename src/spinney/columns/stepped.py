"""Bounded columns whose values may come in steps: `multiple_of`, stated in the column's own unit, or `decimals`.

`decimals=2` is another way to state `multiple_of=0.01`. Cells lie around the values in steps, what is drawn is rounded
to the nearest of them, and bounds, conditions and rules count in them. A kind says what a step is (`parse_step`), how
long one is underneath (`spacing`), and what it is counted from (`phase`).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, Self

from spinney.columns.bounded import Bounded, exact, parse_number
from spinney.errors import SchemaError
from spinney.shown import brief

LARGEST_STEP = 2**53


@dataclass(frozen=True, slots=True)
class Stepped(Bounded):
    """A bounded column, of which `multiple_of` or `decimals` may say that it comes in steps."""

    most_decimals: ClassVar[tuple[int, int]]  # how few and how many digits after the point can be stated

    multiple_of: Any = field(default=None, kw_only=True)
    decimals: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.decimals is not None:
            self._take_decimals(self.decimals)
        if self.multiple_of is not None:
            object.__setattr__(self, "multiple_of", self.parse_step(self.multiple_of))
        Bounded.__post_init__(self)
        if self.multiple_of is not None and self.has_bounds:
            low, high = self._physical_ends(self.low, self.high)
            if self.aligned(low, up=True) > high:
                raise SchemaError(
                    f"{type(self).__name__}: no multiple of multiple_of={self.multiple_of} lies between "
                    f"low={self.low} and high={self.high}; widen the bounds"
                )

    def _take_decimals(self, decimals: Any) -> None:
        """The step that a number of decimals means, which may also be stated by itself if it is the same."""
        kind, (fewest, most) = type(self).__name__, self.most_decimals
        if type(decimals) is not int or not fewest <= decimals <= most:
            reach = f"a whole number in {fewest}..{most}" if fewest < most else f"{most}: its values have no others"
            raise SchemaError(f"{kind}: decimals={brief(decimals)} is not {reach}")
        step = self.parse_step(10**-decimals if decimals <= 0 else float(Fraction(1, 10**decimals)))
        if self.multiple_of is not None and self.parse_step(self.multiple_of) != step:
            raise SchemaError(
                f"{kind}: decimals={decimals} and multiple_of={brief(self.multiple_of)} are different steps; state one"
            )
        object.__setattr__(self, "multiple_of", step)

    counted_from: ClassVar[str] = "0"  # what steps are counted from, in words

    @abstractmethod
    def parse_step(self, value: Any) -> Any:
        """A step as the column keeps it, or a SchemaError."""

    @property
    @abstractmethod
    def span(self) -> tuple[Any, Any]:
        """The least and the largest physical number that a bound can be."""

    def _physical_ends(self, low: Any, high: Any) -> tuple[Fraction, Fraction]:
        return exact(self.physical(low)), exact(self.physical(high))

    def first_and_last(self) -> tuple[Any, Any]:
        low, high = self._physical_ends(self.low, self.high)
        number = int if self.is_whole else float
        return number(self.aligned(low, up=True)), number(self.aligned(high, up=False))

    @property
    def multiples(self) -> tuple[Any, Any]:
        """The smallest and the largest value in steps inside the bounds."""
        first, last = self.first_and_last()
        return self.logical(first), self.logical(last)

    def with_bounds(self, low: Any, high: Any) -> Self:
        """Bounds that were found hold a value in steps too: those between two such values are widened to both."""
        if self.multiple_of is not None:
            first, last = self._physical_ends(self.parse(low, "low"), self.parse(high, "high"))
            if self.aligned(first, up=True) > last:
                low = self.logical(max(self.aligned(first, up=False), self.span[0]))
                high = self.logical(min(self.aligned(last, up=True), self.span[1]))
        return Bounded.with_bounds(self, low, high)

    def to_dict(self) -> dict[str, Any]:
        described = Bounded.to_dict(self)
        if self.decimals is not None:
            described["decimals"] = self.decimals
        elif self.multiple_of is not None:
            described["multiple_of"] = self.multiple_of
        return described


def parse_seconds(value: Any, owner: str) -> int | float:
    """A step in seconds: a positive number of whole microseconds."""
    number = parse_number(value, "multiple_of", float, owner)
    told = Fraction(value) if isinstance(value, (int, Fraction, Decimal)) else exact(number)
    microseconds = told * 10**6
    if microseconds.denominator != 1 or not 1 <= microseconds <= LARGEST_STEP:
        raise SchemaError(
            f"{owner}: multiple_of={brief(value)} is not a number of seconds such as 60 or 0.001: above 0, in whole "
            "microseconds, and less than 285 years"
        )
    return int(told) if told.denominator == 1 else float(told)


def microseconds_of(seconds: int | float) -> int:
    """What `parse_seconds` gave, in microseconds."""
    return int(exact(seconds) * 10**6)
