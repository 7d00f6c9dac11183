"""The model that noisy numbers give: weights of leaves, then the law of states. Sees released numbers only.

This is the last step of a fit, as a function of numbers: of those that were measured, which has to give the model of
the file, and of redrawn ones. What noise decided stays as it is: leaves, states, boxes, which columns were counted
together. All else is done anew, as in a fit: small counts are cut, weights are projected, the model starts from
independent columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from spinney.forest.release.code_weights import code_weights
from spinney.forest.release.column_model import ColumnModel, Floats
from spinney.forest.release.leaf_weights import number_weights, parted_counts, possible_weights, region_weights
from spinney.forest.release.measured import Measured, MeasuredColumn, MeasuredTable, NoiseLaw
from spinney.forest.release.place_model import PlaceModel
from spinney.graph.estimate import Measurement, estimate
from spinney.graph.model import GraphModel
from spinney.release.row_count import RowCount
from spinney.schema.code_levels import CodeLevels
from spinney.tree.release.reconstruct import project_to_total

Model = ColumnModel | PlaceModel


@dataclass(frozen=True, slots=True, eq=False)
class ColumnNumbers:
    """The counts of a column or place: of its counted leaves, its piles, and the groups of its hierarchy."""

    counts: Floats
    piles: Floats
    groups: tuple[Floats, ...]


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
            columns.append(ColumnNumbers(counts, piles, groups))
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
        places = [isinstance(model, PlaceModel) for model in self.models]
        pairs = list(zip(self.measured.columns, numbers.columns, places, strict=True))
        every = [(column, of_column) for column, of_column, _ in pairs if column is not None and of_column is not None]
        alone = [(column, of_column) for column, of_column, is_place in pairs if column and of_column and not is_place]
        sums = [(_total(of_column), column.sum[1]) for column, of_column in alone or every]
        count = self.measured.row_count
        return noisy_total(sums, None if count is None else replace(count, noisy=round(numbers.rows or 0.0)))

    def columns(self, numbers: Numbers) -> tuple[Model, ...]:
        """Columns and places with the weights that numbers give."""
        total = self.total(numbers)
        found: list[Model] = []
        for index, model in enumerate(self.models):
            column, of_column = self.measured.columns[index], numbers.columns[index]
            if column is None or of_column is None:
                weights = model.weights * (total / max(float(model.weights.sum()), 1e-300))
            else:
                weights = _weights(
                    column, of_column, model, total, self.levels.get(index), is_near_counts=self.measured.is_near_counts
                )
            found.append(replace(model, weights=weights))
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
    return Measurement(table.columns, noisy, table.noise.std, labels)


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
    return ColumnNumbers(column.noisy.astype(np.float64), piles, groups)


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
    return ColumnNumbers(counts, piles, ())


def _weights(
    column: MeasuredColumn,
    numbers: ColumnNumbers,
    model: Model,
    total: float,
    levels: CodeLevels | None,
    *,
    is_near_counts: bool,
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
            places = (model.low, model.length, model.is_null)
            weights = number_weights(counts, std, *places, total, is_whole=is_whole, is_near_counts=is_near_counts)
    return weights if column.possible.all() else possible_weights(weights, column.possible, model.length)


def _total(numbers: ColumnNumbers) -> float:
    return float((numbers.groups[0] if numbers.groups else numbers.counts).sum())
