"""Games on the parts of a forest: tables, spikes, column trees, choices, vectors of sums, boxes of cliques.

Whatever a forest draws comes from `PrepaidMechanisms`, so that is what games call, with plans of a single part; those
on columns, cliques, structure and products call what makes its questions as well, on small tables of made-up rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.auditing.claims import PureClaim, curve_of
from spinney.auditing.game import Coins, Floats, Game, Seen
from spinney.auditing.tree_games import tail
from spinney.columns import Integer
from spinney.counting.counts import CellCounts
from spinney.counting.state_tables import GAP_STEPS
from spinney.counting.states import StateRows
from spinney.errors import BudgetError
from spinney.forest import cliques, columns, structure
from spinney.forest.plan import Choices, ForestPlan, TreeNoise, class_sizes_plan, nothing, plan_of_parts
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import SystemEntropy
from spinney.privacy.ledger import Ledger
from spinney.privacy.parts import GaussianTables, GaussianVector, Part, TreeShapes
from spinney.schema.column_axis import column_axis
from spinney.tree.calibration import decay_for, worst_path_loss

Row = tuple[int, ...]

_MANY = 200
_PLENTY = 10**9


def opened(plan: ForestPlan, times: int | None = None) -> PrepaidMechanisms:
    """The mechanisms of a plan, on an account of their own; each of its stages as often as `times` says."""
    if times is not None:
        plan = replace(
            plan,
            tables={stage: replace(noise, times=times) for stage, noise in plan.tables.items()},
            weighted={stage: replace(noise, times=times) for stage, noise in plan.weighted.items()},
            trees=None if plan.trees is None else replace(plan.trees, times=times),
            choices=None if plan.choices is None else replace(plan.choices, times=times),
            charges=(),
        )
    return PrepaidMechanisms(plan, Ledger(unit=plan.unit), SystemEntropy())


def plan_of(parts: Sequence[Part], unit: Unit) -> ForestPlan:
    """A plan of these parts and nothing else. It charges nothing: the account of an audit is nobody's."""
    if not parts:
        return nothing(Fraction(1), Fraction(1, 2), unit)
    plan = plan_of_parts(parts, epsilon=Fraction(1), delta=Fraction(1, 2), unit=unit, note="audit")
    return replace(plan, charges=())


# ------------------------------------------------------------------------------------------------------------ tables


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


def rows_of(rows: Sequence[Sequence[int]], sizes: Sequence[int]) -> StateRows:
    """Rows of states, as engines hold them."""
    return StateRows(np.array(rows, dtype=np.uint8).reshape(len(rows), len(sizes)).T.copy(), tuple(sizes))


# ------------------------------------------------------------------------------------------------------- column trees


@lru_cache(maxsize=2)
def _parted(n_roots: int, width: int) -> tuple[Any, NDArray[np.int64], list[list[int]]]:
    """A column cut into ranges from the beginning, and for each range where those that hold its first cell end."""
    column = column_axis("v", Integer(0, n_roots * width - 1))
    assert column.ruler is not None
    roots = np.arange(n_roots, dtype=np.int64) * width
    ends = np.append(roots[1:], column.ruler.n_cells)
    stops: list[list[int]] = [[int(end)] for end in ends]
    for root, path in zip(roots, stops, strict=True):
        while path[-1] - root > 1:
            path.append(int(column.ruler.cuts(np.array([root]), np.array([path[-1]]))[0]))
    return column, roots, stops


