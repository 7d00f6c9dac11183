"""A made-up town: where 20,000 people live who do not exist.

An old town by the river, a ring road, a station quarter of square blocks, a road out of town, four villages and
scattered farms. Nobody lives in the river. The shapes are there to be seen in a picture; none is taken from a place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from spinney.schema.schema import Schema


Points = NDArray[np.float64]  # (n, 2), kilometres
Distances = NDArray[np.float64]  # (n,)
Mask = NDArray[np.bool_]  # (n,)

EDGE = 10.0
N_PEOPLE = 20_000
SEED = 2023

_MIDDLE, _RING_RADIUS = (5.0, 5.0), 3.2
_OLD_TOWN = (4.3, 6.1)
_STATION, _BLOCK = (4.6, 2.2), 0.5
_VILLAGES = ((1.0, 1.4), (1.3, 8.7), (8.9, 8.6), (9.0, 5.9))


def town_schema() -> Schema:
    """What is public about the town: it lies in a square of ten kilometres."""
    from spinney.columns import Real
    from spinney.schema.schema import Schema

    return Schema({"x": Real(0, EDGE), "y": Real(0, EDGE)})


def make_town(n_people: int = N_PEOPLE, *, seed: int = SEED) -> Points:
    """Where everybody lives, in random order."""
    rng = np.random.default_rng(seed)
    shares = {_old_town: 28, _ring_road: 22, _station_quarter: 20, _road_out: 8, _villages: 12, _farms: 10}
    # Half as many again, because whoever lands in the river or off the map is sent away.
    points = np.concatenate([draw(rng, 3 * n_people * share // 200) for draw, share in shares.items()])
    is_dry = ((points > 0) & (points < EDGE)).all(axis=1) & ~in_river(points)
    return np.round(rng.permutation(points[is_dry])[:n_people], 4)


def _old_town(rng: np.random.Generator, n: int) -> Points:
    return rng.normal(_OLD_TOWN, 0.55, (n, 2))


def _ring_road(rng: np.random.Generator, n: int) -> Points:
    angle, radius = rng.uniform(0, 2 * np.pi, n), rng.normal(_RING_RADIUS, 0.09, n)
    return np.column_stack([_MIDDLE[0] + radius * np.cos(angle), _MIDDLE[1] + radius * np.sin(angle)])


def _station_quarter(rng: np.random.Generator, n: int) -> Points:
    """Five by three blocks with streets between."""
    block = np.column_stack([rng.integers(0, 5, n), rng.integers(0, 3, n)])
    return rng.uniform(0.05, 0.38, (n, 2)) + block * _BLOCK + _STATION


def _road_out(rng: np.random.Generator, n: int) -> Points:
    along = rng.uniform(0, 2.7, n)
    return rng.normal(0, 0.06, (n, 2)) + np.column_stack([7.1 + along, 2.9 - along])


def _villages(rng: np.random.Generator, n: int) -> Points:
    return rng.normal(np.array(_VILLAGES)[rng.integers(0, len(_VILLAGES), n)], 0.2)


def _farms(rng: np.random.Generator, n: int) -> Points:
    return rng.uniform(0, EDGE, (n, 2))


# ------------------------------------------------------------------------------------------------ districts


def in_river(points: Points) -> Mask:
    """Within 350 metres of the river's middle line."""
    x, y = _xy(points)
    return np.abs(y - 4.7 - 0.9 * np.sin(0.75 * x - 0.4)) < 0.35


def _in_old_town(points: Points) -> Mask:
    return _distance(points, _OLD_TOWN) < 1.1


def _on_ring_road(points: Points) -> Mask:
    return np.abs(_distance(points, _MIDDLE) - _RING_RADIUS) < 0.25


def _in_station_quarter(points: Points) -> Mask:
    x, y = _xy(points)
    (left, bottom), width, height = _STATION, 5 * _BLOCK, 3 * _BLOCK
    return (x > left) & (x < left + width) & (y > bottom) & (y < bottom + height)


def _in_villages(points: Points) -> Mask:
    is_inside = np.zeros(len(points), dtype=np.bool_)
    for village in _VILLAGES:
        is_inside |= _distance(points, village) < 0.5
    return is_inside


def _xy(points: Points) -> tuple[Distances, Distances]:
    return points[:, 0], points[:, 1]


def _distance(points: Points, centre: tuple[float, float]) -> Distances:
    x, y = _xy(points)
    return np.hypot(x - centre[0], y - centre[1])


DISTRICTS: dict[str, Callable[[Points], Mask]] = {
    "old town": _in_old_town,
    "ring road": _on_ring_road,
    "station quarter": _in_station_quarter,
    "four villages": _in_villages,
    "in the river": in_river,
}


def district_shares(points: Points) -> dict[str, float]:
    """Which part of the points lies in each district."""
    return {name: float(is_inside(points).mean()) for name, is_inside in DISTRICTS.items()}
