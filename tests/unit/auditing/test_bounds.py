"""What guesses prove, against exact laws: coverage of every bound, and claims in the same currency."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from spinney.privacy.budget import Unit
from spinney.privacy.mechanisms import GaussianTables, GaussianVector
from spinney_audit.game import (
    CurveClaim,
    DeltaClaim,
    PureClaim,
    Tally,
    chance_above,
    chance_below,
    curve_of,
    epsilon_of_event,
    epsilon_of_guesses,
    mu_of_rates,
)


@pytest.mark.parametrize(("n_hits", "n"), [(0, 10), (1, 10), (7, 10), (10, 10), (300, 1000)])
def test_clopper_pearson_is_the_exact_tail(n_hits, n):
    """At the lower bound, as many hits or more have exactly the error probability; at the upper, as many or fewer."""
    low, high = chance_above(n_hits, n, 0.01), chance_below(n_hits, n, 0.01)
    assert stats.binom.sf(n_hits - 1, n, low) == pytest.approx(0.01 if n_hits else 1.0)
    assert stats.binom.cdf(n_hits, n, high) == pytest.approx(0.01 if n_hits < n else 1.0)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_bounds_of_randomised_response_cover(epsilon):
    """Over all numbers of right guesses, by their exact law, a bound exceeds epsilon in 5 % at most."""
    n, chance = 400, math.exp(epsilon) / (1 + math.exp(epsilon))
    law = stats.binom.pmf(np.arange(n + 1), n, chance)
    exceeds = np.array([epsilon_of_guesses(k, n, 0.05) > epsilon for k in range(n + 1)])
    assert 0.02 < (law * exceeds).sum() <= 0.05


def test_bounds_with_a_delta_and_of_mu_cover():
    """Drawn many times: an event of known chances, and two normal laws; the same tallies flag too low a claim."""
    rng = np.random.default_rng(0)
    n, epsilon, delta = 2_000, 1.0, 0.01
    q = 0.2
    p = math.exp(epsilon) * q + delta
    ones, zeros = rng.binomial(n, p, 4_000), rng.binomial(n, q, 4_000)
    bounds = [epsilon_of_event(a, n, b, n, delta=delta, error=0.05) for a, b in zip(ones, zeros, strict=True)]
    assert np.mean(np.array(bounds) > epsilon) <= 0.05
    assert np.mean(np.array(bounds) > 0.7 * epsilon) > 0.95

    mu = 1.0
    alarms = rng.binomial(n, stats.norm.sf(0.5), 4_000)
    misses = rng.binomial(n, stats.norm.cdf(0.5 - mu), 4_000)
    claim = curve_of([GaussianVector(Fraction(1), note="", stage="products")], Unit.REPLACE_ONE)
    low = curve_of([GaussianVector(Fraction(49, 100), note="", stage="products")], Unit.REPLACE_ONE)
    flagged, caught = 0, 0
    for false_alarms, missed in zip(alarms[:300], misses[:300], strict=True):
        tally = Tally(n, n, n - missed, false_alarms, 0, 0)
        flagged += claim.judged(tally, 0.05).exceeds
        caught += low.judged(tally, 0.05).exceeds
    assert flagged <= 15 + 3 * math.sqrt(15)
    assert caught > 290


@pytest.mark.parametrize("mu", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("false_alarms", [0.001, 0.2, 0.5, 0.9])
def test_the_curve_of_a_gaussian_is_that_of_its_mu(mu, false_alarms):
    """The trade-off function of charged parts, read as mu, is mu at every point; never below it."""
    vector = curve_of([GaussianVector(Fraction(mu) ** 2, note="", stage="products")], Unit.ADD_REMOVE)
    assert mu - 1e-9 <= vector.mu_at(false_alarms) <= mu * 1.02 + 0.01
    if mu > 1:  # noise of a variance below 1 is far from normal
        return
    variance = 2 / Fraction(mu) ** 2
    tables = CurveClaim((GaussianTables(variance, 1, note="", stage="one-way"),), Unit.REPLACE_ONE)
    assert tables.mu_at(false_alarms) == pytest.approx(mu, rel=0.06, abs=0.01)


def test_parts_add_up_in_squares():
    """Two parts together have the mu of both, whose squares add up."""
    parts = [GaussianVector(Fraction(9, 100), note="", stage=stage) for stage in ("products", "analyses")]
    assert curve_of(parts, Unit.ADD_REMOVE).mu_at(0.3) == pytest.approx(math.sqrt(0.18), rel=0.02)


def test_nothing_guessed_proves_nothing():
    """No coins, no guesses, or no error at all: bounds are 0 or finite."""
    nothing = Tally(0, 0, 0, 0, 0, 0)
    assert PureClaim(1.0).judged(nothing, 0.05).bound == 0
    assert DeltaClaim(1.0, 1e-6).judged(nothing, 0.05).bound == 0
    certain = Tally(500, 500, 500, 0, 0, 500)
    assert 3 < PureClaim(1.0).judged(certain, 0.05).bound < 7
    assert math.isfinite(mu_of_rates(0.0, 0.0))
    assert PureClaim(1.0).judged(certain, 0.05).exceeds
