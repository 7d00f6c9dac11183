"""What all tests share: repeatable noise, a table of every column type, and quiet hypothesis settings."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import settings

import spinney as sp
from spinney.grid.lattice import Lattice, tree_lattice
from spinney.release.release import Release
from spinney.tree.bins import NoisyBins
from spinney.tree.release.bins import BinnedRelease
from support.handmade_leaves import card_by_hand, plan_by_hand
from support.long import KEPT, ONE_OF, cases, is_beside, spread

settings.register_profile("spinney", deadline=None, derandomize=True, max_examples=cases(40, 200))
settings.load_profile("spinney")

_TESTS = Path(__file__).parent
# The tests of Spark that `make test` runs; all others need most of its time, and `make test-long` runs them too.
_SHORT_SPARK_TESTS = "test_spark.py"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on Spark are long, but those of one file; so are most tests that are beside, and what `KEPT` leaves out."""
    listed: dict[tuple[str, str], list[pytest.Item]] = {}
    beside: dict[str, list[pytest.Item]] = {}
    for item in items:
        file, name = item.path.relative_to(_TESTS).as_posix(), item.name.partition("[")[0]
        if name in KEPT.get(file, ()):
            listed.setdefault((file, name), []).append(item)
        elif is_beside(file, name):
            beside.setdefault(file, []).append(item)
    for found in beside.values():
        kept = spread([item.name for item in found], -(-len(found) // ONE_OF))
        for item in found:
            if item.name not in kept:
                item.add_marker(pytest.mark.long)
    for (file, name), found in listed.items():
        kept = spread([item.name for item in found], KEPT[file][name])
        for item in found:
            if item.name not in kept:
                item.add_marker(pytest.mark.long)
    for item in items:
        is_on_spark = "spark" in getattr(item, "fixturenames", ()) or "[spark" in item.name or "-spark" in item.name
        if is_on_spark and item.path.name != _SHORT_SPARK_TESTS:
            item.add_marker(pytest.mark.long)


@pytest.fixture
def seeded() -> Callable[[int], sp.UnsafeSeededEntropy]:
    """Noise that is the same in every run."""
    return sp.UnsafeSeededEntropy


@pytest.fixture
def release_of() -> Callable[..., Release]:
    """A release made by hand: prefixes such as "01" with noisy counts, on the tree lattice of a schema."""

    def make(
        schema: sp.Schema, counts: dict[str, int], *, lattice: Lattice | None = None, n_rows: int = 100
    ) -> Release:
        lattice = tree_lattice(schema) if lattice is None else lattice
        codes = [int(prefix.ljust(64 * lattice.n_words, "0"), 2) for prefix in counts]
        words = [
            [code >> 64 * (lattice.n_words - 1 - w) & (2**64 - 1) for w in range(lattice.n_words)] for code in codes
        ]
        bins = NoisyBins.in_order(
            lattice,
            np.array(words, dtype=np.uint64).reshape(-1, lattice.n_words),
            np.array([len(prefix) for prefix in counts], dtype=np.int64),
            np.array(list(counts.values()), dtype=np.int64),
        )
        plan = plan_by_hand(lattice.depth)
        card = card_by_hand(schema, plan, {"bins": len(bins)}, n_rows=n_rows, frame="pyarrow")
        return BinnedRelease(bins, card)

    return make


@pytest.fixture(scope="session")
def square() -> tuple[np.ndarray, sp.Schema]:
    """2,000 points of a lopsided cloud in the unit square."""
    rng = np.random.default_rng(2)
    points = np.clip(np.stack([rng.beta(2, 5, 2000), rng.beta(6, 2, 2000)], axis=1), 0, 1)
    return points, sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1)})


@pytest.fixture(scope="session")
def people() -> tuple[pd.DataFrame, sp.Schema]:
    """A pandas table with every column type, nullable and not."""
    rng = np.random.default_rng(7)
    n = 1500
    is_gone = rng.random(n) < 0.2
    age = rng.integers(0, 100, n)
    frame = pd.DataFrame(
        {
            "height": rng.normal(1.7, 0.1, n),
            "weight": np.where(is_gone, np.nan, rng.normal(70, 9, n)),
            "age": age,
            "children": pd.array(np.where(is_gone, 0, age // 30), dtype="Int64"),
            "born": [date(2020, 1, 1) - timedelta(days=int(365 * a)) for a in age],
            "seen": pd.to_datetime([datetime(2020, 1, 1) + timedelta(hours=int(a)) for a in age]).tz_localize("UTC"),
            "left": pd.to_datetime([datetime(2020, 1, 1) + timedelta(minutes=int(a)) for a in age]),
            "smoker": rng.random(n) < 0.3,
            "colour": rng.choice(["red", "green", "blue"], n),
            "grade": rng.choice([1, 2, 3, 5], n),
        }
    )
    frame.loc[is_gone, "children"] = pd.NA
    schema = sp.Schema(
        {
            "height": sp.Real(1, 2.5),
            "weight": sp.Real(30, 150, nullable=True),
            "age": sp.Integer(0, 120),
            "children": sp.Integer(0, 9, nullable=True),
            "born": sp.Date("1900-01-01", "2020-12-31"),
            "seen": sp.Datetime("2020-01-01", "2020-12-31", timezone="Europe/Berlin"),
            "left": sp.Datetime("2020-01-01", "2020-12-31"),
            "smoker": sp.Boolean(),
            "colour": sp.Category(["red", "green", "blue"]),
            "grade": sp.Category([1, 2, 3, 5]),
        }
    )
    return frame, schema
