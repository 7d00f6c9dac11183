"""Columns of a forest over Spark: workers count them in vectors and between marks, and only sums reach the driver."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.counting.counter import CellCounter, Marks
from spinney.errors import FileError, InputError
from spinney.grid.axes import column_axis
from spinney.grid.lattice import Lattice
from spinney.grid.ruler import RootedRuler
from spinney.tables.engines import spark_tables as spark_columns
from spinney.tables.engines.query_source import PersistedCells
from spinney.tables.engines.spark import SparkSource
from spinney.tables.engines.spark_tables import (
    SLICE,
    ColumnVectors,
    SparkColumns,
    adding_worker,
    column_worker,
    inside_worker,
)
from support import forest_tables
from support.forest_tables import members
from support.hard_values import spark_frame
from support.ruled_tables import SCHEMA, N, rows

ROWS = rows()


@pytest.fixture(scope="module")
def frame(spark, tmp_path_factory):
    return spark_frame(spark, ROWS, tmp_path_factory.mktemp("ruled"))


@pytest.fixture
def read_again(monkeypatch) -> list[tuple[str, int]]:
    """A limit with room for few cells; of which columns rows were counted again, and how many."""
    monkeypatch.setenv("SPINNEY_MEMORY_LIMIT", "1MiB")
    found: list[tuple[str, int]] = []
    inside = SparkSource._inside

    def watched(self, columns, marks, is_wanted, n_rows):
        found.append((marks.lattice.axes[0].name, n_rows))
        return inside(self, columns, marks, is_wanted, n_rows)

    monkeypatch.setattr(SparkSource, "_inside", watched)
    return found


@pytest.fixture(scope="module")
def expected():
    return members(fit(ROWS))


def fit(table, schema=SCHEMA, **options) -> sp.ForestSynthesizer:
    options = {"epsilon": 4} | options
    return sp.ForestSynthesizer(**options).fit(table, schema, entropy=sp.UnsafeSeededEntropy(3))


def test_the_release_is_that_of_the_table_in_memory(frame, read_again, expected, monkeypatch):
    """With trees that go beyond all marks; each column is read again once at the most, and Spark keeps no cells."""
    monkeypatch.setattr(PersistedCells, "__init__", None)
    assert members(fit(frame)) == expected
    assert [name for name, _ in read_again] == ["even", "deep", "piled", "seen"]
    assert dict(read_again)["deep"] > 0.9 * N


def test_columns_are_counted_in_one_job(frame, read_again, monkeypatch):
    jobs, run = [], SparkSource.run
    monkeypatch.setattr(SparkSource, "run", lambda self, query, what: (jobs.append(what), run(self, query, what))[1])
    fit(frame)
    assert jobs == [
        "counting rows",
        "checking values",
        "counting cells of each column",
        *["counting cells of a column"] * 4,
        "counting tables, pass 1",
    ]


def test_many_rows_that_are_counted_again_are_counted_by_spark(spark, frame, read_again, expected, monkeypatch):
    """Where their cells would not fit on the driver, Spark keeps them, and forgets them in the end."""
    monkeypatch.setattr("spinney.tables.engines.spark._AGAIN_PART", 32)
    kept, init = [], PersistedCells.__init__
    monkeypatch.setattr(PersistedCells, "__init__", lambda self, *a, **o: (kept.append(1), init(self, *a, **o))[1])
    before = len(spark.sparkContext._jsc.getPersistentRDDs())
    assert members(fit(frame)) == expected
    assert kept
    assert len(spark.sparkContext._jsc.getPersistentRDDs()) == before


def test_places_and_columns_of_every_kind(spark, tmp_path, read_again, monkeypatch):
    """Columns of few cells in vectors, a place by its cells, in the order of the schema."""
    monkeypatch.setattr("spinney.tables.engines.spark._FEW_CELLS_PART", 1 << 20)
    counted, count = [], SparkSource.count_columns
    monkeypatch.setattr(
        SparkSource, "count_columns", lambda self, some: (counted.append(len(some)), count(self, some))[1]
    )
    table = forest_tables.rows()
    found = fit(spark_frame(spark, table, tmp_path), forest_tables.SCHEMA)
    assert counted == [1]
    assert members(found) == members(fit(table.to_pandas(), forest_tables.SCHEMA))


def test_few_cells_are_counted_by_a_group_by(frame, expected, monkeypatch):
    monkeypatch.setenv("SPINNEY_MEMORY_LIMIT", "1GiB")
    monkeypatch.setattr(SparkColumns, "count", None)
    assert members(fit(frame)) == expected


def test_without_python_workers_cells_are_counted_by_spark(frame, read_again, expected, monkeypatch):
    """Spark keeps them, and they come over in parts, as those of trees do."""
    monkeypatch.setattr(SparkSource, "_has_workers", False)
    monkeypatch.setattr("spinney.tables.engines.spark.is_held", lambda *_: True)
    assert members(fit(frame)) == expected
    assert read_again == []


def test_skewed_and_empty_partitions_change_nothing(frame, read_again, expected):
    skewed = frame.repartition(5, (frame["even"] < 2).cast("int"))
    assert 0 in [len(part) for part in skewed.rdd.glom().collect()]
    assert members(fit(skewed)) == expected


# -------------------------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize("worker", ["column_worker", "adding_worker", "inside_worker"])
def test_a_killed_worker_changes_nothing(frame, read_again, expected, tmp_path, monkeypatch, worker):
    """With half of its output handed over: Spark runs the task again, and takes one attempt's output."""
    marker, make = str(tmp_path / "killed"), getattr(spark_columns, worker)

    def disturbed(*arguments):
        work = make(*arguments)

        def once(batches):
            for batch in work(batches):
                yield batch
                if batch.num_rows and not os.path.exists(marker):
                    Path(marker).touch()
                    os.kill(os.getpid(), signal.SIGKILL)

        return once

    monkeypatch.setattr(spark_columns, worker, disturbed)
    assert members(fit(frame)) == expected
    assert Path(marker).exists()


