"""Old files must still load: release files of every version give the samples, or numbers, that were recorded."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

import spinney as sp
from spinney.grid.axes import place_axis
from support.handmade_leaves import release_by_hand
from support.in_one_test import in_one_test
from support.small_forests import chain

FOLDER = Path(__file__).parent
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def make():
    """The script that made the files, for its summary."""
    specification = importlib.util.spec_from_file_location("golden_make", FOLDER / "make.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@in_one_test("name", EXPECTED)
def test_a_golden_file_samples_as_recorded(name, make):
    """Card, bins and seeded samples by every placement are exactly what they were; of moments, every number."""
    assert make.summary(sp.load(FOLDER / name)) == EXPECTED[name]


def test_every_file_is_recorded():
    """No golden file without a record, no record without a file, and the first version is among them."""
    assert {path.name for path in FOLDER.glob("*.spinney")} == set(EXPECTED)
    assert sum(name.startswith("v1-") for name in EXPECTED) >= 4


@in_one_test("name", EXPECTED)
def test_a_golden_file_can_be_saved_again(name, make, tmp_path):
    """An old release, saved by this version, is the same release."""
    sp.load(FOLDER / name).save(tmp_path / "again")
    assert make.summary(sp.load(tmp_path / "again")) == EXPECTED[name]


@in_one_test("name", EXPECTED)
def test_golden_files_are_branded(name):
    """Their noise is seeded, and every one of them says so."""
    card = sp.load(FOLDER / name).card
    assert not card.is_private
    assert "NOT PRIVATE" in str(card)


@pytest.mark.parametrize("name", [name for name in EXPECTED if "forest" in name])
def test_golden_forests_can_be_drawn_from(name):
    """Rows of an old forest keep to its schema and rules, conditions and balance included."""
    release = sp.load(FOLDER / name)
    rows = release.sample(300, seed=5, frame="polars")
    assert rows.columns == list(release.schema)
    n_inner = sum(len(place.columns) - 1 for place in release.schema.places)
    assert len(release.explain().columns) == len(release.schema) - n_inner
    if name.endswith("forest-places.spinney"):
        points = rows.select("lon", "lat").drop_nulls().to_numpy()
        assert 20 < 300 - len(points) < 60
        assert place_axis(release.schema.places[0], release.schema).raster.holds(points).all()
        assert (rows["n"] % 3 == 0).all()
        return
    if name.endswith("forest-steps.spinney"):
        assert (rows["amount"] % 100 == 0).mean() > 0.9
        assert (rows["price"].drop_nulls() * 2 % 1 == 0).mean() > 0.9
        assert (rows["day"].dt.weekday() < 6).mean() > 0.95
        return
    if name.endswith("forest-pure.spinney"):
        assert rows.to_numpy().min() >= 0
        assert rows.to_numpy().max() <= 1
        assert (rows.mean().to_numpy() < 0.4).all()  # of a beta law with mean 2/7
        return
    if name.endswith("forest-products.spinney"):
        wrens = release.sample(300, seed=5, where={"species": "wren"}, balance={"is_female": 0.5}, frame="polars")
        assert (wrens["species"] == "wren").all()
        assert wrens["is_female"].sum() == 150
        return
    assert (rows["weight"].is_null() == rows["eggs"].is_null()).all()
    assert 30 < rows["eggs"].null_count() < 120
    assert (rows["eggs"] <= rows["age"]).fill_null(value=True).all()
    assert ((rows["length"] * 2) % 1 == 0).all()
    assert rows["ring"].to_list() == [f"R-{row:06}" for row in range(1, 301)]
    assert abs(rows["length"].mean() - 10) < 1
    chosen = release.sample(400, seed=5, frame="polars", where={"species": "wren"}, balance={"is_female": 0.5})
    assert set(chosen["species"]) == {"wren"}
    assert abs(chosen["is_female"].mean() - 0.5) < 0.08


@pytest.mark.parametrize("name", [name for name in EXPECTED if "people" in name])
def test_golden_persons_can_be_drawn_from(name):
    """Persons of an old file have their rows, in order, none after the last, under conditions too."""
    release = sp.load(FOLDER / name)
    if name.endswith("flat.spinney"):
        rows = release.sample(300, seed=5, frame="pandas", where={"#": (2, 6)})
        assert (rows.groupby("bird").size().between(2, 6)).all()
        is_last = ~rows.duplicated("bird", keep="last")
        assert not ((rows["seen"] == "dead") & ~is_last).any()
    else:
        drawn = release.sample(300, seed=5, frame="pandas", where={"birds.is_ringed": True})
        rows = drawn["sightings"]
        assert drawn["birds"]["is_ringed"].all()
        assert set(rows["bird"]) <= set(drawn["birds"]["name"])
    assert (rows.groupby("bird", sort=False)["day"].diff().dropna() >= 0).all()
    assert abs(rows["weight"].mean() - 13) < 2


def test_the_summary_notices_changes(make, release_of):
    """One count or one step more is another summary: the comparison above can fail."""
    schema = sp.Schema({"x": sp.Real(0, 1), "n": sp.Integer(0, 9)})
    one, other = (release_of(schema, {"00": 10, "11": n}) for n in (10, 11))
    assert make.summary(one) != make.summary(other)
    assert make.summary(one) == make.summary(one)
    one, other = (chain(4, agreement=how) for how in (0.3, 0.4))
    assert make.summary(one) != make.summary(other)
    assert make.summary(one) == make.summary(one)
    one, other = (release_by_hand(schema, {"0": [5, 1, 0], "1": [7, 0, n]}) for n in (1, 2))
    assert make.summary(one) != make.summary(other)
    assert make.summary(one) == make.summary(one)
