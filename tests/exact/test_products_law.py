"""How far one row moves the sums of products of all pairs: the bound of the proof against all pairs of rows.

Then the functions themselves, the exact sums against a loop over rows, and a zoo of sums that were not paid for.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, product

import numpy as np
import pytest

from spinney.forest.release.fit import n_sums, sensitivity_squared, signs
from spinney.forest.sums import _true_sums
from spinney.privacy.budget import Unit
from support.goodness_of_fit import ACCEPT, REJECT
from support.in_one_test import in_one_test
from support.sabotaged_forests import Check, Sabotage
from support.sabotaged_products import PRODUCT_CAGES
from support.slow_forests import rows_of

UNITS = pytest.mark.parametrize("unit", [Unit.REPLACE_ONE, Unit.ADD_REMOVE], ids=str)
ALL = None
# Groups of the columns, and pairs that are summed.
TABLES = [
    ((2, 2), ALL),
    ((2, 2, 2), ALL),
    ((4, 4, 4), ALL),
    ((8, 8), ALL),
    ((8, 8, 4), ALL),
    ((2, 2, 2, 2, 2, 2), ALL),
    ((3, 3, 3, 3), ALL),
    ((1, 2, 3, 4), ALL),
    ((5, 6, 8), ALL),
    ((6, 5, 2, 3), ALL),
    ((7, 2, 3), ALL),
    ((2, 3, 4, 5), [(0, 1), (2, 3)]),
    ((2, 3, 4, 5), [(0, 1), (1, 2), (2, 3)]),
    ((2, 2, 2, 2, 2), [(0, 1), (0, 2), (0, 3), (0, 4)]),
    ((3, 1, 4, 6), [(0, 3), (1, 3)]),
    ((4, 4, 2), []),
    ((1, 1), ALL),
]
# In these the bound is met exactly.
TIGHT = TABLES[:6]


def pairs_of(n_groups, pairs):
    return list(combinations(range(len(n_groups)), 2)) if pairs is None else pairs


def all_vectors(n_groups, pairs) -> np.ndarray:
    """What each possible row adds to the sums (n_rows, n_sums)."""
    rows = []
    for row in product(*map(range, n_groups)):
        values = [signs(size)[:, group] for size, group in zip(n_groups, row, strict=True)]
        rows.append(np.concatenate([np.zeros(0), *(np.kron(values[i], values[j]) for i, j in pairs)]))
    return np.array(rows)


def largest_move(vectors: np.ndarray, unit: Unit) -> float:
    norms = (vectors**2).sum(axis=1)
    if unit is Unit.ADD_REMOVE:
        return float(norms.max())
    return float((norms[:, None] + norms - 2 * vectors @ vectors.T).max())


@UNITS
@in_one_test(("n_groups", "pairs"), TABLES, ids=str)
def test_no_row_moves_the_sums_further_than_is_accounted_for(n_groups, pairs, unit):
    """Over all pairs of rows, in either unit; the bound is met where all is even, and never twice what is needed."""
    pairs = pairs_of(n_groups, pairs)
    stated = sensitivity_squared(n_groups, pairs, unit)
    moved = largest_move(all_vectors(n_groups, pairs), unit)
    assert type(stated) is int
    assert moved <= stated <= 2 * moved
    if unit is Unit.ADD_REMOVE:
        assert stated == moved == n_sums(n_groups, pairs)
    elif (n_groups, None) in TIGHT:
        assert stated == moved
    assert stated <= unit.factor**2 * n_sums(n_groups, pairs)


@UNITS
def test_random_tables_and_pairs_too(unit):
    """Hundreds of columns' groups and sets of pairs, drawn at random."""
    rng = np.random.default_rng(5)
    for _ in range(150):
        n_groups = rng.integers(1, 7, rng.integers(2, 5)).tolist()
        every = pairs_of(n_groups, None)
        pairs = [every[place] for place in np.flatnonzero(rng.random(len(every)) < 0.7)]
        moved = largest_move(all_vectors(n_groups, pairs), unit)
        assert moved <= sensitivity_squared(n_groups, pairs, unit) <= 2 * moved


@in_one_test("n_groups", [*range(1, 18), 31, 32, 33, 64])
def test_functions_are_signs_that_tell_groups_apart(n_groups):
    """One fewer than groups, of -1 and 1, independent together with the constant; nobody can change them."""
    lines = signs(n_groups)
    assert lines.shape == (n_groups - 1, n_groups)
    assert set(np.unique(lines)) <= {-1, 1}
    assert np.linalg.matrix_rank(np.vstack([np.ones(n_groups), lines])) == n_groups
    with pytest.raises(ValueError, match="read-only"):
        lines[...] = 0


@pytest.mark.parametrize("n_groups", [2, 4, 8, 16])
def test_functions_of_a_power_of_two_are_orthogonal(n_groups):
    """To each other and to the constant, so that none of the noise is wasted."""
    lines = np.vstack([np.ones(n_groups), signs(n_groups)])
    assert np.array_equal(lines @ lines.T, n_groups * np.eye(n_groups))


def test_sums_are_those_of_a_loop_over_rows():
    """With states that share groups, pairs left out, and columns of one group; one row or many."""
    rng = np.random.default_rng(2)
    sizes = (3, 5, 1, 4)
    groups = [np.array(of_column, dtype=np.uint8) for of_column in ([0, 1, 0], [2, 0, 1, 1, 2], [0], [3, 1, 0, 2])]
    pairs = [(0, 1), (0, 2), (1, 3)]
    for n_rows in (0, 1, 57):
        rows = [tuple(int(rng.integers(size)) for size in sizes) for _ in range(n_rows)]
        found = _true_sums(rows_of(rows, sizes), groups, pairs)
        for (i, j), table in zip(pairs, found, strict=True):
            first, second = signs(int(groups[i].max()) + 1), signs(int(groups[j].max()) + 1)
            slow = np.zeros((len(first), len(second)), dtype=np.int64)
            for row in rows:
                slow += np.outer(first[:, groups[i][row[i]]], second[:, groups[j][row[j]]])
            assert table.dtype == np.int64
            assert np.array_equal(table, slow)


# ------------------------------------------------------------------------------------------------------ zoo


@cache
def _of_the_real_one(check: Check) -> float:
    return check()


@pytest.mark.parametrize(("check", "sabotage"), PRODUCT_CAGES.values(), ids=PRODUCT_CAGES)
def test_sabotage_is_caught(check: Check, sabotage: Sabotage) -> None:
    """The check accepts the products and rejects the same code with one mistake in it."""
    assert _of_the_real_one(check) > ACCEPT
    with sabotage():
        assert check() < REJECT
