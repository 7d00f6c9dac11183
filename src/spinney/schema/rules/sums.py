"""A total that is the sum of its parts, exact to the steps that they come in.

The total is computed in synthetic rows, in whole numbers of the common step of its parts, and the private table's own
is never read. With a `residual`, the difference between the total and its parts is modelled in its place, and added.
A null part, or a null residual, makes the total null.

    the rule    `Sum`: checks, ends, rows
    residual    the total less its parts, as a table is read
    steps       values and bounds as whole numbers of their steps
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from spinney.columns import Column, Identifier, Integer, Number, Real, exact
from spinney.errors import SchemaError
from spinney.machine import lazily
from spinney.schema.plain import column_from_dict
from spinney.schema.rules.base import Columns, Derivation, ValueSet, check_name
from spinney.text import brief

if TYPE_CHECKING:
    import narwhals as nw
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from spinney.columns import reading
else:
    nw, np, pa, reading = lazily("narwhals", "numpy", "pyarrow", "spinney.columns.reading")


# Sums of so many steps are counted without overflow.
_MOST_STEPS = 2**62
# Steps of so many digits, and sums of them, are floats.
_LONGEST_STEP = 2**512
_LARGEST_WEIGHT = 10**9
_LARGEST_FLOAT = Fraction(sys.float_info.max)
# Without steps, sums of floats agree to this part of their size.
_ROUND_OFF = 1e-6


@dataclass(frozen=True, slots=True, repr=False)
class Sum(Derivation):
    """`column` is the sum of `parts`: `Sum("total", ["fare", "tip", "tolls"])`; a mapping gives each part a weight.

    >>> Sum("profit", {"revenue": 1, "cost": -1})
    Sum('profit', {'revenue': 1, 'cost': -1})

    Args:
        column: the name of the column that is computed.
        parts: the names of the numbers that are added, or a mapping from names to what each is multiplied by.
        residual: a real such as `Real(-5, 5, multiple_of=0.01)`: the difference between column and parts is then
            modelled, and added to the parts; by default there is none.
    """

    type_name: ClassVar[str] = "sum"

    column: str
    parts: Any  # kept as pairs of a name and a weight
    residual: Real | None = None

    def __post_init__(self) -> None:
        check_name(self, self.column)
        parts = self.parts
        if isinstance(parts, str) or not isinstance(parts, (Mapping, Sequence)) or not parts:
            raise SchemaError(f"Sum: parts={brief(parts)} is not a list of columns such as ['fare', 'tip']")
        pairs = list(parts.items()) if isinstance(parts, Mapping) else [(name, 1) for name in parts]
        for name, weight in pairs:
            check_name(self, name)
            is_number = isinstance(weight, (int, float, Fraction)) and not isinstance(weight, bool)
            if not is_number or not 1 / _LARGEST_WEIGHT <= abs(weight) <= _LARGEST_WEIGHT:
                raise SchemaError(f"Sum: {brief(weight)} is not a weight of part {name!r}; give a number such as -1")
        if len({name for name, _ in pairs}) != len(pairs) or self.column in dict(pairs):
            raise SchemaError(f"Sum: a column is named twice in {self.column!r} and its parts; name each once")
        object.__setattr__(self, "parts", tuple(pairs))
        if isinstance(self.residual, Mapping):
            object.__setattr__(self, "residual", column_from_dict("residual", self.residual))
        if self.residual is not None and not isinstance(self.residual, Real):
            raise SchemaError(
                f"Sum: residual={brief(self.residual)} is not a real such as sp.Real(-5, 5, multiple_of=0.01); whole "
                "numbers are multiples of 1"
            )
        if self.residual is not None and not self.residual.has_bounds:
            raise SchemaError(f"Sum: the residual of {self.column!r} needs stated bounds, such as sp.Real(-5, 5)")

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.parts)

    @property
    def weights(self) -> dict[str, Fraction]:
        """What each part is multiplied by, exactly: 0.1 is a tenth."""
        return {name: exact(weight) if isinstance(weight, float) else Fraction(weight) for name, weight in self.parts}

    def modelled_of(self, columns: Columns) -> Column | None:
        del columns
        return self.residual

    def read_as(self, columns: Columns) -> Column:
        if self.residual is None:
            return Identifier()
        stated = {option.name: getattr(self.residual, option.name) for option in fields(self.residual)}
        return Residual(**stated, of=self, parts=tuple((name, columns[name]) for name in self.sources))

    # ------------------------------------------------------------------------------------------------------ checks

    def check(self, columns: Columns) -> None:
        total = columns[self.column]
        for name in self.columns:
            if not isinstance(columns[name], Number):
                raise SchemaError(f"Sum: column {name!r} is of type {columns[name].type_name}; numbers can be added")
        assert isinstance(total, Number)
        if not total.has_bounds:
            raise SchemaError(f"Sum: column {self.column!r} is computed, so its bounds are not estimated; state them")
        self._check_nulls(columns)
        self._check_size(total, columns)
        self._check_steps(total, columns)
        ends = self.ends(columns)
        if ends is None:
            return
        low, high = exact(total.low), exact(total.high)
        wanted = [f"low={_shown(ends[0], total)}"] if ends[0] < low else []
        wanted += [f"high={_shown(ends[1], total)}"] if ends[1] > high else []
        if wanted:
            raise SchemaError(
                f"Sum: the parts of {self.column!r} add up to {_shown(ends[0], total)}..{_shown(ends[1], total)}, "
                f"beyond its bounds {total.low}..{total.high}; state {' and '.join(wanted)} for {self.column!r}, or "
                "narrower bounds for its parts"
            )

    def _check_size(self, total: Number, columns: Columns) -> None:
        """Raise a SchemaError unless `compute` stays within whole numbers of 64 bits, or within floats."""
        unit = self.unit(columns)
        terms = [(name, weight, columns[name]) for name, weight in self.weights.items()]
        terms += [("residual", Fraction(1), self.residual)] if self.residual is not None else []
        largest = Fraction(0)  # of what is added up on the way, whatever takes away from it
        for name, weight, part in terms:
            assert isinstance(part, Number)
            if unit is not None and part.spacing is not None and abs(weight * part.spacing) / unit > _MOST_STEPS:
                raise SchemaError(
                    f"Sum: {self.column!r} cannot be counted in whole numbers of 64 bits: the steps of part {name!r} "
                    "are too long beside those of the others; state multiple_of of a similar size for all parts"
                )
            largest += max(abs(weight * end) for end in part._ends()) if part.has_bounds else 0
        if unit is None:
            is_large = largest > _LARGEST_FLOAT
        else:
            longest = _MOST_STEPS if total.is_whole else _LONGEST_STEP
            is_large = largest / unit > _MOST_STEPS or max(unit.numerator, unit.denominator) > longest
        if is_large:
            steps = "a float" if unit is None else f"64 bits, in steps of {brief(unit)}"
            raise SchemaError(
                f"Sum: the parts of {self.column!r} add up to what is too large for {steps}; state narrower bounds "
                "for its parts, smaller weights, or steps that are rounder"
            )

    def _check_nulls(self, columns: Columns) -> None:
        nullable = [name for name in self.sources if columns[name].nullable]
        if self.residual is not None and not self.residual.nullable and (nullable or columns[self.column].nullable):
            raise SchemaError(
                f"Sum: the residual of {self.column!r} is missing where a part or the total is; declare it nullable"
            )
        if (nullable or (self.residual is not None and self.residual.nullable)) and not columns[self.column].nullable:
            which = f"{nullable[0]!r} is" if nullable else "its residual is"
            raise SchemaError(f"Sum: column {self.column!r} is null where {which}; declare it nullable")

    def _check_steps(self, total: Number, columns: Columns) -> None:
        unit = self.unit(columns)
        if total.spacing is None:
            return
        if unit is None:
            raise SchemaError(
                f"Sum: column {self.column!r} comes in steps of {_decimal(total.spacing)} and a part of it does not; "
                "state multiple_of for all parts, or use a Real without it for the sum"
            )
        if (unit / total.spacing).denominator != 1:
            remedy = "a Real" if isinstance(total, Integer) and unit.denominator != 1 else "the column"
            raise SchemaError(
                f"Sum: the parts of {self.column!r} add up in steps of {_decimal(unit)}, and it comes in steps of "
                f"{_decimal(total.spacing)}; make it {remedy} with multiple_of={_decimal(unit)}"
            )

    def unit(self, columns: Columns) -> Fraction | None:
        """The largest step of which all sums are multiples; None where a part has no steps."""
        spacings = [
            weight * spacing if (spacing := columns[name].spacing) is not None else None
            for name, weight in self.weights.items()
        ]
        if self.residual is not None:
            spacings.append(self.residual.spacing)
        unit = Fraction(0)
        for spacing in spacings:
            if spacing is None:
                return None
            common = math.lcm(unit.denominator, spacing.denominator)
            unit = Fraction(math.gcd(int(unit * common), int(spacing * common)), common)
        return unit

    def ends(self, columns: Columns) -> tuple[Fraction, Fraction] | None:
        """The least and the largest sum that the parts' bounds allow; None where one awaits its bounds."""
        low = high = Fraction(0)
        for name, weight in self.weights.items():
            part = columns[name]
            assert isinstance(part, Number)
            if not part.has_bounds:
                return None
            ends = sorted(weight * end for end in part._ends())
            low, high = low + ends[0], high + ends[1]
        if self.residual is not None:
            low, high = (end + more for end, more in zip((low, high), self.residual._ends(), strict=True))
        return low, high

    # -------------------------------------------------------------------------------------------------------- rows

    def compute(self, arrays: Mapping[str, pa.Array], columns: Columns, drawn: pa.Array | None) -> pa.Array:
        terms = [(arrays[name], weight, columns[name]) for name, weight in self.weights.items()]
        if drawn is not None and self.residual is not None:
            terms.append((drawn, Fraction(1), self.residual))
        unit, column = self.unit(columns), columns[self.column]
        is_null = np.logical_or.reduce([np.asarray(array.is_null(nan_is_null=True)) for array, _, _ in terms])
        mask = is_null if column.nullable else None
        if unit is None:
            values = sum(float(weight) * _floats(array) for array, weight, _ in terms)
            return pa.array(np.clip(np.where(is_null, 0.0, values), *_float_ends(column)), mask=mask)
        n_steps = np.zeros(len(is_null), dtype=np.int64)
        for array, weight, kind in terms:
            spacing = kind.spacing
            assert spacing is not None
            n_steps += int(weight * spacing / unit) * _steps(array, kind, spacing)
        if column.is_whole:
            return pa.array(np.where(is_null, 0, n_steps * int(unit)), mask=mask)
        # A division of whole numbers rounds once, to the float nearest to the decimal.
        values = n_steps.astype(np.float64) * float(unit.numerator) / float(unit.denominator)
        return pa.array(np.where(is_null, 0.0, values) + 0.0, mask=mask)

    def difference(self, total: Any, parts: Mapping[str, Any]) -> Any:
        """The total less its parts, in floats and in this order; of arrays, expressions and columns of engines."""
        for name, weight in self.weights.items():
            part = parts[name]
            total = total - (part if weight == 1 else part * float(weight))
        return total

    def allowed(self, columns: Columns) -> tuple[float, float, float]:
        """Between which ends a difference lies in rows that obey, and by which part of the total it may be off."""
        unit = self.unit(columns)
        low, high = (0.0, 0.0) if self.residual is None else (self.residual.low, self.residual.high)
        slack = 0.0 if unit is None else float(unit) / 2
        return low - slack, high + slack, _ROUND_OFF

    def holds(self, rows: Mapping[str, NDArray[Any]], schema: Columns) -> NDArray[Any]:
        total = rows[self.column]
        gap = self.difference(total, rows)
        low, high, part = self.allowed(schema)
        slack = part * np.abs(np.where(np.isnan(total), 0, total))
        is_missing = np.logical_or.reduce([np.isnan(rows[name]) for name in self.sources])
        near = (gap >= low - slack) & (gap <= high + slack)
        may_miss = is_missing if self.residual is None else np.ones(len(total), dtype=np.bool_)
        return np.asarray(np.where(np.isnan(total), may_miss, near & ~is_missing))

    def preimage(self, wanted: ValueSet, columns: Columns) -> ValueSet:
        del wanted, columns
        raise SchemaError(
            f"column {self.column!r} is a sum of {', '.join(map(repr, self.sources))}; state the condition on these"
        )

    def to_dict(self) -> dict[str, Any]:
        plain: Any = dict(self.parts)
        if all(weight == 1 for weight in plain.values()):
            plain = list(plain)
        else:
            plain = {name: float(w) if isinstance(w, Fraction) and w.denominator != 1 else w for name, w in self.parts}
            plain = {name: int(w) if isinstance(w, Fraction) else w for name, w in plain.items()}
        described = {"type": self.type_name, "column": self.column, "parts": plain}
        return described if self.residual is None else described | {"residual": self.residual.to_dict()}

    def __repr__(self) -> str:
        plain: Any = dict(self.parts)
        if all(weight == 1 for weight in plain.values()):
            plain = list(plain)
        residual = "" if self.residual is None else f", residual={self.residual!r}"
        return f"Sum({self.column!r}, {plain!r}{residual})"


