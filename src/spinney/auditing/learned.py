"""Statistics that are learned from coins whose fall is known, for laws that nobody wrote down, and for broken ones.

linear       the direction in which the means of the two tables lie apart, against the noise that they share
             (Fisher's discriminant): best for Gaussian noise, and blind to none that is missing or drawn twice
frequencies  how often each outcome was seen with either table: finds outcomes that one of them cannot have
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Coins = NDArray[np.bool_]
Statistic = Callable[[Floats], Floats]

# Columns whose outcomes are told apart, and into how many kinds each at most.
_FEW_COLUMNS = 4
_FEW_VALUES = 24
_LARGEST_VALUE = 1e15


def learned_statistics(seen: Floats, coins: Coins) -> Iterator[Statistic]:
    """Statistics of outcomes (n, d), learned from some of them."""
    yield linear(seen, coins)
    yield frequencies(seen, coins)


def linear(seen: Floats, coins: Coins) -> Statistic:
    """The outcome along the direction that tells the two means apart best."""
    seen = _tame(seen)
    if coins.all() or not coins.any():
        return lambda outcomes: np.zeros(len(outcomes))
    one, other = seen[coins].mean(axis=0), seen[~coins].mean(axis=0)
    centred = np.where(coins[:, None], seen - one, seen - other)
    scale = np.sqrt((centred**2).mean(axis=0))
    # A column that never varies with either table tells everything if the two differ, and nothing if not.
    scale = np.where(scale > 0, scale, 1e-6 * np.maximum(np.abs(one - other), 1e-300))
    centred /= scale
    spread = centred.T @ centred / len(centred)
    spread += 1e-7 * np.eye(len(spread))
    weights = np.linalg.solve(spread, (one - other) / scale) / scale
    return lambda outcomes: np.asarray((_tame(outcomes) - other) @ weights)


def frequencies(seen: Floats, coins: Coins) -> Statistic:
    """The logarithm of how much more often an outcome was seen with a 1 than with a 0."""
    if not len(seen):
        return lambda outcomes: np.zeros(len(outcomes))
    edges = [_edges(column) for column in _tame(seen[:, :_FEW_COLUMNS]).T]
    keys = _keys(seen, edges)
    kinds, places = np.unique(keys, return_inverse=True)
    ones = np.bincount(places[coins], minlength=len(kinds))
    zeros = np.bincount(places[~coins], minlength=len(kinds))
    # One outcome each is taken as seen before: an outcome that was seen once says little.
    weights = np.log((ones + 1.0) / (zeros + 1.0)) * (1 + 1e-3 * np.log1p(ones + zeros))

    def statistic(outcomes: Floats) -> Floats:
        found = _keys(outcomes, edges)
        at = np.minimum(np.searchsorted(kinds, found), len(kinds) - 1)
        return np.asarray(np.where(kinds[at] == found, weights[at], 0.0))

    return statistic


def _tame(outcomes: Floats) -> Floats:
    return np.clip(np.nan_to_num(np.asarray(outcomes, dtype=np.float64)), -_LARGEST_VALUE, _LARGEST_VALUE)


def _edges(column: Floats) -> Floats:
    """Between which ends the kinds of outcomes in a column lie."""
    values, counts = np.unique(column, return_counts=True)
    if len(values) <= 1:
        return values[:0]
    if len(values) > _FEW_VALUES:
        # Values that many have are kinds of their own; the others are cut at quantiles.
        common = values[np.argsort(-counts, kind="stable")[: _FEW_VALUES // 2]]
        values = np.unique(np.concatenate([common, np.quantile(column, np.linspace(0.02, 0.98, _FEW_VALUES // 2))]))
    return np.asarray((values[1:] + values[:-1]) / 2)


def _keys(outcomes: Floats, edges: list[Floats]) -> NDArray[np.int64]:
    keys = np.zeros(len(outcomes), dtype=np.int64)
    for column, ends in zip(_tame(outcomes[:, :_FEW_COLUMNS]).T, edges, strict=True):
        keys = keys * (len(ends) + 1) + np.searchsorted(ends, column, side="right")
    return keys
