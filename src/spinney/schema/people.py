"""Persons and their rows in one form, for a flat table and for linked ones.

    sp.Schema({...}, person="card", most_rows=200, order="day")
    sp.Tables({...}, links=[sp.Link("transactions.customer", "customers.id", most=200, order="day")])

The promise is for a person with all their rows, in all tables. A schema with `person=` is linked tables without a table
of persons, so both become a `PeopleShape`, which mechanisms, cards and files hold. All of it is public.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from spinney.columns import Bounded
from spinney.errors import SchemaError
from spinney.schema.link import Link
from spinney.schema.linked import Tables
from spinney.schema.persons import PersonRows, position_rules
from spinney.schema.plain import jsonable
from spinney.schema.rules import PositionRule
from spinney.schema.table import Schema

__all__ = ["ROW_COUNT", "Link", "PeopleShape", "RowsShape", "Tables"]

# What a condition calls the number of rows of a person, beside the columns.
ROW_COUNT = "#"


@dataclass(frozen=True, slots=True)
class RowsShape:
    """A table in which a person may have many rows."""

    name: str  # of the table; empty where it is the only one
    schema: Schema  # all columns, the key included
    key: str  # the column that says whose row it is
    most: int  # rows that are kept of one person
    order: str | None = None
    steps: bool = False
    role: str | None = None
    differences: tuple[str, ...] = ()

    @property
    def modelled(self) -> Schema:
        """The columns of which there is something to learn, without rules: what gathered rows are read by."""
        return self.schema.modelled

    @property
    def position_rules(self) -> tuple[PositionRule, ...]:
        """The rules about a row's position among the rows of its person."""
        return position_rules(self.schema.rules)

    @property
    def facts(self) -> PersonRows:
        """What was stated of the rows of a person."""
        return PersonRows(self.key, self.most, self.order, self.steps, self.role, self.differences)

    def to_dict(self) -> dict[str, Any]:
        """The table as JSON-ready data."""
        described: dict[str, Any] = {"name": self.name, "schema": jsonable(self.schema.to_dict())}
        if self.schema.person is not None:
            return described
        return described | {"rows": self.facts.to_dict()}


@dataclass(frozen=True, slots=True)
class PeopleShape:
    """Persons and their rows, as everything after the schema sees them: flat tables and linked ones alike."""

    persons_name: str | None  # None where there is no table of persons
    persons: Schema | None  # all columns, the key included
    key: str | None  # of the table of persons
    rows: tuple[RowsShape, ...]

    @classmethod
    def of(cls, stated: Schema | Tables) -> PeopleShape:
        """The shape of a schema with `person=`, or of linked tables; SchemaError where it cannot be modelled."""
        if isinstance(stated, Tables):
            persons = stated.links[0].parent_table
            rows = tuple(_rows_shape(link.child_table, stated[link.child_table], link.rows) for link in stated.links)
            shape = cls(persons, stated[persons], stated.links[0].parent_column, rows)
        elif stated.person_rows is None:
            raise SchemaError(
                "the schema does not say whose rows they are; name the column of persons, "
                "sp.Schema({...}, person='customer', most_rows=200), or use sp.ForestSynthesizer, which protects rows"
            )
        else:
            shape = cls(None, None, None, (_rows_shape("", stated, stated.person_rows),))
        shape._refuse_unsupported()
        return shape

    @property
    def tables(self) -> dict[str, Schema]:
        """All schemas by the name of their table, that of the persons first; of a flat table the name is empty."""
        first = {} if self.persons is None or self.persons_name is None else {self.persons_name: self.persons}
        return first | {rows.name: rows.schema for rows in self.rows}

    def without_ignored(self) -> PeopleShape:
        """The shape of synthetic tables: without columns of type `sp.Ignore()`."""
        persons = None if self.persons is None else self.persons.without_ignored()
        rows = tuple(replace(table, schema=table.schema.without_ignored()) for table in self.rows)
        return replace(self, persons=persons, rows=rows)

    def to_dict(self) -> dict[str, Any]:
        """The shape as JSON-ready data, for cards and files."""
        described: dict[str, Any] = {"rows": [rows.to_dict() for rows in self.rows]}
        if self.persons is not None:
            persons = {"name": self.persons_name, "schema": jsonable(self.persons.to_dict()), "key": self.key}
            described = {"persons": persons} | described
        return described

    @classmethod
    def from_dict(cls, described: Any) -> PeopleShape:
        """What `to_dict` gave; a SchemaError where it is something else."""
        try:
            if "persons" not in described:
                (only,) = described["rows"]
                return cls.of(Schema.from_dict(only["schema"]))
            persons = described["persons"]
            schemas = {persons["name"]: Schema.from_dict(persons["schema"])}
            links = []
            for table in described["rows"]:
                schemas[table["name"]] = Schema.from_dict(table["schema"])
                options = dict(table["rows"])
                ends = f"{table['name']}.{options.pop('column')}", f"{persons['name']}.{persons['key']}"
                links.append(Link(*ends, most=options.pop("most_rows"), **options))
            return cls.of(Tables(schemas, links=links))
        except (KeyError, TypeError, ValueError, AttributeError) as err:
            if isinstance(err, SchemaError):
                raise
            raise SchemaError(
                "this does not describe persons and their rows; use what PeopleShape.to_dict gave"
            ) from err

    def _refuse_unsupported(self) -> None:
        """Raise on what a model of persons cannot do yet."""
        for name, schema in self.tables.items():
            at = f"table {name!r}: " if name else ""
            for column, kind in schema.items():
                if column == ROW_COUNT:
                    raise SchemaError(f"{at}column {column!r} has the name of the number of rows; rename it")
                if isinstance(kind, Bounded) and kind.bounds != "stated":
                    raise SchemaError(
                        f"{at}column {column!r} has bounds={kind.bounds!r}, and bounds of persons' tables are not "
                        "estimated; state low and high"
                    )
            if not any(column.is_read for column in schema.values()):
                raise SchemaError(f"{at}all columns are identifiers or ignored; there is nothing to learn")
            for column in schema.columns_awaiting_values:
                raise SchemaError(
                    f'{at}column {column!r} has values="private", and values of persons\' tables are not estimated; '
                    "list them"
                )
        for rows in self.rows:
            at = f"table {rows.name!r}: " if rows.name else ""
            for place in rows.schema.places:
                raise SchemaError(
                    f"{at}the place {place.label!r} is in a table of many rows a person, where places are not "
                    "supported; take it out of the schema: its columns are then modelled one by one"
                )


def _rows_shape(name: str, schema: Schema, facts: PersonRows) -> RowsShape:
    return RowsShape(
        name, schema, facts.column, facts.most_rows, facts.order, facts.steps, facts.role, facts.differences
    )
