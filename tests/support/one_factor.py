"""A table whose columns all depend weakly on one hidden factor, so that a tree of pairs misses most of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest import mock

import numpy as np
import polars as pl

import spinney as sp

SCHEMA = sp.Schema(
    {
        "x": sp.Real(-8, 8),
        "y": sp.Real(-8, 8),
        "n": sp.Integer(0, 40),
        "colour": sp.Category(["red", "green", "blue", "white", "black"], nullable=True),
        "band": sp.Category(["a", "b", "c", "d"]),
        "flag": sp.Boolean(),
        "z": sp.Real(-8, 8),
        "mark": sp.Boolean(),
    }
)


def table(n_rows: int, *, seed: int = 0, strength: float = 0.7) -> pl.DataFrame:
    """Every column is a cut of the factor plus noise of its own."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=n_rows)
    scores = strength * factor + rng.normal(size=(8, n_rows))
    colours = np.array([*SCHEMA["colour"].values])[np.digitize(scores[3], [-1.2, -0.4, 0.4, 1.2])]
    return pl.DataFrame(
        {
            "x": scores[0].clip(-8, 8),
            "y": scores[1].clip(-8, 8),
            "n": np.rint(8 + 4 * scores[2]).clip(0, 40).astype(int),
            "colour": pl.Series(colours).scatter(np.flatnonzero(rng.random(n_rows) < 0.1), None),
            "band": np.array([*"abcd"])[np.digitize(scores[4], [-0.8, 0.0, 0.8])],
            "flag": scores[5] > 0.5,
            "z": scores[6].clip(-8, 8),
            "mark": scores[7] > -0.3,
        }
    )


@contextmanager
def no_products() -> Iterator[None]:
    """Plans without a vector, as they were before there was one."""
    with mock.patch("spinney.forest.design._with_or_without_products", lambda shape, _: [shape]):
        yield


@cache
def fitted(epsilon: str = "3", n_rows: int = 6000, *, seed: int = 1, **parameters: Any) -> sp.ForestSynthesizer:
    """A forest of the table, by seeded noise."""
    model = sp.ForestSynthesizer(epsilon, **parameters)
    return model.fit(table(n_rows), SCHEMA, entropy=sp.UnsafeSeededEntropy(seed))
