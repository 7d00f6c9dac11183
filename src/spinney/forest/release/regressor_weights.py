"""Weights of the columns of named regressions: where the noise of their sums goes. Chosen from released numbers.

In units where numbers count from -1 to 1, the noise on the sum of products of columns i and j has the standard
deviation R^2 / (w_i w_j), R^2 the sum of all w^2. The coefficient of x_i takes the noise of (x_i - m_i) r, r what is
left of the response y, over the spread s_i of its column. With q = 1 / w^2, means m and spreads s of the columns as
released before, and coefficients c_k = sqrt(STRENGTH) s_y / s_k, its variance is in proportion to

    R^4 (q_i + m_i^2 q_0) / s_i^2  *  (q_y + sum_k c_k^2 (q_k + m_k^2 q_0) + m_y^2 q_0).

The weights found here make the mean logarithm of this over all coefficients small. Any weights give the same privacy
and intervals that hold; good ones, narrow intervals: a response gets about as much as all of its predictors, and a
number that is narrow in its bounds more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney.forest.release.column_model import ColumnModel
from spinney.forest.release.formula import Formula
from spinney.forest.release.regressors import MOST_WEIGHT, Block, Regressor

Floats = NDArray[np.float64]

# What one predictor explains of the response, about.
_STRENGTH = 0.2
# A predictor whose sum of squares does not stand out of so many times its noise is lost, which is worth this much: in
# logarithms of variances.
_STANDS_OUT = 4.0
_LOST = 4.0
# Nothing is taken for narrower than this.
_NARROWEST = 1e-3
# Weights lie within this factor of each other, and are found to the last of these steps, in octaves.
_RANGE = 8.0
_STEPS = (1.0, 0.5, 0.25, 0.125)
_TURNS = 12


class Spread(NamedTuple):
    """Mean and standard deviation of a number, where its bounds are -1 and 1."""

    mean: float
    deviation: float


def spreads_of(block: Block, columns: Mapping[str, ColumnModel]) -> dict[str, Spread]:
    """Of every number of a block, as it was released."""
    return {column.name: _spread(columns[column.name]) for column in block.columns if column.is_number}


def balanced(block: Block, formulas: Sequence[Formula], spreads: Mapping[str, Spread], *, precision: float) -> Block:
    """The block with the weights that its regressions are best measured with.

    Args:
        block: the sums.
        formulas: the regressions; those whose columns are not all of the block are another's.
        spreads: of the numbers, from what was released; one that is missing fills its bounds.
        precision: the number of rows, over the standard deviation of noise on sums that one row moves by 1.
    """
    own = [formula for formula in formulas if {*formula.columns} <= {*block.names}]
    cost = _Cost(block, own, spreads, precision)
    weights = np.zeros(len(block.columns) + 1)  # in octaves
    for step in _STEPS:
        for _ in range(_TURNS):
            before = weights.copy()
            for place in range(len(weights)):
                moves = [weights + sign * step * (np.arange(len(weights)) == place) for sign in (0, 1, -1)]
                weights = min(moves, key=cost.of)
            if (weights == before).all():
                break
    scaled = MOST_WEIGHT * np.exp2(np.maximum(weights - weights.max(), -np.log2(_RANGE)))
    steps = [1, *(column.n_steps for column in block.columns)]
    return block.weighing([max(1, int(weight / n_steps)) for weight, n_steps in zip(scaled, steps, strict=True)])


def cost_of(block: Block, formulas: Sequence[Formula], spreads: Mapping[str, Spread], *, precision: float) -> float:
    """How badly a block's own weights suit its regressions: what `balanced` makes small."""
    own = [formula for formula in formulas if {*formula.columns} <= {*block.names}]
    weights = np.array([block.constant, *(column.weight for column in block.columns)], dtype=np.float64)
    return _Cost(block, own, spreads, precision).of(np.log2(weights / weights.max()))


def _spread(column: ColumnModel) -> Spread:
    """The leaves of a column reach from one of its bounds to the other; rows lie evenly in each."""
    is_value = ~column.is_null
    low, length, weights = column.low[is_value], column.length[is_value], column.weights[is_value]
    start, stop = low.min(), (low + length).max()
    if weights.sum() <= 0:
        weights = length
    middle, half = (start + stop) / 2, (stop - start) / 2
    places, shares = (low + length / 2 - middle) / half, weights / weights.sum()
    mean = float(shares @ places)
    variance = float(shares @ ((places - mean) ** 2 + (length / half) ** 2 / 12))
    return Spread(mean, max(math.sqrt(variance), _NARROWEST))


class _Cost:
    """The mean logarithm of variances, up to a constant, of weights in octaves."""

    def __init__(
        self, block: Block, formulas: Sequence[Formula], spreads: Mapping[str, Spread], precision: float
    ) -> None:
        place = {name: number for number, name in enumerate(block.names, 1)}
        known = [_known(column, spreads) for column in block.columns]
        means, inverse = (np.array([0.0, *part]) for part in zip(*((m, s**-2) for m, s in known), strict=True))
        counts = np.sqrt([0, *(max(1, column.n_slots - 1) for column in block.columns)])
        self._is_number = np.array([False, *(column.is_number for column in block.columns)])
        self._means, self._hidden = means, inverse / precision
        self._parts = []
        for formula in formulas:
            response, predictors = place[formula.response], [place[name] for name in formula.predictors]
            # Per q: what makes each coefficient's own part, and the part of what is left of the response.
            own = np.zeros((len(predictors), len(counts)))
            own[np.arange(len(predictors)), predictors], own[:, 0] = 1.0, means[predictors] ** 2
            left = np.zeros(len(counts))
            left[predictors] = _STRENGTH * inverse[predictors] / inverse[response]
            left[0] = (means[predictors] ** 2 * left[predictors]).sum() + means[response] ** 2
            left[response] += 1.0
            if predictors:
                self._parts.append((own, left, np.array(predictors), counts[predictors]))

    def of(self, octaves: Floats) -> float:
        inverse = np.exp2(-2 * octaves)
        reach = (1 / inverse).sum()
        squares = np.where(self._is_number, inverse + 4 * self._means**2 * inverse[0], inverse[0]) * inverse
        noise = (_STANDS_OUT * self._hidden * reach) ** 2 * squares
        lost = _LOST * noise / (1 + noise)
        total, n_all = 0.0, 0.0
        for own, left, predictors, counts in self._parts:
            total += counts @ (np.log(own @ inverse) + lost[predictors]) + counts.sum() * np.log(left @ inverse)
            n_all += counts.sum()
        return float(total / max(n_all, 1.0) + 2 * np.log(reach))


def _known(column: Regressor, spreads: Mapping[str, Spread]) -> Spread:
    """Mean and spread of a number, or of one of a column's values, which are taken for equally frequent."""
    if column.is_number:
        return spreads.get(column.name, Spread(0.0, 3**-0.5))
    return Spread(1 / column.n_slots, math.sqrt(column.n_slots - 1) / column.n_slots)
