"""Strings in memory that stand for numbers, booleans, days and moments, read as in a CSV, each value by itself.

`pandas.read_csv` gives strings for dates, and for numbers too where a column is dirty. They are read by the spellings
that a CSV file may have: ISO days and moments, numbers with a decimal point, true and false. So are the spellings of
"missing" (an empty string, NA, null, nan). Nothing is inferred from other rows. Strings of a category of strings are
values as they are: there only a null is missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from spinney.columns import Boolean, Column, Date, Datetime, Real
from spinney.errors import InputError, raise_alone
from spinney.redacted import redacted
from spinney.tables.objects import convert_objects
from spinney.tables.texts import parse_texts

_SPELLINGS = pacsv.ConvertOptions()
_WITHOUT_SIGNS = (
    ", without thousands separators, currency or percent signs, or convert the column first "
    "(pandas: .str.replace(...), then pd.to_numeric(...))"
)


def is_string(kind: pa.DataType) -> bool:
    """Whether an arrow type holds strings."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def parse_strings(array: Any, column: Column) -> Any:
    """Strings as arrow values of the type that the column has; raises an InputError where one cannot be read."""
    with redacted(lambda _: _unreadable(column)):
        strings = array.cast(pa.string())
        if isinstance(column, Boolean):
            return _booleans(strings)
        if isinstance(column, Real):
            present = pc.if_else(_among(strings, _SPELLINGS.null_values), pa.scalar(None, pa.string()), strings)
            return pc.ascii_trim_whitespace(present).cast(pa.float64())
        try:
            return parse_texts(strings, column)
        except InputError:
            raise_alone(_unreadable(column))


def read_objects(values: Iterable[Any], column: Column) -> Any:
    """Python objects as arrow values of the type that the column has, strings among them parsed."""
    present = list(values)
    is_spelt = [isinstance(value, str) for value in present]
    if column.is_text or not any(is_spelt):
        return convert_objects(present, column)
    others = [None if spelt else value for value, spelt in zip(present, is_spelt, strict=True)]
    # A subclass may have a __str__ of its own; what counts is the string that it is.
    strings = [str.__str__(value) for value, spelt in zip(present, is_spelt, strict=True) if spelt]
    parsed = parse_strings(pa.array(strings, pa.string()), column)
    return pc.replace_with_mask(convert_objects(others, column), pa.array(is_spelt), parsed)


def _booleans(strings: Any) -> Any:
    is_true = _among(strings, _SPELLINGS.true_values)
    is_missing = pc.or_(strings.is_null(), _among(strings, _SPELLINGS.null_values))
    is_known = pc.or_(pc.or_(is_true, is_missing), _among(strings, _SPELLINGS.false_values))
    if not pc.all(is_known, min_count=0).as_py():
        raise _unreadable(Boolean())
    return pc.if_else(is_missing, pa.scalar(None, pa.bool_()), is_true)


def _among(strings: Any, spellings: list[str]) -> Any:
    return pc.is_in(strings, value_set=pa.array(spellings, pa.string()))


def _unreadable(column: Column) -> InputError:
    return InputError(f"some string cannot be read as {column.type_name}; {_remedy(column)}")


def _remedy(column: Column) -> str:
    if isinstance(column, Date):
        return "write days as YYYY-MM-DD, or convert the column first (pandas: pd.to_datetime(..., format=...))"
    if isinstance(column, Datetime):
        form = "YYYY-MM-DDTHH:MM:SS" if column.timezone is None else "YYYY-MM-DDTHH:MM:SS+HH:MM"
        return f"write moments as {form}, or convert the column first (pandas: pd.to_datetime(..., format=...))"
    if isinstance(column, Boolean):
        return "write true or false, or convert the column first (pandas: .map({'yes': True, 'no': False}))"
    if isinstance(column, Real):
        return f"write numbers as 1234.5{_WITHOUT_SIGNS}"
    return f"write whole numbers as 1234{_WITHOUT_SIGNS}"
