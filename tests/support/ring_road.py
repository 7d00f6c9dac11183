"""A town whose people live along a ring road: rows with a place, and forests of them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

import spinney as sp

N = 6000
RING = [(0, 0), (8, 0), (8, 8), (0, 8)]
LAKE = [(2, 2), (5, 2), (5, 6), (2, 6)]


def table(n=N, seed=0):
    """Points on a ring road of a town, and columns that depend on where they are."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, n)
    x, y = 5 + 3 * np.cos(angle) + rng.normal(0, 0.1, n), 5 + 3 * np.sin(angle) + rng.normal(0, 0.1, n)
    return pa.table(
        {
            "age": rng.integers(0, 90, n),
            "x": x,
            "side": pa.array(np.where(x > 5, "east", "west")),
            "y": y,
            "high": pa.array(y > 5),
        }
    )


COLUMNS = {
    "age": sp.Integer(0, 120),
    "x": sp.Real(0, 10),
    "side": sp.Category(["east", "west"]),
    "y": sp.Real(0, 10),
    "high": sp.Boolean(),
}
PLACED = sp.Schema(COLUMNS, places=[sp.Place("x", "y")])


def fit(data, schema, epsilon="4", **options):
    return sp.ForestSynthesizer(epsilon, **options).fit(data, schema, entropy=sp.UnsafeSeededEntropy(1))


@cache
def fitted(**options):
    return fit(table(), PLACED, **options)


@cache
def within():
    schema = sp.Schema(COLUMNS, places=[sp.Place("x", "y", within=[RING, LAKE])])
    return fit(table(), schema)
