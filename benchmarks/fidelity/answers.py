"""Answers to range queries: how many rows lie in each of many axis-parallel boxes of a map.

Whatever is released of a map ends up as one of three things: a regular grid of counts, a list of rectangles with
counts, or rows. Grids and rectangles spread their counts evenly inside. All answer alike:

    range_counts(low, high) -> rows expected in [low, high), for low and high of shape (n_boxes, 2)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled

Floats = NDArray[np.float64]
Corners = NDArray[np.float64]  # (n_boxes, 2)
Points = NDArray[np.float64]  # (n, 2)


class Answers(Protocol):
    """A released map."""

    def range_counts(self, low: Corners, high: Corners) -> Floats:
        """Rows expected in each box."""
        ...


@dataclass(frozen=True, slots=True)
class Box:
    """The stated bounds of a map: public, never read off the points."""

    low: tuple[float, float]
    high: tuple[float, float]

    def to_unit(self, points: Points) -> Points:
        """Points scaled to [0, 1) x [0, 1); those outside are moved to the edge."""
        low, high = np.array(self.low), np.array(self.high)
        return ((points - low) / (high - low)).clip(0, np.nextafter(1, 0))

    def from_unit(self, points: Points) -> Points:
        """The inverse of `to_unit` for points inside."""
        low, high = np.array(self.low), np.array(self.high)
        return low + points * (high - low)


class GridAnswers:
    """Counts on a regular grid. Prefix sums, linear between grid lines, are the answer for evenly filled cells."""

    def __init__(self, noisy_counts: Floats, box: Box) -> None:
        self._box = box
        self._shape = noisy_counts.shape
        self._sums = np.zeros((self._shape[0] + 1, self._shape[1] + 1))
        self._sums[1:, 1:] = noisy_counts.cumsum(axis=0).cumsum(axis=1)

    def range_counts(self, low: Corners, high: Corners) -> Floats:
        (x0, y0), (x1, y1) = _unit_corners(self._box, low).T, _unit_corners(self._box, high).T
        return self._below(x1, y1) - self._below(x0, y1) - self._below(x1, y0) + self._below(x0, y0)

    def _below(self, x: Floats, y: Floats) -> Floats:
        """Count left of x and below y: bilinear in the prefix sums."""
        x, y = x * self._shape[0], y * self._shape[1]
        i = np.minimum(x.astype(np.int64), self._shape[0] - 1)
        j = np.minimum(y.astype(np.int64), self._shape[1] - 1)
        u, v, s = x - i, y - j, self._sums
        return (1 - u) * ((1 - v) * s[i, j] + v * s[i, j + 1]) + u * ((1 - v) * s[i + 1, j] + v * s[i + 1, j + 1])


class LeafAnswers:
    """Counts of disjoint rectangles, given in unit coordinates."""

    def __init__(self, low: Corners, high: Corners, noisy_counts: Floats, box: Box) -> None:
        self.low, self.high, self.noisy_counts = low, high, noisy_counts
        self._box = box
        self._densities = noisy_counts / (high - low).prod(axis=1)

    def __len__(self) -> int:
        return len(self.noisy_counts)

    def range_counts(self, low: Corners, high: Corners) -> Floats:
        return _overlap_sums(
            self.low, self.high, self._densities, _unit_corners(self._box, low), _unit_corners(self._box, high)
        )


class RowAnswers:
    """Rows that stand for `total` in all."""

    def __init__(self, rows: Points, total: float) -> None:
        self._rows, self._total = rows, total

    def range_counts(self, low: Corners, high: Corners) -> Floats:
        return count_in_boxes(self._rows, low, high) * (self._total / max(len(self._rows), 1))


def count_in_boxes(points: Points, low: Corners, high: Corners) -> NDArray[np.int64]:
    """How many points lie in each box, exactly: a histogram over all edges of all boxes, then prefix sums."""
    x_edges, y_edges = (np.unique(np.concatenate([low[:, axis], high[:, axis]])) for axis in (0, 1))
    shape = (len(x_edges) + 1, len(y_edges) + 1)
    cells = np.searchsorted(x_edges, points[:, 0], side="right") * shape[1]
    cells += np.searchsorted(y_edges, points[:, 1], side="right")
    sums = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape).cumsum(axis=0).cumsum(axis=1)
    i0, i1 = np.searchsorted(x_edges, low[:, 0]), np.searchsorted(x_edges, high[:, 0])
    j0, j1 = np.searchsorted(y_edges, low[:, 1]), np.searchsorted(y_edges, high[:, 1])
    return sums[i1, j1] - sums[i0, j1] - sums[i1, j0] + sums[i0, j0]


def _unit_corners(box: Box, corners: Corners) -> Corners:
    low, high = np.array(box.low), np.array(box.high)
    return ((corners - low) / (high - low)).clip(0, 1)


@compiled
def _overlap_sums(
    leaf_low: Corners, leaf_high: Corners, densities: Floats, box_low: Corners, box_high: Corners
) -> Floats:
    """Sum over leaves of density times the area shared with each box."""
    sums = np.zeros(len(box_low))
    for b in range(len(box_low)):
        x0, y0, x1, y1 = box_low[b, 0], box_low[b, 1], box_high[b, 0], box_high[b, 1]
        total = 0.0
        for k in range(len(densities)):
            width = min(x1, leaf_high[k, 0]) - max(x0, leaf_low[k, 0])
            height = min(y1, leaf_high[k, 1]) - max(y0, leaf_low[k, 1])
            if width > 0 and height > 0:
                total += densities[k] * width * height
        sums[b] = total
    return sums
