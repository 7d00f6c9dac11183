"""Games on what is paid for by itself: bounds, lists of values, the number of rows, single answers, utility figures."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa

from spinney.auditing.claims import DeltaClaim, PureClaim
from spinney.auditing.game import Coins, Game, Seen
from spinney.columns import Category, Real
from spinney.counting.counts import CellCounts
from spinney.counting.values import ValueCounts
from spinney.errors import BudgetError
from spinney.forest import found_values
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import SystemEntropy
from spinney.privacy.ledger import Ledger
from spinney.privacy.noise.partitions import keep_law
from spinney.release.utility import NAMES, figure_reach
from spinney.tree import bounds, direct, row_count
from spinney.tree.utility import PaidFigures

_MANY = 500
_STEPS = 100  # in which a mean's column is counted, from its middle to an end


class BoundsGame(Game):
    """As many rows at an outer magnitude as it takes to be found half the time, or one more. The bounds are seen."""

    family = "private bounds"
    path = "tree.bounds: release_bounds"
    title = "an outermost magnitude that just passes, or just not"

    def __init__(self, unit: Unit, epsilon: Fraction) -> None:
        self.unit, self.claim, self._epsilon = unit, PureClaim(float(epsilon)), epsilon
        self._column = Real(bounds="private")
        self._lattice = bounds.ladder_lattice("x", self._column)
        self._axis = self._lattice.axes[0]
        self._threshold = bounds.ladder_threshold(self._lattice, epsilon, unit)

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
            found = bounds.release_bounds(
                counts, self._column, epsilon=self._epsilon, ledger=Ledger(unit=self.unit), entropy=SystemEntropy()
            )
        except BudgetError:  # nothing stood out
            return 0.0, 0.0
        return float(found[0]), float(found[1])  # type: ignore[arg-type]


class ValuesGame(Game):
    """A value with as many rows as leave it in doubt, or one more; under replace-one another value loses that row."""

    family = "private lists"
    path = "forest.found_values: release_values"
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
        kept = found_values.release_values(
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
    path = "tree.row_count: release_rows"
    title = "a row more, or not"

    def __init__(self, epsilon: Fraction, unit: Unit = Unit.ADD_REMOVE) -> None:
        self.unit, self.claim, self._epsilon = unit, PureClaim(float(epsilon)), epsilon

    def play(self, coins: Coins) -> Seen:
        ledger, entropy = Ledger(unit=self.unit), SystemEntropy()
        noisy = np.array(
            [
                row_count.release_rows(_MANY + int(coin), epsilon=self._epsilon, ledger=ledger, entropy=entropy).noisy
                for coin in coins
            ],
            dtype=np.float64,
        )
        ratios = float(self._epsilon) * (np.abs(noisy - _MANY) - np.abs(noisy - _MANY - 1))
        return Seen(noisy[:, None] - _MANY, ratios)


class AnswerGame(Game):
    """A bought count, or a bought mean: a row of the largest value, or none; under replace-one, of the smallest."""

    family = "bought answers"
    path = "tree.direct: release_sums"

    def __init__(self, unit: Unit, epsilon: Fraction, *, is_mean: bool) -> None:
        self.unit, self.claim, self._epsilon = unit, PureClaim(float(epsilon)), epsilon
        self.title = "a mean" if is_mean else "a count"
        if is_mean:
            reach = _STEPS * unit.factor
            self._direct = direct.Direct(2, reach, _STEPS, "audit")
            self._moved = np.array([0 if unit.n_is_public else _STEPS, reach])
        else:  # whether a row is replaced or comes, a count moves by 1
            self._direct = direct.Direct(1, 1, 1, "audit")
            self._moved = np.array([1])

    def play(self, coins: Coins) -> Seen:
        ledger, entropy, asked = Ledger(unit=self.unit), SystemEntropy(), self._direct
        tables = [[_MANY] * asked.n_sums, [_MANY + int(move) for move in self._moved]]
        noisy = np.array(
            [
                direct.release_sums(
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
        rate, noise = float(asked.rate(self._epsilon)), noisy - _MANY
        ratios = rate * (np.abs(noise).max(axis=1) - np.abs(noise - self._moved).max(axis=1))
        return Seen(noise, ratios)


class FiguresGame(Game):
    """Figures of utility of a pure release: a row that moves all of them as far as a row can, or not.

    A release with a delta has them as a vector of its composed charge, which is a game of vectors.
    """

    family = "utility figures"
    path = "tree.utility: PaidFigures.noisy_figures"
    title = "four distances that a row moves as far as it can"

    def __init__(self, unit: Unit, epsilon: Fraction) -> None:
        self.unit, self.claim, self._epsilon = unit, PureClaim(float(epsilon)), epsilon
        self._reach = figure_reach(unit)
        self._moved = np.full(len(NAMES), self._reach, dtype=np.int64)

    def play(self, coins: Coins) -> Seen:
        ledger, entropy = Ledger(unit=self.unit), SystemEntropy()
        noisy = np.stack(
            [
                PaidFigures(self._epsilon, ledger, entropy).noisy_figures(_MANY * self._moved + coin * self._moved)
                for coin in coins.astype(np.int64)
            ]
        )
        noise = (noisy - _MANY * self._moved).astype(np.float64)
        rate = float(self._epsilon) / self._reach
        ratios = rate * (np.abs(noise).max(axis=1) - np.abs(noise - self._moved).max(axis=1))
        return Seen(noise / self._reach, ratios)
