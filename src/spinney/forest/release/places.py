"""PlaceModel: one place of a forest as it was released: boxes of two or three columns, with weights and states.

To the model over many columns it is one variable like any other; a row draws the state, a region in it, and a point in
the region, even over what of it lies inside the shape, where one was stated. Points are as `to_frame` takes them:
reals in their own unit, all else in whole values above the low bound, null as NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Bounded, Column
from spinney.columns.reading import nearest_multiples
from spinney.errors import ParameterError
from spinney.forest.release.columns import ColumnModel, Floats, LeafModel, origin_of, pick_leaves
from spinney.forest.release.conditions import condition, whole_numbers
from spinney.graph.model import Offsets
from spinney.grid.axes import PlaceAxis
from spinney.grid.codes import Codes, Indices, deinterleave
from spinney.grid.raster import Raster
from spinney.release.answers.question import never, plain
from spinney.tree.release.geometry import extent

_NOWHERE = np.empty(0)
# How often a point is drawn anew in a part that the border passes through, before one that is known to lie inside.
_MOST_DRAWS = 32
# How many points along each axis of a box are tried, to know whether any lies inside: of all boxes, and of hard ones.
_FEW, _MANY = 5, {2: 65, 3: 17}


@dataclass(frozen=True, slots=True, eq=False)
class PlaceModel(LeafModel):
    """The regions of a place in the order of their codes: where they lie, what they weigh, which state has them."""

    axis: PlaceAxis
    codes: Codes  # (n_regions, 1)
    depths: Indices  # (n_regions,)
    weights: Floats  # (n_regions,), not negative
    states: NDArray[np.int32]  # (n_regions,)
    n_states: int
    low: Floats  # (n_regions, n_columns)
    length: Floats  # (n_regions, n_columns)
    is_null: NDArray[np.bool_]  # (n_regions, n_columns)
    is_bordered: NDArray[np.bool_]  # (n_regions,): not wholly inside the shape

    @classmethod
    def of_nodes(
        cls, axis: PlaceAxis, codes: Codes, depths: Indices, weights: Floats, states: NDArray[np.int32]
    ) -> PlaceModel:
        """The regions of some nodes, cut to what rows can have."""
        first, size = deinterleave(codes, depths, axis.lattice)
        low, length = np.zeros(first.shape), np.zeros(first.shape)
        is_null = np.zeros(first.shape, dtype=np.bool_)
        for index, one in enumerate(axis.lattice.axes):
            is_null[:, index] = one.nullable & (first[:, index] >= one.null_cell)
            start = np.clip(first[:, index], one.first, one.last)
            stop = np.clip(first[:, index] + size[:, index], start + 1, one.last + 1)
            reach = extent(one, start, stop)
            low[:, index], length[:, index] = (np.where(is_null[:, index], 0.0, end) for end in reach)
        n_states = int(states.max()) + 1
        is_bordered = axis.is_bordered(codes, depths)
        return cls(axis, codes, depths, weights, states, n_states, low, length, is_null, is_bordered)

    @property
    def names(self) -> tuple[str, ...]:
        """The place's columns."""
        return self.axis.place.columns

    def reach(self) -> Floats:
        """How large regions are, as shares of the place: what a shape leaves of them; 1 along columns that are null."""
        whole = [one.edge for one in self.axis.lattice.axes]
        share = np.where(self.is_null, 1.0, self.length / whole)
        return np.asarray(share.prod(axis=1) * np.where(self.is_bordered, self.parts_inside(self.axis.columns), 1.0))

    def parts_inside(self, columns: Sequence[Column]) -> Floats:
        """What part of each region's box is inside the shape; places count from the low ends of `columns`."""
        raster = self.axis.raster
        if raster is None or not self.is_bordered.any():
            return np.ones(len(self.states))
        # What is one number long is taken to be as wide as the parts of the raster there.
        origin = np.array([float(origin_of(column)) for column in columns])
        thin = np.array([float(np.diff(edges).min()) for edges in raster.edges])
        low = self.low + origin
        high = low + np.where(self.length > 0, self.length, thin)
        parts = [
            np.interp(high[:, k], e, np.arange(len(e))) - np.interp(low[:, k], e, np.arange(len(e)))
            for k, e in enumerate(raster.edges)
        ]
        n_parts = np.prod(parts, axis=0)
        held = raster.measure(low, high)
        share: Floats = np.divide(held, n_parts, out=np.zeros_like(held), where=n_parts > 0)
        return share.clip(0.0, 1.0)

    # ---------------------------------------------------------------------------------------------- conditions

    def restricted(self, index: int, columns: Sequence[Column], wanted: object) -> tuple[Column, PlaceModel, Floats]:
        """The place with one column cut to what is wanted: the column, what is left, and how much of each state.

        Args:
            index: which of the place's columns.
            columns: all of them, from whose low ends the regions count.
            wanted: as `conditions.condition` takes it; a list holds one value.
        """
        name = self.axis.place.columns[index]
        asked = plain(wanted)
        if isinstance(asked, list) and len(asked) != 1:
            raise ParameterError(
                f"where: column {name!r} is part of the place {self.axis.place.label!r} and takes one value or a range "
                "(low, high), not a list"
            )
        view = _AxisView(
            self.low[:, index], self.length[:, index], self.is_null[:, index], self.weights, self.states, self.n_states
        )
        cut = condition(name, columns[index], view, asked)
        inside = self.inside()
        base = np.where(self.state_weights()[self.states] > 0, self.weights, inside * 1e-9)
        share = np.divide(cut.model.weights, base, out=np.zeros_like(base), where=base > 0)
        low, length = self.low.copy(), self.length.copy()
        low[:, index], length[:, index] = cut.model.low, cut.model.length
        near = [cut.column if place == index else column for place, column in enumerate(columns)]
        left = replace(self, low=low, length=length)
        if self.is_bordered.any():
            before, after = self.parts_inside(columns), left.parts_inside(near)
            ratio = np.divide(after, before, out=np.zeros_like(after), where=before > 0)
            share = share * np.where(self.is_bordered, ratio, 1.0)
            # What the raster gives a box may be that of a part whose rest is inside; rows need a point that is.
            raster, near_border = self.axis.raster, np.flatnonzero(self.is_bordered & (share > 0))
            assert raster is not None
            share[near_border[~_has_points(raster, low[near_border], length[near_border], near)]] = 0.0
        kept = self.per_state(inside * share)
        if not kept.any():
            raise never(name, asked)
        return cut.column, replace(left, weights=base * share), kept / max(float(kept.max()), 1.0)

    # ------------------------------------------------------------------------------------------------- drawing

    def draw(
        self,
        states: NDArray[np.int32],
        columns: Sequence[Column],
        rng: np.random.Generator,
        offsets: Offsets | None = None,
    ) -> Floats:
        """Points of rows that have these states (n_columns, n_rows): regions in proportion to within a row."""
        region = pick_leaves(self.states, self.n_states, self.inside(), states, rng, offsets)
        low, length = self.low[region], self.length[region]
        points = low + rng.random(low.shape) * length
        # The high end of a region is the low end of the next; rounding must not reach it.
        points = np.where(length > 0, np.minimum(points, np.nextafter(low + length, -np.inf)), low)
        raster = self.axis.raster
        if raster is not None:
            rows = np.flatnonzero(self.is_bordered[region])
            order = rows[np.argsort(region[rows], kind="stable")]
            ends = np.flatnonzero(np.diff(region[order], prepend=-1, append=-1))
            for begin, end in pairwise(ends):
                here = order[begin:end]
                at = region[here[0]]
                points[here] = _drawn_inside(raster, self.low[at], self.length[at], columns, len(here), rng)
        return np.where(self.is_null[region], np.nan, points).T


