"""Junction trees: every clique covered, running intersection, no clique within another, few cells."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.errors import ParameterError
from spinney.graph.junction import JunctionTree, TreewidthBudget
from support.in_one_test import in_one_test
from support.slow_graphs import n_cells, slow_cliques
from support.strategies import MODEST

graphs = st.integers(1, 9).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(1, 6), min_size=n, max_size=n),
        st.lists(st.lists(st.integers(0, n - 1), min_size=1, max_size=4), max_size=12),
    )
)


@MODEST
@given(graphs)
def test_cliques_are_covered_and_maximal(drawn) -> None:
    """Every given clique and every column lies in one; no clique lies within another."""
    sizes, cliques = drawn
    tree = JunctionTree.covering(sizes, cliques)
    for clique in [*cliques, *([column] for column in range(len(sizes)))]:
        assert any(set(clique) <= set(other) for other in tree.cliques)
        assert set(clique) <= set(tree.cliques[tree.home(clique)])
    assert not any(set(a) <= set(b) or set(b) <= set(a) for a, b in combinations(tree.cliques, 2))
    assert tree.n_cells == sum(np.prod([sizes[column] for column in clique]) for clique in tree.cliques)


@MODEST
@given(graphs)
def test_cliques_with_a_column_hang_together(drawn) -> None:
    """Running intersection: of the cliques that hold a column, all but one share it with their parent."""
    sizes, cliques = drawn
    tree = JunctionTree.covering(sizes, cliques)
    for index, (clique, parent, separator) in enumerate(zip(tree.cliques, tree.parents, tree.separators, strict=True)):
        assert parent < index
        shared = set(clique) & set(tree.cliques[parent]) if parent >= 0 else set()
        assert tuple(sorted(shared)) == separator
    for column in range(len(sizes)):
        holding = [index for index, clique in enumerate(tree.cliques) if column in clique]
        assert tuple(holding) == tree.holders[column]
        assert sum(column not in tree.separators[index] for index in holding) == 1


@MODEST
@given(graphs)
def test_the_order_of_cliques_is_the_whole_tree(drawn) -> None:
    """A tree built from the cliques of another is the same; so is one covering them."""
    tree = JunctionTree.covering(*drawn)
    again = JunctionTree(tree.sizes, tree.cliques)
    assert again == tree
    assert hash(again) == hash(tree)
    assert (again.parents, again.separators) == (tree.parents, tree.separators)
    assert sorted(JunctionTree.covering(tree.sizes, tree.cliques).cliques) == sorted(tree.cliques)


def random_cliques(rng: np.random.Generator, *, most_columns: int) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Sizes, often all alike so that ties are many, and pairs and triples, often with long cycles."""
    n_columns = int(rng.integers(3, most_columns + 1))
    sizes = [32] * n_columns if rng.random() < 0.5 else rng.integers(1, 33, n_columns).tolist()
    drawn = (
        rng.choice(n_columns, int(rng.integers(1, 4)), replace=False) for _ in range(rng.integers(0, 2 * n_columns))
    )
    return tuple(sizes), [tuple(sorted(clique.tolist())) for clique in drawn]


@in_one_test("seed", range(150))
def test_cycles_are_closed_as_the_slow_twin_does(seed) -> None:
    """The compiled elimination finds the same cliques in the same order, ties included, beyond 64 columns too."""
    sizes, cliques = random_cliques(np.random.default_rng(seed), most_columns=30 if seed % 5 else 140)
    assert JunctionTree.covering(sizes, cliques).cliques == slow_cliques(sizes, cliques)


def test_room_is_what_the_tree_would_have() -> None:
    """A verdict without a tree is that of the tree, before and after more cliques; both verdicts occur."""
    rng = np.random.default_rng(1)
    verdicts = []
    for _ in range(60):
        sizes, cliques = random_cliques(rng, most_columns=15)
        most = int(10 ** rng.uniform(2, 6))
        room = TreewidthBudget(sizes, cliques, most)
        for turn in range(6):
            pair = tuple(sorted(rng.choice(len(sizes), 3 - turn % 2, replace=False).tolist()))
            verdict = JunctionTree.covering(sizes, [*cliques, pair]).n_cells <= most
            assert room.has(pair) is room.has(pair) is verdict
            verdicts.append(verdict)
            if turn % 2:
                is_new = not any(set(pair) <= set(clique) for clique in cliques)
                assert room.add(pair) is is_new
                cliques.append(pair)
    assert 50 < sum(verdicts) < len(verdicts) - 50


def test_room_has_no_more_than_was_asked_for() -> None:
    """The limit itself is allowed; one cell less is not."""
    sizes, cliques = (4, 5, 6, 7), [(0, 1), (2, 3)]
    n_joined = n_cells(sizes, slow_cliques(sizes, [*cliques, (1, 2)]))
    assert n_joined == 4 * 5 + 5 * 6 + 6 * 7
    assert TreewidthBudget(sizes, cliques, n_joined).has((1, 2))
    assert not TreewidthBudget(sizes, cliques, n_joined - 1).has((1, 2))


def test_a_graph_without_cycles_keeps_its_cliques() -> None:
    """Nothing is added to pairs in a tree, or to triples in a tree that share a target."""
    rng = np.random.default_rng(0)
    pairs = {(int(rng.integers(0, i)), i) for i in range(1, 300)}
    assert set(JunctionTree.covering([20] * 300, pairs).cliques) == pairs
    triples = {(int(rng.integers(0, i)), i, 14) for i in range(1, 14)}
    assert set(JunctionTree.covering([32] * 14 + [2], triples).cliques) == triples


def test_a_cycle_is_closed_at_least_cost() -> None:
    """A ring of four is cut between the two columns of few states."""
    tree = JunctionTree.covering([50, 2, 50, 2], [(0, 1), (1, 2), (2, 3), (0, 3)])
    assert set(tree.cliques) == {(0, 1, 3), (1, 2, 3)}
    ring = JunctionTree.covering([3] * 30, [(i, (i + 1) % 30) for i in range(30)])
    assert max(map(len, ring.cliques)) == 3


def test_columns_alone_are_roots() -> None:
    tree = JunctionTree.covering([3, 4, 5], [])
    assert sorted(tree.cliques) == [(0,), (1,), (2,)]
    assert tree.parents == (-1, -1, -1)


def test_bad_trees_say_why() -> None:
    with pytest.raises(ParameterError, match=r"outside 0\.\.1"):
        JunctionTree.covering([2, 2], [(0, 2)])
    with pytest.raises(ParameterError, match="at least one"):
        JunctionTree.covering([], [])
    with pytest.raises(ParameterError, match="at least one state"):
        JunctionTree.covering([2, 0], [])
    with pytest.raises(ParameterError, match="running intersection"):
        JunctionTree((2, 2, 2), ((0, 1), (1, 2), (0, 2)))
    with pytest.raises(ParameterError, match="ascending"):
        JunctionTree((2, 2), ((1, 0),))
    with pytest.raises(ParameterError, match=r"of 0\.\.1"):
        JunctionTree((2, 2), ((0, 5),))
    with pytest.raises(ParameterError, match="no column 1"):
        JunctionTree((2, 2), ((0,),))
