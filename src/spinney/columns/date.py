"""Calendar days, and what they share with moments: whole days since 1970-01-01 underneath.

calendar    the ends of the calendar, ISO 8601 and other formats, conditions as strings (`Datetime` too)
date        the column
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Self

from spinney.columns.base import PLAIN, Spelling, option
from spinney.columns.bounded import Bounded, Stepped, month_starts, parse_number
from spinney.errors import InputError, ParameterError, SchemaError, raise_alone
from spinney.machine import lazily
from spinney.text import brief

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    from numpy.typing import NDArray

    from spinney.columns import reading
    from spinney.columns.reading import Group, Physical
else:
    np, pa, pc, reading = lazily("numpy", "pyarrow", "pyarrow.compute", "spinney.columns.reading")


# ------------------------------------------------------------------------------------------------------------- calendar
# What days and moments share: the ends of the calendar, ISO 8601 and formats of dates, conditions as strings.


LATEST_DAY, EARLIEST_DAY = 2_932_896, -719_162  # 9999-12-31 and 0001-01-01, the ends of the calendar
MONDAY = date(2000, 1, 3)  # from which steps are counted where nothing else says so
_NUMERIC_DAY = re.compile(r"\d{1,4}([./-])\d{1,2}\1\d{1,4}")


@dataclass(frozen=True, slots=True, repr=False)
class Calendar(Stepped):
    """A column whose values lie in a calendar."""

    _reach: ClassVar[str] = "the years 1 to 9999"
    _fits_array: ClassVar[bool] = False

    def _remedy(self, group: Group) -> str | None:
        if group in ("float", "whole"):
            return "convert the numbers to dates first (pandas: pd.to_datetime(...))"
        return None

    def _from_rungs(self, low: float, high: float) -> tuple[Any, Any]:
        """Both ends as logical values, moved into the days that a calendar has."""
        earliest, latest = self._span
        low, high = (min(max(end, earliest), latest) for end in (low, high))
        return self.logical(low), self.logical(high)

    def _cause(self, text: str, spelling: Spelling) -> str:
        text, date_format = text.strip(), spelling.date_format
        zone = self._zone_cause(text, date_format)
        if zone:
            return zone
        if date_format is not None:
            return f"it does not match date_format={date_format!r}, or there is no such day"
        found = _NUMERIC_DAY.match(text)
        if found and not re.match(r"\d{4}-", text):
            mark = found[1]
            time = " %H:%M" if ":" in text else ""
            year = "%Y" if re.search(r"\d{4}", found[0]) else "%y"
            order = f"%Y{mark}%m{mark}%d" if re.match(r"\d{4}", text) else f"%d{mark}%m{mark}{year}"
            first = "" if order.startswith("%Y") else ", with %m before %d where months come first"
            stated = option("date_format", order + time)
            return f"it is not ISO 8601 (2024-01-31); state the format, such as {stated}{first}"
        return (
            "it is not a date of ISO 8601 (2024-01-31), or there is no such day; for another spelling state "
            f"{option('date_format', '%d/%m/%Y')}"
        )

    def _zone_cause(self, text: str, date_format: str | None) -> str | None:
        """What is wrong if the string is a timestamp that has an offset and should not, or the other way round."""
        try:
            moment = datetime.fromisoformat(text) if date_format is None else datetime.strptime(text, date_format)
        except ValueError:
            return None
        return self._zone_mismatch(is_aware=moment.tzinfo is not None)

    @abstractmethod
    def _zone_mismatch(self, *, is_aware: bool) -> str | None:
        """What is wrong with a moment that has, or lacks, an offset."""

    def _condition_number(self, value: Any, name: str) -> int | float:
        if not isinstance(value, (str, date, np.datetime64)):
            raise self._wrong_type(value, name)
        if isinstance(value, np.datetime64) or getattr(value, "nanosecond", 0) != 0:
            raise ParameterError(f"where: column {name!r}: {value!r} is finer than a microsecond; round it")
        return self._parsed_condition(self._as_declared(value), name)

    @abstractmethod
    def _as_declared(self, value: Any) -> Any:
        """A day where moments are meant, or a moment where days are, as what it means there; the rest as it is."""

    def _ticks_of_dates(self, axis: Any, zone: str | None) -> None:
        """Ticks of an axis in days since 1970."""
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator(tz=zone)  # type: ignore[no-untyped-call]
        axis.set_major_locator(locator)
        axis.set_major_formatter(ConciseDateFormatter(locator, tz=zone))  # type: ignore[no-untyped-call]


# ----------------------------------------------------------------------------------------------------------------- date
# Calendar days: whole days since 1970-01-01 underneath, in steps that are counted from `low` or from a Monday.


_EPOCH_DAY = date(1970, 1, 1)
_ISO = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_UNSETTLED = "the values have a time zone, so their day is ambiguous; convert them to days"


@dataclass(frozen=True, slots=True, repr=False)
class Date(Calendar):
    """A calendar day between two days, both included: `Date("2020-01-01", "2020-12-31")`.

    `multiple_of=7` says that only every seventh day occurs, counted from `low`: state the first of these days as `low`.
    Where the bounds are estimated privately, days are counted from a Monday (3 January 2000).

    Args:
        low: the first day, as an ISO string or a Python date.
        high: the last day.
        multiple_of: the step that the days come in, such as 7 for whole weeks.
        decimals: 0, since days are whole.
        bounds: "stated"; "private" to estimate low and high privately, using part of epsilon; or
            "from-data-not-private" to read them off the data, which voids the guarantee.
        nullable: whether values may be missing.
        bits: the resolution of the column, 2^bits cells; by default the synthesizer chooses.
    """

    type_name: ClassVar[str] = "date"
    _describes: ClassVar[frozenset[Group]] = frozenset({"date"})
    _compared_as: ClassVar[str | None] = "dates"
    _counted_from: ClassVar[str] = "low"
    _rungs: ClassVar[tuple[int, int]] = (0, 21)  # 2^21 days are 5,700 years
    _round_steps: ClassVar[tuple[int, ...]] = (7, 1)
    _counts_days: ClassVar[bool] = True
    _most_decimals: ClassVar[tuple[int, int]] = (0, 0)
    _spark_cast: ClassVar[str] = "for example with to_date(column, format)"
    _span: ClassVar[tuple[Any, Any]] = EARLIEST_DAY, LATEST_DAY
    _accepts: ClassVar[frozenset[Group]] = frozenset({"date", "datetime"})
    _spelling_remedy: ClassVar[str] = (
        "write days as YYYY-MM-DD, or convert the column first (pandas: pd.to_datetime(..., format=...))"
    )

    def parse(self, value: Any, name: str) -> date:
        if isinstance(value, str):
            try:
                value = date.fromisoformat(value)
            except ValueError:
                raise_alone(SchemaError(f"Date: {name}={brief(value)} is not a day like 2020-01-31"))
        if isinstance(value, datetime) or not isinstance(value, date):
            raise SchemaError(f"Date: {name}={brief(value)} is not a day like 2020-01-31")
        return value

    def physical(self, value: Any) -> int:
        return int((value - _EPOCH_DAY).days)

    def logical(self, number: Any) -> date:
        return _EPOCH_DAY + timedelta(days=int(number))

    def _parse_step(self, value: Any) -> Any:
        step = parse_number(value, "multiple_of", int, "Date")
        if not 1 <= step <= LATEST_DAY:
            raise SchemaError(f"Date: multiple_of={brief(value)} is not a number of days such as 7")
        return step

    @property
    def step(self) -> int:
        return self.multiple_of or 1

    @property
    def _phase(self) -> int:
        return int(((MONDAY if self.low is None else self.low) - _EPOCH_DAY).days)

    def _landmarks(self) -> tuple[list[int], ...]:
        return tuple([self.physical(day) for day in starts] for starts in month_starts(self.low, self.high))

    def _with_bounds(self, low: Any, high: Any) -> Self:
        """Steps are counted from `low`; a private bound says nothing of days, so it moves to a step from a Monday."""
        if self.bounds == "private" and self.multiple_of is not None:
            first = self._aligned(self.physical(self.parse(low, "low")), up=False)
            low = self.logical(first if first >= EARLIEST_DAY else first + self.step)
            high = max(low, self.parse(high, "high"))
        return Bounded._with_bounds(self, low, high)

    def _remedy(self, group: Group) -> str | None:
        if group == "zoned datetime":
            return "convert the column to days of one zone first (pandas: .dt.tz_localize(None))"
        return Calendar._remedy(self, group)

    @property
    def _arrow_type(self) -> Any:
        return pa.date32()

    def _converter(self) -> Callable[[Any], Any]:
        def day(value: Any) -> date:
            if isinstance(value, datetime):
                if value.tzinfo is not None:
                    raise InputError(_UNSETTLED)
                return value.date()
            if isinstance(value, np.datetime64):
                return value.astype("datetime64[D]").item()  # type: ignore[no-any-return]
            if not isinstance(value, date):
                raise InputError("some value is not a day")
            return value

        return day

    def _from_strings(self, strings: Any, spelling: Spelling = PLAIN) -> Any:
        return reading.dated_texts(strings, self, spelling, _ISO, n_characters=10)

    def _zone_mismatch(self, *, is_aware: bool) -> str | None:
        return "it has a time zone, so its day is ambiguous; write days without times" if is_aware else None

    def _read(self, values: Any) -> Physical:
        array = reading.within_calendar(
            reading.only((pa.types.is_date, pa.types.is_timestamp), reading.one_array(values))
        )
        if pa.types.is_timestamp(array.type):
            if array.type.tz is not None:
                raise InputError(_UNSETTLED)
            array = pc.floor_temporal(array, unit="day")
        return reading.with_mask(array.cast(pa.date32(), safe=False).cast(pa.int32()))

    def _from_spark(self, value: Any, kind: Any) -> Any:
        del kind
        return reading.functions_of(value).unix_date(value.cast("date")).cast("bigint")

    def _to_arrow(self, positions: NDArray[np.float64]) -> Any:
        return reading.whole_array(positions, self).cast(pa.int32()).cast(pa.date32())

    def _as_declared(self, value: Any) -> Any:
        is_midnight = isinstance(value, datetime) and value.tzinfo is None and value.time() == time.min
        return value.date() if is_midnight else value

    def _set_ticks(self, axis: Any) -> None:
        self._ticks_of_dates(axis, None)

    @classmethod
    def _template(cls, kind: Any, bounds: Callable[..., Sequence[str]]) -> list[str] | None:
        if not pa.types.is_date(kind):
            return None
        return ['type = "date"', *bounds("# low = 1900-01-01", "# high = 2099-12-31")]
