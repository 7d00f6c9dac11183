"""Distributions, maps and pairs of a release, as plain data for reports. All of it is PUBLIC.

Where a release has error bars they are used; what it cannot state is taken from synthetic rows that are drawn
with a fixed seed, so that a release has one report, and is marked "not supported". The page and its JSON twin
hold the same numbers.

    columns part   bars of every column, with error bars or from synthetic rows
    one column     the bars of a single column, and the rows in each
    maps part      two columns on the ground as a grid of expected rows
    pairs part     how strongly columns depend on each other, and how well that is known
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from itertools import combinations, permutations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Bounded, Column, Listed, whole_range
from spinney.errors import SpinneyError
from spinney.forest.release.explain import strength
from spinney.forest.release.misfit import Laws
from spinney.forest.release.model import ForestRelease
from spinney.forest.release.places import PlaceModel
from spinney.people.release.model import PeopleRelease
from spinney.release.answers.answer import Answer
from spinney.release.answers.bars import ColumnBars, ErrorBars, ranges_from, shown_bar
from spinney.release.release import Release
from spinney.schema.places import is_latitude, is_longitude
from spinney.schema.schema import Schema
from spinney.tree.release.bins import BinnedRelease
from spinney.tree.release.geometry import Boxes, bin_boxes, value_boxes
from spinney.tree.release.moments import MomentsRelease

if TYPE_CHECKING:
    import pyarrow as pa


# --------------------------------------------------------------------------------------------------------- columns part
# Every column's released distribution: bars with error bars, or what synthetic rows say where there are none.
#
# Error bars come from `release.error_bars()`. Bins below a threshold, points, long lists and the rows of persons have
# none: their distribution is taken from synthetic rows, drawn with a fixed seed so that a release has one report, and
# is marked "not supported". All of it is public.


# Columns that are listed, bars of each, and rows that stand for a column without error bars.
MOST_COLUMNS_SHOWN = 400
MOST_BARS = 40
_DRAWN_ROWS = 50_000
_DRAWN_PERSONS = 4_000
_DRAWN_BARS = 12
_ALL_VALUES = 40  # of a list that is shown in its own order


@dataclass(frozen=True, slots=True)
class Shown:
    """The distributions as plain data, and by column what each bar stands for, with which real rows can be counted."""

    columns: list[dict[str, Any]]
    cuts: Mapping[str, list[Any]]
    n_left_out: int


def columns_part(release: Release, bars: ErrorBars, drawn: Mapping[str, pa.Table]) -> Shown:
    """The distributions of all columns, table by table of a release of persons."""
    found: list[dict[str, Any]] = []
    cuts: dict[str, list[Any]] = {}
    with_bars = {column.name: column for column in bars.columns}
    total = float(bars.n_rows)
    for table, schema in tables_of(release).items():
        for name, column in schema.items():
            if not column.is_read:
                continue
            key = f"{table}.{name}" if table else name
            own = with_bars.get(name) if table in ("", persons_table(release)) and not _is_row(release, table) else None
            if own is not None and own.answers is not None:
                described, labels = described_bars(own, total)
            else:
                why = bars.refusal if own is None else own.refusal
                if _is_row(release, table):
                    why = "a release of persons has no error bars of their rows"
                described, labels = from_rows(drawn.get(table), name, column, why, _scale(release, total))
            cuts[key] = labels
            found.append({"key": key, "table": table or None, "name": name, "type": column.type_name} | described)
    if isinstance(release, PeopleRelease):
        for name, own in with_bars.items():
            if name not in {one["name"] for one in found if own.answers is not None and one["has_intervals"]}:
                described, _ = described_bars(own, total) if own.answers is not None else ({}, [])
                if described:
                    found.append({"key": name, "table": None, "name": name, "type": "rows of a person"} | described)
    return Shown(found[:MOST_COLUMNS_SHOWN], cuts, max(0, len(found) - MOST_COLUMNS_SHOWN))


def tables_of(release: Release) -> dict[str, Schema]:
    """The schemas of a release by table; of one table the name is empty."""
    return dict(release.shape.tables) if isinstance(release, PeopleRelease) else {"": release.schema}


def persons_table(release: Release) -> str | None:
    """The name of the table of persons, where there is one."""
    return release.shape.persons_name if isinstance(release, PeopleRelease) else None


def drawn_for(release: Release, bars: ErrorBars) -> dict[str, pa.Table]:
    """Synthetic rows by table where something has to be told by them; a forest with bars of all needs none."""
    is_told = release.kind == "forest" and bars.columns and all(one.answers is not None for one in bars.columns)
    return {} if is_told else drawn_tables(release)


def _is_row(release: Release, table: str) -> bool:
    return isinstance(release, PeopleRelease) and table != release.shape.persons_name


def drawn_tables(release: Release) -> dict[str, pa.Table]:
    """Synthetic rows by table, for what has no error bars; none where nothing can be drawn."""
    with suppress(SpinneyError):
        if isinstance(release, PeopleRelease):
            n_persons = release.card.n_rows if release.card.n_rows is not None else _DRAWN_PERSONS
            rows = release.sample(min(n_persons, _DRAWN_PERSONS), seed=0, frame="pyarrow")
            return dict(rows) if isinstance(rows, dict) else {"": rows}
        return {"": release.sample(_DRAWN_ROWS, seed=0, frame="pyarrow")}
    return {}


def _scale(release: Release, total: float) -> float | None:
    """The number of rows that shares of synthetic rows are told in; None where it is private or of another thing."""
    if isinstance(release, PeopleRelease):
        return None
    if release.card.n_rows is not None:
        return float(release.card.n_rows)
    return total or None


# ----------------------------------------------------------------------------------------------------------- one column
# The bars of one column, from its error bars or from synthetic rows, and which bar each row belongs to.


def described_bars(column: ColumnBars, total: float) -> tuple[dict[str, Any], list[Any]]:
    """A column that has error bars, as plain data, and what each bar stands for; shares are those of a total."""
    assert column.answers is not None
    every = [(label, answer) for (label,), answer in zip(column.answers.labels, column.answers, strict=True)]
    is_list = not any(isinstance(label, tuple) for label, _ in every)
    if len(every) > _ALL_VALUES and is_list:
        every.sort(key=lambda bar: -bar[1].estimate)
    shown = every[:MOST_BARS]
    bars = [
        _bar(label, answer.estimate, float(answer.estimate) / total if total else None, answer)
        for label, answer in shown
    ]
    return {
        "statement": column.statement,
        "has_intervals": any(bar["low"] is not None for bar in bars),
        "simultaneous": bool(column.answers.simultaneous) and len(every) > 1,
        "bars": bars,
        "bars_left_out": len(every) - len(shown),
        "scale": "rows",
        "why": "; ".join(dict.fromkeys(answer.why for _, answer in every if answer.statement == "not supported")),
    }, [label for label, _ in shown]


def from_rows(
    table: pa.Table | None, name: str, column: Column, why: str, scale: float | None
) -> tuple[dict[str, Any], list[Any]]:
    """What synthetic rows say of a column, without intervals."""
    labels: list[Any] = []
    shares: list[float] = []
    left_out = 0
    if table is not None and name in table.column_names and table.num_rows:
        labels, place, left_out = placed(table.column(name).combine_chunks(), column)
        counts = np.bincount(place[place >= 0], minlength=len(labels))
        shares = [float(count) / table.num_rows for count in counts]
    return {
        "statement": "not supported",
        "has_intervals": False,
        "simultaneous": False,
        "bars": [_bar(label, share * (scale or 1.0), share) for label, share in zip(labels, shares, strict=True)],
        "bars_left_out": left_out,
        "scale": "rows" if scale else "share",
        "why": why,
    }, labels


def _bar(label: Any, estimate: float, share: float | None, answer: Answer | None = None) -> dict[str, Any]:
    """What a bar stands for, and its figures, in data that JSON holds; without an answer it has no interval."""
    value = {"from": plain(label[0]), "to": plain(label[1])} if isinstance(label, tuple) else {"value": plain(label)}
    return {
        "label": shown_bar(label),
        **value,
        "estimate": float(estimate),
        "low": None if answer is None else answer.low,
        "high": None if answer is None else answer.high,
        "share": share,
        "statement": "not supported" if answer is None else answer.statement,
    }


def placed(values: Any, column: Column) -> tuple[list[Any], NDArray[np.int64], int]:
    """Values or ranges of a column, which of them each row has, -1 for none, and how many values have no place."""
    import pyarrow.compute as pc

    if isinstance(column, Listed) or not isinstance(column, Bounded) or not column.has_bounds:
        counted = {item["values"]: item["counts"] for item in pc.value_counts(values).to_pylist()}
        order = sorted(counted, key=lambda value: -counted[value])
        if isinstance(column, Listed) and len(column.listed) <= _DRAWN_BARS:
            order = [*column.listed, *([None] if column.nullable else [])]
        shown = order[:_DRAWN_BARS]
        places = {value: place for place, value in enumerate(shown)}
        found = np.array([places.get(value, -1) for value in values.to_pylist()], dtype=np.int64)
        return shown, found, len(order) - len(shown)
    is_null = np.asarray(values.is_null().to_numpy(zero_copy_only=False))
    physical = np.array([float(column.physical(value)) for value in values.drop_null().to_pylist()])
    # Even ranges over where nearly all rows are: bounds may be generous.
    first, last = np.quantile(physical, [0.005, 0.995]) if len(physical) else column._first_and_last()
    starts = [first + (last - first) * place / _DRAWN_BARS for place in range(1, _DRAWN_BARS)]
    labels = list(ranges_from(column, starts))
    edges = [float(column.physical(label[0] if isinstance(label, tuple) else label)) for label in labels]
    found = np.full(len(values), len(labels) if column.nullable else -1, dtype=np.int64)
    found[~is_null] = np.clip(np.searchsorted(edges, physical, side="right") - 1, 0, len(labels) - 1)
    return [*labels, *([None] if column.nullable else [])], found, 0


def plain(value: Any) -> Any:
    """A value as JSON holds it."""
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return [plain(item) for item in value] if isinstance(value, Sequence) else str(value)


# ------------------------------------------------------------------------------------------------------------ maps part
# Maps: two columns that lie on the ground or on a sheet of paper, as a grid of expected rows.
#
# A place of a forest, longitude and latitude of a tree, or the two columns of a release of two. What was released are
# boxes; here they are spread over a grid of a fixed size, so that a report stays small however many boxes there are,
# and the picture and the JSON hold the same numbers. All of it is public.


# Cells along the longer side of a map, and maps of one release.
_CELLS = 220
_FEWEST = 24
_MOST_MAPS = 4
_DIGITS = 4  # of a density
# Units of the two columns of a place are drawn alike unless one of them reaches this many times as far.
_MOST_UNEVEN = 8.0
_POLE = 89.0
# What trees and grids release, and one of it.
_RELEASED = {"leaves": "leaf", "bins": "bin", "points": "point"}

Floats = NDArray[np.float64]


def maps_part(release: Release) -> list[dict[str, Any]]:
    """The maps of a release as plain data; none where no two columns are a map."""
    source: Release = release.persons if isinstance(release, PeopleRelease) else release
    found = []
    for x, y in mapped_columns(source)[:_MOST_MAPS]:
        drawn = _grid(source, x, y)
        if drawn is not None:
            found.append(drawn)
    return found


def mapped_columns(release: Release) -> list[tuple[str, str]]:
    """Pairs of columns that are drawn as maps, the one across first."""
    if isinstance(release, PeopleRelease):
        return mapped_columns(release.persons)
    if isinstance(release, ForestRelease):
        return [_across(place.names[0], place.names[1]) for place in release.places.values() if len(place.names) > 1]
    names = [name for name, column in release.schema._modelled.items() if column._axis_kind != "category"]
    on_earth = [(x, y) for x, y in permutations(names, 2) if is_longitude(x) and is_latitude(y)]
    if on_earth:
        return on_earth[:1]
    return [(names[0], names[1])] if len(names) == 2 == len(release.schema._modelled) else []


def _across(first: str, second: str) -> tuple[str, str]:
    return (second, first) if is_latitude(first) and is_longitude(second) else (first, second)


def _grid(release: Release, x: str, y: str) -> dict[str, Any] | None:
    columns = release.schema._modelled if x in release.schema._modelled else release.schema
    limits = [tuple(map(float, columns[name]._drawn_range())) for name in (x, y)]
    if any(high <= low for low, high in limits):
        return None
    boxes = _boxes(release, x, y)
    if boxes is None:
        return None
    corners, rows = boxes
    aspect = map_aspect(release, x, y)
    tallness = (aspect or 1.0) * (limits[1][1] - limits[1][0]) / (limits[0][1] - limits[0][0]) if aspect else 1.0
    shape = (
        (_CELLS, max(_FEWEST, round(_CELLS * tallness)))
        if tallness <= 1
        else (max(_FEWEST, round(_CELLS / tallness)), _CELLS)
    )
    grid = spread(corners, rows, limits, shape)
    if not grid.any():
        return None
    return {
        "columns": [x, y],
        "is_geographic": is_longitude(x) and is_latitude(y),
        "aspect": aspect,
        "x": list(limits[0]),
        "y": list(limits[1]),
        "boxes": len(rows),
        **_released(release, x, y),
        "rows": float(f"{grid.sum():.6g}"),
        # Lines from south to north, each a text of numbers from west to east: how many rows are expected in a cell.
        "cells": [" ".join(f"{cell:.{_DIGITS}g}" for cell in line) for line in grid],
    }


def _released(release: Release, x: str, y: str) -> dict[str, Any]:
    """What the boxes of a map come from: leaves or bins of the whole release, regions of a place."""
    if isinstance(release, ForestRelease):
        place = next(place for place in release.places.values() if {x, y} <= set(place.names))
        return {"released": len(place.weights), "released_as": "region"}
    what, one = next(
        ((what, one) for what, one in _RELEASED.items() if what in release.card.released), ("points", "point")
    )
    return {"released": release.card.released.get(what), "released_as": one}


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


def released_boxes(release: Release, x: str, y: str) -> tuple[Boxes, NDArray[Any], Sequence[str], PlaceModel | None]:
    """Boxes, noisy counts (of leaf moments and of places, as fitted to the total), their columns, and the place."""
    names: Sequence[str] = list(release.schema._modelled)
    if isinstance(release, ForestRelease):
        place = next(place for place in release.places.values() if {x, y} <= set(place.names))
        return Boxes(place.low, place.length, place.is_null.astype(np.float64)), place.weights, place.names, place
    if isinstance(release, MomentsRelease):
        density = release.density
        return value_boxes(density.boxes, release.moments.lattice, density.piles), density.weights, names, None
    assert isinstance(release, BinnedRelease)
    return value_boxes(bin_boxes(release.bins), release.bins.lattice), release.bins.noisy_counts, names, None


def in_units(
    low: NDArray[np.float64], length: NDArray[np.float64], column: Column
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Positions as they are drawn: values of numbers, days since 1970 of dates and times, places in a list."""
    first = whole_range(column)[0] if column.is_whole else 0
    return (low + first) * column._drawn_scale, length * column._drawn_scale


