"""Forests over Spark: its workers count tables of states, and only tables reach the driver."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.counting.joint import TableRequest
from spinney.counting.states import Cut
from spinney.errors import InputError, ParameterError
from spinney.grid.axes import column_axis
from spinney.tables.engines.spark import SparkSource
from spinney.tables.engines.spark_tables import SparkPasses, _plain_adding, packing_worker, state_worker, table_worker
from support import forest_tables
from support.forest_tables import SCHEMA, members
from support.hard_values import spark_frame

ROWS = forest_tables.rows()
OPTIONS = {
    "fast": {},
    "target": {"target": "label"},
    "high": {"quality": "high"},
    "stated": {"workload": [("age", "kind", "label")]},
    "regression": {"analyses": ["visits ~ age + label"]},
}


@pytest.fixture(scope="module")
def frame(spark, tmp_path_factory):
    return spark_frame(spark, ROWS, tmp_path_factory.mktemp("forest"))


def fit(table, schema=SCHEMA, **options) -> sp.ForestSynthesizer:
    options = {"epsilon": 2} | options
    return sp.ForestSynthesizer(**options).fit(table, schema, entropy=sp.UnsafeSeededEntropy(5))


@pytest.fixture
def passes(monkeypatch) -> list[int]:
    """How many numbers every pass counted. No row's states may come to the driver."""
    seen: list[int] = []
    count = SparkPasses.count

    def watched(self, request):
        seen.append(request.n_numbers)
        return count(self, request)

    monkeypatch.setattr(SparkPasses, "count", watched)
    monkeypatch.setattr(SparkSource, "state_rows", None)
    return seen


@pytest.mark.parametrize("name", OPTIONS)
def test_the_release_is_that_of_the_table_in_memory(name, frame, passes):
    """Under the same noise, every byte: columns of every kind, rules, a place, and conditions on drawn rows."""
    assert members(fit(frame, **OPTIONS[name])) == members(fit(ROWS.to_pandas(), **OPTIONS[name]))
    assert len(passes) == 1 or name == "high"


def test_private_bounds_and_lists_are_those_of_the_table_in_memory(frame, passes):
    schema = forest_tables.with_private_parts()
    assert members(fit(frame, schema, epsilon=8)) == members(fit(ROWS.to_pandas(), schema, epsilon=8))


def test_skewed_and_empty_partitions_change_nothing(spark, frame, passes):
    """Nearly all rows in one partition, none in most others."""
    skewed = frame.repartition(7, (frame["age"] < 99).cast("int"))
    sizes = [len(part) for part in skewed.rdd.glom().collect()]
    assert 0 in sizes
    assert max(sizes) > 0.9 * ROWS.num_rows
    assert members(fit(skewed)) == members(fit(ROWS.to_pandas()))


@pytest.mark.parametrize("fault", ["a worker is killed", "a task fails"])
def test_a_lost_worker_changes_nothing(frame, passes, tmp_path, monkeypatch, fault):
    """In the middle of the pass that counts tables: Spark runs the task again, and takes one attempt's output."""
    marker, expected = str(tmp_path / "fault"), members(fit(ROWS.to_pandas()))

    def disturbed(request, dtype):
        count = table_worker(request, dtype)

        def once(batches):
            counted = list(count(batches))
            yield counted[0]  # half of the output is there when the task is lost
            if not os.path.exists(marker):
                Path(marker).touch()
                if fault == "a worker is killed":
                    os.kill(os.getpid(), signal.SIGKILL)
                raise RuntimeError("once")
            yield from counted[1:]

        return once

    monkeypatch.setattr("spinney.tables.engines.spark_tables.table_worker", disturbed)
    assert members(fit(frame)) == expected
    assert Path(marker).exists()


def test_a_frame_that_changes_between_passes_is_refused(frame, monkeypatch):
    """As many rows, one of other values: tables of a later pass do not agree. The charge stays, nothing is released."""
    count = SparkPasses.count

    def moved(self, request):
        if self._n_passes == 1:
            first, *others = self._states.columns
            is_moved, last = "row_number() OVER (ORDER BY s0) = 1", "max(s0) OVER ()"
            self._states = self._states.selectExpr(f"IF({is_moved}, {last}, s0) AS {first}", *others)
        return count(self, request)

    monkeypatch.setattr(SparkPasses, "count", moved)
    ledger = sp.Ledger(limit=2, delta="1e-5")
    model = sp.ForestSynthesizer(epsilon=2, quality="high")
    with pytest.raises(InputError, match="table changed while it was read"):
        model.fit(frame, SCHEMA, ledger=ledger)
    assert ledger.events
    assert not hasattr(model, "release_")


def test_states_that_spark_keeps_are_forgotten(spark, frame):
    """After a fit, and after an interruption in the middle of one, Spark keeps nothing of ours."""
    java = spark.sparkContext._jsc
    before = len(java.getPersistentRDDs())
    fit(frame, quality="high")
    assert len(java.getPersistentRDDs()) == before

    def interrupted(self, request):
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SparkPasses, "count", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fit(frame, quality="high")
    assert len(java.getPersistentRDDs()) == before


def test_the_session_keeps_its_settings(spark, frame):
    """One is changed while a job runs, and put back."""
    name = "spark.sql.codegen.hugeMethodLimit"
    before = spark.conf.get(name)
    SparkSource(frame, SCHEMA._as_read).check_values()
    assert spark.conf.get(name) == before


