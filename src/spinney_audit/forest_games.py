"""Games on the parts of forests, and on what any synthesizer buys by itself. Tables are made up.

Each game calls the mechanism that a release calls, with a plan of that part alone, on two neighbouring tables
whose rows are placed where one row shows most. Where the plan gives the law of the output, the log-likelihood
ratio is known; otherwise it is learned (`game.py`). Proofs of what is played: `forest/prepaid.proof.md`,
`privacy/noise/*.proof.md`.

    choice games    the exponential mechanism, alone and for the columns to measure
    product games   the all-pairs vector, from rows to noisy sums
    small games     bounds, lists of values, numbers of rows, bought answers, figures of utility
    table games     counts of cells, of columns with their spikes, and of boxes of cliques
    vector games    vectors of sums, of which one row moves a few
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.columns import Category, Integer, Real
from spinney.counting.counter import ValueCounts
from spinney.counting.counts import CellCounts
from spinney.counting.states import GAP_STEPS
from spinney.errors import BudgetError
from spinney.forest import cliques, columns, design
from spinney.forest import sums as products
from spinney.forest.design import EFFORTS
from spinney.forest.plan import class_sizes_plan
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.forest.release.columns import ColumnModel
from spinney.forest.release.fit import signs
from spinney.graph.junction import JunctionTree
from spinney.graph.model import GraphModel
from spinney.grid.axes import column_axis
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import SystemEntropy
from spinney.privacy.ledger import Ledger
from spinney.privacy.mechanisms import GaussianTables, GaussianVector, Selection, TreeShapes
from spinney.privacy.noise.choices import keep_law
from spinney.release.utility import NAMES, figure_reach
from spinney.tree import bought
from spinney.tree.bins import decay_for
from spinney.tree.bought import PaidFigures
from spinney_audit.game import Coins, DeltaClaim, Floats, Game, PureClaim, Seen, curve_of, opened, plan_of, rows_of

# --------------------------------------------------------------------------------------------------------- choice games
# Games on choices by the exponential mechanism: of one candidate of two, and of the columns to look at together.


Row = tuple[int, ...]

_PLENTY = 10**9


def _choice(epsilon: Fraction) -> Selection:
    return Selection(epsilon, "audit", stage="selection", times=1)


class ChoiceGame(Game):
    """Two candidates: the score of the one that is seldom chosen grows as far as it can, and the other's falls."""

    family = "selections"
    path = "forest.prepaid: PrepaidMechanisms.choice"
    title = "an unlikely candidate"

    def __init__(self, epsilon: Fraction, unit: Unit) -> None:
        self.unit, self.claim, self._epsilon = unit, PureClaim(float(epsilon)), epsilon
        self._plan = replace(plan_of([], unit), noise={"selection": _choice(epsilon)})
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
    path = "forest.design: choose_tree"
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
        self._plan = replace(plan_of([], unit), noise={"selection": _choice(epsilon)})
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
        first, second = design.choose_tree(self._tables[coin], range(3), self._shares, prepaid)[0]
        return first + second  # 1, 2 or 3


# -------------------------------------------------------------------------------------------------------- product games
# Games on the all-pairs vector, from rows to noisy sums: a row whose products differ as much as can be.


# Columns of so many states; the first two are counted together, so their pairs with the third are summed.
_SIZES = (8, 8, 8)
_COUNTED = [(0, 1)]
# Sums that are looked at one by one, beside all of them along the direction in which the row moves them.
_FEW = 12


