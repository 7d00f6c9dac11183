"""The tables whose intervals are tested: forests of whole tables, trees of two to four numbers, named regressions.

Constants of the intervals were set with adult and credit_default_uci in view; `HELD_OUT` were not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

import spinney as sp
from benchmarks.forest.tables import DESCRIPTIONS, generated, load

MADE_UP = "made up"
MADE_UP_TREE = "made up numbers"

FORESTS = (
    "adult",
    "bank_additional",
    "credit_default_uci",
    "diamonds",
    "california_housing",
    "census_income",
    "nyc_taxi",
    "covtype",
)
TREES: dict[str, tuple[str, dict[str, sp.Real | sp.Integer]]] = {
    "uk_accidents 2": ("uk_accidents", {"lng": sp.Real(-9, 3), "lat": sp.Real(49, 61)}),
    "nyc_taxi 2": (
        "nyc_taxi",
        {"pickup_x": sp.Real(-8_260_000, -8_210_000), "pickup_y": sp.Real(4_950_000, 5_000_000)},
    ),
    "diamonds 3": ("diamonds", {"carat": sp.Real(0, 6), "depth": sp.Real(40, 80), "price": sp.Real(0, 20_000)}),
    "california_housing 4": (
        "california_housing",
        {
            "longitude": sp.Real(-125, -114),
            "latitude": sp.Real(32, 42),
            "median_income": sp.Real(0, 16),
            "median_house_value": sp.Real(0, 510_000),
        },
    ),
}
FORMULAS = {
    "adult": ["hours-per-week ~ age + sex + education"],
    "bank_additional": ["duration ~ age + campaign + contact + y"],
    "credit_default_uci": ["LIMIT_BAL ~ AGE + SEX + EDUCATION + MARRIAGE"],
    "diamonds": ["price ~ carat + cut + color"],
    "california_housing": ["median_house_value ~ median_income + housing_median_age + ocean_proximity"],
    "census_income": ["age ~ education + sex + race"],
}
HELD_OUT = tuple(
    name
    for name in (*FORESTS, *TREES)
    if DESCRIPTIONS.get(name.split(" ")[0]) is not None and DESCRIPTIONS[name.split(" ")[0]].is_held_out
)
NAMES = (*FORESTS, *TREES)


@dataclass(frozen=True, slots=True)
class Population:
    """A file's rows, what is public about them, and the regressions that are named before a fit."""

    name: str
    frame: pl.DataFrame
    schema: sp.Schema
    formulas: tuple[str, ...]

    @property
    def is_tree(self) -> bool:
        return self.name in TREES or self.name == MADE_UP_TREE

    def sample(self, seed: int) -> pl.DataFrame:
        """As many rows, drawn with replacement: a private table of this population."""
        chosen = np.random.default_rng([seed, 11]).integers(0, self.frame.height, self.frame.height)
        return self.frame[chosen]


def population(name: str, folder: Path | None, *, most_rows: int) -> Population:
    """A table of a folder, or made-up rows without one; of a large file, a part drawn once and for all."""
    if name in (MADE_UP, MADE_UP_TREE) or folder is None:
        table = generated(4_000, 6)
        if name == MADE_UP_TREE or name in TREES:
            rng = np.random.default_rng(0)
            x = rng.normal(0.4, 0.1, 4_000).clip(0, 1)
            frame = pl.DataFrame({"x": x, "y": (x + rng.normal(0, 0.1, 4_000)).clip(0, 1)})
            return Population(name, frame, sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1)}), ())
        return Population(name, table.frame, table.schema, ())
    if name in TREES:
        file, columns = TREES[name]
        frame = pl.read_parquet(folder / f"{file}.parquet", columns=list(columns)).drop_nulls()
        return Population(name, _part(frame.cast(pl.Float64), most_rows), sp.Schema(dict(columns)), ())
    table = load(name, folder)
    return Population(name, _part(table.frame, most_rows), table.schema, tuple(FORMULAS.get(name, ())))


def _part(frame: pl.DataFrame, most_rows: int) -> pl.DataFrame:
    return frame if frame.height <= most_rows else frame.sample(most_rows, seed=0)
