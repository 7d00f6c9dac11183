"""Rounds: which cliques are open to choice, and that finding out costs little however many columns there are."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

from spinney.forest import rounds
from spinney.graph.elimination import _eliminate
from spinney.graph.junction import JunctionTree


def a_design(n_columns: int, target: int | None) -> SimpleNamespace:
    measured = tuple(range(n_columns))
    free = tuple(column for column in measured if column != target)
    return SimpleNamespace(measured=measured, target=target, free=free, required=())


def slow_opening(sizes, design, cliques, rng):
    """All that is open after some cliques were measured: a tree is built for every candidate."""
    candidates = list(combinations(design.measured, 2))
    if design.target is not None:
        candidates += [tuple(sorted((i, j, design.target))) for i, j in combinations(design.free, 2)]
    candidates = [clique for clique in candidates if clique not in set(cliques)]
    tree, opened = JunctionTree.covering(sizes, cliques), []
    for place in rng.permutation(len(candidates)):
        clique = candidates[place]
        with_it = JunctionTree.covering(sizes, [*cliques, clique])
        if tree.home(clique) is not None or with_it.n_cells <= rounds._MOST_CELLS:
            opened.append(clique)
        if len(opened) == rounds._N_COMPARED:
            break
    if opened:
        return opened
    several = list(dict.fromkeys(cliques)) or [design.measured[:2]]
    return [several[place] for place in rng.permutation(len(several))[: rounds._N_COMPARED]]


@pytest.mark.parametrize("target", [None, 4])
@pytest.mark.parametrize("most_cells", [500, 3_000, 60_000])
def test_what_is_open_follows_from_what_was_measured(target, most_cells, monkeypatch) -> None:
    """Round after round the same cliques in the same order as if every tree were built, also when none is left."""
    monkeypatch.setattr(rounds, "_MOST_CELLS", most_cells)
    monkeypatch.setattr(rounds, "_N_COMPARED", 12)
    rng = np.random.default_rng(most_cells)
    sizes = rng.integers(2, 12, 9).tolist()
    design = a_design(len(sizes), target)
    cliques = [] if target is None else [tuple(sorted((column, target))) for column in design.free]
    opening = rounds._Opening(sizes, design, cliques)
    seen, n_cells = [], JunctionTree.covering(sizes, cliques).n_cells
    for turn in range(20):
        opened = opening.cliques(np.random.default_rng(turn))
        assert opened == slow_opening(sizes, design, cliques, np.random.default_rng(turn))
        seen.append((opened, list(cliques)))
        picked = opened[rng.integers(len(opened))]
        opening.close(picked)
        cliques.append(picked)
    assert JunctionTree.covering(sizes, cliques).n_cells <= max(most_cells, n_cells)
    opened, known = seen[-1]
    assert (set(opened) <= set(known)) == (most_cells == 500)  # then only those that were measured are left


def test_a_graph_that_stays_the_same_is_not_looked_at_again(monkeypatch) -> None:
    """Once nothing fits any more, further rounds try no order out: of many columns that would take most of the time."""
    monkeypatch.setattr(rounds, "_MOST_CELLS", 300)
    n_tried = []

    def counted(*arguments):
        n_tried.append(1)
        return _eliminate(*arguments)

    monkeypatch.setattr("spinney.graph.elimination._eliminate", counted)
    opening = rounds._Opening([12] * 9, a_design(9, None), [(0, 1), (2, 3)])
    for turn in range(3):
        assert sorted(opening.cliques(np.random.default_rng(turn))) == [(0, 1), (2, 3)]
        opening.close((0, 1))
        if turn == 0:
            n_first = len(n_tried)
    assert n_first >= 34  # candidates
    assert len(n_tried) == n_first
    opening.close((1, 2))
    opening.cliques(np.random.default_rng(9))
    assert len(n_tried) > n_first
