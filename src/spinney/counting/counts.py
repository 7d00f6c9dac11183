"""CellCounts: how many rows lie in each occupied lattice cell. SENSITIVE.

This is the one form in which rows reach a mechanism, and the last one that is private. It shows nothing of
itself, cannot be pickled or copied into a file, and is read only by functions that have charged a ledger.
"""

from __future__ import annotations

from typing import NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.counting.merging import Counts, block_sums, count_runs, rows_before
from spinney.counting.radix import RadixBuckets, digit_bits, order_further, sort_rest
from spinney.parallel import by_slices
from spinney.schema.lattice import Lattice
from spinney.schema.zorder import Codes, Indices

# Rows that agree in their first bits, and are fewer than this, need no order to be counted.
_FEW_ROWS = 1024


class ColumnCounts(Protocol):
    """What a tree along a ruler asks of a column's counts. SENSITIVE, whatever stands behind it."""

    @property
    def lattice(self) -> Lattice:
        """Of one axis."""

    def true_total(self) -> int:
        """How many rows there are."""

    def rows_below(self, cells: Indices) -> Indices:
        """True numbers of rows in the cells before some cells."""


class CellCounts:
    """Codes (n, n_words) in order, on a lattice, with true counts (n,). A node of a tree is a range of positions.

    Codes are either distinct cells with counts, or, where there are no counts, those of single rows. Rows are in order
    of their first bits, and of more only within nodes that were split: ordering moves no row out of its node.
    Cells take 8 bytes a word and 4 a count, or 8 where a count may pass 2^31; rows 8 bytes. Sums over ranges of cells
    come from sums over blocks, which take next to nothing, so that tables of a hundred million cells fit.
    """

    __slots__ = ("_before", "_is_searched", "_n_ordered", "lattice", "true_codes", "true_counts")

    def __init__(self, lattice: Lattice, true_codes: Codes, true_counts: Counts | None) -> None:
        self.lattice = lattice
        self.true_codes = true_codes
        self.true_counts = true_counts
        self._before: NDArray[np.int64] | None = None
        self._n_ordered = lattice.depth
        self._is_searched = False

    @classmethod
    def of_rows(cls, lattice: Lattice, buckets: RadixBuckets) -> CellCounts:
        """The rows whose codes are in buckets, which are empty then."""
        codes, n_ordered = buckets.concatenated()
        counts = cls(lattice, codes, None)
        counts._n_ordered = n_ordered
        return counts

    @classmethod
    def from_codes(cls, lattice: Lattice, codes: Codes) -> CellCounts:
        """Distinct cells with counts, given the codes of rows in any order."""
        return cls(lattice, *cls.of_rows(lattice, RadixBuckets.of(codes)).distinct())

    def __len__(self) -> int:
        return len(self.true_codes)

    def rows_between(self, start: Indices, stop: Indices) -> Indices:
        """True numbers of rows in ranges of positions."""
        if self.true_counts is None:
            return stop - start
        if self._before is None:
            self._before = block_sums(self.true_counts)
        return rows_before(self.true_counts, self._before, stop) - rows_before(self.true_counts, self._before, start)

    def true_total(self) -> int:
        """How many rows there are."""
        return len(self) if self.true_counts is None else int(self.true_counts.sum())

    def halves(self, start: Indices, stop: Indices, depth: int) -> Indices:
        """Where the second halves of nodes of one depth begin, which are given as ranges.

        Whoever knows the range of a node has asked for the halves of all nodes above it, and thus had its rows ordered.
        """
        if depth >= self._n_ordered and (depth - self._n_ordered) % digit_bits(len(self)) == 0:
            order_further(self.true_codes[:, 0], start, stop, depth)
        word, offset = divmod(depth, 64)
        bit = np.uint64(1 << (63 - offset))
        middle = np.empty_like(start)
        by_slices(
            lambda part: _first_with_bit(self.true_codes, start[part], stop[part], word, bit, middle[part]), len(start)
        )
        return middle

    def distinct(self) -> tuple[Codes, Counts]:
        """The occupied cells, in order, and how many rows are in each."""
        if self.true_counts is not None:
            return self.true_codes, self.true_counts
        return count_runs(sort_rest(self.true_codes, self._n_ordered, self.lattice.depth))

    def rows_below(self, cells: Indices) -> Indices:
        """True numbers of rows in the cells before some cells, of a lattice of one axis.

        Rows are put in order where many agree in their first bits; where few do, they are looked through.
        """
        if not self._is_searched:
            sort_rest(self.true_codes, self._n_ordered, self.lattice.depth, least=_FEW_ROWS)
            self._is_searched = True
        bits = self.lattice.depth
        is_inside = cells >> bits == 0
        codes = np.where(is_inside, cells, 0).astype(np.uint64) << np.uint64(64 - bits)
        found = np.empty_like(cells)
        _codes_below(self.true_codes, codes, self._n_ordered, found)
        stop = np.where(is_inside, found, len(self))
        return stop if self.true_counts is None else self.rows_between(np.zeros_like(stop), stop)

    def __repr__(self) -> str:
        return "CellCounts(sensitive)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("CellCounts holds private counts and is never pickled")


@compiled
def _first_with_bit(codes: Codes, start: Indices, stop: Indices, word: int, bit: np.uint64, middle: Indices) -> None:
    """In every range, the first position whose code has the bit, by bisection; `stop` if none has."""
    for i in range(start.size):
        low, high = start[i], stop[i]
        while low < high:
            half = (low + high) // 2
            if codes[half, word] & bit:
                high = half
            else:
                low = half + 1
        middle[i] = low


@compiled
def _codes_below(codes: Codes, probes: NDArray[np.uint64], n_ordered: int, found: Indices) -> None:
    """How many codes are less than each of some. Codes of equal first bits are in order only where they are many."""
    shift = np.uint64(64 - n_ordered)
    n = codes.shape[0]
    for i in range(probes.size):
        low, high = 0, n
        while low < high:
            half = (low + high) // 2
            if codes[half, 0] >> shift < probes[i] >> shift:
                low = half + 1
            else:
                high = half
        last = low + _FEW_ROWS - 1
        if last < n and codes[last, 0] >> shift == probes[i] >> shift:
            high = n
            while low < high:
                half = (low + high) // 2
                if codes[half, 0] < probes[i]:
                    low = half + 1
                else:
                    high = half
            found[i] = low
            continue
        found[i] = low
        while low < n and codes[low, 0] >> shift == probes[i] >> shift:
            found[i] += codes[low, 0] < probes[i]
            low += 1
