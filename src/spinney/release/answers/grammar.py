"""Questions and conditions as text: "mean(income) by region where age in 30..40".

A text is read by the schema alone, never by a release; errors point at the place. The schema also decides how a
string is read.

    line of text    a line read from left to right, whose errors mark the place
    conditions      conditions on rows
    questions       whole questions
    options         `--where` and `--balance` of the command line, and the fields of forms
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

from spinney.columns import Boolean, Bounded, Column, Number
from spinney.columns.base import number_of_text
from spinney.errors import ParameterError
from spinney.privacy.budget import parse_fraction
from spinney.release.answers.question import allowed
from spinney.schema.schema import Schema
from spinney.text import did_you_mean, did_you_mean_column, printable

# --------------------------------------------------------------------------------------------------------- line of text
# A line of text that is read from left to right, whose errors point at the place.
#
#     where: 'ages' is not a column of the release; did you mean 'age'?
#       mean(income) where ages in 30..40
#                          ^^^^
#
# Questions and conditions are typed by hand, names of columns may hold spaces, signs and quotes, and a message that
# says what is wrong without saying where makes people search. Names are found by the schema, the longest that fits;
# one that is not found that way is put in quotes.


QUOTES = "\"'"
# Characters of the line that are shown to either side of the place.
_AROUND = 60
_WORD = re.compile(r"[^\s=<>!(),]+")


class Line:
    """A text, and what is read from it at a place."""

    def __init__(self, text: str, *, what: str) -> None:
        self.text = text
        self.what = what  # the beginning of messages: "--where", or "where"

    def skip(self, at: int) -> int:
        """The first place from `at` on that is no space."""
        while at < len(self.text) and self.text[at].isspace():
            at += 1
        return at

    def refuse(self, problem: str, start: int, stop: int | None = None) -> NoReturn:
        """Raise a ParameterError that points at a part of the text."""
        raise ParameterError(f"{problem}\n{self._pointer(start, start + 1 if stop is None else stop)}")

    def word(self, at: int) -> str:
        """The letters, digits and signs from a place on, up to a space, a bracket, a comma or a comparison."""
        found = _WORD.match(self.text, at)
        return found.group() if found else ""

    def keyword(self, at: int, *words: str) -> tuple[str, int] | None:
        """Which of some words stands at a place, in small letters, and where it ends; capitals do not matter."""
        for word in words:
            end = at + len(word)
            after = self.text[end : end + 1]
            if self.text[at:end].lower() == word and (not after or after.isspace() or after in "(" + QUOTES):
                return word, end
        return None

    def quoted(self, at: int) -> tuple[str, int]:
        """What is in the quotes that begin at a place, and where they end. A doubled quote is one inside."""
        mark, start, found = self.text[at], at, []
        while True:
            end = self.text.find(mark, at + 1)
            if end < 0:
                self.refuse(f"{self.what}: the quote is not closed", start)
            found.append(self.text[at + 1 : end])
            if self.text[end + 1 : end + 2] != mark:
                return mark.join(found), end + 1
            at = end + 1

    def name(self, at: int, known: Iterable[str], *, before: str) -> tuple[str, int]:
        """The column that is named at a place, and where its name ends.

        `before` is a pattern of what may follow a name. Raises a ParameterError where no column is named.
        """
        ends = [(name, at + len(name)) for name in known if self.text.startswith(name, at) and name]
        fits = [(name, end) for name, end in ends if re.compile(before).match(self.text, end)]
        if fits:
            return max(fits, key=lambda fit: len(fit[0]))
        if self.text[at : at + 1] in QUOTES and at < len(self.text):
            name, end = self.quoted(at)
        else:
            name = self.word(at)
            end = at + len(name)
        if name not in known or not re.compile(before).match(self.text, end):
            hint = did_you_mean_column(name, known)
            self.refuse(
                f"{self.what}: {name!r} is not a column of the release{hint}", at, max(end, at + 1) if name else None
            )
        return name, end

    def _pointer(self, start: int, stop: int) -> str:
        """The text around a place, and a line below with marks under it."""
        first, last = max(0, start - _AROUND), min(len(self.text), stop + _AROUND)
        before, here = printable(self.text[first:start]), printable(self.text[start:stop])
        cut = "…" if first else ""
        shown = cut + before + here + printable(self.text[stop:last]) + ("…" if last < len(self.text) else "")
        return f"  {shown}\n  {' ' * len(cut + before)}{'^' * max(1, len(here))}"


# ----------------------------------------------------------------------------------------------------------- conditions
# Conditions on rows as text, for questions and for `--where`: "age in 30..40 and sex = Male and income > 1000".
#
#     NAME = VALUE            one value; a date or time in ISO form, a boolean as true or false, 1 or 0
#     NAME in LOW..HIGH       a range of numbers, dates or times, both ends included; an end left out is the column's
#     NAME in (A, B, C)       any of several values; the brackets may be left out, and `=` does instead of `in`
#     NAME > VALUE            likewise >=, < and <=; the conditions of one column add up to one range
#     NAME = null             no value
#
# Conditions are joined by `and`. The schema decides how a string is read: one that it lists as a category is that
# category, even if it looks like a range, a number or several conditions. Names and values that hold commas, brackets
# or the word `and` before a condition are put in double or single quotes. Spaces around values do not matter.


_NULL = "null"
_RANGE = ".."
_COMPARISON = re.compile(r"\s*(<=|>=|==|!=|<>|=|<|>)|\s+(in|is|not)(?=[\s('\"]|$)", re.IGNORECASE)
_JOINT = re.compile(r"\s(and|or|given)\s+", re.IGNORECASE)
_SPELT = {"==": "=", "is": "=", "in": "="}
_MOST_SHOWN = 80  # characters of a condition, in a message
_REFUSED = ("!=", "<>", "not")


@dataclass(frozen=True, slots=True)
class _Part:
    """One condition in a line: what it is about, and where it begins and ends."""

    name: str
    sign: str  # =, <, <=, > or >=
    start: int  # of its name
    value_start: int
    value_stop: int


def parse_conditions(text: str, schema: Schema, *, what: str = "where") -> dict[str, Any]:
    """Conditions as the `where` of `Release.sample` and of questions; a ParameterError points at what is wrong.

    Args:
        text: one condition, or several joined by `and`.
        schema: that of the release.
        what: what the text was given as, for messages.
    """
    line = Line(text, what=what)
    wanted, end = read_conditions(line, 0, schema)
    if end < len(text):
        line.refuse(f"{what}: `given` belongs to a question of a proportion", end, end + len("given"))
    return wanted


def read_conditions(line: Line, at: int, schema: Schema) -> tuple[dict[str, Any], int]:
    """The conditions from a place on, and where they end: at the end of the line, or at the word `given`."""
    wanted: dict[str, Any] = {}
    parts: dict[str, list[_Part]] = {}
    end = at
    for part in _parts(line, at, schema):
        value = _wanted(line, part, schema[part.name])
        parts.setdefault(part.name, []).append(part)
        if part.name in wanted:
            value = _both(line, part, wanted[part.name], value)
        wanted[part.name] = value
        end = part.value_stop
    for name, asked in parts.items():
        _check_possible(line, asked, schema[name], wanted[name])
    return wanted, line.skip(end)


def _check_possible(line: Line, asked: list[_Part], column: Column, wanted: Any) -> None:
    """Point at conditions that no value of a column meets, in the words that they were written in."""
    if not isinstance(column, Bounded) or not column.has_bounds or wanted is None:
        return
    name, problem = asked[0].name, None
    try:
        allowed(name, column, wanted)
    except ParameterError as err:
        problem = str(err)
    if problem is None:
        return
    texts = [line.text[part.value_start : part.value_stop].strip() for part in asked]
    told = [text if part.sign == "=" else f"{part.sign} {text}" for text, part in zip(texts, asked, strict=True)]
    if " is never " in problem or len(asked) > 1:
        problem = (
            f"{line.what}: column {name!r} is never {_short(' and '.join(told))} in this release; ask for values "
            f"within its bounds, {column.low} to {column.high}, and in its steps, or for more values"
        )
    elif _RANGE in texts[0]:
        low, high = texts[0].split(_RANGE, 1)
        problem = f"{line.what}: column {name!r}: {low.strip()} is above {high.strip()}; swap the two"
    line.refuse(problem, asked[0].start, max(asked[-1].value_stop, asked[0].start + 1))


def _short(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _parts(line: Line, at: int, schema: Schema) -> Iterator[_Part]:
    """The conditions of a line one after the other."""
    while True:
        at = line.skip(at)
        name, sign, start = _head(line, at, schema)
        stop, joint = _end_of_value(line, start, schema[name])
        yield _Part(name, sign, at, start, stop)
        if joint is None or joint.group(1).lower() == "given":
            return
        at = joint.end()


def _head(line: Line, at: int, schema: Schema) -> tuple[str, str, int]:
    """The column of a condition, the comparison, and where its value begins."""
    if not _COMPARISON.search(line.text, at):
        line.refuse(
            f"{line.what} {line.text[at:]!r} has no equals sign or other comparison; write NAME=VALUE, with the name "
            "of a column",
            at,
            len(line.text),
        )
    name, end = line.name(at, schema, before=_COMPARISON.pattern)
    if not schema[name].is_read:
        line.refuse(
            f"{line.what}: column {name!r} is an identifier; its values are generated and cannot be chosen", at, end
        )
    found = _COMPARISON.match(line.text, end)
    assert found is not None  # `before` asked for it
    sign = (found.group(1) or found.group(2)).lower()
    if sign in _REFUSED:
        line.refuse(
            f"{line.what}: a condition says what a column is, not what it is not; list the values that you want: "
            f"{name} in (A, B)",
            line.skip(end),
            found.end(),
        )
    start = found.end()
    if sign == "==" and line.text[end:].lstrip()[1:].strip() in map(str, schema[name].listed):
        start -= 1  # a value that begins with an equals sign
    return name, _SPELT.get(sign, sign), start


def _end_of_value(line: Line, start: int, column: Column) -> tuple[int, re.Match[str] | None]:
    """Where a value ends, and the word that joins it to the next condition.

    That is the first `and`, outside quotes, which a column and a comparison follow; unless the schema lists what goes
    on beyond it as a category.
    """
    joints = [found for found in _JOINT.finditer(line.text, start) if _begins_condition(line, found.end())]
    listed = set(map(str, column.listed)) if column._axis_kind == "category" else set()
    for stop, joint in reversed([*((found.start(), found) for found in joints), (len(line.text), None)]):
        if line.text[start:stop].strip() in listed:
            return stop, joint
    inside = _quoted_parts(line, line.skip(start))
    for found in joints:
        if not any(first <= found.start() < last for first, last in inside):
            if found.group(1).lower() == "or":
                line.refuse(
                    f"{line.what}: conditions are joined by `and` alone; list the values of one column, NAME in "
                    "(A, B), or ask two questions",
                    found.start() + 1,
                    found.end(1),
                )
            return found.start(), found
    return len(line.text), None


def _begins_condition(line: Line, at: int) -> bool:
    """Whether a name, of a column or not, and a comparison stand at a place."""
    if line.text[at : at + 1] in QUOTES and at < len(line.text):
        end = line.text.find(line.text[at], at + 1) + 1
        return end > 0 and _COMPARISON.match(line.text, end) is not None
    return re.compile(r"[^=<>!,()]*?(" + _COMPARISON.pattern + ")", re.IGNORECASE).match(line.text, at) is not None


def _quoted_parts(line: Line, at: int) -> list[tuple[int, int]]:
    """Where values in quotes begin and end; a quote in the middle of a word is a letter like others."""
    found: list[tuple[int, int]] = []
    for opening in re.compile(r"(?:^|[\s,(])([\"'])").finditer(line.text, max(0, at - 1)):
        start = opening.start(1)
        if start >= at and not any(first <= start < last for first, last in found):
            end = line.text.find(opening.group(1), start + 1)
            found.append((start, len(line.text) if end < 0 else end + 1))
    return found


# --------------------------------------------------------------------------------------------------------------- values


def read_cells(line: Line, at: int, name: str, column: Column) -> tuple[list[Any], int]:
    """The values and ranges in the brackets that begin at a place, and where they end: the cells of a table."""
    inside = _quoted_parts(line, at + 1)
    places = range(at, len(line.text))
    ends = (k for k in places if line.text[k] == ")" and not any(first <= k < last for first, last in inside))
    end = next(ends, None)
    if end is None:
        line.refuse(f"{line.what}: the bracket is not closed; write {name} (A, B), or {name} (LOW..HIGH, ...)", at)
    cells: list[Any] = []
    for value, start, stop in _fields(line, at + 1, end):
        part = _Part(name, "=", start, start, stop)
        if value.strip() == _NULL and column.nullable:
            cells.append(None)
        elif isinstance(column, Bounded) and _RANGE in value and line.text[start] not in QUOTES:
            cells.append(_range(line, part, column, start, stop))
        else:
            cells.append(_read(line, part, column, value, start, stop))
    return cells, end + 1


def _wanted(line: Line, part: _Part, column: Column) -> Any:
    """What a condition asks of a column: a value, a (low, high) pair, a list, or None for null."""
    given = line.text[part.value_start : part.value_stop]
    text = given.strip()
    start = part.value_start + (len(given) - len(given.lstrip()) if text else 0)
    stop = start + len(text)
    if part.sign != "=":
        return _compared(line, part, column, start, stop)
    if column._axis_kind == "category":
        for spelling in (given, text):
            if spelling in map(str, column.listed):
                return _read(line, part, column, spelling, start, stop)
    if not text:
        line.refuse(
            f"{line.what}: the condition on column {part.name!r} is empty; write {part.name}=VALUE, or "
            f"{part.name}=null",
            part.start,
            max(part.value_start, part.start + 1),
        )
    if text == _NULL:
        return None
    if isinstance(column, Bounded) and _RANGE in text and text[0] not in QUOTES:
        return _range(line, part, column, start, stop)
    if text[0] == "(" and text[-1] == ")":
        start, stop = start + 1, stop - 1
    values = [_read(line, part, column, value, first, last) for value, first, last in _fields(line, start, stop)]
    return values[0] if len(values) == 1 else values


def _read(line: Line, part: _Part, column: Column, text: str, start: int, stop: int) -> Any:
    """A value as the column reads it."""
    problem = None
    value = None
    try:
        value = column._from_option(text, name=part.name, option=line.what)
        if isinstance(column, Bounded):
            column._condition_number(value, part.name)
    except ParameterError as err:
        problem = str(err)
    if problem is not None:
        line.refuse(problem, start, max(stop, start + 1))
    return value


def _range(line: Line, part: _Part, column: Bounded, start: int, stop: int) -> tuple[Any, Any]:
    middle = line.text.index(_RANGE, start)
    ends = []
    for first, last in ((start, middle), (middle + len(_RANGE), stop)):
        text = line.text[first:last].strip()
        ends.append(_read(line, part, column, text, line.skip(first), last) if text else None)
    return (column.low, column.high) if ends == [None, None] else (ends[0], ends[1])


def _compared(line: Line, part: _Part, column: Column, start: int, stop: int) -> tuple[Any, Any]:
    """A range with one end. What is whole underneath leaves an end out by a step, a real by the next float."""
    if not isinstance(column, Bounded):
        line.refuse(
            f"{line.what}: column {part.name!r} is of type {column.type_name}, whose values are listed and not "
            f"compared; write {part.name} = VALUE, or {part.name} in (A, B)",
            part.start,
            max(stop, part.start + 1),
        )
    if start == stop:
        line.refuse(f"{line.what}: there is no value to compare column {part.name!r} with", part.start, stop + 1)
    text, first = line.text[start:stop], start
    if text[0] in QUOTES:
        text, first = line.quoted(start)[0], start
    value = _read(line, part, column, text, first, stop)
    if part.sign in ("<", ">"):
        number, way = column._condition_number(value, part.name), 1 if part.sign == ">" else -1
        if column.is_whole:
            below = math.floor(number) if way > 0 else math.ceil(number)
            value = column.logical(below + way)
        else:
            value = math.nextafter(number, way * math.inf)
    return (value, None) if part.sign in (">", ">=") else (None, value)


def _both(line: Line, part: _Part, first: Any, second: Any) -> Any:
    """Two conditions on one column, where both are ranges with one end each that do not meet in an end."""
    are_ranges = isinstance(first, tuple) and isinstance(second, tuple)
    if not are_ranges or not all(a is None or b is None for a, b in zip(first, second, strict=True)):
        line.refuse(
            f"{line.what} names column {part.name!r} twice; put all that is asked of it into one condition, such as "
            f"{part.name} in LOW..HIGH, or in (A, B)",
            part.start,
            part.start + len(part.name),
        )
    low, high = (b if a is None else a for a, b in zip(first, second, strict=True))
    return low, high


def _fields(line: Line, start: int, stop: int) -> Iterator[tuple[str, int, int]]:
    """Values between commas, without their quotes, and where they begin and end."""
    at = start
    while True:
        at = min(line.skip(at), stop)
        if at < stop and line.text[at] in QUOTES and (closed := _if_quoted(line, at, stop)) is not None:
            value, end = closed
        else:
            if at < stop and line.text[at] == '"':
                line.quoted(at)  # which says that the quote is not closed
            comma = line.text.find(",", at, stop)
            end = stop if comma < 0 else comma
            value = line.text[at:end]
            if "\n" in value or "\r" in value:
                line.refuse(
                    f"{line.what}: this is not a list of values separated by commas; put values with commas, quotes or "
                    "line breaks in double quotes",
                    at,
                    end,
                )
        yield value, at, end
        end = min(line.skip(end), stop)
        if end >= stop:
            return
        at = end + 1


def _if_quoted(line: Line, at: int, stop: int) -> tuple[str, int] | None:
    """A value in quotes, and where they end; None where what begins with a quote does not end with it."""
    try:
        value, end = line.quoted(at)
    except ParameterError:
        return None
    after = min(line.skip(end), stop)
    return (value, end) if end <= stop and (after >= stop or line.text[after] == ",") else None


# ------------------------------------------------------------------------------------------------------------ questions
# Questions as text: "mean(income) by region where age in 30..40".
#
#     count [by COLUMN, ...] [where CONDITIONS]
#     proportion where CONDITIONS [given CONDITIONS]
#     mean(COLUMN) [by COLUMN, ...] [where CONDITIONS]
#     quantile(COLUMN, SHARE) [by COLUMN, ...] [where CONDITIONS]         median(COLUMN) is quantile(COLUMN, 0.5)
#     table by COLUMN, ... [where CONDITIONS]
#     regression RESPONSE ~ PREDICTOR + ...                               one that was named before the fit
#
# After `by`, a column may list its cells in brackets: by age (0..17, 18..64, 65..99), sex. Numbers of many
# values need that. Conditions are those of `--where` (above). Words of the grammar may be written in capitals,
# names of columns that hold commas or brackets are put in quotes. A question is read by the schema alone:
# nothing of a release is looked at.


QuestionKind = Literal["count", "proportion", "mean", "quantile", "table", "regression"]

_KINDS = ("count", "proportion", "mean", "median", "quantile", "table", "regression")
_OF_COLUMN = ("mean", "median", "quantile")
_AFTER_NAME = r"\s*[,)]"
_AFTER_GROUP = r"\s*([,(]|$)|\s+(?i:where)\s"


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """A question that was read: what it asks for, of which column, by which columns, of which rows."""

    text: str
    kind: QuestionKind
    column: str | None = None
    at: float | None = None
    by: Mapping[str, list[Any] | None] = field(default_factory=dict)  # None: a cell for each value
    where: Mapping[str, Any] = field(default_factory=dict)
    given: Mapping[str, Any] | None = None
    formula: str | None = None  # of a regression, whose columns the release reads

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that the question is about, each once."""
        named = (*([] if self.column is None else [self.column]), *self.by, *self.where, *(self.given or ()))
        return tuple(dict.fromkeys(named))


