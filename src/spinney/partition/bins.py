"""NoisyBins: what a mechanism releases. PUBLIC from here on.

Bins are disjoint nodes of the tree, in depth-first order, with noisy counts that have passed the threshold.
Nothing else about the table is in here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.partition.zorder import Codes
from spinney.schema.lattice import Lattice


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
