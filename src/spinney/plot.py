"""Pictures of a release for notebooks and papers, on matplotlib's axes: `sp.plot.distribution(release, "age")`.

Every function draws on the axes that it is given, or on those of a new figure, and returns them; `axes.figure`
is the figure, whose `savefig` writes a file. pyplot is not imported, nothing is shown, and no setting of
matplotlib changes. The numbers and the drawing are those of the report: certified intervals are drawn in full,
calibrated ones dashed, indicative ones dotted, and a bar without an interval is empty. All of it is public,
unless `against=` is given: that picture is NOT PRIVATE. Needs matplotlib: `pip install matplotlib`.

    contents    the release, the columns and the pairs that a call names
    axes        given axes or new ones, their style, and the red line of a void guarantee
    pictures    the public functions
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney.errors import NotFittedError, ParameterError
from spinney.metrics.compare import real_bars
from spinney.people.release.model import PeopleRelease
from spinney.release.answers.bars import shown_bar
from spinney.release.release import Release
from spinney.report.columns import (
    columns_part,
    drawn_tables,
    maps_part,
    pairs_part,
    persons_table,
    placed,
    report_bars,
    tables_of,
)
from spinney.report.draw import (
    HEAT,
    INK,
    LINE,
    QUIET,
    SLANTED,
    bar_labels,
    cut_label,
    draw_column,
    draw_graph,
    draw_map,
    draw_pairs,
    map_tallness,
    new_figure,
    write_ticks,
)
from spinney.report.parts import model_part
from spinney.text import as_given, did_you_mean, many, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["distribution", "distributions", "graph", "map", "pair", "pairs"]


def __dir__() -> list[str]:
    return list(__all__)


# ------------------------------------------------------------------------------------------------------------- contents
# What a picture is of: a release or that of a fitted model, and the part of a report's contents that was asked for.


Column = tuple[Mapping[str, Any], list[float] | None]  # what is drawn, and real figures beside it


def release_of(given: Any) -> Release:
    """The release itself, or that of a fitted model."""
    if isinstance(given, Release):
        return given
    if callable(getattr(given, "fit", None)) and not hasattr(given, "release_"):
        raise NotFittedError(f"this {type(given).__name__} is not fitted yet; call fit(frame, schema) first")
    found = getattr(given, "release_", None)
    if not isinstance(found, Release):
        raise ParameterError(f"release is a {type(given).__name__}; give what sp.load returns, or a fitted synthesizer")
    return found


def columns_of(release: Release, names: Sequence[str] | None, level: float, against: Any) -> list[Column]:
    """Some columns as a report has them, by default all; a ParameterError where one is not known."""
    if isinstance(names, str):
        raise ParameterError(f"columns={names!r} is one name; give a list of names")
    wanted = _known(release) if names is None else list(names)
    _check_known(release, wanted)
    asked = wanted if names is not None and not isinstance(release, PeopleRelease) else None
    bars = release.error_bars(asked, level=level, pairs=False)
    answered = {one.name for one in bars.columns if one.answers is not None}
    needs_rows = isinstance(release, PeopleRelease) or not set(wanted) <= answered
    shown = columns_part(release, bars, drawn_tables(release) if needs_rows else {})
    described = {one["key"]: one for one in shown.columns}
    for name in wanted:
        if name not in described:
            raise ParameterError(f"column={as_given(name)} is not one of the columns that are shown")
    shares = [key for key, one in described.items() if one["scale"] == "share"]
    real = _real(release, against, {name: shown.cuts.get(name, []) for name in wanted}, shares)
    return [(described[name], real.get(name) if against is not None else None) for name in wanted]


def _known(release: Release) -> list[str]:
    """The columns that have a distribution, as callers name them."""
    return [
        f"{table}.{name}" if table else name
        for table, schema in tables_of(release).items()
        for name, column in schema.items()
        if column.is_read
    ]


def _check_known(release: Release, names: Iterable[str]) -> None:
    """Raise a ParameterError where a column is not known."""
    known = _known(release)
    for name in names:
        if name not in known:
            raise ParameterError(f"column={as_given(name)} is not one of the release{did_you_mean(name, known)}")


def _real(
    release: Release, against: Any, cuts: Mapping[str, Sequence[Any]], shares: Sequence[str]
) -> dict[str, list[float]]:
    """What the real table holds for each bar. NOT PRIVATE."""
    if against is None:
        return {}
    found: dict[str, list[float]] = {}
    tables = tables_of(release)
    frames = against if isinstance(against, Mapping) and not hasattr(against, "columns") else {"": against}
    if set(frames) != set(tables):
        raise ParameterError(f"against holds tables {sorted(frames)}, and the release has {sorted(tables)}")
    for table, frame in frames.items():
        prefix = f"{table}." if table else ""
        found |= real_bars(frame, tables[table], cuts, as_shares=shares, prefix=prefix)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """Shares of rows by the parts of two columns."""

    across: list[str]
    up: list[str]
    shares: NDArray[np.float64]  # (up, across)
    is_counted: bool


def joint_of(release: Release, x: str, y: str) -> Joint:
    """The joint distribution of two columns of one table, from synthetic rows; a ParameterError where there is none."""
    for table, schema in tables_of(release).items():
        names = {f"{table}.{name}" if table else name: name for name, column in schema.items() if column.is_read}
        if x in names and y in names and x != y:
            rows = drawn_tables(release).get(table)
            if rows is None or not rows.num_rows:
                raise ParameterError("no rows can be drawn from the release, so there is no pair to draw")
            (across, right, _), (up, above, _) = (
                placed(rows.column(names[name]).combine_chunks(), schema[names[name]]) for name in (x, y)
            )
            shares = np.zeros((len(up), len(across)))
            is_shown = (right >= 0) & (above >= 0)
            np.add.at(shares, (above[is_shown], right[is_shown]), 1 / rows.num_rows)
            own = release.persons if isinstance(release, PeopleRelease) else release
            is_row = isinstance(release, PeopleRelease) and table != release.shape.persons_name
            is_counted = is_row or bool(own._holds_pair((names[x], names[y])))
            return Joint([shown_bar(label) for label in across], [shown_bar(label) for label in up], shares, is_counted)
    _check_known(release, (x, y))
    raise ParameterError(f"{x!r} and {y!r} are not two different columns of one table")


def map_of(release: Release, x: str | None, y: str | None) -> dict[str, Any]:
    """The map of two columns, by default the only one; a ParameterError where there is none, or more than one."""
    found = maps_part(release)
    listed = "; ".join(" and ".join(repr(name) for name in one["columns"]) for one in found)
    if not found:
        raise ParameterError("the release has no map: state a place in the schema, or draw columns with sp.plot.pair")
    if x is None and y is None:
        if len(found) > 1:
            raise ParameterError(f"the release has several maps; choose x and y among {listed}")
        return found[0]
    for one in found:
        if [x, y] == one["columns"]:
            return one
    raise ParameterError(f"x={as_given(x)} and y={as_given(y)} are no map of the release; it has {listed}")


# ----------------------------------------------------------------------------------------------------------------- axes
# Axes: those that were given, or those of a new figure, without pyplot; plain, and marked where nothing is private.


_ALARM = "#b00020"
_DPI = 80  # in notebooks


def panels(ax: Any, width: float, height: float) -> Axes:
    """The axes that were given, or new ones of so many inches."""
    if ax is None:
        axes: Axes = new_figure(width, height).add_subplot()
        _show_in_notebooks(axes)
        return axes
    if not callable(getattr(ax, "add_patch", None)):
        raise ParameterError(
            f"ax is a {type(ax).__name__}, not the axes of a matplotlib figure; leave it out for new ones"
        )
    given: Axes = ax
    return given


def bare(n_panels: int, across: int, width: float, height: float) -> list[Axes]:
    """So many panels of one new figure, in rows; each of so many inches."""
    across = min(across, n_panels)
    n_lines = -(-n_panels // across)
    every = list(new_figure(width * across, height * n_lines).subplots(n_lines, across, squeeze=False).flat)
    for axes in every[n_panels:]:
        axes.remove()
    _show_in_notebooks(every[0])
    return every[:n_panels]


def _show_in_notebooks(axes: Any) -> None:
    """Let a notebook draw the figure where a cell ends with it or with these axes; pyplot does so for its own alone."""
    axes._repr_png_ = axes.figure._repr_png_ = partial(_png, axes.figure)


def _png(figure: Figure) -> bytes:
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=_DPI)
    return buffer.getvalue()


def style(axes: Axes, *, framed: bool = True) -> None:
    """Few and thin lines."""
    for side, spine in axes.spines.items():
        spine.set_visible(framed and side in ("left", "bottom"))
        spine.set_color(LINE)
    axes.tick_params(labelsize=9, colors=QUIET, labelcolor=INK, length=3 if framed else 0)


def finish(axes: Axes, title: str, release: Any, *, pad: float = 6.0) -> None:
    """A title, and in red what voids the guarantee of the release."""
    void = bool(release.card.brands)
    text = f"{title}\nNOT PRIVATE: see the card" if void else title
    axes.set_title(text, fontsize=10, color=_ALARM if void else INK, loc="left", pad=pad, parse_math=False)


# ------------------------------------------------------------------------------------------------------------- pictures
# The public functions, one for each picture: a column, all columns, all pairs, one pair, a map, the graph.


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
    ((described, real),) = columns_of(source, [column], level, against)
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
        _draw_column(axes, described, real, source, n_lines=max(len(bar_labels(one)) for one, _ in beside))
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
    if show not in ("dependence", "uncertainty"):
        raise ParameterError(f"show={as_given(show)} is not 'dependence' or 'uncertainty'")
    drawn = drawn_tables(source).get(persons_table(source) or "") if source.kind != "forest" else None
    found = pairs_part(source, report_bars(source, level), drawn)
    if len(found["names"]) < 2:
        raise ParameterError("there are no two columns whose dependence could be drawn")
    side = 1.8 + 0.3 * len(found["names"])
    axes = panels(ax, side + 0.4, side)
    style(axes, framed=False)
    draw_pairs(axes, show, found["names"], found["pairs"])
    axes.set_aspect("equal")
    finish(axes, HEAT[show].caption, source, pad=18)
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
    write_ticks(axes, "x", [cut_label(label) for label in found.across], 9, **SLANTED)
    write_ticks(axes, "y", [cut_label(label) for label in found.up], 9)
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
    tallness = map_tallness(drawn)
    width, height = (5.5 / tallness, 5.5) if tallness > 1 else (5.5, 5.5 * tallness)
    axes = panels(ax, max(width, 2.0) + 0.9, max(height, 1.5) + 0.8)
    style(axes)
    draw_map(axes, drawn)
    axes.set_aspect("auto" if drawn["aspect"] is None else drawn["aspect"])
    finish(axes, f"expected rows; {many(drawn['released'], drawn['released_as'])} released", source)
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
    _, lines = draw_graph(axes, found, side=side)
    finish(axes, f"{len(found['columns']):,} columns, {len(lines):,} pairs measured together", source)
    return axes


def _draw_column(axes: Axes, described: Any, real: Sequence[float] | None, source: Any, n_lines: int = 1) -> None:
    style(axes)
    who = "persons" if source.card.unit.endswith("person") else "rows"
    draw_column(axes, described, who=who, real=real, n_lines=n_lines)
    title = printable(described["key"])
    finish(axes, title if real is None else f"{title}\n{_PRIVATE}", source)
