"""Sorting and counting cell codes: what a group-by of lattice cells is made of.

Codes of one word are sorted in place. The array is split by its first bits, again and again, until a part fits into
cache; there it is sorted by radix, lowest digit first, with a spare buffer of its own. The parts of the first split
are shared among threads. So sorting needs no second array, and counting adds four bytes a cell: what limits the size
of a table is the codes themselves. Codes of several words are rare and go to numpy. All kernels are pure.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.partition.zorder import Codes

Counts = NDArray[np.int64] | NDArray[np.int32]
Flat = NDArray[np.uint64]

_FIRST_BITS = 11  # of the split whose parts are shared among threads
_SPLIT_BITS = 8
_RADIX_BITS = 10
# Codes that are sorted by radix at once: twice two megabytes stay in cache.
_LARGEST_PART = 1 << 18
# Below this many codes numpy's comparison sort is as fast.
_SMALL_SORT = 4096
_FEW = 24


def counts_type(n_rows: int) -> np.dtype[Any]:
    """The narrowest integers that can count this many rows, of 4 or 8 bytes."""
    return np.dtype(np.int32 if n_rows < 2**31 else np.int64)


def sort_codes(codes: Codes) -> Codes:
    """The codes in increasing order; may reuse the memory of its argument."""
    if codes.shape[1] > 1:
        return codes[np.lexsort(codes.T[::-1])]
    flat = np.ascontiguousarray(codes[:, 0])
    if flat.size < _SMALL_SORT:
        return np.sort(flat)[:, None]
    if flat.size <= _LARGEST_PART:
        _sort_range(flat, 0, flat.size, 0)
        return flat[:, None]
    ends = _split(flat, 0, flat.size, 0, _FIRST_BITS)
    n_threads = os.cpu_count() or 1
    # More shares than threads, of about as many codes each: parts differ in how long they take.
    shares = np.searchsorted(ends, np.linspace(0, flat.size, 8 * n_threads + 1))
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(lambda share: _sort_parts(flat, ends[share[0] : share[1] + 1]), pairwise(shares.tolist())))
    return flat[:, None]


@compiled
def _split(codes: Flat, low: int, high: int, n_before: int, n_bits: int) -> NDArray[np.int64]:
    """Order codes low..high by the `n_bits` bits that follow the first `n_before`; returns where the parts end."""
    offset, mask = np.uint64(64 - n_before - n_bits), np.uint64((1 << n_bits) - 1)
    ends = np.zeros((1 << n_bits) + 1, dtype=np.int64)
    for i in range(low, high):
        ends[np.int64(codes[i] >> offset & mask) + 1] += 1
    ends[0] = low
    for digit in range(1 << n_bits):
        ends[digit + 1] += ends[digit]
    heads = ends[:-1].copy()
    for digit in range(1 << n_bits):
        while heads[digit] < ends[digit + 1]:
            # A code in the wrong part takes the next place of its own; whoever was there moves on.
            code = codes[heads[digit]]
            home = np.int64(code >> offset & mask)
            while home != digit:
                place = heads[home]
                heads[home] += 1
                code, codes[place] = codes[place], code
                home = np.int64(code >> offset & mask)
            codes[heads[digit]] = code
            heads[digit] += 1
    return ends


@compiled
def _sort_parts(codes: Flat, ends: NDArray[np.int64]) -> None:
    for part in range(ends.size - 1):
        if ends[part + 1] - ends[part] > 1:
            _sort_range(codes, ends[part], ends[part + 1], _FIRST_BITS)


@compiled
def _sort_range(codes: Flat, low: int, high: int, n_before: int) -> None:
    """Sort codes low..high, whose first `n_before` bits are equal."""
    spare = np.empty(min(high - low, _LARGEST_PART), dtype=np.uint64)
    # At most one split a level is under way, so this many ranges wait at most.
    waiting = np.empty(((64 // _SPLIT_BITS + 1) << _SPLIT_BITS, 3), dtype=np.int64)
    waiting[0] = low, high, n_before
    n_waiting = 1
    while n_waiting:
        n_waiting -= 1
        low, high, n_before = waiting[n_waiting]
        if high - low <= _FEW:
            _insertion_sort(codes, low, high)
        elif high - low <= spare.size:
            _radix_sort(codes[low:high], spare[: high - low], n_before)
        else:
            n_bits = min(_SPLIT_BITS, 64 - n_before)
            ends = _split(codes, low, high, n_before, n_bits)
            for part in range(ends.size - 1):
                if ends[part + 1] - ends[part] > 1 and n_before + n_bits < 64:
                    waiting[n_waiting] = ends[part], ends[part + 1], n_before + n_bits
                    n_waiting += 1


@compiled
def _insertion_sort(codes: Flat, low: int, high: int) -> None:
    for i in range(low + 1, high):
        code = codes[i]
        place = i
        while place > low and codes[place - 1] > code:
            codes[place] = codes[place - 1]
            place -= 1
        codes[place] = code


@compiled
def _radix_sort(codes: Flat, spare: Flat, n_before: int) -> None:
    """Least significant digit first, 10 bits a pass; passes over digits that are all equal are skipped."""
    n_digits = 1 << _RADIX_BITS
    mask = np.uint64(n_digits - 1)
    source, target = codes, spare
    in_spare = False
    for shift in range(0, 64 - n_before, _RADIX_BITS):
        offset = np.uint64(shift)
        starts = np.zeros(n_digits, dtype=np.int64)
        for i in range(source.size):
            starts[np.int64(source[i] >> offset & mask)] += 1
        if starts[np.int64(source[0] >> offset & mask)] == source.size:
            continue
        total = np.int64(0)
        for value in range(n_digits):
            count = starts[value]
            starts[value] = total
            total += count
        for i in range(source.size):
            digit = np.int64(source[i] >> offset & mask)
            target[starts[digit]] = source[i]
            starts[digit] += 1
        source, target = target, source
        in_spare = not in_spare
    if in_spare:
        codes[:] = spare


# -------------------------------------------------------------------------------------------------- counting


def count_runs(codes: Codes) -> tuple[Codes, Counts]:
    """Distinct codes of a sorted array and how often each occurs; writes over its argument."""
    counts: Counts = np.empty(len(codes), dtype=counts_type(len(codes)))
    n_distinct = _count_word_runs(codes[:, 0], counts) if codes.shape[1] == 1 else _count_runs(codes, counts)
    if 2 * n_distinct < len(codes):  # the rest would be held for nothing
        return codes[:n_distinct].copy(), counts[:n_distinct].copy()
    return codes[:n_distinct], counts[:n_distinct]


@compiled
def _count_word_runs(codes: Flat, counts: Counts) -> int:
    if not codes.size:
        return 0
    last, first_of_run = 0, 0
    code = codes[0]
    for i in range(1, codes.size):
        if codes[i] != code:
            counts[last] = i - first_of_run
            first_of_run = i
            code = codes[i]
            last += 1
            codes[last] = code
    counts[last] = codes.size - first_of_run
    return last + 1


@compiled
def _count_runs(codes: Codes, counts: Counts) -> int:
    n, n_words = codes.shape
    last = -1
    for i in range(n):
        is_new = last < 0
        if not is_new:
            for word in range(n_words):
                if codes[i, word] != codes[last, word]:
                    is_new = True
                    break
        if is_new:
            last += 1
            counts[last] = 1
            for word in range(n_words):
                codes[last, word] = codes[i, word]
        else:
            counts[last] += 1
    return last + 1


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


# ------------------------------------------------------------------------------------------------ prefix sums

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
def first_above(codes: Codes, bound: Flat) -> int:
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
