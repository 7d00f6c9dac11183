"""Columns of many cells that trees are cut along rulers of: even, deep, piled up, and times."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import spinney as sp

N = 30_000
SCHEMA = sp.Schema(
    {
        "even": sp.Real(0, 1),
        "deep": sp.Real(-1e9, 1e9),
        "piled": sp.Real(-50, 50, nullable=True),
        "seen": sp.Datetime("2000-01-01", "2030-01-01"),
        "label": sp.Boolean(),
    }
)


def rows(seed: int = 0) -> pa.Table:
    """Evenly spread, all in a tiny part of the bounds, piled up at round numbers with nulls, and times."""
    rng = np.random.default_rng(seed)
    piled = np.where(rng.random(N) < 0.4, rng.choice([0.0, 0.1, -50.0, 50.0, 7.5], N), rng.normal(0, 9, N))
    piled = np.where(rng.random(N) < 0.3, piled.astype(np.float32), piled)
    days = rng.integers(0, 20 * 365 * 86_400 * 10**6, N).astype("timedelta64[us]")
    return pa.table(
        {
            "even": rng.random(N),
            "deep": 123_456_789 + 1_000 * rng.random(N),
            "piled": pa.array(piled, mask=rng.random(N) < 0.15),
            "seen": np.datetime64("2005-01-01", "us") + days,
            "label": rng.random(N) < 0.3,
        }
    )
