"""Spark: the same releases as in memory, and what happens when something breaks."""

from __future__ import annotations

import os
import signal
from fractions import Fraction
from pathlib import Path

import narwhals as nw
import pandas as pd
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import InputError, SchemaError
from spinney.grid.lattice import tree_lattice
from spinney.tables.engines.memory import count_cells, true_extremes
from spinney.tables.engines.spark import SparkSource
from spinney.tables.frames import open_table
from support.cell_counts import same_cells
from support.error_chains import chain
from support.hard_values import collect, hard_table, spark_frame

SQUARE = sp.Schema({"x": sp.Real(0, 1, bits=5), "y": sp.Integer(0, 9)})


@pytest.fixture
def square_frame(spark):
    """200 rows in four partitions, made by Spark itself."""
    return spark.range(200, numPartitions=4).selectExpr("id / 200.0D AS x", "id % 10 AS y")


def in_memory(frame) -> pa.Table:
    return collect(nw.from_native(frame))


def same_counts(source, frame, schema):
    lattice = tree_lattice(schema)
    return same_cells(source.count_cells(lattice), count_cells(open_table(frame, schema), lattice))


MODELS = {
    "tree": lambda: sp.KDTreeSynthesizer(epsilon=1),
    "grid": lambda: sp.GridSynthesizer(epsilon=1, bins=4),
    "forest": lambda: sp.ForestSynthesizer(epsilon=2, target="smoker"),
}


@pytest.fixture(scope="module")
def people_frame(spark, people, tmp_path_factory):
    table = pa.Table.from_pandas(people[0], preserve_index=False).select(list(people[1]))
    return spark_frame(spark, table, tmp_path_factory.mktemp("people"))


@pytest.mark.parametrize("kind", MODELS)
def test_the_release_is_that_of_the_table_in_memory(kind, people, people_frame):
    """Under the same noise, every byte of the release is the same: columns of every type, nulls included."""
    names = list(people[1]) if kind == "forest" else ["height", "weight", "born", "colour"]
    schema = sp.Schema({name: people[1][name] for name in names})
    local, remote = (
        MODELS[kind]().fit(frame, schema, entropy=sp.UnsafeSeededEntropy(5)).release_
        for frame in (people[0][names], people_frame.select(*names))
    )
    assert remote.card.to_dict() == local.card.to_dict()
    assert remote.to_members() == local.to_members()
    pd.testing.assert_frame_equal(remote.sample(20, seed=1), local.sample(20, seed=1))


def test_private_and_data_derived_bounds(people, people_frame):
    """Ladders are counted, and extremes found, as in memory."""
    schema = sp.Schema({"height": sp.Real(bounds="private"), "age": sp.Integer(bounds="from-data-not-private")})
    local, remote = (
        sp.KDTreeSynthesizer(epsilon=4).fit(frame, schema, entropy=sp.UnsafeSeededEntropy(5)).release_
        for frame in (people[0][list(schema)], people_frame.select(*schema))
    )
    assert remote.card.to_dict() == local.card.to_dict()
    assert remote.to_members() == local.to_members()


def test_extremes_of_every_kind(spark, tmp_path):
    """Smallest and largest physical values, as numbers of the same type."""
    table, schema = hard_table()
    source = SparkSource(spark_frame(spark, table, tmp_path), schema)
    for name in ("tenths", "single", "Whole", "day null", "zoned"):
        got, expected = source.true_extremes(name), true_extremes(open_table(table, schema), name)
        assert got == expected
        assert list(map(type, got)) == list(map(type, expected))


# -------------------------------------------------------------------------------------------------- opening


def test_types_are_checked_before_any_job(spark, square_frame):
    """A table that does not fit the schema is refused without a job, with a remedy."""
    spark.sparkContext.setJobGroup("opening", "opening")
    wrong = {
        "x: describe": (square_frame.selectExpr("x", "y", "1 AS z"), "'z' is in the table but not in the schema"),
        "y gone": (square_frame.select("x"), "'y' is in the schema but not in the table"),
        "a text": (square_frame.selectExpr("CAST(x AS string) AS x", "y"), "'x' has type string.*does not fit real"),
        "a struct": (
            square_frame.selectExpr("named_struct('SECRET', x) AS x", "y"),
            "'x' has type Struct in the table",
        ),
        "a map": (square_frame.selectExpr("map('a', x) AS x", "y"), "'x' has type map"),
    }
    for frame, words in wrong.values():
        with pytest.raises(SchemaError, match=words):
            sp.KDTreeSynthesizer().fit(frame, SQUARE)
    with pytest.raises(InputError, match="two columns of the same name"):
        SparkSource(square_frame.selectExpr("x", "y", "y"), SQUARE)
    SparkSource(square_frame, SQUARE)
    assert spark.sparkContext.statusTracker().getJobIdsForGroup("opening") == []