class ColumnTreeGame(Game):
    """How deep a column's tree goes at the rows: down to the cutoff, a decay a level. Many ranges, each with a coin."""

    family = "column trees"
    path = "forest.prepaid: PrepaidMechanisms.ranges"
    is_packed = True

    def __init__(self, noise: TreeNoise | TreeShapes, unit: Unit, *, n_levels: int = 5) -> None:
        self.unit, self._n_levels = unit, n_levels
        self._column, self._roots, self._stops = _parted(1024, 64)
        ruler = self._column.ruler
        levels = max(noise.levels, ruler.max_levels)
        self.claim = PureClaim(float(worst_path_loss(noise.rate, noise.decay, levels, unit)))
        tree = TreeNoise(noise.rate, noise.decay, levels, 1)
        self._plan = replace(plan_of([], unit), trees=tree)
        self.title = f"{n_levels} levels down to the cutoff"
        self._cutoff = _MANY
        self._rows = self._cutoff + max(n_levels - 2, 0) * noise.decay
        self._is_pair = unit.n_is_public

    @property
    def batch(self) -> int:
        return len(self._roots) // (2 if self._is_pair else 1)

    def play(self, coins: Coins) -> Seen:
        n = len(self._roots)
        rows = np.full(n, self._rows, dtype=np.int64)
        if self._is_pair:
            rows[0::2] = self._cutoff
            rows[0 : 2 * len(coins) : 2] += ~coins
            rows[1 : 2 * len(coins) : 2] += coins
        else:
            rows[: len(coins)] += coins
        codes = self._roots.astype(np.uint64)[:, None] << np.uint64(64 - self._column.axis.bits)
        counts = CellCounts(self._column.lattice, codes, rows)
        found = opened(self._plan).ranges(counts, self._column.ruler, cutoff=self._cutoff, roots=self._roots)
        ends = found.stop[np.searchsorted(found.first, self._roots)]
        depths = np.array([path.index(int(end)) for path, end in zip(self._stops, ends, strict=True)])
        ratios = self._ratios(depths)
        if self._is_pair:
            used = slice(0, 2 * len(coins))
            depths, ratios = depths[used], ratios[used]
            return Seen(np.column_stack([depths[1::2], depths[0::2]]).astype(np.float64), ratios[1::2] - ratios[0::2])
        return Seen(depths[: len(coins), None].astype(np.float64), ratios[: len(coins)])

    def _ratios(self, depths: NDArray[np.int64]) -> Floats:
        ratios = np.empty(len(depths))
        lengths = np.array([len(path) - 1 for path in self._stops])
        for place, length in ((place, length) for place in range(2) for length in np.unique(lengths)):
            starts = self._cutoff if self._is_pair and place == 0 else self._rows
            table = _path_ratios(starts, int(length), self._plan.trees, self._cutoff)
            here = (np.arange(len(depths)) % 2 == place) & (lengths == length)
            ratios[here] = table[depths[here]]
        return ratios


@lru_cache(maxsize=64)
def _path_ratios(rows: int, n_levels: int, noise: TreeNoise, cutoff: int) -> Floats:
    """By depth, ln of the chance that a path ends there with one row more, over that without."""
    logs, rate = np.zeros((2, n_levels + 1)), float(noise.rate)
    for more in range(2):
        before = 0.0
        for level in range(n_levels):
            score = max(rows + more - level * noise.decay, cutoff - noise.decay)
            logs[more, level] = before + math.log(float(tail(rate, score - cutoff)))
            before += math.log(float(tail(rate, cutoff - score + 1)))
        logs[more, -1] = before
    return np.asarray(logs[1] - logs[0])


# ------------------------------------------------------------------------------------------------------------ choices


class ChoiceGame(Game):
    """Two candidates: the score of the one that is seldom chosen grows as far as it can, and the other's falls."""

    family = "selections"
    path = "forest.prepaid: PrepaidMechanisms.choice"
    title = "an unlikely candidate"

    def __init__(self, epsilon: Fraction, unit: Unit) -> None:
        self.unit, self.claim, self._epsilon = unit, PureClaim(float(epsilon)), epsilon
        self._plan = replace(plan_of([], unit), choices=Choices(epsilon, 1))
        self._sensitivity = GAP_STEPS * unit.factor
        # The less likely the candidate, the nearer its odds come to epsilon, and the more coins it takes.
        behind = round(2.5 * 2 * self._sensitivity / float(epsilon))
        self._scores = [
            np.array([-behind, 0], dtype=np.int64),
            np.array([self._sensitivity - behind, -self._sensitivity], dtype=np.int64),
        ]

    @property
    def batch(self) -> int:
        return 2048

    def play(self, coins: Coins) -> Seen:
        prepaid = opened(self._plan, _PLENTY)
        places = [prepaid.choice(self._scores[int(coin)], sensitivity=self._sensitivity) for coin in coins]
        return Seen(1.0 - np.array(places, dtype=np.float64)[:, None])


