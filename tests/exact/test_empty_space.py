"""The branching process of empty space has exactly the law of the tree in which every empty node draws its own noise.

Explicit side: list every shape of the tree and every set of leaves that pass, multiply the chances, add up what
shows the same bins. Implicit side: the chances that `nothing_survives` and `EmptySpace._fates` give, followed
from root to leaf as `EmptySpace.release` follows them. Both are balls of real numbers that must overlap and be
narrower than 1e-30.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import pairwise, product

import flint
import pytest

import spinney as sp
from spinney.privacy.budget import Unit
from spinney.tree.kdtree import EmptySpace, nothing_survives
from spinney.tree.plan import SplitPlan, grid_plan, paper_plan, privtree_plan
from support.in_one_test import in_one_test
from support.output_laws import ReleaseLaw
from support.repeated_releases import lattice_of, line_of
from support.slow_trees import Node, is_possible_node, possible_mask

Law = dict[frozenset[Node], flint.arb]
WIDTH = 1e-30


def tree(make, depths: tuple[int, int], cutoff: int = 1, threshold: int = 2) -> SplitPlan:
    return make(
        unit=Unit.REPLACE_ONE,
        fixed_depth=depths[0],
        max_depth=depths[1],
        decision_epsilon=Fraction(2),
        count_epsilon=Fraction(1, 3),
        cutoff=cutoff,
        threshold=threshold,
    )


PLANS = {
    "grid": grid_plan(unit=Unit.ADD_REMOVE, depth=3, epsilon=Fraction(1, 3), threshold=2),
    "paper": tree(paper_plan, (0, 3)),
    "paper, fixed levels": tree(paper_plan, (2, 3), cutoff=0),
    "privtree": tree(privtree_plan, (0, 3)),
    "privtree, fixed level": tree(privtree_plan, (1, 3), cutoff=0, threshold=1),
}
COLUMNS = {
    "full": line_of(3),
    "five of eight": {"c": sp.Category(["a", "b", "c", "d", "e"])},
    "nulls": {"c": sp.Category(["a", "b", "c"], nullable=True)},
    "two axes": {"c": sp.Category(["a", "b", "c"]), "d": sp.Boolean()},
}


def upper_tail(rate: Fraction, t: int) -> flint.arb:
    """P(X >= t) by adding up the mass below or above, term by term: a geometric series in closed form."""
    a = (-flint.arb(flint.fmpq(rate.numerator, rate.denominator))).exp()
    at_least_one = a / (1 + a)
    if t >= 1:
        return at_least_one * a ** (t - 1)
    mass_at_zero = (1 - a) / (1 + a)
    return at_least_one + sum((mass_at_zero * a**k for k in range(-t + 1)), flint.arb(0))


def split_chance(plan: SplitPlan, depth: int) -> flint.arb:
    if depth < plan.fixed_depth:
        return flint.arb(1)
    score = 0 if plan.rule == "paper" else max(-(depth - plan.fixed_depth) * plan.decay, plan.cutoff - plan.decay)
    return upper_tail(plan.decision_rate, plan.cutoff + 1 - score)


def explicit_law(plan: SplitPlan, lattice, node: Node = (0, 0)) -> Law:
    """Every shape and every set of passing leaves below a node, one by one; impossible nodes do not exist."""
    depth, prefix = node
    if not is_possible_node(node, lattice):
        return {frozenset(): flint.arb(1)}
    passes = upper_tail(plan.count_rate, plan.threshold)
    split = split_chance(plan, depth) if depth < plan.max_depth else flint.arb(0)
    law: Law = defaultdict(lambda: flint.arb(0))
    law[frozenset([node])] += (1 - split) * passes
    law[frozenset()] += (1 - split) * (1 - passes)
    if depth < plan.max_depth:
        left = explicit_law(plan, lattice, (depth + 1, 2 * prefix))
        right = explicit_law(plan, lattice, (depth + 1, 2 * prefix + 1))
        for (a, p), (b, q) in product(left.items(), right.items()):
            law[a | b] += split * p * q
    return law


def implicit_law(plan: SplitPlan, lattice) -> Law:
    """The law of what `EmptySpace.release` does with the root: survive, draw a fate, forget what is impossible."""
    space, nothing = EmptySpace(plan, lattice), nothing_survives(plan)

    def given_survival(node: Node) -> Law:
        depth, prefix = node
        if depth == plan.max_depth:
            return {frozenset([node]): flint.arb(1)}
        cumulative = [flint.arb(0), *space._fates(depth), flint.arb(1)]
        leaf, left, right, both = (b - a for a, b in pairwise(cumulative))
        law: Law = defaultdict(lambda: flint.arb(0))
        law[frozenset([node])] += leaf
        below_left, below_right = (_kept(given_survival((depth + 1, 2 * prefix + bit)), lattice) for bit in (0, 1))
        for bins, p in below_left.items():
            law[bins] += left * p
        for bins, p in below_right.items():
            law[bins] += right * p
        for (a, p), (b, q) in product(below_left.items(), below_right.items()):
            law[a | b] += both * p * q
        return law

    law: Law = defaultdict(lambda: flint.arb(0))
    law[frozenset()] += nothing[0]
    for bins, p in _kept(given_survival((0, 0)), lattice).items():
        law[bins] += (1 - nothing[0]) * p
    return law


def _kept(law: Law, lattice) -> Law:
    kept: Law = defaultdict(lambda: flint.arb(0))
    for bins, p in law.items():
        kept[frozenset(node for node in bins if is_possible_node(node, lattice))] += p
    return kept


def largest_gap(first: Law, second: Law) -> float:
    """How far apart two laws can be, in the worst output, with the width of the balls added."""
    gaps = [abs(first.get(o, flint.arb(0)) - second.get(o, flint.arb(0))) for o in first.keys() | second.keys()]
    return max(float(gap.upper()) for gap in gaps)


@in_one_test("columns", COLUMNS.values(), ids=COLUMNS)
@in_one_test("plan", PLANS.values(), ids=PLANS)
def test_branching_process_has_the_explicit_law(plan: SplitPlan, columns) -> None:
    """Output by output, the implicit and the explicit chance agree to thirty places, impossible cells included."""
    lattice = lattice_of(columns)
    with flint.ctx.workprec(256):
        explicit, implicit = explicit_law(plan, lattice), implicit_law(plan, lattice)
        assert largest_gap(explicit, implicit) < WIDTH
        assert float(abs(sum(explicit.values(), flint.arb(0)) - 1).upper()) < WIDTH


@pytest.mark.parametrize("name", ["paper", "privtree"])
def test_other_laws_of_empty_space_are_told_apart(name: str) -> None:
    """The comparison sees a threshold that is one too high and empty nodes that never split."""
    plan, lattice = PLANS[name], lattice_of(COLUMNS["full"])
    with flint.ctx.workprec(256):
        explicit = explicit_law(plan, lattice)
        higher = tree({"paper": paper_plan, "privtree": privtree_plan}[name], (0, 3), threshold=plan.threshold + 1)
        assert largest_gap(explicit, implicit_law(higher, lattice)) > 1e-3
        passes = upper_tail(plan.count_rate, plan.threshold)
        unsplit: Law = {frozenset([(0, 0)]): passes, frozenset(): 1 - passes}
        assert largest_gap(explicit, unsplit) > 1e-3


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_plan_chances_agree_with_the_release_law(plan: SplitPlan) -> None:
    """What the plan says about empty nodes, and q(0), are what the law of a table without rows says."""
    law = ReleaseLaw(plan)
    for depth in range(plan.max_depth + 1):
        assert float(plan.empty_split_chance(depth)) == pytest.approx(law.splits(0, depth)[0], rel=1e-12)
    assert float(plan.empty_pass_chance()) == pytest.approx(law.passes(0)[0], rel=1e-12)
    empty = (0,) * 2**plan.max_depth
    assert float(nothing_survives(plan)[0]) == pytest.approx(law.nothing(empty, law.possible), rel=1e-12)


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_expected_number_of_empty_bins_is_exact(plan: SplitPlan) -> None:
    """The public size bound equals the mean number of bins of the explicit law."""
    with flint.ctx.workprec(128):
        law = explicit_law(plan, lattice_of(COLUMNS["full"]))
        mean = sum((len(bins) * p for bins, p in law.items()), flint.arb(0))
    assert plan.expected_empty_bins() == pytest.approx(float(mean), rel=1e-12)


def test_impossible_half_is_never_counted() -> None:
    """On a lattice with nulls four of eight cells are possible: the checks above are not about full trees only."""
    lattice = lattice_of(COLUMNS["nulls"])
    assert possible_mask(lattice, 3) == (True, True, True, False, True, False, False, False)
