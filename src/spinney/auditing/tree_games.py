"""Games on trees: counts of cells and empty space; what games on decisions (`decision_games`) share with them.

Many small trees stand side by side below levels that always split, so one release holds many coins: each small tree,
or under replace-one each two of them, has a coin of its own. That is one release of a table of which every row but the
canaries is known. Claims are pure, and the bound needs no independence (`bounds`). `few` has one coin to a release, so
that noise which repeats from release to release shows.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spinney.auditing.claims import PureClaim
from spinney.auditing.game import Coins, Floats, Game, Seen
from spinney.columns import Integer
from spinney.counting.counts import CellCounts
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import SystemEntropy
from spinney.privacy.ledger import Ledger
from spinney.schema.lattice import Lattice, tree_lattice
from spinney.schema.table import Schema
from spinney.tree import kdtree
from spinney.tree.plan import SplitPlan, grid_plan, paper_plan, privtree_plan

MANY_BITS = 13
# Counts far above every threshold: all leaves on the way are released.
FAR = 80


def tail(rate: float, t: NDArray[np.int64] | int) -> Floats:
    """P(X >= t) of discrete Laplace noise."""
    t = np.asarray(t)
    a = math.exp(-rate)
    upper = np.exp(-rate * np.maximum(t, 1)) / (1 + a)
    lower = 1 - np.exp(-rate * np.maximum(1 - t, 1)) / (1 + a)
    return np.asarray(np.where(t >= 1, upper, lower))


@lru_cache(maxsize=32)
def line(n_bits: int) -> Lattice:
    """The lattice of one column of 2^n cells: the first bits of a code are the number of a small tree."""
    return tree_lattice(Schema({"x": Integer(0, 2**n_bits - 1, bits=n_bits)}))


class SmallTrees(Game):
    """Small trees with all their rows in one cell, `without` or one more: the coin of the tree decides."""

    def __init__(
        self,
        plan: SplitPlan,
        without: int,
        *,
        n_bits: int,
        title: str,
        epsilon: Fraction,
        first: int | None = None,
    ) -> None:
        self.plan, self.without, self.n_bits = plan, without, n_bits
        self.first = without if first is None else first  # of two trees, the rows of the one that may lose a row
        self.unit, self.title = plan.unit, title
        self.claim = PureClaim(float(epsilon))
        self.books = Ledger(unit=plan.unit)  # the account of the last release
        self._is_pair = plan.unit.n_is_public
        self.is_packed = n_bits > 1
        self._deeper = replace(plan, fixed_depth=plan.fixed_depth + n_bits, max_depth=plan.max_depth + n_bits)
        self._lattice = line(self._deeper.max_depth)

    @property
    def batch(self) -> int:
        return max(1, 2**self.n_bits // (2 if self._is_pair else 1)) if self.n_bits > 1 else 64

    def play(self, coins: Coins) -> Seen:
        if self.n_bits > 1:
            return self._seen(*self._release(coins))
        found = [self._release(coins[place : place + 1]) for place in range(len(coins))]
        depths, noisy, others = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return self._seen(depths, noisy, others)

    def _release(self, coins: Coins) -> tuple[Floats, Floats, Floats]:
        """Depth and noisy count of the bin over every tree's rows, -1 without one, and how many other bins it has."""
        n_trees = 2**self.n_bits
        added = np.zeros(n_trees, dtype=np.int64)
        if self._is_pair:  # under replace-one a row is in one of two trees
            added[0 : 2 * len(coins) : 2], added[1 : 2 * len(coins) : 2] = ~coins, coins
        else:
            added[: len(coins)] = coins
        true_counts = self.without + added
        if self._is_pair:
            true_counts[0::2] += self.first - self.without
        places = np.flatnonzero(true_counts)
        shift = np.uint64(64 - self.n_bits) if self.n_bits else np.uint64(0)
        codes = places.astype(np.uint64)[:, None] << shift
        counts = CellCounts(self._lattice, codes, true_counts[places])
        depths, noisy, others = self._shown(counts, n_trees)
        n_used = (2 if self._is_pair else 1) * len(coins)
        return depths[:n_used], noisy[:n_used], others[:n_used]

    def _shown(self, counts: CellCounts, n_trees: int) -> tuple[Floats, Floats, Floats]:
        self.books = Ledger(unit=self.unit)
        bins = kdtree.release_tree(counts, plan=self._deeper, ledger=self.books, entropy=SystemEntropy())
        return self._by_tree(bins.codes[:, 0], bins.depths, bins.noisy_counts, n_trees)

    def _by_tree(
        self, codes: NDArray[np.uint64], bin_depths: NDArray[np.int64], noisy_counts: NDArray[np.int64], n_trees: int
    ) -> tuple[Floats, Floats, Floats]:
        n_bits = np.uint64(self.n_bits)
        tree = (codes >> (np.uint64(64) - n_bits)).astype(np.int64) if self.n_bits else np.zeros(len(codes), dtype=int)
        is_over = (codes << n_bits) == 0
        depths, noisy = np.full(n_trees, -1.0), np.zeros(n_trees)
        depths[tree[is_over]] = bin_depths[is_over] - self.n_bits
        noisy[tree[is_over]] = noisy_counts[is_over]
        others = np.bincount(tree[~is_over], minlength=n_trees).astype(np.float64)
        return depths, noisy, others

    def _seen(self, depths: Floats, noisy: Floats, others: Floats) -> Seen:
        if not self._is_pair:
            ratios = self._ratios(depths, noisy, self.without)
            return Seen(np.column_stack([depths, noisy - self.without, others]), ratios)
        less, more = slice(0, None, 2), slice(1, None, 2)
        lost, won = (
            self._ratios(depths[less], noisy[less], self.first),
            self._ratios(depths[more], noisy[more], self.without),
        )
        columns = [depths[more], noisy[more] - self.without, depths[less], noisy[less] - self.first]
        return Seen(np.column_stack(columns), None if lost is None or won is None else won - lost)

    @abstractmethod
    def _ratios(self, depths: Floats, noisy: Floats, without: int) -> Floats | None:
        """The log-ratio of P(outcome of a tree | one row more than `without`) to P(outcome | without), where known."""


