"""Message passing on a junction tree: all cliques in one vector, two sweeps of compiled loops.

With log-potentials t(c) of cliques, the model is p(x) = exp(sum of t(c)(x)) / Z. Towards the roots, each clique turns
into its law given its separator, and what it summed to goes to the parent (`_collect`):

    m(s) = log sum of exp(t(c) + messages of children) over cells that agree with s,    p(c | s) = exp(... - m(s))

Back from the roots, p(c) = p(c | s) p(s), p(s) being a sum of the parent's law (`_distribute`). Messages stay on the
log scale, so nothing underflows; a potential of minus infinity is a cell where no row can be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.graph.junction import JunctionTree

Floats = NDArray[np.float64]
Places = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class FlatTree:
    """Where the cells of cliques and separators lie in one vector each. A root has a separator of one cell."""

    parents: NDArray[np.int64]  # (n_cliques,)
    cells: NDArray[np.int64]  # (n_cliques + 1,): the cells of clique c are cells[c]..cells[c+1]
    separator_cells: NDArray[np.int64]  # (n_cliques + 1,)
    own: Places  # (n_cells,): every cell's place in the separator of its clique
    above: Places  # for one clique after the other, the place there of each of the parent's cells
    above_cells: NDArray[np.int64]  # (n_cliques + 1,)

    def parts(self, vector: NDArray[Any], tree: JunctionTree) -> tuple[NDArray[Any], ...]:
        """A vector of all cells as one table per clique."""
        return tuple(
            vector[first:last].reshape(tree.shape(clique))
            for first, last, clique in zip(self.cells, self.cells[1:], tree.cliques, strict=False)
        )


@lru_cache(maxsize=8)
def flatten(tree: JunctionTree) -> FlatTree:
    """The tree as index vectors."""
    n_cells = [math.prod(tree.shape(clique)) for clique in tree.cliques]
    n_separator_cells = [math.prod(tree.shape(separator)) for separator in tree.separators]
    own, above = [], []
    for clique, parent, separator in zip(tree.cliques, tree.parents, tree.separators, strict=True):
        own.append(places(tree.sizes, clique, separator))
        if parent >= 0:
            above.append(places(tree.sizes, tree.cliques[parent], separator))
    n_above = [n_cells[parent] if parent >= 0 else 0 for parent in tree.parents]
    return FlatTree(
        np.array(tree.parents, dtype=np.int64),
        _starts(n_cells),
        _starts(n_separator_cells),
        np.concatenate(own),
        np.concatenate([np.empty(0, dtype=np.int32), *above]),
        _starts(n_above),
    )


def places(sizes: Sequence[int], clique: Sequence[int], columns: Sequence[int]) -> Places:
    """For every cell of a clique's table its place in the table of some of its columns, both in C order."""
    shape = tuple(sizes[column] for column in clique)
    index = np.zeros(shape, dtype=np.int32)
    stride = 1
    for column in reversed(columns):
        axis = clique.index(column)
        steps = np.arange(sizes[column], dtype=np.int32) * np.int32(stride)
        index += steps.reshape((-1,) + (1,) * (len(clique) - 1 - axis))
        stride *= sizes[column]
    return index.ravel()


def _starts(lengths: Sequence[int]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


@dataclass(frozen=True, slots=True, eq=False)
class Calibrated:
    """Laws of all cliques, alone and given their separators, and log Z (minus infinity where no cell is possible)."""

    beliefs: Floats  # (n_cells,)
    conditionals: Floats  # (n_cells,)
    separators: Floats  # (n_separator_cells,)
    log_partition: float


def calibrate(flat: FlatTree, potentials: Floats) -> Calibrated:
    """Laws of all cliques under the potentials (n_cells,)."""
    conditionals = potentials.copy()
    log_partition = _collect(
        conditionals, flat.parents, flat.cells, flat.separator_cells, flat.own, flat.above, flat.above_cells
    )
    beliefs, separators = np.empty_like(potentials), np.zeros(flat.separator_cells[-1])
    _distribute(
        conditionals,
        beliefs,
        separators,
        flat.parents,
        flat.cells,
        flat.separator_cells,
        flat.own,
        flat.above,
        flat.above_cells,
    )
    return Calibrated(beliefs, conditionals, separators, log_partition)


@compiled
def _collect(
    work: Floats,
    parents: NDArray[np.int64],
    cells: NDArray[np.int64],
    separator_cells: NDArray[np.int64],
    own: Places,
    above: Places,
    above_cells: NDArray[np.int64],
) -> float:
    """Potentials become conditionals in place; returns log Z."""
    log_partition = 0.0
    largest = np.empty(separator_cells[-1])
    summed = np.empty(separator_cells[-1])
    for clique in range(len(parents) - 1, -1, -1):
        first, last, offset = cells[clique], cells[clique + 1], separator_cells[clique]
        n_separator = separator_cells[clique + 1] - offset
        top, total = largest[offset : offset + n_separator], summed[offset : offset + n_separator]
        top[:] = -np.inf
        total[:] = 0.0
        part, place = work[first:last], own[first:last]
        for cell in range(last - first):
            top[place[cell]] = max(top[place[cell]], part[cell])
        for cell in range(last - first):
            # An impossible cell has no share, even where its whole separator state is impossible.
            part[cell] = np.exp(part[cell] - top[place[cell]]) if part[cell] > -np.inf else 0.0
            total[place[cell]] += part[cell]
        for state in range(n_separator):
            if total[state] > 0:
                top[state] += np.log(total[state])
                total[state] = 1 / total[state]
        for cell in range(last - first):
            part[cell] *= total[place[cell]]
        parent = parents[clique]
        if parent < 0:
            log_partition += top[0]
        else:
            upper = work[cells[parent] : cells[parent + 1]]
            to = above[above_cells[clique] : above_cells[clique + 1]]
            for cell in range(len(upper)):
                upper[cell] += top[to[cell]]
    return log_partition


@compiled
def _distribute(
    conditionals: Floats,
    beliefs: Floats,
    separators: Floats,
    parents: NDArray[np.int64],
    cells: NDArray[np.int64],
    separator_cells: NDArray[np.int64],
    own: Places,
    above: Places,
    above_cells: NDArray[np.int64],
) -> None:
    for clique in range(len(parents)):
        first, last, offset = cells[clique], cells[clique + 1], separator_cells[clique]
        shared, place = separators[offset : separator_cells[clique + 1]], own[first:last]
        parent = parents[clique]
        if parent < 0:
            shared[0] = 1.0
        else:
            upper = beliefs[cells[parent] : cells[parent + 1]]
            to = above[above_cells[clique] : above_cells[clique + 1]]
            for cell in range(len(upper)):
                shared[to[cell]] += upper[cell]
        belief, conditional = beliefs[first:last], conditionals[first:last]
        for cell in range(last - first):
            belief[cell] = conditional[cell] * shared[place[cell]]
