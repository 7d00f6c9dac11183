"""What moments cost: time of a default fit against one without them, taken in turns.

What is left to do when the first row is drawn is printed too, so that no cost hides there.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.harness import best_of
from spinney import KDTreeSynthesizer
from spinney_paper.experiments import mixtures


def time_ratio(*, rounds: int) -> float:
    """The larger of two ratios: Balog et al.'s 100,000 rows in two and in five dimensions, epsilon 1."""
    models = (KDTreeSynthesizer("1"), KDTreeSynthesizer("1", moments=False))
    ratios = []
    for n_axes in (2, 5):
        actions = [action for model in models for action in _actions(model, n_axes)]
        best_of(*actions, rounds=1)  # compile
        ours, ours_with_row, core, core_with_row = best_of(*actions, rounds=rounds)
        print(
            f"  D = {n_axes}: with moments {1000 * ours:.1f} ms, without {1000 * core:.1f} ms; "
            f"with a first row {1000 * ours_with_row:.1f} ms, {1000 * core_with_row:.1f} ms",
            flush=True,
        )
        ratios.append(ours / core)
    return max(ratios)


def _actions(model: KDTreeSynthesizer, n_axes: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """A fit, and a fit with one row drawn."""
    rows, schema = mixtures.balog(n_axes), mixtures.box_schema(n_axes)
    return lambda: model.fit(rows, schema), lambda: model.fit(rows, schema).sample(1, seed=0)
