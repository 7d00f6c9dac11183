"""One file by two names would be counted twice: it is refused before anything is charged, whoever expands the names."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import spinney as sp
from spinney.errors import ParameterError
from spinney.tables import paths as named
from spinney.tables import paths as repeats
from spinney.tables.open import open_source
from spinney.tables.paths import list_files
from support.command_line import SCHEMA as PEOPLE_SCHEMA
from support.command_line import files_in, people, spinney

SCHEMA = sp.Schema({"x": sp.Real(0, 1), "k": sp.Category(["a", "b"])})
ENGINES = [None, "polars", "duckdb", "memory"]


def part(seed: int, n_rows: int = 50) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({"x": rng.random(n_rows), "k": rng.choice(["a", "b"], n_rows)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two months in Parquet."""
    folder = tmp_path / "months"
    folder.mkdir()
    for month in (11, 12):
        pq.write_table(part(month), folder / f"2024-{month}.parquet")
    return folder


def refused(frame, first: str, second: str, words: str = "one file by two names", **options) -> None:
    """Nothing is charged, and the message names both files and a remedy."""
    ledger = sp.Ledger(limit=5, delta="1e-5")
    for model in (sp.KDTreeSynthesizer(1), sp.ForestSynthesizer(1)):
        with pytest.raises(ParameterError, match=words) as caught:
            model.fit(frame, SCHEMA, ledger=ledger, **options)
        assert not ledger.events
        assert not hasattr(model, "release_")
    message = str(caught.value)
    assert first in message
    assert second in message
    assert "guarantee would not hold; " in message


def link(folder: Path, target: str, name: str, how) -> None:
    how(folder / target if how is os.link else target, folder / name)


# ------------------------------------------------------------------------------------------------------ one file


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("how", [os.symlink, os.link], ids=["symbolic", "hard"])
@pytest.mark.parametrize("shape", ["folder", "pattern", "deep pattern", "list", "list of file and pattern", "names"])
def test_a_link_beside_its_file(folder, engine, how, shape):
    """`latest.parquet` beside the month that it stands for, through every way to name both."""
    link(folder, "2024-12.parquet", "latest.parquet", how)
    shapes = {
        "folder": folder,
        "pattern": f"{folder}/*.parquet",
        "deep pattern": f"{folder.parent}/**/*.parquet",
        "list": [folder / "2024-12.parquet", str(folder / "latest.parquet")],
        "list of file and pattern": (folder / "latest.parquet", f"{folder}/2024-*"),
        "names": [f"{folder}/2024-*.parquet", f"{folder}/l*"],
    }
    refused(shapes[shape], "2024-12.parquet'", "latest.parquet'", engine=engine)


def test_without_the_link_it_is_a_table(folder):
    """A link alone is a file like any other, and so are the remedies that the message names."""
    os.symlink("2024-12.parquet", folder / "latest.parquet")
    months, newest = f"{folder}/2024-*.parquet", folder / "latest.parquet"
    for frame, n_rows in ((months, 100), (newest, 50), ([folder / "2024-11.parquet", newest], 100)):
        assert open_source(frame, SCHEMA).n_rows == n_rows


@pytest.mark.parametrize("engine", ENGINES)
def test_one_file_in_a_list_by_two_spellings(folder, engine, monkeypatch):
    """Relative and absolute, through a dot, through two dots, through a linked folder, and word for word."""
    monkeypatch.chdir(folder.parent)
    os.symlink("months", "linked")
    plain = "months/2024-11.parquet"
    for other in ("./" + plain, "months/../" + plain, str(folder / "2024-11.parquet"), "linked/2024-11.parquet"):
        refused([plain, other], plain, other, engine=engine)
    refused([plain, plain], plain, plain, "is named twice", engine=engine)
    refused([plain, Path(plain)], plain, plain, "is named twice", engine=engine)
    refused([plain, "months"], plain, plain, "is named twice", engine=engine)
    refused(["months/*.parquet", "months/2024-1*"], plain, plain, "is named twice", engine=engine)


