"""Measurements of forests over twenty mixed columns, each in a process of its own, as in `child.py`."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.scale import mixed
from benchmarks.scale.timing import best, own_peak, seconds, times

_SMALL_ROWS = 300_000


def fit(table: Any, quality: str) -> Any:
    """A forest with epsilon 1."""
    import spinney as sp

    return sp.ForestSynthesizer(1, quality=quality).fit(table, mixed.SCHEMA)


def forest(folder: Path, n_rows: int, quality: str, rounds: int = 1) -> dict[str, float]:
    """Fits of all files in a folder, and one of a small table: what does not depend on rows, the model's work."""
    models: list[Any] = []
    with tempfile.TemporaryDirectory(dir=folder.parent) as small:
        mixed.write(Path(small) / "rows", min(_SMALL_ROWS, n_rows), n_files=2)
        fit(Path(small) / "rows", quality)
        model_work = seconds(lambda: fit(Path(small) / "rows", quality))
    measured = best([times(lambda: models.append(fit(folder, quality))) for _ in range(rounds)])
    assert models[-1].card_.n_rows == n_rows, "every row was seen"
    total = models[-1].release_.noisy_total
    assert abs(total - n_rows) < max(1_000, n_rows / 100), f"noisy total {total}"
    return measured | {"peak": own_peak(), "small": model_work}


def counts(folder: Path, rounds: int = 1) -> dict[str, float]:
    """By polars: how often each value occurs in columns that repeat them, and the extremes of all."""
    import polars as pl

    rows = pl.scan_parquet(folder / "*.parquet")
    queries = [rows.select(pl.all().min().name.suffix("_low"), pl.all().max().name.suffix("_high"))]
    queries += [rows.group_by(name).len() for name in mixed.COUNTED]
    return best([times(lambda: pl.collect_all(queries, engine="streaming")) for _ in range(rounds)])


def forest_spark(folder: Path, n_rows: int, quality: str = "fast") -> dict[str, float]:
    """A fit by Spark on two cores of this machine, against its own groupBy().count() of every column."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # or workers would be of another Python
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "6g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.local.dir", str(folder.parent / "spark"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    try:
        frame = session.read.parquet(str(folder))
        fit(frame.limit(20_000), quality)

        def count_all() -> None:
            for name in mixed.SCHEMA:
                frame.groupBy(name).count().write.format("noop").mode("overwrite").save()

        own, models = seconds(count_all), []
        fitting = seconds(lambda: models.append(fit(frame, quality)))
        assert models[-1].card_.n_rows == n_rows, "every row was seen"
    finally:
        session.stop()
    return {"seconds": fitting, "query": own, "peak": own_peak()}
