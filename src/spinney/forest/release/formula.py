"""Formulas of linear regressions, and the sums of products that they need. PUBLIC.

"hours ~ age + sex + education" is read by name, with errors that point at the place. Before the ~ stands the
response, a number or a boolean; after it, with + between them, the predictors: numbers, booleans and
categories. An intercept is always fitted. Names with a + or a ~ in them stand between backticks.

    (first)       formulas: parsed and checked
    regressors    columns as whole numbers, and how far one row moves their sums    forest/analyses.proof.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Boolean, Category, Column, Integer, Real
from spinney.errors import ParameterError
from spinney.grid.lattice import Axis, halving_axis
from spinney.privacy.budget import Unit
from spinney.schema.schema import Schema
from spinney.text import as_given, brief, did_you_mean, printable

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
        for rule in self._schema._derivations:
            if rule.column == name:
                sources = " or ".join(map(repr, rule.sources))
                self.refuse(start, stop, f"{name!r} is computed from others; name {sources} instead")
        if any(name in place.columns for place in self._schema.places):
            self.refuse(start, stop, f"{name!r} is part of a place, which regressions do not take")
        if name in self._schema._columns_awaiting_values:
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


# ----------------------------------------------------------------------------------------------------------- regressors
# Regressors: columns as whole numbers, and the sums of their products that linear regressions follow from.
# Public.
#
# A number is laid on an even grid over its bounds and counts from -w to w; a boolean or a category is one of
# its values, and counts w there, as the constant does everywhere. The sums over rows of all products of two of
# these, and of squares of numbers, are what least squares needs. Which sums there are follows from the schema
# and the names of the columns; how far one row can move them, from the weights w as well: proof in
# `forest/analyses.proof.md`. A product of two columns has noise in inverse proportion to their weights, so
# weights say where the noise goes (`regression`, regressor weights).


Whole = NDArray[np.int64]

# What the constant and the value of a row's category count, and numbers about at most, unless weights are stated.
SCALE = 1 << 12
# Nothing counts more than this: sums of 2^32 rows stay below 2^62.
MOST_WEIGHT = 1 << 15
_GRID_BITS = 12
# Numbers and values of all columns of the analyses together: their sums are solved for as one system.
MOST_SLOTS = 80


@dataclass(frozen=True, slots=True, eq=False)
class Regressor:
    """One column: a number on its grid, or one of several values."""

    name: str
    axis: Axis
    labels: tuple[Any, ...]  # the values of a boolean or a category; empty for a number
    unit: int  # what half a cell of a number, or a value, counts

    @property
    def is_number(self) -> bool:
        return not self.labels

    @property
    def n_cells(self) -> int:
        return self.axis.last + 1

    @property
    def n_slots(self) -> int:
        return len(self.labels) or 1

    @property
    def n_steps(self) -> int:
        """How many steps a weight has: a number counts so many times its unit at most, and a value once."""
        return self.n_cells - 1 if self.is_number else 1

    @property
    def weight(self) -> int:
        """The most that it counts, in absolute value."""
        return self.unit * self.n_steps

    @property
    def counted(self) -> Whole:
        """What a number counts in each cell of its grid."""
        return self.unit * (2 * np.arange(self.n_cells, dtype=np.int64) - (self.n_cells - 1))

    @property
    def line(self) -> tuple[float, float]:
        """Offset and reach: a number is offset + reach times the part of its weight that it counts."""
        axis = self.axis
        if axis.kind == "real":
            first, length = axis.origin + 0.5 / axis.scale, 1 / axis.scale
        else:
            first, length = float(axis.low) + (axis.step - 1) / 2, float(axis.step)
        return first + length * (self.n_cells - 1) / 2, length * (self.n_cells - 1) / 2


@dataclass(frozen=True, slots=True)
class Entry:
    """A sum over rows: of the product of two slots, each a column's number or one of its values; 0 is the constant."""

    first: int
    second: int


