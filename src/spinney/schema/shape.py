"""Shapes: where the points of a place may lie, as a public statement: polygons, or a mask of cells over the bounds.

    polygons   rings of (x, y) points; a point is inside by the even-odd rule, so a ring inside another is a hole
    mask       an array of booleans, one axis for each column, from the low bound to the high one in equal steps

Shapes are plain data: a file is read when a shape is stated (GeoJSON, or .npy for a mask), never when a release is
loaded. Tests of points and boxes are vectorised and need numpy alone.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinney.errors import SchemaError
from spinney.shown import brief

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]

MOST_POINTS = 1_000_000
MOST_MASK_CELLS = 1 << 24
_LARGEST_FILE = 1 << 28
_LARGEST_NUMBER = 1e300


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
            near = (low <= above) & (high >= below)
            if not near.any():
                continue
            first, last = start[near], stop[near]
            passes = (first[:, 1] <= y) != (last[:, 1] <= y)
            across = np.sort(_across(first, last, passes[:, None], np.array([y]))[passes, 0])
            is_inside[:, row] = (len(across) - np.searchsorted(across, centres[0], side="right")) % 2 == 1
            ends = [_at_height(first, last, end, np.clip(end[:, 1], below, above)) for end in (first, last)]
            begin = np.searchsorted(edges[0], np.minimum(*ends), side="left") - 1
            end = np.searchsorted(edges[0], np.maximum(*ends), side="right")
            steps = np.zeros(shape[0] + 1, dtype=np.int64)
            np.add.at(steps, np.clip(begin, 0, shape[0]), 1)
            np.add.at(steps, np.clip(end, 0, shape[0]), -1)
            is_crossed[:, row] = np.cumsum(steps)[:-1] > 0
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


def as_shape(within: Any) -> Shape:
    """The shape that was stated: polygons, a mask, GeoJSON, or the path of a file that holds one of them."""
    if isinstance(within, Shape):
        return within
    if isinstance(within, (str, os.PathLike)):
        return shape_from_file(Path(within))
    if hasattr(within, "__geo_interface__"):
        within = within.__geo_interface__
    if isinstance(within, Mapping):
        return _polygons(_geojson_rings(within))
    if hasattr(within, "dtype") and hasattr(within, "tolist"):
        if within.dtype.kind == "b":
            return _mask(within)
        within = within.tolist()
    if not isinstance(within, Sequence) or not within:
        raise SchemaError(
            f"within={brief(within)} is not a polygon (a list of (x, y) points), several polygons, a mask (an array of "
            "booleans) or the path of a GeoJSON or .npy file"
        )
    first = within
    while isinstance(first, Sequence) and not isinstance(first, str) and len(first):
        first = first[0]
    if isinstance(first, (bool, str)) or type(first).__name__ == "bool_":
        return _mask(_digits(within))
    is_ring = isinstance(within[0], Sequence) and bool(within[0]) and not isinstance(within[0][0], Sequence)
    return _polygons([within] if is_ring else within)


def shape_from_file(path: Path) -> Shape:
    """Polygons from a GeoJSON file, or a mask from an .npy file."""
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise SchemaError(f"the shape {str(path)!r} is larger than {_LARGEST_FILE >> 20} MiB; simplify it")
        content = path.read_bytes()
    except OSError as err:
        raise SchemaError(f"cannot read the shape {str(path)!r}: {err.strerror or err}") from err
    if path.suffix.lower() == ".npy":
        import io

        import numpy as np

        try:
            array = np.lib.format.read_array(io.BytesIO(content))  # of numbers only: objects are refused
        except (ValueError, OSError, EOFError, SyntaxError) as err:
            raise SchemaError(f"the shape {str(path)!r} is not an .npy file of an array") from err
        if array.dtype.kind != "b":
            raise SchemaError(f"the mask {str(path)!r} holds {array.dtype}, not booleans; save array.astype(bool)")
        return _mask(array)
    try:
        described = json.loads(content)
    except (ValueError, RecursionError) as err:
        raise SchemaError(f"the shape {str(path)!r} is neither GeoJSON nor an .npy file") from err
    if not isinstance(described, Mapping):
        raise SchemaError(f"the shape {str(path)!r} is not GeoJSON of polygons")
    return _polygons(_geojson_rings(described))


# ------------------------------------------------------------------------------------------------------- polygons


def _polygons(rings: Any) -> Polygons:
    checked, n_points = [], 0
    for ring in rings:
        if isinstance(ring, str) or not isinstance(ring, Sequence):
            raise SchemaError(f"within: {brief(ring)} is not a polygon, which is a list of (x, y) points")
        points = [_point(point) for point in ring]
        if len(points) > 1 and points[0] == points[-1]:
            points.pop()
        if len(set(points)) < 3:
            raise SchemaError(f"within: a polygon has {len(set(points))} different points; give at least three")
        n_points += len(points)
        checked.append(tuple(points))
    if n_points > MOST_POINTS:
        raise SchemaError(f"within: the polygons have {n_points:,} points, more than {MOST_POINTS:,}; simplify them")
    if not checked:
        raise SchemaError("within: there is no polygon in it")
    return Polygons(tuple(checked))


def _point(point: Any) -> tuple[float, float]:
    numbers = list(point) if isinstance(point, Sequence) and not isinstance(point, str) else []
    if len(numbers) not in (2, 3) or any(isinstance(n, bool) or not isinstance(n, (int, float)) for n in numbers):
        raise SchemaError(f"within: {brief(point)} is not a point (x, y) of a polygon")
    x, y = (_number(number) for number in numbers[:2])
    return x, y


def _number(number: float) -> float:
    if not abs(number) < _LARGEST_NUMBER:  # NaN too
        raise SchemaError(f"within: {brief(number)} is not a coordinate; every point of a polygon has finite numbers")
    return float(number)


def _geojson_rings(described: Mapping[str, Any]) -> list[Any]:
    """The rings of all polygons in a GeoJSON object."""
    kind, rings = described.get("type"), []
    waiting: list[Any] = [described]
    while waiting:
        thing = waiting.pop()
        kind = thing.get("type") if isinstance(thing, Mapping) else None
        if kind == "FeatureCollection":
            waiting += list(thing.get("features") or [])[::-1]
        elif kind == "GeometryCollection":
            waiting += list(thing.get("geometries") or [])[::-1]
        elif kind == "Feature":
            waiting.append(thing.get("geometry"))
        elif kind in ("Polygon", "MultiPolygon"):
            found = thing.get("coordinates")
            if not isinstance(found, Sequence):
                raise SchemaError(f"within: a GeoJSON {kind} has no coordinates")
            rings += [ring for polygon in (found if kind == "MultiPolygon" else [found]) for ring in polygon]
        else:
            raise SchemaError(
                f"within: GeoJSON of type {brief(kind)} is no shape; give a Polygon, a MultiPolygon or features of "
                "these"
            )
    return rings


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


# ---------------------------------------------------------------------------------------------------------- masks


def _mask(array: Any) -> Mask:
    import numpy as np

    if not 1 <= array.ndim <= 3 or not array.size:
        raise SchemaError(f"within: a mask of shape {array.shape} is not one of two or three dimensions")
    if array.size > MOST_MASK_CELLS:
        raise SchemaError(f"within: the mask has {array.size:,} cells, more than {MOST_MASK_CELLS:,}; make it coarser")
    return Mask(tuple(array.shape), np.ascontiguousarray(array, dtype=np.uint8).tobytes())


def _digits(rows: Any) -> Any:
    """An array of booleans from nested lists of them, or from nested lists of strings of 0 and 1."""
    import numpy as np

    def plain(part: Any) -> Any:
        if isinstance(part, str):
            if set(part) - {"0", "1"} or not part:
                raise SchemaError(f"within: {brief(part)} is not a row of a mask, which is written in 0 and 1")
            return [digit == "1" for digit in part]
        if isinstance(part, Sequence):
            return [plain(item) for item in part]
        if not isinstance(part, (bool, np.bool_)):
            raise SchemaError(f"within: {brief(part)} is not true or false; a mask holds booleans alone")
        return bool(part)

    nested = plain(rows)
    try:
        array = np.array(nested)
    except ValueError:  # lists of different lengths
        array = np.empty(0, dtype=object)
    if array.dtype.kind != "b":
        raise SchemaError("within: the rows of the mask are not equally long")
    return array


def _rows_of_digits(array: Any) -> Any:
    if array.ndim == 1:
        return "".join("1" if cell else "0" for cell in array.tolist())
    return [_rows_of_digits(part) for part in array]


def _cells_at(values: Floats, low: float, high: float, n: int) -> Floats:
    """Places of values in units of a mask's cells, within 0..n and, rounded down, below n."""
    import numpy as np

    return np.clip((values - low) / (high - low) * n, 0, np.nextafter(n, 0))
