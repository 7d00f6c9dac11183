"""Columns that are fixed parts of others, in a release: codes of ratios apart from values. PUBLIC.

A related column is modelled by values and codes (`schema/rules/related.py`). Orders between columns are about its
values alone: a row with a code obeys by its ratio, which was checked when the schema was made. So codes count as nulls
where orders are kept, and are put back afterwards.

    conditions   values of a related column as disjoint conditions on it and its base
    codes        which leaves and places are codes
    orders       a column without its codes, and with them again
    drawn rows   codes that meet no number of the base are exchanged
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Column, Number, whole_range
from spinney.columns.reading import numbers_rounding_to
from spinney.forest.release.columns import ColumnModel, Floats, joined
from spinney.release.answers.question import allowed
from spinney.schema.rules import Derivation, Related, Rule
from spinney.schema.rules.base import ValueSet, universe
from spinney.schema.schema import Schema

if TYPE_CHECKING:
    from spinney.forest.release.conditions import Restriction

# ----------------------------------------------------------------------------------------------------------- conditions
# A condition on values of a related column as alternatives of which every row meets one at the most: a value of its own
# in the set, or the code of a ratio and a base that leads into the set. Each is a condition on modelled columns.


class Asked(NamedTuple):
    """What was asked of a derived column, and the values of a modelled one that lead to it."""

    name: str
    wanted: Any
    allowed: ValueSet


class Together(NamedTuple):
    """Several conditions on one column, all of which hold."""

    conditions: tuple[Any, ...]


def alternatives(where: Mapping[str, Any], schema: Schema) -> list[dict[str, Any]]:
    """Conditions as disjoint alternatives without values of related columns; one, where there are no such values."""
    found = [dict(where)]
    for name in where if schema._related else ():
        told = _told_by_two(name, where[name], schema)
        if told is not None:
            found = [
                joined_conditions(one, more) for one in found for more in boxes_of(name, where[name], *told, schema)
            ]
    return found


def _told_by_two(name: str, wanted: Any, schema: Schema) -> tuple[Related, ValueSet] | None:
    """The related column that a condition is about, and its values; None where null alone is, or no such column."""
    if isinstance(wanted, (Asked, Together)) or name not in schema:
        return None
    derived: dict[str, Derivation] = {rule.column: rule for rule in schema._derivations}
    at, chain = name, []
    while at in derived and at not in schema._related:
        if len(derived[at].sources) > 1:
            return None
        chain.append(derived[at])
        at = derived[at].sources[0]
    if at not in schema._related:
        return None
    values = allowed(name, schema[name], wanted)
    for rule in chain:
        values = rule.preimage(values, schema)
    if not values.ranges or ValueSet(values.ranges, schema[at].nullable).has_all(schema[at]):
        return None
    return schema._related[at], values


def boxes_of(name: str, wanted: Any, rule: Related, values: ValueSet, schema: Schema) -> Iterator[dict[str, Any]]:
    """Disjoint conditions on modelled columns under which a related column has one of some values."""
    for low, high in values.ranges:
        yield {rule.column: Asked(name, wanted, ValueSet(((low, high),)))}
        for place, code in enumerate(rule.code_sets(schema)):
            ends = rule.bases_of(place, low, high, schema)
            if ends is not None:
                has_code, leads = Asked(name, wanted, code), Asked(name, wanted, ValueSet((ends,)))
                is_any = leads.allowed.has_all(replace(schema[rule.base], nullable=False))
                yield {rule.column: has_code} | ({} if is_any else {rule.base: leads})
    if values.has_null:
        yield {rule.column: Asked(name, wanted, ValueSet(has_null=True))}


def joined_conditions(one: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Conditions together; what follows from a condition takes its place."""
    settled = {told.name for wanted in more.values() for told in each_of(wanted) if isinstance(told, Asked)}
    found = {
        name: [told for told in each_of(wanted) if isinstance(told, Asked) or name not in settled]
        for name, wanted in one.items()
    }
    for name, wanted in more.items():
        found[name] = [*found.get(name, ()), *each_of(wanted)]
    return {name: told[0] if len(told) == 1 else Together(tuple(told)) for name, told in found.items() if told}


def each_of(wanted: Any) -> Iterator[Any]:
    """The conditions of what was asked of one column."""
    for one in wanted.conditions if isinstance(wanted, Together) else [wanted]:
        yield from each_of(one) if isinstance(one, Together) else [one]


# ---------------------------------------------------------------------------------------------------------------- codes
# Which leaves and places of a column are codes: those beyond its own last value.


def related_among(rules: Sequence[Rule], names: Any) -> list[Related]:
    """The rules of related columns among some."""
    return [rule for rule in rules if isinstance(rule, Related) and rule.column in names]


def code_start(rule: Related, columns: Mapping[str, Column], near: Column | None = None) -> float:
    """A place between the last value of a related column and its first code.

    Places count from the low bound of `near`, by default of the column itself.
    """
    column = columns[rule.column]
    assert isinstance(column, Number)
    if not column.is_whole:
        return float(column._first_and_last()[1]) + float(column.spacing or 0) / 4
    return float(whole_range(column)[1] - whole_range(column if near is None else near)[0]) + 0.5