class Block:
    """The columns of analyses that leave out the same rows: those where one of their columns that may be null is."""

    def __init__(self, columns: Sequence[Regressor], *, counts_rows: bool, constant: int = SCALE) -> None:
        self.columns = tuple(columns)
        self.counts_rows = counts_rows  # whether the number of rows is one of the sums, being private
        self.constant = constant  # what the constant counts

    def weighing(self, units: Sequence[int]) -> Block:
        """The same block with other weights: of the constant, and the unit of every column.

        Raises:
            ValueError: there are more or fewer of them than columns, or one is out of range.
        """
        if len(units) != len(self.columns) + 1 or not all(type(unit) is int and unit > 0 for unit in units):
            raise ValueError("weights of a block that are not one whole number for each of its columns")
        columns = [replace(column, unit=unit) for column, unit in zip(self.columns, units[1:], strict=True)]
        if max(units[0], *(column.weight for column in columns)) > MOST_WEIGHT:
            raise ValueError("weights of a block that are out of range")
        return Block(columns, counts_rows=self.counts_rows, constant=units[0])

    @property
    def units(self) -> tuple[int, ...]:
        """What the constant counts, and the unit of every column."""
        return (self.constant, *(column.unit for column in self.columns))

    @cached_property
    def weights(self) -> Whole:
        """The most that every slot counts (n_slots,)."""
        each = [self.constant, *(column.weight for column in self.columns)]
        return np.repeat(np.array(each, dtype=np.int64), [1, *(column.n_slots for column in self.columns)])

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first slot of each column; the constant has slot 0."""
        return tuple(int(start) for start in np.cumsum([1, *(column.n_slots for column in self.columns)])[:-1])

    @property
    def n_slots(self) -> int:
        return 1 + sum(column.n_slots for column in self.columns)

    @cached_property
    def owner(self) -> Whole:
        """The column of every slot; -1 for the constant."""
        return np.repeat(np.arange(-1, len(self.columns)), [1, *(column.n_slots for column in self.columns)])

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """All sums, in order: products of two columns, squares of numbers, and the rows where they are counted.

        Two values of one column never meet, and the square of a value is the value.
        """
        found = [Entry(0, 0)] if self.counts_rows else []
        for first in range(self.n_slots):
            for second in range(first, self.n_slots):
                owner = self.owner[second]
                is_square = first == second and first > 0 and self.columns[owner].is_number
                if is_square or self.owner[first] != owner:
                    found.append(Entry(first, second))
        return tuple(found)

    def sensitivity_squared(self, unit: Unit) -> int:
        """How far one row can move all sums of the block, squared: the claim of analyses.proof.md."""
        reach = (self.constant**2 + sum(column.weight**2 for column in self.columns)) ** 2
        if unit.of_rows is Unit.REPLACE_ONE:
            return reach
        numbers = sum(column.weight**4 for column in self.columns if column.is_number)
        values = sum(column.weight**4 for column in self.columns if not column.is_number)
        return (reach + numbers + self.constant**4 - values) // 2


def blocks_of(formulas: Sequence[Formula], schema: Schema, unit: Unit) -> tuple[Block, ...]:
    """The sums that the analyses follow from: one block for all that leave out the same rows.

    Raises:
        ParameterError: a column has one value only, or there are too many values in all.
    """
    groups: dict[frozenset[str], set[str]] = {}
    for formula in formulas:
        nullable = frozenset(name for name in formula.columns if schema[name].nullable)
        groups.setdefault(nullable, set()).update(formula.columns)
    blocks = []
    for nullable, names in groups.items():
        columns = [_regressor(name, schema[name]) for name in schema if name in names]
        blocks.append(Block(columns, counts_rows=bool(nullable) or not unit.n_is_public))
    n_slots = sum(block.n_slots for block in blocks)
    if n_slots > MOST_SLOTS:
        widest = max((column for block in blocks for column in block.columns), key=lambda column: column.n_slots)
        raise ParameterError(
            f"analyses: their columns have {n_slots} numbers and values in all, and {MOST_SLOTS} can be measured; "
            f"column {widest.name!r} alone has {widest.n_slots}: leave it out, or list fewer values and an `other`"
        )
    return tuple(blocks)


def _regressor(name: str, column: Column) -> Regressor:
    found = Regressor(name, halving_axis(name, column, bits=_GRID_BITS), tuple(column.listed), SCALE)
    if found.n_cells < 2:
        raise ParameterError(f"analyses: column {name!r} has one value only, which explains nothing; leave it out")
    return replace(found, unit=max(1, SCALE // found.n_steps))
