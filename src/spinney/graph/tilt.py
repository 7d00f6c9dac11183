"""Tilt: a joint distribution of all columns, weighted by small factors on pairs of them. PUBLIC.

A junction tree holds few pairs of columns exactly. A tilt says of all the others how much more or less common a
combination is than the tree has it, coarsely: the states of a column fall into a few groups, and a pair of
columns has a table of log-factors with one cell for two groups.

    q(x)  proportional to  p(x) min(exp(sum of factors at x - log_mean), MOST_WEIGHT)

No tree holds q, and none needs to: rows are drawn from p and taken by their weight (`tilted_draw`). Weights are
capped, or a few rows that p hardly ever draws would stand for many.

    (first)          `Tilt`: groups, log-factors and the weights of rows
    blocks           sums over all pairs of columns, a few columns at a time
    fit of a tilt    the tilt that fits noisy sums of products
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled_loosely
from spinney.errors import ParameterError
from spinney.graph.estimate import Curvature, Point, descend, dot
from spinney.graph.model import GraphModel, draw_states
from spinney.machine import by_slices, each, n_threads

Floats = NDArray[np.float64]
Groups = NDArray[np.uint8]
Pair = tuple[int, int]

# No row weighs more than this many times the mean.
MOST_WEIGHT = 20.0
# A column has no more groups than this.
MOST_GROUPS = 64

# Rows that stay near the processor while all pairs look at them.
_BLOCK = 1 << 11


@dataclass(frozen=True, eq=False)
class Tilt:
    """Groups of every column's states, log-factors of single states, and of pairs of groups."""

    groups: tuple[Groups, ...]  # for each column, the group of every state
    singles: tuple[Floats, ...]  # for each column, a log-factor of every state
    pairs: tuple[Pair, ...]  # ascending columns
    tables: tuple[Floats, ...]  # for each pair, log-factors (n_groups of the first, n_groups of the second)
    log_mean: float  # of all rows' weights under p

    def __post_init__(self) -> None:
        sizes = self.n_groups
        shapes = [(sizes[i], sizes[j]) for i, j in self.pairs]
        if [table.shape for table in self.tables] != shapes:
            raise ParameterError("a tilt has one table for each pair, of the groups of its columns")
        if [len(factors) for factors in self.singles] != [len(group) for group in self.groups]:
            raise ParameterError("a tilt has one factor for each state of a column")
        if not np.isfinite(self.log_mean + sum(float(np.abs(t).sum()) for t in (*self.tables, *self.singles))):
            raise ParameterError("the factors of a tilt must be finite numbers")

    @property
    def n_groups(self) -> tuple[int, ...]:
        return tuple(int(group.max()) + 1 for group in self.groups)

    def grouped(self, states: NDArray[np.int32]) -> Groups:
        """The groups of rows' states (n_columns, n_rows)."""
        return np.stack([group[line] for group, line in zip(self.groups, states, strict=True)])

    def log_weights(self, states: NDArray[np.int32]) -> Floats:
        """Log-weights of rows (n_rows,): 0 where a row is as common as the tree has it, capped."""
        return np.minimum(self.scores(states), np.log(MOST_WEIGHT))

    def scores(self, states: NDArray[np.int32]) -> Floats:
        """Log-weights of rows (n_rows,), not capped."""
        found = pair_scores(self.grouped(states), self.pairs, padded(self.tables)) - self.log_mean
        for factors, line in zip(self.singles, states, strict=True):
            found += factors[line]
        return found

    def weights(self, states: NDArray[np.int32]) -> Floats:
        """Weights of rows, adding up to 1."""
        logs = self.log_weights(states)
        found = np.exp(logs - logs.max(initial=-np.inf))  # the likeliest row has a weight, however far all are out
        return np.asarray(found / found.sum())


def padded(tables: Sequence[Floats]) -> Floats:
    """Tables of different shapes as one array, zero where they have no cell."""
    rows, columns = (max((table.shape[axis] for table in tables), default=1) for axis in (0, 1))
    whole = np.zeros((len(tables), rows, columns))
    for place, table in enumerate(tables):
        whole[place, : table.shape[0], : table.shape[1]] = table
    return whole


def pair_scores(groups: Groups, pairs: Sequence[Pair], tables: Floats) -> Floats:
    """For every row the sum of its pairs' entries (n_rows,)."""
    scores = np.zeros(groups.shape[1])
    numbers = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    by_slices(lambda part: _score(groups[:, part], numbers, tables, scores[part]), groups.shape[1])
    return scores


