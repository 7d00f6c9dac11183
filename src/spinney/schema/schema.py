"""Schema: the public description of a table, in Python or as a TOML file.

A schema file reads

    [columns.longitude]
    type = "real"
    low = -9.0
    high = 3.0

and everything Spinney knows without spending epsilon is in it. [[rules]] tables say what holds between columns,
[[places]] tables which columns are one thing, and a [person] table whose rows they are.

`Schema` is here with its files, and the schemas that follow from it: modelled, as read, as drawn.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from spinney.columns import Bounded, Category, Column
from spinney.columns.base import check_characters
from spinney.documents import Document, Documented, Facts, Table
from spinney.errors import SchemaError
from spinney.files import write_whole
from spinney.schema.persons import key_in, options_from_dict, stated_person
from spinney.schema.places import Place, check_places, place_from_dict, with_shapes
from spinney.schema.plain import all_of, check_plain, column_from_dict, entries_of, parse_toml, read_schema_text
from spinney.schema.rules import (
    Derivation,
    Lag,
    OnlyOn,
    Rule,
    Runs,
    check_rules,
    derivations_in_order,
    orders_of,
    rule_from_dict,
    widened,
    with_differences,
)
from spinney.schema.rules.related import Related
from spinney.text import brief, did_you_mean


def parts_first(columns: Mapping[str, Column]) -> list[str]:
    """The columns that are read, the parts of a sum before its residual: a fault of theirs is told as theirs."""
    read = [name for name, column in columns.items() if column.is_read]
    ordered = dict.fromkeys(other for name in read for other in (*columns[name]._also_reads, name))
    return [name for name in ordered if columns[name].is_read]


# --------------------------------------------------------------------------------------------------------------- schema
# `Schema`: columns by name, rules, places and whose rows they are; checked when it is made, never changed
# after.


# What `fit`, `synthesize` and `check` accept as a schema; `as_schema` converts it.
SchemaLike: TypeAlias = "Schema | Mapping[str, Column] | str | os.PathLike[str]"


# What a schema file may hold.
ENTRIES = ("columns", "rules", "places", "person")


class Schema(Documented, Mapping[str, Column]):
    """An ordered mapping from column names to column types, with rules between columns if there are any.

    >>> import spinney as sp
    >>> sp.Schema({"age": sp.Integer(0, 120), "smoker": sp.Boolean()})
    Schema({'age': Integer(low=0, high=120), 'smoker': Boolean()})

    Args:
        columns: a column type such as `sp.Integer(0, 120)` for each column name, in the order of the table.
        rules: what holds between columns in every row, such as `sp.AtMost("start", "end")`.
        places: columns that are one thing, such as `sp.Place("lon", "lat")`.
        person: the `sp.Identifier` column that says whose row it is, where a person may have several rows. The promise
            is then for a person with all their rows, and `sp.LinkedSynthesizer` makes the model.
        most_rows: how many rows of one person are kept at most, a round public number in 1..65535. A larger number adds
            no noise.
        order: the column by which a person's rows are sorted: numbers, dates or times, never null. By default rows are
            in no order.
        steps: whether each row is a step after the one before, as in a panel: `order` is modelled by its steps.
        role: the category that says what a row is within its person, such as a relation to the head of a household.
        differences: columns that are modelled by how far they are from the person's first row, such as ages.
    """

    def __init__(
        self,
        columns: Mapping[str, Column],
        *,
        rules: Iterable[Rule] = (),
        places: Iterable[Place] = (),
        person: str | None = None,
        most_rows: int | None = None,
        order: str | None = None,
        steps: bool = False,
        role: str | None = None,
        differences: Iterable[str] = (),
    ) -> None:
        if not isinstance(columns, Mapping):
            raise SchemaError("Schema takes a mapping from column names to column types")
        if not columns:
            raise SchemaError("Schema has no columns; describe at least one")
        for name, column in columns.items():
            if not isinstance(name, str) or not name:
                raise SchemaError(f"column name {brief(name)} is not a non-empty string")
            if not isinstance(column, Column):
                raise SchemaError(f"column {name!r}: {brief(column)} is not a column type such as sp.Real(0, 1)")
        check_characters(columns, "column name ")
        self._columns = dict(columns)
        self._rules: tuple[Rule, ...] = all_of(Rule, rules, "rules", "rule", "sp.AtMost('start', 'end')")  # type: ignore[type-abstract]
        if self._rules:
            check_rules(self._rules, self._columns)
        self._places = all_of(Place, places, "places", "place", "sp.Place('lon', 'lat')")
        check_places(self._places, self._columns, self._rules)
        # What is stated about the rows of a person; None where every row is a person of its own.
        self._person_rows = stated_person(person, most_rows, order, steps, role, differences)
        if self._person_rows is not None:
            self._person_rows.check(self._columns, self._rules, f"person={person!r}")

    def __getitem__(self, name: str) -> Column:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def document(self) -> Document:
        """The schema as notebooks show it: how many columns of each kind, all columns, and rules."""
        kinds = Counter(column.type_name for column in self.values())
        facts = Facts(
            [
                ("columns", ", ".join(f"{count} {kind}" for kind, count in kinds.items())),
                ("rules", len(self.rules) or None),
                ("places", "; ".join(place.label for place in self.places)),
                ("person", self.person),
            ]
        )
        rules = Table("rules", ("rule",), [[repr(rule)] for rule in self.rules])
        return Document(f"Schema of {len(self)} columns", [facts, columns_of(self, is_open=True), rules])

    def __repr__(self) -> str:
        rules = f", rules={list(self._rules)!r}" if self._rules else ""
        places = f", places={list(self._places)!r}" if self._places else ""
        facts = self._person_rows
        person = "" if facts is None else f", person={facts.column!r}, {facts.shown()}"
        return f"Schema({self._columns!r}{rules}{places}{person})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        is_equal = list(self._columns.items()) == list(other._columns.items()) and self._rules == other._rules
        return is_equal and self._places == other._places and self._person_rows == other._person_rows

    __hash__ = None  # type: ignore[assignment]  # compares by value and order; not meant as a key

    @property
    def rules(self) -> tuple[Rule, ...]:
        """What holds between columns, in the order in which it was stated."""
        return self._rules

    @property
    def places(self) -> tuple[Place, ...]:
        """Columns that are one thing, in the order in which they were stated."""
        return self._places

    @property
    def person(self) -> str | None:
        """The column that says whose row it is; None where every row is a person of its own."""
        return None if self._person_rows is None else self._person_rows.column

    @cached_property
    def _variables(self) -> dict[str, Place | None]:
        """What a forest models, in the order of the table: columns that are read, and places where they begin.

        The place by its label, None for a column by itself.
        """
        owner = {name: place for place in self._places for name in place.columns}
        return {name if name not in owner else owner[name].label: owner.get(name) for name in self._modelled}

    @cached_property
    def _identifiers(self) -> list[str]:
        """Names of the columns that are never read, and made afresh."""
        return [name for name, column in self._columns.items() if column._is_drawn and not column.is_read]

    def _without_ignored(self) -> Schema:
        """The schema of synthetic rows: without the columns of type `sp.Ignore()`.

        Raises:
            SchemaError: all columns are ignored.
        """
        kept = {name: column for name, column in self._columns.items() if column._is_drawn}
        if len(kept) == len(self._columns):
            return self
        if not kept:
            raise SchemaError("all columns of the schema are ignored; describe at least one")
        return self._with_columns(kept)

    def _with_columns(self, columns: Mapping[str, Column]) -> Schema:
        """Other columns under the same names, or fewer, with all else that was stated."""
        return Schema(columns, rules=self._rules, places=self._places, **self._person_options)

    def _with_rules(self, rules: Iterable[Rule]) -> Schema:
        """Other rules between the same columns, with all else that was stated."""
        return Schema(self._columns, rules=rules, places=self._places, **self._person_options)

    @cached_property
    def _found_relations(self) -> list[str]:
        """In words what a fit found, privately, of columns that are fixed parts of others."""
        return [f"{rule.in_words()} in some rows" for rule in self._related.values() if rule.found]

    def _without_found(self) -> Schema:
        """The schema as it was stated, without relations that a fit found."""
        kept = [rule for rule in self._rules if not (isinstance(rule, Related) and rule.found)]
        return self if len(kept) == len(self._rules) else self._with_rules(kept)

    @property
    def _person_options(self) -> dict[str, Any]:
        return {} if self._person_rows is None else options_from_dict(self._person_rows.to_dict())

    # ------------------------------------------------------------------------------- what is modelled, what is read
    # Views of the schema that other rooms ask for again and again; each is made once, and nobody changes it.

    @cached_property
    def _derivations(self) -> list[Derivation]:
        """The rules by which columns are computed from others, each after those that compute its sources."""
        return derivations_in_order(self._rules, self._columns)

    @cached_property
    def _lags(self) -> dict[str, Lag]:
        """The columns that are another one and a difference, each after the one that it is computed from."""
        return {rule.column: rule for rule in self._derivations if isinstance(rule, Lag)}

    @cached_property
    def _days(self) -> dict[str, Runs]:
        """The columns that lie on some days only, and these days."""
        stated = [rule for rule in self._rules if isinstance(rule, OnlyOn)]
        return {rule.column: rule.runs(self._columns[rule.column]) for rule in stated}

    @cached_property
    def _orders(self) -> list[Rule]:
        """The rules without those that hold because one column is computed from the other."""
        return orders_of(self._rules, self._columns)

    def _with_differences(self, but: Iterable[str] = ()) -> Schema:
        """The schema with a stated difference in every `AtMost` of which a forest models one.

        Args:
            but: columns that are to be modelled as they are.
        """
        rules = with_differences(
            self._rules, self._columns, {*but, *(n for place in self._places for n in place.columns)}
        )
        if rules == self._rules:
            return self
        return Schema(self._columns, rules=rules, places=self._places, **self._person_options)

    @cached_property
    def _modelled(self) -> Schema:
        """The columns of which there is something to learn: no identifiers, and none that are computed.

        A sum with a residual is there as its residual, a related column with codes for its ratios. Rules, places and
        persons are left out.
        """
        computed = {rule.column: rule.modelled_of(self._columns) for rule in self._derivations}
        columns = {name: computed.get(name, column) for name, column in self._columns.items() if column.is_read}
        left = {name: column for name, column in columns.items() if column is not None}
        if not left:
            raise SchemaError("all columns are identifiers or computed; there is nothing to learn")
        is_plain = not (self._rules or self._places or self.person)
        return self if is_plain and len(left) == len(self) else Schema(left)

    @property
    def _as_drawn(self) -> dict[str, Column]:
        """All columns as positions of rows are drawn along them: a sum with a residual as its residual.

        A dictionary of the caller's own, which may be changed.
        """
        modelled = {rule.column: rule.modelled_of(self._columns) for rule in self._derivations}
        return {name: modelled.get(name) or column for name, column in self._columns.items()}

    @cached_property
    def _related(self) -> dict[str, Related]:
        """The rules of columns that are fixed parts of others, by these columns."""
        return {rule.column: rule for rule in self._rules if isinstance(rule, Related)}

    @cached_property
    def _as_read(self) -> Schema:
        """The same columns as a table is read by: computed ones are passed over, residuals are computed on the way.

        Whose rows they are is left out.
        """
        if not self._derivations:
            return self if self._person_rows is None else Schema(self._columns)
        columns: dict[str, Column] = dict(self._columns)
        for rule in self._derivations:
            columns[rule.column] = rule.read_as(self._columns)
        return Schema(columns)

    # ---------------------------------------------------------------------------------------- bounds

    def _columns_awaiting_bounds(self, source: str) -> list[str]:
        """Names of the columns whose bounds are not there yet.

        Args:
            source: where the bounds are to come from: "private" or "from-data-not-private".
        """
        return [
            name
            for name, column in self._columns.items()
            if isinstance(column, Bounded) and column.bounds == source and not column.has_bounds
        ]

    @property
    def _awaits_bounds(self) -> bool:
        """Whether any bounds are still to be found."""
        return any(isinstance(column, Bounded) and not column.has_bounds for column in self._columns.values())

    def _with_bounds(self, bounds: Mapping[str, tuple[Any, Any]]) -> Schema:
        """The schema with some bounds filled in, wide enough for the rules to be kept.

        Args:
            bounds: a low and a high end for each column that gets some, by name.
        """
        columns = dict(self._columns)
        for name, (low, high) in bounds.items():
            column = columns[name]
            assert isinstance(column, Bounded)
            columns[name] = column._with_bounds(low, high)
        return self._with_columns(widened(columns, bounds, self._rules))

    @property
    def _has_data_derived_bounds(self) -> bool:
        """Whether any bound was, or is to be, read off the private data."""
        return any(isinstance(c, Bounded) and c.bounds == "from-data-not-private" for c in self._columns.values())

    # ------------------------------------------------------------------------------------------ private values

    @property
    def _columns_awaiting_values(self) -> list[str]:
        """Names of the categories whose list of values is to be found privately and is not there yet."""
        return [
            name for name, column in self._columns.items() if isinstance(column, Category) and not column.has_values
        ]

    def _with_values(self, values: Mapping[str, Iterable[Any]]) -> Schema:
        """The schema with the lists of some categories filled in.

        Args:
            values: what was found for each category that gets a list, by name; `other` joins it.
        """
        columns = dict(self._columns)
        for name, found in values.items():
            column = columns[name]
            assert isinstance(column, Category)
            columns[name] = column._with_values(tuple(found))
        return self._with_columns(columns)

    # --------------------------------------------------------------------------------- plain data and files

    def to_dict(self) -> dict[str, Any]:
        """The schema as plain data: strings, numbers, lists and dictionaries, and Python's dates; see `from_dict`."""
        described: dict[str, Any] = {"columns": {name: column.to_dict() for name, column in self._columns.items()}}
        if self._rules:
            described["rules"] = [rule.to_dict() for rule in self._rules]
        if self._places:
            described["places"] = [place.to_dict() for place in self._places]
        if self._person_rows is not None:
            described["person"] = self._person_rows.to_dict()
        return described

    @classmethod
    def from_dict(cls, described: Any) -> Schema:
        """The schema that plain data describe.

        >>> Schema.from_dict({"columns": {"age": {"type": "integer", "low": 0, "high": 120}}})
        Schema({'age': Integer(low=0, high=120)})

        Args:
            described: what `to_dict` gives, or what a schema file says: `columns`, with an entry for each column,
                `rules` and `places`, lists, and `person`, a dictionary. Dates may be ISO strings.

        Raises:
            SchemaError: an entry is missing, unknown or out of range; the column or the rule is named. `values_from` is
                refused: plain data may come from anywhere, and only a schema file may name other files.
        """
        return schema_from_plain(described, folder=None)

    def to_toml(self) -> str:
        """The schema as the text of a TOML file."""
        import tomli_w

        return tomli_w.dumps(self.to_dict())

    @classmethod
    def from_toml(cls, text: str) -> Schema:
        """The schema that a TOML text describes.

        Args:
            text: what `to_toml` gives, or a filled template. Paths in `values_from` and `within` start in the working
                folder.

        Raises:
            SchemaError: the text is not valid TOML, or not a schema.
        """
        return schema_from_plain(with_shapes(parse_toml(text), Path()), folder="")

    @classmethod
    def from_file(cls, path: str | Path) -> Schema:
        """The schema in a TOML file.

        Args:
            path: the file. Paths in `values_from` and `within` start in its folder.

        Raises:
            SchemaError: the file cannot be read, or is not a schema.
        """
        folder = Path(path).parent
        return schema_from_plain(with_shapes(parse_toml(read_schema_text(path)), folder), folder=folder)

    def to_file(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the schema as a TOML file, whole or not at all.

        Args:
            path: the file.
            overwrite: whether a file that is already there may be replaced.

        Raises:
            FileError: the file exists, or cannot be written.
        """
        write_whole(path, self.to_toml(), overwrite=overwrite)

    @staticmethod
    def template(table: Any, *, private_bounds: bool = False) -> str:
        """A schema file for a table with blanks for a person to fill in, as the text that `spinney schema` writes.

        Names and types are filled in. Bounds, categories and nulls are blank: which values are in the table is private.
        Of tables in memory no value is looked at, so a pandas column of Python objects is taken for strings. A CSV file
        says no types, so they are guessed from its values, for you to check.

        Args:
            table: a pandas, polars or pyarrow table, a pyarrow schema, or the path of CSV or Parquet files (a file, a
                folder, a pattern, a list of paths or a `sp.CSV`), of which the first is looked at.
            private_bounds: whether bounds are estimated privately, using part of epsilon, instead of left blank.

        Raises:
            InputError: this is not a table whose types can be told, or a column has no name.
        """
        from spinney.schema.template import template_of

        return template_of(table, private_bounds=private_bounds)

    # ------------------------------------------------------------------------------------------ SDV metadata

    @classmethod
    def from_sdv(
        cls,
        metadata: Any,
        *,
        table: str | None = None,
        bounds: Mapping[str, tuple[Any, Any]] | None = None,
        values: Mapping[str, Iterable[Any]] | None = None,
        nullable: Iterable[str] = (),
        columns: Mapping[str, Column] | None = None,
        private_bounds: bool = False,
    ) -> Schema:
        """The schema of a table that has metadata of the Synthetic Data Vault (SDV).

        SDV learns bounds and categories from the data. Here they are public statements, so you make them; an error
        lists all that is missing at once, with what to type.

        Args:
            metadata: SDV's `Metadata` or `SingleTableMetadata`, its dictionary, or the path of its JSON file.
            table: which table is meant, where the metadata describes several.
            bounds: (low, high) for numerical and datetime columns. Where the metadata does not say how numbers are
                represented, whole numbers here mean an `Integer` and floats a `Real`.
            values: all values of categorical columns, unless the metadata lists them as `order`.
            nullable: names of the columns in which values may be missing, which SDV's metadata does not say.
            columns: column types that take the place of what the metadata says, by name.
            private_bounds: whether bounds that are not stated are estimated privately, using part of epsilon.

        Raises:
            SchemaError: the metadata leaves something to be stated, or describes what Spinney has no column type for.
        """
        from spinney.schema.sdv import schema_from_sdv

        return schema_from_sdv(
            metadata,
            table=table,
            bounds=bounds or {},
            values=values or {},
            nullable=nullable,
            columns=columns or {},
            private_bounds=private_bounds,
        )

    def to_sdv(self, table: str = "table") -> dict[str, Any]:
        """The schema as a dictionary of SDV's metadata (version V1), for `Metadata.load_from_dict`.

        Bounds, steps, nulls, time zones, rules, places and persons cannot be stated there and are left out.

        Args:
            table: what the table is called.

        Raises:
            SchemaError: SDV has no type for a column.
        """
        from spinney.schema.sdv import schema_to_sdv

        return schema_to_sdv(self, table)


def schema_from_plain(described: Any, *, folder: str | Path | None, keys: Iterable[str] = ()) -> Schema:
    """The schema of plain data, with files of values looked for from a folder, if they may be.

    `keys` are columns that links say to be keys.
    """
    if not isinstance(described, Mapping) or not isinstance(described.get("columns"), Mapping):
        if isinstance(described, Mapping) and "tables" in described:
            raise SchemaError(
                "this file is not the schema of one table: it describes linked tables, [tables.NAME]; say --tables "
                "FILE in place of TABLE and --schema, or read it with sp.Tables.from_file(...)"
            )
        raise SchemaError("a schema needs a table named columns, one entry per column: [columns.NAME]")
    check_plain(described)
    for entry in sorted(set(described) - set(ENTRIES)):
        raise SchemaError(f"{no_entry(entry)}{did_you_mean(entry, ENTRIES)}")
    rules, places = entries_of(described, "rule"), entries_of(described, "place")
    known = {key_in(described), *keys}
    return Schema(
        {
            name: column_from_dict(name, entry, folder=folder, is_key=name in known)
            for name, entry in described["columns"].items()
        },
        rules=[rule_from_dict(number, entry) for number, entry in enumerate(rules, start=1)],
        places=[place_from_dict(number, entry) for number, entry in enumerate(places, start=1)],
        **(options_from_dict(described["person"]) if "person" in described else {}),
    )


def columns_of(schema: Schema, caption: str = "columns", *, is_open: bool = False) -> Table:
    """The columns as a table, for documents."""
    return Table(caption, ("column", "as stated"), [[name, repr(column)] for name, column in schema.items()], is_open)


def as_schema(schema: Any) -> Schema:
    """The schema that was given: one, the path of a schema file, or a mapping from column names to column types."""
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, str) and "\n" in schema:
        raise SchemaError("schema is a string of several lines, not a path; read it with sp.Schema.from_toml(...)")
    if isinstance(schema, (str, os.PathLike)):
        return Schema.from_file(os.fspath(schema))
    if isinstance(schema, Mapping):
        return Schema.from_dict(schema) if isinstance(schema.get("columns"), Mapping) else Schema(schema)
    raise SchemaError(
        f"schema is a {type(schema).__name__}, not a Schema; make one with sp.Schema({{...}}), or pass the path of a "
        "schema file"
    )


def no_entry(entry: str) -> str:
    """What is said of an entry that no schema has."""
    return (
        f"a schema has no entry {entry!r}; only [columns.NAME], [[rules]], [[places]] and [person] tables belong in it"
    )
