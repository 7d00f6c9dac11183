"""Games on trees: leaf moments, counts of cells and empty space, trees of columns, split decisions.

Where the claim is pure, one release holds many coins, each for a leaf or a small tree of its own, since the
bound needs no independence (`game.py`). Proofs of what is played: `tree/kdtree.proof.md`,
`tree/moments.proof.md`, `tree/empty.proof.md`.

    leaf games          a leaf's count and its sums of offsets
    tree games          small trees, counts of cells, empty cells and empty trees
    column tree games   how deep a column's tree goes
    decision games      split decisions by PrivTree's rule and the paper's, built on the small trees
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Category, Integer, Real
from spinney.counting.counts import CellCounts
from spinney.grid.axes import column_axis
from spinney.grid.lattice import Lattice, tree_lattice
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import SystemEntropy
from spinney.privacy.ledger import Ledger
from spinney.privacy.mechanisms import TreeShapes
from spinney.schema.schema import Schema
from spinney.tree import kdtree, moments
from spinney.tree.bins import worst_path_loss
from spinney.tree.plan import SplitPlan, grid_plan, paper_plan, privtree_plan
from spinney_audit.game import Coins, Floats, Game, PureClaim, Seen, opened, plan_of

# ----------------------------------------------------------------------------------------------------------- leaf games
# Games on leaf moments: a leaf's count and the sums of its rows' offsets, under noise that is even over cubes.


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
        from spinney.grid.codes import interleave

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


# ----------------------------------------------------------------------------------------------------------- tree games
# Games on trees: counts of cells and empty space, and `SmallTrees`, which the games on decisions share.
#
# Many small trees stand side by side below levels that always split, so one release holds many coins: each
# small tree, or under replace-one each two of them, has a coin of its own. That is one release of a table of
# which every row but the canaries is known. Claims are pure, and the bound needs no independence (`game.py`).
# `few` has one coin to a release, so that noise which repeats from release to release shows.


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
    path = "tree.kdtree: release_tree with a plan of fixed levels"

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


# ---------------------------------------------------------------------------------------------------- column tree games
# A game on the trees of columns: how deep a tree goes tells how many rows lie at its end.


_MANY = 200


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

    def __init__(self, noise: TreeShapes, unit: Unit, *, n_levels: int = 5) -> None:
        self.unit, self._n_levels = unit, n_levels
        self._column, self._roots, self._stops = _parted(1024, 64)
        ruler = self._column.ruler
        levels = max(noise.levels, ruler.max_levels)
        self.claim = PureClaim(float(worst_path_loss(noise.rate, noise.decay, levels, unit)))
        tree = replace(noise, levels=levels, times=1)
        self._plan = replace(plan_of([], unit), noise={"trees": tree})
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
            table = _path_ratios(starts, int(length), self._plan.trees["trees"], self._cutoff)
            here = (np.arange(len(depths)) % 2 == place) & (lengths == length)
            ratios[here] = table[depths[here]]
        return ratios


@lru_cache(maxsize=64)
def _path_ratios(rows: int, n_levels: int, noise: TreeShapes, cutoff: int) -> Floats:
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


# ------------------------------------------------------------------------------------------------------- decision games
# Games on split decisions, by PrivTree's rule and the paper's: how deep a tree goes where the rows are.


# Of a charged tree, levels that are played at most, and those that begin above the cutoff.
_MOST_LEVELS, _NEAR_LEVELS = 18, 6


class DecisionGame(SmallTrees):
    """How deep the tree goes where the rows are: the shape alone, or with the leaf's noisy count."""

    family = "decisions"
    path = "tree.kdtree: release_tree"

    def __init__(
        self,
        plan: SplitPlan,
        *,
        start: int,
        title: str,
        first: int | None = None,
        with_counts: bool = False,
        few: bool = False,
    ) -> None:
        self.with_counts = with_counts
        if with_counts:
            self.family = "whole tree"
        super().__init__(
            plan,
            start,
            n_bits=1 if few else MANY_BITS,
            title=title + (", a release a coin" if few else ""),
            epsilon=plan.epsilon if with_counts else plan.decision_epsilon,
            first=first,
        )
        self._tables = {rows: self._depth_ratios(rows) for rows in (self.without, self.first)}

    def _depth_ratios(self, without: int) -> Floats:
        """By depth, ln of the chance that the path ends there with one row more, over that without."""
        plan, logs = self.plan, np.zeros((2, self.plan.levels + 1))
        for more in range(2):
            before = 0.0
            for level in range(plan.levels):
                score = int(plan.score(np.array([without + more], dtype=np.int64), plan.fixed_depth + level)[0])
                split = float(tail(float(plan.decision_rate), plan.cutoff - score + 1))
                stay = float(tail(float(plan.decision_rate), score - plan.cutoff))
                logs[more, level] = before + math.log(stay)
                before += math.log(split)
            logs[more, -1] = before
        return np.asarray(logs[1] - logs[0])

    def _ratios(self, depths: Floats, noisy: Floats, without: int) -> Floats | None:
        ratios = self._tables[without][np.maximum(depths, 0).astype(np.int64)]
        if self.with_counts:
            shown = np.abs(noisy - without) - np.abs(noisy - without - 1)
            ratios = ratios + float(self.plan.count_rate) * shown
        return np.where(depths < 0, 0.0, ratios)

    def _seen(self, depths: Floats, noisy: Floats, others: Floats) -> Seen:
        seen = super()._seen(depths, noisy, others)
        if self.with_counts:
            return seen
        shape = seen.outcomes[:, [0, 2]] if self._is_pair else seen.outcomes[:, :1]
        return Seen(shape, seen.likelihood)


