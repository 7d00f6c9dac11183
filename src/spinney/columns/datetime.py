"""Days with a time of day, with or without a time zone: microseconds since 1970-01-01 underneath."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, ClassVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from spinney.columns.base import PLAIN, Spelling
from spinney.columns.bounded import CLOCK_STEPS, Stepped, microseconds_of, month_starts, parse_seconds
from spinney.columns.date import EARLIEST_DAY, LATEST_DAY, MONDAY, Calendar
from spinney.errors import InputError, SchemaError, raise_alone
from spinney.machine import lazily
from spinney.text import brief

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from spinney.columns import reading
    from spinney.columns.reading import Group, Physical
else:
    np, pa, reading = lazily("numpy", "pyarrow", "spinney.columns.reading")


_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_DAY = 86_400_000_000
_HOUR, _MINUTE, _SECOND = 3_600_000_000, 60_000_000, 1_000_000
_LOCAL_ISO = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$"
_ZONES_DIFFER = "the column and the schema do not agree on having a time zone"


@dataclass(frozen=True, slots=True, repr=False)
class Datetime(Calendar):
    """A date and time (timestamp) between two bounds, both included, to the microsecond.

    With `timezone` the table's column must be zone-aware and comes back in that zone; bounds without an offset are read
    in it. Without `timezone` both the column and the bounds are local times of no stated zone.

    `multiple_of` is in seconds: 3600 for whole hours. Steps are of equal length, counted from midnight of Monday,
    3 January 2000, in the column's zone; so whole hours are whole there, also where the zone is half an hour off, while
    steps of more than an hour move with the clock where there is summer time.

    Args:
        low: the earliest datetime, as an ISO string or a Python datetime.
        high: the latest.
        multiple_of: the step that the datetimes come in, in seconds, such as 3600.
        decimals: how many digits the seconds have after the point: 0 for whole seconds.
        timezone: the zone of the column, such as "Europe/Paris", where it has one.
        bounds: "stated"; "private" to estimate low and high privately, using part of epsilon; or
            "from-data-not-private" to read them off the data, which voids the guarantee.
        nullable: whether values may be missing.
        bits: the resolution of the column, 2^bits cells; by default the synthesizer chooses.
    """

    type_name: ClassVar[str] = "datetime"
    _describes: ClassVar[frozenset[Group]] = frozenset({"datetime", "zoned datetime"})
    _compared_as: ClassVar[str | None] = "datetimes"
    _counted_from: ClassVar[str] = "midnight"
    _rungs: ClassVar[tuple[int, int]] = (20, 57)  # microseconds from a second up to 4,500 years
    _round_steps: ClassVar[tuple[int, ...]] = CLOCK_STEPS
    _most_decimals: ClassVar[tuple[int, int]] = (0, 6)
    _spark_cast: ClassVar[str] = (
        "for example with to_timestamp_ntz(column, format), or with to_timestamp where the schema has a zone"
    )
    # A day inside the ends of the calendar, so that no time zone leads out of it.
    _span: ClassVar[tuple[Any, Any]] = (EARLIEST_DAY + 1) * _DAY, (LATEST_DAY - 1) * _DAY
    _drawn_scale: ClassVar[float] = 1 / _DAY

    timezone: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.timezone is not None:
            try:
                ZoneInfo(self.timezone)
            except (ZoneInfoNotFoundError, ValueError, OSError, TypeError):
                raise_alone(SchemaError(f"Datetime: timezone={brief(self.timezone)} is not a known zone like 'UTC'"))
        Stepped.__post_init__(self)

    def parse(self, value: Any, name: str) -> datetime:
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                raise_alone(
                    SchemaError(f"Datetime: {name}={brief(value)} is not a date and time like 2020-01-31T12:00:00")
                )
        if not isinstance(value, datetime):
            raise SchemaError(f"Datetime: {name}={brief(value)} is not a date and time like 2020-01-31T12:00:00")
        if self.timezone is None and value.tzinfo is not None:
            raise SchemaError(f"Datetime: {name}={value} has an offset; name the column's zone with timezone=...")
        if self.timezone is not None and value.tzinfo is None:
            value = value.replace(tzinfo=ZoneInfo(self.timezone))
        moment: datetime = value
        if self.timezone is not None:
            try:
                moment.astimezone(UTC), moment.astimezone(ZoneInfo(self.timezone))
            except (OverflowError, ValueError):
                raise_alone(
                    SchemaError(
                        f"Datetime: {name}={moment} is outside the years 1 to 9999 in {self.timezone} or in UTC; "
                        "move it a day inwards"
                    )
                )
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

    def _limit(self, number: int) -> Any:
        """A bound in a zone is kept in UTC, where no hour comes twice."""
        moment = self.logical(number)
        return moment if moment.tzinfo is None else moment.astimezone(UTC)

    def _parse_step(self, value: Any) -> Any:
        return parse_seconds(value, "Datetime")

    @property
    def step(self) -> int:
        return 1 if self.multiple_of is None else microseconds_of(self.multiple_of)

    @property
    def _phase(self) -> int:
        return self._midnight(MONDAY)

    def _landmarks(self) -> tuple[list[int], ...]:
        """First midnights of months, in the column's zone."""
        return tuple(
            [self._midnight(day) for day in starts] for starts in month_starts(self.low.date(), self.high.date())
        )

    def _midnight(self, day: date) -> int:
        zone = None if self.timezone is None else ZoneInfo(self.timezone)
        return self.physical(datetime.combine(day, time.min, tzinfo=zone))

    # ------------------------------------------------------------------------------------------------- reading

    @property
    def _accepts(self) -> frozenset[Group]:
        return frozenset({"datetime"}) if self.timezone is None else frozenset({"zoned datetime"})

    def _remedy(self, group: Group) -> str | None:
        if group == "zoned datetime":
            return 'name the zone in the schema, for example timezone="UTC"'
        if group == "datetime":
            return "leave timezone out of the schema, or give the column a zone (pandas: .dt.tz_localize(...))"
        return Calendar._remedy(self, group)

    @property
    def _arrow_type(self) -> Any:
        return pa.timestamp("us", self.timezone)

    def _converter(self) -> Callable[[Any], Any]:
        is_aware = self.timezone is not None

        def moment_of(value: Any) -> datetime:
            if isinstance(value, np.datetime64):
                value = value.astype("datetime64[us]").item()
            if not isinstance(value, datetime):
                raise InputError("some value is not a date and time")
            moment: Any = value
            if hasattr(moment, "to_pydatetime"):  # pandas counts nanoseconds, which its own conversion warns about
                moment = moment.floor("us").to_pydatetime()
            if (moment.tzinfo is not None) != is_aware:
                raise InputError(_ZONES_DIFFER)
            return moment.astimezone(UTC) if is_aware else moment  # type: ignore[no-any-return]

        return moment_of

    def _from_strings(self, strings: Any, spelling: Spelling = PLAIN) -> Any:
        pattern = _LOCAL_ISO if self.timezone is None else reading.NEVER
        return reading.dated_texts(strings, self, spelling, pattern, n_characters=None)

    @property
    def _spelling_remedy(self) -> str:
        form = "YYYY-MM-DDTHH:MM:SS" if self.timezone is None else "YYYY-MM-DDTHH:MM:SS+HH:MM"
        return f"write dates and times as {form}, or convert the column first (pandas: pd.to_datetime(..., format=...))"

    def _zone_mismatch(self, *, is_aware: bool) -> str | None:
        if is_aware and self.timezone is None:
            return 'it has a time zone, and the schema states none; state timezone = "UTC" or another in the schema'
        if not is_aware and self.timezone is not None:
            return (
                "it has no time zone, and the schema states one; write the offset as in 2024-01-31T12:00:00+01:00, "
                "or take timezone out of the schema"
            )
        return None

    def _read(self, values: Any) -> Physical:
        array = reading.only((pa.types.is_timestamp,), reading.one_array(values))
        if pa.types.is_timestamp(array.type) and (array.type.tz is None) != (self.timezone is None):
            raise InputError(_ZONES_DIFFER)
        return reading.with_mask(reading.within_calendar(array).cast(self._arrow_type, safe=False).cast(pa.int64()))

    def _from_spark(self, value: Any, kind: Any) -> Any:
        """No time zone may move local times, so they are taken apart."""
        functions = reading.functions_of(value)
        if kind.typeName() == "timestamp":
            return functions.unix_micros(value)
        seconds = functions.extract(functions.lit("SECOND"), value)  # a decimal of six digits
        return (
            functions.unix_date(value.cast("date")).cast("bigint") * _DAY
            + functions.hour(value).cast("bigint") * _HOUR
            + functions.minute(value).cast("bigint") * _MINUTE
            + (seconds * _SECOND).cast("bigint")
        )

    # ------------------------------------------------------------------------------------ writing and asking

    def _as_declared(self, value: Any) -> Any:
        is_day = isinstance(value, date) and not isinstance(value, datetime)
        return datetime.combine(value, time.min) if is_day else value

    def _set_ticks(self, axis: Any) -> None:
        self._ticks_of_dates(axis, self.timezone)

    @classmethod
    def _template(cls, kind: Any, bounds: Callable[..., Sequence[str]]) -> list[str] | None:
        if not pa.types.is_timestamp(kind):
            return None
        zone = [] if kind.tz is None else [f'timezone = "{_known_zone(kind.tz)}"']
        return ['type = "datetime"', *zone, *bounds("# low = 1900-01-01T00:00:00", "# high = 2099-12-31T23:59:59")]


def _known_zone(zone: str) -> str:
    """The zone itself, or UTC for a bare offset: moments are the same in every zone."""
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return "UTC"
    return zone
