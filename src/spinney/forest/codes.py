"""Codes in a hierarchy: from noisy counts of groups and codes to weights and states. Sees released numbers only.

Every level of the hierarchy was counted, and so was every code; what codes weigh is found in `release.code_weights`.

A state for each code would be too many, and one for all rare codes would say nothing of them. So the heaviest codes
have states of their own, half of all states at the most. What is left starts as one pool; the pool that weighs most is
cut where the hierarchy cuts it, again and again, until there are as many states as there may be.
"""

from __future__ import annotations

from dataclasses import replace
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from spinney.forest.columns import NoisyColumn
from spinney.forest.release.code_weights import STANDS_OUT, code_weights

Floats = NDArray[np.float64]


def spread_codes(column: NoisyColumn, total: float) -> tuple[NoisyColumn, Floats]:
    """The column with neighbours of equal weight as one leaf, and weights of its leaves that add up to `total`."""
    levels = column.levels
    assert levels is not None
    noisy_groups = [group.astype(np.float64) for group in column.noisy_groups]
    held = code_weights(levels, noisy_groups, column.noisy_counts.astype(np.float64), column.noise_std, total)
    held, null_weight = held[: levels.n_codes], held[levels.n_codes :]
    group = levels.parents(len(levels.starts))
    is_new = np.append(True, (np.diff(held) != 0) | (np.diff(group) != 0))
    first = np.flatnonzero(is_new)
    weights = np.add.reduceat(held, first)
    stop = np.append(first[1:], levels.n_codes)
    if column.axis.nullable:
        first, stop = np.append(first, column.axis.null_cell), np.append(stop, column.axis.null_cell + 1)
        weights = np.append(weights, null_weight)
    return replace(column, first=first, stop=stop), weights


def pool_siblings(column: NoisyColumn, weights: Floats, most_states: int) -> NDArray[np.int64]:
    """The state of every leaf, numbered in the order in which they first appear; null has one of its own."""
    is_null = column.is_null
    n_leaves = len(weights)
    order = np.argsort(-np.where(is_null, -1.0, weights), kind="stable")
    is_alone = is_null.copy()
    is_alone[order[: most_states // 2]] |= weights[order[: most_states // 2]] > STANDS_OUT * column.noise_std
    is_alone &= is_null | (column.stop - column.first == 1)
    pools = _pools(column, np.where(is_alone, 0.0, weights), max(1, most_states - int(is_alone.sum())))
    own = np.where(is_alone, n_leaves + np.arange(n_leaves), pools)
    _, first, inverse = np.unique(own, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.int64)
    number[np.argsort(first)] = np.arange(len(first))
    return number[inverse]


def _pools(column: NoisyColumn, weights: Floats, n_pools: int) -> NDArray[np.int64]:
    """The pool of every leaf. Pools are cut where both sides hold something; leaves of no weight never make one."""
    levels = column.levels
    assert levels is not None
    before = np.concatenate([[0.0], np.cumsum(weights)])
    n_held = np.concatenate([[0], np.cumsum(weights > 0)])
    starts = [0]
    waiting = [(-float(before[-1]), 0, levels.n_codes)]
    while waiting and len(starts) < n_pools:
        _, low, high = heappop(waiting)
        cut = levels.cut(low, high)
        first, middle, last = (int(at) for at in np.searchsorted(column.first, [low, cut, high]))
        if n_held[middle] > n_held[first] and n_held[last] > n_held[middle]:
            starts.append(cut)
        for begin, end, one, two in ((low, cut, first, middle), (cut, high, middle, last)):
            if n_held[two] - n_held[one] > 1:
                heappush(waiting, (float(before[one] - before[two]), begin, end))
    return np.searchsorted(np.sort(starts), column.first, side="right").astype(np.int64)
