"""Tables of a few columns' states, many at once: what one pass over rows counts, as one vector. SENSITIVE.

    tables of groups    up to four groups a column, counted 64 rows at a time, bit by bit
    merged pairs        many pairs by way of merged columns: fewer tables for the same numbers
    table requests      `TableRequest`: which way its tables are counted, and the vector they make

The vector of a part of the rows is added to those of other parts, in any order, and the sum is that of all
rows. So a thread, a batch or a worker on another machine counts its own rows and hands in a vector, whose
length depends on the tables alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from spinney.compiled import compiled

# ----------------------------------------------------------------------------------------------------- tables of groups
# Tables of a few groups of states, for thousands of sets of columns: counted 64 rows at a time, bit by bit.
#
# Every group of a column but its first has a bit for each row. How many rows are in some groups of several columns
# together is how many bits are set in all their words; tables that leave a column's group open are sums, so that the
# first groups follow by subtraction. Terms that several tables share are counted once.


Clique = tuple[int, ...]
Words = NDArray[np.uint64]

# Up to this many groups a column are counted bit by bit: with more, one row at a time is no slower.
MOST_COARSE = 4
# Words that are looked at term by term, so that they stay in cache.
_ROWS_AT_ONCE = 1 << 9


class CoarseTerms:
    """The terms that some tables follow from. Public.

    Args:
        n_groups: how many groups each column has.
        cliques: the columns of each table.
    """

    def __init__(self, n_groups: Sequence[int], cliques: Sequence[Clique]) -> None:
        self._n_groups, self._cliques = np.array(n_groups, dtype=np.int64), cliques
        # Where the words of a column's groups begin, from its second group on; number 0 has a bit for every row.
        self._starts = np.concatenate([[1], 1 + np.cumsum(self._n_groups - 1)])
        self._width = max(map(len, cliques))
        base = int(self._starts[-1])
        keys: list[NDArray[np.int64]] = []
        self._shapes: dict[int, tuple[list[int], int, NDArray[np.bool_], int]] = {}
        for n_columns in sorted({len(clique) for clique in cliques}):
            places = [place for place, clique in enumerate(cliques) if len(clique) == n_columns]
            columns = np.array([cliques[place] for place in places], dtype=np.int64)
            most = int(self._n_groups[columns].max())
            grid = np.array(list(product(range(most), repeat=n_columns)), dtype=np.int64)
            words = np.where(grid > 0, self._starts[columns][:, None, :] + grid - 1, 0)
            is_there: NDArray[np.bool_] = np.all(np.less(grid, self._n_groups[columns][:, None, :]), axis=2)
            words = np.sort(np.where(is_there[:, :, None], words, 0), axis=2)
            key = np.zeros(words.shape[:2], dtype=np.int64)
            for place in range(n_columns):
                key = key * base + words[:, :, place]
            self._shapes[n_columns] = (places, most, is_there, sum(len(key) for key in keys))
            keys.append(key.ravel())
        unique, self._inverse = np.unique(np.concatenate(keys), return_inverse=True)
        self._terms = np.empty((len(unique), self._width), dtype=np.int64)
        for place in range(self._width - 1, -1, -1):
            unique, self._terms[:, place] = np.divmod(unique, base)

    @property
    def n_terms(self) -> int:
        """How many numbers are counted."""
        return len(self._terms)

    @property
    def plain(self) -> tuple[list[list[int]], list[int]]:
        """The words that each term asks for, and where those of every column begin, as plain numbers."""
        return self._terms.tolist(), self._starts.tolist()

    def add(self, states: NDArray[Any], groups: Sequence[NDArray[np.uint8]], sums: NDArray[np.int64]) -> None:
        """Add what some rows (n_columns, n_rows) count in every term. SENSITIVE."""
        n_rows = states.shape[1]
        words = np.zeros((int(self._starts[-1]), -(-n_rows // 64)), dtype=np.uint64)
        _fill_all(n_rows, words[0])
        for column in sorted({column for clique in self._cliques for column in clique}):
            start, stop = self._starts[column], self._starts[column + 1]
            _fill_words(states[column], groups[column], words[start:stop])
        _add_terms(words, self._terms, sums)

    def tables(self, sums: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """The tables of the cliques, in their order, by the sums of all rows. SENSITIVE."""
        found: dict[int, NDArray[np.int64]] = {}
        for n_columns, (places, most, is_there, start) in self._shapes.items():
            size = len(places) * most**n_columns
            open_sums = sums[self._inverse.ravel()[start : start + size]].reshape(is_there.shape)
            tables = np.where(is_there, open_sums, 0).reshape(-1, *(most,) * n_columns)
            for axis in range(1, n_columns + 1):
                turned = np.moveaxis(tables, axis, 0)
                turned[0] -= turned[1:].sum(axis=0)
            found |= dict(zip(places, tables, strict=True))
        for place, clique in enumerate(self._cliques):
            yield found[place][tuple(slice(self._n_groups[column]) for column in clique)]


def _generate_n_bits(_: Any, word: Any) -> Any:  # noqa: ARG001  # numba asks for the argument by name
    """How many bits of a word are set."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


