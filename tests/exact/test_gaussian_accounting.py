"""From Gaussian noise to (epsilon, delta): never below the exact delta, never far above it, rounded the safe way."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from spinney.errors import ParameterError
from spinney.privacy.noise.gaussian import SMALLEST_DELTA, delta_from_rho
from spinney_paper.baselines.vector import classical_variance, least_variance, rho_from_delta
from support.in_one_test import in_one_test

MILLIONTH = Fraction(1, 10**6)
CASES = list(product(["0.5", "4", "30", "2000"], ["0.1", "1", "3"], [1, 2, 5]))


def masses(variance: float, reach: int) -> np.ndarray:
    """P(X = k) for |k| <= reach, and nothing beyond."""
    k = np.arange(-reach, reach + 1)
    weights = np.exp(-(k**2) / (2 * variance))
    return weights / weights.sum()


def exact_delta(variance: float, epsilon: float, shift: int) -> float:
    """The least delta of one noisy number whose true value moves by `shift`: sum of max(0, P(k) - e^eps P(k-shift))."""
    reach = int(40 * math.sqrt(variance)) + 60
    p = masses(variance, reach)
    ahead, behind = np.concatenate([p, np.zeros(shift)]), np.concatenate([np.zeros(shift), p])
    return float(np.maximum(0, ahead - math.exp(epsilon) * behind).sum())


@in_one_test(("variance", "epsilon", "shift"), CASES)
def test_the_bound_lies_above_the_exact_delta_and_near_it(variance: str, epsilon: str, shift: int) -> None:
    """In one dimension the claimed delta is at least the exact one; half the rho would claim too little."""
    exact = exact_delta(float(variance), float(epsilon), shift)
    rho = Fraction(shift**2) / (2 * Fraction(variance))
    claimed = float(delta_from_rho(rho, Fraction(epsilon)))
    assert claimed >= exact
    if 1e-12 < exact < 0.1 and float(variance) >= 4:
        assert claimed < 10 * exact
        assert float(delta_from_rho(rho / 2, Fraction(epsilon))) < exact


@pytest.mark.parametrize(("variance", "epsilon"), [("2", "0.5"), ("9", "1"), ("30", "0.3")])
def test_a_vector_costs_its_euclidean_length(variance: str, epsilon: str) -> None:
    """Two numbers that both move by one: above the exact delta of the pair, which the charge for one misses."""
    reach = int(12 * math.sqrt(float(variance)))
    p = np.pad(masses(float(variance), reach), 1)
    here, there = np.outer(p, p), np.outer(np.roll(p, 1), np.roll(p, 1))
    exact = float(np.maximum(0, here - math.exp(float(epsilon)) * there).sum())
    for_pair, for_one = (
        float(delta_from_rho(Fraction(d) / (2 * Fraction(variance)), Fraction(epsilon))) for d in (2, 1)
    )
    assert for_one < exact <= for_pair < 20 * exact


def best_on_a_grid(rho: float, epsilon: float) -> float:
    """The conversion's infimum over a fine grid of orders, in floats."""
    above = np.exp(np.linspace(-12, 12, 200_001))
    order = 1 + above
    return float(np.exp((above * (order * rho - epsilon) - np.log(above) + order * np.log1p(-1 / order)).min()))


@in_one_test(
    ("rho", "epsilon"),
    [*product(["1e-4", "0.01", "0.2"], ["0.01", "0.1"]), *product(["0.01", "0.2", "1", "3"], ["1", "3"]), ("0.1", "8")],
)
def test_the_order_is_the_best(rho: str, epsilon: str) -> None:
    """A search over all orders finds nothing better, and the older conversion is never better either."""
    claimed = float(delta_from_rho(Fraction(rho), Fraction(epsilon)))
    r, e = float(rho), float(epsilon)
    assert claimed == pytest.approx(min(1.0, best_on_a_grid(r, e)), rel=1e-6, abs=0)
    if e > r:
        assert claimed <= math.exp(-((e - r) ** 2) / (4 * r))


@given(st.fractions("1e-6", 10), st.fractions("1e-3", 10), st.fractions("1.0001", 3))
def test_delta_grows_with_rho_and_falls_with_epsilon(rho: Fraction, epsilon: Fraction, factor: Fraction) -> None:
    """More leakage, or a stricter epsilon, never comes with a smaller delta."""
    delta = delta_from_rho(rho, epsilon)
    assert SMALLEST_DELTA <= delta <= 1
    assert delta <= delta_from_rho(rho * factor, epsilon)
    assert delta >= delta_from_rho(rho, epsilon * factor)


