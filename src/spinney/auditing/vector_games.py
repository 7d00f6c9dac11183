"""A game on vectors of sums, as the all-pairs vector and named regressions release them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.auditing.claims import curve_of
from spinney.auditing.game import Coins, Game, Seen
from spinney.auditing.prepaid_plans import opened, plan_of
from spinney.errors import BudgetError
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.privacy.budget import Unit
from spinney.privacy.parts import GaussianVector


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
