"""Formulas of linear regressions: "hours ~ age + sex + education", read by name, with errors that point at the place.

Before the ~ stands what is explained, a number or a boolean; after it, with + between them, what explains it: numbers,
booleans and categories. An intercept is always fitted. Names with a + or a ~ in them stand between backticks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NoReturn

from spinney.columns import Boolean, Category, Integer, Real
from spinney.errors import ParameterError
from spinney.schema.table import Schema
from spinney.shown import as_given, brief, printable
from spinney.suggest import did_you_mean

_OPERATORS = "*:^()/%|"
_EXAMPLE = '"hours ~ age + sex"'


@dataclass(frozen=True, slots=True)
class Formula:
    """A linear regression: what is explained, and by what."""

    text: str
    response: str
    predictors: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.response, *self.predictors)


def parse_formulas(analyses: Any, schema: Schema) -> tuple[Formula, ...]:
    """The regressions that a call names; a ParameterError where one cannot be measured."""
    if analyses is None:
        return ()
    if isinstance(analyses, str) or not isinstance(analyses, Sequence):
        raise ParameterError(f"analyses={as_given(analyses)} is not a list of formulas such as [{_EXAMPLE}]")
    for number, text in enumerate(analyses, start=1):
        if not isinstance(text, str) or "~" not in text:  # which may be anything, cells of a table too
            raise ParameterError(
                f"analyses: entry {number} is no formula: there is no ~ between what is explained and what explains "
                f"it, as in {_EXAMPLE}"
            )
    found = tuple(parse_formula(text, schema, argument="analyses") for text in analyses)
    for place, formula in enumerate(found):
        if (formula.response, {*formula.predictors}) in [(one.response, {*one.predictors}) for one in found[:place]]:
            raise ParameterError(f"analyses: {brief(formula.text)} is named twice; name it once")
    return found


def parse_formula(text: Any, schema: Schema, *, argument: str) -> Formula:
    """The regression that a formula describes; a ParameterError that points at what is wrong in it."""
    if not isinstance(text, str):
        raise ParameterError(f"{argument}: {as_given(text)} is not a formula such as {_EXAMPLE}")
    terms = _Terms(text, schema, argument)
    at = _outside_backticks(text, "~")
    if not at:
        terms.refuse(0, len(text), f"there is no ~ between what is explained and what explains it, as in {_EXAMPLE}")
    if len(at) > 1:
        terms.refuse(at[1], at[1] + 1, "a second ~; a formula has one")
    response = terms.column(0, at[0])
    if response is None:
        terms.refuse(0, at[0], f"a column is missing before the ~, as in {_EXAMPLE}")
    if isinstance(schema[response], Category):
        terms.refuse(
            0,
            at[0],
            f"{response!r} is a category; only numbers and booleans can be explained: make a boolean of the value that "
            "matters, of which least squares gives a linear probability model (logistic regressions have no sums that "
            "could be measured beforehand)",
        )
    predictors: list[str] = []
    ends = [at[0], *(place for place in _outside_backticks(text, "+") if place > at[0]), len(text)]
    for start, stop in pairwise(ends):
        name = terms.column(start + 1, stop)
        if name is None:
            continue
        if name in predictors or name == response:
            terms.refuse(start + 1, stop, f"{name!r} stands in the formula twice")
        predictors.append(name)
    return Formula(text, response, tuple(predictors))


class _Terms:
    """The parts of a formula, each a column or the intercept."""

    def __init__(self, text: str, schema: Schema, argument: str) -> None:
        self._text, self._schema, self._argument = text, schema, argument

    def column(self, start: int, stop: int) -> str | None:
        """The column that stands there; None for the 1 of the intercept, which is always fitted."""
        term = self._text[start:stop].strip()
        if not term:
            self.refuse(start, stop, "a column is missing here")
        if term == "1":
            return None
        name = term[1:-1] if term.startswith("`") and term.endswith("`") and len(term) > 2 else term
        if name not in self._schema:
            if term in ("0", "-1"):
                self.refuse(start, stop, "an intercept is always fitted; leave this out")
            if any(sign in term for sign in _OPERATORS):
                self.refuse(start, stop, "only columns with + between them are measured, no products or functions")
            self.refuse(start, stop, f"{name!r} is not a column of the schema{did_you_mean(name, self._schema)}")
        self._check_kind(name, start, stop)
        return name

    def _check_kind(self, name: str, start: int, stop: int) -> None:
        column = self._schema[name]
        if not column.is_read:
            self.refuse(start, stop, f"{name!r} is an identifier, which is never read")
        for rule in self._schema.derivations:
            if rule.column == name:
                sources = " or ".join(map(repr, rule.sources))
                self.refuse(start, stop, f"{name!r} is computed from others; name {sources} instead")
        if any(name in place.columns for place in self._schema.places):
            self.refuse(start, stop, f"{name!r} is part of a place, which regressions do not take")
        if name in self._schema.columns_awaiting_values:
            self.refuse(start, stop, f'{name!r} has values="private"; list its values, or leave it out')
        if not isinstance(column, (Boolean, Category, Integer, Real)):
            kind = column.type_name
            self.refuse(start, stop, f"{name!r} is of type {kind}; regressions take numbers, booleans and categories")

    def refuse(self, start: int, stop: int, problem: str) -> NoReturn:
        part = self._text[start:stop]
        start, stop = start + len(part) - len(part.lstrip()), stop - len(part) + len(part.rstrip())
        pointer = " " * min(start, len(self._text)) + "^" * max(1, stop - start)
        shown = printable(self._text) if self._text.isprintable() else brief(self._text)
        raise ParameterError(f"{self._argument}: {problem}\n  {shown}\n  {pointer}")


def _outside_backticks(text: str, sign: str) -> list[int]:
    found, is_quoted = [], False
    for place, character in enumerate(text):
        if character == "`":
            is_quoted = not is_quoted
        elif character == sign and not is_quoted:
            found.append(place)
    return found
