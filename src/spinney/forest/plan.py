"""ForestPlan: how much noise every stage of a forest gets, from public quantities only.

    classes      how many rows have each value of a target; a plan of its own, released before the others
    trees        a PrivTree for each numeric column: its shape alone
    one-way      counts of all leaves and categories, column by column
    spikes       rows in the first cells of every leaf of a tree: those that lie exactly at a round number
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
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from spinney.errors import BudgetError
from spinney.forest.release.measured import CHOICES, SCALES, NoiseLaw
from spinney.privacy.budget import Unit
from spinney.privacy.composition import least_noise
from spinney.privacy.mechanisms import (
    LARGEST_COMPOSED_VARIANCE,
    LARGEST_MEAN_SQUARED,
    SMALLEST_COMPOSED_VARIANCE,
    SMALLEST_MEAN_SQUARED,
    TREE_COST,
    UNITS,
    VARIANCE_STEP,
    Charge,
    ComposedRelease,
    DiscreteLaplaceCounts,
    GaussianTables,
    GaussianVector,
    Part,
    Selection,
    Selections,
    SplitDecisions,
    StageName,
    TreeShapes,
    WeightedTables,
    vector_variance,
)
from spinney.tree.bins import decay_for, largest_privtree_rate

# Squared mu of a choice of bounded range epsilon is about this times epsilon^2.
_CHOICE_COST = math.pi / 8
_FINE = 1 << 24
_FINER = 1 << 44
# Decisions and choices of larger rates hardly differ from certain ones; beyond, their losses leave the range of floats.
_LARGEST_RATE = Fraction(32)


@dataclass(frozen=True, slots=True)
class TableNoise:
    """Noise on the counts of `times` tables: discrete Gaussian of a variance, or discrete Laplace of a rate."""

    variance: Fraction | None
    rate: Fraction | None
    times: int

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise on one count."""
        if self.variance is not None:
            return math.sqrt(self.variance)
        assert self.rate is not None
        return math.sqrt(2) / float(self.rate)


@dataclass(frozen=True, slots=True)
class TreeNoise:
    """Noise of the decisions in `times` trees of up to `levels` levels."""

    rate: Fraction
    decay: int
    levels: int
    times: int


@dataclass(frozen=True, slots=True)
class Choices:
    """`times` choices by the exponential mechanism, each of bounded range epsilon."""

    epsilon: Fraction
    times: int


@dataclass(frozen=True, slots=True)
class VectorNoise:
    """Noise on one vector of sums; `mean_squared` was charged for all of it.

    The sums may be those that earlier releases suggest: the further one person can move them, the more noise they get.
    """

    mean_squared: Fraction

    def variance(self, sensitivity_squared: int) -> Fraction:
        """Variance of the discrete Gaussian noise on sums that a person moves by this at most, in squared distance."""
        return _above(vector_variance(self.mean_squared, sensitivity_squared))

    @property
    def times(self) -> int:
        """A vector is released once."""
        return 1


