"""Conditions, balance and rules on sampled rows: how draws obey them without throwing rows away. PUBLIC.

A condition restricts a column's leaves to what it allows, which leaves a share of each state; inference in the
model over states does the rest. Whole numbers and timestamps are exact, however large.

    derived columns       conditions on derived columns as conditions on their sources
    balance               shares of one's choice for the values of a column
    restricted columns    a column with nearer bounds, in exact places
    conditions            values, ranges and lists: the column cut to what they allow
    rules                 states that cannot meet, and values dealt out again within states
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from numbers import Real as AnyReal
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Bounded, Column, Listed, Real, exact, whole_range
from spinney.columns.base import as_float, shown
from spinney.columns.reading import nearest_multiples, numbers_rounding_to
from spinney.compiled import compiled
from spinney.errors import ParameterError, SchemaError, raise_alone
from spinney.forest.release.columns import ColumnModel, Floats, joined
from spinney.forest.release.related import Asked, each_of, related_among, rests, with_codes, without_codes
from spinney.grid.axes import Parting, column_axis, fence, partings_of
from spinney.release.answers.question import allowed, never, plain
from spinney.schema.rules import (
    AtMost,
    Lag,
    Rule,
    clauses_of,
    followed,
    in_order,
    lags_of,
    least_values,
    most_values,
    orders_of,
)
from spinney.schema.rules.base import Number, ValueSet, universe
from spinney.schema.schema import Schema

# ------------------------------------------------------------------------------------------------------ derived columns
# Conditions on columns that are derived, as conditions on the columns that they are derived from.


def asked_of_modelled(where: Mapping[str, Any], schema: Schema) -> dict[str, list[Any]]:
    """Conditions by modelled column, in the order in which they were asked."""
    derived = {rule.column for rule in schema._derivations}
    found: dict[str, list[Any]] = {}
    every = [(name, one) for name, asked in where.items() for one in each_of(asked)]
    for name, wanted in every:
        if name not in derived or isinstance(wanted, Asked):
            found.setdefault(name, []).append(wanted)
            continue
        source, values = of_modelled(name, allowed(name, schema[name], wanted), schema, argument="where")
        found.setdefault(source, []).append(Asked(name, wanted, values))
    return found


def of_modelled(name: str, values: ValueSet, schema: Schema, *, argument: str) -> tuple[str, ValueSet]:
    """The modelled column that a derived one follows from, and its values that lead to some of the derived one's."""
    try:
        return followed(name, values, {rule.column: rule for rule in schema._derivations}, schema)
    except SchemaError as err:
        raise_alone(ParameterError(f"{argument}: {err}"))


def followed_to(names: Iterable[str], schema: Schema) -> list[str]:
    """The modelled columns that some columns follow from, themselves included where they are modelled."""
    by_column = {rule.column: rule for rule in schema._derivations}
    waiting = list(names)
    found: dict[str, None] = {}
    while waiting:
        one = waiting.pop(0)
        if one in schema._modelled:
            found[one] = None
        waiting += by_column[one].sources if one in by_column else ()
    return list(found)


def follows_from_lag(name: str, schema: Schema) -> bool:
    """Whether a column is another one and a difference, or is computed from such a column."""
    return bool(schema._lags) and not schema._lags.keys().isdisjoint(followed_to([name], schema))


def part_starts(schema: Schema) -> dict[str, Sequence[Number]]:
    """Where parts of columns begin that rules tell apart, by modelled column."""
    drawn = schema._as_drawn
    named = {*schema._related, *(name for clause in clauses_of(schema.rules, schema) for name in clause)}
    axes = {name: column_axis(name, drawn[name], in_rules=True) for name in named}
    return {name: parting.starts[1:] for name, parting in partings_of(schema, axes).items()}


# -------------------------------------------------------------------------------------------------------------- balance
# Balanced rows: `balance={"Class": 0.5}` gives the values of a category or a boolean shares of one's choice.
#
# States of the column are weighted until its values have the shares that were asked for. Of a column that is derived,
# the values of its source are: those that lead to one value keep their proportions among themselves.


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
    law = wanted_shares(name, column, shares)
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


def wanted_shares(name: str, column: Column, shares: Any) -> Floats:
    """Shares of all values, adding up to 1: from one number for the second of two, or from a mapping of all."""
    if not isinstance(column, Listed):
        raise ParameterError(f"balance: column {name!r} is of type {column.type_name}; balance categories or booleans")
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
        known = values[column._place_of(plain(value), name=name, argument="balance")]
        if known in by_value:
            raise ParameterError(f"balance: {shown(known)} of column {name!r} is given two shares; give one")
        by_value[known] = _share(name, share)
    total = sum(by_value.values())
    if abs(total - 1) > 1e-6:
        raise ParameterError(f"balance: the shares of column {name!r} add up to {total:g}, not to 1")
    return np.array([by_value.get(value, 0.0) / total for value in values])


