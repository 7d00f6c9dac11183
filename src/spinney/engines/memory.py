"""The in-memory engine: counts lattice cells of a table with all cores.

Rows are cut into one part per core. Each part is encoded in blocks that stay in cache, sorted by radix and run-
length counted; the counted parts are merged. Nothing here knows about privacy, and nothing leaves but
`CellCounts`.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from spinney.engines.cells import AxisCells
from spinney.engines.frames import Table
from spinney.errors import InputError
from spinney.partition.counts import CellCounts
from spinney.partition.zorder import add_axis, spread_tables
from spinney.progress import progress
from spinney.schema.columns import Identifier
from spinney.schema.lattice import Lattice

_BLOCK = 1 << 15
# Rows a core handles at once: its codes and the sort's second buffer take 16 bytes a row and word.
_LARGEST_PART = 1 << 24
_SMALLEST_PART = 1 << 16


def count_cells(table: Table, lattice: Lattice) -> CellCounts:
    """True counts of every occupied cell, or an InputError that names the first unreadable column."""
    columns = [AxisCells(table.physical(axis.name), axis) for axis in lattice.axes]
    n_threads = os.cpu_count() or 1
    part = min(_LARGEST_PART, max(_SMALLEST_PART, -(-table.n_rows // n_threads)))
    starts = range(0, table.n_rows, part)
    if len(starts) <= 1:
        return _count_part(columns, lattice, 0, table.n_rows)
    counted: CellCounts | None = None
    with ThreadPoolExecutor(n_threads) as pool:
        parts = [pool.submit(_count_part, columns, lattice, start, min(start + part, table.n_rows)) for start in starts]
        for future in progress(parts, "counting cells", unit="part"):
            counted = future.result() if counted is None else counted.merge(future.result())
    assert counted is not None
    return counted


def _count_part(columns: list[AxisCells], lattice: Lattice, start: int, stop: int) -> CellCounts:
    tables = spread_tables(lattice)
    codes = np.zeros((stop - start, lattice.n_words), dtype=np.uint64)
    cells = np.empty(_BLOCK, dtype=np.int64)
    for block in range(start, stop, _BLOCK):
        end = min(block + _BLOCK, stop)
        here, block_cells = codes[block - start : end - start], cells[: end - block]
        for column, axis, spread in zip(columns, lattice.axes, tables, strict=True):
            if column.fill(block, end, block_cells):
                raise _missing(axis.name)
            add_axis(block_cells, spread, here)
    return CellCounts.from_codes(lattice, codes)


def check_values(table: Table) -> None:
    """Raise an InputError that names the first column with values that cannot be counted."""
    for name, column in table.schema.items():
        if isinstance(column, Identifier):
            continue
        physical = table.physical(name)
        is_missing = ~np.isfinite(physical.values) if physical.is_null is None else physical.is_null
        if not column.nullable and is_missing.any():
            raise _missing(name)


def _missing(name: str) -> InputError:
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
