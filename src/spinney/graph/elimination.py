"""Closing cycles: the cliques that a graph of columns gets when they are eliminated one after the other.

A column is eliminated by joining its neighbours to each other; it forms a clique with them. Which order is best is
NP-hard to say, so two greedy ones are tried: by fewest new edges, and by fewest cells. The cliques of a growing forest
are tried out thousands of times, so the loops are compiled, and an order is given up as soon as it has more cells
than allowed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.errors import ParameterError

Clique = tuple[int, ...]
Edges = NDArray[np.bool_]  # (n_columns, n_columns): which columns are neighbours


def neighbours(sizes: Sequence[int], cliques: Iterable[Sequence[int]]) -> Edges:
    """Which columns share a clique."""
    if not sizes or min(sizes) < 1:
        raise ParameterError(f"sizes={sizes} must name at least one column, each of at least one state")
    edges = np.zeros((len(sizes), len(sizes)), dtype=np.bool_)
    for clique in cliques:
        if any(not 0 <= column < len(sizes) for column in clique):
            raise ParameterError(f"clique {tuple(clique)} names a column outside 0..{len(sizes) - 1}")
        join(edges, clique)
    return edges


def join(edges: Edges, clique: Sequence[int]) -> bool:
    """Make all columns of a clique neighbours; False where they were."""
    is_new = False
    for a, b in combinations(set(clique), 2):
        is_new |= not edges[a, b]
        edges[a, b] = edges[b, a] = True
    return is_new


def smallest_cliques(sizes: tuple[int, ...], edges: Edges) -> tuple[Clique, ...]:
    """Maximal cliques of the smaller of two triangulations, in an order with running intersection."""
    log_sizes, all_sizes = _vectors(sizes)
    found = []
    for by_fill in (True, False):
        is_member, n_cells = _eliminate(edges.copy(), all_sizes, log_sizes, by_fill, math.inf)
        found.append((n_cells, is_member))
    best = min(found, key=lambda one: one[0])[1]
    return tuple(tuple(np.flatnonzero(members).tolist()) for members in best)


class TreewidthBudget:
    """What else fits into a tree of limited size.

    `has(clique)` tells whether `JunctionTree.covering(sizes, [*cliques, clique])` has at most `most_cells` cells, and
    `n_cells(clique)` how many it has, infinitely many where that is more. Both are remembered for as long as no `add`
    changes the graph.
    """

    def __init__(self, sizes: Sequence[int], cliques: Iterable[Sequence[int]], most_cells: int) -> None:
        self.most_cells = most_cells
        self._edges = neighbours(sizes, cliques)
        self._log_sizes, self._sizes = _vectors(sizes)
        self._known: dict[Clique, float] = {}

    def add(self, clique: Clique) -> bool:
        """Count a clique among those that are there; whether that changed the graph."""
        is_new = join(self._edges, clique)
        if is_new:
            self._known.clear()
        return is_new

    def has(self, clique: Clique) -> bool:
        """Whether the tree would still be small with this clique."""
        return self.n_cells(clique) <= self.most_cells

    def n_cells(self, clique: Clique) -> float:
        """Cells of the tree with this clique."""
        if clique not in self._known:
            edges = self._edges.copy()
            join(edges, clique)
            self._known[clique] = min(
                _eliminate(edges.copy(), self._sizes, self._log_sizes, by_fill, float(self.most_cells))[1]
                for by_fill in (True, False)
            )
        return self._known[clique]


def _vectors(sizes: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Logarithms of sizes, and sizes."""
    return np.array([math.log(size) for size in sizes]), np.array(sizes, dtype=np.float64)


def _eliminate(
    edges: Edges, sizes: NDArray[np.float64], log_sizes: NDArray[np.float64], by_fill: bool, most_cells: float
) -> tuple[Edges, float]:
    """Maximal cliques, as members (n_cliques, n_columns), and their cells: infinitely many where it was given up."""
    formed, left_behind = _order(edges, sizes, log_sizes, by_fill, most_cells)
    if len(formed) < len(sizes):
        return left_behind[:0], math.inf
    return _maximal(formed, left_behind, sizes)


