"""Certified intervals: straight from noisy counts, whatever the rows are.

    count       the sum of an indicator, between the boxes that are wholly inside and those that are touched
    ratio       all ratios r for which the sum of (above - r x below) may be 0 (Fieller): shares among some rows
    mean        all m for which the sum of (value - m) over the rows asked for may be 0
    quantile    all leaves for which "so many rows lie below" may be true (Woodruff)

The last three invert a test at each candidate, whose coefficients are geometry: the true one is rejected with the
probability that the level leaves over, and what is given holds every candidate that was not. A range of candidates is
left out only where one bound rejects all of it, so that nothing is tested between candidates that nobody looked at.
Proof: counted.proof.md; the labels [step 5] ... are its points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from spinney.forest.release.answers.counted import Counted
from spinney.forest.release.answers.parts import Part
from spinney.forest.release.column_model import Floats
from spinney.release.answers.reach import level_of_each, whole_rows

# Candidates between which coefficients are straight lines: so many evenly, and as many ends of leaves.
_N_KNOTS = 33
# An end is looked for until what it may still move by is this much of the noise's standard deviation.
_FINE = 0.01
# How much of the probability of a miss goes to candidates lying between those that are looked at.
_BETWEEN = 0.01
# Quantiles are looked for between this many edges of leaves.
_MOST_EDGES = 256


@dataclass(frozen=True, slots=True)
class Bounded:
    """An estimate between two ends, and whether boxes were cut, whose rows may lie anywhere inside."""

    estimate: float
    low: float
    high: float
    is_cut: bool


def certified_count(counted: Counted, parts: Mapping[int, Part], level: float) -> Bounded:
    """The number of rows that meet the conditions."""
    least, most = counted.bounds(parts)
    (fewest, largest), centred = counted.sums(np.stack([least, most]))
    noise = [counted.noise_of(line) for line in centred]
    below, above = (one.reach(level) for one in noise)
    is_cut, usual = bool((least < most).any()), (below - noise[0].std, above - noise[1].std)
    return _whole(counted, (fewest + largest) / 2, fewest - below, largest + above, is_cut=is_cut, usual=usual)


def certified_counts(counted: Counted, every: Sequence[Mapping[int, Part]], level: float) -> list[Bounded]:
    """Numbers of rows in whole boxes, whose intervals all hold at once: each may fail with an equal share."""
    sums, centred = counted.sums(np.stack([counted.bounds(parts)[0] for parts in every]))
    each = level_of_each(centred, level)
    noise = [counted.noise_of(line) for line in centred]
    return [
        _whole(counted, y, y - half, y + half, is_cut=False, usual=(half - one.std, half - one.std))
        for y, one in zip(sums.tolist(), noise, strict=True)
        for half in [one.reach(each)]
    ]


def _whole(
    counted: Counted, estimate: float, low: float, high: float, *, is_cut: bool, usual: tuple[float, float]
) -> Bounded:
    """An interval of a number of rows, cut to whole numbers that the table can have."""
    first, last = whole_rows(low, high, math.inf if counted.total is None else float(counted.total), usual=usual)
    return Bounded(float(np.clip(estimate, first, last)), first, last, is_cut)


def certified_ratio(
    counted: Counted, above: Mapping[int, Part], below: Mapping[int, Part], level: float
) -> Bounded | None:
    """The share of rows that meet `above`, among those that meet `below`; None where that may be anything."""
    least, most = counted.bounds(above)
    fewest, largest = counted.bounds(below)

    def bounds(ratio: float) -> tuple[Floats, Floats]:
        # A row is in both, in the rows below alone, or in neither: where that is sure, so is what it adds.
        in_both, in_one = 1 - ratio, -ratio
        low = np.where(least > 0, in_both, np.where(largest > 0, in_one, 0.0))
        high = np.where(most > 0, in_both, np.where(fewest > 0, in_one, 0.0))
        return low, high

    is_cut = bool((least < most).any() or (fewest < largest).any())
    return _inverted(counted, bounds, np.linspace(0.0, 1.0, _N_KNOTS), level, is_cut=is_cut)


def certified_mean(counted: Counted, parts: Mapping[int, Part], level: float) -> Bounded | None:
    """The mean of the column that has values, over rows that meet the conditions; None where it may be anything."""
    part = next(part for part in parts.values() if part.values is not None)
    values = part.values
    assert values is not None
    lows, highs = values.low[part.touches], values.high[part.touches]
    corners = np.unique(np.concatenate([lows, highs]))
    if len(corners) == 1:
        return Bounded(float(corners[0]), float(corners[0]), float(corners[0]), is_cut=False)
    places = np.linspace(0, len(corners) - 1, min(len(corners), _N_KNOTS)).astype(np.int64)
    knots = np.unique(np.concatenate([np.linspace(lows.min(), highs.max(), _N_KNOTS), corners[places]]))
    return _inverted(counted, lambda mean: counted.bounds(parts, shift=mean), knots, level, is_cut=True)


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    """A value, the noisy sum that may be 0 if it is the true one, and the coefficients of that sum's noise."""

    at: float
    value: float
    line: Floats

    def between(self, other: _Candidate) -> _Candidate:
        """The one halfway: sums and coefficients are straight lines between knots."""
        middle = (self.at + other.at) / 2, (self.value + other.value) / 2, (self.line + other.line) / 2
        return _Candidate(*middle)


