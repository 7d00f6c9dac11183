"""Runs one mechanism of mbi on codes in a file: `python -m benchmarks.tables.worker IN.npz OUT.npz`.

Started by `rivals.py` in the Python of another environment, which has mbi and NumPy and nothing of ours. The first
file holds `codes` (n_columns, n_rows), `sizes` and `options` (JSON); the second gets `codes`, or none where the
mechanism was stopped, and `report` (JSON).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from benchmarks.forest.mechanisms import make


def main(given: Path, out: Path) -> None:
    """Rows of one mechanism, from one file to another."""
    with np.load(given) as held:
        codes, sizes, options = held["codes"], held["sizes"].tolist(), json.loads(str(held["options"]))
    made = make(codes=codes, sizes=sizes, **options)
    report = {"state": made.state, "seconds": made.seconds, "cpu_seconds": made.cpu_seconds}
    rows = {} if made.codes is None else {"codes": made.codes}
    np.savez_compressed(out, report=np.array(json.dumps(report)), **rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
