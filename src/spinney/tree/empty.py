"""Empty space as an exact branching process (replaces the paper's Algorithms 4 and 5).

An empty node draws noise like any other: a neighbouring table may hold a row there. But all empty nodes of one
depth are alike, so a whole empty subtree can be settled by a single draw. With s(k) the chance that an empty
node of depth k splits and p the chance that an empty leaf passes the threshold, the chance q that a subtree
rooted at depth k releases nothing obeys

    q(max_depth) = 1 - p,     q(k) = (1 - s(k)) (1 - p) + s(k) q(k+1)^2.

A subtree survives with chance 1 - q(k). A survivor is a released leaf with chance (1-s)p / (1-q); otherwise it
has split, and its left child, its right child or both survive. Everything is drawn exactly; the cost is
proportional to what is released, at any depth, data-independent levels included. Proof: empty.proof.md.
"""

from __future__ import annotations

from collections.abc import Mapping

import flint
import numpy as np
from numpy.typing import NDArray

from spinney.privacy.entropy import Entropy
from spinney.privacy.noise.discrete import geometric, within_range
from spinney.privacy.noise.exact import ExactLaw
from spinney.schema.lattice import Lattice
from spinney.schema.zorder import Codes, possible_nodes
from spinney.tree.plan import SplitPlan

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
                fates = self._fate_law(depth).draw(len(alive), entropy)  # [step 2]
            leaves = alive[fates == _LEAF]
            released.append(leaves)
            depths.append(np.full(len(leaves), depth, dtype=np.int64))
            alive = self._children(alive, fates, depth)
        codes = np.concatenate(released)
        # [step 3] Given that the noise of an empty leaf is at least t, what exceeds t is geometric.
        noisy_counts = within_range(plan.threshold + geometric(plan.count_rate).draw(len(codes), entropy))
        return codes, np.concatenate(depths), noisy_counts

    def _surviving(self, codes: Codes, depth: int, entropy: Entropy) -> Codes:
        """Which of the possible subtrees rooted here release anything: [step 1]."""
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
