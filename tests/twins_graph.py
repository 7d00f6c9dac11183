"""The slow twin of the graph room: the whole joint table, one axis per column, and nothing clever."""

from __future__ import annotations

from collections.abc import Sequence

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
