"""Composed accounting: never below the exact delta of what is composed, and close above it.

Exact deltas come from the mathematics of each mechanism: products of small laws written out in full, closed forms for
Gaussians, and the decisions along all paths of small trees. Sabotaged bounds, each with one thing left out, must be
caught by the same comparisons.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from spinney.errors import BudgetError, ParameterError
from spinney.privacy import composition
from spinney.privacy.budget import Unit
from spinney.privacy.composition import composed_delta, least_noise, on_grid, selection_mean
from spinney.privacy.mechanisms import GaussianTables, Selections, TreeShapes
from spinney.tree.bins import decay_for
from spinney_paper.baselines.vector import least_variance
from support.in_one_test import in_one_test

BOTH = pytest.mark.parametrize("unit", [Unit.REPLACE_ONE, Unit.ADD_REMOVE])
SLACK = 1e-12  # what composed_delta adds for round-off
CLOSE = 1.01

Pair = tuple[np.ndarray, np.ndarray]


def hockey_stick(pair: Pair, epsilon: float) -> float:
    """The least delta between two laws: sum of max(0, P - e^epsilon Q)."""
    p, q = pair
    return float(np.maximum(0, p - math.exp(epsilon) * q).sum())


def both_ways(pair: Pair, epsilon: float) -> float:
    return max(hockey_stick(pair, epsilon), hockey_stick(pair[::-1], epsilon))


def product(*pairs: Pair) -> Pair:
    """Independent draws from each pair, written out."""
    return reduce(lambda a, b: (np.outer(a[0], b[0]).ravel(), np.outer(a[1], b[1]).ravel()), pairs)


def coin(p: float, q: float) -> Pair:
    return np.array([p, 1 - p]), np.array([q, 1 - q])


def reverse(pair: Pair) -> Pair:
    return pair[::-1]


def delta(parts, epsilon, unit) -> float:
    return float(composed_delta(parts, Fraction(epsilon), unit))


def gaussian_delta(mean: float, epsilon: float) -> float:
    """N(mean, 1) against N(0, 1)."""
    return stats.norm.cdf(mean / 2 - epsilon / mean) - math.exp(epsilon) * stats.norm.cdf(-mean / 2 - epsilon / mean)


# ------------------------------------------------------------------------------------------------ the grid


@given(
    st.lists(st.floats(-20, 20), min_size=1, max_size=6),
    st.floats(1e-4, 0.5),
    st.integers(0, 2**32 - 1),
)
def test_rounding_to_the_grid_keeps_the_masses_of_both_laws(losses, step, seed):
    """What is split is neither lost nor moved: P adds up as before, and so does Q, value by value of the loss."""
    masses = np.random.default_rng(seed).dirichlet(np.ones(len(losses)))
    first, spread = on_grid(np.array(losses), masses, step)
    grid = (first + np.arange(len(spread))) * step
    assert (spread >= 0).all()
    assert spread.sum() == pytest.approx(1)
    assert (spread * np.exp(-grid)).sum() == pytest.approx((masses * np.exp(-np.array(losses))).sum())
    for epsilon in (-1.0, 0.0, 0.3, 2.0):
        exact = (masses * np.maximum(0, 1 - np.exp(epsilon - np.array(losses)))).sum()
        assert (spread * np.maximum(0, 1 - np.exp(epsilon - grid))).sum() >= exact - 1e-12


# ------------------------------------------------------------------------------------------------ Gaussian tables


def shifted_gaussian(variance: float) -> Pair:
    reach = int(20 * math.sqrt(variance)) + 20
    k = np.arange(-reach, reach + 2)
    p, q = np.exp(-(k**2) / (2 * variance)), np.exp(-((k - 1) ** 2) / (2 * variance))
    return p / p.sum(), q / q.sum()


@BOTH
@pytest.mark.parametrize(
    ("variance", "epsilon"), [("1/2", "3"), ("4", "1"), ("9", "0.5"), ("30", "0.2"), ("900", "0.05")]
)
def test_one_table_costs_its_exact_delta(variance, epsilon, unit):
    """A changed row moves one count by one, or two; the delta is that of the discrete law, to a percent."""
    cell = shifted_gaussian(float(Fraction(variance)))
    exact = hockey_stick(product(*[cell] * unit.factor), float(epsilon))
    part = GaussianTables(Fraction(variance), 1, "table")
    assert exact <= delta([part], epsilon, unit) <= CLOSE * exact + SLACK * 2
    if unit is Unit.REPLACE_ONE:  # counting one of the two moved cells would claim too little
        assert delta([part], epsilon, Unit.ADD_REMOVE) < exact


@pytest.mark.parametrize("z", [2, 4, 6])
@pytest.mark.parametrize(("variance", "times"), [(400, 3), (2500, 88), (30_000, 1000), (2**30, 20_000)])
def test_many_tables_add_up_as_gaussians_do(variance, times, z):
    """Where the noise is wide the discrete law is the continuous one; far in the tail, at 1e-10, too."""
    mean = math.sqrt(2 * times / variance)
    epsilon = mean**2 / 2 + z * mean
    exact = gaussian_delta(mean, epsilon)
    claimed = delta([GaussianTables(Fraction(variance), times, "tables")], epsilon, Unit.REPLACE_ONE)
    assert exact <= claimed <= CLOSE * exact + 2 * SLACK


def test_less_noise_than_by_concentrated_differential_privacy():
    """At (1, 1e-5) one table under add-remove needs sigma 3.73, which the zCDP bound puts at 4.05."""
    ends = (Fraction(1), Fraction(1, 10**5))
    (part,) = least_noise(lambda budget: [GaussianTables(1 / budget, 1, "t")], *ends, Unit.ADD_REMOVE)
    assert 3.72 < math.sqrt(part.variance) < 3.75
    assert math.sqrt(least_variance(*ends, Fraction(1))) > 4.04
    assert gaussian_delta(1 / 3.73, 1) == pytest.approx(1e-5, rel=0.01)


# ------------------------------------------------------------------------------------------------ tree shapes


def splits(x: int, a: float) -> float:
    """Chance that a node of score x above the cutoff splits: P(X >= 1 - x)."""
    return a ** (1 - x) / (1 + a) if x <= 0 else 1 - a**x / (1 + a)


def path_law(excesses, decay: int, a: float) -> np.ndarray:
    """How far a path is split: chance of stopping at each level, and of going all the way."""
    law, reach = [], 1.0
    for y in excesses:
        s = splits(max(y, -decay), a)
        law.append(reach * (1 - s))
        reach *= s
    return np.array([*law, reach])


def path_pair(excesses, decay: int, a: float) -> Pair:
    """The path with the row and without it. `excesses` are counts less depth times decay less cutoff, with the row."""
    return path_law(excesses, decay, a), path_law([y - 1 for y in excesses], decay, a)


def paths(levels: int, decay: int):
    """Excesses of all paths of interest: they fall by the decay or more, from above the cutoff to below the floor."""
    drops = (decay, decay + 1, 2 * decay)
    for steps in itertools.product(drops, repeat=levels - 1):
        for last in range(-2 * decay - 1, decay + 2):
            yield [last + sum(steps[i:]) for i in range(levels)]


def accounted(part: TreeShapes, epsilons: np.ndarray, *, is_reversed: bool) -> np.ndarray:
    """Delta of one path at each epsilon by the law that is accounted for it."""
    step = float(part.rate) / 500
    first, masses, infinite = composition._tree_shape(part, step, is_reversed=is_reversed)
    losses = step * (first + np.arange(len(masses)))
    return infinite + np.array([(masses * np.maximum(0, -np.expm1(e - losses))).sum() for e in epsilons])


def excess(part: TreeShapes, levels: int, decay: int) -> float:
    """How far the delta of some path lies above what is accounted, in either direction: positive is a breach."""
    a = math.exp(-part.rate)
    epsilons = np.linspace(-4 * float(part.rate), 4 * float(part.rate), 33)
    with_row, without_row = (accounted(part, epsilons, is_reversed=each) for each in (False, True))
    worst = -math.inf
    for excesses in paths(levels, decay):
        pair = path_pair(excesses, decay, a)
        for e, limit, opposite in zip(epsilons, with_row, without_row, strict=True):
            worst = max(worst, hockey_stick(pair, e) - limit, hockey_stick(reverse(pair), e) - opposite)
    return worst


TREES = [
    (Fraction(1, 2), 2, 3),
    (Fraction(1), 1, 4),
    (Fraction(1, 5), 4, 3),
    (Fraction(2), 1, 3),
    (Fraction(1, 4), 3, 5),
]


@pytest.mark.parametrize(("rate", "decay", "levels"), TREES)
def test_no_path_tells_more_than_is_accounted(rate, decay, levels):
    """At every epsilon, with the row against without it and the other way round, what is accounted is the larger."""
    assert excess(TreeShapes(rate, decay, levels, 1, "tree"), levels, decay) < 1e-12


@pytest.mark.parametrize(("rate", "decay", "levels"), TREES[:2])
def test_a_bound_with_something_left_out_is_breached(rate, decay, levels, monkeypatch):
    """A wider decay, less rate, decisions above the cutoff alone or below it alone: each is caught by some path."""
    assert excess(TreeShapes(rate, 3 * decay, levels, 1, "tree"), levels, decay) > 1e-6

    lower, honest = composition._lower_decisions, composition._coin
    monkeypatch.setattr(composition, "_lower_decisions", lambda rate, *rest, **way: lower(0.9 * rate, *rest, **way))
    assert excess(TreeShapes(rate, decay, levels, 1, "tree"), levels, decay) > 1e-6
    monkeypatch.setattr(composition, "_lower_decisions", lower)

    for is_kept in (lambda loss: loss < 0, lambda loss: loss > 0):
        monkeypatch.setattr(
            composition, "_coin", lambda p, loss, keep=is_kept, **way: honest(p if keep(loss) else 1e-9, loss, **way)
        )
        assert excess(TreeShapes(rate, decay, levels, 1, "tree"), levels, decay) > 1e-6


def test_coins_above_the_envelope_count(monkeypatch):
    """With the envelope of one decay alone the bound still holds, by the coins; without them it does not."""
    part = TreeShapes(Fraction(1, 4), 2, 5, 1, "tree")
    monkeypatch.setattr(composition, "_N_NEAR", 1)
    assert excess(part, 5, 2) < 1e-12
    monkeypatch.setattr(composition, "_NEGLIGIBLE", 2.0)
    monkeypatch.setattr(composition.math, "expm1", lambda x, honest=math.expm1: 0.0 if x == 0.25 else honest(x))
    assert excess(part, 5, 2) > 1e-6


@pytest.mark.parametrize(("rate", "decay", "levels"), TREES[:3])
def test_two_paths_tell_no_more_than_is_accounted(rate, decay, levels):
    """A moved row: one path loses it, one gains it. All pairs of a sample of paths stay below what is charged."""
    a = math.exp(-rate)
    part = TreeShapes(rate, decay, levels, 1, "tree")
    some = [path_pair(excesses, decay, a) for excesses in list(paths(levels, decay))[::7]]
    for e in (rate / 2, rate, 2 * rate):
        limit = delta([part], e, Unit.REPLACE_ONE)
        for one, other in itertools.product(some, some):
            assert hockey_stick(product(one, reverse(other)), float(e)) <= limit


@pytest.mark.parametrize(("rate", "decay", "levels"), TREES)
def test_what_is_accounted_is_near_to_the_worst_path(rate, decay, levels):
    """At each epsilon some path costs nearly as much, to five percent; to a half where only the longest ones count."""
    a = math.exp(-rate)
    for e in (rate / 4, rate / 2, rate):
        worst = max(both_ways(path_pair(excesses, decay, a), float(e)) for excesses in paths(levels, decay))
        claimed = delta([TreeShapes(rate, decay, levels, 1, "tree")], e, Unit.ADD_REMOVE)
        assert worst <= claimed <= (1.5 if e == rate else 1.05) * worst


@settings(max_examples=40)
@given(st.floats(1e-6, 3), st.integers(1, 3000), st.booleans())
def test_the_envelope_is_a_pair_of_laws(rate, decay, is_reversed):
    """Its masses add up to one under P and under Q, to what floats can tell."""
    step = rate / 40
    first, masses, _ = composition._lower_decisions(rate, decay, step, is_reversed=is_reversed)
    losses = step * (first + np.arange(len(masses)))
    assert masses.sum() == pytest.approx(1, abs=1e-9)
    if rate < 1:
        assert (masses * np.exp(-losses)).sum() == pytest.approx(1, abs=1e-8)


def test_levels_that_cannot_matter_cost_nothing():
    """Far below, chances are under 2^-60: seventy levels or two hundred are the same to nine digits."""
    rate = Fraction(1, 10)
    few, many = (TreeShapes(rate, decay_for(rate), levels, 5, "trees") for levels in (70, 200))
    assert delta([many], 1, Unit.REPLACE_ONE) == pytest.approx(delta([few], 1, Unit.REPLACE_ONE), rel=1e-9, abs=2e-15)


# ------------------------------------------------------------------------------------------------ selections


def worst_choice(epsilon: float, middle: float) -> Pair:
    """Two candidates whose odds differ by e^epsilon between the tables, around odds of e^middle."""
    p, q = (1 / (1 + math.exp(-middle - sign * epsilon / 2)) for sign in (1, -1))
    return coin(p, q)


@in_one_test("epsilon", [0.01, 0.3, 1.0, 4.0])
@in_one_test("middle", [-3.0, -0.5, 0.0, 0.2, 2.0])
def test_no_choice_tells_more_than_its_gaussian(epsilon, middle):
    """Two-outcome pairs of bounded range lie within the Gaussian; even odds touch it, and 3 % less is too little."""
    pair = worst_choice(epsilon, middle)
    mean = selection_mean(Fraction(str(epsilon)))
    epsilons = np.linspace(-epsilon, epsilon, 41)
    assert all(hockey_stick(pair, e) <= gaussian_delta(mean, e) + 1e-12 for e in epsilons)
    if middle == 0:
        assert any(hockey_stick(pair, e) > gaussian_delta(0.97 * mean, e) for e in epsilons)


@pytest.mark.parametrize("seed", range(5))
def test_several_choices_cost_no_more_than_accounted(seed):
    """Real choices with scores that move by one: the exact delta of three of them stays below, at any epsilon."""
    rng = np.random.default_rng(seed)
    rate = Fraction(1, 4)
    pairs = []
    for _ in range(3):
        scores = rng.integers(0, 12, 4)
        moved = scores + rng.choice([-1, 1], 4)
        weights = [np.exp(float(rate) * each) for each in (scores, moved)]
        pairs.append((weights[0] / weights[0].sum(), weights[1] / weights[1].sum()))
    part = Selections(2 * rate, 3, "choices")
    for epsilon in ("0.1", "0.4", "0.9"):
        assert both_ways(product(*pairs), float(epsilon)) <= delta([part], epsilon, Unit.REPLACE_ONE)


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "10", "200"])
def test_the_mean_of_a_choice(epsilon):
    """mu = 2 Phi^-1(e^(eps/2) / (1 + e^(eps/2))), from scipy's quantiles."""
    assert selection_mean(Fraction(epsilon)) == pytest.approx(
        2 * stats.norm.isf(1 / (1 + math.exp(float(epsilon) / 2))), rel=1e-9
    )


