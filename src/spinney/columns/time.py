"""Times of day, of no day and no zone: microseconds since midnight underneath."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from typing import TYPE_CHECKING, Any, ClassVar

from spinney.columns.base import PLAIN, Spelling
from spinney.columns.bounded import CLOCK_STEPS, Stepped, microseconds_of, parse_seconds
from spinney.errors import InputError, SchemaError, raise_alone
from spinney.machine import lazily
from spinney.text import brief

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

    from spinney.columns import reading
    from spinney.columns.reading import Group, Physical
else:
    pa, pc, reading = lazily("pyarrow", "pyarrow.compute", "spinney.columns.reading")


_DAY = 86_400_000_000
_HOUR, _MINUTE, _SECOND = 3_600_000_000, 60_000_000, 1_000_000
_CLOCK = r"(?P<h>[01][0-9]|2[0-3]):(?P<m>[0-5][0-9])(?::(?P<s>[0-5][0-9])(?:\.(?P<f>[0-9]{1,6}))?)?"
_PLAIN = rf"^(?:{_CLOCK})$"
# What Python strips, in the words of Java and of Arrow.
_BLANK = r"[\s\p{Z}\x1c-\x1f\x85]*"
_MIDNIGHTS = ("24:00", "24:00:00")  # the end of a day, as a bound
_LOOKS = "08:30 or 08:30:15.5"
_DAY_DIRECTIVES = re.compile(r"%[aAbBcdDjmUuVwWxyYGz]")


@dataclass(frozen=True, slots=True, repr=False)
class Time(Stepped):
    """A time of day between two times, both included, to the microsecond: `Time("08:00", "18:00")`.

    Without bounds it may be any time of day, which is public knowledge. `multiple_of` counts seconds from midnight:
    `Time(multiple_of=900)` is a quarter of an hour. "24:00" as a bound is the last microsecond of the day.

    Args:
        low: the earliest time, as a string such as "08:00" or a Python time; by default midnight.
        high: the latest time; by default the last microsecond of the day.
        multiple_of: the step that the times come in, in seconds from midnight, such as 900.
        decimals: how many digits the seconds have after the point: 0 for whole seconds.
        bounds: "stated"; "private" to estimate low and high privately, using part of epsilon; or
            "from-data-not-private" to read them off the data, which voids the guarantee.
        nullable: whether values may be missing.
        bits: the resolution of the column, 2^bits cells; by default the synthesizer chooses.
    """

    type_name: ClassVar[str] = "time"
    _describes: ClassVar[frozenset[Group]] = frozenset({"time"})
    _compared_as: ClassVar[str | None] = "times"
    _widest: ClassVar[tuple[Any, Any] | None] = (time.min, time.max)
    _counted_from: ClassVar[str] = "midnight"
    _rungs: ClassVar[tuple[int, int]] = (20, 36)  # microseconds from a second up to a day
    _reach: ClassVar[str] = "a day"
    _round_steps: ClassVar[tuple[int, ...]] = CLOCK_STEPS
    _most_decimals: ClassVar[tuple[int, int]] = (0, 6)
    _spark_cast: ClassVar[str] = "for example with date_format(column, 'HH:mm:ss.SSSSSS')"
    _span: ClassVar[tuple[Any, Any]] = 0, _DAY - 1
    _accepts: ClassVar[frozenset[Group]] = frozenset({"time"})
    _fits_array: ClassVar[bool] = False
    _spelling_remedy: ClassVar[str] = (
        "write times of day as HH:MM or HH:MM:SS, or convert the column first (pandas: .dt.time)"
    )
    _spark_types: ClassVar[frozenset[str]] = frozenset({"string", "char", "varchar"})
    _drawn_scale: ClassVar[float] = 1 / _HOUR

    def parse(self, value: Any, name: str) -> time:
        if isinstance(value, str):
            text = value.strip()
            try:
                value = time.max if name != "low" and text in _MIDNIGHTS else _clock(text)
            except ValueError:
                raise_alone(SchemaError(f"Time: {name}={brief(value)} is not a time of day like {_LOOKS}"))
        if not isinstance(value, time):
            raise SchemaError(f"Time: {name}={brief(value)} is not a time of day like {_LOOKS}")
        if value.tzinfo is not None:
            raise SchemaError(f"Time: {name}={value} has an offset; a time of day has none")
        return value.replace(fold=0)

    def _parse_step(self, value: Any) -> Any:
        step = parse_seconds(value, "Time")
        if step > _DAY / _SECOND:
            raise SchemaError(f"Time: multiple_of={brief(value)} is more than a day has; give a number of seconds")
        return step

    def physical(self, value: Any) -> int:
        return int(value.hour * _HOUR + value.minute * _MINUTE + value.second * _SECOND + value.microsecond)

    def logical(self, number: Any) -> time:
        seconds, microsecond = divmod(int(number), _SECOND)
        minutes, second = divmod(seconds, 60)
        return time(*divmod(minutes, 60), second, microsecond)

    @property
    def step(self) -> int:
        return 1 if self.multiple_of is None else microseconds_of(self.multiple_of)

    def _from_rungs(self, low: float, high: float) -> tuple[Any, Any]:
        least, most = (int(min(max(end, 0), _DAY - 1)) for end in (low, high))
        return self.logical(least), self.logical(most)

    # ------------------------------------------------------------------------------------------------- reading

    def _remedy(self, group: Group) -> str | None:
        if group in ("datetime", "zoned datetime"):
            spark = "Spark: date_format(column, 'HH:mm:ss.SSSSSS')"
            return f"convert the column to times of day first (pandas: .dt.time; {spark}), or describe it as Datetime"
        if group in ("float", "whole"):
            return "convert the numbers to times of day first (pandas: pd.to_datetime(..., unit='s').dt.time)"
        return None

    @property
    def _arrow_type(self) -> Any:
        return pa.time64("us")

    def _converter(self) -> Callable[[Any], Any]:
        return _time_of

    def _from_strings(self, strings: Any, spelling: Spelling = PLAIN) -> Any:
        own = spelling.date_format
        if own is not None and _DAY_DIRECTIVES.search(own):
            own = None  # the format of the dates beside it
        array = reading.without_missing(strings, self)
        values = self._plain(array, is_own=own is not None)
        is_plain = pc.or_(values.is_valid(), array.is_null())
        return reading.parse_each(
            array, self, is_plain, values, _clock if own is None else lambda text: datetime.strptime(text, own).time()
        )

    def _plain(self, array: Any, *, is_own: bool) -> Any:
        """What Arrow can take apart: times in ISO form, unless another format was stated; null elsewhere."""
        if is_own:
            return pa.nulls(len(array), self._arrow_type)
        parts = pc.extract_regex(array, _PLAIN)

        def digits(name: str, width: int) -> Any:
            return pc.utf8_rpad(pc.struct_field(parts, name), width, padding="0").cast(pa.int64())

        total = pc.multiply(digits("h", 2), _HOUR)
        for name, width, unit in (("m", 2, _MINUTE), ("s", 2, _SECOND), ("f", 6, 1)):
            total = pc.add(total, pc.multiply(digits(name, width), unit))
        return total.cast(self._arrow_type)

    def _cause(self, text: str, spelling: Spelling) -> str:
        own = spelling.date_format
        if own is not None and not _DAY_DIRECTIVES.search(own):
            return f"it does not match date_format={own!r}, or there is no such time"
        if re.search(r"[0-9]-[0-9]", text):
            return "it has a day; write times of day alone, or describe the column as Datetime"
        if re.search(r"[+-][0-9]|Z$", text.strip(), re.IGNORECASE):
            return "it has an offset; a time of day has none"
        return f"it is not a time of day like {_LOOKS}, from 00:00 to 23:59:59.999999"

    def _read(self, values: Any) -> Physical:
        array = reading.only((pa.types.is_time,), reading.one_array(values))
        found = reading.with_mask(array.cast(self._arrow_type, safe=False).cast(pa.int64()))
        if ((found.values < 0) | (found.values >= _DAY)).any():  # which Arrow allows, and no clock has
            raise InputError(self._complaint)
        return found

    def _from_spark(self, value: Any, kind: Any) -> Any:
        """Strings, as everywhere else; what is none becomes a half, to be refused."""
        del kind
        functions = reading.functions_of(value)
        text = value.cast("string")
        pattern = f"^{_BLANK}{re.sub('[?]P<[a-z]>', '', _CLOCK)}{_BLANK}$"

        def digits(group: int, width: int) -> Any:
            return functions.rpad(functions.regexp_extract(text, pattern, group), width, "0").cast("bigint")

        total = digits(1, 2) * _HOUR + digits(2, 2) * _MINUTE + digits(3, 2) * _SECOND + digits(4, 6)
        missing = functions.lit(None).cast("decimal(20,1)")
        read = functions.when(text.rlike(pattern), total.cast("decimal(20,1)"))
        half = functions.lit(0.5).cast("decimal(20,1)")
        return functions.when(text.isNull() | text.isin(*reading.MISSING), missing).otherwise(read.otherwise(half))

    # ------------------------------------------------------------------------------------ writing and asking

    def _condition_number(self, value: Any, name: str) -> int | float:
        if not isinstance(value, (str, time)):
            raise self._wrong_type(value, name)
        return self._parsed_condition(value, name)

    def _set_ticks(self, axis: Any) -> None:
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        def clock(hours: float, _: Any) -> str:
            minutes = round(hours * 60)
            return f"{minutes // 60:02}:{minutes % 60:02}"

        axis.set_major_locator(MaxNLocator(steps=[1, 2, 3, 4, 6, 10]))
        axis.set_major_formatter(FuncFormatter(clock))

    @classmethod
    def _template(cls, kind: Any, bounds: Callable[..., Sequence[str]]) -> list[str] | None:
        del bounds  # which every clock has
        return ['type = "time"', "# low = 00:00:00", "# high = 23:59:59.999999"] if pa.types.is_time(kind) else None


def _clock(text: str) -> time:
    """A time of day in ISO form; ValueError of anything else, such as an offset."""
    found = re.fullmatch(_CLOCK, text)
    if found is None:
        raise ValueError("not a time of day")
    return time.fromisoformat(text if found["f"] is None else text.ljust(15, "0"))


def _time_of(value: Any) -> time:
    if not isinstance(value, time):
        raise InputError("some value is not a time of day")
    if value.tzinfo is not None:
        raise InputError("the values have an offset, and a time of day has none; take it away")
    return value
