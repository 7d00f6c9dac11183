"""Decimals: the same numbers in memory and on Spark, to the last bit."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import InputError
from spinney.grid.lattice import tree_lattice
from spinney.tables.engines.memory import count_cells, true_extremes
from spinney.tables.engines.spark import SparkSource
from spinney.tables.frames import open_table
from support.cell_counts import same_cells
from support.hard_values import collect, spark_frame

N = 500
REALS = [(9, 2), (15, 15), (18, 4), (20, 0), (38, 18), (38, 38)]
WHOLES = [(9, 2), (19, 0), (38, 0), (38, 18), (38, 19), (38, 38)]
LONGS = [2**63 - 1, -(2**63), 2**62, -(2**62), 2**61, -(2**61), 2**53 + 1, 0, 1, -1]


def _digits(rng: np.random.Generator, n_digits: int) -> int:
    """A whole number of so many digits at most: short ones are as likely as long ones."""
    text = "".join(map(str, rng.integers(0, 10, rng.integers(1, n_digits + 1))))
    return int(text) * int(rng.choice([-1, 1]))


@pytest.fixture(scope="module")
def decimals() -> tuple[pa.Table, sp.Schema]:
    """Digits at random, in types narrow and wide; halfway between doubles; whole numbers up to 64 bits; nulls."""
    rng = np.random.default_rng(3)
    values: dict[str, Any] = {}
    columns: dict[str, Any] = {}
    for precision, scale in REALS:
        name = f"real {precision} {scale}"
        numbers = [Decimal(_digits(rng, precision)).scaleb(-scale) for _ in range(N - 3)]
        if precision - scale > 17:  # ties between two neighbouring doubles
            numbers[:3] = [Decimal(2**54 + k) for k in (2, 6, 10)]
        most = 1.01 * max(abs(float(number)) for number in numbers)
        columns[name] = sp.Real(-most, most, bits=32, nullable=True)
        values[name] = pa.array([*numbers, None, None, Decimal(0)], pa.decimal128(precision, scale))
    for precision, scale in WHOLES:
        name = f"whole {precision} {scale}"
        numbers = [
            Decimal(number)
            for number in LONGS + [_digits(rng, 19) >> int(shift) for shift in rng.integers(0, 60, N)]
            if abs(number) < 10 ** (precision - scale) and -(2**63) <= number < 2**63
        ]
        columns[name] = sp.Integer(-(2**61), 2**61, bits=30, nullable=True)
        values[name] = pa.array([*(numbers * N)[: N - 1], None], pa.decimal128(precision, scale))
    columns["truth"] = sp.Boolean(nullable=True)
    values["truth"] = pa.array(([Decimal(0), Decimal(1), None] * N)[:N], pa.decimal128(3, 1))
    columns["code"] = sp.Category(list(range(7, 60)))
    values["code"] = pa.array([Decimal(7 + k % 53) for k in range(N)], pa.decimal128(38, 10))
    return pa.table(values), sp.Schema(columns)


@pytest.fixture(scope="module")
def source(spark, decimals, tmp_path_factory) -> SparkSource:
    return SparkSource(spark_frame(spark, decimals[0], tmp_path_factory.mktemp("decimals")), decimals[1])


def _nearest(table: pa.Table, name: str) -> np.ndarray:
    """What Python makes of the digits; NaN for null."""
    return np.array([np.nan if number is None else float(number) for number in table[name].to_pylist()])


@pytest.mark.parametrize("kind", ["pyarrow", "polars", "pandas"])
def test_reals_in_memory_are_the_nearest_doubles(decimals, kind):
    """As Python reads the digits, whatever holds them; arrow's own cast would miss hundreds."""
    table, schema = decimals
    frame = {
        "pyarrow": lambda: table,
        "polars": lambda: pl.from_arrow(table),
        "pandas": lambda: table.to_pandas(types_mapper=pd.ArrowDtype),
    }[kind]()
    n_otherwise = 0
    for name in (name for name in schema if name.startswith("real")):
        expected = _nearest(table, name)
        np.testing.assert_array_equal(open_table(frame, schema).physical(name).values, expected, err_msg=name)
        cast = table[name].cast(pa.float64()).to_numpy()
        n_otherwise += np.count_nonzero(cast[~np.isnan(expected)] != expected[~np.isnan(expected)])
    assert n_otherwise > N


def test_reals_on_spark_are_the_nearest_doubles(source, decimals):
    """Every bit agrees with the table in memory."""
    table, schema = decimals
    names = [name for name in schema if name.startswith("real")]
    answer = collect(source._rows._numbers(names))
    for index, name in enumerate(names):
        got = np.where(answer[f"m{index}"].to_numpy(), np.nan, answer[f"v{index}"].to_numpy())
        np.testing.assert_array_equal(got, _nearest(table, name), err_msg=name)


def test_cells_and_extremes_are_those_in_memory(source, decimals):
    """Reals, whole numbers, truth values and categories, all lattices of one column in one pass."""
    table, schema = decimals
    source.check_values()
    lattices = [tree_lattice(sp.Schema({name: column})) for name, column in schema.items()]
    for lattice, got in zip(lattices, source.count_columns(lattices), strict=True):
        assert same_cells(got, count_cells(open_table(table, schema), lattice)), lattice.axes[0].name
    for name in ("real 38 18", "whole 38 18", "whole 9 2"):
        assert source.true_extremes(name) == true_extremes(open_table(table, schema), name)


WRONG = {
    "a fraction": (9, 2, "1.50"),
    "a small fraction": (38, 18, "1.000000000000000001"),
    "all fraction": (38, 38, "0.5"),
    "64 bits and one": (38, 0, str(2**63)),
    "below 64 bits": (20, 0, str(-(2**63) - 1)),
    "as long as can be": (38, 0, "9" * 38),
    "long on both sides": (38, 19, "-" + "9" * 19 + "." + "9" * 19),
}


def test_what_is_no_whole_number_is_refused(spark, tmp_path):
    """By the name of its column, in memory and on Spark, where no arithmetic may fail in its stead."""
    values = {
        name: pa.array([Decimal(0), Decimal(text)], pa.decimal128(precision, scale))
        for name, (precision, scale, text) in WRONG.items()
    }
    table = pa.table(values)
    schema = sp.Schema({name: sp.Integer(0, 9) for name in WRONG})
    rows = SparkSource(spark_frame(spark, table, tmp_path), schema)._rows
    answer = collect(rows.bad_rows())
    for index, name in enumerate(WRONG):
        assert (answer[f"w{index}"][0].as_py(), answer[f"m{index}"][0].as_py()) == (1, 0), name
        with pytest.raises(InputError, match=f"'{name}': some value") as caught:
            open_table(table, schema).physical(name)
        assert WRONG[name][2] not in str(caught.value)
