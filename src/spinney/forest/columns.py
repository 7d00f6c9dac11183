"""Columns on their own: a tree's leaves for numbers, all values for categories, and noisy counts of both.

A one-dimensional PrivTree is a discretiser that needs no tuning and copes with generous bounds: it cuts where there are
rows. Columns with few possible cells need none, and null is a leaf of its own from the start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from spinney.counting.counts import CellCounts
from spinney.forest.plan import class_sizes_plan
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.privacy.entropy import Entropy
from spinney.privacy.ledger import Ledger
from spinney.schema.lattice import Axis, Lattice, needs_tree, tree_lattice
from spinney.schema.table import Schema
from spinney.tables.source import Source


@dataclass(frozen=True, slots=True, eq=False)
class NoisyColumn:
    """Leaves of one column in ascending order, null last, with noisy counts. RELEASED."""

    axis: Axis
    first: NDArray[np.int64]  # (n_leaves,): first cell
    stop: NDArray[np.int64]  # (n_leaves,): cell after the last
    noisy_counts: NDArray[np.int64]  # (n_leaves,)
    noise_std: float  # of the noise on a count; 0 for shares that are known

    @property
    def is_ordered(self) -> bool:
        return self.axis.kind != "category"

    @property
    def is_null(self) -> NDArray[np.bool_]:
        return np.equal(self.first, self.axis.null_cell)


def column_lattice(schema: Schema, name: str) -> Lattice:
    """The lattice of one column alone: the finest that `bits` and the column's values allow."""
    return tree_lattice(Schema({name: schema[name]}))


def has_classes(axis: Axis) -> bool:
    """Whether a target has classes to count: two or more values, and no tree to find its leaves."""
    return axis.n_possible > 1 and not needs_tree(axis)


def tree_levels(axis: Axis) -> int:
    """Levels on which the column's tree decides by noisy counts; whether a value is null is not decided but known."""
    return axis.value_bits if needs_tree(axis) else 0


def release_column(counts: CellCounts, prepaid: PrepaidMechanisms, *, cutoff: float) -> NoisyColumn:
    """One column's leaves and their noisy counts; nodes of fewer rows than `cutoff` are rarely split."""
    axis = counts.lattice.axes[0]
    if needs_tree(axis):
        first, stop, true_counts = _tree_leaves(counts, axis, prepaid, math.ceil(cutoff))
    else:
        first, stop, true_counts = _all_cells(counts, axis)
    noisy_counts = prepaid.noisy_counts(true_counts, "one-way")
    return NoisyColumn(axis, first, stop, noisy_counts, prepaid.plan.noise_std("one-way"))


def release_classes(
    table: Source, lattice: Lattice, *, epsilon: Fraction, ledger: Ledger, entropy: Entropy
) -> NoisyColumn:
    """How many rows have each value of a target, with discrete Laplace noise, paid for by themselves.

    Whether a class is rare decides what else is worth measuring, so this is paid for, and looked at, before the rest.
    """
    axis = lattice.axes[0]
    prepaid = PrepaidMechanisms(class_sizes_plan(axis.name, epsilon=epsilon, unit=ledger.unit), ledger, entropy)
    first, stop, true_counts = _all_cells(table.count_cells(lattice), axis)
    return NoisyColumn(
        axis, first, stop, prepaid.noisy_counts(true_counts, "classes"), prepaid.plan.noise_std("classes")
    )


def unmeasured(axis: Axis) -> NoisyColumn:
    """A column of which nothing is known but the schema: even, with a leaf for each value where these are few."""
    if axis.kind == "category" or (axis.kind == "integer" and axis.step == 1 and not needs_tree(axis)):
        first = np.arange(axis.first, axis.last + 1)
        stop = first + 1
    else:
        first, stop = np.array([axis.first]), np.array([axis.last + 1])
    if axis.nullable:
        first, stop = np.append(first, axis.null_cell), np.append(stop, axis.null_cell + 1)
    return NoisyColumn(axis, first, stop, stop - first, 0.0)


def _tree_leaves(
    counts: CellCounts, axis: Axis, prepaid: PrepaidMechanisms, cutoff: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """First and last cells of the leaves of a tree, and their true counts. SENSITIVE."""
    leaves = prepaid.leaves(counts, fixed_depth=int(axis.nullable), cutoff=cutoff)
    first = (leaves.codes[:, 0] >> np.uint64(64 - axis.bits)).astype(np.int64)
    stop = first + (np.int64(1) << (axis.bits - leaves.depths))
    is_value = first < (1 << axis.value_bits)
    stop = np.where(is_value, np.minimum(stop, axis.last + 1), first + 1)
    true_counts = counts.rows_between(leaves.start, leaves.stop)
    order = np.argsort(first)  # the order of making must not show
    return first[order], stop[order], true_counts[order]


def _all_cells(counts: CellCounts, axis: Axis) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """All possible cells and their true counts. SENSITIVE."""
    first = np.arange(axis.first, axis.last + 1)
    if axis.nullable:
        first = np.append(first, axis.null_cell)
    true_counts = np.zeros(len(first), dtype=np.int64)
    shift = np.uint64(64 - axis.bits) if axis.bits else np.uint64(63)  # without bits all codes are 0
    codes, occupied = counts.distinct()
    cells = (codes[:, 0] >> shift).astype(np.int64)
    true_counts[np.searchsorted(first, cells)] = occupied
    return first, first + 1, true_counts
