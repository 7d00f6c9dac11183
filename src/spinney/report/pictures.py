"""Pictures of a release as files: its partition, answers, error bars, and the graph of a forest. PUBLIC.

All that is drawn of a release is public. Private rows are drawn by `comparison_figure` alone, for made-up or
public data. Figures are made without pyplot: no global state, no display, and equal releases give equal files.
Intervals are drawn in full where they are certified, dashed where calibrated, dotted where indicative.

    partition           the noisy bins or leaves of two columns, alone or beside rows; saving
    choosing columns    which two columns, at which aspect and size
    drawing bins        rectangles shaded by noisy density
    answers             estimates with intervals, one panel a question
    bars                distributions of columns, and a table of pairs
    graph               columns on a circle, joined where they were counted together
    placing             where columns stand on the circle
    drawing the graph   lines, columns and the scale
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Column, whole_range
from spinney.errors import ParameterError
from spinney.files import write_whole
from spinney.forest.release.explain import Explanation, explain
from spinney.forest.release.model import ForestRelease
from spinney.forest.release.places import PlaceModel
from spinney.machine import load_optional
from spinney.release.answers.answer import Answer, Answers, shown_label, shown_level
from spinney.release.answers.bars import ColumnBars, ErrorBars, in_order
from spinney.release.card import structure_in_words
from spinney.release.release import Release
from spinney.schema.places import is_latitude, is_longitude
from spinney.text import cut, printable
from spinney.tree.release.bins import BinnedRelease
from spinney.tree.release.geometry import Boxes, bin_boxes, value_boxes
from spinney.tree.release.moments import MomentsRelease

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch
    from matplotlib.ticker import Locator


# ------------------------------------------------------------------------------------------------------------ partition
# Pictures of a release: the noisy partition of two columns or of a place, alone or beside private and synthetic rows.
#
# All that is drawn of a release is public. Private rows are drawn by `comparison_figure` alone, for made-up or public
# data. Figures are made without pyplot: no global state, no display.


Points = NDArray[np.float64]  # (n, 2)
Corners = NDArray[np.float64]  # (n_bins, 4): left, bottom, right, top

ENDINGS = (".svg", ".png")

INK, GREEN, _WARNING = "#20302a", "#1f6f4a", "#b00020"
_SHADES = "YlGn"
_DAY = 86_400_000_000  # microseconds
# More rectangles than this make an .svg unwieldy; they are drawn as an image inside it.
_MANY_BINS = 20_000
# Squares along each side of a picture in which densities are added up.
_SQUARES = 400
_MANY_TICKS = 20
# Units of the two columns of a place are drawn alike unless one of them reaches this many times as far.
_MOST_UNEVEN = 8.0
_POLE = 89.0


def check_picture_name(path: str | Path) -> None:
    """Raise unless the ending of a file name is one that pictures are written as."""
    if not str(path).lower().endswith(ENDINGS):
        raise ParameterError(f"picture {str(path)!r} does not end in {' or '.join(ENDINGS)}")


def partition_figure(release: Release, columns: Sequence[str] | None = None) -> Figure:
    """The bins or leaves of a release in two of its columns, shaded by noisy density; of a forest, those of a place.

    Where the release, or the place, has more columns, they overlap in the two and their densities add up.
    """
    x, y = _chosen(release, columns)
    aspect = map_aspect(release, x, y)
    figure = new_figure(*_size(release, x, y, aspect))
    axes = figure.add_subplot()
    shades = _draw_bins(axes, release, x, y)
    if aspect is not None:
        axes.set_aspect(aspect)
    axes.set_title(_caption(release), fontsize=10, color=INK)
    if shades is not None:
        figure.colorbar(shades, ax=axes, label="noisy density, mean = 1", format="%g").minorticks_off()
    mark_brands(figure, release)
    return figure


def comparison_figure(release: Release, true_points: Points, synthetic_points: Points) -> Figure:
    """Private rows, noisy partition and synthetic rows side by side, for a release of two columns."""
    x, y = _chosen(release, None)
    figure = new_figure(12, 4.6 if release.card.is_private else 4.7)
    private, partition, synthetic = figure.subplots(1, 3, sharex=True, sharey=True)
    for axes, points, title in (
        (private, true_points, f"private: {len(true_points):,} rows"),
        (synthetic, synthetic_points, f"synthetic: {len(synthetic_points):,} rows"),
    ):
        axes.plot(*points.T, linestyle="none", marker=".", markersize=1.6, markeredgewidth=0, color=GREEN, alpha=0.6)
        axes.set_title(title, fontsize=10, color=INK)
    _draw_bins(partition, release, x, y)
    partition.set_title(_caption(release), fontsize=10, color=INK)
    for axes in (private, partition, synthetic):
        axes.set_aspect("equal")
        axes.set_xlabel(printable(x), color=INK)
        axes.tick_params(labelsize=8)
    partition.set_ylabel("")
    private.set_ylabel(printable(y), color=INK)
    mark_brands(figure, release)
    return figure


def save_figure(figure: Figure, path: str | Path, *, overwrite: bool = False, dpi: int = 120) -> None:
    """Write a figure as its ending says, whole or not at all. Equal figures are equal files."""
    import matplotlib as mpl

    check_picture_name(path)
    kind = Path(path).suffix.lower().lstrip(".")
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    with mpl.rc_context({"svg.hashsalt": "spinney"}):
        write_whole(
            path, lambda file: figure.savefig(file, format=kind, dpi=dpi, metadata=metadata), overwrite=overwrite
        )


# ----------------------------------------------------------------------------------------------------- choosing columns
# Which two columns are drawn, and how wide and tall.


def map_aspect(release: Release, x: str, y: str) -> float | None:
    """How much longer a unit of y is drawn than one of x, where the two are a map; None where they are not.

    A degree of latitude is 1 / cos(latitude) degrees of longitude; other columns of a place have the same units.
    """
    (left, right), (bottom, top) = (release.schema[name]._drawn_range() for name in (x, y))
    if is_longitude(x) and is_latitude(y) and -360 <= left < right <= 360 and -90 <= bottom < top <= 90:
        return 1 / math.cos(math.radians(min(max((bottom + top) / 2, -_POLE), _POLE)))
    is_place = any({x, y} <= set(place.columns) for place in release.schema.places)
    is_even = max(right - left, top - bottom) <= _MOST_UNEVEN * min(right - left, top - bottom)
    return 1.0 if is_place and is_even else None


def _size(release: Release, x: str, y: str, aspect: float | None) -> tuple[float, float]:
    """Inches that leave little room beside a map, with a colour bar to its right."""
    if aspect is None:
        return 6.4, 5.6
    (left, right), (bottom, top) = (release.schema[name]._drawn_range() for name in (x, y))
    tallness = aspect * (top - bottom) / (right - left)
    width, height = (4.8 / tallness, 4.8) if tallness > 1 else (4.8, 4.8 * tallness)
    return max(width, 1.6) + 1.6, max(height, 1.6) + 0.8


def _chosen(release: Release, columns: Sequence[str] | None) -> tuple[str, str]:
    if isinstance(release, ForestRelease) and release.places:
        return _chosen_of_place(release, columns)
    if not isinstance(release, (BinnedRelease, MomentsRelease)):
        remedy = (
            "; `spinney explain --picture` draws what it is made of" if release.kind in ("forest", "people") else ""
        )
        raise ParameterError(
            f"the release holds {release.card.contents}, not boxes of space, so there is no partition to draw{remedy}"
        )
    names = list(release.schema._modelled)
    if columns is None:
        if len(names) != 2:
            raise ParameterError(
                f"the release has {len(names)} columns; draw two of {', '.join(names)} (--columns X,Y)"
            )
        columns = names
    if len(columns) != 2 or columns[0] == columns[1]:
        raise ParameterError(f"columns={','.join(columns)} does not name two different columns")
    for name in columns:
        if name not in names:
            raise ParameterError(f"columns={','.join(columns)}: {name!r} is not one of {', '.join(names)}")
    return columns[0], columns[1]


def _chosen_of_place(release: ForestRelease, columns: Sequence[str] | None) -> tuple[str, str]:
    """Two columns of a place."""
    labels = [place.names for place in release.places.values()]
    listed = "; ".join(",".join(names) for names in labels)
    if columns is None:
        if len(labels) != 1 or len(labels[0]) != 2:
            raise ParameterError(f"there are several maps to draw; choose two columns of {listed} (--columns X,Y)")
        columns = labels[0]
    for names in labels:
        if len(columns) == 2 and columns[0] != columns[1] and set(columns) <= set(names):
            return columns[0], columns[1]
    raise ParameterError(
        f"columns={','.join(columns)} are not two columns of a place, and of a forest only places are drawn; take two "
        f"of {listed}"
    )


def _caption(release: Release) -> str:
    card = release.card
    if isinstance(release, ForestRelease):
        n_regions = sum(len(place.states) for place in release.places.values())
        return printable(f"noisy map: {n_regions:,} regions, ε = {float(card.epsilon):g} ({card.unit})")
    return printable(f"noisy partition: {card.contents}, ε = {float(card.epsilon):g} ({card.unit})")


# --------------------------------------------------------------------------------------------------------- drawing bins
# Rectangles of bins, side by side or one over the other.


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches; MissingExtraError without matplotlib."""
    figure: Figure = load_optional("matplotlib.figure", "a picture").Figure(
        figsize=(width, height), layout="constrained"
    )
    return figure


