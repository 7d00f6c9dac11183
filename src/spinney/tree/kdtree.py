"""The tree release: the paper's Algorithms 1-3, PrivTree and empty space. SENSITIVE up to the bins.

A node is a prefix of a cell code, and a range of positions in the codes (`CellCounts`). One release serves all
rules: the grid is the tree that splits everywhere and decides nothing. The ledger is charged before noise meets
a count.

    empty space     empty subtrees as a branching process, in place of Algorithms 4 and 5    empty.proof.md
    tree release    the release, level by level                                              kdtree.proof.md
    grid            Algorithm 1 as the tree without decisions                                grid.proof.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import flint
import numpy as np
from numpy.typing import NDArray

from spinney.counting.counts import CellCounts
from spinney.errors import BudgetError, ParameterError
from spinney.grid.codes import Codes, Indices, possible_nodes
from spinney.grid.lattice import Lattice
from spinney.privacy.entropy import Entropy, brand_unless_system
from spinney.privacy.ledger import Ledger
from spinney.privacy.noise.discrete import ExactLaw, add_noise, geometric, within_range
from spinney.progress import progress
from spinney.text import Sensitive
from spinney.tree.bins import NoisyBins
from spinney.tree.plan import SplitPlan, grid_plan, what_is_counted

# ---------------------------------------------------------------------------------------------------------- empty space
# Empty space as an exact branching process (replaces the paper's Algorithms 4 and 5).
#
# An empty node draws noise like any other: a neighbouring table may hold a row there. But all empty nodes of one
# depth are alike, so a whole empty subtree can be settled by a single draw. With s(k) the chance that an empty node
# of depth k splits and p the chance that an empty leaf passes the threshold, the chance q that a subtree rooted at
# depth k releases nothing obeys
#
#     q(max_depth) = 1 - p,     q(k) = (1 - s(k)) (1 - p) + s(k) q(k+1)^2.
#
# A subtree survives with chance 1 - q(k). A survivor is a released leaf with chance (1-s)p / (1-q); otherwise it has
# split, and its left child, its right child or both survive. Everything is drawn exactly; the cost is proportional to
# what is released, at any depth, data-independent levels included. Proof: empty.proof.md.


_LEAF, _LEFT, _RIGHT, _BOTH = range(4)


def nothing_survives(plan: SplitPlan) -> list[flint.arb]:
    """q(k) for k = 0..max_depth, at the current precision."""
    p = plan.empty_pass_chance()
    chances = [1 - p]
    for depth in reversed(range(plan.max_depth)):
        s = plan.empty_split_chance(depth)
        chances.append((1 - s) * (1 - p) + s * chances[-1] ** 2)
    return chances[::-1]


class EmptySpace:
    """The laws of empty subtrees under one plan."""

    def __init__(self, plan: SplitPlan, lattice: Lattice) -> None:
        self._plan = plan
        self._lattice = lattice
        self._cached: dict[int, list[flint.arb]] = {}
        self._survival: dict[int, ExactLaw] = {}
        self._fate: dict[int, ExactLaw] = {}

    def release(
        self, roots: Mapping[int, Codes], entropy: Entropy
    ) -> tuple[Codes, NDArray[np.int64], NDArray[np.int64]]:
        """Released bins of the empty subtrees rooted at `roots[depth]`: codes, depths, noisy counts."""
        lattice, plan = self._lattice, self._plan
        alive = np.empty((0, lattice.n_words), dtype=np.uint64)
        released: list[Codes] = [alive]
        depths: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
        for depth in range(plan.max_depth + 1):
            if depth in roots:
                alive = np.concatenate([alive, self._surviving(roots[depth], depth, entropy)])
            if not len(alive):
                continue
            if depth == plan.max_depth:
                fates = np.full(len(alive), _LEAF, dtype=np.int64)
            else:
                fates = self._fate_law(depth).draw(len(alive), entropy)  # [empty step 2]
            leaves = alive[fates == _LEAF]
            released.append(leaves)
            depths.append(np.full(len(leaves), depth, dtype=np.int64))
            alive = self._children(alive, fates, depth)
        codes = np.concatenate(released)
        # [empty step 3] Given that the noise of an empty leaf is at least t, what exceeds t is geometric.
        noisy_counts = within_range(plan.threshold + geometric(plan.count_rate).draw(len(codes), entropy))
        return codes, np.concatenate(depths), noisy_counts

    def _surviving(self, codes: Codes, depth: int, entropy: Entropy) -> Codes:
        """Which of the possible subtrees rooted here release anything: [empty step 1]."""
        codes = self._possible(codes, depth)
        if depth not in self._survival:
            self._survival[depth] = ExactLaw(lambda: [self._q(depth)])
        surviving: Codes = codes[self._survival[depth].draw(len(codes), entropy) == 1]
        return surviving

    def _children(self, codes: Codes, fates: NDArray[np.int64], depth: int) -> Codes:
        """Surviving children of nodes that have split."""
        left = codes[(fates == _LEFT) | (fates == _BOTH)]
        right = codes[(fates == _RIGHT) | (fates == _BOTH)].copy()
        word, offset = divmod(depth, 64)
        if len(right):
            right[:, word] |= np.uint64(1 << (63 - offset))
        return self._possible(np.concatenate([left, right]), depth + 1)

    def _possible(self, codes: Codes, depth: int) -> Codes:
        """Drop subtrees that no row can reach. Draws are independent: forgetting some leaves the others' law alone."""
        if self._lattice.is_full or not len(codes):
            return codes
        return codes[possible_nodes(codes, np.full(len(codes), depth, dtype=np.int64), self._lattice)]

    def _q(self, depth: int) -> flint.arb:
        precision = flint.ctx.prec
        if precision not in self._cached:
            self._cached[precision] = nothing_survives(self._plan)
        return self._cached[precision][depth]

    def _fate_law(self, depth: int) -> ExactLaw:
        if depth not in self._fate:
            self._fate[depth] = ExactLaw(lambda: self._fates(depth))
        return self._fate[depth]

    def _fates(self, depth: int) -> list[flint.arb]:
        """Cumulative chances of leaf, left only, right only (the rest: both), given survival at `depth`."""
        s, p = self._plan.empty_split_chance(depth), self._plan.empty_pass_chance()
        q_child = self._q(depth + 1)
        survives = (1 - s) * p + s * (1 - q_child) * (1 + q_child)
        leaf = (1 - s) * p / survives
        one_side = s * (1 - q_child) * q_child / survives
        return [leaf, leaf + one_side, leaf + 2 * one_side]


