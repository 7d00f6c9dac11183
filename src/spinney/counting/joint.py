"""Tables of a few columns' states, many at once: what one pass over rows counts, as one vector of whole numbers.

The vector of a part of the rows is added to those of other parts, in any order, and the sum is that of all rows. So a
thread, a batch or a worker on another machine counts its own rows and hands in a vector, whose length depends on the
tables alone. Loops go through a few thousand rows at a time, table by table: rows and table stay in cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.counting.coarse import MOST_COARSE, CoarseTerms
from spinney.counting.merged_pairs import MergedPairs

Clique = tuple[int, ...]
Table = NDArray[np.int64]
Groups = Sequence[NDArray[np.uint8]]

# The number of what vectors hold, and in which order: another version of Spinney may have another.
LAYOUT = 1
# Rows that are counted into one table after the other.
_BLOCK = 1 << 13
# Pairs of fewer rows than this are counted one by one: they take no longer than sums of merged ones.
_MANY_ROWS = 1 << 15


class TableRequest:
    """Tables that are counted together, of all states of their columns or of groups of them. Public.

    Args:
        sizes: how many states each column has.
        cliques: the columns of each table.
        groups: for every column the group of each state, where tables are of groups; None: of states.
    """

    def __init__(self, sizes: Sequence[int], cliques: Iterable[Clique], groups: Groups | None = None) -> None:
        self.sizes, self.cliques, self.groups = tuple(sizes), tuple(cliques), groups

    def __getstate__(self) -> tuple[Any, ...]:
        return self.sizes, self.cliques, self.groups

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.sizes, self.cliques, self.groups = state

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """How many states, or groups, tables have of each column."""
        return self.sizes if self.groups is None else tuple(int(group.max()) + 1 for group in self.groups)

    @cached_property
    def _terms(self) -> CoarseTerms | None:
        """How tables of few groups are counted, which is bit by bit; None where there are too many groups."""
        is_coarse = self.groups is not None and max(self.widths) <= MOST_COARSE
        return CoarseTerms(self.widths, self.cliques) if is_coarse and self.cliques else None

    @cached_property
    def _offsets(self) -> NDArray[np.int64]:
        sizes = [math.prod(self.widths[column] for column in clique) for clique in self.cliques]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @cached_property
    def _merged(self) -> MergedPairs | None:
        """How many pairs are counted in fewer tables; None where that is not worth it."""
        if any(len(clique) != 2 for clique in self.cliques):
            return None
        merged = MergedPairs(self.widths, self.cliques, self._offsets)
        return merged if merged.is_worth_it else None

    @cached_property
    def n_numbers(self) -> int:
        """The length of the vector."""
        return int(self._offsets[-1]) if self._terms is None else self._terms.n_terms

    @property
    def plain_terms(self) -> tuple[list[list[int]] | None, list[int]]:
        """The terms of tables of few groups as plain numbers, None for others, and where columns' words begin."""
        return (None, []) if self._terms is None else self._terms.plain

    def add(self, states: NDArray[Any], sums: NDArray[np.int64]) -> None:
        """Add the counts of some rows (n_columns, n_rows) to a vector. SENSITIVE."""
        if not self.cliques or not states.shape[1]:
            return
        if self._terms is not None:
            assert self.groups is not None
            self._terms.add(states, self.groups, sums)
            return
        if self.groups is not None:
            states = group_rows(states, self.groups)
        places = list(range(len(self.cliques)))
        if self._merged is not None and _MANY_ROWS <= states.shape[1] < 2**31:
            self._merged.add(states, sums)
            places = self._merged.apart
        cliques = [self.cliques[place] for place in places]
        members = np.full((len(cliques), max(map(len, cliques), default=0)), -1, dtype=np.int64)
        for place, clique in enumerate(cliques):
            members[place, : len(clique)] = clique
        _add_tables(states, members, np.array(self.widths, dtype=np.int64), self._offsets[places], sums)

    def tables(self, sums: NDArray[np.int64]) -> Iterator[Table]:
        """The tables that a vector stands for, in the order of the cliques. SENSITIVE."""
        if self._terms is not None:
            yield from self._terms.tables(sums)
            return
        for clique, start, stop in zip(self.cliques, self._offsets[:-1], self._offsets[1:], strict=True):
            yield sums[start:stop].reshape(tuple(self.widths[column] for column in clique))


def group_rows(states: NDArray[Any], groups: Groups) -> NDArray[np.uint8]:
    """The group `groups[column][state]` of every state (n_columns, n_rows)."""
    coarse = np.empty(states.shape, dtype=np.uint8)
    for column, group in enumerate(groups):
        np.take(group, states[column], out=coarse[column])
    return coarse


def group_table(table: Table, clique: Clique, groups: Groups) -> Table:
    """A table of states as a table of groups."""
    for axis, column in enumerate(clique):
        group = groups[column]
        belongs = np.zeros((int(group.max()) + 1, len(group)), dtype=np.int64)
        belongs[group, np.arange(len(group))] = 1
        table = np.moveaxis(np.tensordot(belongs, table, axes=(1, axis)), 0, axis)
    return table


@compiled
def _add_tables(
    states: NDArray[Any],
    members: NDArray[np.int64],
    sizes: NDArray[np.int64],
    offsets: NDArray[np.int64],
    sums: NDArray[np.int64],
) -> None:
    cells = np.empty(_BLOCK, dtype=np.int64)
    for start in range(0, states.shape[1], _BLOCK):
        stop = min(start + _BLOCK, states.shape[1])
        for place in range(len(members)):
            counts = sums[offsets[place] :]
            is_pair = members.shape[1] > 1 and members[place, 1] >= 0
            if is_pair and (members.shape[1] == 2 or members[place, 2] < 0):
                first, second = states[members[place, 0]], states[members[place, 1]]
                step = np.uint64(sizes[members[place, 1]])
                for row in range(start, stop):  # numbers without a sign need no look whether they count from the end
                    counts[np.uint64(first[row]) * step + np.uint64(second[row])] += 1
                continue
            line = states[members[place, 0]]
            for row in range(start, stop):
                cells[row - start] = line[row]
            for k in range(1, members.shape[1]):
                column = members[place, k]
                if column < 0:
                    break
                line, step = states[column], sizes[column]
                for row in range(start, stop):
                    cells[row - start] = cells[row - start] * step + line[row]
            for row in range(stop - start):
                counts[np.uint64(cells[row])] += 1
