"""Questions as text: "mean(income) by region where age in 30..40".

    count [by COLUMN, ...] [where CONDITIONS]
    proportion where CONDITIONS [given CONDITIONS]
    mean(COLUMN) [by COLUMN, ...] [where CONDITIONS]
    quantile(COLUMN, SHARE) [by COLUMN, ...] [where CONDITIONS]         median(COLUMN) is quantile(COLUMN, 0.5)
    table by COLUMN, ... [where CONDITIONS]
    regression RESPONSE ~ PREDICTOR + ...                               one that was named before the fit

After `by`, a column may list its cells in brackets: by age (0..17, 18..64, 65..99), sex. Numbers of many values need
that. Conditions are those of `--where` (`where.py`). Words of the grammar may be written in capitals, names of columns
that hold commas or brackets are put in quotes. A question is read by the schema alone: nothing of a release is looked
at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from spinney.columns import Boolean, Number
from spinney.columns.conditions import number_of_text
from spinney.release.answers.text import Line
from spinney.release.answers.where import read_cells, read_conditions
from spinney.schema.table import Schema
from spinney.suggest import did_you_mean

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
