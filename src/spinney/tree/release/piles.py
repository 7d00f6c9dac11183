"""Piles: how many rows of a leaf lie at the round values that its pieces begin at, where the leaf does not tell.

A leaf that holds whole pieces knows nothing of their points. What other leaves of the release say about them is taken
for it: along an axis, the share q of points in what lies in points or behind them. In such a leaf the point of a piece
of length L takes up the first q L of its places and all else the rest, which moves a mean by q L / 2 up:

    in half-edges of a leaf of m pieces, q / m

These places lie one length of the axis further up than others, so that a place alone says which value it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spinney.schema.pieces import in_points
from spinney.schema.zorder import deinterleave
from spinney.tree.bins import NoisyMoments
from spinney.tree.release.geometry import Boxes

Floats = NDArray[np.float64]

# Before leaves say anything: a quarter, believed as much as so large a part of all rows.
_USUAL_SHARE, _BELIEF = 0.25, 0.02


@dataclass(frozen=True, slots=True, eq=False)
class Piles:
    """Which leaves hold whole pieces with points, along which axes, how many, and the share of points on each axis."""

    n_pieces: Floats  # (n_leaves, n_axes): 0 where a leaf holds none
    shares: Floats  # (n_axes,)

    def moved(self, means: Floats) -> Floats:
        """Means in half-edges, in places where points take up their share."""
        is_held = self.n_pieces > 0
        return np.where(is_held, means + self.shares / np.where(is_held, self.n_pieces, 1), means)

    def unmoved(self, means: Floats) -> Floats:
        """The same means in places where points take up none: what `moved` was given."""
        is_held = self.n_pieces > 0
        return np.where(is_held, means - self.shares / np.where(is_held, self.n_pieces, 1), means)

    def lifted(self, boxes: Boxes, moments: NoisyMoments) -> Boxes:
        """Boxes of leaves with whole pieces, one length of the axis further up."""
        lengths = np.array([0 if axis.pieces is None else axis.pieces.n_cells for axis in moments.lattice.axes])
        return replace(boxes, low=np.where(self.n_pieces > 0, boxes.low + lengths, boxes.low))


def find_piles(moments: NoisyMoments, weights: Floats) -> Piles | None:
    """What the leaves say about points; None where no axis has any."""
    lattice = moments.lattice
    if not any(axis.pieces is not None and axis.pieces.has_points for axis in lattice.axes):
        return None
    first, size = deinterleave(moments.codes, moments.depths, lattice)
    n_pieces, shares = np.zeros(first.shape), np.zeros(lattice.n_axes)
    belief = _BELIEF * max(float(weights.sum()), 1.0)
    for index, axis in enumerate(lattice.axes):
        if axis.pieces is None or not axis.pieces.has_points:
            continue
        start, stop = first[:, index], np.minimum(first[:, index] + size[:, index], axis.pieces.n_cells)
        is_value, is_point = start < stop, in_points(axis.pieces, start, stop)
        n_held = (stop - start) / axis.pieces.piece_length
        n_pieces[:, index] = np.where(is_value & ~is_point & (n_held >= 1), n_held, 0)
        at_points = float(weights[is_value & is_point & (n_held < 1)].sum())
        behind = float(weights[is_value & ~is_point & (n_held < 1)].sum())
        shares[index] = (at_points + _USUAL_SHARE * belief) / (at_points + behind + belief)
    return Piles(n_pieces, shares)
