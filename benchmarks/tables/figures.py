"""How far synthetic rows are from the rows that were fitted, in every figure of the benchmark. NOT PRIVATE.

KS is the library's. Total variation of one, two and three columns is taken in two kinds of bins: 32 equal ones between
the quantiles 0.5 % and 99.5 %, two tails and null, in which targets and published figures are stated; and about 32 at
quantiles with values that pile up apart (`spinney.metrics`), which sees what lies in a narrow part of a column. Queries
are asked in the former. Correlations are those of numbers and of columns of two values, nulls at the mean.

Classifiers learn from at most 40,000 rows, of the rarer class all up to half, and are tested on at most 50,000 rows
that were not fitted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import spinney as sp
from benchmarks.forest.scores import Marginals, areas
from benchmarks.forest.tables import BenchTable
from benchmarks.tables import joint, queries
from spinney.columns import Boolean, Category
from spinney.metrics import ks_distance
from spinney.tables.frames import open_table

N_TRIPLES = 200
N_QUERIES = 1_000
MAX_TRAIN, MAX_TEST = 40_000, 50_000


@dataclass(frozen=True, slots=True)
class Figures:
    """All figures of one table of rows; none where a table has too few columns, or nothing to learn."""

    ks: float  # mean over columns
    worst_ks: float
    tv1: float
    tv2: float
    tv3: float | None
    tv1_quantiles: float
    tv2_quantiles: float
    tv3_quantiles: float | None
    query: float  # mean |error| as a share of the rows
    correlation: float | None  # mean |error|
    auc_lr: float | None = None
    auc_xgb: float | None = None


class Yardstick:
    """One split of a table into rows to fit and rows to test, and what other rows are held against."""

    def __init__(self, table: BenchTable, split: int) -> None:
        self.table = table
        self.train, test = table.split(split)
        self._test = test[:MAX_TEST]
        self._split = split
        self._middle = Marginals(self.train, table.schema, cut="middle")
        self._quantiles = Marginals(self.train, table.schema)
        n_columns = len(table.schema)
        self._chosen = {
            ways: joint.choices(n_columns, ways, at_most=N_TRIPLES if ways == 3 else None) for ways in (1, 2, 3)
        }
        is_number = [not isinstance(column, (Boolean, Category)) for column in table.schema.values()]
        self._queries = queries.drawn(self._middle.cells, self._middle.sizes, is_number, N_QUERIES, seed=0)
        self._answers = self._queries.answers(self._middle.cells)
        self._correlations = correlations(self.train, table.schema)

    def figures(self, rows: pl.DataFrame, *, has_areas: bool = True) -> Figures:
        """What these rows score."""
        found = self.distances(rows)
        if not has_areas:
            return Figures(**found)
        lr, xgb = self.areas(rows)
        return Figures(**found, auc_lr=lr, auc_xgb=xgb)

    def distances(self, rows: pl.DataFrame) -> dict[str, Any]:
        """Every figure but those of classifiers, by name."""
        schema = self.table.schema
        ks = list(ks_distance(self.train, rows, schema).values())
        middle, quantiles = self._middle.cells_of(rows), self._quantiles.cells_of(rows)
        answers = self._queries.answers(middle)
        return {
            "ks": sum(ks) / len(ks),
            "worst_ks": max(ks),
            **{f"tv{ways}": self._variation(self._middle, middle, ways) for ways in (1, 2, 3)},
            **{f"tv{ways}_quantiles": self._variation(self._quantiles, quantiles, ways) for ways in (1, 2, 3)},
            "query": float(np.abs(answers - self._answers).mean()),
            "correlation": correlation_error(self._correlations, correlations(rows, schema)),
        }

    def areas(self, rows: pl.DataFrame) -> tuple[float, float]:
        """Area under the ROC, on rows that were not fitted, of logistic regression and of XGBoost."""
        names = ("Logistic Regression", "XGBoost")
        found = areas(self._test, rows, self.table, classifiers=names, max_train=MAX_TRAIN, seed=self._split)
        return found[names[0]], found[names[1]]

    def resampled(self) -> pl.DataFrame:
        """As many rows as were fitted, drawn from them with replacement: what chance alone does to the figures."""
        n_rows = self.train.height
        return self.train[np.random.default_rng([self._split, 4]).integers(0, n_rows, n_rows)]

    def _variation(self, marginals: Marginals, cells: NDArray[np.uint16], ways: int) -> float | None:
        return joint.mean_variation(marginals.cells, cells, marginals.sizes, self._chosen[ways])


def correlations(rows: pl.DataFrame, schema: sp.Schema) -> NDArray[np.float64]:
    """Pearson's, of numbers and columns of two values; of a column that does not vary 0. (n_columns, n_columns)"""
    table = open_table(rows, schema)
    values = []
    for name, column in schema.items():
        if isinstance(column, Category) and len(column.listed) != 2:
            continue
        physical = table.physical(name)
        numbers = np.array(physical.values, dtype=np.float64)
        is_null = ~np.isfinite(numbers) if physical.is_null is None else np.asarray(physical.is_null)
        numbers[is_null] = numbers[~is_null].mean() if not is_null.all() else 0.0
        spread = numbers.std()
        values.append((numbers - numbers.mean()) / (spread if spread > 0 else 1.0))
    if not values:
        return np.empty((0, 0))
    stacked = np.stack(values)
    return np.asarray(stacked @ stacked.T / stacked.shape[1], dtype=np.float64)


def correlation_error(real: NDArray[np.float64], other: NDArray[np.float64]) -> float | None:
    """The mean absolute difference over pairs; none where there is no pair."""
    above = np.triu_indices(len(real), 1)
    return float(np.abs(real - other)[above].mean()) if len(above[0]) else None
