"""Columns of Python objects, value by value.

Libraries infer one type for a whole column of objects, so that the spelling of one row decides how all the others are
read: a single `Decimal("0.900000")` changes the digits of everybody's decimals. A row's cell must depend on that row
alone. So every value is converted by itself, to the type that the schema states.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa

from spinney import columns
from spinney.errors import InputError

# Whole numbers beyond this are moved to it, which is outside all bounds that a schema may state.
LARGEST_INTEGER = 2**62

# What is told of values, here and wherever else a table is read.
NOT_A_BOOLEAN = (
    "some value is neither true nor false; convert the column first (pandas: .map({'yes': True, 'no': False}))"
)
NOT_LISTED = (
    "some value is not in the schema's list of values; recode it, or add it if the column's codebook has it, and mind "
    "capitals and spaces (pandas: .str.strip())"
)


def convert_objects(values: Iterable[Any], column: columns.Column) -> pa.Array:
    """The values as an arrow array of the column's physical type; missing ones are null."""
    convert, kind = _conversion(column)
    return pa.array([None if _is_missing(value) else convert(value) for value in values], type=kind)


def _conversion(column: columns.Column) -> tuple[Callable[[Any], Any], pa.DataType]:
    if isinstance(column, columns.Real):
        return _real, pa.float64()
    if isinstance(column, columns.Date):
        return _day, pa.date32()
    if isinstance(column, columns.Datetime):
        zone = column.timezone
        return lambda value: _moment(value, is_aware=zone is not None), pa.timestamp("us", zone)
    if isinstance(column, columns.Boolean):
        return _truth, pa.bool_()
    return (_text, pa.string()) if column.is_text else (_whole, pa.int64())


def _is_missing(value: Any) -> bool:
    """None, NaN in any spelling, and the missing values of pandas, none of which equals itself."""
    if value is None:
        return True
    try:
        return bool(value != value)  # noqa: PLR0124
    except (TypeError, InvalidOperation):
        return True  # pandas.NA and signalling NaNs refuse to be compared


def _real(value: Any) -> float:
    if not isinstance(value, (Real, Decimal)):
        raise InputError("some value is not a number")
    return float(value)


def _whole(value: Any) -> int | None:
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
        raise InputError("some value is not a whole number; use Real for this column")
    return number


def _truth(value: Any) -> bool:
    if not (isinstance(value, (bool, np.bool_, Real)) and value in (0, 1)):
        raise InputError(NOT_A_BOOLEAN)
    return bool(value)


def _day(value: Any) -> date:
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            raise InputError("the values have a time zone, so their day is not settled; convert them to days")
        return value.date()
    if isinstance(value, np.datetime64):
        return value.astype("datetime64[D]").item()  # type: ignore[no-any-return]
    if not isinstance(value, date):
        raise InputError("some value is not a day")
    return value


def _moment(value: Any, *, is_aware: bool) -> datetime:
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if not isinstance(value, datetime):
        raise InputError("some value is not a date and time")
    moment: Any = value
    if hasattr(moment, "to_pydatetime"):  # pandas counts nanoseconds, which its own conversion warns about
        moment = moment.floor("us").to_pydatetime()
    if (moment.tzinfo is not None) != is_aware:
        raise InputError("the column and the schema do not agree on having a time zone")
    return moment.astimezone(UTC) if is_aware else moment  # type: ignore[no-any-return]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(
            "some value is not a string; list the values as numbers, Category([1, 2]), or convert the column to strings"
        )
    return str.__str__(value)  # a subclass may have a __str__ of its own
