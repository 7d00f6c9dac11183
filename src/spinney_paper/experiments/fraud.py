"""Card fraud: classifiers learn from synthetic payments and are judged on real ones. Two tables and a figure.

Twelve classifiers learn from each release and are tested on the fifth of the thinned table that no synthesizer saw
("the remaining 80 %" is a slip of the paper). The score is the area under the ROC of predicted labels, as in DP-MERF's
code; 0.5 is guessing, and what a release without rows, or with rows of one class alone, amounts to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from spinney.metrics import CLASSIFIERS
from spinney_paper.experiments import fraud_rival, fraud_wording
from spinney_paper.experiments.drawing import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    curve,
    dress,
    new_figure,
    note,
)
from spinney_paper.experiments.framework import Experiment, Inputs
from spinney_paper.experiments.fraud_methods import METHODS, tree_trial
from spinney_paper.experiments.fraud_printed import PRINTED_MERF, PRINTED_TREE, PRINTED_TREE_AVERAGE
from spinney_paper.experiments.results import Params, Record, Results, Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_Styles = dict[str, tuple[str, str, str]]

_TREE_STYLES: _Styles = {
    "paper": (GREY, "v", "-"),
    "paper, low threshold": (RED, "o", "-"),
    "paper, public box": (ORANGE, "^", "-"),
    "spinney": (BLUE, "s", "-"),
    "spinney, inside": (SKY, "D", "-"),
}
_MERF_STYLES: _Styles = {
    "dp-merf, published noise": (RED, "v", "-"),
    "dp-merf": (GREEN, "o", "-"),
    "dp-merf, inside": (PURPLE, "D", "-"),
}


def _tasks(params: Params) -> list[Task]:
    return [
        {"method": method, "epsilon": epsilon, "repetition": repetition}
        for repetition in range(params["repetitions"])
        for method in params["methods"]
        for epsilon in params["epsilons"]
    ]


def _draw_tree(results: Results) -> Figure:
    names = {method: METHODS[method].name for method in results.params["methods"]}
    return _draw_areas(results, names, _TREE_STYLES, PRINTED_TREE_AVERAGE, "printed in the paper")


def _draw_merf(results: Results) -> Figure:
    names = {method: fraud_rival.RIVALS[method].name for method in results.params["methods"]}
    return _draw_areas(results, names, _MERF_STYLES, PRINTED_MERF, "printed in the paper")


def _draw_areas(
    results: Results, names: Mapping[str, str], styles: _Styles, printed: Mapping[str, float], label: str
) -> Figure:
    """Average areas over epsilon by both scores: labels, beside the printed ones, and ranking."""
    figure = new_figure(10.4, 4.6)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, field, what in zip(panels, ("labels", "ranking"), ("of predicted labels", "of ranked rows"), strict=True):
        for method, name in names.items():
            curve(
                axes, results, "epsilon", results.params["epsilons"], field,
                label=name, style=styles[method], method=method,
            )  # fmt: skip
        if field == "labels":
            _line(axes, printed, label, INK, "x")
        _over_epsilon(axes, f"area under the ROC {what}, mean of {len(results.params['classifiers'])} classifiers")
    panels[0].set_ylim(0.1, 1)
    _legend_above(figure, panels[0])
    note(figure, fraud_wording.small_print(results))
    return figure


def _legend_above(figure: Figure, axes: Axes) -> None:
    """One legend for both panels."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, fontsize=8, frameon=False)


def _line(axes: Axes, values: Mapping[str, float], label: str, color: str, marker: str) -> None:
    axes.plot(
        [float(epsilon) for epsilon in values], list(values.values()),
        color=color, marker=marker, linestyle=":", linewidth=1.4, markersize=6, label=label,
    )  # fmt: skip


def _over_epsilon(axes: Axes, y: str) -> None:
    from matplotlib.ticker import FuncFormatter

    axes.set_xscale("log")
    dress(axes, x="ε", y=y)
    axes.yaxis.label.set_fontsize(8.5)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


# -------------------------------------------------------------------------------------------------------- degradation

_SOURCES = {
    "paper, low threshold": "tab-fraud-tree",
    "spinney": "tab-fraud-tree",
    "dp-merf, published noise": "tab-fraud-dpmerf",
}


def _ratio_tasks(params: Params) -> list[Task]:
    return [
        {"method": method, "epsilon": epsilon}
        for method, source in _SOURCES.items()
        for epsilon in params["epsilons"][source]
    ]


def _ratio(params: Params, task: Task, inputs: Inputs) -> Record:
    held = inputs.results_of(_SOURCES[task["method"]], is_quick=params["is_quick"])
    area = held.mean("labels", method=task["method"], epsilon=task["epsilon"])
    reference = held.mean("labels", method=task["method"], epsilon=params["reference"])
    return {
        "source": held.params["source"],
        "area": round(area, 6),
        "ratio": round(area / reference, 6),
        "advantage_left": round((area - 0.5) / (reference - 0.5), 6) if reference > 0.5 else None,
        "repetitions": held.params["repetitions"],
    }


