"""Paths that Spark expands: one file by two names is refused, and lists of paths are tables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import spinney as sp
from spinney.errors import ParameterError
from spinney.tables.open import open_source

SCHEMA = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two months, in a folder whose name Spark writes otherwise."""
    folder = tmp_path / "the months"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for month in (11, 12):
        pq.write_table(pa.table({"x": rng.random(60), "y": rng.random(60)}), folder / f"2024-{month}.parquet")
    return folder


def tables(spark: Any, folder: Path) -> list[tuple[Any, str | None]]:
    """The folder through everything that Spark expands, and which engine to ask for."""
    files = sorted(str(path) for path in folder.iterdir())
    return [
        (folder, "spark"),
        (f"{folder}/*.parquet", "spark"),
        (f"{folder}/{{2,l}}*", "spark"),
        (folder.as_uri().replace("%20", " "), "spark"),
        (files, "spark"),
        ([f"{folder}/2024*", *files[2:]], "spark"),
        (spark.read.parquet(str(folder)), None),
        (spark.read.parquet(*files).filter("x >= 0"), None),
        (spark.read.parquet(files[0]).union(spark.read.parquet(*files[1:])), None),
    ]


@pytest.mark.parametrize("how", [os.symlink, os.link], ids=["symbolic", "hard"])
def test_a_link_beside_its_file(spark, folder, how):
    """Folders, patterns, addresses of this machine, lists and data frames, before anything is charged."""
    for frame, engine in tables(spark, folder):
        assert open_source(frame, SCHEMA, engine=engine).n_rows == 120
    how(folder / "2024-12.parquet", folder / "latest.parquet")
    ledger = sp.Ledger(limit=1)
    for frame, engine in tables(spark, folder):
        with pytest.raises(
            ParameterError, match=r"2024-12\.parquet' and '.*latest\.parquet' are one file by two names"
        ):
            sp.KDTreeSynthesizer(1).fit(frame, SCHEMA, ledger=ledger, engine=engine)
    assert not ledger.events


def test_lists_that_name_a_file_twice(spark, folder):
    """Spark itself reads such a file twice and names it once."""
    file = str(folder / "2024-11.parquet")
    for paths in ([file, file], [file, folder], [f"{folder}/*11.parquet", f"{folder}/2024*"]):
        with pytest.raises(ParameterError, match=r"2024-11\.parquet' is named twice"):
            open_source(paths, SCHEMA, engine="spark")
    assert open_source([file, folder / "2024-12.parquet"], SCHEMA, engine="spark").n_rows == 120


def test_one_table_in_two_forms(spark, folder):
    (folder / "2024-12.pq").write_bytes((folder / "2024-12.parquet").read_bytes())
    for frame, engine in ((f"{folder}/*-1*", "spark"), (spark.read.parquet(f"{folder}/*.p*"), None)):
        with pytest.raises(ParameterError, match="look like one table in two forms"):
            open_source(frame, SCHEMA, engine=engine)


def test_partitions_by_two_names(spark, folder):
    """A partition under a second name would be read twice."""
    (folder / "year=2024").mkdir()
    for path in list(folder.glob("*.parquet")):
        path.rename(folder / "year=2024" / path.name)
    os.symlink("year=2024", folder / "year=2025")
    schema = sp.Schema({**SCHEMA, "year": sp.Integer(2000, 2050)})
    with pytest.raises(ParameterError, match=r"year=2024/2024-11\.parquet' and '.*year=2025/2024-11\.parquet'"):
        open_source(folder, schema, engine="spark")
