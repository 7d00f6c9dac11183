"""Metadata of the Synthetic Data Vault (SDV): what it says of a table as a schema, and the other way round.

SDV's metadata names a semantic type for each column (`sdtype`) and little else: bounds and categories are
learnt from the data. Here both are public statements, so whoever imports metadata makes them, and nothing is
learnt. Three forms are read: SINGLE_TABLE_V1, MULTI_TABLE_V1 and V1, of which the last two hold tables by name.
V1 is written.

    reading    metadata to a schema; what is missing is listed in one error
    writing    a schema to metadata
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from numbers import Integral
from typing import Any

from spinney.columns import Boolean, Category, Column, Date, Datetime, Identifier, Integer, Real
from spinney.errors import SchemaError, redacted
from spinney.files import read_json
from spinney.schema.plain import check_plain, read_schema_text
from spinney.schema.schema import Schema
from spinney.text import brief, closest, did_you_mean, listed

_VERSIONS = ("SINGLE_TABLE_V1", "MULTI_TABLE_V1", "V1")
_LONGEST_SDTYPE = 50
_TOGETHER = (
    "several rows belong to one entity, and Spinney protects each row by itself. "
    "Where rows are independent of each other"
)
_OF_A_DAY = frozenset("YymbBdjxcDFGuUVWaA")
_OF_A_TIME = frozenset("HIMSfpXcTRr")
_OF_A_ZONE = frozenset("zZ")
# Prefix and number of digits of the patterns that Spinney's identifiers have.
_NUMBERED = re.compile(r"((?:[\w \-/:#@]|\\[^\w])*)(?:\[0-9\]|\\d)\{(\d{1,2})\}")
_SORTED: dict[str, Callable[[Any], Any]] = {"alphabetical": str, "numerical_value": float}
_DAY, _DATETIME = "%Y-%m-%d", "%Y-%m-%dT%H:%M:%S.%f"


def schema_from_sdv(
    metadata: Any,
    *,
    table: str | None,
    bounds: Mapping[str, tuple[Any, Any]],
    values: Mapping[str, Iterable[Any]],
    nullable: Iterable[str],
    columns: Mapping[str, Column],
    private_bounds: bool,
) -> Schema:
    """See `Schema.from_sdv`."""
    for argument, mapping in {"bounds": bounds, "values": values, "columns": columns}.items():
        if not isinstance(mapping, Mapping):
            raise SchemaError(f"{argument} is a {type(mapping).__name__}, not a dictionary by column names")
    described = _columns_of(_plain(metadata), table)
    stated = _Stated(dict(bounds), dict(values), _names(nullable), private_bounds)
    given = {"bounds": bounds, "values": values, "nullable": stated.nullable, "columns": columns}
    for argument, names in given.items():
        for name in names:
            if name not in described:
                raise SchemaError(
                    f"{argument} names column {name!r}, which is not in the metadata{did_you_mean(name, described)}"
                )
            if argument != "columns" and name in columns:
                raise SchemaError(f"column {name!r} is in columns and in {argument}; say all in columns")
    found = {
        name: columns[name] if name in columns else _column(name, entry, stated) for name, entry in described.items()
    }
    stated.refuse_missing()
    return Schema({name: column for name, column in found.items() if column is not None})


def schema_to_sdv(schema: Schema, table: str) -> dict[str, Any]:
    """See `Schema.to_sdv`."""
    if not isinstance(table, str) or not table:
        raise SchemaError(f"table={brief(table)} is not the name of a table")
    columns = {name: _entry(name, column) for name, column in schema._without_ignored().items()}
    return {"METADATA_SPEC_VERSION": "V1", "tables": {table: {"columns": columns}}, "relationships": []}


# -------------------------------------------------------------------------------------------------------------- reading


def _plain(metadata: Any) -> Mapping[str, Any]:
    """The dictionary of metadata, which may be in a file or in an object of SDV's."""
    if isinstance(metadata, (str, os.PathLike)):
        try:
            metadata = read_json(read_schema_text(os.fspath(metadata)).encode())
        except ValueError as err:
            if isinstance(err, SchemaError):
                raise
            raise SchemaError(f"the metadata is not JSON: {err}") from None
    elif not isinstance(metadata, Mapping) and callable(getattr(metadata, "to_dict", None)):
        with redacted(lambda err: SchemaError(f"the metadata cannot be read: its to_dict raised {type(err).__name__}")):
            metadata = metadata.to_dict()
    if not isinstance(metadata, Mapping):
        raise SchemaError(
            f"metadata is a {type(metadata).__name__}, not SDV's metadata; pass its dictionary, or the path of its file"
        )
    check_plain(dict(metadata))
    version = metadata.get("METADATA_SPEC_VERSION")
    if version is not None and version not in _VERSIONS:
        raise SchemaError(
            f"the metadata is of METADATA_SPEC_VERSION {brief(version)}, and {listed(_VERSIONS)} are read; save it "
            "with a release of SDV that writes one of them"
        )
    return metadata


