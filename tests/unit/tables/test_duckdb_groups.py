"""DuckDB counts by itself where the schema leaves few different rows, and the counts are those of any other engine."""

from __future__ import annotations

import datetime

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import InputError
from spinney.grid.lattice import tree_lattice
from spinney.tables.engines import lazy as engine
from spinney.tables.engines.memory import count_cells
from spinney.tables.frames import open_table
from spinney.tables.open import open_source
from support.cell_counts import same_cells

SCHEMA = sp.Schema(
    {
        "size": sp.Integer(-3, 12, nullable=True),
        "kind": sp.Category(["red", "RED", "größe", "a'b"], nullable=True),
        "code": sp.Category([10, 20, 30]),
        "is_new": sp.Boolean(nullable=True),
        "day": sp.Date("2024-01-01", "2024-01-09"),
    }
)


def table(n_rows: int = 5000) -> pa.Table:
    """Values of every kind, nulls, and sizes and days beyond their bounds."""
    rng = np.random.default_rng(0)
    kinds = np.array(["red", "RED", "größe", "a'b"])
    first = datetime.date(2023, 12, 30)
    return pa.table(
        {
            "size": pa.array(rng.integers(-9, 30, n_rows), mask=rng.random(n_rows) < 0.1),
            "kind": pa.array(kinds[rng.integers(0, 4, n_rows)], mask=rng.random(n_rows) < 0.1),
            "code": rng.choice([10, 20, 30], n_rows).astype(np.int16),
            "is_new": pa.array(rng.random(n_rows) < 0.3, mask=rng.random(n_rows) < 0.1),
            "day": [first + datetime.timedelta(int(days)) for days in rng.integers(0, 14, n_rows)],
        }
    )


@pytest.fixture
def grouped(monkeypatch):
    """Which columns DuckDB was asked to group."""
    asked = []
    groups = engine._groups
    monkeypatch.setattr(
        engine, "_groups", lambda relation, types, names: asked.append(list(names)) or groups(relation, types, names)
    )
    return asked


def relation(rows: pa.Table):
    connection = duckdb.connect()
    connection.register("rows", rows)
    return connection.table("rows")


@pytest.mark.parametrize("names", [list(SCHEMA), ["kind", "size"], ["is_new"], ["day", "code"]])
def test_groups_are_counted_as_rows_are(grouped, names):
    """Cells and counts are those of the table in memory, bit by bit, for every type."""
    rows, schema = table().select(names), sp.Schema({name: SCHEMA[name] for name in names})
    lattice = tree_lattice(schema)
    counts = open_source(relation(rows), schema).count_cells(lattice)
    assert grouped == [[axis.name for axis in lattice.axes]]
    assert same_cells(counts, count_cells(open_table(rows, schema), lattice))
    assert counts.true_total() == 5000


def test_groups_that_come_in_batches_are_added_up(grouped, monkeypatch):
    """A cell whose groups come in different batches has all its rows."""
    monkeypatch.setattr(engine, "batch_rows", lambda *_: 7)
    lattice = tree_lattice(SCHEMA)
    counts = open_source(relation(table()), SCHEMA).count_cells(lattice)
    assert grouped
    assert same_cells(counts, count_cells(open_table(table(), SCHEMA), lattice))


def test_a_release_is_the_same_whoever_counts(grouped):
    """The same noise gives the same release from DuckDB's groups, from its rows and from memory."""
    kept = {name: SCHEMA[name] for name in ("size", "kind", "day")}
    rows, schema = table().select(list(kept)), sp.Schema(kept)

    def leaves(given):
        model = sp.KDTreeSynthesizer("1").fit(given, schema, entropy=sp.UnsafeSeededEntropy(3))
        return model.release_.moments.noisy_steps

    from_groups, from_memory = leaves(relation(rows)), leaves(rows)
    assert grouped
    assert np.array_equal(from_groups, from_memory)


def test_collations_do_not_bring_values_together(grouped):
    """Strings that a relation compares without regard to capitals are two categories."""
    rows = duckdb.sql("SELECT kind COLLATE NOCASE AS kind FROM (VALUES ('red'), ('RED'), ('RED')) AS t(kind)")
    schema = sp.Schema({"kind": SCHEMA["kind"]})
    counts = open_source(rows, schema).count_cells(tree_lattice(schema))
    assert grouped
    assert sorted(counts.distinct()[1].tolist()) == [1, 2]


def test_enumerations_come_over_in_rows(grouped):
    """DuckDB's own lists of strings are handed out as such."""
    rows = duckdb.sql("SELECT CAST(x AS ENUM ('b', 'a')) AS x FROM (VALUES ('a'), ('b'), ('b')) AS t(x)")
    schema = sp.Schema({"x": sp.Category(["a", "b"])})
    counts = open_source(rows, schema).count_cells(tree_lattice(schema))
    assert counts.distinct()[1].tolist() == [1, 2]
    assert not grouped


def test_names_of_columns_are_quoted(grouped):
    """Quotes, spaces and the name of the count are names like any other."""
    rows = pa.table({'a "b" c': [1, 1, 2], "n": [0, 0, 1], "n___": [1, 1, 1]})
    schema = sp.Schema({name: sp.Integer(0, 3) for name in rows.column_names})
    counts = open_source(relation(rows), schema).count_cells(tree_lattice(schema))
    assert grouped
    assert sorted(counts.distinct()[1].tolist()) == [1, 2]


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (sp.Real(0, 1), [0.0, 0.5]),
        (sp.Integer(0, 10**7), [1, 2]),
        (sp.Category(["a", "b"], other="b"), ["a", "?"]),
        (sp.Integer(0, 9), pa.array([1, 2], pa.float64())),
    ],
    ids=["real", "many", "other", "floats"],
)
def test_what_may_have_many_values_comes_over_in_rows(grouped, column, values):
    """Floats, long ranges, and strings of which any may occur."""
    rows, schema = pa.table({"x": values}), sp.Schema({"x": column})
    lattice = tree_lattice(schema)
    assert same_cells(
        open_source(relation(rows), schema).count_cells(lattice), count_cells(open_table(rows, schema), lattice)
    )
    assert not grouped


@pytest.mark.parametrize(
    ("column", "values", "told"),
    [
        (sp.Integer(0, 9), pa.array([1, None], pa.int64()), "column 'x' holds a missing"),
        (sp.Category(["a", "b"]), ["a", "SECRET"], "column 'x'"),
        (sp.Integer(0, 9), ["1", "SECRET"], "column 'x'"),
    ],
)
def test_faulty_values_are_told_as_elsewhere(grouped, column, values, told):
    """The error is that of the table in memory, and quotes nothing."""
    rows, schema = pa.table({"x": values}), sp.Schema({"x": column})
    lattice = tree_lattice(schema)
    with pytest.raises(InputError, match=told) as caught:
        open_source(relation(rows), schema).count_cells(lattice)
    with pytest.raises(InputError) as expected:
        count_cells(open_table(rows, schema), lattice)
    assert grouped
    assert str(caught.value) == str(expected.value)
    assert "SECRET" not in str(caught.value)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_a_table_that_changes_is_refused(grouped):
    """Rows that come between the count of rows and that of groups."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE rows AS SELECT range % 4 AS x FROM range(100)")
    schema = sp.Schema({"x": sp.Integer(0, 3)})
    source = open_source(connection.table("rows"), schema)
    assert source.n_rows == 100
    connection.execute("INSERT INTO rows VALUES (1)")
    with pytest.raises(InputError, match="changed"):
        source.count_cells(tree_lattice(schema))
    assert grouped
