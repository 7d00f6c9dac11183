"""Linear bounds: functions of what a leaf measured that lie below and above "the row is in the region".

A row adds (1, u) to its leaf, u its offsets along the measured axes. For every leaf a lower and an upper function,
linear in (1, u), are chosen by geometry alone, so that for every row

    lower(u)  <=  1[row in the region]  <=  upper(u)

Summed over rows they are linear in the true counts and sums, which were released with noise of a known law. Inside a
leaf that the region cuts along one axis at the offset t, where rows below are in it, the upper function is 1, or the
line that is 1 at t and 0 at the last offset of the leaf, whichever is lower at the centre; the lower one is 0, or the
line that is 1 at the first offset and 0 at the first one past t. Across several cuts an upper function of one of them
will do, and what the lower ones lack adds up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.tree.release.answers.leaves import AxisParts, Floats, Leaves, Parts
from spinney.tree.release.answers.regions import Integers


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """A linear function of the counts and sums of some leaves: a coefficient of each."""

    leaves: Integers  # (n,), ascending or not, each once
    of_count: Floats  # (n,)
    of_sums: Floats  # (n, n_axes)

    def times(self, factors: Floats | float) -> Linear:
        """The function with the part of each leaf multiplied by a factor of its own."""
        by_leaf = np.broadcast_to(np.asarray(factors, dtype=np.float64), self.leaves.shape)
        return Linear(self.leaves, self.of_count * by_leaf, self.of_sums * by_leaf[:, None])

    def restricted(self, chosen: NDArray[np.bool_]) -> Linear:
        """The part of some of its leaves."""
        return Linear(self.leaves[chosen], self.of_count[chosen], self.of_sums[chosen])


@dataclass(frozen=True, slots=True, eq=False)
class Bracket:
    """A lower and an upper function of the same leaves: first those inside, then those that are cut."""

    lower: Linear
    upper: Linear
    n_inside: int


def bracket(leaves: Leaves, parts: Parts) -> Bracket:
    """Bounds on how many rows lie in a region."""
    n_axes = leaves.first.shape[1]
    both = np.concatenate([parts.inside, parts.cut])
    n_inside, n_cut = len(parts.inside), len(parts.cut)
    upper = np.zeros((n_cut, 1 + n_axes))
    upper[:, 0] = 1.0
    lack = np.zeros((n_cut, 1 + n_axes))
    for axis, part in parts.along.items():
        _cut_along(leaves, parts.cut, axis, part, upper, lack)
    lower = -lack
    lower[:, 0] += 1.0
    lower[lower[:, 0] <= 0] = 0.0
    ones = np.zeros((n_inside, 1 + n_axes))
    ones[:, 0] = 1.0
    below, above = np.concatenate([ones, lower]), np.concatenate([ones, upper])
    return Bracket(Linear(both, below[:, 0], below[:, 1:]), Linear(both, above[:, 0], above[:, 1:]), n_inside)


def _cut_along(leaves: Leaves, cut: Integers, axis: int, part: AxisParts, upper: Floats, lack: Floats) -> None:
    """Take the cuts along one axis into account: a better upper function, and what the lower one lacks."""
    is_measured = leaves.is_measured[cut, axis]
    lack[~part.is_whole & ~is_measured, 0] += 1.0
    chosen = np.flatnonzero(~part.is_whole & is_measured)
    here = cut[chosen]
    begin = leaves.place[here, axis]
    end = begin + leaves.size[here, axis] - 1
    first, last = leaves.offset(here, axis, begin), leaves.offset(here, axis, end)
    low_in, high_in = part.low_in[chosen], part.high_in[chosen]
    low_may, high_may = part.low_may[chosen], part.high_may[chosen]
    none = (low_in > high_in) | (high_in < begin) | (low_in > end)
    lack[chosen[none], 0] += 1.0
    # Rows past the high end: none may be counted above it, and all past the last sure place may be missing.
    for is_cut, at, missing, far, sign in (
        (high_may < end, high_may, high_in + 1, (first, last), 1.0),
        (low_may > begin, low_may, low_in - 1, (last, first), -1.0),
    ):
        near_end, far_end = far
        place = leaves.offset(here, axis, np.clip(at, begin, end))
        better = is_cut & (sign * place < 0)
        slope = 1 / np.where(better, far_end - place, 1.0)
        value = far_end * slope  # at the centre
        better &= value < upper[chosen, 0]
        rows = chosen[better]
        upper[rows] = 0.0
        upper[rows, 0], upper[rows, 1 + axis] = value[better], -slope[better]
        lost = ~none & ((missing <= end) if sign > 0 else (missing >= begin))
        past = leaves.offset(here, axis, np.clip(missing, begin, end))
        helps = lost & (sign * past > 0)
        lack[chosen[lost & ~helps], 0] += 1.0
        steep = 1 / np.where(helps, past - near_end, 1.0)
        lack[chosen[helps], 0] -= (near_end * steep)[helps]
        lack[chosen[helps], 1 + axis] += steep[helps]
