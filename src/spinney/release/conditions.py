"""Conditions on sampled rows: `where={"state": "CA", "age": (30, 40)}` and `balance={"Class": 0.5}`.

A condition cuts a column's leaves to what it allows, and says how much of each state is left; the model over states
does the rest by inference, so no drawn row is thrown away. To balance a column is to weight its states until its values
have the shares that were asked for.

    number, date     one value, (low, high) with both ends included, or a list of values (whole numbers and dates)
    category         one value or a list of values
    boolean          True or False
    null             None
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from numbers import Real as AnyReal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.errors import ParameterError, SchemaError
from spinney.release.columns import ColumnModel, Floats
from spinney.release.frames import numbers_rounding_to
from spinney.schema.columns import Boolean, Bounded, Category, Column, Number, Real
from spinney.schema.lattice import integer_bounds

Condition = tuple[ColumnModel, Floats]  # what is left of a column, and of each of its states


def condition(name: str, column: Column, model: ColumnModel, wanted: Any) -> Condition:
    """A column cut to what `wanted` allows. Raises a ParameterError where that is nothing, or makes no sense."""
    if wanted is None:
        if not column.nullable:
            raise ParameterError(f"where: column {name!r} is never null")
        return model.empty()
    if isinstance(column, (Category, Boolean)):
        cut = model.among(_places_in_list(name, column, wanted))
    else:
        assert isinstance(column, Bounded)
        cut = _cut_bounded(name, column, model, wanted)
    if not cut[1].any():
        raise ParameterError(
            f"where: column {name!r} is never {wanted!r} in this release; ask for values within its bounds, or for more"
        )
    return cut


def _cut_bounded(name: str, column: Bounded, model: ColumnModel, wanted: Any) -> Condition:
    if isinstance(wanted, tuple):
        if len(wanted) != 2:
            raise ParameterError(f"where: column {name!r} takes a range as (low, high), and not {wanted!r}")
        low, high = (_number(name, column, end) for end in wanted)
        if low > high:
            raise ParameterError(f"where: column {name!r}: {wanted[0]!r} is above {wanted[1]!r}; swap the two")
        if isinstance(column, Number) and column.multiple_of is not None:
            low, high = numbers_rounding_to(low, high, column)  # draws round to multiples, which are what was asked for
        if isinstance(column, Real):
            return model.at(low) if low == high else model.between(low, np.nextafter(high, np.inf))
        first = integer_bounds(column)[0]
        return model.between(np.ceil(low) - first, np.floor(high) - first + 1)
    if isinstance(wanted, (list, set, frozenset)):
        if isinstance(column, Real):
            raise ParameterError(f"where: column {name!r} is real; ask for one value or a range (low, high)")
        first = integer_bounds(column)[0]
        places = [_whole(name, column, value) - first for value in wanted]
        step = getattr(column, "multiple_of", None) or 1
        places = [place for place in places if (place + first) % step == 0]
        if not places:
            raise ParameterError(f"where: column {name!r} cannot be any of {wanted!r}; list values that it can have")
        return model.on(np.unique(places))
    value = _number(name, column, wanted)
    if isinstance(column, Number) and column.multiple_of is not None:
        return _cut_bounded(name, column, model, (value, value))
    if isinstance(column, Real):
        return model.at(value)
    place = _whole(name, column, wanted) - integer_bounds(column)[0]
    return model.between(place, place + 1)


def _number(name: str, column: Bounded, value: Any) -> float:
    """A value of a bounded column as the number that stands for it."""
    if isinstance(value, AnyReal) and not isinstance(value, bool) and column.type_name in ("real", "integer"):
        return float(value)
    if isinstance(value, (str, date)) and column.type_name in ("date", "datetime"):
        try:
            return float(column.physical(column.parse(value, "where")))
        except SchemaError as err:
            raise ParameterError(f"where: column {name!r}: {err}") from None
    raise ParameterError(f"where: column {name!r} is of type {column.type_name}, which {value!r} is not")


def _whole(name: str, column: Bounded, value: Any) -> int:
    """A value of a column of whole numbers, dates or times as the whole number that stands for it."""
    number = _number(name, column, value)
    if not number.is_integer():
        raise ParameterError(f"where: column {name!r} holds whole numbers, and {value!r} is none")
    return int(number)


def _places_in_list(name: str, column: Category | Boolean, wanted: Any) -> NDArray[np.int64]:
    """Places of the wanted values in the list of all."""
    values: tuple[Any, ...] = column.values if isinstance(column, Category) else (False, True)
    several = list(wanted) if isinstance(wanted, (list, tuple, set, frozenset)) else [wanted]
    for value in several:
        if not any(value == known and isinstance(value, bool) == isinstance(known, bool) for known in values):
            raise ParameterError(f"where: {value!r} is not a value of column {name!r}")
    return np.array([values.index(value) for value in several], dtype=np.int64)


# --------------------------------------------------------------------------------------------------------- balance


def balanced(name: str, column: Column, model: ColumnModel, shares: Any, state_law: Floats) -> Condition:
    """A column whose values have the shares that were asked for, and the weights of its states that bring that about.

    `state_law` is what the model says of the states so far.
    """
    if not isinstance(column, (Category, Boolean)):
        raise ParameterError(f"balance: column {name!r} is of type {column.type_name}; balance categories or booleans")
    values: tuple[Any, ...] = column.values if isinstance(column, Category) else (False, True)
    wanted = _wanted_shares(name, values, shares)
    places = model.low.astype(np.int64)
    leaf_law = state_law[model.states] * model.inside()
    weights = np.where(model.is_null, 0.0, np.array([wanted[values[place]] for place in places]))
    if (leaf_law[weights > 0] <= 0).any():
        raise ParameterError(f"balance: some value of column {name!r} never occurs in the model; leave it out")
    asked = np.bincount(model.states, weights=weights, minlength=model.n_states)
    evidence = np.divide(asked, state_law, out=np.zeros_like(asked), where=state_law > 0)
    return model.weighing(weights), evidence


def _wanted_shares(name: str, values: tuple[Any, ...], shares: Any) -> dict[Any, float]:
    """Shares of all values, adding up to 1: from one number for the second of two, or from a mapping of all."""
    if isinstance(shares, AnyReal) and not isinstance(shares, bool):
        if len(values) != 2:
            raise ParameterError(f"balance: column {name!r} has {len(values)} values; give a share for each, by value")
        shares = {values[0]: 1 - float(shares), values[1]: float(shares)}
    if not isinstance(shares, Mapping):
        raise ParameterError(f"balance: column {name!r} takes a share or a mapping from values to shares")
    for value, share in shares.items():
        if value not in values:
            raise ParameterError(f"balance: {value!r} is not a value of column {name!r}")
        if isinstance(share, bool) or not isinstance(share, AnyReal) or not 0 <= float(share) <= 1:
            raise ParameterError(f"balance: {share!r} is not a share between 0 and 1 (column {name!r})")
    total = sum(float(share) for share in shares.values())
    if abs(total - 1) > 1e-6:
        raise ParameterError(f"balance: the shares of column {name!r} add up to {total:g}, and not to 1")
    return {value: float(shares.get(value, 0.0)) / total for value in values}