@dataclass(frozen=True, slots=True)
class WeightedNoise:
    """Noise on `times` tables of units, of which a person adds `UNITS` at most to each."""

    mean_squared: Fraction
    times: int
    unit: Unit

    @property
    def variance(self) -> Fraction:
        """Variance of the discrete Gaussian noise, in squared units."""
        return _above(vector_variance(self.mean_squared, self.unit.factor * UNITS**2))

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise on one number, in persons."""
        return math.sqrt(self.variance) / UNITS


Noise = TableNoise | TreeNoise | Choices | VectorNoise | WeightedNoise


def _noise_of(event: Part | Charge, unit: Unit) -> Noise:
    """What a charge, or a part of a composed one, pays for."""
    if isinstance(event, TreeShapes):
        return TreeNoise(event.rate, event.decay, event.levels, event.times)
    if isinstance(event, Selections):
        return Choices(event.epsilon, event.times)
    if isinstance(event, GaussianVector):
        return VectorNoise(event.mean_squared)
    if isinstance(event, WeightedTables):
        return WeightedNoise(event.mean_squared, event.times, unit)
    if isinstance(event, GaussianTables):
        return TableNoise(event.variance, None, event.times)
    times = getattr(event, "times", None) or 1
    if isinstance(event, SplitDecisions):
        return TreeNoise(event.rate, event.decay or decay_for(event.rate), event.levels, times)
    if isinstance(event, DiscreteLaplaceCounts):
        return TableNoise(None, event.epsilon / event.sensitivity, times)
    assert isinstance(event, Selection)
    return Choices(event.epsilon / times, times)


@dataclass(frozen=True, slots=True)
class Shape:
    """What there is to measure, and the parts of the budget that go to it. Public.

    A share of "products" asks for a vector of sums; without a delta there is none, and the others have its share.
    So do those of "analyses" and "utility", which there never are without a delta.
    `n_places` and `region_levels` are of the trees of places, and of their regions' counts;
    `n_stated` tables are measured as the call states them; `n_prior` choices decide where a prior is used.
    """

    n_trees: int
    levels: int
    n_one_way: int
    n_spikes: int
    n_choices: int
    n_pairs: int
    n_cliques: int
    shares: Mapping[str, Fraction]
    n_places: int = 0
    region_levels: int = 0
    n_stated: int = 0
    n_prior: int = 0


@dataclass(frozen=True, slots=True)
class ForestPlan:
    """The noise of every stage, and the charges that pay for all of it."""

    unit: Unit
    epsilon: Fraction
    delta: Fraction
    noise: Mapping[str, Noise]  # of every stage that there is
    charges: tuple[Charge, ...]

    @classmethod
    def paid_by(cls, charges: Sequence[Charge], *, epsilon: Fraction, delta: Fraction, unit: Unit) -> ForestPlan:
        """The plan whose noise is that of its charges."""
        parts = [part for event in charges for part in getattr(event, "parts", [event])]
        noise = {part.stage: _noise_of(part, unit) for part in parts}
        return cls(unit, epsilon, delta, noise, tuple(charges))

    @property
    def tables(self) -> dict[str, TableNoise]:
        """Of "classes", "one-way", "spikes", "places", "workload", "pairs" and "cliques", those that there are."""
        return {stage: noise for stage, noise in self.noise.items() if isinstance(noise, TableNoise)}

    @property
    def weighted(self) -> dict[str, WeightedNoise]:
        """Of "row one-way", "row spikes" and "row tables", those that there are."""
        return {stage: noise for stage, noise in self.noise.items() if isinstance(noise, WeightedNoise)}

    @property
    def trees(self) -> dict[str, TreeNoise]:
        """Of "trees", "regions" and "row trees", those that there are."""
        return {stage: noise for stage, noise in self.noise.items() if isinstance(noise, TreeNoise)}

    @property
    def choices(self) -> dict[str, Choices]:
        """Of "selection", "prior" and "row selection", those that there are."""
        return {stage: noise for stage, noise in self.noise.items() if isinstance(noise, Choices)}

    @property
    def vectors(self) -> dict[str, VectorNoise]:
        """Of "analyses", "products", "alikeness" and "utility", those that there are."""
        return {stage: noise for stage, noise in self.noise.items() if isinstance(noise, VectorNoise)}

    def noise_std(self, stage: str) -> float:
        """Standard deviation of a count in a stage; of weighted rows, in persons."""
        return self.weighted[stage].noise_std if stage in self.weighted else self.tables[stage].noise_std

    def noise_law(self, stage: str) -> NoiseLaw:
        """The law of the noise on a count in a stage; of weighted rows, in units."""
        if stage in self.weighted:
            return NoiseLaw("discrete gaussian", self.weighted[stage].variance)
        noise = self.tables[stage]
        if noise.rate is not None:
            return NoiseLaw("discrete laplace", noise.rate)
        assert noise.variance is not None
        return NoiseLaw("discrete gaussian", noise.variance)

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-ready data, for the card."""
        described: dict[str, Any] = {"rule": "forest", "unit": self.unit.value}
        counts: dict[str, TableNoise | WeightedNoise] = {**self.tables, **self.weighted}
        described |= {f"{stage} noise": round(noise.noise_std, 3) for stage, noise in counts.items()}
        for stage, entry in SCALES.items():
            if stage in self.trees:
                described[entry] = round(float(1 / self.trees[stage].rate), 3)
        for stage, entry in CHOICES.items():
            if stage in self.choices:
                described[entry] = round(float(self.choices[stage].epsilon), 6)
        for stage, vector in self.vectors.items():
            described[f"{stage} mean squared"] = float(f"{float(vector.mean_squared):.9g}")
        return described


def forest_plan(shape: Shape, *, epsilon: Fraction, delta: Fraction, unit: Unit) -> ForestPlan:
    """The plan with the least noise that certainly costs no more than (epsilon, delta)."""
    if not (shape.n_one_way or shape.n_pairs or shape.n_places):
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
    parts = least_noise(lambda budget: forest_parts(shape, budget, unit), epsilon, delta, unit)
    return plan_of_parts(parts, epsilon=epsilon, delta=delta, unit=unit, note="forest")


def plan_of_parts(parts: Sequence[Part], *, epsilon: Fraction, delta: Fraction, unit: Unit, note: str) -> ForestPlan:
    """The plan whose noise is that of parts which were composed within (epsilon, delta)."""
    charge = ComposedRelease(epsilon, delta, tuple(parts), note=note)
    return ForestPlan.paid_by([charge], epsilon=epsilon, delta=delta, unit=unit)


def forest_parts(shape: Shape, budget: Fraction, unit: Unit) -> tuple[Part, ...]:
    """Everything that is measured when all of it together has about `budget` of squared mu."""
    parts: list[Part] = []
    for stage, (n_trees, levels) in _trees(shape).items():
        parts.append(trees_part(stage, n_trees, levels, budget * shape.shares[stage], unit))
    for stage, times in _tables(shape).items():
        each = budget * shape.shares[stage] / times
        variance = max(_above(unit.factor / each), SMALLEST_COMPOSED_VARIANCE)
        if variance > LARGEST_COMPOSED_VARIANCE:
            raise BudgetError(f"the noise of {times} tables would be too wide to account for; give a larger epsilon")
        parts.append(GaussianTables(variance, times, note=stage, stage=stage))
    for stage, times in _choices(shape).items():
        parts.append(choices_part(stage, times, budget * shape.shares[stage]))
    for vector in _vectors(shape):
        mean_squared = vector_mean(budget * shape.shares[vector], "a vector of sums")
        parts.append(GaussianVector(mean_squared, note=vector, stage=vector))
    return tuple(parts)


