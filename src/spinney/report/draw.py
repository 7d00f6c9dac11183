"""Drawings on given axes, and the drawings of a report, as SVG in the page's colours. PUBLIC.

Reports, the studio, `sp.plot` and pictures in files draw with these functions. They take plain data of `columns.py`
and `parts.py` and never see a table; figures of the real table are drawn only where the holder hands them over.
Certified intervals are drawn in full, calibrated ones dashed, indicative ones dotted.

    figures    new figures, the theme of all drawings, and figures as SVG that lives inside a page
    marks      what is written beside marks and along axes, and intervals
    columns    a bar and an interval for every value or range; estimates with intervals
    graph      the columns of a forest on a circle
    map        expected rows by area
    overview   what an attacker can learn at most, and where epsilon went
    pairs      heat maps of dependence, of uncertainty, and of the distance to the real table
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import numpy as np

from spinney.machine import load_optional
from spinney.report.parts import Line, largest_belief, percent
from spinney.text import cut, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# -------------------------------------------------------------------------------------------------------------- figures
# New figures, the theme of all drawings, and figures as SVG that lives inside a page.
#
# matplotlib writes colours into `style` attributes. They become attributes that any rule of the page's style sheet
# overrides, and every colour of ours becomes a class, so that light, dark and printed pages differ by their style
# sheet alone, and a strict content security policy holds: the page needs no inline style. A drawing shares no ids
# with its page. Texts stay texts; ids get a prefix.


_SVG, _LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"

# The colours that drawings use, by their role; style.css has another set for dark pages.
INK, QUIET, LINE = "#20302a", "#5b6b64", "#d7e0db"
BAR, STRONG, WARM = "#9dcdb4", "#1f6f4a", "#b45309"
PAPER, REAL, TARGET, SOFT = "#ffffff", "#6d28d9", "#b8860b", "#fff4d0"
_ROLES = {
    INK: "ink",
    QUIET: "quiet",
    LINE: "line",
    BAR: "bar",
    STRONG: "strong",
    WARM: "warm",
    PAPER: "paper",
    REAL: "real",
    TARGET: "target",
    SOFT: "soft",
    "#000000": "ink",
}
_KEPT = {
    "fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-dashoffset", "opacity", "fill-opacity",
    "stroke-opacity", "font-size", "font-weight", "text-anchor", "stroke-linecap", "stroke-linejoin",
}  # fmt: skip
_NUMBER = re.compile(r"-?\d+\.\d+")
_FEW = re.compile(r"\s+")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of so many inches that makes room for its labels; MissingExtraError without matplotlib."""
    library = load_optional("matplotlib.figure", "a picture")
    figure: Figure = library.Figure(figsize=(width, height), layout="constrained")
    return figure


def canvas(
    width: float, height: float, *, left: float = 0, bottom: float = 0, right: float = 0, top: float = 0
) -> Axes:
    """Axes of a new figure, both in pixels, without a frame, ticks or a background; the margins are their labels'."""
    library = load_optional("matplotlib.figure", "a report", extra="report")
    figure = library.Figure(figsize=(width / 72, height / 72), dpi=72)
    figure.patch.set_visible(False)
    axes: Axes = figure.add_axes(
        (left / width, bottom / height, (width - left - right) / width, (height - bottom - top) / height)
    )
    axes.patch.set_visible(False)
    axes.tick_params(length=0, labelsize=10, colors=QUIET)
    axes.spines[:].set_visible(False)
    return axes


