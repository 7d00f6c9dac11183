"""Certified intervals: straight from noisy counts, whatever the rows are.

    count       the sum of an indicator, between the boxes that are wholly inside and those that are touched
    ratio       all ratios r for which the sum of (above - r x below) may be 0 (Fieller): shares among some rows
    mean        all m for which the sum of (value - m) over the rows asked for may be 0
    quantile    all leaves for which "so many rows lie below" may be true (Woodruff)

The last three invert a test at each candidate, whose coefficients are geometry: the true one is rejected with the
probability that the level leaves over, and what is given is all that lies between the first and the last candidate that
was not. Taking the last that is rejected on either side instead would test many times and hold less often.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from spinney.forest.release.answers.counted import Counted
from spinney.forest.release.answers.parts import Part
from spinney.forest.release.column_model import Floats
from spinney.release.answers.ranks import rank_half_width, simultaneous_half_widths

# What rounding of floats may take from a sum of whole numbers.
_ROUNDING = 1e-6
# Places at which a range of candidates is looked at first, and those at which an end is looked for, a few times.
_N_PLACES = 33
_N_INSIDE, _TURNS = 12, 4
# Quantiles are looked for between this many edges of leaves.
_MOST_EDGES = 256


@dataclass(frozen=True, slots=True)
class Bounded:
    """An estimate between two ends, and whether boxes were cut, whose rows may lie anywhere inside."""

    estimate: float
    low: float
    high: float
    is_cut: bool


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Two sums over noisy counts between which a true sum lies but for noise, and how far noise may reach."""

    low: float
    high: float
    below: float
    above: float
    is_cut: bool

    @property
    def is_not_above(self) -> bool:
        """Whether noise allows the sum to be 0 or less."""
        return self.low - self.below <= 0.0

    @property
    def is_not_below(self) -> bool:
        """Whether noise allows it to be 0 or more."""
        return self.high + self.above >= 0.0


def lines(counted: Counted, least: Floats, most: Floats, level: float) -> Lines:
    """The two sums of a function that lies between `least` and `most` in each box."""
    return _many(counted, [(least, most)], level)[0]


def _many(counted: Counted, bounds: Sequence[tuple[Floats, Floats]], level: float) -> list[Lines]:
    """The sums of many functions."""
    sums, reach = _reached(counted, np.concatenate([np.stack(both) for both in bounds]), level)
    return [
        Lines(float(sums[k]), float(sums[k + 1]), float(reach[k]), float(reach[k + 1]), bool((least < most).any()))
        for k, (least, most) in zip(range(0, len(sums), 2), bounds, strict=True)
    ]


def _sums(counted: Counted, lines_of: Floats) -> tuple[Floats, Floats]:
    """Sums of lines of coefficients over noisy counts, and the lines by which their noise goes."""
    centred, added = counted.centred(lines_of)
    return centred @ counted.noisy + added, centred


def _reached(counted: Counted, lines_of: Floats, level: float) -> tuple[Floats, Floats]:
    """Sums of lines of coefficients over noisy counts, and how far the noise of each may reach."""
    sums, centred = _sums(counted, lines_of)
    return sums, np.asarray(rank_half_width(counted.simulated(centred, level), level), dtype=np.float64)


def certified_count(counted: Counted, parts: Mapping[int, Part], level: float) -> Bounded:
    """The number of rows that meet the conditions."""
    found = lines(counted, *counted.bounds(parts), level)
    most = math.inf if counted.total is None else counted.total
    low = float(min(math.ceil(max(found.low - found.below, 0.0) - _ROUNDING), most))
    high = float(min(max(math.floor(found.high + found.above + _ROUNDING), low), most))
    return Bounded(float(np.clip((found.low + found.high) / 2, low, high)), low, high, found.is_cut)


