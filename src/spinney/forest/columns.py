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

from spinney.counting.counts import CellCounts, ColumnCounts
from spinney.forest.plan import class_sizes_plan
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.forest.release.even_leaves import even_leaves
from spinney.forest.release.measured import NoiseLaw
from spinney.privacy.entropy import Entropy
from spinney.privacy.ledger import Ledger
from spinney.schema.code_levels import CodeLevels
from spinney.schema.lattice import Axis, Lattice
from spinney.schema.parting import Parting
from spinney.schema.ruler import Ruler
from spinney.tables.source import Source


@dataclass(frozen=True, slots=True, eq=False)
class NoisyColumn:
    """Leaves of one column in ascending order, null last, with noisy counts. RELEASED."""

    axis: Axis
    first: NDArray[np.int64]  # (n_leaves,): first cell
    stop: NDArray[np.int64]  # (n_leaves,): cell after the last
    noisy_counts: NDArray[np.int64]  # (n_leaves,)
    noise_std: float  # of the noise on a count; 0 for shares that are known
    spikes: NDArray[np.int64] | None = None  # (2, n): cells in which rows may pile up, where they were counted
    noisy_spikes: NDArray[np.int64] | None = None  # how many rows they hold
    spike_std: float = 0.0
    pile: NDArray[np.int32] | None = None  # (n_leaves,): which of the spikes a leaf is, -1: none
    levels: CodeLevels | None = None  # of codes in a hierarchy, whose groups were counted too
    noisy_groups: tuple[NDArray[np.int64], ...] = ()  # how many rows they hold, level by level; in the first null too

    noise: NoiseLaw | None = None  # of all counts but spikes, where there are any
    spike_noise: NoiseLaw | None = None
    is_told: bool = False  # whether a prior tells more than the counts do, in small leaves too

    @property
    def is_ordered(self) -> bool:
        return self.axis.kind != "category"

    @property
    def noisy_sum(self) -> tuple[float, float]:
        """The number of rows by the counts that tell it best, and the variance of its noise."""
        counts = self.noisy_groups[0] if self.noisy_groups else self.noisy_counts
        return float(counts.sum()), len(counts) * self.noise_std**2

    @property
    def is_null(self) -> NDArray[np.bool_]:
        return np.equal(self.first, self.axis.null_cell)


def release_column(
    counts: ColumnCounts,
    prepaid: PrepaidMechanisms,
    *,
    ruler: Ruler | None,
    cutoff: float,
    levels: CodeLevels | None = None,
    parting: Parting | None = None,
) -> NoisyColumn:
    """One column's leaves and their noisy counts; nodes of fewer rows than `cutoff` are rarely split."""
    axis, noise_std = counts.lattice.axes[0], prepaid.plan.noise_std("one-way")
    if levels is not None:
        assert isinstance(counts, CellCounts)
        return _release_codes(counts, prepaid, levels)
    if ruler is None:
        assert isinstance(counts, CellCounts)
        first, stop, true_counts = _all_cells(counts, axis)
        noisy_counts = prepaid.noisy_counts(true_counts, "one-way")
        return NoisyColumn(axis, first, stop, noisy_counts, noise_std, noise=prepaid.plan.noise_law("one-way"))
    roots = None if parting is None else parting.first
    ranges = prepaid.ranges(counts, ruler, cutoff=math.ceil(cutoff), roots=roots)
    noisy_counts = prepaid.noisy_counts(ranges.true_counts, "one-way")
    return NoisyColumn(
        axis,
        ranges.first,
        ranges.stop,
        noisy_counts,
        noise_std,
        spikes=ranges.spikes,
        noisy_spikes=prepaid.noisy_counts(ranges.true_spikes, "spikes"),
        spike_std=prepaid.plan.noise_std("spikes"),
        noise=prepaid.plan.noise_law("one-way"),
        spike_noise=prepaid.plan.noise_law("spikes"),
    )


def _release_codes(counts: CellCounts, prepaid: PrepaidMechanisms, levels: CodeLevels) -> NoisyColumn:
    """All codes, and all groups of their hierarchy, level by level: tables that each hold a row once at the most."""
    axis = counts.lattice.axes[0]
    first, stop, true_counts = _all_cells(counts, axis)
    noisy_groups = []
    for level in range(len(levels.starts)):
        true_groups = levels.sums(true_counts[: levels.n_codes], level)
        if level == 0:
            true_groups = np.append(true_groups, true_counts[levels.n_codes :])
        noisy_groups.append(prepaid.noisy_counts(true_groups, "one-way"))
    return NoisyColumn(
        axis,
        first,
        stop,
        prepaid.noisy_counts(true_counts, "one-way"),
        prepaid.plan.noise_std("one-way"),
        levels=levels,
        noisy_groups=tuple(noisy_groups),
        noise=prepaid.plan.noise_law("one-way"),
    )


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
        axis,
        first,
        stop,
        prepaid.noisy_counts(true_counts, "classes"),
        prepaid.plan.noise_std("classes"),
        noise=prepaid.plan.noise_law("classes"),
    )


def unmeasured(axis: Axis, parting: Parting | None = None) -> NoisyColumn:
    """A column of which nothing is known but the schema: even, with a leaf for each value where these are few."""
    first, stop = even_leaves(axis, parting)
    return NoisyColumn(axis, first, stop, stop - first, 0.0)


def all_leaves(axis: Axis) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A leaf for every possible cell, null last: where they begin and end."""
    first = np.arange(axis.first, axis.last + 1)
    if axis.nullable:
        first = np.append(first, axis.null_cell)
    return first, first + 1


def _all_cells(counts: CellCounts, axis: Axis) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """All possible cells and their true counts. SENSITIVE."""
    first, stop = all_leaves(axis)
    true_counts = np.zeros(len(first), dtype=np.int64)
    shift = np.uint64(64 - axis.bits) if axis.bits else np.uint64(63)  # without bits all codes are 0
    codes, occupied = counts.distinct()
    cells = (codes[:, 0] >> shift).astype(np.int64)
    true_counts[np.searchsorted(first, cells)] = occupied
    return first, stop, true_counts