def _share(name: str, share: Any) -> float:
    """A share as a number, or an error that names it as it was given."""
    is_number = isinstance(share, (AnyReal, Decimal)) and not isinstance(share, bool)
    if not is_number or not 0 <= as_float(share) <= 1:
        given = f"{as_float(share):g}" if isinstance(share, Fraction) else shown(share)
        raise ParameterError(f"balance: {given} is not a share between 0 and 1 (column {name!r})")
    return float(share)


# --------------------------------------------------------------------------------------------------- restricted columns
# A column cut to a range: the column with nearer bounds, and what is left of its leaves.
#
# Places of whole numbers, dates and timestamps count from the low bound, in floats, which are exact up to 2^53 only.
# So a cut column begins at a bound of its own: however far from the first value a range lies, its places are small
# again, and what is drawn from them lies within the range to the last unit. Columns in which every value counts, as
# under a rule or a condition, are compared in whole numbers by `whole_numbers`.


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
    first = column._aligned(math.ceil(max(low, lowest)), up=True)
    last = column._aligned(math.floor(min(high, highest)), up=False)
    if first > last:
        return None
    near = replace(column, low=column._limit(first), high=column._limit(last))
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


# ----------------------------------------------------------------------------------------------------------- conditions
# Conditions on sampled rows: `where={"state": "CA", "age": (30, 40)}`.
#
# A condition restricts a column's leaves to what it allows, which leaves a share of each state; inference in
# the model over states does the rest, so no drawn row is thrown away.
#
#     number, date     one value, (low, high) with both ends included, or a list of values (whole numbers and
#                      dates); None where a range has no end
#     category         one value or a list of values
#     boolean          True or False; 1 and 0, "true" and "false" mean the same
#     null             None
#
# Values may be Python's, numpy's, pandas' or pyarrow's own. Whole numbers and timestamps are exact, however
# large.


def condition(
    name: str, column: Column, model: ColumnModel, wanted: Any, *, starts: Sequence[Number] = ()
) -> Restriction:
    """A column cut to what `wanted` allows. Raises a ParameterError where that is nothing, or makes no sense.

    `starts` are where parts of the column begin that rules tell apart.
    """
    if isinstance(wanted, Asked):
        values, shown_wanted = wanted.allowed, shown(wanted.wanted)
        refusal = ParameterError(
            f"where: column {wanted.name!r} is never {shown_wanted} in this release; ask for others"
        )
        if isinstance(column, Bounded) and not column.is_whole and len(values.ranges) + values.has_null > 1:
            raise ParameterError(
                f"where: {shown_wanted} of column {wanted.name!r} is no single range of {name!r}; ask for "
                "neighbouring values"
            )
    else:
        wanted = plain(wanted)
        if isinstance(column, Real) and isinstance(wanted, list):
            hint = f": ({shown(wanted[0])}, {shown(wanted[1])})" if len(wanted) == 2 else ""
            raise ParameterError(
                f"where: column {name!r} is real and does not take a list of values; ask for one value or a range "
                f"(low, high){hint}"
            )
        values, refusal = allowed(name, column, wanted), never(name, wanted)
    cut = _cut_to_set(name, column, model, values)
    if isinstance(column, Bounded) and values.ranges and (cut is None or not cut.left.any()):
        # A value may be in the cell that a leaf of one round value stands for.
        fences = np.array([fence(column, start)[1] for start in starts])
        filled = model.filling_gaps(shortest=float(column.is_whole), fences=fences)
        cut = _cut_to_set(name, column, filled, values)
    if cut is None or not cut.left.any():
        raise refusal
    return cut


def _cut_to_set(name: str, column: Column, model: ColumnModel, values: ValueSet) -> Restriction | None:
    """A column cut to some of its values; None where that leaves no number of it."""
    if values.has_null and not values.ranges:
        return Restriction(column, *model.restrict_to_null())
    if isinstance(column, Listed):
        places = [place for low, high in values.ranges for place in range(int(low), int(high) + 1)]
        return Restriction(column, *model.restrict_to_values(np.array(places, dtype=np.int64), null=values.has_null))
    assert isinstance(column, Bounded)
    if values.is_empty:
        return None
    first, last = values.ranges[0][0], values.ranges[-1][1]
    cut = restricted(column, model, first, last)
    if len(values.ranges) + values.has_null == 1 or (cut is None and not values.has_null):
        return cut
    if last - first >= EXACT_PLACES:
        raise ParameterError(f"where: column {name!r}: the values are 2^53 or more apart; ask for one at a time")
    if cut is None:
        return Restriction(column, *model.restrict_to_null())
    origin = whole_range(cut.column)[0]
    ends = np.array([(low - origin, high + 1 - origin) for low, high in values.ranges], dtype=np.float64)
    piece, left = cut.model.restrict_to_ranges(ends[:, 0], ends[:, 1])
    pieces = [(piece, cut.left * left)]
    return Restriction(cut.column, *joined([*pieces, *([model.restrict_to_null()] if values.has_null else [])]))


