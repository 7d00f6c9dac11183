"""Every output of every small release: the log-ratio between neighbours is at most epsilon, and close to it.

`laws.ReleaseLaw` computes the extremes over all outputs without sampling. Two families of tables are gone
through: all tables of up to four rows, and all tables that stack up to as many rows in two cells as the worst
case needs.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import chain

import pytest

import spinney as sp
from spinney.privacy.budget import Unit
from spinney.tree.bins import worst_path_loss
from spinney.tree.plan import SplitPlan, grid_plan, paper_plan, privtree_plan
from support.in_one_test import in_one_test
from support.output_laws import ReleaseLaw, largest_ratio, neighbours, small_tables, stacked_tables, worst_loss
from support.repeated_releases import lattice_of, line_of
from support.slow_trees import possible_mask

TOLERANCE = 1e-9
UNITS = pytest.mark.parametrize("unit", [Unit.REPLACE_ONE, Unit.ADD_REMOVE], ids=str)
MAKERS = pytest.mark.parametrize("make", [paper_plan, privtree_plan], ids=["paper", "privtree"])

LATTICES = {
    "line": line_of(3),
    "square": {"x": sp.Integer(0, 3), "y": sp.Boolean()},
    "three values": {"c": sp.Category(["a", "b", "c"])},
    "five values": {"c": sp.Category(["a", "b", "c", "d", "e"])},
    "two values or null": {"c": sp.Boolean(nullable=True)},
    "three values or null": {"c": sp.Category(["a", "b", "c"], nullable=True)},
    "three by three values": {"c": sp.Category(["a", "b", "c"]), "d": sp.Category([1, 2, 3])},
    "three values by truth": {"c": sp.Category(["a", "b", "c"]), "d": sp.Boolean()},
}


def mask_of(name: str) -> tuple[bool, ...]:
    lattice = lattice_of(LATTICES[name])
    return possible_mask(lattice, lattice.depth)


def depth_of(mask: tuple[bool, ...]) -> int:
    return len(mask).bit_length() - 1


def tree(make, unit: Unit, depths: tuple[int, int], *, decisions="1", counts="1/2", cutoff=0, threshold=1) -> SplitPlan:
    fixed_depth, max_depth = depths
    return make(
        unit=unit,
        fixed_depth=fixed_depth,
        max_depth=max_depth,
        decision_epsilon=Fraction(decisions),
        count_epsilon=Fraction(counts),
        cutoff=cutoff,
        threshold=threshold,
    )


def small_loss(law: ReleaseLaw, n_rows: int) -> float:
    """Over all tables of 1..n_rows rows."""
    return worst_loss(law, chain.from_iterable(small_tables(law.possible, n) for n in range(1, n_rows + 1)))


def proved_worst_case(plan: SplitPlan) -> float:
    """The worst case that the proofs give, decisions and counts together.

    Under replace-one the two paths of the moved row share the root. Where the root itself is decided by noise,
    both tables treat it alike and one level is free.
    """
    moves = plan.unit is Unit.REPLACE_ONE
    levels = plan.levels - (moves and plan.fixed_depth == 0)
    if plan.rule == "paper":
        # All splits on the path that gains the row, one stop on the path that loses it.
        decisions = float(plan.decision_rate) * (levels + moves)
    else:
        decisions = float(worst_path_loss(plan.decision_rate, plan.decay, levels, plan.unit))
    return decisions + float(plan.count_epsilon)


@in_one_test("threshold", [1, 3])
@in_one_test("epsilon", ["1/2", "3"])
@in_one_test("name", LATTICES)
@UNITS
def test_grid_spends_exactly_epsilon(unit: Unit, name: str, epsilon: str, threshold: int) -> None:
    """A grid's largest log-ratio over all tables of up to three rows is epsilon: no more, and nothing is wasted."""
    mask = mask_of(name)
    plan = grid_plan(unit=unit, depth=depth_of(mask), epsilon=Fraction(epsilon), threshold=threshold)
    n_rows = 3
    assert small_loss(ReleaseLaw(plan, mask), n_rows) == pytest.approx(float(Fraction(epsilon)), abs=TOLERANCE)


@pytest.mark.parametrize(("cutoff", "threshold"), [(0, 1), (1, 2), (3, 1)])
@pytest.mark.parametrize("name", LATTICES)
@MAKERS
@UNITS
def test_trees_stay_within_epsilon_on_all_small_tables(
    make, unit: Unit, name: str, cutoff: int, threshold: int
) -> None:
    """No output tells neighbours of up to four rows (three on 16 cells) apart by more than epsilon."""
    mask = mask_of(name)
    n_rows = 3 if len(mask) > 8 else 4
    for fixed_depth in range(depth_of(mask)):
        plan = tree(make, unit, (fixed_depth, depth_of(mask)), cutoff=cutoff, threshold=threshold)
        loss = small_loss(ReleaseLaw(plan, mask), n_rows)
        assert loss <= proved_worst_case(plan) + TOLERANCE
        assert loss <= float(plan.epsilon) + TOLERANCE