# --------------------------------------------------------------------------------------------------------- tree release
# The release of a tree. The frontier goes down level by level, all nodes of one depth at once, so noise is
# drawn in blocks. The empty child of a split node becomes the root of an empty subtree and is settled by
# `EmptySpace`. Proof: kdtree.proof.md; the labels [step 1] ... are its steps.


# Expected bins out of empty space above which a release is refused: 2^25 bins are about 1 GB of work space.
MAX_EMPTY_BINS = 2.0**25


@dataclass(slots=True, repr=False)
class _Growth(Sensitive):
    """Sensitive intermediate state: true leaves and the roots of empty subtrees."""

    leaf_codes: list[Codes] = field(default_factory=list)
    leaf_depths: list[NDArray[np.int64]] = field(default_factory=list)
    leaf_counts: list[NDArray[np.int64]] = field(default_factory=list)
    empty_roots: dict[int, Codes] = field(default_factory=dict)


def check_size(plan: SplitPlan) -> None:
    """Refuse, before anything is charged, a plan whose empty space alone would overflow memory."""
    expected = plan.expected_empty_bins()
    if expected > MAX_EMPTY_BINS:
        raise BudgetError(
            f"this plan would release about {expected:.2g} empty bins (limit {MAX_EMPTY_BINS:.2g}); "
            "raise the threshold or epsilon, or use fewer bins or levels"
        )


def pay(plan: SplitPlan, lattice: Lattice, ledger: Ledger, entropy: Entropy, bounds_of: str | None = None) -> None:
    """Charge all that a plan costs, and brand noise that is not private. Raises, with nothing charged, if it cannot."""
    if plan.max_depth > lattice.depth:
        raise ParameterError(f"max_depth={plan.max_depth} is beyond the lattice's depth of {lattice.depth}")
    ledger.require(plan.epsilon, unit=plan.unit)
    ledger.charge(*plan.charges(bounds_of))
    brand_unless_system(ledger, entropy, what_is_counted(bounds_of))


