"""One vector of sums with discrete noise tells no more than the Gaussian pair that it is charged as.

Laws are written out, outcome by outcome, for few sums, and by the law of their total for many; the deltas of both
orders are compared with the closed form at many epsilons. Without the variance that pays for rounding, the same
comparison fails. Then the account, and a zoo.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from spinney.privacy.budget import Unit
from spinney.privacy.composition import composed_delta, composed_deltas, selection_mean
from spinney.privacy.mechanisms import (
    LARGEST_VECTOR,
    ROUNDING_VARIANCE,
    GaussianTables,
    GaussianVector,
    Selections,
    vector_variance,
)
from support.gaussian_pairs import discrete_law, gaussian_deltas, largest_deltas, moved_sums, vector_pair
from support.goodness_of_fit import ACCEPT, REJECT
from support.in_one_test import in_one_test
from support.sabotaged_forests import Check, Sabotage
from support.sabotaged_sums import SUM_CAGES, sums_plan

UNITS = pytest.mark.parametrize("unit", [Unit.REPLACE_ONE, Unit.ADD_REMOVE], ids=str)
EPSILONS = np.linspace(-6, 8, 113)
ROUND_OFF = 1e-13
SHIFTS = [(1,), (2,), (1, 1), (2, 1), (2, 2), (-2, 2), (0, 2), (3, 1)]


def ripple(variance: float) -> float:
    """How far sums of exp(-(k-y)^2 / 2 variance) over all integers are from constant in y, relatively."""
    return 2 * sum(math.exp(-2 * math.pi**2 * variance * j * j) for j in range(1, 9))


# ------------------------------------------------------------------------------------------------ rounding by chance


def rounded_law(variance: float, rounding: float, k: np.ndarray) -> np.ndarray:
    """Y from N(0, variance - rounding), then an integer near Y by chance: the chance of every k, by trapezoids."""
    step = 1 / 256
    y = np.arange(-20, 20, step)
    density = np.exp(-(y**2) / (2 * (variance - rounding))) / math.sqrt(2 * math.pi * (variance - rounding))
    near = np.arange(-40, 41)
    weights = np.exp(-((near[:, None] - y) ** 2) / (2 * rounding))
    chances = weights[k + 40] / weights.sum(axis=0)
    return chances @ density * step


@pytest.mark.parametrize(("variance", "rounding"), [(0.3, 0.25), (1.0, 0.25), (0.52, 0.5), (3.0, 0.5), (1.02, 1.0)])
def test_discrete_noise_is_continuous_noise_rounded_by_chance(variance, rounding):
    """Every probability is within the stated factors, and not far from them where rounding is nearly all of it."""
    law = discrete_law(variance)
    k = np.arange(len(law)) - len(law) // 2
    seen = np.abs(k) <= 4 * math.sqrt(variance)
    ratios = law[seen] / rounded_law(variance, rounding, k[seen])
    tau = ripple(rounding)
    assert ratios.max() <= (1 + tau) * (1 + 1e-12)
    assert ratios.min() >= (1 - tau) / (1 + tau) * (1 - 1e-12)
    if variance - rounding < 0.1:
        assert max(ratios.max() - 1, 1 - ratios.min()) > tau / 20


def test_the_factor_that_is_left_out_is_next_to_none():
    """All sums of the longest vector together: below 2^-90, which the slack for floats has room for."""
    tau = ripple(float(ROUNDING_VARIANCE))
    assert tau < 1.1e-34
    assert 3.1 * LARGEST_VECTOR * tau < 2.0**-90


# ---------------------------------------------------------------------------------------------- against closed forms


@in_one_test("mean_squared", ["1/4", "1", "4", "12"])
@in_one_test("shifts", SHIFTS, ids=str)
def test_no_vector_tells_more_than_its_gaussian(shifts, mean_squared):
    """In both orders, at every epsilon, for moves of one, two and three; and narrower noise would tell more."""
    squared = sum(shift**2 for shift in shifts)
    charged = gaussian_deltas(float(Fraction(mean_squared)), EPSILONS)
    variance = float(vector_variance(Fraction(mean_squared), squared))
    assert (largest_deltas(vector_pair(variance, shifts), EPSILONS) <= charged + ROUND_OFF).all()
    narrow = squared / float(Fraction(mean_squared))
    assert (largest_deltas(vector_pair(0.7 * narrow, shifts), EPSILONS) > charged + 1e-3).any()


@in_one_test("shifts", [(1,), (2,), (1, 1), (2, 2), (1, 2)], ids=str)
@in_one_test("variance", [0.2, 0.5, 1.0, 2.0, 5.0])
def test_without_the_variance_for_rounding_it_does(shifts, variance):
    """Discrete noise of the variance of continuous noise tells more, at any variance: the comparison sees it."""
    charged = gaussian_deltas(sum(shift**2 for shift in shifts) / variance, EPSILONS)
    assert (largest_deltas(vector_pair(variance, shifts), EPSILONS) > charged + 5e-4).any()


@pytest.mark.parametrize("shift", [1, 2])
@pytest.mark.parametrize("n_sums", [3, 40])
@pytest.mark.parametrize("mean_squared", ["1/10", "1", "9"])
def test_long_vectors_tell_no_more_either(shift, n_sums, mean_squared):
    """Any number of sums that all move together; where they are many, rounding costs next to nothing."""
    squared = n_sums * shift**2
    mean = float(Fraction(mean_squared))
    variance = float(vector_variance(Fraction(mean_squared), squared))
    found = largest_deltas(moved_sums(variance, shift, n_sums), EPSILONS)
    assert (found <= gaussian_deltas(mean, EPSILONS) + ROUND_OFF).all()
    if variance > 40:
        assert (found >= gaussian_deltas(squared / variance, EPSILONS) - 1e-3).all()


@pytest.mark.parametrize("shift", [1, 2])
def test_the_law_of_the_total_is_that_of_all_sums(shift):
    """For two sums, where both can be written out."""
    by_total = largest_deltas(moved_sums(2.5, shift, 2), EPSILONS)
    assert np.allclose(by_total, largest_deltas(vector_pair(2.5, (shift, shift)), EPSILONS), atol=1e-12)


# ------------------------------------------------------------------------------------------------ the account


@UNITS
@pytest.mark.parametrize("mean_squared", ["1/100000", "1/40", "1", "16"])
def test_a_vector_costs_the_delta_of_its_gaussian(mean_squared, unit):
    """Closely from above, in either unit: what a unit moves is in the variance already."""
    mean = float(Fraction(mean_squared))
    part = GaussianVector(Fraction(mean_squared), "products", stage="products")
    epsilons = mean / 2 + math.sqrt(mean) * np.linspace(0, 4, 9)
    exact, found = gaussian_deltas(mean, epsilons), composed_deltas([part], epsilons, unit)
    assert (exact <= found).all()
    assert (found <= 1.01 * exact + 2e-12).all()


@UNITS
def test_a_vector_adds_up_with_all_else(unit):
    """Squared means of vectors, wide tables and choices add up to one Gaussian's."""
    choices = Selections(Fraction(1, 10), 5, "selection")
    parts = [
        GaussianVector(Fraction(1, 50), "one"),
        GaussianTables(Fraction(3000), 20, "tables"),
        GaussianVector(Fraction(1, 30), "another"),
        choices,
    ]
    mean_squared = 1 / 50 + 20 * unit.factor / 3000 + 1 / 30 + 5 * selection_mean(choices.epsilon) ** 2
    for epsilon in ("0.3", "1", "1.5"):
        exact = gaussian_deltas(mean_squared, np.array([float(epsilon)]))[0]
        found = float(composed_delta(parts, Fraction(epsilon), unit))
        assert exact * (1 - 1e-3) <= found <= 1.01 * exact + 2e-12
        assert float(composed_delta(parts[1:], Fraction(epsilon), unit)) < exact


@UNITS
@pytest.mark.parametrize("n_sums", [1, 2, 30])
def test_the_noise_of_a_plan_tells_no_more_than_its_part(n_sums, unit):
    """However many sums there turn out to be; the number is not in what was charged."""
    plan = sums_plan(unit)
    part = next(part for part in plan.charges[0].parts if isinstance(part, GaussianVector))
    epsilons = np.linspace(0, 8, 33)
    pair = moved_sums(float(plan.vectors["products"].variance(unit.factor**2 * n_sums)), unit.factor, n_sums)
    assert (largest_deltas(pair, epsilons) <= composed_deltas([part], epsilons, unit)).all()


# ------------------------------------------------------------------------------------------------------ zoo


@cache
def _of_the_real_one(check: Check) -> float:
    return check()


@pytest.mark.parametrize(("check", "sabotage"), SUM_CAGES.values(), ids=SUM_CAGES)
def test_sabotage_is_caught(check: Check, sabotage: Sabotage) -> None:
    """The check accepts the vector and rejects the same code with one mistake in it."""
    assert _of_the_real_one(check) > ACCEPT
    with sabotage():
        assert check() < REJECT
