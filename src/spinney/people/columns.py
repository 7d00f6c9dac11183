"""Columns of rows: trees grown on one random row a person, and weighted counts of their leaves. SENSITIVE.

A tree needs a table in which a person is one row, and a random one of theirs serves; only the tree's shape is released
of it. Counts of leaves are of all rows, weighted. Numbers are in units (`privacy.parts.UNITS` a person).
Proof: people.proof.md, trees and tables.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from spinney.columns.physical import Physical
from spinney.counting.counts import CellCounts
from spinney.counting.states import Cut
from spinney.counting.weighted import WeightedRows
from spinney.forest.columns import NoisyColumn, all_leaves
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.people.derived import HeldRows
from spinney.privacy.parts import UNITS
from spinney.schema.column_axis import ColumnAxis
from spinney.schema.lattice import Axis
from spinney.schema.parting import Parting

Cells = NDArray[np.int64]


def release_row_columns(
    held: HeldRows,
    weighted: WeightedRows,
    axes: Sequence[ColumnAxis],
    partings: Mapping[int, Parting],
    prepaid: PrepaidMechanisms,
) -> list[NoisyColumn]:
    """All columns of one table of rows: leaves, and noisy units in them."""
    counted = held.one.count_columns([axis.lattice for axis in axes])
    return [
        _release_column(
            counts, held.source.table.physical(axis.axis.name), weighted, axis, partings.get(place), prepaid
        )
        for place, (axis, counts) in enumerate(zip(axes, counted, strict=True))
    ]


def _release_column(
    one_row: CellCounts,
    values: Physical,
    weighted: WeightedRows,
    column: ColumnAxis,
    parting: Parting | None,
    prepaid: PrepaidMechanisms,
) -> NoisyColumn:
    axis, noise = column.axis, prepaid.plan.noise_law("row one-way")
    if column.ruler is None:
        first, stop = all_leaves(axis)
        true_units = weighted.true_pieces(values, _pieces(axis, first))
        noisy_groups = []
        if column.levels is not None:
            for level in range(len(column.levels.starts)):
                true_groups = column.levels.sums(true_units[: column.levels.n_codes], level)
                if level == 0:
                    true_groups = np.append(true_groups, true_units[column.levels.n_codes :])
                noisy_groups.append(prepaid.noisy_units(true_groups, "row one-way"))
        noisy = prepaid.noisy_units(true_units, "row one-way")
        groups = tuple(noisy_groups)
        return NoisyColumn(axis, first, stop, noisy, noise.std, levels=column.levels, noisy_groups=groups, noise=noise)
    cutoff = math.ceil(prepaid.plan.noise_std("row one-way"))
    roots = None if parting is None else parting.first
    ranges = prepaid.ranges(one_row, column.ruler, cutoff=cutoff, roots=roots, stage="row trees")
    true_units = weighted.true_pieces(values, _pieces(axis, ranges.first))
    spike_noise = prepaid.plan.noise_law("row spikes")
    true_spikes = weighted.true_pieces(values, _spike_pieces(axis, ranges.spikes))[: ranges.spikes.shape[1]]
    return NoisyColumn(
        axis,
        ranges.first,
        ranges.stop,
        prepaid.noisy_units(true_units, "row one-way"),
        noise.std,
        spikes=ranges.spikes,
        noisy_spikes=prepaid.noisy_units(true_spikes, "row spikes"),
        spike_std=spike_noise.std,
        noise=noise,
        spike_noise=spike_noise,
    )


def _pieces(axis: Axis, first: Cells) -> Cut:
    """A cut with a state for every leaf."""
    return Cut(axis, np.append(0, first[1:]), np.arange(len(first)))


def _spike_pieces(axis: Axis, spikes: Cells) -> Cut:
    """A cut with a state for every spike, and one more, the last, for all that lies between them."""
    n_spikes = spikes.shape[1]
    order = np.argsort(spikes[0])
    begin, end = spikes[0][order], spikes[1][order]
    first = np.concatenate([begin, end, [0]])
    states = np.concatenate([order, np.full(n_spikes + 1, n_spikes)])
    # Where one spike ends and the next begins, or the first begins at the first cell, the spike has the cell.
    sorted_by = np.lexsort([states == n_spikes, first])
    first, states = first[sorted_by], states[sorted_by]
    kept = np.append(True, np.diff(first) > 0)
    return Cut(axis, first[kept], states[kept])


def persons_with_rows(columns: Sequence[NoisyColumn]) -> float:
    """How many units all rows have together, by the columns' own sums, the more precise ones counting more."""
    sums = [column.noisy_sum for column in columns]
    weight = sum(1 / variance for _, variance in sums)
    return max(sum(total / variance for total, variance in sums) / weight, float(UNITS))
