"""Tables in files and in other engines: what is recognised and read, and that the release does not depend on it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import spinney as sp
from spinney.errors import FileError, InputError, MissingExtraError, ParameterError, SchemaError
from spinney.grid.lattice import tree_lattice
from spinney.tables.engines import lazy, stream
from spinney.tables.open import open_source
from spinney_paper.baselines import BalogAlgorithm1
from support.command_line import SCHEMA as PEOPLE_SCHEMA
from support.command_line import people, spinney

SCHEMA = sp.Schema({"x": sp.Real(0, 1), "n": sp.Integer(0, 9, nullable=True), "k": sp.Category(["a", "b"])})


def make_table(n_rows: int = 400, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    holes = rng.random(n_rows) < 0.2
    return pa.table(
        {
            "x": rng.beta(2, 5, n_rows),
            "n": pa.array(rng.integers(0, 10, n_rows), mask=holes),
            "k": rng.choice(["a", "b"], n_rows),
        }
    )


TABLE = make_table()


def counts(source):
    found = source.count_cells(tree_lattice(source.schema))
    codes, counts = found.distinct()
    return codes.tolist(), counts.tolist()


EXPECTED = counts(open_source(TABLE, SCHEMA))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "table.parquet"
    pq.write_table(TABLE, path, row_group_size=90)
    return path


# --------------------------------------------------------------------------------------------- the same answers


@pytest.mark.parametrize("engine", [None, "polars", "duckdb", "memory"])
@pytest.mark.parametrize("model", [sp.KDTreeSynthesizer(2), sp.GridSynthesizer(2, bins=3), sp.ForestSynthesizer(2)])
def test_the_engine_does_not_change_the_release(path, engine, model):
    """With the same noise, rows read by any engine give the rows that the table in memory gives."""
    expected = model.fit(TABLE, SCHEMA, entropy=sp.UnsafeSeededEntropy(3)).sample(50, seed=1)
    fitted = model.fit(path, SCHEMA, entropy=sp.UnsafeSeededEntropy(3), engine=engine)
    assert fitted.sample(50, seed=1, frame="pyarrow").equals(expected)
    assert fitted.card_.frame == ("polars" if engine == "polars" else "pyarrow")


@pytest.mark.parametrize("bounds", ["private", "from-data-not-private"])
def test_bounds_are_found_in_batches(tmp_path, bounds):
    """Bounds, paid for or read off the data, are those of the table in memory; a batch of nulls says nothing."""
    table = pa.table({"v": [None] * 30 + np.random.default_rng(1).normal(50, 9, 3000).tolist()})
    schema = sp.Schema({"v": sp.Real(bounds=bounds, nullable=True)})
    pq.write_table(table.slice(0, 30), tmp_path / "a.parquet")
    pq.write_table(table.slice(30), tmp_path / "b.parquet")
    fits = [
        sp.KDTreeSynthesizer(5).fit(frame, schema, entropy=sp.UnsafeSeededEntropy(1)).schema_
        for frame in (table, tmp_path, pl.scan_parquet(tmp_path), duckdb.sql(f"FROM '{tmp_path}/*.parquet'"))
    ]
    assert fits[0]["v"].low < fits[0]["v"].high
    assert all(found == fits[0] for found in fits)


def test_one_call_takes_paths(path):
    assert sp.synthesize(path, SCHEMA, n_rows=7).num_rows == 7
    assert len(sp.synthesize(str(path), SCHEMA, n_rows=7, engine="polars")) == 7
    assert sp.synthesize(pl.scan_parquet(path), SCHEMA, n_rows=7, method="tree").shape == (7, 3)


def test_narwhals_wrappers_are_taken_off(path):
    for native in (pl.scan_parquet(path), pl.read_parquet(path), duckdb.read_parquet(str(path))):
        assert counts(open_source(nw.from_native(native), SCHEMA)) == EXPECTED


def test_large_row_groups_come_in_slices(path):
    """Groups beyond the limit are cut, small ones are gathered up to a part of it, and the cells are the same."""
    sizes = {}
    for limit in (200, 10_000, 40_000, 1 << 27):
        source = open_source(path, SCHEMA, batch_bytes=limit)
        sizes[limit] = [batch.n_rows for batch in source._batches(SCHEMA)]
        assert counts(source) == EXPECTED
    assert max(sizes[200]) <= 4
    assert sizes[10_000] == [90, 90, 90, 90, 40]
    assert sizes[40_000] == [270, 130]
    assert sizes[1 << 27] == [400]


def test_wide_tables_come_in_shorter_batches():
    assert lazy.batch_rows(5) == lazy.MOST_ROWS
    assert lazy.batch_rows(300) * 300 * 8 <= 1 << 26
    assert lazy.batch_rows(10**9) == 1


def test_memory_reads_once(path, monkeypatch):
    """A held table is read when it is first asked for, and not again."""
    reads = []
    read = pq.ParquetFile.read_row_groups
    monkeypatch.setattr(
        pq.ParquetFile, "read_row_groups", lambda *given, **options: reads.append(given) or read(*given, **options)
    )
    source = open_source(path, SCHEMA, engine="memory")
    assert not reads
    for _ in range(3):
        assert counts(source) == EXPECTED
    source.check_values()
    assert len(reads) == 1


def test_only_the_columns_asked_for_are_read(path, monkeypatch):
    asked = []
    read = pq.ParquetFile.read_row_groups
    monkeypatch.setattr(
        pq.ParquetFile,
        "read_row_groups",
        lambda *given, **options: asked.append(options["columns"]) or read(*given, **options),
    )
    open_source(path, SCHEMA).count_cells(tree_lattice(sp.Schema({"n": SCHEMA["n"]})))
    assert asked == [["n"]]


def test_long_texts_are_held_once(tmp_path):
    """Values that repeat stay places in a list: a batch of rows takes no memory for the length of its texts."""
    values = [letter * 400_000 for letter in "abc"]
    schema = sp.Schema({"k": sp.Category(values, nullable=True)})
    places = np.random.default_rng(0).integers(0, 3, 9000)
    table = pa.table({"k": pa.DictionaryArray.from_arrays(pa.array(places, mask=places == 2), values)})
    pq.write_table(table, tmp_path / "t.parquet")  # 2.4 GB as texts, which arrow cannot hold in one array
    for source in (open_source(tmp_path, schema), open_source(table, schema)):
        _, n_rows = source.count_cells(tree_lattice(schema)).distinct()
        assert n_rows.tolist() == np.bincount(places).tolist()


CODED = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1]), ["a", "b", "SECRET"])


@pytest.mark.parametrize(
    "frame",
    [
        pa.table({"k": CODED}),
        pl.DataFrame({"k": pl.from_arrow(CODED)}),
        pd.DataFrame({"k": pd.Categorical.from_codes([0, 1, -1, 1], ["a", "b", "SECRET"])}),
    ],
    ids=["pyarrow", "polars", "pandas"],
)
def test_lists_of_texts_are_read_by_what_is_used(frame):
    """Values that stand in a column's own list but in no row are no mistake; others are, and nulls are nulls."""
    schema = sp.Schema({"k": sp.Category(["a", "b"], nullable=True)})
    assert sorted(counts(open_source(frame, schema))[1]) == [1, 1, 2]
    wrong = pa.table({"k": pa.DictionaryArray.from_arrays(pa.array([0, 2]), ["a", "b", "SECRET"])})
    with pytest.raises(InputError, match="not in the schema's list") as caught:
        counts(open_source(wrong, schema))
    assert "SECRET" not in str(caught.value)


