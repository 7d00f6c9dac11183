"""Columns and places of which nothing is known but the schema: their leaves, and where leaves lie.

A fit makes them so where it does not look, and a file that says that nothing was looked at has to hold the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spinney.forest.release.column_model import Floats
from spinney.schema.column_axis import ColumnAxis
from spinney.schema.lattice import Axis, needs_tree
from spinney.schema.parting import Parting
from spinney.schema.place_axis import PlaceAxis
from spinney.tree.release.geometry import extent

Cells = NDArray[np.int64]


def even_leaves(axis: Axis, parting: Parting | None = None) -> tuple[Cells, Cells]:
    """The first cells of leaves and those after their last, null last: a leaf for each value where these are few."""
    if axis.kind == "category" or (axis.kind == "integer" and axis.step == 1 and not needs_tree(axis)):
        first = np.arange(axis.first, axis.last + 1)
        stop = first + 1
    else:
        first = np.array([axis.first]) if parting is None else parting.first
        stop = np.append(first[1:], axis.last + 1)
    if axis.nullable:
        first, stop = np.append(first, axis.null_cell), np.append(stop, axis.null_cell + 1)
    return first, stop


def leaf_places(
    axis: Axis, first: Cells, stop: Cells, *, parting: Parting | None, cells: ColumnAxis | None
) -> tuple[Floats, Floats]:
    """Where leaves begin and how long they are, as a column model says it; 0 for null."""
    low, length = extent(axis, first, np.maximum(stop, first))
    points = None if cells is None else cells.points(first, stop)
    if points is not None:
        is_point, places, reach = points
        low, length = np.where(is_point, places, low), np.where(is_point, reach, length)
    if parting is not None:
        low, length = parting.fenced(first, low, length)
    is_null = np.equal(first, axis.null_cell)
    return np.where(is_null, 0.0, low), np.where(is_null, 0.0, length)


def null_levels(axis: PlaceAxis) -> int:
    """The depth of a place's regions if only nulls are told from other rows."""
    steps = enumerate(axis.lattice.order)
    flags = [at + 1 for at, step in steps if axis.lattice.axes[step.axis].nullable and step.bit == 0]
    return max(flags, default=0)
