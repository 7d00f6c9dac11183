"""Games on split decisions, by PrivTree's rule and the paper's: how deep a tree goes where the rows are."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Literal

import numpy as np

from spinney.auditing.game import Floats, Seen
from spinney.auditing.tree_games import FAR, MANY_BITS, SmallTrees, tail
from spinney.counting.counts import CellCounts
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import SystemEntropy
from spinney.privacy.ledger import Ledger
from spinney.tree import moments
from spinney.tree.plan import SplitPlan, paper_plan, privtree_plan

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