class ProductsGame(Game):
    """Three columns: a row, or none; under replace-one, a row or the one whose products differ most from its own.

    One call of `release_products` a coin. The sums and the groups that they are of are seen, and the law is learned.
    """

    family = "vectors"
    path = "forest.sums: release_products"

    def __init__(
        self,
        part: GaussianVector,
        unit: Unit,
        *,
        sizes: tuple[int, ...] = _SIZES,
        total: float = 1e9,
        other: tuple[int, ...] | None = None,
    ) -> None:
        self.unit, self.claim, self._sizes, self._total = unit, curve_of([part], unit), sizes, total
        # The counted tables have a part of their own, of which nothing is drawn here.
        tables = GaussianTables(Fraction(1), 1, note="audit", stage="cliques")
        self._plan = plan_of([part, tables], unit)
        self.title = f"products of {len(sizes)} columns"
        tree = JunctionTree.covering(list(sizes), _COUNTED)
        potentials = tuple(np.zeros([sizes[column] for column in clique]) for clique in tree.cliques)
        self._model = GraphModel(tree, potentials)
        self._columns = [
            ColumnModel(
                np.arange(float(size)),
                np.ones(size),
                np.zeros(size, dtype=np.bool_),
                np.ones(size),
                np.arange(size, dtype=np.int32),
                size,
            )
            for size in sizes
        ]
        self._effort = replace(EFFORTS["fast"], most_sums=10_000, n_drawn=20, steps=1)
        self._rng = np.random.default_rng(0)  # draws rows from a public model
        others = [tuple(0 for _ in sizes), tuple(size - 1 for size in sizes)]
        every = list(product(*map(range, sizes)))
        sums = np.array([self._sums_of(row) for row in every])
        far = int(((sums - sums[0]) ** 2).sum(axis=1).argmax()) if other is None else every.index(other)
        self._moved = sums[far] - sums[0] if unit.n_is_public else sums[0]
        rows = [[*others, every[0]], [*others, every[far]]] if unit.n_is_public else [others, [*others, every[0]]]
        self._tables = [rows_of(some, sizes) for some in rows]

    @property
    def batch(self) -> int:
        return 32

    def play(self, coins: Coins) -> Seen:
        seen = np.stack([self._once(int(coin)) for coin in coins])
        return Seen(seen, seen[:, 0])

    def _sums_of(self, row: tuple[int, ...]) -> Floats:
        """What a row adds to all sums, where every state is a group of its own."""
        held = products.counted_pairs(_COUNTED)
        pairs = [pair for pair in combinations(range(len(row)), 2) if pair not in held]
        functions = [signs(size)[:, state] for size, state in zip(self._sizes, row, strict=True)]
        return np.concatenate([np.outer(functions[i], functions[j]).ravel() for i, j in pairs]).astype(np.float64)

    def _once(self, coin: int) -> Floats:
        released = products.release_products(
            self._tables[coin],
            self._columns,
            [True] * len(self._sizes),
            self._model,
            _COUNTED,
            opened(self._plan),
            total=self._total,
            effort=self._effort,
            rng=self._rng,
        )
        assert released is not None
        sums = np.concatenate([table.ravel() for table in released.sums]).astype(np.float64)
        groups = float(crc32(b"".join(group.tobytes() for group in released.tilt.groups)))
        # More sums than there should be are those of the last pair once more.
        moved = np.concatenate([self._moved, self._moved[len(self._moved) - max(len(sums) - len(self._moved), 0) :]])
        along = sums @ moved if len(sums) == len(moved) else sums.sum()
        return np.array([along, groups, *sums[:_FEW]])


# ---------------------------------------------------------------------------------------------------------- small games
# Games on what is paid for by itself: bounds, lists of values, the number of rows, single answers, utility figures.


_MANY_ROWS = 500
_STEPS = 100  # in which a mean's column is counted, from its middle to an end


class BoundsGame(Game):
    """As many rows at an outer magnitude as it takes to be found half the time, or one more. The bounds are seen."""

    family = "private bounds"
    path = "tree.bought: release_bounds"
    title = "an outermost magnitude that just passes, or just not"

    def __init__(self, unit: Unit, epsilon: Fraction) -> None:
        self.unit, self.claim, self._epsilon = unit, PureClaim(float(epsilon)), epsilon
        self._column = Real(bounds="private")
        self._lattice = bought.ladder_lattice("x", self._column)
        self._axis = self._lattice.axes[0]
        self._threshold = bought.ladder_threshold(self._lattice, epsilon, unit)

    def play(self, coins: Coins) -> Seen:
        return Seen(np.array([self._once(int(coin)) for coin in coins]))

    def _once(self, coin: int) -> tuple[float, float]:
        axis, threshold = self._axis, self._threshold
        middle = (axis.first + axis.last) // 2
        # Under replace-one a row is at the lowest magnitude or at the highest.
        low = threshold - coin if self.unit.n_is_public else 0
        cells = np.array([middle - 9, middle, middle + 9], dtype=np.uint64)
        true_counts = np.array([low, 10 * threshold, threshold - 1 + coin], dtype=np.int64)
        kept = true_counts > 0
        codes = cells[kept, None] << np.uint64(64 - axis.bits)
        counts = CellCounts(self._lattice, codes, true_counts[kept])
        try:
            found = bought.release_bounds(
                counts, self._column, epsilon=self._epsilon, ledger=Ledger(unit=self.unit), entropy=SystemEntropy()
            )
        except BudgetError:  # nothing stood out
            return 0.0, 0.0
        return float(found[0]), float(found[1])  # type: ignore[arg-type]


class ValuesGame(Game):
    """A value with as many rows as leave it in doubt, or one more; under replace-one another value loses that row."""

    family = "private lists"
    path = "forest.columns: release_values"
    is_packed = True

    def __init__(self, unit: Unit, epsilon: Fraction, delta: Fraction) -> None:
        self.unit, self.claim = unit, DeltaClaim(float(epsilon), float(delta))
        self._epsilon, self._delta = epsilon, delta
        self._law = keep_law(epsilon, delta, unit)
        self._rows = self._law.rows_for(Fraction(1, 4))
        self._first = self._law.rows_for(Fraction(7, 10)) if unit.n_is_public else self._rows
        self.title = f"a value of {self._rows} rows, or one more"
        self._n_values = 2 if unit.n_is_public else 1

    @property
    def batch(self) -> int:
        return 8192

    def play(self, coins: Coins) -> Seen:
        if self.unit.n_is_public:
            rows = np.empty(2 * len(coins), dtype=np.int64)
            rows[0::2], rows[1::2] = self._first + ~coins, self._rows + coins
        else:
            rows = self._rows + coins.astype(np.int64)
        counts = ValueCounts(pa.array(np.arange(len(rows), dtype=np.int64)), rows)
        kept = columns.release_values(
            counts,
            "code",
            Category(values="private", other=-1),
            epsilon=self._epsilon,
            delta=self._delta,
            ledger=Ledger(unit=self.unit),
            entropy=SystemEntropy(),
        )
        is_kept = np.zeros(len(rows))
        is_kept[np.array(kept, dtype=np.int64)] = 1
        return Seen(is_kept.reshape(len(coins), self._n_values))


