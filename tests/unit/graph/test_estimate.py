"""Models fitted to noisy tables: exact ones are met, noise is weighed, zeros are kept, a rare class is fitted too."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.errors import ParameterError
from spinney.graph.estimate import Measurement, Targets, estimate
from spinney.graph.junction import JunctionTree
from spinney.graph.model import GraphModel, draw_states
from support.slow_graphs import joint_table, random_model, random_tree, summed
from support.strategies import MODEST

TOTAL = 10_000.0


def loss(model: GraphModel, measurements: list[Measurement], total: float = TOTAL) -> float:
    """The objective, from the definition."""
    joint, _ = joint_table(model)
    sizes = model.tree.sizes
    value = 0.0
    for m in measurements:
        cells = total * summed(joint, m.columns).ravel()
        answers = np.bincount(m.labels_of_cells(sizes), weights=cells, minlength=len(m.noisy))
        value += float((((answers - m.noisy) / m.noise_std) ** 2).sum() / 2)
    return value


def tables_of(model: GraphModel, noise_std: float, rng: np.random.Generator | None = None) -> list[Measurement]:
    """All cliques' tables and all one-way tables, with normal noise if there is a generator."""
    asked = [*model.tree.cliques, *((c,) for c in range(model.tree.n_columns))]
    measurements = []
    for columns, law in zip(asked, model.marginals(asked), strict=True):
        noise = 0.0 if rng is None else rng.normal(0, noise_std, law.size)
        measurements.append(Measurement(columns, TOTAL * law.ravel() + noise, noise_std))
    return measurements


@MODEST
@given(st.integers(0, 2**32))
def test_exact_tables_are_met(seed: int) -> None:
    """The model that the tables came from is found: all its laws, on any tree."""
    truth = random_model(np.random.default_rng(seed), spread_of=1.0)
    found = estimate(truth.tree.sizes, tables_of(truth, 1.0), TOTAL, steps=400)
    joint, _ = joint_table(truth)
    np.testing.assert_allclose(joint_table(found)[0], joint, atol=1e-4)


@MODEST
@given(st.integers(0, 2**32), st.sampled_from([3.0, 100.0, 3000.0]), st.integers(0, 60))
def test_the_fit_is_never_worse_than_its_start(seed: int, noise_std: float, steps: int) -> None:
    """Noisy tables with labels of any kind, negative numbers, a wrong total: the loss falls or stays."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    measurements = []
    for clique in tree.cliques:
        n_labels = int(rng.integers(1, 6))
        labels = rng.integers(0, n_labels, tree.shape(clique)).astype(np.int32)
        deviations = rng.uniform(0.5, 1.5, n_labels) * noise_std
        noisy = rng.normal(TOTAL / n_labels, deviations)
        measurements.append(Measurement(clique, noisy, deviations, labels))
    found = estimate(tree.sizes, measurements, TOTAL, steps=steps)
    assert loss(found, measurements) <= loss(GraphModel.uniform(tree), measurements) * (1 + 1e-9)


def test_the_objective_is_the_one_defined() -> None:
    """Answers over the tree's cells agree with sums of the joint table, labels and deviations included."""
    rng = np.random.default_rng(1)
    model = random_model(rng, most_columns=5)
    measurements = []
    for clique in model.tree.cliques:
        labels = rng.integers(0, 4, model.tree.shape(clique)).astype(np.int32)
        labels.flat[0] = 3
        measurements.append(Measurement(clique, rng.normal(TOTAL / 4, 50, 4), rng.uniform(1, 9, 4), labels))
    targets = Targets.of(model.tree, measurements, TOTAL)
    assert targets.loss(model.vector) == pytest.approx(loss(model, measurements))


