"""Turned: the columns of a tree renumbered by their sizes, so that the last of every clique has the most states.

Which number a column has means nothing to a model, but loops over its cells are fastest along long lines (`lines`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from spinney.graph.junction import Clique, JunctionTree
from spinney.graph.passing import flatten
from spinney.graph.targets import Measurement

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Turned:
    """A tree, and the same with its columns in the order of their sizes."""

    tree: JunctionTree
    turned: JunctionTree = field(init=False)
    _ranks: tuple[int, ...] = field(init=False, repr=False)  # the new number of each column

    def __post_init__(self) -> None:
        order = sorted(range(self.tree.n_columns), key=lambda column: (self.tree.sizes[column], column))
        ranks = [0] * len(order)
        for rank, column in enumerate(order):
            ranks[column] = rank
        object.__setattr__(self, "_ranks", tuple(ranks))
        sizes = tuple(self.tree.sizes[column] for column in order)
        cliques = tuple(self._columns(clique) for clique in self.tree.cliques)
        object.__setattr__(self, "turned", JunctionTree(sizes, cliques))

    def measurement(self, measurement: Measurement) -> Measurement:
        """The same measurement by new numbers."""
        labels = measurement.labels_of_cells(self.tree.sizes)
        columns, axes = measurement.columns, self._axes(measurement.columns)
        if measurement.labels is None and list(axes) == sorted(axes):
            return Measurement(self._columns(columns), measurement.noisy, measurement.noise_std)
        table = np.ascontiguousarray(labels.reshape(self.tree.shape(columns)).transpose(axes))
        return Measurement(self._columns(columns), measurement.noisy, measurement.noise_std, table)

    def vector(self, potentials: Floats) -> Floats:
        """Potentials of the tree's cells as those of the turned one's (n_cells,)."""
        tables = zip(self.tree.cliques, flatten(self.tree).parts(potentials, self.tree), strict=True)
        return np.concatenate([table.transpose(self._axes(clique)).ravel() for clique, table in tables])

    def tables(self, potentials: Floats) -> list[Floats]:
        """Potentials of the turned tree's cells as tables of the tree's cliques."""
        tables = zip(self.tree.cliques, flatten(self.turned).parts(potentials, self.turned), strict=True)
        return [np.ascontiguousarray(table.transpose(np.argsort(self._axes(clique)))) for clique, table in tables]

    def _columns(self, columns: Sequence[int]) -> Clique:
        return tuple(sorted(self._ranks[column] for column in columns))

    def _axes(self, columns: Sequence[int]) -> list[int]:
        """The axes of a table of ascending columns in their new order."""
        return sorted(range(len(columns)), key=lambda axis: self._ranks[columns[axis]])
