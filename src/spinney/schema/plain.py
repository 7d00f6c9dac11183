"""Schema files as plain data: TOML that is read with care, whoever wrote it, and the columns that it describes.

entries                    what all tables of a schema file have in common: a type, options, errors that say where
columns from plain data    one [columns.NAME] table of a schema file, or what `to_dict` gave
TOML                       text to tables, refused where it is of absurd depth or size
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from datetime import date, time
from pathlib import Path
from typing import Any, TypeVar

from spinney.columns import COLUMN_TYPES, Column, Identifier
from spinney.columns.base import check_characters
from spinney.errors import SchemaError
from spinney.text import brief, did_you_mean

T = TypeVar("T")

# -------------------------------------------------------------------------------------------------------------- entries


@contextmanager
def at(about: str) -> Iterator[None]:
    """Errors about what is stated inside begin with the entry that states it."""
    try:
        yield
    except SchemaError as err:
        raise SchemaError(f"{about}: {err}") from err


def check_options(
    given: Iterable[str], known: Collection[str], about: str, owner: str, *, otherwise: Mapping[str, str] | None = None
) -> None:
    """Raise a SchemaError for an option that an entry does not take.

    `owner` is whose options they are, and `otherwise` has other words for them.
    """
    for name in sorted(set(given) - set(known)):
        hint = did_you_mean((otherwise or {}).get(name, name), known)
        raise SchemaError(f"{about}: {name!r} is not an option of {owner}; it takes {', '.join(known)}{hint}")


def entries_of(described: Mapping[str, Any], kind: str) -> list[Any]:
    """What stands under [[rules]], [[places]] or [[links]]; a SchemaError where that is no list."""
    entries = described.get(f"{kind}s", [])
    if not isinstance(entries, list):
        raise SchemaError(f"{kind}s is not a list of tables; write each {kind} as a table under [[{kind}s]]")
    return entries


def all_of(kind: type[T], given: Any, name: str, what: str, example: str) -> tuple[T, ...]:
    """What was listed as an option of this name, or a SchemaError where it is no list, or holds something else."""
    if isinstance(given, (str, Mapping, kind)) or not isinstance(given, Iterable):
        raise SchemaError(f"{name}={brief(given)} is not a list of {what}s such as [{example}]")
    listed = tuple(given)
    for each in listed:
        if not isinstance(each, kind):
            raise SchemaError(f"{name}: {brief(each)} is not a {what} such as {example}")
    return listed


def typed(entry: Any, kinds: Mapping[str, T], about: str, example: str) -> tuple[T, dict[str, Any]]:
    """The kind that an entry names as its type, and its options."""
    if not isinstance(entry, Mapping) or "type" not in entry:
        raise SchemaError(f'{about}: the entry needs a type, for example type = "{example}"')
    options = dict(entry)
    kind = kinds.get(str(options.pop("type")))
    if kind is None:
        hint = did_you_mean(entry["type"], kinds)
        raise SchemaError(f"{about}: type {brief(entry['type'])} is not one of {', '.join(sorted(kinds))}{hint}")
    return kind, options


# ---------------------------------------------------------------------------------------------- columns from plain data
# Columns from plain data: one [columns.NAME] table of a schema file, or what `to_dict` of a column gave.


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
    kind, options = typed(entry, COLUMN_TYPES, f"column {name!r}", "real")
    known = sorted(field.name for field in fields(kind) if field.init)
    check_options(options, known, f"column {name!r}", f"type {kind.type_name!r}")
    if isinstance(path := options.get("values_from"), str):
        if folder is None:
            raise SchemaError(
                f"column {name!r}: values_from names a file, which only a schema file may; list the values"
            )
        options["values_from"] = os.path.join(folder, path) if path else path
    with at(f"column {name!r}"):
        return kind(**options)


# ----------------------------------------------------------------------------------------------------------------- TOML
# A schema is a few tables of short entries. Numbers of thousands of digits, keys of thousands of parts and
# brackets without end are refused here, with the line where it is known, before anything is made of them.


LARGEST_FILE = 2**24
_DEEPEST = 32
_MOST_BITS = 1024  # floats end there
_LONGEST_NAME = 4096
_LONGEST_TEXT = 2**20
_MOST_KEY_PARTS = 64

_KEY = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_-]){_KEY}(?:[ \t]*+\.[ \t]*+{_KEY}){{{_MOST_KEY_PARTS},}}")
_LONG_NUMBER = re.compile(r"(?<![0-9_])[0-9](?:_?[0-9]){999}")


def read_schema_text(path: str | Path) -> str:
    """The text of a schema file; a mark of byte order at its start is left out."""
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):  # it might never end, and is not opened
            raise SchemaError(f"cannot read the schema {str(path)!r}: it is not a file; save the schema in one")
        with Path(path).open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except SchemaError:
        raise
    except (OSError, ValueError) as err:  # ValueError: of names that no file can have
        why = err.strerror if isinstance(err, OSError) and err.strerror else "no file can have that name"
        raise SchemaError(f"cannot read the schema {str(path)!r}: {why}") from err
    if len(content) > LARGEST_FILE:
        raise SchemaError(
            f"the schema {str(path)!r} is larger than {LARGEST_FILE >> 20} MiB, which is too large for a schema"
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SchemaError(f"the schema {str(path)!r} is not a UTF-8 text file") from None


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text; a SchemaError says what is wrong with it, and where if that is known."""
    long_key = _LONG_KEY.search(text)
    if long_key is not None:
        raise SchemaError(
            f"line {_line(text, long_key)} of the schema has a key of more than {_MOST_KEY_PARTS} parts; "
            "columns are written as [columns.NAME]"
        )
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as err:
        raise SchemaError(f"the schema is not valid TOML: {err}") from err
    except RecursionError:
        raise SchemaError("the schema is nested too deeply: it has only tables of columns and of rules") from None
    except ValueError:  # of a number that Python will not read
        found = _LONG_NUMBER.search(text)
        where = "a number" if found is None else f"the number in line {_line(text, found)}"
        raise SchemaError(f"{where} of the schema has thousands of digits; round it, or use fewer") from None


