"""Two engines that answer queries, as small as `QuerySource` lets them be: polars, lazily, and DuckDB.

DuckDB also keeps cells that outgrow the limit of memory, in a temporary table.
"""

from __future__ import annotations

from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa

import spinney as sp
from spinney.tables.engines.queries import Frame, plain
from spinney.tables.engines.query_source import BucketChecksums, Part, QuerySource
from spinney.tables.source import table_changed


class PolarsQueries(QuerySource):
    """A table that polars holds, asked lazily."""

    def __init__(self, table: pa.Table, schema: sp.Schema, **limits: Any) -> None:
        types = table.schema
        chosen = {
            plain(i): self._number(name, column, types.field(name).type)
            for i, (name, column) in enumerate(schema.items())
        }
        super().__init__("polars", schema, nw.from_native(pl.from_arrow(table).lazy().select(**chosen)), **limits)

    def run(self, query: Frame, what: str) -> pa.Table:
        return query.collect(backend="pyarrow").to_native()

    def small_frame(self, columns: dict[str, list[Any]]) -> Frame:
        return nw.from_native(pl.LazyFrame(columns))

    @staticmethod
    def _number(name: str, column: Any, kind: Any) -> pl.Expr:
        if isinstance(column, sp.Date):
            return pl.col(name).cast(pl.Date).cast(pl.Int32).cast(pl.Int64)
        if isinstance(column, sp.Time):
            clock = pl.col(name).str.to_time("%H:%M:%S%.6f") if pa.types.is_string(kind) else pl.col(name)
            return clock.cast(pl.Int64) // 1000
        return pl.col(name).dt.timestamp("us") if isinstance(column, sp.Datetime) else pl.col(name)


class DuckDBQueries(QuerySource):
    """A table that DuckDB holds, in its default connection, which narwhals takes for some queries."""

    def __init__(self, table: pa.Table, schema: sp.Schema, **limits: Any) -> None:
        # DuckDB's names do not tell "whole" from "Whole".
        numbered = duckdb.from_arrow(table.rename_columns([f"x{i}" for i in range(table.num_columns)]))
        places = [f"x{table.column_names.index(name)}" for name in schema]
        numbers = map(self._number, places, schema.values())
        chosen = ", ".join(f"{number} AS {plain(i)}" for i, number in enumerate(numbers))
        super().__init__("pyarrow", schema, nw.from_native(numbered.select(chosen)), **limits)

    def run(self, query: Frame, what: str) -> pa.Table:
        return query.collect(backend="pyarrow").to_native()

    def small_frame(self, columns: dict[str, list[Any]]) -> Frame:
        return nw.from_native(duckdb.from_arrow(pa.table(columns)))

    def kept_cells(self, query: Frame, n_buckets: int) -> KeptTable:
        return KeptTable(query.to_native(), n_buckets)

    @staticmethod
    def _number(name: str, column: Any) -> str:
        if isinstance(column, sp.Date):
            return f"({name}::DATE - DATE '1970-01-01')::BIGINT"
        if isinstance(column, sp.Time):
            return f"epoch_us({name}::TIME)"
        return f"epoch_us({name})" if isinstance(column, sp.Datetime) else name


class KeptTable:
    """Counted cells in a temporary table of DuckDB."""

    def __init__(self, cells: Any, n_buckets: int) -> None:
        self._n_buckets = n_buckets
        self._keys = ", ".join(name for name in cells.columns if name.startswith("k"))
        which = "which::BIGINT" if "which" in cells.columns else "0"
        bucket = f"{which} * {n_buckets} + (hash({self._keys}) % {n_buckets})::BIGINT AS b"
        chosen = cells.select(f"{self._keys}, n, (hash({self._keys}, n) >> 1)::BIGINT AS h, {bucket}")
        duckdb.execute("DROP TABLE IF EXISTS kept")
        chosen.create("kept")

    def checksums(self) -> BucketChecksums:
        sums = "count(*) AS cells, sum(n) AS n, bit_xor(h) AS h, coalesce(max(k0) FILTER (k0 < 0), 0) AS fault"
        answer = duckdb.sql(f"SELECT b, {sums} FROM kept GROUP BY b ORDER BY b").fetchnumpy()
        columns = (answer[name].astype(np.int64) for name in ("b", "cells", "n", "h", "fault"))
        return BucketChecksums(self._n_buckets, *columns)

    def collect(self, part: Part) -> pa.Table:
        wanted = f"SELECT {self._keys}, n, h FROM kept WHERE b BETWEEN {part.first} AND {part.last}"
        answer = duckdb.sql(wanted).to_arrow_table()
        if len(answer) != part.n_cells or np.bitwise_xor.reduce(answer["h"].to_numpy(), initial=0) != part.hash:
            raise table_changed()
        return answer.drop_columns("h")

    def close(self) -> None:
        duckdb.execute("DROP TABLE IF EXISTS kept")