def to_svg(axes: Axes, *, name: str, title: str, description: str) -> str:
    """The figure of some axes as an `svg` element, with a title and a description for those who do not see it.

    Args:
        axes: what is drawn.
        name: what the ids of the drawing begin with; unique in a page, letters, digits and dashes.
        title: what it shows, in a few words.
        description: what is to be seen, in a sentence or two.
    """
    root = ET.fromstring(_drawn(axes))  # noqa: S314  # of matplotlib's own making
    for unwanted in ("metadata", "defs/style"):
        for parent in root.iter():
            for child in [*parent.findall(f"{{{_SVG}}}{unwanted.rpartition('/')[2]}")]:
                parent.remove(child)
    _name_ids(root, name)
    for element in root.iter():
        _restyle(element)
    _flatten(root)
    root.attrib.pop("version", None)
    for size in ("width", "height"):
        root.set(size, root.get(size, "").removesuffix("pt"))
    root.set("role", "img")
    root.set("aria-labelledby", f"{name}-title {name}-desc")
    for place, (tag, text) in enumerate((("title", title), ("desc", description))):
        told = ET.Element(f"{{{_SVG}}}{tag}", {"id": f"{name}-{tag}"})
        told.text = printable(text)
        root.insert(place, told)
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", _LINK)
    return ET.tostring(root, encoding="unicode")


def _drawn(axes: Axes) -> str:
    import matplotlib as mpl

    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "spinney"}), warnings.catch_warnings():
        # Its fonts lack some scripts; texts stay texts, and the reader's fonts have them.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support .* natively")
        written = io.StringIO()
        figure: Any = axes.figure
        figure.savefig(written, format="svg", dpi=72, metadata={"Date": None})
    return written.getvalue()


def _name_ids(root: ET.Element, name: str) -> None:
    """Ids that something refers to get the prefix; all others go."""
    link = f"{{{_LINK}}}href"
    used = {element.get(link, "").removeprefix("#") for element in root.iter()}
    used |= {
        found for element in root.iter() for value in element.attrib.values() for found in _REFERENCE.findall(value)
    }
    short = {old: f"{name}-{number}" for number, old in enumerate(sorted(used - {""}))}
    for element in root.iter():
        own = element.attrib.pop("id", None)
        if own in short:
            element.set("id", short[own])
        if element.get(link, "").startswith("#"):
            element.set(link, f"#{short[element.get(link, '')[1:]]}")
        for key, value in element.attrib.items():
            if "url(#" in value:
                element.set(key, _REFERENCE.sub(lambda found: f"url(#{short[found[1]]})", value))


def _restyle(element: ET.Element) -> None:
    """Styles become attributes, colours of ours classes, and numbers as long as a screen can show."""
    classes = []
    for part in element.attrib.pop("style", "").split(";"):
        key, _, value = (text.strip() for text in part.partition(":"))
        if key not in _KEPT:
            continue
        element.set(key, value.removesuffix("px") if key == "font-size" else value)
        if key in ("fill", "stroke") and value.lower() in _ROLES:
            classes.append(f"{key[0]}-{_ROLES[value.lower()]}")
    if classes:
        element.set("class", " ".join(classes))
    for key in ("d", "x", "y", "transform", "points"):
        if key in element.attrib:
            element.set(key, _FEW.sub(" ", _NUMBER.sub(_short, element.attrib[key])).strip())
    if element.get("transform", "").startswith("rotate(-0 "):
        del element.attrib["transform"]


def _short(found: re.Match[str]) -> str:
    return f"{float(found[0]):.2f}".rstrip("0").rstrip(".")


def _flatten(element: ET.Element) -> None:
    """Leave out groups that say nothing, and blanks between elements."""
    tag = f"{{{_SVG}}}g"
    children: list[ET.Element] = []
    for child in element:
        _flatten(child)
        if child.tag == tag and not child.attrib:
            children += list(child)
        elif not (child.tag in (tag, f"{{{_SVG}}}defs") and not len(child)):
            children.append(child)
    element[:] = children
    if element.tag not in (f"{{{_SVG}}}text", f"{{{_SVG}}}tspan"):
        element.text = None
    element.tail = None


# ---------------------------------------------------------------------------------------------------------------- marks
# What is written beside marks and along axes, and intervals.


LINES = {"certified": "-", "calibrated": (0, (4, 1.5)), "indicative": (0, (1, 1.5)), "not supported": (0, (1, 4))}
_LONGEST = 18


