"""The synthesizers that the fraud experiments compare, and one trial of each: thin out, synthesize, train, test.

The paper does not print its cutoff tau and threshold t. Lemma 10 and theorem 5 prescribe some, and "paper" follows
them; with 1,500 rows they leave almost nothing to release. "paper, low threshold" takes the t at which noise alone
lifts about 32 of the 2^30 bins into the release: of 1, 32 and 256 such bins the one whose areas, in a few trials, came
nearest to the printed ones. The number is public, but it was chosen by looking.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from spinney.metrics import train_on_synthetic
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.schema.schema import Schema
from spinney.synthesizers.partition import PaperTreeSynthesizer
from spinney.synthesizers.tree import KDTreeSynthesizer
from spinney.synthesizers.validation import quiet_threshold
from spinney_paper.experiments.framework import Inputs
from spinney_paper.experiments.fraud_data import (
    TARGET,
    Place,
    Rows,
    data_box_schema,
    fraud_rows,
    public_schema,
    undersampled,
)
from spinney_paper.experiments.results import Params, Record, Task

# The paper follows DP-MERF's code, which scores predicted labels. Ranking scores are computed beside them.
PROTOCOLS = {"labels": "dp-merf", "ranking": "ranking"}


@dataclass(frozen=True, slots=True)
class Method:
    """One way to make synthetic rows: how it is named, where rows are thinned out, and the model with its schema."""

    name: str
    place: Place
    schema: Callable[[], Schema]
    make: Callable[[str, Params], Any]


def _paper_tree(epsilon: str, params: Params, **options: Any) -> PaperTreeSynthesizer:
    depths = {"h": params["fixed_depth"], "h_prime": params["max_depth"]}
    return PaperTreeSynthesizer(epsilon, **depths, placement="centre", **options)


def low_threshold(epsilon: str, params: Params) -> int:
    """The smallest t at which noise releases no more than 2^`log2_noise_bins` of the 2^h bins, were they all empty."""
    half = Fraction(epsilon) / 2  # the paper's epsilon''
    return quiet_threshold(params["fixed_depth"] - params["log2_noise_bins"], half, Unit.REPLACE_ONE)


METHODS = {
    "paper": Method(
        "paper's tree, its own thresholds",
        "outside",
        data_box_schema,
        lambda epsilon, params: _paper_tree(epsilon, params, axes="cube"),
    ),
    "paper, low threshold": Method(
        "paper's tree, low threshold",
        "outside",
        data_box_schema,
        lambda epsilon, params: _paper_tree(epsilon, params, axes="cube", t=low_threshold(epsilon, params)),
    ),
    "paper, public box": Method(
        "paper's tree, low threshold, public box",
        "outside",
        public_schema,
        lambda epsilon, params: _paper_tree(epsilon, params, t=low_threshold(epsilon, params)),
    ),
    "spinney": Method(
        "Spinney's default tree",
        "outside",
        public_schema,
        lambda epsilon, _: KDTreeSynthesizer(epsilon),
    ),
    "spinney, inside": Method(
        "Spinney's default tree, thinning accounted for",
        "inside",
        public_schema,
        # Half of epsilon per step of unit add-remove; see `undersampled`.
        lambda epsilon, _: KDTreeSynthesizer(Fraction(epsilon) / 2, unit="add-remove", assumed_rows=10_000),
    ),
}


def tree_trial(params: Params, task: Task, inputs: Inputs) -> Record:
    """One release of a tree, and the areas under the ROC of classifiers that learn from it."""
    method, entropy = METHODS[task["method"]], UnsafeSeededEntropy(task["seed"])
    train, test = thinned(params, method.place, inputs, entropy)
    model = method.make(task["epsilon"], params).fit(train, method.schema(), ledger=False, entropy=entropy)
    n_bins = len(model.release_.bins)
    synthetic = np.empty((0, train.shape[1]))
    if n_bins:
        # As many rows as went in; where their number is private, the noisy total.
        synthetic = model.sample(seed=task["seed"])
        synthetic[:, 0] = synthetic[:, 0] > 0.5  # the cube's class is a number: centres of its halves
    released = {"n_bins": n_bins, "cutoff": model.plan_.cutoff, "threshold": model.plan_.threshold}
    return released | judged(params, train, test, synthetic, seed=task["seed"])


def thinned(params: Params, place: Place, inputs: Inputs, entropy: UnsafeSeededEntropy) -> tuple[Rows, Rows]:
    """Rows to synthesize from and rows to test on."""
    rows = fraud_rows(params["source"], inputs)
    return undersampled(rows, place, rate=params["rate"], train_share=params["train_share"], entropy=entropy)


def judged(params: Params, train: Rows, test: Rows, synthetic: Rows, *, seed: int) -> Record:
    """Areas by both protocols, per classifier and on average. Nothing is learnt from no rows or one class: 0.5."""
    schema, record = public_schema(), {"n_train": len(train), "n_test": len(test), "n_synthetic": len(synthetic)}
    areas: Record = {"fraud_share": round(float(synthetic[:, 0].mean()), 6) if len(synthetic) else 0.0}
    for field, protocol in PROTOCOLS.items():
        by_name = train_on_synthetic(
            test,
            synthetic,
            schema,
            target=TARGET,
            classifiers=params["classifiers"],
            protocol=protocol,
            seed=seed % 2**32,
        )
        areas[field] = round(float(np.mean(list(by_name.values()))), 6)
        areas |= {f"{field}: {name}": round(area, 6) for name, area in by_name.items()}
    return record | areas
