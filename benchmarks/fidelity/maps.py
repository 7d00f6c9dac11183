"""Maps to ask range queries of: real ones from a folder that the user names, and a made-up one.

Each comes with bounds that anyone could state: of a country, a city, the world, or of the lattice it was published on.
At most 300,000 rows of a map are used, the same in every run. Places published as counts of cells are put anywhere in
their cell, evenly.

    uk_accidents.parquet       road accidents in Great Britain (lng, lat)
    world_cities.parquet       populated places of the world (lon, lat)
    nyc_taxi.parquet           taxi pick-ups in New York, in web-mercator metres (pickup_x, pickup_y)
    uber_pickups_nyc.parquet   pick-ups around New York, by cells of 1/10,000 degree (lon, lat, count)
    dpcomp_2d_256.npz          the lattices of 256 x 256 counts of DPBench, one map for each array in the file
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.fidelity.answers import Box, Points
from spinney.errors import FileError

MAX_ROWS = 300_000
GREAT_BRITAIN = Box((-8.65, 49.86), (1.77, 60.87))
WORLD = Box((-180, -90), (180, 90))
NEW_YORK_CITY = Box((-74.26, 40.49), (-73.69, 40.92))
AROUND_NEW_YORK = Box((-75, 39.5), (-72, 42.5))
_EARTH_RADIUS = 6_378_137.0  # of the web-mercator projection, metres
_LATTICES = "dpcomp_2d_256.npz"


@dataclass(frozen=True, slots=True)
class Map:
    """Points and their stated bounds."""

    name: str
    points: Points
    box: Box


def check_folder(folder: Path) -> None:
    """Raise unless a folder holds a map. Asked before any work begins."""
    if not any((folder / name).is_file() for name in (*_TABLES, _LATTICES)):
        raise FileError(f"--data {str(folder)!r} holds none of {', '.join((*_TABLES, _LATTICES))}")


def maps_in(folder: Path) -> Iterator[Map]:
    """The maps that a folder holds; what is missing is left out, and said."""
    for file, read in _TABLES.items():
        if (folder / file).is_file():
            yield read(folder / file)
        else:
            print(f"  {file} is not there: left out")
    if (folder / _LATTICES).is_file():
        with np.load(folder / _LATTICES) as arrays:
            for name in sorted(arrays.files):
                yield _lattice(name, arrays[name])
    else:
        print(f"  {_LATTICES} is not there: left out")


def made_up_map(n_rows: int = 50_000) -> Map:
    """Towns of many sizes along two rivers, and a thin spread of farms."""
    rng = np.random.default_rng(0)
    along = rng.random(60)
    centres = np.where(rng.random((60, 1)) < 0.5, np.c_[along, along**2], np.c_[along, 0.9 - 0.6 * along])
    sizes = 1 / np.arange(1, 61)
    members = rng.choice(60, size=n_rows, p=sizes / sizes.sum())
    spreads = 0.002 + 0.02 * sizes[members, None]
    points = centres[members] + rng.normal(size=(n_rows, 2)) * spreads
    is_farm = rng.random(n_rows) < 0.1
    points[is_farm] = rng.random((int(is_farm.sum()), 2))
    return Map("made-up towns", points.clip(0, np.nextafter(1, 0)), Box((0, 0), (1, 1)))


def _capped(name: str, points: Points, box: Box) -> Map:
    if len(points) > MAX_ROWS:
        points = points[np.random.default_rng(0).choice(len(points), MAX_ROWS, replace=False)]
    return Map(name, np.ascontiguousarray(points), box)


def _columns(path: Path, *names: str) -> list[NDArray[np.float64]]:
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=list(names))
    return [table[name].to_numpy().astype(np.float64) for name in names]


def _accidents(path: Path) -> Map:
    return _capped("accidents", np.stack(_columns(path, "lng", "lat"), axis=1), GREAT_BRITAIN)


def _cities(path: Path) -> Map:
    return _capped("cities", np.stack(_columns(path, "lon", "lat"), axis=1), WORLD)


def _taxi(path: Path) -> Map:
    x, y = (metres / _EARTH_RADIUS for metres in _columns(path, "pickup_x", "pickup_y"))
    return _capped("taxi", np.stack([np.degrees(x), np.degrees(np.arctan(np.sinh(y)))], axis=1), NEW_YORK_CITY)


def _pickups(path: Path) -> Map:
    lon, lat, count = _columns(path, "lon", "lat", "count")
    rows = np.repeat(np.stack([lon, lat], axis=1), count.astype(np.int64), axis=0)
    rows += np.random.default_rng(0).uniform(-0.5e-4, 0.5e-4, rows.shape)
    return _capped("pick-ups", rows, AROUND_NEW_YORK)


_TABLES: dict[str, Callable[[Path], Map]] = {
    "uk_accidents.parquet": _accidents,
    "world_cities.parquet": _cities,
    "nyc_taxi.parquet": _taxi,
    "uber_pickups_nyc.parquet": _pickups,
}


def _lattice(name: str, counts: NDArray[np.int32]) -> Map:
    rng = np.random.default_rng(0)
    kept = counts.ravel().astype(np.int64)
    if kept.sum() > MAX_ROWS:
        kept = rng.multivariate_hypergeometric(kept, MAX_ROWS, method="marginals")
    rows = np.repeat(np.indices(counts.shape).reshape(2, -1).T, kept, axis=0) + rng.random((int(kept.sum()), 2))
    return Map(name, rows, Box((0, 0), (float(counts.shape[0]), float(counts.shape[1]))))
