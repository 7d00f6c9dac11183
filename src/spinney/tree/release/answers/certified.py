"""Certified intervals of a tree: they hold with the stated probability over the noise, whatever the rows are.

Every answer is a test of linear functions (`bounds`). What counts of leaves alone have for noise follows from its law
(`reach`); with sums of offsets it is ranked among copies of itself (`ranks`). A count is one function below and one
above. A mean, a share and a quantile are ratios: each is the set of values m that are not
refuted by the sum over rows of a function of m, which at the true m is 0 (Fieller, Woodruff). Where the number of rows
is public, what the known total explains of the noise is taken away. Proof: release/answers/ranks.proof.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney.release.answers.products import product
from spinney.release.answers.ranks import rank_half_width, simultaneous_half_widths
from spinney.release.answers.reach import level_of_each, whole_rows
from spinney.tree.bins import NoisyMoments
from spinney.tree.release.answers.bounds import Bracket, Linear
from spinney.tree.release.answers.leaves import Floats
from spinney.tree.release.answers.simulated import SimulatedNoise

# Values that a ratio is tested at in one go, and how often an end is looked at more closely.
_POINTS = 32
_ZOOMS = 5

# At values m (n,): a noisy bound on a sum over rows (n,), and copies of its noise (n, n_draws).
Test = Callable[[Floats], tuple[Floats, Floats]]


class Interval(NamedTuple):
    """Two ends."""

    low: float
    high: float


class Certifier:
    """Measures linear functions of a release: their noisy value, and copies of their noise."""

    def __init__(self, moments: NoisyMoments, noise: SimulatedNoise, n_rows: int | None) -> None:
        self.n_rows = n_rows
        self.noise = noise
        self._moments = moments
        self._steps = moments.noisy_steps / moments.quantum
        self._n_axes = moments.lattice.n_axes
        self._excess = 0.0 if n_rows is None else float(self._steps[:, 0].sum()) - n_rows
        self._all_variance = float(noise.variance.sum())

    def measured(self, linear: Linear, level: float) -> tuple[float, Floats]:
        """The noisy value of a function, and copies of its noise (n_draws,)."""
        coefficients = np.column_stack([linear.of_count, linear.of_sums])
        which, place = np.nonzero(coefficients)
        rows = linear.leaves[which] * (1 + self._n_axes) + place
        copies = self.noise.copies(level)
        drawn = coefficients[which, place].astype(np.float32) @ copies[rows] if len(rows) else np.zeros(copies.shape[1])
        share = self._explained(linear)
        return self.value(linear), np.asarray(drawn, dtype=np.float64) - share * self.noise.totals(level)

    def measured_each(self, linear: Linear, level: float) -> tuple[Floats, NDArray[np.float32]]:
        """The part of every leaf of a function: noisy values (n,), and copies of their noise (n, n_draws)."""
        steps = self._steps[linear.leaves]
        value = linear.of_count * steps[:, 0] + (linear.of_sums * steps[:, 1:]).sum(axis=1)
        copies = self.noise.copies(level)
        drawn = np.zeros((len(linear.leaves), copies.shape[1]), dtype=np.float32)
        for place in range(1 + self._n_axes):
            factors = linear.of_count if place == 0 else linear.of_sums[:, place - 1]
            used = np.flatnonzero(factors)
            if len(used):
                rows = linear.leaves[used] * (1 + self._n_axes) + place
                drawn[used] += factors[used, None].astype(np.float32) * copies[rows]
        if self.n_rows is not None:
            shares = linear.of_count * self.noise.variance[linear.leaves] / self._all_variance
            value = value - shares * self._excess
            drawn -= shares[:, None].astype(np.float32) * self.noise.totals(level)
        return np.asarray(value), drawn

    def value(self, linear: Linear) -> float:
        """The noisy value of a function, less what the known total explains of its noise."""
        steps = self._steps[linear.leaves]
        value = float(linear.of_count @ steps[:, 0] + (linear.of_sums * steps[:, 1:]).sum())
        return value - self._explained(linear) * self._excess

    def of_counts(self, linear: Linear) -> Floats | None:
        """The coefficients of all leaves' counts by which a function's noise goes; None where sums are in it."""
        if linear.of_sums.any():
            return None
        coefficients = np.full(len(self._steps), -self._explained(linear))
        coefficients[linear.leaves] += linear.of_count
        return coefficients

    def scale(self, linear: Linear) -> float:
        """The standard deviation of a function's noise, by its law."""
        variance = self.noise.variance[linear.leaves]
        share = self._explained(linear)
        spread = float((variance * (linear.of_count**2 + (linear.of_sums**2).sum(axis=1))).sum())
        return math.sqrt(max(spread - share**2 * self._all_variance, 0.0))

    def _explained(self, linear: Linear) -> float:
        """How much of the noise on the sum of all counts, which is known where the total is, a function has in it."""
        if self.n_rows is None:
            return 0.0
        return float(linear.of_count @ self.noise.variance[linear.leaves]) / self._all_variance