@compiled
def _order(
    edges: Edges, sizes: NDArray[np.float64], log_sizes: NDArray[np.float64], by_fill: bool, most_cells: float
) -> tuple[NDArray[np.int64], Edges]:
    """Columns in the order of elimination, and for every column those that it leaves behind joined to each other.

    Overwrites the edges. Fewer columns than there are where one formed a clique of more cells than allowed.
    """
    n_columns = len(sizes)
    costs = np.empty((n_columns, 2))  # new edges and log cells, the one that counts first; ties go to the lower column
    around = np.empty(n_columns, dtype=np.int64)
    for column in range(n_columns):
        _price(column, edges, log_sizes, by_fill, costs, around)
    is_open = np.ones(n_columns, dtype=np.bool_)
    is_stale = np.zeros(n_columns, dtype=np.bool_)
    formed = np.empty(n_columns, dtype=np.int64)
    left_behind = np.zeros((n_columns, n_columns), dtype=np.bool_)
    for step in range(n_columns):
        column = -1
        for other in range(n_columns):
            if is_open[other] and (
                column < 0
                or costs[other, 0] < costs[column, 0]
                or (costs[other, 0] == costs[column, 0] and costs[other, 1] < costs[column, 1])
            ):
                column = other
        is_open[column] = False
        formed[step] = column
        here = left_behind[column]
        here[:] = edges[column]
        n_cells = sizes[column]
        for other in range(n_columns):
            if here[other]:
                n_cells *= sizes[other]
        if n_cells > most_cells:
            return formed[:step], left_behind
        is_stale[:] = here
        for other in range(n_columns):
            if not here[other]:
                continue
            if by_fill:
                adds_edges = False
                for third in range(n_columns):
                    adds_edges |= here[third] and third != other and not edges[other, third]
                if adds_edges:  # a column that sees both ends of a new edge has fewer to add
                    is_stale |= edges[other]
            edges[other] |= here
            edges[other, other] = edges[other, column] = False
        for other in range(n_columns):
            if is_stale[other] and is_open[other]:
                _price(other, edges, log_sizes, by_fill, costs, around)
    return formed, left_behind


@compiled
def _maximal(formed: NDArray[np.int64], left_behind: Edges, sizes: NDArray[np.float64]) -> tuple[Edges, float]:
    """Maximal cliques as members, and their cells. One that is all that another leaves behind is part of that."""
    n_columns = len(sizes)
    step_of = np.empty(n_columns, dtype=np.int64)
    for step in range(n_columns):
        step_of[formed[step]] = step
    is_member = np.zeros((n_columns, n_columns), dtype=np.bool_)
    n_members = np.zeros(n_columns, dtype=np.int64)
    n_cells = np.zeros(n_columns)
    place = np.empty(n_columns, dtype=np.int64)  # where the clique of a column is; from the last eliminated on
    n_cliques = 0
    for step in range(n_columns - 1, -1, -1):
        column = formed[step]
        # All neighbours lie within the clique of the one eliminated first; if they are all of it, it was not maximal.
        n_others, first, others_cells = 0, n_columns, 1.0
        for other in range(n_columns):
            if left_behind[column, other]:
                n_others += 1
                first = min(first, step_of[other])
                others_cells *= sizes[other]
        holder = n_cliques
        if n_others and n_members[place[formed[first]]] == n_others:
            holder = place[formed[first]]
        else:
            is_member[holder] = left_behind[column]
            n_cliques += 1
        is_member[holder, column] = True
        n_members[holder] = n_others + 1
        n_cells[holder] = others_cells * sizes[column]
        place[column] = holder
    return is_member[:n_cliques], n_cells.sum()


@compiled
def _price(
    column: int,
    edges: Edges,
    log_sizes: NDArray[np.float64],
    by_fill: bool,
    costs: NDArray[np.float64],
    around: NDArray[np.int64],
) -> None:
    """Write what eliminating a column costs. `around` is room to work in."""
    n_around, weight = 0, 0.0
    for other in range(len(edges)):
        if edges[column, other]:
            around[n_around] = other
            n_around += 1
            weight += log_sizes[other]
    weight += log_sizes[column]
    fill = 0
    for i in range(n_around):
        for j in range(i):
            fill += not edges[around[i], around[j]]
    costs[column, 0], costs[column, 1] = (fill, weight) if by_fill else (weight, fill)
