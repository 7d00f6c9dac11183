"""Releases to measure, and the measuring of one."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl

import spinney as sp
from benchmarks.people.figures import Figures, Yardstick
from benchmarks.people.homes import homes
from benchmarks.people.labels import area
from benchmarks.people.rivals import DELTA, rival_rows
from benchmarks.people.shop import shop, shop_one, shop_ten
from benchmarks.people.tables import FILES, PERSONS, ROWS, People, PeopleTable, parted
from spinney.errors import FileError, PrivacyWarning, SchemaWarning
from spinney.privacy.entropy import UnsafeSeededEntropy

LINKED, NO_LEVELS, REAL = "linked", "no-levels", "real"
MADE = {"shop": shop, "shop-one": shop_one, "shop-ten": shop_ten, "homes": homes}
TABLES = (*FILES, *MADE)


@dataclass(frozen=True, slots=True)
class Release:
    """What is asked for: a method's rows of a table at a budget. Two that are equal are one."""

    table: str
    method: str
    epsilon: str  # "" for real persons
    seed: int
    quality: str = "fast"  # of `linked`

    def __str__(self) -> str:
        told = f", epsilon {self.epsilon}" if self.epsilon else ""
        return f"{self.table}, {self.method}{told}, run {self.seed + 1}"


@dataclass(frozen=True, slots=True)
class Measured:
    """What a release scored and took."""

    release: Release
    figures: Figures
    fit_seconds: float  # rivals: with their draw
    draw_seconds: float
    version: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def measured(release: Release, folder: Path | None, *, mbi_python: Path | None = None) -> Measured:
    """Fit, draw and judge one release."""
    yardstick = yardstick_of(release.table, folder, release.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SchemaWarning)
        warnings.simplefilter("ignore", PrivacyWarning)
        if release.method == REAL:
            return Measured(release, _floor(yardstick, release.seed), 0.0, 0.0, sp.__version__)
        start = time.perf_counter()
        if release.method in (LINKED, NO_LEVELS):
            with _levels(is_wanted=release.method == LINKED):
                model = fitted(release, yardstick.table, yardstick.fitted)
            between = time.perf_counter()
            people = drawn(model, yardstick.table, release.seed)
            end = time.perf_counter()
            figures = yardstick.figures_of_people(people, n_persons=_n_persons(yardstick))
        else:
            rows = rival_rows(
                release.method,
                yardstick.table,
                yardstick.fitted,
                release.epsilon,
                release.seed,
                mbi_python=mbi_python,
            )
            between = end = time.perf_counter()
            figures = yardstick.figures_of_rows(rows)
    return Measured(release, figures, between - start, end - between, sp.__version__)


@lru_cache(maxsize=1)
def yardstick_of(name: str, folder: Path | None, seed: int) -> Yardstick:
    """Kept until another is asked for."""
    table = _table(name, folder)
    return Yardstick(table, *table.split(seed))


@lru_cache(maxsize=1)
def _table(name: str, folder: Path | None) -> PeopleTable:
    if name in MADE:
        return MADE[name]()
    if folder is None:
        raise FileError(f"{name} is read from a file; name its folder with --data, or one of {', '.join(MADE)}")
    return FILES[name](folder)


def fitted(release: Release, table: PeopleTable, people: People) -> sp.LinkedSynthesizer:
    """The synthesizer of persons, fitted."""
    target = None if table.target is None else f"{PERSONS}.{table.target}"
    model = sp.LinkedSynthesizer(
        release.epsilon, delta=DELTA, target=target, quality=release.quality, unit="replace-one"
    )
    given = people.rows if people.persons is None else {PERSONS: people.persons, ROWS: people.rows}
    return model.fit(given, table.described(), entropy=UnsafeSeededEntropy(release.seed))


def drawn(model: sp.LinkedSynthesizer, table: PeopleTable, seed: int) -> People:
    """Synthetic persons with their rows."""
    found = model.sample(persons=table.n_drawn, seed=seed, frame="polars")
    if isinstance(found, pl.DataFrame):
        return People(None, found)
    return People(found[PERSONS], found[ROWS])


@contextmanager
def _levels(*, is_wanted: bool) -> Iterator[None]:
    """With hidden levels of persons, or without: then as if there were never persons enough for them."""
    if is_wanted:
        yield
        return
    design: Any = import_module("spinney.people.design")
    held = design._PERSONS_FOR_LEVELS
    design._PERSONS_FOR_LEVELS = float("inf")
    try:
        yield
    finally:
        design._PERSONS_FOR_LEVELS = held


def _n_persons(yardstick: Yardstick) -> int:
    wanted = yardstick.table.n_drawn
    return len(yardstick.fitted.keys()) if wanted is None else wanted


def _floor(yardstick: Yardstick, seed: int) -> Figures:
    """One half of the fitted persons against the other; what all of them teach about the label."""
    first, second = parted(yardstick.fitted, 0.5, seed)
    figures = Yardstick(yardstick.table, first, yardstick.held_out).figures_of_people(second)
    if yardstick.table.target is None:
        return figures
    held = {name: getattr(figures, name) for name in Figures.__dataclass_fields__}
    return Figures(**held | {"auc": area(yardstick.fitted, yardstick.held_out, yardstick.table)})