REMEDIES = {
    "to_date": sp.Date("2020-01-01", "2021-01-01"),
    "to_timestamp_ntz": sp.Datetime("2020-01-01", "2021-01-01"),
    "AS boolean": sp.Boolean(),
    "AS bigint": sp.Integer(0, 9),
    "AS double": sp.Real(0, 1),
}


@pytest.mark.parametrize(("remedy", "column"), REMEDIES.items(), ids=REMEDIES)
def test_strings_are_converted_by_the_user(spark, remedy, column):
    """Spark reads strings in a way of its own, so that they are refused; the message names what converts them."""
    frame = spark.sql("SELECT '2020-07-03' AS v")
    with pytest.raises(SchemaError, match=f"column 'v' has type string .* not parsed: convert .*{remedy}") as caught:
        SparkSource(frame, sp.Schema({"v": column}))
    assert chain(caught.value) == [caught.value]
    assert "2020-07-03" not in str(caught.value)


def test_times_of_day_are_strings(spark):
    """Spark has no times of day: their strings are read as in memory, blanks and missing values included."""
    spelt = ["08:00", " 08:00:01\t", "\u00a023:59:59.5", "00:00:00.000001", "NA", "", None]
    schema = sp.Schema({"t": sp.Time(nullable=True, bits=32)})
    frame = spark.createDataFrame([(text,) for text in spelt], "t string")
    assert same_counts(SparkSource(frame, schema), pa.table({"t": spelt}), schema)
    for wrong in ("24:00", "8:00", "08:00Z", "08:00.5", "08:00:00.1234567", "x", "08:00:61"):
        source = SparkSource(spark.createDataFrame([("09:00",), (wrong,)], "t string"), schema)
        with pytest.raises(InputError, match="column 't': some value cannot be read as time") as caught:
            source.check_values()
        assert wrong not in str(caught.value)
        with pytest.raises(InputError, match="some string cannot be read as time"):
            open_table(pa.table({"t": [wrong]}), schema).physical("t")
    with pytest.raises(SchemaError, match="date_format"):
        SparkSource(spark.sql("SELECT timestamp_ntz'2020-01-01 08:00:00' AS t"), sp.Schema({"t": sp.Time()}))


def test_collations_and_columns_of_nulls(spark):
    """Texts that a collation takes for equal stay apart; a column without a type is all null."""
    if int(spark.version.partition(".")[0]) < 4:
        pytest.skip(f"PySpark {spark.version} knows no collations")
    frame = spark.sql(
        "SELECT c COLLATE UTF8_LCASE AS c, NULL AS n, NULL AS d FROM VALUES ('red'), ('RED'), ('RED') t(c)"
    )
    schema = sp.Schema(
        {
            "c": sp.Category(["red", "RED"]),
            "n": sp.Integer(0, 9, nullable=True),
            "d": sp.Date("2000-01-01", "2001-01-01", nullable=True),
        }
    )
    plain = pa.table({"c": ["red", "RED", "RED"], "n": pa.nulls(3), "d": pa.nulls(3, pa.date32())})
    assert same_counts(SparkSource(frame, schema), plain, schema)


def test_identifiers_are_never_read(spark):
    """An identifier may be of any type, and even fail when it is computed."""
    frame = spark.range(9).selectExpr("raise_error('read') AS who", "id / 9.0D AS x")
    schema = sp.Schema({"who": sp.Identifier(), "x": sp.Real(0, 1)})
    source = SparkSource(frame, schema)
    source.check_values()
    assert source.n_rows == 9
    assert source.count_cells(tree_lattice(sp.Schema({"x": schema["x"]}))).true_counts.sum() == 9