def certified_counts(counted: Counted, every: Sequence[Mapping[int, Part]], level: float) -> list[Bounded]:
    """Numbers of rows in whole boxes, whose intervals all hold at once."""
    lines_of, added = counted.centred(np.stack([counted.bounds(parts)[0] for parts in every]))
    sums = lines_of @ counted.noisy + added
    scales = counted.noise.std * np.sqrt((lines_of**2).sum(axis=1))
    reach = simultaneous_half_widths(counted.simulated(lines_of, level), scales, level)
    most = math.inf if counted.total is None else float(counted.total)
    found = []
    for middle, half in zip(sums.tolist(), reach.tolist(), strict=True):
        low = min(float(math.ceil(max(middle - half, 0.0) - _ROUNDING)), most)
        high = min(float(max(math.floor(middle + half + _ROUNDING), low)), most)
        found.append(Bounded(float(np.clip(middle, low, high)), low, high, False))
    return found


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
    return _inverted(counted, bounds, 0.0, 1.0, level, is_cut=is_cut)


def certified_mean(counted: Counted, parts: Mapping[int, Part], level: float) -> Bounded | None:
    """The mean of the column that has values, over rows that meet the conditions; None where it may be anything."""
    part = next(part for part in parts.values() if part.values is not None)
    values = part.values
    assert values is not None
    low, high = float(values.low[part.touches].min()), float(values.high[part.touches].max())

    return _inverted(counted, lambda mean: counted.bounds(parts, shift=mean), low, high, level, is_cut=True)


def _inverted(
    counted: Counted,
    bounds: Callable[[float], tuple[Floats, Floats]],
    low: float,
    high: float,
    level: float,
    *,
    is_cut: bool,
) -> Bounded | None:
    """All candidates between two ends that are not rejected, and what lies between them."""

    def tests(places: Floats) -> list[Lines]:
        return _many(counted, [bounds(float(place)) for place in places], level)

    places = np.linspace(low, high, _N_PLACES)
    found = tests(places)
    first = next((at for at, one in enumerate(found) if one.is_not_above), None)
    last = next((at for at in range(len(found) - 1, -1, -1) if found[at].is_not_below), None)
    if first is None or last is None:
        return None
    begin, end = low, high
    if first > 0:
        begin = _edge(tests, places[first - 1], places[first], lambda one: one.is_not_above)
    if last < len(places) - 1:
        end = _edge(tests, places[last + 1], places[last], lambda one: one.is_not_below)
    begin, end = min(begin, end), max(begin, end)
    middles = np.array([one.low + one.high for one in found])  # falls as candidates grow
    estimate = float(np.interp(0.0, np.maximum.accumulate(middles[::-1]), places[::-1]))
    return Bounded(min(max(estimate, begin), end), begin, end, is_cut)


def _edge(
    tests: Callable[[Floats], list[Lines]], outside: float, inside: float, is_fine: Callable[[Lines], bool]
) -> float:
    """Where candidates begin not to be rejected; outside of that by less than can be seen."""
    for _ in range(_TURNS):
        places = np.linspace(outside, inside, _N_INSIDE)
        at = next(k for k, one in enumerate(tests(places)) if k == len(places) - 1 or (k > 0 and is_fine(one)))
        outside, inside = places[at - 1], places[at]
    return float(outside)


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
    before = [_sides(counted, parts, variable, edge, at, every, is_open=True)[0] for edge in edges]
    until = [_sides(counted, parts, variable, end, at, every, is_open=False) for end in ends]
    at_least, below = _reached(counted, np.stack(before), level)
    at_most, above = _reached(counted, np.stack([high for _, high in until]), level)
    is_fine = ((at_least - below <= 0.0) & (at_most + above >= 0.0)).tolist()
    if not any(is_fine):
        return None
    first, last = is_fine.index(True), len(is_fine) - 1 - is_fine[::-1].index(True)
    low, high = float(edges[first]), float(ends[last])
    passed = (_sums(counted, np.stack([low for low, _ in until]))[0] + at_most >= 0).tolist()
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
