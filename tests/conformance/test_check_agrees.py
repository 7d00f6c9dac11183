"""`check` finds the same in every kind of table, and counts what plain Python counts."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import narwhals as nw
import polars as pl
import pytest

import spinney as sp
from spinney.errors import SpinneyError
from spinney.tables.engines.memory import MemorySource
from spinney.tables.frames import open_table
from support.hard_values import collect, duckdb_rows, polars_rows, spark_frame

NARROW = {
    "real": sp.Real(-1, 1),
    "integer": sp.Integer(0, 20),
    "text": sp.Category(["red", "green"]),
    "number": sp.Category([7, 1]),
    "integer_null": sp.Integer(0, 1000),
    "day_null": sp.Date("1970-01-01", "1979-12-31"),
}
RULES = [
    sp.AtMost("integer", "integer_null"),
    sp.EmptyWhen("day_null", "truth_null", [True]),
    sp.EmptyWhen("real_null", "truth_null"),
]


def facts(found) -> tuple:
    """What was found, without the words."""
    return (
        found.n_rows,
        sorted((fault.column, fault.n_rows) for fault in found.faults),
        sorted((warning.column, warning.n_rows) for warning in found.warnings),
    )


def is_off_step(value, column) -> bool:
    """Whether a value is no multiple, in exact numbers."""
    if getattr(column, "multiple_of", None) is None:
        return False
    number = Fraction(str(column.physical(value))) - (column._phase if column.is_whole else 0)
    return number % (column.step if column.is_whole else Fraction(str(column.multiple_of))) != 0


def expected(rows: dict, schema: sp.Schema) -> tuple:
    """The same facts, counted value by value."""
    n = len(rows["real"])
    is_listed = {name: set(schema[name].values) for name in ("text", "number")}
    faults = [(name, sum(value not in listed for value in rows[name])) for name, listed in is_listed.items()]
    faults += [("integer_null", sum(value is None for value in rows["integer_null"]))]
    warnings = []
    for name, column in schema.items():
        if hasattr(column, "low"):
            present = [value for value in rows[name] if value is not None]
            for outside in (sum(v < column.low for v in present), sum(v > column.high for v in present)):
                warnings += [(name, outside)] if outside else []
            off = sum(is_off_step(value, column) for value in present)
            warnings += [(name, off)] if off else []
    at_most = sum(b is not None and a > b for a, b in zip(rows["integer"], rows["integer_null"], strict=True))
    said = sum((d is None) != (t is True) for d, t in zip(rows["day_null"], rows["truth_null"], strict=True))
    alike = sum((r is None) != (t is None) for r, t in zip(rows["real_null"], rows["truth_null"], strict=True))
    warnings += [("integer", at_most)] if at_most else []
    warnings += [("day_null", said), ("real_null", alike)]
    return n, sorted(faults), sorted(warnings)


@pytest.fixture
def narrow(schema) -> sp.Schema:
    columns = dict(schema) | NARROW
    return sp.Schema(columns | {"day_null": sp.Date("1970-01-01", "1979-12-31", nullable=True)}, rules=RULES)


def test_every_kind_of_table_has_the_same_findings(kind, narrow, rows):
    """Unlisted values, nulls where none may be, values outside the bounds, broken rules: all of them, counted."""
    found = sp.check(kind.make(), narrow)
    n_rows, faults, warnings = expected(rows, narrow)
    assert found.n_rows == n_rows
    counted = [(fault.column, fault.n_rows) for fault in found.faults]
    if kind.name == "pandas objects":  # unlisted values of a column of objects are noticed, not counted
        counted = [(name, dict(faults)[name] if n is None else n) for name, n in counted]
    assert sorted(counted) == faults
    assert sorted((warning.column, warning.n_rows) for warning in found.warnings) == warnings
    assert not found.is_clean


def test_every_kind_of_table_is_clean_under_its_own_schema(kind, schema):
    found = sp.check(kind.make(), schema)
    assert found.is_clean, str(found)


def test_spark_has_the_same_findings(spark, arrow_table, narrow, tmp_path):
    """Counted on the executors, in one job."""
    frame = spark_frame(spark, arrow_table, tmp_path)
    assert facts(sp.check(frame, narrow)) == facts(sp.check(collect(nw.from_native(frame)), narrow))


def test_spark_names_all_columns_that_do_not_fit(spark, arrow_table, schema, tmp_path):
    frame = spark_frame(spark, arrow_table, tmp_path)
    swapped = dict(schema) | {"text": sp.Integer(0, 1), "day": sp.Boolean(), "extra": sp.Real(0, 1)}
    columns = {fault.column for fault in sp.check(frame, sp.Schema(swapped)).faults}
    assert columns == {"text", "day", "extra"}


@pytest.mark.parametrize("open_rows", [polars_rows, duckdb_rows])
def test_queries_tally_as_tables_in_memory_do(open_rows, arrow_table, narrow):
    """The queries that Spark runs, run by engines that need no Java."""
    names = list(narrow)
    there = open_rows(arrow_table, narrow)
    answered = there.read_tallies(names, RULES, collect(there.tallies(names, RULES)))
    here = MemorySource(open_table(arrow_table, narrow)).tally(names, RULES)
    for name in names:
        one, other = answered.columns[name], here.columns[name]
        for fact in ("n_rows", "n_missing", "n_below", "n_above", "n_wrong", "complaint", "ends"):
            assert getattr(one, fact) == getattr(other, fact), (name, fact)
    assert answered.n_broken == here.n_broken


@pytest.mark.parametrize("engine", ["polars", "duckdb", "memory"])
def test_every_engine_of_files_has_the_same_findings(engine, arrow_table, narrow, rows, tmp_path):
    path = tmp_path / "t.parquet"
    pl.from_arrow(arrow_table).write_parquet(path)
    assert facts(sp.check(path, narrow, engine=engine)) == expected(rows, narrow)


def test_a_query_that_fails_is_told_without_its_message():
    """An engine's own message may quote the table."""
    connection = duckdb.connect()
    relation = connection.sql("SELECT error('SECRET') AS a")
    try:
        said = str(sp.check(relation, sp.Schema({"a": sp.Integer(0, 1)})))
    except SpinneyError as err:
        said = str(err)
    assert "SECRET" not in said
