"""Run the benchmark, print measured against wanted, and fail where a full run misses."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.forest import limits, peers
from benchmarks.forest.scores import Cut, Marginals
from benchmarks.forest.tables import DESCRIPTIONS, BenchTable, check_folder, generated, load
from benchmarks.forest.targets import (
    ADULT_DISTANCES,
    FRAUD_AREAS,
    Line,
    limit_lines,
    markdown,
    peer_lines,
    table,
    trial_lines,
)
from benchmarks.forest.trials import Setting, Trial, reference, trial, warm_up
from benchmarks.harness import measured

N_RUNS = 5
# The tables of this benchmark; `benchmarks.tables` goes over all that are described.
TABLES = (
    "adult",
    "creditcard",
    "bank_additional",
    "credit_default_uci",
    "census_income",
    "covtype",
    "kdd99_10pct",
    "diamonds",
)
PARTS = (*TABLES, "limits", "peers")
SETTINGS = {"creditcard": tuple(FRAUD_AREAS), "adult": tuple(ADULT_DISTANCES)}
_PEER_LIMIT = 600.0  # seconds
_PEERS: tuple[tuple[str, Cut], ...] = (("MST", "quantiles"), ("MST", "equal"), ("AIM", "quantiles"))


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    parts = tuple(options.only or (["adult"] if options.quick else PARTS))
    if options.data:
        check_folder(options.data, tuple(part for part in parts if part in DESCRIPTIONS))
    start = time.perf_counter()
    lines: list[Line] = []
    trials: list[Trial] = []
    for part in parts:
        is_made_up = options.quick and options.data is None and part in DESCRIPTIONS
        print(f"{'made-up rows' if is_made_up else part} ...", flush=True)
        found, more = _part(
            part,
            options.data,
            n_runs=1 if options.quick else options.runs,
            is_quick=options.quick,
            has_areas=not options.distances_only,
        )
        trials += found
        lines += more
    print(f"\n{table(lines)}")
    judged = [line for line in lines if line.wanted is not None]
    missed = sum(line.is_missed for line in judged)
    print(f"\n{len(judged) - missed} of {len(judged)} targets met in {time.perf_counter() - start:.0f} s")
    if options.out:
        _write(options.out, trials, lines)
    if options.quick:
        print("quick: one run shows that it works and judges nothing")
        return 0
    return 1 if missed else 0


def _part(
    part: str, folder: Path | None, *, n_runs: int, is_quick: bool, has_areas: bool
) -> tuple[list[Trial], list[Line]]:
    if part == "limits":
        return [], _limits(folder, widths=(20, 40) if is_quick else limits.WIDTHS)
    if folder is None and not is_quick:
        print(f"  skipped, for it needs {part if part in DESCRIPTIONS else 'adult'}.parquet; name a folder with --data")
        return [], []
    if part == "peers":
        return _peers(folder)
    data = generated(5_000, 10) if folder is None else load(part, folder)
    return _trials(data, SETTINGS.get(part, (Setting("1"),)), n_runs=n_runs, has_areas=has_areas)


def _trials(
    data: BenchTable, settings: Sequence[Setting], *, n_runs: int, has_areas: bool
) -> tuple[list[Trial], list[Line]]:
    """All settings of one table, repetition by repetition, after a fit that is not timed."""
    for quality in dict.fromkeys(setting.quality for setting in settings):
        warm_up(data, quality=quality)
    found = []
    for setting in settings:
        for repetition in range(n_runs):
            found.append(trial(data, setting, repetition=repetition, has_areas=has_areas))
            last = found[-1]
            area = "" if last.area is None else f"AUC {last.area:.3f}, "
            print(
                f"  {setting}: KS {last.ks:.4f}, worst {last.worst_ks:.4f}, TV1 {last.tv1:.4f}, TV2 {last.tv2:.4f}, "
                f"{area}fit {last.fit_seconds:.2f} s, rows {last.sample_seconds:.2f} s",
                flush=True,
            )
    return found, trial_lines(found, reference(data) if has_areas else None)


def _limits(folder: Path | None, *, widths: tuple[int, ...]) -> list[Line]:
    peak = None
    if folder is not None and (folder / "creditcard.parquet").is_file():
        peak = limits.peak_of_fraud_fit(folder)
    else:
        print("  memory: skipped, for it needs creditcard.parquet; name a folder with --data")
    wide = {}
    for kind, has_target in (("no target", False), ("target named", True)):
        limits.wide_seconds(20, n_rows=2_000, has_target=has_target)  # compile
        for width in widths:
            wide[kind, width] = limits.wide_seconds(width, has_target=has_target)
    return limit_lines(peak, wide)


def _peers(folder: Path | None) -> tuple[list[Trial], list[Line]]:
    if not peers.is_installed():
        print(f"  {peers.MISSING}")
        return [], []
    data = generated(5_000, 10) if folder is None else load("adult", folder)
    warm_up(data)
    ours = trial(data, Setting("1"), repetition=0, has_areas=False)
    train = data.split(0)[0]
    found = []
    for name, cut in _PEERS:
        marginals = Marginals(train, data.schema, cut=cut)
        found.append(peers.run(name, marginals, epsilon=1.0, delta=1e-5, seed=0, limit=_PEER_LIMIT, cut=cut))
        print(f"  {found[-1]}", flush=True)
    return [ours], peer_lines(found, ours)


def _write(folder: Path, trials: list[Trial], lines: list[Line]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    record = {
        "measured": measured(),
        "trials": [asdict(one) for one in trials],
        "table": [asdict(line) | {"mean": line.mean, "sd": line.noise_std} for line in lines],
    }
    (folder / "forest.json").write_text(json.dumps(record, indent=1) + "\n")
    (folder / "forest.md").write_text(markdown(lines))
    print(f"table and figures are in {folder}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forest", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one run on adult, or on made-up rows without --data")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="where the tables are, as parquet files")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where the table and all figures go")
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="NAME", help=f"which of {', '.join(PARTS)}")
    parser.add_argument(
        "--distances-only", action="store_true", help="train no classifiers, which take most of the time"
    )
    parser.add_argument(
        "--runs", type=_at_least_two, default=N_RUNS, metavar="N", help=f"repetitions, {N_RUNS} unless told"
    )
    return parser


def _at_least_two(text: str) -> int:
    number = int(text)
    if number < 2:
        raise argparse.ArgumentTypeError("a deviation needs at least two runs; --quick makes one")
    return number


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
