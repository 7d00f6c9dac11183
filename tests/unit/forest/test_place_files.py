"""Files of forests with places that were forged: regions, stages and axes that are not those of a fit."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import FileError
from spinney.release.file import to_arrow
from support.ring_road import fitted, within


def forged(path, out, change):
    """The file with its regions changed, and whatever the card says of them."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    described = json.loads(members["card.json"])
    regions = pa.ipc.open_file(pa.BufferReader(members["places.arrow"])).read_all().to_pydict()
    change(described, regions)
    table = pa.table(
        {
            "place": pa.array(regions["place"], pa.string()),
            "code": pa.array(regions["code"], pa.uint64()),
            "depth": pa.array(regions["depth"], pa.int32()),
            "weights": pa.array(regions["weights"], pa.float64()),
            "states": pa.array(regions["states"], pa.int32()),
        }
    )
    members |= {"card.json": json.dumps(described).encode(), "places.arrow": to_arrow(table)}
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out


def drop_last(described, regions):
    for values in regions.values():
        values.pop()
    described["card"]["released"]["regions"] -= 1


def without_part(stage):
    def change(described, regions):
        del regions
        (event,) = (event for event in described["card"]["events"] if event["event"] == "ComposedRelease")
        event["parts"] = [part for part in event["parts"] if part["stage"] != stage]

    return change


def fewer_levels(described, regions):
    del regions
    (event,) = (event for event in described["card"]["events"] if event["event"] == "ComposedRelease")
    for part in event["parts"]:
        if part["stage"] == "regions":
            part["levels"] = 3


def other_axis(described, regions):
    del regions
    described["places"][0]["axes"][0]["high"] = 12.0


def set_at(field, place, value):
    return lambda _, regions: regions[field].__setitem__(place, value)


FORGERIES = {
    "no regions left out": (drop_last, "leave out a part|inconsistent"),
    "one moved": (lambda _, regions: regions["code"].__setitem__(3, regions["code"][2]), "nodes out of order"),
    "one deeper": (set_at("depth", 2, 60), "deeper than the lattice"),
    "a negative weight": (set_at("weights", 0, -1.0), "out of range"),
    "weights of another total": (set_at("weights", 0, 10.0**6), "do not add up to noisy_total"),
    "states out of order": (set_at("states", -1, 0), "out of order"),
    "a state more": (lambda _, regions: regions["states"].__setitem__(-1, regions["states"][-1] + 1), "inconsistent"),
    "another place": (set_at("place", 0, "a, b"), "leave out a part|not in the schema"),
    "other columns": (lambda d, _: d["places"][0].__setitem__("columns", ["y", "x"]), "not those of the card"),
    "another axis": (other_axis, "does not fit the column"),
    "no places": (lambda d, _: d.pop("places"), "not those of the card"),
    "unpaid shape": (without_part("regions"), "fewer places were paid for|no charge pays for regions"),
    "unpaid counts": (without_part("places"), "pays for places|fewer places"),
    "fewer levels": (fewer_levels, "fewer levels"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_places_are_refused(name, tmp_path):
    """Regions that no tree could have made, weights and states that do not fit, what was never paid for."""
    change, words = FORGERIES[name]
    fitted().save(tmp_path / "true.spinney")
    forged(tmp_path / "true.spinney", tmp_path / "same.spinney", lambda *_: None)
    assert sp.load(tmp_path / "same.spinney").sample(5, seed=1).equals(fitted().sample(5, seed=1))
    with pytest.raises(FileError, match=words):
        sp.load(forged(tmp_path / "true.spinney", tmp_path / "forged.spinney", change))


def test_regions_in_the_lake_are_refused(tmp_path):
    """A file cannot put a region where its own schema says that there is none."""
    within().save(tmp_path / "lake.spinney")
    axis = within().release_.places["x, y"].axis

    def move(described, regions):
        del described
        codes = np.arange(1 << 12, dtype=np.uint64)[:, None] << np.uint64(52)
        outside = codes[~axis.is_possible(codes, np.full(len(codes), 12))]
        regions["code"][0], regions["depth"][0] = int(outside[0, 0]), 12

    with pytest.raises(FileError, match=r"where no row can be|out of order"):
        sp.load(forged(tmp_path / "lake.spinney", tmp_path / "forged.spinney", move))
