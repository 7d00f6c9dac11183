"""Figures of utility: how far neighbours move them, and what their noise lets out, enumerated on small tables.

Every table of a few rows and every neighbour, every release that rows can be drawn from: the figures of the product are
compared with a slow twin, and the loss of every outcome is worked out from the mathematics of the noise. Then a zoo.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product
from unittest import mock

import numpy as np
import pytest

from spinney.counting import states as state_tables
from spinney.counting.states import ExpectedTables, StateRows, true_figures
from spinney.errors import BudgetError
from spinney.privacy.budget import Unit
from spinney.privacy.composition import composed_deltas
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.ledger import Ledger
from spinney.privacy.mechanisms import GaussianVector, LeafMoments, vector_variance
from spinney.privacy.noise.supnorm import sup_norm_noise
from spinney.release import utility as laws
from spinney.tree.bought import PaidFigures
from support.gaussian_pairs import largest_deltas, vector_pair

UNITS = pytest.mark.parametrize("unit", [Unit.REPLACE_ONE, Unit.ADD_REMOVE], ids=str)
SIZES = (2, 3)  # two columns
CELLS = [*product(range(2), range(3))]
CLIQUES = [[(0,), (1,)], [(0, 1)]]
EPSILON = Fraction(1, 2)
STEPS = 2  # of a row, in place of 2^10: the laws are the same, and outcomes are few

Table = tuple[tuple[int, int], ...]
Figures = Callable[[Table, np.ndarray, Unit], tuple[int, ...]]


def tables(n_rows: int) -> list[Table]:
    return [*combinations_with_replacement(CELLS, n_rows)]


def neighbours(table: Table, unit: Unit) -> Iterator[Table]:
    for place in range(len(table)):
        rest = table[:place] + table[place + 1 :]
        if unit is Unit.ADD_REMOVE:
            yield rest
        else:
            yield from (tuple(sorted((*rest, cell))) for cell in CELLS)


def releases() -> list[np.ndarray]:
    """Shares that rows drawn from a release may have: even, in one cell, and uneven ones."""
    uneven = np.array([[1, 2, 0], [3, 1, 1]]) / 8
    corner = np.zeros(SIZES)
    corner[1, 2] = 1.0
    return [np.full(SIZES, 1 / 6), corner, uneven]


def sums_of(shares: np.ndarray, clique: tuple[int, ...]) -> np.ndarray:
    return shares.sum(axis=tuple(axis for axis in range(2) if axis not in clique))


N_EXPECTED = 3  # the rows that a release is compared for: public, or released


def of_the_product(table: Table, shares: np.ndarray, _: Unit) -> tuple[int, ...]:
    """What a fit counts."""
    rows = StateRows(np.array(table, dtype=np.uint8).reshape(-1, 2).T, SIZES)
    expected = [
        ExpectedTables(tuple(some), tuple(N_EXPECTED * sums_of(shares, clique) for clique in some)) for some in CLIQUES
    ]
    with mock.patch.object(state_tables, "GAP_STEPS", STEPS):
        return tuple(true_figures(rows, expected).tolist())


def by_definition(table: Table, shares: np.ndarray, _: Unit) -> tuple[int, ...]:
    """The slow twin, in fractions."""
    figures: list[int] = []
    for some in CLIQUES:
        distances = []
        for clique in some:
            wanted, total = sums_of(shares, clique), 0
            for cell in product(*(range(SIZES[axis]) for axis in clique)):
                count = sum(tuple(row[axis] for axis in clique) == cell for row in table)
                total += abs(STEPS * count - int(np.rint(STEPS * N_EXPECTED * wanted[cell])))
            distances.append(total)
        figures += [math.floor(Fraction(sum(distances), len(distances))), max(distances)]
    return tuple(figures)


def worst_loss(figures: Figures, unit: Unit, rate: Fraction, n_rows: int = 3) -> float:
    """The largest log-ratio of all outcomes, over all tables, neighbours and releases.

    Sup-norm noise has P(z) proportional to exp(-rate max |z|), so outcomes beyond the figures of both lose no more.
    """
    worst = 0.0
    for shares in releases():
        seen = {
            table: np.array(figures(table, shares, unit)) for size in (n_rows - 1, n_rows) for table in tables(size)
        }
        pairs = {
            (tuple(seen[table].tolist()), tuple(seen[other].tolist()))
            for table in tables(n_rows)
            for other in neighbours(table, unit)
        }
        for one, other in pairs:
            first, second = np.array(one), np.array(other)
            outcomes = [
                first,
                second,
                2 * first - second,
                2 * second - first,
                *map(np.array, product(*zip(one, other, strict=True))),
            ]
            for outcome in outcomes:
                gap = np.abs(outcome - second).max() - np.abs(outcome - first).max()
                worst = max(worst, float(rate) * abs(float(gap)))
    return worst


def rate_of(unit: Unit) -> Fraction:
    return EPSILON / (STEPS * unit.factor)


@UNITS
def test_figures_are_those_of_the_definition(unit):
    """On all tables of up to three rows, and for every release."""
    for shares in releases():
        for n_rows in (1, 2, 3):
            for table in tables(n_rows):
                assert of_the_product(table, shares, unit) == by_definition(table, shares, unit)


@UNITS
def test_no_neighbour_loses_more_than_was_charged(unit):
    """Pure: the loss of every outcome is at most epsilon, and some outcome has it, so the noise is not too wide."""
    assert worst_loss(of_the_product, unit, rate_of(unit)) == pytest.approx(float(EPSILON))


@UNITS
def test_gaussian_figures_tell_no_more_than_their_vector(unit):
    """With a delta: the joint law of weighted figures, every outcome written out, against the pair that is charged."""
    mean_squared, epsilons = Fraction(1, 4), np.linspace(0, 4, 17)
    squared, moves = 0, set()
    for shares in releases():
        for table in tables(3):
            first = np.array(of_the_product(table, shares, unit)) * laws.WEIGHTS
            for other in neighbours(table, unit):
                move = np.abs(np.array(of_the_product(other, shares, unit)) * laws.WEIGHTS - first)
                squared = max(squared, int((move**2).sum()))
                moves.add(tuple(sorted(move.tolist())))
    with mock.patch.object(laws, "GAP_STEPS", STEPS):
        stated = laws.figures_reach_squared(4, unit)
    assert squared <= stated
    assert squared >= stated / 2  # so that half of the bound would be caught
    variance = float(vector_variance(mean_squared, stated))
    charged = composed_deltas([GaussianVector(mean_squared, "figures", stage="utility")], epsilons, unit)
    farthest = max(moves, key=lambda move: sum(step**2 for step in move))
    # The laws of independent Gaussian numbers depend on the distance alone; two of them show it, outcome by outcome.
    for pair in ([math.isqrt(sum(step**2 for step in farthest))], farthest[-2:]):
        assert (largest_deltas(vector_pair(variance, [int(step) for step in pair]), epsilons) <= charged).all()


# ------------------------------------------------------------------------------------------------------------- a zoo


def sum_for_the_mean(table: Table, shares: np.ndarray, unit: Unit) -> tuple[int, ...]:
    """The sum of all distances, with the noise of their mean."""
    found = of_the_product(table, shares, unit)
    with mock.patch.object(state_tables, "GAP_STEPS", STEPS):
        rows = StateRows(np.array(table, dtype=np.uint8).reshape(-1, 2).T, SIZES)
        wanted = [N_EXPECTED * sums_of(shares, clique) for clique in CLIQUES[0]]
        distances = state_tables.true_distances(rows, CLIQUES[0], wanted)
    return (int(distances.sum()), *found[1:])


def rows_drawn_after_looking(table: Table, shares: np.ndarray, unit: Unit) -> tuple[int, ...]:
    """Of several samples the one that is nearest to the table: what is compared is no longer fixed."""
    return min((of_the_product(table, other, unit) for other in releases()), key=sum)


def rows_of_the_table_for_public_ones(table: Table, shares: np.ndarray, unit: Unit) -> tuple[int, ...]:
    """Under add-remove, what is expected follows from the true number of rows."""
    return of_the_product(table, shares * len(table) / N_EXPECTED, unit)


def a_worst_without_noise(table: Table, shares: np.ndarray, unit: Unit) -> tuple[int, ...]:
    """The largest distance as it is: told apart by an outcome that the neighbour never has."""
    found = of_the_product(table, shares, unit)
    return (*found[:3], 10**6 * found[3])


ZOO = {
    "a sum for the mean": (sum_for_the_mean, Unit.REPLACE_ONE),
    "rows drawn after looking": (rows_drawn_after_looking, Unit.REPLACE_ONE),
    "a private number of rows": (rows_of_the_table_for_public_ones, Unit.ADD_REMOVE),
    "no noise on the worst": (a_worst_without_noise, Unit.REPLACE_ONE),
}


@pytest.mark.parametrize(("sabotaged", "unit"), ZOO.values(), ids=ZOO)
def test_sabotaged_figures_are_caught(sabotaged, unit):
    """Each loses more than was charged for, for some table and release."""
    assert worst_loss(sabotaged, unit, rate_of(unit)) > 1.01 * float(EPSILON)


def test_the_noise_of_the_other_unit_is_caught():
    """Noise for a row more or less, where a row is replaced."""
    assert worst_loss(of_the_product, Unit.REPLACE_ONE, rate_of(Unit.ADD_REMOVE)) > 1.5 * float(EPSILON)


# --------------------------------------------------------------------------------------------------------- mechanism


@UNITS
def test_the_charge_comes_first_and_pays_once(unit):
    """One event of the stage is on the ledger before noise is drawn; a second vector is refused."""
    account, spent = Ledger(unit=unit), []

    class Watched(UnsafeSeededEntropy):
        def words(self, n):
            spent.append(account.spent)
            return super().words(n)

    paid = PaidFigures(EPSILON, account, Watched(1))
    assert not spent
    (charge,) = [event for event in account.events if isinstance(event, LeafMoments)]
    assert (charge.stage, charge.sensitivity, charge.epsilon) == ("utility", unit.factor, EPSILON)
    paid.noisy_figures(np.zeros(4, dtype=np.int64))
    assert set(spent) == {EPSILON}
    with pytest.raises(BudgetError, match="paid for once"):
        paid.noisy_figures(np.zeros(4, dtype=np.int64))


@UNITS
def test_noise_is_drawn_at_the_rate_of_the_charge(unit):
    """The rate is epsilon over the steps that a unit moves a figure by."""
    with mock.patch("spinney.tree.bought.sup_norm_noise", wraps=sup_norm_noise) as asked:
        paid = PaidFigures(EPSILON, Ledger(unit=unit), UnsafeSeededEntropy(1))
        paid.noisy_figures(np.zeros(2, dtype=np.int64))
    asked.assert_called_once_with(EPSILON / (1024 * unit.factor), 2)


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(1, 40)])
@pytest.mark.parametrize("n_axes", [2, 4])
def test_tails_of_sup_norm_noise(rate, n_axes):
    """The closed form is the sum over all reaches, and the deviation is that of the noise's own room."""
    r = np.arange(0, 6000, dtype=np.float64)
    weights = (2 * r + 1) ** n_axes * np.exp(-float(rate) * r)
    weights /= weights.sum()
    for t in (0, 1, 7, 60):
        slow = (weights * np.maximum(0, 2 * (r - t) / (2 * r + 1))).sum()
        assert laws.sup_norm_tail(rate, n_axes, t) == pytest.approx(slow, rel=1e-9)
    assert laws.sup_norm_std(rate, n_axes) == pytest.approx(math.sqrt(sup_norm_noise(rate, n_axes).variance()))
    half = laws.sup_norm_half_width(rate, n_axes, 0.95)
    assert laws.sup_norm_tail(rate, n_axes, half) <= 0.05 < laws.sup_norm_tail(rate, n_axes, half - 1)


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(7), Fraction(900)])
def test_intervals_of_gaussian_noise_hold(variance):
    """The chance beyond, summed over the discrete law, is at most what is stated, and a third less would miss."""
    k = np.arange(-2000, 2001, dtype=np.float64)
    law = np.exp(-(k**2) / (2 * float(variance)))
    half = laws.gaussian_half_width(variance, 0.95)
    assert law[np.abs(k) > half].sum() / law.sum() <= 0.05
    assert law[np.abs(k) > 2 * half // 3 - 1].sum() / law.sum() > 0.05


def test_steps_are_the_same_on_both_sides():
    """Counts and what is printed of them use one number of steps."""
    assert laws.GAP_STEPS == state_tables.GAP_STEPS