@pytest.mark.parametrize("fault", ["a row too many", "a row that moved"])
def test_a_frame_that_changes_between_jobs_is_refused(frame, read_again, monkeypatch, fault):
    """The charge stays in the books, and there is no release."""
    cells_inside, n_asked = SparkColumns.cells_inside, []

    def changed(self, marks, is_wanted):
        n_asked.append(1)
        cells = cells_inside(self, marks, is_wanted)
        if fault == "a row too many":
            return cells.union(cells.limit(1))
        is_moved, last = "row_number() OVER (ORDER BY k0) = 1", "max(k0) OVER ()"
        return cells.selectExpr(f"IF({is_moved}, {last}, k0) AS k0")

    monkeypatch.setattr(SparkColumns, "cells_inside", changed)
    ledger, model = sp.Ledger(limit=4, delta="1e-5"), sp.ForestSynthesizer(epsilon=4)
    with pytest.raises(InputError, match="table changed while it was read"):
        model.fit(frame, SCHEMA, ledger=ledger)
    assert n_asked
    assert ledger.events
    assert not hasattr(model, "release_")


def test_a_row_that_is_lost_is_noticed(frame, read_again, monkeypatch):
    """Every column must be of all rows."""
    source = SparkSource(frame, SCHEMA._as_read)
    source.check_values()
    source._n_rows = N + 1
    with pytest.raises(InputError, match="table changed while it was read"):
        list(source.count_ruled(*wide()))


def wide() -> tuple[list[Lattice], list[RootedRuler]]:
    """A column of many cells and its ruler."""
    axis = column_axis("even", SCHEMA["even"])
    return [axis.lattice], [RootedRuler(axis.ruler, np.zeros(1, dtype=np.int64))]


def test_a_value_that_cannot_be_read_is_told_by_its_column(spark, tmp_path, read_again):
    """Where it turned up after values were checked."""
    even = ROWS["even"].to_pylist()
    even[77] = None
    table = ROWS.set_column(0, "even", pa.array(even, pa.float64()))
    source = SparkSource(spark_frame(spark, table, tmp_path), SCHEMA._as_read)
    with pytest.raises(InputError, match="column 'even' holds a missing or non-finite value"):
        list(source.count_ruled(*wide()))


@pytest.mark.parametrize("n_bytes", [0, 100_000])
def test_a_full_disk_is_told_and_nothing_is_released(frame, read_again, monkeypatch, n_bytes):
    """While cells of rows that were read again are put there. The charge stays in the books."""
    spilled, written = [], [0]
    spill = CellCounter._spill

    def write(file, array):
        written[0] += array.nbytes
        if written[0] > n_bytes:
            raise OSError(28, "No space left on device")
        file.write(array.tobytes())

    monkeypatch.setattr("spinney.counting.spill._write", write)
    monkeypatch.setattr(CellCounter, "_spill", lambda self: (spilled.append(1), spill(self))[1])
    ledger, model = sp.Ledger(limit=4, delta="1e-5"), sp.ForestSynthesizer(epsilon=4)
    with pytest.raises(FileError, match=r"temporary folder .*No space left on device; set SPINNEY_MEMORY_LIMIT"):
        model.fit(frame, SCHEMA, ledger=ledger)
    assert spilled
    assert ledger.events
    assert not hasattr(model, "release_")


