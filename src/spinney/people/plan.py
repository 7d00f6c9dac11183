"""The noise of a model of persons: a forest of persons and tables of their rows, paid for together.

    row trees       a PrivTree for each numeric column of rows, on one random row a person: its shape alone
    row one-way     units in all leaves and categories, column by column
    row spikes      units in the first cells of every leaf, where round numbers lie
    alikeness       how much two rows of a person have in common, one vector
    row selection   what rows depend on, one exponential mechanism a choice
    row tables      units of a few columns of rows and what they depend on

All of it and the forest's own stages are one composed charge. A delta is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from spinney.forest.plan import (
    ForestPlan,
    Shape,
    choices_part,
    forest_parts,
    plan_of_parts,
    trees_part,
    vector_mean,
)
from spinney.privacy.budget import Unit
from spinney.privacy.composition import GaussianVector, Part, least_noise
from spinney.privacy.parts import WeightedTables
from spinney.privacy.stages import StageName

# The part of the budget that rows get; the persons have the rest.
ROWS_SHARE = Fraction(55, 100)
# How rows share theirs, before those of stages that a table does not have are given to the others.
_SHARES: dict[StageName, Fraction] = {
    "row trees": Fraction(7, 100),
    "row one-way": Fraction(17, 100),
    "row spikes": Fraction(2, 100),
    "alikeness": Fraction(3, 100),
    "row selection": Fraction(7, 100),
    "row tables": Fraction(64, 100),
}


@dataclass(frozen=True, slots=True)
class RowsShape:
    """How much there is to measure of all tables of rows together. Public."""

    n_trees: int
    levels: int
    n_one_way: int
    n_tables: int
    n_choices: int

    @property
    def times(self) -> dict[StageName, int]:
        """How often each stage is used; stages that are not, left out."""
        numbers: dict[StageName, int] = {
            "row trees": self.n_trees,
            "row one-way": self.n_one_way,
            "row spikes": self.n_trees,
            "alikeness": 1,
            "row selection": self.n_choices,
            "row tables": self.n_tables,
        }
        return {stage: times for stage, times in numbers.items() if times}


def people_plan(rows: RowsShape, *, epsilon: Fraction, delta: Fraction, unit: Unit) -> Callable[[Shape], ForestPlan]:
    """Gives the plan with the least noise, for the shape of the forest of persons, that costs (epsilon, delta)."""

    def plan_of(shape: Shape) -> ForestPlan:
        def parts(budget: Fraction) -> tuple[Part, ...]:
            of_persons = forest_parts(shape, budget * (1 - ROWS_SHARE), unit)
            return (*of_persons, *row_parts(rows, budget * ROWS_SHARE, unit))

        composed = least_noise(parts, epsilon, delta, unit)
        return plan_of_parts(composed, epsilon=epsilon, delta=delta, unit=unit, note="persons and their rows")

    return plan_of


def row_parts(rows: RowsShape, budget: Fraction, unit: Unit) -> tuple[Part, ...]:
    """All that is measured of rows when it has about `budget` of squared mu."""
    times = rows.times
    used = sum(_SHARES[stage] for stage in times)
    found: list[Part] = []
    for stage, number in times.items():
        given = budget * _SHARES[stage] / used
        if stage == "row trees":
            found.append(trees_part(stage, number, rows.levels, given, unit))
        elif stage == "row selection":
            found.append(choices_part(stage, number, given))
        elif stage == "alikeness":
            found.append(GaussianVector(vector_mean(given, "alikeness"), note=stage, stage=stage))
        else:
            each = vector_mean(given / number, f"{number} tables of rows")
            found.append(WeightedTables(each, number, note=stage, stage=stage))
    return tuple(found)
