"""Scores of synthetic rows: distances of columns and pairs, and what classifiers learn from them. NOT PRIVATE.

TV1 and TV2 are the mean total variation over all columns and over all pairs of columns, between the synthetic rows and
the rows that were fitted. Numbers are cut into about 32 bins at the quantiles of the fitted rows, with values that pile
up as bins of their own (`spinney.metrics`), a choice of the metric alone: no synthesizer is told it. `cut="equal"`
takes 32 equal bins between the smallest and the largest value instead, as others publish: a skewed column lies in one
of them. `cut="middle"` takes 32 equal ones between the quantiles 0.5 % and 99.5 %, and the two tails. Values beyond
fall into the outer bins, nulls into a bin of their own; categories stand as they are.

Areas under the ROC are `spinney.metrics.train_on_synthetic` by ranking: one column per category, numbers centred and
scaled by the synthetic rows. At most 20,000 rows train, fewer for card fraud; of the rarer class all are kept, up to
half of that. Thinning synthetic rows is free, and areas hardly depend on the share of a class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

import spinney as sp
from benchmarks.forest.tables import BenchTable
from spinney.columns import Boolean, Category
from spinney.compiled import compiled
from spinney.errors import InputError
from spinney.metrics import CLASSIFIERS, train_on_synthetic
from spinney.metrics.reading import QuantileBins, Side, is_single, quantile_bins
from spinney.tables.frames import Table, open_table

Cells = NDArray[np.uint16]  # (n_columns, n_rows)

N_BINS = 32
MAX_TRAIN = 20_000
FOUR = ("Logistic Regression", "Random Forest", "XGBoost", "GBM")
TWELVE = CLASSIFIERS


@dataclass(frozen=True, slots=True)
class Distances:
    """Mean total variation of one and of two columns."""

    tv1: float
    tv2: float


Cut = Literal["quantiles", "equal", "middle"]


class Marginals:
    """The marginals of real rows, to hold others against."""

    sizes: tuple[int, ...]  # bins by column
    cells: Cells

    def __init__(self, real: Any, schema: sp.Schema, *, cut: Cut = "quantiles") -> None:
        self._schema = schema
        table = open_table(real, schema)
        # What single precision holds is compared in it: otherwise no drawn value would be at a pile.
        self._singles = {name for name in schema if is_single(_values(table, name))}
        self._bins = {
            name: _CUTS[cut](_side(table, name))
            for name, column in schema.items()
            if not isinstance(column, (Category, Boolean))
        }
        self.sizes = tuple(
            (self._bins[name].size - 1 if name in self._bins else len(column.listed)) + column.nullable
            for name, column in schema.items()
        )
        self.cells = self._cells(table)

    def cells_of(self, rows: Any) -> Cells:
        """The bins of other rows."""
        return self._cells(open_table(rows, self._schema))

    def distances(self, cells: Cells) -> Distances:
        """How far other rows are, given their bins."""
        one, two = _variations(self.cells, cells, np.array(self.sizes))
        return Distances(float(one), float(two))

    def _cells(self, table: Table) -> Cells:
        cells = np.empty((len(self._schema), table.n_rows), dtype=np.uint16)
        for row, name, size in zip(cells, self._schema, self.sizes, strict=True):
            side = _side(table, name)
            if not self._schema[name].nullable and side.is_null.any():
                raise InputError(f"column {name!r} holds a missing value; declare it nullable in the schema")
            if name in self._singles:
                side = Side(side.values.astype(np.float32).astype(np.float64), side.is_null, None)
            found = self._bins[name].cells(side) if name in self._bins else side.values
            row[:] = np.where(side.is_null, size - 1, found)
        return cells


def _side(table: Table, name: str) -> Side:
    physical = table.physical(name)
    is_null = ~np.isfinite(physical.values) if physical.is_null is None else np.asarray(physical.is_null)
    return Side(physical.values, is_null, None)


def _values(table: Table, name: str) -> NDArray[np.float64]:
    """What is there of a column, as floats."""
    side = _side(table, name)
    return side.values[~side.is_null].astype(np.float64)


def _quantiles(side: Side) -> QuantileBins:
    return quantile_bins(side.distribution, N_BINS)


def _equal(side: Side) -> QuantileBins:
    """Equal bins between the smallest and the largest value: breaks without piles."""
    values = side.values[~side.is_null].astype(np.float64)
    low, high = (values.min(), values.max()) if len(values) else (0.0, 0.0)
    return QuantileBins(low + (high - low) / N_BINS * np.arange(1, N_BINS), np.empty(0))


def _middle(side: Side) -> QuantileBins:
    """Equal bins over all but the outermost hundredth of the values, whose two halves are bins too.

    The upper end belongs to the bin below it, as a break and a pile do that are one value.
    """
    values = side.values[~side.is_null].astype(np.float64)
    low, high = np.quantile(values, [0.005, 0.995]) if len(values) else (0.0, 0.0)
    breaks = np.linspace(low, high, N_BINS + 1)[:-1] if high > low else np.array([low])
    return QuantileBins(breaks, np.array([high]))


_CUTS: dict[str, Callable[[Side], QuantileBins]] = {"quantiles": _quantiles, "equal": _equal, "middle": _middle}


@compiled
def _variations(real: Any, other: Any, sizes: Any) -> Any:
    """Mean total variation over columns and over pairs. Whole numbers: a real row weighs m, another -n."""
    n, m, d = real.shape[1], other.shape[1], len(sizes)
    ones, twos = 0.0, 0.0
    for i in range(d):
        single = np.zeros(sizes[i], np.int64)
        for cell in real[i]:
            single[cell] += m
        for cell in other[i]:
            single[cell] -= n
        ones += np.abs(single).sum() / (2.0 * n * m)
        for j in range(i):
            width = sizes[j]
            pairs = np.zeros(sizes[i] * width, np.int64)
            for k in range(n):
                pairs[np.int64(real[i, k]) * width + real[j, k]] += m
            for k in range(m):
                pairs[np.int64(other[i, k]) * width + other[j, k]] -= n
            twos += np.abs(pairs).sum() / (2.0 * n * m)
    return ones / d, twos / max(d * (d - 1) / 2, 1)


# --------------------------------------------------------------------------------------------------------- classifiers


def mean_area(
    test: pl.DataFrame,
    rows: pl.DataFrame,
    table: BenchTable,
    *,
    classifiers: tuple[str, ...] = FOUR,
    max_train: int = MAX_TRAIN,
    seed: int = 0,
) -> float:
    """Mean area under the ROC on real rows of classifiers that learnt from others."""
    found = areas(test, rows, table, classifiers=classifiers, max_train=max_train, seed=seed)
    return float(np.mean(list(found.values())))


def areas(
    test: pl.DataFrame,
    rows: pl.DataFrame,
    table: BenchTable,
    *,
    classifiers: tuple[str, ...] = FOUR,
    max_train: int = MAX_TRAIN,
    seed: int = 0,
) -> dict[str, float]:
    """Area under the ROC on real rows of each classifier that learnt from others."""
    schema = sp.Schema({**table.schema, table.target: Boolean()})
    train = thinned(folded(rows, table), table.target, max_train, seed)
    return train_on_synthetic(
        folded(test, table), train, schema, target=table.target, classifiers=classifiers, seed=seed
    )


def thinned(rows: pl.DataFrame, target: str, n_rows: int, seed: int) -> pl.DataFrame:
    """At most `n_rows` rows: all of the rarer class, up to half, and of the other at random."""
    if rows.height <= n_rows:
        return rows
    is_positive = rows[target].to_numpy()
    rng = np.random.default_rng([seed, 2])
    rare, common = sorted((rng.permutation(np.flatnonzero(is_positive == value)) for value in (True, False)), key=len)
    n_rare = min(len(rare), n_rows // 2)
    return rows[np.sort(np.concatenate([rare[:n_rare], common[: n_rows - n_rare]]))]


def folded(rows: pl.DataFrame, table: BenchTable) -> pl.DataFrame:
    """The target as true where it is one of the positive values."""
    target = rows[table.target]
    if not target.dtype.is_integer():
        target = target.cast(pl.String)
    return rows.with_columns(target.is_in(list(table.positives)).alias(table.target))
