"""Blocks: all pairs of columns looked at a few columns at a time.

A fit of products asks again and again for sums over pairs: for every row the sum of its pairs' factors, and for every
pair how much the rows of each two groups weigh. With k columns that is k²/2 looks at every row. So neighbouring columns
are joined into blocks, whose groups together are one small number: factors of all pairs of columns in two blocks are
one table with a cell for two such numbers, and a row looks at one cell of it. Weights are added up in such tables, too,
and then for every pair in them. With four groups a column, three columns make a block, and a row is looked at nine
times less often.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled_loosely
from spinney.graph.tilt import Floats, Groups, Pair
from spinney.parallel import by_slices, each, n_threads

_Numbers = NDArray[np.int64]

# What a block's number may be below: tables of two blocks have to stay next to the processor.
_LIMITS = (8, 16, 32, 64)
# A cell of a table takes, for each column, as much time as so many looks at a row.
_LOOKS_PER_CELL = 4.0
# Rows that stay near the processor while all blocks look at them.
_BLOCK = 1 << 11
# Fewer looks than this take less time than threads do to start.
_FEW_LOOKS = 1 << 20


class Blocks:
    """Rows of groups (n_columns, n_rows) whose columns are joined into blocks."""

    def __init__(self, groups: Groups, n_groups: Sequence[int], pairs: Sequence[Pair]) -> None:
        self._n_groups = np.array(n_groups, dtype=np.int64)
        # Block b has columns starts[b]..starts[b+1]. There are two at least: one of no columns has the number 0 alone.
        self._starts = _best_starts(self._n_groups, groups.shape[1])
        n_blocks = len(self._starts) - 1
        bounds = list(pairwise(self._starts))
        self._sizes = np.array([np.prod(self._n_groups[low:high]) for low, high in bounds], dtype=np.int64)
        self._codes = np.zeros((n_blocks, groups.shape[1]), dtype=np.uint8)
        for block, (low, high) in enumerate(bounds):
            for column in range(low, high):
                self._codes[block] = self._codes[block] * np.uint8(self._n_groups[column]) + groups[column]
        self._digits = _digits(self._n_groups, self._starts, self._sizes)
        self._pairs = np.array(list(combinations(range(n_blocks), 2)), dtype=np.int64)
        n_cells = self._sizes[self._pairs].prod(axis=1)
        self._cells = np.concatenate([[0], np.cumsum(n_cells)])
        self._numbers = np.full((len(n_groups), len(n_groups)), -1, dtype=np.int64)
        for number, (i, j) in enumerate(pairs):
            self._numbers[i, j] = number
        self._n_pairs = len(pairs)

    def scores(self, singles: Floats, tables: Floats) -> Floats:
        """For every row the sum of its columns' factors and of its pairs' (n_rows,).

        `singles` are (n_columns, most groups), `tables` (n_pairs, most groups, most groups).
        """
        whole = np.empty(self._cells[-1])
        _fill_tables(whole, self._cells, self._pairs, self._starts, self._sizes, self._digits, self._numbers, tables)
        _add_inner(whole, self._cells, self._starts, self._sizes, self._digits, self._numbers, tables, singles)
        scores = np.zeros(self._codes.shape[1])

        def score(part: slice) -> None:
            _score(self._codes[:, part], self._pairs, self._sizes, self._cells, whole, scores[part])

        if self._is_little:
            score(slice(0, scores.size))
        else:
            by_slices(score, scores.size)
        return scores

    def sums(self, weights: Floats, width: int) -> tuple[Floats, Floats]:
        """How much rows weigh: of each group (n_columns, width), and of each two of a pair (n_pairs, width, width)."""
        whole = np.empty(self._cells[-1])

        def add(start: int, stop: int) -> None:
            _add_up(self._codes, self._pairs[start:stop], self._sizes, self._cells[start : stop + 1], weights, whole)

        n_pairs = len(self._pairs)
        if self._is_little:
            add(0, n_pairs)
        else:
            n_parts = min(n_pairs, 8 * n_threads())
            cuts = [n_pairs * part // n_parts for part in range(n_parts + 1)]
            each(add, cuts[:-1], cuts[1:])
        singles = np.zeros((len(self._n_groups), width))
        sums = np.zeros((self._n_pairs, width, width))
        _share_out(whole, self._cells, self._pairs, self._starts, self._sizes, self._digits, self._numbers, sums)
        _share_inner(whole, self._cells, self._starts, self._sizes, self._digits, self._numbers, sums, singles)
        return singles, sums

    @property
    def _is_little(self) -> bool:
        return self._codes.shape[1] * len(self._pairs) < _FEW_LOOKS or n_threads() == 1


def _best_starts(n_groups: _Numbers, n_rows: int) -> _Numbers:
    """Where blocks begin, for the least work: looks at rows, and cells of tables."""

    def work(starts: _Numbers) -> float:
        sizes = [int(np.prod(n_groups[low:high])) for low, high in pairwise(starts)]
        n_columns = np.diff(starts)
        pairs = combinations(range(len(sizes)), 2)
        return sum(n_rows + _LOOKS_PER_CELL * sizes[i] * sizes[j] * int(n_columns[j]) for i, j in pairs)

    return min((_starts(n_groups, limit) for limit in _LIMITS), key=work)


def _starts(n_groups: _Numbers, limit: int) -> _Numbers:
    """Blocks of neighbours, as many in each as the limit allows."""
    starts, size = [0], 1
    for column, number in enumerate(n_groups.tolist()):
        if size * number > limit and column > starts[-1]:
            starts.append(column)
            size = 1
        size *= number
    starts.append(len(n_groups))
    if len(starts) == 2:
        starts.append(len(n_groups))
    return np.array(starts, dtype=np.int64)


def _digits(n_groups: _Numbers, starts: _Numbers, sizes: _Numbers) -> Groups:
    """For each column the group that every number of its block stands for (n_columns, largest size)."""
    digits = np.zeros((len(n_groups), int(sizes.max())), dtype=np.uint8)
    for block, size in enumerate(sizes):
        rest = np.arange(size)
        for column in range(starts[block + 1] - 1, starts[block] - 1, -1):
            digits[column, :size] = rest % n_groups[column]
            rest //= n_groups[column]
    return digits


@compiled_loosely
def _score(codes: Groups, pairs: _Numbers, sizes: _Numbers, cells: _Numbers, whole: Floats, scores: Floats) -> None:
    for start in range(0, scores.size, _BLOCK):
        stop = min(start + _BLOCK, scores.size)
        here = scores[start:stop]
        for place in range(len(pairs)):
            first, second = codes[pairs[place, 0], start:stop], codes[pairs[place, 1], start:stop]
            table, step = whole[cells[place] : cells[place + 1]], sizes[pairs[place, 1]]
            for row in range(here.size):
                here[row] += table[first[row] * step + second[row]]


@compiled_loosely
def _add_up(codes: Groups, pairs: _Numbers, sizes: _Numbers, cells: _Numbers, weights: Floats, whole: Floats) -> None:
    # Four sums at a time: a row need not wait for the one before it, though both are often in one cell.
    spare = np.empty((4, (cells[1:] - cells[:-1]).max()))
    for place in range(len(pairs)):
        first, second, step = codes[pairs[place, 0]], codes[pairs[place, 1]], sizes[pairs[place, 1]]
        table = whole[cells[place] : cells[place + 1]]
        parts = spare[:, : table.size]
        parts[:] = 0.0
        n_fours = weights.size // 4
        for row in range(0, 4 * n_fours, 4):
            parts[0, first[row] * step + second[row]] += weights[row]
            parts[1, first[row + 1] * step + second[row + 1]] += weights[row + 1]
            parts[2, first[row + 2] * step + second[row + 2]] += weights[row + 2]
            parts[3, first[row + 3] * step + second[row + 3]] += weights[row + 3]
        for row in range(4 * n_fours, weights.size):
            parts[0, first[row] * step + second[row]] += weights[row]
        for cell in range(table.size):
            table[cell] = parts[0, cell] + parts[1, cell] + parts[2, cell] + parts[3, cell]


@compiled_loosely
def _fill_tables(
    whole: Floats,
    cells: _Numbers,
    pairs: _Numbers,
    starts: _Numbers,
    sizes: _Numbers,
    digits: Groups,
    numbers: _Numbers,
    tables: Floats,
) -> None:
    """Write, for every two blocks, the sums of their columns' factors."""
    width = tables.shape[2]
    line = np.empty(width)
    for place in range(len(pairs)):
        a, b = pairs[place]
        size = sizes[b]
        for code in range(sizes[a]):
            here = whole[cells[place] + code * size : cells[place] + (code + 1) * size]
            here[:] = 0.0
            for j in range(starts[b], starts[b + 1]):
                line[:] = 0.0
                for i in range(starts[a], starts[a + 1]):
                    if numbers[i, j] >= 0:
                        line += tables[numbers[i, j], digits[i, code]]
                for other in range(size):
                    here[other] += line[digits[j, other]]