# ------------------------------------------------------------------------------------------------------------- residual
# The residual of a sum as a column that is computed while a table is read: the total less its parts.
#
# In memory and in batches it is computed of the columns that were read (`_combined`), by engines that answer queries it
# is an expression (`tables.engines.queries`): the same subtractions of floats in the same order.


@dataclass(frozen=True, slots=True, repr=False)
class Residual(Real):
    """The total of a `Sum` less its parts."""

    of: Sum | None = field(default=None, kw_only=True)
    parts: tuple[tuple[str, Column], ...] = field(default=(), kw_only=True)

    @property
    def _also_reads(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.parts)

    def _combined_expression(self, total: reading.Reading, parts: Mapping[str, reading.Reading]) -> reading.Reading:
        """The same of expressions: missing where one of them is, wrong where one of them is."""
        assert self.of is not None
        numbers = {name: part.number.cast(nw.Float64) for name, part in parts.items()}
        is_missing, is_wrong = total.is_missing, total.is_wrong
        for part in parts.values():
            is_missing, is_wrong = is_missing | part.is_missing, is_wrong | part.is_wrong
        return reading.Reading(self.of.difference(total.number.cast(nw.Float64), numbers), is_missing, is_wrong)

    def _combined(self, total: reading.Physical, parts: Mapping[str, reading.Physical]) -> reading.Physical:
        """The residual of rows whose total and parts are these. SENSITIVE."""

        def floats(found: reading.Physical) -> Any:
            values = np.asarray(found.values, dtype=np.float64)
            return values if found.is_null is None else np.where(found.is_null, np.nan, values)

        assert self.of is not None
        numbers = {name: floats(part) for name, part in parts.items()}
        return reading.Physical(np.asarray(self.of.difference(floats(total), numbers)))


# ---------------------------------------------------------------------------------------------------------------- steps


def _floats(array: pa.Array) -> NDArray[np.float64]:
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.float64)


def _steps(array: pa.Array, column: Column, spacing: Fraction) -> NDArray[np.int64]:
    """Values as whole numbers of their own step; 0 for null."""
    if column.is_whole:
        return np.asarray(array.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64) // int(spacing)
    values = _floats(array)
    return np.rint(np.where(np.isnan(values), 0.0, values) / float(spacing)).astype(np.int64)


def _float_ends(column: Column) -> tuple[float, float]:
    assert isinstance(column, Number)
    return float(column.low), float(column.high)


def _decimal(number: Fraction) -> str:
    return str(int(number)) if number.denominator == 1 else repr(float(number))


def _shown(number: Fraction, column: Number) -> str:
    """A bound that holds a number, as it is typed."""
    if isinstance(column, Integer):
        return str(int(number))
    nearest = float(number)
    return repr(nearest)
