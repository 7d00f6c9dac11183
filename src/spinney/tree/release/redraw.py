"""Leaf moments that might have been released: the noisy ones with fresh noise of the same law.

The noise of a leaf is one vector over its count and its measured axes, of probability proportional to
exp(-rate max |z|). It is even over a cube of half-edge R whose law is

    P(R = r)  proportional to  (2 r + 1)^k exp(-rate r),     k numbers in the leaf

because the cubes that hold z are those from max |z| on, and their terms add up to a geometric sum. Simulated by floats:
this is what comes after a release, and protects no number.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spinney.release.row_count import RowCount
from spinney.tree.bins import NoisyMoments, leaf_cells

# From this rate on the law of R is tabulated; below, R + 1/2 is a gamma number but for a relative error of its square.
_TABULATED = 0.01
# No more of the law is left beyond this many times its scale, for each of its numbers.
_REACH = 40


def leaf_noise(moments: NoisyMoments, rng: np.random.Generator) -> NDArray[np.int64]:
    """Fresh noise for all leaves (n_leaves, 1 + n_axes), in steps; 0 along axes that are not measured."""
    _, _, is_measured = leaf_cells(moments.codes, moments.depths, moments.lattice)
    is_noisy = np.column_stack([np.ones(len(moments), dtype=np.bool_), is_measured])
    n_numbers = is_noisy.sum(axis=1)
    reach = np.zeros(len(moments), dtype=np.int64)
    for k in np.unique(n_numbers).tolist():
        of_size = n_numbers == k
        reach[of_size] = _half_edges(k, float(moments.rate), int(of_size.sum()), rng)
    noise = rng.integers(-reach[:, None], reach[:, None], size=is_noisy.shape, endpoint=True)
    return np.asarray(np.where(is_noisy, noise, 0), dtype=np.int64)


def _half_edges(k: int, rate: float, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """R of `n` leaves with k numbers each."""
    if rate < _TABULATED:
        return np.asarray(np.floor(rng.gamma(k + 1, 1 / rate, n)), dtype=np.int64)
    values = np.arange(math.ceil(_REACH * (k + 1) / rate) + 1)
    logs = k * np.log(2 * values + 1) - rate * values
    chances = np.exp(logs - logs.max())
    return np.asarray(rng.choice(values, n, p=chances / chances.sum()), dtype=np.int64)


def redrawn_moments(moments: NoisyMoments, rng: np.random.Generator) -> NoisyMoments:
    """The moments with fresh noise on top of what they have."""
    return replace(moments, noisy_steps=moments.noisy_steps + leaf_noise(moments, rng))


def redrawn_count(count: RowCount | None, rng: np.random.Generator) -> RowCount | None:
    """A bought number of rows with fresh noise."""
    if count is None:
        return None
    chance = -math.expm1(-float(count.rate))
    return replace(count, noisy=count.noisy + int(rng.geometric(chance)) - int(rng.geometric(chance)))
