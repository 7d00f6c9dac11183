"""What a condition asks of a column, in Python's own types, and as the set of values that meet it.

    number, date     one value, (low, high) with both ends included and None where there is no end, or a list of these
    category         one value or a list of values
    boolean          True or False; 1 and 0, "true" and "false" mean the same
    null             None

Values may be Python's, numpy's, pandas' or pyarrow's own.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import numpy as np

from spinney.columns import Bounded, Column, Listed, exact
from spinney.columns.conditions import shown
from spinney.errors import ParameterError
from spinney.schema.rules.values import Number, ValueSet, universe


def allowed(name: str, column: Column, wanted: Any) -> ValueSet:
    """The values of a column that a condition allows, as ranges of physical numbers in the column's steps.

    Raises:
        ParameterError: the condition makes no sense for the column, or no value meets it.
    """
    wanted = plain(wanted)
    if wanted is not None and hasattr(wanted, "__iter__") and not isinstance(wanted, (str, bytes, tuple, list)):
        raise ParameterError(
            f"where: column {name!r} takes a value, a range (low, high) or a list of values, not a "
            f"{type(wanted).__name__}; write list(...) around several values"
        )
    several = wanted if isinstance(wanted, list) or (isinstance(column, Listed) and isinstance(wanted, tuple)) else None
    parts = [wanted] if several is None else list(several)
    if None in parts and not column.nullable:
        raise ParameterError(f"where: column {name!r} is never null")
    ranges: list[tuple[Number, Number]] = []
    for part in parts:
        if part is None:
            continue
        if isinstance(column, Listed):
            place = column.place_of(part, name=name, argument="where")
            ranges.append((place, place))
        else:
            assert isinstance(column, Bounded)
            ranges += _within(name, column, part)
    found = ValueSet.of(ranges, has_null=None in parts)
    if found.is_empty:
        raise never(name, wanted)
    return found


def never(name: str, wanted: Any) -> ParameterError:
    """The error for what no row of a release can have."""
    return ParameterError(
        f"where: column {name!r} is never {shown(wanted)} in this release; "
        "ask for values within its bounds and in its steps, or for more values"
    )


def _within(name: str, column: Bounded, wanted: Any) -> list[tuple[Number, Number]]:
    """One value or one range, cut to the bounds and to the steps of the column; nothing where that leaves nothing."""
    if isinstance(wanted, tuple):
        low, high = range_asked(name, column, wanted)
    else:
        low = high = column.wanted(wanted, name)
        if column.is_whole and isinstance(low, float) and not low.is_integer():
            raise ParameterError(
                f"where: column {name!r} holds whole numbers, and {shown(wanted)} is not a whole number"
            )
    least, most = universe(column)
    low, high = max(low, least), min(high, most)
    if low > high:
        return []
    if column.is_whole:
        ends: list[Number] = [
            int(column.aligned(math.ceil(low), up=True)),
            int(column.aligned(math.floor(high), up=False)),
        ]
    elif column.spacing is None:
        ends = [float(low), float(high)]
    else:
        ends = [float(column.aligned(exact(float(low)), up=True)), float(column.aligned(exact(float(high)), up=False))]
    return [(ends[0], ends[1])] if ends[0] <= ends[1] else []


def plain(wanted: Any) -> Any:
    """What was asked for in Python's own types; the nulls of pandas and numpy are None."""
    if isinstance(wanted, tuple):
        return tuple(_plain_end(part) for part in wanted)
    if isinstance(wanted, (list, set, frozenset)):
        return [plain(part) for part in wanted]
    if isinstance(wanted, np.ndarray) and wanted.ndim == 0:
        wanted = wanted[()]
    if hasattr(wanted, "as_py"):  # a value of an Arrow table
        wanted = wanted.as_py()
    if type(wanted).__name__ in ("NAType", "NaTType") or (isinstance(wanted, np.datetime64) and np.isnat(wanted)):
        return None
    if isinstance(wanted, np.datetime64):
        moment = wanted.astype("datetime64[us]")
        return wanted if moment != wanted else moment.item()
    if isinstance(wanted, datetime) and hasattr(wanted, "to_pydatetime"):
        return wanted if getattr(wanted, "nanosecond", 0) else wanted.to_pydatetime()
    return wanted.item() if isinstance(wanted, np.generic) else wanted


def range_asked(name: str, column: Bounded, wanted: tuple[Any, ...]) -> tuple[int | float, int | float]:
    """The ends of a range as physical numbers, infinite where there is none; a ParameterError where it is no range."""
    if len(wanted) != 2:
        raise ParameterError(f"where: column {name!r} takes a range as (low, high), not {shown(wanted)}")
    if wanted[0] is None and wanted[1] is None:
        raise ParameterError(f"where: column {name!r}: a range without ends says nothing; leave the column out")
    low = -math.inf if wanted[0] is None else column.wanted(wanted[0], name)
    high = math.inf if wanted[1] is None else column.wanted(wanted[1], name)
    if any(isinstance(end, float) and math.isnan(end) for end in (low, high)):
        raise ParameterError(f"where: column {name!r} takes a range as (low, high), and NaN cannot be a bound")
    if low > high:
        raise ParameterError(f"where: column {name!r}: {shown(wanted[0])} is above {shown(wanted[1])}; swap the two")
    return low, high


def _plain_end(end: Any) -> Any:
    """An end of a range. None is no end; a null of pandas or numpy came out of a table, and is no bound."""
    found = plain(end)
    return math.nan if found is None and end is not None else found
