"""Rows as states: each column cut into a few numbered states, and exact tables of how often they meet. SENSITIVE.

A forest looks at a table column by column, then at a few columns together. `StateRows` holds one small number for every
row and column; it answers with exact counts, which only functions that have charged a ledger may ask for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from spinney.columns.physical import Physical
from spinney.compiled import compiled
from spinney.counting.cells import AxisCells, encode_rows
from spinney.errors import InputError
from spinney.parallel import each, n_threads
from spinney.schema.lattice import Axis, Lattice

Clique = tuple[int, ...]
States = NDArray[np.uint8] | NDArray[np.uint16]

_BLOCK = 1 << 15
# Rows whose cells stay next to the processor until they are counted.
_FEW_ROWS = 1 << 10
# Up to this many cells, a table from cell to state is looked up; beyond, the leaf is searched for.
_LOOKUP_CELLS = 1 << 21
# Up to this many stairs are compared one and all.
_FEW_STAIRS = 64
# A gap between two tables is counted in these parts of a row, so that it is a whole number.
GAP_STEPS = 1 << 10


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


class StateRows:
    """The states of all rows (n_columns, n_rows) under public cuts."""

    __slots__ = ("n_rows", "sizes", "true_states")

    def __init__(self, true_states: States, sizes: tuple[int, ...]) -> None:
        self.true_states = true_states
        self.sizes = sizes
        self.n_rows = true_states.shape[1]

    def __repr__(self) -> str:
        return "StateRows(sensitive)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("StateRows holds private rows and is never pickled")

    def true_table(self, clique: Clique) -> NDArray[np.int64]:
        """How many rows have each combination of states of a few columns."""
        shape = tuple(self.sizes[column] for column in clique)
        return count_states(self.true_states, clique, self.sizes).reshape(shape)

    def grouped(self, groups: Sequence[NDArray[np.uint8]]) -> StateRows:
        """The same rows under coarser states: `groups[column][state]`. Public groups; the rows stay sensitive."""
        return StateRows(group_rows(self.true_states, groups), tuple(int(group.max()) + 1 for group in groups))

    def true_gaps(
        self, pairs: NDArray[np.int64], shares: Sequence[NDArray[np.float64]], by: int | None = None
    ) -> NDArray[np.int64]:
        """How far each pair of columns is from independence, given column `by` if there is one.

        sum over i, j, t of |n_ijt - e_ijt|, e_ijt = n_t P(i|t) P(j|t), in steps of 1 / GAP_STEPS, where `shares[c][t]`
        holds P(state of c | t) of column c, and the last of `shares` the n_t; less the sum that independent columns
        would show by chance, or pairs of many states would always seem far. One row more or less changes a gap
        by GAP_STEPS at most, another row in its place by twice that.
        """
        if by is None:
            classes, n_classes = np.zeros(self.n_rows, dtype=self.true_states.dtype), 1
        else:
            classes, n_classes = self.true_states[by], self.sizes[by]
        width = max(self.sizes)
        padded = np.zeros((len(shares) - 1, n_classes, width))
        for column, share in enumerate(shares[:-1]):
            padded[column, :, : share.shape[1]] = share
        gaps = np.empty(len(pairs), dtype=np.int64)

        def compare(part: NDArray[np.int64]) -> None:
            gaps[part] = _gaps(self.true_states, pairs[part], classes, padded, shares[-1], width)

        each(compare, _parts(len(pairs)), title="comparing columns")
        return gaps

    def true_group_tables(
        self, groups: Sequence[NDArray[np.uint8]], pairs: Sequence[tuple[int, int]]
    ) -> NDArray[np.int64]:
        """For each pair of columns how many rows have each two groups of states (n_pairs, most groups, most groups).

        `groups` holds the group of every state of a column. The tables of a pair share no row.
        """
        n_groups = max(int(group.max()) + 1 for group in groups)
        columns = sorted({column for pair in pairs for column in pair})
        lines = {column: groups[column][self.true_states[column]] for column in columns}
        tables = np.zeros((len(pairs), n_groups, n_groups), dtype=np.int64)

        def count(part: NDArray[np.int64]) -> None:
            for place in part:
                i, j = pairs[place]
                _count_pair(lines[i], lines[j], tables[place])

        each(count, _parts(len(pairs)), title="comparing columns")
        return tables


def _parts(n_items: int) -> list[NDArray[np.int64]]:
    """The numbers of all items in parts for threads, more of them than threads."""
    return np.array_split(np.arange(n_items), max(1, min(n_items, 8 * n_threads())))


def states_array(cuts: Sequence[AnyCut], n_rows: int) -> StateRows:
    """Room for the states of so many rows."""
    sizes = tuple(cut.n_states for cut in cuts)
    dtype: Any = np.uint8 if max(sizes) <= 256 else np.uint16
    return StateRows(np.empty((len(cuts), n_rows), dtype=dtype), sizes)


def fill_states(values: Sequence[Physical], cut: AnyCut, row: States) -> None:
    """Write the states of one column or place of a table (n_rows,), or an InputError where a row has none."""
    if isinstance(cut, RegionCut):
        _fill_regions(values, cut, row)
        return
    column = AxisCells(values[0], cut.axis)
    cells = np.empty(_BLOCK, dtype=np.int64)
    lookup = None
    if 1 << cut.axis.bits <= _LOOKUP_CELLS:
        ends = np.append(cut.first[1:], 1 << cut.axis.bits)
        lookup = np.repeat(cut.states, ends - cut.first).astype(row.dtype)
    is_new = np.append(True, np.diff(cut.states) != 0)  # neighbours of equal state are one stair
    stairs, states = cut.first[is_new], cut.states[is_new].astype(row.dtype)
    for start in range(0, len(row), _BLOCK):
        stop = min(start + _BLOCK, len(row))
        here = cells[: stop - start]
        if column.fill(start, stop, here):
            raise InputError(f"column {cut.axis.name!r} holds a missing or non-finite value")
        if lookup is not None:
            row[start:stop] = lookup[here]
        else:
            _find_states(here, stairs, states, row[start:stop])


def _fill_regions(values: Sequence[Physical], cut: RegionCut, row: States) -> None:
    columns = [AxisCells(column, axis) for column, axis in zip(values, cut.lattice.axes, strict=True)]
    codes = np.empty((_BLOCK, 1), dtype=np.uint64)
    states: Any = cut.states.astype(row.dtype)
    shift = np.uint64(64 - cut.lattice.depth)
    for start in range(0, len(row), _BLOCK):
        here = codes[: min(_BLOCK, len(row) - start)]
        encode_rows(columns, cut.lattice, start, here)
        _find_states((here[:, 0] >> shift).astype(np.int64), cut.first, states, row[start : start + len(here)])


@compiled
def _find_states(cells: NDArray[np.int64], first: NDArray[np.int64], states: States, row: States) -> None:
    """The state of the last stair that does not begin after each cell.

    Stairs are found by halving, down to a few that are all compared: that takes no branches, and vectors of them.
    """
    for i in range(cells.size):
        stair, stop = 0, first.size
        while stop - stair > _FEW_STAIRS:
            half = (stair + stop) // 2
            if first[half] <= cells[i]:
                stair = half
            else:
                stop = half
        n_passed = 0
        for k in range(stair, stop):
            n_passed += first[k] <= cells[i]
        row[i] = states[stair + n_passed - 1]


def true_distances(
    rows: StateRows, cliques: Sequence[Clique], expected: Sequence[NDArray[np.float64]]
) -> NDArray[np.int64]:
    """How far the tables of cliques are from public ones that a model expects, sum |n_cell - e_cell|. SENSITIVE.

    In steps of 1 / GAP_STEPS. One row more or less changes it by GAP_STEPS at most, another row in its place by twice
    that.
    """
    distances = np.empty(len(cliques), dtype=np.int64)

    def compare(part: NDArray[np.int64]) -> None:
        for place in part:
            steps = np.rint(GAP_STEPS * expected[place]).astype(np.int64)
            distances[place] = np.abs(GAP_STEPS * rows.true_table(cliques[place]) - steps).sum()

    each(compare, _parts(len(cliques)))
    return distances


def true_interactions(
    rows: StateRows,
    cliques: Sequence[Clique],
    expected: Sequence[NDArray[np.float64]],
    functions: Sequence[NDArray[np.float64]],
) -> NDArray[np.int64]:
    """How far the columns of cliques are from acting together as public tables expect, the most of all ways. SENSITIVE.

    A way takes one function of each column, with values from -1 to 1 for its states, `functions[column]` (n_functions,
    n_states), and sums their product over the rows: |sum over cells of (n_cell - e_cell) times the product|, in steps
    of 1 / GAP_STEPS. One row more or less changes it by GAP_STEPS at most, another row in its place by twice that.
    """

    def interaction(clique: Clique, table: NDArray[np.float64]) -> int:
        ways: NDArray[Any] = np.ones((1, 1))
        for column in clique:
            ways = np.kron(ways, functions[column])
        steps = np.rint(GAP_STEPS * ways).astype(np.int64)
        moved = steps @ rows.true_table(clique).ravel() - np.rint(steps @ table.ravel()).astype(np.int64)
        return int(np.abs(moved).max())

    return np.array(each(interaction, cliques, expected), dtype=np.int64)


def group_rows(states: NDArray[Any], groups: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """The group `groups[column][state]` of every state (n_columns, n_rows)."""
    coarse = np.empty(states.shape, dtype=np.uint8)
    for column, group in enumerate(groups):
        np.take(group, states[column], out=coarse[column])
    return coarse


def count_states(states: NDArray[Any], clique: Clique, sizes: Sequence[int]) -> NDArray[np.int64]:
    """How many rows of (n_columns, n_rows) states are in each cell of a clique's table, in C order."""
    shape = np.array([sizes[column] for column in clique], dtype=np.int64)
    return _count(states, np.array(clique, dtype=np.int64), shape)


