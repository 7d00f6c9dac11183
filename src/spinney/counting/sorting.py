"""Sorting cell codes and counting them: what a group-by of lattice cells is made of. SENSITIVE.

    merging                         distinct cells with counts, and two lists of them as one
    sums over blocks                rows before a position, without a running sum
    radix                           buckets by the first bits, and the digits that follow
    scattering and concatenating    parts of the rows into buckets, buckets together in order
    ordering further                given ranges by the next digit
    all bits                        what is left, for whoever needs a full order

A tree asks for the rows of a node and of its halves; it never needs the rows of a leaf in order. So codes are
ordered by their first bits, and by more bits only inside nodes that are split. All kernels are pure.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.grid.codes import Codes, Indices
from spinney.machine import each, threads
from spinney.progress import progress
from spinney.text import Sensitive

# -------------------------------------------------------------------------------------------------------------- merging
# Distinct cells with counts, two lists of them as one, and rows in ranges of cells.
#
# Counts take four bytes where they can. Sums over blocks of cells stand in for a running sum, which would take
# as much memory as the codes.


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


# ----------------------------------------------------------------------------------------------------- sums over blocks

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


# ---------------------------------------------------------------------------------------------------------------- radix
# Sorting only by the bits that are needed.
#
# Codes of one word are ordered by their first bits alone, and by more bits only inside nodes that are split
# (`order_further`):
#
#     scatter      a part of the rows, while it is in cache, goes into buckets by the first 11 bits
#     concatenate  the buckets of all parts come together, each ordered by the next digit, of 8 bits or 10
#     further      given ranges of equal first bits are ordered by the next digit
#
# Every step reads codes and writes them elsewhere, in order of one digit; threads share parts, buckets or
# ranges. Codes of several words are rare and go to numpy.


Flat = NDArray[np.uint64]

WORD_BITS = 64
_BUCKET_BITS = 11
_GROUP_BITS = 4
# A digit of more bits spares many codes a pass; to few codes, its counters are a burden.
_MANY = 1 << 24
_DIGIT_BITS, _DIGIT_BITS_OF_MANY = 8, 10
# Codes that are scattered at once: twice two megabytes stay in cache.
PART = 1 << 18
# Ranges of more codes than this are scattered and concatenated; a range and its copy stay in cache.
_LARGEST_RANGE = 1 << 20
# Below this many codes, threads and buckets take longer than one thread that sorts them all.
_SMALL_SORT = 1 << 16
# They are sorted by digits of so many bits, the last one first.
_SMALL_BITS = 8
# Ranges of up to so many codes are put in order altogether.
_FEW = 16


def digit_bits(n_codes: int) -> int:
    """By how many bits so many codes are ordered at a time."""
    return _DIGIT_BITS if n_codes < _MANY else _DIGIT_BITS_OF_MANY


# ----------------------------------------------------------------------------------------- scattering and concatenating


class RadixBuckets(Sensitive):
    """Codes whose first `n_before` bits are equal, scattered part by part. `n_codes` is how many there will be, about.

    Neighbouring buckets form a group, whose memory is given back as soon as they are concatenated.
    """

    def __init__(self, n_codes: int, n_words: int = 1, n_before: int = 0) -> None:
        self._n_words = n_words
        self._n_before = n_before
        self._n_bits = min(_BUCKET_BITS, WORD_BITS - n_before)
        n_groups = 1 << min(_GROUP_BITS, self._n_bits) if n_words == 1 else 1
        self._groups = [_BucketGroup(n_codes // n_groups, n_words) for _ in range(n_groups)]

    @classmethod
    def of(cls, codes: Codes, n_before: int = 0) -> RadixBuckets:
        """All codes of an array, scattered by threads."""
        buckets = cls(len(codes), codes.shape[1], n_before)
        each(lambda start: buckets.put(codes[start : start + PART]), range(0, len(codes), PART))
        return buckets

    def put(self, codes: Codes) -> None:
        """Scatter a part of the codes, `PART` of them at best. Threads may do so at once."""
        if self._n_words > 1:
            self._groups[0].put(codes, np.array([0, len(codes)], dtype=np.int32))
            return
        scattered = np.empty_like(codes)
        ends = np.zeros((1 << self._n_bits) + 1, dtype=np.int32)
        _scatter(codes[:, 0], scattered[:, 0], ends, self._n_before, self._n_bits)
        n_buckets = (1 << self._n_bits) // len(self._groups)
        for index, group in enumerate(self._groups):
            here = ends[index * n_buckets : (index + 1) * n_buckets + 1]
            if here[0] < here[-1]:
                group.put(scattered[here[0] : here[-1]], here - here[0])

    def concatenated(self, codes: Codes | None = None) -> tuple[Codes, int]:
        """All codes as one array, and by how many of their first bits it is in order. Nothing is left here.

        They go into the array that is given, if one is.
        """
        n_codes = sum(chunk.n_used for group in self._groups for chunk in group.chunks)
        if self._n_words > 1 or n_codes < _SMALL_SORT:
            ordered = self._sorted()
            if codes is not None:
                codes[:] = ordered
            return ordered if codes is None else codes, WORD_BITS * self._n_words
        n_before = self._n_before + self._n_bits
        n_bits = min(digit_bits(n_codes), WORD_BITS - n_before)
        n_buckets = (1 << self._n_bits) // len(self._groups)
        codes = np.empty((n_codes, 1), dtype=np.uint64) if codes is None else codes
        first = 0
        with threads() as pool:
            under_way = []
            for group in self._groups:
                parts = group.parts()
                places = first + _places(parts, n_buckets)
                first = places[-1]
                concatenate = partial(_concatenate, parts, codes[:, 0], places, n_before, n_bits)
                under_way.append((group, [pool.submit(concatenate, low, high) for low, high in _cuts(places)]))
                del parts, concatenate  # nothing but what is under way holds the group's memory
            for group, shares in progress(under_way, "sorting rows", unit="part"):
                while shares:
                    shares.pop(0).result()
                group.chunks.clear()
        return codes, n_before + n_bits

    def _sorted(self) -> Codes:
        """All codes, wholly in order, by one thread."""
        parts = [chunk.codes[: chunk.n_used] for group in self._groups for chunk in group.chunks]
        codes = np.concatenate([np.empty((0, self._n_words), dtype=np.uint64), *parts])
        parts.clear()
        for group in self._groups:
            group.chunks.clear()
        if self._n_words == 1:
            return _sorted_by_digits(codes[:, 0])[:, None]
        return codes[np.lexsort(codes.T[::-1])]


class _Chunk:
    """Memory of a group: scattered parts one after the other, where each begins, and where its buckets end."""

    def __init__(self, n_codes: int, n_words: int) -> None:
        self.codes = np.empty((n_codes, n_words), dtype=np.uint64)
        self.n_used = 0
        self.starts: list[int] = []
        self.ends: list[NDArray[np.int32]] = []

    def put(self, codes: Codes, ends: NDArray[np.int32]) -> None:
        self.codes[self.n_used : self.n_used + len(codes)] = codes
        self.starts.append(self.n_used)
        self.ends.append(ends)
        self.n_used += len(codes)


class _BucketGroup:
    """Some buckets, in as many chunks as it takes."""

    def __init__(self, n_codes: int, n_words: int) -> None:
        self.chunks: list[_Chunk] = []
        self._n_codes, self._n_words = n_codes, n_words
        self._lock = Lock()

    def put(self, codes: Codes, ends: NDArray[np.int32]) -> None:
        with self._lock:
            if not self.chunks or self.chunks[-1].n_used + len(codes) > len(self.chunks[-1].codes):
                self.chunks.append(_Chunk(max(self._n_codes, len(codes)), self._n_words))
            self.chunks[-1].put(codes, ends)

    def parts(self) -> list[_Parts]:
        """For every chunk its codes, where its parts went, and where the buckets of all parts end, one by one."""
        return [
            (chunk.codes[:, 0], np.array(chunk.starts), np.ascontiguousarray(np.array(chunk.ends).T))
            for chunk in self.chunks
        ]


_Parts = tuple[Flat, Indices, NDArray[np.int32]]


def _places(parts: list[_Parts], n_buckets: int) -> Indices:
    """Where each bucket begins once all are concatenated, and where the last one ends."""
    sizes = np.zeros(n_buckets, dtype=np.int64)
    for _, _, ends in parts:
        sizes += np.diff(ends, axis=0).sum(axis=1)
    return np.concatenate([[0], np.cumsum(sizes)])


def _concatenate(
    parts: list[_Parts], codes: Flat, places: Indices, n_before: int, n_bits: int, low: int, high: int
) -> None:
    """Bring buckets low..high of all parts together, each ordered by `n_bits` bits more."""
    heads = np.zeros((high - low, 1 << n_bits), dtype=np.int64)
    for scattered, starts, ends in parts:
        _count_digits(scattered, starts, ends[low : high + 1], n_before, n_bits, heads)
    heads[:] = places[low] + np.concatenate([[0], np.cumsum(heads)[:-1]]).reshape(heads.shape)
    for scattered, starts, ends in parts:
        _move(scattered, starts, ends[low : high + 1], n_before, n_bits, heads, codes)


def _cuts(places: Indices) -> list[tuple[int, int]]:
    """Ranges of items, which begin and end at `places`, of about as many codes each, more of them than threads."""
    n_shares = min(len(places) - 1, 1 + int(places[-1] - places[0]) // PART)
    inner = np.linspace(places[0], places[-1], n_shares + 1)[1:-1]
    cuts = np.unique([0, *np.searchsorted(places[:-1], inner), len(places) - 1])
    return list(pairwise(cuts.tolist()))


@compiled
def _scatter(codes: Flat, scattered: Flat, ends: NDArray[np.int32], n_before: int, n_bits: int) -> None:
    """Order a part by the `n_bits` bits that follow the first `n_before`; bucket k is ends[k]..ends[k+1]."""
    shift, mask = np.uint64(64 - n_before - n_bits), np.uint64((1 << n_bits) - 1)
    for i in range(codes.size):
        ends[np.int64(codes[i] >> shift & mask) + 1] += 1
    for k in range(1 << n_bits):
        ends[k + 1] += ends[k]
    heads = ends[:-1].copy()
    for i in range(codes.size):
        bucket = np.int64(codes[i] >> shift & mask)
        scattered[heads[bucket]] = codes[i]
        heads[bucket] += 1


@compiled
def _count_digits(
    scattered: Flat, starts: Indices, ends: NDArray[np.int32], n_before: int, n_bits: int, counts: Indices
) -> None:
    """Add to `counts` how many codes of each bucket have each digit of `n_bits` bits."""
    shift, mask = np.uint64(min(63, 64 - n_before - n_bits)), np.uint64((1 << n_bits) - 1)
    for bucket in range(counts.shape[0]):
        here = counts[bucket]
        for part in range(starts.size):
            for i in range(starts[part] + ends[bucket, part], starts[part] + ends[bucket + 1, part]):
                here[np.int64(scattered[i] >> shift & mask)] += 1


@compiled
def _move(
    scattered: Flat, starts: Indices, ends: NDArray[np.int32], n_before: int, n_bits: int, heads: Indices, codes: Flat
) -> None:
    """Move codes to the place that comes next for their bucket and digit."""
    shift, mask = np.uint64(min(63, 64 - n_before - n_bits)), np.uint64((1 << n_bits) - 1)
    for bucket in range(heads.shape[0]):
        here = heads[bucket]
        for part in range(starts.size):
            for i in range(starts[part] + ends[bucket, part], starts[part] + ends[bucket + 1, part]):
                digit = np.int64(scattered[i] >> shift & mask)
                codes[here[digit]] = scattered[i]
                here[digit] += 1


@compiled
def _sorted_by_digits(codes: Flat) -> Flat:
    """Few codes in order, one digit after the other, those aside that all have in common: codes use few of all bits."""
    n_digits, n_values = WORD_BITS // _SMALL_BITS, 1 << _SMALL_BITS
    bits, mask = np.uint64(_SMALL_BITS), np.uint64(n_values - 1)
    here, spare = codes.copy(), np.empty_like(codes)
    either, both = np.uint64(0), ~np.uint64(0)
    for i in range(codes.size):
        either |= codes[i]
        both &= codes[i]
    heads = np.empty(n_values, dtype=np.int64)
    for digit in range(n_digits):
        shift = np.uint64(digit) * bits
        if (either ^ both) >> shift & mask == 0:
            continue
        heads[:] = 0
        for i in range(codes.size):
            heads[np.int64(here[i] >> shift & mask)] += 1
        place = np.int64(0)
        for k in range(n_values):
            heads[k], place = place, place + heads[k]
        for i in range(codes.size):
            value = np.int64(here[i] >> shift & mask)
            spare[heads[value]] = here[i]
            heads[value] += 1
        here, spare = spare, here
    return here


# ----------------------------------------------------------------------------------------------------- ordering further


def order_further(codes: Flat, start: Indices, stop: Indices, n_before: int, *, wholly: bool = False) -> None:
    """Order ranges of codes, the first `n_before` bits of each equal, by the next digit, in place.

    `wholly`: few codes that agree in those, too, are sorted.
    """
    n_bits = min(digit_bits(len(codes)), WORD_BITS - n_before)
    sizes = stop - start
    for i in np.flatnonzero(sizes > _LARGEST_RANGE):
        here = codes[start[i] : stop[i]]
        if (here == here[0]).all():  # one cell of many rows
            continue
        ordered, n_ordered = RadixBuckets.of(here[:, None], n_before).concatenated(here[:, None])
        if wholly:
            sort_rest(ordered, n_ordered)
    chosen = np.flatnonzero((sizes > 1) & (sizes <= _LARGEST_RANGE))
    start, stop = start[chosen], stop[chosen]

    def order(cut: tuple[int, int]) -> None:
        low, high = cut
        _order_ranges(codes, start[low:high], stop[low:high], n_before, n_bits, wholly)

    each(order, _cuts(np.concatenate([[0], np.cumsum(stop - start)])), title="putting rows in order")


@compiled
def _order_ranges(codes: Flat, start: Indices, stop: Indices, n_before: int, n_bits: int, wholly: bool) -> None:
    """Order every range by the `n_bits` bits that follow the first `n_before`, or, if it is short, altogether."""
    shift, mask = np.uint64(min(63, 64 - n_before - n_bits)), np.uint64((1 << n_bits) - 1)
    heads = np.empty(1 << n_bits, dtype=np.int64)
    spare = np.empty((stop - start).max() if start.size else 0, dtype=np.uint64)
    for at in range(start.size):
        low, high = start[at], stop[at]
        if high - low <= _FEW:
            _insertion_sort(codes[low:high])
            continue
        heads[:] = 0
        for i in range(low, high):
            heads[np.int64(codes[i] >> shift & mask)] += 1
        place = np.int64(0)
        for k in range(1 << n_bits):
            heads[k], place = place, place + heads[k]
        for i in range(low, high):
            digit = np.int64(codes[i] >> shift & mask)
            spare[heads[digit]] = codes[i]
            heads[digit] += 1
        codes[low:high] = spare[: high - low]
        if wholly:
            first = low
            for k in range(1 << n_bits):
                if 1 < low + heads[k] - first <= _FEW:
                    _insertion_sort(codes[first : low + heads[k]])
                first = low + heads[k]


@compiled
def _insertion_sort(codes: Flat) -> None:
    for i in range(1, codes.size):
        code = codes[i]
        place = i
        while place > 0 and codes[place - 1] > code:
            codes[place] = codes[place - 1]
            place -= 1
        codes[place] = code


# ------------------------------------------------------------------------------------------------------------- all bits


def sort_rest(codes: Codes, n_ordered: int, n_bits: int | None = None, *, least: int = 2) -> Codes:
    """Codes that are in order of their first bits, in order of all bits; those of one word in place.

    Fewer codes than `least` that agree in their first bits are left as they are.
    """
    n_bits = WORD_BITS * codes.shape[1] if n_bits is None else n_bits
    while n_ordered < n_bits:
        flat = codes[:, 0]
        n_ranges = _equal_ranges(flat, n_ordered, least, np.empty((0, 2), dtype=np.int64))
        if n_ranges == 0:
            break
        ranges = np.empty((n_ranges, 2), dtype=np.int64)
        _equal_ranges(flat, n_ordered, least, ranges)
        order_further(flat, ranges[:, 0], ranges[:, 1], n_ordered, wholly=True)
        n_ordered += digit_bits(len(codes))
        least = max(least, _FEW + 1)
    return codes


@compiled
def _equal_ranges(codes: Flat, n_bits: int, least: int, found: Indices) -> int:
    """How many ranges of at least so many codes agree in their first bits; writes them down where there is room."""
    shift = np.uint64(64 - n_bits)
    n_ranges, first = 0, 0
    for i in range(1, codes.size + 1):
        if i == codes.size or codes[i] >> shift != codes[first] >> shift:
            if i - first >= least:
                if n_ranges < found.shape[0]:
                    found[n_ranges, 0], found[n_ranges, 1] = first, i
                n_ranges += 1
            first = i
    return n_ranges
