"""Values as expressions, for engines whose rows stay where they are: numbers, and what is missing or wrong.

They use doubles and 64-bit integers in the same operations as `arrow.py`, so that engines agree to the last bit. No
expression fails, whatever a row holds: an engine's own errors would quote the value. What cannot be read is marked
instead, and counted. Days and moments are expected as whole numbers; each engine has its own way of getting them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw

from spinney.columns.arrow import LARGEST_INTEGER

# Beyond this a whole number may not be a double, and is refused where a real is meant, as arrow refuses it.
_WHOLE_DOUBLES = 2**53


@dataclass(frozen=True, slots=True)
class Reading:
    """One column as three expressions, none of which is ever null."""

    number: nw.Expr  # float64 for reals, int64 for the rest; meaningless where one of the others holds
    is_missing: nw.Expr  # null, NaN or infinite
    is_wrong: nw.Expr  # there is a value, but none that the schema allows


def real(value: nw.Expr, dtype: Any) -> Reading:
    """Numbers as doubles."""
    number = value.cast(nw.Float64)
    if not dtype.is_integer():
        is_number = number.is_finite().fill_null(False)
        return Reading(nw.when(is_number).then(number).otherwise(0.0), ~is_number, nw.lit(False))
    is_far = ((value > _WHOLE_DOUBLES) | (value < -_WHOLE_DOUBLES)).fill_null(False)
    return Reading(number.fill_null(0.0), value.is_null(), is_far)


def whole(value: nw.Expr, dtype: Any) -> Reading:
    """Integers, truth values, and floats or decimals that hold whole numbers; decimals hold 64 bits at most."""
    if isinstance(dtype, nw.Decimal):
        number = value.floor().cast(nw.Int64).fill_null(0)
        return Reading(number, value.is_null(), (value.floor() != value).fill_null(False))
    if not dtype.is_float():
        within = value.clip(upper_bound=LARGEST_INTEGER) if dtype == nw.UInt64 else value
        return Reading(within.cast(nw.Int64).fill_null(0), value.is_null(), nw.lit(False))
    wide = value.cast(nw.Float64)
    is_number = wide.is_finite().fill_null(False)
    near = nw.when(is_number).then(wide).otherwise(0.0).clip(-float(LARGEST_INTEGER), float(LARGEST_INTEGER))
    return Reading(near.floor().cast(nw.Int64), ~is_number, near.floor().cast(nw.Float64) != near)
