"""Certified intervals of a tree: linear functions of what leaves measured, and the noise in them. PUBLIC.

Functions are chosen by geometry (`regions`), never by a noisy count; `release/answers/certify` makes intervals of them.
Proofs: release/answers/ranks.proof.md and reach.proof.md.

    simulated noise         the law of the noise, and copies of it
    certified intervals     counts, shares and means
    quantiles               bounds on rows at or below many values at once
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.errors import ParameterError
from spinney.release.answers.certify import (
    Between,
    NoisySum,
    SumByCopies,
    SumByLaw,
    candidates,
    counts_between,
    quantile_between,
    ratio_between,
)
from spinney.release.answers.ranks import USUAL_DRAWS, generator_of, least_draws, product
from spinney.release.answers.reach import Law, NoiseSum, Reals
from spinney.release.verify import eulerian
from spinney.schema.rules.base import ValueSet, universe
from spinney.schema.schema import Schema
from spinney.tree.bins import NoisyMoments
from spinney.tree.release.density import coordinate_variance
from spinney.tree.release.regions import (
    Bracket,
    Floats,
    LeafValues,
    Leaves,
    Linear,
    Parts,
    Region,
    at_or_below,
    bracket,
    joined,
    parts_of,
)

# ------------------------------------------------------------------------------------------------------ simulated noise
# The noise of leaf moments: the law of a count's, and copies of all of it for certified ranks and calibrated refits.
#
#     P(Z = z) proportional to a^max |z_i|,  a = exp(-rate):  uniform on the cube {-R..R}^k,  R = start + k+1 geometrics
#
# as `privacy.noise.supnorm` has it, here in floats: nothing private is ever added to these draws. The generator is
# seeded by the shape of the tree, which was decided before leaf noise was drawn and by other noise.


# Numbers that are kept at most: 160 MB of them.
_MOST_NUMBERS = 4e7
_FEWEST_DRAWS = 499
# Numbers that are drawn at once.
_BLOCK = 1 << 20


# Where numbers are this close to 0, in standard deviations, characteristic functions are taken from their moments.
_NEAR = 1e-2
# More than what rounding takes from the logarithm of a moment.
_ROUNDING = 1e-10
# A reach beyond so many of its usual parts never occurs.
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class CountNoise:
    """The law of the noise on one number of a leaf that has so many, in steps: what `reach` needs of it.

    P(R = r) ~ n^k a^r with n = 2r + 1, and a number uniform in -R..R has E exp(i t Z) = sin(n t / 2) / (n sin(t / 2)).
    Sums of n^p z^r are rational functions of z, with the Eulerian numbers of type B.
    """

    rate: float
    n_numbers: int

    @property
    def std(self) -> float:
        return math.sqrt(_even_moments(self)[0])

    @property
    def pole(self) -> float:
        return self.rate

    def characteristic(self, at: Reals) -> Reals:
        """E exp(i t Z) at numbers t."""
        second, fourth = _even_moments(self)
        apart = at - 2 * math.pi * np.rint(at / (2 * math.pi))
        is_near = np.abs(apart) * self.std < _NEAR
        half = np.where(is_near, 1.0, apart / 2)
        far = self._summed(np.exp(2j * half), np.exp(1j * half)).imag / np.sin(half)
        return np.where(is_near, 1 - second * apart**2 / 2 + fourth * apart**4 / 24, far)

    def log_moments(self, at: Reals) -> Reals:
        """An upper bound on log E exp(s Z) at numbers s below the pole."""
        half = np.asarray(at, dtype=np.float64) / 2
        found = (self._summed(np.exp(2 * half), np.exp(half)) - self._summed(np.exp(-2 * half), np.exp(-half))) / 2
        return np.asarray(np.log(np.maximum(found / np.sinh(half), 1.0)) + _ROUNDING)

    def _summed(self, squared: NDArray[Any], root: NDArray[Any]) -> NDArray[Any]:
        """Sum over r of P(R = r) / n times root^n, where squared = root^2."""
        k, a = self.n_numbers, math.exp(-self.rate)
        whole = np.polynomial.polynomial.polyval(a, eulerian(k)) / (1 - a) ** (k + 1)
        return np.asarray(
            root * np.polynomial.polynomial.polyval(a * squared, eulerian(k - 1)) / (1 - a * squared) ** k / whole
        )


@lru_cache
def _even_moments(law: CountNoise) -> tuple[float, float]:
    """E Z^2 and E Z^4, summed over the reach."""
    r = np.arange(math.ceil((law.n_numbers + _LONGEST) / law.rate) + 2, dtype=np.float64)
    logs = law.n_numbers * np.log(2 * r + 1) - law.rate * r
    chances = np.exp(logs - logs.max())
    chances /= chances.sum()
    return float(chances @ (r * (r + 1) / 3)), float(chances @ (r * (r + 1) * (3 * r**2 + 3 * r - 1) / 15))


class SimulatedNoise:
    """Copies of the noise on all leaves, drawn when they are first needed and kept."""

    def __init__(self, moments: NoisyMoments, is_measured: NDArray[np.bool_]) -> None:
        self._moments = moments
        self._is_measured = is_measured
        self._kept: dict[int, NDArray[np.float32]] = {}
        self._totals: dict[int, NDArray[np.float32]] = {}

    @cached_property
    def variance(self) -> Reals:
        """Of the noise on a leaf's count, and on each of its sums, in rows (n_leaves,)."""
        rate = float(self._moments.rate) * self._moments.quantum
        return np.asarray(coordinate_variance(self._is_measured.sum(axis=1) + 1, rate))

    def of_counts(self, coefficients: Reals) -> NoiseSum:
        """The law of a sum over the counts of all leaves, in rows; a coefficient each."""
        n_numbers = self._is_measured.sum(axis=1) + 1
        rate, steps = float(self._moments.rate), coefficients / self._moments.quantum
        parts: list[tuple[Law, Reals]] = [
            (CountNoise(rate, int(n)), steps[n_numbers == n]) for n in np.unique(n_numbers)
        ]
        return NoiseSum(parts)

    def n_draws(self, level: float) -> int:
        """How many copies a level is ranked among: by memory, and no fewer than the level needs."""
        n_numbers = self._is_measured.shape[0] * (1 + self._is_measured.shape[1])
        least = least_draws(level)
        wanted = max(least, int(min(USUAL_DRAWS, max(_FEWEST_DRAWS, _MOST_NUMBERS / n_numbers))))
        if wanted * n_numbers > 4 * _MOST_NUMBERS:
            if least * n_numbers > 4 * _MOST_NUMBERS:
                raise ParameterError(
                    f"statement='certified' redraws the noise of all {len(self._is_measured):,} leaves {least:,} times "
                    f"for level={level:g}, more than memory is kept for; ask for a lower level, or for "
                    "statement='calibrated'"
                )
            wanted = least
        return wanted

    def copies(self, level: float) -> NDArray[np.float32]:
        """Noise in rows (n_leaves * (1 + n_axes), n_draws): of a leaf its count, then its sums."""
        n_draws = self.n_draws(level)
        if n_draws not in self._kept:
            moments = self._moments
            rng = generator_of(moments.codes, moments.depths, str(moments.rate), "ranks", n_draws)
            self._kept[n_draws] = draw_noise(self._is_measured, moments, n_draws, rng)
        return self._kept[n_draws]

    def totals(self, level: float) -> NDArray[np.float32]:
        """The noise on the sum of all counts (n_draws,)."""
        copies = self.copies(level)
        n_draws = copies.shape[1]
        if n_draws not in self._totals:
            counts = copies[:: 1 + self._is_measured.shape[1]]
            self._totals[n_draws] = counts.sum(axis=0, dtype=np.float64).astype(np.float32)
        return self._totals[n_draws]


