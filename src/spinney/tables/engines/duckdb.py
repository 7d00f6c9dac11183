"""DuckDB relations: their own connection runs the query and hands out Arrow batches, or groups of equal rows.

Where the schema leaves few different rows, DuckDB groups equal ones by itself and only a row of each group comes over,
with how often it is there. No arithmetic is left to DuckDB: cells are made of those rows by the same code as of all
rows. Rows count as equal if their values are, byte by byte: strings are compared as bytes, whatever their collation.
Of other tables the rows themselves come over; expressions for their cells take DuckDB longer than all else together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa

from spinney.columns import Category, Column
from spinney.counting.cells import encode_rows
from spinney.counting.counts import CellCounts
from spinney.counting.grouped import GroupedCells
from spinney.progress import waiting
from spinney.schema.lattice import Lattice
from spinney.schema.table import Schema
from spinney.tables.engines.lazy import batch_rows, open_lazy, redacted_query
from spinney.tables.engines.memory import axis_columns
from spinney.tables.engines.stream import StreamSource
from spinney.tables.frames import open_table
from spinney.tables.paths.named import duckdb_reads, refuse_repeated_reads
from spinney.tables.source import table_changed

_WHAT = "the DuckDB relation"
# Groups of equal rows that DuckDB finds faster than it hands out all rows: their hash table stays in cache.
_MOST_GROUPS = 1 << 17

# Batches of different rows of some columns, and how often each is there.
Groups = Callable[[Sequence[str]], Iterator[tuple[pa.Table, Any]]]


class DuckDBSource(StreamSource):
    """A relation whose rows come over in batches, or in groups of equal ones where these are few."""

    def __init__(self, *given: Any, groups: Groups, types: Mapping[str, pa.DataType], **named: Any) -> None:
        super().__init__(*given, **named)
        self._groups, self._types = groups, types

    def count_cells(self, lattice: Lattice) -> CellCounts:
        names = [axis.name for axis in lattice.axes]
        if prod(_most_values(self.schema[name], self._types[name]) for name in names) > _MOST_GROUPS:
            return super().count_cells(lattice)
        chosen = Schema({name: self.schema[name] for name in names})
        cells = GroupedCells(lattice, n_rows=self.n_rows)
        with waiting("counting cells"), redacted_query(_WHAT):
            for rows, true_counts in self._groups(names):
                codes = np.empty((rows.num_rows, lattice.n_words), dtype=np.uint64)
                encode_rows(axis_columns(open_table(rows, chosen), lattice), lattice, 0, codes)
                cells.add(codes, true_counts)
        if cells.true_total != self.n_rows:
            raise table_changed()
        return cells.merged()


def open_duckdb(relation: Any, schema: Schema, *, batch_bytes: int | None = None) -> StreamSource:
    """A DuckDB relation, run in its own connection; rows come back as pyarrow tables."""
    with redacted_query(_WHAT):
        empty = _first_rows(relation)
        refuse_repeated_reads(duckdb_reads(relation))
    types = {field.name: field.type for field in empty.schema}
    return open_lazy(
        "pyarrow",
        empty,
        schema,
        frames=lambda names: duckdb_batches(relation, names, batch_bytes),
        count=lambda: int(relation.aggregate("count(*)").fetchall()[0][0]),
        what=_WHAT,
        make=partial(DuckDBSource, groups=partial(_groups, relation, types), types=types),
    )


def duckdb_batches(relation: Any, names: Sequence[str], batch_bytes: int | None = None) -> Iterator[Any]:
    """Some columns of a DuckDB relation as pyarrow tables."""
    return _batches(relation.project(", ".join(map(_quoted, names))), batch_rows(len(names), batch_bytes))


def _batches(chosen: Any, n_rows: int) -> Iterator[pa.Table]:
    read = chosen.to_arrow_reader if hasattr(type(chosen), "to_arrow_reader") else chosen.fetch_record_batch
    with closing(read(n_rows)) as reader:
        yield from (pa.Table.from_batches([batch]) for batch in reader)


def _groups(relation: Any, types: Mapping[str, pa.DataType], names: Sequence[str]) -> Iterator[tuple[pa.Table, Any]]:
    """Different rows of some columns, and how often each is there."""
    texts = [name for name in names if _is_text(types[name])]
    columns = [f"encode({_quoted(name)}) AS {_quoted(name)}" if name in texts else _quoted(name) for name in names]
    keys, count = ", ".join(map(_quoted, names)), "n" + "_" * max(map(len, names))
    grouped = relation.project(", ".join(columns)).aggregate(f"{keys}, count(*) AS {_quoted(count)}", keys)
    for table in _batches(grouped, batch_rows(len(names) + 1)):
        true_counts = table[count].to_numpy()
        rows = table.select(list(names))
        for name in texts:
            place = names.index(name)
            rows = rows.set_column(place, name, rows[name].cast(pa.string()))
        yield rows, true_counts


def _most_values(column: Column, kind: pa.DataType) -> float:
    """How many different values a column should have in a table by the schema; infinitely many where it may have any.

    More are no mistake: values outside the bounds are moved there, as in any table, and take longer.
    """
    whole = column.whole_range() if column.is_read and not column.also_reads else None
    is_plain = _is_text(kind) or any(
        is_kind(kind) for is_kind in (pa.types.is_integer, pa.types.is_boolean, pa.types.is_date32)
    )
    if whole is None or not is_plain or (isinstance(column, Category) and column.other is not None):
        return float("inf")
    return whole[1] - whole[0] + 1 + column.nullable


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _first_rows(relation: Any) -> pa.Table:
    """No rows of a relation, with their types."""
    none = relation.limit(0)
    table: pa.Table = (none.to_arrow_table if hasattr(type(none), "to_arrow_table") else none.fetch_arrow_table)()
    return table
