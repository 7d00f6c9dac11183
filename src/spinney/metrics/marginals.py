"""Marginal distances between a real and a synthetic table of any kind, column by column or few at a time. NOT PRIVATE.

Both tables are read under one schema and cut into the schema's grid of `bins` equal bins per column, one per value
where there are fewer; values outside the bounds count in the edge bins, nulls in a bin of their own. The total
variation of k columns is half the sum, over the joint bins, of the absolute differences of the shares of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinney.columns import Real, whole_range
from spinney.counting.cells import AxisCells
from spinney.errors import InputError, ParameterError, SchemaError
from spinney.metrics.points import Floats, read_shares
from spinney.progress import progress
from spinney.schema.lattice import Axis, grid_lattice
from spinney.schema.table import Schema, SchemaLike, as_schema
from spinney.tables.frames import Table, open_table

Cells = NDArray[np.int64]  # (n,)
Key = TypeVar("Key", str, tuple[str, ...])

# Joint bins that are counted in an array of that length; more are sorted.
_COUNTED = 1 << 22


def total_variation(
    real: Any,
    synthetic: Any,
    schema: SchemaLike,
    *,
    ways: int = 1,
    bins: int | Mapping[str, int] = 16,
    real_weights: ArrayLike | None = None,
    synthetic_weights: ArrayLike | None = None,
) -> dict[tuple[str, ...], float]:
    """Total variation distance of every choice of `ways` columns (1, 2 or 3). Lower is better, 0 to 1. Not private.

    Args:
        real: the real table.
        synthetic: the synthetic one.
        schema: describes both; all bounds filled in, as in a release's `schema`.
        ways: how many columns are looked at together.
        bins: equal bins per numeric column, for all or by name.
        real_weights: weights >= 0 of the rows that add up to 1; by default equal.
        synthetic_weights: the same for the synthetic rows.
    """
    schema = as_schema(schema)
    if isinstance(ways, bool) or ways not in (1, 2, 3):
        raise ParameterError(f"ways={ways!r} is not 1, 2 or 3")
    if ways > len(schema):
        raise ParameterError(f"ways={ways} columns cannot be chosen from {len(schema)}")
    tables = _open(real, synthetic, schema)
    if not isinstance(bins, Mapping) and (isinstance(bins, bool) or not isinstance(bins, (int, np.integer))):
        raise ParameterError(
            f"bins={bins!r} is not a whole number of bins, or a mapping from columns to numbers of bins"
        )
    axes = grid_lattice(schema, bins=bins).axes
    weights = [
        _shares(given, table, name)
        for given, table, name in zip((real_weights, synthetic_weights), tables, ("real", "synthetic"), strict=True)
    ]
    share = np.concatenate([weights[0], -weights[1]])
    cells = {axis.name: np.concatenate([_cells(table, axis) for table in tables]) for axis in axes}
    size = {axis.name: 1 << axis.bits for axis in axes}
    return {
        chosen: _variation([cells[name] for name in chosen], [size[name] for name in chosen], share)
        for chosen in progress(list(combinations(schema, ways)), "comparing columns", unit="table")
    }


def wasserstein(
    real: Any,
    synthetic: Any,
    schema: SchemaLike,
    *,
    real_weights: ArrayLike | None = None,
    synthetic_weights: ArrayLike | None = None,
) -> dict[str, float]:
    """Wasserstein-1 distance of every column, as a part of the column's range. Lower is better, 0 to 1. Not private.

    The area between the two distribution functions over high - low, values clamped to the bounds; exact, without bins.
    Categories have no order: theirs is the total variation, the same distance where any two values are 1 apart.
    Nulls: |difference of the shares of nulls| + (smaller share of values) * (distance of the values).
    """
    schema = as_schema(schema)
    tables = _open(real, synthetic, schema)
    weights = [
        _shares(given, table, name)
        for given, table, name in zip((real_weights, synthetic_weights), tables, ("real", "synthetic"), strict=True)
    ]
    names = progress(list(schema), "comparing columns", unit="column")
    return {name: _transport(name, tables, weights) for name in names}


def mean_of(distances: Mapping[Key, float]) -> float:
    """The mean over columns, or over choices of columns."""
    return float(np.mean(list(distances.values())))


def _open(real: Any, synthetic: Any, schema: Schema) -> tuple[Table, Table]:
    tables = open_table(real, schema), open_table(synthetic, schema)
    if schema.awaits_bounds:
        raise SchemaError("the schema leaves some bounds open; use the schema of the release, which has all bounds")
    for table, argument in zip(tables, ("real", "synthetic"), strict=True):
        if not table.n_rows:
            raise InputError(f"{argument} has no rows; there is nothing to compare")
    return tables


def _shares(weights: ArrayLike | None, table: Table, argument: str) -> Floats:
    if weights is None:
        return np.full(table.n_rows, 1 / table.n_rows)
    return read_shares(weights, table.n_rows, f"{argument}_weights")


def _cells(table: Table, axis: Axis) -> Cells:
    cells = np.empty(table.n_rows, dtype=np.int64)
    if AxisCells(table.physical(axis.name), axis).fill(0, table.n_rows, cells):
        raise _missing(axis.name)
    return cells


def _missing(name: str) -> InputError:
    return InputError(
        f"column {name!r} holds a missing or non-finite value; declare it nullable in the schema (nullable=True) or "
        "clean the table"
    )


def _variation(cells: list[Cells], sizes: list[int], share: Floats) -> float:
    """Half the sum of |P - Q| over joint bins, given rows of both tables with shares of opposite sign."""
    codes, n_codes = cells[0], sizes[0]
    for more, size in zip(cells[1:], sizes[1:], strict=True):
        if n_codes * size > _COUNTED:
            # Renumber what occurs: no more codes than rows, so that products stay far from the end of int64.
            codes = np.unique(codes, return_inverse=True)[1].astype(np.int64, copy=False)
            n_codes = int(codes.max()) + 1
        codes, n_codes = codes * size + more, n_codes * size
    if n_codes > _COUNTED:
        codes = np.unique(codes, return_inverse=True)[1]
    return min(1.0, float(np.abs(np.bincount(codes, weights=share)).sum()) / 2)


def _transport(name: str, tables: tuple[Table, Table], weights: list[Floats]) -> float:
    column = tables[0].schema[name]
    if column.axis_kind == "category":
        axis = grid_lattice(Schema({name: column}), bins=2).axes[0]
        share = np.concatenate([weights[0], -weights[1]])
        return _variation([np.concatenate([_cells(table, axis) for table in tables])], [1 << axis.bits], share)
    low, high = (column.low, column.high) if isinstance(column, Real) else whole_range(column)
    values, shares, nulls = [], [], []
    for table, weight in zip(tables, weights, strict=True):
        physical = table.physical(name)
        is_null = ~np.isfinite(physical.values) if physical.is_null is None else physical.is_null
        if is_null.any() and not column.nullable:
            raise _missing(name)
        position = np.clip(physical.values[~is_null], low, high) - low
        values.append(position.astype(np.float64) / max(high - low, 1e-300))
        shares.append(weight[~is_null])
        nulls.append(float(weight[is_null].sum()))
    kept = [float(share.sum()) for share in shares]
    apart = abs(nulls[0] - nulls[1])
    if min(kept) <= 0:
        return min(1.0, apart)
    places = np.concatenate(values)
    order = np.argsort(places, kind="stable")
    gaps = np.diff(places[order])
    ahead = np.cumsum(np.concatenate([shares[0] / kept[0], -shares[1] / kept[1]])[order])[:-1]
    return min(1.0, apart + min(kept) * float(np.abs(ahead) @ gaps))