def check_plain(described: Any) -> None:
    """Raise a SchemaError where data are nested deeply, or hold numbers or texts of absurd size; it says where."""
    waiting: list[tuple[Any, tuple[str, ...]]] = [(described, ())]
    while waiting:
        value, trail = waiting.pop()
        if isinstance(value, (dict, list)):
            if len(trail) >= _DEEPEST:
                raise SchemaError("the schema is nested too deeply: it has only tables of columns and of rules")
            if isinstance(value, dict):
                for name in value:
                    _check_name(name)
                waiting += [(item, (*trail, name)) for name, item in value.items()]
            else:
                # A list may name hundreds of thousands of categories: their texts are looked at together.
                _check_texts([item for item in value if isinstance(item, str)])
                waiting += [(item, (*trail, "")) for item in value if not isinstance(item, str)]
        elif isinstance(value, str):
            _check_texts([value])
        elif isinstance(value, int) and value.bit_length() > _MOST_BITS:
            place = ".".join(name for name in trail if name)
            raise SchemaError(f"{place or 'the schema'} holds {brief(value)}; numbers of use have a few digits")


def jsonable(value: Any) -> Any:
    """Plain data with dates and times as ISO strings."""
    if isinstance(value, dict):
        return {key: jsonable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [jsonable(item) for item in value]
    return value.isoformat() if isinstance(value, (date, time)) else value


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or len(name) > _LONGEST_NAME:
        raise SchemaError(f"{brief(name)} is not a name of at most {_LONGEST_NAME} characters")
    _check_texts([name])


def _check_texts(texts: list[str]) -> None:
    longest = max(map(len, texts), default=0)
    if longest > _LONGEST_TEXT:
        raise SchemaError(f"the schema holds a string of {longest:,} characters; shorten it")
    check_characters(texts)


def _line(text: str, found: re.Match[str]) -> int:
    return text.count("\n", 0, found.start()) + 1
