"""A column that is a fixed part of another in many rows: paid out is what was approved, guaranteed is 75 % of it.

It is modelled in its own place, by one column of values and *codes*: where a row has one of the ratios to the base, its
value is the code of that ratio, and else it is the value itself. Codes are the steps beyond the high end of the column,
one for each ratio, so cells, leaves and states are those of any other column. A synthetic row with a code gets the
nearest step of ratio times base. Steps are whole numbers and ratios fractions, so nothing is rounded on the way:

    x = X s,  y = Y t,  ratio t / s = a / b        x is nearest to ratio y  if and only if  -b <= 2 (a Y - b X) < b

    ratios       fractions, as people state and read them
    the rule     `Related`: checks, codes, rows
    reading      the column as a table is read: codes where a row has a ratio
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, cast

from spinney.columns import Column, Integer, Number, Real, exact, whole_range
from spinney.errors import SchemaError
from spinney.machine import lazily
from spinney.schema.rules.base import Columns, Derivation, ValueSet, check_name, universe
from spinney.text import brief

if TYPE_CHECKING:
    import narwhals as nw
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from spinney.columns import reading
else:
    np, pa, nw, reading = lazily("numpy", "pyarrow", "narwhals", "spinney.columns.reading")


# --------------------------------------------------------------------------------------------------------------- ratios
# Ratios as they are stated: numbers, decimals as text, or fractions as text.


_RATIO = re.compile(r"\d{1,12}(\.\d{1,12})?|\d{1,12}/\d{1,12}")
_LARGEST_PART = 10**9  # of a fraction, above and below its line
MOST_RATIOS = 32


def parse_ratio(stated: Any) -> Fraction | None:
    """A ratio as a fraction that is exactly what was written; None where it is no positive number of few digits."""
    if isinstance(stated, bool):
        return None
    try:
        if isinstance(stated, str):
            ratio = Fraction(stated.strip()) if _RATIO.fullmatch(stated.strip()) else None
        elif isinstance(stated, float):
            ratio = exact(stated) if math.isfinite(stated) else None
        else:
            ratio = Fraction(stated) if isinstance(stated, (int, Fraction, Decimal)) else None
    except (ValueError, OverflowError, ZeroDivisionError):
        return None
    is_fine = ratio is not None and ratio > 0 and max(ratio.numerator, ratio.denominator) <= _LARGEST_PART
    return ratio if is_fine else None


def ratio_text(ratio: Fraction) -> str:
    """A ratio as it is written: 1, 0.75, or 1/3 where decimals do not end."""
    rest = ratio.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest > 1:
        return f"{ratio.numerator}/{ratio.denominator}"
    return format((Decimal(ratio.numerator) / Decimal(ratio.denominator)).normalize(), "f")


def in_percent(ratio: Fraction) -> str:
    """A ratio in words: 'equal to' or '75 % of'."""
    percent = ratio_text(ratio * 100)
    return "equal to" if ratio == 1 else f"{percent} of" if "/" in percent else f"{percent} % of"


# ------------------------------------------------------------------------------------------------------------- the rule


# Steps that are compared, and cells that a column and its codes have.
_MOST_COMPARED = 2**62
_MOST_CELLS = {"integer": 2**40, "real": 2**32}
_MOST_UNITS = 2**49


@dataclass(frozen=True, slots=True, repr=False)
class Related(Derivation):
    """`column` is a fixed part of `base` in many rows: `Related("guaranteed", "approved", ratios=["0.5", "0.75"])`.

    Which rows have which ratio is learnt like the values of any column; a synthetic row that has one obeys it to the
    last step. All other rows keep values of their own. Nulls and zeros in either column have no ratio.

    Args:
        column: the name of the column that is modelled by its ratios.
        base: the name of the column that it is a part of.
        ratios: what `column` is divided by `base`, such as 1, "0.75" or "1/3"; where several fit, the first counts.
        found: whether a fit found the relation privately; leave it out.
    """

    type_name: ClassVar[str] = "related"
    _needs_forest: ClassVar[bool] = True
    _most: ClassVar[int] = MOST_RATIOS

    column: str
    base: str
    ratios: Any = field(default=(1,))  # kept as a tuple of fractions
    found: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        for name in (self.column, self.base):
            check_name(self, name)
        if self.column == self.base:
            raise SchemaError(f"Related: {self.column!r} is named twice; a rule is about two columns")
        stated = self.ratios
        if isinstance(stated, (str, Mapping)) or not isinstance(stated, Sequence) or not stated:
            raise SchemaError(f"Related: ratios={brief(stated)} is not a list such as [1, '0.75']")
        if len(stated) > self._most:
            raise SchemaError(
                f"Related: {len(stated)} ratios of {self.column!r} are more than {self._most}; list the commonest"
            )
        ratios = []
        for one in stated:
            ratio = parse_ratio(one)
            if ratio is None:
                raise SchemaError(
                    f"Related: {brief(one)} is not a ratio of {self.column!r} to {self.base!r}; give a positive number "
                    "such as 1, '0.75' or '1/3', of up to nine digits"
                )
            if ratio in ratios:
                raise SchemaError(f"Related: the ratio {ratio_text(ratio)} is listed twice; list it once")
            ratios.append(ratio)
        object.__setattr__(self, "ratios", tuple(ratios))
        if not isinstance(self.found, bool):
            raise SchemaError(f"Related: found={brief(self.found)} is not true or false")

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.base,)

    # ------------------------------------------------------------------------------------------------------ checks

    def check(self, columns: Columns) -> None:
        for name in self.columns:
            column = columns[name]
            if not isinstance(column, Number):
                raise SchemaError(
                    f"Related: column {name!r} is of type {column.type_name}; numbers that come in steps have ratios"
                )
            if not column.is_whole and column.spacing is None:
                raise SchemaError(
                    f"Related: column {name!r} is a real without steps; state its multiple_of, such as 0.01 for cents"
                )
            if not column.has_bounds:
                raise SchemaError(f"Related: column {name!r} has no bounds yet; state its low and high")
        column = cast(Number, columns[self.column])
        if column.bits is not None:
            raise SchemaError(f"Related: column {self.column!r} states its bits; leave them out")
        first, last = ends_in_steps(column)
        n_cells = last - first + 1 + len(self.ratios)
        if n_cells > _MOST_CELLS[column.type_name] or max(abs(first), abs(last)) + len(self.ratios) > _MOST_UNITS:
            raise SchemaError(
                f"Related: column {self.column!r} has too many steps to keep ratios apart from values; state narrower "
                "bounds or a larger multiple_of"
            )
        farthest = [max(map(abs, ends_in_steps(cast(Number, columns[name])))) for name in self.columns]
        for a, b in self._parts(columns):
            if 2 * (a * farthest[1] + b * farthest[0]) + b > _MOST_COMPARED:
                raise SchemaError(
                    f"Related: {self.column!r} and {self.base!r} cannot be compared in whole numbers of 64 bits; state "
                    "narrower bounds, larger steps, or ratios of fewer digits"
                )

    def keeps_order(self, smaller: str, columns: Columns) -> bool:
        """Whether every row with a ratio has `smaller`, one of the two columns, at most as large as the other."""
        column, base = (cast(Number, columns[name]) for name in self.columns)
        (first, last), (least, most) = ends_in_steps(column), ends_in_steps(base)
        if spacing_of(column) != spacing_of(base) or least < 0:
            return False
        if smaller == self.column:
            return max(self.ratios) <= 1 and first <= 0
        return min(self.ratios) >= 1 and last >= most

    def _parts(self, columns: Columns) -> list[tuple[int, int]]:
        """The a and b of every ratio: steps of the column are a / b times those of the base."""
        spacing, of_base = (spacing_of(cast(Number, columns[name])) for name in self.columns)
        in_steps = [ratio * of_base / spacing for ratio in self.ratios]
        return [(part.numerator, part.denominator) for part in in_steps]

    # ------------------------------------------------------------------------------------------------------- codes

    def modelled_of(self, columns: Columns) -> Column:
        """The column with as many steps more as there are ratios, which are their codes."""
        column = columns[self.column]
        assert isinstance(column, Number)
        return column if not column.has_bounds else replace(column, high=column.logical(self.codes(columns)[-1]))

    def codes(self, columns: Columns) -> list[Any]:
        """The physical number that stands for each ratio."""
        column = columns[self.column]
        assert isinstance(column, Number)
        last = ends_in_steps(column)[1]
        steps = last + 1 + np.arange(len(self.ratios), dtype=np.int64)
        found: list[Any] = numbers_at(column, steps).tolist()
        return found

    def code_sets(self, columns: Columns) -> list[ValueSet]:
        """The codes as sets of the modelled column, one for each ratio."""
        return [ValueSet(((code, code),)) for code in self.codes(columns)]

    def conditioned(self, wanted: ValueSet, columns: Columns) -> tuple[str, ValueSet]:
        """Conditions on null alone are those of the modelled column; values are told by the base too."""
        column = columns[self.column]
        has_values = ValueSet(wanted.ranges, column.nullable).has_all(column)
        if wanted.ranges and not has_values:
            raise SchemaError(
                f"column {self.column!r} is a fixed part of {self.base!r} in some rows, so values of it are told by "
                f"two columns; state the condition about null, or on {self.base!r}"
            )
        ranges = (universe(self.modelled_of(columns)),) if has_values else ()
        return self.column, ValueSet(ranges, wanted.has_null)

    def preimage(self, wanted: ValueSet, columns: Columns) -> ValueSet:
        return self.conditioned(wanted, columns)[1]

    def bases_of(self, place: int, low: Any, high: Any, columns: Columns) -> tuple[Any, Any] | None:
        """The least and the largest base of which a ratio is a value in low..high, as physical numbers; None for none.

        With steps L..H and ratio a / b: L <= floor((2 a Y + b) / (2 b)) <= H. What lies beyond the bounds of the column
        was moved to them.
        """
        column, base = (cast(Number, columns[name]) for name in self.columns)
        (first, last), (least, most) = ends_in_steps(column), ends_in_steps(base)
        begin, end = (int(raw_steps(column, np.array([number]))[0]) for number in (low, high))
        a, b = self._parts(columns)[place]
        if begin > first:
            least = max(least, -((b - 2 * b * begin) // (2 * a)))
        if end < last:
            most = min(most, -(-(2 * b * end + b) // (2 * a)) - 1)
        if least > most:
            return None
        ends = numbers_at(base, np.array([least, most], dtype=np.int64)).tolist()
        return ends[0], ends[1]

    def read_as(self, columns: Columns) -> Column:
        modelled = self.modelled_of(columns)
        stated = {option.name: getattr(modelled, option.name) for option in fields(modelled)}
        kind = CodedInteger if modelled.is_whole else CodedReal
        return kind(**stated, of=self, plain=tuple((name, columns[name]) for name in self.columns))

    # -------------------------------------------------------------------------------------------------------- rows

    def steps_at(self, place: NDArray[np.int64], base_steps: NDArray[np.int64], columns: Columns) -> NDArray[np.int64]:
        """Steps of the column that are nearest to ratios times steps of the base, moved into its bounds.

        Args:
            place: the place of the ratio of each row.
            base_steps: steps of the base.
            columns: the types of the columns.
        """
        a, b = np.array(self._parts(columns), dtype=np.int64)[place].T
        nearest = (2 * a * base_steps + b) // (2 * b)
        return np.asarray(np.clip(nearest, *ends_in_steps(cast(Number, columns[self.column]))))

    def compute(self, arrays: Mapping[str, pa.Array], columns: Columns, drawn: pa.Array | None) -> pa.Array:
        assert drawn is not None
        column, base = (cast(Number, columns[name]) for name in self.columns)
        own, of_base = column._read(drawn), base._read(arrays[self.base])
        last = ends_in_steps(column)[1]
        is_null = is_missing(own)
        beyond = raw_steps(column, np.where(is_null, 0, own.values)) - last - 1
        has_code = ~is_null & (beyond >= 0)
        steps = self.steps_at(np.maximum(beyond, 0), steps_of(base, of_base), columns)
        numbers = np.where(has_code, numbers_at(column, steps), np.where(is_null, 0, own.values))
        return pa.array(numbers, mask=is_null if column.nullable else None)

    def holds(self, rows: Mapping[str, NDArray[Any]], schema: Columns) -> NDArray[Any]:
        """Which rows have one of the ratios; the others keep to the rule as well, by values of their own."""
        column, base = (cast(Number, schema[name]) for name in self.columns)
        physical = [reading.Physical(rows[name], np.isnan(rows[name])) for name in self.columns]
        steps, base_steps = (steps_of(kind, found) for kind, found in zip((column, base), physical, strict=True))
        is_known = ~is_missing(physical[0]) & ~is_missing(physical[1])
        return np.asarray(is_known & (self.place_of(steps, base_steps, schema) < len(self.ratios)))

    def place_of(self, steps: NDArray[np.int64], base_steps: NDArray[np.int64], columns: Columns) -> NDArray[np.int64]:
        """Which ratio steps of the column have to those of the base, as many as there are where they have none."""
        found = np.full(len(steps), len(self.ratios), dtype=np.int64)
        for place, (a, b) in reversed(list(enumerate(self._parts(columns)))):
            gap = 2 * (a * base_steps - b * steps)
            found[(gap >= -b) & (gap < b) & (steps != 0) & (base_steps != 0)] = place
        return found

    def place_expression(self, steps: nw.Expr, base_steps: nw.Expr, columns: Columns) -> nw.Expr:
        """The same of expressions of an engine."""
        places = []
        for place, (a, b) in enumerate(self._parts(columns)):
            gap = (base_steps * a - steps * b) * 2
            has_ratio = (gap >= -b) & (gap < b) & (steps != 0) & (base_steps != 0)
            places.append(nw.when(has_ratio).then(nw.lit(place)).otherwise(nw.lit(len(self.ratios))))
        return places[0] if len(places) == 1 else nw.min_horizontal(*places)

    def one_by_one(self) -> list[Related]:
        """The same rule for each of its ratios alone."""
        return [replace(self, ratios=(ratio,)) for ratio in self.ratios]

    def in_words(self) -> str:
        """What the ratios say: 'paid' is equal to, or 75 % of, 'approved'."""
        parts = ", or ".join(map(in_percent, self.ratios))
        return f"{self.column!r} is {parts}{',' if len(self.ratios) > 1 else ''} {self.base!r}"

    def to_dict(self) -> dict[str, Any]:
        ratios = [int(ratio) if ratio.denominator == 1 else ratio_text(ratio) for ratio in self.ratios]
        described = {"type": self.type_name, "column": self.column, "base": self.base, "ratios": ratios}
        return described | ({"found": True} if self.found else {})

    def __repr__(self) -> str:
        found = ", found=True" if self.found else ""
        return f"Related({self.column!r}, {self.base!r}, ratios={self.to_dict()['ratios']!r}{found})"


@dataclass(frozen=True, slots=True, repr=False)
class Percentages(Related):
    """Percentages of a column of the same steps, `every` so many of them up to the last: no rule, a way to count.

    A row has the percentage p that is nearest to 100 x / y, if it is one of them and x is nearest to p % of y.
    """

    _most: ClassVar[int] = 200

    ratios: Any = field(init=False)
    every: int = 1
    last: int = 200

    def __post_init__(self) -> None:
        percents = range(self.every, self.last + 1, self.every)
        object.__setattr__(self, "ratios", tuple(Fraction(percent, 100) for percent in percents))

    def place_of(self, steps: NDArray[np.int64], base_steps: NDArray[np.int64], columns: Columns) -> NDArray[np.int64]:
        del columns
        size, of_base = np.abs(steps), np.abs(base_steps)
        percent = (200 * size + of_base) // np.maximum(2 * of_base, 1)
        gap = 2 * (percent * base_steps - 100 * steps)
        is_one = (gap >= -100) & (gap < 100) & (steps != 0) & (base_steps != 0)
        is_one &= (percent % self.every == 0) & (percent >= 1) & (percent <= self.last)
        return np.where(is_one, percent // self.every - 1, len(self.ratios))

    def place_expression(self, steps: nw.Expr, base_steps: nw.Expr, columns: Columns) -> nw.Expr:
        del columns
        of_base = base_steps.abs()
        percent = quotient(steps.abs() * 200 + of_base, nw.when(of_base > 0).then(of_base * 2).otherwise(nw.lit(1)))
        gap = (percent * base_steps - steps * 100) * 2
        is_one = (gap >= -100) & (gap < 100) & (steps != 0) & (base_steps != 0)
        is_one = is_one & (percent % self.every == 0) & (percent >= 1) & (percent <= self.last)
        return nw.when(is_one).then(quotient(percent, self.every) - 1).otherwise(nw.lit(len(self.ratios)))


# ---------------------------------------------------------------------------------------------------------------- steps
# Numbers as whole numbers of their steps, of arrays and of expressions alike.


def spacing_of(column: Number) -> Fraction:
    """How far values are apart."""
    spacing = Fraction(column.step) if column.is_whole else column.spacing
    assert spacing is not None
    return spacing


def ends_in_steps(column: Number) -> tuple[int, int]:
    """The first and the last value of a column in steps, counted from 0."""
    spacing = spacing_of(column)
    first, last = (end / spacing for end in column._ends())
    return int(first), int(last)


def raw_steps(column: Number, numbers: NDArray[Any]) -> NDArray[np.int64]:
    """Numbers as steps, wherever they lie."""
    if column.is_whole:
        return (np.asarray(numbers).astype(np.int64) + column.step // 2) // column.step
    return np.floor(np.asarray(numbers, dtype=np.float64) / float(spacing_of(column)) + 0.5).astype(np.int64)


def numbers_at(column: Number, steps: NDArray[np.int64]) -> NDArray[Any]:
    """Steps as numbers: a division of whole numbers rounds once, to the float nearest to the decimal."""
    if column.is_whole:
        return steps * column.step
    spacing = spacing_of(column)
    return steps.astype(np.float64) * float(spacing.numerator) / float(spacing.denominator) + 0.0


def quotient(offset: nw.Expr, step: int | nw.Expr) -> nw.Expr:
    """The whole part of offset / step, offset >= 0, although engines divide whole numbers as doubles.

    offset - offset % step is q * step with q < 2^50; its quotient in doubles is within a quarter of q, whatever is
    rounded.
    """
    return ((offset - offset % step) / step + 0.5).floor().cast(nw.Int64)


def is_missing(found: reading.Physical) -> NDArray[np.bool_]:
    """Which values are null, or no finite numbers."""
    return found.is_null if found.is_null is not None else np.asarray(~np.isfinite(found.values))


def _span(column: Number) -> tuple[Any, Any]:
    """The numbers that a column's values are moved into before they are counted in steps."""
    if column.is_whole:
        return whole_range(column)
    first, last = column._first_and_last()
    return float(first), float(last)


