"""Where bins lie in the units of the columns, and how the density leans inside them.

Reals keep their unit; every other column is measured in whole values above its low bound, a bin of k values
being k long. Along an axis with pieces all is measured in places (`schema/pieces.py`), and becomes values at the very
end (`places`). The lean of a bin along an axis follows from released counts alone: the last split along that axis
divides a node into the half that holds the bin, with count c_own, and its sibling with c_sib. As in finite-
volume schemes the density is taken as linear across the two, which moves the mean of the half toward the
sibling by

    edge * (c_sib / c_own - 1) / 12,        limited to a third of the edge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.schema.lattice import Axis
from spinney.schema.pieces import in_points, to_places
from spinney.schema.zorder import Codes, deinterleave, split_axes
from spinney.tree.bins import NoisyBins, NoisyMoments

Matrix = NDArray[np.float64]  # (n_bins, n_axes)

LARGEST_SHIFT = 1 / 3
# How much of its first cell a point takes up in places: next to nothing.
POINT_LENGTH = 2.0**-10


@dataclass(frozen=True, slots=True)
class Boxes:
    """Per bin and axis: low end and length of the values inside, and the share of rows that are null."""

    low: Matrix
    length: Matrix
    null_share: Matrix


def bin_boxes(bins: NoisyBins | NoisyMoments) -> Boxes:
    """The boxes of all bins, cut to what rows can have."""
    first, size = deinterleave(bins.codes, bins.depths, bins.lattice)
    shape = (len(bins), bins.lattice.n_axes)
    low, length, null_share = np.empty(shape), np.empty(shape), np.zeros(shape)
    for index, axis in enumerate(bins.lattice.axes):
        start = np.maximum(first[:, index], axis.first)
        stop = np.minimum(first[:, index] + size[:, index], axis.last + 1)
        if axis.nullable:
            holds_null = (first[:, index] <= axis.null_cell) & (first[:, index] + size[:, index] > axis.null_cell)
            # A bin that holds both: rows are uniform over its possible cells, of which null is one.
            n_value_cells = np.maximum(stop - start, 0)
            null_share[:, index] = np.where(holds_null, 1 / (n_value_cells + 1), 0)
            stop = np.maximum(stop, start)
        low[:, index], length[:, index] = extent(axis, start, stop)
    return Boxes(low, length, null_share)


def extent(axis: Axis, start: NDArray[np.int64], stop: NDArray[np.int64]) -> tuple[Matrix, Matrix]:
    """Cells start..stop-1 in the units of the column, or, where the axis has pieces, in places: low end and length."""
    if axis.pieces is not None:
        first, size = to_places(axis.pieces, start, stop - start)
        is_point = in_points(axis.pieces, start, stop)
        return first.astype(np.float64), np.where(is_point, POINT_LENGTH, size.astype(np.float64))
    if axis.kind == "real":
        low = np.maximum(axis.origin + start / axis.scale, axis.low)
        high = np.minimum(axis.origin + stop / axis.scale, axis.high)
        # The cells together end at the high bound; adding rounded widths must not stop short of it.
        high = np.where(stop == axis.last + 1, axis.high, high)
        return low, np.maximum(high - low, 0)
    n_values = int(axis.high) - int(axis.low) + 1
    begin, end = np.minimum(start * axis.step, n_values), np.minimum(stop * axis.step, n_values)
    return begin.astype(np.float64), (end - begin).astype(np.float64)


def shifts(bins: NoisyBins | NoisyMoments, counts: NDArray[Any]) -> Matrix:
    """How far the mean of each bin leans along each axis, in edges: between -1/3 and 1/3."""
    lattice = bins.lattice
    is_blind = np.array([_is_blind(lattice.axes[step.axis], step.bit) for step in lattice.order] or [False])
    before = np.concatenate([[0], np.cumsum(counts)])
    shift: Matrix = _shifts(bins.codes, bins.depths, before, split_axes(lattice), is_blind, lattice.n_axes)
    if not lattice.is_full:
        shift *= _both_halves_possible(bins)
    return shift


def _is_blind(axis: Axis, bit: int) -> bool:
    """Whether the halves of a split lie not side by side: values and nulls, points and what lies behind them."""
    if axis.nullable and bit == 0:
        return True
    return axis.pieces is not None and bit - axis.nullable == axis.pieces.point_bit


def _both_halves_possible(bins: NoisyBins | NoisyMoments) -> NDArray[np.bool_]:
    """Where the sibling across the last split holds values at all; otherwise there is nothing to lean on."""
    first, size = deinterleave(bins.codes, bins.depths, bins.lattice)
    is_possible = np.ones(first.shape, dtype=np.bool_)
    for index, axis in enumerate(bins.lattice.axes):
        start = first[:, index] ^ size[:, index]
        is_possible[:, index] = (start <= axis.last) & (start + size[:, index] > axis.first)
    return is_possible


@compiled
def _shifts(
    codes: Codes,
    depths: NDArray[np.int64],
    before: NDArray[Any],
    order: NDArray[np.int64],
    is_blind: NDArray[np.bool_],
    n_axes: int,
) -> Matrix:
    n, n_words = codes.shape
    shift = np.zeros((n, n_axes))
    half = np.empty(n_words, dtype=np.uint64)
    for i in range(n):
        seen = 0
        done = np.zeros(n_axes, dtype=np.bool_)
        for position in range(depths[i] - 1, -1, -1):
            axis = order[position]
            if done[axis]:
                continue
            done[axis] = True
            seen += 1
            if not is_blind[position]:
                word, bit = position >> 6, np.uint64(1) << np.uint64(63 - (position & 63))
                is_upper = (codes[i, word] & bit) != 0
                # Start of the upper half of the node that this split divides.
                for w in range(n_words):
                    half[w] = codes[i, w] if w <= word else np.uint64(0)
                half[word] = codes[i, word] & ~((bit << np.uint64(1)) - np.uint64(1)) | bit
                middle = _position(codes, half)
                half[word] ^= bit
                start = _position(codes, half)
                half[word] |= bit
                stop = _position_after(codes, half, word, bit)
                lower, upper = before[middle] - before[start], before[stop] - before[middle]
                own, sibling = (upper, lower) if is_upper else (lower, upper)
                lean = min((sibling / own - 1) / 12, LARGEST_SHIFT) if own > 0 else 0.0
                shift[i, axis] = -lean if is_upper else lean
            if seen == n_axes:
                break
    return shift


@compiled
def _is_less(code: NDArray[np.uint64], other: NDArray[np.uint64]) -> bool:
    for word in range(code.size):
        if code[word] != other[word]:
            return bool(code[word] < other[word])
    return False


@compiled
def _position(codes: Codes, node: NDArray[np.uint64]) -> int:
    """How many codes come before the node."""
    low, high = 0, codes.shape[0]
    while low < high:
        middle = (low + high) // 2
        if _is_less(codes[middle], node):
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _position_after(codes: Codes, node: NDArray[np.uint64], word: int, bit: np.uint64) -> int:
    """How many codes come before the end of the node whose last bit is `bit` of `word`."""
    end = node.copy()
    carry = bit
    for w in range(word, -1, -1):
        total = end[w] + carry
        overflows = total < end[w]
        end[w] = total
        if not overflows:
            return int(_position(codes, end))
        carry = np.uint64(1)
    return int(codes.shape[0])
