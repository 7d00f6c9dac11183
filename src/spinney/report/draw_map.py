"""The drawing of a map: expected rows by area, as an image inside the SVG, with its coordinates around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.report.svg import INK, QUIET, bare_axes, new_figure, to_svg
from spinney.shown import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
