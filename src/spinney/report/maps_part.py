"""Maps: two columns that lie on the ground or on a sheet of paper, as a grid of expected rows.

A place of a forest, longitude and latitude of a tree, or the two columns of a release of two. What was released are
boxes; here they are spread over a grid of a fixed size, so that a report stays small however many boxes there are, and
the picture and the JSON hold the same numbers. All of it is public.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.errors import SpinneyError
from spinney.forest.release.model import ForestRelease
from spinney.people.release.model import PeopleRelease
from spinney.release.model import Release
from spinney.report.picture import in_units, map_aspect, released_boxes
from spinney.schema.place_names import is_latitude, is_longitude
from spinney.tree.release.binned import BinnedRelease
from spinney.tree.release.moments import MomentsRelease

# Cells along the longer side of a map, and maps of one release.
_CELLS = 220
_FEWEST = 24
_MOST_MAPS = 4
_DIGITS = 4  # of a density
# What trees and grids release, and one of it.
_RELEASED = {"leaves": "leaf", "bins": "bin", "points": "point"}

Floats = NDArray[np.float64]


def maps_part(release: Release) -> list[dict[str, Any]]:
    """The maps of a release as plain data; none where no two columns are a map."""
    source: Release = release.persons if isinstance(release, PeopleRelease) else release
    found = []
    for x, y in mapped_columns(source)[:_MOST_MAPS]:
        drawn = _grid(source, x, y)
        if drawn is not None:
            found.append(drawn)
    return found


def mapped_columns(release: Release) -> list[tuple[str, str]]:
    """Pairs of columns that are drawn as maps, the one across first."""
    if isinstance(release, PeopleRelease):
        return mapped_columns(release.persons)
    if isinstance(release, ForestRelease):
        return [_across(place.names[0], place.names[1]) for place in release.places.values() if len(place.names) > 1]
    names = [name for name, column in release.schema.modelled.items() if column.axis_kind != "category"]
    on_earth = [(x, y) for x, y in permutations(names, 2) if is_longitude(x) and is_latitude(y)]
    if on_earth:
        return on_earth[:1]
    return [(names[0], names[1])] if len(names) == 2 == len(release.schema.modelled) else []


def _across(first: str, second: str) -> tuple[str, str]:
    return (second, first) if is_latitude(first) and is_longitude(second) else (first, second)


def _grid(release: Release, x: str, y: str) -> dict[str, Any] | None:
    columns = release.schema.modelled if x in release.schema.modelled else release.schema
    limits = [tuple(map(float, columns[name].drawn_range())) for name in (x, y)]
    if any(high <= low for low, high in limits):
        return None
    boxes = _boxes(release, x, y)
    if boxes is None:
        return None
    corners, rows = boxes
    aspect = map_aspect(release, x, y)
    tallness = (aspect or 1.0) * (limits[1][1] - limits[1][0]) / (limits[0][1] - limits[0][0]) if aspect else 1.0
    shape = (
        (_CELLS, max(_FEWEST, round(_CELLS * tallness)))
        if tallness <= 1
        else (max(_FEWEST, round(_CELLS / tallness)), _CELLS)
    )
    grid = _spread(corners, rows, limits, shape)
    if not grid.any():
        return None
    return {
        "columns": [x, y],
        "is_geographic": is_longitude(x) and is_latitude(y),
        "aspect": aspect,
        "x": list(limits[0]),
        "y": list(limits[1]),
        "boxes": len(rows),
        **_released(release, x, y),
        "rows": float(f"{grid.sum():.6g}"),
        # Lines from south to north, each a text of numbers from west to east: how many rows are expected in a cell.
        "cells": [" ".join(f"{cell:.{_DIGITS}g}" for cell in line) for line in grid],
    }


def _released(release: Release, x: str, y: str) -> dict[str, Any]:
    """What the boxes of a map come from: leaves or bins of the whole release, regions of a place."""
    if isinstance(release, ForestRelease):
        place = next(place for place in release.places.values() if {x, y} <= set(place.names))
        return {"released": len(place.weights), "released_as": "region"}
    what, one = next(
        ((what, one) for what, one in _RELEASED.items() if what in release.card.released), ("points", "point")
    )
    return {"released": release.card.released.get(what), "released_as": one}


def _boxes(release: Release, x: str, y: str) -> tuple[Floats, Floats] | None:
    """Corners (n, 4) and expected rows (n,) of what was released; points have no extent."""
    if isinstance(release, (BinnedRelease, MomentsRelease, ForestRelease)):
        boxes, counts, names, _ = released_boxes(release, x, y)
        spans = []
        for name in (x, y):
            index = list(names).index(name)
            low, length = in_units(boxes.low[:, index], boxes.length[:, index], release.schema.modelled[name])
            spans.append((low, low + length, boxes.null_share[:, index] < 1))
        is_shown = spans[0][2] & spans[1][2] & (counts > 0)
        corners = np.stack([spans[0][0], spans[1][0], spans[0][1], spans[1][1]], axis=1)
        return corners[is_shown], counts[is_shown].astype(np.float64)
    try:
        points, weights = release.weighted_points(frame="pyarrow")
    except SpinneyError:
        return None
    across, up = (np.asarray(points.column(name).to_numpy(zero_copy_only=False), dtype=np.float64) for name in (x, y))
    is_shown = np.isfinite(across) & np.isfinite(up) & (weights > 0)
    corners = np.stack([across, up, across, up], axis=1)
    return corners[is_shown], np.asarray(weights, dtype=np.float64)[is_shown]


def _spread(corners: Floats, rows: Floats, limits: list[tuple[float, ...]], shape: tuple[int, int]) -> Floats:
    """Rows of boxes over the cells of a grid (y, x): a box lies on whole cells, at least one."""
    place = np.empty(corners.shape, dtype=np.int64)
    for side in range(4):
        (low, high), n_cells = limits[side % 2], shape[side % 2]
        place[:, side] = np.rint(np.clip((corners[:, side] - low) / (high - low), 0, 1) * n_cells)
    left, bottom = np.minimum(place[:, 0], shape[0] - 1), np.minimum(place[:, 1], shape[1] - 1)
    right, top = np.maximum(place[:, 2], left + 1), np.maximum(place[:, 3], bottom + 1)
    # A box is a step up at two corners and a step down at the others; sums along both axes fill it.
    density = rows / ((right - left) * (top - bottom))
    steps = np.zeros((shape[1] + 1, shape[0] + 1))
    for across, up, sign in ((left, bottom, 1), (right, bottom, -1), (left, top, -1), (right, top, 1)):
        np.add.at(steps, (up, across), sign * density)
    grid = steps.cumsum(axis=0).cumsum(axis=1)[:-1, :-1]
    floor = 1e-9 * float(grid.max(initial=0.0))
    return np.where(grid > floor, grid, 0.0)
