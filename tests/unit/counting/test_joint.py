"""Tables of several columns, many at once: against a count row by row."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from spinney.counting.joint import TableRequest, group_rows, group_table
from spinney.counting.states import StateRows
from support.in_one_test import in_one_test
from support.slow_forests import slow_table

SIZES = (3, 17, 1, 6, 2, 9)


def some_states(n_rows: int, *, seed: int = 0, dtype: type = np.uint8) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.array([rng.integers(0, size, n_rows) for size in SIZES], dtype=dtype)


def some_groups(most: int) -> list[np.ndarray]:
    return [(np.arange(size) * 7 % min(size, most)).astype(np.uint8) for size in SIZES]


def counted(request: TableRequest, *parts: np.ndarray) -> list[np.ndarray]:
    sums = np.zeros(request.n_numbers, dtype=np.int64)
    for part in parts:
        request.add(np.ascontiguousarray(part), sums)
    return list(request.tables(sums))


@in_one_test("n_rows", [0, 1, 63, 64, 65, 1_000, 9_000])
@in_one_test("dtype", [np.uint8, np.uint16, np.int32])
def test_tables_are_those_of_a_count_row_by_row(n_rows, dtype):
    """Of one to five columns, of all states; of one and two alone too, which are counted in another way."""
    states = some_states(n_rows, dtype=dtype)
    cliques = [(0,), (1, 3), (0, 2, 4), (1, 3, 4, 5), (0, 1, 2, 3, 4), (5, 1)]
    rows = [tuple(row) for row in states.T.tolist()]
    for some in (cliques, [(0,), (1, 3), (5,)], [(4,), (1,)]):
        for clique, table in zip(some, counted(TableRequest(SIZES, some), states), strict=True):
            assert np.array_equal(table, slow_table(rows, clique, SIZES))


@in_one_test("n_rows", [0, 1, 64, 100, 5_000])
@in_one_test("most", [1, 2, 3, 4, 8])
def test_tables_of_groups_are_those_of_grouped_rows(n_rows, most):
    """Few groups are counted bit by bit, more of them row by row; a kept table of states says the same."""
    states, groups = some_states(n_rows), some_groups(most)
    widths = [int(group.max()) + 1 for group in groups]
    cliques = [*combinations(range(6), 2), *combinations(range(6), 3), (0, 1, 3, 5), (0, 1, 2, 4, 5)]
    rows = [tuple(row) for row in group_rows(states, groups).T.tolist()]
    whole = counted(TableRequest(SIZES, cliques), states)
    found = counted(TableRequest(SIZES, cliques, groups), states)
    for clique, table, of_states in zip(cliques, found, whole, strict=True):
        expected = slow_table(rows, clique, widths)
        assert np.array_equal(table, expected)
        assert np.array_equal(group_table(of_states, clique, groups), expected)


@pytest.mark.parametrize("most", [None, 2, 4, 16])
def test_vectors_of_parts_add_up(most):
    """Whatever the parts, and in whatever order they come: repeated or lost work is a matter of parts alone."""
    states, groups = some_states(3_000), None if most is None else some_groups(most)
    request = TableRequest(SIZES, list(combinations(range(6), 3)), groups)
    parts = [states[:, :1_000], states[:, 1_000:1_001], states[:, 1_001:1_001], states[:, 1_001:]]
    for one, other in zip(counted(request, states), counted(request, *parts[::-1]), strict=True):
        assert np.array_equal(one, other)


def test_rows_that_are_held_count_a_pair_once():
    """What was asked for before is kept, and is the same."""
    rows = StateRows(some_states(2_000), SIZES)
    first = rows.true_table((1, 3))
    rows.true_states[:] = 0
    assert np.array_equal(rows.true_table((1, 3)), first)
    assert np.array_equal(rows.true_table((3, 1)), first.T)
    assert rows.true_table((0, 1, 3))[0, 0, 0] == 2_000  # of three columns: counted anew
    with pytest.raises(ValueError, match="read-only"):
        rows.true_table((1, 3))[0, 0] = 1


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_pairs_of_many_rows_are_those_of_a_count_row_by_row(dtype):
    """Small columns are merged, and pairs within a merged one, and pairs in either order, are right too."""
    sizes = (2, 3, 2, 5, 10, 1, 33, 64, 65, 4)
    rng = np.random.default_rng(4)
    states = np.array([rng.integers(0, size, 40_000) for size in sizes], dtype=dtype)
    pairs = [(j, i) if (i + j) % 3 == 0 else (i, j) for i, j in combinations(range(len(sizes)), 2)]
    request = TableRequest(sizes, pairs)
    assert request._merged is not None
    assert request._merged.apart
    assert request._merged.n_tables < 0.7 * len(pairs)
    for (i, j), table in zip(pairs, counted(request, states[:, :35_000], states[:, 35_000:]), strict=True):
        expected = np.bincount(states[i].astype(np.int64) * sizes[j] + states[j], minlength=sizes[i] * sizes[j])
        assert np.array_equal(table.ravel(), expected)


def test_large_columns_are_not_merged():
    assert TableRequest((40, 50, 60), [(0, 1), (0, 2), (1, 2)])._merged is None
    assert TableRequest((2, 2, 2), [(0, 1), (0, 1, 2)])._merged is None
