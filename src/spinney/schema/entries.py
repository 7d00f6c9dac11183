"""Columns from plain data: one [columns.NAME] table of a schema file, or what `to_dict` of a column gave."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from spinney.columns import COLUMN_TYPES, Column, Identifier
from spinney.errors import SchemaError
from spinney.shown import brief
from spinney.suggest import did_you_mean

# What is said of a column that is wrong, and is a key.
KEY_REMEDY = 'says whose row it is; write type = "identifier" and nothing else'


def column_from_dict(name: str, entry: Any, *, folder: str | Path | None = None, is_key: bool = False) -> Column:
    """The column that one [columns.NAME] table describes. Without a folder it may name no file.

    Of a key of persons, what is wrong with any type but identifier is no matter: that type is the remedy.
    """
    try:
        return _column(name, entry, folder)
    except SchemaError as err:
        if not is_key or (isinstance(entry, Mapping) and entry.get("type") == Identifier.type_name):
            raise
        raise SchemaError(f"column {name!r} {KEY_REMEDY}") from err


def _column(name: str, entry: Any, folder: str | Path | None) -> Column:
    if not isinstance(entry, Mapping) or "type" not in entry:
        raise SchemaError(f'column {name!r}: the entry needs a type, for example type = "real"')
    options = dict(entry)
    kind = COLUMN_TYPES.get(str(options.pop("type")))
    if kind is None:
        raise SchemaError(
            f"column {name!r}: type {brief(entry['type'])} is not one of {', '.join(sorted(COLUMN_TYPES))}"
            f"{did_you_mean(entry['type'], COLUMN_TYPES)}"
        )
    known = {field.name for field in fields(kind) if field.init}
    unknown = sorted(set(options) - known)
    if unknown:
        raise SchemaError(
            f"column {name!r}: {unknown[0]!r} is not an option of type {entry['type']!r}; "
            f"it takes {', '.join(sorted(known))}{did_you_mean(unknown[0], known)}"
        )
    if isinstance(path := options.get("values_from"), str):
        if folder is None:
            raise SchemaError(
                f"column {name!r}: values_from names a file, which only a schema file may; list the values"
            )
        options["values_from"] = os.path.join(folder, path) if path else path
    try:
        return kind(**options)
    except SchemaError as err:
        raise SchemaError(f"column {name!r}: {err}") from err
