"""Leaves: what the shape of a tree says about its leaves, and which of them a region holds, misses or cuts.

Everything here follows from the shape and from the question, and from no noisy count: what a certified interval is made
of may not be chosen by looking at the noise that it bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.schema.pieces import piece_table
from spinney.schema.table import Schema
from spinney.schema.zorder import deinterleave
from spinney.tree.bins import NoisyMoments, leaf_cells
from spinney.tree.release.answers.regions import Integers, Region, Spans, spans

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Leaves:
    """Per leaf and axis: its first and last cell that a value can have, whether null is in it, and its places."""

    first: Integers  # (n_leaves, n_axes)
    last: Integers
    has_values: Flags
    has_null: Flags
    place: Integers  # the first place
    size: Integers  # how many
    is_measured: Flags
    quantum: int

    def __len__(self) -> int:
        return len(self.first)

    def some(self, chosen: Integers) -> Leaves:
        """These leaves only, in this order."""
        return Leaves(
            first=self.first[chosen],
            last=self.last[chosen],
            has_values=self.has_values[chosen],
            has_null=self.has_null[chosen],
            place=self.place[chosen],
            size=self.size[chosen],
            is_measured=self.is_measured[chosen],
            quantum=self.quantum,
        )

    def offset(self, leaves: Integers, axis: int, places: Integers) -> Floats:
        """The offset from the leaf's centre, in half-edges, that a row at a place was counted with."""
        scale = self.quantum / self.size[leaves, axis]
        steps = np.rint(scale * (2 * (places - self.place[leaves, axis]) + 1)) - self.quantum
        return np.asarray(np.clip(steps, -self.quantum, self.quantum) / self.quantum)


def leaves_of(moments: NoisyMoments) -> Leaves:
    """The leaves of a release."""
    first, size = deinterleave(moments.codes, moments.depths, moments.lattice)
    place, n_places, is_measured = leaf_cells(moments.codes, moments.depths, moments.lattice)
    last = first + size - 1
    has_values, has_null = np.ones(first.shape, dtype=np.bool_), np.zeros(first.shape, dtype=np.bool_)
    for index, axis in enumerate(moments.lattice.axes):
        has_null[:, index] = (first[:, index] <= axis.null_cell) & (last[:, index] >= axis.null_cell)
        first[:, index] = np.maximum(first[:, index], axis.first)
        last[:, index] = np.minimum(last[:, index], axis.last)
        has_values[:, index] = first[:, index] <= last[:, index]
        if axis.pieces is not None:  # of the cells of a point only the first holds rows
            table = piece_table(axis.pieces)
            piece = table.among(np.maximum(last[:, index], 0))
            at_point = has_values[:, index] & table.is_point[piece]
            last[at_point, index] = np.maximum(table.slots[piece], first[:, index])[at_point]
    return Leaves(first, last, has_values, has_null, place, n_places, is_measured, moments.quantum)


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """How a region and the leaves lie: which leaves are inside and which are cut; all others are outside."""

    inside: Integers  # leaves
    cut: Integers
    along: dict[int, AxisParts]  # of each axis with a condition, of the cut leaves


@dataclass(frozen=True, slots=True, eq=False)
class AxisParts:
    """Along one axis, of leaves: whether all of a leaf meets the condition, and where along it rows do."""

    is_whole: Flags  # (n_leaves,)
    low_in: Integers  # places; low_in > high_in where none is surely inside
    high_in: Integers
    low_may: Integers
    high_may: Integers


def parts_of(leaves: Leaves, region: Region, schema: Schema, moments: NoisyMoments) -> Parts:
    """Which leaves a region holds and which it cuts."""
    is_possible = np.ones(len(leaves), dtype=np.bool_)
    is_inside = np.ones(len(leaves), dtype=np.bool_)
    found: dict[int, AxisParts] = {}
    for index, values in region.items():
        axis = moments.lattice.axes[index]
        span = spans(axis, schema[axis.name], values)
        overlaps, parts = _along(leaves, index, span)
        found[index] = parts
        is_possible &= overlaps
        is_inside &= parts.is_whole
    cut = np.flatnonzero(is_possible & ~is_inside)
    along = {
        index: AxisParts(*(getattr(parts, name)[cut] for name in AxisParts.__slots__)) for index, parts in found.items()
    }
    return Parts(np.flatnonzero(is_possible & is_inside), cut, along)


def _along(leaves: Leaves, index: int, span: Spans) -> tuple[Flags, AxisParts]:
    """Whether leaves may hold rows that meet a condition along an axis, and where."""
    first, last, has_values = (getattr(leaves, name)[:, index] for name in ("first", "last", "has_values"))
    has_null = leaves.has_null[:, index]
    n = len(leaves)
    n_touching = np.zeros(n, dtype=np.int64)
    covers = np.zeros(n, dtype=np.bool_)
    low_may, high_may = np.full(n, np.iinfo(np.int64).max), np.full(n, np.iinfo(np.int64).min)
    low_in, high_in = np.full(n, 0), np.full(n, -1)
    for k in range(len(span.cells_may)):
        touches = has_values & (span.cells_may[k, 0] <= last) & (span.cells_may[k, 1] >= first)
        covers |= has_values & (span.cells_in[k, 0] <= first) & (span.cells_in[k, 1] >= last)
        n_touching += touches
        low_may = np.where(touches, np.minimum(low_may, span.places_may[k, 0]), low_may)
        high_may = np.where(touches, np.maximum(high_may, span.places_may[k, 1]), high_may)
        low_in = np.where(touches, span.places_in[k, 0], low_in)
        high_in = np.where(touches, span.places_in[k, 1], high_in)
    several = n_touching > 1
    low_in[several], high_in[several] = 0, -1
    is_whole = np.where(has_values, covers, True) & (~has_null | span.has_null)
    overlaps = (n_touching > 0) | (has_null & span.has_null)
    return overlaps, AxisParts(is_whole, low_in, high_in, low_may, high_may)
