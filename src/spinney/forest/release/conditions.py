"""Conditions on sampled rows: `where={"state": "CA", "age": (30, 40)}` and `balance={"Class": 0.5}`.

A condition restricts a column's leaves to what it allows, which leaves a share of each state; inference in the model
over states does the rest, so no drawn row is thrown away. To balance a column, its states are weighted until its values
have the shares that were requested.

    number, date     one value, (low, high) with both ends included, or a list of values (whole numbers and dates)
    category         one value or a list of values
    boolean          True or False; 1 and 0, "true" and "false" mean the same
    null             None

Values may be Python's, numpy's, pandas' or pyarrow's own. Whole numbers and timestamps are exact, however large.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from numbers import Real as AnyReal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Bounded, Column, Listed, whole_range
from spinney.columns.conditions import as_float, shown
from spinney.errors import ParameterError
from spinney.forest.release.column_model import ColumnModel, Floats
from spinney.forest.release.restrict import EXACT_PLACES, Restriction, restricted


def condition(name: str, column: Column, model: ColumnModel, wanted: Any) -> Restriction:
    """A column cut to what `wanted` allows. Raises a ParameterError where that is nothing, or makes no sense."""
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
            cut = _cut_bounded(name, column, model.filling_gaps(shortest=float(column.is_whole)), wanted)
    if cut is None or not cut.left.any():
        raise ParameterError(
            f"where: column {name!r} is never {shown(wanted)} in this release; "
            "ask for values within its bounds and in its steps, or for more values"
        )
    return cut


def plain(wanted: Any) -> Any:
    """What was asked for in Python's own types; the nulls of pandas and numpy are None."""
    if isinstance(wanted, tuple):
        return tuple(plain(part) for part in wanted)
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


def _cut_bounded(name: str, column: Bounded, model: ColumnModel, wanted: Any) -> Restriction | None:
    if isinstance(wanted, tuple):
        if len(wanted) != 2:
            raise ParameterError(f"where: column {name!r} takes a range as (low, high), not {shown(wanted)}")
        low, high = (column.wanted(end, name) for end in wanted)
        if any(isinstance(end, float) and math.isnan(end) for end in (low, high)):
            raise ParameterError(f"where: column {name!r} takes a range as (low, high), and NaN cannot be a bound")
        if low > high:
            raise ParameterError(
                f"where: column {name!r}: {shown(wanted[0])} is above {shown(wanted[1])}; swap the two"
            )
        return restricted(column, model, low, high)
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


# --------------------------------------------------------------------------------------------------------- balance


def balanced(
    name: str, column: Column, model: ColumnModel, shares: Any, state_law: Floats
) -> tuple[ColumnModel, Floats]:
    """A column whose values have the shares that were asked for, and the weights of its states that bring that about.

    `state_law` is what the model says of the states so far.
    """
    if not isinstance(column, Listed):
        raise ParameterError(f"balance: column {name!r} is of type {column.type_name}; balance categories or booleans")
    values = column.listed
    wanted = _wanted_shares(name, column, shares)
    model = model.by_value()
    places = model.low.astype(np.int64)
    leaf_law = state_law[model.states] * model.inside()
    weights = np.where(model.is_null, 0.0, np.array([wanted[values[place]] for place in places]))
    if (leaf_law[weights > 0] <= 0).any():
        raise ParameterError(f"balance: some value of column {name!r} never occurs in the model; leave it out")
    asked = np.bincount(model.states, weights=weights, minlength=model.n_states)
    evidence = np.divide(asked, state_law, out=np.zeros_like(asked), where=state_law > 0)
    return model.weighing(weights), evidence


def _wanted_shares(name: str, column: Listed, shares: Any) -> dict[Any, float]:
    """Shares of all values, adding up to 1: from one number for the second of two, or from a mapping of all."""
    values = column.listed
    if isinstance(shares, (AnyReal, Decimal)) and not isinstance(shares, bool):
        if len(values) != 2:
            raise ParameterError(
                f"balance: column {name!r} has {len(values)} values; give a mapping with a share for each value"
            )
        shares = {values[1]: shares, values[0]: 1 - _share(name, shares)}
    if not isinstance(shares, Mapping):
        raise ParameterError(f"balance: column {name!r} takes a share or a mapping from values to shares")
    by_value: dict[Any, float] = {}
    for value, share in shares.items():
        known = values[column.place_of(plain(value), name=name, argument="balance")]
        if known in by_value:
            raise ParameterError(f"balance: {shown(known)} of column {name!r} is given two shares; give one")
        by_value[known] = _share(name, share)
    total = sum(by_value.values())
    if abs(total - 1) > 1e-6:
        raise ParameterError(f"balance: the shares of column {name!r} add up to {total:g}, not to 1")
    return {value: by_value.get(value, 0.0) / total for value in values}


def _share(name: str, share: Any) -> float:
    """A share as a number, or an error that names it as it was given."""
    is_number = isinstance(share, (AnyReal, Decimal)) and not isinstance(share, bool)
    if not is_number or not 0 <= as_float(share) <= 1:
        given = f"{as_float(share):g}" if isinstance(share, Fraction) else shown(share)
        raise ParameterError(f"balance: {given} is not a share between 0 and 1 (column {name!r})")
    return float(share)
