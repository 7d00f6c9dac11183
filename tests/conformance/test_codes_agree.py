"""Codes in every kind of table and every engine: what counts as `other`, and which values there are."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.counting.states import Cut
from spinney.errors import InputError
from spinney.grid.lattice import tree_lattice
from spinney.tables.engines.memory import MemorySource
from spinney.tables.engines.spark import SparkSource
from spinney.tables.frames import open_table
from spinney.tables.open import open_source
from support.cell_counts import same_cells
from support.hard_values import spark_frame
from support.query_engines import DuckDBQueries, PolarsQueries

OPEN = {
    "text": sp.Category(["red"], other="rest"),
    "text_null": sp.Category(["c d", ""], other="rest", nullable=True),
    "number": sp.Category([5], other=0),
}
PRIVATE = {
    "text": sp.Category("private"),
    "text_null": sp.Category("private", nullable=True),
    "number": sp.Category("private", other=0),
}


def test_every_kind_of_table_counts_unlisted_values_as_other(kind, schema, rows):
    """Strings, dictionaries, objects, numbers of all widths, CSV: the same rows as plain Python finds."""
    table = open_source(kind.make(), sp.Schema(dict(schema) | OPEN))
    table.check_values()
    for name, column in OPEN.items():
        expected = Counter(
            None if value is None else column.listed.index(value if value in column.listed else column.other)
            for value in rows[name]
        )
        codes, counts = table.count_cells(tree_lattice(sp.Schema({name: column}))).distinct()
        assert sorted(counts.tolist()) == sorted(expected.values()), name
        assert len(codes) == len(expected)


def test_every_kind_of_table_has_the_same_values(kind, schema, rows):
    """Whatever the list says; nulls are no value, and an empty string is one unless the file spells null so."""
    table = open_source(kind.make(), sp.Schema(dict(schema) | PRIVATE))
    table.check_values()
    for name in ("text", "number"):
        counts = table.count_values(name)
        expected = Counter(value for value in rows[name] if value is not None)
        assert dict(zip(counts.true_values.to_pylist(), counts.true_counts.tolist(), strict=True)) == expected
        assert counts.true_values.to_pylist() == sorted(expected)
    found = table.count_values("text_null").true_values.to_pylist()
    assert set(found) | {""} == {"ä", "", "c d"}


# ------------------------------------------------------------------------------------------------------- query engines

N = 4_000


@pytest.fixture(scope="module")
def coded() -> pa.Table:
    """Fifty codes and a tail, as strings and as numbers, with nulls."""
    rng = np.random.default_rng(2)
    places = np.minimum(rng.zipf(1.4, N), 400)
    text = [None if hole else f"ä{place:03d}" for place, hole in zip(places, rng.random(N) < 0.1, strict=True)]
    return pa.table({"text": pa.array(text), "number": pa.array(places), "y": pa.array(rng.integers(0, 9, N))})


def stated(n_listed: int) -> sp.Schema:
    """Lists that are compared one by one, or too long for that."""
    return sp.Schema(
        {
            "text": sp.Category([f"ä{i:03d}" for i in range(1, n_listed)], other="rest", nullable=True),
            "number": sp.Category(list(range(1, n_listed)), other=-1),
            "y": sp.Integer(0, 9),
        }
    )


@pytest.fixture(params=["polars", "duckdb", "spark"])
def engine(request, tmp_path):
    """A table behind an engine that answers queries."""
    if request.param == "spark":
        session = request.getfixturevalue("spark")
        return lambda table, schema: SparkSource(spark_frame(session, table, tmp_path), schema)
    return {"polars": PolarsQueries, "duckdb": DuckDBQueries}[request.param]


@pytest.mark.parametrize("n_listed", [20, 100])
def test_query_engines_count_other_as_memory_does(engine, coded, n_listed):
    """Cells, columns, states, tallies; short lists are compared with, long ones are joined."""
    schema = stated(n_listed)
    source, held = engine(coded, schema), MemorySource(open_table(coded, schema))
    source.check_values()
    lattice = tree_lattice(schema)
    assert same_cells(source.count_cells(lattice), held.count_cells(lattice))
    cuts = []
    for axis in lattice.axes[:2]:
        first = np.array([0, n_listed // 2, n_listed - 1])
        if axis.nullable:
            first = np.append(first, axis.null_cell)
        cuts.append(Cut(axis, first, np.arange(len(first))))
    found, expected = source.state_rows(cuts).true_states, held.state_rows(cuts).true_states
    assert Counter(map(tuple, found.T.tolist())) == Counter(map(tuple, expected.T.tolist()))
    assert source.tally(list(schema), ()).columns == held.tally(list(schema), ()).columns
    assert held.tally(["number"], ()).columns["number"].n_other > 0


def test_query_engines_find_the_values_of_memory(engine, coded):
    """Values and counts in the same order, so that under the same noise the same list is released."""
    schema = sp.Schema(
        {
            "text": sp.Category("private", nullable=True),
            "number": sp.Category("private", other=-1),
            "y": sp.Integer(0, 9),
        }
    )
    source, held = engine(coded, schema), MemorySource(open_table(coded, schema))
    source.check_values()
    for name in ("text", "number"):
        one, two = source.count_values(name), held.count_values(name)
        assert one.true_values.to_pylist() == two.true_values.to_pylist()
        assert one.true_counts.tolist() == two.true_counts.tolist()


def test_a_private_list_is_the_same_from_every_engine(engine, coded, monkeypatch):
    """Every byte of the release."""
    schema = sp.Schema({"text": sp.Category("private", nullable=True), "y": sp.Integer(0, 9)})
    table = coded.select(["text", "y"])

    def members(source) -> tuple:
        monkeypatch.setattr("spinney.synthesizers.base.open_source", lambda *_, **__: source)
        model = sp.ForestSynthesizer(1, "1e-6").fit(None, schema, entropy=sp.UnsafeSeededEntropy(5))
        return model.schema_, model.release_.to_members()

    found, release = members(engine(table, schema))
    assert len(found["text"].listed) > 3
    assert (found, release) == members(MemorySource(open_table(table, schema)))


def test_values_beyond_memory_are_refused_without_being_brought_over(engine, coded):
    """The engine counts them first."""
    names = pa.array([f"person {i}" for i in range(N)])
    schema = sp.Schema({"text": sp.Category("private")})
    source = engine(pa.table({"text": names}), schema).limited(memory_limit=100_000)
    with pytest.raises(InputError, match="column 'text' has more different values"):
        source.count_values("text")
