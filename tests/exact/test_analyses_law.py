"""How far one row moves the sums of named regressions: the bound of the proof against all pairs of rows.

Then the exact sums against a loop over rows, in every way that a table is read, and a zoo of sums not paid for.
"""

from __future__ import annotations

from contextlib import contextmanager
from fractions import Fraction
from itertools import product
from unittest import mock

import duckdb
import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

import spinney as sp
from spinney.forest import sums as under_test
from spinney.forest.plan import Shape, forest_plan
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.forest.release.formula import Block, Regressor, blocks_of, parse_formulas
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.ledger import Ledger
from spinney.tables.open import open_source
from support.in_one_test import in_one_test

UNITS = pytest.mark.parametrize("unit", [Unit.REPLACE_ONE, Unit.ADD_REMOVE], ids=str)
COLUMNS = {
    "n": sp.Integer(0, 2),
    "m": sp.Integer(-3, 2),
    "x": sp.Real(0.0, 1.0),
    "b": sp.Boolean(),
    "c": sp.Category(["p", "q", "r"]),
    "d": sp.Category(["u", "v"], nullable=True),
    "k": sp.Integer(0, 1, nullable=True),
}
FORMULAS = [
    ["n ~ m"],
    ["n ~ b"],
    ["b ~ n"],
    ["b ~ c"],
    ["n ~ b + c"],
    ["n ~ m + b"],
    ["n ~ m + b + c"],
    ["b ~ 1"],
    ["n ~ d"],
    ["n ~ d + k"],
    ["n ~ b", "n ~ d"],
    ["n ~ m", "m ~ c + b"],
]
VALUES = {
    "n": [0, 1, 2],
    "m": [-3, 0, 2],
    "x": [0.0, 0.5, 1.0],
    "b": [False, True],
    "c": ["p", "q", "r"],
    "d": ["u", "v", None],
    "k": [0, 1, None],
}


def blocks(formulas, unit) -> tuple[Block, ...]:
    schema = sp.Schema(COLUMNS)
    return blocks_of(parse_formulas(formulas, schema), schema, unit)


def sums_of_row(some: tuple[Block, ...], row: dict) -> np.ndarray:
    """What a row adds to all sums, by the definition: products of what its columns count."""
    found = []
    for block in some:
        counts = np.zeros(block.n_slots, dtype=np.int64)
        if not any(row[name] is None for name in block.names):
            counts[0] = block.constant
            for start, column in zip(block.starts, block.columns, strict=True):
                if column.is_number:
                    offset, reach = column.line
                    counts[start] = round((row[column.name] - offset) / reach * column.weight)
                else:
                    counts[start + column.labels.index(row[column.name])] = column.weight
        found += [counts[entry.first] * counts[entry.second] for entry in block.entries]
    return np.array(found, dtype=np.int64)


def all_rows(some: tuple[Block, ...]) -> list[dict]:
    names = sorted({name for block in some for name in block.names})
    return [dict(zip(names, values, strict=True)) for values in product(*(VALUES[name] for name in names))]


def largest_move(vectors: np.ndarray, unit: Unit) -> int:
    norms = [sum(int(one) ** 2 for one in vector) for vector in vectors]
    if unit is Unit.ADD_REMOVE:
        return max(norms)
    return max(sum(int(one) ** 2 for one in first - second) for first in vectors for second in vectors)


def unevenly(some: tuple[Block, ...]) -> tuple[Block, ...]:
    """The blocks with weights that differ by up to eight times."""
    rng = np.random.default_rng(3)
    return tuple(
        block.weighing([int(rng.integers(500, 4_000) / steps) for steps in (1, *(c.n_steps for c in block.columns))])
        for block in some
    )


@UNITS
@in_one_test("weights", [lambda some: some, unevenly], ids=["even", "uneven"])
@in_one_test("formulas", FORMULAS, ids=str)
def test_no_row_moves_the_sums_further_than_is_accounted_for(formulas, weights, unit):
    """Over all pairs of rows, nulls among them; the bound is met for one row, and never twice what is needed."""
    some = weights(blocks(formulas, unit))
    stated = sum(block.sensitivity_squared(unit) for block in some)
    moved = largest_move(np.array([sums_of_row(some, row) for row in all_rows(some)]), unit)
    assert type(stated) is int
    assert moved <= stated
    assert stated <= 2 * moved or weights is unevenly
    if unit is Unit.ADD_REMOVE:
        assert moved == stated


def table(n_rows: int = 300) -> pl.DataFrame:
    rng = np.random.default_rng(4)
    frame = {
        name: [values[place] for place in rng.integers(0, 3, n_rows) % len(values)] for name, values in VALUES.items()
    }
    return pl.DataFrame(frame | {"x": rng.random(n_rows)})


def engines(folder):
    """The same rows in memory, as Parquet and CSV files, in DuckDB and as a lazy frame."""
    frame = table()
    pq.write_table(frame.to_arrow(), folder / "rows.parquet")
    frame.write_csv(folder / "rows.csv")
    return {
        "polars": frame,
        "pandas": frame.to_pandas(),
        "parquet": str(folder / "rows.parquet"),
        "csv": str(folder / "rows.csv"),
        "duckdb": duckdb.from_arrow(frame.to_arrow()),
        "lazy": frame.lazy(),
    }


