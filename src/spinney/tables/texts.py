"""Texts of a CSV as values, one by one.

A CSV reader that falls back to another type for a whole column lets the spelling of one row change how all the
others are read: a single "5.0" would round everybody's large integers. A row's cell must depend on that row
alone. So columns whose values have more than one spelling are read as text and parsed here, the plain spellings
by arrow, the rest in Python, each distinct text once. A decimal mark or a format of dates is stated for the whole
column beforehand.
"""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from spinney.columns import Category, Column, Date, Datetime
from spinney.errors import InputError, raise_alone
from spinney.tables.objects import convert_objects

MISSING = tuple(pacsv.ConvertOptions().null_values)
_WHOLE = r"^-?[0-9]{1,18}$"
_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_LOCAL_MOMENT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$"
_NEVER = r"$^."
_FIXED_WIDTH = {"Y": "([0-9]{4})", "m": "([0-9]{2})", "d": "([0-9]{2})"} | dict.fromkeys("HMS", "([0-9]{2})")


def parse_texts(texts: Any, column: Column, *, decimal: str = ".", date_format: str | None = None) -> Any:
    """A column of texts as arrow values of the column's type; what spells "missing" is null."""
    array = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    array = _without_missing(array, column)
    if column.is_text:
        return array
    pattern, kind = _plain_spelling(column)
    plain = array
    if date_format is not None and isinstance(column, (Date, Datetime)):
        own, order = _fixed_spelling(date_format)
        is_own = pc.match_substring_regex(array, own)
        plain = pc.if_else(is_own, pc.replace_substring_regex(array, own, order), pa.scalar(None, pa.string()))
        if isinstance(column, Date):
            plain = pc.utf8_slice_codeunits(plain, 0, 10)
        is_plain = pc.fill_null(pc.match_substring_regex(plain, pattern), False)
        is_plain = pc.or_(is_plain, array.is_null())
    else:
        is_plain = pc.fill_null(pc.match_substring_regex(array, pattern), True)
    values = pc.if_else(is_plain, plain, pa.scalar(None, pa.string())).cast(kind)
    if pc.all(is_plain).as_py() or not len(array):
        return values
    is_other = pc.invert(is_plain)
    others = array.filter(is_other)
    distinct = others.unique()
    parsed = [_parse(text, column, decimal, date_format) for text in distinct.to_pylist()]
    parsed = convert_objects(parsed, column).cast(kind)
    return pc.replace_with_mask(values, is_other, parsed.take(pc.index_in(others, value_set=distinct)))


def _without_missing(array: Any, column: Column) -> Any:
    """The spellings of "missing" as nulls, except those that the schema lists as values or a text must not lack."""
    if column.is_text and not column.nullable:
        return array
    listed = column.values if isinstance(column, Category) else ()
    missing = pa.array([spelling for spelling in MISSING if spelling not in listed], type=pa.string())
    return pc.if_else(pc.is_in(array, value_set=missing), pa.scalar(None, pa.string()), array)


def spelt_type(column: Column) -> pa.DataType:
    """The type that `parse_texts` gives."""
    return pa.string() if column.is_text else _plain_spelling(column)[1]


def _plain_spelling(column: Column) -> tuple[str, pa.DataType]:
    """What arrow parses by itself, each value alone, and the type that comes out."""
    if isinstance(column, Date):
        return _DAY, pa.date32()
    if isinstance(column, Datetime):
        return (_LOCAL_MOMENT if column.timezone is None else _NEVER), pa.timestamp("us", column.timezone)
    return _WHOLE, pa.int64()


def _fixed_spelling(date_format: str) -> tuple[str, str]:
    """A pattern for texts in a format that has all digits in their places, and how to write them as ISO 8601.

    Formats that have more to them, and texts such as 1/2/2024, are left to Python.
    """
    parts = re.split(r"%(.)", date_format)
    literals, directives = parts[::2], parts[1::2]
    if sorted(directives) not in (sorted("Ymd"), sorted("YmdHM"), sorted("YmdHMS")):
        return _NEVER, ""
    pattern = literals[0] and re.escape(literals[0])
    for directive, literal in zip(directives, literals[1:], strict=True):
        pattern += _FIXED_WIDTH[directive] + re.escape(literal)
    group = {directive: f"\\{index}" for index, directive in enumerate(directives, start=1)}
    clock = f"{group.get('H', '00')}:{group.get('M', '00')}:{group.get('S', '00')}"
    return f"^{pattern}$", f"{group['Y']}-{group['m']}-{group['d']}T{clock}"


def _parse(text: str, column: Column, decimal: str, date_format: str | None) -> Any:
    """Any other spelling of a whole number, a day or a moment: " 5", "3.0", "2020-01-31T12:00+01:00"."""
    text = text.strip()
    try:
        if isinstance(column, (Date, Datetime)):
            return datetime.fromisoformat(text) if date_format is None else datetime.strptime(text, date_format)
        if decimal == ",":
            text = text.replace(".", "?").replace(",", ".")
        return Decimal(text)
    except (ValueError, InvalidOperation):
        raise_alone(InputError("some value has an unknown spelling"))