def _columns_of(metadata: Mapping[str, Any], table: str | None) -> Mapping[str, Any]:
    """The entries of one table's columns."""
    if table is not None and not isinstance(table, str):
        raise SchemaError(f"table={brief(table)} is not the name of a table")
    if isinstance(tables := metadata.get("tables"), Mapping):
        if table is None and len(tables) != 1:
            raise SchemaError(f"the metadata describes {len(tables)} tables, {listed(tables)}; say which: table=...")
        name = next(iter(tables)) if table is None else table
        if name not in tables:
            raise SchemaError(f"table={brief(name)} is not in the metadata{did_you_mean(name, tables)}")
        _refuse_child(name, metadata.get("relationships"))
        metadata = tables[name]
    elif table is not None:
        raise SchemaError("the metadata describes one table without a name; leave table out")
    entries = metadata.get("columns") if isinstance(metadata, Mapping) else None
    if not isinstance(entries, Mapping) or not entries:
        raise SchemaError("the metadata has no columns; pass what SDV's Metadata.save_to_json writes")
    for key in ("sequence_key", "sequence_index"):
        if metadata.get(key):
            raise SchemaError(f"the metadata has a {key}: {_TOGETHER}, take {key} out of the metadata")
    return entries


def _refuse_child(table: str, relationships: Any) -> None:
    """Raise where rows of a table belong to a row of another one, or of the same."""
    if relationships is None:
        return
    if not isinstance(relationships, (list, tuple)) or not all(isinstance(each, Mapping) for each in relationships):
        raise SchemaError("the metadata's relationships are not a list of dictionaries, as SDV writes them")
    if any(each.get("child_table_name") == table for each in relationships):
        raise SchemaError(
            f"the metadata has relationships of which table {table!r} is a child: {_TOGETHER}, take these "
            "relationships out of the metadata"
        )


def _names(nullable: Any) -> frozenset[str]:
    names = None if isinstance(nullable, (str, bytes)) or not isinstance(nullable, Iterable) else list(nullable)
    if names is None or not all(isinstance(name, str) for name in names):
        raise SchemaError(f"nullable={brief(nullable)} is not a list of column names such as ['income']")
    return frozenset(names)


