"""Relative columns: those that later rows of a person are told by as differences. Public.

Where rows are steps of a history, the column that orders them is learnt as its first value, a column of the person, and
as what it grows by from row to row. A column of differences is learnt as its first value and as how far later rows are
from that.
"""

from __future__ import annotations

from dataclasses import replace

from spinney.columns import Bounded, Column, Integer, Real, whole_range
from spinney.errors import SchemaError
from spinney.people.release.names import count_name, first_name, level_name, refuse_taken
from spinney.schema.column_axis import column_axis
from spinney.schema.people import PeopleShape, RowsShape
from spinney.schema.rules import Implies, PositionRule, Rule
from spinney.schema.table import Schema


def relative_columns(rows: RowsShape) -> tuple[str, ...]:
    """The relative columns of a table: the order, where rows are steps, and differences."""
    return (*((rows.order,) if rows.steps and rows.order else ()), *rows.differences)


def learnt_schema(rows: RowsShape) -> Schema:
    """The columns of a row as they are learnt, without its key: relative ones as differences, null in the first row."""
    columns = {name: column for name, column in rows.schema.items() if name != rows.key}
    relative = relative_columns(rows)
    rules = [rule for rule in rows.schema.rules if not isinstance(rule, PositionRule)]
    for rule in rules:
        for name in rule.columns:
            if name in relative:
                raise SchemaError(
                    f"column {name!r} is learnt by differences between rows, so that no rule of single rows can hold "
                    f"for it; take out {rule!r}, or steps and differences"
                )
    for name in relative:
        columns[name] = difference_column(columns[name], grows=rows.steps and name == rows.order)
    return Schema(columns, rules=rules)


def difference_column(column: Column, *, grows: bool) -> Column:
    """The type of differences between two values of a column."""
    assert isinstance(column, Bounded)
    if isinstance(column, Real):
        reach = float(column.high) - float(column.low)
        return Real(0.0 if grows else -reach, reach, multiple_of=column.multiple_of, nullable=True)
    low, high = whole_range(column)
    return Integer(0 if grows else low - high, high - low, multiple_of=column.step, nullable=True)


def made_columns(shape: PeopleShape) -> dict[str, Column]:
    """What is made of persons' rows before anything is released: numbers of rows, and first values."""
    made: dict[str, Column] = {}
    for rows in shape.rows:
        made[count_name(rows.name)] = Integer(0 if shape.persons is not None else 1, rows.most)
        for name in relative_columns(rows):
            made[first_name(rows.name, name)] = replace(rows.schema[name], nullable=shape.persons is not None)
    return made


def anchors(shape: PeopleShape, target: str | None = None) -> list[str]:
    """The columns of persons that all others are counted with: numbers of rows, and a target.

    Those that can have one value only say nothing.
    """
    made = made_columns(shape)
    columns = {count_name(rows.name): made[count_name(rows.name)] for rows in shape.rows}
    if target is not None and shape.persons is not None:
        columns[target] = shape.persons[target]
    return [name for name, column in columns.items() if not column_axis(name, column).is_known]


def persons_schema(shape: PeopleShape) -> Schema:
    """The columns of a person as they are learnt: stated ones, numbers of rows, first values."""
    made = made_columns(shape)
    if shape.persons is None:
        return Schema(made)
    stated = {name: column for name, column in shape.persons.items() if name != shape.key}
    refuse_taken(stated, [*made, *(level_name(rows.name, name) for rows in shape.rows for name in rows.modelled)])
    rules = [rule for rows in shape.rows for rule in _first_rules(rows)]
    return Schema({**stated, **made}, rules=[*shape.persons.rules, *rules], places=shape.persons.places)


def _first_rules(rows: RowsShape) -> list[Rule]:
    """Who has no rows has no first value, and who has some has one."""
    count = count_name(rows.name)
    found: list[Rule] = []
    for name in relative_columns(rows):
        column, first = rows.schema[name], first_name(rows.name, name)
        assert isinstance(column, Bounded)
        found += [Implies({count: 0}, {first: None}), Implies({count: (1, None)}, {first: (column.low, column.high)})]
    return found
