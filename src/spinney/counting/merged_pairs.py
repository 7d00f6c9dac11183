"""Tables of many pairs of columns, counted by way of merged columns: fewer tables for the same numbers.

Columns of few states are merged into one whose states are their combinations, 64 at most. The table of two merged
columns, which stays in cache, holds those of all pairs of their members as sums; so four flags and a list of ten take
one table with each other column in place of five. Sums of whole numbers are exact in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled

# Rows whose merged states are made, and counted into one table after the other.
_BLOCK = 1 << 13
# States of a merged column at most: a table of two has 16 KiB.
_MOST_STATES = 64
# Merging is worth it where it leaves no more than this part of the tables.
_WORTH = 0.85


class MergedPairs:
    """How pairs of columns are counted together. Public.

    Args:
        sizes: how many states each column has.
        pairs: the columns of each table.
        offsets: where in the vector of all tables each begins.
    """

    def __init__(self, sizes: Sequence[int], pairs: Sequence[tuple[int, ...]], offsets: NDArray[np.int64]) -> None:
        groups = _groups(sizes, sorted({column for pair in pairs for column in pair}))
        group_of = {column: place for place, group in enumerate(groups) for column in group}
        # A pair within a merged column is a table of its own.
        self.apart = [place for place, (first, second) in enumerate(pairs) if group_of[first] == group_of[second]]
        ends = [(group_of[first], group_of[second]) for first, second in pairs]
        tables = sorted({tuple(sorted(end)) for end in ends if end[0] != end[1]})
        self.n_tables = len(tables) + len(self.apart)
        self.is_worth_it = self.n_tables <= _WORTH * len(pairs)
        widths = np.array([int(np.prod([sizes[column] for column in group])) for group in groups], dtype=np.int64)
        self._n_groups, self._widths = len(groups), widths
        self._members = np.array([column for group in groups for column in group], dtype=np.int64)
        self._starts = np.cumsum([0, *map(len, groups)])
        self._sizes = np.array(sizes, dtype=np.int64)
        self._tables = np.array(tables, dtype=np.int64).reshape(-1, 2)
        self._begins = np.concatenate([[0], np.cumsum(widths[self._tables].prod(axis=1))]).astype(np.int64)
        strides = {column: stride for group in groups for column, stride in _strides(group, sizes).items()}
        number = {table: place for place, table in enumerate(tables)}
        self._parts = np.array(
            [
                # Table, whether it is turned, stride and size of both columns in their merged ones, and where it goes.
                (number[(min(a, b), max(a, b))], a > b, strides[i], sizes[i], strides[j], sizes[j], offset)
                for (a, b), (i, j), offset in zip(ends, pairs, offsets, strict=False)
                if a != b
            ],
            dtype=np.int64,
        ).reshape(-1, 7)

    def add(self, states: NDArray[Any], sums: NDArray[np.int64]) -> None:
        """Add the counts of some rows, fewer than 2^31, to all tables but those apart. SENSITIVE."""
        merged = np.empty((self._n_groups, _BLOCK), dtype=states.dtype)
        counts = np.zeros(int(self._begins[-1]), dtype=np.int32)
        _count(
            states, self._members, self._starts, self._sizes, merged, self._tables, self._widths, self._begins, counts
        )
        _add_parts(counts, self._begins, self._tables, self._widths, self._parts, sums)


def _groups(sizes: Sequence[int], columns: Sequence[int]) -> list[list[int]]:
    """Columns that are merged: the largest first, each with those that it fills up best."""
    groups: list[list[int]] = []
    widths: list[int] = []
    for column in sorted(columns, key=lambda column: (-sizes[column], column)):
        fitting = [place for place, width in enumerate(widths) if width * sizes[column] <= _MOST_STATES]
        if fitting:
            place = max(fitting, key=widths.__getitem__)
            groups[place].append(column)
            widths[place] *= sizes[column]
        else:
            groups.append([column])
            widths.append(sizes[column])
    return groups


def _strides(group: Sequence[int], sizes: Sequence[int]) -> dict[int, int]:
    """By how much a state of each column moves the merged state; the last column's moves it by 1."""
    strides, stride = {}, 1
    for column in reversed(group):
        strides[column] = stride
        stride *= sizes[column]
    return strides


@compiled
def _count(
    states: NDArray[Any],
    members: NDArray[np.int64],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    merged: NDArray[Any],
    tables: NDArray[np.int64],
    widths: NDArray[np.int64],
    begins: NDArray[np.int64],
    counts: NDArray[np.int32],
) -> None:
    for start in range(0, states.shape[1], _BLOCK):
        n_here = min(_BLOCK, states.shape[1] - start)
        for group in range(merged.shape[0]):
            line, column = merged[group], states[members[starts[group]]]
            for row in range(n_here):
                line[row] = column[start + row]
            for place in range(starts[group] + 1, starts[group + 1]):
                column, size = states[members[place]], sizes[members[place]]
                for row in range(n_here):
                    line[row] = line[row] * size + column[start + row]
        for table in range(tables.shape[0]):
            first, second = merged[tables[table, 0]], merged[tables[table, 1]]
            step = np.uint64(widths[tables[table, 1]])
            here = counts[begins[table] : begins[table + 1]]
            for row in range(n_here):
                here[np.uint64(first[row]) * step + np.uint64(second[row])] += 1


@compiled
def _add_parts(
    counts: NDArray[np.int32],
    begins: NDArray[np.int64],
    tables: NDArray[np.int64],
    widths: NDArray[np.int64],
    parts: NDArray[np.int64],
    sums: NDArray[np.int64],
) -> None:
    for k in range(parts.shape[0]):
        table, is_turned, first_stride, first_size, second_stride, second_size, offset = parts[k]
        n_first, n_second = widths[tables[table, 0]], widths[tables[table, 1]]
        for a in range(n_first):
            for b in range(n_second):
                own, other = (b, a) if is_turned else (a, b)
                place = own // first_stride % first_size * second_size + other // second_stride % second_size
                sums[offset + place] += counts[begins[table] + a * n_second + b]