@compiled_loosely
def _score(groups: Groups, pairs: NDArray[np.int64], tables: Floats, scores: Floats) -> None:
    for start in range(0, scores.size, _BLOCK):
        stop = min(start + _BLOCK, scores.size)
        here = scores[start:stop]
        for place in range(len(pairs)):
            first, second = groups[pairs[place, 0], start:stop], groups[pairs[place, 1], start:stop]
            table = tables[place]
            for row in range(here.size):
                here[row] += table[first[row], second[row]]


# --------------------------------------------------------------------------------------------------------------- blocks
# Blocks: all pairs of columns looked at a few columns at a time.
#
# A fit of products asks again and again for sums over pairs: for every row the sum of its pairs' factors, and for
# every pair how much the rows of each two groups weigh. With k columns that is k²/2 looks at every row. So
# neighbouring columns are joined into blocks, whose groups together are one small number: factors of all pairs of
# columns in two blocks are one table with a cell for two such numbers, and a row looks at one cell of it. Weights are
# added up in such tables, too, and then for every pair in them. With four groups a column, three columns make a
# block, and a row is looked at nine times less often.


_Numbers = NDArray[np.int64]

# What a block's number may be below: tables of two blocks have to stay next to the processor.
_LIMITS = (8, 16, 32, 64)
# A cell of a table takes, for each column, as much time as so many looks at a row.
_LOOKS_PER_CELL = 4.0
# Rows that stay near the processor while all blocks look at them.
# Fewer looks than this take less time than threads do to start.
_FEW_LOOKS = 1 << 20


class _Layout(NamedTuple):
    """Which columns make a block, and where the table of every two blocks lies in one vector."""

    starts: _Numbers  # (n_blocks + 1,): block b has columns starts[b]..starts[b+1]
    sizes: _Numbers  # (n_blocks,): numbers that a block may have
    digits: Groups  # for each column the group that every number of its block stands for (n_columns, largest size)
    pairs: _Numbers  # (n_pairs of blocks, 2)
    cells: _Numbers  # (n_pairs of blocks + 1,)
    numbers: _Numbers  # of a pair of columns among those that are asked for, -1: none


