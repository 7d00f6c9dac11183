"""Structure: which columns to look at together, chosen one by one with the exponential mechanism.

A pair's score is how far it is from independence (given the target, where one is named): the L1 distance between its
table and what released numbers predict, a whole number of small steps. Every choice joins two parts of the graph, so
the pairs grow into a tree (Kruskal's order), and what was chosen is all that is released.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from spinney.counting.state_tables import GAP_STEPS, StateTables
from spinney.forest.prepaid import PrepaidMechanisms

Pair = tuple[int, int]
Clique = tuple[int, ...]


class Parts:
    """Which columns are joined already: disjoint sets, by number."""

    def __init__(self, n_columns: int) -> None:
        self.numbers = np.arange(n_columns)

    def join(self, pair: Pair) -> bool:
        """Join the parts of two columns; False if they were one."""
        first, second = self.numbers[list(pair)]
        self.numbers[self.numbers == second] = first
        return bool(first != second)


def choose_tree(
    rows: StateTables,
    columns: Sequence[int],
    shares: Sequence[NDArray[np.float64]],
    prepaid: PrepaidMechanisms,
    *,
    required: Sequence[Pair] = (),
    joined: Sequence[Pair] = (),
    by: int | None = None,
) -> list[Pair]:
    """Pairs that join all columns into a tree: the required ones, then one choice after the other.

    `shares` predicts pairs as `StateTables.true_gaps` says. Pairs that rules require come first and cost nothing.
    What is `joined` was counted together before, and is not among the pairs that are returned.
    """
    parts = Parts(len(rows.sizes))
    n_joined = sum(parts.join(pair) for pair in joined)
    chosen = [pair for pair in required if parts.join(pair)]
    n_open = len(columns) - 1 - n_joined - len(chosen)
    if n_open < 1:
        return chosen
    pairs = np.array(list(combinations(columns, 2)), dtype=np.int64)
    true_scores = rows.true_gaps(pairs, shares, by)
    # Another row in the place of one changes two cells of a table; one more or less changes one.
    sensitivity = GAP_STEPS * prepaid.plan.unit.factor
    for _ in range(n_open):
        still_open = np.flatnonzero(parts.numbers[pairs[:, 0]] != parts.numbers[pairs[:, 1]])
        pick = still_open[prepaid.choice(true_scores[still_open], sensitivity=sensitivity)]
        pair = (int(pairs[pick, 0]), int(pairs[pick, 1]))
        parts.join(pair)
        chosen.append(pair)
    return chosen


def pairs_of(cliques: Sequence[Clique], target: int | None = None) -> list[Pair]:
    """The pairs within cliques, each once, the target aside: it is counted with every column."""
    found = {
        (min(pair), max(pair)): None
        for clique in cliques
        for pair in combinations([column for column in clique if column != target], 2)
    }
    return list(found)


def n_choices(n_columns: int, n_open: int, required: Sequence[Pair]) -> int:
    """How many pairs join `n_open` of `n_columns` columns into a tree, besides those that join some already."""
    parts = Parts(n_columns)
    return max(0, n_open - 1 - sum(parts.join(pair) for pair in required))
