"""Implicit empty space against the explicit twin, on trees too large to list.

The twin in `tests/support/slow_trees.py` visits every node and draws noise for each. Copies are independent, bins
within one copy are not, so what is compared are numbers of which each copy has one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

import spinney as sp
from spinney.privacy.budget import Unit
from spinney.tree.plan import SplitPlan, paper_plan, privtree_plan
from support.goodness_of_fit import ACCEPT, REJECT, p_value_of_two
from support.repeated_releases import lattice_of, line_of, release_copies
from support.slow_trees import Bins, explicit_release, possible_mask

DEPTH = 9
N_COPIES = 2**14
EMPTY = (0,) * 2**DEPTH


def tree(make, decisions: str, cutoff: int) -> SplitPlan:
    return make(
        unit=Unit.REPLACE_ONE,
        fixed_depth=1,
        max_depth=DEPTH,
        decision_epsilon=Fraction(decisions),
        count_epsilon=Fraction(1),
        cutoff=cutoff,
        threshold=2,
    )


# An empty node of the paper's tree splits with chance 0.45 here: subtrees die out slowly and reach the last level.
PLANS = {"paper": tree(paper_plan, "1", 1), "privtree": tree(privtree_plan, "1", 0)}


def rows_in(*cells: int) -> tuple[int, ...]:
    table = [0] * 2**DEPTH
    for cell in cells:
        table[cell] += 1
    return tuple(table)


TABLES = {"no rows": EMPTY, "some rows": rows_in(3, 3, 3, 4, 200, 200, 201, 500)}


def number(bins: Bins) -> list[int]:
    return np.bincount(bins.copy, minlength=N_COPIES).tolist()


def deepest(bins: Bins) -> list[int]:
    found = np.zeros(N_COPIES, dtype=np.int64)
    np.maximum.at(found, bins.copy, bins.depth)
    return found.tolist()


def shallowest(bins: Bins) -> list[int]:
    found = np.full(N_COPIES, 99)
    np.minimum.at(found, bins.copy, bins.depth)
    return found.tolist()


def largest_count(bins: Bins) -> list[int]:
    found = np.zeros(N_COPIES, dtype=np.int64)
    np.maximum.at(found, bins.copy, bins.noisy_count)
    return found.tolist()


def first_place(bins: Bins) -> list[int]:
    """Where the leftmost bin begins, in sixteenths of the line."""
    start = bins.prefix << (DEPTH - bins.depth)
    found = np.full(N_COPIES, 2**DEPTH)
    np.minimum.at(found, bins.copy, start)
    return (found * 16 >> DEPTH).tolist()


SUMMARIES: list[Callable[[Bins], list[int]]] = [number, deepest, shallowest, largest_count, first_place]


def least_p_value(first: Bins, second: Bins) -> float:
    return min(p_value_of_two(Counter(summary(first)), Counter(summary(second))) for summary in SUMMARIES)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_release_has_the_law_of_the_explicit_twin(plan: SplitPlan, table: tuple[int, ...]) -> None:
    """Number, depth, place and count of bins agree with noise on every node, and disagree with three wrong twins."""
    released = release_copies([table] * N_COPIES, plan, line_of(DEPTH), seed=21)

    def twin(**wrong) -> Bins:
        return explicit_release(table, plan, n_copies=N_COPIES, rng=np.random.default_rng(22), **wrong)

    assert least_p_value(released, twin()) > ACCEPT
    assert least_p_value(released, twin(noise_factor=0.7)) < REJECT
    assert least_p_value(released, twin(noise_factor=1.3)) < REJECT
    assert least_p_value(released, twin(splits_empty=False)) < REJECT


def test_release_has_the_law_of_the_explicit_twin_with_impossible_cells() -> None:
    """Categories and nulls leave 120 of 512 codes possible; forgetting the rest does not bend the law."""
    columns = {
        "a": sp.Category(list(range(5))),
        "b": sp.Category(["x", "y", "z"], nullable=True),
        "c": sp.Category(["p", "q", "r"]),
        "d": sp.Boolean(),
    }
    lattice = lattice_of(columns)
    assert lattice.depth == DEPTH
    mask = possible_mask(lattice, DEPTH)
    assert sum(mask) == 5 * 4 * 3 * 2
    plan = PLANS["paper"]
    released = release_copies([EMPTY] * N_COPIES, plan, columns, seed=23)

    def twin(possible: tuple[bool, ...] | None) -> Bins:
        return explicit_release(EMPTY, plan, n_copies=N_COPIES, rng=np.random.default_rng(24), possible=possible)

    assert least_p_value(released, twin(mask)) > ACCEPT
    assert least_p_value(released, twin(None)) < REJECT
