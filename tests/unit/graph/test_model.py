"""Models on junction trees against the whole joint table: laws in and across cliques, evidence, impossible cells."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from spinney.errors import ParameterError
from spinney.graph.junction import JunctionTree
from spinney.graph.model import GraphModel
from support.slow_graphs import joint_table, random_model, summed
from support.strategies import MODEST

seeds = st.integers(0, 2**32)
CHAIN = JunctionTree((2, 3, 2), ((0, 1), (1, 2)))


def drawn_model(seed: int, zeros: float = 0.0) -> GraphModel:
    model = random_model(np.random.default_rng(seed), zeros=zeros)
    with np.errstate(divide="ignore", invalid="ignore"):
        assume(np.isfinite(joint_table(model)[1]))
    return model


@MODEST
@given(seeds, st.sampled_from([0.0, 0.15]))
def test_calibration_is_the_sum_of_the_joint_table(seed: int, zeros: float) -> None:
    """The law of every clique and log Z, with and without impossible cells."""
    model = drawn_model(seed, zeros)
    joint, log_partition = joint_table(model)
    assert model.log_partition == pytest.approx(log_partition, abs=1e-10)
    for clique, belief in zip(model.tree.cliques, model.beliefs, strict=True):
        np.testing.assert_allclose(belief, summed(joint, clique), atol=1e-12)
        assert (belief[summed(joint, clique) == 0] == 0).all()


@MODEST
@given(seeds, st.sampled_from([0.0, 0.15]))
def test_laws_of_any_columns_are_sums_of_the_joint_table(seed: int, zeros: float) -> None:
    """Up to four columns, in any order, within a clique, across cliques and across trees; one by one and together."""
    model = drawn_model(seed, zeros)
    joint, _ = joint_table(model)
    n = model.tree.n_columns
    asked = [columns for k in (1, 2, 3) for columns in permutations(range(n), k)] + [*combinations(range(n), 4)]
    for columns, table in zip(asked, model.marginals(asked), strict=True):
        np.testing.assert_allclose(table, summed(joint, columns), atol=1e-12)
    np.testing.assert_allclose(model.marginal(asked[-1]), summed(joint, asked[-1]), atol=1e-12)


@MODEST
@given(seeds)
def test_evidence_weighs_rows(seed: int) -> None:
    """Weights of some columns' states multiply the joint table."""
    model = drawn_model(seed)
    rng = np.random.default_rng(seed)
    joint, _ = joint_table(model)
    columns = [c for c in range(model.tree.n_columns) if rng.random() < 0.6]
    evidence = {c: rng.exponential(size=model.tree.sizes[c]) * (rng.random(model.tree.sizes[c]) < 0.8) for c in columns}
    for column, weights in evidence.items():
        joint = joint * weights.reshape([-1 if c == column else 1 for c in range(joint.ndim)])
    assume(joint.sum() > 0)
    posterior = model.given(evidence)
    assert posterior.log_partition - model.log_partition == pytest.approx(np.log(joint.sum()), abs=1e-10)
    for clique, belief in zip(posterior.tree.cliques, posterior.beliefs, strict=True):
        np.testing.assert_allclose(belief, summed(joint / joint.sum(), clique), atol=1e-12)


def test_potentials_far_apart_neither_overflow_nor_vanish() -> None:
    """Potentials of two cliques that cancel each other are as good as none."""
    pull = np.array([0.0, 2000.0, -3000.0])
    model = GraphModel(CHAIN, (np.zeros((2, 3)) + pull, np.zeros((3, 2)) - pull[:, None]))
    np.testing.assert_allclose(model.marginal((0, 2)), np.full((2, 2), 0.25))
    np.testing.assert_allclose(model.marginal((1,)), np.full(3, 1 / 3))
    assert model.log_partition == pytest.approx(np.log(12))


def test_parts_make_the_same_model_again() -> None:
    model = random_model(np.random.default_rng(5))
    again = GraphModel.from_parts(model.tree.sizes, model.tree.cliques, model.potentials)
    assert again.tree == model.tree
    assert again.log_partition == model.log_partition
    np.testing.assert_array_equal(again.vector, model.vector)


def test_a_wide_tree_answers_across_it() -> None:
    """Three hundred columns in a chain of copies: the ends agree."""
    tree = JunctionTree.covering([3] * 300, [(i, i + 1) for i in range(299)])
    same = np.where(np.eye(3, dtype=bool), 0.0, -np.inf)
    model = GraphModel(tree, tuple(same for _ in tree.cliques))
    np.testing.assert_allclose(model.marginal((0, 299)), np.eye(3) / 3)


def test_bad_questions_say_why() -> None:
    model = GraphModel.uniform(CHAIN)
    with pytest.raises(ParameterError, match=r"must be different ones of 0\.\.2"):
        model.marginal((0, 3))
    with pytest.raises(ParameterError, match="must be different"):
        model.marginal((1, 1))
    with pytest.raises(ParameterError, match="names column 7"):
        model.given({7: np.ones(2)})
    with pytest.raises(ParameterError, match="3 weights"):
        model.given({1: np.ones(2)})
    with pytest.raises(ParameterError, match="not negative"):
        model.given({0: np.array([1.0, -1.0])})
    with pytest.raises(ParameterError, match="no possible row"):
        model.given({0: np.zeros(2)})
    with pytest.raises(ParameterError, match="no possible row"):
        GraphModel.from_vector(CHAIN, np.full(12, -np.inf)).marginal((0,))


def test_bad_potentials_say_why() -> None:
    with pytest.raises(ParameterError, match="one table per clique"):
        GraphModel(CHAIN, (np.zeros((2, 3)),))
    with pytest.raises(ParameterError, match="minus infinity"):
        GraphModel.from_vector(CHAIN, np.full(12, np.nan))
    with pytest.raises(ParameterError, match="minus infinity"):
        GraphModel.from_vector(CHAIN, np.full(12, np.inf))
