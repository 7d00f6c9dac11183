"""Rows that obey the schema's rules: states that cannot meet, and larger values drawn above the smaller ones.

Rules are public. A model over states gives no weight to pairs of states that break a rule; where states overlap, a row
whose values break `AtMost` gets a new larger value, drawn from what its own state, or else its column, holds above the
smaller one. No row is thrown away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spinney.release.columns import ColumnModel, Floats
from spinney.release.frames import nearest_multiples, numbers_rounding_to
from spinney.schema.columns import Column, Number, Real
from spinney.schema.lattice import integer_bounds
from spinney.schema.rules import AtMost, EmptyWhen, Rule, in_order, least_values, most_values

Zeros = list[tuple[tuple[int, ...], NDArray[np.bool_]]]


def possible_pairs(rules: Sequence[Rule], schema: Mapping[str, Column], models: Mapping[str, ColumnModel]) -> Zeros:
    """For every rule, the pairs of states that can obey it, columns by their place in `models`, in ascending order."""
    places = {name: place for place, name in enumerate(models)}
    zeros: Zeros = []
    for rule in rules:
        first, second = models[rule.column], models[rule.other]
        if isinstance(rule, AtMost):
            smallest, _ = _state_range(first, schema[rule.column])
            _, largest = _state_range(second, schema[rule.other])
            # A state of nulls has an empty range, from infinity to minus infinity, and obeys everything.
            possible = (
                (smallest[:, None] <= largest[None, :]) | np.isinf(smallest)[:, None] | np.isinf(largest)[None, :]
            )
        else:
            assert isinstance(rule, EmptyWhen)
            possible = _is_null_state(first)[:, None] == _says_empty(rule, second, schema[rule.other])[None, :]
        pair = (places[rule.column], places[rule.other])
        zeros.append((pair, possible) if pair[0] < pair[1] else (pair[::-1], possible.T))
    return zeros


def told_apart(rules: Sequence[Rule], schema: Mapping[str, Column]) -> dict[str, NDArray[np.int64]]:
    """For every column that says when another is empty, the values (places in its list) that do so."""
    apart: dict[str, set[int]] = {}
    for rule in rules:
        if isinstance(rule, EmptyWhen) and rule.values is not None:
            apart.setdefault(rule.other, set()).update(rule.places(schema[rule.other]))
    return {name: np.array(sorted(places), dtype=np.int64) for name, places in apart.items()}


def within_reach(
    rules: Sequence[Rule], schema: Mapping[str, Column], models: Mapping[str, ColumnModel]
) -> dict[str, tuple[ColumnModel, Floats]]:
    """Columns of `AtMost` cut to values that leave room for those above and below them, and what is left of states."""
    least, most = least_values(rules, schema), most_values(rules, schema)
    cut: dict[str, tuple[ColumnModel, Floats]] = {}
    for name in in_order(rules, AtMost):
        column = schema[name]
        if isinstance(column, Number) and column.multiple_of is not None:
            ends = numbers_rounding_to(float(least[name]), float(most[name]), column)
            low, high = np.array(ends) - (0 if isinstance(column, Real) else integer_bounds(column)[0])
        else:
            low, high = _to_place(np.array([float(least[name]), float(most[name])]), column)
        stop = np.nextafter(high, np.inf) if isinstance(column, Real) else high + 1
        model, left = models[name].between(low, stop)
        if not left.any():  # all that was seen breaks a rule: what is left is even
            model, left = models[name].weighing(models[name].length).between(low, stop)
        nulls, null_left = models[name].empty()
        weights = np.where(models[name].is_null, nulls.weights, model.weights)
        cut[name] = replace(model, weights=weights), np.maximum(left, null_left)
    return cut


def raise_above(
    places: dict[str, Floats],
    states: Mapping[str, NDArray[np.int32]],
    rules: Sequence[Rule],
    schema: Mapping[str, Column],
    models: Mapping[str, ColumnModel],
    rng: np.random.Generator,
) -> None:
    """Draw anew, in place, the larger values that are below their smaller ones; columns from the smallest up."""
    for name in in_order(rules, AtMost):
        column = schema[name]
        places[name] = _on_steps(places[name], column)
        below = [rule.column for rule in rules if isinstance(rule, AtMost) and rule.other == name]
        for smaller in below:
            least = _to_place(_to_number(places[smaller], schema[smaller]), column)
            is_low = np.flatnonzero(places[name] < least)  # never where either is null
            if len(is_low):
                drawn = _drawn_above(models[name], states[name][is_low], least[is_low], rng)
                places[name][is_low] = np.maximum(_on_steps(drawn, column), least[is_low])


def _drawn_above(model: ColumnModel, states: NDArray[np.int32], least: Floats, rng: np.random.Generator) -> Floats:
    """Places at or above `least`: by the weights of the row's state, else of the column, else the least itself."""
    places = np.full(len(least), np.nan)
    is_value = ~model.is_null
    inside = model.inside()
    for state in np.unique(states):
        rows = np.flatnonzero(states == state)
        leaves = np.flatnonzero((model.states == state) & is_value)
        places[rows] = _above(model, leaves, inside[leaves], least[rows], rng)
    rows = np.flatnonzero(np.isnan(places))
    leaves = np.flatnonzero(is_value)
    places[rows] = _above(model, leaves, model.weights[leaves], least[rows], rng)
    return np.where(np.isnan(places), least, places)


