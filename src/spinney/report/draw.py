"""The drawings of a report, as SVG in the page's colours: columns, graph, map, overview, pairs. PUBLIC.

Every drawing is a figure of matplotlib that is rewritten as SVG without inline style, so that light, dark and
printed pages differ by their style sheet alone. Drawings take plain data of `columns.py` and `parts.py` and
never see a table; figures of the real table are drawn only where the holder hands them over. The studio and
`plot` draw with the same functions.

    svg             figures, axes, colours by role, and the rewriting to SVG
    draw columns    a bar and an interval for every value or range
    draw graph      the columns of a forest on a circle
    draw map        expected rows by area
    draw overview   what an attacker can learn at most, and where epsilon went
    draw pairs      heat maps of dependence, of uncertainty, and of the distance to the real table
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import numpy as np

from spinney.machine import load_optional
from spinney.report.parts import largest_belief, percent
from spinney.report.pictures import LINES, Line, draw_graph, shown_columns, strongest
from spinney.text import cut, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# ------------------------------------------------------------------------------------------------------------------ svg
# Figures of matplotlib as SVG that lives inside a page: it follows the page's colours and font, and shares no ids.
#
# matplotlib writes colours into `style` attributes. They become attributes that any rule of the page's style sheet
# overrides, and every colour of ours becomes a class, so that light, dark and printed pages differ by their style
# sheet alone, and a strict content security policy holds: the page needs no inline style. Texts stay texts; ids get a
# prefix.


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
    """An empty figure of so many pixels; MissingExtraError without matplotlib."""
    figure: Figure = load_optional("matplotlib.figure", "a report", extra="report").Figure(
        figsize=(width / 72, height / 72), dpi=72
    )
    figure.patch.set_visible(False)
    return figure


def bare_axes(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Axes at pixels of a figure, without a frame, ticks or a background."""
    across, up = figure.get_size_inches() * 72
    axes = figure.add_axes((left / across, bottom / up, width / across, height / up))
    axes.patch.set_visible(False)
    axes.tick_params(length=0, labelsize=10, colors=QUIET)
    for side in axes.spines.values():
        side.set_visible(False)
    return axes


def to_svg(figure: Figure, *, name: str, title: str, description: str) -> str:
    """A figure as an `svg` element with a title and a description for those who do not see it.

    Args:
        figure: what is drawn.
        name: what the ids of the drawing begin with; unique in a page, letters, digits and dashes.
        title: what it shows, in a few words.
        description: what is to be seen, in a sentence or two.
    """
    root = ET.fromstring(_drawn(figure))  # noqa: S314  # of matplotlib's own making
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


def _drawn(figure: Figure) -> str:
    import matplotlib as mpl

    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "spinney"}), warnings.catch_warnings():
        # Its fonts lack some scripts; texts stay texts, and the reader's fonts have them.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support .* natively")
        written = io.StringIO()
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


# --------------------------------------------------------------------------------------------------------- draw columns
# Drawings of columns: a bar for every value or range, its interval across the end, and the number beside it.
#
# Certified intervals are drawn in full, calibrated ones dashed, indicative ones dotted; a bar without an interval is
# empty. Where the real table is shown beside the release, a diamond stands at what it holds. No axis is drawn:
# numbers stand beside their bars, and the same ones stand in the table under the drawing.


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
    """A name or a label that fits beside a bar or a heat map."""
    return cut(printable(label), _LONGEST)


# ----------------------------------------------------------------------------------------------------------- draw graph
# The drawing of a forest: its columns on a circle, joined where they were counted together.


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


# ------------------------------------------------------------------------------------------------------------- draw map
# The drawing of a map: expected rows by area, as an image inside the SVG, with its coordinates around it.


_WIDTH, _HEIGHT = 640, 620
# From a breath of green to a deep one: thin areas fade into the page, light or dark.
_SHADES = [(0.55, 0.8, 0.62, 0.12), (0.45, 0.75, 0.55, 0.55), (0.2, 0.58, 0.38, 1.0), (0.04, 0.3, 0.2, 1.0)]


def map_drawing(drawn: Mapping[str, Any], name: str) -> str:
    """A map as SVG, as wide and tall on the page as it is on the ground."""
    (left, right), (bottom, top) = drawn["x"], drawn["y"]
    tallness = (drawn["aspect"] or (right - left) / (top - bottom)) * (top - bottom) / (right - left)
    width = min(_WIDTH - 70, (_HEIGHT - 60) / tallness)
    height = width * tallness
    figure = new_figure(width + 72, height + 52)
    axes = bare_axes(figure, 58, 42, width, height)
    draw_map(axes, drawn)
    return to_svg(
        figure,
        name=name,
        title=f"Map of {drawn['columns'][0]} and {drawn['columns'][1]}",
        description=f"{drawn['boxes']:,} boxes, the stronger the shade the more rows are expected in a cell.",
    )


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


# -------------------------------------------------------------------------------------------------------- draw overview
# Drawings of the promise and of the budget: what an attacker can learn at most, and where epsilon went.


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


# ----------------------------------------------------------------------------------------------------------- draw pairs
# Drawings of pairs: how strongly columns depend on each other, how well that is known, and how far it is off.
#
# Cells are shaded by one colour that fades into the page, so that they read alike on light and dark. Framed
# cells were measured together; a cross stands where the release does not support a figure, a dot where none was
# looked for.


_CELL, _PAIR_LABELS = 26, 124