class RowCountGame(Game):
    """A table, or the same with one row more. Only a unit that adds or removes has a number of rows to buy."""

    family = "number of rows"
    path = "tree.bought: release_rows"
    title = "a row more, or not"

    def __init__(self, epsilon: Fraction, unit: Unit = Unit.ADD_REMOVE) -> None:
        self.unit, self.claim, self._epsilon = unit, PureClaim(float(epsilon)), epsilon

    def play(self, coins: Coins) -> Seen:
        ledger, entropy = Ledger(unit=self.unit), SystemEntropy()
        noisy = np.array(
            [
                bought.release_rows(_MANY_ROWS + int(coin), epsilon=self._epsilon, ledger=ledger, entropy=entropy).noisy
                for coin in coins
            ],
            dtype=np.float64,
        )
        ratios = float(self._epsilon) * (np.abs(noisy - _MANY_ROWS) - np.abs(noisy - _MANY_ROWS - 1))
        return Seen(noisy[:, None] - _MANY_ROWS, ratios)


class AnswerGame(Game):
    """A bought count, or a bought mean: a row of the largest value, or none; under replace-one, of the smallest."""

    family = "bought answers"
    path = "tree.bought: release_sums"

    def __init__(self, unit: Unit, epsilon: Fraction, *, is_mean: bool) -> None:
        self.unit, self.claim, self._epsilon = unit, PureClaim(float(epsilon)), epsilon
        self.title = "a mean" if is_mean else "a count"
        if is_mean:
            reach = _STEPS * unit.factor
            self._direct = bought.Direct(2, reach, _STEPS, "audit")
            self._moved = np.array([0 if unit.n_is_public else _STEPS, reach])
        else:  # whether a row is replaced or comes, a count moves by 1
            self._direct = bought.Direct(1, 1, 1, "audit")
            self._moved = np.array([1])

    def play(self, coins: Coins) -> Seen:
        ledger, entropy, asked = Ledger(unit=self.unit), SystemEntropy(), self._direct
        tables = [[_MANY_ROWS] * asked.n_sums, [_MANY_ROWS + int(move) for move in self._moved]]
        noisy = np.array(
            [
                bought.release_sums(
                    lambda coin=coin: tables[coin],  # type: ignore[misc]
                    direct=asked,
                    epsilon=self._epsilon,
                    ledger=ledger,
                    entropy=entropy,
                ).noisy
                for coin in coins.astype(np.int64)
            ],
            dtype=np.float64,
        )
        rate, noise = float(asked.rate(self._epsilon)), noisy - _MANY_ROWS
        ratios = rate * (np.abs(noise).max(axis=1) - np.abs(noise - self._moved).max(axis=1))
        return Seen(noise, ratios)


class FiguresGame(Game):
    """Figures of utility of a pure release: a row that moves all of them as far as a row can, or not.

    A release with a delta has them as a vector of its composed charge, which is a game of vectors.
    """

    family = "utility figures"
    path = "tree.bought: PaidFigures.noisy_figures"
    title = "four distances that a row moves as far as it can"

    def __init__(self, unit: Unit, epsilon: Fraction) -> None:
        self.unit, self.claim, self._epsilon = unit, PureClaim(float(epsilon)), epsilon
        self._reach = figure_reach(unit)
        self._moved = np.full(len(NAMES), self._reach, dtype=np.int64)

    def play(self, coins: Coins) -> Seen:
        ledger, entropy = Ledger(unit=self.unit), SystemEntropy()
        noisy = np.stack(
            [
                PaidFigures(self._epsilon, ledger, entropy).noisy_figures(_MANY_ROWS * self._moved + coin * self._moved)
                for coin in coins.astype(np.int64)
            ]
        )
        noise = (noisy - _MANY_ROWS * self._moved).astype(np.float64)
        rate = float(self._epsilon) / self._reach
        ratios = rate * (np.abs(noise).max(axis=1) - np.abs(noise - self._moved).max(axis=1))
        return Seen(noise / self._reach, ratios)


# ---------------------------------------------------------------------------------------------------------- table games
# Games on the tables of a forest: counts of cells, of columns with their spikes, and of boxes of cliques.


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
        rate = float(self._plan.noise_law("classes").scale)
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


# --------------------------------------------------------------------------------------------------------- vector games
# A game on vectors of sums, as the all-pairs vector and named regressions release them.


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
