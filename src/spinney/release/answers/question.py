"""Question: what is asked of a release, checked before anything is computed. PUBLIC.

The public methods of `Release` make questions, and every kind of release answers them in its own way.

    conditions    what a condition asks of a column, as the set of values that meet it
    questions     one number that is asked for, and the cells of tables
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import product
from typing import Any, Literal

import numpy as np

from spinney.columns import Bounded, Column, Listed, exact
from spinney.columns.base import shown
from spinney.errors import ParameterError
from spinney.release.answers.answer import TRUTHS, Answer, Statement, Truth, shown_label, shown_level
from spinney.schema.rules.base import Number, ValueSet, universe
from spinney.schema.schema import Schema
from spinney.text import as_given, brief, did_you_mean_column

# ----------------------------------------------------------------------------------------------------------- conditions
# What a condition asks of a column, in Python's own types, and as the set of values that meet it.
#
#     number, date     one value, (low, high) with both ends included and None where there is no end, or a list of these
#     category         one value or a list of values
#     boolean          True or False; 1 and 0, "true" and "false" mean the same
#     null             None
#
# Values may be Python's, numpy's, pandas' or pyarrow's own.


def allowed(name: str, column: Column, wanted: Any) -> ValueSet:
    """The values of a column that a condition allows, as ranges of physical numbers in the column's steps.

    Raises:
        ParameterError: the condition makes no sense for the column, or no value meets it.
    """
    wanted = plain(wanted)
    if wanted is not None and hasattr(wanted, "__iter__") and not isinstance(wanted, (str, bytes, tuple, list)):
        raise ParameterError(
            f"where: column {name!r} takes a value, a range (low, high) or a list of values, not a "
            f"{type(wanted).__name__}; write list(...) around several values"
        )
    several = wanted if isinstance(wanted, list) or (isinstance(column, Listed) and isinstance(wanted, tuple)) else None
    parts = [wanted] if several is None else list(several)
    has_null = any(part is None for part in parts)
    if has_null and not column.nullable:
        raise ParameterError(f"where: column {name!r} is never null")
    ranges: list[tuple[Number, Number]] = []
    for part in parts:
        if part is None:
            continue
        if isinstance(column, Listed):
            place = column._place_of(part, name=name, argument="where")
            ranges.append((place, place))
        else:
            assert isinstance(column, Bounded)
            ranges += _within(name, column, part)
    found = ValueSet.of(ranges, has_null=has_null)
    if found.is_empty:
        raise never(name, wanted)
    return found


def never(name: str, wanted: Any) -> ParameterError:
    """The error for what no row of a release can have."""
    return ParameterError(
        f"where: column {name!r} is never {shown(wanted)} in this release; "
        "ask for values within its bounds and in its steps, or for more values"
    )


def _within(name: str, column: Bounded, wanted: Any) -> list[tuple[Number, Number]]:
    """One value or one range, cut to the bounds and to the steps of the column; nothing where that leaves nothing."""
    if isinstance(wanted, tuple):
        low, high = range_asked(name, column, wanted)
    else:
        low = high = column._condition_number(wanted, name)
        if column.is_whole and isinstance(low, float) and not low.is_integer():
            raise ParameterError(
                f"where: column {name!r} holds whole numbers, and {shown(wanted)} is not a whole number"
            )
    least, most = universe(column)
    low, high = max(low, least), min(high, most)
    if low > high:
        return []
    if column.is_whole:
        ends: list[Number] = [
            int(column._aligned(math.ceil(low), up=True)),
            int(column._aligned(math.floor(high), up=False)),
        ]
    elif column.spacing is None:
        ends = [float(low), float(high)]
    else:
        ends = [
            float(column._aligned(exact(float(low)), up=True)),
            float(column._aligned(exact(float(high)), up=False)),
        ]
    return [(ends[0], ends[1])] if ends[0] <= ends[1] else []


def plain(wanted: Any) -> Any:
    """What was asked for in Python's own types; the nulls of pandas and numpy are None."""
    if isinstance(wanted, tuple):
        return tuple(_plain_end(part) for part in wanted)
    if isinstance(wanted, (list, set, frozenset)):
        return [plain(part) for part in wanted]
    if isinstance(wanted, np.ndarray) and wanted.ndim == 0:
        wanted = wanted[()]
    if hasattr(wanted, "as_py"):  # a value of an Arrow table
        wanted = wanted.as_py()
    if type(wanted).__name__ in ("NAType", "NaTType") or (isinstance(wanted, np.datetime64) and np.isnat(wanted)):
        return None
    if isinstance(wanted, np.datetime64):
        moment = wanted.astype("datetime64[us]")
        return wanted if moment != wanted else moment.item()
    if isinstance(wanted, datetime) and hasattr(wanted, "to_pydatetime"):
        return wanted if getattr(wanted, "nanosecond", 0) else wanted.to_pydatetime()
    return wanted.item() if isinstance(wanted, np.generic) else wanted