@compiled_loosely
def _add_inner(
    whole: Floats,
    cells: _Numbers,
    starts: _Numbers,
    sizes: _Numbers,
    digits: Groups,
    numbers: _Numbers,
    tables: Floats,
    singles: Floats,
) -> None:
    """Add what a block holds alone, columns and pairs: in its table with the next one, or the last with the first."""
    n_blocks = len(sizes)
    place = 0
    for a in range(n_blocks):
        for code in range(sizes[a]):
            inner = 0.0
            for i in range(starts[a], starts[a + 1]):
                inner += singles[i, digits[i, code]]
                for j in range(i + 1, starts[a + 1]):
                    if numbers[i, j] >= 0:
                        inner += tables[numbers[i, j], digits[i, code], digits[j, code]]
            if a < n_blocks - 1:
                size = sizes[a + 1]
                whole[cells[place] + code * size : cells[place] + (code + 1) * size] += inner
            else:
                for other in range(sizes[0]):
                    whole[cells[n_blocks - 2] + other * sizes[a] + code] += inner
        place += n_blocks - 1 - a


@compiled_loosely
def _share_out(
    whole: Floats,
    cells: _Numbers,
    pairs: _Numbers,
    starts: _Numbers,
    sizes: _Numbers,
    digits: Groups,
    numbers: _Numbers,
    sums: Floats,
) -> None:
    """Add up the tables of two blocks for every pair of columns, one of each."""
    line = np.empty(sums.shape[2])
    for place in range(len(pairs)):
        a, b = pairs[place]
        size = sizes[b]
        for code in range(sizes[a]):
            here = whole[cells[place] + code * size : cells[place] + (code + 1) * size]
            for j in range(starts[b], starts[b + 1]):
                line[:] = 0.0
                for other in range(size):
                    line[digits[j, other]] += here[other]
                for i in range(starts[a], starts[a + 1]):
                    if numbers[i, j] >= 0:
                        sums[numbers[i, j], digits[i, code]] += line


@compiled_loosely
def _share_inner(
    whole: Floats,
    cells: _Numbers,
    starts: _Numbers,
    sizes: _Numbers,
    digits: Groups,
    numbers: _Numbers,
    sums: Floats,
    singles: Floats,
) -> None:
    """The same for single columns and pairs within a block, by the table in which `_add_inner` has them."""
    n_blocks = len(sizes)
    place = 0
    for a in range(n_blocks):
        for code in range(sizes[a]):
            weight = 0.0
            if a < n_blocks - 1:
                size = sizes[a + 1]
                for cell in range(cells[place] + code * size, cells[place] + (code + 1) * size):
                    weight += whole[cell]
            else:
                for other in range(sizes[0]):
                    weight += whole[cells[n_blocks - 2] + other * sizes[a] + code]
            for i in range(starts[a], starts[a + 1]):
                singles[i, digits[i, code]] += weight
                for j in range(i + 1, starts[a + 1]):
                    if numbers[i, j] >= 0:
                        sums[numbers[i, j], digits[i, code], digits[j, code]] += weight
        place += n_blocks - 1 - a
