"""ForestPlan: how much noise every stage of a forest gets, from public quantities only.

    classes      how many rows have each value of a target; a plan of its own, released before the others
    relations    rows in which pairs of columns of one kind are equal, or round parts, one vector; with a delta only
    ratios       rows by the percentage that one column is of another, one vector; with a delta only
    trees        a PrivTree for each numeric column: its shape alone
    one-way      counts of all leaves and categories, column by column
    spikes       rows in the first cells of every leaf of a tree: those that lie exactly at a round number
    grain        rows in each class of the steps that a column's values come in: round amounts, days of the week
    regions      a PrivTree for each place, over its columns together: its shape alone
    places       counts of all regions, place by place
    workload     the tables that the call states
    selection    which columns to count together, one exponential mechanism a choice
    pairs        every column with the target, where one is named
    cliques      the chosen pairs, or triples with the target
    prior        where tables of a prior are used, one exponential mechanism a choice
    analyses     sums over rows that named regressions follow from, one vector; with a delta only
    products     sums over rows of products of functions of pairs of columns, one vector; with a delta only
    utility      distances of the release from the table, one vector; without a delta a charge of its own

Where persons have many rows, the plan of persons (`people/design`) adds stages whose names begin with "row",
which count rows by weights, and "alikeness", all in the same composed charge.

With a delta, noise is discrete Gaussian and a stage's share is of mu^2 = sensitivity^2 / variance, which adds
up where standard deviations do not; how much there is to share is found by composing everything
(`privacy.composition`). Without one, noise is discrete Laplace and shares are of epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeVar

from spinney.errors import BudgetError
from spinney.forest.release.measured import NoiseLaw
from spinney.privacy.budget import Unit
from spinney.privacy.composition import least_noise
from spinney.privacy.mechanisms import (
    LARGEST_COMPOSED_VARIANCE,
    LARGEST_MEAN_SQUARED,
    SMALLEST_COMPOSED_VARIANCE,
    SMALLEST_MEAN_SQUARED,
    TREE_COST,
    Charge,
    ComposedRelease,
    DiscreteLaplaceCounts,
    GaussianTables,
    GaussianVector,
    Mechanism,
    Part,
    Selection,
    Selections,
    SplitDecisions,
    StageName,
    Tables,
    TreeShapes,
    WeightedTables,
    mechanisms_of,
    rounded_up,
)
from spinney.tree.bins import decay_for, largest_privtree_rate

# Squared mu of a choice of bounded range epsilon is about this times epsilon^2.
_CHOICE_COST = math.pi / 8
_FINE = 1 << 24
_FINER = 1 << 44
# Decisions and choices of larger rates hardly differ from certain ones; beyond, their losses leave the range of floats.
_LARGEST_RATE = Fraction(32)


# Stages in the order in which they are paid for.
_ORDER: tuple[StageName, ...] = (
    *("relations", "ratios"),
    *("trees", "regions"),
    *("one-way", "spikes", "grain", "places", "workload", "pairs", "cliques"),
    *("selection", "prior"),
    *("analyses", "products", "utility"),
    *("row trees", "row one-way", "row spikes", "alikeness", "row selection", "row tables"),
)


@dataclass(frozen=True, slots=True)
class Shape:
    """What there is to measure, and the parts of the budget that go to it. Public.

    A share of "products" asks for a vector of sums; without a delta there is none, and the others have its share.
    So do those of "analyses" and "utility", which there never are without a delta.
    """

    times: Mapping[StageName, int]  # how many trees, tables and choices there are in each stage
    shares: Mapping[StageName, Fraction]
    levels: Mapping[StageName, int] = field(default_factory=dict)  # of trees

    @property
    def stages(self) -> dict[StageName, int]:
        """How often each stage measures, those that do not left out; a vector measures once."""
        times = {stage: 1 if stage in GaussianVector.stages else self.times.get(stage, 0) for stage in _ORDER}
        return {stage: number for stage, number in times.items() if number and self.shares.get(stage)}


M = TypeVar("M", bound=Mechanism)


@dataclass(frozen=True, slots=True)
class ForestPlan:
    """The mechanism of every stage, and the charges that pay for all of them."""

    unit: Unit
    epsilon: Fraction
    delta: Fraction
    noise: Mapping[str, Mechanism]  # of every stage that there is
    charges: tuple[Charge, ...]

    @classmethod
    def paid_by(cls, charges: Sequence[Charge], *, epsilon: Fraction, delta: Fraction, unit: Unit) -> ForestPlan:
        """The plan whose mechanisms are those of its charges."""
        noise = {str(mechanism.stage): mechanism for mechanism in mechanisms_of(charges)}
        return cls(unit, epsilon, delta, noise, tuple(charges))

    @property
    def tables(self) -> dict[str, DiscreteLaplaceCounts | GaussianTables]:
        """Those of "classes", "one-way", "spikes", "grain", "places", "workload", "pairs" and "cliques" there are."""
        return self._of(DiscreteLaplaceCounts) | self._of(GaussianTables)

    @property
    def weighted(self) -> dict[str, WeightedTables]:
        """Of "row one-way", "row spikes" and "row tables", those that there are."""
        return self._of(WeightedTables)

    @property
    def trees(self) -> dict[str, SplitDecisions | TreeShapes]:
        """Of "trees", "regions" and "row trees", those that there are."""
        return self._of(SplitDecisions) | self._of(TreeShapes)

    @property
    def choices(self) -> dict[str, Selection | Selections]:
        """Of "selection", "prior" and "row selection", those that there are."""
        return self._of(Selection) | self._of(Selections)

    @property
    def vectors(self) -> dict[str, GaussianVector]:
        """Of "relations", "ratios", "analyses", "products", "alikeness" and "utility", those that there are."""
        return self._of(GaussianVector)

    def _of(self, kind: type[M]) -> dict[str, M]:
        return {stage: mechanism for stage, mechanism in self.noise.items() if isinstance(mechanism, kind)}

    def times(self, stage: str) -> int:
        """How often a stage can be used."""
        return self.noise[stage].times or 0

    def noise_std(self, stage: str) -> float:
        """Standard deviation of a count in a stage; of weighted rows, in persons."""
        return self._tables_of(stage).noise_std(self.unit)

    def noise_law(self, stage: str) -> NoiseLaw:
        """The law of the noise on a count in a stage; of weighted rows, in units."""
        return NoiseLaw.of(self._tables_of(stage), self.unit)

    def _tables_of(self, stage: str) -> Tables:
        tables = self.noise[stage]
        assert isinstance(tables, Tables)
        return tables


def forest_plan(shape: Shape, *, epsilon: Fraction, delta: Fraction, unit: Unit) -> ForestPlan:
    """The plan with the least noise that certainly costs no more than (epsilon, delta)."""
    if not any(shape.times.get(stage) for stage in ("one-way", "pairs", "places")):
        return nothing(epsilon, delta, unit)
    if delta == 0:
        return _pure_plan(_without_products(shape), epsilon, unit)
    return _gaussian_plan(shape, epsilon, delta, unit)


def nothing(epsilon: Fraction, delta: Fraction, unit: Unit) -> ForestPlan:
    """A plan that measures nothing, and costs nothing."""
    return ForestPlan(unit, epsilon, delta, {}, ())


def class_sizes_plan(name: str, *, epsilon: Fraction, unit: Unit) -> ForestPlan:
    """A plan of one table: how many rows have each value of a column. Pure, whatever the rest of the forest is."""
    note = f"classes: sizes of those of {name!r}"
    charge = DiscreteLaplaceCounts(epsilon, unit.factor, note, stage="classes", times=1, column=name)
    return ForestPlan.paid_by([charge], epsilon=epsilon, delta=Fraction(0), unit=unit)


# ----------------------------------------------------------------------------------------------------- (epsilon, delta)


def _gaussian_plan(shape: Shape, epsilon: Fraction, delta: Fraction, unit: Unit) -> ForestPlan:
    parts = least_noise(lambda budget: parts_of(shape, budget, unit), epsilon, delta, unit)
    return plan_of_parts(parts, epsilon=epsilon, delta=delta, unit=unit, note="forest")


def plan_of_parts(parts: Sequence[Part], *, epsilon: Fraction, delta: Fraction, unit: Unit, note: str) -> ForestPlan:
    """The plan whose noise is that of parts which were composed within (epsilon, delta)."""
    charge = ComposedRelease(epsilon, delta, tuple(parts), note=note)
    return ForestPlan.paid_by([charge], epsilon=epsilon, delta=delta, unit=unit)


def parts_of(shape: Shape, budget: Fraction, unit: Unit) -> tuple[Part, ...]:
    """Everything that is measured when all of it together has about `budget` of squared mu."""
    return tuple(
        _part(stage, times, budget * shape.shares[stage], shape.levels.get(stage, 0), unit)
        for stage, times in shape.stages.items()
    )


def _part(stage: StageName, times: int, budget: Fraction, levels: int, unit: Unit) -> Part:
    """A stage that has about `budget` of squared mu."""
    each = budget / times
    if stage in TreeShapes.stages:
        rate = min(_below(math.sqrt(float(each) / (TREE_COST * unit.factor))), _LARGEST_RATE)
        return TreeShapes(rate, decay_for(rate), levels, times, note=stage, stage=stage)
    if stage in Selections.stages:
        choice = min(_below(math.sqrt(float(each) / _CHOICE_COST)), _LARGEST_RATE)
        return Selections(choice, times, note=stage, stage=stage)
    if stage in GaussianVector.stages:
        what = stage if stage == "alikeness" else "a vector of sums"
        return GaussianVector(_vector_mean(each, what), note=stage, stage=stage)
    if stage in WeightedTables.stages:
        return WeightedTables(_vector_mean(each, f"{times} tables of rows"), times, note=stage, stage=stage)
    variance = max(rounded_up(unit.factor / each), SMALLEST_COMPOSED_VARIANCE)
    if variance > LARGEST_COMPOSED_VARIANCE:
        raise BudgetError(f"the noise of {times} tables would be too wide to account for; give a larger epsilon")
    return GaussianTables(variance, times, note=stage, stage=stage)


def _vector_mean(budget: Fraction, what: str) -> Fraction:
    """The squared mean of a vector that has `budget`, or a BudgetError where that is too little to account for."""
    mean_squared = Fraction(math.floor(budget * _FINER), _FINER)
    if mean_squared < SMALLEST_MEAN_SQUARED:
        raise BudgetError(f"the noise of {what} would be too wide to account for; give a larger epsilon")
    return min(mean_squared, LARGEST_MEAN_SQUARED)


# --------------------------------------------------------------------------------------------------------- pure epsilon


def _pure_plan(shape: Shape, epsilon: Fraction, unit: Unit) -> ForestPlan:
    charges = [
        _pure_charge(stage, times, epsilon * shape.shares[stage], shape.levels.get(stage, 0), unit)
        for stage, times in shape.stages.items()
    ]
    return ForestPlan.paid_by(charges, epsilon=epsilon, delta=Fraction(0), unit=unit)


def _pure_charge(stage: StageName, times: int, epsilon: Fraction, levels: int, unit: Unit) -> Charge:
    if stage in SplitDecisions.stages:
        rate, decay = largest_privtree_rate(epsilon / times, levels=levels, unit=unit)
        tree = ("column tree", "column trees") if stage == "trees" else ("tree of places", "trees of places")
        note = f"shapes of {times} {tree[times > 1]}"
        return SplitDecisions(epsilon, "privtree", rate, levels, note=note, stage=stage, times=times, decay=decay)
    if stage in Selection.stages:
        what = "columns to look at together" if stage == "selection" else "where to use the prior"
        note = f"{times} {'choice' if times == 1 else 'choices'} of {what}"
        return Selection(epsilon, note, stage=stage, times=times)
    note = f"{stage}: {times} {'table' if times == 1 else 'tables'}"
    return DiscreteLaplaceCounts(epsilon, times * unit.factor, note, stage=stage, times=times)


def _without_products(shape: Shape) -> Shape:
    """The shape without a vector of sums, whose share the others have, each as much more as all."""
    others = {stage: share for stage, share in shape.shares.items() if stage != "products"}
    whole, rest = sum(shape.shares.values(), Fraction(0)), sum(others.values(), Fraction(0))
    return replace(shape, shares={stage: share * whole / rest for stage, share in others.items()})


def _below(value: float) -> Fraction:
    """A fraction at or a little below a positive number, of a short denominator."""
    return max(Fraction(math.floor(value * _FINE), _FINE), Fraction(1, _FINE))
