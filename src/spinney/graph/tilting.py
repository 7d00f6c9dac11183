"""The tilt that fits noisy sums of products: the nearest law to a model's, by rows that were drawn from it.

Every column has functions of its groups with values -1 and 1, which together with the constant tell its groups apart.
Of some pairs of columns the sums, over all rows, of products of their functions were released with noise; of others the
model holds a counted table, whose products are to stay what they are; and so are the single columns. With one
multiplier for every product, as in `estimate`, the law that minimizes

    sum of (answer - noisy)^2 / (2 noise_std^2) + caution total KL(q || p)

has log-factors m that minimize

    total log mean exp(sum of m products) - sum of m noisy + caution/2 sum of (noise_std m)^2

which is smooth and convex, and its sums and means are over drawn rows. What drawn rows say of the products under p is
corrected by what the model says exactly; what else they leave uncertain counts as noise, or a tilt would fit the rows
that happened to be drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.graph.blocks import Blocks
from spinney.graph.draw import draw_states
from spinney.graph.model import GraphModel
from spinney.graph.newton import Curvature, Point, descend, dot
from spinney.graph.tilt import MOST_WEIGHT, Floats, Groups, Pair, Tilt, padded, pair_scores

# Turns of fitting single columns, state by state, to what the model says of them.
_SINGLE_TURNS = 4
_LARGEST_STEP = math.log(5.0)
# What the model says of more pairs than this is taken from so many rows of it.
_MOST_EXACT = 1_000
_N_NEARLY_EXACT = 100_000
# Turns of finding the mean of weights that are capped at a multiple of it.
_CAP_TURNS = 8
# Fresh rows are worth at least this share of as many of equal weight: a tilt by which a few stand for all is weakened,
# step by step.
_LEAST_EFFECTIVE = 0.1
_WEAKER = 0.6
_LEAST_PART = 1e-4
# A share of rows below this is none: ratios to it leave the range of floats.
_NOTHING = 1e-200
# Products are taken to differ from the model by at least this much, squared, beyond their noise.
_LEAST_SPREAD = 1e-6


@dataclass(frozen=True, eq=False)
class Products:
    """Noisy sums of products: for each pair (n_functions of the first, n_functions of the second), and their noise."""

    pairs: tuple[Pair, ...]
    sums: tuple[Floats, ...]
    noise_std: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence:
    """What a tilt is fitted to: products of functions of groups, over about `total` rows."""

    groups: tuple[Groups, ...]  # for each column the group of every state
    functions: tuple[Floats, ...]  # for each column (n_groups - 1, n_groups) values of -1 and 1
    products: Products  # what was measured
    held: tuple[Pair, ...]  # of which the model has a counted table
    held_std: float  # how far the sums of held pairs may move, about the noise of their counts
    total: float


def fit_tilt(model: GraphModel, evidence: Evidence, *, n_drawn: int, steps: int, rng: np.random.Generator) -> Tilt:
    """The tilt of a model by noisy sums of products.

    Args:
        model: the law that is tilted.
        evidence: what was measured, and what is to stay.
        n_drawn: how many rows to draw from the model.
        steps: of the fit, at most.
        rng: draws them, which is no noise.
    """
    problem = _Problem(model, evidence, n_drawn, rng)
    singles, tables = problem.solve(steps)
    unscaled = Tilt(evidence.groups, singles, problem.pairs, tables, 0.0)
    return _with_exact_singles(unscaled, model, draw_states(model, n_drawn, rng))


class _Problem:
    """The dual problem over rows that were drawn once. Multipliers: of pairs one after the other, then of columns."""

    def __init__(self, model: GraphModel, evidence: Evidence, n_drawn: int, rng: np.random.Generator) -> None:
        products, total = evidence.products, evidence.total
        self.functions = evidence.functions
        self.state_groups = evidence.groups
        self.pairs = (*products.pairs, *evidence.held)
        self._stack_functions()
        self.shape = (max(lines.shape[1] for lines in self.functions),) * 2
        even = np.full(n_drawn, 1 / n_drawn)
        self.blocks = self._blocks(draw_states(model, n_drawn, rng))
        singly, together = self.blocks.sums(even, self.shape[0])
        drawn = self._products(together)
        exact = self._exact(model, rng)
        n_measured = sum(table.size for table in products.sums)
        measured = np.concatenate([np.zeros(0), *(table.ravel() for table in products.sums)]) / total
        error = products.noise_std / total
        gaps = measured - exact[:n_measured]
        # How far products are from the model beyond their noise says how far the tilt may go.
        spread = max(float(np.mean(gaps**2)) - error**2, _LEAST_SPREAD)
        caution = (error**2 + 1 / n_drawn) / spread
        free = np.full(n_measured, caution)
        held = total * (evidence.held_std / total) ** 2
        kept = np.full(len(drawn) - n_measured, held + 1 / (n_drawn * spread))
        singles = [lines @ law[: lines.shape[1]] for lines, law in zip(self.functions, singly, strict=True)]
        self.aims = np.concatenate([gaps + drawn[:n_measured], drawn[n_measured:], *singles])
        fixed = np.full(len(self.aims) - len(drawn), held)
        self.ridge = np.concatenate([free, kept, fixed])

    def _blocks(self, states: NDArray[np.int32]) -> Blocks:
        """Rows of states by their groups."""
        rows = np.stack([group[line] for group, line in zip(self.state_groups, states, strict=True)])
        return Blocks(rows, [lines.shape[1] for lines in self.functions], self.pairs)

    def _stack_functions(self) -> None:
        """Functions of all pairs' columns as two stacks of one shape, and which of their products there are."""
        width = max(lines.shape[1] for lines in self.functions)
        stack = np.zeros((len(self.functions), max(width - 1, 1), width))
        for column, lines in enumerate(self.functions):
            stack[column, : lines.shape[0], : lines.shape[1]] = lines
        numbers = np.array(self.pairs, dtype=np.int64).reshape(-1, 2)
        self.first, self.second = stack[numbers[:, 0]], stack[numbers[:, 1]]
        n_lines = np.array([len(lines) for lines in self.functions])
        is_line = np.arange(stack.shape[1]) < n_lines[:, None]
        self.is_product = is_line[numbers[:, 0], :, None] & is_line[numbers[:, 1], None, :]

    def _exact(self, model: GraphModel, rng: np.random.Generator) -> Floats:
        """All products under the model; of very many pairs, by very many rows of it."""
        if len(self.pairs) > _MOST_EXACT:
            states = draw_states(model, _N_NEARLY_EXACT, rng)
            even = np.full(_N_NEARLY_EXACT, 1 / _N_NEARLY_EXACT)
            return self._products(self._blocks(states).sums(even, self.shape[0])[1])
        laws = np.zeros((len(self.pairs), *self.shape))
        for place, ((i, j), table) in enumerate(zip(self.pairs, model.marginals(self.pairs), strict=True)):
            np.add.at(laws[place], (self.state_groups[i][:, None], self.state_groups[j][None, :]), table)
        return self._products(laws)

    def _products(self, laws: Floats) -> Floats:
        """The means of all products under laws of pairs of groups (n_pairs, *shape)."""
        return np.asarray((self.first @ laws @ self.second.transpose(0, 2, 1))[self.is_product])

    def factors(self, multipliers: Floats) -> tuple[Floats, Floats]:
        """Log-factors of groups: of single columns (n_columns, most groups), and of pairs (n_pairs, *shape)."""
        of_products = np.zeros(self.is_product.shape)
        n_products = int(self.is_product.sum())
        of_products[self.is_product] = multipliers[:n_products]
        singles = np.zeros((len(self.functions), self.shape[0]))
        start = n_products
        for factors, lines in zip(singles, self.functions, strict=True):
            stop = start + len(lines)
            factors[: lines.shape[1]] = multipliers[start:stop] @ lines
            start = stop
        return singles, self.first.transpose(0, 2, 1) @ of_products @ self.second

    def value(self, multipliers: Floats, _: Floats) -> tuple[float, Floats]:
        """The dual's value, per row, and its gradient."""
        scores = self.blocks.scores(*self.factors(multipliers))
        top = float(scores.max())
        weights = np.exp(scores - top)
        total = float(weights.sum())
        weights /= total
        singles, tables = self.blocks.sums(weights, self.shape[0])
        answers = [self._products(tables)]
        answers += [lines @ law[: lines.shape[1]] for lines, law in zip(self.functions, singles, strict=True)]
        pull = self.ridge * multipliers
        value = top + math.log(total / weights.size) + dot(multipliers, pull / 2 - self.aims)
        return value, np.concatenate(answers) - self.aims + pull

    def solve(self, steps: int) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
        """Log-factors of the states of single columns, and of pairs of groups."""
        curvature = Curvature(1 / (1 + self.ridge))
        start = np.zeros(len(self.aims))
        found = descend(self.value, Point(start, *self.value(start, start), start), curvature, steps)
        singles, whole = self.factors(found.at)
        n_groups = [lines.shape[1] for lines in self.functions]
        tables = tuple(table[: n_groups[i], : n_groups[j]] for (i, j), table in zip(self.pairs, whole, strict=True))
        return tuple(factors[group] for factors, group in zip(singles, self.state_groups, strict=True)), tables


