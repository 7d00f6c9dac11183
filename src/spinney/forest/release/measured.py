"""What a forest measured: raw noisy counts, the boxes they are of, and the exact law of their noise. RELEASED.

All of it left the mechanisms when the forest was fitted, before anything was cut, projected or fitted, so keeping it
costs no privacy. Intervals that hold whatever the rows are come straight from these numbers; models that are fitted
anew to redrawn numbers say how far the noise carries (`redraw`). Laws are simulated here by floats: this is what comes
after a release, and no private number is ever added to such a draw.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spinney.release.row_count import RowCount

Counts = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]
Law = Literal["discrete gaussian", "discrete laplace"]
Kind = Literal["real", "integer", "category", "codes", "place"]

# Up to this variance the law of Gaussian noise is tabulated; numbers beyond this many deviations never occur.
_FEW_VALUES = 4.0
_FARTHEST = 12
# From this variance on no more than exp(-pi^2 scale / 2) < 1e-21 is in the others' curves.
_SMOOTH = 10.0


@dataclass(frozen=True, slots=True)
class NoiseLaw:
    """The law of the noise on whole numbers: P(k) ~ exp(-k^2 / (2 scale)), or P(k) ~ exp(-scale |k|)."""

    law: Law
    scale: Fraction  # the variance parameter of Gaussian noise, the rate of Laplace noise

    @property
    def std(self) -> float:
        """The standard deviation, as plans state it: never below the true one, and hardly above it."""
        return math.sqrt(self.scale) if self.law == "discrete gaussian" else math.sqrt(2) / float(self.scale)

    @property
    def pole(self) -> float:
        """Up to where E exp(s Z) is finite."""
        return math.inf if self.law == "discrete gaussian" else float(self.scale)

    def characteristic(self, at: Floats) -> Floats:
        """E exp(i t Z) at numbers t."""
        scale = float(self.scale)
        if self.law == "discrete laplace":
            return np.asarray(1 / (1 + (np.sin(at / 2) / math.sinh(scale / 2)) ** 2))
        if scale < 1.0:
            values = np.arange(1, math.ceil(_FARTHEST * math.sqrt(scale)) + 2)
            chances = np.exp(-(values**2) / (2 * scale))
            return np.asarray((1 + 2 * np.cos(np.multiply.outer(at, values)) @ chances) / (1 + 2 * chances.sum()))
        # By Poisson's formula a sum of normal curves around the multiples of 2 pi; nearly all is in the nearest.
        near = at - 2 * math.pi * np.rint(at / (2 * math.pi))
        curves = np.exp(-scale / 2 * near**2)
        if scale < _SMOOTH:
            curves = curves + sum(np.exp(-scale / 2 * (near + 2 * math.pi * k) ** 2) for k in (-1, 1))
        return np.asarray(curves / (1 + 2 * math.exp(-scale / 2 * (2 * math.pi) ** 2)))

    def log_moments(self, at: Floats) -> Floats:
        """An upper bound on log E exp(s Z) at numbers s below the pole; discrete Gaussian noise is sub-Gaussian."""
        scale = float(self.scale)
        if self.law == "discrete gaussian":
            return np.asarray(scale * at**2 / 2)
        return np.asarray(-np.log1p(-((np.sinh(at / 2) / math.sinh(scale / 2)) ** 2)))

    def draw(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Counts:
        """Simulated noise of this law; for what comes after a release, never to protect a number."""
        n_draws = math.prod(size) if isinstance(size, tuple) else size
        drawn = self._gaussian(rng, n_draws) if self.law == "discrete gaussian" else self._laplace(rng, n_draws)
        return drawn.reshape(size)

    def _laplace(self, rng: np.random.Generator, n_draws: int) -> Counts:
        """The difference of two geometric numbers."""
        chance = -math.expm1(-float(self.scale))
        return np.asarray(rng.geometric(chance, n_draws) - rng.geometric(chance, n_draws), dtype=np.int64)

    def _gaussian(self, rng: np.random.Generator, n_draws: int) -> Counts:
        variance = float(self.scale)
        if variance <= _FEW_VALUES:
            reach = math.ceil(_FARTHEST * math.sqrt(variance)) + 1
            values = np.arange(-reach, reach + 1)
            chances = np.exp(-(values**2) / (2 * variance))
            return np.asarray(rng.choice(values, n_draws, p=chances / chances.sum()), dtype=np.int64)
        drawn = np.empty(n_draws, dtype=np.int64)
        n_drawn = 0
        while n_drawn < n_draws:
            # A normal number is k + u, k whole and |u| <= 1/2. With u and -u equally likely, (k, u) has a density
            # proportional to exp(-(k^2 + u^2) / (2 v)) cosh(k u / v): accepted by its inverse, k has the law wanted.
            there = math.sqrt(variance) * rng.standard_normal(n_draws - n_drawn + (n_draws - n_drawn) // 8 + 8)
            k = np.rint(there)
            u = there - k
            chances = np.exp((u * u - 0.25) / (2 * variance)) / np.cosh(k * u / variance)
            accepted = k[rng.random(len(k)) < chances][: n_draws - n_drawn]
            drawn[n_drawn : n_drawn + len(accepted)] = accepted
            n_drawn += len(accepted)
        return drawn


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredPiles:
    """Rows that lie exactly at round numbers, counted beside the leaves, where a tree has such counts."""

    noisy: Counts  # (n_piles,)
    noise: NoiseLaw
    pile: NDArray[np.int32]  # (n_leaves of the model,): which pile a leaf is, -1: none


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredColumn:
    """A column or place as it was counted: one raw count for each of its own leaves, and how these became the model's.

    The leaves of the model lie within the leaves that were counted, except for codes in a hierarchy: there every code
    was counted, and a leaf of the model is a run of codes, from `leaf` on.
    """

    kind: Kind
    noisy: Counts  # (n_counted,), as they left the mechanism
    noise: NoiseLaw
    leaf: NDArray[np.int32]  # (n_leaves of the model,): the counted leaf that each lies in, ascending
    possible: NDArray[np.bool_]  # (n_leaves of the model,): False where rules leave no row
    piles: MeasuredPiles | None = None
    groups: tuple[Counts, ...] = ()  # of codes: the groups of their hierarchy, level by level; the same noise
    given_depth: int = 0  # of places: regions of no greater depth were made whatever they hold

    @property
    def sum(self) -> tuple[float, float]:
        """The number of rows by the counts that tell it best, and the variance of its noise."""
        counts = self.groups[0] if self.groups else self.noisy
        return float(counts.sum()), len(counts) * self.noise.std**2


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredTable:
    """A table of some columns as it was counted: which boxes, and their raw counts."""

    columns: tuple[int, ...]  # variables by number, ascending
    labels: NDArray[np.int32] | None  # the box of every cell, in C order; -1: none, by rules; None: each cell its own
    noisy: Counts  # (n_boxes,)
    noise: NoiseLaw
    stage: str


@dataclass(frozen=True, slots=True)
class TiltFit:
    """How the tilt was fitted to sums of products."""

    n_drawn: int
    steps: int
    held_std: float  # how far sums of pairs that were counted may move


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """All that was counted, and what else the last fit of the model knew."""

    columns: tuple[MeasuredColumn | None, ...]  # a variable each; None: nothing was counted
    tables: tuple[MeasuredTable, ...]  # in the order of counting
    total: float  # the number of rows, or a noisy one, that weights add up to
    row_count: RowCount | None  # a noisy number of rows, where one was bought
    regularization: float
    steps: int
    tilt: TiltFit | None = None
    is_near_counts: bool = False  # whether ranges of leaves weigh about what was counted there; not in older files

    def tables_of(self, columns: tuple[int, ...]) -> list[MeasuredTable]:
        """The tables that hold all these variables."""
        return [table for table in self.tables if set(columns) <= set(table.columns)]