class _AxisView(ColumnModel):
    """One column of a place as if it were by itself; its leaves overlap, so none of them stands for a gap."""

    __slots__ = ()

    def filling_gaps(self, *, shortest: float, fences: Floats = _NOWHERE) -> ColumnModel:
        del shortest, fences
        return self


def _drawn_inside(
    raster: Raster, low: Floats, length: Floats, columns: Sequence[Column], n: int, rng: np.random.Generator
) -> Floats:
    """Points of a box that lie inside the shape: a part of the raster that does, then a point of it (n, n_columns)."""
    origin = np.array([float(origin_of(column)) for column in columns])
    begin, end = low + origin, low + length + origin
    parts = _parts_near(raster, begin, end)
    points = np.empty((n, len(columns)))
    is_open = np.arange(n)
    if len(parts):
        at = parts[rng.integers(len(parts), size=n)]
        first = np.maximum(np.stack([edges[at[:, k]] for k, edges in enumerate(raster.edges)], axis=1), begin)
        stop = np.minimum(np.stack([edges[at[:, k] + 1] for k, edges in enumerate(raster.edges)], axis=1), end)
        for _ in range(_MOST_DRAWS):
            a, b = first[is_open], stop[is_open]
            drawn = np.where(b > a, np.minimum(a + rng.random(a.shape) * (b - a), np.nextafter(b, -np.inf)), a) - origin
            points[is_open] = drawn
            is_open = is_open[~_is_inside(raster, drawn, columns)]
            if not len(is_open):
                return points
    known = _known_inside(raster, low, length, columns)
    if not len(known):
        raise ParameterError("where: no row can meet all these conditions together; ask for less")
    points[is_open] = known[rng.integers(len(known), size=len(is_open))]
    return points