@UNITS
@in_one_test("formulas", FORMULAS, ids=str)
def test_numbers_inside_their_bounds_move_the_sums_no_further(formulas, unit):
    """Squares bend: the largest distance is not at the ends of one column by itself, so all its cells are tried."""
    for weights in (lambda some: some, unevenly):
        some = weights(blocks(formulas, unit))
        names = sorted({name for block in some for name in block.names})
        finer = VALUES | {"n": [0, 1, 2], "m": [-3, -2, -1, 0, 1, 2]}
        rows = [dict(zip(names, values, strict=True)) for values in product(*(finer[name] for name in names))]
        moved = largest_move(np.array([sums_of_row(some, row) for row in rows]), unit)
        assert moved <= sum(block.sensitivity_squared(unit) for block in some)


@pytest.mark.parametrize("engine", ["polars", "pandas", "parquet", "csv", "duckdb", "lazy"])
def test_sums_are_those_of_a_loop_over_rows(engine, tmp_path):
    """Whatever holds the rows; a real number lies in one of 4,096 cells, everything else counts exactly."""
    some = unevenly(blocks(["n ~ m + b + c", "n ~ d + k"], Unit.REPLACE_ONE)) + blocks(["x ~ n"], Unit.REPLACE_ONE)
    source = open_source(engines(tmp_path)[engine], sp.Schema(COLUMNS), engine=None)
    for block in some:
        rows = source.state_rows([under_test._cut(column) for column in block.columns])
        found = under_test.true_sums_of(rows, block)
        places = table().with_columns(((pl.col("x") * 4096).floor().clip(0, 4095) + 0.5) / 4096)
        expected = sum(sums_of_row((block,), row) for row in places.iter_rows(named=True))
        assert np.array_equal(found, expected)


# ------------------------------------------------------------------------------------------------------------ zoo


def plan(unit):
    shape = Shape({"one-way": 1}, {"one-way": Fraction(1, 2), "analyses": Fraction(1, 2)})
    return forest_plan(shape, epsilon=Fraction(1), delta=Fraction(1, 10**6), unit=unit)


class Watched(PrepaidMechanisms):
    """Keeps what it was asked to make noisy, and what it was told of it."""

    def noisy_sums(self, true_sums, sensitivity_squared, stage="products"):
        self.asked = true_sums, sensitivity_squared
        return super().noisy_sums(true_sums, sensitivity_squared, stage)


def worst_ratio(unit: Unit = Unit.REPLACE_ONE) -> float:
    """The largest squared distance of sums of two neighbours, over the one that their noise was asked for with."""
    formulas, schema = ["n ~ m + b + c"], sp.Schema({name: COLUMNS[name] for name in ("n", "m", "b", "c")})
    found = []
    for row in product(*(VALUES[name] for name in schema)):
        frame = pl.DataFrame({name: [value] for name, value in zip(schema, row, strict=True)})
        prepaid = Watched(plan(unit), Ledger(1, delta="1e-6", unit=unit.value), UnsafeSeededEntropy(1))
        source = open_source(frame, schema, engine=None)
        under_test.release_analyses(source, blocks_of(parse_formulas(formulas, schema), schema, unit), prepaid)
        found.append(prepaid.asked)
    moved = largest_move(np.array([sums for sums, _ in found]), unit)
    return moved / found[0][1]


@contextmanager
def half_the_distance():
    honest = Block.sensitivity_squared
    with mock.patch.object(Block, "sensitivity_squared", lambda self, unit: honest(self, unit) // 4):
        yield


@contextmanager
def numbers_count_twice():
    honest = Regressor.counted.fget
    with mock.patch.object(Regressor, "counted", property(lambda self: 2 * honest(self))):
        yield


@contextmanager
def values_count_more():
    honest = under_test._alone
    with mock.patch.object(under_test, "_alone", lambda column, states: 3 * honest(column, states)):
        yield


@contextmanager
def add_remove_for_replace_one():
    honest = Block.sensitivity_squared
    with mock.patch.object(Block, "sensitivity_squared", lambda self, _: honest(self, Unit.ADD_REMOVE)):
        yield


def test_sums_get_the_noise_of_what_neighbours_move():
    """The honest mechanism, in either unit."""
    assert worst_ratio() <= 1
    assert worst_ratio(Unit.ADD_REMOVE) <= 1


@pytest.mark.parametrize(
    "sabotage", [half_the_distance, numbers_count_twice, values_count_more, add_remove_for_replace_one]
)
def test_sums_that_were_not_paid_for_are_caught(sabotage):
    """Each of these moves further than its noise was asked for."""
    with sabotage():
        assert worst_ratio() > 1


def test_the_vector_can_be_taken_once_and_only_if_it_was_paid_for():
    """A second vector, or one of another stage, is refused."""
    prepaid = PrepaidMechanisms(plan(Unit.REPLACE_ONE), Ledger(1, delta="1e-6"), UnsafeSeededEntropy(1))
    sums = np.zeros(3, dtype=np.int64)
    with pytest.raises(sp.SpinneyError, match="paid for no more of 'products'"):
        prepaid.noisy_sums(sums, 1)
    prepaid.noisy_sums(sums, 1, "analyses")
    with pytest.raises(sp.SpinneyError, match="paid for no more of 'analyses'"):
        prepaid.noisy_sums(sums, 1, "analyses")
