"""Drawings of columns: a bar for every value or range, its interval across the end, and the number beside it.

Certified intervals are drawn in full, calibrated ones dashed, indicative ones dotted; a bar without an interval is
empty. Where the real table is shown beside the release, a diamond stands at what it holds. No axis is drawn: numbers
stand beside their bars, and the same ones stand in the table under the drawing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spinney.report.answers import LINES
from spinney.report.svg import BAR, INK, LINE, QUIET, REAL, STRONG, bare_axes, new_figure, to_svg
from spinney.shown import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_BARS = 14
WIDTH, _LABELS, _NUMBERS = 340, 128, 58
LINE_HEIGHT = 20
_SPARE = 4  # bars more than most are drawn rather than counted
_LONGEST = 18


def column_drawing(column: Mapping[str, Any], name: str, real: Sequence[float | None] | None = None) -> str:
    """The distribution of one column as SVG; `real` holds what the real table has for each bar."""
    bars, n_more = shown_bars(column)
    lines = len(bars) + bool(n_more)
    height = LINE_HEIGHT * lines + 6
    figure = new_figure(WIDTH, height)
    axes = bare_axes(figure, _LABELS, 2, WIDTH - _LABELS - _NUMBERS, height - 4)
    axes.set_axis_off()
    draw_bars(axes, bars, real, n_lines=lines)
    axes.plot([0, 0], [-0.5, len(bars) - 0.5], color=LINE, linewidth=1, clip_on=False)
    for place, bar in enumerate(bars):
        _write_beside(axes, place, bar, column["scale"])
    if n_more:
        axes.text(
            -8 / (WIDTH - _LABELS - _NUMBERS),
            len(bars),
            f"and {n_more:,} more",
            ha="right",
            va="center",
            transform=axes.get_yaxis_transform(),
            fontsize=10,
            color=QUIET,
            fontstyle="normal",
        )
    said = f"{column['statement']}" + (", all bars at once" if column["simultaneous"] else "")
    return to_svg(
        figure,
        name=name,
        title=f"Distribution of {column['key']}",
        description=f"{len(column['bars'])} bars, {said}. The table below holds the same numbers.",
    )


def utility_drawing(figures: Sequence[Mapping[str, Any]]) -> str:
    """Distances between a release and its table, drawn as columns are."""
    bars = [{**figure, "label": figure["name"]} for figure in figures]
    column = {"key": "the distances", "bars": bars, "bars_left_out": 0, "scale": "share", "simultaneous": False}
    return column_drawing(column | {"statement": figures[0]["statement"]}, "utility")


def shown_bars(column: Mapping[str, Any], most: int = MOST_BARS) -> tuple[Sequence[Mapping[str, Any]], int]:
    """The bars of a column that are drawn, and how many more there are."""
    every = column["bars"]
    bars = every if len(every) <= most + _SPARE else every[:most]
    return bars, len(every) - len(bars) + column["bars_left_out"]


def draw_bars(
    axes: Axes, bars: Sequence[Mapping[str, Any]], real: Sequence[float | None] | None = None, *, n_lines: int
) -> None:
    """Bars from the top down with their intervals, on axes with room for so many lines; real figures as diamonds."""
    beside = list(real or [])[: len(bars)]
    ends = [bar["high"] for bar in bars if bar["high"] is not None]
    reach = max(
        [*(abs(bar["estimate"]) for bar in bars), *ends, *(value for value in beside if value is not None)],
        default=1.0,
    )
    axes.set_xlim(0, (reach or 1.0) * 1.03)
    axes.set_ylim(n_lines - 0.5, -0.5)
    for place, bar in enumerate(bars):
        _draw_bar(axes, place, bar)
    for place, value in enumerate(beside):
        if value is not None:
            axes.plot(
                [value],
                [place],
                marker="D",
                markersize=5.5,
                color=REAL,
                linestyle="none",
                markerfacecolor="none",
                markeredgewidth=1.4,
                clip_on=False,
            )


def _draw_bar(axes: Axes, place: int, bar: Mapping[str, Any]) -> None:
    has_interval = bar["low"] is not None and bar["high"] is not None
    estimate = max(bar["estimate"], 0.0)
    axes.barh(
        place,
        estimate,
        height=0.7,
        color=BAR if has_interval else "none",
        edgecolor=QUIET,
        linewidth=0 if has_interval else 1.2,
    )
    if has_interval:
        ends = [max(bar["low"], 0.0), bar["high"]]
        axes.plot(
            ends,
            [place, place],
            color=STRONG,
            linewidth=1.5,
            linestyle=LINES[bar["statement"]],
            solid_capstyle="butt",
            clip_on=False,
        )
        axes.plot(
            ends,
            [place, place],
            color=STRONG,
            linestyle="none",
            marker="|",
            markersize=7,
            markeredgewidth=1.5,
            clip_on=False,
        )


def _write_beside(axes: Axes, place: int, bar: Mapping[str, Any], scale: str) -> None:
    """What a bar stands for on its left, and its number on its right."""
    beside = axes.get_yaxis_transform()
    width = WIDTH - _LABELS - _NUMBERS
    axes.text(
        -8 / width,
        place,
        cut_label(bar["label"]),
        ha="right",
        va="center_baseline",
        transform=beside,
        fontsize=11,
        color=INK,
        parse_math=False,
    )
    axes.text(
        1 + (_NUMBERS - 2) / width,
        place,
        shown_estimate(bar["estimate"], scale),
        ha="right",
        va="center_baseline",
        transform=beside,
        fontsize=11,
        color=QUIET,
    )


def shown_estimate(estimate: float, scale: str) -> str:
    """An expected number of rows, or a share in per cent."""
    if scale == "share":
        return f"{100 * estimate:.1f} %"
    return f"{estimate:,.0f}"


def cut_label(label: str) -> str:
    """A label that fits beside a bar."""
    text = printable(label)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