def test_one_file_in_two_folders(folder):
    """A hard link elsewhere, and a linked folder that a pattern without ** goes into."""
    other = folder.parent / "other"
    other.mkdir()
    os.link(folder / "2024-11.parquet", other / "november.parquet")
    refused(f"{folder.parent}/**/*.parquet", "months/2024-11.parquet", "other/november.parquet")
    refused([folder, other], "months/2024-11.parquet", "other/november.parquet")
    (other / "november.parquet").unlink()
    other.rmdir()
    os.symlink("months", other)
    refused(f"{folder.parent}/*/*.parquet", "months/2024-11.parquet", "other/2024-11.parquet")
    refused([folder, other], "months/2024-11.parquet", "other/2024-11.parquet")


def test_partitions_by_two_names(folder):
    """A month's folder under a second name is read once by **, and refused by a list."""
    os.makedirs(folder / "year=2024")
    for month in (11, 12):
        os.rename(folder / f"2024-{month}.parquet", folder / "year=2024" / f"{month}.parquet")
    os.symlink("year=2024", folder / "year=newest")
    assert open_source(f"{folder}/**/*.parquet", SCHEMA).n_rows == 100
    refused(f"{folder}/year=*/*.parquet", "year=2024/11.parquet", "year=newest/11.parquet")


def test_a_link_that_leads_up(folder):
    """A linked folder that contains itself gave every file as often as the system follows links."""
    os.symlink("..", folder / "up")
    os.symlink(".", folder / "here")
    for pattern in (f"{folder}/**/*.parquet", f"{folder.parent}/**/*.parquet", f"{folder}/**/**/*.parquet"):
        assert len(list_files(pattern)) == 2
        assert open_source(pattern, SCHEMA).n_rows == 100


def test_a_pattern_with_two_stretches_of_folders(folder):
    """`**/**` fits one file in several ways, and gives it once."""
    (folder / "deep" / "deeper").mkdir(parents=True)
    pq.write_table(part(3), folder / "deep" / "deeper" / "more.parquet")
    assert open_source(f"{folder.parent}/**/**/*.parquet", SCHEMA).n_rows == 150
    assert open_source(f"{folder.parent}/**/d*/**/*.parquet", SCHEMA).n_rows == 50


def test_file_systems_that_number_no_files(folder, monkeypatch):
    """Where inodes are zero, links are followed to see what they lead to; other files stay different."""

    ask = os.stat

    def unnumbered(path, **options):
        found = ask(path, **options)
        return os.stat_result((found.st_mode, 0, *found[2:])) if str(path).endswith(".parquet") else found

    monkeypatch.setattr(repeats.os, "stat", unnumbered)
    assert len(list_files(f"{folder}/2024-1[12].parquet")) == 2
    os.symlink("2024-12.parquet", folder / "latest.parquet")
    with pytest.raises(ParameterError, match=r"2024-12\.parquet' and '.*latest\.parquet' are one file by two names"):
        list_files([folder / "2024-12.parquet", folder / "latest.parquet"])


# ----------------------------------------------------------------------------------------------------- two forms

FORMS = [
    ("people.csv", "people.csv.gz"),
    ("people.csv", "people.CSV"),
    ("people.CSV.GZ", "people.csv"),
    ("People.csv", "people.csv.gz"),
    ("people.parquet", "people.pq"),
    ("people.parquet", "people.snappy.parquet"),
    ("people.gz.parquet", "people.zstd.PARQUET"),
    ("a.b.csv", "a.b.csv.gz"),
]


@pytest.mark.parametrize(("first", "second"), FORMS)
def test_one_table_in_two_forms(tmp_path, first, second):
    """Compressed beside plain, both endings of Parquet, another case: in a folder, by a pattern, in a list."""
    for name in (first, second):
        write(tmp_path / name)
    for frame in (tmp_path, f"{tmp_path}/*", [tmp_path / first, tmp_path / second]):
        refused(frame, first, second, "look like one table in two forms")


def write(path: Path) -> None:
    name = path.name.lower()
    if not name.endswith((".csv", ".csv.gz")):
        pq.write_table(part(0), path)
        return
    pacsv.write_csv(part(0), path)
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(path.read_bytes()))


@pytest.mark.parametrize("names", [("a.csv", "b.csv"), ("gz.csv", "csv.csv"), ("x.1.csv", "x.2.csv"), (".gz.csv",)])
def test_different_tables_stay(tmp_path, names):
    """Names that differ in more than their endings are parts of one table; so are equal names in different folders."""
    for name in names:
        write(tmp_path / name)
        (tmp_path / "deep").mkdir(exist_ok=True)
        write(tmp_path / "deep" / f"{name}.gz")
    here, deep = [tmp_path / name for name in names], [tmp_path / "deep" / f"{name}.gz" for name in names]
    assert open_source([*here, *deep], SCHEMA).n_rows == 100 * len(names)