@dataclass(frozen=True, slots=True)
class _Stated:
    """What was stated beside the metadata, and what turned out to be missing."""

    bounds: dict[str, Any]
    values: dict[str, Any]
    nullable: frozenset[str]
    private_bounds: bool
    missing: dict[str, list[str]] = field(default_factory=lambda: {"bounds": [], "values": [], "columns": []})
    unclear: list[str] = field(default_factory=list)

    def refuse_missing(self) -> None:
        """Raise a SchemaError that lists all that is missing, with what to type."""
        blanks = {"bounds": "(low, high)", "values": "[...]", "columns": "sp...."}
        parts = [
            f"{argument}={{{', '.join(f'{name!r}: {blanks[argument]}' for name in names)}}}"
            for argument, names in self.missing.items()
            if names
        ]
        if parts:
            private = "; private_bounds=True estimates bounds privately instead" if self.missing["bounds"] else ""
            reasons = f" ({'; '.join(self.unclear)})" if self.unclear else ""
            raise SchemaError(
                "SDV's metadata does not say bounds and categories, and Spinney does not learn them from the data; "
                f"state what is publicly known: {', '.join(parts)}{private}{reasons}"
            )

    def lacks(self, argument: str, name: str, why: str | None = None) -> None:
        """Note that something has to be stated of a column."""
        self.missing[argument].append(name)
        if why is not None:
            self.unclear.append(f"column {name!r} {why}")

    def refuse(self, argument: str, name: str, sdtype: str) -> None:
        """Raise where something was stated of a column that has no such thing."""
        if name in getattr(self, argument):
            raise SchemaError(f"{argument} names column {name!r}, which is {sdtype} in the metadata; leave it out")


