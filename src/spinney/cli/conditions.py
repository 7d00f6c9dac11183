"""Conditions on rows as strings: `--where "age=30..40"` and `--balance "kind=a:0.2,b:0.8"`.

    NAME=VALUE          one value; a date or time in ISO form, a boolean as true or false, 1 or 0
    NAME=LOW..HIGH      a range of numbers, dates or times, both ends included; an end left out is the column's own
    NAME=A,B,C          any of several values; one that holds a comma is quoted, as in a CSV
    NAME=null           no value

    NAME=SHARE          a column of two values: the share of the second (of true)
    NAME=A:SHARE,B:...  a share for each value; values left out get none

The schema decides how a string is read. A string that the schema lists as a category is that category, even if it looks
like a range or a number. A column name may contain an equals sign: the longest column name that the string begins with
is taken. The library interprets the values.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import Any

from spinney.columns import Bounded, Column
from spinney.errors import ParameterError
from spinney.privacy.budget import parse_fraction
from spinney.schema.table import Schema
from spinney.suggest import did_you_mean

_NULL = "null"
_RANGE = ".."


def parse_where(texts: Iterable[str], schema: Schema) -> dict[str, Any]:
    """Texts such as "age=30..40" as the `where` of a forest's `sample`."""
    return {name: _wanted(name, schema[name], text) for name, text in _by_column(texts, "--where", schema)}


def parse_balance(texts: Iterable[str], schema: Schema) -> dict[str, Any]:
    """Texts such as "kind=a:0.2,b:0.8" as the `balance` of a forest's `sample`."""
    return {name: _shares(name, schema[name], text) for name, text in _by_column(texts, "--balance", schema)}


def csv_fields(text: str) -> list[str]:
    """The fields of a line of CSV."""
    try:
        return next(csv.reader([text], skipinitialspace=True))
    except csv.Error:
        raise ParameterError(
            f"{text!r} is not a list of values separated by commas; put values with commas or quotes in double quotes"
        ) from None


def _by_column(texts: Iterable[str], option: str, schema: Schema) -> list[tuple[str, str]]:
    """Texts split into a column's name and what is wanted of it."""
    found: dict[str, str] = {}
    for text in texts:
        if "=" not in text:
            raise ParameterError(f"{option} {text!r} has no equals sign; write NAME=VALUE, with the name of a column")
        names = [name for name in schema if text.startswith(f"{name}=")]
        if not names:
            wrong = text.partition("=")[0]
            raise ParameterError(
                f"{option} {text!r}: {wrong!r} is not a column of the release{did_you_mean(wrong, schema)}"
            )
        name = max(names, key=len)
        if not schema[name].is_read:
            raise ParameterError(
                f"{option} {text!r}: column {name!r} is an identifier; its values are generated and cannot be chosen"
            )
        if name in found:
            raise ParameterError(f"{option} names column {name!r} twice; put all its conditions into one option")
        found[name] = text.removeprefix(f"{name}=")
    return list(found.items())


def _wanted(name: str, column: Column, text: str) -> Any:
    """What a text asks of a column: a value, a (low, high) pair, a list, or None for null."""
    if column.axis_kind == "category" and text in map(str, column.listed):
        return column.from_option(text, name=name, option="--where")
    if not text.strip():
        raise ParameterError(f"--where: the condition on column {name!r} is empty; write {name}=VALUE, or {name}=null")
    if text == _NULL:
        return None
    if isinstance(column, Bounded) and _RANGE in text:
        low, _, high = (part.strip() for part in text.partition(_RANGE))
        return (
            column.from_option(low, name=name, option="--where") if low else column.low,
            column.from_option(high, name=name, option="--where") if high else column.high,
        )
    values = [column.from_option(part, name=name, option="--where") for part in csv_fields(text)]
    return values[0] if len(values) == 1 else values


def _shares(name: str, column: Column, text: str) -> Any:
    """A share, or a share for each value."""
    if ":" not in text:
        return parse_fraction(text, f"--balance {name}")
    shares: dict[Any, Any] = {}
    for part in csv_fields(text):
        value, colon, share = part.rpartition(":")
        if not colon:
            raise ParameterError(f"--balance: {part!r} of column {name!r} has no share; write VALUE:SHARE for each")
        key = column.from_option(value, name=name, option="--balance")
        if key in shares:
            raise ParameterError(f"--balance gives {value!r} of column {name!r} two shares; give one")
        shares[key] = parse_fraction(share, f"--balance {name}, {value}")
    return shares
