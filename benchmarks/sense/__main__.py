"""Make the releases that are missing, print every figure beside what is wanted, and say which limits are missed."""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl

import spinney as sp
from benchmarks.forest.scores import thinned
from benchmarks.harness import measured, seconds
from benchmarks.sense.limits import plain, shown, verdicts
from benchmarks.sense.tables import HELD_OUT, NAMES, Judged, is_there, judged
from spinney.metrics import compare, train_on_synthetic
from spinney.privacy.entropy import UnsafeSeededEntropy

DELTA = "1e-6"
_QUICK_ROWS = 3_000
_MOST_TRAINED = 60_000
_QUICK_TABLES = ("loans", "credit")


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    if options.quick:
        options.releases, options.max_rows = 1, min(options.max_rows or _QUICK_ROWS, _QUICK_ROWS)
        options.tables = options.tables or list(_QUICK_TABLES)
    tables = options.tables or [
        name
        for name in NAMES
        if (options.held_out or name not in HELD_OUT) and (options.data is not None or is_there(name, None))
    ]
    for name in tables:
        if not is_there(name, options.data):
            print(f"there is no table {name!r} in {options.data}; tables are {', '.join(NAMES)}", file=sys.stderr)
            return 2
    options.out.mkdir(parents=True, exist_ok=True)
    record = options.out / "results.jsonl"
    outcomes = _read(record)
    done = {_key(outcome) for outcome in outcomes}
    for name in tables:
        for repetition in range(options.releases):
            asked = {
                "table": name,
                "repetition": repetition,
                "is_stated": options.stated,
                "quality": options.quality,
                "max_rows": options.max_rows,
            }
            if _key(asked) in done:
                continue
            start = time.perf_counter()
            table = judged(name, options.data, is_stated=options.stated, most_rows=options.max_rows)
            figures = _release(table, repetition, options)
            outcome = asked | {"measured": measured(), "n_rows": table.fitted.height, "figures": figures}
            with record.open("a", encoding="utf-8") as file:
                file.write(json.dumps(outcome) + "\n")
            outcomes.append(outcome)
            print(f"{name}, release {repetition + 1}: {time.perf_counter() - start:.0f} s", flush=True)
    # Of several kinds of releases in one folder, those that were asked for.
    wanted = {"is_stated": options.stated, "quality": options.quality, "max_rows": options.max_rows}
    found = verdicts(
        outcome
        for outcome in sorted(outcomes, key=lambda outcome: NAMES.index(outcome["table"]))
        if outcome["table"] in tables and wanted.items() <= outcome.items()
    )
    (options.out / "sense.json").write_text(json.dumps(plain(found), indent=1) + "\n", encoding="utf-8")
    print(f"\n{shown(found)}")
    if options.quick:
        print("quick: few rows show that it works and judge nothing")
    return 0


def _release(table: Judged, repetition: int, options: argparse.Namespace) -> dict[str, Any]:
    """One release: its rows against those that were fitted, and what a classifier learns from them."""
    model = sp.ForestSynthesizer(table.epsilon, DELTA, target=table.target, quality=options.quality)
    entropy = UnsafeSeededEntropy(repetition)
    fit_seconds = seconds(lambda: model.fit(table.fitted, table.schema, entropy=entropy))
    drawn: list[pl.DataFrame] = []
    sample_seconds = seconds(lambda: drawn.append(model.sample(table.fitted.height, seed=repetition)))
    rows = drawn[0]
    found = compare(table.fitted, rows, table.schema, ways=1)
    assert found.sense is not None
    sense = found.sense.to_dict()
    del sense["common"], sense["rows"]
    real, mean = (_means(frame) for frame in (table.fitted, rows))
    figures: dict[str, Any] = {
        "sense": sense,
        "columns": {
            name: {
                "ks": column.ks,
                "spread": column.spread,
                "mean_real": real.get(name),
                "mean": mean.get(name),
            }
            for name, column in found.columns.items()
        },
        "lost": None,
        "auc": None,
        "fit_seconds": fit_seconds,
        "sample_seconds": sample_seconds,
    }
    if table.lost_of is not None:
        figures["lost"] = len(set(table.fitted[table.lost_of]) - set(rows[table.lost_of]))
    if table.can_learn and not options.no_areas:
        of_real = _area_of_real(table.name, options.data, options.max_rows)
        figures["auc"] = {"real": of_real, "synthetic": _area(table, rows)}
    return figures


def _means(frame: pl.DataFrame) -> dict[str, float]:
    """Means of numbers; an average day is no ratio."""
    return {name: float(frame[name].mean()) for name in frame.columns if frame[name].dtype.is_numeric()}  # type: ignore[arg-type]


def _area(table: Judged, rows: pl.DataFrame) -> float:
    learnt = thinned(rows, table.target, _MOST_TRAINED, 0)
    found = train_on_synthetic(table.held_back, learnt, table.schema, target=table.target, classifiers=["XGBoost"])
    return found["XGBoost"]


@lru_cache
def _area_of_real(name: str, folder: Path | None, most_rows: int | None) -> float:
    """What the rows that are fitted teach; the same of all releases."""
    table = judged(name, folder, is_stated=False, most_rows=most_rows)
    return _area(table, table.fitted)


def _key(outcome: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(outcome[name] for name in ("table", "repetition", "is_stated", "quality", "max_rows"))


def _read(record: Path) -> list[dict[str, Any]]:
    if not record.is_file():
        return []
    return [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sense", description=__doc__)
    add = parser.add_argument
    add("--data", type=Path, metavar="FOLDER", help="where real tables are; made ones need none")
    add("--out", type=Path, required=True, metavar="FOLDER", help="where results go; a run goes on with what is there")
    add("--tables", type=_listed, metavar="TABLE,...", help=", ".join(NAMES))
    add("--held-out", action="store_true", help=f"look at these as well: {', '.join(HELD_OUT)}")
    add("--stated", action="store_true", help="state the rules between columns that a careful holder would state")
    add("--releases", type=int, default=3, metavar="N", help="of each table; 3 by default")
    add("--quality", default="fast", choices=("fast", "high"), help="of forests")
    add("--max-rows", type=int, metavar="N", help="fit at most so many rows of a table; by default all")
    add("--no-areas", action="store_true", help="train no classifiers")
    add("--quick", action="store_true", help="few rows of two made tables")
    return parser


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