def _with_exact_singles(tilt: Tilt, model: GraphModel, states: NDArray[np.int32]) -> Tilt:
    """The tilt with single states as common as the model has them, by other rows than it was fitted to.

    Where hardly any of these rows has a weight, which many columns that all depend on each other bring about, it is
    as much of the tilt as leaves enough of them.
    """
    laws = [model.marginal((column,)) for column in range(len(tilt.singles))]
    scores = pair_scores(tilt.grouped(states), tilt.pairs, padded(tilt.tables))
    for factors, line in zip(tilt.singles, states, strict=True):
        scores += factors[line]
    part = 1.0
    while True:
        fitted = part * scores
        steps = _fit_singles(fitted, laws, states)
        if part < _LEAST_PART or _effective_share(fitted) >= _LEAST_EFFECTIVE:
            break
        part *= _WEAKER
    singles = tuple(part * factors + step for factors, step in zip(tilt.singles, steps, strict=True))
    return Tilt(tilt.groups, singles, tilt.pairs, tuple(part * table for table in tilt.tables), _log_mean(fitted))


def _fit_singles(scores: Floats, laws: Sequence[Floats], states: NDArray[np.int32]) -> list[Floats]:
    """Log-factors of single states by which columns are by their laws; the rows' log-weights are changed to match."""
    found = [np.zeros_like(law) for law in laws]
    for _ in range(_SINGLE_TURNS):
        weights = _capped(scores, _log_mean(scores))
        weights /= weights.sum()
        for column, (law, line) in enumerate(zip(laws, states, strict=True)):
            held = np.bincount(line, weights=weights, minlength=len(law))
            is_both = (held > _NOTHING) & (law > 0)
            step = np.zeros_like(held)
            step[is_both] = np.clip(np.log(law[is_both] / held[is_both]), -_LARGEST_STEP, _LARGEST_STEP)
            found[column] += step
            scores += step[line]
            weights *= np.exp(step)[line]
    return found


def _effective_share(scores: Floats) -> float:
    """How many rows of equal weight are worth as much as these, as a share of all."""
    weights = _capped(scores, _log_mean(scores))
    return float(weights.sum()) ** 2 / (weights.size * dot(weights, weights))


def _log_mean(scores: Floats) -> float:
    """The logarithm of the mean weight, where none may be above its cap."""
    top = float(scores.max())
    log_mean = top + math.log(float(np.exp(scores - top).mean()))
    for _ in range(_CAP_TURNS):
        log_mean += math.log(float(_capped(scores, log_mean).mean()))
    return log_mean


def _capped(scores: Floats, log_mean: float) -> Floats:
    """Weights of rows relative to their mean, none above its cap."""
    return np.asarray(np.exp(np.minimum(scores - log_mean, math.log(MOST_WEIGHT))))
