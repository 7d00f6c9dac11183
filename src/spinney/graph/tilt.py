"""Tilt: a law of all columns, weighted by small factors on pairs of them.

A junction tree holds few pairs of columns exactly. A tilt says of all the others how much more or less common a
combination is than the tree has it, coarsely: the states of a column fall into a few groups, and a pair of columns has
a table of log-factors with one cell for two groups.

    q(x)  proportional to  p(x) min(exp(sum of factors at x - log_mean), MOST_WEIGHT)

No tree holds q, and none need to: rows are drawn from p and taken by their weight (`draw_tilted`). Weights are capped,
or a few rows that p hardly ever draws would stand for many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled_loosely
from spinney.errors import ParameterError
from spinney.parallel import by_slices

Floats = NDArray[np.float64]
Groups = NDArray[np.uint8]
Pair = tuple[int, int]

# No row weighs more than this many times the mean.
MOST_WEIGHT = 20.0
# A column has no more groups than this.
MOST_GROUPS = 64

# Rows that stay near the processor while all pairs look at them.
_BLOCK = 1 << 11


@dataclass(frozen=True, eq=False)
class Tilt:
    """Groups of every column's states, log-factors of single states, and of pairs of groups."""

    groups: tuple[Groups, ...]  # for each column, the group of every state
    singles: tuple[Floats, ...]  # for each column, a log-factor of every state
    pairs: tuple[Pair, ...]  # ascending columns
    tables: tuple[Floats, ...]  # for each pair, log-factors (n_groups of the first, n_groups of the second)
    log_mean: float  # of all rows' weights under p

    def __post_init__(self) -> None:
        sizes = self.n_groups
        shapes = [(sizes[i], sizes[j]) for i, j in self.pairs]
        if [table.shape for table in self.tables] != shapes:
            raise ParameterError("a tilt has one table for each pair, of the groups of its columns")
        if [len(factors) for factors in self.singles] != [len(group) for group in self.groups]:
            raise ParameterError("a tilt has one factor for each state of a column")
        if not np.isfinite(self.log_mean + sum(float(np.abs(t).sum()) for t in (*self.tables, *self.singles))):
            raise ParameterError("the factors of a tilt must be finite numbers")

    @property
    def n_groups(self) -> tuple[int, ...]:
        return tuple(int(group.max()) + 1 for group in self.groups)

    def grouped(self, states: NDArray[np.int32]) -> Groups:
        """The groups of rows' states (n_columns, n_rows)."""
        return np.stack([group[line] for group, line in zip(self.groups, states, strict=True)])

    def log_weights(self, states: NDArray[np.int32]) -> Floats:
        """Log-weights of rows (n_rows,): 0 where a row is as common as the tree has it, capped."""
        found = pair_scores(self.grouped(states), self.pairs, padded(self.tables)) - self.log_mean
        for factors, line in zip(self.singles, states, strict=True):
            found += factors[line]
        return np.minimum(found, np.log(MOST_WEIGHT))

    def weights(self, states: NDArray[np.int32]) -> Floats:
        """Weights of rows, adding up to 1."""
        logs = self.log_weights(states)
        found = np.exp(logs - logs.max(initial=-np.inf))  # the likeliest row has a weight, however far all are out
        return np.asarray(found / found.sum())


def padded(tables: Sequence[Floats]) -> Floats:
    """Tables of different shapes as one array, zero where they have no cell."""
    rows, columns = (max((table.shape[axis] for table in tables), default=1) for axis in (0, 1))
    whole = np.zeros((len(tables), rows, columns))
    for place, table in enumerate(tables):
        whole[place, : table.shape[0], : table.shape[1]] = table
    return whole


def pair_scores(groups: Groups, pairs: Sequence[Pair], tables: Floats) -> Floats:
    """For every row the sum of its pairs' entries (n_rows,)."""
    scores = np.zeros(groups.shape[1])
    numbers = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    by_slices(lambda part: _score(groups[:, part], numbers, tables, scores[part]), groups.shape[1])
    return scores


@compiled_loosely
def _score(groups: Groups, pairs: NDArray[np.int64], tables: Floats, scores: Floats) -> None:
    for start in range(0, scores.size, _BLOCK):
        stop = min(start + _BLOCK, scores.size)
        here = scores[start:stop]
        for place in range(len(pairs)):
            first, second = groups[pairs[place, 0], start:stop], groups[pairs[place, 1], start:stop]
            table = tables[place]
            for row in range(here.size):
                here[row] += table[first[row], second[row]]
