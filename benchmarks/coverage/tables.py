"""The tables whose intervals are tested: forests of whole tables, trees of two to eight numbers, named regressions.

Constants of the intervals were set with adult and credit_default_uci in view; `HELD_OUT` were not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

import spinney as sp
from benchmarks.forest.tables import generated, load

MADE_UP = "made up"
MADE_UP_TREE = "made up numbers"
WITHOUT_STEPS = "diamonds without steps"

FORESTS = (
    "adult",
    "bank_additional",
    "credit_default_uci",
    "diamonds",
    WITHOUT_STEPS,
    "california_housing",
    "census_income",
    "nyc_taxi",
    "covtype",
)
_CALIFORNIA: dict[str, sp.Real | sp.Integer] = {
    "longitude": sp.Real(-125, -114, multiple_of=0.01),
    "latitude": sp.Real(32, 42, multiple_of=0.01),
    "housing_median_age": sp.Integer(0, 100),
    "total_rooms": sp.Integer(0, 40_000),
    "population": sp.Integer(0, 40_000),
    "households": sp.Integer(0, 10_000),
    "median_income": sp.Real(0, 16, multiple_of=0.0001),
    "median_house_value": sp.Integer(0, 510_000),
}
TREES: dict[str, tuple[str, dict[str, sp.Real | sp.Integer]]] = {
    "uk_accidents 2": ("uk_accidents", {"lng": sp.Real(-9, 3), "lat": sp.Real(49, 61)}),
    "nyc_taxi 2": (
        "nyc_taxi",
        {"pickup_x": sp.Real(-8_260_000, -8_210_000), "pickup_y": sp.Real(4_950_000, 5_000_000)},
    ),
    "diamonds 3": (
        "diamonds",
        {
            "carat": sp.Real(0, 6, multiple_of=0.01),
            "depth": sp.Real(40, 80, multiple_of=0.1),
            "price": sp.Integer(0, 20_000),
        },
    ),
    "california_housing 4": (
        "california_housing",
        {name: _CALIFORNIA[name] for name in ("longitude", "latitude", "median_income", "median_house_value")},
    ),
    "california_housing 8": ("california_housing", _CALIFORNIA),
    "skin 4": ("skin", {**dict.fromkeys("BGR", sp.Integer(0, 255)), "label": sp.Integer(1, 2)}),
    "world_cities 2": ("world_cities", {"lon": sp.Real(-180, 180), "lat": sp.Real(-90, 90)}),
    "covtype 6": (
        "covtype",
        {
            "Elevation": sp.Integer(0, 9_000),
            "Aspect": sp.Integer(0, 360),
            "Slope": sp.Integer(0, 90),
            **dict.fromkeys(("Hillshade_9am", "Hillshade_Noon", "Hillshade_3pm"), sp.Integer(0, 255)),
        },
    ),
}
# Steps that values of these tables come in, which a schema should state; the benchmark of fidelity does without.
STEPS: dict[str, dict[str, float]] = {
    "diamonds": {**dict.fromkeys(("carat", "x", "y", "z"), 0.01), **dict.fromkeys(("depth", "table"), 0.1)},
    "california_housing": {**dict.fromkeys(("longitude", "latitude"), 0.01), "median_income": 0.0001},
}
FORMULAS = {
    "adult": ["hours-per-week ~ age + sex + education"],
    "bank_additional": ["duration ~ age + campaign + contact + y"],
    "credit_default_uci": ["LIMIT_BAL ~ AGE + SEX + EDUCATION + MARRIAGE"],
    "diamonds": ["price ~ carat + cut + color"],
    "california_housing": ["median_house_value ~ median_income + housing_median_age + ocean_proximity"],
    "census_income": ["age ~ education + sex + race"],
}
OTHER_FORMULAS = {
    "adult": ["hours-per-week ~ age + education-num + sex + race + marital-status + income"],
    "bank_additional": ["duration ~ age + campaign + previous + marital + housing + loan + y"],
    "credit_default_uci": ["LIMIT_BAL ~ AGE + BILL_AMT1 + PAY_AMT1 + SEX + EDUCATION + MARRIAGE"],
    "diamonds": ["price ~ carat + depth + table + cut + color + clarity"],
    "california_housing": [
        "median_house_value ~ median_income + housing_median_age + total_rooms + population + households"
    ],
    "census_income": ["weeks worked in year ~ age + sex + race + wage per hour + num persons worked for employer"],
}
HELD_OUT = ("census_income", "covtype", "world_cities 2", "covtype 6")
NAMES = (*FORESTS, *TREES)


@dataclass(frozen=True, slots=True)
class Population:
    """A file's rows, what is public about them, and regressions, named before a fit and not."""

    name: str
    frame: pl.DataFrame
    schema: sp.Schema
    formulas: tuple[str, ...]
    other_formulas: tuple[str, ...] = ()

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
        schema = sp.Schema(dict(columns))
        return Population(name, _part(in_steps(frame.cast(pl.Float64), schema), most_rows), schema, ())
    table = load(file_of(name), folder)
    steps = STEPS.get(name, {})
    stepped = {column: replace(table.schema[column], multiple_of=step) for column, step in steps.items()}
    schema = sp.Schema({**table.schema, **stepped}, rules=table.schema.rules, places=table.schema.places)
    frame = _part(in_steps(table.frame, schema), most_rows)
    formulas = (tuple(held.get(name, ())) for held in (FORMULAS, OTHER_FORMULAS))
    return Population(name, frame, schema, *formulas)


def file_of(name: str) -> str:
    """The file that a table is read from."""
    return TREES[name][0] if name in TREES else name.removesuffix(" without steps")


def in_steps(frame: pl.DataFrame, schema: sp.Schema) -> pl.DataFrame:
    """Numbers as the decimals that the schema says they are; in single precision there is no 93.918."""
    return frame.with_columns(
        (pl.col(name).cast(pl.Float64) / column.multiple_of).round().mul(column.multiple_of).round(9)
        for name, column in schema.items()
        if isinstance(column, sp.Real) and column.multiple_of is not None
    )


def _part(frame: pl.DataFrame, most_rows: int) -> pl.DataFrame:
    return frame if frame.height <= most_rows else frame.sample(most_rows, seed=0)
