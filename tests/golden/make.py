"""Make the golden release files that are missing, and record what samples of them look like.

    python tests/golden/make.py

Files that exist are left alone: they are here because files of their version are out in the world. A new
version of the format gets new files beside the old ones. Their noise is seeded, so they protect nobody; their
tables are made up.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import spinney as sp
from spinney.forest.release.fit import ReleasedProducts
from spinney.forest.release.measured import Measured
from spinney.forest.release.model import ForestRelease
from spinney.forest.release.places import PlaceModel
from spinney.people.release.model import PeopleRelease
from spinney.people.release.rows import ReleasedRows
from spinney.release.file import FORMAT_VERSION
from spinney.release.release import Release
from spinney.synthesizers.base import FrontDoor
from spinney.tree.release.bins import PLACEMENTS, BinnedRelease
from spinney.tree.release.moments import MomentsRelease
from spinney_paper.baselines import BalogAlgorithm1

FOLDER = Path(__file__).parent
RECORD = FOLDER / "expected.json"


def mixed_table() -> tuple[pa.Table, sp.Schema]:
    """Every column type, nullable and not."""
    rng = np.random.default_rng(1)
    n = 800
    days = rng.integers(0, 7000, n)
    is_gone = rng.random(n) < 0.25
    table = pa.table(
        {
            "length": rng.normal(10, 2, n),
            "weight": pa.array(rng.normal(3, 1, n), mask=is_gone),
            "age": rng.poisson(4, n),
            "eggs": pa.array(rng.poisson(2, n), mask=is_gone),
            "found": [date(2000, 1, 1) + timedelta(days=int(d)) for d in days],
            "ringed": [datetime(2000, 1, 1) + timedelta(days=int(d), hours=6) for d in days],
            "seen": pa.array([datetime(2001, 7, 1) + timedelta(days=int(d)) for d in days], pa.timestamp("us", "UTC")),
            "is_female": rng.random(n) < 0.6,
            "species": rng.choice(["wren", "robin", "tit", "finch", "owl"], n, p=[0.4, 0.3, 0.2, 0.05, 0.05]),
            "grade": pa.array(rng.choice([1, 2, 5], n), mask=is_gone),
        }
    )
    schema = sp.Schema(
        {
            "length": sp.Real(0, 20),
            "weight": sp.Real(0, 8, nullable=True),
            "age": sp.Integer(0, 30),
            "eggs": sp.Integer(0, 12, nullable=True),
            "found": sp.Date("2000-01-01", "2019-12-31"),
            "ringed": sp.Datetime("2000-01-01", "2020-01-01"),
            "seen": sp.Datetime("2000-01-01", "2022-01-01", timezone="Europe/London"),
            "is_female": sp.Boolean(),
            "species": sp.Category(["wren", "robin", "tit", "finch", "owl"]),
            "grade": sp.Category([1, 2, 5], nullable=True),
        }
    )
    return table, schema


def reals(n_columns: int, bounds: str = "stated") -> tuple[np.ndarray[Any, Any], sp.Schema]:
    """A cloud of reals in the unit cube, with stated or data-derived bounds."""
    points = np.random.default_rng(n_columns).beta(2, 5, (1000, n_columns))
    column = sp.Real(0, 1) if bounds == "stated" else sp.Real(bounds="from-data-not-private")
    return points, sp.Schema({f"c{i}": column for i in range(n_columns)})


def forest_table() -> tuple[pa.Table, sp.Schema]:
    """The mixed table with all that only a forest takes: an identifier, steps and rules."""
    table, schema = mixed_table()
    table = table.append_column("ring", pa.array([f"made up {row}" for row in range(len(table))]))
    columns = {**schema, "length": sp.Real(0, 20, multiple_of=0.5), "ring": sp.Identifier(prefix="R-")}
    return table, sp.Schema(columns, rules=[sp.AtMost("eggs", "age"), sp.EmptyWhen("weight", "eggs")])


def places_table() -> tuple[pa.Table, sp.Schema]:
    """Two places, one of them with nulls and within a shape with a hole, and a column beside them."""
    rng = np.random.default_rng(7)
    n = 900
    lon, lat = rng.normal(10, 2, n), rng.normal(50, 1, n)
    table = pa.table(
        {
            "lon": pa.array(lon, mask=rng.random(n) < 0.1),
            "kind": pa.array(np.where(lat > 50, "north", "south")),
            "lat": lat,
            "e": rng.integers(0, 1000, n),
            "n": rng.integers(0, 1000, n),
        }
    )
    columns = {
        "lon": sp.Real(0, 20, nullable=True),
        "kind": sp.Category(["north", "south"]),
        "lat": sp.Real(45, 55),
        "e": sp.Integer(0, 999),
        "n": sp.Integer(0, 999, multiple_of=3),
    }
    shape = [[(5, 46), (15, 46), (15, 54), (5, 54)], [(9, 49), (11, 49), (11, 51)]]
    places = [sp.Place("lon", "lat", within=shape), sp.Place("e", "n")]
    return table, sp.Schema(columns, places=places)


def sightings() -> tuple[pa.Table, sp.Schema]:
    """Rows of birds in a panel: each a step after the one before, none after the last."""
    rng = np.random.default_rng(6)
    n_rows = 1 + rng.poisson(3, 500)
    bird, n = np.repeat(np.arange(500), n_rows), int(n_rows.sum())
    is_last = np.append(bird[1:] != bird[:-1], True)
    table = pa.table(
        {
            "bird": [f"B{number}" for number in bird],
            "day": np.cumsum(rng.integers(1, 5, n)) % 300,
            "weight": (10 + bird % 7 + rng.normal(0, 1, n)).round(1),
            "seen": np.where(is_last & (bird % 2 == 0), "dead", np.array(["nest", "feeder"])[rng.integers(0, 2, n)]),
        }
    )
    columns = {
        "bird": sp.Identifier(),
        "day": sp.Integer(0, 365),
        "weight": sp.Real(0, 40, decimals=1),
        "seen": sp.Category(["nest", "feeder", "dead"]),
    }
    rules = [sp.NeverAfter("seen", ["dead"])]
    return table, sp.Schema(columns, person="bird", most_rows=12, order="day", steps=True, rules=rules)


def birds_and_sightings() -> tuple[dict[str, pa.Table], sp.Tables]:
    """A table of birds and one of their sightings, with a role and differences."""
    rows, flat = sightings()
    names = [f"B{number}" for number in range(520)]  # some were never seen again
    rng = np.random.default_rng(7)
    birds = pa.table({"name": names, "is_ringed": rng.random(520) < 0.3, "hatched": rng.integers(0, 9, 520)})
    schemas = {
        "birds": sp.Schema({"name": sp.Identifier(), "is_ringed": sp.Boolean(), "hatched": sp.Integer(0, 20)}),
        "sightings": sp.Schema(dict(flat)),
    }
    link = sp.Link("sightings.bird", "birds.name", most=12, order="day", role="seen", differences=["weight"])
    return {"birds": birds, "sightings": rows}, sp.Tables(schemas, links=[link])


def steps_table() -> tuple[pa.Table, sp.Schema]:
    """Amounts in hundreds, prices in halves, weekdays."""
    rng = np.random.default_rng(8)
    n = 2_000
    days = rng.integers(0, 7_000, n)
    days -= np.maximum(days % 7 - 4, 0)  # counted from a Monday
    table = pa.table(
        {
            "amount": (np.rint(np.exp(rng.normal(9, 1, n)) / 100) * 100).clip(0, 10**6).astype(np.int64),
            "price": pa.array(np.rint(rng.gamma(2, 20, n) * 2).clip(0, 2_000) / 2, mask=rng.random(n) < 0.2),
            "day": [date(2000, 1, 3) + timedelta(days=int(day)) for day in days],
        }
    )
    columns = {
        "amount": sp.Integer(0, 10**6),
        "price": sp.Real(0, 1_000, multiple_of="0.01", nullable=True),
        "day": sp.Date("2000-01-01", "2019-12-31"),
    }
    return table, sp.Schema(columns)


def models() -> dict[str, Callable[[], FrontDoor]]:
    """Models that leave nothing to automatic values, by name; fitted when called."""
    # The first files were made when one class had both rules, with levels of its own and cubes by PrivTree's too.
    tree = {"max_depth": 24, "threshold": 4, "tree_share": "0.4"}
    cube = {"h": 4, "h_prime": 24, "tau": 0, "t": 4, "tree_share": "0.4"}
    paper = {"h": 8, "h_prime": 70, "tau": 3, "t": 2, "tree_share": "0.5"}

    def entropy() -> sp.UnsafeSeededEntropy:
        return sp.UnsafeSeededEntropy(17)

    return {
        "tree-mixed": lambda: sp.KDTreeSynthesizer("5", **tree).fit(*mixed_table(), entropy=entropy()),
        "tree-cube": lambda: sp.PaperTreeSynthesizer("1", axes="cube", placement="uniform", **cube).fit(
            *reals(3), entropy=entropy()
        ),
        "paper-wide": lambda: sp.PaperTreeSynthesizer("400", **paper).fit(*reals(20), entropy=entropy()),
        "grid-branded": lambda: sp.GridSynthesizer(
            "0.5", bins=7, threshold=3, unit="add-remove", placement="centre"
        ).fit(*reals(2, "from-data-not-private"), entropy=entropy()),
        "moments-mixed": lambda: sp.KDTreeSynthesizer(
            "5", moments=True, placement="uniform", max_depth=24, tree_share="0.4"
        ).fit(*mixed_table(), entropy=entropy()),
        "forest-mixed": lambda: sp.ForestSynthesizer("5", "1e-6", target="is_female").fit(
            *forest_table(), entropy=entropy()
        ),
        "forest-pure": lambda: sp.ForestSynthesizer("20", 0, quality="high", unit="add-remove", assumed_rows=800).fit(
            *reals(3), entropy=entropy()
        ),
        "forest-places": lambda: sp.ForestSynthesizer("5", "1e-6").fit(*places_table(), entropy=entropy()),
        "forest-products": lambda: sp.ForestSynthesizer(
            "10", "1e-6", unit="add-remove", workload=[("species", "grade")]
        ).fit(*mixed_table(), entropy=entropy()),
        "forest-measured": lambda: sp.ForestSynthesizer(
            "5", "1e-6", unit="add-remove", assumed_rows=None, target="is_female"
        ).fit(*forest_table(), entropy=entropy()),
        "forest-steps": lambda: sp.ForestSynthesizer("5", "1e-6").fit(*steps_table(), entropy=entropy()),
        "people-linked": lambda: sp.LinkedSynthesizer("5", "1e-6", target="birds.is_ringed").fit(
            *birds_and_sightings(), entropy=entropy()
        ),
        "people-flat": lambda: sp.LinkedSynthesizer("8", "1e-6", unit="add-remove").fit(
            *sightings(), entropy=entropy()
        ),
        "points": lambda: BalogAlgorithm1("1", n_points=12, bandwidth=0.3).fit(*reals(2), entropy=entropy()),
    }


def summary(release: Release) -> dict[str, Any]:
    """What must never change about a file: its card in short, and samples by every placement or all numbers."""
    described: dict[str, Any] = {
        "epsilon": str(release.card.epsilon),
        "unit": release.card.unit,
        "is_private": release.card.is_private,
        "n_rows": release.card.n_rows,
        "frame": release.card.frame,
        "schema": release.card.to_dict()["schema"],
    }
    if isinstance(release, MomentsRelease):
        return described | {"placement": release.placement} | _noisy_leaves(release)
    if isinstance(release, PeopleRelease):
        described |= {"delta": str(release.card.delta), "shape": release.shape.to_dict(), "frames": release.frames}
        return described | {"persons": _forest(release.persons), "rows": [_rows(rows) for rows in release.rows]}
    if isinstance(release, ForestRelease):
        return described | {"delta": str(release.card.delta)} | _forest(release)
    if not isinstance(release, BinnedRelease):
        return described | {"released": dict(release.card.released), "drawn": _drawn(release)}
    described |= {
        "n_bins": len(release.bins),
        "noisy_total": release.bins.noisy_total,
        "placement": release.placement,
    }
    return described | {placement: _drawn(release, placement=placement) for placement in PLACEMENTS}


def _noisy_leaves(release: MomentsRelease) -> dict[str, Any]:
    """Every number of the file. No samples: the density is made anew from these numbers, by rules that may improve."""
    moments = release.moments
    return {
        "n_leaves": len(moments),
        "quantum": moments.quantum,
        "rate": str(moments.rate),
        "codes": _column(moments.codes.reshape(-1).tolist()),
        "depths": _column(moments.depths.tolist()),
        "steps": [_column(numbers) for numbers in moments.noisy_steps.T.tolist()],
    }


def _forest(release: ForestRelease) -> dict[str, Any]:
    """Every number of the file, and no samples: how rows are drawn from a model may improve."""
    fields = ("low", "length", "is_null", "weights", "states")
    return {
        "looked_at": [list(names) for names in release.looked_at],
        "noisy_total": release.noisy_total,
        "leaves": {
            name: {field: _column(getattr(column, field).tolist()) for field in fields}
            for name, column in release.columns.items()
        },
        **({"regions": {name: _regions(place) for name, place in release.places.items()}} if release.places else {}),
        "cliques": [list(clique) for clique in release.model.tree.cliques],
        "potentials": [_potentials(table.ravel().tolist()) for table in release.model.potentials],
        **({"products": _products(release.products)} if release.products is not None else {}),
        **({"measured": _measured(release.measured)} if release.measured is not None else {}),
    }


def _rows(rows: ReleasedRows) -> dict[str, Any]:
    """Every number of a table of rows of persons."""
    fields = ("low", "length", "is_null", "weights", "states")
    return {
        "leaves": {
            name: {field: _column(getattr(column, field).tolist()) for field in fields}
            for name, column in rows.columns.items()
        },
        "total": rows.total.hex(),
        "correlations": [number.hex() for number in rows.correlations.tolist()],
        "evidence": list(rows.layout.sizes),
        "field": {
            str((clique.evidence, clique.own)): _potentials(table.ravel().tolist())
            for clique, table in rows.field.tables().items()
        },
        "masks": [[evidence, own, int(possible.sum())] for evidence, own, possible in rows.field.masks],
        "tables": [
            {
                "columns": [list(table.clique.evidence), list(table.clique.own)],
                "noisy": _column(table.noisy.tolist()),
                "labels": None if table.labels is None else _column(table.labels.ravel().tolist()),
            }
            for table in rows.tables
        ],
    }


def _measured(measured: Measured) -> dict[str, Any]:
    """Every number that was counted, with the law of its noise."""
    columns = [column for column in measured.columns if column is not None]
    return {
        "total": measured.total.hex(),
        "columns": [
            {
                "kind": column.kind,
                "noise": [column.noise.law, str(column.noise.scale)],
                "noisy": _column(column.noisy.tolist()),
                "leaf": _column(column.leaf.tolist()),
                "possible": _column(column.possible.tolist()),
                "groups": [_column(group.tolist()) for group in column.groups],
                **({} if column.piles is None else {"piles": _column(column.piles.noisy.tolist())}),
                **({} if column.piles is None else {"pile": _column(column.piles.pile.tolist())}),
                **({} if column.grain is None else {"grain": _column(column.grain.noisy.tolist())}),
            }
            for column in columns
        ],
        "tables": [
            {
                "columns": list(table.columns),
                "noise": [table.noise.law, str(table.noise.scale)],
                "noisy": _column(table.noisy.tolist()),
                "labels": None if table.labels is None else _column(table.labels.tolist()),
            }
            for table in measured.tables
        ],
    }


def _products(products: ReleasedProducts) -> dict[str, Any]:
    """Every number of the sums of all pairs, and of the tilt by them."""
    tilt = products.tilt
    return {
        "pairs": [list(pair) for pair in products.pairs],
        "sums": _column([number for table in products.sums for number in table.ravel().tolist()]),
        "variance": str(products.variance),
        "groups": [group.tolist() for group in tilt.groups],
        "factors": [_column(table.ravel().tolist()) for table in (*tilt.singles, *tilt.tables)],
        "log_mean": tilt.log_mean.hex(),
    }


def _regions(place: PlaceModel) -> dict[str, Any]:
    """Every number of a place, and where its regions lie."""
    fields = ("codes", "depths", "weights", "states", "low", "length", "is_null", "is_bordered")
    return {field: _column(getattr(place, field).ravel().tolist()) for field in fields}


def _potentials(values: list[float]) -> dict[str, Any]:
    """Structural zeros are minus infinity; of the others an exact sum."""
    finite = [value for value in values if math.isfinite(value)]
    return {"impossible": len(values) - len(finite)} | _column(finite)


def _drawn(release: Release, **options: Any) -> dict[str, Any]:
    rows = release.sample(300, seed=5, frame="pyarrow", **options)
    points, weights = release.weighted_points(frame="pyarrow", **options)
    return {
        "rows": {name: _column(rows[name].to_pylist()) for name in rows.column_names},
        "points": {name: _column(points[name].to_pylist()) for name in points.column_names},
        "weights": math.fsum(weights * np.arange(len(weights))).hex(),
    }


def _column(values: list[Any]) -> dict[str, Any]:
    """Nulls and an exact sum, or counts of values."""
    present = [value for value in values if value is not None]
    described: dict[str, Any] = {"nulls": len(values) - len(present)}
    if not present:
        return described
    if isinstance(present[0], float):
        # Positions weigh in, so that the order of rows counts; fsum is exact on any machine.
        return described | {"sum": math.fsum(i * value for i, value in enumerate(present)).hex()}
    if isinstance(present[0], datetime):
        return described | {"sum": sum(i * int(value.timestamp()) for i, value in enumerate(_aware(present)))}
    if isinstance(present[0], date):
        return described | {"sum": sum(i * value.toordinal() for i, value in enumerate(present))}
    if isinstance(present[0], int):
        return described | {"sum": sum(i * int(value) for i, value in enumerate(present))}
    return described | {"counts": {str(value): present.count(value) for value in sorted(set(present))}}


def _aware(moments: list[datetime]) -> list[datetime]:
    return [moment if moment.tzinfo else moment.replace(tzinfo=UTC) for moment in moments]


def main() -> None:
    recorded = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    for name, fitted in models().items():
        path = FOLDER / f"v{FORMAT_VERSION}-{name}.spinney"
        if not path.exists():
            fitted().save(path)
            recorded[path.name] = summary(sp.load(path))
    RECORD.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
