"""The data-dependent tree in 10 to 100 dimensions: right panel of the paper's first experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spinney_paper.experiments import sweep, trials
from spinney_paper.experiments.framework import Experiment
from spinney_paper.experiments.results import Results
from spinney_paper.experiments.wording import number, points, sentence_case

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _label(one: sweep.Case) -> str:
    return f"D = {one['n_axes']}"


def _draw(results: Results) -> Figure:
    n_rows = results.params["cases"][0]["n_rows"]
    return sweep.draw(results, _label, f"{n_rows:,} rows of ten Gaussians in D dimensions, kernel exp(-1e-4 ‖x-y‖²/D)")


def _table(results: Results) -> str:
    return sweep.table(results, _label)


def _verdict(results: Results) -> str:
    cases, last = results.params["cases"], results.params["epsilons"][-1]
    parts = []
    for method in sweep.METHODS:
        useful = {_label(one): sweep.smallest_useful(results, one, method) for one in cases}
        good = ", ".join(f"{name} from ε = {epsilon}" for name, epsilon in useful.items() if epsilon is not None)
        bad = ", ".join(name for name, epsilon in useful.items() if epsilon is None)
        at_last = " / ".join(number(sweep.mean_distance(results, one, method, last)) for one in cases)
        parts.append(
            f"{sentence_case(trials.NAMES[method])}: nearer to the private rows than nothing at all "
            + (f"for {good}" if good else "nowhere")
            + (f", not for {bad}" if good and bad else "")
            + f"; at ε = {last} the distances are {at_last}."
        )
    epsilons = results.params["epsilons"]
    hopeless = [
        _label(one) for one in cases if not any(sweep.is_useful(results, one, "best", epsilon) for epsilon in epsilons)
    ]
    if hopeless:
        parts.append(
            f"With these data and this kernel the paper's claim is not borne out for {', '.join(hopeless)}: no setting "
            "of the grid gives a release that is better than none."
        )
    return points([*parts, sweep.against_best(results)])


EXPERIMENTS = (
    Experiment(
        id="fig-high-dim",
        title="Data-dependent algorithm in high dimensions",
        paper_says=(
            "The data-dependent algorithm is said to reach low errors in high dimensions over a range of ε, and so to "
            "overcome the curse of dimensionality. Neither dimensions, kernel, settings nor numbers are printed."
        ),
        full={
            "cases": [sweep.case(n_axes) for n_axes in (10, 20, 50, 100)],
            "epsilons": ["0.01", "0.1", "1", "10"],
            "fixed_depths": [12, 20],
            "levels": [8, 16, 40],
            "repetitions": 3,
        },
        quick={
            "cases": [sweep.case(n_axes, n_rows=2_000) for n_axes in (10, 30)],
            "epsilons": ["0.1", "1", "10"],
            "fixed_depths": [12],
            "levels": [8, 32],
            "repetitions": 2,
        },
        tasks=sweep.tasks,
        run=sweep.run,
        draw=_draw,
        table=_table,
        verdict=_verdict,
    ),
)
