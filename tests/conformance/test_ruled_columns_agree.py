"""Columns of more cells than memory has room for: counted between marks, the release is that of the table in memory."""

from __future__ import annotations

import errno
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
from spinney.counting import spill
from spinney.counting.counter import CellCounter, Marks
from spinney.errors import FileError, InputError
from spinney.tables.engines.stream import RuledCounts, StreamSource
from support.forest_tables import members
from support.open_files import open_files
from support.ruled_tables import SCHEMA, N, rows

ROWS = rows()


def parquet(folder: Path, table: pa.Table = ROWS) -> Path:
    pq.write_table(table, folder / "rows.parquet", row_group_size=7_000)
    return folder / "rows.parquet"


ENGINES = {
    "parquet": parquet,
    "LazyFrame": lambda folder: pl.scan_parquet(parquet(folder)),
    "DuckDB": lambda folder: duckdb.read_parquet(str(parquet(folder))),
    "dataset": lambda folder: ds.dataset(parquet(folder)),
}


@pytest.fixture
def read_again(monkeypatch) -> list[tuple[str, int]]:
    """A limit with room for few codes; of which columns rows were counted again, and how many."""
    monkeypatch.setenv("SPINNEY_MEMORY_LIMIT", "1MiB")
    found: list[tuple[str, int]] = []
    inside = StreamSource._inside

    def watched(self, marks, is_wanted, n_rows):
        found.append((marks.lattice.axes[0].name, n_rows))
        return inside(self, marks, is_wanted, n_rows)

    monkeypatch.setattr(StreamSource, "_inside", watched)
    return found


def fit(table, schema=SCHEMA, **options) -> sp.ForestSynthesizer:
    options = {"epsilon": 4} | options
    return sp.ForestSynthesizer(**options).fit(table, schema, entropy=sp.UnsafeSeededEntropy(3))


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_release_of_the_table_in_memory(engine, tmp_path, read_again):
    """With trees that go beyond all marks, piles, nulls and times; each column is read again once at the most."""
    expected = members(fit(ROWS))
    assert read_again == []
    assert members(fit(ENGINES[engine](tmp_path), SCHEMA)) == expected
    names = [name for name, _ in read_again]
    assert names == ["even", "deep", "piled", "seen"]


@pytest.mark.parametrize(
    "options", [{"target": "deep"}, {"unit": "add-remove"}, {"delta": 0}, {"prior": ROWS.slice(0, 800)}]
)
def test_every_kind_of_forest_is_that_of_the_table_in_memory(options, tmp_path, read_again):
    assert members(fit(parquet(tmp_path), **options)) == members(fit(ROWS, **options))
    assert read_again


def test_columns_that_rules_part_are_those_of_the_table_in_memory(tmp_path, read_again):
    """Their trees begin at ends of the rules' ranges, and so do the marks."""
    schema = sp.Schema(dict(SCHEMA), rules=[sp.Implies({"even": (0, 0.123)}, {"label": False})])
    even = pa.array(np.where(ROWS["label"], 0.5 + ROWS["even"].to_numpy() / 2, ROWS["even"]))
    table = ROWS.set_column(0, "even", even)
    assert members(fit(parquet(tmp_path, table), schema)) == members(fit(table, schema))
    assert [name for name, _ in read_again] == ["even", "deep", "piled", "seen"]


def test_rows_that_are_counted_again_may_go_to_disk(tmp_path, read_again, monkeypatch):
    """Where all rows lie in a tiny part of the bounds, all are counted again; many cells go to disk."""
    spilled = []
    spill = CellCounter._spill
    monkeypatch.setattr(CellCounter, "_spill", lambda self: (spilled.append(self.lattice.axes[0].name), spill(self)))
    assert members(fit(parquet(tmp_path))) == members(fit(ROWS))
    assert dict(read_again)["deep"] > 0.9 * N
    assert "even" in spilled


def test_a_csv_is_not_read_again(tmp_path, read_again):
    """Every pass would parse all of it: cells are counted, on disk if necessary."""
    pacsv.write_csv(ROWS, tmp_path / "rows.csv")
    assert members(fit(tmp_path / "rows.csv")) == members(fit(ROWS))
    assert read_again == []


def test_columns_that_fit_are_not_read_again(tmp_path, read_again, monkeypatch):
    monkeypatch.setenv("SPINNEY_MEMORY_LIMIT", "1GiB")
    fit(parquet(tmp_path))
    assert read_again == []


# --------------------------------------------------------------------------------------------------- faults


def test_a_file_that_changes_before_a_column_is_read_again_is_refused(tmp_path, read_again, monkeypatch):
    """The charge stays in the books, and there is no release."""
    path, below = parquet(tmp_path), RuledCounts._rows_inside

    def change(self, cells, at_marks):
        parquet(tmp_path, rows(1))
        return below(self, cells, at_marks)

    monkeypatch.setattr(RuledCounts, "_rows_inside", change)
    ledger = sp.Ledger(limit=4, delta="1e-5")
    model = sp.ForestSynthesizer(epsilon=4)
    with pytest.raises(InputError, match="table changed while it was read"):
        model.fit(path, SCHEMA, ledger=ledger)
    assert ledger.events
    assert not hasattr(model, "release_")


def test_a_row_that_moved_is_noticed(tmp_path, read_again, monkeypatch):
    """As many rows as before, of which one lies elsewhere when its column is read again."""
    inside = Marks.codes_inside

    def moved(self, column, n_rows, is_wanted):
        codes = inside(self, column, n_rows, is_wanted)
        codes[0] = codes.max() if codes[0] != codes.max() else codes.min()
        return codes

    monkeypatch.setattr(Marks, "codes_inside", moved)
    with pytest.raises(InputError, match="table changed while it was read"):
        fit(parquet(tmp_path))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
@pytest.mark.parametrize("n_bytes", [0, 200_000])
def test_a_disk_that_fills_up_is_told_and_nothing_is_released(tmp_path, read_again, monkeypatch, n_bytes):
    """While cells of a column are put there, at once or later. The charge stays, and the space is given back."""
    folder, written, write = tmp_path / "spill", [0], spill._write
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))

    def full(file, array):
        written[0] += array.nbytes
        if written[0] > n_bytes:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(file, array)

    monkeypatch.setattr(spill, "_write", full)
    ledger, model = sp.Ledger(limit=4, delta="1e-5"), sp.ForestSynthesizer(epsilon=4)
    with pytest.raises(FileError, match=r"temporary folder .*No space left on device; set SPINNEY_MEMORY_LIMIT"):
        model.fit(parquet(tmp_path), SCHEMA, ledger=ledger)
    assert ledger.events
    assert ledger.spent > 0
    assert not hasattr(model, "release_")
    assert open_files(folder) == []
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interruption_leaves_nothing_behind(tmp_path, read_again, monkeypatch, error):
    """While a column is read again, with cells of its rows on disk."""
    folder = tmp_path / "spill"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    path, seen = parquet(tmp_path), []
    spill = CellCounter._spill

    def interrupted(self):
        spill(self)
        seen.append(open_files(folder))
        raise error

    monkeypatch.setattr(CellCounter, "_spill", interrupted)
    with pytest.raises(
        error if error is KeyboardInterrupt else InputError, match="epsilon=4 with delta=1e-06 was spent"
    ):
        fit(path)
    assert any(seen)
    assert open_files(folder) == []
    assert list(folder.iterdir()) == []