def release_tree(
    counts: CellCounts, *, plan: SplitPlan, ledger: Ledger, entropy: Entropy, bounds_of: str | None = None
) -> NoisyBins:
    """Noisy bins of one tree. Charges `plan.epsilon` to the ledger before noise meets a count.

    `bounds_of` names the column whose magnitudes are counted, where it is not the table's cells.
    """
    check_size(plan)
    pay(plan, counts.lattice, ledger, entropy, bounds_of)  # [step 1] charge before noise

    growth = _grow(counts, plan, entropy)
    empty_codes, empty_depths, empty_counts = EmptySpace(plan, counts.lattice).release(growth.empty_roots, entropy)

    codes = np.concatenate([*growth.leaf_codes, empty_codes])
    depths = np.concatenate([*growth.leaf_depths, empty_depths])
    noisy_leaves = add_noise(np.concatenate(growth.leaf_counts), plan.count_rate, entropy)  # [step 4]
    noisy_counts = np.concatenate([noisy_leaves, empty_counts])
    passes = noisy_counts >= plan.threshold  # [step 5]
    return NoisyBins.in_order(counts.lattice, codes[passes], depths[passes], noisy_counts[passes])


def _grow(counts: CellCounts, plan: SplitPlan, entropy: Entropy) -> _Growth:
    """Split from the root down; every node that may split draws its own noise."""
    codes = counts.true_codes
    nothing = np.zeros(0, dtype=np.int64)
    growth = _Growth(leaf_codes=[codes[:0]], leaf_depths=[nothing], leaf_counts=[nothing])
    if not len(codes):
        growth.empty_roots[0] = np.zeros((1, codes.shape[1]), dtype=np.uint64)
        return growth

    start, stop = np.array([0]), np.array([len(codes)])
    for depth in progress(range(plan.max_depth + 1), "planting the tree", unit="level"):
        true_counts = counts.rows_between(start, stop)
        if depth < plan.fixed_depth:  # [step 2] data-independent levels
            splits = np.ones(len(start), dtype=np.bool_)
        elif depth < plan.max_depth:  # [step 3] noisy decisions
            splits = add_noise(plan.score(true_counts, depth), plan.decision_rate, entropy) > plan.cutoff
        else:
            splits = np.zeros(len(start), dtype=np.bool_)
        is_leaf = ~splits
        growth.leaf_codes.append(prefixes(codes, start[is_leaf], depth))
        growth.leaf_depths.append(np.full(int(is_leaf.sum()), depth, dtype=np.int64))
        growth.leaf_counts.append(true_counts[is_leaf])
        start, stop, empty = _split(counts, start[splits], stop[splits], depth)
        if len(empty):
            growth.empty_roots[depth + 1] = empty
        if not len(start):
            break
    return growth


def prefixes(codes: Codes, positions: Indices, depth: int) -> Codes:
    """The nodes of `depth` that hold the codes at these positions."""
    masks = np.zeros(codes.shape[1], dtype=np.uint64)
    full, rest = divmod(depth, 64)
    masks[:full] = np.uint64(2**64 - 1)
    if rest:
        masks[full] = np.uint64((2**rest - 1) << (64 - rest))
    return codes[positions] & masks


def _split(counts: CellCounts, start: Indices, stop: Indices, depth: int) -> tuple[Indices, Indices, Codes]:
    """Occupied children of the given nodes as ranges, and their empty children as codes."""
    codes = counts.true_codes
    if not len(start):
        return start, stop, codes[:0]
    middle = counts.halves(start, stop, depth)
    has_left, has_right = middle > start, middle < stop
    # An empty child is the occupied child's code with the last bit turned.
    empty = prefixes(codes, start[~(has_left & has_right)], depth + 1)
    word, offset = divmod(depth, 64)
    empty[:, word] ^= np.uint64(1 << (63 - offset))
    child_start = np.stack([start, middle], axis=1)[np.stack([has_left, has_right], axis=1)]
    child_stop = np.stack([middle, stop], axis=1)[np.stack([has_left, has_right], axis=1)]
    return child_start, child_stop, empty


# ----------------------------------------------------------------------------------------------------------------- grid
# Algorithm 1: every cell of a fixed grid gets discrete Laplace noise, and cells below the threshold go.
#
# A grid is the tree that splits everywhere and decides nothing, so the release is the tree's; only the plan differs.
# Cells without rows are never enumerated, however many there are. Proof: grid.proof.md.


def release_grid(
    counts: CellCounts,
    *,
    epsilon: Fraction,
    threshold: int,
    ledger: Ledger,
    entropy: Entropy,
    bounds_of: str | None = None,
) -> NoisyBins:
    """Noisy counts of the lattice's cells, where at least `threshold`. Charges `epsilon` before noise meets a count."""
    # [grid step 1]
    plan = grid_plan(unit=ledger.unit, depth=counts.lattice.depth, epsilon=epsilon, threshold=threshold)
    # [grid step 2]
    return release_tree(counts, plan=plan, ledger=ledger, entropy=entropy, bounds_of=bounds_of)
