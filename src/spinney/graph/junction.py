"""Cliques in a tree: how tables of few columns become a model of many.

Columns that share a table are neighbours in a graph. Once its cycles are closed (triangulated), its maximal cliques
can be put in an order with *running intersection*: what a clique shares with all earlier ones, its separator, lies
within one of them, its parent. Then a joint law is a product of laws of cliques given their separators.

The order is all there is to store: parents and separators follow from it. How cycles are closed is in `elimination`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from spinney.errors import ParameterError
from spinney.graph.elimination import neighbours, smallest_cliques

Clique = tuple[int, ...]


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