def test_the_least_misfit_is_reached_where_tables_disagree() -> None:
    """Two readings of one column: their mean, weighted by precision; far-off totals change nothing."""
    truth = np.array([1000.0, 3000.0, 6000.0])
    first, second = truth + np.array([60, -60, 0]), truth + np.array([-30, 0, 30])
    for shift in (0.0, 500.0):
        readings = [Measurement((0,), first, 20.0), Measurement((0,), second + shift, 10.0)]
        found = TOTAL * estimate([3], readings, TOTAL, steps=400).marginal((0,))
        np.testing.assert_allclose(found, (first / 400 + second / 100) / (1 / 400 + 1 / 100), atol=2)


def test_negative_numbers_become_small_not_negative() -> None:
    """A cell read as negative is all but empty; the others keep their proportions."""
    noisy = np.array([-200.0, 4100.0, 6100.0])
    law = estimate([3], [Measurement((0,), noisy, 30.0)], TOTAL, steps=400).marginal((0,))
    assert 0 <= law[0] < 0.002
    np.testing.assert_allclose(TOTAL * law[1:], [4000, 6000], atol=40)


def test_caution_keeps_the_model_near_its_start() -> None:
    """The more of it, the nearer to independent columns; a little of it means the least loss."""
    noisy = np.array([4000.0, 1000.0, 1000.0, 4000.0])
    tables = [Measurement((0,), np.array([5000.0, 5000.0]), 500.0), Measurement((0, 1), noisy, 500.0)]
    laws = [TOTAL * estimate([2, 2], tables, TOTAL, regularization=c).marginal((0, 1)) for c in (0.01, 1, 4, 16)]
    np.testing.assert_allclose(laws[0].ravel(), noisy, atol=20)
    excesses = [law[0, 0] - 2500 for law in laws]
    assert excesses == sorted(excesses, reverse=True)
    assert 0 < excesses[-1] < 0.5 * excesses[0]


def test_cells_with_the_same_label_are_scaled_alike() -> None:
    """Where only sums were read, what is inside follows the one-way tables: nothing is made up."""
    labels = np.array([[0, 0, 1], [0, 0, 1], [2, 2, 3]], dtype=np.int32)
    sides = [Measurement((c,), np.array([0.4, 0.2, 0.4]) * TOTAL, 1.0) for c in (0, 1)]
    blocks = Measurement((0, 1), np.array([0.5, 0.1, 0.1, 0.3]) * TOTAL, 1.0, labels)
    law = estimate([3, 3], [*sides, blocks], TOTAL, steps=400).marginal((0, 1))
    np.testing.assert_allclose(law[:2, :2], 0.5 * np.outer([2 / 3, 1 / 3], [2 / 3, 1 / 3]), atol=1e-3)


def test_zeros_hold_whatever_was_read() -> None:
    """Impossible cells stay empty in the law, although noise filled them; other cells take their rows."""
    rng = np.random.default_rng(2)
    is_possible = np.triu(np.ones((4, 4), dtype=bool))
    tables = [Measurement((0, 1), rng.normal(TOTAL / 16, 50, 16), 50.0), Measurement((1, 2), np.full(8, 1250.0), 50.0)]
    model = estimate([4, 4, 2], tables, TOTAL, zeros=[((0, 1), is_possible)])
    law = model.marginal((0, 1, 2))
    assert (law[~is_possible] == 0).all()
    assert (law[is_possible] > 0).all()
    assert law.sum() == pytest.approx(1)


def test_cliques_share_tables_without_being_measured() -> None:
    model = estimate([2, 3, 2], [], 1.0, cliques=[(0, 2)])
    assert (0, 2) in model.tree.cliques
    np.testing.assert_allclose(model.marginal((0, 1, 2)), np.full((2, 3, 2), 1 / 12))


