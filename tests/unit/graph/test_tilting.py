"""Tilts that are fitted to sums of products: what was measured comes back, what was held stays, noise is not believed.

All comparisons are on rows that are drawn afresh, not those that a tilt was fitted to.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from spinney.forest.release.fit import signs
from spinney.graph.junction import JunctionTree
from spinney.graph.model import GraphModel, draw_states
from spinney.graph.tilt import Evidence, Products, Tilt, fit_tilt

SIZES = (4, 4, 3, 2)
TOTAL = 50_000.0
UNMEASURED = tuple((i, j) for i in range(4) for j in range(i + 1, 4) if (i, j) != (2, 3))
# Groups of states: the last state of the first column shares one.
GROUPS = tuple(np.array(group, dtype=np.uint8) for group in ([0, 1, 2, 2], [0, 1, 2, 3], [0, 1, 2], [0, 1]))


def base() -> GraphModel:
    """Columns that are independent, but for the last two, whose table was counted."""
    tree = JunctionTree.covering(SIZES, [(2, 3)])
    potentials = []
    for clique in tree.cliques:
        shape = [SIZES[column] for column in clique]
        uneven = sum(np.log(1 + np.indices(shape)[axis]) * 0.5 for axis in range(len(shape)))
        potentials.append(np.asarray(uneven, dtype=np.float64))
        if len(clique) == 2:
            potentials[-1] = potentials[-1] + np.array([[0.8, 0.0], [0.0, 0.0], [0.0, 0.8]])
    return GraphModel(tree, tuple(potentials))


def laws_of(model: GraphModel) -> dict[tuple[int, int], np.ndarray]:
    return dict(zip(UNMEASURED, model.marginals(UNMEASURED), strict=True))


def grouped(law: np.ndarray, pair: tuple[int, int]) -> np.ndarray:
    """A law of states as one of groups."""
    i, j = pair
    found = np.zeros((GROUPS[i].max() + 1, GROUPS[j].max() + 1))
    np.add.at(found, np.ix_(GROUPS[i], GROUPS[j]), law)
    return found


def fitted(laws, *, noise_std: float = 1.0, noise: float = 0.0, n_drawn: int = 40_000, seed: int = 0) -> Tilt:
    """The tilt by the products of these laws over `TOTAL` rows, with Gaussian noise."""
    rng = np.random.default_rng(seed)
    sums = []
    for pair in UNMEASURED:
        first, second = (signs(int(GROUPS[column].max()) + 1) for column in pair)
        exact = TOTAL * first @ grouped(laws[pair], pair) @ second.T
        sums.append(exact + rng.normal(0, noise, exact.shape) if noise else exact)
    evidence = evidence_of(GROUPS, Products(UNMEASURED, tuple(sums), noise_std), held=[(2, 3)])
    return fit_tilt(base(), evidence, n_drawn=n_drawn, steps=60, rng=rng)


def evidence_of(groups, products: Products, *, held=(), held_std: float = 20.0, total: float = TOTAL) -> Evidence:
    """Products of the signs of these groups."""
    functions = tuple(signs(int(group.max()) + 1).astype(np.float64) for group in groups)
    return Evidence(
        groups=tuple(groups), functions=functions, products=products, held=tuple(held), held_std=held_std, total=total
    )


def fresh_laws(tilt: Tilt, pairs=UNMEASURED, *, n_rows: int = 200_000) -> dict:
    """Laws of pairs of states under a tilt, and of single columns, by rows that it has not seen."""
    states = draw_states(base(), n_rows, np.random.default_rng(99))
    weights = tilt.weights(states)
    found: dict = {}
    for i, j in pairs:
        found[i, j] = np.zeros((SIZES[i], SIZES[j]))
        np.add.at(found[i, j], (states[i], states[j]), weights)
    for column, size in enumerate(SIZES):
        found[column] = np.bincount(states[column], weights=weights, minlength=size)
    return found


def with_dependence(how: float) -> dict:
    """The model's laws, with the first two columns alike and singles unchanged."""
    laws = laws_of(base())
    move = how * np.array([[1, -1, 0, 0], [-1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    return laws | {(0, 1): laws[0, 1] + move}


def distance(one: np.ndarray, other: np.ndarray) -> float:
    return 0.5 * float(np.abs(one - other).sum())


def test_a_measured_dependence_comes_back():
    """Fresh rows have the pair as it was measured, where the model has the columns independent."""
    wanted = with_dependence(0.03)
    before = laws_of(base())
    found = fresh_laws(fitted(wanted))
    assert distance(grouped(wanted[0, 1], (0, 1)), grouped(before[0, 1], (0, 1))) > 0.05
    assert distance(grouped(wanted[0, 1], (0, 1)), grouped(found[0, 1], (0, 1))) < 0.01
    for pair in UNMEASURED[1:]:
        assert distance(before[pair], found[pair]) < 0.015


def test_what_is_held_stays():
    """The counted pair, and every state of single columns, are what the model says."""
    found = fresh_laws(fitted(with_dependence(0.03)), [(2, 3)])
    assert distance(found[2, 3], base().marginal((2, 3))) < 0.01
    for column in range(4):
        assert found[column] == pytest.approx(base().marginal((column,)), abs=0.006)


def test_noise_alone_is_not_believed():
    """Sums of the model with noise of a hundredth of all rows: weights stay near 1, and nearer than if believed."""
    noise = 0.01 * TOTAL
    states = draw_states(base(), 50_000, np.random.default_rng(3))
    cautious = fitted(laws_of(base()), noise_std=noise, noise=noise).log_weights(states).std()
    gullible = fitted(laws_of(base()), noise_std=1.0, noise=noise).log_weights(states).std()
    assert cautious < 0.03
    assert gullible > 3 * cautious


@pytest.mark.parametrize("n_drawn", [300, 1_000])
def test_few_drawn_rows_are_not_fitted(n_drawn):
    """What rows happened to be drawn counts as noise: pairs that need no factors hardly move on fresh rows."""
    before, found = laws_of(base()), fresh_laws(fitted(with_dependence(0.03), n_drawn=n_drawn))
    assert np.mean([distance(before[pair], found[pair]) for pair in UNMEASURED[1:]]) < 0.008


def test_impossible_combinations_are_no_harm():
    """States that cannot meet, and states without a row, leave factors finite."""
    tree = JunctionTree.covering((2, 3, 2), [(0, 1)])
    potentials = []
    for clique in tree.cliques:
        table = np.zeros([(2, 3, 2)[column] for column in clique])
        if len(clique) == 2:
            table[0, 1] = -np.inf
            table[:, 2] = -np.inf
        potentials.append(table)
    model = GraphModel(tree, tuple(potentials))
    groups = [np.arange(size, dtype=np.uint8) for size in (2, 3, 2)]
    pairs = ((0, 2), (1, 2))
    products = Products(pairs, (np.full((1, 1), 300.0), np.full((2, 1), -200.0)), 5.0)
    evidence = evidence_of(groups, products, held=[(0, 1)], held_std=5.0, total=1000.0)
    tilt = fit_tilt(model, evidence, n_drawn=5000, steps=30, rng=np.random.default_rng(0))
    states = draw_states(model, 5000, np.random.default_rng(1))
    assert np.isfinite(tilt.log_weights(states)).all()
    weights = tilt.weights(states)
    product = float((np.where(states[0] == states[2], 1, -1) * weights).sum())
    assert product == pytest.approx(0.3, abs=0.05)


def test_a_tilt_never_leaves_a_few_rows_for_all():
    """Forty columns that all depend on each other: fresh rows keep weights, and come nearer to what was measured."""
    n_columns = 40
    tree = JunctionTree.covering([2] * n_columns, [])
    model = GraphModel(tree, tuple(np.zeros(2) for _ in tree.cliques))
    pairs = tuple(combinations(range(n_columns), 2))
    products = Products(pairs, tuple(np.full((1, 1), 0.3 * TOTAL) for _ in pairs), 50.0)
    groups = [np.arange(2, dtype=np.uint8)] * n_columns
    tilt = fit_tilt(model, evidence_of(groups, products), n_drawn=5000, steps=25, rng=np.random.default_rng(0))
    states = draw_states(model, 20_000, np.random.default_rng(1))
    weights = tilt.weights(states)
    assert 1 / (weights**2).sum() / weights.size > 0.05
    values = 1.0 - 2 * states
    means = (values * weights) @ values.T
    assert means[np.triu_indices(n_columns, 1)].mean() > 0.03