# ---------------------------------------------------------------------------------------------------------------- rules
# Rows that obey the schema's rules: states that cannot meet, and values that are dealt out again within states.
#
# Rules are public. A model over states gives no weight to states that break a rule together, and values that rules
# tell apart never share a state. Where states that `AtMost` compares overlap, the values of a state are dealt out
# again among its rows, so that counts of its values stay as they were drawn. Rows for which none is left exchange
# larger values with others, and the few that cannot get a new one, drawn from what their state holds above the
# smaller one, or the next that the column has. For that to be there, columns are first cut to values that leave room
# for the others, and conditions on rows are such values too: a smaller column ends where the larger one may end. No
# row is thrown away.


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
    rests = {rule.column: without_codes(models[rule.column], rule, schema) for rule in related_among(rules, models)}
    orders = [rule for rule in orders_of(rules, schema) if isinstance(rule, AtMost)]
    masks = [(rule.columns, _not_above(rule, schema, {**models, **rests})) for rule in orders]
    lags = lags_of(rules, schema)
    computed = {lag.column for lag in lags}
    for lag in lags:
        in_reach = _in_reach(lag, schema, models, is_computed=lag.source in computed)
        masks.append(((lag.source, lag.column), in_reach))
    masks += [
        (tuple(clause), any_of(states_in(clause[name], models[name], partings[name]) for name in clause))
        for clause in clauses_of(rules, schema)
    ]
    return merged((tuple(places[name] for name in names), possible) for names, possible in masks)


def any_of(insides: Iterable[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """A table with an axis for each column that is True where the state of some column is inside."""
    possible: NDArray[np.bool_] = np.zeros((), dtype=np.bool_)
    for inside in insides:
        possible = np.logical_or.outer(possible, inside)
    return possible


def merged(masks: Iterable[tuple[tuple[int, ...], NDArray[np.bool_]]]) -> Zeros:
    """Masks with their columns ascending, one for each set of columns."""
    zeros: dict[tuple[int, ...], NDArray[np.bool_]] = {}
    for columns, possible in masks:
        key = tuple(sorted(columns))
        zeros[key] = zeros.get(key, np.True_) & possible.transpose(np.argsort(columns))
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


def _in_reach(
    lag: Lag, schema: Mapping[str, Column], models: Mapping[str, ColumnModel], *, is_computed: bool
) -> NDArray[np.bool_]:
    """The pairs of states of which one holds a value, and one a difference, that lead to a value of the column.

    Of a source that is computed itself, states say only whether it is null.
    """
    source, column = schema[lag.source], schema[lag.column]
    assert isinstance(source, Bounded)
    assert isinstance(column, Bounded)
    origin = whole_range(source)[0]
    first, last = (int(end) - origin for end in column._first_and_last())
    smallest, largest = _state_range(models[lag.source], source, origin)
    least, most = _state_range(models[lag.column], lag.difference, 0)
    is_alone, is_missing = np.isinf(smallest), np.isinf(least)
    can_be = np.broadcast_to(least <= lag.most, (len(smallest), len(least)))
    if not is_computed:
        can_be = can_be & (smallest[:, None] + least[None, :] <= last)
        can_be &= largest[:, None] + np.minimum(most, lag.most)[None, :] >= first
    without = np.zeros(len(least), dtype=np.bool_) if lag.alone is None else most >= lag.alone
    return np.where(is_alone[:, None], without[None, :], can_be) | is_missing[None, :]


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
    return {name: keeping_nulls(cut, models[name]) for name, cut in cuts.items()}


def keeping_nulls(cut: Restriction, model: ColumnModel) -> Restriction:
    """What is left of a column, and its nulls."""
    null_model, null_left = model.restrict_to_null()
    weights = np.where(cut.model.is_null, null_model.weights, cut.model.weights)
    return Restriction(cut.column, replace(cut.model, weights=weights), np.maximum(cut.left, null_left))


def feasible_of(
    schema: Schema,
    drawn: Mapping[str, Column],
    models: Mapping[str, ColumnModel],
    *,
    asked: Collection[str] = (),
    nulls: Collection[str] = (),
) -> dict[str, Restriction]:
    """The same by the rules of a schema, where columns may have codes: these are kept, and obey as nulls do."""
    without = rests(schema, drawn, models)
    told = {name: rest for name, rest in without.items() if rest is not None}
    near = dict(drawn) | {name: rest.column for name, rest in told.items()}
    left = dict(models) | {name: rest.model for name, rest in told.items()}
    cuts = feasible(schema._orders, near, left, asked=asked, nulls={*nulls, *(without.keys() - told.keys())})
    return {name: with_codes(told[name], cut) if name in told else cut for name, cut in cuts.items()}


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
            n_broken += deal_above(places[name], least_of(name), states[name], rng)
        if not n_broken:
            break
        for name in reversed(names):  # and down, below those that are never smaller
            negated = -places[name]
            deal_above(negated, -most_of(name), states[name], rng)
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


def deal_above(places: Floats, least: Floats, states: NDArray[np.int32], rng: np.random.Generator) -> int:
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
        least = floats_not_below(larger._aligned(numbers, up=True) - whole_range(larger)[0])
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
