"""DP-MERF on the fraud table: as published, and with nothing taken from the data for free.

As published, bandwidths are read off ten rows of the table and the thinning-out is not part of the promise; such a
release is branded as not private. So is the second, which has less noise for the same (epsilon, delta), by one release
instead of two and sharper accounting. The third takes public bandwidths and thins out inside, under
(epsilon/2, delta') per step of unit add-remove; see `undersampled`. All meet the same public bounds as Spinney's trees.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney_paper.baselines.merf import DPMERF, FROM_DATA
from spinney_paper.experiments.framework import Inputs
from spinney_paper.experiments.fraud_data import TARGET, Place, public_schema
from spinney_paper.experiments.fraud_methods import judged, thinned
from spinney_paper.experiments.results import Params, Record, Task


@dataclass(frozen=True, slots=True)
class Rival:
    """One way to set DP-MERF: how it is named, where rows are thinned out, and what follows from epsilon and delta."""

    name: str
    place: Place
    options: Callable[[str, str], dict[str, Any]]


def _as_published(epsilon: str, delta: str) -> dict[str, Any]:
    return {"epsilon": epsilon, "delta": delta, "bandwidth": FROM_DATA, "noise": "published"}


def _least_noise(epsilon: str, delta: str) -> dict[str, Any]:
    return {"epsilon": epsilon, "delta": delta, "bandwidth": FROM_DATA}


def half_step(epsilon: str, delta: str) -> dict[str, Any]:
    """What one step of add-remove may cost when two of them are to stay within (epsilon, delta)."""
    half = Fraction(epsilon) / 2
    return {"epsilon": half, "delta": Fraction(delta) / (1 + math.ceil(math.exp(half))), "unit": "add-remove"}


RIVALS = {
    "dp-merf, published noise": Rival("DP-MERF as published", "outside", _as_published),
    "dp-merf": Rival("DP-MERF, as little noise as we can certify", "outside", _least_noise),
    "dp-merf, inside": Rival("DP-MERF, public bandwidths, thinning accounted for", "inside", half_step),
}


def rival_trial(params: Params, task: Task, inputs: Inputs) -> Record:
    """One release of DP-MERF, and the areas under the ROC of classifiers that learn from it."""
    rival, entropy = RIVALS[task["method"]], UnsafeSeededEntropy(task["seed"])
    train, test = thinned(params, rival.place, inputs, entropy)
    model = DPMERF(
        **rival.options(task["epsilon"], params["delta"]),
        target=TARGET,
        n_features=params["n_features"],
        n_steps=params["n_steps"],
        batch_share=params["batch_share"],
        seed=task["seed"] % 2**32,
    ).fit(train, public_schema(), ledger=False, entropy=entropy)
    return judged(params, train, test, model.sample(seed=task["seed"]), seed=task["seed"])
