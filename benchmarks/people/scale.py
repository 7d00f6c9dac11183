"""Time and memory of a fit and a draw: 100,000 persons with ten rows of eight columns, and 10 million rows in files.

Each is measured in a process of its own, in which a small fit went before, so that compilation is over. `scale` fits a
frame in memory within a minute and 4 GiB. `large` fits 16 Parquet files over which the rows of a person are spread,
and `large-spark` the same files as a data frame of Spark on two cores (where Java is installed); both have to complete,
and their time and the memory of this Python process are reported. Every drawn person has to have rows, the right number
of them in all within a twentieth, and keys without gaps.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import spinney as sp
from benchmarks.harness import Result
from benchmarks.people.tables import KEY
from benchmarks.scale.timing import own_peak, seconds

ROOT = Path(__file__).resolve().parents[2]
TASKS = {"scale": 100_000, "large": 1_000_000, "large-spark": 1_000_000}  # persons
MEAN_ROWS = 10
MOST = 200
WARM_UP = 3_000
N_FILES = 16
SECONDS, GIB = 60.0, 4.0

COLUMNS = {
    "day": sp.Integer(0, 364),
    "kind": sp.Category(("a", "b", "c", "d", "e", "f")),
    "channel": sp.Category(("online", "store", "phone")),
    "amount": sp.Real(0, 5_000, multiple_of=0.01),
    "items": sp.Integer(1, 100),
    "discount": sp.Real(0, 1, multiple_of=0.01),
    "rating": sp.Integer(1, 5, nullable=True),
    "hour": sp.Integer(0, 23),
}


def report(task: str, out: Path) -> int:
    """Run a task in another process, and print what it took against what is wanted."""
    folder = out / "large"
    if task == "large-spark" and (find_spec("pyspark") is None or shutil.which("java") is None):
        print(f"{task}: skipped, for it needs pyspark and Java")
        return 0
    if task != "scale" and not folder.is_dir():
        write(TASKS[task], folder)
    command = [sys.executable, "-m", "benchmarks.people.scale", task, str(folder.resolve())]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        print(f"{task} failed:\n{done.stderr[-2_000:]}")
        return 1
    took: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{task}.json").write_text(json.dumps(took), encoding="utf-8")
    print(f"{task}: fit {took['fit']:.1f} s, draw {took['draw']:.1f} s, peak {took['peak']:.2f} GiB")
    if task != "scale":
        return 0
    results = [Result("fit of 100,000 x 10 rows", took["fit"], SECONDS, "s"), Result("peak", took["peak"], GIB, "GiB")]
    print("\n".join(str(result) for result in results))
    return int(not all(result.is_met for result in results))


def rows_of(n_persons: int, *, seed: int = 0) -> pl.DataFrame:
    """Rows of persons with a hidden level each: about ten a person, heavy-tailed."""
    rng = np.random.default_rng([seed, 43])
    level = rng.normal(size=n_persons)
    counts = np.clip(np.floor(np.exp(rng.normal(1.75 + 0.2 * level, 1.05))) + 1, 1, MOST).astype(np.int64)
    person = np.repeat(np.arange(n_persons), counts)
    n, here = len(person), level[person]
    rating = pl.Series(np.clip(np.rint(3.5 + 0.6 * here + rng.normal(size=n)), 1, 5).astype(np.int64))
    return pl.DataFrame(
        {
            KEY: person,
            "day": rng.integers(0, 365, n),
            "kind": pl.Series(list("abcdef")).gather(np.minimum(rng.poisson(np.exp(0.4 + 0.3 * here)), 5)),
            "channel": pl.Series(["online", "store", "phone"]).gather(rng.choice(3, n, p=[0.6, 0.3, 0.1])),
            "amount": np.minimum(np.round(np.exp(3 + 0.5 * here + 0.7 * rng.normal(size=n)), 2), 5_000.0),
            "items": np.minimum(1 + rng.poisson(np.exp(0.3 + 0.3 * here)), 100),
            "discount": np.round(rng.beta(1, 6, n), 2),
            "rating": rating.set(pl.Series(rng.random(n) < 0.3), None),
            "hour": np.clip(np.rint(rng.normal(14, 4, n)), 0, 23).astype(np.int64),
        }
    )


def write(n_persons: int, folder: Path) -> None:
    """The same in files, rows in random order, so that a person's rows lie in many of them."""
    rows = rows_of(n_persons)
    rows = rows[np.random.default_rng(7).permutation(rows.height)]
    folder.mkdir(parents=True)
    size = -(-rows.height // N_FILES)
    for number in range(N_FILES):
        rows[number * size : (number + 1) * size].write_parquet(folder / f"part-{number:02}.parquet")


def _fitted(data: Any) -> sp.LinkedSynthesizer:
    schema = sp.Schema({KEY: sp.Identifier(), **COLUMNS}, person=KEY, most_rows=MOST, order="day")
    return sp.LinkedSynthesizer("1", delta="1e-6").fit(data, schema)


@contextmanager
def _table(task: str, folder: Path) -> Iterator[tuple[Any, int]]:
    """The table of a task, and how many rows it has."""
    if task == "scale":
        rows = rows_of(TASKS[task])
        yield rows, rows.height
        return
    files = str(folder / "*.parquet")
    n_rows: int = pl.scan_parquet(files).select(pl.len()).collect().item()
    if task == "large":
        yield files, n_rows
        return
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "6g")
        .config("spark.driver.maxResultSize", "4g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.local.dir", str(folder.parent / "spark"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session.read.parquet(str(folder)), n_rows
    finally:
        session.stop()


def main(task: str, folder: Path) -> None:
    """One task in this process: prints what it took and held as a line of JSON."""
    _fitted(rows_of(WARM_UP, seed=1)).sample(persons=100, seed=0)
    n_persons = TASKS[task]
    held: list[Any] = []
    with _table(task, folder) as (data, n_rows):
        fit = seconds(lambda: held.append(_fitted(data)))
    draw = seconds(lambda: held.append(held[0].sample(seed=0, frame="polars")))
    rows: pl.DataFrame = held[1]
    assert rows[KEY].n_unique() == n_persons, "as many persons are drawn as were fitted"
    assert abs(rows.height / n_rows - 1) < 0.05, "with about as many rows"
    print(json.dumps({"fit": fit, "draw": draw, "peak": own_peak(), "rows": n_rows}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
