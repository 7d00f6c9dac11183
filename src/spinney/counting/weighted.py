"""Weighted rows: tables of whole units, to which a person adds no more than a public number. SENSITIVE.

A person with m rows has `units // m` units in each of them. So a table of rows, whatever its cells are, moves by
`units` at most where a person comes or goes, however many rows they have. Sums are of whole numbers and exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from spinney.columns.physical import Physical
from spinney.compiled import compiled
from spinney.counting.states import Cut, StateFinder

Units = NDArray[np.int64]
Lines = Callable[[int], NDArray[Any]]  # the states of all rows in one variable, by its number


class WeightedRows:
    """Units of rows in the order of persons.

    Args:
        starts: where every person's rows begin, and the number of all rows.
        units: how many a person has, at most.
    """

    def __init__(self, starts: NDArray[np.int64], units: int) -> None:
        n_rows = np.diff(starts)
        if len(n_rows) * units >= 1 << 60:
            raise OverflowError("too many persons for exact sums of their units")
        self.true_units = np.repeat(units // np.maximum(n_rows, 1), n_rows)

    def __repr__(self) -> str:
        return "WeightedRows(sensitive)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("WeightedRows holds private rows and is never pickled")

    def true_pieces(self, values: Physical, cut: Cut) -> Units:
        """How many units lie in each state of a public cut of one column."""
        states = np.empty(len(self.true_units), dtype=np.uint32)
        StateFinder(cut, states.dtype).fill([values], states)
        return self.true_table([states], [cut.n_states])

    def true_table(self, lines: Sequence[NDArray[Any]], sizes: Sequence[int]) -> Units:
        """How many units have each combination of states of a few variables, as a vector in C order."""
        cells = np.zeros(len(self.true_units), dtype=np.int64)
        for line, size in zip(lines, sizes, strict=True):
            cells *= size
            cells += line
        sums = np.zeros(int(np.prod(sizes)), dtype=np.int64)
        _add_units(cells, self.true_units, sums)
        return sums


@compiled
def _add_units(cells: NDArray[np.int64], units: NDArray[np.int64], sums: NDArray[np.int64]) -> None:
    for row in range(cells.size):
        sums[cells[row]] += units[row]
