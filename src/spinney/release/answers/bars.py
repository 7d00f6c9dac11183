"""Error bars: the distribution of every column, and how far cells of pairs may be off. PUBLIC.

    column    a bar for each value or range, with its interval; where all are certified, they hold at once
    pair      a table of at most three by three parts: the widest interval of its cells, as a share of rows

Bars are cut where counting cut the column, never where the noisy counts look good: intervals that were chosen
by the noise that they bound would hold less often than they say. All numbers come from `table` and `trust`.

    (first)         bars of columns and of pairs, and the cells that they are of
    page of text    error bars as a page of text
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeVar

from spinney.columns import Bounded, Column, Listed, exact
from spinney.errors import ParameterError
from spinney.release.answers.answer import (
    STATEMENTS,
    Answer,
    Answers,
    Statement,
    shown_label,
    shown_level,
    shown_number,
)
from spinney.release.answers.question import check_column, check_level
from spinney.text import cut, more, printable, wrapped

if TYPE_CHECKING:
    from spinney.release.release import Release


# Bars of a column of numbers, values above which a list gets none, and parts of a column in the table of a pair.
MOST_BARS = 12
MOST_VALUES = 300
MOST_PARTS = 3
# More pairs than this are not looked at unasked, those that were counted together first.
MOST_PAIRS = 120

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ColumnBars:
    """The distribution of a column: an answer for each value or range; None, and why, where there is none."""

    name: str
    answers: Answers | None
    refusal: str = ""

    @property
    def statement(self) -> Statement:
        """The weakest statement among the bars."""
        return "not supported" if self.answers is None else weakest(self.answers)

    def to_dict(self) -> dict[str, Any]:
        """The bars as plain data for JSON."""
        found: dict[str, Any] = {"name": self.name, "statement": self.statement}
        if self.answers is None:
            return found | {"refusal": self.refusal}
        return found | {"simultaneous": self.answers.simultaneous, "bars": self.answers.to_dict()}


@dataclass(frozen=True, slots=True)
class PairBars:
    """How far a cell of a pair's table may be off: the widest half of an interval, in rows and as a share of them."""

    columns: tuple[str, str]
    is_counted: bool  # whether one counted table holds both
    n_cells: int
    half_width: float | None  # None where nothing is claimed
    share: float | None
    simultaneous: bool  # whether no cell is further off, with the stated probability
    statement: Statement
    why: str

    def to_dict(self) -> dict[str, Any]:
        """The pair as plain data for JSON."""
        return {name: getattr(self, name) for name in self.__slots__} | {"columns": list(self.columns)}


@dataclass(frozen=True, slots=True)
class ErrorBars:
    """How far the released columns and pairs may be off. `print` is meant to be read, `to_dict` to be parsed."""

    level: float
    n_rows: float  # the public number of rows, or a noisy one
    columns: tuple[ColumnBars, ...]
    pairs: tuple[PairBars, ...]  # those that were counted together first, those without a figure last; widest first
    n_left_out: int = 0  # pairs that were not looked at
    refusal: str = ""  # why there are none at all
    who: str = "rows"  # what is counted: rows, or persons

    def of(self, *columns: str) -> ColumnBars | PairBars:
        """The bars of one column, or the figure of a pair, in any order.

        Args:
            columns: one column or two.

        Raises:
            ParameterError: there are no bars of them.
        """
        every: tuple[ColumnBars | PairBars, ...] = (*self.columns, *self.pairs)
        for one in every:
            names = (one.name,) if isinstance(one, ColumnBars) else one.columns
            if set(names) == set(columns):
                return one
        raise ParameterError(
            f"there are no error bars of {' and '.join(map(repr, columns))}; ask for these columns: "
            f"error_bars({list(columns)!r})"
        )

    def to_dict(self) -> dict[str, Any]:
        """All bars as plain data for JSON."""
        return {
            "level": self.level,
            "n_rows": self.n_rows,
            "refusal": self.refusal or None,
            "columns": [column.to_dict() for column in self.columns],
            "pairs": [pair.to_dict() for pair in self.pairs],
            "pairs_left_out": self.n_left_out,
        }

    def __str__(self) -> str:

        return page(self)