# --------------------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize("fault", ["a worker is killed", "a task fails"])
def test_a_lost_worker_changes_nothing(square_frame, tmp_path, fault):
    """Spark runs the task again; counts are those of an undisturbed run, since no noise is drawn over there."""
    marker = str(tmp_path / "fault")

    def disturbed(batches):
        for batch in batches:
            if not os.path.exists(marker):
                Path(marker).touch()
                if fault == "a worker is killed":
                    os.kill(os.getpid(), signal.SIGKILL)
                raise RuntimeError("once")
            yield batch

    frame = square_frame.mapInArrow(disturbed, square_frame.schema)
    source = SparkSource(frame, SQUARE)
    counts = source.count_cells(tree_lattice(SQUARE))
    assert Path(marker).exists()
    assert counts.true_counts.sum() == 200
    assert same_counts(source, in_memory(square_frame), SQUARE)


def test_what_fails_for_good_says_no_values(square_frame):
    """An error that Spark cannot retry away becomes ours, without its message and without a cause."""

    def failing(batches):
        raise ValueError("the secret is 4711")
        yield from batches

    ledger = sp.Ledger(limit=1)
    model = sp.KDTreeSynthesizer(epsilon=1)
    with pytest.raises(InputError, match="Spark failed while") as caught:
        model.fit(square_frame.mapInArrow(failing, square_frame.schema), SQUARE, ledger=ledger)
    assert "4711" not in str(caught.value)
    assert chain(caught.value) == [caught.value]
    assert not ledger.events
    assert not hasattr(model, "release_")


def test_a_file_that_is_gone(spark, square_frame, tmp_path):
    """A table whose file vanished is refused before anything is charged."""
    frame = spark_frame(spark, in_memory(square_frame), tmp_path)
    next(tmp_path.glob("*.parquet")).unlink()
    ledger = sp.Ledger(limit=1)
    model = sp.KDTreeSynthesizer(epsilon=1)
    condition = "_LEGACY_ERROR_TEMP_2055" if spark.version.startswith("3.") else "NOT_EXIST"
    with pytest.raises(InputError, match=rf"Spark failed while counting.*{condition}"):
        model.fit(frame, SQUARE, ledger=ledger)
    assert not ledger.events
    assert not hasattr(model, "release_")


def test_a_file_that_goes_missing_in_the_middle(spark, square_frame, tmp_path, monkeypatch):
    """Once the forest has paid, the charge stays in the books, and there is no release."""
    frame = spark_frame(spark, in_memory(square_frame), tmp_path)
    check = SparkSource.check_values

    def check_and_lose(source):
        check(source)
        next(tmp_path.glob("*.parquet")).unlink()

    monkeypatch.setattr(SparkSource, "check_values", check_and_lose)
    ledger = sp.Ledger(limit=1, delta="1e-5")
    model = sp.ForestSynthesizer(epsilon=1)
    with pytest.raises(InputError, match="Spark failed while counting cells"):
        model.fit(frame, SQUARE, ledger=ledger)
    assert ledger.events
    assert not hasattr(model, "release_")


def test_a_table_that_changes_is_refused(square_frame):
    """Counts of another number of rows than before are of another table."""
    source = SparkSource(square_frame, SQUARE)
    source._n_rows = 201  # as if a row had gone since they were counted
    with pytest.raises(InputError, match="table changed while it was read"):
        source.count_cells(tree_lattice(SQUARE))


def test_nothing_is_shown(square_frame):
    """A source and its queries say nothing of their rows."""
    source = SparkSource(square_frame, SQUARE)
    assert repr(source) == "SparkSource(sensitive)"
    assert repr(source._rows) == "Rows(sensitive)"


@pytest.mark.parametrize(
    "question", ["count where y in 2..5 and x > 0.25", "mean(x) where y < 4", "proportion where y = 3"]
)
def test_an_answer_is_bought_from_a_spark_frame_as_from_memory(square_frame, question):
    """The same noise on the same sums, one charge, and a value that cannot be read costs nothing."""
    rows = in_memory(square_frame)
    release = sp.KDTreeSynthesizer(1).fit(rows, SQUARE, entropy=sp.UnsafeSeededEntropy(1)).release_
    answers = []
    for table in (rows, square_frame):
        ledger = sp.Ledger(1)
        entropy = sp.UnsafeSeededEntropy(4)
        answers.append(sp.buy_answer(release, question, table, epsilon="0.5", ledger=ledger, entropy=entropy))
        assert ledger.remaining == Fraction(1, 2)
    assert answers[0] == answers[1]
    ledger = sp.Ledger(1)
    broken = square_frame.selectExpr("CAST(NULL AS DOUBLE) AS x", "CAST(NULL AS BIGINT) AS y")
    with pytest.raises(InputError):
        sp.buy_answer(release, question, broken, epsilon="0.5", ledger=ledger)
    assert not ledger.events
