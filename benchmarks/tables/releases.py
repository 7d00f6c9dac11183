"""Releases to measure, in an order that makes the most of what is loaded, and the measuring of one."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl

import spinney as sp
from benchmarks.forest.tables import DESCRIPTIONS, BenchTable, generated, load
from benchmarks.harness import seconds
from benchmarks.tables.figures import Figures, Yardstick
from spinney.privacy.entropy import UnsafeSeededEntropy

REAL = "real rows"


@dataclass(frozen=True, slots=True)
class Release:
    """What is asked for: a system's rows of a table at a budget. Two that are equal are one."""

    table: str
    system: str  # a quality of ours, a rival, or the floor
    epsilon: str  # "" for real rows
    repetition: int
    has_target: bool = False
    unit: str = "add-remove"
    delta: str = "1e-5"
    is_told_rows: bool = False  # whether the true number of rows was stated as `assumed_rows`

    def __str__(self) -> str:
        told = [f"epsilon {self.epsilon}"] if self.epsilon else []
        told += ["target named"] * self.has_target + ["number of rows told"] * self.is_told_rows
        return f"{', '.join([self.table, self.system, *told])}, run {self.repetition + 1}"


@dataclass(frozen=True, slots=True)
class Measured:
    """What a release scored and took; no figures where a rival was stopped, and the note says so."""

    release: Release
    figures: Figures | None
    fit_seconds: float
    draw_seconds: float
    cpu_seconds: float  # of both
    version: str
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def ours(
    tables: Iterable[str],
    epsilons: Sequence[str],
    qualities: Sequence[str],
    has_targets: Sequence[bool],
    *,
    n_runs: int,
    unit: str,
    is_told_rows: bool,
) -> list[Release]:
    """Every release of ours, and the floors, table by table and split by split."""
    found = []
    for table in tables:
        for repetition in range(n_runs):
            found.append(Release(table, REAL, "", repetition))
            found += [
                Release(table, quality, epsilon, repetition, has_target, unit, is_told_rows=is_told_rows)
                for quality in qualities
                for epsilon in epsilons
                for has_target in has_targets
            ]
    return found


def measured(release: Release, folder: Path | None, *, has_areas: bool = True) -> Measured:
    """One release of ours, or the floor.

    Args:
        release: what to fit.
        folder: where the tables are; without one, made-up rows stand in for all of them.
        has_areas: whether classifiers are trained.
    """
    yardstick = yardstick_of(release.table, folder, release.repetition)
    if release.system == REAL:
        floor = yardstick.distances(yardstick.resampled())
        lr, xgb = yardstick.areas(yardstick.train) if has_areas else (None, None)
        return Measured(release, Figures(**floor, auc_lr=lr, auc_xgb=xgb), 0.0, 0.0, 0.0, sp.__version__)
    _warm_up(release.system)
    start = time.process_time()
    rows, fitting, drawing = _fitted(release, yardstick)
    cpu_seconds = time.process_time() - start
    figures = yardstick.figures(rows, has_areas=has_areas)
    return Measured(release, figures, fitting, drawing, cpu_seconds, sp.__version__)


@lru_cache(maxsize=1)
def yardstick_of(table: str, folder: Path | None, split: int) -> Yardstick:
    """Kept until another is asked for."""
    return Yardstick(_table(table, folder), split)


@lru_cache(maxsize=1)
def _table(name: str, folder: Path | None) -> BenchTable:
    if folder is None:
        return generated(2_000, 6, seed=list(DESCRIPTIONS).index(name))
    return load(name, folder)


def _fitted(release: Release, yardstick: Yardstick) -> tuple[pl.DataFrame, float, float]:
    """As many rows as were fitted, the seconds of the fit and those of the drawing."""
    train, table = yardstick.train, yardstick.table
    options: dict[str, Any] = {"assumed_rows": train.height} if release.is_told_rows else {}
    model = sp.ForestSynthesizer(
        epsilon=release.epsilon,
        delta=release.delta,
        target=table.target if release.has_target else None,
        quality=release.system,
        unit=release.unit,
        **options,
    )
    entropy = UnsafeSeededEntropy(release.repetition)
    fitting = seconds(lambda: model.fit(train, table.schema, entropy=entropy))
    drawn: list[pl.DataFrame] = []
    drawing = seconds(lambda: drawn.append(model.sample(train.height, seed=release.repetition)))
    return drawn[0], fitting, drawing


@lru_cache
def _warm_up(quality: str) -> None:
    """A fit that nobody times, so that nothing is compiled in those that count."""
    table = generated(2_000, 6)
    for target in (table.target, None):
        model = sp.ForestSynthesizer(epsilon="1", delta="1e-5", target=target, quality=quality, unit="add-remove")
        model.fit(table.frame, table.schema).sample(10)
