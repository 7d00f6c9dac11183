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
from spinney.forest.release.place_model import PlaceModel
from spinney.tree.release.reconstruct import project_to_total

# A region below this many standard deviations of its noise is treated as empty: one that is there because rows are
# near, and one that would be there in any case, in the middle of nowhere.
_EMPTY_BELOW, _LONELY_BELOW = 1.5, 3.0
# So is one of which the border of the shape leaves a strip: all its rows, of noise too, would be drawn in that strip.
_STRIP, _STRIP_BELOW = 0.1, 4.0


def place_model(place: NoisyPlace, *, total: float, most_states: int) -> tuple[PlaceModel, RegionCut]:
    """A place as a model over states knows it, and how to find the state of a row.

    Args:
        place: regions and noisy counts.
        total: the number of rows, or a noisy one.
        most_states: how many states to make at most.
    """
    alone = np.zeros(len(place.depths), dtype=np.int32)
    regions = PlaceModel.of_nodes(place.axis, place.codes, place.depths, alone.astype(np.float64), alone)
    is_strip = regions.is_bordered & (regions.parts_inside(place.axis.columns) < _STRIP)
    weights = region_weights(place, regions.sizes(), is_strip, total)
    first = place.axis.cell_numbers(place.codes)
    begins = _state_begins(first, weights, place.axis.lattice.depth, most_states)
    states = np.searchsorted(begins, first, side="right") - 1
    model = PlaceModel.of_nodes(place.axis, place.codes, place.depths, weights, states.astype(np.int32))
    return model, RegionCut(place.axis.lattice, begins, np.arange(len(begins)))


def region_weights(place: NoisyPlace, sizes: Floats, is_strip: NDArray[np.bool_], total: float) -> Floats:
    """Weights that are not negative and add up to the total; even over the place where no count stands out."""
    deviations = np.where(place.depths <= place.given_depth, _LONELY_BELOW, _EMPTY_BELOW)
    least = np.where(is_strip, _STRIP_BELOW, deviations) * place.noise_std
    noisy = np.where(place.noisy_counts < least, 0.0, place.noisy_counts)
    is_kept = noisy > 0
    if not is_kept.any():
        return np.asarray(total * sizes / sizes.sum())
    weights = np.zeros(len(noisy))
    weights[is_kept] = project_to_total(noisy[is_kept], total)
    return weights


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