def without_codes(
    model: ColumnModel, rule: Related, columns: Mapping[str, Column], near: Column | None = None
) -> ColumnModel:
    """A column's leaves, with codes as if they were nulls."""
    return replace(model, is_null=model.is_null | (model.low >= code_start(rule, columns, near)))


# --------------------------------------------------------------------------------------------------------------- orders
# A related column without its codes, for orders between columns, and what they leave of it with its codes.


class Rest(NamedTuple):
    """The values of a related column by themselves, and the column with its codes."""

    column: Column
    model: ColumnModel  # codes are nulls
    whole: Column
    of_all: ColumnModel
    start: float


def rests(schema: Schema, drawn: Mapping[str, Column], models: Mapping[str, ColumnModel]) -> dict[str, Rest | None]:
    """Related columns without their codes; None of those that have nothing but codes left."""
    found: dict[str, Rest | None] = {}
    for rule in related_among(schema.rules, models):
        near, model, plain = drawn[rule.column], models[rule.column], schema[rule.column]
        assert isinstance(near, Number)
        assert isinstance(plain, Number)
        start = code_start(rule, schema, near)
        held = ~model.is_null & (model.weights > 0)
        if held.any() and (model.low[held] >= start).all():
            found[rule.column] = None
            continue
        rest = replace(near, high=plain.high) if universe(near)[1] > universe(plain)[1] else near
        found[rule.column] = Rest(rest, without_codes(model, rule, schema, near), near, model, start)
    return found


def with_codes(rest: Rest, cut: Restriction) -> Restriction:
    """What orders leave of the values of a related column, with its codes again."""
    if rest.whole is rest.column:
        return cut
    if rest.whole.is_whole:
        origin = whole_range(rest.whole)[0]
        begin, end = (float(number - origin) for number in whole_range(cut.column))
        pieces = [rest.of_all.restrict_to_range(begin, end + 1)]
    else:
        low, high = universe(cut.column)
        assert isinstance(rest.column, Number)
        begin, end = numbers_rounding_to(float(low), float(high), rest.column)
        pieces = [rest.of_all.restrict_to_range(begin, np.nextafter(end, np.inf))]
    pieces += [rest.of_all.restrict_to_range(rest.start, np.inf), rest.of_all.restrict_to_null()]
    model, left = joined(pieces)
    return cut._replace(column=rest.whole, model=model, left=left)


# ----------------------------------------------------------------------------------------------------------- drawn rows
# Drawn rows: a code needs a number of the base that is neither null nor zero, as every counted row with one has.


@contextmanager
def codes_aside(
    places: MutableMapping[str, Floats],
    schema: Schema,
    drawn: Mapping[str, Column],
    models: Mapping[str, ColumnModel],
    rng: np.random.Generator,
) -> Iterator[tuple[Mapping[str, Column], Mapping[str, ColumnModel]]]:
    """Places of rows with nulls in place of codes, columns and leaves without codes; codes are back afterwards.

    Codes of rows whose base is null or zero are exchanged, once, with places of rows that have no code: both columns
    keep the values that were drawn for them.
    """
    near, left = dict(drawn), dict(models)
    held: dict[str, tuple[NDArray[np.bool_], Floats]] = {}
    for rule in related_among(schema.rules, models):
        name, column, plain = rule.column, drawn[rule.column], schema[rule.column]
        assert isinstance(column, Number)
        assert isinstance(plain, Number)
        start = code_start(rule, schema, column)
        is_code = places[name] >= start  # never of NaN
        if not is_code.any():
            continue
        _exchange(places[name], is_code, _is_nothing(places[rule.base], drawn[rule.base]), rng)
        is_code = places[name] >= start
        held[name] = is_code, places[name][is_code]
        places[name] = np.where(is_code, np.nan, places[name])
        if universe(column)[1] > universe(plain)[1] and universe(column)[0] <= universe(plain)[1]:
            near[name] = replace(column, high=plain.high)
        left[name] = without_codes(models[name], rule, schema, column)
    yield near, left
    for name, (is_code, codes) in held.items():
        places[name][is_code] = codes


def _is_nothing(places: Floats, base: Column) -> NDArray[np.bool_]:
    """Which places are those of null or zero."""
    assert isinstance(base, Number)
    if base.is_whole:
        number = places + whole_range(base)[0] + base.step // 2
        return np.asarray(np.isnan(places) | (np.floor(number / base.step) == 0))
    return np.asarray(np.isnan(places) | (np.abs(places) < float(base.spacing or 0) / 2))


def _exchange(
    places: Floats, is_code: NDArray[np.bool_], is_nothing: NDArray[np.bool_], rng: np.random.Generator
) -> None:
    """Exchange codes of rows without a base, in place, with places of rows that have a base and no code."""
    lost, others = np.flatnonzero(is_code & is_nothing), np.flatnonzero(~is_code & ~is_nothing)
    n_rows = min(len(lost), len(others))
    if n_rows:
        lost, others = (rng.choice(rows, n_rows, replace=False) for rows in (lost, others))
        places[lost], places[others] = places[others], places[lost]
