"""Pictures of a release for notebooks and papers, on matplotlib's axes: `sp.plot.distribution(release, "age")`.

Every function draws on the axes that it is given, or on those of a new figure, and returns them; `axes.figure` is the
figure, whose `savefig` writes a file. pyplot is not imported, nothing is shown, and no setting of matplotlib changes.
The numbers and the drawing are those of the report: certified intervals are drawn in full, calibrated ones dashed,
indicative ones dotted, and a bar without an interval is empty. All of it is public, unless `against=` is given.
Needs matplotlib: `pip install matplotlib`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spinney.errors import ParameterError
from spinney.plotting.chosen import column_of, columns_of, joint_of, map_of, release_of
from spinney.plotting.panels import bare, finish, panels, style
from spinney.report.columns_part import drawn_tables, persons_table
from spinney.report.described_part import model_part
from spinney.report.draw_columns import cut_label, draw_bars, shown_bars
from spinney.report.draw_graph import draw_released_graph
from spinney.report.draw_map import draw_map
from spinney.report.draw_pairs import draw_heat_map, marks_of
from spinney.report.pairs_part import pairs_part, report_bars
from spinney.report.svg import INK, STRONG, WARM
from spinney.shown import as_given, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["distribution", "distributions", "graph", "map", "pair", "pairs"]

_MOST_PANELS = 30
_ACROSS = 3
_PRIVATE = "beside the real table: do not publish"


def distribution(
    release: Any, column: str, *, ax: Axes | None = None, against: Any = None, level: float = 0.95
) -> Axes:
    """The released distribution of one column: a bar for each value or range, with its interval.

    Args:
        release: a release, or a fitted synthesizer.
        column: its name; of persons "customers.age", or "transactions.amount".
        ax: the axes to draw on; by default those of a new figure.
        against: the real table, drawn beside the release as diamonds. Such a picture is PRIVATE: it shows counts of the
            real table without noise, so do not publish it. Of linked tables, a dictionary of tables by name.
        level: the probability that intervals hold with.

    Raises:
        ParameterError: there is no such column, or the level is not between 0 and 1.
    """
    source = release_of(release)
    described, real = column_of(source, column, level, against)
    axes = panels(ax, 4.6, 0.9 + 0.24 * min(len(described["bars"]), 15))
    _draw_column(axes, described, real, source)
    return axes


def distributions(
    release: Any, columns: Sequence[str] | None = None, *, against: Any = None, level: float = 0.95
) -> list[Axes]:
    """The released distributions of several columns as panels of one new figure; the figure is that of any of them.

    Args:
        release: a release, or a fitted synthesizer.
        columns: their names; by default all, if there are no more than 30.
        against: the real table, drawn beside the release. Such a picture is PRIVATE; see `distribution`.
        level: the probability that intervals hold with.

    Raises:
        ParameterError: a column is not known, or there are too many.
    """
    source = release_of(release)
    found = columns_of(source, columns, level, against)
    if len(found) > _MOST_PANELS:
        raise ParameterError(
            f"a picture shows up to {_MOST_PANELS} columns, and there are {len(found)}; name those to draw"
        )
    every = bare(len(found), _ACROSS, 3.8, 0.9 + 0.22 * max(min(len(one["bars"]), 15) for one, _ in found))
    for place, (axes, (described, real)) in enumerate(zip(every, found, strict=True)):
        beside = found[place // _ACROSS * _ACROSS :][:_ACROSS]
        _draw_column(axes, described, real, source, n_lines=max(len(_labels(one)) for one, _ in beside))
    return every


def pairs(release: Any, *, show: str = "dependence", ax: Axes | None = None, level: float = 0.95) -> Axes:
    """A heat map of all pairs of columns: how strongly they depend on each other, or how far a cell may be off.

    Framed pairs were measured together; a cross stands where the release supports no figure, a dot where none was
    looked for. Of more than 30 columns, those are drawn that were counted with most others.

    Args:
        release: a release, or a fitted synthesizer.
        show: "dependence", the distance from independence, or "uncertainty", the half-width of intervals.
        ax: the axes to draw on; by default those of a new figure.
        level: the probability that intervals hold with.

    Raises:
        ParameterError: `show` is something else, or there are fewer than two columns.
    """
    source = release_of(release)
    shown = {"dependence": ("distance", STRONG), "uncertainty": ("share", WARM)}
    if not isinstance(show, str) or show not in shown:
        raise ParameterError(f"show={as_given(show)} is not 'dependence' or 'uncertainty'")
    key, color = shown[show]
    drawn = drawn_tables(source).get(persons_table(source) or "") if source.kind != "forest" else None
    found = pairs_part(source, report_bars(source, level), drawn)
    if len(found["names"]) < 2:
        raise ParameterError("there are no two columns whose dependence could be drawn")
    side = 1.8 + 0.3 * len(found["names"])
    axes = panels(ax, side + 0.4, side)
    style(axes, framed=False)
    shades = {tuple(one["columns"]): one[key] for one in found["pairs"]}
    draw_heat_map(axes, found["names"], shades, marks_of(found), color)
    axes.set_aspect("equal")
    titles = {"dependence": "distance from independence", "uncertainty": "how far a cell may be off"}
    finish(axes, titles[show], source, pad=18)
    return axes


def pair(release: Any, x: str, y: str, *, ax: Axes | None = None) -> Axes:
    """The joint distribution of two columns as a heat map of shares, from synthetic rows drawn with a fixed seed.

    The title says where the two were not measured together: the picture then shows what follows from other columns.

    Args:
        release: a release, or a fitted synthesizer.
        x: the column along the bottom; of persons "customers.age".
        y: the column upwards, of the same table.
        ax: the axes to draw on; by default those of a new figure.

    Raises:
        ParameterError: there are no such two columns in one table.
    """
    source = release_of(release)
    found = joint_of(source, x, y)
    axes = panels(ax, 2.4 + 0.33 * len(found.across), 1.6 + 0.28 * max(len(found.up), 3))
    style(axes)
    largest = float(found.shares.max()) or 1.0
    shades = axes.imshow(found.shares, origin="lower", aspect="auto", cmap="YlGn", vmin=0.0, vmax=largest)
    axes.set_xticks(
        range(len(found.across)),
        [cut_label(label) for label in found.across],
        rotation=45,
        ha="right",
        rotation_mode="anchor",
        parse_math=False,
    )
    axes.set_yticks(range(len(found.up)), [cut_label(label) for label in found.up], parse_math=False)
    axes.set_xlabel(printable(x), color=INK, parse_math=False)
    axes.set_ylabel(printable(y), color=INK, parse_math=False)
    bar = axes.figure.colorbar(shades, ax=axes, format=lambda value, _: f"{100 * value:.3g} %")
    bar.outline.set_visible(False)
    finish(axes, "share of rows" + ("" if found.is_counted else "; not measured together"), source)
    return axes


def map(  # noqa: A001 - `sp.plot.map` is what it is called
    release: Any, x: str | None = None, y: str | None = None, *, ax: Axes | None = None
) -> Axes:
    """A map: expected rows by area, as wide and tall as on the ground where the columns are longitude and latitude.

    Args:
        release: a release, or a fitted synthesizer, that has a place, longitude and latitude, or two columns.
        x: the column across; by default the map that the release has, if it is one.
        y: the column upwards.
        ax: the axes to draw on; by default those of a new figure.

    Raises:
        ParameterError: the release has no such map.
    """
    source = release_of(release)
    drawn = map_of(source, x, y)
    (left, right), (bottom, top) = drawn["x"], drawn["y"]
    tallness = (drawn["aspect"] or (right - left) / (top - bottom)) * (top - bottom) / (right - left)
    width, height = (5.5 / tallness, 5.5) if tallness > 1 else (5.5, 5.5 * tallness)
    axes = panels(ax, max(width, 2.0) + 0.9, max(height, 1.5) + 0.8)
    style(axes)
    draw_map(axes, drawn)
    axes.set_aspect("auto" if drawn["aspect"] is None else drawn["aspect"])
    finish(axes, f"expected rows; {drawn['released']:,} released {_plural(drawn['released_as'])}", source)
    return axes


def graph(release: Any, *, ax: Axes | None = None) -> Axes:
    """The columns of a forest on a circle, joined where they were measured together, the target in the middle.

    Args:
        release: a release of a forest or of persons, or a fitted synthesizer.
        ax: the axes to draw on; by default those of a new figure.

    Raises:
        ParameterError: a tree or a grid measures all columns together, so there is no graph.
    """
    source = release_of(release)
    found = model_part(source)["graph"]
    if found is None:
        raise ParameterError("the release measured all columns together, so there is no graph of them to draw")
    side = 6.5 if len(found["columns"]) <= 20 else 9.0
    axes = panels(ax, side, side)
    if ax is not None:
        side = min(axes.get_window_extent().size) / axes.figure.dpi
    n_lines = draw_released_graph(axes, found, side=side)
    finish(axes, f"{len(found['columns']):,} columns, {n_lines:,} pairs measured together", source)
    return axes


def _labels(described: Any) -> list[str]:
    """What stands beside the bars of a column, and below them how many more there are."""
    bars, n_more = shown_bars(described)
    return [cut_label(bar["label"]) for bar in bars] + ([f"and {n_more:,} more"] if n_more else [])


def _draw_column(axes: Axes, described: Any, real: Sequence[float] | None, source: Any, n_lines: int = 1) -> None:
    """One column on axes: labels on the left, rows or shares along the bottom; as thick as so many lines make bars."""
    labels = _labels(described)
    style(axes)
    draw_bars(axes, shown_bars(described)[0], real, n_lines=max(len(labels), n_lines))
    axes.set_yticks(range(len(labels)), labels, parse_math=False)
    axes.tick_params(axis="y", length=0)
    who = "persons" if source.card.unit.endswith("person") else "rows"
    is_share = described["scale"] == "share"
    axes.set_xlabel("share of rows" if is_share else who, color=INK)
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %" if is_share else f"{value:,.6g}")
    axes.locator_params(axis="x", nbins=4)
    title = printable(described["key"])
    finish(axes, title if real is None else f"{title}\n{_PRIVATE}", source)


def _plural(what: str) -> str:
    return "leaves" if what == "leaf" else f"{what}s"
