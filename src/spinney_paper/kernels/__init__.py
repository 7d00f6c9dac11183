"""Kernel distances, the paper's measures of utility: of weighted points, with names and directions. NOT PRIVATE.

Like all metrics they read the real table and add no noise (`spinney.metrics`). Points come as arrays, or as tables of
numeric columns, with weights. `METRICS` holds those that compare two sets by name, as `spinney.metrics.METRICS` holds
the distances of tables.
"""

from __future__ import annotations

import math
from typing import Any

from spinney.metrics import Metric
from spinney_paper.kernels.distances import (
    SupDistance,
    kernel_density,
    kernel_metric,
    mmd,
    mmd_bound_from_sup,
    mmd_squared_to_gaussian,
    mmd_squared_unbiased,
    rkhs_distance,
    sup_bound_from_mmd,
    sup_distance,
)


def _sup(real: Any, synthetic: Any, **options: Any) -> float:
    return float(sup_distance(real, synthetic, **options))


METRICS = {
    metric.name: metric
    for metric in (
        Metric("mmd", "lower", 0.0, math.sqrt(2), "points", mmd),
        Metric("mmd_squared_unbiased", "lower", -2.0, 2.0, "points", mmd_squared_unbiased),
        Metric("rkhs_distance", "lower", 0.0, math.inf, "points", rkhs_distance),
        Metric("sup_distance", "lower", 0.0, 1.0, "points", _sup),
    )
}
"""Every kernel metric by its name."""

__all__ = [
    "METRICS",
    "SupDistance",
    "kernel_density",
    "kernel_metric",
    "mmd",
    "mmd_bound_from_sup",
    "mmd_squared_to_gaussian",
    "mmd_squared_unbiased",
    "rkhs_distance",
    "sup_bound_from_mmd",
    "sup_distance",
]
