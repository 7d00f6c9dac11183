"""Rows that obey the schema's rules: states that cannot meet, and values that are dealt out again within states.

Rules are public. A model over states gives no weight to states that break a rule together, and values that rules tell
apart never share a state. Where states that `AtMost` compares overlap, the values of a state are dealt out again among
its rows, so that counts of its values stay as they were drawn. Rows for which none is left exchange larger values with
others, and the few that cannot get a new one, drawn from what their state holds above the smaller one, or the next that
the column has. For that to be there, columns are first cut to values that leave room for the others, and conditions on
rows are such values too: a smaller column ends where the larger one may end. No
row is thrown away.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Bounded, Column, whole_range
from spinney.columns.steps import nearest_multiples
from spinney.compiled import compiled
from spinney.errors import ParameterError
from spinney.forest.release.column_model import ColumnModel, Floats
from spinney.forest.release.restrict import Restriction, floats_not_below, restricted, whole_numbers
from spinney.schema.parting import Parting
from spinney.schema.rules import AtMost, Rule, clauses_of, in_order, least_values, most_values
from spinney.schema.rules.values import ValueSet

# Values are dealt out upwards and downwards so often at the most.
_DEALS = 4
# Values are dealt out among the rows that break a rule and so many others for each.
_PARTNERS = 16
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
    """Make rows obey `AtMost`, in place: values are dealt out again within their states, the few that are left drawn.

    Every state keeps the values that were drawn for it, so that counts of one column, and tables of states, stay as
    they are but for the values that are drawn anew.
    """
    names = in_order(rules, AtMost)
    pairs = [rule.columns for rule in rules if isinstance(rule, AtMost)]
    for name in names:
        places[name] = _on_steps(places[name], schema[name])

    def least_of(name: str) -> Floats:
        """The least places that smaller columns leave to a column, minus infinity where they are null."""
        least = np.full(len(places[name]), -np.inf)
        for smaller in (column for column, larger in pairs if larger == name):
            least = np.fmax(least, _least_places(places[smaller], schema[smaller], schema[name]))
        return least

    def most_of(name: str) -> Floats:
        """The largest places that larger columns leave to a column, infinite where they are null."""
        most = np.full(len(places[name]), np.inf)
        for larger in (other for column, other in pairs if column == name):
            least = _least_places(places[name], schema[name], schema[larger])
            most = np.fmin(most, _most_places(places[name], least, places[larger]))
        return most

    for _ in range(_DEALS):
        n_broken = 0
        for name in names:  # from the smallest up: every column above those that are never larger
            n_broken += _deal_above(places[name], least_of(name), states[name], rng)
        if not n_broken:
            break
        for name in reversed(names):  # and down, below those that are never smaller
            negated = -places[name]
            _deal_above(negated, -most_of(name), states[name], rng)
            places[name] = -negated + 0.0  # adding 0 unsigns 0
    else:
        for name in names:
            _exchange(places[name], least_of(name), rng)
    for name in names:
        least = least_of(name)
        is_low = np.flatnonzero(places[name] < least)  # never where either is null
        if len(is_low):
            drawn = _drawn_above(models[name], states[name][is_low], least[is_low], rng)
            places[name][is_low] = np.maximum(_on_steps(drawn, schema[name]), least[is_low])


def _deal_above(places: Floats, least: Floats, states: NDArray[np.int32], rng: np.random.Generator) -> int:
    """Deal places out again, each at or above the least of its row, within states: of rows that are below, and others.

    It gives how many were below. Rows take one at random of those that will do, in descending order of their least; so
    the k-th of them has as many to choose from as are above its least, less k - 1, and all ways to deal are equally
    likely. Rows for which nothing is left share what the others leave over. Nulls stay where they are.
    """
    is_low = places < least
    n_low = int(np.count_nonzero(is_low))
    if not n_low:
        return 0
    is_dealt = np.zeros(int(states.max()) + 1, dtype=np.bool_)
    is_dealt[states[is_low]] = True
    others = np.flatnonzero(is_dealt[states] & ~is_low & ~np.isnan(places))
    rows = np.sort(np.concatenate([np.flatnonzero(is_low), _partners(others, n_low, rng)]))
    values, needed = places[rows], least[rows]
    order = np.argsort(-values), np.argsort(-needed)
    places[rows] = _dealt(values, needed, states[rows], *order, rng.random(len(rows)))
    return n_low


@compiled
def _dealt(
    values: Floats,
    least: Floats,
    states: NDArray[np.int32],
    by_value: NDArray[np.int64],
    by_least: NDArray[np.int64],
    chances: Floats,
) -> Floats:
    """Values of rows as they are dealt; both orders are descending."""
    n_rows = values.size
    ends = np.zeros(states.max() + 2, dtype=np.int64)
    for row in range(n_rows):
        ends[states[row] + 1] += 1
    ends = np.cumsum(ends)
    held, takers = np.empty(n_rows), np.empty(n_rows, dtype=np.int64)
    next_value, next_taker = ends.copy(), ends.copy()
    for place in range(n_rows):
        row = by_value[place]
        held[next_value[states[row]]] = values[row]
        next_value[states[row]] += 1
        row = by_least[place]
        takers[next_taker[states[row]]] = row
        next_taker[states[row]] += 1
    dealt, late = np.empty(n_rows), np.empty(n_rows, dtype=np.int64)
    for state in range(ends.size - 1):
        first, stop = ends[state], ends[state + 1]
        # Those from `first` on that are above the least of the row at hand, and not dealt yet, are open.
        reached, n_open, n_late = first, 0, 0
        for place in range(first, stop):
            row = takers[place]
            while reached < stop and held[reached] >= least[row]:
                held[first + n_open] = held[reached]
                n_open += 1
                reached += 1
            if n_open == 0:
                late[n_late] = row
                n_late += 1
                continue
            chosen = first + int(chances[row] * n_open)
            dealt[row] = held[chosen]
            n_open -= 1
            held[chosen] = held[first + n_open]
        for place in range(n_late):
            dealt[late[place]] = held[first + place] if place < n_open else held[reached + place - n_open]
    return dealt


def _exchange(places: Floats, least: Floats, rng: np.random.Generator) -> None:
    """Let rows that are below their least exchange places, in place, with others that obey, whatever their states.

    Each takes the smallest that will do, which leaves fewest without one; among those that have one, rows with a larger
    least then get a larger place, so that places move as little as they can.
    """
    rows = np.flatnonzero(places < least)
    if len(rows):
        others = np.flatnonzero((places >= least) & np.isfinite(least))
        rows = np.sort(np.concatenate([rows, _partners(others, len(rows), rng)]))
        values, needed = places[rows], least[rows]
        order, same = (np.argsort(-values), np.argsort(-needed)), np.zeros(len(rows), dtype=np.int32)
        places[rows] = _dealt(values, needed, same, *order, np.full(len(rows), np.nextafter(1.0, 0.0)))
        fine = rows[places[rows] >= needed]
        places[fine[np.argsort(least[fine], kind="stable")]] = np.sort(places[fine])


def _partners(others: NDArray[np.int64], n_rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Some of the other rows, so many for each of the rows."""
    n_partners = _PARTNERS * n_rows
    return others if n_partners >= len(others) else others[rng.choice(len(others), n_partners, replace=False)]


