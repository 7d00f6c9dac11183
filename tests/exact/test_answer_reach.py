"""How far noise reaches, against exact laws: by convolution, and of ranks by the binomial law of their copies."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from spinney.errors import ParameterError
from spinney.forest.release.certify import Counted, certified_count
from spinney.forest.release.columns import ColumnModel
from spinney.forest.release.measured import NoiseLaw
from spinney.forest.release.parts import Part
from spinney.release.answers.ranks import LUCK, USUAL_DRAWS, generator_of, least_draws, rank, rank_half_width
from spinney.release.answers.reach import Law, NoiseSum, level_of_each
from spinney.tree.release.certify import CountNoise
from support.in_one_test import in_one_test

Chances = np.ndarray


def chances(law: Law) -> Chances:
    """P(-n), ..., P(n) of a law, all of it but 1e-15 or so."""
    if isinstance(law, CountNoise):
        r = np.arange(math.ceil((law.n_numbers + 45) / law.rate), dtype=float)
        of_reach = (2 * r + 1) ** law.n_numbers * np.exp(-law.rate * r)
        side = np.cumsum((of_reach / (2 * r + 1))[::-1])[::-1]
    elif law.law == "discrete laplace":
        side = np.exp(-float(law.scale) * np.arange(math.ceil(40 / float(law.scale))))
    else:
        z = np.arange(math.ceil(9 * math.sqrt(law.scale)) + 4)
        side = np.exp(-(z**2) / (2 * float(law.scale)))
    whole = np.concatenate([side[:0:-1], side])
    return whole / whole.sum()


def summed(law: Law, times: int, size: int = 1 << 17) -> tuple[np.ndarray, np.ndarray]:
    """Values and probabilities of the sum of so many numbers of a law."""
    one = chances(law)
    n = min((len(one) - 1) // 2 * times, size // 2 - 1)
    padded = np.roll(np.pad(one, (0, size - len(one))), -((len(one) - 1) // 2))
    power = np.fft.irfft(np.fft.rfft(padded) ** times, size)
    return np.arange(-n, n + 1), np.maximum(np.roll(power, n)[: 2 * n + 1], 0.0)


def held(law: Law, groups: list[tuple[float, int]], x: float) -> float:
    """P(|a A + b B| <= x), A and B sums of so many numbers of a law, exactly."""
    (a, n_a), (b, n_b) = groups
    ones, p = summed(law, n_a)
    others, q = summed(law, n_b)
    below = np.concatenate([[0.0], np.cumsum(q)])
    upto = np.searchsorted(abs(b) * others, x - a * ones + 1e-9, side="right")
    before = np.searchsorted(abs(b) * others, -x - a * ones - 1e-9, side="left")
    return float(p @ (below[upto] - below[before]))


LAWS: dict[str, Law] = {
    "laplace": NoiseLaw("discrete laplace", Fraction(1, 7)),
    "little laplace": NoiseLaw("discrete laplace", Fraction(3)),
    "gaussian": NoiseLaw("discrete gaussian", Fraction(200)),
    "little gaussian": NoiseLaw("discrete gaussian", Fraction(1, 3)),
    "a leaf of two numbers": CountNoise(0.1, 2),
    "a leaf of five numbers": CountNoise(0.05, 5),
}


@in_one_test("name", LAWS)
@in_one_test("groups", [[(1.0, 1), (0.0, 1)], [(0.7, 3), (-0.3, 7)], [(0.98, 1), (-0.02, 49)]], ids=str)
@in_one_test("level", [0.5, 0.95, 0.999])
def test_noise_is_within_its_reach_as_often_as_the_level_says(
    name: str, groups: list[tuple[float, int]], level: float
) -> None:
    """By convolution: never less often, and hardly further than it must, to a fiftieth of a standard deviation."""
    law = LAWS[name]
    total = NoiseSum([(law, np.repeat([a for a, _ in groups], [n for _, n in groups]))])
    reach = total.reach(level)
    assert held(law, groups, reach) >= level
    assert held(law, groups, reach - 0.02 * total.std) < level
    assert total.within(reach, 1 - level)


def test_coverage_of_every_category_is_the_level_whatever_epsilon_is() -> None:
    """Fifty categories at three sizes of noise: the exact coverage of each given interval, to what halves of rows hide.

    Intervals by ranks of 999 copies from a generator with a seed were between 0.93 and 0.97, each for ever.
    """
    n, level = 50, 0.95
    leaves = ColumnModel(np.arange(n), np.ones(n), np.zeros(n, dtype=bool), np.ones(n), np.arange(n, dtype=np.int32), n)
    for variance in (60**2, 150**2, 400**2):
        law = NoiseLaw("discrete gaussian", Fraction(variance))
        exact: dict[float, float] = {}
        for leaf in range(n):
            is_in = np.arange(n) == leaf
            reach = 0.0
            for part_of_a_row in np.arange(8) / 8:  # ends are whole: where they jump says how far they are
                noisy = np.full(n, 10_000.0)
                noisy[leaf] += part_of_a_row * n / (n - 1)
                counted = Counted((0,), noisy, law, np.arange(n), True, 10_000 * n)  # type: ignore[arg-type]
                found = certified_count(counted, {0: Part(leaves, is_in.astype(float), is_in, is_in)}, level)
                reach = max(reach, 10_000 + part_of_a_row - found.low)
            if reach not in exact:
                exact[reach] = held(law, [(1 - 1 / n, 1), (-1 / n, n - 1)], reach)
            assert level <= exact[reach] <= level + 3e-3, (variance, leaf)


def test_sums_of_any_coefficients_are_within_reach() -> None:
    """Coefficients that are all different, by a hundred thousand draws: the level, and not more than that."""
    law, rng = NoiseLaw("discrete laplace", Fraction(1, 7)), np.random.default_rng(0)
    line = rng.normal(size=60)
    drawn = np.abs(law.draw(rng, (100_000, 60)) @ line)
    reach = NoiseSum([(law, line)]).reach(0.95)
    assert 0.9478 <= np.mean(drawn <= reach) <= 0.9535
    assert np.mean(drawn <= 0.95 * reach) < 0.94


def test_without_noise_nothing_is_added() -> None:
    """Coefficients of 0, and none: the number itself is known."""
    for line in (np.zeros(3), np.zeros(0)):
        assert NoiseSum([(LAWS["laplace"], line)]).reach(0.95) == 0.0


def test_many_sums_share_the_probability_of_a_miss_once_each() -> None:
    """A complement fails with its part, so that two of four lines count; different ones all count."""
    lines = np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1 / 3, -2 / 3]])
    assert level_of_each(lines, 0.9) == pytest.approx(0.95)
    assert level_of_each(np.eye(5), 0.9) == pytest.approx(0.98)


@pytest.mark.parametrize(("n_draws", "level"), [(999, 0.95), (USUAL_DRAWS, 0.99), (499, 0.9), (404, 0.95)])
def test_a_rank_is_too_low_for_the_law_once_in_a_million(n_draws: int, level: float) -> None:
    """The r-th smallest of n sizes covers less than the level if r of them are below: exactly, and r - 1 is too low."""
    r, chance = rank(n_draws, level), Fraction(level) + Fraction(LUCK)

    def too_low(r: int) -> Fraction:
        ways: Callable[[int], Fraction] = lambda j: math.comb(n_draws, j) * chance**j * (1 - chance) ** (n_draws - j)  # noqa: E731
        return sum((ways(j) for j in range(r, n_draws + 1)), Fraction(0))

    assert too_low(r) <= Fraction(LUCK) * (1 + Fraction(1, 10**6))
    assert too_low(r - 1) > Fraction(LUCK)
    copies = np.random.default_rng(1).normal(size=n_draws)
    assert rank_half_width(copies, level) == np.sort(np.abs(copies))[r - 1]


def test_too_high_a_level_is_refused() -> None:
    """A level needs enough draws, and above 0.9999 there are never enough."""
    for level in (0.5, 0.95, 0.99, 0.9999):
        n = least_draws(level)
        assert rank(n, level) <= n
        with pytest.raises(ParameterError, match="more than"):
            rank(n - 1, level)
    with pytest.raises(ParameterError, match=r"above 0\.9999"):
        least_draws(0.99999)


def test_a_generator_repeats_by_what_it_is_given() -> None:
    """The same arrays and texts give the same draws; other shapes of the same bytes, or other texts, do not."""
    one = generator_of(np.arange(3), "ranks").random()
    assert one == generator_of(np.arange(3), "ranks").random()
    assert one != generator_of(np.arange(3), "refits").random()
    assert generator_of("ab", "c").random() != generator_of("a", "bc").random()
