"""The lattice of a release as JSON-ready data, and the nodes of a release checked against it.

Loops over cells and codes are compiled and look nothing up twice, so what comes out of a file is measured here first:
axes against the columns that they are of, nodes against the lattice.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.columns import MAX_BITS, Column, Real, whole_range
from spinney.schema.lattice import Axis, Lattice
from spinney.schema.table import Schema
from spinney.schema.zorder import Codes, possible_nodes

# Ladders serve private bounds only and never reach a release.
_FIELDS = [name for name in Axis.__dataclass_fields__ if name != "edges"]
_WHOLE = ("bits", "first", "last", "step")
_FULL_WORD = np.uint64(2**64 - 1)


def axes_to_list(lattice: Lattice) -> list[dict[str, Any]]:
    """All axes in order."""
    return [{name: getattr(axis, name) for name in _FIELDS} for axis in lattice.axes]


def axes_from_list(described: Any, schema: Schema) -> Lattice:
    """Read what `axes_to_list` gave for these columns; ValueError where it is not that."""
    if not isinstance(described, list) or any(
        not isinstance(axis, dict) or set(axis) != set(_FIELDS) for axis in described
    ):
        raise ValueError("an axis with other entries than ours")
    axes = tuple(Axis(**axis) for axis in described)
    if [axis.name for axis in axes] != list(schema):
        raise ValueError("axes of other columns than the schema's")
    for axis in axes:
        if not _is_possible(axis, schema[axis.name]):
            raise ValueError(f"the axis of column {axis.name!r} does not fit the column")
    return Lattice(axes)


def _is_possible(axis: Axis, column: Column) -> bool:
    """Whether an axis can be of a column: its kind, its cells and its bounds."""
    if not column.is_read or any(type(getattr(axis, name)) is not int for name in _WHOLE):
        return False
    if axis.nullable is not column.nullable or not column.nullable <= axis.bits <= MAX_BITS + 1 or axis.step < 1:
        return False
    if not 0 <= axis.first <= axis.last < 1 << axis.value_bits:
        return False
    numbers = (axis.low, axis.high, axis.origin, axis.scale)
    if any(isinstance(number, bool) or not isinstance(number, (int, float)) for number in numbers):
        return False
    if isinstance(column, Real):
        is_of_column = (axis.kind, axis.low, axis.high) == ("real", column.low, column.high)
        return is_of_column and math.isfinite(axis.origin) and 0 < axis.scale < math.inf and math.isfinite(axis.edge)
    low, high = whole_range(column)
    is_of_column = (axis.kind, axis.low, axis.high, axis.first) == (column.axis_kind, low, high, 0)
    is_of_column &= axis.step == 1 or axis.kind == "integer"
    return is_of_column and axis.last == -(-(high - low + 1) // axis.step) - 1


def check_nodes(codes: Codes, depths: NDArray[np.int64], lattice: Lattice) -> None:
    """Raise a ValueError unless these are nodes of the lattice that rows can be in, in order, none inside another."""
    if not len(codes):
        return
    if depths.min() < 0 or depths.max() > lattice.depth:
        raise ValueError("nodes deeper than the lattice")
    masks = _masks(depths, lattice.n_words)
    if (codes & ~masks).any():
        raise ValueError("nodes with bits beyond their depth")
    if not (_is_before(codes[:-1], codes[1:]) & ((codes[1:] & masks[:-1]) != codes[:-1]).any(axis=1)).all():
        raise ValueError("nodes out of order, or inside each other")
    if not possible_nodes(codes, depths, lattice).all():
        raise ValueError("nodes where no row can be")


def _masks(depths: NDArray[np.int64], n_words: int) -> Codes:
    """Words with the first bits set, as many as the depth (n, n_words)."""
    n_bits = np.clip(depths[:, None] - 64 * np.arange(n_words), 0, 64)
    return np.where(n_bits == 0, np.uint64(0), _FULL_WORD << (64 - np.maximum(n_bits, 1)).astype(np.uint64))


def _is_before(codes: Codes, others: Codes) -> NDArray[np.bool_]:
    """Whether each code is smaller than the other, by its first word that differs."""
    result = np.zeros(len(codes), dtype=np.bool_)
    is_open = np.ones(len(codes), dtype=np.bool_)
    for word in range(codes.shape[1]):
        result |= is_open & (codes[:, word] < others[:, word])
        is_open &= codes[:, word] == others[:, word]
    return result
