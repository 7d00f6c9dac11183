"""Exact sums over private rows: every row is turned into whole numbers on its own, and whole numbers add up exactly.

    round(2^bits f(x)),   |f| <= 1

What a row adds depends on that row alone, and the sum does not depend on the order of rows or on the number of threads:
no rounding of a floating-point total can betray anyone. That, and a bound of what one row adds, is all that exact
noise needs. SENSITIVE: true sums become public through `vector.release_vector` only.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.machine import each

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Steps of 2^-40 are far below any noise; tables of over two million rows get fewer bits, so that sums stay within 2^61.
_MOST_BITS = 40
_BLOCK = 64


def bits_for(n_rows: int) -> int:
    """How finely one row may be counted so that `n_rows` of them fit into 64 bits."""
    return min(_MOST_BITS, 61 - (n_rows - 1).bit_length())


def kernel_sums(rows: Floats, points: Floats, gamma: float, bits: int) -> Integers:
    """sum_x round(2^bits exp(-gamma ||z - x||^2)) for every point z."""
    return _in_blocks(len(points), lambda part: _kernel_sums(rows, points[part], gamma, 2.0**bits), "kernel sums")


def feature_sums(rows: Floats, frequencies: Floats, bits: int) -> Integers:
    """sum_x round(2^bits cos <w, x>), then the same of sin, for every frequency w: two halves of one array."""
    parts = _in_blocks(len(frequencies), lambda part: _feature_sums(rows, frequencies[part], 2.0**bits), "feature sums")
    return np.concatenate([parts[:, 0], parts[:, 1]])


def kernel_matrix(first: Floats, second: Floats, gamma: float) -> Floats:
    """exp(-gamma ||z - z'||^2) for all pairs, from differences: exponents right to n_columns + 4 half units."""
    return _kernel_matrix(first, second, gamma)


def _in_blocks(n: int, block: Callable[[slice], Integers], title: str) -> Integers:
    parts = [slice(start, min(start + _BLOCK, n)) for start in range(0, n, _BLOCK)]
    return np.concatenate(each(block, parts, title=title, unit="block"))


@compiled
def _kernel_sums(rows: Floats, points: Floats, gamma: float, scale: float) -> Integers:
    sums = np.zeros(points.shape[0], dtype=np.int64)
    for m in range(points.shape[0]):
        for i in range(rows.shape[0]):
            squared = 0.0
            for axis in range(rows.shape[1]):
                squared += (points[m, axis] - rows[i, axis]) ** 2
            sums[m] += np.int64(np.rint(scale * np.exp(-gamma * squared)))
    return sums


@compiled
def _feature_sums(rows: Floats, frequencies: Floats, scale: float) -> Integers:
    sums = np.zeros((frequencies.shape[0], 2), dtype=np.int64)
    for j in range(frequencies.shape[0]):
        for i in range(rows.shape[0]):
            phase = 0.0
            for axis in range(rows.shape[1]):
                phase += frequencies[j, axis] * rows[i, axis]
            sums[j, 0] += np.int64(np.rint(scale * np.cos(phase)))
            sums[j, 1] += np.int64(np.rint(scale * np.sin(phase)))
    return sums


@compiled
def _kernel_matrix(first: Floats, second: Floats, gamma: float) -> Floats:
    matrix = np.empty((first.shape[0], second.shape[0]))
    for i in range(first.shape[0]):
        for j in range(second.shape[0]):
            squared = 0.0
            for axis in range(first.shape[1]):
                squared += (first[i, axis] - second[j, axis]) ** 2
            matrix[i, j] = np.exp(-gamma * squared)
    return matrix
