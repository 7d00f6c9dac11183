"""Spark: cells that outgrow the limit of memory come over in parts, and are the same cells."""

from __future__ import annotations

import narwhals as nw
import numpy as np
import pytest

import spinney as sp
from spinney.counting.spill import SpilledRuns
from spinney.errors import InputError
from spinney.grid.lattice import tree_lattice
from spinney.tables.engines import query_source
from spinney.tables.engines.memory import count_cells
from spinney.tables.engines.query_source import BucketChecksums, PersistedCells
from spinney.tables.engines.spark import SparkSource
from spinney.tables.frames import open_table
from support.cell_counts import same_cells
from support.hard_values import collect

N = 20_000
LIMIT = 1 << 20  # bytes: the cells of N rows take more
WIDE = sp.Schema({"x": sp.Real(0, 1, bits=30), "y": sp.Real(0, 1, bits=30), "k": sp.Integer(0, 9)})
SCHEMAS = {
    "one word": sp.Schema({"x": sp.Real(0, 1, bits=20), "y": sp.Real(0, 1, bits=18)}),
    "two words, two keys": sp.Schema({**WIDE, "y": sp.Real(0, 1, bits=32)}),
}


@pytest.fixture(scope="module")
def scattered(spark):
    """Rows that nearly all lie in cells of their own: computed anew for every job, always the same."""
    frame = spark.range(N, numPartitions=3).selectExpr("rand(1) AS x", "rand(2) AS y", "id % 10 AS k")
    return frame, collect(nw.from_native(frame))


@pytest.fixture
def spilled(monkeypatch) -> list[int]:
    """How many cells the runs had that went to disk."""
    lengths: list[int] = []

    class Recorded(SpilledRuns):
        def add(self, codes, counts):
            lengths.append(len(codes))
            super().add(codes, counts)

    monkeypatch.setattr(query_source, "SpilledRuns", Recorded)
    return lengths


@pytest.fixture
def nothing_kept(spark):
    """Whatever happens, Spark keeps no cells afterwards."""
    yield
    assert spark.sparkContext._jsc.getPersistentRDDs().isEmpty()


pytestmark = pytest.mark.usefixtures("nothing_kept")


@pytest.mark.parametrize("name", SCHEMAS)
def test_cells_in_parts_are_those_in_memory(scattered, spilled, name):
    """Parts go to disk, sorted, and together are every cell of the table, in order, with its count."""
    frame, table = scattered
    schema = SCHEMAS[name]
    lattice = tree_lattice(schema)
    got = SparkSource(frame.select(*schema), schema, memory_limit=LIMIT).count_cells(lattice)
    expected = count_cells(open_table(table.select(list(schema)), schema), lattice)
    assert same_cells(got, expected)
    assert len(spilled) > 2
    assert sum(spilled) == len(got.true_codes) > 0.9 * N
    assert isinstance(got.true_codes.base, np.memmap)


def test_columns_in_parts_are_those_in_memory(scattered, spilled):
    """Several lattices out of one pass: each has its own parts; a short one comes in one and stays in memory."""
    frame, table = scattered
    source = SparkSource(frame, WIDE, memory_limit=LIMIT)
    lattices = [tree_lattice(sp.Schema({name: column})) for name, column in WIDE.items()]
    n_spilled = []
    for lattice, got in zip(lattices, source.count_columns(lattices), strict=True):
        n_spilled.append(len(spilled))
        assert same_cells(got, count_cells(open_table(table, WIDE), lattice)), lattice.axes[0].name
    assert 2 < n_spilled[0] < n_spilled[1] == n_spilled[2]


def test_the_release_is_that_of_the_table_in_memory(scattered, spilled, monkeypatch):
    """Under the same noise, every byte of the release is the same."""
    monkeypatch.setenv("SPINNEY_MEMORY_LIMIT", str(LIMIT))
    frame, table = scattered
    local, remote = (
        sp.KDTreeSynthesizer(epsilon=8).fit(data, WIDE, entropy=sp.UnsafeSeededEntropy(5)).release_
        for data in (table.to_pandas(), frame)
    )
    assert spilled
    assert remote.card.to_dict() == local.card.to_dict()
    assert remote.to_members() == local.to_members()


def test_small_answers_are_one_job(scattered, monkeypatch):
    """Where rows or cells are few enough to fit, Spark keeps nothing for us."""
    frame, _ = scattered
    monkeypatch.setattr(SparkSource, "kept_cells", None)
    assert SparkSource(frame, WIDE).count_cells(tree_lattice(WIDE)).true_codes.shape == (N, 1)
    few = sp.Schema({"x": sp.Real(0, 1, bits=4), "y": sp.Real(0, 1, bits=4)})
    source = SparkSource(frame.select("x", "y"), few, memory_limit=LIMIT)
    assert len(source.count_cells(tree_lattice(few)).true_codes) == 256


