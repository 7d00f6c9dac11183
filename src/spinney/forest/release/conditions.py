"""Conditions on sampled rows: `where={"state": "CA", "age": (30, 40)}` and `balance={"Class": 0.5}`.

A condition cuts a column's leaves to what it allows, and says how much of each state is left; the model over states
does the rest by inference, so no drawn row is thrown away. To balance a column is to weight its states until its values
have the shares that were asked for.

    number, date     one value, (low, high) with both ends included, or a list of values (whole numbers and dates)
    category         one value or a list of values
    boolean          True or False; 1 and 0, "true" and "false" mean the same
    null             None

Values may be Python's, numpy's, pandas' or pyarrow's own. Whole numbers and moments are exact, however large.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from numbers import Real as AnyReal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Boolean, Bounded, Category, Column, Date, Datetime, Number, Real
from spinney.errors import ParameterError, SchemaError
from spinney.forest.release.column_model import ColumnModel, Floats
from spinney.forest.release.restrict import EXACT_PLACES, Restriction, restricted
from spinney.schema.lattice import integer_bounds
from spinney.suggest import did_you_mean

_BOOLEANS = {"true": True, "false": False}
_MOST_SHOWN = 80  # characters of what was asked for, in a message


def condition(name: str, column: Column, model: ColumnModel, wanted: Any) -> Restriction:
    """A column cut to what `wanted` allows. Raises a ParameterError where that is nothing, or makes no sense."""
    wanted = plain(wanted)
    if wanted is None:
        if not column.nullable:
            raise ParameterError(f"where: column {name!r} is never null")
        return Restriction(column, *model.empty())
    if hasattr(wanted, "__iter__") and not isinstance(wanted, (str, bytes, tuple, list)):
        raise ParameterError(
            f"where: column {name!r} takes a value, a range (low, high) or a list of values, and not a "
            f"{type(wanted).__name__}; write list(...) around several values"
        )
    cut: Restriction | None
    if isinstance(column, (Category, Boolean)):
        cut = Restriction(column, *model.among(_places_in_list(name, column, wanted)))
    else:
        assert isinstance(column, Bounded)
        cut = _cut_bounded(name, column, model, wanted)
    if cut is None or not cut.left.any():
        raise ParameterError(
            f"where: column {name!r} is never {_shown(wanted)} in this release; "
            "ask for values within its bounds, or for more"
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
            raise ParameterError(f"where: column {name!r} takes a range as (low, high), and not {_shown(wanted)}")
        low, high = (_number(name, column, end) for end in wanted)
        if any(isinstance(end, float) and math.isnan(end) for end in (low, high)):
            raise ParameterError(f"where: column {name!r} takes a range as (low, high), and nan is no end of one")
        if low > high:
            raise ParameterError(
                f"where: column {name!r}: {_shown(wanted[0])} is above {_shown(wanted[1])}; swap the two"
            )
        return restricted(column, model, low, high)
    if isinstance(wanted, list):
        return _cut_to_list(name, column, model, wanted)
    value = _number(name, column, wanted) if isinstance(column, Real) else _whole(name, column, wanted)
    return restricted(column, model, value, value)


def _cut_to_list(name: str, column: Bounded, model: ColumnModel, wanted: list[Any]) -> Restriction | None:
    if isinstance(column, Real):
        hint = f": ({_shown(wanted[0])}, {_shown(wanted[1])})" if len(wanted) == 2 else ""
        raise ParameterError(
            f"where: column {name!r} is real, and a list stands for its values one by one; ask for one value or a "
            f"range (low, high){hint}"
        )
    step = getattr(column, "multiple_of", None) or 1
    numbers = {_whole(name, column, value) for value in wanted}
    possible = sorted(number for number in numbers if number % step == 0)
    if not possible:
        raise ParameterError(f"where: column {name!r} cannot be any of {_shown(wanted)}; list values that it can have")
    lowest, highest = integer_bounds(column)
    possible = [number for number in possible if lowest <= number <= highest]
    cut = restricted(column, model, possible[0], possible[-1]) if possible else None
    if cut is None:
        return None
    if possible[-1] - possible[0] >= EXACT_PLACES:
        raise ParameterError(f"where: column {name!r}: the values are 2^53 or more apart; ask for one at a time")
    first = integer_bounds(cut.column)[0]
    listed, left = cut.model.on(np.array([number - first for number in possible]))
    return Restriction(cut.column, listed, cut.left * left)


def _number(name: str, column: Bounded, value: Any) -> int | float:
    """A value of a bounded column as the number that stands for it: a float of a real, else exact if it is whole."""
    if isinstance(column, Number) and isinstance(value, (AnyReal, Decimal)) and not isinstance(value, bool):
        whole = None if isinstance(column, Real) else _if_whole(value)
        return _float(value) if whole is None else whole
    if isinstance(column, (Date, Datetime)) and isinstance(value, (str, date, np.datetime64)):
        try:
            return column.physical(column.parse(_as_declared(name, column, value), "where"))
        except SchemaError as err:
            raise ParameterError(f"where: column {name!r}: {err}") from None
    hint = "; write numbers without quotes" if isinstance(column, Number) and isinstance(value, str) else ""
    raise ParameterError(f"where: column {name!r} is of type {column.type_name}, which {_shown(value)} is not{hint}")


def _if_whole(value: Any) -> int | None:
    """An exact number that is whole, as that; None of floats, which say by themselves what they are."""
    if isinstance(value, Rational):
        return int(value.numerator) if value.denominator == 1 else None
    is_small = isinstance(value, Decimal) and value.is_finite() and abs(value) < 2**63
    return int(value) if is_small and value == int(value) else None


def _float(value: Any) -> float:
    """A number as a float, of whatever size."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except ValueError:  # a signalling NaN
        return math.nan


