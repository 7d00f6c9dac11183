"""The fit of a forest to its noisy numbers, and the same fit to numbers with fresh noise. PUBLIC.

One function of numbers makes the released model, checks the model of a file, and fits the models that might
have been released. What the noise decided stays as it is: tree shapes, leaves, states, boxes, which columns
were counted together.

    fit to numbers    from all numbers to columns and the model of their states
    signs             functions of groups, and how far one row moves sums of their products    products.proof.md
    products          the released sums of products and their tilt, as data and in a file
    redrawn models    models that might have been released
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.errors import ParameterError
from spinney.forest.release.columns import (
    ColumnModel,
    Floats,
    are_codes,
    as_written,
    code_weights,
    likely_sentinels,
)
from spinney.forest.release.leaf_weights import number_weights, parted_counts, possible_weights, region_weights
from spinney.forest.release.measured import (
    Measured,
    MeasuredColumn,
    MeasuredTable,
    NoiseLaw,
    TiltFit,
    WeightsRule,
)
from spinney.forest.release.places import PlaceModel
from spinney.graph.estimate import Measurement, estimate
from spinney.graph.model import GraphModel, draw_states
from spinney.graph.tilt import MOST_GROUPS, Evidence, Groups, Pair, Products, Tilt, fit_tilt
from spinney.grid.axes import ColumnAxis, column_axes
from spinney.grid.ruler import CodeLevels
from spinney.machine import each, n_threads
from spinney.privacy.budget import Unit, parse_fraction
from spinney.release.card import RowCount
from spinney.release.file import FLOAT, are_counts, from_arrow, lists, numbers, to_arrow
from spinney.tree.release.density import project_to_total

if TYPE_CHECKING:
    from spinney.forest.release.model import ForestRelease


Flags = NDArray[np.bool_]

# ------------------------------------------------------------------------------------------------------- fit to numbers
# The model that noisy numbers give: weights of leaves, then the law of states. Sees released numbers only.
#
# This is the last step of a fit, as a function of numbers: of those that were measured, which has to give the model
# of the file, and of redrawn ones. What noise decided stays as it is: leaves, states, boxes, which columns were
# counted together. All else is done anew, as in a fit: small counts are cut, weights are projected, the model starts
# from independent columns.


Model = ColumnModel | PlaceModel


@dataclass(frozen=True, slots=True, eq=False)
class ColumnNumbers:
    """The counts of a column or place: of its counted leaves, its piles, the groups of its hierarchy, and its grain."""

    counts: Floats
    piles: Floats
    groups: tuple[Floats, ...]
    grain: Floats | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """Everything that was counted, as numbers alone."""

    columns: tuple[ColumnNumbers | None, ...]
    tables: tuple[Floats, ...]
    rows: float | None  # the bought number of rows


@dataclass(frozen=True, slots=True, eq=False)
class Refitter:
    """Fits columns and model to numbers, the structure of a forest being given."""

    measured: Measured
    models: tuple[Model, ...]  # a variable each, as released
    model: GraphModel
    levels: Mapping[int, CodeLevels]  # of variables that are codes in a hierarchy
    cells: Mapping[int, ColumnAxis]  # of variables that are columns
    is_total_public: bool

    def observed(self) -> Numbers:
        """The numbers that left the mechanisms."""
        columns = tuple(None if column is None else _observed(column) for column in self.measured.columns)
        tables = tuple(table.noisy.astype(np.float64) for table in self.measured.tables)
        count = self.measured.row_count
        return Numbers(columns, tables, None if count is None else float(count.noisy))

    def expected(self) -> Numbers:
        """What the numbers would be without noise, were the released model the truth."""
        total = self.measured.total
        columns = []
        for index, (column, leaves) in enumerate(zip(self.measured.columns, self.models, strict=True)):
            share = self.model.marginal((index,))[leaves.states] * leaves.inside()
            columns.append(None if column is None else _expected(column, total * share, self.levels.get(index)))
        laws = self.model.marginals([table.columns for table in self.measured.tables])
        tables = tuple(total * box_sums(table, law) for table, law in zip(self.measured.tables, laws, strict=True))
        return Numbers(tuple(columns), tables, None if self.measured.row_count is None else total)

    def with_noise(self, numbers: Numbers, rng: np.random.Generator) -> Numbers:
        """The numbers with fresh noise of the laws that they were measured with."""
        columns: list[ColumnNumbers | None] = []
        for column, of_column in zip(self.measured.columns, numbers.columns, strict=True):
            if column is None or of_column is None:
                columns.append(None)
                continue
            counts = of_column.counts + column.noise.draw(rng, len(of_column.counts))
            piles = of_column.piles
            if column.piles is not None:
                piles = piles + column.piles.noise.draw(rng, len(piles))
            groups = tuple(group + column.noise.draw(rng, len(group)) for group in of_column.groups)
            grain = of_column.grain
            if column.grain is not None and grain is not None:
                grain = grain + column.grain.noise.draw(rng, len(grain))
            columns.append(ColumnNumbers(counts, piles, groups, grain))
        tables = tuple(
            values + table.noise.draw(rng, len(values))
            for table, values in zip(self.measured.tables, numbers.tables, strict=True)
        )
        rows, count = numbers.rows, self.measured.row_count
        if rows is not None and count is not None:
            rows += int(NoiseLaw("discrete laplace", count.rate).draw(rng, 1)[0])
        return Numbers(tuple(columns), tables, rows)

    def total(self, numbers: Numbers) -> float:
        """The number of rows, by the numbers where it is not public."""
        if self.is_total_public:
            return self.measured.total
        sums: dict[bool, list[tuple[float, float]]] = {True: [], False: []}  # of places, and of columns
        for column, of_column, model in zip(self.measured.columns, numbers.columns, self.models, strict=True):
            if column is not None and of_column is not None:
                counts = of_column.groups[0] if of_column.groups else of_column.counts
                sums[isinstance(model, PlaceModel)].append((float(counts.sum()), column.sum[1]))
        count = self.measured.row_count
        rows = None if count is None else replace(count, noisy=round(numbers.rows or 0.0))
        return noisy_total(sums[False] or sums[True], rows)

    def columns(self, numbers: Numbers) -> tuple[Model, ...]:
        """Columns and places with the weights that numbers give."""
        total = self.total(numbers)
        found: list[Model] = []
        for index, model in enumerate(self.models):
            column, of_column = self.measured.columns[index], numbers.columns[index]
            if column is None or of_column is None:
                weights = model.weights * (total / max(float(model.weights.sum()), 1e-300))
            else:
                levels, rule = self.levels.get(index), self.measured.weights_rule
                likely, codes = None, np.zeros(len(model.weights), dtype=np.bool_)
                if index in self.cells and isinstance(model, ColumnModel):
                    likely = likely_sentinels(self.cells[index], model.low, model.length)
                    codes = are_codes(self.cells[index], model.low)
                weights = _weights(column, of_column, model, total, levels, rule=rule, likely=likely, codes=codes)
            weighed = replace(model, weights=weights)
            if column is not None and column.grain is not None and isinstance(weighed, ColumnModel):
                assert of_column is not None
                assert column.steps is not None
                assert of_column.grain is not None
                weighed = as_written(weighed, self.cells[index], replace(column.steps, noisy=of_column.grain))
            found.append(weighed)
        return tuple(found)

    def fit(self, numbers: Numbers) -> tuple[tuple[Model, ...], GraphModel]:
        """Columns and the model of their states."""
        models = self.columns(numbers)
        one_ways = [
            one_way(index, model, 0.0 if column is None else column.noise.std, are_codes=index in self.levels)
            for index, (model, column) in enumerate(zip(models, self.measured.columns, strict=True))
        ]
        counted = [
            table_measurement(table, values, self.model.tree.sizes)
            for table, values in zip(self.measured.tables, numbers.tables, strict=True)
        ]
        tree = self.model.tree
        zeros = [
            (clique, np.isfinite(potentials))
            for clique, potentials in zip(tree.cliques, self.model.potentials, strict=True)
            if not np.isfinite(potentials).all()
        ]
        return models, estimate(
            tree.sizes,
            [*one_ways, *counted],
            self.total(numbers),
            cliques=tree.cliques,
            zeros=zeros,
            steps=self.measured.steps,
            regularization=self.measured.regularization,
        )


# A doubtful box that is below so many standard deviations of its noise is empty but for this part of one.
_DOUBTFUL_BELOW, _SURELY_EMPTY = 3.0, 0.25


def one_way(index: int, model: Model, noise_std: float, *, are_codes: bool) -> Measurement:
    """A column's states, each as uncertain as the leaves that it was added up from."""
    n_held = np.bincount(model.states, weights=model.weights > 0, minlength=model.n_states)
    if are_codes:  # what several codes hold together is known from the count of their group
        n_held = np.minimum(n_held, 2)
    return Measurement((index,), model.state_weights(), max(noise_std, 1.0) * np.sqrt(np.maximum(n_held, 1.0)))


