"""Games on persons with many rows: one person comes, goes or is another, with all their rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spinney.auditing.claims import curve_of
from spinney.auditing.game import Coins, Floats, Game, Seen
from spinney.auditing.prepaid_plans import opened, plan_of
from spinney.counting.weighted import WeightedRows
from spinney.people import alike
from spinney.privacy.budget import Unit
from spinney.privacy.parts import UNITS, GaussianVector, WeightedTables

_N_OTHERS = 5


class WeightedGame(Game):
    """A person with several rows, all in one cell of a table of rows, or nobody; under replace-one, in another cell.

    One table takes many coins, each with a person and two cells of its own; or one coin each.
    """

    family = "persons' tables"
    path = "counting.weighted and forest.prepaid: PrepaidMechanisms.noisy_units"

    def __init__(self, part: WeightedTables, unit: Unit, *, n_rows: int = 3, packed: bool = True) -> None:
        assert part.stage is not None
        one = replace(part, times=1)
        self.unit, self.claim, self._stage = unit, curve_of([one], unit), part.stage
        self._plan, self._n_rows, self.is_packed = plan_of([one], unit), n_rows, packed
        self.title = f"{part.stage}, a person with {n_rows} rows" + ("" if packed else ", a call a coin")

    @property
    def batch(self) -> int:
        return 4096 if self.is_packed else 256

    def play(self, coins: Coins) -> Seen:
        parts = [coins] if self.is_packed else np.split(coins, len(coins))
        seen = np.concatenate([self._once(part) for part in parts])
        return Seen(seen, seen[:, 1] - (seen[:, 0] if self.unit.n_is_public else 0.0))

    def _once(self, coins: Coins) -> Floats:
        """The noisy units of two cells for each coin, in persons."""
        is_there = np.ones(len(coins), dtype=np.bool_) if self.unit.n_is_public else coins
        numbers = np.append(np.ones(_N_OTHERS, dtype=np.int64), np.full(int(is_there.sum()), self._n_rows))
        places = (2 * np.arange(len(coins)) + coins)[is_there]
        cells = np.append(np.zeros(_N_OTHERS, dtype=np.int64), np.repeat(places, self._n_rows))
        weighted = WeightedRows(np.append(0, np.cumsum(numbers)), UNITS)
        true_units = weighted.true_table([cells], [2 * len(coins)])
        noisy = opened(self._plan).noisy_units(true_units, self._stage)
        return np.asarray(noisy.reshape(-1, 2) / UNITS)


class AlikenessGame(Game):
    """A person whose two rows agree in every column as much as can be, or nobody; under replace-one, as little.

    Packed, the sums of the two tables are made once, and one vector takes the noise of many coins; otherwise sums are
    made and get their noise coin by coin.
    """

    family = "alikeness"
    path = "people.alike: two_rows, true_alikeness, and PrepaidMechanisms.noisy_sums"

    def __init__(self, part: GaussianVector, unit: Unit, *, n_columns: int = 3, packed: bool = False) -> None:
        assert part.stage is not None
        self.unit, self.claim, self._stage = unit, curve_of([part], unit), part.stage
        self._plan, self._n_columns, self.is_packed = plan_of([part], unit), n_columns, packed
        self.title = f"{n_columns} columns" + ("" if packed else ", a call a coin")
        # Nearly all of a column's law at its two ends, so that a product of places is nearly 1 or -1.
        self._laws = [alike.ColumnLaw(np.array([1e-6, 1 - 2e-6, 1e-6]), is_ordered=True)] * n_columns
        self._sensitivity = alike.sensitivity_squared(n_columns, unit)

    @property
    def batch(self) -> int:
        return 8192 if self.is_packed else 256

    def play(self, coins: Coins) -> Seen:
        if self.is_packed:
            sums = np.stack([self._sums(coin) for coin in (False, True)])
            seen = self._noisy(sums[coins.astype(np.int64)].ravel()).reshape(len(coins), -1)
        else:
            seen = np.stack([self._noisy(self._sums(bool(coin))) for coin in coins])
        return Seen(seen, seen[:, :-1].sum(axis=1) + (0.0 if self.unit.n_is_public else seen[:, -1]))

    def _sums(self, coin: bool) -> NDArray[np.int64]:
        """What is summed over the persons of one of the two tables."""
        rows = [(1, 1)]  # of somebody in the middle
        if coin:
            rows.append((2, 2))
        elif self.unit.n_is_public:
            rows.append((0, 2))
        states = np.tile(np.array(rows).ravel(), (self._n_columns, 1))
        starts = np.arange(0, 2 * len(rows) + 1, 2)
        # Which two of two rows is no secret, so the coins of persons are as good as any here.
        compared = alike.two_rows(states, starts, np.random.default_rng())
        return alike.true_alikeness(compared, self._laws)

    def _noisy(self, true_sums: NDArray[np.int64]) -> Floats:
        return opened(self._plan).noisy_sums(true_sums, self._sensitivity, self._stage) / UNITS
