"""Run the comparison, print measured against wanted, and fail where a full run misses."""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

from benchmarks.fidelity import distances, fitting, ranges
from benchmarks.fidelity.maps import check_folder, made_up_map, maps_in
from benchmarks.fidelity.picture import draw
from benchmarks.fidelity.targets import distance_lines, range_lines, table, time_lines

N_RUNS, N_QUICK_RUNS = 8, 2


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    if options.quick and options.data:
        print("--quick uses a made-up map: --data is not read")
    elif options.data:
        check_folder(options.data)
    start = time.perf_counter()
    n_runs = N_QUICK_RUNS if options.quick else N_RUNS
    print("distances on mixtures ...", flush=True)
    found = distances.measure(
        n_runs=n_runs, n_frequencies=1024 if options.quick else 8192, is_checked=not options.quick
    )
    print("fit time ...", flush=True)
    lines = [*distance_lines(found), *time_lines(fitting.time_ratio(rounds=5))]

    cells: list[ranges.Cell] = []
    if options.quick or options.data:
        print("range queries ...", flush=True)
        cells = ranges.compare([made_up_map()] if options.quick else maps_in(options.data), n_runs=n_runs)
        print("\n".join(["", "geometric means of the ratios", *ranges.summaries(cells)]))
        lines += range_lines(cells)
    else:
        print("range queries: skipped, for they need maps; name a folder with --data (benchmarks/fidelity/maps.py)")

    print(f"\n{table(lines)}")
    missed = sum(not result.is_met for result, _ in lines)
    print(f"\n{len(lines) - missed} of {len(lines)} targets met in {time.perf_counter() - start:.0f} s")
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        draw(found, cells, options.out / "fidelity.svg")
        record = {
            "distances": [{"n_axes": d, "epsilon": e, "runs": runs} for (d, e), runs in found.releases.items()],
            "few_rows": found.few_rows,
            "cells": [asdict(cell) for cell in cells],
            "table": [asdict(result) | {"elsewhere": elsewhere} for result, elsewhere in lines],
        }
        (options.out / "fidelity.json").write_text(json.dumps(record, indent=1) + "\n")
        print(f"picture and figures are in {options.out}")
    if options.quick:
        print(f"quick: {N_QUICK_RUNS} runs and a made-up map show that it works and judge nothing")
        return 0
    return 1 if missed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few runs and a made-up map: seconds instead of minutes")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="where the maps are; without it they are skipped")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where the picture and all figures go")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
