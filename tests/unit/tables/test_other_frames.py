"""Ibis tables and Dask frames: the same cells as in memory, and their errors kept to themselves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import InputError, ParameterError, SchemaError
from spinney.grid.lattice import tree_lattice
from spinney.tables.open import open_source
from support.cell_counts import same_cells
from support.error_chains import chain

SCHEMA = sp.Schema(
    {
        "x": sp.Real(0, 1),
        "n": sp.Integer(0, 9, nullable=True),
        "k": sp.Category(["a", "b"]),
        "t": sp.Datetime("2020-01-01", "2021-01-01"),
    }
)


def make_table() -> pa.Table:
    rng = np.random.default_rng(0)
    moments = rng.integers(1_577_836_800, 1_609_459_200, 500).astype("datetime64[s]").astype("datetime64[us]")
    numbers = pa.array(rng.integers(0, 10, 500), mask=rng.random(500) < 0.2)
    return pa.table({"x": rng.random(500), "n": numbers, "k": rng.choice(["a", "b"], 500), "t": moments})


TABLE = make_table()


def ibis_table():
    import ibis

    connection = ibis.polars.connect()
    connection.create_table("t", TABLE)
    return connection.table("t").filter(lambda table: table.x >= 0)


def dask_frame():
    import dask.dataframe

    return dask.dataframe.from_pandas(TABLE.to_pandas(types_mapper=pd.ArrowDtype), npartitions=3)


def broken_ibis_table():
    import ibis

    return ibis_table().mutate(n=(ibis._.k + "SECRET").cast("int64"))


def broken_dask_frame():
    def stumble(part):
        raise ValueError(f"cannot convert {part.k.iloc[0]}SECRET")

    frame = dask_frame()
    return frame.map_partitions(stumble, meta=frame._meta)


@pytest.mark.parametrize(("make", "out"), [(ibis_table, pa.Table), (dask_frame, pd.DataFrame)])
def test_the_same_cells_and_rows(make, out):
    """Counts, releases and types; a frame that does not fit is refused before it is computed."""
    frame = make()
    source = open_source(frame, SCHEMA)
    lattice = tree_lattice(SCHEMA)
    found, expected = source.count_cells(lattice), open_source(TABLE, SCHEMA).count_cells(lattice)
    assert source.n_rows == 500
    assert same_cells(found, expected)
    rows = [
        sp.ForestSynthesizer(3)
        .fit(table, SCHEMA, entropy=sp.UnsafeSeededEntropy(1))
        .sample(20, seed=1, frame="pyarrow")
        for table in (frame, TABLE)
    ]
    assert rows[0].equals(rows[1])
    assert isinstance(sp.synthesize(frame, SCHEMA, n_rows=3, engine="memory"), out)
    with pytest.raises(SchemaError, match="columns 'x', 'k' and 't' are in the table but not in the schema"):
        open_source(frame, sp.Schema({"n": SCHEMA["n"]}))
    with pytest.raises(ParameterError, match="does not work with"):
        open_source(frame, SCHEMA, engine="polars")


@pytest.mark.parametrize(
    ("make", "compute", "what"),
    [
        (broken_ibis_table, lambda table: table.to_pyarrow(), "the Ibis table"),
        (broken_dask_frame, lambda frame: frame.compute(), "the Dask frame"),
    ],
)
def test_what_their_errors_quote_stays_out(make, compute, what):
    """A query that fails may quote the data; our error names the kind of failure, and quotes nothing."""
    frame = make()
    with pytest.raises(Exception, match="SECRET") as theirs:
        compute(frame)
    source = open_source(frame, SCHEMA)
    with pytest.raises(InputError, match=rf"{what} could not be computed \({theirs.type.__name__}\)") as ours:
        source.count_cells(tree_lattice(SCHEMA))
    assert "SECRET" not in str(ours.value)
    assert chain(ours.value) == [ours.value]
