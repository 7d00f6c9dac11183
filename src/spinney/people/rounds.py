"""Rounds over rows: what rows depend on, found a table at a time where the field so far is furthest off.

First the tables that are always measured: columns by themselves, each with its hidden level, with a role every column
with it. Then in every round all pairs of columns that keep the field's own columns a forest, and all columns with all
evidence, are compared with what the field expects of synthetic persons; one is chosen by the exponential mechanism,
measured in boxes that are expected to hold enough, and the field is fitted anew (people.proof.md, choices and tables).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from spinney.forest.cliques import box_labels
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.graph.field import Field, FieldClique, Mask
from spinney.graph.field_fit import FieldMeasurement, fit_field
from spinney.people.release.evidence import Layout
from spinney.people.release.rows import MeasuredRows
from spinney.people.release.sample_rows import SampledRows
from spinney.people.row_tables import RowTables
from spinney.privacy.parts import UNITS
from spinney.progress import progress

Floats = NDArray[np.float64]

# Boxes are expected to hold this many standard deviations of the noise.
_BOX_DEVIATIONS = 0.5
# A table has to be off by this many standard deviations a box to be worth its noise.
_NOISE_PRICE = 0.8
# Whatever a field expects, scores stay whole numbers that int64 holds: no table is expected to have more units.
_MOST_EXPECTED = 1 << 60
# Steps of a fit between rounds, and of the last ones.
_STEPS, _LAST_STEPS = 25, 60
# Before the last fits, rows are drawn from the field anew: what a row depends on is what the field itself draws.
_LAST_FITS = 2


@dataclass(frozen=True, slots=True, eq=False)
class RowsStart:
    """What is known of a table of rows before any table of two is measured. RELEASED."""

    layout: Layout
    role: int | None
    one_way: Sequence[tuple[Floats, Floats]]  # of each column: units in its states, and the standard deviation of noise
    levels: Sequence[tuple[int, int]]  # evidence that is a hidden level, and its column
    total: float  # units of all rows
    masks: Sequence[Mask]  # evidence and columns that cannot meet in some states
    sorted_by: int | None = None  # the column that rows are sorted by after they are drawn


def grow_field(
    rows: RowTables,
    start: RowsStart,
    prepaid: PrepaidMechanisms,
    draw: Callable[[Field | None], SampledRows],
    *,
    n_tables: int,
) -> tuple[Field, list[MeasuredRows]]:
    """The field of one table of rows, and what was measured for it.

    `draw` gives rows of synthetic persons, drawn from a field, with their evidence. `n_tables` were paid for.
    """
    layout, role = start.layout, start.role
    noise_std = float(prepaid.plan.weighted["row tables"].variance) ** 0.5
    measurements = [
        FieldMeasurement((), (column,), noisy, std, None) for column, (noisy, std) in enumerate(start.one_way)
    ]
    kept: list[MeasuredRows] = []
    field: Field | None = None

    def fit(sampled: SampledRows, steps: int) -> Field:
        weights = sampled.weights * (start.total / max(float(sampled.weights.sum()), 1e-300))
        return fit_field(
            layout.own_sizes,
            layout.sizes,
            measurements,
            sampled.evidence,
            weights,
            start.total,
            role=role,
            masks=start.masks,
            start=field,
            steps=steps,
        )

    def measure(clique: FieldClique, expected: Floats, even: int | None = None) -> None:
        spread = expected if even is None else _evened(expected, even)
        by = 0 if role is not None and role in clique.own and len(clique.own) + len(clique.evidence) > 1 else None
        if by == 0 and clique.own == (role,):
            by = 1  # the evidence comes before a role that is alone
        labels = box_labels(spread, _BOX_DEVIATIONS * noise_std, by=by)
        n_boxes = int(labels.max()) + 1
        true_units = np.zeros(n_boxes, dtype=np.int64)
        np.add.at(true_units, labels.ravel(), rows.true_table(clique).ravel())
        noisy = prepaid.noisy_units(true_units, "row tables")
        is_whole = n_boxes == labels.size
        boxes = None if is_whole else labels
        kept.append(MeasuredRows(clique, boxes, noisy))
        measurements.append(FieldMeasurement(clique.evidence, clique.own, noisy.astype(np.float64), noise_std, boxes))

    sampled = draw(None)
    field = fit(sampled, _STEPS)
    first = first_cliques(start)
    for clique, even in first:
        measure(clique, field.expected_tables([clique], sampled.evidence, _scaled(sampled, start))[0], even)
    if first:
        field = fit(sampled, _STEPS)
        sampled = draw(field)
    n_rounds = n_tables - len(first)
    for _ in progress(range(n_rounds), "learning what rows depend on", unit="round"):
        cliques = candidates(field, start, kept)
        if not cliques:
            break
        rows.prepare(cliques)
        expected = field.expected_tables(cliques, sampled.evidence, _scaled(sampled, start))
        scores = true_scores(rows, cliques, expected, noise_std)
        sensitivity = UNITS * prepaid.plan.unit.factor
        pick = prepaid.choice(scores, sensitivity=sensitivity, stage="row selection")
        measure(cliques[pick], expected[pick])
        field = fit(sampled, _STEPS)
        sampled = draw(field)
    for _ in range(_LAST_FITS):
        field = fit(sampled, _LAST_STEPS)
        sampled = draw(field)
    return fit(sampled, _LAST_STEPS), kept


def first_cliques(start: RowsStart) -> list[tuple[FieldClique, int | None]]:
    """What is measured in any case, and the axis along which half is expected to be even: levels lie in tails."""
    found: list[tuple[FieldClique, int | None]] = []
    if start.role is not None:
        others = [column for column in range(len(start.layout.own_sizes)) if column != start.role]
        found += [(FieldClique((), (start.role, column)), None) for column in others]
    for evidence, column in start.levels:
        with_role = () if start.role in (None, column) else (start.role,)
        found.append((FieldClique((evidence,), (*with_role, column)), -1))
    return found


def candidates(field: Field, start: RowsStart, kept: Sequence[MeasuredRows]) -> list[FieldClique]:
    """Tables that may be measured next: own pairs that keep a forest, and evidence with own columns.

    What rows are sorted by depends on the person alone: which row is the first is decided when they are sorted.
    """
    layout, role = start.layout, start.role
    taken = {table.clique for table in kept}
    own = [column for column in range(len(layout.own_sizes)) if column != role]
    with_role = () if role is None else (role,)
    found = [FieldClique((), (*with_role, *pair)) for pair in combinations(own, 2) if field.keeps_forest(pair)]
    for number, evidence in enumerate(layout.every):
        if evidence.size < 2:
            continue
        linked = [column for column in own if evidence.kind == "person" or column != start.sorted_by]
        found += [FieldClique((number,), (*with_role, column)) for column in linked]
        if role is not None:
            found.append(FieldClique((number,), (role,)))
    return [clique for clique in found if clique not in taken]


def true_scores(
    rows: RowTables, cliques: Sequence[FieldClique], expected: Sequence[Floats], noise_std: float
) -> NDArray[np.int64]:
    """How far tables are from what is expected, sum |units - expected|, less what noise would be. SENSITIVE.

    One person moves a score by UNITS at most, or twice that where they are replaced.
    """
    scores = []
    for clique, table in zip(cliques, expected, strict=True):
        public = np.rint(np.clip(np.nan_to_num(table), 0, _MOST_EXPECTED / table.size)).astype(np.int64)
        n_boxes = max(1.0, float(np.minimum(table / (_BOX_DEVIATIONS * noise_std), 1).sum()))
        price = round(_NOISE_PRICE * noise_std * n_boxes)
        scores.append(int(np.abs(rows.true_table(clique) - public).sum()) - price)
    return np.array(scores, dtype=np.int64)


def _scaled(sampled: SampledRows, start: RowsStart) -> Floats:
    """Weights of drawn rows that add up to the units of all rows."""
    return np.asarray(sampled.weights * (start.total / max(float(sampled.weights.sum()), 1e-300)))


def _evened(expected: Floats, axis: int) -> Floats:
    """Half as expected, half even along an axis."""
    return np.asarray((expected + expected.mean(axis=axis, keepdims=True)) / 2)
