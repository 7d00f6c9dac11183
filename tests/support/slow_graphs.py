"""The slow twins of the graph room: the whole joint table, one axis per column, and cycles closed in plain Python."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from spinney.graph.junction import JunctionTree
from spinney.graph.model import GraphModel

Floats = NDArray[np.float64]


def joint_table(model: GraphModel) -> tuple[Floats, float]:
    """Probabilities of all rows that there can be, and log Z."""
    log_weights = np.zeros(model.tree.sizes)
    for clique, table in zip(model.tree.cliques, model.potentials, strict=True):
        log_weights = log_weights + spread(table, clique, len(model.tree.sizes))
    weights = np.exp(log_weights)
    return weights / weights.sum(), float(np.log(weights.sum()))


def spread(table: Floats, columns: Sequence[int], n_columns: int) -> Floats:
    """A table of some columns, in ascending order, with an axis of length one for every other."""
    return table.reshape([table.shape[columns.index(c)] if c in columns else 1 for c in range(n_columns)])


def summed(joint: Floats, columns: Sequence[int]) -> Floats:
    """The table of some columns, in the order given."""
    others = tuple(c for c in range(joint.ndim) if c not in columns)
    kept = sorted(columns)
    return joint.sum(axis=others).transpose([kept.index(c) for c in columns])


def random_tree(rng: np.random.Generator, *, most_columns: int = 6, largest: int = 4) -> JunctionTree:
    """A tree over a few columns that share cliques at random, often with cycles, sometimes in several parts."""
    n_columns = int(rng.integers(1, most_columns + 1))
    sizes = rng.integers(1, largest + 1, n_columns)
    cliques = [
        rng.choice(n_columns, size=int(rng.integers(1, min(3, n_columns) + 1)), replace=False).tolist()
        for _ in range(int(rng.integers(0, n_columns + 2)))
    ]
    return JunctionTree.covering(sizes, cliques)


def random_model(rng: np.random.Generator, *, zeros: float = 0.0, spread_of: float = 1.5, **kind: int) -> GraphModel:
    """Normal potentials on a random tree, some of them minus infinity."""
    tree = random_tree(rng, **kind)
    vector = rng.normal(0, spread_of, tree.n_cells)
    vector[rng.random(tree.n_cells) < zeros] = -np.inf
    return GraphModel.from_vector(tree, vector)


def slow_cliques(sizes: tuple[int, ...], cliques: Iterable[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """The cliques of `JunctionTree.covering`: of two greedy orders, those with fewer cells."""
    neighbours = _neighbours(sizes, cliques)
    found = [_eliminate(sizes, neighbours, by_fill=by_fill) for by_fill in (True, False)]
    return min(found, key=lambda tree: n_cells(sizes, tree))


def n_cells(sizes: Sequence[int], cliques: Iterable[Sequence[int]]) -> int:
    return sum(math.prod(sizes[column] for column in clique) for clique in cliques)


def _neighbours(sizes: tuple[int, ...], cliques: Iterable[Sequence[int]]) -> list[int]:
    """For every column its neighbours, as bits of an integer."""
    neighbours = [0] * len(sizes)
    for clique in cliques:
        for a, b in combinations(set(clique), 2):
            neighbours[a] |= 1 << b
            neighbours[b] |= 1 << a
    return neighbours


def _eliminate(sizes: tuple[int, ...], neighbours: list[int], *, by_fill: bool) -> tuple[tuple[int, ...], ...]:
    """Maximal cliques of a triangulation, in an order with running intersection.

    A column is eliminated by joining its neighbours to each other: it forms a clique with them. The column's clique is
    not maximal where it is what another clique leaves behind.
    """
    edges, logs = [*neighbours], [math.log(size) for size in sizes]
    costs = {column: _cost(column, edges, logs, by_fill) for column in range(len(sizes))}
    formed: list[tuple[int, int]] = []
    while costs:
        column = min(costs, key=costs.__getitem__)
        del costs[column]
        around = edges[column]
        formed.append((column, around))
        stale = around
        for other in _bits(around):
            if by_fill and around & ~edges[other] & ~(1 << other):
                stale |= edges[other]  # new edges here: a column that sees both ends has fewer to add
            edges[other] = (edges[other] | around) & ~(1 << other) & ~(1 << column)
        for other in _bits(stale & ~(1 << column)):
            if other in costs:
                costs[other] = _cost(other, edges, logs, by_fill)

    kept: list[int] = []
    place: dict[int, int] = {}  # where the clique of a column is; filled from the last eliminated, so in reversed order
    rank = {column: step for step, (column, _) in enumerate(formed)}
    for column, around in reversed(formed):
        # All neighbours lie within the clique of the one eliminated first; if they are all of it, it was not maximal.
        holder = place[min(_bits(around), key=rank.__getitem__)] if around else -1
        if around and kept[holder] == around:
            kept[holder] |= 1 << column
            place[column] = holder
        else:
            place[column] = len(kept)
            kept.append(around | 1 << column)
    return tuple(tuple(_bits(clique)) for clique in kept)


def _cost(column: int, edges: list[int], logs: list[float], by_fill: bool) -> tuple[float, float, int]:
    """What eliminating a column costs: new edges or log cells first; ties go to the lower column."""
    around = edges[column]
    weight = logs[column] + sum(logs[other] for other in _bits(around))
    n_around = around.bit_count()
    present = sum((edges[other] & around).bit_count() for other in _bits(around)) // 2
    fill = n_around * (n_around - 1) // 2 - present
    return (fill, weight, column) if by_fill else (weight, fill, column)


def _bits(word: int) -> list[int]:
    """Positions of the bits that are set, ascending."""
    found = []
    while word:
        lowest = word & -word
        found.append(lowest.bit_length() - 1)
        word ^= lowest
    return found
