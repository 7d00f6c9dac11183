"""The paper's implicit sampler of empty bins is not epsilon-DP as printed; ours is.

Printed: empty nodes are never split in the data-dependent part (a lemma says that with probability 1-delta none
would be), and the empty bins of the resulting tree are released binomially, which is the same as one by one.
The law is that of the paper's tree with one change, and the change is fatal: a bin below an empty node of the
last fixed level can be released from one table and never from its neighbour.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from spinney.privacy.budget import Unit
from spinney.tree.plan import SplitPlan, paper_plan
from support.output_laws import ReleaseLaw, as_bins, largest_ratio


class PrintedLaw(ReleaseLaw):
    """Algorithms 3 and 5 as printed: empty nodes stop splitting where decisions begin."""

    def splits(self, count: int, depth: int) -> tuple[float, float]:
        if count == 0 and depth >= self.plan.fixed_depth:
            return 0.0, 1.0
        return super().splits(count, depth)


def plan_with(unit: Unit, cutoff: int) -> SplitPlan:
    return paper_plan(
        unit=unit,
        fixed_depth=1,
        max_depth=3,
        decision_epsilon=Fraction(1),
        count_epsilon=Fraction(1),
        cutoff=cutoff,
        threshold=2,
    )


def lemma_cutoff(n_rows: int, delta: float) -> int:
    """The paper's tau for depths 1 and 3 and epsilon' = 1: no empty node splits except with chance delta."""
    levels = 2
    return math.ceil(2 * levels * math.log((2**1 + n_rows * levels) / delta))


@pytest.mark.parametrize("unit", [Unit.REPLACE_ONE, Unit.ADD_REMOVE], ids=str)
@pytest.mark.parametrize("n_rows", [1, 5, 100])
def test_printed_sampler_has_infinite_loss(unit: Unit, n_rows: int) -> None:
    """With any number of rows, some output is possible from one table and impossible from its neighbour."""
    law = PrintedLaw(plan_with(unit, cutoff=lemma_cutoff(n_rows, delta=1e-6)))
    table = (n_rows - 1, 0, 0, 0, 1, 0, 0, 0)
    neighbour = (n_rows - (unit is Unit.ADD_REMOVE), 0, 0, 0, 0, 0, 0, 0)
    from_table, from_neighbour = law.distribution(table, cap=1), law.distribution(neighbour, cap=1)
    assert largest_ratio(from_table, from_neighbour) == math.inf

    # What gives the row away: any bin strictly below the right half, where the neighbour has no rows.
    telling = {output for output, chance in from_table.items() if chance and not from_neighbour.get(output)}
    assert telling
    assert all(any(depth > 1 and prefix >> (depth - 1) for depth, prefix, _ in as_bins(output)) for output in telling)


@pytest.mark.parametrize("unit", [Unit.REPLACE_ONE, Unit.ADD_REMOVE], ids=str)
@pytest.mark.parametrize("n_rows", [1, 5, 100])
def test_exact_branching_repairs_the_same_pair(unit: Unit, n_rows: int) -> None:
    """The law with noise on empty nodes stays within epsilon on the pair that breaks the printed one."""
    plan = plan_with(unit, cutoff=lemma_cutoff(n_rows, delta=1e-6))
    table = (n_rows - 1, 0, 0, 0, 1, 0, 0, 0)
    neighbour = (n_rows - (unit is Unit.ADD_REMOVE), 0, 0, 0, 0, 0, 0, 0)
    assert 0 < ReleaseLaw(plan).loss(table, neighbour) <= float(plan.epsilon) + 1e-9


def test_the_lemma_bounds_how_often_the_printed_sampler_fails() -> None:
    """The telling outputs are rarer than the lemma's delta at its cutoff, and common at a cutoff of 0."""
    table, neighbour = (4, 0, 0, 0, 1, 0, 0, 0), (5, 0, 0, 0, 0, 0, 0, 0)
    chance_of_telling = {}
    for cutoff in (0, lemma_cutoff(5, delta=1e-3)):
        law = PrintedLaw(plan_with(Unit.REPLACE_ONE, cutoff))
        from_table, from_neighbour = law.distribution(table, cap=1), law.distribution(neighbour, cap=1)
        chance_of_telling[cutoff] = sum(p for output, p in from_table.items() if not from_neighbour.get(output))
    assert chance_of_telling[0] > 0.1
    assert 0 < chance_of_telling[lemma_cutoff(5, delta=1e-3)] < 1e-3
