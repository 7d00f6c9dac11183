"""What a tree's leaves say about the schema: rows that pile up at a bound, and columns that are hardly cut at all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Bounded
from spinney.release.remarks import Ranges, ends_of, in_one_range, of_piles
from spinney.schema.table import Schema
from spinney.schema.zorder import deinterleave
from spinney.tree.bins import NoisyBins, NoisyMoments
from spinney.tree.release.piece_values import value_extent

# A column is told by hardly more than one range where half of the rows lie in ranges this long, as a part of what
# holds the middle four fifths of them.
_HARDLY_CUT = 0.5
# What holds them is then a small part of the column, or it is not the bounds that are to blame; and most are in there.
_SMALL_PART = 0.25
_MOST = 0.5
_REMEDY = "tighten its bounds, or use a forest (method='forest')"


def tree_remarks(bins: NoisyBins | NoisyMoments, weights: NDArray[np.float64], schema: Schema) -> list[str]:
    """Remarks on all columns, from leaves with so many rows each."""
    first, size = deinterleave(bins.codes, bins.depths, bins.lattice)
    remarks: list[str] = []
    for index, axis in enumerate(bins.lattice.axes):
        column = schema[axis.name]
        if not isinstance(column, Bounded):
            continue
        start = np.maximum(first[:, index], axis.first)
        stop = np.minimum(first[:, index] + size[:, index], axis.last + 1)
        held = (stop > start) & (weights > 0)
        if held.any():
            ranges = Ranges(*value_extent(axis, start[held], stop[held]), weights[held])
            remarks += [*of_piles(axis.name, column, ranges), *_of_hardly_cut(axis.name, column, ranges)]
    return remarks


def _of_hardly_cut(name: str, column: Bounded, ranges: Ranges) -> Iterator[str]:
    """A remark where most rows lie in ranges as long as all that holds them."""
    by_length = np.argsort(ranges.length)
    middle = by_length[np.searchsorted(np.cumsum(ranges.weights[by_length]), ranges.weights.sum() / 2)]
    typical = ranges.length[middle]
    if typical <= (column.step if column.is_whole else 0):
        return
    low, high = (_quantile(ranges, share) for share in (0.1, 0.9))
    first, last = ends_of(column)
    if typical >= _HARDLY_CUT * (high - low) and high - low <= _SMALL_PART * (last - first):
        is_alike = (ranges.low <= ranges.low[middle]) & (ranges.low + ranges.length >= ranges.low[middle] + typical)
        share = float(ranges.weights[is_alike].sum() / ranges.weights.sum())
        if share >= _MOST:
            yield in_one_range(name, column, float(ranges.low[middle]), float(typical), share, _REMEDY)


def _quantile(ranges: Ranges, share: float) -> float:
    """The place below which this share of the rows lies, each range taken to be at its end on that side."""
    places = ranges.low if share < 1 / 2 else ranges.low + ranges.length
    order = np.argsort(places)
    below = np.cumsum(ranges.weights[order])
    return float(places[order][min(np.searchsorted(below, share * below[-1]), len(order) - 1)])
