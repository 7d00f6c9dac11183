"""More rows, better data: the supplement's G.2, on Balog et al.'s five-dimensional mixture."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from spinney_paper.experiments import sweep, trials
from spinney_paper.experiments.framework import Experiment
from spinney_paper.experiments.results import Results
from spinney_paper.experiments.wording import number, points, sentence_case

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _label(one: sweep.Case) -> str:
    return f"{one['n_rows']:,} rows"


def _draw(results: Results) -> Figure:
    return sweep.draw(results, _label, f"mixture of ten Gaussians in {results.params['cases'][0]['n_axes']} dimensions")


def _table(results: Results) -> str:
    return sweep.table(results, _label)


def _verdict(results: Results) -> str:
    cases, epsilons = results.params["cases"], results.params["epsilons"]
    parts = []
    for method in sweep.METHODS:
        means = [[sweep.mean_distance(results, one, method, epsilon) for epsilon in epsilons] for one in cases]
        pairs = [more <= fewer for below, above in pairwise(means) for fewer, more in zip(below, above, strict=True)]
        reached = ", ".join(f"{number(min(row))} with {_label(one)}" for one, row in zip(cases, means, strict=True))
        parts.append(
            f"{sentence_case(trials.NAMES[method])}: more rows are no worse in {sum(pairs)} of {len(pairs)} "
            f"comparisons; smallest distance over ε {reached}."
        )
    return points([*parts, *_worse_than_nothing(results), sweep.against_best(results)])


def _worse_than_nothing(results: Results) -> list[str]:
    """Where a release is further away than none, by more than rounding; for all methods alike."""
    sentences = []
    for method in sweep.METHODS:
        cases = []
        for one in results.params["cases"]:
            nothing = sweep.nothing(results, one)
            epsilons = [
                epsilon
                for epsilon in results.params["epsilons"]
                if sweep.mean_distance(results, one, method, epsilon) > 1.01 * nothing
            ]
            if epsilons:
                cases.append(f"{_label(one)} at ε = {', '.join(epsilons)}")
        if cases:
            name = sentence_case(trials.NAMES[method])
            sentences.append(f"{name}, further away than nothing: {'; '.join(cases)}.")
    return sentences


EXPERIMENTS = (
    Experiment(
        id="fig-size",
        title="Dependency on the number of rows (supplement, section G.2)",
        paper_says=(
            "With 1k, 10k and 100k rows of the same five-dimensional mixture, more rows give a smaller error, and the "
            "smallest error that can be reached falls as well. The figure prints no numbers."
        ),
        full={
            "cases": [sweep.case(5, n_rows=n_rows) for n_rows in (1_000, 10_000, 100_000)],
            "epsilons": ["0.01", "0.03", "0.1", "0.3", "1", "3", "10"],
            "fixed_depths": [12, 16, 20],
            "levels": [4, 8, 16],
            "repetitions": 5,
        },
        quick={
            "cases": [sweep.case(5, n_rows=n_rows) for n_rows in (300, 1_000, 3_000)],
            "epsilons": ["0.1", "1", "10"],
            "fixed_depths": [12, 16],
            "levels": [4],
            "repetitions": 2,
        },
        tasks=sweep.tasks,
        run=sweep.run,
        draw=_draw,
        table=_table,
        verdict=_verdict,
    ),
)
