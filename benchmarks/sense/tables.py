"""The tables whose rows are judged: made ones with known relations, and real ones from a folder.

Columns are stated as a new user states them: what a column is, round bounds, steps that everybody knows. Rules between
columns are stated with `--stated` alone. Real tables are split into four fifths to fit and one fifth to test on.

`births_us_2019` is coarsened as an office of statistics published such a table: weights of 1,400 to 4,500 g in steps of
100 are 32 values, and the target; epsilon is 0.25 there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

import spinney as sp
from benchmarks.coverage.tables import STEPS, in_steps
from benchmarks.forest.scores import folded
from benchmarks.forest.tables import load
from benchmarks.sense.made import MADE
from spinney.columns import Boolean, Column

BIRTHS = "births_us_2019"
REAL = ("credit_default_uci", "nyc_taxi", "bank_additional", "diamonds", "adult", BIRTHS)
HELD_OUT = ("grants", "claims")
NAMES = (*MADE, *REAL)


@dataclass(frozen=True, slots=True)
class Judged:
    """A table: rows to fit, rows that no release sees, what is stated, and what the other columns are about.

    Attributes:
        epsilon: the budget of a release.
        can_learn: whether the target is true or false, so that classifiers can learn it.
        lost_of: a target in steps, no value of which may be lost.
    """

    name: str
    fitted: pl.DataFrame
    held_back: pl.DataFrame
    schema: sp.Schema
    target: str
    epsilon: str = "1"
    can_learn: bool = True
    lost_of: str | None = field(default=None)


def is_there(name: str, folder: Path | None) -> bool:
    """Whether a table is made, or the folder holds it."""
    return name in MADE or (name in REAL and folder is not None and (folder / f"{name}.parquet").is_file())


def judged(name: str, folder: Path | None, *, is_stated: bool, most_rows: int | None = None) -> Judged:
    """A table by its name.

    Args:
        name: one of `NAMES`.
        folder: where real tables are.
        is_stated: whether rules between columns are stated.
        most_rows: at most so many rows are fitted; by default all.
    """
    if name in MADE:
        make, n_fitted, n_tests = MADE[name]
        n_fitted = min(n_fitted, most_rows or n_fitted)
        made = make(n_fitted + min(n_tests, n_fitted))
        schema = sp.Schema(made.columns, rules=made.rules if is_stated else [])
        return Judged(name, made.frame[:n_fitted], made.frame[n_fitted:], schema, made.target)
    assert folder is not None
    frame, columns, target = _births(folder) if name == BIRTHS else _described(name, folder)
    frame = frame.sample(fraction=1.0, shuffle=True, seed=0)
    n_fitted = min(int(0.8 * frame.height), most_rows or frame.height)
    parts = frame[:n_fitted], frame[n_fitted:]
    if name == BIRTHS:
        parts = frame[: most_rows or frame.height], frame[:0]
        return Judged(name, *parts, sp.Schema(columns), target, epsilon="0.25", can_learn=False, lost_of=target)
    return Judged(name, *parts, sp.Schema(columns), target)


def _described(name: str, folder: Path) -> tuple[pl.DataFrame, dict[str, Column], str]:
    """A table of the benchmark of forests, with the steps of its columns and a target of two values."""
    table = load(name, folder)
    columns = dict(table.schema) | {table.target: Boolean()}
    for column, step in STEPS.get(name, {}).items():
        stated = columns[column]
        assert isinstance(stated, sp.Real)
        columns[column] = sp.Real(stated.low, stated.high, multiple_of=step, nullable=stated.nullable)
    frame = folded(table.frame, table)
    return in_steps(frame, sp.Schema(columns)), columns, table.target


def _births(folder: Path) -> tuple[pl.DataFrame, dict[str, Column], str]:
    groups = {"parity": [1, 2, 4, 7, 11], "gestation_week": [28, 29, 32, 34, 37, 42]}
    published = pl.read_parquet(folder / f"{BIRTHS}.parquet")
    frame = published.select(
        pl.col("mother_age").clip(17, 45),
        *(_group_starts(published[name], starts) for name, starts in groups.items()),
        pl.col("is_female").cast(pl.Boolean),
        pl.col("date_of_birth").cast(pl.Date).dt.month().cast(pl.Int64).alias("month"),
        (pl.col("birth_weight") // 100 * 100).clip(1_400, 4_500),
    )
    columns: dict[str, Column] = {
        "mother_age": sp.Integer(17, 45),
        **{name: sp.Category([str(start) for start in starts]) for name, starts in groups.items()},
        "is_female": sp.Boolean(),
        "month": sp.Integer(1, 12),
        "birth_weight": sp.Integer(1_400, 4_500, multiple_of=100),
    }
    return frame, columns, "birth_weight"


def _group_starts(values: pl.Series, starts: list[int]) -> pl.Series:
    """Where the group of each value begins, as text; what is below the first belongs to it."""
    places = np.searchsorted(starts, values.to_numpy(), "right").clip(1) - 1
    return pl.Series(values.name, np.array(starts)[places]).cast(pl.String)
