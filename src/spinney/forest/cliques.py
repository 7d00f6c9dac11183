"""Cliques: a few columns counted together, as finely as the noise allows. SENSITIVE up to the noise.

A table of all combinations of states has many cells that hold fewer rows than noise. So a KD-tree cuts it: a
box of states is halved as long as its expected count is several standard deviations of the noise, where the
expectation comes from released numbers (columns independent given the target). Those cuts cost nothing, and a
small class is cut as coarsely as its size requires. The classes of a target are never joined.

    (first)           noisy counts of boxes, and how boxes are cut
    coarse states     a few groups of states for each column, so that many columns can be compared
    possible cells    the cells of a table that rules leave
    stated tables     the tables that the call states
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.counting.joint import Clique
from spinney.counting.states import StateTables
from spinney.errors import ParameterError
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.forest.release.columns import numbered
from spinney.forest.release.fit import believed_boxes, signs
from spinney.forest.release.measured import MeasuredTable
from spinney.graph.estimate import Measurement
from spinney.graph.junction import JunctionTree
from spinney.grid.axes import ColumnAxis
from spinney.grid.lattice import needs_tree

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
    sentinels: Sequence[NDArray[np.bool_]] | None = None,
) -> CountedBoxes:
    """Noisy counts of the boxes that a clique's table is cut into, so that most hold `least` expected rows.

    `expected` has the table's shape; the states of column `by` are never joined. Cells that are not `possible` are in
    no box, and rows that lie there are not counted. `sentinels` say which states of each column are: where some are,
    there is one box for each way of being so.
    """
    if possible is not None and not possible.all():
        expected = np.where(possible, expected, 0.0)
    labels = box_labels(expected, least, by=None if by is None else clique.index(by))
    if sentinels is not None:
        labels, doubtful = _with_sentinels_apart(labels, sentinels)
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
    unlikely = () if sentinels is None else tuple(np.unique(boxes[doubtful & (boxes >= 0)]).tolist())
    counted = MeasuredTable(clique, None if is_whole else boxes.ravel(), noisy, noise, stage, unlikely)
    believed = believed_boxes(noisy.astype(np.float64), noise.std, unlikely)
    return CountedBoxes(clique, *believed, None if is_whole else labels, counted)


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
    boxes = labels.reshape(turned.shape).transpose(np.argsort(places))
    # In the order of the table's cells, so that a table in which all differ reads 0, 1, 2, ...
    return numbered(boxes.ravel()).astype(np.int32).reshape(boxes.shape)


def _with_sentinels_apart(
    labels: NDArray[np.int32], sentinels: Sequence[NDArray[np.bool_]]
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Boxes of cells in which no state is a sentinel, and one box for each set of columns that are sentinels.

    And which cells are of some, but not of all columns that have any.
    """
    which = np.zeros((), dtype=np.int64)
    for place, is_sentinel in enumerate(sentinels):
        which = np.add.outer(which, is_sentinel.astype(np.int64) << place)
    boxes = np.where(which > 0, labels.max() + which, labels)
    return numbered(boxes.ravel()).astype(np.int32).reshape(labels.shape), (which > 0) & (which < which.max())


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


# -------------------------------------------------------------------------------------------------------- coarse states
# Coarse states: a few groups of a column's states, so that triples, or all pairs, can be looked at together.
#
# What three columns show that no two of them do is searched for among hundreds of triples. At all states, chance
# alone would fill their tables with differences, and what is off in a pair is off in every triple that holds it;
# products of functions of a few groups, whose means are 0, show what only all columns together do. Sees released
# numbers only.


Groups = NDArray[np.uint8]  # (n_states,): the group of every state

# Into how many groups the states of a column fall, where three columns are looked at together, and where more are.
_GROUPS_OF_THREE, _GROUPS_OF_MORE = 4, 2


def n_groups(n_columns: int) -> int:
    """Into how many groups at most the states of each of so many columns fall."""
    return _GROUPS_OF_THREE if n_columns <= 3 else _GROUPS_OF_MORE


def group_states(weights: Floats, most: int, *, is_ordered: bool) -> Groups:
    """The group of every state: neighbours of about even weight, or, without an order, the heaviest each alone."""
    n_states = len(weights)
    if is_ordered or n_states <= most:
        return even_groups(np.arange(n_states), weights, most)
    rank = np.empty(n_states, dtype=np.int64)
    rank[np.argsort(-weights, kind="stable")] = np.arange(n_states)
    return np.minimum(rank, most - 1).astype(np.uint8)


def even_groups(order: NDArray[np.int64], weights: Floats, most: int) -> Groups:
    """Neighbours in an order, in groups of about equal weight: as many as there may be, and every one has a state."""
    n_states = len(order)
    groups = np.empty(n_states, dtype=np.uint8)
    if n_states <= most:
        groups[order] = np.arange(n_states)
        return groups
    shares = weights[order] / max(float(weights.sum()), 1e-300)
    group, held, left = 0, 0.0, 1.0
    for place, state in enumerate(order):
        n_open = most - group  # groups that are not closed yet, this one among them
        is_full = held > 0 and held + shares[place] / 2 >= left / n_open
        if place > 0 and n_open > 1 and (is_full or n_states - place < n_open):
            left -= held
            group, held = group + 1, 0.0
        groups[state] = group
        held += shares[place]
    return groups


