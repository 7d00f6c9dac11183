"""Maps: the regions of a place are drawn where they are, in the right proportions, and nothing outside a shape."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.collections import PolyCollection

import spinney as sp
from spinney.errors import ParameterError
from spinney.report.columns import map_aspect
from spinney.report.pictures import partition_figure, save_figure
from support.command_line import spinney

COLUMNS: dict[str, Any] = {
    "lon": sp.Real(-6, 2),
    "lat": sp.Real(50, 58),
    "px": sp.Real(0, 1000),
    "py": sp.Real(0, 4000),
    "kind": sp.Category(["a", "b"]),
}


@cache
def released(*places: sp.Place) -> sp.Release:
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "lon": rng.normal(-2, 0.5, 3000),
            "lat": rng.normal(53, 0.5, 3000),
            "px": rng.uniform(0, 1000, 3000),
            "py": rng.uniform(0, 4000, 3000),
            "kind": rng.choice(["a", "b"], 3000),
        }
    )
    return sp.ForestSynthesizer(2).fit(table, sp.Schema(COLUMNS, places=places)).release_


LAND = sp.Place("lon", "lat")


def test_regions_are_rectangles_where_they_are() -> None:
    release = released(LAND)
    figure = partition_figure(release)
    shades = next(part for part in figure.axes[0].collections if isinstance(part, PolyCollection))
    drawn = np.array([path.get_extents().extents for path in shades.get_paths()])
    place = release.places["lon, lat"]  # type: ignore[attr-defined]
    held = place.weights > 0
    assert np.allclose(drawn, np.hstack([place.low, place.low + place.length])[held])
    assert "regions" in figure.axes[0].get_title()
    assert figure.axes[0].get_aspect() == pytest.approx(1 / math.cos(math.radians(54)))


def test_maps_have_the_proportions_of_the_ground() -> None:
    """Degrees by the middle latitude, other places in equal units unless one column reaches much further."""
    release = released(LAND, sp.Place("px", "py"))
    assert map_aspect(release, "lon", "lat") == pytest.approx(1 / math.cos(math.radians(54)))
    assert map_aspect(release, "px", "py") == 1
    assert map_aspect(release, "px", "lat") is None
    numbers = {"longitude": sp.Real(-6, 2), "latitude": sp.Real(50, 58)}
    tree = sp.KDTreeSynthesizer(1).fit(np.random.default_rng(0).normal([-2, 53], 0.5, (500, 2)), sp.Schema(numbers))
    assert partition_figure(tree.release_).axes[0].get_aspect() == pytest.approx(1 / math.cos(math.radians(54)))
    far = {"x": sp.Real(0, 1), "y": sp.Real(0, 1e6)}
    for places in ([], [sp.Place("x", "y")]):
        wide = sp.KDTreeSynthesizer(1).fit(np.random.default_rng(0).random((500, 2)), sp.Schema(far, places=places))
        assert map_aspect(wide.release_, "x", "y") is None


def test_what_is_outside_the_shape_is_white(tmp_path: Path) -> None:
    within = [(-3, 52), (-1, 52), (-1, 54), (-3, 54)]
    figure = partition_figure(released(sp.Place("lon", "lat", within=within)))
    (cover,) = figure.axes[0].images
    alpha = np.asarray(cover.get_array())[..., 3]
    assert alpha.mean() == pytest.approx(1 - 4 / 64, abs=0.01)
    assert figure.axes[0].get_xlim() == (-6, 2)
    save_figure(figure, tmp_path / "map.png")
    turned = partition_figure(released(sp.Place("lon", "lat", within=within)), ["lat", "lon"])
    assert turned.axes[0].get_xlabel() == "lat"


def test_columns_of_a_map_are_those_of_a_place(tmp_path: Path) -> None:
    """One place is drawn without being asked for; of several, one is named."""
    both = released(LAND, sp.Place("px", "py"))
    with pytest.raises(ParameterError, match="choose two columns of lon,lat; px,py"):
        partition_figure(both)
    with pytest.raises(ParameterError, match="not two columns of a place"):
        partition_figure(both, ["lon", "kind"])
    with pytest.raises(ParameterError, match="not boxes of space"):
        partition_figure(released())
    both.save(tmp_path / "two.spinney")
    run = spinney("picture", tmp_path / "two.spinney", "--columns", "px,py", "--out", tmp_path / "map.svg")
    assert run.status == 0
    assert (tmp_path / "map.svg").exists()
    released(LAND).save(tmp_path / "one.spinney")
    assert spinney("picture", tmp_path / "one.spinney", "--out", tmp_path / "one.png").status == 0
