"""The larger of two dates, datetimes or times as the smaller one and a difference: what `AtMost` means to a forest.

    lag             the derivation: the larger column is computed in rows, the difference is modelled in its place
    automatic       for which rules a difference is the model's, and between which bounds it lies
    as it is read   the difference of rows, while a table is read

Where the smaller column is null and the larger one is there, no difference exists: such rows hold how far the larger
one is above its own lower bound, in numbers beyond all differences.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from spinney.columns import Bounded, Column, Integer, whole_range
from spinney.columns.base import PLAIN, Spelling
from spinney.columns.bounded import CLOCK_STEPS, SECOND
from spinney.errors import SchemaError
from spinney.machine import lazily
from spinney.schema.rules.base import Columns, Derivation, Rule, ValueSet
from spinney.schema.rules.compare import AtMost

if TYPE_CHECKING:
    import narwhals as nw
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from spinney.columns import reading
    from spinney.columns.reading import Physical, Reading
else:
    nw, np, reading = lazily("narwhals", "numpy", "spinney.columns.reading")


# What differences are of, and how many of the column's own numbers the unit is that they are stated in.
UNITS = {"dates": 1, "datetimes": SECOND, "times": SECOND}


# ------------------------------------------------------------------------------------------------------------------ lag
# One column as another plus what lies between them.


@dataclass(frozen=True, slots=True, repr=False)
class Elapsed(Integer):
    """A difference of moments in microseconds, of which days, hours and minutes are round."""

    _round_steps: ClassVar[tuple[int, ...]] = CLOCK_STEPS
    _spans_decades: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, repr=False)
class Lag(Derivation):
    """`column` is `source` plus a difference, which is modelled in its place.

    Args:
        column: the larger column, which is computed.
        source: the smaller one.
        difference: what is modelled, in the numbers that stand for both underneath.
        alone: where the source may be null, the first number that says how far `column` is above its own low.
    """

    column: str
    source: str
    difference: Integer
    alone: int | None

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source,)

    def modelled_of(self, columns: Columns) -> Column:  # noqa: ARG002
        return self.difference

    def read_as(self, columns: Columns) -> Elapsing:
        stated = {one.name: getattr(self.difference, one.name) for one in fields(self.difference)}
        column = columns[self.column]
        assert isinstance(column, Bounded)
        return Elapsing(**stated, lag=self, of=column)

    def conditioned(self, wanted: ValueSet, columns: Columns) -> tuple[str, ValueSet]:  # noqa: ARG002
        """A condition stays with the column: it is one on two others."""
        return self.column, wanted

    @property
    def most(self) -> int:
        """The largest difference."""
        return int(self.difference.high) if self.alone is None else self.alone - 1

    def numbers(
        self, source: NDArray[np.int64], is_null: NDArray[np.bool_], difference: NDArray[np.int64], column: Column
    ) -> NDArray[np.int64]:
        """The numbers of the column, from those of its source, whether that is null, and the difference."""
        first, last = column._first_and_last()  # type: ignore[attr-defined]  # dates and times are bounded
        alone = first - (self.alone or 0)
        return np.clip(np.where(is_null, alone, source) + difference, first, last)

    def compute(self, arrays: Mapping[str, pa.Array], columns: Columns, drawn: pa.Array | None) -> pa.Array:
        assert drawn is not None
        source, column = columns[self.source]._read(arrays[self.source]), columns[self.column]
        is_null = np.zeros(len(drawn), dtype=np.bool_) if source.is_null is None else source.is_null
        difference = np.asarray(drawn.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)
        numbers = self.numbers(source.values, is_null, difference, column)
        positions = (numbers - whole_range(column)[0]).astype(np.float64)
        return column._to_arrow(np.where(np.asarray(drawn.is_null()), np.nan, positions))

    def check(self, columns: Columns) -> NoReturn:  # noqa: ARG002
        raise AssertionError("a lag follows from a rule that was checked")

    def holds(self, rows: Mapping[str, NDArray[Any]], schema: Columns) -> NoReturn:  # noqa: ARG002
        raise AssertionError("a lag follows from a rule that says what holds")

    def preimage(self, wanted: ValueSet, columns: Columns) -> ValueSet:
        del wanted, columns
        raise SchemaError(
            f"column {self.column!r} is {self.source!r} and a difference; state the condition on {self.source!r}"
        )

    def to_dict(self) -> NoReturn:
        raise AssertionError("a lag is written as the rule that it follows from")


def lags_of(rules: Sequence[Rule], columns: Columns) -> list[Lag]:
    """The lags of rules with a stated difference, once both columns have bounds."""
    stated = [rule for rule in rules if isinstance(rule, AtMost) and rule.difference is not None]
    return [_lag(rule, columns) for rule in stated if all(columns[name].has_bounds for name in rule.columns)]  # type: ignore[attr-defined]


def orders_of(rules: Sequence[Rule], columns: Columns) -> list[Rule]:
    """The rules without those that hold because a column is computed from the other."""
    computed = {(lag.source, lag.column) for lag in lags_of(rules, columns)}
    return [rule for rule in rules if not (isinstance(rule, AtMost) and rule.columns in computed)]


def _lag(rule: AtMost, columns: Columns) -> Lag:
    assert rule.difference is not None
    source, column = columns[rule.column], columns[rule.other]
    assert isinstance(source, Bounded)
    assert isinstance(column, Bounded)
    unit, stated, step = UNITS[str(column._compared_as)], rule.difference, column.step
    low, high = -(-stated.low * unit // step) * step, stated.high * unit // step * step
    alone = None
    if source.nullable:
        alone, (first, last) = high + step, column._first_and_last()
        high = alone + int(last - first)
    kind = Integer if unit == 1 else Elapsed
    multiple_of = None if step == 1 else step
    difference = kind(low, high, multiple_of=multiple_of, nullable=column.nullable, bits=stated.bits)
    return Lag(rule.other, rule.column, difference, alone)


# ------------------------------------------------------------------------------------------------------------ automatic
# A difference is modelled wherever one follows from public bounds: of dates, of datetimes and of times.


def with_differences(rules: Sequence[Rule], columns: Columns, but: Collection[str] = ()) -> tuple[Rule, ...]:
    """The rules with differences stated for those between dates, datetimes or times that can have one.

    The range of a difference follows from the bounds of both columns. A column is computed from one other at most, and
    not where a rule compares it with a column that it is not computed from.

    Args:
        rules: all rules of a schema.
        columns: its columns.
        but: columns that are modelled as they are.
    """
    orders = [rule for rule in rules if isinstance(rule, AtMost)]
    found = {rule: _spanned(rule, columns) for rule in orders if rule.other not in but}
    computed = {rule: one for rule, one in found.items() if one is not None}
    while True:
        others = [rule for rule in orders if rule not in computed]
        names = [rule.other for rule in computed]
        is_met = {name for rule in others for name in rule.columns} | {name for name in names if names.count(name) > 1}
        kept = {rule: one for rule, one in computed.items() if rule.other not in is_met}
        if len(kept) == len(computed):
            break
        computed = kept
    return tuple(computed.get(rule, rule) if isinstance(rule, AtMost) else rule for rule in rules)


def _spanned(rule: AtMost, columns: Columns) -> AtMost | None:
    """A rule with its difference; None where it has none."""
    if rule.difference is not None:
        return rule
    source, column = (columns[name] for name in rule.columns)
    unit = UNITS.get(str(column._compared_as))
    if unit is None or not (isinstance(source, Bounded) and isinstance(column, Bounded)):
        return None
    if not (source.has_bounds and column.has_bounds) or not _is_in_step(source, column):
        return None
    span = int(column._first_and_last()[1] - source._first_and_last()[0])
    if span < max(column.step, 1):
        return None
    return replace(rule, difference=Integer(0, max(-(-span // unit), 1), bits=column.bits))


def _is_in_step(source: Bounded, column: Bounded) -> bool:
    """Whether differences of two columns come in the steps of both."""
    return source.step == column.step and (source._phase - column._phase) % column.step == 0


def check_difference(rule: AtMost, columns: Columns) -> None:
    """Raise a SchemaError unless these columns have a difference that can be modelled."""
    source, column = (columns[name] for name in rule.columns)
    stated = rule.difference
    assert stated is not None
    if str(column._compared_as) not in UNITS:
        raise SchemaError(
            f"AtMost: {rule.other!r} is of type {column.type_name}, and differences are those of dates, datetimes and "
            "times; leave difference out, or compute the column by Sum with a residual"
        )
    assert isinstance(source, Bounded)
    assert isinstance(column, Bounded)
    if not stated.has_bounds or stated.low < 0 or stated.high <= stated.low:
        raise SchemaError(
            f"AtMost: the difference of {rule.other!r} and {rule.column!r} needs bounds from 0 up, such as "
            f"sp.Integer(0, 365){'' if column._compared_as == 'dates' else ', in seconds'}"
        )
    if stated.nullable:
        raise SchemaError(
            f"AtMost: the difference of {rule.other!r} is null exactly where one of the columns is; leave nullable out"
        )
    if stated.multiple_of is not None:
        raise SchemaError(
            f"AtMost: the difference of {rule.other!r} and {rule.column!r} comes in the steps of these columns; state "
            "multiple_of for both of them"
        )
    if not _is_in_step(source, column):
        raise SchemaError(
            f"AtMost: {rule.column!r} and {rule.other!r} come in different steps, so their difference has none; state "
            "the same multiple_of for both, or leave difference out"
        )
    if source.has_bounds and column.has_bounds:
        unit, span = UNITS[str(column._compared_as)], column._first_and_last()[1] - source._first_and_last()[0]
        if stated.low * unit > span:
            raise SchemaError(
                f"AtMost: no row has a difference of {stated.low} or more between {rule.column!r} and {rule.other!r} "
                f"by their bounds; lower its low={stated.low}, or widen the bounds"
            )


# -------------------------------------------------------------------------------------------------------- as it is read
# The difference in the place of the larger column, in the schema that a table is read by. What the table holds is
# read as that column is; then the smaller one is taken away, in whole numbers, alike in every engine.


@dataclass(frozen=True, slots=True, repr=False)
class Elapsing(Integer):
    """The larger column of a `Lag` less the smaller one."""

    lag: Lag | None = field(default=None, kw_only=True)
    of: Bounded | None = field(default=None, kw_only=True)

    @property
    def _also_reads(self) -> tuple[str, ...]:
        assert self.lag is not None
        return self.lag.sources

    # What the table holds is a date, a datetime or a time.

    @property
    def _held(self) -> Bounded:
        assert self.of is not None
        return self.of

    @property
    def type_name(self) -> str:  # type: ignore[override]
        return self._held.type_name

    @property
    def _accepts(self) -> Any:  # type: ignore[override]
        return self._held._accepts

    @property
    def _spark_cast(self) -> str:  # type: ignore[override]
        return self._held._spark_cast

    @property
    def _spark_types(self) -> frozenset[str]:
        return self._held._spark_types

    @property
    def _fits_array(self) -> bool:  # type: ignore[override]
        return self._held._fits_array

    @property
    def _spelling_remedy(self) -> str:  # type: ignore[override]
        return self._held._spelling_remedy

    @property
    def _arrow_type(self) -> Any:
        return self._held._arrow_type

    @property
    def _object_type(self) -> Any:
        return self._held._object_type

    @property
    def _csv_type(self) -> Any:
        return self._held._csv_type

    @property
    def _complaint(self) -> str:
        return self._held._complaint

    def _remedy(self, group: Any) -> str | None:
        return self._held._remedy(group)

    def _converter(self) -> Any:
        return self._held._converter()

    def _from_strings(self, strings: Any, spelling: Spelling = PLAIN) -> Any:
        return self._held._from_strings(strings, spelling)

    def _cause(self, text: str, spelling: Spelling) -> str:
        return self._held._cause(text, spelling)

    def _read(self, values: Any) -> Physical:
        return self._held._read(values)

    def _expression(self, value: nw.Expr, dtype: Any, *, place: nw.Expr | None = None) -> Reading:
        return self._held._expression(value, dtype, place=place)

    def _from_spark(self, value: Any, kind: Any) -> Any:
        return self._held._from_spark(value, kind)

    # The difference, of columns and of expressions: the same whole numbers.

    def _combined(self, own: Physical, parts: Mapping[str, Physical]) -> Physical:
        """The difference of rows whose columns are these. SENSITIVE."""
        assert self.lag is not None
        source, (alone, first) = parts[self.lag.source], self._alone
        if source.is_null is None:
            return reading.Physical(np.minimum(own.values - source.values, self.lag.most), own.is_null)
        apart = np.minimum(own.values - np.where(source.is_null, 0, source.values), self.lag.most)
        if self.lag.alone is None:
            is_null = source.is_null if own.is_null is None else source.is_null | own.is_null
            return reading.Physical(apart, is_null)
        above = np.maximum(own.values - first, 0) + alone
        return reading.Physical(np.where(source.is_null, above, apart), own.is_null)

    def _combined_expression(self, own: Reading, parts: Mapping[str, Reading]) -> Reading:
        """The same as an expression of an engine."""
        assert self.lag is not None
        source, (alone, first) = parts[self.lag.source], self._alone
        apart = (own.number - source.number).clip(upper_bound=self.lag.most)
        is_wrong = own.is_wrong | source.is_wrong
        if self.lag.alone is None:
            return reading.Reading(apart, own.is_missing | source.is_missing, is_wrong)
        above = (own.number - first).clip(lower_bound=0) + alone
        number = nw.when(source.is_missing).then(above).otherwise(apart)
        return reading.Reading(number, own.is_missing, is_wrong)

    @property
    def _alone(self) -> tuple[int, int]:
        """The first number of rows without a source, and the first one of the column itself."""
        assert self.lag is not None
        return self.lag.alone or 0, int(self._held._first_and_last()[0])
