"""Large samples: rows of a tree of five columns to a folder of Parquet files, by the command line.

    python -m benchmarks.sampling --folder FOLDER [--rows 50_000_000]

A process of its own runs `spinney sample`, whose time and peak of memory count from its start. The answer is checked:
all rows are there, the folder is complete, a part that is drawn alone is the file of that part, and the means of all
columns are those of one small sample. The folder goes when that is done: rows of five columns take 40 bytes each.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq

import spinney as sp
from benchmarks.harness import Result
from benchmarks.scale.data import NAMES, SCHEMA, clusters

FULL, FITTED, SEED = 50_000_000, 1_000_000, 7
MOST_MEMORY, LEAST_RATE = 1.0, 5.0


def run(folder: Path, n_rows: int) -> list[Result]:
    release = folder / "release.spinney"
    rows = clusters(np.random.default_rng(0), min(FITTED, n_rows))
    sp.KDTreeSynthesizer("1").fit(rows, SCHEMA).save(release)
    sp.load(release).sample(300_000, parts=2)[1]  # whatever has to be compiled is compiled by now
    out = folder / "rows"
    command = [sys.executable, "-m", "spinney", "sample", str(release), "--rows", str(n_rows), "--seed", str(SEED)]
    start = time.perf_counter()
    subprocess.run([*command, "--out", f"{out}/"], check=True, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu, peak = used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20
    n_files = _check(sp.load(release), out, n_rows)
    print(
        f"  {n_rows:,} rows in {n_files} files: {wall:.1f} s, {cpu:.1f} s of the processors, peak {peak:.2f} GiB; the "
        f"disk alone takes {_disk_seconds(folder, out):.1f} s to write as many bytes"
    )
    what, unit = f"sampling {n_rows / 1e6:g}M x 5 to Parquet, start included", "M rows/s"
    return [
        Result(what, n_rows / wall / 1e6, LEAST_RATE, unit, is_floor=True),
        Result("the same, by processor time of two cores", 2 * n_rows / cpu / 1e6, LEAST_RATE, unit, is_floor=True),
        Result("the same: peak memory", peak, MOST_MEMORY, "GiB"),
    ]


def _check(release: sp.Release, out: Path, n_rows: int) -> int:
    files = sorted(out.glob("part-*.parquet"))
    parts = release.sample(n_rows, seed=SEED, frame="pyarrow", parts="auto")
    assert (out / "_SUCCESS").exists(), "the folder says that it is complete"
    assert len(files) == len(parts), "every part has its file"
    last = len(parts) - 1
    assert pq.read_table(files[last]).replace_schema_metadata().equals(parts[last]), "a part can be drawn alone"
    means = pl.scan_parquet(out).select(pl.len(), pl.col(NAMES).mean()).collect().row(0)
    assert means[0] == n_rows, "every row is there"
    small = release.sample(min(1_000_000, n_rows), seed=1, frame="numpy")
    wanted = 1e-3 * max(1.0, 1_000_000 / n_rows)
    assert np.abs(np.array(means[1:]) - small.mean(axis=0)).max() < wanted, "parts together are the release"
    return len(files)


def _disk_seconds(folder: Path, out: Path) -> float:
    """How long the disk takes for as many bytes, measured with at most a gigabyte of them."""
    n_bytes = sum(file.stat().st_size for file in out.iterdir())
    written, block = min(n_bytes, 2**30), os.urandom(2**24)
    with tempfile.TemporaryFile(dir=folder) as file:
        start = time.perf_counter()
        for _ in range(max(1, written // len(block))):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        return (time.perf_counter() - start) * n_bytes / written


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sampling", description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, required=True, help="where the rows go for as long as it runs")
    parser.add_argument("--rows", type=int, default=FULL, metavar="N", help=f"{FULL:,} unless told")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="spinney-sampling-", dir=options.folder))
    try:
        results = run(folder, options.rows)
    finally:
        shutil.rmtree(folder)
    print(*results, sep="\n")
    return int(not all(result.is_met for result in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
