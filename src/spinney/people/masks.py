"""Masks: which states of a row's columns are impossible in its place among a person's rows. Public.

A relative column is null in the first row and in no other. Rules over positions say which values a first row has, and
which none has that another follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from spinney.counting.states import Cut
from spinney.forest.release.column_model import ColumnModel
from spinney.graph.field import Mask
from spinney.people.release.evidence import BETWEEN, FIRST, LAST, N_PLACES, ONLY
from spinney.people.release.relative import relative_columns
from spinney.schema.parting import Parting
from spinney.schema.people import RowsShape
from spinney.schema.rules import First
from spinney.schema.table import Schema


def position_masks(
    rows: RowsShape,
    schema: Schema,
    models: Sequence[ColumnModel],
    cuts: Sequence[Cut],
    partings: Mapping[int, Parting],
    *,
    place: int,
) -> list[Mask]:
    """The masks of one table of rows, of which `place` is the number of the evidence."""
    names = list(schema.modelled)
    found: list[Mask] = []
    for name in relative_columns(rows):
        column = names.index(name)
        is_null = _states(models[column].states, models[column].is_null, models[column].n_states)
        possible = np.empty((N_PLACES, len(is_null)), dtype=np.bool_)
        possible[[ONLY, FIRST]], possible[[BETWEEN, LAST]] = is_null, ~is_null
        found.append((place, column, possible))
    for rule in rows.position_rules:
        column = names.index(rule.column)
        parting, cut = partings[column], cuts[column]
        inside = parting.is_in[parting.sets.index(rule.says(schema[rule.column]))]
        is_meant = _states(cut.states, inside[parting.labels_of(cut.first)], cut.n_states)
        is_meant &= ~_states(models[column].states, models[column].is_null, cut.n_states)
        possible = np.ones((N_PLACES, len(is_meant)), dtype=np.bool_)
        if isinstance(rule, First):
            possible[[ONLY, FIRST]] = is_meant
            possible[[BETWEEN, LAST]] = ~is_meant | (not rule.only)
        else:
            possible[[FIRST, BETWEEN]] = ~is_meant
        found.append((place, column, possible))
    return found


def _states(states: NDArray[np.integer], leaves: NDArray[np.bool_], n_states: int) -> NDArray[np.bool_]:
    """The states all of whose leaves are marked."""
    held = np.bincount(states, minlength=n_states)
    return np.asarray((np.bincount(states, weights=leaves, minlength=n_states) == held) & (held > 0))