def parse_question(text: str, schema: Schema) -> ParsedQuestion:
    """Read a question; a ParameterError says what is wrong with it, and points at the place.

    Args:
        text: the question.
        schema: that of the release.
    """
    line = Line(text, what="question")
    at = line.skip(0)
    kind, at = _kind(line, at)
    if kind == "regression":
        return ParsedQuestion(text.strip(), "regression", formula=_formula(line, at))
    column, share = None, None
    if kind in _OF_COLUMN:
        column, share, at = _column(line, at, kind, schema)
    by, at = _groups(line, at, kind, schema)
    where, at = _where(line, at, kind, schema)
    given = None
    if kind == "proportion":
        given, at = _given(line, at, schema)
    if at < len(text):
        _refuse_rest(line, at, kind)
    if kind == "median":
        kind, share = "quantile", 0.5
    if kind == "count" and by:
        kind = "table"
    return ParsedQuestion(text.strip(), kind, column, share, by, where, given)  # type: ignore[arg-type]  # of `_KINDS`


def _kind(line: Line, at: int) -> tuple[str, int]:
    """What is asked for, and where the word ends."""
    word = line.word(at)
    kind = word.lower()
    if kind not in _KINDS:
        if not word:
            line.refuse(f"the question is empty; ask for {_listed()}", at)
        hint = did_you_mean(kind, _KINDS)
        line.refuse(f"question: {word!r} is not something to ask for; ask for {_listed()}{hint}", at, at + len(word))
    return kind, line.skip(at + len(word))


