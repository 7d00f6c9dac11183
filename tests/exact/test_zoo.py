"""Each sabotaged mechanism is caught by a check that the sound one passes."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import spinney as sp
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.mechanisms import NotPrivate
from spinney.tree.kdtree import release_tree
from spinney.tree.plan import SplitPlan, paper_plan, privtree_plan
from support.goodness_of_fit import ACCEPT, REJECT
from support.handmade_leaves import noisy_part
from support.output_laws import ReleaseLaw, stacked_tables, worst_loss
from support.sabotaged_trees import CAGES, Check, Release


@cache
def _of_the_real_one(check: Check) -> float:
    return check(release_tree)


@pytest.mark.parametrize(("check", "sabotaged"), CAGES.values(), ids=CAGES)
def test_sabotage_is_caught(check: Check, sabotaged: Release) -> None:
    """The check accepts `release_tree` and rejects the same mechanism with one mistake in it."""
    assert _of_the_real_one(check) > ACCEPT
    assert check(sabotaged) < REJECT


# ------------------------------------------------------------------------------------------------ data-driven boxes

PUBLIC = sp.Schema({"x": sp.Real(-100, 100)})
TABLE = np.linspace(-5, 5, 200)[:, None]
NEIGHBOUR = np.vstack([TABLE[:-1], [[40.0]]])  # one row moved far out


def stated_box(table: np.ndarray, moments: bool):
    return sp.KDTreeSynthesizer(1, moments=moments).fit(table, PUBLIC, entropy=UnsafeSeededEntropy(0))


def data_driven_box(table: np.ndarray, moments: bool):
    """The paper's lines 3-6: the box that the points fill, passed off as public."""
    schema = sp.Schema({"x": sp.Real(float(table.min()), float(table.max()))})
    return sp.KDTreeSynthesizer(1, moments=moments).fit(table, schema, entropy=UnsafeSeededEntropy(0))


def confessed_box(table: np.ndarray, moments: bool):
    schema = sp.Schema({"x": sp.Real(bounds="from-data-not-private")})
    return sp.KDTreeSynthesizer(1, moments=moments).fit(table, schema, entropy=UnsafeSeededEntropy(0))


def box_is_public_or_confessed(fit, moments: bool) -> bool:
    """One moved row does not move the box of the release; or the ledger says that nothing is promised."""
    models = [fit(table, moments) for table in (TABLE, NEIGHBOUR)]
    if all(any(isinstance(event, NotPrivate) for event in model.ledger_.events) for model in models):
        return True
    first, second = (noisy_part(model.release_).lattice.axes for model in models)
    return first == second


@pytest.mark.parametrize("moments", [True, False], ids=["moments", "bins"])
def test_data_driven_box_is_caught(moments: bool) -> None:
    """A box read off the data is noticed from one moved row; stated bounds pass, and so does the branded mode."""
    assert box_is_public_or_confessed(stated_box, moments)
    assert box_is_public_or_confessed(confessed_box, moments)
    assert not box_is_public_or_confessed(data_driven_box, moments)


# ------------------------------------------------------------------------------------------------ laws of the zoo


class NoClamp(ReleaseLaw):
    def score(self, count: int, level: int) -> int:
        return count - level * self.plan.decay


class NoDepth(ReleaseLaw):
    def score(self, count: int, level: int) -> int:
        return max(count, self.plan.cutoff - self.plan.decay)


class HalfCountNoise(ReleaseLaw):
    def __init__(self, plan: SplitPlan) -> None:
        super().__init__(replace(plan, count_epsilon=2 * plan.count_epsilon))


class HalfDecisionNoise(ReleaseLaw):
    def __init__(self, plan: SplitPlan) -> None:
        super().__init__(replace(plan, decision_rate=2 * plan.decision_rate))


class AlmostNeverSplitsEmpty(ReleaseLaw):
    """Empty nodes split with a millionth of their chance; "never" would make the loss infinite."""

    def splits(self, count: int, depth: int) -> tuple[float, float]:
        split, stay = super().splits(count, depth)
        if count == 0 and 0 < split < 1:
            return split * 1e-6, 1 - split * 1e-6
        return split, stay


class ThresholdBeforeNoise(ReleaseLaw):
    """Leaves below the threshold are released with a millionth of their chance, those above always."""

    def passes(self, count: int) -> tuple[float, float]:
        return (1 - 1e-6, 1e-6) if count >= self.plan.threshold else (1e-6, 1 - 1e-6)

    def shows(self, count: int, y: int) -> float:
        return super().shows(count, y) * self.passes(count)[0]


def plan_of(make, unit: Unit) -> SplitPlan:
    return make(
        unit=unit,
        fixed_depth=1,
        max_depth=5,
        decision_epsilon=Fraction(1),
        count_epsilon=Fraction(1, 2),
        cutoff=0,
        threshold=1,
    )


EXACT_ZOO = [
    (privtree_plan, NoClamp),
    (privtree_plan, NoDepth),
    (privtree_plan, HalfCountNoise),
    (privtree_plan, HalfDecisionNoise),
    (privtree_plan, AlmostNeverSplitsEmpty),
    (privtree_plan, ThresholdBeforeNoise),
    (paper_plan, HalfCountNoise),
    (paper_plan, HalfDecisionNoise),
    (paper_plan, AlmostNeverSplitsEmpty),
    (paper_plan, ThresholdBeforeNoise),
]


@pytest.mark.parametrize("unit", [Unit.REPLACE_ONE, Unit.ADD_REMOVE], ids=str)
@pytest.mark.parametrize(("make", "law"), EXACT_ZOO, ids=[f"{m.__name__[:-5]} {z.__name__}" for m, z in EXACT_ZOO])
def test_exact_loss_of_sabotage_exceeds_epsilon(make, law: type[ReleaseLaw], unit: Unit) -> None:
    """The exact loss of the sound mechanism is within epsilon; that of each sabotaged one is over 5 % beyond."""
    plan = plan_of(make, unit)
    tables = list(stacked_tables(2**plan.max_depth, 4))
    assert worst_loss(ReleaseLaw(plan), iter(tables)) <= float(plan.epsilon) + 1e-9
    loss = worst_loss(law(plan), iter(tables))
    assert math.isfinite(loss)
    assert loss > 1.05 * float(plan.epsilon)
