"""Balanced rows: `balance={"Class": 0.5}` gives the values of a category or a boolean shares of one's choice.

States of the column are weighted until its values have the shares that were asked for. Of a column that is derived,
the values of its source are: those that lead to one value keep their proportions among themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from numbers import Real as AnyReal
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Column, Listed
from spinney.columns.conditions import as_float, shown
from spinney.errors import ParameterError
from spinney.forest.release.asked import plain
from spinney.forest.release.column_model import ColumnModel, Floats
from spinney.forest.release.derived import of_modelled
from spinney.schema.parting import fence
from spinney.schema.rules.values import Number, ValueSet, universe
from spinney.schema.table import Schema


class Groups(NamedTuple):
    """Leaves of a modelled column, and which value of the balanced one each leads to."""

    source: str
    model: ColumnModel
    values: NDArray[np.int64]  # (n_leaves,): place in the list of the balanced column; -1 for none, as null
    wanted: Floats  # (n_values,): the shares asked for, in the order of that list


def grouped(
    name: str, shares: Any, schema: Schema, drawn: Mapping[str, Column], columns: Mapping[str, ColumnModel]
) -> Groups:
    """How to balance a column.

    Args:
        name: the column.
        shares: what was asked for.
        schema: the release's.
        drawn: modelled columns, with the bounds of what conditions leave of them.
        columns: what is left of their leaves.
    """
    column = schema[name] if name not in drawn or name not in columns else drawn[name]
    if not isinstance(column, Listed):
        raise ParameterError(f"balance: column {name!r} is of type {column.type_name}; balance categories or booleans")
    wanted = _wanted_shares(name, column, shares)
    law = np.array([wanted[value] for value in column.listed])
    if name in columns:
        model = columns[name].by_value()
        return Groups(name, model, np.where(model.is_null, -1, model.low.astype(np.int64)), law)
    parts = [of_modelled(name, ValueSet(((p, p),)), schema, argument="balance") for p in range(len(column.listed))]
    source = parts[0][0]
    starts = _starts([part for _, part in parts], drawn[source])
    begins = np.array([fence(drawn[source], start)[1] for start, _ in starts[1:]])
    is_list = isinstance(drawn[source], Listed)
    model = columns[source].by_value() if is_list else columns[source].split_at(begins)
    found = np.array([place for _, place in starts], dtype=np.int64)[np.searchsorted(begins, model.low, side="right")]
    is_null_place = next((place for place, (_, part) in enumerate(parts) if part.has_null), -1)
    return Groups(source, model, np.where(model.is_null, is_null_place, found), law)


def _starts(parts: list[ValueSet], source: Column) -> list[tuple[Number, int]]:
    """Where ranges of the source begin that lead to one value, and the place of that value; from the least on."""
    least, most = universe(source)
    inside = [
        (max(low, least), place)
        for place, part in enumerate(parts)
        for low, high in part.ranges
        if high >= least and low <= most
    ]
    return sorted(inside)


def balanced(name: str, groups: Groups, state_law: Floats) -> tuple[ColumnModel, Floats]:
    """A column whose values have the shares that were asked for, and the weights of its states that bring that about.

    `state_law` is what the model says of the states so far.
    """
    model = groups.model
    leaf_law = state_law[model.states] * model.inside()
    is_valued = groups.values >= 0
    group_law = np.bincount(groups.values[is_valued], weights=leaf_law[is_valued], minlength=len(groups.wanted))
    if (group_law[groups.wanted > 0] <= 0).any():
        raise ParameterError(f"balance: some value of column {name!r} never occurs in the model; leave it out")
    share = np.divide(
        leaf_law, group_law[groups.values], out=np.zeros_like(leaf_law), where=group_law[groups.values] > 0
    )
    weights = np.where(is_valued, groups.wanted[groups.values] * share, 0.0)
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
