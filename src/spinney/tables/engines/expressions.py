"""The lattice as expressions: the formulas of `cells.py` for engines whose rows stay where they are.

Values become numbers as in `frames.py`, and numbers become cells as in `cells.py`, but as narwhals expressions, which
Spark (or DuckDB, or polars) evaluates next to the rows. They use doubles and 64-bit integers in the same operations
as the compiled loops, so cells are equal to the last bit: engines.proof.md says why, and tests/conformance checks it.

No expression fails, whatever a row holds: an engine's own errors would quote the value. What cannot be read is marked
instead, and counted. Days and moments are expected as whole numbers; each engine has its own way of getting them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from spinney.columns import Boolean, Category, Column, Integer, Real
from spinney.counting.states import Cut
from spinney.schema.lattice import Axis, Lattice
from spinney.tables.objects import LARGEST_INTEGER, NOT_A_BOOLEAN, NOT_LISTED

# Longer lists of categories are looked up in a small table; shorter ones are compared one by one.
MOST_COMPARED = 32
# A key of cells is a positive int64 with room for a sign.
_KEY_BITS = 62
# Beyond this a whole number may not be a double, and is refused where a real is meant, as arrow refuses it.
_WHOLE_DOUBLES = 2**53


@dataclass(frozen=True, slots=True)
class Reading:
    """One column as three expressions, none of which is ever null."""

    number: nw.Expr  # float64 for reals, int64 for the rest; meaningless where one of the others holds
    is_missing: nw.Expr  # null, NaN or infinite
    is_wrong: nw.Expr  # there is a value, but none that the schema allows


def read_column(column: Column, value: nw.Expr, dtype: Any, *, place: nw.Expr | None = None) -> Reading:
    """A column as numbers. `place` is where its value stands in a list that is too long to be compared with."""
    if isinstance(column, Real):
        return _real(value, dtype)
    if isinstance(column, Category):
        return _category(column, value, dtype, place)
    whole = _whole(value, dtype)
    if isinstance(column, Boolean):
        is_odd = (whole.number != 0) & (whole.number != 1)
        return Reading(whole.number, whole.is_missing, whole.is_wrong | (~whole.is_missing & is_odd))
    return whole


def category_key(column: Category, value: nw.Expr, dtype: Any) -> nw.Expr:
    """What a column of categories is looked up by: its text or its whole number."""
    if column.is_text:
        return value
    whole = _whole(value, dtype)
    return nw.when(~whole.is_missing & ~whole.is_wrong).then(whole.number)


def complaint(column: Column) -> str:
    """What is the matter with a value that is there but cannot be read; the same words as for a table in memory."""
    if isinstance(column, Category):
        return NOT_LISTED
    if isinstance(column, Boolean):
        return NOT_A_BOOLEAN
    if isinstance(column, Integer):
        return "some value is not a whole number; use Real for this column"
    return f"some value cannot be read as {column.type_name}; clean the column or change its type"


def _real(value: nw.Expr, dtype: Any) -> Reading:
    number = value.cast(nw.Float64)
    if not dtype.is_integer():
        is_number = number.is_finite().fill_null(False)
        return Reading(nw.when(is_number).then(number).otherwise(0.0), ~is_number, nw.lit(False))
    is_far = ((value > _WHOLE_DOUBLES) | (value < -_WHOLE_DOUBLES)).fill_null(False)
    return Reading(number.fill_null(0.0), value.is_null(), is_far)


def _whole(value: nw.Expr, dtype: Any) -> Reading:
    """Integers, truth values, and floats or decimals that hold whole numbers; decimals hold 64 bits at most."""
    if isinstance(dtype, nw.Decimal):
        whole = value.floor().cast(nw.Int64).fill_null(0)
        return Reading(whole, value.is_null(), (value.floor() != value).fill_null(False))
    if not dtype.is_float():
        within = value.clip(upper_bound=LARGEST_INTEGER) if dtype == nw.UInt64 else value
        return Reading(within.cast(nw.Int64).fill_null(0), value.is_null(), nw.lit(False))
    wide = value.cast(nw.Float64)
    is_number = wide.is_finite().fill_null(False)
    near = nw.when(is_number).then(wide).otherwise(0.0).clip(-float(LARGEST_INTEGER), float(LARGEST_INTEGER))
    return Reading(near.floor().cast(nw.Int64), ~is_number, near.floor().cast(nw.Float64) != near)


def _category(column: Category, value: nw.Expr, dtype: Any, place: nw.Expr | None) -> Reading:
    if column.is_text and dtype.is_float():  # nulls alone, or nothing that can be meant
        is_number = value.is_finite().fill_null(False)
        return Reading(nw.when(is_number).then(0).otherwise(0).cast(nw.Int64), ~is_number, is_number)
    is_missing = value.is_null() if column.is_text else _whole(value, dtype).is_missing
    if place is None:
        key = category_key(column, value, dtype)
        place = nw.lit(-1)
        for index in reversed(range(len(column.values))):
            place = nw.when(key == column.values[index]).then(nw.lit(index)).otherwise(place)
    number = place.cast(nw.Int64).fill_null(-1)
    return Reading(number, is_missing, ~is_missing & (number < 0))


# --------------------------------------------------------------------------------------------------------- cells


def cell(axis: Axis, number: nw.Expr, is_missing: nw.Expr) -> nw.Expr:
    """The cell of a number, by the lattice's formula for the kind of axis; null's own cell where there is none."""
    if axis.kind == "real":
        position = (number - axis.origin) * axis.scale
        place = position.clip(float(axis.first), float(axis.last)).floor().cast(nw.Int64)
    elif axis.kind == "ladder":
        place = staircase(number.cast(nw.Float64), axis.edges, range(len(axis.edges) + 1))
    else:
        offset = number.clip(int(axis.low), int(axis.high)) - int(axis.low)
        place = offset if axis.step == 1 else _quotient(offset, axis.step)
    if not axis.nullable:
        return place
    return nw.when(is_missing).then(nw.lit(axis.null_cell)).otherwise(place).cast(nw.Int64)


def _quotient(offset: nw.Expr, step: int) -> nw.Expr:
    """The whole part of offset / step, offset >= 0, although engines divide whole numbers as doubles.

    offset - offset % step is q * step with q < 2^33; its quotient in doubles is within 2^-18 of q, whatever is rounded.
    """
    return ((offset - offset % step) / step + 0.5).floor().cast(nw.Int64)


def staircase(value: nw.Expr, edges: Sequence[float | int], steps: Sequence[int]) -> nw.Expr:
    """steps[k], k being how many of the ascending edges are <= value: a binary search spelled out."""
    if not edges:
        return nw.lit(int(steps[0]), nw.Int64)
    middle = len(edges) // 2
    below = staircase(value, edges[:middle], steps[: middle + 1])
    return (
        nw.when(value < edges[middle]).then(below).otherwise(staircase(value, edges[middle + 1 :], steps[middle + 1 :]))
    )


def state(cut: Cut, cell_number: nw.Expr) -> nw.Expr:
    """The state of a cell under a public cut; neighbours of equal state are one stair."""
    is_new = np.append(True, np.diff(cut.states) != 0)
    return staircase(cell_number, cut.first[is_new][1:].tolist(), cut.states[is_new].tolist())


# ---------------------------------------------------------------------------------------------------------- keys


def key_layout(lattice: Lattice) -> list[list[int]]:
    """Which axes share a key: as few keys as their order allows, each of at most 62 bits, at least one."""
    layout: list[list[int]] = [[]]
    n_bits = 0
    for index, axis in enumerate(lattice.axes):
        if n_bits + axis.bits > _KEY_BITS:
            layout.append([])
            n_bits = 0
        layout[-1].append(index)
        n_bits += axis.bits
    return layout


def key(lattice: Lattice, indices: Sequence[int], cells: Sequence[nw.Expr]) -> nw.Expr:
    """The cells of some axes as one whole number, the first axis in its highest bits."""
    number = cells[indices[0]]
    for index in indices[1:]:
        number = number * (1 << lattice.axes[index].bits) + cells[index]
    return number


def cells_of_keys(lattice: Lattice, keys: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The cells (n, n_axes) that keys stand for."""
    cells = np.empty((len(keys[0]), lattice.n_axes), dtype=np.int64)
    for indices, packed in zip(key_layout(lattice), keys, strict=True):
        rest = packed
        for index in reversed(indices):
            bits = lattice.axes[index].bits
            cells[:, index] = rest & ((1 << bits) - 1)
            rest = rest >> bits
    return cells
