"""Twenty mixed columns for the forest's part of the benchmark, and what polars and Spark are asked of the same ones.

Amounts in cents, floats, whole numbers, categories, booleans, days and timestamps, some with nulls, most of them
dependent on one hidden factor, so that a forest finds something to join.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import spinney as sp

_KINDS = tuple(f"kind {number}" for number in range(12))
_TOWNS = tuple(f"town {number:02}" for number in range(60))
_SIZES = ("small", "medium", "large")
_DAY = np.timedelta64(1, "D")

SCHEMA = sp.Schema(
    {
        "amount": sp.Real(0, 100_000, multiple_of="0.01"),
        "fee": sp.Real(0, 1_000, multiple_of="0.01", nullable=True),
        "score": sp.Real(-6, 6),
        "weight": sp.Real(0, 200, multiple_of="0.1"),
        "ratio": sp.Real(0, 1),
        "age": sp.Integer(0, 110),
        "visits": sp.Integer(0, 10_000),
        "points": sp.Integer(0, 1_000_000, nullable=True),
        "hours": sp.Integer(0, 168),
        "children": sp.Integer(0, 15),
        "kind": sp.Category(_KINDS),
        "town": sp.Category(_TOWNS),
        "size": sp.Category(_SIZES),
        "channel": sp.Category(("web", "shop", "phone", "post"), nullable=True),
        "tariff": sp.Category(tuple(f"T{number}" for number in range(30))),
        "is_member": sp.Boolean(),
        "is_late": sp.Boolean(nullable=True),
        "joined": sp.Date("2000-01-01", "2025-12-31"),
        "seen": sp.Datetime("2020-01-01", "2026-01-01", multiple_of=1),
        "label": sp.Boolean(),
    }
)
# Columns of which polars and Spark count every value: all but floats and times, which hardly repeat.
COUNTED = tuple(name for name in SCHEMA if name not in ("score", "ratio", "seen"))


def rows(rng: np.random.Generator, n_rows: int) -> pa.Table:
    """So many rows."""
    hidden = rng.normal(size=n_rows).astype(np.float32)

    def leaning(by: float) -> np.ndarray:
        return by * hidden + np.float32(np.sqrt(1 - by * by)) * rng.normal(size=n_rows).astype(np.float32)

    def place(by: float, n: int) -> np.ndarray:
        spread = 1 / (1 + np.exp(-1.7 * leaning(by)))
        return np.minimum((spread**2 * n).astype(np.int64), n - 1)

    def text(names: tuple[str, ...], by: float, *, nulls: float = 0.0) -> pa.Array:
        codes = pa.array(place(by, len(names)).astype(np.int32), mask=rng.random(n_rows) < nulls if nulls else None)
        return pa.DictionaryArray.from_arrays(codes, pa.array(names))

    days = np.datetime64("2000-01-01") + (place(0.3, 9_000) * _DAY)
    seen = np.datetime64("2020-01-01", "s") + rng.integers(0, 6 * 365 * 86_400, n_rows).astype("timedelta64[s]")
    return pa.table(
        {
            "amount": np.round(np.exp(4 + 1.2 * leaning(0.6)).clip(0, 99_999), 2).astype(np.float64),
            "fee": pa.array(np.round(np.exp(1 + leaning(0.5)), 2).astype(np.float64), mask=rng.random(n_rows) < 0.1),
            "score": leaning(0.7).astype(np.float64),
            "weight": np.round(70 + 12 * leaning(0.2), 1).astype(np.float64),
            "ratio": rng.random(n_rows),
            "age": (40 + 14 * leaning(0.4)).clip(0, 110).astype(np.int64),
            "visits": np.exp(3 + 1.1 * leaning(0.5)).clip(0, 10_000).astype(np.int64),
            "points": pa.array((place(0.6, 1_000) * 100).astype(np.int64), mask=rng.random(n_rows) < 0.05),
            "hours": (38 + 8 * leaning(0.2)).clip(0, 168).astype(np.int64),
            "children": place(-0.3, 8),
            "kind": text(_KINDS, 0.6),
            "town": text(_TOWNS, 0.3),
            "size": text(_SIZES, -0.7),
            "channel": text(("web", "shop", "phone", "post"), 0.4, nulls=0.05),
            "tariff": text(tuple(f"T{number}" for number in range(30)), 0.5),
            "is_member": leaning(0.5) > 0.2,
            "is_late": pa.array(leaning(-0.4) > 1, mask=rng.random(n_rows) < 0.02),
            "joined": days.astype("datetime64[D]"),
            "seen": seen.astype("datetime64[us]"),
            "label": leaning(0.6) > 0.5,
        }
    )


def write(folder: Path, n_rows: int, *, n_files: int) -> Path:
    """Parquet files of about as many rows each, in row groups of half a million, written as plain strings."""
    folder.mkdir(parents=True)
    for index in range(n_files):
        n_here = n_rows * (index + 1) // n_files - n_rows * index // n_files
        path = folder / f"part-{index:03}.parquet"
        table = rows(np.random.default_rng([7, index]), n_here)
        pq.write_table(table, path, row_group_size=1 << 19, store_schema=False)
    return folder
