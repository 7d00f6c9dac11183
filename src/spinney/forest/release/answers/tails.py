"""Tails: what leaves may hold that the model takes for empty, and where in coarse leaves rows may lie.

A model takes leaves with hardly more than noise for empty. Most are; where they are not, it has lost rows, and models
that are fitted to redrawn noise do not show it, since they have lost them too. What such leaves may hold is told by
their raw counts: so many rows, give or take the noise of their sum. Sums over leaves whose counts were found small are
too small on average, so leaves among others, where noise cancels, give little room; those far out by themselves give
all that noise could hide. Rows may lie anywhere inside such a leaf, inside any leaf whose ends differ by more than a
factor of three, and inside one that stands alone beyond the median (`graded`): a code for "unknown" is at the end of
its leaf, wherever amounts of that size would be.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from spinney.forest.release.answers.parts import Flags, Part
from spinney.forest.release.column_model import Floats
from spinney.forest.release.measured import MeasuredColumn, NoiseLaw
from spinney.release.answers.students import t_quantile

# A mean to whose interval empty or coarse leaves add more than this part of it is indicative.
MOST_ADDED = 0.5
# Rows lie anywhere inside leaves whose ends differ by more than this factor.
_COARSE = 3.0

LOST = (
    "the mean rests on where rows far out lie: leaves that hold no more than noise may hold rows, and rows of coarse "
    "leaves may lie anywhere inside; the interval has room for both"
)
REMEDY = "ask for statement='certified', state nearer bounds, or fit with a larger epsilon"


class Hidden(NamedTuple):
    """What leaves that are taken for empty may hold: a sum of raw counts, and the standard deviation of its noise."""

    total: float
    std: float

    def most(self, reach: float, z: float) -> float:
        """How far above an estimate the truth may be, that has this reach by itself: that far, or farther."""
        return max(reach, self.total + math.hypot(reach, z * self.std))


def noise_quantile(law: NoiseLaw, level: float) -> float:
    """How many of its standard deviations noise stays within; Laplace noise reaches farther than normal noise."""
    normal = t_quantile(level, math.inf)
    return normal if law.law == "discrete gaussian" else max(normal, -math.log1p(-level) / math.sqrt(2))


def hidden(part: Part, column: MeasuredColumn, worth: Floats | None = None) -> Hidden:
    """Of leaves that a condition touches and that the model empties or thins, each row being worth so much, or 1."""
    if column.kind == "codes":  # codes are known from their groups as well
        return Hidden(0.0, 0.0)
    most = np.zeros(len(column.noisy))
    np.maximum.at(most, column.leaf, np.where(part.touches, 1.0 if worth is None else worth, 0.0))
    held = np.bincount(column.leaf, part.leaves.weights, len(most))
    lost = column.noisy - held
    most[(held > 0) & (lost < column.noise.std)] = 0.0
    return Hidden(float(most @ lost), column.noise.std * float(np.linalg.norm(most)))


def is_coarse(low: Floats, high: Floats) -> Flags:
    """Which leaves reach over numbers of so different a size that rows may lie anywhere inside."""
    near, far = np.minimum(np.abs(low), np.abs(high)), np.maximum(np.abs(low), np.abs(high))
    return (high > low) & ((far > _COARSE * near) | (low * high < 0))


def added_to_mean(
    part: Part, column: MeasuredColumn, rows: Floats, mean: float, reach: float, level: float, *, is_loose: Flags
) -> tuple[float, float]:
    """How far below and above its estimate a mean may be.

    Args:
        part: the column's leaves, with values.
        column: as it was counted.
        rows: how many rows that are asked about each leaf has.
        mean: the estimate.
        reach: that of the mean by all that the model knows of.
        level: of the interval.
        is_loose: leaves in which rows may lie anywhere, besides those whose ends differ by a factor of three.
    """
    values = part.values
    assert values is not None
    n_rows, z = max(float(rows.sum()), 1.0), noise_quantile(column.noise, level)
    coarse = np.where((is_loose | is_coarse(values.low, values.high)) & (part.share > 0), rows, 0.0)
    found = []
    for worth, lean in ((mean - values.low, values.mean - values.low), (values.high - mean, values.high - values.mean)):
        far = hidden(part, column, np.maximum(worth, 0.0))
        found.append(Hidden(far.total / n_rows, far.std / n_rows).most(reach, z) + float(coarse @ lean) / n_rows)
    return found[0], found[1]
