"""Sup-norm noise is drawn exactly: its parts multiply to the law, and every word is reduced without a remainder."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import flint
import numpy as np
import pytest

from spinney.errors import ParameterError
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.noise import supnorm
from spinney.privacy.noise.discrete import SMALLEST_RATE, DiscreteLaplace, within_range
from spinney.privacy.noise.supnorm import LARGEST_NOISE, MOST_AXES, SupNormNoise, eulerian_numbers, sup_norm_noise
from support.in_one_test import in_one_test
from support.repeated_releases import ScriptedEntropy

RATES = [Fraction(1, 3), Fraction(1), Fraction(10)]
TINY = flint.arb("1e-40")
REACH = 3  # the lattice on which laws are compared
FAR = 500  # at a rate of 1/3 no reach beyond this has a chance of 1e-60


# ------------------------------------------------------------------------------------------------ law


def chances_of_reach(law: SupNormNoise, n_parts: int) -> list[flint.arb]:
    """P(R = r), r <= FAR, of a start from the law's own table and of so many geometric parts at the law's own rate."""
    below = [flint.arb(0), *law._start._cumulative(), flint.arb(1)]
    starts = [high - low for low, high in itertools.pairwise(below)]
    chances = [*starts, *[flint.arb(0)] * (FAR + 1 - len(starts))]
    a = (-flint.arb(flint.fmpq(law._part.rate.numerator, law._part.rate.denominator))).exp()
    for _ in range(n_parts):  # P(S + G = r) = (1-a) P(S = r) + a P(S + G = r-1)
        summed = flint.arb(0)
        for r, chance in enumerate(chances):
            summed = (1 - a) * chance + a * summed
            chances[r] = summed
    return chances


def drawn_chances(law: SupNormNoise, n_parts: int | None = None) -> list[flint.arb]:
    """What the sampler gives each point of norm 0, 1, ..., REACH: the sum of P(R = r) / (2r+1)^k over r >= norm."""
    reach = chances_of_reach(law, law.n_axes + 1 if n_parts is None else n_parts)
    assert abs(1 - sum(reach, flint.arb(0))) < TINY
    k = law.n_axes
    return [sum((reach[r] / (2 * r + 1) ** k for r in range(m, FAR + 1)), flint.arb(0)) for m in range(REACH + 1)]


def claimed_chances(rate: Fraction, k: int) -> list[flint.arb]:
    """a^m / N, N counted shell by shell: (2m+1)^k - (2m-1)^k points have norm m."""
    a = (-flint.arb(flint.fmpq(rate.numerator, rate.denominator))).exp()
    n_points = [1, *((2 * m + 1) ** k - (2 * m - 1) ** k for m in range(1, FAR + 1))]
    whole = sum((n * a**m for m, n in enumerate(n_points)), flint.arb(0))
    return [a**m / whole for m in range(REACH + 1)]


def agree(one: list[flint.arb], other: list[flint.arb]) -> bool:
    return all(abs(x - y) < TINY for x, y in zip(one, other, strict=True))


@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("n_axes", [1, 2, 3, 7])
def test_the_parts_make_the_law(rate: Fraction, n_axes: int) -> None:
    """Start, k+1 geometric parts and a uniform point give a^norm / N to forty digits; k or k+2 parts do not."""
    law = SupNormNoise(rate, n_axes)
    with flint.ctx.workprec(300):
        claimed = claimed_chances(rate, n_axes)
        assert agree(drawn_chances(law), claimed)
        assert not agree(drawn_chances(law, n_axes), claimed)
        assert not agree(drawn_chances(law, n_axes + 2), claimed)
        assert not agree(drawn_chances(law), claimed_chances(rate * Fraction(1001, 1000), n_axes))


@pytest.mark.parametrize("rate", RATES, ids=str)
def test_one_axis_is_discrete_laplace_noise(rate: Fraction) -> None:
    """For k = 1 the chances are those of the discrete Laplace law, number by number."""
    with flint.ctx.workprec(300):
        laplace = DiscreteLaplace(rate)
        assert agree(drawn_chances(SupNormNoise(rate, 1)), [laplace.tail(m) - laplace.tail(m + 1) for m in range(4)])


@pytest.mark.parametrize("n_axes", [1, 2, 3])
def test_a_move_of_one_in_every_coordinate_costs_one_rate(n_axes: int) -> None:
    """Over a lattice the largest ratio of chances between shifts of norm 1 is exp(rate), whatever the dimension."""
    rate = Fraction(1, 3)
    with flint.ctx.workprec(300):
        chances = drawn_chances(SupNormNoise(rate, n_axes))
        inner, steps = (list(itertools.product(range(-m, m + 1), repeat=n_axes)) for m in (REACH - 1, 1))
        norm = [
            (max(map(abs, z)), max(abs(x + d) for x, d in zip(z, step, strict=True))) for z in inner for step in steps
        ]
        ratios = [chances[here] / chances[there] for here, there in set(norm)]
        assert all(ratio < flint.arb(flint.fmpq(1, 3)).exp() + TINY for ratio in ratios)
        assert any(abs(ratio - flint.arb(flint.fmpq(1, 3)).exp()) < TINY for ratio in ratios)


def test_the_numbers_turn_binomials_into_powers() -> None:
    """(2r+1)^k = sum of b_j binomial(r-j+k, k) in whole numbers, at more r than a polynomial of degree k could fake."""
    for k in range(1, MOST_AXES + 1):
        numbers = eulerian_numbers(k)
        assert min(numbers) == 1
        for r in range(2 * k + 2):
            assert (2 * r + 1) ** k == sum(b * math.comb(r - j + k, k) for j, b in enumerate(numbers) if j <= r + k)
    assert eulerian_numbers(3) == (1, 23, 23, 1)


# ------------------------------------------------------------------------------------------------ draws


class Given:
    """Stands in for a law: hands out given numbers."""

    def __init__(self, numbers: list[int]) -> None:
        self.left = numbers

    def draw(self, n: int, entropy: object) -> np.ndarray:
        taken, self.left = self.left[:n], self.left[n:]
        assert len(taken) == n, "more was drawn than the law takes"
        return np.array(taken, dtype=np.int64)


def staged(n_axes: int, starts: list[int], parts: list[int]) -> SupNormNoise:
    law = SupNormNoise(Fraction(1), n_axes)
    law._start, law._part = Given(starts), Given(parts)  # type: ignore[assignment]
    return law


def halves(words: list[int]) -> list[int]:
    """64-bit words as the pairs of 32-bit words that make them."""
    return np.array(words, dtype=np.uint64).view(np.uint32).tolist()


def test_a_reach_is_a_start_and_one_part_more_than_axes() -> None:
    """With words 0, r and 2r the coordinates are -r, 0 and r for r = start + all k+1 parts, row by row."""
    law = staged(3, [2, 0], [10, 20, 30, 40, 0, 0, 5, 1])
    words = [0, 102, 204, 6, 0, 12]
    drawn = law.draw(2, ScriptedEntropy(halves(words)))
    assert drawn.tolist() == [[-102, 0, 102], [0, -6, 6]]
    assert law._start.left == law._part.left == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("reach", [0, 1, 2, 127, 10**9, 2**31, 2**61, 65 * 2**55 + 64, 2**62 - 1])
def test_words_past_the_last_whole_run_are_refused(reach: int) -> None:
    """The last word of the last whole run gives r; the next one, and the very last, are read again."""
    n_values = 2 * reach + 1
    end = 2**64 // n_values * n_values
    cases = {0: -reach, n_values - 1: reach, end - 1: reach, end - n_values: -reach, min(end, 2**64 - 1): None}
    cases[2**64 - 1] = None if reach else 0  # words of a single value are never left over
    words = np.array(list(cases), dtype=np.uint64)
    out = np.empty(len(words), dtype=np.int64)
    any_refused = supnorm._spread(np.full(len(words), reach), words, out)
    assert out.tolist() == [supnorm._REFUSED if z is None else z for z in cases.values()]
    assert any_refused == (reach > 0)


def test_each_residue_has_as_many_words() -> None:
    """Around the end of the word range, where refusals happen, accepted words come in whole runs."""
    for reach in (1, 2, 3, 7, 24):
        n_values = 2 * reach + 1
        words = np.arange(2**64 - 20 * n_values - 2**64 % n_values, 2**64, dtype=np.uint64)
        out = np.empty(len(words), dtype=np.int64)
        supnorm._spread(np.full(len(words), reach), words, out)
        seen = Counter(out.tolist())
        assert seen.pop(supnorm._REFUSED, 0) == 2**64 % n_values
        assert seen == dict.fromkeys(range(-reach, reach + 1), 20)


def test_a_refused_word_is_replaced_in_its_own_place() -> None:
    """Only the refused coordinate reads a new word, and as often as it takes."""
    law = staged(2, [1, 0], [0, 0, 0, 1, 1, 0])
    words = [2, 2**64 - 1, 4, 0, 2**64 - 1, 0]
    assert law.draw(2, ScriptedEntropy(halves(words))).tolist() == [[1, -1], [2, -2]]


# ------------------------------------------------------------------------------------------------ range


def test_parts_that_saturate_go_on_beyond_64_bits() -> None:
    """A saturated part is continued until a draw is not; the row is uniform on that cube, then cut at 2^62."""
    law = staged(2, [1], [LARGEST_NOISE, 5, 7, LARGEST_NOISE, 9])
    reach = 1 + 5 + 7 + 9 + 2 * 2**62
    n_bits = (2 * reach + 1).bit_length()
    assert n_bits == 65

    def words(bits: int) -> list[int]:
        return [bits << 96 - n_bits >> shift & 0xFFFFFFFF for shift in (64, 32, 0)]

    # Fast-path words for the row, thrown away; then one too large, one below -2^62, one in range.
    entropy = ScriptedEntropy([0] * 4 + words(2 * reach + 1) + words(1) + words(reach - 3))
    assert law.draw(1, entropy).tolist() == [[-LARGEST_NOISE, -3]]
    assert entropy.left == []


@pytest.mark.parametrize("part", [2**55 - 1, 2**55])
def test_the_two_paths_meet(part: int) -> None:
    """65 parts just below the border stay in 64 bits; at the border whole numbers of any size take over."""
    law = staged(MOST_AXES, [MOST_AXES], [part] * (MOST_AXES + 1))
    drawn = law.draw(1, UnsafeSeededEntropy(1))
    reach = MOST_AXES + part * (MOST_AXES + 1)
    assert 2**60 < np.abs(drawn).max() <= reach < 2**62


def test_a_cut_number_leaves_no_trace_of_what_it_was_added_to() -> None:
    """After `within_range` a cut draw looks the same on any value up to 2^61 in size."""
    true = np.array([-(2**61), -5, 0, 2**61])
    assert set(within_range(true + LARGEST_NOISE).tolist()) == {2**61}
    assert set(within_range(true - LARGEST_NOISE).tolist()) == {-(2**61)}


def test_the_widest_noise_stays_far_inside() -> None:
    """At the smallest rate and the most axes nothing comes near the cut."""
    drawn = SupNormNoise(SMALLEST_RATE, MOST_AXES).draw(2000, UnsafeSeededEntropy(2))
    assert 2**54 < np.abs(drawn).max() < 2**58


# ------------------------------------------------------------------------------------------------ variance


@in_one_test("rate", ["1/50", "1/3", "1", "10"])
@in_one_test("n_axes", [1, 2, 5, MOST_AXES])
def test_the_variance_is_that_of_the_law(rate: str, n_axes: int) -> None:
    """Summed over shells, a point of the shell m having the mean square of a coordinate there."""
    k, r = n_axes, Fraction(rate)
    with flint.ctx.workprec(1000):
        a = (-flint.arb(flint.fmpq(r.numerator, r.denominator))).exp()
        top = int((k + 80) / r) + 10
        whole, squares, power = flint.arb(0), flint.arb(0), flint.arb(1)
        for m in range(top):
            # Squares of one coordinate over the cube {-m..m}^k: (2m+1)^(k-1) * 2 * (1 + 4 + ... + m^2).
            cube, inner = (2 * m + 1) ** k, (2 * m - 1) ** k if m else 0
            cube_sum = (2 * m + 1) ** (k - 1) * (m * (m + 1) * (2 * m + 1) // 3)
            inner_sum = (2 * m - 1) ** (k - 1) * ((m - 1) * m * (2 * m - 1) // 3) if m else 0
            whole += (cube - inner) * power
            squares += (cube_sum - inner_sum) * power
            power *= a
        expected = float(squares / whole)
    assert SupNormNoise(r, k).variance() == pytest.approx(expected, rel=1e-13, abs=0)


@pytest.mark.parametrize("n_axes", [1, 3, MOST_AXES])
def test_wide_noise_has_the_continuous_variance(n_axes: int) -> None:
    """(k+1)(k+2) / (3 rate^2) at a rate of 2^-40."""
    limit = (n_axes + 1) * (n_axes + 2) / 3 * 2.0**80
    assert SupNormNoise(Fraction(1, 2**40), n_axes).variance() == pytest.approx(limit, rel=1e-12, abs=0)


# ------------------------------------------------------------------------------------------------ input


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(-1), SMALLEST_RATE / 2, Fraction(1, 10**400)])
def test_rates_out_of_range_are_refused(rate: Fraction) -> None:
    """Noise that would not fit into 64 bits is named."""
    with pytest.raises(ParameterError, match=r"rate=.* is below"):
        sup_norm_noise(rate, 2)


@pytest.mark.parametrize("n_axes", [-1, 0, MOST_AXES + 1])
def test_axes_out_of_range_are_refused(n_axes: int) -> None:
    """Vectors of no or too many coordinates are named."""
    with pytest.raises(ParameterError, match=r"n_axes=.* is outside"):
        sup_norm_noise(Fraction(1), n_axes)


@pytest.mark.parametrize("n", [0, 1, 7, 100_001])
def test_as_many_rows_as_asked_for(n: int) -> None:
    """Neither blocks nor refusals leave a row short; the same seed gives the same rows, another seed others."""
    law = sup_norm_noise(Fraction(1, 100), 4)
    drawn = law.draw(n, UnsafeSeededEntropy(3))
    assert drawn.shape == (n, 4)
    assert drawn.dtype == np.int64
    assert np.array_equal(drawn, sup_norm_noise(Fraction(1, 100), 4).draw(n, UnsafeSeededEntropy(3)))
    assert n == 0 or not np.array_equal(drawn, law.draw(n, UnsafeSeededEntropy(4)))
