"""The mechanism draws from the law whose privacy loss `tests/exact` computes.

Thousands of copies of a small tree are released in one call and their outputs counted, whole outputs and not
summaries of them. The counts fit the exact law, and fit no law with other noise, another cutoff, another
threshold or another decay.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest

import spinney as sp
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.ledger import Ledger
from spinney.tree.kdtree import release_grid, release_tree
from spinney.tree.plan import SplitPlan, grid_plan, paper_plan, privtree_plan
from support.goodness_of_fit import ACCEPT, REJECT, p_value
from support.output_laws import ReleaseLaw, as_bins
from support.repeated_releases import counts_of, lattice_of, law_p_value, line_of, split_copies


def tree(make, unit: Unit, depths: tuple[int, int], cutoff: int = 1) -> SplitPlan:
    return make(
        unit=unit,
        fixed_depth=depths[0],
        max_depth=depths[1],
        decision_epsilon=Fraction(2),
        count_epsilon=Fraction(1),
        cutoff=cutoff,
        threshold=1,
    )


PLANS = {
    "paper": tree(paper_plan, Unit.REPLACE_ONE, (0, 2)),
    "paper, one fixed level": tree(paper_plan, Unit.ADD_REMOVE, (1, 2), cutoff=2),
    "privtree": tree(privtree_plan, Unit.REPLACE_ONE, (0, 2)),
    "privtree, add-remove": tree(privtree_plan, Unit.ADD_REMOVE, (0, 2), cutoff=0),
    "grid": grid_plan(unit=Unit.REPLACE_ONE, depth=2, epsilon=Fraction(1), threshold=2),
}
COLUMNS = {
    "line": (line_of(2), [(2, 0, 0, 0), (1, 1, 0, 1), (0, 0, 5, 0)]),
    "three values": ({"c": sp.Category(["a", "b", "c"])}, [(1, 0, 2, 0), (0, 0, 4, 0)]),
    "truth or null": ({"c": sp.Boolean(nullable=True)}, [(1, 2, 0, 0), (0, 0, 3, 0)]),
}


@pytest.mark.parametrize(("columns", "patterns"), COLUMNS.values(), ids=COLUMNS)
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_outputs_follow_the_exact_law(plan: SplitPlan, columns, patterns) -> None:
    """Every output of a small tree comes as often as its exact chance says, with rows and without."""
    assert law_p_value(plan, columns, patterns, seed=11) > ACCEPT


@pytest.mark.parametrize("make", [paper_plan, privtree_plan], ids=["paper", "privtree"])
def test_deeper_outputs_follow_the_exact_law(make) -> None:
    """Three noisy levels, where only the set of bins is compared and not their counts."""
    plan = tree(make, Unit.REPLACE_ONE, (0, 3))
    patterns = [(3, 0, 0, 0, 0, 0, 0, 1), (0, 0, 6, 0, 0, 0, 0, 0)]
    assert law_p_value(plan, line_of(3), patterns, seed=12, cap=1) > ACCEPT


def wrong_laws() -> list[tuple[str, SplitPlan, SplitPlan]]:
    """A plan and another whose law must not fit what the first releases."""
    cases = []
    for name in ("paper", "privtree"):
        plan = PLANS[name]
        changes = {
            "0.7x decision noise": {"decision_rate": plan.decision_rate * Fraction(10, 7)},
            "1.3x decision noise": {"decision_rate": plan.decision_rate * Fraction(10, 13)},
            "0.7x count noise": {"count_epsilon": plan.count_epsilon * Fraction(10, 7)},
            "1.3x count noise": {"count_epsilon": plan.count_epsilon * Fraction(10, 13)},
            "another cutoff": {"cutoff": plan.cutoff + 1},
        }
        if name == "privtree":
            changes["another decay"] = {"decay": plan.decay + 1}
        cases += [(f"{name}, {change}", plan, replace(plan, **values)) for change, values in changes.items()]
    return cases


@pytest.mark.parametrize(("plan", "wrong"), [case[1:] for case in wrong_laws()], ids=[case[0] for case in wrong_laws()])
def test_outputs_reject_wrong_laws(plan: SplitPlan, wrong: SplitPlan) -> None:
    """The same outputs are incompatible with the law of a plan that differs in one number."""
    columns, patterns = COLUMNS["line"]
    assert law_p_value(plan, columns, patterns, seed=11, law_plan=wrong) < REJECT


@pytest.mark.parametrize("table", [(0, 0, 0, 0), (2, 0, 0, 1)], ids=str)
def test_single_releases_follow_the_exact_law(table: tuple[int, ...]) -> None:
    """Releases one after the other, with a decision at the root itself, follow the same law: calls share no noise."""
    plan = PLANS["privtree"]
    lattice, entropy, n = lattice_of(line_of(2)), UnsafeSeededEntropy(13), 1500
    outcomes: Counter = Counter()
    for _ in range(n):
        counts = counts_of(lattice, [table], 2)
        bins = release_tree(counts, plan=plan, ledger=Ledger(unit=plan.unit), entropy=entropy)
        outcomes += split_copies(bins, 0).outcomes(1, largest=plan.threshold + 1)
    chances = {as_bins(output): p for output, p in ReleaseLaw(plan).distribution(table, cap=2).items()}
    assert p_value(outcomes, chances) > ACCEPT
    half_noise = ReleaseLaw(replace(plan, count_epsilon=2 * plan.count_epsilon))
    chances = {as_bins(output): p for output, p in half_noise.distribution(table, cap=2).items()}
    assert p_value(outcomes, chances) < REJECT


def test_grid_is_the_tree_that_always_splits() -> None:
    """`release_grid` releases what `release_tree` releases under the grid's plan, from the same words."""
    lattice = lattice_of({"x": sp.Integer(0, 7), "y": sp.Category(["a", "b", "c", "d"])})
    counts = counts_of(lattice, [(3, 0, 1, 0, 9, 0, 0, 0) * 4], lattice.depth)
    epsilon = Fraction(1, 2)
    plan = grid_plan(unit=Unit.REPLACE_ONE, depth=lattice.depth, epsilon=epsilon, threshold=2)
    grid = release_grid(counts, epsilon=epsilon, threshold=2, ledger=Ledger(), entropy=UnsafeSeededEntropy(3))
    tree_ = release_tree(counts, plan=plan, ledger=Ledger(), entropy=UnsafeSeededEntropy(3))
    assert len(grid) > 0
    assert grid.codes.tolist() == tree_.codes.tolist()
    assert grid.noisy_counts.tolist() == tree_.noisy_counts.tolist()
    other = release_tree(counts, plan=plan, ledger=Ledger(), entropy=UnsafeSeededEntropy(4))
    assert grid.noisy_counts.tolist() != other.noisy_counts.tolist()
