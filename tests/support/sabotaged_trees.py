"""A zoo of sabotaged mechanisms, and the checks that must catch them.

A check takes a mechanism with the signature of `release_tree` and gives a p-value (1 or 0 where no chance is
involved): above ACCEPT for a sound mechanism, below REJECT for a sabotaged one. The sabotage is done to the
real code, one mistake at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest import mock

import flint
import numpy as np
from scipy import stats

import spinney as sp
from spinney.errors import BudgetError
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.ledger import Ledger
from spinney.tree import kdtree
from spinney.tree.bins import NoisyBins
from spinney.tree.kdtree import EmptySpace, release_tree
from spinney.tree.plan import SplitPlan, paper_plan, privtree_plan
from support.goodness_of_fit import p_value
from support.output_laws import ReleaseLaw, as_bins
from support.repeated_releases import Release, counts_of, lattice_of, law_p_value, line_of, release_copies, split_copies
from support.slow_trees import is_possible_node

Check = Callable[[Release], float]


def _plan(make: Callable[..., SplitPlan], depths: tuple[int, int], decisions: str = "2", cutoff: int = 1) -> SplitPlan:
    return make(
        unit=Unit.REPLACE_ONE,
        fixed_depth=depths[0],
        max_depth=depths[1],
        decision_epsilon=Fraction(decisions),
        count_epsilon=Fraction(1),
        cutoff=cutoff,
        threshold=1,
    )


# ------------------------------------------------------------------------------------------------ checks


def paper_law(release: Release) -> float:
    """Outputs of the paper's tree follow the exact law."""
    patterns = [(2, 0, 0, 0), (1, 1, 0, 1), (0, 0, 5, 0)]
    return law_p_value(_plan(paper_plan, (0, 2), "3"), line_of(2), patterns, seed=31, release=release)


def privtree_law(release: Release) -> float:
    """Outputs of three PrivTree levels follow the exact law."""
    patterns = [(0, 0, 0, 0, 1, 0, 0, 0), (9, 0, 0, 0, 0, 0, 0, 1)]
    plan = _plan(privtree_plan, (0, 3), decisions="1")
    return law_p_value(plan, line_of(3), patterns, seed=32, cap=1, n_bits=15, release=release)


def possible_bins(release: Release) -> float:
    """All released bins hold a cell that some row can have."""
    columns = {"c": sp.Category(["a", "b", "c", "d", "e"])}
    bins = release_copies(
        [(1, 0, 0, 0, 0, 0, 0, 0)] * 256, _plan(paper_plan, (0, 3)), columns, seed=33, release=release
    )
    found = {(int(depth), int(prefix)) for depth, prefix in zip(bins.depth, bins.prefix, strict=True)}
    return float(all(is_possible_node(node, lattice_of(columns)) for node in found))


def independent_noise(release: Release) -> float:
    """Decisions and counts of one release use different words: outputs of single releases follow the exact law."""
    plan, table, lattice = _plan(paper_plan, (0, 1)), (2, 0), lattice_of(line_of(1))
    entropy, outcomes = UnsafeSeededEntropy(34), Counter()
    for _ in range(1000):
        bins = release(counts_of(lattice, [table], 1), plan=plan, ledger=Ledger(), entropy=entropy)
        outcomes += split_copies(bins, 0).outcomes(1, largest=4)
    chances = {as_bins(output): p for output, p in ReleaseLaw(plan).distribution(table, cap=4).items()}
    return p_value(outcomes, chances)


def fresh_noise(release: Release) -> float:
    """Two releases of one table share no noise: their counts are uncorrelated."""
    lattice, plan = lattice_of(line_of(10)), _plan(paper_plan, (10, 10))
    entropy, noise = UnsafeSeededEntropy(35), []
    for _ in range(2):
        # Counts far above the threshold: every cell is released, and what differs from 1000 is noise.
        counts = counts_of(lattice, [(1000,) * 1024], 10)
        noise.append(release(counts, plan=plan, ledger=Ledger(), entropy=entropy).noisy_counts - 1000)
    return float(stats.spearmanr(*noise).pvalue)


class WatchedCounts:
    """Counts that note how much had been charged whenever they were looked at."""

    def __init__(self, ledger: Ledger) -> None:
        self._counts = counts_of(lattice_of(line_of(2)), [(3, 0, 0, 1)], 2)
        self._ledger = ledger
        self.lattice = self._counts.lattice
        self.charged_at_touch: list[Fraction] = []

    def __getattr__(self, name: str) -> Any:
        self.charged_at_touch.append(self._ledger.spent)
        return getattr(self._counts, name)

    def __len__(self) -> int:
        self.charged_at_touch.append(self._ledger.spent)
        return len(self._counts)


def charge_before_touch(release: Release) -> float:
    """Every look at the counts comes after the whole charge; where the budget forbids the charge, none comes."""
    plan = _plan(privtree_plan, (0, 2))
    ledger = Ledger(limit=plan.epsilon)
    counts = WatchedCounts(ledger)
    release(counts, plan=plan, ledger=ledger, entropy=UnsafeSeededEntropy(36))
    paid_first = bool(counts.charged_at_touch) and all(spent == plan.epsilon for spent in counts.charged_at_touch)

    poor = Ledger(limit=plan.epsilon / 2)
    unseen = WatchedCounts(poor)
    try:
        release(unseen, plan=plan, ledger=poor, entropy=UnsafeSeededEntropy(36))
    except BudgetError:
        return float(paid_first and ledger.spent == plan.epsilon and not unseen.charged_at_touch)
    return 0.0


# ------------------------------------------------------------------------------------------------ sabotage


