"""Rows inside bins: centre, uniform or tilted.

A placement gives every bin and axis an interval and a slope: a row lies at `low + length * v`, v with density 1 + slope (v - 1/2) on
[0, 1]. `centre` has length 0, `uniform` slope 0. `tilted` follows the lean of the density (geometry.shifts): up to a sixth of
the edge a slope over the whole edge has that mean; beyond, a triangle on the side of the sibling, as long as the mean asks for.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from typing import Literal

import numba
import numpy as np
from numpy.typing import NDArray

from spinney.errors import ParameterError
from spinney.partition.bins import NoisyBins
from spinney.progress import progress
from spinney.release.geometry import Boxes, Matrix, bin_boxes, shifts

Placement = Literal["centre", "uniform", "tilted"]
PLACEMENTS: tuple[Placement, ...] = ("centre", "uniform", "tilted")

# Rows per independent random stream: a constant, so that a seed gives the same rows on any number of cores.
_STREAM_ROWS = 1 << 17
_STEEPEST = 1 / 6


def check_placement(placement: str) -> Placement:
    """The placement, or an error that lists the three."""
    for known in PLACEMENTS:
        if placement == known:
            return known
    raise ParameterError(f"placement={placement!r} is not one of {', '.join(map(repr, PLACEMENTS))}")


def mean_points(bins: NoisyBins, placement: Placement) -> Matrix:
    """The mean of every bin (n_bins, n_axes); NaN where the bin is null along an axis."""
    boxes = bin_boxes(bins)
    lean = shifts(bins) if placement == "tilted" else 0.0
    points = boxes.low + boxes.length * (0.5 + lean)
    return np.where(boxes.null_share == 1, np.nan, points)


def draw_points(bins: NoisyBins, n_rows: int, *, placement: Placement, rng: np.random.Generator) -> NDArray[np.float64]:
    """Rows as positions along each axis (n_axes, n_rows), in random order; NaN is null.

    Bins are picked by their noisy counts, independently for each row.
    """
    chances = bins.noisy_counts / bins.noisy_counts.sum()
    chosen = np.repeat(np.arange(len(bins), dtype=np.int32), rng.multinomial(n_rows, chances))
    rng.shuffle(chosen)
    laws = _laws(bin_boxes(bins), shifts(bins) if placement == "tilted" else None, placement)

    rows = np.empty((bins.lattice.n_axes, n_rows))
    starts = range(0, n_rows, _STREAM_ROWS)
    streams = rng.spawn(len(starts))

    def place(start: int, stream: np.random.Generator) -> None:
        part = slice(start, min(start + _STREAM_ROWS, n_rows))
        uniforms = stream.random((part.stop - start, bins.lattice.n_axes))
        _place(chosen[part], uniforms, laws, rows[:, part])

    with ThreadPoolExecutor(cpu_count() or 1) as pool:
        futures = [pool.submit(place, start, stream) for start, stream in zip(starts, streams, strict=True)]
        for future in progress(futures, "drawing rows", unit="part"):
            future.result()
    return rows


def _laws(boxes: Boxes, lean: Matrix | None, placement: Placement) -> NDArray[np.float64]:
    """Interval, slope and null share of every bin and axis, side by side in memory: (n_bins, n_axes, 4)."""
    laws = np.zeros((*boxes.low.shape, 4))
    laws[..., 0], laws[..., 1], laws[..., 3] = boxes.low, boxes.length, boxes.null_share
    if placement == "centre":
        laws[..., 0] += boxes.length / 2
        laws[..., 1] = 0
    if lean is not None:
        reach = np.where(np.abs(lean) <= _STEEPEST, 1.0, 3 * (0.5 - np.abs(lean)))
        laws[..., 0] += np.where(lean > 0, (1 - reach) * boxes.length, 0)
        laws[..., 1] *= reach
        laws[..., 2] = 12 * np.clip(lean, -_STEEPEST, _STEEPEST)
    return laws


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _place(
    chosen: NDArray[np.int32], uniforms: NDArray[np.float64], laws: NDArray[np.float64], rows: NDArray[np.float64]
) -> None:
    for i in range(chosen.size):
        bin_index = chosen[i]
        for axis in range(uniforms.shape[1]):
            u = uniforms[i, axis]
            low, length, slope, null_share = laws[bin_index, axis]
            if null_share > 0:
                if u < null_share:
                    rows[axis, i] = np.nan
                    continue
                u = (u - null_share) / (1 - null_share)
            # Inverse of the distribution v + slope (v^2 - v) / 2, in the form that is stable as slope -> 0.
            start = 1 - slope / 2
            root = np.sqrt(max(start * start + 2 * slope * u, 0.0))
            if slope != 0.0:
                u = min(2 * u / (start + root), 1.0)
            rows[axis, i] = low + length * u
