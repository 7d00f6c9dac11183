"""Rows spread evenly over a density: systematic over leaves, low-discrepancy inside them, then shuffled.

Row i of n takes the leaf at (i + s) / n of the total weight, so every leaf gets its share of rows to within one;
inside, row i is at the i-th point of a Kronecker sequence, frac(s + i g^-a), g the root of g^(d+1) = g + 1, through the
inverse of the leaf's distribution. Rows of one leaf follow each other, so they are even within it too. A seed gives the
start s and the order of rows; n independent rows would add a distance of about sqrt(1/n) to the private table.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from os import cpu_count

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.progress import progress
from spinney.release.reconstruct import Floats, LeafDensity

_PART = 1 << 17


class EvenRows:
    """Draws rows from a density. What depends on it alone is computed once; after that only rows cost time."""

    def __init__(self, density: LeafDensity) -> None:
        boxes = density.boxes
        half = boxes.length / 2
        low = boxes.low + half * (1 + density.means * (1 - density.spread) - density.spread)
        growth = np.expm1(2 * density.slopes)
        self._laws = np.stack(
            [low.T, (boxes.length * density.spread).T, growth.T, 1 / (2 * density.slopes).T], axis=-1
        )  # (n_axes, n_leaves, 4)
        self._null_share = np.ascontiguousarray(boxes.null_share.T)
        cumulative = np.cumsum(density.weights)
        self._cumulative = cumulative / cumulative[-1]  # the last leaf that weighs anything ends at 1, exactly
        steps = np.arange(2 * len(self._cumulative)) / (2 * len(self._cumulative))
        self._guide = np.searchsorted(self._cumulative, steps, side="right").astype(np.int32)

    def draw(self, n_rows: int, rng: np.random.Generator) -> Floats:
        """Rows as positions along each axis (n_axes, n_rows), in random order; NaN is null."""
        n_axes = len(self._laws)
        starts = rng.random(n_axes + 1)
        strides = kronecker_strides(n_axes)
        order = rng.permutation(n_rows)
        rows = np.empty((n_axes, n_rows))
        with ThreadPoolExecutor(cpu_count() or 1) as pool:
            futures = [
                pool.submit(
                    _fill,
                    order[part : part + _PART],
                    n_rows,
                    starts,
                    strides,
                    self._cumulative,
                    self._guide,
                    self._laws,
                    self._null_share,
                    rows[:, part : part + _PART],
                )
                for part in range(0, n_rows, _PART)
            ]
            for future in progress(futures, "drawing rows", unit="part"):
                future.result()
        return rows


def kronecker_strides(n_axes: int) -> Floats:
    """g^-1, g^-2, ..., g^-d for the root g > 1 of g^(d+1) = g + 1: a sequence of steps that fills the cube evenly."""
    g = 2.0
    for _ in range(64):
        g = (1 + g) ** (1 / (n_axes + 1))
    return g ** -np.arange(1, n_axes + 1.0)


@compiled
def _fill(
    order: NDArray[np.int64],
    n_rows: int,
    starts: Floats,
    strides: Floats,
    cumulative: Floats,
    guide: NDArray[np.int32],
    laws: Floats,
    null_share: Floats,
    rows: Floats,
) -> None:
    last = np.searchsorted(cumulative, 1.0)  # leaves after it weigh nothing
    for i in range(order.size):
        place = (order[i] + starts[0]) / n_rows
        guess = np.int64(place * guide.size)
        leaf = guide[guess if guess < guide.size else guide.size - 1]
        while leaf < last and cumulative[leaf] <= place:
            leaf += 1
        for axis in range(rows.shape[0]):
            u = starts[axis + 1] + order[i] * strides[axis]
            u -= np.floor(u)
            share = null_share[axis, leaf]
            if u < share:
                rows[axis, i] = np.nan
                continue
            u = (u - share) / (1 - share)
            law = laws[axis, leaf]
            rows[axis, i] = law[0] + law[1] * (np.log1p(u * law[2]) * law[3])
