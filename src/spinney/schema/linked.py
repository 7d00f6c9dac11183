"""Linked tables: schemas of several tables about the same persons, and the links between them.

    links              which column of one table says to which person of another its rows belong
    linked tables      `Tables`, in Python or as a TOML file
    shape of persons   flat tables and linked ones in one form, which mechanisms, cards and files hold
    digests            SHA-256 of what is public about a table

One table has a row for each person, and every other table is linked to it. What needs no data is checked here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from spinney.columns import Bounded, Identifier
from spinney.columns.base import check_characters
from spinney.documents import Document, Documented, Facts
from spinney.errors import SchemaError
from spinney.schema.persons import PersonRows, person_rows, position_rules, refuse_ratios
from spinney.schema.places import with_shapes
from spinney.schema.plain import (
    all_of,
    at,
    check_options,
    check_plain,
    entries_of,
    jsonable,
    parse_toml,
    read_schema_text,
)
from spinney.schema.rules import AtMost, OnlyOn, PositionRule
from spinney.schema.schema import Schema, SchemaLike, as_schema, columns_of, schema_from_plain
from spinney.text import brief, did_you_mean, listed

# ---------------------------------------------------------------------------------------------------------------- links
# Which column of one table says to which person of another its rows belong.


_OPTIONS = ("child", "parent", "most", "order", "steps", "role", "differences")
# What a [person] table calls the same.
_OTHERWISE = {"most_rows": "most", "column": "child"}


class Link:
    """Rows of one table belong to persons of another: `Link("transactions.customer", "customers.id", most=200)`.

    Args:
        child: the table of rows and the column that says whose row it is, with a dot between.
        parent: the table of persons and its key, with a dot between. Both columns are of type `sp.Identifier`.
        most: how many rows of one person are kept at most, a round public number in 1..65535. A larger number adds no
            noise.
        order: the column of `child` by which a person's rows are sorted: numbers, dates or times, never null. By
            default rows are in no order.
        steps: whether each row is a step after the one before, as in a panel: `order` is modelled by its steps.
        role: the category of `child` that says what a row is within its person, such as a relation to the head of a
            household.
        differences: columns of `child` that are modelled by how far they are from the person's first row, such as ages.
    """

    __slots__ = ("child_column", "child_table", "parent_column", "parent_table", "rows")

    def __init__(
        self,
        child: str,
        parent: str,
        *,
        most: int | None = None,
        order: str | None = None,
        steps: bool = False,
        role: str | None = None,
        differences: Iterable[str] = (),
    ) -> None:
        self.child_table, self.child_column = _parted(child, "child", "transactions.customer")
        self.parent_table, self.parent_column = _parted(parent, "parent", "customers.id")
        self.rows: PersonRows = person_rows(self.child_column, most, order, steps, role, differences, about=self.label)

    @property
    def label(self) -> str:
        """What errors call the link."""
        return f"Link({', '.join(map(repr, self._ends.values()))})"

    @property
    def _ends(self) -> dict[str, Any]:
        return {
            "child": f"{self.child_table}.{self.child_column}",
            "parent": f"{self.parent_table}.{self.parent_column}",
        }

    def to_dict(self) -> dict[str, Any]:
        """The link as plain data for TOML and JSON; what is at its default is left out."""
        described = self.rows.to_dict()
        del described["column"]
        return {**self._ends, "most": described.pop("most_rows"), **described}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Link):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.child_table, self.parent_table, self.parent_column, self.rows))

    def __repr__(self) -> str:
        return f"{self.label[:-1]}, {self.rows.shown(most='most')})"


def link_from_dict(number: int, entry: Any) -> Link:
    """Read what `to_dict` wrote, or one [[links]] table of a TOML file, the `number`-th."""
    if not isinstance(entry, Mapping):
        raise SchemaError(f"link {number}: it is not a table; write each link as a table under [[links]]")
    check_options(entry, _OPTIONS, f"link {number}", "a link", otherwise=_OTHERWISE)
    for name in ("child", "parent"):
        if name not in entry:
            raise SchemaError(f'link {number}: {name} is missing, a table and its key such as "customers.id"')
    options = dict(entry)
    with at(f"link {number}"):
        return Link(options.pop("child"), options.pop("parent"), **options)


def _parted(end: Any, name: str, example: str) -> tuple[str, str]:
    if not isinstance(end, str):
        raise SchemaError(f"Link: {name}={brief(end)} is not a table and its column, such as {example!r}")
    table, _, column = end.partition(".")
    if not table or not column:
        raise SchemaError(f"Link: {name}={brief(end)} is not a table, a dot and its column, such as {example!r}")
    check_characters([end], f"Link: {name} ")
    return table, column


# -------------------------------------------------------------------------------------------------------- linked tables
# Schemas of several tables about the same persons, and the links between them, in Python or as a TOML file.
#
#     [tables.customers]
#     schema = "customers.toml"
#     file = "customers.parquet"
#
#     [[links]]
#     child = "transactions.customer"
#     parent = "customers.id"
#     most = 200
#
# One table has a row for each person, and every other table is linked to it.


_ENTRIES, _TABLE_ENTRIES = ("tables", "links"), ("schema", "file")


class Tables(Documented, Mapping[str, Schema]):
    """Several tables about the same persons: their schemas by name, and the links between them.

    One table has a row for each person. In every other table a person may have many rows, and a link says which column
    tells whose row it is.

    Args:
        schemas: a schema for each table, by name: a `Schema`, the path of a schema file, or a dictionary of columns.
        links: a `sp.Link` for every table of rows, all to the same table of persons.
        files: where the tables are, by name, for the command line; may be left out.
    """

    def __init__(
        self, schemas: Mapping[str, SchemaLike], *, links: Iterable[Link], files: Mapping[str, str] | None = None
    ) -> None:
        if not isinstance(schemas, Mapping) or isinstance(schemas, Schema) or not schemas:
            raise SchemaError("Tables takes a mapping from names of tables to schemas")
        for name in schemas:
            if not isinstance(name, str) or not name or "." in name:
                raise SchemaError(f"table name {brief(name)} is not a non-empty string without a dot")
        self._schemas = {name: _schema_of(name, schema) for name, schema in schemas.items()}
        self._links = all_of(Link, links, "links", "link", "sp.Link('orders.customer', 'customers.id', most=200)")
        self._files = dict(files or {})
        for name in self._files:
            if name not in self._schemas:
                raise SchemaError(f"files: there is no table {name!r}{did_you_mean(name, self._schemas)}")
        self._check()

    def __getitem__(self, name: str) -> Schema:
        return self._schemas[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._schemas)

    def __len__(self) -> int:
        return len(self._schemas)

    def document(self) -> Document:
        """The tables as notebooks show them."""
        facts = Facts([(name, f"{len(schema)} columns") for name, schema in self.items()])
        columns = [columns_of(schema, f"columns of {name}") for name, schema in self.items()]
        return Document(f"{len(self)} linked tables", [facts, *columns])

    def __repr__(self) -> str:
        return f"Tables({self._schemas!r}, links={list(self._links)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tables):
            return NotImplemented
        is_equal = list(self._schemas.items()) == list(other._schemas.items()) and self._links == other._links
        return is_equal and self._files == other._files

    __hash__ = None  # type: ignore[assignment]  # compares by value and order; not meant as a key

    @property
    def links(self) -> tuple[Link, ...]:
        """The links, in the order in which they were stated."""
        return self._links

    @property
    def files(self) -> dict[str, str]:
        """Where the tables are, as far as that was stated."""
        return dict(self._files)

    # ------------------------------------------------------------------------------------------------- checks

    def _check(self) -> None:
        """Raise a SchemaError unless every table but one is linked to that one, by identifiers."""
        if not self._links:
            raise SchemaError(
                "Tables has no links; say which rows belong to whom, for example "
                "sp.Link('transactions.customer', 'customers.id', most=200)"
            )
        for link in self._links:
            self._check_ends(link)
            self._check_direction(link)
        self._check_owners()
        persons = self._links[0].parent_table
        for link in self._links:
            if link.parent_table != persons:
                raise SchemaError(
                    f"{link.label}: there are two tables of persons, {persons!r} and {link.parent_table!r}; a release "
                    "protects the persons of one: link all tables to it, or make two releases"
                )
            if link.parent_column != self._links[0].parent_column:
                raise SchemaError(
                    f"{link.label}: {persons!r} has two keys, {self._links[0].parent_column!r} and "
                    f"{link.parent_column!r}; link all tables to one of them"
                )
        linked = {persons, *(link.child_table for link in self._links)}
        for name, schema in self._schemas.items():
            if name not in linked:
                raise SchemaError(
                    f"table {name!r} is not linked to {persons!r}; add a link for it, or leave the table out"
                )
            if schema.person is not None:
                raise SchemaError(
                    f"table {name!r}: its schema states person={schema.person!r}; in linked tables the link says whose "
                    "rows they are: take person out of the schema"
                )
        for stated in self._schemas[persons].rules:
            refuse_ratios(stated)
        for rule in position_rules(self._schemas[persons].rules):
            raise SchemaError(f"table {persons!r}: {rule!r} is about several rows of a person, and here each has one")
        for link in self._links:
            schema = self._schemas[link.child_table]
            link.rows.check(schema, schema.rules, link.label, most="most")

    def _check_ends(self, link: Link) -> None:
        for table, column in ((link.child_table, link.child_column), (link.parent_table, link.parent_column)):
            if table not in self._schemas:
                raise SchemaError(f"{link.label}: there is no table {table!r}{did_you_mean(table, self._schemas)}")
            schema = self._schemas[table]
            if column not in schema:
                raise SchemaError(
                    f"{link.label}: table {table!r} has no column {column!r}{did_you_mean(column, schema)}"
                )
            if not isinstance(schema[column], Identifier):
                raise SchemaError(
                    f"{link.label}: column {column!r} of table {table!r} is of type {schema[column].type_name}; "
                    'declare keys as sp.Identifier(), whose values are never released (in a file: type = "identifier")'
                )
        if link.child_table == link.parent_table:
            raise SchemaError(f"{link.label}: the table is linked to itself; rows belong to the persons of another")

    def _check_direction(self, link: Link) -> None:
        """Raise where what a link states of its rows is in the table of persons: it was turned round."""
        child, parent = self._schemas[link.child_table], self._schemas[link.parent_table]
        for name in (link.rows.order, link.rows.role, *link.rows.differences):
            if name is not None and name not in child and name in parent:
                raise SchemaError(
                    f"{link.label}: column {name!r} is not in {link.child_table!r} but in {link.parent_table!r}; child "
                    "is the table of rows, and parent the table with one row for each person: swap child and parent"
                )

    def _check_owners(self) -> None:
        """Raise where a table has two owners, where links go in a circle, or where they make a chain."""
        owner: dict[str, str] = {}
        for link in self._links:
            if link.child_table in owner:
                raise SchemaError(
                    f"{link.label}: table {link.child_table!r} has two owners, {owner[link.child_table]!r} and "
                    f"{link.parent_table!r}, and a release protects the persons of one; keep one link"
                )
            owner[link.child_table] = link.parent_table
        for link in self._links:
            seen, table = [link.child_table], link.parent_table
            while table in owner and table not in seen:
                seen.append(table)
                table = owner[table]
            if table in seen:
                raise SchemaError(f"links go in a circle: {listed([*seen, table])}; take one of them out")
            if len(seen) > 1:
                raise SchemaError(
                    f"{link.label}: table {link.parent_table!r} is itself linked to {owner[link.parent_table]!r}, and "
                    "chains of tables are not supported; join the two tables, or link both to the persons"
                )

    # ------------------------------------------------------------------------------- plain data and files

    def to_dict(self) -> dict[str, Any]:
        """The tables as plain data: strings, numbers, lists and dictionaries, and Python's dates; see `from_dict`."""
        described: dict[str, Any] = {"tables": {}, "links": [link.to_dict() for link in self._links]}
        for name, schema in self._schemas.items():
            described["tables"][name] = {"schema": schema.to_dict()}
            if name in self._files:
                described["tables"][name]["file"] = self._files[name]
        return described

    @classmethod
    def from_dict(cls, described: Any) -> Tables:
        """The tables that plain data describe.

        Args:
            described: what `to_dict` gives: `tables`, with a `schema` for each and a `file` where it is stated, and
                `links`, a list. Dates may be ISO strings.

        Raises:
            SchemaError: an entry is missing, unknown or out of range. A path in place of a schema is refused: plain
                data may come from anywhere, and only a file may name other files.
        """
        return _tables_from_plain(described, folder=None)

    @classmethod
    def from_file(cls, path: str | Path) -> Tables:
        """The tables that a TOML file describes: [tables.NAME] with `schema` and `file`, and [[links]].

        Args:
            path: the file. Paths in it start in its folder.

        Raises:
            SchemaError: a file cannot be read, or does not describe tables.
        """
        return _tables_from_plain(parse_toml(read_schema_text(path)), folder=Path(path).parent)


