"""GroupedCells: cells of rows that come in groups, each with its number of rows. SENSITIVE.

An engine that groups equal rows hands over one row of each group, in any order and in batches. Different rows may lie
in one cell, within a batch and across batches: their numbers are added up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.counting.counts import CellCounts
from spinney.counting.merging import Counts, counts_type, merge_counted
from spinney.schema.lattice import Lattice
from spinney.schema.zorder import Codes


class GroupedCells:
    """Counts of all groups so far.

    Args:
        lattice: what the rows are counted on.
        n_rows: how many rows there will be, at most.
    """

    def __init__(self, lattice: Lattice, *, n_rows: int) -> None:
        self._lattice = lattice
        self._counts_type = counts_type(n_rows)
        self._codes: Codes = np.empty((0, lattice.n_words), dtype=np.uint64)
        self._counts: Counts = np.empty(0, dtype=self._counts_type)
        self.true_total = 0

    def __repr__(self) -> str:
        return "GroupedCells(sensitive)"

    def add(self, codes: Codes, true_counts: NDArray[np.int64]) -> None:
        """Count groups whose rows have these codes (n, n_words) and numbers (n,)."""
        self.true_total += int(true_counts.sum())
        if not len(codes):
            return
        order = np.lexsort(codes.T[::-1])
        ordered = codes[order]
        is_first = np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))
        sums: NDArray[Any] = np.add.reduceat(true_counts[order], np.flatnonzero(is_first))
        fresh = np.ascontiguousarray(ordered[is_first])
        self._codes, self._counts = merge_counted(
            self._codes, self._counts, fresh, sums.astype(self._counts_type, copy=False)
        )

    def merged(self) -> CellCounts:
        """All counts together."""
        return CellCounts(self._lattice, self._codes, self._counts)
