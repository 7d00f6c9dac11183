"""Lines: laws of cliques as message passing has them, by runs of cells, in any order of columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.graph.estimate import Measurement, Targets, Turned
from spinney.graph.junction import JunctionTree
from spinney.graph.lines import LineTree
from spinney.graph.model import calibrate, flatten
from support.slow_graphs import random_model, random_tree
from support.strategies import MODEST


@MODEST
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.1, 0.6]))
def test_laws_are_those_of_message_passing(seed: int, zeros: float) -> None:
    """Laws and log Z agree with the sweeps of `passing`, cells where no row can be included, and none at all."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    vector = rng.normal(0, 3, tree.n_cells)
    vector[rng.random(tree.n_cells) < zeros] = -np.inf
    expected = calibrate(flatten(tree), vector)
    laws, log_partition = LineTree.of(tree).laws(vector)
    assert log_partition == pytest.approx(expected.log_partition, rel=1e-12, abs=1e-12)
    if expected.log_partition > -np.inf:
        np.testing.assert_allclose(laws, expected.beliefs, rtol=1e-9, atol=1e-14)


def test_laws_far_apart_do_not_overflow() -> None:
    """Potentials of hundreds either way leave laws that add up to one."""
    tree = JunctionTree.covering((40, 30, 2), [(0, 1), (1, 2)])
    vector = np.random.default_rng(0).normal(0, 400, tree.n_cells)
    laws, _ = LineTree.of(tree).laws(vector)
    expected = calibrate(flatten(tree), vector)
    np.testing.assert_allclose(laws, expected.beliefs, rtol=1e-9, atol=1e-14)
    assert laws[: 40 * 30].sum() == pytest.approx(1)


@MODEST
@given(st.integers(0, 10_000))
def test_a_turned_model_is_the_same(seed: int) -> None:
    """With columns in the order of their sizes, potentials come back, and measurements have the same answers."""
    rng = np.random.default_rng(seed)
    model = random_model(rng)
    tree, turned = model.tree, Turned(model.tree)
    assert list(turned.turned.sizes) == sorted(tree.sizes)
    vector = turned.vector(model.vector)
    for table, back in zip(model.potentials, turned.tables(vector), strict=True):
        np.testing.assert_array_equal(table, back)
    measurements = []
    for clique in tree.cliques:
        n_cells = int(np.prod(tree.shape(clique)))
        labels = rng.integers(0, 3, tree.shape(clique)).astype(np.int32)
        measurements.append(Measurement(clique, rng.normal(size=3), 1.0, labels))
        measurements.append(Measurement(clique, rng.normal(size=n_cells), rng.uniform(1, 2, n_cells)))
        measurements += [Measurement((c,), rng.normal(size=tree.sizes[c]), 1.0) for c in clique]
    answers = Targets.of(tree, measurements, 100.0).answers(model.calibrated.beliefs)
    targets = Targets.of(turned.turned, [turned.measurement(m) for m in measurements], 100.0)
    np.testing.assert_allclose(targets.answers(targets.lines.laws(vector)[0]), answers, atol=1e-9)
    slow = [
        100 * (law.ravel() if m.labels is None else np.bincount(m.labels.ravel(), law.ravel(), minlength=len(m.noisy)))
        for m, law in zip(measurements, model.marginals([m.columns for m in measurements]), strict=True)
    ]
    np.testing.assert_allclose(answers, np.concatenate(slow), atol=1e-9)
    values, moved = rng.normal(size=len(answers)), rng.normal(size=tree.n_cells)
    # What goes out to cells and what comes in from them are transposes of each other.
    assert targets.spread(values) @ moved == pytest.approx(values @ targets.answers(moved) / 100.0)
