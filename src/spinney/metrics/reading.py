"""Two tables under one schema, column by column, as numbers that can be compared. NOT PRIVATE.

Values are compared as they are, without moving them into the bounds: what a wrong bound cuts off is a difference. Two
representations of one number are one number: if one table holds single precision, both are compared in it, and what is
a multiple of `multiple_of` but for rounding is that multiple. Identifiers, which are made afresh, and ignored columns,
which synthetic rows need not have, are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinney.columns import Column, Real
from spinney.errors import InputError, SchemaError
from spinney.metrics.points import Floats, read_shares
from spinney.parallel import each
from spinney.schema.table import Schema, SchemaLike, as_schema
from spinney.tables.frames import Table, open_table

Numbers = NDArray[Any]  # float64 of a Real, int64 of everything else
Truths = NDArray[np.bool_]
T = TypeVar("T")

# Half of the last place of a number in single precision is 6e-8 of it.
_ROUNDING = 1e-7


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
        if schema.awaits_bounds:
            raise SchemaError(
                "the schema leaves some bounds open; use the schema of the release, which has all (--release FILE)"
            )
        if schema.columns_awaiting_values:
            raise SchemaError(
                "the schema leaves some lists open; use the schema of the release, which has all (--release FILE)"
            )
        for table, argument in zip(tables, ("real", "synthetic"), strict=True):
            if not table.n_rows:
                raise InputError(f"{argument} has no rows; there is nothing to compare")
        compared = {name: column for name, column in schema.items() if column.is_read}
        if not compared:
            raise SchemaError("the schema has no column to compare; identifiers and ignored columns are left out")
        self.schema = Schema(compared)
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


def missing(name: str) -> InputError:
    """What is wrong with a null where none may be."""
    return InputError(
        f"column {name!r} holds a missing or non-finite value; declare it nullable in the schema (nullable=True) or "
        "clean the table"
    )


def _open_drawn(synthetic: Any, schema: Schema) -> Table:
    """The synthetic table, with or without the columns that are ignored."""
    drawn = schema.without_ignored()
    if drawn is not schema:
        with suppress(InputError, SchemaError):
            return open_table(synthetic, drawn)
    return open_table(synthetic, schema)


def _read(table: Table, name: str, column: Column) -> tuple[Numbers, Truths]:
    physical = table.physical(name)
    is_null = ~np.isfinite(physical.values) if physical.is_null is None else np.asarray(physical.is_null)
    if not column.nullable and is_null.any():
        raise missing(name)
    return physical.values, is_null


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
