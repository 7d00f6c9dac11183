"""Tables as codes for systems that know categories only, and codes as rows again.

`quantiles` cuts numbers into about 34 bins at the quantiles of the private rows, values that pile up and tails apart,
and draws values between the smallest and the largest private one of a bin. That is not private: it is a gift to the
rival, worth about a third of a budget. `public` cuts the stated bounds into 32 equal parts, which is all that a holder
may do for free. Categories stand as they are, and null is a code of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

import spinney as sp
from benchmarks.forest.scores import N_BINS, Cells
from spinney.columns import Boolean, Category, Column, Integer, Real
from spinney.metrics.reading import QuantileBins, Side, quantile_bins
from spinney.tables.frames import Table, open_table

Bins = Literal["quantiles", "public"]
Numbers = NDArray[np.float64]

_TAILS = (0.005, 0.995)


@dataclass(frozen=True, slots=True)
class _Ranges:
    """Between which values each code of a number lies, both ends included."""

    low: Numbers
    high: Numbers


class Coding:
    """The rows that are fitted, as codes."""

    codes: Cells
    sizes: tuple[int, ...]

    def __init__(self, rows: pl.DataFrame, schema: sp.Schema, bins: Bins) -> None:
        self._schema = schema
        self._ranges: dict[str, _Ranges] = {}
        table = open_table(rows, schema)
        codes, sizes = [], []
        for name, column in schema.items():
            values = _values(table, name)
            is_null = np.isnan(values)
            found: NDArray[Any]
            if isinstance(column, (Boolean, Category)):
                found, size = values, len(column.listed)
            else:
                found, self._ranges[name] = _quantiles(values) if bins == "quantiles" else _equal(column, values)
                size = len(self._ranges[name].low)
            codes.append(np.where(is_null, size, np.nan_to_num(found)).astype(np.uint16))
            sizes.append(size + column.nullable)
        self.codes, self.sizes = np.stack(codes), tuple(sizes)

    def rows(self, codes: Cells, *, seed: int) -> pl.DataFrame:
        """Values drawn evenly inside their bins."""
        rng = np.random.default_rng([seed, 5])
        made = {}
        for held, size, (name, column) in zip(codes, self.sizes, self._schema.items(), strict=True):
            is_null = held == size - 1 if column.nullable else np.zeros(len(held), np.bool_)
            inside = np.where(is_null, 0, held)
            if name in self._ranges:
                values = pl.Series(name, _drawn(column, self._ranges[name], inside, rng))
            else:
                values = pl.Series(name, list(column.listed)).gather(inside)
            made[name] = values.set(pl.Series(is_null), None)
        return pl.DataFrame(made)


def _values(table: Table, name: str) -> Numbers:
    """Physical values; null is not a number."""
    physical = table.physical(name)
    values = np.array(physical.values, dtype=np.float64)
    if physical.is_null is not None:
        values[np.asarray(physical.is_null)] = np.nan
    return values


def _quantiles(values: Numbers) -> tuple[NDArray[np.int64], _Ranges]:
    """Bins at quantiles, the outermost two hundredths cut once more, from the smallest to the largest value of each."""
    side = Side(values, np.isnan(values), None)
    bins = quantile_bins(side.distribution, N_BINS)
    tails = np.quantile(values[~side.is_null], _TAILS) if not side.is_null.all() else np.empty(0)
    bins = QuantileBins(np.unique(np.concatenate([bins.breaks, tails])), bins.piles)
    codes = bins.cells(side)
    return codes, _held(values[~side.is_null], codes[~side.is_null], bins.size - 1)


def _held(values: Numbers, codes: NDArray[np.int64], n_bins: int) -> _Ranges:
    """The smallest and largest value of every bin; one without rows reaches from the bin below to the one above."""
    low, high = np.full(n_bins, np.inf), np.full(n_bins, -np.inf)
    np.minimum.at(low, codes, values)
    np.maximum.at(high, codes, values)
    held = np.flatnonzero(np.isfinite(low))
    if not len(held):
        return _Ranges(np.zeros(n_bins), np.zeros(n_bins))
    for empty in np.flatnonzero(~np.isfinite(low)):
        below, above = held[held < empty], held[held > empty]
        ends = [*high[below[-1:]], *low[above[:1]]]
        low[empty], high[empty] = min(ends), max(ends)
    return _Ranges(low, high)


def _equal(column: Column, values: Numbers) -> tuple[NDArray[np.int64], _Ranges]:
    """Equal parts of the bounds, one a value where there are fewer; what lies beyond is in the outer parts."""
    assert isinstance(column, (Integer, Real))
    first, last = float(column.low), float(column.high)
    if isinstance(column, Integer):
        n_values = int(last - first) + 1
        n_parts = min(N_BINS, n_values)
        starts = first + np.arange(n_parts + 1) * n_values // n_parts
        ranges = _Ranges(starts[:-1], starts[1:] - 1)
    else:
        starts = np.linspace(first, last, N_BINS + 1)
        ranges = _Ranges(starts[:-1], starts[1:])
    return np.searchsorted(starts[1:-1], values, "right"), ranges


def _drawn(column: Column, ranges: _Ranges, codes: NDArray[np.integer[Any]], rng: np.random.Generator) -> NDArray[Any]:
    low, high = ranges.low[codes], ranges.high[codes]
    if isinstance(column, Integer):
        return rng.integers(low.astype(np.int64), high.astype(np.int64), endpoint=True)
    values = rng.uniform(low, high)
    step = getattr(column, "multiple_of", None)
    return values if step is None else np.clip(np.rint(values / float(step)) * float(step), low, high)
