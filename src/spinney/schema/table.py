"""Schema: the public description of a table, in Python or as a TOML file.

A schema file reads

    [columns.longitude]
    type = "real"
    low = -9.0
    high = 3.0

and everything Spinney knows without spending epsilon is in it. [[rules]] tables say what holds between columns.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeAlias

from spinney.columns import COLUMN_TYPES, Bounded, Column
from spinney.errors import SchemaError
from spinney.files import write_whole
from spinney.schema.plain import check_plain, parse_toml, read_schema_text
from spinney.schema.rules import Rule, check_rules, rule_from_dict, widened
from spinney.shown import brief
from spinney.suggest import did_you_mean

# What `fit` and its kin take for a schema; `as_schema` makes one of it.
SchemaLike: TypeAlias = "Schema | Mapping[str, Column] | str | os.PathLike[str]"


class Schema(Mapping[str, Column]):
    """An ordered mapping from column names to column types, with rules between columns if there are any.

    >>> import spinney as sp
    >>> sp.Schema({"age": sp.Integer(0, 120), "smoker": sp.Boolean()})
    Schema({'age': Integer(low=0, high=120), 'smoker': Boolean()})
    """

    def __init__(self, columns: Mapping[str, Column], *, rules: Iterable[Rule] = ()) -> None:
        if not isinstance(columns, Mapping):
            raise SchemaError("Schema takes a mapping from column names to column types")
        if not columns:
            raise SchemaError("Schema has no columns; describe at least one")
        for name, column in columns.items():
            if not isinstance(name, str) or not name:
                raise SchemaError(f"column name {brief(name)} is not a non-empty text")
            if not isinstance(column, Column):
                raise SchemaError(f"column {name!r}: {brief(column)} is not a column type such as sp.Real(0, 1)")
        self._columns = dict(columns)
        self._rules = _checked_rules(rules)
        check_rules(self._rules, self._columns)

    def __getitem__(self, name: str) -> Column:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        rules = f", rules={list(self._rules)!r}" if self._rules else ""
        return f"Schema({self._columns!r}{rules})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        return list(self._columns.items()) == list(other._columns.items()) and self._rules == other._rules

    __hash__ = None  # type: ignore[assignment]  # compares by value and order; not meant as a key

    @property
    def rules(self) -> tuple[Rule, ...]:
        """What holds between columns, in the order in which it was stated."""
        return self._rules

    @property
    def identifiers(self) -> list[str]:
        """Names of the columns that are never read."""
        return [name for name, column in self._columns.items() if not column.is_read]

    # ---------------------------------------------------------------------------------------- bounds

    def columns_awaiting_bounds(self, source: str) -> list[str]:
        """Names of the columns whose bounds are to come from `source` and are not there yet."""
        return [
            name
            for name, column in self._columns.items()
            if isinstance(column, Bounded) and column.bounds == source and not column.has_bounds
        ]

    @property
    def awaits_bounds(self) -> bool:
        """Whether any bounds are still to be found."""
        return any(isinstance(column, Bounded) and not column.has_bounds for column in self._columns.values())

    def with_bounds(self, bounds: Mapping[str, tuple[Any, Any]]) -> Schema:
        """The schema with some bounds filled in, wide enough for the rules to be kept."""
        columns = dict(self._columns)
        for name, (low, high) in bounds.items():
            column = columns[name]
            assert isinstance(column, Bounded)
            columns[name] = column.with_bounds(low, high)
        return Schema(widened(columns, bounds, self._rules), rules=self._rules)

    @property
    def has_data_derived_bounds(self) -> bool:
        """Whether any bound was, or is to be, read off the private data."""
        return any(isinstance(c, Bounded) and c.bounds == "from-data-not-private" for c in self._columns.values())

    # ------------------------------------------------------------------------------------ plain data

    def to_dict(self) -> dict[str, Any]:
        """The schema as plain data; dates stay dates."""
        described: dict[str, Any] = {"columns": {name: column.to_dict() for name, column in self._columns.items()}}
        if self._rules:
            described["rules"] = [rule.to_dict() for rule in self._rules]
        return described

    @classmethod
    def from_dict(cls, described: Any) -> Schema:
        """Read what `to_dict` wrote, or what a TOML file says."""
        if not isinstance(described, Mapping) or not isinstance(described.get("columns"), Mapping):
            raise SchemaError("a schema needs a table named columns, one entry per column: [columns.NAME]")
        check_plain(described)
        unknown = sorted(set(described) - {"columns", "rules"})
        if unknown:
            raise SchemaError(
                f"a schema has no entry {unknown[0]!r}; only [columns.NAME] and [[rules]] tables belong in it"
                f"{did_you_mean(unknown[0], ['columns', 'rules'])}"
            )
        rules = described.get("rules", [])
        if not isinstance(rules, list):
            raise SchemaError("rules is not a list of tables; write each rule as a table under [[rules]]")
        return cls(
            {name: column_from_dict(name, entry) for name, entry in described["columns"].items()},
            rules=[rule_from_dict(place, entry) for place, entry in enumerate(rules, start=1)],
        )

    def to_toml(self) -> str:
        """The schema as the text of a TOML file."""
        import tomli_w

        return tomli_w.dumps(self.to_dict())

    @classmethod
    def from_toml(cls, text: str) -> Schema:
        """Read a schema from the text of a TOML file."""
        return cls.from_dict(parse_toml(text))

    @classmethod
    def from_file(cls, path: str | Path) -> Schema:
        """Read a schema from a TOML file."""
        return cls.from_toml(read_schema_text(path))

    def to_file(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the schema as a TOML file, whole or not at all."""
        text = self.to_toml().encode()
        write_whole(path, lambda file: file.write(text), overwrite=overwrite)