def _listed() -> str:
    return (
        "count, proportion, mean(COLUMN), median(COLUMN), quantile(COLUMN, SHARE), table by COLUMN or regression "
        "RESPONSE ~ PREDICTOR + PREDICTOR"
    )


def _formula(line: Line, at: int) -> str:
    """What follows the word regression, with a ~ in it."""
    if "~" not in line.text[at:]:
        line.refuse(
            "question: a regression needs a formula that was named before the fit; write regression RESPONSE ~ "
            "PREDICTOR + PREDICTOR",
            at,
            max(at + 1, len(line.text)),
        )
    return line.text[at:].strip()


def _column(line: Line, at: int, kind: str, schema: Schema) -> tuple[str, float | None, int]:
    """The column in brackets, of a quantile with the share, and where the brackets end."""
    shape = f"{kind}(COLUMN, SHARE)" if kind == "quantile" else f"{kind}(COLUMN)"
    if line.text[at : at + 1] != "(":
        line.refuse(f"question: {kind} needs a column in brackets; write {shape}", at)
    start = line.skip(at + 1)
    name, at = line.name(start, schema, before=_AFTER_NAME)
    if not schema[name].is_read:
        line.refuse(f"question: column {name!r} is an identifier, of which nothing was released", start, at)
    if not isinstance(schema[name], (Number, Boolean)):
        line.refuse(
            f"question: column {name!r} is of type {schema[name].type_name}, and means and quantiles are those of "
            f"numbers; ask for count by {name}, or proportion where {name} = VALUE",
            start,
            at,
        )
    at = line.skip(at)
    share = None
    if line.text[at] == ",":
        if kind != "quantile":
            line.refuse(f"question: {kind} takes one column; write {shape}", at)
        start = line.skip(at + 1)
        word = line.word(start)
        number = number_of_text(word)
        if number is None or not 0 < number < 1:
            line.refuse(
                "question: the share of a quantile is a number between 0 and 1, such as 0.5 for the median",
                start,
                start + max(1, len(word)),
            )
        share, at = float(number), line.skip(start + len(word))
    elif kind == "quantile":
        line.refuse(f"question: a quantile needs a share between 0 and 1; write quantile({name}, 0.5)", at)
    if line.text[at : at + 1] != ")":
        line.refuse(f"question: the bracket is not closed; write {shape}", at)
    return name, share, line.skip(at + 1)


