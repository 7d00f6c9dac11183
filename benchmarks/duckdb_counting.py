"""Trees over DuckDB relations, against DuckDB's own minima and maxima of the same columns, in one run.

    python -m benchmarks.duckdb_counting --folder FOLDER [--rows 100_000_000]

Two tables: five floats, whose rows come over, and four columns of few values, whose rows DuckDB groups. What a fit is
made of is shown beside it: handing out all rows, making cells of floats by an expression of DuckDB, counting. Counts
are compared with those of the same files read without DuckDB. Processor time is shown too: others hardly disturb it.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import spinney as sp
from benchmarks.harness import Result
from benchmarks.scale.data import NAMES, SCHEMA, clusters, write
from spinney.grid.lattice import Lattice, tree_lattice
from spinney.tables.open import open_source

FULL, N_FILES, ROUNDS = 100_000_000, 20, 3
MEMORY = "2500MiB"
WORDS = [f"value number {number}" for number in range(20)]
FEW = sp.Schema(
    {"a": sp.Category(WORDS), "b": sp.Category(WORDS[:8]), "c": sp.Boolean(), "d": sp.Integer(0, 99)}
)  # 32,000 different rows


def run(folder: Path, n_rows: int) -> list[Result]:
    floats = write(folder / "floats", clusters, n_rows, n_files=N_FILES)
    few = _write_few(folder / "few", n_rows // 5)
    with duckdb.connect(config={"memory_limit": MEMORY, "temp_directory": str(folder / "spilled")}) as connection:
        return [
            *_measure("5 floats", connection, floats, SCHEMA, n_rows, 1.7),
            *_measure("4 columns of few values", connection, few, FEW, n_rows // 5, 3),
        ]


def _measure(what: str, connection: Any, folder: Path, schema: sp.Schema, n_rows: int, wanted: float) -> list[Result]:
    files = str(folder / "*.parquet")
    relation, lattice = connection.read_parquet(files), tree_lattice(schema)
    mine, plain = (open_source(given, schema).count_cells(lattice) for given in (relation, files))
    assert mine.true_total() == n_rows, "every row was counted"
    assert all(np.array_equal(*pair) for pair in zip(mine.distinct(), plain.distinct(), strict=True)), "the same cells"
    del mine, plain
    both = ", ".join(f"min({name}), max({name})" for name in schema)
    actions: dict[str, Callable[[], object]] = {
        "min and max": lambda: relation.aggregate(both).fetchall(),
        "rows handed out": lambda: _drain(relation.project(", ".join(schema))),
        "cells counted": lambda: open_source(relation, schema).count_cells(lattice),
        "tree fitted": lambda: sp.KDTreeSynthesizer("1").fit(relation, schema),
    }
    if schema is SCHEMA:
        actions["cells by SQL"] = lambda: _drain(relation.project(_cells_in_sql(lattice)))
    best = dict.fromkeys(actions, (np.inf, np.inf))
    for _ in range(ROUNDS):
        for name, action in actions.items():
            start, cpu_start = time.perf_counter(), time.process_time()
            action()
            wall, cpu = time.perf_counter() - start, time.process_time() - cpu_start
            best[name] = min(best[name][0], wall), min(best[name][1], cpu)
    print(f"  {n_rows:,} rows of {what}:")
    for name, (wall, cpu) in best.items():
        print(f"    {name:<18} {wall:6.2f} s, {cpu:6.2f} s of the processors")
    base, fit = best["min and max"], best["tree fitted"]
    of = f"tree over DuckDB, {n_rows / 1e6:g}M x {what}, against its min and max"
    by_cpu = Result("the same, by processor time", fit[1] / base[1], wanted, "x")
    return [Result(of, fit[0] / base[0], wanted, "x"), by_cpu]


def _drain(relation: Any) -> int:
    return sum(batch.num_rows for batch in relation.to_arrow_reader(1 << 17))


def _cells_in_sql(lattice: Lattice) -> str:
    """The cells of all axes, side by side in one number: what counting inside DuckDB would have to begin with."""
    parts = []
    for place, axis in enumerate(lattice.axes):
        position = f"({axis.name} - {axis.origin!r}) * {axis.scale!r}"
        clamped = f"least(greatest({position}, {float(axis.first)!r}), {float(axis.last)!r})"
        parts.append(f"(CAST(floor({clamped}) AS UBIGINT) << {12 * place})")
    return " | ".join(parts) + " AS cells"


def _write_few(folder: Path, n_rows: int) -> Path:
    folder.mkdir()
    words = np.array(WORDS)
    for index in range(4):
        n_here, rng = n_rows * (index + 1) // 4 - n_rows * index // 4, np.random.default_rng(index)
        columns = {"a": words[rng.integers(0, 20, n_here)], "b": words[rng.integers(0, 8, n_here)]}
        columns |= {"c": rng.random(n_here) < 0.5, "d": rng.integers(0, 100, n_here)}
        pq.write_table(pa.table(columns), folder / f"part-{index}.parquet")
    return folder


def main(arguments: list[str]) -> int:
    assert list(SCHEMA) == NAMES
    parser = argparse.ArgumentParser(prog="python -m benchmarks.duckdb_counting", description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, required=True, help="where the data go for as long as it runs")
    parser.add_argument("--rows", type=int, default=FULL, metavar="N", help=f"{FULL:,} unless told")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="spinney-duckdb-", dir=options.folder))
    try:
        results = run(folder, options.rows)
    finally:
        shutil.rmtree(folder)
    print(*results, sep="\n")
    return int(not all(result.is_met for result in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
