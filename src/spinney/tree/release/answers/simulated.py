"""The noise of leaf moments: the law of a count's, and copies of all of it for certified ranks and calibrated refits.

    P(Z = z) proportional to a^max |z_i|,  a = exp(-rate):  uniform on the cube {-R..R}^k,  R = start + k+1 geometrics

as `privacy.noise.supnorm` has it, here in floats: nothing private is ever added to these draws. The generator is seeded
by the shape of the tree, which was decided before leaf noise was drawn and by other noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.errors import ParameterError
from spinney.release.answers.ranks import USUAL_DRAWS, generator_of, least_draws
from spinney.release.answers.reach import Floats, Law, NoiseSum
from spinney.tree.bins import NoisyMoments
from spinney.tree.release.reconstruct import coordinate_variance

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

    def characteristic(self, at: Floats) -> Floats:
        """E exp(i t Z) at numbers t."""
        second, fourth = _even_moments(self)
        apart = at - 2 * math.pi * np.rint(at / (2 * math.pi))
        is_near = np.abs(apart) * self.std < _NEAR
        half = np.where(is_near, 1.0, apart / 2)
        far = self._summed(np.exp(2j * half), np.exp(1j * half)).imag / np.sin(half)
        return np.where(is_near, 1 - second * apart**2 / 2 + fourth * apart**4 / 24, far)

    def log_moments(self, at: Floats) -> Floats:
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
    def variance(self) -> Floats:
        """Of the noise on a leaf's count, and on each of its sums, in rows (n_leaves,)."""
        rate = float(self._moments.rate) * self._moments.quantum
        return np.asarray(coordinate_variance(self._is_measured.sum(axis=1) + 1, rate))

    def of_counts(self, coefficients: Floats) -> NoiseSum:
        """The law of a sum over the counts of all leaves, in rows; a coefficient each."""
        n_numbers = self._is_measured.sum(axis=1) + 1
        rate, steps = float(self._moments.rate), coefficients / self._moments.quantum
        parts: list[tuple[Law, Floats]] = [
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


def sup_norm(rate: float, n_axes: int, shape: tuple[int, int], rng: np.random.Generator) -> Floats:
    """Vectors of sup-norm noise in steps (n_axes, *shape)."""
    weights = start_weights(rate, n_axes)
    reach = rng.choice(n_axes + 1, size=shape, p=weights).astype(np.float64)
    reach += rng.negative_binomial(n_axes + 1, -math.expm1(-rate), size=shape)
    wide = 2 * reach + 1
    return np.stack([np.floor(rng.random(shape) * wide) - reach for _ in range(n_axes)])


def start_weights(rate: float, n_axes: int) -> Floats:
    """P(start = j), proportional to b_j exp(-rate j) with the Eulerian numbers b_j of type B."""
    weights = eulerian(n_axes) * np.exp(-rate * np.arange(n_axes + 1))
    return np.asarray(weights / weights.sum())


def eulerian(n: int) -> Floats:
    """The Eulerian numbers b_0, ..., b_n of type B: sum over r of (2r+1)^n x^r = sum of b_j x^j / (1 - x)^(n+1)."""
    numbers = [1.0]
    for m in range(1, n + 1):
        below, above = [*numbers, 0.0], [0.0, *numbers]
        numbers = [(2 * j + 1) * below[j] + (2 * (m - j) + 1) * above[j] for j in range(m + 1)]
    return np.array(numbers)
