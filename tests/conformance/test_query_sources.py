"""A pushed-down engine is one small file: two of them answer every question of a source as the table in memory does."""

from __future__ import annotations

import inspect

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.counting.spill import SpilledRuns
from spinney.errors import InputError
from spinney.grid.lattice import Lattice, tree_lattice
from spinney.schema.rules import AtMost
from spinney.tables.engines import query_source
from spinney.tables.engines.memory import MemorySource, count_cells
from spinney.tables.frames import open_table
from support.cell_counts import same_cells
from support.hard_values import hard_cuts, hard_lattices, hard_table
from support.query_engines import DuckDBQueries, PolarsQueries

TABLE, SCHEMA = hard_table()
LATTICE = hard_lattices(SCHEMA)["tree"]
LIMIT = 1 << 20  # bytes: the cells of N rows take more
N = 20_000


@pytest.fixture(params=[PolarsQueries, DuckDBQueries])
def engine(request) -> type[PolarsQueries | DuckDBQueries]:
    return request.param


@pytest.fixture(scope="module")
def scattered() -> tuple[pa.Table, sp.Schema]:
    """Rows that nearly all lie in cells of their own."""
    rng = np.random.default_rng(3)
    table = pa.table({"x": rng.random(N), "y": rng.random(N), "k": rng.integers(0, 10, N)})
    return table, sp.Schema({"x": sp.Real(0, 1, bits=30), "y": sp.Real(0, 1, bits=32), "k": sp.Integer(0, 9)})


def test_an_engine_is_short(engine):
    """What an engine has to say of itself fits on a screen."""
    assert len(inspect.getsource(engine).splitlines()) < 60


def test_every_question_is_answered_as_in_memory(engine):
    """Rows, cells, columns, states, bounds, and what is the matter with values."""
    source, held = engine(TABLE, SCHEMA), MemorySource(open_table(TABLE, SCHEMA))
    assert source.n_rows == held.n_rows
    source.check_values()
    some = Lattice(LATTICE.axes[1::2])
    assert same_cells(source.count_cells(some), held.count_cells(some))
    lattices = [tree_lattice(sp.Schema({name: SCHEMA[name]})) for name in SCHEMA if name != "row"]
    for lattice, found in zip(lattices, source.count_columns(lattices), strict=True):
        assert same_cells(found, held.count_cells(lattice)), lattice.axes[0].name
    cuts = hard_cuts(LATTICE)
    found, expected = source.state_rows(cuts).true_states, held.state_rows(cuts).true_states
    order, expected_order = np.lexsort(found), np.lexsort(expected)
    assert np.array_equal(found[:, order], expected[:, expected_order])
    for name in list(SCHEMA)[:5]:
        assert source.true_extremes(name) == held.true_extremes(name)
    names = [name for name in SCHEMA if name != "row"]
    assert source.tally(names, ()).columns == held.tally(names, ()).columns


def test_the_release_is_that_of_the_table_in_memory(engine, scattered, monkeypatch):
    """Under the same noise, every byte of the release is the same."""
    table, schema = scattered

    def members(source) -> dict[str, bytes]:
        monkeypatch.setattr("spinney.synthesizers.base.open_source", lambda *_, **__: source)
        return sp.KDTreeSynthesizer(8).fit(None, schema, entropy=sp.UnsafeSeededEntropy(5)).release_.to_members()

    assert members(engine(table, schema)) == members(MemorySource(open_table(table, schema)))


def test_columns_that_are_passed_over_do_not_shift_the_others(engine):
    """Ignored columns, and such as rules compute, stand anywhere in the table."""
    table = pa.table({"skip": ["a"] * 4, "x": [1, 2, 3, 4], "no": ["b"] * 4, "y": [7, 7, 7, None]})
    schema = sp.Schema({"skip": sp.Ignore(), "x": sp.Integer(0, 9), "no": sp.Ignore(), "y": sp.Integer(0, 9)})
    source = engine(table, schema).with_schema(schema._without_ignored())
    assert [source.tally([*"xy"], ()).columns[name].ends for name in "xy"] == [(1, 4), (7, 7)]
    with pytest.raises(InputError, match="'y' holds a missing"):
        source.count_cells(tree_lattice(schema._without_ignored()))


def test_faults_are_named(engine, scattered):
    """Values that cannot be read, rules that are broken, and tables that change."""
    table, schema = scattered
    narrow = sp.Schema({**schema, "k": sp.Category(list(range(9)))})
    for ask in (
        lambda source: source.check_values(),
        lambda source: source.count_cells(tree_lattice(narrow)),
        lambda source: source.limited(memory_limit=LIMIT).count_cells(tree_lattice(narrow)),
    ):
        with pytest.raises(InputError, match=r"'k'.*not in the schema's list"):
            ask(engine(table, narrow))
    rule = AtMost("x", "y")
    broken = engine(table, schema).tally(["x", "y"], [rule]).n_broken
    assert broken == MemorySource(open_table(table, schema)).tally(["x", "y"], [rule]).n_broken
    source = engine(table, schema)
    source._n_rows = N + 1
    for limit in (None, LIMIT):
        with pytest.raises(InputError, match="table changed while it was read"):
            source.limited(memory_limit=limit).count_cells(tree_lattice(schema))


def test_cells_that_are_kept_come_in_parts(scattered, monkeypatch, tmp_path):
    """An engine that keeps cells hands them over in parts, which wait in the folder of one's choice."""
    table, schema = scattered
    lengths, folders = [], []

    class Recorded(SpilledRuns):
        def add(self, codes, counts):
            lengths.append(len(codes))
            folders.append(self.folder)
            super().add(codes, counts)

    monkeypatch.setattr(query_source, "SpilledRuns", Recorded)
    source = DuckDBQueries(table, schema, memory_limit=LIMIT, spill_folder=str(tmp_path))
    held, lattice = open_table(table, schema), tree_lattice(schema)
    assert same_cells(source.count_cells(lattice), count_cells(held, lattice))
    assert len(lengths) > 2
    assert set(folders) == {str(tmp_path)}
    lattices = [tree_lattice(sp.Schema({name: column})) for name, column in schema.items()]
    for single, found in zip(lattices, source.count_columns(lattices), strict=True):
        assert same_cells(found, count_cells(held, single)), single.axes[0].name
    assert not duckdb.sql("SELECT 1 FROM duckdb_tables() WHERE table_name = 'kept'").fetchall()
    # An engine that keeps none brings them over at once.
    lengths.clear()
    assert same_cells(PolarsQueries(table, schema, memory_limit=LIMIT).count_cells(lattice), count_cells(held, lattice))
    assert not lengths
