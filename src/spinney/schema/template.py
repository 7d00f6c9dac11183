"""Schema files for people: a template with blanks to fill in, and all faults of a filled one at once.

    faults      a schema file as far as it can be read, with everything that is wrong with it
    template    what a table says about its columns, and blanks for what a person must state

Bounds and lists of values are left blank on purpose: what the table holds is private.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from spinney.columns import COLUMN_TYPES, KINDS, Column
from spinney.columns.reading import is_string, types_of
from spinney.errors import InputError, SchemaError
from spinney.schema.persons import key_in, names_persons, options_from_dict, suggested_keys, suggested_orders
from spinney.schema.places import Place, check_places, place_from_dict, suggested_places, with_shape, with_shapes
from spinney.schema.plain import check_plain, column_from_dict, entries_of, parse_toml, read_schema_text
from spinney.schema.rules import Rule, check_rules, rule_from_dict
from spinney.schema.schema import ENTRIES, Schema, no_entry, schema_from_plain

# --------------------------------------------------------------------------------------------------------------- faults
# All faults of a schema file at once, and what is left of the schema without them.
#
# `Schema.from_file` stops at the first fault, which is right for a program. Whoever fills in a template of thirty
# columns wants to hear of all of them. So every column, rule and place, and whose rows they are, is read by itself,
# by the code that reads them anywhere.


@dataclass(frozen=True, slots=True)
class SchemaReading:
    """A schema file as far as it can be read."""

    schema: Schema | None  # the columns and rules that are right, if there is a column
    faults: tuple[str, ...]
    unread: frozenset[str] = frozenset()  # columns that the file names but describes wrongly
    states_person: bool = False  # whether there is a [person] table, even one that is not right


def read_schema(path: str | Path) -> SchemaReading:
    """The schema in a TOML file, with all that is wrong with it."""
    try:
        text = read_schema_text(path)
    except SchemaError as err:
        return SchemaReading(None, (str(err),))
    return read_stated(text, Path(path).parent)


def read_stated(text: str, folder: Path) -> SchemaReading:
    """The schema in the text of a schema file, with all that is wrong with it; files it names are in the folder."""
    try:
        described = parse_toml(text)
        return SchemaReading(schema_from_plain(with_shapes(described, folder), folder=folder), ())
    except SchemaError as err:
        first = str(err)
    try:
        described = parse_toml(text)
        check_plain(described)
    except SchemaError:
        return SchemaReading(None, (first,))  # no TOML, so there is nothing to take apart
    if not isinstance(described.get("columns"), Mapping) or not described["columns"]:
        return SchemaReading(None, (first,))
    faults: list[str] = []
    columns = _read_columns(described, folder, faults)
    unread = frozenset(described["columns"]) - set(columns)
    rules = _read_rules(described, columns, unread, faults)
    places = _read_places(described, columns, rules, unread, faults, folder)
    person = _read_person(described, columns, rules, unread, faults)
    schema = Schema(columns, rules=rules, places=places, **person) if columns else None
    return SchemaReading(schema, tuple(faults or [first]), unread, "person" in described)


@contextmanager
def _collect(faults: list[str], about: str = "") -> Iterator[None]:
    """A SchemaError inside ends the work there and is put down as a fault, of what it is about."""
    try:
        yield
    except SchemaError as err:
        said = str(err)
        faults.append(said if said.startswith(about.split(" ", maxsplit=1)[0]) else f"{about}: {said}")


def _read_columns(described: Mapping[str, Any], folder: Path, faults: list[str]) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    key = key_in(described)
    faults += [no_entry(entry) for entry in sorted(set(described) - set(ENTRIES))]
    for name, entry in described["columns"].items():
        with _collect(faults):
            columns |= Schema({name: column_from_dict(name, entry, folder=folder, is_key=name == key)})
    return columns


def _entries_of(described: Mapping[str, Any], kind: str, faults: list[str]) -> list[Any]:
    """What stands under [[rules]] or [[places]], each entry by itself; nothing where that is no list."""
    with _collect(faults):
        return entries_of(described, kind)
    return []


def _read_rules(
    described: Mapping[str, Any], columns: dict[str, Column], unread: frozenset[str], faults: list[str]
) -> list[Rule]:
    """The rules, if they are all right together. Those about columns that could not be read are passed over."""
    rules: list[Rule] = []
    for place, entry in enumerate(_entries_of(described, "rule", faults), start=1):
        with _collect(faults, f"rule {place}"):
            rule = rule_from_dict(place, entry)
            if unread.isdisjoint(rule.columns):
                check_rules([rule], columns)
                rules.append(rule)
    with _collect(faults):
        check_rules(rules, columns)
        return rules
    return []


def _read_places(
    described: Mapping[str, Any],
    columns: dict[str, Column],
    rules: list[Rule],
    unread: frozenset[str],
    faults: list[str],
    folder: Path,
) -> list[Place]:
    """The places that are right. Those of columns that could not be read are passed over."""
    places: list[Place] = []
    for number, entry in enumerate(_entries_of(described, "place", faults), start=1):
        with _collect(faults, f"place {number}"):
            place = place_from_dict(number, with_shape(number, entry, folder))
            if unread.isdisjoint(place.columns):
                check_places([*places, place], columns, rules)
                places.append(place)
    return places


def _read_person(
    described: Mapping[str, Any],
    columns: dict[str, Column],
    rules: list[Rule],
    unread: frozenset[str],
    faults: list[str],
) -> dict[str, Any]:
    """The options of a schema that say whose rows they are, if they are right. Unread columns are passed over."""
    if "person" not in described:
        return {}
    try:
        options = options_from_dict(described["person"])
        named = [options["person"], options.get("order"), options.get("role"), *options.get("differences", ())]
        if not columns or not unread.isdisjoint(named):
            return {}
        Schema(columns, rules=rules, **options)
    except SchemaError as err:
        faults.append(str(err))
        return {}
    except TypeError:  # of a list where a name should be
        faults.append("[person] takes names of columns: column, order and role are strings, differences is a list")
        return {}
    return options


# ------------------------------------------------------------------------------------------------------------- template
# What a table says about its columns, and blanks for what a person must state.
#
# Names and types are all that is looked at; a CSV says no types, so there its values are. Blanks are lines that
# are commented out, so an unfilled template is valid TOML and loading it names the first column whose bounds or
# values are missing.


_PREAMBLE = """\
# A Spinney schema. Names and types come from the table; you state the rest. The types of a CSV are guessed from its
# values, so check them against what is publicly known, for example whether "integer" or "real" is right.
#
# Lists of values and bounds are left blank on purpose. The smallest and largest value in the table, and which values
# occur, are facts about the people in it; bounds taken from the data would reveal them without any noise. State what
# is publicly known about each column: an age lies in 0..120, whoever is in the table. Round bounds that are somewhat
# too wide cost little, and values outside are moved to the nearest bound. If nothing is known, write
# `bounds = "private"` in place of low and high: fit then estimates the bounds privately, using part of epsilon.
# With [person], which is explained below, bounds have to be stated.
#
# Remove the "# " before a line to state it. `nullable = true` allows missing values. A column that names rows or people
# (a customer number, an e-mail address) is an "identifier": its values are never read, and new ones are generated. A
# column of type "ignore" is left out: its values are never read, and the synthetic table does not have it.
#
# A long list of values may be in a file: `values_from = "codes.txt"`, one value a line, in the folder of this file. If
# there is no public list, write `values = "private"`: fit then finds the common values privately, using part of epsilon
# and delta, and counts the others as `other`; with [person], values have to be listed. Codes that belong together by
# their first characters are stated with `hierarchy = [1, 3]`, so that rare ones are counted with their group.
#
# More can be stated: `decimals = 2` or `multiple_of = 50` for numbers that come in steps (in days for dates,
# in seconds for datetimes and times), and, at the end of the file, what holds between columns. Rules cost nothing, and
# every synthetic row obeys them:
#
#     [[rules]]
#     type = "at-most"      # column is never larger than other
#     column = "start"
#     other = "end"
#
#     [[rules]]
#     type = "empty-when"   # column is missing exactly when other has one of the values
#     column = "end"
#     other = "status"
#     values = ["open"]
#
#     [[rules]]
#     type = "implies"      # where `when` holds, `then` does: a value, a range, a list of these, or { null = true }
#     when.age = { low = 0, high = 14 }
#     then.marital = ["never", { null = true }]
#
#     [[rules]]
#     type = "derived"      # column follows from source: `part` of a date, `times` a number, `by` a mapping, or `cuts`
#     column = "fiscal_year"
#     source = "start"
#     part = "year"         # or "quarter", "month", "weekday"
#     starting = "October"
#
#     [[rules]]
#     type = "only-on"      # column lies on "weekdays", on "month-ends" or on days such as ["Tuesday", "Thursday"]
#     column = "start"
#     days = "weekdays"
#
#     [[rules]]
#     type = "sum"          # column is computed from its parts; they come in steps, such as multiple_of = 0.01
#     column = "total"
#     parts = ["fare", "tip", "tolls"]
#
#     [[rules]]
#     type = "related"      # column is a fixed part of base in many rows, and has values of its own in all others
#     column = "guaranteed"
#     base = "approved"
#     ratios = [1, "0.75"]
#
#     [[rules]]
#     type = "derived"      # column is computed from another: by a mapping, or by cuts and labels of numbers
#     column = "sector"
#     source = "industry"
#     by = { "0170" = "farming", "7860" = "education" }
#
# Columns that are one thing, such as longitude and latitude, are a place and are drawn together. State it as a table
# [[places]] with columns = ["lon", "lat"] and, if a shape is public in which all points lie, within = "city.geojson".
#
# Do rows belong to persons, so that somebody may have several: transactions of customers, visits of patients? Then
# state whose rows they are in a table [person], as at the end of this file. The guarantee is then for a person with all
# their rows; without it, it is for one row. Bounds and lists of values are then stated: none can be "private".
"""
_NULLABLE = "# nullable = true"


def template_of(table: Any, *, private_bounds: bool = False) -> str:
    """A template for a table in memory, an Arrow schema, or the path of files."""
    types = types_of(table)
    if types is None:
        # Files are read in a room above this one, which knows schemas.
        file_types = import_module("spinney.tables.preview").file_types
        return schema_template(file_types(table), private_bounds=private_bounds)
    if not all(isinstance(name, str) for name in types.columns):
        raise InputError(
            "the table has column names that are not strings; name its columns, for example "
            "frame.columns = ['age', 'income']"
        )
    return schema_template(types.to_arrow(), private_bounds=private_bounds)


def schema_template(fields: pa.Schema, *, private_bounds: bool = False) -> str:
    """A template for columns of these names and types; with `private_bounds`, bounds are left to epsilon."""
    parts = [_PREAMBLE]
    keys = [field.name for field in fields if _is_key(field.type)]
    suggested = suggested_keys(keys)
    for field in fields:
        if not field.name:
            raise InputError("a column has no name; give every column one")
        lines = [*_entry(field.type, private_bounds), _NULLABLE]
        if field.name in suggested[:1]:  # whose rows they are, as the lines at the end say it
            lines = _identifier(lines)
        parts.append("\n".join([f"[columns.{_key(field.name)}]", *lines]) + "\n")
    numbers = [field.name for field in fields if _is_number(field.type)]
    parts += [_place(columns) for columns in suggested_places(numbers)]
    if keys:
        orders = [field.name for field in fields if pa.types.is_date(field.type) or pa.types.is_timestamp(field.type)]
        orders += suggested_orders(name for name in numbers if name not in suggested[:1])
        parts.append(_person(suggested, orders[0] if orders else None))
    return "\n".join(parts)


def _identifier(lines: Sequence[str]) -> list[str]:
    """The lines of a column that by its name says whose row it is; what its type would be is left as comments."""
    kind, *more = lines
    rest = [line for line in more if "identifier" not in line]
    return [
        'type = "identifier"  # by its name; if it names nobody, remove this line and state what follows',
        *(line if line.startswith("#") else f"# {line}" for line in (kind, *rest)),
    ]


def _person(suggested: Sequence[str], order: str | None) -> str:
    """The question whether rows belong to persons, with the lines to write.

    All of them hold as they stand where a name speaks of persons. Of another key nothing but its rows could say whether
    it names persons or rows, and they are not looked at: then the column is left blank. Where no column suggests itself
    as an order, the line for it is commented out twice.
    """
    offered = [name for name in suggested if names_persons(name)]
    lines = [
        "# Do rows belong to persons?",
        *(f"# By its name, {_key(name)} may say whose row it is: has anybody several rows?" for name in offered),
        *(
            f"# By its name, {_key(name)} may name persons or rows: it says whose row it is only if its values repeat."
            for name in suggested
            if name not in offered
        ),
        "# If so, remove the signs before these lines:",
    ]
    column = _line("column", offered[0] if offered else "")
    by = '# order = "day"' if order is None else _line("order", order)
    return "\n".join(
        [
            *lines,
            "# [person]",
            f'# {column}  # the column that says whose row it is; its type has to be "identifier"',
            "# most_rows = 200  # of one person, a round public number; a larger one adds no noise",
            f"# {by}  # the column that a person's rows are sorted by, never null; leave it out if they have no order",
            "",
        ]
    )


def _line(name: str, value: str) -> str:
    import tomli_w

    return tomli_w.dumps({name: value}).strip()


def _is_key(kind: Any) -> bool:
    """Whether a column of this type may hold the keys of persons."""
    return bool(pa.types.is_integer(kind) or is_string(kind))


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def _place(columns: Sequence[str]) -> str:
    """A place that names suggest, left for a person to state."""
    import tomli_w

    line = " ".join(tomli_w.dumps({"columns": list(columns)}).split()).replace("[ ", "[").replace(", ]", "]")
    asked = "If these columns are the coordinates of one point, as their names suggest, they are a place:"
    return f"# {asked}\n# [[places]]\n# {line}\n"


def _entry(kind: Any, private_bounds: bool) -> list[str]:
    """The lines of one column, from its type in the file alone."""

    def bounds(*blanks: str) -> list[str]:
        return ['bounds = "private"'] if private_bounds else list(blanks)

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    for column in KINDS:
        lines = column._template(kind, bounds)
        if lines is not None:
            return lines
    return [f'# type = ""  # not in the file: {", ".join(COLUMN_TYPES)}; or drop it']


def _key(name: str) -> str:
    """The name as TOML writes a key."""
    import tomli_w

    return tomli_w.dumps({name: 0}).rpartition(" = ")[0]
