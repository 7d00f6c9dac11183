"""Sums of named regressions as they were released: in a file, weighted before they are measured, and checked. PUBLIC.

released sums        the released sums, as data and in a file
regressor weights    where the noise of the sums goes, from columns released before
consistency          sums and weights that no table or fit gives
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.forest.release.columns import ColumnModel
from spinney.forest.release.formula import (
    MOST_WEIGHT,
    Block,
    Formula,
    Regressor,
    blocks_of,
    parse_formulas,
)
from spinney.forest.release.measured import MOST_DEVIATIONS, slack_of_total
from spinney.privacy.budget import Unit, parse_fraction
from spinney.privacy.mechanisms import LARGEST_VECTOR, GaussianVector
from spinney.release.card import Card, check, check_variance
from spinney.release.file import are_counts, from_arrow, lists, to_arrow

if TYPE_CHECKING:
    from spinney.forest.release.model import ForestRelease


# -------------------------------------------------------------------------------------------------------- released sums
# What was released of named regressions: noisy sums of products, as data and in a file.
#
# Which sums there are follows from the schema and the formulas of the call, so a file holds the sums and the weights
# of their columns alone, and what it says of them is checked against what was charged.


Floats = NDArray[np.float64]

# The sum of squares of a predictor around its mean stands out of its noise from this many standard deviations on.
STANDS_OUT = 4.0
MEMBER = "analyses.arrow"
_SUMS = {"sums": (pa.list_(pa.int64()),)}


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedAnalyses:
    """Noisy sums of all blocks, in the order of their entries, and the variance of the noise on each."""

    blocks: tuple[Block, ...]
    sums: tuple[NDArray[np.int64], ...]
    variance: Fraction

    @property
    def n_sums(self) -> int:
        return sum(len(block.entries) for block in self.blocks)

    def sensitivity_squared(self, unit: Unit) -> int:
        """How far one person can move all sums, squared."""
        return sum(block.sensitivity_squared(unit) for block in self.blocks)

    def block_of(self, names: Sequence[str], nullable: Sequence[str]) -> int | None:
        """The block with all these columns that leaves out the rows where one of these is null, if there is one."""
        for place, block in enumerate(self.blocks):
            left_out = {column.name for column in block.columns if column.axis.nullable}
            if {*names} <= {*block.names} and left_out == {*nullable}:
                return place
        return None

    # --------------------------------------------------------------------------------------------------- files

    def entries(self) -> dict[str, Any]:
        """What stands beside the card."""
        return {"variance": str(self.variance), "weights": [list(block.units) for block in self.blocks]}

    def members(self) -> dict[str, bytes]:
        """One table: the sums of every block."""
        table = pa.table({"sums": pa.array([sums.tolist() for sums in self.sums], pa.list_(pa.int64()))})
        return {MEMBER: to_arrow(table)}


def analyses_from_members(
    card: Card, described: Mapping[str, Any], members: Mapping[str, bytes]
) -> ReleasedAnalyses | None:
    """Read what was written; ValueError where it is not that."""
    if "analyses" not in described:
        return None
    formulas = parse_formulas(card.parameters.get("analyses"), card.schema)
    if not formulas:
        raise ValueError("sums of analyses that the call does not name")
    plain, weights = blocks_of(formulas, card.schema, Unit.parse(card.unit)), described["analyses"]["weights"]
    blocks = tuple(block.weighing(units) for block, units in zip(plain, weights, strict=True))
    variance = parse_fraction(described["analyses"]["variance"], "variance")
    sums = tuple(lists(from_arrow(members[MEMBER], _SUMS), "sums", np.int64))
    if [len(block.entries) for block in blocks] != [len(part) for part in sums]:
        raise ValueError("other sums than those of the analyses that the call names")
    if not variance > 0 or not all(are_counts(part) for part in sums):
        raise ValueError("sums of analyses out of range")
    return ReleasedAnalyses(blocks, sums, variance)


# ---------------------------------------------------------------------------------------------------- regressor weights
# Weights of the columns of named regressions: where the noise of their sums goes. Chosen from released numbers.
#
# In units where numbers count from -1 to 1, the noise on the sum of products of columns i and j has the standard
# deviation R^2 / (w_i w_j), R^2 the sum of all w^2. The coefficient of x_i takes the noise of (x_i - m_i) r, r what
# is left of the response y, over the spread s_i of its column. With q = 1 / w^2, means m and spreads s of the columns
# as released before, and coefficients c_k = sqrt(STRENGTH) s_y / s_k, its variance is in proportion to
#
#     R^4 (q_i + m_i^2 q_0) / s_i^2  *  (q_y + sum_k c_k^2 (q_k + m_k^2 q_0) + m_y^2 q_0).
#
# The weights found here make the mean logarithm of this over all coefficients small. Any weights give the same
# privacy and intervals that hold; good ones, narrow intervals: a response gets about as much as all of its
# predictors, and a number that is narrow in its bounds more.


# What one predictor explains of the response, about.
_STRENGTH = 0.2
# A predictor whose sum of squares does not stand out of so many times its noise is lost, which is worth this much: in
# logarithms of variances.
_LOST = 4.0
# Nothing is taken for narrower than this.
_NARROWEST = 1e-3
# Weights lie within this factor of each other, and are found to the last of these steps, in octaves.
_RANGE = 8.0
_STEPS = (1.0, 0.5, 0.25, 0.125)
_WEIGHT_TURNS = 12


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
        for _ in range(_WEIGHT_TURNS):
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
        noise = (STANDS_OUT * self._hidden * reach) ** 2 * squares
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


# ---------------------------------------------------------------------------------------------------------- consistency
# Sums of named regressions that no table has, and weights that do not follow from released columns.
#
# A sum over n rows of products of two slots is at most n times both weights, sums of squares and of values are
# not below nothing, the values of a column add up to the constant, and the first two moments of a number lie
# where the counts of its leaves let them: all of it but for noise of a known law. Weights are chosen from what
# was released before (`balanced`), so that they can be chosen again.


# Gaussian noise beyond so many standard deviations is drawn once in 10^32 times.
_DEVIATIONS = 12.0
# By how much the weights of a file may be worse than those found here: another machine rounds otherwise, and of two
# that are equally good it may take the other.
_COST_SLACK = 1e-6


def verify_analyses(release: ForestRelease, unit: Unit) -> list[str]:
    """The sums of named regressions are those that the call names, with as much noise as was charged for."""
    analyses, vector = release.analyses, release.card.stages.get("analyses")
    check((vector is None) == (analyses is None), "sums of analyses and a charge for them do not go together")
    if analyses is None:
        return []
    assert isinstance(vector, GaussianVector)  # which alone has this stage
    check(analyses.n_sums <= LARGEST_VECTOR, "more sums of analyses were released than a vector can have")
    check_variance(analyses.variance, vector, analyses.sensitivity_squared(unit), "sums of analyses")
    check_analyses_sums(release)
    return [f"{analyses.n_sums} sums of named analyses were released as one vector, with the noise it was paid for"]


def check_analyses_sums(release: ForestRelease) -> None:
    """Every sum is one that some table has, but for noise."""
    analyses = release.analyses
    assert analyses is not None
    noise = math.sqrt(analyses.variance)
    n_most = release.noisy_total + slack_of_total(release)
    for block, sums in zip(analyses.blocks, analyses.sums, strict=True):
        moments = _moments(block, sums.astype(np.float64), release.card.n_rows)
        _check_range(block, moments, n_most, noise)
        _check_values(block, moments, noise)
        for start, column in zip(block.starts, block.columns, strict=True):
            if column.is_number and not any(other.axis.nullable for other in block.columns):
                _check_number(release, column, moments[[0, start], start], block.constant, noise)


def check_analyses_weights(release: ForestRelease) -> list[str]:
    """Weights are those that a fit chooses for the columns in the file."""
    analyses, card = release.analyses, release.card
    if analyses is None:
        return []
    vector = card.stages["analyses"]
    assert isinstance(vector, GaussianVector)  # `verify_analyses`
    total = float(release.noisy_total) if release.measured is None else release.measured.total
    precision = max(total, 1.0) * math.sqrt(vector.mean_squared)
    formulas = parse_formulas(card.parameters.get("analyses"), card.schema)
    for block in analyses.blocks:
        spreads = spreads_of(block, release.columns)
        wanted = balanced(block, formulas, spreads, precision=precision)
        costs = [cost_of(one, formulas, spreads, precision=precision) for one in (block, wanted)]
        is_same = block.units == wanted.units or abs(costs[0] - costs[1]) <= _COST_SLACK
        check(is_same, "the weights of the sums of analyses are not those that the columns in the file give")
    return ["the weights of the sums of analyses were chosen again from the columns in the file, and are the same"]


def _moments(block: Block, sums: Floats, n_public: int | None) -> Floats:
    """The sums by slots (n_slots, n_slots), those of two values of one column as they have to be: none."""
    moments = np.zeros((block.n_slots, block.n_slots))
    if not block.counts_rows:
        moments[0, 0] = float(n_public or 0) * float(block.constant) ** 2
    for entry, value in zip(block.entries, sums, strict=True):
        moments[entry.first, entry.second] = moments[entry.second, entry.first] = value
    return moments


def _check_range(block: Block, moments: Floats, n_most: float, noise: float) -> None:
    weights = block.weights.astype(np.float64)
    most = n_most * np.outer(weights, weights) + _DEVIATIONS * noise
    is_value = np.array([owner < 0 or not block.columns[owner].is_number for owner in block.owner])
    is_positive = np.eye(len(weights), dtype=np.bool_) | np.outer(is_value, is_value)
    check(bool((np.abs(moments) <= most).all()), "a sum of analyses is larger than the number of rows and noise allow")
    is_fine = bool((moments[is_positive] >= -_DEVIATIONS * noise).all())
    check(is_fine, "a sum of analyses is negative that is of squares or of values, by more than noise allows")


def _check_values(block: Block, moments: Floats, noise: float) -> None:
    """Of every row that counts a category has one value: its sums add up to what the constant has."""
    for start, column in zip(block.starts, block.columns, strict=True):
        if column.is_number:
            continue
        here, part = slice(start, start + column.n_slots), column.weight / block.constant
        off = np.abs(moments[here].sum(axis=0) - part * moments[0])
        off[here] = 0.0  # of the column with itself nothing was summed
        most = _DEVIATIONS * noise * math.sqrt(column.n_slots + part**2)
        # Sums are rounded to 53 bits here, each.
        is_fine = off <= most + 1e-12 * np.abs(moments[here]).sum(axis=0)
        check(bool(is_fine.all()), f"the sums of analyses of the values of {column.name!r} do not add up")


def _check_number(release: ForestRelease, column: Regressor, sums: Floats, constant: int, noise: float) -> None:
    """Sum and sum of squares of a number, in units of its weight, lie where the counts of its leaves let them."""
    measured, names = release.measured, release.variables
    counted = None if measured is None or column.name not in names else measured.columns[names.index(column.name)]
    if counted is None or counted.kind not in ("real", "integer") or column.name not in release.columns:
        return
    model, (offset, reach) = release.columns[column.name], column.line
    is_whole = counted.kind == "integer"
    low = model.low + (float(column.axis.low) if is_whole else 0.0)
    cell = 1 / (column.n_cells - 1)  # values count as the middle of their cell, half a cell away at most
    first = np.clip((low - offset) / reach - cell, -1, 1)
    last = np.clip((low + model.length - is_whole - offset) / reach + cell, -1, 1)
    starts = np.flatnonzero(np.diff(counted.leaf, prepend=-1))
    first, last = np.minimum.reduceat(first, starts), np.maximum.reduceat(last, starts)
    squares = np.square([first, last])
    least = np.where((first <= 0) & (last >= 0), 0.0, squares.min(axis=0))
    for low_end, high_end, found, unit in (
        (first, last, sums[0], constant * column.weight),
        (least, squares.max(axis=0), sums[1], column.weight**2),
    ):
        middle, half = (low_end + high_end) / 2, (high_end - low_end) / 2
        # Counts are true ones plus noise, so that both sums over leaves have Gaussian noise, or one with such tails.
        spread = counted.noise.std * (np.linalg.norm(middle) + np.linalg.norm(half))
        most = max(float(counted.noisy @ half), 0.0) + MOST_DEVIATIONS * spread + _DEVIATIONS * noise / unit
        is_near = abs(found / unit - float(counted.noisy @ middle)) <= most * (1 + 1e-9)
        check(is_near, f"the sums of analyses of {column.name!r} are not of a column with the counts in the file")
