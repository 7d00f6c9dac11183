"""Steps that values are written in: classes of cells are those of numbers and days, and every engine counts them."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import spinney as sp
from spinney.counting.counter import MarkCounter, Marks
from spinney.counting.counts import CellCounts
from spinney.grid.axes import column_axis
from spinney.grid.grain import day_grain, number_grain
from spinney.grid.ruler import RootedRuler
from spinney.tables.engines.memory import axis_columns, count_cells
from spinney.tables.engines.spark_tables import ColumnVectors, column_worker
from spinney.tables.engines.stream import RuledCounts
from spinney.tables.frames import open_table

STEPS = sorted({g for power in range(7) for g in (10**power, 5 * 10**power)} - {5 * 10**6})
# Cells, the cell of zero, how many units a step has, and whether there is null.
NUMBERS = [(3_000, 0, 1, True), (3_000, 1_500, 1, False), (500, -1_234, 1, False), (2_000, 300, 25, True)]


def written(number: int, mantissa: int) -> tuple[int, int]:
    """How many digits a number has, and the largest round step that divides it."""
    size = abs(number) * mantissa
    return len(str(size)), max(step for step in STEPS if size % step == 0)


@pytest.mark.parametrize(("n_cells", "zero", "mantissa", "nullable"), NUMBERS)
def test_classes_of_numbers_are_digits_by_largest_steps(n_cells, zero, mantissa, nullable):
    """Zero alone, null alone, and every other class the numbers of one length at one step; the three ways agree."""
    grain = number_grain(n_cells, zero, mantissa, nullable=nullable)
    cells = np.arange(n_cells + nullable)
    found = grain.classes(cells)
    assert np.array_equal(found, grain.classifier()(cells))
    of_values = found[:n_cells]
    pairs: dict[int, set[tuple[int, int]]] = {}
    for cell, number in enumerate(of_values.tolist()):
        if cell == zero:
            assert number == 0
        else:
            pairs.setdefault(number, set()).add(written(cell - zero, mantissa))
    assert 0 not in pairs
    assert all(len(several) == 1 for several in pairs.values())
    assert len(set.union(*pairs.values())) == len(pairs)
    if nullable:
        assert found[-1] == grain.n_classes - 1 == grain.n_values


GRAINS = [*(number_grain(*one[:3], nullable=one[3]) for one in NUMBERS), day_grain(2_000, 10_957, nullable=True)]


@pytest.mark.parametrize("grain", GRAINS, ids=lambda grain: type(grain).__name__)
def test_cells_are_counted_and_found_by_class(grain):
    """`before` counts every cell in its class, and `nth` finds it again."""
    cells = np.arange(grain.n_cells)
    before, classes = grain.before(np.arange(grain.n_cells + 1)), grain.classes(cells)
    assert np.array_equal(np.diff(before, axis=0), np.arange(grain.n_values) == classes[:, None])
    assert np.array_equal(grain.nth(classes, before[:-1][cells, classes]), cells)


def test_classes_of_days_are_those_of_the_calendar():
    """Three years with a leap day: weekday by first, last or other day of the month."""
    first = date(1999, 1, 1)
    grain = day_grain(1_100, (first - date(1970, 1, 1)).days, nullable=False)
    for cell, number in enumerate(grain.classes(np.arange(1_100)).tolist()):
        day = first + timedelta(days=cell)
        place = 0 if day.day == 1 else 1 if (day + timedelta(days=1)).day == 1 else 2
        assert number == 3 * day.weekday() + place


@pytest.mark.parametrize(
    ("column", "has_grain"),
    [
        (sp.Integer(0, 10**6), True),
        (sp.Integer(-500, 10**6, multiple_of=25), True),
        (sp.Real(0, 1_000, multiple_of="0.01"), True),
        (sp.Date("2000-01-01", "2020-12-31"), True),
        (sp.Integer(0, 9), False),  # a leaf each
        (sp.Real(0, 1_000), False),  # no steps
        (sp.Real(0, 10**9, multiple_of="0.01"), False),  # cells of several cents
        (sp.Integer(0, 10**6, bits=8), False),
        (sp.Date("2000-01-01", "2020-12-31", multiple_of=7), False),
        (sp.Datetime("2000-01-01", "2020-12-31"), False),
        (sp.Time(), False),
    ],
)
def test_columns_whose_cells_hold_one_number_or_day_have_steps(column, has_grain):
    assert (column_axis("v", column).grain is not None) == has_grain


# ------------------------------------------------------------------------------------------------------ counts

N = 20_000


def amounts() -> tuple[pa.Table, sp.Schema]:
    rng = np.random.default_rng(2)
    values = np.rint(np.exp(rng.normal(8, 2, N)) / 50) * 50
    table = pa.table({"v": pa.array(values.astype(np.int64), mask=rng.random(N) < 0.1)})
    return table, sp.Schema({"v": sp.Integer(0, 10**7, nullable=True)})


def test_rows_are_counted_by_class_in_every_way():
    """Cells with counts, codes of rows, rows between marks, and Spark's workers: one by one, and all alike."""
    table, schema = amounts()
    axis = column_axis("v", schema["v"])
    grain, read = axis.grain, open_table(table, schema)
    columns = axis_columns(read, axis.lattice)
    cells = np.empty(N, dtype=np.int64)
    columns[0].fill(0, N, cells)
    expected = np.bincount(grain.classes(cells), minlength=grain.n_classes)
    assert expected.sum() == N
    assert expected[-1] == table["v"].null_count
    by_rows = count_cells(read, axis.lattice)
    assert np.array_equal(by_rows.rows_by(grain), expected)
    assert np.array_equal(CellCounts(axis.lattice, *by_rows.distinct()).rows_by(grain), expected)
    rooted = RootedRuler(axis.ruler, np.zeros(1, dtype=np.int64), grain)
    marks = Marks(axis.lattice, rooted, most_nodes=100)
    run = MarkCounter(marks, n_rows=N, n_copies=2)
    run.add(columns, 0, 7_000)
    run.add(columns, 7_000, N)
    numbers = run.numbers()
    counts = RuledCounts(marks, numbers, lambda *_: by_rows)
    assert np.array_equal(counts.rows_by(grain), expected)
    assert counts.true_total() == N
    # Spark's workers hand over the same numbers, in slices.
    vectors = ColumnVectors((axis.lattice,), (marks,))
    batches = [pa.RecordBatch.from_arrays([pa.array(part)], names=["k0"]) for part in np.split(cells, [9_000])]
    sums = np.zeros(vectors.starts[-1], dtype=np.int64)
    for batch in column_worker(vectors, "int32")(iter(batches)):
        for number, width, held in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            part = np.frombuffer(held, f"u{width}")
            sums[(1 << 14) * number :][: len(part)] += part
    assert np.array_equal(sums[: len(numbers)], numbers)


def test_a_table_beyond_memory_has_the_steps_of_one_in_memory(tmp_path, monkeypatch):
    """Counted between marks, the noisy table of steps is the same to the last bit, and so is the release."""
    table, schema = amounts()
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=3_000)

    def steps(source) -> list[int]:
        model = sp.ForestSynthesizer(2).fit(source, schema, entropy=sp.UnsafeSeededEntropy(3))
        (column,) = model.release_.measured.columns
        return column.grain.noisy.tolist()

    expected = steps(table)
    monkeypatch.setenv("SPINNEY_MEMORY_LIMIT", "1MiB")
    assert steps(tmp_path / "rows.parquet") == expected
    assert steps(pl.scan_parquet(tmp_path / "rows.parquet")) == expected
