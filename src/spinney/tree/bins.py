"""NoisyBins and NoisyMoments: what a mechanism releases. PUBLIC from here on.

Bins are disjoint nodes of the tree, in depth-first order, with noisy counts that have passed the threshold.
Nothing else about the table is in here.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from spinney.schema.lattice import Lattice
from spinney.schema.pieces import in_points, to_places
from spinney.schema.zorder import Codes, Indices, deinterleave


@dataclass(frozen=True, slots=True, eq=False)
class NoisyBins:
    """Released leaves: bin i is the node `codes[i]` of depth `depths[i]`."""

    lattice: Lattice
    codes: Codes  # (n_bins, n_words), sorted, bits past the depth are zero
    depths: NDArray[np.int64]  # (n_bins,)
    noisy_counts: NDArray[np.int64]  # (n_bins,), all at least the threshold

    def __len__(self) -> int:
        return len(self.depths)

    def __repr__(self) -> str:
        return f"NoisyBins({len(self)} bins on {self.lattice.n_axes} axes)"

    @property
    def noisy_total(self) -> int:
        return int(self.noisy_counts.sum())

    @classmethod
    def in_order(
        cls, lattice: Lattice, codes: Codes, depths: NDArray[np.int64], noisy_counts: NDArray[np.int64]
    ) -> NoisyBins:
        """Bins from unordered parts. The order of making must not show: it would tell empty bins from occupied ones."""
        order = np.lexsort(codes.T[::-1])
        return cls(lattice, codes[order], depths[order], noisy_counts[order])


@dataclass(frozen=True, slots=True, eq=False)
class NoisyMoments:
    """All leaves of a tree with noisy counts and noisy sums of offsets, in whole steps of 1 / quantum.

    An offset is a row's distance from the centre of its leaf in half-edges. Noise of rate `rate` a step is even over
    the cube of a leaf's count and its measured axes (`leaf_cells`); sums along other axes are 0.
    """

    lattice: Lattice
    codes: Codes  # (n_leaves, n_words), sorted
    depths: NDArray[np.int64]  # (n_leaves,)
    noisy_steps: NDArray[np.int64]  # (n_leaves, 1 + n_axes): count, then sums; of any sign
    quantum: int
    rate: Fraction

    def __len__(self) -> int:
        return len(self.depths)

    def __repr__(self) -> str:
        return f"NoisyMoments({len(self)} leaves on {self.lattice.n_axes} axes)"


def leaf_cells(codes: Codes, depths: Indices, lattice: Lattice) -> tuple[Indices, Indices, NDArray[np.bool_]]:
    """First possible cell and number of possible cells of each leaf and axis, and whether its offset is measured.

    Along axes with pieces both are in places. Measured are ordered axes along which a leaf has several cells, none of
    them for null.
    """
    first, size = deinterleave(codes, depths, lattice)
    is_measured = np.ones(first.shape, dtype=np.bool_)
    for index, axis in enumerate(lattice.axes):
        stop = np.minimum(first[:, index] + size[:, index], axis.last + 1)
        holds_null = (first[:, index] <= axis.null_cell) & (first[:, index] + size[:, index] > axis.null_cell)
        first[:, index] = np.maximum(first[:, index], axis.first)
        size[:, index] = np.maximum(stop - first[:, index], 1)
        if axis.pieces is not None:
            is_point = in_points(axis.pieces, first[:, index], stop)
            first[:, index], size[:, index] = to_places(axis.pieces, first[:, index], size[:, index])
            size[is_point, index] = 1
        is_measured[:, index] = (size[:, index] > 1) & ~holds_null & (axis.kind != "category")
    return first, size, is_measured