def test_a_rare_class_is_fitted_as_well_as_a_common_one() -> None:
    """A class of 1 in 500 has its own law, unlike the others'; tables with noise of 10 rows show it within their noise.

    The same number of mirror-descent steps (potentials moved against the gradient, one step size) leaves it at the
    law of the common class.
    """
    rng = np.random.default_rng(6)
    n_rows, n_states, n_columns = 200_000, 16, 8
    pairs = [(c, n_columns) for c in range(n_columns)]
    tree = JunctionTree.covering([n_states] * n_columns + [2], pairs)
    slope = np.linspace(-2, 2, n_states)
    tables = [np.stack([slope, -slope], axis=1) + np.log([0.998, 0.002]) / n_columns for _ in pairs]
    truth = GraphModel(tree, tuple(tables))
    states = draw_states(truth, n_rows, rng)
    measurements, exact = [], []
    for pair in pairs:
        table = np.bincount(states[pair[0]] * 2 + states[pair[1]], minlength=2 * n_states)
        exact.append(table.reshape(n_states, 2)[:, 1])
        measurements.append(Measurement(pair, table + rng.normal(0, 10, table.size), 10.0))
    found = estimate(tree.sizes, measurements, n_rows)
    errors = [np.abs(n_rows * law[:, 1] - t).sum() for law, t in zip(found.marginals(pairs), exact, strict=True)]
    assert np.mean(errors) < n_states * 10 * 0.8
    assert np.mean([t.sum() for t in exact]) > 300
    lazy = _mirror_descent(tree, Targets.of(tree, measurements, n_rows), steps=100)
    lazy_errors = [np.abs(n_rows * law[:, 1] - t).sum() for law, t in zip(lazy.marginals(pairs), exact, strict=True)]
    assert np.mean(errors) < np.mean(lazy_errors) / 2


def _mirror_descent(tree: JunctionTree, targets: Targets, steps: int) -> GraphModel:
    vector = np.zeros(tree.n_cells)
    value, step = targets.loss(vector), 1.0
    for _ in range(steps):
        laws = GraphModel.from_vector(tree, vector).calibrated
        gradient = targets.spread(targets.weights * (targets.answers(laws.beliefs) - targets.noisy))
        while targets.loss(vector - step * gradient) > value and step > 1e-12:
            step /= 2
        vector = vector - step * gradient
        value, step = targets.loss(vector), 2 * step
    return GraphModel.from_vector(tree, vector)


GOOD = Measurement((0,), np.array([1.0, 2.0]), 1.0)


@pytest.mark.parametrize(
    ("measurement", "message"),
    [
        (Measurement((1, 0), np.ones(6), 1.0), "ascending"),
        (Measurement((5,), np.ones(2), 1.0), "outside 0"),
        (Measurement((0,), np.ones(3), 1.0), "3 numbers for 2 cells"),
        (Measurement((0,), np.ones((2, 1)), 1.0), "one line"),
        (Measurement((0,), np.array([1.0, np.nan]), 1.0), "finite"),
        (Measurement((0,), np.ones(2), 0.0), "noise_std"),
        (Measurement((0,), np.ones(2), np.ones(3)), "noise_std"),
        (Measurement((0,), np.ones(2), 1.0, np.array([0, 2], dtype=np.int32)), "labels"),
        (Measurement((0,), np.ones(2), 1.0, np.array([[0], [1]], dtype=np.int32)), "labels"),
    ],
)
def test_bad_measurements_say_why(measurement: Measurement, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        estimate([2, 3], [measurement], TOTAL)


def test_bad_requests_say_why() -> None:
    with pytest.raises(ParameterError, match="total=0"):
        estimate([2], [GOOD], 0)
    with pytest.raises(ParameterError, match="steps=-1"):
        estimate([2], [GOOD], TOTAL, steps=-1)
    with pytest.raises(ParameterError, match="regularization=0"):
        estimate([2], [GOOD], TOTAL, regularization=0)
    with pytest.raises(ParameterError, match="shape"):
        estimate([2], [GOOD], TOTAL, zeros=[((0,), np.ones(3, dtype=bool))])
    with pytest.raises(ParameterError, match="no possible row"):
        estimate([2], [GOOD], TOTAL, zeros=[((0,), np.zeros(2, dtype=bool))])
    tree = JunctionTree.covering([2, 2], [])
    with pytest.raises(ParameterError, match="no clique"):
        Targets.of(tree, [Measurement((0, 1), np.ones(4), 1.0)], TOTAL)
