"""Several releases side by side: how far their columns and pairs are from each other, by synthetic rows.

    total variation    the share of rows that would have to move for two tables of counts to be alike

Rows are drawn with fixed seeds, and are cut into parts that hold about as many of the first release's rows each. Two
draws of one release differ too: that distance is told as well, and what is not above it says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Column
from spinney.people.release.model import PeopleRelease
from spinney.release.model import Release
from spinney.studio.releases.loaded import loaded
from spinney.studio.releases.paired import heat_rows

_DRAWN, _DRAWN_PERSONS = 20_000, 4_000
_PARTS = 6
_MOST_COLUMNS = 24

Opened = tuple[str, str]  # a path and a digest


def shared_columns(opened: tuple[Opened, ...]) -> list[str]:
    """The columns that all releases have, by name and type, in the order of the first."""
    schemas = [_schema(loaded(*one)) for one in opened]
    return [name for name, kind in schemas[0].items() if all(schema.get(name) == kind for schema in schemas[1:])]


@lru_cache(maxsize=16)
def distances(first: Opened, other: Opened) -> dict[str, Any]:
    """How far the shared columns, and pairs of them, of one release are from those of another."""
    names = shared_columns((first, other))[:_MOST_COLUMNS]
    rows, again, theirs = _rows(loaded(*first), 0), _rows(loaded(*first), 1), _rows(loaded(*other), 2)
    cuts = {name: _Cut(rows[name]) for name in names}
    parts = [{name: cuts[name].parts(table[name]) for name in names} for table in (rows, again, theirs)]
    columns = [{"name": name, **_both((name,), parts, cuts)} for name in names]
    pairs: dict[tuple[str, ...], dict[str, Any]] = {
        pair: {"columns": list(pair), **_both(pair, parts, cuts)} for pair in combinations(names, 2)
    }
    listed = sorted(pairs.values(), key=lambda one: -one["distance"])
    return {
        "names": names,
        "columns": columns,
        "pairs": listed,
        "heat": heat_rows(names, pairs, "distance"),
        "drawn": len(next(iter(theirs.values()))) if theirs else 0,
    }


def _both(names: tuple[str, ...], parts: list[dict[str, NDArray[np.int64]]], cuts: dict[str, _Cut]) -> dict[str, float]:
    tables = [_counts([one[name] for name in names], [cuts[name].n_parts for name in names]) for one in parts]
    return {"distance": _apart(tables[0], tables[2]), "by_chance": _apart(tables[0], tables[1])}


def _apart(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    return float(abs(one - other).sum() / 2)


def _counts(places: list[NDArray[np.int64]], sizes: list[int]) -> NDArray[np.float64]:
    """Shares of rows by their parts (cells,)."""
    codes = np.ravel_multi_index(tuple(places), tuple(sizes))
    return np.asarray(np.bincount(codes, minlength=int(np.prod(sizes))) / max(len(codes), 1))


class _Cut:
    """How a column is cut: null, then values in order, or ranges that hold about as many rows each."""

    def __init__(self, values: NDArray[Any]) -> None:
        self._is_text = values.dtype.kind in "OU"
        if self._is_text:
            self._known = sorted({str(value) for value in values.tolist() if value is not None})
            self.n_parts = len(self._known) + 2  # null, and values that the first rows do not have
            return
        held = values[~np.isnan(values)]
        edges = np.quantile(held, np.linspace(0, 1, _PARTS + 1)[1:-1]) if len(held) else np.empty(0)
        self._edges = np.unique(edges)
        self.n_parts = len(self._edges) + 2

    def parts(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """The part that each value lies in (n_rows,)."""
        if self._is_text:
            places = {value: place for place, value in enumerate(self._known, 2)}
            return np.array([0 if value is None else places.get(str(value), 1) for value in values.tolist()])
        found = np.searchsorted(self._edges, values, side="right") + 1
        return np.where(np.isnan(values), 0, found).astype(np.int64)


def _schema(release: Release) -> dict[str, str]:
    columns: Mapping[str, Column] = release.schema
    if isinstance(release, PeopleRelease):
        columns = release.shape.persons or {}
    return {name: column.type_name for name, column in columns.items() if column.is_read}


def _rows(release: Release, seed: int) -> dict[str, NDArray[Any]]:
    """Synthetic rows by column: numbers as floats, with NaN for null, all else as objects."""
    import pyarrow as pa

    if isinstance(release, PeopleRelease):
        drawn = release.sample(_DRAWN_PERSONS, seed=seed, frame="pyarrow")
        table = drawn[release.shape.persons_name] if isinstance(drawn, dict) else drawn
    else:
        table = release.sample(_DRAWN, seed=seed, frame="pyarrow")
    found: dict[str, NDArray[Any]] = {}
    for name in table.column_names:
        column = table.column(name)
        if pa.types.is_temporal(column.type):
            column = column.cast(pa.int64() if column.type.bit_width == 64 else pa.int32())
        is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        if is_number:
            found[name] = np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
        else:
            found[name] = np.array(column.to_pylist(), dtype=object)
    return found