def _draw_bins(axes: Axes, release: Release, x: str, y: str) -> Any:
    """Draw the bins; returns what a colour bar describes, or None where no bin has an area."""
    boxes, counts, names, place = released_boxes(release, x, y)
    spans = []
    for name, is_x in ((x, True), (y, False)):
        index, column = names.index(name), release.schema._modelled[name]
        low, length = in_units(boxes.low[:, index], boxes.length[:, index], column)
        # A bin of missing values alone lies nowhere along the column.
        spans.append((low, np.where(boxes.null_share[:, index] == 1, 0, length)))
        _label(axes, name, column, is_x=is_x)
    (left, width), (bottom, height) = spans
    is_shown = (width > 0) & (height > 0) & (counts > 0)
    if not is_shown.any():
        return None
    corners = np.stack([left, bottom, left + width, bottom + height], axis=1)[is_shown]
    noisy_counts = counts[is_shown]
    if len(names) != 2:
        return _draw_overlaid(axes, corners, noisy_counts)
    if place is None or place.axis.raster is None:
        return _draw_rectangles(axes, corners, noisy_counts)
    inside = place.parts_inside(place.axis.columns)[is_shown]
    shades = _draw_rectangles(axes, corners, noisy_counts, np.maximum(inside, 1e-9))
    _cover_outside(axes, place, is_turned=names[0] != x)
    return shades


