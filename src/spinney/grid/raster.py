"""Raster: a shape on the grid of a place's lattice, made once, so that nodes of a tree can be asked about it.

The lattice's cells are taken together into at most 2^11 parts along each of two axes, 2^7 of three. A part is inside
where the point in its middle is, rounded as values of the columns are; it is crossed where the border of the shape may
pass through it. Trees cut no crossed part, so every leaf holds a point that is inside. Public, like the shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Bounded, Real
from spinney.columns.reading import nearest_multiples
from spinney.grid.lattice import Axis, Lattice
from spinney.schema.shapes import Shape

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]

_MOST_BITS = {2: 11, 3: 7}


@dataclass(frozen=True, slots=True, eq=False)
class Raster:
    """Parts of a lattice, which of them are inside a shape, and which are crossed by its border."""

    shape: Shape
    columns: tuple[Bounded, ...]
    shifts: tuple[int, ...]  # a part is 2^shift cells long
    edges: tuple[Floats, ...]  # physical: where parts begin, and the last ends
    centres: tuple[Floats, ...]  # physical: the value in the middle of each
    is_inside: Flags
    is_crossed: Flags
    sums: Indices  # of is_inside over all parts before each, along every axis

    @property
    def n_inside(self) -> int:
        return int(self.sums.ravel()[-1])

    def holds(self, values: Floats) -> Flags:
        """Which rows of values (n, n_axes) lie inside the shape itself."""
        return self.shape.holds(values, _bounds(self.columns))

    def n_held(self, first: Indices, size: Indices) -> Indices:
        """How many parts inside lie in boxes of cells (n, n_axes), or hold them."""
        begin, end = self.parts(first, size)
        return _box_sums(self.sums, begin, end)

    def is_cut_short(self, first: Indices, size: Indices) -> Flags:
        """Whether boxes of cells are a crossed part, or lie within one."""
        begin, end = self.parts(first, size)
        is_one = (end - begin == 1).all(axis=1)
        return np.asarray(is_one & self.is_crossed[tuple(begin.T)])

    def is_bordered(self, first: Indices, size: Indices) -> Flags:
        """Whether some part in boxes of cells is outside or crossed."""
        begin, end = self.parts(first, size)
        n_parts = (end - begin).prod(axis=1)
        is_fine = self.is_inside & ~self.is_crossed
        return np.asarray(_box_sums(_sums(is_fine), begin, end) < n_parts)

    def parts(self, first: Indices, size: Indices) -> tuple[Indices, Indices]:
        """The first part of each box of cells, and the one after its last, as far as the axes go."""
        shifts = np.array(self.shifts)
        limits = np.array(self.is_inside.shape)
        begin = np.minimum(first >> shifts, limits - 1)
        end = np.clip((first + size - 1 >> shifts) + 1, begin + 1, limits)
        return begin, end

    def measure(self, low: Floats, high: Floats) -> Floats:
        """How many parts inside lie in boxes of physical numbers (n, n_axes), parts of parts included."""
        at = [
            np.stack([np.interp(end[:, axis], edges, np.arange(len(edges))) for end in (low, high)])
            for axis, edges in enumerate(self.edges)
        ]
        total = np.zeros(len(low))
        for corner in product((0, 1), repeat=len(at)):
            sign = (-1) ** (len(at) - sum(corner))
            total += sign * _between(self.sums, [place[end] for place, end in zip(at, corner, strict=True)])
        return total

    def box(self, low: Sequence[float], high: Sequence[float]) -> tuple[slice, ...]:
        """The parts that a box of physical numbers touches."""
        found = []
        for axis, edges in enumerate(self.edges):
            begin = int(np.searchsorted(edges, low[axis], side="right")) - 1
            end = int(np.searchsorted(edges, high[axis], side="left"))
            begin = min(max(begin, 0), len(edges) - 2)
            found.append(slice(begin, max(begin + 1, min(end, len(edges) - 1))))
        return tuple(found)


def raster_of(shape: Shape, lattice: Lattice, columns: Sequence[Bounded]) -> Raster:
    """The raster of a shape on the values of a lattice."""
    most = _MOST_BITS[lattice.n_axes]
    shifts = tuple(max(0, axis.value_bits - most) for axis in lattice.axes)
    edges, centres = [], []
    for axis, column, shift in zip(lattice.axes, columns, shifts, strict=True):
        n_parts = (axis.last >> shift) + 1
        cells = np.minimum(np.arange(n_parts + 1) << shift, axis.last + 1)
        edges.append(_physical(axis, cells))
        centres.append(_middles(edges[-1], column))
    is_inside, is_crossed = shape.on_grid(edges, centres, _bounds(columns))
    return Raster(shape, tuple(columns), shifts, tuple(edges), tuple(centres), is_inside, is_crossed, _sums(is_inside))


def _bounds(columns: Sequence[Bounded]) -> list[tuple[float, float]]:
    """Bounds as physical numbers; a whole number is 1 long."""
    return [
        (float(column.physical(column.low)), float(column.physical(column.high)) + column.is_whole)
        for column in columns
    ]


def _physical(axis: Axis, cells: Indices) -> Floats:
    """Where cells begin, in units of the column."""
    if axis.kind == "real":
        ends = np.clip(axis.origin + cells / axis.scale, axis.low, axis.high)
        return np.where(cells == axis.last + 1, axis.high, ends)
    return np.minimum(int(axis.low) + cells * axis.step, int(axis.high) + 1).astype(np.float64)


def _middles(edges: Floats, column: Bounded) -> Floats:
    """The value nearest to the middle of each part."""
    middle = (edges[:-1] + edges[1:]) / 2
    if isinstance(column, Real):
        return middle if column.spacing is None else nearest_multiples(middle, column)
    return nearest_multiples(np.floor(middle).astype(np.int64), column).astype(np.float64)


def _sums(flags: Flags) -> Indices:
    """Sums over all places before each, along every axis (one longer than the array)."""
    sums = np.zeros([n + 1 for n in flags.shape], dtype=np.int64)
    sums[tuple(slice(1, None) for _ in flags.shape)] = flags
    for axis in range(flags.ndim):
        np.cumsum(sums, axis=axis, out=sums)
    return sums


def _box_sums(sums: Indices, begin: Indices, end: Indices) -> Indices:
    """What lies in boxes (n, n_axes), by inclusion and exclusion over their corners."""
    total = np.zeros(len(begin), dtype=np.int64)
    for corner in product((0, 1), repeat=begin.shape[1]):
        at = tuple(np.where(np.array(corner), end, begin).T)
        total += (-1) ** (begin.shape[1] - sum(corner)) * sums[at]
    return total


def _between(sums: Indices, at: Sequence[Floats]) -> Floats:
    """Sums at places between those of the array, linear along every axis."""
    low = [np.minimum(place.astype(np.int64), n - 2) for place, n in zip(at, sums.shape, strict=True)]
    rest = [place - start for place, start in zip(at, low, strict=True)]
    total = np.zeros(len(at[0]))
    for corner in product((0, 1), repeat=len(at)):
        share = np.ones(len(at[0]))
        for part, end in zip(rest, corner, strict=True):
            share = share * (part if end else 1 - part)
        total += share * sums[tuple(start + end for start, end in zip(low, corner, strict=True))]
    return total
