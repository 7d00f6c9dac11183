"""Bins of one column for marginal distances: by the quantiles of the real table, or equal over the bounds. NOT PRIVATE.

Quantile bins hold about equal shares of the real rows that have a value. A value whose share is above 1/bins is a bin
of its own, and what lies between two such values is never in a bin with them, even if no real row lies there; of a
column with no more than `bins` distinct values every one is a bin of its own. So a column whose mass lies in a tiny
part of its bounds is cut there, and a pile that comes back beside its place is seen. Null is a bin of its own;
categories stand as they are.

Equal bins cut the schema's bounds into equal parts, one per value where there are fewer; values beyond count in the
outer bins. They are kept for comparison with figures of others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Column
from spinney.counting.cells import AxisCells
from spinney.errors import ParameterError
from spinney.metrics.reading import Distribution, Numbers, Side, Tables, missing
from spinney.schema.lattice import grid_lattice
from spinney.shown import brief
from spinney.suggest import did_you_mean

Cells = NDArray[np.int64]  # (n,)
Scale = Literal["quantiles", "range"]
SCALES = ("quantiles", "range")
_MOST_BINS = 1 << 20


@dataclass(frozen=True, slots=True)
class Binned:
    """The bin of every row of both tables, in one column."""

    real: Cells
    synthetic: Cells
    size: int


@dataclass(frozen=True, slots=True)
class QuantileBins:
    """Where bins begin: at each of `breaks`, and behind each of `piles`, which are breaks too."""

    breaks: Numbers
    piles: Numbers

    @property
    def size(self) -> int:
        """The number of bins, that of null included."""
        return len(self.breaks) + len(self.piles) + 2

    def cells(self, side: Side) -> Cells:
        """The bin of every row; null is the last."""
        found = np.searchsorted(self.breaks, side.values, "right") + np.searchsorted(self.piles, side.values, "left")
        return np.where(side.is_null, self.size - 1, found)


class Cutter:
    """Puts columns into bins, however many and on either scale."""

    def __init__(self, tables: Tables, bins: int | Mapping[str, int], scale: str) -> None:
        check_scale(scale)
        self._tables = tables
        self._n_bins = _by_name(tables, bins)
        chosen = bins if isinstance(bins, Mapping) else int(bins)
        self._axes = {axis.name: axis for axis in grid_lattice(tables.schema, bins=chosen).axes if scale == "range"}

    def cut(self, name: str, sides: tuple[Side, Side]) -> Binned:
        """The bins of every row in one column."""
        column = self._tables.schema[name]
        if name in self._axes:
            return self._equal(name)
        if column.axis_kind == "category":
            return in_categories(column, *sides)
        cut = quantile_bins(sides[0].distribution, self._n_bins[name])
        return Binned(cut.cells(sides[0]), cut.cells(sides[1]), cut.size)

    def _equal(self, name: str) -> Binned:
        axis = self._axes[name]
        cells = [np.empty(table.n_rows, dtype=np.int64) for table in self._tables.both]
        for table, row in zip(self._tables.both, cells, strict=True):
            if AxisCells(table.physical(name), axis).fill(0, table.n_rows, row):
                raise missing(name)
        return Binned(cells[0], cells[1], 1 << axis.bits)


def in_categories(column: Column, real: Side, synthetic: Side) -> Binned:
    """Every category as a bin, and null."""
    size = len(column.listed) + 1
    cells = [np.where(side.is_null, size - 1, side.values).astype(np.int64) for side in (real, synthetic)]
    return Binned(cells[0], cells[1], size)


def quantile_bins(real: Distribution, n_bins: int) -> QuantileBins:
    """Bins of about equal shares, and values that pile up."""
    total = real.shares.sum()
    if len(real.values) <= n_bins or total <= 0:
        return QuantileBins(real.values, real.values)
    shares = real.shares / total
    is_pile = shares > 1 / n_bins
    piles, values, shares = real.values[is_pile], real.values[~is_pile], shares[~is_pile]
    stretch = np.searchsorted(piles, values)  # between which piles each value lies
    held = np.bincount(stretch, weights=shares, minlength=len(piles) + 1)
    n_parts = np.maximum(1, np.rint(held * n_bins))
    before = np.concatenate([[0.0], np.cumsum(held)])[stretch]
    middle = np.cumsum(shares) - shares / 2 - before
    part = np.minimum(np.floor(middle / held[stretch] * n_parts[stretch]), n_parts[stretch] - 1)
    is_start = (np.diff(part, prepend=0) > 0) & (np.diff(stretch, prepend=0) == 0)
    return QuantileBins(np.sort(np.concatenate([piles, values[is_start]])), piles)


def check_scale(scale: Any) -> None:
    """Raise unless it is one of the two."""
    if scale not in SCALES:
        raise ParameterError(f"scale={brief(scale)} is not {' or '.join(map(repr, SCALES))}")


def _by_name(tables: Tables, bins: int | Mapping[str, int]) -> dict[str, int]:
    """How many bins each column has, checked."""
    given = dict(bins) if isinstance(bins, Mapping) else dict.fromkeys(tables.schema, bins)
    for name in given:
        if name not in tables.schema:
            raise ParameterError(f"bins: {name!r} is not a column of the schema{did_you_mean(name, tables.schema)}")
    for name, column in tables.schema.items():
        if name not in given and column.axis_kind != "category":
            raise ParameterError(f"bins says nothing about column {name!r}; give a number of bins for every column")
        n_bins = given.get(name, 1)
        if isinstance(n_bins, bool) or not isinstance(n_bins, (int, np.integer)):
            raise ParameterError(
                f"bins={brief(bins)} is not a whole number of bins, or a mapping from columns to numbers of bins"
            )
        if not 1 <= n_bins <= _MOST_BINS:
            raise ParameterError(f"{n_bins} bins on column {name!r}; give a number between 1 and {_MOST_BINS:,}")
    return {name: int(n_bins) for name, n_bins in given.items()}