class MomentDecisionGame(DecisionGame):
    """The same shapes where leaves are released with their means."""

    path = "tree.moments: release_moments"

    def _shown(self, counts: CellCounts, n_trees: int) -> tuple[Floats, Floats, Floats]:
        plan = replace(self._deeper, has_moments=True)
        released = moments.release_moments(counts, plan=plan, ledger=Ledger(unit=self.unit), entropy=SystemEntropy())
        steps = released.noisy_steps[:, 0] // moments.QUANTUM
        depths, noisy, others = self._by_tree(released.codes[:, 0], released.depths, steps, n_trees)
        return depths, noisy, others


def empty_means_game(unit: Unit, epsilon: Fraction, *, levels: int = 3) -> DecisionGame:
    """A tree of leaf means without rows, or with one: its empty nodes split like others."""
    plan = privtree_plan(
        unit=unit,
        fixed_depth=0,
        max_depth=levels,
        decision_epsilon=epsilon,
        count_epsilon=Fraction(1),
        cutoff=1,
        threshold=1,
    )
    game = MomentDecisionGame(plan, start=0, title="a tree of leaf means without rows, or one")
    game.family = "empty space"
    return game


def privtree_game(
    unit: Unit,
    epsilon: Fraction,
    *,
    levels: int = 6,
    low: bool = False,
    counts: Fraction | None = None,
    few: bool = False,
    moments_too: bool = False,
    decay_factor: Fraction = Fraction(1),
) -> DecisionGame:
    """PrivTree at its worst: scores at the cutoff less a decay, at the cutoff, and a decay above, one after the other.

    `low` begins at the cutoff: levels further down must tell nothing more.
    """
    plan = privtree_plan(
        unit=unit,
        fixed_depth=0,
        max_depth=levels,
        decision_epsilon=epsilon,
        count_epsilon=Fraction(1) if counts is None else counts,
        cutoff=FAR,
        threshold=1,
        decay_factor=decay_factor,
    )
    kind = MomentDecisionGame if moments_too else DecisionGame
    start = FAR + (0 if low else max(levels - 2, 0) * plan.decay)
    words = "from the cutoff down" if low else "down to the cutoff"
    return kind(
        plan,
        start=start,
        first=FAR,
        title=f"PrivTree, {levels} levels {words}" + (", leaf means" if moments_too else ""),
        with_counts=counts is not None,
        few=few,
    )


def paper_game(unit: Unit, epsilon: Fraction, *, levels: int | None = None, few: bool = False) -> DecisionGame:
    """The paper's rule at its worst: rows just short of the cutoff on every level."""
    used = (1 if unit.n_is_public else 2) if levels is None else levels
    plan = paper_plan(
        unit=unit,
        fixed_depth=0,
        max_depth=used,
        decision_epsilon=epsilon,
        count_epsilon=Fraction(1),
        cutoff=FAR,
        threshold=1,
    )
    title = f"the paper's rule, {used} level{'s' if used > 1 else ''}"
    return DecisionGame(plan, start=FAR, title=title, few=few)


def charged_game(
    unit: Unit,
    epsilon: Fraction,
    *,
    rule: Literal["privtree", "paper"],
    rate: Fraction,
    levels: int,
    decay: int,
    low: bool,
) -> DecisionGame:
    """The decisions that a release was charged for, with its own rate and decay, nearest to the cutoff."""
    used = min(levels, _MOST_LEVELS)
    plan = SplitPlan(
        rule,
        unit,
        fixed_depth=0,
        max_depth=used,
        count_epsilon=Fraction(1),
        threshold=1,
        decision_epsilon=epsilon,
        decision_rate=rate,
        cutoff=FAR,
        decay=decay,
    )
    above = 0 if low or rule == "paper" else max(min(used, _NEAR_LEVELS) - 2, 0) * decay
    words = "from the cutoff down" if low or rule == "paper" else "down to the cutoff"
    return DecisionGame(plan, start=FAR + above, first=FAR, title=f"{rule}, as charged, {words}")
