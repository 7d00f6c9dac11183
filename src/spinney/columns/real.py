"""Real numbers: floats underneath, in bounds, of which `multiple_of` says the steps that they come in."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from spinney.columns.base import PLAIN, AxisKind, Spelling
from spinney.columns.bounded import WITHOUT_SIGNS, Number, exact, parse_number
from spinney.machine import lazily

if TYPE_CHECKING:
    import narwhals as nw
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    from numpy.typing import NDArray

    from spinney.columns import reading
    from spinney.columns.reading import Reading
else:
    np, pa, pc, reading = lazily("numpy", "pyarrow", "pyarrow.compute", "spinney.columns.reading")


@dataclass(frozen=True, slots=True, repr=False)
class Real(Number):
    """A real number in [low, high]. Values outside are moved to the nearer bound.

    >>> Real(-9, 3)
    Real(low=-9.0, high=3.0)
    >>> Real(0, 100, multiple_of=0.25)
    Real(low=0.0, high=100.0, multiple_of=0.25)

    Args:
        low: the smallest number.
        high: the largest number.
        multiple_of: the step that the numbers come in, counted from 0, such as 0.01.
        decimals: how many digits the numbers have after the point, such as 2 for cents; -3 for whole thousands.
        bounds: "stated"; "private" to estimate low and high privately, using part of epsilon; or
            "from-data-not-private" to read them off the data, which voids the guarantee.
        nullable: whether values may be missing.
        bits: the resolution of the column, 2^bits cells; by default the synthesizer chooses.
    """

    type_name: ClassVar[str] = "real"
    _axis_kind: ClassVar[AxisKind] = "real"
    _needs_length: ClassVar[bool] = True
    _largest: ClassVar[Any] = sys.float_info.max
    _rungs: ClassVar[tuple[int, int]] = (-20, 40)  # from a millionth up
    _most_decimals: ClassVar[tuple[int, int]] = (-9, 15)
    _spark_cast: ClassVar[str] = 'for example with expr("try_cast(column AS double)")'
    _spelling_remedy: ClassVar[str] = f"write numbers as 1234.5{WITHOUT_SIGNS}"

    def parse(self, value: Any, name: str) -> float:
        return float(parse_number(value, name, float, "Real"))

    def physical(self, value: Any) -> float:
        return float(value)

    def logical(self, number: Any) -> float:
        return float(number)

    def _from_extremes(self, low: Any, high: Any) -> tuple[Any, Any]:
        return (low - 0.5, high + 0.5) if low == high else (self.logical(low), self.logical(high))

    @property
    def spacing(self) -> Fraction | None:
        return None if self.multiple_of is None else exact(self.multiple_of)

    @property
    def _arrow_type(self) -> Any:
        return pa.float64()

    @property
    def _csv_type(self) -> Any:
        return self._arrow_type

    def _converter(self) -> Callable[[Any], Any]:
        return reading.real

    def _from_strings(self, strings: Any, spelling: Spelling = PLAIN) -> Any:
        del spelling  # a CSV's numbers are read by Arrow, with the decimal mark that was stated
        return pc.ascii_trim_whitespace(reading.without_missing(strings, self)).cast(self._arrow_type)

    def _read(self, values: Any) -> reading.Physical:
        return reading.Physical(reading.floats(values))

    def _expression(self, value: nw.Expr, dtype: Any, *, place: nw.Expr | None = None) -> Reading:
        del place
        return reading.real_expression(value, dtype)

    def _from_spark(self, value: Any, kind: Any) -> Any:
        return value.cast("double") if kind.typeName() == "decimal" else value

    def _whole_range(self) -> tuple[int, int] | None:
        return None

    def _to_positions(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.clip(numbers, self.low, self.high)

    def _to_floats(self, positions: NDArray[np.float64]) -> NDArray[np.float64]:
        values = self._to_positions(positions)
        return values if self.multiple_of is None else reading.nearest_multiples(values, self)

    def _to_arrow(self, positions: NDArray[np.float64]) -> Any:
        return pa.array(self._to_floats(positions), mask=np.isnan(positions) if self.nullable else None)

    def _leaf_ends(self, low: NDArray[np.float64], length: NDArray[np.float64]) -> list[tuple[Any, Any]]:
        """The high end is not in the leaf, unless there are steps."""
        first, last = self._to_positions(low), self._to_positions(low + length)
        if self.multiple_of is not None:
            # Cells lie around multiples, and so do leaves: a quarter of a step leads inside.
            first = reading.nearest_multiples(low + self.multiple_of / 4, self)
            last = reading.nearest_multiples(low + length - self.multiple_of / 4, self)
        return list(zip(first.tolist(), last.tolist(), strict=True))

    def _drawn_range(self) -> tuple[float, float]:
        return self.low, self.high

    @classmethod
    def _template(cls, kind: Any, bounds: Callable[..., Sequence[str]]) -> list[str] | None:
        if not (pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
            return None
        return ['type = "real"', *bounds("# low = ", "# high = ")]
