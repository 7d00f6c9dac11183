"""Calendar days: whole days since 1970-01-01 underneath."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Self

from spinney.columns.base import show
from spinney.columns.bounded import Bounded, parse_number
from spinney.columns.calendar import EARLIEST_DAY, LATEST_DAY, MONDAY, Calendar
from spinney.columns.clock import month_starts
from spinney.columns.spelling import PLAIN, Spelling
from spinney.errors import InputError, SchemaError, raise_alone
from spinney.shown import brief

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from spinney.columns.dtypes import Group
    from spinney.columns.physical import Physical

_EPOCH_DAY = date(1970, 1, 1)
_ISO = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_UNSETTLED = "the values have a time zone, so their day is ambiguous; convert them to days"


@dataclass(frozen=True, slots=True)
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
    describes: ClassVar[frozenset[Group]] = frozenset({"date"})
    compared_as: ClassVar[str | None] = "dates"
    counted_from: ClassVar[str] = "low"
    rungs: ClassVar[tuple[int, int]] = (0, 21)  # 2^21 days are 5,700 years
    round_steps: ClassVar[tuple[int, ...]] = (7, 1)
    most_decimals: ClassVar[tuple[int, int]] = (0, 0)
    spark_cast: ClassVar[str] = "for example with to_date(column, format)"

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

    @property
    def span(self) -> tuple[Any, Any]:
        return EARLIEST_DAY, LATEST_DAY

    def parse_step(self, value: Any) -> Any:
        step = parse_number(value, "multiple_of", int, "Date")
        if not 1 <= step <= LATEST_DAY:
            raise SchemaError(f"Date: multiple_of={brief(value)} is not a number of days such as 7")
        return step

    @property
    def step(self) -> int:
        return self.multiple_of or 1

    @property
    def phase(self) -> int:
        return self.physical(MONDAY if self.low is None else self.low)

    def landmarks(self) -> tuple[list[int], ...]:
        return tuple([self.physical(day) for day in starts] for starts in month_starts(self.low, self.high))

    def with_bounds(self, low: Any, high: Any) -> Self:
        """Steps are counted from `low`; a private bound says nothing of days, so it moves to a step from a Monday."""
        if self.bounds == "private" and self.multiple_of is not None:
            first = self.aligned(self.physical(self.parse(low, "low")), up=False)
            low = self.logical(first if first >= EARLIEST_DAY else first + self.step)
            high = max(low, self.parse(high, "high"))
        return Bounded.with_bounds(self, low, high)

    @property
    def accepts(self) -> frozenset[Group]:
        return frozenset({"date", "datetime"})

    def remedy(self, group: Group) -> str | None:
        if group == "zoned datetime":
            return "convert the column to days of one zone first (pandas: .dt.tz_localize(None))"
        return Calendar.remedy(self, group)

    @property
    def arrow_type(self) -> Any:
        import pyarrow as pa

        return pa.date32()

    def converter(self) -> Callable[[Any], Any]:
        import numpy as np

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

    def from_strings(self, strings: Any, spelling: Spelling = PLAIN) -> Any:
        from spinney.columns.texts import dated_texts

        return dated_texts(strings, self, spelling, _ISO, n_characters=10)

    @property
    def spelling_remedy(self) -> str:
        return "write days as YYYY-MM-DD, or convert the column first (pandas: pd.to_datetime(..., format=...))"

    def zone_cause(self, *, is_aware: bool) -> str | None:
        return "it has a time zone, so its day is ambiguous; write days without times" if is_aware else None

    def read(self, values: Any) -> Physical:
        import pyarrow as pa
        import pyarrow.compute as pc

        from spinney.columns.arrow import one_array, only, with_mask, within_calendar

        array = within_calendar(only((pa.types.is_date, pa.types.is_timestamp), one_array(values)))
        if pa.types.is_timestamp(array.type):
            if array.type.tz is not None:
                raise InputError(_UNSETTLED)
            array = pc.floor_temporal(array, unit="day")
        return with_mask(array.cast(pa.date32(), safe=False).cast(pa.int32()))

    def from_spark(self, value: Any, kind: Any) -> Any:
        from spinney.columns.spark import functions_of

        del kind
        return functions_of(value).unix_date(value.cast("date")).cast("bigint")

    def to_arrow(self, positions: NDArray[np.float64]) -> Any:
        import pyarrow as pa

        from spinney.columns.steps import whole_array

        return whole_array(positions, self).cast(pa.int32()).cast(pa.date32())

    def as_declared(self, value: Any) -> Any:
        is_midnight = isinstance(value, datetime) and value.tzinfo is None and value.time() == time.min
        return value.date() if is_midnight else value

    def set_ticks(self, axis: Any) -> None:
        self.ticks_of_dates(axis, None)

    @classmethod
    def template(cls, kind: Any, bounds: Callable[..., Sequence[str]]) -> list[str] | None:
        from pyarrow import types

        if not types.is_date(kind):
            return None
        return ['type = "date"', *bounds("# low = 1900-01-01", "# high = 2099-12-31")]

    def __repr__(self) -> str:
        return show(self)