def _has_points(raster: Raster, low: Floats, length: Floats, columns: Sequence[Column]) -> NDArray[np.bool_]:
    """Of which boxes (n, n_columns) a point inside the shape is known: a few are tried first, then all candidates."""
    tried = low[:, None] + _grid(_FEW, low.shape[1]) * length[:, None]
    is_inside = _is_inside(raster, tried.reshape(-1, low.shape[1]), columns).reshape(tried.shape[:2])
    has_points = np.asarray(is_inside.any(axis=1))
    for box in np.flatnonzero(~has_points):
        has_points[box] = len(_known_inside(raster, low[box], length[box], columns)) > 0
    return has_points


def _known_inside(raster: Raster, low: Floats, length: Floats, columns: Sequence[Column]) -> Floats:
    """Points of a box that were tested to be inside as they will be shown (n, n_columns): the same at every call."""
    origin = np.array([float(origin_of(column)) for column in columns])
    begin, end = low + origin, low + length + origin
    parts = _parts_near(raster, begin, end)
    middle = np.stack([centres[parts[:, k]] for k, centres in enumerate(raster.centres)], axis=1)
    is_near = ((middle >= begin) & ((middle < end) | (middle == begin))).all(axis=1)
    last = np.where(length > 0, np.nextafter(low + length, -np.inf), low)
    for candidates in (
        middle[is_near] - origin,
        np.clip(middle - origin, low, last),
        np.minimum(low + _grid(_MANY[len(low)], len(low)) * length, last),
        _values(middle - origin, columns) - origin,  # of values in steps, that of the middle may lie beside the box
    ):
        known = candidates[_is_inside(raster, candidates, columns)]
        if len(known):
            return known
    return np.empty((0, len(low)))


def _parts_near(raster: Raster, begin: Floats, end: Floats) -> NDArray[np.int64]:
    """The parts of the raster that are inside and that a box touches (n, n_columns)."""
    box = raster.box(begin.tolist(), np.maximum(end, np.nextafter(begin, np.inf)).tolist())
    return np.asarray(np.argwhere(raster.is_inside[box]) + [span.start for span in box])


def _grid(n: int, n_axes: int) -> Floats:
    """Points of a unit box, n along each axis from end to end."""
    return np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, n)] * n_axes, indexing="ij"), axis=-1).reshape(-1, n_axes)


def _is_inside(raster: Raster, points: Floats, columns: Sequence[Column]) -> NDArray[np.bool_]:
    """Which points lie inside the shape as they will be shown; the raster knows, but for parts that are crossed."""
    values = _values(points, columns)
    part = tuple(
        np.clip(np.searchsorted(edges, values[:, k], side="right") - 1, 0, len(edges) - 2)
        for k, edges in enumerate(raster.edges)
    )
    is_inside: NDArray[np.bool_] = raster.is_inside[part]
    is_crossed = raster.is_crossed[part]
    is_inside[is_crossed] = raster.holds(values[is_crossed])
    return is_inside


def _values(points: Floats, columns: Sequence[Column]) -> Floats:
    """What a table will show for points, as physical numbers (n, n_columns)."""
    shown = []
    for index, column in enumerate(columns):
        assert isinstance(column, Bounded)
        places = points[:, index]
        if column.is_whole:
            numbers = whole_numbers(places, column)
            shown.append((nearest_multiples(numbers, column) if column.step > 1 else numbers).astype(np.float64))
        else:
            shown.append(
                np.clip(places, column.low, column.high)
                if column.spacing is None
                else nearest_multiples(places, column)
            )
    return np.stack(shown, axis=1)
