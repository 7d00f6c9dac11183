"""Tails: how far rows that the noise may hide could move a mean.

A mean hangs on rows far out. The counts of a column's leaves as they were released have a mean whose error is known:
the noise of every leaf, times how far out it lies. A model that takes leaves with hardly more than noise for empty has
a mean that is far more precise, and rightly so where they are empty. Where they are not, it has lost rows far out and
comes out too small, and models that are fitted to redrawn noise do not show it, since they have lost them too. The more
precise a mean claims to be beside the counts that it rests on, the more it rests on leaves being empty.
"""

from __future__ import annotations

import math

import numpy as np

from spinney.forest.release.answers.parts import Part
from spinney.forest.release.measured import MeasuredColumn

# A mean that claims to be this many times as precise as the counts that it rests on is indicative.
MOST_PRECISE = 6.0

LOST = (
    "the mean rests on leaves far out being empty, which hold no more than noise: rows there may have been lost, and "
    "the interval is widened by what noise could hide"
)
REMEDY = "ask for statement='certified', state nearer bounds, or fit with a larger epsilon"


def raw_error(part: Part, column: MeasuredColumn) -> float:
    """The standard error of a column's mean that noise alone gives, where no leaf is taken for empty."""
    values, weights = part.values, part.leaves.weights
    assert values is not None
    weights = np.where(part.touches, weights, 0.0)
    total = float(weights.sum())
    if total <= 0:
        return math.inf
    mean = float(weights @ values.mean) / total
    away = np.where(part.touches, values.mean - mean, 0.0)
    return column.noise.std * math.sqrt(float(away @ away)) / total
