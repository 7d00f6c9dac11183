"""Rows that obey the schema's rules: states that cannot meet, and larger values drawn above the smaller ones.

Rules are public. A model over states gives no weight to states that break a rule together, and values that rules tell
apart never share a state. Where states that `AtMost` compares overlap, a row whose values break it gets a new larger
value, drawn from what its own state, or else its column, holds above the smaller one. For that to be there, columns are
first cut to values that leave room for the others, and conditions on rows are such values too: a smaller column ends
where the larger one may end. No row is thrown away.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Bounded, Column, whole_range
from spinney.columns.steps import nearest_multiples
from spinney.errors import ParameterError
from spinney.forest.release.column_model import ColumnModel, Floats
from spinney.forest.release.restrict import Restriction, floats_not_below, restricted, whole_numbers
from spinney.schema.parting import Parting
from spinney.schema.rules import AtMost, Rule, clauses_of, in_order, least_values, most_values
from spinney.schema.rules.values import ValueSet

_WHOLE_LIMIT = 2.0**62  # beyond all whole numbers that a column can have

Zeros = list[tuple[tuple[int, ...], NDArray[np.bool_]]]


def possible_states(
    rules: Sequence[Rule],
    schema: Mapping[str, Column],
    models: Mapping[str, ColumnModel],
    partings: Mapping[str, Parting],
) -> Zeros:
    """Which combinations of states can obey all rules, by sets of columns: their places in `models`, ascending."""
    places = {name: place for place, name in enumerate(models)}
    zeros: dict[tuple[int, ...], NDArray[np.bool_]] = {}

    def exclude(names: Sequence[str], possible: NDArray[np.bool_]) -> None:
        clique = tuple(places[name] for name in names)
        order = np.argsort(clique)
        columns = tuple(sorted(clique))
        zeros[columns] = zeros.get(columns, np.True_) & possible.transpose(order)

    for rule in rules:
        if isinstance(rule, AtMost):
            exclude(rule.columns, _not_above(rule, schema, models))
    for clause in clauses_of(rules, schema):
        possible: NDArray[np.bool_] = np.zeros((), dtype=np.bool_)
        for name, allowed in clause.items():
            possible = np.logical_or.outer(possible, states_in(allowed, models[name], partings[name]))
        exclude(list(clause), possible)
    return list(zeros.items())


def states_in(allowed: ValueSet, model: ColumnModel, parting: Parting) -> NDArray[np.bool_]:
    """The states of a column whose values are in a set that the parting tells from others."""
    inside = parting.is_in[parting.sets.index(allowed)][parting.labels_at(model.low)]
    found = np.zeros(model.n_states, dtype=np.bool_)
    found[model.states] = np.where(model.is_null, allowed.has_null, inside)
    return found


def _not_above(rule: AtMost, schema: Mapping[str, Column], models: Mapping[str, ColumnModel]) -> NDArray[np.bool_]:
    """The pairs of states of which one holds a value that is not above one of the other."""
    is_whole = all(schema[name].is_whole for name in rule.columns)
    origin = whole_range(schema[rule.column])[0] if is_whole else 0
    smallest, _ = _state_range(models[rule.column], schema[rule.column], origin)
    _, largest = _state_range(models[rule.other], schema[rule.other], origin)
    # A state of nulls has an empty range, from infinity to minus infinity, and obeys everything.
    return (smallest[:, None] <= largest[None, :]) | np.isinf(smallest)[:, None] | np.isinf(largest)[None, :]


def feasible(
    rules: Sequence[Rule],
    schema: Mapping[str, Column],
    models: Mapping[str, ColumnModel],
    *,
    asked: Collection[str] = (),
    nulls: Collection[str] = (),
) -> dict[str, Restriction]:
    """Columns of `AtMost` cut to values that leave room for those above and below them.

    Columns that may be null keep their nulls, and pass limits on as if they were there; where that leaves no value to
    one of them, it is cut to nulls. A ParameterError says that no row can obey.

    Args:
        rules: the schema's.
        schema: columns with the bounds of what is left of them.
        models: what is left of their leaves.
        asked: columns of which a condition was asked, which are not null in any row unless they are in `nulls`.
        nulls: columns that are null in every row, where every rule holds.
    """
    names = [name for name in in_order(rules, AtMost) if name not in nulls]
    cuts = _cut_together(rules, schema, models, names)
    if cuts is None:
        held = [name for name in names if name in asked or not schema[name].nullable]
        for name in names:
            if name not in held and _cut_together(rules, schema, models, [*held, name]) is not None:
                held.append(name)
        cuts = _cut_together(rules, schema, models, held)
        if cuts is None:
            raise ParameterError("no values of these columns obey the rules together")
        cuts |= {
            name: Restriction(schema[name], *models[name].restrict_to_null()) for name in names if name not in held
        }
    for name, (column, model, left) in cuts.items():
        null_model, null_left = models[name].restrict_to_null()
        weights = np.where(model.is_null, null_model.weights, model.weights)
        cuts[name] = Restriction(column, replace(model, weights=weights), np.maximum(left, null_left))
    return cuts


def _cut_together(
    rules: Sequence[Rule], schema: Mapping[str, Column], models: Mapping[str, ColumnModel], names: Collection[str]
) -> dict[str, Restriction] | None:
    """Columns, none of them null, cut to values that leave room for each other; None where one is left with none."""
    kept = [rule for rule in rules if isinstance(rule, AtMost) and set(rule.columns) <= set(names)]
    near: dict[str, Column] = dict(schema)
    while True:
        least, most = least_values(kept, near), most_values(kept, near)
        cuts: dict[str, Restriction] = {}
        for name in least:
            column, model = schema[name], models[name]
            assert isinstance(column, Bounded)
            cut = restricted(column, model, least[name], most[name])
            if cut is not None and not cut.left.any():  # all that was seen breaks a rule: what is left is even
                cut = restricted(column, model.weighing(_reach(model)), least[name], most[name])
            if cut is None:
                return None
            cuts[name] = cut
        before, near = near, near | {name: cut.column for name, cut in cuts.items()}
        if near == before:  # until then a list of values may have moved an end, and so those of others
            return cuts


def _reach(model: ColumnModel) -> Floats:
    """How far leaves reach: those of one real number as far as the shortest other, null not at all."""
    least = float(model.length[model.length > 0].min(initial=1.0))
    return np.where(model.is_null, 0.0, np.where(model.length > 0, model.length, least))


def resample_above(
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
            least = _least_places(places[smaller], schema[smaller], column)
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
        leaves = np.flatnonzero((model.states == state) & is_value & (inside > 0))
        places[rows] = _above(model, leaves, inside[leaves], least[rows], rng)
    rows = np.flatnonzero(np.isnan(places))
    leaves = np.flatnonzero(is_value & (model.weights > 0))
    places[rows] = _above(model, leaves, model.weights[leaves], least[rows], rng)
    return np.where(np.isnan(places), least, places)


def _above(
    model: ColumnModel, leaves: NDArray[np.int64], weights: Floats, least: Floats, rng: np.random.Generator
) -> Floats:
    """Places at or above `least` by the weights of some leaves, in ascending order; NaN where those hold nothing."""
    if not len(leaves):
        return np.full(len(least), np.nan)
    low, stop = model.low[leaves], model.low[leaves] + model.length[leaves]
    cumulative = np.cumsum(weights)
    cumulative /= cumulative[-1]
    ends = np.stack([low, stop], axis=1).ravel()
    reached = np.stack([np.concatenate([[0.0], cumulative[:-1]]), cumulative], axis=1).ravel()
    start = np.interp(least, ends, reached)
    # A leaf of one number begins and ends there, and is not below it.
    knot = np.minimum(np.searchsorted(ends, least), len(ends) - 1)
    start = np.where(ends[knot] == least, reached[knot], start)
    aim = start + (1 - start) * rng.random(len(least))
    leaf = np.minimum(np.searchsorted(cumulative, aim, side="right"), len(leaves) - 1)
    # The end of a leaf is in the next, or in none; rounding must not reach it.
    last = np.where(stop > low, np.nextafter(stop, -np.inf), low)[leaf]
    drawn = np.clip(np.interp(aim, reached, ends), low[leaf], last)
    return np.where(start < 1, np.maximum(drawn, least), np.nan)


def _on_steps(places: Floats, column: Column) -> Floats:
    """Places of values that the column can have: multiples where it has them, the starts of whole numbers."""
    assert isinstance(column, Bounded)
    if not column.is_whole:
        return places if column.spacing is None else nearest_multiples(places, column)
    if column.step > 1:
        steps = nearest_multiples(whole_numbers(places, column), column) - whole_range(column)[0]
        return np.where(np.isnan(places), np.nan, steps)
    return np.floor(places)


def _least_places(places: Floats, smaller: Column, larger: Column) -> Floats:
    """The least places of the larger column that are not below the smaller one's values; NaN for null."""
    assert isinstance(larger, Bounded)
    if not larger.is_whole:
        least = floats_not_below(whole_numbers(places, smaller)) if smaller.is_whole else places
        if larger.spacing is not None:
            nearest = nearest_multiples(least, larger)
            least = np.where(nearest < least, nearest_multiples(nearest + float(larger.spacing), larger), nearest)
    else:
        if smaller.is_whole:
            numbers = whole_numbers(places, smaller)
        else:
            limited = np.clip(np.where(np.isnan(places), 0, places), -_WHOLE_LIMIT, _WHOLE_LIMIT)
            numbers = np.ceil(limited).astype(np.int64)
        least = floats_not_below(larger.aligned(numbers, up=True) - whole_range(larger)[0])
    return np.where(np.isnan(places), np.nan, least)


def _state_range(model: ColumnModel, column: Column, origin: int) -> tuple[Floats, Floats]:
    """Smallest and largest number of each state above `origin`, over its leaves that are not null."""
    smallest, largest = np.full(model.n_states, np.inf), np.full(model.n_states, -np.inf)
    is_value = ~model.is_null
    # Whole numbers are places of length 1, and the last of a leaf is one below its end.
    first, unit = (whole_range(column)[0] - origin, 1) if column.is_whole else (0, 0)
    low, high = model.low + first, model.low + model.length - unit + first
    np.minimum.at(smallest, model.states[is_value], low[is_value])
    np.maximum.at(largest, model.states[is_value], high[is_value])
    return smallest, largest
