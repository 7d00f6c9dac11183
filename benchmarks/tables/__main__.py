"""Measure what is missing, print figures and verdicts, and fail where a target is missed."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import polars as pl

import spinney as sp
from benchmarks.forest.tables import DESCRIPTIONS, check_folder
from benchmarks.harness import measured as moment
from benchmarks.tables import releases, rivals
from benchmarks.tables.releases import Measured, Release
from benchmarks.tables.results import Results, cells, to_json
from benchmarks.tables.targets import Line, lines, table
from benchmarks.tables.work import Work, measure_all
from spinney.errors import SpinneyError
from spinney.synthesizers.forest import QUALITIES

EPSILONS = ("0.1", "1", "10")
UNITS = ("add-remove", "replace-one")
TARGETS = {"named": (True,), "none": (False,), "both": (False, True)}
_LIMIT = 1_800.0  # seconds for one release of a rival


def main(arguments: list[str]) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.aim and not options.mbi_python:
        parser.error("--aim needs --mbi-python PATH, a Python of an environment that has mbi")
    try:
        if options.data:
            check_folder(options.data, options.only)
        if options.mbi_python:
            rivals.check_python(options.mbi_python)
    except SpinneyError as error:
        print(error, file=sys.stderr)
        return 2
    results = Results(options.out)
    wanted = _wanted(options)
    missing = results.missing(wanted)
    print(f"{len(missing)} of {len(wanted)} releases to measure; results are in {options.out}", flush=True)
    others = sorted({found.version for found in results.read()} - {sp.__version__})
    if others:
        print(f"those of version {', '.join(others)} are kept; name another folder with --out to measure them anew")
    start = time.perf_counter()
    for n_done, found in enumerate(measure_all(_works(missing, options), n_jobs=options.jobs), 1):
        results.add(found)
        passed = time.perf_counter() - start
        print(f"[{n_done}/{len(missing)}, {passed:.0f} s] {_shown(found)}", flush=True)
    everything = results.read()
    judged = lines(cells(everything))
    written = to_json(
        everything,
        measured=moment(),
        tables=_described(everything, options.data),
        targets=[{"what": line.what, "measured": line.mean, "wanted": line.wanted} | _verdict(line) for line in judged],
    )
    (options.out / "tables.json").write_text(written, encoding="utf-8")
    print(f"\n{table(judged)}")
    missed = sum(line.is_missed for line in judged)
    print(f"\n{len(judged) - missed} of {len(judged)} targets met, of those that were measured")
    return 1 if missed else 0


def _wanted(options: argparse.Namespace) -> list[Release]:
    """Releases of ours and floors, then rivals, which take longest."""
    found = releases.ours(
        options.only,
        options.epsilon,
        options.quality,
        TARGETS[options.target],
        n_runs=options.runs,
        unit=options.unit,
        is_told_rows=options.tell_rows,
    )
    if not options.mbi_python:
        return found
    names = [name for name, (mechanism, _) in rivals.RIVALS.items() if mechanism == "MST" or options.aim]
    runs = options.rival_runs
    return found + rivals.rivals(options.only, options.epsilon, names, n_runs=runs, unit=options.unit)


def _works(missing: Sequence[Release], options: argparse.Namespace) -> list[tuple[Work, Release]]:
    """Each release with what measures it."""
    has_areas = not options.distances_only
    ours = partial(releases.measured, folder=options.data, has_areas=has_areas)
    theirs = partial(
        rivals.measured,
        folder=options.data,
        python=options.mbi_python,
        limit=options.rival_limit,
        has_areas=has_areas,
    )
    return [(theirs if release.system in rivals.RIVALS else ours, release) for release in missing]


def _described(found: Sequence[Measured], folder: Path | None) -> dict[str, dict[str, int | bool]]:
    """Of every table that was measured: whether it is held out, and its size."""
    held: dict[str, dict[str, int | bool]] = {}
    for name in dict.fromkeys(one.release.table for one in found):
        held[name] = {"is_held_out": DESCRIPTIONS[name].is_held_out}
        path = None if folder is None else folder / f"{name}.parquet"
        if path is not None and path.is_file():
            frame = pl.scan_parquet(path)
            n_columns = len(frame.collect_schema()) - len(DESCRIPTIONS[name].left_out)
            held[name] |= {"rows": frame.select(pl.len()).collect().item(), "columns": n_columns}
    return held


def _verdict(line: Line) -> dict[str, bool | str]:
    return {"is_floor": line.is_floor, "unit": line.unit, "is_met": not line.is_missed}


def _shown(found: Measured) -> str:
    took = f"fit {found.fit_seconds:.1f} s, rows {found.draw_seconds:.1f} s"
    if found.figures is None:
        return f"{found.release}: {found.note}"
    figures = found.figures
    areas = "" if figures.auc_lr is None else f", AUC {figures.auc_lr:.3f} / {figures.auc_xgb:.3f}"
    correlation = "" if figures.correlation is None else f", correlations {figures.correlation:.4f}"
    return (
        f"{found.release}: KS {figures.worst_ks:.4f}, TV {figures.tv1:.4f} / {figures.tv2:.4f}, "
        f"queries {figures.query:.4f}{correlation}{areas}; {took}"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables", description=__doc__)
    add = parser.add_argument
    add("--data", type=Path, metavar="FOLDER", help="where the tables are, as parquet files; without it, made-up rows")
    add("--out", type=Path, required=True, metavar="FOLDER", help="where results go; a run goes on with what is there")
    tables = ", ".join(DESCRIPTIONS)
    add("--only", type=_some_of(tuple(DESCRIPTIONS)), default=list(DESCRIPTIONS), metavar="TABLE,...", help=tables)
    add("--epsilon", type=_listed, default=list(EPSILONS), metavar="E,...", help=f"{','.join(EPSILONS)} unless told")
    add("--quality", type=_some_of(QUALITIES), default=list(QUALITIES), metavar="Q,...", help="all unless told")
    add("--target", choices=TARGETS, default="both", help="whether the target is named to the synthesizer")
    add("--unit", choices=UNITS, default="add-remove")
    add("--runs", type=_positive, default=3, metavar="N", help="releases of each kind, 3 unless told")
    add("--jobs", type=_positive, default=1, metavar="N", help="processes at a time; more than one disturbs times")
    add("--tell-rows", action="store_true", help="state the true number of rows as `assumed_rows`")
    add("--distances-only", action="store_true", help="train no classifiers")
    add("--mbi-python", type=Path, metavar="PATH", help="a Python of an environment that has mbi; adds MST")
    add("--aim", action="store_true", help="add AIM, which takes minutes to hours for a release")
    add("--rival-runs", type=_positive, default=1, metavar="N", help="releases of each rival, 1 unless told")
    add("--rival-limit", type=float, default=_LIMIT, metavar="SECONDS", help=f"for a rival, {_LIMIT:g} unless told")
    return parser


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _some_of(known: Sequence[str]) -> Callable[[str], list[str]]:
    def parsed(text: str) -> list[str]:
        found = _listed(text)
        for name in found:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(known)}")
        return found

    return parsed


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("give a whole number of at least 1")
    return number


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
