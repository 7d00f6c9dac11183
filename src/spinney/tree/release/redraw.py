"""Leaf moments that might have been released: the noisy ones with fresh noise of the same law.

The tree stays as it is; all counts and sums, and a bought number of rows, get the noise once more, so that the spread
of tables that are drawn from them carries what the first noise did. Noise is simulated by floats: this is what comes
after a release, and protects no number.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spinney.release.row_count import RowCount
from spinney.tree.bins import NoisyMoments, leaf_cells
from spinney.tree.release.answers.simulated import sup_norm


def redrawn_moments(moments: NoisyMoments, rng: np.random.Generator) -> NoisyMoments:
    """The moments with fresh noise on top of what they have."""
    return replace(moments, noisy_steps=moments.noisy_steps + leaf_noise(moments, rng))


def redrawn_count(count: RowCount | None, rng: np.random.Generator) -> RowCount | None:
    """A bought number of rows with fresh noise."""
    if count is None:
        return None
    chance = -math.expm1(-float(count.rate))
    return replace(count, noisy=count.noisy + int(rng.geometric(chance)) - int(rng.geometric(chance)))


def leaf_noise(moments: NoisyMoments, rng: np.random.Generator) -> NDArray[np.int64]:
    """Fresh noise for all leaves (n_leaves, 1 + n_axes), in steps; 0 along axes that are not measured."""
    _, _, is_measured = leaf_cells(moments.codes, moments.depths, moments.lattice)
    is_noisy = np.column_stack([np.ones(len(moments), dtype=np.bool_), is_measured])
    n_numbers = is_noisy.sum(axis=1)
    noise = np.zeros(is_noisy.shape, dtype=np.int64)
    for n in np.unique(n_numbers).tolist():
        chosen = n_numbers == n
        drawn = sup_norm(float(moments.rate), n, (int(chosen.sum()), 1), rng)[:, :, 0]
        noise[is_noisy & chosen[:, None]] = drawn.T.ravel().astype(np.int64)
    return noise
