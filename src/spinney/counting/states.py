"""Rows as states: each column cut into a few numbered states. SENSITIVE.

A forest looks at a table column by column, then at a few columns together. `StateRows` holds one small number for every
row and column, for tables that are in memory, or small enough; its tables are counted when they are asked for, and
those of pairs are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from spinney.columns.physical import Physical
from spinney.compiled import compiled
from spinney.counting.cells import AxisCells, encode_rows
from spinney.counting.joint import Clique, Groups, Table, TableRequest
from spinney.counting.state_tables import KeptGroupTables, KeptTables, StateTables
from spinney.errors import InputError
from spinney.parallel import each, n_threads
from spinney.schema.lattice import Axis, Lattice

T = TypeVar("T")
States = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]

_BLOCK = 1 << 15
# Up to this many cells, a table from cell to state is looked up; beyond, the leaf is searched for.
_LOOKUP_CELLS = 1 << 21
# Stairs are searched for from the last one that begins before a range of cells, of which there are so many.
_RANGE_BITS = 16
# Up to this many stairs are compared one and all.
_FEW_STAIRS = 8
# Tables of pairs are kept where all of them together have no more cells than this: 64 MiB.
_MOST_KEPT = 1 << 23
# Cells of tables that are counted together: 1 MiB.
_CACHED_CELLS = 1 << 17


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """How a column is cut into states: cells from `first[k]` up to the next belong to state `states[k]`. Public."""

    axis: Axis
    first: NDArray[np.int64]  # ascending, from the axis's first cell on
    states: NDArray[np.int64]

    @property
    def n_states(self) -> int:
        return int(self.states.max()) + 1

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that a state is found by."""
        return (self.axis.name,)


