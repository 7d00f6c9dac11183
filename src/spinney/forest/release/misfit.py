"""Misfit: how far the model may be off for columns that were not counted together. PUBLIC.

factors and ratios        questions as means of products of functions of single columns
means under the models    such means under the released model, under redrawn ones and under the tilt
misfit                    the variance of the error, from sums of products and a price for the unseen
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spinney.forest.release.columns import Floats
from spinney.forest.release.conditions import feasible_of
from spinney.forest.release.days import states_on_days
from spinney.forest.release.fit import signs
from spinney.forest.release.lags import narrowed
from spinney.forest.release.parts import Leaves, Part
from spinney.graph.model import GraphModel, States
from spinney.graph.tilt import Pair
from spinney.graph.tilted_draw import weighted_states

if TYPE_CHECKING:
    from spinney.forest.release.model import ForestRelease


# --------------------------------------------------------------------------------------------------- factors and ratios
# Factors and terms: a question as means, over rows, of products of functions of single columns.
#
# A count is the mean of a product of indicators; a mean of a column is a ratio of two such means. What a question's
# error follows from is its *influence*: what one row adds to the answer. For a ratio num / den that is (num's product
# - ratio x den's product) / den, a sum of few terms, each a product of factors, one for a variable.


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """A function of one variable's rows, leaf by leaf, and its means in each state."""

    part: Part
    shift: float | None = None  # values less this; None: an indicator

    def leaf_mean(self) -> Floats:
        """The mean of the function in each leaf."""
        values = self.part.values
        if self.shift is None or values is None:
            return self.part.share
        return np.where(self.part.share > 0, self.part.share * (values.mean - self.shift), 0.0)

    def leaf_square(self) -> Floats:
        """The mean of its square in each leaf."""
        values = self.part.values
        if self.shift is None or values is None:
            return self.part.share
        square = values.square - 2 * self.shift * values.mean + self.shift**2
        return np.where(self.part.share > 0, self.part.share * np.maximum(square, 0.0), 0.0)

    def of(self, leaves: Leaves) -> Floats:
        """The mean of the function in each state (n_states,), by the weights of these leaves."""
        return _per_state(leaves, self.leaf_mean())

    def square_of(self, leaves: Leaves) -> Floats:
        """The mean of its square in each state."""
        return _per_state(leaves, self.leaf_square())


Factors = Mapping[int, Factor]


@dataclass(frozen=True, slots=True, eq=False)
class Ratio:
    """What is asked for: the mean of one product over that of another, which is 1 where it has no factors."""

    above: Factors
    below: Factors

    @property
    def variables(self) -> tuple[int, ...]:
        return tuple(sorted({*self.above, *self.below}))


def _per_state(leaves: Leaves, numbers: Floats) -> Floats:
    sums = np.bincount(leaves.states, weights=leaves.inside() * numbers, minlength=leaves.n_states)
    return np.asarray(sums, dtype=np.float64)


# ----------------------------------------------------------------------------------------------- means under the models
# Laws: what the released model, and models that might have been released in its place, say of products of factors.
#
# Tables of the states of a few variables are computed once for all models and kept. Where columns were not counted
# together the model is tilted, which no table holds: a sample of its rows, weighted once, says what the tilt adds to
# the model's own answer, so that only the difference has the error of a sample.


# Models that are fitted to redrawn noise; two hundred thousand rows of the tilted model.
N_REDRAWN = 20
_N_SAMPLED = 200_000
_SAMPLE_STREAM = 16
# Larger tables of states are not made; a product's mean is then that of a model under evidence.
_MOST_CELLS = 200_000
_MOST_KEPT = 20_000_000


