"""Rows spread evenly over a density: systematic over leaves, low-discrepancy inside them, then shuffled.

Row i of n takes the leaf at (i + s) / n of the total weight, so every leaf gets its share of rows to within one;
inside, row i is at the i-th point of a Kronecker sequence, frac(s + i g^-a), g the root of g^(d+1) = g + 1, through the
inverse of the leaf's distribution. Rows of one leaf follow each other, so they are even within it too. A seed gives the
start s and the order of rows; n independent rows would add a distance of about sqrt(1/n) to the private table.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from typing import Any

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
        # (n_leaves, n_axes, 4): a leaf's own numbers lie side by side, for rows come in random order.
        self._laws = np.stack([low, boxes.length * density.spread, growth, 1 / (2 * density.slopes)], axis=-1)
        self._null_share = boxes.null_share
        self._has_nulls = bool(boxes.null_share.any())
        cumulative = np.cumsum(density.weights)
        self._cumulative = cumulative / cumulative[-1]  # the last leaf that weighs anything ends at 1, exactly
        steps = np.arange(2 * len(self._cumulative)) / (2 * len(self._cumulative))
        self._guide = np.searchsorted(self._cumulative, steps, side="right").astype(np.int32)

    def draw(self, n_rows: int, rng: np.random.Generator) -> Floats:
        """Rows as positions along each axis (n_axes, n_rows), in random order; NaN is null."""
        n_axes = self._laws.shape[1]
        starts = rng.random(n_axes + 1)
        strides = kronecker_strides(n_axes)
        order = rng.permutation(np.arange(n_rows, dtype=np.int32 if n_rows < 2**31 else np.int64))
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
                    self._has_nulls,
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
    order: NDArray[Any],
    n_rows: int,
    starts: Floats,
    strides: Floats,
    cumulative: Floats,
    guide: NDArray[np.int32],
    laws: Floats,
    null_share: Floats,
    has_nulls: bool,
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
            if has_nulls:
                share = null_share[leaf, axis]
                if u < share:
                    rows[axis, i] = np.nan
                    continue
                u = (u - share) / (1 - share)
            law = laws[leaf, axis]
            # log1p would take twice as long; no slope is so near to 0 that more than a few digits are lost.
            rows[axis, i] = law[0] + law[1] * (np.log(1 + u * law[2]) * law[3])
