"""Columns of Python objects, value by value.

Libraries infer one type for a whole column of objects, so that the spelling of one row decides how all the others are
read: a single `Decimal("0.900000")` changes the digits of everybody's decimals. A row's cell must depend on that row
alone. So every value is converted by itself, to the type that the schema states.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from numbers import Real
from typing import Any

import pyarrow as pa

from spinney.columns.arrow import LARGEST_INTEGER, NOT_WHOLE
from spinney.columns.base import Column
from spinney.errors import InputError


def convert_objects(values: Iterable[Any], column: Column) -> pa.Array:
    """The values as an arrow array of the column's physical type; missing ones are null."""
    convert = column.converter()
    return pa.array([None if _is_missing(value) else convert(value) for value in values], type=column.object_type)


def _is_missing(value: Any) -> bool:
    """None, NaN in any spelling, and the missing values of pandas, none of which equals itself."""
    if value is None:
        return True
    try:
        return bool(value != value)  # noqa: PLR0124
    except (TypeError, InvalidOperation):
        return True  # pandas.NA and signalling NaNs refuse to be compared


def real(value: Any) -> float:
    """A number as a float."""
    if not isinstance(value, (Real, Decimal)):
        raise InputError("some value is not a number")
    return float(value)


def whole(value: Any) -> int | None:
    """A number that is whole as an integer, and None for infinity."""
    if not isinstance(value, (Real, Decimal)):
        raise InputError("some value is not a number")
    exact: Any = value
    if exact in (math.inf, -math.inf):
        return None
    # Clamped by comparison alone: arithmetic on Decimal("1e999999999") overflows, and its digits would fill memory.
    if not -LARGEST_INTEGER < exact < LARGEST_INTEGER:
        return LARGEST_INTEGER if exact > 0 else -LARGEST_INTEGER
    number: int = math.floor(exact)
    if number != exact:
        raise InputError(NOT_WHOLE)
    return number
