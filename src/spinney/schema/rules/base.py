"""The questions that every kind of rule answers, and the sets of values that rules and conditions speak of.

    stated conditions                    values, ranges and null, as Python and TOML state them
    sets                                 ranges of physical numbers, with unions and complements that are exact
    conditions on a kind of column       a stated condition as a set of one column's numbers
    rules                                `Rule` and `Derivation`: columns, checks, rows that obey

Floats are an ordered list of numbers like any other, so the number after the end of a range is known for every
column, and complements are exact.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, time
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from spinney.columns import Bounded, Category, Column, Identifier
from spinney.columns.base import check_characters
from spinney.errors import SchemaError
from spinney.machine import lazily
from spinney.text import brief, did_you_mean

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray
else:
    (np,) = lazily("numpy")


# ---------------------------------------------------------------------------------------------------- stated conditions
# Conditions as rules and users state them: values, ranges with both ends, null.
#
#     "never"                  one value
#     (0, 14)                  a range, both ends included; None where it has no end
#     ["never", (3, 5), None]  any of these; None is null
#
# TOML has neither tuples nor null, so there a range is `{ low = 0, high = 14 }` and null is `{ null = true }`.


Number = int | float

_BEYOND = 2**62  # all whole numbers that a column can have lie within this


class Span(NamedTuple):
    """A range of values as it was stated, both ends included; None where it has no end."""

    low: Any
    high: Any


# A condition as it is kept: any of these holds. None is null.
Condition = tuple[Any, ...]
# The values of a list, with their types, and where they stand.
Places = dict[tuple[type, Any], int]


def parse_condition(stated: Any, about: str) -> Condition:
    """What was stated of a column as alternatives; a SchemaError that begins with `about` where it makes no sense."""
    if isinstance(stated, (list, set, frozenset)):
        parts = [parse_condition(part, about) for part in stated]
        if not parts:
            raise SchemaError(f"{about}: the list of values is empty; list a value, or leave the column out")
        if any(isinstance(part, (list, set, frozenset)) for part in stated):
            raise SchemaError(f"{about}: a list of values holds another list; write a range as a tuple (low, high)")
        return tuple(alternative for part in parts for alternative in part)
    if isinstance(stated, tuple) and not isinstance(stated, Span):
        if len(stated) != 2:
            raise SchemaError(f"{about}: a range is (low, high), not {brief(stated)}; write several values as a list")
        return (_span(*stated, about),)
    if isinstance(stated, Mapping):
        if set(stated) == {"null"} and stated["null"] is True:
            return (None,)
        if not stated or not set(stated) <= {"low", "high"}:
            raise SchemaError(f"{about}: a table is a range {{ low = 0, high = 14 }} or {{ null = true }}")
        return (_span(stated.get("low"), stated.get("high"), about),)
    return (_plain(stated, about),)


def _span(low: Any, high: Any, about: str) -> Span:
    if low is None and high is None:
        raise SchemaError(f"{about}: a range without ends says nothing; leave the column out, or state an end")
    return Span(*(None if end is None else _plain(end, about) for end in (low, high)))


def _plain(value: Any, about: str) -> Any:
    """A value in Python's own types."""
    if value is None:
        return None
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        value = value.item()
    if not isinstance(value, (str, int, float, bool, date, time)) or (isinstance(value, float) and math.isnan(value)):
        raise SchemaError(f"{about}: {brief(value)} is not a value, a range (low, high), a list of these, or None")
    check_characters([value], f"{about}: ")
    return value


def described(condition: Condition) -> Any:
    """A condition as plain data for TOML and JSON."""
    parts = [_described(part) for part in condition]
    return parts[0] if len(parts) == 1 else parts


def _described(part: Any) -> Any:
    if part is None:
        return {"null": True}
    if isinstance(part, Span):
        return {name: end for name, end in zip(("low", "high"), part, strict=True) if end is not None}
    return part


def shown(condition: Condition) -> Any:
    """A condition as it is written in Python."""
    parts = [tuple(part) if isinstance(part, Span) else part for part in condition]
    return parts[0] if len(parts) == 1 else parts


# ----------------------------------------------------------------------------------------------------------------- sets
# A set is kept as ranges of physical numbers, of which both ends belong to it. What comes next after the end of
# a range is known of every column, floats included, so complements are exact.