def _most_places(places: Floats, least: Floats, larger: Floats) -> Floats:
    """The largest place of a column at which the larger one would still obey; infinite where that is null.

    Only places that rows have are looked at: `least` is what each of them leaves to the larger column.
    """
    rows = np.flatnonzero(~np.isnan(places))
    order = rows[np.argsort(places[rows])]
    by_larger = np.argsort(larger)  # sorted, they are found several times as fast
    most = np.empty(len(places))
    most[by_larger] = np.append(-np.inf, places[order])[np.searchsorted(least[order], larger[by_larger], side="right")]
    return np.where(np.isnan(larger), np.inf, most)


def _drawn_above(model: ColumnModel, states: NDArray[np.int32], least: Floats, rng: np.random.Generator) -> Floats:
    """Places at or above `least`: by the weights of the row's state, or else the next that the column has."""
    places = np.full(len(least), np.nan)
    inside = model.inside()
    holds = ~model.is_null & (inside > 0)
    for state in np.unique(states):
        rows = np.flatnonzero(states == state)
        leaves = np.flatnonzero((model.states == state) & holds)
        places[rows] = _above(model, leaves, inside[leaves], least[rows], rng)
    low, stop = model.low[holds], (model.low + model.length)[holds]
    if not len(low):
        return np.where(np.isnan(places), least, places)
    order = np.argsort(low)
    last = np.where(stop > low, np.nextafter(stop, -np.inf), low)[order]
    leaf = np.minimum(np.searchsorted(last, least), len(order) - 1)
    return np.where(np.isnan(places), np.maximum(low[order][leaf], least), places)


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
