"""Rows of synthetic persons: states drawn from a field, person by person, position by position. PUBLIC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.forest.release.rules import Zeros
from spinney.graph.field import Field
from spinney.people.release.evidence import Layout, person_of_rows, places, row_evidence
from spinney.people.release.obeying import draw_obeying

States = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class SampledRows:
    """States of rows in the order of persons, their evidence, and their weights: a person's add up to one."""

    own: States  # (n_columns, n_rows)
    evidence: States  # (n_evidence, n_rows)
    weights: NDArray[np.float64]  # (n_rows,)

    @property
    def n_persons(self) -> int:
        """How many persons the rows are of."""
        return round(float(self.weights.sum()))


def draw_rows(
    field: Field,
    layout: Layout,
    persons: NDArray[Any],
    starts: NDArray[np.int64],
    rng: np.random.Generator,
    *,
    sorted_by: int | None = None,
    zeros: Zeros | None = None,
) -> States:
    """States of all rows (n_columns, n_rows) of persons with these states (n_variables, n_persons).

    `zeros` say which states of a row's own columns can meet.
    `sorted_by` is a column whose states ascend within every person. Where a row depends on its place, or on the one
    before, rows are drawn twice: once for the column that they are sorted by, and again given it.
    """
    used = {evidence for evidence, _ in field.links}
    follows = any(layout.every[number].kind in ("before", "anchor") for number in used)
    draw = _draw_in_turn if follows else _draw_at_once
    own = draw(field, layout, persons, starts, rng, {}, zeros or [])
    if sorted_by is None:
        return own
    person = person_of_rows(starts)
    order = np.lexsort([own[sorted_by], person])
    if not follows and layout.place not in used and not field.masks:
        return np.asarray(own[:, order])
    return draw(field, layout, persons, starts, rng, {sorted_by: own[sorted_by][order]}, zeros or [])


def all_evidence(layout: Layout, persons: NDArray[Any], own: NDArray[Any], starts: NDArray[np.int64]) -> States:
    """All evidence (n_evidence, n_rows) of rows that are all there."""
    person = person_of_rows(starts)
    found = np.empty((len(layout.every), int(starts[-1])), dtype=np.int32)
    for number, evidence in enumerate(layout.every):
        found[number] = row_evidence(evidence, persons, own, person, starts)
    return found


def _draw_at_once(
    field: Field,
    layout: Layout,
    persons: NDArray[Any],
    starts: NDArray[np.int64],
    rng: np.random.Generator,
    clamp: Mapping[int, States],
    zeros: Zeros,
) -> States:
    """Where no row depends on another."""
    person = person_of_rows(starts)
    evidence = np.zeros((len(layout.every), len(person)), dtype=np.int32)
    evidence[: len(persons)] = persons[:, person]
    evidence[layout.place] = places(starts)
    return draw_obeying(field, evidence, rng, clamp, zeros)


def _draw_in_turn(
    field: Field,
    layout: Layout,
    persons: NDArray[Any],
    starts: NDArray[np.int64],
    rng: np.random.Generator,
    clamp: Mapping[int, States],
    zeros: Zeros,
) -> States:
    """First rows of all persons, then second ones, and so on, each given the row before and the first."""
    n_rows = np.diff(starts)
    own = np.zeros((len(layout.own_sizes), int(starts[-1])), dtype=np.int32)
    row_places = places(starts)
    order = np.argsort(-n_rows, kind="stable")  # so that persons with a row at each position come first
    n_with = np.searchsorted(-n_rows[order], -np.arange(int(n_rows.max(initial=0))), side="left")
    for position, n_here in enumerate(n_with):
        here = order[:n_here]
        at = starts[here] + position
        evidence = np.zeros((len(layout.every), n_here), dtype=np.int32)
        evidence[: len(persons)] = persons[:, here]
        evidence[layout.place] = row_places[at]
        for number, one in enumerate(layout.every):
            if one.kind == "before":
                evidence[number] = own[one.number, at - 1] if position else one.size - 1
            elif one.kind == "anchor":
                evidence[number] = own[one.number, starts[here]] if position else one.size - 1
        given = {column: states[at] for column, states in clamp.items()}
        own[:, at] = draw_obeying(field, evidence, rng, given, zeros)
    return own