def table_measurement(table: MeasuredTable, noisy: Floats, sizes: Sequence[int]) -> Measurement:
    """A counted table as the model is fitted to it; cells of no box, where the model has nothing, go with the first."""
    labels = None
    if table.labels is not None:
        labels = np.maximum(table.labels, 0).reshape([sizes[column] for column in table.columns])
    return Measurement(table.columns, *believed_boxes(noisy, table.noise.std, table.doubtful), labels)


def believed_boxes(noisy: Floats, noise_std: float, doubtful: Sequence[int]) -> tuple[Floats, float | Floats]:
    """Counts of boxes as a model is fitted to them, and how far they may be off.

    Doubtful ones that do not stand out hold nothing, nearly for certain: the model spreads noise in them otherwise.
    """
    if not doubtful:
        return noisy, noise_std
    is_empty = np.zeros(len(noisy), dtype=np.bool_)
    is_empty[list(doubtful)] = True
    is_empty &= noisy < _DOUBTFUL_BELOW * noise_std
    return np.where(is_empty, 0.0, noisy), np.where(is_empty, noise_std * _SURELY_EMPTY, noise_std)


def box_sums(table: MeasuredTable, law: Floats) -> Floats:
    """What the cells of each box hold together."""
    if table.labels is None:
        return law.ravel()
    is_boxed = table.labels >= 0
    sums = np.bincount(table.labels[is_boxed], weights=law.ravel()[is_boxed], minlength=len(table.noisy))
    return np.asarray(sums, dtype=np.float64)


