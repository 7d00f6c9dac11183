"""The in-memory engine: counts lattice cells of a table with all cores.

Rows are encoded in blocks that stay in cache, by all cores, into one array of codes, which is sorted in place and
counted. Nothing here knows about privacy, and nothing leaves but `CellCounts`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from spinney.engines.cells import AxisCells
from spinney.engines.frames import Table
from spinney.engines.source import Source
from spinney.engines.states import Cut, StateRows, state_rows
from spinney.errors import InputError
from spinney.partition.counts import CellCounts
from spinney.partition.zorder import Codes, add_axis, expand_axis, expansions, spread_tables
from spinney.progress import progress
from spinney.schema.columns import Identifier
from spinney.schema.lattice import Lattice
from spinney.schema.table import Schema

# Rows encoded at once: values, cells and codes of a block stay in cache.
_BLOCK = 1 << 14
_SMALLEST_PART = 1 << 16


def count_cells(table: Table, lattice: Lattice) -> CellCounts:
    """True counts of every occupied cell, or an InputError that names the first unreadable column."""
    codes = np.empty((table.n_rows, lattice.n_words), dtype=np.uint64)
    columns = axis_columns(table, lattice)
    n_threads = os.cpu_count() or 1
    part = max(_SMALLEST_PART, -(-table.n_rows // (4 * n_threads)))
    starts = range(0, table.n_rows, part)
    if len(starts) <= 1:
        encode_rows(columns, lattice, 0, codes)
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            parts = [pool.submit(encode_rows, columns, lattice, start, codes[start : start + part]) for start in starts]
            for future in progress(parts, "counting cells", unit="part"):
                future.result()
    return CellCounts.from_codes(lattice, codes)


def axis_columns(table: Table, lattice: Lattice) -> list[AxisCells]:
    """The columns of a lattice's axes, ready to be read."""
    return [AxisCells(table.physical(axis.name), axis) for axis in lattice.axes]


def encode_rows(columns: list[AxisCells], lattice: Lattice, first_row: int, codes: Codes) -> None:
    """Fill `codes` with the codes of as many rows, from `first_row` on."""
    is_word = lattice.n_words == 1
    tables = expansions(lattice) if is_word else spread_tables(lattice)
    cells = np.empty(_BLOCK, dtype=np.int64)
    for start in range(0, len(codes), _BLOCK):
        here = codes[start : start + _BLOCK]
        block_cells = cells[: len(here)]
        here[:] = 0
        for column, axis, spread in zip(columns, lattice.axes, tables, strict=True):
            if column.fill(first_row + start, first_row + start + len(here), block_cells):
                raise missing(axis.name)
            if is_word:
                expand_axis(block_cells, spread, here[:, 0])
            else:
                add_axis(block_cells, spread, here)


def check_values(table: Table) -> None:
    """Raise an InputError that names the first column with values that cannot be counted."""
    for name, column in table.schema.items():
        if isinstance(column, Identifier):
            continue
        physical = table.physical(name)
        is_missing = ~np.isfinite(physical.values) if physical.is_null is None else physical.is_null
        if not column.nullable and is_missing.any():
            raise missing(name)


def missing(name: str) -> InputError:
    """The error for a null, a NaN or an infinity in a column that the schema says has none."""
    return InputError(
        f"column {name!r} holds a missing or non-finite value; declare it nullable in the schema or clean the table"
    )


def true_extremes(table: Table, name: str) -> tuple[float, float]:
    """Smallest and largest physical value of a column. SENSITIVE: whoever calls this has branded the ledger."""
    column = table.physical(name)
    values = column.values if column.is_null is None else column.values[~column.is_null]
    values = values[np.isfinite(values)]
    if not len(values):
        raise InputError(f"column {name!r} holds no finite value, so it has no bounds; state them in the schema")
    return values.min().item(), values.max().item()


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

    def count_cells(self, lattice: Lattice) -> CellCounts:
        return count_cells(self.table, lattice)

    def count_columns(self, lattices: Sequence[Lattice]) -> Iterator[CellCounts]:
        return (count_cells(self.table, lattice) for lattice in lattices)

    def state_rows(self, cuts: Sequence[Cut]) -> StateRows:
        return state_rows(self.table, cuts)

    def true_extremes(self, name: str) -> tuple[float, float]:
        return true_extremes(self.table, name)
