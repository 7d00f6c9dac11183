"""Certified intervals of a forest: straight from noisy counts, whatever the rows are. PUBLIC.

Coefficients come from geometry alone, and the noise of a sum is bounded by its law. Sums become intervals in
`release/answers/certify`. Proof: counted.proof.md; the labels [step 5] ... are its points.

    counted boxes          noisy counts of disjoint boxes, and bounds on sums over rows
    certified intervals    counts, ratios, means and quantiles by inverting tests
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spinney.forest.release.columns import ColumnModel, Floats
from spinney.forest.release.measured import Counts, NoiseLaw
from spinney.forest.release.parts import Flags, Part, valued
from spinney.release.answers.certify import Between, SumByLaw, counts_between, quantile_between, ratio_between
from spinney.release.answers.reach import NoiseSum

if TYPE_CHECKING:
    from spinney.forest.release.model import ForestRelease


# -------------------------------------------------------------------------------------------------------- counted boxes
# Counted: noisy counts of boxes that share no row, and what they say of a sum over rows whatever the rows are.
#
# A sum over rows of a function between `low` and `high` in every box lies between sum(low x true counts) and sum(high
# x true counts). Noisy counts in their place are off by sums of noise of a known law, whose reach follows from that
# law (`reach.proof.md`). Coefficients come from the geometry of boxes alone, and the table is the earliest that holds
# the columns: which tables are counted later, and how they are cut, may follow from its noise, but not the other way
# round.


@dataclass(eq=False)
class Counted:
    """Noisy counts of boxes, the law of their noise, and which box holds which cell of the states or leaves."""

    variables: tuple[int, ...]
    noisy: Counts  # (n_boxes,)
    noise: NoiseLaw
    labels: NDArray[np.int64]  # a box for each cell, -1 for none; one axis for each variable
    by_leaf: bool  # whether cells are leaves of one variable, or states of several
    total: int | None  # the number of rows, where it is public

    @property
    def n_boxes(self) -> int:
        return len(self.noisy)

    def sums(self, lines: Floats, at: Floats | None = None) -> list[SumByLaw]:
        """Noisy sums over boxes, for lines of coefficients (n_lines, n_boxes) and candidates."""
        centred, added = self.centred(lines)
        values, candidates = centred @ self.noisy + added, np.zeros(len(lines)) if at is None else at
        return [
            SumByLaw(float(value), line, self.noise_of, at=float(one))
            for value, line, one in zip(values, centred, candidates, strict=True)
        ]

    def noise_of(self, line: Floats) -> NoiseSum:
        """The law of the noise of a sum over the boxes with these coefficients."""
        return NoiseSum([(self.noise, line)])

    def centred(self, coefficients: Floats) -> tuple[Floats, Floats]:
        """Lines of coefficients less what the public total explains, and what is to be added for that.

        All boxes together hold every row, so a constant may be taken off and its sum put back; with the mean of a line
        the noise is least. Where rules leave cells without a box, or the total is private, lines stay as they are.
        """
        if self.total is None or (self.labels < 0).any():
            return coefficients, np.zeros(len(coefficients))
        mean = coefficients.mean(axis=1)
        return coefficients - mean[:, None], mean * self.total

    def bounds(self, parts: Mapping[int, Part], *, shift: float | None = None) -> tuple[Floats, Floats]:
        """The least and the largest value in each box (2 x (n_boxes,)) of the indicator of the conditions.

        With a shift, of the indicator times the values of the column that has them, less the shift.
        """
        least, most = np.ones(()), np.ones(())
        value: tuple[Floats, Floats] | None = None
        for axis, variable in enumerate(self.variables):
            part = parts.get(variable)
            if part is None:
                low = high = np.ones(self.labels.shape[axis])
            else:
                low, high = self._ends(part, part.is_whole.astype(float), part.touches.astype(float))
                if shift is not None and part.values is not None:
                    value = self._values(part, shift, axis)
            least, most = np.multiply.outer(least, low), np.multiply.outer(most, high)
        if value is not None:
            # A row that may or may not be counted adds its value or nothing.
            sure, maybe = least > 0, most > 0
            low_value, high_value = np.broadcast_arrays(value[0], value[1], least)[:2]
            least = np.where(sure, low_value, np.where(maybe, np.minimum(low_value, 0.0), 0.0))
            most = np.where(sure, high_value, np.where(maybe, np.maximum(high_value, 0.0), 0.0))
        boxes = self.labels.ravel()
        low_box, high_box = np.full(self.n_boxes, np.inf), np.full(self.n_boxes, -np.inf)
        held = boxes >= 0
        np.minimum.at(low_box, boxes[held], least.ravel()[held])
        np.maximum.at(high_box, boxes[held], most.ravel()[held])
        return low_box, high_box

    def is_cut(self, parts: Mapping[int, Part]) -> bool:
        """Whether a box is neither wholly inside the conditions nor wholly outside."""
        least, most = self.bounds(parts)
        return bool((least < most).any())

    def _ends(self, part: Part, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Bounds of cells along one axis: of its leaves, or of all leaves of each state, weightless ones too."""
        if self.by_leaf:
            return low, high
        states, n_states = part.leaves.states, part.leaves.n_states
        least, most = np.full(n_states, np.inf), np.full(n_states, -np.inf)
        np.minimum.at(least, states, low)
        np.maximum.at(most, states, high)
        return least, most

    def _values(self, part: Part, shift: float, axis: int) -> tuple[Floats, Floats]:
        assert part.values is not None
        low = np.where(part.touches, part.values.low - shift, np.inf)
        high = np.where(part.touches, part.values.high - shift, -np.inf)
        low, high = self._ends(part, low, high)
        shape = [-1 if place == axis else 1 for place in range(self.labels.ndim)]
        return (
            np.where(np.isfinite(low), low, 0.0).reshape(shape),
            np.where(np.isfinite(high), high, 0.0).reshape(shape),
        )


