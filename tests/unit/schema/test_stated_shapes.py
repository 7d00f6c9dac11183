"""Shapes as people and files state them: what is none is refused by name, at once, whatever it is made of."""

from __future__ import annotations

import gc
import io
import json
import os
import weakref

import numpy as np
import pandas as pd
import pytest

import spinney as sp
from spinney.errors import SchemaError
from spinney.grid.axes import place_axis
from spinney.schema.shapes import MOST_POINTS

SQUARE = [(0, 0), (1, 0), (1, 1), (0, 1)]


def place(within):
    return sp.Place("x", "y", within=within)


def npy(header, body=b""):
    """An .npy file with a header as it is written here."""
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + body


def saved(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize("suffix", ["geojson", "npy"])
def test_what_is_no_plain_file_is_not_opened(tmp_path, suffix):
    """A pipe would be waited for without end, and a device might never end."""
    pipe = tmp_path / f"pipe.{suffix}"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, "/dev/zero"):
        with pytest.raises(SchemaError, match="not a file, so a shape cannot be read"):
            place(path)
        with pytest.raises(SchemaError, match="it is not a file"):
            sp.Schema.from_file(path)


@pytest.mark.parametrize("name", ["a\0b.geojson", "half \ud800.npy"])
def test_names_that_no_file_can_have(name):
    with pytest.raises(SchemaError, match=r"cannot read the shape .*no file can have that name"):
        place(name)
    with pytest.raises(SchemaError, match=r"cannot read the schema .*no file can have that name"):
        sp.Schema.from_file(name)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.geojson", json.dumps({"type": "FeatureCollection", "features": 5})),
        ("a.geojson", json.dumps({"type": "GeometryCollection", "geometries": "all"})),
        ("a.geojson", json.dumps({"type": "MultiPolygon", "coordinates": [5]})),
        ("a.geojson", json.dumps({"type": "MultiPolygon", "coordinates": [None]})),
        ("a.geojson", json.dumps({"type": "Polygon", "coordinates": [5]})),
        ("a.geojson", json.dumps({"type": "Polygon", "coordinates": None})),
        ("a.geojson", json.dumps({"type": ["Polygon"], "coordinates": []})),
        ("a.geojson", json.dumps({"type": "Feature", "geometry": [1]})),
        ("a.geojson", "[" * 100_000),
        ("a.npy", npy("{'descr': '|b1', 'fortran_order': False, 'shape': (2,")),
        ("a.npy", npy("{'descr': '|b1', 'fortran_order': False, 'shape': (1000000000000000, 2), }")),
        ("a.npy", npy("{'descr': '|b1', 'fortran_order': False, 'shape': (True, 2), }", b"\1\1")),
        ("a.npy", npy("{'descr': '|b1', 'fortran_order': False, 'shape': (-1, -2), }", b"\1\1")),
        ("a.npy", npy("{'descr': '|b1', 'fortran_order': False, 'shape': (0, 2), }")),
        ("a.npy", npy("{'descr': '|O', 'fortran_order': False, 'shape': (1, 2), }", b"\1\1")),
        ("a.npy", saved(np.ones((3, 3), dtype=bool))[:-1]),
        ("a.npy", saved(np.ones((1, 1, 1, 1), dtype=bool))),
        ("a.npy", b"\x93NUMPY"),
        ("a.npy", b""),
    ],
)
def test_files_of_no_shape_are_named(tmp_path, monkeypatch, name, content):
    """Half a header, sizes that no memory holds, numbers where lists belong: a SchemaError with the file's name."""
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SchemaError, match=f"the shape '{name}': "):
        place(name)


@pytest.mark.parametrize("order", ["C", "F"])
def test_masks_are_read_as_they_were_saved(tmp_path, order):
    mask = np.asarray(np.arange(12).reshape(3, 4) % 5 == 0, order=order)
    np.save(tmp_path / "mask.npy", mask)
    assert place(tmp_path / "mask.npy") == place(mask)


def test_what_holds_itself_is_refused():
    """Lists and collections without a bottom are not followed for ever."""
    alone: list = []
    alone.append(alone)
    rows: list = ["01"]
    rows.append(rows)
    collection: dict = {"type": "FeatureCollection"}
    collection["features"] = [collection]
    wide: dict = {"type": "FeatureCollection"}
    wide["features"] = [wide, {"type": "Polygon", "coordinates": [SQUARE]}] * 3
    for endless in (alone, rows, collection, wide):
        with pytest.raises(SchemaError, match="within"):
            place(endless)


def zigzag(n_points):
    """A polygon whose every side passes through nearly every row of a raster."""
    return [(0.0, 0.0), *((i / n_points, 0.9 if i % 2 else 0.1) for i in range(n_points - 2)), (1.0, 0.0)]


def test_polygons_have_a_limit_of_points():
    """Time goes with the points, of a forged release too, so that more are refused before any is looked at."""
    for many in (zigzag(MOST_POINTS + 1), [zigzag(MOST_POINTS // 2), zigzag(MOST_POINTS // 2 + 1)]):
        with pytest.raises(SchemaError, match="more than 20,000 points; simplify them"):
            place(many)
    assert place(zigzag(MOST_POINTS)).within.n_axes == 2


def test_few_rasters_are_kept():
    """The raster of a shape takes tens of megabytes: a program that states many shapes must not hold them all."""
    columns = {"x": sp.Real(0, 1), "y": sp.Real(0, 1)}
    made = [sp.Schema(columns, places=[place([(0, 0), (1, 0), (1, i / 9)])]) for i in range(1, 9)]
    rasters = [weakref.ref(place_axis(one.places[0], one).raster.is_inside) for one in made]
    gc.collect()
    assert sum(raster() is not None for raster in rasters) <= 4


class Broken:
    @property
    def __geo_interface__(self):
        raise RuntimeError("secret 123456")


@pytest.mark.parametrize(
    "private",
    [
        pd.DataFrame({"x": [123456.5], "y": [2.0]}),
        pd.Series([123456.5, 2.0, 3.0]),
        np.array([123456.5, 2.0, 3.0]),
        np.array([[123456.5, 2.0, 3.0, 4.0]] * 5),
        np.array(["2012-03-04"], dtype="datetime64[D]"),
        [pd.DataFrame({"x": [123456.5]})],
        [[pd.Series([123456.5])]],
        Broken(),
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_what_may_be_a_table_is_not_quoted(private):
    """Whoever passes the table itself reads what is wrong, and not its values, nor in the error before."""
    with pytest.raises(SchemaError) as caught:
        place(private)
    assert "123456" not in str(caught.value)
    assert "2012" not in str(caught.value)
    assert caught.value.__context__ is None