def error_bars(release: Release, columns: Sequence[str] | None, *, level: float, pairs: bool) -> ErrorBars:
    """The error bars of some columns and of their pairs, by default of all; a release without answers says so."""
    level = check_level(level)
    names = _checked(release, columns)
    try:
        total = max(release.count(level=level).estimate, 1.0)
    except ParameterError as problem:
        return ErrorBars(level, 0.0, (), (), refusal=str(problem))
    of_columns = tuple(_column(release, name, level) for name in names)
    if not pairs:
        return ErrorBars(level, total, of_columns, ())
    wanted = list(combinations([one.name for one in of_columns if one.answers is not None], 2))
    wanted.sort(key=lambda pair: not release._holds_pair(pair))  # stable: in the order of the schema
    most = MOST_PAIRS if columns is None else len(wanted)
    found: list[PairBars] = []
    n_figures = n_left_out = 0
    for pair in wanted:
        one = _unsupported(release, pair)  # which takes next to no time
        if one is None and n_figures < most:
            one, n_figures = _pair(release, pair, level, total), n_figures + 1
        if one is None:
            n_left_out += 1
        else:
            found.append(one)
    found.sort(key=lambda pair: (pair.share is None, not pair.is_counted, -(pair.share or 0.0)))
    return ErrorBars(level, total, of_columns, tuple(found), n_left_out)


def _checked(release: Release, columns: Sequence[str] | None) -> list[str]:
    if columns is None:
        return list(release.schema)
    wanted = [columns] if isinstance(columns, str) else list(columns)
    if not wanted:
        raise ParameterError("columns is empty; name those whose error bars you want, or leave it out")
    for name in wanted:
        check_column(name, release.schema, "columns")
    return list(dict.fromkeys(wanted))


# ------------------------------------------------------------------------------------------------------- columns, pairs


def _column(release: Release, name: str, level: float) -> ColumnBars:
    try:
        return ColumnBars(name, _table(release, {name: bar_cells(release, name)}, level))
    except ParameterError as problem:
        return ColumnBars(name, None, str(problem))


def _unsupported(release: Release, pair: tuple[str, str]) -> PairBars | None:
    """A pair that the release says nothing about; None of others."""
    try:
        verdict = release.trust(pair).of(*pair)
    except ParameterError as problem:
        return _without(release, pair, str(problem))
    return _without(release, pair, verdict.why) if verdict.statement == "not supported" else None


def _pair(release: Release, pair: tuple[str, str], level: float, total: float) -> PairBars:
    """The widest interval among the cells of two columns."""
    try:
        answers = _table(release, {name: _parts(release, name) for name in pair}, level)
    except ParameterError as problem:
        return _without(release, pair, str(problem))
    widest = max(answers, key=lambda answer: -math.inf if answer.half_width is None else answer.half_width)
    half = widest.half_width
    if half is None:
        return _without(release, pair, widest.why)
    is_counted, statement = release._holds_pair(pair), weakest(answers)
    return PairBars(pair, is_counted, len(answers), half, half / total, answers.simultaneous, statement, widest.why)


def _without(release: Release, pair: tuple[str, str], why: str) -> PairBars:
    return PairBars(pair, release._holds_pair(pair), 0, None, None, False, "not supported", why)


def _table(release: Release, by: dict[str, list[Any]], level: float) -> Answers:
    """Counts of all cells: certified ones at once, others each by itself. Which of the two is decided by geometry."""
    if len(by) > 1 and release._counts_whole(by):
        return release.table(by, level=level, statement="certified", simultaneous=True)
    if len(by) == 1 or release._counts_together(list(by)):
        answers = release.table(by, level=level, simultaneous=True)
        if weakest(answers) == "certified" or len(answers) < 2:
            return answers
    return release.table(by, level=level)


def weakest(answers: Sequence[Answer]) -> Statement:
    """The weakest statement among answers."""
    return max((answer.statement for answer in answers), key=STATEMENTS.index)


# ---------------------------------------------------------------------------------------------------------------- cells


def bar_cells(release: Release, name: str) -> list[Any]:
    """The values and ranges that a column gets a bar for; a ParameterError where it gets none."""
    column = release.schema[name]
    null = [None] if column.nullable else []
    if isinstance(column, Listed):
        if len(column.listed) > MOST_VALUES:
            raise ParameterError(
                f"column {name!r} has {len(column.listed):,} values, more than bars are drawn of; ask for some of "
                f"them: table({{{name!r}: [value, ...]}})"
            )
        return [*column.listed, *null]
    return [*_ranges(release, name, column, MOST_BARS), *null]