def write(axes: Axes, x: float, y: float, text: str, **options: Any) -> None:
    """Write a text that is no formula, in ink."""
    axes.text(x, y, text, **{"va": "center_baseline", "color": INK, "parse_math": False, **options})


def write_beside(axes: Axes, place: int, label: str, figure: str, size: float) -> None:
    """What a mark stands for on the left of axes whose figure is in pixels, and its figure on their right."""
    beside: dict[str, Any] = {"ha": "right", "fontsize": size, "transform": axes.get_yaxis_transform()}
    width, margin = axes.bbox.width, axes.figure.bbox.width - axes.bbox.x1
    write(axes, -8 / width, place, cut_label(label), **beside)
    write(axes, 1 + (margin - 2) / width, place, figure, color=QUIET, **beside)


def write_ticks(axes: Axes, side: str, labels: Sequence[str], size: float, **options: Any) -> None:
    """Labels at 0, 1, 2, ... along the "x" or the "y" axis, none of them a formula."""
    named: dict[str, Any] = {"fontsize": size, "color": INK, "parse_math": False} | options
    (axes.set_xticks if side == "x" else axes.set_yticks)(range(len(labels)), [*map(printable, labels)], **named)


SLANTED: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}


def cut_label(label: str) -> str:
    """A name or a label that fits beside a bar or a heat map."""
    return cut(printable(label), _LONGEST)


def draw_interval(axes: Axes, place: int, cell: Mapping[str, Any], width: float, *, least: float = -math.inf) -> None:
    """The interval of an estimate as a line with its ends, in the style of its statement; none where there is none."""
    if cell["low"] is None or cell["high"] is None:
        return
    ends, level = [max(cell["low"], least), cell["high"]], [place, place]
    style: dict[str, Any] = {"color": STRONG, "clip_on": False}
    axes.plot(ends, level, linewidth=width, linestyle=LINES[cell["statement"]], solid_capstyle="butt", **style)
    axes.plot(ends, level, linestyle="none", marker="|", markersize=7, markeredgewidth=width, **style)


# -------------------------------------------------------------------------------------------------------------- columns
# A bar for every value or range, its interval across the end, and the number beside it; a bar without an interval is
# empty. Where the real table is shown beside the release, a diamond stands at what it holds. Answers are dots, and
# those that are not supported are rings.


MOST_BARS = 14
WIDTH, _LABELS, _NUMBERS = 340, 128, 58
LINE_HEIGHT = 20
_SPARE = 4  # bars more than most are drawn rather than counted


