"""The selection of values: its law in exact numbers, the privacy of it worked out case by case, and laws that fail."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import flint
import numpy as np
import pytest

from spinney.errors import BudgetError
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.noise.choices import KeepLaw, keep_law
from spinney.privacy.noise.discrete import arb_fraction
from support.goodness_of_fit import ACCEPT, REJECT, p_value

BUDGETS = [
    (Fraction(1, 5), Fraction(1, 10**6)),
    (Fraction(1), Fraction(1, 10**3)),
    (Fraction(3), Fraction(1, 100)),
    (Fraction(1, 50), Fraction(1, 10**9)),
]


def slow_law(epsilon: Fraction, delta: Fraction, unit: Unit) -> list[flint.arb]:
    """The recursion of the proof at 300 bits, without rounding, until it ends."""
    replaced = unit is Unit.REPLACE_ONE
    g = epsilon * Fraction(3, 5) if replaced else epsilon
    d = epsilon - g if replaced else epsilon
    delta_g = delta * Fraction(9, 10) if replaced else delta
    delta_d = delta - delta_g if replaced else delta
    up, down = arb_fraction(g).exp(), arb_fraction(d).exp()
    law = [flint.arb(0)]
    while not law[-1] >= 1:
        grown = up * law[-1] + arb_fraction(delta_g)
        rest = 1 - law[-1] - arb_fraction(delta_d)
        shrunk = 1 - rest / down if rest > 0 else flint.arb(1)
        law.append(min(grown, shrunk, flint.arb(1), key=lambda ball: float(ball.mid())))
    return law


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize("unit", [Unit.REPLACE_ONE, Unit.ADD_REMOVE])
def test_the_law_is_the_recursion_rounded_down(epsilon, delta, unit):
    """No probability is above that of the proof, and none is more than a millionth of itself below it."""
    law = keep_law(epsilon, delta, unit)
    with flint.ctx.workprec(300):
        slow = slow_law(epsilon, delta, unit)
        assert abs(law.n_certain - (len(slow) - 1)) <= 1
        for n_rows in range(law.n_certain):
            gap = slow[n_rows] - arb_fraction(law.probability(n_rows))
            assert not gap < 0
            assert gap <= slow[n_rows] / 10**6
    assert law.probability(0) == 0


def worst_delta(law: list[Fraction], epsilon: Fraction, unit: Unit) -> flint.arb:
    """The largest H over all neighbours: one coin changes, or one loses a row and another gains one."""
    gamma = arb_fraction(epsilon).exp()
    links = range(1, len(law))
    worst = flint.arb(0)
    down = [(law[n], law[n - 1]) for n in links]  # a value loses a row: before, after
    pairs = [(one,) for one in down] + [((q, p),) for p, q in down]
    if unit is Unit.REPLACE_ONE:
        pairs += [(one, (q, p)) for one in down for p, q in down]
    for coins in pairs:
        excess = flint.arb(0)
        for sides in product((True, False), repeat=len(coins)):
            p, q = Fraction(1), Fraction(1)
            for kept, (before, after) in zip(sides, coins, strict=True):
                p *= before if kept else 1 - before
                q *= after if kept else 1 - after
            more = arb_fraction(p) - gamma * arb_fraction(q)
            excess += more if more > 0 else 0
        worst = excess if excess > worst else worst
    return worst


@pytest.mark.parametrize(("epsilon", "delta"), [(Fraction(1), Fraction(1, 1000)), (Fraction(2), Fraction(1, 10**5))])
@pytest.mark.parametrize("unit", [Unit.REPLACE_ONE, Unit.ADD_REMOVE])
def test_no_neighbours_can_be_told_apart_better_than_stated(epsilon, delta, unit):
    """All pairs of numbers of rows, both outcomes of both coins, in exact numbers."""
    law = keep_law(epsilon, delta, unit)
    chances = [law.probability(n) for n in range(law.n_certain + 2)]
    with flint.ctx.workprec(200):
        assert worst_delta(chances, epsilon, unit) <= arb_fraction(delta)


@pytest.mark.parametrize("unit", [Unit.REPLACE_ONE, Unit.ADD_REMOVE])
def test_laws_that_are_too_generous_are_told(unit):
    """A tenth more epsilon, a hundredth more of one probability, a value that is kept too early: each breaks it."""
    epsilon, delta = Fraction(1), Fraction(1, 1000)
    right = keep_law(epsilon, delta, unit)
    chances = [right.probability(n) for n in range(right.n_certain + 2)]
    hasty = keep_law(epsilon * Fraction(11, 10), delta, unit)
    early = [min(Fraction(1), chance * Fraction(101, 100)) for chance in chances]
    broken = [
        [hasty.probability(n) for n in range(hasty.n_certain + 2)],
        [chances[0], *early[1:]],
        [Fraction(0), 2 * delta, *chances[2:]],
    ]
    with flint.ctx.workprec(200):
        for law in broken:
            assert not worst_delta(law, epsilon, unit) <= arb_fraction(delta)


def test_the_law_of_one_unit_does_not_hold_in_the_other():
    """Under replace-one two values change, so the law of add-remove tells too much."""
    epsilon, delta = Fraction(1), Fraction(1, 1000)
    law = keep_law(epsilon, delta, Unit.ADD_REMOVE)
    chances = [law.probability(n) for n in range(law.n_certain + 2)]
    with flint.ctx.workprec(200):
        assert not worst_delta(chances, epsilon, Unit.REPLACE_ONE) <= 100 * arb_fraction(delta)


@pytest.mark.parametrize("n_rows", [15, 20, 25, 28])
def test_values_are_kept_as_often_as_the_law_says(n_rows):
    """Draws follow the probability, and not one of a tenth more or less."""
    law, n = keep_law(Fraction(1, 5), Fraction(1, 1000), Unit.ADD_REMOVE), 200_000
    kept = int(law.keep(np.full(n, n_rows), UnsafeSeededEntropy(n_rows)).sum())
    seen, chance = {True: kept, False: n - kept}, float(law.probability(n_rows))
    assert p_value(seen, {True: chance, False: 1 - chance}) > ACCEPT
    for wrong in (chance * 0.9, chance * 1.1):
        assert p_value(seen, {True: wrong, False: 1 - wrong}) < REJECT


def test_values_of_no_rows_are_never_kept_and_of_many_always():
    """Nothing is invented, and what is certain is certain."""
    law = keep_law(Fraction(1, 5), Fraction(1, 1000), Unit.REPLACE_ONE)
    counts = np.repeat([0, law.n_certain, 10**9], 1000)
    assert np.array_equal(law.keep(counts, UnsafeSeededEntropy(1)), counts > 0)


def test_rows_for_is_the_first_number_of_rows_that_reaches_a_probability():
    """Half the time, nearly always, and certainly."""
    law = keep_law(Fraction(1, 5), Fraction(1, 10**6), Unit.ADD_REMOVE)
    for probability in (Fraction(1, 2), Fraction(999, 1000)):
        n = law.rows_for(probability)
        assert law.probability(n - 1) < probability <= law.probability(n)
    assert isinstance(law, KeepLaw)


@pytest.mark.parametrize(
    ("epsilon", "delta", "message"),
    [(Fraction(1, 2**30), Fraction(1, 10**8), "epsilon=.* is too small"), (Fraction(1), Fraction(1, 2**70), "delta=")],
)
def test_budgets_that_find_nothing_are_refused(epsilon, delta, message):
    """A law that would need a million rows, or a delta below a draw's resolution."""
    with pytest.raises(BudgetError, match=message):
        keep_law(epsilon, delta, Unit.ADD_REMOVE)
