"""Rows from a model: states of all columns, from the roots of its tree outwards.

Each column is drawn given the columns of its clique that came before. Rows that agree on those share out the column's
states *systematically*: row k of n takes the state at (k + u) / n of the conditional law, u uniform. So every state
gets its expected number of rows to within one, where independent draws would add noise of the size of its square root.
Which row is row k is decided anew for every column by a random order, so rows are paired with nothing else in mind.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.errors import ParameterError
from spinney.graph.model import GraphModel

Floats = NDArray[np.float64]
States = NDArray[np.int32]


# So many numbers in [0, 1), from which systematic draws start.
Offsets = Callable[[int], Floats]


def draw_states(model: GraphModel, n_rows: int, rng: np.random.Generator, offsets: Offsets | None = None) -> States:
    """States of `n_rows` rows under the model, one line per column (n_columns, n_rows).

    Args:
        model: the law of the rows.
        n_rows: how many rows.
        rng: draws them.
        offsets: gives u for each group of rows that agree, by default random numbers.
    """
    offsets = offsets or rng.random
    if n_rows < 0:
        raise ParameterError(f"n_rows={n_rows} must not be negative")
    tree = model.tree
    states = np.zeros((tree.n_columns, n_rows), dtype=np.int32)
    if n_rows == 0:
        return states
    for clique, separator, belief in zip(tree.cliques, tree.separators, model.beliefs, strict=True):
        drawn = [*separator]
        for column in clique:
            if column in separator:
                continue
            # Axes of columns that are still to come are summed; those drawn so far come first.
            kept = [*drawn, column]
            axes = [clique.index(other) for other in kept]
            coming = tuple(axis for axis in range(len(clique)) if axis not in axes)
            table = belief.transpose(*axes, *coming).reshape(*tree.shape(kept), -1).sum(axis=-1)
            parents = np.zeros(n_rows, dtype=np.int32)
            for other in drawn:
                parents = parents * np.int32(tree.sizes[other]) + states[other]
            table = table.reshape(-1, tree.sizes[column])
            order = rng.permutation(n_rows)
            _share_out(table, parents, order, offsets(len(table)), states[column])
            drawn.append(column)
    return states


@compiled
def _share_out(
    table: Floats,  # (n_parent_states, n_states), proportional to the law of both
    parents: States,  # (n_rows,)
    order: NDArray[np.int64],  # (n_rows,)
    offsets: Floats,  # (n_parent_states,), in [0, 1)
    states: States,  # (n_rows,), written
) -> None:
    n_parents, n_states = table.shape
    steps, last = np.zeros(n_parents), np.zeros(n_parents, dtype=np.int32)
    for parent in parents:
        steps[parent] += 1
    for parent in range(n_parents):
        total = 0.0
        for state in range(n_states):
            total += table[parent, state]
            if table[parent, state] > 0:
                last[parent] = state
        if steps[parent] > 0:
            steps[parent] = total / steps[parent]  # of probability per row
    current = np.zeros(n_parents, dtype=np.int32)
    reached, position = table[:, 0].copy(), offsets * steps
    for row in order:
        parent = parents[row]
        state = current[parent]
        while position[parent] >= reached[parent] and state < last[parent]:
            state += 1
            reached[parent] += table[parent, state]
        current[parent] = state
        states[row] = state
        position[parent] += steps[parent]
