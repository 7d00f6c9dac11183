"""The parts of Balog et al.'s algorithms against slow twins: the basis and its reach, exact sums, reduced sets."""

from __future__ import annotations

import math
from itertools import product

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from spinney_paper.baselines import sums
from spinney_paper.baselines.basis import make_basis
from spinney_paper.baselines.reduced_set import features, find_points, fit_weights
from spinney_paper.baselines.sums import bits_for, feature_sums, kernel_matrix, kernel_sums
from support.slow_trees import modified_gram_schmidt, whole_feature_sums, whole_kernel_sums

places = st.floats(-4, 4, allow_nan=False, width=32)


def cloud(n: int, n_columns: int, seed: int, spread: float = 1.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(scale=spread, size=(n, n_columns))


def norm_of_coordinates(basis, points, gamma, row) -> float:
    """||B f(z)|| of a row, in 200 bits."""
    with flint.ctx.workprec(200):
        values = []
        for point in points[basis.kept].tolist():
            squared = sum(((flint.arb(a) - flint.arb(b)) ** 2 for a, b in zip(point, row, strict=True)), flint.arb(0))
            values.append((-flint.arb(gamma) * squared).exp())
        total = flint.arb(0)
        for line in basis.to_coordinates.tolist():
            total += sum((flint.arb(b) * value for b, value in zip(line, values, strict=True)), flint.arb(0)) ** 2
        return float(total.sqrt().lower())


# ------------------------------------------------------------------------------------------------------ basis


@pytest.mark.parametrize(("n", "n_columns", "spread"), [(1, 1, 1), (25, 1, 1), (30, 2, 0.5), (140, 2, 3), (20, 5, 2)])
def test_the_basis_is_that_of_gram_schmidt(n, n_columns, spread):
    """The same points are kept, and the same functions come out, as when they are made one after the other."""
    points, gamma = cloud(n, n_columns, seed=n, spread=spread), 0.5
    basis = make_basis(points, gamma)
    kept, functions = modified_gram_schmidt(points, gamma)
    assert basis.kept.tolist() == kept
    assert (len(kept) < n) == (n in (25, 30, 140))  # some of these sets are dense enough to skip points
    for line, function in zip(basis.to_coordinates, functions, strict=True):
        wanted = function[kept]
        assert np.abs(line - wanted).max() < 1e-6 * max(1.0, np.abs(wanted).max())


def test_a_point_given_twice_counts_once():
    """A repeated point spans nothing new."""
    points = np.repeat(cloud(6, 2, seed=1), 2, axis=0)
    assert make_basis(points, 1.0).kept.tolist() == [0, 2, 4, 6, 8, 10]


@settings(max_examples=60)
@given(
    points=st.lists(st.tuples(places, places), min_size=1, max_size=12),
    rows=st.lists(st.tuples(places, places), min_size=1, max_size=3),
    gamma=st.sampled_from([0.05, 0.5, 3.0]),
)
def test_no_row_reaches_further(points, rows, gamma):
    """Coordinates of any row, to many digits, are no longer than `reach`, and `reach` is next to 1."""
    public = np.array(points, dtype=np.float64)
    basis = make_basis(public, gamma)
    assert basis.reach < 1 + 1e-6
    for row in [*rows, points[0]]:
        assert norm_of_coordinates(basis, public, gamma, row) <= basis.reach


@pytest.mark.parametrize("n_columns", [1, 2, 5, 29])
def test_reach_is_attained(n_columns):
    """Rows at kept points have coordinates of norm 1: a reach that is too small would be noticed."""
    points = cloud(60, n_columns, seed=3, spread=0.4)
    basis = make_basis(points, 0.3)
    norms = [norm_of_coordinates(basis, points, 0.3, points[index].tolist()) for index in basis.kept]
    assert max(norms) <= basis.reach < 1.001
    assert min(norms) > 0.9999
    assert max(norms) > 0.7 * basis.reach


def test_reach_stays_near_1_where_functions_are_nearly_dependent():
    """Hundreds of crowded points: floats alone cannot tell, extended precision can."""
    basis = make_basis(cloud(600, 2, seed=4, spread=2.0), 1.0)
    assert 100 < len(basis.kept) < 600
    assert 1 <= basis.reach < 1.01


def test_kernel_values_are_within_the_stated_doubt():
    """Exponents are right to (columns + 4) half units and exp to eight, also where a value is tiny."""
    for n_columns, spread in ((1, 3.0), (5, 3.0), (29, 1.0)):
        points = cloud(25, n_columns, seed=5, spread=spread)
        computed = kernel_matrix(points, points, 0.5)
        for i, j in product(range(25), repeat=2):
            with flint.ctx.workprec(200):
                pairs = zip(points[i].tolist(), points[j].tolist(), strict=True)
                exponent = sum(((flint.arb(a) - flint.arb(b)) ** 2 for a, b in pairs), flint.arb(0)) / 2
                exact = (-exponent).exp()
                error = float(abs(flint.arb(float(computed[i, j])) - exact).upper())
            assert error <= float(exact) * ((n_columns + 4) * float(exponent) + 8) * 2.0**-53


def test_coordinates_are_within_slack():
    """B v as computed differs from B v in exact fractions by no more than `slack` allows."""
    basis = make_basis(cloud(80, 2, seed=6), 2.0)
    values = np.random.default_rng(0).integers(0, 2**59, len(basis.kept))
    largest = int(values.max())
    computed = basis.coordinates(values)
    for line, coordinate in zip(basis.to_coordinates.tolist(), computed, strict=True):
        with flint.ctx.workprec(300):
            exact = sum((flint.arb(b) * int(v) for b, v in zip(line, values, strict=True)), flint.arb(0))
            head = float(coordinate)
            error = abs(exact - flint.arb(head) - flint.arb(float(coordinate - np.longdouble(head)))).upper()
            assert float(error) <= largest * basis.slack


def test_stretch_bounds_what_rounding_becomes():
    """No vector of entries within ±1 becomes longer than `stretch`."""
    basis = make_basis(cloud(40, 2, seed=7), 1.0)
    signs = np.random.default_rng(1).choice([-1.0, 1.0], (200, len(basis.kept)))
    lengths = np.linalg.norm(signs @ basis.to_coordinates.T, axis=1)
    assert lengths.max() <= basis.stretch
    along_largest = np.sign(np.linalg.svd(basis.to_coordinates)[2][0])
    assert np.linalg.norm(basis.to_coordinates @ along_largest) > basis.stretch / 10


# ------------------------------------------------------------------------------------------------------ sums


@settings(max_examples=30)
@given(
    rows=st.lists(st.tuples(places, places), min_size=1, max_size=20),
    points=st.lists(st.tuples(places, places), min_size=1, max_size=5),
    gamma=st.sampled_from([0.05, 1.0, 40.0]),
)
def test_sums_are_sums_of_whole_numbers(rows, points, gamma):
    """Sums of kernel values and of features are what Python's integers add up to, but for a last digit of exp."""
    table, public, bits = np.array(rows, dtype=np.float64), np.array(points, dtype=np.float64), bits_for(len(rows))
    wanted = [sum(terms) for terms in whole_kernel_sums(table, public, gamma, bits)]
    assert np.abs(kernel_sums(table, public, gamma, bits) - wanted).max() <= len(rows)
    cosines, sines = whole_feature_sums(table, public, 20)
    assert feature_sums(table, public, 20).tolist() == [sum(terms) for terms in cosines + sines]


def test_sums_are_exact_to_the_last_unit():
    """At 20 bits no last digit of exp matters here: sums equal Python's."""
    table, public = cloud(3000, 3, seed=8), cloud(70, 3, seed=9)
    assert kernel_sums(table, public, 0.5, 20).tolist() == [sum(t) for t in whole_kernel_sums(table, public, 0.5, 20)]


def test_sums_do_not_depend_on_order_or_threads(monkeypatch):
    """Any order of rows and any number of threads give the same numbers; floats would not."""
    table, public = cloud(5000, 2, seed=10), cloud(200, 2, seed=11)
    turned = table[np.random.default_rng(2).permutation(len(table))]
    bits = bits_for(len(table))
    kernels, waves = kernel_sums(table, public, 0.5, bits), feature_sums(table, public, bits)
    for n_threads in (1, 7):
        monkeypatch.setenv("SPINNEY_THREADS", str(n_threads))
        assert (kernel_sums(turned, public, 0.5, bits) == kernels).all()
        assert (feature_sums(turned, public, bits) == waves).all()
    # The test has power: the same sums in floats do depend on the order.
    values, others = (kernel_matrix(public, rows, 0.5) for rows in (table, turned))
    assert (values.cumsum(axis=1)[:, -1] != others.cumsum(axis=1)[:, -1]).any()


@pytest.mark.parametrize("n_rows", [1, 2, 3, 1000, 2**21, 2**21 + 1, 2**40, 2**40 + 1])
def test_sums_of_all_rows_fit(n_rows):
    """n rows of 2^bits each stay within 2^61, and no bit is given away."""
    bits = bits_for(n_rows)
    assert n_rows * 2**bits <= 2**61
    assert bits == 40 or n_rows * 2 ** (bits + 1) > 2**61


def test_a_row_far_away_adds_nothing():
    """Kernel values that no float can hold are 0, not an error."""
    assert kernel_sums(np.array([[1e150]]), np.array([[0.0]]), 1.0, 40).tolist() == [0]
    assert sums.kernel_matrix(np.array([[1e150]]), np.array([[-1e150]]), 5e-301)[0, 0] == pytest.approx(math.exp(-2))


# ------------------------------------------------------------------------------------------------------ reduced sets


@pytest.fixture(scope="module")
def wanted():
    """Features of three heaps: frequencies (2000, 2) and their mean."""
    frequencies = cloud(2000, 2, seed=12)
    rows = np.concatenate([cloud(100, 2, seed=20 + k, spread=0.3) + 3 * (k - 1) for k in range(3)])
    return frequencies, features(rows, frequencies).mean(axis=0)


def test_features_have_norm_1():
    """Cosines and sines of the same phases: every point has norm 1, wherever it lies."""
    found = features(cloud(50, 3, seed=14, spread=100.0), cloud(64, 3, seed=15))
    assert np.abs(np.linalg.norm(found, axis=1) - 1).max() < 1e-12


def objective(weights, points, frequencies, target, penalty):
    rest = target - weights @ features(points, frequencies)
    return rest @ rest + penalty * np.abs(weights).sum()


@pytest.mark.parametrize("penalty", [1e-4, 0.01, 0.3])
def test_weights_minimise_their_objective(penalty, wanted):
    """No other weights do better: not nearby ones, and not those that a general minimiser finds."""
    frequencies, target = wanted
    points = cloud(8, 2, seed=16, spread=3.0)
    weights = fit_weights(points, frequencies, target, penalty=penalty)
    least = objective(weights, points, frequencies, target, penalty)

    def halves(w):  # w = plus - minus, both at least 0, makes the penalty smooth
        return objective(w[:8] - w[8:], points, frequencies, target, 0) + penalty * w.sum()

    other = minimize(halves, np.full(16, 0.1), bounds=[(0, None)] * 16, method="L-BFGS-B")
    assert least <= other.fun + 1e-4 * penalty
    rng = np.random.default_rng(3)
    for _ in range(50):
        moved = weights + rng.normal(scale=0.05, size=8)
        assert objective(moved, points, frequencies, target, penalty) > least
    assert (objective(weights, points, frequencies, target, penalty / 3) < least) or not weights.any()


def test_a_large_penalty_leaves_nothing(wanted):
    """Where a weight costs more than it brings, there is none."""
    frequencies, target = wanted
    assert not fit_weights(cloud(4, 2, seed=17), frequencies, target, penalty=3.0).any()


def test_points_are_found_where_the_rows_are(wanted):
    """Found points explain more than their starts do, more points more, and all lie in the box."""
    frequencies, target = wanted
    starts = cloud(12, 2, seed=18, spread=4.0)
    low, high = np.array([-3.2, -8.0]), np.array([8.0, 8.0])
    found = find_points(target, frequencies, starts, low=low, high=high, n_steps=100, step=0.2)
    assert ((found >= low) & (found <= high)).all()

    def rest(points):
        weights = fit_weights(points, frequencies, target, penalty=1e-6)
        return np.linalg.norm(target - weights @ features(points, frequencies))

    assert rest(found) < 0.5 * rest(np.clip(starts, low, high))
    assert rest(found) < rest(found[:6]) < rest(found[:2]) < np.linalg.norm(target)


def test_points_are_found_one_after_the_other(wanted):
    """The first points do not depend on how many follow, across blocks too."""
    frequencies, target = wanted
    starts, box = cloud(60, 2, seed=19, spread=4.0), np.full(2, 8.0)
    frequencies, target = frequencies[:100], np.concatenate([target[:100], target[2000:2100]])
    many = find_points(target, frequencies, starts, low=-box, high=box, n_steps=5, step=0.2)
    few = find_points(target, frequencies, starts[:7], low=-box, high=box, n_steps=5, step=0.2)
    assert (many[:7] == few).all()
    assert not (many[7:14] == few).all()