def _schema_of(name: str, schema: Any) -> Schema:
    with at(f"table {name!r}"):
        return as_schema(schema)


def _tables_from_plain(described: Any, *, folder: Path | None) -> Tables:
    if not isinstance(described, Mapping) or not isinstance(described.get("tables"), Mapping):
        if isinstance(described, Mapping) and "columns" in described:
            raise SchemaError(
                "this file does not describe linked tables: it is the schema of one table, [columns.NAME]; say TABLE "
                "--schema FILE in place of --tables, or read it with sp.Schema.from_file(...)"
            )
        raise SchemaError("a file of tables needs a table for each of them: [tables.NAME]")
    check_plain(described)
    for entry in sorted(set(described) - set(_ENTRIES)):
        raise SchemaError(
            f"a file of tables has no entry {entry!r}; only [tables.NAME] and [[links]] belong in it"
            f"{did_you_mean(entry, _ENTRIES)}"
        )
    links = entries_of(described, "link")
    ends = [link.get(end) for link in links if isinstance(link, Mapping) for end in ("child", "parent")]
    keys = {end for end in ends if isinstance(end, str)}
    schemas: dict[str, Schema] = {}
    files: dict[str, str] = {}
    for name, entry in described["tables"].items():
        schemas[name], file = _table_from_plain(name, entry, folder, keys)
        if file is not None:
            files[name] = file
    return Tables(schemas, links=[link_from_dict(number, it) for number, it in enumerate(links, 1)], files=files)


