"""The drawing of a forest: its columns on a circle, joined where they were counted together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spinney.report.graph import Line, draw_graph, shown_columns, strongest
from spinney.report.svg import new_figure, to_svg

_SIDE = 560


def graph_drawing(graph: Mapping[str, Any], name: str = "graph") -> str:
    """The graph as SVG, the target in the middle."""
    every = [Line(line["columns"][0], line["columns"][1], line["distance"]) for line in graph["lines"]]
    target = graph["target"] if any(line.touches(graph["target"]) for line in every) else None
    lines = strongest(every, target)
    figure = new_figure(_SIDE, _SIDE)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.patch.set_visible(False)
    draw_graph(axes, shown_columns(graph["columns"], lines), lines, target, side=_SIDE / 72, larger=1.3)
    return to_svg(
        figure,
        name=name,
        title="Columns that were counted together",
        description=f"{len(graph['columns'])} columns, joined by {len(lines)} lines, the wider the more two columns "
        "depend on each other. The table of dependences holds the numbers.",
    )
