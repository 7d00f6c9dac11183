"""Time and memory: what a fit of the card payments holds at its peak, and how time grows with columns.

The peak belongs to a process of its own that loads the rows, fits once and ends. On Linux it is read from the kernel's
account of that program alone: `getrusage` would begin with the peak of the process that started it.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

from benchmarks.forest.tables import generated, load
from benchmarks.forest.trials import Setting, fit

GIB = 2**30
N_WIDE_ROWS = 100_000
WIDTHS = (150, 300)


def peak_of_fraud_fit(folder: Path) -> float:
    """Peak memory of loading and fitting the card payments, in GiB."""
    command = [sys.executable, "-m", "benchmarks.forest.limits", str(folder.resolve())]
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    if done.returncode:
        raise RuntimeError(f"the fit in a process of its own failed:\n{done.stderr}")
    return int(done.stdout.split()[-1]) / GIB


def wide_seconds(n_columns: int, *, n_rows: int = N_WIDE_ROWS, has_target: bool = False) -> float:
    """Time of one fit of generated rows: categories of 20 values and numbers in turn, epsilon 1.

    Without a target every pair of columns is a candidate, which is what grows fastest.
    """
    table = generated(n_rows, n_columns)
    _, fitting, drawing = fit(table, table.frame, Setting("1"), seed=0, has_target=has_target)
    named = "target named" if has_target else "no target"
    print(f"  {n_columns} columns x {n_rows:,} rows, {named}: fit {fitting:.1f} s, rows {drawing:.1f} s", flush=True)
    return fitting


def _own_peak() -> int:
    """The most memory that this process has held, in bytes."""
    status = Path("/proc/self/status")
    if status.is_file():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _fit_once(folder: Path) -> None:
    from spinney import ForestSynthesizer

    table = load("creditcard", folder)
    ForestSynthesizer(epsilon="1", delta="1e-5", target=table.target).fit(table.frame, table.schema)
    print(_own_peak())


if __name__ == "__main__":
    _fit_once(Path(sys.argv[1]))
