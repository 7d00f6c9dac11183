"""Leaves so far from the rows of a column that a few rows of noise in them would change what the column is like.

Distances of distribution functions do not see how far away a wrong row lies. So a leaf is far out where as many rows as
one standard deviation of its noise would raise the variance of the column by three tenths, and has to stand out of its
noise by more than others to be believed.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# By what part of the variance rows of noise may raise it.
FAR_OUT = 0.3
# The variance of rows at one point, as a part of what a deviation of rows in the nearest leaf would make of it.
_AT_A_POINT = 1e-6
# Squares of larger numbers, times counts, may be beyond the range of floats.
_SQUARED = 1e140


def is_far_out(
    low: Floats, length: Floats, sure: Floats, noise_std: float, *, part: float = FAR_OUT
) -> NDArray[np.bool_]:
    """Which leaves are far out.

    Args:
        low: where leaves begin.
        length: how long they are.
        sure: how many rows they hold for certain, of which the variance is taken; together more than none.
        noise_std: of the noise on a count.
        part: by what part of it rows of noise may raise the variance.
    """
    return variance_added(low, length, sure, noise_std) > part


def variance_added(low: Floats, length: Floats, sure: Floats, noise_std: float) -> Floats:
    """By what part of itself the variance of a column grows if a leaf gets as many rows as one deviation of noise.

    Where the rows that are there for certain all lie at one point it is huge, and still the larger, the further away.
    """
    unit = unit_of(max(float(np.abs(low).max(initial=0.0)), float(length.max(initial=0.0))))
    low, length = low / unit, length / unit
    middle = low + length / 2
    spread = (middle - np.average(middle, weights=sure)) ** 2 + length**2 / 12  # of rows in a leaf about the mean
    variance = float(sure.sum()) * float(np.average(spread, weights=sure))
    if variance == 0:
        variance = _AT_A_POINT * noise_std * float(spread[spread > 0].min(initial=math.inf))
    return np.where(spread > 0, noise_std * spread / variance, 0.0)


def unit_of(largest: float) -> float:
    """A power of two to tell numbers of this size in, so that floats hold their squares; 1 where they do anyway."""
    return 1.0 if largest == 0 or 1 / _SQUARED <= largest <= _SQUARED else 2.0 ** math.frexp(largest)[1]
