"""Two tables under one schema as numbers that can be compared, and the bins of their columns. NOT PRIVATE.

Values are compared as they are, without moving them into the bounds: what a wrong bound cuts off is a
difference. Two representations of one number are one number: if one table holds single precision, both are
compared in it, and what is a multiple of `multiple_of` but for rounding is that multiple. Identifiers, which
are made afresh, and ignored columns, which synthetic rows need not have, are left out. The first part reads
columns; the second cuts them into bins for `total_variation`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinney.columns import Column, Real
from spinney.counting.counts import AxisCells
from spinney.errors import InputError, ParameterError, SchemaError, redacted
from spinney.grid.lattice import grid_lattice
from spinney.machine import each
from spinney.schema.schema import Schema, SchemaLike, as_schema
from spinney.tables.frames import Table, open_table
from spinney.text import brief, did_you_mean

Floats = NDArray[np.float64]
Numbers = NDArray[Any]  # float64 of a Real, int64 of everything else
Truths = NDArray[np.bool_]
T = TypeVar("T")

# Half of the last place of a number in single precision is 6e-8 of it.
_ROUNDING = 1e-7
# Weights divided by their sum miss 1 by rounding only.
_SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Distribution:
    """The distinct values of a column in order, with the share of all rows that have each; nulls apart."""

    values: Numbers  # (n_values,)
    shares: Floats  # (n_values,)
    null: float

    def share_of(self, places: Numbers) -> Floats:
        """The share of rows with exactly the value of each place."""
        if not len(self.values):
            return np.zeros(len(places))
        at = np.minimum(np.searchsorted(self.values, places), len(self.values) - 1)
        return np.where(self.values[at] == places, self.shares[at], 0.0)


@dataclass(frozen=True)
class Side:
    """One column of one table, row by row."""

    values: Numbers  # (n,), anything where null
    is_null: Truths  # (n,)
    weights: Floats | None  # (n,), or equal shares

    @cached_property
    def distribution(self) -> Distribution:
        """Sorted once, however many metrics ask."""
        is_there = ~self.is_null
        values = self.values if is_there.all() else self.values[is_there]
        n_rows = len(self.values)
        if self.weights is None:
            values = np.sort(values)
            starts = _starts(values)
            shares = np.diff(np.append(starts, len(values))) / n_rows
            return Distribution(values[starts], shares, 1 - len(values) / n_rows)
        weights = self.weights[is_there]
        order = np.argsort(values, kind="stable")
        values = values[order]
        starts = _starts(values)
        shares = np.add.reduceat(weights[order], starts) if len(starts) else np.empty(0)
        return Distribution(values[starts], shares, max(0.0, 1 - float(weights.sum())))


class Tables:
    """A real and a synthetic table, opened and checked."""

    def __init__(
        self,
        real: Any,
        synthetic: Any,
        schema: SchemaLike,
        real_weights: ArrayLike | None = None,
        synthetic_weights: ArrayLike | None = None,
    ) -> None:
        schema = as_schema(schema)
        tables = open_table(real, schema), _open_drawn(synthetic, schema)
        for what, is_open in (("bounds", schema._awaits_bounds), ("lists", schema._columns_awaiting_values)):
            if is_open:
                raise SchemaError(
                    f"the schema leaves some {what} open; use the schema of the release, which has all (--release FILE)"
                )
        for table, argument in zip(tables, ("real", "synthetic"), strict=True):
            if not table.n_rows:
                raise InputError(f"{argument} has no rows; there is nothing to compare")
        compared = {name: column for name, column in schema.items() if column.is_read}
        if not compared:
            raise SchemaError("the schema has no column to compare; identifiers and ignored columns are left out")
        self.schema = Schema(compared)
        self.rules = schema.rules
        self.both = tables
        self.weights = tuple(
            None if given is None else read_shares(given, table.n_rows, f"{argument}_weights")
            for given, table, argument in zip(
                (real_weights, synthetic_weights), tables, ("real", "synthetic"), strict=True
            )
        )

    def sides(self, name: str) -> tuple[Side, Side]:
        """One column of both tables, in numbers that mean the same."""
        column = self.schema[name]
        values, nulls = zip(*(_read(table, name, column) for table in self.both), strict=True)
        if isinstance(column, Real):
            values = _alike(values, nulls, column)
        real, synthetic = (
            Side(numbers, is_null, weights)
            for numbers, is_null, weights in zip(values, nulls, self.weights, strict=True)
        )
        return real, synthetic

    def by_column(self, work: Callable[[str, Column, tuple[Side, Side]], T]) -> dict[str, T]:
        """What is made of every column, by several threads, with a progress bar where it takes long."""
        names = list(self.schema)
        found = each(
            lambda name: work(name, self.schema[name], self.sides(name)),
            names,
            title="comparing columns",
            unit="column",
        )
        return dict(zip(names, found, strict=True))


def read_shares(weights: ArrayLike, n_points: int, argument: str) -> Floats:
    """Weights >= 0 that add up to 1."""
    values = read_weights(weights, n_points, argument)
    if (values < 0).any():
        raise InputError(f"{argument} holds a negative weight; weights are shares of the whole")
    total = math.fsum(values)
    if abs(total - 1) > _SUM_TOLERANCE:
        raise InputError(f"{argument} adds up to {total:g}, not to 1; divide by the sum")
    return values


def read_weights(weights: ArrayLike, n_points: int, argument: str) -> Floats:
    """One finite weight per row."""
    with redacted(lambda _: InputError(f"{argument} does not hold numbers alone")):
        values = np.ascontiguousarray(weights, dtype=np.float64)
    if values.shape != (n_points,):
        raise InputError(f"{argument} has shape {values.shape} for {n_points} points; give one weight per point")
    if not np.isfinite(values).all():
        raise InputError(f"{argument} holds a missing or non-finite value")
    return values


def missing(name: str) -> InputError:
    """What is wrong with a null where none may be."""
    return InputError(
        f"column {name!r} holds a missing or non-finite value; declare it nullable in the schema (nullable=True) or "
        "clean the table"
    )


def _open_drawn(synthetic: Any, schema: Schema) -> Table:
    """The synthetic table, with or without the columns that are ignored."""
    drawn = schema._without_ignored()
    if drawn is not schema:
        with suppress(InputError, SchemaError):
            return open_table(synthetic, drawn)
    return open_table(synthetic, schema)


def _read(table: Table, name: str, column: Column) -> tuple[Numbers, Truths]:
    physical = table.physical(name)
    if not column.nullable and physical.is_missing.any():
        raise missing(name)
    return physical.values, physical.is_missing


def _alike(values: tuple[Numbers, ...], nulls: tuple[Truths, ...], column: Real) -> tuple[Numbers, ...]:
    """Numbers of both tables, without what only their representation tells apart."""
    if any(is_single(side[~is_null]) for side, is_null in zip(values, nulls, strict=True)):
        with np.errstate(over="ignore"):
            values = tuple(side.astype(np.float32).astype(np.float64) for side in values)
    if column.multiple_of is None:
        return values
    step = float(column.multiple_of)
    with np.errstate(invalid="ignore", over="ignore"):
        nearest = (np.rint(side / step) * step for side in values)
        return tuple(
            np.where(np.abs(side - near) <= _ROUNDING * np.maximum(np.abs(side), step), near, side)
            for side, near in zip(values, nearest, strict=True)
        )


def is_single(values: Numbers) -> bool:
    """Whether single precision holds all values, and some of them need a fraction of it."""
    with np.errstate(over="ignore"):
        return bool((values.astype(np.float32) == values).all() and (values != np.rint(values)).any())


def _starts(ordered: Numbers) -> NDArray[np.intp]:
    """Where each distinct value begins."""
    return np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(ordered) else np.empty(0, int)


# ----------------------------------------------------------------------------------------------------------------- bins
# Bins of one column for marginal distances: by the quantiles of the real table, or equal over the bounds. NOT
# PRIVATE.
#
# Quantile bins hold about equal shares of the real rows that have a value. A value whose share is above 1/bins is a
# bin of its own, and what lies between two such values is never in a bin with them, even if no real row lies there;
# of a column with no more than `bins` distinct values every one is a bin of its own. So a column whose mass lies in a
# tiny part of its bounds is cut there, and a pile that comes back beside its place is seen. Null is a bin of its own;
# categories stand as they are.
#
# Equal bins cut the schema's bounds into equal parts, one per value where there are fewer; values beyond count in the
# outer bins. They are kept for comparison with figures of others.


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
        if column._axis_kind == "category":
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
        if name not in given and column._axis_kind != "category":
            raise ParameterError(f"bins says nothing about column {name!r}; give a number of bins for every column")
        n_bins = given.get(name, 1)
        if isinstance(n_bins, bool) or not isinstance(n_bins, (int, np.integer)):
            raise ParameterError(
                f"bins={brief(bins)} is not a whole number of bins, or a mapping from columns to numbers of bins"
            )
        if not 1 <= n_bins <= _MOST_BINS:
            raise ParameterError(f"{n_bins} bins on column {name!r}; give a number between 1 and {_MOST_BINS:,}")
    return {name: int(n_bins) for name, n_bins in given.items()}
