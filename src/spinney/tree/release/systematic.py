"""Rows spread evenly over a density: systematic over leaves, low-discrepancy inside them, in random order.

Row i of n takes the leaf at (i + s) / n of the total weight, so every leaf gets its share of rows to within one;
inside, row i is at the i-th point of a Kronecker sequence, frac(s + i g^-a), g the root of g^(d+1) = g + 1, through the
inverse of the leaf's distribution. Rows of one leaf follow each other, so they are even within it too. A seed gives the
start s and the order of rows; n independent rows would add a distance of about sqrt(1/n) to the private table.

Rows are computed part by part of a shuffle (`shuffle`), in the order of leaves within a part, and then put at their
places: neither the numbers of a leaf nor the places of a part are far away in memory.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.parallel import each
from spinney.release.parts import Part as SamplePart
from spinney.tree.release.reconstruct import Floats, LeafDensity
from spinney.tree.release.shuffle import Part, deal

# Rows whose logarithms are taken together: few enough for the fastest cache.
_BLOCK = 256
_LOG_2 = math.log(2)
# The bits of sqrt(1/2) as a whole number: between it and sqrt(2) a number is its own mantissa.
_ROOT_HALF = int(np.float64(math.sqrt(0.5)).view(np.int64))
# What is uniform is less than 1, also after rounding: where rows crowd at the low end of a leaf, 1 is at infinity.
_BELOW_1 = 1 - 2.0**-53


class EvenRows:
    """Draws rows from a density. What depends on it alone is computed once; after that only rows cost time."""

    def __init__(self, density: LeafDensity) -> None:
        boxes = density.boxes
        half = boxes.length / 2
        low = boxes.low + half * (1 + density.means * (1 - density.spread) - density.spread)
        growth = np.expm1(2 * density.slopes)
        scale = boxes.length * density.spread / (2 * density.slopes)
        self._laws = np.stack([growth, low, scale], axis=1)  # (n_leaves, 3, n_axes): all of a leaf side by side
        self._null_share = boxes.null_share
        self._has_nulls = bool(boxes.null_share.any())
        cumulative = np.cumsum(density.weights)
        self._cumulative = cumulative / cumulative[-1]  # the last leaf that weighs anything ends at 1, exactly
        steps = np.arange(2 * len(self._cumulative)) / (2 * len(self._cumulative))
        self._guide = np.searchsorted(self._cumulative, steps, side="right").astype(np.int32)

    def draw(self, n_rows: int, rng: np.random.Generator, *, part: SamplePart | None = None) -> Floats:
        """Rows as positions along each axis (n_axes, n_rows), in random order; NaN is null.

        Of a sample in parts, all parts together have the rows that it would have as one.
        """
        n_axes = self._laws.shape[2]
        starts = (rng if part is None else part.same_for_all()).random(n_axes + 1)
        strides = kronecker_strides(n_axes)
        hands = deal(n_rows, rng)
        rows = np.empty((n_axes, n_rows))

        def fill(hand: Part) -> None:
            _fill(
                hand.items if part is None else part.row_numbers(hand.items),
                hand.places(),
                n_rows if part is None else part.n_rows,
                starts,
                strides,
                self._cumulative,
                self._guide,
                self._laws,
                self._null_share,
                self._has_nulls,
                rows[:, hand.span],
            )

        if len(hands) == 1:
            fill(hands[0])
            return rows
        each(fill, hands, title="drawing rows")
        return rows


def kronecker_strides(n_axes: int) -> Floats:
    """g^-1, g^-2, ..., g^-d for the root g > 1 of g^(d+1) = g + 1: a sequence of steps that fills the cube evenly."""
    g = 2.0
    for _ in range(64):
        g = (1 + g) ** (1 / (n_axes + 1))
    return g ** -np.arange(1, n_axes + 1.0)


@compiled
def take_logs(values: Floats) -> None:
    """Natural logarithms in place, to 15 digits: of positive normal numbers, and of NaN, which stays NaN.

    log(m 2^k) = k log 2 + 2 artanh s, s = (m - 1) / (m + 1), 1/2 <= m^2 < 2, and nine terms of the series of artanh.
    Without branches, so it compiles to vectors; without a library, so its digits depend on none.
    """
    for i in range(values.size):
        bits = np.float64(values[i]).view(np.int64)
        k = (bits - _ROOT_HALF) >> 52
        m = np.int64(bits - (k << 52)).view(np.float64)
        s = (m - 1) / (m + 1)
        q = s * s
        series = (((q / 17 + 1 / 15) * q + 1 / 13) * q + 1 / 11) * q + 1 / 9
        series = (((series * q + 1 / 7) * q + 1 / 5) * q + 1 / 3) * q + 1
        values[i] = k * _LOG_2 + 2 * s * series + (values[i] - values[i])


@compiled
def _fill(
    items: NDArray[Any],
    places: NDArray[np.int64],
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
    """Put the rows that items number, ascending, at their places; a block at a time, for logarithms go together."""
    n_axes = rows.shape[0]
    last = np.searchsorted(cumulative, 1.0)  # leaves after it weigh nothing
    leaves = np.empty(_BLOCK, dtype=np.int64)
    values = np.empty(_BLOCK * n_axes)
    leaf = np.int64(0)
    for first in range(0, items.size, _BLOCK):
        n_items = min(_BLOCK, items.size - first)
        for i in range(n_items):
            item = items[first + i]
            place = (item + starts[0]) / n_rows
            guess = np.int64(place * guide.size)
            leaf = max(leaf, np.int64(guide[guess if guess < guide.size else guide.size - 1]))
            while leaf < last and cumulative[leaf] <= place:
                leaf += 1
            leaves[i] = leaf
            for axis in range(n_axes):
                u = starts[axis + 1] + item * strides[axis]
                u -= np.floor(u)
                if has_nulls:
                    share = null_share[leaf, axis]
                    u = np.nan if u < share else min((u - share) / (1 - share), _BELOW_1)
                # log1p would take longer; no slope is so near to 0 that more than a few digits are lost.
                values[i * n_axes + axis] = 1 + u * laws[leaf, 0, axis]
        take_logs(values[: n_items * n_axes])
        for i in range(n_items):
            leaf_of_row, to = leaves[i], places[first + i]
            for axis in range(n_axes):
                rows[axis, to] = laws[leaf_of_row, 1, axis] + laws[leaf_of_row, 2, axis] * values[i * n_axes + axis]
