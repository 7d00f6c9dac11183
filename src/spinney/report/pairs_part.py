"""Pairs of columns: which were measured together, how strongly they depend on each other, how well that is known.

    distance    total variation between the joint law and that of independent columns, from 0 to below 1; of a forest
                by its model, of others by synthetic rows that were drawn with a fixed seed
    share       the widest half of an interval among the cells of a table of at most three by three parts

All of it is public.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

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
_PARTS = 8
_MOST_CELLS = 1 << 20


def pairs_part(release: Release, bars: ErrorBars, drawn: pa.Table | None) -> dict[str, Any]:
    """The pairs of the columns that have error bars, or that rows can be drawn of, as plain data."""
    forest = _forest(release)
    known = [column.name for column in bars.columns if column.answers is not None]
    if not known and forest is None:
        known = [] if drawn is None else [name for name in release.schema.modelled if name in drawn.column_names]
    names = _chosen(release, bars, known)
    holder = release if forest is None else forest
    distances = _of_forest(forest, names) if forest is not None else _of_rows(drawn, names)
    described = {frozenset(pair.columns): pair for pair in bars.pairs}
    found = []
    for first, second in combinations(known, 2):
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
        "n_counted": sum(one["counted"] for one in found),
        "from_rows": forest is None,
        "level": bars.level,
    }


def _forest(release: Release) -> ForestRelease | None:
    if isinstance(release, PeopleRelease):
        return release.persons
    return release if isinstance(release, ForestRelease) else None


def _chosen(release: Release, bars: ErrorBars, known: Sequence[str]) -> list[str]:
    """The columns of a heat map: all, or those that were counted with most others."""
    if len(known) <= MOST_COLUMNS:
        return list(known)
    n_partners = dict.fromkeys(known, 0)
    for pair in bars.pairs:
        if pair.is_counted:
            for name in pair.columns:
                n_partners[name] += 1
    kept = set(sorted(known, key=lambda name: -n_partners[name])[:MOST_COLUMNS])
    target = release.card.parameters.get("target")
    if target in known:
        kept.add(target)
    return [name for name in known if name in kept][:MOST_COLUMNS]


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
    laws = forest.model.marginals(wanted.values())
    return {pair: strength(law).distance for pair, law in zip(wanted, laws, strict=True)}


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
    return ranked if not chunk.null_count else np.where(chunk.is_null().to_numpy(False), ranked.max() + 1, ranked)