def _boxes(release: Release, x: str, y: str) -> tuple[Floats, Floats] | None:
    """Corners (n, 4) and expected rows (n,) of what was released; points have no extent."""
    if isinstance(release, (BinnedRelease, MomentsRelease, ForestRelease)):
        corners, rows, is_shown = released_rectangles(release, x, y)
        return corners[is_shown], rows[is_shown]
    try:
        points, weights = release.weighted_points(frame="pyarrow")
    except SpinneyError:
        return None
    across, up = (np.asarray(points.column(name).to_numpy(zero_copy_only=False), dtype=np.float64) for name in (x, y))
    is_shown = np.isfinite(across) & np.isfinite(up) & (weights > 0)
    corners = np.stack([across, up, across, up], axis=1)
    return corners[is_shown], np.asarray(weights, dtype=np.float64)[is_shown]


def released_rectangles(release: Release, x: str, y: str) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Corners (n, 4) of what was released (left, bottom, right, top); rows in each, and which of them hold any.

    A box of missing values alone lies nowhere along its column.
    """
    boxes, counts, names, _ = released_boxes(release, x, y)
    rows = np.asarray(counts, dtype=np.float64)
    low, high, is_shown = [], [], rows > 0
    for name in (x, y):
        index = list(names).index(name)
        start, length = in_units(boxes.low[:, index], boxes.length[:, index], release.schema._modelled[name])
        low.append(start)
        high.append(start + length)
        is_shown &= boxes.null_share[:, index] < 1
    return np.stack([*low, *high], axis=1), rows, is_shown


def spread(corners: Floats, rows: Floats, limits: Sequence[tuple[float, ...]], shape: tuple[int, int]) -> Floats:
    """Rows of boxes over the cells of a grid (y, x): a box lies on whole cells, at least one."""
    place = np.empty(corners.shape, dtype=np.int64)
    for side in range(4):
        (low, high), n_cells = limits[side % 2], shape[side % 2]
        place[:, side] = np.rint(np.clip((corners[:, side] - low) / (high - low), 0, 1) * n_cells)
    left, bottom = np.minimum(place[:, 0], shape[0] - 1), np.minimum(place[:, 1], shape[1] - 1)
    right, top = np.maximum(place[:, 2], left + 1), np.maximum(place[:, 3], bottom + 1)
    # A box is a step up at two corners and a step down at the others; sums along both axes fill it.
    density = rows / ((right - left) * (top - bottom))
    steps = np.zeros((shape[1] + 1, shape[0] + 1))
    for across, up, sign in ((left, bottom, 1), (right, bottom, -1), (left, top, -1), (right, top, 1)):
        np.add.at(steps, (up, across), sign * density)
    grid = steps.cumsum(axis=0).cumsum(axis=1)[:-1, :-1]
    floor = 1e-9 * float(grid.max(initial=0.0))
    return np.where(grid > floor, grid, 0.0)


# ----------------------------------------------------------------------------------------------------------- pairs part
# Pairs of columns: which were measured together, how strongly they depend on each other, how well that is
# known.
#
#     distance    total variation between the joint law and that of independent columns, from 0 to below 1; of a
#                 forest by its model, of others by synthetic rows that were drawn with a fixed seed
#     share       the widest half of an interval among the cells of a table of at most three by three parts


# Columns of a heat map, pairs that are listed, and parts of a column whose dependence is worked out from rows.
MOST_COLUMNS_PAIRED = 30
MOST_LISTED = 500
# Of more columns than this, pairs of so many are looked at: those that were counted with most others.
MANY_COLUMNS = 60
_LOOKED_AT = 15
_PARTS = 8
_MOST_CELLS = 1 << 20


def report_bars(release: Release, level: float) -> ErrorBars:
    """The error bars of a report: of all columns, and of pairs; of very many columns, of pairs of a few of them."""
    n_columns = len(release.askable) if isinstance(release, PeopleRelease) else len(release.schema)
    if n_columns <= MANY_COLUMNS:
        return release.error_bars(level=level)
    of_columns = release.error_bars(level=level, pairs=False)
    known = [column.name for column in of_columns.columns if column.answers is not None]
    chosen = _joined_most(release, known, _LOOKED_AT)
    if isinstance(release, PeopleRelease):
        named = {of_forest: name for name, of_forest in release.askable.items()}
        chosen = [named[name] for name in chosen]
    if len(chosen) < 2:
        return of_columns
    return replace(of_columns, pairs=release.error_bars(chosen, level=level).pairs)


def pairs_part(release: Release, bars: ErrorBars, drawn: pa.Table | None) -> dict[str, Any]:
    """The pairs of the columns that have error bars, or that rows can be drawn of, as plain data."""
    forest = _forest(release)
    known = [column.name for column in bars.columns if column.answers is not None]
    if not known and forest is None:
        known = [] if drawn is None else [name for name in release.schema._modelled if name in drawn.column_names]
    names = _joined_most(release, known, MOST_COLUMNS_PAIRED)
    holder = release if forest is None else forest
    distances = _of_forest(forest, names) if forest is not None else _of_rows(drawn, names)
    described = {frozenset(pair.columns): pair for pair in bars.pairs}
    found: list[dict[str, Any]] = []
    places = {name: place for place, name in enumerate(known)}
    pairs = [tuple(pair.columns) for pair in bars.pairs] + [tuple(pair) for pair in combinations(names, 2)]
    for first, second in {tuple(sorted(pair, key=places.__getitem__)): None for pair in pairs}:
        pair = described.get(frozenset((first, second)))
        distance = distances.get((first, second))
        if pair is None and distance is None:
            continue
        found.append(
            {
                "columns": [first, second],
                "counted": bool(holder._holds_pair((first, second))) if pair is None else pair.is_counted,
                "distance": distance,
                "half_width": None if pair is None else pair.half_width,
                "share": None if pair is None else pair.share,
                "statement": "not supported" if pair is None else pair.statement,
                "is_looked_at": pair is not None,
                "why": "" if pair is None else pair.why,
            }
        )
    found.sort(key=lambda one: (one["distance"] is None, -(one["distance"] or 0.0)))
    return {
        "names": names,
        "columns_left_out": len(known) - len(names),
        "pairs": found[:MOST_LISTED],
        "pairs_left_out": max(0, len(found) - MOST_LISTED),
        "n_counted": sum(one["counted"] for one in found)
        if forest is None or len(names) == len(known)
        else len({frozenset(pair) for columns in forest.looked_at for pair in combinations(columns, 2)}),
        "from_rows": forest is None,
        "level": bars.level,
    }


def _forest(release: Release) -> ForestRelease | None:
    if isinstance(release, PeopleRelease):
        return release.persons
    return release if isinstance(release, ForestRelease) else None


def _joined_most(release: Release, known: Sequence[str], most: int) -> list[str]:
    """At most so many columns: those that were counted with most others, the target among them."""
    if len(known) <= most:
        return list(known)
    forest = _forest(release)
    partners: dict[str, set[str]] = {name: set() for name in known}
    for names in () if forest is None else forest.looked_at:
        for name in names:
            if name in partners:
                partners[name] |= {*names}
    target = release.card.parameters.get("target")
    kept = set(sorted(known, key=lambda name: (name != target, -len(partners[name])))[:most])
    return [name for name in known if name in kept]


def _of_forest(forest: ForestRelease, names: Sequence[str]) -> dict[tuple[str, str], float]:
    """By the law of the states of two columns in the model."""
    owner = _variables(forest)
    places = {name: place for place, name in enumerate(forest.variables)}
    wanted = {
        (first, second): (places[owner[first]], places[owner[second]])
        for first, second in combinations(names, 2)
        if first in owner and second in owner and owner[first] != owner[second]
    }
    sizes = forest.model.tree.sizes
    wanted = {pair: at for pair, at in wanted.items() if sizes[at[0]] * sizes[at[1]] <= _MOST_CELLS}
    laws, rows = forest.model.marginals(wanted.values()), Laws(forest, n_redrawn=0)
    return {pair: strength(_tilted(rows, wanted[pair], law)).distance for pair, law in zip(wanted, laws, strict=True)}


def _tilted(rows: Laws, pair: tuple[int, int], law: NDArray[np.float64]) -> NDArray[np.float64]:
    """The law of two variables' states as rows are drawn: of those not counted together, with what the tilt adds."""
    if rows.sample is None or rows.are_together(*pair):
        return law
    (states, weights), (first, second) = rows.sample, pair
    cells = states[first].astype(np.int64) * law.shape[1] + states[second]
    added = np.bincount(cells, weights=(weights - 1.0) / len(weights), minlength=law.size).reshape(law.shape)
    found = np.maximum(law + added, 0.0)
    return np.asarray(found / found.sum())


