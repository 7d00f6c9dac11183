"""Forests that are counted where the rows are: the release is that of the table in memory, byte by byte."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import spinney as sp
from spinney.counting.joint import TableRequest
from spinney.counting.spill import LevelFile
from spinney.errors import InputError, ParameterError
from spinney.tables.engines import stream
from spinney.tables.engines import stream as batch_passes
from spinney.tables.engines.stream import CountedStates
from support import forest_tables
from support.forest_tables import SCHEMA, members
from support.open_files import open_files

ROWS = forest_tables.rows()
OPTIONS = {
    "fast": {},
    "target": {"target": "label"},
    "high": {"quality": "high"},
    "high with a target": {"quality": "high", "target": "age"},
    "high, more rounds": {"quality": "high", "epsilon": 8},
    "stated": {"workload": [("kind", "label"), ("age", "kind", "label")]},
    "regression": {"analyses": ["visits ~ age + label"]},
    "add-remove": {"unit": "add-remove", "quality": "high"},
    "pure": {"delta": 0},
    "small": {"epsilon": "1/100"},
    "prior": {"prior": forest_tables.rows(500, seed=9)},
}


@pytest.fixture
def counted(monkeypatch) -> list[int]:
    """Nothing is held; how many numbers every pass counted."""
    monkeypatch.setattr(stream, "is_held", lambda *_: False)
    seen: list[int] = []
    count = batch_passes.BatchPasses.count

    def watched(self, request):
        seen.append(request.n_numbers)
        return count(self, request)

    monkeypatch.setattr(batch_passes.BatchPasses, "count", watched)
    return seen


def parquet(folder: Path, rows: pa.Table = ROWS) -> Path:
    pq.write_table(rows, folder / "rows.parquet", row_group_size=900)
    return folder / "rows.parquet"


def csv(folder: Path) -> Path:
    pacsv.write_csv(ROWS, folder / "rows.csv")
    return folder / "rows.csv"


ENGINES = {
    "parquet": parquet,
    "several files": lambda folder: [
        str(parquet(folder / name, ROWS.slice(start, 1_000)))
        for name, start in (("a", 0), ("b", 1_000), ("c", 2_000), ("d", 3_000))
        if not (folder / name).mkdir()
    ],
    "csv": csv,
    "LazyFrame": lambda folder: pl.scan_parquet(parquet(folder)),
    "DuckDB": lambda folder: duckdb.read_parquet(str(parquet(folder))),
    "dataset": lambda folder: ds.dataset(parquet(folder)),
}


def fit(table, schema=SCHEMA, **options) -> sp.ForestSynthesizer:
    options = {"epsilon": 2} | options
    return sp.ForestSynthesizer(**options).fit(table, schema, entropy=sp.UnsafeSeededEntropy(5))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["target", "high"])
def test_every_engine_gives_the_release_of_the_table_in_memory(engine, name, tmp_path, counted):
    """Columns of every kind, nulls, rules and a place; with conditions on drawn rows."""
    expected = members(fit(ROWS, **OPTIONS[name]))
    assert counted == []
    assert members(fit(ENGINES[engine](tmp_path), **OPTIONS[name])) == expected
    assert counted


@pytest.mark.parametrize("name", OPTIONS)
def test_every_kind_of_forest_is_that_of_the_table_in_memory(name, tmp_path, counted):
    """Structures, targets, rounds of up to five columns, stated tables, regressions, priors and small budgets."""
    assert members(fit(parquet(tmp_path), **OPTIONS[name])) == members(fit(ROWS, **OPTIONS[name]))


def test_private_bounds_and_lists_are_those_of_the_table_in_memory(tmp_path, counted):
    schema = forest_tables.with_private_parts()
    assert members(fit(parquet(tmp_path), schema, epsilon=8)) == members(fit(ROWS, schema, epsilon=8))
    assert counted


def test_one_pass_counts_what_a_fast_forest_needs(tmp_path, counted):
    """All pairs together; with a target, all triples with it: nothing is asked of the rows afterwards."""
    for options in ({}, {"target": "label"}):
        fit(parquet(tmp_path), **options)
        assert len(counted) == 1
        counted.clear()


def test_a_turn_of_rounds_takes_one_pass_at_the_most(tmp_path, counted):
    """For the larger tables that it chose; those that are compared are counted once for all turns."""
    model = fit(parquet(tmp_path), forest_tables.without_rules(), quality="high")
    n_columns = 9
    n_turns = 1 + -(-(model.design_.plan.choices["selection"].times - n_columns // 2) // (n_columns // 4))
    assert 1 < len(counted) <= 2 + n_turns


def test_levels_on_disk_are_read_instead_of_the_table(tmp_path, counted, monkeypatch):
    """The table is read by the first pass alone."""
    n_read = []
    read = stream.StreamSource._each

    def watched(self, names, what, work):
        n_read.append(what)
        read(self, names, what, work)

    monkeypatch.setattr(stream.StreamSource, "_each", watched)
    fit(parquet(tmp_path), quality="high")
    assert [what for what in n_read if what.startswith("counting tables")] == ["counting tables, pass 1"]
    assert len(counted) > 1


def test_without_room_on_disk_the_table_is_read_again(tmp_path, counted, monkeypatch):
    """And the release is the same."""
    expected = members(fit(ROWS, quality="high"))
    monkeypatch.setattr(stream, "level_file", lambda *_, **__: None)
    assert members(fit(parquet(tmp_path), quality="high")) == expected


@pytest.mark.parametrize("n_bytes", [0, 20_000])
def test_a_disk_that_fills_up_while_levels_are_written_is_no_error(tmp_path, counted, monkeypatch, n_bytes):
    """The file is given up, its space is given back, and the release is the same."""
    expected = members(fit(ROWS, quality="high"))
    files: list[LevelFile] = []
    make, write, written = LevelFile.__init__, batch_passes.LevelFile.append, [0]

    def watched(self, *arguments, **options):
        make(self, *arguments, **options)
        files.append(self)

    def full(descriptor, data, start):
        written[0] += len(data)
        if written[0] > n_bytes:
            raise OSError(28, "No space left on device")
        return pwrite(descriptor, data, start)

    pwrite = os.pwrite
    monkeypatch.setattr(LevelFile, "__init__", watched)
    monkeypatch.setattr("spinney.counting.spill.os.pwrite", full)
    assert members(fit(parquet(tmp_path), quality="high")) == expected
    assert write is LevelFile.append
    assert all(file.is_given_up and file._file.closed for file in files)
    assert files


@pytest.mark.parametrize("n_columns", [3, 12])
def test_tables_that_do_not_fit_are_counted_in_portions(n_columns):
    """A limit with room for a few tables only: more passes, the same tables."""
    rng = np.random.default_rng(1)
    sizes = tuple(int(size) for size in rng.integers(2, 30, n_columns))
    states = np.array([rng.integers(0, size, 500) for size in sizes], dtype=np.uint8)
    passes = []

    def count(request):
        passes.append(request.n_numbers)
        sums = np.zeros(request.n_numbers, dtype=np.int64)
        request.add(states, sums)
        return sums

    pairs = [(i, j) for i in range(n_columns) for j in range(i + 1, n_columns)]
    limit = 32 * max(sizes) ** 2
    tables = CountedStates(sizes, 500, count, memory_limit=limit, close=lambda: None)
    tables.prepare(pairs, keeps=True)
    held = stream.StateRows(states, sizes)
    found = tables.true_each(pairs, lambda _, table: table.copy())
    assert all(np.array_equal(table, held.true_table(pair)) for pair, table in zip(pairs, found, strict=True))
    assert max(passes) * 8 <= limit // 4
    assert len(passes) > 1


# --------------------------------------------------------------------------------------------------- faults


def other_value(states: np.ndarray) -> np.ndarray:
    changed = states.copy()
    changed[0, 0] = (changed[0, 0] + 1) % 3
    return changed


def exchanged(states: np.ndarray) -> np.ndarray:
    """Two rows exchange a value: every column by itself is as before."""
    changed = states.copy()
    other = int(np.flatnonzero(states[0] != states[0, 0])[0])
    changed[0, [0, other]] = changed[0, [other, 0]]
    return changed


@pytest.mark.parametrize("change", [other_value, exchanged, lambda states: states[:, 1:]])
@pytest.mark.parametrize("groups", [None, 4])
def test_passes_that_saw_other_rows_are_refused(change, groups):
    """Sums of later tables are compared with those of the first pass: one row of many is enough."""
    rng, sizes = np.random.default_rng(2), (3, 40, 50, 60)
    tables = [np.array([rng.integers(0, size, 300) for size in sizes], dtype=np.uint8)]

    def count(request):
        sums = np.zeros(request.n_numbers, dtype=np.int64)
        request.add(np.ascontiguousarray(tables[-1]), sums)
        return sums

    cut = None if groups is None else [(np.arange(size) % min(size, groups)).astype(np.uint8) for size in sizes]
    counted = CountedStates(sizes, 300, count, memory_limit=1 << 24, close=lambda: None)
    counted.prepare([(0, 1), (0, 2), (0, 3), (1, 2)], keeps=True)
    counted.true_each([(0, 1, 2)], lambda _, table: table, groups=cut)
    tables.append(change(tables[0]))
    with pytest.raises(InputError, match="table changed while it was read"):
        counted.true_each([(0, 1, 3)], lambda _, table: table, groups=cut)


def test_a_file_that_changes_between_passes_is_refused(tmp_path, counted, monkeypatch):
    """Once the forest has paid, the charge stays in the books, and there is no release."""
    path = parquet(tmp_path)
    monkeypatch.setattr(stream, "level_file", lambda *_, **__: None)  # so that later passes read the table
    count = batch_passes.BatchPasses.count

    def count_and_change(self, request):
        sums = count(self, request)
        parquet(tmp_path, forest_tables.rows(seed=1))
        return sums

    monkeypatch.setattr(batch_passes.BatchPasses, "count", count_and_change)
    ledger = sp.Ledger(limit=2, delta="1e-5")
    model = sp.ForestSynthesizer(epsilon=2, quality="high")
    with pytest.raises(InputError, match="table changed while it was read"):
        model.fit(path, SCHEMA, ledger=ledger)
    assert ledger.events
    assert not hasattr(model, "release_")


def test_a_limit_that_is_too_small_is_told_before_anything_is_spent(tmp_path, counted, monkeypatch):
    """With the number of bytes that are needed, and what to write."""
    monkeypatch.setenv("SPINNEY_MEMORY_LIMIT", "2MiB")
    ledger = sp.Ledger(limit=2, delta="1e-5")
    with pytest.raises(ParameterError, match=r"2,097,152 bytes.* needs 9,600,000 to be counted.*LIMIT=10MiB"):
        sp.ForestSynthesizer(epsilon=2, quality="high").fit(parquet(tmp_path), SCHEMA, ledger=ledger)
    assert not ledger.events
    assert members(fit(parquet(tmp_path))) == members(fit(ROWS))
    monkeypatch.setenv("SPINNEY_MEMORY_LIMIT", "10MiB")
    assert members(fit(parquet(tmp_path), quality="high")) == members(fit(ROWS, quality="high"))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
@pytest.mark.parametrize("in_pass", [1, 2])
def test_an_interruption_leaves_nothing_behind(tmp_path, counted, monkeypatch, in_pass):
    """Neither a file nor an open one without a name, in the first pass and in a later one."""
    folder = tmp_path / "spill"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    path, seen = parquet(tmp_path), []
    add = TableRequest.add

    def interrupted(self, states, sums):
        if len(counted) == in_pass:
            seen.append(open_files(folder))
            raise KeyboardInterrupt
        add(self, states, sums)

    monkeypatch.setattr(TableRequest, "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fit(path, quality="high")
    assert any(seen)
    assert open_files(folder) == []
    assert list(folder.iterdir()) == []