def noisy_total(sums: Sequence[tuple[float, float]], row_count: RowCount | None) -> float:
    """The number of rows by sums with variances and a bought count, weighted by precision; at least 1."""
    if not sums:
        return 1.0 if row_count is None else float(row_count.drawn)
    weight = sum(1 / variance for _, variance in sums)
    total = sum(total / variance for total, variance in sums) / weight
    return max(1.0, total if row_count is None else row_count.with_sum(total, 1 / weight))


def _observed(column: MeasuredColumn) -> ColumnNumbers:
    piles = np.zeros(0) if column.piles is None else column.piles.noisy.astype(np.float64)
    groups = tuple(group.astype(np.float64) for group in column.groups)
    return ColumnNumbers(column.noisy.astype(np.float64), piles, groups, _grain_of(column))


def _grain_of(column: MeasuredColumn) -> Floats | None:
    """Rows in each class of the grain as they were counted: the model of states says nothing of them."""
    return None if column.grain is None else column.grain.noisy.astype(np.float64)


def _expected(column: MeasuredColumn, rows: Floats, levels: CodeLevels | None) -> ColumnNumbers:
    """The counts that so many rows in each leaf of the model have."""
    n_counted = len(column.noisy)
    if levels is not None:
        n_codes = np.diff(np.append(column.leaf, n_counted))
        counts = np.repeat(rows / n_codes, n_codes)
        groups = [np.add.reduceat(counts[: levels.n_codes], starts) for starts in levels.starts]
        groups[:1] = [np.append(groups[0], counts[levels.n_codes :])]
        return ColumnNumbers(counts, np.zeros(0), tuple(groups))
    counts = np.asarray(np.bincount(column.leaf, weights=rows, minlength=n_counted), dtype=np.float64)
    piles = np.zeros(0)
    if column.piles is not None:
        is_pile = column.piles.pile >= 0
        piles = np.zeros(len(column.piles.noisy))
        piles[column.piles.pile[is_pile]] = rows[is_pile]
    return ColumnNumbers(counts, piles, (), _grain_of(column))


