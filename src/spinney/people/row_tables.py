"""Tables of rows and of what they depend on, in units: all that a field of rows may be fitted to. SENSITIVE."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from spinney.counting.weighted import Units, WeightedRows
from spinney.graph.field import FieldClique
from spinney.people.release.evidence import Layout, person_of_rows, row_evidence


class RowTables:
    """The states of persons and of their rows, and exact tables of them.

    Args:
        persons: states of persons (n_variables, n_persons).
        own: states of rows (n_columns, n_rows), in the order of persons.
        starts: where every person's rows begin, and the number of all rows.
        weighted: the units of every row.
        layout: what rows may depend on.
        role: the column that says what a row is.
    """

    def __init__(
        self,
        persons: NDArray[Any],
        own: NDArray[Any],
        starts: NDArray[np.int64],
        weighted: WeightedRows,
        layout: Layout,
        *,
        role: int | None,
    ) -> None:
        self._persons, self._own, self._starts, self._weighted = persons, own, starts, weighted
        self._person = person_of_rows(starts)
        self._layout, self._role = layout, role
        self._kept: dict[FieldClique, Units] = {}

    def __repr__(self) -> str:
        return "RowTables(sensitive)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("RowTables holds private rows and is never pickled")

    def shape(self, clique: FieldClique) -> tuple[int, ...]:
        """The shape of a clique's table."""
        return clique_shape(clique, self._layout, self._role)

    def true_table(self, clique: FieldClique) -> Units:
        """How many units have each combination of states, in the clique's shape."""
        if clique not in self._kept:
            self.prepare([clique])
        return self._kept[clique]

    def prepare(self, cliques: Iterable[FieldClique]) -> None:
        """Count tables, those of the same evidence one after the other, and keep them."""
        at, line = -1, np.empty(0)
        for clique in sorted(set(cliques).difference(self._kept)):
            if clique.evidence and clique.evidence[0] != at:
                at = clique.evidence[0]
                line = row_evidence(self._layout.every[at], self._persons, self._own, self._person, self._starts)
            lines = [line if column is None else self._own[column] for column in clique_axes(clique, self._role)]
            shape = self.shape(clique)
            self._kept[clique] = self._weighted.true_table(lines, shape).reshape(shape)


def clique_axes(clique: FieldClique, role: int | None) -> list[int | None]:
    """What the axes of a clique's table are: own columns, None for the evidence; as fields have it."""
    others: list[int | None] = [column for column in clique.own if column != role]
    with_role: list[int | None] = [role] if role in clique.own else []
    evidence: list[int | None] = [None] if clique.evidence else []
    return [*with_role, *evidence, *others] if others else [*evidence, *with_role]


def clique_shape(clique: FieldClique, layout: Layout, role: int | None) -> tuple[int, ...]:
    """The shape of a clique's table, axes as in `clique_axes`."""
    return tuple(
        layout.sizes[clique.evidence[0]] if column is None else layout.own_sizes[column]
        for column in clique_axes(clique, role)
    )
