"""Shapes: where the points of a place may lie, as a public statement: polygons, or a mask of cells.

    shapes           `Polygons` and `Mask`: vectorised tests of points and boxes, which need numpy alone
    stated shapes    lists of points, arrays of booleans, GeoJSON, or files of these
    files            what is read, and how much of it
    polygons         rings from arrays, lists and GeoJSON
    masks            cells from arrays and lists

A file is read when a shape is stated, never when a release is loaded. Whoever wrote it or the release, what is
no shape is refused with a SchemaError: no depth, size or kind of content makes reading hang, run out of memory
or fail raw.
"""

from __future__ import annotations

import json
import math
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinney.errors import SchemaError, raise_alone

# --------------------------------------------------------------------------------------------------------------- shapes
# Shapes as plain data: equal ones are equal objects, and tests of points and boxes are vectorised.
#
#     polygons   rings of (x, y) points; inside is by the even-odd rule, so a ring inside another is a hole
#     mask       an array of booleans, one axis for each column, from low bound to high bound in equal steps
from spinney.machine import lazily
from spinney.text import brief

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]
else:
    (np,) = lazily("numpy")


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
        at = [_cells_at(points[:, axis], *bounds[axis], n) for axis, n in enumerate(self.shape)]
        return np.asarray(self.array()[tuple(np.floor(place).astype(np.int64) for place in at)])

    def on_grid(
        self, edges: Sequence[Floats], centres: Sequence[Floats], bounds: Sequence[tuple[float, float]]
    ) -> tuple[Flags, Flags]:
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
        return np.asarray(np.frombuffer(self.cells, dtype=np.uint8).reshape(self.shape) != 0)

    def to_plain(self) -> Any:
        return _rows_of_digits(self.array())

    def __repr__(self) -> str:
        return f"<a mask of {' x '.join(map(str, self.shape))} cells>"


def _across(start: Floats, stop: Floats, passes: Flags, y: Floats) -> Floats:
    """Where sides (n_sides, 2) pass the heights y: x, of those that pass (n_sides, n)."""
    rise = (stop - start)[:, 1, None]
    share = (y - start[:, 1, None]) / np.where(passes, rise, 1.0)
    return np.asarray(start[:, 0, None] + share * (stop - start)[:, 0, None])


def _at_height(start: Floats, stop: Floats, end: Floats, y: Floats) -> Floats:
    """Where sides are at one height each; of level ones, this end of them."""
    rise = stop[:, 1] - start[:, 1]
    share = np.divide(y - start[:, 1], rise, out=np.zeros_like(rise), where=rise != 0)
    return np.where(rise != 0, start[:, 0] + share * (stop[:, 0] - start[:, 0]), end[:, 0])


def _rows_of_digits(array: Any) -> Any:
    if array.ndim == 1:
        return "".join("1" if cell else "0" for cell in array.tolist())
    return [_rows_of_digits(part) for part in array]


def _cells_at(values: Floats, low: float, high: float, n: int) -> Floats:
    """Places of values in units of a mask's cells, within 0..n and, rounded down, below n."""
    return np.clip((values - low) / (high - low) * n, 0, np.nextafter(n, 0))


# -------------------------------------------------------------------------------------------------------- stated shapes
# Shapes as they are stated: lists of points, arrays of booleans, GeoJSON, or files of these.


# The raster of a shape, and every test of a point near the border, takes time in proportion to its points.
MOST_POINTS = 20_000
MOST_MASK_CELLS = 1 << 24
_LARGEST_FILE = 1 << 28
_LARGEST_NUMBER = 1e300
_DEEPEST = 8  # collections in collections
_MOST_AXES = 3


def as_shape(within: Any) -> Shape:
    """The shape that was stated: polygons, a mask, GeoJSON, or the path of a file that holds one of them."""
    if isinstance(within, Shape):
        return within
    if isinstance(within, (str, os.PathLike)):
        return shape_from_file(Path(os.fsdecode(within)))
    within = _geo_interface(within)
    if isinstance(within, Mapping):
        return _polygons(_geojson_rings(within))
    if hasattr(within, "dtype"):
        import numpy as np

        if isinstance(within, np.ndarray):
            if within.dtype.kind == "b":
                return _mask(within)
            within = _rings_of_array(within)
    if not _is_list(within) or not len(within):
        raise SchemaError(
            f"within={_named(within)} is not a polygon (a list of (x, y) points), several polygons, a mask (an array "
            "of booleans) or the path of a GeoJSON or .npy file"
        )
    first = within
    for _ in range(_DEEPEST):
        if not _is_list(first) or not len(first):
            break
        first = first[0]
    if isinstance(first, (bool, str)) or type(first).__name__ == "bool_":
        return _mask(_digits(within))
    is_ring = _is_list(within[0]) and bool(len(within[0])) and not isinstance(within[0][0], Sequence)
    return _polygons([within] if is_ring else within)


