"""Goodness of fit with two thresholds: a right law must be accepted, and a wrong one rejected beyond doubt.

Seeds are fixed, so an accepted test stays accepted. Between the two thresholds lies no-man's-land: a test whose
p-value falls there has too little power or a doubtful law, and fails either way.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

ACCEPT = 1e-3
REJECT = 1e-9
# The chi-square approximation needs this many expected cases per cell; rarer outputs are pooled.
_EXPECTED = 8


def p_value(observed: Mapping[Hashable, int], chances: Mapping[Hashable, float]) -> float:
    """Chi-square p-value of outcomes against a complete law; 0 where something impossible was seen."""
    if abs(sum(chances.values()) - 1) > 1e-9:
        raise ValueError("the chances do not add up to 1")
    if any(n_seen and not chances.get(outcome) for outcome, n_seen in observed.items()):
        return 0.0
    n = sum(observed.values())
    expected = np.array([n * p for p in chances.values()])
    seen = np.array([observed.get(outcome, 0) for outcome in chances], dtype=float)
    is_rare = expected < _EXPECTED
    if is_rare.any():
        expected = np.append(expected[~is_rare], expected[is_rare].sum())
        seen = np.append(seen[~is_rare], seen[is_rare].sum())
    if expected[-1] < _EXPECTED:  # the pool itself may be too small to stand alone
        smallest = int(np.argmin(expected[:-1]))
        expected[smallest] += expected[-1]
        seen[smallest] += seen[-1]
        expected, seen = expected[:-1], seen[:-1]
    return float(stats.chisquare(seen, expected * seen.sum() / expected.sum()).pvalue)


def p_value_of_two(first: Mapping[Any, int], second: Mapping[Any, int]) -> float:
    """Chi-square p-value for two samples of one law; outcomes are ordered and neighbours pooled."""
    outcomes = sorted(first.keys() | second.keys())
    cells: list[list[int]] = [[0, 0]]
    for outcome in outcomes:
        if sum(cells[-1]) >= 4 * _EXPECTED:
            cells.append([0, 0])
        cells[-1][0] += first.get(outcome, 0)
        cells[-1][1] += second.get(outcome, 0)
    if len(cells) > 1 and sum(cells[-1]) < 4 * _EXPECTED:
        last = cells.pop()
        cells[-1] = [cells[-1][0] + last[0], cells[-1][1] + last[1]]
    if len(cells) == 1:
        raise ValueError("all outcomes fall into one cell; the test has no power")
    return float(stats.chi2_contingency(np.array(cells).T).pvalue)


def quantile_cells(scale: float, *, two_sided: bool, n_cells: int = 40) -> NDArray[np.int64]:
    """Whole-number edges that cut a (two-sided) geometric law into cells of similar chance, numbers near 0 apart."""
    levels = np.arange(1, n_cells) / n_cells
    upper = -np.log(1 - levels) * scale
    edges = np.concatenate([np.round(upper[upper >= 1]).astype(np.int64), np.arange(1, 5)])
    return np.unique(np.concatenate([1 - edges, edges]) if two_sided else edges)


def p_value_of_noise(draws: NDArray[np.int64], scale: float, *, two_sided: bool = True) -> float:
    """p-value of draws against the discrete Laplace (or geometric) law of a scale, in cells made for that scale."""
    edges = quantile_cells(scale, two_sided=two_sided)
    a = np.exp(-1 / scale)
    if two_sided:  # P(X < e)
        upper, lower = np.exp(-np.maximum(edges, 1) / scale), np.exp((np.minimum(edges, 0) - 1) / scale)
        below = np.where(edges >= 1, 1 - upper / (1 + a), lower / (1 + a))
    else:
        below = -np.expm1(-edges / scale)
    chances = np.diff(np.concatenate([[0.0], below, [1.0]]))
    seen = np.bincount(np.searchsorted(edges, draws, side="right"), minlength=len(edges) + 1)
    return p_value(dict(enumerate(seen.tolist())), dict(enumerate(chances.tolist())))