def counted_for(release: ForestRelease, variables: tuple[int, ...]) -> Counted | None:
    """The noisy counts that hold all these variables: the leaves of one, or the earliest table of several."""
    measured = release.measured
    if measured is None or not variables:
        return None
    total = release.card.n_rows
    if len(variables) == 1:
        return _leaves(release, variables[0], total)
    table = next((table for table in measured.tables if set(variables) <= set(table.columns)), None)
    if table is None:
        return None
    shape = tuple(release.model.tree.sizes[variable] for variable in table.columns)
    n_cells = int(np.prod(shape))
    labels = np.arange(n_cells) if table.labels is None else table.labels.ravel().astype(np.int64)
    return Counted(table.columns, table.noisy, table.noise, labels.reshape(shape), False, total)


def _leaves(release: ForestRelease, variable: int, total: int | None) -> Counted | None:
    assert release.measured is not None
    column = release.measured.columns[variable]
    if column is None:
        return None
    labels = column.leaf.astype(np.int64)
    if column.kind == "codes":  # every code was counted, and is a leaf of what `leaves_counted` gives
        labels = np.arange(len(column.noisy))
    # A place may leave out rows beyond its shape, so that its regions do not hold all of them.
    return Counted((variable,), column.noisy, column.noise, labels, True, None if column.kind == "place" else total)


def leaves_counted(release: ForestRelease) -> dict[str, ColumnModel]:
    """Columns whose leaves were counted one value at a time, although the model has several in one leaf."""
    if release.measured is None:
        return {}
    return {
        name: release.columns[name].by_value()
        for name, column in zip(release.variables, release.measured.columns, strict=True)
        if column is not None and column.kind == "codes"
    }


# -------------------------------------------------------------------------------------------------- certified intervals
# Certified intervals: straight from noisy counts, whatever the rows are.
#
#     count       the sum of an indicator, between the boxes that are wholly inside and those that are touched
#     ratio       all ratios r for which the sum of (above - r x below) may be 0 (Fieller): shares among some rows
#     mean        all m for which the sum of (value - m) over the rows asked for may be 0
#     quantile    all leaves for which "so many rows lie below" may be true (Woodruff)
#
# The last three invert a test at each candidate, whose coefficients are geometry: the true one is rejected with
# the probability that the level leaves over, and the interval holds every candidate that was not. A range of
# candidates is left out only where one bound rejects all of it, so that no candidate in between goes untested.
# Proof: counted.proof.md; the labels [step 5] ... are its points.


# Candidates between which coefficients are straight lines: so many evenly, and as many ends of leaves.
_N_KNOTS = 33
# Quantiles are looked for between this many edges of leaves.
_MOST_EDGES = 256


def certified_count(counted: Counted, parts: Mapping[int, Part], level: float) -> Between:
    """The number of rows that meet the conditions."""
    least, most = counted.bounds(parts)
    lower, upper = counted.sums(np.stack([least, most]))
    (found,) = counts_between([(lower, upper)], counted.total, level)
    return replace(found, is_cut=bool((least < most).any()))


