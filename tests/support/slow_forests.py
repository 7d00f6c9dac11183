"""Slow twins of what a forest counts: straight from the definitions, one row and one cell at a time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from spinney.counting.states import GAP_STEPS, StateRows
from spinney.privacy.budget import Unit

Row = tuple[int, ...]


def rows_of(rows: Sequence[Row], sizes: Sequence[int]) -> StateRows:
    """Rows of states, column by column as the engine holds them."""
    return StateRows(np.array(rows, dtype=np.uint8).reshape(len(rows), len(sizes)).T.copy(), tuple(sizes))


def slow_table(rows: Sequence[Row], clique: Sequence[int], sizes: Sequence[int]) -> NDArray[np.int64]:
    """How often states meet, by going through the rows."""
    counts = Counter(tuple(row[column] for column in clique) for row in rows)
    cells = product(*(range(sizes[column]) for column in clique))
    shape = [sizes[column] for column in clique]
    return np.array([counts[cell] for cell in cells], dtype=np.int64).reshape(shape)


def slow_gap(
    rows: Sequence[Row], pair: Row, shares: Sequence[NDArray[np.float64]], sizes: Sequence[int], by: int | None = None
) -> int:
    """The score of a pair of columns: |n - e| over all cells in whole steps, less what chance alone would show."""
    gap, by_chance = 0, 0.0
    first, second = pair
    for t, i, j in product(range(1 if by is None else sizes[by]), range(sizes[first]), range(sizes[second])):
        expected = shares[-1][t] * shares[first][t, i] * shares[second][t, j]
        here = sum(row[first] == i and row[second] == j and (by is None or row[by] == t) for row in rows)
        gap += abs(GAP_STEPS * here - round(GAP_STEPS * expected))
        by_chance += min(math.sqrt(2 / math.pi * expected), 2 * expected)
    return gap - round(GAP_STEPS * by_chance)


def slow_distance(
    rows: Sequence[Row], drawn: Sequence[Row], clique: Sequence[int], sizes: Sequence[int], total: float
) -> int:
    """|n - e| over all cells of a clique in whole steps, e being counts of drawn rows scaled to the total."""
    scale = total / len(drawn)
    true_table, model_table = slow_table(rows, clique, sizes), slow_table(drawn, clique, sizes)
    return sum(
        abs(GAP_STEPS * int(here) - round(GAP_STEPS * scale * int(there)))
        for here, there in zip(true_table.ravel(), model_table.ravel(), strict=True)
    )


def neighbouring_rows(rows: Sequence[Row], sizes: Sequence[int], unit: Unit) -> Iterator[list[Row]]:
    """All tables one row away: another row in the place of one, or one row fewer and one more."""
    cells = list(product(*map(range, sizes)))
    for place in range(len(rows)):
        rest = [*rows[:place], *rows[place + 1 :]]
        if unit is Unit.ADD_REMOVE:
            yield rest
        else:
            yield from ([*rest, cell] for cell in cells)
    if unit is Unit.ADD_REMOVE:
        yield from ([*rows, cell] for cell in cells)
