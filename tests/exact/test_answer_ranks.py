"""The rank law, by enumeration: how often noise lies beyond a rank of its own copies."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from spinney.errors import ParameterError
from spinney.release.answers.ranks import (
    generator_of,
    least_draws,
    rank,
    rank_half_width,
    simultaneous_half_widths,
)

# A symmetric law of three values: -1 and 1 with probability 1/4, 0 with 1/2; and one of two values.
LAWS = {
    "three values": {-1: Fraction(1, 4), 0: Fraction(1, 2), 1: Fraction(1, 4)},
    "two values": {-3: Fraction(1, 2), 3: Fraction(1, 2)},
    "five values": {k: Fraction(w, 16) for k, w in zip((-5, -1, 0, 1, 5), (1, 4, 6, 4, 1), strict=True)},
}


def missed(law: dict[int, Fraction], n_draws: int, level: float) -> tuple[Fraction, Fraction]:
    """P(|T| > half-width) and P(T > half-width), over T and its copies."""
    beyond = above = Fraction(0)
    for drawn in product(law, repeat=n_draws):
        chance = np.prod([law[value] for value in drawn])
        width = rank_half_width(np.array(drawn), level)
        beyond += chance * sum(law[value] for value in law if abs(value) > width)
        above += chance * sum(law[value] for value in law if value > width)
    return beyond, above


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize(("n_draws", "level"), [(4, 0.8), (3, 0.5), (4, 0.6), (5, 0.7)])
def test_noise_lies_beyond_its_rank_no_more_often_than_it_may(name: str, n_draws: int, level: float) -> None:
    """P(|T| > q) <= 1 - level, and half of that on each side, for laws with atoms too."""
    beyond, above = missed(LAWS[name], n_draws, level)
    assert beyond <= 1 - level + 1e-12
    assert above == beyond / 2


def test_without_ties_a_rank_is_met_exactly() -> None:
    """All orders of distinct sizes are equally likely, so the chance is (N + 1 - r) / (N + 1) to the digit."""
    sizes = [1.0, 2.0, 3.0, 4.0, 5.0]
    n_missed = 0
    for real in range(5):
        others = [size for place, size in enumerate(sizes) if place != real]
        n_missed += sizes[real] > rank_half_width(np.array(others), 0.6)
    assert Fraction(n_missed, 5) == Fraction(4 + 1 - rank(4, 0.6), 5) == Fraction(2, 5)


def test_one_rank_lower_would_fail() -> None:
    """The rank is the least that will do: the next lower one is missed more often than the level allows."""
    for n_draws, level in [(4, 0.8), (19, 0.95), (999, 0.95), (99, 0.9)]:
        r = rank(n_draws, level)
        assert Fraction(n_draws + 1 - r, n_draws + 1) <= 1 - Fraction(str(level))
        assert Fraction(n_draws + 1 - (r - 1), n_draws + 1) > 1 - Fraction(str(level))


def test_many_hold_at_once() -> None:
    """max |T| / scale is ranked: over all outcomes of two numbers and their copies, both hold often enough."""
    law, level, scales = LAWS["three values"], 0.75, np.array([1.0, 2.0])
    pairs = {(a, 2 * b): law[a] * law[b] for a in law for b in law}
    beyond = Fraction(0)
    for drawn in product(pairs, repeat=3):
        chance = np.prod([pairs[pair] for pair in drawn])
        widths = simultaneous_half_widths(np.array(drawn, dtype=float), scales, level)
        beyond += chance * sum(pairs[pair] for pair in pairs if (np.abs(pair) > widths).any())
    assert beyond <= Fraction(1, 4)
    assert (simultaneous_half_widths(np.zeros((3, 1)), np.zeros(1), level) == 0).all()


def test_too_high_a_level_is_refused() -> None:
    """A level needs enough draws, and above 0.9999 there are never enough."""
    assert [least_draws(level) for level in (0.5, 0.95, 0.99, 0.9999)] == [1, 19, 99, 9999]
    with pytest.raises(ParameterError, match="more than 19 draws"):
        rank(19, 0.96)
    with pytest.raises(ParameterError, match=r"above 0\.9999"):
        least_draws(0.99999)


def test_a_generator_repeats_by_what_it_is_given() -> None:
    """The same arrays and texts give the same draws; other shapes of the same bytes, or other texts, do not."""
    one = generator_of(np.arange(3), "ranks").random()
    assert one == generator_of(np.arange(3), "ranks").random()
    assert one != generator_of(np.arange(3), "refits").random()
    assert generator_of("ab", "c").random() != generator_of("a", "bc").random()
