"""The tables whose intervals are tested: forests of tables, trees of two to eight numbers, persons with rows.

Schemas are what a holder of a codebook would state: round bounds, the steps that values come in, listed codes.
`HELD_OUT` are looked at once, when a version is done; constants of the intervals were set with others in view.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import spinney as sp
from benchmarks.coverage.made import MADE
from benchmarks.forest.tables import load
from benchmarks.nist import excerpt
from benchmarks.people.tables import FILES as PEOPLE
from benchmarks.people.tables import KEY, PERSONS, ROWS, PeopleTable
from spinney.columns import Category

WITH_PLACES = "nyc_taxi with places"  # where journeys begin and end, each as one thing
MADE_TREE = "made points"
WITHOUT_STEPS = "diamonds without steps"  # what is lost if a schema does not say that carats come in hundredths

# Columns that are asked about, where a table has more than questions have time for.
FORESTS: dict[str, tuple[str, ...]] = {
    "adult": (),
    "bank_additional": (
        *("age", "job", "marital", "education", "housing", "contact", "month", "day_of_week", "duration"),
        *("campaign", "pdays", "previous", "poutcome", "euribor3m", "y"),
    ),
    "credit_default_uci": (
        *("LIMIT_BAL", "SEX", "EDUCATION", "MARRIAGE", "AGE", "PAY_0", "PAY_2", "BILL_AMT1", "BILL_AMT2"),
        *("PAY_AMT1", "PAY_AMT2", "default.payment.next.month"),
    ),
    "diamonds": (),
    WITHOUT_STEPS: (),
    "california_housing": (),
    "census_income": (
        *("age", "class of worker", "education", "wage per hour", "marital stat", "major occupation code", "race"),
        *("sex", "capital gains", "dividends from stocks", "tax filer stat", "num persons worked for employer"),
        *("weeks worked in year", "label"),
    ),
    "nyc_taxi": (),
    WITH_PLACES: ("pickup_x", "pickup_y", "dropoff_x", "dropoff_y", "pickup_hour", "fare_amount", "passenger_count"),
    "births_us_2019": (),
    "nist_crc": ("AGEP", "SEX", "MSP", "RAC1P", "HOUSING_TYPE", "OWN_RENT", "EDU", "PINCP", "POVPIP", "DVET", "WGTP"),
    "covtype": (),
    "kdd99_10pct": (
        *("duration", "protocol_type", "flag", "src_bytes", "dst_bytes", "logged_in", "hot", "count", "srv_count"),
        *("same_srv_rate", "dst_host_count", "dst_host_srv_count", "label"),
    ),
    "cervical_cancer": (
        *("Age", "Number of sexual partners", "First sexual intercourse", "Num of pregnancies", "Smokes"),
        *("Smokes (years)", "Hormonal Contraceptives (years)", "IUD", "STDs", "STDs: Number of diagnosis", "Biopsy"),
    ),
    "artificial_characters": (),
    "lahman_seasons": (),
}
_CALIFORNIA: dict[str, Any] = {
    "longitude": sp.Real(-125, -114, multiple_of=0.01),
    "latitude": sp.Real(32, 42, multiple_of=0.01),
    "housing_median_age": sp.Integer(0, 100),
    "total_rooms": sp.Integer(0, 40_000),
    "population": sp.Integer(0, 40_000),
    "households": sp.Integer(0, 10_000),
    "median_income": sp.Real(0, 16, multiple_of=0.0001),
    "median_house_value": sp.Integer(0, 510_000),
}
TREES: dict[str, tuple[str, dict[str, Any]]] = {
    "uk_accidents 2": ("uk_accidents", {"lng": sp.Real(-9, 3), "lat": sp.Real(49, 61)}),
    "diamonds 3": (
        "diamonds",
        {
            "carat": sp.Real(0, 6, multiple_of=0.01),
            "depth": sp.Real(40, 80, multiple_of=0.1),
            "price": sp.Integer(0, 20_000),
        },
    ),
    "nyc_taxi 5": (
        "nyc_taxi",
        {
            "pickup_x": sp.Real(-8_260_000, -8_210_000),
            "pickup_y": sp.Real(4_950_000, 5_000_000),
            "pickup_hour": sp.Integer(0, 23),
            "trip_distance": sp.Real(0, 100, multiple_of=0.01),
            "fare_amount": sp.Real(-100, 1_000, multiple_of=0.01),
        },
    ),
    "california_housing 8": ("california_housing", _CALIFORNIA),
    "covtype 8": (
        "covtype",
        {
            "Elevation": sp.Integer(0, 9_000),
            "Aspect": sp.Integer(0, 360),
            "Slope": sp.Integer(0, 90),
            **dict.fromkeys(("Hillshade_9am", "Hillshade_Noon", "Hillshade_3pm"), sp.Integer(0, 255)),
            "Horizontal_Distance_To_Hydrology": sp.Integer(0, 10_000),
            "Horizontal_Distance_To_Roadways": sp.Integer(0, 10_000),
        },
    ),
    "uber_pickups 3": (
        "uber_pickups_nyc",
        {
            "lon": sp.Real(-75, -72, multiple_of=0.0001),
            "lat": sp.Real(39, 43, multiple_of=0.0001),
            "count": sp.Integer(0, 100),
        },
    ),
}
PERSONS_TABLES = ("nafld", "cdnow")
HELD_OUT = (
    "kdd99_10pct",
    "cervical_cancer",
    "artificial_characters",
    "lahman_seasons",
    "uber_pickups 3",
    "made sawtooth",
)
NAMES = (*(name for name in MADE), *FORESTS, *TREES, *PERSONS_TABLES)

# Steps that values of these tables come in.
STEPS: dict[str, dict[str, float]] = {
    "diamonds": {
        **dict.fromkeys(("carat", "x", "y", "z"), 0.01),
        **dict.fromkeys(("depth", "table"), 0.1),
    },
    "california_housing": {
        **dict.fromkeys(("longitude", "latitude"), 0.01),
        "median_income": 0.0001,
    },
    "nyc_taxi": dict.fromkeys(("trip_distance", "fare_amount", "total_amount", "tip_amount", "tolls_amount"), 0.01),
    "kdd99_10pct": {"same_srv_rate": 0.01},
}
FORMULAS = {
    "adult": ["hours-per-week ~ age + sex + education"],
    "credit_default_uci": ["LIMIT_BAL ~ AGE + SEX + EDUCATION + MARRIAGE"],
    "diamonds": ["price ~ carat + cut + color"],
    "california_housing": ["median_house_value ~ median_income + housing_median_age + ocean_proximity"],
    "census_income": ["age ~ education + sex + race"],
    "artificial_characters": ["V7 ~ V6 + V1 + V2"],
}
OTHER_FORMULAS = {
    "adult": ["hours-per-week ~ age + education-num + sex + race + marital-status + income"],
    "bank_additional": ["duration ~ age + campaign + previous + marital + housing + y"],
    "credit_default_uci": ["LIMIT_BAL ~ AGE + BILL_AMT1 + PAY_AMT1 + SEX + EDUCATION + MARRIAGE"],
    "diamonds": ["price ~ carat + depth + table + cut + color + clarity"],
    "california_housing": [
        "median_house_value ~ median_income + housing_median_age + total_rooms + population + households"
    ],
    "census_income": ["weeks worked in year ~ age + sex + race + wage per hour + num persons worked for employer"],
    "lahman_seasons": ["H ~ year + G + AB + HR + BB"],
}
# Codes that stand far out of a column's other values, as codebooks list them.
CODES: dict[str, dict[str, tuple[int, ...]]] = {
    "bank_additional": {"pdays": (999,)},
    "adult": {"capital-gain": (99_999,)},
    "nist_crc": {"POVPIP": (501,)},
}


@dataclass(frozen=True, slots=True)
class Private:
    """A private table: what a synthesizer is given, and the frame that questions are about."""

    given: Any
    asked: pl.DataFrame


@dataclass(frozen=True)
class Population:
    """A file's rows, what is public about them, and regressions, named before a fit and not."""

    name: str
    frame: pl.DataFrame  # that questions are about: rows, or persons with their numbers of rows
    schema: sp.Schema  # of that frame
    codes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    formulas: tuple[str, ...] = ()
    other_formulas: tuple[str, ...] = ()
    people: PeopleTable | None = None

    @property
    def is_tree(self) -> bool:
        return self.name in TREES or self.name == MADE_TREE

    @property
    def seed(self) -> int:
        """The same in every process, and another for every table."""
        return zlib.crc32(self.name.encode())

    @cached_property
    def _row_places(self) -> dict[Any, list[int]]:
        assert self.people is not None
        rows = self.people.people.rows.with_row_index("place").group_by(KEY).agg("place")
        return dict(zip(rows[KEY].to_list(), rows["place"].to_list(), strict=True))

    def sample(self, seed: int) -> Private:
        """As many rows, or persons, drawn with replacement: a private table of this population."""
        chosen = np.random.default_rng([seed, 11]).integers(0, self.frame.height, self.frame.height)
        asked = self.frame[chosen]
        if self.people is None:
            return Private(asked, asked)
        keys = self.people.people.keys()
        places, owners = [], []
        for number, person in enumerate(chosen):
            own = self._row_places.get(keys[int(person)], [])
            places += own
            owners += [number] * len(own)
        rows = self.people.people.rows[places].with_columns(pl.Series(KEY, owners))
        if self.people.people.persons is None:
            return Private(rows, asked)
        persons = self.people.people.persons[chosen].with_columns(pl.Series(KEY, range(len(chosen))))
        return Private({PERSONS: persons, ROWS: rows}, asked)


