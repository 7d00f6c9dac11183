"""Opening: the cliques that rounds may choose from, all of public and released quantities.

Pairs of columns, and later in a forest triples and larger ones; with a target, triples with it from the beginning.
A clique is open while the junction tree of all that were measured stays small enough with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from spinney.counting.joint import Clique
from spinney.forest.design import Design
from spinney.graph.elimination import TreewidthBudget
from spinney.graph.junction import JunctionTree

# Pairs that are compared in a turn, and larger cliques of each number of columns.
N_PAIRS = 1_500
N_LARGER = 1_500
# Triples are open after this share of the rounds, larger cliques after that: until then a pair can be what is missing.
_TRIPLES_FROM = 0.25
_LARGER_FROM = 0.9


class Opening:
    """Cliques whose measurement keeps the junction tree small."""

    def __init__(self, sizes: Sequence[int], design: Design, measured: Sequence[Clique]) -> None:
        self._sizes, self._measured = sizes, [*measured]
        self._known = set(measured)
        self._columns, self._target, self._free = design.measured, design.target, design.free
        self._largest = min(design.effort.largest_clique, len(design.measured))
        self._ruled = list(design.required)  # which the model's tree covers, measured or not
        most_cells = design.effort.most_cells + design.stated_cells
        self._room = TreewidthBudget(sizes, [*measured, *self._ruled], most_cells)
        self._tree = JunctionTree.covering(sizes, [*measured, *self._ruled])
        self._fallback = tuple(design.measured[:2])

    def cliques(self, rng: np.random.Generator, *, share: float) -> list[Clique]:
        """Those to compare in a turn at the end of which this share of all rounds is done, in random order."""
        opened = self._some(list(combinations(self._columns, 2)), N_PAIRS, rng)
        if self._target is not None:
            triples = [tuple(sorted((i, j, self._target))) for i, j in combinations(self._free, 2)]
            opened += self._some(triples, N_PAIRS, rng)
        for n_columns in range(3, self._largest + 1):
            if share < (_TRIPLES_FROM if n_columns == 3 else _LARGER_FROM):
                break
            opened += self._some(_subsets(self._columns, n_columns, rng), N_LARGER, rng)
        opened = list(dict.fromkeys(opened))
        return opened or self.again(rng)

    def _some(self, candidates: Sequence[Clique], most: int, rng: np.random.Generator) -> list[Clique]:
        opened: list[Clique] = []
        for place in rng.permutation(len(candidates)):
            clique = candidates[place]
            if clique not in self._known and self.has(clique):
                opened.append(clique)
            if len(opened) == most:
                break
        return opened

    def has(self, clique: Clique) -> bool:
        """Whether the tree is still small enough with this clique."""
        return self._tree.home(clique) is not None or self._room.has(clique)

    def growth(self, clique: Clique) -> float:
        """How much of the room that there is in all the tree would take up beyond what it has, with this clique."""
        if self._tree.home(clique) is not None:
            return 0.0
        return max(0.0, self._room.n_cells(clique) - self._tree.n_cells) / self._room.most_cells

    def again(self, rng: np.random.Generator) -> list[Clique]:
        """Where no other fits, cliques that were measured before: a second measurement is still worth something."""
        several = [clique for clique in dict.fromkeys(self._measured) if len(clique) > 1] or [self._fallback]
        return [several[place] for place in rng.permutation(len(several))[:N_LARGER]]

    def close(self, clique: Clique) -> None:
        """A clique that was measured is no longer open, and others may not be either."""
        self._measured.append(clique)
        self._known.add(clique)
        if self._room.add(clique):
            self._tree = JunctionTree.covering(self._sizes, [*self._measured, *self._ruled])


def _subsets(columns: Sequence[int], n_columns: int, rng: np.random.Generator) -> list[Clique]:
    """All sets of so many columns, or a few thousand of them at random where there are more."""
    if math.comb(len(columns), n_columns) <= 2 * N_LARGER:
        return list(combinations(columns, n_columns))
    drawn = (rng.choice(columns, size=n_columns, replace=False) for _ in range(2 * N_LARGER))
    return list(dict.fromkeys(tuple(sorted(int(column) for column in columns)) for columns in drawn))
