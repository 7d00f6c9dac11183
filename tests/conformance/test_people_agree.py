"""Every engine gathers the same persons with the same rows, whatever the table and its keys are held in."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import spinney as sp
from spinney.columns import Identifier
from spinney.errors import SpinneyError
from spinney.schema.linked import PeopleShape
from spinney.tables.engines import spark as spark_engine
from spinney.tables.engines.memory import open_memory
from spinney.tables.persons import gather
from support.hard_values import spark_frame

KEYS = ("text", "integer", "number")  # strings, whole numbers, and whole numbers of a category


def shape_of(schema, key):
    columns = dict(schema) | {key: Identifier()}
    return PeopleShape.of(sp.Schema(columns, person=key, most_rows=1000, order="moment"))


def physical_rows(table, schema):
    """Rows as tuples of physical numbers, None for null; zoned moments in minutes, as some kinds round them."""
    read = open_memory(table, schema).table
    columns = []
    for name in schema:
        physical = read.physical(name)
        is_null = ~np.isfinite(physical.values) if physical.is_null is None else physical.is_null
        values = (physical.values // 60_000_000 if name == "zoned" else physical.values).tolist()
        columns.append([None if null else value for value, null in zip(values, is_null, strict=True)])
    return list(zip(*columns, strict=True))


def expected_persons(arrow_table, schema, key):
    """What plain Python makes of the table: the rows of each person, by the moment."""
    left = sp.Schema({name: column for name, column in schema.items() if name != key})
    rows = physical_rows(arrow_table.select(list(left)), left)
    found = defaultdict(list)
    for who, row in zip(arrow_table[key].to_pylist(), rows, strict=True):
        found[who].append(row)
    place = list(left).index("moment")
    return sorted((sorted(rows, key=lambda row: row[place]) for rows in found.values()), key=repr)


def gathered_persons(frame, shape, **options):
    gathered = gather(frame, shape, rng=np.random.default_rng(3), **options)
    (rows,) = gathered.rows
    modelled = shape.rows[0].modelled
    flat = physical_rows(rows.table, modelled)
    assert len(rows.starts) == gathered.n_persons + 1
    owner = np.searchsorted(rows.starts, rows.one, side="right") - 1
    assert owner.tolist() == np.flatnonzero(rows.counts).tolist()
    return sorted((flat[start:stop] for start, stop in zip(rows.starts, rows.starts[1:], strict=False)), key=repr)


@pytest.mark.parametrize("key", KEYS)
def test_all_kinds_of_tables_give_the_same_persons(kind, schema, arrow_table, key):
    """Strings, numbers, categories and dictionaries of keys part the rows alike, to the last bit of each value."""
    assert gathered_persons(kind.make(), shape_of(schema, key)) == expected_persons(arrow_table, schema, key)


@pytest.mark.parametrize("engine", ["polars", "duckdb", "memory"])
def test_engines_that_read_files_give_the_same_persons(engine, schema, arrow_table, tmp_path):
    """Whoever reads the Parquet files."""

    pq.write_table(arrow_table, tmp_path / "rows.parquet", row_group_size=20)
    found = gathered_persons(tmp_path / "rows.parquet", shape_of(schema, "text"), engine=engine)
    assert found == expected_persons(arrow_table, schema, "text")


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("n_bytes", [1 << 29, 4000], ids=["one answer", "parts"])
def test_spark_gives_the_same_persons(spark, schema, arrow_table, key, n_bytes, tmp_path, monkeypatch):
    """Rows come over as numbers, in one answer or in several; all rows of a person in one of them."""
    monkeypatch.setattr(spark_engine, "LARGEST_PART", n_bytes)
    frame = spark_frame(spark, arrow_table, tmp_path)
    assert gathered_persons(frame, shape_of(schema, key)) == expected_persons(arrow_table, schema, key)


SMALL = sp.Schema({"who": sp.Identifier(), "day": sp.Integer(0, 9)}, person="who", most_rows=9, order="day")


@pytest.mark.parametrize("kind", ["string", "smallint", "bigint", "decimal(20,0)", "binary"])
def test_spark_compares_keys_of_every_kind(spark, kind):
    """Strings, whole numbers of any width and bytes: what is equal is one person."""
    rows = spark.createDataFrame([("17", 0), ("17", 1), ("7", 2)], "who string, day int")
    rows = rows.selectExpr(f"CAST(who AS {kind}) AS who", "day")
    assert gathered_persons(rows, PeopleShape.of(SMALL)) == [[(0,), (1,)], [(2,)]]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("CAST(NULL AS STRING)", "column 'who' holds missing keys"),
        ("''", "column 'who' holds missing keys"),
        ("CAST(0.5 AS DOUBLE)", "column 'who': keys are strings, whole numbers or bytes"),
        ("array(1)", "column 'who': keys are strings, whole numbers or bytes|column 'who' has type array"),
        ("CAST(0.5 AS DECIMAL(5,1))", "column 'who': some key cannot be read"),
    ],
)
def test_spark_refuses_what_is_no_key(spark, query, said):
    """The error names the column and no value."""
    rows = spark.range(3).selectExpr(f"{query} AS who", "CAST(id AS INT) AS day")
    with pytest.raises(SpinneyError, match=said):
        gather(rows, PeopleShape.of(SMALL), rng=np.random.default_rng(3))


def test_persons_may_be_in_spark_and_their_rows_in_files(spark, tmp_path):
    """Keys of two engines are compared like those of one."""
    rows = pa.table({"who": pa.array([5, 7, 5], pa.int32()), "day": [1, 2, 3]})
    pq.write_table(rows, tmp_path / "rows.parquet")
    persons = spark.createDataFrame([(5, True), (7, False), (8, None)], "id bigint, member boolean")
    schemas = {
        "persons": sp.Schema({"id": sp.Identifier(), "member": sp.Boolean(nullable=True)}),
        "rows": sp.Schema(dict(SMALL)),
    }
    tables = sp.Tables(schemas, links=[sp.Link("rows.who", "persons.id", most=9, order="day")])
    frames = {"persons": persons, "rows": tmp_path / "rows.parquet"}
    gathered = gather(frames, PeopleShape.of(tables), rng=np.random.default_rng(3))
    days = gathered.rows[0].table["day"].to_pylist()
    found = {
        member: days[start:stop]
        for member, start, stop in zip(
            gathered.persons["member"].to_pylist(), gathered.rows[0].starts, gathered.rows[0].starts[1:], strict=False
        )
    }
    assert found == {True: [1, 3], False: [2], None: []}
