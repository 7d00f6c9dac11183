"""Releases of made-up tables for tests of pages: a map, a forest, and the same forest at another epsilon."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from shutil import copy

import numpy as np
import pyarrow as pa

import spinney as sp

GOLDEN = Path(__file__).parents[1] / "golden"
SCHEMA = sp.Schema(
    {
        "age": sp.Integer(0, 99),
        "sex": sp.Category(["female", "male"]),
        "region": sp.Category(["north", "east", "south, coast", "west"]),
        "income": sp.Real(0, 200, multiple_of=0.5, nullable=True),
    }
)


def people() -> pa.Table:
    """3,000 persons whose income goes with their age, and whose region with their sex."""
    rng = np.random.default_rng(4)
    n = 3_000
    age, is_male = rng.integers(18, 90, n), rng.random(n) < 0.5
    region = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    income = np.round(np.clip(rng.gamma(2, 12, n) + age / 3, 0, 200) * 2) / 2
    return pa.table(
        {
            "age": age,
            "sex": pa.array(np.where(is_male, "male", "female")),
            "region": pa.array(np.array(SCHEMA["region"].values)[np.where(is_male, region, 3 - region)]),
            "income": pa.array(income, mask=rng.random(n) < 0.1),
        }
    )


def town() -> pa.Table:
    """4,000 places around two centres."""
    rng = np.random.default_rng(5)
    centre = rng.random(4_000) < 0.3
    return pa.table(
        {
            "lon": np.clip(np.where(centre, 10.2, 10.6) + rng.normal(0, 0.08, 4_000), 10, 11),
            "lat": np.clip(np.where(centre, 59.8, 59.4) + rng.normal(0, 0.05, 4_000), 59, 60),
        }
    )


@cache
def _files() -> dict[str, bytes]:
    from tempfile import TemporaryDirectory

    made = {
        "town": sp.KDTreeSynthesizer("1").fit(town(), sp.Schema({"lon": sp.Real(10, 11), "lat": sp.Real(59, 60)})),
        "people": sp.ForestSynthesizer("2").fit(people(), SCHEMA),
        "people-small": sp.ForestSynthesizer("0.2").fit(people(), SCHEMA),
    }
    with TemporaryDirectory() as folder:
        for name, model in made.items():
            model.save(Path(folder, name))
        return {name: Path(folder, name).read_bytes() for name in made}


def put_releases(folder: Path, *, golden: tuple[str, ...] = ()) -> None:
    """Put the releases into a folder, and some of the golden ones, by their names."""
    for name, content in _files().items():
        (folder / f"{name}.spinney").write_bytes(content)
    for name in golden:
        copy(GOLDEN / f"{name}.spinney", folder / f"{name}.spinney")
