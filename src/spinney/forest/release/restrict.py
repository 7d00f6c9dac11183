"""A column cut to a range: the column with nearer bounds, and what is left of its leaves.

Places of whole numbers, dates and timestamps count from the low bound, in floats, which are exact up to 2^53 only. So a
cut column begins at a bound of its own: however far from the first value a range lies, its places are small again, and
what is drawn from them lies within the range to the last unit. Columns in which every value counts, as under a rule or
a condition, are compared in whole numbers by `whole_numbers`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Bounded, Column, Real, exact, whole_range
from spinney.columns.steps import nearest_multiples, numbers_rounding_to
from spinney.forest.release.column_model import ColumnModel, Floats

EXACT_PLACES = 2**53  # floats hold every whole number up to here


class Restriction(NamedTuple):
    """What is left of a column: with the ends of that as its bounds, from which places count."""

    column: Column
    model: ColumnModel
    left: Floats  # (n_states,): how much of each state is left, in [0, 1]


def restricted(column: Bounded, model: ColumnModel, low: Any, high: Any) -> Restriction | None:
    """The column between two physical numbers, both included; None where none of its values lies there."""
    if isinstance(column, Real):
        return _restricted_real(column, model, low, high)
    lowest, highest = (int(column.physical(end)) for end in (column.low, column.high))
    if low > highest or high < lowest:
        return None
    first = column.aligned(math.ceil(max(low, lowest)), up=True)
    last = column.aligned(math.floor(min(high, highest)), up=False)
    if first > last:
        return None
    near = replace(column, low=column.limit(first), high=column.limit(last))
    (begin, end), (origin, final) = whole_range(near), whole_range(column)
    cut, left = model.starting_at(begin - origin, end + 1 - origin, n_places=final + 1 - origin)
    is_held = ~cut.is_null & (cut.length > 0)
    if not is_held.any():
        return None
    if end - begin < EXACT_PLACES:
        # A column that was cut to a list of values ends at those of them that are left.
        ends = np.array([cut.low[is_held].min(), (cut.low + cut.length)[is_held].max() - 1])
        inner = whole_numbers(ends, near)
        if near.step > 1:
            inner = nearest_multiples(inner, near)
        if (int(inner[0]), int(inner[1])) != (first, last):
            return restricted(column, model, int(inner[0]), int(inner[1]))
    return Restriction(near, cut, left)


def _restricted_real(column: Real, model: ColumnModel, low: Any, high: Any) -> Restriction | None:
    low, high = max(_float_from(low, up=True), column.low), min(_float_from(high, up=False), column.high)
    if not low <= high:
        return None
    if column.multiple_of is None:
        cut, left = (
            model.restrict_to_point(low) if low == high else model.restrict_to_range(low, np.nextafter(high, np.inf))
        )
        return Restriction(_real_between(column, low, high), cut, left)
    step = exact(column.multiple_of)
    first, last = -(-exact(low) // step) * step, exact(high) // step * step
    if first > last:
        return None
    begin, end = numbers_rounding_to(low, high, column)
    cut, left = model.restrict_to_range(begin, np.nextafter(end, np.inf))
    return Restriction(_real_between(column, float(first), float(last)), cut, left)


def _real_between(column: Real, low: float, high: float) -> Real:
    """The column with these bounds; a single number gets a bound beside it, as reals need a length."""
    if low == high:
        below = float(np.nextafter(low, -np.inf))
        low, high = (below, high) if math.isfinite(below) else (low, float(np.nextafter(high, np.inf)))
    return replace(column, low=low, high=high)


def _float_from(number: Any, *, up: bool) -> float:
    """The float nearest to a number on one side of it; floats are what they say, as everywhere in a schema."""
    if isinstance(number, float):
        return number
    nearest, wanted = float(number), Fraction(number)
    if exact(nearest) < wanted and up:
        return float(np.nextafter(nearest, np.inf))
    if exact(nearest) > wanted and not up:
        return float(np.nextafter(nearest, -np.inf))
    return nearest


def whole_numbers(places: Floats, column: Column) -> NDArray[np.int64]:
    """Places as the whole numbers that a table will show for them, steps aside; 0 above the low bound for null."""
    low, high = whole_range(column)
    steps = np.floor(np.where(np.isnan(places), 0, places)).astype(np.int64)
    return low + np.clip(steps, 0, high - low)


def floats_not_below(numbers: NDArray[np.int64]) -> Floats:
    """The least floats that are not below whole numbers: themselves, up to 2^53."""
    nearest = numbers.astype(np.float64)
    return np.where(nearest.astype(np.int64) < numbers, np.nextafter(nearest, np.inf), nearest)