class CellGame(SmallTrees):
    """The noisy count of a cell: many rows or one more, or none or one."""

    family = "counts"
    path = "tree.grid: release_tree with a plan of fixed levels"

    def __init__(
        self, unit: Unit, epsilon: Fraction, *, few: bool = False, is_empty: bool = False, threshold: int = 1
    ) -> None:
        what = "a cell without rows, or one" if is_empty else "a cell with many rows, or one more"
        self.weight = 1.0
        super().__init__(
            grid_plan(unit=unit, depth=3 if is_empty else 1, epsilon=epsilon, threshold=threshold),
            threshold - 1 if is_empty else FAR + threshold,
            n_bits=1 if few else MANY_BITS,
            title=what + (", a release a coin" if few else ""),
            epsilon=epsilon,
        )

    def _ratios(self, depths: Floats, noisy: Floats, without: int) -> Floats | None:
        rate, over = float(self.plan.count_rate), without - self.plan.threshold
        shown = rate * (np.abs(noisy - without) - np.abs(noisy - without - 1))
        # Not to be released takes noise of `over + 1` below 0 at least, and one more where there is a row more.
        hidden = -rate if over >= 0 else math.log(float(tail(rate, over + 2)) / float(tail(rate, over + 1)))
        return np.where(depths < 0, hidden, shown)


class EmptyCellGame(CellGame):
    """A cell that holds no row, or one: empty space draws noise like all other space."""

    family = "empty space"

    def __init__(self, unit: Unit, epsilon: Fraction) -> None:
        super().__init__(unit, epsilon, is_empty=True)


class EmptyTreeGame(SmallTrees):
    """A whole tree without rows, or with one: decisions and counts of empty nodes. The law is learned."""

    family = "empty space"
    path = "tree.kdtree: release_tree"

    def __init__(self, unit: Unit, epsilon: Fraction, rule: Literal["privtree", "paper"]) -> None:
        make = privtree_plan if rule == "privtree" else paper_plan
        plan = make(
            unit=unit,
            fixed_depth=0,
            max_depth=2,
            decision_epsilon=epsilon / 2,
            count_epsilon=epsilon / 2,
            cutoff=1,
            threshold=1,
        )
        super().__init__(plan, 0, n_bits=MANY_BITS, title=f"a tree without rows, or one ({rule})", epsilon=epsilon)

    def _ratios(self, depths: Floats, noisy: Floats, without: int) -> Floats | None:  # noqa: ARG002
        return None
