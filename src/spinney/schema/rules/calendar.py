"""Rules of calendar and arithmetic: parts of dates, shares of numbers, equal columns, and days that values lie on.

parts         years, quarters, months and weekdays of dates, as runs of days
arithmetic    a column that is a share of another, rounded to its own steps, or has the same value
days          a column whose values lie on some days only: Monday to Friday, or the ends of months
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from zoneinfo import ZoneInfo

from spinney.columns import Bounded, Column, Date, Datetime, Number
from spinney.errors import SchemaError
from spinney.machine import lazily
from spinney.schema.rules.base import Columns, Rule, ValueSet, check_name, places_in_list, universe
from spinney.schema.rules.related import parse_ratio, ratio_text
from spinney.text import brief, did_you_mean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    (np,) = lazily("numpy")


PARTS = ("year", "quarter", "month", "weekday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
DAY_MICROSECONDS = 86_400_000_000
# Bounds that are farther apart than this have no runs of days.
_MOST_DAYS = 400_000

# ---------------------------------------------------------------------------------------------------------------- parts
# A part of dates is the same on all days of a run: a year, a quarter, a month, a day of the week.


def runs_of_part(name: str, source: Column, part: str, starting: str | None, about: str) -> tuple[list[int], list[int]]:
    """The physical numbers at which runs begin, ascending, and the part in each; the first holds the low bound."""
    if not isinstance(source, Date | Datetime):
        raise SchemaError(f"{about}: column {name!r} is of type {source.type_name}; dates and datetimes have parts")
    if not source.has_bounds:
        raise SchemaError(f"{about}: column {name!r} has no bounds yet, so its parts are not known; state its bounds")
    _check_reach(name, source, about)
    starts, parts = _runs(source, part, 0 if starting is None else MONTHS.index(starting))
    return list(starts), list(parts)


@lru_cache(maxsize=64)
def sets_of_part(source: Date | Datetime, part: str, starting: str | None) -> tuple[tuple[int, ValueSet], ...]:
    """The physical numbers that have each part of dates."""
    starts, parts = _runs(source, part, 0 if starting is None else MONTHS.index(starting))
    least, most = universe(source)
    lows = [least, *starts[1:]]
    highs = [*(start - 1 for start in starts[1:]), most]
    ranges: dict[int, list[tuple[Any, Any]]] = {}
    for value, low, high in zip(parts, lows, highs, strict=True):
        if low <= high:
            ranges.setdefault(value, []).append((low, high))
    return tuple((value, ValueSet.of(pairs)) for value, pairs in ranges.items())


def _check_reach(name: str, column: Date | Datetime, about: str) -> None:
    first, last = _days_of(column)
    if (last - first).days > _MOST_DAYS:
        raise SchemaError(
            f"{about}: the bounds of column {name!r} are {(last - first).days:,} days apart; state nearer ones"
        )


@lru_cache(maxsize=256)
def _runs(source: Date | Datetime, part: str, starting: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    first, last = _days_of(source)
    starts: list[int] = []
    parts: list[int] = []
    day = first
    while day <= last:
        value = _part_of(day, part, starting)
        if not parts or parts[-1] != value or part == "weekday":
            starts.append(_midnight(source, day))
            parts.append(value)
        if day.year == date.max.year and day.month == 12 and (part != "weekday" or day == date.max):
            break
        next_month = (day.year + day.month // 12, day.month % 12 + 1, 1)
        day = day + timedelta(days=1) if part == "weekday" else date(*next_month)
    return tuple(starts), tuple(parts)


def _part_of(day: date, part: str, starting: int) -> int:
    month = day.month - 1
    if part == "year":
        return day.year + (starting > 0 and month >= starting)
    if part == "quarter":
        return (month - starting) % 12 // 3 + 1
    return day.month if part == "month" else day.isoweekday()


def _days_of(column: Date | Datetime) -> tuple[date, date]:
    """The first and the last day, in the column's zone."""
    ends = (column.logical(column.physical(end)) for end in (column.low, column.high))
    low, high = (end.date() if isinstance(end, datetime) else end for end in ends)
    return low, high


def _midnight(column: Date | Datetime, day: date) -> int:
    """The physical number that a day begins with."""
    if isinstance(column, Date):
        return column.physical(day)
    zone = None if column.timezone is None else ZoneInfo(column.timezone)
    return column.physical(datetime.combine(day, time.min, tzinfo=zone))