@compiled
def _count(states: NDArray[Any], clique: NDArray[np.int64], shape: NDArray[np.int64]) -> NDArray[np.int64]:
    counts = np.zeros(np.prod(shape), dtype=np.int64)
    if len(clique) == 2:
        first, second, step = states[clique[0]], states[clique[1]], shape[1]
        for row in range(first.size):
            counts[np.int64(first[row]) * step + second[row]] += 1
        return counts
    cells = np.empty(_FEW_ROWS, dtype=np.int64)  # of a few rows, column by column, which takes many rows at a time
    for start in range(0, states.shape[1], _FEW_ROWS):
        stop = min(start + _FEW_ROWS, states.shape[1])
        cells[:] = 0
        for place in range(len(clique)):
            line, step = states[clique[place], start:stop], shape[place]
            for row in range(stop - start):
                cells[row] = cells[row] * step + line[row]
        for row in range(stop - start):
            counts[cells[row]] += 1
    return counts


@compiled
def _count_pair(first: NDArray[np.uint8], second: NDArray[np.uint8], table: NDArray[np.int64]) -> None:
    for row in range(first.size):
        table[first[row], second[row]] += 1


@compiled
def _gaps(
    states: States,
    pairs: NDArray[np.int64],
    classes: NDArray[Any],
    shares: NDArray[np.float64],
    totals: NDArray[np.float64],
    width: int,
) -> NDArray[np.int64]:
    n_classes = totals.size
    gaps = np.zeros(len(pairs), dtype=np.int64)
    table = np.empty(n_classes * width * width, dtype=np.int64)
    for k in range(len(pairs)):
        i, j = pairs[k]
        by_chance = 0.0
        table[:] = 0
        first, second = states[i], states[j]
        if n_classes == 1:
            for row in range(first.size):
                table[np.int64(first[row]) * width + second[row]] += 1
        else:
            for row in range(first.size):
                table[(np.int64(classes[row]) * width + first[row]) * width + second[row]] += 1
        for t in range(n_classes):
            for a in range(width):
                for b in range(width):
                    expected = totals[t] * shares[i, t, a] * shares[j, t, b]
                    by_chance += min(np.sqrt(2 / np.pi * expected), 2 * expected)
                    step = np.int64(np.rint(GAP_STEPS * expected))
                    gaps[k] += abs(GAP_STEPS * table[(t * width + a) * width + b] - step)
        gaps[k] -= np.int64(np.rint(GAP_STEPS * by_chance))
    return gaps
