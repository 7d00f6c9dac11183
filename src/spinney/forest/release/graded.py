"""Long leaves graded: inside a leaf that spans numbers of different size, small ones are commoner than large ones.

Where 40 rows are all that is known of amounts between 100 and 10,000, evenly spread they would be 5,050 on average, and
few columns are like that. So a leaf whose ends differ by more than a factor of two is divided at 1, 2 and 5 times the
powers of ten, and each part gets its share under a density of x^-3 where the leaf lies beyond the median of the column,
as tails of amounts have it, and of 1 / x, by which all sizes are alike, where it lies before. A leaf beyond
it that holds more rows than the range before it, whose ends have the same ratio, is no tail, and has 1 / x too. Leaves
that reach 0, dates and times stay even. Released numbers alone are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Bounded, Column, whole_range
from spinney.forest.release.column_model import ColumnModel, Floats, length_within
from spinney.forest.release.far_out import unit_of

# Leaves whose ends differ by no more than this factor stay even.
_EVEN_WITHIN = 2.0
# Leaves whose ends differ by no more than this factor hold no code that could be far from where rows are drawn.
_SHORT_WITHIN = 1.25
_ROUND = (1, 2, 5)


def graded_leaves(model: ColumnModel, column: Column) -> tuple[ColumnModel, NDArray[np.int64]]:
    """The column with long leaves divided, and which leaf each of the new ones is a part of.

    States, and what they weigh, are as before.
    """
    same = np.arange(len(model.weights))
    if not isinstance(column, Bounded) or not column.spans_decades:
        return model, same
    origin = whole_range(column)[0] if column.is_whole else 0
    begin, end = model.low + origin, model.low + model.length + origin
    near, far = _sizes(begin, end)
    is_long = (model.weights > 0) & ~model.is_null & (near > 0) & (far > _EVEN_WITHIN * near)
    if not is_long.any():
        return model, same
    is_tail = (far > _middle(model, near)) & _falls(model, near, far, begin >= 0)
    leaves, edges, shares = [], [], []
    for place in range(len(model.weights)):
        ends = np.array([begin[place], end[place]])
        parts = _parts(ends, column) if is_long[place] else ends
        leaves.append(np.full(len(parts) - 1, place))
        edges.append(np.stack([parts[:-1], parts[1:]]))
        shares.append(_shares(np.abs(parts), is_tail=bool(is_tail[place])) if is_long[place] else np.ones(1))
    leaf, edge, share = np.concatenate(leaves), np.concatenate(edges, axis=1), np.concatenate(shares)
    kept = ~is_long[leaf]
    divided = replace(
        model,
        low=np.where(kept, model.low[leaf], edge[0] - origin),
        length=np.where(kept, model.length[leaf], length_within(edge[0] - origin, edge[1] - origin)),
        is_null=model.is_null[leaf],
        weights=model.weights[leaf] * share,
        states=model.states[leaf],
    )
    return divided, leaf


def stands_alone(model: ColumnModel, column: Column) -> NDArray[np.bool_]:
    """The leaves beyond the median that are no tail, and reach far: a code may be all that they hold, anywhere."""
    if not isinstance(column, Bounded) or not column.spans_decades:
        return np.zeros(len(model.weights), dtype=np.bool_)
    origin = whole_range(column)[0] if column.is_whole else 0
    begin, end = model.low + origin, model.low + model.length + origin
    near, far = _sizes(begin, end)
    is_long = (model.weights > 0) & ~model.is_null & (near > 0) & (far > _SHORT_WITHIN * near)
    return is_long & (far > _middle(model, near)) & ~_falls(model, near, far, begin >= 0)


def _sizes(begin: Floats, end: Floats) -> tuple[Floats, Floats]:
    """The ends of leaves as distances from 0, the nearer one first."""
    return np.where(begin >= 0, begin, -end), np.where(begin >= 0, end, -begin)


def _parts(ends: Floats, column: Bounded) -> Floats:
    """The ends of a leaf, on one side of 0, and the round places between them."""
    step = float(column.spacing or 0)
    before = float(column.step // 2) if column.is_whole else step / 2  # where the cell of a value in steps begins
    low, high = ends
    sign = 1 if low >= 0 else -1
    near, far = sorted(np.abs(ends).tolist())
    inside = [
        place
        for value in _round_numbers(near, far)
        if (not step or abs(value / step - round(value / step)) < 1e-9)
        and low < (place := sign * value - before) < high
    ]
    return np.array([low, *sorted(inside), high])


def _middle(model: ColumnModel, near: Floats) -> float:
    """About how far from 0 the median of the column lies."""
    below = np.cumsum(np.where(model.is_null, 0.0, model.weights))
    return abs(float(near[np.searchsorted(below, below[-1] / 2)]))


def _falls(model: ColumnModel, near: Floats, far: Floats, is_above: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The leaves that hold no more rows than the range before them, towards 0, whose ends have the same ratio."""
    found = np.ones(len(near), dtype=np.bool_)
    for is_side in (is_above & ~model.is_null, ~is_above & ~model.is_null):
        leaves = np.flatnonzero(is_side)[np.argsort(near[is_side], kind="stable")]
        if len(leaves):
            ends = np.append(near[leaves], far[leaves[-1]])
            below = np.append(0.0, np.cumsum(model.weights[leaves]))
            ratio = np.divide(near, far, out=np.zeros_like(near), where=far > 0)[leaves]
            before = below[:-1] - np.interp(near[leaves] * ratio, ends, below)
            found[leaves] = model.weights[leaves] <= before
    return found


def _shares(sizes: Floats, *, is_tail: bool) -> Floats:
    """How the rows of a leaf are divided among its parts, whose ends have these sizes."""
    below = (sizes / unit_of(float(sizes.max()))) ** -2.0 if is_tail else np.log(sizes)
    parts = np.abs(np.diff(below))
    return np.asarray(parts / parts.sum())


def _round_numbers(near: float, far: float) -> Iterator[float]:
    """1, 2 and 5 times the powers of ten between two positive numbers."""
    for power in range(math.floor(math.log10(near)), math.ceil(math.log10(far)) + 1):
        yield from (number * 10.0**power for number in _ROUND if near < number * 10.0**power < far)