def as_schema(schema: Any) -> Schema:
    """The schema that was given: one, the path of a schema file, or a mapping from column names to column types."""
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, str) and "\n" in schema:
        raise SchemaError("schema is a text of several lines, not a path; read it with sp.Schema.from_toml(...)")
    if isinstance(schema, (str, os.PathLike)):
        return Schema.from_file(os.fspath(schema))
    if isinstance(schema, Mapping):
        return Schema.from_dict(schema) if isinstance(schema.get("columns"), Mapping) else Schema(schema)
    raise SchemaError(
        f"schema is a {type(schema).__name__}, not a Schema; make one with sp.Schema({{...}}), or pass the path of a "
        "schema file"
    )


def _checked_rules(rules: Any) -> tuple[Rule, ...]:
    if isinstance(rules, (str, Mapping, Rule)) or not isinstance(rules, Iterable):
        raise SchemaError(f"rules={rules!r} is not a list of rules such as [sp.AtMost('start', 'end')]")
    listed = tuple(rules)
    for rule in listed:
        if not isinstance(rule, Rule):
            raise SchemaError(f"rules: {rule!r} is not a rule such as sp.AtMost('start', 'end')")
    return listed


def column_from_dict(name: str, entry: Any) -> Column:
    """The column that one [columns.NAME] table describes."""
    if not isinstance(entry, Mapping) or "type" not in entry:
        raise SchemaError(f'column {name!r}: the entry needs a type, for example type = "real"')
    options = dict(entry)
    kind = COLUMN_TYPES.get(str(options.pop("type")))
    if kind is None:
        raise SchemaError(
            f"column {name!r}: type {brief(entry['type'])} is not one of {', '.join(sorted(COLUMN_TYPES))}"
            f"{did_you_mean(entry['type'], COLUMN_TYPES)}"
        )
    known = {field.name for field in fields(kind)}
    unknown = sorted(set(options) - known)
    if unknown:
        raise SchemaError(
            f"column {name!r}: {unknown[0]!r} is not an option of type {entry['type']!r}; "
            f"it takes {', '.join(sorted(known))}{did_you_mean(unknown[0], known)}"
        )
    try:
        return kind(**options)
    except SchemaError as err:
        raise SchemaError(f"column {name!r}: {err}") from err
