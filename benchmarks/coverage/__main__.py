"""Measure what is missing, and print how often intervals hold."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from benchmarks.coverage.results import Results, shown, summary, to_json
from benchmarks.coverage.tables import MADE_UP, MADE_UP_TREE, NAMES, file_of
from benchmarks.coverage.trials import Trial, run

EPSILONS = ("0.3", "1", "5")
_MOST_ROWS = 50_000


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    tables = options.only or ((MADE_UP, MADE_UP_TREE) if options.data is None else NAMES)
    for name in tables:
        if options.data is not None and not (options.data / f"{file_of(name)}.parquet").is_file():
            print(f"there is no table {name!r} in {options.data}; leave it out with --only", file=sys.stderr)
            return 2
    wanted = [
        Trial(table, epsilon, repetition, options.quality, options.unit, options.questions)
        for repetition in range(options.runs)
        for table in tables
        for epsilon in options.epsilon
    ]
    results = Results(options.out)
    missing = results.missing(wanted)
    print(f"{len(missing)} of {len(wanted)} releases to make; results are in {options.out}", flush=True)
    start = time.perf_counter()
    for n_done, trial in enumerate(missing, 1):
        outcome = run(trial, options.data, most_rows=options.most_rows)
        results.add(outcome)
        passed = time.perf_counter() - start
        took = f"fit {outcome.fit_seconds:.1f} s, first answer {outcome.first_answer_seconds:.2f} s"
        print(f"[{n_done}/{len(missing)}, {passed:.0f} s] {trial}: {took}", flush=True)
    outcomes = results.read()
    (options.out / "coverage.json").write_text(to_json(outcomes), encoding="utf-8")
    print(f"\n{shown(summary(outcomes))}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    add = parser.add_argument
    add("--data", type=Path, metavar="FOLDER", help="where the tables are, as parquet files; without it, made-up rows")
    add("--out", type=Path, required=True, metavar="FOLDER", help="where results go; a run goes on with what is there")
    add("--only", type=_listed, metavar="TABLE,...", help=", ".join(NAMES))
    add("--epsilon", type=_listed, default=list(EPSILONS), metavar="E,...", help=f"{','.join(EPSILONS)} unless told")
    add("--runs", type=int, default=20, metavar="N", help="releases of each table and epsilon, 20 unless told")
    add("--questions", type=int, default=12, metavar="N", help="questions of each kind, 12 unless told")
    add("--quality", default="fast", choices=("fast", "high", "best"), help="of forests")
    add("--unit", default="replace-one", choices=("replace-one", "add-remove"))
    add("--most-rows", type=int, default=_MOST_ROWS, metavar="N", help=f"rows of a population, {_MOST_ROWS:,} at most")
    return parser


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
