"""The cells of a place: the lattice of its columns, and what of it is possible.

A node of a place is a prefix of a cell code, as in a joint tree, and cells in the order of codes are numbered by the
code itself: a node is a range of such numbers. Codes have at most 62 bits, so that every engine counts and compares
them as whole numbers. Whether a column is null is the first bit of its axis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Bounded, Column
from spinney.schema.lattice import Lattice, halving_axis
from spinney.schema.places import Place
from spinney.schema.raster import Flags, Indices, Raster, raster_of
from spinney.schema.zorder import Codes, deinterleave, possible_nodes

# Bits of a code, and of one column in it.
MOST_BITS = 62
_MOST_COLUMN_BITS = 24


@dataclass(frozen=True, slots=True, eq=False)
class PlaceAxis:
    """The lattice of a place, and the raster of its shape where one was stated."""

    place: Place
    lattice: Lattice
    raster: Raster | None
    columns: tuple[Bounded, ...]

    @property
    def max_levels(self) -> int:
        """Levels on which a tree of the place decides by noisy counts: whether a column is null is no decision."""
        return max(1, sum(axis.value_bits for axis in self.lattice.axes))

    @property
    def n_nullable(self) -> int:
        """How many of the columns may be null."""
        return sum(axis.nullable for axis in self.lattice.axes)

    @property
    def is_known(self) -> bool:
        """Whether there is one possible cell only."""
        return all(axis.n_possible == 1 for axis in self.lattice.axes)

    def is_possible(self, codes: Codes, depths: Indices) -> Flags:
        """Which nodes hold a cell that rows may have: inside the bounds, and inside the shape if there is one."""
        is_possible = possible_nodes(codes, depths, self.lattice)
        if self.raster is None:
            return is_possible
        first, size = self.value_cells(codes, depths)
        is_held = self.raster.n_held(first, size) > 0
        return np.asarray(is_possible & (is_held | self.has_null(codes)))

    def is_cut_short(self, codes: Codes, depths: Indices) -> Flags:
        """Which nodes are too small for the border of the shape that passes through them to be seen in their halves."""
        if self.raster is None:
            return np.zeros(len(codes), dtype=np.bool_)
        return self.raster.is_cut_short(*self.value_cells(codes, depths)) & ~self.has_null(codes)

    def is_bordered(self, codes: Codes, depths: Indices) -> Flags:
        """Which nodes are not wholly inside the shape; none where there is no shape, or a column is null."""
        if self.raster is None:
            return np.zeros(len(codes), dtype=np.bool_)
        return self.raster.is_bordered(*self.value_cells(codes, depths)) & ~self.has_null(codes)

    def has_null(self, codes: Codes) -> Flags:
        """Which nodes are those of rows in which some column is null."""
        return np.asarray((codes[:, 0] & self.null_bits) != 0)

    @property
    def null_bits(self) -> np.uint64:
        """The bits of a code that say that a column is null."""
        bits = 0
        for position, step in enumerate(self.lattice.order):
            if self.lattice.axes[step.axis].nullable and step.bit == 0:
                bits |= 1 << (63 - position)
        return np.uint64(bits)

    def value_cells(self, codes: Codes, depths: Indices) -> tuple[Indices, Indices]:
        """First cell and number of cells of each node along each axis, null's half of an axis left out."""
        first, size = deinterleave(codes, depths, self.lattice)
        ends = np.array([1 << axis.value_bits for axis in self.lattice.axes])
        return first & (ends - 1), np.minimum(size, ends)

    def cell_numbers(self, codes: Codes) -> NDArray[np.int64]:
        """Codes as the numbers of the cells at which their nodes begin."""
        return (codes[:, 0] >> np.uint64(64 - self.lattice.depth)).astype(np.int64)


def place_axis(place: Place, columns: Mapping[str, Column]) -> PlaceAxis:
    """The cells of a place, whose columns have bounds."""
    return _place_axis(place, tuple(_bounded(columns[name]) for name in place.columns))


# The raster of one shape takes some 40 MB, so that few are kept.
@lru_cache(maxsize=4)
def _place_axis(place: Place, columns: tuple[Any, ...]) -> PlaceAxis:
    n_nullable = sum(column.nullable for column in columns)
    most = min(_MOST_COLUMN_BITS, (MOST_BITS - n_nullable) // len(columns))
    axes = [
        halving_axis(name, column, bits=most if column.bits is None else min(column.bits, most))
        for name, column in zip(place.columns, columns, strict=True)
    ]
    return _on_lattice(place, Lattice(tuple(axes)), columns)


def place_axis_on(place: Place, lattice: Lattice, columns: Mapping[str, Column]) -> PlaceAxis:
    """The cells of a place on a lattice that a release was made on, which may be another than today's."""
    if lattice.depth > MOST_BITS:
        raise ValueError(f"a place of {lattice.depth} bits, more than {MOST_BITS}")
    bounded = tuple(_bounded(columns[name]) for name in place.columns)
    usual = _place_axis(place, bounded)
    return usual if lattice == usual.lattice else _on_lattice(place, lattice, bounded)


def _on_lattice(place: Place, lattice: Lattice, columns: tuple[Any, ...]) -> PlaceAxis:
    raster = None if place.within is None else raster_of(place.within, lattice, columns)
    return PlaceAxis(place, lattice, raster, columns)


def _bounded(column: Column) -> Bounded:
    assert isinstance(column, Bounded)
    return column
