"""A picture of a forest: columns on a circle, joined where they were counted together.

Lines are the wider the more two columns depend on each other; the target stands in the middle, and lines between other
columns are of what it leaves to explain. Columns are put around the circle branch by branch of the tree of strongest
lines, so that most lines are short. Nothing is random: equal releases give equal pictures. All of it is public.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from spinney.forest.release.explain import Explanation, explain
from spinney.release.card import structure_in_words
from spinney.release.model import Release
from spinney.report.picture import GREEN, INK, mark_brands, new_figure
from spinney.shown import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TARGET = "#b8860b"
# More lines than this hide each other; of more columns than this, those without a line are left out.
_MOST_LINES = 120
_MOST_SPOKES = 40  # of them, to a target
_MOST_COLUMNS = 60
_LONGEST_LABEL = 26
_THINNEST, _WIDER = 0.4, 7.0  # points; the second for each unit of distance
_SCALE = (0.05, 0.2, 0.5)

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Line:
    """Two columns that were counted together, and how strongly they depend on each other."""

    first: str
    second: str
    distance: float

    def touches(self, name: str | None) -> bool:
        """Whether one end of it is this column."""
        return name in (self.first, self.second)


def graph_figure(release: Release) -> Figure:
    """The columns of a forest and what joins them; a ParameterError for other kinds of release."""
    explanation = explain(release)
    every = lines_between(explanation)
    target = explanation.target if any(line.touches(explanation.target) for line in every) else None
    lines = strongest(every, target)
    shown = shown_columns([column.name for column in explanation.columns if column.n_leaves], lines)

    side = 6.5 if len(shown) <= 20 else 9.0
    figure = new_figure(side, side)
    axes = figure.add_subplot()
    draw_graph(axes, shown, lines, target, side=side)
    axes.set_title(_caption(explanation, lines, every, len(shown), target), fontsize=9, color=INK)
    if lines:
        _draw_scale(axes)
    mark_brands(figure, release)
    return figure


def shown_columns(names: Sequence[str], lines: Sequence[Line]) -> Sequence[str]:
    """The columns that are drawn: all, or of very many those that are joined."""
    if len(names) <= _MOST_COLUMNS:
        return names
    joined = {name for line in lines for name in (line.first, line.second)}
    return [name for name in names if name in joined] or names[:_MOST_COLUMNS]


def draw_graph(
    axes: Axes, shown: Sequence[str], lines: Sequence[Line], target: str | None, *, side: float, larger: float = 1.0
) -> None:
    """Columns and lines on axes that are so many inches wide; `larger` scales what is written."""
    axes.set_axis_off()
    axes.set_aspect("equal")
    places = _places([name for name in shown if name != target], lines, target)
    _draw_lines(axes, lines, places, target)
    _draw_columns(axes, places, target, side, larger)


def lines_between(explanation: Explanation) -> list[Line]:
    """All pairs of columns that were counted together, each by its strongest table, the strongest first."""
    found: dict[tuple[str, str], Line] = {}
    for clique in explanation.cliques:
        for pair in combinations(sorted(clique.columns), 2):
            found.setdefault(pair, Line(*pair, clique.distance))
    return list(found.values())


def strongest(every: Sequence[Line], target: str | None) -> list[Line]:
    """As many lines as can be told apart, the strongest first; not all of them to the target, nor all past it."""
    if len(every) <= _MOST_LINES or target is None:
        return list(every[:_MOST_LINES])
    spokes = [line for line in every if line.touches(target)][:_MOST_SPOKES]
    others = [line for line in every if not line.touches(target)][: _MOST_LINES - len(spokes)]
    return sorted([*spokes, *others], key=lambda line: -line.distance)


def _caption(
    explanation: Explanation, lines: Sequence[Line], every: Sequence[Line], n_shown: int, target: str | None
) -> str:
    n_columns = sum(column.n_leaves > 0 for column in explanation.columns)
    said = [f"{n_columns:,} columns, {len(every):,} pairs counted together, ε = {float(explanation.card.epsilon):g}"]
    n_spokes = sum(line.touches(target) for line in lines) if target is not None else 0
    if target is not None:
        said.append("yellow: with the target; green: between two columns, given the target")
    left_out = []
    if len(lines) < len(every):
        which = f"{len(lines)} strongest pairs"
        if target is not None:
            which = f"{n_spokes} strongest pairs with the target and {len(lines) - n_spokes} strongest others"
        left_out.append(f"only the {which} are drawn")
    if n_shown < n_columns:
        left_out.append(f"{n_columns - n_shown:,} other columns are left out")
    if not every:
        left_out.append(f"no columns were counted together ({structure_in_words(explanation.structure)})")
    return "\n".join([*said, "; ".join(left_out)] if left_out else said)


# --------------------------------------------------------------------------------------------------------- placing


def _places(names: Sequence[str], lines: Sequence[Line], target: str | None) -> dict[str, Point]:
    """Points on the unit circle, and the target in the middle."""
    ring = _around(names, [line for line in lines if not line.touches(target)])
    places: dict[str, Point] = {}
    for index, name in enumerate(ring):
        angle = math.pi / 2 - 2 * math.pi * index / len(ring)
        places[name] = (math.cos(angle), math.sin(angle))
    return places if target is None else places | {target: (0.0, 0.0)}


def _around(names: Sequence[str], lines: Sequence[Line]) -> list[str]:
    """Columns in the order in which one walks the tree of strongest lines, the strongest branch first."""
    neighbours: dict[str, list[str]] = {name: [] for name in names}
    part = {name: name for name in names}

    def root(name: str) -> str:
        while part[name] != name:
            part[name] = part[part[name]]
            name = part[name]
        return name

    for line in lines:  # the strongest first, so this is Kruskal's tree
        first, second = root(line.first), root(line.second)
        if first != second:
            part[first] = second
            neighbours[line.first].append(line.second)
            neighbours[line.second].append(line.first)
    order: dict[str, None] = {}
    # Walks begin at the column that joins most, and next at whatever was not reached.
    for start in sorted(names, key=lambda name: -len(neighbours[name])):
        waiting = [start]
        while waiting:
            name = waiting.pop()
            if name not in order:
                order[name] = None
                waiting += reversed(neighbours[name])
    return list(order)


# -------------------------------------------------------------------------------------------------------- drawing


def _width(distance: float) -> float:
    return _THINNEST + _WIDER * distance


def _draw_lines(axes: Axes, lines: Sequence[Line], places: Mapping[str, Point], target: str | None) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    for line in reversed(lines):
        (x1, y1), (x2, y2) = places[line.first], places[line.second]
        is_spoke = line.touches(target)
        # Straight to the middle; otherwise bent toward it, less so between neighbours.
        bend = 0.1 + 0.4 * min(1.0, math.hypot(x1 - x2, y1 - y2))
        middle = ((x1 + x2) / 2 * (1 - bend), (y1 + y2) / 2 * (1 - bend))
        path = (
            Path([(x1, y1), (x2, y2)])
            if is_spoke
            else Path([(x1, y1), middle, (x2, y2)], [Path.MOVETO, Path.CURVE3, Path.CURVE3])
        )
        axes.add_patch(
            PathPatch(
                path,
                facecolor="none",
                edgecolor=_TARGET if is_spoke else GREEN,
                linewidth=_width(line.distance),
                alpha=0.55 if is_spoke else 0.75,
                capstyle="round",
                zorder=1,
            )
        )


def _draw_columns(
    axes: Axes, places: Mapping[str, Point], target: str | None, side: float, larger: float = 1.0
) -> None:
    ring = [name for name in places if name != target]
    # As large as fits between neighbours on the circle, a third of the side from the middle.
    size = larger * min(9.0, max(4.0, 2 * math.pi * side / 3.2 * 72 / max(len(ring), 1) * 0.75))
    labels = {name: _short(name) for name in places}
    inches = max((len(labels[name]) for name in ring), default=0) * size * 0.54 / 72 + 0.2
    reach = 1 + 2 * inches / max(side - 0.6 - 2 * inches, 1.0)
    axes.set_xlim(-reach, reach)
    axes.set_ylim(-reach, reach)
    for name in ring:
        x, y = places[name]
        angle = math.degrees(math.atan2(y, x))
        is_left = not -90 <= angle < 90.001
        axes.text(
            x * 1.04,
            y * 1.04,
            labels[name],
            rotation=angle + 180 if is_left else angle,
            rotation_mode="anchor",
            ha="right" if is_left else "left",
            va="center",
            fontsize=size,
            color=INK,
            parse_math=False,
        )
    axes.plot(
        [places[name][0] for name in ring],
        [places[name][1] for name in ring],
        linestyle="none",
        marker="o",
        markersize=size * 0.55,
        markerfacecolor="white",
        markeredgecolor=INK,
        zorder=2,
    )
    if target is not None:
        axes.text(
            0,
            0,
            labels[target],
            ha="center",
            va="center",
            fontsize=size + 1.5,
            fontweight="bold",
            color=INK,
            parse_math=False,
            zorder=3,
            bbox={"boxstyle": "round,pad=0.4", "facecolor": "#fff4d0", "edgecolor": _TARGET, "linewidth": 1.5},
        )


def _draw_scale(axes: Axes) -> None:
    """What a width means."""
    from matplotlib.lines import Line2D

    axes.legend(
        [Line2D([], [], color=GREEN, linewidth=_width(distance), alpha=0.75) for distance in _SCALE],
        [f"{distance:g}" for distance in _SCALE],
        title="distance from independence",
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=len(_SCALE),
        frameon=False,
        fontsize=8,
        title_fontsize=8,
    )


def _short(name: str) -> str:
    name = printable(name)
    return name if len(name) <= _LONGEST_LABEL else name[: _LONGEST_LABEL - 1] + "…"
