"""What a picture is of: a release or that of a fitted model, and the part of a report's contents that was asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.errors import NotFittedError, ParameterError
from spinney.metrics.beside import real_bars
from spinney.people.release.model import PeopleRelease
from spinney.release.answers.bars_page import shown_bar
from spinney.release.model import Release
from spinney.report.columns_part import columns_part, drawn_tables, placed, tables_of
from spinney.report.maps_part import maps_part
from spinney.shown import as_given
from spinney.suggest import did_you_mean

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


def column_of(release: Release, name: str, level: float, against: Any) -> Column:
    """One column as a report has it."""
    (found,) = columns_of(release, [name], level, against)
    return found


def columns_of(release: Release, names: Sequence[str] | None, level: float, against: Any) -> list[Column]:
    """Some columns as a report has them, by default all; a ParameterError where one is not known."""
    if isinstance(names, str):
        raise ParameterError(f"columns={names!r} is one name; give a list of names")
    known = _known(release)
    wanted = known if names is None else list(names)
    for name in wanted:
        if name not in known:
            raise ParameterError(f"column={as_given(name)} is not one of the release{did_you_mean(name, known)}")
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
    known = _known(release)
    for name in (x, y):
        if name not in known:
            raise ParameterError(f"column={as_given(name)} is not one of the release{did_you_mean(name, known)}")
    raise ParameterError(f"{x!r} and {y!r} are not two different columns of one table")


def map_of(release: Release, x: str | None, y: str | None) -> dict[str, Any]:
    """The map of two columns, by default the only one; a ParameterError where there is none, or more than one."""
    found = maps_part(release)
    listed = "; ".join(" and ".join(map(repr, one["columns"])) for one in found)
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
