"""Choices by the exponential mechanism fall on the right side of every boundary, however close the bits come.

Random words are scripted; the reference is decimal arithmetic with 120 places, from exp(rate * score).
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from spinney.errors import ParameterError
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.noise import choices as selection
from spinney.privacy.noise.choices import choose
from spinney.privacy.noise.gaussian import exponentials
from support.in_one_test import in_one_test
from support.repeated_releases import ScriptedEntropy

PLACES = 120
ONES = 2**32 - 1
CASES = [
    ([0, 1, 2, 5], "1/2"),
    ([3, 3, 3], "1/7"),
    ([-40, 100, 0, 99, 37, 100], "1/10"),
    ([7, -(10**6), 5, 0], "3"),  # one of them far below what a float holds
    ([0, 2**40], "1/1099511627776"),
]
EACH = pytest.mark.parametrize(("scores", "rate"), CASES)


def cumulative(scores: list[int], rate: str) -> list[Decimal]:
    """P(choice <= i) for all i but the last."""
    with localcontext(prec=PLACES):
        unit = Decimal(Fraction(rate).numerator) / Fraction(rate).denominator
        weights = [(unit * (score - max(scores))).exp() for score in scores]
        total = sum(weights)
        return [sum(weights[: i + 1]) / total for i in range(len(scores) - 1)]


def as_words(bits: int, n_bits: int) -> list[int]:
    return [bits >> shift & ONES for shift in range(n_bits - 32, -1, -32)]


def side_of(bits: int, n_bits: int, chances: list[Decimal]) -> int:
    """How many chances lie at or below the number whose first bits these are."""
    with localcontext(prec=PLACES):
        return sum(chance <= Decimal(bits) / 2**n_bits for chance in chances)


def scaled_floor(chance: Decimal, n_bits: int) -> int:
    with localcontext(prec=PLACES):
        return int(chance * 2**n_bits)


@EACH
def test_every_place_has_its_interval(scores, rate):
    """64 bits spread over the whole unit interval lead where decimal arithmetic says they lead."""
    chances = cumulative(scores, rate)
    for k in range(200):
        bits = k * (2**64 - 1) // 199
        drawn = choose(np.array(scores), Fraction(rate), ScriptedEntropy([*as_words(bits, 64), 1, 2]))
        assert drawn == side_of(bits << 64 | 1 << 32 | 2, 128, chances)


@EACH
@in_one_test("n_bits", [64, 128, 192])
def test_ties_are_settled_by_the_last_bit(scores, rate, n_bits):
    """Bits that equal those of a chance in all places but the last fall below or above it as they should."""
    for chance in (chances := cumulative(scores, rate)):
        tie = scaled_floor(chance, n_bits)
        for bits in {max(tie - 1, 0), tie + 1}:
            words = as_words(bits, n_bits)
            script = ScriptedEntropy([*words, 5, 6, 7, 8])
            expected = side_of(bits << 128 | 5 << 96 | 6 << 64 | 7 << 32 | 8, n_bits + 128, chances)
            assert choose(np.array(scores), Fraction(rate), script) == expected


def test_a_rational_tie_reads_on():
    """Three equal scores part at 0x5555...: as long as the bits agree, more are read."""
    same = np.array([4, 4, 4])
    for n_words in (2, 4, 8):
        for last, place in ((0x55555554, 0), (0x55555556, 1)):
            script = ScriptedEntropy([0x55555555] * n_words + [last, 0])
            assert choose(same, Fraction(1), script) == place
            assert not script.left


def test_the_smallest_chance_is_not_nothing():
    """A candidate of weight exp(-1000), which no float sum would notice, is chosen by the bits that are its own."""
    with localcontext(prec=600):
        weight = Decimal(-1000).exp()
        middle = (1 + weight / 2) / (2 + weight)
        bits = int(middle * 2**1536)
    script = ScriptedEntropy(as_words(bits, 1536))
    assert choose(np.array([0, -1000, 0]), Fraction(1), script) == 1


@EACH
def test_floats_and_intervals_agree(scores, rate, monkeypatch):
    """With a margin so wide that nothing is settled by floats, the same words give the same choices."""
    plain = [choose(np.array(scores), Fraction(rate), UnsafeSeededEntropy(seed)) for seed in range(50)]
    refined = []
    exact = selection._refine
    monkeypatch.setattr(selection, "_refine", lambda *given: refined.append(1) or exact(*given))
    monkeypatch.setattr(selection, "_MARGIN", 1.0)
    assert [choose(np.array(scores), Fraction(rate), UnsafeSeededEntropy(seed)) for seed in range(50)] == plain
    assert len(refined) == 50


def test_the_margin_covers_the_error_of_the_floats():
    """Cumulative weights of 20,000 candidates are off by less than a tenth of the margin, against 120 places."""
    rng = np.random.default_rng(0)
    gaps = np.sort(rng.integers(0, 9000, 20_000))
    sums = np.empty(gaps.size)
    rate = Fraction(1, 137)
    selection._accumulate(gaps, float(rate), *exponentials(), sums)
    with localcontext(prec=60):
        total, worst = Decimal(0), Decimal(0)
        table = {int(gap): (-Decimal(int(gap)) / 137).exp() for gap in np.unique(gaps)}
        for gap, computed in zip(gaps.tolist(), sums.tolist(), strict=True):
            total += table[gap]
            worst = max(worst, abs(Decimal(computed) - total))
    assert 0 < worst < sums[-1] * (gaps.size + 512) * selection._MARGIN / 10


def test_one_candidate_needs_no_luck():
    """A list of one has one place."""
    assert choose(np.array([5]), Fraction(1, 3), ScriptedEntropy([ONES, ONES])) == 0


def test_extreme_scores_do_not_wrap_round():
    """Scores are cut at 2^61, so that their differences stay within 64 bits."""
    scores = np.array([-(2**63), 2**63 - 1, 0])
    assert choose(scores, Fraction(1, 1000), UnsafeSeededEntropy(0)) == 1


@pytest.mark.parametrize(
    ("scores", "rate", "match"),
    [
        (np.array([], dtype=np.int64), 1, "scores of shape"),
        (np.zeros((2, 2), dtype=np.int64), 1, "scores of shape"),
        (np.zeros(3), 1, "float64"),
        (np.zeros(3, dtype=np.int64), 0, "rate=0"),
    ],
)
def test_bad_input(scores, rate, match):
    """Lists of whole numbers and a positive rate are asked for; no score is shown."""
    with pytest.raises(ParameterError, match=match):
        choose(scores, Fraction(rate), UnsafeSeededEntropy(0))
