"""Rows as states: columns cut into a few numbered states, and exact tables of how often they meet. SENSITIVE.

    grouped cells              cells of rows that come in groups, each with its number of rows
    state tables               what a forest asks, whoever counts; gaps, distances and interactions
    distances of a release     how far the tables of a release are from those of all rows
    states of rows             `StateRows`: one small number for every row and column, found under public cuts
    weighted rows              tables of whole units, to which a person adds no more than a public number

A forest looks at a table column by column, then at a few columns together. Only functions that have charged a
ledger may ask.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from spinney.columns.reading import Physical
from spinney.compiled import compiled
from spinney.counting.counts import AxisCells, CellCounts, encode_rows
from spinney.counting.joint import Clique, Groups, TableRequest, TrueTable, group_table
from spinney.counting.sorting import Counts, counts_type, merge_counted
from spinney.errors import InputError
from spinney.grid.codes import Codes
from spinney.grid.lattice import Axis, Lattice
from spinney.machine import each, n_threads
from spinney.text import NeverPickled, Sensitive

# -------------------------------------------------------------------------------------------------------- grouped cells
# Cells of rows that come in groups, each with its number of rows.
#
# An engine that groups equal rows hands over one row of each group, in any order and in batches. Different rows
# may lie in one cell, within a batch and across batches: their numbers are added up.


class GroupedCells(Sensitive):
    """Counts of all groups so far.

    Args:
        lattice: what the rows are counted on.
        n_rows: how many rows there will be, at most.
    """

    def __init__(self, lattice: Lattice, *, n_rows: int) -> None:
        self._lattice = lattice
        self._counts_type = counts_type(n_rows)
        self._codes: Codes = np.empty((0, lattice.n_words), dtype=np.uint64)
        self._counts: Counts = np.empty(0, dtype=self._counts_type)
        self.true_total = 0

    def add(self, codes: Codes, true_counts: NDArray[np.int64]) -> None:
        """Count groups whose rows have these codes (n, n_words) and numbers (n,)."""
        self.true_total += int(true_counts.sum())
        if not len(codes):
            return
        order = np.lexsort(codes.T[::-1])
        ordered = codes[order]
        is_first = np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))
        sums: NDArray[Any] = np.add.reduceat(true_counts[order], np.flatnonzero(is_first))
        fresh = np.ascontiguousarray(ordered[is_first])
        self._codes, self._counts = merge_counted(
            self._codes, self._counts, fresh, sums.astype(self._counts_type, copy=False)
        )

    def merged(self) -> CellCounts:
        """All counts together."""
        return CellCounts(self._lattice, self._codes, self._counts)


# --------------------------------------------------------------------------------------------------------- state tables
# Exact tables of how often states of a few columns meet, whoever counts them.
#
# A forest asks for tables of pairs and of a few larger sets of columns, and scores them. Whether rows are held
# in memory or are counted where they are, one pass after the other, the numbers are the same: everything here
# is a function of the tables alone.


T = TypeVar("T")

# A gap between two tables is counted in these parts of a row, so that it is a whole number.
GAP_STEPS = 1 << 10


class StateTables(NeverPickled, ABC):
    """Tables of the states of all rows under public cuts; `sizes` says how many states each column has."""

    def __init__(self, sizes: tuple[int, ...], n_rows: int) -> None:
        self.sizes, self.n_rows = sizes, n_rows

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def true_each(
        self, cliques: Sequence[Clique], use: Callable[[int, TrueTable], T], *, groups: Groups | None = None
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

    def true_table(self, clique: Clique) -> TrueTable:
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

        def gap(place: int, table: TrueTable) -> int:
            clique, pair = cliques[place], wanted[place]
            if by is None:
                turned = table.transpose([clique.index(column) for column in pair])[None]
            else:
                turned = table.transpose([clique.index(column) for column in (by, *pair)])
            return int(_gap(np.ascontiguousarray(turned), shares[-1], shares[pair[0]], shares[pair[1]]))

        return np.array(self.true_each(cliques, gap), dtype=np.int64)

    def true_group_tables(self, groups: Groups, pairs: Sequence[tuple[int, int]]) -> list[TrueTable]:
        """For each pair of columns how many rows have each two groups of states (n_groups, n_groups).

        `groups` holds the group of every state of a column.
        """
        return self.true_each(pairs, lambda _, table: table, groups=groups)


class KeptTables(Sensitive):
    """Tables that were counted, up to a number of cells, and those that follow from them. SENSITIVE."""

    def __init__(self, most_cells: int) -> None:
        self._tables: dict[Clique, TrueTable] = {}
        self._within: dict[Clique, Clique] = {}  # smaller ones, by the table that they are a sum of
        self._n_left = most_cells

    def __contains__(self, clique: Clique) -> bool:
        return clique in self._tables or clique in self._within

    def has_room(self, n_cells: int) -> bool:
        """Whether tables of so many cells can be kept as well."""
        return n_cells <= self._n_left

    def keep(self, clique: Clique, table: TrueTable) -> bool:
        """Keep a table, if there is room; it can then no longer be written to."""
        if clique not in self and self.has_room(table.size):
            self._n_left -= table.size
            table.setflags(write=False)
            self._tables[clique] = table
            for column in clique if len(clique) > 1 else ():
                self._within.setdefault(tuple(other for other in clique if other != column), clique)
        return clique in self

    def get(self, clique: Clique, groups: Groups | None = None) -> TrueTable | None:
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


class KeptGroupTables(Sensitive):
    """Tables of groups of states that were counted, by the groups, up to a number of cells. SENSITIVE."""

    def __init__(self, most_cells: int) -> None:
        self._tables: dict[tuple[int, Clique], TrueTable] = {}
        self._groups: dict[int, Groups] = {}  # held, so that no other object gets their number
        self._n_left = most_cells

    def keep(self, clique: Clique, groups: Groups, table: TrueTable) -> None:
        """Keep a copy of a table, if there is room."""
        if table.size <= self._n_left and (id(groups), clique) not in self._tables:
            self._n_left -= table.size
            self._groups[id(groups)] = groups
            kept = self._tables[id(groups), clique] = table.copy()
            kept.setflags(write=False)

    def get(self, clique: Clique, groups: Groups) -> TrueTable | None:
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

    def distance(place: int, table: TrueTable) -> int:
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

    def interaction(place: int, table: TrueTable) -> int:
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


# ----------------------------------------------------------------------------------------------- distances of a release
# How far the tables of a release are from those of all rows, set by set: the mean and the largest.
#
# Distances are sums of absolute differences of counts, in steps of 1 / GAP_STEPS of a row (`true_distances`).
# What a release expects is public when this is called. One row more or less moves each distance by GAP_STEPS at
# most, so the mean, rounded down, and the largest of them too; another row in its place by twice that
# (`tree/utility.proof.md`).


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedTables:
    """Tables of some columns as a release has them, in rows. Public."""

    cliques: tuple[Clique, ...]
    tables: tuple[NDArray[np.float64], ...]

    @property
    def most_cells(self) -> int:
        """How many cells the largest of them has."""
        return max(table.size for table in self.tables)


def true_figures(rows: StateTables, expected: Sequence[ExpectedTables]) -> NDArray[np.int64]:
    """The mean, rounded down, and the largest distance of each set of tables, (2 n_sets,). SENSITIVE."""
    figures: list[int] = []
    for some in expected:
        distances = true_distances(rows, some.cliques, some.tables).tolist()
        figures += [sum(distances) // len(distances), max(distances)]
    return np.array(figures, dtype=np.int64)


# ------------------------------------------------------------------------------------------------------- states of rows
# Each column cut into a few numbered states.
#
# `StateRows` holds one small number for every row and column, for tables that are in memory, or small enough;
# its tables are counted when they are asked for, and those of pairs are kept.


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
        self, cliques: Sequence[Clique], use: Callable[[int, TrueTable], T], *, groups: Groups | None = None
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

    def _known(self, clique: Clique, groups: Groups | None) -> TrueTable | None:
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


# -------------------------------------------------------------------------------------------------------- weighted rows
# Tables of whole units, to which a person adds no more than a public number.
#
# A person with m rows has `units // m` units in each of them. So a table of rows, whatever its cells are, moves
# by `units` at most where a person comes or goes, however many rows they have. Sums are of whole numbers and
# exact.


Units = NDArray[np.int64]
Lines = Callable[[int], NDArray[Any]]  # the states of all rows in one variable, by its number


class WeightedRows(NeverPickled):
    """Units of rows in the order of persons.

    Args:
        starts: where every person's rows begin, and the number of all rows.
        units: how many a person has, at most.
    """

    def __init__(self, starts: NDArray[np.int64], units: int) -> None:
        n_rows = np.diff(starts)
        if len(n_rows) * units >= 1 << 60:
            raise OverflowError("too many persons for exact sums of their units")
        self.true_units = np.repeat(units // np.maximum(n_rows, 1), n_rows)

    def true_pieces(self, values: Physical, cut: Cut) -> Units:
        """How many units lie in each state of a public cut of one column."""
        states = np.empty(len(self.true_units), dtype=np.uint32)
        StateFinder(cut, states.dtype).fill([values], states)
        return self.true_table([states], [cut.n_states])

    def true_table(self, lines: Sequence[NDArray[Any]], sizes: Sequence[int]) -> Units:
        """How many units have each combination of states of a few variables, as a vector in C order."""
        cells = np.zeros(len(self.true_units), dtype=np.int64)
        for line, size in zip(lines, sizes, strict=True):
            cells *= size
            cells += line
        sums = np.zeros(int(np.prod(sizes)), dtype=np.int64)
        _add_units(cells, self.true_units, sums)
        return sums


@compiled
def _add_units(cells: NDArray[np.int64], units: NDArray[np.int64], sums: NDArray[np.int64]) -> None:
    for row in range(cells.size):
        sums[cells[row]] += units[row]
