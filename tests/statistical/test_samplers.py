"""The samplers follow their laws at the claimed scale, and would be caught at 0.7 and 1.3 times that scale."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import flint
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.noise.discrete import DiscreteLaplace, ExactLaw, Geometric, add_noise
from support.goodness_of_fit import ACCEPT, REJECT, p_value, p_value_of_noise

# From noise that is nearly always zero to the largest scale that a plan may ask for.
SCALES = ["0.3", "2", "37", "2000", "1000000", str(2**50)]
N_DRAWS = 200_000


def draws_of(law: DiscreteLaplace | Geometric, seed: int, n: int = N_DRAWS) -> NDArray[np.int64]:
    return law.draw(n, UnsafeSeededEntropy(seed))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("sampler", "two_sided"), [(DiscreteLaplace, True), (Geometric, False)])
def test_noise_has_the_claimed_scale_and_no_other(sampler, two_sided: bool, scale: str) -> None:
    """Draws fit at the claimed scale and are rejected at 0.7x and 1.3x."""
    draws = draws_of(sampler(1 / Fraction(scale)), seed=1)
    claimed = float(scale)
    assert p_value_of_noise(draws, claimed, two_sided=two_sided) > ACCEPT
    assert p_value_of_noise(draws, 0.7 * claimed, two_sided=two_sided) < REJECT
    assert p_value_of_noise(draws, 1.3 * claimed, two_sided=two_sided) < REJECT


@pytest.mark.parametrize("scale", SCALES)
def test_noise_on_counts_is_the_same_noise(scale: str) -> None:
    """What `add_noise` adds is independent of the count it is added to."""
    counts = np.arange(N_DRAWS) % 2 * 10_000
    noise = add_noise(counts, 1 / Fraction(scale), UnsafeSeededEntropy(2)) - counts
    for count in (0, 10_000):
        part = noise[counts == count]
        assert p_value_of_noise(part, float(scale)) > ACCEPT
        assert p_value_of_noise(part, 1.3 * float(scale)) < REJECT


def independence(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Chi-square p-value of a table of two labels."""
    table = np.zeros((first.max() + 1, second.max() + 1))
    np.add.at(table, (first, second), 1)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    return float(stats.chi2_contingency(table).pvalue)


@pytest.mark.parametrize("scale", SCALES)
def test_sign_and_magnitude_are_independent(scale: str) -> None:
    """Noise that is not zero is as often positive as negative, at every size. A small shift is noticed."""
    draws = draws_of(DiscreteLaplace(1 / Fraction(scale)), seed=3)

    def p(noise: NDArray[np.int64]) -> float:
        noise = noise[noise != 0]
        sizes = np.abs(noise)
        quartile = np.searchsorted(np.unique(np.quantile(sizes, [0.25, 0.5, 0.75])), sizes)
        positive = noise > 0
        if quartile.max() == 0:
            return float(stats.binomtest(int(positive.sum()), len(noise)).pvalue)
        return min(independence(positive.astype(np.int64), quartile), _balance(positive))

    assert p(draws) > ACCEPT
    # A bias of one is noticed where one is not negligible against the scale; a tenth of the scale everywhere.
    assert p(draws + max(1, round(float(scale) / 10))) < REJECT


def _balance(positive: NDArray[np.bool_]) -> float:
    return float(stats.binomtest(int(positive.sum()), len(positive)).pvalue)


@pytest.mark.parametrize("scale", ["100", "2000", "1000000"])
def test_digits_are_independent(scale: str) -> None:
    """The low digit follows its own law whatever lies above it, and dependence between the two would be noticed."""
    draws = draws_of(Geometric(1 / Fraction(scale)), seed=4)
    low, high = draws & 255, draws >> 8
    high_class = np.searchsorted(np.unique(np.quantile(high, [0.25, 0.5, 0.75])), high)
    assert independence(low >> 3, high_class) > ACCEPT
    assert independence(np.where(high_class == high_class.min(), low >> 1, low) >> 3, high_class) < REJECT

    weights = np.exp(-np.arange(256) / float(scale))
    chances = dict(enumerate((weights / weights.sum()).tolist()))
    assert p_value(Counter(low.tolist()), chances) > ACCEPT
    weights = np.exp(-np.arange(256) / (130 if scale == "100" else 500))
    assert p_value(Counter(low.tolist()), dict(enumerate((weights / weights.sum()).tolist()))) < REJECT


@pytest.mark.parametrize("scale", ["0.3", "2", "2000"])
def test_consecutive_draws_are_independent(scale: str) -> None:
    """One draw says nothing about the next, in one call or across calls. Words used twice would be noticed."""
    law, entropy = DiscreteLaplace(1 / Fraction(scale)), UnsafeSeededEntropy(5)
    first, second = law.draw(N_DRAWS // 2, entropy), law.draw(N_DRAWS // 2, entropy)

    def classes(draws: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.searchsorted(np.unique(np.quantile(draws, [0.2, 0.4, 0.6, 0.8, 0.97])), draws)

    assert independence(classes(first), classes(second)) > ACCEPT
    assert independence(classes(first[:-1]), classes(first[1:])) > ACCEPT
    assert independence(classes(first), classes(law.draw(N_DRAWS // 2, UnsafeSeededEntropy(5)))) < REJECT


def test_exact_law_follows_irrational_chances() -> None:
    """Outcomes cut at 1/pi, sqrt(2)/3 and ln 2 come as often as they should, in calls of several blocks."""

    def cumulative() -> list[flint.arb]:
        return [1 / flint.arb.pi(), flint.arb(2).sqrt() / 3, flint.arb(2).log(), flint.arb("0.999")]

    draws = ExactLaw(cumulative).draw(N_DRAWS, UnsafeSeededEntropy(6))
    edges = [0.0, *(float(ball) for ball in cumulative()), 1.0]
    chances = dict(enumerate(np.diff(edges).tolist()))
    assert p_value(Counter(draws.tolist()), chances) > ACCEPT
    edges[2] += 0.01
    assert p_value(Counter(draws.tolist()), dict(enumerate(np.diff(edges).tolist()))) < REJECT
