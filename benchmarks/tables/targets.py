"""What is wanted, beside what was measured: of adult in figures, of six tables as ratios to what `high` was before.

The ratios compare with `baseline.json`: `high` as of version 0.1.0 before pairs were released as one vector, with the
true number of rows told, add-remove, delta = 1e-5, no target. Everything here is about releases under add-remove
without a target. Where only releases with the number of rows told were measured, those are judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import exp, log
from pathlib import Path
from statistics import mean

from benchmarks.forest.targets import Line, table
from benchmarks.tables.results import Cell, from_json

BEST = "best"
EPSILONS = ("0.1", "1", "10")
ADULT = {
    "tv2": (0.070, 0.028, 0.016),
    "query": (0.006, 0.0020, 0.0009),
    "correlation": (0.035, 0.020, 0.008),
    "auc_lr": (0.889, 0.902, 0.905),
    "auc_xgb": (0.890, 0.908, 0.915),
}
ADULT_SECONDS = {"fast": 0.2, "high": 5.0, BEST: 60.0}
# Ratios of `best` to the baseline, by figure and epsilon.
RATIOS = {
    "tv2": {"1": 0.8, "10": 0.7},
    "query": {"1": 0.5, "10": 0.35},
    "correlation": {"1": 0.45, "10": 0.25},
}
RATIO_TABLES = (
    "census_income",
    "bank_additional",
    "credit_default_uci",
    "diamonds",
    "california_housing",
    "covtype",
)
NAMES = {
    "tv2": "TV2",
    "query": "queries",
    "correlation": "correlations",
    "auc_lr": "AUC of logistic regression",
    "auc_xgb": "AUC of XGBoost",
}
_BASELINE = Path(__file__).with_name("baseline.json")

__all__ = ["ADULT", "ADULT_SECONDS", "RATIOS", "RATIO_TABLES", "Line", "baseline", "lines", "table"]


def lines(cells: Sequence[Cell]) -> list[Line]:
    """One line for every target of which something was measured."""
    return [*_adult(cells), *_seconds(cells), *_ratios(cells)]


@lru_cache
def baseline() -> tuple[Cell, ...]:
    """What `high` was before."""
    return tuple(from_json(_BASELINE.read_text(encoding="utf-8"))[1])


def _adult(cells: Sequence[Cell]) -> list[Line]:
    found = []
    for figure, wanted in ADULT.items():
        for epsilon, limit in zip(EPSILONS, wanted, strict=True):
            measured = _figure(cells, "adult", BEST, epsilon, figure)
            if measured is not None:
                what = f"adult, epsilon {epsilon}, {BEST}: {NAMES[figure]}"
                found.append(Line(what, (measured,), limit, is_floor=figure.startswith("auc")))
    return found


def _seconds(cells: Sequence[Cell]) -> list[Line]:
    found = []
    for quality, limit in ADULT_SECONDS.items():
        measured = _figure(cells, "adult", quality, "1", "fit_seconds")
        if measured is not None:
            found.append(Line(f"adult, epsilon 1, {quality}: fit", (measured,), limit, "s"))
    return found


def _ratios(cells: Sequence[Cell]) -> list[Line]:
    """Every table by itself, and their geometric mean where all were measured."""
    found = []
    for figure, by_epsilon in RATIOS.items():
        for epsilon, limit in by_epsilon.items():
            ratios = {}
            for name in RATIO_TABLES:
                now = _figure(cells, name, BEST, epsilon, figure)
                before = _figure(baseline(), name, "high", epsilon, figure)
                if now is not None and before:
                    ratios[name] = now / before
            head = f"epsilon {epsilon}, {BEST} over high of before: {NAMES[figure]}"
            found += [Line(f"{name}, {head}", (ratio,), limit, "x") for name, ratio in ratios.items()]
            if len(ratios) == len(RATIO_TABLES):
                together = exp(mean(log(ratio) for ratio in ratios.values()))
                found.append(Line(f"six tables, {head}", (together,), limit, "x"))
    return found


def _figure(cells: Sequence[Cell], name: str, system: str, epsilon: str, figure: str) -> float | None:
    those = [
        cell
        for cell in cells
        if (cell.table, cell.system, cell.epsilon) == (name, system, epsilon)
        and cell.unit == "add-remove"
        and not cell.has_target
    ]
    return min(those, key=lambda cell: cell.is_told_rows).mean(figure) if those else None