def draw_noise(
    is_measured: NDArray[np.bool_], moments: NoisyMoments, n_draws: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Simulated noise in rows (n_leaves * (1 + n_axes), n_draws); 0 where nothing was measured."""
    n_leaves, n_axes = is_measured.shape
    drawn = np.zeros((n_leaves, 1 + n_axes, n_draws), dtype=np.float32)
    n_measured = is_measured.sum(axis=1)
    for n in np.unique(n_measured):
        chosen = np.flatnonzero(n_measured == n)
        size = max(1, _BLOCK // (n_draws * (int(n) + 1)))
        for start in range(0, len(chosen), size):
            leaves = chosen[start : start + size]
            noise = sup_norm(float(moments.rate), int(n) + 1, (len(leaves), n_draws), rng) / moments.quantum
            drawn[leaves, 0] = noise[0]
            rows, axes = np.nonzero(is_measured[leaves])
            order = np.arange(len(rows)) % max(int(n), 1)
            drawn[leaves[rows], axes + 1] = noise[1 + order, rows]
    return drawn.reshape(n_leaves * (1 + n_axes), n_draws)


def sup_norm(rate: float, n_axes: int, shape: tuple[int, int], rng: np.random.Generator) -> Reals:
    """Vectors of sup-norm noise in steps (n_axes, *shape)."""
    weights = start_weights(rate, n_axes)
    reach = rng.choice(n_axes + 1, size=shape, p=weights).astype(np.float64)
    reach += rng.negative_binomial(n_axes + 1, -math.expm1(-rate), size=shape)
    wide = 2 * reach + 1
    return np.stack([np.floor(rng.random(shape) * wide) - reach for _ in range(n_axes)])


def start_weights(rate: float, n_axes: int) -> Reals:
    """P(start = j), proportional to b_j exp(-rate j) with the Eulerian numbers b_j of type B."""
    weights = np.array(eulerian(n_axes), dtype=np.float64) * np.exp(-rate * np.arange(n_axes + 1))
    return np.asarray(weights / weights.sum())


# -------------------------------------------------------------------------------------------------- certified intervals
# Certified intervals of a tree: they hold with the stated probability over the noise, whatever the rows are.
#
# Every answer is a test of linear functions (`bracket`). The noise of counts of leaves alone follows from its
# law (`reach`); with sums of offsets it is ranked among copies of itself (`ranks`). A count is one function
# below and one above. A mean, a share and a quantile are ratios: each is the set of values m that are not
# refuted by the sum over rows of a function of m, which at the true m is 0 (Fieller, Woodruff). Where the
# number of rows is public, the part of the noise that the known total explains is taken away. Proof:
# release/answers/ranks.proof.md.


# Values that a ratio is tested at at first, and values of a column that a quantile is looked for at.
_POINTS = 32
_MOST_VALUES = 48


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
        which, place = np.nonzero(linear.factors)
        rows = linear.leaves[which] * (1 + self._n_axes) + place
        copies = self.noise.copies(level)
        drawn = (
            linear.factors[which, place].astype(np.float32) @ copies[rows] if len(rows) else np.zeros(copies.shape[1])
        )
        share = self._explained(linear)
        return self.value(linear), np.asarray(drawn, dtype=np.float64) - share * self.noise.totals(level)

    def measured_each(self, linear: Linear, level: float) -> tuple[Floats, NDArray[np.float32]]:
        """The part of every leaf of a function: noisy values (n,), and copies of their noise (n, n_draws)."""
        steps = self._steps[linear.leaves]
        value = linear.of_count * steps[:, 0] + (linear.of_sums * steps[:, 1:]).sum(axis=1)
        copies = self.noise.copies(level)
        drawn = np.zeros((len(linear.leaves), copies.shape[1]), dtype=np.float32)
        for place in range(1 + self._n_axes):
            factors = linear.factors[:, place]
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

    def by_law(self, linear: Linear) -> SumByLaw | None:
        """A function of counts alone, whose noise has a law with a short formula; None where sums are in it."""
        if linear.of_sums.any():
            return None
        coefficients = np.full(len(self._steps), -self._explained(linear))
        coefficients[linear.leaves] += linear.of_count
        return SumByLaw(self.value(linear), coefficients, self.noise.of_counts)

    def by_copies(self, linear: Linear, level: float) -> SumByCopies:
        """A function, whose noise is ranked among copies of itself."""
        value, copies = self.measured(linear, level)
        return SumByCopies(value, copies, self.scale(linear))

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
    certifier: Certifier, brackets: Sequence[Bracket], level: float, *, simultaneous: bool = False
) -> list[Between]:
    """How many rows lie in regions: whole numbers, from 0 to all rows."""
    sides = [side for found in brackets for side in (found.lower, found.upper)]
    laws = [certifier.by_law(side) for side in sides]
    needs_copies = simultaneous and None in laws  # all are ranked together
    sums: list[NoisySum] = [
        certifier.by_copies(side, level) if law is None or needs_copies else law
        for side, law in zip(sides, laws, strict=True)
    ]
    pairs = list(zip(sums[::2], sums[1::2], strict=True))
    return counts_between(pairs, certifier.n_rows, level, at_once=simultaneous)


def share(certifier: Certifier, part: Bracket, whole: Bracket, level: float) -> Between | None:
    """The share p of rows in one region among those in another that holds it: sum of 1[part] - p 1[whole]."""
    grid = np.linspace(0.0, 1.0, _POINTS + 1)

    def bound(of_part: Linear, of_whole: Linear) -> list[SumByCopies]:
        (a, drawn_a), (b, drawn_b) = certifier.measured(of_part, level), certifier.measured(of_whole, level)
        return candidates(grid, a - grid * b, drawn_a - drawn_b * grid[:, None])

    return ratio_between(bound(part.lower, whole.upper), bound(part.upper, whole.lower), level)


def mean(certifier: Certifier, found: Bracket, lines: LeafValues, axis: int, level: float) -> Between | None:
    """The mean m of a column over a region: sum over its rows of (x - m).

    Rows of leaves inside have x by a line in their offset. Rows of a leaf that is cut may be in the region or not, so
    their part lies between min(0, least - m) and max(0, largest - m) times the upper bound on their number.
    """
    n = found.n_inside
    ends = float(lines.least.min()), float(lines.largest.max())
    inside, cut = found.upper.some(slice(n)), np.arange(n, len(lines.mid))
    cut_value, cut_noise = certifier.measured_each(found.upper.some(slice(n, None)), level)
    count, count_noise = certifier.measured(inside, level)
    base = np.linspace(*ends, _POINTS + 1)
    joints = np.unique(np.concatenate([lines.least[cut], lines.largest[cut], base]))
    if len(joints) > 4 * _POINTS:
        joints = np.unique(np.concatenate([joints[:: len(joints) // (3 * _POINTS)], base]))

    def bound(slack: Floats, corner: Floats, sign: float) -> list[SumByCopies]:
        factors = np.zeros_like(inside.factors)
        factors[:, 0], factors[:, 1 + axis] = (lines.mid + slack)[:n], lines.half[:n]
        whole, whole_noise = certifier.measured(Linear(inside.leaves, factors), level)
        weights = sign * np.maximum(sign * (corner[:, None] - joints), 0.0)  # (n_cut, n)
        noise = whole_noise - count_noise * joints[:, None] + product(weights.T.astype(np.float32), cut_noise)
        return candidates(joints, whole - joints * count + cut_value @ weights, noise)

    # Corners move outward to the grid, so that between its points all is linear in m.
    up = joints[np.minimum(np.searchsorted(joints, lines.largest[cut]), len(joints) - 1)]
    down = joints[np.maximum(np.searchsorted(joints, lines.least[cut], side="right") - 1, 0)]
    return ratio_between(bound(lines.below, down, -1.0), bound(lines.above, up, 1.0), level)


# ------------------------------------------------------------------------------------------------------------ quantiles
# Certified quantiles: bounds on how many rows of a region lie at or below values of a column, for many values at
# once.
#
# Leaves that lie wholly below a value are added up once, in the order of the values; only those that the value cuts
# are bounded anew for each. From this the share q of the bounds on all rows of the region is taken away.


def quantile(
    certifier: Certifier,
    leaves: Leaves,
    moments: NoisyMoments,
    schema: Schema,
    axis: int,
    at: float,
    region: Region,
    found: Bracket,
    lines: LeafValues,
    level: float,
) -> Between | None:
    """Where a share q of a region's rows ends: by sums of 1[x <= t] - q at values t of a column, which grow with t."""
    column = schema[moments.lattice.axes[axis].name]
    least = universe(column)[0]
    asked = leaves.some(found.upper.leaves)
    ends = float(lines.least.min()), float(lines.largest.max())
    grid = np.unique(np.concatenate([lines.least, lines.largest, ends]))
    if len(grid) > _MOST_VALUES:
        grid = grid[np.unique(np.linspace(0, len(grid) - 1, _MOST_VALUES).astype(np.int64))]
    grid = np.unique([float(at_or_below(column, value)) for value in grid])

    @cache
    def cuts(t: float) -> tuple[NDArray[np.int8], Bracket]:
        below = {axis: ValueSet(((least, at_or_below(column, t)),))}
        parts = parts_of(asked, below, schema, moments)
        state = np.zeros(len(asked), dtype=np.int8)
        state[parts.inside], state[parts.cut] = 2, 1
        chosen = found.upper.leaves[state == 1]
        both = parts_of(leaves.some(chosen), joined(region, below), schema, moments)
        return state, bracket(leaves, Parts(chosen[both.inside], chosen[both.cut], both.along))

    def bounds(side: str, whole: Linear, other: Linear) -> list[SumByCopies]:
        each, each_noise = certifier.measured_each(whole, level)
        all_rows, all_noise = certifier.measured(other, level)
        sums, before = [], np.zeros(len(each), dtype=np.bool_)
        so_far, so_far_noise = 0.0, np.zeros(len(all_noise))
        for top in grid.tolist():
            state, cut = cuts(top)
            fresh = (state == 2) & ~before
            before |= fresh
            so_far += float(each[fresh].sum())
            so_far_noise = so_far_noise + each_noise[fresh].sum(axis=0)
            part, part_noise = certifier.measured(getattr(cut, side), level)
            sums.append(SumByCopies(so_far + part - at * all_rows, so_far_noise + part_noise - at * all_noise))
        return sums

    below, until = bounds("lower", found.lower, found.upper), bounds("upper", found.upper, found.lower)
    stretch = quantile_between([None, *below], [*until, None], level)
    if stretch is None:
        return None
    low, high = [ends[0], *grid.tolist()][stretch[0]], [*grid.tolist(), ends[1]][stretch[1]]
    return Between(min(low, high), min(low, high), max(low, high), is_cut=True)
