"""Texts of a CSV as values, one by one.

A CSV reader that falls back to another type for a whole column lets the spelling of one row change how all the
others are read: a single "5.0" would round everybody's large integers. A row's cell must depend on that row
alone. So columns whose values have more than one spelling are read as text and parsed here, the plain spellings
by arrow, the rest in Python, each distinct text once. A decimal mark or a format of dates is stated for the whole
column beforehand.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from spinney.columns.base import Column
from spinney.columns.objects import convert_objects
from spinney.columns.spelling import Spelling
from spinney.errors import InputError, raise_alone

MISSING = tuple(pacsv.ConvertOptions().null_values)
TRUE, FALSE = pacsv.ConvertOptions().true_values, pacsv.ConvertOptions().false_values
NEVER = r"$^."
_WHOLE = r"^-?[0-9]{1,18}$"
_FIXED_WIDTH = {"Y": "([0-9]{4})", "m": "([0-9]{2})", "d": "([0-9]{2})"} | dict.fromkeys("HMS", "([0-9]{2})")


def without_missing(texts: Any, column: Column) -> Any:
    """The spellings of "missing" as nulls, except those that the schema lists as values or a text must not lack."""
    array = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    if column.is_text and not column.nullable:
        return array
    missing = [spelling for spelling in MISSING if spelling not in column.listed]
    return pc.if_else(among(array, missing), pa.scalar(None, pa.string()), array)


def among(strings: Any, spellings: list[str]) -> Any:
    """Which strings are spelt in one of these ways."""
    return pc.is_in(strings, value_set=pa.array(spellings, pa.string()))


def whole_texts(texts: Any, column: Column, spelling: Spelling) -> Any:
    """Whole numbers in any spelling: "5", " 5", "3.0"."""

    def parse(text: str) -> Decimal:
        if spelling.decimal == ",":
            text = text.replace(".", "?").replace(",", ".")
        return Decimal(text)

    array = without_missing(texts, column)
    is_plain = pc.fill_null(pc.match_substring_regex(array, _WHOLE), True)
    return parse_each(array, column, is_plain, _where(is_plain, array).cast(column.arrow_type), parse)


def dated_texts(texts: Any, column: Column, spelling: Spelling, pattern: str, *, n_characters: int | None) -> Any:
    """Days and moments, in ISO 8601 or the format that was stated. Arrow parses what has the pattern by itself.

    `n_characters` is how much of an ISO moment is meant.
    """
    date_format = spelling.date_format

    def parse(text: str) -> datetime:
        return datetime.fromisoformat(text) if date_format is None else datetime.strptime(text, date_format)

    array = plain = without_missing(texts, column)
    if date_format is not None:
        own, order = _fixed_spelling(date_format)
        is_own = pc.match_substring_regex(array, own)
        plain = pc.if_else(is_own, pc.replace_substring_regex(array, own, order), pa.scalar(None, pa.string()))
        if n_characters is not None:
            plain = pc.utf8_slice_codeunits(plain, 0, n_characters)
        is_plain = pc.fill_null(pc.match_substring_regex(plain, pattern), False)
        is_plain = pc.or_(is_plain, array.is_null())
    else:
        is_plain = pc.fill_null(pc.match_substring_regex(array, pattern), True)
    return parse_each(array, column, is_plain, _where(is_plain, plain).cast(column.arrow_type), parse)


def _where(is_plain: Any, array: Any) -> Any:
    """Strings where they are plain, null elsewhere."""
    return pc.if_else(is_plain, array, pa.scalar(None, pa.string()))


def parse_each(array: Any, column: Column, is_plain: Any, values: Any, parse: Callable[[str], Any]) -> Any:
    """Values of the column's type: what arrow made of the plain spellings, the others by `parse`, each text once."""
    if pc.all(is_plain).as_py() or not len(array):
        return values
    is_other = pc.invert(is_plain)
    others = array.filter(is_other)
    distinct = others.unique()
    parsed = [_parsed(text, parse) for text in distinct.to_pylist()]
    parsed = convert_objects(parsed, column).cast(column.arrow_type)
    return pc.replace_with_mask(values, is_other, parsed.take(pc.index_in(others, value_set=distinct)))


def _parsed(text: str, parse: Callable[[str], Any]) -> Any:
    """Any other spelling of a whole number, a day or a moment: " 5", "3.0", "2020-01-31T12:00+01:00"."""
    try:
        return parse(text.strip())
    except (ValueError, InvalidOperation):
        raise_alone(InputError("some value has an unknown spelling"))


def _fixed_spelling(date_format: str) -> tuple[str, str]:
    """A pattern for texts in a format that has all digits in their places, and how to write them as ISO 8601.

    Formats that have more to them, and texts such as 1/2/2024, are left to Python.
    """
    parts = re.split(r"%(.)", date_format)
    literals, directives = parts[::2], parts[1::2]
    if sorted(directives) not in (sorted("Ymd"), sorted("YmdHM"), sorted("YmdHMS")):
        return NEVER, ""
    pattern = literals[0] and re.escape(literals[0])
    for directive, literal in zip(directives, literals[1:], strict=True):
        pattern += _FIXED_WIDTH[directive] + re.escape(literal)
    group = {directive: f"\\{index}" for index, directive in enumerate(directives, start=1)}
    clock = f"{group.get('H', '00')}:{group.get('M', '00')}:{group.get('S', '00')}"
    return f"^{pattern}$", f"{group['Y']}-{group['m']}-{group['d']}T{clock}"
