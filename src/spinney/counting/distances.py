"""How far the tables of a release are from those of all rows, set by set: the mean and the largest. SENSITIVE.

Distances are sums of absolute differences of counts, in steps of 1 / GAP_STEPS of a row
(`state_tables.true_distances`). What a release expects is public when this is called. One row more or less moves each
distance by GAP_STEPS at most, so the mean, rounded down, and the largest of them too; another row in its place by twice
that (`tree/utility.proof.md`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.counting.joint import Clique
from spinney.counting.state_tables import StateTables, true_distances


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedTables:
    """Tables of some columns as a release has them, in rows. Public."""

    cliques: tuple[Clique, ...]
    tables: tuple[NDArray[np.float64], ...]

    @property
    def most_cells(self) -> int:
        """How many cells the largest of them has."""
        return max(table.size for table in self.tables)


def true_figures(rows: StateTables, expected: Sequence[ExpectedTables]) -> NDArray[np.int64]:
    """The mean, rounded down, and the largest distance of each set of tables, (2 n_sets,). SENSITIVE."""
    figures: list[int] = []
    for some in expected:
        distances = true_distances(rows, some.cliques, some.tables).tolist()
        figures += [sum(distances) // len(distances), max(distances)]
    return np.array(figures, dtype=np.int64)