def population(name: str, folder: Path | None, *, most_rows: int) -> Population:
    """A table of a folder, or a made one; of a large file, a part drawn once and for all."""
    if name in MADE:
        made = MADE[name](most_rows)
        return Population(name, made.frame, made.schema, made.codes)
    if name == MADE_TREE:
        rng = np.random.default_rng(0)
        x = rng.normal(0.4, 0.1, most_rows).clip(0, 1)
        points = {"x": x, "y": (x + rng.normal(0, 0.1, most_rows)).clip(0, 1)}
        return Population(name, pl.DataFrame(points), sp.Schema(dict.fromkeys("xy", sp.Real(0, 1))))
    if folder is None:
        raise ValueError(f"{name} is a table of files, and no folder of them was named")
    if name in TREES:
        file, columns = TREES[name]
        frame = pl.read_parquet(folder / f"{file}.parquet", columns=list(columns)).drop_nulls()
        schema = sp.Schema(dict(columns))
        return Population(name, _part(in_steps(frame, schema), most_rows), schema)
    if name in PERSONS_TABLES:
        return _persons(name, folder, most_rows // 5)
    frame, schema = _read(name, folder)
    frame = _part(in_steps(frame, schema), most_rows)
    formulas = (tuple(listed.get(name, ())) for listed in (FORMULAS, OTHER_FORMULAS))
    return Population(name, frame, schema, CODES.get(name, {}), *formulas)


def is_there(name: str, folder: Path | None) -> bool:
    """Whether the files of a table are."""
    if name in MADE or name == MADE_TREE:
        return True
    own = {
        "nist_crc": "nist_crc/national/national2019.csv",
        "artificial_characters": "arena/artificial_characters_train.parquet",
        "lahman_seasons": "people/lahman_rows.parquet",
        WITHOUT_STEPS: "diamonds.parquet",
        WITH_PLACES: "nyc_taxi.parquet",
        **{people: f"people/{people}_rows.parquet" for people in PERSONS_TABLES},
        **{tree: f"{file}.parquet" for tree, (file, _) in TREES.items()},
    }
    return folder is not None and (folder / own.get(name, f"{name}.parquet")).is_file()


def _read(name: str, folder: Path) -> tuple[pl.DataFrame, sp.Schema]:
    """A table for a forest, as published, with what is stated about it."""
    columns = FORESTS[name]
    if name == "nist_crc":
        return excerpt.load(folder / "nist_crc", columns)
    if name == "births_us_2019":
        frame = pl.read_parquet(folder / f"{name}.parquet").with_columns(pl.col("date_of_birth").cast(pl.Date))
        stated: dict[str, Any] = {
            "mother_age": sp.Integer(10, 60),
            "parity": sp.Integer(0, 20),
            "gestation_week": sp.Integer(15, 50),
            "is_female": sp.Boolean(),
            "birth_weight": sp.Integer(0, 10_000),
            "date_of_birth": sp.Date("2019-01-01", "2019-12-31"),
        }
        return frame.select(*stated), sp.Schema(stated)
    if name == "artificial_characters":
        frame = pl.read_parquet(folder / "arena" / f"{name}_train.parquet")
        stated = {
            **{f"V{number}": sp.Integer(-10, 100) for number in range(1, 6)},
            **dict.fromkeys(("V6", "V7"), sp.Real(0, 100, multiple_of=0.01)),
            "Class": sp.Category(tuple(range(1, 11))),
        }
        return frame.select(*stated), sp.Schema(stated)
    if name == "lahman_seasons":
        stated = dict(PEOPLE["lahman"](folder / "people").row_columns)
        return pl.read_parquet(folder / "people/lahman_rows.parquet").select(*stated), sp.Schema(stated)
    table = load(name.removesuffix(" without steps").removesuffix(" with places"), folder)
    of_table = STEPS.get(name, {})
    kept = columns or tuple(table.schema)
    return table.frame.select(*kept), sp.Schema(
        {
            column: replace(table.schema[column], multiple_of=of_table[column])
            if column in of_table
            else table.schema[column]
            for column in kept
        },
        places=[sp.Place("pickup_x", "pickup_y"), sp.Place("dropoff_x", "dropoff_y")] if name == WITH_PLACES else [],
    )


def _persons(name: str, folder: Path, most: int) -> Population:
    """Persons with their columns and their numbers of rows, by the names that questions give them."""
    table = PEOPLE[name](folder / "people")
    keys = table.people.keys()
    chosen = np.random.default_rng(0).permutation(len(keys))[:most]
    people = table.people.only(keys[np.sort(chosen)])
    table = replace(table, people=people)
    frame = persons_frame(table, people.persons, people.rows)
    number = sp.Integer(0 if people.persons is not None else 1, table.most)
    stated = {f"{PERSONS}.{column}": kind for column, kind in table.person_columns.items()}
    schema = sp.Schema({"#": number} if people.persons is None else {**stated, f"{ROWS}.#": number})
    return Population(name, frame, schema, people=table)


def persons_frame(table: PeopleTable, persons: pl.DataFrame | None, rows: pl.DataFrame) -> pl.DataFrame:
    """Persons, or those who have rows, with their columns and numbers of rows as questions name them."""
    counts = rows.group_by(KEY, maintain_order=True).agg(pl.len().cast(pl.Float64).clip(0, table.most).alias("rows"))
    if persons is None:
        return counts.select(pl.col("rows").alias("#"))
    stated = {f"{PERSONS}.{column}": kind for column, kind in table.person_columns.items()}
    joined = persons.join(counts, on=KEY, how="left", maintain_order="left").select(
        *(pl.col(column).alias(f"{PERSONS}.{column}") for column in table.person_columns),
        pl.col("rows").fill_null(0).alias(f"{ROWS}.#"),
    )
    return in_steps(joined, sp.Schema({**stated, f"{ROWS}.#": sp.Integer(0, table.most)}))


def drawn_persons(here: Population, drawn: Any) -> pl.DataFrame:
    """Drawn persons as questions name them."""
    assert here.people is not None
    tables = drawn if isinstance(drawn, dict) else {ROWS: drawn}
    return persons_frame(here.people, tables.get(PERSONS), tables[ROWS])


def in_steps(frame: pl.DataFrame, schema: sp.Schema) -> pl.DataFrame:
    """Numbers as the decimals that the schema says they are; in single precision there is no 93.918."""
    return frame.with_columns(
        (pl.col(name).cast(pl.Float64) / column.multiple_of).round().mul(column.multiple_of).round(9)
        if column.multiple_of is not None
        else pl.col(name).cast(pl.Float64)
        for name, column in schema.items()
        if isinstance(column, sp.Real)
    )


def _part(frame: pl.DataFrame, most_rows: int) -> pl.DataFrame:
    return frame if frame.height <= most_rows else frame.sample(most_rows, seed=0)


def is_listed(column: Any) -> bool:
    """Whether a column has values without an order: a category or a boolean."""
    return isinstance(column, Category | sp.Boolean)