@dataclass(frozen=True, slots=True)
class ValueSet:
    """Closed ranges of physical numbers, ascending and apart from each other, and whether null is in the set."""

    ranges: tuple[tuple[Number, Number], ...] = ()
    has_null: bool = False

    @property
    def is_empty(self) -> bool:
        return not (self.ranges or self.has_null)

    def __or__(self, other: ValueSet) -> ValueSet:
        return ValueSet(_joined([*self.ranges, *other.ranges]), self.has_null or other.has_null)

    def __and__(self, other: ValueSet) -> ValueSet:
        shared = [(max(a, c), min(b, d)) for a, b in self.ranges for c, d in other.ranges]
        return ValueSet(tuple(sorted((a, b) for a, b in shared if a <= b)), self.has_null and other.has_null)

    @classmethod
    def of(cls, ranges: Iterable[tuple[Number, Number]], *, has_null: bool = False) -> ValueSet:
        """Any ranges, joined where they meet."""
        return cls(_joined(ranges), has_null)

    def __contains__(self, number: Number) -> bool:
        place = bisect_right(self.ranges, number, key=lambda pair: pair[0]) - 1
        return place >= 0 and number <= self.ranges[place][1]

    def outside(self, column: Column) -> ValueSet:
        """All values of the column that are not in the set."""
        left, (begin, end) = [], universe(column)
        for low, high in self.ranges:
            if begin < low:
                left.append((begin, before(low)))
            begin = max(begin, after(high))
        if begin <= end:
            left.append((begin, end))
        return ValueSet(tuple(left), column.nullable and not self.has_null)

    def has_all(self, column: Column) -> bool:
        """Whether all values of the column are in the set."""
        return self.outside(column).is_empty

    def holds(self, numbers: NDArray[Any]) -> NDArray[np.bool_]:
        """Which physical numbers are in the set; NaN is null."""
        ends = np.array(self.ranges, dtype=numbers.dtype if numbers.dtype.kind == "i" else np.float64).reshape(-1, 2)
        place = np.searchsorted(ends[:, 0], numbers, side="right") - 1
        inside = (place >= 0) & (numbers <= ends[np.maximum(place, 0), 1]) if len(ends) else np.zeros(len(numbers), "?")
        return np.where(np.isnan(numbers), self.has_null, inside) if numbers.dtype.kind == "f" else inside


def _joined(ranges: Iterable[tuple[Number, Number]]) -> tuple[tuple[Number, Number], ...]:
    joined: list[tuple[Number, Number]] = []
    for low, high in sorted(ranges):
        if joined and low <= after(joined[-1][1]):
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        else:
            joined.append((low, high))
    return tuple(joined)


def after(number: Number) -> Number:
    """The next number of the same kind."""
    return math.nextafter(number, math.inf) if isinstance(number, float) else number + 1


def before(number: Number) -> Number:
    """The number before it."""
    return math.nextafter(number, -math.inf) if isinstance(number, float) else number - 1


def universe(column: Column) -> tuple[Number, Number]:
    """The least and the largest physical number of a column; beyond all where its bounds are still to be found."""
    if isinstance(column, Bounded):
        if not column.has_bounds:
            return (-_BEYOND, _BEYOND) if column.is_whole else (-math.inf, math.inf)
        first, last = column._first_and_last()
        return (int(first), int(last)) if column.is_whole else (float(first), float(last))
    return 0, len(column.listed) - 1


# --------------------------------------------------------------------------------------- conditions on a kind of column


def value_set(column: Column, condition: Condition, about: str) -> ValueSet:
    """The values that a condition allows; a SchemaError that begins with `about` where the column has none of them."""
    ranges: list[tuple[Number, Number]] = []
    places = places_in_list(column)
    for part in condition:
        if part is None:
            if not column.nullable:
                raise SchemaError(f"{about} is never null; leave None out, or declare the column nullable")
        elif isinstance(column, Bounded):
            ranges.append(_bounded(column, part, about))
        elif isinstance(column, Category) and not column.has_values:
            raise SchemaError(f"{about} has no list of values yet, so none can be named; list its values")
        else:
            ranges.append(_listed(column, part, places, about))
    return ValueSet.of(ranges, has_null=None in condition)


def _listed(column: Column, part: Any, places: Places, about: str) -> tuple[int, int]:
    if isinstance(part, Span):
        raise SchemaError(f"{about} is of type {column.type_name}, which has no ranges; list its values")
    place = places.get((type(part), part))
    if place is None:
        hint = "; use True or False" if column.listed == (False, True) else did_you_mean(part, column.listed)
        raise SchemaError(f"{about}: {brief(part)} is not a value of the column{hint}")
    return place, place


def places_in_list(column: Column) -> Places:
    """Where every value stands in the list of all, by its type too: True is not 1."""
    return {(type(value), value): place for place, value in enumerate(column.listed)}


def _bounded(column: Bounded, part: Any, about: str) -> tuple[Number, Number]:
    if not column.has_bounds:
        raise SchemaError(f"{about} has no bounds yet, so nothing can be said about its values; state its bounds")
    least, most = universe(column)
    stated = part if isinstance(part, Span) else Span(part, part)
    low, high = (
        default if end is None else physical_of(column, end, about)
        for end, default in zip(stated, (least, most), strict=True)
    )
    if low > high:
        raise SchemaError(f"{about}: {brief(stated.low)} is above {brief(stated.high)}; swap the two")
    low, high = (_aligned(column, end, up=up) for end, up in ((max(low, least), True), (min(high, most), False)))
    if low > high:
        raise SchemaError(
            f"{about} is never {brief(shown((part,)))}: it lies in {column.low}..{column.high}"
            f"{_steps(column)}; correct the value or the column"
        )
    return low, high


