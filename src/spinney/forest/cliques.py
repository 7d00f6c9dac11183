"""Cliques: a few columns counted together, as finely as the noise allows.

A table of all combinations of states has many cells that hold fewer rows than noise. So a KD-tree cuts it: a box of
states is halved as long as its expected count is several standard deviations of the noise, where the expectation comes
from released numbers (columns independent given the target). Those cuts cost nothing, and a small class is cut as
coarsely as its size requires. The classes of a target are never joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.counting.joint import Clique
from spinney.counting.state_tables import StateTables
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.forest.release.measured import MeasuredTable
from spinney.graph.estimate import Measurement

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class CountedBoxes(Measurement):
    """A counted table as a model is fitted to it, and as it left the mechanism."""

    counted: MeasuredTable | None = None


def measure(
    rows: StateTables,
    clique: Clique,
    expected: Floats,
    prepaid: PrepaidMechanisms,
    *,
    stage: str,
    least: float,
    by: int | None = None,
    possible: NDArray[np.bool_] | None = None,
) -> CountedBoxes:
    """Noisy counts of the boxes that a clique's table is cut into, so that most hold `least` expected rows.

    `expected` has the table's shape; the states of column `by` are never joined. Cells that are not `possible` are in
    no box, and rows that lie there are not counted.
    """
    if possible is not None and not possible.all():
        expected = np.where(possible, expected, 0.0)
    labels = box_labels(expected, least, by=None if by is None else clique.index(by))
    true_table = rows.true_table(clique)
    boxes = labels
    if possible is not None and not possible.all():
        labels, true_table = _without(labels, possible), np.where(possible, true_table, 0)
        boxes = np.where(possible, labels, -1).astype(np.int32)
    n_labels = int(labels.max()) + 1
    true_counts = np.bincount(labels.ravel(), weights=true_table.ravel(), minlength=n_labels).astype(np.int64)
    noisy = prepaid.noisy_counts(true_counts, stage)
    noise = prepaid.plan.noise_law(stage)
    is_whole = n_labels == labels.size
    counted = MeasuredTable(clique, None if is_whole else boxes.ravel(), noisy, noise, stage)
    return CountedBoxes(clique, noisy.astype(np.float64), noise.std, None if is_whole else labels, counted)


def _without(labels: NDArray[np.int32], possible: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Boxes of possible cells alone, numbered anew; the model has nothing elsewhere, so any number will do there."""
    _, kept = np.unique(labels[possible], return_inverse=True)
    found = np.zeros_like(labels)
    found[possible] = kept
    return found


def box_labels(expected: Floats, least: float, *, by: int | None = None) -> NDArray[np.int32]:
    """The box of every cell of a table: halved while both halves can expect `least` rows, never along axis `by`.

    Of the sides of a box the one with the most states is cut, at its weighted middle; another where that cannot be.
    """
    places = list(range(expected.ndim))
    if by is not None:
        places = [by, *(axis for axis in places if axis != by)]
    turned = expected.transpose(places)
    whole = turned if by is not None else turned[None]
    labels = np.empty(whole.size, dtype=np.int32)
    cells = np.ascontiguousarray(whole, dtype=np.float64)
    _cut_boxes(cells.ravel(), np.array(whole.shape, dtype=np.int64), max(least, 1e-9), labels)
    return np.ascontiguousarray(_in_order(labels.reshape(turned.shape).transpose(np.argsort(places))))


def _in_order(labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """Labels numbered in the order of the table's cells, so that a table in which all differ reads 0, 1, 2, ..."""
    _, first, inverse = np.unique(labels.ravel(), return_index=True, return_inverse=True)
    order = np.empty(len(first), dtype=np.int32)
    order[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return order[inverse].reshape(labels.shape)


def outer(shares: Sequence[Floats]) -> Floats:
    """The product of several vectors as a table."""
    table = np.ones(())
    for share in shares:
        table = np.multiply.outer(table, share)
    return table


@compiled
def _cut_boxes(expected: Floats, shape: NDArray[np.int64], least: float, labels: NDArray[np.int32]) -> None:
    """Writes the boxes of cells, in C order, of a table whose first axis is not cut: every slice has its own."""
    n_axes = len(shape)
    steps = np.ones(n_axes, dtype=np.int64)
    for axis in range(n_axes - 2, -1, -1):
        steps[axis] = steps[axis + 1] * shape[axis + 1]
    sums = np.empty((n_axes, shape.max()))  # of the slices of a box along each axis
    boxes = np.empty((len(expected) // shape[0] + 1, n_axes, 2), dtype=np.int64)  # waiting, none within another
    at = np.empty(n_axes, dtype=np.int64)
    order = np.empty(n_axes, dtype=np.int64)
    n_labels = 0
    for t in range(shape[0]):
        boxes[0, :, 0], boxes[0, :, 1] = 0, shape
        boxes[0, 0, 0], boxes[0, 0, 1] = t, t + 1
        n_boxes = 1
        while n_boxes:
            n_boxes -= 1
            box = boxes[n_boxes].copy()
            total = _add_slices(expected, box, steps, sums, at)
            cut_axis, cut_at = -1, 0
            if total >= 2 * least:
                order[:] = np.argsort(-(box[:, 1] - box[:, 0]), kind="mergesort")
                for turn in range(n_axes):
                    axis = int(order[turn])
                    lower, best = 0.0, least
                    for k in range(box[axis, 0] + 1, box[axis, 1]):
                        lower += sums[axis, k - 1]
                        smaller = min(lower, total - lower)
                        if smaller >= best:
                            best, cut_axis, cut_at = smaller, axis, k
                    if cut_axis >= 0:
                        break
            if cut_axis >= 0:
                boxes[n_boxes], boxes[n_boxes + 1] = box, box
                boxes[n_boxes, cut_axis, 1] = boxes[n_boxes + 1, cut_axis, 0] = cut_at
                n_boxes += 2
            else:
                _write_label(labels, box, steps, n_labels, at)
                n_labels += 1


@compiled
def _add_slices(
    expected: Floats, box: NDArray[np.int64], steps: NDArray[np.int64], sums: Floats, at: NDArray[np.int64]
) -> float:
    """Sums of a box's cells along each of its axes, and of all."""
    n_axes, last = len(steps), len(steps) - 1
    for axis in range(n_axes):
        sums[axis, box[axis, 0] : box[axis, 1]] = 0.0
    at[:] = box[:, 0]
    total = 0.0
    while True:
        line = 0
        for axis in range(last):
            line += at[axis] * steps[axis]
        along = 0.0
        for k in range(box[last, 0], box[last, 1]):
            along += expected[line + k]
            sums[last, k] += expected[line + k]
        for axis in range(last):
            sums[axis, at[axis]] += along
        total += along
        if not _advance(at, box):
            return total


@compiled
def _write_label(
    labels: NDArray[np.int32], box: NDArray[np.int64], steps: NDArray[np.int64], label: int, at: NDArray[np.int64]
) -> None:
    last = len(steps) - 1
    at[:] = box[:, 0]
    while True:
        line = 0
        for axis in range(last):
            line += at[axis] * steps[axis]
        labels[line + box[last, 0] : line + box[last, 1]] = label
        if not _advance(at, box):
            return


@compiled
def _advance(at: NDArray[np.int64], box: NDArray[np.int64]) -> bool:
    """To the next line of a box along its last axis; False after the last."""
    for axis in range(len(at) - 2, -1, -1):
        at[axis] += 1
        if at[axis] < box[axis, 1]:
            return True
        at[axis] = box[axis, 0]
    return False
