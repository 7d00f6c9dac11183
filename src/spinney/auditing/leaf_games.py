"""Games on leaf moments: a leaf's count and the sums of its rows' offsets, under noise that is even over cubes."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from spinney.auditing.claims import PureClaim
from spinney.auditing.game import Coins, Floats, Game, Seen
from spinney.columns import Category, Integer, Real
from spinney.counting.counts import CellCounts
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import SystemEntropy
from spinney.privacy.ledger import Ledger
from spinney.schema.lattice import Lattice, tree_lattice
from spinney.schema.table import Schema
from spinney.tree import moments
from spinney.tree.plan import SplitPlan

_LEAF_BITS = 12
_CELL_BITS = 6  # of a leaf, three along each axis


def _plan(unit: Unit, depth: int, epsilon: Fraction) -> SplitPlan:
    return SplitPlan(
        "grid", unit, fixed_depth=depth, max_depth=depth, count_epsilon=epsilon, threshold=1, has_moments=True
    )


@lru_cache(maxsize=4)
def _plane() -> Lattice:
    bits = (_LEAF_BITS + _CELL_BITS) // 2
    side = Integer(0, 2**bits - 1, bits=bits)
    return tree_lattice(Schema({"x": side, "y": side}))


class MomentsGame(Game):
    """A row in the corner of a leaf, where its offsets are largest, or none; under replace-one, in one of two leaves.

    One release holds many leaves, each with a coin of its own; leaves without rows have noise like the others.
    """

    family = "leaf moments"
    path = "tree.moments: release_moments"
    is_packed = True

    def __init__(self, unit: Unit, epsilon: Fraction) -> None:
        self.unit, self.claim = unit, PureClaim(float(epsilon))
        self.title = "a row in the corner of a leaf, or none"
        self._plan = _plan(unit, _LEAF_BITS, epsilon)
        self._is_pair = unit.n_is_public

    @property
    def batch(self) -> int:
        return int(2**_LEAF_BITS) // (2 if self._is_pair else 1)

    def play(self, coins: Coins) -> Seen:
        holds = np.zeros(2**_LEAF_BITS, dtype=np.bool_)
        if self._is_pair:
            holds[0 : 2 * len(coins) : 2], holds[1 : 2 * len(coins) : 2] = ~coins, coins
        else:
            holds[: len(coins)] = coins
        leaves = np.flatnonzero(holds).astype(np.uint64)
        corner = np.uint64((2**_CELL_BITS - 1) << (64 - _LEAF_BITS - _CELL_BITS))
        codes = (leaves << np.uint64(64 - _LEAF_BITS) | corner)[:, None]
        counts = CellCounts(_plane(), codes, np.ones(len(codes), dtype=np.int64))
        released = moments.release_moments(
            counts, plan=self._plan, ledger=Ledger(unit=self.unit), entropy=SystemEntropy()
        )
        steps = released.noisy_steps.astype(np.float64)
        offset = moments.QUANTUM * (1 - 1 / 2 ** (_CELL_BITS // 2))
        row = np.array([moments.QUANTUM, offset, offset])
        ratios = float(released.rate) * (np.abs(steps).max(axis=1) - np.abs(steps - row).max(axis=1))
        if not self._is_pair:
            return Seen(steps[: len(coins)], ratios[: len(coins)])
        used = slice(0, 2 * len(coins))
        steps, ratios = steps[used], ratios[used]
        return Seen(np.hstack([steps[0::2], steps[1::2]]), ratios[1::2] - ratios[0::2])


class MixedMomentsGame(Game):
    """A row at one end of every column, or at the other: also of columns whose offsets are not measured.

    One release a coin, of a tree of a few leaves; the law is learned. Rows may lie where no value can be, as an engine
    that miscounts would have it.
    """

    family = "leaf moments"
    path = "tree.moments: release_moments"

    def __init__(self, unit: Unit, epsilon: Fraction, *, depth: int = 0, is_possible: bool = True) -> None:
        self.unit, self.claim = unit, PureClaim(float(epsilon))
        where = "" if is_possible else ", beyond the last value"
        self.title = f"a row of mixed columns, {2**depth} leaves{where}"
        columns = {"c": Category(("a", "b", "c")), "i": Integer(0, 4), "x": Real(0, 1, bits=3)}
        self._lattice = tree_lattice(Schema(columns))
        self._plan = _plan(unit, depth, epsilon)
        bits = self._lattice.depth
        self._high = self._code(bits, is_possible)
        self._depth = depth

    def _code(self, bits: int, is_possible: bool) -> int:
        """The code of the row with the largest possible value in every column, or beyond it."""
        if not is_possible:
            return int(2**bits - 1) << (64 - bits)
        from spinney.schema.zorder import interleave

        last = np.array([[axis.last for axis in self._lattice.axes]], dtype=np.int64)
        return int(interleave(last, self._lattice)[0, 0])

    def play(self, coins: Coins) -> Seen:
        return Seen(np.stack([self._once(bool(coin)) for coin in coins]))

    def _once(self, coin: bool) -> Floats:
        rows: list[int] = [0]
        if self.unit.n_is_public:
            rows.append(self._high if coin else 0)
        elif coin:
            rows.append(self._high)
        codes: NDArray[np.uint64] = np.array(sorted(rows), dtype=np.uint64)[:, None]
        cells, counts = np.unique(codes[:, 0], return_counts=True)
        released = moments.release_moments(
            CellCounts(self._lattice, cells[:, None], counts.astype(np.int64)),
            plan=self._plan,
            ledger=Ledger(unit=self.unit),
            entropy=SystemEntropy(),
        )
        return released.noisy_steps.astype(np.float64)[[0, -1]].ravel() / moments.QUANTUM