def _groups(line: Line, at: int, kind: str, schema: Schema) -> tuple[dict[str, list[Any] | None], int]:
    """The columns after `by`, each with the cells that it lists."""
    found = line.keyword(at, "by")
    if found is None:
        if kind == "table":
            line.refuse("question: a table needs columns; write table by COLUMN, COLUMN", at)
        return {}, at
    if kind == "proportion":
        line.refuse("question: proportion takes no `by`; ask for count by the columns instead", at, found[1])
    groups: dict[str, list[Any] | None] = {}
    at = found[1]
    while True:
        start = line.skip(at)
        name, at = line.name(start, schema, before=_AFTER_GROUP)
        if not schema[name].is_read:
            line.refuse(f"question: column {name!r} is an identifier, of which nothing was released", start, at)
        if name in groups:
            line.refuse(f"question: column {name!r} is named twice after `by`", start, at)
        groups[name] = None
        at = line.skip(at)
        if line.text[at : at + 1] == "(":
            groups[name], at = read_cells(line, at, name, schema[name])
            at = line.skip(at)
        if line.text[at : at + 1] != ",":
            return groups, at
        at += 1


def _where(line: Line, at: int, kind: str, schema: Schema) -> tuple[dict[str, Any], int]:
    """The conditions after `where`."""
    found = line.keyword(at, "where")
    if found is None:
        if kind == "proportion" and line.keyword(at, "by") is None:
            line.refuse("question: a proportion needs conditions; write proportion where NAME = VALUE", at)
        return {}, at
    return _conditions(line, at, found[1], schema)


