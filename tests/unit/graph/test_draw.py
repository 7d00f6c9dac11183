"""Rows drawn from a model: expected numbers to within one, the right law across cliques, the same again for a seed."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from spinney.errors import ParameterError
from spinney.graph.junction import JunctionTree
from spinney.graph.model import GraphModel, draw_states
from support.slow_graphs import random_model
from support.strategies import MODEST

FAN = JunctionTree.covering([4, 5, 3, 4, 2, 3], [(0, 1, 4), (1, 2, 4), (1, 3, 4), (3, 5)])


def fan_model(seed: int, spread: float = 0.7) -> GraphModel:
    return GraphModel.from_vector(FAN, np.random.default_rng(seed).normal(0, spread, FAN.n_cells))


def counts(states: np.ndarray, sizes: tuple[int, ...], columns: tuple[int, ...]) -> np.ndarray:
    shape = [sizes[c] for c in columns]
    flat = np.ravel_multi_index([states[c] for c in columns], shape)
    return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)


def misses(states: np.ndarray, model: GraphModel) -> float:
    """The least p-value of a chi-square test over all pairs of columns, times their number."""
    pairs = [*combinations(range(model.tree.n_columns), 2)]
    n_rows = states.shape[1]
    values = []
    for pair, law in zip(pairs, model.marginals(pairs), strict=True):
        expected = n_rows * law
        statistic = ((counts(states, model.tree.sizes, pair) - expected) ** 2 / expected).sum()
        values.append(stats.chi2.sf(statistic, expected.size - 1))
    return min(values) * len(pairs)


@MODEST
@given(st.integers(0, 2**32), st.integers(0, 500))
def test_the_first_column_is_shared_out_to_within_one(seed: int, n_rows: int) -> None:
    """So is every column given those before it in its clique; impossible states are never drawn."""
    rng = np.random.default_rng(seed)
    model = random_model(rng)
    states = draw_states(model, n_rows, rng)
    assert states.shape == (model.tree.n_columns, n_rows)
    root = model.tree.cliques[0][0]
    expected = n_rows * model.marginal((root,))
    assert (np.abs(counts(states, model.tree.sizes, (root,)) - expected) < 1 + 1e-6).all()
    clique = model.tree.cliques[0]
    for k in range(1, len(clique)):
        table = model.marginal(clique[: k + 1])
        shares = table / np.maximum(table.sum(axis=-1, keepdims=True), 1e-300)
        expected = counts(states, model.tree.sizes, clique[:k])[..., None] * shares
        assert (np.abs(counts(states, model.tree.sizes, clique[: k + 1]) - expected) < 1 + 1e-6).all()


def test_pairs_across_cliques_follow_the_model_and_no_other() -> None:
    """Chi-square over all pairs of columns accepts the model that was drawn from, and rejects one a little off."""
    model = fan_model(1)
    other = GraphModel.from_vector(FAN, model.vector + np.random.default_rng(9).normal(0, 0.1, FAN.n_cells))
    for seed in range(5):
        states = draw_states(model, 40_000, np.random.default_rng(seed))
        assert misses(states, model) > 1e-3
        assert misses(states, other) < 1e-6


def test_rows_with_the_same_parent_are_paired_at_random() -> None:
    """Two children of one parent are independent given it; the order of rows says nothing either."""
    tree = JunctionTree.covering([2, 5, 5], [(0, 1), (0, 2)])
    model = GraphModel.uniform(tree)
    states = draw_states(model, 50_000, np.random.default_rng(3))
    table = counts(states, tree.sizes, (0, 1, 2))
    assert ((table - 1000) ** 2 / 1000).sum() < stats.chi2.isf(1e-4, 49)
    early, late = (counts(half, tree.sizes, (0, 1)) for half in np.split(states, 2, axis=1))
    assert ((early - late) ** 2 / (early + late)).sum() < stats.chi2.isf(1e-4, 9)
    assert not np.array_equal(states[1], np.sort(states[1]))


def test_single_rows_follow_the_law() -> None:
    """One row at a time, nothing is shared out: the offsets alone must give the law."""
    model = fan_model(2)
    rng = np.random.default_rng(4)
    states = np.concatenate([draw_states(model, 1, rng) for _ in range(4000)], axis=1)
    assert misses(states, model) > 1e-3
    assert misses(states, fan_model(3)) < 1e-6


def test_impossible_cells_are_never_drawn() -> None:
    tree = JunctionTree.covering([4, 4, 4], [(0, 1), (1, 2)])
    allowed = np.where(np.triu(np.ones((4, 4))) > 0, 0.0, -np.inf)
    states = draw_states(GraphModel(tree, (allowed, allowed)), 10_000, np.random.default_rng(0))
    assert (states[0] <= states[1]).all()
    assert (states[1] <= states[2]).all()


def test_a_seed_gives_the_same_rows() -> None:
    model = fan_model(0)
    first, again, other = (draw_states(model, 1000, np.random.default_rng(seed)) for seed in (7, 7, 8))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_no_rows_and_fewer() -> None:
    assert draw_states(fan_model(0), 0, np.random.default_rng(0)).shape == (6, 0)
    with pytest.raises(ParameterError, match="n_rows=-1"):
        draw_states(fan_model(0), -1, np.random.default_rng(0))
