"""Draws from irrational laws decide on the right side of every threshold, however close the bits come.

Random words are scripted to agree with a threshold for 160 or 224 bits and to part from it in the very last
one. The reference is decimal arithmetic with 120 places, from the mass function.
"""

from __future__ import annotations

import itertools
from decimal import Decimal, localcontext
from fractions import Fraction

import flint
import numpy as np
import pytest

from spinney.errors import ParameterError
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.noise.discrete import (
    SMALLEST_RATE,
    DiscreteLaplace,
    ExactLaw,
    Geometric,
    _sum_digits,
    add_noise,
    within_range,
)
from spinney.tree.kdtree import EmptySpace
from spinney.tree.plan import grid_plan, paper_plan
from support.in_one_test import in_one_test
from support.repeated_releases import ScriptedEntropy, lattice_of, line_of

PLACES = 120
ONES = 2**32 - 1
RATES = ["10/3", "1/2", "1/37", "1/2000", "1/1000000"]


def as_words(bits: int, n_bits: int) -> list[int]:
    """The first `n_bits` bits of a uniform number as 32-bit words."""
    return [bits >> shift & ONES for shift in range(n_bits - 32, -1, -32)]


def reference_cumulative(rate: Fraction) -> list[Decimal]:
    """P(signed low digit <= i) from P(X = k) = (1-a)/(1+a) a^|k|: digits 0..255 of X >= 0, then of -1-X for X < 0."""
    with localcontext(prec=PLACES):
        unit = Decimal(rate.numerator) / rate.denominator
        a = (-unit).exp()
        is_top = 255 * rate >= 16
        total, cumulative = Decimal(0), []
        for sign in (0, 1):
            for digit in range(256):
                mass = (1 - a) / (1 + a) * a ** (digit + sign)
                if not is_top:
                    mass /= 1 - a**256  # every 256th number has this digit
                elif digit == 255:
                    mass /= 1 - a  # 255 or more
                total += mass
                cumulative.append(total)
        assert abs(total - 1) < Decimal(10) ** (10 - PLACES)
        return cumulative[:-1]


def scaled_floor(chance: Decimal, n_bits: int) -> int:
    with localcontext(prec=PLACES):
        return int(chance * 2**n_bits)


def side_of(bits: int, n_bits: int, cumulative: list[Decimal]) -> int:
    """How many thresholds lie at or below the number whose first bits these are."""
    with localcontext(prec=PLACES):
        u = Decimal(bits) / 2**n_bits
        return sum(chance <= u for chance in cumulative)


# ------------------------------------------------------------------------------------------------ the table


@pytest.mark.parametrize("rate", RATES)
def test_table_brackets_the_exact_chances(rate: str) -> None:
    """Each table entry t has t <= 2^32 F <= t + 2, with F from the mass function in 120 places."""
    law = DiscreteLaplace(Fraction(rate))._low_digit
    cumulative = reference_cumulative(Fraction(rate))
    assert len(law._thresholds) == len(cumulative)
    for threshold, chance in zip(law._thresholds.tolist(), cumulative, strict=True):
        assert threshold <= chance * 2**32 <= threshold + 2


@pytest.mark.parametrize("rate", RATES)
def test_words_near_a_threshold_fall_on_the_right_side(rate: str) -> None:
    """Around every 23rd threshold, all words within 3 of it give what 96 bits of decimal arithmetic give."""
    law = DiscreteLaplace(Fraction(rate))._low_digit
    cumulative = reference_cumulative(Fraction(rate))
    for index in range(0, len(cumulative), 23):
        threshold = int(law._thresholds[index])
        for word in range(max(0, threshold - 3), min(ONES, threshold + 5)):
            words = [word, 12345, 67890]
            bits = word << 64 | 12345 << 32 | 67890
            drawn = law.draw(1, ScriptedEntropy(words))
            assert drawn[0] == side_of(bits, 96, cumulative)


# ------------------------------------------------------------------------------------------------ ties


@in_one_test("rate", RATES)
@in_one_test("index", [0, 7, 20, 256, 263])
def test_ties_are_settled_by_the_last_bit(rate: str, index: int) -> None:
    """Bits that equal those of F for 159 places and differ in the 160th fall below or above F as they should."""
    law = DiscreteLaplace(Fraction(rate))._low_digit
    cumulative = reference_cumulative(Fraction(rate))
    tie = scaled_floor(cumulative[index], 160)
    for bits in (tie - 1, tie + 1):
        script = ScriptedEntropy(as_words(bits, 160))
        assert law.draw(1, script)[0] == side_of(bits, 160, cumulative)
        assert not script.left  # 32 bits and 96 bits were not enough
    assert side_of(tie - 1, 160, cumulative) < side_of(tie + 1, 160, cumulative)