def _given(line: Line, at: int, schema: Schema) -> tuple[dict[str, Any] | None, int]:
    """The conditions after `given`: of which rows the proportion is."""
    found = line.keyword(at, "given")
    return (None, at) if found is None else _conditions(line, at, found[1], schema)


def _conditions(line: Line, at: int, start: int, schema: Schema) -> tuple[dict[str, Any], int]:
    if line.skip(start) == len(line.text):
        line.refuse("question: there is no condition here; write NAME = VALUE", at, start)
    return read_conditions(line, start, schema)


def _refuse_rest(line: Line, at: int, kind: str) -> None:
    """Say what to do about words that no question has here."""
    hint = "; columns after `by` come before `where`" if line.keyword(at, "by") else ""
    if line.keyword(at, "given") and kind != "proportion":
        hint = "; `given` belongs to a proportion"
    if not hint and kind not in _OF_COLUMN and line.text[at] == "(":
        hint = f"; {kind} takes no column in brackets"
    line.refuse(f"question: this was not understood{hint}; go on with `by` or `where`", at, len(line.text))


# -------------------------------------------------------------------------------------------------------------- options
# Conditions on rows as options: `--where "age=30..40"` and `--balance "kind=a:0.2,b:0.8"`.
#
# Forms take the same texts; `what` is how errors call the option or the field.
#
# `--where` takes what the conditions of a question take (above): NAME=VALUE, NAME=LOW..HIGH, NAME=A,B,C,
# NAME=null, comparisons, and several of them joined by `and`. `--balance` takes
#
#     NAME=SHARE          a column of two values: the share of the second (of true)
#     NAME=A:SHARE,B:...  a share for each value; values left out get none
#
# The schema decides how a string is read. A column name may contain an equals sign: the longest column name
# that the string begins with is taken. The library interprets the values.


