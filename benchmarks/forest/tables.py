"""Mixed tables from a folder of parquet files, each with what is public about it, and a generated one.

Bounds are round and generous, written down from what a column means: an age is 0 to 120, a rate 0 to 1. Columns
without bounds are categories; their codebooks stand in the documentation of the tables, which is not at hand, so the
distinct values of the file stand in for it. A holder would state the codebook, and never read it off the rows.

For classifiers the target is folded into two: `positives` against the rest.

    adult.parquet                census extract of 1994: income                                     tuned on
    creditcard.parquet           card payments, 492 of 284,807 fraudulent; Time is left out         tuned on
    bank_additional.parquet      telephone marketing: subscribed                                    tuned on
    credit_default_uci.parquet   card holders in Taiwan: default next month                         tuned on
    census_income.parquet        census extract of 1994 and 1995, 40 attributes: income             held out
    covtype.parquet              forest cover by 30 m squares: lodgepole pine or another            held out
    kdd99_10pct.parquet          network connections: attack or normal                              held out
    diamonds.parquet             cut, colour, size, price: ideal cut or another                     held out
    nyc_taxi.parquet             taxi rides of January 2015: paid by card or not                    tuned on
    california_housing.parquet   blocks of houses of 1990: within an hour of the ocean              held out
    skin.parquet                 colours of pixels: skin or not                                     held out
    world_cities.parquet         places with coordinates and country: in the United States          held out
    cervical_cancer.parquet      risk factors of 858 patients: biopsy                               held out
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

import spinney as sp
from spinney.columns import Column
from spinney.errors import FileError

_AGE = sp.Integer(0, 120)
_RATE = sp.Real(0, 1)
_YES_NO = sp.Category((0, 1))
_FLAG = sp.Integer(0, 1, nullable=True)
_MONEY = sp.Integer(0, 2_000_000)
_DISEASES = (
    *(f"{where}condylomatosis" for where in ("", "cervical ", "vaginal ", "vulvo-perineal ")),
    *("syphilis", "pelvic inflammatory disease", "genital herpes", "molluscum contagiosum"),
    *("AIDS", "HIV", "Hepatitis B", "HPV"),
)


@dataclass(frozen=True, slots=True)
class Description:
    """What is written down about a table: bounds by column, the target, and what to leave out."""

    target: str
    positives: tuple[str | int, ...]
    columns: Mapping[str, Column]
    is_held_out: bool = False
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BenchTable:
    """Rows with their schema."""

    name: str
    frame: pl.DataFrame
    schema: sp.Schema
    target: str
    positives: tuple[str | int, ...]

    def split(self, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Four fifths to fit and one fifth to test, at random."""
        order = np.random.default_rng([seed, 1]).permutation(self.frame.height)
        n_train = int(0.8 * self.frame.height)
        return self.frame[order[:n_train]], self.frame[order[n_train:]]