@pytest.mark.parametrize("decisions", ["1/2", "1", "4"])
@pytest.mark.parametrize("depths", [(0, 3), (0, 4), (1, 4), (2, 4), (2, 5)], ids=str)
@UNITS
def test_privtree_reaches_its_certified_worst_case(unit: Unit, depths: tuple[int, int], decisions: str) -> None:
    """Stacks of cutoff + (levels - 2) * decay rows attain the certified loss to nine places: it is tight.

    With a fixed level above the decisions that loss is epsilon less what the search grid of rates rounds away
    (0.1 % of epsilon').
    """
    plan = tree(privtree_plan, unit, depths, decisions=decisions)
    tallest = plan.cutoff + max(1, plan.levels - 1) * plan.decay + 1
    loss = worst_loss(ReleaseLaw(plan), _few_stacks(2**plan.max_depth, tallest, plan.decay))
    assert loss <= float(plan.epsilon) + TOLERANCE
    assert loss == pytest.approx(proved_worst_case(plan), abs=TOLERANCE)
    if unit is Unit.ADD_REMOVE or plan.fixed_depth > 0:
        assert loss >= float(plan.epsilon) - 0.001 * float(plan.decision_epsilon)


def _few_stacks(n_cells: int, tallest: int, decay: int):
    """All stacks where they are few; otherwise heights around the multiples of the decay, where the worst case sits."""
    heights = {h for i in range(tallest // decay + 1) for h in range(i * decay - 1, i * decay + 2)} | {1, tallest}
    for table in stacked_tables(n_cells, tallest):
        if tallest <= 8 or {*table} - {0} <= heights:
            yield table


@pytest.mark.parametrize("depths", [(0, 3), (1, 4), (2, 6)], ids=str)
@UNITS
def test_paper_tree_reaches_its_worst_case(unit: Unit, depths: tuple[int, int]) -> None:
    """The printed noise is exact under add-remove and generous under replace-one.

    A row that is added can make every one of the L decisions on its path more likely: L * rate = epsilon'. A
    row that moves gains L decisions on one path and, because the other path ends at its first stop, one
    decision there: (L+1) * rate, where the printed scale 2L/epsilon' pays for 2L.
    """
    plan = tree(paper_plan, unit, depths)
    loss = worst_loss(ReleaseLaw(plan), stacked_tables(2**plan.max_depth, 3))
    assert loss == pytest.approx(proved_worst_case(plan), abs=TOLERANCE)
    if unit is Unit.ADD_REMOVE:
        assert loss == pytest.approx(float(plan.epsilon), abs=TOLERANCE)
    else:
        shared = plan.fixed_depth == 0
        part = Fraction(plan.levels + 1 - shared, 2 * plan.levels)
        assert loss == pytest.approx(float(plan.count_epsilon + part * plan.decision_epsilon), abs=TOLERANCE)


@MAKERS
@UNITS
def test_small_tables_already_come_near(make, unit: Unit) -> None:
    """Tables of three rows come within 1 % of the worst case at cutoff 0 and two levels: small is not toothless."""
    plan = tree(make, unit, (1, 3))
    loss = small_loss(ReleaseLaw(plan), 3)
    assert loss >= 0.99 * proved_worst_case(plan)


@MAKERS
@UNITS
def test_extremes_agree_with_whole_laws(make, unit: Unit) -> None:
    """The recursion over extremes finds what listing every output of a small tree finds."""
    plan = tree(make, unit, (0, 2), cutoff=1, threshold=2)
    mask = mask_of("three values")
    law = ReleaseLaw(plan, mask)
    for table in small_tables(mask, 3):
        whole = law.distribution(table, cap=4)
        assert sum(whole.values()) == pytest.approx(1, abs=1e-12)
        for other in neighbours(table, unit, mask):
            listed = largest_ratio(whole, law.distribution(other, cap=4))
            assert law.loss(table, other) == pytest.approx(listed, abs=1e-10)


@MAKERS
@UNITS
def test_less_noise_is_noticed(make, unit: Unit) -> None:
    """With 10 % less decision noise, or 1 % less count noise, a release goes beyond its proved worst case."""
    plan = tree(make, unit, (1, 4))
    promised = proved_worst_case(plan)
    tables = list(stacked_tables(16, plan.cutoff + 2 * plan.decay + 2))
    quick = replace(plan, decision_rate=plan.decision_rate * Fraction(10, 9))
    assert worst_loss(ReleaseLaw(quick), iter(tables)) > promised + 0.01
    quick = replace(plan, count_epsilon=plan.count_epsilon * Fraction(100, 99))
    assert worst_loss(ReleaseLaw(quick), iter(tables)) > promised + 0.004
