"""Signs: functions of a column's groups with values -1 and 1, and how far one row can move the sums of their products.

The functions of a column are rows of a Hadamard matrix, as far as its groups go; with the constant they tell the groups
apart, and there is one fewer than there are groups. A pair of columns has a sum, over all rows, for every product of a
function of one and a function of the other. Everything here is public.

A row adds -1 or 1 to each of F sums, so one row more or less moves them by sqrt(F). Another row in the place of one
moves the sums of a pair by less than twice that: proof in `products.proof.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from spinney.privacy.budget import Unit

Signs = NDArray[np.int64]
Pair = tuple[int, int]

# Tables with more pairs of columns have no products: fitting them takes too long.
MOST_PAIRS = 5_000


@lru_cache(maxsize=256)
def signs(n_groups: int) -> Signs:
    """Functions of so many groups (n_groups - 1, n_groups), linearly independent together with the constant."""
    matrix: Signs = np.ones((1, 1), dtype=np.int64)
    while len(matrix) < n_groups:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    lines = matrix[:, :n_groups]
    chosen = [lines[0]]
    for line in lines[1:]:
        if np.linalg.matrix_rank(np.stack([*chosen, line])) > len(chosen):
            chosen.append(line)
        if len(chosen) == n_groups:
            break
    found = np.stack(chosen)[1:].reshape(n_groups - 1, n_groups)
    found.flags.writeable = False
    return found


def n_sums(n_groups: Sequence[int], pairs: Sequence[Pair]) -> int:
    """How many sums the pairs have."""
    return sum((n_groups[i] - 1) * (n_groups[j] - 1) for i, j in pairs)


def sensitivity_squared(n_groups: Sequence[int], pairs: Sequence[Pair], unit: Unit) -> int:
    """The most that one person's row can move all sums of these pairs, as the square of the Euclidean distance."""
    if unit.of_rows is Unit.ADD_REMOVE:
        return n_sums(n_groups, pairs)
    moves = [_moves(n_groups[i], n_groups[j]) for i, j in pairs]
    n_columns = len({column for pair in pairs for column in pair})
    # In how many pairs can one column be the same and the other not: those between two sets of columns.
    n_parted = min(len(pairs), n_columns**2 // 4)
    extra = sorted((max(0, one - both) for one, both in moves), reverse=True)
    return sum(both for _, both in moves) + sum(extra[:n_parted])


@lru_cache(maxsize=1024)
def _moves(n_first: int, n_second: int) -> tuple[int, int]:
    """How far another row moves the sums of a pair, squared: if one of its groups is another, and if both are."""
    alike = (n_first - 1, n_second - 1)
    unlike = (_least_product(n_first), _least_product(n_second))
    most = _most_product(n_first), _most_product(n_second)
    n_both = alike[0] * alike[1]
    one = 2 * n_both - 2 * min(unlike[0] * alike[1], alike[0] * unlike[1])
    both = 2 * n_both - 2 * min(unlike[0] * unlike[1], unlike[0] * most[1], most[0] * unlike[1], most[0] * most[1])
    return one, both


@lru_cache(maxsize=256)
def _products(n_groups: int) -> Signs:
    """For two different groups, the sum over functions of the products of their values; 0 where there is one group."""
    if n_groups == 1:
        return np.zeros(1, dtype=np.int64)
    lines = signs(n_groups)
    table = lines.T @ lines
    return np.asarray(table[~np.eye(n_groups, dtype=bool)])


def _least_product(n_groups: int) -> int:
    return int(_products(n_groups).min())


def _most_product(n_groups: int) -> int:
    return int(_products(n_groups).max())
