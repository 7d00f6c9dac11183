"""Games on choices by the exponential mechanism: of one candidate of two, and of the columns to look at together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from spinney.auditing.claims import PureClaim
from spinney.auditing.game import Coins, Game, Seen
from spinney.auditing.prepaid_plans import opened, plan_of, rows_of
from spinney.counting.state_tables import GAP_STEPS
from spinney.forest import structure
from spinney.forest.plan import Choices
from spinney.privacy.budget import Unit

Row = tuple[int, ...]

_PLENTY = 10**9


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
