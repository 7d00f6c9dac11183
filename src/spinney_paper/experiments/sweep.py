"""Distances on Balog et al.'s mixtures over epsilon: what three figures of the paper have in common.

A case is a mixture (dimensions, rows, deviation of a cluster). Every case meets every epsilon with

    paper     the paper's tree, its settings by the library's rules from public quantities
    best      the paper's tree at each setting of a small stated grid; the best mean is drawn, that of the automatic
              setting included. Choosing it looks at the private rows: it shows what the algorithm could do, not what
              a user gets for this epsilon
    spinney   Spinney's tree by the PrivTree rule with bins, the default beyond eight columns
    nothing   no release at all: the distance to the empty set
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spinney_paper.experiments import mixtures, trials
from spinney_paper.experiments.drawing import (
    BLUE,
    GREEN,
    PRIVACY,
    PURPLE,
    RED,
    band,
    log_axes,
    new_figure,
    note,
    title,
)
from spinney_paper.experiments.framework import Inputs
from spinney_paper.experiments.results import Floats, Params, Record, Results, Task
from spinney_paper.experiments.wording import markdown_table, number, with_spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure


METHODS = ("paper", "best", "spinney")
Case = dict[str, Any]

# Colour, marker and line of each case, the same in all panels.
_STYLES = ((RED, "o", "-"), (GREEN, "^", "-"), (BLUE, "s", "-"), (PURPLE, "D", "-"))


def case(n_axes: int, *, n_rows: int = 100_000, spread: int = 30) -> Case:
    return {"n_axes": n_axes, "n_rows": n_rows, "spread": spread}


def tasks(params: Params) -> list[Task]:
    """All tasks, the settings of one repetition side by side."""
    made: list[Task] = []
    for one in params["cases"]:
        made.append(one | {"method": "nothing"})
        for epsilon in params["epsilons"]:
            for repetition in range(params["repetitions"]):
                about = one | {"epsilon": epsilon, "repetition": repetition}
                made += [about | {"method": method} for method in ("paper", "spinney")]
                made += [
                    about | {"method": "best", "fixed_depth": fixed, "max_depth": fixed + levels}
                    for fixed in params["fixed_depths"]
                    for levels in params["levels"]
                ]
    return made


def run(params: Params, task: Task, inputs: Inputs) -> Record:  # noqa: ARG001  # the common signature
    """One release and its distance."""
    n_axes, n_rows, spread = task["n_axes"], task["n_rows"], task["spread"]
    gamma = mixtures.balog_gamma(n_axes)
    points = inputs.keep(
        ("balog", n_axes, n_rows, spread), lambda: mixtures.balog(n_axes, n_rows=n_rows, spread=spread)
    )
    kappa = inputs.keep(("kappa", n_axes, n_rows, spread), lambda: trials.own_kappa(points, gamma=gamma))
    if task["method"] == "nothing":
        return {"mmd": float(kappa**0.5), "n_bins": 0}
    settings = {name: task[name] for name in ("fixed_depth", "max_depth") if name in task}
    return trials.trial(
        trials.tree(task["method"], task["epsilon"], **settings),
        points,
        mixtures.box_schema(n_axes),
        method=task["method"],
        gamma=gamma,
        kappa=kappa,
        seed=task["seed"],
    )


# ---------------------------------------------------------------------------------------------- reading results


def distances(results: Results, one: Case, method: str, epsilon: str) -> Floats:
    """The distances of all repetitions; of "best", those of its best setting."""
    setting = best_setting(results, one, epsilon) if method == "best" else {"method": method}
    return results.values("mmd", epsilon=epsilon, **one, **setting)


def best_setting(results: Results, one: Case, epsilon: str) -> dict[str, Any]:
    """The setting whose mean distance is smallest, as the values that its records have."""
    settings: list[dict[str, Any]] = [{"method": "paper"}]
    settings += [
        {"method": "best", "fixed_depth": fixed, "max_depth": fixed + levels}
        for fixed in results.params["fixed_depths"]
        for levels in results.params["levels"]
    ]
    return min(settings, key=lambda setting: results.mean("mmd", epsilon=epsilon, **one, **setting))


def mean_distance(results: Results, one: Case, method: str, epsilon: str) -> float:
    return float(distances(results, one, method, epsilon).mean())


def nothing(results: Results, one: Case) -> float:
    """The distance of no release at all."""
    return results.mean("mmd", method="nothing", **one)


def is_useful(results: Results, one: Case, method: str, epsilon: str) -> bool:
    """Whether a release is nearer to the private rows than nothing, by more than the rounding of records."""
    return mean_distance(results, one, method, epsilon) < (1 - 1e-5) * nothing(results, one)


def smallest_useful(results: Results, one: Case, method: str) -> str | None:
    """The smallest epsilon from which on a release is nearer to the private rows than nothing; None if none is."""
    useful = None
    for epsilon in reversed(results.params["epsilons"]):
        if not is_useful(results, one, method, epsilon):
            break
        useful = epsilon
    return useful


def against_best(results: Results) -> str:
    """How often PrivTree is nearer than the paper's tree at its best setting, as a sentence."""
    pairs = [
        (mean_distance(results, one, "spinney", epsilon), mean_distance(results, one, "best", epsilon))
        for one in results.params["cases"]
        for epsilon in results.params["epsilons"]
    ]
    nearer = sum(ours < best for ours, best in pairs)
    ours = trials.NAMES["spinney"]
    return f"{ours} is nearer than the paper's tree at its best setting in {nearer} of {len(pairs)} cases."


# --------------------------------------------------------------------------------------- picture and table


def draw(results: Results, label: Callable[[Case], str], what: str) -> Figure:
    """One panel per method, one curve per case; dotted lines are no release at all."""
    figure = new_figure(11.5, 4.5)
    panels = figure.subplots(1, len(METHODS), sharey=True)
    epsilons = results.params["epsilons"]
    for axes, method in zip(panels, METHODS, strict=True):
        for one, style in zip(results.params["cases"], _STYLES, strict=False):
            values = [distances(results, one, method, epsilon) for epsilon in epsilons]
            band(axes, epsilons, values, label=label(one), style=style)
            axes.axhline(nothing(results, one), color=style[0], linestyle=":", linewidth=1.1)
        log_axes(axes, x="ε", y="RKHS distance to the private rows" if method == METHODS[0] else "")
        title(axes, trials.NAMES[method])
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    note(
        figure,
        f"{what}; {PRIVACY}; mean of {results.params['repetitions']} releases, band: smallest to largest; "
        "dotted: releasing nothing at all",
    )
    return figure


def table(results: Results, label: Callable[[Case], str]) -> str:
    """Mean distances with their deviation, a row per case and method."""
    epsilons = results.params["epsilons"]
    rows = []
    for one in results.params["cases"]:
        for method in METHODS:
            cells = []
            for epsilon in epsilons:
                values = distances(results, one, method, epsilon)
                cells.append(with_spread(values))
            rows.append([label(one), trials.NAMES[method], *cells])
            if method == "best":
                chosen = [results.where(**one, epsilon=e, **best_setting(results, one, e))[0] for e in epsilons]
                rows.append([label(one), "its h, h′", *(f"{r['fixed_depth']}, {r['max_depth']}" for r in chosen)])
        rows.append([label(one), "releasing nothing", *[number(nothing(results, one))] * len(epsilons)])
    head = ["RKHS distance", "mean ± sd over releases", *(f"ε = {epsilon}" for epsilon in epsilons)]
    return markdown_table(head, rows, n_names=2)
