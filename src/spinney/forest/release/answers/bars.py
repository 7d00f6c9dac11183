"""Where counting cut the columns of a forest: leaves of one column, states in tables of several.

Which leaves were counted was decided by the column's tree, and states by its own counts, both before the noise of the
counts that a bar is made of was drawn. Bars hold about as many leaves each, so they are short where rows are many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.columns import Bounded, Listed
from spinney.forest.release.answers.parts import parts_of

if TYPE_CHECKING:
    from spinney.forest.release.answers.answering import Answering
    from spinney.forest.release.model import ForestRelease


def bar_starts(release: ForestRelease, name: str, most: int, *, together: bool) -> list[Any] | None:
    """Where at most so many ranges of a column begin, as physical numbers; None of computed columns."""
    column = release.schema[name]
    place = next((place for place in release.places.values() if name in place.names), None)
    if place is not None and isinstance(column, Bounded):
        index = place.names.index(name)
        held = ~place.is_null[:, index]
        ends = column.leaf_ends(place.low[held, index], place.length[held, index])
        return _spread(sorted({column.physical(start) for start, _ in ends})[1:], most)
    if name not in release.columns or not isinstance(column, Bounded) or column != release.schema.as_drawn[name]:
        return None
    model, number = release.columns[name], release.variables.index(name)
    measured = None if release.measured is None else release.measured.columns[number]
    group = model.states.astype(np.int64)
    if not together:
        group = np.arange(len(group)) if measured is None else measured.leaf.astype(np.int64)
    values = np.flatnonzero(~model.is_null)
    group, has_length = group[values], model.length[values] > 0
    # A cut is where no group goes on beyond it, and not beside a pile, which stands for a cell around its number.
    last_seen = np.maximum.accumulate(_last_of(group))
    is_apart = last_seen[:-1] <= np.arange(len(group) - 1)
    cuts = 1 + np.flatnonzero(is_apart & has_length[:-1] & has_length[1:])
    starts = column.leaf_ends(model.low[values[cuts]], model.length[values[cuts]])
    return _spread([column.physical(start) for start, _ in starts], most)


def value_groups(release: ForestRelease, name: str) -> list[list[Any]] | None:
    """The values of a list that share a state, states in the order of their first values."""
    column = release.schema[name]
    if name not in release.columns or not isinstance(column, Listed):
        return None
    single = release.columns[name].by_value()
    groups: dict[int, list[Any]] = {}
    for at, state, is_null in zip(single.low, single.states, single.is_null, strict=True):
        if not is_null:
            groups.setdefault(int(state), []).append(column.listed[int(at)])
    return list(groups.values())


def counts_whole(release: ForestRelease, answering: Answering, by: Mapping[str, Sequence[Any]]) -> bool:
    """Whether every cell of a table of several columns is made of whole boxes of the table that counted them."""
    for cell in product(*by.values()):
        parts = parts_of(release, dict(zip(by, cell, strict=True)))
        counted = answering.counted(tuple(sorted(parts)))
        if counted is None or counted.is_cut(parts):
            return False
    return True


def _spread(starts: list[Any], most: int) -> list[Any]:
    """Fewer than so many of the starts, in their order, about as many left out between any two."""
    if len(starts) < most:
        return starts
    return [starts[round(len(starts) * place / most)] for place in range(1, most)]


def _last_of(group: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Of every entry, the last place at which its group occurs."""
    last = {int(label): at for at, label in enumerate(group)}
    return np.array([last[int(label)] for label in group], dtype=np.int64)
