"""A bought row count: its law at the claimed scale and at no other, and what it costs in exact numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import flint
import numpy as np
import pytest

import spinney as sp
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.ledger import Ledger
from spinney.privacy.noise.discrete import add_noise, arb_fraction, discrete_laplace
from spinney.release.card import RowCount
from spinney.tree.bought import release_rows
from support.goodness_of_fit import ACCEPT, REJECT, p_value_of_noise

EPSILON = Fraction(1, 20)
N_RUNS = 4000


def ledger():
    return Ledger(unit="add-remove")


def noise_of(release) -> np.ndarray:
    """What releases of a table of 1,000 rows are off by."""
    entropy = UnsafeSeededEntropy(3)
    return np.array([release(1000, epsilon=EPSILON, ledger=ledger(), entropy=entropy).noisy for _ in range(N_RUNS)]) - (
        1000
    )


def half_noise(true_rows, *, epsilon, ledger, entropy):
    """Charges epsilon, and draws noise of half the scale."""
    return RowCount(release_rows(true_rows, epsilon=2 * epsilon, ledger=ledger, entropy=entropy).noisy, epsilon)


def never_below_zero(true_rows, *, epsilon, ledger, entropy):
    """Draws again until the noise is not negative: the released count is then at least the true one."""
    while True:
        found = release_rows(true_rows, epsilon=epsilon, ledger=ledger, entropy=entropy)
        if found.noisy >= true_rows:
            return found


def test_the_noise_has_the_claimed_scale():
    """Released counts fit discrete Laplace noise of scale 1 / epsilon; sabotaged ones do not."""
    scale = float(1 / EPSILON)
    noise = noise_of(release_rows)
    assert p_value_of_noise(noise, scale) > ACCEPT
    for wrong in (0.7, 1.3):
        assert p_value_of_noise(noise, wrong * scale) < REJECT
    for sabotaged in (half_noise, never_below_zero):
        assert p_value_of_noise(noise_of(sabotaged), scale) < REJECT


def test_a_row_more_costs_epsilon_and_no_more():
    """Of every outcome, the chances under n and n + 1 rows differ by a factor of at most exp(epsilon), and reach it."""
    law = discrete_laplace(EPSILON)
    with flint.ctx.workprec(200):

        def chance(outcome: int) -> flint.arb:
            return law.tail(outcome) - law.tail(outcome + 1)

        ratios = [chance(outcome) / chance(outcome - 1) for outcome in range(-60, 61)]
        most = arb_fraction(EPSILON).exp() * (1 + flint.arb(2) ** -150)
        assert all(ratio <= most and 1 / ratio <= most for ratio in ratios)
        assert max(float(abs(ratio.log())) for ratio in ratios) == pytest.approx(float(EPSILON))


def test_the_charge_comes_first_and_says_all():
    """One event of its own stage, of sensitivity 1, is on the ledger before any noise is drawn."""
    account, spent = ledger(), []

    class Watched(sp.UnsafeSeededEntropy):
        def words(self, n):
            spent.append(account.spent)
            return super().words(n)

    release_rows(10, epsilon=EPSILON, ledger=account, entropy=Watched(0))
    (charge,) = [event for event in account.events if hasattr(event, "epsilon")]
    assert (charge.stage, charge.times, charge.sensitivity, charge.epsilon) == ("rows", 1, 1, EPSILON)
    assert set(spent) == {EPSILON}


@pytest.mark.parametrize("noisy", [-500, -1, 0, 1, 5, 20, 60, 300, 10_000])
def test_what_a_plan_takes_is_the_expected_number(noisy):
    """The mean over all numbers of rows, each weighted by the chance that it gives this noisy count."""
    count = RowCount(noisy, EPSILON)
    possible = np.arange(0.0, 20_000, 0.25)
    weights = np.exp(-float(EPSILON) * (np.abs(possible - noisy) - np.abs(possible - noisy).min()))
    assert count.expected == pytest.approx((possible * weights).sum() / weights.sum(), abs=1)
    assert count.expected >= 1


def test_the_variance_is_that_of_the_noise():
    """Also where the rate is large and noise is mostly 0; weights by precision follow from it."""
    for rate in (Fraction(1, 20), Fraction(3), Fraction(40)):
        count = RowCount(100, rate)
        a = math.exp(-rate)
        slow = sum(2 * k * k * (1 - a) / (1 + a) * a**k for k in range(1, 2000))
        assert count.variance == pytest.approx(slow, rel=1e-6, abs=1e-15)
    noise = add_noise(np.zeros(50_000, dtype=np.int64), EPSILON, UnsafeSeededEntropy(1))
    assert RowCount(0, EPSILON).noise_std == pytest.approx(noise.std(), rel=0.03)
    count = RowCount(100, EPSILON)
    assert count.with_sum(200.0, count.variance) == pytest.approx(150)
    assert count.with_sum(200.0, count.variance * 1e-9) == pytest.approx(200)


def test_counts_stay_within_what_tables_can_have():
    """Noise of a tiny epsilon leads beyond the largest table; a plan takes the largest then."""
    assert RowCount(2**61, Fraction(1, 2**37)).expected == 2**40
    assert RowCount(-(2**61), Fraction(1, 2**37)).expected == 2**37