def spellings(part: str, number: int) -> tuple[Any, ...]:
    """How a part may be spelt in a list of values."""
    names = {"month": MONTHS, "weekday": WEEKDAYS}.get(part)
    words = () if names is None else (names[number - 1], names[number - 1][:3])
    return (number, str(number), *words, *([f"Q{number}"] if part == "quarter" else []))


# ----------------------------------------------------------------------------------------------------------- arithmetic
# Products of whole numbers of steps, rounded to the nearest step, halves upwards. Times 1 is the same value.


_MOST_STEPS = 2**62
_NEAR = 1e-9


def share_text(times: Any, about: str) -> str:
    """A share as it is kept: text that says it exactly."""
    share = parse_ratio(times)
    if share is None:
        raise SchemaError(f"{about}: times={brief(times)} is not a number above 0 such as '0.75' or '1/3'")
    return ratio_text(share)


def check_arithmetic(name: str, source_name: str, times: str | None, columns: Columns) -> None:
    """Raise a SchemaError unless a column of this kind can be a share of the other, or have its value."""
    column, source, about = columns[name], columns[source_name], f"Derived: column {name!r}"
    if times is None and (column.listed or source.listed):
        missing = [value for value in source.listed if (type(value), value) not in places_in_list(column)]
        if not column.listed or not source.listed or missing:
            what = f"{brief(missing[0])} of its source is not a value of it" if missing else "it takes other values"
            raise SchemaError(f"{about} equals {source_name!r}, and {what}; list the same values, or state by")
        return
    kinds = (column, source)
    if times is not None and not all(isinstance(kind, Number) for kind in kinds):
        raise SchemaError(f"{about} is a share of {source_name!r}; both must be numbers, integers or reals")
    if not all(isinstance(kind, Bounded) for kind in kinds) or column._compared_as != source._compared_as:
        raise SchemaError(
            f"{about} is of type {column.type_name} and {source_name!r} of type {source.type_name}; state how it "
            "follows: by, a mapping; cuts and labels; part; or times"
        )
    assert isinstance(column, Bounded)
    assert isinstance(source, Bounded)
    if not column.has_bounds:
        raise SchemaError(f"{about} is computed, so its bounds are not estimated; state them")
    if getattr(column, "timezone", None) != getattr(source, "timezone", None):
        raise SchemaError(f"{about} and {source_name!r} have different time zones; state the same")
    steps = [(one.step, one._phase) for one in (column, source) if not isinstance(column, Number)]
    if steps and column.step > 1 and steps[0] != steps[1]:
        raise SchemaError(f"{about} and {source_name!r} come in different steps; state the same multiple_of")
    if not source.has_bounds:
        return
    ends = [float(end) if not source.is_whole else int(end) for end in source._first_and_last()]
    if isinstance(column, Number) and column.spacing is not None and source.spacing is not None:
        p, q = _ratio(source, column, times)
        if max(abs(exactly(end) / source.spacing) for end in ends) * 2 * p + q > _MOST_STEPS:
            raise SchemaError(f"{about}: its products are too large for whole numbers of 64 bits; state rounder steps")
    low, high = (products(np.array([float(end)]), source, column, times)[0] for end in ends)
    least, most = universe(column)
    if low < least or high > most:
        shown = column.logical if not isinstance(column, Number) else (lambda number: f"{float(number):g}")
        raise SchemaError(
            f"{about} reaches {shown(low)}..{shown(high)} by the bounds of {source_name!r}, beyond its own "
            f"{column.low}..{column.high}; widen them"
        )


def exactly(number: Any) -> Fraction:
    return Fraction(number) if isinstance(number, int) else Fraction(repr(float(number)))


def _ratio(source: Bounded, column: Bounded, times: str | None) -> tuple[int, int]:
    """By what steps of the source are multiplied to be steps of the column."""
    assert source.spacing is not None
    assert column.spacing is not None
    ratio = source.spacing * Fraction(times or "1") / column.spacing
    return ratio.numerator, ratio.denominator


