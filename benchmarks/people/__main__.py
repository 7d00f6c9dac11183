"""Measure what is missing, print figures and verdicts, and fail where a target is missed."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.people import scale
from benchmarks.people.releases import LINKED, NO_LEVELS, REAL, TABLES, Measured, Release, measured
from benchmarks.people.results import Results, cells, shown
from benchmarks.people.rivals import K_ROWS, KS, MECHANISMS, ONE_ROW, rows_kept
from benchmarks.people.targets import lines, table
from benchmarks.tables.rivals import check_python
from spinney.errors import SpinneyError

EPSILONS = ("5", "1")


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    names = [name for name in options.only if name not in scale.TASKS]
    try:
        methods = expanded(options.methods)
        if options.mbi_python:
            check_python(options.mbi_python)
        code = _measure(options, names, methods) if names else 0
        for task in (name for name in options.only if name in scale.TASKS):
            code = max(code, scale.report(task, options.out))
    except SpinneyError as error:
        print(error, file=sys.stderr)
        return 2
    return code


def expanded(methods: Sequence[str]) -> list[str]:
    """Names of methods, "k-rows" written out, and "mst-k-rows" alike."""
    found = []
    for name in methods:
        head, is_all, _ = name.rpartition(K_ROWS)
        found += [f"{head}{k}-rows" for k in KS] if is_all else [name]
    for name in found:
        if name not in (LINKED, NO_LEVELS, REAL):
            rows_kept(name)
    return list(dict.fromkeys(found))


def _measure(options: argparse.Namespace, names: Sequence[str], methods: Sequence[str]) -> int:
    methods = [name for name in methods if not _is_left_out(name, options.mbi_python)]
    wanted = [
        Release(
            name,
            method,
            "" if method == REAL else epsilon,
            seed,
            options.quality if method in (LINKED, NO_LEVELS) else "fast",
        )
        for name in names
        for seed in range(options.seeds)
        for method in methods
        for epsilon in (options.epsilon if method != REAL else [""])
        if not (name == "shop-one" and method.endswith("-rows"))  # there is one row each
    ]
    results = Results(options.out)
    missing = results.missing(wanted)
    print(f"{len(missing)} of {len(wanted)} releases to measure; results are in {options.out}", flush=True)
    start = time.perf_counter()
    for n_done, release in enumerate(missing, 1):
        found = measured(release, options.data, mbi_python=options.mbi_python)
        results.add(found)
        print(f"[{n_done}/{len(missing)}, {time.perf_counter() - start:.0f} s] {_shown(found)}", flush=True)
    held = cells(one for one in results.read() if one.release.table in names)
    print(f"\n{shown(held)}")
    judged = lines(held)
    if judged:
        print(f"\n{table(judged)}")
    missed = sum(line.is_missed for line in judged)
    print(f"\n{len(judged) - missed} of {len(judged)} targets met, of those that were measured")
    return 1 if missed else 0


def _is_left_out(method: str, mbi_python: Path | None) -> bool:
    """Whether something that the method needs is not at hand, which is said."""
    if method.startswith(MECHANISMS) and mbi_python is None:
        print(f"left out: {method}, which needs --mbi-python PATH, a Python of an environment that has mbi")
        return True
    return False


def _shown(found: Measured) -> str:
    figures = found.figures
    return f"{found.release}: TV of rows {figures.child_tv1:.4f} / {figures.child_tv2:.4f}, {found.fit_seconds:.1f} s"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.people", description=__doc__)
    add = parser.add_argument
    known = (*TABLES, *scale.TASKS)
    add("--data", type=Path, metavar="FOLDER", help="where people/*.parquet are; made-up tables do without")
    add("--out", type=Path, required=True, metavar="FOLDER", help="where results go; a run goes on with what is there")
    add("--only", nargs="+", choices=known, default=list(TABLES), metavar="TABLE", help=", ".join(known))
    add("--epsilon", nargs="+", default=list(EPSILONS), metavar="E", help=f"{' '.join(EPSILONS)} unless told")
    add("--seeds", type=int, default=3, metavar="N", help="splits and releases of each kind, 3 unless told")
    add(
        "--methods",
        nargs="+",
        default=[LINKED, REAL, ONE_ROW, K_ROWS],
        metavar="METHOD",
        help="linked, no-levels, real, one-row, 10-rows (any k), k-rows (k = 5, 10, 20, 50), mst-10-rows, aim-10-rows",
    )
    add("--quality", default="fast", choices=("fast", "high"), help="of linked")
    add("--mbi-python", type=Path, metavar="PATH", help="a Python of an environment that has mbi")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
