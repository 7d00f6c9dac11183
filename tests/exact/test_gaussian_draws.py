"""Discrete Gaussian draws decide exactly: the rejection gives the law, and floats never give a verdict of their own."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import flint
import numpy as np
import pytest

from spinney.errors import ParameterError
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.noise import gaussian
from spinney.privacy.noise.discrete import arb_fraction
from spinney.privacy.noise.gaussian import LARGEST_VARIANCE, SMALLEST_VARIANCE, DiscreteGaussian

VARIANCES = [
    Fraction(1, 2**20),
    Fraction(1, 3),
    Fraction(1),
    Fraction(2),
    Fraction(50, 7),
    Fraction(10**4) + Fraction(1, 3),
]
WIDE = [*VARIANCES, Fraction(10**18), LARGEST_VARIANCE]


@pytest.mark.parametrize("variance", VARIANCES, ids=str)
def test_proposal_and_acceptance_multiply_to_the_law(variance: Fraction) -> None:
    """-|y|/t minus the acceptance exponent is -y^2/(2 variance) up to a constant, in exact fractions."""
    law = DiscreteGaussian(variance)
    rate = law._proposals.rate
    constants = {-abs(y) * rate - law.exponent(y) + Fraction(y * y) / (2 * variance) for y in range(-400, 401)}
    assert len(constants) == 1


@pytest.mark.parametrize("variance", WIDE, ids=lambda v: f"{float(v):.3g}")
def test_the_proposals_scale_is_just_above_sigma(variance: Fraction) -> None:
    """t = floor(sigma) + 1, so that most proposals are accepted; found in whole numbers."""
    scale = 1 / DiscreteGaussian(variance)._proposals.rate
    assert (scale - 1) ** 2 <= variance < scale**2


# ------------------------------------------------------------------------------------------------ filter


def exact_chance(law: DiscreteGaussian, y: int) -> Fraction:
    """2^32 exp(-exponent) to 200 bits."""
    with flint.ctx.workprec(400):
        ball = (-arb_fraction(law.exponent(y))).exp() * flint.arb(2) ** 232
        return Fraction(int(ball.floor().unique_fmpz() or 0), 2**200)


def wrong_verdicts(law: DiscreteGaussian, judge: Callable[..., bool] = gaussian._judge) -> tuple[int, float]:
    """How many verdicts at the hardest words contradict the exact chance, and how many of all words are undecided."""
    sigma = math.isqrt(int(law.variance)) + 1
    generator = np.random.default_rng(0)
    proposals = np.unique((generator.normal(size=300) * 2 * sigma).astype(np.int64))
    proposals = np.unique(np.concatenate([proposals, [0, 1, -1, 8 * sigma, 12 * sigma]]))
    n_wrong = n_undecided = 0
    for y in proposals.tolist():
        chance = exact_chance(law, y)
        words = np.array([w for w in range(int(chance) - 3, int(chance) + 4) if 0 <= w < 2**32], dtype=np.uint32)
        verdicts = np.empty(len(words), dtype=np.uint8)
        centre, inverse = float(law.variance / law._scale), float(1 / (2 * law.variance))
        judge(np.full(len(words), y), words, centre, inverse, law._wholes, law._parts, verdicts)
        for word, verdict in zip(words.tolist(), verdicts.tolist(), strict=True):
            is_settled = word + 1 <= chance or word >= chance
            n_wrong += verdict != gaussian._UNDECIDED and not (
                is_settled and (verdict == gaussian._ACCEPTED) == (word + 1 <= chance)
            )
            n_undecided += verdict == gaussian._UNDECIDED
    return n_wrong, n_undecided / len(proposals)


@pytest.mark.parametrize("variance", WIDE, ids=lambda v: f"{float(v):.3g}")
def test_the_filter_is_never_wrong(variance: Fraction) -> None:
    """At the words next to the chance every verdict is right or withheld, and only about one word is withheld."""
    n_wrong, undecided = wrong_verdicts(DiscreteGaussian(variance))
    assert n_wrong == 0
    assert undecided < 1.1


@pytest.mark.parametrize("slip", [1e-8, -1e-8])
def test_a_filter_of_single_precision_would_be_caught(slip: float) -> None:
    """A centre that is off in the eighth digit leads to wrong verdicts."""

    def judge(proposed, words, centre, *rest) -> bool:
        return gaussian._judge(proposed, words, centre * (1 + slip), *rest)

    assert wrong_verdicts(DiscreteGaussian(Fraction(10**18)), judge)[0] > 10


# ------------------------------------------------------------------------------------------------ more bits


class Scripted:
    """Entropy that hands out given words."""

    is_unsafe = True

    def __init__(self, words: list[int]) -> None:
        self._words = words

    def words(self, n: int) -> np.ndarray:
        taken, self._words = self._words[:n], self._words[n:]
        assert len(taken) == n, "more words were read than needed"
        return np.array(taken, dtype=np.uint32)


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(50, 7), Fraction(10**18)], ids=str)
@pytest.mark.parametrize("n_equal", [1, 3])
def test_undecided_words_are_settled_by_more_bits(variance: Fraction, n_equal: int) -> None:
    """Where 32 or 96 bits agree with the chance, the next bits decide, and they decide as they should."""
    law = DiscreteGaussian(variance)
    y = math.isqrt(int(variance)) * 2 + 1
    with flint.ctx.workprec(400):
        bits = int(((-arb_fraction(law.exponent(y))).exp() * flint.arb(2) ** 160).floor().unique_fmpz() or 0)
    words = [bits >> 32 * (4 - i) & 0xFFFFFFFF for i in range(5)]
    for step, verdict in ((-1, gaussian._ACCEPTED), (1, gaussian._REJECTED)):
        changed = [*words[:n_equal], words[n_equal] + step, *words[n_equal + 1 :]]
        needed = 3 if n_equal == 1 else 5
        source = Scripted(changed[1:needed])
        assert law._settle(y, changed[0], source) == verdict
        assert source._words == []


def test_a_certain_acceptance_is_accepted() -> None:
    """Where the chance is exactly 1 (variance 2, |y| = 1) even the largest word accepts, after more bits."""
    law = DiscreteGaussian(Fraction(2))
    assert law.exponent(1) == 0
    assert law._settle(1, 2**32 - 1, Scripted([2**32 - 1] * 2)) == gaussian._ACCEPTED


def test_a_hopeless_proposal_is_settled_too() -> None:
    """The word 0 leaves even a chance of exp(-2^19) open; the next bits close it."""
    law = DiscreteGaussian(SMALLEST_VARIANCE)
    assert law._settle(1, 0, Scripted([0, 1])) == gaussian._REJECTED


def test_undecided_draws_go_through_the_slow_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the filter withholds every verdict, the draws still follow from the same words and some are refused."""

    def withhold(proposed, words, centre, inverse, wholes, parts, verdicts) -> bool:
        verdicts[:] = gaussian._UNDECIDED
        return True

    law, settled = DiscreteGaussian(Fraction(4)), []
    settle = law._settle

    def spy(*arguments) -> int:
        settled.append(settle(*arguments))
        return settled[-1]

    monkeypatch.setattr(gaussian, "_judge", withhold)
    monkeypatch.setattr(law, "_settle", spy)
    drawn = law.draw(50, UnsafeSeededEntropy(1))
    assert len(drawn) == 50
    assert settled.count(gaussian._ACCEPTED) >= 50
    assert settled.count(gaussian._REJECTED) > 0