def _sabotage(patch: Callable[[SplitPlan], AbstractContextManager[Any]]) -> Release:
    def release(counts: Any, *, plan: SplitPlan, ledger: Ledger, entropy: Any) -> NoisyBins:
        with patch(plan):
            return release_tree(counts, plan=plan, ledger=ledger, entropy=entropy)

    return release


def _weaker(rate_of: Callable[[SplitPlan], Fraction]) -> Release:
    """Half the noise wherever noise of one rate is added."""
    add_noise = kdtree.add_noise

    @contextmanager
    def patch(plan: SplitPlan) -> Any:
        assert plan.decision_rate != plan.count_rate
        with mock.patch.object(
            kdtree, "add_noise", lambda c, rate, e: add_noise(c, 2 * rate if rate == rate_of(plan) else rate, e)
        ):
            yield

    return _sabotage(patch)


half_noise_on_counts = _weaker(lambda plan: plan.count_rate)
half_noise_on_decisions = _weaker(lambda plan: plan.decision_rate)

empty_nodes_never_split = _sabotage(
    lambda _: mock.patch.object(
        SplitPlan, "empty_split_chance", lambda self, depth: flint.arb(int(depth < self.fixed_depth))
    )
)
empty_nodes_never_released = _sabotage(
    lambda _: mock.patch.object(
        EmptySpace,
        "release",
        lambda self, roots, entropy: (
            np.empty((0, self._lattice.n_words), dtype=np.uint64),
            np.empty(0, dtype=np.int64),
            np.empty(0, dtype=np.int64),
        ),
    )
)
noise_on_impossible_cells = _sabotage(
    lambda _: mock.patch(
        "spinney.tree.kdtree.possible_nodes", lambda codes, depths, lattice: np.ones(len(codes), dtype=np.bool_)
    )
)
privtree_without_clamp = _sabotage(
    lambda _: mock.patch.object(SplitPlan, "score", lambda self, c, depth: c - (depth - self.fixed_depth) * self.decay)
)
privtree_without_depth = _sabotage(
    lambda _: mock.patch.object(SplitPlan, "score", lambda self, c, depth: np.maximum(c, self.cutoff - self.decay))
)


def threshold_before_noise(counts: Any, *, plan: SplitPlan, ledger: Ledger, entropy: Any) -> NoisyBins:
    """Leaves are kept or dropped by their true counts, and get noise afterwards."""
    add_noise = kdtree.add_noise

    def peeking(true_counts: Any, rate: Fraction, source: Any) -> Any:
        noisy = add_noise(true_counts, rate, source)
        return np.where(true_counts >= plan.threshold, noisy + 10**6, 0) if rate == plan.count_rate else noisy

    with mock.patch.object(kdtree, "add_noise", peeking):
        bins = release_tree(counts, plan=plan, ledger=ledger, entropy=entropy)
    return replace(bins, noisy_counts=np.where(bins.noisy_counts > 10**5, bins.noisy_counts - 10**6, bins.noisy_counts))


class _Echo:
    """The same words at every call."""

    is_unsafe = True

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def words(self, n: int) -> Any:
        return UnsafeSeededEntropy(self._seed).words(n)


def words_used_twice(counts: Any, *, plan: SplitPlan, ledger: Ledger, entropy: Any) -> NoisyBins:
    """Every draw of one release begins with the same words; another release has others."""
    seed = int(entropy.words(1)[0])
    return release_tree(counts, plan=plan, ledger=ledger, entropy=_Echo(seed))


def same_words_in_every_release(counts: Any, *, plan: SplitPlan, ledger: Ledger, entropy: Any) -> NoisyBins:
    """The generator starts anew with a seed of its own in every call."""
    return release_tree(counts, plan=plan, ledger=ledger, entropy=UnsafeSeededEntropy(0))


def charge_after_touch(counts: Any, *, plan: SplitPlan, ledger: Ledger, entropy: Any) -> NoisyBins:
    """A sanity check on the counts, and then the charge."""
    if counts.true_total() < 0:
        raise ValueError
    return release_tree(counts, plan=plan, ledger=ledger, entropy=entropy)


def charge_after_release(counts: Any, *, plan: SplitPlan, ledger: Ledger, entropy: Any) -> NoisyBins:
    """Released, then paid."""
    bins = release_tree(counts, plan=plan, ledger=Ledger(), entropy=entropy)
    for charge in plan.charges():
        ledger.charge(charge)
    return bins


def charge_for_counts_only(counts: Any, *, plan: SplitPlan, ledger: Ledger, entropy: Any) -> NoisyBins:
    """The decisions are not paid for."""
    with mock.patch.object(SplitPlan, "charges", lambda self, what="table": plan_charges(self)[-1:]):
        return release_tree(counts, plan=plan, ledger=ledger, entropy=entropy)


plan_charges = SplitPlan.charges


CAGES: dict[str, tuple[Check, Release]] = {
    "half noise on leaf counts": (paper_law, half_noise_on_counts),
    "half noise on decisions, paper": (paper_law, half_noise_on_decisions),
    "half noise on decisions, privtree": (privtree_law, half_noise_on_decisions),
    "empty nodes never split": (paper_law, empty_nodes_never_split),
    "empty nodes never released": (paper_law, empty_nodes_never_released),
    "noise on impossible cells": (possible_bins, noise_on_impossible_cells),
    "privtree without the clamp": (privtree_law, privtree_without_clamp),
    "privtree without depth": (privtree_law, privtree_without_depth),
    "threshold before noise": (paper_law, threshold_before_noise),
    "words used twice": (independent_noise, words_used_twice),
    "same words in every release": (fresh_noise, same_words_in_every_release),
    "charge after touch": (charge_before_touch, charge_after_touch),
    "charge after release": (charge_before_touch, charge_after_release),
    "charge for counts only": (charge_before_touch, charge_for_counts_only),
}
