"""A picture of answers: estimates with error bars, one panel a question. All that is drawn is public.

Certified intervals are drawn in full, calibrated ones dashed, indicative ones dotted, and an answer that is not
supported is an empty ring without a bar unless an interval was forced: a picture is passed on without its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spinney.errors import ParameterError
from spinney.release.answers.answer import Answer, Answers, shown_label, shown_level
from spinney.release.model import Release
from spinney.report.picture import GREEN, INK, mark_brands, new_figure
from spinney.shown import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Answers that one picture can show.
_MOST_CELLS = 200
LINES = {"certified": "-", "calibrated": (0, (4, 1.5)), "indicative": (0, (1, 1.5)), "not supported": (0, (1, 4))}


def answers_figure(
    release: Release, asked: Sequence[tuple[str, Answer | Answers | None]], bought: Answer | None = None
) -> Figure:
    """Estimates and intervals, cells from top to bottom, and what was bought below what the release says."""
    panels = [(text, _cells(answers)) for text, answers in asked]
    if bought is not None:
        panels = [(text, [*(("release", answer) for _, answer in cells), ("bought", bought)]) for text, cells in panels]
    n_cells = sum(len(cells) for _, cells in panels)
    if n_cells > _MOST_CELLS:
        raise ParameterError(f"a picture shows up to {_MOST_CELLS} answers, and there are {n_cells}; ask for fewer")
    heights = [len(cells) + 1.6 for _, cells in panels]
    figure = new_figure(7.2, 0.6 + 0.26 * sum(heights))
    places = figure.subplots(len(panels), 1, squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0]
    for axes, (text, cells) in zip(places, panels, strict=True):
        _draw(axes, text, cells)
    mark_brands(figure, release)
    return figure


def _cells(answers: Answer | Answers | None) -> list[tuple[str, Answer]]:
    if answers is None:
        return []
    if isinstance(answers, Answer):
        return [("", answers)]
    labels = [", ".join(map(shown_label, label)) for label in answers.labels]
    return list(zip(labels, answers, strict=True))


def _draw(axes: Axes, text: str, cells: list[tuple[str, Answer]]) -> None:
    """One question: a dot and a bar for each answer."""
    seen: dict[str, bool] = {}
    for place, (_, answer) in enumerate(cells):
        label = "" if answer.statement in seen else answer.statement
        seen[answer.statement] = True
        is_supported = answer.statement != "not supported"
        if answer.low is not None and answer.high is not None:
            line = LINES[answer.statement]
            axes.plot([answer.low, answer.high], [place, place], linestyle=line, color=GREEN, linewidth=1.6)
            axes.plot([answer.low, answer.high], [place, place], linestyle="none", marker="|", color=GREEN)
        axes.plot(
            [answer.estimate],
            [place],
            linestyle=LINES[answer.statement],
            color=GREEN,
            marker="o",
            markersize=4.5,
            markerfacecolor=GREEN if is_supported else "white",
            label=label,
        )
    axes.set_yticks(range(len(cells)), [printable(label) for label, _ in cells], fontsize=8)
    axes.set_ylim(len(cells) - 0.4, -0.6)
    axes.tick_params(labelsize=8)
    axes.grid(axis="x", color=INK, alpha=0.12)
    level = shown_level(cells[0][1].level)
    whose = ", of the population" if cells[0][1].of == "population" else ""
    title = axes.set_title(f"{printable(text)} ({level}{whose})", fontsize=9, color=INK, loc="left")
    title.set_parse_math(False)
    for tick in axes.get_yticklabels():
        tick.set_parse_math(False)
    axes.legend(fontsize=7, frameon=False, loc="best")