def dependence_drawing(pairs: Mapping[str, Any], name: str = "dependence") -> str:
    """The distance from independence of every pair."""
    shades = {tuple(pair["columns"]): pair["distance"] for pair in pairs["pairs"]}
    return _heat_map(
        pairs["names"],
        shades,
        marks_of(pairs),
        STRONG,
        name=name,
        title="How strongly columns depend on each other",
        description="One cell for each pair of columns, the darker the more they depend on each other; framed where "
        "they were measured together. The table of pairs holds the numbers.",
    )


def uncertainty_drawing(pairs: Mapping[str, Any], name: str = "uncertainty") -> str:
    """The half-width of what is known about every pair, as a share of the rows."""
    shades = {tuple(pair["columns"]): pair["share"] for pair in pairs["pairs"]}
    return _heat_map(
        pairs["names"],
        shades,
        marks_of(pairs),
        WARM,
        name=name,
        title="How far a cell of two columns' table may be off",
        description="One cell for each pair of columns, the darker the wider the interval; a cross where the release "
        "supports no figure, a dot where none was looked for. The table of pairs holds the numbers.",
    )


def distance_drawing(names: Sequence[str], found: Sequence[Mapping[str, Any]], name: str) -> str:
    """The total variation between real and synthetic rows of every pair; for the holder only."""
    shades = {tuple(pair["columns"]): pair["total_variation"] for pair in found}
    return _heat_map(
        names,
        shades,
        {},
        REAL,
        name=name,
        title="How far pairs of synthetic columns are from the real ones",
        description="One cell for each pair of columns, the darker the further apart. The table of pairs holds the "
        "numbers.",
    )


def marks_of(pairs: Mapping[str, Any]) -> dict[tuple[str, ...], str]:
    """What a cell is marked by, besides its shade."""
    found = {}
    for pair in pairs["pairs"]:
        mark = "framed" if pair["counted"] else ""
        if not pair["is_looked_at"]:
            mark = mark or "dot"
        elif pair["share"] is None:
            mark = "cross"
        found[tuple(pair["columns"])] = mark
    return found


def _heat_map(
    names: Sequence[str],
    shades: Mapping[tuple[str, ...], float | None],
    marks: Mapping[tuple[str, ...], str],
    color: str,
    *,
    name: str,
    title: str,
    description: str,
) -> str:
    size = _CELL * len(names)
    figure = new_figure(size + _PAIR_LABELS + 40, size + _PAIR_LABELS * 0.78 + 22)
    axes = bare_axes(figure, _PAIR_LABELS, _PAIR_LABELS * 0.78, size, size)
    draw_heat_map(axes, names, shades, marks, color)
    return to_svg(figure, name=name, title=title, description=description)


def draw_heat_map(
    axes: Any,
    names: Sequence[str],
    shades: Mapping[tuple[str, ...], float | None],
    marks: Mapping[tuple[str, ...], str],
    color: str,
) -> None:
    """One cell for each pair below the diagonal, shaded by its figure, marked, with names along both sides."""
    from matplotlib.patches import Rectangle

    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_ylim(len(names) - 0.5, -0.5)
    places = {column: place for place, column in enumerate(names)}
    known = [shade for pair, shade in shades.items() if shade is not None and set(pair) <= set(places)]
    largest = max(known, default=0.0) or 1.0
    for pair, shade in shades.items():
        if not set(pair) <= set(places):
            continue
        row, across = sorted((places[column] for column in pair), reverse=True)
        if shade is not None:
            strength = 0.04 + 0.96 * (shade / largest) ** 0.7
            axes.add_patch(
                Rectangle((across - 0.46, row - 0.46), 0.92, 0.92, facecolor=color, alpha=strength, linewidth=0)
            )
        mark = marks.get(pair, "")
        if mark == "framed":
            axes.add_patch(Rectangle((across - 0.46, row - 0.46), 0.92, 0.92, fill=False, edgecolor=INK, linewidth=1.1))
        elif mark == "cross" and shade is None:
            axes.plot([across], [row], linestyle="none", marker="x", markersize=6, color=QUIET)
        elif mark == "dot" and shade is None:
            axes.plot([across], [row], linestyle="none", marker=".", markersize=3, color=QUIET)
    labels = list(map(cut_label, names))
    axes.set_yticks(range(len(names)), labels, fontsize=11, color=INK, parse_math=False)
    axes.set_xticks(
        range(len(names)),
        labels,
        fontsize=11,
        color=INK,
        rotation=45,
        ha="right",
        rotation_mode="anchor",
        parse_math=False,
    )
    if known:
        _scale(axes, color, largest, len(names))


def _scale(axes: Any, color: str, largest: float, n_names: int) -> None:
    """What the darkest shade means, in the empty corner."""
    from matplotlib.patches import Rectangle

    right = n_names - 0.5
    for step in range(5):
        strength = 0.04 + 0.96 * (step / 4) ** 0.7
        left = right - 5.2 * 0.55 + step * 0.55
        axes.add_patch(Rectangle((left, -1.05), 0.5, 0.5, facecolor=color, alpha=strength, linewidth=0, clip_on=False))
    axes.text(right - 5.2 * 0.55 - 0.2, -0.8, "0", ha="right", va="center", fontsize=10, color=QUIET)
    axes.text(right + 0.1, -0.8, _rounded(largest), ha="left", va="center", fontsize=10, color=QUIET)


def _rounded(number: float) -> str:
    return f"{100 * number:.2g} %" if number < 1 else "100 %"