def _weights(
    column: MeasuredColumn,
    numbers: ColumnNumbers,
    model: Model,
    total: float,
    levels: CodeLevels | None,
    *,
    rule: WeightsRule,
    likely: Flags | None,
    codes: Flags,
) -> Floats:
    """Weights of the model's leaves, as a fit makes them."""
    std = column.noise.std
    if isinstance(model, PlaceModel):
        return region_weights(model, numbers.counts, std, column.given_depth, total)
    if levels is not None:
        held = code_weights(levels, numbers.groups, numbers.counts, std, total)
        weights = np.add.reduceat(held, column.leaf)
    else:
        counts = parted_counts(numbers.counts, column.leaf, column.piles, numbers.piles)
        if column.kind == "category":
            weights = project_to_total(counts, total)
        else:
            is_whole = column.kind == "integer"
            places = (model.low, model.length, model.is_null | codes)
            weights = number_weights(counts, std, *places, total, is_whole=is_whole, rule=rule, likely=likely)
    return weights if column.possible.all() else possible_weights(weights, column.possible, model.length)


# ---------------------------------------------------------------------------------------------------------------- signs
# Signs: functions of a column's groups with values -1 and 1, and how far one row can move the sums of their products.
#
# The functions of a column are rows of a Hadamard matrix, as far as its groups go; with the constant they tell the
# groups apart, and there is one fewer than there are groups. A pair of columns has a sum, over all rows, for every
# product of a function of one and a function of the other. Everything here is public.
#
# A row adds -1 or 1 to each of F sums, so one row more or less moves them by sqrt(F). Another row in the place of one
# moves the sums of a pair by less than twice that: proof in `products.proof.md`.


Signs = NDArray[np.int64]

# Tables with more pairs of columns have no products: fitting them takes too long.
MOST_PAIRS = 5_000


@lru_cache(maxsize=256)
def signs(n_groups: int) -> Signs:
    """Functions of so many groups (n_groups - 1, n_groups), linearly independent together with the constant."""
    matrix: Signs = np.ones((1, 1), dtype=np.int64)
    while len(matrix) < n_groups:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    lines = matrix[:, :n_groups]
    chosen = [lines[0]]
    for line in lines[1:]:
        if np.linalg.matrix_rank(np.stack([*chosen, line])) > len(chosen):
            chosen.append(line)
        if len(chosen) == n_groups:
            break
    found = np.stack(chosen)[1:].reshape(n_groups - 1, n_groups)
    found.flags.writeable = False
    return found


def n_sums(n_groups: Sequence[int], pairs: Sequence[Pair]) -> int:
    """How many sums the pairs have."""
    return sum((n_groups[i] - 1) * (n_groups[j] - 1) for i, j in pairs)


