"""Total variation of fixed choices of columns, between two tables that are in bins. NOT PRIVATE.

All pairs of thirty columns, or two hundred triples, are asked of every release, so joint bins are counted in one
compiled walk over the rows; what has more joint bins than that is worth is sorted instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.forest.scores import Cells
from spinney.compiled import compiled

Columns = tuple[int, ...]

MAX_COUNTED = 1 << 22  # joint bins


def choices(n_columns: int, ways: int, *, at_most: int | None = None, seed: int = 0) -> list[Columns]:
    """All choices of `ways` columns, or so many of them at random, the same for every caller."""
    found = list(combinations(range(n_columns), ways))
    if at_most is None or len(found) <= at_most:
        return found
    picked = np.random.default_rng([seed, ways]).permutation(len(found))[:at_most]
    return [found[i] for i in sorted(picked)]


def mean_variation(real: Cells, other: Cells, sizes: Sequence[int], chosen: Sequence[Columns]) -> float | None:
    """The mean over choices of columns of half the sum of |P - Q|; none where nothing can be chosen."""
    if not chosen:
        return None
    return float(np.mean([variation(real, other, sizes, columns) for columns in chosen]))


def variation(real: Cells, other: Cells, sizes: Sequence[int], columns: Columns) -> float:
    """Half the sum over joint bins of the absolute differences of the shares of rows."""
    widths = np.array([sizes[c] for c in columns], dtype=np.int64)
    which = np.array(columns, dtype=np.int64)
    n, m = real.shape[1], other.shape[1]
    if float(widths.prod(dtype=np.float64)) <= MAX_COUNTED:
        return float(_counted(real, other, which, widths)) / (2.0 * n * m)
    joint = np.concatenate([_codes(real, which, widths), _codes(other, which, widths)])
    _, place = np.unique(joint, return_inverse=True)
    weights = np.concatenate([np.full(n, m), np.full(m, -n)])
    return float(np.abs(np.bincount(place.reshape(-1), weights=weights)).sum()) / (2.0 * n * m)


def _codes(cells: Cells, columns: NDArray[np.int64], widths: NDArray[np.int64]) -> NDArray[np.int64]:
    codes = np.zeros(cells.shape[1], dtype=np.int64)
    for column, width in zip(columns, widths, strict=True):
        codes = codes * width + cells[column]
    return codes


@compiled
def _counted(real: Any, other: Any, columns: Any, widths: Any) -> Any:
    """Sum of |m p - n q| over joint bins, in whole numbers: a real row weighs m, another -n."""
    size = 1
    for width in widths:
        size *= width
    held = np.zeros(size, np.int64)
    n, m = real.shape[1], other.shape[1]
    for row in range(n):
        code = np.int64(0)
        for k in range(len(columns)):
            code = code * widths[k] + np.int64(real[columns[k], row])
        held[code] += m
    for row in range(m):
        code = np.int64(0)
        for k in range(len(columns)):
            code = code * widths[k] + np.int64(other[columns[k], row])
        held[code] -= n
    return np.abs(held).sum()
