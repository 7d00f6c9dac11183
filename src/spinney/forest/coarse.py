"""Coarse states: a few groups of a column's states, so that many columns, or all pairs, can be looked at together.

What three columns show that no two of them do is searched for among hundreds of triples. At all states, chance alone
would fill their tables with differences; a few groups of each column are enough to see whether there is something.
Sees released numbers only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Groups = NDArray[np.uint8]  # (n_states,): the group of every state

# A cell of a coarse table can expect this many standard deviations of the noise in rows, were all cells alike.
_CELL_DEVIATIONS = 8.0
_MOST_GROUPS = 8


def n_groups(n_columns: int, *, total: float, noise_std: float) -> int:
    """Into how many groups the states of each of so many columns fall: a power of two, at least 2."""
    n_cells = total / (_CELL_DEVIATIONS * noise_std)
    found = 2
    while found < _MOST_GROUPS and (2 * found) ** n_columns <= n_cells:
        found *= 2
    return found


def group_states(weights: Floats, most: int, *, is_ordered: bool) -> Groups:
    """The group of every state: neighbours of about even weight, or, without an order, the heaviest each alone."""
    n_states = len(weights)
    if is_ordered or n_states <= most:
        return even_groups(np.arange(n_states), weights, most)
    rank = np.empty(n_states, dtype=np.int64)
    rank[np.argsort(-weights, kind="stable")] = np.arange(n_states)
    return np.minimum(rank, most - 1).astype(np.uint8)


def even_groups(order: NDArray[np.int64], weights: Floats, most: int) -> Groups:
    """Neighbours in an order, in groups of about equal weight: as many as there may be, and every one has a state."""
    n_states = len(order)
    groups = np.empty(n_states, dtype=np.uint8)
    if n_states <= most:
        groups[order] = np.arange(n_states)
        return groups
    shares = weights[order] / max(float(weights.sum()), 1e-300)
    group, held, left = 0, 0.0, 1.0
    for place, state in enumerate(order):
        n_open = most - group  # groups that are not closed yet, this one among them
        is_full = held > 0 and held + shares[place] / 2 >= left / n_open
        if place > 0 and n_open > 1 and (is_full or n_states - place < n_open):
            left -= held
            group, held = group + 1, 0.0
        groups[state] = group
        held += shares[place]
    return groups
