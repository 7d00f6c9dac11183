"""How the error of the grid falls with epsilon, against the (epsilon n)^(-1/3) of the Gaussian theorem.

Rows of N(0, 1) in [-5, 5] per axis, stated, not read off the data; kernel bandwidth 1. The grid (Algorithm 1) has a
fixed bin width w and the theorem's threshold, so that its error stops falling where rounding to centres is all that is
left: w√d/(2√e) at most. The theorem bounds the largest difference e of the two kernel densities; an MMD is at most
√(2e).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.errors import ParameterError
from spinney.synthesizers.partition import GridSynthesizer, PartitionSynthesizer
from spinney_paper.experiments import mixtures, trials
from spinney_paper.experiments.drawing import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    PRIVACY,
    RED,
    curve,
    log_axes,
    new_figure,
    note,
    title,
)
from spinney_paper.experiments.framework import Experiment, Inputs
from spinney_paper.experiments.results import Params, Record, Results, Task
from spinney_paper.experiments.wording import markdown_table, number, points
from spinney_paper.kernels import mmd_bound_from_sup
from spinney_paper.theory import gaussian_bound, n_grid_bins, rounding_bound, suggest_threshold

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_STYLES = ((RED, "o", "-"), (ORANGE, "^", "-"))
_SPINNEY = (BLUE, "s", "-")
# A distance counts as falling from where it is below this share of no release at all, until it is near its floor.
_ABOVE_FLOOR, _BELOW_NOTHING = 1.5, 0.9


def _tasks(params: Params) -> list[Task]:
    made: list[Task] = []
    for n_axes in params["n_axes"]:
        made.append({"n_axes": n_axes, "method": "nothing"})
        for epsilon in params["epsilons"]:
            about = {"n_axes": n_axes, "epsilon": epsilon}
            for width in params["bin_widths"]:
                grid = about | {"bin_width": width}
                made.append(grid | {"method": "bound"})
                made += [grid | {"method": "paper", "repetition": i} for i in range(params["repetitions"])]
            made += [about | {"method": "spinney", "repetition": i} for i in range(params["repetitions"])]
    return made


def _run(params: Params, task: Task, inputs: Inputs) -> Record:
    if task["method"] == "bound":
        return {"mmd": _bound(params, task)}
    n_axes, n_rows, half = task["n_axes"], params["n_rows"], params["half_edge"]
    gamma = 1 / (2 * params["bandwidth"] ** 2)
    points = inputs.keep(("gaussian", n_axes), lambda: np.random.default_rng(0).standard_normal((n_rows, n_axes)))
    kappa = inputs.keep(("kappa", n_axes), lambda: trials.own_kappa(points, gamma=gamma))
    if task["method"] == "nothing":
        return {"mmd": trials.rounded(math.sqrt(kappa)), "n_bins": 0}
    model: PartitionSynthesizer = trials.tree("spinney", task["epsilon"])
    if task["method"] == "paper":
        width = task["bin_width"]
        threshold = suggest_threshold(
            n_grid_bins(width, edge=2 * half, n_columns=n_axes),
            epsilon=Fraction(task["epsilon"]),
            delta=params["delta"] / 4,
        )
        model = GridSynthesizer(task["epsilon"], bin_width=width, threshold=threshold, placement="centre")
    made = trials.trial(
        model,
        points,
        mixtures.box_schema(n_axes, -half, half),
        method=task["method"],
        gamma=gamma,
        kappa=kappa,
        seed=task["seed"],
    )
    return {"mmd": made["mmd"], "n_bins": made["n_bins"]}


def _bound(params: Params, task: Task) -> float | None:
    """The theorem's bound as one on the MMD, or None where its conditions do not hold."""
    try:
        most = gaussian_bound(
            params["n_rows"],
            epsilon=Fraction(task["epsilon"]),
            delta=params["delta"],
            data_sd=1,
            bin_width=task["bin_width"],
            edge=2 * params["half_edge"],
            n_columns=task["n_axes"],
            bandwidth=params["bandwidth"],
        )
    except ParameterError:
        return None
    return trials.rounded(mmd_bound_from_sup(most))


# ---------------------------------------------------------------------------------------------- reading results


def _means(results: Results, **wanted: Any) -> list[float]:
    return [results.mean("mmd", epsilon=epsilon, **wanted) for epsilon in results.params["epsilons"]]


