"""The drawing of a forest: its columns on a circle, joined where they were counted together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from spinney.report.graph import Line, draw_graph, shown_columns, strongest
from spinney.report.svg import new_figure, to_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIDE = 560


def graph_drawing(graph: Mapping[str, Any], name: str = "graph") -> str:
    """The graph as SVG, the target in the middle."""
    figure = new_figure(_SIDE, _SIDE)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.patch.set_visible(False)
    n_lines = draw_released_graph(axes, graph, side=_SIDE / 72, larger=1.3)
    return to_svg(
        figure,
        name=name,
        title="Columns that were counted together",
        description=f"{len(graph['columns'])} columns, joined by {n_lines} lines, the wider the more two columns "
        "depend on each other. The table of dependences holds the numbers.",
    )


def draw_released_graph(axes: Axes, graph: Mapping[str, Any], *, side: float, larger: float = 1.0) -> int:
    """The graph of a report's contents on axes that are so many inches wide; says how many lines there are."""
    every = [Line(line["columns"][0], line["columns"][1], line["distance"]) for line in graph["lines"]]
    target = graph["target"] if any(line.touches(graph["target"]) for line in every) else None
    lines = strongest(every, target)
    draw_graph(axes, shown_columns(graph["columns"], lines), lines, target, side=side, larger=larger)
    return len(lines)
