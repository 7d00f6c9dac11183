"""Conditions on rows as options: `--where "age=30..40"` and `--balance "kind=a:0.2,b:0.8"`.

Forms take the same texts; `what` is how errors call the option or the field.

`--where` takes what the conditions of a question take (`release.answers.where`): NAME=VALUE, NAME=LOW..HIGH,
NAME=A,B,C, NAME=null, comparisons, and several of them joined by `and`. `--balance` takes

    NAME=SHARE          a column of two values: the share of the second (of true)
    NAME=A:SHARE,B:...  a share for each value; values left out get none

The schema decides how a string is read. A column name may contain an equals sign: the longest column name that the
string begins with is taken. The library interprets the values.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import Any

from spinney.columns import Column
from spinney.errors import ParameterError
from spinney.privacy.budget import parse_fraction
from spinney.release.answers.where import parse_conditions
from spinney.schema.table import Schema
from spinney.suggest import did_you_mean


def parse_where(texts: Iterable[str], schema: Schema, *, what: str = "--where") -> dict[str, Any]:
    """Texts such as "age=30..40" as the `where` of a forest's `sample`."""
    wanted: dict[str, Any] = {}
    for text in texts:
        for name, value in parse_conditions(text, schema, what=what).items():
            if name in wanted:
                raise ParameterError(f"{what} names column {name!r} twice; put all its conditions into one option")
            wanted[name] = value
    return wanted


def parse_balance(texts: Iterable[str], schema: Schema, *, what: str = "--balance") -> dict[str, Any]:
    """Texts such as "kind=a:0.2,b:0.8" as the `balance` of a forest's `sample`."""
    return {name: _shares(name, schema[name], text, what) for name, text in _by_column(texts, schema, what)}


def csv_fields(text: str) -> list[str]:
    """The fields of a line of CSV."""
    try:
        return next(csv.reader([text], skipinitialspace=True))
    except csv.Error:
        raise ParameterError(
            f"{text!r} is not a list of values separated by commas; put values with commas or quotes in double quotes"
        ) from None


def _by_column(texts: Iterable[str], schema: Schema, option: str) -> list[tuple[str, str]]:
    """Texts split into a column's name and the shares that are wanted of it."""
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


def _shares(name: str, column: Column, text: str, option: str) -> Any:
    """A share, or a share for each value."""
    if ":" not in text:
        return parse_fraction(text, f"{option} {name}")
    shares: dict[Any, Any] = {}
    for part in csv_fields(text):
        value, colon, share = part.rpartition(":")
        if not colon:
            raise ParameterError(f"{option}: {part!r} of column {name!r} has no share; write VALUE:SHARE for each")
        key = column.from_option(value, name=name, option=option)
        if key in shares:
            raise ParameterError(f"{option} gives {value!r} of column {name!r} two shares; give one")
        shares[key] = parse_fraction(share, f"{option} {name}, {value}")
    return shares