def _as_declared(name: str, column: Date | Datetime, value: Any) -> Any:
    """A day as its first moment, as texts are read, where a column holds moments; a midnight as its day where days."""
    if isinstance(value, np.datetime64) or getattr(value, "nanosecond", 0) != 0:
        raise ParameterError(f"where: column {name!r}: {value!r} is finer than a microsecond; round it")
    if isinstance(column, Datetime) and isinstance(value, date) and not isinstance(value, datetime):
        return datetime.combine(value, time.min)
    is_midnight = isinstance(value, datetime) and value.tzinfo is None and value.time() == time.min
    return value.date() if isinstance(column, Date) and is_midnight else value


def _whole(name: str, column: Bounded, value: Any) -> int:
    """A value of a column of whole numbers, dates or times as the whole number that stands for it."""
    number = _number(name, column, value)
    if isinstance(number, float) and not number.is_integer():
        raise ParameterError(f"where: column {name!r} holds whole numbers, and {_shown(value)} is none")
    return int(number)


def _places_in_list(name: str, column: Category | Boolean, wanted: Any) -> NDArray[np.int64]:
    """Places of the wanted values in the list of all."""
    several = wanted if isinstance(wanted, (list, tuple)) else [wanted]
    return np.array([_place("where", name, column, value) for value in several], dtype=np.int64)


def _listed(column: Category | Boolean) -> tuple[Any, ...]:
    return column.values if isinstance(column, Category) else (False, True)


def _place(argument: str, name: str, column: Category | Boolean, value: Any) -> int:
    """The place of a value in the list of all. A boolean may also be given as 1 or 0, or as it is spelt."""
    known = _listed(column)
    if isinstance(column, Boolean):
        meant = _BOOLEANS.get(value.strip().lower()) if isinstance(value, str) else value
        if isinstance(meant, AnyReal) and meant in (0, 1):
            return int(meant == 1)
        hint = "; say True or False"
    else:
        if isinstance(value, (str, AnyReal)) and not isinstance(value, bool) and value in known:
            return known.index(value)
        hint = _meant(value, known)
    raise ParameterError(f"{argument}: {_shown(value)} is not a value of column {name!r}{hint}")


def _meant(value: Any, known: tuple[Any, ...]) -> str:
    """The end of a message: a value of the list that is spelt alike, also where the one is a number, the other not."""
    spelt = value if isinstance(value, str) else _shown(value)
    same = [other for other in known if str(other) == spelt.strip()]
    return f"; did you mean {same[0]!r}?" if same else did_you_mean(spelt, known)


def _shown(value: Any) -> str:
    """A value for a message, shortened where it is long."""
    try:
        text = repr(value)
    except ValueError:  # which is what Python says of writing them out
        return "a number of thousands of digits"
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


# --------------------------------------------------------------------------------------------------------- balance


def balanced(
    name: str, column: Column, model: ColumnModel, shares: Any, state_law: Floats
) -> tuple[ColumnModel, Floats]:
    """A column whose values have the shares that were asked for, and the weights of its states that bring that about.

    `state_law` is what the model says of the states so far.
    """
    if not isinstance(column, (Category, Boolean)):
        raise ParameterError(f"balance: column {name!r} is of type {column.type_name}; balance categories or booleans")
    values = _listed(column)
    wanted = _wanted_shares(name, column, shares)
    places = model.low.astype(np.int64)
    leaf_law = state_law[model.states] * model.inside()
    weights = np.where(model.is_null, 0.0, np.array([wanted[values[place]] for place in places]))
    if (leaf_law[weights > 0] <= 0).any():
        raise ParameterError(f"balance: some value of column {name!r} never occurs in the model; leave it out")
    asked = np.bincount(model.states, weights=weights, minlength=model.n_states)
    evidence = np.divide(asked, state_law, out=np.zeros_like(asked), where=state_law > 0)
    return model.weighing(weights), evidence


def _wanted_shares(name: str, column: Category | Boolean, shares: Any) -> dict[Any, float]:
    """Shares of all values, adding up to 1: from one number for the second of two, or from a mapping of all."""
    values = _listed(column)
    if isinstance(shares, (AnyReal, Decimal)) and not isinstance(shares, bool):
        if len(values) != 2:
            raise ParameterError(f"balance: column {name!r} has {len(values)} values; give a share for each, by value")
        shares = {values[1]: shares, values[0]: 1 - _share(name, shares)}
    if not isinstance(shares, Mapping):
        raise ParameterError(f"balance: column {name!r} takes a share or a mapping from values to shares")
    by_value: dict[Any, float] = {}
    for value, share in shares.items():
        known = values[_place("balance", name, column, plain(value))]
        if known in by_value:
            raise ParameterError(f"balance: {_shown(known)} of column {name!r} is given two shares; give one")
        by_value[known] = _share(name, share)
    total = sum(by_value.values())
    if abs(total - 1) > 1e-6:
        raise ParameterError(f"balance: the shares of column {name!r} add up to {total:g}, and not to 1")
    return {value: by_value.get(value, 0.0) / total for value in values}


def _share(name: str, share: Any) -> float:
    """A share as a number, or an error that names it as it was given."""
    is_number = isinstance(share, (AnyReal, Decimal)) and not isinstance(share, bool)
    if not is_number or not 0 <= _float(share) <= 1:
        shown = f"{_float(share):g}" if isinstance(share, Fraction) else _shown(share)
        raise ParameterError(f"balance: {shown} is not a share between 0 and 1 (column {name!r})")
    return float(share)
