"""Counts of cells in tests: compared, and held as rows that are in order no further than somebody looks."""

from __future__ import annotations

from unittest import mock

import numpy as np

from spinney.counting import sorting
from spinney.counting.counts import CellCounts
from spinney.grid.codes import Codes
from spinney.grid.lattice import Lattice


def same_cells(one: CellCounts, other: CellCounts) -> bool:
    """Whether both have the same cells with the same numbers of rows."""
    return all(np.array_equal(*pair) for pair in zip(one.distinct(), other.distinct(), strict=True))


def as_rows(lattice: Lattice, codes: Codes) -> CellCounts:
    """Rows as they are held where there are many: codes of one word by their first bits alone."""
    with mock.patch.object(sorting, "_SMALL_SORT", 0):
        return CellCounts.of_rows(lattice, sorting.RadixBuckets.of(codes))


def sort_codes(codes: Codes) -> Codes:
    """Codes in order of all their bits."""
    return sorting.sort_rest(*sorting.RadixBuckets.of(codes).concatenated())
