"""Lists of paths, pyarrow datasets, RecordBatchReaders and other Arrow streams are tables; what is none is told so."""

from __future__ import annotations

import traceback
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import spinney as sp
from spinney.errors import FileError, InputError, ParameterError, SchemaError
from spinney.grid.lattice import tree_lattice
from spinney.tables.open import open_source

SCHEMA = sp.Schema({"x": sp.Real(0, 1), "n": sp.Integer(0, 9, nullable=True), "k": sp.Category(["a", "b"])})
MODELS = [sp.KDTreeSynthesizer(2), sp.ForestSynthesizer(2)]


def make_table(n_rows: int = 400) -> pa.Table:
    rng = np.random.default_rng(0)
    whole = pa.array(rng.integers(0, 10, n_rows), mask=rng.random(n_rows) < 0.2)
    return pa.table({"x": rng.beta(2, 5, n_rows), "n": whole, "k": rng.choice(["a", "b"], n_rows)})


TABLE = make_table()


class Stream:
    """An object of no library that is known, which hands out its rows as Arrow data."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def files(folder: Path) -> list[Path]:
    for index in range(4):
        pq.write_table(TABLE.slice(100 * index, 100), folder / f"{index}.parquet")
    return [folder / f"{index}.parquet" for index in range(4)]


def texts(folder: Path) -> list[str]:
    for index in range(4):
        pacsv.write_csv(TABLE.slice(100 * index, 100), folder / f"{index}.csv")
    return [str(folder / f"{index}.csv") for index in range(4)]


FRAMES = {
    "list": files,
    "tuple backwards": lambda folder: tuple(files(folder)[::-1]),
    "list of folder and pattern": lambda folder: [files(folder)[0], f"{folder}/[1-3].parquet"],
    "list of one folder": lambda folder: [files(folder)[0].parent],
    "list of csv": texts,
    "dataset of files": lambda folder: ds.dataset(files(folder)),
    "dataset of a folder": lambda folder: ds.dataset(files(folder)[0].parent),
    "dataset in memory": lambda folder: ds.dataset(TABLE),
    "union of datasets": lambda folder: ds.dataset([ds.dataset(files(folder)[:2]), ds.dataset(TABLE.slice(200))]),
    "filtered dataset": lambda folder: ds.dataset(pa.concat_tables([TABLE, TABLE.slice(0, 0)])).filter(
        ds.field("x") >= 0
    ),
    "reader": lambda folder: TABLE.to_reader(max_chunksize=90),
    "reader of a query": lambda folder: pa.RecordBatchReader.from_stream(duckdb.from_arrow(TABLE)),
    "batch": lambda folder: TABLE.combine_chunks().to_batches()[0],
    "stream": lambda folder: Stream(TABLE),
}


@pytest.mark.parametrize("engine", [None, "memory"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_the_release_is_that_of_the_table(tmp_path, make, model, engine):
    """With the same noise the same rows, as a pyarrow table, however often the mechanism reads."""
    expected = model.fit(TABLE, SCHEMA, entropy=sp.UnsafeSeededEntropy(3)).sample(50, seed=1)
    fitted = model.fit(make(tmp_path), SCHEMA, entropy=sp.UnsafeSeededEntropy(3), engine=engine)
    assert fitted.card_.n_rows == 400
    assert fitted.sample(50, seed=1).equals(expected)


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_lists_go_with_engines(tmp_path, engine):
    model = sp.KDTreeSynthesizer(2).fit(files(tmp_path), SCHEMA, engine=engine)
    assert model.card_.n_rows == 400
    assert isinstance(model.sample(5), pl.DataFrame if engine == "polars" else pa.Table)


def test_one_call(tmp_path):
    for frame in (files(tmp_path), ds.dataset(TABLE), TABLE.to_reader()):
        assert sp.synthesize(frame, SCHEMA, n_rows=7).num_rows == 7


def test_paths_of_a_list_keep_their_order(tmp_path):
    """Every pass sees the rows in the order of the list; those of a folder or a pattern in it, by name."""
    _, _, three, four = files(tmp_path)
    source = open_source([four, f"{tmp_path}/[01].parquet", str(three)], SCHEMA)
    order = [TABLE.slice(start, 100) for start in (300, 0, 100, 200)]
    for _ in range(2):
        read = np.concatenate([batch.read().physical("x").values for batch in source._batches(SCHEMA)])
        assert np.array_equal(read, np.asarray(pa.concat_tables(order)["x"]))


def test_datasets_come_in_order_and_in_batches(tmp_path):
    source = open_source(ds.dataset(files(tmp_path)), SCHEMA, batch_bytes=30 * 8 * len(SCHEMA))
    for _ in range(3):
        batches = [batch.read() for batch in source._batches(SCHEMA)]
        assert max(batch.n_rows for batch in batches) <= 30
        assert np.array_equal(np.concatenate([batch.physical("x").values for batch in batches]), np.asarray(TABLE["x"]))


NAMES = ["a.b", "a", 'quo"te', "with space", "SELECT", "ä", "x'--", "b[0]"]


def test_names_need_no_care():
    """A dot in a name is no way into a nested column."""
    schema = sp.Schema({name: sp.Integer(0, 99) for name in NAMES})
    table = pa.table({name: np.arange(30) + index for index, name in enumerate(NAMES)})
    lattice = tree_lattice(schema)
    expected = open_source(table, schema).count_cells(lattice).distinct()[0]
    for frame in (ds.dataset(table), table.to_reader(), Stream(table)):
        assert np.array_equal(open_source(frame, schema).count_cells(lattice).distinct()[0], expected)


def test_identifiers_are_not_read(tmp_path):
    """Not even from a dataset in which their values are damaged."""
    path = tmp_path / "a.parquet"
    table = TABLE.append_column("id", pa.array(["SECRET" * 50 + str(row) for row in range(400)]))
    pq.write_table(table, path, compression="none", use_dictionary=False)
    path.write_bytes(path.read_bytes().replace(b"SECRET" * 20, b"\xff" * 120))
    schema = sp.Schema({**SCHEMA, "id": sp.Identifier()})
    assert sp.ForestSynthesizer(2).fit(ds.dataset(path), schema).card_.n_rows == 400


# ---------------------------------------------------------------------------------------------- what is refused


def refused(frame, error: type[Exception], message: str, **options) -> None:
    """Nothing is charged, and no private value is anywhere in the error or what led to it."""
    ledger = sp.Ledger(limit=9, delta="1e-5")
    with pytest.raises(error, match=message) as caught:
        sp.ForestSynthesizer(1).fit(frame, SCHEMA, ledger=ledger, **options)
    assert not ledger.events
    assert "SECRET" not in "".join(traceback.format_exception(caught.value))


def test_lists_that_are_no_table(tmp_path):
    """An empty list, both kinds of file, a file that is missing, an address, and things that are no paths."""
    (first, *_), (text, *_) = files(tmp_path), texts(tmp_path)
    refused([], ParameterError, "the list of paths is empty; name at least one file")
    refused((), ParameterError, "the list of paths is empty", engine="spark")
    refused([first, text], ParameterError, "the list of paths matches both CSV and Parquet files")
    refused([first, tmp_path / "5.parquet"], FileError, r"5\.parquet' does not exist")
    refused([first, f"{tmp_path}/x*.parquet"], FileError, "no file matches")
    refused([first, "s3://bucket/a.parquet"], ParameterError, "is on another machine")
    refused([f"file://{first}"], ParameterError, "by its path, without 'file://'")
    refused([first, TABLE], InputError, "a list is not a table")
    refused([b"a.parquet"], InputError, "a list is not a table")
    for engine in ("polars", "duckdb", "spark"):
        refused([text], ParameterError, "reads Parquet only", engine=engine)


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: ds.dataset(TABLE), "a pyarrow dataset"),
        (TABLE.to_reader, "a RecordBatchReader"),
        (lambda: Stream(TABLE), "an Arrow stream"),
    ],
)
@pytest.mark.parametrize("engine", ["polars", "duckdb", "spark"])
def test_engines_that_do_not_go_with_them(make, what, engine):
    message = f"engine='{engine}' does not work with {what}; leave it out, or use 'memory'"
    refused(make(), ParameterError, message, engine=engine)


@pytest.mark.parametrize("make", [ds.dataset, pa.Table.to_reader, Stream], ids=["dataset", "reader", "stream"])
def test_columns_are_compared_before_rows_are_read(make):
    """In the words of every other table, and without a batch being asked for."""
    extra, nested = TABLE.append_column("z", TABLE["n"]), TABLE.set_column(0, "x", pa.array([[0.5]] * 400))
    refused(make(extra), SchemaError, "column 'z' is in the table but not in the schema")
    refused(make(TABLE.drop_columns("n")), SchemaError, "column 'n' is in the schema but not in the table")
    refused(make(nested), SchemaError, "column 'x' has type List")
    doubled = pa.table([TABLE["x"], TABLE["x"]], names=["x", "x"])
    refused(make(doubled), InputError, "two columns of the same name")


def test_parameters_are_checked_before_a_reader_is_read():
    """A wrong parameter leaves the reader whole."""
    reader = TABLE.to_reader()
    with pytest.raises(sp.SpinneyError, match="target"):
        sp.ForestSynthesizer(1, target="nobody").fit(reader, SCHEMA)
    assert sp.KDTreeSynthesizer(1).fit(reader, SCHEMA).card_.n_rows == 400


def test_a_reader_gives_its_rows_once():
    """What is left of a reader is no table, even where an empty table would be one."""
    reader = TABLE.to_reader()
    model = sp.KDTreeSynthesizer(1, unit="add-remove")
    model.fit(reader, SCHEMA)
    refused(reader, InputError, "this RecordBatchReader was read before")
    with pytest.raises(InputError, match=r"reader\.read_all\(\)"):
        model.fit(reader, SCHEMA)


def failing(schema: pa.Schema):
    yield TABLE.slice(0, 50).combine_chunks().to_batches()[0]
    raise ValueError("SECRET")


def test_a_reader_that_fails_in_the_middle():
    """The error is ours, quotes nothing, and the rows that are left are not taken for a table."""
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, failing(TABLE.schema))
    refused(reader, InputError, r"the RecordBatchReader could not be computed \(ValueError\)")
    refused(reader, InputError, "was read before")


def test_a_dataset_that_fails(tmp_path):
    """Damaged, gone or changed between passes: an error that quotes nothing."""
    paths = files(tmp_path)
    source = open_source(ds.dataset(paths), SCHEMA)
    source.check_values()
    pq.write_table(TABLE.slice(0, 99), paths[1])
    with pytest.raises(InputError, match=r"the table changed while it was read|could not be computed"):
        source.check_values()
    dataset = ds.dataset(paths)
    paths[2].unlink()
    refused(dataset, InputError, r"the pyarrow dataset could not be computed")
    (tmp_path / "t.csv").write_text("x,n,k\n0.5,1,a\n" + "0.5,SECRET,a\n")
    types = pa.schema({"x": pa.float64(), "n": pa.int64(), "k": pa.string()})
    refused(ds.dataset(tmp_path / "t.csv", format="csv", schema=types), InputError, "the pyarrow dataset could not be")


class Consumed:
    def __arrow_c_stream__(self, requested_schema=None):
        raise RuntimeError("SECRET")


def test_a_stream_that_does_not_open():
    refused(Consumed(), InputError, r"the Arrow stream could not be computed \(RuntimeError\)")


@pytest.mark.parametrize(
    "frame",
    [
        None,
        {"x": [0.5]},
        [[0.5]],
        [[]],
        pl.Series("x", [0.5]),
        pd.Series([0.5]),
        pa.chunked_array([[0.5]]),
        b"a.csv",
        3,
    ],
    ids=lambda frame: type(frame).__name__,
)
def test_what_is_no_table_is_told_all_that_is(frame):
    """Every kind that `fit` takes is in the message, and only there: rivals take tables in memory alone."""
    kinds = (
        *("pandas, polars or pyarrow table", "numpy array", "a file, a folder, a pattern or a list of paths"),
        *("polars LazyFrame", "DuckDB relation", "Spark DataFrame", "Ibis table", "Dask frame"),
        *("pyarrow dataset", "RecordBatchReader"),
    )
    for kind in kinds:
        refused(frame, InputError, f"an? {type(frame).__name__} is not a table; pass .*{kind}")


def test_wrong_values_of_coded_string_views_are_counted():
    """A dictionary of string views is taken apart like any other dictionary, so that its faults are counted."""
    coded = pa.array(["a", "b", "x", "x"], pa.string_view()).dictionary_encode()
    fault = sp.check(pa.table({"v": coded}), {"v": sp.Category(["a", "b"])}).faults[0]
    assert fault.n_rows == 2