def test_a_bad_value_in_a_later_file_is_no_bound(tmp_path):
    """What cannot be read is refused, also where only bounds are looked for."""
    for name, values in (("a", [1, 2]), ("b", [2.5, 3])):
        pq.write_table(pa.table({"n": pa.array(values, pa.float64())}), tmp_path / f"{name}.parquet")
    source = open_source(tmp_path, sp.Schema({"n": sp.Integer(0, 9)}))
    with pytest.raises(InputError, match="not a whole number"):
        source.true_extremes("n")


def test_identifiers_are_never_read(tmp_path):
    """Not even from a file in which their values are damaged."""
    secret = "SECRET" * 50
    schema = sp.Schema({"id": sp.Identifier(), **SCHEMA})
    table = TABLE.add_column(0, "id", pa.array([f"{secret}{row}" for row in range(TABLE.num_rows)]))
    path, text = tmp_path / "a.parquet", tmp_path / "a.csv"
    pq.write_table(table, path, compression="none", use_dictionary=False)
    path.write_bytes(path.read_bytes().replace(b"SECRET" * 20, b"\xff" * 120))
    pacsv.write_csv(table, text)
    text.write_bytes(text.read_bytes().replace(b"SECRET", b"\xff\xfe"))
    relation = duckdb.from_arrow(table).project("* REPLACE (error('SECRET') AS id)")
    frame = pl.LazyFrame(table).with_columns(pl.col("id").map_elements(lambda _: 1 / 0, return_dtype=pl.Int64))
    for source in (path, text, relation, frame):
        model = sp.ForestSynthesizer(2).fit(source, schema, entropy=sp.UnsafeSeededEntropy(0))
        assert model.card_.n_rows == TABLE.num_rows


