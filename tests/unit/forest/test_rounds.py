"""Rounds: which cliques are open to choice, and that finding out costs little however many columns there are."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

import spinney as sp
from spinney.forest import rounds as opening
from spinney.forest.design import Effort
from spinney.forest.plan import Shape, forest_plan
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.forest.rounds import Opening, _n_of_turn, _Turn
from spinney.graph.junction import JunctionTree, _n_cells
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import UnsafeSeededEntropy


def a_design(n_columns: int, target: int | None, most_cells: int) -> SimpleNamespace:
    measured = tuple(range(n_columns))
    free = tuple(column for column in measured if column != target)
    effort = Effort((3.0,), most_cells, 500, 5_000, 5_000_000, 10)
    return SimpleNamespace(measured=measured, target=target, free=free, required=(), stated_cells=0, effort=effort)


def slow_opening(sizes, design, cliques, most_cells):
    """All that is open after some cliques were measured: a tree is built for every candidate."""
    candidates = [clique for n_columns in (2, 3) for clique in combinations(design.measured, n_columns)]
    if design.target is not None:
        candidates += [tuple(sorted((i, j, design.target))) for i, j in combinations(design.free, 2)]
    tree, opened = JunctionTree.covering(sizes, cliques), set()
    for clique in set(candidates) - set(cliques):
        with_it = JunctionTree.covering(sizes, [*cliques, clique])
        if tree.home(clique) is not None or with_it.n_cells <= most_cells:
            opened.add(clique)
    return opened or set(cliques)


@pytest.mark.parametrize("target", [None, 4])
@pytest.mark.parametrize("most_cells", [500, 3_000, 60_000])
def test_what_is_open_follows_from_what_was_measured(target, most_cells) -> None:
    """Round after round the same cliques as if every tree were built, also when none is left."""
    rng = np.random.default_rng(most_cells)
    sizes = rng.integers(2, 12, 9).tolist()
    design = a_design(len(sizes), target, most_cells)
    cliques = [] if target is None else [tuple(sorted((column, target))) for column in design.free]
    open_ones = Opening(sizes, design, cliques)
    n_cells = JunctionTree.covering(sizes, cliques).n_cells
    for turn in range(20):
        opened = open_ones.cliques(np.random.default_rng(turn), share=1.0)
        assert len(set(opened)) == len(opened)
        assert set(opened) == slow_opening(sizes, design, cliques, most_cells)
        picked = opened[rng.integers(len(opened))]
        room = JunctionTree.covering(sizes, [*cliques, picked]).n_cells - JunctionTree.covering(sizes, cliques).n_cells
        assert open_ones.growth(picked) == pytest.approx(max(0, room) / most_cells)
        open_ones.close(picked)
        cliques.append(picked)
    assert JunctionTree.covering(sizes, cliques).n_cells <= max(most_cells, n_cells)


def test_triples_are_open_in_later_rounds() -> None:
    """Pairs come first: until then a pair can be what is missing."""
    open_ones = Opening([2] * 6, a_design(6, None, 10_000), [])
    found = [open_ones.cliques(np.random.default_rng(0), share=share) for share in (0.1, 0.8, 1.0)]
    assert [max(map(len, cliques)) for cliques in found] == [2, 3, 3]


def test_among_many_columns_some_are_compared(monkeypatch) -> None:
    """Sets of columns grow in number beyond what can be compared; a few at random are taken then, none twice."""
    monkeypatch.setattr(opening, "N_TRIPLES", 50)
    monkeypatch.setattr(opening, "N_PAIRS", 100)
    open_ones = Opening([2] * 40, a_design(40, None, 10_000), [])
    opened = open_ones.cliques(np.random.default_rng(0), share=1.0)
    assert len(set(opened)) == len(opened) == 150
    assert [sum(len(clique) == k for clique in opened) for k in (2, 3)] == [100, 50]


def test_a_graph_that_stays_the_same_is_not_looked_at_again(monkeypatch) -> None:
    """Once nothing fits any more, further rounds try no order out: of many columns that would take most of the time."""
    n_tried = []

    def counted(*arguments):
        n_tried.append(1)
        return _n_cells(*arguments)

    monkeypatch.setattr("spinney.graph.junction._n_cells", counted)
    open_ones = Opening([12] * 9, a_design(9, None, 300), [(0, 1), (2, 3)])
    for turn in range(3):
        assert sorted(open_ones.cliques(np.random.default_rng(turn), share=1.0)) == [(0, 1), (2, 3)]
        open_ones.close((0, 1))
        if turn == 0:
            n_first = len(n_tried)
    assert n_first >= 34  # candidates
    assert len(n_tried) == n_first
    open_ones.close((1, 2))
    open_ones.cliques(np.random.default_rng(9), share=1.0)
    assert len(n_tried) > n_first


def test_the_first_turn_has_more_rounds_than_later_ones() -> None:
    """All is still to be found then; no turn has more rounds than are left, and each has one."""
    assert [_n_of_turn(45, left, 15) for left in (45, 38, 2)] == [7, 3, 2]
    assert _n_of_turn(9, 9, 3) == _n_of_turn(9, 8, 3) == 1


def test_cliques_of_a_turn_join_different_parts() -> None:
    """A pair within what the turn has joined waits for the next, unless no other is left."""
    open_ones = Opening([2] * 4, a_design(4, None, 10_000), [])
    turn = _Turn([(0, 1), (1, 2), (0, 2), (2, 3)], 4, open_ones)
    assert turn.take(0) == (0, 1)
    assert turn.take(1) == (1, 2)
    assert turn.places().tolist() == [3]
    turn.take(3)
    assert turn.places().tolist() == [2]
    turn.take(2)
    assert turn.places() is None


def test_a_turn_ends_where_nothing_fits_any_more() -> None:
    """The model's tree grew during the turn: what fitted when the rows were compared may not fit now."""
    open_ones = Opening([8] * 4, a_design(4, None, 600), [(0, 1), (1, 2), (2, 3)])
    turn = _Turn([(0, 2), (0, 3), (1, 3)], 4, open_ones)
    assert turn.places().tolist() == [0, 1, 2]
    turn.take(0)
    assert not turn.fits(1)
    assert turn.places() is None


