"""Kinds of columns: what the holder states publicly about one column.

A column says which values are possible, never which values occur. Numbers and dates carry bounds, because the
box that the data happen to fill is itself private. Bounds are stated (`Real(0, 10)`), paid for out of epsilon
(`bounds="private"`), or read off the data under a name that says what that costs
(`bounds="from-data-not-private"`).

Dates and times are integers underneath (days, microseconds since 1970-01-01): `physical` converts, `logical` undoes it.
"""

from spinney.columns.base import MAX_BITS, Bounded, Column
from spinney.columns.boolean import Boolean
from spinney.columns.category import Category
from spinney.columns.date import Date
from spinney.columns.datetime import Datetime
from spinney.columns.identifier import Identifier
from spinney.columns.number import Integer, Number, Real, exact

COLUMN_TYPES: dict[str, type[Column]] = {
    kind.type_name: kind for kind in (Real, Integer, Date, Datetime, Boolean, Category, Identifier)
}

__all__ = [
    "COLUMN_TYPES",
    "MAX_BITS",
    "Boolean",
    "Bounded",
    "Category",
    "Column",
    "Date",
    "Datetime",
    "Identifier",
    "Integer",
    "Number",
    "Real",
    "exact",
]
