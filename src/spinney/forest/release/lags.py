"""Columns that are another one and a difference, in drawn rows: kept within bounds, and asked for. PUBLIC.

ranges       how far such columns reach, and what conditions on them leave of the columns that they follow from
rows         differences dealt out again where a row would leave the bounds
rejection    rows that meet conditions on computed columns, drawn until there are enough
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Bounded, Column, whole_range
from spinney.columns.reading import nearest_multiples
from spinney.errors import ParameterError
from spinney.forest.release.columns import ColumnModel, Floats
from spinney.forest.release.conditions import Restriction, deal_above, keeping_nulls, restricted, whole_numbers
from spinney.schema.rules import Lag, Runs
from spinney.schema.rules.base import ValueSet

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

# --------------------------------------------------------------------------------------------------------------- ranges
# The numbers that columns, and differences, can have together. Bounds of a sum are bounds of its parts.


class Reach(NamedTuple):
    """The least and the largest number of a column."""

    low: int
    high: int

    def cut_to(self, low: int, high: int) -> Reach:
        return Reach(max(self.low, low), min(self.high, high))


def reaches(
    lags: Sequence[Lag], differences: Mapping[str, Reach], columns: Mapping[str, Reach]
) -> tuple[dict[str, Reach], dict[str, Reach]]:
    """Differences and columns cut to what the others leave them; a range without numbers ends before it begins.

    Args:
        lags: in an order in which each follows from the ones before.
        differences: of every lag, by the column that it computes.
        columns: of these columns, and of those that they are computed from.
    """
    apart, near = dict(differences), dict(columns)
    for _ in range(len(lags) + 1):
        for lag in lags:
            source, column, between = near[lag.source], near[lag.column], apart[lag.column]
            near[lag.column] = column.cut_to(source.low + between.low, source.high + between.high)
        for lag in reversed(lags):
            source, column, between = near[lag.source], near[lag.column], apart[lag.column]
            near[lag.source] = source.cut_to(column.low - between.high, column.high - between.low)
            apart[lag.column] = between.cut_to(column.low - source.high, column.high - source.low)
    return apart, near


def narrowed(
    lags: Sequence[Lag],
    schema: Mapping[str, Column],
    near: Mapping[str, Column],
    models: Mapping[str, ColumnModel],
    asked: Mapping[str, ValueSet],
    *,
    days: Mapping[str, Runs],
) -> dict[str, Restriction]:
    """Columns and differences cut to what bounds, and conditions on computed columns, leave of them; nulls stay.

    Where a condition is asked, what leaves without rows could hold is left out too.

    Args:
        lags: in an order in which each follows from the ones before.
        schema: the columns as they are stated.
        near: the columns as they are drawn, with the bounds of what is left of them.
        models: what is left of their leaves.
        asked: the values that are asked for of computed columns.
        days: on which days columns lie that lie on some only.
    """
    computed = {lag.column for lag in lags}
    differences, columns = {}, {}
    for lag in lags:
        within = Reach(int(lag.difference.low), lag.most)
        found = _held(near[lag.column], models[lag.column], only_rows=bool(asked))
        if lag.column in days:  # to which rows are moved
            gap = days[lag.column].longest_gap
            found = Reach(found.low - gap, found.high + gap)
        differences[lag.column] = within if lag.alone is not None else within.cut_to(*found)
        columns[lag.column] = _bounds(lag.column, schema, days)
        ranges = asked[lag.column].ranges if lag.column in asked else ()
        if ranges and not asked[lag.column].has_null:
            columns[lag.column] = columns[lag.column].cut_to(int(ranges[0][0]), int(ranges[-1][1]))
        if lag.source not in computed:
            columns[lag.source] = _held(near[lag.source], models[lag.source], only_rows=bool(asked))
    apart, reached = reaches(lags, differences, columns)
    wanted = {name: reach for name, reach in reached.items() if name not in computed}
    wanted |= {lag.column: apart[lag.column] for lag in lags if lag.alone is None and lag.column not in days}
    cuts = {}
    for name, reach in wanted.items():
        column, model = near[name], models[name]
        assert isinstance(column, Bounded)
        first, last = whole_range(column)
        if reach.low <= first and reach.high >= last:
            continue
        cut = restricted(column, model, reach.low, reach.high)
        if cut is not None:
            cuts[name] = keeping_nulls(cut, model)
        elif not column.nullable:
            raise ParameterError("no values of these columns obey the rules together")
    return cuts


def _bounds(name: str, schema: Mapping[str, Column], days: Mapping[str, Runs]) -> Reach:
    """The least and the largest number of a column, on its days."""
    if name in days:
        return Reach(int(days[name].first[0]), int(days[name].last[-1]))
    column = schema[name]
    assert isinstance(column, Bounded)
    return Reach(*map(int, column._first_and_last()))


def _held(column: Column, model: ColumnModel, *, only_rows: bool) -> Reach:
    """The numbers of a column; with `only_rows`, those of leaves that hold rows."""
    first, last = whole_range(column)
    is_held = ~model.is_null & (model.length > 0) & (model.weights > 0)
    if not only_rows or not is_held.any():
        return Reach(first, last)
    low, stop = model.low[is_held].min(), (model.low + model.length)[is_held].max()
    return Reach(first, last).cut_to(first + int(low), first + int(np.ceil(stop)) - 1)


# ----------------------------------------------------------------------------------------------------------------- rows
# Rows whose columns are in bounds. A difference that would lead out of them is dealt out again among the rows of its
# state, so that differences keep their law; what is left is cut.


def settle(
    places: dict[str, Floats],
    states: Mapping[str, NDArray[np.int32]],
    lags: Sequence[Lag],
    schema: Mapping[str, Column],
    near: Mapping[str, Column],
    rng: np.random.Generator,
    *,
    days: Mapping[str, Runs],
) -> None:
    """Change differences, in place, so that every computed column lies within its bounds.

    Args:
        places: of the columns along `near`; of a computed one, of its difference.
        states: of the columns.
        lags: in an order in which each follows from the ones before.
        schema: the columns as they are stated.
        near: the columns as they are drawn.
        rng: deals.
        days: on which days columns lie that lie on some only; rows are moved to the nearest.
    """
    numbers: dict[str, tuple[Integers, Flags]] = {}
    ends = _ends(lags, schema, days)
    for lag in lags:
        if lag.source not in numbers:
            numbers[lag.source] = _numbers(places[lag.source], near[lag.source]), np.isnan(places[lag.source])
        source, is_alone = numbers[lag.source]
        origin, low, high = whole_range(near[lag.column])[0], int(lag.difference.low), int(lag.difference.high)
        first, last = ends[lag.column]
        least = np.where(is_alone, lag.alone or low, np.clip(first - source, low, lag.most))
        most = np.where(is_alone, high, np.clip(last - source, low, lag.most))
        is_null = np.isnan(places[lag.column])
        places[lag.column] = (_numbers(places[lag.column], near[lag.column]) - origin).astype(np.float64)
        places[lag.column][is_null] = np.nan
        floor, ceiling = ((end - origin).astype(np.float64) for end in (least, most))
        floor[is_null], ceiling[is_null] = -np.inf, np.inf
        deal_above(places[lag.column], floor, states[lag.column], rng)
        negated = -places[lag.column]
        deal_above(negated, -ceiling, states[lag.column], rng)
        drawn = -negated + 0.0
        difference = origin + np.where(is_null, 0.0, drawn).astype(np.int64)
        # A number that says how far the column is above its low, where there is a source after all.
        is_other = ~is_alone & ~is_null & (difference > lag.most)
        column = schema[lag.column]
        assert isinstance(column, Bounded)
        lowest = int(column._first_and_last()[0])
        difference = np.where(is_other, lowest + difference - (lag.alone or 0) - source, difference)
        # And a difference where there is none: the column is then as in some other row.
        difference = _without_source(difference, is_alone & ~is_null, lag, source, lowest, rng)
        difference = np.clip(difference, least, most)
        if lag.column in days:
            found = lag.numbers(source, is_alone, difference, column)
            least, most = (np.where(is_alone, end, source + limit) for end, limit in ((first, low), (last, lag.most)))
            difference = difference + days[lag.column].nearest(found, least, most) - found
        places[lag.column] = np.where(is_null, np.nan, (difference - origin).astype(np.float64))
        numbers[lag.column] = lag.numbers(source, is_alone, difference, column), is_null


def _without_source(
    difference: Integers, is_alone: Flags, lag: Lag, source: Integers, lowest: int, rng: np.random.Generator
) -> Integers:
    """Rows without a source whose number is a difference take the column of some row that has a source."""
    if lag.alone is None:
        return difference
    lost, others = np.flatnonzero(is_alone & (difference < lag.alone)), np.flatnonzero(~is_alone)
    if not len(lost) or not len(others):
        return difference
    taken = rng.choice(others, len(lost))
    difference[lost] = lag.alone + np.maximum(source[taken] + np.minimum(difference[taken], lag.most) - lowest, 0)
    return difference


def _numbers(places: Floats, column: Column) -> Integers:
    """Places as numbers in steps; of null, any."""
    assert isinstance(column, Bounded)
    found = whole_numbers(places, column)
    return nearest_multiples(found, column) if column.step > 1 else found


def _ends(lags: Sequence[Lag], schema: Mapping[str, Column], days: Mapping[str, Runs]) -> dict[str, Reach]:
    """The least and the largest number of computed columns, by their bounds and those of columns computed from them."""
    columns, differences = {}, {}
    for lag in lags:
        differences[lag.column] = Reach(int(lag.difference.low), lag.most)
        for name in (lag.source, lag.column):
            columns[name] = _bounds(name, schema, days)
    found = reaches(lags, differences, columns)[1]
    # Where a source is null, a column reaches as far as it says.
    return {lag.column: columns[lag.column] if lag.alone is not None else found[lag.column] for lag in lags}


# ------------------------------------------------------------------------------------------------------------ rejection
# Conditions on computed columns: rows are drawn, and those that meet them kept, until there are enough. Rows that are
# kept have the law of the model under the condition.


_FEWEST, _MOST = 1_000, 500_000
# Rows that are drawn for every row that is asked for, at most, and in vain before it is said that there are none.
_MOST_DRAWN, _IN_VAIN = 5_000, 2_000_000
_PILOT = 20_000
_TURNS = 10


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """What rows are kept: conditions on computed columns, and shares of the values of others."""

    conditions: Mapping[str, ValueSet]
    shares: Mapping[str, Floats]

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys([*self.conditions, *self.shares]))


# Rows of drawn positions (n_columns, n_rows) with anything else that comes with them (n_others, n_rows).
Drawn = tuple[NDArray[np.int32], Floats]
Draw = Callable[[int, np.random.Generator], Drawn]
ValuesOf = Callable[[Floats], Mapping[str, Floats]]


def kept_rows(draw: Draw, values_of: ValuesOf, wanted: Wanted, n_rows: int, rng: np.random.Generator) -> Drawn:
    """So many rows that meet the conditions; a ParameterError where they are too rare to be drawn."""
    weights = _row_weights(draw, values_of, wanted, rng) if wanted.shares else {}
    found: list[Drawn] = []
    n_found = n_drawn = 0
    size = max(n_rows, _FEWEST)
    while n_found < n_rows:
        states, positions = draw(min(size, _MOST), rng)
        values = values_of(positions)
        is_kept = _meets(values, wanted)
        for name, line in weights.items():
            is_kept &= rng.random(len(is_kept)) < line[_at(values[name])]
        rows = np.flatnonzero(is_kept)[: n_rows - n_found]
        found.append((states[:, rows], positions[:, rows]))
        n_found, n_drawn = n_found + len(rows), n_drawn + len(is_kept)
        if n_found < n_rows and n_drawn > _IN_VAIN + _MOST_DRAWN * n_found:
            names = ", ".join(map(repr, wanted.columns))
            raise ParameterError(
                f"where: rows that meet the conditions on {names} are too rare to be drawn: {n_found} of {n_drawn:,} "
                "rows; ask for wider ranges, or for fewer rows"
            )
        rate = max(n_found, 1) / n_drawn
        size = max(int(1.1 * (n_rows - n_found) / rate), _FEWEST)
    return np.concatenate([one for one, _ in found], axis=1), np.concatenate([one for _, one in found], axis=1)


def _meets(values: Mapping[str, Floats], wanted: Wanted) -> Flags:
    is_met = np.ones(len(next(iter(values.values()))), dtype=np.bool_)
    for name, allowed in wanted.conditions.items():
        is_met &= allowed.holds(values[name])
    return is_met


def _at(values: Floats) -> Integers:
    """Places in a list; null behind all."""
    return np.where(np.isnan(values), -1, values).astype(np.int64)


def _row_weights(draw: Draw, values_of: ValuesOf, wanted: Wanted, rng: np.random.Generator) -> dict[str, Floats]:
    """By which chance a row is kept, by the values that shares were asked for; 0 of null."""
    pilot = kept_rows(draw, values_of, Wanted(wanted.conditions, {}), _PILOT, rng) if wanted.conditions else None
    _, positions = draw(_PILOT, rng) if pilot is None else pilot
    values = values_of(positions)
    places = {name: _at(values[name]) for name in wanted.shares}
    weights = {name: np.append(np.ones(len(shares)), 0.0) for name, shares in wanted.shares.items()}
    for _ in range(_TURNS):
        for name, shares in wanted.shares.items():
            of_rows = np.prod([line[places[other]] for other, line in weights.items()], axis=0)
            held = np.bincount(places[name] % (len(shares) + 1), weights=of_rows, minlength=len(shares) + 1)[:-1]
            if ((held <= 0) & (shares > 0)).any():
                raise ParameterError(f"balance: some value of column {name!r} never occurs in the model; leave it out")
            changed = np.divide(shares * held.sum(), held, out=np.zeros_like(held), where=held > 0)
            line = weights[name][:-1] * changed
            weights[name] = np.append(line / line.max(), 0.0)
    return weights
