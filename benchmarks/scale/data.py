"""Tables for the benchmark: Parquet files, generated chunk by chunk, so that any number of rows fits into memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import spinney as sp

N_COLUMNS = 5
NAMES = [f"x{i}" for i in range(N_COLUMNS)]
SCHEMA = sp.Schema({name: sp.Real(-6, 6) for name in NAMES})

Rows = NDArray[np.float64]
Maker = Callable[[np.random.Generator, int], Rows]


def clusters(rng: np.random.Generator, n_rows: int) -> Rows:
    """Ten Gaussian clusters: neither uniform nor degenerate, and nearly every row in a cell of its own."""
    centres = np.random.default_rng(0).normal(0, 2, (10, N_COLUMNS))
    rows = centres[rng.integers(0, 10, n_rows)]
    rows += rng.normal(0, 0.5, rows.shape)
    return rows.clip(-6, 6)


def scattered(rng: np.random.Generator, n_rows: int) -> Rows:
    """Uniform: of 2^60 cells no two rows hit the same, but for one time in a thousand."""
    return rng.uniform(-6, 6, (n_rows, N_COLUMNS))


def repeated(rng: np.random.Generator, n_rows: int) -> Rows:
    """The clusters on a grid of twelve values a column: cells repeat."""
    return np.floor(clusters(rng, n_rows)).clip(-6, 5) + 0.5


def write(folder: Path, make: Maker, n_rows: int, *, n_files: int, seed: int = 0) -> Path:
    """So many files of about as many rows each."""
    folder.mkdir(parents=True)
    for index in range(n_files):
        n_here = n_rows * (index + 1) // n_files - n_rows * index // n_files
        rows = make(np.random.default_rng([seed, index]), n_here)
        table = pa.table({name: np.ascontiguousarray(rows[:, i]) for i, name in enumerate(NAMES)})
        pq.write_table(table, folder / f"part-{index:03}.parquet")
    return folder
