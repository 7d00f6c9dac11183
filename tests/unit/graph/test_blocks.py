"""Blocks of columns: what they add up is what slow loops over pairs and rows do."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from spinney.graph.tilt import Blocks
from support.in_one_test import in_one_test


@in_one_test("n_groups", [(3,), (2, 2), (2, 3, 4, 5, 2), (16, 16, 2, 64), (4,) * 12, (1, 5, 1)])
@in_one_test("n_rows", [0, 1, 4, 7, 3001])
def test_scores_and_sums_are_those_of_slow_loops(n_groups, n_rows) -> None:
    """For any numbers of groups, and some pairs left out, factors and weights add up as they do one by one."""
    rng = np.random.default_rng(len(n_groups))
    rows = np.stack([rng.integers(0, number, n_rows) for number in n_groups]).astype(np.uint8)
    pairs = [pair for pair in combinations(range(len(n_groups)), 2) if sum(pair) % 5]
    width = max(n_groups)
    singles, tables = rng.normal(size=(len(n_groups), width)), rng.normal(size=(len(pairs), width, width))
    weights = rng.random(n_rows)
    blocks = Blocks(rows, n_groups, pairs)

    scores = np.zeros(n_rows)
    single_sums, sums = np.zeros_like(singles), np.zeros_like(tables)
    for column, line in enumerate(rows):
        scores += singles[column][line]
        np.add.at(single_sums[column], line, weights)
    for place, (i, j) in enumerate(pairs):
        scores += tables[place][rows[i], rows[j]]
        np.add.at(sums[place], (rows[i], rows[j]), weights)
    np.testing.assert_allclose(blocks.scores(singles, tables), scores, atol=1e-10)
    found_singles, found = blocks.sums(weights, width)
    np.testing.assert_allclose(found_singles, single_sums, atol=1e-10)
    np.testing.assert_allclose(found, sums, atol=1e-10)


def test_nothing_depends_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many looks are shared out among threads, to the last digit with the same answer."""
    rng = np.random.default_rng(1)
    n_groups = (4,) * 15
    pairs = list(combinations(range(15), 2))
    rows = rng.integers(0, 4, (15, 120_000)).astype(np.uint8)
    singles, tables, weights = rng.normal(size=(15, 4)), rng.normal(size=(105, 4, 4)), rng.random(120_000)
    found = []
    for n_threads in ("1", "3"):
        monkeypatch.setenv("SPINNEY_THREADS", n_threads)
        blocks = Blocks(rows, n_groups, pairs)
        found.append((blocks.scores(singles, tables), *blocks.sums(weights, 4)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
