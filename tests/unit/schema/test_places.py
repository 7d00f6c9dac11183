"""Places in a schema: what can be one, the shapes that they may lie within, and how both are written down."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.path import Path as PolygonPath

import spinney as sp
from spinney.errors import SchemaError
from spinney.grid.axes import place_axis
from spinney.schema.places import suggested_places
from spinney.schema.shapes import MOST_MASK_CELLS
from spinney.schema.template import read_schema
from support.in_one_test import in_one_test

COLUMNS = {
    "lon": sp.Real(-10, 5),
    "lat": sp.Real(49, 62),
    "height": sp.Integer(0, 500),
    "kind": sp.Category(["a", "b"]),
    "ok": sp.Boolean(),
    "id": sp.Identifier(),
    "born": sp.Date("2000-01-01", "2020-01-01"),
}
SQUARE = [(-5, 50), (0, 50), (0, 56), (-5, 56)]
HOLE = [(-3, 52), (-2, 52), (-2, 53), (-3, 53)]


def schema_with(*places, rules=()):
    return sp.Schema(COLUMNS, places=places, rules=rules)


def raster_of(schema):
    return place_axis(schema.places[0], schema).raster


# ------------------------------------------------------------------------------------------------------ bad input


@in_one_test(
    ("make", "words"),
    [
        (sp.Place, "two or three columns, and 0"),
        (lambda: sp.Place("lon"), "two or three columns, and 1"),
        (lambda: sp.Place("a", "b", "c", "d"), "two or three columns, and 4"),
        (lambda: sp.Place("lon", "lon"), "named twice"),
        (lambda: sp.Place("lon", 3), "not the name of a column"),
        (lambda: schema_with(sp.Place("lon", "latt")), "'latt' is not in the schema; did you mean 'lat'"),
        (lambda: schema_with(sp.Place("lon", "kind")), "'kind' is of type category"),
        (lambda: schema_with(sp.Place("lon", "ok")), "'ok' is of type boolean"),
        (lambda: schema_with(sp.Place("lon", "id")), "'id' is of type identifier"),
        (lambda: schema_with(sp.Place("lon", "lat"), sp.Place("lat", "height")), "'lat' is in two places"),
        (lambda: schema_with(sp.Place("lon", "lat"), sp.Place("lat", "lon")), "in two places"),
        (lambda: sp.Schema(COLUMNS, places=sp.Place("lon", "lat")), "not a list of places"),
        (lambda: sp.Schema(COLUMNS, places=["lon", "lat"]), "'lon' is not a place"),
        (lambda: sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1), "x, y": sp.Boolean()}, places=[sp.Place("x", "y")]),
         "a column has that name too"),
        (lambda: sp.Place("lon", "lat", within=[(0, 0), (1, 1)]), "2 different points; give at least three"),
        (lambda: sp.Place("lon", "lat", within=[(0, 0), (1, 1), (0, 0)]), "2 different points"),
        (lambda: sp.Place("lon", "lat", within=[]), "not a polygon"),
        (lambda: sp.Place("lon", "lat", within=[(0, 0), (1, 1), (np.nan, 3)]), "nan is not a coordinate"),
        (lambda: sp.Place("lon", "lat", within=[(0, 0), (1, 1), (np.inf, 3)]), "inf is not a coordinate"),
        (lambda: sp.Place("lon", "lat", within=[(0, 0), (1, 1), ("a", 3)]), "is not a point"),
        (lambda: sp.Place("lon", "lat", within=[(0, 0), (1, 1), (3,)]), "is not a point"),
        (lambda: sp.Place("lon", "lat", within=7), "not a polygon"),
        (lambda: sp.Place("lon", "lat", within=np.ones((2, 2, 2), dtype=bool)), "3 dimensions, and the place has 2"),
        (lambda: sp.Place("lon", "lat", within=np.ones(4, dtype=bool)), "1 dimensions, and the place has 2"),
        (lambda: sp.Place("lon", "lat", "height", within=SQUARE), "2 dimensions, and the place has 3"),
        (lambda: sp.Place("lon", "lat", within=[[True, False], [True]]), "not equally long"),
        (lambda: sp.Place("lon", "lat", within=["01", "2x"]), "written in 0 and 1"),
        (lambda: sp.Place("lon", "lat", within={"type": "Point", "coordinates": [0, 0]}), "'Point' is no shape"),
        (lambda: sp.Place("lon", "lat", within="no such file.geojson"), "cannot read the shape"),
        (lambda: schema_with(sp.Place("lon", "lat", within=[(50, 0), (60, 0), (60, 9)])), "holds no point within"),
        (lambda: schema_with(sp.Place("lon", "lat", within=np.zeros((3, 3), dtype=bool))), "holds no point within"),
        (lambda: schema_with(sp.Place("lon", "born", within=SQUARE)), "within needs bounds of column 'born'"),
        (lambda: sp.Schema({"x": sp.Real(bounds="private"), "y": sp.Real(0, 1)},
                           places=[sp.Place("x", "y", within=SQUARE)]), "state its low and high"),
        (lambda: schema_with(sp.Place("lon", "height"), rules=[sp.AtMost("lon", "lat")]), "rules cannot be about"),
    ],
)  # fmt: skip
def test_what_is_no_place_is_refused(make, words):
    """One column, four, a category, two places for a column, shapes that are none: each with what to type instead."""
    with pytest.raises(SchemaError, match=words):
        make()


def test_a_mask_has_a_limit():
    with pytest.raises(SchemaError, match="make it coarser"):
        sp.Place("lon", "lat", within=np.ones((MOST_MASK_CELLS // 1000 + 1, 1000), dtype=bool))


# ----------------------------------------------------------------------------------------------- writing it down


@pytest.mark.parametrize(
    "place",
    [
        sp.Place("lon", "lat"),
        sp.Place("lat", "lon", "height"),
        sp.Place("lon", "born"),
        sp.Place("lon", "lat", within=SQUARE),
        sp.Place("lon", "lat", within=[SQUARE, HOLE]),
        sp.Place("lon", "lat", within=np.eye(5, 7, dtype=bool)),
        sp.Place("lon", "lat", "height", within=np.ones((2, 3, 4), dtype=bool)),
    ],
    ids=repr,
)
def test_a_schema_with_a_place_survives_writing(place, tmp_path):
    """As plain data, as TOML and as a file; another place is another schema."""
    schema = schema_with(place)
    assert sp.Schema.from_dict(schema.to_dict()) == schema
    assert sp.Schema.from_toml(schema.to_toml()) == schema
    schema.to_file(tmp_path / "schema.toml")
    assert sp.Schema.from_file(tmp_path / "schema.toml") == schema
    assert schema != sp.Schema(COLUMNS)
    assert "Place(" in repr(schema)


GEOJSON = {
    "type": "FeatureCollection",
    "features": [
        {"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [
            [[x, y] for x, y in [*SQUARE, SQUARE[0]]], [[x, y] for x, y in [*HOLE, HOLE[0]]],
        ]}},
    ],
}  # fmt: skip


def test_shapes_come_from_files_beside_the_schema(tmp_path):
    """GeoJSON of polygons with holes, and masks; the schema that is read holds the shape itself."""
    (tmp_path / "city.geojson").write_text(json.dumps(GEOJSON))
    np.save(tmp_path / "mask.npy", np.eye(4, dtype=bool))
    text = sp.Schema(COLUMNS).to_toml() + '[[places]]\ncolumns = ["lon", "lat"]\nwithin = "{}"\n'
    for name, within in (("city.geojson", [SQUARE, HOLE]), ("mask.npy", np.eye(4, dtype=bool))):
        (tmp_path / "schema.toml").write_text(text.format(name))
        schema = sp.Schema.from_file(tmp_path / "schema.toml")
        assert schema.places == (sp.Place("lon", "lat", within=within),)
        assert sp.Place("lon", "lat", within=tmp_path / name) == schema.places[0]
        assert read_schema(tmp_path / "schema.toml").schema == schema
    several = {"type": "MultiPolygon", "coordinates": [[SQUARE], [HOLE]]}
    assert sp.Place("lon", "lat", within=several) == sp.Place("lon", "lat", within=[SQUARE, HOLE])


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.geojson", b"{", "neither GeoJSON nor"),
        ("a.geojson", b"[1, 2]", "not GeoJSON of polygons"),
        ("a.npy", b"nothing", "not an .npy file"),
    ],
)
def test_files_that_hold_no_shape_are_refused(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SchemaError, match=words):
        sp.Place("lon", "lat", within=tmp_path / name)
    np.save(tmp_path / "whole.npy", np.ones((2, 2)))
    with pytest.raises(SchemaError, match="not booleans"):
        sp.Place("lon", "lat", within=tmp_path / "whole.npy")


def test_plain_data_open_no_file(tmp_path):
    """A release file holds plain data, and whoever wrote it must not have files opened."""
    (tmp_path / "city.geojson").write_text(json.dumps(GEOJSON))
    described = sp.Schema(COLUMNS).to_dict()
    described["places"] = [{"columns": ["lon", "lat"], "within": str(tmp_path / "city.geojson")}]
    with pytest.raises(SchemaError, match="read from schema files only"):
        sp.Schema.from_dict(described)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('columns = ["lon"]', "place 1: Place takes two or three"),
        ('columns = "lon"', "place 1: the entry needs a list of columns"),
        ('columns = ["lon", "lat"]\nwithn = []', "'withn' is not an option of a place.*did you mean 'within'"),
        ('columns = ["lon", "town"]', "'town' is not in the schema"),
        ('columns = ["lon", "lat"]\nwithin = "missing.geojson"', "cannot read the shape"),
    ],
)
def test_faults_of_a_schema_file_name_the_place(tmp_path, lines, words):
    """By `from_file`, which stops at the first, and by `check`, which lists all."""
    (tmp_path / "schema.toml").write_text(f"{sp.Schema(COLUMNS).to_toml()}[[places]]\n{lines}\n")
    with pytest.raises(SchemaError, match=words):
        sp.Schema.from_file(tmp_path / "schema.toml")
    reading = read_schema(tmp_path / "schema.toml")
    assert reading.schema == sp.Schema(COLUMNS)
    assert len(reading.faults) == 1
    with pytest.raises(SchemaError, match=words):
        raise SchemaError(reading.faults[0])


def test_variables_stand_where_their_first_column_does():
    """A place is one variable; identifiers are none."""
    schema = schema_with(sp.Place("lat", "lon"), sp.Place("height", "born"))
    assert list(schema._variables) == ["lat, lon", "height, born", "kind", "ok"]
    assert schema._with_bounds({}).places == schema.places


# ------------------------------------------------------------------------------------------------------- shapes


@settings(max_examples=12, derandomize=True, deadline=None)
@given(st.integers(0, 10**6), st.integers(3, 12))
def test_points_are_inside_by_the_even_odd_rule(seed, n_points):
    """As matplotlib has it for a simple polygon, and no part that is called uncrossed is crossed."""
    rng = np.random.default_rng(seed)
    angles = np.sort(rng.uniform(0, 2 * np.pi, n_points))
    ring = np.stack([-2 + 4 * np.cos(angles), 55 + 4 * np.sin(angles)], axis=1) * 1.0
    if len(np.unique(ring, axis=0)) < 3:
        return
    try:
        raster = raster_of(schema_with(sp.Place("lon", "lat", within=ring)))
    except SchemaError:  # a sliver between the points of the raster
        return
    points = np.stack([rng.uniform(-10, 5, 4000), rng.uniform(49, 62, 4000)], axis=1)
    is_inside = raster.holds(points)
    assert (is_inside == PolygonPath(ring).contains_points(points)).all()
    part = tuple(np.searchsorted(edges, points[:, k], side="right") - 1 for k, edges in enumerate(raster.edges))
    is_clear = ~raster.is_crossed[part]
    assert (is_inside == raster.is_inside[part])[is_clear].all()
    assert is_clear.mean() > 0.9


def test_holes_and_masks_agree():
    """A square with a hole, as polygons and as the mask of the same cells."""
    mask = np.zeros((15, 13), dtype=bool)
    mask[5:10, 1:7] = True
    mask[7:8, 3:4] = False
    one, other = (raster_of(schema_with(sp.Place("lon", "lat", within=w))) for w in ([SQUARE, HOLE], mask))
    assert one.n_inside == other.n_inside
    assert (one.is_inside == other.is_inside).all()
    points = np.random.default_rng(0).uniform([-10, 49], [5, 62], (5000, 2))
    assert (one.holds(points) == other.holds(points)).all()
    share = one.measure(np.array([[-10.0, 49.0]]), np.array([[5.0, 62.0]])) / one.is_inside.size
    assert share == pytest.approx(29 / 195, rel=0.01)


def test_whole_numbers_are_inside_where_their_value_is():
    """Every raster part of a coarse column is a value, and steps are looked at as they will be drawn."""
    columns = {"x": sp.Integer(0, 10), "y": sp.Integer(0, 100, multiple_of=10)}
    schema = sp.Schema(columns, places=[sp.Place("x", "y", within=[(2.5, 15), (7.5, 15), (7.5, 55), (2.5, 55)])])
    raster = raster_of(schema)
    inside = {(raster.centres[0][i], raster.centres[1][j]) for i, j in np.argwhere(raster.is_inside)}
    assert inside == {(x, y) for x in range(3, 8) for y in (20, 30, 40, 50)}


# ------------------------------------------------------------------------------------------------------ templates


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["id", "lon", "lat"], [("lon", "lat")]),
        (["lat", "long"], [("long", "lat")]),
        (["Longitude", "Latitude"], [("Longitude", "Latitude")]),
        (["X", "Y", "Z"], [("X", "Y", "Z")]),
        (["easting", "northing", "x"], [("easting", "northing")]),
        (["pickup_x", "pickup_y", "dropoff_x", "dropoff_y"], [("pickup_x", "pickup_y"), ("dropoff_x", "dropoff_y")]),
        (["dropoff_longitude", "dropoff_latitude"], [("dropoff_longitude", "dropoff_latitude")]),
        (["start lng", "start lat", "end lng"], [("start lng", "start lat")]),
        (["x1", "y1", "x2", "y2"], [("x1", "y1"), ("x2", "y2")]),
        (["tax", "tay", "longest", "latest", "x"], []),
    ],
)
def test_names_suggest_places(names, expected):
    assert suggested_places(names) == expected


def test_a_template_suggests_places_of_numbers():
    """As a comment to be uncommented; not of columns that hold texts."""
    text = sp.Schema.template(pa.schema([("lon", pa.float64()), ("lat", pa.float64()), ("x", pa.string())]))
    assert 'as their names suggest, they are a place:\n# [[places]]\n# columns = ["lon", "lat"]\n' in text
    stated = (
        text.replace("# low = ", "low = 0")
        .replace("# high = ", "high = 1")
        .replace('# values = ["", ""]', 'values = ["a"]')
    )
    stated = stated.replace("# [[places]]\n# columns", "[[places]]\ncolumns")
    assert sp.Schema.from_toml(stated).places == (sp.Place("lon", "lat"),)
    assert "# [[places]]\n# columns" not in sp.Schema.template(pa.schema([("x", pa.string()), ("y", pa.string())]))