# ------------------------------------------------------------------------------------------------ all together


def typical(unit: Unit, *, n_columns: int = 30, shares=(0.1, 0.3, 0.2, 0.3, 0.1)):
    """A forest of 30 columns: trees, three kinds of tables, selections."""
    trees, one_way, pairs, cliques, selection = (Fraction(str(share)) for share in shares)

    def plan(budget: Fraction):
        rate = Fraction(math.sqrt(budget * trees / n_columns / unit.factor / Fraction(13, 5))).limit_denominator(10**9)
        choice = Fraction(math.sqrt(budget * selection / 28 * Fraction(5, 2))).limit_denominator(10**9)
        tables = [(n_columns, one_way, "one-way"), (n_columns, pairs, "pairs"), (28, cliques, "cliques")]
        return [
            TreeShapes(rate, decay_for(rate), 24, n_columns, "trees"),
            *(GaussianTables(n * unit.factor / (budget * share), n, note) for n, share, note in tables),
            Selections(choice, 28, "selection"),
        ]

    return plan


@BOTH
def test_a_mixed_release_agrees_with_the_library_alone(unit):
    """dp-accounting by itself: with one path and rounded down it is below us, with all decisions and up it is above."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    rate, decay, levels = Fraction(1, 20), 14, 16
    parts = [
        GaussianTables(Fraction(40), 2, "tables"),
        TreeShapes(rate, decay, levels, 2, "trees"),
        Selections(Fraction(1, 4), 3, "choices"),
    ]
    a = math.exp(-rate)
    coins = [coin(a / (1 + a), a * a / (1 + a))]
    coins += [coin(a ** (1 + j * decay) / (1 + a), a ** (j * decay) / (1 + a)) for j in range(levels)]
    path = [path_pair([1 + j * decay for j in range(5, -2, -1)], decay, a)]
    mean = math.sqrt(3) * 2 * stats.norm.isf(1 / (1 + math.exp(0.125)))

    def theirs(pairs: list[Pair], *, is_upper: bool) -> float:
        options = {"value_discretization_interval": 5e-5, "pessimistic_estimate": is_upper}
        whole = pld.from_gaussian_mechanism(1 / mean, use_connect_dots=False, **options)
        table = pld.from_discrete_gaussian_mechanism(math.sqrt(40), **options)
        whole = whole.compose(table.self_compose(2 * unit.factor))
        for pair in pairs + [reverse(each) for each in pairs if unit is Unit.REPLACE_ONE]:
            upper, lower = (dict(enumerate(np.log(law).tolist())) for law in pair)
            seen = pld.from_two_probability_mass_functions(lower, upper, symmetric=False, **options)
            whole = whole.compose(seen.self_compose(2))
        return float(whole.get_delta_for_epsilon(1.0))

    low, high = theirs(path, is_upper=False), theirs(coins, is_upper=True)
    assert low < delta(parts, 1, unit) < high < 2 * low


@BOTH
@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "1", "10"])
def test_least_noise_is_within_the_budget_and_near_it(epsilon, unit):
    """What is returned costs at most delta; one percent more budget costs more than delta."""
    plan, seen = typical(unit), []

    def watched(budget):
        seen.append(budget)
        return plan(budget)

    least = Fraction(1, 10**5)
    parts = least_noise(watched, Fraction(epsilon), least, unit)
    assert composed_delta(parts, Fraction(epsilon), unit) <= least
    budget = next(each for each in seen if tuple(plan(each)) == parts)
    assert composed_delta(plan(budget * Fraction(101, 100)), Fraction(epsilon), unit) > least
    assert len(seen) <= 8


def test_a_forest_costs_less_than_its_parts_by_concentration():
    """The same tables alone by the zCDP bound would need more noise than tables, trees and choices together do here."""
    unit, ends = Unit.REPLACE_ONE, (Fraction(1), Fraction(1, 10**5))
    parts = least_noise(typical(unit), *ends, unit)
    one_way = next(part for part in parts if part.note == "one-way")
    assert one_way.variance < least_variance(*ends, Fraction(2 * 30)) / Fraction(3, 10)


def test_parts_of_no_cost_change_nothing_and_every_part_counts():
    """No parts cost no delta; each further part costs more."""
    parts = typical(Unit.REPLACE_ONE)(Fraction(1, 20))
    assert composed_delta([], Fraction(1), Unit.REPLACE_ONE) == 0
    costs = [delta(parts[: i + 1], 1, Unit.REPLACE_ONE) for i in range(len(parts))]
    assert costs == sorted(costs)
    assert len(set(costs)) == len(costs)


# ------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("epsilon", "least", "match"), [(0, "1e-5", "epsilon=0"), (1, 0, "delta=0"), (1, "1e-12", "delta=1e-12")]
)
def test_claims_that_cannot_be_made(epsilon, least, match):
    """Composition needs an epsilon, and a delta that floats can tell from nothing."""
    with pytest.raises(ParameterError, match=match):
        least_noise(typical(Unit.ADD_REMOVE), Fraction(epsilon), Fraction(least), Unit.ADD_REMOVE)


def test_a_plan_that_ignores_its_budget_is_refused():
    """Where no budget brings the cost within delta, nothing is returned."""
    with pytest.raises(BudgetError, match="no noise could be certified"):
        least_noise(lambda _: [GaussianTables(Fraction(1), 9, "t")], Fraction(1), Fraction(1, 10**6), Unit.ADD_REMOVE)


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: GaussianTables(Fraction(2**40), 1, "t"), ParameterError, "variance="),
        (lambda: GaussianTables(Fraction(0), 1, "t"), ParameterError, "variance="),
        (lambda: GaussianTables(Fraction(4), 0, "t"), ParameterError, "times=0"),
        (lambda: GaussianTables(Fraction(4), 2**20, "t"), ParameterError, "times="),
        (lambda: TreeShapes(Fraction(0), 1, 1, 1, "t"), ParameterError, "rate=0"),
        (lambda: TreeShapes(Fraction(1), 0, 1, 1, "t"), ParameterError, "decay=0"),
        (lambda: TreeShapes(Fraction(1), 1, True, 1, "t"), ParameterError, "levels=True"),
        (lambda: Selections(Fraction(-1), 1, "t"), BudgetError, "epsilon=-1 is negative"),
        (lambda: Selections(Fraction(0), 1, "t"), ParameterError, "epsilon=0"),
        (lambda: Selections(Fraction(1), 1.5, "t"), ParameterError, "times=1.5"),
    ],
)
def test_bad_parts_are_named(make, error, match):
    """A part that cannot be accounted for cannot be made; one that would earn budget back is an error of the budget."""
    with pytest.raises(error, match=match):
        make()


def test_rounding_slack_is_added():
    """The claim is above what floats gave, by the stated slack at least."""
    assert composition._ABSOLUTE_SLACK == SLACK
    part = GaussianTables(Fraction(10**6), 1, "t")
    assert delta([part], 1, Unit.ADD_REMOVE) >= SLACK