def _falling(results: Results, **wanted: Any) -> slice:
    """Where the distance falls: from well below no release at all until it is near its smallest value."""
    means = np.array(_means(results, **wanted))
    below = np.flatnonzero(means < _BELOW_NOTHING * results.mean("mmd", method="nothing", n_axes=wanted["n_axes"]))
    start = int(below[0]) if len(below) else len(means)
    near = np.flatnonzero(means[start:] <= _ABOVE_FLOOR * means.min())
    return slice(start, start + int(near[0]) + 1 if len(near) else len(means))


def _rate(results: Results, **wanted: Any) -> float:
    """Slope of log distance over log epsilon while the distance falls, by least squares; nan below three points."""
    falling = _falling(results, **wanted)
    epsilons = np.array([float(epsilon) for epsilon in results.params["epsilons"]])[falling]
    if len(epsilons) < 3:
        return math.nan
    return float(np.polyfit(np.log(epsilons), np.log(_means(results, **wanted)[falling]), 1)[0])


def _floor(results: Results, **wanted: Any) -> float:
    """Where the distance ends, if more budget has stopped to help: the last two values differ by a tenth at most."""
    before, last = _means(results, **wanted)[-2:]
    is_useful = last < _BELOW_NOTHING * results.mean("mmd", method="nothing", n_axes=wanted["n_axes"])
    return last if is_useful and abs(last / before - 1) < 0.1 else math.nan


def _draw(results: Results) -> Figure:
    params = results.params
    figure = new_figure(12.5, 4.6)
    panels = np.atleast_1d(figure.subplots(1, len(params["n_axes"]), sharey=True))
    epsilons = [float(epsilon) for epsilon in params["epsilons"]]
    for axes, n_axes in zip(panels, params["n_axes"], strict=True):
        for width, style in zip(params["bin_widths"], _STYLES, strict=False):
            wanted = {"n_axes": n_axes, "bin_width": width}
            curve(
                axes, results, "epsilon", params["epsilons"], "mmd",
                label=f"grid (Algorithm 1), width {width:g}", style=style, method="paper", **wanted,
            )  # fmt: skip
            axes.axhline(
                rounding_bound(width, n_columns=n_axes, bandwidth=params["bandwidth"]),
                color=style[0],
                linestyle=":",
                linewidth=1.2,
                label=f"rounding bound w√d/(2√e), width {width:g}",
            )
            # No two densities are further apart than √2: a bound of that size says nothing.
            bounds = [bound if bound < 1.4 else math.nan for bound in _means(results, method="bound", **wanted)]
            axes.plot(
                epsilons,
                bounds,
                color=style[0],
                linestyle="--",
                linewidth=1.1,
                label=f"theorem's bound, width {width:g}",
            )
        curve(
            axes, results, "epsilon", params["epsilons"], "mmd",
            label="PrivTree with bins", style=_SPINNEY, method="spinney", n_axes=n_axes,
        )  # fmt: skip
        _benchmark(axes, results, n_axes)
        nothing = results.mean("mmd", method="nothing", n_axes=n_axes)
        axes.axhline(nothing, color=GREY, linewidth=1, label="releasing nothing at all")
        log_axes(axes, x="ε", y="MMD, bandwidth 1" if n_axes == params["n_axes"][0] else "")
        title(axes, f"d = {n_axes}")
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False, fontsize=8
    )
    note(
        figure,
        f"{params['n_rows']:,} rows of N(0, 1) per axis; {PRIVACY}; mean of {params['repetitions']} releases, "
        "band: smallest to largest; where the theorem's bound is not drawn it says nothing",
    )
    return figure


def _benchmark(axes: Any, results: Results, n_axes: int) -> None:
    """C (epsilon n)^(-1/3) through the first point at which the wider grid is well below no release at all."""
    params = results.params
    nothing = results.mean("mmd", method="nothing", n_axes=n_axes)
    means = _means(results, method="paper", n_axes=n_axes, bin_width=params["bin_widths"][0])
    epsilons = [float(epsilon) for epsilon in params["epsilons"]]
    useful = [i for i, mean in enumerate(means) if mean < _BELOW_NOTHING * nothing]
    start = useful[0] if useful else 0
    level = means[start] * np.cbrt(epsilons[start])
    axes.plot(
        epsilons,
        level / np.cbrt(epsilons),
        color=INK,
        linestyle="-.",
        linewidth=1.3,
        label="c (εn)^(-1/3), through the grid's first useful point",
    )


