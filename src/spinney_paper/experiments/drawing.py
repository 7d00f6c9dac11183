"""How the pictures look: curves with the spread of their repetitions, in colours that everyone can tell apart.

Colours are Okabe and Ito's. A method keeps its colour, marker and line in all pictures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spinney.machine import load_optional
from spinney_paper.experiments.results import Floats, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


INK, GRID = "#20302a", "#d8dedb"
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#d55e00",
    "#cc79a7",
    "#56b4e9",
    "#7a7a7a",
)
# Colour, marker, line.
STYLES = {"paper": (RED, "o", "-"), "best": (ORANGE, "^", "--"), "spinney": (BLUE, "s", "-")}

PRIVACY = "pure ε, replace-one"


def check_drawing() -> None:
    """Raise unless pictures can be drawn. Asked before any work begins."""
    load_optional("matplotlib.figure", "a figure of the paper", extra="paper")


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, without pyplot: no global state, no display."""
    check_drawing()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def curve(
    axes: Axes,
    results: Results,
    x_field: str,
    x_values: Sequence[Any],
    y_field: str,
    *,
    label: str,
    style: tuple[str, str, str],
    mark_every: int = 1,
    **wanted: Any,
) -> None:
    """A field of the records over another one, as `band` draws it."""
    values = [results.values(y_field, **wanted | {x_field: value}) for value in x_values]
    band(axes, x_values, values, label=label, style=style, mark_every=mark_every)


def band(
    axes: Axes,
    x_values: Sequence[Any],
    values: Sequence[Floats],
    *,
    label: str,
    style: tuple[str, str, str],
    mark_every: int = 1,
) -> None:
    """The mean over repetitions as a line, smallest to largest as a band; places without values are left out."""
    color, marker, line = style
    there = [(float(x), found) for x, found in zip(x_values, values, strict=True) if len(found)]
    x = [place for place, _ in there]
    axes.fill_between(x, [f.min() for _, f in there], [f.max() for _, f in there], color=color, alpha=0.2, linewidth=0)
    axes.plot(
        x,
        [f.mean() for _, f in there],
        color=color,
        marker=marker,
        linestyle=line,
        markevery=mark_every,
        markersize=4.5,
        linewidth=1.6,
        label=label,
    )


def log_axes(axes: Axes, *, x: str, y: str) -> None:
    """Both axes logarithmic, labelled, with a light grid and plain numbers below."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    dress(axes, x=x, y=y)
    from matplotlib.ticker import FuncFormatter

    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def dress(axes: Axes, *, x: str, y: str) -> None:
    """Labels and a light grid."""
    axes.set_xlabel(x, color=INK)
    axes.set_ylabel(y, color=INK)
    axes.grid(True, which="major", color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", labelsize=8, colors=INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def title(axes: Axes, text: str) -> None:
    axes.set_title(text, fontsize=10, color=INK)


def note(figure: Figure, text: str) -> None:
    """A line of small print below the panels."""
    figure.supxlabel(text, fontsize=7.5, color=INK)