@pytest.mark.parametrize("rate", ["1/2", "1/2000"])
def test_a_tie_of_160_bits_reads_on(rate: str) -> None:
    """Where all 160 bits agree with F, 64 more are read and decide."""
    law = DiscreteLaplace(Fraction(rate))._low_digit
    cumulative = reference_cumulative(Fraction(rate))
    for index in (3, 260):
        tie = scaled_floor(cumulative[index], 224)
        for bits in (tie - 1, tie + 1):
            script = ScriptedEntropy(as_words(bits, 224))
            assert law.draw(1, script)[0] == side_of(bits, 224, cumulative)
            assert not script.left


def test_rational_thresholds_are_exact() -> None:
    """A threshold of 1/3 ties with 0x5555... as long as one likes; a threshold of 1/2 belongs to the upper side."""
    third = ExactLaw(lambda: [flint.arb(1) / 3])
    half = ExactLaw(lambda: [flint.arb(1) / 2])
    for n_words in (1, 3, 5, 7):
        same = [0x55555555] * n_words
        assert third.draw(1, ScriptedEntropy([*same, 0x55555554, 0]))[0] == 0
        assert third.draw(1, ScriptedEntropy([*same, 0x55555556, 0]))[0] == 1
    assert half.draw(1, ScriptedEntropy([0x80000000, 0, 0]))[0] == 1
    assert half.draw(1, ScriptedEntropy([0x7FFFFFFF]))[0] == 0


def test_a_threshold_a_hair_past_a_word_is_not_rounded_to_it() -> None:
    """F = (k + 2^-120) / 2^32 looks like k / 2^32 at first; u = k / 2^32 still falls below it."""
    k = 0x12345678
    law = ExactLaw(lambda: [flint.arb(k) / 2**32 + flint.arb(2) ** -152])
    for tail, expected in ((0, 0), (2**9 - 1, 1)):
        script = ScriptedEntropy([k, *as_words(tail, 128)])
        assert law.draw(1, script)[0] == expected
        assert not script.left


def test_impossible_outcomes_never_come() -> None:
    """Outcomes of chance 0 at either end stay out even for the words 0...0 and 1...1."""
    law = ExactLaw(lambda: [flint.arb(0), flint.arb(1) / 2, flint.arb(1)])
    assert law.draw(1, ScriptedEntropy([0, 0, 0]))[0] == 1
    assert law.draw(1, ScriptedEntropy([ONES]))[0] == 2


# ------------------------------------------------------------------------------------------------ the tail


def middle_of(law: ExactLaw, index: int, n_bits: int) -> list[int]:
    """Words in the middle of one outcome's cell."""
    with flint.ctx.workprec(n_bits + 300):
        cumulative = [flint.arb(0), *law._cumulative(), flint.arb(1)]
        middle = (cumulative[index] + cumulative[index + 1]) / 2 * flint.arb(2) ** n_bits
        return as_words(int(middle.floor().unique_fmpz()), n_bits)


@pytest.mark.parametrize("sign", [0, 1])
def test_tail_goes_on_where_the_digits_end(sign: int) -> None:
    """A low digit of "255 or more" draws again, as often as needed: 255 + 255 + 4, on either side of zero."""
    noise = DiscreteLaplace(Fraction(1, 2))
    top = noise._top
    # exp(-255/2) is about 2^-184, so the middle of the tail is a tie for 160 bits and settled by 224.
    script = middle_of(noise._low_digit, 255 + 256 * sign, 224) + middle_of(top, 255, 224) + middle_of(top, 4, 32)
    entropy = ScriptedEntropy(script)
    assert noise.draw(1, entropy)[0] == (-1 - 514 if sign else 514)
    assert not entropy.left


def test_tail_of_two_digits_goes_on_in_steps_of_256() -> None:
    """At scale 2000 the top digit is the second: 7 + 256 * (255 + 3)."""
    noise = Geometric(Fraction(1, 2000))
    low, top = noise._laws
    entropy = ScriptedEntropy(middle_of(low, 7, 32) + middle_of(top, 255, 96) + middle_of(top, 3, 32))
    assert noise.draw(1, entropy)[0] == 7 + 256 * (255 + 3)
    assert not entropy.left