_n_bits: Any = intrinsic(_generate_n_bits)


@compiled
def _fill_all(n_rows: int, words: Words) -> None:
    words[:] = ~np.uint64(0)
    if n_rows % 64:
        words[-1] = (np.uint64(1) << np.uint64(n_rows % 64)) - np.uint64(1)


@compiled
def _fill_words(line: NDArray[Any], group: NDArray[np.uint8], words: Words) -> None:
    here = np.zeros(words.shape[0] + 1, dtype=np.uint64)
    for word in range(words.shape[1]):
        here[:] = 0
        first = 64 * word
        for row in range(first, min(first + 64, line.size)):
            here[group[line[row]]] |= np.uint64(1) << np.uint64(row - first)
        for k in range(words.shape[0]):
            words[k, word] = here[k + 1]


@compiled
def _add_terms(words: Words, terms: NDArray[np.int64], sums: NDArray[np.int64]) -> None:
    """Terms are in order, so that many neighbours share all their words but the last."""
    n_columns, n_terms = terms.shape[1], len(terms)
    both = np.empty(_ROWS_AT_ONCE, dtype=np.uint64)
    for start in range(0, words.shape[1], _ROWS_AT_ONCE):
        n = min(_ROWS_AT_ONCE, words.shape[1] - start)
        stop, place = start + n, 0
        while place < n_terms:
            both[:n] = words[terms[place, 0], start:stop]
            for column in range(1, n_columns - 1):
                line = words[terms[place, column], start:stop]
                for k in range(n):
                    both[k] &= line[k]
            after = place + 1
            while after < n_terms and _have_same_head(terms, place, after):
                after += 1
            while place + 4 <= after:
                _add_four(both[:n], words, terms[place : place + 4, n_columns - 1], start, sums[place : place + 4])
                place += 4
            while place < after:
                line, total = words[terms[place, n_columns - 1], start:stop], np.uint64(0)
                for k in range(n):
                    total += _n_bits(both[k] & line[k])
                sums[place] += np.int64(total)
                place += 1


@compiled
def _have_same_head(terms: NDArray[np.int64], one: int, other: int) -> bool:
    n_same = 0
    for column in range(terms.shape[1] - 1):
        n_same += terms[one, column] == terms[other, column]
    return bool(n_same == terms.shape[1] - 1)


@compiled
def _add_four(both: Words, words: Words, last: NDArray[np.int64], start: int, sums: NDArray[np.int64]) -> None:
    """The bits that words share with each of four others, which are looked at together: words are read once."""
    n = both.size
    first, second = words[last[0], start : start + n], words[last[1], start : start + n]
    third, fourth = words[last[2], start : start + n], words[last[3], start : start + n]
    n_first, n_second, n_third, n_fourth = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
    for k in range(n):
        n_first += _n_bits(both[k] & first[k])
        n_second += _n_bits(both[k] & second[k])
        n_third += _n_bits(both[k] & third[k])
        n_fourth += _n_bits(both[k] & fourth[k])
    sums[0] += np.int64(n_first)
    sums[1] += np.int64(n_second)
    sums[2] += np.int64(n_third)
    sums[3] += np.int64(n_fourth)


# --------------------------------------------------------------------------------------------------------- merged pairs
# Tables of many pairs of columns, counted by way of merged columns: fewer tables for the same numbers.
#
# Columns of few states are merged into one whose states are their combinations, 64 at most. The table of two merged
# columns, which stays in cache, holds those of all pairs of their members as sums; so four flags and a list of ten
# take one table with each other column in place of five. Sums of whole numbers are exact in any order.


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


# ------------------------------------------------------------------------------------------------------- table requests
# Tables that are counted together, as one vector of whole numbers.
#
# The vector of a part of the rows is added to those of other parts, in any order, and the sum is that of all
# rows. Loops go through a few thousand rows at a time, table by table: rows and table stay in cache.


TrueTable = NDArray[np.int64]
Groups = Sequence[NDArray[np.uint8]]

# The number of what vectors hold, and in which order: another version of Spinney may have another.
LAYOUT = 1
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

    def tables(self, sums: NDArray[np.int64]) -> Iterator[TrueTable]:
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


def group_table(table: TrueTable, clique: Clique, groups: Groups) -> TrueTable:
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