def _inverted(
    counted: Counted, bounds: Callable[[float], tuple[Floats, Floats]], knots: Floats, level: float, *, is_cut: bool
) -> Bounded | None:
    """All candidates from the first knot to the last that are not rejected, and what lies between them.

    The least of a sum is concave in the candidate and the most of it convex, so that between knots a straight line
    bounds them too. [step 5]
    """
    sides = np.stack([np.stack(bounds(float(knot))) for knot in knots])  # (n_knots, 2, n_boxes)
    (least, most), (below, above) = zip(*(counted.sums(sides[:, side]) for side in (0, 1)), strict=True)
    ends = [
        _last([_Candidate(*one) for one in zip(at, value, line, strict=True)], counted, 1 - level)
        for at, value, line in (
            (knots.tolist(), most.tolist(), above),
            ((-knots[::-1]).tolist(), (-least[::-1]).tolist(), below[::-1]),
        )
    ]
    if ends[0] is None or ends[1] is None:
        return None
    begin, end = sorted((-ends[1], ends[0]))
    falling = np.maximum.accumulate((least + most)[::-1])
    estimate = float(np.interp(0.0, falling, knots[::-1]))
    return Bounded(min(max(estimate, begin), end), begin, end, is_cut)


def _last(candidates: Sequence[_Candidate], counted: Counted, miss: float) -> float | None:
    """An upper bound on the candidates whose sum noise allows to be 0 or more; None where it allows none."""
    stack = list(pairwise(candidates))
    while stack:
        one, other = stack.pop()
        if other.value >= 0:
            return other.at
        middle = one.between(other)
        noise, half = counted.noise_of(middle.line), counted.noise_of((other.line - one.line) / 2)
        stray = half.farthest(_BETWEEN * miss)
        if noise.within(-max(one.value, other.value) - stray, (1 - _BETWEEN) * miss):
            continue  # noise reaches no candidate between these two
        if max(stray, abs(other.value - one.value) / 2) <= _FINE * noise.std or one.at == other.at:
            return other.at
        stack += [(one, middle), (middle, other)]
    return None


def certified_quantile(counted: Counted, parts: Mapping[int, Part], at: float, level: float) -> Bounded | None:
    """The value that a share `at` of the rows lies at or below; None where it may be anything."""
    variable, part = next((variable, part) for variable, part in parts.items() if part.values is not None)
    values = part.values
    assert values is not None
    starts = np.unique(values.low[part.touches])
    edges = starts[:: -(-len(starts) // _MOST_EDGES)]
    ends = np.append(edges[1:], values.high[part.touches].max())
    # If the value lies between two edges, at most `at` of the rows lie below the first, at least `at` up to the second.
    every = counted.bounds({**parts, variable: replace(part, values=None)})
    before = np.stack([_sides(counted, parts, variable, edge, at, every, is_open=True)[0] for edge in edges])
    until = [_sides(counted, parts, variable, end, at, every, is_open=False) for end in ends]
    at_least, below = counted.sums(before)
    at_most, above = counted.sums(np.stack([high for _, high in until]))

    def may_hold(k: int) -> bool:
        return not any(
            excess > 0 and counted.noise_of(line).within(excess, 1 - level)
            for excess, line in ((at_least[k], below[k]), (-at_most[k], above[k]))
        )

    first = next((k for k in range(len(edges)) if may_hold(k)), None)
    if first is None:
        return None
    last = next(k for k in range(len(edges) - 1, -1, -1) if may_hold(k))
    low, high = float(edges[first]), float(ends[last])
    passed = (counted.sums(np.stack([low for low, _ in until]))[0] + at_most >= 0).tolist()
    middle = float(ends[passed.index(True)]) if any(passed) else high
    return Bounded(float(np.clip(middle, low, high)), low, high, True)


def _sides(
    counted: Counted,
    parts: Mapping[int, Part],
    variable: int,
    at_value: float,
    share: float,
    every: tuple[Floats, Floats],
    *,
    is_open: bool,
) -> tuple[Floats, Floats]:
    """Bounds of (1 where a value is below another, 0 where not) less a share, over the rows asked for, in each box.

    `every` are the bounds of being asked for at all.
    """
    part = parts[variable]
    values = part.values
    assert values is not None
    sure = values.high < at_value if is_open else values.high <= at_value
    maybe = values.low < at_value if is_open else values.low <= at_value
    within = {**parts, variable: Part(part.leaves, part.share, part.touches & maybe, part.is_whole & sure)}
    least, most = counted.bounds(within)
    fewest, largest = every
    low = np.where(least > 0, 1 - share, np.where(largest > 0, -share, 0.0))
    high = np.where(most > 0, 1 - share, np.where(fewest > 0, -share, 0.0))
    return low, high
