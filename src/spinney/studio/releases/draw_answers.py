"""Drawings of answers and of a pair's table, in the style of the report: numbers beside marks, and a scale below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from spinney.report.answers import LINES
from spinney.report.svg import INK, LINE, PAPER, QUIET, STRONG, bare_axes, new_figure, to_svg
from spinney.shown import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_DRAWN = 60
WIDTH, _LABELS, _NUMBERS, LINE_HEIGHT = 460, 132, 74, 24
_LONGEST = 18
_CELL_WIDTH, _CELL_HEIGHT, _LONGEST_PART = 74, 30, 16
_DARK = 0.55  # a shade on which paper reads better than ink


def answers_drawing(found: Mapping[str, Any], name: str = "answers") -> str:
    """Estimates with their intervals as SVG, cells from top to bottom."""
    cells = [cell for cell in found["cells"] if isfinite(cell["estimate"])][:MOST_DRAWN]
    height = LINE_HEIGHT * len(cells) + 44
    figure = new_figure(WIDTH, height)
    axes = bare_axes(figure, _LABELS, 34, WIDTH - _LABELS - _NUMBERS, height - 40)
    low, high = _reach(cells)
    axes.set_xlim(low, high)
    axes.set_ylim(max(len(cells), 1) - 0.5, -0.5)
    axes.set_yticks([])
    axes.tick_params(axis="x", labelsize=11, colors=QUIET, length=4, color=LINE)
    axes.locator_params(axis="x", nbins=5)
    axes.xaxis.set_major_formatter(lambda value, _place: f"{value:,.6g}")
    axes.grid(axis="x", color=LINE, linewidth=1)
    axes.set_axisbelow(True)
    for place, cell in enumerate(cells):
        _answer(axes, place, cell)
    n_more = len(found["cells"]) - len(cells)
    more = f" {n_more} more are in the table." if n_more else ""
    return to_svg(
        figure,
        name=name,
        title=f"Answers to {found['question']}",
        description=f"{len(cells)} estimates with {found['level']} intervals.{more} The table holds the same numbers.",
    )


def _reach(cells: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """The ends of the scale: all estimates and intervals, and 0 where it is near."""
    values = [cell[end] for cell in cells for end in ("estimate", "low", "high") if cell[end] is not None]
    values = [value for value in values if isfinite(value)] or [0.0, 1.0]
    low, high = min(values), max(values)
    if low > 0 and low < 0.6 * high:
        low = 0.0
    margin = (high - low or abs(high) or 1.0) * 0.04
    return (low if low == 0.0 else low - margin), high + margin


def _answer(axes: Axes, place: int, cell: Mapping[str, Any]) -> None:
    if cell["low"] is not None and cell["high"] is not None:
        ends = [cell["low"], cell["high"]]
        style: dict[str, Any] = {"color": STRONG, "clip_on": False}
        axes.plot(ends, [place, place], linewidth=2, linestyle=LINES[cell["statement"]], **style)
        axes.plot(ends, [place, place], linestyle="none", marker="|", markersize=9, markeredgewidth=2, **style)
    is_supported = cell["statement"] != "not supported"
    axes.plot(
        [cell["estimate"]],
        [place],
        linestyle="none",
        marker="o",
        markersize=6.5,
        color=STRONG,
        markerfacecolor=STRONG if is_supported else PAPER,
        clip_on=False,
    )
    width = WIDTH - _LABELS - _NUMBERS
    beside = axes.get_yaxis_transform()
    label = _cut(", ".join(cell["label"]), _LONGEST)
    options: dict[str, Any] = {"va": "center_baseline", "transform": beside, "fontsize": 13, "parse_math": False}
    axes.text(-12 / width, place, label, ha="right", color=INK, **options)
    axes.text(1 + (_NUMBERS - 6) / width, place, cell["shown"], ha="right", color=QUIET, **options)


def pair_drawing(found: Mapping[str, Any], name: str = "pair") -> str:
    """The table of two columns as SVG: the darker a cell, the more rows of its line are in it."""
    from matplotlib.patches import Rectangle

    cells, across, down = found["cells"], found["across"], found["down"]
    left, top = 150, 26 + 4 * min(max(map(len, across)), _LONGEST_PART)
    figure = new_figure(left + _CELL_WIDTH * len(across) + 20, top + _CELL_HEIGHT * len(down) + 8)
    axes = bare_axes(figure, left, 8, _CELL_WIDTH * len(across), _CELL_HEIGHT * len(down))
    axes.set_xlim(-0.5, len(across) - 0.5)
    axes.set_ylim(len(down) - 0.5, -0.5)
    for row, line in enumerate(cells):
        total = sum(max(cell["estimate"], 0.0) for cell in line) or 1.0
        for place, cell in enumerate(line):
            share = min(max(cell["estimate"], 0.0) / total, 1.0)
            shade = 0.03 + 0.97 * share**0.8
            axes.add_patch(
                Rectangle((place - 0.48, row - 0.46), 0.96, 0.92, facecolor=STRONG, alpha=shade, linewidth=0)
            )
            color = PAPER if shade > _DARK else INK
            axes.text(place, row, f"{cell['estimate']:,.0f}", ha="center", va="center", fontsize=11.5, color=color)
    labels = [_cut(label, _LONGEST_PART) for label in across]
    axes.xaxis.tick_top()
    axes.set_xticks(
        range(len(across)), labels, fontsize=11, color=INK, rotation=30, ha="left", rotation_mode="anchor",
        parse_math=False,
    )  # fmt: skip
    axes.set_yticks(range(len(down)), [_cut(label, 20) for label in down], fontsize=11.5, color=INK, parse_math=False)
    return to_svg(
        figure,
        name=name,
        title=f"{found['columns'][0]} by {found['columns'][1]}",
        description=f"{len(down)} parts of {found['columns'][0]} by {len(across)} of {found['columns'][1]}; the darker "
        "a cell, the larger its share of its line. The table holds the same numbers.",
    )


def _cut(label: str, longest: int) -> str:
    text = printable(label)
    return text if len(text) <= longest else text[: longest - 1] + "…"