def counts(
    certifier: Certifier, brackets: list[Bracket], level: float, *, simultaneous: bool = False
) -> list[Interval]:
    """How many rows lie in regions: whole numbers, from 0 to all rows."""
    sides = [side for found in brackets for side in (found.lower, found.upper)]
    values = [certifier.value(side) for side in sides]
    lines = [certifier.of_counts(side) for side in sides]
    if not simultaneous:
        reach = [
            float(rank_half_width(certifier.measured(side, level)[1], level))
            if line is None
            else certifier.noise.of_counts(line).reach(level)
            for side, line in zip(sides, lines, strict=True)
        ]
    elif len(plain := [line for line in lines if line is not None]) == len(sides):
        each = level_of_each(np.stack(plain), level)
        reach = [certifier.noise.of_counts(line).reach(each) for line in plain]
    else:
        drawn = np.stack([certifier.measured(side, level)[1] for side in sides], axis=1)
        reach = simultaneous_half_widths(drawn, np.array([certifier.scale(side) for side in sides]), level).tolist()
    most = math.inf if certifier.n_rows is None else certifier.n_rows
    found = []
    for k in range(0, len(sides), 2):
        low, high = values[k] - reach[k], values[k + 1] + reach[k + 1]
        usual = reach[k] - certifier.scale(sides[k]), reach[k + 1] - certifier.scale(sides[k + 1])
        found.append(Interval(*whole_rows(low, high, most, usual=usual)))
    return found


def ratio(below: Test, above: Test, grid: Floats, level: float) -> Interval:
    """All m on a grid's stretch at which a sum over rows that falls with m may be 0, by bounds on it from both sides.

    Between neighbours on the grid both must be linear in m: there the noise at m lies between the noise at its two
    neighbours, so a stretch is left out only where the larger of the two refutes all of it.
    """
    high = _end(above, grid, level)
    low = -_end(lambda m: _mirrored(below, m), -grid[::-1], level)
    return Interval(min(low, high), max(low, high))


def _mirrored(test: Test, m: Floats) -> tuple[Floats, Floats]:
    value, noise = test(-m)
    return -value, noise


def _end(above: Test, grid: Floats, level: float) -> float:
    """Where the last stretch ends on which a sum may reach 0 from below."""
    for zoom in range(_ZOOMS):
        value, noise = above(grid)
        size = np.abs(noise)
        reach = rank_half_width(np.maximum(size[:-1], size[1:]).T, level)
        open_ = np.flatnonzero(np.maximum(value[:-1], value[1:]) + reach >= 0)
        if not len(open_):
            return float(grid[0])
        last = int(open_[-1])
        if zoom == _ZOOMS - 1 or grid[last + 1] == grid[last]:
            break
        grid = np.linspace(grid[last], grid[last + 1], _POINTS)
    return float(grid[last + 1])


