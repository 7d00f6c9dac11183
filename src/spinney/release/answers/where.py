"""Conditions on rows as text, for questions and for `--where`: "age in 30..40 and sex = Male and income > 1000".

    NAME = VALUE            one value; a date or time in ISO form, a boolean as true or false, 1 or 0
    NAME in LOW..HIGH       a range of numbers, dates or times, both ends included; an end left out is the column's own
    NAME in (A, B, C)       any of several values; the brackets may be left out, and `=` does instead of `in`
    NAME > VALUE            likewise >=, < and <=; the conditions of one column add up to one range
    NAME = null             no value

Conditions are joined by `and`. The schema decides how a string is read: one that it lists as a category is that
category, even if it looks like a range, a number or several conditions. Names and values that hold commas, brackets or
the word `and` before a condition are put in double or single quotes. Spaces around values do not matter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from spinney.columns import Bounded, Column
from spinney.errors import ParameterError
from spinney.release.answers.conditions import allowed
from spinney.release.answers.text import QUOTES, Line
from spinney.schema.table import Schema

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
    listed = set(map(str, column.listed)) if column.axis_kind == "category" else set()
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


# -------------------------------------------------------------------------------------------------- values


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
    if column.axis_kind == "category":
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
        value = column.from_option(text, name=part.name, option=line.what)
        if isinstance(column, Bounded):
            column.wanted(value, part.name)
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
        number, way = column.wanted(value, part.name), 1 if part.sign == ">" else -1
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
