"""Shares of leaves in a region by the fitted density: along every axis, and where the region's faces cut it.

Along an axis a leaf has density proportional to exp(alpha u) over the part of it that rows spread over (`reconstruct`),
and a share of nulls. Ends of ranges are those of `range_counts`: reals by themselves, whole numbers from the column's
low bound up, in places where the axis has pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney.columns import exact
from spinney.compiled import compiled
from spinney.schema.lattice import Lattice
from spinney.schema.rules.values import Number, after
from spinney.schema.table import Schema
from spinney.tree.release.answers.leaves import Floats
from spinney.tree.release.answers.regions import raw_ends
from spinney.tree.release.piece_values import ends_to_places
from spinney.tree.release.piles import Piles
from spinney.tree.release.reconstruct import LeafDensity


class Ends(NamedTuple):
    """Ranges along an axis as ends in the density's units, for leaves as they are and for those further up."""

    low: Floats  # (2, n_ranges)
    high: Floats
    has_null: bool


def stretches_of(index: int, ranges: Sequence[tuple[Number, Number]], schema: Schema, lattice: Lattice) -> Floats:
    """Ranges of values along an axis, which may overlap, as `range_counts` takes them: (2, n_ranges)."""
    axis = lattice.axes[index]
    column = schema[axis.name]
    pairs = []
    for ends in ranges:
        low, high = raw_ends(column, *ends)
        if column.is_whole:
            pairs.append((float(int(low) - int(axis.low)), float(int(high) - int(axis.low) + 1)))
        elif column.spacing is not None:
            half = column.spacing / 2
            pairs.append((float(exact(float(low)) - half), float(exact(float(high)) + half)))
        else:
            pairs.append((float(low), after(float(high))))
    return np.array(pairs, dtype=np.float64).reshape(-1, 2).T


def ends_of(index: int, stretches: Floats, lattice: Lattice, density: LeafDensity, *, has_null: bool = False) -> Ends:
    """Stretches along an axis as ends in the density's units."""
    axis = lattice.axes[index]
    if axis.pieces is None:
        return Ends(stretches[[0, 0]], stretches[[1, 1]], has_null)
    piles = density.piles
    if piles is not None:
        piles = Piles(piles.n_pieces[:, [index]], piles.shares[[index]])
    places = [found[:, 0].reshape(2, -1) for found in ends_to_places(stretches.reshape(-1, 1), Lattice((axis,)), piles)]
    return Ends(np.stack([found[0] for found in places]), np.stack([found[1] for found in places]), has_null)


class AxisShares(NamedTuple):
    """Along one axis: the share of every leaf, and how much of it lies below each end that cuts it."""

    share: Floats  # (n_leaves,)
    below: Floats  # (n_leaves, n_faces)


def axis_shares(density: LeafDensity, index: int, ends: Ends) -> AxisShares:
    """The shares of all leaves along an axis."""
    boxes = density.boxes
    half = np.maximum(boxes.length[:, index] / 2, 1e-300)
    centre = boxes.low[:, index] + half + half * density.means[:, index] * (1 - density.spread[:, index])
    reach = np.maximum(half * density.spread[:, index], 1e-300)
    lifted = np.zeros(len(centre), dtype=np.int64)
    if density.piles is not None:
        lifted = (density.piles.n_pieces[:, index] > 0).astype(np.int64)
    faces = np.concatenate([ends.low, ends.high], axis=1)
    below = _below(faces, centre, reach, density.slopes[:, index], lifted)
    n = ends.low.shape[1]
    null = boxes.null_share[:, index]
    present = (below[:, n:] - below[:, :n]).clip(0, 1).sum(axis=1).clip(0, 1)
    return AxisShares((1 - null) * present + null * ends.has_null, below)


@compiled
def _below(faces: Floats, centre: Floats, reach: Floats, slopes: Floats, lifted: NDArray[Any]) -> Floats:
    """Which part of every leaf lies below each face: (n_leaves, n_faces)."""
    n_faces = faces.shape[1]
    below = np.empty((centre.size, n_faces))
    for leaf in range(centre.size):
        for face in range(n_faces):
            u = (faces[lifted[leaf], face] - centre[leaf]) / reach[leaf]
            if u <= -1.0:
                below[leaf, face] = 0.0
            elif u >= 1.0:
                below[leaf, face] = 1.0
            else:
                alpha = slopes[leaf]
                below[leaf, face] = np.expm1(alpha * (u + 1)) / np.expm1(2 * alpha)
    return below
