"""Tables of a forest that are counted where the rows are: in passes, of which each counts many tables.

How a table is counted follows from public numbers (the model of costs in `is_held` and `CountedStates`):

    held        a byte for each row and column, if that is no more than half of the limit of memory: one pass, and
                none for whatever is asked later
    counted     otherwise; all pairs, or with a target all triples with it, in one pass if their tables take no more
                than a quarter of the limit, which does not depend on rows; later, a pass for what a turn compares and
                one for what it chose
    in portions where there are so many columns that the tables of all pairs take more: a pass for as many as fit

Passes over a table that does not change are one table. So every table must agree with those of earlier passes: its sums
over all but one or two columns are compared with what was counted before (engines.proof.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from spinney.counting.joint import Clique, Groups, Table, TableRequest, group_table
from spinney.counting.state_tables import KeptGroupTables, KeptTables, StateTables
from spinney.errors import ParameterError
from spinney.tables.source import table_changed

T = TypeVar("T")

# Levels of rows may take this part of the limit, and tables that are kept, or are being counted, that part each.
_HELD_PART, _TABLE_PART = 2, 4
_NUMBER_BYTES = 8
# A cell of the largest table has to fit into what tables may take.
_BYTES_A_CELL = _NUMBER_BYTES * _TABLE_PART


def is_held(n_rows: int, n_columns: int, most_states: int, memory_limit: int) -> bool:
    """Whether the levels of all rows are held: they take no more than half of the limit."""
    return n_rows * n_columns * (1 if most_states <= 256 else 2) <= memory_limit // _HELD_PART


def check_room(n_cells: int, memory_limit: int) -> None:
    """Raise a ParameterError where the limit has no room for a table of so many cells."""
    n_bytes = _BYTES_A_CELL * n_cells
    if n_bytes > memory_limit:
        raise ParameterError(
            f"SPINNEY_MEMORY_LIMIT is {memory_limit:,} bytes, and the largest table of this forest, of {n_cells:,} "
            f"cells, needs {n_bytes:,} to be counted; set SPINNEY_MEMORY_LIMIT={math.ceil(n_bytes / 2**20)}MiB or "
            "more, or choose a lower quality or a smaller workload"
        )


class CountedStates(StateTables):
    """Tables that passes over the rows count. SENSITIVE.

    Args:
        sizes: how many states each column has.
        n_rows: how many rows there are.
        count: makes one pass, and gives the vector of what is asked for.
        memory_limit: bytes for all tables together and half of what else there is.
        close: called at the end.
    """

    def __init__(
        self,
        sizes: tuple[int, ...],
        n_rows: int,
        count: Callable[[TableRequest], NDArray[np.int64]],
        *,
        memory_limit: int,
        close: Callable[[], None],
    ) -> None:
        super().__init__(sizes, n_rows)
        self._count, self._close = count, close
        self._most_kept = memory_limit // _TABLE_PART // _NUMBER_BYTES
        self._kept, self._ready = KeptTables(self._most_kept), KeptTables(0)
        self._coarse = KeptGroupTables(self._most_kept // 2)
        self._ones: dict[int, Table] = {}  # how many rows each state of a column has

    def prepare(self, cliques: Sequence[Clique], *, keeps: bool = False) -> None:
        """Have tables counted together. Those that there is no room for are counted when they are asked for."""
        if not keeps:
            self._ready = KeptTables(self._most_kept)
        place = self._kept if keeps else self._ready
        wanted, n_cells = [], 0
        for clique in dict.fromkeys(tuple(sorted(clique)) for clique in cliques):
            size = math.prod(self.sizes[column] for column in clique)
            if clique not in self._kept and place.has_room(n_cells + size):
                wanted.append(clique)
                n_cells += size
        for some, tables in self._passes(wanted, None):
            for clique, table in zip(some, tables, strict=True):
                place.keep(clique, table.copy())

    def true_each(
        self, cliques: Sequence[Clique], use: Callable[[int, Table], T], *, groups: Groups | None = None
    ) -> list[T]:
        found: dict[Clique, T] = {}
        places = {clique: place for place, clique in enumerate(cliques)}
        missing = []
        for clique, place in places.items():
            table = self._known(clique, groups)
            if table is None:
                missing.append(clique)
            else:
                found[clique] = use(place, table)
        for some, tables in self._passes(missing, groups):
            for clique, table in zip(some, tables, strict=True):
                if groups is not None:
                    self._coarse.keep(clique, groups, table)
                found[clique] = use(places[clique], table)
        return [found[clique] for clique in cliques]

    def close(self) -> None:
        self._kept.clear()
        self._ready.clear()
        self._coarse.clear()
        self._ones.clear()
        self._close()

    def _known(self, clique: Clique, groups: Groups | None = None) -> Table | None:
        table = None if groups is None else self._coarse.get(clique, groups)
        for kept in (self._kept, self._ready):
            table = kept.get(clique, groups) if table is None else table
        return table

    def _passes(self, cliques: Sequence[Clique], groups: Groups | None) -> Iterator[tuple[list[Clique], list[Table]]]:
        """Tables of cliques, as many in one pass as there is room for, once they agree with those before."""
        for some in self._portions(cliques, groups):
            request = TableRequest(self.sizes, some, groups)
            tables = list(request.tables(self._count(request)))
            seen: dict[Clique, Table | None] = {}  # what earlier passes say of columns and pairs
            for clique, table in zip(some, tables, strict=True):
                self._compare(clique, table, groups, seen)
            yield some, tables

    def _portions(self, cliques: Sequence[Clique], groups: Groups | None) -> Iterator[list[Clique]]:
        """Cliques whose tables, counted by two threads and summed, take what tables may take, or single ones."""
        widths = self.sizes if groups is None else [int(group.max()) + 1 for group in groups]
        some: list[Clique] = []
        n_cells = 0
        for clique in cliques:
            size = math.prod(widths[column] for column in clique)
            if some and n_cells + size > self._most_kept // 3:
                yield some
                some, n_cells = [], 0
            some.append(clique)
            n_cells += size
        if some:
            yield some

    def _compare(self, clique: Clique, table: Table, groups: Groups | None, seen: dict[Clique, Table | None]) -> None:
        """Raise if a table is not of the rows that earlier passes saw."""
        if int(table.sum()) != self.n_rows:
            raise table_changed()
        within: list[Clique] = [(axis,) for axis in range(len(clique))]
        if len(clique) > 2:
            within += combinations(range(len(clique)), 2)
        for axes in within:
            part = tuple(clique[axis] for axis in axes)
            sums = table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in axes))
            if part not in seen:
                seen[part] = self._seen_before(part, groups)
            known = seen[part]
            if known is None:
                seen[part] = sums
                if groups is None and len(part) == 1:
                    self._ones[part[0]] = sums
            elif not np.array_equal(sums, known):
                raise table_changed()

    def _seen_before(self, part: Clique, groups: Groups | None) -> Table | None:
        """What earlier passes say of a column or a pair."""
        if len(part) > 1:
            return self._kept.get(part, groups)
        known = self._ones.get(part[0])
        return known if known is None or groups is None else group_table(known, part, groups)