def range_asked(name: str, column: Bounded, wanted: tuple[Any, ...]) -> tuple[int | float, int | float]:
    """The ends of a range as physical numbers, infinite where there is none; a ParameterError where it is no range."""
    if len(wanted) != 2:
        raise ParameterError(f"where: column {name!r} takes a range as (low, high), not {shown(wanted)}")
    if wanted[0] is None and wanted[1] is None:
        raise ParameterError(f"where: column {name!r}: a range without ends says nothing; leave the column out")
    low = -math.inf if wanted[0] is None else column._condition_number(wanted[0], name)
    high = math.inf if wanted[1] is None else column._condition_number(wanted[1], name)
    if any(isinstance(end, float) and math.isnan(end) for end in (low, high)):
        raise ParameterError(f"where: column {name!r} takes a range as (low, high), and NaN cannot be a bound")
    if low > high:
        raise ParameterError(f"where: column {name!r}: {shown(wanted[0])} is above {shown(wanted[1])}; swap the two")
    return low, high


def _plain_end(end: Any) -> Any:
    """An end of a range. None is no end; a null of pandas or numpy came out of a table, and is no bound."""
    found = plain(end)
    return math.nan if found is None and end is not None else found


# ------------------------------------------------------------------------------------------------------------ questions
# Questions, and the cells of tables as questions. What is checked here needs no more than the schema: columns
# that exist, a level between 0 and 1, conditions that are a mapping. What a condition asks of its column is
# read by the kind of release.


Kind = Literal["count", "proportion", "mean", "quantile"]
Wanted = Literal["auto", "certified", "calibrated"]
WANTED: tuple[Wanted, ...] = ("auto", "certified", "calibrated")

# Cells of a table above which a question is a mistake, and values of a column above which it needs ranges.
MOST_CELLS = 10_000
_MOST_VALUES = 100


