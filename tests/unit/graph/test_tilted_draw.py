"""Rows of a tilted model: nothing impossible, shares as asked for, little sampling noise, the same again for a seed."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from spinney.errors import ParameterError
from spinney.graph import tilted_draw
from spinney.graph.junction import JunctionTree
from spinney.graph.model import GraphModel
from spinney.graph.tilt import Tilt
from spinney.graph.tilted_draw import draw_tilted

SIZES = (4, 6, 3, 5)
PAIRS = tuple(combinations(range(4), 2))


def base(seed: int = 0) -> GraphModel:
    """The first two columns share a table in which some states cannot meet."""
    tree = JunctionTree.covering(SIZES, [(0, 1)])
    rng = np.random.default_rng(seed)
    potentials = []
    for clique in tree.cliques:
        table = rng.normal(0, 0.5, [SIZES[column] for column in clique])
        if len(clique) == 2:
            table[0, :3] = -np.inf
            table[3, 5] = -np.inf
        potentials.append(table)
    return GraphModel(tree, tuple(potentials))


def tilt(strength: float = 0.4, seed: int = 1) -> Tilt:
    """Factors on all pairs but the first; states share groups."""
    rng = np.random.default_rng(seed)
    groups = tuple(np.array(group, dtype=np.uint8) for group in ([0, 1, 1, 0], [0, 0, 1, 1, 2, 2], [0, 1, 2], [0] * 5))
    sizes = [int(group.max()) + 1 for group in groups]
    tables = tuple(rng.normal(0, strength, (sizes[i], sizes[j])) for i, j in PAIRS[1:])
    return Tilt(groups, tuple(np.zeros(size) for size in SIZES), PAIRS[1:], tables, 0.0)


def counted(states: np.ndarray, columns: tuple[int, ...]) -> np.ndarray:
    shape = [SIZES[column] for column in columns]
    flat = np.ravel_multi_index([states[column] for column in columns], shape)
    return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)


def tilted_law(pair: tuple[int, int], of: Tilt) -> np.ndarray:
    """A pair under the tilted law, over all combinations."""
    every = np.indices(SIZES).reshape(4, -1).astype(np.int32)
    law = base().marginal((0, 1, 2, 3)).ravel() * np.exp(of.log_weights(every))
    found = np.zeros([SIZES[column] for column in pair])
    np.add.at(found, tuple(every[column] for column in pair), law / law.sum())
    return found


@pytest.mark.parametrize("n_rows", [0, 1, 3, 1000, 300_001])
def test_as_many_rows_as_are_asked_for_none_of_them_impossible(n_rows):
    """None, few, and more than are made at a time."""
    states = draw_tilted(base(), tilt(), n_rows, np.random.default_rng(2), columns=range(4), pairs=[(0, 1)])
    assert states.shape == (4, n_rows)
    assert states.dtype == np.int32
    met = counted(states, (0, 1))
    assert met[0, :3].sum() == 0
    assert met[3, 5] == 0


def test_a_negative_number_of_rows_is_refused():
    """By name."""
    with pytest.raises(ParameterError, match="n_rows=-1"):
        draw_tilted(base(), tilt(), -1, np.random.default_rng(0))


def test_rows_follow_the_tilted_law():
    """Pairs are those of the model times the factors, and not those of the model."""
    n_rows = 40_000
    states = draw_tilted(base(), tilt(), n_rows, np.random.default_rng(3))
    for pair in PAIRS:
        law = tilted_law(pair, tilt())
        assert 0.5 * np.abs(counted(states, pair) / n_rows - law).sum() < 0.008
    far = [0.5 * np.abs(tilted_law(pair, tilt()) - base().marginal(pair)).sum() for pair in PAIRS]
    assert max(far) > 0.05


def test_columns_and_pairs_that_are_to_hold_do():
    """They are as the model has them, where without asking the tilt would move them."""
    n_rows = 20_000
    model, strong = base(), tilt(0.6)
    free = draw_tilted(model, strong, n_rows, np.random.default_rng(4))
    held = draw_tilted(model, strong, n_rows, np.random.default_rng(4), columns=range(4), pairs=[(0, 1)])
    moved = [
        [0.5 * np.abs(counted(states, columns) / n_rows - model.marginal(columns)).sum() for states in (free, held)]
        for columns in [(0,), (1,), (2,), (0, 1)]
    ]
    assert max(before for before, _ in moved) > 0.05
    assert max(after for _, after in moved) < 0.004


def test_shares_of_a_rare_state_hold():
    """One in a thousand, which the tilt makes rarer still, has its rows."""
    tree = JunctionTree.covering((2, 3), [])
    model = GraphModel(
        tree, tuple(np.log([0.999, 0.001]) if clique == (0,) else np.zeros(3) for clique in tree.cliques)
    )
    groups = (np.arange(2, dtype=np.uint8), np.arange(3, dtype=np.uint8))
    rarer = Tilt(groups, (np.array([0.0, -2.0]), np.zeros(3)), ((0, 1),), (np.zeros((2, 3)),), 0.0)
    states = draw_tilted(model, rarer, 20_000, np.random.default_rng(0), columns=[0])
    assert abs(int((states[0] == 1).sum()) - 20) <= 2
    states = draw_tilted(model, rarer, 20_000, np.random.default_rng(0))
    assert int((states[0] == 1).sum()) < 10


def test_exchanges_lower_the_gaps(monkeypatch):
    """Groups of pairs have less sampling noise than in rows that are taken by weight alone, by a half or more."""
    n_rows = 5_000
    groups = tilt().groups

    def gap() -> float:
        states = draw_tilted(base(), tilt(), n_rows, np.random.default_rng(5))
        distances = []
        for i, j in PAIRS[1:]:
            off = np.zeros((3, 3))
            np.add.at(off, np.ix_(groups[i], groups[j]), counted(states, (i, j)) / n_rows - tilted_law((i, j), tilt()))
            distances.append(0.5 * np.abs(off).sum())
        return float(np.mean(distances))

    exchanged = gap()
    monkeypatch.setattr(tilted_draw, "_MOST_TURNS", 0)
    assert exchanged < 0.6 * gap()


def test_without_factors_rows_are_those_of_the_model():
    """A tilt of zeros weighs all rows alike."""
    n_rows = 20_000
    flat = draw_tilted(base(), tilt(0.0), n_rows, np.random.default_rng(6), columns=range(4), pairs=[(0, 1)])
    for pair in PAIRS:
        assert 0.5 * np.abs(counted(flat, pair) / n_rows - base().marginal(pair)).sum() < 0.015


@pytest.mark.parametrize("n_rows", [500, 30_000])
def test_the_same_generator_draws_the_same_rows(n_rows, monkeypatch):
    """On one thread and on three; another one draws others."""
    draws = []
    for n_threads, seed in (("1", 7), ("3", 7), ("1", 8)):
        monkeypatch.setenv("SPINNEY_THREADS", n_threads)
        draws.append(draw_tilted(base(), tilt(), n_rows, np.random.default_rng(seed), columns=range(4)))
    assert np.array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])


def test_rows_are_in_no_order():
    """Rows that were taken more than once, as some that weigh much are, do not lie side by side."""
    sizes, n_rows = (16,) * 6, 20_000
    tree = JunctionTree.covering(sizes, [])
    model = GraphModel(tree, tuple(np.zeros(16) for _ in tree.cliques))
    groups = tuple((np.arange(16) == 0).astype(np.uint8) for _ in sizes)
    common = np.array([[0.0, 0.0], [0.0, 4.0]])
    strong = Tilt(groups, tuple(np.zeros(16) for _ in sizes), ((0, 1),), (common,), 0.0)
    codes = np.ravel_multi_index(list(draw_tilted(model, strong, n_rows, np.random.default_rng(9))), sizes)
    assert len(np.unique(codes)) < 0.97 * n_rows
    assert (codes[1:] == codes[:-1]).sum() < 5
