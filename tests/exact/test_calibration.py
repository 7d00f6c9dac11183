"""PrivTree's calibration: the certified worst case is what brute force finds, and no rate is given away."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations_with_replacement

import flint
import pytest

from spinney.privacy.budget import Unit
from spinney.tree.bins import decay_for, is_within, largest_privtree_rate, worst_path_loss
from support.in_one_test import in_one_test
from support.output_laws import tail


def extremes_over_paths(rate: float, decay: int, levels: int, cutoff: int) -> tuple[float, float]:
    """Largest and least log-ratio of all decisions on one path when a row is added, over all counts and all outcomes.

    Counts do not increase downwards. An outcome is: split i times, then stop; or split all the way.
    """

    def score(count: int, level: int) -> int:
        return max(count - level * decay, cutoff - decay)

    tallest = cutoff + levels * decay + 2
    largest = least = 0.0
    for path in combinations_with_replacement(range(tallest, -1, -1), levels):
        so_far = 0.0
        for level, count in enumerate(path):
            gap, new_gap = cutoff - score(count, level), cutoff - score(count + 1, level)
            stop = so_far + math.log(tail(rate, -new_gap) / tail(rate, -gap))
            so_far += math.log(tail(rate, new_gap + 1) / tail(rate, gap + 1))
            largest, least = max(largest, stop, so_far), min(least, stop, so_far)
    return largest, least


@in_one_test("cutoff", [0, 2])
@in_one_test("levels", [1, 2, 3, 4])
@in_one_test(("rate", "decay"), [("1/4", 3), ("2/5", 2), ("1", 1), ("1/3", 1), ("3", 2)])
def test_certified_loss_is_the_brute_force_loss(rate: str, decay: int, levels: int, cutoff: int) -> None:
    """S under add-remove, S + rate under replace-one, for any decay: not an upper bound but the maximum itself.

    Under replace-one one path gains the row and another loses it. Outcomes on the two are chosen freely, so
    their extremes add.
    """
    gains, loses = extremes_over_paths(float(Fraction(rate)), decay, levels, cutoff)
    certified = {unit: float(worst_path_loss(Fraction(rate), decay, levels, unit)) for unit in Unit}
    assert certified[Unit.ADD_REMOVE] == pytest.approx(max(gains, -loses), abs=1e-12)
    assert certified[Unit.REPLACE_ONE] == pytest.approx(gains - loses, abs=1e-12)


def test_wrong_worst_cases_differ_from_brute_force() -> None:
    """The comparison has teeth: one level fewer, or another decay, is off by far more than its tolerance."""
    gains, _ = extremes_over_paths(0.25, 3, 3, 0)
    assert abs(float(worst_path_loss(Fraction(1, 4), 3, 2, Unit.ADD_REMOVE)) - gains) > 0.01
    assert abs(float(worst_path_loss(Fraction(1, 4), 4, 3, Unit.ADD_REMOVE)) - gains) > 0.01


@in_one_test("unit", [Unit.REPLACE_ONE, Unit.ADD_REMOVE], ids=str)
@in_one_test("levels", [1, 2, 5, 60])
@in_one_test("epsilon", ["1/100", "2/5", "1", "7"])
def test_largest_rate_is_within_epsilon_and_not_improvable(epsilon: str, levels: int, unit: Unit) -> None:
    """The chosen rate is certainly within epsilon', and a rate 0.1 % higher is certainly not."""
    budget = Fraction(epsilon)
    rate, decay = largest_privtree_rate(budget, levels=levels, unit=unit)
    assert decay == decay_for(rate)
    with flint.ctx.workprec(256):
        assert worst_path_loss(rate, decay, levels, unit) <= flint.arb(flint.fmpq(budget.numerator, budget.denominator))
    higher = rate * Fraction(1001, 1000)
    assert not is_within(higher, decay_for(higher), levels, unit, budget)
    assert is_within(rate, decay, levels, unit, budget)


@pytest.mark.parametrize("rate", ["1/1000", "1/7", "1/2", "7/10", "5"])
def test_decay_halves_an_empty_nodes_chance(rate: str) -> None:
    """The decay is the smallest whole number, at least 1, with exp(-rate * decay) <= 1/2."""
    decay = decay_for(Fraction(rate))
    assert math.exp(-float(Fraction(rate)) * decay) <= 0.5
    assert decay == 1 or math.exp(-float(Fraction(rate)) * (decay - 1)) > 0.5


def test_textbook_scale_spends_less_than_it_says() -> None:
    """At epsilon' = 1 the textbook scale 3 with decay 3 loses about 0.78 (add-remove): calibration has room."""
    textbook = Fraction(1, 3)
    assert decay_for(textbook) == 3
    assert float(worst_path_loss(textbook, 3, 100, Unit.ADD_REMOVE)) == pytest.approx(0.78, abs=0.005)
    rate, _ = largest_privtree_rate(Fraction(1), levels=100, unit=Unit.ADD_REMOVE)
    assert 1.10 < rate / textbook < 1.35
    # Replace-one: the textbook doubles the scale, the exact worst case adds one more rate.
    rate, _ = largest_privtree_rate(Fraction(1), levels=100, unit=Unit.REPLACE_ONE)
    assert 1.5 < rate / (textbook / 2) < 1.8


def test_no_levels_cost_nothing() -> None:
    """A tree without decisions has no decision loss, and one decision costs one rate per table it differs in."""
    rate = Fraction(1, 3)
    losses = {unit: [float(worst_path_loss(rate, 3, levels, unit)) for levels in (0, 1)] for unit in Unit}
    assert losses[Unit.ADD_REMOVE] == pytest.approx([0, 1 / 3])
    assert losses[Unit.REPLACE_ONE] == pytest.approx([0, 2 / 3])


@in_one_test("unit", Unit)
@in_one_test("epsilon", [Fraction(1, 2**30), Fraction(1), Fraction(300), Fraction(1000), Fraction(2**20)])
def test_every_rate_is_certified_and_near_the_best(unit, epsilon):
    """From the smallest to the largest budget the rate is certified, and 0.1 % more would not be."""
    rate, decay = largest_privtree_rate(epsilon, levels=40, unit=unit)
    assert is_within(rate, decay, 40, unit, epsilon)
    more = rate * Fraction(1001, 1000)
    assert not is_within(more, decay_for(more), 40, unit, epsilon)