class StructureGame(Game):
    """Which two columns are looked at together first, of three: a row that makes one pair depend less, others more."""

    family = "selections"
    path = "forest.structure: choose_tree"
    title = "the first pair of three columns"

    def __init__(
        self,
        epsilon: Fraction,
        unit: Unit,
        *,
        rows: Sequence[Row] | None = None,
        ends: Sequence[Sequence[Row]] | None = None,
    ) -> None:
        self.unit, self.claim = unit, PureClaim(float(epsilon))
        self._plan = replace(plan_of([], unit), choices=Choices(epsilon, 1))
        # Found by a search: one pair goes from unlikely to likely by one row, and its rivals the other way.
        if unit.n_is_public:
            usual, usual_ends = [*[(0, 0, 1)] * 3, *[(0, 1, 0)] * 4, (1, 0, 1)], [[(1, 1, 0)], [(0, 1, 1)]]
            predicted = (0.3, 0.5, 0.7)
        else:
            usual, usual_ends = [(0, 0, 1)] * 6, [[], [(0, 0, 0)]]
            predicted = (0.5, 0.9, 0.5)
        rows, ends = usual if rows is None else rows, usual_ends if ends is None else ends
        self._shares = [np.array([[share, 1 - share]]) for share in predicted]
        self._shares.append(np.array([len(rows) + 1.0]))
        self._tables = [rows_of([*rows, *end], (2, 2, 2)) for end in ends]

    def play(self, coins: Coins) -> Seen:
        firsts = np.array([self._once(bool(coin)) for coin in coins], dtype=np.float64)
        return Seen(firsts[:, None])

    def _once(self, coin: bool) -> int:
        prepaid = opened(self._plan, 2)
        first, second = structure.choose_tree(self._tables[coin], range(3), self._shares, prepaid)[0]
        return first + second  # 1, 2 or 3


# ------------------------------------------------------------------------------------------------------------ vectors


class VectorGame(Game):
    """A vector of sums, of which a row moves a few as far as was said, up and down.

    Packed, one vector holds the sums of many coins, each of which moves its own; otherwise there is one vector a coin,
    which is asked for twice.
    """

    family = "vectors"
    path = "forest.prepaid: PrepaidMechanisms.noisy_sums"

    def __init__(
        self, part: GaussianVector, unit: Unit, *, n_sums: int = 4, step: int = 64, packed: bool = False
    ) -> None:
        assert part.stage is not None
        self.unit, self.claim, self._stage = unit, curve_of([part], unit), part.stage
        self._plan, self._n_sums, self.is_packed = plan_of([part], unit), n_sums, packed
        # Sums of products between -1 and 1 move by 1 or 2; so far that the variance for rounding matters little.
        self._moved = step * unit.factor * np.where(np.arange(n_sums) % 2, -1, 1)
        self._squared = int((self._moved**2).sum())
        self.title = f"{part.stage}, {n_sums} sums" + ("" if packed else ", a call a coin, asked for twice")

    @property
    def batch(self) -> int:
        return 8192 if self.is_packed else 256

    def play(self, coins: Coins) -> Seen:
        true_sums = coins[:, None] * self._moved
        if self.is_packed:
            noisy = self._noisy(opened(self._plan), true_sums.ravel()).reshape(true_sums.shape)
        else:
            noisy = np.stack([self._twice(some) for some in true_sums])
        seen = noisy.astype(np.float64)
        return Seen(seen, seen @ self._moved)

    def _noisy(self, prepaid: PrepaidMechanisms, true_sums: NDArray[np.int64]) -> NDArray[np.int64]:
        if self._stage == "products":
            return prepaid.noisy_sums(true_sums, self._squared)
        return prepaid.noisy_sums(true_sums, self._squared, self._stage)

    def _twice(self, true_sums: NDArray[np.int64]) -> NDArray[Any]:
        """The sums, or the mean of two if somebody hands them out twice for the price of once."""
        prepaid = opened(self._plan)
        once = self._noisy(prepaid, true_sums)
        try:
            return np.asarray((once + self._noisy(prepaid, true_sums)) / 2)
        except BudgetError:
            return once
