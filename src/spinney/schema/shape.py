"""Shapes: where the points of a place may lie, as a public statement: polygons, or a mask of cells over the bounds.

    polygons   rings of (x, y) points; a point is inside by the even-odd rule, so a ring inside another is a hole
    mask       an array of booleans, one axis for each column, from the low bound to the high one in equal steps

Shapes are plain data; how one is stated is in `stated_shape`. Tests of points and boxes are vectorised and need numpy
alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]


class Shape(ABC):
    """Where points may lie. Equal shapes are equal objects and hash alike, so that what is made of them can be kept."""

    @property
    @abstractmethod
    def n_axes(self) -> int:
        """How many columns a point of it has."""

    @abstractmethod
    def holds(self, points: Floats, bounds: Sequence[tuple[float, float]]) -> Flags:
        """Which points (n, n_axes) lie inside; `bounds` are those of the columns."""

    @abstractmethod
    def on_grid(
        self, edges: Sequence[Floats], centres: Sequence[Floats], bounds: Sequence[tuple[float, float]]
    ) -> tuple[Flags, Flags]:
        """Of a grid of boxes: whether the centre of each is inside, and whether its border may pass through the box."""

    @abstractmethod
    def to_plain(self) -> Any:
        """The shape as lists of numbers and strings."""


@dataclass(frozen=True, slots=True)
class Polygons(Shape):
    """Rings of points, each closed by itself."""

    rings: tuple[tuple[tuple[float, float], ...], ...]

    @property
    def n_axes(self) -> int:
        return 2

    def holds(self, points: Floats, bounds: Sequence[tuple[float, float]]) -> Flags:
        import numpy as np

        del bounds
        start, stop = self._sides()
        is_inside = np.zeros(len(points), dtype=np.bool_)
        at_once = max(1, (1 << 22) // len(start))
        for first in range(0, len(points), at_once):
            x, y = points[first : first + at_once].T
            passes = (start[:, 1, None] <= y) != (stop[:, 1, None] <= y)
            across = _across(start, stop, passes, y)
            is_inside[first : first + at_once] = (passes & (x < across)).sum(axis=0) % 2 == 1
        return is_inside

    def on_grid(
        self, edges: Sequence[Floats], centres: Sequence[Floats], bounds: Sequence[tuple[float, float]]
    ) -> tuple[Flags, Flags]:
        import numpy as np

        del bounds
        start, stop = self._sides()
        low, high = np.minimum(start[:, 1], stop[:, 1]), np.maximum(start[:, 1], stop[:, 1])
        shape = (len(centres[0]), len(centres[1]))
        is_inside, is_crossed = np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_)
        for row, y in enumerate(centres[1]):
            below, above = edges[1][row], edges[1][row + 1]
            near = np.flatnonzero((low <= above) & (high >= below))
            if not len(near):
                continue
            first, last = start.take(near, axis=0), stop.take(near, axis=0)
            passes = (first[:, 1] <= y) != (last[:, 1] <= y)
            across = _across(first, last, passes[:, None], np.array([y]))[:, 0].compress(passes)
            n_before = np.bincount(np.searchsorted(centres[0], across), minlength=shape[0] + 1)
            is_inside[:, row] = (len(across) - np.cumsum(n_before)[:-1]) % 2 == 1
            ends = [_at_height(first, last, end, np.clip(end[:, 1], below, above)) for end in (first, last)]
            begin = np.searchsorted(edges[0], np.minimum(*ends), side="left") - 1
            end = np.searchsorted(edges[0], np.maximum(*ends), side="right")
            n_begun, n_ended = (
                np.cumsum(np.bincount(np.clip(at, 0, shape[0]), minlength=shape[0] + 1)) for at in (begin, end)
            )
            is_crossed[:, row] = (n_begun > n_ended)[:-1]
        return is_inside, is_crossed

    def _sides(self) -> tuple[Floats, Floats]:
        """Where the sides of all rings begin and end (n_sides, 2)."""
        import numpy as np

        rings = [np.array(ring, dtype=np.float64) for ring in self.rings]
        return np.concatenate(rings), np.concatenate([np.roll(ring, -1, axis=0) for ring in rings])

    def to_plain(self) -> Any:
        return [[list(point) for point in ring] for ring in self.rings]

    def __repr__(self) -> str:
        n_points = sum(map(len, self.rings))
        return f"<{len(self.rings)} polygon{'s' * (len(self.rings) != 1)} of {n_points} points>"


@dataclass(frozen=True, slots=True)
class Mask(Shape):
    """Cells of equal size over the bounds, in C order, one byte each."""

    shape: tuple[int, ...]
    cells: bytes

    @property
    def n_axes(self) -> int:
        return len(self.shape)

    def holds(self, points: Floats, bounds: Sequence[tuple[float, float]]) -> Flags:
        import numpy as np

        at = [_cells_at(points[:, axis], *bounds[axis], n) for axis, n in enumerate(self.shape)]
        return np.asarray(self.array()[tuple(np.floor(place).astype(np.int64) for place in at)])

    def on_grid(
        self, edges: Sequence[Floats], centres: Sequence[Floats], bounds: Sequence[tuple[float, float]]
    ) -> tuple[Flags, Flags]:
        import numpy as np

        array = self.array()
        middle = [
            np.floor(_cells_at(centres[axis], *bounds[axis], n)).astype(np.int64) for axis, n in enumerate(self.shape)
        ]
        is_inside = array[np.ix_(*middle)]
        held = array.astype(np.int64)
        size = np.ones((), dtype=np.int64)
        for axis, n in enumerate(self.shape):
            at = _cells_at(edges[axis], *bounds[axis], n)
            begin = np.floor(at[:-1]).astype(np.int64)
            end = np.maximum(np.ceil(at[1:]).astype(np.int64), begin + 1)
            sums = np.concatenate([np.zeros_like(held.take([0], axis)), np.cumsum(held, axis)], axis)
            held = sums.take(np.minimum(end, n), axis) - sums.take(begin, axis)
            size = np.multiply.outer(size, np.minimum(end, n) - begin)
        return is_inside, (held > 0) & (held < size)

    def array(self) -> Flags:
        """The cells as an array."""
        import numpy as np

        return np.asarray(np.frombuffer(self.cells, dtype=np.uint8).reshape(self.shape) != 0)

    def to_plain(self) -> Any:
        return _rows_of_digits(self.array())

    def __repr__(self) -> str:
        return f"<a mask of {' x '.join(map(str, self.shape))} cells>"


def _across(start: Floats, stop: Floats, passes: Flags, y: Floats) -> Floats:
    """Where sides (n_sides, 2) pass the heights y: x, of those that pass (n_sides, n)."""
    import numpy as np

    rise = (stop - start)[:, 1, None]
    share = (y - start[:, 1, None]) / np.where(passes, rise, 1.0)
    return np.asarray(start[:, 0, None] + share * (stop - start)[:, 0, None])


def _at_height(start: Floats, stop: Floats, end: Floats, y: Floats) -> Floats:
    """Where sides are at one height each; of level ones, this end of them."""
    import numpy as np

    rise = stop[:, 1] - start[:, 1]
    share = np.divide(y - start[:, 1], rise, out=np.zeros_like(rise), where=rise != 0)
    return np.where(rise != 0, start[:, 0] + share * (stop[:, 0] - start[:, 0]), end[:, 0])


def _rows_of_digits(array: Any) -> Any:
    if array.ndim == 1:
        return "".join("1" if cell else "0" for cell in array.tolist())
    return [_rows_of_digits(part) for part in array]


def _cells_at(values: Floats, low: float, high: float, n: int) -> Floats:
    """Places of values in units of a mask's cells, within 0..n and, rounded down, below n."""
    import numpy as np

    return np.clip((values - low) / (high - low) * n, 0, np.nextafter(n, 0))