@dataclass(frozen=True, slots=True, eq=False)
class RegionCut:
    """How a place is cut into states, by its cells in the order of their codes: from `first[k]` up to the next. Public.

    Every `first` begins a node of the lattice, whose codes have at most 62 bits.
    """

    lattice: Lattice
    first: NDArray[np.int64]  # ascending, from 0 on
    states: NDArray[np.int64]

    @property
    def n_states(self) -> int:
        return int(self.states.max()) + 1

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that a state is found by."""
        return tuple(axis.name for axis in self.lattice.axes)


AnyCut = Cut | RegionCut


class StateRows(StateTables):
    """The states of all rows (n_columns, n_rows) under public cuts."""

    def __init__(self, true_states: States, sizes: tuple[int, ...]) -> None:
        super().__init__(sizes, true_states.shape[1])
        self.true_states = true_states
        n_cells = sum(first * second for first, second in combinations(sizes, 2))
        self._kept = KeptTables(n_cells if n_cells <= _MOST_KEPT else 0)
        self._coarse = KeptGroupTables(_MOST_KEPT)

    def prepare(self, cliques: Sequence[Clique], *, keeps: bool = False) -> None:
        """Rows are at hand: there is nothing to prepare."""

    def close(self) -> None:
        self._kept.clear()
        self._coarse.clear()

    def true_each(
        self, cliques: Sequence[Clique], use: Callable[[int, Table], T], *, groups: Groups | None = None
    ) -> list[T]:
        def work(part: NDArray[np.int64]) -> list[tuple[int, T]]:
            known = {int(place): self._known(cliques[place], groups) for place in part}
            done = [(place, use(place, table)) for place, table in known.items() if table is not None]
            missing = [place for place, table in known.items() if table is None]
            for some in self._portions(missing, cliques, groups):
                request = TableRequest(self.sizes, [cliques[place] for place in some], groups)
                sums = np.zeros(request.n_numbers, dtype=np.int64)
                request.add(self.true_states, sums)
                for place, table in zip(some, request.tables(sums), strict=True):
                    if groups is not None:
                        self._coarse.keep(cliques[place], groups, table)
                    elif len(cliques[place]) == 2:
                        self._kept.keep(cliques[place], table)
                    done.append((place, use(place, table)))
            return done

        # Of groups every part looks at all rows anew, to put them into bits.
        parts = _parts(len(cliques), 4 * n_threads() if groups is None else n_threads())
        title = "comparing columns" if len(cliques) > 1 else None
        found = dict(pair for some in each(work, parts, title=title) for pair in some)
        return [found[place] for place in range(len(cliques))]

    def _known(self, clique: Clique, groups: Groups | None) -> Table | None:
        table = None if groups is None else self._coarse.get(clique, groups)
        return self._kept.get(clique, groups) if table is None else table

    def _portions(self, places: list[int], cliques: Sequence[Clique], groups: Groups | None) -> list[list[int]]:
        """Tables to count at once: all of groups, which are small, or of states as many as stay in cache."""
        if groups is not None:
            return [places] if places else []
        portions: list[list[int]] = []
        held = 0
        for place in places:
            n_cells = int(np.prod([self.sizes[column] for column in cliques[place]]))
            if not portions or held + n_cells > _CACHED_CELLS:
                portions.append([])
                held = 0
            portions[-1].append(place)
            held += n_cells
        return portions


def _parts(n_items: int, n_parts: int) -> list[NDArray[np.int64]]:
    """The numbers of all items in parts for threads."""
    return np.array_split(np.arange(n_items), max(1, min(n_items, n_parts)))


def states_array(cuts: Sequence[AnyCut], n_rows: int) -> StateRows:
    """Room for the states of so many rows."""
    sizes = tuple(cut.n_states for cut in cuts)
    dtype: Any = np.uint8 if max(sizes) <= 256 else np.uint16
    return StateRows(np.empty((len(cuts), n_rows), dtype=dtype), sizes)


def fill_states(values: Sequence[Physical], cut: AnyCut, row: States) -> None:
    """Write the states of one column or place of a table (n_rows,), or an InputError where a row has none."""
    StateFinder(cut, row.dtype).fill(values, row)


class StateFinder:
    """Finds states under a public cut, of one part of a table after the other.

    Args:
        cut: how a column or a place is cut.
        dtype: of what is written.
    """

    def __init__(self, cut: AnyCut, dtype: np.dtype[Any]) -> None:
        self._cut, self._lookup = cut, None
        is_new = np.append(True, np.diff(cut.states) != 0)  # neighbours of equal state are one stair
        self._stairs, self._states = cut.first[is_new], cut.states[is_new].astype(dtype)
        n_bits = cut.axis.bits if isinstance(cut, Cut) else cut.lattice.depth
        self._before, self._shift = stairs_before(self._stairs, n_bits)
        if isinstance(cut, Cut) and 1 << cut.axis.bits <= _LOOKUP_CELLS:
            ends = np.append(cut.first[1:], 1 << cut.axis.bits)
            self._lookup = np.repeat(cut.states, ends - cut.first).astype(dtype)

    def fill(self, values: Sequence[Physical], row: States) -> None:
        """Write the states of some rows (n_rows,), or an InputError where a row has none. Threads may do so at once."""
        cut = self._cut
        if isinstance(cut, RegionCut):
            self._fill_regions(values, cut, row)
            return
        column = AxisCells(values[0], cut.axis)
        cells = np.empty(_BLOCK, dtype=np.int64)
        for start in range(0, len(row), _BLOCK):
            stop = min(start + _BLOCK, len(row))
            here = cells[: stop - start]
            if column.fill(start, stop, here):
                raise InputError(f"column {cut.axis.name!r} holds a missing or non-finite value")
            if self._lookup is not None:
                _look_up(here, self._lookup, row[start:stop])
            else:
                self._search(here, row[start:stop])

    def _fill_regions(self, values: Sequence[Physical], cut: RegionCut, row: States) -> None:
        columns = [AxisCells(column, axis) for column, axis in zip(values, cut.lattice.axes, strict=True)]
        codes = np.empty((_BLOCK, 1), dtype=np.uint64)
        shift = np.uint64(64 - cut.lattice.depth)
        for start in range(0, len(row), _BLOCK):
            here = codes[: min(_BLOCK, len(row) - start)]
            encode_rows(columns, cut.lattice, start, here)
            cells = (here[:, 0] >> shift).astype(np.int64)
            self._search(cells, row[start : start + len(here)])

    def _search(self, cells: NDArray[np.int64], row: States) -> None:
        _find_states(cells, self._stairs, self._states, self._before, self._shift, row)


def stairs_before(
    first: NDArray[np.int64], n_bits: int, range_bits: int = _RANGE_BITS
) -> tuple[NDArray[np.int64], int]:
    """For ranges of cells of so many bits the last stair that begins at or before each, and one more at the end.

    There are 2^`range_bits` ranges at most. A cell's range is the cell without as many bits as the second number says.
    """
    shift = max(0, n_bits - range_bits)
    starts = np.arange(1 << (n_bits - shift), dtype=np.int64) << shift
    return np.append(np.searchsorted(first, starts, side="right") - 1, len(first) - 1), shift


@compiled
def _look_up(cells: NDArray[np.int64], lookup: States, row: States) -> None:
    for i in range(cells.size):
        row[i] = lookup[cells[i]]


@compiled
def _find_states(
    cells: NDArray[np.int64],
    first: NDArray[np.int64],
    states: States,
    before: NDArray[np.int64],
    shift: int,
    row: States,
) -> None:
    """The state of the last stair that does not begin after each cell, between the first and the last of its range.

    They are found by halving, down to a few that are all compared: that takes no branches, and vectors of them.
    """
    for i in range(cells.size):
        stair, stop = before[cells[i] >> shift], before[(cells[i] >> shift) + 1] + 1
        while stop - stair > _FEW_STAIRS:
            half = (stair + stop) // 2
            if first[half] <= cells[i]:
                stair = half
            else:
                stop = half
        n_passed = 0
        for k in range(stair + 1, stop):
            n_passed += first[k] <= cells[i]
        row[i] = states[stair + n_passed]
