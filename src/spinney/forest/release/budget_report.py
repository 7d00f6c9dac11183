"""How a budget was spent: the stages that a release was charged for, each with its share of the budget and its noise.

Shares of pure charges are shares of epsilon. Stages that were charged together have no epsilon of their own;
their shares are shares of the squared Gaussian means, which add up:

    tables        times * factor / variance
    sums          mean_squared
    rows' tables  times * mean_squared
    choices       times * mu^2,  mu of `composition.selection_mean`
    tree shapes   times * factor * 1.65 rate^2, about what a Gaussian of the same loss has

`factor` is how many counts of a table a row or a person changes: 2 under replace-one, 1 under add-remove. The noise of
tables of persons' rows is told in persons, the unit of privacy there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from spinney.privacy.budget import Unit
from spinney.privacy.claims import rows_found
from spinney.privacy.composition import selection_mean
from spinney.privacy.ledger import (
    Charge,
    ComposedRelease,
    DiscreteLaplaceCounts,
    Event,
    LeafMoments,
    PartitionSelection,
    Selection,
    SplitDecisions,
)
from spinney.privacy.parts import (
    TREE_COST,
    UNITS,
    GaussianTables,
    GaussianVector,
    Part,
    Selections,
    TreeShapes,
    WeightedTables,
    units_variance,
)

_BY_COLUMN = ("bounds", "values")
_FIRST = "rows"
_OTHER = "other"  # what claims no stage


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a release: how often it measured, its share of the budget, and its noise in words.

    `noise_std` is the standard deviation of the noise on a count, None where no count is released.
    """

    name: str
    times: int
    share: float
    noise_std: float | None
    noise: str


def stages(events: Sequence[Event], unit: Unit) -> tuple[Stage, ...]:
    """The stages of all charges, in the order in which they were paid for; shares of what was measured add up to 1."""
    charges = [event for event in events if isinstance(event, Charge)]
    whole = sum((charge.epsilon for charge in charges), Fraction(0))
    found: list[Stage] = []
    for charge in charges:
        share = float(charge.epsilon / whole)
        if isinstance(charge, ComposedRelease):
            costs = [_squared_mean(part, unit) for part in charge.parts]
            found += [
                _stage_of_part(part, share * cost / sum(costs), unit)
                for part, cost in zip(charge.parts, costs, strict=True)
            ]
        else:
            found.append(_stage_of_charge(charge, share, unit))
    return tuple(_columns_together(found))


def _columns_together(found: Sequence[Stage]) -> list[Stage]:
    """Bounds and values are paid for column by column, all alike; here they are a stage each. Rows come first."""
    together = [stage for stage in found if stage.name == _FIRST]
    for name in _BY_COLUMN:
        stages = [stage for stage in found if stage.name == name]
        if stages:
            together.append(replace(stages[0], times=len(stages), share=sum(stage.share for stage in stages)))
    return [*together, *(stage for stage in found if stage.name not in (*_BY_COLUMN, _FIRST))]


def _squared_mean(part: Part, unit: Unit) -> float:
    if isinstance(part, GaussianTables):
        return part.times * unit.factor / float(part.variance)
    if isinstance(part, Selections):
        return part.times * selection_mean(part.epsilon) ** 2
    if isinstance(part, GaussianVector):
        return float(part.mean_squared)
    if isinstance(part, WeightedTables):
        return part.times * float(part.mean_squared)
    return part.times * unit.factor * TREE_COST * float(part.rate) ** 2


def _stage_of_part(part: Part, share: float, unit: Unit) -> Stage:
    if isinstance(part, GaussianTables):
        noise_std = math.sqrt(part.variance)
        noise = f"discrete Gaussian, standard deviation {noise_std:,.1f}"
        return Stage(part.stage or _OTHER, part.times, share, noise_std, noise)
    if isinstance(part, TreeShapes):
        return Stage(part.stage or _OTHER, part.times, share, None, _decisions(part.rate))
    if isinstance(part, GaussianVector):
        who = "person" if unit.is_person else "row"
        noise = f"discrete Gaussian, {math.sqrt(1 / part.mean_squared):,.1f} times how far one {who} moves the sums"
        return Stage(part.stage or _OTHER, part.times, share, None, noise)
    if isinstance(part, WeightedTables):
        noise_std = math.sqrt(units_variance(part.mean_squared, unit)) / UNITS
        noise = f"discrete Gaussian, standard deviation {noise_std:,.1f} persons"
        return Stage(part.stage or _OTHER, part.times, share, noise_std, noise)
    return Stage(part.stage or _OTHER, part.times, share, None, _choices(part.epsilon))


def _stage_of_charge(charge: Charge, share: float, unit: Unit) -> Stage:
    if isinstance(charge, SplitDecisions):
        return Stage(charge.stage or _OTHER, charge.times or 1, share, None, _decisions(charge.rate))
    if isinstance(charge, Selection):
        times = charge.times or 1
        return Stage(charge.stage or _OTHER, times, share, None, _choices(charge.epsilon / times))
    if isinstance(charge, PartitionSelection):
        half, most = rows_found(charge.epsilon, charge.delta, unit)
        noise = f"values found from about {half:,} rows on, nearly always from {most:,}"
        return Stage(charge.stage or _OTHER, 1, share, None, noise)
    if isinstance(charge, DiscreteLaplaceCounts):
        noise_std = _laplace_deviation(float(charge.epsilon / charge.sensitivity))
        noise = f"discrete Laplace, standard deviation {noise_std:,.1f}"
        return Stage(charge.stage or _OTHER, charge.times or 1, share, noise_std, noise)
    if isinstance(charge, LeafMoments):
        scale = float(charge.sensitivity / charge.epsilon)
        return Stage(charge.stage or _OTHER, 1, share, None, f"sup-norm noise, of scale {scale:,.1f} rows")
    return Stage(_OTHER, 1, share, None, type(charge).__name__)


def _decisions(rate: Fraction) -> str:
    return f"decisions of scale {float(1 / rate):,.1f}"


def _choices(epsilon: Fraction) -> str:
    return f"exponential mechanism, range {float(epsilon):.3g} each"


def _laplace_deviation(rate: float) -> float:
    """Standard deviation of P(k) proportional to exp(-rate |k|): sqrt(2a) / (1 - a) with a = exp(-rate)."""
    return math.sqrt(2) * math.exp(-rate / 2) / -math.expm1(-rate)
