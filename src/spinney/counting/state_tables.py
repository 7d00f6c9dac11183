"""StateTables: exact tables of how often states of a few columns meet, whoever counts them. SENSITIVE.

A forest asks for tables of pairs and of a few larger sets of columns, and scores them. Whether rows are held in memory
or are counted where they are, one pass after the other, the numbers are the same: everything here is a function of the
tables alone. Only functions that have charged a ledger may ask.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, NoReturn, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.counting.joint import Clique, Groups, Table, group_table

T = TypeVar("T")

# A gap between two tables is counted in these parts of a row, so that it is a whole number.
GAP_STEPS = 1 << 10


class StateTables(ABC):
    """Tables of the states of all rows under public cuts; `sizes` says how many states each column has."""

    def __init__(self, sizes: tuple[int, ...], n_rows: int) -> None:
        self.sizes, self.n_rows = sizes, n_rows

    def __repr__(self) -> str:
        return f"{type(self).__name__}(sensitive)"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} holds private rows or counts and is never pickled")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def true_each(
        self, cliques: Sequence[Clique], use: Callable[[int, Table], T], *, groups: Groups | None = None
    ) -> list[T]:
        """What `use` makes of the number and the table of every clique, in order. Tables that are large together are
        counted a few at a time.

        Args:
            cliques: the columns of each table, all of them in ascending order.
            use: called by any thread; what it is given is not to be changed.
            groups: for every column the group of each state, where tables are to be of groups; None: of states. Tables
                of the same object of groups, of three columns and more, are counted once.
        """

    @abstractmethod
    def prepare(self, cliques: Sequence[Clique], *, keeps: bool = False) -> None:
        """Have tables counted together that are going to be asked for one by one.

        They stay until others are prepared, or, with `keeps`, for good.
        """

    @abstractmethod
    def close(self) -> None:
        """Forget rows and tables."""

    def true_table(self, clique: Clique) -> Table:
        """How many rows have each combination of states of a few columns, in any order."""
        order = sorted(range(len(clique)), key=lambda place: clique[place])
        table = self.true_each([tuple(clique[place] for place in order)], lambda _, found: found)[0]
        return table.transpose([order.index(place) for place in range(len(clique))])

    def true_gaps(
        self, pairs: NDArray[np.int64], shares: Sequence[NDArray[np.float64]], by: int | None = None
    ) -> NDArray[np.int64]:
        """How far each pair of columns is from independence, given column `by` if there is one.

        sum over i, j, t of |n_ijt - e_ijt|, e_ijt = n_t P(i|t) P(j|t), in steps of 1 / GAP_STEPS, where `shares[c][t]`
        holds P(state of c | t) of column c, and the last of `shares` the n_t; less the sum that independent columns
        would show by chance, or pairs of many states would always seem far. One row more or less changes a gap
        by GAP_STEPS at most, another row in its place by twice that.
        """
        wanted = [tuple(int(column) for column in pair) for pair in pairs]
        cliques = [tuple(sorted(pair if by is None else (*pair, by))) for pair in wanted]

        def gap(place: int, table: Table) -> int:
            clique, pair = cliques[place], wanted[place]
            if by is None:
                turned = table.transpose([clique.index(column) for column in pair])[None]
            else:
                turned = table.transpose([clique.index(column) for column in (by, *pair)])
            return int(_gap(np.ascontiguousarray(turned), shares[-1], shares[pair[0]], shares[pair[1]]))

        return np.array(self.true_each(cliques, gap), dtype=np.int64)

    def true_group_tables(self, groups: Groups, pairs: Sequence[tuple[int, int]]) -> list[Table]:
        """For each pair of columns how many rows have each two groups of states (n_groups, n_groups).

        `groups` holds the group of every state of a column.
        """
        return self.true_each(pairs, lambda _, table: table, groups=groups)


class KeptTables:
    """Tables that were counted, up to a number of cells, and those that follow from them. SENSITIVE."""

    def __init__(self, most_cells: int) -> None:
        self._tables: dict[Clique, Table] = {}
        self._within: dict[Clique, Clique] = {}  # smaller ones, by the table that they are a sum of
        self._n_left = most_cells

    def __repr__(self) -> str:
        return "KeptTables(sensitive)"

    def __contains__(self, clique: Clique) -> bool:
        return clique in self._tables or clique in self._within

    def has_room(self, n_cells: int) -> bool:
        """Whether tables of so many cells can be kept as well."""
        return n_cells <= self._n_left

    def keep(self, clique: Clique, table: Table) -> bool:
        """Keep a table, if there is room; it can then no longer be written to."""
        if clique not in self and self.has_room(table.size):
            self._n_left -= table.size
            table.setflags(write=False)
            self._tables[clique] = table
            for column in clique if len(clique) > 1 else ():
                self._within.setdefault(tuple(other for other in clique if other != column), clique)
        return clique in self

    def get(self, clique: Clique, groups: Groups | None = None) -> Table | None:
        """A table of states, or of groups of them, where it was kept or is a sum of what was."""
        table = self._tables.get(clique)
        if table is None and clique in self._within:
            whole = self._within[clique]
            table = self._tables[whole].sum(axis=next(k for k, column in enumerate(whole) if column not in clique))
        return table if table is None or groups is None else group_table(table, clique, groups)

    def clear(self) -> None:
        """Forget all of them."""
        self._tables.clear()
        self._within.clear()


class KeptGroupTables:
    """Tables of groups of states that were counted, by the groups, up to a number of cells. SENSITIVE."""

    def __init__(self, most_cells: int) -> None:
        self._tables: dict[tuple[int, Clique], Table] = {}
        self._groups: dict[int, Groups] = {}  # held, so that no other object gets their number
        self._n_left = most_cells

    def __repr__(self) -> str:
        return "KeptGroupTables(sensitive)"

    def keep(self, clique: Clique, groups: Groups, table: Table) -> None:
        """Keep a copy of a table, if there is room."""
        if table.size <= self._n_left and (id(groups), clique) not in self._tables:
            self._n_left -= table.size
            self._groups[id(groups)] = groups
            kept = self._tables[id(groups), clique] = table.copy()
            kept.setflags(write=False)

    def get(self, clique: Clique, groups: Groups) -> Table | None:
        """The table of these very groups, where it was kept."""
        return self._tables.get((id(groups), clique))

    def clear(self) -> None:
        """Forget all of them."""
        self._tables.clear()
        self._groups.clear()


def true_distances(
    rows: StateTables, cliques: Sequence[Clique], expected: Sequence[NDArray[np.float64]]
) -> NDArray[np.int64]:
    """How far the tables of cliques are from public ones that a model expects, sum |n_cell - e_cell|. SENSITIVE.

    In steps of 1 / GAP_STEPS. One row more or less changes it by GAP_STEPS at most, another row in its place by twice
    that.
    """

    def distance(place: int, table: Table) -> int:
        steps = np.rint(GAP_STEPS * expected[place]).astype(np.int64)
        return int(np.abs(GAP_STEPS * table - steps).sum())

    return np.array(rows.true_each(cliques, distance), dtype=np.int64)


def true_interactions(
    rows: StateTables,
    cliques: Sequence[Clique],
    expected: Sequence[NDArray[Any]],
    functions: Sequence[NDArray[np.float64]],
    groups: Groups,
) -> NDArray[np.int64]:
    """How far the columns of cliques are from acting together as public tables expect, the most of all ways. SENSITIVE.

    A way takes one function of each column, with values from -1 to 1 for groups of its states, `functions[column]`
    (n_functions, n_groups), and sums their product over the rows: |sum over cells of (n_cell - e_cell) times the
    product|, in steps of 1 / GAP_STEPS. One row more or less changes it by GAP_STEPS at most, another row in its place
    by twice that.
    """

    def interaction(place: int, table: Table) -> int:
        ways: NDArray[Any] = np.ones((1, 1))
        for column in cliques[place]:
            function = functions[column]
            ways = (ways[:, None, :, None] * function[None, :, None, :]).reshape(
                len(ways) * len(function), ways.shape[1] * function.shape[1]
            )
        steps = np.rint(GAP_STEPS * ways).astype(np.int64)
        moved = steps @ table.ravel() - np.rint(steps @ expected[place].ravel()).astype(np.int64)
        return int(np.abs(moved).max())

    return np.array(rows.true_each(cliques, interaction, groups=groups), dtype=np.int64)


@compiled
def _gap(
    table: NDArray[np.int64],
    totals: NDArray[np.float64],
    first: NDArray[np.float64],
    second: NDArray[np.float64],
) -> int:
    """The gap of a table (n_classes, n_states, n_states) from what its classes and their shares say."""
    by_chance, gap = 0.0, 0
    for t in range(table.shape[0]):
        for a in range(table.shape[1]):
            for b in range(table.shape[2]):
                expected = totals[t] * first[t, a] * second[t, b]
                by_chance += min(np.sqrt(2 / np.pi * expected), 2 * expected)
                step = np.int64(np.rint(GAP_STEPS * expected))
                gap += abs(GAP_STEPS * table[t, a, b] - step)
    return int(gap - np.int64(np.rint(GAP_STEPS * by_chance)))