NAMES = ["a.b", "a", 'quo"te', "with space", "SELECT", "col, other", "ä", "x'--"]


def test_names_need_no_care(tmp_path):
    """Dots, quotes and words of query languages are part of a name."""
    schema = sp.Schema({name: sp.Integer(0, 99) for name in NAMES})
    table = pa.table({name: np.arange(30) + index for index, name in enumerate(NAMES)})
    path, text = tmp_path / "t[1].parquet", tmp_path / "t.csv"
    pq.write_table(table, path)
    pacsv.write_csv(table, text)
    expected = counts(open_source(table, schema))
    sources = [(path, None), (path, "polars"), (path, "duckdb"), (text, None)]
    sources += [(pl.LazyFrame(pl.from_arrow(table)), None), (duckdb.from_arrow(table), None)]
    for frame, engine in sources:
        assert counts(open_source(frame, schema, engine=engine)) == expected


def test_relations_stay_in_their_connection(path):
    """The connection's limits hold, and it can be used as before afterwards."""
    with duckdb.connect() as connection:
        connection.execute("SET memory_limit = '200MB'")
        relation = connection.read_parquet(str(path)).filter("x >= 0")
        sp.ForestSynthesizer(1).fit(relation, SCHEMA)
        assert connection.execute("SELECT current_setting('memory_limit')").fetchall() == [("190.7 MiB",)]
        assert relation.aggregate("count(*)").fetchall() == [(400,)]


# ---------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("make", "engine", "fitting"),
    [
        (lambda path: TABLE, "polars", "a table in memory; leave it out, or use 'memory'"),
        (pl.read_parquet, "polars", "a table in memory"),
        (pl.scan_parquet, "duckdb", "a polars LazyFrame; leave it out, or use 'polars' or 'memory'"),
        (lambda path: duckdb.read_parquet(str(path)), "spark", "a DuckDB relation"),
    ],
)
def test_engines_that_do_not_go_with_the_table(path, make, engine, fitting):
    with pytest.raises(ParameterError, match=f"engine='{engine}' does not work with {fitting}"):
        sp.KDTreeSynthesizer().fit(make(path), SCHEMA, engine=engine)


def test_unknown_engines(path):
    with pytest.raises(ParameterError, match="engine='quick' is not one of 'polars', 'duckdb', 'spark', 'memory'"):
        sp.synthesize(path, SCHEMA, engine="quick")


@pytest.mark.parametrize("engine", ["polars", "duckdb", "spark"])
def test_csv_is_read_in_one_way(tmp_path, engine):
    """Other engines would guess types from values; the schema's types are the only ones."""
    pacsv.write_csv(TABLE, tmp_path / "a.csv")
    with pytest.raises(ParameterError, match="reads Parquet only"):
        open_source(tmp_path / "a.csv", SCHEMA, engine=engine)


def test_a_missing_engine_is_named(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingExtraError, match=r"engine='duckdb' needs duckdb, .*; pip install duckdb"):
        open_source(path, SCHEMA, engine="duckdb")


def test_spark_needs_a_session(path, monkeypatch):
    pyspark = pytest.importorskip("pyspark.sql")
    monkeypatch.setattr(pyspark.SparkSession, "getActiveSession", lambda: None)
    with pytest.raises(ParameterError, match="active SparkSession"):
        open_source(path, SCHEMA, engine="spark")


def test_addresses_on_other_machines():
    with pytest.raises(ParameterError, match=r"another machine; open it with polars\.scan_parquet"):
        open_source("s3://bucket/table.parquet", SCHEMA)


@pytest.mark.parametrize("frame", ["table.csv", Path("table.csv"), pl.LazyFrame({"x": [0.5]})])
def test_rivals_take_tables_in_memory(frame):
    with pytest.raises(InputError, match="is not a table; pass a pandas, polars or pyarrow table"):
        BalogAlgorithm1().fit(frame, sp.Schema({"x": sp.Real(0, 1)}))


