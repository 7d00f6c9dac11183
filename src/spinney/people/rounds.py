"""Rounds over rows: what rows depend on, measured where the field is furthest off. SENSITIVE up to the noise.

A few tables are always measured; each round then chooses one more by the exponential mechanism and fits the
field anew. Numbers are in units. Proof: people.proof.md, choices and tables.

    row tables    the states of persons and rows, and exact tables of them
    rounds        scores, choices, measurements and fits
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.counting.states import Units, WeightedRows
from spinney.forest.cliques import box_labels
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.graph.crf import Field, FieldMeasurement, Mask, fit_field
from spinney.graph.crf_inference import EVIDENCE, ROLE, FieldClique, FieldLayout
from spinney.graph.estimate import Measurement
from spinney.people.release.rows import Layout, MeasuredRows, SampledRows, first_cliques, person_of_rows, row_evidence
from spinney.privacy.mechanisms import UNITS
from spinney.progress import progress
from spinney.text import NeverPickled

# ----------------------------------------------------------------------------------------------------------- row tables
# Tables of rows and of what they depend on, in units: all that a field of rows may be fitted to. SENSITIVE.


class RowTables(NeverPickled):
    """The states of persons and of their rows, and exact tables of them.

    Args:
        persons: states of persons (n_variables, n_persons).
        own: states of rows (n_columns, n_rows), in the order of persons.
        starts: where every person's rows begin, and the number of all rows.
        weighted: the units of every row.
        layout: what rows may depend on.
        role: the column that says what a row is.
    """

    def __init__(
        self,
        persons: NDArray[Any],
        own: NDArray[Any],
        starts: NDArray[np.int64],
        weighted: WeightedRows,
        layout: Layout,
        *,
        role: int | None,
    ) -> None:
        self._persons, self._own, self._starts, self._weighted = persons, own, starts, weighted
        self._person = person_of_rows(starts)
        self._layout, self._role = layout, role
        self._tables = FieldLayout(layout.own_sizes, layout.sizes, role, (), ())
        self._kept: dict[FieldClique, Units] = {}

    def true_table(self, clique: FieldClique) -> Units:
        """How many units have each combination of states, in the clique's shape."""
        if clique not in self._kept:
            self.prepare([clique])
        return self._kept[clique]

    def prepare(self, cliques: Iterable[FieldClique]) -> None:
        """Count tables, those of the same evidence one after the other, and keep them."""
        at, line = -1, np.empty(0)
        for clique in sorted(set(cliques).difference(self._kept)):
            if clique.evidence and clique.evidence[0] != at:
                at = clique.evidence[0]
                line = row_evidence(self._layout.every[at], self._persons, self._own, self._person, self._starts)
            special = {EVIDENCE: line} if self._role is None else {EVIDENCE: line, ROLE: self._own[self._role]}
            axes, shape = self._tables.axes(clique), self._tables.shape(clique)
            lines = [special[axis] if axis < 0 else self._own[axis] for axis in axes]
            self._kept[clique] = self._weighted.true_table(lines, shape).reshape(shape)


# --------------------------------------------------------------------------------------------------------------- rounds
# What rows depend on is searched for a table at a time, where the field so far is furthest off.
#
# First come the tables that are always measured: columns by themselves; those with a hidden level with that
# level, and with the number of the person's rows, without which weighted tables would be those of persons and
# not of rows; with a role, every column with it. Then in every round all pairs of columns that keep the field's
# own columns a forest, and all columns with all evidence, are compared with what the field expects of synthetic
# persons; one is chosen by the exponential mechanism, measured in boxes that are expected to hold enough, and
# the field is fitted anew (people.proof.md, choices and tables).


Floats = NDArray[np.float64]

# Boxes are expected to hold this many standard deviations of the noise.
_BOX_DEVIATIONS = 0.5
# With numbers of rows more of them: noise in what the persons of many rows have is drawn once for each of their rows.
_COUNT_DEVIATIONS = 6.0
# A table has to be off by this many standard deviations a box to be worth its noise.
_NOISE_PRICE = 0.8
# Whatever a field expects, scores stay whole numbers that int64 holds: no table is expected to have more units.
_MOST_EXPECTED = 1 << 60
# Tables are compared in about so many boxes: in more, chance hides what is off.
_N_COMPARED = 100
# Steps of a fit between rounds, and of the last ones.
_STEPS, _LAST_STEPS = 25, 60
# Before the last fits, rows are drawn from the field anew: what a row depends on is what the field itself draws.
_LAST_FITS = 2


