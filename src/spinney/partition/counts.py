"""CellCounts: how many rows lie in each occupied lattice cell. SENSITIVE.

This is the one form in which rows reach a mechanism, and the last one that is private. It shows nothing of
itself, cannot be pickled or copied into a file, and is read only by functions that have charged a ledger.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from spinney.partition.zorder import Codes, count_runs, merge_counted, sort_codes
from spinney.schema.lattice import Lattice


class CellCounts:
    """Sorted, distinct codes (n_cells, n_words) with true counts (n_cells,) on a lattice."""

    __slots__ = ("lattice", "true_codes", "true_counts")

    def __init__(self, lattice: Lattice, true_codes: Codes, true_counts: NDArray[np.int64]) -> None:
        self.lattice = lattice
        self.true_codes = true_codes
        self.true_counts = true_counts

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
