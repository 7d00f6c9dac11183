"""Masks: which states of a row's columns are impossible in its place among a person's rows. PUBLIC.

A relative column is null in the first row and in no other. Rules over positions say which values a first row has, and
which none has that another follows. Masks follow from what was stated and from the leaves of the columns, so those of a
file are worked out again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from spinney.forest.release.column_model import ColumnModel
from spinney.graph.field import Mask
from spinney.people.release.evidence import BETWEEN, FIRST, LAST, N_PLACES, ONLY
from spinney.people.release.relative import relative_columns
from spinney.release.contradictions import check
from spinney.schema.column_axis import column_axes
from spinney.schema.parting import Parting, partings
from spinney.schema.people import RowsShape
from spinney.schema.rules import Clause, First, clauses_of
from spinney.schema.table import Schema


def told_apart(rows: RowsShape, schema: Schema) -> list[Clause]:
    """The values that rules over positions are about, which share no state with others. `schema` is as learnt."""
    return [{rule.column: rule.says(schema[rule.column])} for rule in rows.position_rules]


def position_masks(rows: RowsShape, schema: Schema, models: Mapping[str, ColumnModel], *, place: int) -> list[Mask]:
    """The masks of one table of rows, of which `place` is the number of the evidence.

    Args:
        rows: the table.
        schema: its columns as they are learnt.
        models: the released columns, all of them, in order.
        place: the number of the evidence that is a row's place.
    """
    numbers = {name: number for number, name in enumerate(models)}
    found: list[Mask] = []
    for name in relative_columns(rows):
        is_null = _states(models[name], models[name].is_null, name)
        possible = np.empty((N_PLACES, len(is_null)), dtype=np.bool_)
        possible[[ONLY, FIRST]], possible[[BETWEEN, LAST]] = is_null, ~is_null
        found.append((place, numbers[name], possible))
    parted = _partings(rows, schema) if rows.position_rules else {}
    for rule in rows.position_rules:
        model, parting = models[rule.column], parted[rule.column]
        inside = parting.is_in[parting.sets.index(rule.says(schema[rule.column]))]
        is_meant = _states(model, inside[parting.labels_at(model.low)] & ~model.is_null, rule.column)
        possible = np.ones((N_PLACES, len(is_meant)), dtype=np.bool_)
        if isinstance(rule, First):
            possible[[ONLY, FIRST]] = is_meant
            possible[[BETWEEN, LAST]] = ~is_meant | (not rule.only)
        else:
            possible[[FIRST, BETWEEN]] = ~is_meant
        found.append((place, numbers[rule.column], possible))
    return found


def check_masks(
    masks: Sequence[Mask], rows: RowsShape, schema: Schema, models: Mapping[str, ColumnModel], *, place: int
) -> None:
    """Raise a ContradictionError where masks are not those that follow from the table and its leaves."""
    wanted = position_masks(rows, schema, models, place=place)
    is_same = [mask[:2] for mask in masks] == [mask[:2] for mask in wanted] and all(
        np.array_equal(possible, needed) for (_, _, possible), (_, _, needed) in zip(masks, wanted, strict=True)
    )
    check(is_same, "masks are not those that rules over positions and differences give")


def _partings(rows: RowsShape, schema: Schema) -> dict[str, Parting]:
    clauses = [*clauses_of(schema.rules, schema), *told_apart(rows, schema)]
    return partings(clauses, schema, column_axes(schema))


def _states(model: ColumnModel, leaves: NDArray[np.bool_], name: str) -> NDArray[np.bool_]:
    """The states whose leaves are marked: all leaves of a state are, or none."""
    held = np.bincount(model.states, minlength=model.n_states)
    marked = np.bincount(model.states, weights=leaves, minlength=model.n_states)
    check(bool(((marked == 0) | (marked == held)).all()), f"a state of {name!r} joins values that are told apart")
    return np.asarray((marked == held) & (held > 0))