def products(numbers: NDArray[Any], source: Column, column: Column, times: str | None) -> NDArray[np.float64]:
    """The column's physical numbers, from those of its source."""
    if source.listed and times is None:
        known = places_in_list(column)
        at = np.array([known[type(value), value] for value in source.listed], dtype=np.float64)
        return np.asarray(at[numbers.astype(np.int64)])
    if not isinstance(column, Number):
        return np.asarray(numbers, dtype=np.float64)
    assert isinstance(source, Bounded)
    share = Fraction(times or "1")
    if column.spacing is None:
        return np.asarray(numbers * float(share))
    if source.spacing is None:
        steps = np.floor(numbers * float(share / column.spacing) + 0.5)
    else:
        p, q = _ratio(source, column, times)
        whole = np.rint(numbers / float(source.spacing)).astype(np.int64)
        steps = ((2 * p * whole + q) // (2 * q)).astype(np.float64)
    return np.asarray(steps * float(column.spacing.numerator) / float(column.spacing.denominator))


def slack_of(column: Column) -> float:
    """How far a share in a table may be from the exact product: a step, however it was rounded."""
    if column.spacing is not None:
        return float(column.spacing) * (1 + _NEAR)
    assert isinstance(column, Bounded)
    return _NEAR * max(abs(float(column.physical(end))) for end in (column.low, column.high))


def sources_of(wanted: ValueSet, source: Column, column: Column, times: str | None) -> ValueSet:
    """The values of the source with which the column is one of `wanted`."""
    if source.listed and times is None:
        known = places_in_list(column)
        places = [at for at, value in enumerate(source.listed) if known[type(value), value] in wanted]
        return ValueSet.of((at, at) for at in places)
    ranges = wanted.ranges
    if isinstance(column, Number):
        assert isinstance(source, Bounded)
        ranges = tuple(one for pair in ranges if (one := _source_range(*pair, source, column, Fraction(times or "1"))))
    return ValueSet.of(ranges) & ValueSet((universe(source),))


def _source_range(low: Any, high: Any, source: Bounded, column: Bounded, share: Fraction) -> tuple[Any, Any] | None:
    """The numbers of the source whose product lies between two; None where there is none."""
    half = Fraction(0) if column.spacing is None else column.spacing / 2
    least, most = (exactly(low) - half) / share, (exactly(high) + half) / share
    if source.spacing is None:
        top = float(most)
        return float(least), (math.nextafter(top, -math.inf) if half else top)
    first, last = math.ceil(least / source.spacing), math.floor(most / source.spacing)
    last -= half > 0 and last * source.spacing == most  # which rounds up
    if first > last:
        return None
    ends = (first * source.spacing, last * source.spacing)
    return (int(ends[0]), int(ends[1])) if source.is_whole else (float(ends[0]), float(ends[1]))


# ----------------------------------------------------------------------------------------------------------------- days
# A column whose values lie on some days only.


class Runs(NamedTuple):
    """Stretches of physical numbers of a column, both ends included, ascending."""

    first: NDArray[np.int64]
    last: NDArray[np.int64]

    def holds(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which numbers lie in a run."""
        at = np.searchsorted(self.first, numbers, side="right") - 1
        return np.asarray((at >= 0) & (numbers <= self.last[np.maximum(at, 0)]))

    def nearest(
        self, numbers: NDArray[np.int64], least: NDArray[np.int64], most: NDArray[np.int64] | None = None
    ) -> NDArray[np.int64]:
        """The number nearest to each that lies in a run, between `least` and `most` where there is one.

        Where there is none above `least`, the last of all.
        """
        at = np.searchsorted(self.first, numbers, side="right") - 1
        before = self.last[np.maximum(at, 0)]
        after = self.first[np.minimum(at + 1, len(self.first) - 1)]
        is_before = (at >= 0) & (before >= least)
        is_after = at + 1 < len(self.first)
        if most is not None:
            is_after &= (after <= most) | ~is_before
        takes_before = is_before & (~is_after | (numbers - before <= after - numbers))
        found = np.where(takes_before, before, np.where(is_after, after, self.last[-1]))
        return np.asarray(np.where(self.holds(numbers), numbers, found))

    @property
    def longest_gap(self) -> int:
        """How far apart one run and the next are at most."""
        return int((self.first[1:] - self.last[:-1]).max(initial=0))

    def as_set(self) -> ValueSet:
        return ValueSet(tuple(zip(self.first.tolist(), self.last.tolist(), strict=True)))


@dataclass(frozen=True, slots=True, repr=False)
class OnlyOn(Rule):
    """A date or datetime lies on some days only: `OnlyOn("approved", "weekdays")`, `OnlyOn("closed", "month-ends")`.

    Args:
        column: the name of the date or datetime.
        days: "weekdays" (Monday to Friday), "month-ends" (the last day of each month), or names of days of the week
            such as ["Tuesday", "Thursday"].
    """

    type_name: ClassVar[str] = "only-on"

    column: str
    days: Any  # kept as a word, or as a tuple of names

    def __post_init__(self) -> None:
        check_name(self, self.column)
        if self.days in ("weekdays", "month-ends"):
            return
        days = (self.days,) if isinstance(self.days, str) else self.days
        if not isinstance(days, Iterable) or not (days := tuple(days)):
            raise SchemaError(f"OnlyOn: days={brief(self.days)} is not {_SAYS}")
        for day in days:
            if day not in WEEKDAYS:
                hint = did_you_mean(day, (*WEEKDAYS, "weekdays", "month-ends"))
                raise SchemaError(f"OnlyOn: {brief(day)} is no day of the week; days is {_SAYS}{hint}")
        object.__setattr__(self, "days", tuple(sorted(set(days), key=WEEKDAYS.index)))

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def check(self, columns: Columns) -> None:
        column = columns[self.column]
        if not isinstance(column, Date | Datetime):
            raise SchemaError(
                f"OnlyOn: column {self.column!r} is of type {column.type_name}; dates and datetimes lie on days"
            )
        if len(self.days) == len(WEEKDAYS):
            raise SchemaError(f"OnlyOn: all days of the week are listed for {self.column!r}; leave the rule out")
        if isinstance(column, Date) and column.step > 1:
            raise SchemaError(f"OnlyOn: column {self.column!r} comes in steps of {column.step} days; leave one out")
        if DAY_MICROSECONDS % column.step:
            raise SchemaError(f"OnlyOn: the steps of column {self.column!r} do not begin anew every day; leave one out")
        if not column.has_bounds:
            raise SchemaError(f"OnlyOn: column {self.column!r} has no bounds yet; state its bounds")
        _check_reach(self.column, column, "OnlyOn")
        if not len(self.runs(column).first):
            raise SchemaError(f"OnlyOn: no such day lies within the bounds of column {self.column!r}; widen them")

    def takes(self, day: date) -> bool:
        """Whether values may lie on a day."""
        if self.days == "month-ends":
            return (day + timedelta(days=1)).day == 1
        return day.isoweekday() <= 5 if self.days == "weekdays" else WEEKDAYS[day.isoweekday() - 1] in self.days

    def runs(self, column: Column) -> Runs:
        """The stretches of days that values may lie on, within the bounds of the column."""
        assert isinstance(column, Date | Datetime)
        first, last = _day_runs(self, column)
        return Runs(np.array(first, dtype=np.int64), np.array(last, dtype=np.int64))

    def holds(self, rows: Mapping[str, NDArray[Any]], schema: Columns) -> NDArray[Any]:
        numbers, column = rows[self.column], schema[self.column]
        is_null = np.isnan(numbers)
        inside = np.clip(np.where(is_null, 0, numbers), *universe(column))  # as they are counted
        clipped = np.where(is_null, 0, numbers) != inside
        return np.asarray(is_null | clipped | self.runs(column).holds(inside.astype(np.int64)))

    def to_dict(self) -> dict[str, Any]:
        days = self.days if isinstance(self.days, str) else list(self.days)
        return {"type": self.type_name, "column": self.column, "days": days}

    def __repr__(self) -> str:
        return f"OnlyOn({self.column!r}, {self.days if isinstance(self.days, str) else list(self.days)!r})"


_SAYS = "'weekdays', 'month-ends', or names of days such as ['Tuesday', 'Thursday']"


@lru_cache(maxsize=64)
def _day_runs(rule: OnlyOn, column: Date | Datetime) -> tuple[Sequence[int], Sequence[int]]:
    first_day, last_day = _days_of(column)
    least, most = (int(end) for end in column._first_and_last())
    first: list[int] = []
    last: list[int] = []
    day, was_taken = first_day, False
    while day <= last_day:
        is_taken = rule.takes(day)
        if is_taken:
            tomorrow = most + 1 if day == date.max else _midnight(column, day + timedelta(days=1))
            low = max(int(column._aligned(_midnight(column, day), up=True)), least)
            high = min(int(column._aligned(tomorrow - 1, up=False)), most)
            if low <= high:
                if was_taken and last:
                    last[-1] = high
                else:
                    first.append(low)
                    last.append(high)
        was_taken = is_taken
        if day == date.max:
            break
        day += timedelta(days=1)
    return tuple(first), tuple(last)
