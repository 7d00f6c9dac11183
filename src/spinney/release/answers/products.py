"""Products of matrices in blocks: small ones are computed on one core, whatever the BLAS library would do.

Ranks among simulated noise take products of some million multiplications, which one core does in a millisecond. A BLAS
library gives such a product to all cores, and where other processes use these too, waiting for the last of them takes
ten to fifty times as long. It leaves a product to one core if that has few multiplications, so here it gets blocks.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.floating[Any]]

# OpenBLAS starts threads beyond 2^18 multiplications; other libraries do so later.
_ALONE = 1 << 18
# From so many on several cores are worth waiting for.
_MANY = 1 << 28


def product(left: Matrix, right: Matrix) -> Matrix:
    """The product of two matrices (n, k) and (k, m): (n, m)."""
    (n, k), m = left.shape, right.shape[1]
    if n * k * m <= _ALONE or n * k * m > _MANY:
        return np.asarray(left @ right)
    side = max(8, math.isqrt(_ALONE // max(k, 1)))
    height = min(n, max(side, _ALONE // (k * min(m, side))))
    width = min(m, max(side, _ALONE // (k * height)))
    found = np.empty((n, m), dtype=np.result_type(left, right))
    for first in range(0, n, height):
        for start in range(0, m, width):
            found[first : first + height, start : start + width] = (
                left[first : first + height] @ right[:, start : start + width]
            )
    return found
