"""Made-up data: the mixtures of ten Gaussians of Balog et al., in any dimension.

Means are drawn from N(100, 200²) along every axis, weights are proportional to 1, 1/2, ..., 1/10. The paper's text
speaks of covariances 200 and 30; the published generator uses standard deviations (docs/errata.md). Their legacy
generator gives the same bits on every machine: with the default arguments these are their data in 2 and 5 dimensions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Real
from spinney.schema.schema import Schema

Points = NDArray[np.float64]  # (n_rows, n_axes)

# What anyone could state about such data: four deviations around the centre of the means.
LOW, HIGH = -700.0, 900.0


def balog(n_axes: int, *, n_rows: int = 100_000, spread: float = 30.0) -> Points:
    """Rows of a mixture of ten clusters of standard deviation `spread`, the same in every run."""
    rng = np.random.RandomState(0)  # the published generator
    means = rng.normal(100, 200, (10, n_axes))
    weights = 1 / np.arange(1, 11)
    members = rng.choice(10, size=n_rows, p=weights / weights.sum())
    rows: Points = rng.normal(means[members], spread)
    return rows


def balog_gamma(n_axes: int) -> float:
    """Gamma of their kernel exp(-gamma ||x-y||²): 1e-4 / D."""
    return 1e-4 / n_axes


def box_schema(n_axes: int, low: float = LOW, high: float = HIGH) -> Schema:
    """Columns x0, x1, ... with the same stated bounds."""
    return Schema({f"x{axis}": Real(low, high) for axis in range(n_axes)})