def _table_from_plain(name: str, entry: Any, folder: Path | None, keys: set[str]) -> tuple[Schema, str | None]:
    """The schema of one table and where it is; `keys` are the ends of links, TABLE.COLUMN."""
    ends = [key.partition(".") for key in keys]
    if not isinstance(entry, Mapping) or "schema" not in entry:
        raise SchemaError(f'table {name!r}: the entry needs a schema, for example schema = "{name}.toml"')
    for option in sorted(set(entry) - set(_TABLE_ENTRIES)):
        raise SchemaError(
            f"table {name!r}: {option!r} is not an entry of a table; it takes {', '.join(_TABLE_ENTRIES)}"
            f"{did_you_mean(option, _TABLE_ENTRIES)}"
        )
    schema, file = entry["schema"], entry.get("file")
    if file is not None and (not isinstance(file, str) or not file):
        raise SchemaError(f"table {name!r}: file={brief(file)} is not a path")
    if isinstance(schema, str) and folder is None:
        raise SchemaError(f"table {name!r}: schema names a file, which only a file of tables may; write the schema out")
    with at(f"table {name!r}"):
        place = folder
        if isinstance(schema, str):
            path = Path(folder or "", schema)
            schema, place = parse_toml(read_schema_text(path)), path.parent
        whole = with_shapes(schema, place) if place is not None and isinstance(schema, dict) else schema
        read = schema_from_plain(whole, folder=place, keys=[key for table, _, key in ends if table == name])
    return read, file if file is None or folder is None else os.path.join(folder, file)