def trees_part(stage: StageName, times: int, levels: int, budget: Fraction, unit: Unit) -> TreeShapes:
    """Trees that have about `budget` of squared mu together."""
    rate = min(_below(math.sqrt(float(budget / times) / (TREE_COST * unit.factor))), _LARGEST_RATE)
    return TreeShapes(rate, decay_for(rate), levels, times, note=stage, stage=stage)


def choices_part(stage: StageName, times: int, budget: Fraction) -> Selections:
    """Choices that have about `budget` of squared mu together."""
    choice = min(_below(math.sqrt(float(budget / times) / _CHOICE_COST)), _LARGEST_RATE)
    return Selections(choice, times, note=stage, stage=stage)


def vector_mean(budget: Fraction, what: str) -> Fraction:
    """The squared mean of a vector that has `budget`, or a BudgetError where that is too little to account for."""
    mean_squared = Fraction(math.floor(budget * _FINER), _FINER)
    if mean_squared < SMALLEST_MEAN_SQUARED:
        raise BudgetError(f"the noise of {what} would be too wide to account for; give a larger epsilon")
    return min(mean_squared, LARGEST_MEAN_SQUARED)


# --------------------------------------------------------------------------------------------------------- pure epsilon


def _pure_plan(shape: Shape, epsilon: Fraction, unit: Unit) -> ForestPlan:
    charges: list[Charge] = []
    for stage, (n_trees, levels) in _trees(shape).items():
        share = epsilon * shape.shares[stage]
        rate, decay = largest_privtree_rate(share / n_trees, levels=levels, unit=unit)
        tree = ("column tree", "column trees") if stage == "trees" else ("tree of places", "trees of places")
        note = f"shapes of {n_trees} {tree[n_trees > 1]}"
        charges.append(
            SplitDecisions(share, "privtree", rate, levels, note=note, stage=stage, times=n_trees, decay=decay)
        )
    for stage, times in _tables(shape).items():
        share = epsilon * shape.shares[stage]
        note = f"{stage}: {times} {'table' if times == 1 else 'tables'}"
        charges.append(DiscreteLaplaceCounts(share, times * unit.factor, note, stage=stage, times=times))
    for stage, times in _choices(shape).items():
        share = epsilon * shape.shares[stage]
        what = "columns to look at together" if stage == "selection" else "where to use the prior"
        note = f"{times} {'choice' if times == 1 else 'choices'} of {what}"
        charges.append(Selection(share, note, stage=stage, times=times))
    return ForestPlan.paid_by(charges, epsilon=epsilon, delta=Fraction(0), unit=unit)


def _without_products(shape: Shape) -> Shape:
    """The shape without a vector of sums, whose share the others have, each as much more as all."""
    others = {stage: share for stage, share in shape.shares.items() if stage != "products"}
    whole, rest = sum(shape.shares.values(), Fraction(0)), sum(others.values(), Fraction(0))
    return replace(shape, shares={stage: share * whole / rest for stage, share in others.items()})


def _trees(shape: Shape) -> dict[StageName, tuple[int, int]]:
    """How many trees each stage grows, and of how many levels; stages without any left out."""
    numbers: dict[StageName, tuple[int, int]] = {
        "trees": (shape.n_trees, shape.levels),
        "regions": (shape.n_places, shape.region_levels),
    }
    return {stage: trees for stage, trees in numbers.items() if trees[0]}


def _choices(shape: Shape) -> dict[StageName, int]:
    """How many choices each stage makes; stages without any left out."""
    numbers: dict[StageName, int] = {"selection": shape.n_choices, "prior": shape.n_prior}
    return {stage: times for stage, times in numbers.items() if times}


def _vectors(shape: Shape) -> list[StageName]:
    """The vectors of sums that have a share."""
    stages: tuple[StageName, ...] = ("analyses", "products", "utility")
    return [stage for stage in stages if shape.shares.get(stage)]


def _tables(shape: Shape) -> dict[StageName, int]:
    """How many tables each stage measures; stages without any left out."""
    numbers: dict[StageName, int] = {
        "one-way": shape.n_one_way,
        "spikes": shape.n_spikes,
        "places": shape.n_places,
        "workload": shape.n_stated,
        "pairs": shape.n_pairs,
        "cliques": shape.n_cliques,
    }
    return {stage: times for stage, times in numbers.items() if times}


def _below(value: float) -> Fraction:
    """A fraction at or a little below a positive number, of a short denominator."""
    return max(Fraction(math.floor(value * _FINE), _FINE), Fraction(1, _FINE))


def _above(value: Fraction) -> Fraction:
    """A fraction at or a little above a positive number, of a short denominator."""
    return math.ceil(value / VARIANCE_STEP) * VARIANCE_STEP