def _column(name: str, entry: Any, stated: _Stated) -> Column | None:
    """The column of one entry; None where something is missing, which is noted."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("sdtype"), str):
        raise SchemaError(f"column {name!r}: the metadata gives it no sdtype")
    sdtype = entry["sdtype"]
    if len(sdtype) > _LONGEST_SDTYPE or not sdtype.isprintable():
        raise SchemaError(f"column {name!r}: its sdtype is not a name of up to {_LONGEST_SDTYPE} printable characters")
    try:
        if sdtype in _READ:
            return _READ[sdtype](name, entry, stated)
        return _semantic(name, entry, stated)
    except SchemaError as err:
        said = str(err)
        raise SchemaError(said if f"column {name!r}" in said else f"column {name!r}: {said}") from err


def _bounded(kind: Callable[..., Column], name: str, stated: _Stated, **options: Any) -> Column | None:
    nullable = name in stated.nullable
    if name in stated.bounds:
        low, high = _pair(stated.bounds[name])
        return kind(low, high, nullable=nullable, **options)
    if stated.private_bounds:
        return kind(bounds="private", nullable=nullable, **options)
    stated.lacks("bounds", name)
    return None


def _pair(bounds: Any) -> tuple[Any, Any]:
    if isinstance(bounds, (str, bytes)) or not isinstance(bounds, Iterable) or len(ends := tuple(bounds)) != 2:
        raise SchemaError("its bounds are not a pair (low, high)")
    return ends[0], ends[1]


def _numerical(name: str, entry: Mapping[str, Any], stated: _Stated) -> Column | None:
    stated.refuse("values", name, "numerical")
    held = entry.get("computer_representation")
    if held is None and name in stated.bounds:
        whole = all(isinstance(end, Integral) for end in _pair(stated.bounds[name]))
        return _bounded(Integer if whole else Real, name, stated)
    if held is None and stated.private_bounds:
        stated.lacks("columns", name, "may hold whole numbers or others; say sp.Integer(...) or sp.Real(...)")
        return None
    return _bounded(Integer if "Int" in str(held) else Real, name, stated)


def _datetime(name: str, entry: Mapping[str, Any], stated: _Stated) -> Column | None:
    stated.refuse("values", name, "datetime")
    written = entry.get("datetime_format")
    if written is None:
        ends = _pair(stated.bounds[name]) if name in stated.bounds else ()
        return _bounded(Date if ends and all(map(_is_day, ends)) else Datetime, name, stated)
    marks = set(re.findall(r"%-?([A-Za-z])", str(written)))
    if not marks & _OF_A_DAY:
        raise SchemaError("its datetime_format holds no date; state the column yourself in columns=..., or drop it")
    if marks & _OF_A_ZONE:
        return _bounded(Datetime, name, stated, timezone="UTC")
    return _bounded(Datetime if marks & _OF_A_TIME else Date, name, stated)


def _is_day(value: Any) -> bool:
    """Whether a bound is a day without a time."""
    if isinstance(value, str):
        return re.fullmatch(r"\d{4}-\d\d-\d\d", value) is not None
    return isinstance(value, date) and not isinstance(value, datetime)


def _categorical(name: str, entry: Mapping[str, Any], stated: _Stated) -> Column | None:
    stated.refuse("bounds", name, "categorical")
    order = entry.get("order")
    values: Any = stated.values.get(name, order)
    if values is None:
        stated.lacks("values", name)
        return None
    key = _SORTED.get(str(entry.get("order_by")))
    try:
        if key is not None and order is None and not isinstance(values, str):
            values = sorted(values, key=key)
    except (TypeError, ValueError):
        raise SchemaError(f"its values cannot be put in the order {entry['order_by']!r}") from None
    return Category(values, nullable=name in stated.nullable)


def _boolean(name: str, entry: Mapping[str, Any], stated: _Stated) -> Column:  # noqa: ARG001 - as all readers
    for argument in ("bounds", "values"):
        stated.refuse(argument, name, "boolean")
    return Boolean(nullable=name in stated.nullable)


def _identifier(name: str, entry: Mapping[str, Any], stated: _Stated) -> Column:
    for argument in ("bounds", "values", "nullable"):
        stated.refuse(argument, name, "an id")
    numbered = _NUMBERED.fullmatch(str(entry.get("regex_format") or ""))
    if numbered is None or not 1 <= int(numbered[2]) <= 18:
        return Identifier()
    return Identifier(prefix=re.sub(r"\\(.)", r"\1", numbered[1]), digits=int(numbered[2]))


def _semantic(name: str, entry: Mapping[str, Any], stated: _Stated) -> Column | None:
    """A column that SDV knows by its meaning: a city, an e-mail address, or unknown."""
    sdtype = entry["sdtype"]
    if name in stated.values:
        return Category(stated.values[name], nullable=name in stated.nullable)
    if name in stated.bounds:
        return _numerical(name, {}, stated)
    if sdtype == "unknown":
        stated.lacks("columns", name, "is unknown; say what it is, or sp.Identifier() to make it afresh")
        return None
    if entry.get("pii") is False:
        stated.lacks("values", name)
        return None
    if meant := closest(sdtype, _READ):
        raise SchemaError(f"column {name!r}: sdtype {brief(sdtype)} is not one of SDV's; did you mean {meant!r}?")
    stated.refuse("nullable", name, f"{sdtype}, which becomes an identifier")
    return Identifier(prefix=f"{sdtype}-")


_READ = {
    "numerical": _numerical,
    "datetime": _datetime,
    "categorical": _categorical,
    "boolean": _boolean,
    "id": _identifier,
}


# -------------------------------------------------------------------------------------------------------------- writing


def _entry(name: str, column: Column) -> dict[str, Any]:
    """What SDV's metadata says of a column."""
    if isinstance(column, Integer):
        return {"sdtype": "numerical", "computer_representation": "Int64"}
    if isinstance(column, Real):
        return {"sdtype": "numerical", "computer_representation": "Float"}
    if isinstance(column, Boolean):
        return {"sdtype": "boolean"}
    if isinstance(column, Category):
        return {"sdtype": "categorical", "order": list(column.listed)}
    if isinstance(column, Date):
        return {"sdtype": "datetime", "datetime_format": _DAY}
    if isinstance(column, Datetime):
        return {"sdtype": "datetime", "datetime_format": _DATETIME + ("" if column.timezone is None else "%z")}
    if isinstance(column, Identifier):
        if column.prefix is None:
            return {"sdtype": "id"}
        return {"sdtype": "id", "regex_format": f"{re.escape(column.prefix)}[0-9]{{{column.digits}}}"}
    raise SchemaError(
        f"column {name!r} is of type {column.type_name}, for which SDV's metadata has no sdtype; leave the column out"
    )
