"""CellCounts: how many rows lie in each occupied lattice cell. SENSITIVE.

This is the one form in which rows reach a mechanism, and the last one that is private. It shows nothing of
itself, cannot be pickled or copied into a file, and is read only by functions that have charged a ledger.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from spinney.partition.sorting import Counts, block_sums, count_runs, merge_counted, rows_before, sort_codes
from spinney.partition.zorder import Codes
from spinney.schema.lattice import Lattice


class CellCounts:
    """Sorted, distinct codes (n_cells, n_words) with true counts (n_cells,) on a lattice.

    They take 8 bytes a word and 4 a count, or 8 where a count may pass 2^31. Sums over ranges of cells come from sums
    over blocks, which take next to nothing, so that tables of a hundred million cells fit.
    """

    __slots__ = ("_before", "lattice", "true_codes", "true_counts")

    def __init__(self, lattice: Lattice, true_codes: Codes, true_counts: Counts) -> None:
        self.lattice = lattice
        self.true_codes = true_codes
        self.true_counts = true_counts
        self._before: NDArray[np.int64] | None = None

    def rows_between(self, start: NDArray[np.int64], stop: NDArray[np.int64]) -> NDArray[np.int64]:
        """True numbers of rows in ranges of cells, given by positions in the sorted codes."""
        if self._before is None:
            self._before = block_sums(self.true_counts)
        return rows_before(self.true_counts, self._before, stop) - rows_before(self.true_counts, self._before, start)

    @classmethod
    def from_codes(cls, lattice: Lattice, codes: Codes) -> CellCounts:
        """Count rows given by their codes, in any order; may reuse the memory of `codes`."""
        return cls(lattice, *count_runs(sort_codes(codes)))

    def merge(self, other: CellCounts) -> CellCounts:
        """The counts of two tables laid end to end."""
        return CellCounts(
            self.lattice, *merge_counted(self.true_codes, self.true_counts, other.true_codes, other.true_counts)
        )

    def __repr__(self) -> str:
        return "CellCounts(sensitive)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("CellCounts holds private counts and is never pickled")