def sensitivity_squared(n_groups: Sequence[int], pairs: Sequence[Pair], unit: Unit) -> int:
    """The most that one person's row can move all sums of these pairs, as the square of the Euclidean distance."""
    if unit.of_rows is Unit.ADD_REMOVE:
        return n_sums(n_groups, pairs)
    moves = [_moves(n_groups[i], n_groups[j]) for i, j in pairs]
    n_columns = len({column for pair in pairs for column in pair})
    # In how many pairs can one column be the same and the other not: those between two sets of columns.
    n_parted = min(len(pairs), n_columns**2 // 4)
    extra = sorted((max(0, one - both) for one, both in moves), reverse=True)
    return sum(both for _, both in moves) + sum(extra[:n_parted])


@lru_cache(maxsize=1024)
def _moves(n_first: int, n_second: int) -> tuple[int, int]:
    """How far another row moves the sums of a pair, squared: if one of its groups is another, and if both are."""
    alike = (n_first - 1, n_second - 1)
    unlike = (_least_product(n_first), _least_product(n_second))
    most = _most_product(n_first), _most_product(n_second)
    n_both = alike[0] * alike[1]
    one = 2 * n_both - 2 * min(unlike[0] * alike[1], alike[0] * unlike[1])
    both = 2 * n_both - 2 * min(unlike[0] * unlike[1], unlike[0] * most[1], most[0] * unlike[1], most[0] * most[1])
    return one, both


@lru_cache(maxsize=256)
def _products(n_groups: int) -> Signs:
    """For two different groups, the sum over functions of the products of their values; 0 where there is one group."""
    if n_groups == 1:
        return np.zeros(1, dtype=np.int64)
    lines = signs(n_groups)
    table = lines.T @ lines
    return np.asarray(table[~np.eye(n_groups, dtype=bool)])


def _least_product(n_groups: int) -> int:
    return int(_products(n_groups).min())


def _most_product(n_groups: int) -> int:
    return int(_products(n_groups).max())


# ------------------------------------------------------------------------------------------------------------- products
# What was released of all pairs at once, and the tilt that follows from it: as data, and in a file.
#
# A file holds the group and the log-factor of every state, and for every pair the log-factors of its groups and,
# where no table was counted, its noisy sums. How many sums there are, and which noise they need, follows from groups
# and pairs, so both are checked against what was charged.


MEMBERS = ("groups.arrow", "products.arrow")

_GROUPS = {"variable": (pa.int32(),), "group": (pa.int32(),), "factor": FLOAT}
_PAIRS = {
    "pair": (pa.list_(pa.int32()),),
    "factors": (pa.list_(pa.float64()),),
    "sums": (pa.list_(pa.int64()),),
}
# Log-factors beyond this leave the range of floats when they are added up.
_LARGEST_FACTOR = 500.0


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedProducts:
    """Noisy sums of products of pairs (`signs`), the variance of their noise, and the tilt that was fitted to them."""

    pairs: tuple[Pair, ...]  # those that were summed
    sums: tuple[NDArray[np.int64], ...]  # for each pair (n_groups of the first - 1, n_groups of the second - 1)
    variance: Fraction
    tilt: Tilt

    @property
    def n_sums(self) -> int:
        return n_sums(self.tilt.n_groups, self.pairs)

    def sensitivity_squared(self, unit: Unit) -> int:
        """How far one person can move all sums, squared."""
        return sensitivity_squared(self.tilt.n_groups, self.pairs, unit)

    # --------------------------------------------------------------------------------------------------- files

    def entries(self) -> dict[str, Any]:
        """What stands beside the card."""
        return {"variance": str(self.variance), "log_mean": self.tilt.log_mean}

    def members(self) -> dict[str, bytes]:
        """Two tables: states with their groups and factors, pairs with their factors and sums."""
        tilt = self.tilt
        owner = [np.full(len(group), number, dtype=np.int32) for number, group in enumerate(tilt.groups)]
        states = pa.table(
            {
                "variable": pa.array(np.concatenate(owner)),
                "group": pa.array(np.concatenate(tilt.groups).astype(np.int32)),
                "factor": pa.array(np.concatenate(tilt.singles)),
            }
        )
        sums = dict(zip(self.pairs, self.sums, strict=True))
        nothing = np.empty(0, dtype=np.int64)
        pairs = pa.table(
            {
                "pair": pa.array([list(pair) for pair in tilt.pairs], pa.list_(pa.int32())),
                "factors": pa.array([table.ravel() for table in tilt.tables], pa.list_(pa.float64())),
                "sums": pa.array([sums.get(pair, nothing).ravel() for pair in tilt.pairs], pa.list_(pa.int64())),
            }
        )
        return dict(zip(MEMBERS, (to_arrow(states), to_arrow(pairs)), strict=True))


def fitted_products(
    model: GraphModel,
    groups: tuple[Groups, ...],
    pairs: tuple[Pair, ...],
    sums: Sequence[NDArray[np.int64]],
    variance: Fraction,
    held: tuple[Pair, ...],
    fit: TiltFit,
    *,
    total: float,
    rng: np.random.Generator,
) -> ReleasedProducts:
    """The noisy sums of pairs, and the tilt of a model by them: in a fit, and of redrawn sums.

    Args:
        model: the law that is tilted.
        groups: of the states of every column.
        pairs: those that were summed.
        sums: of each pair, with noise.
        variance: of the noise.
        held: pairs that were counted.
        fit: how the tilt is fitted.
        total: the number of rows, or a noisy one.
        rng: draws rows of the model, which is no noise.
    """
    evidence = Evidence(
        groups=groups,
        functions=tuple(signs(int(group.max()) + 1).astype(np.float64) for group in groups),
        products=Products(pairs, tuple(table.astype(np.float64) for table in sums), math.sqrt(variance)),
        held=held,
        held_std=fit.held_std,
        total=total,
    )
    tilt = fit_tilt(model, evidence, n_drawn=fit.n_drawn, steps=fit.steps, rng=rng)
    return ReleasedProducts(pairs, tuple(sums), variance, tilt)


def products_from_members(
    described: Mapping[str, Any], members: Mapping[str, bytes], sizes: Sequence[int]
) -> ReleasedProducts | None:
    """Read what was written, for variables of so many states; ValueError where it is not that."""
    if "products" not in described:
        return None
    entries = described["products"]
    variance = parse_fraction(entries["variance"], "variance")
    log_mean = entries["log_mean"]
    if type(log_mean) is not float or not abs(log_mean) <= _LARGEST_FACTOR:
        raise ValueError("log_mean is not a number of the size that it can have")
    states, pairs = (from_arrow(members[name], kinds) for name, kinds in zip(MEMBERS, (_GROUPS, _PAIRS), strict=True))
    groups, singles = _states(states, sizes)
    n_groups = [int(group.max()) + 1 for group in groups]
    if pairs.num_rows > MOST_PAIRS:
        raise ValueError("more pairs of columns than products are made of")
    numbered: list[Pair] = []
    tables, sums = [], {}
    columns = [
        lists(pairs, name, dtype) for name, dtype in (("pair", np.int64), ("factors", np.float64), ("sums", np.int64))
    ]
    for columns_of_pair, factors, of_pair in zip(*columns, strict=True):
        pair = _pair(columns_of_pair, len(sizes))
        i, j = pair
        if not (np.abs(factors) <= _LARGEST_FACTOR).all() or not are_counts(of_pair):
            raise ValueError("factors or sums of a pair out of range")
        tables.append(factors.reshape(n_groups[i], n_groups[j]))
        if len(of_pair):
            sums[pair] = of_pair.reshape(n_groups[i] - 1, n_groups[j] - 1)
        numbered.append(pair)
    if len(set(numbered)) != len(numbered):
        raise ValueError("a pair of columns twice")
    tilt = Tilt(groups, singles, tuple(numbered), tuple(tables), log_mean)
    return ReleasedProducts(tuple(sums), tuple(sums.values()), variance, tilt)


def _states(table: pa.Table, sizes: Sequence[int]) -> tuple[tuple[Groups, ...], tuple[NDArray[np.float64], ...]]:
    """Groups and factors of the states of every variable."""
    variable, group = numbers(table, "variable", np.int64), numbers(table, "group", np.int64)
    factor = numbers(table, "factor", np.float64)
    if not np.array_equal(variable, np.repeat(np.arange(len(sizes)), sizes)):
        raise ValueError("groups of states that are not those of the model")
    ends = np.cumsum(sizes)[:-1]
    groups = np.split(group, ends)
    for of_variable in groups:
        # The size first: a number in a file must not decide how much memory is taken.
        if of_variable.max() >= MOST_GROUPS or not np.array_equal(
            np.unique(of_variable), np.arange(of_variable.max() + 1)
        ):
            raise ValueError("groups of states that do not follow each other")
    if not (np.abs(factor) <= _LARGEST_FACTOR).all():
        raise ValueError("factors of states out of range")
    return tuple(of_variable.astype(np.uint8) for of_variable in groups), tuple(np.split(factor, ends))


def _pair(columns: NDArray[np.int64], n_variables: int) -> Pair:
    if len(columns) != 2 or not 0 <= columns[0] < columns[1] < n_variables:
        raise ValueError("a pair that is not one of two variables, in order")
    return int(columns[0]), int(columns[1])


# ------------------------------------------------------------------------------------------------------- redrawn models
# Models that might have been released: everything that was measured with fresh noise, and fitted again.
#
# Numbers are drawn anew by the laws of their noise, around one of two:
#
#     model      what the released model says of every number: the truth is known to be the model, so the
#                distance of redrawn models from it is what the noise does, biases of cuts and projections included
#     numbers    the numbers that were released: the noise once more, for rows whose spread is to carry it
#
# and pass through all that a fit does to them (`Refitter`). The tilt by sums of products is fitted anew too, to
# redrawn sums and by rows of the redrawn model, but only once it is asked for: it takes longer than all the
# rest.


Around = Literal["model", "numbers"]

# Rows by which the products of the tilted model are known.
_N_DRAWN = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class Retilt:
    """How the tilt is fitted again: to sums of which the released ones are, or the model's, with fresh noise."""

    products: ReleasedProducts
    held: tuple[Pair, ...]  # pairs that were counted
    fit: TiltFit
    sums: tuple[Floats, ...]  # without the fresh noise

    def of(self, model: GraphModel, total: float, rng: np.random.Generator) -> ReleasedProducts:
        """Fresh sums, and the tilt of a model by them."""
        pairs, variance = self.products.pairs, self.products.variance
        law = NoiseLaw("discrete gaussian", variance)
        sums = [np.rint(table + law.draw(rng, table.shape)).astype(np.int64) for table in self.sums]
        groups = self.products.tilt.groups
        return fitted_products(model, groups, pairs, sums, variance, self.held, self.fit, total=total, rng=rng)


@dataclass(frozen=True, eq=False)
class Redrawn:
    """A model that might have been released: columns and places with their weights, and the law of their states."""

    columns: Mapping[str, ColumnModel]
    places: Mapping[str, PlaceModel]
    model: GraphModel
    total: float
    numbers: Numbers
    grains: Mapping[str, Floats]  # by column: rows in each class of its grain
    retilt: Retilt | None
    _stream: int  # starts the random numbers of the tilt

    @cached_property
    def products(self) -> ReleasedProducts | None:
        """Redrawn sums of products and the tilt by them; fitted when it is first asked for."""
        if self.retilt is None:
            return None
        return self.retilt.of(self.model, self.total, np.random.default_rng(self._stream))


class Redrawing:
    """Makes such models of one release; a ParameterError where its file does not hold what that takes."""

    def __init__(self, release: ForestRelease) -> None:
        measured = release.measured
        if measured is None:
            raise ParameterError(
                "this release does not hold its noisy counts, because it was saved by an earlier version of Spinney; "
                "sample(n_rows) works as before, and a new fit can be redrawn"
            )
        if release.card.parameters.get("prior") is not None:
            raise ParameterError(
                "a release that was fitted with a prior cannot be redrawn, because its file does not hold the prior's "
                "counts; fit without prior= for several draws"
            )
        self._release = release
        self.names = release.variables
        self.refitter = refitter(release)
        self._around: dict[Around, tuple[Numbers, tuple[Floats, ...]]] = {}

    def around(self, around: Around) -> tuple[Numbers, tuple[Floats, ...]]:
        """The numbers that fresh noise is added to, and the sums of products."""
        if around not in self._around:
            numbers = self.refitter.observed() if around == "numbers" else self.refitter.expected()
            products, sums = self._release.products, tuple[Floats, ...]()
            if products is not None:
                observed = tuple(table.astype(np.float64) for table in products.sums)
                sums = observed if around == "numbers" else _expected_sums(self.refitter, products)
            self._around[around] = numbers, sums
        return self._around[around]

    def draw(self, rng: np.random.Generator, around: Around) -> Redrawn:
        """One model."""
        numbers, sums = self.around(around)
        noisy = self.refitter.with_noise(numbers, rng)
        models, model = self.refitter.fit(noisy)
        named = dict(zip(self.names, models, strict=True))
        release, measured = self._release, self.refitter.measured
        retilt = None
        if release.products is not None and measured.tilt is not None:
            retilt = Retilt(release.products, release.counted_pairs, measured.tilt, sums)
        return Redrawn(
            {name: one for name, one in named.items() if isinstance(one, ColumnModel)},
            {name: one for name, one in named.items() if isinstance(one, PlaceModel)},
            model,
            self.refitter.total(noisy),
            noisy,
            {
                name: numbers.grain
                for name, numbers in zip(self.names, noisy.columns, strict=True)
                if numbers is not None and numbers.grain is not None
            },
            retilt,
            int(rng.integers(2**63)),
        )

    def draws(self, generators: Sequence[np.random.Generator], around: Around) -> list[Redrawn]:
        """A model for each stream of random numbers, by all threads."""
        self.around(around)
        return each(lambda rng: self.draw(rng, around), generators, title="fitting redrawn models", unit="model")

    def one_by_one(
        self, generators: Sequence[np.random.Generator], around: Around
    ) -> Iterator[tuple[Redrawn, np.random.Generator]]:
        """The same, each with the random numbers that are left of its stream; no more at a time than threads make."""
        at_a_time = n_threads()
        for start in range(0, len(generators), at_a_time):
            here = generators[start : start + at_a_time]
            yield from zip(self.draws(here, around), here, strict=True)


def refitter(release: ForestRelease) -> Refitter:
    """What fits the model of a release to numbers, with its structure as it is."""
    assert release.measured is not None
    axes = column_axes(release.schema)
    models: list[Model] = []
    levels, cells = {}, {}
    for index, name in enumerate(release.variables):
        models.append(release.columns[name] if name in release.columns else release.places[name])
        column = release.measured.columns[index]
        if name in release.columns:
            cells[index] = axes[name]
        if column is not None and column.kind == "codes":
            of_column = axes[name].levels
            assert of_column is not None
            levels[index] = of_column
    return Refitter(release.measured, tuple(models), release.model, levels, cells, release.card.n_rows is not None)


def _expected_sums(refit: Refitter, products: ReleasedProducts) -> tuple[Floats, ...]:
    """The sums of products under the tilted model, by rows of it; the same in every process."""
    tilt = products.tilt
    states = draw_states(refit.model, _N_DRAWN, np.random.default_rng(0))
    weights = tilt.weights(states)
    weights *= refit.measured.total / weights.sum()
    groups = tilt.grouped(states)
    n_groups = tilt.n_groups
    return tuple(_sums_of(groups[i], groups[j], n_groups[i], n_groups[j], weights) for i, j in products.pairs)


def _sums_of(
    first: NDArray[np.uint8], second: NDArray[np.uint8], n_first: int, n_second: int, weights: Floats
) -> Floats:
    cells = first.astype(np.int64) * n_second + second
    table = np.bincount(cells, weights=weights, minlength=n_first * n_second).reshape(n_first, n_second)
    return np.asarray(signs(n_first) @ table @ signs(n_second).T, dtype=np.float64)
