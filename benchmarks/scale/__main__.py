"""Run the benchmark, print measured against wanted, and fail where a full run misses."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

from benchmarks.harness import Result
from benchmarks.harness import measured as moment
from benchmarks.scale import mixed
from benchmarks.scale.child import measured
from benchmarks.scale.data import clusters, repeated, scattered, write

FULL = 100_000_000
N_FILES = 20
ROUNDS = 3
DUCKDB_MEMORY = "2500MiB"
SPILL_LIMIT = "256MiB"
FOREST_LIMIT = "512MiB"
PEER_ROWS, PEER_LIMIT = 1_000_000, 600.0


class Benchmark:
    """All parts over one folder of data. What is measured goes into `figures`, what is judged into `results`."""

    def __init__(self, folder: Path, n_rows: int) -> None:
        self._folder, self._n_rows = folder, n_rows
        self.results: list[Result] = []
        self.figures: dict[str, Any] = {"rows": n_rows}

    def files(self) -> None:
        rows = self._clusters()
        # In turns, so that a slow spell of the machine hits all alike.
        turns = [
            (
                self._run("extremes", rows, rounds=ROUNDS),
                self._run("fit", rows, n_rows=self._n_rows, rounds=ROUNDS),
                self._run("fit", rows, n_rows=self._n_rows, rounds=ROUNDS, engine="polars"),
            )
            for _ in range(2)
        ]
        query, own, by_polars = (
            {key: min(turn[side][key] for turn in turns) for key in turns[0][side]} for side in range(3)
        )
        peak = max(turn[side]["peak"] for turn in turns for side in (1, 2))
        self.figures["files"] = {"query": query, "fit": own, "polars": by_polars, "peak": peak}
        millions = f"{self._n_rows / 1e6:g}M x 5 floats in Parquet"
        for reader, found in (("", own), (" with engine='polars'", by_polars)):
            ratio = found["seconds"] / query["seconds"]
            self._judge(f"fit of {millions}{reader}, against polars' min and max", ratio, 2, "x")
        self._judge(f"fit of {millions}: peak memory", peak, 2.5, "GiB")

    def duckdb(self) -> None:
        found = self._run("duckdb", self._clusters(), n_rows=self._n_rows, memory=DUCKDB_MEMORY, rounds=ROUNDS)
        self.figures["duckdb"] = found | {"memory": DUCKDB_MEMORY}
        self._judge("fit of a DuckDB relation, against DuckDB's min and max", found["seconds"] / found["query"], 2, "x")
        self._judge(f"the same under memory_limit={DUCKDB_MEMORY}: peak memory", found["peak"], 2500 / 1024, "GiB")

    def cells(self) -> None:
        n_cells = self._n_rows // 2
        rows = write(self._folder / "cells", scattered, n_cells, n_files=N_FILES, seed=1)
        counted = self._run("cells", rows)["cells"]
        assert counted >= n_cells - 10, "rows lie in cells of their own"
        held = self._run("fit", rows, n_rows=n_cells)
        spilled = self._run("fit", rows, n_rows=n_cells, limit=SPILL_LIMIT)
        self.figures["cells"] = {"cells": counted, "held": held, "spilled": spilled, "limit": SPILL_LIMIT}
        self._judge(f"fit of {counted / 1e6:g}M occupied cells: peak memory", held["peak"], 6, "GiB")
        self._judge(f"the same, SPINNEY_MEMORY_LIMIT={SPILL_LIMIT}: peak memory", spilled["peak"], 6, "GiB")
        shutil.rmtree(rows)

    def model(self) -> None:
        """Fits of three sizes, of rows in cells of their own and of rows that share few."""
        points = []
        for name, make in (("rows", clusters), ("repeated", repeated)):
            rows = self._clusters() if make is clusters else self._written(name, make, self._n_rows)
            for pattern, share in (("part-000.parquet", 0.05), ("part-00[0-4].parquet", 0.25), ("*.parquet", 1.0)):
                n_rows = round(share * self._n_rows)
                found = self._run("fit", rows, n_rows=n_rows, pattern=pattern, rounds=2)
                n_cells = n_rows if make is clusters else self._run("cells", rows, pattern=pattern)["cells"]
                points.append({"rows": n_rows, "cells": n_cells, **found})
        shutil.rmtree(self._folder / "repeated")
        self.figures["model"] = model_of(points)
        _, a_row, a_cell = self.figures["model"]["fitted"]
        print(f"  {1e9 * a_row:.1f} ns a row, {1e9 * a_cell:.1f} ns a cell, on the processors")

    def spark(self) -> None:
        if find_spec("pyspark") is None or shutil.which("java") is None:
            print("  skipped, for it needs pyspark and Java")
            return
        n_rows = self._n_rows // 5
        rows = write(self._folder / "spark_rows", clusters, n_rows, n_files=N_FILES)
        found = self._run("spark", rows, n_rows=n_rows)
        self.figures["spark"] = found | {"rows": n_rows}
        ratio = found["seconds"] / found["query"]
        self._judge(f"Spark local[2], {n_rows / 1e6:g}M rows, against groupBy().count()", ratio, 2.5, "x")
        shutil.rmtree(rows)

    def forest(self) -> None:
        rows = self._folder / "mixed"
        print(f"  writing {self._n_rows:,} rows", flush=True)
        mixed.write(rows, self._n_rows, n_files=N_FILES)
        query = self._run("counts", rows, rounds=2)
        fast = self._run("forest", rows, n_rows=self._n_rows, quality="fast", limit=FOREST_LIMIT)
        high = self._run("forest", rows, n_rows=self._n_rows, quality="high", limit=FOREST_LIMIT)
        self.figures["forest"] = {
            "rows": self._n_rows,
            "limit": FOREST_LIMIT,
            "query": query,
            "fast": fast,
            "high": high,
        }
        millions = f"{self._n_rows / 1e6:g}M x 20 mixed columns in Parquet"
        self._judge(f"forest of {millions}: peak memory", fast["peak"], 1.5, "GiB")
        ratio = fast["seconds"] / query["seconds"]
        self._judge(f"forest of {millions}, against polars' counts and extremes", ratio, 3, "x")
        rounds = high["small"] - fast["small"]  # whatever the number of rows
        self._judge(
            "the same, high less its rounds, against fast", (high["seconds"] - rounds) / fast["seconds"], 2, "x"
        )
        self._judge("the same, high: peak memory", high["peak"], 1.5, "GiB")
        shutil.rmtree(rows)

    def forest_spark(self) -> None:
        if find_spec("pyspark") is None or shutil.which("java") is None:
            print("  skipped, for it needs pyspark and Java")
            return
        n_rows = self._n_rows // 2
        rows = mixed.write(self._folder / "mixed_spark", n_rows, n_files=N_FILES)
        found = self._run("forest_spark", rows, n_rows=n_rows, limit=FOREST_LIMIT)
        self.figures["forest_spark"] = found | {"rows": n_rows, "limit": FOREST_LIMIT}
        what = f"forest by Spark local[2], {n_rows / 1e6:g}M x 20"
        self._judge(f"{what}: peak memory of the driver's Python", found["peak"], 1, "GiB")
        self._judge(f"{what}, against groupBy().count() of each column", found["seconds"] / found["query"], 3, "x")
        shutil.rmtree(rows)

    def peers(self) -> None:
        if find_spec("mbi") is None:
            print("  skipped, for mbi is not installed; pip install mbi==2.0.0 (it brings JAX)")
            return
        rows = write(self._folder / "peers", clusters, min(PEER_ROWS, self._n_rows), n_files=1)
        try:
            found = self._run("peer", rows, most_seconds=PEER_LIMIT, timeout=2 * PEER_LIMIT)
        except subprocess.TimeoutExpired:
            found = {"note": f"stopped after {2 * PEER_LIMIT:g} s"}
        self.figures["peers"] = found
        if "seconds" in found:
            n_rows = min(PEER_ROWS, self._n_rows)
            self._judge(
                f"fit of {n_rows / 1e6:g}M x 5 rows, against MST of mbi", found["ours"] / found["seconds"], 0.01, "x"
            )

    def _clusters(self) -> Path:
        return self._written("rows", clusters, self._n_rows)

    def _written(self, name: str, make: Any, n_rows: int) -> Path:
        folder = self._folder / name
        if not folder.exists():
            print(f"  writing {n_rows:,} rows", flush=True)
            write(folder, make, n_rows, n_files=N_FILES)
        return folder

    def _run(self, task: str, folder: Path, **options: Any) -> dict[str, Any]:
        found: dict[str, Any] = measured(task, folder, **options)
        asked = ", ".join(f"{key}={value}" for key, value in options.items())
        print(f"  {task}({asked}): " + ", ".join(f"{key} {_short(value)}" for key, value in found.items()), flush=True)
        return found

    def _judge(self, what: str, figure: float, wanted: float, unit: str) -> None:
        self.results.append(Result(what, figure, wanted, unit))


def model_of(points: list[dict[str, Any]]) -> dict[str, Any]:
    """Processor-seconds = start + a * rows + b * cells, by least squares of relative errors, nothing below zero."""
    design = np.array([[1, point["rows"], point["cells"]] for point in points], dtype=float)
    seconds = np.array([point["cpu"] for point in points])
    fitted, _ = nnls(design / seconds[:, None], np.ones(len(seconds)))
    worst = float(np.abs(design @ fitted / seconds - 1).max())
    return {"points": points, "fitted": fitted.tolist(), "worst": worst}


PARTS = ("files", "duckdb", "cells", "model", "spark", "forest", "forest_spark", "peers")


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="spinney-scale-", dir=options.folder) as folder:
        benchmark = Benchmark(Path(folder), options.rows)
        for part in options.only or PARTS:
            print(f"{part} ...", flush=True)
            getattr(benchmark, part)()
    print()
    for result in benchmark.results:
        print(result)
    missed = sum(not result.is_met for result in benchmark.results)
    print(f"\n{len(benchmark.results) - missed} of {len(benchmark.results)} targets met")
    if options.out:
        keep(options.out, benchmark)
    if options.rows < FULL:
        print(f"fewer than {FULL:,} rows show that it works and judge nothing")
        return 0
    return 1 if missed else 0


def keep(path: Path, benchmark: Benchmark) -> None:
    """Add what was measured to a file of figures; parts that were not run stay as they are there."""
    record = json.loads(path.read_text()) if path.exists() else {"figures": {}, "results": []}
    record["figures"] |= benchmark.figures
    record["measured"] = record.get("measured", {}) | dict.fromkeys(set(benchmark.figures) - {"rows"}, moment())
    fresh = {result.what: asdict(result) for result in benchmark.results}
    record["results"] = [fresh.pop(line["what"], line) for line in record["results"]] + list(fresh.values())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where the data go for as long as it runs")
    parser.add_argument("--rows", type=int, default=FULL, metavar="N", help=f"{FULL:,} unless told")
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="NAME", help=f"which of {', '.join(PARTS)}")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where all figures go, as JSON; others there stay")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
