"""Whole numbers in bounds, of which `multiple_of` says the steps that they come in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from spinney.columns.base import LARGEST_WHOLE, PLAIN, Spelling
from spinney.columns.bounded import WITHOUT_SIGNS, Number, parse_number
from spinney.errors import SchemaError
from spinney.machine import lazily
from spinney.text import brief

if TYPE_CHECKING:
    import pyarrow as pa

    from spinney.columns import reading
    from spinney.columns.reading import Physical
else:
    pa, reading = lazily("pyarrow", "spinney.columns.reading")


WHOLE_REMEDY = f"write whole numbers as 1234{WITHOUT_SIGNS}"
WHOLE_CAST = 'for example with expr("try_cast(column AS bigint)")'


@dataclass(frozen=True, slots=True, repr=False)
class Integer(Number):
    """A whole number in low..high, both included; with `multiple_of=50`, one of 0, 50, 100, ... in there.

    Args:
        low: the smallest number.
        high: the largest number.
        multiple_of: the step that the numbers come in, counted from 0, such as 50.
        decimals: 0, or -3 where the numbers are whole thousands.
        bounds: "stated"; "private" to estimate low and high privately, using part of epsilon; or
            "from-data-not-private" to read them off the data, which voids the guarantee.
        nullable: whether values may be missing.
        bits: the resolution of the column, 2^bits cells; by default the synthesizer chooses.
    """

    type_name: ClassVar[str] = "integer"
    _largest: ClassVar[Any] = LARGEST_WHOLE
    _rungs: ClassVar[tuple[int, int]] = (0, 40)
    _most_decimals: ClassVar[tuple[int, int]] = (-9, 0)
    _spark_cast: ClassVar[str] = WHOLE_CAST
    _spelling_remedy: ClassVar[str] = WHOLE_REMEDY

    def parse(self, value: Any, name: str) -> int:
        number = int(parse_number(value, name, int, "Integer"))
        if abs(number) > LARGEST_WHOLE:
            raise SchemaError(f"Integer: {name}={brief(number)} is beyond ±2^61; use Real for numbers of this size")
        return number

    def physical(self, value: Any) -> int:
        return int(value)

    def logical(self, number: Any) -> int:
        return int(number)

    def _from_rungs(self, low: float, high: float) -> tuple[Any, Any]:
        # Rung edges are whole, and the upper edge itself belongs to the next rung.
        return Number._from_rungs(self, int(low), max(int(low), int(high) - 1))

    @property
    def step(self) -> int:
        return self.multiple_of or 1

    @property
    def _arrow_type(self) -> Any:
        return pa.int64()

    def _converter(self) -> Callable[[Any], Any]:
        return reading.whole

    def _from_strings(self, strings: Any, spelling: Spelling = PLAIN) -> Any:
        return reading.whole_texts(strings, self, spelling)

    def _read(self, values: Any) -> Physical:
        return reading.with_mask(reading.whole_numbers(values))

    @property
    def _complaint(self) -> str:
        return reading.NOT_WHOLE

    def _from_spark(self, value: Any, kind: Any) -> Any:
        return reading.plain(value, kind)

    @classmethod
    def _template(cls, kind: Any, bounds: Callable[..., Sequence[str]]) -> list[str] | None:
        if not pa.types.is_integer(kind):
            return None
        return [
            'type = "integer"',
            *bounds("# low = ", "# high = "),
            '# if the numbers are codes: type = "category" and values = [1, 2] or ["001", "002"]',
            '# if it names a row or a person: type = "identifier" and nothing else',
        ]