# ----------------------------------------------------------------------------------------------------- shape of persons
# Persons and their rows in one form, for a flat table and for linked ones.
#
#     sp.Schema({...}, person="card", most_rows=200, order="day")
#     sp.Tables({...}, links=[sp.Link("transactions.customer", "customers.id", most=200, order="day")])
#
# The guarantee is for a person with all their rows, in all tables. A schema with `person=` is linked tables
# without a table of persons, so both become a `PeopleShape`, which mechanisms, cards and files hold. All of it
# is public.


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
        return self.schema._modelled

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
        elif stated._person_rows is None:
            raise SchemaError(
                "the schema does not say whose rows they are; name the column of persons, "
                "sp.Schema({...}, person='customer', most_rows=200), or use sp.ForestSynthesizer, which protects rows"
            )
        else:
            shape = cls(None, None, None, (_rows_shape("", stated, stated._person_rows),))
        shape._refuse_unsupported()
        return shape

    @property
    def tables(self) -> dict[str, Schema]:
        """All schemas by the name of their table, that of the persons first; of a flat table the name is empty."""
        first = {} if self.persons is None or self.persons_name is None else {self.persons_name: self.persons}
        return first | {rows.name: rows.schema for rows in self.rows}

    def _without_ignored(self) -> PeopleShape:
        """The shape of synthetic tables: without columns of type `sp.Ignore()`."""
        persons = None if self.persons is None else self.persons._without_ignored()
        rows = tuple(replace(table, schema=table.schema._without_ignored()) for table in self.rows)
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
            for rule in schema.rules:
                if isinstance(rule, OnlyOn):
                    raise SchemaError(f"{at}{rule!r} is not kept in rows of persons; leave it out")
                if isinstance(rule, AtMost) and rule.difference is not None:
                    raise SchemaError(
                        f"{at}the difference of {rule.other!r} and {rule.column!r} is stated, and rows of persons keep "
                        "such columns as they are; leave difference out"
                    )
            if not any(column.is_read for column in schema.values()):
                raise SchemaError(f"{at}all columns are identifiers or ignored; there is nothing to learn")
            for column in schema._columns_awaiting_values:
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


# -------------------------------------------------------------------------------------------------------------- digests
# A digest of what is public about a table: two tables that state the same have the same one.


def schema_digest(stated: Schema | Tables | PeopleShape) -> str:
    """SHA-256 of a schema, or of linked ones, as JSON with sorted keys and no spaces, in 64 hexadecimal digits."""
    if isinstance(stated, Schema) and stated.person is None:
        described: Any = stated.to_dict()
    else:
        described = (stated if isinstance(stated, PeopleShape) else PeopleShape.of(stated)).to_dict()
    text = json.dumps(jsonable(described), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return sha256(text.encode("ascii")).hexdigest()
