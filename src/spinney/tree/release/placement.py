"""Rows inside bins: centre, uniform or tilted.

A placement gives every bin and axis an interval and a slope: a row lies at `low + length * v`, v with density 1
+ slope (v - 1/2) on [0, 1]. `centre` has length 0, `uniform` slope 0. `tilted` follows the lean of the density
(geometry.shifts): up to a sixth of the edge a slope over the whole edge has that mean; beyond, a triangle on
the side of the sibling, as long as the mean asks for.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.errors import ParameterError
from spinney.parallel import each
from spinney.shown import as_given
from spinney.tree.bins import NoisyBins
from spinney.tree.release.geometry import Boxes, Matrix, bin_boxes, shifts

Placement = Literal["centre", "uniform", "tilted"]
PLACEMENTS: tuple[Placement, ...] = ("centre", "uniform", "tilted")

# Rows per independent random stream: a constant, so that a seed gives the same rows on any number of cores.
_STREAM_ROWS = 1 << 17
_STEEPEST = 1 / 6


def check_placement(placement: str) -> Placement:
    """The placement, or an error that lists the three."""
    for known in PLACEMENTS:
        if isinstance(placement, str) and placement == known:
            return known
    raise ParameterError(f"placement={as_given(placement)} is not one of {', '.join(map(repr, PLACEMENTS))}")


def mean_points(bins: NoisyBins, placement: Placement) -> Matrix:
    """The mean of every bin (n_bins, n_axes); NaN where the bin is null along an axis."""
    boxes = bin_boxes(bins)
    lean = shifts(bins, bins.noisy_counts) if placement == "tilted" else 0.0
    points = boxes.low + boxes.length * (0.5 + lean)
    return np.where(boxes.null_share == 1, np.nan, points)


class RowSampler:
    """Draws rows from bins. What depends on the bins alone is computed once; after that only rows cost time."""

    def __init__(self, bins: NoisyBins, placement: Placement) -> None:
        boxes = bin_boxes(bins)
        self._laws = _laws(boxes, shifts(bins, bins.noisy_counts) if placement == "tilted" else None, placement)
        self._null_share = np.ascontiguousarray(boxes.null_share.T)
        self._is_nullable = [axis.nullable for axis in bins.lattice.axes]
        self._cumulative = np.cumsum(bins.noisy_counts) / bins.noisy_counts.sum()
        steps = np.arange(2 * len(bins)) / (2 * len(bins))
        self._guide = np.searchsorted(self._cumulative, steps, side="right").astype(np.int32)

    def draw(self, n_rows: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Rows as positions along each axis (n_axes, n_rows), in random order; NaN is null.

        Bins are picked by their noisy counts, independently for each row.
        """
        rows = np.empty((len(self._laws), n_rows))
        starts = range(0, n_rows, _STREAM_ROWS)
        streams = rng.spawn(len(starts))
        parts = [rows[:, start : start + _STREAM_ROWS] for start in starts]
        each(self._fill, parts, streams, title="drawing rows")
        return rows

    def _fill(self, rows: NDArray[np.float64], stream: np.random.Generator) -> None:
        """Rows of one random stream."""
        chosen = _choose(stream.random((rows.shape[1],)), self._cumulative, self._guide)
        for axis, positions in enumerate(rows):
            stream.random(out=positions)
            if self._is_nullable[axis]:
                _set_nulls(chosen, self._null_share[axis], positions)
            _place(chosen, self._laws[axis], positions)


def _laws(boxes: Boxes, lean: Matrix | None, placement: Placement) -> NDArray[np.float64]:
    """Low end, length and slope of every axis and bin, side by side in memory: (n_axes, n_bins, 3)."""
    low, length, slope = boxes.low, boxes.length, np.zeros_like(boxes.low)
    if placement == "centre":
        low, length = low + length / 2, np.zeros_like(length)
    if lean is not None:
        reach = np.where(np.abs(lean) <= _STEEPEST, 1.0, 3 * (0.5 - np.abs(lean)))
        low = low + np.where(lean > 0, (1 - reach) * length, 0)
        length = length * reach
        slope = 12 * np.clip(lean, -_STEEPEST, _STEEPEST)
    return np.stack([low.T, length.T, slope.T], axis=-1)


@compiled
def _choose(
    uniforms: NDArray[np.float64], cumulative: NDArray[np.float64], guide: NDArray[np.int32]
) -> NDArray[np.int32]:
    """For every u the bin with cumulative[bin-1] <= u < cumulative[bin], by a guide table and a short walk."""
    chosen = np.empty(uniforms.size, dtype=np.int32)
    last = cumulative.size - 1
    for i in range(uniforms.size):
        index = guide[np.int64(uniforms[i] * guide.size)]
        while index < last and cumulative[index] <= uniforms[i]:
            index += 1
        chosen[i] = min(index, last)
    return chosen


@compiled
def _set_nulls(chosen: NDArray[np.int32], null_share: NDArray[np.float64], positions: NDArray[np.float64]) -> None:
    """Turn uniform numbers below the bin's null share into NaN and stretch the others over [0, 1) again, in place."""
    for i in range(chosen.size):
        share, u = null_share[chosen[i]], positions[i]
        positions[i] = np.nan if u < share else (u - share) / (1 - share)


@compiled
def _place(chosen: NDArray[np.int32], law: NDArray[np.float64], positions: NDArray[np.float64]) -> None:
    """Turn uniform numbers into positions along one axis, in place; without branches, so it compiles to vectors."""
    for i in range(chosen.size):
        index, u = chosen[i], positions[i]
        # Inverse of the distribution v + slope (v^2 - v) / 2, in the form that is stable as slope -> 0.
        slope = law[index, 2]
        start = 1 - 0.5 * slope
        v = 2 * u / (start + np.sqrt(max(start * start + 2 * slope * u, 0.0)))
        positions[i] = law[index, 0] + law[index, 1] * v
