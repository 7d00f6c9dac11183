"""Error against epsilon, for all methods, as one picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.fidelity.distances import EPSILONS, Distances
from benchmarks.fidelity.ranges import AREAS, OURS, RIVALS, Cell, geometric_mean
from benchmarks.fidelity.ranges import EPSILONS as RANGE_EPSILONS
from benchmarks.fidelity.targets import BEST_DISTANCES, WANTED_DISTANCES
from spinney.report.pictures import save_figure
from spinney_paper.experiments.drawing import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PRIVACY,
    RED,
    band,
    log_axes,
    new_figure,
    note,
    title,
)

_STYLES = {
    OURS: (BLUE, "s", "-"),
    "UG": (RED, "o", "-"),
    "AG": (ORANGE, "^", "-"),
    "PrivTree": (GREEN, "D", "-"),
    "best elsewhere": (GREY, "x", "--"),
    "wanted": (GREY, "", ":"),
}


def draw(distances: Distances, cells: list[Cell], path: Path) -> None:
    """Panels: distances by number of columns, then errors of range queries by class of areas."""
    classes = list(AREAS) if cells else []
    figure = new_figure(3.1 * (len(EPSILONS) + len(classes)), 3.9)
    panels = np.atleast_1d(figure.subplots(1, len(EPSILONS) + len(classes)))
    for axes, n_axes in zip(panels, sorted(EPSILONS), strict=False):
        epsilons = EPSILONS[n_axes]
        found = [np.array(distances.releases[n_axes, epsilon]) for epsilon in epsilons]
        band(axes, epsilons, found, label=OURS, style=_STYLES[OURS])
        for name, known in (("best elsewhere", BEST_DISTANCES), ("wanted", WANTED_DISTANCES)):
            values = [np.array([known[n_axes, epsilon]]) for epsilon in epsilons]
            band(axes, epsilons, values, label=name, style=_STYLES[name])
        log_axes(axes, x="ε", y="RKHS distance to the private rows")
        title(axes, f"mixtures, {n_axes} columns")
    for axes, areas in zip(panels[len(EPSILONS) :], classes, strict=True):
        for method in (OURS, *RIVALS):
            means = [
                geometric_mean(c.errors[method] for c in cells if (c.areas, c.epsilon) == (areas, epsilon))
                for epsilon in RANGE_EPSILONS
            ]
            band(axes, RANGE_EPSILONS, [np.array([m]) for m in means], label=method, style=_STYLES[method])
        log_axes(axes, x="ε", y="relative error")
        title(axes, f"boxes of {areas} of the map")
    entries = {
        label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(entries.values(), entries.keys(), loc="outside upper center", ncols=len(entries), frameon=False)
    n_maps = len({cell.map_name for cell in cells})
    note(
        figure,
        f"{PRIVACY}; mean of {len(distances.releases[5, '1'])} runs, band: smallest to largest"
        + (f"; boxes: geometric mean over {n_maps} maps" if n_maps > 1 else ""),
    )
    save_figure(figure, path, overwrite=True)