def test_without_python_workers_states_are_held_where_they_fit(frame, monkeypatch):
    """And the release is the same; where they do not fit, this is told before anything is spent."""
    expected = members(fit(ROWS.to_pandas()))
    monkeypatch.setattr(SparkSource, "_has_workers", False)
    assert members(fit(frame)) == expected
    monkeypatch.setattr("spinney.tables.engines.spark.is_held", lambda *_: False)
    ledger = sp.Ledger(limit=2, delta="1e-5")
    with pytest.raises(InputError, match=r"mapInArrow.* need 64,000 bytes on the driver"):
        sp.ForestSynthesizer(epsilon=2).fit(frame, SCHEMA, ledger=ledger)
    assert not ledger.events


def test_a_limit_that_is_too_small_is_told_before_anything_is_spent(frame, monkeypatch):
    monkeypatch.setenv("SPINNEY_MEMORY_LIMIT", "2MiB")
    ledger = sp.Ledger(limit=2, delta="1e-5")
    with pytest.raises(ParameterError, match=r"needs 9,600,000 to be counted; set SPINNEY_MEMORY_LIMIT=10MiB"):
        sp.ForestSynthesizer(epsilon=2, quality="high").fit(frame, SCHEMA, ledger=ledger)
    assert not ledger.events
    assert members(fit(frame)) == members(fit(ROWS.to_pandas()))


# ------------------------------------------------------------------------------------------------ what workers run


@pytest.mark.parametrize("most", [None, 2, 4, 9])
def test_workers_without_spinney_count_the_same(most):
    """numpy's counts are those of the compiled loops, number by number."""
    rng, sizes = np.random.default_rng(0), (3, 9, 1, 5)
    states = np.array([rng.integers(0, size, 1_000) for size in sizes], dtype=np.uint8)
    groups = None if most is None else [(np.arange(size) % min(size, most)).astype(np.uint8) for size in sizes]
    request = TableRequest(sizes, [*combinations(range(4), 2), *combinations(range(4), 3), (0, 1, 2, 3)], groups)
    compiled, plain = (np.zeros(request.n_numbers, dtype=np.int64) for _ in range(2))
    request.add(states, compiled)
    _plain_adding(request)(states, plain)
    assert np.array_equal(compiled, plain)
    assert compiled.sum() > 0


def test_what_workers_run_needs_no_spinney(tmp_path):
    """It travels by value: a Python that cannot import Spinney runs it."""
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    sizes = (3, 4)
    request = TableRequest(sizes, [(0, 1)])
    few, many = (column_axis("x", column).axis for column in (sp.Integer(0, 120), sp.Real(0, 1)))
    cuts = [
        Cut(few, np.array([0, 50, 80]), np.arange(3)),
        Cut(many, np.array([0, 5, 1 << 20, 1 << 30]), np.arange(4)),
    ]
    (tmp_path / "worker.pickle").write_bytes(
        cloudpickle.dumps(
            (table_worker(request, "uint8"), packing_worker("uint8"), state_worker(cuts, np.dtype(np.uint8)))
        )
    )
    script = """
import pickle, sys
sys.modules["spinney"] = None
import pyarrow as pa
count, pack, find = pickle.load(open(sys.argv[1], "rb"))
packed = [(cell << int(sys.argv[2])) + other for cell, other in [(3, 9), (99, 3 << 30), (80, 3 << 30)]]
cells = pa.RecordBatch.from_pydict({"p0": pa.array(packed)})
(batch,) = find(iter([cells]))
print(batch.to_pydict())
print([found.to_pydict() for found in count(iter([batch, batch.slice(0, 0)]))])
print([len(found["states"][0].as_py()) for found in pack(iter([batch]))])
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "worker.pickle"), str(many.bits)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "{'s0': [0, 2, 2], 's1': [1, 3, 3]}",
        "[{'cell': [1, 11], 'n': [1, 2]}]",
        "[6]",
    ]


def test_a_worker_of_an_empty_partition_hands_over_nothing():
    """No batch, or a batch of no rows."""
    request = TableRequest((3, 4), [(0, 1)])
    empty = pa.RecordBatch.from_pydict({"s0": pa.array([], pa.int8()), "s1": pa.array([], pa.int8())})
    for batches in ([], [empty]):
        (found,) = table_worker(request, "uint8")(iter(batches))
        assert found.num_rows == 0


def test_relations_are_found_where_the_rows_are(spark, tmp_path):
    """Columns that are equal, and parts of each other: the release is that of the table in memory, to the last byte."""
    rng = np.random.default_rng(3)
    approved = 100 * rng.integers(10, 9000, 1500)
    paid = np.where(rng.random(1500) < 0.8, approved, approved // 3)
    covered = np.where(rng.random(1500) < 0.9, np.floor(0.75 * approved + 0.5), approved // 7).astype(np.int64)
    table = pa.table({"approved": approved, "paid": paid, "covered": covered})
    schema = sp.Schema({name: sp.Integer(0, 10**6) for name in table.column_names})

    def fit(frame):
        return sp.ForestSynthesizer("8", "1e-6").fit(frame, schema, entropy=sp.UnsafeSeededEntropy(5))

    here, there = fit(table), fit(spark_frame(spark, table, tmp_path))
    assert set(here.release_.schema._related) == {"paid", "covered"}
    assert there.release_.to_members() == here.release_.to_members()
