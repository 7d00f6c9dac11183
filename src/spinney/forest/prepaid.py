"""PrepaidMechanisms: the mechanisms that a plan was charged for, each used once; the only source of a forest's noise.

Making one charges the ledger for the whole plan, before any count is read. After that every table, tree shape and
choice is taken from it; a mechanism that was not charged cannot be used. A forest with a target opens two: one for the
sizes of the target's classes, and one for all the rest, whose plan depends on them. Proof: `prepaid.proof.md`, and for
the parts together `privacy/composition.proof.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from spinney.counting.counts import CellCounts, ColumnCounts
from spinney.errors import BudgetError, ParameterError
from spinney.forest.plan import ForestPlan
from spinney.grid.axes import PlaceAxis
from spinney.grid.ruler import Ruler
from spinney.privacy.entropy import Entropy, brand_unless_system
from spinney.privacy.ledger import Ledger
from spinney.privacy.mechanisms import LARGEST_VECTOR, DiscreteLaplaceCounts
from spinney.privacy.noise.choices import choose
from spinney.privacy.noise.discrete import add_noise, within_range
from spinney.privacy.noise.gaussian import discrete_gaussian
from spinney.tree.plan import SplitPlan
from spinney.tree.ranges import Ranges, Regions, grow_ranges, grow_regions

Counts = NDArray[np.int64]


class PrepaidMechanisms:
    """The noise of one fit. Every method uses up a part of the plan that was paid for when this object was made."""

    def __init__(self, plan: ForestPlan, ledger: Ledger, entropy: Entropy) -> None:
        ledger.charge(*plan.charges)  # charge before touch
        brand_unless_system(ledger, entropy, "forest")
        self.plan = plan
        self._entropy = entropy
        self._left = {stage: plan.times(stage) for stage in plan.noise}

    def noisy_counts(self, true_counts: Counts, stage: str) -> Counts:
        """One table with noise. The counts are of cells that share no row: every row is in one of them at most."""
        self._take(stage)
        noise = self.plan.tables[stage]
        if isinstance(noise, DiscreteLaplaceCounts):
            return add_noise(true_counts, noise.rate, self._entropy)
        return within_range(true_counts + discrete_gaussian(noise.variance).draw(true_counts.size, self._entropy))

    def noisy_units(self, true_units: Counts, stage: str) -> Counts:
        """One table of units with noise: a person adds `UNITS` at most to all its cells together, none below 0."""
        if true_units.dtype != np.int64 or true_units.ndim != 1 or true_units.size > LARGEST_VECTOR:
            raise ParameterError("true_units is not one vector of up to 2^20 of int64: only those can take exact noise")
        self._take(stage)
        variance = self.plan.weighted[stage].scale(self.plan.unit)
        return within_range(true_units + discrete_gaussian(variance).draw(true_units.size, self._entropy))

    def ranges(
        self,
        counts: ColumnCounts,
        ruler: Ruler,
        *,
        cutoff: int,
        roots: Counts | None = None,
        stage: Literal["trees", "row trees"] = "trees",
    ) -> Ranges:
        """The leaves of one column's tree: the shape is public, their true counts are not.

        `roots` are the first cells of public ranges that the tree is cut into from the beginning. Sentinels
        are leaves of their own, but not of rows of persons.
        """
        self._take(stage)
        plan = self._decisions(stage, ruler.max_levels, cutoff)
        return grow_ranges(counts, ruler, plan, self._entropy, roots=roots, has_sentinels=stage == "trees")

    def regions(self, counts: CellCounts, axis: PlaceAxis, *, cutoff: int, n_fixed: int) -> Regions:
        """The leaves of one place's tree, of which the first levels are fixed: the same holds for them."""
        self._take("regions")
        plan = self._decisions("regions", axis.max_levels, cutoff, fixed_depth=n_fixed)
        return grow_regions(counts, axis, plan, self._entropy)

    def _decisions(self, stage: str, levels: int, cutoff: int, fixed_depth: int = 0) -> SplitPlan:
        """The decisions of a tree of so many levels that decide, if that many were paid for."""
        noise = self.plan.trees[stage]
        assert noise.decay is not None
        if levels > noise.levels:
            raise BudgetError(f"a tree of {levels} levels is deeper than what was paid for")
        return SplitPlan(
            "privtree",
            self.plan.unit,
            fixed_depth=fixed_depth,
            max_depth=fixed_depth + levels,
            count_epsilon=Fraction(1),  # no count of this plan is released
            threshold=1,
            decision_epsilon=Fraction(0),
            decision_rate=noise.rate,
            cutoff=cutoff,
            decay=noise.decay,
        )

    def choice(
        self,
        true_scores: Counts,
        *,
        sensitivity: int,
        accepts: Callable[[int], bool] | None = None,
        stage: Literal["selection", "prior", "row selection"] = "selection",
    ) -> int:
        """The place of a high score, by the exponential mechanism: scores change by `sensitivity` at most.

        Only places that are accepted take part, at least one: those drawn that are not are put aside, and another is
        drawn. So what is costly to find out, and public, need not be asked of all.
        """
        self._take(stage)
        choices = self.plan.choices[stage]
        places = np.arange(len(true_scores))
        while True:
            drawn = choose(true_scores[places], choices.each / (2 * sensitivity), self._entropy)
            if accepts is None or accepts(int(places[drawn])):
                return int(places[drawn])
            places = np.delete(places, drawn)

    def n_left(self, stage: str) -> int:
        """How often a stage can still be used."""
        return self._left.get(stage, 0)

    def noisy_sums(self, true_sums: Counts, sensitivity_squared: int, stage: str = "products") -> Counts:
        """A vector with noise: one person moves it by the square root of this at most; up to 2^20 sums."""
        if true_sums.dtype != np.int64 or true_sums.ndim != 1 or true_sums.size > LARGEST_VECTOR:
            raise ParameterError("true_sums is not one vector of up to 2^20 of int64: only those can take exact noise")
        self._take(stage)
        variance = self.plan.vectors[stage].variance(sensitivity_squared)
        return within_range(true_sums + discrete_gaussian(variance).draw(true_sums.size, self._entropy))

    def _take(self, stage: str) -> None:
        if self._left.get(stage, 0) < 1:
            raise BudgetError(f"the plan paid for no more of {stage!r}")
        self._left[stage] -= 1

    def __repr__(self) -> str:
        return f"PrepaidMechanisms({self._left})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("prepaid mechanisms are used where they were paid for")
