"""What a fit keeps of what it measured: the numbers as they left the mechanisms, and what they are numbers of.

Everything here has been released. Counts are those before small ones were cut, before anything was fitted to a total,
and before a prior had its say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from spinney.counting.states import AnyCut, Cut
from spinney.forest.cliques import CountedBoxes
from spinney.forest.columns import NoisyColumn
from spinney.forest.places import NoisyPlace
from spinney.forest.release.measured import Kind, MeasuredColumn, MeasuredPiles, MeasuredTable
from spinney.forest.spikes import part_spikes
from spinney.forest.states import possible_leaves
from spinney.graph.estimate import Measurement
from spinney.schema.parting import Parting


def kept_columns(
    noisy: Mapping[int, NoisyColumn | NoisyPlace], cuts: Sequence[AnyCut], partings: Mapping[int, Parting]
) -> tuple[MeasuredColumn | None, ...]:
    """For every column the counts that were released of it; None where nothing was counted."""
    return tuple(_kept(noisy.get(index), cut, partings.get(index)) for index, cut in enumerate(cuts))


def kept_tables(measurements: Sequence[Measurement]) -> tuple[MeasuredTable, ...]:
    """The tables that were counted, in order."""
    return tuple(m.counted for m in measurements if isinstance(m, CountedBoxes) and m.counted is not None)


def _kept(noisy: NoisyColumn | NoisyPlace | None, cut: AnyCut, parting: Parting | None) -> MeasuredColumn | None:
    if noisy is None or noisy.noise is None:
        return None
    if isinstance(noisy, NoisyPlace):
        leaf = np.arange(len(noisy.noisy_counts), dtype=np.int32)
        every = np.ones(len(leaf), dtype=np.bool_)
        return MeasuredColumn("place", noisy.noisy_counts, noisy.noise, leaf, every, given_depth=noisy.given_depth)
    assert isinstance(cut, Cut)
    leaf = (np.searchsorted(noisy.first, cut.first, side="right") - 1).astype(np.int32)
    possible: NDArray[np.bool_] = np.ones(len(leaf), dtype=np.bool_)
    if parting is not None:
        possible = possible_leaves(cut.axis, cut.first, parting)
    assert noisy.axis.kind != "ladder"  # which only bounds are found by
    kind: Kind = "codes" if noisy.levels is not None else noisy.axis.kind
    piles = None
    if noisy.noisy_spikes is not None and noisy.spike_noise is not None:
        parted = part_spikes(noisy)
        pile = np.full(len(leaf), -1, dtype=np.int32)  # of leaves that a prior cut further, none
        if parted.pile is not None and np.array_equal(parted.first, cut.first):
            pile = parted.pile
        piles = MeasuredPiles(noisy.noisy_spikes, noisy.spike_noise, pile)
    return MeasuredColumn(kind, noisy.noisy_counts, noisy.noise, leaf, possible, piles=piles, groups=noisy.noisy_groups)
