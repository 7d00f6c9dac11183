"""Conditions on sampled rows: `where={"state": "CA", "age": (30, 40)}`.

A condition restricts a column's leaves to what it allows, which leaves a share of each state; inference in the model
over states does the rest, so no drawn row is thrown away.

    number, date     one value, (low, high) with both ends included, or a list of values (whole numbers and dates);
                     None where a range has no end
    category         one value or a list of values
    boolean          True or False; 1 and 0, "true" and "false" mean the same
    null             None

Values may be Python's, numpy's, pandas' or pyarrow's own. Whole numbers and timestamps are exact, however large.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Bounded, Column, Listed, whole_range
from spinney.columns.conditions import shown
from spinney.errors import ParameterError
from spinney.forest.release.asked import Asked, plain, range_asked
from spinney.forest.release.column_model import ColumnModel
from spinney.forest.release.restrict import EXACT_PLACES, Restriction, restricted
from spinney.schema.parting import fence
from spinney.schema.rules.values import Number


def condition(
    name: str, column: Column, model: ColumnModel, wanted: Any, *, starts: Sequence[Number] = ()
) -> Restriction:
    """A column cut to what `wanted` allows. Raises a ParameterError where that is nothing, or makes no sense.

    `starts` are where parts of the column begin that rules tell apart.
    """
    if isinstance(wanted, Asked):
        return _cut_to_set(name, column, model, wanted)
    wanted = plain(wanted)
    if wanted is None:
        if not column.nullable:
            raise ParameterError(f"where: column {name!r} is never null")
        return Restriction(column, *model.restrict_to_null())
    if hasattr(wanted, "__iter__") and not isinstance(wanted, (str, bytes, tuple, list)):
        raise ParameterError(
            f"where: column {name!r} takes a value, a range (low, high) or a list of values, not a "
            f"{type(wanted).__name__}; write list(...) around several values"
        )
    cut: Restriction | None
    if isinstance(column, Listed):
        cut = Restriction(column, *model.restrict_to_values(_places_in_list(name, column, wanted)))
    else:
        assert isinstance(column, Bounded)
        cut = _cut_bounded(name, column, model, wanted)
        if cut is None or not cut.left.any():  # a value may be in the cell that a leaf of one round value stands for
            fences = np.array([fence(column, start)[1] for start in starts])
            cut = _cut_bounded(name, column, model.filling_gaps(shortest=float(column.is_whole), fences=fences), wanted)
    if cut is None or not cut.left.any():
        raise never(name, wanted)
    return cut


def never(name: str, wanted: Any) -> ParameterError:
    """The error for what no row of a release can have."""
    return ParameterError(
        f"where: column {name!r} is never {shown(wanted)} in this release; "
        "ask for values within its bounds and in its steps, or for more values"
    )


def _cut_to_set(name: str, column: Column, model: ColumnModel, asked: Asked) -> Restriction:
    """A column cut to the values with which another, that is derived from it, is what was asked for."""
    allowed = asked.allowed
    refusal = ParameterError(
        f"where: column {asked.name!r} is never {shown(asked.wanted)} in this release; ask for others"
    )
    if isinstance(column, Listed):
        places = [place for low, high in allowed.ranges for place in range(int(low), int(high) + 1)]
        cut: Restriction | None
        cut = Restriction(column, *model.restrict_to_values(np.array(places, dtype=np.int64), null=allowed.has_null))
    elif allowed.has_null and not allowed.ranges:
        cut = Restriction(column, *model.restrict_to_null())
    elif allowed.is_empty:
        raise refusal
    elif allowed.has_null or len(allowed.ranges) > 1:
        raise ParameterError(
            f"where: {shown(asked.wanted)} of column {asked.name!r} is no single range of {name!r}; ask for "
            "neighbouring values"
        )
    else:
        assert isinstance(column, Bounded)
        cut = restricted(column, model, *allowed.ranges[0])
    if cut is None or not cut.left.any():
        raise refusal
    return cut


def _cut_bounded(name: str, column: Bounded, model: ColumnModel, wanted: Any) -> Restriction | None:
    if isinstance(wanted, tuple):
        return restricted(column, model, *range_asked(name, column, wanted))
    if isinstance(wanted, list):
        return _cut_to_list(name, column, model, wanted)
    value = _whole(name, column, wanted) if column.is_whole else column.wanted(wanted, name)
    return restricted(column, model, value, value)


def _cut_to_list(name: str, column: Bounded, model: ColumnModel, wanted: list[Any]) -> Restriction | None:
    if not column.is_whole:
        hint = f": ({shown(wanted[0])}, {shown(wanted[1])})" if len(wanted) == 2 else ""
        raise ParameterError(
            f"where: column {name!r} is real and does not take a list of values; ask for one value or a range "
            f"(low, high){hint}"
        )
    numbers = {_whole(name, column, value) for value in wanted}
    possible = sorted(number for number in numbers if column.aligned(number, up=True) == number)
    if not possible:
        raise ParameterError(f"where: column {name!r} cannot be any of {shown(wanted)}; list values that it can have")
    lowest, highest = whole_range(column)
    possible = [number for number in possible if lowest <= number <= highest]
    cut = restricted(column, model, possible[0], possible[-1]) if possible else None
    if cut is None:
        return None
    if possible[-1] - possible[0] >= EXACT_PLACES:
        raise ParameterError(f"where: column {name!r}: the values are 2^53 or more apart; ask for one at a time")
    first = whole_range(cut.column)[0]
    listed, left = cut.model.restrict_to_places(np.array([number - first for number in possible]))
    return Restriction(cut.column, listed, cut.left * left)


def _whole(name: str, column: Bounded, value: Any) -> int:
    """A value of a column of whole numbers, dates or times as the whole number that stands for it."""
    number = column.wanted(value, name)
    if isinstance(number, float) and not number.is_integer():
        raise ParameterError(f"where: column {name!r} holds whole numbers, and {shown(value)} is not a whole number")
    return int(number)


def _places_in_list(name: str, column: Listed, wanted: Any) -> NDArray[np.int64]:
    """Places of the wanted values in the list of all."""
    several = wanted if isinstance(wanted, (list, tuple)) else [wanted]
    return np.array([column.place_of(value, name=name, argument="where") for value in several], dtype=np.int64)