@pytest.mark.parametrize("rate", ["1/2", "1/37", "1/2000", "1/1000000"])
def test_digits_and_tails_multiply_to_the_mass_function(rate: str) -> None:
    """The chances of the digits of g multiply to (1-a) a^g to thirty places, below, at and far into the tail."""
    laws = Geometric(Fraction(rate))._laws
    place = 256 ** (len(laws) - 1)
    with flint.ctx.workprec(4096):
        widths = []
        for law in laws:
            cumulative = [flint.arb(0), *law._cumulative(), flint.arb(1)]
            widths.append([b - a for a, b in itertools.pairwise(cumulative)])
        a = (-flint.arb(flint.fmpq(Fraction(rate).numerator, Fraction(rate).denominator))).exp()
        for g in (0, 1, 254, 255, 256, 65_537, 254 * place, 255 * place, 511 * place + 3, 600 * place + 77):
            rest, chance = g, flint.arb(1)
            for width in widths[:-1]:
                chance *= width[rest % 256]
                rest //= 256
            while rest >= 255:
                chance *= widths[-1][255]
                rest -= 255
            chance *= widths[-1][rest]
            assert float(abs(chance / ((1 - a) * a**g) - 1).upper()) < 1e-30


# ------------------------------------------------------------------------------------------------ the ends


class Constant:
    """A digit law that always gives the same digit, a limited number of times."""

    def __init__(self, digit: int, then: int, after: int) -> None:
        self.digit, self.then, self.after = digit, then, after

    def draw(self, n: int, entropy: object) -> np.ndarray:
        self.after -= 1
        return np.full(n, self.digit if self.after >= 0 else self.then, dtype=np.int64)


def test_endless_tails_saturate_without_overflow() -> None:
    """Noise stops at 2^62, never wraps round, and noisy counts stop at 2^61 on both sides."""
    higher = [Constant(255, 255, 1) for _ in range(5)]
    drawn = _sum_digits(np.array([255]), higher, Constant(255, 0, 2**15), ScriptedEntropy([]))
    assert drawn[0] == 2**62
    counts = np.array([2**53 + 2**62, -(2**62), 2**61 + 1, 2**61 - 1, 5])
    assert within_range(counts).tolist() == [2**61, -(2**61), 2**61, 2**61 - 1, 5]


@pytest.mark.parametrize("part", ["counts", "decisions"])
def test_noise_too_wide_for_64_bits_is_refused_by_the_plan(part: str) -> None:
    """A share so small that digits would overflow is refused while the plan is made; the widest allowed noise draws."""
    shares = {"counts": Fraction(1), "decisions": Fraction(1), part: Fraction(1, 2**52)}
    with pytest.raises(ParameterError, match="scale above 2\\^50"):
        paper_plan(
            unit=Unit.REPLACE_ONE,
            fixed_depth=1,
            max_depth=2,
            decision_epsilon=shares["decisions"],
            count_epsilon=shares["counts"],
            cutoff=0,
            threshold=1,
        )
    widest = DiscreteLaplace(SMALLEST_RATE).draw(1000, UnsafeSeededEntropy(0))
    assert 2**49 < np.abs(widest).mean() < 2**51


def test_saturated_noise_is_cut_whatever_the_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts of 0 and 1 with saturated noise leave as the same number, from occupied and from empty bins alike."""
    monkeypatch.setattr(DiscreteLaplace, "draw", lambda self, n, entropy: np.full(n, 2**62))
    noisy = add_noise(np.array([0, 1, 2**53]), Fraction(1), ScriptedEntropy([]))
    assert noisy.tolist() == [2**61] * 3

    monkeypatch.setattr(Geometric, "draw", lambda self, n, entropy: np.full(n, 2**62))
    plan = grid_plan(unit=Unit.ADD_REMOVE, depth=3, epsilon=Fraction(1, 10), threshold=1)
    roots = {0: np.zeros((1, 1), dtype=np.uint64)}
    _, _, empty_counts = EmptySpace(plan, lattice_of(line_of(3))).release(roots, UnsafeSeededEntropy(0))
    assert len(empty_counts) > 0
    assert set(empty_counts.tolist()) == {2**61}
