"""The schema template: what a table says about its columns, and blanks for what a person must state.

Names and types are all that is looked at; a CSV says no types, so there its values are. Blanks are lines that are
commented out, so an unfilled template is valid TOML and loading it names the first column whose bounds or values are
missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import pyarrow as pa

from spinney.columns import COLUMN_TYPES, KINDS
from spinney.columns.arrow import is_string
from spinney.dtypes import types_of
from spinney.errors import InputError
from spinney.schema.person_names import names_persons, suggested_keys, suggested_orders
from spinney.schema.place_names import suggested_places

_PREAMBLE = """\
# A Spinney schema. Names and types come from the table; you state the rest. The types of a CSV are guessed from its
# values, so check them against what is publicly known, for example whether "integer" or "real" is right.
#
# Lists of values and bounds are left blank on purpose. The smallest and largest value in the table, and which values
# occur, are facts about the people in it; bounds taken from the data would reveal them without any noise. State what
# is publicly known about each column: an age lies in 0..120, whoever is in the table. Generous bounds cost little, and
# values outside are moved to the nearest bound. If nothing is known, write `bounds = "private"` in place of low and
# high: fit then estimates the bounds privately, using part of epsilon. With [person], which is explained below, bounds
# have to be stated.
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
#     type = "sum"          # column is computed from its parts; they come in steps, such as multiple_of = 0.01
#     column = "total"
#     parts = ["fare", "tip", "tolls"]
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
        file_types = import_module("spinney.tables.typed").file_types
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
    return f"# By their names these columns are one place:\n# [[places]]\n# {line}\n"


def _entry(kind: Any, private_bounds: bool) -> list[str]:
    """The lines of one column, from its type in the file alone."""

    def bounds(*blanks: str) -> list[str]:
        return ['bounds = "private"'] if private_bounds else list(blanks)

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    for column in KINDS:
        lines = column.template(kind, bounds)
        if lines is not None:
            return lines
    return [f'# type = ""  # not in the file: {", ".join(COLUMN_TYPES)}; or drop it']


def _key(name: str) -> str:
    """The name as TOML writes a key."""
    import tomli_w

    return tomli_w.dumps({name: 0}).rpartition(" = ")[0]
