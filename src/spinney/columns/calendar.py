"""What days and moments share: the ends of the calendar, ISO 8601 and formats of dates, conditions as strings."""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, ClassVar

from spinney.columns.spelling import Spelling, option
from spinney.columns.stepped import Stepped
from spinney.errors import ParameterError, SchemaError, raise_alone

if TYPE_CHECKING:
    from spinney.columns.dtypes import Group

LATEST_DAY, EARLIEST_DAY = 2_932_896, -719_162  # 9999-12-31 and 0001-01-01, the ends of the calendar
MONDAY = date(2000, 1, 3)  # from which steps are counted where nothing else says so
_NUMERIC_DAY = re.compile(r"\d{1,4}([./-])\d{1,2}\1\d{1,4}")


@dataclass(frozen=True, slots=True)
class Calendar(Stepped):
    """A column whose values lie in a calendar."""

    reach: ClassVar[str] = "the years 1 to 9999"

    @property
    def fits_array(self) -> bool:
        return False

    def remedy(self, group: Group) -> str | None:
        if group in ("float", "whole"):
            return "convert the numbers to dates first (pandas: pd.to_datetime(...))"
        return None

    def from_rungs(self, low: float, high: float) -> tuple[Any, Any]:
        """Both ends as logical values, moved into the days that a calendar has."""
        earliest, latest = self.span
        low, high = (min(max(end, earliest), latest) for end in (low, high))
        return self.logical(low), self.logical(high)

    def cause(self, text: str, spelling: Spelling) -> str:
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
        return self.zone_cause(is_aware=moment.tzinfo is not None)

    @abstractmethod
    def zone_cause(self, *, is_aware: bool) -> str | None:
        """What is wrong with a moment that has, or lacks, an offset."""

    def wanted(self, value: Any, name: str) -> int | float:
        import numpy as np

        if not isinstance(value, (str, date, np.datetime64)):
            raise self.unlike(value, name)
        if isinstance(value, np.datetime64) or getattr(value, "nanosecond", 0) != 0:
            raise ParameterError(f"where: column {name!r}: {value!r} is finer than a microsecond; round it")
        try:
            return self.physical(self.parse(self.as_declared(value), "where"))
        except SchemaError as err:
            raise_alone(ParameterError(f"where: column {name!r}: {err}"))

    @abstractmethod
    def as_declared(self, value: Any) -> Any:
        """A day where moments are meant, or a moment where days are, as what it means there; the rest as it is."""

    def from_option(self, text: str, *, name: str, option: str) -> Any:
        del name, option
        return text.strip()  # which `where` reads as it is

    def ticks_of_dates(self, axis: Any, zone: str | None) -> None:
        """Ticks of an axis in days since 1970."""
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator(tz=zone)  # type: ignore[no-untyped-call]
        axis.set_major_locator(locator)
        axis.set_major_formatter(ConciseDateFormatter(locator, tz=zone))  # type: ignore[no-untyped-call]
