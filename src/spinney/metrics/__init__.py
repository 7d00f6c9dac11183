"""How close is the synthetic table to the real one? Metrics, each with its name, direction and range. NOT PRIVATE.

Every metric here reads the real table and adds no noise. A value, and any choice made by looking at one, reveals
something about the real rows: publish neither next to a release unless the real table is public or made up. Nothing
here charges a ledger.

Kernel metrics take points (arrays, or tables of numeric columns) with weights; distances of columns and
train-on-synthetic take tables of any kind with their schema. `METRICS` holds all of them by name; `compare` puts those
of columns on one page.
"""

from spinney.metrics.beside import beside
from spinney.metrics.catalogue import METRICS, Metric
from spinney.metrics.classify import CLASSIFIERS, train_on_synthetic
from spinney.metrics.comparison import ColumnComparison, Comparison, compare
from spinney.metrics.kernels import (
    kernel_density,
    kernel_metric,
    mmd,
    mmd_bound_from_sup,
    mmd_squared_to_gaussian,
    mmd_squared_unbiased,
    rkhs_distance,
    sup_bound_from_mmd,
)
from spinney.metrics.marginals import total_variation
from spinney.metrics.ordered import common_values_kept, ks_distance, wasserstein, zeros_off
from spinney.metrics.sup import SupDistance, sup_distance

__all__ = [
    "CLASSIFIERS",
    "METRICS",
    "ColumnComparison",
    "Comparison",
    "Metric",
    "SupDistance",
    "beside",
    "common_values_kept",
    "compare",
    "kernel_density",
    "kernel_metric",
    "ks_distance",
    "mmd",
    "mmd_bound_from_sup",
    "mmd_squared_to_gaussian",
    "mmd_squared_unbiased",
    "rkhs_distance",
    "sup_bound_from_mmd",
    "sup_distance",
    "total_variation",
    "train_on_synthetic",
    "wasserstein",
    "zeros_off",
]