@dataclass(frozen=True, slots=True)
class Question:
    """One number that is asked for: of the rows that meet `where`; `asked` says it in words.

    A proportion is that of rows which meet `where` among those which meet `given`, among all rows where that is empty.
    """

    kind: Kind
    column: str | None = None  # of means and quantiles
    at: float | None = None  # of quantiles: the share of rows below
    where: Mapping[str, Any] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)  # of proportions
    level: float = 0.95
    of: Truth = "table"
    statement: Wanted = "auto"
    force: bool = False  # whether an interval is given although it is not supported

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that the question is about, each once."""
        own = () if self.column is None else (self.column,)
        return tuple(dict.fromkeys([*own, *self.where, *self.given]))

    @property
    def asked(self) -> str:
        """The question in words, as the command line takes it."""
        about = self.column if self.at is None else f"{self.column}, {self.at:g}"
        what = self.kind if self.column is None else f"{self.kind}({about})"
        return what + _in_words("where", self.where) + _in_words("given", self.given)

    def answered(self, estimate: float, ends: tuple[float, float] | None, statement: Statement, why: str) -> Answer:
        """The answer with this interval, which what is not supported has only where it was forced."""
        if statement == "not supported" and ends is not None:
            ends, why = (ends, f"forced: {why}") if self.force else (None, why)
        low, high = (None, None) if ends is None else map(float, ends)
        return Answer(float(estimate), low, high, self.level, statement, why, self.of, self.asked)


def _in_words(word: str, conditions: Mapping[str, Any]) -> str:
    if not conditions:
        return ""
    return f" {word} " + " and ".join(map(_condition_in_words, conditions, conditions.values()))


def _condition_in_words(name: str, wanted: Any) -> str:
    if wanted is None:
        return f"{name} is null"
    return f"{name} {'in' if isinstance(wanted, (tuple, list)) else '='} {shown_label(wanted)}"


def checked(question: Question, schema: Schema) -> Question:
    """The question with its conditions in plain mappings, or a ParameterError that says what is wrong with it."""
    check_level(question.level)
    for argument, value, known in (("of", question.of, TRUTHS), ("statement", question.statement, WANTED)):
        if not isinstance(value, str) or value not in known:
            raise ParameterError(f"{argument}={as_given(value)} is not one of {', '.join(map(repr, known))}")
    if not isinstance(question.force, bool):
        raise ParameterError(f"force={as_given(question.force)} is not True or False")
    if question.column is not None:
        check_column(question.column, schema, "column")
    for argument, conditions in (("where", question.where), ("given", question.given)):
        check_conditions(conditions, schema, argument)
    both = [name for name in question.where if name in question.given]
    if both:
        raise ParameterError(
            f"column {both[0]!r} is in `where` and in `given`; say in `where` what is to hold of it, and leave it out "
            "of `given`, or ask for two counts"
        )
    at = question.at
    if question.kind == "quantile" and (
        isinstance(at, bool) or not isinstance(at, (int, float)) or not 0 < at < 1 or math.isnan(at)
    ):
        raise ParameterError(f"at={as_given(at)} is not a number between 0 and 1; 0.5 is the median")
    return question


def check_level(level: Any) -> float:
    """The probability that an interval is to hold with, or a ParameterError."""
    is_number = isinstance(level, (int, float)) and not isinstance(level, bool)
    if not is_number or not 0 < level < 1:
        percent = f"; {shown_level(level / 100)} is {level / 100:g}" if is_number and 1 < level < 100 else ""
        raise ParameterError(f"level={as_given(level)} is not a number between 0 and 1, such as 0.95{percent}")
    return float(level)


def check_column(name: Any, schema: Schema, argument: str) -> None:
    """Raise a ParameterError unless the schema has a column of this name."""
    if not isinstance(name, str) or name not in schema:
        known = list(schema)
        raise ParameterError(
            f"{argument}: there is no column {brief(name)}; the columns are {', '.join(map(repr, known[:20]))}"
            f"{', ...' if len(known) > 20 else ''}{did_you_mean_column(str(name), known)}"
        )


def check_conditions(conditions: Any, schema: Schema, argument: str) -> None:
    """Raise a ParameterError unless these are conditions by column, none of them empty."""
    if not isinstance(conditions, Mapping):
        raise ParameterError(
            f"{argument} is a {type(conditions).__name__}, not a mapping of columns to what they are to be; "
            f"write {argument}={{'column': value}}"
        )
    for name, wanted in conditions.items():
        check_column(name, schema, argument)
        if isinstance(wanted, (list, set, frozenset, tuple)) and not wanted:
            raise ParameterError(
                f"{argument}: column {name!r} is asked to be none of its values; list a value, or leave the column out"
            )


# --------------------------------------------------------------------------------------------------------------- tables

Label = tuple[Any, ...]


def cells(by: Any, schema: Schema, *, where: Mapping[str, Any]) -> tuple[tuple[str, ...], list[Label]]:
    """The columns and the cells of a table: for each column a value or a range; a ParameterError where there are none.

    `by` is a column, several, or a mapping of columns to the values and ranges that make its cells, None for all values
    of the column. A column of `where` is not one of `by`.
    """
    given = _by_column(by)
    for name in given:
        check_column(name, schema, "by")
        if name in where:
            raise ParameterError(f"column {name!r} is in `by` and in `where`; leave it out of one of the two")
    parts = [
        _all_values(name, schema[name]) if wanted is None else _stated(name, wanted) for name, wanted in given.items()
    ]
    n_cells = math.prod(map(len, parts))
    if n_cells > MOST_CELLS:
        raise ParameterError(
            f"by: the table has {n_cells:,} cells, more than {MOST_CELLS:,}; leave columns out, or give ranges or "
            "fewer values: by={'column': [value, (low, high)]}"
        )
    return tuple(given), list(product(*parts))


def _by_column(by: Any) -> dict[str, Any]:
    if isinstance(by, str):
        return {by: None}
    if isinstance(by, Mapping):
        found = dict(by)
    elif isinstance(by, (list, tuple)):
        found = dict.fromkeys(by)
        if len(found) < len(by):
            raise ParameterError(f"by={shown(by)} names a column twice; name it once")
    else:
        raise ParameterError(f"by is a {type(by).__name__}; name a column, or several in a list")
    if not found:
        raise ParameterError("by names no column; use count() for one number")
    return found


def _stated(name: str, wanted: Any) -> Sequence[Any]:
    if not isinstance(wanted, (list, tuple)) or not wanted:
        raise ParameterError(
            f"by: column {name!r} takes a list of values and ranges, [value, (low, high)], or None for all its values"
        )
    found: list[Any] = []
    for value in map(plain, wanted):
        if any(value == other and type(value) is type(other) for other in found):
            raise ParameterError(f"by: column {name!r} has the cell {shown(value)} twice; list it once")
        found.append(value)
    return list(wanted)


def _all_values(name: str, column: Column) -> Sequence[Any]:
    """All values that a column can have, null last; of numbers only where they are few."""
    null = [None] if column.nullable else []
    if isinstance(column, Listed):
        return [*column.listed, *null]
    if isinstance(column, Bounded) and column.is_whole and column.has_bounds:
        first, last = column._first_and_last()
        if (last - first) // column.step < _MOST_VALUES:
            return [*(column.logical(number) for number in range(int(first), int(last) + 1, column.step)), *null]
    ends = (column.low, column.high) if isinstance(column, Bounded) and column.has_bounds else ("low", "high")
    raise ParameterError(
        f"by: column {name!r} has more values than cells are made of; give ranges, both ends included: "
        f"by={{{name!r}: [({ends[0]!s}, ...), (..., {ends[1]!s})]}}"
    )
