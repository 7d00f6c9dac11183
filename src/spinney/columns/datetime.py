"""Days with a time of day, with or without a time zone: microseconds since 1970-01-01 underneath."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from spinney.columns.base import Bounded, show
from spinney.errors import SchemaError
from spinney.shown import brief

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


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
