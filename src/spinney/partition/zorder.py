"""Cell codes: interleaved bits, left-aligned in 64-bit words, most significant first.

A code is a row of `lattice.n_words` words; a node of depth k is a code whose bits from k on are zero, together
with k. Sorting codes as numbers visits the tree depth first, so a node is a contiguous range of sorted codes.
All kernels are pure: arrays in, arrays out, no randomness.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.schema.lattice import Lattice

Codes = NDArray[np.uint64]  # (n, n_words)
Indices = NDArray[np.int64]

_RADIX_BITS = 10
# Below this many codes numpy's comparison sort is as fast and needs no second buffer.
_SMALL_SORT = 4096


def spread_tables(lattice: Lattice) -> list[NDArray[np.uint64]]:
    """For each axis, the code bits of every byte of its cell number: (n_bytes, 256, n_words).

    The code of a row is the bitwise or over its axes of `table[b, byte b of the cell]`, lowest byte first.
    """
    tables = []
    for index, axis in enumerate(lattice.axes):
        table = np.zeros((max(1, -(-axis.bits // 8)), 256, lattice.n_words), dtype=np.uint64)
        for position, step in enumerate(lattice.order):
            if step.axis != index:
                continue
            byte, bit = divmod(axis.bits - 1 - step.bit, 8)
            holds_bit = (np.arange(256) >> bit & 1).astype(bool)
            word, offset = divmod(position, 64)
            table[byte, holds_bit, word] |= np.uint64(1 << (63 - offset))
        tables.append(table)
    return tables


def byte_tables(lattice: Lattice) -> NDArray[np.int64]:
    """What every byte of a code, first byte first, adds to the cell numbers of all axes: (n_bytes, 256, n_axes)."""
    tables = np.zeros((8 * lattice.n_words, 256, lattice.n_axes), dtype=np.int64)
    for position, step in enumerate(lattice.order):
        byte, bit = divmod(position, 8)
        holds_bit = (np.arange(256) >> (7 - bit) & 1).astype(bool)
        tables[byte, holds_bit, step.axis] |= 1 << (lattice.axes[step.axis].bits - 1 - step.bit)
    return tables[: max(1, -(-lattice.depth // 8))]


def interleave(cells: Indices, lattice: Lattice) -> Codes:
    """Codes of rows given by their cell numbers (n, n_axes)."""
    codes = np.zeros((len(cells), lattice.n_words), dtype=np.uint64)
    for index, table in enumerate(spread_tables(lattice)):
        add_axis(np.ascontiguousarray(cells[:, index]), table, codes)
    return codes


@compiled
def add_axis(cells: Indices, table: NDArray[np.uint64], codes: Codes) -> None:
    """Put the bits of one axis into the codes."""
    n_bytes, _, n_words = table.shape
    if n_words == 1 and n_bytes <= 2:  # the common case, three times as fast without inner loops
        low, high = table[0, :, 0], table[n_bytes - 1, :, 0]
        for i in range(cells.size):
            cell = cells[i]
            codes[i, 0] |= low[cell & 255] | high[cell >> (8 * (n_bytes - 1))]
        return
    for i in range(cells.size):
        cell = cells[i]
        for byte in range(n_bytes):
            value = (cell >> (8 * byte)) & 255
            for word in range(n_words):
                codes[i, word] |= table[byte, value, word]


def split_axes(lattice: Lattice) -> NDArray[np.int64]:
    """Which axis each bit of a code cuts."""
    return np.array([step.axis for step in lattice.order], dtype=np.int64)


def deinterleave(codes: Codes, depths: NDArray[np.int64], lattice: Lattice) -> tuple[Indices, Indices]:
    """First cell and number of cells of each node along each axis, impossible ones included: (n, n_axes) arrays."""
    bits = np.array([axis.bits for axis in lattice.axes], dtype=np.int64)
    return _deinterleave(codes, depths, split_axes(lattice), bits)


@compiled
def _deinterleave(
    codes: Codes, depths: NDArray[np.int64], order: NDArray[np.int64], bits: NDArray[np.int64]
) -> tuple[Indices, Indices]:
    n, n_axes = codes.shape[0], bits.size
    first = np.zeros((n, n_axes), dtype=np.int64)
    size = np.empty((n, n_axes), dtype=np.int64)
    for i in range(n):
        for axis in range(n_axes):
            size[i, axis] = 1 << bits[axis]
        for position in range(depths[i]):
            axis = order[position]
            size[i, axis] >>= 1
            if codes[i, position >> 6] >> np.uint64(63 - (position & 63)) & np.uint64(1):
                first[i, axis] += size[i, axis]
    return first, size


def possible_nodes(codes: Codes, depths: NDArray[np.int64], lattice: Lattice) -> NDArray[np.bool_]:
    """Which nodes hold at least one cell that some row can have."""
    if lattice.is_full:
        return np.ones(len(codes), dtype=np.bool_)
    first, size = deinterleave(codes, depths, lattice)
    possible = np.ones(len(codes), dtype=np.bool_)
    for index, axis in enumerate(lattice.axes):
        start, stop = first[:, index], first[:, index] + size[:, index]
        holds_value = (start <= axis.last) & (stop > axis.first)
        holds_null = (start <= axis.null_cell) & (stop > axis.null_cell)
        possible &= holds_value | holds_null
    return possible


# --------------------------------------------------------------------------------------------------- sorting


def sort_codes(codes: Codes) -> Codes:
    """The codes in increasing order; may reuse the memory of its argument."""
    if codes.shape[1] > 1:
        return codes[np.lexsort(codes.T[::-1])]
    flat = codes[:, 0]
    if flat.size < _SMALL_SORT:
        return np.sort(flat)[:, None]
    return _radix_sort(flat, np.empty_like(flat))[:, None]


@compiled
def _radix_sort(codes: NDArray[np.uint64], spare: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Least significant digit first, 10 bits a pass; passes over digits that are all equal are skipped."""
    source, target = codes, spare
    n_digits = 1 << _RADIX_BITS
    mask = np.uint64(n_digits - 1)
    for shift in range(0, 64, _RADIX_BITS):
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
    return source


@compiled
def count_runs(codes: Codes) -> tuple[Codes, NDArray[np.int64]]:
    """Distinct codes of a sorted array and how often each occurs; writes over its argument."""
    n, n_words = codes.shape
    counts = np.empty(n, dtype=np.int64)
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
    return codes[: last + 1], counts[: last + 1]


@compiled
def merge_counted(
    left: Codes, left_counts: NDArray[np.int64], right: Codes, right_counts: NDArray[np.int64]
) -> tuple[Codes, NDArray[np.int64]]:
    """Two sorted lists of distinct codes with counts as one."""
    n_left, n_words = left.shape
    n_right = right.shape[0]
    codes = np.empty((n_left + n_right, n_words), dtype=np.uint64)
    counts = np.empty(n_left + n_right, dtype=np.int64)
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
    return codes[:k], counts[:k]
