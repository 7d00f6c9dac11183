"""Which width of bins is best without any noise: eleven boxes against a standard Gaussian (supplement H).

2k+1 boxes of half-width C carry the weights that minimise their divergence from N(0, 1). Drawn are that divergence,
the MMD of the boxes and of their centres from N(0, 1), all in closed form, and what a sample sees: its MMD from the
weighted centres, and from its own histogram in these boxes, at the centres (the paper's output) or leaning (Spinney's
placement).
Nothing here is private: the histograms are made with an epsilon so large that no count is changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.synthesizers.partition import GridSynthesizer
from spinney_paper.experiments import mixtures
from spinney_paper.experiments.drawing import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    RED,
    curve,
    dress,
    new_figure,
    note,
    title,
)
from spinney_paper.experiments.framework import Experiment, Inputs
from spinney_paper.experiments.results import Params, Record, Results, Task
from spinney_paper.experiments.trials import rounded
from spinney_paper.experiments.wording import markdown_table, number
from spinney_paper.kernels import kernel_metric, mmd
from spinney_paper.theory import best_box_half_width, best_box_weights, boxes_kl, boxes_mmd, centres_mmd

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# At this epsilon a count is changed with a chance below e^-400.
_NO_NOISE = "1000"

_MARK_EVERY = 4

# Field, label, style.
_CURVES = (
    ("boxes_mmd", "boxes, from N(0, 1)", (GREY, "", "-")),
    ("centres_mmd", "weighted centres, from N(0, 1)", (INK, "", "--")),
    ("sample_mmd", "weighted centres, from the sample", (GREEN, "^", "-")),
    ("histogram_mmd", "sample's histogram, at centres (paper)", (RED, "o", "-")),
    ("leaning_mmd", "sample's histogram, leaning (Spinney)", (BLUE, "s", "-")),
)


def _tasks(params: Params) -> list[Task]:
    return [
        {"half_width": half_width, "repetition": repetition}
        for half_width in params["half_widths"]
        for repetition in range(params["repetitions"])
    ]


def _run(params: Params, task: Task, inputs: Inputs) -> Record:
    c, k, sigma, repetition = task["half_width"], params["n_side"], params["bandwidth"], task["repetition"]
    weights = best_box_weights(c, n_side=k)
    sample = inputs.keep(
        ("sample", repetition), lambda: np.random.default_rng(repetition).standard_normal((params["n_rows"], 1))
    )
    kappa = inputs.keep(("kappa", repetition), lambda: kernel_metric(sample, sample, bandwidth=sigma))
    centres = 2 * c * np.arange(-k, k + 1)

    edge = (2 * k + 1) * c
    model = GridSynthesizer(_NO_NOISE, bins=2 * k + 1, threshold=1)
    model.fit(sample, mixtures.box_schema(1, -edge, edge), ledger=False, entropy=UnsafeSeededEntropy(task["seed"]))

    def from_sample(points: object, weights: object) -> float:
        found = mmd(sample, points, synthetic_weights=weights, bandwidth=sigma, kappa_real=kappa)  # type: ignore[arg-type]
        return rounded(found)

    return {
        "kl": rounded(boxes_kl(weights, half_width=c)),
        "boxes_mmd": rounded(boxes_mmd(weights, half_width=c, bandwidth=sigma)),
        "centres_mmd": rounded(centres_mmd(weights, half_width=c, bandwidth=sigma)),
        "sample_mmd": from_sample(centres, weights),
        "histogram_mmd": from_sample(*model.weighted_points(placement="centre")),
        "leaning_mmd": from_sample(*model.weighted_points(placement="tilted")),
    }


def _draw(results: Results) -> Figure:
    params = results.params
    half_widths, best = params["half_widths"], best_box_half_width(params["n_side"])
    n_boxes = 2 * params["n_side"] + 1
    figure = new_figure(10.5, 4.5)
    divergence, distance = figure.subplots(1, 2)
    curve(
        divergence, results, "half_width", half_widths, "kl",
        label="KL(boxes ‖ N(0, 1))", style=(ORANGE, "", "-"),
    )  # fmt: skip
    for field, label, style in _CURVES:
        curve(distance, results, "half_width", half_widths, field, label=label, style=style, mark_every=_MARK_EVERY)
    for axes, y in ((divergence, "KL divergence"), (distance, f"MMD, bandwidth {params['bandwidth']:g}")):
        axes.axvline(best, color=INK, linestyle=":", linewidth=1.2, label=f"best half-width for KL, {best:.3f}")
        axes.set_yscale("log")
        dress(axes, x="half-width of a box, C", y=y)
        axes.legend(fontsize=8, frameon=False)
    title(divergence, f"{n_boxes} boxes of width 2C and N(0, 1): divergence")
    title(distance, "distance from N(0, 1), or from samples of it")
    note(
        figure,
        f"no privacy is involved: no noise; {params['repetitions']} samples of {params['n_rows']:,} rows of N(0, 1), "
        "band: smallest to largest; rows beyond the last box count in it",
    )
    return figure


def _smallest(results: Results, field: str) -> tuple[float, float]:
    """The smallest mean of a field, and the half-width at which it is reached."""
    return min((results.mean(field, half_width=c), c) for c in results.params["half_widths"])


def _table(results: Results) -> str:
    rows = []
    for field, label in (("kl", "KL(boxes ‖ N(0, 1))"), *((field, f"MMD: {label}") for field, label, _ in _CURVES)):
        value, where = _smallest(results, field)
        rows.append([label, number(value), f"{where:g}"])
    return markdown_table(["without privacy", "smallest value", "at half-width C"], rows)


def _verdict(results: Results) -> str:
    best = best_box_half_width(results.params["n_side"])
    kl, kl_at = _smallest(results, "kl")
    sample, sample_at = _smallest(results, "sample_mmd")
    histogram, histogram_at = _smallest(results, "histogram_mmd")
    leaning, leaning_at = _smallest(results, "leaning_mmd")
    return (
        f"The divergence is smallest at C = {kl_at:g} (in closed form {best:.4f}), where it is {number(kl)}; the "
        f"sample sees {number(sample)} at C = {sample_at:g} from the weighted centres, {number(histogram)} at "
        f"C = {histogram_at:g} from its own histogram and {number(leaning)} at C = {leaning_at:g} from the leaning "
        "one. "
        "So bins do have the potential that the paper claims for them; no privacy is involved here."
    )


_COMMON = {"n_side": 5, "bandwidth": 1}

EXPERIMENTS = (
    Experiment(
        id="fig-uniform-mixture",
        title="Optimal size of bins: eleven boxes and a Gaussian, without privacy",
        paper_says=(
            "KL and MMD of a mixture of eleven uniforms from a standard Gaussian, and the MMD that a sample of 100,000 "
            "rows sees, all fall and rise again with the width; at a good width the sample's MMD is small. The figure "
            "prints no numbers, and the supplement gives the best weights but not the best width."
        ),
        full=_COMMON | {"n_rows": 100_000, "half_widths": [round(0.02 * i, 2) for i in range(4, 61)], "repetitions": 5},
        quick=_COMMON | {"n_rows": 2_000, "half_widths": [0.1, 0.2, 0.3, 0.4, 0.6, 0.9], "repetitions": 2},
        tasks=_tasks,
        run=_run,
        draw=_draw,
        table=_table,
        verdict=_verdict,
    ),
)
