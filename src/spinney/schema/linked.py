"""Tables: schemas of several tables about the same persons, and the links between them, in Python or as a TOML file.

    [tables.customers]
    schema = "customers.toml"
    file = "customers.parquet"

    [[links]]
    child = "transactions.customer"
    parent = "customers.id"
    most = 200

One table has a row for each person, and every other table is linked to it. What needs no data is checked here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from spinney.columns import Identifier
from spinney.errors import SchemaError
from spinney.schema.link import Link, link_from_dict
from spinney.schema.persons import position_rules
from spinney.schema.places import with_shapes
from spinney.schema.plain import check_plain, parse_toml, read_schema_text
from spinney.schema.table import Schema, SchemaLike, as_schema, schema_from_plain
from spinney.shown import brief
from spinney.suggest import did_you_mean, listed

_ENTRIES, _TABLE_ENTRIES = ("tables", "links"), ("schema", "file")


class Tables(Mapping[str, Schema]):
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
        if isinstance(links, (str, Mapping, Link)) or not isinstance(links, Iterable):
            raise SchemaError(
                f"links={brief(links)} is not a list of links such as [sp.Link('orders.customer', 'customers.id', ...)]"
            )
        self._links = tuple(links)
        for link in self._links:
            if not isinstance(link, Link):
                raise SchemaError(f"links: {brief(link)} is not a link such as sp.Link('orders.customer', ...)")
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

    def _repr_html_(self) -> str | None:
        from spinney.schema.fragment import tables_fragment

        return tables_fragment(self)

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
    try:
        return as_schema(schema)
    except SchemaError as err:
        raise SchemaError(f"table {name!r}: {err}") from err


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
    links = described.get("links", [])
    if not isinstance(links, list):
        raise SchemaError("links is not a list of tables; write each link as a table under [[links]]")
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
    try:
        at = folder
        if isinstance(schema, str):
            path = Path(folder or "", schema)
            schema, at = parse_toml(read_schema_text(path)), path.parent
        whole = with_shapes(schema, at) if at is not None and isinstance(schema, dict) else schema
        read = schema_from_plain(whole, folder=at, keys=[key for table, _, key in ends if table == name])
    except SchemaError as err:
        raise SchemaError(f"table {name!r}: {err}") from err
    return read, file if file is None or folder is None else os.path.join(folder, file)