class Blocks:
    """Rows of groups (n_columns, n_rows) whose columns are joined into blocks."""

    def __init__(self, groups: Groups, n_groups: Sequence[int], pairs: Sequence[Pair]) -> None:
        n_of_column = np.array(n_groups, dtype=np.int64)
        # There are two blocks at least: one of no columns has the number 0 alone.
        starts = _best_starts(n_of_column, groups.shape[1])
        bounds = list(pairwise(starts))
        sizes = np.array([np.prod(n_of_column[low:high]) for low, high in bounds], dtype=np.int64)
        self._codes = np.zeros((len(bounds), groups.shape[1]), dtype=np.uint8)
        for block, (low, high) in enumerate(bounds):
            for column in range(low, high):
                self._codes[block] = self._codes[block] * np.uint8(n_of_column[column]) + groups[column]
        of_blocks = np.array(list(combinations(range(len(bounds)), 2)), dtype=np.int64)
        cells = np.concatenate([[0], np.cumsum(sizes[of_blocks].prod(axis=1))])
        numbers = np.full((len(n_groups), len(n_groups)), -1, dtype=np.int64)
        for number, (i, j) in enumerate(pairs):
            numbers[i, j] = number
        self._layout = _Layout(starts, sizes, _digits(n_of_column, starts, sizes), of_blocks, cells, numbers)
        self._n_pairs = len(pairs)

    def scores(self, singles: Floats, tables: Floats) -> Floats:
        """For every row the sum of its columns' factors and of its pairs' (n_rows,).

        `singles` are (n_columns, most groups), `tables` (n_pairs, most groups, most groups).
        """
        whole = np.empty(self._layout.cells[-1])
        _fill_tables(whole, self._layout, tables)
        _add_inner(whole, self._layout, tables, singles)
        scores = np.zeros(self._codes.shape[1])

        def score(part: slice) -> None:
            _score_blocks(self._codes[:, part], self._layout, whole, scores[part])

        if self._is_little:
            score(slice(0, scores.size))
        else:
            by_slices(score, scores.size)
        return scores

    def sums(self, weights: Floats, width: int) -> tuple[Floats, Floats]:
        """How much rows weigh: of each group (n_columns, width), and of each two of a pair (n_pairs, width, width)."""
        whole = np.empty(self._layout.cells[-1])

        def add(start: int, stop: int) -> None:
            _add_up(self._codes, self._layout, start, stop, weights, whole)

        n_pairs = len(self._layout.pairs)
        if self._is_little:
            add(0, n_pairs)
        else:
            n_parts = min(n_pairs, 8 * n_threads())
            cuts = [n_pairs * part // n_parts for part in range(n_parts + 1)]
            each(add, cuts[:-1], cuts[1:])
        singles = np.zeros((len(self._layout.digits), width))
        sums = np.zeros((self._n_pairs, width, width))
        _share_out(whole, self._layout, sums)
        _share_inner(whole, self._layout, sums, singles)
        return singles, sums

    @property
    def _is_little(self) -> bool:
        return self._codes.shape[1] * len(self._layout.pairs) < _FEW_LOOKS or n_threads() == 1


def _best_starts(n_groups: _Numbers, n_rows: int) -> _Numbers:
    """Where blocks begin, for the least work: looks at rows, and cells of tables."""

    def work(starts: _Numbers) -> float:
        sizes = [int(np.prod(n_groups[low:high])) for low, high in pairwise(starts)]
        n_columns = np.diff(starts)
        pairs = combinations(range(len(sizes)), 2)
        return sum(n_rows + _LOOKS_PER_CELL * sizes[i] * sizes[j] * int(n_columns[j]) for i, j in pairs)

    return min((_starts(n_groups, limit) for limit in _LIMITS), key=work)


def _starts(n_groups: _Numbers, limit: int) -> _Numbers:
    """Blocks of neighbours, as many in each as the limit allows."""
    starts, size = [0], 1
    for column, number in enumerate(n_groups.tolist()):
        if size * number > limit and column > starts[-1]:
            starts.append(column)
            size = 1
        size *= number
    starts.append(len(n_groups))
    if len(starts) == 2:
        starts.append(len(n_groups))
    return np.array(starts, dtype=np.int64)


def _digits(n_groups: _Numbers, starts: _Numbers, sizes: _Numbers) -> Groups:
    """For each column the group that every number of its block stands for (n_columns, largest size)."""
    digits = np.zeros((len(n_groups), int(sizes.max())), dtype=np.uint8)
    for block, size in enumerate(sizes):
        rest = np.arange(size)
        for column in range(starts[block + 1] - 1, starts[block] - 1, -1):
            digits[column, :size] = rest % n_groups[column]
            rest //= n_groups[column]
    return digits


@compiled_loosely
def _score_blocks(codes: Groups, layout: _Layout, whole: Floats, scores: Floats) -> None:
    pairs, cells = layout.pairs, layout.cells
    for start in range(0, scores.size, _BLOCK):
        stop = min(start + _BLOCK, scores.size)
        here = scores[start:stop]
        for place in range(len(pairs)):
            first, second = codes[pairs[place, 0], start:stop], codes[pairs[place, 1], start:stop]
            table, step = whole[cells[place] : cells[place + 1]], layout.sizes[pairs[place, 1]]
            for row in range(here.size):
                here[row] += table[first[row] * step + second[row]]


@compiled_loosely
def _add_up(codes: Groups, layout: _Layout, start: int, stop: int, weights: Floats, whole: Floats) -> None:
    pairs, cells = layout.pairs, layout.cells
    # Four sums at a time: a row need not wait for the one before it, though both are often in one cell.
    spare = np.empty((4, (cells[1:] - cells[:-1]).max()))
    for place in range(start, stop):
        first, second, step = codes[pairs[place, 0]], codes[pairs[place, 1]], layout.sizes[pairs[place, 1]]
        table = whole[cells[place] : cells[place + 1]]
        parts = spare[:, : table.size]
        parts[:] = 0.0
        n_fours = weights.size // 4
        for row in range(0, 4 * n_fours, 4):
            parts[0, first[row] * step + second[row]] += weights[row]
            parts[1, first[row + 1] * step + second[row + 1]] += weights[row + 1]
            parts[2, first[row + 2] * step + second[row + 2]] += weights[row + 2]
            parts[3, first[row + 3] * step + second[row + 3]] += weights[row + 3]
        for row in range(4 * n_fours, weights.size):
            parts[0, first[row] * step + second[row]] += weights[row]
        for cell in range(table.size):
            table[cell] = parts[0, cell] + parts[1, cell] + parts[2, cell] + parts[3, cell]


@compiled_loosely
def _fill_tables(whole: Floats, layout: _Layout, tables: Floats) -> None:
    """Write, for every two blocks, the sums of their columns' factors."""
    starts, sizes, digits, pairs, cells, numbers = layout
    width = tables.shape[2]
    line = np.empty(width)
    for place in range(len(pairs)):
        a, b = pairs[place]
        size = sizes[b]
        for code in range(sizes[a]):
            here = whole[cells[place] + code * size : cells[place] + (code + 1) * size]
            here[:] = 0.0
            for j in range(starts[b], starts[b + 1]):
                line[:] = 0.0
                for i in range(starts[a], starts[a + 1]):
                    if numbers[i, j] >= 0:
                        line += tables[numbers[i, j], digits[i, code]]
                for other in range(size):
                    here[other] += line[digits[j, other]]


@compiled_loosely
def _add_inner(whole: Floats, layout: _Layout, tables: Floats, singles: Floats) -> None:
    """Add what a block holds alone, columns and pairs: in its table with the next one, or the last with the first."""
    starts, sizes, digits, _, cells, numbers = layout
    n_blocks = len(sizes)
    place = 0
    for a in range(n_blocks):
        for code in range(sizes[a]):
            inner = 0.0
            for i in range(starts[a], starts[a + 1]):
                inner += singles[i, digits[i, code]]
                for j in range(i + 1, starts[a + 1]):
                    if numbers[i, j] >= 0:
                        inner += tables[numbers[i, j], digits[i, code], digits[j, code]]
            if a < n_blocks - 1:
                size = sizes[a + 1]
                whole[cells[place] + code * size : cells[place] + (code + 1) * size] += inner
            else:
                for other in range(sizes[0]):
                    whole[cells[n_blocks - 2] + other * sizes[a] + code] += inner
        place += n_blocks - 1 - a


@compiled_loosely
def _share_out(whole: Floats, layout: _Layout, sums: Floats) -> None:
    """Add up the tables of two blocks for every pair of columns, one of each."""
    starts, sizes, digits, pairs, cells, numbers = layout
    line = np.empty(sums.shape[2])
    for place in range(len(pairs)):
        a, b = pairs[place]
        size = sizes[b]
        for code in range(sizes[a]):
            here = whole[cells[place] + code * size : cells[place] + (code + 1) * size]
            for j in range(starts[b], starts[b + 1]):
                line[:] = 0.0
                for other in range(size):
                    line[digits[j, other]] += here[other]
                for i in range(starts[a], starts[a + 1]):
                    if numbers[i, j] >= 0:
                        sums[numbers[i, j], digits[i, code]] += line


@compiled_loosely
def _share_inner(whole: Floats, layout: _Layout, sums: Floats, singles: Floats) -> None:
    """The same for single columns and pairs within a block, by the table in which `_add_inner` has them."""
    starts, sizes, digits, _, cells, numbers = layout
    n_blocks = len(sizes)
    place = 0
    for a in range(n_blocks):
        for code in range(sizes[a]):
            weight = 0.0
            if a < n_blocks - 1:
                size = sizes[a + 1]
                for cell in range(cells[place] + code * size, cells[place] + (code + 1) * size):
                    weight += whole[cell]
            else:
                for other in range(sizes[0]):
                    weight += whole[cells[n_blocks - 2] + other * sizes[a] + code]
            for i in range(starts[a], starts[a + 1]):
                singles[i, digits[i, code]] += weight
                for j in range(i + 1, starts[a + 1]):
                    if numbers[i, j] >= 0:
                        sums[numbers[i, j], digits[i, code], digits[j, code]] += weight
        place += n_blocks - 1 - a


# -------------------------------------------------------------------------------------------------------- fit of a tilt
# The tilt that fits noisy sums of products: the nearest law to a model's, by rows that were drawn from it.
#
# Every column has functions of its groups with values -1 and 1, which together with the constant tell its groups
# apart. Of some pairs of columns the sums, over all rows, of products of their functions were released with noise; of
# others the model holds a counted table, whose products are to stay what they are; and so are the single columns.
# With one multiplier for every product, as in `estimate`, the law that minimizes
#
#     sum of (answer - noisy)^2 / (2 noise_std^2) + caution total KL(q || p)
#
# has log-factors m that minimize
#
#     total log mean exp(sum of m products) - sum of m noisy + caution/2 sum of (noise_std m)^2
#
# which is smooth and convex, and its sums and means are over drawn rows. What drawn rows say of the products under p
# is corrected by what the model says exactly; what else they leave uncertain counts as noise, or a tilt would fit the
# rows that happened to be drawn.


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
    scores, part = tilt.scores(states), 1.0
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
