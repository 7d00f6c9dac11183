"""Drawings of the promise and of the budget: what an attacker can learn at most, and where epsilon went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from spinney.report.promise_part import largest_belief, percent
from spinney.report.svg import BAR, INK, LINE, QUIET, STRONG, WARM, bare_axes, new_figure, to_svg
from spinney.shown import printable


def belief_drawing(promise: Mapping[str, Any], name: str = "belief") -> str:
    """How far a belief can move at most: before the release along the side, after it upwards."""
    side, margin = 300, 40
    figure = new_figure(side, side)
    axes = bare_axes(figure, margin + 18, margin, side - margin - 26, side - margin - 12)
    epsilon = Fraction(promise["epsilon"])
    before = np.linspace(0, 1, 101)
    after = np.array([largest_belief(float(share), epsilon) for share in before])
    least = 1 - after[::-1]
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    for share in (0, 0.25, 0.5, 0.75, 1):
        axes.plot([0, 1], [share, share], color=LINE, linewidth=1)
        axes.plot([share, share], [0, 1], color=LINE, linewidth=1)
    axes.fill_between(before, least, after, color=BAR, alpha=0.55, linewidth=0)
    axes.plot([0, 1], [0, 1], color=QUIET, linewidth=1.2, linestyle=(0, (4, 3)))
    axes.plot(before, after, color=STRONG, linewidth=2)
    at_half = largest_belief(0.5, epsilon)
    axes.plot([0.5], [at_half], marker="o", markersize=8, color=WARM)
    beside = (0.47, min(at_half + 0.045, 0.97), "right") if at_half < 0.9 else (0.53, 0.9, "left")
    axes.text(
        beside[0], beside[1], percent(at_half), ha=beside[2], va="center", fontsize=14, fontweight="bold", color=INK
    )
    ticks = [0, 0.5, 1]
    axes.set_xticks(ticks, ["0", "50 %", "100 %"], fontsize=11, color=QUIET)
    axes.set_yticks(ticks, ["0", "50 %", "100 %"], fontsize=11, color=QUIET)
    axes.get_xticklabels()[-1].set_horizontalalignment("right")
    axes.set_xlabel("belief before the release", fontsize=11, color=INK, labelpad=2)
    axes.set_ylabel("belief after it, at most", fontsize=11, color=INK, labelpad=-2)
    return to_svg(
        figure,
        name=name,
        title="What an attacker can believe at most",
        description=f"Who held something about one person to be 50 % likely before the release holds it to be at most "
        f"{percent(at_half)} likely afterwards. The dashed line is no change.",
    )


def budget_drawing(budget: Sequence[Mapping[str, Any]], name: str = "budget") -> str:
    """Bars of every stage's share of the budget."""
    width, line = 400, 40
    height = line * len(budget)
    figure = new_figure(width, height)
    axes = bare_axes(figure, 2, 0, width - 4, height)
    axes.set_axis_off()
    largest = max((stage["share"] for stage in budget), default=1.0)
    axes.set_xlim(0, 1)
    axes.set_ylim(len(budget), 0)
    for place, stage in enumerate(budget):
        axes.barh(place + 0.72, 1, height=0.26, color=LINE)
        axes.barh(place + 0.72, stage["share"], height=0.26, color=STRONG if stage["share"] == largest else BAR)
        axes.text(0, place + 0.36, printable(stage["what"]), va="center_baseline", fontsize=13, color=INK)
        axes.text(
            1, place + 0.36, f"{100 * stage['share']:.1f} %", ha="right", va="center_baseline", fontsize=13, color=QUIET
        )
    told = "; ".join(f"{stage['what']} {100 * stage['share']:.1f} %" for stage in budget)
    return to_svg(figure, name=name, title="Where the budget went", description=f"Shares of the budget: {told}.")
