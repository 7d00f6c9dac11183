"""Cells in which rows pile up become leaves of their own. Sees released numbers only.

Leaves begin at round numbers, and how many rows lie exactly there was counted too, as were those at the end of the
axis, where values beyond the upper bound are moved. Where such a count stands out of its noise, its cells become a leaf
with no more rows than the leaf around it had; the rest keeps what is left.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spinney.forest.columns import NoisyColumn

Counts = NDArray[np.int64]

# A pile is believed above this many standard deviations of its noise.
STANDS_OUT = 3.5


def part_spikes(column: NoisyColumn) -> NoisyColumn:
    """The column with its piles as leaves of their own."""
    if column.spikes is None or column.noisy_spikes is None:
        return column
    is_out = column.noisy_spikes > STANDS_OUT * column.spike_std
    is_first = np.arange(len(is_out)) < len(column.first)  # beyond them is the end of the axis
    spikes, noisy_spikes = column.spikes, column.noisy_spikes
    column = replace(column, pile=np.full(len(column.first), -1, dtype=np.int32))
    for chosen in (is_out & is_first, is_out & ~is_first):
        column = _with_piles(column, np.flatnonzero(chosen), spikes[:, chosen], noisy_spikes[chosen])
    return replace(column, spikes=None, noisy_spikes=None)


def _with_piles(column: NoisyColumn, numbers: Counts, spikes: Counts, noisy_piles: Counts) -> NoisyColumn:
    """The leaves with piles cut out of them, each at the beginning or at the end of another leaf; in order."""
    assert column.pile is not None
    first, stop = spikes
    leaf = np.searchsorted(column.first, first, side="right") - 1
    is_end = first > column.first[leaf]
    is_parted = (is_end | (stop < column.stop[leaf])) & (column.noisy_counts[leaf] > 0)
    leaf, is_end, cut = leaf[is_parted], is_end[is_parted], np.where(is_end, first, stop)[is_parted]
    held = column.noisy_counts[leaf]
    piles = np.minimum(noisy_piles[is_parted], held)
    noisy_counts = np.insert(column.noisy_counts, leaf, np.where(is_end, held - piles, piles))
    noisy_counts[leaf + np.arange(len(leaf)) + 1] = np.where(is_end, piles, held - piles)
    pile = np.insert(column.pile, leaf, np.where(is_end, column.pile[leaf], numbers[is_parted]))
    pile[leaf + np.arange(len(leaf)) + 1] = np.where(is_end, numbers[is_parted], column.pile[leaf])
    return replace(
        column,
        pile=pile.astype(np.int32),
        first=np.insert(column.first, leaf + 1, cut),
        stop=np.insert(column.stop, leaf, cut),
        noisy_counts=noisy_counts,
    )