def shape_from_file(path: Path) -> Shape:
    """Polygons from a GeoJSON file, or a mask from an .npy file; a SchemaError names the file."""
    name = brief(str(path))
    content = _content(path, name)
    try:
        if path.suffix.lower() == ".npy":
            return _mask(_saved_array(content))
        try:
            described = json.loads(content)
        except (ValueError, RecursionError):
            raise_alone(SchemaError("it is neither GeoJSON nor an .npy file"))
        if not isinstance(described, Mapping):
            raise SchemaError("it is not GeoJSON of polygons")
        return _polygons(_geojson_rings(described))
    except SchemaError as err:
        raise_alone(SchemaError(f"the shape {name}: {err}"))


# ---------------------------------------------------------------------------------------------------------------- files


def _content(path: Path, name: str) -> bytes:
    """The whole file. What is no plain file might never end, and is not opened."""
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            raise SchemaError(f"{name} is not a file, so a shape cannot be read from it")
        if about.st_size > _LARGEST_FILE:
            raise SchemaError(f"the shape {name} is larger than {_LARGEST_FILE >> 20} MiB; simplify it")
        with path.open("rb") as file:
            return file.read(_LARGEST_FILE)
    except SchemaError:
        raise
    except (OSError, ValueError) as err:  # ValueError: of names that no file can have
        why = err.strerror if isinstance(err, OSError) and err.strerror else "no file can have that name"
        raise_alone(SchemaError(f"cannot read the shape {name}: {why}"))


def _saved_array(content: bytes) -> Any:
    """The array of booleans in an .npy file, whose header is believed only as far as the file goes."""
    import io

    file = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(file)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, is_fortran, dtype = read_header(file)
    except Exception:  # headers are read by an evaluator of Python, which fails in many ways
        raise_alone(SchemaError("it is not an .npy file of an array"))
    if dtype.kind != "b":
        raise SchemaError(f"the mask holds {dtype}, not booleans; save array.astype(bool)")
    start = file.tell()
    if any(type(n) is not int or n < 0 for n in shape) or math.prod(shape) != len(content) - start:
        raise SchemaError("it is not an .npy file of an array: it is not as long as its header says; save it again")
    cells = np.frombuffer(content, dtype=np.uint8, offset=start) if len(content) > start else np.empty(0, np.uint8)
    if len(shape) > _MOST_AXES:
        raise SchemaError(f"a mask of {len(shape)} dimensions is not one of two or three")
    return cells.reshape(shape, order="F" if is_fortran else "C") != 0


# ------------------------------------------------------------------------------------------------------------- polygons


def _geo_interface(within: Any) -> Any:
    """What an object of a library of shapes says of itself, or the object."""
    try:
        return getattr(within, "__geo_interface__", within)
    except Exception as err:
        problem = f"within: the __geo_interface__ of this {type(within).__name__} failed with {type(err).__name__}"
        raise_alone(SchemaError(f"{problem}; give a list of (x, y) points"))


def _rings_of_array(array: Any) -> Any:
    """Polygons of an array; one of another form may be a table, so that its values are not shown."""
    is_ring = array.ndim in (2, 3) and array.shape[-1] in (2, 3)
    if array.dtype.kind in "iuf" and not is_ring:
        raise SchemaError(
            f"within: an array of shape {array.shape} is not a polygon, which has one (x, y) in each row; for a mask "
            "give booleans"
        )
    if array.dtype.kind not in "iufOU":
        raise SchemaError(f"within: an array of {array.dtype} is not a polygon; give numbers, or booleans for a mask")
    return array.tolist()


def _polygons(rings: Any) -> Polygons:
    checked, n_points = [], 0
    for ring in rings:
        if not _is_list(ring):
            raise SchemaError(f"within: {_named(ring)} is not a polygon, which is a list of (x, y) points")
        n_points += len(ring)
        if n_points > MOST_POINTS:
            raise SchemaError(
                f"within: the polygons have more than {MOST_POINTS:,} points; simplify them, or give a mask of cells"
            )
        points = [_point(point) for point in ring]
        if len(points) > 1 and points[0] == points[-1]:
            points.pop()
        if len(set(points)) < 3:
            raise SchemaError(f"within: a polygon has {len(set(points))} different points; give at least three")
        checked.append(tuple(points))
    if not checked:
        raise SchemaError("within: there is no polygon in it")
    return Polygons(tuple(checked))


