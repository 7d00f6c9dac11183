"""Places on their own: the regions of a joint tree over two or three columns, with noisy counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.counting.counts import CellCounts
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.forest.release.even_leaves import null_levels
from spinney.forest.release.measured import NoiseLaw
from spinney.schema.place_axis import PlaceAxis
from spinney.schema.zorder import Codes, Indices


@dataclass(frozen=True, slots=True, eq=False)
class NoisyPlace:
    """Regions of a place in the order of their codes, with noisy counts. RELEASED."""

    axis: PlaceAxis
    codes: Codes  # (n_regions, 1)
    depths: Indices  # (n_regions,)
    noisy_counts: NDArray[np.int64]  # (n_regions,)
    noise_std: float  # of the noise on a count; 0 where nothing was counted
    given_depth: int = 0  # regions of no greater depth were made whatever they hold
    noise: NoiseLaw | None = None  # where anything was counted

    @property
    def noisy_sum(self) -> tuple[float, float]:
        """The number of rows that were counted, and the variance of its noise."""
        return float(self.noisy_counts.sum()), len(self.noisy_counts) * self.noise_std**2


def release_place(
    counts: CellCounts, axis: PlaceAxis, prepaid: PrepaidMechanisms, *, cutoff: float, n_fixed: int
) -> NoisyPlace:
    """One place's regions and their noisy counts; nodes of fewer rows than `cutoff` are rarely halved.

    The first `n_fixed` levels are halved whatever they hold.
    """
    regions = prepaid.regions(counts, axis, cutoff=math.ceil(cutoff), n_fixed=n_fixed)
    noisy_counts = prepaid.noisy_counts(regions.true_counts, "places")
    noise, given_depth = prepaid.plan.noise_law("places"), axis.n_nullable + n_fixed
    return NoisyPlace(axis, regions.codes, regions.depths, noisy_counts, noise.std, given_depth, noise)


def unmeasured_place(axis: PlaceAxis) -> NoisyPlace:
    """A place of which nothing is known but the schema: one region for each way in which columns may be null."""
    codes, depths = np.zeros((1, 1), dtype=np.uint64), np.zeros(1, dtype=np.int64)
    for depth in range(null_levels(axis)):
        upper = codes.copy()
        upper[:, 0] |= np.uint64(1 << (63 - depth))
        codes, depths = np.concatenate([codes, upper]), np.concatenate([depths, depths]) + 1
        is_possible = axis.is_possible(codes, depths)
        codes, depths = codes[is_possible], depths[is_possible]
    order = np.argsort(codes[:, 0])
    return NoisyPlace(axis, codes[order], depths[order], np.zeros(len(order), dtype=np.int64), 0.0)
