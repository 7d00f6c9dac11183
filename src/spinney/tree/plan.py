"""SplitPlan: everything public that a release is made by, and what it costs.

One plan covers the grid, the paper's tree and PrivTree. With c a node's count, k its depth, X discrete Laplace noise:

    k < fixed_depth                 split
    fixed_depth <= k < max_depth    split iff score(c, k) + X > cutoff,   X of rate decision_rate
    k = max_depth                   leaf
    leaf                            released iff c + X >= threshold,      X of rate count_rate
    leaf, with moments              released, with sums of offsets (`moments`)

    grid       fixed_depth = max_depth: no decisions
    paper      score(c, k) = c
    privtree   score(c, k) = max(c - (k - fixed_depth) * decay, cutoff - decay)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, TypedDict, Unpack

import flint
import numpy as np
from numpy.typing import NDArray

from spinney.errors import ParameterError
from spinney.privacy.budget import Unit
from spinney.privacy.mechanisms import Charge, DiscreteLaplaceCounts, LeafMoments, SplitDecisions
from spinney.privacy.noise.discrete import SMALLEST_RATE, discrete_laplace
from spinney.tree.bins import largest_privtree_rate

# Noisy counts are cut at 2^61: beyond this a cutoff would treat occupied nodes and empty ones differently.
LARGEST_SETTING = 2**60

Rule = Literal["grid", "paper", "privtree"]


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """A complete, public description of one release. Make one with `grid_plan`, `paper_plan` or `privtree_plan`."""

    rule: Rule
    unit: Unit
    fixed_depth: int
    max_depth: int
    count_epsilon: Fraction
    threshold: int
    decision_epsilon: Fraction = Fraction(0)
    decision_rate: Fraction = Fraction(0)
    cutoff: int = 0
    decay: int = 0
    has_moments: bool = False  # leaves release counts and sums of offsets, all of them; there is no threshold

    def __post_init__(self) -> None:
        if not 0 <= self.fixed_depth <= self.max_depth:
            raise ParameterError(
                f"fixed_depth={self.fixed_depth} and max_depth={self.max_depth} are not in order; "
                "need 0 <= fixed_depth <= max_depth"
            )
        if self.threshold < 1:
            raise ParameterError(f"threshold={self.threshold} is below 1; a released bin must count something")
        if max(self.threshold, abs(self.cutoff), self.decay * self.max_depth) >= LARGEST_SETTING:
            raise ParameterError(
                f"threshold={self.threshold}, cutoff={self.cutoff} or decay={self.decay} over {self.max_depth} levels "
                "leads beyond 2^60; give a larger epsilon"
            )
        if self.has_decisions and self.decision_rate <= 0:
            raise ParameterError("a tree with noisy levels needs a positive decision_rate")
        if self.count_rate < SMALLEST_RATE or (self.has_decisions and self.decision_rate < SMALLEST_RATE):
            raise ParameterError(
                f"epsilon={self.count_epsilon} for counts and {self.decision_epsilon} for decisions asks for noise "
                "of a scale above 2^50; give a larger epsilon or a more even share"
            )

    @property
    def levels(self) -> int:
        """Levels on which splitting is decided by noisy counts."""
        return self.max_depth - self.fixed_depth

    @property
    def has_decisions(self) -> bool:
        return self.levels > 0

    @property
    def count_rate(self) -> Fraction:
        """1/scale of the noise on leaf counts."""
        return self.count_epsilon / self.unit.factor

    @property
    def epsilon(self) -> Fraction:
        return self.count_epsilon + self.decision_epsilon

    def charges(self, bounds_of: str | None = None) -> tuple[Charge, ...]:
        """What the ledger must be charged before noise meets a count, of the table or of one column's magnitudes."""
        epsilon, sensitivity = self.count_epsilon, self.unit.factor
        if bounds_of is not None:
            note = f"{what_is_counted(bounds_of)}: leaf counts"
            return (DiscreteLaplaceCounts(epsilon, sensitivity, note, stage="bounds", times=1, column=bounds_of),)
        counts: Charge = DiscreteLaplaceCounts(epsilon, sensitivity, "table: leaf counts", stage="leaves", times=1)
        if self.has_moments:
            counts = LeafMoments(epsilon, sensitivity, "table: leaf counts and means", stage="leaves")
        if not self.has_decisions:
            return (counts,)
        decisions = SplitDecisions(
            self.decision_epsilon,
            self.rule,
            self.decision_rate,
            self.levels,
            note="table: split decisions",
            stage="splits",
            times=1,
            decay=self.decay or None,
        )
        return (decisions, counts)

    def score(self, true_counts: NDArray[np.int64], depth: int) -> NDArray[np.int64]:
        """The numbers to which decision noise is added at a noisy level."""
        if self.rule == "paper":
            return true_counts
        return self.score_at(true_counts, np.array(depth - self.fixed_depth))

    def score_at(self, true_counts: NDArray[np.int64], levels: NDArray[np.int64]) -> NDArray[np.int64]:
        """The same by the PrivTree rule, of nodes with so many decisions above each."""
        biased: NDArray[np.int64] = np.maximum(true_counts - levels * self.decay, self.cutoff - self.decay)
        return biased

    def empty_split_chance(self, depth: int) -> flint.arb:
        """Chance that an empty node at `depth` splits, at the current precision."""
        return self.split_chance(0, depth)

    def split_chance(self, n_rows: int, depth: int) -> flint.arb:
        """Chance that a node of so many rows at `depth` splits, at the current precision."""
        if depth < self.fixed_depth:
            return flint.arb(1)
        if depth >= self.max_depth:
            return flint.arb(0)
        score = int(self.score(np.array([n_rows], dtype=np.int64), depth)[0])
        return discrete_laplace(self.decision_rate).tail(self.cutoff - score + 1)

    def empty_pass_chance(self) -> flint.arb:
        """Chance that an empty leaf is released, at the current precision."""
        return discrete_laplace(self.count_rate).tail(self.threshold)

    def expected_empty_bins(self) -> float:
        """Expected number of bins that a table without rows would release: a public bound on the size of empty space.

        e(max_depth) = p;  e(k) = (1-s)p + 2s e(k+1).
        """
        return _expected(self, of_bins=True)

    def expected_empty_leaves(self) -> float:
        """Expected number of leaves of a table without rows, released or not."""
        return _expected(self)

    def expected_leaves(self, n_rows: int) -> float:
        """Expected number of leaves of a table whose rows are spread evenly over all that the schema allows.

        e(max_depth) = 1;  e(k) = (1-s) + 2s e(k+1), where s is the chance that a node of n / 2^k rows splits.
        """
        return _expected(self, n_rows)

    def to_dict(self) -> dict[str, Any]:
        """What no charge says, as JSON-ready data, for the card."""
        described: dict[str, Any] = {"rule": self.rule, "max_depth": self.max_depth}
        described |= {"leaves": "moments"} if self.has_moments else {"threshold": self.threshold}
        if self.rule != "grid":
            described |= {"fixed_depth": self.fixed_depth, "cutoff": self.cutoff}
        if self.rule == "privtree":
            described["decay"] = self.decay
        return described


