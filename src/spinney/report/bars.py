"""A picture of error bars: every column's distribution with intervals, and a table of pairs by how far they may be off.

Intervals are drawn as in pictures of answers: certified ones in full, calibrated ones dashed. Pairs that are not
supported are crossed out: a white cell would be taken for a small error. All that is drawn is public.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from spinney.errors import ParameterError
from spinney.release.answers.answer import Answer, shown_level
from spinney.release.answers.bars import ColumnBars, ErrorBars
from spinney.release.answers.bars_page import cut, in_order
from spinney.release.model import Release
from spinney.report.answers import LINES
from spinney.report.picture import GREEN, INK, mark_brands, new_figure
from spinney.shown import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch
    from matplotlib.ticker import Locator

_MOST_COLUMNS = 30
_MOST_BARS = 12
_ACROSS = 3
_PALE = "#b7d8c6"
_SHADES = "YlOrBr"
_LEGEND = (
    "pairs: how far a cell may be off in a table of three by three parts\n"
    "framed: counted together (full line: certified); crossed: not supported"
)
_LEFT_OUT = "; dot: not looked at"


def bars_figure(release: Release, bars: ErrorBars) -> Figure:
    """Columns in panels, and below them a table of pairs; a ParameterError where the release has no error bars."""
    if bars.refusal:
        raise ParameterError(f"there are no error bars to draw: {bars.refusal}")
    columns = [column for column in bars.columns if column.answers is not None]
    if not columns:
        raise ParameterError(f"there are no error bars to draw: {bars.columns[0].refusal}")
    if len(columns) > _MOST_COLUMNS:
        raise ParameterError(
            f"a picture shows up to {_MOST_COLUMNS} columns, and there are {len(columns)}; name those to draw: "
            "error_bars(columns), or --columns A,B"
        )
    across = min(_ACROSS, len(columns))
    n_rows = -(-len(columns) // across)
    heights = [_height(columns[start : start + across]) for start in range(0, len(columns), across)]
    side = 0.0 if len(columns) < 2 or not bars.pairs else max(2.6, 1.6 + 0.3 * len(columns))
    figure = new_figure(max(3.7 * across, side and 5.5), sum(heights) + side + 0.4)
    parts = figure.subfigures(
        2 if side else 1, 1, squeeze=False, height_ratios=[sum(heights), side][: 2 if side else 1]
    )
    panels = parts[0, 0].subplots(n_rows, across, squeeze=False, gridspec_kw={"height_ratios": heights})
    for place, (axes, column) in enumerate(zip(panels.flat, columns, strict=False)):
        beside = columns[place // across * across :][:across]
        _draw_column(axes, column, max(map(_n_lines, beside)))
    for axes in list(panels.flat)[len(columns) :]:
        axes.set_axis_off()
    parts[0, 0].suptitle(f"rows, with {shown_level(bars.level)} intervals", fontsize=10, color=INK)
    if side:
        width, wanted = figure.get_size_inches()[0], side + 2.6
        below = parts[1, 0]
        if wanted < width:
            below = below.subfigures(1, 2, width_ratios=[wanted, width - wanted])[0]
        below.suptitle(_LEGEND + (_LEFT_OUT if bars.n_left_out else ""), fontsize=8, color=INK)
        _draw_pairs(below.subplots(), [column.name for column in columns], bars)
    mark_brands(figure, release)
    return figure


def _n_lines(column: ColumnBars) -> int:
    return min(len(column.answers or ()), _MOST_BARS + 1)


def _height(columns: list[ColumnBars]) -> float:
    return 0.7 + 0.17 * max(map(_n_lines, columns))


def _draw_column(axes: Axes, column: ColumnBars, n_lines: int) -> None:
    """Bars from top to bottom, the interval of each as a line across its end; as thick as those beside it."""
    every = in_order(column)
    shown = every[:_MOST_BARS]
    labels = [printable(cut(label, 20)) for label, _ in shown]
    if len(every) > len(shown):
        labels.append(f"and {len(every) - len(shown):,} more")
    for place, (_, answer) in enumerate(shown):
        is_supported = answer.statement != "not supported"
        axes.barh(
            place,
            answer.estimate,
            color=_PALE if is_supported else "white",
            edgecolor=GREEN,
            linewidth=0 if is_supported else 0.6,
            height=0.72,
        )
        _draw_interval(axes, place, answer)
    axes.set_yticks(range(len(labels)), labels, fontsize=7, parse_math=False)
    axes.set_ylim(n_lines - 0.4, -0.6)
    axes.set_xlim(0, None)
    axes.tick_params(axis="x", labelsize=7)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.xaxis.set_major_locator(_few_ticks())
    axes.grid(axis="x", color=INK, alpha=0.12)
    assert column.answers is not None
    held = ", all at once" if column.answers.simultaneous and len(column.answers) > 1 else ""
    title = f"{printable(cut(column.name, 30))} ({column.statement}{held})"
    axes.set_title(title, fontsize=8, color=INK, loc="left").set_parse_math(False)


def _draw_interval(axes: Axes, place: int, answer: Answer) -> None:
    if answer.low is None or answer.high is None:
        return
    ends, level = [answer.low, answer.high], [place, place]
    axes.plot(ends, level, linestyle=LINES[answer.statement], color=GREEN, linewidth=1.3)
    axes.plot(ends, level, linestyle="none", marker="|", markersize=6, color=GREEN)


def _few_ticks() -> Locator:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(4)


def _draw_pairs(axes: Axes, names: list[str], bars: ErrorBars) -> None:
    """The lower half of a square of columns, shaded by how far cells may be off, in per cent of the rows."""
    places = {name: place for place, name in enumerate(names)}
    shares = np.full((len(names), len(names)), math.nan)
    unseen = {(first, second) for first in range(len(names)) for second in range(first)}
    for pair in bars.pairs:
        first, second = sorted((places[name] for name in pair.columns if name in places), reverse=True)
        unseen.discard((first, second))
        if pair.share is None:
            axes.plot([second], [first], linestyle="none", marker="x", color=INK, alpha=0.45, markersize=6)
        else:
            shares[first, second] = 100 * pair.share
        if pair.is_counted and pair.share is not None:
            edge = "-" if pair.statement == "certified" else ":"
            axes.add_patch(_frame(second, first, edge))
    for first, second in unseen:
        axes.plot([second], [first], linestyle="none", marker=".", color=INK, alpha=0.45, markersize=2)
    known = shares[np.isfinite(shares)]
    if len(known):
        shades = axes.imshow(shares, cmap=_SHADES, vmin=0.0, vmax=max(float(known.max()), 1e-3))
        bar = axes.figure.colorbar(shades, ax=axes, format="%g", shrink=0.8, pad=0.02)
        bar.set_label("% of rows", fontsize=8)
        bar.ax.tick_params(labelsize=7)
    labels = [printable(cut(name, 24)) for name in names]
    axes.set_xticks(range(len(names)), labels, fontsize=7, rotation=45, ha="right", parse_math=False)
    axes.set_yticks(range(len(names)), labels, fontsize=7, parse_math=False)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_aspect("equal")
    for line in ("top", "right"):
        axes.spines[line].set_visible(False)


def _frame(x: int, y: int, line: str) -> Patch:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.45, y - 0.45), 0.9, 0.9, fill=False, edgecolor=GREEN, linewidth=1.2, linestyle=line)
