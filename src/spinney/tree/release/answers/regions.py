"""Regions: the rows that conditions allow, in the cells of a tree and in places along the axes.

Which cell a value lies in is a monotone function of the value (`lattice`), and so is its place, so a range of values is
a range of cells but for the cells of its two ends, which may hold rows on either side. A range therefore becomes two:
the cells whose rows are all in it, and those that may hold a row of it. Whole numbers decide this, no float rounding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Bounded, Column, exact, whole_range
from spinney.errors import ParameterError
from spinney.release.answers.conditions import allowed
from spinney.schema.lattice import Axis, Lattice
from spinney.schema.pieces import piece_table, to_places
from spinney.schema.rules.values import Number, ValueSet, after, before, universe
from spinney.schema.table import Schema

Integers = NDArray[np.int64]

Region = dict[int, ValueSet]  # of each axis with a condition, the values that it allows


def region_of(conditions: Mapping[str, Any], schema: Schema, lattice: Lattice) -> Region:
    """What conditions by column say about the axes; a ParameterError where a column is not one of the tree's.

    A condition that all values of a column meet says nothing, and is left out.
    """
    places = {axis.name: place for place, axis in enumerate(lattice.axes)}
    region = {
        axis_of(name, schema, places, "where"): allowed(name, schema[name], wanted)
        for name, wanted in conditions.items()
    }
    return {axis: values for axis, values in region.items() if not values.has_all(schema[lattice.axes[axis].name])}


def axis_of(name: str, schema: Schema, places: Mapping[str, int], argument: str) -> int:
    """The axis of a column; a ParameterError where rows have it by a rule, and nothing was counted of it."""
    if name not in places:
        raise ParameterError(
            f"{argument}: column {name!r} is of type {schema[name].type_name} and was not counted: it is computed or "
            "made afresh when rows are drawn; ask about the columns that it follows from"
        )
    return places[name]


def joined(one: Region, other: Region) -> Region:
    """The rows in both regions."""
    return one | other | {axis: one[axis] & other[axis] for axis in one.keys() & other.keys()}


@dataclass(frozen=True, slots=True)
class Spans:
    """Ranges of values as ranges of cells and of places, both ends included: those surely inside, those that may be."""

    cells_in: Integers  # (n_ranges, 2)
    cells_may: Integers
    places_in: Integers
    places_may: Integers
    has_null: bool


def spans(axis: Axis, column: Column, values: ValueSet) -> Spans:
    """Where ranges of values lie along an axis."""
    found = [_span(axis, column, *ends) for ends in values.ranges]
    tables = [np.array([row[i] for row in found], dtype=np.int64).reshape(-1, 2) for i in range(4)]
    return Spans(tables[0], tables[1], tables[2], tables[3], values.has_null)


def raw_ends(column: Column, low: Number, high: Number) -> tuple[Number, Number]:
    """A range of values in steps as all that rounds to them, of columns that are whole underneath."""
    if not column.is_whole:
        return low, high
    half = column.step // 2 if isinstance(column, Bounded) else 0
    return low - half, high + column.step - 1 - half


def _span(axis: Axis, column: Column, low: Number, high: Number) -> list[tuple[int, int]]:
    least, most = universe(column)
    below, above = neighbours(column, low, high)
    low, high = raw_ends(column, low, high)
    first, last = cell_of(axis, low), cell_of(axis, high)
    found: list[tuple[int, int]] = []
    for place in (lambda cell: cell, lambda cell: place_of(axis, cell)):
        a, b = place(first), place(last)
        is_open_below = below < least or place(cell_of(axis, below)) < a
        is_open_above = above > most or place(cell_of(axis, above)) > b
        found += [(a if is_open_below else a + 1, b if is_open_above else b - 1), (a, b)]
    return found


def at_or_below(column: Column, number: float) -> Number:
    """The largest value of a column, in its steps, that is not above a number; not below its first."""
    least = universe(column)[0]
    if column.is_whole:
        found: Number = math.floor(number)
        found = int(column.aligned(found, up=False)) if isinstance(column, Bounded) else found
    elif isinstance(column, Bounded) and column.spacing is not None:
        found = float(column.aligned(exact(float(number)), up=False))
    else:
        found = float(number)
    return max(found, least)


def neighbours(column: Column, low: Number, high: Number) -> tuple[Number, Number]:
    """The values next to a range, outside."""
    if column.is_whole:
        (least, most), step = whole_range(column), column.step
        down, up = int(low) - step, int(high) + step
        return max(down, least - 1), min(up, most + 1)
    if column.spacing is not None:
        return float(exact(float(low)) - column.spacing), float(exact(float(high)) + column.spacing)
    return before(float(low)), after(float(high))


def cell_of(axis: Axis, number: Number) -> int:
    """The cell of a physical number, by the same arithmetic as rows are counted with."""
    if axis.kind == "real":
        first, last = (axis.first, axis.last) if axis.pieces is None else (0, axis.n_fine - 1)
        fine = math.floor(min(max((float(number) - axis.origin) * axis.scale, float(first)), float(last)))
    else:
        fine = (min(max(int(number), int(axis.low)), int(axis.high)) - int(axis.low)) // axis.step
    if axis.pieces is None:
        return fine
    table = piece_table(axis.pieces)
    piece = int(np.searchsorted(table.starts, fine, side="right")) - 1
    start, width, gain = int(table.starts[piece]), int(table.widths[piece]), int(table.gains[piece])
    return int(table.slots[piece]) + (2 * (fine - start) + 1) * gain // (2 * width)


def place_of(axis: Axis, cell: int) -> int:
    """The place of a cell, in which offsets are measured."""
    if axis.pieces is None:
        return cell
    return int(to_places(axis.pieces, np.array([cell]), np.array([1]))[0][0])
