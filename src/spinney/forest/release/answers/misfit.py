"""Misfit: how far the released law of two columns that were not counted together may be from that of the rows.

The sums of products that were released of all such pairs say it twice. What is left of them once the model is tilted is
the error in the directions that were measured: Stein's unbiased estimate of it is

    mean of residuals^2 - e^2 + 2 e^2 d,        e: the noise of a mean product, d: how far the tilt follows a product,

because the tilt was fitted to the same noisy numbers. And how far they were from the model before it was tilted says
how much such pairs depend on each other in any direction, so also in those that are finer than groups, which nobody
measured. Both are taken for the pair and for all pairs together, and the larger one counts.

For functions f and g of two columns, with variances split into that between groups (F, G) and that inside (F', G'),
the error of the mean of f g has a variance of

    measured F G + finer (F' (G + G') + F G').
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

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
# Where products are off by more than this before they are corrected, intervals of pairs apart cover by luck alone.
MOST_SPREAD = 0.08


@dataclass(frozen=True, slots=True)
class Price:
    """The variance of a mean product of standardised functions of a pair: in measured directions, and in finer ones."""

    measured: float
    finer: float


class Misfit:
    """The price of misfit for every pair of which sums of products were released."""

    def __init__(self, release: ForestRelease, laws: Laws) -> None:
        assert release.products is not None
        self._products = release.products
        self._laws = laws
        self.error = math.sqrt(self._products.variance) / laws.total  # of a mean product

    @cached_property
    def _gaps(self) -> tuple[dict[Pair, Floats], dict[Pair, Floats]]:
        """How far measured mean products are from the model's, and from the tilted model's, by pair."""
        products, tilt = self._products, self._products.tilt
        n_groups = tilt.n_groups
        sampled = self._laws.sample
        assert sampled is not None
        states, weights = sampled
        groups = tilt.grouped(states)
        before, after = {}, {}
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
            before[i, j] = wanted - first @ exact @ second.T
            after[i, j] = wanted - first @ (exact + tilted_law - sampled_law) @ second.T
        return before, after

    @cached_property
    def spread(self) -> float:
        """How far mean products were from the untilted model beyond their noise: a standard deviation, of all pairs."""
        return math.sqrt(max(_mean_square(self._gaps[0]) - self.error**2, _LEAST))

    @cached_property
    def left(self) -> float:
        """How far the tilted model is from the rows in the directions that were measured: a standard deviation."""
        return math.sqrt(max(self._stein(_mean_square(self._gaps[1])), _LEAST))

    @cached_property
    def factor(self) -> float:
        """How far the tilted model is from measured products, in units of the noise on these; 1 where it is no further.

        Draws of the release scatter by noise, so that this is how much of the error of pairs apart they do not show.
        """
        return max(1.0, math.sqrt(_mean_square(self._gaps[1]) / (self.error**2 + 1 / _N_DRAWN)))

    @cached_property
    def followed(self) -> float:
        """How much of a change in a product the tilt takes up, between 0 and 1."""
        return 1 / (1 + (self.error**2 + 1 / _N_DRAWN) / self.spread**2)

    def _stein(self, residual: float) -> float:
        return residual - self.error**2 + 2 * self.error**2 * self.followed

    def price(self, pair: Pair) -> Price:
        """The price of a pair."""
        before, after = (float(np.mean(gaps[pair] ** 2)) for gaps in self._gaps)
        least = 1 / self._laws.total  # rows are as they are by chance
        return Price(
            measured=max(self._stein(after), self.left**2),
            finer=max(before - self.error**2, self.spread**2, least),
        )

    def gap(self, pair: Pair) -> float:
        """How far the measured products of a pair are from the model before it is tilted: the largest, in size."""
        return float(np.abs(self._gaps[0][pair]).max(initial=0.0))

    def __contains__(self, pair: Pair) -> bool:
        return pair in self._gaps[0]

    def variance(self, pair: Pair, first: Factor, second: Factor) -> float:
        """The variance of the error in the mean of the product of two factors."""
        (between, inside), (other_between, other_inside) = (
            self._split(variable, factor) for variable, factor in zip(pair, (first, second), strict=True)
        )
        price = self.price(pair)
        finer = inside * (other_between + other_inside) + between * other_inside
        return price.measured * between * other_between + price.finer * finer

    def _split(self, variable: int, factor: Factor) -> tuple[float, float]:
        """The variance of a factor between the groups of a variable, and inside them."""
        law, groups = self._laws.law((variable,)), self._products.tilt.groups[variable]
        mean, inside = states_of(factor, self._laws.leaves[variable])
        return split(law, groups, mean, inside)


def split(law: Floats, groups: NDArray[np.uint8], mean: Floats, inside: Floats) -> tuple[float, float]:
    """The variance between groups of states, and inside them, of a function with this mean and variance in a state."""
    weights = np.bincount(groups, weights=law)
    means = np.bincount(groups, weights=law * mean)
    means = np.divide(means, weights, out=np.zeros_like(means), where=weights > 0)
    centre = float(law @ mean)
    between = float(weights @ (means - centre) ** 2)
    return between, max(float(law @ (mean**2 + inside)) - centre**2 - between, 0.0)


def _mean_square(gaps: dict[Pair, Floats]) -> float:
    return float(np.mean(np.concatenate([table.ravel() for table in gaps.values()]) ** 2))
