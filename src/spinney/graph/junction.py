"""Junction trees: how tables of few columns become a model of many. PUBLIC.

Columns that share a table are neighbours in a graph. Once the cycles of the graph are closed (triangulated),
its maximal cliques can be put in an order with *running intersection*: the separator of a clique, which is what
it shares with all earlier ones, lies within one of them, its parent. Then a joint distribution is a product of
distributions of cliques given their separators. The order is all that is stored: parents and separators follow
from it.

    elimination    cliques of a graph by greedy elimination orders, within a limit on cells
    junction       the tree of cliques itself
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.errors import ParameterError

# ---------------------------------------------------------------------------------------------------------- elimination
# Closing cycles: the cliques that a graph of columns gets when they are eliminated one after the other.
#
# A column is eliminated by joining its neighbours to each other; it forms a clique with them. Which order is best is
# NP-hard to say, so two greedy ones are tried: by fewest new edges, and by fewest cells; ties go to the other cost,
# then to the lower column. The cliques of a growing forest are tried out thousands of times, so the loops are
# compiled and look at 64 columns at a time, and an order is given up as soon as it has more cells than allowed.


Clique = tuple[int, ...]
Edges = NDArray[np.bool_]  # (n_columns, n_columns): which columns are neighbours
Floats = NDArray[np.float64]
Costs = NDArray[np.float64]  # (n_columns, 2): edges that eliminating a column adds, and the log of its clique's cells
Words = NDArray[np.uint64]  # (n_columns, n_words): a set of columns for each, one bit a column


def neighbours(sizes: Sequence[int], cliques: Iterable[Sequence[int]]) -> Edges:
    """Which columns share a clique."""
    if not sizes or min(sizes) < 1:
        raise ParameterError(f"sizes={sizes} must name at least one column, each of at least one state")
    edges = np.zeros((len(sizes), len(sizes)), dtype=np.bool_)
    for clique in cliques:
        if any(not 0 <= column < len(sizes) for column in clique):
            raise ParameterError(f"clique {tuple(clique)} names a column outside 0..{len(sizes) - 1}")
        join(edges, clique)
    return edges


def join(edges: Edges, clique: Sequence[int]) -> bool:
    """Make all columns of a clique neighbours; False where they were."""
    is_new = False
    for a, b in combinations(set(clique), 2):
        is_new |= not edges[a, b]
        edges[a, b] = edges[b, a] = True
    return is_new


def smallest_cliques(sizes: tuple[int, ...], edges: Edges) -> tuple[Clique, ...]:
    """Maximal cliques of the smaller of two triangulations, in an order with running intersection."""
    log_sizes, all_sizes = _vectors(sizes)
    around = _packed(edges)
    costs = _prices(around, log_sizes)
    found = []
    for by_fill in (True, False):
        formed, left_behind = _order(around.copy(), costs.copy(), all_sizes, log_sizes, by_fill, math.inf)
        found.append(_maximal(formed, left_behind, all_sizes))
    members, _ = min(found, key=lambda one: one[1])
    numbers = np.arange(len(sizes))
    is_member = members[:, numbers // 64] >> (numbers % 64).astype(np.uint64) & np.uint64(1)
    return tuple(tuple(np.flatnonzero(line).tolist()) for line in is_member)


class TreewidthBudget:
    """What else fits into a tree of limited size.

    `has(clique)` tells whether `JunctionTree.covering(sizes, [*cliques, clique])` has at most `most_cells` cells, and
    `n_cells(clique)` how many it has, infinitely many where that is more. Both are remembered for as long as no `add`
    changes the graph.
    """

    def __init__(self, sizes: Sequence[int], cliques: Iterable[Sequence[int]], most_cells: int) -> None:
        self.most_cells = most_cells
        self._edges = neighbours(sizes, cliques)
        self._log_sizes, self._sizes = _vectors(sizes)
        self._known: dict[Clique, float] = {}
        self._look()

    def _look(self) -> None:
        """Note the graph as sets, and what columns cost."""
        self._around = _packed(self._edges)
        self._costs = _prices(self._around, self._log_sizes)
        self._known.clear()

    def add(self, clique: Clique) -> bool:
        """Count a clique among those that are there; whether that changed the graph."""
        is_new = join(self._edges, clique)
        if is_new:
            self._look()
        return is_new

    def has(self, clique: Clique) -> bool:
        """Whether the tree would still be small with this clique."""
        return self.n_cells(clique) <= self.most_cells

    def n_cells(self, clique: Clique) -> float:
        """Cells of the tree with this clique."""
        if clique not in self._known:
            numbers = np.array(clique, dtype=np.int64)
            most = float(self.most_cells)
            self._known[clique] = _n_cells(self._around, self._costs, numbers, self._sizes, self._log_sizes, most)
        return self._known[clique]


def _vectors(sizes: Sequence[int]) -> tuple[Floats, Floats]:
    """Logarithms of sizes, and sizes."""
    return np.array([math.log(size) for size in sizes]), np.array(sizes, dtype=np.float64)


@compiled
def _n_cells(
    around: Words, costs: Costs, clique: NDArray[np.int64], sizes: Floats, log_sizes: Floats, most_cells: float
) -> float:
    """Cells of the smaller triangulation of a graph with a clique more, infinitely many where both were given up."""
    joined, priced = around.copy(), costs.copy()
    stale = np.zeros(around.shape[1], dtype=np.uint64)
    for a in clique:
        stale[a // 64] |= _bit(a)
        for b in clique:
            if a != b:
                joined[a, b // 64] |= _bit(b)
                stale |= around[a] & around[b]  # sees both ends of what may be a new edge
    other = _next(stale, 0)
    while other >= 0:
        _price(other, joined, log_sizes, priced)
        other = _next(stale, other + 1)
    least = np.inf
    for by_fill in (True, False):
        formed, left_behind = _order(joined.copy(), priced.copy(), sizes, log_sizes, by_fill, most_cells)
        if len(formed) == len(sizes):
            least = min(least, _maximal(formed, left_behind, sizes)[1])
    return least


@compiled
def _order(
    around: Words, costs: Costs, sizes: Floats, log_sizes: Floats, by_fill: bool, most_cells: float
) -> tuple[NDArray[np.int64], Words]:
    """Columns in the order of elimination, and for every column those that it leaves behind joined to each other.

    Overwrites neighbours and costs. Fewer columns than there are where one formed a clique of more cells than allowed.
    """
    n_columns = len(sizes)
    first, second = (0, 1) if by_fill else (1, 0)
    still_open = np.arange(n_columns)
    stale = np.zeros(around.shape[1], dtype=np.uint64)
    formed = np.empty(n_columns, dtype=np.int64)
    left_behind = np.zeros_like(around)
    for step in range(n_columns):
        n_open = n_columns - step
        place = 0
        for other in range(1, n_open):
            one, best = still_open[other], still_open[place]
            if costs[one, first] < costs[best, first] or (
                costs[one, first] == costs[best, first] and costs[one, second] < costs[best, second]
            ):
                place = other
        column = still_open[place]
        still_open[place : n_open - 1] = still_open[place + 1 : n_open]
        formed[step] = column
        here = left_behind[column]
        here[:] = around[column]
        n_cells = sizes[column]
        other = _next(here, 0)
        while other >= 0:
            n_cells *= sizes[other]
            other = _next(here, other + 1)
        if n_cells > most_cells:
            return formed[:step], left_behind
        stale[:] = here
        other = _next(here, 0)
        while other >= 0:
            theirs = around[other]
            theirs[other // 64] |= _bit(other)
            adds_edges = False
            for word in range(len(here)):
                adds_edges |= here[word] & ~theirs[word] != 0
            if by_fill and adds_edges:  # a column that sees both ends of a new edge has fewer to add
                stale |= theirs
            theirs |= here
            theirs[other // 64] &= ~_bit(other)
            theirs[column // 64] &= ~_bit(column)
            other = _next(here, other + 1)
        stale[column // 64] &= ~_bit(column)
        other = _next(stale, 0)
        while other >= 0:
            _price(other, around, log_sizes, costs)
            other = _next(stale, other + 1)
    return formed, left_behind


@compiled
def _maximal(formed: NDArray[np.int64], left_behind: Words, sizes: Floats) -> tuple[Words, float]:
    """Maximal cliques as sets, and their cells. One that is all that another leaves behind is part of that."""
    n_columns = len(sizes)
    step_of = np.empty(n_columns, dtype=np.int64)
    for step in range(n_columns):
        step_of[formed[step]] = step
    members = np.zeros_like(left_behind)
    n_members = np.zeros(n_columns, dtype=np.int64)
    n_cells = np.zeros(n_columns)
    place = np.empty(n_columns, dtype=np.int64)  # where the clique of a column is; from the last eliminated on
    n_cliques = 0
    for step in range(n_columns - 1, -1, -1):
        column = formed[step]
        # All neighbours lie within the clique of the one eliminated first; if they are all of it, it was not maximal.
        n_others, first, others_cells = 0, n_columns, 1.0
        other = _next(left_behind[column], 0)
        while other >= 0:
            n_others += 1
            first = min(first, step_of[other])
            others_cells *= sizes[other]
            other = _next(left_behind[column], other + 1)
        holder = n_cliques
        if n_others and n_members[place[formed[first]]] == n_others:
            holder = place[formed[first]]
        else:
            members[holder] = left_behind[column]
            n_cliques += 1
        members[holder, column // 64] |= _bit(column)
        n_members[holder] = n_others + 1
        n_cells[holder] = others_cells * sizes[column]
        place[column] = holder
    return members[:n_cliques], n_cells.sum()


@compiled
def _prices(around: Words, log_sizes: Floats) -> Costs:
    """What eliminating each column costs."""
    costs = np.empty((len(log_sizes), 2))
    for column in range(len(log_sizes)):
        _price(column, around, log_sizes, costs)
    return costs


@compiled
def _price(column: int, around: Words, log_sizes: Floats, costs: Costs) -> None:
    """Write what eliminating a column costs."""
    here = around[column]
    n_around, n_joined, weight = 0, 0, 0.0
    other = _next(here, 0)
    while other >= 0:
        n_around += 1
        weight += log_sizes[other]
        for word in range(len(here)):
            n_joined += _n_bits(here[word] & around[other, word])
        other = _next(here, other + 1)
    weight += log_sizes[column]
    fill = (n_around * (n_around - 1) - n_joined) // 2
    costs[column, 0], costs[column, 1] = fill, weight


# ------------------------------------------------------------------------------------------------------ sets of columns


@compiled
def _packed(edges: Edges) -> Words:
    """The neighbours of every column, 64 of them in a word."""
    n_columns = len(edges)
    words = np.zeros((n_columns, (n_columns + 63) // 64), dtype=np.uint64)
    for column in range(n_columns):
        for other in range(n_columns):
            if edges[column, other]:
                words[column, other // 64] |= _bit(other)
    return words


@compiled
def _bit(column: int) -> np.uint64:
    return np.uint64(1) << np.uint64(column % 64)


@compiled
def _next(words: NDArray[np.uint64], start: int) -> int:
    """The first column of a set that is not below the start, or -1."""
    word = start // 64
    if word >= len(words):
        return -1
    rest = words[word] & (~np.uint64(0) << np.uint64(start % 64))
    while rest == 0:
        word += 1
        if word == len(words):
            return -1
        rest = words[word]
    return word * 64 + _n_bits((rest & (~rest + np.uint64(1))) - np.uint64(1))


@compiled
def _n_bits(word: np.uint64) -> int:
    """How many bits of a word are set: sums of neighbouring bits, twos, fours, then of all bytes."""
    word = word - (word >> np.uint64(1) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + (word >> np.uint64(2) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int(word * np.uint64(0x0101010101010101) >> np.uint64(56))


# ------------------------------------------------------------------------------------------------------------- junction
# The tree: cliques in an order with running intersection. Parents and separators follow from the order.


@dataclass(frozen=True, slots=True)
class JunctionTree:
    """Cliques of columns in an order with running intersection; a wood of several trees where columns share nothing."""

    sizes: tuple[int, ...]  # (n_columns,): states of every column
    cliques: tuple[Clique, ...]  # columns ascending; parents before children
    parents: tuple[int, ...] = field(init=False, compare=False)  # (n_cliques,): -1 for roots
    separators: tuple[Clique, ...] = field(init=False, compare=False)  # (n_cliques,): columns shared with the parent
    holders: tuple[tuple[int, ...], ...] = field(init=False, compare=False, repr=False)  # of every column: its cliques
    clique_cells: tuple[int, ...] = field(init=False, compare=False, repr=False)  # (n_cliques,)

    def __post_init__(self) -> None:
        holders: list[list[int]] = [[] for _ in self.sizes]
        parents, separators = [], []
        for index, clique in enumerate(self.cliques):
            if not clique or list(clique) != sorted(set(clique)) or not 0 <= clique[0] <= clique[-1] < len(holders):
                raise ParameterError(f"clique {clique} is not an ascending list of columns of 0..{len(holders) - 1}")
            parent, separator = _parent(clique, self.cliques, holders)
            parents.append(parent)
            separators.append(separator)
            for column in clique:
                holders[column].append(index)
        if not all(holders):
            raise ParameterError(f"cliques hold no column {holders.index([])}; every column must be in one")
        object.__setattr__(self, "parents", tuple(parents))
        object.__setattr__(self, "separators", tuple(separators))
        object.__setattr__(self, "holders", tuple(map(tuple, holders)))
        object.__setattr__(self, "clique_cells", tuple(math.prod(self.shape(clique)) for clique in self.cliques))

    @classmethod
    def covering(cls, sizes: Sequence[int], cliques: Iterable[Sequence[int]]) -> JunctionTree:
        """A tree in which every given clique lies within one, and every column in at least one."""
        sizes = tuple(int(size) for size in sizes)
        return cls(sizes, smallest_cliques(sizes, neighbours(sizes, cliques)))

    @property
    def n_columns(self) -> int:
        return len(self.sizes)

    @property
    def n_cells(self) -> int:
        """Cells of all cliques together."""
        return sum(self.clique_cells)

    def shape(self, columns: Iterable[int]) -> tuple[int, ...]:
        """Shape of a table of these columns."""
        return tuple(self.sizes[column] for column in columns)

    def home(self, columns: Iterable[int]) -> int | None:
        """The smallest clique that holds all these columns, the first of equals; None where none does."""
        wanted = set(columns)
        fewest = min((self.holders[column] for column in wanted), key=len, default=range(len(self.cliques)))
        holding = [index for index in fewest if wanted.issubset(self.cliques[index])]
        return min(holding, key=self.clique_cells.__getitem__, default=None)


def _parent(clique: Clique, cliques: Sequence[Clique], holders: list[list[int]]) -> tuple[int, Clique]:
    """The first earlier clique that holds all columns shared with earlier ones, and those columns; -1 without any."""
    separator = tuple(column for column in clique if holders[column])
    if not separator:
        return -1, separator
    fewest = min((holders[column] for column in separator), key=len)
    parent = next((index for index in fewest if set(separator).issubset(cliques[index])), None)
    if parent is None:
        raise ParameterError(
            f"cliques are not in an order of running intersection: columns {separator} of clique {clique} lie in no "
            f"single earlier one; use JunctionTree.covering"
        )
    return parent, separator