def parse_where(texts: Iterable[str], schema: Schema, *, what: str = "--where") -> dict[str, Any]:
    """Texts such as "age=30..40" as the `where` of a forest's `sample`."""
    wanted: dict[str, Any] = {}
    for text in texts:
        for name, value in parse_conditions(text, schema, what=what).items():
            if name in wanted:
                raise ParameterError(f"{what} names column {name!r} twice; put all its conditions into one option")
            wanted[name] = value
    return wanted


def parse_balance(texts: Iterable[str], schema: Schema, *, what: str = "--balance") -> dict[str, Any]:
    """Texts such as "kind=a:0.2,b:0.8" as the `balance` of a forest's `sample`."""
    return {name: _shares(name, schema[name], text, what) for name, text in _by_column(texts, schema, what)}


def csv_fields(text: str) -> list[str]:
    """The fields of a line of CSV."""
    try:
        return next(csv.reader([text], skipinitialspace=True))
    except csv.Error:
        raise ParameterError(
            f"{text!r} is not a list of values separated by commas; put values with commas or quotes in double quotes"
        ) from None


def _by_column(texts: Iterable[str], schema: Schema, option: str) -> list[tuple[str, str]]:
    """Texts split into a column's name and the shares that are wanted of it."""
    found: dict[str, str] = {}
    for text in texts:
        if "=" not in text:
            raise ParameterError(f"{option} {text!r} has no equals sign; write NAME=VALUE, with the name of a column")
        names = [name for name in schema if text.startswith(f"{name}=")]
        if not names:
            wrong = text.partition("=")[0]
            raise ParameterError(
                f"{option} {text!r}: {wrong!r} is not a column of the release{did_you_mean(wrong, schema)}"
            )
        name = max(names, key=len)
        if not schema[name].is_read:
            raise ParameterError(
                f"{option} {text!r}: column {name!r} is an identifier; its values are generated and cannot be chosen"
            )
        if name in found:
            raise ParameterError(f"{option} names column {name!r} twice; put all its conditions into one option")
        found[name] = text.removeprefix(f"{name}=")
    return list(found.items())


def _shares(name: str, column: Column, text: str, option: str) -> Any:
    """A share, or a share for each value."""
    if ":" not in text:
        return parse_fraction(text, f"{option} {name}")
    shares: dict[Any, Any] = {}
    for part in csv_fields(text):
        value, colon, share = part.rpartition(":")
        if not colon:
            raise ParameterError(f"{option}: {part!r} of column {name!r} has no share; write VALUE:SHARE for each")
        key = column._from_option(value, name=name, option=option)
        if key in shares:
            raise ParameterError(f"{option} gives {value!r} of column {name!r} two shares; give one")
        shares[key] = parse_fraction(share, f"{option} {name}, {value}")
    return shares
