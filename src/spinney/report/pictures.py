"""Pictures of a release as files: its partition, answers, error bars, and the graph of a forest. PUBLIC.

All that is drawn of a release is public. Private rows are drawn by `comparison_figure` alone, for made-up or
public data. Figures are made without pyplot: no global state, no display, and equal releases give equal files.
Intervals are drawn in full where they are certified, dashed where calibrated, dotted where indicative.

    partition           the noisy bins or leaves of two columns, alone or beside rows; saving
    choosing columns    which two columns, and how wide and tall
    drawing bins        rectangles shaded by noisy density
    answers             estimates with intervals, one panel a question
    bars                distributions of columns, and a table of pairs
    graph               columns on a circle, joined where they were counted together
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Column
from spinney.errors import ParameterError
from spinney.files import write_whole
from spinney.forest.release.explain import explain
from spinney.forest.release.model import ForestRelease
from spinney.forest.release.places import PlaceModel
from spinney.release.answers.answer import Answer, Answers, shown_label, shown_level
from spinney.release.answers.bars import ErrorBars, PairBars
from spinney.release.card import structure_in_words
from spinney.release.release import Release
from spinney.report.columns import described_bars, map_aspect, released_boxes, released_rectangles, spread
from spinney.report.draw import (
    INK,
    LINES,
    STRONG,
    bar_labels,
    draw_answers,
    draw_column,
    draw_graph,
    draw_pairs,
    line_width,
    lines_of,
    new_figure,
    target_of,
    write_ticks,
)
from spinney.report.parts import graph_part
from spinney.text import cut, printable
from spinney.tree.release.bins import BinnedRelease
from spinney.tree.release.moments import MomentsRelease

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# ------------------------------------------------------------------------------------------------------------ partition
# The noisy partition of two columns or of a place, alone or beside private and synthetic rows.


Points = NDArray[np.float64]  # (n, 2)
Corners = NDArray[np.float64]  # (n_bins, 4): left, bottom, right, top

ENDINGS = (".svg", ".png")

_WARNING = "#b00020"
_SHADES = "YlGn"
# More rectangles than this make an .svg unwieldy; they are drawn as an image inside it.
_MANY_BINS = 20_000
# Squares along each side of a picture in which densities are added up.
_SQUARES = 400


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
        axes.plot(*points.T, linestyle="none", marker=".", markersize=1.6, markeredgewidth=0, color=STRONG, alpha=0.6)
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


def _draw_bins(axes: Axes, release: Release, x: str, y: str) -> Any:
    """Draw the bins; returns what a colour bar describes, or None where no bin has an area."""
    _, _, names, place = released_boxes(release, x, y)
    corners, noisy_counts, is_shown = released_rectangles(release, x, y)
    for name in (x, y):
        _label(axes, name, release.schema._modelled[name], is_x=name == x)
    is_shown &= (corners[:, 2] > corners[:, 0]) & (corners[:, 3] > corners[:, 1])
    if not is_shown.any():
        return None
    corners, noisy_counts = corners[is_shown], noisy_counts[is_shown]
    if len(names) != 2:
        return _draw_overlaid(axes, corners, noisy_counts)
    if place is None or place.axis.raster is None:
        return _draw_rectangles(axes, corners, noisy_counts)
    inside = place.parts_inside(place.axis.columns)[is_shown]
    shades = _draw_rectangles(axes, corners, noisy_counts, np.maximum(inside, 1e-9))
    _cover_outside(axes, place, is_turned=names[0] != x)
    return shades


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

    limits = [axes.get_xlim(), axes.get_ylim()]
    total = spread(corners, noisy_counts, limits, (_SQUARES, _SQUARES))
    total = np.where(total > 0, total, np.nan)
    total /= np.nanmean(total)
    norm = LogNorm(*_color_range(total[np.isfinite(total)]))
    edges = [np.linspace(*ends, _SQUARES + 1) for ends in limits]
    return axes.pcolormesh(*edges, np.ma.masked_invalid(total), cmap=_SHADES, norm=norm, rasterized=True)


def _color_range(density: NDArray[np.float64]) -> tuple[float, float]:
    """From the thinnest bin to one that few exceed, and never empty."""
    low, high = float(density.min()), float(np.quantile(density, 0.98))
    return (low, high) if high > low * 1.01 else (low / 2, low * 2)


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
# Estimates with error bars, one panel a question. An answer that is not supported is an empty ring without a bar
# unless an interval was forced: a picture is passed on without its text.


# Answers that one picture can show.
_MOST_CELLS = 200


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
        _draw_question(axes, text, cells)
    mark_brands(figure, release)
    return figure


def _cells(answers: Answer | Answers | None) -> list[tuple[str, Answer]]:
    if answers is None:
        return []
    if isinstance(answers, Answer):
        return [("", answers)]
    labels = [", ".join(map(shown_label, label)) for label in answers.labels]
    return list(zip(labels, answers, strict=True))


def _draw_question(axes: Axes, text: str, cells: list[tuple[str, Answer]]) -> None:
    draw_answers(axes, [answer.to_dict() for _, answer in cells])
    write_ticks(axes, "y", [label for label, _ in cells], 8)
    axes.tick_params(labelsize=8)
    axes.grid(axis="x", color=INK, alpha=0.12)
    whose = ", of the population" if cells[0][1].of == "population" else ""
    title = f"{printable(text)} ({shown_level(cells[0][1].level)}{whose})"
    axes.set_title(title, fontsize=9, color=INK, loc="left", parse_math=False)
    styles = {answer.statement: LINES[answer.statement] for _, answer in cells}
    _legend(axes, {name: {"linestyle": line, "marker": "o"} for name, line in styles.items()}, loc="best", fontsize=7)


def _legend(axes: Axes, marks: Mapping[str, Mapping[str, Any]], **options: Any) -> None:
    """What lines of several styles mean."""
    from matplotlib.lines import Line2D

    axes.legend([Line2D([], [], color=STRONG, **mark) for mark in marks.values()], [*marks], frameon=False, **options)


# ----------------------------------------------------------------------------------------------------------------- bars
# Every column's distribution with intervals, and a table of pairs by how far they may be off. Pairs that are not
# supported are crossed out: a white cell would be taken for a small error.


_MOST_COLUMNS = 30
_ACROSS = 3
_LEGEND = (
    "pairs: how far a cell may be off in a table of three by three parts\n"
    "framed: counted together; crossed: not supported; dot: not looked at"
)


def bars_figure(release: Release, bars: ErrorBars) -> Figure:
    """Columns in panels, and below them a table of pairs; a ParameterError where the release has no error bars."""
    columns = [column for column in bars.columns if column.answers is not None]
    if not columns:
        raise ParameterError(f"there are no error bars to draw: {bars.refusal or bars.columns[0].refusal}")
    if len(columns) > _MOST_COLUMNS:
        raise ParameterError(
            f"a picture shows up to {_MOST_COLUMNS} columns, and there are {len(columns)}; name those to draw: "
            "error_bars(columns), or --columns A,B"
        )
    shown = [described_bars(column, bars.n_rows)[0] for column in columns]
    across = min(_ACROSS, len(columns))
    n_lines = [
        max(len(bar_labels(one)) for one in shown[start : start + across]) for start in range(0, len(shown), across)
    ]
    heights = [0.9 + 0.19 * lines for lines in n_lines]
    side = 0.0 if len(columns) < 2 or not bars.pairs else max(3.0, 2.0 + 0.3 * len(columns))
    figure = new_figure(max(3.7 * across, side and 5.5), sum(heights) + side + 0.4)
    parts = figure.subfigures(
        2 if side else 1, 1, squeeze=False, height_ratios=[sum(heights), *([side] if side else [])]
    )
    grid = parts[0, 0].subplots(len(heights), across, squeeze=False, gridspec_kw={"height_ratios": heights})
    panels = list(grid.flat)
    for place, (axes, column, one) in enumerate(zip(panels, columns, shown, strict=False)):
        draw_column(axes, one, who=bars.who, n_lines=n_lines[place // across], size=7)
        axes.grid(axis="x", color=INK, alpha=0.12)
        axes.tick_params(axis="x", labelsize=7)
        held = ", all at once" if one["simultaneous"] else ""
        title = f"{printable(cut(column.name, 30))} ({column.statement}{held})"
        axes.set_title(title, fontsize=8, color=INK, loc="left", parse_math=False)
    for axes in panels[len(columns) :]:
        axes.set_axis_off()
    parts[0, 0].suptitle(f"{bars.who}, with {shown_level(bars.level)} intervals", fontsize=10, color=INK)
    if side:
        below = parts[1, 0]
        below.suptitle(_LEGEND, fontsize=8, color=INK)
        axes = below.subplots()
        names = [column.name for column in columns]
        draw_pairs(axes, "uncertainty", names, _pairs(names, bars.pairs), size=7)
        axes.set_aspect("equal")
        axes.spines[:].set_visible(False)
    mark_brands(figure, release)
    return figure


def _pairs(names: Sequence[str], found: Sequence[PairBars]) -> list[dict[str, Any]]:
    """All pairs of columns as reports describe them, also those that were not looked at."""
    known = {frozenset(pair.columns): pair for pair in found}
    nothing = {"share": None, "counted": False, "is_looked_at": False}
    return [
        {"columns": names}
        | (nothing if pair is None else {"share": pair.share, "counted": pair.is_counted, "is_looked_at": True})
        for names in combinations(names, 2)
        for pair in [known.get(frozenset(names))]
    ]


# ---------------------------------------------------------------------------------------------------------------- graph
# The columns of a forest on a circle, what is left out of the picture, and what a width means.


_SCALE = (0.05, 0.2, 0.5)


def graph_figure(release: Release) -> Figure:
    """The columns of a forest and what joins them; a ParameterError for other kinds of release."""
    explanation = explain(release)
    graph = graph_part(explanation)
    side = 6.5 if len(graph["columns"]) <= 20 else 9.0
    figure = new_figure(side, side)
    axes = figure.add_subplot()
    names, lines = draw_graph(axes, graph, side=side)
    every, target = lines_of(graph), target_of(graph)
    card = explanation.card
    said = [f"{len(graph['columns']):,} columns, {len(every):,} pairs counted together, ε = {float(card.epsilon):g}"]
    if target is not None:
        said.append("yellow: with the target; green: between two columns, given the target")
    left_out = []
    if len(lines) < len(every):
        n_spokes = sum(line.touches(target) for line in lines)
        which = f"{len(lines)} strongest pairs"
        if target is not None:
            which = f"{n_spokes} strongest pairs with the target and {len(lines) - n_spokes} strongest others"
        left_out.append(f"only the {which} are drawn")
    if len(names) < len(graph["columns"]):
        left_out.append(f"{len(graph['columns']) - len(names):,} other columns are left out")
    if not every:
        left_out.append(f"no columns were counted together ({structure_in_words(explanation.structure)})")
    axes.set_title("\n".join([*said, "; ".join(left_out)] if left_out else said), fontsize=9, color=INK)
    if lines:
        widths = {f"{distance:g}": {"linewidth": line_width(distance), "alpha": 0.75} for distance in _SCALE}
        below: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "ncols": len(_SCALE)}
        _legend(axes, widths, title="distance from independence", fontsize=8, title_fontsize=8, **below)
    mark_brands(figure, release)
    return figure
