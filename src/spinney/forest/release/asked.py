"""What was asked of a column: in Python's own types, or, of a derived one, as values of its source."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from spinney.columns import Bounded
from spinney.columns.conditions import shown
from spinney.errors import ParameterError
from spinney.schema.rules.values import ValueSet


class Asked(NamedTuple):
    """What was asked of a derived column, and the values of its source that lead to it."""

    name: str
    wanted: Any
    allowed: ValueSet


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