MISFITS = {
    "more columns": (TABLE.append_column("z", pa.nulls(400)), "column 'z' is in the table but not in the schema"),
    "fewer columns": (TABLE.drop_columns("n"), "column 'n' is in the schema but not in the table"),
    "another type": (TABLE.set_column(0, "x", pa.array([True] * 400)), "column 'x' has type Boolean in the table"),
}


@pytest.mark.parametrize(("table", "message"), MISFITS.values(), ids=MISFITS)
def test_columns_are_compared_before_rows_are_read(tmp_path, monkeypatch, table, message):
    """Every kind of table is refused in the same words, and no batch is asked for."""
    path = tmp_path / "t.parquet"
    pq.write_table(table, path)
    monkeypatch.setattr(stream.StreamSource, "count_columns", lambda *_: pytest.fail("rows were read"))
    for frame in (path, pl.LazyFrame(pl.from_arrow(table)), duckdb.from_arrow(table)):
        ledger = sp.Ledger(limit=1)
        with pytest.raises(SchemaError, match=message):
            sp.KDTreeSynthesizer().fit(frame, SCHEMA, ledger=ledger)
        assert not ledger.events


def test_what_a_path_may_mean(tmp_path):
    """Files of other kinds, both kinds at once, and folders of folders are refused with a remedy."""
    (tmp_path / "deep").mkdir()
    pq.write_table(TABLE, tmp_path / "deep" / "a.parquet")
    with pytest.raises(FileError, match=r"holds no file that ends in .*a pattern such as '.*/\*\*/\*\.parquet'"):
        open_source(tmp_path, SCHEMA)
    assert counts(open_source(tmp_path / "**" / "*.parquet", SCHEMA)) == EXPECTED
    (tmp_path / "deep" / "notes.txt").touch()
    (tmp_path / "deep" / ".a.parquet.crc").touch()
    assert counts(open_source(tmp_path / "deep", SCHEMA)) == EXPECTED
    with pytest.raises(ParameterError, match=r"notes\.txt', among the files of '.*\*', does not end in"):
        open_source(tmp_path / "deep" / "*", SCHEMA)
    pacsv.write_csv(TABLE, tmp_path / "deep" / "a.csv")
    with pytest.raises(ParameterError, match="both CSV and Parquet"):
        open_source(tmp_path / "deep", SCHEMA)


# -------------------------------------------------------------------------------------------------- the command


def test_the_command_takes_patterns_and_folders(tmp_path):
    """A quoted pattern, a folder and standard input, with any engine that fits."""
    schema, out = tmp_path / "schema.toml", tmp_path / "r.spinney"
    schema.write_text(PEOPLE_SCHEMA)
    (tmp_path / "csv").mkdir()
    (tmp_path / "parquet").mkdir()
    for part in range(3):
        (tmp_path / "csv" / f"{part}.csv").write_text(people(100))
        pq.write_table(pacsv.read_csv(tmp_path / "csv" / f"{part}.csv"), tmp_path / "parquet" / f"{part}.parquet")
    common = ["--schema", schema, "--epsilon", "1", "--out", out, "--force", "--json"]
    calls = [(f"{tmp_path}/csv/*.csv", []), (tmp_path / "csv", []), (f"{tmp_path}/parquet/[0-9].parquet", [])]
    calls += [(tmp_path / "parquet", ["--engine", engine]) for engine in ("polars", "duckdb", "memory")]
    for table, options in calls:
        run = spinney("fit", table, *common, *options)
        assert run.status == 0, run.err
        assert run.json["n_rows"] == 300
    assert "[columns.age]" in spinney("schema", f"{tmp_path}/csv/*.csv").out
    run = spinney("fit", "-", *common, "--engine", "duckdb", stdin=people(100))
    assert run.status == 2
    assert "does not work with a CSV" in run.err
    run = spinney("fit", tmp_path / "csv", *common[:5], tmp_path / "csv" / "1.csv", "--force")
    assert run.status == 2
    assert "is also an input" in run.err
    run = spinney("fit", f"{tmp_path}/csv/*.parquet", *common)
    assert run.status == 2
    assert "no file matches" in run.err


def test_opening_files_imports_no_other_engine(path):
    """A path is read without polars, DuckDB or Spark. (pyarrow itself looks for pandas.)"""
    script = f"""
import sys, spinney as sp
schema = sp.Schema({{"x": sp.Real(0, 1), "n": sp.Integer(0, 9, nullable=True), "k": sp.Category(["a", "b"])}})
sp.ForestSynthesizer(1).fit({str(path)!r}, schema).sample(5)
print([name for name in ("polars", "duckdb", "pyspark", "dask", "ibis") if name in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