def released_boxes(release: Release, x: str, y: str) -> tuple[Boxes, NDArray[Any], Sequence[str], PlaceModel | None]:
    """Boxes, noisy counts (of leaf moments and of places, as fitted to the total), their columns, and the place."""
    names: Sequence[str] = list(release.schema._modelled)
    if isinstance(release, ForestRelease):
        place = next(place for place in release.places.values() if {x, y} <= set(place.names))
        return Boxes(place.low, place.length, place.is_null.astype(np.float64)), place.weights, place.names, place
    if isinstance(release, MomentsRelease):
        density = release.density
        return value_boxes(density.boxes, release.moments.lattice, density.piles), density.weights, names, None
    assert isinstance(release, BinnedRelease)  # checked by `_chosen`
    return value_boxes(bin_boxes(release.bins), release.bins.lattice), release.bins.noisy_counts, names, None


def _cover_outside(axes: Axes, place: PlaceModel, *, is_turned: bool) -> None:
    """White over what of the regions lies outside the shape."""
    raster = place.axis.raster
    assert raster is not None
    outside = raster.is_inside if is_turned else raster.is_inside.T
    cover = np.ones((*outside.shape, 4))
    cover[..., 3] = ~outside
    ends = [(edges[0], edges[-1]) for edges in raster.edges][:: -1 if is_turned else 1]
    limits, aspect = (axes.get_xlim(), axes.get_ylim()), axes.get_aspect()
    axes.imshow(cover, extent=(*ends[0], *ends[1]), origin="lower", interpolation="nearest", zorder=2)
    axes.set(xlim=limits[0], ylim=limits[1], aspect=aspect)


def _draw_rectangles(
    axes: Axes, corners: Corners, noisy_counts: NDArray[Any], inside: NDArray[np.float64] | float = 1.0
) -> Any:
    """Bins of two columns, side by side; `inside` is what part of each rows can lie in."""
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import LogNorm

    left, bottom, right, top = corners.T
    area = (right - left) * (top - bottom) * inside
    density = noisy_counts / area
    density /= np.average(density, weights=area)
    shades = PolyCollection(
        list(np.stack([left, bottom, right, bottom, right, top, left, top], axis=1).reshape(-1, 4, 2)),
        array=density,
        cmap=_SHADES,
        norm=LogNorm(*_color_range(density)),
        edgecolors=INK,
        linewidths=0.15,
        rasterized=len(corners) > _MANY_BINS,
    )
    axes.add_collection(shades)
    return shades


def _draw_overlaid(axes: Axes, corners: Corners, noisy_counts: NDArray[Any]) -> Any:
    """Bins of more columns, one over the other: the sum of their densities in each of many small squares.

    See-through rectangles would show the same until their shades run out, which a few hundred bins achieve.
    """
    from matplotlib.colors import LogNorm

    edges = [np.linspace(*limits, _SQUARES + 1) for limits in (axes.get_xlim(), axes.get_ylim())]
    place = np.empty(corners.shape, dtype=np.int64)
    for side in range(4):
        grid = edges[side % 2]
        place[:, side] = np.rint((corners[:, side] - grid[0]) / (grid[-1] - grid[0]) * _SQUARES)
    left, bottom = np.clip(place[:, :2], 0, _SQUARES - 1).T
    right, top = np.maximum(place[:, 2], left + 1), np.maximum(place[:, 3], bottom + 1)

    # Each rectangle is a step up at two of its corners and a step down at the others; sums along both axes fill it.
    density = noisy_counts / ((right - left) * (top - bottom))
    steps = np.zeros((_SQUARES + 1, _SQUARES + 1))
    for across, up, sign in ((left, bottom, 1), (right, bottom, -1), (left, top, -1), (right, top, 1)):
        np.add.at(steps, (up, across), sign * density)
    total = steps.cumsum(axis=0).cumsum(axis=1)[:-1, :-1]
    total = np.where(total > 1e-9 * total.max(), total, np.nan)
    total /= np.nanmean(total)
    norm = LogNorm(*_color_range(total[np.isfinite(total)]))
    return axes.pcolormesh(*edges, np.ma.masked_invalid(total), cmap=_SHADES, norm=norm, rasterized=True)