def _table(results: Results) -> str:
    params = results.params
    shown = [epsilon for epsilon in params["epsilons"] if epsilon.strip("0.") == "1"]
    rows = []
    for n_axes in params["n_axes"]:
        lines: list[tuple[str, dict[str, Any]]] = [
            (f"grid, w = {width:g}", {"method": "paper", "bin_width": width}) for width in params["bin_widths"]
        ]
        lines += [("PrivTree with bins", {"method": "spinney"}), ("releasing nothing", {"method": "nothing"})]
        for name, method in lines:
            wanted = method | {"n_axes": n_axes}
            if name == "releasing nothing":
                rows.append([f"d = {n_axes}", name, *[number(results.mean("mmd", **wanted))] * len(shown), "", "", ""])
                continue
            cells = [number(results.mean("mmd", epsilon=epsilon, **wanted)) for epsilon in shown]
            slope = _rate(results, **wanted)
            cells.append(f"{slope:.2f}" if math.isfinite(slope) else "–")
            cells.append(number(_floor(results, **wanted)))
            cells.append(_rounding(results, n_axes, method["bin_width"]) if "bin_width" in method else "–")
            rows.append([f"d = {n_axes}", name, *cells])
    head = ["mean MMD", "", *(f"ε = {epsilon}" for epsilon in shown), "exponent of ε", "floor", "w√d/(2√e)"]
    return markdown_table(head, rows, n_names=2)


def _rounding(results: Results, n_axes: int, width: float) -> str:
    return number(rounding_bound(width, n_columns=n_axes, bandwidth=results.params["bandwidth"]))


def _verdict(results: Results) -> str:
    params = results.params
    slopes, floors = [], []
    for n_axes in params["n_axes"]:
        for width in params["bin_widths"]:
            wanted = {"method": "paper", "n_axes": n_axes, "bin_width": width}
            slope, floor = _rate(results, **wanted), _floor(results, **wanted)
            if math.isfinite(slope):
                slopes.append(slope)
            if math.isfinite(floor):
                floors.append(rounding_bound(width, n_columns=n_axes, bandwidth=params["bandwidth"]) / floor)
    parts = []
    if slopes:
        steeper = sum(slope < -1 / 3 for slope in slopes)
        parts.append(
            f"While it falls, the grid's error goes as ε to a power between {min(slopes):.2f} and {max(slopes):.2f}, "
            f"steeper than -1/3 in {steeper} of {len(slopes)} cases"
            + (": the gap that the paper suspects." if steeper == len(slopes) else ".")
        )
    if floors:
        ends = " to ".join(dict.fromkeys((number(min(floors)), number(max(floors)))))
        parts.append(f"Where more budget no longer helps, it ends {ends} times below the rounding bound.")
    last = params["epsilons"][-1]
    both = []
    for n_axes in params["n_axes"]:
        grid = min(
            results.mean("mmd", method="paper", n_axes=n_axes, bin_width=width, epsilon=last)
            for width in params["bin_widths"]
        )
        ours = results.mean("mmd", method="spinney", n_axes=n_axes, epsilon=last)
        both.append(f"{number(ours)} and {number(grid)} (d = {n_axes})")
    parts.append(f"At ε = {last}, PrivTree with bins against the better grid: {', '.join(both)}.")
    return points(parts)


_COMMON = {"half_edge": 5, "bandwidth": 1, "delta": 0.05, "bin_widths": [1.0, 0.25]}

EXPERIMENTS = (
    Experiment(
        id="fig-scaling",
        title="Tightness of the Gaussian bound: error of the grid over ε",
        paper_says=(
            "For 100,000 rows of a standard Gaussian in various dimensions the measured MMD falls faster than the "
            "(εn)^(-1/3) of the theorem, which suggests that the bound can be improved, and then stabilises whatever "
            "the budget because of rounding to centres. The figure prints no numbers."
        ),
        full=_COMMON
        | {
            "n_rows": 100_000,
            "n_axes": [1, 2, 3, 5],
            "epsilons": [
                "0.0002",
                "0.0005",
                "0.001",
                "0.002",
                "0.005",
                "0.01",
                "0.02",
                "0.05",
                "0.1",
                "0.2",
                "0.5",
                "1",
                "2",
                "5",
                "10",
            ],
            "repetitions": 5,
        },
        quick=_COMMON | {"n_rows": 3_000, "n_axes": [1, 2], "epsilons": ["0.01", "0.1", "1", "10"], "repetitions": 2},
        tasks=_tasks,
        run=_run,
        draw=_draw,
        table=_table,
        verdict=_verdict,
    ),
)