# ------------------------------------------------------------------------------------------------ range


def test_the_widest_noise_fits_into_64_bits() -> None:
    """At the largest variance draws stay far inside the range; saturated proposals are refused."""
    law = DiscreteGaussian(LARGEST_VARIANCE)
    drawn = law.draw(100_000, UnsafeSeededEntropy(2))
    assert np.abs(drawn).max() < 2**55
    proposed = np.array([2**62, -1 - (2**62), 2**61, -(2**61)])
    verdicts = np.empty(4, dtype=np.uint8)
    gaussian._judge(proposed, np.zeros(4, np.uint32), 0.0, 0.0, law._wholes, law._parts, verdicts)
    assert verdicts.tolist() == [gaussian._REJECTED] * 4


@pytest.mark.parametrize(
    "variance", [Fraction(0), Fraction(-1), SMALLEST_VARIANCE / 2, LARGEST_VARIANCE + 1, Fraction(10**400)]
)
def test_variances_out_of_range_are_refused(variance: Fraction) -> None:
    """Noise that is none, or that would not fit, is named."""
    with pytest.raises(ParameterError, match=r"variance=.* is outside"):
        DiscreteGaussian(variance)


@pytest.mark.parametrize("n", [0, 1, 7, 400_001])
def test_as_many_draws_as_asked_for(n: int) -> None:
    """Rejection never leaves a draw short."""
    drawn = DiscreteGaussian(Fraction(1, 2)).draw(n, UnsafeSeededEntropy(3))
    assert drawn.shape == (n,)
    assert drawn.dtype == np.int64
