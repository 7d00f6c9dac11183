"""Pictures of a release: the noisy partition of two columns or of a place, alone or beside private and synthetic rows.

All that is drawn of a release is public. Private rows are drawn by `comparison_figure` alone, for made-up or public
data. Figures are made without pyplot: no global state, no display.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Column, whole_range
from spinney.errors import ParameterError
from spinney.extras import load_optional
from spinney.files import write_whole
from spinney.forest.release.model import ForestRelease
from spinney.forest.release.place_model import PlaceModel
from spinney.release.model import Release
from spinney.schema.place_names import is_latitude, is_longitude
from spinney.shown import printable
from spinney.tree.release.binned import BinnedRelease
from spinney.tree.release.geometry import Boxes, bin_boxes
from spinney.tree.release.moments import MomentsRelease
from spinney.tree.release.piece_values import value_boxes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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


# ------------------------------------------------------------------------------------------------- choosing


def map_aspect(release: Release, x: str, y: str) -> float | None:
    """How much longer a unit of y is drawn than one of x, where the two are a map; None where they are not.

    A degree of latitude is 1 / cos(latitude) degrees of longitude; other columns of a place have the same units.
    """
    (left, right), (bottom, top) = (release.schema[name].drawn_range() for name in (x, y))
    if is_longitude(x) and is_latitude(y) and -360 <= left < right <= 360 and -90 <= bottom < top <= 90:
        return 1 / math.cos(math.radians(min(max((bottom + top) / 2, -_POLE), _POLE)))
    is_place = any({x, y} <= set(place.columns) for place in release.schema.places)
    is_even = max(right - left, top - bottom) <= _MOST_UNEVEN * min(right - left, top - bottom)
    return 1.0 if is_place and is_even else None


def _size(release: Release, x: str, y: str, aspect: float | None) -> tuple[float, float]:
    """Inches that leave little room beside a map, with a colour bar to its right."""
    if aspect is None:
        return 6.4, 5.6
    (left, right), (bottom, top) = (release.schema[name].drawn_range() for name in (x, y))
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
    names = list(release.schema.modelled)
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


# -------------------------------------------------------------------------------------------------- drawing


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
        index, column = names.index(name), release.schema.modelled[name]
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
    names: Sequence[str] = list(release.schema.modelled)
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
    return (low + first) * column.drawn_scale, length * column.drawn_scale


def _label(axes: Axes, name: str, column: Column, *, is_x: bool) -> None:
    """Name, range and ticks of one column."""
    axis = axes.xaxis if is_x else axes.yaxis
    axis.set_label_text(printable(name))
    axis.label.set(color=INK, parse_math=False)
    axes.tick_params(labelsize=8)
    set_limits = axes.set_xlim if is_x else axes.set_ylim
    set_limits(*column.drawn_range())
    column.set_ticks(axis)


def mark_brands(figure: Figure, release: Release) -> None:
    """A release whose guarantee is void says so in its picture."""
    warnings = release.card.to_dict()["warnings"]
    if warnings:
        figure.supxlabel("NOT PRIVATE: " + "; ".join(warnings), fontsize=7, color=_WARNING)
