"""What a forest measured: raw noisy counts, the boxes they are of, and the exact law of their noise. RELEASED.

All of it left the mechanisms when the forest was fitted, before anything was cut, projected or fitted, so
storing it costs no privacy. Certified intervals come straight from these numbers (`certify`); models that are
fitted anew to redrawn numbers say how far the noise carries (`fit`). Laws are simulated here by floats: this is
what comes after a release, and no private number is ever added to such a draw.

    (first)        laws of noise, measured columns and tables, and all of them together
    consistency    numbers of a file that have to agree, but for noise of a known size
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from spinney.forest.release.grain import Steps
from spinney.privacy.budget import Unit
from spinney.privacy.mechanisms import Distribution, Tables
from spinney.release.card import RowCount, check
from spinney.text import brief

if TYPE_CHECKING:
    from spinney.forest.release.model import ForestRelease


Counts = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]
Kind = Literal["real", "integer", "category", "codes", "place"]
# How the weights of a number follow from its counts: leaf by leaf, as in the oldest files; with ranges of leaves near
# what was counted there, too; with sentinels believed by a limit of their own,
# too; with rows far out as many as intervals of 95 % have, too, as of late.
WeightsRule = Literal["leaves", "ranges", "sentinels", "tails"]

# Up to this variance the law of Gaussian noise is tabulated; numbers beyond this many deviations never occur.
_FEW_VALUES = 4.0
_FARTHEST = 12
# From this variance on no more than exp(-pi^2 scale / 2) < 1e-21 is in the others' curves.
_SMOOTH = 10.0


@dataclass(frozen=True, slots=True)
class NoiseLaw:
    """The law of the noise on whole numbers: P(k) ~ exp(-k^2 / (2 scale)), or P(k) ~ exp(-scale |k|)."""

    law: Distribution
    scale: Fraction  # the variance parameter of Gaussian noise, the rate of Laplace noise

    @classmethod
    def of(cls, mechanism: Tables, unit: Unit) -> NoiseLaw:
        """The law of the noise that a mechanism adds to a count; of weighted rows, in units."""
        return cls(mechanism.distribution, mechanism.scale(unit))

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
class MeasuredGrain:
    """Rows in each class of the steps that a column's values come in (`grid/grain`), null last where it may be."""

    noisy: Counts  # (n_classes,)
    noise: NoiseLaw


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
    grain: MeasuredGrain | None = None  # not in older files

    @property
    def steps(self) -> Steps | None:
        """What its grain says, as weights of leaves and places inside them follow from it."""
        if self.grain is None:
            return None
        pile_std = 0.0 if self.piles is None else self.piles.noise.std
        noisy, leaf = self.grain.noisy.astype(np.float64), self.leaf.astype(np.int64)
        return Steps(noisy, self.grain.noise.std, self.noise.std, pile_std, leaf)

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
    doubtful: tuple[int, ...] = ()  # boxes that are taken to be empty unless they stand out


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
    weights_rule: WeightsRule = "leaves"

    def tables_of(self, columns: tuple[int, ...]) -> list[MeasuredTable]:
        """The tables that hold all these variables."""
        return [table for table in self.tables if set(columns) <= set(table.columns)]


# ---------------------------------------------------------------------------------------------------------- consistency
# Numbers of a forest's file that follow from each other but for noise of a known size, or that name what it is.
#
# A total and a bought count of rows are of one table, and so are a total and sums of signs over all rows: they differ
# by noise, and by more than many standard deviations of it in no file that a fit wrote. The structure is one that a
# design can have, with the stages that it counts, and what a vector of sums was charged for is there.


_STRUCTURES = ("rounds", "tree", "target", "independent", "uniform")
# Noise beyond so many standard deviations is drawn once in 10^15 times or more rarely, be it Laplace or Gaussian.
MOST_DEVIATIONS = 25.0
# Leaves that were counted, beside those in the file: some are joined before they are written.
_MORE_LEAVES = 4096


def check_structure(release: ForestRelease) -> None:
    """The plan names a structure that a forest can have, and the charges are for the tables of this one."""
    card, paid = release.card, release.card.stages
    structure, target = card.design["structure"], card.parameters.get("target")
    known = isinstance(structure, str) and structure in _STRUCTURES
    check(known, f"structure {brief(structure)} is none of {', '.join(_STRUCTURES)}")
    is_joined = structure in ("rounds", "tree")
    check(("cliques" in paid) == is_joined, f"a forest of structure {structure} has other tables than were paid for")
    with_target = target is not None and (is_joined or structure == "target")
    is_same = ("pairs" in paid) == with_target
    check(is_same, f"a forest of structure {structure} has other tables of the target than were paid for")
    is_slow = structure != "rounds" or card.parameters.get("quality", "high") != "fast"
    check(is_slow, "columns were chosen in rounds, which quality='fast' does not do")


def check_totals(release: ForestRelease) -> None:
    """The total is that of the noisy count, but for noise; where nothing else was counted, it follows from it."""
    count, total = release.card.row_count, release.noisy_total
    if count is None:
        return
    if release.card.structure == "uniform" and "classes" not in release.card.stages:
        # Releases from before took the number that plans take.
        is_told = any(abs(total - number) <= 1 + 1e-6 * number for number in (count.drawn, count.expected))
        check(is_told, f"noisy_total is {total}, and the noisy count of rows gives {count.drawn}")
        return
    slack = MOST_DEVIATIONS * count.noise_std + slack_of_total(release)
    check(abs(total - count.noisy) <= slack, f"noisy_total is {total}, and the noisy count of rows is {count.noisy}")


def check_sums(release: ForestRelease, n_charged: int) -> None:
    """What a vector was charged for is there; no sum of signs is larger than the number of rows, but for noise."""
    products = release.products
    if products is None:
        sizes = release.model.tree.sizes
        several = [number for number, size in enumerate(sizes) if size > 1]
        missing = set(combinations(several, 2)).difference(release.counted_pairs)
        check(not (n_charged and missing), "a vector of sums was charged for, and the file holds none")
        return
    slack = MOST_DEVIATIONS * math.sqrt(products.variance) + slack_of_total(release)
    largest = max((int(np.abs(sums).max()) for sums in products.sums if sums.size), default=0)
    check(largest <= release.noisy_total + slack, "a sum of signs is larger than the number of rows and noise allow")


def slack_of_total(release: ForestRelease) -> float:
    """By how much the columns' sums may be off: nothing where the number of rows is public."""
    if release.card.n_rows is not None:
        return 0.0
    deviations = [release.card.noise_std(stage) for stage in ("one-way", "places", "classes")]
    n_leaves = max(len(model.states) for model in release.columns.values()) if release.columns else 0
    n_regions = max(len(place.states) for place in release.places.values()) if release.places else 0
    count = release.card.row_count
    bought = 0.0 if count is None else count.noise_std
    return MOST_DEVIATIONS * (max(deviations) * math.sqrt(n_leaves + n_regions + _MORE_LEAVES) + bought) + 1.0
