"""Cliques: a few columns counted together, as finely as the noise allows.

A table of all combinations of states has many cells that hold fewer rows than noise. So a KD-tree cuts it: a box of
states is halved as long as its expected count is several standard deviations of the noise, where the expectation comes
from released numbers (columns independent given the target). Those cuts cost nothing, and a small class is cut as
coarsely as its size requires. The classes of a target are never joined.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.counting.states import Clique, StateRows
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.graph.estimate import Measurement

Floats = NDArray[np.float64]


def measure(
    rows: StateRows,
    clique: Clique,
    expected: Floats,
    prepaid: PrepaidMechanisms,
    *,
    stage: str,
    least: float,
    by: int | None = None,
    possible: NDArray[np.bool_] | None = None,
) -> Measurement:
    """Noisy counts of the boxes that a clique's table is cut into, so that most hold `least` expected rows.

    `expected` has the table's shape; the states of column `by` are never joined. Cells that are not `possible` are in
    no box, and rows that lie there are not counted.
    """
    if possible is not None and not possible.all():
        expected = np.where(possible, expected, 0.0)
    labels = box_labels(expected, least, by=None if by is None else clique.index(by))
    true_table = rows.true_table(clique)
    if possible is not None and not possible.all():
        labels, true_table = _without(labels, possible), np.where(possible, true_table, 0)
    n_labels = int(labels.max()) + 1
    true_counts = np.bincount(labels.ravel(), weights=true_table.ravel(), minlength=n_labels).astype(np.int64)
    noisy = prepaid.noisy_counts(true_counts, stage).astype(np.float64)
    noise_std = prepaid.plan.noise_std(stage)
    is_whole = n_labels == labels.size
    return Measurement(clique, noisy, noise_std, labels=None if is_whole else labels)


def _without(labels: NDArray[np.int32], possible: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Boxes of possible cells alone, numbered anew; the model has nothing elsewhere, so any number will do there."""
    _, kept = np.unique(labels[possible], return_inverse=True)
    found = np.zeros_like(labels)
    found[possible] = kept
    return found


def box_labels(expected: Floats, least: float, *, by: int | None = None) -> NDArray[np.int32]:
    """The box of every cell of a table of up to three columns: halved while both halves can expect `least` rows."""
    places = list(range(expected.ndim))
    if by is not None:
        places = [by, *(axis for axis in places if axis != by)]
    turned = expected.transpose(places)
    whole = turned if by is not None else turned[None]
    if whole.ndim > 3:
        whole = whole.reshape(whole.shape[0], whole.shape[1], -1)
    shape = (*whole.shape, 1, 1)[:3]
    cube = np.ascontiguousarray(whole.reshape(shape), dtype=np.float64)
    labels = np.empty(shape, dtype=np.int32)
    _cut_boxes(cube, max(least, 1e-9), labels)
    labels = _in_order(labels.reshape(turned.shape).transpose(np.argsort(places)))
    return np.ascontiguousarray(labels)


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
def _cut_boxes(expected: Floats, least: float, labels: NDArray[np.int32]) -> None:
    """For every slice, boxes by halving: the side with more states at its weighted middle, else the other side."""
    n_slices, n_first, n_second = expected.shape
    above = np.zeros((n_first + 1, n_second + 1))
    boxes = np.empty((2 * n_first * n_second + 2, 4), dtype=np.int64)
    n_labels = 0
    for t in range(n_slices):
        for a in range(n_first):
            for b in range(n_second):
                above[a + 1, b + 1] = expected[t, a, b] + above[a, b + 1] + above[a + 1, b] - above[a, b]
        boxes[0] = np.array([0, n_first, 0, n_second])
        n_boxes = 1
        while n_boxes:
            n_boxes -= 1
            a0, a1, b0, b1 = boxes[n_boxes]
            cut_axis, cut_at = -1, 0
            total = above[a1, b1] - above[a0, b1] - above[a1, b0] + above[a0, b0]
            if total >= 2 * least:
                first_axis = 0 if a1 - a0 >= b1 - b0 else 1
                for turn in range(2):
                    axis = (first_axis + turn) % 2
                    low, high = (a0, a1) if axis == 0 else (b0, b1)
                    best = least
                    for at in range(low + 1, high):
                        if axis == 0:
                            lower = above[at, b1] - above[a0, b1] - above[at, b0] + above[a0, b0]
                        else:
                            lower = above[a1, at] - above[a0, at] - above[a1, b0] + above[a0, b0]
                        smaller = min(lower, total - lower)
                        if smaller >= best:
                            best, cut_axis, cut_at = smaller, axis, at
                    if cut_axis >= 0:
                        break
            if cut_axis == 0:
                boxes[n_boxes] = np.array([a0, cut_at, b0, b1])
                boxes[n_boxes + 1] = np.array([cut_at, a1, b0, b1])
                n_boxes += 2
            elif cut_axis == 1:
                boxes[n_boxes] = np.array([a0, a1, b0, cut_at])
                boxes[n_boxes + 1] = np.array([a0, a1, cut_at, b1])
                n_boxes += 2
            else:
                labels[t, a0:a1, b0:b1] = n_labels
                n_labels += 1