def column_drawing(column: Mapping[str, Any], name: str, real: Sequence[float | None] | None = None) -> str:
    """The distribution of one column as SVG, numbers beside its bars; `real` is what the real table has for each."""
    bars, n_more = shown_bars(column)
    lines = len(bars) + bool(n_more)
    axes = canvas(WIDTH, LINE_HEIGHT * lines + 6, left=_LABELS, right=_NUMBERS, bottom=2, top=2)
    axes.set_axis_off()
    draw_bars(axes, bars, real, n_lines=lines)
    axes.plot([0, 0], [-0.5, len(bars) - 0.5], color=LINE, linewidth=1, clip_on=False)
    for place, bar in enumerate(bars):
        estimate = bar["estimate"]
        figure = f"{100 * estimate:.1f} %" if column["scale"] == "share" else f"{estimate:,.0f}"
        write_beside(axes, place, bar["label"], figure, 11)
    if n_more:
        beside: dict[str, Any] = {"ha": "right", "va": "center", "transform": axes.get_yaxis_transform()}
        write(axes, -8 / axes.bbox.width, len(bars), f"and {n_more:,} more", fontsize=10, color=QUIET, **beside)
    said = f"{column['statement']}" + (", all bars at once" if column["simultaneous"] else "")
    return to_svg(
        axes,
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


def bar_labels(column: Mapping[str, Any]) -> list[str]:
    """What stands beside the bars of a column, and below them how many more there are."""
    bars, n_more = shown_bars(column)
    return [cut_label(bar["label"]) for bar in bars] + ([f"and {n_more:,} more"] if n_more else [])


def draw_column(
    axes: Axes,
    column: Mapping[str, Any],
    *,
    who: str,
    real: Sequence[float | None] | None = None,
    n_lines: int = 1,
    size: float = 9,
) -> None:
    """A column on axes: labels on the left, rows or shares along the bottom; as thick as so many lines make bars."""
    labels, is_share = bar_labels(column), column["scale"] == "share"
    draw_bars(axes, shown_bars(column)[0], real, n_lines=max(len(labels), n_lines))
    write_ticks(axes, "y", labels, size)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("share of rows" if is_share else who, color=INK, fontsize=size + 1)
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %" if is_share else f"{value:,.6g}")
    axes.locator_params(axis="x", nbins=4)


def draw_bars(
    axes: Axes, bars: Sequence[Mapping[str, Any]], real: Sequence[float | None] | None = None, *, n_lines: int
) -> None:
    """Bars from the top down with their intervals, on axes with room for so many lines; real figures as diamonds."""
    beside = list(real or [])[: len(bars)]
    reach = [abs(bar["estimate"]) for bar in bars] + [bar["high"] or 0.0 for bar in bars]
    axes.set_xlim(0, (max([*reach, *(value or 0.0 for value in beside)], default=1.0) or 1.0) * 1.03)
    axes.set_ylim(n_lines - 0.5, -0.5)
    for place, bar in enumerate(bars):
        has_interval = bar["low"] is not None and bar["high"] is not None
        filled: dict[str, Any] = {"color": BAR, "linewidth": 0} if has_interval else {"color": "none", "linewidth": 1.2}
        axes.barh(place, max(bar["estimate"], 0.0), height=0.7, edgecolor=QUIET, **filled)
        draw_interval(axes, place, bar, 1.5, least=0.0)
    diamond: dict[str, Any] = {"marker": "D", "markersize": 5.5, "markerfacecolor": "none", "markeredgewidth": 1.4}
    for place, value in enumerate(beside):
        if value is not None:
            axes.plot([value], [place], linestyle="none", color=REAL, clip_on=False, **diamond)


def draw_answers(axes: Axes, cells: Sequence[Mapping[str, Any]]) -> None:
    """Estimates as dots with their intervals, from the top down."""
    axes.set_ylim(max(len(cells), 1) - 0.5, -0.5)
    for place, cell in enumerate(cells):
        draw_interval(axes, place, cell, 1.8)
        face = STRONG if cell["statement"] != "not supported" else PAPER
        style: dict[str, Any] = {"marker": "o", "markersize": 6, "color": STRONG, "markerfacecolor": face}
        axes.plot([cell["estimate"]], [place], linestyle="none", clip_on=False, **style)


# ---------------------------------------------------------------------------------------------------------------- graph
# The columns of a forest on a circle, joined where they were counted together.
#
# Lines are the wider the more two columns depend on each other; the target stands in the middle, and lines between
# other columns are of what it leaves to explain. Columns are put around the circle branch by branch of the tree of
# strongest lines, so that most lines are short. Nothing is random: equal releases give equal pictures.


_SIDE = 560
# More lines than this hide each other; of more columns than this, those without a line are left out.
_MOST_LINES = 120
_MOST_SPOKES = 40  # of them, to a target
_MOST_NODES = 60
_LONGEST_LABEL = 26
_THINNEST, _WIDER = 0.4, 7.0  # points; the second for each unit of distance

Point = tuple[float, float]


def graph_drawing(graph: Mapping[str, Any], name: str = "graph") -> str:
    """The graph as SVG, the target in the middle."""
    axes = canvas(_SIDE, _SIDE)
    _, lines = draw_graph(axes, graph, side=_SIDE / 72, larger=1.3)
    return to_svg(
        axes,
        name=name,
        title="Columns that were counted together",
        description=f"{len(graph['columns'])} columns, joined by {len(lines)} lines, the wider the more two columns "
        "depend on each other. The table of dependences holds the numbers.",
    )


def draw_graph(
    axes: Axes, graph: Mapping[str, Any], *, side: float, larger: float = 1.0
) -> tuple[Sequence[str], list[Line]]:
    """The graph of a report on axes that are so many inches wide; the columns and the lines that are drawn.

    `larger` scales what is written.
    """
    every, names, target = lines_of(graph), graph["columns"], target_of(graph)
    lines = strongest(every, target)
    if len(names) > _MOST_NODES:
        joined = {name for line in lines for name in (line.first, line.second)}
        names = [name for name in names if name in joined] or names[:_MOST_NODES]
    axes.set_axis_off()
    axes.set_aspect("equal")
    places = _places([name for name in names if name != target], lines, target)
    _draw_lines(axes, lines, places, target)
    _draw_columns(axes, places, target, side, larger)
    return names, lines


def lines_of(graph: Mapping[str, Any]) -> list[Line]:
    """The lines of the graph of a report, the strongest first."""
    return [Line(line["columns"][0], line["columns"][1], line["distance"]) for line in graph["lines"]]


def target_of(graph: Mapping[str, Any]) -> str | None:
    """The target, where something was counted with it."""
    target: str | None = graph["target"]
    return target if any(line.touches(target) for line in lines_of(graph)) else None


def strongest(every: Sequence[Line], target: str | None) -> list[Line]:
    """As many lines as can be told apart, the strongest first; not all of them to the target, nor all past it."""
    if len(every) <= _MOST_LINES or target is None:
        return list(every[:_MOST_LINES])
    spokes = [line for line in every if line.touches(target)][:_MOST_SPOKES]
    others = [line for line in every if not line.touches(target)][: _MOST_LINES - len(spokes)]
    return sorted([*spokes, *others], key=lambda line: -line.distance)


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


def line_width(distance: float) -> float:
    """How wide the line of such a dependence is, in points."""
    return _THINNEST + _WIDER * distance


def _draw_lines(axes: Axes, lines: Sequence[Line], places: Mapping[str, Point], target: str | None) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    for line in reversed(lines):
        (x1, y1), (x2, y2) = places[line.first], places[line.second]
        # Straight to the middle; otherwise bent toward it, less so between neighbours.
        bend = 0.1 + 0.4 * min(1.0, math.hypot(x1 - x2, y1 - y2))
        middle = ((x1 + x2) / 2 * (1 - bend), (y1 + y2) / 2 * (1 - bend))
        path, color, alpha = Path([(x1, y1), middle, (x2, y2)], [Path.MOVETO, Path.CURVE3, Path.CURVE3]), STRONG, 0.75
        if line.touches(target):
            path, color, alpha = Path([(x1, y1), (x2, y2)]), TARGET, 0.55
        style: dict[str, Any] = {"facecolor": "none", "edgecolor": color, "alpha": alpha, "capstyle": "round"}
        axes.add_patch(PathPatch(path, linewidth=line_width(line.distance), zorder=1, **style))


def _draw_columns(axes: Axes, places: Mapping[str, Point], target: str | None, side: float, larger: float) -> None:
    ring = {name: place for name, place in places.items() if name != target}
    # As large as fits between neighbours on the circle, a third of the side from the middle.
    size = larger * min(9.0, max(4.0, 2 * math.pi * side / 3.2 * 72 / max(len(ring), 1) * 0.75))
    labels = {name: cut(printable(name), _LONGEST_LABEL) for name in places}
    inches = max((len(labels[name]) for name in ring), default=0) * size * 0.54 / 72 + 0.2
    reach = 1 + 2 * inches / max(side - 0.6 - 2 * inches, 1.0)
    axes.set_xlim(-reach, reach)
    axes.set_ylim(-reach, reach)
    for name, (x, y) in ring.items():
        angle = math.degrees(math.atan2(y, x))
        turned = {"rotation": angle, "ha": "left"}
        if not -90 <= angle < 90.001:
            turned = {"rotation": angle + 180, "ha": "right"}
        write(axes, x * 1.04, y * 1.04, labels[name], rotation_mode="anchor", va="center", fontsize=size, **turned)
    dots: dict[str, Any] = {"marker": "o", "markersize": size * 0.55, "markerfacecolor": PAPER, "markeredgecolor": INK}
    axes.plot([x for x, _ in ring.values()], [y for _, y in ring.values()], linestyle="none", zorder=2, **dots)
    if target is not None:
        box = {"boxstyle": "round,pad=0.4", "facecolor": SOFT, "edgecolor": TARGET, "linewidth": 1.5}
        bold: dict[str, Any] = {"fontsize": size + 1.5, "fontweight": "bold", "ha": "center", "va": "center"}
        write(axes, 0, 0, labels[target], zorder=3, bbox=box, **bold)


# ----------------------------------------------------------------------------------------------------------------- map
# The drawing of a map: expected rows by area, as an image inside the SVG, with its coordinates around it.


_WIDTH, _HEIGHT = 640, 620
# From a breath of green to a deep one: thin areas fade into the page, light or dark.
_SHADES = [(0.55, 0.8, 0.62, 0.12), (0.45, 0.75, 0.55, 0.55), (0.2, 0.58, 0.38, 1.0), (0.04, 0.3, 0.2, 1.0)]


def map_drawing(drawn: Mapping[str, Any], name: str) -> str:
    """A map as SVG, as wide and tall on the page as it is on the ground."""
    tallness = map_tallness(drawn)
    width = min(_WIDTH - 70, (_HEIGHT - 60) / tallness)
    axes = canvas(width + 72, width * tallness + 52, left=58, bottom=42, right=14, top=10)
    draw_map(axes, drawn)
    return to_svg(
        axes,
        name=name,
        title=f"Map of {drawn['columns'][0]} and {drawn['columns'][1]}",
        description=f"{drawn['boxes']:,} boxes, the stronger the shade the more rows are expected in a cell.",
    )


def map_tallness(drawn: Mapping[str, Any]) -> float:
    """How many times as tall as wide a map is drawn."""
    (left, right), (bottom, top) = drawn["x"], drawn["y"]
    return float((drawn["aspect"] or (right - left) / (top - bottom)) * (top - bottom) / (right - left))


def draw_map(axes: Axes, drawn: Mapping[str, Any]) -> None:
    """The cells of a map on axes, with its columns along the sides; the aspect is the caller's."""
    from matplotlib.colors import LinearSegmentedColormap, LogNorm

    cells = np.array([line.split() for line in drawn["cells"]], dtype=np.float64)
    (left, right), (bottom, top) = drawn["x"], drawn["y"]
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    held = cells[cells > 0]
    if len(held):
        low, high = float(np.quantile(held, 0.02)), float(held.max())
        norm = LogNorm(max(low, high * 1e-6), high if high > low else low * 2, clip=True)
        shown = np.ma.masked_where(cells <= 0, cells)
        axes.imshow(
            shown,
            extent=(left, right, bottom, top),
            origin="lower",
            aspect="auto",
            cmap=LinearSegmentedColormap.from_list("greens", _SHADES),
            norm=norm,
            interpolation="nearest",
        )
    axes.set_xlabel(printable(drawn["columns"][0])[:40], fontsize=12, color=INK, parse_math=False)
    axes.set_ylabel(printable(drawn["columns"][1])[:40], fontsize=12, color=INK, parse_math=False)
    axes.tick_params(labelsize=10, colors=QUIET, length=3, color=QUIET)
    axes.locator_params(nbins=6)


# ------------------------------------------------------------------------------------------------------------- overview
# What an attacker can learn at most, and where epsilon went.


def belief_drawing(promise: Mapping[str, Any], name: str = "belief") -> str:
    """How far a belief can move at most: before the release along the side, after it upwards."""
    axes = canvas(300, 300, left=58, bottom=40, right=8, top=12)
    epsilon = Fraction(promise["epsilon"])
    before = np.linspace(0, 1, 101)
    after = np.array([largest_belief(float(share), epsilon) for share in before])
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    for share in (0, 0.25, 0.5, 0.75, 1):
        axes.plot([0, 1], [share, share], color=LINE, linewidth=1)
        axes.plot([share, share], [0, 1], color=LINE, linewidth=1)
    axes.fill_between(before, 1 - after[::-1], after, color=BAR, alpha=0.55, linewidth=0)
    axes.plot([0, 1], [0, 1], color=QUIET, linewidth=1.2, linestyle=(0, (4, 3)))
    axes.plot(before, after, color=STRONG, linewidth=2)
    at_half = largest_belief(0.5, epsilon)
    axes.plot([0.5], [at_half], marker="o", markersize=8, color=WARM)
    x, y, side = (0.47, min(at_half + 0.045, 0.97), "right") if at_half < 0.9 else (0.53, 0.9, "left")
    write(axes, x, y, percent(at_half), ha=side, va="center", fontsize=14, fontweight="bold")
    for set_ticks in (axes.set_xticks, axes.set_yticks):
        set_ticks([0, 0.5, 1], ["0", "50 %", "100 %"], fontsize=11, color=QUIET)
    axes.get_xticklabels()[-1].set_horizontalalignment("right")
    axes.set_xlabel("belief before the release", fontsize=11, color=INK, labelpad=2)
    axes.set_ylabel("belief after it, at most", fontsize=11, color=INK, labelpad=-2)
    return to_svg(
        axes,
        name=name,
        title="What an attacker can believe at most",
        description=f"Who held something about one person to be 50 % likely before the release holds it to be at most "
        f"{percent(at_half)} likely afterwards. The dashed line is no change.",
    )


def budget_drawing(budget: Sequence[Mapping[str, Any]], name: str = "budget") -> str:
    """Bars of every stage's share of the budget."""
    largest = max((stage["share"] for stage in budget), default=1.0)
    axes = canvas(400, 40 * len(budget), left=2, right=2)
    shares = [(stage["what"], f"{100 * stage['share']:.1f} %", stage["share"]) for stage in budget]
    draw_shares(axes, shares, [STRONG if stage["share"] == largest else BAR for stage in budget])
    told = "; ".join(f"{what} {figure}" for what, figure, _ in shares)
    return to_svg(axes, name=name, title="Where the budget went", description=f"Shares of the budget: {told}.")


def draw_shares(axes: Axes, shares: Sequence[tuple[str, str, float | None]], colors: Sequence[str]) -> None:
    """Bars from the top down that are filled to a share, what they are and its figure above; no bar of None."""
    axes.set_axis_off()
    axes.set_xlim(0, 1)
    axes.set_ylim(len(shares), 0)
    for place, ((what, figure, share), color) in enumerate(zip(shares, colors, strict=True)):
        if share is not None:
            axes.barh(place + 0.72, 1, height=0.27, color=LINE)
            axes.barh(place + 0.72, share, height=0.27, color=color)
        write(axes, 0, place + 0.36, printable(what), fontsize=13)
        write(axes, 1, place + 0.36, figure, ha="right", fontsize=13, color=QUIET)


# ---------------------------------------------------------------------------------------------------------------- pairs
# How strongly columns depend on each other, how well that is known, and how far it is off.
#
# Cells are shaded by one colour that fades into the page, so that they read alike on light and dark. Framed
# cells were measured together; a cross stands where the release does not support a figure, a dot where none was
# looked for.


@dataclass(frozen=True, slots=True)
class Heat:
    """A heat map of pairs: what its cells are shaded by, in which colour, and what it shows."""

    key: str
    color: str
    title: str
    caption: str
    marks: str = ""


HEAT = {
    "dependence": Heat(
        "distance",
        STRONG,
        "How strongly columns depend on each other",
        "distance from independence",
        "the darker the more they depend on each other; framed where they were measured together",
    ),
    "uncertainty": Heat(
        "share",
        WARM,
        "How far a cell of two columns' table may be off",
        "how far a cell may be off",
        "the darker the wider the interval; a cross where the release supports no figure, a dot where none was looked "
        "for",
    ),
    "distance": Heat(
        "total_variation",
        REAL,
        "How far pairs of synthetic columns are from the real ones",
        "total variation",
        "the darker the further apart",
    ),
}
_CELL, _PAIR_LABELS = 26, 124


def pairs_drawing(which: str, names: Sequence[str], pairs: Sequence[Mapping[str, Any]], name: str = "") -> str:
    """A heat map of pairs as SVG; `which` is a key of `HEAT`."""
    size, heat = _CELL * len(names), HEAT[which]
    above = _PAIR_LABELS * 0.78
    axes = canvas(size + _PAIR_LABELS + 40, size + above + 22, left=_PAIR_LABELS, bottom=above, right=40, top=22)
    draw_pairs(axes, which, names, pairs)
    return to_svg(
        axes,
        name=name or which,
        title=heat.title,
        description=f"One cell for each pair of columns, {heat.marks}. The table of pairs holds the numbers.",
    )


def draw_pairs(
    axes: Axes, which: str, names: Sequence[str], pairs: Sequence[Mapping[str, Any]], *, size: float = 11
) -> None:
    """One cell for each pair below the diagonal, shaded by its figure, marked, with names along both sides."""
    from matplotlib.patches import Rectangle

    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_ylim(len(names) - 0.5, -0.5)
    places, heat = {column: place for place, column in enumerate(names)}, HEAT[which]
    drawn = [pair for pair in pairs if set(pair["columns"]) <= set(places)]
    known = [pair[heat.key] for pair in drawn if pair[heat.key] is not None]
    largest = max(known, default=0.0) or 1.0
    for pair in drawn:
        row, across = sorted((places[column] for column in pair["columns"]), reverse=True)
        corner, shade, mark = (across - 0.46, row - 0.46), pair[heat.key], _mark(pair)
        if shade is not None:
            strength = _strength(shade / largest)
            axes.add_patch(Rectangle(corner, 0.92, 0.92, facecolor=heat.color, alpha=strength, linewidth=0))
        if mark == "framed":
            axes.add_patch(Rectangle(corner, 0.92, 0.92, fill=False, edgecolor=INK, linewidth=1.1))
        elif mark and shade is None:
            shape, width = ("x", 6) if mark == "cross" else (".", 3)
            axes.plot([across], [row], linestyle="none", marker=shape, markersize=width, color=QUIET)
    labels = list(map(cut_label, names))
    axes.tick_params(length=0)
    write_ticks(axes, "y", labels, size)
    write_ticks(axes, "x", labels, size, **SLANTED)
    if known:
        _draw_scale(axes, heat.color, largest, len(names))


def _mark(pair: Mapping[str, Any]) -> str:
    """What a cell is marked by, besides its shade; nothing where the real table says how far a pair is off."""
    if "counted" not in pair:
        return ""
    if not pair["is_looked_at"]:
        return "framed" if pair["counted"] else "dot"
    if pair["share"] is None:
        return "cross"
    return "framed" if pair["counted"] else ""


def _strength(share: float) -> float:
    """How strong the shade of a cell is."""
    return float(0.04 + 0.96 * share**0.7)


def _draw_scale(axes: Axes, color: str, largest: float, n_names: int) -> None:
    """What the darkest shade means, in the empty corner."""
    from matplotlib.patches import Rectangle

    right = n_names - 0.5
    left = right - 5.2 * 0.55
    style: dict[str, Any] = {"facecolor": color, "linewidth": 0, "clip_on": False}
    for step in range(5):
        axes.add_patch(Rectangle((left + step * 0.55, -1.05), 0.5, 0.5, alpha=_strength(step / 4), **style))
    shown = f"{100 * largest:.2g} %" if largest < 1 else "100 %"
    write(axes, left - 0.2, -0.8, "0", ha="right", va="center", fontsize=10, color=QUIET)
    write(axes, right + 0.1, -0.8, shown, ha="left", va="center", fontsize=10, color=QUIET)
