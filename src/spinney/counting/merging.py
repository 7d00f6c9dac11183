"""Counting sorted codes: distinct cells with counts, two lists of them as one, and rows in ranges of cells.

Counts take four bytes where they can. Sums over blocks of cells stand in for a running sum, which would take as much
memory as the codes. All kernels are pure.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.schema.zorder import Codes

Counts = NDArray[np.int64] | NDArray[np.int32]


def counts_type(n_rows: int) -> np.dtype[Any]:
    """The narrowest integers that can count this many rows, of 4 or 8 bytes."""
    return np.dtype(np.int32 if n_rows < 2**31 else np.int64)


def count_runs(codes: Codes) -> tuple[Codes, Counts]:
    """Distinct codes of a sorted array and how often each occurs."""
    is_first = np.empty(len(codes), dtype=np.bool_)
    n_distinct = _mark_first(codes, is_first)
    distinct = np.empty((n_distinct, codes.shape[1]), dtype=np.uint64)
    counts: Counts = np.empty(n_distinct, dtype=counts_type(len(codes)))
    _count_marked(codes, is_first, distinct, counts)
    return distinct, counts


@compiled
def _mark_first(codes: Codes, is_first: NDArray[np.bool_]) -> int:
    n_distinct = 0
    for i in range(len(codes)):
        is_new = i == 0
        for word in range(codes.shape[1]):
            is_new |= codes[i, word] != codes[i - 1, word]
        is_first[i] = is_new
        n_distinct += is_new
    return n_distinct


@compiled
def _count_marked(codes: Codes, is_first: NDArray[np.bool_], distinct: Codes, counts: Counts) -> None:
    last = -1
    for i in range(len(codes)):
        if is_first[i]:
            last += 1
            distinct[last] = codes[i]
            counts[last] = 0
        counts[last] += 1


def merge_counted(left: Codes, left_counts: Counts, right: Codes, right_counts: Counts) -> tuple[Codes, Counts]:
    """Two sorted lists of distinct codes with counts as one; counts are of the wider type."""
    n, n_words = len(left) + len(right), left.shape[1]
    codes = np.empty((n, n_words), dtype=np.uint64)
    counts = np.empty(n, dtype=np.promote_types(left_counts.dtype, right_counts.dtype))
    n_distinct = _merge(
        left,
        left_counts.astype(counts.dtype, copy=False),
        right,
        right_counts.astype(counts.dtype, copy=False),
        codes,
        counts,
    )
    return codes[:n_distinct], counts[:n_distinct]


@compiled
def _merge(left: Codes, left_counts: Counts, right: Codes, right_counts: Counts, codes: Codes, counts: Counts) -> int:
    n_left, n_words = left.shape
    n_right = right.shape[0]
    i, j, k = 0, 0, 0
    while i < n_left or j < n_right:
        side = 0  # -1: left is smaller, 1: right is smaller, 0: equal
        if i == n_left:
            side = 1
        elif j == n_right:
            side = -1
        else:
            for word in range(n_words):
                if left[i, word] != right[j, word]:
                    side = -1 if left[i, word] < right[j, word] else 1
                    break
        if side <= 0:
            codes[k] = left[i]
            counts[k] = left_counts[i]
            i += 1
            if side == 0:
                counts[k] += right_counts[j]
                j += 1
        else:
            codes[k] = right[j]
            counts[k] = right_counts[j]
            j += 1
        k += 1
    return k


# ------------------------------------------------------------------------------------------------- sums over blocks

BLOCK = 64


@compiled
def block_sums(counts: Counts) -> NDArray[np.int64]:
    """Rows before the first, second, third ... block of cells."""
    n_blocks = counts.size // BLOCK + 1
    before = np.zeros(n_blocks, dtype=np.int64)
    for block in range(1, n_blocks):
        total = np.int64(0)
        for i in range((block - 1) * BLOCK, block * BLOCK):
            total += counts[i]
        before[block] = before[block - 1] + total
    return before


@compiled
def rows_before(counts: Counts, before: NDArray[np.int64], positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows in the cells before each position."""
    found = np.empty(positions.size, dtype=np.int64)
    for k in range(positions.size):
        block = positions[k] // BLOCK
        total = before[block]
        for i in range(block * BLOCK, positions[k]):
            total += counts[i]
        found[k] = total
    return found


@compiled
def first_above(codes: Codes, bound: NDArray[np.uint64]) -> int:
    """Position of the first code of a sorted list that is greater than `bound`, a code of as many words."""
    low, high = 0, codes.shape[0]
    while low < high:
        half = (low + high) // 2
        is_above = False
        for word in range(codes.shape[1]):
            if codes[half, word] != bound[word]:
                is_above = codes[half, word] > bound[word]
                break
        if is_above:
            high = half
        else:
            low = half + 1
    return low
