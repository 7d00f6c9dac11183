"""Tables of a few groups of states, for thousands of sets of columns: counted 64 rows at a time, bit by bit.

Every group of a column but its first has a bit for each row. How many rows are in some groups of several columns
together is how many bits are set in all their words; tables that leave a column's group open are sums, so that the
first groups follow by subtraction. Terms that several tables share are counted once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from spinney.compiled import compiled

Clique = tuple[int, ...]
Words = NDArray[np.uint64]

# Up to this many groups a column are counted bit by bit: with more, one row at a time is no slower.
MOST_COARSE = 4
# Words that are looked at term by term, so that they stay in cache.
_BLOCK = 1 << 9


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
    both = np.empty(_BLOCK, dtype=np.uint64)
    for start in range(0, words.shape[1], _BLOCK):
        n = min(_BLOCK, words.shape[1] - start)
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
