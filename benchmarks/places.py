"""Maps in mixed tables: a place of a forest against its two columns by themselves, and against a tree of them alone.

    python -m benchmarks.places --data FOLDER [--releases 5] [--epsilons 1 0.1] [--tables uk_accidents nyc_taxi]

FOLDER holds the tables as Parquet files. For every table and epsilon, mean over several releases:

    map      total variation on 64 x 64 equal squares from the smallest to the largest real value of both columns; of a
             table with several places, the worst
    ratio    the same against a joint tree of the two columns alone that has the whole epsilon
    KS       of the other numbers, the mean and the largest distance of distribution functions
    pairs    mean total variation of all pairs of columns, in bins that each hold about the same share of real rows

uk_accidents and uber_pickups_nyc have two columns. Five more are made up, three of which depend on where a row lies.
Bounds are round. The ratio is asserted: at most 1.5. Shares and thresholds were chosen on uk_accidents and nyc_taxi.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import spinney as sp
from benchmarks.harness import Result
from spinney import metrics
from spinney.columns import Column

DELTA = "1e-6"
TABLES = ("uk_accidents", "nyc_taxi", "uber_pickups_nyc")
MOST_RATIO = 1.5
_SQUARES = 64
_BINS = 12

Values = NDArray[Any]


def run(
    folder: Path, *, tables: Sequence[str] = TABLES, epsilons: Sequence[str] = ("1", "0.1"), n_releases: int = 5
) -> list[Result]:
    """Print a line for each table, epsilon and model; results are the ratios."""
    results = []
    measures = f"{'map':>7} {'ratio':>6} {'mean KS':>8} {'worst KS':>9} {'pairs':>7}"
    print(f"  {'table':<17} {'epsilon':>7}  {'model':<8} {measures}")
    for name in tables:
        table, columns, places = _TABLES[name](folder)
        for epsilon in epsilons:
            alone = [_alone(table, columns, place, epsilon, n_releases) for place in places]
            print(f"  {name:<17} {epsilon:>7}  {'tree':<8} {max(alone):7.4f} {1:6.2f}", flush=True)
            schemas = {
                "columns": sp.Schema(columns),
                "places": sp.Schema(columns, places=[sp.Place(*p) for p in places]),
            }
            for model, schema in schemas.items():
                found = _measured(table, schema, places, epsilon, n_releases)
                ratio = max(found[f"map {','.join(p)}"] / best for p, best in zip(places, alone, strict=True))
                worst = max(found[f"map {','.join(p)}"] for p in places)
                print(
                    f"  {name:<17} {epsilon:>7}  {model:<8} {worst:7.4f} {ratio:6.2f} {found['mean KS']:8.4f} "
                    f"{found['worst KS']:9.4f} {found['pairs']:7.4f}",
                    flush=True,
                )
                if model == "places":
                    results.append(
                        Result(f"{name}, epsilon {epsilon}: map against a tree alone", ratio, MOST_RATIO, "")
                    )
    return results


# ------------------------------------------------------------------------------------------------------- measures


def _alone(table: pa.Table, columns: dict[str, Column], place: Sequence[str], epsilon: str, n_releases: int) -> float:
    """The map of a tree over two columns, with all of epsilon."""
    schema, chosen = sp.Schema({name: columns[name] for name in place}), table.select(list(place))
    drawn = [sp.KDTreeSynthesizer(epsilon).fit(chosen, schema).sample(seed=seed) for seed in range(n_releases)]
    return float(np.mean([_map_distance(table, rows, place) for rows in drawn]))


def _measured(
    table: pa.Table, schema: sp.Schema, places: Sequence[Sequence[str]], epsilon: str, n_releases: int
) -> dict[str, float]:
    found: dict[str, list[float]] = defaultdict(list)
    of_places = {name for place in places for name in place}
    numbers = [
        name for name, kind in schema.items() if isinstance(kind, (sp.Real, sp.Integer)) and name not in of_places
    ]
    numbers_schema = sp.Schema({name: schema[name] for name in numbers})
    edges = {name: _edges(table[name].to_numpy(zero_copy_only=False)) for name in schema}
    real = {name: _binned(table[name], edges[name]) for name in schema}
    for seed in range(n_releases):
        drawn = sp.ForestSynthesizer(epsilon, DELTA).fit(table, schema).sample(seed=seed, frame="pyarrow")
        for place in places:
            found[f"map {','.join(place)}"].append(_map_distance(table, drawn, place))
        distances = list(metrics.ks_distance(table.select(numbers), drawn.select(numbers), numbers_schema).values())
        found["mean KS"].append(float(np.mean(distances)))
        found["worst KS"].append(max(distances))
        synthetic = {name: _binned(drawn[name], edges[name]) for name in schema}
        found["pairs"].append(
            float(np.mean([_pair_distance(real, synthetic, pair) for pair in combinations(schema, 2)]))
        )
    return {what: float(np.mean(each)) for what, each in found.items()}


def _map_distance(real: pa.Table, drawn: pa.Table, place: Sequence[str]) -> float:
    """Total variation on squares over the box of the real rows; what lies outside counts with the nearest square."""
    limits = [(float(np.min(values)), float(np.max(values))) for values in (real[name].to_numpy() for name in place)]
    shares = []
    for table in (real, drawn):
        points = [np.clip(table[name].to_numpy(), *ends) for name, ends in zip(place, limits, strict=True)]
        shares.append(np.histogram2d(*points, bins=_SQUARES, range=limits)[0] / table.num_rows)
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def _edges(values: Values) -> Values:
    """Ends of bins that hold about the same share of rows; each value of a category by itself."""
    if values.dtype.kind not in "iuf":
        return np.unique(values.astype(str))
    return np.unique(np.quantile(values, np.linspace(0, 1, _BINS + 1)[1:-1]))


def _binned(values: pa.ChunkedArray, edges: Values) -> NDArray[np.int64]:
    array = values.to_numpy()
    array = array.astype(str) if edges.dtype.kind == "U" else array
    return np.searchsorted(edges, array, side="right")


def _pair_distance(
    real: dict[str, NDArray[np.int64]], drawn: dict[str, NDArray[np.int64]], pair: tuple[str, str]
) -> float:
    n_values = 1 + max(int(values[name].max()) for values in (real, drawn) for name in pair)
    shares = [
        np.bincount(values[pair[0]] * n_values + values[pair[1]], minlength=n_values**2) / len(values[pair[0]])
        for values in (real, drawn)
    ]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


# --------------------------------------------------------------------------------------------------------- tables

Described = tuple[pa.Table, dict[str, Column], list[tuple[str, str]]]


def _uk_accidents(folder: Path) -> Described:
    """Where accidents happened, and five made-up columns."""
    table = pq.read_table(folder / "uk_accidents.parquet").rename_columns(["lon", "lat"])
    return _with_made_up(table, {"lon": sp.Real(-10, 5), "lat": sp.Real(49, 62)}, centre=(-0.1, 51.5), far=1.0)


def _uber_pickups_nyc(folder: Path) -> Described:
    """Where trips began, each place as often as it was counted, and five made-up columns."""
    table = pq.read_table(folder / "uber_pickups_nyc.parquet")
    lon, lat = (table[name].to_numpy() for name in ("lon", "lat"))
    rows = np.repeat(np.arange(table.num_rows), table["count"].to_numpy())
    points = pa.table({"lon": lon[rows], "lat": lat[rows]})
    return _with_made_up(points, {"lon": sp.Real(-75, -72), "lat": sp.Real(39, 43)}, centre=(-74, 40.75), far=0.1)


def _with_made_up(table: pa.Table, columns: dict[str, Column], *, centre: tuple[float, float], far: float) -> Described:
    """Five more columns, of which region, speed and cost depend on where a row lies; `far` is far from the centre."""
    lon, lat = (table[name].to_numpy() for name in ("lon", "lat"))
    rng, n = np.random.default_rng(5), table.num_rows
    away = np.hypot((lon - centre[0]) * np.cos(np.radians(centre[1])), lat - centre[1]) / far
    side = np.where(lat > centre[1] + 2 * far, "north", np.where(lon < centre[0] - 2 * far, "west", "rest"))
    made_up = {
        "region": np.where(away < 0.3, "centre", side),
        "speed": rng.choice([20, 30, 40, 60, 70], n, p=[0.1, 0.5, 0.15, 0.15, 0.1]) + 10 * (away > 1),
        "cars": 1 + rng.poisson(0.8, n),
        "cost": np.round(rng.lognormal(7 - np.minimum(away, 8) / 4, 1.0), 2),
        "is_night": rng.random(n) < 0.25,
    }
    for name, values in made_up.items():
        table = table.append_column(name, pa.array(values))
    described: dict[str, Column] = {
        **columns,
        "region": sp.Category(["centre", "north", "rest", "west"]),
        "speed": sp.Integer(0, 100, multiple_of=10),
        "cars": sp.Integer(0, 100),
        "cost": sp.Real(0, 1e6),
        "is_night": sp.Boolean(),
    }
    return table, described, [("lon", "lat")]


def _nyc_taxi(folder: Path) -> Described:
    """Trips from one place to another, in metres of Mercator's map."""
    table = pq.read_table(folder / "nyc_taxi.parquet")
    x, y = sp.Real(-8.25e6, -8.22e6), sp.Real(4.96e6, 4.99e6)
    columns: dict[str, Column] = {
        "pickup_x": x,
        "pickup_y": y,
        "dropoff_x": x,
        "dropoff_y": y,
        "pickup_hour": sp.Integer(0, 23),
        "duration_s": sp.Integer(0, 100_000),
        **dict.fromkeys(("trip_distance", "fare_amount", "tip_amount"), sp.Real(-1000, 1000)),
        **dict.fromkeys(("tolls_amount", "total_amount"), sp.Real(-1000, 1000)),
        "passenger_count": sp.Integer(0, 10),
        "payment_type": sp.Category([1, 2, 3, 4, 5]),
        "RateCodeID": sp.Integer(0, 100),
        "VendorID": sp.Category([1, 2]),
    }
    return table.select(list(columns)), columns, [("pickup_x", "pickup_y"), ("dropoff_x", "dropoff_y")]


_TABLES = {"uk_accidents": _uk_accidents, "nyc_taxi": _nyc_taxi, "uber_pickups_nyc": _uber_pickups_nyc}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder with the tables as Parquet files")
    parser.add_argument("--releases", type=int, default=5, help="releases of each table and epsilon")
    parser.add_argument("--epsilons", nargs="+", default=["1", "0.1"])
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=TABLES)
    given = parser.parse_args(arguments)
    results = run(given.data, tables=given.tables, epsilons=given.epsilons, n_releases=given.releases)
    print(*results, sep="\n")
    return int(any(not result.is_met for result in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
