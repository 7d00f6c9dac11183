"""Strings in memory that stand for numbers, booleans, dates and timestamps, read as in a CSV, each value by itself.

`pandas.read_csv` gives strings for dates, and for numbers too where a column is dirty. They are read by the spellings
that a CSV file may have: ISO dates and timestamps, numbers with a decimal point, true and false. So are the spellings
of "missing" (an empty string, NA, null, nan). Nothing is inferred from other rows. Strings of a category of strings are
values as they are: there only a null is missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spinney.columns.base import Column
from spinney.columns.objects import convert_objects
from spinney.errors import InputError, raise_alone
from spinney.redacted import redacted


def parse_strings(array: Any, column: Column) -> Any:
    """Strings as arrow values of the type that the column has; raises an InputError where one cannot be read."""
    with redacted(lambda _: _unreadable(column)):
        try:
            return column.from_strings(array.cast(pa.string()))
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


def _unreadable(column: Column) -> InputError:
    return InputError(f"some string cannot be read as {column.type_name}; {column.spelling_remedy}")