def test_extremes_are_answered() -> None:
    """Nothing leaks at rho = 0; hopeless and needless noise give 1 and the smallest delta, at any size of number."""
    assert delta_from_rho(Fraction(0), Fraction(1)) == 0
    assert delta_from_rho(Fraction(10**400), Fraction(1)) == 1
    assert delta_from_rho(Fraction(1, 10**400), Fraction(1)) == SMALLEST_DELTA
    assert delta_from_rho(Fraction(1), Fraction(10**400)) == SMALLEST_DELTA
    assert 0 < delta_from_rho(Fraction(1, 10**5), Fraction(0)) < Fraction(1, 100)
    for rho, epsilon in ((-1, 1), (1, -1)):
        with pytest.raises(ParameterError, match="must not be negative"):
            delta_from_rho(Fraction(rho), Fraction(epsilon))


@pytest.mark.parametrize("epsilon", ["0.01", "1", "10", "1000"])
@pytest.mark.parametrize("delta", ["0.5", "1e-6", "1e-300"])
def test_rho_is_the_largest_that_passes(epsilon: str, delta: str) -> None:
    """The rho passes the conversion, and a billionth more does not."""
    rho = rho_from_delta(Fraction(epsilon), Fraction(delta))
    assert delta_from_rho(rho, Fraction(epsilon)) <= Fraction(delta)
    assert delta_from_rho(rho * (1 + Fraction(1, 10**9)), Fraction(epsilon)) > Fraction(delta)
    variance = least_variance(Fraction(epsilon), Fraction(delta), Fraction(3))
    assert variance == 3 / (2 * rho)


def test_rho_grows_with_both() -> None:
    """A larger epsilon or delta leaves room for less noise."""
    for deltas in pairwise(("1e-12", "1e-6", "1e-3")):
        low, high = (rho_from_delta(Fraction(1), Fraction(delta)) for delta in deltas)
        assert low < high
    for epsilons in pairwise(("0.1", "1", "5")):
        low, high = (rho_from_delta(Fraction(epsilon), MILLIONTH) for epsilon in epsilons)
        assert low < high


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "0.5", "1"])
def test_the_textbook_variance_passes_up_to_epsilon_one(epsilon: str) -> None:
    """2 ln(1.25/delta) D^2/eps^2, rounded up by less than a billionth, is enough noise for epsilon <= 1."""
    variance = classical_variance(Fraction(epsilon), MILLIONTH, Fraction(4))
    formula = 2 * math.log(1.25e6) * 4 / float(epsilon) ** 2
    assert float(variance) == pytest.approx(formula, rel=1e-12, abs=0)
    assert delta_from_rho(4 / (2 * variance), Fraction(epsilon)) <= MILLIONTH


def test_the_textbook_variance_fails_where_its_theorem_does() -> None:
    """At epsilon = 10 the formula is too little, by the conversion and by the exact delta of the continuous law."""
    variance = classical_variance(Fraction(10), MILLIONTH, Fraction(1))
    assert delta_from_rho(1 / (2 * variance), Fraction(10)) > MILLIONTH
    sigma = math.sqrt(variance)
    continuous = stats.norm.cdf(0.5 / sigma - 10 * sigma) - math.exp(10) * stats.norm.cdf(-0.5 / sigma - 10 * sigma)
    assert continuous > 1e-6


@pytest.mark.parametrize("function", [classical_variance, least_variance])
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("epsilon", (0, MILLIONTH, 1)),
        ("epsilon", (-1, MILLIONTH, 1)),
        ("delta", (1, 0, 1)),
        ("delta", (1, 1, 1)),
        ("delta", (1, SMALLEST_DELTA / 2, 1)),
        ("sensitivity_squared", (1, MILLIONTH, 0)),
    ],
)
def test_claims_that_are_none_are_refused(function, name: str, values: tuple) -> None:
    """Epsilon, delta and sensitivity out of range are named."""
    with pytest.raises(ParameterError, match=f"{name}="):
        function(*(Fraction(value) for value in values))