@dataclass(frozen=True, slots=True, eq=False)
class RowsStart:
    """What is known of a table of rows before any table of two is measured. RELEASED."""

    layout: Layout
    role: int | None
    one_ways: Sequence[Measurement]  # of each column: units in its states
    count: int  # the evidence that is the number of a person's rows
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
    noise_std = float(prepaid.plan.noise_law("row tables").scale) ** 0.5
    measurements = [FieldMeasurement((), one.columns, one.noisy, one.noise_std) for one in start.one_ways]
    kept: list[MeasuredRows] = []
    field: Field | None = None

    def fit(sampled: SampledRows, steps: int) -> Field:
        return fit_field(
            layout.own_sizes,
            layout.sizes,
            measurements,
            sampled.evidence,
            _scaled(sampled, start),
            start.total,
            role=role,
            masks=start.masks,
            start=field,
            steps=steps,
        )

    def measure(clique: FieldClique, expected: Floats, even: int | None = None) -> None:
        # Half as expected, half even along the axis.
        spread = expected if even is None else (expected + expected.mean(axis=even, keepdims=True)) / 2
        deviations = _COUNT_DEVIATIONS if clique.evidence == (start.count,) else _BOX_DEVIATIONS
        labels = box_labels(spread, deviations * noise_std, by=_apart(clique, role))
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
    first = first_cliques(layout, role, start.count, start.levels)
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
        scores = true_scores(rows, cliques, expected, noise_std, n_sampled=sampled.n_persons, role=role)
        # With a role, a score is the difference of two distances.
        sensitivity = UNITS * prepaid.plan.unit.factor * (1 if role is None else 2)
        pick = prepaid.choice(scores, sensitivity=sensitivity, stage="row selection")
        measure(cliques[pick], expected[pick])
        field = fit(sampled, _STEPS)
        sampled = draw(field)
    for _ in range(_LAST_FITS):
        field = fit(sampled, _LAST_STEPS)
        sampled = draw(field)
    return fit(sampled, _LAST_STEPS), kept


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
    rows: RowTables,
    cliques: Sequence[FieldClique],
    expected: Sequence[Floats],
    noise_std: float,
    *,
    n_sampled: int,
    role: int | None,
) -> NDArray[np.int64]:
    """How far tables are from what is expected, sum over boxes of |units - expected|, less chance and noise. SENSITIVE.

    One person moves it by UNITS at most, or twice that where they are replaced. With a role, tables of evidence, role
    and a column would all be far off where evidence and role alone are: that distance is taken off, and one person
    moves the difference by twice as much.
    """
    scores = []
    for clique, given in zip(cliques, expected, strict=True):
        table = np.clip(np.nan_to_num(given), 0, _MOST_EXPECTED / given.size)
        least = max(_BOX_DEVIATIONS * noise_std, float(table.sum()) / _N_COMPARED)
        true_gaps = rows.true_table(clique) - np.rint(table).astype(np.int64)
        labels = box_labels(table, least, by=_apart(clique, role)).ravel()
        n_boxes = int(labels.max()) + 1
        boxes = np.bincount(labels, weights=table.ravel(), minlength=n_boxes).astype(np.float64)
        score = _distance(true_gaps.ravel(), labels, n_boxes) - round(_NOISE_PRICE * noise_std * n_boxes)
        score -= round(_chance(boxes, n_sampled))
        if role is not None and clique.evidence and len(clique.own) > 1:
            score -= int(np.abs(true_gaps.sum(axis=-1)).sum()) - round(_chance(table.sum(axis=-1), n_sampled))
        scores.append(score)
    return np.array(scores, dtype=np.int64)


def _distance(true_gaps: NDArray[np.int64], labels: NDArray[np.int32], n_boxes: int) -> int:
    """The sum over boxes of how far they are off. SENSITIVE."""
    sums = np.zeros(n_boxes, dtype=np.int64)
    np.add.at(sums, labels, true_gaps)
    return int(np.abs(sums).sum())


def _apart(clique: FieldClique, role: int | None) -> int | None:
    """The axis of a table along which no states are joined: that of the role, where it is in."""
    if role is None or role not in clique.own or len(clique.own) + len(clique.evidence) == 1:
        return None
    return 1 if clique.own == (role,) else 0  # the evidence comes before a role that is alone


def _chance(expected: Floats, n_sampled: int) -> float:
    """About how far the rows of as many persons as there are would be from those of a sample of the same law: units."""
    persons = expected / UNITS
    by_chance = np.sqrt(2 / math.pi * persons * (1 + persons.sum() / max(n_sampled, 1)))
    return float(UNITS * np.minimum(by_chance, 2 * persons).sum())


def _scaled(sampled: SampledRows, start: RowsStart) -> Floats:
    """Weights of drawn rows that add up to the units of all rows."""
    return np.asarray(sampled.weights * (start.total / max(float(sampled.weights.sum()), 1e-300)))
