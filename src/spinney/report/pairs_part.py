"""Pairs of columns: which were measured together, how strongly they depend on each other, how well that is known.

    distance    total variation between the joint law and that of independent columns, from 0 to below 1; of a forest
                by its model, of others by synthetic rows that were drawn with a fixed seed
    share       the widest half of an interval among the cells of a table of at most three by three parts

All of it is public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney.forest.release.answers.laws import Laws
from spinney.forest.release.model import ForestRelease
from spinney.forest.release.strength import strength
from spinney.people.release.model import PeopleRelease
from spinney.release.answers.bars import ErrorBars
from spinney.release.model import Release

if TYPE_CHECKING:
    import pyarrow as pa

# Columns of a heat map, pairs that are listed, and parts of a column whose dependence is worked out from rows.
MOST_COLUMNS = 30
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
        known = [] if drawn is None else [name for name in release.schema.modelled if name in drawn.column_names]
    names = _joined_most(release, known, MOST_COLUMNS)
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
        else _n_counted(forest),
        "from_rows": forest is None,
        "level": bars.level,
    }


def _n_counted(forest: ForestRelease) -> int:
    """Pairs of columns or places that were counted together, also those that are not listed."""
    return len({frozenset(pair) for names in forest.looked_at for pair in combinations(names, 2)})


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