def _above(
    model: ColumnModel, leaves: NDArray[np.int64], weights: Floats, least: Floats, rng: np.random.Generator
) -> Floats:
    """Places at or above `least` by the weights of some leaves, in ascending order; NaN where those hold nothing."""
    if not len(leaves) or not weights.sum() > 0:
        return np.full(len(least), np.nan)
    ends = np.stack([model.low[leaves], model.low[leaves] + model.length[leaves]], axis=1).ravel()
    cumulative = np.cumsum(weights) / weights.sum()
    reached = np.stack([np.concatenate([[0.0], cumulative[:-1]]), cumulative], axis=1).ravel()
    start = np.interp(least, ends, reached)
    drawn = np.interp(start + (1 - start) * rng.random(len(least)), reached, ends)
    return np.where(start < 1, np.maximum(drawn, least), np.nan)


def _on_steps(places: Floats, column: Column) -> Floats:
    """Places of values that the column can have: multiples where it has them, the starts of whole numbers."""
    if isinstance(column, Number) and column.multiple_of is not None:
        low = 0 if isinstance(column, Real) else integer_bounds(column)[0]
        numbers = places if isinstance(column, Real) else np.floor(places) + low
        return nearest_multiples(numbers, column) - low
    return places if isinstance(column, Real) else np.floor(places)


def _state_range(model: ColumnModel, column: Column) -> tuple[Floats, Floats]:
    """Smallest and largest number of each state, over its leaves that are not null."""
    smallest, largest = np.full(model.n_states, np.inf), np.full(model.n_states, -np.inf)
    is_value = ~model.is_null
    low = _to_number(model.low, column)
    # Whole numbers are places of length 1, and the last of a leaf is one below its end.
    high = _to_number(model.low + model.length - (0 if isinstance(column, Real) else 1), column)
    np.minimum.at(smallest, model.states[is_value], low[is_value])
    np.maximum.at(largest, model.states[is_value], high[is_value])
    return smallest, largest


def _is_null_state(model: ColumnModel) -> NDArray[np.bool_]:
    is_null = np.zeros(model.n_states, dtype=np.bool_)
    is_null[model.states[model.is_null]] = True
    return is_null


def _says_empty(rule: EmptyWhen, model: ColumnModel, column: Column) -> NDArray[np.bool_]:
    """The states of the other column in which the rule's column is null."""
    if rule.values is None:
        return _is_null_state(model)
    says = np.zeros(model.n_states, dtype=np.bool_)
    is_listed = np.isin(model.low.astype(np.int64), rule.places(column)) & ~model.is_null
    says[model.states[is_listed]] = True
    return says


def _to_number(places: Floats, column: Column) -> Floats:
    """Places as physical numbers, in which columns can be compared."""
    return places if isinstance(column, Real) else np.floor(places) + integer_bounds(column)[0]


def _to_place(numbers: Floats, column: Column) -> Floats:
    """The least place of a value at or above a physical number."""
    if isinstance(column, Number) and column.multiple_of is not None:
        step = column.multiple_of
        numbers = nearest_multiples(np.ceil(np.round(numbers / step, 9)) * step, column)
    return numbers if isinstance(column, Real) else np.ceil(numbers) - integer_bounds(column)[0]
