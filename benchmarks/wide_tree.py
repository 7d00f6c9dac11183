"""The paper's fraud tree: 29 columns, h = 30, h' = 60, 1,533 rows, so 2^30 data-independent bins.

Nothing may enumerate those bins. Measured in a process of its own; peak memory is that of the whole process, imports
included.
"""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from pathlib import Path

from benchmarks.harness import Result, seconds

N_ROWS, N_COLUMNS = 1_533, 29


def run(*, is_quick: bool = False) -> list[Result]:  # noqa: ARG001  # small anyway
    child = subprocess.run([sys.executable, "-m", "benchmarks.wide_tree"], capture_output=True, text=True, check=True)
    elapsed, peak = map(float, child.stdout.split())
    return [
        Result("paper tree, 29 columns, 2^30 fixed bins: seconds, warm", elapsed, 1, "s"),
        Result("paper tree, 29 columns, 2^30 fixed bins: peak memory", peak, 300, "MB"),
    ]


def measure() -> tuple[float, float]:
    """Seconds of a warm fit, and peak megabytes of this process."""
    import numpy as np

    import spinney as sp

    table = np.random.default_rng(0).normal(size=(N_ROWS, N_COLUMNS)).clip(-6, 6)
    schema = sp.Schema({f"v{i}": sp.Real(-6, 6) for i in range(N_COLUMNS)})
    model = sp.PaperTreeSynthesizer(epsilon=10, h=30, h_prime=60, t=7)
    model.fit(table, schema)
    elapsed = min(seconds(lambda: model.fit(table, schema)) for _ in range(3))
    depths = model.release_.bins.depths
    assert ((depths >= 30) & (depths <= 60)).all(), "leaves lie below the fixed levels"
    assert model.card_.n_bins > 0, "about 27 empty bins of 2^30 pass the threshold"
    return elapsed, _peak_megabytes()


def _peak_megabytes() -> float:
    """Peak memory of this process. The kernel's own figure where there is one: getrusage counts the parent's too."""
    status = Path("/proc/self/status")
    if status.exists():
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        assert found is not None
        return int(found[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    print(*measure())