def test_two_forms_behind_links(tmp_path):
    """What a link is called hides nothing: its file beside the other form, and the folder under another name."""
    for name in ("people.csv", "people.csv.gz"):
        write(tmp_path / name)
    os.symlink("people.csv.gz", tmp_path / "current.csv.gz")
    refused([tmp_path / "people.csv", tmp_path / "current.csv.gz"], "people.csv'", "current.csv.gz'", "in two forms")
    os.symlink(".", tmp_path / "here")
    refused(
        [tmp_path / "people.csv", tmp_path / "here" / "people.csv.gz"], "people.csv'", "here/people.csv.gz'", "forms"
    )


# --------------------------------------------------------------------------------- readers that expand by themselves


def lazy_tables(folder: Path) -> dict[str, object]:
    """The same files through every library that tells which files it reads."""
    pattern, files = f"{folder}/*.parquet", sorted(str(path) for path in folder.iterdir())
    scan = pl.scan_parquet(pattern)
    local = pafs.LocalFileSystem()
    return {
        "polars pattern": scan,
        "polars folder": pl.scan_parquet(folder),
        "polars list": pl.scan_parquet(files),
        "polars query": scan.filter(pl.col("x") > 0.1).with_columns(pl.col("x") * 0.5).sort("x"),
        "polars function": scan.map_batches(lambda frame: frame),
        "polars concat": pl.concat([pl.scan_parquet(path) for path in files]),
        "duckdb pattern": duckdb.read_parquet(pattern),
        "duckdb list": duckdb.read_parquet(files),
        "duckdb query": duckdb.sql(f"SELECT x, k FROM '{pattern}' WHERE k <> 'it''s'"),
        "duckdb quoted pattern": duckdb.sql(f'SELECT x, k FROM "{pattern}"'),  # as DuckDB 1 writes every FROM
        "duckdb function": duckdb.sql(f"FROM read_parquet( [{', '.join(map(repr, files))}] )").filter("x >= 0"),
        "duckdb names": duckdb.sql(" UNION ALL ".join(f'SELECT * FROM "{file}"' for file in files)),
        "duckdb comments": duckdb.sql(" UNION ALL ".join(f"SELECT * FROM/**/'{file}'" for file in files)),
        "duckdb made list": duckdb.sql(f"FROM read_parquet(list_value({', '.join(map(repr, files))}))"),
        "duckdb join": duckdb.sql(f"SELECT a.* FROM (VALUES ('a'), ('b')) t(k) JOIN '{pattern}' a USING (k)"),
        "pyarrow folder": ds.dataset(folder),
        "pyarrow list": ds.dataset(files),
        "pyarrow union": ds.dataset([ds.dataset(files[0]), ds.dataset(files[1:]), ds.dataset(part(1))]),
        "pyarrow filter": ds.dataset(folder).filter(ds.field("x") > 0.5),
        "pyarrow subtree": ds.dataset(
            [Path(path).name for path in files], filesystem=pafs.SubTreeFileSystem(str(folder), local)
        ),
    }


LAZY = [
    *("polars pattern", "polars folder", "polars list", "polars query", "polars function", "polars concat"),
    *("duckdb pattern", "duckdb list", "duckdb query", "duckdb quoted pattern"),
    *("duckdb function", "duckdb join"),
    *("duckdb names", "duckdb comments", "duckdb made list"),
    *("pyarrow folder", "pyarrow list", "pyarrow union", "pyarrow filter", "pyarrow subtree"),
]


@pytest.mark.parametrize("how", [os.symlink, os.link], ids=["symbolic", "hard"])
@pytest.mark.parametrize("kind", LAZY)
def test_lazy_tables_that_name_their_files(folder, kind, how):
    """A lazy table is taken, until a link stands beside one of its files."""
    assert open_source(lazy_tables(folder)[kind], SCHEMA).n_rows > 0
    link(folder, "2024-12.parquet", "latest.parquet", how)
    refused(lazy_tables(folder)[kind], "2024-12.parquet'", "latest.parquet'")


def test_lazy_tables_that_read_two_forms(tmp_path):
    for name in ("people.parquet", "people.pq"):
        write(tmp_path / name)
    files = [str(tmp_path / name) for name in ("people.parquet", "people.pq")]
    for frame in (pl.scan_parquet(files), duckdb.read_parquet(files), ds.dataset(files)):
        refused(frame, *files, "look like one table in two forms")


