"""Columns with a low and a high end, which are stated, estimated privately, or read off the data.

    bounded            both ends, where they come from, and cells between them
    round durations    what a day, an hour and a year have in common with a round number
    stepped            values in steps: `multiple_of` or `decimals`
    numbers            what reals and whole numbers share

`has_bounds` says whether the ends are there yet. A column keeps them in its own terms (a date as a date) and
converts by `physical` and `logical`. What is whole underneath counts in `step`s, which are counted from
`_phase`: 1 and 0 unless stated.
"""

from __future__ import annotations

import math
import re
import unicodedata
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Real as AnyReal
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from spinney.columns.base import AxisKind, Column, Spelling, as_float, if_whole, number_of_text, option, shown
from spinney.errors import ParameterError, SchemaError, raise_alone
from spinney.machine import lazily
from spinney.text import brief

if TYPE_CHECKING:
    import narwhals as nw
    import numpy as np
    from numpy.typing import NDArray

    from spinney.columns import reading
    from spinney.columns.reading import Group, Reading
else:
    (reading,) = lazily("spinney.columns.reading")


BoundsSource = Literal["stated", "private", "from-data-not-private"]
BOUNDS_SOURCES = ("stated", "private", "from-data-not-private")


@dataclass(frozen=True, slots=True, repr=False)
class Bounded(Column):
    """A column with a low and a high end, both included."""

    _axis_kind: ClassVar[AxisKind] = "integer"
    _needs_length: ClassVar[bool] = False  # whether one possible value is too few
    _rungs: ClassVar[tuple[int, int]]  # the magnitudes among which bounds are paid for, as powers of two
    _reach: ClassVar[str] = "what a column of its type can hold"  # which bounds are possible at all
    _spans_decades: ClassVar[bool] = False  # whether round values are those of few digits
    _counts_days: ClassVar[bool] = False  # whether physical numbers are days since 1970
    _round_steps: ClassVar[tuple[int, ...]] = ()  # otherwise: physical numbers whose multiples are round, longest first
    _widest: ClassVar[tuple[Any, Any] | None] = None  # bounds that hold whatever is in the table, where there are any

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
        if self.bounds == "stated" and self._widest is not None:
            for name, end in zip(("low", "high"), self._widest, strict=True):
                object.__setattr__(self, name, end if getattr(self, name) is None else getattr(self, name))
        if self.low is None or self.high is None:
            if self.bounds == "from-data-not-private" and self.low is None and self.high is None:
                return
            absent = [name for name in ("low", "high") if getattr(self, name) is None]
            missing = f"{' and '.join(absent)} {'is' if len(absent) == 1 else 'are'} missing"
            raise SchemaError(
                f"{kind}: {missing}; state the bounds from what is publicly known about the column, "
                'or pay for them with bounds="private" (not in tables of persons with many rows)'
            )
        object.__setattr__(self, "low", self.parse(self.low, "low"))
        object.__setattr__(self, "high", self.parse(self.high, "high"))
        if self.low > self.high or (self._needs_length and self.low == self.high):
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

    def _with_bounds(self, low: Any, high: Any) -> Self:
        """The same column with bounds filled in; remembers where they came from."""
        if self.bounds == "private":
            # A paid-for bound is released, hence public from here on.
            return replace(self, low=low, high=high, bounds="stated")
        return replace(self, low=low, high=high)

    def _stated(self) -> dict[str, Any]:
        stated = Column._stated(self)
        if self.bounds == "stated" and (self.low, self.high) == self._widest:
            del stated["low"], stated["high"]
        return stated

    # ------------------------------------------------------------------------------------------ bounds to be found

    @abstractmethod
    def _from_rungs(self, low: float, high: float) -> tuple[Any, Any]:
        """Bounds from the outer edges of the rungs that values were found between."""

    def _from_extremes(self, low: Any, high: Any) -> tuple[Any, Any]:
        """Bounds from the smallest and the largest physical number."""
        return self.logical(low), self.logical(high)

    def _limit(self, number: int) -> Any:
        """A physical number as a bound of the column."""
        return self.logical(number)

    # ------------------------------------------------------------------------------------------------------- steps

    @property
    def _phase(self) -> int:
        """A physical number that steps are counted from."""
        return 0

    def _landmarks(self) -> tuple[list[int], ...]:
        """Physical numbers that begin something in the column's calendar, the longest first; most kinds have none."""
        return ()

    def _aligned(self, number: Any, *, up: bool) -> Any:
        """The nearest physical number in steps that is not below (`up`) or not above a number; of arrays too."""
        step = self.step if self.is_whole else self.spacing
        if step is None or (step == 1 and isinstance(number, int)):
            return number
        return number + (self._phase - number) % step if up else number - (number - self._phase) % step

    def _first_and_last(self) -> tuple[Any, Any]:
        """The smallest and the largest physical number in steps inside the bounds."""
        low, high = (self.physical(end) for end in (self.low, self.high))
        return self._aligned(low, up=True), self._aligned(high, up=False)

    def _ends(self) -> tuple[Fraction, Fraction]:
        """The same as exact numbers."""
        first, last = self._first_and_last()
        return exact(first), exact(last)

    # ----------------------------------------------------------------------------------------------- cells and back

    def _whole_range(self) -> tuple[int, int] | None:
        (first, last), half = self._first_and_last(), self.step // 2
        return first - half, last + self.step - 1 - half

    def _expression(self, value: nw.Expr, dtype: Any, *, place: nw.Expr | None = None) -> Reading:
        del place
        return reading.whole_expression(value, dtype)

    def _to_positions(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        return reading.whole_positions(numbers, self)

    def _to_arrow(self, positions: NDArray[np.float64]) -> Any:
        return reading.whole_array(positions, self).cast(self._arrow_type)

    def _leaf_ends(self, low: NDArray[np.float64], length: NDArray[np.float64]) -> list[tuple[Any, Any]]:
        return [(self.logical(first), self.logical(last)) for first, last in reading.whole_ends(low, length, self)]

    # ------------------------------------------------------------------------------------ conditions and pictures

    @abstractmethod
    def _condition_number(self, value: Any, name: str) -> int | float:
        """What a condition asks for as a physical number; a ParameterError names the column where that is nothing."""

    def _wrong_type(self, value: Any, name: str, hint: str = "") -> ParameterError:
        """The error for a value of another kind."""
        return ParameterError(f"where: column {name!r} is of type {self.type_name}, which {shown(value)} is not{hint}")

    def _drawn_range(self) -> tuple[float, float]:
        first, last = whole_range(self)
        return first * self._drawn_scale, (last + 1) * self._drawn_scale

    def _set_ticks(self, axis: Any) -> None:
        del axis


def whole_range(column: Column) -> tuple[int, int]:
    """The physical range of a column that is whole numbers underneath; in steps, all that rounds to its multiples."""
    found = column._whole_range()
    assert found is not None, f"{column.type_name} is not whole underneath"
    return found


def parse_number(value: Any, name: str, kind: Callable[[Any], Any], owner: str) -> Any:
    """A bound or a step as a finite number of a kind, or a SchemaError that names it."""
    if isinstance(value, bool):
        raise SchemaError(f"{owner}: {name}={value!r} is not a number")
    try:
        number = kind(value)
        is_finite = math.isfinite(number)
    except (TypeError, ValueError, OverflowError):
        raise_alone(SchemaError(f"{owner}: {name}={brief(value)} is not a number, or is too large for one"))
    if not is_finite:
        remedy = "; state a generous finite bound instead" if name in ("low", "high") else ""
        raise SchemaError(f"{owner}: {name}={value!r} is not finite{remedy}")
    if kind is int and number != value:
        raise SchemaError(f"{owner}: {name}={brief(value)} is not a whole number")
    return number


def exact(number: Any) -> Fraction:
    """What a number says as it is written: 0.1 is a tenth."""
    return Fraction(repr(number))


# ------------------------------------------------------------------------------------------------------ round durations
# Round places of calendars and clocks: what a day, an hour and a year have in common with a round number.


SECOND = 10**6
_PARTS = (7 * 86_400, 86_400, 43_200, 21_600, 10_800, 3600, 1800, 900, 300, 60, 30, 15, 5, 1)
# In microseconds, longest first: weeks, days, parts of a day, of an hour, of a minute, of a second.
CLOCK_STEPS = (*(SECOND * seconds for seconds in _PARTS), 100_000, 10_000, 1000, 100, 10, 1)
# Months that begin a century, a decade, a year, a quarter, a month.
_EVERY = (1200, 120, 12, 3, 1)


def month_starts(low: date, high: date) -> tuple[list[date], ...]:
    """First days of centuries, decades, years, quarters and months after `low`, up to `high`."""
    first, last = low.year * 12 + low.month, high.year * 12 + high.month - 1
    return tuple(
        [date(month // 12, month % 12 + 1, 1) for month in range(first + -first % every, last + 1, every)]
        for every in _EVERY
    )


def divisors(step: int, sizes: Sequence[int]) -> tuple[int, ...]:
    """The sizes that are whole numbers of steps, in steps."""
    return tuple(size // step for size in sizes if size % step == 0)


# -------------------------------------------------------------------------------------------------------------- stepped
# Bounded columns whose values may come in steps: `multiple_of`, stated in the column's own unit, or `decimals`.
#
# `decimals=2` is another way to state `multiple_of=0.01`. Cells lie around the values in steps, what is drawn is
# rounded to the nearest of them, and bounds, conditions and rules count in them. A kind says what a step is
# (`_parse_step`), how long one is underneath (`spacing`), and what it is counted from (`_phase`).


LARGEST_STEP = 2**53


@dataclass(frozen=True, slots=True, repr=False)
class Stepped(Bounded):
    """A bounded column, of which `multiple_of` or `decimals` may say that it comes in steps."""

    _most_decimals: ClassVar[tuple[int, int]]  # how few and how many digits after the point can be stated

    multiple_of: Any = field(default=None, kw_only=True)
    decimals: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.decimals is not None:
            self._take_decimals(self.decimals)
        if self.multiple_of is not None:
            object.__setattr__(self, "multiple_of", self._parse_step(self.multiple_of))
        Bounded.__post_init__(self)
        if self.multiple_of is not None and self.has_bounds:
            low, high = self._physical_ends(self.low, self.high)
            if self._aligned(low, up=True) > high:
                raise SchemaError(
                    f"{type(self).__name__}: no multiple of multiple_of={self.multiple_of} lies between "
                    f"low={self.low} and high={self.high}; widen the bounds"
                )

    def _take_decimals(self, decimals: Any) -> None:
        """The step that a number of decimals means, which may also be stated by itself if it is the same."""
        kind, (fewest, most) = type(self).__name__, self._most_decimals
        if type(decimals) is not int or not fewest <= decimals <= most:
            reach = f"a whole number in {fewest}..{most}" if fewest < most else f"{most}: its values have no others"
            raise SchemaError(f"{kind}: decimals={brief(decimals)} is not {reach}")
        step = self._parse_step(10**-decimals if decimals <= 0 else float(Fraction(1, 10**decimals)))
        if self.multiple_of is not None and self._parse_step(self.multiple_of) != step:
            raise SchemaError(
                f"{kind}: decimals={decimals} and multiple_of={brief(self.multiple_of)} are different steps; state one"
            )
        object.__setattr__(self, "multiple_of", step)

    _counted_from: ClassVar[str] = "0"  # what steps are counted from, in words

    @abstractmethod
    def _parse_step(self, value: Any) -> Any:
        """A step as the column keeps it, or a SchemaError."""

    @property
    @abstractmethod
    def _span(self) -> tuple[Any, Any]:
        """The least and the largest physical number that a bound can be."""

    def _physical_ends(self, low: Any, high: Any) -> tuple[Fraction, Fraction]:
        return exact(self.physical(low)), exact(self.physical(high))

    def _first_and_last(self) -> tuple[Any, Any]:
        low, high = self._physical_ends(self.low, self.high)
        number = int if self.is_whole else float
        return number(self._aligned(low, up=True)), number(self._aligned(high, up=False))

    @property
    def _multiples(self) -> tuple[Any, Any]:
        """The smallest and the largest value in steps inside the bounds."""
        first, last = self._first_and_last()
        return self.logical(first), self.logical(last)

    def _with_bounds(self, low: Any, high: Any) -> Self:
        """Bounds that were found hold a value in steps too: those between two such values are widened to both."""
        if self.multiple_of is not None:
            first, last = self._physical_ends(self.parse(low, "low"), self.parse(high, "high"))
            if self._aligned(first, up=True) > last:
                low = self.logical(max(self._aligned(first, up=False), self._span[0]))
                high = self.logical(min(self._aligned(last, up=True), self._span[1]))
        return Bounded._with_bounds(self, low, high)

    def _from_option(self, text: str, *, name: str, option: str) -> Any:
        del name, option
        return text.strip()  # which `where` reads as it is

    def _parsed_condition(self, value: Any, name: str) -> int | float:
        """What a condition asks for as a bound would state it, as a physical number."""
        try:
            return self.physical(self.parse(value, "where"))
        except SchemaError as err:
            raise_alone(ParameterError(f"where: column {name!r}: {err}"))


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


# -------------------------------------------------------------------------------------------------------------- numbers
# What reals and whole numbers share: steps that they come in, the magnitudes of their bounds, the causes of faults.


# An end this many times smaller than the other is taken for 0.
_NEAR_ZERO = 4
_CURRENCY = re.compile(
    r"^(EUR|USD|GBP|CHF|JPY|CAD|AUD|INR|CNY)\b|\b(EUR|USD|GBP|CHF|JPY|CAD|AUD|INR|CNY)$", re.IGNORECASE
)
SPACES = " \t\u00a0\u202f\u2009"
WITHOUT_SIGNS = (
    ", without thousands separators, currency or percent signs, or convert the column first "
    "(pandas: .str.replace(...), then pd.to_numeric(...))"
)


@dataclass(frozen=True, slots=True, repr=False)
class Number(Stepped):
    """A bounded number, of which `multiple_of` may say that it comes in steps counted from 0: cents, quarters, fifties.

    Decimals mean what they say: 0.1 is a tenth, not the nearest float, so 0.3 is its third multiple.
    """

    _compared_as: ClassVar[str | None] = "numbers"
    _spans_decades: ClassVar[bool] = True
    _largest: ClassVar[Any]  # no bound is beyond this, or below its negative
    _accepts: ClassVar[frozenset[Group]] = frozenset({"float", "whole"})
    _fits_array: ClassVar[bool] = True

    def _parse_step(self, value: Any) -> Any:
        kind, step = type(self).__name__, self.parse(value, "multiple_of")
        if step <= 0 or (isinstance(step, int) and step > LARGEST_STEP):
            reach = f"in 1..2^{LARGEST_STEP.bit_length() - 1}" if isinstance(step, int) else "above 0"
            raise SchemaError(f"{kind}: multiple_of={brief(value)} is not {reach}")
        return step

    @property
    def _span(self) -> tuple[Any, Any]:
        return -self._largest, self._largest

    def _from_rungs(self, low: float, high: float) -> tuple[Any, Any]:
        """Few rows near 0 do not stand out from the noise: a low end that is small beside the high one is moved to 0.

        Likewise from below. That costs a small part of the range, and keeps those rows where they are.
        """
        low = 0 if 0 < _NEAR_ZERO * low <= high else low
        high = 0 if low <= _NEAR_ZERO * high < 0 else high
        return low, high

    def _cause(self, text: str, spelling: Spelling) -> str:
        text = text.strip()
        if "%" in text:
            return "it has a percent sign; write the number without it"
        if any(unicodedata.category(mark) == "Sc" for mark in text) or _CURRENCY.search(text):
            return "it has a currency sign; write the number without it"
        digits = text.strip("+-" + SPACES)
        if re.fullmatch(r"\d{1,3}([\s'’_]\d{3})+([.,]\d+)?", digits):
            return "it has a thousands separator; write the number without it"
        if spelling.decimal == "," and re.fullmatch(r"[\d.]+(,\d+)?", digits):
            return (
                "it has a point, and decimal=',' was stated; remove thousands separators, or state the decimal mark "
                "that the file has"
            )
        if spelling.decimal == "." and re.fullmatch(r"\d{1,3}(,\d{3})+\.\d+|\d{1,3}(,\d{3}){2,}", digits):
            return "it has a thousands separator; write the number without it"
        if spelling.decimal == "." and re.fullmatch(r"[\d.]*,\d+([eE][+-]?\d+)?", digits):
            remedy = "write decimal points" if spelling.delimiter == "," else f"state {option('decimal', ',')}"
            return f"it has a comma; remove thousands separators, and for decimal commas {remedy}"
        if self.is_whole and is_number(digits, spelling):
            return "it is not a whole number; use Real for this column"
        return "it is not a number; clean the column or change its type"

    def _condition_number(self, value: Any, name: str) -> int | float:
        """A float of a real, else exact if it is whole."""
        if isinstance(value, (AnyReal, Decimal)) and not isinstance(value, bool):
            whole = if_whole(value) if self.is_whole else None
            return as_float(value) if whole is None else whole
        raise self._wrong_type(value, name, "; write numbers without quotes" if isinstance(value, str) else "")

    def _from_option(self, text: str, *, name: str, option: str) -> Any:
        text = text.strip()
        number = number_of_text(text)
        if number is None:
            raise ParameterError(f"{option}: column {name!r} takes numbers, and {text!r} is not a number")
        return number


def is_number(text: str, spelling: Spelling) -> bool:
    """Whether a string spells a number."""
    try:
        Decimal(text.replace(",", ".") if spelling.decimal == "," else text)
    except InvalidOperation:
        return False
    return True
