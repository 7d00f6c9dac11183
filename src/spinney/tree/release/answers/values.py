"""Values of a column inside leaves: lines in the offset of a row between which its value lies.

Along an even axis a value is linear in the offset, up to the length of a cell. Along an axis with pieces it is linear
inside each piece; what a leaf of several pieces deviates from one line is found at the ends of its pieces.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinney.schema.lattice import Axis
from spinney.schema.pieces import place_table
from spinney.tree.release.answers.leaves import Floats, Leaves
from spinney.tree.release.answers.regions import Integers


class Stretches(NamedTuple):
    """Along an axis, stretches of places in which fine cells lie evenly: where each begins, in both."""

    slots: Floats
    lengths: Floats
    starts: Floats
    widths: Floats
    begins: Floats  # the fine cell of the first value, which may be a point before `starts`


class LeafValues(NamedTuple):
    """Of every leaf: x lies in mid + half u + [below, above] and in [least, largest]; nothing of leaves of nulls."""

    mid: Floats
    half: Floats
    below: Floats
    above: Floats
    least: Floats
    largest: Floats


def leaf_values(leaves: Leaves, index: int, axis: Axis) -> LeafValues:
    """What the shape of the tree says about a column's values, leaf by leaf, in physical numbers."""
    n = len(leaves)
    stretches = _stretches(axis)
    begin, size = leaves.place[:, index], leaves.size[:, index]
    end = begin + size - 1
    least, largest = np.full(n, np.inf), np.full(n, -np.inf)
    ends: list[tuple[Integers, Integers, Floats, Floats]] = []  # leaf, place, and bounds on the values there
    first = np.maximum(np.searchsorted(stretches.slots, begin, side="right") - 1, 0)
    last = np.maximum(np.searchsorted(stretches.slots, end, side="right") - 1, 0)
    every = np.arange(n)
    for k in range(len(stretches.slots)):
        here = every[(first <= k) & (last >= k)]
        if not len(here):
            continue
        slot, length = stretches.slots[k], stretches.lengths[k]
        p0, p1 = np.maximum(begin[here], slot), np.minimum(end[here], slot + length - 1)
        for place in (p0, p1):
            low, high = _values_at(axis, stretches, k, place)
            least[here], largest[here] = np.minimum(least[here], low), np.maximum(largest[here], high)
            ends.append((here, place.astype(np.int64), low, high))
    is_measured = leaves.is_measured[:, index]
    # An offset of 1 is the edge of a leaf, which of whole numbers lies half a value past the last one.
    half = np.where(is_measured, (largest - least + (axis.kind != "real")) / 2, 0.0)
    mid = (least + largest) / 2
    below, above = np.zeros(n), np.zeros(n)
    slack = np.where(leaves.quantum % size == 0, 0.0, half / (2 * leaves.quantum))  # where offsets are rounded
    for here, place, low, high in ends:
        line = mid[here] + half[here] * leaves.offset(here, index, place)
        below[here] = np.minimum(below[here], low - line - slack[here])
        above[here] = np.maximum(above[here], high - line + slack[here])
    return LeafValues(mid, half, below, above, least, largest)


def _stretches(axis: Axis) -> Stretches:
    if axis.pieces is None:
        n_cells = float(axis.last + 1)
        return Stretches(*(np.array([number]) for number in (0.0, n_cells, 0.0, n_cells, 0.0)))
    table = place_table(axis.pieces)
    begins = np.where((table.points >= 0) & ~table.is_whole, table.points, table.starts)
    parts = (table.slots, table.lengths, table.starts, table.widths, begins)
    return Stretches(*(np.asarray(part, dtype=np.float64) for part in parts))


def _values_at(axis: Axis, stretches: Stretches, k: int, places: Floats) -> tuple[Floats, Floats]:
    """The least and the largest value of rows at places of one stretch."""
    inside = places - stretches.slots[k]
    each = stretches.widths[k] / stretches.lengths[k]
    if axis.pieces is None:
        fine, stop = inside, inside + 1.0
    else:
        # Behind a point every other place holds a cell; the middle of a fine cell says which cell it is in.
        fine = stretches.starts[k] + inside * each - 0.5
        stop = stretches.starts[k] + np.minimum(inside + 2.0, stretches.lengths[k]) * each + 0.5
        fine = np.where(inside == 0, stretches.begins[k], np.maximum(fine, stretches.starts[k]))
        stop = np.minimum(stop, stretches.starts[k] + stretches.widths[k])
    if axis.kind == "real":
        low, high = axis.origin + fine / axis.scale, axis.origin + stop / axis.scale
        return np.clip(low, axis.low, axis.high), np.clip(high, axis.low, axis.high)
    lowest, highest = int(axis.low), int(axis.high)
    low, high = lowest + np.floor(fine) * axis.step, lowest + np.ceil(stop) * axis.step - 1
    return np.clip(low, lowest, highest), np.clip(high, lowest, highest)
