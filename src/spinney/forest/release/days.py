"""Columns that lie on some days only (`OnlyOn`): leaves cut to these days, and rows that are moved to them. PUBLIC.

The days follow from the schema. A leaf is drawn from on its own days, evenly; a state without any has no rows, like
any combination that a rule excludes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Bounded, Column, whole_range
from spinney.columns.reading import nearest_multiples
from spinney.forest.release.columns import ColumnModel, Floats, overlaps
from spinney.forest.release.conditions import Restriction, whole_numbers
from spinney.forest.release.related import Asked
from spinney.release.answers.question import allowed, never
from spinney.schema.rules import Runs
from spinney.schema.rules.base import ValueSet
from spinney.schema.schema import Schema

Integers = NDArray[np.int64]


def on_days(model: ColumnModel, leaf: Integers, column: Column, runs: Runs) -> tuple[ColumnModel, Integers]:
    """Leaves cut to the days of a column, and which leaf each was a part of; those without days weigh nothing."""
    begin, stop = _places(column, runs)
    end = np.where(model.is_null, model.low, model.low + model.length)
    on, run = overlaps(model.low, end, begin, stop)
    without = np.setdiff1d(np.arange(len(end)), on)  # nulls, and leaves without days
    of = np.concatenate([on, without])
    low = np.concatenate([np.maximum(model.low[on], begin[run]), model.low[without]])
    length = np.concatenate([np.minimum(end[on], stop[run]), (model.low + model.length * model.is_null)[without]]) - low
    order = np.lexsort([low, of])
    of, low, length = of[order], low[order], length[order]
    is_value = ~model.is_null
    held = np.bincount(of, weights=length, minlength=len(model.low))
    share = np.divide(length, held[of], out=np.zeros_like(length), where=held[of] > 0)
    weights = model.weights[of] * np.where(is_value[of], share, 1.0)
    parted = replace(model, low=low, length=length, is_null=model.is_null[of], weights=weights, states=model.states[of])
    return parted, leaf[of]


def states_on_days(
    schema: Schema, near: Mapping[str, Column], models: Mapping[str, ColumnModel]
) -> dict[str, Restriction]:
    """Columns without the states that hold none of their days, where there are any such."""
    found = {
        name: _days_left(near[name], models[name], runs)
        for name, runs in schema._days.items()
        if name not in schema._lags
    }
    return {name: cut for name, cut in found.items() if cut is not None}


def _days_left(column: Column, model: ColumnModel, runs: Runs) -> Restriction | None:
    """The column with states that hold no days left out; None where all hold some."""
    begin, stop = _places(column, runs)
    holds = model.is_null.copy()
    holds[overlaps(model.low, model.low + model.length, begin, stop)[0]] = True
    left = (model.per_state(holds.astype(np.float64)) > 0).astype(np.float64)
    return None if left.all() else Restriction(column, model, left)


def on_asked_days(name: str, wanted: Any, schema: Schema) -> Any:
    """A condition on such a column as one on those of its days that meet it; one on another column as it is."""
    if name not in schema._days:
        return wanted
    values = wanted.allowed if isinstance(wanted, Asked) else allowed(name, schema[name], wanted)
    said = (wanted.name, wanted.wanted) if isinstance(wanted, Asked) else (name, wanted)
    found = values & ValueSet(schema._days[name].as_set().ranges, has_null=True)
    if found.is_empty:
        raise never(*said)
    return Asked(*said, found)


def _places(column: Column, runs: Runs) -> tuple[Floats, Floats]:
    """Where days begin and end, as places of the column: all that rounds to their values."""
    assert isinstance(column, Bounded)
    half, origin = column.step // 2, whole_range(column)[0]
    begin, stop = runs.first - half - origin, runs.last + column.step - half - origin
    return begin.astype(np.float64), stop.astype(np.float64)


def move_to_days(places: dict[str, Floats], schema: Schema, near: Mapping[str, Column]) -> None:
    """Values that were drawn anew, on whatever day, move to the next of their days, in place."""
    for name, runs in schema._days.items():
        if name in schema._lags:
            continue
        column = near[name]
        assert isinstance(column, Bounded)
        numbers = whole_numbers(places[name], column)
        numbers = nearest_multiples(numbers, column) if column.step > 1 else numbers
        rows = np.flatnonzero(~np.isnan(places[name]) & ~runs.holds(numbers))
        if len(rows):
            moved = runs.nearest(numbers[rows], numbers[rows])
            places[name][rows] = (moved - whole_range(column)[0]).astype(np.float64)
