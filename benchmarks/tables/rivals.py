"""MST and AIM of mbi, in the Python of another environment, on the rows, budget and unit of the rest.

mbi brings JAX and is not among our dependencies: `python -m venv .venv-mbi && .venv-mbi/bin/pip install mbi==2.0.0`,
then `--mbi-python .venv-mbi/bin/python`. Rows go there and come back as codes in files (`coding.py`, `worker.py`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import spinney as sp
from benchmarks.tables.coding import Bins, Coding
from benchmarks.tables.releases import Measured, Release, yardstick_of
from spinney.errors import FileError

ROOT = Path(__file__).resolve().parents[2]
# Names of rivals as the results have them -> mechanism and bins.
RIVALS: dict[str, tuple[str, Bins]] = {
    "MST, private quantiles": ("MST", "quantiles"),
    "MST, public bins": ("MST", "public"),
    "AIM, private quantiles": ("AIM", "quantiles"),
    "AIM, public bins": ("AIM", "public"),
}
_GRACE = 600.0  # seconds beyond the limit for a round that has begun


def check_python(python: Path) -> None:
    """Raise unless this Python has mbi. Asked before any work begins."""
    try:
        done = subprocess.run([str(python), "-c", "import mbi, numpy"], capture_output=True, check=False)
    except OSError as error:
        raise FileError(f"--mbi-python {str(python)!r} cannot be run; name the Python of an environment") from error
    if done.returncode:
        raise FileError(f"--mbi-python {str(python)!r} has no mbi; install it there with: -m pip install mbi==2.0.0")


def rivals(
    tables: Iterable[str], epsilons: Sequence[str], names: Sequence[str], *, n_runs: int, unit: str
) -> list[Release]:
    """Every release of the rivals, table by table and split by split."""
    return [
        Release(table, name, epsilon, repetition, unit=unit)
        for table in tables
        for repetition in range(n_runs)
        for name in names
        for epsilon in epsilons
    ]


def measured(release: Release, folder: Path | None, *, python: Path, limit: float, has_areas: bool = True) -> Measured:
    """One release of a rival; stopped between two rounds once `limit` seconds are over, and then without figures."""
    mechanism, bins = RIVALS[release.system]
    yardstick = yardstick_of(release.table, folder, release.repetition)
    coding = Coding(yardstick.train, yardstick.table.schema, bins)
    options = {
        "name": mechanism,
        "epsilon": float(release.epsilon),
        "delta": float(release.delta),
        "unit": release.unit,
        "seed": release.repetition,
        "limit": limit,
    }
    codes, report = run_mechanism(python, coding, options, limit)
    times = report["seconds"], 0.0, report["cpu_seconds"], sp.__version__
    if codes is None:
        return Measured(release, None, *times, note=f"stopped after {report['seconds']:.0f} s: {report['state']}")
    rows = coding.rows(codes, seed=release.repetition)
    return Measured(release, yardstick.figures(rows, has_areas=has_areas), *times, note=report["state"])


def run_mechanism(python: Path, coding: Coding, options: dict[str, Any], limit: float) -> tuple[Any, dict[str, Any]]:
    """Codes, or none, and the worker's report."""
    with TemporaryDirectory() as folder:
        given, out = Path(folder) / "given.npz", Path(folder) / "made.npz"
        np.savez(given, codes=coding.codes, sizes=np.array(coding.sizes), options=np.array(json.dumps(options)))
        command = [str(python), "-m", "benchmarks.tables.worker", str(given), str(out)]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=environment, stdout=sys.stderr, timeout=limit + _GRACE, check=False
            )
        except subprocess.TimeoutExpired:
            seconds = limit + _GRACE
            return None, {"state": "in the middle of a round", "seconds": seconds, "cpu_seconds": seconds}
        if done.returncode:
            raise FileError(f"{options['name']} failed in {str(python)!r}; the lines above say why")
        with np.load(out) as held:
            return held.get("codes"), json.loads(str(held["report"]))