DESCRIPTIONS = {
    "adult": Description(
        "income",
        (">50K",),
        {
            "age": _AGE,
            "fnlwgt": _MONEY,
            "education-num": sp.Integer(1, 16),
            "capital-gain": sp.Integer(0, 200_000),
            "capital-loss": sp.Integer(0, 10_000),
            "hours-per-week": sp.Integer(0, 120),
        },
        left_out=("is_test",),
    ),
    "creditcard": Description(
        "Class",
        (1,),
        {**{f"V{i}": sp.Real(-100, 100) for i in range(1, 29)}, "Amount": sp.Real(0, 30_000), "Class": _YES_NO},
        left_out=("Time",),
    ),
    "bank_additional": Description(
        "y",
        ("yes",),
        {
            "age": _AGE,
            "duration": sp.Integer(0, 10_000),
            "campaign": sp.Integer(0, 100),
            "pdays": sp.Integer(0, 999),
            "previous": sp.Integer(0, 50),
            # Published to so many decimals, which anybody may know.
            "emp.var.rate": sp.Real(-10, 10, multiple_of=0.1),
            "cons.price.idx": sp.Real(50, 150, multiple_of=0.001),
            "cons.conf.idx": sp.Real(-100, 100, multiple_of=0.1),
            "euribor3m": sp.Real(-1, 20, multiple_of=0.001),
            "nr.employed": sp.Real(0, 10_000, multiple_of=0.1),
        },
    ),
    "credit_default_uci": Description(
        "default.payment.next.month",
        (1,),
        {
            "LIMIT_BAL": _MONEY,
            "AGE": _AGE,
            **{f"PAY_{i}": sp.Integer(-2, 9) for i in (0, 2, 3, 4, 5, 6)},
            **{f"BILL_AMT{i}": sp.Integer(-1_000_000, 2_000_000) for i in range(1, 7)},
            **{f"PAY_AMT{i}": _MONEY for i in range(1, 7)},
            "default.payment.next.month": _YES_NO,
        },
    ),
    "census_income": Description(
        "label",
        ("50000+",),
        {
            "age": _AGE,
            "wage per hour": sp.Integer(0, 10_000),
            "capital gains": sp.Integer(0, 200_000),
            "capital losses": sp.Integer(0, 10_000),
            "dividends from stocks": sp.Integer(0, 200_000),
            "num persons worked for employer": sp.Integer(0, 6),
            "weeks worked in year": sp.Integer(0, 52),
        },
        is_held_out=True,
        left_out=("row_id",),
    ),
    "covtype": Description(
        "Cover_Type",
        (2,),
        {
            "Elevation": sp.Integer(0, 5_000),
            "Aspect": sp.Integer(0, 360),
            "Slope": sp.Integer(0, 90),
            "Horizontal_Distance_To_Hydrology": sp.Integer(0, 10_000),
            "Vertical_Distance_To_Hydrology": sp.Integer(-1_000, 1_000),
            "Horizontal_Distance_To_Roadways": sp.Integer(0, 10_000),
            **{f"Hillshade_{when}": sp.Integer(0, 255) for when in ("9am", "Noon", "3pm")},
            "Horizontal_Distance_To_Fire_Points": sp.Integer(0, 10_000),
        },
        is_held_out=True,
    ),
    "kdd99_10pct": Description(
        "label",
        ("normal.",),
        {
            "duration": sp.Integer(0, 100_000),
            "src_bytes": sp.Integer(0, 1_000_000_000),
            "dst_bytes": sp.Integer(0, 1_000_000_000),
            **dict.fromkeys(("land", "logged_in", "root_shell", "is_host_login", "is_guest_login"), _YES_NO),
            **dict.fromkeys(("wrong_fragment", "urgent", "num_failed_logins", "num_shells"), sp.Integer(0, 10)),
            **dict.fromkeys(("hot", "num_file_creations", "num_access_files"), sp.Integer(0, 100)),
            **dict.fromkeys(("num_compromised", "num_root"), sp.Integer(0, 10_000)),
            "num_outbound_cmds": sp.Integer(0, 10),
            **dict.fromkeys(("count", "srv_count"), sp.Integer(0, 1_000)),
            **dict.fromkeys(("dst_host_count", "dst_host_srv_count"), sp.Integer(0, 255)),
            **dict.fromkeys(("serror_rate", "srv_serror_rate", "rerror_rate", "srv_rerror_rate"), _RATE),
            **dict.fromkeys(("same_srv_rate", "diff_srv_rate", "srv_diff_host_rate"), _RATE),
            **{f"dst_host_{what}_rate": _RATE for what in ("same_srv", "diff_srv", "same_src_port", "srv_diff_host")},
            **{f"dst_host_{what}_rate": _RATE for what in ("serror", "srv_serror", "rerror", "srv_rerror")},
        },
        is_held_out=True,
    ),
    "diamonds": Description(
        "cut",
        ("Ideal",),
        {
            "carat": sp.Real(0, 10),
            **dict.fromkeys(("depth", "table"), sp.Real(0, 100)),
            **dict.fromkeys(("x", "y", "z"), sp.Real(0, 100)),
            "price": sp.Integer(0, 50_000),
        },
    ),
    "nyc_taxi": Description(
        "payment_type",
        (1,),
        {
            # Metres of the web's Mercator projection, around the city.
            **dict.fromkeys(("pickup_x", "dropoff_x"), sp.Real(-8_300_000, -8_200_000)),
            **dict.fromkeys(("pickup_y", "dropoff_y"), sp.Real(4_900_000, 5_000_000)),
            "pickup_hour": sp.Integer(0, 23),
            "duration_s": sp.Integer(0, 100_000),
            "trip_distance": sp.Real(0, 100),
            **dict.fromkeys(("fare_amount", "total_amount"), sp.Real(-100, 1_000)),
            **dict.fromkeys(("tip_amount", "tolls_amount"), sp.Real(0, 100)),
            "passenger_count": sp.Integer(0, 9),
        },
    ),
    "california_housing": Description(
        "ocean_proximity",
        ("<1H OCEAN",),
        {
            "longitude": sp.Real(-125, -110),
            "latitude": sp.Real(30, 45),
            "housing_median_age": sp.Integer(0, 100),
            **dict.fromkeys(("total_rooms", "population"), sp.Integer(0, 100_000)),
            "total_bedrooms": sp.Integer(0, 100_000, nullable=True),
            "households": sp.Integer(0, 100_000),
            "median_income": sp.Real(0, 100),
            "median_house_value": sp.Integer(0, 1_000_000),
        },
    ),
    "skin": Description("label", (1,), dict.fromkeys("BGR", sp.Integer(0, 255)), is_held_out=True),
    "world_cities": Description(
        "country", ("US",), {"lon": sp.Real(-180, 180), "lat": sp.Real(-90, 90)}, is_held_out=True
    ),
    "cervical_cancer": Description(
        "Biopsy",
        (1,),
        {
            "Age": _AGE,
            "Number of sexual partners": sp.Integer(0, 100, nullable=True),
            "First sexual intercourse": sp.Integer(0, 100, nullable=True),
            "Num of pregnancies": sp.Integer(0, 20, nullable=True),
            **dict.fromkeys(("Smokes (years)", "Smokes (packs/year)"), sp.Real(0, 100, nullable=True)),
            **dict.fromkeys(("Hormonal Contraceptives (years)", "IUD (years)"), sp.Real(0, 50, nullable=True)),
            **dict.fromkeys(("Smokes", "Hormonal Contraceptives", "IUD", "STDs"), _FLAG),
            "STDs (number)": sp.Integer(0, 20, nullable=True),
            **{f"STDs:{what}": _FLAG for what in _DISEASES},
            "STDs: Number of diagnosis": sp.Integer(0, 20),
            **{f"STDs: Time since {which} diagnosis": sp.Integer(0, 50, nullable=True) for which in ("first", "last")},
        },
        is_held_out=True,
    ),
}