def _variables(forest: ForestRelease) -> dict[str, str]:
    """The variable that holds each column: itself, or its place."""
    found = {name: name for name in forest.variables if name in forest.schema}
    for label, place in forest.places.items():
        found |= dict.fromkeys(place.names, label)
    return found


def _of_rows(drawn: pa.Table | None, names: Sequence[str]) -> dict[tuple[str, str], float]:
    """By synthetic rows, in parts that hold about as many of them each."""
    if drawn is None or not drawn.num_rows:
        return {}
    parts = {name: _parts_of(drawn.column(name)) for name in names}
    found = {}
    for first, second in combinations(names, 2):
        table = np.zeros((parts[first].max() + 1, parts[second].max() + 1))
        np.add.at(table, (parts[first], parts[second]), 1 / drawn.num_rows)
        found[first, second] = strength(table).distance
    return found


def _parts_of(values: Any) -> NDArray[np.int64]:
    """The part of its column that every row lies in; null is one of its own."""
    import pyarrow.compute as pc

    chunk = values.combine_chunks()
    ranked = pc.rank(chunk, tiebreaker="dense").to_numpy().astype(np.int64) - 1
    n_values = int(ranked.max()) + 1
    if n_values > _PARTS:
        order = np.sort(ranked)
        cuts = np.unique(order[np.linspace(0, len(order) - 1, _PARTS + 1)[1:-1].astype(np.int64)])
        ranked = np.searchsorted(cuts, ranked, side="right").astype(np.int64)
    if chunk.null_count:
        ranked = np.where(chunk.is_null().to_numpy(False), ranked.max() + 1, ranked)
    return np.asarray(ranked, dtype=np.int64)
