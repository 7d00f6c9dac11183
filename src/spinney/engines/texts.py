"""Texts of a CSV as values, one by one.

A CSV reader that falls back to another type for a whole column lets the spelling of one row change how all the
others are read: a single "5.0" would round everybody's large integers. A row's cell must depend on that row
alone. So columns whose values have more than one spelling are read as text and parsed here, the plain spellings
by arrow, the rest in Python.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from spinney.engines.objects import convert_objects
from spinney.errors import InputError
from spinney.schema.columns import Category, Column, Date, Datetime

_MISSING = tuple(pacsv.ConvertOptions().null_values)
_WHOLE = r"^-?[0-9]{1,18}$"
_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_LOCAL_MOMENT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$"
_NEVER = r"$^."


def parse_texts(texts: Any, column: Column) -> Any:
    """A column of texts as arrow values of the column's type; what spells "missing" is null."""
    array = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    array = _without_missing(array, column)
    if column.is_text:
        return array
    pattern, kind = _plain_spelling(column)
    is_plain = pc.fill_null(pc.match_substring_regex(array, pattern), True)
    values = pc.if_else(is_plain, array, pa.scalar(None, pa.string())).cast(kind)
    if pc.all(is_plain).as_py() or not len(array):
        return values
    others = [_parse(text, column) for text in array.filter(pc.invert(is_plain)).to_pylist()]
    result = np.empty(len(array), dtype=object)
    places = ~np.asarray(is_plain.to_numpy(zero_copy_only=False), dtype=np.bool_)
    result[places] = convert_objects(others, column).cast(kind).to_pylist()
    return pc.if_else(is_plain, values, pa.array(result.tolist(), type=kind))


def _without_missing(array: Any, column: Column) -> Any:
    """The spellings of "missing" as nulls, except those that the schema lists as values or a text must not lack."""
    if column.is_text and not column.nullable:
        return array
    listed = column.values if isinstance(column, Category) else ()
    missing = pa.array([spelling for spelling in _MISSING if spelling not in listed], type=pa.string())
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


def _parse(text: str, column: Column) -> Any:
    """Any other spelling of a whole number, a day or a moment: " 5", "3.0", "2020-01-31T12:00+01:00"."""
    try:
        if isinstance(column, (Date, Datetime)):
            return datetime.fromisoformat(text.strip())
        return Decimal(text.strip())
    except (ValueError, InvalidOperation):
        raise InputError("some value has an unknown spelling") from None
