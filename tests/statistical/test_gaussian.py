"""Discrete Gaussian draws follow their law at the claimed scale and at no other, as OpenDP's do."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from numpy.typing import NDArray
from scipy import stats

from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.noise.gaussian import DiscreteGaussian
from support.goodness_of_fit import ACCEPT, REJECT, p_value, p_value_of_two

# From noise that is mostly zero to the widest that fits.
SIGMAS = ["0.4", "0.6", "1", "2", "37", "2000.5", "1000000000", str(2**49)]
N_DRAWS = 200_000


def draws_of(sigma: str, seed: int, n: int = N_DRAWS) -> NDArray[np.int64]:
    return DiscreteGaussian(Fraction(sigma) ** 2).draw(n, UnsafeSeededEntropy(seed))


def p_value_of_gaussian(draws: NDArray[np.int64], sigma: float) -> float:
    """p-value of draws against the discrete Gaussian law, number by number or in 60 cells where sigma is large."""
    if sigma < 50:
        k = np.arange(-int(40 * sigma) - 2, int(40 * sigma) + 3)
        chances = np.exp(-(k**2) / (2 * sigma**2))
        return p_value(Counter(draws.tolist()), dict(zip(k.tolist(), (chances / chances.sum()).tolist(), strict=True)))
    # Between whole numbers the sum of a wide Gaussian is its integral, to an error far below any test's power.
    edges = np.unique(np.round(stats.norm.ppf(np.arange(1, 60) / 60) * sigma).astype(np.int64))
    chances = np.diff(np.concatenate([[0.0], stats.norm.cdf((edges - 0.5) / sigma), [1.0]]))
    seen = np.bincount(np.searchsorted(edges, draws, side="right"), minlength=len(edges) + 1)
    return p_value(dict(enumerate(seen.tolist())), dict(enumerate(chances.tolist())))


@pytest.mark.parametrize("sigma", SIGMAS)
def test_noise_has_the_claimed_scale_and_no_other(sigma: str) -> None:
    """Draws fit at the claimed scale and are rejected at 0.7x and 1.3x."""
    draws, claimed = draws_of(sigma, seed=1), float(Fraction(sigma))
    assert p_value_of_gaussian(draws, claimed) > ACCEPT
    assert p_value_of_gaussian(draws, 0.7 * claimed) < REJECT
    assert p_value_of_gaussian(draws, 1.3 * claimed) < REJECT


@pytest.mark.parametrize("sigma", ["0.3", "0.6", "1"])
def test_a_rounded_normal_is_another_law(sigma: str) -> None:
    """Rounding a continuous Gaussian to whole numbers gives noise that these tests tell apart."""
    rounded = np.rint(np.random.default_rng(2).normal(scale=float(sigma), size=N_DRAWS)).astype(np.int64)
    assert p_value_of_gaussian(rounded, float(sigma)) < REJECT


@pytest.mark.parametrize("sigma", ["0.6", "37", "1000000000"])
def test_consecutive_draws_are_independent(sigma: str) -> None:
    """Neither neighbours in one call nor draws of two calls are related. Words used twice would be noticed."""
    entropy = UnsafeSeededEntropy(3)
    law = DiscreteGaussian(Fraction(sigma) ** 2)
    first, second = law.draw(N_DRAWS // 2, entropy), law.draw(N_DRAWS // 2, entropy)

    def p(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
        table = np.zeros((3, 3))
        width = max(1, round(0.43 * float(sigma)))
        np.add.at(table, (np.clip(one // width + 1, 0, 2), np.clip(other // width + 1, 0, 2)), 1)
        return float(stats.chi2_contingency(table).pvalue)

    assert p(first, second) > ACCEPT
    assert p(first[:-1], first[1:]) > ACCEPT
    assert p(first, law.draw(N_DRAWS // 2, UnsafeSeededEntropy(3))) < REJECT


@pytest.mark.parametrize("sigma", ["0.6", "2", "2000", "1000000"])
def test_same_law_as_opendp_at_the_same_scale_only(sigma: str) -> None:
    """Two samples at one scale agree; ours at 0.7x and 1.3x do not. OpenDP has no seed, so acceptance is generous."""
    dp.enable_features("contrib")
    n, claimed = 50_000, float(sigma)
    domain = dp.vector_domain(dp.atom_domain(T=int), size=n)
    measure = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=claimed)
    width = max(1, round(claimed / 5))
    theirs = Counter((np.array(measure([0] * n)) // width).tolist())

    def p(factor: str) -> float:
        ours = draws_of(str(Fraction(sigma) * Fraction(factor)), seed=4, n=n)
        return p_value_of_two(Counter((ours // width).tolist()), theirs)

    assert p("1") > 1e-6
    assert p("0.7") < REJECT
    assert p("1.3") < REJECT
