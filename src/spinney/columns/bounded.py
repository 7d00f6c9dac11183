"""Columns with a low and a high end, which are stated, paid for, or read off the data.

`has_bounds` says whether they are there yet. A column keeps them in its own terms (a date as a date) and converts by
`physical` and `logical`. What is whole underneath counts in `step`s, which `phase` is one of: 1 and 0 unless stated.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from spinney.columns.base import AxisKind, Column
from spinney.errors import ParameterError, SchemaError, raise_alone
from spinney.shown import brief

if TYPE_CHECKING:
    import narwhals as nw
    import numpy as np
    from numpy.typing import NDArray

    from spinney.columns.expressions import Reading

BoundsSource = Literal["stated", "private", "from-data-not-private"]
BOUNDS_SOURCES = ("stated", "private", "from-data-not-private")


@dataclass(frozen=True, slots=True)
class Bounded(Column):
    """A column with a low and a high end, both included."""

    axis_kind: ClassVar[AxisKind] = "integer"
    needs_length: ClassVar[bool] = False  # whether one possible value is too few
    rungs: ClassVar[tuple[int, int]]  # the magnitudes among which bounds are paid for, as powers of two
    reach: ClassVar[str] = "what a column of its type can hold"  # which bounds are possible at all
    spans_decades: ClassVar[bool] = False  # whether round values are those of few digits
    round_steps: ClassVar[tuple[int, ...]] = ()  # otherwise: physical numbers whose multiples are round, longest first
    widest: ClassVar[tuple[Any, Any] | None] = None  # bounds that hold whatever is in the table, where there are any

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
        if self.bounds == "stated" and self.widest is not None:
            for name, end in zip(("low", "high"), self.widest, strict=True):
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
        if self.low > self.high or (self.needs_length and self.low == self.high):
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

    def with_bounds(self, low: Any, high: Any) -> Self:
        """The same column with bounds filled in; remembers where they came from."""
        if self.bounds == "private":
            # A paid-for bound is released, hence public from here on.
            return replace(self, low=low, high=high, bounds="stated")
        return replace(self, low=low, high=high)

    def to_dict(self) -> dict[str, Any]:
        described = Column.to_dict(self)
        if self.has_bounds and (self.bounds != "stated" or (self.low, self.high) != self.widest):
            described |= {"low": self.low, "high": self.high}
        if self.bounds != "stated":
            described["bounds"] = self.bounds
        return described

    # ------------------------------------------------------------------------------------------ bounds to be found

    @abstractmethod
    def from_rungs(self, low: float, high: float) -> tuple[Any, Any]:
        """Bounds from the outer edges of the rungs that values were found between."""

    def from_extremes(self, low: Any, high: Any) -> tuple[Any, Any]:
        """Bounds from the smallest and the largest physical number."""
        return self.logical(low), self.logical(high)

    def limit(self, number: int) -> Any:
        """A physical number as a bound of the column."""
        return self.logical(number)

    # ------------------------------------------------------------------------------------------------------- steps

    @property
    def phase(self) -> int:
        """A physical number that steps are counted from."""
        return 0

    def landmarks(self) -> tuple[list[int], ...]:
        """Physical numbers that begin something in the column's calendar, the longest first; most kinds have none."""
        return ()

    def aligned(self, number: Any, *, up: bool) -> Any:
        """The nearest physical number in steps that is not below (`up`) or not above a number; of arrays too."""
        step = self.step if self.is_whole else self.spacing
        if step is None or (step == 1 and isinstance(number, int)):
            return number
        return number + (self.phase - number) % step if up else number - (number - self.phase) % step

    def first_and_last(self) -> tuple[Any, Any]:
        """The smallest and the largest physical number in steps inside the bounds."""
        low, high = (self.physical(end) for end in (self.low, self.high))
        return self.aligned(low, up=True), self.aligned(high, up=False)

    def ends(self) -> tuple[Fraction, Fraction]:
        """The same as exact numbers."""
        first, last = self.first_and_last()
        return exact(first), exact(last)

    # ----------------------------------------------------------------------------------------------- cells and back

    def whole_range(self) -> tuple[int, int] | None:
        (first, last), half = self.first_and_last(), self.step // 2
        return first - half, last + self.step - 1 - half

    def reading(self, value: nw.Expr, dtype: Any, *, place: nw.Expr | None = None) -> Reading:
        from spinney.columns import expressions

        del place
        return expressions.whole(value, dtype)

    def to_positions(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        from spinney.columns.steps import whole_positions

        return whole_positions(numbers, self)

    def leaf_ends(self, low: NDArray[np.float64], length: NDArray[np.float64]) -> list[tuple[Any, Any]]:
        from spinney.columns.steps import whole_ends

        return [(self.logical(first), self.logical(last)) for first, last in whole_ends(low, length, self)]

    # ------------------------------------------------------------------------------------ conditions and pictures

    @abstractmethod
    def wanted(self, value: Any, name: str) -> int | float:
        """What a condition asks for as a physical number; a ParameterError names the column where that is nothing."""

    def unlike(self, value: Any, name: str, hint: str = "") -> ParameterError:
        """The error for a value of another kind."""
        from spinney.columns.conditions import shown

        return ParameterError(f"where: column {name!r} is of type {self.type_name}, which {shown(value)} is not{hint}")

    def drawn_range(self) -> tuple[float, float]:
        first, last = whole_range(self)
        return first * self.drawn_scale, (last + 1) * self.drawn_scale

    def set_ticks(self, axis: Any) -> None:
        del axis


def whole_range(column: Column) -> tuple[int, int]:
    """The physical range of a column that is whole numbers underneath; in steps, all that rounds to its multiples."""
    found = column.whole_range()
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