class Laws:
    """The released model and redrawn ones, with the leaves of their columns; the released one is the first."""

    def __init__(self, release: ForestRelease, *, n_redrawn: int = N_REDRAWN) -> None:
        self._release = release
        self._n_redrawn = n_redrawn
        self._tables: dict[tuple[int, ...], Floats] = {}
        self._released: dict[tuple[int, ...], Floats] = {}
        self._n_kept = 0
        self._inside: dict[int, tuple[Floats, NDArray[np.int64]]] = {}
        self.names = release.variables
        self.total = float(release.card.n_rows if release.card.n_rows is not None else max(release.noisy_total, 1))

    @cached_property
    def _models(self) -> tuple[tuple[GraphModel, Sequence[Leaves]], ...]:
        release = self._release
        found = [(release.model, self.leaves)]
        if release.measured is not None and self._n_redrawn:
            for redrawn in release.redrawn(self._n_redrawn):
                every: dict[str, Leaves] = {**redrawn.columns, **redrawn.places}
                found.append((redrawn.model, [every[name] for name in self.names]))
        # What rules leave of states is left of them in every model.
        evidence = self._evidence
        return tuple((model.given(evidence) if evidence else model, leaves) for model, leaves in found)

    @cached_property
    def _evidence(self) -> dict[int, Floats]:
        release = self._release
        near, models, schema = release.schema._as_drawn, release.drawn_columns, release.schema
        cuts = feasible_of(schema, near, models)
        cuts |= narrowed(list(schema._lags.values()), schema, near, models, {}, days=schema._days)
        evidence = {self.names.index(name): cut.left for name, cut in cuts.items()}
        for name, cut in states_on_days(schema, near, models).items():
            at = self.names.index(name)
            evidence[at] = evidence.get(at, 1.0) * cut.left
        return evidence

    @cached_property
    def leaves(self) -> list[Leaves]:
        """The leaves of all variables as they were released."""
        release = self._release
        return [release.columns[name] if name in release.columns else release.places[name] for name in self.names]

    @property
    def n_redrawn(self) -> int:
        return len(self._models) - 1

    def noise_std(self, variable: int) -> float:
        """The standard deviation of the noise on a variable's own counts; 1 where it has none."""
        measured = self._release.measured
        column = None if measured is None else measured.columns[variable]
        return 1.0 if column is None else column.noise.std

    def law(self, variables: tuple[int, ...]) -> Floats:
        """The released model's law of some variables, before the tilt."""
        if variables in self._tables:
            return np.asarray(self._tables[variables][0])
        found = self._released.get(variables)
        if found is None:
            found = self._models[0][0].marginal(variables)
            if self._n_kept + found.size <= _MOST_KEPT:
                self._released[variables] = found
                self._n_kept += found.size
        return found

    def is_small(self, variables: Sequence[int]) -> bool:
        """Whether a table of these variables is made."""
        sizes = self._release.model.tree.sizes
        return float(np.prod([float(sizes[variable]) for variable in variables])) <= _MOST_CELLS

    def _tables_of(self, variables: tuple[int, ...]) -> Floats:
        """The law of variables under every model (n_models, ...)."""
        found = self._tables.get(variables)
        if found is None:
            found = np.stack([model.marginal(variables) for model, _ in self._models])
            if self._n_kept + found.size <= _MOST_KEPT:
                self._tables[variables] = found
                self._n_kept += found.size
        return found

    def means(self, factors: Factors) -> Floats:
        """The mean of a product of factors under the released model, before the tilt, and under redrawn ones."""
        if not factors:
            return np.ones(len(self._models))
        variables = tuple(sorted(factors))
        lines = [self._per_state(variable, factors[variable].leaf_mean()) for variable in variables]
        if not self.is_small(variables):
            return self._by_evidence(variables, lines)
        found = self._tables_of(variables)
        for line in reversed(lines):
            found = np.einsum("m...i,mi->m...", found, line)
        return found

    def _per_state(self, variable: int, numbers: Floats) -> Floats:
        """The mean of a number of each leaf in each state under every model, by its weights (n_models, n_states)."""
        found = self._inside.get(variable)
        if found is None:
            every = [leaves[variable] for _, leaves in self._models]
            n_states = every[0].n_states
            states = np.concatenate([leaves.states + n_states * place for place, leaves in enumerate(every)])
            found = self._inside[variable] = np.stack([leaves.inside() for leaves in every]), states
        inside, states = found
        n_cells = len(self._models) * self.leaves[variable].n_states
        sums = np.bincount(states, weights=(inside * numbers).ravel(), minlength=n_cells)
        return np.asarray(sums, dtype=np.float64).reshape(len(self._models), -1)

    def _by_evidence(self, variables: tuple[int, ...], lines: Sequence[Floats]) -> Floats:
        """The same without a table, by what is left of a model under evidence that is not negative."""
        found = []
        for place, (model, _) in enumerate(self._models):
            shifts = [min(0.0, float(line[place].min())) for line in lines]
            assert sum(shift < 0 for shift in shifts) <= 1  # one column has values
            weights = [line[place] - shift for line, shift in zip(lines, shifts, strict=True)]
            mean = _left(model, dict(zip(variables, weights, strict=True)))
            for at, shift in enumerate(shifts):
                if shift < 0:
                    others = {v: w for k, (v, w) in enumerate(zip(variables, weights, strict=True)) if k != at}
                    mean += shift * _left(model, others)
            found.append(mean)
        return np.array(found)

    # ---------------------------------------------------------------------------------------------- the tilt

    @cached_property
    def _sample(self) -> tuple[States, Floats] | None:
        products = self._release.products
        if products is None:
            return None
        rng = np.random.default_rng(_SAMPLE_STREAM)
        columns, pairs = range(len(self.names)), self._release.counted_pairs
        drawn, weights = weighted_states(
            self._models[0][0], products.tilt, _N_SAMPLED, rng, columns=columns, pairs=pairs
        )
        return drawn, weights * _N_SAMPLED

    @property
    def sample(self) -> tuple[States, Floats] | None:
        """Rows of the model and their weights under the tilt, 1 on average; None without a tilt."""
        return self._sample

    def tilted(self, factors: Factors) -> tuple[float, float]:
        """What the tilt adds to the mean of a product under the released model, and the variance of that sample."""
        apart = any(pair not in self._together for pair in combinations(sorted(factors), 2))
        if not apart or self._sample is None:
            return 0.0, 0.0
        drawn, weights = self._sample
        product = weights - 1.0
        for variable, factor in factors.items():
            product *= factor.of(self.leaves[variable])[drawn[variable]]
        return float(product.mean()), float(product.var()) / len(product)

    def tilted_states(self, variable: int, lines: Mapping[int, Floats]) -> Floats:
        """What the tilt adds to the share of rows in each state of a variable, others weighing so much by state."""
        n_states = self.leaves[variable].n_states
        every = (variable, *lines)
        if self._sample is None or all(pair in self._together for pair in combinations(sorted(every), 2)):
            return np.zeros(n_states)
        drawn, weights = self._sample
        product = (weights - 1.0) / len(weights)
        for other, line in lines.items():
            product *= line[drawn[other]]
        return np.bincount(drawn[variable], weights=product, minlength=n_states).astype(np.float64)

    @cached_property
    def _together(self) -> frozenset[tuple[int, int]]:
        return frozenset(self._release.counted_pairs)

    def counted_with(self, variable: int) -> list[int]:
        """The variables that share a counted table with one."""
        return sorted({other for pair in self._together for other in pair if variable in pair} - {variable})

    def are_together(self, first: int, second: int) -> bool:
        """Whether two variables share a counted table."""
        return (min(first, second), max(first, second)) in self._together


