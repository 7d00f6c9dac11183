"""Kinds of columns: what the holder states publicly about one column, and all that follows from its kind.

A column says which values are possible, never which values occur. Numbers and dates carry bounds, because the range
that the data happen to fill is itself private. Bounds are stated (`Real(0, 10)`), estimated privately, using part of
epsilon (`bounds="private"`), or taken from the data under a name that says what that costs
(`bounds="from-data-not-private"`).

Dates and times are integers underneath (days or microseconds since 1970-01-01 or midnight): `physical` converts,
`logical` undoes it. `KINDS` is the registry: a kind is a file that answers what `base.py` asks, and a line there.
"""

from spinney.columns.base import MAX_BITS, AxisKind, Column
from spinney.columns.boolean import Boolean, Listed
from spinney.columns.bounded import Bounded, Number, Stepped, exact, whole_range
from spinney.columns.category import Category
from spinney.columns.date import Date
from spinney.columns.datetime import Datetime
from spinney.columns.identifier import Identifier, Ignore
from spinney.columns.integer import Integer
from spinney.columns.real import Real
from spinney.columns.time import Time

KINDS: tuple[type[Column], ...] = (
    Real,
    Integer,
    Boolean,
    Date,
    Datetime,
    Time,
    Category,
    Identifier,
    Ignore,
)

COLUMN_TYPES: dict[str, type[Column]] = {kind.type_name: kind for kind in KINDS}

__all__ = [
    "COLUMN_TYPES",
    "KINDS",
    "MAX_BITS",
    "AxisKind",
    "Boolean",
    "Bounded",
    "Category",
    "Column",
    "Date",
    "Datetime",
    "Identifier",
    "Ignore",
    "Integer",
    "Listed",
    "Number",
    "Real",
    "Stepped",
    "Time",
    "exact",
    "whole_range",
]
