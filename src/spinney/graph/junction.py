"""Cliques in a tree: how tables of few columns become a model of many.

Columns that share a table are neighbours in a graph. Once its cycles are closed (triangulated), its maximal cliques
can be put in an order with *running intersection*: what a clique shares with all earlier ones, its separator, lies
within one of them, its parent. Then a joint law is a product of laws of cliques given their separators.

The order is all there is to store: parents and separators follow from it. Closing cycles best is NP-hard; columns are
eliminated greedily, by fewest new edges and by fewest cells, and the tree with fewer cells is kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from spinney.errors import ParameterError

Clique = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class JunctionTree:
    """Cliques of columns in an order with running intersection; a wood of several trees where columns share nothing."""

    sizes: tuple[int, ...]  # (n_columns,): states of every column
    cliques: tuple[Clique, ...]  # columns ascending; parents before children
    parents: tuple[int, ...] = field(init=False, compare=False)  # (n_cliques,): -1 for roots
    separators: tuple[Clique, ...] = field(init=False, compare=False)  # (n_cliques,): columns shared with the parent
    holders: tuple[tuple[int, ...], ...] = field(init=False, compare=False, repr=False)  # of every column: its cliques

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

    @classmethod
    def covering(cls, sizes: Sequence[int], cliques: Iterable[Sequence[int]]) -> JunctionTree:
        """A tree in which every given clique lies within one, and every column in at least one."""
        sizes = tuple(int(size) for size in sizes)
        neighbours = _neighbours(sizes, cliques)
        found = [_eliminate(sizes, neighbours, by_fill=by_fill) for by_fill in (True, False)]
        return cls(sizes, min(found, key=lambda tree: _n_cells(sizes, tree)))

    @property
    def n_columns(self) -> int:
        return len(self.sizes)

    @property
    def n_cells(self) -> int:
        """Cells of all cliques together."""
        return _n_cells(self.sizes, self.cliques)

    def shape(self, columns: Iterable[int]) -> tuple[int, ...]:
        """Shape of a table of these columns."""
        return tuple(self.sizes[column] for column in columns)

    def home(self, columns: Iterable[int]) -> int | None:
        """The smallest clique that holds all these columns, the first of equals; None where none does."""
        wanted = set(columns)
        fewest = min((self.holders[column] for column in wanted), key=len, default=range(len(self.cliques)))
        holding = [index for index in fewest if wanted.issubset(self.cliques[index])]
        return min(holding, key=lambda index: math.prod(self.shape(self.cliques[index])), default=None)


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


def _neighbours(sizes: tuple[int, ...], cliques: Iterable[Sequence[int]]) -> list[int]:
    """For every column its neighbours, as bits of an integer."""
    if not sizes or min(sizes) < 1:
        raise ParameterError(f"sizes={sizes} must name at least one column, each of at least one state")
    neighbours = [0] * len(sizes)
    for clique in cliques:
        if any(not 0 <= column < len(sizes) for column in clique):
            raise ParameterError(f"clique {tuple(clique)} names a column outside 0..{len(sizes) - 1}")
        for a, b in combinations(set(clique), 2):
            neighbours[a] |= 1 << b
            neighbours[b] |= 1 << a
    return neighbours


def _eliminate(sizes: tuple[int, ...], neighbours: list[int], *, by_fill: bool) -> tuple[Clique, ...]:
    """Maximal cliques of a triangulation, in an order with running intersection.

    A column is eliminated by joining its neighbours to each other: it forms a clique with them. The column's clique is
    not maximal where it is what another clique leaves behind.
    """
    edges, logs = [*neighbours], [math.log(size) for size in sizes]
    costs = {column: _cost(column, edges, logs, by_fill) for column in range(len(sizes))}
    formed: list[tuple[int, int]] = []
    while costs:
        column = min(costs, key=costs.__getitem__)
        del costs[column]
        around = edges[column]
        formed.append((column, around))
        stale = around
        for other in _bits(around):
            if by_fill and around & ~edges[other] & ~(1 << other):
                stale |= edges[other]  # new edges here: a column that sees both ends has fewer to add
            edges[other] = (edges[other] | around) & ~(1 << other) & ~(1 << column)
        for other in _bits(stale & ~(1 << column)):
            if other in costs:
                costs[other] = _cost(other, edges, logs, by_fill)

    kept: list[int] = []
    place: dict[int, int] = {}  # where the clique of a column is; filled from the last eliminated, so in reversed order
    rank = {column: step for step, (column, _) in enumerate(formed)}
    for column, around in reversed(formed):
        # All neighbours lie within the clique of the one eliminated first; if they are all of it, it was not maximal.
        holder = place[min(_bits(around), key=rank.__getitem__)] if around else -1
        if around and kept[holder] == around:
            kept[holder] |= 1 << column
            place[column] = holder
        else:
            place[column] = len(kept)
            kept.append(around | 1 << column)
    return tuple(tuple(_bits(clique)) for clique in kept)


def _cost(column: int, edges: list[int], logs: list[float], by_fill: bool) -> tuple[float, float, int]:
    """What eliminating a column costs: new edges or log cells first; ties go to the lower column."""
    around = edges[column]
    weight = logs[column] + sum(logs[other] for other in _bits(around))
    n_around = around.bit_count()
    present = sum((edges[other] & around).bit_count() for other in _bits(around)) // 2
    fill = n_around * (n_around - 1) // 2 - present
    return (fill, weight, column) if by_fill else (weight, fill, column)


def _bits(word: int) -> list[int]:
    """Positions of the bits that are set, ascending."""
    found = []
    while word:
        lowest = word & -word
        found.append(lowest.bit_length() - 1)
        word ^= lowest
    return found


def _n_cells(sizes: tuple[int, ...], cliques: Iterable[Clique]) -> int:
    return sum(math.prod(sizes[column] for column in clique) for clique in cliques)
