"""One trial: split, fit, sample as many rows, score. And what real rows in place of synthetic ones would score."""

from __future__ import annotations

import time
from dataclasses import dataclass

import polars as pl

from benchmarks.forest.scores import FOUR, MAX_TRAIN, TWELVE, Marginals, mean_area
from benchmarks.forest.tables import BenchTable
from benchmarks.harness import seconds
from spinney.metrics import ks_distance
from spinney.privacy.entropy import UnsafeSeededEntropy

PURE, DELTA = "0", "1e-5"
# Twelve classifiers take long, so that fewer rows train them: all frauds, and honest payments up to this many.
MAX_FRAUD_TRAIN = 4_000


@dataclass(frozen=True, slots=True)
class Setting:
    """What is asked of the forest."""

    epsilon: str
    delta: str = DELTA
    quality: str = "fast"

    def __str__(self) -> str:
        kind = "pure " if self.delta == PURE else ""
        return f"{kind}epsilon {self.epsilon}, {self.quality}"


@dataclass(frozen=True, slots=True)
class Trial:
    """What one fit took and what its rows scored; `_equal`: in equal bins instead of bins at quantiles."""

    table: str
    setting: Setting
    repetition: int
    fit_seconds: float
    sample_seconds: float
    cpu_seconds: float  # of both together, on all processors
    ks: float  # mean over columns
    worst_ks: float
    tv1: float
    tv2: float
    tv1_equal: float
    tv2_equal: float
    area: float | None  # None where no classifier was trained


def fit(
    table: BenchTable, rows: pl.DataFrame, setting: Setting, *, seed: int, has_target: bool = True
) -> tuple[pl.DataFrame, float, float]:
    """As many synthetic rows as were fitted, the seconds of the fit and those of the drawing."""
    from spinney import ForestSynthesizer

    target = table.target if has_target else None
    model = ForestSynthesizer(epsilon=setting.epsilon, delta=setting.delta, target=target, quality=setting.quality)
    entropy = UnsafeSeededEntropy(seed)
    fitting = seconds(lambda: model.fit(rows, table.schema, entropy=entropy))
    drawn: list[pl.DataFrame] = []
    drawing = seconds(lambda: drawn.append(model.sample(rows.height, seed=seed)))
    return drawn[0], fitting, drawing


def warm_up(table: BenchTable, *, quality: str = "fast") -> None:
    """A fit that nobody times, so that nothing is compiled in those that count."""
    fit(table, table.frame, Setting("1", quality=quality), seed=0)


def trial(table: BenchTable, setting: Setting, *, repetition: int, has_areas: bool = True) -> Trial:
    """Fit four fifths, compare with them, and train for the last fifth; every repetition splits anew."""
    train, test = table.split(repetition)
    cpu_start = time.process_time()
    rows, fitting, drawing = fit(table, train, setting, seed=repetition)
    cpu_seconds = time.process_time() - cpu_start
    by_quantiles, equal = Marginals(train, table.schema), Marginals(train, table.schema, cut="equal")
    found, as_others = (each.distances(each.cells_of(rows)) for each in (by_quantiles, equal))
    ks = ks_distance(train, rows, table.schema).values()
    return Trial(
        table.name,
        setting,
        repetition,
        fitting,
        drawing,
        cpu_seconds,
        sum(ks) / len(ks),
        max(ks),
        found.tv1,
        found.tv2,
        as_others.tv1,
        as_others.tv2,
        area(table, test, rows, seed=repetition) if has_areas else None,
    )


def area(table: BenchTable, test: pl.DataFrame, rows: pl.DataFrame, *, seed: int) -> float:
    """Mean area under the ROC: of the paper's twelve classifiers for card fraud, of four for other tables."""
    is_fraud = table.name == "creditcard"
    return mean_area(
        test,
        rows,
        table,
        classifiers=TWELVE if is_fraud else FOUR,
        max_train=MAX_FRAUD_TRAIN if is_fraud else MAX_TRAIN,
        seed=seed,
    )


def reference(table: BenchTable) -> float:
    """The area that the real rows of the first split give, trained on in the same way."""
    train, test = table.split(0)
    return area(table, test, train, seed=0)