def _parts(release: Release, name: str) -> list[Any]:
    """A column in a few parts; lists of several values are one part."""
    return parts_of(release, name, MOST_PARTS)


def parts_of(release: Release, name: str, most: int) -> list[Any]:
    """A column in at most so many parts, and null, cut where counting cut it; lists of several values are one part.

    Args:
        release: what was released.
        name: a column of its schema.
        most: how many parts there may be.

    Raises:
        ParameterError: the column was not counted.
    """
    column = release.schema[name]
    null = [None] if column.nullable else []
    if isinstance(column, Listed):
        values = release._value_groups(name) or [[value] for value in column.listed]
        return [[value for group in part for value in group] for part in split(values, most)] + null
    return [*_ranges(release, name, column, most), *null]


def _ranges(release: Release, name: str, column: Column, most: int) -> list[Any]:
    """Ranges of a column of numbers, dates or times: as counting cut it, or else of equal length."""
    if not isinstance(column, Bounded) or not column.has_bounds:
        raise ParameterError(f"column {name!r} is of type {column.type_name}, and was not counted")
    starts = release._bar_starts(name, most, together=most != MOST_BARS)
    if starts is None:
        starts = list(_even(column, most))
    return list(ranges_from(column, starts))


def ranges_from(column: Bounded, starts: Sequence[Any]) -> Iterator[Any]:
    """Ranges that begin at physical numbers and end before the next; what holds one value alone is that value."""
    first, last = column._first_and_last()
    inner: list[Any]
    if column.is_whole:
        inner = [int(column._aligned(math.ceil(start), up=True)) for start in starts]
    elif column.spacing is not None:
        inner = [float(column._aligned(exact(float(start)), up=True)) for start in starts]
    else:
        inner = [float(start) for start in starts]
    cuts = sorted({cut for cut in inner if first < cut <= last})
    for low, after in zip([first, *cuts], [*cuts, None], strict=True):
        high = last
        if after is not None and column.is_whole:
            high = after - column.step
        elif after is not None and column.spacing is not None:
            high = float(exact(after) - column.spacing)
        elif after is not None:
            high = math.nextafter(after, -math.inf)
        yield column.logical(low) if low == high else (column.logical(low), column.logical(high))


def ranges_of(column: Column, cells: Sequence[Any], wanted: tuple[Any, Any]) -> Iterator[Any]:
    """Values and ranges of a column, cut to a range, both ends included; what lies outside of it is left out.

    Args:
        column: a column of numbers, dates or times.
        cells: its values and ranges; null is left out.
        wanted: the range; an end may be None.
    """
    if not isinstance(column, Bounded):
        return
    low, high = wanted
    least = -math.inf if low is None else column._condition_number(low, "")
    most = math.inf if high is None else column._condition_number(high, "")
    for cell in cells:
        if cell is None:
            continue
        first, last = cell if isinstance(cell, tuple) else (cell, cell)
        begins, ends = column.physical(first), column.physical(last)
        if ends < least or begins > most:
            continue
        begin, end = low if begins < least else first, high if ends > most else last
        yield begin if begin == end else (begin, end)


def _even(column: Bounded, most: int) -> Iterator[Any]:
    first, last = column._first_and_last()
    for place in range(1, most):
        yield first + (last - first) * place / most