def _steps(column: Bounded) -> str:
    multiple = getattr(column, "multiple_of", None)
    return "" if multiple is None else f", in steps of {multiple}"


def _aligned(column: Bounded, number: Number, *, up: bool) -> Number:
    """The nearest value in steps inside; floats that are multiples stay what they are."""
    from spinney.columns import exact

    if column.is_whole:
        return int(column._aligned(int(number), up=up))
    return number if column.spacing is None else float(column._aligned(exact(number), up=up))


def physical_of(column: Bounded, value: Any, about: str) -> Number:
    """A stated value as the physical number that stands for it."""
    try:
        number = column.physical(column.parse(value, "value"))
    except SchemaError as err:
        told = str(err).partition(": ")[2] or str(err)
        raise SchemaError(f"{about} is of type {column.type_name}: {told}") from err
    return int(number) if column.is_whole else float(number)


# ---------------------------------------------------------------------------------------------------------------- rules
# The questions that every kind of rule answers: which columns it is about, whether they fit, which rows obey
# it.
#
# A rule is a statement of the data owner, like a bound: it costs nothing, and it is never checked against the
# private table. A `Derivation` says what one column is computed from; it is not modelled, and not read. All
# other rules say which values may stand in one row.


Columns = Mapping[str, Column]
# A row obeys a clause where the value of any of its columns is in that column's set.
Clause = dict[str, ValueSet]


class Rule(ABC):
    """A statement about the columns of every row."""

    __slots__ = ()

    type_name: ClassVar[str]
    _needs_forest: ClassVar[bool] = True  # whether trees and grids can have no such rule

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The columns that the rule is about, each once."""

    @abstractmethod
    def check(self, columns: Columns) -> None:
        """Raise a SchemaError unless columns of these types can be related in this way."""

    @abstractmethod
    def holds(self, rows: Mapping[str, NDArray[Any]], schema: Columns) -> NDArray[Any]:
        """For each row, whether the rule holds (n_rows,).

        Args:
            rows: physical numbers by column, NaN for null: whole numbers, days, microseconds; 0 or 1 for a Boolean, the
                place in the list for a Category.
            schema: the columns' types.
        """

    def clauses(self, columns: Columns) -> list[Clause]:  # noqa: ARG002  # for rules that are made of them
        """The rule as clauses that every row obeys; none where it compares values or computes them."""
        return []

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The rule as plain data for TOML and JSON."""


class Derivation(Rule):
    """A rule that says how one column follows from others."""

    __slots__ = ()

    _needs_forest: ClassVar[bool] = False

    column: str

    @property
    @abstractmethod
    def sources(self) -> tuple[str, ...]:
        """The columns that it follows from."""

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column, *self.sources)

    def modelled_of(self, columns: Columns) -> Column | None:  # noqa: ARG002  # for rules that model something
        """What is modelled in place of the column; None where it follows from the others alone."""
        return None

    def read_as(self, columns: Columns) -> Column:  # noqa: ARG002  # for rules that model something
        """What a table is read by in place of the column: nothing where it follows from the others alone."""
        return Identifier()

    @abstractmethod
    def compute(self, arrays: Mapping[str, pa.Array], columns: Columns, drawn: pa.Array | None) -> pa.Array:
        """The column's values in synthetic rows.

        Args:
            arrays: the values of the other columns.
            columns: their types.
            drawn: what was drawn of what is modelled in its place.
        """

    @abstractmethod
    def preimage(self, wanted: ValueSet, columns: Columns) -> ValueSet:
        """The values of the one source with which the column is one of `wanted`; SchemaError where that is no set."""

    def conditioned(self, wanted: ValueSet, columns: Columns) -> tuple[str, ValueSet]:
        """A condition on the column as one on another, or on what is modelled in its own place."""
        return self.sources[0], self.preimage(wanted, columns)


def followed(name: str, wanted: ValueSet, derived: Mapping[str, Derivation], columns: Columns) -> tuple[str, ValueSet]:
    """A condition on a column as one on the modelled column that it follows from."""
    while name in derived:
        source, wanted = derived[name].conditioned(wanted, columns)
        if source == name:
            break
        name = source
    return name, wanted


def check_name(rule: Rule, name: Any) -> None:
    """Raise a SchemaError unless this can be the name of a column."""
    if not isinstance(name, str) or not name:
        raise SchemaError(f"{type(rule).__name__}: {brief(name)} is not the name of a column")
    check_characters([name], f"{type(rule).__name__}: ")
