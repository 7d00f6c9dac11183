"""Drawings of pairs: how strongly columns depend on each other, how well that is known, and how far it is off.

Cells are shaded by one colour that fades into the page, so that they read alike on light and dark. Framed cells were
measured together; a cross stands where the release does not support a figure, a dot where none was looked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spinney.report.svg import INK, QUIET, REAL, STRONG, WARM, bare_axes, new_figure, to_svg
from spinney.shown import printable

_LONGEST = 18
_CELL, _LABELS = 26, 124


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
    figure = new_figure(size + _LABELS + 40, size + _LABELS * 0.78 + 22)
    axes = bare_axes(figure, _LABELS, _LABELS * 0.78, size, size)
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
    labels = [_cut(column) for column in names]
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


def _cut(name: str) -> str:
    text = printable(name)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