def test_what_is_not_accepted_takes_no_part_in_a_choice() -> None:
    """Drawing again until a place is accepted is the exponential mechanism among those that are."""
    n_draws, scores = 4_000, np.array([3, 0, 2, 1], dtype=np.int64)
    plan = forest_plan(
        Shape({"one-way": 1, "selection": n_draws}, {"one-way": Fraction(1, 2), "selection": Fraction(1, 2)}),
        epsilon=Fraction(2 * n_draws),
        delta=Fraction(0),
        unit=Unit.REPLACE_ONE,
    )
    prepaid = PrepaidMechanisms(plan, sp.Ledger(), UnsafeSeededEntropy(5))
    drawn = [prepaid.choice(scores, sensitivity=1, accepts=lambda place: place != 0) for _ in range(n_draws)]
    shares = np.bincount(drawn, minlength=4) / n_draws
    weights = np.exp(scores / 2) * [0, 1, 1, 1]
    assert shares == pytest.approx(weights / weights.sum(), abs=0.035)
    assert shares != pytest.approx(np.array([0, 1, 1, 1]) / 3, abs=0.035)


def test_what_was_drawn_and_put_aside_leaves_no_trace():
    """A clique that does not fit now may fit after another was measured: whether it was asked about does not matter.

    Which cliques are asked about while one is drawn follows the rows, and is not released.
    """
    sizes = (32, 64, 3, 32, 5, 2)
    measured = [(1, 3), (0, 1), (0, 4), (0, 5), (2, 3)]
    answers = []
    for is_asked in (True, False):
        opening = Opening(sizes, a_design(6, None, 20_000), measured)
        turn = _Turn([(0, 2), (1, 2)], len(sizes), opening)
        if is_asked:
            assert not turn.fits(0)
        assert turn.take(1) == (1, 2)
        answers.append((turn.fits(0), turn.places().tolist()))
    assert answers[0] == answers[1] == (True, [0])