def certified_counts(counted: Counted, every: Sequence[Mapping[int, Part]], level: float) -> list[Between]:
    """Numbers of rows in whole boxes, whose intervals all hold at once."""
    sums = counted.sums(np.stack([counted.bounds(parts)[0] for parts in every]))
    return counts_between([(one, one) for one in sums], counted.total, level, at_once=True)


def certified_ratio(
    counted: Counted, above: Mapping[int, Part], below: Mapping[int, Part], level: float
) -> Between | None:
    """The share of rows that meet `above`, among those that meet `below`; None where that may be anything."""
    (least, most), (fewest, largest) = every = counted.bounds(above), counted.bounds(below)
    knots = np.linspace(0.0, 1.0, _N_KNOTS)
    found = _inverted(counted, [_among(every[0], every[1], float(knot)) for knot in knots], knots, level)
    is_cut = bool((least < most).any() or (fewest < largest).any())
    return None if found is None else replace(found, is_cut=is_cut)


def certified_mean(counted: Counted, parts: Mapping[int, Part], level: float) -> Between | None:
    """The mean of the column that has values, over rows that meet the conditions; None where it may be anything."""
    _, part, values = valued(parts)
    lows, highs = values.low[part.touches], values.high[part.touches]
    corners = np.unique(np.concatenate([lows, highs]))
    if len(corners) == 1:
        return Between(float(corners[0]), float(corners[0]), float(corners[0]))
    places = np.linspace(0, len(corners) - 1, min(len(corners), _N_KNOTS)).astype(np.int64)
    knots = np.unique(np.concatenate([np.linspace(lows.min(), highs.max(), _N_KNOTS), corners[places]]))
    found = _inverted(counted, [counted.bounds(parts, shift=float(knot)) for knot in knots], knots, level)
    return None if found is None else replace(found, is_cut=True)


def _inverted(counted: Counted, bounds: Sequence[tuple[Floats, Floats]], knots: Floats, level: float) -> Between | None:
    """All candidates from the first knot to the last that are not rejected, by bounds at the knots.

    The least of a sum is concave in the candidate and the most of it convex, so that between knots a straight line
    bounds them too. [step 5]
    """
    least, most = (counted.sums(np.stack(lines), at=knots) for lines in zip(*bounds, strict=True))
    return ratio_between(least, most, level)


def certified_quantile(counted: Counted, parts: Mapping[int, Part], at: float, level: float) -> Between | None:
    """The value that a share `at` of the rows lies at or below; None where it may be anything."""
    variable, part, values = valued(parts)
    starts = np.unique(values.low[part.touches])
    edges = starts[:: -(-len(starts) // _MOST_EDGES)]
    ends = np.append(edges[1:], values.high[part.touches].max())
    every = counted.bounds({**parts, variable: replace(part, values=None)})

    def beneath(sure: Flags, maybe: Flags) -> tuple[Floats, Floats]:
        """Bounds of (1 where a value is below another, 0 where not) less the share, over the rows asked for."""
        within = replace(part, touches=part.touches & maybe, is_whole=part.is_whole & sure, values=None)
        return _among(counted.bounds({**parts, variable: within}), every, at)

    # If the value lies between two edges, at most `at` of the rows lie below the first, at least `at` up to the second.
    below = counted.sums(np.stack([beneath(values.high < edge, values.low < edge)[0] for edge in edges]))
    few, until = (
        counted.sums(np.stack(lines))
        for lines in zip(*(beneath(values.high <= end, values.low <= end) for end in ends), strict=True)
    )
    found = quantile_between(below, until, level)
    if found is None:
        return None
    low, high = float(edges[found[0]]), float(ends[found[1]])
    passed = [one.value + other.value >= 0 for one, other in zip(few, until, strict=True)]
    return Between(low, low, high, is_cut=True).around(float(ends[passed.index(True)]) if any(passed) else high)


def _among(above: tuple[Floats, Floats], below: tuple[Floats, Floats], ratio: float) -> tuple[Floats, Floats]:
    """Bounds of what a row adds: 1 - ratio in both, -ratio in the rows below alone, nothing elsewhere."""
    (least, most), (fewest, largest) = above, below
    low = np.where(least > 0, 1 - ratio, np.where(largest > 0, -ratio, 0.0))
    high = np.where(most > 0, 1 - ratio, np.where(fewest > 0, -ratio, 0.0))
    return low, high
