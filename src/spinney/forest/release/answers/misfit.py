"""Misfit: how far the released law of two columns that were not counted together may be from that of the rows.

The sums of products that were released of all such pairs see functions of groups of states. A factor of a question is
split into the part between groups, which they see, and the part inside groups, which they do not: for variances F, G
between and F', G' inside, the error of the mean of the product of two factors has a variance of

    measured error + price of the unseen (F' (G + G') + F G').

The measured error is the larger of two numbers. Of the pair, and of all pairs, Stein's unbiased estimate over all
directions, because the tilt was fitted to the same noisy numbers:

    (mean of residuals^2 - e^2 + 2 e^2 d) F G,      e: the noise of a mean product, d: how far the tilt follows;

and of the question's own direction a, b, in which a pair may be off though it is not on average, the residual itself:

    (a r b)^2 + (2 d - 1) e^2 |a|^2 |b|^2,          r: the residuals of the pair's products.

Of the unseen nothing was measured. Its price is the largest squared correlation for one function of another column that
the release shows elsewhere: of the pair's products before the tilt and of all pairs' on average, of the strongest
direction that the pair has between groups, and of the unseen part itself with columns that were counted with its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from spinney.forest.release.answers.factors import Factor
from spinney.forest.release.answers.laws import Laws, states_of
from spinney.forest.release.column_model import Floats
from spinney.forest.release.signs import signs
from spinney.graph.tilt import Pair

if TYPE_CHECKING:
    from spinney.forest.release.model import ForestRelease

# Rows that a tilt is fitted by: what they leave uncertain counts as noise there.
_N_DRAWN = 100_000
_LEAST = 1e-6
_NOTHING = 1e-12
# Where products are off by more than this before they are corrected, intervals of pairs apart cover by luck alone.
MOST_SPREAD = 0.08
# Intervals of pairs apart are calibrated where at least this share of the factors' variance was measured.
NEARLY_ALL = 0.9


@dataclass(frozen=True, slots=True)
class Price:
    """The variance of a mean product of standardised functions of a pair, where it was measured and where not."""

    measured: float
    unseen: float


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """A factor as the sums of products see it."""

    between: float  # its variance between groups of states
    inside: float  # and inside of them
    direction: Floats  # the coefficients of sign functions (n_groups - 1,) that make up the part between groups
    shown: float  # the squared correlation of the part inside groups with a function of a column counted with its own

    @property
    def variance(self) -> float:
        return self.between + self.inside


@dataclass(frozen=True, slots=True, eq=False)
class _Gaps:
    """Of a pair: how far measured mean products are from the model's and from the tilted model's; the strongest tie."""

    before: Floats
    after: Floats
    strongest: float  # the largest squared correlation of a function of one's groups with one of the other's


class Misfit:
    """The price of misfit for every pair of which sums of products were released."""

    def __init__(self, release: ForestRelease, laws: Laws) -> None:
        assert release.products is not None
        self._products = release.products
        self._laws = laws
        self.error = math.sqrt(self._products.variance) / laws.total  # of a mean product

    @cached_property
    def _gaps(self) -> dict[Pair, _Gaps]:
        products, tilt = self._products, self._products.tilt
        n_groups = tilt.n_groups
        sampled = self._laws.sample
        assert sampled is not None
        states, weights = sampled
        groups = tilt.grouped(states)
        found = {}
        for (i, j), sums in zip(products.pairs, products.sums, strict=True):
            law = self._laws.law((i, j)) if self._laws.is_small((i, j)) else None
            cells = groups[i].astype(np.int64) * n_groups[j] + groups[j]
            shape, size = (n_groups[i], n_groups[j]), n_groups[i] * n_groups[j]
            sampled_law = np.bincount(cells, minlength=size).reshape(shape) / len(cells)
            tilted_law = np.bincount(cells, weights=weights, minlength=size).reshape(shape) / len(cells)
            exact = sampled_law if law is None else np.zeros(shape)
            if law is not None:
                np.add.at(exact, (tilt.groups[i][:, None], tilt.groups[j][None, :]), law)
            first, second = signs(n_groups[i]), signs(n_groups[j])
            wanted = sums / self._laws.total
            before = wanted - first @ exact @ second.T
            after = wanted - first @ (exact + tilted_law - sampled_law) @ second.T
            found[i, j] = _Gaps(before, after, _strongest(tilted_law))
        return found

    @cached_property
    def _before(self) -> float:
        return _mean_square([gaps.before for gaps in self._gaps.values()])

    @cached_property
    def _after(self) -> float:
        return _mean_square([gaps.after for gaps in self._gaps.values()])

    @cached_property
    def spread(self) -> float:
        """How far mean products were from the untilted model beyond their noise: a standard deviation, of all pairs."""
        return math.sqrt(max(self._before - self.error**2, _LEAST))

    @cached_property
    def left(self) -> float:
        """How far the tilted model is from the rows in the directions that were measured: a standard deviation."""
        return math.sqrt(max(self._stein(self._after), _LEAST))

    @cached_property
    def factor(self) -> float:
        """How far the tilted model is from measured products, in units of the noise on these; 1 where it is no further.

        Draws of the release scatter by noise, so that this is how much of the error of pairs apart they do not show.
        """
        return max(1.0, math.sqrt(self._after / (self.error**2 + 1 / _N_DRAWN)))

    @cached_property
    def followed(self) -> float:
        """How much of a change in a product the tilt takes up, between 0 and 1."""
        return 1 / (1 + (self.error**2 + 1 / _N_DRAWN) / self.spread**2)

    def _stein(self, residual: float) -> float:
        return residual - self.error**2 + 2 * self.error**2 * self.followed

    def price(self, pair: Pair) -> Price:
        """The price of a pair."""
        gaps = self._gaps[pair]
        least = 1 / self._laws.total  # rows are as they are by chance
        return Price(
            measured=max(self._stein(_mean_square([gaps.after])), self.left**2),
            unseen=max(_mean_square([gaps.before]) - self.error**2, gaps.strongest, self.spread**2, least),
        )

    def gap(self, pair: Pair) -> float:
        """How far the measured products of a pair are from the model before it is tilted: the largest, in size."""
        return float(np.abs(self._gaps[pair].before).max(initial=0.0))

    def __contains__(self, pair: Pair) -> bool:
        return pair in self._gaps

    def variance(self, pair: Pair, first: Factor, second: Factor) -> float:
        """The variance of the error in the mean of the product of two factors."""
        one, other = self.split(pair[0], first), self.split(pair[1], second)
        price = self.price(pair)
        residual = float(one.direction @ self._gaps[pair].after @ other.direction)
        noise = self.error**2 * float(one.direction @ one.direction) * float(other.direction @ other.direction)
        own = residual**2 + (2 * self.followed - 1) * noise
        unseen = one.inside * other.variance + one.between * other.inside
        return max(price.measured * one.between * other.between, own) + unseen * max(
            price.unseen, one.shown, other.shown
        )

    def seen(self, pair: Pair, first: Factor, second: Factor) -> float:
        """The share of the variance of two factors that lies in directions which were measured."""
        one, other = self.split(pair[0], first), self.split(pair[1], second)
        whole = one.variance * other.variance
        return one.between * other.between / whole if whole > 0 else 1.0

    def split(self, variable: int, factor: Factor) -> Split:
        """What the sums of products see of a factor, and what they do not."""
        law, groups = self._laws.law((variable,)), self._products.tilt.groups[variable]
        mean, inside = states_of(factor, self._laws.leaves[variable])
        weights = np.bincount(groups, weights=law)
        means = np.bincount(groups, weights=law * mean)
        means = np.divide(means, weights, out=np.zeros_like(means), where=weights > 0)
        centre = float(law @ mean)
        between = float(weights @ (means - centre) ** 2)
        within = max(float(law @ (mean**2 + inside)) - centre**2 - between, 0.0)
        lines = np.vstack([np.ones(len(weights)), signs(len(weights))])
        direction = np.linalg.solve(lines.T, means)[1:]
        unseen = mean - means[groups]
        if float(law @ unseen**2) <= _NOTHING:  # what is inside is inside of states
            unseen = mean - centre
        return Split(between, within, direction, self._shown(variable, law, unseen))

    def _shown(self, variable: int, law: Floats, unseen: Floats) -> float:
        """The largest squared correlation of a function with one of a column counted with its own, on average."""
        variance = float(law @ unseen**2)
        largest = 0.0
        for other in self._laws.counted_with(variable):
            pair = (min(variable, other), max(variable, other))
            if variance <= _NOTHING or not self._laws.is_small(pair):
                continue
            table = self._laws.law(pair) if variable < other else self._laws.law(pair).T
            shares = table.sum(axis=0)
            means = np.divide(unseen @ table, shares, out=np.zeros_like(shares), where=shares > 0)
            n_functions = max(len(shares) - 1, 1)
            largest = max(largest, float(shares @ means**2) / variance / n_functions)
        return min(largest, 1.0)

    def is_fine(self, variable: int) -> bool:
        """Whether every state of a variable is a group of its own."""
        groups = self._products.tilt.groups[variable]
        return len(np.unique(groups)) == len(groups)


def _strongest(law: Floats) -> float:
    """The largest squared correlation of a function of rows of a law with one of its columns."""
    rows, columns = law.sum(axis=1), law.sum(axis=0)
    both = np.outer(rows, columns)
    table = np.divide(law - both, np.sqrt(both), out=np.zeros_like(law), where=both > 0)
    return float(min(np.linalg.svd(table, compute_uv=False)[0] ** 2, 1.0))


def _mean_square(tables: Sequence[Floats]) -> float:
    return float(np.mean(np.concatenate([table.ravel() for table in tables]) ** 2))