def test_a_reader_given_one_file_twice(folder):
    """One reader that is given a file twice is refused; a query that joins a table with itself says so on purpose."""
    file = str(folder / "2024-11.parquet")
    for frame in (pl.scan_parquet([file, file]), duckdb.read_parquet([file, file]), ds.dataset([file, file])):
        refused(frame, file, file, "is named twice")
    refused(ds.dataset([ds.dataset(file), ds.dataset(folder)]), file, file, "is named twice")
    scan = pl.scan_parquet(file)
    means = scan.group_by("k").agg(pl.col("x").mean().alias("mean"))
    assert open_source(scan.join(means, on="k").drop("mean"), SCHEMA).n_rows == 50
    joined = duckdb.sql(f"SELECT a.* FROM '{file}' a WHERE x <= (SELECT max(x) FROM '{file}')")
    assert open_source(joined, SCHEMA).n_rows == 50


def test_texts_of_a_query_that_are_no_files(folder, monkeypatch):
    """A pattern in a comparison is not read, and what lies in the working folder does not matter."""
    os.symlink("2024-12.parquet", folder / "latest.parquet")
    monkeypatch.chdir(folder)
    relation = duckdb.sql("SELECT x, k FROM '2024-12.parquet' WHERE k GLOB '*' AND k <> '*.parquet'")
    assert open_source(relation, SCHEMA).n_rows == 50


def test_libraries_that_do_not_tell(monkeypatch):
    """A version of a library that names no files is taken as it is."""

    class Silent:
        def __getattr__(self, name):
            raise RuntimeError(name)

    for reads in (named.polars_reads, named.duckdb_reads, named.spark_reads):
        assert reads(Silent()) == []


def test_addresses_are_compared_by_name():
    """On another machine links cannot be seen; names can, and addresses of this machine are paths."""
    far = ["s3://bucket/a/1.parquet", "s3://bucket/a/2.parquet", "s3://bucket/b/1.parquet"]
    named.refuse_repeated_reads([far])
    for more, words in ((far[0], "named twice"), ("s3://bucket/a/1.pq", "in two forms")):
        with pytest.raises(ParameterError, match=words):
            named.refuse_repeated_reads([[*far, more]])
    assert named.local_path("file:///data/a%20b/%C3%A4%2520.parquet") == "/data/a b/ä%20.parquet"
    assert named.local_path("file:/data/a.parquet") == "/data/a.parquet"


# -------------------------------------------------------------------------------------------------- the command


@pytest.mark.parametrize("verb", ["fit", "schema"])
@pytest.mark.parametrize("case", ["link", "hard link", "two forms"])
def test_the_command_refuses(tmp_path, verb, case):
    """A wrong call: folder or pattern, any engine, the ledger untouched and no output written."""
    schema, ledger, folder = tmp_path / "schema.toml", tmp_path / "people.ledger", tmp_path / "table"
    schema.write_text(PEOPLE_SCHEMA)
    folder.mkdir()
    (folder / "1.csv").write_text(people(100))
    assert spinney("ledger", ledger, "--limit", "5").status == 0
    before = ledger.read_bytes()
    if case == "two forms":
        (folder / "1.csv.gz").write_bytes(gzip.compress(people(100).encode()))
    else:
        link(folder, "1.csv", "2.csv", os.symlink if case == "link" else os.link)
    known = files_in(tmp_path)
    out = tmp_path / ("r.spinney" if verb == "fit" else "out.toml")
    options = ["--schema", schema, "--epsilon", "1", "--ledger", ledger] if verb == "fit" else []
    for table in (folder, f"{folder}/*", f"{tmp_path}/**/[12].csv*"):
        for engine in ([], ["--engine", "memory"]) if verb == "fit" else ([],):
            run = spinney(verb, table, *options, *engine, "--out", out)
            assert run.status == 2
            assert "the privacy guarantee would not hold" in run.err
    assert ledger.read_bytes() == before
    assert files_in(tmp_path) == known


def test_a_copy_is_not_noticed(folder):
    """The documented limit: equal contents in two files are two files."""
    shutil.copy(folder / "2024-12.parquet", folder / "copy.parquet")
    assert open_source(folder, SCHEMA).n_rows == 150