def check_folder(folder: Path, names: Iterable[str]) -> None:
    """Raise unless a folder holds these tables. Asked before any work begins."""
    for name in names:
        if not (folder / f"{name}.parquet").is_file():
            raise FileError(f"--data {str(folder)!r} has no {name}.parquet; leave the table out with --only")


def load(name: str, folder: Path) -> BenchTable:
    """A table of the folder, by name."""
    return described(name, pl.read_parquet(folder / f"{name}.parquet"), DESCRIPTIONS[name])


def described(name: str, frame: pl.DataFrame, description: Description) -> BenchTable:
    """Rows and their description put together: stated columns as they are, all others as categories."""
    unknown = [column for column in description.columns if column not in frame.columns]
    if unknown:
        raise FileError(f"{name}.parquet has no column {unknown[0]!r}; take the table as published")
    frame = frame.drop(description.left_out)
    columns = {column: description.columns.get(column) or _codebook(frame[column]) for column in frame.columns}
    return BenchTable(name, frame, sp.Schema(columns), description.target, description.positives)


def _codebook(values: pl.Series) -> Column:
    """A category column of the distinct values, in place of the documentation's list."""
    if not values.dtype.is_integer():
        values = values.cast(pl.String)
    return sp.Category(tuple(values.drop_nulls().unique().sort()), nullable=bool(values.null_count()))


def generated(n_rows: int, n_columns: int, *, n_values: int = 20, seed: int = 0) -> BenchTable:
    """MADE-UP rows: categories and numbers in turn, and a target, all leaning on a few hidden numbers."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n_rows, 4))
    columns: dict[str, np.ndarray] = {}
    schema: dict[str, Column] = {}
    for i in range(n_columns - 1):
        values = hidden @ rng.normal(size=4) + rng.normal(size=n_rows)
        if i % 2:
            columns[f"x{i}"] = values
            schema[f"x{i}"] = sp.Real(-20, 20)
        else:
            columns[f"x{i}"] = np.clip(np.floor(values * 2 + n_values / 2), 0, n_values - 1).astype(np.int64)
            schema[f"x{i}"] = sp.Category(tuple(range(n_values)))
    columns["y"] = (hidden.sum(axis=1) + rng.normal(size=n_rows) > 1).astype(np.int64)
    schema["y"] = _YES_NO
    return BenchTable("made up", pl.DataFrame(columns), sp.Schema(schema), "y", (1,))
