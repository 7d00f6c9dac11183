"""Coarse states: a few groups of a column's states, so that many columns, or all pairs, can be looked at together.

What three columns show that no two of them do is searched for among hundreds of triples. At all states, chance alone
would fill their tables with differences, and what is off in a pair is off in every triple that holds it; products of
functions of a few groups, whose means are 0, show what only all columns together do. Sees released numbers only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spinney.forest.release.signs import signs

Floats = NDArray[np.float64]
Groups = NDArray[np.uint8]  # (n_states,): the group of every state

# Into how many groups the states of a column fall, where three columns are looked at together, and where more are.
_GROUPS_OF_THREE, _GROUPS_OF_MORE = 4, 2


def n_groups(n_columns: int) -> int:
    """Into how many groups at most the states of each of so many columns fall."""
    return _GROUPS_OF_THREE if n_columns <= 3 else _GROUPS_OF_MORE


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


def centred_signs(weights: Floats) -> Floats:
    """Functions of the groups (n_functions, n_groups) between -1 and 1, whose means by these weights are 0.

    One group by itself has the function 0.
    """
    if len(weights) == 1:
        return np.zeros((1, 1))
    plain = signs(len(weights)).astype(np.float64)
    means = plain @ (weights / max(float(weights.sum()), 1e-300))
    return np.asarray((plain - means[:, None]) / (1 + np.abs(means[:, None])))