# --------------------------------------------------------------------------------------------------- faults


def test_unreadable_values_are_named(scattered):
    """As in one job: the first column that cannot be read, before any part comes over."""
    frame, _ = scattered
    schema = sp.Schema({**WIDE, "k": sp.Category(list(range(9)))})
    with pytest.raises(InputError, match=r"'k'.*not in the schema's list"):
        SparkSource(frame, schema, memory_limit=LIMIT).count_cells(tree_lattice(schema))
    holes = frame.selectExpr("x", "nullif(y, y) AS y", "k")
    with pytest.raises(InputError, match="'y' holds a missing"):
        SparkSource(holes, schema, memory_limit=LIMIT).count_cells(tree_lattice(schema))


def test_a_table_that_changes_is_refused(scattered):
    """Counts of another number of rows than before are of another table."""
    source = SparkSource(scattered[0], WIDE, memory_limit=LIMIT)
    source._n_rows = N + 1
    with pytest.raises(InputError, match="table changed while it was read"):
        source.count_cells(tree_lattice(WIDE))


@pytest.fixture
def moving(spark):
    """A table in which one row can be told to move to the next cell: as many rows and cells as before."""
    system = spark.sparkContext._jvm.java.lang.System
    moved = "reflect('java.lang.System', 'getProperty', 'spinney.moved') = 'yes'"
    x = f"CASE WHEN id = 0 AND {moved} THEN 0.75D WHEN id < 10 THEN 0.25D WHEN id < 20 THEN 0.75D ELSE rand(1) END"
    yield spark.range(N, numPartitions=3).selectExpr(f"{x} AS x", "rand(2) * (id DIV 20) AS y"), system
    system.clearProperty("spinney.moved")


@pytest.mark.parametrize("is_lost", [False, True], ids=["kept", "lost"])
def test_all_parts_are_of_one_count(moving, monkeypatch, is_lost):
    """A row that has moved is not seen while Spark keeps the cells; where they are lost and counted anew, it is."""
    frame, system = moving
    schema = sp.Schema({"x": sp.Real(0, 1, bits=20), "y": sp.Real(0, 20_000, bits=20)})
    lattice = tree_lattice(schema)
    expected = count_cells(open_table(collect(nw.from_native(frame)), schema), lattice)
    checksums = PersistedCells.checksums

    def account_and_move(kept):
        found = checksums(kept)
        system.setProperty("spinney.moved", "yes")
        if is_lost:
            kept._kept.unpersist(True)
        return found

    monkeypatch.setattr(PersistedCells, "checksums", account_and_move)
    source = SparkSource(frame, schema, memory_limit=LIMIT)
    if is_lost:
        with pytest.raises(InputError, match="table changed while it was read"):
            source.count_cells(lattice)
    else:
        assert same_cells(source.count_cells(lattice), expected)
    system.setProperty("spinney.moved", "yes")
    after = count_cells(open_table(collect(nw.from_native(frame)), schema), lattice)
    assert not same_cells(after, expected)
    assert np.array_equal(after.distinct()[0], expected.distinct()[0])  # neither cells nor rows became more or fewer


# ------------------------------------------------------------------------------------------------- accounts


def test_parts_hold_every_bucket_once():
    """Parts are as large as they may be; a bucket that is larger is a part by itself; empty buckets are nowhere."""
    bucket = np.array([0, 1, 3, 7, 10, 11, 12, 15])
    n_cells = np.array([5, 4, 2, 30, 1, 9, 1, 10])
    checksums = BucketChecksums(10, bucket, n_cells, 2 * n_cells, 1 << np.arange(8), np.zeros(8, np.int64))
    first, second = ([(part.first, part.last, part.n_cells) for part in checksums.parts(which, 10)] for which in (0, 1))
    assert first == [(0, 1, 9), (3, 3, 2), (7, 7, 30)]
    assert second == [(10, 11, 10), (12, 12, 1), (15, 15, 10)]
    assert [part.hash for part in checksums.parts(1, 10)] == [16 + 32, 64, 128]
    assert (checksums.n_rows(0), checksums.n_rows(1), checksums.n_rows(2)) == (82, 42, 0)
    assert checksums.parts(2, 10) == []


def test_nothing_is_shown(scattered):
    """What is kept, and the checksums of it, say nothing of their cells."""
    source = SparkSource(scattered[0], WIDE)
    kept = PersistedCells(
        source._rows.cell_counts(tree_lattice(WIDE)).to_native(), n_buckets=2, functions=None, run=lambda *_: None
    )
    checksums = BucketChecksums(1, *(np.zeros(1, np.int64) for _ in range(5)))
    assert repr(kept) == "PersistedCells(sensitive)"
    assert repr(checksums) == "BucketChecksums(sensitive)"
    assert repr(checksums.parts(0, 1)) == "[Part(sensitive)]"
    kept.close()
