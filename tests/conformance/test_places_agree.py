"""Places: every engine counts the same cells of them and finds the same states of rows, so releases are equal."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import spinney as sp
from spinney.counting.states import RegionCut, states_array
from spinney.errors import InputError
from spinney.grid.axes import place_axis
from spinney.grid.codes import interleave
from spinney.tables.engines.memory import count_cells, state_rows
from spinney.tables.frames import open_table
from support.cell_counts import same_cells
from support.hard_values import collect, compiled_cells, duckdb_rows, polars_rows, spark_frame, spark_rows

N = 3000
COLUMNS = {
    "lon": sp.Real(-3, 2, nullable=True),
    "lat": sp.Real(50, 53.5, multiple_of=0.001),
    "e": sp.Integer(0, 700_000),
    "d": sp.Date("2019-01-01", "2021-01-01", nullable=True),
    "h": sp.Integer(-50, 1400, multiple_of=10, nullable=True),
    "kind": sp.Category(["a", "b"]),
}
HEXAGON = [(-2, 50.5), (0, 50.1), (1.5, 51), (1.5, 52.5), (0, 53), (-2, 52.5)]
PLACES = (sp.Place("lon", "lat"), sp.Place("e", "d", "h"))
SCHEMA = sp.Schema(COLUMNS, places=PLACES)


def table() -> pa.Table:
    rng = np.random.default_rng(1)
    lon = rng.normal(0, 0.6, N)
    return pa.table(
        {
            "lon": pa.array(np.clip(lon, -4, 3), mask=rng.random(N) < 0.1),
            "lat": 51.5 + rng.normal(0, 0.5, N),
            "e": rng.integers(-5, 700_005, N),
            "d": pa.array(rng.integers(17_900, 18_700, N).astype(np.int32), mask=rng.random(N) < 0.2).cast(pa.date32()),
            "h": pa.array(rng.integers(-60, 1500, N), mask=rng.random(N) < 0.05),
            "kind": pa.array(np.where(lon > 0, "a", "b")),
        }
    )


def cut_of(place, n_states, seed):
    """Some nodes of the place's lattice, at any depth, in no order of states."""
    lattice = place_axis(place, SCHEMA).lattice
    rng = np.random.default_rng(seed)
    # Where rows are, so that states differ there.
    codes = interleave(compiled_cells(table(), SCHEMA, lattice)[:n_states], lattice)[:, 0]
    cells = (codes >> np.uint64(64 - lattice.depth)).astype(np.int64)
    shift = rng.integers(0, lattice.depth - 1, n_states)
    first = np.unique(np.append(cells >> shift << shift, 0))
    return RegionCut(lattice, first, np.unique(np.arange(len(first)) * 7 % 11, return_inverse=True)[1])


CUTS = [cut_of(PLACES[0], 40, 1), cut_of(PLACES[1], 25, 2)]


@pytest.fixture(params=["polars", "duckdb", "spark"])
def rows(request, tmp_path):
    if request.param == "spark":
        return spark_rows(request.getfixturevalue("spark"), table(), SCHEMA, tmp_path)
    return {"polars": polars_rows, "duckdb": duckdb_rows}[request.param](table(), SCHEMA)


def test_cells_of_places_are_counted_with_those_of_columns(rows):
    """Two and three columns, with nulls and steps, in one query."""
    lattices = [place_axis(place, SCHEMA).lattice for place in PLACES]
    assert all(lattice.depth <= 62 for lattice in lattices)
    answer = collect(rows.column_counts(lattices))
    for lattice, got in zip(lattices, rows.read_columns(lattices, answer), strict=True):
        assert same_cells(got, count_cells(open_table(table(), SCHEMA), lattice))


def test_states_of_places_are_found_by_comparisons(rows):
    """Walking down the nodes gives the state that the code of the cell has."""
    expected = state_rows(open_table(table(), SCHEMA), CUTS)
    assert len(np.unique(expected.true_states[0])) > 8
    got = states_array(CUTS, N)
    rows.read_states(got, collect(rows.states(CUTS, got.true_states.dtype)))
    in_order = got.true_states[:, np.lexsort(got.true_states[::-1])]
    np.testing.assert_array_equal(in_order, expected.true_states[:, np.lexsort(expected.true_states[::-1])])


def test_states_of_places_are_those_of_the_code():
    """Cell by cell, by the definition: the last stair that does not begin after the cell."""
    for cut, got in zip(CUTS, state_rows(open_table(table(), SCHEMA), CUTS).true_states, strict=True):
        codes = interleave(compiled_cells(table(), SCHEMA, cut.lattice), cut.lattice)[:, 0]
        cells = (codes >> np.uint64(64 - cut.lattice.depth)).astype(np.int64)
        np.testing.assert_array_equal(got, cut.states[np.searchsorted(cut.first, cells, side="right") - 1])


@pytest.mark.parametrize("kind", ["parquet", "csv", "duckdb", "polars", "dataset", "spark"])
def test_releases_are_equal_by_every_engine(kind, tmp_path, request):
    """Under the same noise, with a shape: every byte of the release, whatever reads the rows."""
    schema = sp.Schema(COLUMNS, places=[sp.Place("lon", "lat", within=HEXAGON), PLACES[1]])
    path = tmp_path / "rows.parquet"
    pq.write_table(table(), path, row_group_size=700)
    if kind == "duckdb":
        given = pytest.importorskip("duckdb").read_parquet(str(path))
    elif kind == "polars":
        given = pytest.importorskip("polars").scan_parquet(path)
    elif kind == "dataset":
        given = pytest.importorskip("pyarrow.dataset").dataset(path)
    elif kind == "spark":
        given = spark_frame(request.getfixturevalue("spark"), table(), tmp_path)
    elif kind == "csv":
        given = tmp_path / "rows.csv"
        table().to_pandas().to_csv(given, index=False)
    else:
        given = path
    local, remote = (
        sp.ForestSynthesizer("2").fit(data, schema, entropy=sp.UnsafeSeededEntropy(3)).release_
        for data in (table(), given)
    )
    for label, place in local.places.items():
        other = remote.places[label]
        for field in ("codes", "depths", "weights", "states"):
            np.testing.assert_array_equal(getattr(place, field), getattr(other, field))
    assert local.looked_at == remote.looked_at
    for one, two in zip(local.model.potentials, remote.model.potentials, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_missing_coordinate_is_refused_by_name(rows, tmp_path):
    """A null where the schema allows none, before anything is spent."""
    del rows
    data = table().to_pandas()
    data.loc[7, "lat"] = np.nan
    ledger = sp.Ledger(limit=1, delta="1e-5")
    for given in (data, tmp_path / "rows.parquet"):
        if not isinstance(given, type(data)):
            data.to_parquet(given)
        with pytest.raises(InputError, match="'lat' holds a missing"):
            sp.ForestSynthesizer(1).fit(given, SCHEMA, ledger=ledger)
    assert ledger.spent == 0