def steps_of(column: Number, found: reading.Physical) -> NDArray[np.int64]:
    """Values as steps, moved into the bounds; the first step in place of null. SENSITIVE."""
    low, high = _span(column)
    return raw_steps(column, np.clip(np.where(is_missing(found), low, found.values), low, high))


def steps_expression(column: Column, found: reading.Reading) -> nw.Expr:
    """The same of an expression."""
    assert isinstance(column, Number)
    low, high = _span(column)
    value = nw.when(found.is_missing | found.is_wrong).then(nw.lit(low)).otherwise(found.number).clip(low, high)
    if not column.is_whole:
        return (value / float(spacing_of(column)) + 0.5).floor().cast(nw.Int64)
    offset = value - low
    if column.step > 1:
        offset = quotient(offset, column.step)
    steps: nw.Expr = offset + ends_in_steps(column)[0]
    return steps


# -------------------------------------------------------------------------------------------------------------- reading
# The column as a table is read: the code of a ratio where a row has one, else its own value, moved into its bounds.
#
# It is a function of the row alone: so a row lies in one cell of it, as of any other column. In memory and in batches
# it is computed of the columns that were read, by engines that answer queries it is an expression.


class _Coded:
    """What whole numbers and reals with codes have in common."""

    __slots__ = ()

    of: Related | None
    plain: tuple[tuple[str, Column], ...]  # the column without codes, and its base

    @property
    def _also_reads(self) -> tuple[str, ...]:
        return (self.plain[1][0],)

    @property
    def _parts(self) -> tuple[Related, Number, Number, Columns]:
        assert self.of is not None
        columns = dict(self.plain)
        return self.of, cast(Number, self.plain[0][1]), cast(Number, self.plain[1][1]), columns

    def _combined(self, own: reading.Physical, others: Mapping[str, reading.Physical]) -> reading.Physical:
        """Values and codes of rows with these values and bases. SENSITIVE."""
        rule, column, base, columns = self._parts
        other = others[rule.base]
        is_null = is_missing(own)
        place = rule.place_of(steps_of(column, own), steps_of(base, other), columns)
        has_code = (place < len(rule.ratios)) & ~is_null & ~is_missing(other)
        values = np.clip(np.where(is_null, 0, own.values), *_span(column))
        numbers = np.where(has_code, np.array([*rule.codes(columns), 0])[place], values)
        if column.is_whole:
            return reading.Physical(numbers.astype(np.int64), own.is_null)
        return reading.Physical(np.where(is_null, own.values, numbers))

    def _combined_expression(self, own: reading.Reading, others: Mapping[str, reading.Reading]) -> reading.Reading:
        """The same of expressions."""
        rule, column, base, columns = self._parts
        other = others[rule.base]
        place = rule.place_expression(steps_expression(column, own), steps_expression(base, other), columns)
        number = own.number.clip(*_span(column))
        has_code = ~own.is_missing & ~other.is_missing & (place < len(rule.ratios))
        spacing, steps = spacing_of(column), place + ends_in_steps(column)[1] + 1
        # Of reals a division of whole numbers, which rounds once, as for a table in memory.
        code = (
            steps * column.step
            if column.is_whole
            else steps.cast(nw.Float64) * float(spacing.numerator) / float(spacing.denominator)
        )
        number = nw.when(has_code).then(code).otherwise(number)
        return reading.Reading(number, own.is_missing, own.is_wrong | other.is_wrong)


@dataclass(frozen=True, slots=True, repr=False)
class CodedInteger(_Coded, Integer):
    """Whole numbers, and codes of ratios beyond their high end."""

    of: Related | None = field(default=None, kw_only=True)
    plain: tuple[tuple[str, Column], ...] = field(default=(), kw_only=True)


@dataclass(frozen=True, slots=True, repr=False)
class CodedReal(_Coded, Real):
    """Reals in steps, and codes of ratios beyond their high end."""

    of: Related | None = field(default=None, kw_only=True)
    plain: tuple[tuple[str, Column], ...] = field(default=(), kw_only=True)
