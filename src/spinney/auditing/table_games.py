"""Games on the tables of a forest: counts of cells, of columns with their spikes, and of boxes of cliques."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.auditing.claims import PureClaim, curve_of
from spinney.auditing.game import Coins, Floats, Game, Seen
from spinney.auditing.prepaid_plans import opened, plan_of, rows_of
from spinney.columns import Integer
from spinney.counting.counts import CellCounts
from spinney.errors import BudgetError
from spinney.forest import cliques, columns
from spinney.forest.plan import class_sizes_plan
from spinney.privacy.budget import Unit
from spinney.privacy.parts import GaussianTables, TreeShapes
from spinney.schema.column_axis import column_axis
from spinney.tree.calibration import decay_for

_MANY = 200


class TableGame(Game):
    """A row in one of a table's cells, or not; under replace-one, in one of two. The noisy counts are seen."""

    family = "tables"
    path = "forest.prepaid: PrepaidMechanisms.noisy_counts"

    def __init__(self, part: GaussianTables, unit: Unit, *, packed: bool = True) -> None:
        assert part.stage is not None
        self.unit, self._part, self._stage, self.is_packed = unit, part, part.stage, packed
        one = replace(part, times=1)
        self.claim = curve_of([one], unit)
        self.title = f"{part.stage} table" + ("" if packed else ", a call a coin, asked for twice")
        self._plan = plan_of([one], unit)
        self._n_cells = 2 if unit.n_is_public else 1

    @property
    def batch(self) -> int:
        return 16_384 if self.is_packed else 256

    def play(self, coins: Coins) -> Seen:
        n = self._n_cells
        true_counts = np.full((len(coins), n), _MANY, dtype=np.int64)
        true_counts[:, -1] += coins
        if n == 2:
            true_counts[:, 0] += ~coins
        if self.is_packed:
            noisy = opened(self._plan).noisy_counts(true_counts.ravel(), self._stage).reshape(true_counts.shape)
        else:
            noisy = np.stack([self._twice(table) for table in true_counts])
        seen = noisy.astype(np.float64) - _MANY
        return Seen(seen, seen[:, -1] - (seen[:, 0] if n == 2 else 0.0))

    def _twice(self, table: NDArray[np.int64]) -> NDArray[Any]:
        """The table, or the mean of two if somebody hands it out twice for the price of once."""
        prepaid = opened(self._plan)
        once = prepaid.noisy_counts(table, self._stage)
        try:
            return np.asarray((once + prepaid.noisy_counts(table, self._stage)) / 2)
        except BudgetError:
            return once


class PureTableGame(Game):
    """The same with discrete Laplace noise: sizes of a target's classes, and all tables of a forest without a delta."""

    family = "tables"
    path = "forest.prepaid: PrepaidMechanisms.noisy_counts"
    title = "sizes of classes, pure"
    is_packed = True

    def __init__(self, unit: Unit, epsilon: Fraction) -> None:
        self.unit, self.claim = unit, PureClaim(float(epsilon))
        self._plan = class_sizes_plan("y", epsilon=epsilon, unit=unit)
        self._n_cells = 2 if unit.n_is_public else 1

    @property
    def batch(self) -> int:
        return 16_384

    def play(self, coins: Coins) -> Seen:
        true_counts = np.full((len(coins), self._n_cells), _MANY, dtype=np.int64)
        true_counts[:, -1] += coins
        if self._n_cells == 2:
            true_counts[:, 0] += ~coins
        noisy = opened(self._plan).noisy_counts(true_counts.ravel(), "classes").reshape(true_counts.shape)
        seen = noisy.astype(np.float64) - _MANY
        rate = float(self._plan.tables["classes"].rate or 0)
        shown = rate * (np.abs(seen) - np.abs(seen - 1))
        return Seen(seen, shown[:, -1] - (shown[:, 0] if self._n_cells == 2 else 0.0))


class ColumnGame(Game):
    """A row at a round number of a column whose tree is cut all the way: its leaf and its spike are counted.

    One call of `release_column` takes many coins, each with eight cells of its own. The counts around the row are seen,
    and the law is learned, so that a row which is counted where it should not be shows as well.
    """

    family = "columns"
    path = "forest.columns: release_column"
    is_packed = True

    def __init__(self, parts: Sequence[GaussianTables], unit: Unit) -> None:
        self.unit = unit
        once = [replace(part, times=1) for part in parts]
        self.claim = curve_of(once, unit)
        self.title = "leaves and spikes of a column"
        self._column = column_axis("v", Integer(0, 255))
        assert self._column.ruler is not None
        levels = self._column.ruler.max_levels
        tree = TreeShapes(Fraction(1), decay_for(Fraction(1)), levels, 1, note="audit", stage="trees")
        self._plan = plan_of([*once, tree], unit)
        self._lows = np.arange(1, 248, 8)

    @property
    def batch(self) -> int:
        return len(self._lows)

    def play(self, coins: Coins) -> Seen:
        lows = self._lows[: len(coins)]
        cells = np.stack([lows, lows + 4], axis=1).ravel()
        rows = np.full((len(coins), 2), 3, dtype=np.int64)
        rows[:, 1] += coins
        if self.unit.n_is_public:
            rows[:, 0] += ~coins
        codes = cells.astype(np.uint64)[:, None] << np.uint64(64 - self._column.axis.bits)
        counts = CellCounts(self._column.lattice, codes, rows.ravel())
        noisy = columns.release_column(counts, opened(self._plan), ruler=self._column.ruler, cutoff=-(10**6))
        assert noisy.noisy_spikes is not None
        near = lows[:, None] + np.array([-1, 0, 1, 3, 4, 5])
        twice = len(noisy.noisy_spikes) // len(noisy.noisy_counts)  # more of them if somebody counts both ends
        spikes = [noisy.noisy_spikes[twice * near + end] for end in range(twice)]
        return Seen(np.hstack([noisy.noisy_counts[near], *spikes]).astype(np.float64))


class CliqueGame(Game):
    """A row in one cell of a clique's table, or not; every box of the table is seen, and the law is learned."""

    family = "tables"
    path = "forest.cliques: measure"
    title = "boxes of a clique"

    def __init__(self, part: GaussianTables, unit: Unit) -> None:
        self.unit = unit
        one = replace(part, times=1)
        assert part.stage is not None
        self.claim, self._plan, self._stage = curve_of([one], unit), plan_of([one], unit), part.stage
        self._expected = np.full((2, 2), 10.0)
        rows = [(0, 0), (1, 1), (0, 1)]
        without = [(0, 0)] if unit.n_is_public else []
        self._tables = [rows_of([*rows, *end], (2, 2)) for end in (without, [(1, 1)])]

    def play(self, coins: Coins) -> Seen:
        return Seen(np.stack([self._once(bool(coin)) for coin in coins]))

    def _once(self, coin: bool) -> Floats:
        found = cliques.measure(
            self._tables[coin], (0, 1), self._expected, opened(self._plan), stage=self._stage, least=0.0
        )
        assert found.counted is not None
        return found.counted.noisy.astype(np.float64)