@lru_cache(maxsize=512)  # a plan is checked when it is made, rehearsed and released, and the sum is the cost of that
def _expected(plan: SplitPlan, n_rows: int = 0, *, of_bins: bool = False) -> float:
    p = plan.empty_pass_chance() if of_bins else flint.arb(1)
    expected = p
    for depth in reversed(range(plan.max_depth)):
        s = plan.split_chance(n_rows >> depth, depth)
        expected = (1 - s) * p + 2 * s * expected
    return float(expected.upper())


def what_is_counted(bounds_of: str | None) -> str:
    """What a plan is for, in the words of notes: the table, or the bounds of one column."""
    return "table" if bounds_of is None else f"bounds of {bounds_of}"


def grid_plan(*, unit: Unit, depth: int, epsilon: Fraction, threshold: int) -> SplitPlan:
    """Algorithm 1: every cell of a fixed grid is a leaf."""
    return SplitPlan("grid", unit, fixed_depth=depth, max_depth=depth, count_epsilon=epsilon, threshold=threshold)


class TreeSettings(TypedDict):
    """What the two tree rules have in common."""

    unit: Unit
    fixed_depth: int
    max_depth: int
    count_epsilon: Fraction
    cutoff: int
    threshold: int


def paper_plan(*, decision_epsilon: Fraction, **settings: Unpack[TreeSettings]) -> SplitPlan:
    """Algorithms 2-3: decision noise of scale (unit factor) * (max_depth - fixed_depth) / epsilon', as printed."""
    levels = settings["max_depth"] - settings["fixed_depth"]
    if levels <= 0:
        return SplitPlan("paper", **settings)
    rate = decision_epsilon / (settings["unit"].factor * levels)
    return SplitPlan("paper", **settings, decision_epsilon=decision_epsilon, decision_rate=rate)


def privtree_plan(
    *, decision_epsilon: Fraction, decay_factor: Fraction = Fraction(1), **settings: Unpack[TreeSettings]
) -> SplitPlan:
    """The PrivTree rule with the largest decision rate whose certified worst-case loss is within epsilon'."""
    levels = settings["max_depth"] - settings["fixed_depth"]
    if levels <= 0:
        return SplitPlan("privtree", **settings)
    rate, decay = largest_privtree_rate(
        decision_epsilon, levels=levels, unit=settings["unit"], decay_factor=decay_factor
    )
    return SplitPlan("privtree", **settings, decision_epsilon=decision_epsilon, decision_rate=rate, decay=decay)
