"""Cell codes: interleaved bits, left-aligned in 64-bit words, most significant first.

A code is a row of `lattice.n_words` words; a node of depth k is a code whose bits from k on are zero, together
with k. Sorting codes as numbers visits the tree depth first, so a node is a contiguous range of sorted codes.
All kernels are pure: arrays in, arrays out, no randomness.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.grid.lattice import Axis, Lattice
from spinney.grid.pieces import behind_points
from spinney.machine import by_slices

Codes = NDArray[np.uint64]  # (n, n_words)
Indices = NDArray[np.int64]


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


def expansions(lattice: Lattice) -> list[NDArray[np.uint64]]:
    """For each axis of a lattice of one word, the seven masks by which `expand_axis` puts its bits into a code."""
    masks = []
    for index in range(lattice.n_axes):
        places = sum(1 << (63 - position) for position, step in enumerate(lattice.order) if step.axis == index)
        masks.append(np.array(_expansion(places), dtype=np.uint64))
    return masks


def _expansion(places: int) -> list[int]:
    """Which bits move by 32, 16, ... 1 places, so that the lowest bits of a word end in `places`; and `places`.

    A bit moves as many places up as there are free places below its own. Stage i moves those whose distance has bit i;
    the masks are found backwards, from the places to the lowest bits, smallest move first.
    """
    full = (1 << 64) - 1
    moves = []
    here, free = places, ~places << 1 & full
    for stage in range(6):
        is_odd = free  # bit k: whether the number of free places below k is odd
        for shift in (1, 2, 4, 8, 16, 32):
            is_odd ^= is_odd << shift & full
        moving = is_odd & here
        moves.append(moving)
        here = here ^ moving | moving >> (1 << stage)
        free &= ~is_odd
    return [*reversed(moves), places]


@compiled
def expand_axis(cells: Indices, masks: NDArray[np.uint64], codes: NDArray[np.uint64]) -> None:
    """Put the bits of one axis into codes of one word: the same as `add_axis`, in steps that work on vectors."""
    by_32, by_16, by_8, by_4, by_2, by_1, places = masks
    for i in range(cells.size):
        bits = np.uint64(cells[i])
        bits ^= (bits ^ bits << np.uint64(32)) & by_32
        bits ^= (bits ^ bits << np.uint64(16)) & by_16
        bits ^= (bits ^ bits << np.uint64(8)) & by_8
        bits ^= (bits ^ bits << np.uint64(4)) & by_4
        bits ^= (bits ^ bits << np.uint64(2)) & by_2
        bits ^= (bits ^ bits << np.uint64(1)) & by_1
        codes[i] |= bits & places


def byte_tables(lattice: Lattice) -> NDArray[np.int64]:
    """What every byte of a code, first byte first, adds to the cell numbers of all axes: (n_bytes, 256, n_axes).

    Along axes with pieces, to the places of cells.
    """
    tables = np.zeros((8 * lattice.n_words, 256, lattice.n_axes), dtype=np.int64)
    for position, (step, worth) in enumerate(zip(lattice.order, bit_worths(lattice), strict=True)):
        byte, bit = divmod(position, 8)
        holds_bit = (np.arange(256) >> (7 - bit) & 1).astype(bool)
        tables[byte, holds_bit, step.axis] |= worth
    return tables[: max(1, -(-lattice.depth // 8))]


def bit_worths(lattice: Lattice) -> Indices:
    """What every bit of a code adds to the cell number of its axis, or to the place of the cell where it has pieces."""
    return np.array([_worth(lattice.axes[step.axis], step.bit) for step in lattice.order], dtype=np.int64)


def _worth(axis: Axis, bit: int) -> int:
    worth = 1 << (axis.bits - 1 - bit)
    if axis.pieces is None or not axis.pieces.has_points or bit < axis.nullable + axis.pieces.point_bit:
        return worth
    # Behind points all is twice as wide in places; the bit that tells them apart moves nothing.
    return 2 * worth if bit > axis.nullable + axis.pieces.point_bit else 0


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
    bits, order = np.array([axis.bits for axis in lattice.axes], dtype=np.int64), split_axes(lattice)
    first, size = np.zeros((2, len(codes), lattice.n_axes), dtype=np.int64)
    by_slices(lambda part: _deinterleave(codes[part], depths[part], order, bits, first[part], size[part]), len(codes))
    return first, size


@compiled
def _deinterleave(
    codes: Codes,
    depths: NDArray[np.int64],
    order: NDArray[np.int64],
    bits: NDArray[np.int64],
    first: Indices,
    size: Indices,
) -> None:
    for i in range(codes.shape[0]):
        for axis in range(bits.size):
            size[i, axis] = 1 << bits[axis]
        for position in range(depths[i]):
            axis = order[position]
            size[i, axis] >>= 1
            if codes[i, position >> 6] >> np.uint64(63 - (position & 63)) & np.uint64(1):
                first[i, axis] += size[i, axis]


def possible_nodes(codes: Codes, depths: NDArray[np.int64], lattice: Lattice) -> NDArray[np.bool_]:
    """Which nodes hold at least one cell that some row can have."""
    if lattice.is_full:
        return np.ones(len(codes), dtype=np.bool_)
    first, size = deinterleave(codes, depths, lattice)
    possible = np.ones(len(codes), dtype=np.bool_)
    for index, axis in enumerate(lattice.axes):
        start, stop = first[:, index], first[:, index] + size[:, index]
        holds_value = (start <= axis.last) & (stop > axis.first)
        if axis.pieces is not None:
            holds_value &= ~behind_points(axis.pieces, start, stop)
        holds_null = (start <= axis.null_cell) & (stop > axis.null_cell)
        possible &= holds_value | holds_null
    return possible


# --------------------------------------------------------------------------------------------- counting bits


@compiled
def _add(one: np.uint64, two: np.uint64, three: np.uint64) -> tuple[np.uint64, np.uint64]:
    """For each bit, the sum of three bits in binary: ones and twos."""
    half = one ^ two
    return half ^ three, one & two | half & three


@compiled
def _add_set(word: np.uint64, worth: int, n_set: NDArray[np.int64]) -> None:
    for bit in range(64):
        n_set[bit] += np.int64(word >> np.uint64(bit) & np.uint64(1)) * worth


@compiled
def count_bits(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """How many words have each bit, lowest bit first: (64,). Sixteen words at a time are added up, all bits at once."""
    n_set = np.zeros(64, dtype=np.int64)
    ones = twos = fours = eights = np.uint64(0)
    n_whole = words.size // 16 * 16
    for i in range(0, n_whole, 16):
        sixteens = np.uint64(0)
        for half in range(2):
            at = i + 8 * half
            ones, two_a = _add(ones, words[at], words[at + 1])
            ones, two_b = _add(ones, words[at + 2], words[at + 3])
            twos, four_a = _add(twos, two_a, two_b)
            ones, two_a = _add(ones, words[at + 4], words[at + 5])
            ones, two_b = _add(ones, words[at + 6], words[at + 7])
            twos, four_b = _add(twos, two_a, two_b)
            fours, eight = _add(fours, four_a, four_b)
            sixteens |= eights & eight
            eights ^= eight
        _add_set(sixteens, 16, n_set)
    _add_set(eights, 8, n_set)
    _add_set(fours, 4, n_set)
    _add_set(twos, 2, n_set)
    _add_set(ones, 1, n_set)
    for i in range(n_whole, words.size):
        _add_set(words[i], 1, n_set)
    return n_set
