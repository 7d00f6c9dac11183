"""How close is the synthetic table to the real one? Metrics with name, direction and range. NOT PRIVATE.

Every metric here reads the real table and adds no noise. A value, and any choice made by looking at one,
reveals something about the real rows: publish neither next to a release unless the real table is public or made
up. Nothing here charges a ledger.

Distances of columns and train-on-synthetic take tables of any kind with their schema. `METRICS` holds all of them
by name; `compare` puts those of columns on one page. The paper's distances of weighted points are in
`spinney_paper.kernels`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from spinney.metrics.classify import CLASSIFIERS, train_on_synthetic
from spinney.metrics.compare import ColumnComparison, Comparison, beside, compare
from spinney.metrics.distances import (
    common_values_kept,
    ks_distance,
    mean_of,
    total_variation,
    wasserstein,
    zeros_off,
)
from spinney.metrics.sense import Sense, sense

# ------------------------------------------------------------------------------------------------------------ catalogue
# The metrics by name: what each is called, which way is better, and between which values it lies. NOT PRIVATE.
#
# Reports loop over `METRICS` without knowing what they measure. Each entry compares a real with a synthetic table and
# gives one number; where the function behind it gives one per column, it is their mean, or the worst if its name says
# so. Names that end in `_range` measure in equal parts of the bounds, which see nothing of a column whose mass lies
# in one of them; they are there for comparison with figures of others.


@dataclass(frozen=True, slots=True)
class Metric:
    """One number that compares a real with a synthetic table, and what there is to know about it.

    Attributes:
        name: what it is called in `METRICS`.
        better: "lower" or "higher".
        low: the lowest value it can have.
        high: the highest value it can have.
        takes: "points", numeric points with a bandwidth, or "tables" of any kind with a schema.
    """

    name: str
    better: Literal["lower", "higher"]
    low: float
    high: float
    takes: Literal["points", "tables"]
    _measure: Callable[..., float]

    # It reads the real table without noise. No metric can say otherwise.
    is_private: ClassVar[bool] = False

    def __call__(self, real: Any, synthetic: Any, **options: Any) -> float:
        """The metric's value. `takes="points"`: bandwidth or gamma; `takes="tables"`: schema. Not private."""
        return float(self._measure(real, synthetic, **options))

    @property
    def best(self) -> float:
        """The value of a perfect match."""
        return self.high if self.better == "higher" else max(self.low, 0.0)

    def is_improvement(self, new: float, old: float) -> bool:
        """Whether `new` is strictly better than `old`."""
        return new < old if self.better == "lower" else new > old


def _mean(distances: Callable[..., Any], *, empty: float | None = None, **chosen: Any) -> Callable[..., float]:
    """The mean of distances by column, and what stands for it where no column has one."""

    def measure(real: Any, synthetic: Any, **options: Any) -> float:
        found = distances(real, synthetic, **(chosen | options))
        return mean_of(found) if found or empty is None else empty

    return measure


def _worst_ks(real: Any, synthetic: Any, **options: Any) -> float:
    return max(ks_distance(real, synthetic, **options).values())


def _variations(scale: str, ending: str = "") -> Iterator[Metric]:
    for ways in (1, 2, 3):
        measure = _mean(total_variation, ways=ways, scale=scale)
        yield Metric(f"total_variation_{ways}{ending}", "lower", 0.0, 1.0, "tables", measure)


_ALL = (
    Metric("ks_distance", "lower", 0.0, 1.0, "tables", _mean(ks_distance)),
    Metric("ks_distance_worst", "lower", 0.0, 1.0, "tables", _worst_ks),
    *_variations("quantiles"),
    Metric("wasserstein", "lower", 0.0, 1.0, "tables", _mean(wasserstein, scale="quantiles")),
    Metric("common_values_kept", "higher", 0.0, 1.0, "tables", _mean(common_values_kept, empty=1.0)),
    Metric("zeros_off", "lower", 0.0, 1.0, "tables", _mean(zeros_off, empty=0.0)),
    *_variations("range", "_range"),
    Metric("wasserstein_range", "lower", 0.0, 1.0, "tables", _mean(wasserstein, scale="range")),
    Metric("train_on_synthetic", "higher", 0.0, 1.0, "tables", _mean(train_on_synthetic)),
)

METRICS = {metric.name: metric for metric in _ALL}
"""Every metric by its name."""


# --------------------------------------------------------------------------------------------------------- public names
# The public names of this room.


__all__ = [
    "CLASSIFIERS",
    "METRICS",
    "ColumnComparison",
    "Comparison",
    "Metric",
    "Sense",
    "beside",
    "common_values_kept",
    "compare",
    "ks_distance",
    "sense",
    "total_variation",
    "train_on_synthetic",
    "wasserstein",
    "zeros_off",
]