def _left(model: GraphModel, weights: dict[int, Floats]) -> float:
    """The mean of a product of weights."""
    if any(not line.any() for line in weights.values()):
        return 0.0
    if not weights:
        return 1.0
    scale = {variable: float(line.max()) for variable, line in weights.items()}
    left = model.given({variable: line / scale[variable] for variable, line in weights.items()})
    return float(np.exp(left.log_partition - model.log_partition) * np.prod(list(scale.values())))


def states_of(factor: Factor, leaves: Leaves) -> tuple[Floats, Floats]:
    """The mean of a factor in each state, and its variance there."""
    mean = factor.of(leaves)
    return mean, np.maximum(factor.square_of(leaves) - mean**2, 0.0)


# --------------------------------------------------------------------------------------------------------------- misfit
# The sums of products that were released of all pairs which were not counted together see functions of groups
# of states. A factor of a question is split into the part between groups, which they see, and the part inside
# groups, which they do not: for variances F, G between and F', G' inside, the error of the mean of the product
# of two factors has a variance of
#
#     measured error + price of the unseen (F' (G + G') + F G').
#
# The measured error is the larger of two numbers. Of the pair, and of all pairs, Stein's unbiased estimate over
# all directions, because the tilt was fitted to the same noisy numbers:
#
#     (mean of residuals^2 - e^2 + 2 e^2 d) F G,      e: the noise of a mean product, d: how far the tilt follows;
#
# and of the question's own direction a, b, in which a pair may be off though it is not on average, the residual
# itself:
#
#     (a r b)^2 + (2 d - 1) e^2 |a|^2 |b|^2,          r: the residuals of the pair's products.
#
# Of the unseen nothing was measured. Its price is the largest squared correlation for one function of another
# column that the release shows elsewhere: of the pair's products before the tilt and of all pairs' on average,
# of the strongest direction that the pair has between groups, and of the unseen part itself with columns that
# were counted with its own.


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