def centred_signs(weights: Floats) -> Floats:
    """Functions of the groups (n_functions, n_groups) between -1 and 1, whose means by these weights are 0.

    One group by itself has the function 0.
    """
    if len(weights) == 1:
        return np.zeros((1, 1))
    plain = signs(len(weights)).astype(np.float64)
    means = plain @ (weights / max(float(weights.sum()), 1e-300))
    return np.asarray((plain - means[:, None]) / (1 + np.abs(means[:, None])))


# ------------------------------------------------------------------------------------------------------- possible cells
# Which cells of a clique's table rows can have, by the rules; what is expected in the others goes to these.


Mask = NDArray[np.bool_]

# Turns of fitting a table to the sums of its axes: expectations need not be exact.
_FITTINGS = 5


class Possible:
    """Tables of a few columns that are False where no row can be. Public, given the columns' states."""

    def __init__(self, sizes: Sequence[int], masks: Sequence[tuple[Clique, Mask]]) -> None:
        self._sizes = tuple(sizes)
        self._masks = list(masks)

    def table(self, clique: Clique) -> Mask | None:
        """The cells of a clique (columns ascending) that its rules leave; None where they leave all."""
        inside = [(columns, mask) for columns, mask in self._masks if set(columns) <= set(clique)]
        if not inside:
            return None
        found = np.ones([self._sizes[column] for column in clique], dtype=np.bool_)
        for columns, mask in inside:
            found &= mask.reshape([self._sizes[column] if column in columns else 1 for column in clique])
        return found

    def shared_out(self, clique: Clique, expected: Floats) -> Floats:
        """What is expected of independent columns, where rules leave only some cells: sums of axes are kept, nearly."""
        mask = self.table(clique)
        if mask is None or mask.all():
            return expected
        axes = range(expected.ndim)
        margins = [expected.sum(axis=tuple(other for other in axes if other != axis)) for axis in axes]
        return with_margins(np.where(mask, expected, 0.0), margins, _FITTINGS)


def with_margins(table: Floats, margins: Sequence[Floats], n_turns: int) -> Floats:
    """A table fitted in turns to the sums that it is to have along each axis, nearly; what is 0 stays 0."""
    for _ in range(n_turns):
        for axis, wanted in enumerate(margins):
            held = table.sum(axis=tuple(other for other in range(table.ndim) if other != axis), keepdims=True)
            table = table * np.divide(wanted.reshape(held.shape), held, out=np.zeros_like(held), where=held > 0)
    return table


# -------------------------------------------------------------------------------------------------------- stated tables
# Stated tables: those that a call wants measured as they are, without a private choice.
#
# Their columns are told apart as finely as the schema does: every category and every value of a short list has a
# state of its own, rare or not, and numbers have one for each leaf of their tree. All of them are counted with noise
# of their own before anything is chosen. A table's cells are joined into boxes only where the columns by themselves
# let far fewer rows be expected than the noise has. Whether the tables fit into one model is known before anything is
# spent.


# A stated column has a state for each value of a list of up to so many, or up to so many leaves of a number.
MOST_VALUES = 256
MOST_LEAVES = 128
# The model's tree has no more cells than this for all stated tables and rules.
_MOST_CELLS = 1_000_000
# Boxes of stated tables are expected to hold at least this many standard deviations of the noise.
_BOX_DEVIATIONS = 1.0


def n_stated_states(name: str, axis: ColumnAxis) -> int:
    """How many states a stated column has at most; a ParameterError where it has too many values."""
    n_possible = axis.axis.n_possible
    if needs_tree(axis.axis):
        return min(n_possible, MOST_LEAVES + axis.axis.nullable)
    if n_possible > MOST_VALUES:
        raise ParameterError(
            f"workload: column {name!r} has {n_possible:,} values, and a stated table tells up to {MOST_VALUES} of a "
            "column apart; take the column out of the workload, or list fewer values and an `other`"
        )
    return n_possible


def check_cells(names: Sequence[str], sizes: Sequence[int], cliques: Sequence[Clique]) -> int:
    """How many cells the model's tree has with stated tables; a ParameterError where these are too many."""
    tree = JunctionTree.covering(sizes, cliques)
    if tree.n_cells <= _MOST_CELLS:
        return tree.n_cells
    largest = max(tree.cliques, key=lambda clique: math.prod(float(sizes[column]) for column in clique))
    n_cells = math.prod(sizes[column] for column in largest)
    *first, last = [repr(names[column]) for column in largest]
    listed = f"{', '.join(first)} and {last}" if first else last
    raise ParameterError(
        f"workload: the stated tables need a model of {tree.n_cells:,} cells, and it may have {_MOST_CELLS:,}; it "
        f"joins {listed}, {n_cells:,} cells; state fewer columns together, or columns with fewer values"
    )


def measure_stated(
    rows: StateTables,
    stated: Sequence[Clique],
    shares: Sequence[Floats],
    prepaid: PrepaidMechanisms,
    possible: Possible,
    *,
    total: float,
) -> list[Measurement]:
    """Noisy counts of all stated tables; `shares` are the released shares of every column's states."""
    least = _BOX_DEVIATIONS * prepaid.plan.noise_std("workload") if stated else 0.0
    return [
        measure(
            rows,
            clique,
            possible.shared_out(clique, total * outer([shares[column] for column in clique])),
            prepaid,
            stage="workload",
            least=least,
            possible=possible.table(clique),
        )
        for clique in stated
    ]
