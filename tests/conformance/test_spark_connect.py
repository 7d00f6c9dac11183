"""Spark Connect: the same table through a server, over the same body of questions."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import narwhals as nw
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import InputError, SchemaError
from spinney.grid.lattice import Lattice, tree_lattice
from spinney.tables.engines.memory import count_cells
from spinney.tables.engines.spark import SparkSource
from spinney.tables.frames import open_table
from spinney.tables.open import open_source
from support.cell_counts import same_cells
from support.error_chains import chain, told
from support.hard_values import collect, hard_table, spark_frame

NEEDS = {
    "grpc": "grpcio",
    "grpc_status": "grpcio-status",
    "google.rpc.error_details_pb2": "googleapis-common-protos",
    "zstandard": "zstandard",
}


def _is_missing(module: str) -> bool:
    try:
        import_module(module)
    except ImportError:
        return True
    return False


@pytest.fixture(scope="module")
def connect(spark) -> Iterator[Any]:
    """A session over the wire, to a server in the Java process that the other Spark tests use."""
    missing = [package for module, package in NEEDS.items() if _is_missing(module)]
    if missing:
        pytest.skip(f"Spark Connect needs {', '.join(missing)}, not installed here")
    if int(spark.version.partition(".")[0]) < 4:
        pytest.skip(f"PySpark {spark.version} brings no Connect server; 4.0 does")
    from pyspark.sql.connect.session import SparkSession

    java = spark.sparkContext._jvm
    service = getattr(getattr(java, "org.apache.spark.sql.connect.service.SparkConnectService$"), "MODULE$")
    context = spark.sparkContext._jsc.sc()
    context.conf().set("spark.connect.grpc.binding.address", "127.0.0.1")
    context.conf().set("spark.connect.grpc.binding.port", "0")
    service.start(context)
    session = SparkSession.builder.remote(f"sc://127.0.0.1:{service.localPort()}").create()
    yield session
    session.stop()


def test_the_release_is_that_of_the_table_in_memory(connect, people, tmp_path):
    """A forest asks every kind of question, of columns of every type, nulls included."""
    schema = people[1]
    table = pa.Table.from_pandas(people[0], preserve_index=False).select(list(schema))
    frame = spark_frame(connect, table, tmp_path)
    assert isinstance(open_source(frame, schema), SparkSource)
    local, remote = (
        sp.ForestSynthesizer(epsilon=2, target="smoker").fit(data, schema, entropy=sp.UnsafeSeededEntropy(5)).release_
        for data in (people[0][list(schema)], frame)
    )
    assert remote.card.to_dict() == local.card.to_dict()
    assert remote.to_members() == local.to_members()


def test_difficult_values_are_in_the_same_cells(connect, tmp_path):
    """Literals and types take another way to Spark; codes and counts of a long lattice are those in memory."""
    table, schema = hard_table()
    lattice = Lattice(tree_lattice(schema).axes[1::2])
    got = SparkSource(spark_frame(connect, table, tmp_path), schema).count_cells(lattice)
    assert same_cells(got, count_cells(open_table(table, schema), lattice))


def test_cells_come_in_parts(connect):
    """Cells that outgrow the limit stay with the server, and come over as in the classic interface."""
    schema = sp.Schema({"x": sp.Real(0, 1, bits=20), "d": sp.Real(0, 1000, bits=20), "k": sp.Integer(0, 9)})
    frame = connect.range(20_000).selectExpr(
        "rand(1) AS x", "CAST(rand(2) * 1000 AS DECIMAL(20, 6)) AS d", "CAST(id % 10 AS DECIMAL(38, 18)) AS k"
    )
    lattice = tree_lattice(schema)
    got = SparkSource(frame, schema, memory_limit=1 << 20).count_cells(lattice)
    assert not got.true_codes.flags.owndata  # mapped
    assert same_cells(got, count_cells(open_table(collect(nw.from_native(frame)), schema), lattice))


def test_errors_quote_no_values(connect):
    """What the server says stays out of our message, and out of its chain."""
    schema = sp.Schema({"x": sp.Real(0, 1)})
    failing = connect.sql("SELECT CASE WHEN id > 5 THEN raise_error('4711') ELSE 0.5D END AS x FROM range(20)")
    with pytest.raises(InputError, match="Spark failed while checking values") as caught:
        SparkSource(failing, schema).check_values()
    assert "4711" not in told(caught.value)
    assert chain(caught.value) == [caught.value]
    with pytest.raises(SchemaError, match=r"'x' has type string.*does not fit real"):
        SparkSource(connect.sql("SELECT '4711' AS x"), schema)
