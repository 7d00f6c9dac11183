"""The in-memory engine: counts lattice cells of a table with all cores.

Cores share the rows, part by part. Nothing here knows about privacy, and nothing leaves but `CellCounts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from spinney.counting.counter import CellCounter, ValueCounter, ValueCounts
from spinney.counting.counts import AxisCells, CellCounts, missing
from spinney.counting.sorting import PART
from spinney.counting.states import AnyCut, StateRows, fill_states, states_array
from spinney.grid.lattice import Lattice
from spinney.machine import each
from spinney.progress import progress
from spinney.schema.rules import Rule
from spinney.schema.schema import Schema, parts_first
from spinney.tables.frames import Table, open_table
from spinney.tables.source import HeldRows, Source, no_bounds
from spinney.tables.tally import Tallies, rules_among, tally_table


def count_cells(table: Table, lattice: Lattice, *, part: int = PART) -> CellCounts:
    """True counts of every occupied cell, or an InputError that names the first unreadable column.

    `part`: how many rows a thread counts at a time.
    """
    columns = axis_columns(table, lattice)
    runs = CellCounter(lattice, n_rows=table.n_rows)
    starts = range(0, table.n_rows, part)
    if len(starts) <= 1:
        runs.add(columns, 0, table.n_rows)
    else:
        each(lambda start: runs.add(columns, start, min(start + part, table.n_rows)), starts, title="counting cells")
    return runs.merged()


def axis_columns(table: Table, lattice: Lattice) -> list[AxisCells]:
    """The columns of a lattice's axes, read and ready to be counted."""
    return [AxisCells(table.physical(axis.name), axis) for axis in lattice.axes]


def state_rows(table: Table, cuts: Sequence[AnyCut]) -> StateRows:
    """The states of all rows, or an InputError that names the first unreadable column."""
    rows = states_array(cuts, table.n_rows)
    each(
        lambda cut, row: fill_states([table.physical(name) for name in cut.names], cut, row),
        cuts,
        rows.true_states,
        title="reading columns",
        unit="column",
    )
    return rows


def check_values(table: Table) -> None:
    """Raise an InputError that names the first column with values that cannot be counted."""
    for name in parts_first(table.schema):
        is_missing = table.physical(name).is_missing
        if not table.schema[name].nullable and is_missing.any():
            raise missing(name)


def true_extremes(table: Table, name: str) -> tuple[float, float]:
    """Smallest and largest physical value of a column. SENSITIVE: whoever calls this has branded the ledger."""
    return merged_extremes([part_extremes(table, name)], name)


def part_extremes(table: Table, name: str) -> tuple[float, float] | None:
    """Those of a part of the table, where it holds a finite value. SENSITIVE."""
    column = table.physical(name)
    values = column.values if column.is_null is None else column.values[~column.is_null]
    values = values[np.isfinite(values)]
    return (values.min().item(), values.max().item()) if len(values) else None


def merged_extremes(parts: Iterable[tuple[float, float] | None], name: str) -> tuple[float, float]:
    """Those of all parts together. SENSITIVE."""
    ends = [part for part in parts if part is not None]
    if not ends:
        raise no_bounds(name)
    return min(low for low, _ in ends), max(high for _, high in ends)


class MemorySource(Source):
    """A table in memory: a frame or an array."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.kind = table.kind
        self.schema = table.schema

    @property
    def n_rows(self) -> int:
        return self.table.n_rows

    def with_schema(self, schema: Schema) -> MemorySource:
        return MemorySource(self.table.with_schema(schema))

    def check_values(self) -> None:
        check_values(self.table)

    def tally(self, names: Sequence[str], rules: Sequence[Rule]) -> Tallies:
        """Column by column; those that rules are about, together at the end."""
        tallies = Tallies()
        for name in progress(names, "checking values", unit="column"):
            tallies.add(tally_table(self.table, [name], ()))
        for rule in rules_among(rules, names):
            tallies.n_broken.update(tally_table(self.table, rule.columns, [rule]).n_broken)
        return tallies

    def count_cells(self, lattice: Lattice) -> CellCounts:
        return count_cells(self.table, lattice)

    def count_columns(self, lattices: Sequence[Lattice]) -> Iterator[CellCounts]:
        return (count_cells(self.table, lattice) for lattice in lattices)

    def count_values(self, name: str) -> ValueCounts:
        counter = ValueCounter(name, memory_limit=self.memory_limit)
        counter.add(self.table.keys(name))
        return counter.merged()

    def state_rows(self, cuts: Sequence[AnyCut]) -> StateRows:
        return state_rows(self.table, cuts)

    def held_rows(self) -> HeldRows:
        rows = HeldRows(self.schema, self.n_rows)
        rows.fill_from(0, self.table)
        return rows

    def true_extremes(self, name: str) -> tuple[float, float]:
        return true_extremes(self.table, name)


def open_memory(
    frame: Any,
    schema: Schema,
    *,
    batch_bytes: int | None = None,  # noqa: ARG001  # there are no batches
) -> MemorySource:
    """A data frame or an array; rows come back in the same kind."""
    return MemorySource(open_table(frame, schema))