def split(values: Sequence[T], most: int) -> list[Sequence[T]]:
    """So many runs of about equal length, none empty."""
    n = min(most, len(values))
    return [values[len(values) * k // n : len(values) * (k + 1) // n] for k in range(n)]


# --------------------------------------------------------------------------------------------------------- page of text
# Error bars as a page to read: bars of characters, filled up to the low end of an interval, dashed up to the high
# one.
#
# age          certified, all bars at once
#   17..22    ########-             4,321   4,233 to 4,409


_LENGTH = 30  # of a full bar
_MOST_COLUMNS = 40
_MOST_LINES = 12  # of a column
_MOST_PAIRS = 30
_LONGEST = 28  # of a label


def page(bars: ErrorBars) -> str:
    """The whole page."""
    if bars.refusal:
        lines = wrapped(f"there are no error bars: {bars.refusal}", "  ")
        return "\n".join(printable(line) for line in lines)
    shown = bars.columns[:_MOST_COLUMNS]
    lines = [f"  error bars of columns, in {bars.who} ({shown_level(bars.level)})"]
    for column in shown:
        lines += _column_page(column)
    lines += more(len(bars.columns) - len(shown))
    reasons = {one.why: None for column in shown for one in column.answers or () if one.statement == "not supported"}
    for why in reasons:
        lines += wrapped(f"not supported: {why}", "    ", "      ")
    if bars.pairs:
        lines += ["", *_pairs(bars)]
    return "\n".join(printable(line).rstrip() for line in lines)


def shown_bar(value: Any) -> str:
    """A value or a range for people: ends of reals, just below the next range, to six digits, of timestamps in days."""
    if isinstance(value, datetime):
        is_day = value.time() in (time.min, time(23, 59, 59, 999_999), time(23, 59, 59))
        return f"{value:%Y-%m-%d}" if is_day else f"{value:%Y-%m-%d %H:%M}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple):
        return shown_label(tuple(shown_bar(end) for end in value))
    return shown_label(value)


def in_order(column: ColumnBars) -> list[tuple[str, Answer]]:
    """Bars with their labels: numbers in their order, values of a long list the commonest first."""
    assert column.answers is not None
    found = [(shown_bar(label), answer) for (label,), answer in zip(column.answers.labels, column.answers, strict=True)]
    if len(found) > _MOST_LINES and not any(isinstance(label, tuple) for (label,) in column.answers.labels):
        found.sort(key=lambda bar: -bar[1].estimate)
    return found


def _column_page(column: ColumnBars) -> list[str]:
    name = f"    {cut(column.name, 40)}"
    if column.answers is None:
        return wrapped(f"{column.name}: {column.refusal}", "    ", "      ")
    held = ", all bars at once" if column.answers.simultaneous and len(column.answers) > 1 else ""
    every = in_order(column)
    shown = every[:_MOST_LINES]
    top = max([1.0, *(answer.high if answer.high is not None else answer.estimate for _, answer in every)])
    labels = [cut(label, _LONGEST) for label, _ in shown]
    widest = max(map(len, labels))
    lines = [f"{name}   {column.statement}{held}"]
    for label, (_, answer) in zip(labels, shown, strict=True):
        ends = "no interval"
        if answer.low is not None and answer.high is not None:
            ends = f"{shown_number(answer.low, 0)} to {shown_number(answer.high, 0)}"
        lines.append(
            f"      {label:<{widest}}  {_bar(answer, top):<{_LENGTH}}  {shown_number(answer.estimate, 0):>11}   {ends}"
        )
    return lines + more(len(every) - len(shown), "      ")


def _bar(answer: Answer, top: float) -> str:
    low, high = (
        (answer.estimate, answer.estimate)
        if answer.low is None or answer.high is None
        else (
            answer.low,
            answer.high,
        )
    )
    filled = round(_LENGTH * max(low, 0.0) / top)
    return "#" * filled + "-" * max(round(_LENGTH * high / top) - filled, 0)


def _pairs(bars: ErrorBars) -> list[str]:
    shown = bars.pairs[:_MOST_PAIRS]
    labels = [cut(" and ".join(pair.columns), 48) for pair in shown]
    widest = max(map(len, labels))
    lines = ["  pairs: how far a cell may be off in a table of three by three parts, in per cent of all rows"]
    lines += [f"    {label:<{widest}}  {_figure(pair)}" for label, pair in zip(labels, shown, strict=True)]
    lines += more(len(bars.pairs) - len(shown))
    n_none = sum(pair.share is None for pair in bars.pairs[_MOST_PAIRS:])
    if n_none:
        lines.append(f"    of these, {n_none:,} are not supported")
    if bars.n_left_out:
        lines += wrapped(f"{bars.n_left_out:,} other pairs were not looked at; name columns to see theirs", "    ")
    return lines


def _figure(pair: PairBars) -> str:
    if pair.share is None:
        return f"{'-':>10}   {pair.statement}"
    held = ", all cells at once" if pair.simultaneous else ""
    together = ", counted together" if pair.is_counted else ""
    return f"± {100 * pair.share:6.2f} %   {pair.statement}{held}{together}"