def _point(point: Any) -> tuple[float, float]:
    numbers = point if _is_list(point) else ()
    if len(numbers) not in (2, 3) or any(isinstance(n, bool) or not isinstance(n, (int, float)) for n in numbers):
        raise SchemaError(f"within: {_named(point)} is not a point (x, y) of a polygon")
    x, y = (_number(number) for number in numbers[:2])
    return x, y


def _number(number: float) -> float:
    if not abs(number) < _LARGEST_NUMBER:  # NaN too
        raise SchemaError(f"within: {brief(number)} is not a coordinate; every point of a polygon has finite numbers")
    return float(number)


def _geojson_rings(described: Mapping[str, Any]) -> list[Any]:
    """The rings of all polygons in a GeoJSON object."""
    rings: list[Any] = []
    waiting: list[tuple[Any, int]] = [(described, 0)]
    while waiting:
        thing, depth = waiting.pop()
        kind = thing.get("type") if isinstance(thing, Mapping) else None
        if depth > _DEEPEST or len(rings) > MOST_POINTS:
            raise SchemaError("within: the GeoJSON is nested too deeply or has too many polygons; simplify it")
        if kind == "FeatureCollection":
            waiting += [(part, depth + 1) for part in _listed(thing, "features", kind)[::-1]]
        elif kind == "GeometryCollection":
            waiting += [(part, depth + 1) for part in _listed(thing, "geometries", kind)[::-1]]
        elif kind == "Feature":
            waiting.append((thing.get("geometry"), depth + 1))
        elif kind in ("Polygon", "MultiPolygon"):
            found = _listed(thing, "coordinates", kind)
            for polygon in found if kind == "MultiPolygon" else [found]:
                if not _is_list(polygon):
                    raise SchemaError(f"within: {_named(polygon)} is not a polygon of a GeoJSON MultiPolygon")
                rings += polygon
        else:
            raise SchemaError(
                f"within: GeoJSON of type {_named(kind)} is no shape; give a Polygon, a MultiPolygon or features of "
                "these"
            )
    return rings


def _listed(thing: Mapping[str, Any], key: str, kind: str) -> Any:
    found = thing.get(key)
    if not _is_list(found):
        raise SchemaError(f"within: the {key} of a GeoJSON {kind} are {_named(found)}, not a list")
    return found


def _is_list(thing: Any) -> bool:
    return isinstance(thing, Sequence) and not isinstance(thing, (str, bytes, bytearray))


def _named(thing: Any) -> str:
    """A thing for an error: by its value where that was typed, else by its type, as it may hold private values."""
    typed = (int, float, str, type(None))
    is_typed = isinstance(thing, typed) or (
        isinstance(thing, (list, tuple)) and len(thing) <= _DEEPEST and all(isinstance(part, typed) for part in thing)
    )
    return brief(thing) if is_typed else f"<{type(thing).__name__}>"


# ---------------------------------------------------------------------------------------------------------------- masks


def _mask(array: Any) -> Mask:
    if not 1 <= array.ndim <= 3 or not array.size:
        raise SchemaError(f"within: a mask of shape {array.shape} is not one of two or three dimensions")
    if array.size > MOST_MASK_CELLS:
        raise SchemaError(f"within: the mask has {array.size:,} cells, more than {MOST_MASK_CELLS:,}; make it coarser")
    return Mask(tuple(array.shape), np.ascontiguousarray(array, dtype=np.uint8).tobytes())


def _digits(rows: Any) -> Any:
    """An array of booleans from nested lists of them, or from nested lists of strings of 0 and 1."""

    def plain(part: Any, depth: int = 0) -> Any:
        if isinstance(part, str):
            if set(part) - {"0", "1"} or not part:
                raise SchemaError(f"within: {brief(part)} is not a row of a mask, which is written in 0 and 1")
            return [digit == "1" for digit in part]
        if _is_list(part) and depth < _MOST_AXES:
            return [plain(item, depth + 1) for item in part]
        if not isinstance(part, (bool, np.bool_)):
            raise SchemaError(f"within: {_named(part)} is not true or false; a mask holds booleans alone")
        return bool(part)

    nested = plain(rows)
    try:
        array = np.array(nested)
    except ValueError:  # lists of different lengths
        array = np.empty(0, dtype=object)
    if array.dtype.kind != "b":
        raise SchemaError("within: the rows of the mask are not equally long")
    return array