# ------------------------------------------------------------------------------------------------ what workers run


def vectors() -> ColumnVectors:
    """A column of few cells and one of many, of which marks tell some ranges apart."""
    few, many = column_axis("few", sp.Integer(0, 120)), column_axis("many", sp.Real(0, 1))
    marks = Marks(many.lattice, RootedRuler(many.ruler, np.zeros(1, dtype=np.int64)), most_nodes=20_000)
    return ColumnVectors((few.lattice, many.lattice), (None, marks))


def batch_of(some: ColumnVectors, few: np.ndarray, many: np.ndarray) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"p0": pa.array((few << some.axes[1].bits) + many)})


def summed(batches, some: ColumnVectors) -> list[np.ndarray]:
    """What a driver makes of slices."""
    total = np.zeros(some.starts[-1], dtype=np.int64)
    for batch in batches:
        for row in batch.to_pylist():
            total[SLICE * row["slice"] :][:SLICE] += np.frombuffer(row["numbers"], f"u{row['width']}")
    return [total[start:][:size] for start, size in zip(some.starts[:-1], some.sizes, strict=True)]


@pytest.mark.parametrize("n", [0, 5, 300, 90_000])
def test_vectors_are_those_of_the_rows(n):
    """However many bytes a number takes, in as many partitions as there are, added up by workers or the driver."""
    some, rng = vectors(), np.random.default_rng(1)
    few = rng.integers(0, 2, n) * 70
    many = rng.integers(0, 1 << some.axes[1].bits, n) * rng.integers(0, 2, n)
    halves = [batch_of(some, few[:9], many[:9]), batch_of(some, few[9:], many[9:])]
    parts = [list(column_worker(some, "int32")(iter([half]))) for half in halves]
    sent = [batch for part in parts for batch in part]
    in_two, in_one = summed(sent, some), summed(adding_worker()(iter(sent)), some)
    places = np.searchsorted(some.marks[1].first, many, side="right") - 1
    for found in (in_two, in_one):
        assert np.array_equal(found[0], np.bincount(few, minlength=some.sizes[0]))
        assert np.array_equal(found[1], np.bincount(places, minlength=some.sizes[1]))


def test_faults_come_through():
    """Of several the largest, which is that of the first column."""
    some = vectors()
    batch = pa.RecordBatch.from_pydict({"p0": pa.array([3, -4, 5, -2, -6])})
    (sent,) = column_worker(some, "int32")(iter([batch]))
    (added,) = adding_worker()(iter([sent, sent]))
    assert added["slice"].to_pylist() == [-2]
    (inside,) = inside_worker(some.marks[1], np.zeros(some.sizes[1], dtype=np.bool_))(iter([batch]))
    assert inside["k0"].to_pylist() == [-4, -2, -6]


def test_what_workers_run_needs_no_spinney(tmp_path):
    """It travels by value: a Python that cannot import Spinney runs it, and its numbers are the same."""
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    some, rng = vectors(), np.random.default_rng(2)
    is_wanted = rng.random(some.sizes[1]) < 0.3
    workers = [column_worker(some, "int32"), adding_worker(), inside_worker(some.marks[1], is_wanted)]
    many = rng.integers(0, 1 << some.axes[1].bits, 1_000)
    both, alone = batch_of(some, rng.integers(0, 120, 1_000), many), pa.RecordBatch.from_pydict({"p0": pa.array(many)})
    (tmp_path / "workers.pickle").write_bytes(cloudpickle.dumps((workers, both, alone)))
    script = """
import pickle, sys
sys.modules["spinney"] = None
(count, add, pick), both, alone = pickle.load(open(sys.argv[1], "rb"))
found = [list(add(count(iter([both])))), list(pick(iter([alone])))]
pickle.dump(found, open(sys.argv[2], "wb"))
"""
    answer = tmp_path / "answer.pickle"
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "workers.pickle"), str(answer)], check=True)
    counted, picked = cloudpickle.loads(answer.read_bytes())
    count, add, pick = workers
    assert counted == list(add(count(iter([both]))))
    assert picked == list(pick(iter([alone])))
    assert 0 < picked[0].num_rows < 1_000
