"""One measurement in a process of its own: prints what it took and held as a line of JSON.

What is measured is the task alone: imports and compilation are over by then. Processes that are compared take turns.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.scale.forest_child import counts, forest, forest_spark
from benchmarks.scale.timing import best, own_peak, seconds, times

ROOT = Path(__file__).resolve().parents[2]
WARM_UP_ROWS = 300_000  # past every switch between small and large


def measured(task: str, folder: Path, *, limit: str | None = None, timeout: float | None = None, **options: Any) -> Any:
    """What a task says, run by another process; `limit` is its SPINNEY_MEMORY_LIMIT."""
    environment = dict(os.environ) | ({"SPINNEY_MEMORY_LIMIT": limit} if limit else {})
    command = [sys.executable, "-m", "benchmarks.scale.child", task, str(folder.resolve()), json.dumps(options)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment, timeout=timeout
    )
    if done.returncode:
        raise RuntimeError(f"{task} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _warm_up(n_rows: int) -> None:
    """A fit of no more rows than the one that is measured, so that a small run is short."""
    import numpy as np

    import spinney as sp
    from benchmarks.scale.data import SCHEMA, clusters

    sp.KDTreeSynthesizer(1).fit(clusters(np.random.default_rng(1), min(WARM_UP_ROWS, n_rows)), SCHEMA)


def _fit(table: Any, *, engine: str | None = None) -> Any:
    import spinney as sp
    from benchmarks.scale.data import SCHEMA

    return sp.KDTreeSynthesizer(1).fit(table, SCHEMA, engine=engine)


def _check(model: Any, n_rows: int) -> None:
    moments = model.release_.moments
    noisy_total = moments.noisy_steps[:, 0].sum() / moments.quantum
    assert model.card_.n_rows == n_rows, "every row was seen"
    assert abs(noisy_total - n_rows) < max(1_000, n_rows / 100), f"noisy total {noisy_total}"


def fit(
    folder: Path, n_rows: int, engine: str | None = None, pattern: str = "*.parquet", rounds: int = 1
) -> dict[str, float]:
    """Fits of the files in a folder whose names fit a pattern."""
    _warm_up(n_rows)
    models: list[Any] = []
    measured = best([times(lambda: models.append(_fit(str(folder / pattern), engine=engine))) for _ in range(rounds)])
    _check(models[-1], n_rows)
    return measured | {"peak": own_peak(), "leaves": models[-1].card_.released["leaves"]}


def extremes(folder: Path, rounds: int = 1) -> dict[str, float]:
    """The smallest and largest value of every column, by polars."""
    import polars as pl

    rows = pl.scan_parquet(folder / "*.parquet")
    query = rows.select(pl.all().min().name.suffix("_low"), pl.all().max().name.suffix("_high"))
    return best([times(lambda: query.collect(engine="streaming")) for _ in range(rounds)]) | {"peak": own_peak()}


def duckdb(folder: Path, n_rows: int, memory: str, rounds: int = 1) -> dict[str, float]:
    """The files as a relation of a connection with a memory limit: DuckDB's own extremes, and a fit."""
    import duckdb

    from benchmarks.scale.data import NAMES

    _warm_up(n_rows)
    with duckdb.connect(config={"memory_limit": memory, "temp_directory": str(folder.parent / "duckdb")}) as connection:
        relation = connection.read_parquet(str(folder / "*.parquet"))
        both = ", ".join(f"min({name}), max({name})" for name in NAMES)
        query, fitting = [], []
        for _ in range(rounds):
            query.append(seconds(lambda: relation.aggregate(both).fetchall()))
            start = time.perf_counter()
            model = _fit(relation)
            fitting.append(time.perf_counter() - start)
    _check(model, n_rows)
    return {"seconds": min(fitting), "first": fitting[0], "query": min(query), "peak": own_peak()}


def cells(folder: Path, pattern: str = "*.parquet") -> dict[str, float]:
    """How many cells the rows of the files occupy, counted by the engine. NOT PRIVATE."""
    from benchmarks.scale.data import SCHEMA
    from spinney.grid.lattice import tree_lattice
    from spinney.tables.open import open_source

    counts = open_source(str(folder / pattern), SCHEMA).count_cells(tree_lattice(SCHEMA))
    return {"cells": len(counts.distinct()[1])}


def spark(folder: Path, n_rows: int) -> dict[str, float]:
    """A fit by Spark on two cores of this machine, against its own groupBy().count() of codes made beforehand."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark.sql import SparkSession

    from benchmarks.scale.data import SCHEMA
    from spinney.counting.counts import encode_rows
    from spinney.grid.lattice import tree_lattice
    from spinney.tables.engines.memory import axis_columns
    from spinney.tables.frames import open_table

    lattice = tree_lattice(SCHEMA)
    coded = folder.parent / "codes"
    coded.mkdir()
    for path in sorted(folder.glob("*.parquet")):
        table = open_table(pq.read_table(path), SCHEMA)
        codes = np.empty((table.n_rows, 1), dtype=np.uint64)
        encode_rows(axis_columns(table, lattice), lattice, 0, codes)
        pq.write_table(pa.table({"code": codes[:, 0].view(np.int64)}), coded / path.name)
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "8g")
        .config("spark.ui.enabled", "false")
        .config("spark.local.dir", str(folder.parent / "spark"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    try:
        own, fitting = [], []
        for _ in range(2):
            frame = session.read.parquet(str(coded)).groupBy("code").count()
            own.append(seconds(lambda: frame.write.format("noop").mode("overwrite").save()))  # noqa: B023
            start = time.perf_counter()
            model = _fit(session.read.parquet(str(folder)))
            fitting.append(time.perf_counter() - start)
        _check(model, n_rows)
    finally:
        session.stop()
    return {"seconds": min(fitting), "query": min(own), "peak": own_peak()}


def peer(folder: Path, most_seconds: float) -> dict[str, Any]:
    """MST of the package mbi, and our fit of the same rows."""
    import pyarrow.parquet as pq

    from benchmarks.forest import peers
    from benchmarks.forest.scores import Marginals
    from benchmarks.scale.data import SCHEMA

    rows = pq.read_table(folder)
    _warm_up(rows.num_rows)
    ours = seconds(lambda: _fit(rows))
    found = peers.run("MST", Marginals(rows, SCHEMA), epsilon=1.0, delta=1e-5, seed=0, limit=most_seconds)
    return {"seconds": found.seconds, "note": found.note, "ours": ours}


TASKS = {"fit": fit, "extremes": extremes, "duckdb": duckdb, "cells": cells, "spark": spark, "peer": peer}
TASKS |= {"forest": forest, "counts": counts, "forest_spark": forest_spark}

if __name__ == "__main__":
    print(json.dumps(TASKS[sys.argv[1]](Path(sys.argv[2]), **json.loads(sys.argv[3]))))