def share(certifier: Certifier, part: Bracket, whole: Bracket, level: float) -> Interval:
    """The share p of rows in one region among those in another that holds it: sum of 1[part] - p 1[whole]."""
    grid = np.linspace(0.0, 1.0, _POINTS + 1)

    def test(of_part: Linear, of_whole: Linear) -> Test:
        (a, drawn_a), (b, drawn_b) = certifier.measured(of_part, level), certifier.measured(of_whole, level)
        return lambda p: (a - p * b, drawn_a - drawn_b * p[:, None])

    return ratio(test(part.lower, whole.upper), test(part.upper, whole.lower), grid, level)


class ValueLines(NamedTuple):
    """Of leaves, bounds on a column's values: mid + half u + [below, above], and least and largest in the region."""

    mid: Floats
    half: Floats
    below: Floats
    above: Floats
    least: Floats
    largest: Floats


def mean(certifier: Certifier, found: Bracket, lines: ValueLines, axis: int, level: float) -> Interval:
    """The mean m of a column over a region: sum over its rows of (x - m).

    Rows of leaves inside have x by a line in their offset. Rows of a leaf that is cut may be in the region or not, so
    their part lies between min(0, least - m) and max(0, largest - m) times the upper bound on their number.
    """
    n = found.n_inside
    ends = float(lines.least.min()), float(lines.largest.max())
    if ends[0] == ends[1]:
        return Interval(*ends)
    inside, cut = found.upper.restricted(np.arange(len(found.upper.leaves)) < n), np.arange(n, len(lines.mid))
    of_cut = Linear(found.upper.leaves[cut], found.upper.of_count[cut], found.upper.of_sums[cut])
    cut_value, cut_noise = certifier.measured_each(of_cut, level)
    count, count_noise = certifier.measured(inside, level)

    def test(slack: Floats, corner: Floats, sign: float) -> Test:
        sums = np.zeros_like(inside.of_sums)
        sums[:, axis] = lines.half[:n]
        whole, whole_noise = certifier.measured(Linear(inside.leaves, (lines.mid + slack)[:n], sums), level)

        def at(m: Floats) -> tuple[Floats, Floats]:
            weights = sign * np.maximum(sign * (corner[:, None] - m), 0.0)  # (n_cut, n)
            value = whole - m * count + cut_value @ weights
            noise = whole_noise - count_noise * m[:, None]
            return value, noise + product(weights.T.astype(np.float32), cut_noise)

        return at

    base = np.linspace(*ends, _POINTS + 1)
    joints = np.unique(np.concatenate([lines.least[cut], lines.largest[cut], base]))
    joints = (
        joints
        if len(joints) <= 4 * _POINTS
        else np.unique(np.concatenate([joints[:: len(joints) // (3 * _POINTS)], base]))
    )
    # Corners move outward to the grid, so that between its points all is linear in m.
    up = joints[np.minimum(np.searchsorted(joints, lines.largest[cut]), len(joints) - 1)]
    down = joints[np.maximum(np.searchsorted(joints, lines.least[cut], side="right") - 1, 0)]
    return ratio(test(lines.below, down, -1.0), test(lines.above, up, 1.0), joints, level)


def quantile(below: Test, above: Test, grid: Floats, ends: tuple[float, float], level: float) -> Interval:
    """Where a share q of rows ends: by sum of 1[x <= t] - q at values t of a grid, which grows with t.

    The quantile lies above the last t at which the sum is below 0, and at or below the first at which it is not: the
    interval reaches from the one before the first t that is not refuted to be large enough, to the first after the last
    that is not refuted to be too small.
    """
    (low, low_noise), (high, high_noise) = below(grid), above(grid)
    may_be_enough = np.flatnonzero(high + rank_half_width(high_noise.T, level) >= 0)
    may_be_few = np.flatnonzero(low - rank_half_width(low_noise.T, level) < 0)
    first = int(may_be_enough[0]) if len(may_be_enough) else len(grid)
    last = int(may_be_few[-1]) if len(may_be_few) else -1
    start = float(grid[first - 1]) if first > 0 else ends[0]
    stop = float(grid[last + 1]) if last + 1 < len(grid) else ends[1]
    return Interval(min(start, stop), max(start, stop))
