"""One trial of a mechanism: fit with seeded noise, measure the distance of the released points from the real ones.

The distance is the norm of the difference of the two kernel densities in the kernel's Hilbert space. A release without
bins stands for the empty set, which is sqrt(kappa) away from the real one, kappa(P, P) being summed once per data set.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.schema.schema import Schema
from spinney.synthesizers.partition import PAPER_NAMES, PaperTreeSynthesizer, PartitionSynthesizer
from spinney.synthesizers.tree import KDTreeSynthesizer
from spinney_paper.experiments.results import Record
from spinney_paper.kernels import kernel_metric, rkhs_distance

Points = NDArray[np.float64]  # (n, d)
Weights = NDArray[np.float64]  # (n,)

# A method's key is part of the seeds of its records, so "spinney" has stayed where PrivTree's bins are meant, which
# were the default for all tables once and are it still beyond eight columns.
# The paper's algorithms release bin centres; Spinney leans them toward the denser neighbour.
PLACEMENT = {"paper": "centre", "best": "centre", "spinney": "tilted"}
NAMES = {
    "paper": "paper's tree, automatic settings",
    "best": "paper's tree, best over settings",
    "spinney": "PrivTree with bins",
}


def tree(method: str, epsilon: str, **options: Any) -> PartitionSynthesizer:
    """The paper's tree, or Spinney's by the PrivTree rule; what is not given follows from public quantities."""
    if method == "spinney":
        return KDTreeSynthesizer(epsilon, moments=False, **options)
    return PaperTreeSynthesizer(epsilon, placement="centre", **in_symbols(options))


def in_symbols(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of the paper's tree as results name them, in words, under the paper's symbols."""
    return {PAPER_NAMES.get(name, name): value for name, value in settings.items()}


def trial(
    model: PartitionSynthesizer, points: Points, schema: Schema, *, method: str, gamma: float, kappa: float, seed: int
) -> Record:
    """Fit and measure: the distance, the number of bins, and the depths of the plan."""
    model.fit(points, schema, ledger=False, entropy=UnsafeSeededEntropy(seed))
    plan, n_bins = model.plan_, model.card_.n_bins
    if n_bins == 0:
        mmd = math.sqrt(kappa)
    else:
        where, weights = model.weighted_points(placement=PLACEMENT[method])
        mmd = distance(points, where, weights, gamma=gamma, kappa=kappa)
    return {"mmd": rounded(mmd), "n_bins": n_bins, "fixed_depth": plan.fixed_depth, "max_depth": plan.max_depth}


def rounded(value: float, digits: int = 7) -> float:
    """As many significant digits as a figure can mean."""
    return float(f"{value:.{digits}g}")


def own_kappa(points: Points, *, gamma: float) -> float:
    """kappa(P, P), the mean of the kernel matrix."""
    return kernel_metric(points, points, gamma=gamma)


def distance(real: Points, points: Points, weights: Weights, *, gamma: float, kappa: float) -> float:
    """Distance of the real rows' kernel density from that of weighted points, kappa(real, real) being known."""
    return rkhs_distance(real, points, synthetic_weights=weights, gamma=gamma, kappa_real=kappa)