def _color_range(density: NDArray[np.float64]) -> tuple[float, float]:
    """From the thinnest bin to one that few exceed, and never empty."""
    low, high = float(density.min()), float(np.quantile(density, 0.98))
    return (low, high) if high > low * 1.01 else (low / 2, low * 2)


def in_units(
    low: NDArray[np.float64], length: NDArray[np.float64], column: Column
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Positions as they are drawn: values of numbers, days since 1970 of dates and times, places in a list."""
    first = whole_range(column)[0] if column.is_whole else 0
    return (low + first) * column._drawn_scale, length * column._drawn_scale


def _label(axes: Axes, name: str, column: Column, *, is_x: bool) -> None:
    """Name, range and ticks of one column."""
    axis = axes.xaxis if is_x else axes.yaxis
    axis.set_label_text(printable(name))
    axis.label.set(color=INK, parse_math=False)
    axes.tick_params(labelsize=8)
    set_limits = axes.set_xlim if is_x else axes.set_ylim
    set_limits(*column._drawn_range())
    column._set_ticks(axis)


def mark_brands(figure: Figure, release: Release) -> None:
    """A release whose guarantee is void says so in its picture."""
    warnings = release.card.to_dict()["warnings"]
    if warnings:
        figure.supxlabel("NOT PRIVATE: " + "; ".join(warnings), fontsize=7, color=_WARNING)


# -------------------------------------------------------------------------------------------------------------- answers
# A picture of answers: estimates with error bars, one panel a question. All that is drawn is public.
#
# Certified intervals are drawn in full, calibrated ones dashed, indicative ones dotted, and an answer that is not
# supported is an empty ring without a bar unless an interval was forced: a picture is passed on without its text.


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


# ----------------------------------------------------------------------------------------------------------------- bars
# A picture of error bars: every column's distribution with intervals, and a table of pairs by how far they may be
# off.
#
# Intervals are drawn as in pictures of answers: certified ones in full, calibrated ones dashed. Pairs that are not
# supported are crossed out: a white cell would be taken for a small error. All that is drawn is public.


_MOST_COLUMNS = 30
_MOST_BARS = 12
_ACROSS = 3
_PALE = "#b7d8c6"
_BAR_SHADES = "YlOrBr"
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
        shades = axes.imshow(shares, cmap=_BAR_SHADES, vmin=0.0, vmax=max(float(known.max()), 1e-3))
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


# ---------------------------------------------------------------------------------------------------------------- graph
# A picture of a forest: columns on a circle, joined where they were counted together.
#
# Lines are the wider the more two columns depend on each other; the target stands in the middle, and lines
# between other columns are of what it leaves to explain. Columns are put around the circle branch by branch of
# the tree of strongest lines, so that most lines are short. Nothing is random: equal releases give equal
# pictures. All of it is public.


_TARGET = "#b8860b"
# More lines than this hide each other; of more columns than this, those without a line are left out.
_MOST_LINES = 120
_MOST_SPOKES = 40  # of them, to a target
_MOST_NODES = 60
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
    axes.set_title(_graph_caption(explanation, lines, every, len(shown), target), fontsize=9, color=INK)
    if lines:
        _draw_scale(axes)
    mark_brands(figure, release)
    return figure


def shown_columns(names: Sequence[str], lines: Sequence[Line]) -> Sequence[str]:
    """The columns that are drawn: all, or of very many those that are joined."""
    if len(names) <= _MOST_NODES:
        return names
    joined = {name for line in lines for name in (line.first, line.second)}
    return [name for name in names if name in joined] or names[:_MOST_NODES]


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


def _graph_caption(
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


# -------------------------------------------------------------------------------------------------------------- placing
# Where columns stand on the circle.


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


# ---------------------------------------------------------------------------------------------------- drawing the graph
# Lines by their strength, columns, and what a width means.


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
    labels = {name: cut(printable(name), _LONGEST_LABEL) for name in places}
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
