"""Measure what is missing, and print which intervals do not hold as often as they say."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from benchmarks.coverage.results import Results, shown, to_json
from benchmarks.coverage.tables import HELD_OUT, MADE_TREE, NAMES, is_there
from benchmarks.coverage.trials import Outcome, Trial, run

EPSILONS = ("0.3", "1", "5")
UNITS = ("replace-one", "add-remove")
_MOST_ROWS, _QUICK_ROWS = 30_000, 2_000
_BAR = 24
_SCALE = 0.6  # which makes a release and its questions a matter of seconds


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    if options.quick:
        options.tables = options.tables or ["made codes", MADE_TREE]
        options.max_rows, options.questions = min(options.max_rows, _QUICK_ROWS), min(options.questions, 0.2)
        options.releases, options.epsilons, options.units = 1, options.epsilons[:1], options.units[:1]
    if options.data is None and not options.tables:
        print("--data names the folder of tables; --quick does without", file=sys.stderr)
        return 2
    tables = options.tables or [name for name in NAMES if options.held_out or name not in HELD_OUT]
    for name in tables:
        if name not in (*NAMES, MADE_TREE) or not is_there(name, options.data):
            known = ", ".join(NAMES)
            print(f"there is no table {name!r} in {options.data}; the tables are {known}", file=sys.stderr)
            return 2
    wanted = [
        Trial(table, unit, epsilon, repetition, options.questions, options.quality)
        for repetition in range(options.releases)
        for table in tables
        for unit in options.units
        for epsilon in options.epsilons
    ]
    results = Results(options.out)
    missing = results.missing(wanted)
    print(f"{len(missing)} of {len(wanted)} releases to make; results are in {options.out}", flush=True)
    start = time.perf_counter()
    for n_done, outcome in enumerate(_outcomes(missing, options), 1):
        results.add(outcome)
        _progress(n_done, len(missing), time.perf_counter() - start, outcome)
    outcomes = results.read()
    (options.out / "coverage.json").write_text(to_json(outcomes), encoding="utf-8")
    print(f"\n{shown(outcomes)}")
    return 0


def _outcomes(trials: list[Trial], options: argparse.Namespace) -> Iterator[Outcome]:
    """What trials give, in order of one process, or as it comes of several."""
    how = {"most_rows": options.max_rows, "most_drawn_from": options.drawn_from}
    if options.jobs < 2:
        yield from (run(trial, options.data, **how) for trial in trials)
        return
    with ProcessPoolExecutor(options.jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        for done in as_completed([pool.submit(run, trial, options.data, **how) for trial in trials]):
            yield done.result()


def _progress(n_done: int, n: int, passed: float, outcome: Outcome) -> None:
    filled = _BAR * n_done // n
    left = passed / n_done * (n - n_done)
    bar = "#" * filled + "." * (_BAR - filled)
    print(
        f"[{bar}] {n_done}/{n}, {passed / 60:.1f} min passed, about {left / 60:.1f} left; "
        f"{outcome.trial}: fit {outcome.fit_seconds:.1f} s, all {outcome.seconds:.1f} s",
        flush=True,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    add = parser.add_argument
    add("--data", type=Path, metavar="FOLDER", help="where the tables are; made tables need none")
    add("--out", type=Path, required=True, metavar="FOLDER", help="where results go; a run goes on with what is there")
    add("--tables", type=_listed, metavar="TABLE,...", help=", ".join(NAMES))
    add("--held-out", action="store_true", help=f"look at these as well: {', '.join(HELD_OUT)}")
    add("--releases", type=int, default=20, metavar="N", help="of each table, unit and epsilon; 20 by default")
    add("--epsilons", type=_listed, default=list(EPSILONS), metavar="E,...", help=f"by default {','.join(EPSILONS)}")
    add("--units", type=_listed, default=list(UNITS), metavar="U,...", help=f"by default {','.join(UNITS)}")
    add(
        "--questions",
        type=float,
        default=_SCALE,
        metavar="X",
        help=f"times as many questions a release; by default {_SCALE}",
    )
    add(
        "--drawn-from",
        type=int,
        default=5,
        metavar="N",
        help="releases of a cell whose regressions are fitted to draws",
    )
    add("--quality", default="fast", choices=("fast", "high"), help="of forests")
    add("--max-rows", type=int, default=_MOST_ROWS, metavar="N", help=f"of a population; by default {_MOST_ROWS:,}")
    add("--jobs", type=int, default=1, metavar="N", help="processes")
    add("--quick", action="store_true", help="few questions to one release each of two made tables")
    return parser


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
