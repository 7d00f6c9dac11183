"""From the noisy regions of a place to a few states, each of them a box. Sees released numbers only.

Small counts are taken for noise and the rest is fitted to the total, as for any column. Then nodes of the tree are
halved, the heaviest first, until there are enough: a state is all that a node holds. A half without weight goes with
the other, so that every state holds rows.
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from spinney.counting.states import RegionCut
from spinney.forest.places import NoisyPlace
from spinney.forest.release.column_model import Floats
from spinney.forest.release.leaf_weights import region_weights
from spinney.forest.release.place_model import PlaceModel


def place_model(place: NoisyPlace, *, total: float, most_states: int) -> tuple[PlaceModel, RegionCut]:
    """A place as a model over states knows it, and how to find the state of a row.

    Args:
        place: regions and noisy counts.
        total: the number of rows, or a noisy one.
        most_states: how many states to make at most.
    """
    alone = np.zeros(len(place.depths), dtype=np.int32)
    regions = PlaceModel.of_nodes(place.axis, place.codes, place.depths, alone.astype(np.float64), alone)
    counts = place.noisy_counts.astype(np.float64)
    weights = region_weights(regions, counts, place.noise_std, place.given_depth, total)
    first = place.axis.cell_numbers(place.codes)
    begins = _state_begins(first, weights, place.axis.lattice.depth, most_states)
    states = np.searchsorted(begins, first, side="right") - 1
    model = PlaceModel.of_nodes(place.axis, place.codes, place.depths, weights, states.astype(np.int32))
    return model, RegionCut(place.axis.lattice, begins, np.arange(len(begins)))


def _state_begins(first: NDArray[np.int64], weights: Floats, depth: int, most_states: int) -> NDArray[np.int64]:
    """The cells at which states begin, from 0 on: nodes halved by weight, half of it by rows and half by regions."""
    is_held = weights > 0
    even = 0.5 * weights / weights.sum() + 0.5 * is_held / is_held.sum()
    before = np.concatenate([[0.0], np.cumsum(even)])

    def weight(begin: int, end: int) -> float:
        return float(before[end] - before[begin])

    # Of a node: its weight, where its state begins, where itself begins, its depth, and which regions it holds.
    waiting = [(-1.0, 0, 0, 0, 0, len(first))]
    done: list[int] = []
    while waiting and len(waiting) + len(done) < most_states:
        _, outer, start, level, begin, end = heapq.heappop(waiting)
        while end - begin > 1:
            middle = start + (1 << (depth - level - 1))
            level += 1
            at = begin + int(np.searchsorted(first[begin:end], middle))
            below, above = weight(begin, at), weight(at, end)
            if below > 1e-12 and above > 1e-12:
                heapq.heappush(waiting, (-below, outer, start, level, begin, at))
                heapq.heappush(waiting, (-above, middle, middle, level, at, end))
                break
            start, begin, end = (start, begin, at) if below > above else (middle, at, end)
        else:
            done.append(outer)
    return np.array(sorted([*done, *(node[1] for node in waiting)]), dtype=np.int64)
