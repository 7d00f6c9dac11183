"""What no pair of columns shows: rounds find triples of columns, at a few groups of their states."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import spinney as sp
from spinney.counting.states import GAP_STEPS, true_interactions
from spinney.forest.cliques import centred_signs, even_groups, group_states
from spinney.privacy.entropy import UnsafeSeededEntropy
from support.slow_forests import rows_of

N_ROWS = 20_000


def a_table(kind: str) -> tuple[np.ndarray, sp.Schema]:
    """Ten columns, or nine, of which the last is decided by two others together and by none alone."""
    rng = np.random.default_rng(3)
    if kind == "numbers":
        numbers = rng.normal(size=(N_ROWS, 8))
        schema = sp.Schema({**{f"x{k}": sp.Real(-8, 8) for k in range(8)}, "y": sp.Boolean()})
        return np.column_stack([numbers, numbers[:, 2] * numbers[:, 5] > 0]), schema
    bits = rng.integers(0, 2, (N_ROWS, 9))
    table = np.column_stack([bits, bits[:, 2] ^ bits[:, 5]])
    return table, sp.Schema({f"b{k}": sp.Integer(0, 1) for k in range(10)})


def agreement(rows: np.ndarray, kind: str) -> float:
    """The share of rows in which the last column is what the others say."""
    if kind == "numbers":
        said = rows[:, 2] * rows[:, 5] > 0
    else:
        bits = rows.astype(int)
        said = bits[:, 2] ^ bits[:, 5]
    return float((rows[:, -1] == said).mean())


@pytest.mark.parametrize(("kind", "least"), [("three", 0.97), ("numbers", 0.85)])
def test_columns_that_only_together_decide_another_are_found(kind, least) -> None:
    """No target is named, and every pair of columns is independent: half of the rows would agree by chance."""
    table, schema = a_table(kind)
    model = sp.ForestSynthesizer("1", "1e-6", quality="high").fit(table, schema, entropy=UnsafeSeededEntropy(1))
    assert agreement(model.sample(N_ROWS, seed=1), kind) > least


def test_pairs_alone_do_not_see_it() -> None:
    """The test above can fail."""
    table, schema = a_table("three")
    model = sp.ForestSynthesizer("1", "1e-6").fit(table, schema, entropy=UnsafeSeededEntropy(1))
    assert agreement(model.sample(N_ROWS, seed=1), "three") < 0.6


# ------------------------------------------------------------------------------------------------------ groups


def test_groups_are_of_about_equal_weight_and_none_is_empty():
    """Neighbours in the order given; a heavy state is a group of its own, and so is every state where they are few."""
    order = np.array([2, 0, 1, 3])
    assert even_groups(order, np.ones(4), 8).tolist() == [1, 2, 0, 3]
    assert even_groups(order, np.ones(4), 2).tolist() == [0, 1, 0, 1]
    assert even_groups(np.arange(6), np.array([10.0, 1, 1, 1, 1, 1]), 2).tolist() == [0, 1, 1, 1, 1, 1]
    assert even_groups(np.arange(6), np.zeros(6), 4).max() == 3
    rng = np.random.default_rng(0)
    for _ in range(200):
        n_states, most = int(rng.integers(1, 40)), int(rng.choice([2, 4, 8, 16]))
        weights = rng.exponential(size=n_states) ** 4 * (rng.random(n_states) < 0.8)
        found = even_groups(rng.permutation(n_states), weights, most)
        assert np.array_equal(np.unique(found), np.arange(min(n_states, most)))


def test_groups_of_numbers_are_neighbours_of_even_weight() -> None:
    weights = np.array([1.0, 1, 1, 1, 4, 4, 0, 4])
    assert group_states(weights, 4, is_ordered=True).tolist() == [0, 0, 0, 0, 1, 2, 3, 3]
    assert np.array_equal(group_states(weights, 4, is_ordered=True), even_groups(np.arange(8), weights, 4))
    assert group_states(np.ones(3), 4, is_ordered=True).tolist() == [0, 1, 2]


def test_the_heaviest_categories_stand_alone() -> None:
    assert group_states(np.array([1.0, 9, 2, 8, 3]), 3, is_ordered=False).tolist() == [2, 0, 2, 1, 2]


def test_functions_of_groups_have_no_mean_and_lie_between_minus_one_and_one() -> None:
    """So a product of functions of three columns is 0 in the mean where two of them depend on each other alone."""
    for weights in ([0.5, 0.5], [0.9, 0.1], [0.1, 0.2, 0.7], [0.4, 0.3, 0.2, 0.1], [1.0, 0.0]):
        functions = centred_signs(np.array(weights))
        assert functions.shape == (len(weights) - 1, len(weights))
        assert np.allclose(functions @ weights, 0)
        assert np.abs(functions).max() <= 1
    assert centred_signs(np.array([3.0])).tolist() == [[0.0]]


def alone(sizes: Sequence[int]) -> list[np.ndarray]:
    """Every state a group by itself."""
    return [np.arange(size, dtype=np.uint8) for size in sizes]


def test_interactions_are_those_of_all_columns_together() -> None:
    """What is off in a pair is not seen in the triple that holds it; what three columns decide is seen in full."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (4_000, 3))
    functions = [centred_signs(np.array([0.5, 0.5]))] * 3
    even = [np.full((2, 2, 2), 500.0)]

    def interaction(table: np.ndarray) -> float:
        found = true_interactions(
            rows_of([tuple(row) for row in table.tolist()], (2, 2, 2)), [(0, 1, 2)], even, functions, alone((2, 2, 2))
        )
        return float(found[0]) / GAP_STEPS

    assert interaction(np.column_stack([bits[:, 0], bits[:, 0], bits[:, 2]])) < 300
    assert interaction(np.column_stack([bits[:, :2], bits[:, 0] ^ bits[:, 1]])) == 4_000


@pytest.mark.parametrize("sizes", [(2, 3, 4), (2, 2, 2, 3)])
def test_an_interaction_changes_by_one_row_by_no_more_than_choices_are_charged_for(sizes) -> None:
    rng = np.random.default_rng(0)
    rows = [tuple(int(rng.integers(0, size)) for size in sizes) for _ in range(30)]
    cliques, expected = [tuple(range(len(sizes)))], [rng.random(sizes) * 5]
    functions = [centred_signs(rng.random(size)) for size in sizes]
    here = true_interactions(rows_of(rows, sizes), cliques, expected, functions, alone(sizes))
    changes = []
    for row in np.ndindex(*sizes):
        there = true_interactions(rows_of([*rows, row], sizes), cliques, expected, functions, alone(sizes))
        changes.append(abs(int(there[0] - here[0])))
    assert 0 < max(changes) <= GAP_STEPS