def _draw_ratio(results: Results) -> Figure:
    figure = new_figure(10.4, 4.4)
    ratio, advantage = figure.subplots(1, 2)
    styles = _TREE_STYLES | _MERF_STYLES
    names = fraud_wording.RATIO_NAMES
    reference = results.params["reference"]
    for axes, field in ((ratio, "ratio"), (advantage, "advantage_left")):
        for method, source in _SOURCES.items():
            epsilons = [
                epsilon
                for epsilon in results.params["epsilons"][source]
                if len(results.values(field, method=method, epsilon=epsilon))
            ]
            if epsilons:
                curve(
                    axes, results, "epsilon", epsilons, field, label=names[method], style=styles[method], method=method
                )
        for printed, label, color in (
            (PRINTED_TREE_AVERAGE, "tree, printed", RED), (PRINTED_MERF, "DP-MERF, printed", GREEN)
        ):  # fmt: skip
            measure = fraud_wording.ratios if field == "ratio" else fraud_wording.advantages
            _line(axes, measure(printed, reference), label, color, "x")
    _over_epsilon(ratio, f"area under the ROC / area at ε = {reference}")
    _over_epsilon(advantage, f"(area - 0.5) / (area at ε = {reference} - 0.5)")
    _legend_above(figure, ratio)
    advantage.axhline(0, color=INK, linewidth=0.8)
    note(figure, fraud_wording.ratio_small_print(results))
    return figure


# --------------------------------------------------------------------------------------------------------- the three

_FULL = {"source": "creditcard", "rate": 0.005, "train_share": 0.8, "classifiers": list(CLASSIFIERS)}
_QUICK = {
    "source": "made-up",
    "rate": 0.02,
    "train_share": 0.8,
    "classifiers": ["Logistic Regression", "Gaussian Naive Bayes", "Decision Tree", "LDA"],
}
_TREE = {"methods": list(METHODS), "fixed_depth": 30, "max_depth": 60, "log2_noise_bins": 5}
_TREE_EPSILONS, _MERF_EPSILONS = list(PRINTED_TREE_AVERAGE), list(PRINTED_MERF)
_MERF = {"methods": list(fraud_rival.RIVALS), "delta": "1e-5", "batch_share": 0.5}


def _both(tree: Sequence[str], merf: Sequence[str]) -> dict[str, list[str]]:
    return {"tab-fraud-tree": list(tree), "tab-fraud-dpmerf": list(merf)}


EXPERIMENTS = (
    Experiment(
        id="tab-fraud-tree",
        title="Card fraud: classifiers trained on the tree's rows (supplement G.4)",
        paper_says=(
            "Average area under the ROC of twelve classifiers over 20 repetitions: "
            f"{fraud_wording.in_words(PRINTED_TREE_AVERAGE)}. Undersampling rate 0.005, 30 data-independent levels "
            "of at most 60; thresholds are not printed."
        ),
        full=_FULL | _TREE | {"epsilons": _TREE_EPSILONS, "repetitions": 20},
        quick=_QUICK | _TREE | {"epsilons": ["10", "0.1"], "repetitions": 2},
        tasks=_tasks,
        run=tree_trial,
        draw=_draw_tree,
        table=lambda results: fraud_wording.tree_table(results, PRINTED_TREE, PRINTED_TREE_AVERAGE),
        verdict=lambda results: fraud_wording.tree_verdict(results, PRINTED_TREE_AVERAGE),
        needs_fraud=True,
    ),
    Experiment(
        id="tab-fraud-dpmerf",
        title="Card fraud: classifiers trained on DP-MERF's rows (supplement G.4)",
        paper_says=(
            "Average area under the ROC of twelve classifiers over 5 repetitions of DP-MERF: "
            f"{fraud_wording.in_words(PRINTED_MERF)}; 4,000 epochs, 5,000 features, mini-batch 0.5, rate 0.005."
        ),
        full=_FULL | _MERF | {"epsilons": _MERF_EPSILONS, "repetitions": 5, "n_features": 5000, "n_steps": 4000},
        quick=_QUICK | _MERF | {"epsilons": ["10", "0.1"], "repetitions": 1, "n_features": 200, "n_steps": 100},
        tasks=_tasks,
        run=fraud_rival.rival_trial,
        draw=_draw_merf,
        table=lambda results: fraud_wording.rival_table(results, PRINTED_MERF),
        verdict=lambda results: fraud_wording.rival_verdict(results, PRINTED_MERF),
        needs_fraud=True,
    ),
    Experiment(
        id="fig-roc-degradation",
        title="Card fraud: how fast the area under the ROC falls with ε",
        paper_says=(
            "The area at ε divided by the area at ε = 10 falls more slowly for the paper's tree "
            f"({fraud_wording.in_words(fraud_wording.ratios(PRINTED_TREE_AVERAGE, '10'))}) than for DP-MERF "
            f"({fraud_wording.in_words(fraud_wording.ratios(PRINTED_MERF, '10'))})."
        ),
        full={"is_quick": False, "reference": "10", "epsilons": _both(_TREE_EPSILONS, _MERF_EPSILONS)},
        quick={"is_quick": True, "reference": "10", "epsilons": _both(["10", "0.1"], ["10", "0.1"])},
        tasks=_ratio_tasks,
        run=_ratio,
        draw=_draw_ratio,
        table=fraud_wording.ratio_table,
        verdict=fraud_wording.ratio_verdict,
        reads=("tab-fraud-tree", "tab-fraud-dpmerf"),
    ),
)
